/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long a destination may be silent before it is given up. Eight probes without an answer, 2 s,
 * are enough of a link that is fast. On one of 200 kbit/s a window of 37 full frames takes 2.2 s,
 * and that of eight receivers 18 s: a probe waits behind it, and so does the answer. So who was
 * slow to answer lately is waited for longer, and so is everybody while frames of this endpoint
 * have not left the host.
 *
 * Example: the longest silence between credits was 1.5 s. The next one ends nothing before 6 s.
 * When credits come every 0.1 s again, an eighth of the 1.5 s is forgotten with each: 22 credits
 * later it is below 0.1 s.
 */
#ifndef BARLINE_PATIENCE_CORE_H
#define BARLINE_PATIENCE_CORE_H

#include "core/core.h"

#define BL_PATIENCE_TIMES  4
#define BL_PATIENCE_MAX_NS 20000000000ULL /* whatever the reason */

/**
 * struct bl_patience - @since_ns: CLOCK_MONOTONIC of the last answer, or of the first frame after
 * none was outstanding. @slow_ns: the longest silence lately that an answer has ended.
 */
struct bl_patience {
	__u64 since_ns;
	__u64 slow_ns;
};

/** bl_patience_begin - something is outstanding from @now on. */
BL_CORE void bl_patience_begin(struct bl_patience *p, __u64 now)
{
	p->since_ns = now;
}

/** bl_patience_heard - an answer came. @owed: something was outstanding. */
BL_CORE void bl_patience_heard(struct bl_patience *p, __u64 now, int owed)
{
	__u64 silence = owed && now > p->since_ns ? now - p->since_ns : 0;

	p->since_ns = now;
	if (owed)
		p->slow_ns = bl_max64(silence, p->slow_ns - p->slow_ns / 8);
}

/** bl_patience_saw - what else is known of how late answers are. */
BL_CORE void bl_patience_saw(struct bl_patience *p, __u64 silence)
{
	p->slow_ns = bl_max64(p->slow_ns, silence);
}

/**
 * bl_patience_over - who has not answered by @now is given up. @unsent: frames of ours are still
 * in this host.
 */
BL_CORE int bl_patience_over(const struct bl_patience *p, __u64 now, int unsent)
{
	__u64 silence = now > p->since_ns ? now - p->since_ns : 0;

	if (silence >= BL_PATIENCE_MAX_NS)
		return 1;
	return !unsent && silence >= BL_PATIENCE_TIMES * p->slow_ns;
}

#endif
