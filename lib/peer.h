/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Remote endpoints by address. */
#ifndef BARLINE_LIB_PEER_H
#define BARLINE_LIB_PEER_H

#include "internal.h"

/** bl_peer_find - the peer at @ip and @port (host order), or NULL. */
struct bl_peer *bl_peer_find(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port);

/**
 * bl_peer_get - the peer at @ip and @port, to which the application sends; made if it is new.
 * Returns NULL without memory.
 */
struct bl_peer *bl_peer_get(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port);

/** bl_peer_meet - make a peer that is new. Returns NULL without memory. */
struct bl_peer *bl_peer_meet(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port);

/**
 * bl_peer_init - write only the address, which is what bl_tx_control() needs. For an answer to an
 * address of which nothing is to be remembered. @p: zeroed.
 */
void bl_peer_init(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t ip[16], uint16_t port);

/** bl_peer_strange - count @p among the strangers, for whom there is room. */
void bl_peer_strange(struct bl_endpoint *ep, struct bl_peer *p);

/** bl_peer_known - @p is no stranger any more. No-op if it was none. */
void bl_peer_known(struct bl_endpoint *ep, struct bl_peer *p);

/** bl_peer_take_out - take @p out of the table and of the list of peers. */
void bl_peer_take_out(struct bl_endpoint *ep, struct bl_peer *p);

#endif
