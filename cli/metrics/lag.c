// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See lag.h. */
#include "cli/metrics/lag.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/time.h"
#include "core/clock_core.h"
#include "core/log_hist_core.h"
#include "maps/host_abi.h"

#define STEP_NS (1000000000ULL / LAG_PER_S)
#define LOOK_NS 1000000000ULL /* how often the node is looked for: it may have new maps */

struct lag_sampler {
	pthread_t thread;
	pthread_mutex_t lock; /* protects the following four */
	pthread_cond_t bell;  /* @ends was set */
	bool ends;
	uint64_t n[BL_LOG_BINS];
	uint64_t sum_ns;

	int page, clock; /* the thread's own: maps of the host; -1: there is none */
};

static void close_maps(struct lag_sampler *s)
{
	if (s->page >= 0)
		close(s->page);
	if (s->clock >= 0)
		close(s->clock);
	s->page = s->clock = -1;
}

/* Opens the maps of the host of this namespace anew. */
static void look_for_host(struct lag_sampler *s)
{
	struct bl_node_ref *refs = NULL;
	struct bl_err err; /* the next scrape says what is wrong */
	int n = bl_nodes_find(&refs, bl_netns_ino(), &err), i;

	close_maps(s);
	for (i = 0; i < n && refs[i].role != BL_ROLE_HOST; i++)
		;
	if (i < n) {
		s->page = bl_map_open(&refs[i], BL_MAP_HOST_PAGE, sizeof(struct bl_host_page),
				      false, &err);
		s->clock =
			bl_map_open(&refs[i], BL_MAP_CLOCK, sizeof(struct bl_clock), false, &err);
	}
	free(refs);
}

/* Returns the lag of the barrier, or -1: there is none, or the clock is void. */
static int64_t read_lag(const struct lag_sampler *s)
{
	struct bl_host_page page;
	struct bl_clock clock;
	uint32_t zero = 0;
	uint64_t mono;
	int64_t lag;

	/* the barrier before the clock, so that the lag is not too small */
	if (s->page < 0 || s->clock < 0 || bpf_map_lookup_elem(s->page, &zero, &page) ||
	    bpf_map_lookup_elem(s->clock, &zero, &clock))
		return -1;
	mono = bl_mono_ns();
	if (!page.barrier || page.barrier == BL_TIME_NONE || !bl_clock_usable(&clock, mono))
		return -1;
	lag = (int64_t)(bl_clock_at(&clock, mono) - page.barrier);
	return lag < 0 ? 0 : lag; /* hosts that are silent promise ahead */
}

static void *sampler_main(void *arg)
{
	struct lag_sampler *s = arg;
	uint64_t next = bl_mono_ns(), look = 0;
	struct timespec t;
	int64_t lag;

	pthread_mutex_lock(&s->lock);
	while (!s->ends) {
		pthread_mutex_unlock(&s->lock);
		if (bl_mono_ns() >= look) {
			look_for_host(s);
			look = bl_mono_ns() + LOOK_NS;
		}
		lag = read_lag(s);
		pthread_mutex_lock(&s->lock);
		if (lag >= 0) {
			s->n[bl_log_bin((uint64_t)lag, LAG_FIRST)]++;
			s->sum_ns += (uint64_t)lag;
		}
		/* a thread that was stopped does not make up for it */
		next = bl_mono_ns() - next > 10 * STEP_NS ? bl_mono_ns() + STEP_NS : next + STEP_NS;
		t.tv_sec = (time_t)(next / 1000000000);
		t.tv_nsec = (long)(next % 1000000000);
		pthread_cond_timedwait(&s->bell, &s->lock, &t);
	}
	pthread_mutex_unlock(&s->lock);
	close_maps(s);
	return NULL;
}

int lag_start(struct lag_sampler **out, struct bl_err *err)
{
	struct lag_sampler *s = calloc(1, sizeof(*s));
	pthread_condattr_t monotonic;
	int rc;

	*out = NULL;
	if (!s)
		return bl_fail(err, ENOMEM, "out of memory");
	s->page = s->clock = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->bell, &monotonic);
	pthread_condattr_destroy(&monotonic);
	rc = pthread_create(&s->thread, NULL, sampler_main, s);
	if (!rc) {
		*out = s;
		return 0;
	}
	pthread_cond_destroy(&s->bell);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return bl_fail(err, rc, "cannot start a thread: %s", strerror(rc));
}

void lag_stop(struct lag_sampler *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_cond_signal(&s->bell);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->bell);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void collect_lag(struct collector *c, int node)
{
	uint64_t n[BL_LOG_BINS], sum;

	if (!c->lag || c->refs[node].role != BL_ROLE_HOST)
		return;
	pthread_mutex_lock(&c->lag->lock);
	memcpy(n, c->lag->n, sizeof(n));
	sum = c->lag->sum_ns;
	pthread_mutex_unlock(&c->lag->lock);
	collect_log_hist(c, BL_METRIC_LAG_HIST, n, LAG_FIRST, (double)sum * 1e-9,
			 LABELS(c->name[node]));
}
