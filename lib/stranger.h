/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The first frames of peers that are not known. */
#ifndef BARLINE_LIB_STRANGER_H
#define BARLINE_LIB_STRANGER_H

#include "internal.h"

/**
 * bl_stranger_frame - decide about a frame of an address that is not known. A PROBE is answered
 * with a challenge, and nothing is remembered. A message or an OPEN makes a stranger, if there is
 * room for one. An answer to a challenge makes a peer.
 * @rec: the body has at least sizeof(struct bl_data) bytes.
 * @peer: receives the peer, if the frame is to be handled as the frame of that peer; else NULL.
 * Returns 0, or -ENOMEM if the frame must be offered again later.
 */
int bl_stranger_frame(struct bl_endpoint *ep, const struct bl_rec *rec, struct bl_peer **peer);

#endif
