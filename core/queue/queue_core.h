/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues of frames, the rate of a link, and when the pacer has something to do: the arithmetic of
 * maps/queue_abi.h.
 *
 * Rings. A queue is a ring of entries; head and tail run freely. With head 510 and tail 513 there
 * are three frames, at 510, 511 and 0; the next one goes to 513 & 511 = 1. The caller holds the
 * queue's lock.
 *
 * Rate. A link of 1 Gbit/s has ns_q20 = 8 << 20: a frame of 1514 bytes takes 1538 byte times
 * (core/length_core.h), which is 12304 ns. A frame that arrived at 100000 for a link that is free
 * since 90000 is due at 100000, and the link is free again at 112304, whether the pacer was in time
 * or late. If the pacer looks only at 200000, the link counts as free since 200000 less two full
 * frames (24608 ns): two frames may follow at once, and not eight.
 *
 * Due times. See struct bl_due. All of it is compare-and-swap and exchange, so it needs no lock,
 * neither here nor in the kernel.
 *
 * This file does not copy frames, take locks or read the clock.
 */
#ifndef BARLINE_QUEUE_CORE_H
#define BARLINE_QUEUE_CORE_H

#include <linux/if_ether.h>
#include "maps/queue_abi.h"
#include "core/length_core.h"
#include "core/wire_core.h"

/* ---- histograms ---- */

/*
 * Counts the bits that are set. Written out, since BPF has no instruction for it and some compilers
 * for BPF refuse the builtin.
 */
BL_CORE __u32 bl_count_ones(__u32 v)
{
	v -= v >> 1 & 0x55555555;
	v = (v & 0x33333333) + (v >> 2 & 0x33333333);
	v = (v + (v >> 4)) & 0x0f0f0f0f;
	return v * 0x01010101 >> 24;
}

/**
 * bl_hist_bin - the bin of value @v; see BL_HIST_BINS. Without branches: it runs under locks, and
 * each branch would double what the verifier follows.
 */
BL_CORE __u32 bl_hist_bin(__u64 v)
{
	__u32 u = (__u32)bl_min64(v, (1ULL << 22) - 1), s = u | 15, e, small;

	s |= s >> 1;
	s |= s >> 2;
	s |= s >> 4;
	s |= s >> 8;
	s |= s >> 16;
	e = bl_count_ones(s) - 1; /* log2; 3 for values below 16 */
	small = (e - 4) >> 31;    /* 1: below 16, exact */
	return (1 - small) * (16 + (e - 4) * 8 + (u >> (e - 3) & 7)) + small * u;
}

BL_CORE void bl_hist_add(struct bl_hist *h, __u64 v)
{
	__u32 bin = bl_hist_bin(v);

	/* the verifier cannot see, unlike the compiler, that it is small enough */
	__asm__ volatile("" : "+r"(bin));
	if (bin < BL_HIST_BINS)
		h->n[bin]++;
}

/* ---- rings ---- */

/**
 * bl_ring_put - append @entry to the queue. @marked: 1 if its frame got ECN CE. Returns 0, or -1 if
 * the queue is full; then the frame is counted as dropped. Call it under the queue's lock.
 */
BL_CORE int bl_ring_put(struct bl_queue *q, struct bl_hist *found, __u32 entry, __u32 marked)
{
	__u32 len = BL_RING_LEN(entry), n = q->tail - q->head;

	if (n >= BL_RING || n >= q->limit_frames || (__u64)q->bytes + len > q->limit_bytes) {
		q->dropped++;
		return -1;
	}
	bl_hist_add(found, q->bytes >> BL_HIST_LEN_SHIFT);
	q->ring[q->tail & (BL_RING - 1)] = entry;
	q->tail++;
	q->bytes += len;
	q->wire += bl_wire_bytes(len);
	q->put++;
	q->put_bytes += len;
	q->marked += marked;
	return 0;
}

/** bl_ring_take - take the oldest entry; 0 if there is none. Call it under the queue's lock. */
BL_CORE __u32 bl_ring_take(struct bl_queue *q)
{
	__u32 entry;

	if (q->head == q->tail)
		return 0;
	entry = q->ring[q->head & (BL_RING - 1)];
	q->head++;
	q->bytes -= BL_RING_LEN(entry);
	q->wire -= bl_wire_bytes(BL_RING_LEN(entry));
	q->taken++;
	q->taken_bytes += BL_RING_LEN(entry);
	return entry;
}

/**
 * bl_ring_take_upto - take the oldest entry if its frame takes at most @max byte times; else 0.
 * Call it under the queue's lock.
 */
BL_CORE __u32 bl_ring_take_upto(struct bl_queue *q, __u32 max)
{
	if (q->head == q->tail ||
	    bl_wire_bytes(BL_RING_LEN(q->ring[q->head & (BL_RING - 1)])) > max)
		return 0;
	return bl_ring_take(q);
}

/**
 * bl_ring_take_if - take the oldest entry if it is @entry; else 0. Call it under the queue's lock.
 */
BL_CORE __u32 bl_ring_take_if(struct bl_queue *q, __u32 entry)
{
	if (q->head == q->tail || q->ring[q->head & (BL_RING - 1)] != entry)
		return 0;
	return bl_ring_take(q);
}

/**
 * bl_ring_len - number of frames in the queue. Without the lock, so it may be out of date; callers
 * that must not miss a frame pair it with a barrier (struct bl_due).
 */
BL_CORE __u32 bl_ring_len(const struct bl_queue *q)
{
	__u32 head = BL_READ_ONCE(q->head);

	return BL_READ_ONCE(q->tail) - head;
}

/**
 * bl_wants_mark - whether a frame that arrives now finds more bytes in front of it than the mark.
 * Without the lock and before the put, since the frame may be gone after it: the result may be some
 * frames old.
 */
BL_CORE int bl_wants_mark(const struct bl_queue *q)
{
	return q->mark_bytes && BL_READ_ONCE(q->bytes) > q->mark_bytes;
}

/* ---- ECN (RFC 3168) ---- */

/**
 * bl_ecn_ce4 - set "congestion experienced" (RFC 3168) if the frame is ECN capable and does not
 * have it yet. Returns 1 if that changed the frame.
 */
BL_CORE int bl_ecn_ce4(struct iphdr *ip)
{
	__u8 from[2], to[2];

	if (!(ip->tos & 3) || (ip->tos & 3) == 3)
		return 0;
	from[0] = to[0] = (__u8)(ip->version << 4 | ip->ihl);
	from[1] = ip->tos;
	to[1] = ip->tos | 3;
	ip->check = bl_csum_replace(ip->check, from, to, 2);
	ip->tos |= 3;
	return 1;
}

BL_CORE int bl_ecn_ce6(struct ipv6hdr *ip)
{
	__u8 *b = (__u8 *)ip, ecn = b[1] >> 4 & 3; /* the traffic class lies across two bytes */

	if (!ecn || ecn == 3)
		return 0;
	b[1] |= 0x30;
	return 1;
}

/* ---- the rate of a link end ---- */

/** bl_times_ns - how many ns @bytes byte times take; 0 where the link is not metered. */
BL_CORE __u64 bl_times_ns(const struct bl_meter *m, __u32 bytes)
{
	return ((__u64)bytes * m->ns_q20 + (1 << 19)) >> 20;
}

/** bl_wire_ns - how many ns a frame of @len bytes takes; 0 where the link is not metered. */
BL_CORE __u64 bl_wire_ns(const struct bl_meter *m, __u32 len)
{
	return bl_times_ns(m, bl_wire_bytes(len));
}

/** bl_due_of - when a frame that arrived at @came is due on a link that is free from @free on. */
BL_CORE __u64 bl_due_of(__u64 free, __u64 came)
{
	return bl_max64(free, came);
}

/**
 * bl_free_after - when the link is free again after a frame of @len bytes that was due at @due and
 * is sent at @now. Always 0 where the link is not metered: each frame is due when it arrives.
 */
BL_CORE __u64 bl_free_after(const struct bl_meter *m, __u64 due, __u64 now, __u32 len)
{
	__u64 behind = bl_times_ns(m, BL_CATCH_UP_BYTES);

	if (!m->ns_q20)
		return 0;
	return bl_max64(due, now - bl_min64(now, behind)) + bl_wire_ns(m, len);
}

/* ---- when there is something to do ---- */

#define BL_DUE_TRIES 8

/*
 * *@p = min(*@p, @at), with a full barrier in any case. Returns 1 if the time was lowered. A try
 * fails if the word was changed meanwhile. After BL_DUE_TRIES failures 0 is stored, "due at once",
 * which is early and never late.
 */
BL_CORE int bl_time_lower(__u64 *p, __u64 expect, __u64 at)
{
	int i;

	for (i = 0; i < BL_DUE_TRIES; i++) {
		__u64 was = __sync_val_compare_and_swap(p, expect, at);

		if (was == expect)
			return 1;
		if (was <= at)
			return 0;
		expect = was;
	}
	(void)__sync_lock_test_and_set(p, 0);
	return 1;
}

/**
 * bl_due_next - make the pacer look at @at or earlier. Returns 1 if it would have looked later; it
 * may then have to be woken.
 */
BL_CORE int bl_due_next(struct bl_due *d, __u64 at)
{
	__u64 next = BL_READ_ONCE(d->next);

	return next > at && bl_time_lower(&d->next, next, at);
}

/**
 * bl_due_put - a frame was put into queue @i: make the pacer look at the queue at @at, unless it
 * has a time for that queue already. Returns as bl_due_next().
 */
BL_CORE int bl_due_put(struct bl_due *d, __u32 i, __u64 at)
{
	/* The full barrier comes first: the frame, then the read of the pacer's time. */
	if (__sync_val_compare_and_swap(&d->at[i & (BL_DUE_MAX - 1)], BL_DUE_NEVER, at) !=
	    BL_DUE_NEVER)
		return 0; /* whoever wrote it lowers @next */
	return bl_due_next(d, at);
}

/**
 * bl_due_lower - make the pacer look at queue @i at @at, even if it has a later time for it, since
 * a GRT arrived. Returns as bl_due_next().
 */
BL_CORE int bl_due_lower(struct bl_due *d, __u32 i, __u64 at)
{
	if (!bl_time_lower(&d->at[i & (BL_DUE_MAX - 1)], BL_DUE_NEVER, at))
		return 0;
	return bl_due_next(d, at);
}

/**
 * struct bl_due_pick - the result of one scan of bl_due.at. Local to the pacer's turn.
 */
struct bl_due_pick {
	const struct bl_due *due;
	__u64 least;  /* the earliest time */
	__u64 second; /* the earliest time of the other queues */
	__u32 index;  /* the queue of @least; the first one of equals */
	__u32 zero;
};

/**
 * bl_due_begin - begin the pacer's scan. The exchange is a full barrier: a time that was lowered
 * before it is seen in @at, and one that is lowered after it stays in @next.
 */
BL_CORE void bl_due_begin(struct bl_due *d, struct bl_due_pick *p)
{
	(void)__sync_lock_test_and_set(&d->next, BL_DUE_NEVER);
	p->due = d;
	p->least = p->second = BL_DUE_NEVER;
	p->index = p->zero = 0;
}

BL_CORE void bl_due_consider(struct bl_due_pick *p, __u32 i)
{
	__u64 at = BL_READ_ONCE(p->due->at[i & (BL_DUE_MAX - 1)]);

	if (at < p->least) {
		p->second = p->least;
		p->least = at;
		p->index = i;
	} else if (at < p->second) {
		p->second = at;
	}
}

/**
 * bl_due_take - the pacer is about to look into queue @i, which it must not do before. Pairs with
 * bl_due_put().
 */
BL_CORE void bl_due_take(struct bl_due *d, __u32 i)
{
	(void)__sync_lock_test_and_set(&d->at[i & (BL_DUE_MAX - 1)], BL_DUE_NEVER);
}

/**
 * bl_due_end - end the pacer's turn: queue p->index is due again at @again (BL_DUE_NEVER: it is
 * empty), and nothing can be sent before @free.
 */
BL_CORE void bl_due_end(struct bl_due *d, const struct bl_due_pick *p, __u64 again, __u64 free)
{
	__u64 next = bl_min64(p->second, again);

	if (again != BL_DUE_NEVER)
		bl_time_lower(&d->at[p->index & (BL_DUE_MAX - 1)], BL_DUE_NEVER, again);
	if (next != BL_DUE_NEVER)
		bl_due_next(d, bl_max64(next, free));
}

#endif
