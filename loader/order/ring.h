/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rings of endpoints, as the daemon sees them; ring.c. */
#ifndef BARLINE_RING_H
#define BARLINE_RING_H

#include <stdint.h>

struct bl_node;

/**
 * bl_ring_enter - makes @fd the ring of @slot: in the map of the programs, and as a pin, by which
 * this daemon and the next one find it. Returns 0 or -errno.
 */
int bl_ring_enter(const struct bl_node *n, uint32_t slot, int fd);

/** bl_ring_open - a descriptor of the ring of @slot, or -errno; -ENOENT: it has none. */
int bl_ring_open(const struct bl_node *n, uint32_t slot);

/**
 * bl_ring_remove - removes the ring of @slot, if it has one. The kernel waits until no program uses
 * the ring, which takes tens of milliseconds on a busy machine. Returns 0 or -errno.
 */
int bl_ring_remove(const struct bl_node *n, uint32_t slot);

#endif
