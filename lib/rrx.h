/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reliable receiver: which frames of a sender are accepted, and what was recalled. */
#ifndef BARLINE_LIB_RRX_H
#define BARLINE_LIB_RRX_H

#include "internal.h"

/**
 * bl_rrx_prep - store a PREP of @p. @body: @len bytes behind struct bl_hdr, unchecked.
 * Returns 0, also if the frame is refused or known; -ENOMEM if it must be offered again later.
 */
int bl_rrx_prep(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts, uint32_t psn,
		const uint8_t *body, uint32_t len);

/**
 * bl_rrx_open - handle an OPEN of process @incarnation, whose next number is @psn. @sure: the OPEN
 * answers a challenge.
 */
void bl_rrx_open(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint16_t incarnation,
		 bool sure);

/** bl_rrx_recall - handle a RECALL. @body: @len bytes behind struct bl_hdr, unchecked. */
void bl_rrx_recall(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, const uint8_t *body,
		   uint32_t len);

/**
 * bl_rrx_age - forget recalls that the commit barrier has passed, and, if @silent, large messages
 * below it that nothing has referred to.
 */
void bl_rrx_age(struct bl_endpoint *ep, struct bl_peer *p, bool silent);

/** bl_rrx_free - free the receiver's memory. */
void bl_rrx_free(struct bl_endpoint *ep);

/** bl_rrx_peer_free - free what the receiver keeps of @p. */
void bl_rrx_peer_free(struct bl_peer *p);

#endif
