/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration in force of a running node: BL_RUN_DIR/<role>-<netns>-config.yaml, which its
 * daemon writes when it has started and when it has reloaded. It stays with the datapath when the
 * daemon stops, and is removed with it. Its first line names its format; the rest is a file that
 * can be fed back.
 */
#ifndef BARLINE_LOADER_RUNNING_H
#define BARLINE_LOADER_RUNNING_H

#include <stdint.h>

#include "base/log.h"
#include "loader/node_cfg.h"

struct bl_node;

/** bl_running_write - writes @n->given down. Returns 0 or -errno; the old file stays then. */
int bl_running_write(const struct bl_node *n, struct bl_err *err);

/** bl_running_load - reads a node's file into @c. Free with bl_config_free(). 0 or -errno. */
int bl_running_load(enum bl_role role, uint64_t ino, struct bl_node_cfg *c, struct bl_err *err);

/** bl_running_forget - removes the file of a node that is gone. */
void bl_running_forget(enum bl_role role, uint64_t ino);

/** bl_config_copy - copies @from with its ports and fdb. Returns 0 or -ENOMEM. */
int bl_config_copy(struct bl_node_cfg *to, const struct bl_node_cfg *from, struct bl_err *err);

#endif
