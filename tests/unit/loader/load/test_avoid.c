// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* loader/load/avoid.c: a thread keeps off the datapath's CPUs where it may run on others. */
#include "tests/unit/unit.h"

#include "loader/load/avoid.h"

static cpu_set_t all; /* the CPUs of this process */

static int read_all(void **state)
{
	(void)state;
	return sched_getaffinity(0, sizeof(all), &all);
}

static void assert_on(const cpu_set_t *set)
{
	cpu_set_t now;

	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, set));
}

/* The first CPU of this process alone. */
static cpu_set_t first_cpu(void)
{
	cpu_set_t one;
	int cpu = 0;

	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return one;
}

static void avoid__one_of_several(void **state)
{
	cpu_set_t one = first_cpu(), others, before;

	(void)state;
	CPU_XOR(&others, &all, &one);
	if (!CPU_COUNT(&others)) {
		print_message("needs 2 CPUs: avoid__one_of_several\n");
		skip();
	}
	assert_true(bl_cpus_avoid(&one, &before));
	assert_true(CPU_EQUAL(&before, &all));
	assert_on(&others);
	/* Once more changes nothing, and would not be undone by mistake. */
	assert_false(bl_cpus_avoid(&one, &before));
	assert_on(&others);
	bl_cpus_return(&all);
	assert_on(&all);
}

/* There are no others, or the thread is on none of them: it stays. */
static void avoid__changes_nothing(void **state)
{
	cpu_set_t busy = all, before;

	(void)state;
	assert_false(bl_cpus_avoid(&busy, &before));
	assert_on(&all);
	CPU_ZERO(&busy);
	assert_false(bl_cpus_avoid(&busy, &before));
	assert_on(&all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (!CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &busy);
	assert_false(bl_cpus_avoid(&busy, &before));
	assert_on(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(avoid__one_of_several),
		cmocka_unit_test(avoid__changes_nothing),
	};

	return cmocka_run_group_tests(tests, read_all, NULL);
}
