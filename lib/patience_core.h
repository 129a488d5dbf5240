/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long a destination may be silent before it is given up. On a fast link eight PROBEs without
 * an answer, 2 s, suffice. On a link of 200 kbit/s a window of 37 full frames takes 2.2 s, and the
 * windows of eight receivers take 18 s; a PROBE waits behind them, and so does the answer. So a
 * destination that was slow to answer lately gets more time, and so does every destination while
 * frames of this endpoint have not left the host.
 *
 * Example: the longest silence between CREDITs was 1.5 s. The destination is not given up before 6
 * s. When CREDITs come every 0.1 s again, an eighth of the 1.5 s is forgotten with each: 22 CREDITs
 * later it is below 0.1 s.
 */
#ifndef BARLINE_PATIENCE_CORE_H
#define BARLINE_PATIENCE_CORE_H

#include "core/core.h"

#define BL_PATIENCE_TIMES  4
#define BL_PATIENCE_MAX_NS 20000000000ULL /* whatever the reason */

/** struct bl_patience - how slow a destination is to answer. */
struct bl_patience {
	__u64 since_ns; /* last answer, or first frame after none was outstanding */
	__u64 slow_ns;  /* longest silence lately that an answer has ended */
};

/** bl_patience_begin - frames are outstanding from @now on. */
BL_CORE void bl_patience_begin(struct bl_patience *p, __u64 now)
{
	p->since_ns = now;
}

/** bl_patience_heard - an answer came. @owed: frames were outstanding. */
BL_CORE void bl_patience_heard(struct bl_patience *p, __u64 now, int owed)
{
	__u64 silence = owed && now > p->since_ns ? now - p->since_ns : 0;

	p->since_ns = now;
	if (owed)
		p->slow_ns = bl_max64(silence, p->slow_ns - p->slow_ns / 8);
}

/** bl_patience_saw - note a silence that was observed in another way. */
BL_CORE void bl_patience_saw(struct bl_patience *p, __u64 silence)
{
	p->slow_ns = bl_max64(p->slow_ns, silence);
}

/**
 * bl_patience_over - whether a destination that has not answered by @now is given up. @unsent:
 * frames of ours are still in this host.
 */
BL_CORE int bl_patience_over(const struct bl_patience *p, __u64 now, int unsent)
{
	__u64 silence = now > p->since_ns ? now - p->since_ns : 0;

	if (silence >= BL_PATIENCE_MAX_NS)
		return 1;
	return !unsent && silence >= BL_PATIENCE_TIMES * p->slow_ns;
}

#endif
