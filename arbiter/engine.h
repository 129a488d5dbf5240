/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The allocator (alloc/alloc.h) and path selection (path/path.h) as stages of the arbiter
 * (stage.h).
 *
 * A run of the allocator gives pairs with 64 slots each, which is also what comm wants. With two
 * tiers of switches the mask of slots of a pair is handed from path to path (path/path_room.h), so
 * a grant becomes one for each path that took some of its slots; only slots in which a packet found
 * no path are coloured as a whole. With three tiers each slot is a colouring of its own. assign.c
 * does both.
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
 * bl_engine_new - Make the stages for a network.
 * @f: with its defaults filled in; must outlive the engine.
 *
 * There is one path selector, so one path thread at most: several runs share slots, and the paths
 * that are taken in them. Returns 0 or -errno with @err.
 */
int bl_engine_new(struct bl_engine **out, const struct bl_fp_file *f, struct bl_err *err);
void bl_engine_free(struct bl_engine *e);

/* The next four are arguments of bl_arb_new(). */
const struct arb_alloc_ops *bl_engine_ops(const struct bl_engine *e);
void *bl_engine_alloc(struct bl_engine *e);
/** bl_engine_path_ops - NULL: the network has no paths. */
const struct arb_path_ops *bl_engine_path_ops(const struct bl_engine *e);
void *const *bl_engine_paths(const struct bl_engine *e);

/**
 * bl_engine_usable - Set which paths work from rack @src to rack @dst: bit i for path i. Any thread
 * may call it while the arbiter runs: the selector takes it over before its next run. Returns 0; -1
 * if a rack does not exist or the network has no paths.
 */
int bl_engine_usable(struct bl_engine *e, uint32_t src, uint32_t dst, uint64_t mask);
/**
 * bl_engine_links - Set all links to avoid, in place of those of the last call. What
 * bl_engine_usable() said stays valid, too. Any thread may call it.
 * @e: a struct bl_engine; void to suit @links of struct bl_arb_cfg.
 */
void bl_engine_links(void *e, const struct bl_fcp_link *l, unsigned int n);
/** bl_engine_no_path - Demands refused because no path between their racks is left. */
uint64_t bl_engine_no_path(struct bl_engine *e);

#endif
