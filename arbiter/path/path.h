/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Path selection (Fastpass section 4): the packets of one timeslot get paths so that no link inside
 *the network carries more than it can. Racks are the vertices of a bipartite multigraph, packets
 *its edges, paths the colours; a path carries @cap packets out of a rack and as many into it per
 *slot.
 *
 * Example: 2 racks, 2 paths, cap 1; packets a: 0 to 0, b: 0 to 1, c: 1 to 0. a gets path 0; b may
 *not have it (rack 0 sends on it) and gets 1; c may not have 0 (rack 0 receives on it) and gets 1.
 *Had c come before b with another choice, one of them might have found nothing: then a chain of
 *packets changes paths.
 *
 * Two ways to the same promise; both place every packet if no rack has more than paths x cap of
 *them in either direction and no path is dead: greedy	each packet has the path on which its two
 *racks are least loaded (of both the fuller counts); where none is left, an alternating chain of
 *two paths (Kempe) makes room euler	the packets are halved by Euler splits until there is a part
 *for each path; degrees need not be powers of two nor equal, since a split leaves floor or ceil of
 *a half at every rack. With 3, 5, 6, ... paths the parts too many are placed as by greedy, where
 *the chains do what a search for a perfect matching does in the textbook
 *
 * Dead paths are known per pair of racks. A packet for which nothing can be found gets
 *BL_PATH_NONE: its slot is lost to it and must be asked for again.
 *
 * Threads: a selector belongs to one thread at a time; slots are independent, so several selectors
 *work side by side.
 */
#ifndef BARLINE_ARBITER_PATH_H
#define BARLINE_ARBITER_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "proto/fastpass_limits.h"

#define BL_PATH_CAP_MAX     4095u
#define BL_PATH_PACKETS_MAX 65535u
#define BL_PATH_NONE        0xffu /* a packet without a path */

enum bl_path_how { BL_PATH_GREEDY, BL_PATH_EULER };

struct bl_path;

/**
 * struct bl_path_stats - @repaired: packets that needed a chain; @flips: packets that changed
 * their path for them.
 */
struct bl_path_stats {
	uint64_t slots, packets, repaired, flips, unplaced;
};

/** bl_path_new - NULL: failed, @why is a constant. */
struct bl_path *bl_path_new(uint32_t racks, uint32_t paths, uint32_t cap, enum bl_path_how how,
			    const char **why);
void bl_path_free(struct bl_path *p);

/**
 * bl_path_usable - which paths work from one rack to another: bit i for path i. All do at first. 0
 * or -1 if it does not exist.
 */
int bl_path_usable(struct bl_path *p, uint32_t src, uint32_t dst, uint64_t mask);
/** bl_path_table - [src][dst] of what bl_path_usable() set; NULL while no path is dead. */
const uint64_t *bl_path_table(const struct bl_path *p);

/**
 * bl_path_select - one slot. @src, @dst: racks of each packet, below the number of racks. @path:
 * written. @n: at most BL_PATH_PACKETS_MAX. Returns how many got BL_PATH_NONE.
 */
size_t bl_path_select(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
		      uint8_t *path);

const struct bl_path_stats *bl_path_stats(const struct bl_path *p);

/**
 * Three tiers: racks in pods, @aggs aggregation switches in each pod, each with links to @cores
 * core switches of its own. The colouring of the racks chooses the aggregation switch (the same
 * number in both pods), then one colouring of the pods for each number chooses the core.
 */
struct bl_tiers;

/**
 * bl_tiers_new - @pod_of: of each rack. @agg_cap: packets between a rack and an aggregation switch.
 * @core_cap: between an aggregation switch and a core. An aggregation switch must be able to send
 * on all that its racks send to it: fuller pods than that cannot be coloured tier by tier.
 */
struct bl_tiers *bl_tiers_new(uint32_t racks, uint32_t pods, const uint16_t *pod_of, uint32_t aggs,
			      uint32_t agg_cap, uint32_t cores, uint32_t core_cap,
			      enum bl_path_how how, const char **why);
void bl_tiers_free(struct bl_tiers *t);
/**
 * bl_tiers_agg, bl_tiers_core - the selectors inside, to mark dead paths; bl_tiers_core: of one
 * aggregation number, between pods.
 */
struct bl_path *bl_tiers_agg(struct bl_tiers *t);
struct bl_path *bl_tiers_core(struct bl_tiers *t, uint32_t agg);
/**
 * bl_tiers_select - @agg and @core: written; @core is BL_PATH_NONE also where a packet stays in
 * its pod. Returns how many packets have no way.
 */
size_t bl_tiers_select(struct bl_tiers *t, size_t n, const uint16_t *src, const uint16_t *dst,
		       uint8_t *agg, uint8_t *core);

#endif
