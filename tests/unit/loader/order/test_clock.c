// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/order/clock.c: what the daemon does with its readings of the system clock. CLOCK_MONOTONIC
 * and CLOCK_TAI are two variables here. A reading of either takes TAKES nanoseconds, so that a
 * bracketed measurement is exact: CLOCK_TAI is read exactly between the two readings around it.
 *
 * Readers use the shared record, and never the daemon's own copy.
 */
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <sys/timex.h>

#include "core/order/skew_core.h"
#include "loader/order/clock.h"
#include "loader/order/note.h"

#define TAKES   50ULL
#define NOTE_FD 77

static uint64_t fake_mono;
static int64_t fake_ahead; /* CLOCK_TAI - CLOCK_MONOTONIC */
static int warned, informed, fake_tai;

/* The program that writes the record of a host. */
static struct bl_clock noted;
static int notes;

int bl_note(int fd, struct bl_note_arg *a)
{
	assert_int_equal(fd, NOTE_FD);
	assert_int_equal(a->kind, BL_NOTE_CLOCK);
	noted = a->clock;
	notes++;
	return 0;
}

static char said[512]; /* the last line of the log */

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_adjtimex(struct timex *tx);
void __wrap_bl_log(int level, const char *fmt, ...);

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t ns;

	fake_mono += TAKES;
	assert_true(id == CLOCK_MONOTONIC || id == CLOCK_TAI || id == CLOCK_BOOTTIME);
	ns = id == CLOCK_TAI ? fake_mono + (uint64_t)fake_ahead : fake_mono;
	*t = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				.tv_nsec = (long)(ns % 1000000000) };
	return 0;
}

int __wrap_adjtimex(struct timex *tx)
{
	tx->tai = fake_tai;
	return TIME_OK;
}

void __wrap_bl_log(int level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	warned += level == BL_LOG_WARN;
	informed += level == BL_LOG_INFO;
}

#define SEC      1000000000ULL
#define START    (7 * SEC)
#define AHEAD    (1764000000LL * 1000000000)
#define WIDTH    (2 * TAKES)
#define BOUND_NS 50000ULL
#define VOID_NS  (10 * SEC)

static struct bl_clock_keeper keeper;
static struct bl_clock record; /* the shared record */

/* A daemon that has just started on an empty record. */
static int clock_setup(void **state)
{
	(void)state;
	fake_mono = START;
	fake_ahead = AHEAD;
	warned = informed = 0;
	fake_tai = 37;
	memset(&record, 0, sizeof(record));
	memset(&keeper, 0, sizeof(keeper));
	keeper.shared = &record;
	keeper.fd = -1;
	keeper.bound_us = BOUND_NS / 1000;
	keeper.void_after_ms = VOID_NS / 1000000;
	keeper.name = "clock";
	assert_int_equal(bl_clock_adopt(&keeper, NULL), 0);
	assert_int_equal(record.flags, BL_CLOCK_VALID);
	assert_int_equal(record.tai_offset_s, 37);
	return 0;
}

/* The record's writer is dead, and a new daemon takes the record over. */
static void restart_daemon(void)
{
	struct bl_clock was = record;

	clock_setup(NULL);
	keeper.next_ns = 0;
	memset(&keeper.own, 0xee, sizeof(keeper.own));
	keeper.stepped = false;
	record = was;
}

static uint64_t bus_at(uint64_t mono)
{
	return bl_clock_at(&record, mono);
}

static uint64_t truth_at(uint64_t mono)
{
	return mono + (uint64_t)fake_ahead;
}

/*
 * One turn of the daemon's thread, one tick after the previous one. Bus time is read all the while
 * and must not go back.
 */
static void tick(void)
{
	uint64_t last = bus_at(fake_mono), next = fake_mono + BL_CLOCK_TICK_NS, at, bus;

	while (fake_mono < next) {
		fake_mono += BL_CLOCK_TICK_NS / 10;
		bus = bus_at(fake_mono);
		assert_true(bus > last);
		last = bus;
	}
	at = fake_mono;
	assert_true(bl_clock_tick(&keeper, fake_mono) > at);
	assert_true(bus_at(fake_mono) >= last);
	/* The new segment continues the old one. */
	assert_int_equal(bl_seg_at(&record.seg[0], record.seg[1].mono_ns), record.seg[1].bus_ns);
	assert_false(record.seq & 1);
}

static void ticks(unsigned int n)
{
	while (n--)
		tick();
}

static void tick__only_when_due(void **state)
{
	uint64_t next = bl_clock_tick(&keeper, fake_mono);
	uint32_t seq = record.seq;

	(void)state;
	assert_int_equal(bl_clock_tick(&keeper, next - 1), next);
	assert_int_equal(record.seq, seq);
	assert_true(bl_clock_tick(&keeper, next) == next + BL_CLOCK_TICK_NS);
	assert_int_equal(record.seq, seq + 2);
}

/*
 * Bus time is 10 us behind or ahead: the error is corrected, and is part of the bound until then.
 */
static void steer__drift_is_followed(void **state)
{
	static const int64_t off[] = { 10000, -10000 };

	for (size_t k = 0; k < ARRAY_SIZE(off); k++) {
		clock_setup(state);
		ticks(4);
		assert_int_equal(record.bound_ns, BOUND_NS + WIDTH / 2);
		fake_ahead += off[k];
		tick();
		assert_int_equal(record.bound_ns, BOUND_NS + WIDTH / 2 + 10000);
		/* 10 us in 2 s are 5 ppm; the unit is 2^-30. */
		assert_in_range(llabs(record.seg[1].rate), 5368, 5372);
		assert_true((record.seg[1].rate > 0) == (off[k] > 0));
		ticks(80);
		assert_true(llabs((int64_t)(bus_at(fake_mono) - truth_at(fake_mono))) < 50);
		assert_in_range(record.bound_ns, BOUND_NS + WIDTH / 2, BOUND_NS + WIDTH / 2 + 50);
		assert_in_range(fake_mono - record.as_of_ns, 0, 10000);
		assert_int_equal(warned + informed, 0);
	}
}

/* An error of exactly one second is drift; one nanosecond more, in either direction, is a step. */
static void steer__where_a_step_begins(void **state)
{
	static const struct {
		int64_t off;
		bool step;
	} t[] = {
		{ BL_CLOCK_STEP_NS - 1, false }, { BL_CLOCK_STEP_NS, false },
		{ BL_CLOCK_STEP_NS + 1, true },  { -BL_CLOCK_STEP_NS + 1, false },
		{ -BL_CLOCK_STEP_NS, false },    { -BL_CLOCK_STEP_NS - 1, true },
	};

	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		uint64_t as_of, bound;

		clock_setup(state);
		ticks(4);
		as_of = record.as_of_ns;
		bound = record.bound_ns;
		fake_ahead += t[k].off;
		tick();
		assert_int_equal(keeper.stepped, t[k].step);
		assert_int_equal(warned, t[k].step);
		if (t[k].step) {
			/* Only a new record can follow a clock that was set back. */
			assert_int_equal(!strstr(said, "detach the node"), t[k].off > 0);
			assert_int_equal(record.seg[1].rate, 0);
			assert_int_equal(record.drift_ppb, BL_CLOCK_DRIFT_PPB);
		} else {
			assert_int_equal(record.seg[1].rate,
					 t[k].off > 0 ? BL_CLOCK_RATE_MAX : -BL_CLOCK_RATE_MAX);
			/* 500 ppm, if this daemon is killed now */
			assert_in_range(record.drift_ppb, BL_CLOCK_DRIFT_PPB + 499000,
					BL_CLOCK_DRIFT_PPB + 501000);
		}
		assert_true(record.as_of_ns > as_of);
		assert_int_equal(record.bound_ns, bound + (uint64_t)llabs(t[k].off));
	}
}

/*
 * The system clock is set by two seconds, by an hour or by years: bus time continues at the rate of
 * CLOCK_MONOTONIC, and the bound has the difference in it. The record stays valid meanwhile. When
 * the clocks agree again, everything is as before.
 */
static void steer__a_step_is_not_followed(void **state)
{
	static const int64_t off[] = { 2, -2, 3600, -3600, 400000000, -400000000 };

	for (size_t k = 0; k < ARRAY_SIZE(off); k++) {
		uint64_t mono, bus, apart;

		clock_setup(state);
		fake_ahead += 20000;
		ticks(3);
		/* This rate must not remain in force after a step. */
		assert_true(record.seg[1].rate > 0);
		fake_ahead += off[k] * (int64_t)SEC;
		apart = (uint64_t)llabs(off[k]) * SEC;
		if (apart > BL_CLOCK_BOUND_MAX_NS - SEC)
			apart = BL_CLOCK_BOUND_MAX_NS - SEC;
		tick();
		mono = record.seg[1].mono_ns;
		bus = record.seg[1].bus_ns;
		for (unsigned int n = 0; n < 48; n++) {
			tick();
			assert_int_equal(bus_at(fake_mono), bus + (fake_mono - mono));
			assert_true(record.as_of_ns > fake_mono - 10000);
			assert_in_range(record.bound_ns, apart, BL_CLOCK_BOUND_MAX_NS);
			if (apart < 3 * SEC)
				assert_true(record.bound_ns < apart + SEC / 1000);
			assert_true(bl_clock_usable(&record, fake_mono));
			assert_true(record.void_after_ns > fake_mono + VOID_NS - SEC);
		}
		assert_int_equal(warned, 1); /* not at every tick */
		assert_int_equal(informed, 0);
		fake_ahead -= off[k] * (int64_t)SEC;
		tick();
		assert_int_equal(informed, 1);
		assert_true(record.as_of_ns > fake_mono - 10000);
		assert_in_range(record.bound_ns, BOUND_NS + WIDTH / 2,
				BOUND_NS + WIDTH / 2 + 25000);
		assert_true(record.seg[1].rate != 0);
		ticks(80);
		assert_true(llabs((int64_t)(bus_at(fake_mono) - truth_at(fake_mono))) < 50);
		assert_int_equal(warned + informed, 2);
	}
}

/* A daemon that takes over a good record does not follow a step either. */
static void adopt__a_good_record_and_a_step(void **state)
{
	static const int64_t off[] = { 3, -3 };

	for (size_t k = 0; k < ARRAY_SIZE(off); k++) {
		uint64_t mono;
		int64_t before;

		clock_setup(state);
		ticks(4);
		mono = fake_mono;
		before = (int64_t)(bus_at(mono) - mono);
		restart_daemon();
		fake_mono = mono + VOID_NS / 2;
		fake_ahead += off[k] * (int64_t)SEC;
		assert_int_equal(bl_clock_adopt(&keeper, NULL), 0);
		assert_int_equal((int64_t)(bus_at(fake_mono) - fake_mono), before);
		assert_in_range(record.bound_ns, 3 * SEC, 3 * SEC + SEC / 1000);
		assert_int_equal(warned, 1);
		assert_true(record.void_after_ns > fake_mono + VOID_NS - SEC);
	}
}

/*
 * Nobody uses a void record, so bus time may jump forward to the truth. It may not jump back behind
 * what was used, since those timestamps still are. Where it stays ahead of the truth, the bound
 * contains the difference.
 */
static void adopt__a_void_record(void **state)
{
	static const int64_t off[] = { 3000000000, 20000000,  1,           0,
				       -1,         -20000000, -3000000000, -400000000000000000 };

	for (size_t k = 0; k < ARRAY_SIZE(off); k++) {
		uint64_t mono, used, error, adopted;

		clock_setup(state);
		ticks(4);
		mono = fake_mono;
		restart_daemon();
		fake_mono = mono + VOID_NS + SEC;
		assert_false(bl_clock_usable(&record, fake_mono));
		used = bus_at(record.void_after_ns);
		fake_ahead += off[k];
		assert_int_equal(bl_clock_adopt(&keeper, NULL), 0);
		adopted = record.as_of_ns;
		assert_true(bl_clock_usable(&record, fake_mono));
		assert_true(bus_at(adopted) >= used);
		error = used > truth_at(adopted) ? used - truth_at(adopted) : 0;
		assert_true(!error == (off[k] > -(int64_t)SEC));
		assert_int_equal(bus_at(adopted), truth_at(adopted) + error);
		assert_int_equal(record.bound_ns, BOUND_NS + WIDTH / 2 + error);
		assert_in_range(fake_mono - record.as_of_ns, 0, 10000);
		/* Bus time continues from there and never goes back. */
		ticks(8);
		assert_true(bus_at(fake_mono) >= truth_at(fake_mono));
		assert_int_equal(keeper.stepped, error > BL_CLOCK_STEP_NS);
	}
}

/*
 * A clock that is wrong on purpose, and bus time that is not TAI: bus time is wrong by the sum of
 * both.
 */
static void adopt__skew_and_offset(void **state)
{
	(void)state;
	restart_daemon();
	memset(&record, 0, sizeof(record));
	keeper.skew_ns = -70000;
	keeper.bus_offset_ns = 5000000000;
	assert_int_equal(bl_clock_adopt(&keeper, NULL), 0);
	assert_int_equal(bus_at(fake_mono), truth_at(fake_mono) + 5000000000 - 70000);
	assert_int_equal(record.skew_ns, -70000);
	assert_int_equal(record.bound_ns, BOUND_NS + WIDTH / 2);
	ticks(8);
	assert_int_equal(bus_at(fake_mono), truth_at(fake_mono) + 5000000000 - 70000);
}

/*
 * The writer was killed while it wrote, and the record that it left is void: the segment that is
 * complete counts.
 */
static void adopt__torn_and_void(void **state)
{
	uint64_t mono, used;

	clock_setup(state);
	ticks(4);
	mono = fake_mono;
	restart_daemon();
	fake_mono = mono + VOID_NS + SEC;
	used = bus_at(record.void_after_ns);
	record.seq |= 1;
	record.seg[1].mono_ns = BL_CLOCK_UNWRITTEN;
	record.seg[1].bus_ns = 0;
	fake_ahead -= 20 * (int64_t)SEC;
	assert_int_equal(bl_clock_adopt(&keeper, NULL), 0);
	assert_false(record.seq & 1);
	assert_int_equal(bus_at(record.as_of_ns), used);
}

/* The keeper is killed while it steers bus time: its last segment is used until the record is void.
 */
static void steer__killed(void **state)
{
	static const int64_t off[] = { 400000, -400000, 1000000, -1000000, 900000000, -900000000 };

	for (size_t k = 0; k < ARRAY_SIZE(off); k++) {
		clock_setup(state);
		ticks(4);
		fake_ahead += off[k];
		ticks(2);
		for (; bl_clock_usable(&record, fake_mono); fake_mono += SEC / 10)
			assert_true((uint64_t)llabs(
					    (int64_t)(bus_at(fake_mono) - truth_at(fake_mono))) <=
				    bl_clock_bound(&record, fake_mono));
	}
}

/* TAI - UTC changes at a leap second, and CLOCK_TAI goes on. With a step, the old one stays. */
static void steer__tai_offset(void **state)
{
	clock_setup(state);
	ticks(4);
	fake_tai = 38;
	tick();
	assert_int_equal(record.tai_offset_s, 38);
	fake_tai = 0;
	fake_ahead -= 38 * (int64_t)SEC;
	ticks(4);
	assert_int_equal(record.tai_offset_s, 38);
}

/* What neighbours have proven of this clock is added to its bound, as long as they do. */
static void steer__proven_error(void **state)
{
	(void)state;
	ticks(4);
	assert_int_equal(record.bound_ns, BOUND_NS + WIDTH / 2);
	atomic_store(&keeper.proven_ns, 1000000);
	tick();
	assert_int_equal(record.bound_ns, BOUND_NS + WIDTH / 2 + 1000000);
	assert_int_equal(record.proven_ns, 1000000);
	/* beacons say the bound without it */
	assert_int_equal(bl_skew_bound(&record, record.as_of_ns), BOUND_NS + WIDTH / 2);
	atomic_store(&keeper.proven_ns, 0);
	tick();
	assert_int_equal(record.bound_ns, BOUND_NS + WIDTH / 2);
	assert_int_equal(record.proven_ns, 0);
}

/* A host's record cannot be written through the mapping: each update goes through the program. */
static void publish__of_a_host(void **state)
{
	struct bl_clock was;
	int k;

	(void)state;
	keeper.note_fd = NOTE_FD;
	was = record;
	for (k = 0; k < 3; k++) {
		notes = 0;
		fake_mono += BL_CLOCK_TICK_NS;
		bl_clock_tick(&keeper, fake_mono);
		assert_int_equal(notes, 1);
		assert_memory_equal(&record, &was, sizeof(was));
		assert_false(noted.seq & 1);
		assert_true(noted.seq > was.seq);
		assert_int_equal(noted.flags, BL_CLOCK_VALID);
		assert_true(noted.void_after_ns > fake_mono);
		assert_true(noted.seg[1].mono_ns > fake_mono - SEC);
	}
}

#define CASE(f) cmocka_unit_test_setup(f, clock_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tick__only_when_due),
		CASE(publish__of_a_host),
		CASE(steer__drift_is_followed),
		CASE(steer__where_a_step_begins),
		CASE(steer__a_step_is_not_followed),
		CASE(adopt__a_good_record_and_a_step),
		CASE(adopt__a_void_record),
		CASE(adopt__skew_and_offset),
		CASE(adopt__torn_and_void),
		CASE(steer__proven_error),
		CASE(steer__tai_offset),
		CASE(steer__killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
