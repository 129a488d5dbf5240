/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a host of Fastpass stops waiting for an arbiter: it wants timeslots, and no arbiter has
 * answered for so long that its frames are sent without slots, as under policy none, until an
 * arbiter answers.
 *
 * Time alone proves nothing: a daemon that was stopped for an hour has not asked for an hour. So
 * the host must also have polled for an answer BL_FCP_VAIN_TURNS times, evenly over at least half
 * of the limit. Polling comes before the decision, so an answer that waits in the socket counts.
 *
 * Example, limit 1 s, so that polls count which are 62.5 ms apart: the host asks at t, and its
 * arbiters are dead. At t + 1 s it falls back. If it is stopped at t + 0.1 s and continued an hour
 * later, six more polls are needed, which take 0.3 s, and in that time a living arbiter answers.
 *
 * This file has no socket and no clock: time is an argument.
 */
#ifndef BARLINE_FCP_VAIN_CORE_H
#define BARLINE_FCP_VAIN_CORE_H

#include "core/core.h"

#define BL_FCP_VAIN_TURNS 8

/**
 * struct bl_fcp_vain - the state of one host. Used by one thread.
 */
struct bl_fcp_vain {
	__u64 since_ns; /* time of the first poll in vain; 0: none */
	__u64 last_ns;  /* time of the last poll that counted */
	__u32 turns;    /* number of polls that counted */
	__u32 fallen;   /* 1: frames are sent without slots */
};

/**
 * bl_fcp_vain_step - the host has polled for answers at @now.
 * @wants: 1: it waits for slots.
 * @answered: 1: an arbiter of its session has answered since the last poll.
 * @limit_ns: 0: it waits for ever.
 *
 * Returns 1 if @v->fallen has changed.
 */
BL_CORE int bl_fcp_vain_step(struct bl_fcp_vain *v, __u64 now, int wants, int answered,
			     __u64 limit_ns)
{
	__u32 was = v->fallen;

	if (answered || !limit_ns)
		v->fallen = 0;
	if (answered || !wants || !limit_ns) {
		v->since_ns = 0;
		v->turns = 0;
		return v->fallen != was;
	}
	if (!v->since_ns)
		v->since_ns = now ? now : 1;
	else if (now - v->last_ns < limit_ns / (2 * BL_FCP_VAIN_TURNS))
		return 0;
	v->last_ns = now;
	if (v->turns < BL_FCP_VAIN_TURNS)
		v->turns++;
	if (v->turns == BL_FCP_VAIN_TURNS && now - v->since_ns >= limit_ns)
		v->fallen = 1;
	return v->fallen != was;
}

#endif
