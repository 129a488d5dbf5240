/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two-phase commit: the window of reliable sends, and what it lets the host commit (1Pipe 5.1).
 *
 * Example: frames 5, 6, 7 of an endpoint are open, with timestamps 100, 100, 130; its word says 8
 * << 32 | 5. Nothing of it is in flight, and the host promises 140: C = min(140, 100) = 100. The
 * ACK of 6 closes slot 6, and nothing else changes. The ACK of 5 closes slot 5 and takes head to 7:
 * C = 130. The ACK of 7 empties the window: C = 140.
 *
 * Who closes a slot then moves head as far as it goes; two that do so at once cannot both leave it
 * behind: each closes its slot (a full barrier) before it looks at head's slot.
 *
 * Shared memory comes as pointers; no maps, no clock.
 */
#ifndef BARLINE_COMMIT_CORE_H
#define BARLINE_COMMIT_CORE_H

#include "maps/reliable_abi.h"
#include "maps/switch_abi.h"
#include "core/core.h"

/*
 * a head that moves between two looks at it moves on; who has not seen it stand still sends what he
 * knows
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
 * bl_rwin_used - frames from head to tail: not acknowledged, or behind one that is not. Numbers
 * wrap.
 */
BL_CORE __u32 bl_rwin_used(__u64 state)
{
	return bl_rwin_tail(state) - bl_rwin_head(state);
}

/** bl_rwin_next - the word with head one further; the carry does not reach the tail. */
BL_CORE __u64 bl_rwin_next(__u64 state)
{
	return (state & ~0xffffffffULL) | (__u32)(state + 1);
}

/** bl_rwin_added - what is added to the word for @n more frames. */
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
 * struct bl_ack - what an ACK says. @ts: as on the wire. @slot, @psn, @life: of the PREP. @port:
 * host order; @addr: of who sent the ACK, as two words in memory order.
 * @copy: how many times the frame had been sent before the copy that is answered.
 */
struct bl_ack {
	__u64 ts;
	__u32 slot;
	__u32 psn;
	__u16 port;
	__u16 life;
	__u16 copy;
	const __u64 *addr;
};

/**
 * bl_ack_fits - whether the slot holds the frame that @a answers. A slot that is being written
 * anew fits nobody: its number is another one.
 */
BL_CORE int bl_ack_fits(const struct bl_rslot *s, const struct bl_ack *a)
{
	const __u64 *addr = (const __u64 *)s->addr;

	return (__u32)BL_READ_ONCE(s->wait) == a->slot && (s->ts & BL_TS_MASK) == a->ts &&
	       s->psn == a->psn && s->port == a->port && s->life == a->life &&
	       addr[0] == a->addr[0] && addr[1] == a->addr[1];
}

/**
 * bl_rslot_close - frame @n is acknowledged, or recalled. Returns 1 if the slot was open for it.
 * Pairs with bl_rwin_step(): a full barrier before head is looked at.
 */
BL_CORE int bl_rslot_close(struct bl_rslot *s, __u32 n)
{
	return __sync_val_compare_and_swap(&s->wait, BL_RSLOT_OPEN | n, (__u64)n) ==
	       (BL_RSLOT_OPEN | n);
}

/**
 * bl_rslot_lock - frame @n will be recalled: no ACK closes its slot any more, and head stays
 * before it. Returns 1 if the slot was open for it.
 */
BL_CORE int bl_rslot_lock(struct bl_rslot *s, __u32 n)
{
	return __sync_val_compare_and_swap(&s->wait, BL_RSLOT_OPEN | n, BL_RSLOT_LOCKED | n) ==
	       (BL_RSLOT_OPEN | n);
}

/**
 * bl_rwin_step - move head over one closed slot. Returns 1: look again; 0: it stands where it has
 * to.
 *
 * A look at a word that is old by now ends here, too: whoever moved it has closed its own slot
 * before and goes on by itself.
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
 * bl_rwin_freeze - the window's process is dead: lock the slot at head, so that no ACK moves head
 * any more. Returns 1: *@ts is its timestamp, and C will not pass it until the window is cleared;
 * 0: nothing is open.
 *
 * A slot that an ACK closes at this moment is stepped over: then head was not there yet. The
 * process adds nothing any more, so this ends after as many steps as frames are open.
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
		/* its process was recalling it */
		if (BL_READ_ONCE(slot->wait) == (BL_RSLOT_LOCKED | head) ||
		    bl_rslot_lock(slot, head))
			return 1;
		bl_rwin_step(state, w);
	}
	return 1;
}

/**
 * bl_rwin_commit - what a window allows C to be: the timestamp at head, BL_TIME_NONE if it is
 * empty. @last: the highest C that was ever sent; it is still true, and the answer where head does
 * not stand still.
 *
 * The slot at head cannot be written anew before head has passed it, so what was read between two
 * looks at the same head was head's.
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
 * bl_commit_wire - C as it is sent at @now: one that is so old that 48 bits do not reach it is
 * sent as one that promises nothing.
 */
BL_CORE __u64 bl_commit_wire(__u64 c, __u64 now)
{
	return bl_max64(c, now - BL_TS_OLD);
}

#endif
