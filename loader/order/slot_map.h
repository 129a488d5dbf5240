/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that each endpoint slot has of its own, its ring and its page; slot_map.c. */
#ifndef BARLINE_SLOT_MAP_H
#define BARLINE_SLOT_MAP_H

#include <stdint.h>

struct bl_node;

enum bl_slot_map { BL_SLOT_RING, BL_SLOT_PAGE };

/**
 * bl_slot_map_enter - makes @fd the ring or page of @slot: in the map of the programs, and as a
 * pin, by which this daemon and the next one find it. Returns 0 or -errno.
 */
int bl_slot_map_enter(const struct bl_node *n, enum bl_slot_map what, uint32_t slot, int fd);

/** bl_slot_map_open - a descriptor of the ring or page of @slot, or -errno; -ENOENT: none. */
int bl_slot_map_open(const struct bl_node *n, enum bl_slot_map what, uint32_t slot);

/**
 * bl_slot_map_remove - removes the ring or page of @slot, if it has one. The kernel waits until no
 * program uses it, which takes tens of milliseconds on a busy machine. Returns 0 or -errno.
 */
int bl_slot_map_remove(const struct bl_node *n, enum bl_slot_map what, uint32_t slot);

#endif
