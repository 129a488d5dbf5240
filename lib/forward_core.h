/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a frame of the reliable stream goes by way of the controller as well (1Pipe 5.2): it was
 * sent often and for long, and nothing came back. Until then the network has every chance: a table
 * that converges, a queue that drains. What goes that way is bounded: it shares the controller's
 * sessions with what says who failed.
 *
 * Example: sent at 0, 10, 30, 70, 150, 310 ms. At 310 it is the sixth try: due, and so is for 5 s
 * whatever else is sent again to that destination. Every frame at most once in 100 ms, all frames
 * of an endpoint at most 64 times.
 */
#ifndef BARLINE_FORWARD_CORE_H
#define BARLINE_FORWARD_CORE_H

#include "core/core.h"

/*
 * above the longest timeout of one try (BL_RTX_MAX_NS): never after a single loss, however slow the
 * machine
 */
#define BL_FORWARD_NS 300000000ULL
/* with one frame in ten lost each way, 1 of 4000 comes so far */
#define BL_FORWARD_TRIES   5
#define BL_FORWARD_KEEP_NS 5000000000ULL
#define BL_FORWARD_TURN_NS 100000000ULL
#define BL_FORWARD_TURN    64

/**
 * struct bl_fwd_turn - what an endpoint has handed over. @start_ns: of the present turn. @n: in
 * it.
 */
struct bl_fwd_turn {
	__u64 start_ns;
	__u32 n;
};

/**
 * bl_fwd_due - whether a frame that is sent now, for the @tries-th time since @first_ns, goes by
 * way of the controller too. *@until: of its destination: until when what is sent again goes that
 * way without waiting. @last: when it did last; 0: never.
 */
BL_CORE int bl_fwd_due(__u64 *until, __u64 first_ns, __u32 tries, __u64 last, __u64 now)
{
	int hard = tries >= BL_FORWARD_TRIES && now - first_ns >= BL_FORWARD_NS;

	if (hard)
		*until = now + BL_FORWARD_KEEP_NS;
	return (hard || (tries > 1 && now < *until)) && (!last || now - last >= BL_FORWARD_TURN_NS);
}

/** bl_fwd_take - whether one more may be handed over. */
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
