/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of destinations and flows on a host, between the core and the maps: who gets one, and how
 * it is found. dest_core.h has the rules; bpf/host/sweep.h takes numbers back. BPF side only.
 */
#ifndef BARLINE_HOST_DEST_H
#define BARLINE_HOST_DEST_H

#include "maps/hold_maps.h"
#include "core/queue/dest_core.h"
#include "bpf/queue_util.h"

#define BL_DEST_LOOKS 3 /* of who meets a number that is just being closed */

/* A number that nobody has; 0: there is none. It is closed, or was never used. */
static __always_inline __u32 bl_number_take(struct bl_due *due)
{
	__u32 n;

	if (!bpf_map_pop_elem(&hold_free, &n)) {
		(void)__sync_fetch_and_add(&due->spare, -1ULL);
		return n < BL_HOLD_SHARED ? n : 0;
	}
	if (BL_READ_ONCE(due->given) >= BL_NUMBERS)
		return 0;
	n = (__u32)__sync_fetch_and_add(&due->given, 1) + 1;
	/* others were faster; @given stays a little too large, which nobody minds */
	return n <= BL_NUMBERS ? n : 0;
}

/* Who has taken a number looks whether the pacer should look for others. */
static __always_inline void bl_number_taken(struct bl_due *due, __u64 now)
{
	if (bl_numbers_low(due) && bl_due_next(due, now))
		bl_pace_ring();
}

/*
 * Number @n is @d's from now on: open, with a pin of the caller's. What its owner is was written
 * before.
 */
static __always_inline void bl_number_begin(struct bl_hold_dest *d, __u64 now)
{
	__u32 was;

	d->used_ns = now;
	d->left_ns = now;
	BL_WRITE_ONCE(d->used, BL_DEST_USED);
	was = __sync_fetch_and_add(&d->pins, 1);
	__asm__ volatile("" : : "r"(was));
	bl_dest_open(d);
}

/*
 * Another CPU was faster to find a number for this owner, so nobody will find this one: the pacer
 * sees to it.
 */
static __always_inline void bl_number_drop(struct bl_hold_dest *d)
{
	BL_WRITE_ONCE(d->used, BL_DEST_LEAVING);
	bl_dest_shut(d);
	bl_dest_unpin(d);
}

static __always_inline void bl_unpin(__u32 n)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	if (d)
		bl_dest_unpin(d);
}

/* Not 0: frames are held for number @n. */
static __always_inline __u32 bl_held(__u32 n)
{
	return bl_queue_len(BL_HOLD_QUEUE(n, 0)) | bl_queue_len(BL_HOLD_QUEUE(n, 1));
}

/* The number that @key has, with a pin of the caller's; 0: none. */
static __always_inline __u32 bl_number_find(const struct bl_mac_key *key)
{
	__u32 i, n, tries = BL_DEST_LOOKS, *known;
	struct bl_hold_dest *d;

	BL_OPAQUE(tries);
	for (i = 0; i < BL_DEST_LOOKS && i < tries; i++) {
		known = bpf_map_lookup_elem(&hold_dests, key);
		if (!known)
			return 0;
		n = BL_READ_ONCE(*known);
		d = bpf_map_lookup_elem(&hold_macs, &n);
		if (!d)
			return 0;
		if (!bl_dest_pin(d))
			continue;
		if (bl_dest_is(d, key))
			return n;
		bl_dest_unpin(d);
	}
	return 0;
}

/**
 * bl_hold_number - the number of destination @to, given at first sight, with a pin of the caller's,
 * who gives it back by bl_unpin(). 0: there are no more.
 */
__attribute__((noinline)) int bl_hold_number(struct bl_mac_key *to, __u64 now)
{
	struct bl_hold_dest *d;
	/* Linux 6.1 takes no argument of a global function for a map's key */
	struct bl_mac_key key;
	struct bl_due *due;
	__u32 zero = 0, n;

	if (!to)
		return 0;
	key = *to;
	n = bl_number_find(&key);
	if (n) {
		d = bpf_map_lookup_elem(&hold_macs, &n);
		if (d)
			d->used_ns = now;
		return (int)n;
	}
	due = bpf_map_lookup_elem(&hold_due, &zero);
	if (!due)
		return 0;
	n = bl_number_take(due);
	d = bpf_map_lookup_elem(&hold_macs, &n);
	bl_number_taken(due, now);
	if (!n || !d)
		return 0;
	__builtin_memcpy(d->mac, key.mac, sizeof(d->mac));
	__builtin_memcpy(d->upper, key.upper, sizeof(d->upper));
	d->kind = key.kind;
	bl_number_begin(d, now);
	/* the update is a barrier: who finds the number finds the address */
	if (!bpf_map_update_elem(&hold_dests, &key, &n, BPF_NOEXIST))
		return (int)n;
	bl_number_drop(d);
	return (int)bl_number_find(&key);
}

/** bl_left - a frame has left number @n's queues. */
static __always_inline void bl_left(__u32 n, __u64 now)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	if (d)
		BL_WRITE_ONCE(d->left_ns, now);
}

#endif
