// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pacer (maps/pace_abi.h): each turn asks the next node of "pace_progs".
 *
 * Example, 3 nodes: the turns go to 1, 2, 0, 1, ... A node's program ends the turn with XDP_DROP (nothing was due) or XDP_REDIRECT (the frame is what it sends). An empty
 * place, in the moment when the loader moves nodes, drops.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "../maps/pace_abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, BL_PACE_PROGS);
	__type(key, __u32);
	__type(value, __u32);
} pace_progs SEC(".maps");

__u32 nprogs; /* written by the loader: places 0 to nprogs - 1 are taken */
__u32 turn;   /* one thread runs this object */

SEC("xdp")
int bl_pacer(struct xdp_md *ctx)
{
	__u32 t = turn + 1;

	if (t >= nprogs)
		t = 0;
	turn = t;
	bpf_tail_call(ctx, &pace_progs, t);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
