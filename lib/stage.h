/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stage of a best-effort destination: messages that bl_send() has accepted and that have not
 * left. The limits of a stage are those of the reliable stream, too.
 *
 * Example: a window of 8 frames. A receiver is silent until a quarter of the window, 2 frames, is
 * free again, so 7 frames may wait together: bl_stage_cap(8, false) = 8 - (2 - 1) = 7.
 */
#ifndef BARLINE_LIB_STAGE_H
#define BARLINE_LIB_STAGE_H

#include "internal.h"

#define BL_ITEM_OVERHEAD 2u /* bytes: be16 length in front of each message */
#define BL_FRAME_HEAD    (sizeof(struct bl_hdr) + sizeof(struct bl_data))

/**
 * bl_stage_cap - frames that may wait together for a destination with @window. A receiver keeps a
 * quarter of the window back until that is worth a CREDIT (bl_rx_credits()); a stage that needed
 * the whole window would have to wait for a PROBE.
 * @alone: only one scattering waits. It may be larger than the window: it leaves when nothing else
 *	is outstanding, since otherwise it could never leave.
 */
static inline uint32_t bl_stage_cap(uint32_t window, bool alone)
{
	uint32_t w = window > BL_WINDOW_FIRST ? window : BL_WINDOW_FIRST;

	w -= (w + 3) / 4 - 1;
	return w < BL_STAGE_FRAMES && !alone ? w : BL_STAGE_FRAMES;
}

/** bl_stage_frame - staged frame @i, from struct bl_hdr on. */
static inline uint8_t *bl_stage_frame(const struct bl_endpoint *ep, const struct bl_tx *t,
				      uint32_t i)
{
	return t->stage + (size_t)i * ep->frame_max;
}

/** bl_stage_fill_data - write struct bl_data behind the frame's struct bl_hdr. @count: items. */
static inline void bl_stage_fill_data(const struct bl_endpoint *ep, uint8_t *frame, uint32_t count)
{
	bl_store16(frame + sizeof(struct bl_hdr), ep->incarnation);
	bl_store16(frame + sizeof(struct bl_hdr) + 2, count);
}

/**
 * bl_stage_scattering - stage one scattering as a whole. @vec, @n: as for bl_send(), checked.
 * Returns 0; -EAGAIN if there is no room; -ENOMEM. On failure nothing is staged.
 */
int bl_stage_scattering(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n);

/** bl_stage_drop - forget what is staged for @p, and report it as failed. @why: enum bl_nak_why. */
void bl_stage_drop(struct bl_endpoint *ep, struct bl_peer *p, uint8_t why);

/** bl_tx_peer_free - free what the sender keeps of @p. */
void bl_tx_peer_free(struct bl_peer *p);

#endif
