/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Path selection (Fastpass section 4): the packets of one timeslot get paths so that no link inside
 * the network carries more than it can. Racks are the vertices of a bipartite multigraph, packets
 * its edges, paths the colours; a path carries @cap packets out of a rack and as many into it per
 * slot.
 *
 * Example: 2 racks, 2 paths, cap 1; packets a: 0 to 0, b: 0 to 1, c: 1 to 0. a gets path 0; b may
 * not have it (rack 0 sends on it) and gets 1; c may not have 0 (rack 0 receives on it) and gets 1.
 * Had c come before b with another choice, one of them might have found nothing: then a chain of
 * packets changes paths.
 *
 * There are two methods. Both place every packet if no rack has more than paths x cap of them in
 * either direction and no path is dead.
 *
 *	greedy	Each packet gets the path on which its two racks are least loaded (the fuller of the
 *		two counts decides). Where none has room, an alternating chain of two paths (Kempe)
 *		makes room.
 *	euler	Euler splits halve the packets until there is a part for each path. Degrees need
 *		not be powers of two nor equal, since a split leaves floor or ceil of a half at
 *		every rack. With 3, 5, 6, ... paths there are too many parts; the packets of the
 *		extra parts are placed as by greedy, whose chains do what a search for a perfect
 *		matching does in the textbook.
 *
 * Dead paths are known per pair of racks. A packet for which no path can be found gets
 * BL_PATH_NONE: it loses its slot and must be asked for again.
 *
 * Threads: a selector belongs to one thread at a time; slots are independent, so several selectors
 * work side by side.
 */
#ifndef BARLINE_ARBITER_PATH_H
#define BARLINE_ARBITER_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "arbiter/path/path_types.h"

struct bl_path;

/** bl_path_new - Make a selector. Returns NULL on failure, with a constant text in @why. */
struct bl_path *bl_path_new(uint32_t racks, uint32_t paths, uint32_t cap, enum bl_path_how how,
			    const char **why);
void bl_path_free(struct bl_path *p);

/**
 * bl_path_usable - Set which paths work from one rack to another: bit i for path i. At first all
 * do. Returns 0; -1 if a rack does not exist or memory is short.
 */
int bl_path_usable(struct bl_path *p, uint32_t src, uint32_t dst, uint64_t mask);
/** bl_path_table - What bl_path_usable() set, [src][dst]; NULL while no path is dead. */
const uint64_t *bl_path_table(const struct bl_path *p);

/**
 * bl_path_select - Give paths to the packets of one slot.
 * @n: packets, at most BL_PATH_PACKETS_MAX.
 * @src, @dst: racks of each packet, below the number of racks.
 * @path: written; BL_PATH_NONE for a packet that has none.
 *
 * Returns how many packets have none.
 */
size_t bl_path_select(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
		      uint8_t *path);

const struct bl_path_stats *bl_path_stats(const struct bl_path *p);

/**
 * struct bl_tiers - A selector for three tiers: racks in pods, aggregation switches in each pod,
 * each with links to core switches of its own. The colouring of the racks chooses the aggregation
 * switch (the same number in both pods), then one colouring of the pods for each number chooses the
 * core switch.
 */
struct bl_tiers;

/**
 * bl_tiers_new - Make a selector for three tiers.
 * @pod_of: [racks].
 * @aggs: aggregation switches in each pod.
 * @agg_cap: packets per slot between a rack and an aggregation switch.
 * @cores: core switches of each aggregation switch.
 * @core_cap: packets per slot between an aggregation switch and a core switch. An aggregation
 * switch must be able to send on all that its racks send to it: pods for which that is not so
 * cannot be coloured tier by tier.
 *
 * Returns NULL on failure, with a constant text in @why.
 */
struct bl_tiers *bl_tiers_new(uint32_t racks, uint32_t pods, const uint16_t *pod_of, uint32_t aggs,
			      uint32_t agg_cap, uint32_t cores, uint32_t core_cap,
			      enum bl_path_how how, const char **why);
void bl_tiers_free(struct bl_tiers *t);
/** bl_tiers_agg - The selector of aggregation switches, to mark dead paths between racks. */
struct bl_path *bl_tiers_agg(struct bl_tiers *t);
/** bl_tiers_core - The selector of the core switches of number @agg, between pods. */
struct bl_path *bl_tiers_core(struct bl_tiers *t, uint32_t agg);
/**
 * bl_tiers_select - Give paths to the packets of one slot.
 * @agg, @core: written. @core is BL_PATH_NONE also where a packet stays in its pod.
 *
 * Returns how many packets have no path.
 */
size_t bl_tiers_select(struct bl_tiers *t, size_t n, const uint16_t *src, const uint16_t *dst,
		       uint8_t *agg, uint8_t *core);

#endif
