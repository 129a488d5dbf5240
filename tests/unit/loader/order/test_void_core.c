// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* loader/order/void_core.h: which sends stand still, and for how long. */
#include "tests/unit/unit.h"

#include "loader/order/void_core.h"

#define MS    1000000ULL
#define LIMIT (20 * MS)
#define STEP  (LIMIT / BL_SEND_SAMPLES)
#define MOST  (1000 * LIMIT)
#define BUS   (1ULL << 60)

static struct bl_send_watch w;
static uint64_t now, most;

static int begin(void **state)
{
	(void)state;
	w = (struct bl_send_watch){ 0 };
	now = 1000 * MS;
	most = MOST;
	return 0;
}

/* One sample, @after ns later, of a line that says @ts. */
static bool sample(uint64_t after, uint64_t ts, uint64_t waited)
{
	now += after;
	return bl_send_sample(&w, ts, bl_send_stands(&w, ts, 0), waited, now, BUS + now, LIMIT,
			      most);
}

static void stands__edges(void **state)
{
	const struct bl_send_watch seen = { .at_ns = 1, .ts = 100, .bus_ns = 200 };
	const struct {
		struct bl_send_watch w;
		uint64_t ts, over;
		bool want;
	} t[] = {
		{ { 0 }, 100, 0, false }, /* the first sample */
		{ seen, 100, 0, true },
		{ seen, 100, 99, true },
		{ seen, 100, 100, false }, /* it is void already */
		{ seen, 0, 0, false },
		{ seen, BL_TIME_NONE, 0, false },
		{ seen, 199, 0, true }, /* changed, to a time from before the last sample */
		{ seen, 1, 0, true },
		{ seen, 200, 0, false }, /* a new send */
		{ { .at_ns = 1, .ts = BL_TIME_NONE, .bus_ns = 200 }, 100, 0, false },
		{ { .at_ns = 1, .bus_ns = 200 }, 100, 0, false },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_send_stands(&t[i].w, t[i].ts, t[i].over), t[i].want);
}

static void sample__after_the_limit(void **state)
{
	const uint64_t ts = BUS + now;
	unsigned int i;

	(void)state;
	for (i = 0; i < BL_SEND_SAMPLES; i++)
		assert_false(sample(STEP, ts, 0));
	assert_true(sample(STEP, ts, 0));
	/* another send begins at 0 */
	assert_false(sample(STEP, BUS + now + STEP - 1, 0));
	assert_int_equal(w.age_ns, 0);
}

/* A process that writes one old time after the other is in one send for all that. */
static void sample__old_times(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < BL_SEND_SAMPLES; i++)
		assert_false(sample(STEP, BUS + i + 1, 0));
	assert_true(sample(STEP, BUS + 50, 0));
}

/* A process that sends all the time is never in the same send twice. */
static void sample__busy_sender(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		assert_false(sample(STEP, BUS + now + STEP / 2, 0));
}

static void sample__machine_stands_still(void **state)
{
	const uint64_t ts = BUS + now;

	(void)state;
	assert_false(sample(STEP, ts, 0));
	assert_false(sample(1000 * LIMIT, ts, 0)); /* counts for two intervals */
	assert_int_equal(w.age_ns, 2 * STEP);
	assert_false(sample(STEP, ts, 0));
	assert_true(sample(STEP, ts, 0));
}

/* Time without a CPU does not count, and neither does the sample that learns how much it was. */
static void sample__no_cpu(void **state)
{
	const uint64_t ts = BUS + now;
	uint64_t waited = 700 * MS;
	unsigned int i;

	(void)state;
	assert_false(sample(STEP, ts, 0));
	assert_false(sample(STEP, ts, waited));
	assert_int_equal(w.age_ns, 0);
	for (i = 0; i < 100; i++)
		assert_false(sample(STEP, ts, waited += STEP));
	assert_int_equal(w.age_ns, 0);
	assert_false(sample(STEP, ts, waited += STEP / 2));
	assert_int_equal(w.age_ns, STEP / 2);
	assert_false(sample(STEP, ts, waited += 5 * STEP)); /* by several threads */
	for (i = 0; i < 3; i++)
		assert_false(sample(STEP, ts, waited));
	assert_true(sample(STEP, ts, waited));
}

/* A process whose threads take the CPU from each other does not hold B for ever. */
static void sample__no_cpu_for_too_long(void **state)
{
	const uint64_t ts = BUS + now;
	uint64_t waited = 700 * MS;
	unsigned int i;

	(void)state;
	most = 50 * MS;
	assert_false(sample(STEP, ts, waited));
	for (i = 0; i < 9; i++)
		assert_false(sample(STEP, ts, waited += 8 * STEP));
	assert_true(sample(STEP, ts, waited += 8 * STEP));
	assert_int_equal(w.age_ns, 0);
	assert_int_equal(w.all_ns, 50 * MS);
	/* another send */
	assert_false(sample(STEP, BUS + now + STEP / 2, waited += 8 * STEP));
	assert_int_equal(w.all_ns, 0);
}

/* What void sends have held adds up, less a tenth of the time. */
static void voided__adds_up(void **state)
{
	unsigned int i;

	(void)state;
	w.all_ns = 20 * MS;
	assert_false(bl_send_voided(&w, now, 20 * MS + 1)); /* nothing to forget yet */
	assert_int_equal(w.held_ns, 20 * MS);
	for (i = 0; i < 1000; i++) { /* a tenth of the time */
		now += 200 * MS;
		assert_false(bl_send_voided(&w, now, 20 * MS + 1));
	}
	now += 199 * MS;
	assert_true(bl_send_voided(&w, now, 20 * MS + 100000));
	now += 1000 * MS;
	assert_false(bl_send_voided(&w, now, 2000 * MS));
	assert_int_equal(w.held_ns, 20 * MS);
	for (i = 2; i < 125; i++) { /* half of the time */
		now += 40 * MS;
		assert_false(bl_send_voided(&w, now, 2000 * MS));
	}
	now += 40 * MS;
	assert_true(bl_send_voided(&w, now, 2000 * MS));
	assert_int_equal(w.held_ns, 20 * MS + 124 * 16 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stands__edges, begin),
		cmocka_unit_test_setup(sample__after_the_limit, begin),
		cmocka_unit_test_setup(sample__old_times, begin),
		cmocka_unit_test_setup(sample__busy_sender, begin),
		cmocka_unit_test_setup(sample__machine_stands_still, begin),
		cmocka_unit_test_setup(sample__no_cpu, begin),
		cmocka_unit_test_setup(sample__no_cpu_for_too_long, begin),
		cmocka_unit_test_setup(voided__adds_up, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
