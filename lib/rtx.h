/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reliable sender: the window that is shared with the host's programs, and retransmission. */
#ifndef BARLINE_LIB_RTX_H
#define BARLINE_LIB_RTX_H

#include "internal.h"

/**
 * bl_rtx_flush - give what is staged its timestamp if the windows of all destinations are open, and
 * put into the window and send what there is room for. Returns 0, also if windows are closed, or
 * -ETIME.
 */
int bl_rtx_flush(struct bl_endpoint *ep);

/** bl_rtx_reap - remove acknowledged frames from the window. */
void bl_rtx_reap(struct bl_endpoint *ep);

/**
 * bl_rtx_timers - send again what was not acknowledged in time, and the OPENs that are due.
 * @mono: CLOCK_MONOTONIC now, ns. Returns the next deadline; 0: none.
 */
uint64_t bl_rtx_timers(struct bl_endpoint *ep, uint64_t mono);

/** bl_rtx_window - handle a WINDOW from @p. @body: @len bytes behind struct bl_hdr, unchecked. */
void bl_rtx_window(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len);

/** bl_rtx_aborted - close the slots of the recalled scatterings, and report their messages. */
void bl_rtx_aborted(struct bl_endpoint *ep);

/** bl_rtx_room - whether nothing that is staged is held back (BL_WAIT_SEND_RELIABLE). */
bool bl_rtx_room(const struct bl_endpoint *ep);

/** bl_rtx_empty - whether everything that was sent is acknowledged (BL_WAIT_ACKED). */
bool bl_rtx_empty(const struct bl_endpoint *ep);

/** bl_rtx_free - free the sender's memory. */
void bl_rtx_free(struct bl_endpoint *ep);

#endif
