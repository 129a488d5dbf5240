/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a frame of the reliable stream also goes by way of the controller (1Pipe 5.2): it was sent
 * often and for long without an answer. Until then the network gets every chance: a routing table
 * may converge, a queue may drain. The number of forwarded frames is bounded, since they share the
 * controller's sessions with the announcements of failures.
 *
 * Example: a frame is sent at 0, 10, 30, 70, 150 and 310 ms. The try at 310 ms is the sixth, so it
 * is forwarded, and so is for 5 s whatever else is sent again to that destination. Each frame is
 * forwarded at most once in 100 ms, and at most 64 frames of an endpoint in 100 ms.
 */
#ifndef BARLINE_FORWARD_CORE_H
#define BARLINE_FORWARD_CORE_H

#include "core/core.h"

/*
 * Above the longest timeout of one try (BL_RTX_MAX_NS), so a single loss never causes forwarding,
 * however slow the machine is.
 */
#define BL_FORWARD_NS 300000000ULL
/* if one frame in ten is lost each way, 1 of 4000 is sent more often */
#define BL_FORWARD_TRIES   5
#define BL_FORWARD_KEEP_NS 5000000000ULL /* how long a destination counts as hard to reach */
#define BL_FORWARD_TURN_NS 100000000ULL
#define BL_FORWARD_TURN    64 /* frames of an endpoint in BL_FORWARD_TURN_NS */

/** struct bl_fwd_turn - frames that an endpoint has given to the daemon. */
struct bl_fwd_turn {
	__u64 start_ns; /* CLOCK_MONOTONIC at which the present 100 ms began */
	__u32 n;        /* frames in them */
};

/**
 * bl_fwd_due - whether a frame that is sent now goes by way of the controller, too.
 * @until: until when frames that are sent again to the destination are forwarded without waiting;
 *	updated.
 * @first_ns: when the frame was sent first.
 * @tries: times the frame was sent, this time included.
 * @last: when the frame was forwarded last; 0: never.
 */
BL_CORE int bl_fwd_due(__u64 *until, __u64 first_ns, __u32 tries, __u64 last, __u64 now)
{
	int hard = tries >= BL_FORWARD_TRIES && now - first_ns >= BL_FORWARD_NS;

	if (hard)
		*until = now + BL_FORWARD_KEEP_NS;
	return (hard || (tries > 1 && now < *until)) && (!last || now - last >= BL_FORWARD_TURN_NS);
}

/** bl_fwd_take - whether one more frame may be forwarded; counts it if so. */
BL_CORE int bl_fwd_take(struct bl_fwd_turn *t, __u64 now)
{
	if (now - t->start_ns >= BL_FORWARD_TURN_NS) {
		t->start_ns = now;
		t->n = 0;
	}
	if (t->n == BL_FORWARD_TURN)
		return 0;
	t->n++;
	return 1;
}

#endif
