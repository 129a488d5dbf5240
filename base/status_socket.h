/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where people ask a running service of Fastpass how it is: a Unix socket of root's (0600). Who
 * connects may say something, ends his side, and gets one JSON object and the end of the stream.
 * The arbiter (door.c) and fault isolation (faultd.c) have one each.
 */
#ifndef BARLINE_ARBITER_DOORWAY_H
#define BARLINE_ARBITER_DOORWAY_H

#include <stdint.h>
#include <stdio.h>

#include "loader/node.h"

struct arb_doorway;

/**
 * arb_doorway_open - a thread that answers at @path. @reply: @said is what somebody sent, as a
 * string that may be changed; returns the answer, which is freed, and its length, or NULL. It runs
 * in the thread, one at a time. Returns 0 or -errno. A file that lies at @path is removed: the
 * caller has made sure that its owner is dead.
 */
int arb_doorway_open(struct arb_doorway **out, const char *path,
		     char *(*reply)(void *ctx, char *said, size_t *len), void *ctx,
		     struct bl_err *err);
/** arb_doorway_close - ends the thread and removes the socket. NULL: nothing. */
void arb_doorway_close(struct arb_doorway *c);

/**
 * arb_put_number - ,"key":v. arb_put_text - "key":"s"; quotes and what is not printable, which
 * would break the object, become question marks. arb_put_reasons - ,"key":{...} of packets by
 * BL_FCP_R_*, those that are not 0.
 */
void arb_put_number(FILE *o, const char *key, uint64_t v);
void arb_put_text(FILE *o, const char *key, const char *s);
void arb_put_reasons(FILE *o, const char *key, const uint64_t *n);

#endif
