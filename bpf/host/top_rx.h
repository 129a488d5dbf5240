/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, the receiver: SYNC, STOP and FIN, and the echoes on data (all in bl_host_xdp).
 *
 * Example: a SYNC of flow 3, tag 0x5a17, arrives from 10.9.0.1. The flow gets place 0 of "top_rx",
 * and the pacer is woken to send its tokens. Data with the echo of token 1 arrives: the echo is cut
 * off, place 0 counts the bytes, and the rest goes to the application.
 *
 * Not here: tokens and LOSS, which the pacer sends (top_pace.h). BPF side only.
 */
#ifndef BARLINE_HOST_TOP_RX_H
#define BARLINE_HOST_TOP_RX_H

#include "bpf/host/role.h"
#include "bpf/host/top_tx.h"
#include "core/top/top_rx_core.h"

/* ---- signals ---- */

/* Makes the receiver's part of the pacer look at @at, CLOCK_MONOTONIC, ns. */
static __always_inline void bl_top_wake_pacer(struct bl_top_page *p, __u64 at)
{
	__u32 zero = 0;
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);

	if (due && bl_time_lower(&p->at, BL_DUE_NEVER, at) && bl_due_next(due, at))
		bl_pace_ring();
}

/* Takes a place for one more inbound flow. Returns it, or -1 if there is none. */
static __always_inline int bl_top_take_place(struct bl_top_page *p)
{
	__u32 w, n = BL_TOP_RX_WORDS, bit;
	__u64 free;

	BL_OPAQUE(n);
	for (w = 0; w < BL_TOP_RX_WORDS && w < n; w++) {
		free = ~BL_READ_ONCE(p->used[w]);
		if (!free)
			continue;
		bit = bl_lowest(free) & 63;
		if (!(__sync_fetch_and_or(&p->used[w], 1ULL << bit) >> bit & 1))
			return (int)(w * 64 + bit);
	}
	return -1;
}

/* Gives place @i back. */
static __always_inline void bl_top_give_place(struct bl_top_page *p, __u32 i)
{
	__u32 w = i / 64 & (BL_TOP_RX_WORDS - 1);
	__u64 was = __sync_fetch_and_and(&p->used[w], ~(1ULL << (i & 63)));

	__asm__ volatile("" : : "r"(was));
}

/*
 * Adds @bytes and @flows to coflow @id. Returns 1; 0: the table is full, and this coflow counts by
 * what its flows say of themselves.
 */
static __always_inline int bl_top_coflow_add(__u32 id, __u64 bytes, __s64 flows)
{
	/* static, since Linux 6.1 has too little stack left here */
	static const struct bl_top_coflow none;
	struct bl_top_coflow *f;

	if (!id)
		return 0;
	f = bpf_map_lookup_elem(&top_coflows, &id);
	if (!f && flows > 0) {
		bpf_map_update_elem(&top_coflows, &id, &none, BPF_NOEXIST);
		f = bpf_map_lookup_elem(&top_coflows, &id);
	}
	if (!f)
		return 0;
	(void)__sync_fetch_and_add(&f->bytes, bytes);
	/* The last flow deletes the coflow; one that joins at this very moment begins a new sum. */
	if (__sync_fetch_and_add(&f->flows, (__u64)flows) + (__u64)flows == 0)
		bpf_map_delete_elem(&top_coflows, &id);
	return 1;
}

/* Adds the new flow in @r's place to its coflow. Without room it has none. */
static __always_inline void bl_top_coflow_join(struct bl_top_rx *r)
{
	__u32 id = BL_READ_ONCE(r->coflow);

	if (id && !bl_top_coflow_add(id, BL_READ_ONCE(r->counted), 1)) {
		BL_WRITE_ONCE(r->coflow, 0);
		BL_WRITE_ONCE(r->counted, 0);
	}
}

/* Returns whether place @r belongs to @who. */
static __always_inline int bl_top_same_peer(const struct bl_top_rx *r,
					    const struct bl_top_rx_key *who)
{
	const __u32 *a = (const __u32 *)&r->who, *b = (const __u32 *)who;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4]));
}

/*
 * Reads the frame's source address, and its destination address unless @to is NULL. Returns 0, or
 * -1 if the header is cut short.
 */
static __always_inline int bl_top_read_addresses(struct xdp_md *ctx, __u32 v6, __u8 *from, __u8 *to)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (v6) {
		const struct ipv6hdr *ip = data + BL_TOP_IP4_OFF;

		if ((void *)(ip + 1) > end)
			return -1;
		__builtin_memcpy(from, &ip->saddr, 16);
		if (to)
			__builtin_memcpy(to, &ip->daddr, 16);
	} else {
		const struct iphdr *ip = data + BL_TOP_IP4_OFF;

		if ((void *)(ip + 1) > end)
			return -1;
		bl_top_map_ipv4(from, ip->saddr);
		if (to)
			bl_top_map_ipv4(to, ip->daddr);
	}
	return 0;
}

/*
 * Fills place @r, which the caller has not locked, from a SYNC of a flow that has no place yet, or
 * that has another tag than the flow that is there. Returns how many numbers of data are given up.
 */
static __always_inline __u32 bl_top_announce(struct xdp_md *ctx, struct bl_top_rx *r,
					     const struct bl_top_cfg *c, const struct bl_top_msg *m,
					     const struct bl_top_rx_key *who, const __u8 *self,
					     __u32 v6, __u64 now)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const struct udphdr *u = data + (v6 ? BL_TOP_HDR6 : BL_TOP_HDR4) - sizeof(*u);
	enum bl_top_was was = BL_TOP_WAS_FREE;
	__u32 lost;
	__u64 mac;
	__be16 port;

	BL_SEEN(u);
	if ((void *)(eth + 1) > end || (void *)(u + 1) > end)
		return 0;
	mac = bl_mac48(eth->h_source);
	port = u->source;
	bpf_spin_lock(&r->lock);
	if (r->state != BL_TOP_RX_FREE)
		was = r->port == port && bl_top_same_peer(r, who) ? BL_TOP_WAS_AGAIN
								  : BL_TOP_WAS_ANOTHER;
	lost = bl_top_rx_begin(r, c, m, was, now);
	bl_top_coflow_change(r, 0);
	r->who = *who;
	__builtin_memcpy(r->self, self, 16);
	r->mac[0] = (__u8)mac;
	r->mac[1] = (__u8)(mac >> 8);
	r->mac[2] = (__u8)(mac >> 16);
	r->mac[3] = (__u8)(mac >> 24);
	r->mac[4] = (__u8)(mac >> 32);
	r->mac[5] = (__u8)(mac >> 40);
	r->port = port;
	r->v6 = v6;
	bpf_spin_unlock(&r->lock);
	return lost;
}

/** bl_top_signal - handles SYNC, STOP or FIN @m. @v6: the frame is IPv6. Returns the reason. */
__attribute__((noinline)) int bl_top_signal(struct xdp_md *ctx, struct bl_top_msg *m, __u32 v6)
{
	__u32 zero = 0, *known, place, lost = 0;
	struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_rx_key who;
	__u64 now, say;
	struct bl_top_rx *r;
	int got, open = 0;
	__u8 self[16];

	if (!p || !c || !m || bl_top_read_addresses(ctx, v6, who.addr, self))
		return BL_R_SIGNAL_BAD;
	who.flow = m->flow;
	now = bpf_ktime_get_ns();
	known = bpf_map_lookup_elem(&top_rx_of, &who);
	if (!known) {
		if (m->op != BL_TOP_SYNC)
			return BL_R_SIGNAL_BAD;
		got = bl_top_take_place(p);
		if (got < 0)
			return BL_R_FLOWS_FULL;
		place = (__u32)got;
		r = bpf_map_lookup_elem(&top_rx, &place);
		if (!r)
			return BL_R_FLOWS_FULL;
		bl_top_announce(ctx, r, c, m, &who, self, v6, now);
		if (bpf_map_update_elem(&top_rx_of, &who, &place, BPF_NOEXIST)) {
			/* Another CPU has just received the same SYNC and keeps the flow. */
			BL_WRITE_ONCE(r->state, BL_TOP_RX_FREE);
			bl_top_give_place(p, place);
			return BL_R_SIGNAL;
		}
		bl_top_coflow_join(r);
		bl_top_wake_pacer(p, now);
		return BL_R_SIGNAL;
	}
	place = *known;
	r = bpf_map_lookup_elem(&top_rx, &place);
	if (!r)
		return BL_R_SIGNAL_BAD;
	bpf_spin_lock(&r->lock);
	/* 0: the place is being given up at this moment; the sender repeats its SYNC */
	got = r->state != BL_TOP_RX_FREE && bl_top_same_peer(r, &who);
	say = 0;
	if (got && r->tag != m->tag) {
		got = 2;
		if (m->op == BL_TOP_SYNC)
			say = bl_top_coflow_change(r, 1);
	} else if (got) {
		lost = bl_came_upto(&r->came, m->data, bl_top_rtt_ns(r, c), m->op == BL_TOP_STOP,
				    now);
		if (m->op == BL_TOP_SYNC) {
			open = bl_top_sync(r, m, now);
			say = bl_top_coflow_change(r, 0);
		} else if (m->op == BL_TOP_STOP) {
			bl_top_stop(r, m, now);
		} else {
			bl_top_fin(r, m, c, now);
			open = 1; /* 1: to free its place */
		}
	}
	bpf_spin_unlock(&r->lock);
	if (!got)
		return BL_R_SIGNAL;
	if (got == 2 && m->op != BL_TOP_SYNC)
		return BL_R_SIGNAL_BAD;
	if (got == 2) {
		/*
		 * Without the lock: two CPUs that receive the same new flow at once would both be
		 * here in any case.
		 */
		bl_top_coflow_add(BL_READ_ONCE(r->coflow), say, -1);
		lost = bl_top_announce(ctx, r, c, m, &who, self, v6, now);
		bl_top_coflow_join(r);
		open = 1;
	} else if (say) {
		bl_top_coflow_add(BL_READ_ONCE(r->coflow), say, 0);
	}
	bl_count_n(BL_HC_INGRESS, BL_R_DATA_LOST, lost);
	if (open) {
		bl_top_wake_pacer(p, now);
		return BL_R_SIGNAL;
	}
	/*
	 * Without the lock: a CPU that changes it meanwhile wakes the pacer, too. The value is read
	 * again, because Linux 6.1 has no stack left to keep it.
	 */
	say = BL_READ_ONCE(r->came.report_ns);
	if (say != BL_DUE_NEVER)
		bl_top_wake_pacer(p, say);
	return BL_R_SIGNAL;
}

/* ---- data ---- */

/**
 * bl_top_data - cuts the echo off a data frame whose IP packet ends at @end, and counts the frame
 * for its flow. Returns the reason; BL_R_NONE: the frame is the application's.
 */
__attribute__((noinline)) int bl_top_data(struct xdp_md *ctx, __u32 end, __u32 v6)
{
	__u32 zero = 0, len = (__u32)bpf_xdp_get_buff_len(ctx), *known, place, coflow = 0, number,
	      lost = 0;
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_coflow *f;
	struct bl_top_rx_key who;
	struct bl_top_echo e;
	struct bl_top_page *p;
	struct bl_top_rx *r;
	int rc = -1, came = 0;
	__u64 now, say = BL_DUE_NEVER;

	if (!c || end + sizeof(e) > len || bpf_xdp_load_bytes(ctx, end, &e, sizeof(e)) ||
	    e.magic != BL_BE16(BL_TOP_ECHO_MAGIC) || bl_top_read_addresses(ctx, v6, who.addr, NULL))
		return BL_R_NONE;
	number = BL_HALVES(&e, data);
	bpf_xdp_adjust_tail(ctx, (int)end - (int)len);
	who.flow = BL_BE16(e.flow);
	known = bpf_map_lookup_elem(&top_rx_of, &who);
	place = known ? *known : BL_TOP_RX_MAX;
	r = bpf_map_lookup_elem(&top_rx, &place);
	if (r) {
		now = bpf_ktime_get_ns();
		bpf_spin_lock(&r->lock);
		if (r->state != BL_TOP_RX_FREE && bl_top_same_peer(r, &who)) {
			rc = bl_top_echo(r, c, BL_HALVES(&e, seq), end, now);
			coflow = r->coflow;
			/* The frame arrived, even if its token had the previous tag. */
			if (number) {
				came = bl_came_number(&r->came, number, bl_top_rtt_ns(r, c), now,
						      &lost);
				say = r->came.report_ns;
				rc = came < 0 ? -1 : rc;
			}
		}
		bpf_spin_unlock(&r->lock);
	}
	if (rc)
		bl_count(BL_HC_INGRESS, BL_R_ECHO_BAD);
	f = coflow ? bpf_map_lookup_elem(&top_coflows, &coflow) : NULL;
	if (f && !rc)
		(void)__sync_fetch_and_add(&f->served, end);
	bl_count_n(BL_HC_INGRESS, BL_R_DATA_LOST, lost);
	p = say != BL_DUE_NEVER ? bpf_map_lookup_elem(&top_page, &zero) : NULL;
	if (p)
		bl_top_wake_pacer(p, say);
	return came > 0 ? BL_R_DATA_REPEATED : BL_R_NONE;
}

#endif
