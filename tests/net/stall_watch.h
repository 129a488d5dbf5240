/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures the time for which the machine keeps a rack's threads from running. A thread samples
 * every STALL_MS how long the rack's threads have waited for a CPU since the previous sample
 * (/proc/PID/task/TID/schedstat counts every wait), and how late the sampling thread is itself.
 *
 * 	stall_watch(pids, n);		these processes from now on, with all their threads
 * 	from = t_mono();
 * 	...
 * 	stall_worst(from, t_mono());	the longest wait of one thread
 * 	stall_lost(from, t_mono());	the sum, over all samples, of the longest wait in each
 *
 * The kernel's threads for NAPI and soft interrupts are watched as well, because frames pass there.
 * One more thread per CPU measures how late it is: a virtual CPU that its host takes away runs
 * nothing, and the thread that was on that CPU does not count as waiting.
 */
#ifndef BARLINE_TESTS_STALL_WATCH_H
#define BARLINE_TESTS_STALL_WATCH_H

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/net/rack.h"

#define STALL_MS      20
#define STALL_PIDS    64
#define STALL_THREADS 512
#define STALL_LOOKS   8192 /* samples; 160 s */
#define STALL_CPUS    64
#define STALL_AGAIN   100 /* number of samples after which the threads are listed again */

struct stall_thread {
	pid_t tid;
	int fd;
	uint64_t delay;
	bool there;
};

struct stall_look {
	uint64_t at, ns;
};

static struct {
	pthread_mutex_t lock;
	pthread_t thread;
	bool running, again;
	pid_t pids[STALL_PIDS];
	unsigned int npids, nthreads;
	struct stall_thread threads[STALL_THREADS];
	struct stall_look looks[STALL_LOOKS];
	uint64_t nlooks;
	_Atomic uint64_t
		tick[STALL_CPUS]; /* time at which the CPU's thread last ran; 0: the CPU has none */
} stalls = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Returns the ns that a thread has waited on a run queue; UINT64_MAX: the thread is gone. */
T_FN uint64_t stall_delay(int fd)
{
	unsigned long long ran, waited;
	char text[96];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return UINT64_MAX;
	text[n] = 0;
	return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? waited : UINT64_MAX;
}

T_FN void stall_add(pid_t pid, pid_t tid)
{
	struct stall_thread *t;
	char path[64];
	unsigned int i;

	for (i = 0; i < stalls.nthreads; i++)
		if (stalls.threads[i].tid == tid) {
			stalls.threads[i].there = true;
			return;
		}
	if (stalls.nthreads == STALL_THREADS)
		return;
	t = &stalls.threads[stalls.nthreads];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	t->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0)
		return;
	t->tid = tid;
	t->delay = stall_delay(t->fd);
	t->there = true;
	stalls.nthreads++;
}

T_FN void stall_find(void)
{
	char path[64], name[64];
	struct dirent *e;
	unsigned int i, k;
	DIR *d;

	for (i = 0; i < stalls.nthreads; i++)
		stalls.threads[i].there = false;
	for (i = 0; i < stalls.npids; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task", stalls.pids[i]);
		d = opendir(path);
		while (d && (e = readdir(d)))
			if (e->d_name[0] != '.')
				stall_add(stalls.pids[i], atoi(e->d_name));
		if (d)
			closedir(d);
	}
	d = opendir("/proc");
	while (d && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name);
		FILE *f;

		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f) &&
		    (!strncmp(name, "napi/", 5) || !strncmp(name, "ksoftirqd/", 10)))
			stall_add(pid, pid);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	for (i = k = 0; i < stalls.nthreads; i++) {
		if (stalls.threads[i].there)
			stalls.threads[k++] = stalls.threads[i];
		else
			close(stalls.threads[i].fd);
	}
	stalls.nthreads = k;
}

/* Runs on one CPU and publishes when it ran last. */
T_FN void *stall_tick(void *ctx)
{
	unsigned int cpu = (unsigned int)(uintptr_t)ctx;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		return NULL;
	for (;;) {
		atomic_store(&stalls.tick[cpu], t_mono());
		usleep(STALL_MS * 500);
	}
	return NULL;
}

/*
 * Returns the longest time for which a CPU's thread has been late between the samples at @last and
 * @now.
 */
T_FN uint64_t stall_late(uint64_t last, uint64_t now)
{
	uint64_t worst = 0;
	unsigned int i;

	for (i = 0; i < STALL_CPUS; i++) {
		uint64_t due = atomic_load(&stalls.tick[i]);

		if (!due)
			continue;
		due += STALL_MS * 1000000ULL;
		due = due > last ? due : last;
		if (now > due && now - due > worst)
			worst = now - due;
	}
	return worst;
}

T_FN void *stall_run(void *ctx)
{
	uint64_t last = t_mono(), now;
	unsigned int i;

	(void)ctx;
	for (;;) {
		struct stall_look *look;
		uint64_t worst = 0;

		usleep(STALL_MS * 1000);
		pthread_mutex_lock(&stalls.lock);
		now = t_mono();
		if (now - last > STALL_MS * 1000000ULL)
			worst = now - last - STALL_MS * 1000000ULL;
		if (stall_late(last, now) > worst)
			worst = stall_late(last, now);
		for (i = 0; i < stalls.nthreads; i++) {
			uint64_t d = stall_delay(stalls.threads[i].fd), more;

			if (d == UINT64_MAX)
				continue;
			more = d - stalls.threads[i].delay;
			worst = more > worst && stalls.threads[i].delay != UINT64_MAX ? more
										      : worst;
			stalls.threads[i].delay = d;
		}
		if (stalls.again || !(stalls.nlooks % STALL_AGAIN))
			stall_find();
		stalls.again = false;
		look = &stalls.looks[stalls.nlooks++ % STALL_LOOKS];
		*look = (struct stall_look){ .at = now, .ns = worst };
		last = now;
		pthread_mutex_unlock(&stalls.lock);
	}
	return NULL;
}

T_FN void stall_begin(void)
{
	pthread_t tick;
	cpu_set_t set;
	uintptr_t i;

	CHECK(!pthread_create(&stalls.thread, NULL, stall_run, NULL), "no thread");
	CPU_ZERO(&set);
	CHECK(!sched_getaffinity(0, sizeof(set), &set), "%s", strerror(errno));
	for (i = 0; i < STALL_CPUS; i++)
		if (CPU_ISSET(i, &set))
			CHECK(!pthread_create(&tick, NULL, stall_tick, (void *)i), "no thread");
}

T_FN void stall_watch(const pid_t *pids, unsigned int n)
{
	CHECK(n <= STALL_PIDS, "%u processes", n);
	pthread_mutex_lock(&stalls.lock);
	memcpy(stalls.pids, pids, n * sizeof(*pids));
	stalls.npids = n;
	stalls.again = true;
	pthread_mutex_unlock(&stalls.lock);
	if (!stalls.running)
		stall_begin();
	stalls.running = true;
}

/*
 * Sums the samples between @from and @to. A wait is counted when it ends, so the samples right
 * after @to count as well.
 */
T_FN void stall_sum(uint64_t from, uint64_t to, uint64_t *worst, uint64_t *sum)
{
	uint64_t i, begin;

	*worst = *sum = 0;
	pthread_mutex_lock(&stalls.lock);
	begin = stalls.nlooks > STALL_LOOKS ? stalls.nlooks - STALL_LOOKS : 0;
	for (i = begin; i < stalls.nlooks; i++) {
		const struct stall_look *l = &stalls.looks[i % STALL_LOOKS];

		if (l->at < from || l->at > to + 2 * STALL_MS * 1000000ULL)
			continue;
		*worst = l->ns > *worst ? l->ns : *worst;
		*sum += l->ns;
	}
	pthread_mutex_unlock(&stalls.lock);
}

T_FN uint64_t stall_worst(uint64_t from, uint64_t to)
{
	uint64_t worst, sum;

	stall_sum(from, to, &worst, &sum);
	return worst;
}

T_FN uint64_t stall_lost(void *ctx, uint64_t from, uint64_t to)
{
	uint64_t worst, sum;

	(void)ctx;
	stall_sum(from, to, &worst, &sum);
	return sum;
}

#endif
