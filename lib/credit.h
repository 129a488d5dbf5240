/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a best-effort receiver tells its senders: CREDITs and NAKs. */
#ifndef BARLINE_LIB_CREDIT_H
#define BARLINE_LIB_CREDIT_H

#include "internal.h"

/**
 * bl_credit_due - make the next bl_rx_credits() consider a CREDIT for @p.
 * @now: send it even if less than a quarter of the window became free.
 */
static inline void bl_credit_due(struct bl_endpoint *ep, struct bl_peer *p, bool now)
{
	p->rx.credit_now |= now;
	if (p->rx.credit_due || p->self)
		return;
	p->rx.credit_due = true;
	p->credit_next = ep->credits;
	ep->credits = p;
}

/** bl_rx_credits - send the CREDITs that are due, as far as the NIC's ring has room. */
void bl_rx_credits(struct bl_endpoint *ep);

/**
 * bl_rx_nak - tell the sender @p that frames were not delivered.
 * @psn: first frame. @count: frames.
 * @why: enum bl_nak_why.
 * @item: index of the one message that was not delivered, or BL_NAK_WHOLE.
 */
void bl_rx_nak(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint32_t count, uint8_t why,
	       uint8_t item);

/** bl_rx_nak_life - tell a life of @p that may not be the present one that a frame is lost. */
void bl_rx_nak_life(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation, uint32_t psn);

#endif
