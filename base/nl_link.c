/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See nl_link.h. */
#include "base/nl_link.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/nl_dump.h"

/** struct attrs - a run of attributes. */
struct attrs {
	const char *at;
	size_t left;
};

/* Takes the next attribute. Returns NULL at the end, and at one whose length is wrong. */
static const struct rtattr *next_attr(struct attrs *v)
{
	const struct rtattr *a = (const void *)v->at;
	size_t step;

	if (v->left < sizeof(*a) || a->rta_len < sizeof(*a) || a->rta_len > v->left)
		return NULL;
	step = RTA_ALIGN((size_t)a->rta_len);
	step = step > v->left ? v->left : step;
	v->at += step;
	v->left -= step;
	return a;
}

static struct attrs inside(const struct rtattr *a)
{
	return (struct attrs){ .at = RTA_DATA(a), .left = RTA_PAYLOAD(a) };
}

static unsigned int type_of(const struct rtattr *a)
{
	return a->rta_type & NLA_TYPE_MASK;
}

/* The kernel ends some texts with a 0 and others without. */
static void take_text(const struct rtattr *a, char *to, size_t size)
{
	size_t n = strnlen(RTA_DATA(a), RTA_PAYLOAD(a));

	n = n < size ? n : size - 1;
	memcpy(to, RTA_DATA(a), n);
	to[n] = 0;
}

static int take_int(const struct rtattr *a)
{
	int v = 0;

	if (RTA_PAYLOAD(a) >= sizeof(v))
		memcpy(&v, RTA_DATA(a), sizeof(v));
	return v;
}

static void take_bond(struct attrs v, struct nl_link *to)
{
	const struct rtattr *a;

	while ((a = next_attr(&v))) {
		if (type_of(a) == IFLA_BOND_MODE && RTA_PAYLOAD(a) >= 1)
			to->bond_mode = *(const uint8_t *)RTA_DATA(a);
		else if (type_of(a) == IFLA_BOND_ACTIVE_SLAVE)
			to->bond_active = take_int(a);
	}
}

static void take_info(struct attrs v, struct nl_link *to)
{
	struct attrs data = { 0 };
	const struct rtattr *a;

	while ((a = next_attr(&v))) {
		if (type_of(a) == IFLA_INFO_KIND)
			take_text(a, to->kind, sizeof(to->kind));
		else if (type_of(a) == IFLA_INFO_SLAVE_KIND)
			take_text(a, to->port_kind, sizeof(to->port_kind));
		else if (type_of(a) == IFLA_INFO_DATA)
			data = inside(a);
	}
	if (!strcmp(to->kind, "bond"))
		take_bond(data, to);
}

static void take_link(const struct nlmsghdr *h, struct nl_link *to)
{
	const struct ifinfomsg *i = NLMSG_DATA(h);
	struct attrs v = { .at = (const char *)i + NLMSG_ALIGN(sizeof(*i)),
			   .left = h->nlmsg_len - NLMSG_SPACE(sizeof(*i)) };
	const struct rtattr *a;

	*to = (struct nl_link){ .ifindex = i->ifi_index,
				.type = i->ifi_type,
				.bond_mode = NL_BOND_NONE };
	while ((a = next_attr(&v))) {
		switch (type_of(a)) {
		case IFLA_IFNAME:
			take_text(a, to->name, sizeof(to->name));
			break;
		case IFLA_MASTER:
			to->master = take_int(a);
			break;
		case IFLA_LINK:
			to->lower = take_int(a);
			break;
		case IFLA_LINK_NETNSID:
			to->lower_away = true;
			break;
		case IFLA_LINKINFO:
			take_info(inside(a), to);
			break;
		default:
			break;
		}
	}
	/* Some drivers name the interface itself. */
	if (to->lower == to->ifindex && !to->lower_away)
		to->lower = 0;
}

/** struct link_reader - argument of take_message(). */
struct link_reader {
	nl_link_fn fn;
	void *ctx;
};

static int take_message(const struct nlmsghdr *h, void *ctx)
{
	const struct link_reader *r = ctx;
	struct nl_link l;

	if (h->nlmsg_type != RTM_NEWLINK)
		return 0;
	if (h->nlmsg_len < NLMSG_SPACE(sizeof(struct ifinfomsg)))
		return -EBADMSG;
	take_link(h, &l);
	r->fn(&l, r->ctx);
	/* The answer for one interface is one message and has no end of its own. */
	return h->nlmsg_flags & NLM_F_MULTI ? 0 : 1;
}

int nl_link_read(const void *buf, size_t len, uint32_t seq, nl_link_fn fn, void *ctx)
{
	struct link_reader r = { .fn = fn, .ctx = ctx };

	return nl_messages(buf, len, seq, take_message, &r);
}

static int read_links(const void *buf, size_t len, uint32_t seq, void *ctx)
{
	return nl_messages(buf, len, seq, take_message, ctx);
}

static int ask(struct nl *nl, int ifindex, nl_link_fn fn, void *ctx)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
	} r = { .h = { .nlmsg_len = sizeof(r),
		       .nlmsg_type = RTM_GETLINK,
		       .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | (ifindex ? 0 : NLM_F_DUMP)) },
		.i = { .ifi_index = ifindex } };
	struct link_reader reader = { .fn = fn, .ctx = ctx };

	return nl_ask(nl, &r.h, read_links, &reader);
}

static void keep(const struct nl_link *l, void *ctx)
{
	*(struct nl_link *)ctx = *l;
}

int nl_link_get(struct nl *nl, int ifindex, struct nl_link *to)
{
	*to = (struct nl_link){ 0 };
	if (ifindex <= 0)
		return -ENODEV;
	return ask(nl, ifindex, keep, to);
}

int nl_link_each(struct nl *nl, nl_link_fn fn, void *ctx)
{
	return ask(nl, 0, fn, ctx);
}

const char *nl_bond_mode_name(int mode)
{
	static const char *const names[] = { "balance-rr", "active-backup", "balance-xor",
					     "broadcast",  "802.3ad",       "balance-tlb",
					     "balance-alb" };

	return mode >= 0 && mode < (int)(sizeof(names) / sizeof(names[0])) ? names[mode]
									   : "of an unknown mode";
}
