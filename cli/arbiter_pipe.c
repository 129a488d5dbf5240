/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline arbiter bench pipeline: allocation and path selection on two cores, in real time. Slot s begins s x 1.23 us after the start; requests become due as the
 * clock runs, and what is not ready in its time is lost.
 *
 *	core 0	requests that are due go to core 1; grants come from there and are put to their slots; slots that are sealed are coloured
 *	core 1	every 16 slots: takes the requests that came, runs the allocator for slots from LEAD ahead on, hands over the grants
 *
 * A slot is sealed when the allocator's first slot has moved past it: nothing can come any more. It begins LEAD slots later, so that is the time that colouring it and
 * telling its senders may take. A slot that has begun is lost with all its packets, and is not coloured: who is late must not become later. Example: at slot 1000 the
 * allocator gives slots from 1082 on; then slots up to 1081 are coloured, of which 1066 is the first that was not before.
 *
 * Not in it: sockets and FCP. Both queues are rows with a published length, written by one side and kept until the end: the log by which all is verified.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../arbiter/verify.h"
#include "arbiter.h"
#include "cmd.h"

#define LEAD	   82u	    /* slots: 100 us */
#define RING	   1024u    /* slots with grants that are not coloured yet: LEAD behind, a window ahead */
#define TRIAL_NS   200000000 /* each */
#define WARM_NS	   20000000 /* of it, not counted: what waits grows to its usual amount */
#define TRIALS	   5
#define ROW_MAX	   (1u << 24) /* words of grants in a trial; 8 MTUs to a mask and its head are usual */
#define PATHS	   4u
#define WAIT_MAX   192u /* MTUs for each endpoint that the allocator may have waiting */

/** struct pipe_run - one run of the allocator. @asks: requests taken before it, in all. @from, @end: of the row. */
struct pipe_run {
	uint64_t now, base;
	uint32_t asks;
	uint32_t from, end;
	uint64_t mtus;
};

/** struct slots - packets by slot, as path selection wants them. @n: [slot % RING]. @src, @dst: [slot % RING][endpoints] racks. @sealed: slots below are coloured. */
struct slots {
	uint32_t *n;
	uint16_t *src, *dst;
	uint64_t sealed;
};

/**
 * struct pipe - a trial. @due_ns, @ask: requests drawn before it starts; @due: the next. @sent: what core 0 handed over, its length published in @nsent (release; core 1 acquires).
 * @run, @row: what core 1 handed over, published in @nrun in the same way. @path: of all packets in the order of colouring. @gone: [slot] it was lost. @start_ns: CLOCK_MONOTONIC of slot 0.
 */
struct pipe {
	struct bl_alloc_cfg cfg;
	uint32_t tick, mtus, racks;
	double load;
	struct bl_alloc *alloc;
	struct bl_path *paths;
	struct slots slots;
	uint64_t start_ns, end_ns;
	uint64_t *due_ns;
	uint32_t *ask;
	size_t nask, due;
	uint32_t *sent;
	struct pipe_run *run;
	size_t maxrun, nrun_all;
	uint64_t *row;
	uint8_t *path;
	size_t npath, maxpath;
	uint8_t *gone;
	size_t slots_max;
	_Alignas(64) _Atomic size_t nsent;
	_Alignas(64) _Atomic size_t nrun;
	_Alignas(64) _Atomic bool full; /* @row is: a trial that must not happen */
	uint64_t lost, packets, unplaced, skipped;
	uint64_t warm_packets; /* coloured when the warm-up ended */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t slot_of(const struct pipe *p, uint64_t ns)
{
	return (uint64_t)((double)(ns - p->start_ns) / ARB_SLOT_NS);
}

/* memory that is there before the clock starts */
static void *pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

static void pages_free(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

/* ---- core 0 ---- */

/* requests that are due by now */
static void arrive(struct pipe *p)
{
	const uint64_t t = now_ns();

	while (p->due < p->nask && p->due_ns[p->due] <= t) {
		p->sent[p->due] = p->ask[p->due];
		p->due++;
	}
	atomic_store_explicit(&p->nsent, p->due, memory_order_release);
}

static void put(const struct pipe *p, struct slots *s, uint64_t base, const struct bl_grant *head, const uint64_t *mask)
{
	const uint16_t src = (uint16_t)(head->src / ARB_RACK), dst = (uint16_t)(head->dst / ARB_RACK);
	uint32_t words = head->words;

	for (; words; words &= words - 1, mask++) {
		const uint64_t first = base + 64 * (uint32_t)__builtin_ctz(words);
		uint64_t bits;

		for (bits = *mask; bits; bits &= bits - 1) {
			const size_t r = (first + (uint32_t)__builtin_ctzll(bits)) % RING, i = r * p->cfg.endpoints + s->n[r]++;

			s->src[i] = src;
			s->dst[i] = dst;
		}
	}
}

static struct bl_grants grants_of(const struct pipe *p, const struct pipe_run *r)
{
	return (struct bl_grants){ .base = r->base, .row = &p->row[r->from], .len = r->end - r->from, .mtus = r->mtus };
}

/* Now and then it looks for requests: after a pause a run is long, and core 1 would have nothing to give slots to while this one colours. */
static void take_run(struct pipe *p, const struct pipe_run *r)
{
	const struct bl_grants g = grants_of(p, r);
	struct slots *s = &p->slots;
	const struct bl_grant *head;
	const uint64_t *mask;
	uint64_t begun = 0;
	size_t at = 0, k = 0;

	/* first, so that the ring has room for what this run gives, however far the clock went on */
	for (; s->sealed < r->now && s->sealed < p->slots_max; s->sealed++) {
		const size_t i = s->sealed % RING, n = s->n[i];

		if (k++ % 8 == 0) {
			arrive(p);
			begun = slot_of(p, now_ns()) + 1;
		}
		s->n[i] = 0;
		if (s->sealed < begun && n) {
			p->lost += n;
			p->gone[s->sealed] = 1;
			continue;
		}
		p->unplaced += bl_path_select(p->paths, n, &s->src[i * p->cfg.endpoints], &s->dst[i * p->cfg.endpoints], &p->path[p->npath]);
		p->npath += n;
	}
	for (k = 0; (head = bl_grant_next(&g, &at, &mask));) {
		if (++k % 512 == 0)
			arrive(p);
		put(p, s, g.base, head, mask);
	}
}

static void arrivals_and_paths(struct pipe *p)
{
	size_t seen = 0;
	bool warm = false;
	uint64_t t;

	for (t = now_ns(); t < p->end_ns; t = now_ns()) {
		if (!warm && t >= p->start_ns + WARM_NS) {
			warm = true;
			p->warm_packets = p->npath;
			p->lost = 0;
		}
		arrive(p);
		if (seen < atomic_load_explicit(&p->nrun, memory_order_acquire))
			take_run(p, &p->run[seen++]);
	}
	p->packets = p->npath;
	p->nrun_all = seen;
}

/* ---- core 1 ---- */

static void pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set); /* refused: then the kernel chooses */
}

static void *allocation(void *arg)
{
	struct pipe *p = arg;
	size_t taken = 0, have, runs = 0;
	uint64_t t, next = 0, slot, took = 0;
	uint32_t at = 0;

	pin(1);
	while (now_ns() < p->start_ns)
		;
	for (t = now_ns(); t < p->end_ns && runs < p->maxrun; t = now_ns()) {
		struct bl_grants g;

		/* after a pause much waits and a run is long: what it gives must not have begun when it is ready, so it looks as much further ahead as the last one took */
		slot = slot_of(p, t) + LEAD + (took > p->tick ? took : 0);
		if (slot < next)
			continue;
		if (next && slot >= next + p->tick)
			p->skipped += (slot - next) / p->tick;
		have = atomic_load_explicit(&p->nsent, memory_order_acquire);
		/* the rest stays in the queue: after a pause a run must not take longer than the slots that it gives, or it would never catch up */
		for (; taken < have && bl_alloc_waiting(p->alloc) < (uint64_t)WAIT_MAX * p->cfg.endpoints; taken++)
			bl_alloc_demand(p->alloc, p->sent[taken] & 0xffff, p->sent[taken] >> 16, p->mtus, slot + 10 * p->mtus);
		g = bl_alloc_run(p->alloc, slot);
		if (g.len > ROW_MAX - at) {
			atomic_store(&p->full, true);
			break;
		}
		memcpy(&p->row[at], g.row, g.len * sizeof(*p->row));
		p->run[runs] = (struct pipe_run){ .now = slot, .base = g.base, .asks = (uint32_t)taken, .from = at, .end = at + (uint32_t)g.len, .mtus = g.mtus };
		at += (uint32_t)g.len;
		runs++;
		atomic_store_explicit(&p->nrun, runs, memory_order_release);
		next = slot + p->tick;
		took = slot_of(p, now_ns()) - slot_of(p, t);
	}
	return NULL;
}

/* ---- after it ---- */

/* all runs, and all colours, from the log. 0; 1 after a message */
static int verify(struct pipe *p, uint64_t *verified)
{
	struct slots s = { 0 };
	struct bl_verify *v = bl_verify_new(&p->cfg);
	const uint32_t cap = (ARB_RACK + PATHS - 1) / PATHS;
	size_t k, at, asked = 0, done = 0, none;
	const struct bl_grant *head;
	const uint64_t *mask;
	const char *why = NULL;
	int err = 1;

	s.n = calloc(RING, sizeof(*s.n));
	s.src = calloc((size_t)RING * p->cfg.endpoints, sizeof(*s.src));
	s.dst = calloc((size_t)RING * p->cfg.endpoints, sizeof(*s.dst));
	if (!v || !s.n || !s.src || !s.dst) {
		cli_fail("out of memory");
		goto out;
	}
	for (k = 0; k < p->nrun_all; k++) {
		const struct pipe_run *r = &p->run[k];
		struct bl_grants g = grants_of(p, r);

		for (; asked < r->asks; asked++)
			bl_verify_demand(v, p->sent[asked] & 0xffff, p->sent[asked] >> 16, p->mtus);
		if (!bl_verify_run(v, &g, r->now)) {
			cli_fail("the schedule is wrong: %s", bl_verify_error(v));
			goto out;
		}
		for (; s.sealed < r->now && s.sealed < p->slots_max; s.sealed++) {
			const size_t i = s.sealed % RING;

			if (p->gone[s.sealed]) {
				s.n[i] = 0;
				continue;
			}
			why = bl_verify_paths(p->racks, PATHS, cap, NULL, &s.src[i * p->cfg.endpoints], &s.dst[i * p->cfg.endpoints], &p->path[done], s.n[i], &none);
			if (!why && none)
				why = "a packet has no path though there is one";
			if (why) {
				cli_fail("the colouring of slot %" PRIu64 " is wrong: %s", s.sealed, why);
				goto out;
			}
			done += s.n[i];
			s.n[i] = 0;
		}
		for (at = 0; (head = bl_grant_next(&g, &at, &mask));)
			put(p, &s, g.base, head, mask);
	}
	if (done != p->packets) {
		cli_fail("%zu packets in the log, %" PRIu64 " coloured", done, p->packets);
		goto out;
	}
	*verified += done;
	err = 0;
out:
	bl_verify_free(v);
	free(s.n);
	free(s.src);
	free(s.dst);
	return err;
}

static void draw(struct pipe *p, struct arb_rnd *rnd, size_t max)
{
	const double gap = ARB_SLOT_NS * p->mtus / (p->cfg.endpoints * p->load);
	double due = 0;
	uint32_t src, dst;

	for (p->nask = 0; p->nask < max && due < TRIAL_NS; p->nask++) {
		src = arb_below(rnd, p->cfg.endpoints);
		dst = arb_below(rnd, p->cfg.endpoints - 1);
		dst += dst >= src;
		p->due_ns[p->nask] = (uint64_t)due;
		p->ask[p->nask] = src | dst << 16;
		due += -log1p(-arb_unit(rnd)) * gap;
	}
}

/* one trial; @tbit: carried after the warm-up. 0; 1 after a message */
static int trial(struct pipe *p, struct arb_rnd *rnd, size_t maxask, double *tbit, uint64_t *verified)
{
	const char *why;
	pthread_t thread;
	size_t i;
	int err = 1;

	p->alloc = bl_alloc_new(&p->cfg, &why);
	p->paths = p->alloc ? bl_path_new(p->racks, PATHS, (ARB_RACK + PATHS - 1) / PATHS, BL_PATH_GREEDY, &why) : NULL;
	if (!p->paths) {
		cli_fail("%s", why);
		goto out;
	}
	draw(p, rnd, maxask);
	p->slots.sealed = p->npath = p->lost = p->due = p->packets = p->unplaced = p->skipped = p->warm_packets = 0;
	memset(p->slots.n, 0, RING * sizeof(*p->slots.n));
	memset(p->gone, 0, p->slots_max);
	atomic_store(&p->nsent, 0);
	atomic_store(&p->nrun, 0);
	atomic_store(&p->full, false);
	p->start_ns = now_ns() + 2000000;
	p->end_ns = p->start_ns + TRIAL_NS;
	for (i = 0; i < p->nask; i++)
		p->due_ns[i] += p->start_ns;
	if (pthread_create(&thread, NULL, allocation, p)) {
		cli_fail("cannot start a thread");
		goto out;
	}
	pin(0);
	while (now_ns() < p->start_ns)
		;
	arrivals_and_paths(p);
	pthread_join(thread, NULL);
	if (atomic_load(&p->full)) {
		cli_fail("the log is full; give a lower load");
		goto out;
	}
	*tbit = (double)(p->packets - p->warm_packets) * ARB_SLOT_BITS / (TRIAL_NS - WARM_NS) / 1000;
	err = verify(p, verified);
out:
	bl_path_free(p->paths);
	bl_alloc_free(p->alloc);
	p->paths = NULL;
	p->alloc = NULL;
	return err;
}

static json_t *measure(const struct arb_args *a, enum bl_alloc_policy policy, double load)
{
	struct pipe *p = aligned_alloc(64, (sizeof(*p) + 63) / 64 * 64);
	struct arb_rnd rnd = { (uint64_t)a->seed };
	double tbit[TRIALS], best = 0, lost[TRIALS], skipped[TRIALS];
	size_t maxask, i;
	uint64_t verified = 0;
	json_t *row = NULL;

	if (!p) {
		cli_fail("out of memory");
		return NULL;
	}
	memset(p, 0, sizeof(*p));
	p->cfg.endpoints = a->endpoints ? (uint32_t)a->endpoints : 256;
	p->cfg.policy = policy;
	p->cfg.window_slots = (uint32_t)a->window;
	p->cfg.isa = (enum bl_alloc_isa)a->isa;
	p->racks = (p->cfg.endpoints + ARB_RACK - 1) / ARB_RACK;
	p->tick = a->tick ? (uint32_t)a->tick : 16;
	p->mtus = a->mtus ? (uint32_t)a->mtus : 10;
	p->load = load;
	/* Poisson: ten standard deviations more than the mean */
	maxask = (size_t)(TRIAL_NS / ARB_SLOT_NS * p->cfg.endpoints * load / p->mtus);
	maxask += 10 * (size_t)sqrt((double)maxask) + 64;
	p->maxrun = (size_t)(TRIAL_NS / ARB_SLOT_NS) / p->tick + 2;
	p->slots_max = (size_t)(TRIAL_NS / ARB_SLOT_NS) + RING;
	p->gone = pages(p->slots_max);
	p->maxpath = (size_t)(TRIAL_NS / ARB_SLOT_NS + RING) * p->cfg.endpoints;
	p->slots.n = calloc(RING, sizeof(*p->slots.n));
	p->slots.src = calloc((size_t)RING * p->cfg.endpoints, sizeof(*p->slots.src));
	p->slots.dst = calloc((size_t)RING * p->cfg.endpoints, sizeof(*p->slots.dst));
	p->due_ns = pages(maxask * sizeof(*p->due_ns));
	p->ask = pages(maxask * sizeof(*p->ask));
	p->sent = pages(maxask * sizeof(*p->sent));
	p->run = pages(p->maxrun * sizeof(*p->run));
	p->row = pages(ROW_MAX * sizeof(*p->row));
	p->path = pages(p->maxpath);
	if (!p->slots.n || !p->slots.src || !p->slots.dst || !p->due_ns || !p->ask || !p->sent || !p->run || !p->row || !p->path || !p->gone) {
		cli_fail("out of memory");
		goto out;
	}
	for (i = 0; i < TRIALS; i++) {
		if (trial(p, &rnd, maxask, &tbit[i], &verified))
			goto out;
		best = tbit[i] > best ? tbit[i] : best;
		lost[i] = 100.0 * (double)p->lost / (double)(p->packets - p->warm_packets + p->lost + 1);
		skipped[i] = 100.0 * (double)p->skipped / (double)(p->nrun_all + p->skipped ? p->nrun_all + p->skipped : 1);
	}
	row = json_pack("{s:I, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "endpoints", (json_int_t)p->cfg.endpoints, "policy", bl_alloc_policy_name(policy), "window",
			(json_int_t)bl_alloc_window(&p->cfg), "load", 100 * load, "offered_tbps", load * p->cfg.endpoints * ARB_SLOT_BITS / ARB_SLOT_NS / 1000, "tbps",
			arb_median(tbit, TRIALS), "tbps_best", best, "lost", arb_median(lost, TRIALS), "skipped", arb_median(skipped, TRIALS), "verified",
			(json_int_t)verified);
out:
	pages_free(p->due_ns, maxask * sizeof(*p->due_ns));
	pages_free(p->ask, maxask * sizeof(*p->ask));
	pages_free(p->sent, maxask * sizeof(*p->sent));
	pages_free(p->run, p->maxrun * sizeof(*p->run));
	pages_free(p->row, ROW_MAX * sizeof(*p->row));
	pages_free(p->path, p->maxpath);
	pages_free(p->gone, p->slots_max);
	free(p->slots.n);
	free(p->slots.src);
	free(p->slots.dst);
	free(p);
	return row;
}

json_t *arb_bench_pipe(const struct arb_args *a)
{
	static const double loads[] = { 0.5, 0.8, 0.9, 0.95 };
	static const enum bl_alloc_policy both[] = { BL_ALLOC_FIRST, BL_ALLOC_FAIR };
	json_t *rows = json_array(), *row;
	unsigned int p, i;

	for (p = 0; p < 2; p++)
		for (i = 0; i < (a->load > 0 ? 1 : sizeof(loads) / sizeof(loads[0])); i++) {
			const enum bl_alloc_policy policy = a->policy >= 0 ? (enum bl_alloc_policy)a->policy : both[p];

			if (a->policy >= 0 && p)
				continue;
			out_progress("pipeline: %s, load %.2f ...", bl_alloc_policy_name(policy), a->load > 0 ? a->load : loads[i]);
			row = measure(a, policy, a->load > 0 ? a->load : loads[i]);
			if (!row || json_array_append_new(rows, row)) {
				json_decref(rows);
				return NULL;
			}
		}
	return rows;
}
