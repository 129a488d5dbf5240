/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A quota of events per time, as one number: the time at which the cost of all events so far is
 * paid (virtual scheduling, as in the generic cell rate algorithm of ATM). Nothing is dropped here:
 * the caller is told how long to wait. core/quota_core.h refuses events instead.
 *
 * Example: an event costs 5 ms, and 40 ms may be owed. The first eight events at time 0 need not
 * wait, and advance the number to 40 ms. The ninth has to wait 5 ms. After one second without
 * events, eight need not wait again.
 */
#ifndef BARLINE_THROTTLE_CORE_H
#define BARLINE_THROTTLE_CORE_H

#include "core/core.h"

/** struct bl_throttle - a quota. All zero: there was no event yet. */
struct bl_throttle {
	__u64 paid_ns; /* time at which the cost of all events so far is paid */
};

/**
 * bl_throttle_take - Counts an event that costs @cost ns at time @now, ns.
 * @owed: how far ahead of @now the payment may be without waiting, ns
 *
 * Returns the time from which the next event may be accepted; @now or earlier: at once.
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
