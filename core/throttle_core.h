/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A quota of events in time, as one number: the time until which what came so far is paid for
 * (virtual scheduling, as in the generic cell rate algorithm of ATM). Nothing is dropped here: the
 * caller is told how long to wait.
 *
 * Example: an event costs 5 ms, and 40 ms may be owed. The first eight events at time 0 are free of
 * waiting, and take the time to 40. The ninth has to wait 5 ms; after one second without events,
 * eight are free again.
 */
#ifndef BARLINE_THROTTLE_CORE_H
#define BARLINE_THROTTLE_CORE_H

#include "core/core.h"

/** struct bl_throttle - All zero: nothing has come yet. */
struct bl_throttle {
	__u64 paid_ns; /* what came so far is paid for at this time */
};

/**
 * bl_throttle_take - Counts an event that costs @cost ns at time @now, ns.
 * @owed: how far ahead of @now the payment may be without waiting, ns
 *
 * Returns the time from which the next event is welcome; @now or earlier: at once.
 */
static __always_inline __u64 bl_throttle_take(struct bl_throttle *q, __u64 now, __u64 cost,
					      __u64 owed)
{
	if (q->paid_ns < now)
		q->paid_ns = now;
	q->paid_ns += cost;
	return q->paid_ns - now > owed ? q->paid_ns - owed : now;
}

#endif
