/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, between the core and the maps: frames of applications into flows and tokens into
 * data (top_tx.h), frames kept in case they get lost (top_keep.h), signals and data into the
 * receiver's table (top_rx.h), and the pacer's turns (top_pace.h). core/top/top_core.h has the
 * arithmetic; maps/top_host_abi.h has the example and says who writes what.
 *
 * Not here: TOP at the switch (bpf/switch/top.h). BPF side only.
 */
#ifndef BARLINE_HOST_TOP_H
#define BARLINE_HOST_TOP_H

#include "bpf/host/role.h"
#include "bpf/host/top_pace.h"
#include "bpf/host/top_rx.h"
#include "bpf/host/top_tx.h"

/**
 * bl_top_frame_in - handles a frame for bl0's address under policy top: a token, a signal, or data.
 * Returns the reason; BL_R_NONE: the frame, without its echo, is the application's.
 */
__attribute__((noinline)) int bl_top_frame_in(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct bl_top_hdr *h;
	struct bl_top_msg m;
	struct bl_frame_class l;
	__u32 v6, ends, len;

	if (bl_frame_class(data, end, &l) || l.l3_off != BL_TOP_IP4_OFF ||
	    (l.kind != BL_FRAME_IP4 && l.kind != BL_FRAME_IP6))
		return BL_R_NONE;
	v6 = l.kind == BL_FRAME_IP6;
	if (v6) {
		const struct ipv6hdr *ip = data + BL_TOP_IP4_OFF;

		if ((void *)(ip + 1) > end)
			return BL_R_NONE;
		ends = BL_TOP_IP4_OFF + sizeof(*ip) + BL_BE16(ip->payload_len);
	} else {
		const struct iphdr *ip = data + BL_TOP_IP4_OFF;

		if ((void *)(ip + 1) > end)
			return BL_R_NONE;
		ends = BL_TOP_IP4_OFF + BL_BE16(ip->tot_len);
	}
	if (l.proto != BL_UDP || l.dport != BL_TOP_PORT)
		return bl_top_data(ctx, ends, v6);
	if (v6) {
		h = data + BL_TOP_HDR6;
		len = ends - BL_TOP_HDR6;
	} else {
		h = data + BL_TOP_HDR4;
		len = ends - BL_TOP_HDR4;
	}
	BL_SEEN(h);
	if (ends > bpf_xdp_get_buff_len(ctx) || ends < BL_TOP_HDR4 + sizeof(*h) ||
	    bl_top_parse(h, end, len, &m))
		return BL_R_SIGNAL_BAD;
	if (m.op == BL_TOP_TOKEN)
		return bl_top_token_came(ctx, &m, v6);
	if (m.op == BL_TOP_LOSS)
		return bl_top_loss_came(&m);
	return bl_top_signal(ctx, &m, v6);
}

#endif
