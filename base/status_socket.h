/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Status sockets: where the CLI asks a running service how it is. A status socket is a Unix stream
 * socket with mode 0600. A client connects, may send a command, shuts down its side, and reads one
 * JSON object until the end of the stream. The arbiter, fault isolation and the controller have one
 * each.
 */
#ifndef BARLINE_BASE_STATUS_SOCKET_H
#define BARLINE_BASE_STATUS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

struct bl_status_socket;

/**
 * bl_status_socket_open - starts a thread that answers at @path.
 * @reply: makes the answer to what a client sent, @said, a string that it may change. Returns the
 * answer, which is freed, and its length in *@len; NULL: no answer. It runs in the thread, for one
 * client at a time.
 *
 * Returns 0 or -errno. A file at @path is replaced: the caller has made sure that its owner is
 * dead.
 */
int bl_status_socket_open(struct bl_status_socket **out, const char *path,
			  char *(*reply)(void *ctx, char *said, size_t *len), void *ctx,
			  struct bl_err *err);
/** bl_status_socket_close - ends the thread and removes the socket. No-op for NULL. */
void bl_status_socket_close(struct bl_status_socket *c);

/**
 * bl_status_sockets_clean - removes the sockets that match the glob(7) @pattern and at which no
 * process listens.
 * @dry_run: remove nothing.
 * @tell: called with the path of each; may be NULL.
 *
 * Returns the number of such sockets.
 */
int bl_status_sockets_clean(const char *pattern, bool dry_run,
			    void (*tell)(const char *what, void *ctx), void *ctx);

#endif
