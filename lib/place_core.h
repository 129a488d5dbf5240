/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a best-effort frame's number can be one that its sender has outstanding, and how a
 * receiver that was misled finds back.
 *
 * A sender that keeps the rules (tx.c) never has more than BL_AHEAD_MAX frames beyond the last
 * number that a CREDIT told it: its window is at most BL_WINDOW_MAX frames, and a stage that leaves
 * when nothing is on the way has at most BL_STAGE_FRAMES. It goes on counting only after a CREDIT,
 * also when it has given up a receiver and finds it again. What a CREDIT tells is never above what
 * the receiver expects next. So every frame is less than BL_AHEAD_MAX above that, and a PROBE,
 * whose number is the next one, at most so far.
 *
 * A frame beyond is odd: refused, counted, and remembered. A second one that would follow it shows
 * that somebody counts there: then the receiver goes there. So a single frame changes nothing; two
 * that fit each other may mislead a receiver, until the next two of the real sender lead it back.
 *
 * Example: 100 is expected. 355 fits, 356 is odd. 99 is old, a duplicate. 5000 is odd, and so is
 * 5000 again; 5001 after it, or 5040, makes the receiver expect 5002, or 5041. Then the real
 * sender's 100 is odd, and its 101 is taken.
 */
#ifndef BARLINE_PLACE_CORE_H
#define BARLINE_PLACE_CORE_H

#include "core/core.h"

#define BL_AHEAD_MAX 256  /* frames; the greater one of BL_WINDOW_MAX and BL_STAGE_FRAMES */
#define BL_OLD_MAX   1024 /* frames; so far below what is expected a number is a duplicate's */

enum bl_place {
	BL_PLACE_FITS,
	BL_PLACE_OLD,
	BL_PLACE_ODD,
	BL_PLACE_ANEW, /* odd, and follows the odd one before: the receiver goes there */
};

/**
 * struct bl_odd - the last odd frame. @next: what would follow it. @known: 0: there was none since
 * a frame fitted.
 */
struct bl_odd {
	__u32 next;
	__u32 known;
};

/**
 * bl_place_classify - where @psn is when @expected is the next one. @next: the number after it;
 * @psn itself for a PROBE.
 */
BL_CORE enum bl_place bl_place_classify(struct bl_odd *odd, __u32 expected, __u32 psn, __u32 next)
{
	__u32 ahead = psn - expected;

	if (ahead < BL_AHEAD_MAX || (ahead == BL_AHEAD_MAX && next == psn)) {
		odd->known = 0;
		return BL_PLACE_FITS;
	}
	if (-ahead <= BL_OLD_MAX)
		return BL_PLACE_OLD;
	if (odd->known && psn - odd->next < BL_AHEAD_MAX) {
		odd->known = 0;
		return BL_PLACE_ANEW;
	}
	odd->known = 1;
	odd->next = next;
	return BL_PLACE_ODD;
}

#endif
