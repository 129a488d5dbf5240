/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See nl_qdisc.h. */
#include "base/nl_qdisc.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_skbedit.h>
#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

#include "base/nl_dump.h"
#include "base/nl_msg.h"

#define BANDS 2

static struct tcmsg *tc_begin(union nl_req *r, uint16_t type, uint16_t flags, int ifindex,
			      uint32_t parent, uint32_t handle)
{
	struct tcmsg *t = nl_begin(r, type, flags, sizeof(*t));

	t->tcm_family = AF_UNSPEC;
	t->tcm_ifindex = ifindex;
	t->tcm_parent = parent;
	t->tcm_handle = handle;
	return t;
}

static void put_text(union nl_req *r, uint16_t type, const char *text)
{
	nl_put(r, type, text, strlen(text) + 1);
}

/* ---- listing ---- */

static int dump(struct nl *nl, union nl_req *r, int (*read)(const void *, size_t, uint32_t, void *),
		void *ctx)
{
	r->h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	return nl_ask(nl, &r->h, read, ctx);
}

/** struct qdisc_reader - argument of take_qdisc(). */
struct qdisc_reader {
	int ifindex;
	struct nl_qdiscs *to;
};

/* The part of @h that all messages about queueing disciplines have; NULL: it is too short. */
static const struct tcmsg *tc_body(const struct nlmsghdr *h)
{
	return h->nlmsg_len < NLMSG_LENGTH(sizeof(struct tcmsg)) ? NULL : NLMSG_DATA(h);
}

static int take_qdisc(const struct nlmsghdr *h, void *ctx)
{
	const struct tcmsg *t = tc_body(h);
	struct qdisc_reader *r = ctx;
	const struct rtattr *kind;
	struct nl_qdisc *q;
	const char *text;
	size_t size;

	if (h->nlmsg_type == NLMSG_DONE)
		return 0;
	if (!t)
		return -EBADMSG;
	if (h->nlmsg_type != RTM_NEWQDISC)
		return 0;
	if (t->tcm_ifindex != r->ifindex)
		return r->to->n != 0;
	kind = nl_attr(h, sizeof(*t), TCA_KIND, 1);
	if (!kind)
		return -EBADMSG;
	text = RTA_DATA(kind);
	size = RTA_PAYLOAD(kind);
	if (size > NL_QDISC_KIND || text[size - 1])
		return -EBADMSG;
	if (r->to->n++ >= r->to->max)
		return 0;
	q = &r->to->v[r->to->n - 1];
	q->handle = t->tcm_handle;
	q->parent = t->tcm_parent;
	strcpy(q->kind, text);
	return 0;
}

int nl_qdisc_read(const void *buf, size_t len, uint32_t seq, int ifindex, struct nl_qdiscs *to)
{
	struct qdisc_reader r = { .ifindex = ifindex, .to = to };

	return nl_messages(buf, len, seq, take_qdisc, &r);
}

static int read_qdiscs(const void *buf, size_t len, uint32_t seq, void *ctx)
{
	return nl_messages(buf, len, seq, take_qdisc, ctx);
}

static int list(int ifindex, struct nl_qdiscs *to)
{
	struct qdisc_reader reader = { .ifindex = ifindex, .to = to };
	union nl_req r;
	struct nl nl;
	int rc = nl_open(&nl);

	tc_begin(&r, RTM_GETQDISC, 0, ifindex, 0, 0);
	if (!rc)
		rc = dump(&nl, &r, read_qdiscs, &reader);
	nl_close(&nl);
	return rc;
}

int nl_qdisc_list(int ifindex, struct nl_qdisc *v, unsigned int max)
{
	struct nl_qdiscs to = { .v = v, .max = max };
	int rc = list(ifindex, &to);

	/* The kernel may skip an interface when another one vanishes meanwhile. */
	if (!rc && !to.n)
		rc = list(ifindex, &to);
	if (rc)
		return rc;
	return to.n > max ? -E2BIG : (int)to.n;
}

/* ---- making and removing ---- */

int nl_qdisc_add(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle, const char *kind)
{
	union nl_req r;

	tc_begin(&r, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, ifindex, parent, handle);
	put_text(&r, TCA_KIND, kind);
	return nl_send(nl, &r);
}

int nl_qdisc_pfifo(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle, uint32_t limit)
{
	const struct tc_fifo_qopt opt = { .limit = limit };
	union nl_req r;

	tc_begin(&r, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, ifindex, parent, handle);
	put_text(&r, TCA_KIND, "pfifo");
	nl_put(&r, TCA_OPTIONS, &opt, sizeof(opt));
	return nl_send(nl, &r);
}

static void put_ets_options(union nl_req *r)
{
	struct rtattr *options = nl_put(r, TCA_OPTIONS | NLA_F_NESTED, NULL, 0), *map;
	const uint8_t bands = BANDS, last = BANDS - 1;
	unsigned int k;

	nl_put(r, TCA_ETS_NBANDS, &bands, 1);
	map = nl_put(r, TCA_ETS_PRIOMAP | NLA_F_NESTED, NULL, 0);
	for (k = 0; k <= TC_PRIO_MAX; k++)
		nl_put(r, TCA_ETS_PRIOMAP_BAND, &last, 1);
	nl_put_end(r, map);
	nl_put_end(r, options);
}

static void put_prio_options(union nl_req *r)
{
	struct tc_prio_qopt opt = { .bands = BANDS };

	memset(opt.priomap, BANDS - 1, sizeof(opt.priomap));
	nl_put(r, TCA_OPTIONS, &opt, sizeof(opt));
}

int nl_qdisc_two_bands(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle,
		       const char *kind)
{
	union nl_req r;

	tc_begin(&r, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, ifindex, parent, handle);
	put_text(&r, TCA_KIND, kind);
	if (!strcmp(kind, "ets"))
		put_ets_options(&r);
	else
		put_prio_options(&r);
	return nl_send(nl, &r);
}

int nl_qdisc_del(struct nl *nl, int ifindex, uint32_t parent, uint32_t handle)
{
	union nl_req r;

	tc_begin(&r, RTM_DELQDISC, 0, ifindex, parent, handle);
	return nl_send(nl, &r);
}

/* ---- the filter that picks the queue ---- */

/** struct hook_reader - argument of take_hook(). */
struct hook_reader {
	int ifindex;
	int found; /* what nl_clsact_find() returns */
};

static int take_hook(const struct nlmsghdr *h, void *ctx)
{
	const struct tcmsg *t = tc_body(h);
	struct hook_reader *r = ctx;
	const struct rtattr *kind;

	if (h->nlmsg_type == NLMSG_DONE)
		return 0;
	if (!t)
		return -EBADMSG;
	if (h->nlmsg_type != RTM_NEWQDISC || t->tcm_ifindex != r->ifindex ||
	    t->tcm_parent != TC_H_CLSACT)
		return 0;
	kind = nl_attr(h, sizeof(*t), TCA_KIND, sizeof("clsact"));
	r->found = kind && !memcmp(RTA_DATA(kind), "clsact", sizeof("clsact")) ? 0 : -EBUSY;
	return 0;
}

static int read_hook(const void *buf, size_t len, uint32_t seq, void *ctx)
{
	return nl_messages(buf, len, seq, take_hook, ctx);
}

int nl_clsact_find(struct nl *nl, int ifindex)
{
	struct hook_reader reader = { .ifindex = ifindex, .found = -ENOENT };
	union nl_req r;
	int rc;

	tc_begin(&r, RTM_GETQDISC, 0, ifindex, 0, 0);
	rc = dump(nl, &r, read_hook, &reader);
	return rc ? rc : reader.found;
}

int nl_clsact_make(struct nl *nl, int ifindex)
{
	union nl_req r;
	int rc;

	tc_begin(&r, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex, TC_H_CLSACT,
		 TC_H_MAKE(TC_H_CLSACT, 0));
	put_text(&r, TCA_KIND, "clsact");
	rc = nl_send(nl, &r);
	return rc == -EEXIST ? nl_clsact_find(nl, ifindex) : rc;
}

int nl_clsact_del(struct nl *nl, int ifindex)
{
	union nl_req r;

	tc_begin(&r, RTM_DELQDISC, 0, ifindex, TC_H_CLSACT, TC_H_MAKE(TC_H_CLSACT, 0));
	/* The kernel compares the kind, so somebody else's ingress qdisc stays. */
	put_text(&r, TCA_KIND, "clsact");
	return nl_send(nl, &r);
}

static struct tcmsg *filter_begin(union nl_req *r, uint16_t type, uint16_t flags, int ifindex,
				  uint16_t prio, uint32_t handle)
{
	struct tcmsg *t =
		tc_begin(r, type, flags, ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS), handle);

	t->tcm_info = TC_H_MAKE((uint32_t)prio << 16, htons(ETH_P_ALL));
	return t;
}

int nl_filter_queue(struct nl *nl, int ifindex, uint16_t prio, uint32_t handle, int prog_fd,
		    uint16_t queue, bool unclass)
{
	/* "continue": the filters behind this one are asked, too. */
	const struct tc_skbedit parms = { .action = TC_ACT_UNSPEC };
	struct rtattr *options, *acts, *act, *edit;
	union nl_req r;

	filter_begin(&r, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE, ifindex, prio, handle);
	put_text(&r, TCA_KIND, "bpf");
	options = nl_put(&r, TCA_OPTIONS | NLA_F_NESTED, NULL, 0);
	nl_put_u32(&r, TCA_BPF_FD, (uint32_t)prog_fd);
	put_text(&r, TCA_BPF_NAME, "barline_queue");
	acts = nl_put(&r, TCA_BPF_ACT | NLA_F_NESTED, NULL, 0);
	act = nl_put(&r, 1 | NLA_F_NESTED, NULL, 0);
	put_text(&r, TCA_ACT_KIND, "skbedit");
	edit = nl_put(&r, TCA_ACT_OPTIONS | NLA_F_NESTED, NULL, 0);
	nl_put(&r, TCA_SKBEDIT_PARMS, &parms, sizeof(parms));
	nl_put(&r, TCA_SKBEDIT_QUEUE_MAPPING, &queue, sizeof(queue));
	if (unclass)
		nl_put_u32(&r, TCA_SKBEDIT_PRIORITY, 0);
	nl_put_end(&r, edit);
	nl_put_end(&r, act);
	nl_put_end(&r, acts);
	nl_put_end(&r, options);
	return nl_send(nl, &r);
}

int nl_filter_del(struct nl *nl, int ifindex, uint16_t prio, uint32_t handle)
{
	union nl_req r;

	filter_begin(&r, RTM_DELTFILTER, 0, ifindex, prio, handle);
	put_text(&r, TCA_KIND, "bpf");
	return nl_send(nl, &r);
}

/** struct filter_counter - argument of count_filter(). */
struct filter_counter {
	int ifindex;
	uint32_t parent, handle; /* @handle 0: any */
	uint16_t prio;           /* 0: any */
	int n;
};

static int count_filter(const struct nlmsghdr *h, void *ctx)
{
	const struct tcmsg *t = tc_body(h);
	struct filter_counter *c = ctx;

	if (h->nlmsg_type == NLMSG_DONE)
		return 0;
	if (!t)
		return -EBADMSG;
	/* The kernel also lists each preference that has filters, with handle 0. */
	if (h->nlmsg_type == RTM_NEWTFILTER && t->tcm_ifindex == c->ifindex &&
	    t->tcm_parent == c->parent && t->tcm_handle &&
	    (!c->handle || t->tcm_handle == c->handle) &&
	    (!c->prio || TC_H_MAJ(t->tcm_info) >> 16 == c->prio))
		c->n++;
	return 0;
}

static int read_filters(const void *buf, size_t len, uint32_t seq, void *ctx)
{
	return nl_messages(buf, len, seq, count_filter, ctx);
}

int nl_filter_count(struct nl *nl, int ifindex, uint32_t parent, uint16_t prio, uint32_t handle)
{
	struct filter_counter c = {
		.ifindex = ifindex, .parent = parent, .prio = prio, .handle = handle
	};
	union nl_req r;
	int rc;

	tc_begin(&r, RTM_GETTFILTER, 0, ifindex, parent, 0);
	rc = dump(nl, &r, read_filters, &c);
	return rc ? rc : c.n;
}
