/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, the sender: frames of applications become flows (bl_hold_xdp), and tokens that
 * come become their frames (bl_host_xdp). BPF side only; see bpf/host/top.h.
 *
 * A token is answered on the CPU that it comes in on, by its own frame: a held frame is taken out
 * of its queue, copied over the token and returned (XDP_TX). A frame that cannot grow (a token that
 * passed a kernel's sockets on its way) leaves that to the pacer, by destination 0's queue.
 */
#ifndef BARLINE_HOST_TOP_TX_H
#define BARLINE_HOST_TOP_TX_H

#include "top_keep.h"
#include "core/queue/classify_core.h"
#include "core/top/top_token_core.h"
#include "core/top/top_tx_core.h"

#define BL_TOP_IP4_OFF sizeof(struct ethhdr)
/* what bl_top_key_of() looks at */
#define BL_TOP_PULL (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + 20)
#define BL_TOP_HDR4 (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define BL_TOP_HDR6 (sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

/* ---- frames of applications ---- */

static __always_inline void bl_top_mapped(__u8 *to, __be32 a)
{
	__u32 *w = (__u32 *)to;

	w[0] = w[1] = 0;
	w[2] = BL_BE32(0xffff);
	w[3] = a;
}

/*
 * The flow that a frame belongs to. Returns 1; 0: none, it waits for no token: it is no IP, has a
 * VLAN tag, which tokens would not have, or is TCP without payload.
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
		bl_top_mapped(k->saddr, ip->saddr);
		bl_top_mapped(k->daddr, ip->daddr);
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
	/* bl_frame_class() leaves the ports 0 where there are options or fragments */
	if (l.proto != BL_TCP || !l.sport || len > BL_TOP_CONTROL_MAX)
		return 1;
	tcp = data + l4;
	BL_SEEN(tcp);
	if ((void *)(tcp + 20) > end)
		return 1;
	return room != (__u32)(tcp[12] >> 4) * 4;
}

/* What is known of a new flow: its application's own word, else a rule's. */
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
		/* pairs with bl_flow_hint() in lib/hint.c: odd, then the words, then even */
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
		/* what a rule asks for stands: SO_PRIORITY says nothing of it */
		to->flags |= said.flags;
	}
}

/*
 * A frame of an application is on its way into bl0: its socket's SO_PRIORITY, 1 to 6 (all that
 * needs no privilege), says a class, 6 the best: a hint of this class in place of a size. What the
 * application itself has said of the flow stands. Counts nothing: the frame goes on to bl_hold_xdp.
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
	/* as write_hint() in lib/hint.c; who is overtaken leaves it */
	if (__sync_val_compare_and_swap(&h->seq, seq, seq + 1) != seq)
		return;
	__builtin_memcpy(&h->key, &k, sizeof(k));
	h->bytes = BL_TOP_SAYS_CLASS + BL_TOP_CLASSES - skb->priority;
	h->deadline_us = h->coflow = h->flags = 0;
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

/* Is flow @n's key @k? Under a pin. */
static __always_inline int bl_top_same(const struct bl_top_tx *t, const struct bl_top_key *k)
{
	const __u64 *a = (const __u64 *)k, *b = (const __u64 *)&t->key;

	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) | (a[4] ^ b[4]));
}

/* The number that flow @key has, with a pin of the caller's; 0: none. */
__attribute__((noinline)) int bl_top_find(struct bl_top_key *key)
{
	struct bl_top_key k; /* Linux 6.1 takes no argument of a global function for a map's key */
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
		if (bl_top_same(t, &k))
			return (int)n;
		bl_dest_unpin(d);
	}
	return 0;
}

/*
 * A number for the new flow @key, whose first frame goes to @mac, with a pin of the caller's; 0:
 * there are no more, or another CPU has just seen the flow, too.
 */
__attribute__((noinline)) int bl_top_number(struct bl_top_key *key, __u64 mac, __u64 now)
{
	struct bl_top_key copy, *k = &copy; /* as above */
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
	n = bl_number_take(due);
	bl_number_taken(due, now);
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
	bl_number_begin(who, now);
	if (!bpf_map_update_elem(&top_flows, k, &n, BPF_NOEXIST))
		return (int)n;
	bpf_spin_lock(&t->lock);
	t->state = BL_TOP_FREE;
	bpf_spin_unlock(&t->lock);
	bl_number_drop(who);
	return 0;
}

/* @key becomes that of the flow which all flows share between its two addresses. */
static __always_inline void bl_top_share(struct bl_top_key *key)
{
	key->sport = key->dport = 0;
	key->proto = BL_TOP_SHARED;
}

/*
 * The number of flow @key, with a pin of the caller's; 0: none. A flow that finds only
 * BL_TOP_RESERVE numbers left shares one with all such flows between the same two addresses, and so
 * does a new flow while frames of the shared one wait: it may have sent some of them. So does a
 * flow that is just ending, whose number stays closed for as long as the pacer has no CPU.
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
	bl_top_share(key);
	n = (__u32)bl_top_find(key);
	if (n && (!own || bl_held(n)))
		return n;
	if (n)
		bl_unpin(n);
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
	bl_top_share(key);
	n = (__u32)bl_top_find(key);
	return n ? n : (__u32)bl_top_number(key, mac, now);
}

/**
 * bl_top_hold - under policy top, a frame that is held back at all. Returns the reason; BL_R_NONE:
 * it waits for no token.
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
		 * the pacer asks for tokens at once, or looks after a while whether some have come
		 */
		if (bl_due_lower(due, n, why ? now : now + c->sync_ns))
			bl_pace_ring();
		why = BL_R_HELD;
	}
	bl_unpin(n);
	return why == BL_R_QUEUE_FULL ? BL_R_HOLD_FULL : why;
}

/* ---- tokens ---- */

/* Whether a frame of @len bytes can have an echo: else it would be too long for the link. */
static __always_inline int bl_top_fits(__u32 len)
{
	return len <= BL_TOP_FRAME_MAX - sizeof(struct bl_top_echo);
}

/*
 * The slot's frame gets the echo of token @seq behind it, and its own number @number. Returns its
 * length now; as it was if it has become too long for the link.
 */
__attribute__((noinline)) int bl_top_trail(__u32 slot, __u32 len, __u32 flow, __u32 seq,
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

static __always_inline __u32 bl_top_take(__u32 n)
{
	__u32 key = BL_HOLD_QUEUE(n, 0), entry = 0;

	if (bl_queue_len(key))
		entry = (__u32)bl_queue_get(key);
	return entry ? entry : (__u32)bl_queue_get(key + 1);
}

/* The next number of a flow's data; 0 means none. */
static __always_inline __u32 bl_top_next_number(struct bl_top_tx *t)
{
	__u32 number = __sync_fetch_and_add(&t->data, 1) + 1;

	return number ? number : __sync_fetch_and_add(&t->data, 1) + 1;
}

/* The token's frame could not become the answer: the pacer sends it. */
static __always_inline void bl_top_by_pacer(struct bl_top_tx *t, __u32 n)
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
 * The frame in @entry's slot goes back in the token's place, or by the pacer; of a flow that keeps
 * them it gets a number.
 */
static __always_inline enum bl_reason bl_top_reply(struct xdp_md *ctx, struct bl_top_tx *t, __u32 n,
						   __u32 seq, __u32 entry, __u64 now)
{
	__u32 number = BL_READ_ONCE(t->keep) && bl_top_fits(BL_RING_LEN(entry))
			       ? bl_top_next_number(t)
			       : 0;
	__u32 slot = BL_RING_SLOT(entry),
	      len = (__u32)bl_top_trail(slot, BL_RING_LEN(entry), n, seq, number), zero = 0, key;
	struct bl_slot *s = bpf_map_lookup_elem(&slots, &slot);
	struct bl_queue_hist *h;
	struct bl_due *due;

	if (!bl_frame_out(ctx, slot, len)) {
		key = s ? s->queue : BL_SLOT_SENT;
		h = bpf_map_lookup_elem(&queue_hist, &key);
		if (s && h) /* unlocked: the pacer writes it for frames that it sends, and one of
			       two counts may be lost */
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
		bl_top_by_pacer(t, n);
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

/*
 * Token @seq of a flow that keeps its frames: the oldest one that is missing goes again. Returns
 * the reason; BL_R_NONE: none is, or it is in other hands, and a new one may go;
 * BL_R_TOKEN_BLOCKED: it may not, since the window is full.
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
			return BL_R_NONE; /* another CPU has it */
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
	word = bl_top_take_out(k, i);
	if (!word)
		return BL_R_NONE;
	entry = BL_KEPT_ENTRY(word);
	slot = BL_RING_SLOT(entry);
	BL_WRITE_ONCE(k->at[i], bl_kept_at(now, 1));
	if (bl_frame_out(ctx, slot,
			 (__u32)bl_top_trail(slot, BL_RING_LEN(entry), n, seq,
					     BL_KEPT_NUMBER(word))))
		why = BL_R_TOKEN_PACED;
	bl_top_put_back(k, i, word);
	(void)__sync_fetch_and_add(&t->resent, 1);
	if (why == BL_R_TOKEN_PACED) {
		bl_bit_set(&k->push, i); /* the word first: the pacer takes it */
		bl_top_by_pacer(t, n);
	}
	return why;
}

/*
 * The token's frame becomes the STOP with number @seq. Checksums of both IP versions stay: the same
 * words in other places.
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
 * bl_top_validate - token @m came at @mono. Returns why it is not answered, or BL_R_NONE: then
 * @m->ts is the bus time now, and @m->data 1 if its flow keeps frames.
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

/* A token that was believed becomes a held frame, or a STOP. */
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
	entry = bl_top_take(n);
	if (entry)
		return bl_top_reply(ctx, t, n, m->seq, entry, mono);
	bpf_spin_lock(&t->lock);
	stop = bl_top_token_wasted(t);
	sig = t->sig;
	tail = bl_top_tail_ns(t, c);
	bpf_spin_unlock(&t->lock);
	/*
	 * A frame that was put in between found CREDITED, and nobody would ask for it: a second
	 * look, after the lock. Pairs with bl_top_hold(): the frame, then the lock.
	 */
	entry = bl_top_take(n);
	if (entry) {
		bpf_spin_lock(&t->lock);
		t->tokens++;
		t->wasted--;
		bpf_spin_unlock(&t->lock);
		return bl_top_reply(ctx, t, n, m->seq, entry, mono);
	}
	if (tail != BL_DUE_NEVER) {
		/* how far the data came: the pacer says it, since this frame has no room for it */
		due = bpf_map_lookup_elem(&hold_due, &zero);
		if (due && bl_due_lower(due, n, tail))
			bl_pace_ring();
	}
	return stop ? bl_top_to_stop(ctx, v6, sig, m->ts) : BL_R_TOKEN_WASTED;
}

/*
 * Token @m came. Returns the reason. One step after the other, and not one within the other: all
 * that is called has 512 bytes of stack together.
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
		BL_WRITE_ONCE(who->left_ns, now); /* or could have */
	if (why == BL_R_NONE && m->data)
		why = bl_top_resend(ctx, m->flow, m->seq, now);
	if (why == BL_R_NONE)
		why = bl_top_answer(ctx, m, v6, now);
	bl_unpin(n);
	return why;
}

#endif
