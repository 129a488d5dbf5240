// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * standstill FILE - how long this machine's CPUs were away, a line for each second: CLOCK_BOOTTIME
 * in seconds at its end, milliseconds that the CPU which was away most was away in it, and the
 * longest time at a stretch.
 *
 * A thread on each CPU, before all others (SCHED_FIFO), wants to run every 10 ms. What keeps it
 * from that is not on this machine: a hypervisor that gives the CPU to somebody else. So what is
 * written here does not come from tests, however busy they are. It ends with its parent.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <time.h>

#define CPUS_MAX  1024
#define PERIOD_NS 10000000ULL
#define LATE_NS	  20000000ULL /* less says nothing: kernels without preemption are as late */

static uint64_t away_ns[CPUS_MAX], longest_ns[CPUS_MAX];

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t at)
{
	const struct timespec t = { (time_t)(at / 1000000000ULL), (long)(at % 1000000000ULL) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void *watch(void *arg)
{
	const struct sched_param first = { .sched_priority = 98 };
	size_t cpu = (size_t)(uintptr_t)arg;
	uint64_t at, n, late;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || sched_setscheduler(0, SCHED_FIFO, &first))
		return NULL; /* this one says nothing */
	for (at = now(CLOCK_MONOTONIC);; at = n > at ? n : at) {
		at += PERIOD_NS;
		sleep_until(at);
		n = now(CLOCK_MONOTONIC);
		late = n > at ? n - at : 0;
		if (late < LATE_NS)
			continue;
		__atomic_fetch_add(&away_ns[cpu], late, __ATOMIC_RELAXED);
		if (late > __atomic_load_n(&longest_ns[cpu], __ATOMIC_RELAXED))
			__atomic_store_n(&longest_ns[cpu], late, __ATOMIC_RELAXED);
	}
}

int main(int argc, char **argv)
{
	size_t cpus = (size_t)get_nprocs_conf(), k;
	uint64_t at = now(CLOCK_MONOTONIC);
	FILE *f = argc == 2 ? fopen(argv[1], "we") : NULL;

	if (!f) {
		fprintf(stderr, "usage: standstill FILE\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setvbuf(f, NULL, _IOLBF, 0);
	for (k = 0; k < cpus && k < CPUS_MAX; k++) {
		pthread_t t;

		if (pthread_create(&t, NULL, watch, (void *)(uintptr_t)k))
			return 1;
	}
	for (;;) {
		uint64_t most = 0, longest = 0, v;

		at += 1000000000ULL;
		sleep_until(at);
		for (k = 0; k < cpus && k < CPUS_MAX; k++) {
			v = __atomic_exchange_n(&away_ns[k], 0, __ATOMIC_RELAXED);
			most = v > most ? v : most;
			v = __atomic_exchange_n(&longest_ns[k], 0, __ATOMIC_RELAXED);
			longest = v > longest ? v : longest;
		}
		fprintf(f, "%llu %llu %llu\n", (unsigned long long)(now(CLOCK_BOOTTIME) / 1000000000ULL),
			(unsigned long long)(most / 1000000), (unsigned long long)(longest / 1000000));
	}
}
