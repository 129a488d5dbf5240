// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The member of a libxdp dispatcher that stands for barline's program (`xdp: dispatcher`). The
 * dispatcher of an interface calls its members in the order of their priorities, and the next one
 * only if the one before has passed the frame.
 *
 * Example: xdp-filter (priority 10) and barline are on eth0. The dispatcher calls bl_entry first,
 * which enters barline's program by a tail call. An ordered frame ends there. An ARP request is
 * passed, and xdp-filter gets it.
 *
 * Barline's program itself cannot be a member: a member is verified again with the dispatcher as
 * its target, and could not be replaced without a new dispatcher. As it is, an upgrade of barline
 * writes slot 0 of the array. If the slot is empty, every frame is passed.
 *
 * Not here: joining and leaving (loader/load/dispatcher.c).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xdp/xdp_helpers.h>

/* Libxdp reads this from the types of its members: they are called in ascending order. */
struct {
	__uint(priority, 5);
	__uint(XDP_PASS, 1);
} XDP_RUN_CONFIG(bl_entry);

/* One slot. The pin links/xdp-IFNAME of the node holds the array. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} entry SEC(".maps");

/*
 * The loader tells libxdp that this takes frames of several buffers: the dispatcher takes them if
 * all its members do. SEC("xdp.frags") would give the flag to the member itself, where the kernel
 * wants the dispatcher to have it.
 */
SEC("xdp")
int bl_entry(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &entry, 0);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
