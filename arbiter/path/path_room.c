/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See path_room.h. The inner loop is in path_room_priv.h. */
#define ROOM_TAKE bl_room_take_plain
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arbiter/path/path_room.h"
#include "arbiter/path/path_room_priv.h"

void bl_room_free(struct bl_room *r)
{
	if (!r)
		return;
	free(r->left);
	free(r->usable);
	free(r);
}

/* Makes a word empty: all racks can send and receive @cap packets on every path that exists. */
static void fill_word(struct bl_room *r, uint64_t word)
{
	uint64_t *w = room_of(r, word, 0, 0);
	uint32_t i, g, k, lane;

	for (i = 0; i < 2 * r->racks; i++)
		for (g = 0; g < r->lanes / BL_ROOM_LANES; g++)
			for (k = 0; k < r->planes; k++)
				for (lane = 0; lane < BL_ROOM_LANES; lane++)
					*w++ = g * BL_ROOM_LANES + lane < r->paths &&
							       r->cap >> k & 1
						       ? ~0ULL
						       : 0;
}

struct bl_room *bl_room_new(uint32_t racks, uint32_t paths, uint32_t cap, uint32_t words,
			    const char **why)
{
	struct bl_room *r;
	uint64_t w;

	*why = !racks || racks > BL_PATH_RACKS_MAX   ? "path selection has 1 to 1024 racks"
	       : !paths || paths > BL_PATH_PATHS_MAX ? "there are 1 to 64 paths"
	       : !cap || cap > BL_PATH_CAP_MAX       ? "a path carries 1 to 4095 packets a slot"
	       : !words || words > 1024              ? "paths are chosen 1 to 1024 words ahead"
						     : NULL;
	if (*why)
		return NULL;
	*why = "out of memory";
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->racks = racks;
	r->paths = paths;
	r->cap = cap;
	r->lanes = (paths + BL_ROOM_LANES - 1) / BL_ROOM_LANES * BL_ROOM_LANES;
	while (cap >> r->planes)
		r->planes++;
	for (r->words = 1; r->words < words;)
		r->words *= 2;
	r->take = bl_room_take_plain;
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
		r->take = bl_room_take_avx512;
#endif
	r->left = aligned_alloc(
		64, (r->words * 2 * racks * room_rack_words(r) * sizeof(*r->left) + 63) / 64 * 64);
	if (!r->left) {
		bl_room_free(r);
		return NULL;
	}
	for (w = 0; w < r->words; w++)
		fill_word(r, w);
	*why = NULL;
	return r;
}

void bl_room_move(struct bl_room *r, uint64_t word)
{
	if (word > r->first + r->words)
		r->first = word - r->words; /* the ring holds no older word */
	for (; r->first < word; r->first++)
		fill_word(r, r->first); /* the place of word first + words */
}

uint32_t bl_room_lanes(const struct bl_room *r)
{
	return r->lanes;
}

int bl_room_usable(struct bl_room *r, uint32_t src, uint32_t dst, uint64_t mask)
{
	const size_t all = (size_t)r->racks * r->racks * r->lanes;
	size_t i;

	if (src >= r->racks || dst >= r->racks)
		return -1;
	if (!r->usable) {
		r->usable = malloc(all * sizeof(*r->usable));
		if (!r->usable)
			return -1;
		memset(r->usable, 0xff, all * sizeof(*r->usable));
	}
	for (i = 0; i < r->lanes; i++)
		r->usable[((size_t)src * r->racks + dst) * r->lanes + i] =
			i < 64 && mask >> i & 1 ? ~0ULL : 0;
	return 0;
}

uint64_t bl_room_take(struct bl_room *r, struct bl_room_ask *ask, size_t n, uint64_t *take)
{
	return r->take(r, ask, n, take);
}

/* Takes one packet from the room of a rack on path @path in one slot. */
static void count_packet(const struct bl_room *r, uint64_t *w, uint32_t path, uint32_t bit)
{
	uint32_t k;

	w += path / BL_ROOM_LANES * r->planes * BL_ROOM_LANES + path % BL_ROOM_LANES;
	for (k = 0; k < r->planes; k++, w += BL_ROOM_LANES) {
		const uint64_t was = *w;

		*w ^= 1ULL << bit;
		if (was >> bit & 1)
			return;
	}
}

void bl_room_set(struct bl_room *r, uint64_t word, uint32_t bit, size_t n, const uint16_t *src,
		 const uint16_t *dst, const uint8_t *path)
{
	const uint64_t one = 1ULL << bit;
	uint64_t *w = room_of(r, word, 0, 0);
	uint32_t i, g, k, lane;
	size_t p;

	for (i = 0; i < 2 * r->racks; i++)
		for (g = 0; g < r->lanes / BL_ROOM_LANES; g++)
			for (k = 0; k < r->planes; k++)
				for (lane = 0; lane < BL_ROOM_LANES; lane++, w++)
					*w = g * BL_ROOM_LANES + lane < r->paths && r->cap >> k & 1
						     ? *w | one
						     : *w & ~one;
	for (p = 0; p < n; p++) {
		if (path[p] == BL_PATH_NONE)
			continue;
		count_packet(r, room_of(r, word, 0, src[p]), path[p], bit);
		count_packet(r, room_of(r, word, 1, dst[p]), path[p], bit);
	}
}
