/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The allocator (alloc.h) and the path selector (path.h) as the server's stages (server.h).
 *
 * A run's grants are pairs with 64 slots each; what comm wants is the same. With two tiers of
 * switches a pair's mask of slots is handed from path to path (path_room.h), so a grant becomes one
 * for each path that took some of its slots; only slots in which a packet found none are coloured
 * as a whole. With three tiers each slot is a colouring of its own. See assign.c.
 *
 * Example: 2 racks, 2 paths of 1 packet; slots 5 and 6 of pair 0 -> 9 (rack 0 to 1). In slot 6 the
 * rack sends on path 0 already: the one grant {5, 6} becomes {5} on path 0 and {6} on path 1.
 */
#ifndef BARLINE_ARBITER_ENGINE_H
#define BARLINE_ARBITER_ENGINE_H

#include "proto/fastpass_file.h"
#include "arbiter/stage.h"
#include "maps/fcp_abi.h"

struct bl_engine;

/**
 * bl_engine_new - by a file whose defaults are filled in; it must live as long as the engine.
 * There is one path selector, for one path thread at most: runs share slots, and paths that are
 * taken. Returns 0 or -errno.
 */
int bl_engine_new(struct bl_engine **out, const struct bl_fp_file *f, struct bl_err *err);
void bl_engine_free(struct bl_engine *e);

/**
 * bl_engine_ops, bl_engine_alloc, bl_engine_path_ops, bl_engine_paths - what bl_arb_new() wants;
 * path ops are NULL without paths.
 */
const struct arb_alloc_ops *bl_engine_ops(const struct bl_engine *e);
void *bl_engine_alloc(struct bl_engine *e);
const struct arb_path_ops *bl_engine_path_ops(const struct bl_engine *e);
void *const *bl_engine_paths(const struct bl_engine *e);

/**
 * bl_engine_usable - which paths work from rack @src to rack @dst: bit i for path i. From any
 * thread while the arbiter runs: selectors take it over before their next run. 0, or -1: no such
 * racks.
 */
int bl_engine_usable(struct bl_engine *e, uint32_t src, uint32_t dst, uint64_t mask);
/**
 * bl_engine_links - all links that are to be avoided, in place of those of the last call. @e: void
 * for bl_arb_cfg.links. What bl_engine_usable() said holds besides.
 */
void bl_engine_links(void *e, const struct bl_fcp_link *l, unsigned int n);
/** bl_engine_no_path - demands that were refused because no path between their racks is left. */
uint64_t bl_engine_no_path(struct bl_engine *e);

#endif
