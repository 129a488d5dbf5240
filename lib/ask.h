/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking peers that cannot be reached, and refusing what is sent to them. An OPEN is the question,
 * since its answer names the process that answers. The rate is limited for each peer, and for all
 * together, so an endpoint with thousands of absent peers asks each of them more rarely.
 */
#ifndef BARLINE_LIB_ASK_H
#define BARLINE_LIB_ASK_H

#include "internal.h"

#define BL_ASK_MAX_NS \
	1000000000ULL           /* longest time between two OPENs to one peer, if few are asked */
#define BL_ASK_NS    1000000ULL /* time for one OPEN: 1000 per second, to all peers together */
#define BL_ASK_BURST 64u        /* OPENs at once */

/**
 * bl_ask_refuses - whether the application follows its peers (bl_on_peer()) and a destination is
 * not there. All destinations that are not there are asked.
 * Returns 0, or -EHOSTUNREACH or -ENOMEM with the sentence.
 */
int bl_ask_refuses(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n);

/** bl_ask_timers - send the OPENs that are due. Called when ep->ask_ns is not 0. */
void bl_ask_timers(struct bl_endpoint *ep, uint64_t mono);

/** bl_ask_begin - begin to wait for ep->wait_for. Returns 0 or -ENOMEM. */
int bl_ask_begin(struct bl_endpoint *ep);

/** bl_ask_reached - whether the peer ep->wait_for has answered. */
bool bl_ask_reached(const struct bl_endpoint *ep);

/** bl_ask_end - the wait for ep->wait_for has ended. */
void bl_ask_end(struct bl_endpoint *ep);

#endif
