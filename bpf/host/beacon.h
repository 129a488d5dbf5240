/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host's beacons, carried by the pacer: on its turn (bl_host_pace) the frame becomes a beacon
 * when a tick is due (beacon_core.h), before any data.
 *
 * It must not overtake what endpoints have sent, and XDP's way out of a NIC may: it goes past the
 * qdisc, and on most NICs by a transmit queue of its own. So the pacer's beacon takes the way that
 * everything ordered takes, from the top. Example: the pacer on CPU 0 sends the beacon into bl0d;
 * it comes out of bl0, in the same softirq; bl_host_lift on tc ingress there marks it and redirects
 * it to the NIC; and bl_host_egress on the NIC fills the barriers in, as of now, and picks the
 * queue. Up to there the beacon promises nothing, so nothing depends on which CPU it comes from or
 * how long it took. From there on it is what it was with the daemon's packet socket: a message
 * whose endpoint is not in flight any more has been through the same hook, into the same qdisc and
 * the same queue, before the in-flight page was read.
 *
 * bl0 must be up: it is the host's only way for beacons then. BPF side only.
 */
#ifndef BARLINE_HOST_BEACON_H
#define BARLINE_HOST_BEACON_H

#include "bpf/host/role.h"
#include <linux/pkt_cls.h>
#include "core/order/beacon_core.h"
#include "bpf/bpf_util.h"
#include "core/wire_core.h"

/* When the pacer must look for a tick. */
static __always_inline __u64 bl_beat_next(void)
{
	__u32 zero = 0;
	const struct bl_beat *b = bpf_map_lookup_elem(&pace_beat, &zero);

	return b && BL_READ_ONCE(b->on) ? b->next_ns : BL_DUE_NEVER;
}

/* A beacon, if a tick is due at @now. Returns the verdict on the frame, or -1: it is untouched. */
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
	if (!bl_beat_serve(b, now, bl_clock_at(c, now), BL_READ_ONCE(host->sends)))
		return -1;
	bl_hdr_set_psn((struct bl_hdr *)(b->frame + sizeof(struct ethhdr)), b->psn);
	if (bpf_xdp_adjust_tail(ctx, (int)BL_BEACON_LEN - (int)bpf_xdp_get_buff_len(ctx)) ||
	    bpf_xdp_store_bytes(ctx, 0, b->frame, BL_BEACON_LEN) ||
	    bpf_redirect_map(&hold_tx, BL_TX_APP, XDP_ABORTED) != XDP_REDIRECT) {
		page->failed++;
		return bl_done(BL_HC_PACE, BL_R_REDIRECT_FAILED);
	}
	b->psn++;
	page->beacons++;
	return bl_done(BL_HC_PACE, BL_R_BEACON_PACED);
}

/*
 * A frame has come out of bl0. This host's beacon is the pacer's: from the network none comes here
 * (bl_host_xdp keeps them), and what applications send leaves by bl0. Everything else is theirs.
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
		bl_count(BL_HC_LIFT, BL_R_NOT_OURS);
		return TC_ACT_OK;
	}
	skb->mark = host->beacon_mark;
	bl_count(BL_HC_LIFT, BL_R_BEACON_PACED);
	return (int)bpf_redirect(cfg->nic_ifindex, 0);
}

#endif
