// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/load/prio.c: FIFO where the CPU is isolated, or where it was requested; otherwise an
 * ordinary thread with a short slice, or with nice -20 where the kernel has no slices.
 */
#include "tests/unit/unit.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "loader/load/prio.h"
#include "loader/load/prio_priv.h"

static void alone_on__table(void **state)
{
	static const struct {
		uint64_t cpus;
		const char *isolated;
		bool alone;
	} v[] = {
		{ 1, "", false },        { 1, "0", true },    { 1, "1", false },
		{ 2, "1-3", true },      { 3, "1-3", false }, { 6, "1-3,7", true },
		{ 0x80, "1-3,7", true }, { 0, "0-7", false }, { 1, "nonsense", false },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(v); k++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		for (unsigned int b = 0; b < 64; b++)
			if (v[k].cpus >> b & 1)
				CPU_SET(b, &set);
		if (bl_cpus_isolated(&set, v[k].isolated) != v[k].alone)
			fail_msg("%llx of \"%s\"", (unsigned long long)v[k].cpus, v[k].isolated);
	}
}

static void realtime__words(void **state)
{
	(void)state;
	assert_int_equal(bl_realtime_parse("auto"), BL_RT_AUTO);
	assert_int_equal(bl_realtime_parse("always"), BL_RT_ALWAYS);
	assert_int_equal(bl_realtime_parse("never"), BL_RT_NEVER);
	assert_int_equal(bl_realtime_parse("share"), -1);
	assert_int_equal(bl_realtime_parse(""), -1);
	assert_int_equal(bl_realtime_parse("Auto"), -1);
}

/* The kernel has slices since Linux 6.12. */
static bool has_slices(void)
{
	struct utsname u;
	unsigned int major = 0, minor = 0;

	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%u.%u", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 12);
}

static uint64_t slice_of(pid_t tid)
{
	struct bl_sched_attr is = { 0 };

	assert_int_equal(syscall(SYS_sched_getattr, tid, &is, sizeof(is), 0), 0);
	return is.runtime;
}

/*
 * Checks for an ordinary thread with a short slice and @nice; on a kernel without slices, for one
 * with nice -20.
 */
static void expect_sliced(pid_t tid, int nice)
{
	assert_int_equal(sched_getscheduler(tid), SCHED_OTHER);
	assert_int_equal(slice_of(tid) == BL_PRIO_SLICE_NS, has_slices());
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)tid), has_slices() ? nice : -20);
}

/*
 * The thread's scheduling is changed and changed back. Without the permission the test is skipped.
 */
static void bl_prio_first__there_and_back(void **state)
{
	int own = getpriority(PRIO_PROCESS, (id_t)getpid());
	cpu_set_t none;
	pid_t tid = gettid();

	(void)state;
	CPU_ZERO(&none); /* an empty set, so no CPU is isolated */
	if (bl_prio_first(tid, &none, BL_RT_ALWAYS, 1))
		skip();
	assert_int_equal(sched_getscheduler(tid), SCHED_FIFO);
	assert_int_equal(bl_prio_first(tid, &none, BL_RT_AUTO, 1), 0);
	expect_sliced(tid, own < 0 ? own : 0);
	assert_int_equal(bl_prio_first(tid, &none, BL_RT_ALWAYS, 1), 0);
	/* A nice value that was set later is not taken as the daemon's own. */
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)tid, -7), 0);
	assert_int_equal(bl_prio_first(tid, &none, BL_RT_NEVER, 1), 0);
	expect_sliced(tid, own < 0 ? own : 0);
	bl_prio_usual(tid);
	assert_int_equal(sched_getscheduler(tid), SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)tid), 0);
	assert_int_not_equal(slice_of(tid), BL_PRIO_SLICE_NS);
	assert_int_equal(bl_prio_first(tid, &none, BL_RT_ALWAYS, 1), 0);
	bl_prio_usual(tid);
	assert_int_equal(sched_getscheduler(tid), SCHED_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone_on__table),
		cmocka_unit_test(realtime__words),
		cmocka_unit_test(bl_prio_first__there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
