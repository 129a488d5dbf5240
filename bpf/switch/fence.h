/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The controller's fences at a switch: bl_fence takes a command in (maps/fence_abi.h), and
 * bl_obey_fence() is how a lane's tick applies it.
 *
 * Example: ports 0 and 1 are on lane 0, port 3 is on lane 1. FREEZE of port 3: bl_fence writes slot
 * 3, raises generation 6 to 7, and sets both lanes' limit_ns to 0. The next frame on lane 1, of
 * whichever port, therefore reads the clock. Its lane's generation is 6, so it applies the slots of
 * its ports, freezes port 3's registers, and notes 7. Lane 0 finds nothing that concerns its ports
 * and notes 7 with its next frame.
 *
 * Not here: validating commands (bpf/fence_util.h). BPF side only.
 */
#ifndef BARLINE_SWITCH_ORDER_H
#define BARLINE_SWITCH_ORDER_H

#include "bpf/role.h"
#include "core/order/barrier_core.h"
#include "bpf/fence_util.h"

/**
 * bl_obey_fence - makes port @p's registers what its slot says. A global function, for the verifier
 * and for the stack: the caller applies the changed leaf afterwards, which takes stack, too.
 * Returns 1 if the port's leaf has changed.
 */
__attribute__((noinline)) int bl_obey_fence(__u32 p)
{
	struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &p);
	struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &p);
	const struct bl_fence_slot *o = bpf_map_lookup_elem(&sw_orders, &p);
	struct bl_pair leaf;

	if (!regs || !life || !o)
		return 0;
	return bl_port_apply_fence(regs, life, o, &leaf) & BL_A_LEAF ? 1 : 0;
}

/**
 * struct port_bars - 64 ports to bar or not. Not one struct with the whole array, whose offsets
 * would have to be constant.
 */
struct port_bars {
	__u64 bits;  /* bit i: port first + i is barred */
	__u32 first; /* port of bit 0 */
};

/* Bars port @b->first + @i, or no longer. */
static long bar_port(__u32 i, struct port_bars *b)
{
	__u32 p = b->first + i;
	struct bl_fence_slot *o = bpf_map_lookup_elem(&sw_orders, &p);
	struct bl_sw_port *port = bpf_map_lookup_elem(&sw_ports, &p);

	if (!o || !port)
		return 1;
	o->barred = b->bits >> (i & 63) & 1;
	port->barred = o->barred;
	return 0;
}

/* Bars the 64 ports from @first on that have their bit in @bits, and no others of them. */
static __always_inline void bar_64_ports(__u64 bits, __u32 first)
{
	struct port_bars b = { .bits = bits, .first = first };

	BL_LOOP(64, bar_port, &b);
}

/* Writes command @a into its port's slot. Returns 1 if the slot has changed. */
static __always_inline int write_port_fence(struct bl_fence_arg *a)
{
	__u32 p = a->port;
	struct bl_fence_slot *o = bpf_map_lookup_elem(&sw_orders, &p);
	const struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &p);
	const struct bl_sw_port *port = bpf_map_lookup_elem(&sw_ports, &p);

	if (!o || !life || !port || !port->ifindex) {
		a->result = -BL_ENOENT;
		return 0;
	}
	return bl_fence_write_slot(a, o, life);
}

/** bl_fence - takes in one command of the controller; the daemon runs it. The answer is in @a. */
SEC("syscall")
int bl_fence(struct bl_fence_arg *a)
{
	__u32 zero = 0, l, key, written = 0;
	struct bl_epoch *e = bpf_map_lookup_elem(&epoch, &zero);
	struct bl_sw_lane *lane;

	if (!e || !bl_fence_validate(a, e, BL_COUNTS_UNKNOWN))
		return 0;
	switch (a->kind) {
	case BL_FENCE_FREEZE:
	case BL_FENCE_RESUME:
	case BL_FENCE_EMPTY:
		written = write_port_fence(a);
		break;
	case BL_FENCE_BAR:
		bar_64_ports(a->barred[0], 0);
		bar_64_ports(a->barred[1], 64);
		bar_64_ports(a->barred[2], 128);
		bar_64_ports(a->barred[3], 192);
		written = 1;
	}
	if (!bl_fence_publish(a, e, written))
		return 0;
	for (l = 0; l < BL_LANES_MAX; l++) {
		key = l;
		lane = bpf_map_lookup_elem(&sw_lanes, &key);
		/*
		 * A lane that is reading the clock may write limit_ns once more: bl_fence_*() in
		 * loader/order/fence.c checks that.
		 */
		if (lane)
			BL_WRITE_ONCE(lane->limit_ns, 0);
	}
	return 0;
}

#endif
