/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside path selection: what the greedy choice, the chains and the Euler splits share.
 */
#ifndef BARLINE_ARBITER_PATH_PRIV_H
#define BARLINE_ARBITER_PATH_PRIV_H

#include <stdbool.h>

#include "core/core.h"
#include "arbiter/path/path_types.h"

/**
 * struct bl_path - @lanes: paths, rounded up to 8: a rack's counts are whole 16-byte registers;
 * those of paths that do not exist are full for ever.
 * @out, @in: [rack][lanes] packets of the present slot. @usable: [src][dst], NULL while no path is
 * dead.
 * @stamp: of each packet, the last chain that changed it. @flip: packets of the present chain, to
 * undo it.
 * @room: [rack] of paths that it can send (receive) more on, while a slot with more than 8 paths is
 * being coloured.
 * @start, @list: packets by source rack and by destination rack; made for the first chain of a
 * slot, see @indexed.
 * @mate: Euler: partners of each packet at its source and at its destination. @order: packets, part
 * by part. @side: of each packet.
 * @left: packets that found no path at first.
 */
struct bl_path {
	uint32_t racks, paths, lanes, cap;
	enum bl_path_how how;
	uint16_t *out, *in;
	uint64_t *usable;
	uint32_t *stamp, chain;
	uint16_t *flip;
	bool indexed;
	uint64_t *room[2];
	uint32_t *start[2];
	uint16_t *list[2];
	uint16_t *mate[2];
	uint16_t *order, *spare, *pending;
	uint8_t *side;
	uint16_t *left;
	size_t nleft;
	size_t (*greedy)(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
			 uint8_t *path);
	struct bl_path_stats st;
};

BL_CORE bool path_works(const struct bl_path *p, uint32_t src, uint32_t dst, uint32_t path)
{
	return !p->usable || p->usable[(size_t)src * p->racks + dst] >> path & 1;
}

/**
 * bl_path_split - propose a path for every packet by Euler splits; @path may be p->paths and more
 * (parts too many).
 */
void bl_path_split(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
		   uint8_t *path);
/* path_sse41.c: NULL where the CPU lacks it */
#ifdef __x86_64__
size_t bl_path_greedy_sse41(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
			    uint8_t *path);
#endif

#endif
