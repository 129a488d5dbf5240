/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a node's YAML file; config.c has an example. */
#ifndef BARLINE_NODE_CONFIG_H
#define BARLINE_NODE_CONFIG_H

#include "base/log.h"

struct bl_node_cfg;

/**
 * bl_config_load - reads a node's YAML file into @cfg, over what is there. Unknown keys and bad
 * values fail with file and line in @err. Free with bl_config_free(). Returns 0 or -errno.
 */
int bl_config_load(struct bl_node_cfg *cfg, const char *path, struct bl_err *err);
void bl_config_free(struct bl_node_cfg *cfg);

#endif
