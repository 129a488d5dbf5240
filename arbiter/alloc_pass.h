/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One visit to every flow of the list: the inner loop of the allocator, compiled once per instruction set. The including file defines PASS_LOWEST(w, k) and
 * PASS_OPS, and may define PASS_WHOLE8, a faster whole pass over windows of 8 words.
 *
 * No branch here depends on the data but the loop's own: at load 0.9 a flow is blocked, served or goes on with about equal chances, and a wrong guess costs
 * more (20 cycles) than writing the record to all three places and advancing one of them. Measured 2026-11-21, 256 endpoints, load 0.9: see docs/arbiter.md.
 */
#include "alloc_priv.h"

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
	const struct bl_grant g = { .src = (uint16_t)src, .dst = (uint16_t)dst, .words = (uint8_t)words, .mtus = (uint16_t)mtus };
	uint64_t v;

	__builtin_memcpy(&v, &g, sizeof(v));
	return v;
}

/* What a flow may have in this pass: its part of both ports, and one of the odd slots where both have some left. @extra: it got one of them. */
PASS_INLINE uint32_t fair_part(uint32_t *share, uint32_t s, uint32_t d, uint32_t mtus, uint64_t *extra)
{
	const uint32_t xs = share[s], xd = share[d];
	const uint32_t fs = xs >> BL_SHARE_BITS, fd = xd >> BL_SHARE_BITS;
	const uint32_t ms = fs + !!(xs & BL_SHARE_ODD), md = fd + !!(xd & BL_SHARE_ODD);
	uint32_t k = ms < md ? ms : md;

	k = k < mtus ? k : mtus;
	share[s] = xs - (k > fs);
	share[d] = xd - (k > fd);
	*extra = (uint64_t)((k > fs) | (k > fd)) << BL_PART_EXTRA;
	return k;
}

/*
 * First half of a pass: what everybody takes. Every address here depends on the list alone, so the CPU runs many visits side by side; when the
 * records were also sorted into their lists here, each visit waited for the lengths of these that the one before it left (30 cycles instead of 9).
 */
PASS_INLINE void take_plain(struct bl_alloc *a, const bool fair, const uint32_t words)
{
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
		uint32_t k = list[i].mtus, left;

		if (fair)
			k = fair_part(share, s, d, k, &extra);
		left = k;
		for (j = 0; j < words; j++) {
			/* a fair part is no more than the window, which spares the clamp where the window is one word */
			uint64_t take = fair && words == 1 ? PASS_LOWEST_FEW(fs[j] & fd[j] & open[j], left) : PASS_LOWEST(fs[j] & fd[j] & open[j], left);

			fs[j] ^= take;
			fd[j] ^= take;
			if (words > 1)
				left -= bl_count64(take);
			takes[i * words + j] = take;
		}
		parts[i] = k | extra;
	}
}

/* second half: grants, and who goes on, who is blocked, who is served */
PASS_INLINE void sort_plain(struct bl_alloc *a, const uint32_t words)
{
	struct bl_want *restrict list = a->list, *restrict wait = a->wait, *restrict done = a->done, *restrict later = a->later;
	const uint64_t *restrict takes = a->takes, *restrict parts = a->parts;
	uint64_t *restrict out = a->out;
	size_t i, len = a->nlist, stays = 0, nwait = a->nwait, ndone = a->ndone, nlater = 0, o = a->outlen;
	uint64_t mtus = 0;
	uint32_t j;

	for (i = 0; i < len; i++) {
		const uint64_t hi = want_hi(&list[i]);
		const uint32_t k = (uint32_t)parts[i], extra = (uint32_t)(parts[i] >> BL_PART_EXTRA);
		uint32_t got = 0, which = 0, masks = 0, goes_on, blocked, ready;
		struct bl_want rest = list[i];
		uint64_t lo;

		for (j = 0; j < words; j++) {
			uint64_t take = takes[i * words + j];

			got += bl_count64(take);
			out[o + 1 + masks] = take;
			masks += !!take;
			which |= (uint32_t)!!take << j;
		}
		out[o] = grant_head(rest.src, rest.dst, which, got);
		o += masks + !!masks;
		mtus += got;
		rest.mtus -= got;
		__builtin_memcpy(&lo, &rest, sizeof(lo));
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

PASS_INLINE void pass_plain(struct bl_alloc *a, const bool fair, const uint32_t words)
{
#ifdef PASS_WIDE
	if (words > 1) {
		PASS_WIDE(a, fair, words);
		return;
	}
#endif
	take_plain(a, fair, words);
#ifdef PASS_SORT1
	if (words == 1) {
		PASS_SORT1(a);
		return;
	}
#endif
	sort_plain(a, words);
}

/* any capacities, any tiers */
PASS_INLINE uint32_t ports_of(const struct bl_alloc *a, uint32_t src, uint32_t dst, uint32_t *port)
{
	uint32_t r, q;

	port[0] = src;
	port[1] = a->n + dst;
	if (!a->racks)
		return 2;
	r = a->rack_of[src];
	q = a->rack_of[dst];
	if (r == q)
		return 2;
	port[2] = a->first_rack + r;
	port[3] = a->first_rack + a->racks + q;
	if (!a->pods || a->pod_of[r] == a->pod_of[q])
		return 4;
	port[4] = a->first_pod + a->pod_of[r];
	port[5] = a->first_pod + a->pods + a->pod_of[q];
	return 6;
}

PASS_INLINE void port_take(struct bl_alloc *a, uint32_t port, uint32_t j, uint64_t take)
{
	__u64 *f = &a->free[(size_t)port * a->words + j];

	if (a->cap[port] == 1)
		*f ^= take;
	else
		*f = bl_planes_sub(&a->plane[(size_t)port * a->planes * a->words + j], a->planes, a->words, take);
}

static void pass_any(struct bl_alloc *a, enum bl_pass kind)
{
	size_t i, len = a->nlist, stays = 0, nlater = 0;
	uint32_t port[6], np, p, j;

	for (i = 0; i < len; i++) {
		struct bl_want w = a->list[i];
		uint32_t k = w.mtus, left, round, least = ~0u;
		bool extra = false;
		const uint32_t weight = a->policy == BL_ALLOC_WEIGHTED ? w.key : 1;
		bool more;

		np = ports_of(a, w.src, w.dst, port);
		for (p = 0; kind == BL_PASS_CREDIT && p < np; p++)
			least = a->share[port[p]] < least ? a->share[port[p]] : least;
		if (kind == BL_PASS_CREDIT) { /* shares are in 1/256 MTU by weight; who has no whole MTU to his credit waits for the next pass */
			w.credit += (int32_t)(least * weight);
			k = w.credit < 256 ? 0 : (uint32_t)w.credit >> 8;
			k = k < w.mtus ? k : w.mtus;
		} else if (kind == BL_PASS_FAIR) {
			for (p = 0; p < np; p++) {
				uint32_t x = a->share[port[p]], most = (x >> BL_SHARE_BITS) + !!(x & BL_SHARE_ODD);

				k = most < k ? most : k;
			}
			for (p = 0; p < np; p++) {
				bool odd = k > a->share[port[p]] >> BL_SHARE_BITS;

				a->share[port[p]] -= odd;
				extra |= odd;
			}
		}
		left = k;
		do { /* again: ends of several packets a slot may have the same slot once more */
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
		w.credit -= (int32_t)(k - left) * 256;
		a->run_mtus += k - left;
		if (!left && w.mtus) {
			if (extra)
				a->later[nlater++] = w;
			else
				a->list[stays++] = w;
			continue;
		}
		if (!w.mtus && w.credit > 0)
			w.credit &= 255; /* it asked for less than its share: the rest is the others', and its own if it asks for more in this run */
		w.credit = w.credit > BL_CREDIT_MAX ? BL_CREDIT_MAX : w.credit < -BL_CREDIT_MAX ? -BL_CREDIT_MAX : w.credit;
		if (left)
			a->wait[a->nwait++] = w;
		else
			a->done[a->ndone++] = w;
	}
	__builtin_memcpy(&a->list[stays], a->later, nlater * sizeof(*a->later));
	a->st.visits += len;
	a->nlist = stays + nlater;
}

static void pass(struct bl_alloc *a, enum bl_pass kind)
{
	if (!a->plain || kind == BL_PASS_CREDIT || a->policy == BL_ALLOC_WEIGHTED) {
		pass_any(a, kind);
		return;
	}
	switch (a->words * 2 + (kind == BL_PASS_FAIR)) {
	case 2: pass_plain(a, false, 1); break;
	case 3: pass_plain(a, true, 1); break;
	case 4: pass_plain(a, false, 2); break;
	case 5: pass_plain(a, true, 2); break;
	case 8: pass_plain(a, false, 4); break;
	case 9: pass_plain(a, true, 4); break;
#ifdef PASS_WHOLE8
	case 16: PASS_WHOLE8(a); break;
#else
	case 16: pass_plain(a, false, 8); break;
#endif
	case 17: pass_plain(a, true, 8); break;
	}
}

PASS_INLINE uint32_t port_units(const struct bl_alloc *a, uint32_t port)
{
	uint32_t j, units = 0;

	for (j = 0; j < a->words; j++)
		units += a->cap[port] == 1 ? bl_count64(a->free[(size_t)port * a->words + j] & a->open[j]) :
					     bl_planes_count(&a->plane[(size_t)port * a->planes * a->words + j], a->planes, a->words, a->open[j]);
	return units;
}

/* a port's word in @share: what each flow may have, and how many may have one more. With fewer slots than flows everybody may try for one. */
PASS_INLINE uint32_t share_word(const struct bl_alloc *a, uint32_t units, uint32_t flows)
{
	uint32_t q;

	if (units < flows)
		return 1u << BL_SHARE_BITS;
	if (flows > BL_RECIP_MAX)
		return units / flows << BL_SHARE_BITS;
	q = bl_fair_share(units, a->recip[flows]);
	units -= q * flows;
	q = q < BL_SHARE_MAX ? q : BL_SHARE_MAX;
	return q << BL_SHARE_BITS | units;
}

PASS_INLINE void share_plain(struct bl_alloc *a, uint32_t port, const uint32_t words, const uint32_t *active)
{
	uint32_t units = 0;

#ifdef PASS_UNITS
	units = PASS_UNITS(a, port, words);
#else
	uint32_t j;

	for (j = 0; j < words; j++)
		units += bl_count64(a->free[(size_t)port * words + j] & a->open[j]);
#endif
	a->share[port] = share_word(a, units, active[port]);
}

/* flows of the list at each port */
PASS_INLINE void count_plain(struct bl_alloc *a)
{
	const struct bl_want *restrict list = a->list;
	uint32_t *restrict active = a->active;
	const size_t len = a->nlist;
	const uint32_t n = a->n;
	size_t i;

	if (len >= n / 2)
		__builtin_memset(active, 0, 2 * n * sizeof(*active));
	for (i = 0; len < n / 2 && i < len; i++)
		active[list[i].src] = active[n + list[i].dst] = 0;
	for (i = 0; i < len; i++) {
		active[list[i].src]++;
		active[n + list[i].dst]++;
	}
}

PASS_INLINE void shares_plain(struct bl_alloc *a, const uint32_t words, bool all)
{
	const uint32_t n = a->n;
	size_t i;
	uint32_t p;

	if (!all)
		count_plain(a);
	if (a->nlist >= n / 2) {
#ifdef PASS_SHARES1
		if (words == 1) {
			PASS_SHARES1(a, all ? a->backlog : a->active);
			return;
		}
		PASS_SHARES_WIDE(a, words, all ? a->backlog : a->active);
		return;
#endif
		for (p = 0; p < 2 * n; p++)
			share_plain(a, p, words, all ? a->backlog : a->active);
		return;
	}
	/* few flows, many ports: only theirs */
	for (i = 0; i < a->nlist; i++) {
		share_plain(a, a->list[i].src, words, all ? a->backlog : a->active);
		share_plain(a, n + a->list[i].dst, words, all ? a->backlog : a->active);
	}
}

static void shares(struct bl_alloc *a, bool all)
{
	const bool weighted = a->policy == BL_ALLOC_WEIGHTED;
	const uint32_t *active = all ? a->backlog : a->active;
	uint32_t port[6], np, p;
	size_t i;

	if (a->plain && !weighted) {
		switch (a->words) {
		case 1: shares_plain(a, 1, all); return;
		case 2: shares_plain(a, 2, all); return;
		case 4: shares_plain(a, 4, all); return;
		case 8: shares_plain(a, 8, all); return;
		}
	}
	if (!all)
		__builtin_memset(a->active, 0, a->ports * sizeof(*a->active));
	for (i = 0; !all && i < a->nlist; i++) {
		np = ports_of(a, a->list[i].src, a->list[i].dst, port);
		for (p = 0; p < np; p++)
			a->active[port[p]] += weighted ? a->list[i].key : 1;
	}
	for (p = 0; p < a->ports; p++) {
		if (!active[p])
			continue;
		if (weighted)
			a->share[p] = (uint32_t)(((uint64_t)port_units(a, p) << 8) / active[p]);
		else
			a->share[p] = share_word(a, port_units(a, p), active[p]);
	}
}

/* Those of the list that have no slot left go to the wait list, in order, before anything is counted for them: 70 % after the first pass at load 0.9. */
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
		const __u64 *fs = a->free + (size_t)list[i].src * words, *fd = a->free + (size_t)(n + list[i].dst) * words;
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

static void filter(struct bl_alloc *a)
{
	switch (a->plain ? a->words : 0) {
#ifdef PASS_FILTER1
	case 1: PASS_FILTER1(a); break;
#else
	case 1: filter_plain(a, 1); break;
#endif
	case 2: filter_plain(a, 2); break;
	case 4: filter_plain(a, 4); break;
	case 8: filter_plain(a, 8); break;
	}
}

const struct bl_alloc_ops PASS_OPS = { .name = PASS_NAME, .shares = shares, .pass = pass, .filter = filter };
