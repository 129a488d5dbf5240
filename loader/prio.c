// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Before whom the datapath's threads go: those of NAPI, those of CPU maps, the one that sends beacons.
 *
 * On a CPU that is theirs alone (isolcpus=) they are SCHED_FIFO: nobody is kept waiting by it. On a CPU that they share with applications they are ordinary threads of nice -20: they get the
 * CPU first, and the scheduler sees that something is left to others. Under SCHED_FIFO a process that was ready on that CPU waited for it for 10 to 100 ms (p99 of 8 hosts on 2 CPUs that
 * all talk at 1000 messages a second, 2026-11). It is a matter of speed only: the order holds under any delay. The beacon thread of a single host is SCHED_FIFO anyway (beacon.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "node_priv.h"

#define NICE_FIRST (-20)

/* All CPUs of @set, and there is one, are in the list that @isolated has: "" or "2-3,7". */
static bool alone_on(const cpu_set_t *set, const char *isolated)
{
	cpu_set_t apart, both;

	if (!CPU_COUNT(set) || !bl_cpus_parse(isolated, &apart))
		return false;
	CPU_AND(&both, set, &apart);
	return CPU_EQUAL(&both, set);
}

static bool isolated(const cpu_set_t *set)
{
	char text[2048] = "";
	int fd = open("/sys/devices/system/cpu/isolated", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return false;
	text[strcspn(text, "\n")] = 0;
	return alone_on(set, text);
}

int bl_prio_first(pid_t tid, const cpu_set_t *cpus, enum bl_realtime how, int rt_priority)
{
	struct sched_param rt = { .sched_priority = rt_priority }, none = { 0 };

	if (how == BL_RT_ALWAYS || (how == BL_RT_AUTO && isolated(cpus)))
		return sched_setscheduler(tid, SCHED_FIFO, &rt) ? -errno : 0;
	/* an earlier daemon may have left it otherwise */
	if (sched_setscheduler(tid, SCHED_OTHER, &none) || setpriority(PRIO_PROCESS, (id_t)tid, NICE_FIRST))
		return -errno;
	return 0;
}

int bl_realtime_parse(const char *text)
{
	static const char *const names[] = { [BL_RT_AUTO] = "auto", [BL_RT_ALWAYS] = "always", [BL_RT_NEVER] = "never" };

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (!strcmp(text, names[k]))
			return (int)k;
	return -1;
}
