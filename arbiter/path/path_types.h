/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What goes into path selection (path.h, path_room.h) and comes out of it.
 */
#ifndef BARLINE_ARBITER_PATH_TYPES_H
#define BARLINE_ARBITER_PATH_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "maps/alloc_abi.h"

#define BL_PATH_NONE  0xffu /* number of the path of a packet that has none */
#define BL_ROOM_LANES 4u    /* paths that path_room.h handles together */

enum bl_path_how { BL_PATH_GREEDY, BL_PATH_EULER };

/** struct bl_path_stats - Counters of a selector. */
struct bl_path_stats {
	uint64_t slots, packets;
	uint64_t repaired; /* packets that needed a chain */
	uint64_t flips;    /* packets whose path was changed by a chain */
	uint64_t unplaced; /* packets that got no path */
};

/** struct bl_room_ask - 64 slots of a grant. */
struct bl_room_ask {
	uint64_t slots; /* in: bit i is slot 64 x @word + i; out: those that found no path */
	uint64_t word;  /* not below that of bl_room_move(), and within the ring's words from it */
	uint16_t src, dst; /* racks */
	uint32_t reserved;
};

#endif
