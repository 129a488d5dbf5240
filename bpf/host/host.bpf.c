// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host role: three hooks, one more on NICs with several transmit queues, and up to five more
 * where applications are admitted.
 *
 *   bl_host_xdp     NIC ingress. A message goes into its endpoint's ring, then the barriers of
 *                   the same frame into the host page, then sleepers are woken. Because of this
 *                   order, a process that reads the barrier first and its ring second misses
 *                   nothing below the barrier. A reliable message goes back as its ACK, and an
 *                   ACK closes its slot in the sender's window (commit.h).
 *   bl_host_egress  NIC egress. Writes the host's barrier, min(promise, everything in flight),
 *                   into every ordered frame and beacon (barrier_tx.h).
 *   bl_host_local   lo egress. Messages between endpoints of one host, which the kernel never
 *                   lets out of the machine.
 *   bl_host_queue   behind bl_host_egress, on NICs with several transmit queues: tells a filter
 *                   which frames are ordered.
 *   bl_hold_xdp     on bl0d: frames of applications go into hold queues (hold.h).
 *   bl_host_pace    the pacer's turn: sends what is due out of the NIC.
 *   bl_host_clone   NIC tc ingress: bl0 is a second station on this link and must also receive
 *                   broadcasts.
 *   bl_host_hint    bl0 tc egress: reads SO_PRIORITY as a hint about a flow, for TOP (top_tx.h).
 *   bl_host_lift    bl0 tc ingress, where the pacer carries the beacons: redirects them to the
 *                   NIC's egress (beacon.h).
 *   bl_host_relayed attached to no hook: the host's daemon runs it on frames that came by way of
 *                   the controller (relay.h).
 *
 * Example: a DATA frame with ts = 1040, B = 1030 and C = 1020 arrives for endpoint 61697. Its
 * message is appended to that endpoint's ring; the page's barrier becomes 1030 and its commit
 * barrier 1020; a process that waits for 1025 is woken. The frame ends here: XDP_DROP, counted as
 * stored.
 *
 * Not here: retransmission, which takes a process (lib/).
 */
#include "bpf/host/role.h"
#include <linux/pkt_cls.h>
#include "core/wire_core.h"
#include "core/order/barrier_core.h"
#include "core/order/promise_core.h"
#include "core/order/hop_core.h"
#include "bpf/auth.h"
#include "bpf/link.h"
#include "bpf/bpf_util.h"
#include "bpf/chain.h"
#include "bpf/host/run.h"
#include "bpf/host/hold.h"
#include "bpf/host/policy.h"
#include "bpf/host/fence.h"
#include "bpf/host/ring.h"
#include "bpf/host/barrier_rx.h"
#include "bpf/host/barrier_tx.h"
#include "bpf/host/commit.h"
#include "bpf/host/relay.h"

#define BL_GSO_SEGS 128 /* UDP_MAX_SEGMENTS of the newest kernels */

/*
 * Ends a tc program: counts the reason and returns the verdict that belongs to it; see bl_done().
 */
static __always_inline int tc_done(struct __sk_buff *skb, __u32 key, enum bl_reason r)
{
	if (r == BL_R_BEACON_SENT)
		bl_count(key, r);
	else
		bl_count_frame(key, r, skb->len);
	if (BL_CAPTURING())
		bl_capture_skb(skb, key, r, key == BL_HC_CLONE ? BL_CAPTURE_IN : BL_CAPTURE_OUT);
	switch (r) {
	case BL_R_NOT_OURS:
	case BL_R_SENT:
	case BL_R_BEACON_SENT:
	case BL_R_TO_APP: /* a clone went to the application */
		return TC_ACT_OK;
	default:
		return TC_ACT_SHOT; /* stored here, or refused */
	}
}

/* ---- what comes in ---- */

/*
 * Counts a frame with opcode @op that arrived on the lane of @reg and is not a link frame, whatever
 * becomes of it. Atomically: where the NIC has several receive queues, frames are not in order, and
 * that is to be seen. A frame that its switch did not handle has another hop than the lane: the
 * switch has not counted it either.
 */
static __always_inline void count_arrived(struct bl_reg *reg, __u32 op)
{
	if (!bl_op_answer(op))
		__sync_fetch_and_add(&reg->frames, 1);
}

/** bl_host_refused - counts a frame that arrived and was refused for its times. Rare. */
__attribute__((noinline)) int bl_host_refused(__u32 op, __u32 flags)
{
	__u32 zero = 0;
	struct bl_host_page *page = bpf_map_lookup_elem(&host_page, &zero);
	struct bl_reg *reg;

	if (!page)
		return 0;
	reg = &page->reg[BL_FLAGS_LANE(flags)];
	if ((flags & BL_F_HOP) == reg->hop)
		count_arrived(reg, op);
	return 0;
}

/**
 * bl_host_link - takes in what a genuine beacon says of its link. A function of its own, because
 * its variables do not fit on the caller's stack. @off: offset of struct bl_hdr
 */
__attribute__((noinline)) int bl_host_link(struct xdp_md *ctx, __u32 off)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, lane;
	struct bl_host_page *page = bpf_map_lookup_elem(&host_page, &zero);
	const struct bl_link_body *link;
	const struct bl_hdr *h;

	if (!page || off > sizeof(struct ethhdr) + 4)
		return 0;
	h = data + off;
	BL_SEEN(h);
	link = (const void *)((const __u8 *)h + BL_LINK_OFF);
	if ((const void *)(link + 1) > end || !link_says(link) || !link_is_genuine(ctx, 0, off))
		return 0;
	lane = BL_FLAGS_LANE(h->flags);
	link_in(link, 0, lane, BL_BE32(((const struct bl_beacon *)(h + 1))->node_id),
		page->reg[lane].frames, page->now_ns);
	return 0;
}

/* Handles an ordered frame or a link frame that arrived on the NIC. Returns the reason. */
static __always_inline enum bl_reason on_ordered_frame(struct xdp_md *ctx, struct run *r)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 l3 = r->f.l3_off, off = r->f.hdr_off;
	enum bl_reason why;

	if (bl_op_link(r->f.opcode) && r->f.opcode != BL_OP_BEACON) {
		why = bl_auth ? (enum bl_reason)bl_auth_check(ctx, 0, off, 0) : BL_R_NONE;
		return why == BL_R_NONE ? bl_pl2_link(ctx, off, r->f.opcode, r->f.psn) : why;
	}
	why = validate_times(r);
	if (why != BL_R_NONE) {
		if (r->f.opcode == BL_OP_BEACON)
			bl_link_refused(ctx, 0, off);
		else
			bl_host_refused(r->f.opcode, r->f.flags);
		return why;
	}
	if (bl_auth && r->f.opcode == BL_OP_BEACON) {
		why = (enum bl_reason)bl_auth_check(ctx, 0, off, r->page->now_ns);
		if (why != BL_R_NONE)
			return why;
	}
	if (r->f.opcode == BL_OP_BEACON) {
		struct bl_beacon *body;

		data = (void *)(long)ctx->data;
		end = (void *)(long)ctx->data_end;
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
		if (r->page->life.auth != BL_AUTH_MARK_EPOCH((__u32)(r->f.ts >> 32)))
			r->page->life.auth = BL_AUTH_MARK_EPOCH((__u32)(r->f.ts >> 32));
		bl_host_link(ctx, off);
		bl_port_learn_hop((struct bl_port_regs *)r->page->reg, r->f.lane,
				  r->f.flags & BL_F_HOP);
		publish_barriers(r);
		return BL_R_BEACON;
	}
	/*
	 * A frame that bypassed its switch's program has the B and C of another host. Nothing of
	 * such a frame is used, unless its barriers promise nothing, as those of ACKs do.
	 */
	if ((r->f.flags & BL_F_HOP) != r->page->reg[r->f.lane & (BL_LANES_MAX - 1)].hop) {
		if (!bl_hop_old(r->b, r->c, r->page->now_ns))
			return BL_R_UNSWITCHED;
		r->f.lanes = 0;
	} else {
		count_arrived(&r->page->reg[r->f.lane & (BL_LANES_MAX - 1)], r->f.opcode);
	}
	if (l3 > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	copy_addresses(r, data + l3, end);
	if (source_is_local(r))
		return BL_R_FOREIGN_SOURCE;
	if (r->f.opcode == BL_OP_DATA) {
		const struct bl_reg *reg = &r->page->reg[r->f.lane & (BL_LANES_MAX - 1)];

		if (bl_reg_live(reg) && r->ts < reg->b)
			bl_count(BL_HC_INGRESS, BL_R_PROMISE_BROKEN);
	}
	if (r->f.opcode == BL_OP_ACK)
		return on_ack_frame(ctx, r);
	if (bl_op_asks(r->f.opcode) && read_named_life(data, end, r))
		return BL_R_BAD_LENGTH;
	why = prep_is_late(r) ? BL_R_PREP_LATE : store_message(ctx, 0, r);
	publish_barriers(r);
	return answer_frame(ctx, r, why);
}

/* Handles a frame that arrived on the NIC. Apart from the hook, for bench/bench_host.bpf.c. */
static __always_inline int on_nic_frame(struct xdp_md *ctx)
{
	struct run r = {};
	enum bl_reason why;

	if (!lookup_host_maps(&r))
		return bl_done(ctx, BL_HC_INGRESS, BL_R_NOT_OURS);
	r.len = bl_frame_len(ctx);
	why = bl_parse_whole((void *)(long)ctx->data, (void *)(long)ctx->data_end, r.len,
			     r.cfg->port_base, r.cfg->port_count, &r.f);
	if (why == BL_R_NONE) {
		why = on_ordered_frame(ctx, &r);
		return why == BL_R_BEACON ? bl_done_beacon(ctx, BL_HC_INGRESS, why)
					  : bl_done_len(ctx, BL_HC_INGRESS, why, r.len);
	}
	if (why == BL_R_NOT_OURS && bl_admits)
		why = bl_deliver_to_app(ctx);
	return bl_done_or_chain(ctx, 0, BL_HC_INGRESS, why, r.len);
}

SEC("xdp")
int bl_host_xdp(struct xdp_md *ctx)
{
	BL_ROOM(1024);
	return on_nic_frame(ctx);
}

/* ---- what goes out ---- */

/*
 * Writes B and C into the only frame of @skb and adjusts the checksum to the 12 changed bytes. The
 * helper leaves a checksum that the device will compute alone, and a frame without one stays
 * without.
 */
static __always_inline void fill_frame(struct __sk_buff *skb, __u32 off, __u8 *both)
{
	__u8 old[12];
	__s64 diff;

	if (bpf_skb_load_bytes(skb, off + 6, old, sizeof(old)))
		return;
	bpf_skb_store_bytes(skb, off + 6, both, sizeof(old), 0);
	diff = bpf_csum_diff((__be32 *)old, sizeof(old), (__be32 *)both, sizeof(old), 0);
	bpf_l4_csum_replace(skb, off - 2, 0, diff, BPF_F_MARK_MANGLED_0);
}

/** struct barrier_fill - where B and C go in the frames of an skb. */
struct barrier_fill {
	struct __sk_buff *skb;
	__u32 off, step, end; /* first struct bl_hdr; bytes from one to the next; end of the skb */
	__u8 both[12] __attribute__((aligned(8))); /* barrier and commit, as on the wire */
	__u8 pad[4];
};

/* Writes B and C into frame @i of the skb. Returns 1 behind the last frame. */
static long fill_segment(__u32 i, struct barrier_fill *f)
{
	__u32 off = f->off + i * f->step;

	if (off + sizeof(struct bl_hdr) > f->end)
		return 1;
	bpf_skb_store_bytes(f->skb, off + 6, f->both, sizeof(f->both), 0);
	return 0;
}

/*
 * Writes into this host's beacon whose header is at @off what holds at this moment: the TAI offset
 * with which the host compares the beacons of others, and how bl0's traffic is admitted.
 */
static __always_inline void write_own_state(struct __sk_buff *skb, __u32 off, __s32 tai)
{
	struct {
		__u8 tai[2], policy;
	} own = { { (__u8)((__u32)tai >> 8), (__u8)tai }, bl_own_policy() };

	_Static_assert(__builtin_offsetof(struct bl_beacon, tai_offset_s) == 0 &&
			       __builtin_offsetof(struct bl_beacon, policy) == 2,
		       "they are written at once");
	bpf_skb_store_bytes(skb, off + sizeof(struct bl_hdr), &own, sizeof(own), 0);
}

/**
 * bl_auth_seal_skb - bl_auth_seal() for this host's beacon whose header is at @off.
 */
__attribute__((noinline)) int bl_auth_seal_skb(struct __sk_buff *skb, __u32 off, __u64 now)
{
	if (bpf_skb_pull_data(skb, off + BL_AUTH_BEACON_NEED))
		return 0;
	return auth_seal((void *)(long)skb->data, (void *)(long)skb->data_end, 0, off,
			 BL_AUTH_S_BEACON, now);
}

/** bl_auth_seal_link_skb - as bl_auth_seal_link(), behind bl_auth_seal_skb(). */
__attribute__((noinline)) int bl_auth_seal_link_skb(struct __sk_buff *skb, __u32 off)
{
	return auth_seal_link((void *)(long)skb->data, (void *)(long)skb->data_end, 0, off);
}

/* Counts @n frames of one skb that go into the NIC's queue. */
static __always_inline void count_sent(__u32 n, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id() & (BL_LINK_CPUS - 1);
	struct bl_link_sent *s = bpf_map_lookup_elem(&link_sent, &cpu);

	if (s)
		bl_link_sent(s, n, now);
}

/** struct sent_sum - what all CPUs have sent, for one beacon. */
struct sent_sum {
	__u64 frames;
	__u64 now; /* bus time, ns */
	__u64 racing;
	__u32 cpus, cpu; /* to look at; that on which the beacon is written */
};

/* Adds what @cpu has sent. Returns 1 behind the last one. */
static long add_sent(__u32 cpu, struct sent_sum *s)
{
	const struct bl_link_sent *c = bpf_map_lookup_elem(&link_sent, &cpu);

	if (!c || cpu >= s->cpus)
		return 1;
	/* The time first: a CPU whose frames are missed here is seen as racing by the next beacon.
	 */
	if (cpu != s->cpu)
		s->racing += bl_link_racing(c, s->now);
	s->frames += BL_READ_ONCE(c->frames);
	return 0;
}

/**
 * bl_link_say - writes what this host's beacon says of its link, if that is due. Returns whether it
 * is. A function of its own, as bl_auth_seal_skb().
 * @off: offset of struct bl_hdr
 */
__attribute__((noinline)) int bl_link_say(struct __sk_buff *skb, __u32 off, __u64 now)
{
	struct sent_sum s = { .now = now, .cpu = bpf_get_smp_processor_id() & (BL_LINK_CPUS - 1) };
	struct bl_link_body b = { 0 };
	__u32 zero = 0;
	const struct bl_host_cfg *cfg = bpf_map_lookup_elem(&host_cfg, &zero);
	struct bl_link *link = bpf_map_lookup_elem(&link_seen, &zero);

	if (!cfg || !link || link->said == bl_link_tick(now))
		return 0;
	link->said = bl_link_tick(now);
	s.cpus = cfg->cpus;
	bpf_loop(BL_LINK_CPUS, add_sent, &s, 0);
	link_out(&b, link, now);
	b.run = BL_BE16(link->run);
	b.racing = BL_BE16(bl_link_sat16(s.racing));
	b.frames = BL_BE32((__u32)s.frames);
	bpf_skb_store_bytes(skb, off + BL_LINK_OFF, &b, sizeof(b), 0);
	return 1;
}

/*
 * Handles a frame that leaves by the NIC: every ordered frame of this host gets B and C. While the
 * controller bars this output, C promises nothing. With UDP GSO one skb holds many frames, gso_size
 * bytes apart, each with a header of its own. Returns the reason.
 */
static __always_inline enum bl_reason on_egress_frame(struct __sk_buff *skb, struct run *r)
{
	struct barrier_fill f = { .skb = skb, .off = r->f.hdr_off, .end = skb->len };
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 slot = BL_EPS_MAX, l3 = r->f.l3_off;
	enum bl_reason why;
	struct bl_now now;
	__u64 claim = 0;
	int says;

	if (bl_op_link(r->f.opcode)) {
		/* Reservations come from the pacer, whose frames bypass this hook. */
		if (r->f.opcode != BL_OP_BEACON || skb->mark != r->cfg->beacon_mark)
			return BL_R_FORGED_BEACON;
	} else {
		if (l3 > sizeof(struct ethhdr) + 4)
			return BL_R_SHORT;
		copy_addresses(r, data + l3, end);
		why = find_sender(skb, r);
		if (why != BL_R_NONE)
			return why;
		slot = r->slot;
		if (bl_op_answer(r->f.opcode))
			return BL_R_SENT_ACK;
		/* Only this program may set hop and lane, and those of a host are 0. */
		if (r->f.flags)
			return BL_R_BAD_FLAGS;
	}
	bl_read_clock(&now);
	if (!now.ok)
		return BL_R_CLOCK_VOID;
	if (r->f.opcode == BL_OP_DATA && send_is_void(r->page, slot))
		return BL_R_SEND_VOID;
	/*
	 * The line of an endpoint is in flight until sendmmsg() has returned, and by then a frame
	 * is here, unless the kernel keeps it until it knows the neighbour's address.
	 */
	if (r->f.opcode == BL_OP_DATA &&
	    bl_send_late(bl_ext48(r->f.ts, now.bus), BL_READ_ONCE(r->page->sent_barrier), now.bus,
			 r->cfg->ahead_ns))
		return BL_R_SEND_LATE;
	if (bl_op_timed(r->f.opcode))
		BL_WRITE_ONCE(r->page->data_ns, now.bus);
	if (r->f.opcode == BL_OP_DATA) {
		/* A GSO send is many frames, of which only the last could claim anything. */
		if (!skb->gso_size)
			claim = bl_frame_claim(bl_ext48(r->f.ts, now.bus), r->f.b);
		/*
		 * A claim becomes the host's promise, which all others must be able to accept: the
		 * bound is for the error of this host's clock.
		 */
		if (claim > now.bus + r->cfg->ahead_ns)
			claim = 0;
	}
	host_barriers(r, &now, slot, claim);
	if (r->f.opcode != BL_OP_BEACON)
		BL_WRITE_ONCE(r->page->sends, r->page->sends + 1);
	bl_barriers_put(f.both, r->b,
			r->page->barred ? now.bus - BL_TS_OLD : bl_commit_wire(r->c, now.bus));
	f.step = skb->gso_size;
	if (r->f.opcode == BL_OP_BEACON) {
		fill_segment(0, &f);
		write_own_state(skb, f.off, r->cfg->tai_offset_s);
		says = bl_link_say(skb, f.off, now.bus);
		if (bl_auth)
			bl_auth_seal_skb(skb, f.off, now.bus);
		if (bl_auth && says)
			bl_auth_seal_link_skb(skb, f.off);
	} else if (f.step) {
		/* Checksums are computed after segmentation. */
		bpf_loop(BL_GSO_SEGS, fill_segment, &f, 0);
		count_sent(bl_gso_frames(skb->len - f.off, f.step), now.bus);
	} else {
		fill_frame(skb, f.off, f.both);
		count_sent(1, now.bus);
	}
	/*
	 * One class and one queue for all. A process may choose the priority of its frames
	 * (SO_PRIORITY, IP_TOS); a queueing discipline with classes would let them overtake those
	 * of others, above whose timestamps their barrier may be.
	 */
	skb->priority = r->cfg->classed ? BL_TX_PRIORITY : 0;
	skb->queue_mapping = r->cfg->queue + 1;
	return r->f.opcode == BL_OP_BEACON ? BL_R_BEACON_SENT : BL_R_SENT;
}

/* Looks up the maps and parses the frame of @skb into @r. Returns the reason. */
static __always_inline enum bl_reason parse_skb(struct __sk_buff *skb, struct run *r)
{
	__u32 want = sizeof(struct ethhdr) + 4 + sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
		     sizeof(struct bl_hdr) + BL_ACK_BODY;

	if (!lookup_host_maps(r))
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
	enum bl_reason why = parse_skb(skb, &r);
	int verdict;

	BL_ROOM(256);
	if (why == BL_R_NONE)
		why = on_egress_frame(skb, &r);
	verdict = tc_done(skb, BL_HC_EGRESS, why);
	/* The filter that picks the queue comes next. */
	if (verdict == TC_ACT_OK && why != BL_R_NOT_OURS && r.cfg && r.cfg->steered)
		return TC_ACT_UNSPEC;
	return verdict;
}

/**
 * bl_host_queue - a classifier without a verdict: matches ordered frames and beacons that
 * bl_host_egress has passed, for the filter that lets them leave by one transmit queue
 * (loader/load/nic_tx.c).
 */
SEC("tc")
int bl_host_queue(struct __sk_buff *skb)
{
	return skb->priority == BL_TX_PRIORITY ? -1 : 0;
}

/**
 * bl_host_local - messages between endpoints of this host: the same ring and the same order. The
 * barrier comes back from the switch, as for every other message (1Pipe 3.1).
 */
SEC("tc")
int bl_host_local(struct __sk_buff *skb)
{
	struct run r = {};
	enum bl_reason why = parse_skb(skb, &r);

	BL_ROOM(256);
	if (why == BL_R_NONE) {
		void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
		struct bl_now now = {};

		bl_read_clock_slowly(&now);
		/* Link frames have no IP header; their l3_off is 0. */
		if (r.f.l3_off <= sizeof(struct ethhdr) + 4)
			copy_addresses(&r, data + r.f.l3_off, end);
		if (!now.ok) {
			why = BL_R_CLOCK_VOID;
		} else if (bl_op_link(r.f.opcode)) {
			why = BL_R_FORGED_BEACON;
		} else if ((why = find_sender(skb, &r)) != BL_R_NONE) {
			/* refused */
		} else if (bl_op_answer(r.f.opcode)) {
			why = BL_R_SENT_ACK;
		} else if (r.f.opcode == BL_OP_DATA && send_is_void(r.page, r.slot)) {
			why = BL_R_SEND_VOID;
		} else if (bl_op_asks(r.f.opcode) && read_named_life(data, end, &r)) {
			why = BL_R_BAD_LENGTH;
		} else if (skb->gso_size || r.f.l3_off > sizeof(struct ethhdr) + 4) {
			why = BL_R_BAD_LENGTH;
		} else {
			r.ts = bl_op_timed(r.f.opcode) ? bl_ext48(r.f.ts, now.bus) : 0;
			if (r.ts > now.limit + r.cfg->ahead_ns)
				why = BL_R_TS_AHEAD;
			else
				why = prep_is_late(&r) ? BL_R_PREP_LATE : store_message(skb, 1, &r);
			if (why == BL_R_STORED && bl_op_timed(r.f.opcode))
				BL_WRITE_ONCE(r.page->data_ns, now.bus);
			why = answer_local_frame(skb, &r, why);
		}
	}
	return tc_done(skb, BL_HC_LOCAL, why);
}

/* ---- admission ---- */

SEC("xdp")
int bl_hold_xdp(struct xdp_md *ctx)
{
	__u32 len = bl_frame_len(ctx);

	BL_ROOM(256);
	return bl_done_out(ctx, BL_HC_HOLD, bl_hold_frame(ctx), len);
}

SEC("xdp")
int bl_host_pace(struct xdp_md *ctx)
{
	BL_ROOM(1024);
	return bl_host_turn(ctx);
}

/**
 * bl_host_clone - broadcast and multicast frames other than barline's go to both stations of this
 * link: to the kernel, and by a clone to bl0. Unicast frames were sorted by bl_host_xdp.
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
		return tc_done(skb, BL_HC_CLONE, BL_R_NOT_OURS);
	if (bpf_clone_redirect(skb, cfg->app_ifindex, 0)) {
		bl_count_frame(BL_HC_CLONE, BL_R_REDIRECT_FAILED, skb->len);
		return TC_ACT_OK; /* the kernel gets the frame in any case */
	}
	return tc_done(skb, BL_HC_CLONE, BL_R_TO_APP);
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
	return bl_lift_beacon(skb);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
