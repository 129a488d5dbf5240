// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of order_check.h with hand-made logs: correct ones, and one for each kind of error. A
 * checker that has not been seen to fail proves nothing.
 */
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>
#include <cmocka.h>

#include "tests/net/order_check.h"

#define R(n) (1ULL << (n))
#define G(s, q)                                                    \
	{                                                          \
		.sender = (s), .seq = (q), .hash = 100 * (s) + (q) \
	}
#define GI(s, q, i, h)                                              \
	{                                                           \
		.sender = (s), .seq = (q), .item = (i), .hash = (h) \
	}
#define S(s, q, t)                                                 \
	{                                                          \
		.to = (t), .items = 1, .hash = { 100 * (s) + (q) } \
	}

static void give(struct oc *c, unsigned int node, const struct oc_sent *s, uint32_t ns,
		 const struct oc_got *g, uint32_t ng)
{
	c->log[node] = (struct oc_log){ .sent = s, .nsent = ns, .got = g, .ngot = ng };
	if (c->nodes <= node)
		c->nodes = node + 1;
}
#define GIVE(c, n, s, g) give(c, n, s, sizeof(s) / sizeof(s[0]), g, sizeof(g) / sizeof(g[0]))
#define GIVE_G(c, n, g)  give(c, n, NULL, 0, g, sizeof(g) / sizeof(g[0]))

#define ALL              (R(2) | R(3))
static const struct oc_sent sent0[] = { S(0, 0, ALL), S(0, 1, ALL), S(0, 2, R(2)) };
static const struct oc_sent sent1[] = { S(1, 0, ALL), S(1, 1, ALL), S(1, 2, R(3)) };

static void expect(const struct oc_got *a, uint32_t na, const struct oc_got *b, uint32_t nb,
		   bool complete, enum oc_verdict want)
{
	struct oc c = { .complete_from = complete ? R(0) | R(1) : 0,
			.complete_to = complete ? ALL : 0 };
	enum oc_verdict v;

	give(&c, 0, sent0, 3, NULL, 0);
	give(&c, 1, sent1, 3, NULL, 0);
	give(&c, 2, NULL, 0, a, na);
	give(&c, 3, NULL, 0, b, nb);
	v = oc_check(&c);
	if (v != want)
		print_error("%s\n", c.text);
	assert_int_equal(v, want);
	assert_true(want == OC_OK || c.text[0]);
}
#define EXPECT(a, b, complete, want) \
	expect(a, sizeof(a) / sizeof(a[0]), b, sizeof(b) / sizeof(b[0]), complete, want)

static void good(void **state)
{
	static const struct oc_got a[] = { G(0, 0), G(1, 0), G(0, 1), G(1, 1), G(0, 2) };
	static const struct oc_got b[] = { G(0, 0), G(1, 0), G(0, 1), G(1, 1), G(1, 2) };

	EXPECT(a, b, true, OC_OK);
}

static void good__counts_what_it_compared(void **state)
{
	static const struct oc_got a[] = { G(0, 0), G(1, 0), G(0, 1), G(1, 1), G(0, 2) };
	static const struct oc_got b[] = { G(0, 0), G(1, 0), G(0, 1), G(1, 1), G(1, 2) };
	struct oc c = { .nodes = 0 };

	GIVE(&c, 0, sent0, a);
	c.log[0].ngot = 0;
	give(&c, 1, sent1, 3, NULL, 0);
	GIVE_G(&c, 2, a);
	GIVE_G(&c, 3, b);
	assert_int_equal(oc_check(&c), OC_OK);
	assert_int_equal(c.groups, 6);
	assert_int_equal(c.deliveries, 10);
	assert_int_equal(c.common, 4);
}

static void lost__only_if_asked(void **state)
{
	static const struct oc_got a[] = { G(0, 0), G(1, 0), G(0, 1), G(1, 1), G(0, 2) };
	static const struct oc_got b[] = { G(0, 0), G(1, 0), G(1, 1), G(1, 2) };

	EXPECT(a, b, false, OC_OK);
	EXPECT(a, b, true, OC_LOST);
}

static void order__pair(void **state)
{
	static const struct oc_got a[] = { G(0, 0), G(1, 0), G(0, 1) };
	static const struct oc_got b[] = { G(1, 0), G(0, 0), G(0, 1) };

	EXPECT(a, b, false, OC_ORDER);
}

static void order__pair_far_apart(void **state)
{
	static const struct oc_got a[] = { G(0, 0), G(1, 0), G(0, 1), G(1, 1), G(0, 2) };
	static const struct oc_got b[] = { G(1, 0), G(1, 1), G(1, 2), G(0, 0) };

	EXPECT(a, b, false, OC_ORDER);
}

static void fifo(void **state)
{
	static const struct oc_got a[] = { G(0, 1), G(0, 0) };
	static const struct oc_got b[] = { G(1, 0) };

	EXPECT(a, b, false, OC_FIFO);
}

static void duplicate(void **state)
{
	static const struct oc_got a[] = { G(0, 0), G(1, 0), G(0, 0) };
	static const struct oc_got twice[] = { G(0, 0), G(0, 0) };
	static const struct oc_got b[] = { G(0, 0) };

	EXPECT(a, b, false, OC_DUPLICATE);
	EXPECT(twice, b, false, OC_DUPLICATE);
}

static void invented__never_sent(void **state)
{
	static const struct oc_got a[] = { G(0, 3) };
	static const struct oc_got nobody[] = { G(9, 0) };
	static const struct oc_got b[] = { G(0, 0) };

	EXPECT(a, b, false, OC_INVENTED);
	EXPECT(nobody, b, false, OC_INVENTED);
}

static void invented__to_another(void **state)
{
	static const struct oc_got a[] = { G(0, 0), G(1, 2) };
	static const struct oc_got b[] = { G(0, 0) };

	EXPECT(a, b, false, OC_INVENTED);
}

static void content(void **state)
{
	static const struct oc_got a[] = { GI(0, 0, 0, 7) };
	static const struct oc_got b[] = { G(0, 0) };

	EXPECT(a, b, false, OC_CONTENT);
}

/*
 * R0 -> R1 -> R2 -> R0: no two receivers have two messages in common, so only the graph shows the
 * error.
 */
static void order__circle_of_three(void **state)
{
	static const struct oc_sent x[] = { { .to = R(3) | R(5), .items = 1, .hash = { 0 } } };
	static const struct oc_sent y[] = { { .to = R(3) | R(4), .items = 1, .hash = { 100 } } };
	static const struct oc_sent z[] = { { .to = R(4) | R(5), .items = 1, .hash = { 200 } } };
	static const struct oc_got a[] = { G(0, 0), G(1, 0) }, b[] = { G(1, 0), G(2, 0) },
				   c3[] = { G(2, 0), G(0, 0) };
	static const struct oc_got good3[] = { G(0, 0), G(2, 0) };
	struct oc c = { .nodes = 0 };

	give(&c, 0, x, 1, NULL, 0);
	give(&c, 1, y, 1, NULL, 0);
	give(&c, 2, z, 1, NULL, 0);
	GIVE_G(&c, 3, a);
	GIVE_G(&c, 4, b);
	GIVE_G(&c, 5, good3);
	assert_int_equal(oc_check(&c), OC_OK);
	GIVE_G(&c, 5, c3);
	assert_int_equal(oc_check(&c), OC_ORDER);
}

static void causal__answer_first(void **state)
{
	static const struct oc_sent q[] = { { .to = R(1) | R(2), .items = 1, .hash = { 0 } } };
	static const struct oc_sent ans[] = { { .to = R(2),
						.items = 1,
						.hash = { 100 },
						.after = 1,
						.after_sender = 0,
						.after_seq = 0 } };
	static const struct oc_got at1[] = { G(0, 0) }, good2[] = { G(0, 0), G(1, 0) },
				   bad2[] = { G(1, 0), G(0, 0) };
	struct oc c = { .nodes = 0 };

	give(&c, 0, q, 1, NULL, 0);
	GIVE(&c, 1, ans, at1);
	GIVE_G(&c, 2, good2);
	assert_int_equal(oc_check(&c), OC_OK);
	GIVE_G(&c, 2, bad2);
	assert_int_equal(oc_check(&c), OC_CAUSAL);
}

/*
 * q -> a (answer) -> b (next of the same sender), and a receiver that has b before q, but never got
 * a.
 */
static void causal__through_a_third(void **state)
{
	static const struct oc_sent q[] = { { .to = R(1) | R(2), .items = 1, .hash = { 0 } } };
	static const struct oc_sent ab[] = {
		{ .to = R(3), .items = 1, .hash = { 100 }, .after = 1 },
		{ .to = R(2), .items = 1, .hash = { 101 } }
	};
	static const struct oc_got at1[] = { G(0, 0) }, bad2[] = { G(1, 1), G(0, 0) };
	struct oc c = { .nodes = 4 };

	give(&c, 0, q, 1, NULL, 0);
	GIVE(&c, 1, ab, at1);
	GIVE_G(&c, 2, bad2);
	assert_int_equal(oc_check(&c), OC_ORDER);
}

static void split__items_of_a_scattering(void **state)
{
	static const struct oc_sent two[] = { { .to = R(2), .items = 2, .hash = { 1, 2 } } };
	static const struct oc_sent one[] = { S(1, 0, R(2)) };
	static const struct oc_got good2[] = { GI(0, 0, 0, 1), GI(0, 0, 1, 2), G(1, 0) };
	static const struct oc_got between[] = { GI(0, 0, 0, 1), G(1, 0), GI(0, 0, 1, 2) };
	static const struct oc_got reversed[] = { GI(0, 0, 1, 2), GI(0, 0, 0, 1) };
	static const struct oc_got half[] = { GI(0, 0, 0, 1), G(1, 0) };
	struct oc c = { .complete_from = R(0), .complete_to = R(2) };

	give(&c, 0, two, 1, NULL, 0);
	give(&c, 1, one, 1, NULL, 0);
	GIVE_G(&c, 2, good2);
	assert_int_equal(oc_check(&c), OC_OK);
	GIVE_G(&c, 2, between);
	assert_int_equal(oc_check(&c), OC_SPLIT);
	GIVE_G(&c, 2, reversed);
	assert_int_equal(oc_check(&c), OC_SPLIT);
	GIVE_G(&c, 2, half);
	assert_int_equal(oc_check(&c), OC_LOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(good__counts_what_it_compared),
		cmocka_unit_test(lost__only_if_asked),
		cmocka_unit_test(order__pair),
		cmocka_unit_test(order__pair_far_apart),
		cmocka_unit_test(order__circle_of_three),
		cmocka_unit_test(fifo),
		cmocka_unit_test(duplicate),
		cmocka_unit_test(invented__never_sent),
		cmocka_unit_test(invented__to_another),
		cmocka_unit_test(content),
		cmocka_unit_test(causal__answer_first),
		cmocka_unit_test(causal__through_a_third),
		cmocka_unit_test(split__items_of_a_scattering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
