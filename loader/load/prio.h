/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scheduling of the datapath's threads; prio.c has the reasons. */
#ifndef BARLINE_PRIO_H
#define BARLINE_PRIO_H

#include <sched.h>
#include <sys/types.h>

/**
 * enum bl_realtime - when the datapath's threads are real-time threads: the option `realtime`.
 * @BL_RT_AUTO: SCHED_FIFO on CPUs that are isolated (isolcpus=), where no process waits for them;
 * as BL_RT_NEVER elsewhere.
 * @BL_RT_ALWAYS: SCHED_FIFO.
 * @BL_RT_NEVER: ordinary threads with a short time slice and the nice value of the daemon. On a
 * kernel without time slices (before Linux 6.12): nice -20.
 */
enum bl_realtime { BL_RT_AUTO, BL_RT_ALWAYS, BL_RT_NEVER };

/** bl_realtime_parse - "auto", "always" or "never"; -1: something else. */
int bl_realtime_parse(const char *text);

/**
 * bl_prio_first - lets thread @tid run before processes.
 * @cpus: the CPUs that the thread runs on; BL_RT_AUTO depends on whether they are isolated.
 * @rt_priority: priority under SCHED_FIFO.
 * Returns 0 or -errno; after an error the thread works, but later under load.
 */
int bl_prio_first(pid_t tid, const cpu_set_t *cpus, enum bl_realtime how, int rt_priority);

/** bl_prio_usual - undoes bl_prio_first(): @tid is scheduled as a new kernel thread is. */
void bl_prio_usual(pid_t tid);

#endif
