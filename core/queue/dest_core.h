/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of destinations and flows on a host: who may use one, when it may go to another owner,
 * and how long a frame may wait for leave to go (struct bl_hold_dest in maps/hold_abi.h).
 *
 * A number is used from several CPUs: bl_hold_xdp puts frames into its queues, tokens and grants
 * come in for it, and the pacer sends. Whoever is not the pacer takes a pin before it touches
 * anything of the number, and gives it back when it is done; while pins are held, the owner stays.
 * Only the pacer takes a number from its owner, and in this order:
 *
 *   pacer                                        others
 *   1. nothing is held, nothing under way        a. the number out of a hash
 *   2. pins 0 -> CLOSED, by compare-and-swap     b. pins + 1; CLOSED was set: pins - 1, look again
 *   3. nothing is held: a look once more         c. is the owner the one that was looked for?
 *   4. out of the hash                           d. a frame into the queue, a time lowered
 *   5. pins == CLOSED: into the map of free      e. pins - 1
 *      numbers
 *
 * 2 pairs with b: of both one is first, and the other sees it. 3 pairs with e: whoever was in
 * before 2 has left its frame where 3 finds it, and then the number is opened again. c is for who
 * slept between a and b: the number may have another owner by then. 5 waits for those who have
 * added their pin to a closed number and not taken it off yet. All these are full barriers.
 *
 * So a frame, a grant, a token or a time that was meant for the old owner is never taken for the
 * new one's: what comes later finds another address, tag or sequence number under its pin.
 *
 * Example: 250 hosts were talked to, and 190 of the numbers belong to hosts that nobody has talked
 * to for a while. 64 numbers or fewer being left, the pacer's next turns close 16 of them at a
 * time.
 */
#ifndef BARLINE_DEST_CORE_H
#define BARLINE_DEST_CORE_H

#include "maps/hold_abi.h"
#include "core/queue/queue_core.h"

/** bl_dest_unpin - the number is not used any more by who had pinned it. */
BL_CORE void bl_dest_unpin(struct bl_hold_dest *d)
{
	__u32 was = __sync_fetch_and_add(&d->pins, -1U);

	/* with its result it is a full barrier on every machine */
	__asm__ volatile("" : : "r"(was));
}

/** bl_dest_pin - the number is going to be used. Returns 1; 0: it is closed, look again. */
BL_CORE int bl_dest_pin(struct bl_hold_dest *d)
{
	if (!(__sync_fetch_and_add(&d->pins, 1) & BL_DEST_CLOSED))
		return 1;
	bl_dest_unpin(d);
	return 0;
}

/**
 * bl_dest_close - nobody may use the number from now on. Returns 1; 0: somebody does, or it is
 * closed. The pacer's.
 */
BL_CORE int bl_dest_close(struct bl_hold_dest *d)
{
	return !__sync_val_compare_and_swap(&d->pins, 0, BL_DEST_CLOSED);
}

/**
 * bl_dest_shut - the same of a number that nobody was told of; the caller's own pin may be on it.
 */
BL_CORE void bl_dest_shut(struct bl_hold_dest *d)
{
	__u32 was = __sync_fetch_and_or(&d->pins, BL_DEST_CLOSED);

	__asm__ volatile("" : : "r"(was));
}

/** bl_dest_open - it may be used (again). */
BL_CORE void bl_dest_open(struct bl_hold_dest *d)
{
	__u32 was = __sync_fetch_and_and(&d->pins, ~BL_DEST_CLOSED);

	__asm__ volatile("" : : "r"(was));
}

/**
 * bl_dest_empty - nobody is inside a closed number, not even for the moment that it takes to see
 * that it is closed.
 */
BL_CORE int bl_dest_empty(const struct bl_hold_dest *d)
{
	return BL_READ_ONCE(d->pins) == BL_DEST_CLOSED;
}

/** bl_dest_is - is @key its owner? Under a pin. */
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
 * bl_numbers_spare - numbers that nobody has. Counted beside the map of free numbers, so it may be
 * off by those that come and go at this moment.
 */
BL_CORE __u32 bl_numbers_spare(const struct bl_due *d)
{
	__s64 n = (__s64)(BL_NUMBERS - BL_READ_ONCE(d->given) + BL_READ_ONCE(d->spare));

	return n > 0 ? (__u32)n : 0;
}

/**
 * bl_numbers_used - every number below it may have a frame: those that were given, and, once all
 * were, the one that the destinations beyond share.
 */
BL_CORE __u32 bl_numbers_used(const struct bl_due *d)
{
	__u64 given = BL_READ_ONCE(d->given);

	return given < BL_NUMBERS ? (__u32)given + 1 : BL_HOLD_SHARED + 1;
}

/** bl_numbers_low - so few numbers are left that the pacer looks for others. */
BL_CORE int bl_numbers_low(const struct bl_due *d)
{
	return bl_numbers_spare(d) <= BL_NUMBERS_LOW;
}

/**
 * bl_hold_age - how long a frame may wait in a queue from which nothing leaves: BL_HOLD_AGE_NS, but
 * at least BL_HOLD_AGE_SLOTS full frames of the link, and BL_HOLD_AGE_TRIES times @ask_ns, which is
 * how long who asks for leave waits for an answer, or Fastpass's slots, where these are longer.
 * Where numbers run out, an eighth of it: then who waits in vain keeps others out.
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
 * bl_hold_watch_ns - how soon the pacer looks again for frames that wait and may be @age_ns old,
 * though nothing else makes it look; at least @least_ns. Who has no turn for longer than that, and
 * a quarter of an age, stood still.
 */
BL_CORE __u64 bl_hold_watch_ns(struct bl_due *d, __u64 age_ns, __u64 least_ns)
{
	__u64 ns = bl_max64(age_ns / 2, least_ns);

	d->watch_ns = ns + age_ns / 4;
	return ns;
}

/**
 * bl_hold_turn_begin - the pacer has a turn at @now. If it stood still it could not ask for leave
 * meanwhile, nor give others leave: ages count anew from here on.
 */
BL_CORE void bl_hold_turn_begin(struct bl_due *d, __u64 now)
{
	if (d->watch_ns && d->turn_ns + d->watch_ns <= now)
		d->back_ns = now;
	d->turn_ns = now;
}

/**
 * bl_hold_expired - nothing has left the queue since @left_ns, and what could have made it leave
 * was there since @since_ns: the frame itself, or the pacer (bl_due.back_ns).
 */
BL_CORE int bl_hold_expired(__u64 since_ns, __u64 left_ns, __u64 age_ns, __u64 now)
{
	return bl_max64(since_ns, left_ns) + age_ns <= now;
}

#endif
