/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline arbiter bench pipeline: the stages of the arbiter (arbiter/pipe.c) with its engine
 * (arbiter/engine.c) on two cores, in real time. Only comm, with sockets and FCP, is missing:
 *
 *   core 0  puts requests that are due into the ring that comm would fill; runs the path stage;
 *           takes grants from the ring that comm would read
 *   core 1  runs the allocation stage, as in `barline arbiter run`: requests, runs, lead
 *
 * A packet is in time if its grant comes out TELL slots before its slot begins, because its
 * sender must be told. Packets that are late, found no path or were refused are not carried; core
 * 0 requests them again, as comm does, or a host that got no answer. Example: slots of 1230 ns,
 * lead 100 us. At slot 1000 the allocation stage grants slots from 1081 on. A grant that comes
 * out at slot 1040 is in time if its slot is 1056 or later, so all of these are.
 *
 * The configuration is that of a file with these endpoints, racks and paths: the same window, lead
 * and time between two runs (bl_fp_times()), and a single arbiter. --window and --tick are
 * window_slots and run_slots of such a file.
 *
 * All grants are logged with writes that bypass the caches, and are verified after the trial: no
 * endpoint sends or receives two packets in one slot, no rack has more packets on a path than it
 * carries, over all runs together, and no pair gets more than was requested for it. Whether
 * schedules are maximal is verified by bench alloc, which passes each run to the verifier.
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

#define TELL     16u       /* slots to tell the sender; 20 us */
#define RING     4096u     /* slots that replay holds; more than a window and its lead */
#define PIECE    256u      /* requests that are passed on at a time */
#define TRIAL_NS 200000000 /* duration of a trial */
#define WARM_NS  20000000  /* part of it that is not counted, for the backlog to build up */
#define TRIALS   9
#define LOG_MAX  (1u << 26) /* words of a trial */
#define PATHS    4u
/* path of a log entry that has the late slots of the entry before it */
#define LATE 0xfeu

/** struct pipe_ask - A request. */
struct pipe_ask {
	uint64_t due_ns; /* CLOCK_MONOTONIC; before the trial: since its start */
	uint16_t src, dst;
	uint32_t mtus;
};

/** struct log - Written by one core, read after the trial. */
struct log {
	uint64_t *word;
	size_t n, max; /* used and allocated words */
};

/** struct pipe - A trial. Core 0 owns all fields but those of the arbiter and those by core. */
struct pipe {
	struct bl_fp_file file; /* configuration of engine and stages */
	struct bl_engine *engine;
	struct bl_arb *arb; /* without sockets; core 1 runs its allocation stage until @end_ns */
	enum bl_alloc_policy policy;
	uint32_t endpoints, racks;
	uint32_t mtus; /* of each request */
	double load;
	uint64_t start_ns, end_ns; /* of the trial, CLOCK_MONOTONIC */
	uint64_t slot0;            /* the slot at @start_ns */
	struct pipe_ask *drawn;    /* @ndrawn requests, drawn before the start */
	size_t ndrawn, due;        /* @due: the next one */
	uint32_t *wanted;          /* [src][dst]: MTUs that are yet to be requested */
	uint32_t *queue;           /* [n % @pairs]: pairs with such MTUs */
	size_t pairs;
	size_t nqueue, queue_done; /* pairs that were put into @queue, and taken from it */
	struct log asks;           /* all requests */
	struct log out;            /* all grants, two words each (log_grant()) */
	uint64_t late, unplaced;   /* packets */
	uint64_t leads; /* slots from the present to the first slot of a run, over @nruns runs */
	uint64_t nruns;
	bool full;                       /* a log is full, and the trial has failed */
	_Alignas(64) uint64_t off_ns[2]; /* by core: time in which its thread did not run */
	uint64_t busy_ns[2];             /* by core: time in which its stage had work */
};

/** struct result - The results of one trial; percentages are of packets or of time. */
struct result {
	double tbit;     /* carried, Tbit/s */
	double late;     /* % of packets */
	double unplaced; /* % of packets that found no path */
	double skipped;  /* % of slots */
	double away;     /* % of the time of both cores in which a thread did not run */
	double lead;     /* mean, slots */
	double ns[2];    /* by core: time per packet */
	double cpu[2];   /* by core: % of the time in which its thread ran */
};

/* returns how long this thread, with a CPU time of @cpu at @from, has not run since @from */
static uint64_t thread_off_ns(uint64_t from, uint64_t cpu)
{
	const uint64_t ran = bl_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu, all = bl_mono_ns() - from;

	return all > ran ? all - ran : 0;
}

/* allocates memory whose pages are mapped before the trial starts */
static void *map_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

static void unmap_pages(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

/* appends @n words, bypassing the caches, because they are read only after the trial */
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

static void pin_thread(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* if this is refused, the kernel chooses a CPU */
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/*
 * Starts a thread that runs on core @cpu from its first instruction. If it began on the core of
 * this thread, which spins until the start, it would be late by a time slice, or with a real-time
 * priority never run.
 */
static int start_thread(unsigned int cpu, pthread_t *thread, void *(*f)(void *), void *arg)
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
	/* with a single core the kernel chooses */
	return err ? pthread_create(thread, NULL, f, arg) : 0;
}

/* ---- core 0 ---- */

/* adds to the MTUs that are wanted for a pair; as in comm, they are one number per pair */
static void add_wanted(struct pipe *p, uint32_t src, uint32_t dst, uint32_t mtus)
{
	const uint32_t pair = src * p->endpoints + dst;

	if (!p->wanted[pair])
		p->queue[p->nqueue++ % p->pairs] = pair;
	p->wanted[pair] += mtus;
}

/*
 * Passes on requests that are due, as far as the ring has room. After a pause it does so in pieces,
 * so that grants do not become late meanwhile.
 */
static void pass_requests(struct pipe *p, uint64_t t)
{
	uint64_t buf[PIECE];
	size_t n;

	for (n = 0; n < PIECE && p->due < p->ndrawn && p->drawn[p->due].due_ns <= t; n++, p->due++)
		add_wanted(p, p->drawn[p->due].src, p->drawn[p->due].dst, p->drawn[p->due].mtus);
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
 * Writes a log entry: a word with source, destination, path, and the first slot of the mask
 * relative to the start of the trial; and a word with the mask of slots.
 */
static void log_grant(struct pipe *p, uint64_t *buf, const struct arb_grant *g, uint32_t path,
		      uint64_t mask)
{
	buf[0] = g->src | (uint64_t)g->dst << 12 | (uint64_t)path << 24 |
		 (g->base - p->slot0) << 32;
	buf[1] = mask;
}

/* does what comm does with everything that comes out of the pipeline */
static void drain_grants(struct pipe *p)
{
	uint64_t first = arb_slot(p->arb, 0) + TELL, buf[2 * PIECE];
	struct arb_grant g;
	size_t n = 0;

	while (arb_next_grant(p->arb, &g)) {
		uint64_t gone = 0;

		if (g.kind == ARB_REFUND) {
			p->unplaced += g.mtus;
			add_wanted(p, g.src, g.dst, g.mtus);
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
		add_wanted(p, g.src, g.dst, (uint32_t)__builtin_popcountll(gone));
	}
	p->full |= !log_put(&p->out, buf, n);
}

static struct pipe *draining; /* argument of drain_arb(), which gets only the arbiter; core 0 */

static void drain_arb(struct bl_arb *a)
{
	(void)a;
	drain_grants(draining);
}

static void run_core0(struct pipe *p)
{
	uint64_t t, cpu = bl_clock_ns(CLOCK_THREAD_CPUTIME_ID), from = bl_mono_ns();

	for (t = from; t < p->end_ns; t = bl_mono_ns()) {
		pass_requests(p, t);
		if (!arb_path_turn(p->arb, 0))
			continue;
		drain_grants(p);
		p->busy_ns[0] += bl_mono_ns() - t;
	}
	atomic_store(&p->arb->stop, true);
	p->off_ns[0] = thread_off_ns(from, cpu);
#ifdef __SSE2__
	_mm_sfence();
#endif
}

/* ---- core 1 ---- */

static void *run_core1(void *arg)
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
	p->off_ns[1] = thread_off_ns(from, cpu);
	return NULL;
}

/* ---- verification ---- */

/** struct replay - All packets of the last RING slots. */
struct replay {
	uint64_t *slot;      /* [slot % RING]: the slot whose packets these are */
	uint64_t *src, *dst; /* [slot % RING][endpoints / 64]: bits of senders and of receivers */
	uint16_t *up, *down; /* [slot % RING][racks x PATHS]: packets */
	int64_t *owed;       /* [src][dst]: MTUs that were requested and not granted yet */
};

/* enters one packet; returns NULL, or what is wrong */
static const char *replay_packet(const struct pipe *p, struct replay *s, uint32_t src, uint32_t dst,
				 uint32_t path, uint64_t slot)
{
	const size_t r = slot % RING, words = (p->endpoints + 63) / 64;
	const uint32_t a = src / ARB_RACK, b = dst / ARB_RACK;
	uint64_t *from = &s->src[r * words + src / 64], *to = &s->dst[r * words + dst / 64];

	if (s->slot[r] > slot)
		return "a slot was granted long after others";
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

static const char *replay_log(const struct pipe *p, struct replay *s, uint64_t *in_time,
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
			why = replay_packet(p, s, src, dst, path, slot);
			if (!why && --s->owed[(size_t)src * p->endpoints + dst] < 0)
				why = "a pair was granted more than was requested for it";
		}
	}
	return why;
}

/*
 * Verifies all grants.
 * @in_time: gets the packets that were in time, in slots of the measured time
 * @verified: the number of verified packets is added
 * Returns 0, or 1 after a message.
 */
static int verify_log(struct pipe *p, uint64_t *in_time, uint64_t *verified)
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
		why = replay_log(p, &s, in_time, verified);
	free(s.slot);
	free(s.src);
	free(s.dst);
	free(s.up);
	free(s.down);
	free(s.owed);
	return why ? cli_fail("the schedule is wrong: %s", why) : 0;
}

static void draw_requests(struct pipe *p, struct arb_rnd *rnd, size_t max)
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

/* returns the time that the hypervisor took from both cores, as far as it reports it */
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

/* Makes an arbiter as bl_arb_new() does, but without comm and its sockets. */
static struct bl_arb *open_arbiter(struct pipe *p, struct bl_err *err)
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

/* runs one trial; returns 0, or 1 after a message */
static int run_trial(struct pipe *p, struct arb_rnd *rnd, size_t maxask, struct result *res,
		     uint64_t *verified)
{
	uint64_t stolen, off, in_time = 0, before = *verified, granted;
	struct bl_err e = { 0 };
	pthread_t thread;
	size_t i;
	int err = 1;

	p->arb = NULL;
	if (bl_engine_new(&p->engine, &p->file, &e) || !(p->arb = open_arbiter(p, &e))) {
		cli_fail("%s", *e.text ? e.text : "out of memory");
		goto out;
	}
	draw_requests(p, rnd, maxask);
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
	if (start_thread(1, &thread, run_core1, p)) {
		cli_fail("cannot start a thread");
		goto out;
	}
	pin_thread(0);
	while (bl_mono_ns() < p->start_ns)
		;
	run_core0(p);
	pthread_join(thread, NULL);
	stolen = stolen_ns() - stolen;
	if (p->full) {
		cli_fail("the log is full; choose a lower load");
		goto out;
	}
	err = verify_log(p, &in_time, verified);
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

/* returns the median, over all trials, of the field at @offset */
static double result_median(const struct result *r, size_t offset)
{
	double v[TRIALS];
	size_t i;

	for (i = 0; i < TRIALS; i++)
		memcpy(&v[i], (const char *)&r[i] + offset, sizeof(v[i]));
	return arb_median(v, TRIALS);
}
#define MEDIAN(r, field) result_median(r, offsetof(struct result, field))

/* Returns the rows of all trials. If a trial carried little, the CPU shares of its threads show
 * why. */
static json_t *make_trial_rows(const struct result *r)
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

/* makes the configuration that a file with these endpoints would have */
static bool make_file(struct pipe *p, const struct arb_args *a)
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

static json_t *measure_row(const struct arb_args *a, enum bl_alloc_policy policy, double load)
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
	/* of a Poisson process: ten standard deviations more than the mean */
	maxask = (size_t)(TRIAL_NS / ARB_SLOT_NS * p->endpoints * load / p->mtus);
	maxask += 10 * (size_t)sqrt((double)maxask) + 64;
	p->asks.max = maxask + LOG_MAX / 4; /* all requests, and all late masks again */
	p->out.max = LOG_MAX;
	p->drawn = map_pages(maxask * sizeof(*p->drawn));
	p->pairs = (size_t)p->endpoints * p->endpoints;
	p->wanted = map_pages(p->pairs * sizeof(*p->wanted));
	p->queue = map_pages(p->pairs * sizeof(*p->queue));
	p->asks.word = map_pages(p->asks.max * sizeof(*p->asks.word));
	p->out.word = map_pages(p->out.max * sizeof(*p->out.word));
	if (!p->drawn || !p->wanted || !p->queue || !p->asks.word || !p->out.word ||
	    !make_file(p, a)) {
		cli_fail("out of memory");
		goto out;
	}
	for (i = 0; i < TRIALS; i++) {
		if (run_trial(p, &rnd, maxask, &r[i], &verified))
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
			(json_int_t)verified, "away_least", away_least, "trials",
			make_trial_rows(r));
out:
	unmap_pages(p->drawn, maxask * sizeof(*p->drawn));
	unmap_pages(p->wanted, p->pairs * sizeof(*p->wanted));
	unmap_pages(p->queue, p->pairs * sizeof(*p->queue));
	unmap_pages(p->asks.word, p->asks.max * sizeof(*p->asks.word));
	unmap_pages(p->out.word, p->out.max * sizeof(*p->out.word));
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
			row = measure_row(a, policy, a->load > 0 ? a->load : loads[i]);
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
