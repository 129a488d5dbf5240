/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Barriers that arrive. BPF side only. */
#ifndef BARLINE_HOST_BARRIER_RX_H
#define BARLINE_HOST_BARRIER_RX_H

#include "bpf/host/role.h"
#include "core/wire_core.h"
#include "core/order/barrier_core.h"
#include "bpf/bpf_util.h"
#include "bpf/host/fence.h"
#include "bpf/host/ring.h"
#include "bpf/host/run.h"

static __always_inline int update_page_clock(struct run *r)
{
	struct bl_host_page *page = r->page;
	struct bl_now now;

	bl_obey_fences(); /* also without a clock */
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

	if (r->f.opcode == BL_OP_BEACON && update_page_clock(r))
		return BL_R_CLOCK_VOID;
	r->b = bl_ext48(r->f.b, page->now_ns);
	r->c = bl_ext48(r->f.c, page->now_ns);
	r->ts = bl_op_timed(r->f.opcode) ? bl_ext48(r->f.ts, page->now_ns) : 0;
	if (r->b <= page->limit_ns && r->c <= page->limit_ns && r->ts <= page->limit_ns)
		return BL_R_NONE;
	if (r->f.opcode != BL_OP_BEACON) {
		if (update_page_clock(r))
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

static __always_inline void publish_barriers(const struct run *r)
{
	if (r->f.lanes) /* 0: its barriers are not this link's */
		bl_publish((__u32)r->f.lane | (__u32)r->f.lanes << 8, r->b, r->c);
}

#endif
