// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See engine.h. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h" /* first: <netinet/in.h> and <linux/ipv6.h> agree only in this order */

#include "../bpf/fcp_core.h"
#include "../loader/node_priv.h"
#include "alloc.h"

#define LOAD_SLOTS 1024 /* more than any window reaches */
#define PATIENT (1U << 30) /* slots: the deadline of what has none; bl_alloc_demand() takes no later one */

/**
 * struct selector - of one path thread.
 * @in: the run's grants, sorted by word; @mtus of each is lent to the path of the slot in hand. @room: how many may be in one run.
 * @packet_of, @src, @dst, @got: packets of the slot in hand: grant, racks, path. @npackets: how many.
 * @load_slot, @load: by slot modulo LOAD_SLOTS: what runs so far have given (struct load). @seen: generation of struct bl_engine's table that the selector has; @works: that table, by racks, once there is one; @between: of pods, for a moment.
 * @path: two tiers. @tiers: three; @agg, @core: what it chose.
 */
struct selector {
	struct bl_engine *e;
	struct bl_path *path;
	struct bl_tiers *tiers;
	uint8_t *agg, *core;
	uint64_t *works, *between;
	struct arb_grant *in;
	uint32_t *packet_of;
	uint16_t *src, *dst;
	uint8_t *got;
	unsigned int room, npackets;
	uint64_t seen;
	uint64_t *load_slot;
	uint16_t *load;
};

/**
 * struct bl_engine - @file: shares and deadlines are looked up there. @g, @at, @head, @mask, @words: the run that is being handed out, and how far. @busy: it is not all handed out. @last: slot of the last run; never goes back,
 *	whatever the clock does.
 * @npaths: path numbers. @pod_of, @npods, @cores, @core_cap: three tiers (loader/fpfile.h); else NULL, 0, 1 and 0. @cap: packets between a rack and an aggregation switch, or on a path.
 * @usable: [src][dst] of path bits; NULL: all work. Written under @generation odd, as a seqlock: readers that meet a writer come again at their next run. Writers hold @lock.
 * @told: what bl_engine_usable() said. @up, @down: of each rack, paths whose link is to be avoided (bl_engine_links()). @usable is @told without these.
 * @no_path: demands refused. Written by the allocation stage.
 */
struct bl_engine {
	const struct bl_fp_file *file;
	struct bl_alloc *alloc;
	struct bl_grants g;
	size_t at;
	const struct bl_grant *head;
	const uint64_t *mask;
	uint32_t words;
	bool busy;
	uint64_t last;
	uint16_t *rack_of;
	const uint16_t *pod_of;
	uint32_t nracks, npods, npaths, cap, cores, core_cap, nendpoints;
	struct selector sel;
	void *state;
	_Atomic uint64_t *usable;
	_Atomic uint64_t generation;
	pthread_mutex_t lock;
	uint64_t *told, *up, *down;
	_Atomic uint64_t no_path;
	struct arb_alloc_ops ops;
};

/* ---- allocation ---- */

/* In slots from now on. Without a deadline: behind all that have one. */
static uint64_t patience(const struct bl_fp_file *f, uint32_t src, uint32_t dst)
{
	const struct bl_fp_pair *pair = bl_fp_pair_find(f, src, dst);
	uint64_t us = pair && pair->deadline_us ? pair->deadline_us : f->peer[src].deadline_us;

	return us ? us * 1000 / f->slot_ns : PATIENT;
}

static int demand(void *p, uint32_t src, uint32_t dst, uint32_t mtus, uint64_t slot)
{
	struct bl_engine *e = p;
	uint64_t deadline = slot + PATIENT;

	/* a slot of its source's that nobody could use; comm asks again */
	if (e->usable && e->rack_of[src] != e->rack_of[dst] && !atomic_load_explicit(&e->usable[(size_t)e->rack_of[src] * e->nracks + e->rack_of[dst]], memory_order_relaxed)) {
		atomic_fetch_add_explicit(&e->no_path, 1, memory_order_relaxed);
		return -ENOSPC;
	}
	if (e->file->policy == BL_ALLOC_DEADLINE && src < e->nendpoints && dst < e->nendpoints)
		deadline = slot + patience(e->file, src, dst);
	switch (bl_alloc_demand(e->alloc, src, dst, mtus, deadline)) {
	case BL_ALLOC_OK:
		return 0;
	case BL_ALLOC_SELF:
		return 0; /* nobody needs the network for that; the host does not ask, and who does asks in vain */
	case BL_ALLOC_UNKNOWN:
		return 0; /* comm knows how many there are */
	default:
		return -ENOSPC;
	}
}

static void forget(void *p, uint32_t src)
{
	bl_alloc_forget_from(((struct bl_engine *)p)->alloc, src);
}

static bool waiting(void *p)
{
	return bl_alloc_waiting(((struct bl_engine *)p)->alloc) != 0;
}

static unsigned int run(void *p, uint64_t slot, struct arb_grant *out, unsigned int max)
{
	struct bl_engine *e = p;
	unsigned int n = 0;

	if (!e->busy) {
		if (slot > e->last)
			e->last = slot;
		e->g = bl_alloc_run(e->alloc, e->last);
		e->at = 0;
		e->words = 0;
		e->busy = true;
	}
	for (;;) {
		while (e->words) {
			const uint32_t j = (uint32_t)__builtin_ctz(e->words);

			if (n == max)
				return n;
			out[n++] = (struct arb_grant){ .base = e->g.base + 64 * j, .slots = *e->mask++, .src = e->head->src, .dst = e->head->dst, .path = BL_FCP_PATH_ANY };
			e->words &= e->words - 1;
		}
		e->head = bl_grant_next(&e->g, &e->at, &e->mask);
		if (!e->head)
			break;
		e->words = e->head->words;
	}
	e->busy = n == max; /* then it is called again, and finds nothing */
	return n;
}

/* ---- paths ---- */

/* Three tiers: the selectors of racks and of pods get what follows from path bits by racks. What they choose all the same, because another rack of the pod may, colour() takes back. */
static void tell_tiers(struct selector *s)
{
	const struct bl_engine *e = s->e;
	const uint64_t cores = e->cores == 64 ? ~0ULL : (1ULL << e->cores) - 1;
	uint32_t i, a, k, aggs = e->npaths / e->cores;

	for (i = 0; i < e->nracks * e->nracks; i++) {
		uint64_t mask = 0;

		for (a = 0; a < aggs; a++)
			mask |= (uint64_t)((s->works[i] >> a * e->cores & cores) != 0) << a;
		bl_path_usable(bl_tiers_agg(s->tiers), i / e->nracks, i % e->nracks, mask);
	}
	for (a = 0; a < aggs; a++) {
		for (k = 0; k < e->npods * e->npods; k++)
			s->between[k] = cores;
		for (i = 0; i < e->nracks * e->nracks; i++) {
			uint64_t of = s->works[i] >> a * e->cores & cores;

			if (of)
				s->between[e->pod_of[i / e->nracks] * e->npods + e->pod_of[i % e->nracks]] &= of;
		}
		for (k = 0; k < e->npods * e->npods; k++)
			bl_path_usable(bl_tiers_core(s->tiers, a), k / e->npods, k % e->npods, s->between[k]);
	}
}

static void take_table(struct selector *s)
{
	struct bl_engine *e = s->e;
	uint64_t before = atomic_load_explicit(&e->generation, memory_order_acquire);
	uint32_t i;

	if (before == s->seen || before & 1)
		return;
	for (i = 0; i < e->nracks * e->nracks; i++)
		s->works[i] = atomic_load_explicit(&e->usable[i], memory_order_relaxed);
	/* pairs with the release in bl_engine_usable(): what was read while the number stood still is whole */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&e->generation, memory_order_relaxed) != before)
		return; /* half of it may be old: at the next run */
	s->seen = before;
	if (s->tiers)
		tell_tiers(s);
	for (i = 0; s->path && i < e->nracks * e->nracks; i++)
		bl_path_usable(s->path, i / e->nracks, i % e->nracks, s->works[i]);
}

/* Under the lock: @usable from what is known. A pair of racks that has no path left is named, once. */
static void publish(struct bl_engine *e)
{
	uint32_t a, b;

	atomic_fetch_add_explicit(&e->generation, 1, memory_order_acq_rel);
	for (a = 0; a < e->nracks; a++)
		for (b = 0; b < e->nracks; b++) {
			_Atomic uint64_t *at = &e->usable[(size_t)a * e->nracks + b];
			uint64_t mask = e->told[(size_t)a * e->nracks + b] & ~e->up[a] & ~e->down[b];

			if (a != b && !mask && atomic_load_explicit(at, memory_order_relaxed))
				bl_log(BL_LOG_WARN, "no path from rack %u to rack %u is left; slots between them are refused", a, b);
			atomic_store_explicit(at, mask, memory_order_relaxed);
		}
	atomic_fetch_add_explicit(&e->generation, 1, memory_order_release);
}

int bl_engine_usable(struct bl_engine *e, uint32_t src, uint32_t dst, uint64_t mask)
{
	if (!e->usable || src >= e->nracks || dst >= e->nracks)
		return -1;
	pthread_mutex_lock(&e->lock);
	/* bits of paths that do not exist would make a pair without any look alive */
	e->told[(size_t)src * e->nracks + dst] = mask & (e->npaths == 64 ? ~0ULL : (1ULL << e->npaths) - 1);
	publish(e);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

void bl_engine_links(void *engine, const struct bl_fcp_link *l, unsigned int n)
{
	struct bl_engine *e = engine;
	uint32_t r;

	if (!e->usable)
		return;
	pthread_mutex_lock(&e->lock);
	memset(e->up, 0, e->nracks * sizeof(*e->up));
	memset(e->down, 0, e->nracks * sizeof(*e->down));
	for (; n--; l++) {
		uint32_t rack = BL_BE16(l->rack);

		if (l->path >= e->npaths || (rack >= e->nracks && rack != BL_FCP_RACK_ALL))
			continue; /* of another file: the table is of endpoints only */
		for (r = 0; r < e->nracks; r++)
			if (r == rack || rack == BL_FCP_RACK_ALL)
				*(l->way ? &e->down[r] : &e->up[r]) |= 1ULL << l->path;
	}
	publish(e);
	pthread_mutex_unlock(&e->lock);
}

uint64_t bl_engine_no_path(struct bl_engine *e)
{
	return atomic_load_explicit(&e->no_path, memory_order_relaxed);
}

/**
 * struct load - what one slot has been given so far; pointers into @load of struct selector. @up, @down: packets out of and into each rack by each aggregation switch (two tiers: path). @core_up, @core_down: out of and
 * into each pod by each path.
 */
struct load {
	uint16_t *up, *down, *core_up, *core_down;
};

static size_t load_size(const struct bl_engine *e)
{
	return 2 * ((size_t)e->nracks * (e->npaths / e->cores) + (size_t)e->npods * e->npaths);
}

/* @fresh: nothing yet. */
static struct load load_of(struct selector *s, uint64_t slot, bool *fresh)
{
	const struct bl_engine *e = s->e;
	uint16_t *load = &s->load[(slot % LOAD_SLOTS) * load_size(e)];
	struct load l = { .up = load };

	l.down = l.up + (size_t)e->nracks * (e->npaths / e->cores);
	l.core_up = l.down + (size_t)e->nracks * (e->npaths / e->cores);
	l.core_down = l.core_up + (size_t)e->npods * e->npaths;
	*fresh = s->load_slot[slot % LOAD_SLOTS] != slot;
	if (*fresh) {
		memset(load, 0, load_size(e) * sizeof(*load));
		s->load_slot[slot % LOAD_SLOTS] = slot;
	}
	return l;
}

static bool leaves_pod(const struct bl_engine *e, uint32_t src, uint32_t dst)
{
	return e->pod_of && e->pod_of[src] != e->pod_of[dst];
}

/* The counts of path @k between two racks: two or four of them. */
static unsigned int links(const struct bl_engine *e, const struct load *l, uint32_t src, uint32_t dst, uint32_t k, uint16_t **at)
{
	const uint32_t aggs = e->npaths / e->cores;

	at[0] = &l->up[(size_t)src * aggs + k / e->cores];
	at[1] = &l->down[(size_t)dst * aggs + k / e->cores];
	if (!leaves_pod(e, src, dst))
		return 2;
	at[2] = &l->core_up[(size_t)e->pod_of[src] * e->npaths + k];
	at[3] = &l->core_down[(size_t)e->pod_of[dst] * e->npaths + k];
	return 4;
}

/* 0: a link of it is full; else as much more as it has room. */
static uint32_t room_on(const struct bl_engine *e, uint16_t **at, unsigned int n)
{
	uint32_t room = UINT32_MAX, i;

	for (i = 0; i < n; i++) {
		uint32_t cap = i < 2 ? e->cap : e->core_cap, of = *at[i] < cap ? cap - *at[i] : 0;

		room = of < room ? of : room;
	}
	return room;
}

static bool works(const struct selector *s, uint32_t src, uint32_t dst, uint32_t k)
{
	return !s->seen || s->works[(size_t)src * s->e->nracks + dst] >> k & 1;
}

/* One packet beside those that have their paths and are told: the path with the most room. Whoever finds none comes again in another slot. */
static uint8_t beside(const struct selector *s, const struct load *l, uint32_t src, uint32_t dst)
{
	const struct bl_engine *e = s->e;
	const uint32_t step = leaves_pod(e, src, dst) ? 1 : e->cores;
	uint8_t best = BL_PATH_NONE;
	uint32_t most = 0, k, j;
	uint16_t *at[4];

	for (k = 0; k < e->npaths; k += step) {
		uint32_t room;

		/* within a pod no core is used: the aggregation switch works if any of its paths does */
		for (j = 0; j < step && !works(s, src, dst, k + j); j++)
			;
		if (j == step)
			continue;
		room = room_on(e, at, links(e, l, src, dst, k, at));
		if (room > most) {
			most = room;
			best = (uint8_t)k;
		}
	}
	return best;
}

static void taken(const struct bl_engine *e, const struct load *l, uint32_t src, uint32_t dst, uint32_t k)
{
	uint16_t *at[4];
	unsigned int n = links(e, l, src, dst, k, at);

	while (n--)
		++*at[n];
}

/* A colouring of the @n packets in hand; places all of them as long as no path is dead. */
static void select_all(struct selector *s, unsigned int n)
{
	const struct bl_engine *e = s->e;
	unsigned int i;

	if (!s->tiers) {
		bl_path_select(s->path, n, s->src, s->dst, s->got);
		return;
	}
	bl_tiers_select(s->tiers, n, s->src, s->dst, s->agg, s->core);
	for (i = 0; i < n; i++) {
		uint32_t k = s->agg[i] * e->cores + (s->core[i] == BL_PATH_NONE ? 0 : s->core[i]);

		s->got[i] = s->agg[i] == BL_PATH_NONE || (leaves_pod(e, s->src[i], s->dst[i]) && !works(s, s->src[i], s->dst[i], k)) ? BL_PATH_NONE : (uint8_t)k;
	}
}

/*
 * Slot @bit of one word: a colouring of the packets that leave their racks. @from, @to: the grants of this word. The first packets of a slot get the selector's colouring, which places
 * all of them; those that a later run puts into the same slot must do with what is left, since paths that were told cannot be changed.
 */
static void colour(struct selector *s, unsigned int from, unsigned int to, unsigned int bit)
{
	const struct arb_grant *in = s->in;
	const struct bl_engine *e = s->e;
	unsigned int i, n = 0;
	struct load load;
	bool fresh;

	for (i = from; i < to && n < s->room; i++) {
		uint16_t a = e->rack_of[in[i].src], b = e->rack_of[in[i].dst];

		if (!(in[i].slots >> bit & 1) || a == b)
			continue;
		s->packet_of[n] = i;
		s->src[n] = a;
		s->dst[n] = b;
		n++;
	}
	if (!n) {
		s->npackets = 0;
		return;
	}
	load = load_of(s, in[from].base + bit, &fresh);
	if (fresh)
		select_all(s, n);
	for (i = 0; i < n; i++)
		if (fresh && s->got[i] != BL_PATH_NONE)
			taken(e, &load, s->src[i], s->dst[i], s->got[i]);
	for (i = 0; i < n; i++) {
		if (fresh && s->got[i] != BL_PATH_NONE)
			continue;
		s->got[i] = beside(s, &load, s->src[i], s->dst[i]);
		if (s->got[i] != BL_PATH_NONE)
			taken(e, &load, s->src[i], s->dst[i], s->got[i]);
	}
	for (i = 0; i < n; i++)
		s->in[s->packet_of[i]].mtus = s->got[i]; /* the path of this packet; until the slot is taken out below */
	s->npackets = n;
}

static int by_base(const void *a, const void *b)
{
	const struct arb_grant *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

/*
 * For each word of slots: its grants lie together after the sort; each slot is coloured; a packet that found a path goes into the grant (pair, word, path), which are written
 * behind each other. Pairs within a rack keep BL_FCP_PATH_ANY.
 */
static unsigned int assign(void *p, struct arb_grant *g, unsigned int n, unsigned int max)
{
	struct selector *s = p;
	const struct bl_engine *e = s->e;
	const uint32_t npaths = e->npaths;
	unsigned int from, to, i, bit, out = 0;
	uint64_t *mask;

	take_table(s);
	if (n > s->room)
		n = s->room;
	memcpy(s->in, g, n * sizeof(*g));
	qsort(s->in, n, sizeof(*g), by_base);
	for (from = 0; from < n; from = to) {
		uint64_t any = 0;

		for (to = from; to < n && s->in[to].base == s->in[from].base; to++)
			any |= s->in[to].slots;
		/* masks by grant and path, and one more for packets without any */
		mask = calloc((size_t)(to - from) * (npaths + 1), sizeof(*mask));
		for (i = from; !mask && i < n && out < max; i++)
			g[out++] = (struct arb_grant){ .src = s->in[i].src, .dst = s->in[i].dst, .kind = ARB_REFUND, .mtus = (uint32_t)__builtin_popcountll(s->in[i].slots),
						       .path = BL_FCP_PATH_ANY };
		if (!mask)
			break; /* no memory: all of them are asked for again */
		for (; any; any &= any - 1) {
			bit = (unsigned int)__builtin_ctzll(any);
			colour(s, from, to, bit);
			for (i = 0; i < s->npackets; i++) {
				uint32_t at = s->packet_of[i], k = s->in[at].mtus;

				mask[(size_t)(at - from) * (npaths + 1) + (k < npaths ? k : npaths)] |= 1ULL << bit;
			}
		}
		for (i = from; i < to; i++) {
			const uint64_t *of = &mask[(size_t)(i - from) * (npaths + 1)];
			struct arb_grant one = s->in[i];
			uint32_t k;

			one.mtus = 0;
			if (e->rack_of[one.src] == e->rack_of[one.dst]) {
				if (out < max)
					g[out++] = one;
				continue;
			}
			for (k = 0; k <= npaths && out < max; k++) {
				if (!of[k])
					continue;
				one.slots = of[k];
				one.path = (uint8_t)k;
				if (k == npaths) {
					one.kind = ARB_REFUND;
					one.slots = 0;
					one.mtus = (uint32_t)__builtin_popcountll(of[k]);
					one.path = BL_FCP_PATH_ANY;
				}
				g[out++] = one;
			}
		}
		free(mask);
	}
	return out;
}

static const struct arb_path_ops path_ops = { assign };

/* ---- life ---- */

void bl_engine_free(struct bl_engine *e)
{
	struct selector *s;

	if (!e)
		return;
	s = &e->sel;
	bl_alloc_free(e->alloc);
	bl_path_free(s->path);
	bl_tiers_free(s->tiers);
	free(s->agg);
	free(s->core);
	free(s->works);
	free(s->between);
	free(s->in);
	free(s->packet_of);
	free(s->src);
	free(s->dst);
	free(s->got);
	free(s->load);
	free(s->load_slot);
	free(e->rack_of);
	free(e->usable);
	free(e->told);
	free(e->up);
	free(e->down);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static int selector_open(struct bl_engine *e, const struct bl_fp_file *f, struct bl_err *err)
{
	struct selector *s = &e->sel;
	const char *why = NULL;

	s->e = e;
	s->room = e->ops.grants_max;
	if (f->npods)
		s->tiers = bl_tiers_new(f->nracks, f->npods, f->pod_of, f->paths, f->path_cap, f->cores, f->core_cap, f->euler ? BL_PATH_EULER : BL_PATH_GREEDY, &why);
	else
		s->path = bl_path_new(f->nracks, f->paths, f->path_cap, f->euler ? BL_PATH_EULER : BL_PATH_GREEDY, &why);
	if (!s->path && !s->tiers)
		return bl_fail(err, EINVAL, "path selection: %s", why);
	s->in = calloc(s->room, sizeof(*s->in));
	s->packet_of = calloc(s->room, sizeof(*s->packet_of));
	s->src = calloc(s->room, sizeof(*s->src));
	s->dst = calloc(s->room, sizeof(*s->dst));
	s->got = calloc(s->room, sizeof(*s->got));
	s->load_slot = malloc(LOAD_SLOTS * sizeof(*s->load_slot));
	s->agg = calloc(s->room, sizeof(*s->agg));
	s->core = calloc(s->room, sizeof(*s->core));
	s->between = calloc((size_t)f->npods * f->npods + 1, sizeof(*s->between));
	s->works = calloc((size_t)f->nracks * f->nracks, sizeof(*s->works));
	s->load = calloc(LOAD_SLOTS, load_size(e) * sizeof(*s->load)); /* pages that no slot needs are never touched */
	if (s->load_slot)
		memset(s->load_slot, 0xff, LOAD_SLOTS * sizeof(*s->load_slot));
	e->state = s;
	return s->agg && s->core && s->works && s->between && s->load && s->load_slot && s->in && s->packet_of && s->src && s->dst && s->got ? 0 : bl_fail(err, ENOMEM, "out of memory for a path selector");
}

/* Everybody's weight towards everybody; the allocator begins with 1 for all. */
static void set_weights(struct bl_engine *e, const struct bl_fp_file *f)
{
	uint32_t i, k;

	for (i = 0; i < f->npeers; i++)
		for (k = 0; f->peer[i].weight > 1 && k < f->npeers; k++)
			if (k != i)
				bl_alloc_weight(e->alloc, i, k, f->peer[i].weight);
	for (i = 0; i < f->npairs; i++)
		if (f->pair[i].weight)
			bl_alloc_weight(e->alloc, f->pair[i].src, f->pair[i].dst, f->pair[i].weight);
}

static int open_all(struct bl_engine *e, const struct bl_fp_file *f, struct bl_err *err)
{
	uint16_t *cap = calloc(f->npeers, sizeof(*cap)), *up = calloc(f->nracks, sizeof(*up)), *pod_up = calloc(f->npods + 1, sizeof(*pod_up));
	struct bl_alloc_cfg c = { .endpoints = f->npeers, .policy = (enum bl_alloc_policy)f->policy, 
				  .window_slots = f->window_slots, .quota_mtus = f->quota < BL_ALLOC_QUOTA_MAX ? f->quota : BL_ALLOC_QUOTA_MAX, .src_cap = cap, .dst_cap = cap };
	const char *why = NULL;
	uint32_t i, capsum = 0;
	int rc = 0;

	e->rack_of = calloc(f->npeers, sizeof(*e->rack_of));
	if (!cap || !up || !pod_up || !e->rack_of)
		rc = bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; !rc && i < f->npeers; i++) {
		cap[i] = f->peer[i].cap;
		capsum += cap[i];
		e->rack_of[i] = f->peer[i].rack;
	}
	/* without a limit of its own a rack carries what its paths do */
	if (!rc && f->nracks > 1 && (f->rack_up || f->paths)) {
		for (i = 0; i < f->nracks; i++)
			up[i] = (uint16_t)bl_min64(f->rack_up ? f->rack_up : (uint64_t)f->paths * f->path_cap, BL_ALLOC_CAP_MAX);
		c.racks = f->nracks;
		c.rack_of = e->rack_of;
		c.rack_up = c.rack_down = up;
	}
	for (i = 0; !rc && i < f->npods; i++)
		pod_up[i] = (uint16_t)(f->paths * f->cores * f->core_cap < BL_ALLOC_CAP_MAX ? f->paths * f->cores * f->core_cap : BL_ALLOC_CAP_MAX);
	if (!rc && f->npods > 1) {
		c.pods = f->npods;
		c.pod_of = f->pod_of;
		c.pod_up = c.pod_down = pod_up;
	}
	if (!rc)
		e->alloc = bl_alloc_new(&c, &why);
	if (!rc && !e->alloc)
		rc = bl_fail(err, EINVAL, "timeslot allocation: %s", why);
	free(cap);
	free(up);
	free(pod_up);
	if (rc)
		return rc;
	e->file = f;
	if (f->policy == BL_ALLOC_WEIGHTED)
		set_weights(e, f);
	e->nendpoints = f->npeers;
	e->nracks = f->nracks;
	e->npaths = bl_fp_ways(f);
	e->cap = f->path_cap;
	e->pod_of = f->npods ? f->pod_of : NULL;
	e->npods = f->npods;
	e->cores = f->npods ? f->cores : 1;
	e->core_cap = f->core_cap;
	/* in each slot at most as many packets as links carry; each may be a grant of its own */
	e->ops = (struct arb_alloc_ops){ demand, forget, run, waiting, f->window_slots, capsum * f->window_slots };
	if (!f->paths || f->nracks < 2)
		return 0;
	e->usable = calloc((size_t)f->nracks * f->nracks, sizeof(*e->usable));
	e->told = calloc((size_t)f->nracks * f->nracks, sizeof(*e->told));
	e->up = calloc(f->nracks, sizeof(*e->up));
	e->down = calloc(f->nracks, sizeof(*e->down));
	if (!e->usable || !e->told || !e->up || !e->down)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < f->nracks * f->nracks; i++)
		e->usable[i] = e->told[i] = e->npaths == 64 ? ~0ULL : (1ULL << e->npaths) - 1;
	rc = selector_open(e, f, err);
	return rc;
}

int bl_engine_new(struct bl_engine **out, const struct bl_fp_file *f, struct bl_err *err)
{
	struct bl_engine *e = calloc(1, sizeof(*e));
	int rc;

	*out = NULL;
	if (!e)
		return bl_fail(err, ENOMEM, "out of memory");
	pthread_mutex_init(&e->lock, NULL);
	rc = open_all(e, f, err);
	if (rc)
		bl_engine_free(e);
	else
		*out = e;
	return rc;
}

const struct arb_alloc_ops *bl_engine_ops(const struct bl_engine *e)
{
	return &e->ops;
}

void *bl_engine_alloc(struct bl_engine *e)
{
	return e;
}

const struct arb_path_ops *bl_engine_path_ops(const struct bl_engine *e)
{
	return e->npaths && e->nracks > 1 ? &path_ops : NULL;
}

void *const *bl_engine_paths(const struct bl_engine *e)
{
	return &e->state;
}
