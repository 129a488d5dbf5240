/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, the pacer's turns: SYNC, STOP and FIN of flows that this host sends, tokens and
 * LOSS for flows that it receives.
 *
 * Example: places 0 and 4 are open, 0 in class 3 and 4 in class 1. One token slot is free:
 * bl_top_slot() scans both places, picks the better class, builds the next token of that flow in
 * the pacer's frame, and schedules the next turn one token time later.
 *
 * Not here: what is picked (core/top/top_classes_core.h, top_core.h). BPF side only.
 */
#ifndef BARLINE_HOST_TOP_PACE_H
#define BARLINE_HOST_TOP_PACE_H

#include "bpf/host/role.h"
#include "bpf/host/top_rx.h"

/* how often a flow that is sent without tokens is checked for its end, ns */
#define BL_TOP_OUTSIDE_NS 100000000ULL
#define BL_TOP_CLOCK_NS   1000000ULL /* how soon a void clock is read again, ns */

/* ---- what it builds ---- */

/**
 * struct bl_top_out - a token or signal to be built. Fields that only some opcodes have are 0 in
 * the others; they have the units of the wire's structs (maps/top_abi.h).
 */
struct bl_top_out {
	__u8 to[16];       /* destination address, IPv6 or IPv4-mapped */
	__u8 from[16];     /* source address, IPv6 or IPv4-mapped */
	__u8 mac[6];       /* next hop */
	__u8 v6;           /* 1: IPv6 */
	__u8 op;           /* enum of opcodes: BL_TOP_TOKEN and so on */
	__u8 cls;          /* TOKEN: class, 0 the best */
	__u8 zero;         /* always 0 */
	__be16 port;       /* UDP source port */
	__u32 flow;        /* the flow's number at its sender */
	__u32 seq;         /* number of the token or signal */
	__u32 tag;         /* of the flow */
	__u32 frames;      /* SYNC: frames that wait */
	__u64 ts;          /* bus time, ns */
	__u64 bytes;       /* SYNC: size of the flow, 0: unknown; FIN: bytes sent */
	__u32 deadline_us; /* SYNC: 0: none */
	__u32 coflow;      /* SYNC: 0: none */
	__u32 unsched;     /* SYNC: unscheduled frames */
	__u32 body;        /* bytes behind struct bl_top_hdr */
	__u64 missing;     /* LOSS: bit i: data - i is missing */
	__u32 data;        /* last number of data that it describes */
	__u32 rtt_us;      /* LOSS: as the receiver measures it */
};

/* Writes the UDP header and struct bl_top_hdr. */
static __always_inline void bl_top_put_udp(struct udphdr *u, const struct bl_top_out *o)
{
	struct bl_top_hdr *h = (void *)(u + 1);

	u->source = o->port;
	u->dest = BL_BE16(BL_TOP_PORT);
	u->len = BL_BE16((__u16)(sizeof(*u) + sizeof(*h) + o->body));
	u->check = 0;
	h->opcode = BL_TOP_OPCODE_BYTE(o->op);
	h->cls = o->cls;
	h->flow = BL_BE16((__u16)o->flow);
	BL_HALVES_SET(h, seq, o->seq);
	bl_put48(h->ts, o->ts);
	BL_HALVES_SET(h, tag, o->tag);
}

/* Writes the body of a signal behind @h; a token has none. */
static __always_inline void bl_top_put_body(struct bl_top_hdr *h, const void *end,
					    const struct bl_top_out *o)
{
	if (o->op == BL_TOP_SYNC) {
		struct bl_top_sync *s = (void *)(h + 1);

		if ((void *)(s + 1) > end)
			return;
		s->zero = s->reserved = 0;
		bl_put48(s->bytes, o->bytes);
		BL_HALVES_SET(s, frames, o->frames);
		BL_HALVES_SET(s, deadline, o->deadline_us);
		BL_HALVES_SET(s, coflow, o->coflow);
		s->unscheduled = BL_BE16((__u16)o->unsched);
		BL_HALVES_SET(s, data, o->data);
	} else if (o->op == BL_TOP_FIN) {
		struct bl_top_fin *f = (void *)(h + 1);

		if ((void *)(f + 1) > end)
			return;
		f->zero = 0;
		bl_put48(f->bytes, o->bytes);
		BL_HALVES_SET(f, data, o->data);
	} else if (o->op == BL_TOP_STOP) {
		struct bl_top_stop *s = (void *)(h + 1);

		if ((void *)(s + 1) > end)
			return;
		BL_HALVES_SET(s, data, o->data);
	} else if (o->op == BL_TOP_LOSS) {
		struct bl_top_loss *l = (void *)(h + 1);

		if ((void *)(l + 1) > end)
			return;
		BL_HALVES_SET(l, data, o->data);
		BL_HALVES_SET(l, missing_hi, (__u32)(o->missing >> 32));
		BL_HALVES_SET(l, missing_lo, (__u32)o->missing);
		BL_HALVES_SET(l, rtt, o->rtt_us);
	}
}

/* Writes the IPv4 header. */
static __always_inline void bl_top_put_ipv4(struct iphdr *ip, const struct bl_top_out *o)
{
	const __u32 *to = (const __u32 *)o->to, *from = (const __u32 *)o->from;
	const __u16 *w = (const __u16 *)ip;
	__u32 sum = 0, i;

	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = BL_BE16(
		(__u16)(sizeof(*ip) + sizeof(struct udphdr) + sizeof(struct bl_top_hdr) + o->body));
	ip->frag_off = BL_BE16(0x4000);
	ip->ttl = 64;
	ip->protocol = BL_UDP;
	ip->saddr = from[3];
	ip->daddr = to[3];
#pragma unroll
	for (i = 0; i < sizeof(*ip) / 2; i++)
		sum += w[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip->check = (__u16)~sum;
}

/* Writes the IPv6 header. */
static __always_inline void bl_top_put_ipv6(struct ipv6hdr *ip, const struct bl_top_out *o)
{
	__builtin_memset(ip, 0, sizeof(*ip));
	*(__u8 *)ip = 6 << 4;
	ip->payload_len =
		BL_BE16((__u16)(sizeof(struct udphdr) + sizeof(struct bl_top_hdr) + o->body));
	ip->nexthdr = BL_UDP;
	ip->hop_limit = 64;
	__builtin_memcpy(&ip->saddr, o->from, 16);
	__builtin_memcpy(&ip->daddr, o->to, 16);
}

/** bl_top_build - turns the pacer's frame into what @o describes. Returns its length, or -1. */
__attribute__((noinline)) int bl_top_build(struct xdp_md *ctx, struct bl_top_out *o)
{
	const struct bl_hold_cfg *cfg;
	void *data, *end;
	struct ethhdr *eth;
	__u32 zero = 0;
	int len;

	cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	if (!cfg || !o)
		return -1;
	len = (int)((o->v6 ? BL_TOP_HDR6 : BL_TOP_HDR4) + sizeof(struct bl_top_hdr) + o->body);
	if (bpf_xdp_adjust_tail(ctx, len - (int)bpf_xdp_get_buff_len(ctx)))
		return -1;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	eth = data;
	if (o->v6) {
		struct ipv6hdr *ip = (void *)(eth + 1);
		struct udphdr *u = (void *)(ip + 1);
		struct bl_top_hdr *h = (void *)(u + 1);

		if ((void *)(h + 1) > end)
			return -1;
		eth->h_proto = BL_BE16(BL_ETH_IP6);
		bl_top_put_ipv6(ip, o);
		bl_top_put_udp(u, o);
		bl_top_put_body(h, end, o);
	} else {
		struct iphdr *ip = (void *)(eth + 1);
		struct udphdr *u = (void *)(ip + 1);
		struct bl_top_hdr *h = (void *)(u + 1);

		if ((void *)(h + 1) > end)
			return -1;
		eth->h_proto = BL_BE16(BL_ETH_IP);
		bl_top_put_ipv4(ip, o);
		bl_top_put_udp(u, o);
		bl_top_put_body(h, end, o);
	}
	__builtin_memcpy(eth->h_dest, o->mac, 6);
	__builtin_memcpy(eth->h_source, cfg->mac, 6);
	return len;
}

/* ---- flows that are sent ---- */

/** bl_top_flowing - returns whether number @n belongs to a flow. */
static __always_inline int bl_top_flowing(__u32 n)
{
	const struct bl_top_tx *t = bpf_map_lookup_elem(&top_tx, &n);

	return t && BL_READ_ONCE(t->state) != BL_TOP_FREE;
}

/**
 * bl_top_turn - decides what the pacer does for flow @n at @now. Called after bl_due_take(), as
 * bl_pl2_turn().
 */
__attribute__((noinline)) int bl_top_turn(__u32 n, __u64 now, struct bl_top_turn *d)
{
	__u32 zero = 0,
	      frames = bl_queue_len(BL_HOLD_QUEUE(n, 0)) + bl_queue_len(BL_HOLD_QUEUE(n, 1)) +
		       bl_top_missing(n),
	      random = bpf_get_prandom_u32();
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_tx *t = bpf_map_lookup_elem(&top_tx, &n);

	if (!c || !t || !d)
		return 0;
	bpf_spin_lock(&t->lock);
	bl_top_tx_step(t, c, frames, now, random, d);
	bpf_spin_unlock(&t->lock);
	return 0;
}

/** bl_top_release - forgets flow @n, which has ended and whose number is closed. */
__attribute__((noinline)) int bl_top_release(__u32 n)
{
	struct bl_top_tx *t = bpf_map_lookup_elem(&top_tx, &n);
	__u32 zero = 0;
	struct bl_top_page *p;
	struct bl_top_key key;

	p = bpf_map_lookup_elem(&top_page, &zero);
	if (!t || !p)
		return 0;
	bpf_spin_lock(&t->lock);
	t->state = BL_TOP_FREE;
	__builtin_memcpy(&key, &t->key, sizeof(key));
	bpf_spin_unlock(&t->lock);
	bpf_map_delete_elem(&top_flows, &key);
	bl_top_unkeep(n);
	p->freed++;
	return 0;
}

/**
 * bl_top_build_signal - turns the pacer's frame into the SYNC, STOP or FIN of this turn. Returns
 * its length, or -1.
 */
__attribute__((noinline)) int bl_top_build_signal(struct xdp_md *ctx, __u32 n,
						  struct bl_top_turn *d)
{
	struct bl_top_tx *t = bpf_map_lookup_elem(&top_tx, &n);
	struct bl_top_out o = {};
	struct bl_now now;

	if (!t || !d)
		return -1;
	bl_clock_now(bpf_ktime_get_ns(), &now);
	/* No lock: only the pacer gives the number to another flow. */
	__builtin_memcpy(o.to, t->key.daddr, 16);
	__builtin_memcpy(o.from, t->key.saddr, 16);
	__builtin_memcpy(o.mac, t->mac, 6);
	o.v6 = t->key.v6;
	o.port = t->port;
	o.flow = n;
	o.seq = d->seq;
	o.tag = d->tag;
	o.ts = now.bus;
	o.bytes = t->bytes;
	o.data = d->data;
	if (d->what == BL_TOP_DO_SYNC) {
		o.op = BL_TOP_SYNC;
		o.body = sizeof(struct bl_top_sync);
		o.frames = d->frames;
		o.deadline_us = t->deadline_us;
		o.coflow = t->coflow;
		o.unsched = t->unsched;
	} else if (d->what == BL_TOP_DO_STOP) {
		o.op = BL_TOP_STOP;
		o.body = sizeof(struct bl_top_stop);
	} else {
		o.op = BL_TOP_FIN;
		o.body = sizeof(struct bl_top_fin);
		if (!o.bytes)
			o.bytes = t->sent_bytes;
	}
	return bl_top_build(ctx, &o);
}

/* ---- tokens ---- */

/** struct bl_top_scan - state of a scan of one word of the receiver's table. */
struct bl_top_scan {
	struct bl_top_pick *pick;
	const struct bl_top_cfg *cfg; /* value 0 of "top_cfg" */
	const __u64 *limit;           /* bytes at which classes end: configured, or learned */
	__u64 word;                   /* places of this word that are left to look at */
	__u32 base;                   /* place of the word's bit 0 */
};

/* Considers the flow in the lowest place left in @s->word. */
static long bl_top_scan_flow(__u32 k, struct bl_top_scan *s)
{
	struct bl_top_coflow *f;
	struct bl_top_rx *r;
	__u64 coflow = 0;
	__u32 i, id;

	if (!s->word)
		return 1;
	i = s->base + bl_lowest(s->word);
	s->word &= s->word - 1;
	r = bpf_map_lookup_elem(&top_rx, &i);
	if (!r || !s->cfg || !s->limit)
		return 0;
	id = r->coflow;
	if (id && s->cfg->objective == BL_TOP_BY_COFLOW) {
		f = bpf_map_lookup_elem(&top_coflows, &id);
		if (f)
			coflow = f->bytes ? f->bytes : f->served;
	}
	bl_top_pick_consider(s->pick, i, r,
			     bl_top_class_of(r, s->cfg, s->limit, coflow, s->pick->now), s->cfg);
	return 0;
}

/**
 * bl_top_scan_word - takes the flows of one word of the receiver's table into account. A global
 * function, which the verifier follows once: inline in the loop over the words, it followed
 * bl_top_scan_flow() 120 times, and 53 thousand instructions (2026-11, Linux 6.18).
 * @pick: what has been chosen so far
 * @w: index of the word
 */
__attribute__((noinline)) int bl_top_scan_word(struct bl_top_pick *pick, __u32 w)
{
	__u32 zero = 0;
	const struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_scan s = { .pick = pick, .cfg = c };

	if (!p || !c || !pick || w >= BL_TOP_RX_WORDS)
		return 0;
	s.limit = c->limit;
	if (c->learn && BL_READ_ONCE(p->limit[0]))
		s.limit = p->limit;
	s.word = BL_READ_ONCE(p->used[w]);
	s.base = w * 64;
	bpf_loop((__u32)__builtin_popcountll(s.word), bl_top_scan_flow, &s, 0);
	return 0;
}

/* Scans all inbound flows. */
static __always_inline void bl_top_scan_flows(const struct bl_top_page *p, __u64 now,
					      struct bl_top_pick *pick)
{
	__u32 w, n = BL_TOP_RX_WORDS;

	bl_top_pick_begin(pick, p->last, now);
	BL_OPAQUE(n);
	for (w = 0; w < BL_TOP_RX_WORDS && w < n; w++)
		if (BL_READ_ONCE(p->used[w]))
			bl_top_scan_word(pick, w);
}

/** bl_top_forget - gives up the flow in place @i if nothing was heard of it for dead_ns. */
__attribute__((noinline)) int bl_top_forget(__u32 i, __u64 now)
{
	__u32 zero = 0, coflow = 0, lost = 0;
	struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_rx *r = bpf_map_lookup_elem(&top_rx, &i);
	struct bl_top_rx_key who;
	__u64 bytes = 0, served = 0;
	int over;

	if (!p || !c || !r)
		return 0;
	bpf_spin_lock(&r->lock);
	over = r->heard_ns + c->dead_ns <= now;
	if (over) {
		r->state = BL_TOP_RX_FREE;
		coflow = r->coflow;
		bytes = bl_top_coflow_change(r, 1);
		served = r->served;
		lost = bl_came_missing(&r->came);
		r->came.lost += lost;
		r->came.report_ns = BL_DUE_NEVER;
	}
	who = r->who;
	bpf_spin_unlock(&r->lock);
	if (!over)
		return 0;
	bl_count_n(BL_HC_PACE, BL_R_DATA_LOST, lost);
	bpf_map_delete_elem(&top_rx_of, &who);
	bl_top_coflow_add(coflow, bytes, -1);
	bl_top_learn_flow(p, served);
	bl_top_give_place(p, i);
	p->gone++;
	return 0;
}

/**
 * bl_top_token_out - turns the pacer's frame into the next token of place @i. Returns its length,
 * or -1 if the sender has just reported that it holds nothing.
 * @now: CLOCK_MONOTONIC, ns
 * @bus: bus time, ns
 */
__attribute__((noinline)) int bl_top_token_out(struct xdp_md *ctx, __u32 i, __u32 cls, __u64 now,
					       __u64 bus)
{
	__u32 zero = 0;
	struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_rx *r = bpf_map_lookup_elem(&top_rx, &i);
	struct bl_top_out o = { .op = BL_TOP_TOKEN };
	int open;

	if (!p || !c || !r)
		return -1;
	bpf_spin_lock(&r->lock);
	open = r->state == BL_TOP_RX_OPEN;
	if (open) {
		o.seq = bl_top_token_sent(r, c, now, &p->random);
		r->cls = cls;
	}
	__builtin_memcpy(o.to, r->who.addr, 16);
	__builtin_memcpy(o.from, r->self, 16);
	__builtin_memcpy(o.mac, r->mac, 6);
	o.v6 = (__u8)r->v6;
	o.port = r->port;
	o.flow = r->who.flow;
	o.tag = r->tag;
	bpf_spin_unlock(&r->lock);
	if (!open)
		return -1;
	o.cls = (__u8)cls;
	o.ts = bus;
	p->last = i;
	p->free_ns = bl_top_free_after(c, p->free_ns, now);
	cls &= 7;
	if (cls < BL_TOP_CLASSES)
		p->tokens[cls]++;
	return bl_top_build(ctx, &o);
}

/**
 * bl_top_loss_out - turns the pacer's frame into the LOSS of place @i. Returns its length; 0: there
 * is nothing to report any more; -1: the frame is spoilt.
 */
__attribute__((noinline)) int bl_top_loss_out(struct xdp_md *ctx, __u32 i, __u64 now, __u64 bus)
{
	__u32 zero = 0;
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_rx *r = bpf_map_lookup_elem(&top_rx, &i);
	struct bl_top_out o = { .op = BL_TOP_LOSS, .body = sizeof(struct bl_top_loss) };
	struct bl_top_said s = {};
	__u64 rtt = 0;
	int due;

	if (!c || !r)
		return 0;
	bpf_spin_lock(&r->lock);
	due = r->state != BL_TOP_RX_FREE && r->came.report_ns <= now;
	if (due) {
		rtt = bl_top_rtt_ns(r, c);
		bl_came_report(&r->came, rtt, c->dead_ns, now, &s);
	}
	__builtin_memcpy(o.to, r->who.addr, 16);
	__builtin_memcpy(o.from, r->self, 16);
	__builtin_memcpy(o.mac, r->mac, 6);
	o.v6 = (__u8)r->v6;
	o.port = r->port;
	o.flow = r->who.flow;
	o.tag = r->tag;
	bpf_spin_unlock(&r->lock);
	if (!due)
		return 0;
	bl_count_n(BL_HC_PACE, BL_R_DATA_LOST, s.gone);
	o.ts = bus;
	o.seq = s.seq;
	o.data = s.data;
	o.missing = s.missing;
	o.rtt_us = (__u32)bl_min64(rtt / 1000, ~0U);
	return bl_top_build(ctx, &o);
}

/** bl_top_next - returns when the receiver's part must look, CLOCK_MONOTONIC, ns. */
static __always_inline __u64 bl_top_next(const struct bl_hold_cfg *cfg)
{
	__u32 zero = 0;
	const struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);

	return p && cfg->policy == BL_POLICY_TOP ? BL_READ_ONCE(p->at) : BL_DUE_NEVER;
}

/**
 * bl_top_slot - one turn of the pacer for inbound flows.
 * @mono: CLOCK_MONOTONIC, ns
 * Returns the length of the token or LOSS that the frame has become; 0: none, and the frame is
 * unchanged; -1: it is spoilt.
 */
__attribute__((noinline)) int bl_top_slot(struct xdp_md *ctx, __u64 mono)
{
	__u32 zero = 0, place;
	struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_pick pick;
	const struct bl_top_rx *r;
	struct bl_now now;
	__u64 next;
	int len = 0;

	if (!p || !cfg || !c || cfg->policy != BL_POLICY_TOP || BL_READ_ONCE(p->at) > mono)
		return 0;
	/* A full barrier: what changes from here on lowers it again. */
	(void)__sync_lock_test_and_set(&p->at, BL_DUE_NEVER);
	bl_clock_now(mono, &now);
	if (!now.ok) {
		p->no_clock++;
		bl_time_lower(&p->at, BL_DUE_NEVER, mono + BL_TOP_CLOCK_NS);
		return 0;
	}
	bl_top_scan_flows(p, mono, &pick);
	next = pick.next_ns;
	if (pick.gone) {
		bl_top_forget(pick.gone - 1, mono);
		next = mono; /* there may be more such places */
	}
	if (pick.loss) {
		/* before the next token, which may be for what the LOSS asks for */
		len = bl_top_loss_out(ctx, pick.loss - 1, mono, now.bus);
		next = mono;
	}
	if (!len && pick.ready && p->free_ns <= mono) {
		place = pick.index;
		len = bl_top_token_out(ctx, place, pick.best >> 8, mono, now.bus);
		r = bpf_map_lookup_elem(&top_rx, &place);
		if (r)
			next = bl_min64(next, bl_max64(BL_READ_ONCE(r->next_ns), p->free_ns));
		pick.ready--;
	}
	if (pick.ready)
		next = bl_min64(next, bl_max64(p->free_ns, mono));
	if (next != BL_DUE_NEVER)
		bl_time_lower(&p->at, BL_DUE_NEVER, next);
	return len;
}

#endif
