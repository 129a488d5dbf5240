/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inputs that talk but whose barrier stays behind: which barriers count as fresh, and how long an
 * input that was excluded for lagging must be fresh before it may join again.
 *
 * The minimum of the barriers waits for its slowest input, so an input that sends an old barrier
 * holds every output back as long as it talks. The switch therefore excludes such an input as it
 * excludes a silent one (bl_port_expire()). This does not break a promise: an output's barrier
 * never passes that of an input that is in, and what an excluded input sends below it is counted,
 * and judged by the receivers.
 *
 * Example with lag_max = 50 ms, in watch time: port 3 sends B = 1000 ms for ever. Its frames are
 * fresh until the clock says 1050 ms. The other ports are fresh at 1100 ms as well, more than 50 ms
 * later, and port 3 is excluded: it has held the rack for 100 ms. At 1200 ms it sends B = 1200 ms
 * and is fresh again; it may join after 50 ms of that, at 1250 ms. If it lags again soon after, it
 * must be fresh for 100 ms the next time, then for 200 ms, and so on up to 12.8 s. Each minute
 * without an exclusion halves that again. So an input that comes and goes on purpose holds the
 * others back by more than lag_max for less than a hundredth of the time. One that lags and falls
 * silent before it is excluded has lagged as well (bl_reg_lagged()). An input that is always behind
 * by less than lag_max is allowed to be: it delays the others by that.
 *
 * Not here: silence (core/order/barrier_core.h).
 */
#ifndef BARLINE_LAG_CORE_H
#define BARLINE_LAG_CORE_H

#include "maps/switch_abi.h"
#include "core/core.h"
#include "core/order/barrier_core.h"

/* Exclusions in a row that are counted; the wait doubles with each after the first. */
#define BL_LAG_TIMES 9
/* One exclusion is forgotten after this many times lag_max without any. */
#define BL_LAG_FORGIVE 1200
/*
 * A switch below or above repeats what its own inputs hold back until it excludes them, and must
 * not be excluded for that: it may lag this many times longer than a host.
 */
#define BL_LAG_SWITCHES 4

/** bl_lag_limit - how far an input of this role may lag, ns; 0: no limit. */
BL_CORE __u64 bl_lag_limit(__u64 lag_max, __u32 role)
{
	return role == BL_PORT_HOST ? lag_max : BL_LAG_SWITCHES * lag_max;
}

/** bl_fresh_above - the least barrier that does not lag at bus time @now; 0: none does. */
BL_CORE __u64 bl_fresh_above(__u64 now, __u64 limit)
{
	return limit ? bl_time_before(now, limit) : 0;
}

/**
 * bl_lag_before - the watch time before which a lane must have been fresh last to lag; 0: none
 * lags. @freshest: when the lane was that was fresh last.
 *
 * Lagging is measured against other lanes, and not against the clock alone: a node that stood still
 * finds all its inputs behind, and they are not to blame.
 */
BL_CORE __u64 bl_lag_before(__u64 freshest, __u64 limit)
{
	return bl_fresh_above(freshest, limit);
}

/**
 * bl_lane_vouches - whether another lane has found one of its inputs fresh, now: the clock of this
 * switch is right then, and an input that lags is itself to blame.
 * @scan: watch time of the other lane at its last search for silent inputs; 0: none yet.
 * @freshest: the other lane's watch time when one of its inputs was fresh last; @scan if that was
 *     found by the last search.
 * @then: bus time when the other lane read the clock last. @now: bus time of this lane. A lane on
 *     which nobody was heard for @dead_after says nothing about the present.
 *
 * Lanes have watch times of their own, which cannot be compared: only that it was at the last
 * search is taken from the other lane, and that counts as the present in this one.
 */
BL_CORE int bl_lane_vouches(__u64 scan, __u64 freshest, __u64 then, __u64 now, __u64 dead_after)
{
	return scan && scan == freshest && then + dead_after >= now && now + dead_after >= then;
}

/** bl_lag_wait - how long an input must be fresh before it may join, ns of watch time. */
BL_CORE __u64 bl_lag_wait(const struct bl_lag *l, __u64 limit)
{
	return l->times ? limit << ((l->times - 1) & 15) : 0;
}

/**
 * bl_lag_out - note that the input was excluded for lagging at watch time @watch. @limit is not 0.
 */
BL_CORE void bl_lag_out(struct bl_lag *l, __u64 watch, __u64 limit)
{
	__u64 good = (watch - l->out_ns) / (BL_LAG_FORGIVE * limit);

	l->times -= (__u32)bl_min64(good, l->times);
	if (l->times < BL_LAG_TIMES)
		l->times++;
	l->out_ns = watch;
	l->since_ns = 0;
}

/**
 * bl_lag_may_join - whether the lag of an input that is not in B permits it to join. To be called
 * for each frame of such an input. @fresh: 1: the frame's barrier was within half of @limit of the
 * clock.
 */
BL_CORE int bl_lag_may_join(struct bl_lag *l, int fresh, __u64 watch, __u64 limit)
{
	if (!l->times)
		return 1;
	if (!fresh) {
		l->since_ns = 0;
		return 0;
	}
	if (!l->since_ns)
		l->since_ns = watch;
	return watch - l->since_ns >= bl_lag_wait(l, limit);
}

#endif
