/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What leaves by a port of the switch past its XDP program: through the kernel, which forwards and
 * bridges too. Whoever gets an ordered frame takes its barriers for those of the switch. So none
 * may pass but those that the program itself gave to the kernel (to_kernel), with barriers that
 * promise nothing.
 *
 * They come past it when it is not there: when a link goes down its driver may take the program off
 * first and hand what is still in its ring to the kernel (veth does); somebody detaches it from one
 * port. Example, 2026-11: the link of h4 was cut, and some 20 of its frames were bridged to h1 to
 * h3 with the barriers of h4. Their C passed a message of h3 that waited for its ACKs, h1 refused
 * it as late, and h2 had it.
 *
 * XDP's own frames do not come this way. Included by switch.bpf.c. BPF side only.
 */
#ifndef BARLINE_SWITCH_GUARD_H
#define BARLINE_SWITCH_GUARD_H

#include "bpf/role.h"
#include <linux/pkt_cls.h>
#include "core/wire_core.h"
#include "core/order/hop_core.h"
#include "bpf/bpf_util.h"
#include "bpf/switch/run.h"

/* Whether @f's barriers promise nothing to anybody; a host's own are its clock's. */
static __always_inline int frame_promises_nothing(const struct bl_frame *f)
{
	struct bl_now now;

	bl_read_clock(&now);
	return now.ok && f->opcode != BL_OP_BEACON &&
	       bl_hop_old(bl_ext48(f->b, now.bus), bl_ext48(f->c, now.bus), now.bus);
}

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
		return TC_ACT_UNSPEC; /* as on the way in: not ours to judge */
	if (want > skb->len)
		want = skb->len;
	if ((void *)(long)skb->data + want > (void *)(long)skb->data_end)
		bpf_skb_pull_data(skb, want);
	why = bl_parse_whole((void *)(long)skb->data, (void *)(long)skb->data_end, skb->len,
			     cfg->port_base, cfg->port_count, &f);
	if (why == BL_R_NOT_OURS || (why == BL_R_NONE && frame_promises_nothing(&f)))
		return TC_ACT_UNSPEC;
	bl_count((__u32)port, BL_R_BYPASSED);
	return TC_ACT_SHOT;
}

#endif
