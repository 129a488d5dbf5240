/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues of frames: what bl_hold_xdp, a switch's metered ports and the pacer's programs share. The
 * arithmetic is in core/queue/queue_core.h; maps/queue_abi.h has a worked example.
 *
 * A slot belongs to whoever took its number, either from "free_slots" or out of a ring. Every way
 * out of a function here gives the slot back or hands it on. At most one lock is held at a time,
 * and no helper is called under a lock, so everything is looked up before.
 *
 * Example: a frame of 1514 bytes for queue 7 takes slot 12 out of "free_slots", is copied into it,
 * and entry (12, 1514) goes into ring 7. The pacer takes the entry out, copies the slot into its
 * own frame, sends that, and gives slot 12 back.
 *
 * Not here: which queue a frame belongs to, and when the pacer may send it. BPF side only.
 */
#ifndef BARLINE_QUEUE_UTIL_H
#define BARLINE_QUEUE_UTIL_H

#include "core/queue/queue_core.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"

/* ---- slots ---- */

/* Returns a free slot, which is the caller's, or -1 if there is none. */
static __always_inline int bl_slot_alloc(void)
{
	__u32 slot;

	return bpf_map_pop_elem(&free_slots, &slot) ? -1 : (int)slot;
}

/* Gives a slot back. */
static __always_inline void bl_slot_free(__u32 slot)
{
	int i;

	/*
	 * The map has room for all slots. Since Linux 6.16 its lock may time out (after a quarter
	 * of a second), which must not lose a slot for ever.
	 */
	for (i = 0; i < 3; i++)
		if (!bpf_map_push_elem(&free_slots, &slot, BPF_ANY))
			return;
}

/* ---- frames ---- */

/**
 * bl_frame_in - copies the frame into slot @slot, which belongs to the caller. This and the
 * functions below are global functions so that the verifier checks each of them once, and not once
 * per path that leads to it.
 * @queue: the slot's queue
 * @now: arrival, CLOCK_MONOTONIC, ns
 * Returns 0, or -1 if the frame is too short or too long.
 */
__attribute__((noinline)) int bl_frame_in(struct xdp_md *ctx, __u32 slot, __u32 queue, __u64 now)
{
	__u64 len = bpf_xdp_get_buff_len(ctx), rest = len - BL_QUEUE_FRAME_MIN;
	struct bl_slot *s = bpf_map_lookup_elem(&slots, &slot);

	if (!s)
		return -1;
	BL_SEEN(rest);
	if (rest > BL_QUEUE_FRAME_MAX - BL_QUEUE_FRAME_MIN)
		return -1;
	BL_SEEN(rest);
	s->at_ns = now;
	s->len = (__u32)len;
	s->queue = queue;
	return bpf_xdp_load_bytes(ctx, 0, s->data, rest + BL_QUEUE_FRAME_MIN) ? -1 : 0;
}

/**
 * bl_frame_out - gives the pacer's frame the length @len of the frame in slot @slot and copies that
 * into it. Returns 0 or -1. The slot still belongs to the caller.
 */
__attribute__((noinline)) int bl_frame_out(struct xdp_md *ctx, __u32 slot, __u32 len)
{
	__u64 rest = (__u64)len - BL_QUEUE_FRAME_MIN;
	struct bl_slot *s = bpf_map_lookup_elem(&slots, &slot);

	if (!s || rest > BL_QUEUE_FRAME_MAX - BL_QUEUE_FRAME_MIN ||
	    bpf_xdp_adjust_tail(ctx, (int)len - (int)bpf_xdp_get_buff_len(ctx)))
		return -1;
	BL_SEEN(rest);
	if (rest > BL_QUEUE_FRAME_MAX - BL_QUEUE_FRAME_MIN)
		return -1;
	BL_SEEN(rest);
	return bpf_xdp_store_bytes(ctx, 0, s->data, rest + BL_QUEUE_FRAME_MIN) ? -1 : 0;
}

/* ---- queues ---- */

/**
 * bl_queue_put - appends entry @entry to queue @key. @marked: the frame got ECN CE. Returns 0, or
 * -1 if the queue is full.
 */
__attribute__((noinline)) int bl_queue_put(__u32 key, __u32 entry, __u32 marked)
{
	struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);
	struct bl_queue_hist *h = bpf_map_lookup_elem(&queue_hist, &key);
	int rc;

	if (!q || !h)
		return -1;
	bpf_spin_lock(&q->lock);
	rc = bl_ring_put(q, &h->found, entry, !!marked);
	bpf_spin_unlock(&q->lock);
	return rc;
}

/**
 * bl_queue_get - takes the oldest entry out of queue @key. Returns it, or 0 if the queue is empty.
 */
__attribute__((noinline)) int bl_queue_get(__u32 key)
{
	struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);
	__u32 entry;

	if (!q)
		return 0;
	bpf_spin_lock(&q->lock);
	entry = bl_ring_take(q);
	bpf_spin_unlock(&q->lock);
	return (int)entry;
}

/** bl_queue_peek - returns the oldest entry and leaves it in the queue; 0 if the queue is empty. */
__attribute__((noinline)) int bl_queue_peek(__u32 key)
{
	struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);
	__u32 entry;

	if (!q)
		return 0;
	bpf_spin_lock(&q->lock);
	entry = q->head == q->tail ? 0 : q->ring[q->head & (BL_RING - 1)];
	bpf_spin_unlock(&q->lock);
	return (int)entry;
}

/**
 * bl_queue_get_upto - takes the oldest entry if its frame takes at most @max byte times. Returns
 * it, or 0.
 */
__attribute__((noinline)) int bl_queue_get_upto(__u32 key, __u32 max)
{
	struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);
	__u32 entry;

	if (!q)
		return 0;
	bpf_spin_lock(&q->lock);
	entry = bl_ring_take_upto(q, max);
	bpf_spin_unlock(&q->lock);
	return (int)entry;
}

/** bl_queue_get_if - takes the oldest entry if it is still @entry. Returns it, or 0. */
__attribute__((noinline)) int bl_queue_get_if(__u32 key, __u32 entry)
{
	struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);

	if (!q)
		return 0;
	bpf_spin_lock(&q->lock);
	entry = bl_ring_take_if(q, entry);
	bpf_spin_unlock(&q->lock);
	return (int)entry;
}

/* Returns the number of frames in queue @key at this moment; see bl_ring_len(). */
static __always_inline __u32 bl_queue_len(__u32 key)
{
	const struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);

	return q ? bl_ring_len(q) : 0;
}

/* Sets ECN CE in the frame. Returns 1 if that changed the frame. */
static __always_inline int bl_ecn_mark(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	void *l3 = eth + 1;
	__u16 type;

	if (l3 > end)
		return 0;
	type = eth->h_proto;
	if (type == BL_BE16(BL_ETH_8021Q) || type == BL_BE16(BL_ETH_8021AD)) {
		struct bl_vlan *v = l3;

		l3 = v + 1;
		if (l3 > end)
			return 0;
		type = v->proto;
	}
	if (type == BL_BE16(BL_ETH_IP)) {
		struct iphdr *ip = l3;

		return (void *)(ip + 1) <= end && ip->version == 4 && bl_ecn_ce4(ip);
	}
	if (type == BL_BE16(BL_ETH_IP6)) {
		struct ipv6hdr *ip = l3;

		return (void *)(ip + 1) <= end && ip->version == 6 && bl_ecn_ce6(ip);
	}
	return 0;
}

/**
 * bl_enqueue - copies the current frame into queue @key. The pacer does not look at the frame
 * before the caller's bl_due_put().
 * @now: arrival, CLOCK_MONOTONIC, ns
 * @place: port or BL_HC_* at which ECN_MARKED counts
 * Returns BL_R_NONE, FRAME_SIZE, NO_SLOT or QUEUE_FULL.
 */
__attribute__((noinline)) int bl_enqueue(struct xdp_md *ctx, __u32 key, __u64 now, __u32 place)
{
	const struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);
	__u32 len = (__u32)bpf_xdp_get_buff_len(ctx);
	int slot, marked = 0;

	if (len < BL_QUEUE_FRAME_MIN || len > BL_QUEUE_FRAME_MAX)
		return BL_R_FRAME_SIZE;
	if (!q)
		return BL_R_QUEUE_FULL; /* a queue that does not exist has no room */
	slot = bl_slot_alloc();
	if (slot < 0)
		return BL_R_NO_SLOT;
	if (bl_wants_mark(q))
		marked = bl_ecn_mark(ctx);
	if (bl_frame_in(ctx, (__u32)slot, key, now)) {
		bl_slot_free((__u32)slot);
		return BL_R_FRAME_SIZE;
	}
	if (bl_queue_put(key, BL_RING_ENTRY((__u32)slot, len), (__u32)marked)) {
		bl_slot_free((__u32)slot);
		return BL_R_QUEUE_FULL;
	}
	if (marked)
		bl_count(place, BL_R_ECN_MARKED);
	return BL_R_NONE;
}

/* ---- the pacer ---- */

/*
 * Wakes the pacer's thread, if it sleeps, because something became due earlier than it expects. The
 * record is reserved and discarded: its commit with BPF_RB_FORCE_WAKEUP is what wakes.
 */
static __always_inline void bl_pace_ring(void)
{
	__u32 zero = 0;
	struct bl_pace_page *page = bpf_map_lookup_elem(&pace_page, &zero);
	void *rec;

	/*
	 * bl_due.next was lowered before, by an atomic operation. Pairs with the pacer's thread,
	 * which sets asleep, issues a fence, and reads bl_due.next.
	 */
	if (!page || !BL_READ_ONCE(page->asleep) || !__sync_lock_test_and_set(&page->asleep, 0))
		return;
	rec = bpf_ringbuf_reserve(&pace_bell, 8, 0);
	/*
	 * Without room the bell holds records that the thread has not read yet, and it is awake
	 * anyway.
	 */
	if (rec)
		bpf_ringbuf_discard(rec, BPF_RB_FORCE_WAKEUP);
}

/** struct bl_scan - state of a scan over the first n times of struct bl_due. */
struct bl_scan {
	struct bl_due_pick pick;
};

static long bl_scan_due(__u32 i, struct bl_scan *s)
{
	bl_due_consider(&s->pick, i);
	return 0;
}

/*
 * Scans the first @n times of @due into @s.
 *
 * Before Linux 6.7 (commit ab5cfac139ab) the verifier followed a callback only once and removed the
 * branches that cannot be taken on its first call. With a least time known to be BL_DUE_NEVER, it
 * removed the comparison with the second least (seen on 6.1: all destinations but one were
 * forgotten). So the constant is mixed with a value that the verifier does not know.
 */
static __always_inline void bl_due_scan(struct bl_due *due, __u32 n, struct bl_scan *s)
{
	__u64 x = BL_READ_ONCE(due->given), y = x;

	bl_due_begin(due, &s->pick);
	BL_SEEN(y);
	s->pick.least ^= x ^ y;
	s->pick.second = s->pick.least;
	bpf_loop(n, bl_scan_due, s, 0);
}

/*
 * Updates the statistics for a frame in slot @slot that was due at @due.
 * @sent: 1: the device map took it; 0: it refused it.
 */
static __always_inline void bl_pace_note_frame(struct bl_pace_page *page, __u32 slot, int sent,
					       __u64 due, __u64 now)
{
	struct bl_slot *s = bpf_map_lookup_elem(&slots, &slot);
	struct bl_queue_hist *h;
	__u32 key;

	if (!sent) {
		page->failed++;
		return;
	}
	page->emitted++;
	bl_hist_add(&page->late, (now - bl_min64(due, now)) >> BL_HIST_NS_SHIFT);
	if (!s)
		return;
	key = s->queue;
	s->queue = BL_SLOT_SENT;
	h = bpf_map_lookup_elem(&queue_hist, &key);
	if (h)
		bl_hist_add(&h->sojourn, (now - bl_min64(s->at_ns, now)) >> BL_HIST_NS_SHIFT);
}

/* Returns when the frame in @slot arrived, CLOCK_MONOTONIC, ns. */
static __always_inline __u64 bl_slot_arrival_ns(__u32 slot)
{
	const struct bl_slot *s = bpf_map_lookup_elem(&slots, &slot);

	return s ? s->at_ns : 0;
}

/*
 * Returns whether nothing is due before or at @now. Also counts the turn and updates the pacer's
 * page.
 */
static __always_inline int bl_pace_idle(struct bl_pace_page *page, const struct bl_due *due,
					__u64 now)
{
	__u64 next = BL_READ_ONCE(due->next);

	page->turns++; /* Written only by this node's pacer. */
	BL_WRITE_ONCE(page->next_ns, next);
	return next > now;
}

#endif
