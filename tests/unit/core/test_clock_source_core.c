// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is believed of a system clock (core/clock_source_core.h): the worked example, edges, and
 * random clocks that drift, are stepped and lose their source, whose error is never above the
 * bound.
 */
#include "tests/unit/unit.h"
#include "core/clock_source_core.h"

#define SEC   1000000000ULL
#define MS    1000000LL
#define DRIFT 100000 /* ppb */

static void bl_kernel_was_set__edges(void **state)
{
	/* the readings were this long after the beginning of a second of the clock */
	static const struct {
		uint64_t was, now, took_us;
		uint32_t from_us;
		int set;
	} t[] = {
		{ 1000, 1000, 250000, 100000, 0 },
		{ 1000, 1500, 250000, 100000, 0 },
		{ 1000, 999, 250000, 100000, 1 },
		{ 1000, 1001, 250000, 100000, 1 },
		{ 1000, 1499, 250000, 100000, 1 },
		{ 1000, 1501, 250000, 100000, 1 },
		{ 1000, 2000, 250000, 100000, 1 },
		{ 1000, 2000, 1000000, 100000, 0 },
		{ 1000, 2500, 1000000, 100000, 1 },
		{ 16000000, 0, 250000, 100000, 1 },
		{ 0, 16000000, 250000, 100000, 1 },
		/* a second has begun, and nothing was added, or too little */
		{ 0, 0, 250000, 749999, 0 },
		{ 0, 0, 250000, 770000, 1 },
		{ 0, 500, 250000, 770000, 0 },
		{ 0, 0, 250000, 900000, 1 },
		{ 1000, 1000, 10000000, 100000, 1 },
		{ 1000, 5500, 10000000, 100000, 1 },
		{ 1000, 6000, 10000000, 100000, 0 },
	};
	/* the clock was stepped, so that its seconds mean nothing */
	struct bl_kernel_reading was = { .mono_ns = SEC, .second = 5, .us = 100000 },
				 now = { .mono_ns = SEC + SEC / 4, .second = 8, .us = 350000 };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_kernel_reading a = { .mono_ns = SEC,
					       .error_us = t[k].was,
					       .second = 100,
					       .us = t[k].from_us },
					 b = { .mono_ns = SEC + t[k].took_us * 1000,
					       .error_us = t[k].now,
					       .second = 100 +
							 (int64_t)(t[k].from_us + t[k].took_us) /
								 1000000,
					       .us = (uint32_t)((t[k].from_us + t[k].took_us) %
								1000000) };

		assert_int_equal(bl_kernel_was_set(&a, &b), t[k].set);
	}
	assert_int_equal(bl_kernel_was_set(&was, &now), 0);
	now.second = 2;
	assert_int_equal(bl_kernel_was_set(&was, &now), 0);
	now.second = 5;
	assert_int_equal(bl_kernel_was_set(&was, &now), 0);
	/* one began twice, when the clock was set back by a millisecond */
	now.us = 349000;
	now.error_us = 1000;
	assert_int_equal(bl_kernel_was_set(&was, &now), 0);
	now.error_us = 1500;
	assert_int_equal(bl_kernel_was_set(&was, &now), 1);
}

static void bl_clock_hold_bound__example(void **state)
{
	struct bl_clock_sample good = { .synced = 1, .bound_ns = 200000 };
	struct bl_clock_hold h = {};

	(void)state;
	assert_true(bl_clock_hold_bound(&h, SEC, DRIFT) == BL_CLOCK_BOUND_MAX_NS);
	bl_clock_hold_read(&h, &good, 2 * SEC, 5, 0); /* spoken a second ago */
	assert_in_range(bl_clock_hold_bound(&h, SEC, DRIFT), 200000, 200001);
	assert_in_range(bl_clock_hold_bound(&h, 11 * SEC, DRIFT), 1200000, 1200010);
	/* A word that is not fresh renews nothing, and neither does one of a clock out of sync. */
	bl_clock_hold_read(&h, &good, 12 * SEC, 5, 0);
	bl_clock_hold_read(&h, &(struct bl_clock_sample){ .fresh = 1 }, 13 * SEC, 5, 0);
	assert_int_equal(h.as_of_ns, SEC);
	/* A source that says how fast the error may grow is believed, unless that is too good. */
	good.fresh = 1;
	good.drift_ppb = 5 * DRIFT;
	bl_clock_hold_read(&h, &good, 14 * SEC, 5, 0);
	assert_in_range(bl_clock_hold_bound(&h, 23 * SEC, DRIFT), 5200000, 5200050);
	good.drift_ppb = DRIFT / 5;
	bl_clock_hold_read(&h, &good, 24 * SEC, 5, 0);
	assert_in_range(bl_clock_hold_bound(&h, 24 * SEC, DRIFT), 1200000, 1200050);
}

/* The bound ends at its maximum, whatever is held, and does not wrap. */
static void bl_clock_hold_bound__ends(void **state)
{
	static const uint64_t held[] = { 0, BL_CLOCK_BOUND_MAX_NS - 1, BL_CLOCK_BOUND_MAX_NS,
					 UINT64_MAX };
	size_t k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(held); k++) {
		struct bl_clock_hold h = { .ever = 1, .bound_ns = held[k], .as_of_ns = 1 };

		assert_true(bl_clock_hold_bound(&h, UINT64_MAX, UINT32_MAX) ==
			    BL_CLOCK_BOUND_MAX_NS);
		assert_true(bl_clock_hold_bound(&h, 1ULL << 41, UINT32_MAX) ==
			    BL_CLOCK_BOUND_MAX_NS);
	}
}

/*
 * A keeper that goes on has the doubts of the one before, for ten minutes at the most, and doubts a
 * step since, if it is greater than the errors of both readings.
 */
static void bl_clock_hold_inherit__edges(void **state)
{
	static const struct {
		uint64_t stepped_ns; /* 0: there was no doubt */
		int64_t step;        /* since then, with errors of 30 + 70 ns */
		int doubted;
		uint64_t since_ns;
	} t[] = {
		{ 0, 0, 0, 0 },
		{ 0, 100, 0, 0 },
		{ 0, -100, 0, 0 },
		{ 0, 101, 1, 1000 * SEC },
		{ 0, -101, 1, 1000 * SEC },
		{ 0, INT64_MAX, 1, 1000 * SEC },
		{ 990 * SEC, 0, 1, 990 * SEC },
		{ 900 * SEC, 100, 1, 900 * SEC },
		{ 400 * SEC + 1, 0, 1, 400 * SEC + 1 },
		{ 400 * SEC, 0, 0, 0 },
		{ 400 * SEC, 101, 1, 1000 * SEC },
	};
	const struct bl_clock_hold none = { .last_offset_ns = 7, .doubt_ns = 990 * SEC };
	struct bl_clock c = { .as_of_ns = 990 * SEC, .bound_ns = 5000, .drift_ppb = DRIFT };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_clock_hold last = { .last_offset_ns = -5,
					      .doubted = !!t[k].stepped_ns,
					      .doubt_ns = t[k].stepped_ns };
		struct bl_clock_hold h = {};

		bl_clock_hold_leave(&last, &c, 70);
		bl_clock_hold_inherit(&h, &c, 1000 * SEC, 40, -5 + t[k].step, 30);
		assert_true(h.ever && h.offset_ns == 40 && h.as_of_ns == 1000 * SEC);
		assert_in_range(h.bound_ns, 1005000, 1005010); /* it has grown for 10 s */
		assert_int_equal(h.doubted, t[k].doubted);
		if (!h.doubted)
			continue;
		assert_true(h.doubt_ns == t[k].since_ns && !h.doubt_words);
		assert_true(h.old_offset_ns == 40 && h.old_bound_ns == h.bound_ns);
	}
	bl_clock_hold_leave(&none, &c, 9);
	assert_true(c.system_ns == 7 && !c.system_stepped_ns && c.system_error_ns == 9);
}

/* A word is held from the reading before; a step between the two is added to it. */
static void bl_clock_hold_read__step_with_a_word(void **state)
{
	const struct bl_clock_sample s = { .synced = 1, .fresh = 1, .bound_ns = 1000 };
	static const int64_t step[] = { 0, 10, -10, 11, -11, MS, -MS };
	size_t k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(step); k++) {
		struct bl_clock_hold h = {};
		uint64_t all = (uint64_t)llabs(step[k]);

		bl_clock_hold_read(&h, &s, SEC, 77, 10);
		bl_clock_hold_read(&h, &s, 2 * SEC, 77 + step[k], 10);
		assert_int_equal(h.bound_ns, 1000 + (all > 10 ? all : 0));
		assert_int_equal(h.as_of_ns, SEC);
		assert_int_equal(h.offset_ns, 77 + step[k]);
	}
}

/*
 * A late word is held from the reading before the last one, and all steps since then count. Without
 * that reading it is no word.
 */
static void bl_clock_hold_read__late(void **state)
{
	static const struct {
		int64_t before, last, now;
		int late;
		uint64_t bound, as_of;
	} t[] = {
		{ 0, 0, 0, 1, 1000, SEC },       { 100, 0, 0, 1, 1100, SEC },
		{ 0, 100, 0, 1, 1100, SEC },     { 0, 0, -100, 1, 1100, SEC },
		{ -50, 50, 0, 1, 1100, SEC },    { 0, 10, 5, 1, 1000, SEC },
		{ 100, 0, 0, 0, 1000, 2 * SEC },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		const struct bl_clock_sample s = {
			.synced = 1, .fresh = 1, .late = t[k].late, .bound_ns = 1000
		};
		struct bl_clock_hold h = {};

		bl_clock_hold_read(&h, &(struct bl_clock_sample){}, SEC, t[k].before, 10);
		bl_clock_hold_read(&h, &(struct bl_clock_sample){}, 2 * SEC, t[k].last, 10);
		bl_clock_hold_read(&h, &s, 3 * SEC, t[k].now, 10);
		assert_int_equal(h.ever, 1);
		assert_int_equal(h.bound_ns, t[k].bound);
		assert_int_equal(h.as_of_ns, t[k].as_of);
		assert_int_equal(h.offset_ns, t[k].now);
		/* without the first reading, and one that is not fresh */
		h = (struct bl_clock_hold){};
		bl_clock_hold_read(&h, &(struct bl_clock_sample){}, 2 * SEC, t[k].last, 10);
		bl_clock_hold_read(&h, &s, 3 * SEC, t[k].now, 10);
		assert_int_equal(h.ever, !t[k].late);
	}
}

/* The clock is stepped, and the source speaks @words times in the @after_ns since. */
static void bl_clock_hold_read__doubt(void **state)
{
	static const struct {
		int64_t step;
		unsigned int words;
		uint64_t after_ns, bound;
	} t[] = {
		{ 4 * MS, 1, SEC, 200000 + 4 * MS },
		{ -4 * MS, 1, SEC, 200000 + 4 * MS },
		{ 50000, 1, SEC, 300000 }, /* what is held before allows no more */
		{ 4 * MS, 100, BL_CLOCK_DOUBT_NS - 1, 200000 + 4 * MS },
		{ 4 * MS, BL_CLOCK_DOUBT_WORDS - 1, BL_CLOCK_DOUBT_NS, 200000 + 4 * MS },
		{ 4 * MS, BL_CLOCK_DOUBT_WORDS, BL_CLOCK_DOUBT_NS, 300000 },
		{ 4 * MS, 1, BL_CLOCK_DOUBT_MOST_NS - 1, 200000 + 4 * MS },
		{ 4 * MS, 1, BL_CLOCK_DOUBT_MOST_NS, 300000 },
		{ 1LL << 62, 1, SEC, BL_CLOCK_BOUND_MAX_NS },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		struct bl_clock_sample s = { .synced = 1, .fresh = 1, .bound_ns = 200000 };
		struct bl_clock_hold h = {};
		uint64_t mono = 10 * SEC, last;
		unsigned int i;

		bl_clock_hold_read(&h, &s, mono, 77, 10);
		s = (struct bl_clock_sample){};
		mono += SEC;
		bl_clock_hold_read(&h, &s, mono, 77 + t[k].step, 10);
		assert_int_equal(bl_clock_hold_bound(&h, mono, 0), 200000); /* not confirmed */
		s = (struct bl_clock_sample){ .synced = 1, .fresh = 1, .bound_ns = 300000 };
		for (i = 1; i < t[k].words; i++)
			bl_clock_hold_read(&h, &s, mono + i, 77 + t[k].step, 10);
		last = mono + t[k].after_ns;
		bl_clock_hold_read(&h, &s, last, 77 + t[k].step, 10);
		assert_int_equal(bl_clock_hold_bound(&h, last, 0), t[k].bound);
		assert_int_equal(h.offset_ns, 77 + t[k].step);
	}
}

/* Two offsets that are 2^64 - 1 apart: the sum must not wrap. */
static void bl_clock_hold_read__far_step(void **state)
{
	const struct bl_clock_sample s = { .synced = 1, .fresh = 1, .bound_ns = 200000 };
	struct bl_clock_hold h = {};

	(void)state;
	bl_clock_hold_read(&h, &s, SEC, INT64_MIN, 10);
	bl_clock_hold_read(&h, &(struct bl_clock_sample){}, 2 * SEC, INT64_MAX, 10);
	bl_clock_hold_read(&h, &s, 3 * SEC, INT64_MAX, 10);
	assert_true(bl_clock_hold_bound(&h, 3 * SEC, 0) == BL_CLOCK_BOUND_MAX_NS);
}

/* Of several steps in a row, the word before the first one is the one that holds. */
static void bl_clock_hold_read__steps_in_a_row(void **state)
{
	struct bl_clock_sample s = { .synced = 1, .fresh = 1, .bound_ns = 200000 };
	struct bl_clock_hold h = {};
	int64_t offset = 0;
	uint64_t mono = SEC;
	int k;

	(void)state;
	bl_clock_hold_read(&h, &s, mono, offset, 10);
	s.bound_ns = 1000; /* a lie from now on */
	for (k = 0; k < 5; k++) {
		offset += 2 * MS;
		bl_clock_hold_read(&h, &s, mono += BL_CLOCK_DOUBT_NS - 1, offset, 10);
		assert_int_equal(bl_clock_hold_bound(&h, mono, 0), 200000 + offset);
	}
	for (k = 0; k < BL_CLOCK_DOUBT_WORDS; k++)
		bl_clock_hold_read(&h, &s, mono += BL_CLOCK_DOUBT_NS, offset, 10);
	assert_int_equal(bl_clock_hold_bound(&h, mono, 0), 1000);
}

static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

/*
 * True time less CLOCK_MONOTONIC moves by up to DRIFT. The system clock is stepped at any moment,
 * by its source (which then speaks at once) or by a stranger (of whom the kernel says STA_UNSYNC,
 * or nothing). The source says truly how far off the clock is, except that it does not know for a
 * few words what a stranger has done. At each reading the error of what the node goes by is within
 * the bound.
 */
static void hold__random_clocks_are_within_the_bound(void **state)
{
	unsigned int run, i, words = 0, steps = 0, lies = 0;

	(void)state;
	for (run = 0; run < 400; run++) {
		struct bl_clock_hold h = {};
		int64_t truth = 0, clock = (int64_t)random_below(2 * MS) - MS, rate, err;
		uint64_t mono = SEC, took;
		int64_t unknown = 0; /* by how much strangers have moved the clock */
		int synced = 0, ignorant = 0;

		seed = run + 1;
		rate = (int64_t)random_below(2 * DRIFT + 1) - DRIFT;
		for (i = 0; i < 300; i++) {
			struct bl_clock_sample s = {};
			uint64_t what = random_below(40), part;

			took = 1 + random_below(SEC);
			part = random_below(took);
			if (!random_below(50))
				rate = (int64_t)random_below(2 * DRIFT + 1) - DRIFT;
			truth += (int64_t)part * rate / (int64_t)SEC;
			if (what < 2) { /* a stranger */
				int64_t by = (int64_t)random_below(20 * MS) - 10 * MS;

				clock += by;
				unknown = ignorant && synced ? unknown + by : by;
				ignorant = synced ? BL_CLOCK_DOUBT_WORDS : 0;
				synced = what ? synced : 0;
				steps++;
			}
			if ((what == 2 || what == 3) && !ignorant) /* the source steps the clock */
				clock = truth + (int64_t)random_below(100000) - 50000;
			if (what >= 2 && what < 6) { /* the source speaks */
				s.fresh = 1;
				s.bound_ns = (uint64_t)llabs(clock - truth);
				if (ignorant && h.ever) {
					ignorant--;
					s.bound_ns = (uint64_t)llabs(clock - unknown - truth);
					lies++;
				}
				synced = 1;
				words++;
			}
			if (what == 6)
				synced = 0;
			truth += (int64_t)(took - part) * rate / (int64_t)SEC;
			mono += took;
			s.synced = synced;
			if (!s.fresh && !h.ever)
				s.synced = 0;
			bl_clock_hold_read(&h, &s, mono, clock, 0);
			err = llabs(h.offset_ns - truth);
			assert_true((uint64_t)err <= bl_clock_hold_bound(&h, mono, DRIFT) + 1000);
		}
	}
	assert_true(words > 1000 && steps > 1000 && lies > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_kernel_was_set__edges),
		cmocka_unit_test(bl_clock_hold_bound__example),
		cmocka_unit_test(bl_clock_hold_bound__ends),
		cmocka_unit_test(bl_clock_hold_inherit__edges),
		cmocka_unit_test(bl_clock_hold_read__step_with_a_word),
		cmocka_unit_test(bl_clock_hold_read__late),
		cmocka_unit_test(bl_clock_hold_read__doubt),
		cmocka_unit_test(bl_clock_hold_read__far_step),
		cmocka_unit_test(bl_clock_hold_read__steps_in_a_row),
		cmocka_unit_test(hold__random_clocks_are_within_the_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
