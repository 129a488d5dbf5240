/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reload: applies another configuration to a node that runs, all of it or nothing.
 *
 * A reload compares the new configuration with the one in force (config_rows.h). If any difference
 * takes a restart or a detach, the reload is refused and nothing changes. Otherwise what can fail
 * is done first: keys are read, settings of admission are checked, and a session with the
 * controllers is prepared. Then the rest is written. docs/configuration.md says what a reader sees
 * meanwhile.
 */
#ifndef BARLINE_LOADER_RELOAD_H
#define BARLINE_LOADER_RELOAD_H

#include <stdio.h>

#include "base/log.h"
#include "loader/node_cfg.h"

struct bl_node;

/**
 * bl_node_reload - makes @now, whose defaults are not filled in, the configuration of @n.
 * @say: gets a line for each difference, for `barline config reload` (control.h); may be NULL.
 *
 * Returns the number of changes, or -errno; -EPERM: it takes more than a reload.
 */
int bl_node_reload(struct bl_node *n, const struct bl_node_cfg *now, FILE *say, struct bl_err *err);

#endif
