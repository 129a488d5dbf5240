/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The window of reliable sends: what an endpoint has sent and its receivers have not acknowledged
 * (1Pipe 5.1). One per endpoint, shared by its process and the host's programs. The word that says
 * how far it is filled is in the endpoint's line of the in-flight page (struct bl_inflight): who
 * only wants to know whether there is anything reads no more than that line.
 *
 * Example: state = 7 << 32 | 5. Seven frames were sent, the first five are acknowledged; slots 5
 * and 6 are open. The ACK of frame 6 closes slot 6, and head stays. The ACK of frame 5 closes slot
 * 5, and head goes to 7. Until then the host's commit barrier is at most the timestamp of slot 5:
 * timestamps in a window never decrease.
 */
#ifndef BARLINE_RELIABLE_ABI_H
#define BARLINE_RELIABLE_ABI_H

#include <linux/types.h>

#define BL_RWIN        1024 /* slots; a power of two */
#define BL_MAP_WINDOWS "windows"

/**
 * struct bl_rslot - a frame of the window: number n is in slot n % BL_RWIN. Written by the process
 *before the tail passes it; it writes it again only when the head has passed it.
 * @wait: BL_RSLOT_OPEN | n: not acknowledged; BL_RSLOT_LOCKED | n: nor will it be, its scattering
 *is being recalled, or its process died (the slot at head; by the daemon); n alone: acknowledged,
 *or recalled. Closed by compare-and-swap, so that an ACK that is late by a whole window closes
 *nothing.
 * @ts: the scattering's timestamp.
 * @addr, @port, @life: the receiver: IPv6 or mapped address, UDP port (host order), incarnation.
 * @psn: of the frame.
 * @ack_ns: CLOCK_MONOTONIC of the ACK of the frame's first copy, by which the process measures
 *round trips; 0: a later copy was acknowledged, and how long its way took is not known. Written
 *before @wait is closed.
 */
struct bl_rslot {
	__u64 wait;
	__u64 ts;
	__u8 addr[16];
	__u32 psn;
	__u16 port;
	__u16 life;
	__u64 ack_ns;
};
_Static_assert(sizeof(struct bl_rslot) == 48, "ABI");
#define BL_RSLOT_OPEN   (1ULL << 32)
#define BL_RSLOT_LOCKED (2ULL << 32)

/**
 * struct bl_rwin - value of "windows", by endpoint slot: twelve whole pages, so that a process can
 * map its own.
 */
struct bl_rwin {
	struct bl_rslot slot[BL_RWIN];
};
_Static_assert(sizeof(struct bl_rwin) % 4096 == 0, "whole pages");

#endif
