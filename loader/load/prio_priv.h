/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the unit test of prio.c looks at. */
#ifndef BARLINE_PRIO_PRIV_H
#define BARLINE_PRIO_PRIV_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define BL_PRIO_SLICE_NS 100000 /* the shortest time slice that the kernel accepts */

/**
 * struct bl_sched_attr - the first version of the kernel's struct sched_attr. <linux/sched/types.h>
 * and <sched.h> cannot be included together.
 */
struct bl_sched_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime; /* of SCHED_OTHER: the time slice, in ns */
	uint64_t deadline, period;
};

/**
 * bl_cpus_isolated - whether @set is not empty and each of its CPUs is in @isolated, a list such as
 * "2-3,7".
 */
bool bl_cpus_isolated(const cpu_set_t *set, const char *isolated);

#endif
