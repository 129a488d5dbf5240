/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One visit to every flow of the list: the inner loop of the allocator, compiled once per
 * instruction set. The including file defines PASS_OPS and PASS_NAME, PASS_LOWEST(w, k) (the lowest
 * k ones of a word, or all if there are fewer) and PASS_LOWEST_FEW(w, k) (the same for k up to 64).
 * It may also replace parts of the loop by faster ones: PASS_WHOLE8, PASS_SORT1 and so on. Without
 * any of these the loop is in plain C, as alloc_plain.c uses it.
 *
 * No branch here depends on the data except the loop's own: at load 0.9 a flow is blocked, served
 * or goes on with about equal chances, and a mispredicted branch costs more (20 cycles) than to
 * write the record to all three places and advance one of them. Measured 2026-11-21, 256 endpoints,
 * load 0.9: see docs/arbiter.md.
 */
#ifndef BARLINE_ARBITER_ALLOC_PASS_H
#define BARLINE_ARBITER_ALLOC_PASS_H

#include "arbiter/alloc/alloc_priv.h"

#ifndef PASS_OPS
#define PASS_LOWEST(w, k)     bl_lowest64(w, k)
#define PASS_LOWEST_FEW(w, k) bl_lowest64(w, k)
#define PASS_OPS              bl_alloc_plain
#define PASS_NAME             "plain"
#endif

#define PASS_INLINE static inline __attribute__((always_inline))

PASS_INLINE uint64_t want_lo(const struct bl_want *w)
{
	uint64_t v;

	__builtin_memcpy(&v, w, sizeof(v));
	return v;
}

PASS_INLINE uint64_t want_hi(const struct bl_want *w)
{
	uint64_t v;

	__builtin_memcpy(&v, (const char *)w + sizeof(v), sizeof(v));
	return v;
}

PASS_INLINE void want_put(struct bl_want *w, uint64_t lo, uint64_t hi)
{
	__builtin_memcpy(w, &lo, sizeof(lo));
	__builtin_memcpy((char *)w + sizeof(lo), &hi, sizeof(hi));
}

PASS_INLINE uint64_t grant_head(uint32_t src, uint32_t dst, uint32_t words, uint32_t mtus)
{
	const struct bl_grant g = { .src = (uint16_t)src,
				    .dst = (uint16_t)dst,
				    .words = (uint8_t)words,
				    .mtus = (uint16_t)mtus };
	uint64_t v;

	__builtin_memcpy(&v, &g, sizeof(v));
	return v;
}

/*
 * What a flow may have in this pass: as much as lifts it to the level of the lower one of its
 * ports, and one of the odd slots where both have some left. @had: its account. @extra: set to the
 * bit BL_PART_EXTRA if it got one of the odd slots, else to 0.
 */
PASS_INLINE uint32_t fair_part(uint32_t *share, uint32_t s, uint32_t d, uint32_t mtus, uint32_t had,
			       uint64_t *extra)
{
	const uint32_t xs = share[s], xd = share[d];
	const uint32_t fs = xs >> BL_SHARE_BITS, fd = xd >> BL_SHARE_BITS;
	const uint32_t ms = fs + !!(xs & BL_SHARE_ODD), md = fd + !!(xd & BL_SHARE_ODD);
	uint32_t k = ms < md ? ms : md, some;

	k = k > had ? k - had : 0;
	k = k < mtus ? k : mtus;
	some = !!k;
	share[s] = xs - (some & (had + k > fs));
	share[d] = xd - (some & (had + k > fd));
	*extra = (uint64_t)(some & ((had + k > fs) | (had + k > fd))) << BL_PART_EXTRA;
	return k;
}

/*
 * First half of a pass: the slots that each flow takes. Every address here depends on the list
 * alone, so the CPU runs many visits side by side. When the records were also sorted into their
 * lists here, each visit waited for the lengths of the lists that the one before it left (30 cycles
 * instead of 9).
 */
PASS_INLINE void take_plain(struct bl_alloc *a, const enum bl_pass kind, const uint32_t words)
{
	const bool fair = kind == BL_PASS_FAIR, aim = kind == BL_PASS_AIM;
	const uint32_t *restrict aims = a->due.aim;
	const struct bl_want *restrict list = a->list;
	uint32_t *restrict share = a->share;
	__u64 *restrict freew = a->free;
	uint64_t *restrict takes = a->takes, *restrict parts = a->parts;
	const size_t len = a->nlist;
	const uint32_t n = a->n;
	__u64 open[BL_WINDOW_WORDS];
	uint32_t j;
	size_t i;

	for (j = 0; j < words; j++)
		open[j] = a->open[j];
	for (i = 0; i < len; i++) {
		const uint32_t s = list[i].src, d = n + list[i].dst;
		__u64 *fs = freew + (size_t)s * words, *fd = freew + (size_t)d * words;
		uint64_t extra = 0;
		uint32_t k = aim ? aims[i] : list[i].mtus, left, got = 0;

		if (fair)
			k = fair_part(share, s, d, k, (uint32_t)list[i].account, &extra);
		left = k;
		for (j = 0; j < words; j++) {
			/*
			 * A part is no more than the window, which spares the clamp where the
			 * window is one word.
			 */
			const uint64_t both = fs[j] & fd[j] & open[j];
			const uint64_t take = (fair || aim) && words == 1
						      ? PASS_LOWEST_FEW(both, left)
						      : PASS_LOWEST(both, left);

			fs[j] ^= take;
			fd[j] ^= take;
			if (words > 1)
				left -= bl_count64(take);
			if (aim)
				got += bl_count64(take);
			takes[i * words + j] = take;
		}
		parts[i] = aim ? got : k | extra; /* a flow that lacks some of its aim goes on */
	}
}

/*
 * Second half of a pass: the grants, and each record into one of the lists: the flow goes on, is
 * blocked, or has all it wants.
 */
PASS_INLINE void sort_plain(struct bl_alloc *a, const uint32_t words)
{
	struct bl_want *restrict list = a->list, *restrict wait = a->wait, *restrict done = a->done,
				 *restrict later = a->later;
	const uint64_t *restrict takes = a->takes, *restrict parts = a->parts;
	uint64_t *restrict out = a->out;
	size_t i, len = a->nlist, stays = 0, nwait = a->nwait, ndone = a->ndone, nlater = 0,
		  o = a->outlen;
	uint64_t mtus = 0;
	uint32_t j;

	for (i = 0; i < len; i++) {
		const uint32_t k = (uint32_t)parts[i],
			       extra = (uint32_t)(parts[i] >> BL_PART_EXTRA);
		uint32_t got = 0, which = 0, masks = 0, goes_on, blocked, ready;
		struct bl_want rest = list[i];
		uint64_t lo, hi;

		for (j = 0; j < words; j++) {
			uint64_t take = takes[i * words + j];

			got += bl_count64(take);
			out[o + 1 + masks] = take;
			masks += !!take;
			which |= (uint32_t) !!take << j;
		}
		out[o] = grant_head(rest.src, rest.dst, which, got);
		o += masks + !!masks;
		mtus += got;
		rest.mtus -= got;
		rest.account += (int32_t)got;
		lo = want_lo(&rest);
		hi = want_hi(&rest);
		blocked = got != k;
		ready = !rest.mtus;
		goes_on = !blocked & !ready;
		want_put(&list[stays], lo, hi);
		want_put(&later[nlater], lo, hi);
		want_put(&wait[nwait], lo, hi);
		want_put(&done[ndone], lo, hi);
		stays += goes_on & !extra;
		nlater += goes_on & extra;
		nwait += blocked;
		ndone += ready;
	}
	__builtin_memcpy(&list[stays], later, nlater * sizeof(*later));
	a->st.visits += len;
	a->nlist = stays + nlater;
	a->nwait = nwait;
	a->ndone = ndone;
	a->outlen = o;
	a->run_mtus += mtus;
}

PASS_INLINE void take_words(struct bl_alloc *a, const enum bl_pass kind, const uint32_t words)
{
#ifdef PASS_TAKE_WIDE
	if (words > 1) {
		PASS_TAKE_WIDE(a, kind, words);
		return;
	}
#endif
	take_plain(a, kind, words);
}

PASS_INLINE void sort_words(struct bl_alloc *a, const uint32_t words)
{
#ifdef PASS_SORT1
	if (words == 1)
		PASS_SORT1(a);
	else
		PASS_SORT_WIDE(a, words);
#else
	sort_plain(a, words);
#endif
}

PASS_INLINE void pass_plain(struct bl_alloc *a, const enum bl_pass kind, const uint32_t words)
{
	take_words(a, kind, words);
	sort_words(a, words);
}

/* BL_PASS_AIM in two halves, since chains come between them. */
static void take_aim(struct bl_alloc *a)
{
	switch (a->words) {
	case 1:
		take_words(a, BL_PASS_AIM, 1);
		break;
	case 2:
		take_words(a, BL_PASS_AIM, 2);
		break;
	case 4:
		take_words(a, BL_PASS_AIM, 4);
		break;
	case 8:
		take_words(a, BL_PASS_AIM, 8);
		break;
	}
}

static void sort_aim(struct bl_alloc *a)
{
	switch (a->words) {
	case 1:
		sort_words(a, 1);
		break;
	case 2:
		sort_words(a, 2);
		break;
	case 4:
		sort_words(a, 4);
		break;
	case 8:
		sort_words(a, 8);
		break;
	}
}

/* Takes slots of one word from a port of any capacity. */
PASS_INLINE void port_take(struct bl_alloc *a, uint32_t port, uint32_t j, uint64_t take)
{
	__u64 *f = &a->free[(size_t)port * a->words + j];

	if (a->cap[port] == 1)
		*f ^= take;
	else
		*f = bl_planes_sub(&a->plane[(size_t)port * a->planes * a->words + j], a->planes,
				   a->words, take);
}

static void pass_any(struct bl_alloc *a, enum bl_pass kind)
{
	size_t i, len = a->nlist, stays = 0, nlater = 0;
	uint32_t port[BL_PORTS_MAX], np, p, j;

	for (i = 0; i < len; i++) {
		struct bl_want w = a->list[i];
		uint32_t k = w.mtus, left, round;
		bool extra = false;
		bool more;

		np = ports_of(a, w.src, w.dst, port);
		if (kind == BL_PASS_AIM) {
			k = a->due.aim[i];
		} else if (kind == BL_PASS_FAIR) {
			for (p = 0; p < np; p++) {
				uint32_t x = a->share[port[p]],
					 most = (x >> BL_SHARE_BITS) + !!(x & BL_SHARE_ODD);

				most = most > (uint32_t)w.account ? most - (uint32_t)w.account : 0;
				k = most < k ? most : k;
			}
			for (p = 0; p < np; p++) {
				bool odd = k && k + (uint32_t)w.account > a->share[port[p]] >>
							BL_SHARE_BITS;

				a->share[port[p]] -= odd;
				extra |= odd;
			}
		}
		left = k;
		do { /* again: ends with several packets a slot may take the same slot once more */
			uint64_t mask[BL_WINDOW_WORDS];
			uint32_t which = 0, masks = 0;

			round = 0;
			for (j = 0; j < a->words && round < left; j++) {
				uint64_t m = a->open[j];

				for (p = 0; p < np; p++)
					m &= a->free[(size_t)port[p] * a->words + j];
				m = PASS_LOWEST(m, left - round);
				if (!m)
					continue;
				for (p = 0; p < np; p++)
					port_take(a, port[p], j, m);
				round += bl_count64(m);
				mask[masks++] = m;
				which |= 1u << j;
			}
			if (!round)
				break;
			a->out[a->outlen] = grant_head(w.src, w.dst, which, round);
			for (j = 0; j < masks; j++)
				a->out[a->outlen + 1 + j] = mask[j];
			a->outlen += masks + 1;
			left -= round;
			more = left != 0;
		} while (more);
		w.mtus -= k - left;
		w.account += (int32_t)(k - left);
		a->run_mtus += k - left;
		if (!left && w.mtus) {
			if (extra)
				a->later[nlater++] = w;
			else
				a->list[stays++] = w;
			continue;
		}
		if (left)
			a->wait[a->nwait++] = w;
		else
			a->done[a->ndone++] = w;
	}
	__builtin_memcpy(&a->list[stays], a->later, nlater * sizeof(*a->later));
	a->st.visits += len;
	a->nlist = stays + nlater;
}

static void pass_list(struct bl_alloc *a, enum bl_pass kind)
{
	if (!a->plain) {
		pass_any(a, kind);
		return;
	}
	switch (a->words * 2 + (kind == BL_PASS_FAIR)) {
	case 2:
		pass_plain(a, BL_PASS_WHOLE, 1);
		break;
	case 3:
		pass_plain(a, BL_PASS_FAIR, 1);
		break;
	case 4:
		pass_plain(a, BL_PASS_WHOLE, 2);
		break;
	case 5:
		pass_plain(a, BL_PASS_FAIR, 2);
		break;
	case 8:
		pass_plain(a, BL_PASS_WHOLE, 4);
		break;
	case 9:
		pass_plain(a, BL_PASS_FAIR, 4);
		break;
#ifdef PASS_WHOLE8
	case 16:
		PASS_WHOLE8(a);
		break;
#else
	case 16:
		pass_plain(a, BL_PASS_WHOLE, 8);
		break;
#endif
	case 17:
		pass_plain(a, BL_PASS_FAIR, 8);
		break;
	}
}

PASS_INLINE uint32_t port_units(const struct bl_alloc *a, uint32_t port)
{
	const __u64 *plane = &a->plane[(size_t)port * a->planes * a->words];
	const __u64 *free = &a->free[(size_t)port * a->words];
	uint32_t j, units = 0;

	for (j = 0; j < a->words; j++)
		units += a->cap[port] == 1
				 ? bl_count64(free[j] & a->open[j])
				 : bl_planes_count(&plane[j], a->planes, a->words, a->open[j]);
	return units;
}

/*
 * The word of a port in @share: the level that its flows reach together, which is what is free and
 * what they have had, divided by their number; and how many of them may have one more.
 */
PASS_INLINE uint32_t share_word(const struct bl_alloc *a, uint32_t units, uint32_t sum,
				uint32_t flows)
{
	const uint32_t all = units + sum;
	uint32_t q, odd;

	if (flows > BL_RECIP_MAX) {
		q = all / flows;
	} else {
		q = (uint32_t)(all * a->recip[flows] >> BL_RECIP_BITS);
		q -= (uint64_t)q * flows > all; /* the reciprocal is rounded up */
	}
	odd = all - q * flows;
	q = q < BL_SHARE_MAX ? q : BL_SHARE_MAX;
	return q << BL_SHARE_BITS | (odd < BL_SHARE_ODD ? odd : BL_SHARE_ODD);
}

PASS_INLINE void share_put(struct bl_alloc *a, uint32_t port, uint32_t units, uint32_t flows)
{
	if (!flows)
		return;
	a->share[port] = share_word(a, units, a->sum[port], flows);
}

PASS_INLINE void share_plain(struct bl_alloc *a, uint32_t port, const uint32_t words,
			     const uint32_t *active)
{
	uint32_t units = 0;

#ifdef PASS_UNITS
	units = PASS_UNITS(a, port, words);
#else
	uint32_t j;

	for (j = 0; j < words; j++)
		units += bl_count64(a->free[(size_t)port * words + j] & a->open[j]);
#endif
	share_put(a, port, units, active[port]);
}

/* Counts the flows of the list at each port, and adds up their accounts. */
PASS_INLINE void count_plain(struct bl_alloc *a)
{
	const struct bl_want *restrict list = a->list;
	uint32_t *restrict active = a->active, *restrict sum = a->sum;
	const size_t len = a->nlist;
	const uint32_t n = a->n;
	size_t i;

	if (len >= n / 2) {
		__builtin_memset(active, 0, 2 * n * sizeof(*active));
		__builtin_memset(sum, 0, 2 * n * sizeof(*sum));
	}
	for (i = 0; len < n / 2 && i < len; i++) {
		active[list[i].src] = active[n + list[i].dst] = 0;
		sum[list[i].src] = sum[n + list[i].dst] = 0;
	}
	for (i = 0; i < len; i++) {
		active[list[i].src]++;
		active[n + list[i].dst]++;
		sum[list[i].src] += (uint32_t)list[i].account;
		sum[n + list[i].dst] += (uint32_t)list[i].account;
	}
}

PASS_INLINE void shares_plain(struct bl_alloc *a, const uint32_t words)
{
	const uint32_t n = a->n;
	size_t i;
	uint32_t p;

	count_plain(a);
	if (a->nlist >= n / 2) {
#ifdef PASS_SHARES1
		if (words == 1) {
			PASS_SHARES1(a, a->active);
			return;
		}
		PASS_SHARES_WIDE(a, words, a->active);
		return;
#endif
		for (p = 0; p < 2 * n; p++)
			share_plain(a, p, words, a->active);
		return;
	}
	/* few flows, many ports: only the ports of these flows */
	for (i = 0; i < a->nlist; i++) {
		share_plain(a, a->list[i].src, words, a->active);
		share_plain(a, n + a->list[i].dst, words, a->active);
	}
}

static void set_shares(struct bl_alloc *a)
{
	const uint32_t *active = a->active;
	uint32_t port[BL_PORTS_MAX], np, p;
	size_t i;

	if (a->plain) {
		switch (a->words) {
		case 1:
			shares_plain(a, 1);
			return;
		case 2:
			shares_plain(a, 2);
			return;
		case 4:
			shares_plain(a, 4);
			return;
		case 8:
			shares_plain(a, 8);
			return;
		}
	}
	__builtin_memset(a->active, 0, a->ports * sizeof(*a->active));
	__builtin_memset(a->sum, 0, a->ports * sizeof(*a->sum));
	for (i = 0; i < a->nlist; i++) {
		np = ports_of(a, a->list[i].src, a->list[i].dst, port);
		for (p = 0; p < np; p++) {
			a->active[port[p]]++;
			a->sum[port[p]] += (uint32_t)a->list[i].account;
		}
	}
	for (p = 0; p < a->ports; p++) {
		if (active[p])
			share_put(a, p, port_units(a, p), active[p]);
	}
}

/*
 * Moves the flows of the list that have no slot left to the wait list, in order, before anything is
 * counted for them: 70 % of the flows after the first pass at load 0.9.
 */
PASS_INLINE void filter_plain(struct bl_alloc *a, const uint32_t words)
{
	struct bl_want *restrict list = a->list, *restrict wait = a->wait;
	size_t i, len = a->nlist, stays = 0, nwait = a->nwait;
	const uint32_t n = a->n;

	for (i = 0; i < len; i++) {
		const uint64_t lo = want_lo(&list[i]), hi = want_hi(&list[i]);
		uint64_t any = 0;
#ifdef PASS_ANY
		any = PASS_ANY(a, list[i].src, n + list[i].dst, words);
#else
		const __u64 *fs = a->free + (size_t)list[i].src * words,
			    *fd = a->free + (size_t)(n + list[i].dst) * words;
		uint32_t j;

		for (j = 0; j < words; j++)
			any |= fs[j] & fd[j] & a->open[j];
#endif
		want_put(&list[stays], lo, hi);
		want_put(&wait[nwait], lo, hi);
		stays += !!any;
		nwait += !any;
	}
	a->nlist = stays;
	a->nwait = nwait;
}

/*
 * The same for any capacities and tiers. A flow that has no slot left would stay at its level, pass
 * after pass.
 */
static void filter_any(struct bl_alloc *a)
{
	size_t i, len = a->nlist, stays = 0;
	uint32_t port[BL_PORTS_MAX], np, p, j;

	for (i = 0; i < len; i++) {
		const struct bl_want w = a->list[i];
		uint64_t any = 0;

		np = ports_of(a, w.src, w.dst, port);
		for (j = 0; j < a->words && !any; j++) {
			any = a->open[j];
			for (p = 0; p < np; p++)
				any &= a->free[(size_t)port[p] * a->words + j];
		}
		if (any)
			a->list[stays++] = w;
		else
			a->wait[a->nwait++] = w;
	}
	a->nlist = stays;
}

static void filter_list(struct bl_alloc *a)
{
	switch (a->plain ? a->words : 0) {
	case 0:
		filter_any(a);
		break;
#ifdef PASS_FILTER1
	case 1:
		PASS_FILTER1(a);
		break;
#else
	case 1:
		filter_plain(a, 1);
		break;
#endif
	case 2:
		filter_plain(a, 2);
		break;
	case 4:
		filter_plain(a, 4);
		break;
	case 8:
		filter_plain(a, 8);
		break;
	}
}

const struct bl_alloc_ops PASS_OPS = { .name = PASS_NAME,
				       .shares = set_shares,
				       .pass = pass_list,
				       .take = take_aim,
				       .sort = sort_aim,
				       .filter = filter_list };

#endif
