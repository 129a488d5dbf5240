// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/clock_core.h: 48 bits to 64 and back, segments of bus time, and the daemon's steering, with
 * injected time only.
 *
 * The steering tests simulate the daemon: measure, bl_clock_steer(), bl_clock_append(), and the
 * same again a quarter of a second later. What readers see while the record is written is the
 * subject of test_clock_store.c.
 */
#include "tests/unit/unit.h"

#include "core/clock_core.h"

#define SEC 1000000000ULL
#define NOW 1764000000000000000ULL /* a bus time of 2025 */

static void bl_ext48__edges(void **state)
{
	const uint64_t half = 1ULL << 47, full = 1ULL << 48;
	static const uint64_t refs[] = { NOW, 1ULL << 48, (7ULL << 48) + 1, (7ULL << 48) - 1,
					 (9ULL << 48) + (1ULL << 47) };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(refs); i++) {
		uint64_t ref = refs[i];
		const struct {
			uint64_t value;
			uint64_t want;
		} t[] = {
			{ ref, ref },
			{ ref + 1, ref + 1 },
			{ ref - 1, ref - 1 },
			{ ref + half - 1, ref + half - 1 },
			/*
			 * Equally far in both directions: the past is the safer result, since it
			 * promises nothing.
			 */
			{ ref + half, ref - half },
			{ ref + half + 1, ref - half + 1 },
			{ ref - half, ref - half },
			{ ref - half + 1, ref - half + 1 },
			{ ref - half - 1, ref + half - 1 },
			{ ref + full, ref },
			{ ref - full + 5, ref + 5 },
		};
		size_t k;

		for (k = 0; k < ARRAY_SIZE(t); k++)
			assert_int_equal(bl_ext48(t[k].value & BL_TS_MASK, ref), t[k].want);
	}
}

static void bl_ext48__order_survives_the_wrap(void **state)
{
	struct rnd r = rnd_seeded("wrap");
	int i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		uint64_t ref =
			((rnd64(&r) & 0xfff) << 48) + (1ULL << 50) + (rnd64(&r) & 0xffff) - 0x8000;
		uint64_t a = ref + (rnd64(&r) & (BL_TS_MASK >> 2)) - (BL_TS_MASK >> 3),
			 b = a + 1 + rnd_below(&r, 1000);

		assert_int_equal(bl_ext48(a & BL_TS_MASK, ref), a);
		assert_true(bl_ext48(a & BL_TS_MASK, ref) < bl_ext48(b & BL_TS_MASK, ref));
	}
}

static void bl_ext48__an_old_barrier_is_old(void **state)
{
	(void)state;
	/*
	 * What a switch sends before any input has joined must be behind every clock of the rack.
	 */
	assert_int_equal(bl_ext48((NOW - BL_TS_OLD) & BL_TS_MASK, NOW), NOW - BL_TS_OLD);
	assert_int_equal(bl_ext48((NOW - BL_TS_OLD) & BL_TS_MASK, NOW + 3600 * SEC),
			 NOW - BL_TS_OLD);
}

static void bl_seg_at__table(void **state)
{
	const struct {
		int32_t rate;
		int64_t d;
		int64_t want; /* relative to the start of the segment */
	} t[] = {
		{ 0, 0, 0 },
		{ 0, 1000, 1000 },
		{ 0, -1000, -1000 },
		{ (1 << 30) / 1000, 1000, 1000 }, /* 0.99...: not yet a whole nanosecond */
		{ (1 << 30) / 1000, 1001, 1002 },
		{ (1 << 30) / 1000, 1000000, 1000999 },
		{ -((1 << 30) / 1000), 1000000, 999000 },
		{ 1, 1 << 30, (1 << 30) + 1 },
		{ 1, (1 << 30) - 1, (1 << 30) - 1 },
		{ -1, 1, 0 },
		{ BL_CLOCK_RATE_MAX, 1000000000, 1000500000 },
		{ -BL_CLOCK_RATE_MAX, 1000000000, 999500000 },
		{ BL_CLOCK_RATE_MAX, -1000000000, -1000500000 },
		{ BL_CLOCK_RATE_MAX, 1LL << 43, (1LL << 43) + (536871LL << 13) },
		{ -BL_CLOCK_RATE_MAX, 1LL << 43, (1LL << 43) - (536871LL << 13) },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		const struct bl_clock_seg s = { .mono_ns = 77 * SEC,
						.bus_ns = NOW,
						.rate = t[i].rate };
		int64_t got = (int64_t)(bl_seg_at(&s, 77 * SEC + (uint64_t)t[i].d) - NOW);

		/*
		 * 500 ppm in units of 2^-30 is 536870.9: rounding costs a nanosecond in a second.
		 */
		if (llabs(got - t[i].want) > (llabs(t[i].rate) == BL_CLOCK_RATE_MAX ? 1 : 0))
			fail_msg("rate %d, %lld ns: got %lld, want %lld", t[i].rate,
				 (long long)t[i].d, (long long)got, (long long)t[i].want);
	}
}

static void bl_clock_at__changes_over_at_the_newer_piece(void **state)
{
	struct bl_clock c = { 0 };

	(void)state;
	c.seg[0] = (struct bl_clock_seg){ .mono_ns = 1000, .bus_ns = NOW, .rate = 0 };
	c.seg[1] = (struct bl_clock_seg){ .mono_ns = 2000, .bus_ns = NOW + 1000, .rate = 1 << 19 };
	assert_int_equal(bl_clock_at(&c, 1000), NOW);
	assert_int_equal(bl_clock_at(&c, 1999), NOW + 999);
	assert_int_equal(bl_clock_at(&c, 2000), NOW + 1000);
	assert_int_equal(bl_clock_at(&c, 2000 + (1 << 20)), NOW + 1000 + (1 << 20) + (1 << 9));
	/* Before the older segment, it is extended backwards. */
	assert_int_equal(bl_clock_at(&c, 999), NOW - 1);
	/* The daemon died while it wrote: readers use the segments as they are. */
	c.seq = 7;
	assert_int_equal(bl_clock_at(&c, 1999), NOW + 999);
}

static void bl_clock_start__both_pieces_hold(void **state)
{
	struct bl_clock c;

	(void)state;
	memset(&c, 0, sizeof(c));
	bl_clock_start(&c, 5 * SEC, NOW);
	assert_int_equal(bl_clock_at(&c, 5 * SEC), NOW);
	assert_int_equal(bl_clock_at(&c, 6 * SEC), NOW + SEC);
	assert_int_equal(c.seg[0].rate, 0);
	assert_memory_equal(&c.seg[0], &c.seg[1], sizeof(c.seg[0]));
}

static void bl_clock_usable__edges(void **state)
{
	struct bl_clock c = { .flags = BL_CLOCK_VALID, .void_after_ns = 100 };

	(void)state;
	assert_true(bl_clock_usable(&c, 0));
	assert_true(bl_clock_usable(&c, 99));
	assert_false(bl_clock_usable(&c, 100));
	assert_false(bl_clock_usable(&c, 101));
	c.flags = 0;
	assert_false(bl_clock_usable(&c, 99));
	c.flags = ~BL_CLOCK_VALID;
	assert_false(bl_clock_usable(&c, 99));
}

static void bl_clock_bound__grows_with_age(void **state)
{
	const struct bl_clock c = { .as_of_ns = 10 * SEC, .bound_ns = 500, .drift_ppb = 100000 };
	uint64_t k;

	(void)state;
	assert_int_equal(bl_clock_bound(&c, 0), 500);
	assert_int_equal(bl_clock_bound(&c, 10 * SEC), 500);
	assert_int_equal(bl_clock_bound(&c, 10 * SEC + 1023), 500);
	for (k = 1; k < 1000; k += 7) {
		uint64_t exact = 500 + k * SEC / 10 * 100000 / 1000000000,
			 got = bl_clock_bound(&c, 10 * SEC + k * SEC / 10);

		/* At most 1 ppm and one rounding below the exact product. */
		assert_true(got <= exact);
		assert_true(exact - got <= 1 + exact / 1000000);
	}
	/* No overflow in an hour at the largest plausible drift. */
	{
		const struct bl_clock w = { .bound_ns = 0, .drift_ppb = 1000000000 };

		assert_in_range(bl_clock_bound(&w, 3600 * SEC), 3599 * SEC, 3600 * SEC);
	}
}

static void bl_clock_steer__limits_and_signs(void **state)
{
	const struct {
		int64_t error;  /* bus - true */
		int32_t lo, hi; /* rate */
	} t[] = {
		{ 0, 0, 0 },
		{ 1, -1, 0 },
		{ -1, 0, 1 },
		{ 1000, -1100, -1000 },
		{ -1000, 1000, 1100 },
		{ 1023, -1100, -1000 },
		{ 1024, -1100, -1000 },
		{ -1023, 1000, 1100 },
		{ -1024, 1000, 1100 },
		{ -1025, 1000, 1101 },
		{ 400000, -429497, -428000 },
		{ -400000, 428000, 429497 },
		{ 501000, -BL_CLOCK_RATE_MAX, -BL_CLOCK_RATE_MAX },
		{ -502000, BL_CLOCK_RATE_MAX, BL_CLOCK_RATE_MAX },
		{ 1LL << 40, -BL_CLOCK_RATE_MAX, -BL_CLOCK_RATE_MAX },
		{ -(1LL << 40), BL_CLOCK_RATE_MAX, BL_CLOCK_RATE_MAX },
		{ 1LL << 62, -BL_CLOCK_RATE_MAX, -BL_CLOCK_RATE_MAX },
		{ -(1LL << 62), BL_CLOCK_RATE_MAX, BL_CLOCK_RATE_MAX },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_clock_seg next = { .reserved = 9 };
		struct bl_clock c = { 0 };

		bl_clock_start(&c, 100 * SEC, NOW);
		assert_int_equal(bl_clock_steer(&c, 101 * SEC, NOW + SEC - (uint64_t)t[i].error,
						SEC, &next),
				 t[i].error);
		if (next.rate < t[i].lo || next.rate > t[i].hi)
			fail_msg("error %lld ns: rate %d, not in %d..%d", (long long)t[i].error,
				 next.rate, t[i].lo, t[i].hi);
		assert_int_equal(next.mono_ns, 101 * SEC + BL_CLOCK_LEAD_NS);
		/* The segment continues the one before it. */
		assert_int_equal(next.bus_ns, NOW + SEC + BL_CLOCK_LEAD_NS);
		assert_int_equal(next.reserved, 0);
	}
	/* An error that is corrected within less than a microsecond must not divide by zero. */
	{
		struct bl_clock_seg next;
		struct bl_clock c = { 0 };

		bl_clock_start(&c, 0, NOW);
		bl_clock_steer(&c, 0, NOW + 1, 0, &next);
		assert_int_equal(next.rate, BL_CLOCK_RATE_MAX);
		bl_clock_steer(&c, 0, NOW + 1, 1023, &next);
		assert_int_equal(next.rate, BL_CLOCK_RATE_MAX);
	}
}

/*
 * A small error must not be answered with a larger one in the opposite direction: after the
 * correction time only rounding is left.
 */
static void bl_clock_steer__does_not_overshoot(void **state)
{
	int64_t e;

	(void)state;
	for (e = -3000; e <= 3000; e++) {
		struct bl_clock_seg next;
		struct bl_clock c = { 0 };
		int64_t left;

		bl_clock_start(&c, 0, NOW);
		bl_clock_steer(&c, 0, NOW - (uint64_t)e, 2 * SEC, &next);
		bl_clock_append(&c, 0, &next);
		left = (int64_t)(bl_clock_at(&c, BL_CLOCK_LEAD_NS + 2 * SEC) -
				 (NOW + BL_CLOCK_LEAD_NS + 2 * SEC)) +
		       e;
		/* One unit of the rate is 1.9 ns in that time, and times are whole nanoseconds. */
		if (llabs(left) > 3)
			fail_msg("an error of %lld ns became %lld ns", (long long)e,
				 (long long)left);
	}
}

struct sim {
	struct bl_clock c;
	uint64_t mono, bus; /* last reading */
	uint64_t start;
	double ppm;   /* drift of true time against CLOCK_MONOTONIC */
	int64_t step; /* added to true time */
};

static uint64_t true_time(const struct sim *s, uint64_t mono)
{
	return NOW + (mono - s->start) +
	       (uint64_t)(int64_t)((double)(mono - s->start) * s->ppm * 1e-6) + (uint64_t)s->step;
}

/* Reads the clock for a quarter of a second, then measures and steers. */
static int64_t steer_turn(struct sim *s, struct rnd *r, int64_t noise)
{
	uint64_t until = s->mono + SEC / 4;
	struct bl_clock_seg next;
	int64_t error;

	while (s->mono < until) {
		uint64_t bus;

		s->mono += 1 + rnd_below(r, 4000000);
		bus = bl_clock_at(&s->c, s->mono);
		assert_true(bus >= s->bus);
		s->bus = bus;
	}
	error = bl_clock_steer(&s->c, s->mono, true_time(s, s->mono) + (uint64_t)noise, 2 * SEC,
			       &next);
	bl_clock_append(&s->c, s->mono, &next);
	/* At the seam, nanosecond by nanosecond. */
	for (uint64_t m = next.mono_ns - 20; m < next.mono_ns + 20; m++) {
		uint64_t bus = bl_clock_at(&s->c, m), then = bl_clock_at(&s->c, m + 1);

		assert_true(then >= bus);
		assert_true(then - bus <= 2);
	}
	return error;
}

static void bl_clock_steer__converges_and_never_goes_back(void **state)
{
	static const double ppms[] = { 0, 1, -1, 20, -20, 100, -100, 400, -400 };
	static const int64_t steps[] = { 0,       100,      -100,    5000,    -5000,
					 1000000, -1000000, 3000000, -3000000 };
	struct rnd r = rnd_seeded("steer");
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ppms); i++) {
		for (k = 0; k < ARRAY_SIZE(steps); k++) {
			struct sim s = { .mono = 1000 * SEC,
					 .start = 1000 * SEC,
					 .ppm = ppms[i],
					 .step = steps[k] };
			int64_t error = 0, steady = (int64_t)(-ppms[i] * 2000);
			int n;

			bl_clock_start(&s.c, s.mono, NOW);
			s.bus = NOW;
			/*
			 * 3 ms, at the rate that 500 ppm leaves beside the drift, take at most 30
			 * s; then four time constants.
			 */
			for (n = 0; n < 4 * 60; n++)
				error = steer_turn(&s, &r, 0);
			/* Proportional control settles where the correction equals the drift. */
			if (llabs(error - steady) > 10)
				fail_msg("%g ppm, step %lld ns: error %lld ns after a minute, "
					 "steady would be %lld",
					 ppms[i], (long long)steps[k], (long long)error,
					 (long long)steady);
		}
	}
}

static void bl_clock_steer__stays_at_rest_without_error(void **state)
{
	struct sim s = { .mono = 1000 * SEC, .start = 1000 * SEC };
	struct rnd r = rnd_seeded("rest");
	int n;

	(void)state;
	bl_clock_start(&s.c, s.mono, NOW);
	s.bus = NOW;
	/*
	 * Measurements that are wrong by up to 100 ns must not make the clock wander further than
	 * that.
	 */
	for (n = 0; n < 400; n++) {
		int64_t noise = (int64_t)rnd_below(&r, 201) - 100, real;

		steer_turn(&s, &r, noise);
		real = (int64_t)(bl_clock_at(&s.c, s.mono) - true_time(&s, s.mono));
		if (llabs(real) > 110)
			fail_msg("turn %d: bus time is off by %lld ns", n, (long long)real);
	}
}

/* A segment that has not begun is replaced, and the one in force stays. */
static void bl_clock_append__continues_what_is_in_force(void **state)
{
	const struct bl_clock_seg a = { .mono_ns = 5 * SEC, .bus_ns = NOW, .rate = 100 },
				  b = { .mono_ns = 6 * SEC, .bus_ns = NOW + SEC, .rate = 200 },
				  next = { .mono_ns = 7 * SEC, .bus_ns = NOW + 2 * SEC };
	static const struct {
		uint64_t mono;
		int kept; /* which of the two becomes the older one */
	} t[] = { { 6 * SEC - 1, 0 }, { 6 * SEC, 1 }, { 6 * SEC + 1, 1 } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_clock c = { .seg = { a, b } };

		bl_clock_append(&c, t[i].mono, &next);
		assert_memory_equal(&c.seg[0], t[i].kept ? &b : &a, sizeof(a));
		assert_memory_equal(&c.seg[1], &next, sizeof(next));
	}
}

/* The daemon was killed while it wrote: the segment that is marked is not complete. */
static void bl_clock_whole__keeps_what_is_complete(void **state)
{
	const struct bl_clock_seg whole = { .mono_ns = 5 * SEC, .bus_ns = NOW, .rate = 100 },
				  half = { .mono_ns = BL_CLOCK_UNWRITTEN, .bus_ns = 1 };
	size_t k;

	(void)state;
	for (k = 0; k < 2; k++) {
		struct bl_clock c = { .seq = 7 };

		c.seg[k] = half;
		c.seg[!k] = whole;
		bl_clock_whole(&c);
		assert_memory_equal(&c.seg[0], &whole, sizeof(whole));
		assert_memory_equal(&c.seg[1], &whole, sizeof(whole));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_ext48__edges),
		cmocka_unit_test(bl_ext48__order_survives_the_wrap),
		cmocka_unit_test(bl_ext48__an_old_barrier_is_old),
		cmocka_unit_test(bl_seg_at__table),
		cmocka_unit_test(bl_clock_at__changes_over_at_the_newer_piece),
		cmocka_unit_test(bl_clock_start__both_pieces_hold),
		cmocka_unit_test(bl_clock_usable__edges),
		cmocka_unit_test(bl_clock_bound__grows_with_age),
		cmocka_unit_test(bl_clock_steer__limits_and_signs),
		cmocka_unit_test(bl_clock_steer__does_not_overshoot),
		cmocka_unit_test(bl_clock_steer__converges_and_never_goes_back),
		cmocka_unit_test(bl_clock_append__continues_what_is_in_force),
		cmocka_unit_test(bl_clock_whole__keeps_what_is_complete),
		cmocka_unit_test(bl_clock_steer__stays_at_rest_without_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
