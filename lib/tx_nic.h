/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether frames find room in the NIC's ring. A veth without a queueing discipline drops what finds
 * its 256 places taken, and tells nobody; a scattering whose timestamp is taken must not wait for
 * room, since it holds the rack's barrier back. So a flush asks before.
 *
 * The only endpoint of a host: what is not credited yet is all that can be in the ring. Where each
 * host sends to each other, windows keep that below BL_NIC_FRAMES (bl_rx_window()), and nothing
 * more is asked. Who sends to many that hear few others has larger windows. Then the socket knows:
 * what is charged to its send buffer is freed when the frame leaves the ring.
 *
 * Example: 40 receivers have 400 frames that they have not credited, 80 are to be sent. The socket
 * says 46080 bytes: at most 60 frames are in the ring. 140 <= 224: they leave.
 *
 * Several endpoints of a host share the ring, and each knows its own socket only. They keep an
 * account in the wake page (nic.c, nic_core.h).
 */
#ifndef BARLINE_LIB_TX_NIC_H
#define BARLINE_LIB_TX_NIC_H

#include "internal.h"

#define BL_FRAME_CHARGE 768    /* at least so many bytes are charged for a frame */
#define BL_NIC_WAIT_NS  100000 /* a full ring is empty by then, if its CPU serves it */
#define BL_NIC_SHARED   160    /* where data stops, */
/* and CREDITs; the rest is for beacons, witnesses, and for those who ask at the same time */
#define BL_NIC_CONTROLS 192

/** bl_nic_alone - no other endpoint of this host uses the ring; the daemon says so. */
static inline bool bl_nic_alone(const struct bl_endpoint *ep)
{
	return __atomic_load_n(&ep->page->eps_active, __ATOMIC_RELAXED) <= 1;
}

/** bl_nic_full - whether @need more frames might not fit. */
bool bl_nic_full(struct bl_endpoint *ep, uint32_t need);

/**
 * bl_nic_take - the same for several endpoints, to be asked once more when the sender is in flight:
 * two that ask at once see each other. True: it has the room until bl_nic_sent().
 */
bool bl_nic_take(struct bl_endpoint *ep, uint32_t need);
void bl_nic_sent(struct bl_endpoint *ep);

/**
 * bl_nic_room - how many frames may be put in one by one, of @want, as long as the ring holds fewer
 * than
 * @most. At least 1 if no frame of ours is there that could tell when it is emptied.
 */
uint32_t bl_nic_room(struct bl_endpoint *ep, uint32_t want, uint32_t most);

/** bl_nic_count - @n frames are about to be put in that have not asked for room. */
void bl_nic_count(struct bl_endpoint *ep, uint32_t n);

/**
 * bl_nic_witness - what was counted since bl_nic_room() is in the ring: when that has left, so has
 * what was there before.
 */
void bl_nic_witness(struct bl_endpoint *ep);

/**
 * bl_nic_needs_witness - the ring seems full, and no frame of ours is in it that could tell when
 * it is not.
 */
bool bl_nic_needs_witness(const struct bl_endpoint *ep);

/** bl_nic_sender - one more sender of another host has a window of ours. */
void bl_nic_sender(struct bl_endpoint *ep);

/**
 * bl_nic_window - @w, or less: all windows of this host's endpoints together fit the ring towards
 * it.
 */
uint32_t bl_nic_window(const struct bl_endpoint *ep, uint32_t w);

#endif
