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
 * A frame beyond is odd: it is refused, counted, and remembered, and its sender is challenged
 * (proof.h). An answer to the challenge leads the receiver to the sender's place at once. A sender
 * of a version that answers no challenge leads it there by frames that follow each other: the
 * receiver goes there when the first of them came BL_ODD_NS ago and no frame has fitted since. So
 * forged frames change nothing while the real sender sends at least every BL_ODD_NS, and where the
 * sender has proved itself they change nothing at all.
 *
 * Example: 100 is expected. 355 fits, 356 is odd. 99 is old, a duplicate. 5000 is odd, and so is
 * 5001 after it; if 100 comes then, both are forgotten. 5002, 100 ms after 5000 and with nothing
 * that fits in between, makes the receiver expect 5003.
 */
#ifndef BARLINE_PLACE_CORE_H
#define BARLINE_PLACE_CORE_H

#include "core/core.h"

#define BL_AHEAD_MAX 256 /* frames; the greater of BL_WINDOW_MAX and BL_STAGE_FRAMES */
/* frames; a number at most this far below the expected one is a duplicate */
#define BL_OLD_MAX 1024
/* how long frames that follow each other must be the only ones of a sender */
#define BL_ODD_NS 100000000ULL

enum bl_place {
	BL_PLACE_FITS,
	BL_PLACE_OLD,
	BL_PLACE_ODD,
};

/** struct bl_odd - the odd frames since a frame fitted. */
struct bl_odd {
	__u32 next;     /* number that would follow the last one */
	__u32 known;    /* 0: there were none */
	__u64 since_ns; /* when the first of those that follow each other came */
};

/**
 * bl_place_classify - classify frame @psn when @expected is the next number. @credit: number in the
 * last CREDIT, not above @expected. @next: the number after the frame; @psn itself for a PROBE.
 */
BL_CORE enum bl_place bl_place_classify(__u32 expected, __u32 credit, __u32 psn, __u32 next)
{
	__u32 ahead = psn - expected, out = psn - credit;

	/* @ahead is the greater one only if @psn lies between the two others. */
	if (ahead <= out && out < BL_AHEAD_MAX + (next == psn))
		return BL_PLACE_FITS;
	if (-ahead - 1 < BL_OLD_MAX)
		return BL_PLACE_OLD;
	return BL_PLACE_ODD;
}

/**
 * bl_place_follow - note an odd frame. Returns whether the receiver goes to its place.
 */
BL_CORE int bl_place_follow(struct bl_odd *odd, __u32 psn, __u32 next, __u64 now)
{
	int follows = odd->known && psn - odd->next < BL_AHEAD_MAX;

	if (!follows)
		odd->since_ns = now;
	odd->known = 1;
	odd->next = next;
	return follows && now - odd->since_ns >= BL_ODD_NS;
}

#endif
