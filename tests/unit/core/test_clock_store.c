// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The clock record while it is written: bl_clock_store() beside bl_clock_at() and bl_clock_bound().
 * The writer's stores are recorded once. The test then plays them back between the loads of a
 * reader, in every way in which the writer goes on at up to two of the reader's loads, and stands
 * still otherwise. So it finds every state in which an interrupted writer leaves the record, and
 * every one that changes under a reader.
 *
 * Example: the writer has made 5 stores and lost its CPU. A reader makes 2 loads, the writer makes
 * 3 more stores, and the reader makes its remaining loads.
 */
#include "tests/unit/unit.h"

#include "tests/unit/core/replay_hooks.h"

#include "core/clock_core.h"
#include "core/order/skew_core.h"

/* One store of the writer: at @at in the record. */
struct store {
	size_t at, size;
	uint64_t value;
};

#define STORES_MAX 96

static struct store stores[STORES_MAX];
static unsigned int nstores;
static void *written;         /* the record whose stores are recorded; NULL: none */
static void (*at_load)(void); /* NULL: loads are not watched */

static void at_store(const volatile void *p, size_t size, uint64_t value)
{
	if (!written)
		return;
	assert_true(nstores < STORES_MAX);
	stores[nstores++] =
		(struct store){ .at = (size_t)((const volatile char *)p - (const char *)written),
				.size = size,
				.value = value };
}

static void before_load(void)
{
	if (at_load)
		at_load();
}

#define SEC   1000000000ULL
#define NOW   1764000000000000000ULL
#define TICK  250000000ULL
#define BEGIN (77 * SEC) /* CLOCK_MONOTONIC of the first update */

static struct bl_clock first, shared; /* the record before the recorded stores, and during them */
static unsigned int done;             /* stores that are in @shared */

static void play(unsigned int upto)
{
	for (; done < upto; done++)
		memcpy((char *)&shared + stores[done].at, &stores[done].value, stores[done].size);
}

/** struct error - what an update says of the error. */
struct error {
	uint64_t bound, proven;
	uint32_t drift;
};

static const struct error usual = { 50000, 10000, 500000 }, other = { 60000, 0, 400000 };

/* One update at @mono: bus time is to gain @gain ns. */
static void update(struct bl_clock *own, uint64_t mono, int64_t gain, const struct error *e)
{
	struct bl_clock_seg next;
	uint64_t bus = bl_seg_at(bl_clock_seg(own, mono), mono);

	bl_clock_steer(own, mono, bus + (uint64_t)gain, 2 * SEC, &next);
	bl_clock_append(own, mono, &next);
	own->seq = (own->seq | 1) + 1;
	own->as_of_ns = mono;
	own->void_after_ns = mono + 10 * SEC;
	own->bound_ns = e->bound;
	own->proven_ns = e->proven;
	own->drift_ppb = e->drift;
	own->flags = BL_CLOCK_VALID;
}

/* What the updates at @mono[] store, after a first one at BEGIN. */
static void record_updates(const uint64_t *mono, unsigned int n, const struct error *e)
{
	struct bl_clock own = { 0 };
	unsigned int i;

	bl_clock_start(&own, BEGIN - SEC, NOW - SEC);
	update(&own, BEGIN - TICK, 20000, &usual);
	update(&own, BEGIN, -20000, &usual);
	memset(&first, 0, sizeof(first));
	bl_clock_store(&first, &own);
	shared = first;
	nstores = 0;
	for (i = 0; i < n; i++) {
		update(&own, mono[i], i & 1 ? -30000 : 30000, e);
		written = &shared;
		bl_clock_store(&shared, &own);
		written = NULL;
	}
	assert_memory_equal(&shared, &own, sizeof(own));
}

/* The reader's loads at which the writer goes on, and how far; the last load has no end. */
static struct {
	unsigned int load, upto;
} bursts[2];
static unsigned int loads;

static void go_on(void)
{
	unsigned int k;

	for (k = 0; k < ARRAY_SIZE(bursts); k++)
		if (loads == bursts[k].load)
			play(bursts[k].upto);
	loads++;
}

/*
 * Calls @check for each way in which the writer makes some stores before a reader begins, and goes
 * on before two of its first @nloads loads.
 */
static void each_way(unsigned int nloads, void (*check)(void))
{
	unsigned int from, a, b, i, k;

	for (from = 0; from <= nstores; from++)
		for (a = from; a <= nstores; a++)
			for (b = a; b <= nstores; b += b == a || b + 5 > nstores ? 1 : 5)
				for (i = 0; i < nloads; i++)
					for (k = i + 1; k < nloads; k++) {
						if (a == from && (i > 0 || (b == a && k > 1)))
							continue;
						shared = first;
						done = loads = 0;
						play(from);
						bursts[0].load = i;
						bursts[0].upto = a;
						bursts[1].load = k;
						bursts[1].upto = b;
						at_load = go_on;
						check();
						at_load = NULL;
					}
}

static uint64_t read_at; /* CLOCK_MONOTONIC of the reader */
static uint64_t want, slack;

static void check_time(void)
{
	uint64_t got = bl_clock_at(&shared, read_at);

	if ((uint64_t)llabs((int64_t)(got - want)) > slack)
		fail_msg("at %llu: bus time is off by %lld ns; the writer had made %u of %u stores",
			 (unsigned long long)read_at, (long long)(got - want), done, nstores);
}

/* Bus time of @first at @mono. */
static uint64_t bus_at(uint64_t mono)
{
	return bl_clock_at(&first, mono);
}

/* The times at which the record is read, relative to the recorded update. */
static const int64_t reads[] = { 0, 1000, BL_CLOCK_LEAD_NS - 1, BL_CLOCK_LEAD_NS,
				 BL_CLOCK_LEAD_NS + 1000000 };

/*
 * The next segment differs from the present one by 25 ppm. The writer is slower than a reader by
 * some milliseconds at most, and the two segments by less than 100 ns then.
 */
static void time__whatever_is_stored(void **state)
{
	const uint64_t mono = BEGIN + TICK;
	size_t i;

	(void)state;
	record_updates(&mono, 1, &other);
	slack = 100;
	for (i = 0; i < ARRAY_SIZE(reads); i++) {
		read_at = mono + (uint64_t)reads[i];
		want = bus_at(read_at);
		each_way(12, check_time);
	}
}

/*
 * A keeper takes over right after the last update of the one before, whose segment has not begun
 * yet, and writes again.
 */
static void time__two_updates_at_once(void **state)
{
	const uint64_t mono[] = { BEGIN + TICK, BEGIN + TICK + 50000 };
	size_t i;

	(void)state;
	record_updates(mono, 2, &other);
	slack = 100;
	for (i = 0; i < ARRAY_SIZE(reads); i++) {
		read_at = mono[0] + (uint64_t)reads[i];
		want = bus_at(read_at);
		each_way(6, check_time);
	}
}

/* A reader that stood still for a whole tick gets the time at which it began. */
static void time__of_a_slow_reader(void **state)
{
	const uint64_t mono[] = { BEGIN + TICK, BEGIN + 2 * TICK };

	(void)state;
	record_updates(mono, 2, &other);
	/* its segment is gone, and the next one is extended backwards: 30 ppm of a tick */
	slack = TICK * 30 / 1000000;
	read_at = mono[0];
	want = bus_at(read_at);
	each_way(6, check_time);
}

static uint64_t least;
static uint64_t (*bound_of)(const struct bl_clock *c, uint64_t mono);

static uint64_t bound_at(const struct bl_clock *c, uint64_t mono)
{
	return bl_clock_bound(c, mono);
}

/* What beacons say. */
static uint64_t said_at(const struct bl_clock *c, uint64_t mono)
{
	return bl_skew_bound(c, mono);
}

static void check_bound(void)
{
	uint64_t got = bound_of(&shared, read_at);

	if (got < least)
		fail_msg("at %llu: the bound is %llu ns, less than %llu; the writer had made %u of "
			 "%u stores",
			 (unsigned long long)read_at, (unsigned long long)got,
			 (unsigned long long)least, done, nstores);
}

static void bound__whatever_is_stored(void **state)
{
	static const struct error t[] = {
		{ 50000, 10000, 500000 },   { 50000, 10000, 100000 }, { 50000, 10000, 100000000 },
		{ 60000, 10000, 100000 },   { 40000, 0, 500000 },     { 9000000, 0, 100000 },
		{ 1000, 0, 1000 },          { 1000, 0, 100000000 },   { 170000, 10000, 500000 },
		{ 150000, 110000, 500000 }, { 90000, 89000, 100000 }, { 500000, 500000, 500000 },
	};
	static uint64_t (*const of[])(const struct bl_clock *c, uint64_t mono) = { bound_at,
										   said_at };
	const uint64_t mono = BEGIN + TICK;
	size_t i, k, n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_clock last;

		record_updates(&mono, 1, &t[i]);
		last = shared;
		for (k = 0; k < ARRAY_SIZE(reads); k++) {
			read_at = mono + (uint64_t)reads[k];
			for (n = 0; n < ARRAY_SIZE(of); n++) {
				bound_of = of[n];
				least = bl_min64(bound_of(&first, read_at),
						 bound_of(&last, read_at));
				each_way(6, check_bound);
			}
		}
	}
}

/* A record becomes usable when all of it is there. */
static void usable__last(void **state)
{
	struct bl_clock own = { 0 };
	unsigned int n;

	(void)state;
	bl_clock_start(&own, BEGIN, NOW);
	update(&own, BEGIN, 0, &usual);
	memset(&first, 0, sizeof(first));
	shared = first;
	nstores = 0;
	written = &shared;
	bl_clock_store(&shared, &own);
	written = NULL;
	for (n = 0; n <= nstores; n++) {
		shared = first;
		done = 0;
		play(n);
		if (!bl_clock_usable(&shared, BEGIN + 1000))
			continue;
		assert_int_equal(bl_clock_at(&shared, BEGIN + 1000), NOW + 1000);
		assert_true(bl_clock_bound(&shared, BEGIN + 1000) >= 50000);
	}
	assert_true(bl_clock_usable(&shared, BEGIN + 1000));
}

/* The writer is killed after any store: what the next one takes over is whole. */
static void whole__whatever_was_stored(void **state)
{
	const uint64_t mono = BEGIN + TICK;
	unsigned int n;

	(void)state;
	record_updates(&mono, 1, &other);
	for (n = 0; n <= nstores; n++) {
		struct bl_clock c;

		shared = first;
		done = 0;
		play(n);
		c = shared;
		bl_clock_whole(&c);
		assert_memory_equal(&c.seg[0], &c.seg[1], sizeof(c.seg[0]));
		assert_true((uint64_t)llabs((int64_t)(bl_clock_at(&c, mono) - bus_at(mono))) <=
			    100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time__whatever_is_stored),
		cmocka_unit_test(time__two_updates_at_once),
		cmocka_unit_test(time__of_a_slow_reader),
		cmocka_unit_test(bound__whatever_is_stored),
		cmocka_unit_test(usable__last),
		cmocka_unit_test(whole__whatever_was_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
