/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of destinations and flows on a host: allocating one, finding it, and using it under a
 * pin. core/queue/dest_core.h has the rules and the example; sweep.h takes numbers back. BPF side
 * only.
 *
 * Example: the first frame for 02:00:00:00:00:07 finds no number. It gets number 4 out of
 * "hold_free", writes the address into entry 4 of "hold_macs", and adds 4 to "hold_dests" with
 * BPF_NOEXIST. Another CPU that did the same with number 5 at the same moment fails to add it,
 * drops 5, and finds 4.
 *
 * Not here: what waits in a number's queues (hold.h).
 */
#ifndef BARLINE_HOST_DEST_H
#define BARLINE_HOST_DEST_H

#include "bpf/host/role.h"
#include "core/queue/dest_core.h"
#include "bpf/queue_util.h"

#define BL_DEST_LOOKS 3 /* lookups before a caller that meets a closed number gives up */

/* Returns a number without an owner (closed, or never used), or 0 if there is none. */
static __always_inline __u32 bl_number_alloc(struct bl_due *due)
{
	__u32 n;

	if (!bpf_map_pop_elem(&hold_free, &n)) {
		(void)__sync_fetch_and_add(&due->spare, -1ULL);
		return n < BL_HOLD_SHARED ? n : 0;
	}
	if (BL_READ_ONCE(due->given) >= BL_NUMBERS)
		return 0;
	n = (__u32)__sync_fetch_and_add(&due->given, 1) + 1;
	/* Other CPUs took the last ones. @given stays a little too large, which does no harm. */
	return n <= BL_NUMBERS ? n : 0;
}

/* Called after a number was allocated: rings for the pacer if few numbers are left. */
static __always_inline void bl_number_check_spare(struct bl_due *due, __u64 now)
{
	if (bl_numbers_low(due) && bl_due_next(due, now))
		bl_pace_ring();
}

/*
 * Opens number @d for its new owner, with a pin of the caller's. The owner's identity was written
 * before.
 */
static __always_inline void bl_number_start(struct bl_hold_dest *d, __u64 now)
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
 * Gives a number back for which no owner will ever look, because another CPU has given this owner a
 * number at the same moment. The pacer frees it.
 */
static __always_inline void bl_number_drop(struct bl_hold_dest *d)
{
	BL_WRITE_ONCE(d->used, BL_DEST_LEAVING);
	bl_dest_shut(d);
	bl_dest_unpin(d);
}

/* Takes the caller's pin off number @n. */
static __always_inline void bl_number_unpin(__u32 n)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	if (d)
		bl_dest_unpin(d);
}

/* Returns a value other than 0 if frames are held for number @n. */
static __always_inline __u32 bl_number_held(__u32 n)
{
	return bl_queue_len(BL_HOLD_QUEUE(n, 0)) | bl_queue_len(BL_HOLD_QUEUE(n, 1));
}

/* Returns the number of destination @key, with a pin of the caller's; 0: it has none. */
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
 * bl_hold_number - returns the number of destination @to, which gets one on first use, with a pin
 * of the caller's. The caller gives the pin back by bl_number_unpin(). Returns 0 if no number is
 * left.
 * @now: CLOCK_MONOTONIC, ns
 */
__attribute__((noinline)) int bl_hold_number(struct bl_mac_key *to, __u64 now)
{
	struct bl_hold_dest *d;
	/* Linux 6.1 accepts no argument of a global function as a map's key. */
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
	n = bl_number_alloc(due);
	d = bpf_map_lookup_elem(&hold_macs, &n);
	bl_number_check_spare(due, now);
	if (!n || !d)
		return 0;
	__builtin_memcpy(d->mac, key.mac, sizeof(d->mac));
	__builtin_memcpy(d->upper, key.upper, sizeof(d->upper));
	d->kind = key.kind;
	bl_number_start(d, now);
	/* The update is a barrier: a CPU that finds the number also finds the address. */
	if (!bpf_map_update_elem(&hold_dests, &key, &n, BPF_NOEXIST))
		return (int)n;
	bl_number_drop(d);
	return (int)bl_number_find(&key);
}

/** bl_number_left - notes that a frame has left number @n's queues at @now. */
static __always_inline void bl_number_left(__u32 n, __u64 now)
{
	struct bl_hold_dest *d = bpf_map_lookup_elem(&hold_macs, &n);

	if (d)
		BL_WRITE_ONCE(d->left_ns, now);
}

#endif
