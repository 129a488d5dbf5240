// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/order/clock.c with the source "kernel" (loader/clock/kernel.c): when the record is void,
 * and what bus time does when the source is lost, comes back, or the system clock is stepped.
 * CLOCK_MONOTONIC, CLOCK_TAI and what adjtimex(2) says are variables, as in test_clock.c.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/timex.h>

#include "core/clock_core.h"
#include "loader/order/clock.h"
#include "loader/order/note.h"

#define TAKES  50ULL
#define SEC    1000000000ULL
#define START  (7 * SEC)
#define AHEAD  (1764000000LL * 1000000000)
#define MAX_NS 25000000ULL

static uint64_t fake_mono;
static int64_t fake_ahead;   /* CLOCK_TAI - CLOCK_MONOTONIC */
static uint64_t fake_asleep; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
static struct timex fake_tx;
static uint64_t seconds_at; /* CLOCK_MONOTONIC until which the kernel has added to maxerror */
static int fake_state, told[8];
static char last[1024]; /* what was logged last */
static bool bound_default;
static struct bl_clock_keeper keeper;
static struct bl_clock record;

int bl_note(int fd, struct bl_note_arg *a)
{
	(void)fd;
	(void)a;
	return -EBADF;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_adjtimex(struct timex *tx);
void __wrap_bl_log(int level, const char *fmt, ...);

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t ns;

	fake_mono += TAKES;
	ns = id == CLOCK_TAI        ? fake_mono + (uint64_t)fake_ahead
	     : id == CLOCK_BOOTTIME ? fake_mono + fake_asleep
				    : fake_mono;
	*t = (struct timespec){ .tv_sec = (time_t)(ns / SEC), .tv_nsec = (long)(ns % SEC) };
	return 0;
}

/* CLOCK_REALTIME, whole seconds after which CLOCK_TAI is, has the same beginnings of seconds. */
static uint64_t realtime(void)
{
	return fake_mono + (uint64_t)fake_ahead;
}

/* As second_overflow() of the kernel does. A step begins no second. */
static void seconds_begin(void)
{
	uint64_t now = realtime(), was = now - (fake_mono - seconds_at);

	fake_tx.maxerror += 500 * (long)(now / SEC - was / SEC);
	seconds_at = fake_mono;
}

int __wrap_adjtimex(struct timex *tx)
{
	seconds_begin();
	*tx = fake_tx;
	tx->time.tv_sec = (time_t)(realtime() / SEC);
	tx->time.tv_usec = (long)(realtime() % SEC / 1000);
	if (fake_state < 0)
		errno = EPERM;
	return fake_state;
}

void __wrap_bl_log(int level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last, sizeof(last), fmt, ap);
	va_end(ap);
	told[level]++;
}

static void kernel_says(int state, int status, long maxerror)
{
	fake_state = state;
	fake_tx = (struct timex){ .status = status, .maxerror = maxerror, .tai = 37 };
	seconds_at = fake_mono;
}

static void adopt(void)
{
	memset(&keeper, 0, sizeof(keeper));
	keeper.shared = &record;
	keeper.fd = -1;
	keeper.bound_us = 50;
	keeper.max_bound_us = MAX_NS / 1000;
	keeper.source = BL_CLOCK_KERNEL;
	keeper.void_after_ms = 10000;
	keeper.name = "clock";
	keeper.options.bound_default = bound_default;
	assert_int_equal(bl_clock_adopt(&keeper, NULL), 0);
}

static int setup(void **state)
{
	(void)state;
	fake_mono = START;
	fake_ahead = AHEAD;
	fake_asleep = 0;
	bound_default = false;
	memset(told, 0, sizeof(told));
	memset(&record, 0, sizeof(record));
	kernel_says(TIME_OK, 0, 200);
	return 0;
}

static uint64_t bus(void)
{
	return bl_clock_at(&record, fake_mono);
}

static bool usable(void)
{
	return bl_clock_usable(&record, fake_mono);
}

static int64_t error(void)
{
	return (int64_t)(bus() - fake_mono) - fake_ahead;
}

/* Ticks of the daemon for @ns. Bus time that may be used is within its bound of @truth. */
static void run(uint64_t ns, int64_t truth)
{
	uint64_t end = fake_mono + ns;

	while (fake_mono < end) {
		fake_mono += BL_CLOCK_TICK_NS;
		bl_clock_tick(&keeper, fake_mono);
		if (usable()) {
			int64_t e = (int64_t)(bus() - fake_mono) - truth;

			assert_true((uint64_t)llabs(e) <= bl_clock_bound(&record, fake_mono));
			/* That is so as long as the record is valid, even if no daemon updates it.
			 */
			assert_true(bl_clock_bound(&record, record.void_after_ns - 1) <= MAX_NS);
		}
	}
}

static void kernel__good(void **state)
{
	(void)state;
	adopt();
	assert_true(usable());
	assert_int_equal(record.source, BL_CLOCK_KERNEL);
	assert_int_equal(record.state, BL_CLOCK_GOOD);
	assert_int_equal(record.max_bound_ns, MAX_NS);
	assert_int_equal(record.tai_offset_s, 37);
	assert_in_range(record.bound_ns, 300000, 301000); /* 100 us: it may be a second old */
	/* phc2sys says 0: the least bound of the configuration counts. */
	kernel_says(TIME_OK, 0, 0);
	run(SEC / 2, AHEAD);
	assert_in_range(record.bound_ns, 50000, 51000);
	assert_int_equal(told[BL_LOG_ERR] + told[BL_LOG_WARN] + told[BL_LOG_INFO], 0);
}

static void kernel__never_synchronised(void **state)
{
	static const struct {
		int state, status;
	} t[] = {
		{ TIME_ERROR, STA_UNSYNC },
		{ TIME_ERROR, 0 },
		{ TIME_OK, STA_UNSYNC },
	};

	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		setup(state);
		kernel_says(t[k].state, t[k].status, 1);
		adopt();
		run(20 * SEC, AHEAD);
		assert_false(usable());
		assert_int_equal(record.state, BL_CLOCK_NEVER);
		assert_int_equal(told[BL_LOG_ERR], 1);
		/* The clock is set by a day, back or forward, and bus time goes along: it is
		 * unused. */
		fake_ahead += (k & 1 ? 1 : -1) * 86400 * (int64_t)SEC;
		kernel_says(TIME_OK, 0, 300);
		run(SEC, fake_ahead);
		kernel_says(TIME_OK, 0, 301);
		run(SEC, fake_ahead);
		assert_true(usable());
		assert_true(llabs(error()) < 1000);
		assert_int_equal(record.state, BL_CLOCK_GOOD);
		assert_int_equal(told[BL_LOG_INFO], 1);
		/* The word that came together with the step was not believed: too wide. */
		assert_int_equal(told[BL_LOG_ERR], 2);
	}
}

static void kernel__too_wide(void **state)
{
	(void)state;
	kernel_says(TIME_OK, 0, MAX_NS / 1000 + 1);
	adopt();
	assert_false(usable());
	assert_int_equal(record.state, BL_CLOCK_TOO_WIDE);
	assert_int_equal(told[BL_LOG_ERR], 1);
	assert_null(strstr(last, "STA_UNSYNC"));
	run(SEC, AHEAD);
	assert_int_equal(told[BL_LOG_ERR], 1);
	/* That its source is lost now is said, too, once. */
	kernel_says(TIME_ERROR, STA_UNSYNC, 16000000);
	run(SEC, AHEAD);
	assert_int_equal(record.state, BL_CLOCK_TOO_WIDE);
	assert_int_equal(told[BL_LOG_ERR], 2);
	assert_non_null(strstr(last, "may be wrong by"));
	assert_non_null(strstr(last, "STA_UNSYNC"));
	run(SEC, AHEAD);
	assert_int_equal(told[BL_LOG_ERR], 2);
	kernel_says(TIME_OK, 0, MAX_NS / 1000 - 1000);
	run(SEC, AHEAD);
	assert_true(usable());
}

/*
 * The source is lost: the bound widens by 100 us a second, and the record is void when it reaches
 * its maximum, (25 ms - 200 us) / 100 us/s = 248 s later, also between two ticks. When the source
 * is back, so is the record.
 */
static void kernel__holdover_then_void(void **state)
{
	uint64_t lost;

	(void)state;
	adopt();
	run(SEC, AHEAD);
	kernel_says(TIME_ERROR, STA_UNSYNC, 16000000);
	lost = fake_mono;
	run(10 * SEC, AHEAD);
	assert_int_equal(record.state, BL_CLOCK_HOLDOVER);
	assert_in_range(bl_clock_bound(&record, fake_mono), 1200000, 1500000);
	assert_int_equal(told[BL_LOG_WARN], 1);
	while (usable())
		run(1, AHEAD);
	assert_in_range(fake_mono - lost, 246 * SEC, 249 * SEC);
	run(SEC, AHEAD);
	assert_int_equal(record.state, BL_CLOCK_TOO_WIDE);
	assert_int_equal(told[BL_LOG_WARN], 1);
	assert_int_equal(told[BL_LOG_ERR], 1);
	run(20 * SEC, AHEAD);
	assert_false(usable());
	kernel_says(TIME_OK, 0, 250);
	run(SEC, AHEAD);
	assert_true(usable());
	assert_int_equal(record.state, BL_CLOCK_GOOD);
	assert_int_equal(told[BL_LOG_ERR], 1);
	assert_int_equal(told[BL_LOG_INFO], 1);
}

/* Nobody has set maxerror for long: its growth by the kernel is no news, and the bound widens. */
static void kernel__daemon_that_died(void **state)
{
	(void)state;
	adopt();
	run(100 * SEC, AHEAD);
	assert_in_range(fake_tx.maxerror, 50000, 50800);
	assert_in_range(bl_clock_bound(&record, fake_mono), 10000000, 10600000);
	assert_true(usable());
}

/* A stranger steps the clock, and says so (settimeofday(2)) or not (ADJ_SETOFFSET). */
static void kernel__step_of_a_stranger(void **state)
{
	static const int64_t off[] = { 1000000, -1000000, 2000000000, -2000000000 };

	for (size_t k = 0; k < 2 * ARRAY_SIZE(off); k++) {
		setup(state);
		adopt();
		run(SEC, AHEAD);
		fake_ahead += off[k / 2];
		if (k & 1)
			kernel_says(TIME_ERROR, STA_UNSYNC, 16000000);
		run(20 * SEC, AHEAD);
		assert_true(usable());
		assert_true(llabs((int64_t)(bus() - fake_mono) - AHEAD) < 1000);
	}
}

/* The source goes on to speak until a step is no reason for doubt any more. */
static void confirm(void)
{
	unsigned int i;

	for (i = 0; i < BL_CLOCK_DOUBT_WORDS; i++) {
		kernel_says(TIME_OK, 0, 302 + i);
		run(BL_CLOCK_DOUBT_NS / BL_CLOCK_DOUBT_WORDS, fake_ahead);
	}
}

/* The source itself steps the clock by 2 s: bus time was wrong. It is void, and leaps forward only.
 */
static void kernel__step_of_the_source(void **state)
{
	(void)state;
	adopt();
	run(SEC, AHEAD);
	fake_ahead += 2 * (int64_t)SEC;
	kernel_says(TIME_OK, 0, 300);
	run(SEC / 4, fake_ahead);
	assert_false(usable());
	kernel_says(TIME_OK, 0, 301);
	run(SEC, fake_ahead);
	assert_false(usable());
	confirm();
	assert_true(usable());
	assert_true(llabs(error()) < 1000);

	setup(state);
	adopt();
	run(SEC, AHEAD);
	fake_ahead -= 2 * (int64_t)SEC;
	kernel_says(TIME_OK, 0, 300);
	run(SEC / 4, fake_ahead);
	confirm();
	assert_false(usable());
	assert_true(error() > 0);
	assert_int_equal(record.state, BL_CLOCK_STEERING);
}

/* The next daemon goes on with the bound that the last one had, though the clock was stepped. */
static void kernel__next_daemon(void **state)
{
	uint64_t bound;

	(void)state;
	adopt();
	run(SEC, AHEAD);
	kernel_says(TIME_ERROR, STA_UNSYNC, 16000000);
	run(10 * SEC, AHEAD);
	bound = bl_clock_bound(&record, fake_mono);
	fake_ahead += 5000000;
	fake_mono += 2 * SEC;
	adopt();
	assert_true(usable());
	assert_int_equal(record.state, BL_CLOCK_HOLDOVER);
	assert_in_range(record.bound_ns, bound + 200000, bound + 300000);
	run(5 * SEC, AHEAD);
}

/* The source says again, as it does each second, that the clock is right to within 200 us. */
static void source_repeats(void)
{
	kernel_says(TIME_OK, 0, 200 + (fake_tx.maxerror == 200));
	run(SEC, AHEAD);
}

/*
 * A stranger sets the clock by @step, and the source, which does not know, goes on to call it right
 * to within 200 us. A daemon that starts in between, or after @before_ns, must not believe that.
 */
static void next_daemon_doubts(uint64_t before_ns, int64_t step)
{
	adopt();
	run(SEC, AHEAD);
	fake_ahead += step;
	if (before_ns) {
		kernel_says(TIME_OK, 0, 201);
		run(before_ns, AHEAD);
	}
	fake_mono += SEC;
	adopt();
	while (fake_mono < START + 55 * SEC)
		source_repeats();
	assert_true(record.system_stepped_ns);
}

static void kernel__next_daemon_after_a_step(void **state)
{
	(void)state;
	next_daemon_doubts(0, 4000000);
	setup(state);
	next_daemon_doubts(5 * SEC, 4000000);
	setup(state);
	next_daemon_doubts(5 * SEC, -4000000);
}

/* The same where the record is void, since the step is greater than what is allowed. */
static void kernel__next_daemon_of_a_void_record(void **state)
{
	uint64_t before;

	(void)state;
	adopt();
	run(SEC, AHEAD);
	fake_ahead += 3600 * (int64_t)SEC;
	kernel_says(TIME_OK, 0, 201);
	run(5 * SEC, AHEAD);
	assert_false(usable());
	before = bus();
	adopt();
	assert_false(usable());
	kernel_says(TIME_OK, 0, 200);
	run(SEC, AHEAD);
	assert_false(usable());
	assert_in_range(bus(), before, before + 2 * SEC);
	/* The stranger puts it right. It is believed when the source has had time to notice. */
	fake_ahead -= 3600 * (int64_t)SEC;
	while (record.system_stepped_ns)
		source_repeats();
	source_repeats();
	assert_true(usable());
	assert_int_equal(record.state, BL_CLOCK_GOOD);
}

/* The source sets maxerror to 0 shortly after each second, so that every reading is 0. */
static void kernel__the_same_again(void **state)
{
	unsigned int k;

	(void)state;
	kernel_says(TIME_OK, 0, 0);
	adopt();
	for (k = 0; k < 1000; k++) {
		seconds_begin();
		if (realtime() % SEC >= 100000000 && realtime() % SEC < 500000000)
			fake_tx.maxerror = 0;
		run(SEC / 4, AHEAD);
		assert_true(usable());
		assert_true(bl_clock_bound(&record, fake_mono) < 500000);
	}
}

/* A source that always says 0 says nothing, if nobody has written how great the error can be. */
static void kernel__zero(void **state)
{
	unsigned int k;

	(void)state;
	bound_default = true;
	kernel_says(TIME_OK, 0, 0);
	adopt();
	run(SEC, AHEAD);
	for (k = 0; k < 5; k++) {
		kernel_says(TIME_OK, 0, 0);
		run(3 * SEC, AHEAD);
	}
	assert_false(usable());
	assert_int_equal(record.state, BL_CLOCK_NEVER);
	assert_int_equal(record.reason, BL_CLOCK_NO_BOUND);
	assert_int_equal(told[BL_LOG_ERR], 1);
	assert_non_null(strstr(last, "bound_us"));
	/* one that measures */
	kernel_says(TIME_OK, 0, 321);
	run(SEC, AHEAD);
	assert_true(usable());
	assert_in_range(record.bound_ns, 321000, 1000000);
	/* its word holds, and grows older, when the other one comes back */
	for (k = 0; k < 20; k++) {
		kernel_says(TIME_OK, 0, 0);
		run(SEC, AHEAD);
	}
	assert_in_range(record.bound_ns, 2321000, 2900000);
}

/* While the machine sleeps, CLOCK_MONOTONIC stands still. Then only a new word counts. */
static void kernel__suspended(void **state)
{
	static const uint64_t slept[] = { 5000000, SEC, 600 * SEC };

	for (size_t k = 0; k < ARRAY_SIZE(slept); k++) {
		setup(state);
		fake_mono += SEC / 8;
		adopt();
		run(3 * SEC, AHEAD);
		assert_true(usable());
		/* It has spoken just before. */
		kernel_says(TIME_OK, 0, 203);
		fake_asleep += slept[k];
		fake_ahead += (int64_t)slept[k];
		run(SEC, fake_ahead);
		assert_false(usable());
		assert_int_equal(told[BL_LOG_WARN], 1);
		run(20 * SEC, fake_ahead);
		assert_false(usable());
		kernel_says(TIME_OK, 0, 300);
		run(SEC, fake_ahead);
		assert_true(usable());
		assert_true((uint64_t)llabs(error()) <= bl_clock_bound(&record, fake_mono));
		assert_int_equal(told[BL_LOG_WARN], 1 + (slept[k] > 5000000));
	}
	/* A delay between two readings is no sleep. */
	setup(state);
	adopt();
	for (size_t k = 0; k < 100; k++) {
		fake_asleep = k % 7 * 100; /* as if CLOCK_MONOTONIC had been read too early */
		run(SEC / 4, AHEAD);
		assert_true(usable());
	}
}

/* The kernel's TAI - UTC is corrected, and CLOCK_TAI jumps: the record has the old one till then.
 */
static void kernel__tai_offset(void **state)
{
	(void)state;
	adopt();
	run(2 * SEC, AHEAD);
	fake_tx.tai = 0;
	fake_ahead -= 37 * (int64_t)SEC;
	run(5 * SEC, AHEAD);
	assert_int_equal(told[BL_LOG_WARN], 1);
	assert_int_equal(record.tai_offset_s, 37);
	kernel_says(TIME_OK, 0, 301);
	fake_tx.tai = 0;
	run(SEC, AHEAD);
	assert_int_equal(record.tai_offset_s, 0);
	assert_false(usable());
	/* a leap second: CLOCK_TAI goes on */
	setup(state);
	adopt();
	run(2 * SEC, AHEAD);
	fake_tx.tai = 38;
	run(SEC / 2, AHEAD);
	assert_int_equal(record.tai_offset_s, 38);
	assert_true(usable());
	assert_int_equal(told[BL_LOG_WARN], 0);
	assert_int_equal(told[BL_LOG_INFO], 1);
}

#define CASE(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(kernel__good),
		CASE(kernel__never_synchronised),
		CASE(kernel__too_wide),
		CASE(kernel__holdover_then_void),
		CASE(kernel__daemon_that_died),
		CASE(kernel__step_of_a_stranger),
		CASE(kernel__step_of_the_source),
		CASE(kernel__next_daemon),
		CASE(kernel__next_daemon_after_a_step),
		CASE(kernel__next_daemon_of_a_void_record),
		CASE(kernel__the_same_again),
		CASE(kernel__zero),
		CASE(kernel__suspended),
		CASE(kernel__tai_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
