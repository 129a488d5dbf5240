// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pacer's dispatcher. A thread of the daemon runs it again and again by bpf_prog_test_run, with
 * live frames of BL_PACE_FRAME bytes. Each turn goes by a tail call to the next node's own program,
 * which drops the frame if nothing is due, or else fills it and sends it.
 *
 * Example: with three programs in "pace_progs", bl_pace_count = 3, and bl_pace_more[1] = 2, the
 * turns go to 0, 1, 1, 1, 2, 0, ...
 *
 * A node has one turn for each link end that it paces, because a turn sends at most one frame. A
 * lab's switch sends as many frames as all its hosts together. With one turn in nine it lost a
 * fifth of its ports' time whenever the CPU was busy, while hosts lost none, and queues grew
 * (docs/design-notes.md).
 *
 * An empty entry costs a turn and nothing else. The entries can be changed while the pacer runs:
 * bl_pace_count is raised last and lowered first.
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
 * bl_pace_count: entries in use. bl_pace_more: turns in a row that an entry has beyond its first.
 * Both are written by the loader. bl_pace_turn: the entry whose turn it is. bl_pace_had: extra
 * turns that it has had in this row. Both are written by the program; one thread runs one copy of
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
