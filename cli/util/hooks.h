/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a node's daemon has found on the hooks of its interfaces, and the names of programs. */
#ifndef BARLINE_CLI_UTIL_HOOKS_H
#define BARLINE_CLI_UTIL_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/node.h"
#include "maps/hook_watch_abi.h"

/**
 * hook_watch_read - reads the record of a port, or of enum bl_hook_place on a host. All zero if
 * there is no sound record, as on a node whose daemon is of an older build.
 */
void hook_watch_read(const struct bl_node_ref *ref, uint32_t port, struct bl_hook_watch *w);

/** hook_state_text - "own", "EMPTY", "OTHER", "behind", "followed" or "unknown". */
const char *hook_state_text(uint32_t state);

/**
 * prog_text - writes "NAME (id N)" into @buf, the id alone if the program cannot be read, or "" for
 * id 0. Returns @buf.
 */
const char *prog_text(uint32_t id, char *buf, size_t size);

#endif
