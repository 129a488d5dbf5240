// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * base/nl_qdisc.c: the kernel's list of queueing disciplines, as it is, short, and lying about its
 * lengths.
 */
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "tests/unit/unit.h"

#include "base/nl_qdisc.h"

#define SEQ 7
#define NIC 3

/** struct answer - a dump's answer that is being written. */
struct answer {
	char b[4096] __attribute__((aligned(8)));
	size_t n;
};

static struct nlmsghdr *put_message(struct answer *a, uint16_t type, uint32_t seq, size_t body)
{
	struct nlmsghdr *h = (void *)(a->b + a->n);

	memset(h, 0, NLMSG_SPACE(body));
	h->nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	h->nlmsg_type = type;
	h->nlmsg_seq = seq;
	a->n += NLMSG_SPACE(body);
	return h;
}

static struct nlmsghdr *put_qdisc(struct answer *a, int ifindex, uint32_t parent, uint32_t handle,
				  const char *kind)
{
	size_t size = strlen(kind) + 1, body = NLMSG_ALIGN(sizeof(struct tcmsg)) + RTA_SPACE(size);
	struct nlmsghdr *h = put_message(a, RTM_NEWQDISC, SEQ, body);
	struct tcmsg *t = NLMSG_DATA(h);
	struct rtattr *r = (void *)((char *)t + NLMSG_ALIGN(sizeof(*t)));

	t->tcm_ifindex = ifindex;
	t->tcm_parent = parent;
	t->tcm_handle = handle;
	r->rta_type = TCA_KIND;
	r->rta_len = (uint16_t)RTA_LENGTH(size);
	memcpy(RTA_DATA(r), kind, size);
	return h;
}

/* Reads the first @len bytes of @a from memory that ends there. */
static int read_answer(const struct answer *a, size_t len, struct nl_qdisc *v, unsigned int max,
		       unsigned int *n)
{
	struct nl_qdiscs to = { .v = v, .max = max };
	char *exact = malloc(len + 1);
	int rc;

	assert_non_null(exact);
	memcpy(exact, a->b, len);
	exact = realloc(exact, len ? len : 1);
	rc = nl_qdisc_read(exact, len, SEQ, NIC, &to);
	free(exact);
	*n = to.n;
	return rc;
}

static void nl_qdisc_read__list(void **state)
{
	struct answer a = {};
	struct nl_qdisc v[4];
	unsigned int n;

	(void)state;
	put_qdisc(&a, 1, TC_H_ROOT, 0, "noqueue");
	put_qdisc(&a, NIC, TC_H_ROOT, 0, "mq");
	put_qdisc(&a, NIC, 1, 0, "fq_codel");
	put_message(&a, RTM_NEWQDISC, SEQ + 1, 0); /* of an earlier request */
	put_message(&a, RTM_NEWTFILTER, SEQ, sizeof(struct tcmsg));
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(v[0].parent, TC_H_ROOT);
	assert_string_equal(v[0].kind, "mq");
	assert_int_equal(v[1].parent, 1);
	assert_string_equal(v[1].kind, "fq_codel");
	/* one has no room, and is counted */
	assert_int_equal(read_answer(&a, a.n, v, 1, &n), 0);
	assert_int_equal(n, 2);
	put_message(&a, NLMSG_DONE, SEQ, 4);
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), 1);
}

/* What follows those of the NIC is not read. */
static void nl_qdisc_read__ends_early(void **state)
{
	struct answer a = {};
	struct nl_qdisc v[4];
	unsigned int n;

	(void)state;
	put_qdisc(&a, NIC, TC_H_ROOT, 0, "mq");
	put_qdisc(&a, NIC, 1, 0, "fq_codel");
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), 0);
	put_qdisc(&a, NIC + 1, TC_H_ROOT, 0, "noqueue");
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), 1);
	assert_int_equal(n, 2);
	put_qdisc(&a, NIC, TC_H_ROOT, 0, "pfifo");
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), 1);
	assert_int_equal(n, 2);
}

static void nl_qdisc_read__error(void **state)
{
	struct answer a = {};
	struct nl_qdisc v[4];
	unsigned int n;
	struct nlmsgerr *e;

	(void)state;
	e = NLMSG_DATA(put_message(&a, NLMSG_ERROR, SEQ, sizeof(*e)));
	e->error = -EPERM;
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), -EPERM);
	/* an acknowledgement ends no dump */
	e->error = 0;
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), -EBADMSG);
}

/* Every length from nothing to the whole answer, and every wrong length in it. */
static void nl_qdisc_read__short_and_lying(void **state)
{
	struct answer a = {}, bad;
	struct nl_qdisc v[4];
	unsigned int n, found;
	size_t len, at;
	int rc;

	(void)state;
	put_qdisc(&a, NIC, TC_H_ROOT, 0x10000, "pfifo");
	put_message(&a, NLMSG_DONE, SEQ, 4);
	for (len = 0; len <= a.n; len++) {
		rc = read_answer(&a, len, v, 4, &n);
		assert_int_equal(rc,
				 len == a.n ? 1
				 : len < sizeof(struct nlmsghdr) ||
						 (len >= NLMSG_SPACE(sizeof(struct tcmsg) + 12) &&
						  len < NLMSG_SPACE(sizeof(struct tcmsg) + 12) +
								  sizeof(struct nlmsghdr))
					 ? 0
					 : -EBADMSG);
	}
	for (at = 0; at < 2; at++) {
		for (found = 0; found < 80; found++) {
			bad = a;
			if (at)
				((struct rtattr *)(bad.b + NLMSG_SPACE(sizeof(struct tcmsg))))
					->rta_len = (uint16_t)found;
			else
				((struct nlmsghdr *)bad.b)->nlmsg_len = found;
			rc = read_answer(&bad, bad.n, v, 4, &n);
			/* Only the right length gives a kind that ends in a zero. */
			if (rc == 1 && n)
				assert_string_equal(v[0].kind, "pfifo");
			else
				assert_true(rc == -EBADMSG || rc == 0 || rc == 1);
		}
	}
}

static void nl_qdisc_read__kind(void **state)
{
	struct answer a = {};
	struct nl_qdisc v[4];
	struct nlmsghdr *h;
	unsigned int n;

	(void)state;
	h = put_qdisc(&a, NIC, TC_H_ROOT, 0, "fifteen_letters");
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), 0);
	assert_string_equal(v[0].kind, "fifteen_letters");
	/* without an end */
	((char *)h)[NLMSG_SPACE(sizeof(struct tcmsg)) + sizeof(struct rtattr) + 15] = 'x';
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), -EBADMSG);
	a.n = 0;
	put_qdisc(&a, NIC, TC_H_ROOT, 0, "sixteen__letters");
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), -EBADMSG);
	/* without a kind */
	a.n = 0;
	((struct tcmsg *)NLMSG_DATA(put_message(&a, RTM_NEWQDISC, SEQ, sizeof(struct tcmsg))))
		->tcm_ifindex = NIC;
	assert_int_equal(read_answer(&a, a.n, v, 4, &n), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nl_qdisc_read__list),
		cmocka_unit_test(nl_qdisc_read__ends_early),
		cmocka_unit_test(nl_qdisc_read__error),
		cmocka_unit_test(nl_qdisc_read__short_and_lying),
		cmocka_unit_test(nl_qdisc_read__kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
