/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside bl_room_take(): compiled once per instruction set. The including file defines ROOM_TAKE,
 * the name of the function.
 */
#ifndef BARLINE_ARBITER_PATH_ROOM_PRIV_H
#define BARLINE_ARBITER_PATH_ROOM_PRIV_H

#include "arbiter/path/path_types.h"
#include "core/fastpass/timeslot_core.h"

/** struct bl_room - What each rack can still send and receive; see path_room.h. */
struct bl_room {
	uint32_t racks, paths, cap;
	uint32_t lanes;  /* paths, rounded up to BL_ROOM_LANES */
	uint32_t planes; /* bits of @cap */
	uint32_t words;  /* of the ring, a power of two */
	uint64_t first;  /* first word that is not over */
	/*
	 * [word % words][side][rack][group of four paths][plane][lane] packets that can still go;
	 * 0 for paths that do not exist. Side 0: out of the rack, 1: into it.
	 */
	uint64_t *left;
	uint64_t *usable; /* [src][dst][lane] all ones or none; NULL while no path is dead */
	uint64_t (*take)(struct bl_room *r, struct bl_room_ask *ask, size_t n, uint64_t *take);
};

static inline size_t room_rack_words(const struct bl_room *r)
{
	return (size_t)r->lanes * r->planes;
}

static inline uint64_t *room_of(const struct bl_room *r, uint64_t word, uint32_t side,
				uint32_t rack)
{
	return &r->left[(((word & (r->words - 1)) * 2 + side) * r->racks + rack) *
			room_rack_words(r)];
}

uint64_t bl_room_take_plain(struct bl_room *r, struct bl_room_ask *ask, size_t n, uint64_t *take);
#ifdef __x86_64__
uint64_t bl_room_take_avx512(struct bl_room *r, struct bl_room_ask *ask, size_t n, uint64_t *take);
#endif

#ifdef ROOM_TAKE
typedef uint64_t room_v4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t room_i4 __attribute__((vector_size(32)));

/* Serves one ask. @planes and @groups are constants where speed matters. */
static inline __attribute__((always_inline)) uint64_t room_one(struct bl_room *r,
							       struct bl_room_ask *q,
							       uint64_t *take,
							       const uint32_t planes,
							       const uint32_t groups)
{
	const room_v4 zero = { 0 };
	uint64_t *out = room_of(r, q->word, 0, q->src), *in = room_of(r, q->word, 1, q->dst);
	const uint64_t *usable =
		r->usable ? &r->usable[((size_t)q->src * r->racks + q->dst) * r->lanes] : NULL;
	uint64_t rest = q->slots;
	uint32_t g, k;

	for (g = 0; g < groups; g++, out += BL_ROOM_LANES * planes, in += BL_ROOM_LANES * planes) {
		room_v4 o[BL_PLANES_MAX], d[BL_PLANES_MAX], both, room_out = zero, room_in = zero,
								  before, t, borrow_out, borrow_in;

#pragma GCC unroll 4
		for (k = 0; k < planes; k++) {
			o[k] = *(const room_v4 *)&out[k * BL_ROOM_LANES];
			d[k] = *(const room_v4 *)&in[k * BL_ROOM_LANES];
			room_out |= o[k];
			room_in |= d[k];
		}
		both = room_out & room_in;
		if (usable)
			both &= *(const room_v4 *)&usable[g * BL_ROOM_LANES];
		/*
		 * Slots that a lower path of the group has room for: lane k has the OR of lanes 0
		 * to k - 1.
		 */
		before = __builtin_shuffle(zero, both, (room_i4){ 0, 4, 5, 6 });
		before |= __builtin_shuffle(zero, before, (room_i4){ 0, 4, 5, 6 });
		before |= __builtin_shuffle(zero, before, (room_i4){ 0, 1, 4, 5 });
		t = both & ~before & rest;
		rest &= ~(before[3] | both[3]);
		*(room_v4 *)&take[g * BL_ROOM_LANES] = t;
		borrow_out = borrow_in = t;
#pragma GCC unroll 4
		for (k = 0; k < planes; k++) {
			*(room_v4 *)&out[k * BL_ROOM_LANES] = o[k] ^ borrow_out;
			*(room_v4 *)&in[k * BL_ROOM_LANES] = d[k] ^ borrow_in;
			borrow_out &= ~o[k];
			borrow_in &= ~d[k];
		}
	}
	q->slots = rest;
	return bl_count64(rest);
}

uint64_t ROOM_TAKE(struct bl_room *r, struct bl_room_ask *ask, size_t n, uint64_t *take)
{
	const uint32_t groups = r->lanes / BL_ROOM_LANES;
	uint64_t none = 0;
	size_t i;

	if (r->planes == 4 && groups == 1) { /* racks of 32 with 4 paths */
		for (i = 0; i < n; i++)
			none += room_one(r, &ask[i], &take[i * BL_ROOM_LANES], 4, 1);
		return none;
	}
	for (i = 0; i < n; i++)
		none += room_one(r, &ask[i], &take[i * r->lanes], r->planes, groups);
	return none;
}
#endif

#endif
