/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Timeslots as bitmaps (Fastpass section 3.1): a window is a row of 64-bit words, bit i of word j
 * is slot 64 j + i, and 1 means that the slot is free. A pair may use a slot if both its ends have
 * it free, so the slots of a pair are one AND, and the first of them is one count of trailing
 * zeros.
 *
 * Example, two words: the source is free in slots 1, 3, 70 and 71, the destination in 0, 3, 70 and
 * 71. They have 3, 70 and 71 in common. If three slots are wanted, word 0 gives one of them (mask
 * 0x8) and word 1 two (mask 0xc0), and they are cleared in both windows. If 2 were wanted, 3 and 70
 * would be given: always the lowest, since slots that stay free far ahead suit every pair, and
 * holes in the near ones suit none.
 *
 * A port that carries c packets per slot counts in bit planes: plane k holds bit k of the count of
 * every slot. So 64 slots are decremented together, in as many steps as the count has bits.
 *
 * This file does not decide which pair is served next: see arbiter/.
 */
#ifndef BARLINE_TIMESLOT_CORE_H
#define BARLINE_TIMESLOT_CORE_H

#include "core/core.h"

#define BL_WORD_SLOTS   64u
#define BL_WINDOW_WORDS 8u /* one cache line */
#define BL_PLANES_MAX   12u
#define BL_SLOT_NONE    (~0u)

BL_CORE __u32 bl_count64(__u64 w)
{
	return (__u32)__builtin_popcountll(w);
}

/**
 * bl_lowest64 - a mask of the @k lowest set bits of @w; all of them if there are no more than @k.
 */
BL_CORE __u64 bl_lowest64(__u64 w, __u32 k)
{
	__u64 rest = w;
	__u32 i;

	for (i = 0; i < BL_WORD_SLOTS; i++) {
		if (i >= k || !rest)
			break;
		rest &= rest - 1;
	}
	return w ^ rest;
}

/**
 * bl_first64 - index of the lowest set bit of @w, which is not 0. BPF has no instruction that
 * counts trailing zeros; there a count of ones is arithmetic.
 */
BL_CORE __u32 bl_first64(__u64 w)
{
	return bl_count64((w & -w) - 1);
}

/**
 * bl_window_first - the first slot that is free in both windows; BL_SLOT_NONE: none. @words: at
 * most BL_WINDOW_WORDS.
 */
BL_CORE __u32 bl_window_first(const __u64 *a, const __u64 *b, __u32 words)
{
	__u32 j;

	for (j = 0; j < BL_WINDOW_WORDS; j++) {
		if (j >= words)
			break;
		if (a[j] & b[j])
			return j * BL_WORD_SLOTS + bl_first64(a[j] & b[j]);
	}
	return BL_SLOT_NONE;
}

/**
 * bl_window_take - take the @k lowest slots that are free in both windows, or as many as there are.
 * @take: set to the slots taken, word by word. Returns how many were taken.
 */
BL_CORE __u32 bl_window_take(__u64 *a, __u64 *b, __u32 words, __u32 k, __u64 *take)
{
	__u32 left = k, j;

	for (j = 0; j < BL_WINDOW_WORDS; j++) {
		if (j >= words)
			break;
		take[j] = bl_lowest64(a[j] & b[j], left);
		a[j] ^= take[j];
		b[j] ^= take[j];
		left -= bl_count64(take[j]);
	}
	return k - left;
}

/**
 * bl_planes_fill - give @cap packets to each of the 64 slots of one word of a port. @stride: words
 * from one plane to the next. Returns the mask of free slots.
 */
BL_CORE __u64 bl_planes_fill(__u64 *plane, __u32 planes, __u32 stride, __u32 cap)
{
	__u32 k;

	for (k = 0; k < BL_PLANES_MAX; k++) {
		if (k >= planes)
			break;
		plane[k * stride] = cap >> k & 1 ? ~0ULL : 0;
	}
	return cap ? ~0ULL : 0;
}

/**
 * bl_planes_sub - take one packet from each slot of @take, all of which have one. Returns the mask
 * of slots that still have some.
 */
BL_CORE __u64 bl_planes_sub(__u64 *plane, __u32 planes, __u32 stride, __u64 take)
{
	__u64 borrow = take, any = 0;
	__u32 k;

	for (k = 0; k < BL_PLANES_MAX; k++) {
		__u64 p;

		if (k >= planes)
			break;
		p = plane[k * stride];
		plane[k * stride] = p ^ borrow;
		borrow &= ~p;
		any |= plane[k * stride];
	}
	return any;
}

/** bl_planes_count - packets that the slots of @open can still carry together. */
BL_CORE __u32 bl_planes_count(const __u64 *plane, __u32 planes, __u32 stride, __u64 open)
{
	__u32 k, n = 0;

	for (k = 0; k < BL_PLANES_MAX; k++) {
		if (k >= planes)
			break;
		n += bl_count64(plane[k * stride] & open) << k;
	}
	return n;
}

/**
 * bl_fair_share - the share of @units that each of n waiting flows may have without taking from
 * another: floor(units / n), but at least one.
 * @recip: ceil(2^BL_RECIP_BITS / n); exact while units * n < 2^BL_RECIP_BITS.
 */
#define BL_RECIP_BITS 32
BL_CORE __u32 bl_fair_share(__u32 units, __u64 recip)
{
	__u32 q = (__u32)(units * recip >> BL_RECIP_BITS);

	return q ? q : 1;
}

#endif
