/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The switch role. */
#ifndef BARLINE_LOADER_SWITCH_H
#define BARLINE_LOADER_SWITCH_H

#include "base/log.h"

struct bl_node;
struct bl_node_cfg;

/**
 * bl_switch_open - loads, configures, attaches and pins the programs of a switch, or takes over
 * those that are pinned. In the node's network namespace.
 * @cfg: the whole configuration, as bl_node_open() was given it.
 * Returns 0 or -errno; bl_node_close() cleans up in either case.
 */
int bl_switch_open(struct bl_node *n, const struct bl_node_cfg *cfg, struct bl_err *err);

#endif
