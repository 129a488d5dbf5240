/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The controller's orders at a switch: bl_fence takes one in (maps/fence_abi.h), bl_obey() is how a
 * lane's tick obeys. BPF side only.
 *
 * Example: ports 0 and 1 on lane 0, port 3 on lane 1, FREEZE of port 3. bl_fence writes slot 3,
 * generation 6 becomes 7, and both lanes lose their limit_ns. Whatever comes next on lane 1, of
 * whichever port, reads the clock; its generation is 6, so it looks at the slots of its ports,
 * holds port 3's registers, and says 7. Lane 0 finds nothing that concerns it, and says 7 with its
 * next frame.
 */
#ifndef BARLINE_SWITCH_ORDER_H
#define BARLINE_SWITCH_ORDER_H

#include "core/order/barrier_core.h"
#include "bpf/fence_util.h"

/*
 * Make port @p's registers what its slot says. Returns 1 if its leaf is another one now. A global
 * function, for the verifier's sake and for the stack's: who called it has the leaf changed, which
 * takes some, too.
 */
__attribute__((noinline)) int bl_obey(__u32 p)
{
	struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &p);
	struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &p);
	const struct bl_fence_slot *o = bpf_map_lookup_elem(&sw_orders, &p);
	struct bl_pair leaf;

	if (!regs || !life || !o)
		return 0;
	return bl_port_apply_fence(regs, life, o, &leaf) & BL_A_LEAF ? 1 : 0;
}

/* Not one struct with the array: its offsets would have to be known. */
struct barring {
	__u64 bits;
	__u32 first;
};

static long bar_port(__u32 i, struct barring *b)
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

static __always_inline void bar_64(__u64 bits, __u32 first)
{
	struct barring b = { .bits = bits, .first = first };

	bpf_loop(64, bar_port, &b, 0);
}

static __always_inline int order_port(struct bl_fence_arg *a)
{
	__u32 p = a->port;
	struct bl_fence_slot *o = bpf_map_lookup_elem(&sw_orders, &p);
	const struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &p);
	const struct bl_sw_port *port = bpf_map_lookup_elem(&sw_ports, &p);

	if (!o || !life || !port || !port->ifindex) {
		a->result = -BL_ENOENT;
		return 0;
	}
	return bl_fence_write(a, o, life);
}

SEC("syscall")
int bl_fence(struct bl_fence_arg *a)
{
	__u32 zero = 0, l, key, written = 0;
	struct bl_epoch *e = bpf_map_lookup_elem(&epoch, &zero);
	struct bl_sw_lane *lane;

	if (!e || !bl_fence_may(a, e, BL_COUNTS_UNKNOWN))
		return 0;
	switch (a->kind) {
	case BL_FENCE_FREEZE:
	case BL_FENCE_RESUME:
	case BL_FENCE_EMPTY:
		written = order_port(a);
		break;
	case BL_FENCE_BAR:
		bar_64(a->barred[0], 0);
		bar_64(a->barred[1], 64);
		bar_64(a->barred[2], 128);
		bar_64(a->barred[3], 192);
		written = 1;
	}
	if (!bl_fence_done(a, e, written))
		return 0;
	for (l = 0; l < BL_LANES_MAX; l++) {
		key = l;
		lane = bpf_map_lookup_elem(&sw_lanes, &key);
		if (lane)
			BL_WRITE_ONCE(lane->limit_ns,
				      0); /* a lane that is reading the clock may write it once
					     more: bl_fence_*() in loader/order/fence.c looks */
	}
	return 0;
}

#endif
