/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sequence numbers of one sender's PREPs: which came already, and up to which all buffers are free
 * again. They come in any order, once or several times.
 *
 * Example: 0, 1, 3 came, 0 and 3 were delivered. next = 4, done = 1: the buffer of 1 is not free. 3
 * again: a duplicate. 2 comes: new. 1 is delivered: done = 2. 2 is delivered: done = 4.
 *
 * A number that is BL_SEQ_WINDOW or more behind counts as a duplicate. No sender has as many open
 * at once: its window is not larger (maps/reliable_abi.h).
 */
#ifndef BARLINE_SEQ_CORE_H
#define BARLINE_SEQ_CORE_H

#include "core/core.h"

#define BL_SEQ_WINDOW 1024 /* a power of two */

/**
 * struct bl_seq - @next: one above the highest number that came. @done: every number before it is
 * free. @seen, @freed: a bit for each of the BL_SEQ_WINDOW numbers before @next, by number modulo
 * that.
 */
struct bl_seq {
	__u32 next;
	__u32 done;
	__u64 seen[BL_SEQ_WINDOW / 64];
	__u64 freed[BL_SEQ_WINDOW / 64];
};

BL_CORE __u64 *bl_seq_word(__u64 *bits, __u32 psn)
{
	return &bits[psn / 64 % (BL_SEQ_WINDOW / 64)];
}

/** bl_seq_begin - numbers begin at @psn. */
BL_CORE void bl_seq_begin(struct bl_seq *s, __u32 psn)
{
	int i;

	s->next = s->done = psn;
	for (i = 0; i < BL_SEQ_WINDOW / 64; i++)
		s->seen[i] = s->freed[i] = 0;
}

/** bl_seq_seen - whether @psn came, or is so old that it must have. */
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
 * bl_seq_fits - whether @psn can be of a sender that has at most @most frames beyond those whose
 * buffers it knows to be free. Numbers below are those of copies, as far down as a window reaches.
 */
BL_CORE int bl_seq_fits(const struct bl_seq *s, __u32 psn, __u32 most)
{
	return (__s32)(psn - s->next) >= -BL_SEQ_WINDOW && (__s32)(psn - s->done) < (__s32)most;
}

/* Numbers up to @psn are within reach; it is not below @next. */
BL_CORE void bl_seq_reach(struct bl_seq *s, __u32 psn)
{
	__u32 ahead = psn - s->next, i;

	/* the numbers up to this one take the places of those a window before */
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

/** bl_seq_add - @psn came. Returns 0 if it had come before. */
BL_CORE int bl_seq_add(struct bl_seq *s, __u32 psn)
{
	if (bl_seq_seen(s, psn))
		return 0;
	if ((__s32)(psn - s->next) >= 0)
		bl_seq_reach(s, psn);
	*bl_seq_word(s->seen, psn) |= 1ULL << psn % 64;
	return 1;
}

/** bl_seq_free - the buffer of @psn is free. */
BL_CORE void bl_seq_free(struct bl_seq *s, __u32 psn)
{
	if ((__s32)(psn - s->done) < 0 || (__s32)(psn - s->next) >= 0)
		return;
	*bl_seq_word(s->freed, psn) |= 1ULL << psn % 64;
	bl_seq_settle(s);
}

/**
 * bl_seq_skip - @psn will not come, or if it comes it is another frame: its buffer is free, and it
 * counts as not seen.
 */
BL_CORE void bl_seq_skip(struct bl_seq *s, __u32 psn)
{
	if ((__s32)(psn - s->next) >= 0)
		bl_seq_reach(s, psn);
	bl_seq_free(s, psn);
}

#endif
