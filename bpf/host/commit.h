/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prepare, acknowledge, commit (1Pipe 5.1), without a process. The receiver's XDP program stores a
 * PREP and sends the same frame back as its ACK. The sender's XDP program closes the slot of its
 * window. If that empties the window, it turns the ACK's frame into a beacon with the new commit
 * barrier and sends that on to the switch.
 *
 * A RECALL (1Pipe 5.2) goes the same way: stored in the receiver's ring, sent back as RECALLED. The
 * receiving process need not run at that moment. The commit barrier cannot pass what is recalled
 * before the sender has all answers, so a process that sees such a barrier and reads its ring after
 * it finds the RECALL there and takes the frames out before it delivers.
 *
 * Example: host 1 sends one message to hosts 2 and 3, ts = 1030. C of host 1 stands at 1030. The
 * ACK of host 2 closes slot 0; that of host 3 closes slot 1 and empties the window. C becomes the
 * clock, 1052, and leaves at once in that frame. The switch's least C was host 1's, so it rises
 * over 1030 and is relayed, and both receivers deliver.
 *
 * The way back is XDP_TX, past the queue that data and beacons share. So neither frame promises
 * anything about best-effort messages: its B is old. C needs no FIFO, because what is below it was
 * stored before it was sent.
 *
 * Not here: retransmission and the process's side of the window (lib/rtx.c). BPF side only.
 */
#ifndef BARLINE_HOST_COMMIT_H
#define BARLINE_HOST_COMMIT_H

#include "bpf/host/role.h"
#include "core/wire_core.h"
#include "core/order/commit_core.h"
#include "bpf/auth.h"
#include "bpf/bpf_util.h"
#include "bpf/host/barrier_rx.h"
#include "bpf/host/barrier_tx.h"
#include "bpf/host/policy.h"
#include "bpf/host/ring.h"
#include "bpf/host/run.h"

#define BL_HDR_OFF_MAX (sizeof(struct ethhdr) + 4 + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

/* Returns the first @len bytes after the frame's header, or NULL if the frame is shorter. */
static __always_inline const __u8 *frame_body(const void *data, const void *end,
					      const struct run *r, __u32 len)
{
	__u32 off = r->f.hdr_off;
	const __u8 *body;

	if (off > BL_HDR_OFF_MAX || r->f.body_len < len)
		return NULL;
	body = (const __u8 *)data + off + sizeof(struct bl_hdr);
	BL_SEEN(body);
	return body + len > (const __u8 *)end ? NULL : body;
}

/* Returns the body of a PREP or an ACK, or NULL if the frame is too short for one. */
static __always_inline const __u8 *ack_body(const void *data, const void *end, const struct run *r)
{
	return frame_body(data, end, r, BL_ACK_BODY);
}

/*
 * Reads which life of its receiver a PREP or a RECALL is for, into @r->life. Returns 0, or -1 if
 * the frame is too short to say so.
 */
static __always_inline int read_named_life(const void *data, const void *end, struct run *r)
{
	const __u8 *body;

	if (r->f.opcode == BL_OP_RECALL) {
		body = frame_body(data, end, r, sizeof(struct bl_recall));
		if (!body)
			return -1;
		r->life = BL_BE16(((const struct bl_recall *)body)->life);
		return 0;
	}
	body = ack_body(data, end, r);
	if (!body)
		return -1;
	r->life = BL_BE16(((const struct bl_prep *)(body + sizeof(struct bl_data)))->life);
	return 0;
}

/*
 * Returns whether C has passed a PREP before it arrives.
 *
 * A sender for which C waits can only send such a PREP as a copy of a frame whose ACK it has
 * received, because its window holds C back until then. Any other sender (one that rejoins, or was
 * announced as failed and is alive) must not be told that the message is stored: it would be late
 * here, and the sender would take it for committed.
 */
static __always_inline int prep_is_late(const struct run *r)
{
	return r->f.opcode == BL_OP_PREP && r->ts < BL_READ_ONCE(r->page->commit);
}

/* ---- the window ---- */

/** struct head_advance - argument of advance_window_head(). */
struct head_advance {
	__u32 slot;
	__u32 pad;
};

/* Moves the head of the window over one slot that is closed. Returns 1 if it cannot move. */
static long advance_window_head(__u32 i, struct head_advance *a)
{
	struct bl_ep_page *p = ep_page_of(a->slot);

	return !p || !bl_rwin_step(&p->line.state, &p->win);
}

/*
 * Closes the slot that @a names in the window of endpoint slot @slot, and moves the head as far as
 * it goes. If the head has moved and the process sleeps until its window moves, wakes it. A head
 * that moves by more than the window's length during this call was moved by other CPUs, which go
 * on.
 * @empty: set to whether no slot is open any more
 * Returns BL_R_ACKED, ACK_REPEATED or ACK_UNKNOWN.
 */
static __always_inline enum bl_reason close_slot(__u32 slot, const struct bl_ack *a, int *empty)
{
	struct bl_ep_page *p = ep_page_of(slot);
	struct head_advance adv = { .slot = slot };
	struct bl_rslot *s;
	__u32 head;
	void *ring;

	*empty = 0;
	if (!p)
		return BL_R_ACK_UNKNOWN;
	s = bl_rwin_slot(&p->win, a->slot);
	if (!bl_ack_fits(s, a))
		return BL_R_ACK_UNKNOWN;
	if (BL_READ_ONCE(s->wait) & BL_RSLOT_OPEN)
		BL_WRITE_ONCE(s->ack_ns, a->copy ? 0 : bpf_ktime_get_ns());
	if (!bl_rslot_close(s, a->slot))
		return BL_R_ACK_REPEATED;
	head = bl_rwin_head(BL_READ_ONCE(p->line.state));
	bpf_loop(BL_RWIN, advance_window_head, &adv, 0);
	*empty = !bl_rwin_used(BL_READ_ONCE(p->line.state));
	if (bl_rwin_head(BL_READ_ONCE(p->line.state)) == head)
		return BL_R_ACKED;
	/*
	 * The head was moved before, by a full barrier. Pairs with the process, which sets on_ack,
	 * issues a fence, and reads the window once more.
	 */
	if (BL_READ_ONCE(p->wake.on_ack)) {
		BL_WRITE_ONCE(p->wake.on_ack, 0);
		ring = bpf_map_lookup_elem(&rings, &slot);
		if (ring)
			wake_ring(ring);
	}
	return BL_R_ACKED;
}

/* Fills @a from the body of a PREP or ACK. @from, @port: the endpoint that acknowledges. */
static __always_inline void read_ack(const __u8 *body, const struct run *r, const __u8 *from,
				     __u16 port, struct bl_ack *a)
{
	const struct bl_prep *p = (const void *)(body + sizeof(struct bl_data));

	a->ts = r->f.ts;
	a->slot = BL_BE32(p->slot);
	a->psn = r->f.psn;
	a->port = port;
	a->life = BL_BE16(p->life);
	a->copy = BL_BE16(p->copy);
	a->addr = (const __u64 *)from;
}

/*
 * Closes the slot of a PREP at once, without a frame: its receiver is an endpoint of this host that
 * has stored it, or had left in order.
 */
static __always_inline void ack_local_prep(struct __sk_buff *skb, struct run *r)
{
	const __u8 *body = ack_body((void *)(long)skb->data, (void *)(long)skb->data_end, r);
	struct bl_ack a;
	int empty;

	if (!body)
		return;
	read_ack(body, r, r->daddr, r->f.dport, &a);
	close_slot(r->slot, &a, &empty);
}

/*
 * The same for a RECALL: the RECALLED goes into the ring of the endpoint that sent the RECALL.
 * Returns whether the ring had room; without room the sender repeats the RECALL.
 */
static __always_inline int answer_local_recall(struct __sk_buff *skb, struct run *r)
{
	__u64 *s = (__u64 *)r->saddr, *d = (__u64 *)r->daddr, a[2] = { s[0], s[1] };
	__u16 port = r->f.sport;

	s[0] = d[0];
	s[1] = d[1];
	d[0] = a[0];
	d[1] = a[1];
	r->f.sport = r->f.dport;
	r->f.dport = port;
	r->f.opcode = BL_OP_RECALLED;
	r->f.flags = BL_HOP_HOST | BL_F_LANES(1);
	return store_message(skb, 1, r) == BL_R_STORED;
}

/*
 * Answers a frame from one endpoint of this host to another, if it asks for an answer. @why: what
 * became of the frame; only BL_R_STORED and BL_R_LEFT are answered. Returns the reason to count.
 */
static __always_inline enum bl_reason answer_local_frame(struct __sk_buff *skb, struct run *r,
							 enum bl_reason why)
{
	if (why != BL_R_STORED && why != BL_R_LEFT)
		return why;
	if (r->f.opcode == BL_OP_PREP)
		ack_local_prep(skb, r);
	else if (r->f.opcode == BL_OP_RECALL && answer_local_recall(skb, r) && why == BL_R_STORED)
		return BL_R_RECALLED;
	return why;
}

/* ---- frames that go back ---- */

static __always_inline void swap_mac_addresses(struct ethhdr *eth)
{
	__u8 mac[6];

	__builtin_memcpy(mac, eth->h_dest, 6);
	__builtin_memcpy(eth->h_dest, eth->h_source, 6);
	__builtin_memcpy(eth->h_source, mac, 6);
}

static __always_inline __u16 ipv4_checksum(const struct iphdr *ip)
{
	const __u16 *w = (const __u16 *)ip;
	__u32 sum = 0;
	int i;

#pragma GCC unroll 10
	for (i = 0; i < 10; i++)
		sum += w[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)~sum;
}

/**
 * bl_send_back - turns a PREP or RECALL that was stored into its ACK or RECALLED. This and the next
 * two are global functions so that their variables are not on a caller's stack: all functions that
 * call each other have 512 bytes of it together.
 * @l3, @off: offsets of the IP header and of struct bl_hdr
 * @how: BL_BACK_*
 * Returns BL_R_PREPARED or BL_R_RECALLED; BL_R_STORED if the frame cannot be sent back.
 */
#define BL_BACK_V6     1
#define BL_BACK_RECALL 2
__attribute__((noinline)) int bl_send_back(struct xdp_md *ctx, __u32 l3, __u32 off, __u32 how)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, a[4], body = how & BL_BACK_RECALL ? sizeof(struct bl_recall) : BL_ACK_BODY;
	__u16 l4_len = (__u16)(sizeof(struct udphdr) + sizeof(struct bl_hdr) + body);
	const struct bl_host_page *page = bpf_map_lookup_elem(&host_page, &zero);
	struct ethhdr *eth = data;
	struct udphdr *u;
	struct bl_hdr *h;
	__u64 old, cut, l4;
	__be16 port;
	void *ip;

	if (!page || l3 > sizeof(*eth) + 4 || off < sizeof(*u) || off > BL_HDR_OFF_MAX)
		return BL_R_STORED;
	old = page->now_ns - BL_TS_OLD;
	ip = data + l3;
	BL_SEEN(ip);
	l4 = off - sizeof(*u);
	BL_SEEN(l4);
	l4 &= 127;
	BL_SEEN(l4);
	u = data + l4;
	BL_SEEN(u);
	h = (void *)(u + 1);
	if ((void *)(eth + 1) > end || (void *)((__u8 *)(h + 1) + BL_ACK_BODY) > end)
		return BL_R_STORED;
	if (how & BL_BACK_V6) {
		struct ipv6hdr *ip6 = ip;

		if ((void *)(ip6 + 1) > end)
			return BL_R_STORED;
		__builtin_memcpy(a, &ip6->saddr, 16);
		__builtin_memcpy(&ip6->saddr, &ip6->daddr, 16);
		__builtin_memcpy(&ip6->daddr, a, 16);
		ip6->payload_len = BL_BE16(l4_len);
		ip6->hop_limit = 64;
	} else {
		struct iphdr *ip4 = ip;

		if ((void *)(ip4 + 1) > end)
			return BL_R_STORED;
		a[0] = ip4->saddr;
		ip4->saddr = ip4->daddr;
		ip4->daddr = a[0];
		ip4->tot_len = BL_BE16((__u16)(sizeof(*ip4) + l4_len));
		ip4->ttl = 64;
		ip4->check = 0;
		ip4->check = ipv4_checksum(ip4);
	}
	swap_mac_addresses(eth);
	port = u->source;
	u->source = u->dest;
	u->dest = port;
	u->len = BL_BE16(l4_len);
	u->check = 0;
	bl_put48(h->barrier, old);
	bl_put48(h->commit, old);
	h->opcode = how & BL_BACK_RECALL ? BL_OPCODE_BYTE(BL_OP_RECALLED)
					 : BL_OPCODE_BYTE(BL_OP_ACK);
	h->flags = BL_HOP_HOST | BL_F_LANES(1);
	cut = off + sizeof(*h) + body;
	if (cut < BL_BEACON_LEN + l3 - sizeof(*eth))
		cut = BL_BEACON_LEN + l3 - sizeof(*eth);
	/*
	 * Making a frame shorter does not fail. If it did, the longer frame would be as good an
	 * ACK.
	 */
	if (bpf_xdp_get_buff_len(ctx) > cut)
		bpf_xdp_adjust_tail(ctx, (int)cut - (int)bpf_xdp_get_buff_len(ctx));
	return how & BL_BACK_RECALL ? BL_R_RECALLED : BL_R_PREPARED;
}

/*
 * Answers a frame from the network, if it asks for an answer. @why: as for answer_local_frame().
 * Returns the reason to count.
 */
static __always_inline enum bl_reason answer_frame(struct xdp_md *ctx, const struct run *r,
						   enum bl_reason why)
{
	__u32 how = (r->f.v6 ? BL_BACK_V6 : 0) | (r->f.opcode == BL_OP_RECALL ? BL_BACK_RECALL : 0);
	enum bl_reason res;

	if ((why != BL_R_STORED && why != BL_R_LEFT) || !bl_op_asks(r->f.opcode))
		return why;
	res = (enum bl_reason)bl_send_back(ctx, r->f.l3_off, r->f.hdr_off, how);
	if (why == BL_R_STORED)
		return res;
	return res == BL_R_STORED ? BL_R_NO_ENDPOINT : why;
}

/**
 * bl_commit - turns the frame of an ACK that emptied the window into a beacon with the new commit
 * barrier. C has risen, and on an idle link nothing would carry it before the next tick. A switch
 * relays the beacon only if its own C waited for this host.
 * @l3: offset of the IP header
 * Returns BL_R_COMMITTED, or BL_R_ACKED if C has not risen or the frame has no room.
 */
__attribute__((noinline)) int bl_commit(struct xdp_md *ctx, __u32 l3)
{
	static const __u8 to[6] = BL_BEACON_MAC;
	struct run r = { .f.opcode = BL_OP_ACK };
	struct bl_beacon *body;
	struct bl_now now;
	struct ethhdr *eth;
	struct bl_hdr *h;
	void *data, *end;
	__be16 *proto;
	__u32 zero = 0;
	__u64 sent, at;

	r.cfg = bpf_map_lookup_elem(&host_cfg, &zero);
	r.page = bpf_map_lookup_elem(&host_page, &zero);
	bl_read_clock(&now);
	if (!r.cfg || !r.page || !now.ok || r.page->barred || l3 > sizeof(*eth) + 4 ||
	    l3 < sizeof(*eth))
		return BL_R_ACKED;
	sent = BL_READ_ONCE(r.page->sent_commit);
	host_barriers(&r, &now, BL_EPS_MAX, 0);
	if (r.c <= sent || bpf_xdp_adjust_tail(ctx, (int)(BL_BEACON_LEN + l3 - sizeof(*eth)) -
							    (int)bpf_xdp_get_buff_len(ctx)))
		return BL_R_ACKED;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	eth = data;
	at = l3 - sizeof(*proto); /* the EtherType, also behind a VLAN tag */
	BL_SEEN(at);
	at &= 31;
	BL_SEEN(at);
	proto = data + at;
	BL_SEEN(proto);
	h = (void *)(proto + 1);
	body = (void *)(h + 1);
	if ((void *)(eth + 1) > end || (void *)(proto + 1) > end ||
	    (void *)(body + 1) + sizeof(struct bl_relay) > end)
		return BL_R_ACKED;
	__builtin_memcpy(eth->h_source, eth->h_dest, 6);
	__builtin_memcpy(eth->h_dest, to, 6);
	*proto = BL_BE16(BL_ETHERTYPE);
	__builtin_memset(h, 0, sizeof(*h));
	bl_put48(h->barrier, now.bus - BL_TS_OLD);
	bl_put48(h->commit, r.c);
	h->opcode = BL_OPCODE_BYTE(BL_OP_BEACON);
	body->tai_offset_s = (__be16)BL_BE16((__u16)r.cfg->tai_offset_s);
	body->policy = bl_own_policy();
	body->port = 0;
	body->node_id = BL_BE32(r.cfg->node_id);
	__builtin_memset(body + 1, 0, sizeof(struct bl_relay));
	return BL_R_COMMITTED;
}

#define BL_EMPTY 0x100 /* or-ed to a reason: the window is empty now */
/**
 * bl_take_ack - closes the slot that an ACK names. The frame is parsed once more, because what is
 * known of it is on the caller's stack. Returns the reason, or-ed with BL_EMPTY.
 */
__attribute__((noinline)) int bl_take_ack(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const __u64 *addr, *d;
	const struct bl_ep_slot *ep;
	enum bl_reason why = BL_R_NO_ENDPOINT;
	struct run r = {};
	__u32 zero = 0, i;
	const __u8 *body;
	struct bl_ack a;
	int empty = 0;

	r.cfg = bpf_map_lookup_elem(&host_cfg, &zero);
	if (!r.cfg ||
	    bl_parse_whole(data, end, bl_frame_len(ctx), r.cfg->port_base, r.cfg->port_count,
			   &r.f) != BL_R_NONE ||
	    r.f.l3_off > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	body = ack_body(data, end, &r);
	if (!body)
		return BL_R_BAD_LENGTH;
	copy_addresses(&r, data + r.f.l3_off, end);
	d = (const __u64 *)r.daddr;
	i = (__u16)(r.f.dport - r.cfg->port_base);
	ep = bpf_map_lookup_elem(&eps, &i);
	addr = ep ? (const __u64 *)ep->addr : NULL;
	if (ep && BL_READ_ONCE(ep->active) != BL_EP_FREE &&
	    (!(addr[0] | addr[1]) || (addr[0] == d[0] && addr[1] == d[1]))) {
		why = BL_R_ACK_UNKNOWN;
		if (BL_BE16(((const struct bl_data *)body)->incarnation) == ep->life) {
			read_ack(body, &r, r.saddr, r.f.sport, &a);
			why = close_slot(ep->slot & (BL_EPS_MAX - 1), &a, &empty);
		}
	}
	return why | (empty ? BL_EMPTY : 0);
}

/*
 * Handles an ACK from the network: closes the slot, publishes the frame's barriers, and sends a
 * beacon if the window is empty. Returns the reason.
 */
static __always_inline enum bl_reason on_ack_frame(struct xdp_md *ctx, struct run *r)
{
	int why = bl_take_ack(ctx);

	if (why != BL_R_BAD_LENGTH)
		publish_barriers(r);
	if (why != (BL_R_ACKED | BL_EMPTY))
		return (enum bl_reason)(why & ~BL_EMPTY);
	why = bl_commit(ctx, r->f.l3_off);
	if (bl_auth && why == BL_R_COMMITTED)
		bl_auth_seal(ctx, 0, r->f.l3_off, BL_AUTH_S_COMMIT, 0);
	return (enum bl_reason)why;
}

#endif
