/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a running daemon is told something: SIGHUP, which reloads, or the socket
 * <role>-<netns>-control.sock in BL_RUN_DIR, a SOCK_SEQPACKET socket for its user and root. A
 * client sends "reload" and gets one packet, of lines whose fields are separated by tabs:
 *
 *	changed	dead_after_us	1000	5000	live	each frame is judged by ...
 *	refused	beacon_us	100	200	restart	all nodes of a rack must agree ...
 *	ok
 *	error	beacon_us takes a restart (...); nothing was changed
 *
 * The last line is "ok" or "error". A daemon that is stopped does not answer; the client has a
 * limit.
 *
 * "admission rate_bps is 1000000000 now" says that a command has changed the admission of the node,
 * in the maps, and how. The daemon makes an event of that.
 */
#ifndef BARLINE_LOADER_CONTROL_H
#define BARLINE_LOADER_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "loader/node_cfg.h"

struct bl_node;
struct bl_server;

#define BL_CONTROL_ANSWER_MAX 65536
#define BL_CONTROL_WORD_MAX   1100 /* of what a client sends, with a 0 at its end */
#define BL_CONTROL_ADMISSION  "admission "

/**
 * bl_server_on_reload - has SIGHUP and the control socket reload. @read: makes the configuration
 * anew from its file and flags, into *@out, which bl_config_free() frees, also after an error.
 */
void bl_server_on_reload(struct bl_server *s,
			 int (*read)(void *ctx, struct bl_node_cfg *out, struct bl_err *err),
			 void *ctx);

/** bl_control_open - serves the control socket of @n. Returns 0 or -errno. */
int bl_control_open(struct bl_node *n, struct bl_err *err);
void bl_control_close(struct bl_node *n);

/**
 * bl_control_hangup - SIGHUP: reloads the nodes of @s, or without bl_server_on_reload() reads their
 * keys again. What happened is logged.
 */
void bl_control_hangup(struct bl_server *s);

/**
 * bl_control_ask - sends @what to a node's daemon and waits for the answer, which is stored as a
 * string in @answer, BL_CONTROL_ANSWER_MAX bytes. Returns 0 or -errno; -ETIMEDOUT: no answer
 * within @ms.
 */
int bl_control_ask(enum bl_role role, uint64_t ino, const char *what, char *answer, int ms,
		   struct bl_err *err);

/** bl_control_tell - sends @what without waiting. No-op if no daemon runs, or its queue is full. */
void bl_control_tell(enum bl_role role, uint64_t ino, const char *what);

#endif
