/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The best-effort sender: windows, flushes, PROBEs. */
#ifndef BARLINE_LIB_TX_H
#define BARLINE_LIB_TX_H

#include "internal.h"

/**
 * bl_tx_flush - send everything that is staged, if the windows of all staged destinations are open
 * and the NIC's ring has room. Returns 0, also if the windows are closed, or -ETIME.
 */
int bl_tx_flush(struct bl_endpoint *ep);

/** bl_tx_credit - handle a CREDIT from @p. @body: @len bytes behind struct bl_hdr, unchecked. */
void bl_tx_credit(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len);

/**
 * bl_tx_timers - send the PROBEs that are due, and give up destinations that do not answer.
 * @now: CLOCK_MONOTONIC, ns. Returns the next deadline; 0: none.
 */
uint64_t bl_tx_timers(struct bl_endpoint *ep, uint64_t now);

/** bl_tx_hold_void - bl_tx_clock_void(); what is staged is sent when the clock is valid again. */
int bl_tx_hold_void(struct bl_endpoint *ep);

/** bl_tx_room - whether nothing that is staged is held back (BL_WAIT_SEND). */
static inline bool bl_tx_room(const struct bl_endpoint *ep)
{
	return !ep->held;
}

/** bl_tx_ask - send a PROBE to a destination that was given up. */
void bl_tx_ask(struct bl_endpoint *ep, struct bl_peer *p);

/** bl_tx_leave - tell receivers that this life sends nothing more, so that they believe the next.
 */
void bl_tx_leave(struct bl_endpoint *ep);

#endif
