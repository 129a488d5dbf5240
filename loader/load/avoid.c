// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See avoid.h. */
#include "loader/load/avoid.h"

bool bl_cpus_avoid(const cpu_set_t *busy, cpu_set_t *before)
{
	cpu_set_t others;

	if (sched_getaffinity(0, sizeof(*before), before))
		return false;
	CPU_AND(&others, before, busy);
	CPU_XOR(&others, before, &others);
	return CPU_COUNT(&others) && !CPU_EQUAL(&others, before) &&
	       !sched_setaffinity(0, sizeof(others), &others);
}

void bl_cpus_return(const cpu_set_t *before)
{
	sched_setaffinity(0, sizeof(*before), before);
}
