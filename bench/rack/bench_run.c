/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The driver: forks the workers and leads them through the phases (bench.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/rack/bench.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"

#define READY_TIMEOUT_S 10
#define DRAIN_QUIET_NS  1000000000ull
/* reliable: retransmissions may be lost, too, and the time between them doubles */
#define DRAIN_AGAIN_NS 30000000000ull
#define SAMPLE_US      2000
#define WARM_UP        0.1 /* share of the duration that is not measured */

struct bench_ctl *bench_new(unsigned int n, const struct bench_params *p)
{
	struct bench_ctl *ctl = mmap(NULL, sizeof(*ctl), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (ctl == MAP_FAILED) {
		cli_fail("cannot map the control block: %s", strerror(errno));
		return NULL;
	}
	ctl->p = *p;
	ctl->n = n;
	return ctl;
}

void bench_free(struct bench_ctl *ctl)
{
	munmap(ctl, sizeof(*ctl));
}

int bench_spawn(struct bench_ctl *ctl, unsigned int i, const char *netns)
{
	pid_t pid;
	int fd;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return cli_fail("cannot fork worker %u: %s", i + 1, strerror(errno));
	if (pid) {
		ctl->w[i].pid = pid;
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (netns) {
		fd = open(netns, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || setns(fd, CLONE_NEWNET)) {
			snprintf(ctl->w[i].error, sizeof(ctl->w[i].error), "%s: %s", netns,
				 strerror(errno));
			atomic_store(&ctl->w[i].ready, -1);
			_exit(1);
		}
		close(fd);
	}
	_exit(bench_worker_main(ctl, i));
}

int bench_wait_ready(struct bench_ctl *ctl)
{
	uint64_t until = bl_mono_ns() + READY_TIMEOUT_S * 1000000000ull;
	unsigned int i = 0;

	while (i < ctl->n) {
		if (bench_worker_lost(ctl))
			return 1;
		if (bl_mono_ns() > until)
			return cli_fail("worker %u has no endpoint after %d s", i + 1,
					READY_TIMEOUT_S);
		if (atomic_load(&ctl->w[i].ready) == 1)
			i++;
		else
			nap_ns(2000000);
	}
	atomic_store(&ctl->phase, PH_IDLE);
	nap_ns(200000000); /* hundreds of beacons, so that every link is live */
	return 0;
}

static uint64_t count_delivered(const struct bench_ctl *ctl)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < ctl->n; i++)
		sum += atomic_load(&ctl->w[i].delivered);
	return sum;
}

static uint64_t count_failed(const struct bench_ctl *ctl)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < ctl->n; i++)
		sum += ctl->w[i].send_failed;
	return sum;
}

/* returns after how long without a delivery the drain ends */
static uint64_t quiet_ns(const struct bench_ctl *ctl)
{
	return ctl->p.reliable && !count_failed(ctl) ? DRAIN_AGAIN_NS : DRAIN_QUIET_NS;
}

static uint64_t count_sent(const struct bench_ctl *ctl)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < ctl->n; i++)
		sum += atomic_load(&ctl->w[i].sent);
	return sum;
}

static int drain_messages(struct bench_ctl *ctl, double *secs)
{
	uint64_t start = bl_mono_ns(), last_change = start, before = count_delivered(ctl);

	atomic_store(&ctl->phase, PH_DRAIN);
	for (;;) {
		uint64_t d, now;

		nap_ns(2000000);
		if (bench_worker_lost(ctl))
			return 1;
		d = count_delivered(ctl);
		now = bl_mono_ns();
		if (d != before)
			last_change = now;
		before = d;
		/*
		 * Messages in a worker's send buffer count as sent. So the drain ends when all are
		 * delivered, or after a time without deliveries.
		 */
		if (d == count_sent(ctl) * ctl->n && now - start > 50000000)
			break;
		if (now - last_change > quiet_ns(ctl))
			break;
	}
	*secs = (double)(last_change - start) / 1e9;
	return 0;
}

int bench_throughput(struct bench_ctl *ctl, json_t *res)
{
	uint64_t start = bl_mono_ns(), end = start + (uint64_t)(ctl->p.duration_s * 1e9),
		 warm = start + (uint64_t)(ctl->p.duration_s * WARM_UP * 1e9);
	uint64_t t0 = 0, d0 = 0, t1, d1, w0[BENCH_MAX] = { 0 }, w1[BENCH_MAX];
	struct bench_lag *lag = bench_lag_new();
	json_t *per_host = json_array();
	double drained;
	unsigned int i;
	int err = 0;

	atomic_store(&ctl->phase, PH_ALL);
	while (!err && bl_mono_ns() < end) {
		nap_ns(SAMPLE_US * 1000);
		err = bench_worker_lost(ctl);
		bench_lag_sample(lag);
		if (!t0 && bl_mono_ns() >= warm) {
			t0 = bl_mono_ns();
			d0 = count_delivered(ctl);
			for (i = 0; i < ctl->n; i++)
				w0[i] = atomic_load(&ctl->w[i].delivered);
		}
		out_progress("all-to-all: %.1f of %.1f s, %" PRIu64 " messages delivered",
			     (double)(bl_mono_ns() - start) / 1e9, ctl->p.duration_s,
			     count_delivered(ctl));
	}
	t1 = bl_mono_ns();
	d1 = count_delivered(ctl);
	for (i = 0; i < ctl->n; i++) {
		w1[i] = atomic_load(&ctl->w[i].delivered);
		json_array_append_new(
			per_host,
			json_real(t0 ? (double)(w1[i] - w0[i]) * 1e9 / (double)(t1 - t0) : 0));
	}
	if (!err) {
		out_progress("draining");
		err = drain_messages(ctl, &drained);
	}
	out_progress_end();
	json_object_set_new(res, "lag", bench_lag_end(lag));
	if (err) {
		json_decref(per_host);
		return 1;
	}
	json_object_set_new(
		res, "throughput",
		json_pack("{s:f, s:f, s:o, s:I, s:I, s:I, s:f}", "seconds", (double)(t1 - t0) / 1e9,
			  "messages_per_s", t0 ? (double)(d1 - d0) * 1e9 / (double)(t1 - t0) : 0.0,
			  "per_host", per_host, "scatterings", (json_int_t)count_sent(ctl), "sent",
			  (json_int_t)(count_sent(ctl) * ctl->n), "delivered",
			  (json_int_t)count_delivered(ctl), "drain_s", drained));
	atomic_store(&ctl->phase, PH_IDLE);
	return bench_order(ctl, res);
}

static int run_latency_cell(struct bench_ctl *ctl, int cell)
{
	uint64_t last_change;
	uint32_t seen = 0;

	atomic_store(&ctl->lat_got, 0);
	atomic_store(&ctl->lat_sent, 0);
	atomic_store(&ctl->cell, cell);
	atomic_store(&ctl->phase, PH_LATENCY);
	last_change = bl_mono_ns();
	for (;;) {
		uint32_t got = atomic_load(&ctl->lat_got);

		nap_ns(20000000);
		if (bench_worker_lost(ctl))
			return 1;
		if (got != seen)
			last_change = bl_mono_ns();
		seen = got;
		out_progress("latency: %s, %u of %u", bench_cell_names[cell], got,
			     ctl->p.lat_samples);
		if (got >= ctl->p.lat_samples || bl_mono_ns() - last_change > 2000000000)
			break;
	}
	atomic_store(&ctl->phase, PH_IDLE);
	nap_ns(150000000); /* every worker leaves the cell; its longest wait is 100 ms */
	if (!seen)
		return cli_fail("latency (%s): none of %u messages arrived", bench_cell_names[cell],
				atomic_load(&ctl->lat_sent));
	return 0;
}

int bench_latency(struct bench_ctl *ctl, json_t *res)
{
	json_t *cells = json_array();
	struct bench_lag *lag = bench_lag_new();
	int cell, err = 0;
	unsigned int i;

	ctl->lat_src = 0;
	ctl->lat_dst = ctl->n - 1;
	for (i = 0; i < 100; i++) {
		bench_lag_sample(lag);
		nap_ns(SAMPLE_US * 1000);
	}
	json_object_set_new(res, "idle_lag", bench_lag_end(lag));
	for (cell = 0; !err && cell < BENCH_CELLS; cell++) {
		uint32_t *v = malloc(BENCH_LAT_MAX * sizeof(*v)), n = 0;
		json_t *q;

		if (ctl->n < 3 && (cell == CELL_TALK_BLOCK || cell == CELL_TALK_POLL)) {
			free(v);
			continue; /* there are no other hosts that could talk */
		}
		err = run_latency_cell(ctl, cell) || !v;
		for (i = 0; v && i < BENCH_LAT_MAX; i++)
			if (ctl->lat[cell][i])
				v[n++] = ctl->lat[cell][i];
		if (!err) {
			q = bench_quantiles(v, n);
			json_object_set_new(q, "mode", json_string(bench_cell_names[cell]));
			json_object_set_new(
				q, "lost",
				json_integer((json_int_t)atomic_load(&ctl->lat_sent) - n));
			json_array_append_new(cells, q);
		}
		free(v);
	}
	out_progress_end();
	json_object_set_new(res, "latency", cells);
	return err;
}

void bench_end(struct bench_ctl *ctl)
{
	uint64_t until = bl_mono_ns() + 2000000000;
	unsigned int i;

	atomic_store(&ctl->phase, PH_EXIT);
	for (i = 0; i < ctl->n; i++) {
		while (ctl->w[i].pid > 0 && waitpid(ctl->w[i].pid, NULL, WNOHANG) == 0) {
			if (bl_mono_ns() > until)
				kill(ctl->w[i].pid, SIGKILL);
			nap_ns(1000000);
		}
		ctl->w[i].pid = 0;
	}
}
