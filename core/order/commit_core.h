/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two-phase commit: the window of reliable sends, and what it allows the host to commit (1Pipe
 * section 5.1).
 *
 * Example: frames 5, 6 and 7 of an endpoint are open, with timestamps 100, 100 and 130; its state
 * is 8 << 32 | 5. Nothing is in flight, and the host promises 140: C = min(140, 100) = 100. The ACK
 * of frame 6 closes slot 6, and nothing else changes. The ACK of frame 5 closes slot 5 and moves
 * the head to 7: C = 130. The ACK of frame 7 empties the window: C = 140.
 *
 * Whoever closes a slot then moves the head as far as it goes. Two that do so at the same time
 * cannot both leave it behind: each closes its slot, with a full barrier, before it reads the slot
 * at the head.
 *
 * Shared memory is passed as pointers; this file uses no maps and reads no clock.
 */
#ifndef BARLINE_COMMIT_CORE_H
#define BARLINE_COMMIT_CORE_H

#include "maps/reliable_abi.h"
#include "maps/switch_abi.h"
#include "core/core.h"

/*
 * Attempts to read a head that does not move in between; after these the caller sends the last C
 * that it knows.
 */
#define BL_COMMIT_TRIES 3

BL_CORE __u32 bl_rwin_head(__u64 state)
{
	return (__u32)state;
}

BL_CORE __u32 bl_rwin_tail(__u64 state)
{
	return (__u32)(state >> 32);
}

/**
 * bl_rwin_used - frames from head to tail: not acknowledged, or behind a frame that is not. Numbers
 * wrap.
 */
BL_CORE __u32 bl_rwin_used(__u64 state)
{
	return bl_rwin_tail(state) - bl_rwin_head(state);
}

/** bl_rwin_next - @state with the head one further; the carry does not reach the tail. */
BL_CORE __u64 bl_rwin_next(__u64 state)
{
	return (state & ~0xffffffffULL) | (__u32)(state + 1);
}

/** bl_rwin_added - the value to add to the state for @n more frames. */
BL_CORE __u64 bl_rwin_added(__u32 n)
{
	return (__u64)n << 32;
}

/** bl_rwin_slot - the slot of frame @n. */
BL_CORE struct bl_rslot *bl_rwin_slot(struct bl_rwin *w, __u32 n)
{
	return &w->slot[n & (BL_RWIN - 1)];
}

/**
 * struct bl_ack - the contents of an ACK. Filled in by the program that received it.
 */
struct bl_ack {
	__u64 ts;          /* as on the wire, 48 bits */
	__u32 slot;        /* of the PREP */
	__u32 psn;         /* of the PREP */
	__u16 port;        /* UDP port of the sender of the ACK, host order */
	__u16 life;        /* of the PREP */
	__u16 copy;        /* how often the frame had been sent before the copy that is answered */
	const __u64 *addr; /* address of the sender of the ACK, as two words in memory order */
};

/**
 * bl_ack_fits - whether the slot holds the frame that @a answers. A slot that is being rewritten
 * fits no ACK, since its number differs.
 */
BL_CORE int bl_ack_fits(const struct bl_rslot *s, const struct bl_ack *a)
{
	const __u64 *addr = (const __u64 *)s->addr;

	return (__u32)BL_READ_ONCE(s->wait) == a->slot && (s->ts & BL_TS_MASK) == a->ts &&
	       s->psn == a->psn && s->port == a->port && s->life == a->life &&
	       addr[0] == a->addr[0] && addr[1] == a->addr[1];
}

/**
 * bl_rslot_close - mark frame @n as acknowledged or recalled. Returns 1 if the slot was open for
 * it. A full barrier before the head is read; pairs with bl_rwin_step().
 */
BL_CORE int bl_rslot_close(struct bl_rslot *s, __u32 n)
{
	return __sync_val_compare_and_swap(&s->wait, BL_RSLOT_OPEN | n, (__u64)n) ==
	       (BL_RSLOT_OPEN | n);
}

/**
 * bl_rslot_lock - prepare the recall of frame @n: no ACK closes its slot any more, and the head
 * stays in front of it. Returns 1 if the slot was open for it.
 */
BL_CORE int bl_rslot_lock(struct bl_rslot *s, __u32 n)
{
	return __sync_val_compare_and_swap(&s->wait, BL_RSLOT_OPEN | n, BL_RSLOT_LOCKED | n) ==
	       (BL_RSLOT_OPEN | n);
}

/**
 * bl_rwin_step - move the head over one closed slot. Returns 1: call again; 0: the head is where it
 * has to be.
 *
 * A call that has read an old word returns 0 as well: whoever moved the head had closed its own
 * slot before, and goes on by itself.
 */
BL_CORE int bl_rwin_step(__u64 *state, struct bl_rwin *w)
{
	__u64 s = BL_READ_ONCE(*state);
	__u32 head = bl_rwin_head(s);

	if (!bl_rwin_used(s) || BL_READ_ONCE(bl_rwin_slot(w, head)->wait) != (__u64)head)
		return 0;
	__sync_val_compare_and_swap(state, s, bl_rwin_next(s));
	return 1;
}

/**
 * bl_rwin_freeze - lock the slot at the head of a dead process's window, so that no ACK moves the
 * head any more. Returns 1: *@ts is the slot's timestamp, which C will not pass until the window is
 * cleared; 0: nothing is open.
 *
 * A slot that an ACK closes at this moment is stepped over. The process adds no frames any more, so
 * this ends after at most as many steps as frames are open.
 */
BL_CORE int bl_rwin_freeze(__u64 *state, struct bl_rwin *w, __u64 *ts)
{
	int i;

	for (i = 0; i <= BL_RWIN; i++) {
		__u64 s = BL_READ_ONCE(*state);
		__u32 head = bl_rwin_head(s);
		struct bl_rslot *slot = bl_rwin_slot(w, head);

		if (!bl_rwin_used(s))
			return 0;
		*ts = BL_READ_ONCE(slot->ts);
		/* locked: its process was recalling it */
		if (BL_READ_ONCE(slot->wait) == (BL_RSLOT_LOCKED | head) ||
		    bl_rslot_lock(slot, head))
			return 1;
		bl_rwin_step(state, w);
	}
	return 1;
}

/**
 * bl_rwin_commit - the greatest C that a window allows: the timestamp at the head, or BL_TIME_NONE
 * if it is empty. @last is the highest C that was ever sent; it is still true, and the result where
 * the head does not stand still.
 *
 * The slot at the head cannot be rewritten before the head has passed it, so what was read between
 * two reads of the same head belonged to that head.
 */
BL_CORE __u64 bl_rwin_commit(const __u64 *state, struct bl_rwin *w, __u64 last)
{
	int i;

	for (i = 0; i < BL_COMMIT_TRIES; i++) {
		__u64 s = BL_READ_ONCE(*state), ts;

		if (!bl_rwin_used(s))
			return BL_TIME_NONE;
		ts = BL_READ_ONCE(bl_rwin_slot(w, bl_rwin_head(s))->ts);
		BL_BARRIER(); /* loads stay in order on x86 */
		if (bl_rwin_head(BL_READ_ONCE(*state)) == bl_rwin_head(s))
			return ts;
	}
	return last;
}

/**
 * bl_commit_wire - C as it is sent at @now: a C that is so old that 48 bits do not reach it is sent
 * as one that promises nothing.
 */
BL_CORE __u64 bl_commit_wire(__u64 c, __u64 now)
{
	return bl_max64(c, now - BL_TS_OLD);
}

#endif
