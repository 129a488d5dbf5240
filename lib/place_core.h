/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a best-effort frame's number can be one that its sender has outstanding, and how a
 * receiver that was misled recovers.
 *
 * A sender that keeps the rules (tx.c) never has more than BL_AHEAD_MAX frames beyond the number in
 * its last CREDIT: its window is at most BL_WINDOW_MAX frames, and a stage that leaves when nothing
 * is outstanding has at most BL_STAGE_FRAMES. It continues only after a CREDIT, also when it has
 * given up a receiver and finds it again. The number in a CREDIT is never above what the receiver
 * expects next. So every frame is less than BL_AHEAD_MAX above that, and a PROBE, whose number is
 * the next one, is at most that far above.
 *
 * A frame beyond is odd: it is refused, counted, and remembered. A second frame that could follow
 * it shows that a sender counts there, so the receiver goes there. So a single forged frame changes
 * nothing; two that fit each other may mislead a receiver until the next two frames of the real
 * sender lead it back.
 *
 * Example: 100 is expected. 355 fits, 356 is odd. 99 is old, a duplicate. 5000 is odd, and so is
 * 5000 again; 5001 after it, or 5040, makes the receiver expect 5002, or 5041. Then the real
 * sender's 100 is odd, and its 101 is accepted.
 */
#ifndef BARLINE_PLACE_CORE_H
#define BARLINE_PLACE_CORE_H

#include "core/core.h"

#define BL_AHEAD_MAX 256 /* frames; the greater of BL_WINDOW_MAX and BL_STAGE_FRAMES */
/* frames; a number at most this far below the expected one is a duplicate */
#define BL_OLD_MAX 1024

enum bl_place {
	BL_PLACE_FITS,
	BL_PLACE_OLD,
	BL_PLACE_ODD,
	BL_PLACE_ANEW, /* odd, and follows the previous odd frame: the receiver goes there */
};

/** struct bl_odd - the last odd frame. */
struct bl_odd {
	__u32 next;  /* number that would follow it */
	__u32 known; /* 0: there was none since a frame fitted */
};

/**
 * bl_place_classify - classify frame @psn when @expected is the next number. @next: the number
 * after the frame; @psn itself for a PROBE.
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
