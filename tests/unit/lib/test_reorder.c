// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lib/reorder.h: the queue against a sorted array, and its rules one by one. */
#include "tests/unit/unit.h"

#include "lib/reorder.h"

static void sender(struct bl_rq_sender *s, uint8_t first, uint8_t last)
{
	uint8_t key[BL_RQ_KEY] = { 0 };

	memset(s, 0xff, sizeof(*s));
	key[0] = first;
	key[BL_RQ_KEY - 1] = last;
	bl_rq_sender_init(s, key);
}

static void push(struct bl_rq *q, struct bl_rq_sender *s, struct bl_rq_frame *f, uint64_t ts,
		 uint32_t psn)
{
	memset(f, 0xff, sizeof(*f));
	f->ts = ts;
	f->psn = psn;
	assert_false(bl_rq_late(q, s, ts, psn));
	assert_int_equal(bl_rq_push(q, s, f), 0);
}

static void bl_rq_cmp__total_order(void **state)
{
	const uint8_t a[BL_RQ_KEY] = { [0] = 1 }, b[BL_RQ_KEY] = { [0] = 1, [17] = 1 },
		      c[BL_RQ_KEY] = { [0] = 2 };
	const struct {
		uint64_t ts_a;
		const uint8_t *key_a;
		uint32_t psn_a;
		uint64_t ts_b;
		const uint8_t *key_b;
		uint32_t psn_b;
		int want;
	} t[] = {
		{ 1, a, 9, 2, a, 1, -1 },
		{ 1, c, 9, 2, a, 1, -1 },
		/* The last byte of the port decides, before the sequence number. */
		{ 5, a, 9, 5, b, 1, -1 },
		{ 5, b, 9, 5, c, 1, -1 }, /* the address before the port */
		{ 5, a, 1, 5, a, 2, -1 },
		{ 5, a, 2, 5, a, 2, 0 },
		{ 5, a, 0xffffffff, 5, a, 0, -1 },
		{ 5, a, 0x7fffffff, 5, a, 0x80000000, -1 },
		/* 64 bits are compared without wrap. */
		{ 0x7fffffffffffffff, a, 0, 0x8000000000000000, a, 0, -1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		int ab = bl_rq_cmp(t[i].ts_a, t[i].key_a, t[i].psn_a, t[i].ts_b, t[i].key_b,
				   t[i].psn_b);
		int ba = bl_rq_cmp(t[i].ts_b, t[i].key_b, t[i].psn_b, t[i].ts_a, t[i].key_a,
				   t[i].psn_a);

		assert_int_equal(ab < 0 ? -1 : ab > 0, t[i].want);
		assert_int_equal(ba < 0 ? -1 : ba > 0, -t[i].want);
	}
}

static void bl_rq__the_example_of_the_header(void **state)
{
	struct bl_rq_sender a, b;
	struct bl_rq_frame f[3];
	struct bl_rq q;

	(void)state;
	bl_rq_init(&q);
	sender(&a, 1, 0);
	sender(&b, 2, 0);
	push(&q, &a, &f[0], 10, 0);
	push(&q, &a, &f[1], 30, 1);
	push(&q, &b, &f[2], 20, 0);
	assert_ptr_equal(bl_rq_pop(&q, 25), &f[0]);
	assert_ptr_equal(bl_rq_pop(&q, 25), &f[2]);
	assert_null(bl_rq_pop(&q, 25));
	assert_true(bl_rq_late(&q, &b, 15, 1));
	assert_ptr_equal(bl_rq_min(&q), &f[1]);
	assert_int_equal(q.frames, 1);
	bl_rq_free(&q);
}

static void bl_rq_pop__strictly_below_the_barrier(void **state)
{
	struct bl_rq_sender a;
	struct bl_rq_frame f;
	struct bl_rq q;

	(void)state;
	bl_rq_init(&q);
	sender(&a, 1, 0);
	assert_null(bl_rq_pop(&q, UINT64_MAX));
	assert_null(bl_rq_min(&q));
	push(&q, &a, &f, 100, 0);
	assert_null(bl_rq_pop(&q, 0));
	assert_null(bl_rq_pop(&q, 99));
	assert_null(bl_rq_pop(&q, 100)); /* another frame with ts 100 may still come */
	assert_ptr_equal(bl_rq_pop(&q, 101), &f);
	assert_null(bl_rq_pop(&q, 101));
	assert_int_equal(a.at, -1);
	assert_null(a.head);
	assert_null(a.tail);
	bl_rq_free(&q);
}

static void bl_rq__ties_by_address_then_psn(void **state)
{
	struct bl_rq_sender s[4];
	struct bl_rq_frame f[8];
	struct bl_rq q;
	int order, i;

	(void)state;
	/* Every arrival order of four senders gives the same delivery order. */
	for (order = 0; order < 24; order++) {
		int left[4] = { 0, 1, 2, 3 }, n = order, k;

		bl_rq_init(&q);
		sender(&s[0], 0, 200);
		sender(&s[1], 1, 0);
		sender(&s[2], 1, 1);
		sender(&s[3], 200, 0);
		for (i = 4; i >= 1; i--) {
			int at = n % i, who = left[at];

			n /= i;
			for (k = at; k + 1 < i; k++)
				left[k] = left[k + 1];
			/* The second frame first: sequence numbers decide, not the arrival. */
			push(&q, &s[who], &f[2 * who + 1], 500, 1);
			push(&q, &s[who], &f[2 * who], 500, 0);
		}
		for (i = 0; i < 8; i++)
			assert_ptr_equal(bl_rq_pop(&q, 501), &f[i]);
		assert_null(bl_rq_pop(&q, 501));
		bl_rq_free(&q);
	}
}

static void bl_rq__psn_wraps(void **state)
{
	static const uint32_t psn[] = { 0xfffffffe, 0xffffffff, 0, 1, 2 };
	struct bl_rq_frame f[ARRAY_SIZE(psn)];
	struct bl_rq_sender a;
	struct bl_rq q;
	size_t i;

	(void)state;
	bl_rq_init(&q);
	sender(&a, 1, 0);
	push(&q, &a, &f[3], 9, psn[3]);
	push(&q, &a, &f[0], 9, psn[0]);
	push(&q, &a, &f[4], 9, psn[4]);
	push(&q, &a, &f[2], 9, psn[2]);
	push(&q, &a, &f[1], 9, psn[1]);
	for (i = 0; i < ARRAY_SIZE(psn); i++) {
		assert_ptr_equal(bl_rq_pop(&q, 10), &f[i]);
		assert_true(bl_rq_late(&q, &a, 9, psn[i]));
		assert_false(bl_rq_late(&q, &a, 9, psn[i] + 1));
	}
	bl_rq_free(&q);
}

static void bl_rq_late__edges(void **state)
{
	struct bl_rq_sender lo, mid, hi;
	struct bl_rq_frame f;
	struct bl_rq q;

	(void)state;
	bl_rq_init(&q);
	sender(&lo, 1, 0);
	sender(&mid, 2, 0);
	sender(&hi, 3, 0);
	assert_false(bl_rq_late(&q, &mid, 1, 0)); /* nothing was delivered yet */
	push(&q, &mid, &f, 100, 5);
	assert_false(bl_rq_late(&q, &mid, 1, 0)); /* a queued frame is not a delivered one */
	assert_ptr_equal(bl_rq_pop(&q, 101), &f);
	assert_true(bl_rq_late(&q, &hi, 99, 9));
	assert_false(bl_rq_late(&q, &lo, 101, 0));
	assert_true(bl_rq_late(&q, &lo, 100, 9));
	assert_false(bl_rq_late(&q, &hi, 100, 0));
	assert_true(bl_rq_late(&q, &mid, 100, 4));
	assert_true(bl_rq_late(&q, &mid, 100, 5));
	assert_false(bl_rq_late(&q, &mid, 100, 6));
	bl_rq_free(&q);
}

static void bl_rq_push__links_in_the_middle(void **state)
{
	struct bl_rq_frame f[6], *at, *before;
	struct bl_rq_sender a;
	struct bl_rq q;
	int n;

	(void)state;
	bl_rq_init(&q);
	sender(&a, 1, 0);
	push(&q, &a, &f[2], 30, 2);
	push(&q, &a, &f[5], 60, 5);
	push(&q, &a, &f[0], 10, 0);
	push(&q, &a, &f[3], 40, 3);
	push(&q, &a, &f[1], 20, 1);
	push(&q, &a, &f[4], 50, 4);
	for (at = a.head, before = NULL, n = 0; at; before = at, at = at->next, n++) {
		assert_ptr_equal(at, &f[n]);
		assert_ptr_equal(at->prev, before);
		assert_ptr_equal(at->sender, &a);
	}
	assert_int_equal(n, 6);
	assert_ptr_equal(a.tail, &f[5]);
	assert_int_equal(q.used, 1);
	bl_rq_free(&q);
}

struct entry {
	uint64_t ts;
	uint32_t psn;
	int sender;
	struct bl_rq_frame *f;
};

static struct bl_rq_sender senders[64];

static int by_order(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	int c;

	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	c = memcmp(senders[a->sender].key, senders[b->sender].key, BL_RQ_KEY);
	if (c)
		return c;
	if (a->psn == b->psn)
		return 0;
	return (uint32_t)(b->psn - a->psn) < 1u << 31 ? -1 : 1;
}

static void bl_rq__random_against_a_sorted_array(void **state)
{
	struct rnd r = rnd_seeded("queue");
	int round, i;

	(void)state;
	for (round = 0; round < 60; round++) {
		int nsenders = 1 + (int)rnd_below(&r, 64), n = 0, op;
		uint32_t next[64];
		struct entry model[600], last = { 0 };
		uint64_t barrier = 1000;
		struct bl_rq q;

		bl_rq_init(&q);
		for (i = 0; i < nsenders; i++) {
			sender(&senders[i], (uint8_t)(i * 37), (uint8_t)(255 - i));
			next[i] = (uint32_t)rnd_below(&r, 64) - 32;
		}
		for (op = 0; op < 1500; op++) {
			if (n < 600 && rnd_below(&r, 5)) {
				struct entry e = { .sender =
							   (int)rnd_below(&r, (uint32_t)nsenders) };
				bool late;

				e.psn = next[e.sender]++;
				e.ts = barrier + rnd_below(&r, 40) - 20;
				late = last.ts && by_order(&e, &last) <= 0;
				assert_int_equal(!!bl_rq_late(&q, &senders[e.sender], e.ts, e.psn),
						 late);
				if (late)
					continue;
				e.f = malloc(sizeof(*e.f));
				assert_non_null(e.f);
				push(&q, &senders[e.sender], e.f, e.ts, e.psn);
				model[n++] = e;
			} else {
				struct bl_rq_frame *f;
				int taken = 0;

				barrier += rnd_below(&r, 30);
				qsort(model, (size_t)n, sizeof(model[0]), by_order);
				while ((f = bl_rq_pop(&q, barrier))) {
					assert_true(taken < n);
					assert_ptr_equal(f, model[taken].f);
					assert_int_equal(f->ts, model[taken].ts);
					assert_int_equal(f->psn, model[taken].psn);
					last = model[taken++];
					free(f);
				}
				assert_true(taken == n || model[taken].ts >= barrier);
				memmove(model, model + taken,
					(size_t)(n - taken) * sizeof(model[0]));
				n -= taken;
			}
			assert_int_equal(q.frames, n);
		}
		for (i = 0; i < n; i++)
			free(model[i].f);
		bl_rq_free(&q);
		assert_null(q.heap);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_rq_cmp__total_order),
		cmocka_unit_test(bl_rq__the_example_of_the_header),
		cmocka_unit_test(bl_rq_pop__strictly_below_the_barrier),
		cmocka_unit_test(bl_rq__ties_by_address_then_psn),
		cmocka_unit_test(bl_rq__psn_wraps),
		cmocka_unit_test(bl_rq_late__edges),
		cmocka_unit_test(bl_rq_push__links_in_the_middle),
		cmocka_unit_test(bl_rq__random_against_a_sorted_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
