/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who would lose something by a detach of a node that no daemon serves. */
#ifndef BARLINE_BUSY_H
#define BARLINE_BUSY_H

#include <stdint.h>

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
 * its endpoints out; their libraries report ESTALE.
 *
 * Returns for how long, in ns, the host must be silent before it starts again, so that its
 * neighbours notice. What its endpoints had open is settled when the host is announced as failed;
 * the maps of the next start know nothing of it.
 */
uint64_t bl_host_put_all_out(const char *dir);

#endif
