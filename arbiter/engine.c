// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See engine.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "engine.h"

#define LOAD_SLOTS 1024 /* more than any window reaches */
#define PATIENT (1U << 30) /* slots: the deadline of what has none; bl_alloc_demand() takes no later one */

/**
 * struct selector - of one path thread.
 * @in: the run's grants, sorted by word; @mtus of each is lent to the path of the slot in hand. @room: how many may be in one run.
 * @packet_of, @src, @dst, @got: packets of the slot in hand: grant, racks, path. @npackets: how many.
 * @load_slot, @load: by slot modulo LOAD_SLOTS: packets out of and into each rack on each path that runs so far have given. @seen: generation of struct bl_engine's table that the selector has.
 */
struct selector {
	struct bl_engine *e;
	struct bl_path *path;
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
 * @usable: [src][dst] of path bits; NULL: all work. Written under @generation odd, as a seqlock: readers that meet a writer come again at their next run.
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
	uint32_t nracks, npaths, cap, nendpoints;
	struct selector sel;
	void *state;
	_Atomic uint64_t *usable;
	_Atomic uint64_t generation;
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

static void take_table(struct selector *s)
{
	struct bl_engine *e = s->e;
	uint64_t before = atomic_load_explicit(&e->generation, memory_order_acquire);
	uint32_t i;

	if (before == s->seen || before & 1)
		return;
	for (i = 0; i < e->nracks * e->nracks; i++)
		bl_path_usable(s->path, i / e->nracks, i % e->nracks, atomic_load_explicit(&e->usable[i], memory_order_relaxed));
	/* pairs with the release in bl_engine_usable(): what was read while the number stood still is whole */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&e->generation, memory_order_relaxed) == before)
		s->seen = before;
}

int bl_engine_usable(struct bl_engine *e, uint32_t src, uint32_t dst, uint64_t mask)
{
	if (!e->usable || src >= e->nracks || dst >= e->nracks)
		return -1;
	atomic_fetch_add_explicit(&e->generation, 1, memory_order_acq_rel);
	atomic_store_explicit(&e->usable[src * e->nracks + dst], mask, memory_order_relaxed);
	atomic_fetch_add_explicit(&e->generation, 1, memory_order_release);
	return 0;
}

/* What racks send and receive on each path in @slot so far: earlier runs gave packets in it, too. NULL: nothing yet. */
static uint16_t *load_of(struct selector *s, uint64_t slot, bool *fresh)
{
	const size_t each = 2 * (size_t)s->e->nracks * s->e->npaths;
	uint16_t *load = &s->load[(slot % LOAD_SLOTS) * each];

	*fresh = s->load_slot[slot % LOAD_SLOTS] != slot;
	if (*fresh) {
		memset(load, 0, each * sizeof(*load));
		s->load_slot[slot % LOAD_SLOTS] = slot;
	}
	return load;
}

/* The packets in hand, beside those that have their paths and are told: each the one on which its racks are least loaded. Whoever finds none comes again in another slot. */
static void beside(struct selector *s, uint16_t *load, unsigned int n)
{
	const struct bl_engine *e = s->e;
	uint16_t *in = load + (size_t)e->nracks * e->npaths;
	const uint64_t *usable = bl_path_table(s->path);
	unsigned int i, k;

	for (i = 0; i < n; i++) {
		uint16_t *o = &load[(size_t)s->src[i] * e->npaths], *d = &in[(size_t)s->dst[i] * e->npaths];
		uint32_t least = e->cap;

		s->got[i] = BL_PATH_NONE;
		for (k = 0; k < e->npaths; k++) {
			uint32_t is = o[k] > d[k] ? o[k] : d[k];

			if (is < least && (!usable || usable[(size_t)s->src[i] * e->nracks + s->dst[i]] >> k & 1)) {
				least = is;
				s->got[i] = (uint8_t)k;
			}
		}
		if (s->got[i] != BL_PATH_NONE) {
			o[s->got[i]]++;
			d[s->got[i]]++;
		}
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
	uint16_t *load;
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
	if (fresh) {
		bl_path_select(s->path, n, s->src, s->dst, s->got);
		for (i = 0; i < n; i++)
			if (s->got[i] != BL_PATH_NONE) {
				load[(size_t)s->src[i] * e->npaths + s->got[i]]++;
				load[(size_t)(e->nracks + s->dst[i]) * e->npaths + s->got[i]]++;
			}
	} else {
		beside(s, load, n);
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
		if (!mask)
			break;
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
	free(s->in);
	free(s->packet_of);
	free(s->src);
	free(s->dst);
	free(s->got);
	free(s->load);
	free(s->load_slot);
	free(e->rack_of);
	free(e->usable);
	free(e);
}

static int selector_open(struct bl_engine *e, const struct bl_fp_file *f, struct bl_err *err)
{
	struct selector *s = &e->sel;
	const char *why = NULL;

	s->e = e;
	s->room = e->ops.grants_max;
	s->path = bl_path_new(f->nracks, f->paths, f->path_cap, f->euler ? BL_PATH_EULER : BL_PATH_GREEDY, &why);
	if (!s->path)
		return bl_fail(err, EINVAL, "path selection: %s", why);
	s->in = calloc(s->room, sizeof(*s->in));
	s->packet_of = calloc(s->room, sizeof(*s->packet_of));
	s->src = calloc(s->room, sizeof(*s->src));
	s->dst = calloc(s->room, sizeof(*s->dst));
	s->got = calloc(s->room, sizeof(*s->got));
	s->load_slot = malloc(LOAD_SLOTS * sizeof(*s->load_slot));
	s->load = calloc(LOAD_SLOTS, 2 * (size_t)f->nracks * f->paths * sizeof(*s->load)); /* pages that no slot needs are never touched */
	if (s->load_slot)
		memset(s->load_slot, 0xff, LOAD_SLOTS * sizeof(*s->load_slot));
	e->state = s;
	return s->load && s->load_slot && s->in && s->packet_of && s->src && s->dst && s->got ? 0 : bl_fail(err, ENOMEM, "out of memory for a path selector");
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
	uint16_t *cap = calloc(f->npeers, sizeof(*cap)), *up = calloc(f->nracks, sizeof(*up));
	struct bl_alloc_cfg c = { .endpoints = f->npeers, .policy = (enum bl_alloc_policy)f->policy, 
				  .window_slots = f->window_slots, .quota_mtus = f->quota < BL_ALLOC_QUOTA_MAX ? f->quota : BL_ALLOC_QUOTA_MAX, .src_cap = cap, .dst_cap = cap };
	const char *why = NULL;
	uint32_t i, capsum = 0;
	int rc = 0;

	e->rack_of = calloc(f->npeers, sizeof(*e->rack_of));
	if (!cap || !up || !e->rack_of)
		rc = bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; !rc && i < f->npeers; i++) {
		cap[i] = f->peer[i].cap;
		capsum += cap[i];
		e->rack_of[i] = f->peer[i].rack;
	}
	/* without a limit of its own a rack carries what its paths do */
	if (!rc && f->nracks > 1 && (f->rack_up || f->paths)) {
		for (i = 0; i < f->nracks; i++)
			up[i] = (uint16_t)(f->rack_up ? f->rack_up : f->paths * f->path_cap);
		c.racks = f->nracks;
		c.rack_of = e->rack_of;
		c.rack_up = c.rack_down = up;
	}
	if (!rc)
		e->alloc = bl_alloc_new(&c, &why);
	if (!rc && !e->alloc)
		rc = bl_fail(err, EINVAL, "timeslot allocation: %s", why);
	free(cap);
	free(up);
	if (rc)
		return rc;
	e->file = f;
	if (f->policy == BL_ALLOC_WEIGHTED)
		set_weights(e, f);
	e->nendpoints = f->npeers;
	e->nracks = f->nracks;
	e->npaths = f->paths;
	e->cap = f->path_cap;
	/* in each slot at most as many packets as links carry; each may be a grant of its own */
	e->ops = (struct arb_alloc_ops){ demand, forget, run, waiting, f->window_slots, capsum * f->window_slots };
	if (!f->paths || f->nracks < 2)
		return 0;
	e->usable = calloc((size_t)f->nracks * f->nracks, sizeof(*e->usable));
	if (!e->usable)
		return bl_fail(err, ENOMEM, "out of memory");
	for (i = 0; i < f->nracks * f->nracks; i++)
		e->usable[i] = f->paths == 64 ? ~0ULL : (1ULL << f->paths) - 1;
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
