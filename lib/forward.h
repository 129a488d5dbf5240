/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames that also go by way of the controller (1Pipe 5.2); forward_core.h says when. */
#ifndef BARLINE_LIB_FORWARD_H
#define BARLINE_LIB_FORWARD_H

#include "internal.h"

/**
 * bl_forward - give a frame to the daemon, which asks the controller to forward it. Does not block.
 * @p: destination; frames to this host are not forwarded.
 * @frame: from struct bl_hdr on, @len bytes; frames over BL_FORWARD_MAX bytes are not forwarded.
 * @mono: CLOCK_MONOTONIC now, ns.
 */
void bl_forward(struct bl_endpoint *ep, const struct bl_peer *p, const uint8_t *frame, uint32_t len,
		uint64_t mono);

/**
 * bl_forward_control - bl_forward() a control frame if frames to @p seem not to pass at present and
 * frames with this opcode (BL_OP_*) may be forwarded.
 */
void bl_forward_control(struct bl_endpoint *ep, const struct bl_peer *p, const uint8_t *frame,
			uint32_t len, uint8_t opcode);

/** bl_forward_heard - a frame of @p came by way of the controller: answer that way, too. */
void bl_forward_heard(struct bl_peer *p);

#endif
