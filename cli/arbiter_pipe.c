/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline arbiter bench pipeline: allocation and path selection on two cores, in real time. Slot s begins s x 1.23 us after the start; requests become due as the
 * clock runs, and what is not ready in its time is lost.
 *
 *	core 0	requests that are due go to core 1; grants come from there and get paths, 64 slots at a time (path_room.h)
 *	core 1	every 16 slots: takes the requests that came, runs the allocator for slots from the lead ahead on, hands over the grants
 *
 * In time is a packet whose path is known TELL slots before its slot begins: so long it may take to tell its sender. What is late, and what finds no path, is not carried: core 0
 * asks for it again, like a host that heard nothing. Example: at slot 1000 with a lead of 140 the allocator gives slots from 1140 on; core 0 has the run at slot 1090,
 * so a packet in slot 1105 would be late (1090 + 16 > 1105), and all of this run are in time.
 *
 * Against the spiral of overload (a core is taken away for a while, what waits has grown, runs take longer, slots are missed, more waits):
 *	- only so much waits in the allocator as fills its next step (bl_alloc_enough()); the rest stays in the queue before it, where it costs nothing
 *	- the lead is what runs needed lately, from their begin to their last path, and never more than LEAD_MAX
 *	- slots that have passed are skipped, and counted
 *	- what is late is dropped 64 slots at a time; requests that piled up come over in pieces
 *
 * Not in it: sockets and FCP. The log by which all is verified after a trial is written past the caches: through them it took three quarters of the time of core 0 (2026-11-21).
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

#include "../arbiter/lead.h"
#include "../arbiter/path_room.h"
#include "../arbiter/verify.h"
#include "arbiter.h"
#include "cmd.h"

#define TELL	   16u	/* slots: 20 us */
#define LEAD_MIN   82u	/* slots: 100 us; TELL is part of it */
#define LEAD_MAX   1536u
#define LEAD_SPAN  2048u /* slots for which a slow run is remembered, or up to twice as long: longer than any window */
#define ROOM_WORDS 16u /* more than a window */
#define RING	   4096u /* slots that the verification has in hand: more than a window and its lead */
#define PIECE	   256u	 /* requests handed over at a time, asks coloured at a time: some microseconds */
#define QUEUE	   4u	 /* runs between the cores: what waits there gets late */
#define ASKS	   (1u << 14) /* requests between the cores */
#define TRIAL_NS   200000000 /* each */
#define WARM_NS	   20000000 /* of it, not counted: what waits grows to its usual amount */
#define TRIALS	   9
#define AGAIN	   (1u << 16) /* masks to be asked for again */
#define LOG_MAX	   (1u << 25) /* words of grants, and of colours, in a trial: at full load 6 MTUs to a mask and its head */
#define PATHS	   4u
_Static_assert(PATHS == BL_ROOM_LANES, "masks lie behind each other without gaps");

/** struct pipe_ask - @due_ns: after the start; later CLOCK_MONOTONIC. */
struct pipe_ask {
	uint64_t due_ns;
	uint16_t src, dst;
	uint32_t mtus;
};

/** struct pipe_run - one run of the allocator. @asks: requests taken before it, in all. @len: of its row. @begun_ns: when it began. */
struct pipe_run {
	uint64_t now, base;
	uint64_t begun_ns;
	uint64_t mtus;
	size_t asks, len;
};

/** struct log - written by one core, read after the trial. @n: of @max words. */
struct log {
	uint64_t *word;
	size_t n, max;
};

/**
 * struct pipe - a trial.
 * @drawn: requests, drawn before it starts; @due: the next. @again: what core 0 asks for again, @nagain in all, of which @again_done have gone.
 * @ask: [n % ASKS] source, destination << 16, MTUs << 32: core 0 to core 1. @nask (release) counts what was written, @nask_done (release) what was read.
 * @run, @row: [n % QUEUE] core 1 to core 0, counted in the same way by @nrun and @nrun_done. @took: by core 0, slots from the begin of the last run to its last path.
 * @asks, @runs, @rows, @colours: the log. Colours: for 16 masks of the row a word with four bits each, which paths they have, then their masks on these.
 * @start_ns: CLOCK_MONOTONIC of slot 0. @late, @unplaced: packets; @skipped: slots. @leads: sum over runs, to be averaged. @off_ns: by core, not running. @busy_ns: by core, in runs.
 */
struct pipe {
	struct bl_alloc_cfg cfg;
	uint32_t tick, mtus, racks;
	double load;
	struct bl_alloc *alloc;
	struct bl_room *room;
	uint64_t start_ns, end_ns;
	struct pipe_ask *drawn;
	size_t ndrawn, due;
	uint64_t *again;
	size_t nagain, again_done;
	uint64_t *ask;
	struct pipe_run run[QUEUE];
	uint64_t *row[QUEUE];
	struct log asks, rows, colours;
	struct pipe_run *runs;
	size_t maxrun, nruns;
	uint64_t late, unplaced;
	_Alignas(64) _Atomic size_t nask;
	_Alignas(64) _Atomic size_t nask_done;
	_Alignas(64) _Atomic size_t nrun;
	_Alignas(64) _Atomic size_t nrun_done;
	_Atomic uint32_t took;
	_Atomic bool full; /* a log is: a trial that must not happen */
	_Alignas(64) uint64_t skipped, leads;
	uint64_t off_ns[2], busy_ns[2];
};

/** struct result - of one trial, in percent but @tbit; @lead: slots; @ns: for each packet, by core. */
struct result {
	double tbit, late, unplaced, skipped, away, lead, ns[2];
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* time since @from that this thread, which had used @cpu by then, did not run */
static uint64_t off_ns(uint64_t from, uint64_t cpu)
{
	const uint64_t ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu, all = now_ns() - from;

	return all > ran ? all - ran : 0;
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
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set); /* refused: then the kernel chooses */
}

/* ---- core 0 ---- */

static uint64_t ask_word(uint32_t src, uint32_t dst, uint32_t mtus)
{
	return src | dst << 16 | (uint64_t)mtus << 32;
}

static void again(struct pipe *p, const struct bl_grant *head, uint64_t slots)
{
	if (p->nagain - p->again_done < AGAIN) /* else its sender has to find out by itself */
		p->again[p->nagain++ % AGAIN] = ask_word(head->src, head->dst, (uint32_t)__builtin_popcountll(slots));
}

/* requests that are due by now, as many as core 1 has room for; after a pause in pieces, so that grants do not become late meanwhile */
static void arrive(struct pipe *p, uint64_t t)
{
	const size_t first = atomic_load_explicit(&p->nask, memory_order_relaxed);
	size_t n = first, end = atomic_load_explicit(&p->nask_done, memory_order_acquire) + ASKS, due = p->due;
	uint64_t buf[PIECE];

	end = end < n + PIECE ? end : n + PIECE;
	for (; n < end && p->again_done < p->nagain; n++)
		p->ask[n % ASKS] = buf[n - first] = p->again[p->again_done++ % AGAIN];
	for (; n < end && due < p->ndrawn && p->drawn[due].due_ns <= t; n++, due++)
		p->ask[n % ASKS] = buf[n - first] = ask_word(p->drawn[due].src, p->drawn[due].dst, p->drawn[due].mtus);
	p->due = due;
	if (n == first)
		return;
	atomic_store_explicit(&p->nask, n, memory_order_release);
	if (!log_put(&p->asks, buf, n - first))
		atomic_store_explicit(&p->full, true, memory_order_relaxed);
}

/** struct piece - masks of one run on their way to their paths. @head: of each. @out: what goes to the log. */
struct piece {
	struct bl_room_ask ask[PIECE];
	const struct bl_grant *head[PIECE];
	uint64_t take[PIECE * PATHS];
	uint64_t out[PIECE * PATHS + PIECE / 16 + PATHS];
	size_t n;
};

/* which of the piece's masks have which paths: written to @out without a branch on any of them */
static size_t pack(struct piece *c)
{
	uint64_t *out = c->out;
	size_t i, j;
	uint32_t k;

	for (i = 0; i < c->n; i += 16) {
		uint64_t *head = out++, which = 0;

		for (j = i; j < i + 16 && j < c->n; j++)
#pragma GCC unroll 4
			for (k = 0; k < PATHS; k++) {
				const uint64_t m = c->take[j * PATHS + k], some = m != 0;

				*out = m;
				out += some;
				which |= some << (4 * (j - i) + k);
			}
		*head = which;
	}
	return (size_t)(out - c->out);
}

static void colour(struct pipe *p, struct piece *c)
{
	const uint64_t t = now_ns(), first = slot_of(p, t) + TELL;
	size_t i;

	for (i = 0; i < c->n; i++) {
		const uint64_t begin = c->ask[i].word * 64;
		uint64_t gone;

		if (__builtin_expect(begin >= first, 1))
			continue;
		gone = c->ask[i].slots & (first - begin > 63 ? ~0ULL : (1ULL << (first - begin)) - 1);
		if (!gone)
			continue;
		c->ask[i].slots ^= gone;
		p->late += (uint32_t)__builtin_popcountll(gone);
		again(p, c->head[i], gone);
	}
	i = bl_room_take(p->room, c->ask, c->n, c->take);
	p->unplaced += i;
	if (!log_put(&p->colours, c->out, pack(c)))
		atomic_store_explicit(&p->full, true, memory_order_relaxed);
	for (; i && c->n; c->n--)
		if (c->ask[c->n - 1].slots)
			again(p, c->head[c->n - 1], c->ask[c->n - 1].slots);
	c->n = 0;
	arrive(p, t);
}

static void take_run(struct pipe *p, struct piece *c, const struct pipe_run *r, const uint64_t *row)
{
	uint64_t took;
	size_t at = 0;

	bl_room_move(p->room, r->base / 64);
	while (at < r->len) { /* as bl_grant_next(), which counts ones; not every CPU that this is built for has an instruction for that */
		const struct bl_grant *head = (const struct bl_grant *)&row[at++];
		const uint16_t src = (uint16_t)(head->src / ARB_RACK), dst = (uint16_t)(head->dst / ARB_RACK);
		uint32_t words;

		__builtin_prefetch(&row[at + 128]); /* it comes from the other core */
		for (words = head->words; words; words &= words - 1) {
			c->head[c->n] = head;
			c->ask[c->n++] = (struct bl_room_ask){ .slots = row[at++], .word = r->base / 64 + (uint32_t)__builtin_ctz(words), .src = src, .dst = dst };
			if (c->n == PIECE)
				colour(p, c);
		}
	}
	if (c->n)
		colour(p, c);
	took = slot_of(p, now_ns()) - slot_of(p, r->begun_ns);
	atomic_store_explicit(&p->took, took < LEAD_MAX ? (uint32_t)took : LEAD_MAX, memory_order_relaxed); /* a hint: nothing depends on its order */
	if (!log_put(&p->rows, row, r->len))
		atomic_store_explicit(&p->full, true, memory_order_relaxed);
	p->runs[p->nruns++] = *r;
}

static void arrivals_and_paths(struct pipe *p, struct piece *c)
{
	uint64_t t, cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), from = now_ns();

	c->n = 0;
	for (t = from; t < p->end_ns; t = now_ns()) {
		arrive(p, t);
		if (p->nruns == atomic_load_explicit(&p->nrun, memory_order_acquire) || p->nruns == p->maxrun)
			continue;
		take_run(p, c, &p->run[p->nruns % QUEUE], p->row[p->nruns % QUEUE]);
		atomic_store_explicit(&p->nrun_done, p->nruns, memory_order_release);
		p->busy_ns[0] += now_ns() - t;
	}
	p->off_ns[0] = off_ns(from, cpu);
#ifdef __SSE2__
	_mm_sfence();
#endif
}

/* ---- core 1 ---- */

static void *allocation(void *arg)
{
	struct pipe *p = arg;
	const uint64_t enough = bl_alloc_enough(p->alloc);
	size_t taken = 0, have, runs = 0;
	uint64_t t, next = 0, ahead, slot, waits, cpu, from;
	struct bl_lead l = { 0 };

	pin(1);
	while (now_ns() < p->start_ns)
		;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	from = now_ns();
	ahead = slot_of(p, from) + LEAD_MAX;
	for (t = from; t < p->end_ns; t = now_ns()) {
		const uint64_t now = slot_of(p, t);
		struct bl_grants g;

		slot = now + bl_lead(&l, now, atomic_load_explicit(&p->took, memory_order_relaxed) + TELL, LEAD_SPAN, LEAD_MIN, LEAD_MAX);
		/* where a window moves as a whole, the slots between its end and the next run would be lost: the next window opens before */
		if (slot < ahead && slot + p->tick > ahead)
			slot = ahead;
		if (slot < next || runs - atomic_load_explicit(&p->nrun_done, memory_order_acquire) >= QUEUE)
			continue;
		if (slot > ahead) /* no run has given them, and none will */
			p->skipped += slot - ahead;
		have = atomic_load_explicit(&p->nask, memory_order_acquire);
		for (waits = bl_alloc_waiting(p->alloc); taken < have && waits < enough; taken++) {
			const uint64_t ask = p->ask[taken % ASKS];

			bl_alloc_demand(p->alloc, ask & 0xffff, ask >> 16 & 0xffff, (uint32_t)(ask >> 32), slot + 10 * p->mtus);
			waits += ask >> 32;
		}
		atomic_store_explicit(&p->nask_done, taken, memory_order_release);
		bl_alloc_row(p->alloc, p->row[runs % QUEUE]);
		g = bl_alloc_run(p->alloc, slot);
		p->run[runs % QUEUE] = (struct pipe_run){ .now = slot, .base = g.base, .begun_ns = t, .asks = taken, .len = g.len, .mtus = g.mtus };
		p->leads += slot - now;
		runs++;
		atomic_store_explicit(&p->nrun, runs, memory_order_release);
		next = slot + p->tick;
		ahead = g.base + bl_alloc_window(&p->cfg);
		p->busy_ns[1] += now_ns() - t;
	}
	p->off_ns[1] = off_ns(from, cpu);
	return NULL;
}

/* ---- after it ---- */

/** struct replay - packets by slot, as the check of a colouring wants them. @n: [slot % RING]. @src, @dst, @path: [slot % RING][endpoints]. @sealed: slots below are checked. @in_time: of those that count. */
struct replay {
	uint32_t *n;
	uint16_t *src, *dst;
	uint8_t *path;
	uint64_t sealed, from, end;
	uint64_t placed, in_time;
};

/* slots before @until are over; NULL or what is wrong */
static const char *seal(const struct pipe *p, struct replay *s, uint64_t until)
{
	const uint32_t cap = (ARB_RACK + PATHS - 1) / PATHS;
	const char *why = NULL;
	size_t none;

	for (; !why && s->sealed < until; s->sealed++) {
		const size_t r = s->sealed % RING, i = r * p->cfg.endpoints;

		why = bl_verify_paths(p->racks, PATHS, cap, NULL, &s->src[i], &s->dst[i], &s->path[i], s->n[r], &none);
		if (s->sealed >= s->from && s->sealed < s->end)
			s->in_time += s->n[r];
		s->placed += s->n[r];
		s->n[r] = 0;
	}
	return why;
}

/* one mask of the row and what became of it; NULL or what is wrong */
static const char *put(const struct pipe *p, struct replay *s, const struct bl_grant *head, uint64_t first, uint64_t mask, uint32_t which, const uint64_t *masks)
{
	uint64_t all = 0, bits;
	uint32_t k;

	for (k = 0; k < PATHS; k++) {
		if (!(which >> k & 1))
			continue;
		if (*masks & all)
			return "a packet has two paths";
		all |= *masks;
		for (bits = *masks++; bits; bits &= bits - 1) {
			const size_t r = (first + (uint32_t)__builtin_ctzll(bits)) % RING, i = r * p->cfg.endpoints + s->n[r];

			if (s->n[r]++ == p->cfg.endpoints)
				return "more packets than endpoints in a slot";
			s->src[i] = (uint16_t)(head->src / ARB_RACK);
			s->dst[i] = (uint16_t)(head->dst / ARB_RACK);
			s->path[i] = (uint8_t)k;
		}
	}
	return all & ~mask ? "a packet has a path and no slot" : NULL;
}

/* @at_colour: words of the log of colours so far. A piece ends with its run, so a run begins with a word of 16 masks. */
static const char *replay_run(const struct pipe *p, struct replay *s, const struct bl_grants *g, size_t *at_colour)
{
	const struct bl_grant *head;
	const uint64_t *mask;
	const char *why = NULL;
	uint64_t which = 0;
	size_t at = 0, n = 0;

	while (!why && (head = bl_grant_next(g, &at, &mask))) {
		uint32_t words;

		for (words = head->words; !why && words; words &= words - 1, mask++, n++, which >>= 4) {
			if (n % 16 == 0)
				which = p->colours.word[(*at_colour)++];
			why = put(p, s, head, g->base + 64 * (uint32_t)__builtin_ctz(words), *mask, which & 15, &p->colours.word[*at_colour]);
			*at_colour += (size_t)__builtin_popcountll(which & 15);
		}
	}
	return why;
}

/* all runs, and all colours, from the log. @in_time: packets in slots of the measured time. 0; 1 after a message */
static int verify(struct pipe *p, uint64_t *in_time, uint64_t *verified)
{
	struct replay s = { .from = (uint64_t)(WARM_NS / ARB_SLOT_NS), .end = (uint64_t)(TRIAL_NS / ARB_SLOT_NS) };
	struct bl_verify *v = bl_verify_new(&p->cfg);
	size_t k, asked = 0, row = 0, colours = 0;
	const char *why = NULL;
	uint64_t granted = 0;
	int err = 1;

	s.n = calloc(RING, sizeof(*s.n));
	s.src = calloc((size_t)RING * p->cfg.endpoints, sizeof(*s.src));
	s.dst = calloc((size_t)RING * p->cfg.endpoints, sizeof(*s.dst));
	s.path = calloc((size_t)RING * p->cfg.endpoints, sizeof(*s.path));
	if (!v || !s.n || !s.src || !s.dst || !s.path) {
		cli_fail("out of memory");
		goto out;
	}
	for (k = 0; k < p->nruns; k++) {
		const struct pipe_run *r = &p->runs[k];
		struct bl_grants g = { .base = r->base, .row = &p->rows.word[row], .len = r->len, .mtus = r->mtus };

		row += r->len;
		for (; asked < r->asks; asked++)
			bl_verify_demand(v, p->asks.word[asked] & 0xffff, p->asks.word[asked] >> 16 & 0xffff, (uint32_t)(p->asks.word[asked] >> 32));
		if (!bl_verify_run(v, &g, r->now)) {
			cli_fail("the schedule is wrong: %s", bl_verify_error(v));
			goto out;
		}
		granted += g.mtus;
		why = seal(p, &s, r->base);
		if (!why)
			why = replay_run(p, &s, &g, &colours);
		if (why)
			break;
	}
	if (!why && p->nruns)
		why = seal(p, &s, p->runs[p->nruns - 1].base + RING);
	if (why) {
		cli_fail("the colouring of slot %" PRIu64 " or after it is wrong: %s", s.sealed, why);
		goto out;
	}
	if (granted != s.placed + p->late + p->unplaced) {
		cli_fail("%" PRIu64 " packets have slots, but %" PRIu64 " have paths, %" PRIu64 " were late and %" PRIu64 " found none", granted, s.placed, p->late, p->unplaced);
		goto out;
	}
	*in_time = s.in_time;
	*verified += s.placed;
	err = 0;
out:
	bl_verify_free(v);
	free(s.n);
	free(s.src);
	free(s.dst);
	free(s.path);
	return err;
}

static void draw(struct pipe *p, struct arb_rnd *rnd, size_t max)
{
	const double gap = ARB_SLOT_NS * p->mtus / (p->cfg.endpoints * p->load);
	double due = 0;
	uint32_t src, dst;

	for (p->ndrawn = 0; p->ndrawn < max && due < TRIAL_NS; p->ndrawn++) {
		src = arb_below(rnd, p->cfg.endpoints);
		dst = arb_below(rnd, p->cfg.endpoints - 1);
		dst += dst >= src;
		p->drawn[p->ndrawn] = (struct pipe_ask){ (uint64_t)due, (uint16_t)src, (uint16_t)dst, p->mtus };
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
		if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) == 9 && cpu < 2)
			sum += t[7];
	if (f)
		fclose(f);
	return sum * 1000000000ULL / (unsigned long long)sysconf(_SC_CLK_TCK);
}

/* one trial. 0; 1 after a message */
static int trial(struct pipe *p, struct piece *c, struct arb_rnd *rnd, size_t maxask, struct result *res, uint64_t *verified)
{
	const char *why;
	pthread_t thread;
	uint64_t stolen, off, in_time = 0;
	double granted;
	size_t i, row_words;
	int err = 1;

	p->row[0] = NULL;
	p->alloc = bl_alloc_new(&p->cfg, &why);
	p->room = p->alloc ? bl_room_new(p->racks, PATHS, (ARB_RACK + PATHS - 1) / PATHS, ROOM_WORDS, &why) : NULL;
	row_words = p->alloc ? bl_alloc_row_words(p->alloc) : 0;
	if (p->room) {
		why = "out of memory";
		p->row[0] = pages(QUEUE * row_words * sizeof(*p->row[0]));
	}
	if (!p->room || !p->row[0]) {
		cli_fail("%s", why);
		goto out;
	}
	for (i = 1; i < QUEUE; i++)
		p->row[i] = p->row[0] + i * row_words;
	draw(p, rnd, maxask);
	p->due = p->nagain = p->again_done = p->nruns = p->asks.n = p->rows.n = p->colours.n = 0;
	p->late = p->unplaced = p->skipped = p->leads = p->busy_ns[0] = p->busy_ns[1] = 0;
	atomic_store(&p->nask, 0);
	atomic_store(&p->nask_done, 0);
	atomic_store(&p->nrun, 0);
	atomic_store(&p->nrun_done, 0);
	atomic_store(&p->took, 0);
	atomic_store(&p->full, false);
	stolen = stolen_ns();
	p->start_ns = now_ns() + 2000000;
	p->end_ns = p->start_ns + TRIAL_NS;
	for (i = 0; i < p->ndrawn; i++)
		p->drawn[i].due_ns += p->start_ns;
	if (pthread_create(&thread, NULL, allocation, p)) {
		cli_fail("cannot start a thread");
		goto out;
	}
	pin(0);
	while (now_ns() < p->start_ns)
		;
	arrivals_and_paths(p, c);
	pthread_join(thread, NULL);
	stolen = stolen_ns() - stolen;
	if (atomic_load(&p->full)) {
		cli_fail("the log is full; give a lower load");
		goto out;
	}
	err = verify(p, &in_time, verified);
	granted = (double)bl_alloc_stats(p->alloc)->granted_mtus + 1;
	off = p->off_ns[0] + p->off_ns[1];
	*res = (struct result){ .tbit = (double)in_time * ARB_SLOT_BITS / (TRIAL_NS - WARM_NS) / 1000,
				.late = 100.0 * (double)p->late / (double)(p->nruns ? in_time + p->late + p->unplaced : 1),
				.unplaced = 100.0 * (double)p->unplaced / (double)(p->nruns ? in_time + p->late + p->unplaced : 1),
				.skipped = 100.0 * (double)p->skipped * ARB_SLOT_NS / TRIAL_NS,
				.away = 100.0 * (double)(off > stolen ? off : stolen) / (2.0 * TRIAL_NS),
				.ns = { (double)p->busy_ns[0] / granted, (double)p->busy_ns[1] / granted },
				.lead = (double)p->leads / (double)(p->nruns ? p->nruns : 1) };
out:
	pages_free(p->row[0], QUEUE * row_words * sizeof(*p->row[0]));
	bl_room_free(p->room);
	bl_alloc_free(p->alloc);
	p->room = NULL;
	p->alloc = NULL;
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

static json_t *measure(const struct arb_args *a, enum bl_alloc_policy policy, double load)
{
	struct pipe *p = aligned_alloc(64, (sizeof(*p) + 63) / 64 * 64);
	struct piece *c = pages(sizeof(*c));
	struct arb_rnd rnd = { (uint64_t)a->seed };
	struct result r[TRIALS];
	double best = 0, least = 0;
	size_t maxask, i;
	uint64_t verified = 0;
	json_t *row = NULL;

	if (!p || !c) {
		cli_fail("out of memory");
		free(p);
		pages_free(c, sizeof(*c));
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
	p->asks.max = maxask + LOG_MAX / 2; /* all, and all masks again */
	p->rows.max = p->colours.max = LOG_MAX;
	p->drawn = pages(maxask * sizeof(*p->drawn));
	p->again = pages(AGAIN * sizeof(*p->again));
	p->ask = pages(ASKS * sizeof(*p->ask));
	p->runs = pages(p->maxrun * sizeof(*p->runs));
	p->asks.word = pages(p->asks.max * sizeof(*p->asks.word));
	p->rows.word = pages(p->rows.max * sizeof(*p->rows.word));
	p->colours.word = pages(p->colours.max * sizeof(*p->colours.word));
	if (!p->drawn || !p->again || !p->ask || !p->runs || !p->asks.word || !p->rows.word || !p->colours.word) {
		cli_fail("out of memory");
		goto out;
	}
	for (i = 0; i < TRIALS; i++) {
		if (trial(p, c, &rnd, maxask, &r[i], &verified))
			goto out;
		best = r[i].tbit > best ? r[i].tbit : best;
		least = !i || r[i].tbit < least ? r[i].tbit : least;
	}
	row = json_pack("{s:I, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "endpoints", (json_int_t)p->cfg.endpoints, "policy",
			bl_alloc_policy_name(policy), "window", (json_int_t)bl_alloc_window(&p->cfg), "load", 100 * load, "offered_tbps",
			load * p->cfg.endpoints * ARB_SLOT_BITS / ARB_SLOT_NS / 1000, "tbps", MEDIAN(r, tbit), "tbps_least", least, "tbps_best", best, "late", MEDIAN(r, late),
			"unplaced", MEDIAN(r, unplaced), "skipped", MEDIAN(r, skipped), "away", MEDIAN(r, away), "lead", MEDIAN(r, lead), "ns_path", MEDIAN(r, ns[0]), "ns_alloc",
			MEDIAN(r, ns[1]), "verified", (json_int_t)verified);
out:
	pages_free(p->drawn, maxask * sizeof(*p->drawn));
	pages_free(p->again, AGAIN * sizeof(*p->again));
	pages_free(p->ask, ASKS * sizeof(*p->ask));
	pages_free(p->runs, p->maxrun * sizeof(*p->runs));
	pages_free(p->asks.word, p->asks.max * sizeof(*p->asks.word));
	pages_free(p->rows.word, p->rows.max * sizeof(*p->rows.word));
	pages_free(p->colours.word, p->colours.max * sizeof(*p->colours.word));
	pages_free(c, sizeof(*c));
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
