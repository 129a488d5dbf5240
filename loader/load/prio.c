// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Scheduling of the datapath's threads: those of NAPI, those of CPU maps, and the beacon thread.
 *
 * On CPUs that are isolated for them (isolcpus=) they are SCHED_FIFO, where they keep no process
 * waiting. On CPUs that they share with applications they are ordinary threads with a time slice of
 * 0.1 ms (Linux 6.12). Their nice value is that of the daemon when it started if that is negative,
 * else 0, which ksoftirqd has, too. A thread that wakes with a shorter slice than the running
 * thread gets the CPU at once, as long as it has not had more than its share.
 *
 * That is the fastest of all that was measured (docs/design-notes.md): under SCHED_FIFO and under
 * nice -20 a process that was ready on such a CPU waited for 10 to 100 ms. The price: where a
 * hundred processes share a CPU, frames wait for 50 ms and more, unless the daemon was started with
 * a nice value below theirs. A kernel without time slices gets nice -20.
 *
 * Scheduling is a matter of speed only: the order holds under any delay. The beacon thread of a
 * single host is always SCHED_FIFO (beacon.c).
 */
#include "loader/load/prio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "loader/load/prio_priv.h"
#include "loader/load/tx_cpu.h"

#define NICE_FIRST (-20) /* the least nice value */

bool bl_cpus_isolated(const cpu_set_t *set, const char *isolated)
{
	cpu_set_t apart, both;

	if (!CPU_COUNT(set) || !bl_cpus_parse(isolated, &apart))
		return false;
	CPU_AND(&both, set, &apart);
	return CPU_EQUAL(&both, set);
}

static bool all_isolated(const cpu_set_t *set)
{
	char text[2048];

	return !bl_read_line(AT_FDCWD, "/sys/devices/system/cpu/isolated", text, sizeof(text)) &&
	       bl_cpus_isolated(set, text);
}

/*
 * Returns the nice value of the process before this file changed any. Two threads that are the
 * first to ask get the same answer.
 */
static int own_nice(void)
{
	static _Atomic int own = INT_MAX;

	if (own == INT_MAX)
		own = getpriority(PRIO_PROCESS, (id_t)getpid());
	return own;
}

/*
 * Makes @tid an ordinary thread with a short time slice. Returns false if the kernel refused that,
 * or ignored the slice.
 */
static bool set_short_slice(pid_t tid)
{
	struct bl_sched_attr attr = { .size = sizeof(attr),
				      .policy = SCHED_OTHER,
				      .runtime = BL_PRIO_SLICE_NS },
			     is = { 0 };

	attr.nice = own_nice() < 0 ? own_nice() : 0;
	return !syscall(SYS_sched_setattr, tid, &attr, 0) &&
	       !syscall(SYS_sched_getattr, tid, &is, sizeof(is), 0) &&
	       is.runtime == BL_PRIO_SLICE_NS;
}

int bl_prio_first(pid_t tid, const cpu_set_t *cpus, enum bl_realtime how, int rt_priority)
{
	struct sched_param rt = { .sched_priority = rt_priority }, none = { 0 };

	own_nice(); /* saves the value */
	if (how == BL_RT_ALWAYS || (how == BL_RT_AUTO && all_isolated(cpus)))
		return sched_setscheduler(tid, SCHED_FIFO, &rt) ? -errno : 0;
	if (set_short_slice(tid))
		return 0;
	/* An earlier daemon may have left another policy. */
	if (sched_setscheduler(tid, SCHED_OTHER, &none) ||
	    setpriority(PRIO_PROCESS, (id_t)tid, NICE_FIRST))
		return -errno;
	return 0;
}

void bl_prio_usual(pid_t tid)
{
	struct bl_sched_attr attr = { .size = sizeof(attr), .policy = SCHED_OTHER };
	struct sched_param none = { 0 };

	/* Without a time slice of its own a thread has the kernel's. */
	if (syscall(SYS_sched_setattr, tid, &attr, 0) &&
	    !sched_setscheduler(tid, SCHED_OTHER, &none))
		setpriority(PRIO_PROCESS, (id_t)tid, 0);
}

int bl_realtime_parse(const char *text)
{
	static const char *const names[] = {
		[BL_RT_AUTO] = "auto", [BL_RT_ALWAYS] = "always", [BL_RT_NEVER] = "never"
	};

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (!strcmp(text, names[k]))
			return (int)k;
	return -1;
}
