/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames into queues and out of them again: what bl_hold_xdp, the switch's metered ports and the
 * pacer's programs share. BPF side only; queue_core.h has the arithmetic, queue_abi.h the example.
 *
 * A slot belongs to whoever took its number: from free_slots, or out of a ring. Every way out of a
 * function here gives it back or hands it on. One lock at a time, and no helper is called under it:
 * everything is looked up before.
 */
#ifndef BARLINE_QUEUE_UTIL_H
#define BARLINE_QUEUE_UTIL_H

#include "core/queue/queue_core.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"

/* ---- slots ---- */

static __always_inline int bl_slot_alloc(void)
{
	__u32 slot;

	return bpf_map_pop_elem(&free_slots, &slot) ? -1 : (int)slot;
}

static __always_inline void bl_slot_free(__u32 slot)
{
	int i;

	/*
	 * There is room for all. Since Linux 6.16 the map's lock may give up (after a quarter of a
	 * second): not a reason to lose a slot for ever.
	 */
	for (i = 0; i < 3; i++)
		if (!bpf_map_push_elem(&free_slots, &slot, BPF_ANY))
			return;
}

/* ---- frames ---- */

/*
 * Copies the frame of @len bytes into a slot that is the caller's. Returns 0, or -1 if it is too
 * short or too long. Global functions, here and below: the verifier looks at them once, not for
 * each way that leads to them.
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

/*
 * Makes the pacer's frame as long as the slot's and copies it out. Returns 0 or -1. The slot stays
 * the caller's.
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

/* Returns 0, or -1 if the queue is full. @marked: the frame got ECN CE. */
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

/* The oldest entry, or 0. */
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

/* The oldest entry, which stays; or 0. */
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

/* The oldest entry if its frame takes at most @max byte times, or 0. */
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

/* The oldest entry if it is @entry, or 0. */
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

/* Frames in it, as of now; see bl_ring_len(). */
static __always_inline __u32 bl_queue_len(__u32 key)
{
	const struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);

	return q ? bl_ring_len(q) : 0;
}

/* Mark the frame as having met a queue. Returns 1 if that changed it. */
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
 * bl_enqueue - copies the current frame into queue @key; @now: when it came; @place: where
 * ECN_MARKED counts. Returns BL_R_NONE, FRAME_SIZE, NO_SLOT or QUEUE_FULL. Until the caller's
 * bl_due_put() nobody knows of it.
 */
__attribute__((noinline)) int bl_enqueue(struct xdp_md *ctx, __u32 key, __u64 now, __u32 place)
{
	const struct bl_queue *q = bpf_map_lookup_elem(&queues, &key);
	__u32 len = (__u32)bpf_xdp_get_buff_len(ctx);
	int slot, marked = 0;

	if (len < BL_QUEUE_FRAME_MIN || len > BL_QUEUE_FRAME_MAX)
		return BL_R_FRAME_SIZE;
	if (!q)
		return BL_R_QUEUE_FULL; /* none there is one of no length */
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
 * Something is due earlier than the pacer thought. An empty record, thrown away: its commit is what
 * wakes.
 */
static __always_inline void bl_pace_ring(void)
{
	__u32 zero = 0;
	struct bl_pace_page *page = bpf_map_lookup_elem(&pace_page, &zero);
	void *rec;

	/*
	 * after bl_due.next was lowered, by an atomic operation; pairs with the pacer's thread:
	 * asleep, fence, a look at bl_due.next
	 */
	if (!page || !BL_READ_ONCE(page->asleep) || !__sync_lock_test_and_set(&page->asleep, 0))
		return;
	rec = bpf_ringbuf_reserve(&pace_bell, 8, 0);
	if (rec)
		bpf_ringbuf_discard(rec, BPF_RB_FORCE_WAKEUP); /* no room: bells that nobody
								  answered yet are in there */
}

/* A turn that found something at all: looks at the first @n times of @due. */
struct bl_scan {
	struct bl_due_pick pick;
};

static long bl_scan_due(__u32 i, struct bl_scan *s)
{
	bl_due_consider(&s->pick, i);
	return 0;
}

/*
 * Before Linux 6.7 (commit ab5cfac139ab) the verifier followed a callback once only, and took out
 * of it what cannot happen the first time: with a least that it knew to be BL_DUE_NEVER, the
 * comparison with the second (seen on 6.1: all but one destination were forgotten). So the constant
 * is mixed with something that it does not know.
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
 * What both kinds of turn note down about a frame in slot @slot that the device map took (@sent) or
 * refused.
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

/* When the frame in @slot came. */
static __always_inline __u64 bl_slot_arrival_ns(__u32 slot)
{
	const struct bl_slot *s = bpf_map_lookup_elem(&slots, &slot);

	return s ? s->at_ns : 0;
}

/* The pacer asked: nothing to do before *@next? Also keeps the page up to date. */
static __always_inline int bl_pace_idle(struct bl_pace_page *page, const struct bl_due *due,
					__u64 now)
{
	__u64 next = BL_READ_ONCE(due->next);

	page->turns++; /* the node's pacer only */
	BL_WRITE_ONCE(page->next_ns, next);
	return next > now;
}

#endif
