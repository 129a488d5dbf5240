/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each flow of the list is due in this window: exact max-min fair rates, with weights, demands
 * and any ports, and whole MTUs from them. No slot is looked at, so nothing here depends on which
 * slots happen to be free at both ends of a flow.
 *
 * Progressive filling. Each port has a level: what is left of the port and what its flows have had,
 * for each unit of their weights. A flow is lifted to the lowest level of its ports; where that
 * fills a port, the flows of that port stop, and the others go on. Flows that have had more than
 * their level, because others could not use it, wait for the others: what remains of a port is
 * shared by those. A port that has room for all that its flows still want limits no flow, so in a
 * window that is not full most flows get what they want in the first lift.
 *
 * Example, a window of 64: 0>1, 0>2, 3>2, 4>2, and senders 3 and 4 have three more flows each. The
 * levels of 3 and 4 are 16, so 3>2 and 4>2 get 16, 2 has 32 left for 0>2, and 0 has 32 for each of
 * its flows.
 *
 * Fractions of an MTU stay in the accounts: a flow that was due 12.8 and got 12 is 0.8 ahead of the
 * others in the next window.
 */
#include <string.h>

#include "arbiter/alloc/alloc_priv.h"

#define UNIT       (1LL << 20) /* one MTU */
#define PASSES_MAX 64u

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

#define DUE_INLINE static inline __attribute__((always_inline))

DUE_INLINE uint32_t weight_of(const struct bl_want *w)
{
	return w->key & BL_KEY_WEIGHT_MAX;
}

/* The account of a flow, in 1/UNIT MTU. */
DUE_INLINE int64_t had_before(const struct bl_want *w)
{
	return (w->account - BL_ACCOUNT_ZERO) * UNIT +
	       (w->key >> BL_KEY_PART & BL_KEY_PART_MAX) * (UNIT / (BL_KEY_PART_MAX + 1));
}

DUE_INLINE int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * The lowest value in @of, by port, among the ports of a flow. @tiers, a constant: it may have more
 * ports than @s and @d.
 */
DUE_INLINE int64_t lowest_of_ports(const struct bl_alloc *a, const bool tiers, uint32_t s,
				   uint32_t d, const int64_t *of)
{
	uint32_t port[BL_PORTS_MAX], np, p;
	int64_t low = min_i64(of[s], of[d]);

	if (!tiers)
		return low;
	np = ports_of(a, s, d - a->n, port);
	for (p = 2; p < np; p++)
		low = min_i64(of[port[p]], low);
	return low;
}

DUE_INLINE void add_to_ports(const struct bl_alloc *a, const bool tiers, uint32_t s, uint32_t d,
			     int64_t *to, int64_t v)
{
	uint32_t port[BL_PORTS_MAX], np, p;

	to[s] += v;
	to[d] += v;
	if (!tiers)
		return;
	np = ports_of(a, s, d - a->n, port);
	for (p = 2; p < np; p++)
		to[port[p]] += v;
}

/*
 * Takes a flow that has what it will have out of the sums of its ports: the others share the ports.
 */
DUE_INLINE void stop_flow(struct bl_alloc *a, const bool tiers, const struct bl_due_flow *f)
{
	struct bl_due *d = &a->due;

	d->had[f->at] = f->had;
	add_to_ports(a, tiers, f->s, f->d, d->weight, -(int64_t)f->weight);
	add_to_ports(a, tiers, f->s, f->d, d->sum, -f->had);
	add_to_ports(a, tiers, f->s, f->d, d->want, -f->most);
}

/* Stops the @n flows in @gone. */
DUE_INLINE void stop_gone(struct bl_alloc *a, const bool tiers, size_t n)
{
	size_t k;

	for (k = 0; k < n; k++)
		stop_flow(a, tiers, &a->due.gone[k]);
}

DUE_INLINE uint8_t any_port_full(const struct bl_alloc *a, const bool tiers, uint32_t s, uint32_t d)
{
	const uint8_t *is_full = a->due.is_full;
	uint32_t port[BL_PORTS_MAX], np, p;
	uint8_t any = is_full[s] | is_full[d];

	if (!tiers)
		return any;
	np = ports_of(a, s, d - a->n, port);
	for (p = 2; p < np; p++)
		any |= is_full[port[p]];
	return any;
}

/*
 * Stops the flows of ports that have become full. Returns how many flows go on. No branch here and
 * in lift_flows() depends on the data, since which flows stop cannot be predicted.
 */
DUE_INLINE size_t stop_full(struct bl_alloc *a, const bool tiers, size_t going)
{
	struct bl_due_flow *restrict flow = a->due.flow, *restrict gone = a->due.gone;
	struct bl_due *d = &a->due;
	size_t k, stays = 0, n = 0;
	uint32_t i, left = 0;

	for (i = 0; i < d->nports; i++) {
		const uint32_t p = d->port[i];

		d->port[left] = (uint16_t)p;
		d->is_full[p] = d->room[p] < d->full;
		left += d->room[p] >= d->full;
	}
	if (left == d->nports)
		return going;
	d->nports = left;
	for (k = 0; k < going; k++) {
		const struct bl_due_flow f = flow[k];
		const uint8_t full = any_port_full(a, tiers, f.s, f.d);

		flow[stays] = f;
		gone[n] = f;
		stays += !full;
		n += full;
	}
	stop_gone(a, tiers, n);
	return stays;
}

/*
 * Sets the level of each port. A port that has as much as all its flows together want limits no
 * flow. All values are below 2^53; what rounding adds to a level is far less than an MTU for all
 * flows of the port together.
 */
DUE_INLINE void set_levels(struct bl_alloc *a)
{
	struct bl_due *d = &a->due;
	uint32_t i, n = 0;

	for (i = 0; i < d->nports; i++) {
		const uint32_t p = d->port[i];
		const int64_t sum = d->sum[p];

		d->port[n] = (uint16_t)p;
		if (!d->weight[p])
			continue;
		n += d->want[p] > sum;
		d->level[p] = d->want[p] > sum ? (int64_t)((double)sum / (double)d->weight[p])
					       : BL_DUE_ENOUGH;
	}
	d->nports = n;
}

/*
 * One lift of all flows that go on; those that then have all they want stop. @all: set to what the
 * flows got together. Returns how many go on.
 */
DUE_INLINE size_t lift_flows(struct bl_alloc *a, const bool tiers, size_t going, int64_t *all)
{
	struct bl_due_flow *restrict flow = a->due.flow, *restrict gone = a->due.gone;
	const int64_t *restrict level = a->due.level;
	int64_t *restrict rooms = a->due.room;
	size_t k, stays = 0, n = 0;
	int64_t sum = 0;

	for (k = 0; k < going; k++) {
		struct bl_due_flow f = flow[k];
		/*
		 * Where other flows of a port have had more than its level, less is left for the
		 * rest.
		 */
		const int64_t room = f.had + lowest_of_ports(a, tiers, f.s, f.d, rooms),
			      had = f.had;
		int64_t to = f.weight * lowest_of_ports(a, tiers, f.s, f.d, level);

		to = min_i64(to, f.most);
		to = min_i64(to, room);
		to = to > had ? to : had;
		add_to_ports(a, tiers, f.s, f.d, rooms, had - to);
		sum += to - had;
		f.had = to;
		flow[stays] = f;
		gone[n] = f;
		stays += to < f.most;
		n += to >= f.most;
	}
	stop_gone(a, tiers, n);
	*all = sum;
	return stays;
}

DUE_INLINE void fill_ports(struct bl_alloc *a, const bool tiers)
{
	struct bl_due *d = &a->due;
	size_t going = a->nlist, k;
	uint32_t pass, p;
	int64_t all;

	memset(d->weight, 0, a->ports * sizeof(*d->weight));
	memset(d->is_full, 0, a->ports);
	memset(d->want, 0, a->ports * sizeof(*d->want));
	memcpy(d->sum, d->room, a->ports * sizeof(*d->sum));
	for (k = 0; k < going; k++) {
		const struct bl_want *w = &a->list[k];
		const int64_t had = had_before(w);
		const struct bl_due_flow f = { .at = (uint32_t)k,
					       .s = w->src,
					       .d = (uint16_t)(a->n + w->dst),
					       .weight = weight_of(w),
					       .had = had,
					       .most = had + w->mtus * UNIT };

		d->flow[k] = f;
		add_to_ports(a, tiers, f.s, f.d, d->weight, f.weight);
		add_to_ports(a, tiers, f.s, f.d, d->sum, f.had);
		add_to_ports(a, tiers, f.s, f.d, d->want, f.most);
	}
	d->nports = 0;
	for (p = 0; p < a->ports; p++) {
		d->port[d->nports] = (uint16_t)p;
		d->nports += d->weight[p] != 0;
	}
	for (pass = 0; pass < PASSES_MAX; pass++) {
		going = stop_full(a, tiers, going);
		if (!going)
			break;
		set_levels(a);
		a->st.lifts += going;
		going = lift_flows(a, tiers, going, &all);
		if (all < d->full)
			break;
	}
	for (k = 0; k < going; k++)
		d->had[d->flow[k].at] = d->flow[k].had;
}

/*
 * Rounds to whole MTUs. The room that this leaves at the ports goes MTU by MTU to flows that are
 * due a part of one, first where that part is at least a half.
 */
DUE_INLINE void round_to_mtus(struct bl_alloc *a, const bool tiers, uint32_t slots)
{
	struct bl_due *d = &a->due;
	uint32_t *restrict aim = d->aim, *restrict part = d->part;
	const struct bl_want *restrict list = a->list;
	int64_t *restrict had = d->had;
	size_t i, k, parts = 0;
	uint32_t p, round;

	for (p = 0; p < a->ports; p++)
		d->room[p] = slots * a->cap[p];
	for (i = 0; i < a->nlist; i++) {
		const uint64_t v = (uint64_t)(had[i] - had_before(&list[i]));

		aim[i] = (uint32_t)(v / UNIT);
		had[i] = v % UNIT;
		part[parts] = (uint32_t)i;
		parts += had[i] >= UNIT / 64;
		add_to_ports(a, tiers, list[i].src, a->n + list[i].dst, d->room, -(int64_t)aim[i]);
	}
	for (round = 0; round < 2; round++)
		for (k = 0; k < parts; k++) {
			const uint32_t s = list[part[k]].src, r = a->n + list[part[k]].dst;
			const uint32_t big = had[part[k]] >= UNIT / 2;
			const uint32_t one = (big != round) &
					     (lowest_of_ports(a, tiers, s, r, d->room) > 0);

			aim[part[k]] += one;
			add_to_ports(a, tiers, s, r, d->room, -(int64_t)one);
		}
}

void bl_alloc_open(struct bl_alloc *a)
{
	const int64_t most = BL_ACCOUNT_MAX * UNIT;
	int64_t level;
	size_t i;

	for (i = 0; i < a->nlist; i++) {
		struct bl_want *w = &a->list[i];
		const uint32_t weight = weight_of(w), windows = w->key >> BL_KEY_WINDOWS;
		int64_t v = 0;

		level = lowest_of_ports(a, a->racks, w->src, a->n + w->dst, a->due.level);
		if (windows && level != BL_DUE_ENOUGH)
			v = had_before(w) - weight * level;
		v = v > most ? most : v < -most ? -most : v;
		w->account = (int32_t)(BL_ACCOUNT_ZERO + floor_div(v, UNIT));
		v -= floor_div(v, UNIT) * UNIT;
		w->key = weight | (uint32_t)(v / (UNIT / (BL_KEY_PART_MAX + 1))) << BL_KEY_PART |
			 (windows + (windows < BL_KEY_WINDOWS_MAX)) << BL_KEY_WINDOWS;
	}
}

void bl_alloc_due(struct bl_alloc *a)
{
	struct bl_due *d = &a->due;
	uint32_t p, slots = 0;

	/* no slot of the window has been given yet */
	for (p = 0; p < a->words; p++)
		slots += bl_count64(a->open[p]);
	d->full = slots * UNIT / (BL_WINDOW_WORDS * BL_WORD_SLOTS);
	for (p = 0; p < a->ports; p++)
		d->room[p] = slots * a->cap[p] * UNIT;
	if (a->racks) {
		fill_ports(a, true);
		round_to_mtus(a, true, slots);
	} else {
		fill_ports(a, false);
		round_to_mtus(a, false, slots);
	}
}
