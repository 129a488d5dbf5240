/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The key "clock" of a node's configuration: where the bound of its clock comes from. */
#ifndef BARLINE_LOADER_CONFIG_CLOCK_H
#define BARLINE_LOADER_CONFIG_CLOCK_H

#include "base/yaml.h"
#include "loader/node_cfg.h"

/**
 * bl_config_clock - reads the older key "clock_bound_us", and checks what "clock" says, which is
 * read already.
 */
void bl_config_clock(struct bl_yaml *y, struct bl_node_cfg *cfg);

/** bl_clock_source_name - the name of the source @kind, or "none": there is no such source. */
const char *bl_clock_source_name(uint32_t kind);

/** bl_clock_default_source - a daemon reads the kernel unless it was told otherwise. */
void bl_clock_default_source(struct bl_node_cfg *cfg);

#endif
