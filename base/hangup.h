/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SIGHUP as an order to a service, which a thread of its own receives: the service's other threads
 * go on while the thread reads files, however slow the disk is.
 *
 *	bl_hangup_block();			first of all, before any thread starts
 *	...
 *	bl_hangup_open(&h, reload, service, &err);
 *
 * A SIGHUP that comes between these two calls waits, and several that come at once are one.
 */
#ifndef BARLINE_BASE_HANGUP_H
#define BARLINE_BASE_HANGUP_H

#include "base/log.h"

struct bl_hangup;

/** bl_hangup_block - Blocks SIGHUP in the calling thread, and in those that it starts. */
void bl_hangup_block(void);

/** bl_hangup_open - Has @fn called in a new thread for each SIGHUP. Returns 0 or -errno. */
int bl_hangup_open(struct bl_hangup **out, void (*fn)(void *ctx), void *ctx, struct bl_err *err);

/** bl_hangup_close - Ends the thread, which may be within @fn. No-op for NULL. */
void bl_hangup_close(struct bl_hangup *h);

#endif
