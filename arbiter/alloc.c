/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timeslot allocator around its inner loop (alloc_pass.h): demands, the moving window, the order in which flows are visited.
 *
 * A run. The window covers [base, base + window). When @now has left a step of it behind, it moves, and everybody who waits is visited; in between only those
 * who came since the last run are: whoever was there before was visited already, and slots do not become free again. So what comes while
 * a window is being sent gets the holes that are left in it, at once, and nobody who waited longer could have used them.
 *
 * Fair, with 64 slots and five flows to one receiver: 64 = 5 x 12 + 4, so each may have 12 and the first four one more. All slots are given now; the five are
 * blocked and wait, and who had an odd slot waits behind who had none. So the next window's odd slots go to the fifth first: counts never differ by more
 * than one. With visits of one MTU each, as published, the same takes 69 visits instead of 5.
 *
 * The cost is in visits, so whatever needs fewer wins: whole requests and shares instead of single MTUs, lists instead of searches, no order but the one
 * that falls out of the passes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "alloc_priv.h"

#define SORT_BUCKETS 256u

static const char *const policy_names[] = {
#define X(id, name, text) [BL_ALLOC_##id] = name,
	BL_ALLOC_POLICIES(X)
#undef X
};
_Static_assert(sizeof(policy_names) / sizeof(policy_names[0]) == BL_ALLOC_NPOLICIES, "one name each");

const char *bl_alloc_policy_name(enum bl_alloc_policy p)
{
	return (unsigned int)p < BL_ALLOC_NPOLICIES ? policy_names[p] : "unknown";
}

const char *bl_alloc_err_text(enum bl_alloc_err e)
{
	switch (e) {
	case BL_ALLOC_OK: return "ok";
	case BL_ALLOC_UNKNOWN: return "no such endpoint";
	case BL_ALLOC_SELF: return "source and destination are the same endpoint";
	case BL_ALLOC_QUOTA: return "more than the quota of a pair";
	case BL_ALLOC_FULL: return "too many flows wait";
	}
	return "unknown";
}

/* Zeroed, in whole cache lines, touched only where it is used: sizes are for the worst case, which is seldom near. */
static void *table(size_t count, size_t size)
{
	void *p = mmap(NULL, count * size + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, count * size + 64, MADV_HUGEPAGE); /* 4096 endpoints have 64 MiB of pairs: one TLB miss per demand less */
	return p;
}

static void table_free(void *p, size_t count, size_t size)
{
	if (p)
		munmap(p, count * size + 64);
}

static size_t free_words(const struct bl_alloc *a)
{
	return (size_t)a->ports * a->words + 16 * BL_WINDOW_WORDS; /* rows are read 16 at a time */
}

void bl_alloc_free(struct bl_alloc *a)
{
	if (!a)
		return;
	table_free(a->free, free_words(a), sizeof(*a->free));
	table_free(a->plane, (size_t)a->ports * a->planes * a->words, sizeof(*a->plane));
	table_free(a->pair, (size_t)a->n * a->n, sizeof(*a->pair));
	table_free(a->wait, a->flows_max + BL_WANT_PAD, sizeof(*a->wait));
	table_free(a->list, a->flows_max + BL_WANT_PAD, sizeof(*a->list));
	table_free(a->fresh, a->flows_max + BL_WANT_PAD, sizeof(*a->fresh));
	table_free(a->done, a->flows_max + BL_WANT_PAD, sizeof(*a->done));
	table_free(a->later, a->flows_max + BL_WANT_PAD, sizeof(*a->later));
	table_free(a->takes, (size_t)(a->flows_max + BL_WANT_PAD) * a->words, sizeof(*a->takes));
	table_free(a->parts, a->flows_max + BL_WANT_PAD, sizeof(*a->parts));
	table_free(a->own_out, a->outmax, sizeof(*a->out));
	free(a->cap);
	free(a->rack_of);
	free(a->pod_of);
	free(a->backlog);
	free(a->active);
	free(a->share);
	free(a->recip);
	free(a);
}

static const struct bl_alloc_ops *choose(enum bl_alloc_isa isa)
{
#ifdef __x86_64__
	bool bmi2 = __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
	bool avx512 = bmi2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vpopcntdq");

	if ((isa == BL_ISA_BEST || isa == BL_ISA_AVX512) && avx512)
		return &bl_alloc_avx512;
	if ((isa == BL_ISA_BEST || isa == BL_ISA_BMI2) && bmi2)
		return &bl_alloc_bmi2;
#endif
	return isa == BL_ISA_BEST || isa == BL_ISA_PLAIN ? &bl_alloc_plain : NULL;
}

static const char *check(const struct bl_alloc_cfg *c)
{
	uint32_t i;

	if (!c->endpoints || c->endpoints > BL_ALLOC_ENDPOINTS_MAX)
		return "an allocator has 1 to 4096 endpoints";
	if ((unsigned int)c->policy >= BL_ALLOC_NPOLICIES)
		return "no such policy";
	if (c->window_slots && (c->window_slots < BL_ALLOC_WINDOW_MIN || c->window_slots > 512 || c->window_slots & (c->window_slots - 1)))
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
		if ((c->src_cap && c->src_cap[i] > BL_ALLOC_CAP_MAX) || (c->dst_cap && c->dst_cap[i] > BL_ALLOC_CAP_MAX))
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

static bool merges(enum bl_alloc_policy p)
{
	return p == BL_ALLOC_FAIR || p == BL_ALLOC_WEIGHTED || p == BL_ALLOC_FCT;
}

static void fill_word(struct bl_alloc *a, uint32_t port, uint32_t j)
{
	__u64 *f = &a->free[(size_t)port * a->words + j];

	if (a->cap[port] <= 1)
		*f = a->cap[port] ? ~0ULL : 0;
	else
		*f = bl_planes_fill(&a->plane[(size_t)port * a->planes * a->words + j], a->planes, a->words, a->cap[port]);
}

/* the capacities, and what follows from them: plain or not, planes, the most grants that a run can have */
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
	/* each packet needs a mask and a head at most; what is written beyond the end and does not count: a head and a window */
	a->outmax = 2 * (size_t)bl_min64(in, out) * a->words * BL_WORD_SLOTS + 1 + 2 * BL_WINDOW_WORDS;
}

static uint16_t *copy16(const uint16_t *from, uint32_t n)
{
	uint16_t *p = malloc((n ? n : 1) * sizeof(*p));

	if (p && n)
		memcpy(p, from, n * sizeof(*p));
	return p;
}

struct bl_alloc *bl_alloc_new(const struct bl_alloc_cfg *cfg, const char **why)
{
	const char *wrong = check(cfg);
	struct bl_alloc *a;
	uint64_t pairs;
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
	pairs = (uint64_t)a->n * a->n;
	a->flows_max = cfg->flows_max ? cfg->flows_max : 1u << 20;
	if (merges(a->policy) && a->flows_max > pairs)
		a->flows_max = (uint32_t)pairs;
	a->ops = choose(cfg->isa);
	if (!a->ops) {
		*why = "this CPU does not have the instructions asked for";
		bl_alloc_free(a);
		return NULL;
	}
	a->cap = calloc(a->ports, sizeof(*a->cap));
	a->backlog = calloc(a->ports + BL_WANT_PAD, sizeof(*a->backlog));
	a->active = calloc(a->ports + BL_WANT_PAD, sizeof(*a->active));
	a->share = calloc(a->ports + BL_WANT_PAD, sizeof(*a->share));
	a->recip = calloc(BL_RECIP_MAX + 1, sizeof(*a->recip));
	a->rack_of = copy16(cfg->rack_of, a->racks ? a->n : 0);
	a->pod_of = copy16(cfg->pod_of, a->pods ? a->racks : 0);
	if (!a->cap || !a->backlog || !a->active || !a->share || !a->recip || !a->rack_of || !a->pod_of)
		goto fail;
	for (i = 1; i <= BL_RECIP_MAX; i++)
		a->recip[i] = ((1ULL << BL_RECIP_BITS) + i - 1) / i;
	set_caps(a, cfg);
	a->free = table(free_words(a), sizeof(*a->free));
	a->plane = table((size_t)a->ports * a->planes * a->words, sizeof(*a->plane));
	a->wait = table(a->flows_max + BL_WANT_PAD, sizeof(*a->wait));
	a->list = table(a->flows_max + BL_WANT_PAD, sizeof(*a->list));
	a->fresh = table(a->flows_max + BL_WANT_PAD, sizeof(*a->fresh));
	a->done = table(a->flows_max + BL_WANT_PAD, sizeof(*a->done));
	a->later = table(a->flows_max + BL_WANT_PAD, sizeof(*a->later));
	a->takes = table((size_t)(a->flows_max + BL_WANT_PAD) * a->words, sizeof(*a->takes));
	a->parts = table(a->flows_max + BL_WANT_PAD, sizeof(*a->parts));
	a->out = a->own_out = table(a->outmax, sizeof(*a->out));
	if (merges(a->policy))
		a->pair = table(pairs, sizeof(*a->pair));
	if (!a->free || !a->plane || !a->wait || !a->list || !a->fresh || !a->done || !a->later || !a->takes || !a->parts || !a->out || (merges(a->policy) && !a->pair))
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

/* a flow starts (or ends) to wait: the fair policies count it at all its ports */
static inline void count(struct bl_alloc *a, const struct bl_want *w, bool starts)
{
	const uint32_t weight = a->policy == BL_ALLOC_WEIGHTED ? w->key : 1, by = starts ? weight : -weight;
	uint32_t r, q;

	a->backlog[w->src] += by;
	a->backlog[a->n + w->dst] += by;
	if (!a->racks)
		return;
	r = a->rack_of[w->src];
	q = a->rack_of[w->dst];
	if (r == q)
		return;
	a->backlog[a->first_rack + r] += by;
	a->backlog[a->first_rack + a->racks + q] += by;
	if (!a->pods || a->pod_of[r] == a->pod_of[q])
		return;
	a->backlog[a->first_pod + a->pod_of[r]] += by;
	a->backlog[a->first_pod + a->pods + a->pod_of[q]] += by;
}

enum bl_alloc_err bl_alloc_demand(struct bl_alloc *a, uint32_t src, uint32_t dst, uint32_t mtus, uint64_t deadline)
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
			/* what is in its record is within the quota, too: a pair has twice the quota at the very most */
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
		weight = (*pair >> BL_PAIR_WEIGHT & 0x7f) + 1;
	} else if (a->nwait + a->nfresh >= a->flows_max) {
		err = BL_ALLOC_FULL;
		goto refuse;
	}
	a->fresh[a->nfresh++] = (struct bl_want){ .src = (uint16_t)src, .dst = (uint16_t)dst, .mtus = mtus,
						   .key = a->policy == BL_ALLOC_DEADLINE ? (uint32_t)deadline : weight };
	if (a->pair)
		count(a, &a->fresh[a->nfresh - 1], true);
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

/* Move the window so that its first step holds @now. Rows are shifted, not turned around: 512 rows cost 8 cycles a slot, indices modulo 8 one in every visit. */
static void move(struct bl_alloc *a, uint64_t now)
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

		a->open[j] = now <= first ? all : now - first >= a->span ? 0 : all << (now - first) & all;
	}
}

/* fewest first: one bucket each up to 127, then 16 for every doubling; equal ones stay in order */
static uint32_t bucket(uint32_t v)
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
		return bucket(w->mtus);
	/* deadlines count from the window's start; missed ones are the most urgent */
	behind = w->key - (uint32_t)a->base;
	return (int32_t)behind < 0 ? 0 : bucket(behind);
}

static void sort(struct bl_alloc *a)
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
 * What came for a pair while it waited belongs to what it asks for. Without this a pair whose record ends in the middle of its share would lose the rest of it:
 * the next pass shares out again, to everybody. A record stays within the quota.
 */
static void merge(struct bl_alloc *a)
{
	uint32_t *pair, more, room;
	size_t i;

	for (i = 0; i < a->nlist; i++) {
		struct bl_want *w = &a->list[i];

		if (i + 16 < a->nlist)
			__builtin_prefetch(&a->pair[(size_t)a->list[i + 16].src * a->n + a->list[i + 16].dst], 1);
		pair = &a->pair[(size_t)w->src * a->n + w->dst];
		more = *pair & BL_PAIR_MTUS;
		room = a->quota_mtus - w->mtus;
		more = more < room ? more : room;
		w->mtus += more;
		*pair -= more;
	}
}

/* Pairs that were served to the end: those that had more than the quota in all join the next pass, behind all others, since they were served last. */
static void settle(struct bl_alloc *a)
{
	size_t i;

	for (i = 0; i < a->ndone; i++) {
		struct bl_want w = a->done[i];
		uint32_t *pair = &a->pair[(size_t)w.src * a->n + w.dst];

		if (i + 16 < a->ndone)
			__builtin_prefetch(&a->pair[(size_t)a->done[i + 16].src * a->n + a->done[i + 16].dst], 1);
		w.mtus = *pair & BL_PAIR_MTUS;
		if (!w.mtus) {
			*pair &= ~BL_PAIR_LISTED;
			count(a, &w, false);
			continue;
		}
		*pair &= ~BL_PAIR_MTUS;
		a->list[a->nlist++] = w;
	}
	a->ndone = 0;
}

/* one run over a->list */
static void serve(struct bl_alloc *a, bool all)
{
	const bool shares = a->policy == BL_ALLOC_FAIR || a->policy == BL_ALLOC_WEIGHTED;
	uint32_t pass = 0;

	if (!a->nlist)
		return;
	if (a->pair && (all || a->policy == BL_ALLOC_FCT)) /* in holes that are left over nobody has a share */
		merge(a);
	if (a->policy == BL_ALLOC_FCT || a->policy == BL_ALLOC_DEADLINE)
		sort(a);
	/* of those who come into a window that is given already most find no slot: to know it is cheaper than to count them, share out and visit them (2026-11-21: docs/arbiter.md) */
	if (shares && !all)
		a->ops->filter(a);
	while (a->nlist) {
		a->st.passes++;
		if (shares)
			a->ops->shares(a, all && !pass);
		/* shares by weight leave fractions to everybody; after three rounds of them the odd slots go one by one */
		if (a->policy == BL_ALLOC_WEIGHTED && pass < 3) {
			a->ops->pass(a, BL_PASS_CREDIT);
		} else if (a->policy == BL_ALLOC_WEIGHTED) {
			uint32_t p;

			for (p = 0; p < a->ports; p++)
				a->share[p] = 1u << BL_SHARE_BITS;
			a->ops->pass(a, BL_PASS_FAIR);
		} else {
			a->ops->pass(a, shares ? BL_PASS_FAIR : BL_PASS_WHOLE);
		}
		pass++;
		if (a->pair)
			settle(a);
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
	move(a, now);
	a->outlen = 0;
	a->run_mtus = 0;
	if (a->moved) { /* all who wait, then who came */
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
	serve(a, moved);
	a->st.granted_mtus += a->run_mtus;
	return (struct bl_grants){ .base = a->base, .row = a->out, .len = a->outlen, .mtus = a->run_mtus };
}

void bl_alloc_row(struct bl_alloc *a, uint64_t *row)
{
	a->out = row ? row : a->own_out;
}

size_t bl_alloc_row_words(const struct bl_alloc *a)
{
	return a->outmax;
}

/* @to: also what waits to it */
static uint64_t forget(struct bl_alloc *a, struct bl_want *w, size_t *n, uint32_t endpoint, bool to)
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
			count(a, &w[i], false);
		}
	}
	*n = keep;
	return mtus;
}

uint64_t bl_alloc_forget(struct bl_alloc *a, uint32_t endpoint)
{
	uint64_t mtus = forget(a, a->wait, &a->nwait, endpoint, true) + forget(a, a->fresh, &a->nfresh, endpoint, true);

	a->st.forgotten_mtus += mtus;
	return mtus;
}

uint64_t bl_alloc_forget_from(struct bl_alloc *a, uint32_t src)
{
	uint64_t mtus = forget(a, a->wait, &a->nwait, src, false) + forget(a, a->fresh, &a->nfresh, src, false);

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
