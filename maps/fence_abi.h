/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The controller's fences on their way to the registers of a node (1Pipe section 5.2;
 * docs/reliable.md): freeze an input, bar an output, resume an input.
 *
 * The daemon runs the program bl_fence, which compares the fence's epoch with the highest epoch of
 * this node, writes the slot of the port, raises the generation and invalidates the lanes' clock
 * readings. Each lane therefore reads the clock before its next frame, finds a generation that it
 * does not know, and applies the slots of its ports. The registers keep a single writer.
 *
 * A slot describes the desired state, not an action, so a lane that applies it late or twice ends
 * in the same state. Example: port 3 has died 7 times and joined again; FREEZE writes freeze = 8.
 * The lane finds the port's death count at 7, freezes its registers and counts death 8. If the port
 * fell silent in the meantime, its count is 8 already and there is nothing left to do. RESUME of
 * death 8 writes resume = 8: an input that has been frozen since death 8 is resumed.
 *
 * The maps keep "orders" in their pinned names, an older word for fences.
 */
#ifndef BARLINE_FENCE_ABI_H
#define BARLINE_FENCE_ABI_H

#include <linux/types.h>

#define BL_MAP_EPOCH       "epoch"       /* array of one struct bl_epoch */
#define BL_MAP_SW_ORDERS   "sw_orders"   /* array: port -> struct bl_fence_slot */
#define BL_MAP_SW_LIVES    "sw_lives"    /* array: port -> struct bl_life */
#define BL_MAP_HOST_ORDERS "host_orders" /* array of one struct bl_fence_slot: the NIC */

/**
 * struct bl_epoch - value 0 of "epoch". Written only by the program bl_fence.
 */
struct bl_epoch {
	__u64 epoch; /* highest epoch that this node has received; 0: none */
	/*
	 * Number of times that any slot was written. Pairs with @orders of struct bl_sw_lane and of
	 * struct bl_host_page: the writer stores the slots before the generation, and a lane reads
	 * the generation before the slots.
	 */
	__u64 generation;
};
_Static_assert(sizeof(struct bl_epoch) == 16, "ABI");

/**
 * struct bl_fence_slot - the desired state of one port. Written by the program bl_fence, read by
 * the lane that owns the port.
 */
struct bl_fence_slot {
	__u32 freeze; /* freeze the input if it has died less often than this. 0: never sent */
	__u32 resume; /* resume what is frozen since this death. 0: never sent */
	__u8 barred;  /* 1: the input does not join C's minimum; the output promises no C */
	__u8 drop;    /* @barred at the time of @resume: the resumed input leaves C's minimum */
	/*
	 * @barred at the time of @freeze: an input that joins C because it is no longer barred is
	 * not frozen.
	 */
	__u8 shut;
	/*
	 * 1: nothing is known to be behind this port, so C no longer waits for it (BL_REG_AWAITED).
	 * The loader clears it before it creates the registers anew.
	 */
	__u8 empty;
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_fence_slot) == 16, "ABI");

/**
 * struct bl_life - what is known of one input: value of "sw_lives", and a field of struct
 * bl_host_page. Written by the CPU that the port is steered to; read by user space without a lock.
 */
struct bl_life {
	__u32 neighbour; /* node id in the last beacon received; 0: no beacon yet */
	__u32 death;     /* how often the input was frozen: by silence or by a fence */
	__u32 policy;    /* of the neighbour's last beacon, as in struct bl_beacon */
	/* epoch of keys in that beacon, whether it was checked or not; 0: it carries no tag */
	__u32 auth;
};
_Static_assert(sizeof(struct bl_life) == 16, "ABI");

/* The kinds of fences, and the fields of struct bl_fence_arg that each one uses. */
enum bl_fence_kind {
	BL_FENCE_RAISE,  /* only raises the epoch */
	BL_FENCE_FREEZE, /* freezes @port if it has died less than @death times */
	BL_FENCE_BAR,    /* bars exactly the ports in @barred */
	BL_FENCE_RESUME, /* resumes what is frozen at @port since @death */
	BL_FENCE_AGAIN,  /* only makes all lanes read the clock */
	BL_FENCE_EMPTY   /* C no longer waits for @port */
};

/**
 * struct bl_fence_arg - argument and result of one run of bl_fence. Written by the daemon; @result
 * and @generation are written by the program.
 */
struct bl_fence_arg {
	__u64 epoch; /* of the controller that sends the fence */
	__u32 kind;  /* enum bl_fence_kind */
	__u32 port;  /* a host's NIC is port 0 */
	__u32 death; /* see struct bl_life */
	/*
	 * 0; -ESTALE: old epoch; -ERANGE: epoch too far above the highest one; -ENOENT: no such
	 * port or another death; -EINVAL: unknown kind
	 */
	__s32 result;
	/* current one; a lane whose @orders has reached it has applied the fence */
	__u64 generation;
	__u64 barred[4]; /* bit p % 64 of word p / 64: port p */
};
_Static_assert(sizeof(struct bl_fence_arg) == 64, "ABI");

#endif
