/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, the sender: frames of applications become flows (bl_hold_xdp), and tokens that
 * arrive become frames of their flow (bl_host_xdp).
 *
 * A token is answered on the CPU that it arrives on, in its own frame: a held frame is taken out of
 * its queue, copied over the token and returned (XDP_TX). If the token's frame cannot grow (it
 * passed a kernel's sockets on its way), the pacer sends the held frame instead, from destination
 * 0's queue.
 *
 * Example: flow 3 holds a segment of 1514 bytes. Token 7 with the flow's tag arrives, 60 bytes
 * long. The frame grows to 1514 bytes plus the echo of token 7, goes back to the receiver, and
 * counts as token_used. Token 8 finds the queue empty: token_wasted, and the first such token
 * becomes a STOP.
 *
 * Not here: SYNC, STOP and FIN (top_pace.h), and the receiver's side (top_rx.h). BPF side only.
 */
#ifndef BARLINE_HOST_TOP_TX_H
#define BARLINE_HOST_TOP_TX_H

#include "bpf/host/role.h"
#include "core/queue/classify_core.h"
#include "core/top/top_token_core.h"
#include "bpf/host/top_keep.h"
#include "core/top/top_tx_core.h"

#define BL_TOP_IP4_OFF sizeof(struct ethhdr)
/* the bytes that bl_top_key_of() reads */
#define BL_TOP_PULL (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + 20)
#define BL_TOP_HDR4 (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define BL_TOP_HDR6 (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

/* ---- frames of applications ---- */

/* Writes the IPv4 address @a as an IPv4-mapped one. */
static __always_inline void bl_top_map_ipv4(__u8 *to, __be32 a)
{
	__u32 *w = (__u32 *)to;

	w[0] = w[1] = 0;
	w[2] = BL_BE32(0xffff);
	w[3] = a;
}

/*
 * Fills @k with the flow that a frame of @len bytes belongs to. Returns 1, or 0 if the frame waits
 * for no token: it is not IP, it has a VLAN tag, which its tokens would lack, or it is TCP without
 * payload.
 */
static __always_inline int bl_top_key_of(void *data, void *end, __u32 len, struct bl_top_key *k)
{
	struct bl_frame_class l;
	__u32 l4 = 0, room = 0;
	const __u8 *tcp;

	if (bl_frame_class(data, end, &l) || l.l3_off != BL_TOP_IP4_OFF)
		return 0;
	__builtin_memset(k, 0, sizeof(*k));
	if (l.kind == BL_FRAME_IP4) {
		const struct iphdr *ip = data + BL_TOP_IP4_OFF;

		if ((void *)(ip + 1) > end)
			return 0;
		bl_top_map_ipv4(k->saddr, ip->saddr);
		bl_top_map_ipv4(k->daddr, ip->daddr);
		room = BL_BE16(ip->tot_len) - (__u32)sizeof(*ip);
		l4 = BL_TOP_HDR4 - sizeof(struct udphdr);
	} else if (l.kind == BL_FRAME_IP6) {
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
	/* bl_frame_class() leaves the ports at 0 if there are options or fragments. */
	if (l.proto != BL_TCP || !l.sport || len > BL_TOP_CONTROL_MAX)
		return 1;
	tcp = data + l4;
	BL_SEEN(tcp);
	if ((void *)(tcp + 20) > end)
		return 1;
	return room != (__u32)(tcp[12] >> 4) * 4;
}

/*
 * Fills @to with what is known of a new flow: what its application said, or else what a rule says.
 */
static __always_inline void bl_top_hint_of(const struct bl_top_key *k, const struct bl_top_cfg *c,
					   struct bl_top_hint *to)
{
	__u32 place = bl_top_hint_hash(k), seq;
	const struct bl_top_hint *h = bpf_map_lookup_elem(&top_hints, &place);
	const __u64 *a = (const __u64 *)k, *b;
	__u64 differ;

	to->bytes = 0;
	to->deadline_us = to->coflow = to->flags = 0;
	bl_top_rule(c, k, to);
	if (h) {
		struct bl_top_hint said;

		seq = BL_READ_ONCE(h->seq);
		/*
		 * Pairs with bl_flow_hint() in lib/hint.c, which makes seq odd, writes the words,
		 * and makes seq even.
		 */
		BL_BARRIER();
		b = (const __u64 *)&h->key;
		differ = (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) |
			 (a[4] ^ b[4]);
		said.bytes = h->bytes;
		said.deadline_us = h->deadline_us;
		said.coflow = h->coflow;
		said.flags = h->flags;
		BL_BARRIER();
		if (!seq || (seq & 1) || differ || BL_READ_ONCE(h->seq) != seq)
			return;
		to->bytes = said.bytes;
		to->deadline_us = said.deadline_us;
		to->coflow = said.coflow;
		/* What a rule asks for stands, because SO_PRIORITY does not express it. */
		to->flags |= said.flags;
	}
}

/*
 * Takes the SO_PRIORITY of a frame that an application sends into bl0 as a hint. Priorities 1 to 6,
 * all that need no privilege, name a class, 6 the best one, in place of a size. What the
 * application itself has said of the flow stands. Counts nothing, because the frame goes on to
 * bl_hold_xdp.
 */
static __always_inline void bl_top_priority(struct __sk_buff *skb)
{
	__u32 zero = 0, place, seq;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	struct bl_top_key k;
	const __u64 *a = (const __u64 *)&k, *b;
	struct bl_top_hint *h;

	if (!cfg || !cfg->on || cfg->policy != BL_POLICY_TOP || skb->priority < 1 ||
	    skb->priority > BL_TOP_CLASSES)
		return;
	bpf_skb_pull_data(skb, skb->len < BL_TOP_PULL ? skb->len : BL_TOP_PULL);
	if (!bl_top_key_of((void *)(long)skb->data, (void *)(long)skb->data_end, skb->len, &k))
		return;
	place = bl_top_hint_hash(&k);
	h = bpf_map_lookup_elem(&top_hints, &place);
	if (!h)
		return;
	b = (const __u64 *)&h->key;
	seq = BL_READ_ONCE(h->seq);
	if ((seq & 1) || (seq && !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) |
				   (a[4] ^ b[4]))))
		return;
	/* As write_hint() in lib/hint.c. A CPU that loses the race leaves the hint alone. */
	if (__sync_val_compare_and_swap(&h->seq, seq, seq + 1) != seq)
		return;
	__builtin_memcpy(&h->key, &k, sizeof(k));
	h->bytes = BL_TOP_SAYS_CLASS + BL_TOP_CLASSES - skb->priority;
	h->deadline_us = h->coflow = h->flags = 0;
	(void)__sync_lock_test_and_set(&h->seq, seq + 2 ? seq + 2 : 2);
}

/*
 * Returns the source port of the flow's tokens and signals, as switches compute it from its data.
 */
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

/* Returns whether the flow's key is @k. The caller holds a pin. */
static __always_inline int bl_top_same_key(const struct bl_top_tx *t, const struct bl_top_key *k)
{
	const __u64 *a = (const __u64 *)k, *b = (const __u64 *)&t->key;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4]));
}

/** bl_top_find - returns the number of flow @key, with a pin of the caller's; 0: it has none. */
__attribute__((noinline)) int bl_top_find(struct bl_top_key *key)
{
	/* Linux 6.1 accepts no argument of a global function as a map's key. */
	struct bl_top_key k;
	__u32 i, n, tries = BL_DEST_LOOKS, *known;
	struct bl_hold_dest *d;
	struct bl_top_tx *t;

	if (!key)
		return 0;
	k = *key;
	BL_OPAQUE(tries);
	for (i = 0; i < BL_DEST_LOOKS && i < tries; i++) {
		known = bpf_map_lookup_elem(&top_flows, &k);
		if (!known)
			return 0;
		n = BL_READ_ONCE(*known);
		d = bpf_map_lookup_elem(&hold_macs, &n);
		t = bpf_map_lookup_elem(&top_tx, &n);
		if (!d || !t)
			return 0;
		if (!bl_dest_pin(d))
			continue;
		if (bl_top_same_key(t, &k))
			return (int)n;
		bl_dest_unpin(d);
	}
	return 0;
}

/**
 * bl_top_number - gives the new flow @key a number, with a pin of the caller's.
 * @mac: next hop of its first frame
 * Returns the number; 0: none is left, or another CPU has added the flow at the same moment.
 */
__attribute__((noinline)) int bl_top_number(struct bl_top_key *key, __u64 mac, __u64 now)
{
	struct bl_top_key copy, *k = &copy; /* see bl_top_find() */
	__u32 zero = 0, n, tag;
	const struct bl_top_cfg *c;
	struct bl_hold_dest *who;
	struct bl_top_hint hint;
	struct bl_due *due;
	struct bl_top_tx *t;

	if (!key)
		return 0;
	copy = *key;
	c = bpf_map_lookup_elem(&top_cfg, &zero);
	due = bpf_map_lookup_elem(&hold_due, &zero);
	if (!c || !due)
		return 0;
	n = bl_number_alloc(due);
	bl_number_check_spare(due, now);
	t = bpf_map_lookup_elem(&top_tx, &n);
	who = bpf_map_lookup_elem(&hold_macs, &n);
	if (!n || !t || !who)
		return 0;
	bl_top_hint_of(k, c, &hint);
	tag = bpf_get_prandom_u32();
	bpf_spin_lock(&t->lock);
	bl_top_tx_begin(t, c, k, &hint, tag, now);
	t->port = bl_top_port_of(k);
	t->mac[0] = (__u8)mac;
	t->mac[1] = (__u8)(mac >> 8);
	t->mac[2] = (__u8)(mac >> 16);
	t->mac[3] = (__u8)(mac >> 24);
	t->mac[4] = (__u8)(mac >> 32);
	t->mac[5] = (__u8)(mac >> 40);
	bpf_spin_unlock(&t->lock);
	__builtin_memcpy(who->mac, t->mac, sizeof(who->mac));
	who->kind = BL_DEST_FLOW;
	bl_number_start(who, now);
	if (!bpf_map_update_elem(&top_flows, k, &n, BPF_NOEXIST))
		return (int)n;
	bpf_spin_lock(&t->lock);
	t->state = BL_TOP_FREE;
	bpf_spin_unlock(&t->lock);
	bl_number_drop(who);
	return 0;
}

/* Turns @key into that of the flow that all flows between its two addresses share. */
static __always_inline void bl_top_share_key(struct bl_top_key *key)
{
	key->sport = key->dport = 0;
	key->proto = BL_TOP_SHARED;
}

/*
 * Returns the number of flow @key, with a pin of the caller's; 0: none is left.
 *
 * A flow that finds only BL_TOP_RESERVE numbers left shares one with all such flows between the
 * same two addresses. So does a new flow while frames of the shared flow wait, because some of them
 * may be its own, and a flow that is just ending, whose number stays closed for as long as the
 * pacer has no CPU.
 */
static __always_inline __u32 bl_top_number_of(struct bl_due *due, struct bl_top_key *key, __u64 mac,
					      __u64 now)
{
	__u32 n = (__u32)bl_top_find(key), own;
	__be16 sport = key->sport, dport = key->dport;
	__u8 proto = key->proto;

	if (n)
		return n;
	own = bl_numbers_spare(due) > BL_TOP_RESERVE;
	bl_top_share_key(key);
	n = (__u32)bl_top_find(key);
	if (n && (!own || bl_number_held(n)))
		return n;
	if (n)
		bl_number_unpin(n);
	if (own) {
		key->sport = sport;
		key->dport = dport;
		key->proto = proto;
	}
	n = (__u32)bl_top_number(key, mac, now);
	if (!n)
		n = (__u32)bl_top_find(key);
	if (n || !own)
		return n;
	bl_top_share_key(key);
	n = (__u32)bl_top_find(key);
	return n ? n : (__u32)bl_top_number(key, mac, now);
}

/**
 * bl_top_hold - holds a frame under policy top. @class: 0: expedited. Returns the reason;
 * BL_R_NONE: the frame waits for no token.
 */
__attribute__((noinline)) int bl_top_hold(struct xdp_md *ctx, __u32 class, __u64 now)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, n, len = (__u32)bpf_xdp_get_buff_len(ctx);
	const struct ethhdr *eth = data;
	const struct bl_top_cfg *c;
	struct bl_top_key key;
	struct bl_due *due;
	struct bl_top_tx *t;
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
	n = bl_top_number_of(due, &key, bl_mac48(eth->h_dest), now);
	if (!n)
		return BL_R_HOLD_DESTS;
	t = bpf_map_lookup_elem(&top_tx, &n);
	why = t ? bl_enqueue(ctx, BL_HOLD_QUEUE(n, class != 0), now, BL_HC_HOLD) : BL_R_HOLD_DESTS;
	if (why == BL_R_NONE && t) {
		bpf_spin_lock(&t->lock);
		why = bl_top_frame_held(t, len, now);
		bpf_spin_unlock(&t->lock);
		/*
		 * The pacer asks for tokens at once, or looks after a while whether some have
		 * arrived.
		 */
		if (bl_due_lower(due, n, why ? now : now + c->sync_ns))
			bl_pace_ring();
		why = BL_R_HELD;
	}
	bl_number_unpin(n);
	return why == BL_R_QUEUE_FULL ? BL_R_HOLD_FULL : why;
}

/* ---- tokens ---- */

/* Returns whether a frame of @len bytes can have an echo without becoming too long for the link. */
static __always_inline int bl_top_echo_fits(__u32 len)
{
	return len <= BL_TOP_FRAME_MAX - sizeof(struct bl_top_echo);
}

/**
 * bl_top_append_echo - appends the echo of token @seq and the frame's own number @number to the
 * frame of @len bytes in slot @slot. Returns the new length, or @len if the frame would be too long
 * for the link.
 */
__attribute__((noinline)) int bl_top_append_echo(__u32 slot, __u32 len, __u32 flow, __u32 seq,
						 __u32 number)
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
	BL_HALVES_SET(e, data, number);
	return (int)(len + sizeof(*e));
}

/*
 * Takes the oldest entry of flow @n out of its queues, expedited frames first. Returns 0 if there
 * is none.
 */
static __always_inline __u32 bl_top_take_entry(__u32 n)
{
	__u32 key = BL_HOLD_QUEUE(n, 0), entry = 0;

	if (bl_queue_len(key))
		entry = (__u32)bl_queue_get(key);
	return entry ? entry : (__u32)bl_queue_get(key + 1);
}

/* Returns the next number of the flow's data frames, which is never 0. */
static __always_inline __u32 bl_top_next_number(struct bl_top_tx *t)
{
	__u32 number = __sync_fetch_and_add(&t->data, 1) + 1;

	return number ? number : __sync_fetch_and_add(&t->data, 1) + 1;
}

/* Makes the pacer send the frame that the token's frame could not become. */
static __always_inline void bl_top_defer_to_pacer(struct bl_top_tx *t, __u32 n)
{
	__u32 zero = 0;
	struct bl_due *due = bpf_map_lookup_elem(&hold_due, &zero);

	bpf_spin_lock(&t->lock);
	t->paced++;
	bpf_spin_unlock(&t->lock);
	if (due && bl_due_lower(due, n, 0))
		bl_pace_ring();
}

/*
 * Sends the frame in @entry's slot in the token's place, or leaves that to the pacer. A frame of a
 * flow that keeps its frames gets a number. Returns the reason.
 */
static __always_inline enum bl_reason bl_top_reply(struct xdp_md *ctx, struct bl_top_tx *t, __u32 n,
						   __u32 seq, __u32 entry, __u64 now)
{
	__u32 number = BL_READ_ONCE(t->keep) && bl_top_echo_fits(BL_RING_LEN(entry))
			       ? bl_top_next_number(t)
			       : 0;
	__u32 slot = BL_RING_SLOT(entry),
	      len = (__u32)bl_top_append_echo(slot, BL_RING_LEN(entry), n, seq, number), zero = 0,
	      key;
	struct bl_slot *s = bpf_map_lookup_elem(&slots, &slot);
	struct bl_queue_hist *h;
	struct bl_due *due;

	if (!bl_frame_out(ctx, slot, len)) {
		key = s ? s->queue : BL_SLOT_SENT;
		h = bpf_map_lookup_elem(&queue_hist, &key);
		/*
		 * Unlocked: the pacer writes this for the frames that it sends, and one of two
		 * counts may be lost.
		 */
		if (s && h)
			bl_hist_add(&h->sojourn,
				    (now - bl_min64(s->at_ns, now)) >> BL_HIST_NS_SHIFT);
		if (number)
			bl_top_keep(n, number, entry, 0, now);
		else
			bl_slot_free(slot);
		return BL_R_TOKEN_USED;
	}
	if (number) {
		bl_top_keep(n, number, entry, 1, now);
		bl_top_defer_to_pacer(t, n);
		return BL_R_TOKEN_PACED;
	}
	due = bpf_map_lookup_elem(&hold_due, &zero);
	if (!due || bl_queue_put(BL_HOLD_QUEUE(0, 0), BL_RING_ENTRY(slot, len), 0)) {
		bl_slot_free(slot);
		return BL_R_HOLD_FULL;
	}
	bpf_spin_lock(&t->lock);
	t->paced++;
	bpf_spin_unlock(&t->lock);
	if (bl_due_lower(due, 0, 0))
		bl_pace_ring();
	return BL_R_TOKEN_PACED;
}

/**
 * bl_top_resend - answers token @seq of a flow that keeps its frames with the oldest frame that is
 * missing. Returns the reason; BL_R_NONE: no frame is missing, or another CPU sends it, and a new
 * one may go; BL_R_TOKEN_BLOCKED: no new one may go, because the window is full.
 */
__attribute__((noinline)) int bl_top_resend(struct xdp_md *ctx, __u32 n, __u32 seq, __u64 now)
{
	__u32 zero = 0, i, entry, slot;
	const struct bl_top_cfg *c = bpf_map_lookup_elem(&top_cfg, &zero);
	struct bl_top_kept *k = bpf_map_lookup_elem(&top_kept, &n);
	struct bl_top_tx *t = bpf_map_lookup_elem(&top_tx, &n);
	__u64 marked, word;
	int why = BL_R_TOKEN_RESENT;

	if (!c || !k || !t)
		return BL_R_NONE;
	marked = BL_READ_ONCE(k->marked);
	if (marked) {
		i = bl_kept_oldest(marked, BL_READ_ONCE(t->data));
		if (!bl_bit_clear(&k->marked, i))
			return BL_R_NONE; /* another CPU sends it */
	} else {
		i = BL_KEPT_PLACE(BL_READ_ONCE(t->data) + 1);
		if (!BL_READ_ONCE(k->word[i]) ||
		    !(bl_queue_len(BL_HOLD_QUEUE(n, 0)) | bl_queue_len(BL_HOLD_QUEUE(n, 1))))
			return BL_R_NONE;
		if (!bl_kept_old(BL_READ_ONCE(k->at[i]), t->rtt_us ? t->rtt_us : c->sync_ns / 1000,
				 now)) {
			bpf_spin_lock(&t->lock);
			t->tokens--;
			t->wasted++;
			bpf_spin_unlock(&t->lock);
			return BL_R_TOKEN_BLOCKED;
		}
	}
	word = bl_top_take_kept(k, i);
	if (!word)
		return BL_R_NONE;
	entry = BL_KEPT_ENTRY(word);
	slot = BL_RING_SLOT(entry);
	BL_WRITE_ONCE(k->at[i], bl_kept_at(now, 1));
	if (bl_frame_out(ctx, slot,
			 (__u32)bl_top_append_echo(slot, BL_RING_LEN(entry), n, seq,
						   BL_KEPT_NUMBER(word))))
		why = BL_R_TOKEN_PACED;
	bl_top_put_kept_back(k, i, word);
	(void)__sync_fetch_and_add(&t->resent, 1);
	if (why == BL_R_TOKEN_PACED) {
		bl_bit_set(&k->push, i); /* after the word, which the pacer takes */
		bl_top_defer_to_pacer(t, n);
	}
	return why;
}

/**
 * bl_top_to_stop - turns the token's frame into the STOP with number @seq. The IP checksum stays
 * valid: the same words in other places. @bus: bus time, ns. Returns BL_R_TOKEN_STOP or
 * BL_R_TOKEN_WASTED.
 */
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

/**
 * bl_top_validate - validates token @m.
 * @mono: arrival, CLOCK_MONOTONIC, ns
 * Returns why it is not answered, or BL_R_NONE: then @m->ts is the bus time now, and @m->data is 1
 * if its flow keeps frames.
 */
__attribute__((noinline)) int bl_top_validate(struct bl_top_msg *m, __u64 mono)
{
	const struct bl_top_cfg *c;
	struct bl_top_tx *t;
	enum bl_reason why;
	struct bl_now now;
	__u32 zero = 0, n;

	c = bpf_map_lookup_elem(&top_cfg, &zero);
	if (!c || !m)
		return BL_R_TOKEN_UNKNOWN;
	n = m->flow;
	t = bpf_map_lookup_elem(&top_tx, &n);
	if (!t || !n)
		return BL_R_TOKEN_UNKNOWN;
	bl_clock_now(mono, &now);
	if (!now.ok)
		return BL_R_CLOCK_VOID;
	bpf_spin_lock(&t->lock);
	why = bl_top_token(t, c, m, now.bus, now.limit - now.bus, mono);
	m->data = t->keep;
	bpf_spin_unlock(&t->lock);
	m->ts = now.bus;
	return why;
}

/**
 * bl_top_answer - turns the frame of a valid token into a held frame, or into a STOP. Returns the
 * reason.
 */
__attribute__((noinline)) int bl_top_answer(struct xdp_md *ctx, struct bl_top_msg *m, __u32 v6,
					    __u64 mono)
{
	__u32 zero = 0, n, entry, sig;
	const struct bl_top_cfg *c;
	struct bl_top_tx *t;
	struct bl_due *due;
	__u64 tail;
	int stop;

	c = bpf_map_lookup_elem(&top_cfg, &zero);
	if (!c || !m)
		return BL_R_TOKEN_UNKNOWN;
	n = m->flow;
	t = bpf_map_lookup_elem(&top_tx, &n);
	if (!t)
		return BL_R_TOKEN_UNKNOWN;
	entry = bl_top_take_entry(n);
	if (entry)
		return bl_top_reply(ctx, t, n, m->seq, entry, mono);
	bpf_spin_lock(&t->lock);
	stop = bl_top_token_wasted(t);
	sig = t->sig;
	tail = bl_top_tail_ns(t, c);
	bpf_spin_unlock(&t->lock);
	/*
	 * A frame that was put in between found CREDITED, so nothing would ask for it: the queue is
	 * read again after the lock. Pairs with bl_top_hold(), which puts the frame in and then
	 * takes the lock.
	 */
	entry = bl_top_take_entry(n);
	if (entry) {
		bpf_spin_lock(&t->lock);
		t->tokens++;
		t->wasted--;
		bpf_spin_unlock(&t->lock);
		return bl_top_reply(ctx, t, n, m->seq, entry, mono);
	}
	if (tail != BL_DUE_NEVER) {
		/* The pacer reports how far the data got, since this frame has no room for it. */
		due = bpf_map_lookup_elem(&hold_due, &zero);
		if (due && bl_due_lower(due, n, tail))
			bl_pace_ring();
	}
	return stop ? bl_top_to_stop(ctx, v6, sig, m->ts) : BL_R_TOKEN_WASTED;
}

/*
 * Handles token @m under a pin. The steps are called one after the other and not from one another,
 * because functions that call each other share 512 bytes of stack. Returns the reason.
 */
static __always_inline int bl_top_token_came(struct xdp_md *ctx, struct bl_top_msg *m, __u32 v6)
{
	__u64 now = bpf_ktime_get_ns();
	struct bl_hold_dest *who;
	__u32 n = m->flow;
	int why;

	who = bpf_map_lookup_elem(&hold_macs, &n);
	if (!who || !n || !bl_dest_pin(who))
		return BL_R_TOKEN_UNKNOWN;
	why = bl_top_validate(m, now);
	if (why == BL_R_NONE)
		BL_WRITE_ONCE(who->left_ns, now); /* or could have left */
	if (why == BL_R_NONE && m->data)
		why = bl_top_resend(ctx, m->flow, m->seq, now);
	if (why == BL_R_NONE)
		why = bl_top_answer(ctx, m, v6, now);
	bl_number_unpin(n);
	return why;
}

#endif
