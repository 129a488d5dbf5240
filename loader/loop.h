/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The event loop that the nodes of a process share. */
#ifndef BARLINE_LOOP_H
#define BARLINE_LOOP_H

#include "base/log.h"

struct bl_server;

/** bl_server_new - makes a server without nodes. Returns 0 or -errno. */
int bl_server_new(struct bl_server **out, struct bl_err *err);

/**
 * bl_server_destroy - frees a server that has no nodes and no threads any more; see
 * bl_server_free() in node.h.
 */
void bl_server_destroy(struct bl_server *s);

/**
 * bl_server_run - serves until bl_server_stop(), SIGTERM or SIGINT. On SIGHUP, nodes
 * are reloaded (control.h). Returns 0 or -errno.
 */
int bl_server_run(struct bl_server *s, struct bl_err *err);

/** bl_server_stop - ends bl_server_run(). May be called from a signal handler or a callback. */
void bl_server_stop(struct bl_server *s);

/**
 * bl_server_block_signals - blocks SIGTERM, SIGINT and SIGHUP for the rest of the program. Called
 * first in main(): a signal during the start is then obeyed by bl_server_run(), and a second one
 * does not interrupt the stop.
 */
void bl_server_block_signals(void);

/**
 * bl_server_fd - for callers with a loop of their own: poll this descriptor for input, then call
 * bl_server_step().
 */
int bl_server_fd(struct bl_server *s);

/** bl_server_step - handles what is pending, without blocking. Returns 0 or -errno. */
int bl_server_step(struct bl_server *s, struct bl_err *err);

#endif
