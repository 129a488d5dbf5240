/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who would lose something by a detach of a node that no daemon serves. */
#ifndef BARLINE_BUSY_H
#define BARLINE_BUSY_H

#include <stdbool.h>

#include "base/log.h"
#include "maps/meta_abi.h"

/**
 * bl_node_busy - whether a detach would break something: a switch through whose ports ordered
 * frames come (sampled for 0.2 to 3 s), or a host with endpoints. Returns 0, or -EBUSY with their
 * names in @err.
 */
int bl_node_busy(enum bl_role role, const char *netns, struct bl_err *err);

/**
 * bl_host_put_all_out - before the programs of the host with the pins in @dir are removed: puts all
 * its endpoints out; their libraries report ESTALE. Returns whether there was one. What they had
 * open is settled when the host is announced as failed; the maps of the next start know nothing of
 * it. So the host must be silent until its neighbour has noticed: bl_host_wait_unheard().
 */
bool bl_host_put_all_out(const char *dir);

/**
 * bl_host_wait_unheard - waits until the neighbour of the host with the pins in @dir has excluded
 * it, at least twice dead_after, and at most ten times dead_after and BL_SILENCE_MOST_NS; that it
 * ended by this limit is logged. Nothing sends beacons of the host any more, and the program on its
 * NIC is still attached.
 */
void bl_host_wait_unheard(const char *dir);

#endif
