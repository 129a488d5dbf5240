// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The source "clockbound" (loader/clock/clockbound.c, core/clockbound_core.h) with a file of both
 * layouts: what it says when it is good, old, disrupted, cut, foreign, being written, or gone.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <sys/timex.h>
#include <unistd.h>

#include "core/clockbound_core.h"
#include "loader/clock/source.h"

#define SEC  1000000000ULL
#define TICK 250000000ULL

static char path[] = "/tmp/test_clockbound_XXXXXX";
static struct bl_clockbound file;
static struct bl_clock_memory memory;
static struct bl_clock_options options;
static struct bl_clock_sample sample;
static uint64_t mono;

int __wrap_adjtimex(struct timex *tx);

int __wrap_adjtimex(struct timex *tx)
{
	*tx = (struct timex){ .tai = 37 };
	return TIME_OK;
}

static struct bl_cb_time at(uint64_t ns)
{
	return (struct bl_cb_time){ (int64_t)(ns / SEC), (int64_t)(ns % SEC) };
}

/* Writes the first @n bytes of the file. */
static void publish(size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(&file, 1, n, f), n);
	fclose(f);
}

static void set(uint16_t version, int32_t status, uint32_t drift_ppb)
{
	file.version = version;
	file.size = version == 1 ? BL_CB_V1_BYTES : sizeof(file);
	if (version == 1) {
		file.v1.status = status;
		file.v1.drift_ppb = drift_ppb;
	} else {
		file.v2.status = status;
		file.v2.drift_ppb = drift_ppb;
	}
}

static int setup(void **state)
{
	(void)state;
	memset(&memory, 0, sizeof(memory));
	memset(&file, 0, sizeof(file));
	options = (struct bl_clock_options){ .name = "h1", .socket = path, .phc = "" };
	mono = 100 * SEC;
	file.magic[0] = BL_CB_MAGIC0;
	file.magic[1] = BL_CB_MAGIC1;
	file.generation = 2;
	file.as_of = at(mono);
	file.void_after = at(mono + 1000 * SEC);
	file.bound_ns = 300000;
	set(2, BL_CB_SYNCHRONIZED, 1000);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	bl_clock_clockbound.close(&memory, &options);
	unlink(path);
	return 0;
}

static int read_once(void)
{
	return bl_clock_clockbound.read(&memory, &options, mono += TICK, &sample);
}

/* ClockBound renews its bound @ago ns before the next reading. */
static int renew(uint64_t ago)
{
	file.as_of = at(mono + TICK - ago);
	file.generation += 2;
	publish(sizeof(file));
	return read_once();
}

static void clockbound__good(void **state)
{
	uint16_t version;

	for (version = 1; version <= 2; version++) {
		setup(state);
		set(version, BL_CB_SYNCHRONIZED, 1000);
		/* Two readings: steps of the clock before the first one are not known. */
		for (int k = 0; k < 2; k++) {
			assert_int_equal(renew(1), BL_CLOCK_ASKING);
			assert_false(sample.synced || sample.fresh || sample.drift_ppb);
		}
		assert_int_equal(renew(200000000), BL_CLOCK_NO_REASON);
		assert_true(sample.synced && sample.fresh && sample.late);
		assert_int_equal(sample.bound_ns, 300000 + 200 + 1);
		assert_int_equal(sample.drift_ppb, 1000);
		assert_int_equal(sample.tai_offset_s, 37);
		/* the same once more */
		assert_int_equal(read_once(), BL_CLOCK_NO_REASON);
		assert_true(sample.synced && !sample.fresh);
		assert_int_equal(sample.bound_ns, 300000 + 450 + 1);
		/* determined before the last reading, and seen only now */
		renew(TICK);
		assert_true(sample.synced && !sample.fresh);
		renew(TICK - 1);
		assert_true(sample.fresh);
		teardown(state);
	}
}

static void clockbound__not_synchronised(void **state)
{
	static const struct {
		int32_t status;
		enum bl_clock_reason why;
	} t[] = {
		{ BL_CB_UNKNOWN, BL_CLOCK_CB_UNKNOWN },
		{ BL_CB_FREE_RUNNING, BL_CLOCK_CB_FREE_RUNNING },
		{ BL_CB_DISRUPTED, BL_CLOCK_CB_DISRUPTED },
		{ 4, BL_CLOCK_CB_WRONG },
		{ -1, BL_CLOCK_CB_UNKNOWN },
	};
	uint16_t version;

	(void)state;
	for (version = 1; version <= 2; version++)
		for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
			set(version, t[k].status, 1);
			assert_int_equal(renew(1), t[k].why);
			assert_true(!sample.synced && !sample.fresh);
		}
}

/* ClockBound has ended: its last word is good for 5 s, or until void_after. */
static void clockbound__stale(void **state)
{
	static const struct {
		uint64_t age, lasts;
		enum bl_clock_reason why;
	} t[] = {
		{ BL_CB_STALE_NS - 1, 1000 * SEC, BL_CLOCK_NO_REASON },
		{ BL_CB_STALE_NS, 1000 * SEC, BL_CLOCK_CB_STALE },
		{ SEC, SEC + 1, BL_CLOCK_NO_REASON },
		{ SEC, SEC, BL_CLOCK_CB_STALE },
	};

	(void)state;
	renew(1);
	renew(1);
	renew(1);
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		file.void_after = at(mono + TICK - t[k].age + t[k].lasts);
		assert_int_equal(renew(t[k].age), t[k].why);
		assert_int_equal(sample.synced, !t[k].why);
	}
}

static void clockbound__lies(void **state)
{
	static const struct {
		struct bl_cb_time as_of, void_after;
		int64_t bound;
		uint32_t drift;
		int good;
	} t[] = {
		{ { 100, 0 }, { 200, 0 }, 1, BL_CB_DRIFT_MAX - 1, 1 },
		{ { 100, 0 }, { 200, 0 }, 1, BL_CB_DRIFT_MAX, 0 },
		{ { 100, 0 }, { 200, 0 }, -1, 1, 0 },
		{ { 100, 0 }, { 200, 0 }, INT64_MAX, 1, 1 },
		{ { -1, 0 }, { 200, 0 }, 1, 1, 0 },
		{ { 100, 1000000000 }, { 200, 0 }, 1, 1, 0 },
		{ { 100, -1 }, { 200, 0 }, 1, 1, 0 },
		{ { 100, 0 }, { INT64_MAX, 0 }, 1, 1, 0 },
		{ { 101, 10000000 }, { 200, 0 }, 1, 1, 1 }, /* a tick ahead */
		{ { 101, 10000001 }, { 200, 0 }, 1, 1, 0 },
	};
	struct bl_cb_view v;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		v = (struct bl_cb_view){ .word = 1 };
		file.as_of = t[k].as_of;
		file.void_after = t[k].void_after;
		file.bound_ns = t[k].bound;
		file.v2.drift_ppb = t[k].drift;
		assert_int_equal(bl_cb_judge(&v, &file, 101 * SEC, &sample) == BL_CLOCK_NO_REASON,
				 t[k].good);
		assert_int_equal(sample.synced, t[k].good);
		assert_true(sample.bound_ns <= BL_CLOCK_BOUND_MAX_NS + SEC + 1);
	}
}

/*
 * A bound from between two readings at which there was no file is older than the last reading: a
 * step of the clock since then may be unknown to it.
 */
static void clockbound__gone_between(void **state)
{
	(void)state;
	publish(sizeof(file));
	read_once();
	file.as_of = at(mono + 1);
	unlink(path);
	assert_int_equal(read_once(), BL_CLOCK_CB_GONE);
	assert_int_equal(read_once(), BL_CLOCK_CB_GONE);
	file.generation += 2;
	publish(sizeof(file));
	assert_int_equal(read_once(), BL_CLOCK_ASKING);
	assert_int_equal(renew(1), BL_CLOCK_NO_REASON);
	/* cut in between */
	file.as_of = at(mono + 1);
	publish(1);
	assert_int_equal(read_once(), BL_CLOCK_CB_WRONG);
	publish(sizeof(file));
	read_once();
	assert_true(sample.synced && !sample.fresh);
}

/* What a keeper of the record makes of the first readings: it is asking until it believes one. */
static void clockbound__first_word(void **state)
{
	struct bl_clock_hold hold = {};
	int k, why;

	(void)state;
	for (k = 0; k < 3; k++) {
		why = renew(1);
		bl_clock_hold_read(&hold, &sample, mono, 0, 0);
		assert_int_equal(why, hold.ever ? BL_CLOCK_NO_REASON : BL_CLOCK_ASKING);
	}
	assert_true(hold.ever);
}

/* Cut, foreign, of another version, being written, gone. */
static void clockbound__files(void **state)
{
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(file); n++) {
		publish(n);
		assert_int_equal(read_once(), BL_CLOCK_CB_WRONG);
		assert_false(sample.synced);
	}
	assert_int_equal(renew(1), BL_CLOCK_NO_REASON);
	file.version = 3;
	assert_int_equal(renew(1), BL_CLOCK_CB_WRONG);
	assert_non_null(strstr(memory.detail, "80 bytes of version 3"));
	file.version = 0;
	assert_int_equal(renew(1), BL_CLOCK_CB_WRONG);
	set(2, BL_CB_SYNCHRONIZED, 1);
	file.size = sizeof(file) - 1;
	assert_int_equal(renew(1), BL_CLOCK_CB_WRONG);
	set(2, BL_CB_SYNCHRONIZED, 1);
	file.magic[1] ^= 1;
	assert_int_equal(renew(1), BL_CLOCK_CB_WRONG);
	file.magic[1] ^= 1;
	file.generation++; /* an update that is written, or whose writer was killed */
	assert_int_equal(renew(1), BL_CLOCK_CB_GONE);
	assert_non_null(strstr(memory.detail, "does not end"));
	file.generation = (uint16_t)-2; /* not initialised */
	assert_int_equal(renew(1), BL_CLOCK_CB_GONE);
	unlink(path);
	assert_int_equal(read_once(), BL_CLOCK_CB_GONE);
	assert_non_null(strstr(memory.detail, "No such file"));
	file.generation = 2;
	assert_int_equal(renew(1), BL_CLOCK_NO_REASON);
	options.socket = "/tmp";
	assert_int_equal(read_once(), BL_CLOCK_CB_GONE);
}

/* Two copies are one if nothing differs, and no update was under way. */
static void bl_cb_whole__copies(void **state)
{
	struct bl_clockbound again = file;

	(void)state;
	assert_true(bl_cb_whole(&file, &again));
	again.bound_ns++;
	assert_false(bl_cb_whole(&file, &again));
	again = file;
	again.generation += 2;
	assert_false(bl_cb_whole(&file, &again));
	file.generation = again.generation = 3;
	assert_false(bl_cb_whole(&file, &again));
	file.generation = again.generation = 0;
	assert_false(bl_cb_whole(&file, &again));
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(clockbound__good),         CASE(clockbound__not_synchronised),
		CASE(clockbound__stale),        CASE(clockbound__lies),
		CASE(clockbound__gone_between), CASE(clockbound__first_word),
		CASE(clockbound__files),        CASE(bl_cb_whole__copies),
	};

	return cmocka_run_group_tests(tests, make_file, NULL);
}
