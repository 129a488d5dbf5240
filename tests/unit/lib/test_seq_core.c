// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lib/seq_core.h and lib/rto_core.h: edges and wraps, and random sequence numbers against a list of
 * all that came.
 */
#include "tests/unit/unit.h"

#include "lib/rto_core.h"
#include "lib/seq_core.h"

/* ---- sequence numbers ---- */

static void bl_seq_add__the_example_of_the_header(void **state)
{
	struct bl_seq s;

	(void)state;
	bl_seq_begin(&s, 0);
	assert_int_equal(bl_seq_add(&s, 0), 1);
	assert_int_equal(bl_seq_add(&s, 1), 1);
	assert_int_equal(bl_seq_add(&s, 3), 1);
	bl_seq_free(&s, 0);
	bl_seq_free(&s, 3);
	assert_int_equal(s.next, 4);
	assert_int_equal(s.done, 1);
	assert_int_equal(bl_seq_add(&s, 3), 0);
	assert_int_equal(bl_seq_add(&s, 2), 1);
	bl_seq_free(&s, 1);
	assert_int_equal(s.done, 2);
	bl_seq_free(&s, 2);
	assert_int_equal(s.done, 4);
}

/*
 * From several beginnings, wraps among them: a number one window behind has come, a number one less
 * behind need not have.
 */
static void bl_seq_seen__edges(void **state)
{
	const uint32_t begins[] = { 0, 1, 5000, UINT32_MAX, UINT32_MAX - 1023, 1u << 31 };
	struct bl_seq s;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(begins); i++) {
		uint32_t b = begins[i];

		bl_seq_begin(&s, b);
		assert_int_equal(bl_seq_seen(&s, b), 0);
		assert_int_equal(bl_seq_seen(&s, b - BL_SEQ_WINDOW), 0);
		assert_int_equal(bl_seq_seen(&s, b - BL_SEQ_WINDOW - 1), 1);
		assert_int_equal(bl_seq_seen(&s, b + 0x7fffffff), 0);
		assert_int_equal(bl_seq_seen(&s, b + 0x80000000), 1);
		assert_int_equal(bl_seq_add(&s, b + 1023), 1);
		assert_int_equal(bl_seq_seen(&s, b), 0);
		assert_int_equal(bl_seq_seen(&s, b - 1), 1);
		assert_int_equal(bl_seq_add(&s, b), 1);
		assert_int_equal(bl_seq_add(&s, b), 0);
		assert_int_equal(bl_seq_add(&s, b + 1024), 1);
		assert_int_equal(bl_seq_seen(&s, b), 1); /* by its age */
		assert_int_equal(bl_seq_seen(&s, b + 1), 0);
		/* A jump over more than the window leaves no old bit. */
		assert_int_equal(bl_seq_add(&s, b + 10000), 1);
		assert_int_equal(bl_seq_seen(&s, b + 10000 - 1023), 0);
		assert_int_equal(bl_seq_seen(&s, b + 10000), 1);
		assert_int_equal(s.done, b + 10001 - BL_SEQ_WINDOW);
	}
}

static void bl_seq_free__edges(void **state)
{
	struct bl_seq s;
	uint32_t k;

	(void)state;
	bl_seq_begin(&s, UINT32_MAX);
	bl_seq_free(&s, UINT32_MAX); /* has not come */
	assert_int_equal(s.done, UINT32_MAX);
	bl_seq_free(&s, UINT32_MAX - 1);
	assert_int_equal(s.done, UINT32_MAX);
	for (k = 0; k < 2000; k++) {
		assert_int_equal(bl_seq_add(&s, UINT32_MAX + k), 1);
		bl_seq_free(&s, UINT32_MAX + k);
		assert_int_equal(s.done, UINT32_MAX + k + 1);
	}
	bl_seq_free(&s, UINT32_MAX + 5); /* again: no-op */
	assert_int_equal(s.done, UINT32_MAX + 2000);
}

static void bl_seq__random_against_a_list(void **state)
{
	static uint8_t came[40000], freed[40000];
	struct rnd r = rnd_seeded("seq");
	int round;

	(void)state;
	for (round = 0; round < 20; round++) {
		uint32_t b = (uint32_t)rnd64(&r), low = 0, k, top = 0;
		struct bl_seq s;

		memset(came, 0, sizeof(came));
		memset(freed, 0, sizeof(freed));
		bl_seq_begin(&s, b);
		for (k = 0; k < 30000; k++) {
			/*
			 * As senders do it: no number is a window ahead of the lowest that has not
			 * come.
			 */
			uint32_t x = low + rnd_below(&r, rnd_below(&r, 4) ? 20 : BL_SEQ_WINDOW);

			if (x >= sizeof(came))
				break;
			if (top && !rnd_below(&r, 3))
				x = top - 1 -
				    rnd_below(&r, top < BL_SEQ_WINDOW ? top : BL_SEQ_WINDOW);
			assert_int_equal(bl_seq_add(&s, b + x), !came[x]);
			came[x] = 1;
			top = x + 1 > top ? x + 1 : top;
			while (came[low])
				low++;
			if (rnd_below(&r, 2)) {
				uint32_t y = x > 10 ? x - rnd_below(&r, 10) : x;

				if (came[y]) {
					freed[y] = 1;
					bl_seq_free(&s, b + y);
				}
			}
			/* Some are given up: everything more than half a window back is free. */
			if (low > BL_SEQ_WINDOW / 2) {
				uint32_t y;

				for (y = s.done - b; y < low - BL_SEQ_WINDOW / 2; y++) {
					freed[y] = 1;
					bl_seq_free(&s, b + y);
				}
			}
			assert_int_equal(s.next, b + top);
			for (x = s.done - b; x < top; x++)
				if (!freed[x])
					break;
			assert_int_equal(s.done, b + x);
		}
	}
}

/* ---- timeouts ---- */

static void bl_rto_due__edges(void **state)
{
	struct bl_rto r = { 0 };
	const struct {
		uint64_t srtt, var;
		uint32_t tries, doubled;
		uint64_t want;
	} t[] = {
		{ 0, 0, 1, 0, BL_RTX_FIRST_NS },
		{ 0, 0, 2, 0, 2 * BL_RTX_FIRST_NS },
		{ 0, 0, 1, 2, 4 * BL_RTX_FIRST_NS },
		{ 31000, 13250, 1, 0, BL_RTX_MIN_NS },
		{ 31000, 13250, 2, 0, 2 * BL_RTX_MIN_NS },
		{ 31000, 13250, 2, 1, 2 * BL_RTX_MIN_NS },
		{ 31000, 13250, 2, 2, 4 * BL_RTX_MIN_NS },
		{ 31000, 13250, 3, 1, 4 * BL_RTX_MIN_NS },
		{ 31000, 13250, 8, 0, 128 * BL_RTX_MIN_NS },
		{ 31000, 13250, 9, 0, BL_RTX_MAX_NS },
		{ 31000, 13250, 1, 8, BL_RTX_MAX_NS },
		{ 31000, 13250, 4000000000u, 0, BL_RTX_MAX_NS },
		{ 600000, 99999, 1, 0, BL_RTX_MIN_NS },
		{ 600000, 100000, 1, 0, BL_RTX_MIN_NS },
		{ 600000, 100001, 1, 0, 1000004 },
		/* A measured time is never cut, except by this limit. */
		{ 1000000000ULL, 0, 1, 0, 1000000000ULL },
		{ 1000000000ULL, 0, 5, 3, 1000000000ULL },
		{ 5000000000ULL, 0, 1, 0, BL_RTX_SLOW_NS },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		r = (struct bl_rto){ .srtt_ns = t[i].srtt,
				     .var_ns = t[i].var,
				     .doubled = t[i].doubled };
		assert_int_equal(bl_rto_due(&r, 0, t[i].tries), t[i].want);
	}
}

static void bl_rto_sample__the_example_of_the_header(void **state)
{
	struct bl_rto r = { 0 };

	(void)state;
	bl_rto_sample(&r, 1000, 31000);
	assert_int_equal(r.srtt_ns, 30000);
	assert_int_equal(r.var_ns, 15000);
	bl_rto_sample(&r, 40000, 78000);
	assert_int_equal(r.var_ns, 13250);
	assert_int_equal(r.srtt_ns, 31000);
	/* Shorter round trips count as much. */
	bl_rto_sample(&r, 80000, 103000);
	assert_int_equal(r.var_ns, 13250 - 3312 + 2000);
	assert_int_equal(r.srtt_ns, 30000);
}

/* The estimate follows its samples, and never becomes "nothing measured" again. */
static void bl_rto_sample__follows(void **state)
{
	struct bl_rto r = { 0 };
	int i;

	(void)state;
	for (i = 0; i < 200; i++)
		bl_rto_sample(&r, (uint64_t)i * 8000000, (uint64_t)(i + 1) * 8000000);
	assert_in_range(r.srtt_ns, 7999000, 8000000);
	assert_true(r.var_ns < 100);
	assert_in_range(bl_rto_due(&r, 0, 1), 7999000, 8001000);
	for (i = 0; i < 200; i++)
		bl_rto_sample(&r, 2000000000, 2000000000);
	assert_in_range(r.srtt_ns, 1, 100);
	assert_int_equal(bl_rto_due(&r, 0, 1), BL_RTX_MIN_NS);
}

/*
 * Only one of the frames that are outstanding together is measured: the others have the same round
 * trip.
 */
static void bl_rto_sample__one_at_a_time(void **state)
{
	struct bl_rto r = { 0 };

	(void)state;
	bl_rto_sample(&r, 1000, 31000);
	bl_rto_sample(&r, 1000, 99000);
	bl_rto_sample(&r, 30999, 99000);
	assert_int_equal(r.srtt_ns, 30000);
	assert_int_equal(r.measured_ns, 31000);
	bl_rto_sample(&r, 31000, 30999); /* clocks of two CPUs */
	assert_int_equal(r.srtt_ns, 30000);
	bl_rto_sample(&r, 31000, 69000);
	assert_int_equal(r.srtt_ns, 31000);
	assert_int_equal(r.measured_ns, 69000);
}

/*
 * A timeout that was too short for one frame is not tried on the next one, until there is a
 * measurement.
 */
/*
 * A link with a queue of 3 s: every frame is sent again before its ACK can come, so nothing is
 * measured.
 */
static void bl_rto_slow__doubles_on(void **state)
{
	const uint64_t S = 1000000000ULL;
	struct bl_rto r = { 0 };
	int i;

	(void)state;
	bl_rto_late(&r, 30);
	assert_int_equal(bl_rto_due(&r, 0, 1), BL_RTX_MAX_NS);
	bl_rto_slow(&r, 10 * S, 13 * S);
	assert_int_equal(bl_rto_due(&r, 0, 1), 3 * S);
	bl_rto_slow(&r, 10 * S, 9 * S); /* clocks of two CPUs */
	bl_rto_slow(&r, 10 * S, 30 * S);
	assert_int_equal(bl_rto_due(&r, 0, 1), BL_RTX_SLOW_NS);
	/* This does not delay the first try to a destination that answers. */
	r = (struct bl_rto){ 0 };
	bl_rto_slow(&r, 10 * S, 13 * S);
	assert_int_equal(bl_rto_due(&r, 0, 1), BL_RTX_FIRST_NS);
	/* Measured frames make it forget. */
	for (i = 0; i < 22; i++)
		bl_rto_sample(&r, 20 * S + (uint64_t)i * 1000000,
			      20 * S + (uint64_t)i * 1000000 + 100000);
	bl_rto_late(&r, 30);
	assert_int_equal(bl_rto_due(&r, 0, 1), BL_RTX_MAX_NS);
}

static void bl_rto_late__stays(void **state)
{
	struct bl_rto r = { .srtt_ns = 31000, .var_ns = 13250, .measured_ns = 1000 };

	(void)state;
	bl_rto_late(&r, 1);
	assert_int_equal(bl_rto_due(&r, 0, 1), 2 * BL_RTX_MIN_NS);
	bl_rto_late(&r, 3);
	bl_rto_late(&r, 2);
	assert_int_equal(bl_rto_due(&r, 0, 1), 8 * BL_RTX_MIN_NS);
	bl_rto_sample(&r, 999, 2000); /* sent before the last measurement: not counted */
	assert_int_equal(bl_rto_due(&r, 0, 1), 8 * BL_RTX_MIN_NS);
	bl_rto_sample(&r, 1000, 2000);
	assert_int_equal(bl_rto_due(&r, 0, 1), BL_RTX_MIN_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_seq_add__the_example_of_the_header),
		cmocka_unit_test(bl_seq_seen__edges),
		cmocka_unit_test(bl_seq_free__edges),
		cmocka_unit_test(bl_seq__random_against_a_list),
		cmocka_unit_test(bl_rto_due__edges),
		cmocka_unit_test(bl_rto_slow__doubles_on),
		cmocka_unit_test(bl_rto_sample__the_example_of_the_header),
		cmocka_unit_test(bl_rto_sample__follows),
		cmocka_unit_test(bl_rto_sample__one_at_a_time),
		cmocka_unit_test(bl_rto_late__stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
