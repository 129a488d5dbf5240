/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PL2 on a switch: RSV and RELEASE as they come in, and data that uses what was promised. The arithmetic is in reserve_core.h.
 *
 * An RSV becomes its own answer: the same frame, the same sequence number and cookie, opcode GRT, waits and flags filled in, goes back to the port it came from. If the
 * receiver's port is metered, a copy goes there first, so that the receiver knows what to expect; on a port that is not metered there is nothing to copy a frame
 * with, and only time takes back what a dead sender was promised.
 *
 * A refusal is answered too, also one for a port that does not exist: a host without an answer asks again and again. Only a switch that makes no
 * reservations at all keeps silent.
 *
 * Not here: switches that route. Hosts reserve by Ethernet address, and behind a router that is the router's own: refused as rsv_bad.
 */
#ifndef BARLINE_SWITCH_RSV_H
#define BARLINE_SWITCH_RSV_H

#include "../maps/reserve_maps.h"
#include "reserve_core.h"
#include "switch_fdb.h"
#include "bpf_util.h"
#include "switch_port.h"

#define BL_RSV_ANSWER 0x80 /* beside a reason */
_Static_assert(BL_R_COUNT <= BL_RSV_ANSWER, "reasons leave no room for the mark");

static __always_inline struct bl_rsv_pair *bl_rsv_pair_at(const struct bl_rsv_cfg *cfg, __u32 in, __u32 out)
{
	__u32 shift = cfg->pair_shift & 31, key = in << shift | out;

	return (in | out) >> shift ? NULL : bpf_map_lookup_elem(&rsv_pairs, &key);
}

static __always_inline enum bl_reason bl_rsv_on_release(const struct bl_rsv_cfg *cfg, struct bl_rsv *rsv, __u32 out, int in, __u32 bytes,
						       __u32 seq)
{
	struct bl_rsv_pair *pair;
	__u64 now = bpf_ktime_get_ns();
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

/* The promise itself: own pair and two others of this output are looked at for promises that are over, then the allocator decides. Returns bytes that lapsed. */
static __always_inline __u32 bl_rsv_promise(const struct bl_rsv_cfg *cfg, struct bl_rsv *rsv, struct bl_rsv_pair *pair, __u32 in, __u32 out, __u32 nports,
					   __u32 bytes, __u32 seq, int early, struct bl_rsv_grant *g)
{
	/* The cursor is read without the lock: two CPUs may look at the same pairs, and then the next RSV goes on from there. */
	__u32 i = BL_READ_ONCE(rsv->port[out].sweep), j, lapsed, key = BL_PORT_QUEUE(out, BL_CL_DATA);
	const struct bl_queue *data = bpf_map_lookup_elem(&queues, &key); /* not there, or empty: the port is not metered */
	/* without its lock: the queue may be a frame longer or shorter by the time the answer is there */
	__u32 queued = data ? BL_READ_ONCE(data->bytes) : 0;
	struct bl_rsv_pair *p, *q;
	__u64 now = bpf_ktime_get_ns();

	i = i < nports ? i : 0;
	j = i + 1 < nports ? i + 1 : 0;
	p = bl_rsv_pair_at(cfg, i, out);
	q = bl_rsv_pair_at(cfg, j, out);
	if (!p || !q) {
		p = q = pair;
		i = j = in;
	}
	i &= BL_SW_PORTS_MAX - 1;
	j &= BL_SW_PORTS_MAX - 1;
	bpf_spin_lock(&rsv->lock);
	rsv->port[out].sweep = j + 1;
	lapsed = bl_rsv_lapse(&rsv->port[i], &rsv->port[out], p, now);
	lapsed += bl_rsv_lapse(&rsv->port[j], &rsv->port[out], q, now);
	lapsed += bl_rsv_renew(&rsv->port[in], &rsv->port[out], pair, bytes, seq, now);
	bl_rsv_ask(cfg, &rsv->port[in], &rsv->port[out], pair, bytes, seq, early, queued, now, g);
	bpf_spin_unlock(&rsv->lock);
	return lapsed;
}

/**
 * bl_rsv_frame - a link frame that is no beacon came in on port @in. @off: its header. @op, @seq: from there.
 * Returns the reason, and for an RSV, which has become its answer now, BL_RSV_ANSWER and the output << 8. Global functions, this and the next, one after the
 * other: the verifier looks at each once (see bl_leaf_changed()), and only one is on the stack.
 */
__attribute__((noinline)) int bl_rsv_frame(struct xdp_md *ctx, __u32 in, __u32 off, __u32 op, __u32 seq)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_rsv_grant g = { .reason = BL_R_RSV_BAD, .flags = BL_GRT_REFUSED };
	const struct bl_rsv_cfg *cfg;
	const struct bl_sw_cfg *sw;
	struct bl_rsv_pair *pair;
	struct bl_rsv_body *body;
	struct bl_rsv *all;
	__u32 zero = 0, out, lapsed = 0;
	struct bl_hdr *h;
	int found;

	if (off > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	h = data + off;
	BL_SEEN(h);
	body = (void *)(h + 1);
	if ((void *)(body + 1) > end)
		return BL_R_SHORT;
	if (op != BL_OP_RSV && op != BL_OP_RELEASE)
		return BL_R_BAD_OPCODE;
	cfg = bpf_map_lookup_elem(&rsv_cfg, &zero);
	all = bpf_map_lookup_elem(&rsv, &zero);
	sw = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (!cfg || !all || !sw || !cfg->on)
		return BL_R_RSV_OFF;
	found = sw->forward == BL_FWD_L2 ? bl_fdb_port(body->mac) : -1;
	if (op == BL_OP_RELEASE)
		return bl_rsv_on_release(cfg, all, in, found, BL_HALVES(body, bytes), seq);
	out = (__u32)found;
	if (found >= 0 && out != in && out < sw->nports && in < sw->nports) {
		pair = bl_rsv_pair_at(cfg, in, out);
		if (pair)
			lapsed = bl_rsv_promise(cfg, all, pair, in & (BL_SW_PORTS_MAX - 1), out & (BL_SW_PORTS_MAX - 1), sw->nports, BL_HALVES(body, bytes),
						seq, body->flags & BL_RSV_EARLY, &g);
	}
	if (lapsed)
		bl_count(out, BL_R_RSV_LAPSED);
	/* once more, instead of keeping the addresses on a stack that is full */
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	h = data + off;
	BL_SEEN(h);
	body = (void *)(h + 1);
	if ((void *)(body + 1) > end)
		return BL_R_SHORT;
	h->opcode = BL_OPCODE_BYTE(BL_OP_GRT);
	body->flags = (__u8)g.flags;
	/* both waits at once, see bl_load64(); each is at most far_ns, which fits */
	*(__u64 *)&body->in_wait_ns_hi = BL_BE64(g.in_wait_ns << 32 | (__u32)g.out_wait_ns);
	return (int)(g.reason | BL_RSV_ANSWER | (out & 0xffff) << 8);
}

/* The receiver's copy names the sender. One that finds no room is not missed: then time takes the promise back. */
static __always_inline void bl_rsv_copy(struct xdp_md *ctx, __u32 out, __u32 off)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_rsv_body *body;
	struct ethhdr *eth = data;
	__u8 mac[6], flags;

	if (off > sizeof(*eth) + 4)
		return;
	body = data + off + sizeof(struct bl_hdr);
	BL_SEEN(body);
	if ((void *)(body + 1) > end || (void *)(eth + 1) > end)
		return;
	__builtin_memcpy(mac, body->mac, 6);
	flags = body->flags;
	__builtin_memcpy(body->mac, eth->h_source, 6);
	body->flags = flags | BL_GRT_COPY;
	bl_port_put(ctx, out, BL_CL_CONTROL);
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	body = data + off + sizeof(struct bl_hdr);
	BL_SEEN(body);
	if ((void *)(body + 1) > end)
		return;
	__builtin_memcpy(body->mac, mac, 6);
	body->flags = flags;
}

/**
 * bl_rsv_answer - send the answer that bl_rsv_frame() made back to port @in, and a copy to the receiver's. @res: what it returned.
 * Returns the reason, and BL_RSV_ANSWER if the frame is redirected; else it is in a queue, or it failed.
 */
__attribute__((noinline)) int bl_rsv_answer(struct xdp_md *ctx, __u32 in, __u32 off, __u32 res)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct bl_sw_port *port = bpf_map_lookup_elem(&sw_ports, &in);
	__u32 reason = res & (BL_RSV_ANSWER - 1);
	struct ethhdr *eth = data;

	if (!port || (void *)(eth + 1) > end)
		return BL_R_SHORT;
	if (reason == BL_R_RSV_GRANTED && bl_port_metered(res >> 8))
		bl_rsv_copy(ctx, res >> 8, off);
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	eth = data;
	if ((void *)(eth + 1) > end)
		return BL_R_SHORT;
	__builtin_memcpy(eth->h_source, port->mac, 6);
	if (bl_port_metered(in)) {
		int put = bl_port_put(ctx, in, BL_CL_CONTROL);

		return put == BL_R_QUEUED ? (int)reason : put;
	}
	if (bpf_redirect_map(&sw_tx, in, XDP_ABORTED) != XDP_REDIRECT)
		return BL_R_REDIRECT_FAILED;
	return (int)(reason | BL_RSV_ANSWER);
}

/* A link frame that is no beacon, from beginning to end: counts it and returns the verdict, which the reason alone does not say. */
static __always_inline int bl_rsv_link(struct xdp_md *ctx, __u32 in, __u32 off, __u32 op, __u32 seq)
{
	int res = bl_rsv_frame(ctx, in, off, op, seq);

	if (res & BL_RSV_ANSWER)
		res = bl_rsv_answer(ctx, in, off, (__u32)res);
	bl_count(in, res & (BL_RSV_ANSWER - 1));
	return res & BL_RSV_ANSWER ? XDP_REDIRECT : XDP_DROP;
}

/** bl_rsv_outside - port @in leads out of the rack. */
static __always_inline int bl_rsv_outside(__u32 in)
{
	__u32 zero = 0;
	const struct bl_rsv *all = bpf_map_lookup_elem(&rsv, &zero);

	return all && all->port[in & (BL_SW_PORTS_MAX - 1)].outside;
}

/**
 * bl_rsv_on_data - a frame of @len bytes that is subject to admission goes from port @in to port @out. @early: its source address says that it is unsolicited.
 * Returns BL_R_NONE, or the reason to drop it. Control traffic (ARP, ND, link frames, ordered frames) is never asked about.
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
	if (!pair)
		return BL_R_UNRESERVED;
	bpf_spin_lock(&all->lock);
	why = bl_rsv_data(&all->port[in], &all->port[out], pair, len, early);
	bpf_spin_unlock(&all->lock);
	return why;
}

#endif
