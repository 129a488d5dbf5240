/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Euler splits (Fastpass section 4, Gabow 1976): the packets are halved so that every rack has half
 * of its packets in each half, floor or ceil; halves are halved again until there is one part per
 * path.
 *
 * At each rack the packets that it sends are paired in their order, and so are those that it
 * receives. Following the pairs (source, destination, source, ...) gives paths and circles. In a
 * bipartite graph the circles are even, so every second packet of each goes to the other half. Of a
 * pair each half gets one packet, and only the odd packet of a rack has no partner: so a rack's
 * degree d becomes floor(d/2) and ceil(d/2), with no dummy packets to make degrees even.
 *
 * Example: rack 0 sends a, b, c; a and b are a pair, c is odd. Rack 1 receives b and c: a pair. The
 * path c - b - a is cut into {c, a} and {b}.
 */
#include <string.h>

#include "arbiter/path/path_priv.h"

#define ALONE 0xffffu

static void pair_up(struct bl_path *p, const uint16_t *order, size_t n, const uint16_t *end,
		    uint16_t *mate)
{
	size_t i;

	memset(p->pending, 0xff, p->racks * sizeof(*p->pending));
	for (i = 0; i < n; i++) {
		const uint16_t e = order[i], other = p->pending[end[e]];

		mate[e] = other;
		if (other == ALONE) {
			p->pending[end[e]] = e;
			continue;
		}
		mate[other] = e;
		p->pending[end[e]] = ALONE;
	}
}

#define SIDE_NONE 2

/*
 * Assigns sides alternately along the path from @e: first over its partner at end @which, then over
 * that packet's partner at the other end, and so on.
 */
static void walk_mates(struct bl_path *p, uint16_t e, uint32_t which)
{
	uint8_t side = p->side[e];

	for (;;) {
		e = p->mate[which][e];
		if (e == ALONE || p->side[e] != SIDE_NONE)
			return;
		side = !side;
		p->side[e] = side;
		which = !which;
	}
}

/* Reorders order[0, n) into its two halves. Returns the size of the first half. */
static size_t split_packets(struct bl_path *p, uint16_t *order, size_t n, const uint16_t *src,
			    const uint16_t *dst)
{
	size_t i, first = 0, second = 0;

	pair_up(p, order, n, src, p->mate[0]);
	pair_up(p, order, n, dst, p->mate[1]);
	for (i = 0; i < n; i++)
		p->side[order[i]] = SIDE_NONE;
	for (i = 0; i < n; i++) {
		const uint16_t e = order[i];

		if (p->side[e] != SIDE_NONE)
			continue;
		p->side[e] = 0;
		walk_mates(p, e, 0);
		walk_mates(p, e, 1);
	}
	for (i = 0; i < n; i++) {
		const uint16_t e = order[i];

		order[first] = e;
		p->spare[second] = e;
		first += !p->side[e];
		second += p->side[e];
	}
	memcpy(&order[first], p->spare, second * sizeof(*order));
	return first;
}

static void divide_packets(struct bl_path *p, uint16_t *order, size_t n, const uint16_t *src,
			   const uint16_t *dst, uint8_t *path, uint32_t from, uint32_t parts)
{
	size_t i, half;

	if (parts == 1) {
		for (i = 0; i < n; i++)
			path[order[i]] = (uint8_t)from;
		return;
	}
	half = split_packets(p, order, n, src, dst);
	divide_packets(p, order, half, src, dst, path, from, parts / 2);
	divide_packets(p, order + half, n - half, src, dst, path, from + parts / 2, parts / 2);
}

void bl_path_split(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
		   uint8_t *path)
{
	uint32_t parts = 1;
	size_t i;

	while (parts < p->paths)
		parts *= 2;
	for (i = 0; i < n; i++)
		p->order[i] = (uint16_t)i;
	divide_packets(p, p->order, n, src, dst, path, 0, parts);
}
