// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/fastpass/fcp_vain_core.h: when a host falls back from Fastpass, and when it does not. */
#include "tests/unit/unit.h"

#include "core/fastpass/fcp_vain_core.h"

#define MS    1000000ULL
#define LIMIT (1000 * MS)

/*
 * Scans without an answer every @every ns until @end. Returns the time at which the host fell back,
 * or 0.
 */
static __u64 scan_in_vain(struct bl_fcp_vain *v, __u64 from, __u64 every, __u64 end)
{
	__u64 t;

	for (t = from; t <= end; t += every)
		if (bl_fcp_vain_step(v, t, 1, 0, LIMIT)) {
			assert_int_equal(v->fallen, 1);
			return t;
		}
	assert_int_equal(v->fallen, 0);
	return 0;
}

static void falls__after_the_limit(void **state)
{
	static const __u64 every[] = { 10000, MS, 50 * MS, 125 * MS };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(every) / sizeof(every[0]); i++) {
		struct bl_fcp_vain v = { 0 };
		__u64 t = scan_in_vain(&v, 77, every[i], 5 * LIMIT);

		assert_in_range(t, 77 + LIMIT, 77 + LIMIT + LIMIT / 16 + every[i]);
	}
}

/*
 * Scans that are far apart, as on a machine that hardly runs, count one by one: eight are needed.
 */
static void falls__eight_looks_at_least(void **state)
{
	struct bl_fcp_vain v = { 0 };

	(void)state;
	assert_int_equal(scan_in_vain(&v, 1, LIMIT, 100 * LIMIT), 1 + 7 * LIMIT);
}

/*
 * A daemon that was stopped for an hour scans for half of the limit, less what it scanned before.
 */
static void stopped__not_for_that(void **state)
{
	struct bl_fcp_vain v = { 0 };
	const __u64 hour = 3600 * 1000 * MS;

	(void)state;
	assert_int_equal(scan_in_vain(&v, 1, MS, 100 * MS), 0);
	assert_int_equal(scan_in_vain(&v, hour, 10000, hour + 300 * MS), 0);
	assert_int_equal(bl_fcp_vain_step(&v, hour + 301 * MS, 1, 1, LIMIT), 0);
	assert_true(!v.since_ns && !v.turns);
	assert_int_equal(scan_in_vain(&v, hour + 302 * MS, MS, hour + 1300 * MS), 0);
	assert_true(scan_in_vain(&v, hour + 1301 * MS, MS, hour + 1400 * MS));
}

static void answered__comes_back(void **state)
{
	struct bl_fcp_vain v = { 0 };
	__u64 t = scan_in_vain(&v, 0, MS, 2 * LIMIT);

	(void)state;
	assert_true(t);
	/* Neither time nor an empty demand ends the fallback; only an answer does. */
	assert_int_equal(bl_fcp_vain_step(&v, t + LIMIT, 1, 0, LIMIT), 0);
	assert_int_equal(bl_fcp_vain_step(&v, t + LIMIT, 0, 0, LIMIT), 0);
	assert_int_equal(v.fallen, 1);
	assert_int_equal(bl_fcp_vain_step(&v, t + LIMIT, 0, 1, LIMIT), 1);
	assert_int_equal(v.fallen, 0);
	assert_int_equal(bl_fcp_vain_step(&v, t + LIMIT, 0, 1, LIMIT), 0);
	/* The next fallback takes as long. */
	assert_int_equal(scan_in_vain(&v, t + LIMIT, MS, t + 2 * LIMIT - 1), 0);
}

static void wants_nothing__waits_for_nobody(void **state)
{
	struct bl_fcp_vain v = { 0 };
	__u64 t;

	(void)state;
	for (t = 1; t < 10 * LIMIT; t += 60 * MS)
		assert_int_equal(bl_fcp_vain_step(&v, t, 0, 0, LIMIT), 0);
	assert_int_equal(v.fallen, 0);
	assert_int_equal(scan_in_vain(&v, t, MS, t + 900 * MS), 0);
	assert_int_equal(bl_fcp_vain_step(&v, t + 901 * MS, 0, 0, LIMIT), 0);
	assert_int_equal(scan_in_vain(&v, t + 902 * MS, MS, t + 1900 * MS), 0);
}

static void never__with_no_limit(void **state)
{
	struct bl_fcp_vain v = { 0 };
	__u64 t;

	(void)state;
	for (t = 1; t < 100 * LIMIT; t += 60 * MS)
		assert_int_equal(bl_fcp_vain_step(&v, t, 1, 0, 0), 0);
	v.fallen = 1; /* The configuration file was changed. */
	assert_int_equal(bl_fcp_vain_step(&v, t, 1, 0, 0), 1);
	assert_int_equal(v.fallen, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(falls__after_the_limit),
		cmocka_unit_test(falls__eight_looks_at_least),
		cmocka_unit_test(stopped__not_for_that),
		cmocka_unit_test(answered__comes_back),
		cmocka_unit_test(wants_nothing__waits_for_nobody),
		cmocka_unit_test(never__with_no_limit),
	};

	return cmocka_run_group_tests_name("fcp_vain_core", tests, NULL, NULL);
}
