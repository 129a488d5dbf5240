// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The path stage of the engine: the grants of one run, all without a path, become grants with one.
 *
 * Two tiers. A grant is a pair and a mask of up to 64 slots; path/path_room.h hands the mask from
 * path to path, so the work is in grants and not in packets, in whatever order they come. A few
 * packets find no path that way. Where their slot has packets of this run only, none of which has
 * been announced, the slot is coloured anew as a whole (path/path.h), which places all of them as
 * long as no path is dead. What is left comes back as a refund and is asked for again.
 *
 * Three tiers. The grants are sorted by their words, by counting, and every slot is a colouring of
 * its own. What later runs put into the same slot must do with what is left of it.
 *
 * Example: 2 racks, 2 paths of 1 packet; slots 5 and 6 of pair 0 -> 9 (rack 0 to 1). In slot 6 the
 * rack sends on path 0 already. The one grant {5, 6} becomes {5} on path 0 and {6} on path 1.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter/engine_priv.h"

#include "core/fastpass/timeslot_core.h"
#include "base/log.h"
#include "arbiter/pages.h"

#define LOAD_SLOTS 1024 /* slots, more than any window reaches */
/*
 * Packets in slots that are coloured anew in one run: 15 ns each, so no more than 250 us. Without a
 * limit a run in overload takes longer than the slots that it gives.
 */
#define MEND_MAX 16384u

/* ---- dead paths ---- */

/*
 * Passes the table of dead paths to the selectors of racks and of pods (three tiers). A path that a
 * selector chooses all the same, because it works for another rack of the pod, is refused in
 * colour_slot().
 */
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
				s->between[e->pod_of[i / e->nracks] * e->npods +
					   e->pod_of[i % e->nracks]] &= of;
		}
		for (k = 0; k < e->npods * e->npods; k++)
			bl_path_usable(bl_tiers_core(s->tiers, a), k / e->npods, k % e->npods,
				       s->between[k]);
	}
}

/*
 * Takes over the table of dead paths if it changed. Returns false if there is no memory for it;
 * then the old one stays in use.
 */
static bool table_take(struct selector *s)
{
	struct bl_engine *e = s->e;
	uint64_t before = atomic_load_explicit(&e->generation, memory_order_acquire);
	uint32_t i;

	if (before == s->seen || before & 1)
		return true;
	for (i = 0; i < e->nracks * e->nracks; i++)
		s->works[i] = atomic_load_explicit(&e->usable[i], memory_order_relaxed);
	/*
	 * Pairs with the release in publish_usable(): what was read while the number stayed the
	 * same is consistent.
	 */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&e->generation, memory_order_relaxed) != before)
		return true; /* half of it may be old: try again at the next run */
	if (s->tiers)
		tell_tiers(s);
	for (i = 0; s->room && i < e->nracks * e->nracks; i++) {
		const uint32_t a = i / e->nracks, b = i % e->nracks;

		if (bl_path_usable(s->path, a, b, s->works[i]) ||
		    bl_room_usable(s->room, a, b, s->works[i]))
			return false;
	}
	s->seen = before;
	return true;
}

/* A refund for @mtus MTUs of the pair of @g that found no path. */
static struct arb_grant make_refund(const struct arb_grant *g, uint32_t mtus)
{
	return (struct arb_grant){ .base = g->base,
				   .src = g->src,
				   .dst = g->dst,
				   .kind = ARB_REFUND,
				   .path = BL_FCP_PATH_ANY,
				   .mtus = mtus };
}

/* ---- two tiers: masks ---- */

/* Ends the words that no later run can reach. @last: last word of this run. */
static void move_words(struct selector *s, uint64_t last)
{
	const uint32_t words = (s->e->ops.horizon_slots + 63) / 64;
	const uint64_t first = last + 1 > words ? last + 1 - words : 0;

	if (first <= s->first)
		return;
	bl_room_move(s->room, first);
	if (first - s->first >= BL_SEL_WORDS)
		memset(s->used, 0, sizeof(s->used));
	else
		for (; s->first < first; s->first++)
			s->used[s->first % BL_SEL_WORDS] = 0;
	s->first = first;
}

/* Moves slot @bit of ask @i to @path; BL_PATH_NONE: to @slots of the ask. */
static void put_slot(struct selector *s, uint32_t i, uint32_t lanes, uint64_t bit, uint8_t path)
{
	uint64_t *take = &s->take[(size_t)i * lanes];
	uint32_t k;

	for (k = 0; k < lanes; k++)
		take[k] &= ~bit;
	s->ask[i].slots &= ~bit;
	*(path == BL_PATH_NONE ? &s->ask[i].slots : &take[path]) |= bit;
}

/*
 * Colours slots @bad of one word as a whole. @head: first ask of the word. Returns the number of
 * packets in these slots.
 */
static unsigned int mend_word(struct selector *s, uint32_t head, uint64_t bad)
{
	const uint32_t lanes = bl_room_lanes(s->room), most = s->slot_limit;
	const uint64_t word = s->ask[head].word;
	unsigned int count[64] = { 0 }, none[64] = { 0 }, sum = 0, i, n;
	uint64_t bits;
	uint32_t a;

	for (a = head; a != UINT32_MAX; a = s->next[a])
		for (bits = s->pair[a].slots & bad; bits; bits &= bits - 1) {
			const unsigned int b = (unsigned int)__builtin_ctzll(bits);

			if (count[b] < most)
				s->in_slot[(size_t)b * most + count[b]++] = a;
			none[b] += s->ask[a].slots >> b & 1;
		}
	for (bits = bad; bits; bits &= bits - 1) {
		const unsigned int b = (unsigned int)__builtin_ctzll(bits);
		const uint32_t *asks = &s->in_slot[(size_t)b * most];

		n = count[b];
		sum += n;
		for (i = 0; i < n; i++) {
			s->src[i] = s->ask[asks[i]].src;
			s->dst[i] = s->ask[asks[i]].dst;
		}
		/* dead paths, or more packets than the racks may send: no better than before */
		if (bl_path_select(s->path, n, s->src, s->dst, s->got) >= none[b])
			continue;
		bl_room_set(s->room, word, b, n, s->src, s->dst, s->got);
		for (i = 0; i < n; i++)
			put_slot(s, asks[i], lanes, 1ULL << b, s->got[i]);
	}
	return sum;
}

/* Colours slots anew in which some of the @n asks found no path. */
static void mend_slots(struct selector *s, unsigned int n)
{
	uint64_t bad[BL_SEL_WORDS] = { 0 }, any = 0;
	uint32_t head[BL_SEL_WORDS], i;
	unsigned int sum = 0;

	for (i = 0; i < n; i++)
		bad[s->ask[i].word % BL_SEL_WORDS] |= s->ask[i].slots;
	for (i = 0; i < BL_SEL_WORDS; i++) {
		bad[i] &= ~s->used[i];
		any |= bad[i];
		head[i] = UINT32_MAX;
	}
	if (!any)
		return;
	for (i = 0; i < n; i++) {
		uint32_t *h = &head[s->ask[i].word % BL_SEL_WORDS];

		s->next[i] = *h;
		*h = i;
	}
	for (i = 0; i < BL_SEL_WORDS && sum < MEND_MAX; i++) {
		/* as many slots as the rest of the budget holds for sure, the nearest first */
		const unsigned int slots = (MEND_MAX - sum + s->slot_limit - 1) / s->slot_limit;

		if (bad[i])
			sum += mend_word(s, head[i], bl_lowest64(bad[i], slots));
	}
}

static unsigned int assign_masks(struct selector *s, struct arb_grant *g, unsigned int n,
				 unsigned int max)
{
	const struct bl_engine *e = s->e;
	const uint32_t lanes = bl_room_lanes(s->room);
	unsigned int i, asks = 0, out = 0;
	uint64_t last = 0, none;
	uint32_t k;

	for (i = 0; i < n; i++) {
		const struct arb_grant one = g[i];
		const uint16_t a = e->rack_of[one.src], b = e->rack_of[one.dst];

		if (a == b) { /* within one rack: no path is needed */
			g[out++] = one;
			continue;
		}
		last = one.base / 64 > last ? one.base / 64 : last;
		s->ask[asks] = (struct bl_room_ask){ .slots = one.slots << (one.base & 63),
						     .word = one.base / 64,
						     .src = a,
						     .dst = b };
		s->pair[asks] = (struct sel_pair){ .base = one.base,
						   .slots = s->ask[asks].slots,
						   .src = one.src,
						   .dst = one.dst };
		asks++;
	}
	if (!asks)
		return out;
	move_words(s, last);
	none = bl_room_take(s->room, s->ask, asks, s->take);
	if (__builtin_expect(none != 0, 0))
		mend_slots(s, asks);
	for (i = 0; i < asks; i++) {
		const struct sel_pair *p = &s->pair[i];
		const uint32_t shift = p->base & 63;
		const uint64_t *take = &s->take[(size_t)i * lanes];
		struct arb_grant one = { .base = p->base, .src = p->src, .dst = p->dst };

		s->used[s->ask[i].word % BL_SEL_WORDS] |= p->slots;
		if (__builtin_expect(max - out < lanes + 1, 0)) {
			for (k = 0; k < lanes && out < max; k++)
				if (take[k]) {
					one.slots = take[k] >> shift;
					one.path = (uint8_t)k;
					g[out++] = one;
				}
		} else {
			/*
			 * Which paths a grant has cannot be predicted: each is written, and the
			 * position advances or not.
			 */
			for (k = 0; k < lanes; k++) {
				one.slots = take[k] >> shift;
				one.path = (uint8_t)k;
				g[out] = one;
				out += take[k] != 0;
			}
		}
		if (__builtin_expect(s->ask[i].slots != 0, 0) && out < max)
			g[out++] = make_refund(&one, bl_count64(s->ask[i].slots));
	}
	return out;
}

/* ---- three tiers: a colouring per slot ---- */

/** struct load - What one slot has been given so far; pointers into @load of struct selector. */
struct load {
	uint16_t *up, *down; /* [rack][aggregation switch] packets out of and into the rack */
	uint16_t *core_up, *core_down; /* [pod][path] packets out of and into the pod */
};

static size_t load_size(const struct bl_engine *e)
{
	return 2 * ((size_t)e->nracks * (e->npaths / e->cores) + (size_t)e->npods * e->npaths);
}

/* The load of a slot. @fresh: set to true if nothing was given of it before. */
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

/*
 * Writes pointers to the counts of path @k between two racks to @at: two or four of them. Returns
 * how many.
 */
static unsigned int link_loads(const struct bl_engine *e, const struct load *l, uint32_t src,
			       uint32_t dst, uint32_t k, uint16_t **at)
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

/* How many more packets the path with the @n counts @at has room for; 0: a link of it is full. */
static uint32_t path_room(const struct bl_engine *e, uint16_t **at, unsigned int n)
{
	uint32_t room = UINT32_MAX, i;

	for (i = 0; i < n; i++) {
		uint32_t cap = i < 2 ? e->cap : e->core_cap, of = *at[i] < cap ? cap - *at[i] : 0;

		room = of < room ? of : room;
	}
	return room;
}

static bool path_usable(const struct selector *s, uint32_t src, uint32_t dst, uint32_t k)
{
	return !s->seen || s->works[(size_t)src * s->e->nracks + dst] >> k & 1;
}

/*
 * Finds the path with the most room for one packet beside those whose paths are announced already.
 * Returns BL_PATH_NONE if none has room: the packet is asked for again, for another slot.
 */
static uint8_t path_beside(const struct selector *s, const struct load *l, uint32_t src,
			   uint32_t dst)
{
	const struct bl_engine *e = s->e;
	const uint32_t step = leaves_pod(e, src, dst) ? 1 : e->cores;
	uint8_t best = BL_PATH_NONE;
	uint32_t most = 0, k, j;
	uint16_t *at[4];

	for (k = 0; k < e->npaths; k += step) {
		uint32_t room;

		/*
		 * Within a pod no core switch is used: the aggregation switch works if any of its
		 * paths does.
		 */
		for (j = 0; j < step && !path_usable(s, src, dst, k + j); j++)
			;
		if (j == step)
			continue;
		room = path_room(e, at, link_loads(e, l, src, dst, k, at));
		if (room > most) {
			most = room;
			best = (uint8_t)k;
		}
	}
	return best;
}

static void count_packet(const struct bl_engine *e, const struct load *l, uint32_t src,
			 uint32_t dst, uint32_t k)
{
	uint16_t *at[4];
	unsigned int n = link_loads(e, l, src, dst, k, at);

	while (n--)
		++*at[n];
}

/* Colours the @n packets in hand; places all of them as long as no path is dead. */
static void select_all(struct selector *s, unsigned int n)
{
	const struct bl_engine *e = s->e;
	unsigned int i;

	bl_tiers_select(s->tiers, n, s->src, s->dst, s->agg, s->core);
	for (i = 0; i < n; i++) {
		uint32_t k = s->agg[i] * e->cores + (s->core[i] == BL_PATH_NONE ? 0 : s->core[i]);

		s->got[i] = s->agg[i] == BL_PATH_NONE || (leaves_pod(e, s->src[i], s->dst[i]) &&
							  !path_usable(s, s->src[i], s->dst[i], k))
				    ? BL_PATH_NONE
				    : (uint8_t)k;
	}
}

/*
 * Colours slot @bit of one word: the packets that leave their racks. @from, @to: the grants of this
 * word. The first packets of a slot get the selector's colouring, which places all of them. Those
 * that a later run puts into the same slot must do with what is left, since paths that were
 * announced cannot be changed.
 */
static void colour_slot(struct selector *s, unsigned int from, unsigned int to, unsigned int bit)
{
	const struct arb_grant *in = s->in;
	const struct bl_engine *e = s->e;
	unsigned int i, n = 0;
	struct load load;
	bool fresh;

	for (i = from; i < to && n < s->slot_limit; i++) {
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
			count_packet(e, &load, s->src[i], s->dst[i], s->got[i]);
	for (i = 0; i < n; i++) {
		if (fresh && s->got[i] != BL_PATH_NONE)
			continue;
		s->got[i] = path_beside(s, &load, s->src[i], s->dst[i]);
		if (s->got[i] != BL_PATH_NONE)
			count_packet(e, &load, s->src[i], s->dst[i], s->got[i]);
	}
	for (i = 0; i < n; i++)
		s->in[s->packet_of[i]].mtus =
			s->got[i]; /* the path of this packet, until assign_colours() has read it */
	s->npackets = n;
}

/*
 * Sorts the grants of a run by their words into @in; they are in no more words than a window has.
 * Returns how many there are.
 */
static unsigned int sort_by_word(struct selector *s, const struct arb_grant *g, unsigned int n)
{
	unsigned int start[BL_WINDOW_WORDS + 1] = { 0 }, i, sum = 0, c;
	uint64_t least = UINT64_MAX;

	for (i = 0; i < n; i++)
		least = g[i].base < least ? g[i].base : least;
	for (i = 0; i < n; i++)
		start[bl_min64((g[i].base - least) / 64, BL_WINDOW_WORDS)]++;
	for (i = 0; i <= BL_WINDOW_WORDS; i++) {
		c = start[i];
		start[i] = sum;
		sum += c;
	}
	for (i = 0; i < n; i++)
		s->in[start[bl_min64((g[i].base - least) / 64, BL_WINDOW_WORDS)]++] = g[i];
	return n;
}

/*
 * Colours each slot of each word. A packet that found a path goes into the grant (pair, word,
 * path), and these grants are written one after the other. Pairs within a rack keep
 * BL_FCP_PATH_ANY.
 */
static unsigned int assign_colours(struct selector *s, struct arb_grant *g, unsigned int n,
				   unsigned int max)
{
	const struct bl_engine *e = s->e;
	const uint32_t npaths = e->npaths;
	unsigned int from, to, i, bit, out = 0;
	uint64_t *mask = s->mask;

	n = sort_by_word(s, g, n);
	for (from = 0; from < n; from = to) {
		uint64_t any = 0;

		for (to = from;
		     to < n && to - from < 64 * s->slot_limit && s->in[to].base == s->in[from].base;
		     to++)
			any |= s->in[to].slots;
		/* masks by grant and path, and one more for packets without a path */
		memset(mask, 0, (size_t)(to - from) * (npaths + 1) * sizeof(*mask));
		for (; any; any &= any - 1) {
			bit = (unsigned int)__builtin_ctzll(any);
			colour_slot(s, from, to, bit);
			for (i = 0; i < s->npackets; i++) {
				uint32_t at = s->packet_of[i], k = s->in[at].mtus;

				mask[(size_t)(at - from) * (npaths + 1) +
				     (k < npaths ? k : npaths)] |= 1ULL << bit;
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
	}
	return out;
}

static unsigned int assign_paths(void *p, struct arb_grant *g, unsigned int n, unsigned int max)
{
	struct selector *s = p;

	n = n < s->limit ? n : s->limit;
	if (!table_take(s)) { /* all of them are asked for again */
		unsigned int i;

		for (i = 0; i < n; i++)
			g[i] = make_refund(&g[i], bl_count64(g[i].slots));
		return n;
	}
	return s->tiers ? assign_colours(s, g, n, max) : assign_masks(s, g, n, max);
}

const struct arb_path_ops bl_selector_ops = { .assign = assign_paths };

/* ---- life ---- */

static size_t mask_bytes(const struct selector *s)
{
	return (size_t)64 * s->slot_limit * (s->e->npaths + 1) * sizeof(*s->mask);
}

void bl_selector_close(struct selector *s)
{
	bl_pages_unmap(s->take, s->take_bytes);
	bl_pages_unmap(s->mask, s->mask ? mask_bytes(s) : 0);
	bl_path_free(s->path);
	bl_tiers_free(s->tiers);
	bl_room_free(s->room);
	free(s->ask);
	free(s->pair);
	free(s->next);
	free(s->in_slot);
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
}

static bool open_masks(struct selector *s, const struct bl_fp_file *f, enum bl_path_how how,
		       const char **why)
{
	struct bl_engine *e = s->e;

	s->path = bl_path_new(f->nracks, f->paths, f->path_cap, how, why);
	s->room = s->path ? bl_room_new(f->nracks, f->paths, f->path_cap,
					(e->ops.horizon_slots + 63) / 64, why)
			  : NULL;
	if (!s->room)
		return false;
	*why = "out of memory";
	s->take_bytes = (size_t)s->limit * bl_room_lanes(s->room) * sizeof(*s->take);
	s->take = bl_pages_map(s->take_bytes);
	s->ask = calloc(s->limit, sizeof(*s->ask));
	s->pair = calloc(s->limit, sizeof(*s->pair));
	s->next = calloc(s->limit, sizeof(*s->next));
	s->in_slot = calloc((size_t)64 * s->slot_limit, sizeof(*s->in_slot));
	bl_pages_touch(s->take, s->take_bytes);
	bl_pages_touch(s->ask, s->limit * sizeof(*s->ask));
	bl_pages_touch(s->pair, s->limit * sizeof(*s->pair));
	bl_pages_touch(s->next, s->limit * sizeof(*s->next));
	bl_pages_touch(s->in_slot, (size_t)64 * s->slot_limit * sizeof(*s->in_slot));
	return s->take && s->ask && s->pair && s->next && s->in_slot;
}

static bool open_tiers(struct selector *s, const struct bl_fp_file *f, enum bl_path_how how,
		       const char **why)
{
	struct bl_engine *e = s->e;

	s->tiers = bl_tiers_new(f->nracks, f->npods, f->pod_of, f->paths, f->path_cap, f->cores,
				f->core_cap, how, why);
	if (!s->tiers)
		return false;
	*why = "out of memory";
	s->in = calloc(s->limit, sizeof(*s->in));
	s->mask = bl_pages_map(mask_bytes(s));
	s->agg = calloc(s->slot_limit, sizeof(*s->agg));
	s->core = calloc(s->slot_limit, sizeof(*s->core));
	s->between = calloc((size_t)f->npods * f->npods + 1, sizeof(*s->between));
	s->load_slot = malloc(LOAD_SLOTS * sizeof(*s->load_slot));
	/* pages that no slot needs are never written */
	s->load = calloc(LOAD_SLOTS, load_size(e) * sizeof(*s->load));
	if (s->load_slot)
		memset(s->load_slot, 0xff, LOAD_SLOTS * sizeof(*s->load_slot));
	return s->in && s->mask && s->agg && s->core && s->between && s->load_slot && s->load;
}

int bl_selector_open(struct bl_engine *e, const struct bl_fp_file *f, struct bl_err *err)
{
	const enum bl_path_how how = f->euler ? BL_PATH_EULER : BL_PATH_GREEDY;
	struct selector *s = &e->sel;
	const char *why = NULL;

	s->e = e;
	s->limit = e->ops.grants_max;
	s->slot_limit = (unsigned int)bl_min64(
		bl_max64(e->ops.grants_max / e->ops.horizon_slots, 1), BL_PATH_PACKETS_MAX);
	if (!(f->npods ? open_tiers(s, f, how, &why) : open_masks(s, f, how, &why)))
		return bl_fail(err, EINVAL, "path selection: %s", why);
	s->packet_of = calloc(s->slot_limit, sizeof(*s->packet_of));
	s->src = calloc(s->slot_limit, sizeof(*s->src));
	s->dst = calloc(s->slot_limit, sizeof(*s->dst));
	s->got = calloc(s->slot_limit, sizeof(*s->got));
	s->works = calloc((size_t)f->nracks * f->nracks, sizeof(*s->works));
	e->state = s;
	if (!s->packet_of || !s->src || !s->dst || !s->got || !s->works)
		return bl_fail(err, ENOMEM, "out of memory for a path selector");
	return 0;
}
