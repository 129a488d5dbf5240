/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PL2 on a switch: RSV and RELEASE as they arrive, and data that uses what was promised.
 * core/pl2/pl2_switch_core.h has the arithmetic and the example in numbers.
 *
 * An RSV becomes its own answer: the same frame with the same sequence number and cookie, opcode
 * GRT, waits and flags filled in, goes back to the port it came from. If the receiver's port is
 * metered, a copy goes there first, so that the receiver knows what to expect. A port that is not
 * metered has nothing to copy a frame with, and only time takes back what a dead sender was
 * promised.
 *
 * A refusal is answered too, also one for a port that does not exist: a host without an answer
 * would ask again and again. A switch that makes no reservations, or that routes, answers
 * BL_GRT_OFF, and the host sends without a reservation. In the other direction, data of an input
 * that never asks is let through and counted (policy_apart). So a host and a switch that disagree
 * fall back to policy none and lose nothing but order in their queues.
 *
 * Not here: switches that route. Hosts reserve by Ethernet address, and behind a router that is the
 * router's own: refused as rsv_bad, with BL_GRT_OFF. BPF side only.
 */
#ifndef BARLINE_SWITCH_RSV_H
#define BARLINE_SWITCH_RSV_H

#include "bpf/role.h"
#include "maps/pl2_switch_maps.h"
#include "core/pl2/pl2_switch_core.h"
#include "bpf/bpf_util.h"
#include "bpf/auth.h"
#include "bpf/switch/fdb.h"
#include "bpf/switch/queue.h"

/*
 * Or-ed to a reason. BL_RSV_SENT: the answer is redirected. BL_RSV_QUEUES: queues are concerned,
 * which bl_rsv_answer() handles; the output port is in the bits from BL_RSV_OUT_SHIFT on.
 */
#define BL_RSV_SENT      0x80
#define BL_RSV_QUEUES    0x100
#define BL_RSV_OUT_SHIFT 16
_Static_assert(BL_R_COUNT <= BL_RSV_SENT, "reasons leave no room for the marks");

/* Returns the pair of input @in and output @out, or NULL. */
static __always_inline struct bl_rsv_pair *bl_rsv_pair_at(const struct bl_rsv_cfg *cfg, __u32 in,
							  __u32 out)
{
	__u32 shift = cfg->pair_shift & 31, key = in << shift | out;

	return (in | out) >> shift ? NULL : bpf_map_lookup_elem(&rsv_pairs, &key);
}

/*
 * Takes back @bytes that output @out's host reports as missing from input @in; -1: unknown. Returns
 * the reason.
 */
static __always_inline enum bl_reason bl_rsv_on_release(const struct bl_rsv_cfg *cfg,
							struct bl_rsv *rsv, __u32 out, int in,
							__u32 bytes, __u32 seq, __u64 now)
{
	struct bl_rsv_pair *pair;
	enum bl_reason why;

	if (in < 0 || (__u32)in == out)
		return BL_R_RELEASE_BAD;
	pair = bl_rsv_pair_at(cfg, (__u32)in, out);
	if (!pair)
		return BL_R_RELEASE_BAD;
	in &= BL_SW_PORTS_MAX - 1;
	out &= BL_SW_PORTS_MAX - 1;
	bpf_spin_lock(&rsv->lock);
	why = bl_rsv_release(cfg, &rsv->port[in], &rsv->port[out], pair, bytes, seq, now);
	bpf_spin_unlock(&rsv->lock);
	return why;
}

/*
 * Makes the promise for an RSV: looks for promises that are over in its own pair and in one other
 * pair of this output, then calls the allocator. @metered: the output is. Fills @g. Returns the
 * bytes that lapsed.
 */
static __always_inline __u32 bl_rsv_promise(const struct bl_rsv_cfg *cfg, struct bl_rsv *rsv,
					    struct bl_rsv_pair *pair, __u32 in, __u32 out,
					    __u32 nports, __u32 bytes, __u32 seq, int early,
					    int metered, __u64 now, struct bl_rsv_grant *g)
{
	/*
	 * The cursor is read without the lock: two CPUs may look at the same pair, and the next RSV
	 * continues from there.
	 */
	__u32 i = BL_READ_ONCE(rsv->port[out].sweep), lapsed, queued = 0, key;
	const struct bl_queue *data;
	__u64 slot = bl_rsv_slot_at(cfg, now);
	struct bl_rsv_pair *p;

	i = i < nports ? i : 0;
	p = bl_rsv_pair_at(cfg, i, out);
	if (!p) {
		p = pair;
		i = in;
	}
	i &= BL_SW_PORTS_MAX - 1;
	if (metered) {
		key = BL_PORT_QUEUE(out, BL_CL_DATA);
		data = bpf_map_lookup_elem(&queues, &key);
		/*
		 * Without its lock: the queue may be a frame longer or shorter by the time the
		 * answer is there.
		 */
		queued = data ? BL_READ_ONCE(data->wire) : 0;
	}
	/*
	 * Taking a lock delays the loads behind it. What is likely not in the cache is loaded here,
	 * at once and not one after the other. The values are not used.
	 */
	(void)BL_READ_ONCE(p->lapse_ns);
	(void)BL_READ_ONCE(pair->lapse_ns);
	bpf_spin_lock(&rsv->lock);
	rsv->port[out].sweep = i + 1;
	lapsed = bl_rsv_renew(&rsv->port[in], &rsv->port[out], pair, &rsv->port[i], p, bytes, seq,
			      now);
	bl_rsv_ask(cfg, &rsv->port[in], &rsv->port[out], pair, bytes, seq, early, queued, now, slot,
		   g);
	bpf_spin_unlock(&rsv->lock);
	return lapsed;
}

/**
 * bl_rsv_frame - handles a link frame other than a beacon that arrived on port @in. This and
 * bl_rsv_answer() are global functions that are called one after the other: the verifier checks
 * each once (see bl_leaf_changed()), and only one of them is on the stack.
 * @off: offset of struct bl_hdr
 * @op, @seq: its opcode and sequence number
 * Returns the reason. For an RSV, whose frame is its answer now, with BL_RSV_SENT if that is
 * redirected, or with BL_RSV_QUEUES and the output port if bl_rsv_answer() must go on.
 */
__attribute__((noinline)) int bl_rsv_frame(struct xdp_md *ctx, __u32 in, __u32 off, __u32 op,
					   __u32 seq)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_rsv_grant g = { .reason = BL_R_RSV_BAD, .flags = BL_GRT_REFUSED };
	const struct bl_sw_port *from, *to;
	const struct bl_rsv_cfg *cfg;
	const struct bl_sw_cfg *sw;
	struct bl_rsv_pair *pair;
	struct bl_rsv_body *body;
	struct bl_rsv *all;
	__u32 zero = 0, out, key, lapsed = 0;
	struct ethhdr *eth;
	struct bl_hdr *h;
	int found, metered = 0;
	__u64 now;

	if (off > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	h = data + off;
	BL_SEEN(h);
	body = (void *)(h + 1);
	if ((void *)(body + 1) > end)
		return BL_R_SHORT;
	if (op != BL_OP_RSV && op != BL_OP_RELEASE)
		return BL_R_BAD_OPCODE;
	/*
	 * Read here, because reading the clock makes the processor wait for all loads that were
	 * begun before, and begin none behind it.
	 */
	now = bpf_ktime_get_ns();
	cfg = bpf_map_lookup_elem(&rsv_cfg, &zero);
	all = bpf_map_lookup_elem(&rsv, &zero);
	sw = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (!cfg || !all || !sw || (!cfg->on && op == BL_OP_RELEASE))
		return BL_R_RSV_OFF;
	if (!cfg->on)
		g.reason = BL_R_RSV_OFF;
	if (!cfg->on || sw->forward != BL_FWD_L2)
		g.flags |= BL_GRT_OFF;
	else
		bl_rsv_asked(&all->port[in & (BL_SW_PORTS_MAX - 1)], now);
	found = sw->forward == BL_FWD_L2 ? bl_fdb_port(body->mac) : -1;
	if (op == BL_OP_RELEASE)
		return bl_rsv_on_release(cfg, all, in, found, BL_HALVES(body, bytes), seq, now);
	out = key = (__u32)found;
	to = bpf_map_lookup_elem(&sw_ports, &key);
	if (cfg->on && to && out != in && out < sw->nports && in < sw->nports) {
		metered = to->metered;
		pair = bl_rsv_pair_at(cfg, in, out);
		if (pair && bl_admits)
			lapsed = bl_rsv_promise(cfg, all, pair, in & (BL_SW_PORTS_MAX - 1),
						out & (BL_SW_PORTS_MAX - 1), sw->nports,
						BL_HALVES(body, bytes), seq,
						body->flags & BL_RSV_EARLY, metered, now, &g);
	}
	if (lapsed)
		bl_count(out, BL_R_RSV_LAPSED);
	key = in;
	from = bpf_map_lookup_elem(&sw_ports, &key);
	/* The addresses are computed again instead of being kept on a stack that is full. */
	eth = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	h = (void *)eth + off;
	BL_SEEN(h);
	body = (void *)(h + 1);
	if (!from || (void *)(body + 1) > end || (void *)(eth + 1) > end)
		return BL_R_SHORT;
	h->opcode = BL_OPCODE_BYTE(BL_OP_GRT);
	body->flags = (__u8)g.flags;
	/* Both waits in one store; each is at most far_ns, which fits. */
	bl_store64(&body->in_wait_ns_hi, g.in_wait_ns << 32 | (__u32)g.out_wait_ns);
	if ((metered && g.reason == BL_R_RSV_GRANTED) || from->metered)
		return (int)(g.reason | BL_RSV_QUEUES | out << BL_RSV_OUT_SHIFT);
	bl_mac_copy(eth->h_source, from->mac);
	if (bpf_redirect_map(&sw_tx, in, XDP_ABORTED) != XDP_REDIRECT)
		return BL_R_REDIRECT_FAILED;
	return (int)(g.reason | BL_RSV_SENT);
}

/* Seals the GRT that leaves by @port. */
static __always_inline void bl_rsv_seal(struct xdp_md *ctx, __u32 port, __u32 off)
{
	if (bl_auth)
		bl_auth_seal(ctx, port, off, BL_AUTH_S_GRANT + (bpf_get_smp_processor_id() & 7), 0);
}

/*
 * Puts a copy of the answer, which names the sender, into the receiver's queue. A copy that finds
 * no room does no harm: then the promise lapses with time.
 */
static __always_inline void bl_rsv_copy(struct xdp_md *ctx, __u32 out, __u32 off)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_rsv_body *body;
	struct ethhdr *eth = data;
	__u8 mac[6], flags;
	__u64 at = off;

	/* A mask each time: the calls between leave no register that the verifier has a range of.
	 */
	BL_SEEN(at);
	body = data + (at & 31) + sizeof(struct bl_hdr);
	BL_SEEN(body);
	if (off > sizeof(*eth) + 4 || (void *)(body + 1) > end || (void *)(eth + 1) > end)
		return;
	__builtin_memcpy(mac, body->mac, 6);
	flags = body->flags;
	__builtin_memcpy(body->mac, eth->h_source, 6);
	body->flags = flags | BL_GRT_COPY;
	bl_rsv_seal(ctx, out, off);
	bl_port_put(ctx, out, BL_CL_CONTROL);
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	BL_SEEN(at);
	body = data + (at & 31) + sizeof(struct bl_hdr);
	BL_SEEN(body);
	if ((void *)(body + 1) > end)
		return;
	__builtin_memcpy(body->mac, mac, 6);
	body->flags = flags;
}

/**
 * bl_rsv_answer - sends the answer that bl_rsv_frame() made back to port @in, and a copy to the
 * receiver; one of the two ports is metered.
 * @res: what bl_rsv_frame() returned
 * Returns the reason, with BL_RSV_SENT if the frame is redirected. Otherwise it is in a queue, or
 * sending failed.
 */
__attribute__((noinline)) int bl_rsv_answer(struct xdp_md *ctx, __u32 in, __u32 off, __u32 res)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct bl_sw_port *port = bpf_map_lookup_elem(&sw_ports, &in);
	__u32 reason = res & (BL_RSV_SENT - 1);
	struct ethhdr *eth = data;

	if (!port || (void *)(eth + 1) > end)
		return BL_R_SHORT;
	if (reason == BL_R_RSV_GRANTED && bl_port_metered(res >> BL_RSV_OUT_SHIFT))
		bl_rsv_copy(ctx, res >> BL_RSV_OUT_SHIFT, off);
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	eth = data;
	if ((void *)(eth + 1) > end)
		return BL_R_SHORT;
	bl_mac_copy(eth->h_source, port->mac);
	bl_rsv_seal(ctx, in, off);
	if (port->metered) {
		int put = bl_port_put(ctx, in, BL_CL_CONTROL);

		return put == BL_R_QUEUED ? (int)reason : put;
	}
	if (bpf_redirect_map(&sw_tx, in, XDP_ABORTED) != XDP_REDIRECT)
		return BL_R_REDIRECT_FAILED;
	return (int)(reason | BL_RSV_SENT);
}

/*
 * Handles a link frame other than a beacon from beginning to end: counts it and returns the
 * verdict, which the reason alone does not determine.
 */
static __always_inline int bl_rsv_link(struct xdp_md *ctx, __u32 in, __u32 off, __u32 op, __u32 seq)
{
	int res = bl_auth ? bl_auth_check(ctx, in, off, 0) : BL_R_NONE;

	if (res != BL_R_NONE)
		return bl_done(ctx, in, (enum bl_reason)res);
	res = bl_rsv_frame(ctx, in, off, op, seq);
	if (res & BL_RSV_QUEUES)
		res = bl_rsv_answer(ctx, in, off, (__u32)res);
	else if (res & BL_RSV_SENT)
		bl_rsv_seal(ctx, in, off);
	bl_count_frame(in, res & (BL_RSV_SENT - 1), bl_frame_len(ctx));
	if (BL_CAPTURING())
		bl_capture_xdp(ctx, in, res & (BL_RSV_SENT - 1), BL_CAPTURE_IN);
	return res & BL_RSV_SENT ? XDP_REDIRECT : XDP_DROP;
}

/** bl_rsv_outside - returns whether port @in leads out of the rack. */
static __always_inline int bl_rsv_outside(__u32 in)
{
	__u32 zero = 0;
	const struct bl_rsv *all = bpf_map_lookup_elem(&rsv, &zero);

	return all && all->port[in & (BL_SW_PORTS_MAX - 1)].outside;
}

/**
 * bl_rsv_on_data - admits a frame of @len bytes from port @in to port @out. Control traffic (ARP,
 * ND, link frames, ordered frames) is not subject to admission, and does not get here.
 * @early: its source address says that it is unsolicited
 * Returns BL_R_NONE, or the reason to drop it.
 */
__attribute__((noinline)) int bl_rsv_on_data(__u32 in, __u32 out, __u32 len, int early)
{
	const struct bl_rsv_cfg *cfg;
	struct bl_rsv_pair *pair;
	struct bl_rsv *all;
	enum bl_reason why;
	__u32 zero = 0;

	cfg = bpf_map_lookup_elem(&rsv_cfg, &zero);
	all = bpf_map_lookup_elem(&rsv, &zero);
	if (!cfg || !all || !cfg->on)
		return BL_R_NONE;
	pair = bl_rsv_pair_at(cfg, in, out);
	in &= BL_SW_PORTS_MAX - 1;
	out &= BL_SW_PORTS_MAX - 1;
	if (all->port[in].outside)
		return BL_R_NONE;
	why = BL_R_UNRESERVED;
	if (pair) {
		bpf_spin_lock(&all->lock);
		why = bl_rsv_data(&all->port[in], &all->port[out], pair, len, early);
		bpf_spin_unlock(&all->lock);
	}
	if (why == BL_R_NONE || !bl_rsv_apart(&all->port[in], bpf_ktime_get_ns()))
		return why;
	bl_count(in, BL_R_POLICY_APART);
	return BL_R_NONE;
}

#endif
