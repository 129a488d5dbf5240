// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * base/nl_link.c: what the kernel says of interfaces, as it is, short, and lying about its lengths.
 */
#include <errno.h>
#include <net/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "tests/unit/unit.h"

#include "base/nl_link.h"

#define SEQ 7

/** struct answer - an answer that is being written. */
struct answer {
	char b[4096] __attribute__((aligned(8)));
	size_t n;
	struct nlmsghdr *h; /* the message that attributes are added to */
};

static void put_message(struct answer *a, uint16_t type, uint16_t flags, uint32_t seq, size_t body)
{
	a->h = (void *)(a->b + a->n);
	memset(a->h, 0, NLMSG_SPACE(body));
	a->h->nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	a->h->nlmsg_type = type;
	a->h->nlmsg_flags = flags;
	a->h->nlmsg_seq = seq;
	a->n += NLMSG_SPACE(body);
}

static struct rtattr *put(struct answer *a, uint16_t type, const void *data, size_t len)
{
	struct rtattr *r = (void *)(a->b + a->n);

	memset(r, 0, RTA_SPACE(len));
	r->rta_type = type;
	r->rta_len = (uint16_t)RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(r), data, len);
	a->n += RTA_SPACE(len);
	a->h->nlmsg_len = (uint32_t)(a->b + a->n - (char *)a->h);
	return r;
}

static void end(struct answer *a, struct rtattr *r)
{
	r->rta_len = (uint16_t)(a->b + a->n - (char *)r);
}

static void put_link(struct answer *a, uint16_t flags, int ifindex, const char *name)
{
	struct ifinfomsg *i;

	put_message(a, RTM_NEWLINK, flags, SEQ, sizeof(*i));
	i = NLMSG_DATA(a->h);
	i->ifi_index = ifindex;
	i->ifi_type = ARPHRD_ETHER;
	put(a, IFLA_IFNAME, name, strlen(name) + 1);
}

static void put_int(struct answer *a, uint16_t type, int v)
{
	put(a, type, &v, sizeof(v));
}

/* A bond of two slaves, a VLAN device on it, and one whose lower device is elsewhere. */
static void put_rack(struct answer *a)
{
	struct rtattr *info, *data;
	uint8_t mode = NL_BOND_BACKUP;

	put_link(a, NLM_F_MULTI, 2, "eth1");
	put_int(a, IFLA_LINK, 2);
	put_int(a, IFLA_MASTER, 5);
	info = put(a, IFLA_LINKINFO | NLA_F_NESTED, NULL, 0);
	put(a, IFLA_INFO_SLAVE_KIND, "bond", 5);
	end(a, info);

	put_link(a, NLM_F_MULTI, 5, "bond0");
	info = put(a, IFLA_LINKINFO, NULL, 0);
	put(a, IFLA_INFO_KIND, "bond", 5);
	data = put(a, IFLA_INFO_DATA, NULL, 0);
	put(a, IFLA_BOND_MODE, &mode, 1);
	put_int(a, IFLA_BOND_ACTIVE_SLAVE, 2);
	end(a, data);
	end(a, info);

	put_link(a, NLM_F_MULTI, 6, "bond0.5");
	put_int(a, IFLA_LINK, 5);
	info = put(a, IFLA_LINKINFO, NULL, 0);
	put(a, IFLA_INFO_KIND, "vlan", 4); /* without a 0 at its end */
	data = put(a, IFLA_INFO_DATA, NULL, 0);
	/* What means the mode to a bond means something else to a VLAN device. */
	put(a, IFLA_BOND_MODE, &mode, 1);
	end(a, data);
	end(a, info);

	put_link(a, NLM_F_MULTI, 9, "mv0");
	put_int(a, IFLA_LINK, 9);
	put_int(a, IFLA_LINK_NETNSID, 0);
	info = put(a, IFLA_LINKINFO, NULL, 0);
	put(a, IFLA_INFO_KIND, "macvlan", 8);
	end(a, info);
}

/** struct found - what the reader has found. */
struct found {
	struct nl_link v[8];
	unsigned int n;
};

static void take(const struct nl_link *l, void *ctx)
{
	struct found *f = ctx;

	assert_true(f->n < 8);
	f->v[f->n++] = *l;
}

/* Reads the first @len bytes of @a from memory that ends there. */
static int read_answer(const struct answer *a, size_t len, struct found *f)
{
	char *exact = malloc(len + 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, a->b, len);
	exact = realloc(exact, len ? len : 1);
	*f = (struct found){ 0 };
	rc = nl_link_read(exact, len, SEQ, take, f);
	free(exact);
	return rc;
}

static void nl_link_read__kinds(void **state)
{
	const struct nl_link want[] = {
		{ .ifindex = 2,
		  .type = ARPHRD_ETHER,
		  .name = "eth1",
		  .port_kind = "bond",
		  .master = 5,
		  .bond_mode = NL_BOND_NONE },
		{ .ifindex = 5,
		  .type = ARPHRD_ETHER,
		  .name = "bond0",
		  .kind = "bond",
		  .bond_mode = NL_BOND_BACKUP,
		  .bond_active = 2 },
		{ .ifindex = 6,
		  .type = ARPHRD_ETHER,
		  .name = "bond0.5",
		  .kind = "vlan",
		  .lower = 5,
		  .bond_mode = NL_BOND_NONE },
		/* The index is one of another namespace, where it may be the same number. */
		{ .ifindex = 9,
		  .type = ARPHRD_ETHER,
		  .name = "mv0",
		  .kind = "macvlan",
		  .lower = 9,
		  .lower_away = true,
		  .bond_mode = NL_BOND_NONE },
	};
	struct answer a = {};
	struct found f;
	unsigned int k;

	(void)state;
	put_rack(&a);
	put_message(&a, RTM_NEWLINK, 0, SEQ + 1, 0); /* of an earlier request */
	assert_int_equal(read_answer(&a, a.n, &f), 0);
	assert_int_equal(f.n, 4);
	for (k = 0; k < 4; k++) {
		assert_int_equal(f.v[k].ifindex, want[k].ifindex);
		assert_int_equal(f.v[k].type, want[k].type);
		assert_string_equal(f.v[k].name, want[k].name);
		assert_string_equal(f.v[k].kind, want[k].kind);
		assert_string_equal(f.v[k].port_kind, want[k].port_kind);
		assert_int_equal(f.v[k].master, want[k].master);
		assert_int_equal(f.v[k].lower, want[k].lower);
		assert_int_equal(f.v[k].lower_away, want[k].lower_away);
		assert_int_equal(f.v[k].bond_mode, want[k].bond_mode);
		assert_int_equal(f.v[k].bond_active, want[k].bond_active);
	}
	put_message(&a, NLMSG_DONE, NLM_F_MULTI, SEQ, 4);
	assert_int_equal(read_answer(&a, a.n, &f), 1);
}

/* The answer for one interface ends with its message. */
static void nl_link_read__one(void **state)
{
	struct answer a = {};
	struct found f;

	(void)state;
	put_link(&a, 0, 2, "eth1");
	assert_int_equal(read_answer(&a, a.n, &f), 1);
	assert_int_equal(f.n, 1);
}

static void nl_link_read__error(void **state)
{
	struct answer a = {};
	struct nlmsgerr *e;
	struct found f;

	(void)state;
	put_message(&a, NLMSG_ERROR, 0, SEQ, sizeof(*e));
	e = NLMSG_DATA(a.h);
	e->error = -ENODEV;
	assert_int_equal(read_answer(&a, a.n, &f), -ENODEV);
	/* an acknowledgement ends nothing */
	e->error = 0;
	assert_int_equal(read_answer(&a, a.n, &f), -EBADMSG);
	assert_int_equal(read_answer(&a, a.n - 4, &f), -EBADMSG);
}

/* A kind and a name that are longer than any are cut. */
static void nl_link_read__long_texts(void **state)
{
	char text[NL_LINK_KIND + 1];
	struct answer a = {};
	struct rtattr *info;
	struct found f;

	(void)state;
	memset(text, 'x', sizeof(text));
	put_link(&a, 0, 2, "");
	put(&a, IFLA_IFNAME, text, IFNAMSIZ);
	info = put(&a, IFLA_LINKINFO, NULL, 0);
	put(&a, IFLA_INFO_KIND, text, sizeof(text));
	end(&a, info);
	assert_int_equal(read_answer(&a, a.n, &f), 1);
	assert_int_equal(strlen(f.v[0].kind), NL_LINK_KIND - 1);
	assert_int_equal(strlen(f.v[0].name), IFNAMSIZ - 1);
}

/* Every length from nothing to the whole answer, and every wrong length in it. */
static void nl_link_read__short_and_lying(void **state)
{
	static const uint16_t lies[] = { 0, 1, 3, 4, 5, 0xffff };
	struct answer a = {}, bad;
	struct found f;
	size_t len, at;
	unsigned int k;
	int rc;

	(void)state;
	put_rack(&a);
	for (len = 0; len < a.n; len++) {
		rc = read_answer(&a, len, &f);
		assert_true(rc == 0 || rc == -EBADMSG);
	}
	for (at = 0; at + 2 <= a.n; at += 2) {
		for (k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
			bad = a;
			memcpy(bad.b + at, &lies[k], 2);
			rc = read_answer(&bad, bad.n, &f);
			assert_true(rc <= 1);
		}
	}
	/* a body that is shorter than its struct */
	put_message(&a, RTM_NEWLINK, NLM_F_MULTI, SEQ, sizeof(struct ifinfomsg) - 4);
	assert_int_equal(read_answer(&a, a.n, &f), -EBADMSG);
}

static void nl_bond_mode_name__edges(void **state)
{
	(void)state;
	assert_string_equal(nl_bond_mode_name(-1), "of an unknown mode");
	assert_string_equal(nl_bond_mode_name(0), "balance-rr");
	assert_string_equal(nl_bond_mode_name(NL_BOND_BACKUP), "active-backup");
	assert_string_equal(nl_bond_mode_name(6), "balance-alb");
	assert_string_equal(nl_bond_mode_name(7), "of an unknown mode");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nl_link_read__kinds),
		cmocka_unit_test(nl_link_read__one),
		cmocka_unit_test(nl_link_read__error),
		cmocka_unit_test(nl_link_read__long_texts),
		cmocka_unit_test(nl_link_read__short_and_lying),
		cmocka_unit_test(nl_bond_mode_name__edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
