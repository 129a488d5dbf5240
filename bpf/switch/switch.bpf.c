// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The switch role: one XDP program on every port, one that runs in the device map, one in a CPU map
 * for frames that arrived on the wrong CPU (steer.h), and a tc program for what the kernel would
 * send (guard.h).
 *
 * An ordered frame from port i: parse it, refuse wrong headers, find the output o (Linux's routes,
 * or the static table), raise R_i, write the barrier of o's input set and this CPU's lane into the
 * frame, redirect it. A beacon raises R_i too. If that lifts a set's minimum over the next common
 * tick, or a commit barrier that was behind, the beacon is cloned to all ports, and the devmap
 * program gives each clone its port's barrier or drops it. Everything else goes to the kernel.
 *
 * Example: the ports of set 0 have registers 1000, 1030 and 1040. A DATA frame with B = 1035
 * arrives on the first of them, for a host on port 5, which set 0 feeds. The set's minimum becomes
 * 1030; the frame leaves by port 5 with B = 1030.
 *
 * Frames that are refused change no register. Each CPU writes only what belongs to its own lane.
 *
 * A port may be metered: what would leave by it goes into its output queues (queue.h), and
 * bl_port_pace, run by the pacer, sends it. Then frames that are not barline's are forwarded here
 * as well (plain.h).
 *
 * Not here: switches that run no XDP.
 */
#include "bpf/role.h"
#include "core/wire_core.h"
#include "core/order/barrier_core.h"
#include "core/policy_core.h"
#include "bpf/bpf_util.h"
#include "bpf/chain.h"
#include "bpf/auth.h"
#include "bpf/link.h"
#include "bpf/switch/run.h"
#include "bpf/switch/fdb.h"
#include "bpf/switch/queue.h"
#include "bpf/switch/pl2.h"
#include "bpf/switch/fence.h"
#include "bpf/switch/barrier.h"
#include "bpf/switch/route.h"
#include "bpf/switch/source.h"
#include "bpf/switch/steer.h"
#include "bpf/switch/plain.h"
#include "bpf/switch/guard.h"

/*
 * Counts a frame that arrived, before anything can refuse it. A frame that its switch did not
 * handle has another hop: the switch has not counted it either.
 */
static __always_inline void count_arrived(const struct run *r)
{
	struct bl_port_regs *regs;
	struct bl_reg *reg;

	if (bl_op_link(r->f.opcode) || bl_op_answer(r->f.opcode))
		return;
	regs = regs_of(r->in);
	if (!regs)
		return;
	reg = &regs->lane[r->f.lane & (BL_LANES_MAX - 1)];
	if (__builtin_expect((r->f.flags & BL_F_HOP) == reg->hop, 1))
		reg->frames++;
}

/* Records that the frame was sent with barrier @b by the output and lane of @c. */
static __always_inline void count_carried(const struct run *r, struct bl_carried_lane *c, __u64 b)
{
	c->b = b;
	if (bl_op_answer(r->f.opcode))
		return;
	if (c->relay != r->lane->relays) {
		c->before = c->frames;
		c->relay = r->lane->relays;
	}
	c->frames++;
}

/*
 * Handles an ordered frame other than a beacon: routes it, raises the register, and writes the
 * output's barriers. @plain: constant; 1: bl_parse_plain() parsed it. Returns the reason.
 */
static __always_inline enum bl_reason on_data_frame(struct xdp_md *ctx, struct run *r,
						    const struct bl_sw_port *port, int plain)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	const struct bl_sw_port *to = NULL;
	const struct bl_pair *out;
	struct bl_carried *carried;
	enum bl_reason why;
	struct udphdr *u;
	struct bl_hdr *h;
	int metered = 0;
	__u32 l3 = r->f.l3_off, off = r->f.hdr_off - (__u32)sizeof(*u);

	/* The offsets are constants here, but the verifier must be told. */
	if (l3 > sizeof(*eth) + 4 || off > sizeof(*eth) + 4 + sizeof(struct ipv6hdr))
		return BL_R_SHORT;
	u = data + off;
	BL_SEEN(u);
	h = (void *)(u + 1);
	if ((void *)(eth + 1) > end || (void *)(h + 1) > end)
		return BL_R_SHORT;
	if (r->cfg->forward == BL_FWD_L2)
		why = route_l2(r, eth);
	else
		why = route_l3(ctx, r, l3, BL_UDP);
	if (why == BL_R_NONE) {
		to = port_at(r->out);
		if (!to || !to->ifindex)
			return BL_R_UNKNOWN_PORT;
		if (r->f.hdr_off - l3 + sizeof(*h) + r->f.body_len > to->mtu)
			return BL_R_TOO_BIG;
		metered = bl_admits && __builtin_expect(to->metered, 0);
		/* Redirect first, since what follows cannot be undone. */
		if (!metered && bpf_redirect_map(&sw_tx, r->out, XDP_ABORTED) != XDP_REDIRECT)
			return BL_R_REDIRECT_FAILED;
	} else if (why != BL_R_TO_KERNEL) {
		return why;
	}
	why = raise_register(r, port, plain);
	if (__builtin_expect(why != BL_R_NONE, 0))
		return why;
	if (__builtin_expect(bl_op_covered(r->f.opcode), 0) && !commit_waits_for_lane(r))
		return BL_R_NOT_IN; /* what the frame promised holds all the same */
	if (!to) {
		/*
		 * The kernel resolves the neighbour and sends the frame later, past this program:
		 * it must promise nothing.
		 */
		rewrite_header(r, h, u, 0, 0, BL_HOP_HOST);
		return BL_R_TO_KERNEL;
	}
	out = &r->lane->out[to->out_set & (BL_SETS_MAX - 1)];
	rewrite_header(r, h, u, out->b, __builtin_expect(to->barred, 0) ? 0 : out->c,
		       output_hop_flag(to));
	why = BL_R_FORWARDED;
	if (__builtin_expect(metered, 0)) {
		why = bl_port_put(ctx, r->out, BL_CL_DATA);
		/* Lost on the way out: what the frame promised on the way in holds. */
		if (why != BL_R_QUEUED)
			return why;
	}
	carried = carried_by(r->out);
	if (carried)
		count_carried(r, &carried->lane[r->lane_no & (BL_LANES_MAX - 1)], out->b);
	return why;
}

/*
 * Notes which node is at the other end of port @p, its policy, and the mark of its beacon. Returns
 * BL_R_NONE, or BL_R_SPOOFED if the beacon cannot be of that node.
 */
static __always_inline enum bl_reason learn_neighbour(__u32 p, __u32 lane_no, __u32 node,
						      __u32 policy, __u32 mark)
{
	struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &p);

	if (!life)
		return BL_R_NONE;
	if (__builtin_expect(!node || life->neighbour != node, 0) &&
	    bl_source_node(p, lane_no, node))
		return BL_R_SPOOFED;
	if (life->policy != policy)
		life->policy = policy;
	if (life->auth != BL_AUTH_MARK_EPOCH(mark))
		life->auth = BL_AUTH_MARK_EPOCH(mark);
	return BL_R_NONE;
}

/* Returns how this switch admits traffic, for its beacons; 0: it was started without admission. */
static __always_inline __u8 own_policy(void)
{
	__u32 zero = 0;
	const struct bl_rsv_cfg *cfg = bpf_map_lookup_elem(&rsv_cfg, &zero);

	if (!cfg || !cfg->pair_shift)
		return 0;
	return bl_policy_say(cfg->on         ? BL_POLICY_PL2
			     : bl_token_on() ? BL_POLICY_TOP
					     : BL_POLICY_NONE);
}

/*
 * A beacon that is relayed takes the number of its relay and the time along to its clones, in the
 * timestamp of the header: what its own link's mark was is not needed any more. In this node's byte
 * order, since take_mark() removes it before the clone leaves. Words as in bl_load64().
 */
static __always_inline void put_mark(struct bl_hdr *h, __u32 relay, __u64 now)
{
	*(__u32 *)h->ts = relay;
	*(__u16 *)(h->ts + 4) = bl_link_tick(now);
}

/* Returns the number of the relay. @tick: bl_link_tick() of its time */
static __always_inline __u32 take_mark(struct bl_hdr *h, __u16 *tick)
{
	__u32 relay = *(__u32 *)h->ts;

	*tick = *(__u16 *)(h->ts + 4);
	*(__u32 *)h->ts = 0;
	*(__u16 *)(h->ts + 4) = 0;
	return relay;
}

/*
 * Handles a beacon: raises the register, and turns the beacon into the one to relay if a set's
 * barrier is due or a commit barrier is news. Returns the reason.
 */
static __always_inline enum bl_reason on_beacon_frame(struct xdp_md *ctx, struct run *r,
						      const struct bl_sw_port *port)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_sw_lane *lane = r->lane;
	__u32 off = r->f.hdr_off, s;
	__u64 due = 0, commits = 0;
	struct bl_beacon *body;
	struct bl_relay *relay;
	struct bl_hdr *h;

	if (off > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	h = data + off;
	BL_SEEN(h);
	body = (void *)(h + 1);
	relay = (void *)(body + 1);
	if ((void *)(relay + 1) > end)
		return BL_R_SHORT;
	if ((void *)(relay + 1) + BL_BEACON_SPARE < end)
		return BL_R_BAD_LENGTH;
	if (body->node_id == BL_BE32(r->cfg->node_id))
		return BL_R_LOOPED;
	if ((__s16)BL_BE16(body->tai_offset_s) != r->cfg->tai_offset_s)
		return BL_R_TAI_MISMATCH;
	if (learn_neighbour(r->in, r->lane_no, BL_BE32(body->node_id), body->policy,
			    (__u32)(r->f.ts >> 32)) != BL_R_NONE)
		return BL_R_SPOOFED;
	for (s = 0; s < BL_SETS_MAX; s++)
		lane->behind[s] = bl_commit_news(&lane->out[s], lane->relay_at[s]);
	raise_register(r, port, 1);
	if (__builtin_expect(body->port == BL_BEACON_BYE, 0) && port->role == BL_PORT_HOST)
		bl_input_leaves(r->in, r->lane_no);
	/* Behind it, so that less is kept on the stack: see test_stack.c. */
	if (__builtin_expect(link_says((void *)((__u8 *)relay + BL_LINK_AT)), 0)) {
		const struct bl_port_regs *regs = regs_of(r->in);

		if (regs && link_is_genuine(ctx, r->in, off))
			link_in((void *)((__u8 *)relay + BL_LINK_AT), r->in, r->f.lane,
				BL_BE32(body->node_id),
				regs->lane[r->f.lane & (BL_LANES_MAX - 1)].frames, lane->now_ns);
	}
	for (s = 0; s < BL_SETS_MAX; s++) {
		due |= bl_time_above(lane->out[s].b, lane->relay_at[s]);
		commits |= bl_time_above(lane->out[s].c, lane->behind[s]) << s;
	}
	if (!(due | commits))
		return BL_R_BEACON;
	for (s = 0; s < BL_SETS_MAX; s++) {
		lane->relayed[s] = lane->out[s].b;
		lane->relay_at[s] = bl_relay_next(lane->out[s].b, r->cfg->beacon_ns);
		bl_barriers_put(&relay->set[s], lane->out[s].b,
				bl_max64(lane->out[s].c, lane->now_ns - BL_TS_OLD));
	}
	put_mark(h, ++lane->relays, lane->now_ns);
	bl_hdr_set_lane(h, r->lane_no, r->cfg->lanes);
	body->node_id = BL_BE32(r->cfg->node_id);
	/* for on_output_frame(): sets whose clones are sent even if their B is no news */
	body->port = (__u8)commits;
	return bpf_redirect_map(&sw_tx, 0, BPF_F_BROADCAST) == XDP_REDIRECT ? BL_R_RELAYED
									    : BL_R_REDIRECT_FAILED;
}

/*
 * Takes a beacon or a control frame from the quota of its port; other frames have none. The lane
 * read its clock at its last beacon; where none comes, it is read before the frame is refused.
 */
static __always_inline int within_quota(struct run *r)
{
	struct bl_quotas *q = quotas_of(r->in);
	__u64 gap = r->cfg->control_gap_ns, *word;

	if (!q)
		return 1;
	if (r->f.opcode == BL_OP_BEACON)
		word = &q->beacons;
	else if (bl_op_control(r->f.opcode))
		word = &q->control;
	else
		return 1;
	if (bl_quota_take(word, r->lane->now_ns, gap, BL_CONTROL_BURST * gap))
		return 1;
	return r->f.opcode != BL_OP_BEACON && bl_tick(r->lane_no) &&
	       bl_quota_take(word, r->lane->now_ns, gap, BL_CONTROL_BURST * gap);
}

/*
 * Handles an ordered frame. @plain: see on_data_frame(). @home: 1: it came by the CPU map, so this
 * is the home of its lane. Returns the reason.
 */
static __always_inline enum bl_reason on_ordered_frame(struct xdp_md *ctx, struct run *r, int plain,
						       int home)
{
	const struct bl_sw_port *port = port_at(r->in);
	__u32 cpu = bpf_get_smp_processor_id();
	enum bl_reason why;

	if (!port)
		return BL_R_UNKNOWN_PORT;
	r->lane_no = r->cfg->single_writer ? BL_HOME_LANE(port) : 0;
	if (!home && r->cfg->single_writer &&
	    __builtin_expect(r->cfg->lane_of_cpu[cpu & (BL_SW_CPUS_MAX - 1)] != port->home_lane,
			     0)) {
		why = (enum bl_reason)bl_steer_frame(r->in, cpu);
		if (why != BL_R_NONE)
			return why;
	}
	r->lane = lane_at(r->lane_no);
	if (!r->lane)
		return BL_R_UNKNOWN_PORT;
	count_arrived(r);
	why = validate_source(ctx, r, port, plain);
	if (why != BL_R_NONE)
		return why;
	why = validate_times(r);
	if (why != BL_R_NONE) {
		if (r->f.opcode == BL_OP_BEACON)
			bl_link_refused(ctx, r->in, r->f.hdr_off);
		return why;
	}
	if (r->f.opcode == BL_OP_BEACON && bl_auth) {
		why = (enum bl_reason)bl_auth_check(ctx, r->in, r->f.hdr_off, r->lane->now_ns);
		if (why != BL_R_NONE)
			return why;
	}
	if (port->role == BL_PORT_HOST && !plain && !within_quota(r))
		return BL_R_CONTROL_FLOOD;
	if (r->f.opcode == BL_OP_BEACON)
		return on_beacon_frame(ctx, r, port);
	return on_data_frame(ctx, r, port, plain);
}

/*
 * Handles a frame that arrived on port @in; -1: on no port. Apart from the hook, for
 * bench/bench_switch.bpf.c. Returns the verdict.
 */
static __always_inline int on_port_frame(struct xdp_md *ctx, int in)
{
	struct run r;
	enum bl_reason why;
	__u32 zero = 0;

	r.cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (in < 0 || !r.cfg)
		return bl_done(ctx, BL_COUNTS_UNKNOWN, BL_R_NOT_OURS);
	r.in = (__u32)in;
	/*
	 * The same code twice: for frames that bl_parse_plain() accepts, the compiler knows
	 * offsets, opcode and lane, and makes a faster program of it.
	 */
	if (bl_parse_plain((void *)(long)ctx->data, (void *)(long)ctx->data_end, r.cfg->port_base,
			   r.cfg->port_count, &r.f))
		return bl_done_plain(ctx, r.in, on_ordered_frame(ctx, &r, 1, 0));
	why = bl_parse_whole((void *)(long)ctx->data, (void *)(long)ctx->data_end,
			     bl_frame_len(ctx), r.cfg->port_base, r.cfg->port_count, &r.f);
	if (why == BL_R_NONE && bl_op_link(r.f.opcode) && r.f.opcode != BL_OP_BEACON) {
		why = (enum bl_reason)bl_source_link(ctx, r.in);
		return why == BL_R_NONE ? bl_rsv_link(ctx, r.in, r.f.hdr_off, r.f.opcode, r.f.psn)
					: bl_done(ctx, r.in, why);
	}
	if (why == BL_R_NONE)
		return bl_done(ctx, r.in, on_ordered_frame(ctx, &r, 0, 0));
	if (why == BL_R_NOT_OURS && bl_source_plain(ctx, r.in) != BL_R_NONE)
		why = BL_R_SPOOFED;
	if (why == BL_R_NOT_OURS && bl_admits && __builtin_expect(r.cfg->admission, 0))
		why = bl_plain(ctx, r.in,
			       r.cfg->paths | r.cfg->path_keep ? (__u32)bl_path(ctx, r.in) : 0);
	return bl_done_or_chain(ctx, r.in, r.in, why, bl_frame_len(ctx));
}

SEC("xdp")
int bl_switch_xdp(struct xdp_md *ctx)
{
	BL_ROOM(1024);
	return on_port_frame(ctx, port_of_ifindex(ctx->ingress_ifindex));
}

/**
 * bl_switch_steered - in the CPU map: ordered frames that arrived on another CPU. They are parsed
 * again, because what was parsed before is on that CPU's stack.
 */
SEC("xdp/cpumap")
int bl_switch_steered(struct xdp_md *ctx)
{
	int in = port_of_ifindex(ctx->ingress_ifindex);
	enum bl_reason why;
	__u32 zero = 0;
	struct run r;

	BL_ROOM(1024);
	r.cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (in < 0 || !r.cfg)
		return bl_done(ctx, BL_COUNTS_UNKNOWN, BL_R_NOT_OURS);
	r.in = (__u32)in;
	count_steered_frame(r.in);
	why = bl_parse_whole((void *)(long)ctx->data, (void *)(long)ctx->data_end,
			     bl_frame_len(ctx), r.cfg->port_base, r.cfg->port_count, &r.f);
	if (why == BL_R_NONE)
		why = on_ordered_frame(ctx, &r, 0, 1);
	return bl_done(ctx, r.in, why);
}

/*
 * Writes what the clone of a beacon says of the link of port @p.
 * @lane: the lane of the beacon, to which @c belongs
 * @relay, @tick: see take_mark()
 * @metered: the clone goes behind all data that was counted
 */
static __always_inline void say_link(struct bl_link_body *b, __u32 p, __u32 lane,
				     struct bl_carried_lane *c, __u32 relay, __u16 tick,
				     int metered)
{
	const struct bl_sw_lane *from = bpf_map_lookup_elem(&sw_lanes, &lane);
	const struct bl_link *link = bpf_map_lookup_elem(&link_seen, &p);
	__s32 later = (__s32)(c->relay - relay);

	if (!from || !link)
		return;
	link_out(b, link, from->now_ns);
	b->racing = 0;
	b->frames = BL_BE32(later < 0 || metered ? c->frames : c->before);
	b->run = 0;
	if (later > 0 && !metered)
		return; /* the number is not known; the next beacon says it */
	b->run = BL_BE16(link->run);
	c->said = tick;
}

/*
 * Handles a frame that leaves, in the device map. Data was rewritten at ingress; a relayed beacon
 * gets what ingress stored in it for this port's set. Nothing is computed from the registers here:
 * at the flush they may be ahead of frames that are queued behind this one. Returns the verdict.
 */
static __always_inline int on_output_frame(struct xdp_md *ctx, __u32 ifindex)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	const struct bl_sw_port *port;
	struct bl_carried *carried;
	struct bl_beacon *body;
	struct bl_relay *relay;
	enum bl_reason why;
	struct bl_carried_lane *sent;
	const struct bl_sw_lane *from;
	__u32 p, set, lane, relayed, off = sizeof(*eth);
	const __u8 *mine;
	struct bl_hdr *h;
	__u64 b, last;
	int out, says;
	__be16 proto;
	__u16 tick;

	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	proto = bl_eth_proto(eth);
	if (proto == BL_BE16(BL_ETHERTYPE)) {
		h = (void *)(eth + 1);
	} else if (proto == BL_BE16(BL_ETH_8021Q) || proto == BL_BE16(BL_ETH_8021AD)) {
		struct bl_vlan *v = (void *)(eth + 1);

		if ((void *)(v + 1) > end || v->proto != BL_BE16(BL_ETHERTYPE))
			return XDP_PASS;
		h = (void *)(v + 1);
		off += sizeof(*v);
	} else {
		return XDP_PASS; /* counted as forwarded at ingress */
	}
	if ((void *)(h + 1) > end)
		return XDP_PASS;
	if (h->opcode != BL_OPCODE_BYTE(BL_OP_BEACON))
		return XDP_PASS; /* a reservation's answer, complete since ingress */
	out = port_of_ifindex(ifindex);
	p = (__u32)out;
	port = port_at(p);
	carried = bpf_map_lookup_elem(&sw_carried, &p);
	if (out < 0 || !port || !carried)
		return bl_done_out(ctx, BL_COUNTS_UNKNOWN, BL_R_UNKNOWN_PORT, bl_frame_len(ctx));
	body = (void *)(h + 1);
	relay = (void *)(body + 1);
	if ((void *)(relay + 1) > end)
		return bl_done_out(ctx, p, BL_R_SHORT, bl_frame_len(ctx));
	set = port->out_set & (BL_SETS_MAX - 1);
	lane = BL_FLAGS_LANE(h->flags);
	BL_SEEN(lane); /* Linux 6.1 must see the bound at the access */
	sent = &carried->lane[lane & (BL_LANES_MAX - 1)];
	last = sent->b;
	mine = relay->set[set].barrier;
	BL_SEEN(mine);
	if ((void *)(mine + sizeof(relay->set[0])) > end)
		return bl_done_out(ctx, p, BL_R_SHORT, bl_frame_len(ctx));
	b = bl_get48(mine);
	if (!b) /* no input of this set has joined */
		return bl_done_beacon_out(ctx, p, BL_R_CLONE_STALE);
	if (last) {
		b = bl_ext48(b, last);
		if (b <= last && !(body->port >> set & 1))
			return bl_done_beacon_out(ctx, p, BL_R_CLONE_STALE);
		b = bl_max64(b, last);
	}
	bl_barriers_copy(h->barrier, mine);
	relayed = take_mark(h, &tick);
	((struct bl_link_body *)((__u8 *)relay + BL_LINK_AT))->magic = 0;
	says = sent->said != tick;
	if (__builtin_expect(says, 0))
		say_link((void *)((__u8 *)relay + BL_LINK_AT), p, lane, sent, relayed, tick,
			 port->metered);
	h->flags = (__u8)((h->flags & ~BL_F_HOP) | output_hop_flag(port));
	if (__builtin_expect(port->barred, 0)) {
		from = bpf_map_lookup_elem(&sw_lanes, &lane);
		bl_put48(h->commit, (from ? from->now_ns : b) - BL_TS_OLD);
	}
	bl_mac_copy(eth->h_source, port->mac);
	body->policy = own_policy();
	body->port = (__u8)p;
	if (bl_auth) {
		from = bpf_map_lookup_elem(&sw_lanes, &lane);
		bl_auth_seal(ctx, p, off, lane, from ? from->now_ns : 0);
		if (__builtin_expect(says, 0))
			bl_auth_seal_link(ctx, p, off);
	}
	if (__builtin_expect(port->metered, 0)) {
		/* behind the data that it makes promises about */
		why = bl_port_put(ctx, p, BL_CL_DATA);
		if (why == BL_R_QUEUED)
			sent->b = b;
		return bl_done_out(ctx, p, why, bl_frame_len(ctx));
	}
	sent->b = b;
	return bl_done_beacon_out(ctx, p, BL_R_CLONE_SENT);
}

SEC("xdp/devmap")
int bl_switch_devmap(struct xdp_md *ctx)
{
	BL_ROOM(256);
	return on_output_frame(ctx, ctx->egress_ifindex);
}

SEC("tc")
int bl_switch_egress(struct __sk_buff *skb)
{
	return guard_egress_frame(skb);
}

/** bl_port_pace - the pacer's turn on this node (bpf/pacer.bpf.c). */
SEC("xdp")
int bl_port_pace(struct xdp_md *ctx)
{
	return bl_port_turn(ctx);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
