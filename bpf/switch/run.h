/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one run of a switch program knows of its frame, and the lookups of ports. BPF side only.
 *
 * Example: a DATA frame arrives on port 2, whose lane is 1. in = 2 and lane_no = 1; parsing fills
 * f, barrier.h extends the header's 48-bit times into ts, b and c, and route.h sets out = 5.
 *
 * Not here: the host's struct run, which is another struct (bpf/host/run.h), and struct lane_scan,
 * which barrier.h passes to callbacks.
 */
#ifndef BARLINE_SWITCH_RUN_H
#define BARLINE_SWITCH_RUN_H

#include "bpf/role.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"

/**
 * struct run - one run of a switch program. Its address, and those of its fields, go to inlined
 * functions only, so that the compiler can keep the fields in registers and knows the opcode of a
 * frame that bl_parse_plain() accepted. A helper that gets &r->in as its key ends that for the
 * whole structure; the functions below have the key in a variable of their own.
 */
struct run {
	struct bl_frame f;           /* the parsed headers */
	const struct bl_sw_cfg *cfg; /* value 0 of "sw_cfg" */
	struct bl_sw_lane *lane;     /* entry lane_no of "sw_lanes" */
	__u32 in;                    /* input port */
	__u32 out;                   /* output port */
	__u32 lane_no;               /* this port's lane; 0 without single_writer */
	__u64 ts, b, c;              /* the header's times extended to 64 bits, bus time, ns */
};

/* Returns port @p, or NULL. */
static __always_inline struct bl_sw_port *port_at(__u32 p)
{
	return bpf_map_lookup_elem(&sw_ports, &p);
}

/* Return what each port, or lane, has in that map, or NULL. */
static __always_inline struct bl_port_regs *regs_of(__u32 p)
{
	return bpf_map_lookup_elem(&sw_regs, &p);
}

static __always_inline struct bl_quotas *quotas_of(__u32 p)
{
	return bpf_map_lookup_elem(&sw_quotas, &p);
}

static __always_inline struct bl_carried *carried_by(__u32 p)
{
	return bpf_map_lookup_elem(&sw_carried, &p);
}

static __always_inline struct bl_sw_lane *lane_at(__u32 lane_no)
{
	return bpf_map_lookup_elem(&sw_lanes, &lane_no);
}

/* Returns the port of an interface, or -1. */
static __always_inline int port_of_ifindex(__u32 ifindex)
{
	__u32 *p = bpf_map_lookup_elem(&sw_ifindex, &ifindex);

	return p ? (int)*p - 1 : -1;
}

/* Returns the hop that an output writes, in its place in the header's flags. */
static __always_inline __u32 output_hop_flag(const struct bl_sw_port *to)
{
	return (__u32)to->hop << 6;
}

#endif
