/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The window of reliable sends: the frames that an endpoint has sent reliably and its receivers
 * have not acknowledged (1Pipe section 5.1). There is one window per endpoint, shared by its
 * process and the host's programs. The word that says how far it is filled is in the endpoint's
 * line (struct bl_inflight), so a program that only wants to know whether
 * anything is open reads that line alone.
 *
 * Example: state = 7 << 32 | 5. Seven frames were sent and the first five are acknowledged; slots 5
 * and 6 are open. The ACK of frame 6 closes slot 6, and the head stays. The ACK of frame 5 closes
 * slot 5, and the head moves to 7. Until then the host's commit barrier is at most the timestamp of
 * slot 5, since timestamps in a window never decrease.
 *
 * The rules are in core/order/commit_core.h.
 */
#ifndef BARLINE_RELIABLE_ABI_H
#define BARLINE_RELIABLE_ABI_H

#include <linux/types.h>

#define BL_RWIN 1024 /* slots; a power of two */

/**
 * struct bl_rslot - one frame of the window: frame n is in slot n % BL_RWIN. Written by the process
 * before the tail passes the slot, and again only after the head has passed it. In between, only
 * @wait and @ack_ns change, as they say.
 */
struct bl_rslot {
	/*
	 * BL_RSLOT_OPEN | n: frame n is not acknowledged. BL_RSLOT_LOCKED | n: it will not be,
	 * since its scattering is being recalled, or its process died (then it is the slot at the
	 * head, locked by the daemon). n alone: acknowledged or recalled. Closed by
	 * compare-and-swap, so that an ACK that is late by a whole window closes nothing.
	 */
	__u64 wait;
	__u64 ts;      /* timestamp of the scattering, bus time */
	__u8 addr[16]; /* address of the receiver: IPv6 or IPv4-mapped */
	__u32 psn;     /* of the frame */
	__u16 port;    /* UDP port of the receiver, host order */
	__u16 life;    /* incarnation of the receiver */
	/*
	 * CLOCK_MONOTONIC of the ACK of the frame's first copy, with which the process measures
	 * round trips; 0: a later copy was acknowledged, so the round trip is unknown. Written by
	 * the program before it closes @wait.
	 */
	__u64 ack_ns;
};
_Static_assert(sizeof(struct bl_rslot) == 48, "ABI");
#define BL_RSLOT_OPEN   (1ULL << 32)
#define BL_RSLOT_LOCKED (2ULL << 32)

/**
 * struct bl_rwin - the window of one endpoint, twelve whole pages of struct bl_ep_page.
 */
struct bl_rwin {
	struct bl_rslot slot[BL_RWIN]; /* frame n is in slot n % BL_RWIN */
};
_Static_assert(sizeof(struct bl_rwin) % 4096 == 0, "whole pages");

#endif
