/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a node's daemon has found on the hooks of its interfaces, and the names of programs. */
#ifndef BARLINE_CLI_UTIL_HOOKS_H
#define BARLINE_CLI_UTIL_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/node.h"
#include "maps/hook_watch_abi.h"

/**
 * hook_watches - reads the records of all ports of a switch, by port, or of a host, by enum
 * bl_hook_place. A record that is not sound is all zero, as are all of a node whose daemon is of an
 * older build. The caller frees the array; NULL: out of memory.
 */
struct bl_hook_watch *hook_watches(const struct bl_node_ref *ref);

/** hook_state_text - "own", "EMPTY", "OTHER", "behind", "followed" or "unknown". */
const char *hook_state_text(uint32_t state);

/**
 * prog_text - writes "NAME (id N)" into @buf, the id alone if the program cannot be read, or "" for
 * id 0. Returns @buf.
 */
const char *prog_text(uint32_t id, char *buf, size_t size);

#endif
