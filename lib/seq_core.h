/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sequence numbers of one sender's PREPs: which ones have come, and up to which number all buffers
 * are free again. Numbers come in any order, once or several times.
 *
 * Example: 0, 1 and 3 came, 0 and 3 were delivered. next = 4, done = 1: the buffer of 1 is not
 * free. 3 again: a duplicate. 2 comes: new. 1 is delivered: done = 2. 2 is delivered: done = 4.
 *
 * A number that is BL_SEQ_WINDOW or more behind counts as a duplicate. No sender has that many
 * frames outstanding, since its window is not larger (maps/reliable_abi.h).
 */
#ifndef BARLINE_SEQ_CORE_H
#define BARLINE_SEQ_CORE_H

#include "core/core.h"

#define BL_SEQ_WINDOW 1024 /* a power of two */

/**
 * struct bl_seq - which numbers have come. The bits are for the BL_SEQ_WINDOW numbers before @next,
 * by number modulo BL_SEQ_WINDOW.
 */
struct bl_seq {
	__u32 next;                      /* one above the highest number that has come */
	__u32 done;                      /* the buffers of all numbers before it are free */
	__u64 seen[BL_SEQ_WINDOW / 64];  /* numbers that have come */
	__u64 freed[BL_SEQ_WINDOW / 64]; /* numbers whose buffers are free */
};

BL_CORE __u64 *bl_seq_word(__u64 *bits, __u32 psn)
{
	return &bits[psn / 64 % (BL_SEQ_WINDOW / 64)];
}

/** bl_seq_begin - start at number @psn. */
BL_CORE void bl_seq_begin(struct bl_seq *s, __u32 psn)
{
	int i;

	s->next = s->done = psn;
	for (i = 0; i < BL_SEQ_WINDOW / 64; i++)
		s->seen[i] = s->freed[i] = 0;
}

/** bl_seq_seen - whether @psn has come, or is so old that it must have. */
BL_CORE int bl_seq_seen(const struct bl_seq *s, __u32 psn)
{
	__s32 ahead = (__s32)(psn - s->next);

	if (ahead >= 0)
		return 0;
	return ahead < -BL_SEQ_WINDOW || *bl_seq_word((__u64 *)s->seen, psn) >> psn % 64 & 1;
}

BL_CORE void bl_seq_settle(struct bl_seq *s)
{
	while (s->done != s->next && *bl_seq_word(s->freed, s->done) >> s->done % 64 & 1)
		s->done++;
}

/**
 * bl_seq_fits - whether @psn can come from a sender that has at most @most frames beyond those
 * whose buffers it knows to be free. Lower numbers, down to BL_SEQ_WINDOW, are those of copies.
 */
BL_CORE int bl_seq_fits(const struct bl_seq *s, __u32 psn, __u32 most)
{
	return (__s32)(psn - s->next) >= -BL_SEQ_WINDOW && (__s32)(psn - s->done) < (__s32)most;
}

/* Extend the window up to @psn, which is not below @next. */
BL_CORE void bl_seq_reach(struct bl_seq *s, __u32 psn)
{
	__u32 ahead = psn - s->next, i;

	/* Numbers up to @psn take the places of numbers one window before. */
	for (i = 0; i <= ahead && i < BL_SEQ_WINDOW; i++) {
		__u32 n = psn - i;

		*bl_seq_word(s->seen, n) &= ~(1ULL << n % 64);
		*bl_seq_word(s->freed, n) &= ~(1ULL << n % 64);
	}
	s->next = psn + 1;
	if ((__s32)(s->next - BL_SEQ_WINDOW - s->done) > 0)
		s->done = s->next - BL_SEQ_WINDOW;
	bl_seq_settle(s);
}

/** bl_seq_add - note that @psn has come. Returns 0 if it had come before. */
BL_CORE int bl_seq_add(struct bl_seq *s, __u32 psn)
{
	if (bl_seq_seen(s, psn))
		return 0;
	if ((__s32)(psn - s->next) >= 0)
		bl_seq_reach(s, psn);
	*bl_seq_word(s->seen, psn) |= 1ULL << psn % 64;
	return 1;
}

/** bl_seq_free - note that the buffer of @psn is free. */
BL_CORE void bl_seq_free(struct bl_seq *s, __u32 psn)
{
	if ((__s32)(psn - s->done) < 0 || (__s32)(psn - s->next) >= 0)
		return;
	*bl_seq_word(s->freed, psn) |= 1ULL << psn % 64;
	bl_seq_settle(s);
}

/**
 * bl_seq_skip - note that @psn will not come, or that another frame will come with this number: its
 * buffer is free, and it counts as not seen.
 */
BL_CORE void bl_seq_skip(struct bl_seq *s, __u32 psn)
{
	if ((__s32)(psn - s->next) >= 0)
		bl_seq_reach(s, psn);
	bl_seq_free(s, psn);
}

#endif
