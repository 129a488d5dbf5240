/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fastpass on a host: how many timeslots are wanted, when they begin, and what the pacer does for
 * one destination.
 *
 * Example, slots of 1230 ns and 1514 bytes, late 100 us. A slot has 1538 byte times
 * (core/length_core.h), as one full frame takes. Three frames of 600 bytes are held, of 624 byte
 * times each: the first wants a slot, the second shares it, and the third wants another one: 2
 * slots. Of ACKs, which take 84, a slot has room for 18. The arbiter gives slots 900 and 904. When
 * 900 begins, the pacer sends the first frame, and in its next turn the second. The third does not
 * fit into what is left, so it waits for 904. If the pacer comes 100 us after 904 began, the slot
 * counts as missed and is asked for again: a frame that left then would meet the frames of other
 * hosts.
 *
 * maps/fastpass_abi.h says who writes what. The daemon and the pacer share words of 64 slots
 * without a lock. The pacer reads base, bits, and base again; if both are equal, the bits belong to
 * that base. The bits that it then clears belong to a later round only if it stood still for a
 * whole round of BL_FP_SLOTS slots in between. In that case the slot is lost, and a frame leaves at
 * a wrong time, once.
 *
 * This file does not move frames, read the clock or speak with the arbiter.
 */
#ifndef BARLINE_FP_CORE_H
#define BARLINE_FP_CORE_H

#include "maps/fastpass_abi.h"
#include "maps/hold_abi.h"
#include "maps/wire_abi.h"
#include "core/core.h"
#include "core/length_core.h"

#define BL_FP_WANT(slots, room) ((__u64)(slots) << 16 | (room))
#define BL_FP_WANTED(word)      ((word) >> 16)
#define BL_FP_ROOM(word)        ((__u32)(word)&0xffff)
#define BL_FP_WANT_TRIES        4

/* What a turn does. FRAME: send a frame of at most @max byte times. AT_ONCE: send without slots. */
enum bl_fp_do { BL_FP_NOTHING, BL_FP_FRAME, BL_FP_AT_ONCE };

/**
 * struct bl_fp_turn - the result of one turn of the pacer for one destination. Filled in by
 * bl_fp_step(), except @entry.
 */
struct bl_fp_turn {
	__u32 what;    /* enum bl_fp_do */
	__u32 max;     /* FRAME: byte times */
	__u32 path;    /* FRAME: path of the slot */
	__u32 entry;   /* BL_RING_ENTRY of the frame that was taken; by the caller */
	__u64 due_ns;  /* FRAME: CLOCK_MONOTONIC at which the slot began */
	__u64 next_ns; /* CLOCK_MONOTONIC at which to look at this destination again */
};

/* ---- slots and time ---- */

/** bl_fp_slot - the slot that CLOCK_MONOTONIC @mono lies in. */
BL_CORE __u64 bl_fp_slot(__u64 offset_ns, __u32 slot_ns, __u64 mono)
{
	return (mono + offset_ns) / slot_ns;
}

/** bl_fp_slot_begin - CLOCK_MONOTONIC at which @slot begins. */
BL_CORE __u64 bl_fp_slot_begin(__u64 offset_ns, __u32 slot_ns, __u64 slot)
{
	return slot * slot_ns - offset_ns;
}

/** bl_fp_oldest - the first slot that may still be used at @now: it began at most @late_ns ago. */
BL_CORE __u64 bl_fp_oldest(__u64 offset_ns, __u32 slot_ns, __u32 late_ns, __u64 now)
{
	return (now + offset_ns - late_ns + slot_ns - 1) / slot_ns;
}

/* ---- paths on a switch with @n up ports ---- */

/**
 * bl_fp_paths - how many path numbers a switch with @n up ports obeys. @div: see bl_fp_up_port().
 */
BL_CORE __u32 bl_fp_paths(__u32 div, __u32 n)
{
	return n && div ? BL_PATHS_IN_MAC : n;
}

/**
 * bl_fp_up_port - which up port of a switch @path leads to.
 * @div: 0: the port of that number. With three tiers, a path is aggregation switch x cores + core:
 * @div is then the number of cores at a rack's switch, and 1 at an aggregation switch.
 * @n: number of up ports.
 *
 * Example, 2 x 2: path 3 is up port 1 of the rack's switch (3 / 2), and core 1 there (3 % 2).
 */
BL_CORE __u32 bl_fp_up_port(__u32 path, __u32 div, __u32 n)
{
	return div ? path / div % n : path;
}

/* ---- demand ---- */

/**
 * bl_fp_want_count - the value of bl_fp_dest.want after @word and another held frame of @len bytes.
 */
BL_CORE __u64 bl_fp_want_count(__u64 word, __u32 len, __u32 slot_bytes)
{
	__u32 room = BL_FP_ROOM(word), takes = bl_wire_bytes(len), slot = bl_wire_bytes(slot_bytes);

	if (takes <= room)
		return BL_FP_WANT(BL_FP_WANTED(word), room - takes);
	return BL_FP_WANT(BL_FP_WANTED(word) + 1, takes < slot ? slot - takes : 0);
}

/**
 * bl_fp_want - account for a frame of @len bytes that is held. Returns 1 if it needs another slot.
 */
BL_CORE int bl_fp_want(struct bl_fp_dest *d, __u32 len, __u32 slot_bytes)
{
	__u64 was, now;
	int i;

	for (i = 0; i < BL_FP_WANT_TRIES; i++) {
		was = BL_READ_ONCE(d->want);
		now = bl_fp_want_count(was, len, slot_bytes);
		if (__sync_val_compare_and_swap(&d->want, was, now) == was)
			return BL_FP_WANTED(now) != BL_FP_WANTED(was);
	}
	/* contention of many CPUs: give this frame a slot of its own */
	(void)__sync_fetch_and_add(&d->want, BL_FP_WANT(1, 0));
	return 1;
}

/**
 * bl_fp_under_way - slots that were wanted and have neither been used nor passed without a frame.
 */
BL_CORE __u64 bl_fp_under_way(const struct bl_fp_dest *d)
{
	__u64 over = d->used + d->idle, want = BL_FP_WANTED(BL_READ_ONCE(d->want));

	return want > over ? want - over : 0;
}

/* ---- slots that were given: the daemon's side ---- */

/**
 * bl_fp_give - enter @slot, when the present slot is @now. Returns 0, or -1 if it has passed or is
 * so far ahead that the ring has no place for it. *@lapsed grows by the slots at the same place
 * that were never used. Only for the daemon.
 */
BL_CORE int bl_fp_give(struct bl_fp_dest *d, __u64 slot, __u8 path, __u64 now, __u64 *lapsed)
{
	__u64 base = slot / 64, old;
	struct bl_fp_word *w = &d->word[base % BL_FP_WORDS];

	if (slot < now || base >= now / 64 + BL_FP_WORDS)
		return -1;
	if (w->base != base) {
		old = __sync_lock_test_and_set(&w->bits, 0);
		*lapsed += (__u64)__builtin_popcountll(old);
		BL_WRITE_ONCE(w->base, base);
	}
	BL_WRITE_ONCE(d->path[slot % BL_FP_SLOTS], path);
	/* a full barrier: a reader that sees the bit also sees base and path */
	(void)__sync_fetch_and_or(&w->bits, 1ULL << slot % 64);
	return 0;
}

/** bl_fp_given - number of slots that were given and are neither used nor missed yet. */
BL_CORE __u64 bl_fp_given(const struct bl_fp_dest *d)
{
	__u64 n = 0;
	__u32 i;

	for (i = 0; i < BL_FP_WORDS; i++)
		n += (__u64)__builtin_popcountll(BL_READ_ONCE(d->word[i].bits));
	return n;
}

/* ---- and the pacer's ---- */

BL_CORE void bl_fp_word_clear(struct bl_fp_word *w, __u64 bits)
{
	__u64 was = __sync_fetch_and_and(&w->bits, ~bits);

	__asm__ volatile("" : : "r"(was));
}

/**
 * bl_fp_dest_scan - scan word @w: slots that began before @oldest are cleared and counted as
 * missed. Returns the first slot that is left; BL_DUE_NEVER: none.
 */
BL_CORE __u64 bl_fp_dest_scan(struct bl_fp_dest *d, struct bl_fp_word *w, __u64 oldest)
{
	__u64 base = BL_READ_ONCE(w->base), bits = BL_READ_ONCE(w->bits), first = base * 64,
	      gone = 0;

	if (!bits)
		return BL_DUE_NEVER;
	BL_BARRIER();
	if (BL_READ_ONCE(w->base) != base)
		/*
		 * the daemon is refilling the word, and lowers this destination's time afterwards
		 */
		return BL_DUE_NEVER;
	if (first + 64 <= oldest)
		gone = bits;
	else if (first < oldest)
		gone = bits & ((1ULL << ((oldest - first) & 63)) - 1);
	if (gone) {
		bl_fp_word_clear(w, gone);
		d->missed += (__u64)__builtin_popcountll(gone);
		bits &= ~gone;
	}
	return bits ? first + bl_lowest(bits) : BL_DUE_NEVER;
}

/** bl_fp_slot_next - the first given slot from @oldest on; BL_DUE_NEVER: none. */
BL_CORE __u64 bl_fp_slot_next(struct bl_fp_dest *d, __u64 oldest)
{
	__u64 least = BL_DUE_NEVER;
	__u32 i, words = BL_FP_WORDS;

	BL_OPAQUE(words);
	for (i = 0; i < BL_FP_WORDS && i < words; i++)
		least = bl_min64(least,
				 bl_fp_dest_scan(d, &d->word[i & (BL_FP_WORDS - 1)], oldest));
	return least;
}

/**
 * bl_fp_step - a turn of the pacer for @d. After FRAME, take a frame of at most @t->max byte times
 * and call bl_fp_frame_taken(), with 0 if there is none.
 */
BL_CORE void bl_fp_step(struct bl_fp_dest *d, const struct bl_hold_cfg *cfg, __u64 offset,
			__u64 now, struct bl_fp_turn *t)
{
	__u32 slot_ns = cfg->slot_ns;
	__u64 slot, at;

	t->what = BL_FP_NOTHING;
	t->next_ns = BL_DUE_NEVER;
	if (!slot_ns)
		return;
	if (BL_READ_ONCE(d->endpoint) == BL_FP_OUTSIDE) {
		t->what = BL_FP_AT_ONCE;
		return;
	}
	at = bl_fp_slot_begin(offset, slot_ns, d->open);
	if (d->room && now - at > (__u64)slot_ns + cfg->slot_late_ns)
		d->room = 0; /* the slot is over; or the clock was set back */
	if (!d->room) {
		slot = bl_fp_slot_next(d, bl_fp_oldest(offset, slot_ns, cfg->slot_late_ns, now));
		if (slot == BL_DUE_NEVER)
			return;
		at = bl_fp_slot_begin(offset, slot_ns, slot);
		if (at > now) {
			t->next_ns = at;
			return;
		}
		bl_fp_word_clear(&d->word[slot / 64 % BL_FP_WORDS], 1ULL << slot % 64);
		d->open = slot;
		d->room = bl_wire_bytes(cfg->slot_bytes);
		d->first = 1;
	}
	t->what = BL_FP_FRAME;
	t->due_ns = at;
	t->path = d->path[d->open % BL_FP_SLOTS];
	/*
	 * The first frame may be longer than a slot, if it has a tag; the excess is too short to
	 * matter.
	 */
	t->max = d->first ? 0xffff : d->room;
	t->next_ns = now;
}

/**
 * bl_fp_frame_taken - account for a frame of @len bytes that leaves in the slot in use; 0: no frame
 * fitted, and the slot is over.
 */
BL_CORE void bl_fp_frame_taken(struct bl_fp_dest *d, __u32 len)
{
	if (d->first && len)
		d->used++;
	else if (d->first)
		d->idle++;
	d->first = 0;
	d->frames += len != 0;
	d->room = len && bl_wire_bytes(len) < d->room ? d->room - bl_wire_bytes(len) : 0;
}

/**
 * bl_fp_demand_heal - frames wait and no slot is given: if none is under way either (the queue was
 * filled under another policy, or frames did not share slots as counted), want one more. Returns 1
 * if it does.
 */
BL_CORE int bl_fp_demand_heal(struct bl_fp_dest *d)
{
	if (bl_fp_under_way(d))
		return 0;
	(void)__sync_fetch_and_add(&d->want, BL_FP_WANT(1, 0));
	return 1;
}

#endif
