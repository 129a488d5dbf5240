/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The endpoints of an arbiter and their sessions (core/fastpass/fcp_arb_core.h). Only comm uses
 * these functions.
 */
#ifndef BARLINE_ARBITER_PEER_H
#define BARLINE_ARBITER_PEER_H

#include "arbiter/arb.h"

/** arb_peers_open - Make a peer of each configured endpoint. Returns 0 or -errno. */
int arb_peers_open(struct bl_arb *a, struct bl_err *err);
void arb_peers_close(struct bl_arb *a);
/** arb_peer_find - The endpoint with that address; NULL: none. */
struct arb_peer *arb_peer_find(struct bl_arb *a, const struct in6_addr *ip);
/** arb_peer_send - Queue all packets of the endpoint that are due at @now. */
void arb_peer_send(struct bl_arb *a, struct arb_peer *p, uint64_t now);
/**
 * arb_peer_grant - Put a slot into the endpoint's next ALLOC. Returns 0; -1: the ALLOC is full and
 * must be sent first; 1: nobody asked for the slot.
 */
int arb_peer_grant(struct arb_peer *p, uint64_t slot, uint32_t dst, uint8_t path);

#endif
