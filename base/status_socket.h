/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where people ask a running service of Fastpass how it is: a Unix socket of root's (0600). Who
 * connects may say something, ends his side, and gets one JSON object and the end of the stream.
 * The arbiter (door.c) and fault isolation (faultd.c) have one each.
 */
#ifndef BARLINE_BASE_STATUS_SOCKET_H
#define BARLINE_BASE_STATUS_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"

struct bl_status_socket;

/**
 * bl_status_socket_open - a thread that answers at @path. @reply: @said is what somebody sent, as a
 * string that may be changed; returns the answer, which is freed, and its length, or NULL. It runs
 * in the thread, one at a time. Returns 0 or -errno. A file that lies at @path is removed: the
 * caller has made sure that its owner is dead.
 */
int bl_status_socket_open(struct bl_status_socket **out, const char *path,
			  char *(*reply)(void *ctx, char *said, size_t *len), void *ctx,
			  struct bl_err *err);
/** bl_status_socket_close - ends the thread and removes the socket. NULL: nothing. */
void bl_status_socket_close(struct bl_status_socket *c);

/**
 * bl_put_number - ,"key":v. bl_put_text - "key":"s"; quotes and what is not printable, which
 * would break the object, become question marks.
 */
void bl_put_number(FILE *o, const char *key, uint64_t v);
void bl_put_text(FILE *o, const char *key, const char *s);

/**
 * bl_status_sockets_clean - Remove the sockets that glob(7) @pattern names and at which nobody
 * listens any more.
 * @dry_run: only tell of them.
 * @tell: called with the path of each; may be NULL.
 *
 * Returns how many there were.
 */
int bl_status_sockets_clean(const char *pattern, bool dry_run,
			    void (*tell)(const char *what, void *ctx), void *ctx);

#endif
