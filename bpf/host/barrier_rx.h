/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Barriers that arrive on the host's NIC: the clock that they are checked against, the link's
 * registers, and the host page that processes read. BPF side only.
 *
 * Example: the page's clock says 1000 and its limit 1040. A frame with B = 1030 is accepted without
 * reading the clock; one with B = 1055 makes the program read it, and is refused as barrier_ahead
 * if the new limit is below 1055. B = 1030 raises the link's register. That is the host's only
 * input, so the page's barrier becomes 1030, and sleeping endpoints with until < 1030 are woken.
 *
 * Not here: the message of the same frame (ring.h), and the barriers that the host sends
 * (barrier_tx.h).
 */
#ifndef BARLINE_HOST_BARRIER_RX_H
#define BARLINE_HOST_BARRIER_RX_H

#include "bpf/host/role.h"
#include "core/wire_core.h"
#include "core/order/barrier_core.h"
#include "core/order/hop_core.h"
#include "bpf/auth.h"
#include "bpf/bpf_util.h"
#include "bpf/host/fence.h"
#include "bpf/host/ring.h"
#include "bpf/host/run.h"

/*
 * Applies fences that are not applied yet, and reads the clock into the page. Returns the new
 * limit, or 0 if the clock cannot be used.
 */
static __always_inline __u64 update_page_clock(const struct run *r)
{
	return bl_page_tick(r->cfg->beacon_ns, r->cfg->ahead_ns);
}

/*
 * Extends the times of the header to 64 bits and refuses those that are further ahead than this
 * host's clock can vouch for. A beacon always reads the clock, so the reference of bl_ext48() is
 * never old; other frames only if a time is beyond the last limit. Returns BL_R_NONE, or the reason
 * to drop the frame.
 */
static __always_inline enum bl_reason validate_times(struct run *r)
{
	struct bl_host_page *page = r->page;
	__u64 limit = BL_READ_ONCE(page->limit_ns);

	if (r->f.opcode == BL_OP_BEACON) {
		limit = update_page_clock(r);
		if (!limit)
			return BL_R_CLOCK_VOID;
	}
	r->b = bl_ext48(r->f.b, page->now_ns);
	r->c = bl_ext48(r->f.c, page->now_ns);
	r->ts = bl_op_timed(r->f.opcode) ? bl_ext48(r->f.ts, page->now_ns) : 0;
	if (r->b <= limit && r->c <= limit && r->ts <= limit)
		return BL_R_NONE;
	if (r->f.opcode != BL_OP_BEACON) {
		limit = update_page_clock(r);
		if (!limit)
			return BL_R_CLOCK_VOID;
		r->b = bl_ext48(r->f.b, page->now_ns);
		r->c = bl_ext48(r->f.c, page->now_ns);
		r->ts = bl_op_timed(r->f.opcode) ? bl_ext48(r->f.ts, page->now_ns) : 0;
	}
	if (r->b > limit || r->c > limit)
		return BL_R_BARRIER_AHEAD;
	return r->ts > limit ? BL_R_TS_AHEAD : BL_R_NONE;
}

/**
 * bl_publish - raises the link's register to barriers @b and @c, bus time in ns, and publishes the
 * result in the page that processes read. The frame's own message must be in its ring before. A
 * global function, so that the verifier checks it once, and not once per path that leads here.
 * @lanes: the neighbour's lane in the low 8 bits, its number of lanes in the next 8;
 *     BL_PUBLISH_BEACON: the frame is a beacon
 */
#define BL_PUBLISH_BEACON (1u << 16)
__attribute__((noinline)) int bl_publish(__u32 lanes, __u64 b, __u64 c)
{
	__u32 zero = 0, res, all = lanes & BL_PUBLISH_BEACON, neps;
	const struct bl_host_cfg *cfg = bpf_map_lookup_elem(&host_cfg, &zero);
	struct bl_host_page *page = bpf_map_lookup_elem(&host_page, &zero);
	struct bl_port_regs *regs;
	struct bl_expiry e = {};
	struct bl_pair leaf;

	if (!cfg || !page)
		return 0;
	regs = (struct bl_port_regs *)page->reg;
	neps = cfg->neps;
	lanes &= 0xffff;
	if (!page->watch_ns)
		page->watch_ns = 1;
	res = bl_port_arrive(regs, lanes & 0xff, lanes >> 8, b, c, page->watch_ns,
			     bl_join_floor(page->barrier, cfg->dead_after_ns, 0), page->barred != 0,
			     &leaf);
	if (res & BL_A_OLD)
		bl_count(BL_HC_INGRESS, BL_R_BARRIER_OLD);
	if (res & BL_A_JOINED)
		bl_count(BL_HC_INGRESS, BL_R_JOINED);
	if (lanes >> 8 > 1 && page->watch_ns - page->scan_ns > cfg->dead_after_ns / 4) {
		page->scan_ns = page->watch_ns;
		/* Lanes may lag here: the switch excludes what holds them back. */
		e.watch = page->watch_ns;
		e.silent = bl_time_before(page->watch_ns, cfg->dead_after_ns);
		if (bl_port_expire(regs, &e, &page->life, &leaf) & BL_A_LEAF) {
			bl_count(BL_HC_INGRESS, BL_R_EXCLUDED);
			res |= BL_A_LEAF;
		}
	}
	if (!(res & BL_A_LEAF))
		return 0;
	/*
	 * The record's commit was an atomic exchange, which orders it before these stores. Pairs
	 * with bl_rx_drain() in lib/rx.c, which reads the barriers first and the ring after them.
	 */
	if (leaf.c != BL_LEAF_NONE && leaf.c > page->commit) {
		BL_WRITE_ONCE(page->commit, leaf.c);
		wake_below(leaf.c, 1, neps, all != 0);
	}
	if (leaf.b == BL_LEAF_NONE || leaf.b <= page->barrier)
		return 0;
	BL_WRITE_ONCE(page->barrier, leaf.b);
	wake_below(leaf.b, 0, neps, all != 0);
	return 0;
}

/* Publishes the barriers of the frame, if they are the link's. */
static __always_inline void publish_barriers(const struct run *r)
{
	/* lanes 0: the barriers of the frame are not this link's */
	if (r->f.lanes && !auth_ignores(r->f.opcode))
		bl_publish((__u32)r->f.lane | (__u32)r->f.lanes << 8 |
				   (r->f.opcode == BL_OP_BEACON ? BL_PUBLISH_BEACON : 0),
			   bl_lane_promise(r->b, r->f.lanes, r->page->now_ns), r->c);
}

#endif
