// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pacer (DESIGN 4): run by bpf_prog_test_run with live frames of BL_PACE_FRAME bytes, again and
 * again. Each turn goes to the next node's own program, which drops the frame if nothing is due,
 * else fills it and sends it. With three programs in "pace_progs", bl_pace_count = 3, and 2 in
 * bl_pace_more[1], the turns go 0, 1, 1, 1, 2, 0, ...
 *
 * A node has a turn for each link end that it paces, for a turn sends one frame at most. A lab's
 * switch sends as many frames as all its hosts together; with one turn in nine it lost a fifth of
 * its ports' time whenever the CPU was busy, and hosts lost none, so queues grew
 * (docs/design-notes.md).
 *
 * An entry that is empty costs a turn and nothing else. Who changes the entries needs not stop the
 * pacer: bl_pace_count is raised last and lowered first.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/pace_abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, BL_PACE_PROGS);
	__type(key, __u32);
	__type(value, __u32);
} pace_progs SEC(".maps");

/*
 * Entries in use, and turns in a row that an entry has beyond its first; written by the loader. The
 * turn, and how many it has had in this row, written by the program: one thread runs one copy of
 * this object.
 */
__u32 bl_pace_count, bl_pace_turn, bl_pace_had;
__u8 bl_pace_more[BL_PACE_PROGS];

SEC("xdp")
int bl_pacer(struct xdp_md *ctx)
{
	__u32 turn = bl_pace_turn;

	if (bl_pace_had < bl_pace_more[turn & (BL_PACE_PROGS - 1)]) {
		bl_pace_had++;
	} else {
		bl_pace_had = 0;
		bl_pace_turn = turn + 1 < bl_pace_count ? turn + 1 : 0;
	}
	bpf_tail_call(ctx, &pace_progs, turn);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
