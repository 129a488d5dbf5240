/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which epochs of controllers a node obeys. Epochs only rise; a node refuses a lower one, since its
 * controller does not lead any more. It also refuses an epoch that is too far above the highest one
 * that it has obeyed: a false controller that says 2^64 - 1 once would otherwise be the last one
 * that the node ever obeys.
 *
 * How large a step is honest? With SQLite an epoch counts elections. With etcd it is a revision of
 * the cluster, which rises by one for each write of anybody: a node that was away while a shared
 * etcd took a hundred writes a second finds it 2^32 higher after 497 days. The first epoch of a
 * node has no predecessor, and may be any revision that a cluster can have reached: 2^48 writes
 * take more than 890 years at ten thousand a second.
 *
 * After the first one, 2^32 steps of the greatest size lie between a false controller and the last
 * epoch, and each is a message that is counted (BL_R_EPOCH_FAR) or obeyed and shown.
 *
 * Example: highest 41; 41 and 42 are obeyed, 40 is old, 41 + 2^32 is obeyed, 42 + 2^32 is refused.
 */
#ifndef BARLINE_EPOCH_CORE_H
#define BARLINE_EPOCH_CORE_H

#include "core/core.h"

#define BL_EPOCH_STEP  (1ULL << 32) /* greatest step from one epoch to the next */
#define BL_EPOCH_FIRST (1ULL << 48) /* greatest first epoch of a node */

enum bl_epoch_verdict {
	BL_EPOCH_OBEY, /* the same epoch as before, or an honest later one */
	BL_EPOCH_OLD,  /* lower than the highest one */
	BL_EPOCH_FAR,  /* beyond what elections can have raised it to */
};

/**
 * bl_epoch_judge - whether a node obeys epoch @said.
 * @highest: the highest epoch that it has obeyed; 0: none
 */
static __always_inline enum bl_epoch_verdict bl_epoch_judge(__u64 highest, __u64 said)
{
	if (said < highest)
		return BL_EPOCH_OLD;
	return said - highest > (highest ? BL_EPOCH_STEP : BL_EPOCH_FIRST) ? BL_EPOCH_FAR
									   : BL_EPOCH_OBEY;
}

#endif
