// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host role: three hooks, and up to five more where applications are admitted (DESIGN 4).
 *
 *   bl_host_xdp     NIC ingress: a message goes into its endpoint's ring, then the barrier of the
 * same frame into the host page, then sleepers are woken. In this order: a process that reads the
 * barrier first and its ring second misses nothing below the barrier. A reliable message goes back
 * as its ACK, and an ACK closes its slot in the sender's window (bpf/host/commit.h). bl_host_egress
 * NIC egress: the host's barrier, min(promise, everything in flight), into every ordered frame and
 * beacon (promise_core.h). bl_host_local   lo egress: messages between endpoints of one host, which
 * the kernel never lets out of the machine.
 *
 *   bl_hold_xdp     on bl0d: frames of applications go into hold queues (bpf/host/hold.h).
 *   bl_host_pace    the pacer's turn: sends what is due out of the NIC.
 *   bl_host_clone   NIC tc ingress: bl0 is a second station on this link and must hear broadcasts
 * too. bl_host_hint    bl0 tc egress: what SO_PRIORITY says of a flow, for TOP (bpf/host/top.h).
 *   bl_host_lift    bl0 tc ingress, where the pacer carries the beacons: brings them to the NIC's
 * egress (bpf/host/beacon.h). bl_host_relayed at no hook: the host's daemon runs it on frames that
 * came by way of the controller (bpf/host/relay.h).
 *
 * Not here: retransmission, which takes a process.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include "maps/host_maps.h"
#include "core/wire_core.h"
#include "core/order/barrier_core.h"
#include "core/order/promise_core.h"
#include "core/order/hop_core.h"
#include "core/order/line_core.h"
#include "bpf/bpf_util.h"
#include "hold.h"
#include "fence.h"

#define BL_GSO_SEGS 128 /* UDP_MAX_SEGMENTS of the newest kernels */

static __always_inline int tc_done(__u32 key, enum bl_reason r)
{
	bl_count(key, r);
	switch (r) {
	case BL_R_NOT_OURS:
	case BL_R_SENT:
	case BL_R_BEACON_SENT:
	case BL_R_TO_APP: /* a clone went there */
		return TC_ACT_OK;
	default:
		return TC_ACT_SHOT; /* stored here, or refused */
	}
}

/* What one run of a program knows. */
struct run {
	struct bl_frame f;
	const struct bl_host_cfg *cfg;
	struct bl_host_page *page;
	__u64 ts, b, c; /* extended */
	__u8 saddr[16];
	__u8 daddr[16];
	__u16 life;    /* of a PREP or RECALL: which life of the endpoint it is for */
	__u16 relayed; /* it came by way of the controller */
};

/* What a program begins with. 0, which does not happen: a map is not there. */
static __always_inline int look_up(struct run *r)
{
	__u32 zero = 0;

	r->cfg = bpf_map_lookup_elem(&host_cfg, &zero);
	r->page = bpf_map_lookup_elem(&host_page, &zero);
	return r->cfg && r->page;
}

/* ---- rings and sleepers ---- */

/* Lower wake.next or next_c to @until; what pairs with it is written at struct bl_wake. */
static __always_inline void lower_next(__u64 *next, __u64 until)
{
	int i;

	for (i = 0; i < 4; i++) {
		__u64 cur = BL_READ_ONCE(*next);

		if (cur <= until || __sync_val_compare_and_swap(next, cur, until) == cur)
			return;
	}
}

/* room: a constant. Returns 0, or -1 if the ring is full. */
static __always_inline int append(void *ctx, const int skb, struct run *r, void *ring,
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
	rec->len = r->f.body_len;
	rec->relayed = r->relayed;
	/*
	 * 64 bits, and the register that is checked is the one that is used: what Linux 6.1 needs
	 * to see a length of 1 to max
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
	if (err)
		rec->len = 0; /* cannot happen: the parser saw these bytes; an empty body is refused
				 as malformed by the reader */
	bpf_ringbuf_submit(rec, flags);
	return 0;
}

/*
 * An empty record, thrown away: its commit is what wakes. Returns 0, or -1 if there is no room, and
 * then the sleeper has enough to wake up for.
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
 * Whom a frame that asks for an answer is for is not here any more. Who left in order holds nobody
 * up: it is answered as if it had stored the frame and left after that. Who died is not answered
 * for, nor is a life of before that: what they have not acknowledged is taken back when they are
 * announced (1Pipe 5.2).
 */
static __always_inline enum bl_reason not_here(const struct bl_ep_slot *ep, const struct run *r,
					       enum bl_reason why)
{
	return bl_op_asks(r->f.opcode) && r->life && r->life == ep->left ? BL_R_LEFT : why;
}

/* Append the frame to the ring of the endpoint that it is for. */
static __always_inline enum bl_reason store(void *ctx, const int skb, struct run *r)
{
	__u32 i = (__u16)(r->f.dport - r->cfg->port_base), slot, key, zero = 0;
	const struct bl_ep_slot *ep = bpf_map_lookup_elem(&eps, &i);
	struct bl_wake *w = bpf_map_lookup_elem(&wake, &zero);
	__u64 until, *upto, flags = BPF_RB_NO_WAKEUP;
	const __u64 *a, *d = (const __u64 *)r->daddr;
	int full, timed = bl_op_timed(r->f.opcode);
	void *ring;

	if (!ep || !w)
		return BL_R_NO_ENDPOINT;
	a = (const __u64 *)ep->addr;
	if ((a[0] | a[1]) && (a[0] != d[0] || a[1] != d[1]))
		return BL_R_NO_ENDPOINT;
	if (BL_READ_ONCE(ep->active) != BL_EP_ACTIVE)
		return not_here(ep, r, BL_R_NO_ENDPOINT);
	if (r->f.body_len > BL_BODY_MAX)
		return BL_R_TOO_BIG;
	/*
	 * a RECALL for a life that has ended: there is nothing to take out, and who failed owes no
	 * answer (docs/reliable.md)
	 */
	if (bl_op_asks(r->f.opcode) && r->life != ep->life)
		return not_here(ep, r, BL_R_WRONG_LIFE);
	slot = ep->slot;
	key = slot;
	ring = bpf_map_lookup_elem(&rings, &key);
	if (!ring)
		return BL_R_NO_ENDPOINT;
	BL_SEEN(slot);
	slot &= BL_EPS_MAX - 1;
	/*
	 * A sleeper with nothing to deliver wants to be woken when the barrier passes its first
	 * message; other frames (credits, probes) concern it at once.
	 */
	if (!timed && BL_READ_ONCE(w->ep[slot].until) != BL_TIME_NONE)
		flags = BPF_RB_FORCE_WAKEUP;
	if (r->f.body_len <= BL_REC_SMALL - sizeof(struct bl_rec))
		full = append(ctx, skb, r, ring, BL_REC_SMALL, flags);
	else if (r->f.body_len <= BL_REC_FULL - sizeof(struct bl_rec))
		full = append(ctx, skb, r, ring, BL_REC_FULL, flags);
	else
		full = append(ctx, skb, r, ring, BL_REC_JUMBO, flags);
	if (full)
		return BL_R_RING_FULL;
	/*
	 * Read after the commit, which is an atomic exchange. Pairs with the sleeper, who sets
	 * until, fences, and looks at its ring once more: one of the two sees the other.
	 */
	upto = r->f.opcode == BL_OP_PREP ? &w->ep[slot].until_c : &w->ep[slot].until;
	until = BL_READ_ONCE(*upto);
	if (until == BL_TIME_NONE || flags == BPF_RB_FORCE_WAKEUP)
		return BL_R_STORED;
	if (!timed)
		wake_ring(ring);
	else if (r->ts < until && __sync_val_compare_and_swap(upto, until, r->ts) == until)
		lower_next(r->f.opcode == BL_OP_PREP ? &w->next_c : &w->next, r->ts);
	return BL_R_STORED;
}

struct waking {
	struct bl_wake *w;
	__u64 barrier;
	__u64 next;
	__u64 commit; /* 1: it is the commit barrier that has passed @barrier */
};

static long wake_one(__u32 slot, struct waking *k)
{
	__u64 until, *upto;
	__u32 key = slot;
	void *ring;

	if (slot >= BL_EPS_MAX)
		return 1;
	upto = k->commit ? &k->w->ep[slot].until_c : &k->w->ep[slot].until;
	until = BL_READ_ONCE(*upto);
	if (until >= BL_WAKE_ON_DATA)
		return 0;
	if (until >= k->barrier) {
		k->next = bl_min64(k->next, until);
		return 0;
	}
	if (__sync_val_compare_and_swap(upto, until, BL_TIME_NONE) != until)
		return 0; /* it woke up by itself, or its until was lowered: then next was, too */
	ring = bpf_map_lookup_elem(&rings, &key);
	if (ring && !wake_ring(ring))
		k->w->ep[slot].woken++;
	return 0;
}

static __always_inline void wake_below(__u64 barrier, int commit)
{
	struct waking k = { .barrier = barrier, .next = BL_TIME_NONE, .commit = commit };
	__u32 zero = 0;
	__u64 *next;

	k.w = bpf_map_lookup_elem(&wake, &zero);
	if (!k.w)
		return;
	next = commit ? &k.w->next_c : &k.w->next;
	if (BL_READ_ONCE(*next) >= barrier)
		return;
	/* emptied before the scan, by a full barrier */
	__sync_lock_test_and_set(next, BL_TIME_NONE);
	bpf_loop(BL_EPS_MAX, wake_one, &k, 0);
	if (k.next != BL_TIME_NONE)
		lower_next(next, k.next);
}

/* ---- barriers that arrive ---- */

static __always_inline int tick(struct run *r)
{
	struct bl_host_page *page = r->page;
	struct bl_now now;

	bl_obey(); /* also without a clock */
	bl_read_clock(&now);
	if (!now.ok)
		return -1;
	page->watch_ns = bl_watch_advance(page->watch_ns, page->now_ns, now.bus, r->cfg->beacon_ns);
	page->now_ns = now.bus;
	page->limit_ns = now.limit + r->cfg->ahead_ns;
	return 0;
}

static __always_inline enum bl_reason validate_times(struct run *r)
{
	struct bl_host_page *page = r->page;

	if (r->f.opcode == BL_OP_BEACON && tick(r))
		return BL_R_CLOCK_VOID;
	r->b = bl_ext48(r->f.b, page->now_ns);
	r->c = bl_ext48(r->f.c, page->now_ns);
	r->ts = bl_op_timed(r->f.opcode) ? bl_ext48(r->f.ts, page->now_ns) : 0;
	if (r->b <= page->limit_ns && r->c <= page->limit_ns && r->ts <= page->limit_ns)
		return BL_R_NONE;
	if (r->f.opcode != BL_OP_BEACON) {
		if (tick(r))
			return BL_R_CLOCK_VOID;
		r->b = bl_ext48(r->f.b, page->now_ns);
		r->c = bl_ext48(r->f.c, page->now_ns);
		r->ts = bl_op_timed(r->f.opcode) ? bl_ext48(r->f.ts, page->now_ns) : 0;
	}
	if (r->b > page->limit_ns || r->c > page->limit_ns)
		return BL_R_BARRIER_AHEAD;
	return r->ts > page->limit_ns ? BL_R_TS_AHEAD : BL_R_NONE;
}

/*
 * The link's register, and the page that processes read. Runs after the frame's own message is in
 * its ring. @lanes: the neighbour's lane in the low 8 bits, how many it has above. A global
 * function: the verifier looks at it once, not once for each way that leads here.
 */
__attribute__((noinline)) int bl_publish(__u32 lanes, __u64 b, __u64 c)
{
	__u32 zero = 0, res;
	const struct bl_host_cfg *cfg = bpf_map_lookup_elem(&host_cfg, &zero);
	struct bl_host_page *page = bpf_map_lookup_elem(&host_page, &zero);
	struct bl_port_regs *regs;
	struct bl_pair leaf;

	if (!cfg || !page)
		return 0;
	regs = (struct bl_port_regs *)page->reg;
	if (!page->watch_ns)
		page->watch_ns = 1;
	res = bl_port_arrive(regs, lanes & 0xff, lanes >> 8, b, c, page->watch_ns,
			     bl_join_floor(page->barrier, cfg->dead_after_ns), page->barred != 0,
			     &leaf);
	if (res & BL_A_OLD)
		bl_count(BL_HC_INGRESS, BL_R_BARRIER_OLD);
	if (res & BL_A_JOINED)
		bl_count(BL_HC_INGRESS, BL_R_JOINED);
	if (lanes >> 8 > 1 && page->watch_ns - page->scan_ns > cfg->dead_after_ns / 4) {
		page->scan_ns = page->watch_ns;
		if (bl_port_expire(regs, page->watch_ns, cfg->dead_after_ns, &page->life, &leaf) &
		    BL_A_LEAF) {
			bl_count(BL_HC_INGRESS, BL_R_EXCLUDED);
			res |= BL_A_LEAF;
		}
	}
	if (!(res & BL_A_LEAF))
		return 0;
	/*
	 * the ring's commit was an atomic exchange, which orders it before these stores; pairs with
	 * bl_rx_drain() in lib/rx.c: barriers, then ring
	 */
	if (leaf.c != BL_LEAF_NONE && leaf.c > page->commit) {
		BL_WRITE_ONCE(page->commit, leaf.c);
		wake_below(leaf.c, 1);
	}
	if (leaf.b == BL_LEAF_NONE || leaf.b <= page->barrier)
		return 0;
	BL_WRITE_ONCE(page->barrier, leaf.b);
	wake_below(leaf.b, 0);
	return 0;
}

static __always_inline void publish(const struct run *r)
{
	if (r->f.lanes) /* 0: its barriers are not this link's */
		bl_publish((__u32)r->f.lane | (__u32)r->f.lanes << 8, r->b, r->c);
}

static __always_inline void addresses(struct run *r, const void *l3, const void *end)
{
	__u32 *s = (__u32 *)r->saddr, *d = (__u32 *)r->daddr;

	if (r->f.v6) {
		const struct ipv6hdr *ip = l3;

		if ((const void *)(ip + 1) > end)
			return;
		__builtin_memcpy(s, &ip->saddr, 16);
		__builtin_memcpy(d, &ip->daddr, 16);
	} else {
		const struct iphdr *ip = l3;

		if ((const void *)(ip + 1) > end)
			return;
		s[2] = d[2] = BL_BE32(0xffff);
		s[3] = ip->saddr;
		d[3] = ip->daddr;
	}
}

/* ---- barriers that leave ---- */

struct least {
	__u64 b, c;
	__u64 last; /* C that was sent before */
	__u32 neps;
	__u32 but; /* slot whose line is left out */
};

static long least_inflight(__u32 slot, struct least *m)
{
	struct bl_inflight *line;
	struct bl_rwin *w;

	if (slot >= m->neps)
		return 1;
	line = bpf_map_lookup_elem(&inflight, &slot);
	if (!line)
		return 1;
	if (!bl_line_least(line, slot != m->but, &m->b, &m->c))
		return 0;
	w = bpf_map_lookup_elem(&windows, &slot);
	if (w)
		m->c = bl_min64(m->c, bl_rwin_commit(&line->state, w, m->last));
	return 0;
}

/*
 * Write a promise of @b down, which is ahead of @bus. Returns what may be promised: without luck
 * against other CPUs, the clock.
 */
static __always_inline __u64 promise(struct bl_host_page *page, __u64 bus, __u64 b)
{
	int i;

	for (i = 0; i < 4; i++) {
		__u64 cur = BL_READ_ONCE(page->promised);

		if (cur >= b)
			return cur;
		if (__sync_val_compare_and_swap(&page->promised, cur, b) == cur)
			return b;
	}
	return bus;
}

/*
 * The host's barriers now, into @r: B = min(promise, every in-flight timestamp), C = min(B, every
 * window). The promise is the clock, or what is written in the page. It is made first and a full
 * fence follows: an endpoint that is not seen in flight takes its timestamp after that, so it is at
 * least this barrier.
 *
 * @slot: the endpoint whose frame this is, BL_EPS_MAX for none. @claim: what its frame claims
 * (bl_frame_claim()); 0: nothing, and what is in flight counts. With a claim it is in flight
 * itself, and promises that the rest of its life is at or above the claim, whatever its line says.
 */
static __always_inline void host_barriers(struct run *r, const struct bl_now *now, __u32 slot,
					  __u64 claim)
{
	struct least m = { .c = BL_TIME_NONE,
			   .last = BL_READ_ONCE(r->page->sent_commit),
			   .neps = r->cfg->neps,
			   .but = claim ? slot : BL_EPS_MAX };
	struct bl_host_page *page = r->page;
	__u64 fence = 0, ahead = 0;

	if (r->f.opcode == BL_OP_BEACON &&
	    bl_host_silent(now->bus, BL_READ_ONCE(page->data_ns), r->cfg->beacon_ns))
		ahead = r->cfg->ahead_ns;
	m.b = bl_promise(now->bus, ahead, BL_READ_ONCE(page->promised), claim);
	if (m.b > now->bus)
		m.b = promise(page, now->bus, m.b);
	if (claim)
		m.b = bl_min64(m.b, claim);
	__sync_lock_test_and_set(&fence, 1);
	bpf_loop(BL_EPS_MAX, least_inflight, &m, 0);
	if (m.b > page->sent_barrier)
		BL_WRITE_ONCE(page->sent_barrier,
			      m.b); /* for people: lost updates of two CPUs only make it older */
	m.c = bl_min64(m.b, m.c);
	if (m.c > m.last)
		BL_WRITE_ONCE(page->sent_commit, m.c); /* an older one is as true */
	r->b = m.b;
	r->c = m.c;
}

/* Slot of the endpoint that the frame is from; BL_EPS_MAX: there is none. */
static __always_inline __u32 from_endpoint(const struct run *r)
{
	__u32 i = (__u16)(r->f.sport - r->cfg->port_base);
	const struct bl_ep_slot *ep = bpf_map_lookup_elem(&eps, &i);

	return i < r->cfg->port_count && ep && BL_READ_ONCE(ep->active) == BL_EP_ACTIVE
		       ? ep->slot & (BL_EPS_MAX - 1)
		       : BL_EPS_MAX;
}

#include "commit.h"

/* ---- what comes in ---- */

static __always_inline enum bl_reason on_ordered(struct xdp_md *ctx, struct run *r)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 l3 = r->f.l3_off, off = r->f.hdr_off;
	enum bl_reason why;

	if (bl_op_link(r->f.opcode) && r->f.opcode != BL_OP_BEACON)
		return bl_pl2_link(ctx, r->f.hdr_off, r->f.opcode, r->f.psn);
	why = validate_times(r);
	if (why != BL_R_NONE)
		return why;
	if (r->f.opcode == BL_OP_BEACON) {
		struct bl_beacon *body;

		if (off > sizeof(struct ethhdr) + 4)
			return BL_R_SHORT;
		body = data + off + sizeof(struct bl_hdr);
		BL_SEEN(body);
		if ((void *)(body + 1) > end)
			return BL_R_SHORT;
		if (body->node_id == BL_BE32(r->cfg->node_id))
			return BL_R_LOOPED;
		if ((__s16)BL_BE16(body->tai_offset_s) != r->cfg->tai_offset_s)
			return BL_R_TAI_MISMATCH;
		if (r->page->life.neighbour != BL_BE32(body->node_id))
			r->page->life.neighbour = BL_BE32(body->node_id);
		if (r->page->life.policy != body->policy)
			r->page->life.policy = body->policy;
		bl_port_learn_hop((struct bl_port_regs *)r->page->reg, r->f.lane,
				  r->f.flags & BL_F_HOP);
		publish(r);
		return BL_R_BEACON;
	}
	/*
	 * a frame past its switch: B and C of another host; nothing of it is used, unless it
	 * promises nothing, as ACKs do
	 */
	if ((r->f.flags & BL_F_HOP) != r->page->reg[r->f.lane & (BL_LANES_MAX - 1)].hop) {
		if (!bl_hop_old(r->b, r->c, r->page->now_ns))
			return BL_R_UNSWITCHED;
		r->f.lanes = 0;
	}
	if (l3 > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	addresses(r, data + l3, end);
	if (r->f.opcode == BL_OP_DATA) {
		const struct bl_reg *reg = &r->page->reg[r->f.lane & (BL_LANES_MAX - 1)];

		if (bl_reg_live(reg) && r->ts < reg->b)
			bl_count(BL_HC_INGRESS, BL_R_PROMISE_BROKEN);
	}
	if (r->f.opcode == BL_OP_ACK)
		return on_ack(ctx, r);
	if (bl_op_asks(r->f.opcode) && named_life(data, end, r))
		return BL_R_BAD_LENGTH;
	why = prep_late(r) ? BL_R_PREP_LATE : store(ctx, 0, r);
	publish(r);
	return answer(ctx, r, why);
}

/* What came in on the NIC; of its own for bench/bench_host.bpf.c. */
static __always_inline int on_nic(struct xdp_md *ctx)
{
	struct run r = {};
	enum bl_reason why;

	if (!look_up(&r))
		return bl_done(BL_HC_INGRESS, BL_R_NOT_OURS);
	why = bl_parse((void *)(long)ctx->data, (void *)(long)ctx->data_end, r.cfg->port_base,
		       r.cfg->port_count, &r.f);
	if (why == BL_R_NONE)
		why = on_ordered(ctx, &r);
	else if (why == BL_R_NOT_OURS)
		why = bl_to_app(ctx);
	return bl_done(BL_HC_INGRESS, why);
}

SEC("xdp")
int bl_host_xdp(struct xdp_md *ctx)
{
	return on_nic(ctx);
}

#include "relay.h"

/* ---- what goes out ---- */

/*
 * The checksum follows the 12 bytes that changed. The helper knows what we cannot see: it leaves a
 * checksum that the device will finish alone, and a frame without one stays without one.
 */
static __always_inline void fill_single(struct __sk_buff *skb, __u32 off, __u8 *both)
{
	__u8 old[12];
	__s64 diff;

	if (bpf_skb_load_bytes(skb, off + 6, old, sizeof(old)))
		return;
	bpf_skb_store_bytes(skb, off + 6, both, sizeof(old), 0);
	diff = bpf_csum_diff((__be32 *)old, sizeof(old), (__be32 *)both, sizeof(old), 0);
	bpf_l4_csum_replace(skb, off - 2, 0, diff, BPF_F_MARK_MANGLED_0);
}

struct fill {
	struct __sk_buff *skb;
	__u32 off, step, end;
	__u8 both[12]; /* barrier, commit */
	__u8 pad[4];
};

static long fill_one(__u32 i, struct fill *f)
{
	__u32 off = f->off + i * f->step;

	if (off + sizeof(struct bl_hdr) > f->end)
		return 1;
	bpf_skb_store_bytes(f->skb, off + 6, f->both, sizeof(f->both), 0);
	return 0;
}

/* The beacon whose header is at @off says how bl0's traffic is admitted, as it is now. */
static __always_inline void say_policy(struct __sk_buff *skb, __u32 off)
{
	__u32 at = off + sizeof(struct bl_hdr) + __builtin_offsetof(struct bl_beacon, policy);
	__u8 said = bl_own_policy();

	if (said)
		bpf_skb_store_bytes(skb, at, &said, sizeof(said), 0);
}

/*
 * Every ordered frame of this host gets B and C; where the controller barred this output, a C that
 * promises nothing. With UDP GSO one skb holds many frames, gso_size bytes apart; each has a header
 * of its own.
 */
static __always_inline enum bl_reason on_egress(struct __sk_buff *skb, struct run *r)
{
	struct fill f = { .skb = skb, .off = r->f.hdr_off, .end = skb->len };
	__u32 slot = BL_EPS_MAX;
	__u64 claim = 0;
	struct bl_now now;

	if (bl_op_link(r->f.opcode)) {
		/* reservations are the pacer's, and what it sends does not come this way */
		if (r->f.opcode != BL_OP_BEACON || skb->mark != r->cfg->beacon_mark)
			return BL_R_FORGED_BEACON;
	} else {
		slot = from_endpoint(r);
		if (slot == BL_EPS_MAX)
			return BL_R_NOT_ENDPOINT;
		if (bl_op_answer(r->f.opcode))
			return BL_R_SENT_ACK;
		if (r->f.flags)
			return BL_R_BAD_FLAGS; /* hop and lane are this program's to say, and a
						  host's are 0 */
	}
	bl_read_clock(&now);
	if (!now.ok)
		return BL_R_CLOCK_VOID;
	if (bl_op_timed(r->f.opcode))
		BL_WRITE_ONCE(r->page->data_ns, now.bus);
	if (r->f.opcode == BL_OP_DATA) {
		/* a GSO send is many frames, and only the last could claim anything */
		if (!skb->gso_size)
			claim = bl_frame_claim(bl_ext48(r->f.ts, now.bus), r->f.b);
		if (claim > now.limit + r->cfg->ahead_ns)
			claim = 0;
	}
	host_barriers(r, &now, slot, claim);
	if (r->f.opcode != BL_OP_BEACON)
		BL_WRITE_ONCE(r->page->sends, r->page->sends + 1);
	bl_put48(f.both, r->b);
	bl_put48(f.both + 6, r->page->barred ? now.bus - BL_TS_OLD : bl_commit_wire(r->c, now.bus));
	f.step = skb->gso_size;
	if (r->f.opcode == BL_OP_BEACON) {
		fill_one(0, &f);
		say_policy(skb, f.off);
	} else if (f.step) {
		bpf_loop(BL_GSO_SEGS, fill_one, &f, 0); /* checksums are made after segmentation */
	} else {
		fill_single(skb, f.off, f.both);
	}
	skb->queue_mapping = r->cfg->queue + 1;
	return r->f.opcode == BL_OP_BEACON ? BL_R_BEACON_SENT : BL_R_SENT;
}

static __always_inline enum bl_reason tc_parse(struct __sk_buff *skb, struct run *r)
{
	__u32 want = sizeof(struct ethhdr) + 4 + sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
		     sizeof(struct bl_hdr) + BL_ACK_BODY;

	if (!look_up(r))
		return BL_R_NOT_OURS;
	if (want > skb->len)
		want = skb->len;
	bpf_skb_pull_data(skb, want);
	return bl_parse_whole((void *)(long)skb->data, (void *)(long)skb->data_end, skb->len,
			      r->cfg->port_base, r->cfg->port_count, &r->f);
}

SEC("tc")
int bl_host_egress(struct __sk_buff *skb)
{
	struct run r = {};
	enum bl_reason why = tc_parse(skb, &r);

	if (why == BL_R_NONE)
		why = on_egress(skb, &r);
	return tc_done(BL_HC_EGRESS, why);
}

/*
 * One host's endpoints among themselves: the same ring, the same order; the barrier comes back from
 * the switch as for everybody (1Pipe 3.1).
 */
SEC("tc")
int bl_host_local(struct __sk_buff *skb)
{
	struct run r = {};
	enum bl_reason why = tc_parse(skb, &r);

	if (why == BL_R_NONE) {
		void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
		struct bl_now now;

		bl_read_clock(&now);
		if (!now.ok) {
			why = BL_R_CLOCK_VOID;
		} else if (bl_op_link(r.f.opcode)) {
			why = BL_R_FORGED_BEACON;
		} else if (from_endpoint(&r) == BL_EPS_MAX) {
			why = BL_R_NOT_ENDPOINT;
		} else if (bl_op_answer(r.f.opcode)) {
			why = BL_R_SENT_ACK;
		} else if (bl_op_asks(r.f.opcode) && named_life(data, end, &r)) {
			why = BL_R_BAD_LENGTH;
		} else if (skb->gso_size || r.f.l3_off > sizeof(struct ethhdr) + 4) {
			why = BL_R_BAD_LENGTH;
		} else {
			addresses(&r, data + r.f.l3_off, end);
			r.ts = bl_op_timed(r.f.opcode) ? bl_ext48(r.f.ts, now.bus) : 0;
			if (r.ts > now.limit + r.cfg->ahead_ns)
				why = BL_R_TS_AHEAD;
			else
				why = prep_late(&r) ? BL_R_PREP_LATE : store(skb, 1, &r);
			if (why == BL_R_STORED && bl_op_timed(r.f.opcode))
				BL_WRITE_ONCE(r.page->data_ns, now.bus);
			why = own_answer(skb, &r, why);
		}
	}
	return tc_done(BL_HC_LOCAL, why);
}

/* ---- admission ---- */

SEC("xdp")
int bl_hold_xdp(struct xdp_md *ctx)
{
	return bl_done(BL_HC_HOLD, bl_hold(ctx));
}

SEC("xdp")
int bl_host_pace(struct xdp_md *ctx)
{
	return bl_host_turn(ctx);
}

/*
 * Broadcast and multicast, but for barline's own, go to both stations of this link: the kernel, and
 * by a clone bl0. Unicast was sorted by bl_host_xdp.
 */
SEC("tc")
int bl_host_clone(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 zero = 0;
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	const struct ethhdr *eth = data;

	if (!cfg || !cfg->on || (void *)(eth + 1) > end || !(eth->h_dest[0] & 1) ||
	    eth->h_proto == BL_BE16(BL_ETHERTYPE))
		return tc_done(BL_HC_CLONE, BL_R_NOT_OURS);
	if (bpf_clone_redirect(skb, cfg->app_ifindex, 0)) {
		bl_count(BL_HC_CLONE, BL_R_REDIRECT_FAILED);
		return TC_ACT_OK; /* the kernel gets it in any case */
	}
	return tc_done(BL_HC_CLONE, BL_R_TO_APP);
}

SEC("tc")
int bl_host_hint(struct __sk_buff *skb)
{
	bl_top_priority(skb);
	return TC_ACT_OK;
}

SEC("tc")
int bl_host_lift(struct __sk_buff *skb)
{
	return bl_lift(skb);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
