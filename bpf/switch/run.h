/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one run of a switch program knows of its frame. BPF side only. */
#ifndef BARLINE_SWITCH_RUN_H
#define BARLINE_SWITCH_RUN_H

#include "bpf/role.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"

/* What one run of the program knows. */
struct run {
	struct bl_frame f;
	const struct bl_sw_cfg *cfg;
	struct bl_sw_lane *lane;
	__u32 in;  /* input port */
	__u32 out; /* output port */
	__u32 lane_no;
	__u64 ts, b, c; /* extended */
};

static __always_inline struct bl_sw_port *port_at(__u32 p)
{
	return bpf_map_lookup_elem(&sw_ports, &p);
}

/* port number of an interface, or -1 */
static __always_inline int port_of_ifindex(__u32 ifindex)
{
	__u32 *p = bpf_map_lookup_elem(&sw_ifindex, &ifindex);

	return p ? (int)*p - 1 : -1;
}

/* What an output writes as the hop, as it stands in the flags. */
static __always_inline __u32 output_hop_flag(const struct bl_sw_port *to)
{
	return (__u32)to->hop << 6;
}

#endif
