/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host's beacons when the pacer carries them: on its turn (bl_host_pace) the pacer's frame
 * becomes a beacon if a tick is due (core/order/beacon_core.h), before any data.
 *
 * A beacon must not overtake what endpoints have sent, and XDP's way out of a NIC may do that: it
 * bypasses the qdisc, and on most NICs has a transmit queue of its own. So the pacer's beacon
 * enters the way of all ordered frames at its beginning. Example: the pacer on CPU 0 sends the
 * beacon into bl0d; it comes out of bl0 in the same softirq; bl_host_lift on tc ingress there marks
 * it and redirects it to the NIC; bl_host_egress on the NIC fills in the barriers as of now and
 * picks the queue. Until then the beacon promises nothing, so it does not matter which CPU it comes
 * from or how long it took. From there on it is like a beacon from the daemon's packet socket: a
 * message whose endpoint is no longer in flight has passed the same hook, the same qdisc and the
 * same queue before the lines in flight were read.
 *
 * bl0 must be up, since it is the host's only way for beacons then.
 *
 * Not here: the arithmetic of ticks (core/order/beacon_core.h). BPF side only.
 */
#ifndef BARLINE_HOST_BEACON_H
#define BARLINE_HOST_BEACON_H

#include "bpf/host/role.h"
#include <linux/pkt_cls.h>
#include "core/order/beacon_core.h"
#include "bpf/auth.h"
#include "bpf/bpf_util.h"
#include "core/wire_core.h"

/*
 * Returns when the pacer must look for a tick, CLOCK_MONOTONIC, ns; BL_DUE_NEVER: it sends no
 * beacons.
 */
static __always_inline __u64 bl_beat_next(void)
{
	__u32 zero = 0;
	const struct bl_beat *b = bpf_map_lookup_elem(&pace_beat, &zero);

	return b && BL_READ_ONCE(b->on) ? b->next_ns : BL_DUE_NEVER;
}

/**
 * bl_host_beat - turns the pacer's frame into a beacon if a tick is due at @now. Returns the
 * verdict, or -1 if the frame is unchanged.
 */
__attribute__((noinline)) int bl_host_beat(struct xdp_md *ctx, __u64 now)
{
	__u32 zero = 0;
	const struct bl_host_page *host = bpf_map_lookup_elem(&host_page, &zero);
	struct bl_pace_page *page = bpf_map_lookup_elem(&pace_page, &zero);
	const struct bl_clock *c = bpf_map_lookup_elem(&clock, &zero);
	struct bl_beat *b = bpf_map_lookup_elem(&pace_beat, &zero);

	if (!host || !page || !c || !b || !BL_READ_ONCE(b->on) || b->next_ns > now)
		return -1;
	if (!bl_clock_usable(c, now)) {
		b->next_ns = now + BL_BEAT_VOID_NS;
		return -1;
	}
	/* Where data raises no register, it replaces no beacon. */
	if (!bl_beat_serve(b, now, bl_clock_at(c, now),
			   bl_auth == BL_AUTH_STRICT ? b->sends : BL_READ_ONCE(host->sends)))
		return -1;
	bl_hdr_set_psn((struct bl_hdr *)(b->frame + sizeof(struct ethhdr)), b->psn);
	if (bpf_xdp_adjust_tail(ctx, (int)BL_BEACON_LEN - (int)bpf_xdp_get_buff_len(ctx)) ||
	    bpf_xdp_store_bytes(ctx, 0, b->frame, BL_BEACON_LEN) ||
	    bpf_redirect_map(&hold_tx, BL_TX_APP, XDP_ABORTED) != XDP_REDIRECT) {
		page->failed++;
		return bl_done_out(ctx, BL_HC_PACE, BL_R_REDIRECT_FAILED, BL_BEACON_LEN);
	}
	b->psn++;
	page->beacons++;
	return bl_done_beacon_out(ctx, BL_HC_PACE, BL_R_BEACON_PACED);
}

/*
 * Marks this host's beacon as it comes out of bl0 and redirects it to the NIC. Only the pacer's
 * beacons get here: bl_host_xdp consumes those from the network, and what applications send leaves
 * by bl0. Everything else is for applications and passes.
 */
static __always_inline int bl_lift_beacon(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 zero = 0;
	const struct bl_host_cfg *host = bpf_map_lookup_elem(&host_cfg, &zero);
	const struct bl_hold_cfg *cfg = bpf_map_lookup_elem(&hold_cfg, &zero);
	const struct ethhdr *eth = data;
	const struct bl_hdr *h = (void *)(eth + 1);
	const struct bl_beacon *body = (void *)(h + 1);

	if (!host || !cfg || (void *)(body + 1) > end || eth->h_proto != BL_BE16(BL_ETHERTYPE) ||
	    h->opcode != BL_OPCODE_BYTE(BL_OP_BEACON) || body->node_id != BL_BE32(host->node_id)) {
		bl_count_frame(BL_HC_LIFT, BL_R_NOT_OURS, skb->len);
		return TC_ACT_OK;
	}
	skb->mark = host->beacon_mark;
	bl_count(BL_HC_LIFT, BL_R_BEACON_PACED);
	return (int)bpf_redirect(cfg->nic_ifindex, 0);
}

#endif
