/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages into the rings of endpoints, and waking the processes that sleep on them. BPF side only.
 *
 * A process that sleeps writes into its page what it waits for (struct bl_ep_wake). It is woken by
 * the first barrier above until; BL_WAKE_ON_DATA means that it has nothing to deliver, BL_TIME_NONE
 * that it is awake. next in the page of hints is the least until of all endpoints, so a barrier
 * that wakes nobody costs one comparison. Beacons do not believe it, since any process can write
 * it.
 *
 * Example: endpoint 3 sleeps with BL_WAKE_ON_DATA. A DATA frame with ts = 1030 is appended to its
 * ring without a wakeup; until becomes 1030, and next is lowered to 1030. When the host's barrier
 * passes 1030, wake_below() scans the endpoints, sets until to BL_TIME_NONE, and wakes the process
 * by a record that is reserved and discarded.
 *
 * Not here: what a process does with the record (lib/rx.c).
 */
#ifndef BARLINE_HOST_RING_H
#define BARLINE_HOST_RING_H

#include "bpf/host/role.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"
#include "bpf/host/run.h"

/*
 * Lowers next or next_c to @until; struct bl_hints says what it pairs with. Gives up after
 * four lost races.
 */
static __always_inline void lower_next(__u64 *next, __u64 until)
{
	int i;

	for (i = 0; i < 4; i++) {
		__u64 cur = BL_READ_ONCE(*next);

		if (cur <= until || __sync_val_compare_and_swap(next, cur, until) == cur)
			return;
	}
}

/*
 * Appends the frame's message as one record.
 * @skb: constant; 1: @ctx is a struct __sk_buff, 0: a struct xdp_md
 * @room: constant; bytes of the record
 * @flags: of bpf_ringbuf_submit()
 * Returns 0, or -1 if the ring is full.
 */
static __always_inline int append_record(void *ctx, const int skb, struct run *r, void *ring,
					 const __u32 room, __u64 flags)
{
	struct bl_rec *rec = bpf_ringbuf_reserve(ring, room, 0);
	__u64 last = r->f.body_len, max = room - sizeof(*rec);
	__u32 off = r->f.hdr_off + sizeof(struct bl_hdr);
	long err = 0;

	if (!rec)
		return -1;
	rec->ts = r->ts;
	rec->psn = r->f.psn;
	rec->sport = r->f.sport;
	rec->opcode = r->f.opcode;
	rec->flags = r->f.flags;
	__builtin_memcpy(rec->saddr, r->saddr, 16);
	rec->len = (__u16)r->f.body_len;
	rec->relayed = r->relayed;
	rec->at = r->f.psn % BL_REC_SAMPLE ? 0 : (__u32)(bpf_ktime_get_ns() >> BL_REC_AT_SHIFT) | 1;
	/*
	 * Linux 6.1 needs a 64-bit length, and the register that is checked must be the one that is
	 * used, to accept a length of 1 to max.
	 */
	last--;
	BL_SEEN(last);
	if (last < max) {
		BL_SEEN(last);
		if (skb)
			err = bpf_skb_load_bytes(ctx, off, rec + 1, last + 1);
		else
			err = bpf_xdp_load_bytes(ctx, off, rec + 1, last + 1);
	}
	/*
	 * Cannot happen, since the parser has seen these bytes. The reader refuses an empty body as
	 * malformed.
	 */
	if (err)
		rec->len = 0;
	bpf_ringbuf_submit(rec, flags);
	return 0;
}

/*
 * Wakes the reader of @ring by an empty record that is discarded: its commit wakes. Returns 0, or
 * -1 if the ring has no room; then the reader has enough records to wake up for.
 */
static __always_inline int wake_ring(void *ring)
{
	void *rec = bpf_ringbuf_reserve(ring, 8, 0);

	if (!rec)
		return -1;
	bpf_ringbuf_discard(rec, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/*
 * Returns the reason for a frame whose endpoint is not there: BL_R_LEFT, or else @why.
 *
 * An endpoint that left in order must not hold up others: a frame that asks for an answer and is
 * for its last life is answered as if the endpoint had stored it and left after that. A frame for
 * an endpoint that died, or for an earlier life, is not answered. What such an endpoint has not
 * acknowledged is taken back when its failure is announced (1Pipe 5.2).
 */
static __always_inline enum bl_reason absent_reason(const struct bl_ep_slot *ep,
						    const struct run *r, enum bl_reason why)
{
	return bl_op_asks(r->f.opcode) && r->life && r->life == ep->left ? BL_R_LEFT : why;
}

/*
 * Appends the frame to the ring of its endpoint and wakes the process if it must know now.
 * @skb: as for append_record(). Returns BL_R_STORED, or the reason why the frame was not stored.
 */
static __always_inline enum bl_reason store_message(void *ctx, const int skb, struct run *r)
{
	__u32 i = (__u16)(r->f.dport - r->cfg->port_base), key, zero = 0;
	const struct bl_ep_slot *ep = bpf_map_lookup_elem(&eps, &i);
	struct bl_hints *h;
	struct bl_ep_page *p;
	__u64 until, *upto, flags = BPF_RB_NO_WAKEUP;
	const __u64 *a, *d = (const __u64 *)r->daddr;
	int full, timed = bl_op_timed(r->f.opcode);
	void *ring;

	if (!ep)
		return BL_R_NO_ENDPOINT;
	a = (const __u64 *)ep->addr;
	if ((a[0] | a[1]) && (a[0] != d[0] || a[1] != d[1]))
		return BL_R_NO_ENDPOINT;
	if (BL_READ_ONCE(ep->active) != BL_EP_ACTIVE)
		return absent_reason(ep, r, BL_R_NO_ENDPOINT);
	if (r->f.body_len > BL_BODY_MAX)
		return BL_R_TOO_BIG;
	/*
	 * A RECALL for a life that has ended has nothing to take out, and an endpoint that failed
	 * owes no answer (docs/reliable.md).
	 */
	if (bl_op_asks(r->f.opcode) && r->life != ep->life)
		return absent_reason(ep, r, BL_R_WRONG_LIFE);
	key = ep->slot;
	ring = bpf_map_lookup_elem(&rings, &key);
	p = ep_page_of(key);
	if (!ring || !p)
		return BL_R_NO_ENDPOINT;
	/*
	 * A sleeper with nothing to deliver is woken when the barrier passes its first message.
	 * Frames without a timestamp (credits, probes) concern it at once.
	 */
	if (!timed && BL_READ_ONCE(p->wake.until) != BL_TIME_NONE)
		flags = BPF_RB_FORCE_WAKEUP;
	if (r->f.body_len <= BL_REC_SMALL - sizeof(struct bl_rec))
		full = append_record(ctx, skb, r, ring, BL_REC_SMALL, flags);
	else if (r->f.body_len <= BL_REC_FULL - sizeof(struct bl_rec))
		full = append_record(ctx, skb, r, ring, BL_REC_FULL, flags);
	else if (r->f.body_len <= BL_REC_JUMBO - sizeof(struct bl_rec))
		full = append_record(ctx, skb, r, ring, BL_REC_JUMBO, flags);
	else
		full = append_record(ctx, skb, r, ring, BL_REC_HUGE, flags);
	if (full)
		return BL_R_RING_FULL;
	/*
	 * Read after the record's commit, which is an atomic exchange. Pairs with the process,
	 * which sets until, issues a fence, and reads its ring once more: one of the two sees the
	 * other.
	 */
	upto = r->f.opcode == BL_OP_PREP ? &p->wake.until_c : &p->wake.until;
	until = BL_READ_ONCE(*upto);
	if (until == BL_TIME_NONE || flags == BPF_RB_FORCE_WAKEUP)
		return BL_R_STORED;
	if (!timed) {
		wake_ring(ring);
	} else if (r->ts < until && __sync_val_compare_and_swap(upto, until, r->ts) == until) {
		h = bpf_map_lookup_elem(&hints, &zero);
		if (h)
			lower_next(r->f.opcode == BL_OP_PREP ? &h->next_c : &h->next, r->ts);
	}
	return BL_R_STORED;
}

/** struct wake_scan - state of a scan for endpoints to wake. */
struct wake_scan {
	__u64 barrier; /* endpoints whose until is below it are woken, bus time, ns */
	__u64 next;    /* least until of those that sleep on; BL_TIME_NONE: none */
	__u32 commit;  /* 1: @barrier is the commit barrier */
	__u32 neps;    /* slots to look at */
};

/* Wakes the endpoint in @slot if its until is below the barrier. */
static long wake_endpoint(__u32 slot, struct wake_scan *k)
{
	struct bl_ep_page *p;
	__u64 until, *upto;
	__u32 key = slot;
	void *ring;

	if (slot >= k->neps)
		return 1;
	p = ep_page_of(slot);
	if (!p)
		return 0;
	upto = k->commit ? &p->wake.until_c : &p->wake.until;
	until = BL_READ_ONCE(*upto);
	if (until >= BL_WAKE_ON_DATA)
		return 0;
	if (until >= k->barrier) {
		k->next = bl_min64(k->next, until);
		return 0;
	}
	/* The process woke up by itself, or another CPU lowered until and then also next. */
	if (__sync_val_compare_and_swap(upto, until, BL_TIME_NONE) != until)
		return 0;
	ring = bpf_map_lookup_elem(&rings, &key);
	if (ring && !wake_ring(ring))
		p->wake.woken++;
	return 0;
}

/*
 * Wakes every endpoint that waits for a barrier below @barrier.
 * @commit: 1: the commit barrier
 * @all: 1: whatever the hint says, which any process can write
 */
static __always_inline void wake_below(__u64 barrier, int commit, __u32 neps, int all)
{
	struct wake_scan k = {
		.barrier = barrier, .next = BL_TIME_NONE, .commit = commit, .neps = neps
	};
	__u32 zero = 0;
	struct bl_hints *h = bpf_map_lookup_elem(&hints, &zero);
	__u64 *next;

	if (!h)
		return;
	next = commit ? &h->next_c : &h->next;
	if (BL_READ_ONCE(*next) >= barrier && !all)
		return;
	/*
	 * Emptied before the scan, by a full barrier: an endpoint that is not seen asleep lowers it
	 * again.
	 */
	__sync_lock_test_and_set(next, BL_TIME_NONE);
	bpf_loop(BL_EPS_MAX, wake_endpoint, &k, 0);
	if (k.next != BL_TIME_NONE)
		lower_next(next, k.next);
}

#endif
