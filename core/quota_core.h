/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A quota of frames per time: the generic cell rate algorithm (ITU-T I.371, the virtual scheduling
 * algorithm), in one word. The word is the theoretical arrival time of the next frame: it advances
 * by the gap with each frame, and a frame is within the quota while the word is not further ahead
 * of the clock than the burst.
 *
 * Example with a gap of 2 us (500 000 frames a second) and a burst of 8 us: of six frames at time
 * 1000 us, five pass and leave the word at 1010 us; the sixth would find it 10 us ahead and does
 * not pass. At 1002 us the word is 8 us ahead, and one more passes.
 */
#ifndef BARLINE_QUOTA_CORE_H
#define BARLINE_QUOTA_CORE_H

#include "core/core.h"

/**
 * bl_quota_take - count one frame at time @now.
 * @word: the theoretical arrival time, ns; 0 at first.
 * @now: ns, of the clock in which @word is kept.
 * @gap: ns from frame to frame at the quota's rate; 0: there is no quota.
 * @burst: ns that the word may be ahead of @now.
 * Returns 1, or 0 if the frame exceeds the quota; then the word is unchanged.
 */
BL_CORE int bl_quota_take(__u64 *word, __u64 now, __u64 gap, __u64 burst)
{
	__u64 w = *word;

	if (!gap)
		return 1;
	/* Further ahead than frames can move the word: the clock was set back. */
	if (w < now || w - now > burst + gap)
		w = now;
	if (w - now > burst)
		return 0;
	*word = w + gap;
	return 1;
}

#endif
