/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Configurations as `barline config` prints them. */
#ifndef BARLINE_CLI_CONFIG_H
#define BARLINE_CLI_CONFIG_H

#include "loader/node_cfg.h"

/**
 * config_print - prints @c with its defaults: as YAML, or with --json as one object. @name: the
 * node that runs with it; NULL: none. Returns the exit status.
 */
int config_print(const struct bl_node_cfg *c, const char *name);

#endif
