/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PL2 on a switch: what is promised on each port (PL2 sections 2, D.1 and D.2).
 *
 * The paper counts timeslots of one full frame. Here they are counted in byte times of the link
 * (core/length_core.h), so that a burst of 20 ACKs does not take 20 full slots: a slot is
 * BL_RSV_SLOT_BYTES, and the bitmap allocator alone rounds up to whole slots. All bytes below are
 * byte times.
 *
 * Three allocators (DESIGN 4):
 *   two-counter  the paper's Algorithm 2: bytes promised and not yet seen per input and per output;
 * RSV adds, data subtracts. joint        both counters raised to the common slot in one critical
 * section. They are times (when the port is free), so that nobody has to subtract. bitmap first run
 * of free slots that input and output have in common, in a window that slides with time.
 */
#ifndef BARLINE_RESERVE_ABI_H
#define BARLINE_RESERVE_ABI_H

#include <stddef.h>
#include <linux/bpf.h>
#include "maps/length_abi.h"
#include "maps/switch_abi.h"

#define BL_MAP_RSV_CFG   "rsv_cfg"
#define BL_MAP_RSV       "rsv"
#define BL_MAP_RSV_PAIRS "rsv_pairs" /* array, key in << pair_shift | out */

/* clang-format off */
#define BL_ALLOCATORS(X) \
	X(TWO_COUNTER, "two-counter") \
	X(JOINT, "joint") \
	X(BITMAP, "bitmap")
/* clang-format on */
#define BL_ALLOC_ENUM(sym, name) BL_ALLOC_##sym,
enum bl_allocator { BL_ALLOCATORS(BL_ALLOC_ENUM) BL_ALLOC_COUNT };
#undef BL_ALLOC_ENUM

#define BL_RSV_SLOT_BYTES BL_WIRE_FULL
/* the window: the word of 64 slots that is passing and the seven after it */
#define BL_RSV_WORDS    8
#define BL_RSV_RUN_MAX  32         /* slots of one burst; 16 frames of 1522 bytes take 17 */
#define BL_RSV_PAIR_MAX (1U << 30) /* bytes promised to one pair at most */

/**
 * struct bl_rsv_cfg - value 0 of "rsv_cfg". Written by the loader and by `barline admission set`;
 *the program reads it.
 * @on: 1: RSVs are answered, and data that has no promise is refused (but for @outside ports, and
 *classes that are never held).
 * @allocator: enum bl_allocator; may change at run time: promises of the old one lapse by time.
 * @ns_q20: nanoseconds per byte, times 2^20, of the ports' rate less the share kept for traffic
 *from outside the rack.
 * @limit_bytes: largest demand; the bitmap takes no more than BL_RSV_RUN_MAX slots at once.
 * @refuse_ns: PL2's T as time: an unsolicited burst passes if the wait would be at most this long.
 * @far_ns: an RSV whose slot would be further away is refused (the window of the bitmap; a sane
 *bound for the others).
 * @lapse_ns: a promise that was not used that long after its slot is taken back.
 * @overlap_bytes: two-counter: by so much a burst may begin before all that was promised at both
 *	ports, and what waits in the output's queue, has gone.
 * @pair_shift: log2 of the ports that "rsv_pairs" has room for.
 */
struct bl_rsv_cfg {
	__u32 on;
	__u32 allocator;
	__u32 ns_q20;
	__u32 limit_bytes;
	__u64 refuse_ns;
	__u64 far_ns;
	__u64 lapse_ns;
	__u32 pair_shift;
	__u32 overlap_bytes;
};
_Static_assert(sizeof(struct bl_rsv_cfg) == 48, "ABI");

/**
 * struct bl_rsv_side - one direction of one port.
 * @bytes: promised and not yet seen; two-counter's counter.
 * @free_ns: joint: when the port is free.
 * @bits: bitmap: bit s % 64 of word s / 64 % BL_RSV_WORDS is slot s, which begins at s times the
 *slot's time of CLOCK_MONOTONIC; 1: promised. A ring, so that nothing is shifted when time goes on.
 *@base: s / 64 of the oldest word; words before it were cleared for those to come.
 *
 * @bytes is kept by every allocator (it is the sum over the port's pairs), so that a change of
 *allocator at run time finds it right.
 */
struct bl_rsv_side {
	__u64 bytes;
	__u64 free_ns;
	__u64 base;
	__u64 bits[BL_RSV_WORDS];
};

/**
 * struct bl_rsv_port - one port. @outside: 1: leads out of the rack; what comes from there needs no
 *promise.
 * @asked_ns: CLOCK_MONOTONIC when the last RSV came in here; 0: never. Its host has policy pl2
 *then, and what it sends without a promise is refused (bl_rsv_apart()). Written by the port's CPU.
 * @sweep: next input whose pair with this output is looked at for a lapse.
 * @granted, @used, @lapsed, @released: bytes; granted = used + lapsed + released + the sum over
 *this input's pairs, always.
 * @grants, @refused: RSVs.
 */
struct bl_rsv_port {
	struct bl_rsv_side in;
	struct bl_rsv_side out;
	__u32 outside;
	__u32 sweep;
	__u64 granted;
	__u64 used;
	__u64 lapsed;
	__u64 released;
	__u64 grants;
	__u64 refused;
	__u64 asked_ns;
};
_Static_assert(sizeof(struct bl_rsv_port) == 240, "ABI");

/**
 * struct bl_rsv - value 0 of "rsv": all ports under one lock, for a reservation concerns two of
 * them and happens once.
 * @lock: guards @port and the map "rsv_pairs".
 */
struct bl_rsv {
	struct bpf_spin_lock lock;
	__u32 reserved[15];
	struct bl_rsv_port port[BL_SW_PORTS_MAX];
};
_Static_assert(offsetof(struct bl_rsv, port) == 64, "ABI");

/**
 * struct bl_rsv_pair - what is promised from one input to one output.
 * @bytes: promised and not yet seen. @seq: of the last RSV that was granted; @valid: the same @seq
 *and @asked again get the same answer and are promised nothing more, until @lapse_ns; 0 also once
 *the promise was taken back.
 * @flags: BL_GRT_* of the last answer. @in_ns, @out_ns: CLOCK_MONOTONIC of the slots that it named.
 *@slots: how many the bitmap took for it; 0: another allocator.
 * @early: bytes of an unsolicited burst that may still pass (they count in @bytes too).
 * @lapse_ns: when @bytes lapses. @asked: demand of the last RSV.
 */
struct bl_rsv_pair {
	__u32 bytes;
	__u32 early;
	__u32 seq;
	__u32 asked;
	__u8 flags;
	__u8 valid;
	__u8 slots;
	__u8 zero[5];
	__u64 in_ns;
	__u64 out_ns;
	__u64 lapse_ns;
};
_Static_assert(sizeof(struct bl_rsv_pair) == 48 && offsetof(struct bl_rsv_pair, in_ns) == 24, "AB"
											      "I");

#endif
