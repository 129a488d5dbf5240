/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every frame needs: its header, its timestamp, and the sending of control frames. */
#ifndef BARLINE_LIB_FRAME_H
#define BARLINE_LIB_FRAME_H

#include "internal.h"

/**
 * bl_tx_hdr - write struct bl_hdr.
 * @op: BL_OP_*.
 * @ts: timestamp, bus time in ns; 0 for frames without one.
 * @psn: sequence number.
 */
static inline void bl_tx_hdr(uint8_t *frame, uint8_t op, uint64_t ts, uint32_t psn)
{
	struct bl_hdr *h = (void *)frame;

	memset(h, 0, sizeof(*h));
	bl_put48(h->ts, ts);
	if (ts) {
		/* The egress program writes both; without it, the frame promises nothing. */
		bl_put48(h->barrier, bl_unpromised(ts));
		bl_put48(h->commit, bl_unpromised(ts));
	}
	bl_hdr_set_psn(h, psn);
	h->opcode = BL_OPCODE_BYTE(op);
	h->flags = BL_HOP_HOST | BL_F_LANES(1); /* every hop writes its own */
}

/**
 * bl_tx_stamp - put the endpoint in flight and take a timestamp.
 * @reliable: the hold of the line is set, too: C does not pass the timestamp before the caller
 * clears the hold, even if the host declares this send void. The host's barrier does not pass the
 * timestamp until the caller sets the endpoint's in-flight line back to BL_TIME_NONE. Returns bus
 * time, ns.
 */
uint64_t bl_tx_stamp(struct bl_endpoint *ep, bool reliable);

/** bl_tx_clock_void - store the sentence that says that the clock is void. Returns -ETIME. */
int bl_tx_clock_void(struct bl_endpoint *ep);

/**
 * bl_tx_control - send a control frame at once, without a timestamp.
 * @body: @len bytes, at most 32.
 * Returns 0; -ENOBUFS: the NIC's ring, which endpoints of the host share, has no room; or another
 * -errno. Callers need not handle an error: a lost control frame is repeated by the side that needs
 * it.
 */
int bl_tx_control(struct bl_endpoint *ep, struct bl_peer *p, uint8_t opcode, uint32_t psn,
		  const void *body, uint32_t len);

/**
 * bl_tx_control_fits - as bl_tx_control(), for callers that have asked the NIC's ring for room, and
 * that call bl_nic_witness() afterwards.
 */
int bl_tx_control_fits(struct bl_endpoint *ep, struct bl_peer *p, uint8_t opcode, uint32_t psn,
		       const void *body, uint32_t len);

#endif
