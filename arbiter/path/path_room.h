/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Path selection for 64 slots at a time: how many packets each rack can still send and receive on
 * each path, by slot, in bit planes (core/fastpass/timeslot_core.h). A grant of the allocator is a
 * pair and a mask of slots, and gets its paths as masks: the first path takes all slots in which
 * both racks have room on it, the next path takes those that are left, and so on. The work is in
 * grants, not in packets: 8 packets of one grant cost little more than one.
 *
 * Example: 2 paths, cap 1. A grant has slots {0, 1, 2} from rack 0 to rack 1; rack 0 sends on path
 * 0 in slot 1 already. Path 0 takes {0, 2}, path 1 takes {1}.
 *
 * The lowest path comes first for a reason: racks that are equally full have their room on the same
 * (the last) paths. Nothing is moved once it is given: grants can be announced at once, and later
 * runs add to the same slots. The price: at full load some packets find no path, where
 * bl_path_select() would move others (path.h). They come back as masks. A caller that has announced
 * no packet of such a slot yet may colour the slot as a whole and say so with bl_room_set();
 * otherwise these packets lose the slot and must be asked for again.
 *
 * Threads: a struct bl_room belongs to one thread at a time.
 */
#ifndef BARLINE_ARBITER_PATH_ROOM_H
#define BARLINE_ARBITER_PATH_ROOM_H

#include <stddef.h>
#include <stdint.h>

#include "arbiter/path/path_types.h"

struct bl_room;

/**
 * bl_room_new - Make an empty room for slots from 0 on.
 * @words: how far ahead grants reach, in words of 64 slots; rounded up to a power of two.
 *
 * Returns NULL on failure, with a constant text in @why.
 */
struct bl_room *bl_room_new(uint32_t racks, uint32_t paths, uint32_t cap, uint32_t words,
			    const char **why);
void bl_room_free(struct bl_room *r);
/** bl_room_move - End the words below @word; as many new ones begin, empty. */
void bl_room_move(struct bl_room *r, uint64_t word);
/** bl_room_lanes - Masks for each ask: the number of paths, rounded up to BL_ROOM_LANES. */
uint32_t bl_room_lanes(const struct bl_room *r);
/**
 * bl_room_usable - Set which paths work from one rack to another, for grants from now on: see
 * bl_path_usable(). Returns 0 or -1.
 */
int bl_room_usable(struct bl_room *r, uint32_t src, uint32_t dst, uint64_t mask);
/**
 * bl_room_take - Give paths to @n asks.
 * @take: [n][lanes] written: slots of each ask on each path.
 *
 * Returns how many packets found no path.
 */
uint64_t bl_room_take(struct bl_room *r, struct bl_room_ask *ask, size_t n, uint64_t *take);
/**
 * bl_room_set - Declare that slot 64 x @word + @bit has these packets and no others, whatever was
 * taken of it before.
 * @path: of each packet, BL_PATH_NONE for none; no rack has more on a path than it can carry.
 */
void bl_room_set(struct bl_room *r, uint64_t word, uint32_t bit, size_t n, const uint16_t *src,
		 const uint16_t *dst, const uint8_t *path);

#endif
