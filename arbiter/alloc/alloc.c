/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timeslot allocator around its inner loop (alloc_pass.h): demands, the moving window, the
 * order in which flows are visited.
 *
 * A run. The window covers [base, base + window). When @now has passed a step of it, the window
 * moves, and all waiting flows are visited. In between, only flows that came since the last run are
 * visited: the others were visited already, and slots do not become free again. So a demand that
 * comes while a window is being sent gets the holes that are left in it, at once, and no flow that
 * waited longer could have used them.
 *
 * Fair and weighted, when a window is opened: each flow gets what it is due (alloc_due.c), in the
 * lowest slots that are free at both its ends and, where these are not enough, by chains
 * (alloc_chain.c). With 64 slots and five flows to one receiver each is due 12.8: all have 12, four
 * of them one more, and the fifth is 0.8 ahead of the others in the next window. Slots that no flow
 * was due, since demands were small, are shared out in passes that lift all flows to one level.
 * With visits of one MTU each, as published, the same takes 69 visits instead of 5.
 *
 * The cost is in visits, so whatever needs fewer of them wins: whole requests and shares instead of
 * single MTUs, lists instead of searches, no order but the one that results from the passes.
 */
#include <stdlib.h>
#include <string.h>

#include "arbiter/alloc/alloc.h"
#include "arbiter/alloc/alloc_priv.h"
#include "arbiter/pages.h"

#define SORT_BUCKETS 256u

static const char *const policy_names[] = {
#define X(id, name, text) [BL_ALLOC_##id] = name,
	BL_ALLOC_POLICIES(X)
#undef X
};
_Static_assert(sizeof(policy_names) / sizeof(policy_names[0]) == BL_ALLOC_NPOLICIES, "one name "
										     "each");

const char *bl_alloc_policy_name(enum bl_alloc_policy p)
{
	return (unsigned int)p < BL_ALLOC_NPOLICIES ? policy_names[p] : "unknown";
}

const char *bl_alloc_err_text(enum bl_alloc_err e)
{
	switch (e) {
	case BL_ALLOC_OK:
		return "ok";
	case BL_ALLOC_UNKNOWN:
		return "no such endpoint";
	case BL_ALLOC_SELF:
		return "source and destination are the same endpoint";
	case BL_ALLOC_QUOTA:
		return "more than the quota of a pair";
	case BL_ALLOC_FULL:
		return "too many flows wait";
	}
	return "unknown";
}

/* Maps zeroed memory in whole cache lines. NULL: memory is short. */
static void *table_map(size_t count, size_t size)
{
	void *p = bl_pages_map(count * size + 64);

	if (p) /* 4096 endpoints have 64 MiB of pairs: saves a TLB miss per demand */
		madvise(p, count * size + 64, MADV_HUGEPAGE);
	return p;
}

static void table_unmap(void *p, size_t count, size_t size)
{
	bl_pages_unmap(p, count * size + 64);
}

static size_t free_words(const struct bl_alloc *a)
{
	return (size_t)a->ports * a->words + 16 * BL_WINDOW_WORDS; /* rows are read 16 at a time */
}

static size_t pair_count(const struct bl_alloc *a)
{
	return (size_t)a->n * a->n;
}

static size_t peer_count(const struct bl_alloc *a)
{
	return 2 * (size_t)a->n * a->words * BL_WORD_SLOTS;
}

void bl_alloc_free(struct bl_alloc *a)
{
	if (!a)
		return;
	table_unmap(a->free, free_words(a), sizeof(*a->free));
	table_unmap(a->plane, (size_t)a->ports * a->planes * a->words, sizeof(*a->plane));
	table_unmap(a->pair, (size_t)a->n * a->n, sizeof(*a->pair));
	table_unmap(a->wait, a->flows_max + BL_WANT_PAD, sizeof(*a->wait));
	table_unmap(a->list, a->flows_max + BL_WANT_PAD, sizeof(*a->list));
	table_unmap(a->fresh, a->flows_max + BL_WANT_PAD, sizeof(*a->fresh));
	table_unmap(a->done, a->flows_max + BL_WANT_PAD, sizeof(*a->done));
	table_unmap(a->later, a->flows_max + BL_WANT_PAD, sizeof(*a->later));
	table_unmap(a->takes, (size_t)(a->flows_max + BL_WANT_PAD) * a->words, sizeof(*a->takes));
	table_unmap(a->parts, a->flows_max + BL_WANT_PAD, sizeof(*a->parts));
	table_unmap(a->due.flow, a->flows_max + BL_WANT_PAD, sizeof(*a->due.flow));
	table_unmap(a->due.gone, a->flows_max + BL_WANT_PAD, sizeof(*a->due.gone));
	table_unmap(a->due.part, a->flows_max + BL_WANT_PAD, sizeof(*a->due.part));
	table_unmap(a->due.had, a->flows_max + BL_WANT_PAD, sizeof(*a->due.had));
	table_unmap(a->due.aim, a->flows_max + BL_WANT_PAD, sizeof(*a->due.aim));
	table_unmap(a->chain.peer, peer_count(a), sizeof(*a->chain.peer));
	table_unmap(a->chain.where, pair_count(a), sizeof(*a->chain.where));
	free(a->due.room);
	free(a->due.port);
	free(a->due.is_full);
	table_unmap(a->own_out, a->outmax, sizeof(*a->out));
	free(a->cap);
	free(a->rack_of);
	free(a->pod_of);
	free(a->active);
	free(a->share);
	free(a->sum);
	free(a->recip);
	free(a);
}

void bl_alloc_touch(struct bl_alloc *a)
{
	const size_t flows = a->flows_max + BL_WANT_PAD;

	bl_pages_touch(a->free, free_words(a) * sizeof(*a->free));
	bl_pages_touch(a->pair, a->pair ? (size_t)a->n * a->n * sizeof(*a->pair) : 0);
	bl_pages_touch(a->wait, flows * sizeof(*a->wait));
	bl_pages_touch(a->list, flows * sizeof(*a->list));
	bl_pages_touch(a->fresh, flows * sizeof(*a->fresh));
	bl_pages_touch(a->done, flows * sizeof(*a->done));
	bl_pages_touch(a->later, flows * sizeof(*a->later));
	bl_pages_touch(a->takes, flows * a->words * sizeof(*a->takes));
	bl_pages_touch(a->parts, flows * sizeof(*a->parts));
	bl_pages_touch(a->due.flow, flows * sizeof(*a->due.flow));
	bl_pages_touch(a->due.gone, flows * sizeof(*a->due.gone));
	bl_pages_touch(a->due.part, flows * sizeof(*a->due.part));
	bl_pages_touch(a->due.had, flows * sizeof(*a->due.had));
	bl_pages_touch(a->due.aim, flows * sizeof(*a->due.aim));
	bl_pages_touch(a->chain.peer, peer_count(a) * sizeof(*a->chain.peer));
	bl_pages_touch(a->chain.where,
		       a->chain.where ? pair_count(a) * sizeof(*a->chain.where) : 0);
	bl_pages_touch(a->own_out, a->outmax * sizeof(*a->own_out));
}

static const struct bl_alloc_ops *choose_ops(enum bl_alloc_isa isa)
{
#ifdef __x86_64__
	bool bmi2 = __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
	bool avx512 = bmi2 && __builtin_cpu_supports("avx512f") &&
		      __builtin_cpu_supports("avx512vl") &&
		      __builtin_cpu_supports("avx512vpopcntdq");

	if ((isa == BL_ISA_BEST || isa == BL_ISA_AVX512) && avx512)
		return &bl_alloc_avx512;
	if ((isa == BL_ISA_BEST || isa == BL_ISA_BMI2) && bmi2)
		return &bl_alloc_bmi2;
#endif
	return isa == BL_ISA_BEST || isa == BL_ISA_PLAIN ? &bl_alloc_plain : NULL;
}

static const char *validate_cfg(const struct bl_alloc_cfg *c)
{
	uint32_t i;

	if (!c->endpoints || c->endpoints > BL_ALLOC_ENDPOINTS_MAX)
		return "an allocator has 1 to 4096 endpoints";
	if ((unsigned int)c->policy >= BL_ALLOC_NPOLICIES)
		return "no such policy";
	if (c->window_slots && (c->window_slots < BL_ALLOC_WINDOW_MIN || c->window_slots > 512 ||
				c->window_slots & (c->window_slots - 1)))
		return "a window has 8, 16, 32, 64, 128, 256 or 512 slots";
	if (c->quota_mtus > BL_ALLOC_QUOTA_MAX)
		return "the quota of a pair is below 2^24 MTUs";
	if (c->racks > BL_ALLOC_RACKS_MAX || c->pods > BL_ALLOC_RACKS_MAX || (c->pods && !c->racks))
		return "there are at most 1024 racks and 1024 pods of racks";
	if (c->racks && (!c->rack_of || !c->rack_up || !c->rack_down))
		return "racks need rack_of, rack_up and rack_down";
	if (c->pods && (!c->pod_of || !c->pod_up || !c->pod_down))
		return "pods need pod_of, pod_up and pod_down";
	for (i = 0; i < c->endpoints; i++) {
		if ((c->src_cap && c->src_cap[i] > BL_ALLOC_CAP_MAX) ||
		    (c->dst_cap && c->dst_cap[i] > BL_ALLOC_CAP_MAX))
			return "a capacity is at most 4095 packets a slot";
		if (c->racks && c->rack_of[i] >= c->racks)
			return "an endpoint is in a rack that does not exist";
	}
	for (i = 0; i < c->racks; i++) {
		if (c->rack_up[i] > BL_ALLOC_CAP_MAX || c->rack_down[i] > BL_ALLOC_CAP_MAX)
			return "a capacity is at most 4095 packets a slot";
		if (c->pods && c->pod_of[i] >= c->pods)
			return "a rack is in a pod that does not exist";
	}
	for (i = 0; i < c->pods; i++)
		if (c->pod_up[i] > BL_ALLOC_CAP_MAX || c->pod_down[i] > BL_ALLOC_CAP_MAX)
			return "a capacity is at most 4095 packets a slot";
	return NULL;
}

static bool policy_merges(enum bl_alloc_policy p)
{
	return p == BL_ALLOC_FAIR || p == BL_ALLOC_WEIGHTED || p == BL_ALLOC_FCT;
}

static void fill_word(struct bl_alloc *a, uint32_t port, uint32_t j)
{
	__u64 *f = &a->free[(size_t)port * a->words + j];

	if (a->cap[port] <= 1)
		*f = a->cap[port] ? ~0ULL : 0;
	else
		*f = bl_planes_fill(&a->plane[(size_t)port * a->planes * a->words + j], a->planes,
				    a->words, a->cap[port]);
}

/*
 * Sets the capacities and what follows from them: whether the network is plain, the number of
 * planes, and the most words that the grants of a run can have.
 */
static void set_caps(struct bl_alloc *a, const struct bl_alloc_cfg *c)
{
	uint32_t i, most = 1;
	uint64_t in = 0, out = 0;

	for (i = 0; i < a->n; i++) {
		a->cap[i] = c->src_cap ? c->src_cap[i] : 1;
		a->cap[a->n + i] = c->dst_cap ? c->dst_cap[i] : 1;
		out += a->cap[i];
		in += a->cap[a->n + i];
	}
	for (i = 0; i < c->racks; i++) {
		a->cap[a->first_rack + i] = c->rack_up[i];
		a->cap[a->first_rack + c->racks + i] = c->rack_down[i];
	}
	for (i = 0; i < c->pods; i++) {
		a->cap[a->first_pod + i] = c->pod_up[i];
		a->cap[a->first_pod + c->pods + i] = c->pod_down[i];
	}
	a->plain = !c->racks;
	for (i = 0; i < a->ports; i++) {
		most = a->cap[i] > most ? a->cap[i] : most;
		a->plain = a->plain && a->cap[i] <= 1;
	}
	while (most) {
		a->planes++;
		most >>= 1;
	}
	/*
	 * Each packet needs at most a mask and a head. A head and a window more may be written
	 * beyond the end without being counted.
	 */
	a->outmax =
		2 * (size_t)bl_min64(in, out) * a->words * BL_WORD_SLOTS + 1 + 2 * BL_WINDOW_WORDS;
}

static uint16_t *copy16(const uint16_t *from, uint32_t n)
{
	uint16_t *p = malloc((n ? n : 1) * sizeof(*p));

	if (p && n)
		memcpy(p, from, n * sizeof(*p));
	return p;
}

/* Reserves the memory of alloc_due.c and alloc_chain.c. */
static bool due_new(struct bl_alloc *a)
{
	const size_t flows = a->flows_max + BL_WANT_PAD;
	struct bl_due *d = &a->due;

	d->room = calloc(5 * (size_t)a->ports, sizeof(*d->room));
	d->level = d->room + a->ports;
	d->weight = d->level + a->ports;
	d->sum = d->weight + a->ports;
	d->want = d->sum + a->ports;
	d->port = calloc(a->ports + 1, sizeof(*d->port));
	d->is_full = calloc(a->ports + 1, sizeof(*d->is_full));
	d->part = table_map(flows, sizeof(*d->part));
	d->gone = table_map(flows, sizeof(*d->gone));
	d->flow = table_map(flows, sizeof(*d->flow));
	d->had = table_map(flows, sizeof(*d->had));
	d->aim = table_map(flows, sizeof(*d->aim));
	if (!d->room || !d->port || !d->is_full || !d->part || !d->gone || !d->flow || !d->had ||
	    !d->aim)
		return false;
	if (!a->plain)
		return true;
	a->chain.row = a->words * BL_WORD_SLOTS;
	a->chain.peer = table_map(peer_count(a), sizeof(*a->chain.peer));
	a->chain.where = table_map(pair_count(a), sizeof(*a->chain.where));
	return a->chain.peer && a->chain.where;
}

struct bl_alloc *bl_alloc_new(const struct bl_alloc_cfg *cfg, const char **why)
{
	const char *wrong = validate_cfg(cfg);
	struct bl_alloc *a;
	uint32_t i, j;

	*why = wrong;
	if (wrong)
		return NULL;
	*why = "out of memory";
	a = aligned_alloc(64, (sizeof(*a) + 63) / 64 * 64);
	if (!a)
		return NULL;
	memset(a, 0, sizeof(*a));
	a->n = cfg->endpoints;
	a->policy = cfg->policy;
	a->racks = cfg->racks;
	a->pods = cfg->pods;
	a->first_rack = 2 * a->n;
	a->first_pod = a->first_rack + 2 * a->racks;
	a->ports = a->first_pod + 2 * a->pods;
	a->span = bl_alloc_window(cfg) < BL_WORD_SLOTS ? bl_alloc_window(cfg) : BL_WORD_SLOTS;
	a->words = bl_alloc_window(cfg) / a->span;
	a->step = a->policy == BL_ALLOC_FIRST ? 1 : a->words;
	a->quota_mtus = cfg->quota_mtus ? cfg->quota_mtus : 65535;
	a->flows_max = cfg->flows_max ? cfg->flows_max : 1u << 20;
	if (policy_merges(a->policy) && a->flows_max > pair_count(a))
		a->flows_max = (uint32_t)pair_count(a);
	a->ops = choose_ops(cfg->isa);
	if (!a->ops) {
		*why = "this CPU does not have the instructions asked for";
		bl_alloc_free(a);
		return NULL;
	}
	a->cap = calloc(a->ports, sizeof(*a->cap));
	a->active = calloc(a->ports + BL_WANT_PAD, sizeof(*a->active));
	a->share = calloc(a->ports + BL_WANT_PAD, sizeof(*a->share));
	a->sum = calloc(a->ports + BL_WANT_PAD, sizeof(*a->sum));
	a->recip = calloc(BL_RECIP_MAX + 1, sizeof(*a->recip));
	a->rack_of = copy16(cfg->rack_of, a->racks ? a->n : 0);
	a->pod_of = copy16(cfg->pod_of, a->pods ? a->racks : 0);
	if (!a->cap || !a->active || !a->share || !a->sum || !a->recip || !a->rack_of || !a->pod_of)
		goto fail;
	for (i = 1; i <= BL_RECIP_MAX; i++)
		a->recip[i] = ((1ULL << BL_RECIP_BITS) + i - 1) / i;
	set_caps(a, cfg);
	a->free = table_map(free_words(a), sizeof(*a->free));
	a->plane = table_map((size_t)a->ports * a->planes * a->words, sizeof(*a->plane));
	a->wait = table_map(a->flows_max + BL_WANT_PAD, sizeof(*a->wait));
	a->list = table_map(a->flows_max + BL_WANT_PAD, sizeof(*a->list));
	a->fresh = table_map(a->flows_max + BL_WANT_PAD, sizeof(*a->fresh));
	a->done = table_map(a->flows_max + BL_WANT_PAD, sizeof(*a->done));
	a->later = table_map(a->flows_max + BL_WANT_PAD, sizeof(*a->later));
	a->takes = table_map((size_t)(a->flows_max + BL_WANT_PAD) * a->words, sizeof(*a->takes));
	a->parts = table_map(a->flows_max + BL_WANT_PAD, sizeof(*a->parts));
	a->out = a->own_out = table_map(a->outmax, sizeof(*a->out));
	if (policy_merges(a->policy))
		a->pair = table_map(pair_count(a), sizeof(*a->pair));
	if ((a->policy == BL_ALLOC_FAIR || a->policy == BL_ALLOC_WEIGHTED) && !due_new(a))
		goto fail;
	if (!a->free || !a->plane || !a->wait || !a->list || !a->fresh || !a->done || !a->later ||
	    !a->takes || !a->parts || !a->out || (policy_merges(a->policy) && !a->pair))
		goto fail;
	for (i = 0; i < a->ports; i++)
		for (j = 0; j < a->words; j++)
			fill_word(a, i, j);
	a->moved = true; /* the first window is new */
	*why = NULL;
	return a;
fail:
	bl_alloc_free(a);
	return NULL;
}

enum bl_alloc_err bl_alloc_demand(struct bl_alloc *a, uint32_t src, uint32_t dst, uint32_t mtus,
				  uint64_t deadline)
{
	enum bl_alloc_err err = BL_ALLOC_OK;
	uint32_t *pair, weight = 1;

	if (src >= a->n || dst >= a->n)
		err = BL_ALLOC_UNKNOWN;
	else if (src == dst)
		err = BL_ALLOC_SELF;
	else if (mtus > a->quota_mtus)
		err = BL_ALLOC_QUOTA;
	if (err)
		goto refuse;
	if (!mtus)
		return BL_ALLOC_OK;
	if (a->pair) {
		pair = &a->pair[(size_t)src * a->n + dst];
		if (*pair & BL_PAIR_LISTED) {
			/*
			 * The MTUs in the record of the pair are within the quota, too, so a pair
			 * has at most twice the quota waiting.
			 */
			if ((*pair & BL_PAIR_MTUS) + mtus > a->quota_mtus) {
				err = BL_ALLOC_QUOTA;
				goto refuse;
			}
			*pair += mtus;
			a->st.demanded_mtus += mtus;
			return BL_ALLOC_OK;
		}
		if (a->nwait + a->nfresh >= a->flows_max) {
			err = BL_ALLOC_FULL;
			goto refuse;
		}
		*pair |= BL_PAIR_LISTED;
		if (a->policy == BL_ALLOC_WEIGHTED)
			weight = (*pair >> BL_PAIR_WEIGHT & 0x7f) + 1;
	} else if (a->nwait + a->nfresh >= a->flows_max) {
		err = BL_ALLOC_FULL;
		goto refuse;
	}
	a->fresh[a->nfresh++] = (struct bl_want){ .src = (uint16_t)src,
						  .dst = (uint16_t)dst,
						  .mtus = mtus,
						  .key = a->policy == BL_ALLOC_DEADLINE
								 ? (uint32_t)deadline
								 : weight,
						  .account = BL_ACCOUNT_ZERO };
	a->st.demanded_mtus += mtus;
	return BL_ALLOC_OK;
refuse:
	a->st.refused++;
	return err;
}

enum bl_alloc_err bl_alloc_weight(struct bl_alloc *a, uint32_t src, uint32_t dst, uint32_t weight)
{
	uint32_t *pair;

	if (src >= a->n || dst >= a->n)
		return BL_ALLOC_UNKNOWN;
	if (src == dst)
		return BL_ALLOC_SELF;
	if (!weight || weight > BL_ALLOC_WEIGHT_MAX)
		return BL_ALLOC_QUOTA;
	if (!a->pair)
		return BL_ALLOC_OK; /* a policy without shares */
	pair = &a->pair[(size_t)src * a->n + dst];
	*pair = (*pair & (BL_PAIR_LISTED | BL_PAIR_MTUS)) | (weight - 1) << BL_PAIR_WEIGHT;
	return BL_ALLOC_OK;
}

/*
 * Moves the window so that its first step holds @now. Rows are shifted, not used as rings: 512 rows
 * cost 8 cycles a slot, indices modulo 8 would cost one cycle in every visit.
 */
static void move_window(struct bl_alloc *a, uint64_t now)
{
	const uint64_t span = (uint64_t)a->step * a->span, all = ~0ULL >> (BL_WORD_SLOTS - a->span);
	uint64_t by = (now - a->base) / span * a->step;
	uint32_t keep, p, j;

	if (by) {
		a->base += by * a->span;
		a->moved = true;
		a->st.windows++;
		keep = by < a->words ? a->words - (uint32_t)by : 0;
		for (p = 0; p < a->ports; p++) {
			__u64 *f = &a->free[(size_t)p * a->words];

			memmove(f, f + a->words - keep, keep * sizeof(*f));
			for (j = 0; keep && a->cap[p] > 1 && j < a->planes; j++) {
				f = &a->plane[((size_t)p * a->planes + j) * a->words];
				memmove(f, f + a->words - keep, keep * sizeof(*f));
			}
			for (j = keep; j < a->words; j++)
				fill_word(a, p, j);
		}
	}
	for (j = 0; j < a->words; j++) {
		uint64_t first = a->base + j * a->span;

		a->open[j] = now <= first             ? all
			     : now - first >= a->span ? 0
						      : all << (now - first) & all;
	}
}

/*
 * The bucket of a count when the fewest come first: one bucket each up to 127, then 16 for every
 * doubling. Equal counts stay in order.
 */
static uint32_t sort_bucket(uint32_t v)
{
	uint32_t top;

	if (v < 128)
		return v;
	top = 31 - (uint32_t)__builtin_clz(v);
	top = 128 + (top - 7) * 16 + (v >> (top - 4) & 15);
	return top < SORT_BUCKETS ? top : SORT_BUCKETS - 1;
}

static uint32_t sort_key(const struct bl_alloc *a, const struct bl_want *w)
{
	uint32_t behind;

	if (a->policy == BL_ALLOC_FCT)
		return sort_bucket(w->mtus);
	/* deadlines count from the start of the window; missed ones are the most urgent */
	behind = w->key - (uint32_t)a->base;
	return (int32_t)behind < 0 ? 0 : sort_bucket(behind);
}

static void sort_list(struct bl_alloc *a)
{
	uint32_t start[SORT_BUCKETS] = { 0 }, sum = 0, i, c;
	struct bl_want *from = a->list;
	size_t k;

	for (k = 0; k < a->nlist; k++)
		start[sort_key(a, &from[k])]++;
	for (i = 0; i < SORT_BUCKETS; i++) {
		c = start[i];
		start[i] = sum;
		sum += c;
	}
	for (k = 0; k < a->nlist; k++)
		a->done[start[sort_key(a, &from[k])]++] = from[k];
	a->list = a->done;
	a->done = from;
}

/*
 * Adds what came for a pair while it waited to its record, up to the quota. Otherwise a pair whose
 * record ends in the middle of its share would lose the rest of it: the next pass shares that out
 * again, to all flows.
 */
static void merge_pairs(struct bl_alloc *a)
{
	uint32_t *pair, more, room;
	size_t i;

	for (i = 0; i < a->nlist; i++) {
		struct bl_want *w = &a->list[i];

		if (i + 16 < a->nlist)
			__builtin_prefetch(
				&a->pair[(size_t)a->list[i + 16].src * a->n + a->list[i + 16].dst],
				1);
		pair = &a->pair[(size_t)w->src * a->n + w->dst];
		more = *pair & BL_PAIR_MTUS;
		room = a->quota_mtus - w->mtus;
		more = more < room ? more : room;
		w->mtus += more;
		*pair -= more;
	}
}

/*
 * Ends the pairs that got all that their records wanted. Those that had more than the quota waiting
 * join the next pass, behind all others, since they were served last.
 */
static void settle_done(struct bl_alloc *a)
{
	size_t i;

	for (i = 0; i < a->ndone; i++) {
		struct bl_want w = a->done[i];
		uint32_t *pair = &a->pair[(size_t)w.src * a->n + w.dst];

		if (i + 16 < a->ndone)
			__builtin_prefetch(
				&a->pair[(size_t)a->done[i + 16].src * a->n + a->done[i + 16].dst],
				1);
		w.mtus = *pair & BL_PAIR_MTUS;
		if (!w.mtus) {
			*pair &= ~BL_PAIR_LISTED;
			continue;
		}
		*pair &= ~BL_PAIR_MTUS;
		a->list[a->nlist++] = w;
	}
	a->ndone = 0;
}

/* Gives all flows of the list what they are due. */
static void give_due(struct bl_alloc *a)
{
	bl_alloc_due(a);
	if (!a->plain) {
		a->ops->pass(a, BL_PASS_AIM);
		return;
	}
	a->ops->take(a);
	bl_alloc_chains(a);
	a->ops->sort(a);
}

/* Shares slots that are left over equally among all flows of the list. */
static void give_level(struct bl_alloc *a)
{
	a->ops->shares(a);
	a->ops->pass(a, BL_PASS_FAIR);
}

/* Serves the flows of @list. @all: it holds all flows that wait, since a window was opened. */
static void serve_list(struct bl_alloc *a, bool all)
{
	const bool shares = a->policy == BL_ALLOC_FAIR || a->policy == BL_ALLOC_WEIGHTED;
	uint32_t pass = 0;

	if (!a->nlist)
		return;
	if (a->pair &&
	    (all ||
	     a->policy == BL_ALLOC_FCT)) /* in holes that are left over no flow has a share */
		merge_pairs(a);
	if (a->policy == BL_ALLOC_FCT || a->policy == BL_ALLOC_DEADLINE)
		sort_list(a);
	/*
	 * Most flows that come into a window that is given already find no slot: to find that out
	 * is cheaper than to count them, share out and visit them (2026-11-21: docs/arbiter.md).
	 */
	if (shares && !all)
		a->ops->filter(a);
	if (shares && all)
		bl_alloc_open(a);
	while (a->nlist) {
		a->st.passes++;
		/*
		 * What is due comes first. No flow has a share of what is left over, but the
		 * accounts remember what each got of it.
		 */
		if (shares && all && !pass)
			give_due(a);
		else if (shares && pass < BL_PASSES_MAX)
			give_level(a);
		else
			a->ops->pass(a, BL_PASS_WHOLE);
		pass++;
		if (a->pair)
			settle_done(a);
		else
			a->ndone = 0;
		if (shares)
			a->ops->filter(a);
	}
}

struct bl_grants bl_alloc_run(struct bl_alloc *a, uint64_t now)
{
	struct bl_want *swap;
	bool moved;

	if (now < a->base)
		now = a->base;
	move_window(a, now);
	a->outlen = 0;
	a->run_mtus = 0;
	if (a->moved) { /* first the flows that wait, then those that came */
		memcpy(&a->wait[a->nwait], a->fresh, a->nfresh * sizeof(*a->fresh));
		swap = a->list;
		a->list = a->wait;
		a->nlist = a->nwait + a->nfresh;
		a->wait = swap;
		a->nwait = 0;
	} else {
		swap = a->list;
		a->list = a->fresh;
		a->nlist = a->nfresh;
		a->fresh = swap;
	}
	moved = a->moved;
	a->nfresh = 0;
	a->moved = false;
	serve_list(a, moved);
	a->st.granted_mtus += a->run_mtus;
	return (struct bl_grants){
		.base = a->base, .row = a->out, .len = a->outlen, .mtus = a->run_mtus
	};
}

void bl_alloc_row(struct bl_alloc *a, uint64_t *row)
{
	a->out = row ? row : a->own_out;
}

size_t bl_alloc_row_words(const struct bl_alloc *a)
{
	return a->outmax;
}

/* Drops the demands from @endpoint, and, with @to, also those to it. Returns their MTUs. */
static uint64_t forget_list(struct bl_alloc *a, struct bl_want *w, size_t *n, uint32_t endpoint,
			    bool to)
{
	uint64_t mtus = 0;
	size_t i, keep = 0;

	for (i = 0; i < *n; i++) {
		if (w[i].src != endpoint && (!to || w[i].dst != endpoint)) {
			w[keep++] = w[i];
			continue;
		}
		mtus += w[i].mtus;
		if (a->pair) {
			uint32_t *pair = &a->pair[(size_t)w[i].src * a->n + w[i].dst];

			mtus += *pair & BL_PAIR_MTUS;
			*pair &= ~(BL_PAIR_LISTED | BL_PAIR_MTUS);
		}
	}
	*n = keep;
	return mtus;
}

uint64_t bl_alloc_forget(struct bl_alloc *a, uint32_t endpoint)
{
	uint64_t mtus = forget_list(a, a->wait, &a->nwait, endpoint, true) +
			forget_list(a, a->fresh, &a->nfresh, endpoint, true);

	a->st.forgotten_mtus += mtus;
	return mtus;
}

uint64_t bl_alloc_forget_from(struct bl_alloc *a, uint32_t src)
{
	uint64_t mtus = forget_list(a, a->wait, &a->nwait, src, false) +
			forget_list(a, a->fresh, &a->nfresh, src, false);

	a->st.forgotten_mtus += mtus;
	return mtus;
}

uint64_t bl_alloc_waiting(const struct bl_alloc *a)
{
	return a->st.demanded_mtus - a->st.granted_mtus - a->st.forgotten_mtus;
}

uint64_t bl_alloc_enough(const struct bl_alloc *a)
{
	uint64_t packets = 0;
	uint32_t i;

	/*
	 * Not kept in a field, although it changes with @cap only: with one, first-come carries 1.3
	 * instead of 2.05 Tbit/s at load 0.9 (2026-11-23). The reason is not known.
	 */
	for (i = 0; i < a->n; i++)
		packets += a->cap[i];
	return packets * a->step * BL_WORD_SLOTS / 2;
}

const struct bl_alloc_stats *bl_alloc_stats(const struct bl_alloc *a)
{
	return &a->st;
}

const char *bl_alloc_isa(const struct bl_alloc *a)
{
	return a->ops->name;
}
