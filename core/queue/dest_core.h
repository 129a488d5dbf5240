/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of destinations and flows on a host: which program may use a number, when it may go to
 * another owner, and how long a frame may wait for permission to leave (struct bl_hold_dest in
 * maps/hold_abi.h).
 *
 * A number is used on several CPUs: bl_hold_xdp puts frames into its queues, tokens and grants
 * arrive for it, and the pacer sends. Every program except the pacer's takes a pin before it
 * touches anything of the number, and gives the pin back when it is done. While pins are held, the
 * owner stays. Only the pacer takes a number from its owner, in this order:
 *
 *   pacer                                        others
 *   1. nothing is held, nothing is under way     a. look the number up in a hash
 *   2. pins 0 -> CLOSED, by compare-and-swap     b. pins + 1; if CLOSED was set: pins - 1,
 *                                                   and look up again
 *   3. check again that nothing is held          c. check that the owner is the one wanted
 *   4. remove it from the hash                   d. put a frame into the queue, lower a time
 *   5. pins == CLOSED: put it into the map of    e. pins - 1
 *      free numbers
 *
 * Step 2 pairs with b: one of them is first, and the other sees it. Step 3 pairs with e: a program
 * that was inside before 2 has left its frame where 3 finds it, and the number is then opened
 * again. Step c is for a program that slept between a and b: the number may have another owner by
 * then. Step 5 waits for programs that have added their pin to a closed number and not removed it
 * yet. All these operations are full barriers.
 *
 * So a frame, a grant, a token or a time that was meant for the old owner is never taken for the
 * new one's: what comes later finds another address, tag or sequence number under its pin.
 *
 * Example: a host has talked to 250 hosts, and 190 of the numbers belong to hosts that it has not
 * talked to for a while. With 64 numbers or fewer left, each of the pacer's next turns closes up to
 * 16 of them.
 */
#ifndef BARLINE_DEST_CORE_H
#define BARLINE_DEST_CORE_H

#include "maps/hold_abi.h"
#include "core/queue/queue_core.h"

/** bl_dest_unpin - give back a pin on the number. */
BL_CORE void bl_dest_unpin(struct bl_hold_dest *d)
{
	__u32 was = __sync_fetch_and_add(&d->pins, -1U);

	/* because its result is used, it is a full barrier on every machine */
	__asm__ volatile("" : : "r"(was));
}

/**
 * bl_dest_pin - take a pin on the number before using it. Returns 1, or 0 if the number is closed:
 * look it up again.
 */
BL_CORE int bl_dest_pin(struct bl_hold_dest *d)
{
	if (!(__sync_fetch_and_add(&d->pins, 1) & BL_DEST_CLOSED))
		return 1;
	bl_dest_unpin(d);
	return 0;
}

/**
 * bl_dest_close - forbid new uses of a number. Returns 1, or 0 if a program uses it or it is closed
 * already. Only for the pacer.
 */
BL_CORE int bl_dest_close(struct bl_hold_dest *d)
{
	return !__sync_val_compare_and_swap(&d->pins, 0, BL_DEST_CLOSED);
}

/**
 * bl_dest_shut - close a number that no other program knows yet; the caller's own pin may be on it.
 */
BL_CORE void bl_dest_shut(struct bl_hold_dest *d)
{
	__u32 was = __sync_fetch_and_or(&d->pins, BL_DEST_CLOSED);

	__asm__ volatile("" : : "r"(was));
}

/** bl_dest_open - allow uses of a closed number again. */
BL_CORE void bl_dest_open(struct bl_hold_dest *d)
{
	__u32 was = __sync_fetch_and_and(&d->pins, ~BL_DEST_CLOSED);

	__asm__ volatile("" : : "r"(was));
}

/**
 * bl_dest_empty - whether no program is inside a closed number, not even for the moment in which it
 * finds that the number is closed.
 */
BL_CORE int bl_dest_empty(const struct bl_hold_dest *d)
{
	return BL_READ_ONCE(d->pins) == BL_DEST_CLOSED;
}

/** bl_dest_is - whether @key is the owner of the number. Call it with a pin. */
BL_CORE int bl_dest_is(const struct bl_hold_dest *d, const struct bl_mac_key *key)
{
	__u32 i;

	for (i = 0; i < sizeof(key->mac); i++)
		if (d->mac[i] != key->mac[i])
			return 0;
	for (i = 0; i < sizeof(key->upper); i++)
		if (d->upper[i] != key->upper[i])
			return 0;
	return d->kind == key->kind;
}

/**
 * bl_numbers_spare - how many numbers have no owner. Counted beside the map of free numbers, so it
 * may be off by the numbers that are being assigned or given back at this moment.
 */
BL_CORE __u32 bl_numbers_spare(const struct bl_due *d)
{
	__s64 n = (__s64)(BL_NUMBERS - BL_READ_ONCE(d->given) + BL_READ_ONCE(d->spare));

	return n > 0 ? (__u32)n : 0;
}

/**
 * bl_numbers_used - every number below the result may have a frame: those that were assigned and,
 * once all were, the one that the remaining destinations share.
 */
BL_CORE __u32 bl_numbers_used(const struct bl_due *d)
{
	__u64 given = BL_READ_ONCE(d->given);

	return given < BL_NUMBERS ? (__u32)given + 1 : BL_HOLD_SHARED + 1;
}

/** bl_numbers_low - whether so few numbers are left that the pacer looks for unused ones. */
BL_CORE int bl_numbers_low(const struct bl_due *d)
{
	return bl_numbers_spare(d) <= BL_NUMBERS_LOW;
}

/**
 * bl_hold_age - how long, in ns, a frame may wait in a queue that nothing leaves: BL_HOLD_AGE_NS,
 * but at least BL_HOLD_AGE_SLOTS full frames of the link, or Fastpass's slots where these are
 * longer, and at least BL_HOLD_AGE_TRIES times @ask_ns, which is how long a request for permission
 * waits for an answer. An eighth of it if @pressed: numbers run out, and a frame that waits in vain
 * keeps others out.
 */
BL_CORE __u64 bl_hold_age(const struct bl_hold_cfg *c, __u64 ask_ns, int pressed)
{
	__u64 ns = bl_max64(BL_HOLD_AGE_NS, BL_HOLD_AGE_SLOTS * bl_wire_ns(&c->link, 1514));

	ns = bl_max64(ns, BL_HOLD_AGE_TRIES * ask_ns);
	if (c->policy == BL_POLICY_FASTPASS)
		ns = bl_max64(ns, (__u64)BL_HOLD_AGE_SLOTS * c->slot_ns);
	return pressed ? ns / 8 : ns;
}

/**
 * bl_hold_watch_ns - after how many ns the pacer looks again for waiting frames that may be @age_ns
 * old, even if nothing else makes it look; at least @least_ns. A pacer that has no turn for longer
 * than that and a quarter of an age stood still; stores this limit in @d.
 */
BL_CORE __u64 bl_hold_watch_ns(struct bl_due *d, __u64 age_ns, __u64 least_ns)
{
	__u64 ns = bl_max64(age_ns / 2, least_ns);

	d->watch_ns = ns + age_ns / 4;
	return ns;
}

/**
 * bl_hold_turn_begin - record a turn of the pacer at @now. If it stood still, it could neither ask
 * for permission meanwhile nor give it to others, so ages count from here on.
 */
BL_CORE void bl_hold_turn_begin(struct bl_due *d, __u64 now)
{
	if (d->watch_ns && d->turn_ns + d->watch_ns <= now)
		d->back_ns = now;
	d->turn_ns = now;
}

/**
 * bl_hold_expired - whether nothing has left the queue since @left_ns, for @age_ns in which
 * something could have left: since @since_ns both the frame and the pacer (bl_due.back_ns) were
 * there.
 */
BL_CORE int bl_hold_expired(__u64 since_ns, __u64 left_ns, __u64 age_ns, __u64 now)
{
	return bl_max64(since_ns, left_ns) + age_ns <= now;
}

#endif
