/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a host of Fastpass stops waiting for an arbiter: it wants timeslots, and nobody has answered
 * for so long that its frames go without slots, as under policy none, until somebody does.
 *
 * Time alone proves nothing: a daemon that was stopped for an hour has not asked for an hour. So
 * the host must also have looked for an answer BL_FCP_VAIN_TURNS times, evenly over half of the
 * limit at least. Looking comes before judging: an answer that waits in the socket counts.
 *
 * Example with a limit of 1 s, so that looks count which are 62.5 ms apart: the host asks at t, and
 * its arbiters are dead. At t + 1 s it falls back. Had it been stopped at t + 0.1 s and continued
 * an hour later, six more looks would be needed, which take 0.3 s, and in that time an arbiter
 * that lives answers.
 *
 * No socket and no clock: time is an argument.
 */
#ifndef BARLINE_FCP_VAIN_CORE_H
#define BARLINE_FCP_VAIN_CORE_H

#include "core/core.h"

#define BL_FCP_VAIN_TURNS 8

/**
 * struct bl_fcp_vain - of one host; one thread. @since_ns: the first look in vain; 0: none.
 * @last_ns: the last one that counted. @turns: how many counted. @fallen: frames go without slots.
 */
struct bl_fcp_vain {
	__u64 since_ns;
	__u64 last_ns;
	__u32 turns;
	__u32 fallen;
};

/**
 * bl_fcp_vain_step - the host has looked for answers at @now. @wants: it waits for slots.
 * @answered: an arbiter of its session has answered since the last look. @limit_ns: 0: it waits
 * for ever. Returns 1 if @v->fallen has changed.
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
