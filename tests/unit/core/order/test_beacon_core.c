// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/order/beacon_core.h: which tick is served at which time, and which beacons are replaced by
 * data.
 */
#include "tests/unit/unit.h"

#include "core/order/beacon_core.h"

#define INTERVAL 100000ULL
#define SLOP     1000ULL

static void bl_beat_tick__edges(void **state)
{
	const uint64_t bus = 1700000000000000000ULL; /* a multiple of INTERVAL */
	const struct {
		uint64_t bus, interval, want;
	} t[] = {
		{ bus, INTERVAL, bus },
		{ bus + 1, INTERVAL, bus },
		{ bus + INTERVAL - SLOP - 1, INTERVAL, bus },
		{ bus + INTERVAL - SLOP, INTERVAL, bus + INTERVAL },
		{ bus + INTERVAL - SLOP + 1, INTERVAL, bus + INTERVAL },
		{ bus + INTERVAL - 1, INTERVAL, bus + INTERVAL },
		{ bus + INTERVAL, INTERVAL, bus + INTERVAL },
		{ 0, INTERVAL, 0 },
		{ SLOP, 1000, 2 * SLOP },
		/* The interval is shorter than the slop, so every time is a tick. */
		{ bus + 5, 1, bus + 5 + SLOP },
		{ bus + 999999, 1000000000, bus },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_beat_tick(t[i].bus, t[i].interval), t[i].want);
}

/*
 * Compares the whole result: whether a beacon is sent, which tick was served, and when the next one
 * is due. CLOCK_MONOTONIC and bus time have unrelated origins; only their difference matters.
 */
static void bl_beat_serve__ticks(void **state)
{
	const uint64_t bus = 1700000000000000000ULL, mono = 5000000000ULL;
	const struct {
		uint64_t last; /* the tick that was served last, relative to @bus */
		int64_t now;   /* bus time of the call, relative to @bus */
		int send;
		int64_t tick;  /* the tick that is served last afterwards, relative to @bus */
		uint64_t wait; /* from @mono to next_ns */
	} t[] = {
		/* The call comes 1 ns too early. */
		{ -INTERVAL, -(int64_t)SLOP - 1, 0, -(int64_t)INTERVAL, SLOP + 1 + 100 },
		/* The tick is within the slop. */
		{ -INTERVAL, -(int64_t)SLOP, 1, 0, INTERVAL + SLOP + 100 },
		{ -INTERVAL, -1, 1, 0, INTERVAL + 1 + 100 },
		{ -INTERVAL, 0, 1, 0, INTERVAL + 100 },
		{ -INTERVAL, 1, 1, 0, INTERVAL - 1 + 100 },
		/* The tick was served before. */
		{ 0, 1, 0, 0, INTERVAL - 1 + 100 },
		{ 0, (int64_t)(INTERVAL - SLOP) - 1, 0, 0, SLOP + 1 + 100 },
		{ 0, (int64_t)(INTERVAL - SLOP), 1, INTERVAL, INTERVAL + SLOP + 100 },
		/* The caller overslept: one beacon serves all the ticks that it missed. */
		{ 0, (int64_t)(3 * INTERVAL) + 40000, 1, 3 * INTERVAL, 60000 + 100 },
		{ 3 * INTERVAL, (int64_t)(3 * INTERVAL) + 40001, 0, 3 * INTERVAL, 59999 + 100 },
		/* The clock went back: no tick is served a second time. */
		{ 9 * INTERVAL, (int64_t)(3 * INTERVAL), 0, 9 * INTERVAL, INTERVAL + 100 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_beat b = { .interval_ns = INTERVAL,
				     .tick = bus + t[i].last,
				     .node_id = 3,
				     .psn = 7,
				     .sends = 50 },
			       want = b;

		assert_int_equal(bl_beat_serve(&b, mono, bus + (uint64_t)t[i].now, 51), t[i].send);
		want.tick = bus + (uint64_t)t[i].tick;
		want.next_ns = mono + t[i].wait;
		want.sends = t[i].send ? 51 : 50;
		assert_memory_equal(&b, &want, sizeof(b));
	}
}

/*
 * Four data sends since the last tick replace the beacon, except on one tick in four. Neighbouring
 * node ids get different exceptions.
 */
static void bl_beat_serve__data_stands_for_it(void **state)
{
	const struct {
		uint64_t sends;
		int busy;
	} t[] = { { 0, 0 }, { 3, 0 }, { 4, 1 }, { 5, 1 }, { 1000, 1 } };
	uint32_t node;
	uint64_t tick;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		for (node = 0; node < 5; node++) {
			for (tick = 8; tick < 16; tick++) {
				struct bl_beat b = { .interval_ns = INTERVAL,
						     .tick = (tick - 1) * INTERVAL,
						     .node_id = node,
						     .sends = 90 };

				assert_int_equal(bl_beat_serve(&b, 1, tick * INTERVAL,
							       90 + t[i].sends),
						 !t[i].busy || (tick + node) % 4 == 0);
				/* The tick counts as served whether a beacon was sent or not. */
				assert_int_equal(b.tick, tick * INTERVAL);
				assert_int_equal(b.sends, 90 + t[i].sends);
			}
		}
	}
}

/*
 * Calls at random times send one beacon for each tick that any call served, and next_ns is the
 * following tick plus the margin.
 */
static void bl_beat_serve__never_twice(void **state)
{
	struct bl_beat b = { .interval_ns = INTERVAL };
	struct rnd r = rnd_seeded("never_twice");
	uint64_t now = 123456789, last = 0, served = 0, ticks = 0;
	int i;

	(void)state;
	for (i = 0; i < 1000000; i++) {
		uint64_t tick = (now + SLOP) / INTERVAL;
		int sent = bl_beat_serve(&b, now + 77, now, 0);

		assert_int_equal(sent, tick != last);
		served += (uint64_t)sent;
		ticks += tick != last;
		last = tick;
		assert_int_equal(b.next_ns, (tick + 1) * INTERVAL + 77 + 100);
		now += rnd_below(&r, i % 100 ? 2000 : 5 * INTERVAL);
	}
	assert_true(served > 10000 && served == ticks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_beat_tick__edges),
		cmocka_unit_test(bl_beat_serve__ticks),
		cmocka_unit_test(bl_beat_serve__data_stands_for_it),
		cmocka_unit_test(bl_beat_serve__never_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
