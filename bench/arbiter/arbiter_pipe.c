/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline arbiter bench pipeline: the arbiter's own stages (arbiter/pipe.c) with its own engine
 * (arbiter/engine.c) on two cores, in real time. Only comm is missing, that is sockets and FCP:
 *
 *	core 0	asks that are due go into the ring in which comm puts them; the path stage; what
 *comm would send is taken out of the ring from which comm takes it
 *	core 1	the allocation stage, as `barline arbiter run` runs it: asks, runs, lead
 *
 * In time is a packet that comes out TELL slots before its slot begins: so long it may take to tell
 * its sender. What is late, and what found no path or was refused, is not carried: core 0 asks for
 *it again, like comm or a host that heard nothing. Example: slots of 1230 ns, lead 100 us. At slot
 *1000 the allocation stage gives slots from 1081 on; what comes out at slot 1040 of it is in time
 *if its slot is 1056 or later, so all of it is.
 *
 * The configuration is what a file with these endpoints, racks and paths would get: the same
 *window, lead and time between two runs (bl_fp_times()), an arbiter that is alone. --window and
 *--tick are window_slots and run_slots of such a file.
 *
 * All that came out is logged past the caches and checked after the trial: no endpoint sends or
 * receives two packets in one slot, no rack more on a path than it carries, in whatever runs they
 * were given, and no pair gets more than was asked for it. That schedules are maximal is checked by
 * bench alloc, which shows the verifier each run.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "arbiter/engine.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only in this order */
#include "arbiter/arb.h"
#include "arbiter/pipe.h"
#include "base/time.h"
#include "bench/arbiter/arbiter.h"
#include "cli/util/out.h"
#include "core/fastpass/fcp_core.h"
#include "loader/node.h"

#define TELL 16u /* slots: 20 us */
/* slots that the verification has in hand: more than a window and its lead */
#define RING     4096u
#define PIECE    256u      /* asks handed over at a time */
#define TRIAL_NS 200000000 /* each */
#define WARM_NS  20000000  /* of it, not counted: what waits grows to its usual amount */
#define TRIALS   9
#define LOG_MAX  (1u << 26) /* words of a trial */
#define PATHS    4u
/* in the log, in the place of a path: slots of the entry before it that were late */
#define LATE 0xfeu

/** struct pipe_ask - @due_ns: after the start; later CLOCK_MONOTONIC. */
struct pipe_ask {
	uint64_t due_ns;
	uint16_t src, dst;
	uint32_t mtus;
};

/** struct log - written by one core, read after the trial. @n: of @max words. */
struct log {
	uint64_t *word;
	size_t n, max;
};

/**
 * struct pipe - a trial.
 * @file: what the engine and the stages are made from.
 * @drawn: requests, drawn before it starts; @due: the next.
 * @wanted: [src][dst] MTUs to be asked for. @queue: pairs that have some, [n % @pairs]; @nqueue
 *were put into it, of which @queue_done have gone.
 * @arb: the arbiter, without its sockets; core 1 runs its allocation stage until @end_ns.
 * @asks, @out: the log: all asks; all that came out, two words each (log_grant()).
 * @start_ns: CLOCK_MONOTONIC of the start. @slot0: the slot of then.
 * @late, @unplaced: packets. @leads: slots from the present to a run's first slot, added up over
 *	@nruns runs. @off_ns: by core, not running. @busy_ns: by core, thread time at work.
 */
struct pipe {
	struct bl_fp_file file;
	struct bl_engine *engine;
	struct bl_arb *arb;
	enum bl_alloc_policy policy;
	uint32_t endpoints, racks, mtus;
	double load;
	uint64_t start_ns, end_ns, slot0;
	struct pipe_ask *drawn;
	size_t ndrawn, due;
	uint32_t *wanted, *queue;
	size_t pairs, nqueue, queue_done;
	struct log asks, out;
	uint64_t late, unplaced, leads, nruns;
	bool full; /* a log is: a trial that must not happen */
	_Alignas(64) uint64_t off_ns[2], busy_ns[2];
};

/**
 * struct result - of one trial, in percent but @tbit; @lead: slots; @ns: for each packet, by core.
 * @cpu: by core, of the trial's time that its thread had.
 */
struct result {
	double tbit, late, unplaced, skipped, away, lead, ns[2], cpu[2];
};

/* time since @from that this thread, which had used @cpu by then, did not run */
static uint64_t off_ns(uint64_t from, uint64_t cpu)
{
	const uint64_t ran = bl_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu, all = bl_mono_ns() - from;

	return all > ran ? all - ran : 0;
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

/* @n words more, past the caches: nobody reads them before the trial is over */
static bool log_put(struct log *l, const uint64_t *from, size_t n)
{
	size_t i;

	if (n > l->max - l->n)
		return false;
	for (i = 0; i < n; i++)
#ifdef __SSE2__
		_mm_stream_si64((long long *)&l->word[l->n + i], (long long)from[i]);
#else
		l->word[l->n + i] = from[i];
#endif
	l->n += n;
	return true;
}

static void pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* refused: then the kernel chooses */
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/*
 * A thread that is on core @cpu from its first instruction. One that begins on the core of the
 * thread that starts it, which waits there without sleeping, comes late by a time slice, or with a
 * real-time priority not at all.
 */
static int start_on(unsigned int cpu, pthread_t *thread, void *(*f)(void *), void *arg)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	err = pthread_create(thread, &attr, f, arg);
	pthread_attr_destroy(&attr);
	/* one core only: then the kernel chooses */
	return err ? pthread_create(thread, NULL, f, arg) : 0;
}

/* ---- core 0 ---- */

/* what waits for a pair is one number, as it is with comm, however many requests it comes from */
static void want(struct pipe *p, uint32_t src, uint32_t dst, uint32_t mtus)
{
	const uint32_t pair = src * p->endpoints + dst;

	if (!p->wanted[pair])
		p->queue[p->nqueue++ % p->pairs] = pair;
	p->wanted[pair] += mtus;
}

/*
 * asks that are due by now, as far as the ring has room; after a pause in pieces, so that grants do
 * not become late meanwhile
 */
static void arrive(struct pipe *p, uint64_t t)
{
	uint64_t buf[PIECE];
	size_t n;

	for (n = 0; n < PIECE && p->due < p->ndrawn && p->drawn[p->due].due_ns <= t; n++, p->due++)
		want(p, p->drawn[p->due].src, p->drawn[p->due].dst, p->drawn[p->due].mtus);
	for (n = 0; n < PIECE && p->queue_done < p->nqueue; n++) {
		const uint32_t pair = p->queue[p->queue_done % p->pairs];
		const uint32_t src = pair / p->endpoints, dst = pair % p->endpoints;
		const uint32_t most = p->file.quota / 2,
			       mtus = p->wanted[pair] < most ? p->wanted[pair] : most;
		struct arb_ask q = { .mtus = mtus, .src = (uint16_t)src, .dst = (uint16_t)dst };

		if (!ck_ring_enqueue_spsc_ask(&p->arb->asks, p->arb->asks_buf, &q))
			break;
		buf[n] = src | dst << 16 | (uint64_t)mtus << 32;
		p->queue_done++;
		p->wanted[pair] -= mtus;
		if (p->wanted[pair])
			p->queue[p->nqueue++ % p->pairs] = pair;
	}
	p->full |= !log_put(&p->asks, buf, n);
}

/*
 * source, destination, path, and from the first slot of the trial to the first of the mask; the
 * mask
 */
static void log_grant(struct pipe *p, uint64_t *buf, const struct arb_grant *g, uint32_t path,
		      uint64_t mask)
{
	buf[0] = g->src | (uint64_t)g->dst << 12 | (uint64_t)path << 24 |
		 (g->base - p->slot0) << 32;
	buf[1] = mask;
}

/* in place of comm: everything that comes out of the pipeline */
static void drain(struct pipe *p)
{
	uint64_t first = arb_slot(p->arb, 0) + TELL, buf[2 * PIECE];
	struct arb_grant g;
	size_t n = 0;

	while (arb_next_grant(p->arb, &g)) {
		uint64_t gone = 0;

		if (g.kind == ARB_REFUND) {
			p->unplaced += g.mtus;
			want(p, g.src, g.dst, g.mtus);
			continue;
		}
		if (g.kind == ARB_MARK) {
			const uint64_t now = bl_mono_ns();

			/* as comm does */
			atomic_store_explicit(&p->arb->took_ns, now - g.slots,
					      memory_order_relaxed);
			atomic_fetch_add_explicit(&p->arb->marks, 1, memory_order_relaxed);
			first = arb_slot(p->arb, 0) + TELL;
			p->leads += g.base + TELL > first ? g.base + TELL - first : 0;
			p->nruns++;
			continue;
		}
		if (n + 4 > 2 * PIECE) {
			p->full |= !log_put(&p->out, buf, n);
			n = 0;
			first = arb_slot(p->arb, 0) + TELL;
		}
		log_grant(p, &buf[n], &g, g.path, g.slots);
		n += 2;
		if (__builtin_expect(g.base >= first, 1))
			continue;
		gone = g.slots & (first - g.base > 63 ? ~0ULL : (1ULL << (first - g.base)) - 1);
		if (!gone)
			continue;
		log_grant(p, &buf[n], &g, LATE, gone);
		n += 2;
		p->late += (uint32_t)__builtin_popcountll(gone);
		want(p, g.src, g.dst, (uint32_t)__builtin_popcountll(gone));
	}
	p->full |= !log_put(&p->out, buf, n);
}

static struct pipe *draining; /* of core 0: bl_arb.drain has no place for it */

static void drain_arb(struct bl_arb *a)
{
	(void)a;
	drain(draining);
}

static void arrivals_and_paths(struct pipe *p)
{
	uint64_t t, cpu = bl_clock_ns(CLOCK_THREAD_CPUTIME_ID), from = bl_mono_ns();

	for (t = from; t < p->end_ns; t = bl_mono_ns()) {
		arrive(p, t);
		if (!arb_path_turn(p->arb, 0))
			continue;
		drain(p);
		p->busy_ns[0] += bl_mono_ns() - t;
	}
	atomic_store(&p->arb->stop, true);
	p->off_ns[0] = off_ns(from, cpu);
#ifdef __SSE2__
	_mm_sfence();
#endif
}

/* ---- core 1 ---- */

static void *allocation(void *arg)
{
	struct pipe *p = arg;
	uint64_t t, cpu, from, runs = 0;

	while (bl_mono_ns() < p->start_ns)
		;
	cpu = bl_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	from = bl_mono_ns();
	for (t = from; t < p->end_ns; t = bl_mono_ns()) {
		arb_alloc_turn(p->arb);
		if (runs == atomic_load_explicit(&p->arb->runs, memory_order_relaxed))
			continue;
		runs = atomic_load_explicit(&p->arb->runs, memory_order_relaxed);
		p->busy_ns[1] += bl_mono_ns() - t;
	}
	p->off_ns[1] = off_ns(from, cpu);
	return NULL;
}

/* ---- after it ---- */

/**
 * struct replay - all packets of the last RING slots. @slot: [slot % RING] whose they are.
 * @src, @dst: [slot % RING][endpoints / 64] who sends, who receives.
 * @up, @down: [slot % RING][racks x PATHS] packets. @owed: [src][dst] MTUs asked for and not given.
 */
struct replay {
	uint64_t *slot, *src, *dst;
	uint16_t *up, *down;
	int64_t *owed;
};

/* one packet; NULL or what is wrong */
static const char *put(const struct pipe *p, struct replay *s, uint32_t src, uint32_t dst,
		       uint32_t path, uint64_t slot)
{
	const size_t r = slot % RING, words = (p->endpoints + 63) / 64;
	const uint32_t a = src / ARB_RACK, b = dst / ARB_RACK;
	uint64_t *from = &s->src[r * words + src / 64], *to = &s->dst[r * words + dst / 64];

	if (s->slot[r] > slot)
		return "a slot was given long after others";
	if (s->slot[r] < slot) {
		s->slot[r] = slot;
		memset(&s->src[r * words], 0, words * sizeof(*s->src));
		memset(&s->dst[r * words], 0, words * sizeof(*s->dst));
		memset(&s->up[r * p->racks * PATHS], 0, p->racks * PATHS * sizeof(*s->up));
		memset(&s->down[r * p->racks * PATHS], 0, p->racks * PATHS * sizeof(*s->down));
	}
	if (*from >> src % 64 & 1)
		return "an endpoint sends two packets in one slot";
	if (*to >> dst % 64 & 1)
		return "an endpoint receives two packets in one slot";
	*from |= 1ULL << src % 64;
	*to |= 1ULL << dst % 64;
	if ((path == BL_FCP_PATH_ANY) != (a == b))
		return "a packet has a path within its rack, or none out of it";
	if (a == b)
		return NULL;
	if (path >= PATHS)
		return "there is no such path";
	if (++s->up[(r * p->racks + a) * PATHS + path] > p->file.path_cap ||
	    ++s->down[(r * p->racks + b) * PATHS + path] > p->file.path_cap)
		return "a rack has more packets on a path than it carries";
	return NULL;
}

static const char *replay(const struct pipe *p, struct replay *s, uint64_t *in_time,
			  uint64_t *verified)
{
	const uint64_t from = (uint64_t)(WARM_NS / ARB_SLOT_NS),
		       end = (uint64_t)(TRIAL_NS / ARB_SLOT_NS);
	const char *why = NULL;
	size_t i;

	for (i = 0; i < p->asks.n; i++)
		s->owed[(p->asks.word[i] & 0xffff) * p->endpoints +
			(p->asks.word[i] >> 16 & 0xffff)] += (int64_t)(p->asks.word[i] >> 32);
	for (i = 0; !why && i < p->out.n; i += 2) {
		const uint32_t src = p->out.word[i] & 0xfff, dst = p->out.word[i] >> 12 & 0xfff;
		const uint32_t path = p->out.word[i] >> 24 & 0xff;
		const uint64_t base = p->out.word[i] >> 32;
		uint64_t bits;

		for (bits = p->out.word[i + 1]; !why && bits; bits &= bits - 1) {
			const uint64_t slot = base + (uint32_t)__builtin_ctzll(bits);
			const bool counts = slot >= from && slot < end;

			if (path == LATE) {
				*in_time -= counts;
				continue;
			}
			*in_time += counts;
			++*verified;
			why = put(p, s, src, dst, path, slot);
			if (!why && --s->owed[(size_t)src * p->endpoints + dst] < 0)
				why = "a pair has got more than was asked for it";
		}
	}
	return why;
}

/* all that came out. @in_time: packets in slots of the measured time. 0; 1 after a message */
static int verify(struct pipe *p, uint64_t *in_time, uint64_t *verified)
{
	const size_t words = (p->endpoints + 63) / 64;
	struct replay s = {
		.slot = calloc(RING, sizeof(*s.slot)),
		.src = calloc(RING * words, sizeof(*s.src)),
		.dst = calloc(RING * words, sizeof(*s.dst)),
		.up = calloc((size_t)RING * p->racks * PATHS, sizeof(*s.up)),
		.down = calloc((size_t)RING * p->racks * PATHS, sizeof(*s.down)),
		.owed = calloc((size_t)p->endpoints * p->endpoints, sizeof(*s.owed)),
	};
	const char *why = "out of memory";

	if (s.slot && s.src && s.dst && s.up && s.down && s.owed)
		why = replay(p, &s, in_time, verified);
	free(s.slot);
	free(s.src);
	free(s.dst);
	free(s.up);
	free(s.down);
	free(s.owed);
	return why ? cli_fail("the schedule is wrong: %s", why) : 0;
}

static void draw(struct pipe *p, struct arb_rnd *rnd, size_t max)
{
	const double gap = ARB_SLOT_NS * p->mtus / (p->endpoints * p->load);
	double due = 0;
	uint32_t src, dst;

	for (p->ndrawn = 0; p->ndrawn < max && due < TRIAL_NS; p->ndrawn++) {
		src = arb_below(rnd, p->endpoints);
		dst = arb_below(rnd, p->endpoints - 1);
		dst += dst >= src;
		p->drawn[p->ndrawn] =
			(struct pipe_ask){ (uint64_t)due, (uint16_t)src, (uint16_t)dst, p->mtus };
		due += -log1p(-arb_unit(rnd)) * gap;
	}
}

/* time that the host of this virtual machine took from both cores, as far as it says so */
static uint64_t stolen_ns(void)
{
	unsigned long long t[8], sum = 0;
	unsigned int cpu;
	char line[256];
	FILE *f = fopen("/proc/stat", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0],
			   &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) == 9 &&
		    cpu < 2)
			sum += t[7];
	if (f)
		fclose(f);
	return sum * 1000000000ULL / (unsigned long long)sysconf(_SC_CLK_TCK);
}

/* The arbiter as bl_arb_new() makes it, but for comm and its sockets. */
static struct bl_arb *arb_open(struct pipe *p, struct bl_err *err)
{
	struct bl_arb *a = aligned_alloc(64, (sizeof(*a) + 63) & ~63UL);

	if (!a)
		return NULL;
	memset(a, 0, sizeof(*a));
	a->cfg = (struct bl_arb_cfg){ .slot_ns = p->file.slot_ns,
				      .lead_us = p->file.lead_us,
				      .run_slots = p->file.run_slots,
				      .late_us = p->file.late_us,
				      .threads = 3,
				      .nendpoints = p->endpoints,
				      .clock = CLOCK_MONOTONIC,
				      .clock_set = true };
	a->wd_fd = a->wd_send = a->bell_fd = -1;
	a->aops = bl_engine_ops(p->engine);
	a->alloc = bl_engine_alloc(p->engine);
	a->pops = bl_engine_path_ops(p->engine);
	a->npaths = a->pops ? 1 : 0;
	a->paths[0] = bl_engine_paths(p->engine)[0];
	a->alone = true;
	a->until_ns = BL_FCP_NEVER;
	a->drain = drain_arb;
	if (!arb_pipe_open(a, err))
		return a;
	arb_pipe_close(a);
	free(a);
	return NULL;
}

/* one trial. 0; 1 after a message */
static int trial(struct pipe *p, struct arb_rnd *rnd, size_t maxask, struct result *res,
		 uint64_t *verified)
{
	uint64_t stolen, off, in_time = 0, before = *verified, granted;
	struct bl_err e = { 0 };
	pthread_t thread;
	size_t i;
	int err = 1;

	p->arb = NULL;
	if (bl_engine_new(&p->engine, &p->file, &e) || !(p->arb = arb_open(p, &e))) {
		cli_fail("%s", *e.text ? e.text : "out of memory");
		goto out;
	}
	draw(p, rnd, maxask);
	draining = p;
	memset(p->wanted, 0, p->pairs * sizeof(*p->wanted));
	p->due = p->nqueue = p->queue_done = p->asks.n = p->out.n = 0;
	p->late = p->unplaced = p->leads = p->nruns = p->busy_ns[0] = p->busy_ns[1] = 0;
	p->full = false;
	stolen = stolen_ns();
	p->start_ns = bl_mono_ns() + 2000000;
	p->end_ns = p->start_ns + TRIAL_NS;
	p->slot0 = p->start_ns / p->file.slot_ns;
	for (i = 0; i < p->ndrawn; i++)
		p->drawn[i].due_ns += p->start_ns;
	if (start_on(1, &thread, allocation, p)) {
		cli_fail("cannot start a thread");
		goto out;
	}
	pin(0);
	while (bl_mono_ns() < p->start_ns)
		;
	arrivals_and_paths(p);
	pthread_join(thread, NULL);
	stolen = stolen_ns() - stolen;
	if (p->full) {
		cli_fail("the log is full; give a lower load");
		goto out;
	}
	err = verify(p, &in_time, verified);
	granted = *verified - before + p->unplaced + 1;
	off = p->off_ns[0] + p->off_ns[1];
	*res = (struct result){
		.tbit = (double)in_time * ARB_SLOT_BITS / (TRIAL_NS - WARM_NS) / 1000,
		.late = 100.0 * (double)p->late / (double)granted,
		.unplaced = 100.0 * (double)p->unplaced / (double)granted,
		.skipped = 100.0 * (double)p->arb->skipped * ARB_SLOT_NS / TRIAL_NS,
		.away = 100.0 * (double)(off > stolen ? off : stolen) / (2.0 * TRIAL_NS),
		.ns = { (double)p->busy_ns[0] / (double)granted,
			(double)p->busy_ns[1] / (double)granted },
		.cpu = { 100 - 100.0 * (double)p->off_ns[0] / TRIAL_NS,
			 100 - 100.0 * (double)p->off_ns[1] / TRIAL_NS },
		.lead = (double)p->leads / (double)(p->nruns ? p->nruns : 1)
	};
out:
	if (p->arb)
		arb_pipe_close(p->arb);
	free(p->arb);
	bl_engine_free(p->engine);
	p->arb = NULL;
	p->engine = NULL;
	return err;
}

/* of one number of all trials */
static double median(const struct result *r, size_t offset)
{
	double v[TRIALS];
	size_t i;

	for (i = 0; i < TRIALS; i++)
		memcpy(&v[i], (const char *)&r[i] + offset, sizeof(v[i]));
	return arb_median(v, TRIALS);
}
#define MEDIAN(r, field) median(r, offsetof(struct result, field))

/* where a trial carried little, what its threads had of their cores says whose fault it is */
static json_t *trials(const struct result *r)
{
	json_t *all = json_array(), *one;
	size_t i;

	for (i = 0; i < TRIALS; i++) {
		one = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "tbps", r[i].tbit, "late",
				r[i].late, "skipped", r[i].skipped, "cpu_path", r[i].cpu[0],
				"cpu_alloc", r[i].cpu[1], "ns_path", r[i].ns[0], "ns_alloc",
				r[i].ns[1]);
		json_array_append_new(all, one);
	}
	return all;
}

/* what a file with these endpoints would say */
static bool describe(struct pipe *p, const struct arb_args *a)
{
	uint32_t i;

	p->file = (struct bl_fp_file){ .rate_bps = 10000000000ULL,
				       .slot_ns = (uint32_t)ARB_SLOT_NS,
				       .slot_bytes = 1514,
				       .policy = p->policy,
				       .window_slots = (uint32_t)a->window,
				       .run_slots = (uint32_t)a->tick,
				       .quota = 65536,
				       .paths = PATHS,
				       .path_cap = (ARB_RACK + PATHS - 1) / PATHS,
				       .npeers = p->endpoints,
				       .nracks = p->racks };
	bl_fp_times(&p->file);
	p->file.peer = calloc(p->endpoints, sizeof(*p->file.peer));
	for (i = 0; p->file.peer && i < p->endpoints; i++) {
		p->file.peer[i].rack = (uint16_t)(i / ARB_RACK);
		p->file.peer[i].cap = 1;
	}
	return p->file.peer;
}

static json_t *measure(const struct arb_args *a, enum bl_alloc_policy policy, double load)
{
	struct pipe *p = aligned_alloc(64, (sizeof(*p) + 63) / 64 * 64);
	struct arb_rnd rnd = { (uint64_t)a->seed };
	struct result r[TRIALS];
	double best = 0, least = 0, away_least = 0;
	size_t maxask, i;
	uint64_t verified = 0;
	json_t *row = NULL;

	if (!p) {
		cli_fail("out of memory");
		return NULL;
	}
	memset(p, 0, sizeof(*p));
	p->endpoints = a->endpoints ? (uint32_t)a->endpoints : 256;
	p->racks = (p->endpoints + ARB_RACK - 1) / ARB_RACK;
	p->policy = policy;
	p->mtus = a->mtus ? (uint32_t)a->mtus : 10;
	p->load = load;
	/* Poisson: ten standard deviations more than the mean */
	maxask = (size_t)(TRIAL_NS / ARB_SLOT_NS * p->endpoints * load / p->mtus);
	maxask += 10 * (size_t)sqrt((double)maxask) + 64;
	p->asks.max = maxask + LOG_MAX / 4; /* all, and all masks again */
	p->out.max = LOG_MAX;
	p->drawn = pages(maxask * sizeof(*p->drawn));
	p->pairs = (size_t)p->endpoints * p->endpoints;
	p->wanted = pages(p->pairs * sizeof(*p->wanted));
	p->queue = pages(p->pairs * sizeof(*p->queue));
	p->asks.word = pages(p->asks.max * sizeof(*p->asks.word));
	p->out.word = pages(p->out.max * sizeof(*p->out.word));
	if (!p->drawn || !p->wanted || !p->queue || !p->asks.word || !p->out.word ||
	    !describe(p, a)) {
		cli_fail("out of memory");
		goto out;
	}
	for (i = 0; i < TRIALS; i++) {
		if (trial(p, &rnd, maxask, &r[i], &verified))
			goto out;
		best = r[i].tbit > best ? r[i].tbit : best;
		if (!i || r[i].tbit < least) {
			least = r[i].tbit;
			away_least = r[i].away;
		}
	}
	row = json_pack("{s:I, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, "
			"s:f, s:I, s:f, s:o}",
			"endpoints", (json_int_t)p->endpoints, "policy",
			bl_alloc_policy_name(policy), "window", (json_int_t)p->file.window_slots,
			"load", 100 * load, "offered_tbps",
			load * p->endpoints * ARB_SLOT_BITS / ARB_SLOT_NS / 1000, "tbps",
			MEDIAN(r, tbit), "tbps_least", least, "tbps_best", best, "late",
			MEDIAN(r, late), "unplaced", MEDIAN(r, unplaced), "skipped",
			MEDIAN(r, skipped), "away", MEDIAN(r, away), "lead", MEDIAN(r, lead),
			"ns_path", MEDIAN(r, ns[0]), "ns_alloc", MEDIAN(r, ns[1]), "verified",
			(json_int_t)verified, "away_least", away_least, "trials", trials(r));
out:
	pages_free(p->drawn, maxask * sizeof(*p->drawn));
	pages_free(p->wanted, p->pairs * sizeof(*p->wanted));
	pages_free(p->queue, p->pairs * sizeof(*p->queue));
	pages_free(p->asks.word, p->asks.max * sizeof(*p->asks.word));
	pages_free(p->out.word, p->out.max * sizeof(*p->out.word));
	free(p->file.peer);
	free(p);
	return row;
}

static json_t *measure_pipeline(const struct arb_args *a)
{
	static const double loads[] = { 0.5, 0.8, 0.9, 0.95 };
	static const enum bl_alloc_policy both[] = { BL_ALLOC_FIRST, BL_ALLOC_FAIR };
	json_t *rows = json_array(), *row;
	unsigned int p, i;

	for (p = 0; p < 2; p++)
		for (i = 0; i < (a->load > 0 ? 1 : sizeof(loads) / sizeof(loads[0])); i++) {
			const enum bl_alloc_policy policy =
				a->policy >= 0 ? (enum bl_alloc_policy)a->policy : both[p];

			if (a->policy >= 0 && p)
				continue;
			out_progress("pipeline: %s, load %.2f ...", bl_alloc_policy_name(policy),
				     a->load > 0 ? a->load : loads[i]);
			row = measure(a, policy, a->load > 0 ? a->load : loads[i]);
			if (!row || json_array_append_new(rows, row)) {
				json_decref(rows);
				return NULL;
			}
		}
	return rows;
}

static const struct col pipe_cols[] = {
	{ "endpoints", "endpoints", 'd' },
	{ "policy", "policy", 's' },
	{ "window", "window", 'd' },
	{ "load", "load %", 'f' },
	{ "offered_tbps", "offered Tbit/s", 'f' },
	{ "tbps", "carried Tbit/s", 'f' },
	{ "tbps_least", "least", 'f' },
	{ "away_least", "away in it %", 'f' },
	{ "tbps_best", "best", 'f' },
	{ "late", "late %", 'f' },
	{ "unplaced", "no path %", 'f' },
	{ "skipped", "skipped %", 'f' },
	{ "away", "cores away %", 'f' },
	{ "lead", "lead slots", 'f' },
	{ "ns_alloc", "alloc ns/packet", 'f' },
	{ "ns_path", "path ns/packet", 'f' },
	{ "verified", "packets verified", 'd' },
};

const struct arb_bench arb_bench_pipeline = { "pipeline", measure_pipeline, pipe_cols,
					      sizeof(pipe_cols) / sizeof(pipe_cols[0]) };
