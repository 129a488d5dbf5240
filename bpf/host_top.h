/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, between the core and the maps: frames of applications into flows, tokens into data, signals and data into the receiver's table, and the pacer's turns: SYNC and FIN of
 * flows that are sent, tokens for flows that are received. top_core.h has the arithmetic, top_host_abi.h the example and who writes what. BPF side only.
 *
 * A token is answered on the CPU that it comes in on, by its own frame: bl_host_xdp takes a held frame out of its queue, copies it over the token and returns it (XDP_TX). A frame that
 * cannot grow (a token that passed a kernel's sockets on its way) leaves that to the pacer, by destination 0's queue.
 */
#ifndef BARLINE_HOST_TOP_H
#define BARLINE_HOST_TOP_H

#include "../maps/top_maps.h"
#include "hold_core.h"
#include "queue_util.h"
#include "token_core.h"
#include "top_core.h"

#define BL_TOP_IP4_OFF sizeof(struct ethhdr)
#define BL_TOP_PULL    (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + 20) /* what bl_top_key_of() looks at */
#define BL_TOP_HDR4    (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define BL_TOP_HDR6    (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct udphdr))
#define BL_TOP_OUTSIDE_NS 100000000ULL /* a flow that goes without tokens is looked at that often, whether it has ended */
#define BL_TOP_CLOCK_NS 1000000ULL /* a void clock is looked at again after that long */

/* ---- frames of applications ---- */

static __always_inline void bl_top_mapped(__u8 *to, __be32 a)
{
	__u32 *w = (__u32 *)to;

	w[0] = w[1] = 0;
	w[2] = BL_BE32(0xffff);
	w[3] = a;
}

/*
 * The flow that a frame belongs to. Returns 1; 0: none, it waits for no token: it is no IP, has a VLAN tag, which tokens would not have, or is TCP without payload.
 */
static __always_inline int bl_top_key_of(void *data, void *end, __u32 len, struct bl_top_key *k)
{
	struct bl_look l;
	__u32 l4 = 0, room = 0;
	const __u8 *tcp;

	if (bl_look(data, end, &l) || l.l3_off != BL_TOP_IP4_OFF)
		return 0;
	__builtin_memset(k, 0, sizeof(*k));
	if (l.kind == BL_LOOK_IP4) {
		const struct iphdr *ip = data + BL_TOP_IP4_OFF;

		if ((void *)(ip + 1) > end)
			return 0;
		bl_top_mapped(k->saddr, ip->saddr);
		bl_top_mapped(k->daddr, ip->daddr);
		room = BL_BE16(ip->tot_len) - (__u32)sizeof(*ip);
		l4 = BL_TOP_HDR4 - sizeof(struct udphdr);
	} else if (l.kind == BL_LOOK_IP6) {
		const struct ipv6hdr *ip = data + BL_TOP_IP4_OFF;

		if ((void *)(ip + 1) > end)
			return 0;
		__builtin_memcpy(k->saddr, &ip->saddr, 16);
		__builtin_memcpy(k->daddr, &ip->daddr, 16);
		k->v6 = 1;
		room = BL_BE16(ip->payload_len);
		l4 = BL_TOP_HDR6 - sizeof(struct udphdr);
	} else {
		return 0;
	}
	k->proto = l.proto;
	k->sport = BL_BE16(l.sport);
	k->dport = BL_BE16(l.dport);
	/* bl_look() leaves the ports 0 where there are options or fragments */
	if (l.proto != BL_TCP || !l.sport || len > BL_TOP_CONTROL_MAX)
		return 1;
	tcp = data + l4;
	BL_SEEN(tcp);
	if ((void *)(tcp + 20) > end)
		return 1;
	return room != (__u32)(tcp[12] >> 4) * 4;
}

/* What is known of a new flow: its application's own word, else a rule's. */
static __always_inline void bl_top_hint_of(const struct bl_top_key *k, const struct bl_top_cfg *c, struct bl_top_hint *to)
{
	__u32 place = bl_top_hint_hash(k), seq;
	const struct bl_top_hint *h = bpf_map_lookup_elem(&top_hints, &place);
	const __u64 *a = (const __u64 *)k, *b;
	__u64 differ;

	to->bytes = 0;
	to->deadline_us = to->coflow = 0;
	if (h) {
		seq = BL_READ_ONCE(h->seq);
		BL_BARRIER(); /* pairs with bl_flow_hint() in lib/hint.c: odd, then the words, then even */
		b = (const __u64 *)&h->key;
		differ = (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4]);
		to->bytes = h->bytes;
		to->deadline_us = h->deadline_us;
		to->coflow = h->coflow;
		BL_BARRIER();
		if (seq && !(seq & 1) && !differ && BL_READ_ONCE(h->seq) == seq)
			return;
		to->bytes = 0;
		to->deadline_us = to->coflow = 0;
	}
	bl_top_rule(c, k, to);
}

/*
 * A frame of an application is on its way into bl0: its socket's SO_PRIORITY, 1 to 6 (all that needs no privilege), says a class, 6 the best: a hint of a size that has this class. What the application itself has
 * said of the flow stands. Counts nothing: the frame goes on to bl_hold_xdp.
 */
static __always_inline void bl_top_priority(struct __sk_buff *skb)
{
	__u32 zero = 0, place, seq, i, n = BL_TOP_CLASSES - 1, worse;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_key k;
	const __u64 *a = (const __u64 *)&k, *b;
	__u64 frames = 1, limit;
	struct bl_top_hint *h;

	if (!cfg || !c || !cfg->on || cfg->policy != BL_POLICY_TOP || skb->priority < 1 || skb->priority > BL_TOP_CLASSES)
		return;
	bpf_skb_pull_data(skb, skb->len < BL_TOP_PULL ? skb->len : BL_TOP_PULL);
	if (!bl_top_key_of((void *)(long)skb->data, (void *)(long)skb->data_end, skb->len, &k))
		return;
	worse = BL_TOP_CLASSES - skb->priority;
	BL_OPAQUE(n);
	for (i = 0; i < BL_TOP_CLASSES - 1 && i < n; i++) {
		limit = c->limit[i];
		if (i < worse && limit != ~0ULL && limit > frames)
			frames = limit;
	}
	place = bl_top_hint_hash(&k);
	h = bpf_map_lookup_elem(&top_hints, &place);
	if (!h)
		return;
	b = (const __u64 *)&h->key;
	seq = BL_READ_ONCE(h->seq);
	if ((seq & 1) || (seq && !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4]))))
		return;
	/* as write_hint() in lib/hint.c; who is overtaken leaves it */
	if (__sync_val_compare_and_swap(&h->seq, seq, seq + 1) != seq)
		return;
	__builtin_memcpy(&h->key, &k, sizeof(k));
	h->bytes = frames * BL_TOP_MSS;
	h->deadline_us = h->coflow = 0;
	(void)__sync_lock_test_and_set(&h->seq, seq + 2 ? seq + 2 : 2);
}

/* Source port of the flow's tokens and signals, as switches compute it from its data. */
static __always_inline __be16 bl_top_port_of(const struct bl_top_key *k)
{
	__u64 a, b;

	if (k->v6) {
		a = bl_top_addr6(k->saddr);
		b = bl_top_addr6(k->daddr);
	} else {
		a = bl_top_addr4(*(const __be32 *)(k->saddr + 12));
		b = bl_top_addr4(*(const __be32 *)(k->daddr + 12));
	}
	return BL_BE16(bl_top_flow_port(a, b, BL_BE16(k->sport), BL_BE16(k->dport)));
}

/* A number that no flow has; 0: none. */
static __always_inline __u32 bl_top_take_number(struct bl_due *due)
{
	__u32 n;

	if (!bpf_map_pop_elem(&top_free, &n))
		return n;
	if (BL_READ_ONCE(due->given) >= BL_DESTS - 1)
		return 0;
	n = (__u32)__sync_fetch_and_add(&due->given, 1) + 1;
	return n < BL_DESTS ? n : 0;
}

static __always_inline void bl_top_give_number(__u32 n)
{
	bpf_map_push_elem(&top_free, &n, BPF_ANY); /* there is room for all; a lock that gives up (see bl_slot_free()) costs a number */
}

/* The number of the flow @k, whose first frame goes to @mac. 0: there are no more. As in bl_hold_number() two CPUs may see the flow first; one gives its number back. */
__attribute__((noinline)) int bl_top_number(struct bl_top_key *key, __u64 mac, __u64 now)
{
	struct bl_top_key copy, *k = &copy; /* Linux 6.1 takes no argument of a global function for a map's key */
	__u32 zero = 0, *known, n, tag;
	const struct bl_top_cfg *c;
	struct bl_hold_dest *who;
	struct bl_top_hint hint;
	struct bl_due *due;
	struct bl_top_tx *t;
	__be16 port;

	if (!key)
		return 0;
	copy = *key;
	known = bpf_map_lookup_elem(&top_flows, k);
	if (known)
		return (int)*known;
	c = bpf_map_lookup_elem(&top_cfg, &zero);
	due = bpf_map_lookup_elem(&hold_due, &zero);
	if (!c || !due)
		return 0;
	n = bl_top_take_number(due);
	t = bpf_map_lookup_elem(&top_tx, &n);
	who = bpf_map_lookup_elem(&hold_macs, &n);
	if (!n || !t || !who)
		return 0;
	bl_top_hint_of(k, c, &hint);
	port = bl_top_port_of(k);
	tag = bpf_get_prandom_u32();
	bpf_spin_lock(&t->lock);
	bl_top_flow(t, c, k, &hint, tag, now);
	t->port = port;
	t->mac[0] = (__u8)mac;
	t->mac[1] = (__u8)(mac >> 8);
	t->mac[2] = (__u8)(mac >> 16);
	t->mac[3] = (__u8)(mac >> 24);
	t->mac[4] = (__u8)(mac >> 32);
	t->mac[5] = (__u8)(mac >> 40);
	bpf_spin_unlock(&t->lock);
	__builtin_memcpy(who->mac, t->mac, sizeof(who->mac));
	who->kind = 0;
	BL_WRITE_ONCE(who->used, 1);
	if (!bpf_map_update_elem(&top_flows, k, &n, BPF_NOEXIST))
		return (int)n;
	bpf_spin_lock(&t->lock);
	t->state = BL_TOP_FREE;
	bpf_spin_unlock(&t->lock);
	bl_top_give_number(n);
	known = bpf_map_lookup_elem(&top_flows, k);
	return known ? (int)*known : 0;
}

/** bl_top_hold - under policy top, a frame that is held back at all. Returns the reason; BL_R_NONE: it waits for no token. */
__attribute__((noinline)) int bl_top_hold(struct xdp_md *ctx, __u32 class, __u64 now)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, n, len = (__u32)bpf_xdp_get_buff_len(ctx);
	const struct ethhdr *eth = data;
	const struct bl_top_cfg *c;
	struct bl_top_key key;
	struct bl_due *due;
	struct bl_top_tx *t;
	__u64 mac, at;
	int why;

	due = bpf_map_lookup_elem(&hold_due, &zero);
	c = bpf_map_lookup_elem(&top_cfg, &zero);
	if (!due || !c || (void *)(eth + 1) > end || !bl_top_key_of(data, end, len, &key))
		return BL_R_NONE;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	eth = data;
	if ((void *)(eth + 1) > end)
		return BL_R_NONE;
	mac = bl_mac48(eth->h_dest);
	n = (__u32)bl_top_number(&key, mac, now);
	if (!n)
		return BL_R_HOLD_DESTS;
	t = bpf_map_lookup_elem(&top_tx, &n);
	if (!t)
		return BL_R_HOLD_DESTS;
	why = bl_enqueue(ctx, BL_HOLD_QUEUE(n, class != 0), now, BL_HC_HOLD);
	if (why == BL_R_QUEUE_FULL)
		return BL_R_HOLD_FULL;
	if (why != BL_R_NONE)
		return why;
	bpf_spin_lock(&t->lock);
	why = bl_top_held(t, len, now);
	bpf_spin_unlock(&t->lock);
	/* the pacer asks for tokens at once, or looks after a while whether some have come */
	at = why ? now : now + c->sync_ns;
	if (bl_due_lower(due, n, at))
		bl_pace_ring();
	return BL_R_HELD;
}

/* ---- tokens ---- */

/* The slot's frame gets the echo of token @seq behind it. Returns its length now; as it was if it has become too long for the link. */
__attribute__((noinline)) int bl_top_trail(__u32 slot, __u32 len, __u32 flow, __u32 seq)
{
	struct bl_slot *s = bpf_map_lookup_elem(&slots, &slot);
	__u64 off = len;
	struct bl_top_echo *e;

	BL_SEEN(off);
	if (!s || off > BL_TOP_FRAME_MAX - sizeof(*e))
		return (int)len;
	BL_SEEN(off);
	e = (void *)(s->data + off);
	e->magic = BL_BE16(BL_TOP_ECHO_MAGIC);
	e->flow = BL_BE16(flow);
	BL_HALVES_SET(e, seq, seq);
	return (int)(len + sizeof(*e));
}

static __always_inline __u32 bl_top_take(__u32 n)
{
	__u32 key = BL_HOLD_QUEUE(n, 0), entry = 0;

	if (bl_queue_len(key))
		entry = (__u32)bl_queue_get(key);
	return entry ? entry : (__u32)bl_queue_get(key + 1);
}

/* The frame in @entry's slot goes back in the token's place, or by the pacer. */
static __always_inline enum bl_reason bl_top_reply(struct xdp_md *ctx, struct bl_top_tx *t, __u32 n, __u32 seq, __u32 entry, __u64 now)
{
	__u32 slot = BL_RING_SLOT(entry), len = (__u32)bl_top_trail(slot, BL_RING_LEN(entry), n, seq), zero = 0, key;
	struct bl_slot *s = bpf_map_lookup_elem(&slots, &slot);
	struct bl_queue_hist *h;
	struct bl_due *due;

	if (!bl_frame_out(ctx, slot, len)) {
		key = s ? s->queue : BL_SLOT_SENT;
		h = bpf_map_lookup_elem(&queue_hist, &key);
		if (s && h) /* unlocked: the pacer writes it for frames that it sends, and one of two counts may be lost */
			bl_hist_add(&h->sojourn, (now - bl_min64(s->at_ns, now)) >> BL_HIST_NS_SHIFT);
		bl_slot_free(slot);
		return BL_R_TOKEN_USED;
	}
	due = bpf_map_lookup_elem(&hold_due, &zero);
	if (!due || bl_queue_put(BL_HOLD_QUEUE(0, 0), BL_RING_ENTRY(slot, len), 0)) {
		bl_slot_free(slot);
		return BL_R_HOLD_FULL;
	}
	(void)__sync_fetch_and_add(&t->paced, 1);
	if (bl_due_lower(due, 0, 0))
		bl_pace_ring();
	return BL_R_TOKEN_PACED;
}

/* The token's frame becomes the STOP with number @seq. Checksums of both IP versions stay: the same words in other places. */
__attribute__((noinline)) int bl_top_to_stop(struct xdp_md *ctx, __u32 v6, __u32 seq, __u64 bus)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct bl_top_hdr *h;
	__u8 mac[6];

	if (v6) {
		struct ipv6hdr *ip = (void *)(eth + 1);
		struct udphdr *u = (void *)(ip + 1);
		struct in6_addr a;

		h = (void *)(u + 1);
		if ((void *)(h + 1) > end)
			return BL_R_TOKEN_WASTED;
		a = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = a;
		u->check = 0;
	} else {
		struct iphdr *ip = (void *)(eth + 1);
		struct udphdr *u = (void *)(ip + 1);
		__be32 a;

		h = (void *)(u + 1);
		if ((void *)(h + 1) > end)
			return BL_R_TOKEN_WASTED;
		a = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = a;
		u->check = 0;
	}
	__builtin_memcpy(mac, eth->h_source, 6);
	__builtin_memcpy(eth->h_source, eth->h_dest, 6);
	__builtin_memcpy(eth->h_dest, mac, 6);
	h->opcode = BL_TOP_OPCODE_BYTE(BL_TOP_STOP);
	h->cls = 0;
	BL_HALVES_SET(h, seq, seq);
	bl_put48(h->ts, bus);
	return BL_R_TOKEN_STOP;
}

/** bl_top_answer - token @m came. Returns the reason. */
__attribute__((noinline)) int bl_top_answer(struct xdp_md *ctx, struct bl_top_msg *m, __u32 v6)
{
	__u32 zero = 0, n, entry, sig;
	const struct bl_top_cfg *c;
	enum bl_reason why;
	struct bl_top_tx *t;
	struct bl_now now;
	__u64 mono;
	int stop;

	c = bpf_map_lookup_elem(&top_cfg, &zero);
	if (!c || !m)
		return BL_R_TOKEN_UNKNOWN;
	n = m->flow;
	t = bpf_map_lookup_elem(&top_tx, &n);
	if (!t || !n)
		return BL_R_TOKEN_UNKNOWN;
	mono = bpf_ktime_get_ns();
	bl_clock_now(mono, &now);
	if (!now.ok)
		return BL_R_CLOCK_VOID;
	bpf_spin_lock(&t->lock);
	why = bl_top_token(t, c, m, now.bus, now.limit - now.bus, mono);
	bpf_spin_unlock(&t->lock);
	if (why != BL_R_NONE)
		return why;
	entry = bl_top_take(n);
	if (entry)
		return bl_top_reply(ctx, t, n, m->seq, entry, mono);
	bpf_spin_lock(&t->lock);
	stop = bl_top_wasted(t);
	sig = t->sig;
	bpf_spin_unlock(&t->lock);
	/* A frame that was put in between found CREDITED, and nobody would ask for it: a second look, after the lock. Pairs with bl_top_hold(): the frame, then the lock. */
	entry = bl_top_take(n);
	if (entry) {
		(void)__sync_fetch_and_add(&t->tokens, 1);
		(void)__sync_fetch_and_sub(&t->wasted, 1);
		return bl_top_reply(ctx, t, n, m->seq, entry, mono);
	}
	return stop ? bl_top_to_stop(ctx, v6, sig, now.bus) : BL_R_TOKEN_WASTED;
}

/* ---- signals ---- */

/* The receiver's part of the pacer shall look at @at. */
static __always_inline void bl_top_wake(struct bl_top_page *p, __u64 at)
{
	__u32 zero = 0;
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);

	if (due && bl_lower(&p->at, BL_DUE_NEVER, at) && bl_due_next(due, at))
		bl_pace_ring();
}

/* A place for one more inbound flow, or -1. */
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

static __always_inline void bl_top_give_place(struct bl_top_page *p, __u32 i)
{
	__u32 w = i / 64 & (BL_TOP_RX_WORDS - 1);
	__u64 was = __sync_fetch_and_and(&p->used[w], ~(1ULL << (i & 63)));

	__asm__ volatile("" : : "r"(was));
}

static __always_inline void bl_top_coflow_add(__u32 id, __u64 bytes, __s64 flows)
{
	const struct bl_top_coflow none = {};
	struct bl_top_coflow *f;

	if (!id)
		return;
	f = bpf_map_lookup_elem(&top_coflows, &id);
	if (!f) {
		bpf_map_update_elem(&top_coflows, &id, &none, BPF_NOEXIST);
		f = bpf_map_lookup_elem(&top_coflows, &id);
	}
	if (!f)
		return; /* more coflows than places: this one counts by what its flows say of themselves */
	(void)__sync_fetch_and_add(&f->bytes, bytes);
	/* the last one turns off the light; one that comes in this very moment begins a new sum */
	if (__sync_fetch_and_add(&f->flows, (__u64)flows) + (__u64)flows == 0)
		bpf_map_delete_elem(&top_coflows, &id);
}

static __always_inline int bl_top_is(const struct bl_top_rx *r, const struct bl_top_rx_key *who)
{
	const __u32 *a = (const __u32 *)&r->who, *b = (const __u32 *)who;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4]));
}

/* Who sent the frame, and to which of our addresses. */
static __always_inline int bl_top_ends(struct xdp_md *ctx, __u32 v6, __u8 *from, __u8 *to)
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
		bl_top_mapped(from, ip->saddr);
		if (to)
			bl_top_mapped(to, ip->daddr);
	}
	return 0;
}

/* A SYNC of a flow that has no place, or whose number is another flow's by now; @r: its place, locked by nobody. */
static __always_inline void bl_top_announce(struct xdp_md *ctx, struct bl_top_rx *r, const struct bl_top_cfg *c, const struct bl_top_msg *m,
					     const struct bl_top_rx_key *who, const __u8 *self, __u32 v6, __u64 now)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const struct udphdr *u = data + (v6 ? BL_TOP_HDR6 : BL_TOP_HDR4) - sizeof(*u);
	__u64 mac;
	__be16 port;

	BL_SEEN(u);
	if ((void *)(eth + 1) > end || (void *)(u + 1) > end)
		return;
	mac = bl_mac48(eth->h_source);
	port = u->source;
	bpf_spin_lock(&r->lock);
	bl_top_begin(r, c, m, now);
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
}

/** bl_top_signal - SYNC, STOP or FIN @m came. Returns the reason. */
__attribute__((noinline)) int bl_top_signal(struct xdp_md *ctx, struct bl_top_msg *m, __u32 v6)
{
	__u32 zero = 0, *known, place, old = 0;
	struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_rx_key who;
	__u64 now, bytes = 0;
	struct bl_top_rx *r;
	int got, open = 0;
	__u8 self[16];

	if (!p || !c || !m || bl_top_ends(ctx, v6, who.addr, self))
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
			/* another CPU has just heard the same: it sees to the flow */
			BL_WRITE_ONCE(r->state, BL_TOP_RX_FREE);
			bl_top_give_place(p, place);
			return BL_R_SIGNAL;
		}
		bl_top_coflow_add(m->coflow, m->bytes, 1);
		bl_top_wake(p, now);
		return BL_R_SIGNAL;
	}
	place = *known;
	r = bpf_map_lookup_elem(&top_rx, &place);
	if (!r)
		return BL_R_SIGNAL_BAD;
	bpf_spin_lock(&r->lock);
	got = r->state != BL_TOP_RX_FREE && bl_top_is(r, &who); /* no: it is given up in this moment; a SYNC is repeated */
	if (got && r->tag != m->tag) {
		got = 2;
		old = r->coflow;
		bytes = r->bytes;
	} else if (got && m->op == BL_TOP_SYNC) {
		open = bl_top_sync(r, m, now);
	} else if (got && m->op == BL_TOP_STOP) {
		bl_top_stop(r, m, now);
	} else if (got) {
		bl_top_fin(r, m, c, now);
		open = 1; /* to free its place */
	}
	bpf_spin_unlock(&r->lock);
	if (!got)
		return BL_R_SIGNAL;
	if (got == 2) {
		if (m->op != BL_TOP_SYNC)
			return BL_R_SIGNAL_BAD;
		bl_top_coflow_add(old, -bytes, -1);
		bl_top_announce(ctx, r, c, m, &who, self, v6, now);
		bl_top_coflow_add(m->coflow, m->bytes, 1);
		open = 1;
	}
	if (open)
		bl_top_wake(p, now);
	return BL_R_SIGNAL;
}

/* ---- data ---- */

/* Takes the echo off a data frame whose IP packet ends at @end, and notes it. */
__attribute__((noinline)) int bl_top_data(struct xdp_md *ctx, __u32 end, __u32 v6)
{
	__u32 zero = 0, len = (__u32)bpf_xdp_get_buff_len(ctx), *known, place, coflow = 0;
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_coflow *f;
	struct bl_top_rx_key who;
	struct bl_top_echo e;
	struct bl_top_rx *r;
	int rc = -1;
	__u64 now;

	if (!c || end + sizeof(e) > len || bpf_xdp_load_bytes(ctx, end, &e, sizeof(e)) || e.magic != BL_BE16(BL_TOP_ECHO_MAGIC) || bl_top_ends(ctx, v6, who.addr, NULL))
		return 0;
	bpf_xdp_adjust_tail(ctx, (int)end - (int)len);
	who.flow = BL_BE16(e.flow);
	known = bpf_map_lookup_elem(&top_rx_of, &who);
	place = known ? *known : BL_TOP_RX_MAX;
	r = bpf_map_lookup_elem(&top_rx, &place);
	if (r) {
		now = bpf_ktime_get_ns();
		bpf_spin_lock(&r->lock);
		if (r->state != BL_TOP_RX_FREE && bl_top_is(r, &who)) {
			rc = bl_top_echo(r, c, BL_HALVES(&e, seq), end, now);
			coflow = r->coflow;
		}
		bpf_spin_unlock(&r->lock);
	}
	if (rc)
		bl_count(BL_HC_INGRESS, BL_R_ECHO_BAD);
	f = coflow ? bpf_map_lookup_elem(&top_coflows, &coflow) : NULL;
	if (f && !rc)
		(void)__sync_fetch_and_add(&f->served, end);
	return 0;
}

/** bl_top_came - a frame for bl0's address came, under policy top. Returns the reason; BL_R_NONE: it is the application's, without its echo. */
__attribute__((noinline)) int bl_top_came(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct bl_top_hdr *h;
	struct bl_top_msg m;
	struct bl_look l;
	__u32 v6, ends, len;

	if (bl_look(data, end, &l) || l.l3_off != BL_TOP_IP4_OFF || (l.kind != BL_LOOK_IP4 && l.kind != BL_LOOK_IP6))
		return BL_R_NONE;
	v6 = l.kind == BL_LOOK_IP6;
	if (v6) {
		const struct ipv6hdr *ip = data + BL_TOP_IP4_OFF;

		if ((void *)(ip + 1) > end)
			return BL_R_NONE;
		ends = BL_TOP_IP4_OFF + sizeof(*ip) + BL_BE16(ip->payload_len);
	} else {
		const struct iphdr *ip = data + BL_TOP_IP4_OFF;

		if ((void *)(ip + 1) > end)
			return BL_R_NONE;
		ends = BL_TOP_IP4_OFF + BL_BE16(ip->tot_len);
	}
	if (l.proto != BL_UDP || l.dport != BL_TOP_PORT) {
		bl_top_data(ctx, ends, v6);
		return BL_R_NONE;
	}
	if (v6) {
		h = data + BL_TOP_HDR6;
		len = ends - BL_TOP_HDR6;
	} else {
		h = data + BL_TOP_HDR4;
		len = ends - BL_TOP_HDR4;
	}
	BL_SEEN(h);
	if (ends > bpf_xdp_get_buff_len(ctx) || ends < BL_TOP_HDR4 + sizeof(*h) || bl_top_parse(h, end, len, &m))
		return BL_R_SIGNAL_BAD;
	if (m.op == BL_TOP_TOKEN)
		return bl_top_answer(ctx, &m, v6);
	if (m.op == BL_TOP_LOSS)
		return BL_R_SIGNAL_BAD; /* applications' own protocols repeat what is lost */
	return bl_top_signal(ctx, &m, v6);
}

/* ---- the pacer: what it builds ---- */

/**
 * struct bl_top_out - a token or signal to be built. @to, @from: addresses; @mac: next hop; the body's fields as in the wire's structs. @ts: bus time.
 */
struct bl_top_out {
	__u8 to[16];
	__u8 from[16];
	__u8 mac[6];
	__u8 v6;
	__u8 op;
	__u8 cls;
	__u8 zero;
	__be16 port;
	__u32 flow;
	__u32 seq;
	__u32 tag;
	__u32 frames;
	__u64 ts;
	__u64 bytes;
	__u32 deadline_us;
	__u32 coflow;
	__u32 unsched;
	__u32 body;
};

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

static __always_inline void bl_top_put_body(struct bl_top_hdr *h, const void *end, const struct bl_top_out *o)
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
	} else if (o->op == BL_TOP_FIN) {
		struct bl_top_fin *f = (void *)(h + 1);

		if ((void *)(f + 1) > end)
			return;
		f->zero = 0;
		bl_put48(f->bytes, o->bytes);
	}
}

static __always_inline void bl_top_put4(struct iphdr *ip, const struct bl_top_out *o)
{
	const __u32 *to = (const __u32 *)o->to, *from = (const __u32 *)o->from;
	const __u16 *w = (const __u16 *)ip;
	__u32 sum = 0, i;

	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tot_len = BL_BE16((__u16)(sizeof(*ip) + sizeof(struct udphdr) + sizeof(struct bl_top_hdr) + o->body));
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

static __always_inline void bl_top_put6(struct ipv6hdr *ip, const struct bl_top_out *o)
{
	__builtin_memset(ip, 0, sizeof(*ip));
	*(__u8 *)ip = 6 << 4;
	ip->payload_len = BL_BE16((__u16)(sizeof(struct udphdr) + sizeof(struct bl_top_hdr) + o->body));
	ip->nexthdr = BL_UDP;
	ip->hop_limit = 64;
	__builtin_memcpy(&ip->saddr, o->from, 16);
	__builtin_memcpy(&ip->daddr, o->to, 16);
}

/** bl_top_build - the pacer's frame becomes what @o says. Returns its length, or -1. */
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
		bl_top_put6(ip, o);
		bl_top_put_udp(u, o);
		bl_top_put_body(h, end, o);
	} else {
		struct iphdr *ip = (void *)(eth + 1);
		struct udphdr *u = (void *)(ip + 1);
		struct bl_top_hdr *h = (void *)(u + 1);

		if ((void *)(h + 1) > end)
			return -1;
		eth->h_proto = BL_BE16(BL_ETH_IP);
		bl_top_put4(ip, o);
		bl_top_put_udp(u, o);
		bl_top_put_body(h, end, o);
	}
	__builtin_memcpy(eth->h_dest, o->mac, 6);
	__builtin_memcpy(eth->h_source, cfg->mac, 6);
	return len;
}

/* ---- the pacer: flows that are sent ---- */

/** bl_top_flowing - does number @n belong to a flow? */
static __always_inline int bl_top_flowing(__u32 n)
{
	const struct bl_top_tx *t = bpf_map_lookup_elem(&top_tx, &n);

	return t && BL_READ_ONCE(t->state) != BL_TOP_FREE;
}

/** bl_top_turn - what the pacer does for flow @n at @now. After bl_due_take(), as bl_pl2_turn(). */
__attribute__((noinline)) int bl_top_turn(__u32 n, __u64 now, struct bl_top_turn *d)
{
	__u32 zero = 0, frames = bl_queue_len(BL_HOLD_QUEUE(n, 0)) + bl_queue_len(BL_HOLD_QUEUE(n, 1)), random = bpf_get_prandom_u32();
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_tx *t = bpf_map_lookup_elem(&top_tx, &n);

	if (!c || !t || !d)
		return 0;
	bpf_spin_lock(&t->lock);
	bl_top_step(t, c, frames, now, random, d);
	bpf_spin_unlock(&t->lock);
	return 0;
}

/** bl_top_release - flow @n has ended (its state is FREE): another one may have its number. */
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
	/* a frame that finds the number until here is sent at once: see bl_top_held() */
	bpf_map_delete_elem(&top_flows, &key);
	bl_top_give_number(n);
	p->freed++;
	return 0;
}

/** bl_top_build_signal - the pacer's frame becomes the SYNC or FIN of this turn. Returns its length, or -1. */
__attribute__((noinline)) int bl_top_build_signal(struct xdp_md *ctx, __u32 n, struct bl_top_turn *d)
{
	struct bl_top_tx *t = bpf_map_lookup_elem(&top_tx, &n);
	struct bl_top_out o = {};
	struct bl_now now;

	if (!t || !d)
		return -1;
	bl_clock_now(bpf_ktime_get_ns(), &now);
	/* no lock: only the pacer gives a number to another flow */
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
	if (d->what == BL_TOP_DO_SYNC) {
		o.op = BL_TOP_SYNC;
		o.body = sizeof(struct bl_top_sync);
		o.frames = d->frames;
		o.deadline_us = t->deadline_us;
		o.coflow = t->coflow;
		o.unsched = t->unsched;
	} else {
		o.op = BL_TOP_FIN;
		o.body = sizeof(struct bl_top_fin);
		if (!o.bytes)
			o.bytes = t->sent_bytes;
	}
	return bl_top_build(ctx, &o);
}

/* ---- the pacer: tokens ---- */

struct bl_top_scan {
	struct bl_top_pick pick;
	const struct bl_top_cfg *cfg;
	__u64 word;
	__u32 base;
	__u32 zero;
};

static long bl_top_scan_one(__u32 k, struct bl_top_scan *s)
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
	if (!r || !s->cfg)
		return 0;
	id = r->coflow;
	if (id && s->cfg->objective == BL_TOP_BY_COFLOW) {
		f = bpf_map_lookup_elem(&top_coflows, &id);
		if (f)
			coflow = f->bytes ? f->bytes : f->served;
	}
	bl_top_look(&s->pick, i, r, bl_top_class_of(r, s->cfg, coflow, s->pick.now), s->cfg);
	return 0;
}

/* See bl_due_scan(): nothing of what the callback changes may look constant to the verifier. */
static __always_inline void bl_top_scan(struct bl_top_page *p, const struct bl_top_cfg *c, __u64 now, struct bl_top_scan *s)
{
	__u64 x = BL_READ_ONCE(p->free_ns), y = x;
	__u32 w, n = BL_TOP_RX_WORDS;

	bl_top_pick_begin(&s->pick, p->last, now);
	BL_SEEN(y);
	x ^= y;
	s->pick.next_ns ^= x;
	s->pick.best ^= (__u32)x;
	s->pick.index ^= (__u32)x;
	s->pick.ready ^= (__u32)x;
	s->pick.gone ^= (__u32)x;
	s->cfg = c;
	BL_OPAQUE(n);
	for (w = 0; w < BL_TOP_RX_WORDS && w < n; w++) {
		s->word = BL_READ_ONCE(p->used[w]);
		s->base = w * 64;
		if (s->word)
			bpf_loop((__u32)__builtin_popcountll(s->word), bl_top_scan_one, s, 0);
	}
}

/* Place @i was not heard of for too long. */
__attribute__((noinline)) int bl_top_forget(__u32 i, __u64 now)
{
	__u32 zero = 0, coflow = 0;
	struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_rx *r = bpf_map_lookup_elem(&top_rx, &i);
	struct bl_top_rx_key who;
	__u64 bytes = 0;
	int over;

	if (!p || !c || !r)
		return 0;
	bpf_spin_lock(&r->lock);
	over = r->heard_ns + c->dead_ns <= now;
	if (over) {
		r->state = BL_TOP_RX_FREE;
		coflow = r->coflow;
		bytes = r->bytes;
	}
	who = r->who;
	bpf_spin_unlock(&r->lock);
	if (!over)
		return 0;
	bpf_map_delete_elem(&top_rx_of, &who);
	bl_top_coflow_add(coflow, -bytes, -1);
	bl_top_give_place(p, i);
	p->gone++;
	return 0;
}

/* The next token of place @i. Returns its length, or -1: the sender has just said that it holds nothing. */
__attribute__((noinline)) int bl_top_token_out(struct xdp_md *ctx, __u32 i, __u32 cls, __u64 now, __u64 bus)
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
		o.seq = bl_top_sent(r, c, now, &p->random);
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

/** bl_top_next - when the receiver's part must look. */
static __always_inline __u64 bl_top_next(const struct bl_hold_cfg *cfg)
{
	__u32 zero = 0;
	const struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);

	return p && cfg->policy == BL_POLICY_TOP ? BL_READ_ONCE(p->at) : BL_DUE_NEVER;
}

/** bl_top_slot - the pacer's turn for flows that come in. Returns the length of the token that the frame has become; 0: none, and it is as it was; -1: it is spoilt. */
__attribute__((noinline)) int bl_top_slot(struct xdp_md *ctx, __u64 mono)
{
	__u32 zero = 0, place;
	struct bl_top_page *p = bpf_map_lookup_elem(&top_page, &zero);
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_scan s = {};
	const struct bl_top_rx *r;
	struct bl_now now;
	__u64 next;
	int len = 0;

	if (!p || !cfg || !c || cfg->policy != BL_POLICY_TOP || BL_READ_ONCE(p->at) > mono)
		return 0;
	/* a full barrier: what changes from here on lowers it again */
	(void)__sync_lock_test_and_set(&p->at, BL_DUE_NEVER);
	bl_clock_now(mono, &now);
	if (!now.ok) {
		p->no_clock++;
		bl_lower(&p->at, BL_DUE_NEVER, mono + BL_TOP_CLOCK_NS);
		return 0;
	}
	bl_top_scan(p, c, mono, &s);
	next = s.pick.next_ns;
	if (s.pick.gone) {
		bl_top_forget(s.pick.gone - 1, mono);
		next = mono; /* there may be more of them */
	}
	if (s.pick.ready && p->free_ns <= mono) {
		place = s.pick.index;
		len = bl_top_token_out(ctx, place, s.pick.best >> 8, mono, now.bus);
		r = bpf_map_lookup_elem(&top_rx, &place);
		if (r)
			next = bl_min64(next, bl_max64(BL_READ_ONCE(r->next_ns), p->free_ns));
		s.pick.ready--;
	}
	if (s.pick.ready)
		next = bl_min64(next, bl_max64(p->free_ns, mono));
	if (next != BL_DUE_NEVER)
		bl_lower(&p->at, BL_DUE_NEVER, next);
	return len;
}

#endif
