// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pacer (DESIGN 4): run by bpf_prog_test_run with live frames of BL_PACE_FRAME bytes, again and again. Each turn goes to the next node's own program, which
 * drops the frame if nothing is due, else fills it and sends it. With three programs in "pace_progs" and bl_pace_count = 3 the turns go 0, 1, 2, 0, ...
 *
 * An entry that is empty costs a turn and nothing else. Who changes the entries needs not stop the pacer: bl_pace_count is raised last and lowered first.
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

/* Entries in use, written by the loader. The turn, written by the program: one thread runs one copy of this object. */
__u32 bl_pace_count, bl_pace_turn;

SEC("xdp")
int bl_pacer(struct xdp_md *ctx)
{
	__u32 turn = bl_pace_turn;

	bl_pace_turn = turn + 1 < bl_pace_count ? turn + 1 : 0;
	bpf_tail_call(ctx, &pace_progs, turn);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
