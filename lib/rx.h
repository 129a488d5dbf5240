/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The best-effort receiver: sequence numbers, the reorder queue, and delivery. */
#ifndef BARLINE_LIB_RX_H
#define BARLINE_LIB_RX_H

#include "internal.h"

/**
 * bl_rx_data, bl_rx_frag, bl_rx_probe - handle a DATA, FRAG or PROBE frame of @p.
 * @rec: the ring's record; its body has at least sizeof(struct bl_data) bytes.
 */
void bl_rx_data(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_rec *rec);
void bl_rx_frag(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_rec *rec);
void bl_rx_probe(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_rec *rec);

/**
 * bl_rx_self - queue a DATA frame that the endpoint sends to itself.
 * @frame: from struct bl_hdr on, @len bytes. Returns 0 or -ENOMEM.
 */
int bl_rx_self(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *frame, uint32_t len,
	       uint64_t ts, uint32_t psn);

/** bl_rx_self_big - receive a large message of the endpoint to itself as a whole; takes @g over. */
void bl_rx_self_big(struct bl_endpoint *ep, struct bl_peer *p, struct bl_big *g);

/**
 * bl_rx_deliver - deliver up to @max messages below the barrier, in order.
 * Returns the count. The messages lie in buffers of ep->lent.
 */
int bl_rx_deliver(struct bl_endpoint *ep, struct bl_delivery *out, size_t max);

/** bl_rx_ready - whether a frame waits that bl_rx_deliver() would open. */
bool bl_rx_ready(const struct bl_endpoint *ep);

/** bl_rx_count_ready - messages that could be delivered now; stops counting at 64. */
int bl_rx_count_ready(const struct bl_endpoint *ep);

/** bl_rx_drop_bigs - free the large messages of @p that were not delivered. */
void bl_rx_drop_bigs(struct bl_endpoint *ep, struct bl_peer *p);

/** bl_rx_free - free the receiver's memory. */
void bl_rx_free(struct bl_endpoint *ep);

/** bl_rx_peer_free - free what the receiver keeps of @p. */
void bl_rx_peer_free(struct bl_peer *p);

#endif
