/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stage of the reliable stream: messages that were accepted and have no slot yet. */
#ifndef BARLINE_LIB_RSTAGE_H
#define BARLINE_LIB_RSTAGE_H

#include "internal.h"

/**
 * bl_rstage_scattering - stage one scattering as a whole. @vec, @n: as for bl_send_reliable(),
 * checked. Returns 0; -EAGAIN if there is no room; -ENOMEM. On failure nothing is staged.
 */
int bl_rstage_scattering(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n);

/** bl_rstage_any - whether a frame is staged. */
bool bl_rstage_any(const struct bl_endpoint *ep);

/** bl_rstage_take - remove and return the first frame of a list that is not empty. */
struct bl_rframe *bl_rstage_take(struct bl_rlist *l);

/** bl_rstage_drop - forget everything that is staged, and report it. @why: enum bl_nak_why. */
void bl_rstage_drop(struct bl_endpoint *ep, uint8_t why);

/** bl_rframe_put - give a frame back to the endpoint's free list. */
void bl_rframe_put(struct bl_endpoint *ep, struct bl_rframe *f);

/** bl_rframe_fail - report the frame's messages as failed. @ts: 0: they never left. */
void bl_rframe_fail(struct bl_endpoint *ep, const struct bl_rframe *f, uint64_t ts, uint8_t why);

/** bl_rstage_free - free all staged, kept and free frames. */
void bl_rstage_free(struct bl_endpoint *ep);

#endif
