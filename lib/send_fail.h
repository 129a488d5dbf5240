/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Failed messages: from a NAK, or a destination that was given up, to the send_fail callback. */
#ifndef BARLINE_LIB_SEND_FAIL_H
#define BARLINE_LIB_SEND_FAIL_H

#include "internal.h"

/**
 * bl_tx_fail - note that a message failed; bl_tx_report() calls the callback.
 * @ts: its timestamp; 0: it never left.
 * @why: enum bl_nak_why.
 */
void bl_tx_fail(struct bl_endpoint *ep, const struct bl_peer *p, uint64_t ts, uint64_t cookie,
		uint8_t why);

/**
 * bl_tx_fail_frame - bl_tx_fail() for messages of a best-effort frame.
 * @psn: the frame's number. A frame that was already reported as a whole, or is too old to be
 *	remembered, is ignored.
 * @item: index of the message in the frame, or BL_NAK_WHOLE for all of them.
 */
void bl_tx_fail_frame(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint8_t item,
		      uint8_t why);

/** bl_tx_nak - handle a NAK from @p. @body: @len bytes behind struct bl_hdr, unchecked. */
void bl_tx_nak(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len);

/** bl_tx_report - run the send_fail callbacks that are due, with the lock released. */
void bl_tx_report(struct bl_endpoint *ep);

#endif
