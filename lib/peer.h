/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Remote endpoints by address. */
#ifndef BARLINE_LIB_PEER_H
#define BARLINE_LIB_PEER_H

#include "internal.h"

/** bl_peer_find - the peer at @ip and @port (host order), or NULL. */
struct bl_peer *bl_peer_find(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port);

/** bl_peer_get - the peer at @ip and @port, made if it is new. Returns NULL without memory. */
struct bl_peer *bl_peer_get(struct bl_endpoint *ep, const uint8_t ip[16], uint16_t port);

#endif
