/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that leave by a port of the switch without its XDP program, by way of the kernel, which
 * routes and bridges too. A receiver takes the barriers of an ordered frame for those of the
 * switch. So such frames are dropped here, except those that the program itself gave to the kernel
 * (to_kernel), with barriers that promise nothing.
 *
 * The program is bypassed when it is not there: when a link goes down, its driver may detach the
 * program first and pass what is still in its ring to the kernel (veth does), or the program is
 * detached from one port by hand. Example (2026-11): the link of h4 was cut, and some 20 of its
 * frames were bridged to h1, h2 and h3 with the barriers of h4. Their C passed a message of h3 that
 * waited for its ACKs; h1 refused it as late, and h2 had it.
 *
 * Not here: XDP's own frames, which do not pass this hook. BPF side only.
 */
#ifndef BARLINE_SWITCH_GUARD_H
#define BARLINE_SWITCH_GUARD_H

#include "bpf/role.h"
#include <linux/pkt_cls.h>
#include "core/wire_core.h"
#include "core/order/hop_core.h"
#include "bpf/bpf_util.h"
#include "bpf/switch/run.h"

/*
 * Returns whether @f's barriers promise nothing to anybody. Those of a beacon always promise
 * something.
 */
static __always_inline int frame_promises_nothing(const struct bl_frame *f)
{
	struct bl_now now;

	bl_read_clock(&now);
	return now.ok && f->opcode != BL_OP_BEACON &&
	       bl_hop_old(bl_ext48(f->b, now.bus), bl_ext48(f->c, now.bus), now.bus);
}

/* Drops an ordered frame that bypassed the switch's program. Returns the tc verdict. */
static __always_inline int guard_egress_frame(struct __sk_buff *skb)
{
	__u32 want = sizeof(struct ethhdr) + 4 + sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
		     sizeof(struct bl_hdr),
	      zero = 0;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	int port = port_of_ifindex(skb->ifindex);
	struct bl_frame f = {};
	enum bl_reason why;

	if (!cfg || port < 0)
		return TC_ACT_UNSPEC; /* As at ingress: not a port of this switch. */
	if (want > skb->len)
		want = skb->len;
	if ((void *)(long)skb->data + want > (void *)(long)skb->data_end)
		bpf_skb_pull_data(skb, want);
	why = bl_parse_whole((void *)(long)skb->data, (void *)(long)skb->data_end, skb->len,
			     cfg->port_base, cfg->port_count, &f);
	if (why == BL_R_NOT_OURS || (why == BL_R_NONE && frame_promises_nothing(&f)))
		return TC_ACT_UNSPEC;
	bl_count_frame((__u32)port, BL_R_BYPASSED, skb->len);
	if (BL_CAPTURING())
		bl_capture_skb(skb, (__u32)port, BL_R_BYPASSED, BL_CAPTURE_OUT);
	return TC_ACT_SHOT;
}

#endif
