// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The life of an arbiter: what is validated before it starts, its threads, its end. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "arbiter/arb.h"
#include "arbiter/comm.h"
#include "arbiter/pipe.h"
#include "arbiter/server.h"

uint32_t bl_arb_table(const struct bl_arb_endpoint *e, uint32_t n)
{
	struct in6_addr *all = calloc(n ? n : 1, sizeof(*all));
	uint32_t i, table = 0;

	for (i = 0; all && i < n; i++)
		all[i] = e[i].addr;
	if (all)
		table = bl_fcp_table(all, n);
	free(all);
	return table;
}

static void set_defaults(struct bl_arb_cfg *c)
{
	c->port = c->port ? c->port : BL_FCP_PORT;
	c->wd_port = c->wd_port ? c->wd_port : BL_FCP_WATCHDOG_PORT;
	c->slot_ns = c->slot_ns ? c->slot_ns : 1230;
	c->slot_bytes = c->slot_bytes ? c->slot_bytes : 1514;
	c->lead_us = c->lead_us ? c->lead_us : 100;
	c->run_slots = c->run_slots ? c->run_slots : 16;
	c->interval_us = c->interval_us ? c->interval_us : 100;
	c->dead_us = c->dead_us ? c->dead_us : 1000;
	c->guard_us = c->guard_us ? c->guard_us : 3 * c->interval_us;
	c->quota = c->quota ? c->quota : 1U << 16;
	c->rtt_us = c->rtt_us ? c->rtt_us : 200;
	c->threads = c->threads ? c->threads : 1;
	if (!c->clock_set)
		c->clock = CLOCK_TAI;
}

static int validate_cfg(struct bl_arb *a, unsigned int npaths, struct bl_err *err)
{
	struct bl_arb_cfg *c = &a->cfg;
	bool group = !IN6_IS_ADDR_UNSPECIFIED(&c->group);
	uint64_t need;

	if (!c->nendpoints || c->nendpoints > BL_FCP_ENDPOINTS_MAX)
		return bl_fail(err, EINVAL, "an arbiter serves 1 to %d endpoints, not %u",
			       BL_FCP_ENDPOINTS_MAX, c->nendpoints);
	if (c->nlisten > BL_ARB_LISTEN_MAX)
		return bl_fail(err, EINVAL, "at most %d addresses to listen on", BL_ARB_LISTEN_MAX);
	if (group && !(IN6_IS_ADDR_V4MAPPED(&c->group) ? (c->group.s6_addr[12] & 0xf0) == 0xe0
						       : IN6_IS_ADDR_MULTICAST(&c->group)))
		return bl_fail(err, EINVAL, "the group is not a multicast address");
	if (group && !*c->group_if)
		return bl_fail(err, EINVAL,
			       "a group needs an interface; give the one on which the other "
			       "arbiters are");
	if (c->threads > 2 + (npaths ? npaths : 0))
		return bl_fail(err, EINVAL, "%u threads: without more path selectors %u are of use",
			       c->threads, 2 + npaths);
	if (c->run_slots > a->aops->horizon_slots)
		return bl_fail(err, EINVAL,
			       "run_slots %u: the allocator looks only %u slots ahead, so some "
			       "would never be given",
			       c->run_slots, a->aops->horizon_slots);
	a->horizon_ns =
		(uint64_t)c->lead_us * 1000 + (uint64_t)(a->aops->horizon_slots + 1) * c->slot_ns;
	need = a->horizon_ns + 2000ULL * c->interval_us;
	if (group && (uint64_t)c->dead_us * 1000 < need)
		return bl_fail(err, EINVAL,
			       "dead_us %u: at least %llu, for slots are given up to %llu us ahead "
			       "and must have ended before another arbiter may rule",
			       c->dead_us, (unsigned long long)(need + 999) / 1000,
			       (unsigned long long)(a->horizon_ns + 999) / 1000);
	return 0;
}

int bl_arb_new(struct bl_arb **out, const struct bl_arb_cfg *cfg, const struct arb_alloc_ops *aops,
	       void *alloc, const struct arb_path_ops *pops, void *const *paths, struct bl_err *err)
{
	struct bl_arb *a = aligned_alloc(64, (sizeof(*a) + 63) & ~63UL);
	unsigned int i;
	int rc;

	*out = NULL;
	if (!a)
		return bl_fail(err, ENOMEM, "out of memory");
	memset(a, 0, sizeof(*a));
	a->wd_fd = a->wd_send = a->bell_fd = -1;
	a->cfg = *cfg;
	set_defaults(&a->cfg);
	a->aops = aops;
	a->alloc = alloc;
	a->pops = pops;
	/* one path selector per path thread; with fewer threads one is enough */
	a->npaths = !pops ? 0 : a->cfg.threads > 3 ? a->cfg.threads - 2 : 1;
	if (a->npaths > BL_ARB_PATHS_MAX)
		a->npaths = BL_ARB_PATHS_MAX;
	for (i = 0; i < a->npaths; i++)
		a->paths[i] = paths[i];
	a->drain = a->cfg.threads == 1 ? arb_comm_take : NULL;
	rc = validate_cfg(a, a->npaths, err);
	a->params = (struct bl_fcp_params)BL_FCP_PARAMS_DEFAULT;
	a->params.secret[0] = a->cfg.secret[0];
	a->params.secret[1] = a->cfg.secret[1];
	a->params.table = bl_arb_table(a->cfg.endpoints, a->cfg.nendpoints);
	a->params.quota = a->cfg.quota;
	bl_arb_retune(a, a->cfg.rtt_us, &a->cfg.faults);
	a->wd = (struct bl_wd){ .p = &a->params,
				.rank = a->cfg.rank,
				.interval_ns = a->cfg.interval_us * 1000ULL,
				.dead_ns = a->cfg.dead_us * 1000ULL,
				.guard_ns = a->cfg.guard_us * 1000ULL };
	if (!rc)
		rc = arb_comm_open(a, err);
	if (!rc)
		rc = arb_pipe_open(a, err);
	if (rc)
		bl_arb_free(a);
	else
		*out = a;
	return rc;
}

/* ---- threads ---- */

/** struct start - Argument of a thread. */
struct start {
	struct bl_arb *a;
	unsigned int i; /* of the path selector */
};

static void pin_thread(const struct bl_arb *a, unsigned int i)
{
	cpu_set_t set;

	prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0); /* 50 us by default: half a watchdog interval */
	if (i >= a->cfg.ncpus)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)a->cfg.cpus[i], &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void relax_until(const struct bl_arb *a, uint64_t until)
{
	uint64_t now = bl_mono_ns();
	struct timespec t;

	if (a->cfg.spin || until <= now) {
		ck_pr_stall();
		return;
	}
	/* These threads are not woken, so an ask waits that long at most. */
	if (until > now + 20000)
		until = now + 20000;
	t = (struct timespec){ .tv_sec = (time_t)(until / 1000000000ULL),
			       .tv_nsec = (long)(until % 1000000000ULL) };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void *alloc_thread(void *arg)
{
	struct start *s = arg;
	struct bl_arb *a = s->a;
	unsigned int k;

	pin_thread(a, 1);
	while (!atomic_load_explicit(&a->stop, memory_order_relaxed)) {
		uint64_t next = arb_alloc_turn(a);

		if (a->cfg.threads == 2)
			for (k = 0; k < a->npaths; k++)
				arb_path_turn(a, k);
		relax_until(a, next);
	}
	free(s);
	return NULL;
}

static void *path_thread(void *arg)
{
	struct start *s = arg;
	struct bl_arb *a = s->a;

	pin_thread(a, 2 + s->i);
	while (!atomic_load_explicit(&a->stop, memory_order_relaxed))
		if (!arb_path_turn(a, s->i))
			relax_until(a, BL_FCP_NEVER);
	free(s);
	return NULL;
}

static int launch_thread(struct bl_arb *a, void *(*fn)(void *), unsigned int i, struct bl_err *err)
{
	struct start *s = malloc(sizeof(*s));
	int rc;

	if (!s)
		return bl_fail(err, ENOMEM, "out of memory");
	*s = (struct start){ a, i };
	rc = pthread_create(&a->thread[a->nthreads], NULL, fn, s);
	if (rc) {
		free(s);
		return bl_fail(err, rc, "cannot start a thread: %s", strerror(rc));
	}
	a->nthreads++;
	return 0;
}

int bl_arb_run(struct bl_arb *a, struct bl_err *err)
{
	unsigned int i;
	int rc = 0;

	pin_thread(a, 0);
	/*
	 * Terms grow with the calendar: an arbiter that restarts finds hosts that know a lower one.
	 */
	if (!a->alone && bl_wd_init(&a->wd, bl_mono_ns(), a->horizon_ns,
				    (uint32_t)(bl_clock_ns(CLOCK_REALTIME) / 1000000000ULL)))
		/* validate_cfg() has refused it already */
		return bl_fail(err, EINVAL, "no time is left for a lease");
	if (a->alone)
		a->wd.term = (uint32_t)(bl_clock_ns(CLOCK_REALTIME) / 1000000000ULL);
	if (a->cfg.threads >= 2)
		rc = launch_thread(a, alloc_thread, 0, err);
	for (i = 0; !rc && a->cfg.threads >= 3 && i < a->npaths; i++)
		rc = launch_thread(a, path_thread, i, err);
	while (!rc && !atomic_load_explicit(&a->stop, memory_order_relaxed)) {
		uint64_t next = arb_comm_turn(a), t;

		if (a->cfg.threads == 1) {
			t = arb_alloc_turn(a);
			for (i = 0; i < a->npaths; i++)
				arb_path_turn(a, i);
			next = t < next ? t : next;
		}
		if (!a->cfg.spin)
			arb_comm_wait(a, next);
	}
	atomic_store(&a->stop, true);
	for (i = 0; i < a->nthreads; i++)
		pthread_join(a->thread[i], NULL);
	a->nthreads = 0;
	return rc;
}

void bl_arb_stop(struct bl_arb *a)
{
	uint64_t one = 1;

	atomic_store(&a->stop, true);
	if (write(a->bell_fd, &one, sizeof(one)) < 0)
		return; /* the eventfd is full: comm is awake */
}

/*
 * Comm reads these words without a lock. Each time is the old or the new one by itself. An IPv4
 * address is in one word; of an IPv6 address comm may see two halves that do not belong together,
 * and then drops a list of links, which the service repeats.
 */
void bl_arb_retune(struct bl_arb *a, uint32_t rtt_us, const struct in6_addr *faults)
{
	uint64_t *to = (uint64_t *)(void *)&a->cfg.faults, half[2];

	_Static_assert(sizeof(half) == sizeof(a->cfg.faults) &&
			       offsetof(struct bl_arb_cfg, faults) % sizeof(half[0]) == 0,
		       "two words");
	memcpy(half, faults, sizeof(half));
	BL_WRITE_ONCE(to[0], half[0]);
	BL_WRITE_ONCE(to[1], half[1]);
	BL_WRITE_ONCE(a->params.rtt_ns, (uint64_t)rtt_us * 1000);
	BL_WRITE_ONCE(a->params.ack_ns, (uint64_t)rtt_us * 500);
}

struct in6_addr bl_arb_addr(const struct bl_arb *a)
{
	return a->cfg.listen[0];
}

void bl_arb_free(struct bl_arb *a)
{
	if (!a)
		return;
	arb_comm_close(a);
	arb_pipe_close(a);
	free(a);
}

void bl_arb_read(struct bl_arb *a, struct bl_arb_total *t, struct bl_arb_row *rows, uint32_t n)
{
	uint32_t i;

	*t = a->t;
	t->sent = a->sent.sent;
	t->send_failed = a->sent.failed;
	t->state = BL_READ_ONCE(a->wd.state);
	t->term = BL_READ_ONCE(a->wd.term);
	t->takeovers = BL_READ_ONCE(a->wd.takeovers);
	t->yields = BL_READ_ONCE(a->wd.yields);
	t->stalls = BL_READ_ONCE(a->wd.stalls);
	memcpy(t->watchdogs, a->wd.count, sizeof(t->watchdogs));
	t->runs = atomic_load_explicit(&a->runs, memory_order_relaxed);
	for (i = 0; i < BL_LOG_BINS; i++)
		t->run_bin[i] = atomic_load_explicit(&a->run_bin[i], memory_order_relaxed);
	t->run_ns = atomic_load_explicit(&a->run_ns, memory_order_relaxed);
	t->skipped = atomic_load_explicit(&a->skipped, memory_order_relaxed);
	t->overrun = atomic_load_explicit(&a->overrun, memory_order_relaxed);
	for (i = 0; rows && i < n && i < a->cfg.nendpoints; i++) {
		const struct arb_peer *p = &a->peer[i];
		const struct bl_fcp_arb *f = &p->fcp;
		struct bl_arb_row *r = &rows[i];

		*r = (struct bl_arb_row){ .session = BL_READ_ONCE(f->e.nonce) != 0,
					  .waiting = f->waiting,
					  .granted = f->granted,
					  .refused = f->refused,
					  .capped = f->capped,
					  .resets = f->resets,
					  .sessions = f->sessions,
					  .gone = f->gone,
					  .stale = p->stale,
					  .sent = f->e.tx,
					  .timeouts = f->e.timeouts,
					  .nacks = f->e.nacks };
		memcpy(r->packets, f->e.count, sizeof(r->packets));
	}
}
