/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether frames find room in the NIC's ring. A veth without a queueing discipline silently drops
 * frames when its 256 places are taken, and a scattering whose timestamp is taken must not wait for
 * room, since it holds the rack's barrier back. So a flush asks before it takes the timestamp.
 *
 * The only endpoint of a host: the frames that are not credited yet are all that can be in the
 * ring. Where each host sends to each other host, windows keep their number below BL_NIC_FRAMES
 * (bl_rx_window()), and nothing more is asked. A sender to many receivers that hear few other
 * senders has larger windows. In that case the socket knows: what is charged to its send buffer is
 * freed when the frame leaves the ring.
 *
 * Example: 40 receivers have 400 frames that they have not credited, and 80 frames are to be sent.
 * The socket says 46080 bytes: at most 46080 / 768 = 60 frames are in the ring. 60 + 80 = 140 is
 * not above 224, so the frames leave.
 *
 * Several endpoints of a host share the ring, and each knows only its own socket. They keep an
 * account in the page of hints (nic.c, nic_core.h).
 */
#ifndef BARLINE_LIB_NIC_H
#define BARLINE_LIB_NIC_H

#include "internal.h"

#define BL_FRAME_CHARGE 768    /* bytes that a frame is charged to the send buffer, at least */
#define BL_NIC_WAIT_NS  100000 /* a full ring is empty by then, if its CPU serves it */
#define BL_NIC_SHARED   160    /* frames in a shared ring at which data stops */
/*
 * Frames in a shared ring at which control frames stop. The other places are for beacons, for
 * witnesses, and for endpoints that ask at the same time.
 */
#define BL_NIC_CONTROLS 192
/*
 * What other processes say in the account is a hint. An endpoint that has no frame in the ring
 * waits for the account for BL_NIC_TRUST_NS. If frames leave the ring meanwhile, it also waits
 * until it has looked BL_NIC_TRUST_ASKS times: where processes wait for a CPU, others may fill the
 * ring again and again between two of its turns. Then it does not ask for BL_NIC_DISTRUST_NS.
 */
#define BL_NIC_NONSENSE    4096 /* no correct processes account for more frames */
#define BL_NIC_TRUST_NS    50000000ULL
#define BL_NIC_TRUST_ASKS  16
#define BL_NIC_DISTRUST_NS 1000000000ULL

/** bl_nic_alone - whether no other endpoint of this host uses the ring, according to the daemon. */
static inline bool bl_nic_alone(const struct bl_endpoint *ep)
{
	return __atomic_load_n(&ep->page->eps_active, __ATOMIC_RELAXED) <= 1;
}

/** bl_nic_full - whether @need more frames might not fit. */
bool bl_nic_full(struct bl_endpoint *ep, uint32_t need);

/**
 * bl_nic_take - reserve room for @need frames in a shared ring. Asked once more when the sender is
 * in flight: two endpoints that ask at once see each other. Returns true if the room is the
 * endpoint's until bl_nic_sent(). Always true in a ring that is not shared.
 */
bool bl_nic_take(struct bl_endpoint *ep, uint32_t need);

/**
 * bl_nic_waits - whether @need reliable frames have to wait for room in a shared ring. Always false
 * in a ring that is not shared: what is lost there is sent again.
 */
bool bl_nic_waits(struct bl_endpoint *ep, uint32_t need);

/** bl_nic_sent - the frames of bl_nic_take() are in the ring. */
void bl_nic_sent(struct bl_endpoint *ep);

/**
 * bl_nic_room - how many of @want frames may be put in one by one while the ring holds fewer than
 * @most. Returns at least 1 if the ring has no frame of ours that could tell when it is emptied.
 */
uint32_t bl_nic_room(struct bl_endpoint *ep, uint32_t want, uint32_t most);

/**
 * bl_nic_count - count @n frames that are about to be put in. bl_nic_witness() follows when they
 * have been put in.
 */
void bl_nic_count(struct bl_endpoint *ep, uint32_t n);

/**
 * bl_nic_witness - the frames that were counted are in the ring: when they have left, so has
 * everything that was there when room was asked for.
 */
void bl_nic_witness(struct bl_endpoint *ep);

/**
 * bl_nic_needs_witness - whether a frame must be sent that tells when the ring is no longer full:
 * no frame of ours is in it, and bl_nic_witness_due().
 */
bool bl_nic_needs_witness(struct bl_endpoint *ep);

/** bl_nic_sender - count @n more, or fewer, senders of other hosts that have windows of ours. */
void bl_nic_sender(struct bl_endpoint *ep, int n);

/**
 * bl_nic_window - the window for a sender of another host: @w frames, or less, so that all windows
 * of this host's endpoints together fit the ring towards the host.
 */
uint32_t bl_nic_window(const struct bl_endpoint *ep, uint32_t w);

/** bl_nic_unsent - whether frames of ours are still in a queue of this host. */
bool bl_nic_unsent(const struct bl_endpoint *ep);

#endif
