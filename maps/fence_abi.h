/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the controller orders, on its way to the registers (1Pipe 5.2; docs/reliable.md): freeze an
 * input, bar an output, resume an input.
 *
 * The program bl_fence, run by the daemon, compares the order's epoch with the highest one of this
 * node, writes the port's slot, raises the generation and takes the lanes' clock readings away. So
 * each lane reads the clock before its next frame, finds a generation that it does not know, and
 * obeys the slots of its ports. Registers stay with one writer.
 *
 * A slot says how things are to be, and not what to do: a lane that sees it late, or twice, comes
 * to the same. Example: port 3 has died 7 times and joined again; FREEZE writes freeze = 8. The
 * lane finds its port's death at 7: its registers stand still from now on, and it is 8. Was the
 * port silent meanwhile, it is 8 already, and nothing is left to do. RESUME of death 8 writes
 * resume = 8: who stands still since death 8 does so no more.
 */
#ifndef BARLINE_FENCE_ABI_H
#define BARLINE_FENCE_ABI_H

#include <linux/types.h>

#define BL_MAP_EPOCH       "epoch"
#define BL_MAP_SW_ORDERS   "sw_orders"   /* one entry per port */
#define BL_MAP_SW_LIVES    "sw_lives"    /* one entry per port */
#define BL_MAP_HOST_ORDERS "host_orders" /* one entry: the NIC */

/**
 * struct bl_epoch - value 0 of "epoch". Written by the program bl_fence only.
 * @epoch: the highest one that this node ever heard.
 * @generation: of the slots: how often any was written. Pairs with struct bl_sw_lane's and struct
 * bl_host_page's @orders: slots, generation; generation, slots.
 */
struct bl_epoch {
	__u64 epoch;
	__u64 generation;
};
_Static_assert(sizeof(struct bl_epoch) == 16, "ABI");

/**
 * struct bl_fence_slot - how one input is to be. Written by the program bl_fence only.
 * @freeze: it is to have died this often (struct bl_life); one that has not is frozen. 0: never
 *ordered.
 * @resume: what stands still since this death is to do so no more. 0: never ordered.
 * @barred: 1: the input does not join C's minimum, and the output promises no C.
 * @drop: @barred as it was when @resume was ordered: the input leaves C's minimum with it.
 * @empty: 1: nobody is behind this port as far as anybody knows: C does not wait for it any more
 *	(BL_REG_AWAITED). The loader clears it before it makes registers anew.
 * @shut: @barred as it was when @freeze was ordered: what joins C because it is not any more does
 *not stand still.
 */
struct bl_fence_slot {
	__u32 freeze;
	__u32 resume;
	__u8 barred;
	__u8 drop;
	__u8 shut;
	__u8 empty;
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_fence_slot) == 16, "ABI");

/**
 * struct bl_life - of one input: value of "sw_lives", and a field of struct bl_host_page. Written
 * by the CPU that the port is homed to.
 * @neighbour: node id in the last beacon that came in; 0: none came.
 * @death: how often it has died: began to stand still, of itself or by order.
 * @policy: of the neighbour, as its last beacon had it (struct bl_beacon).
 */
struct bl_life {
	__u32 neighbour;
	__u32 death;
	__u32 policy;
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_life) == 16, "ABI");

/*
 * RAISE: nothing but the epoch. FREEZE: bl_fence_arg's @port to @death. BAR: exactly the ports in
 * @barred. RESUME: what stands still at @port since @death. AGAIN: nothing but that lanes read the
 * clock. EMPTY: @port is not awaited any more.
 */
enum bl_fence_kind {
	BL_FENCE_RAISE,
	BL_FENCE_FREEZE,
	BL_FENCE_BAR,
	BL_FENCE_RESUME,
	BL_FENCE_AGAIN,
	BL_FENCE_EMPTY
};

/**
 * struct bl_fence_arg - what bl_fence is run with.
 * @epoch: of who orders. @kind: enum bl_fence_kind. @port, @death, @barred (bit p of word p / 64):
 * see there. A host's NIC is port 0.
 * @result: 0; -ESTALE: the epoch is old; -ENOENT: no such port, or another death; -EINVAL: no such
 * kind. @generation: the present one; a lane that knows it has obeyed.
 */
struct bl_fence_arg {
	__u64 epoch;
	__u32 kind;
	__u32 port;
	__u32 death;
	__s32 result;
	__u64 generation;
	__u64 barred[4];
};
_Static_assert(sizeof(struct bl_fence_arg) == 64, "ABI");

#endif
