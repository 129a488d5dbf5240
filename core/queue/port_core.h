/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which queue of a metered port is next: strict priority over enum bl_class.
 *
 * A port's queues lie in nine places 2 KB apart. In order not to touch all of them, a word per port
 * has one bit per class. A bit may be set although its queue is empty, but never the other way
 * round. Whoever puts a frame sets the bit afterwards, by an atomic operation. The pacer that has
 * emptied a queue clears the bit, by an atomic operation, and then looks at the queue once more. If
 * a frame was put in between, either the pacer sees it, or its bit is set after the clearing.
 *
 * Example: bits 0x81 are CONTROL and DATA, and the frame in CONTROL is sent first. If that was the
 * last one there, 0x80 is left.
 *
 * This file neither takes frames out of queues nor reads the clock.
 */
#ifndef BARLINE_PORT_CORE_H
#define BARLINE_PORT_CORE_H

#include "core/queue/queue_core.h"

_Static_assert(BL_CL_COUNT == 9 && BL_CL_DATA == 7, "CONTROL, six token classes, DATA, UNSCHED");

/** bl_busy_first - the best class in @busy, which is not 0. */
BL_CORE __u32 bl_busy_first(__u64 busy)
{
	__u32 b = (__u32)busy;

	return bl_count_ones((b & -b) - 1);
}

BL_CORE void bl_busy_set(__u64 *busy, __u32 cls)
{
	__u64 was = __sync_fetch_and_or(busy, 1ULL << cls);

	/*
	 * the result is used, since the compiler would else choose an instruction that is not a
	 * barrier on every machine
	 */
	__asm__ volatile("" : : "r"(was));
}

/** bl_busy_clear - clear the bit of class @cls, whose queue @q the pacer has found empty. */
BL_CORE void bl_busy_clear(__u64 *busy, __u32 cls, const struct bl_queue *q)
{
	__u64 was = __sync_fetch_and_and(busy, ~(1ULL << cls));

	__asm__ volatile("" : : "r"(was)); /* as above */
	if (bl_ring_len(q))
		bl_busy_set(busy, cls);
}

/**
 * bl_port_next_ns - when the pacer looks at this port again after a frame: when the link is free
 * (@free), if a class has frames; else BL_DUE_NEVER.
 */
BL_CORE __u64 bl_port_next_ns(const __u64 *busy, __u64 free)
{
	/* after bl_due_take(): a frame that is not seen here finds BL_DUE_NEVER */
	return BL_READ_ONCE(*busy) ? free : BL_DUE_NEVER;
}

#endif
