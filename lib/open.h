/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking a destination of the reliable stream for its window (OPEN): before the first message,
 * when a window stays closed for long, and in the background if the destination is unreachable.
 */
#ifndef BARLINE_LIB_OPEN_H
#define BARLINE_LIB_OPEN_H

#include "internal.h"

/** bl_open_send - send an OPEN. @cookie: the challenge of @p that it answers; 0: none. */
void bl_open_send(struct bl_endpoint *ep, struct bl_peer *p, uint64_t cookie);

/**
 * bl_open_ask - send an OPEN to @p if its time has come.
 * @mono: CLOCK_MONOTONIC now, ns.
 * Returns false if the destination has left too many OPENs unanswered, for longer than its answers
 * were late before (patience_core.h).
 */
bool bl_open_ask(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono);

/**
 * bl_open_mark_dead - mark @p as unreachable. Sends to it fail at once until it answers an OPEN;
 * OPENs are sent in the background.
 */
void bl_open_mark_dead(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono);

/**
 * bl_open_is_dead - whether @p is unreachable. The caller wants to send to it, so another OPEN is
 * sent, unless one was sent in the last BL_RETRY_MIN_NS.
 */
bool bl_open_is_dead(struct bl_endpoint *ep, struct bl_peer *p);

/**
 * bl_open_timers - send the background OPENs that are due.
 * @next: deadline of the caller's other timers, CLOCK_MONOTONIC ns; 0: none.
 * Returns the earlier one of @next and the next background OPEN.
 */
uint64_t bl_open_timers(struct bl_endpoint *ep, uint64_t mono, uint64_t next);

#endif
