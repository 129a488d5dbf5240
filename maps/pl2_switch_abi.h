/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PL2 on a switch: the time that is promised on each port (PL2 sections 2, D.1 and D.2).
 *
 * The paper counts timeslots of one full frame. This implementation counts byte times of the link
 * (core/length_core.h), so that a burst of 20 ACKs does not take 20 full slots. A slot is
 * BL_RSV_SLOT_BYTES byte times, and only the bitmap allocator rounds up to whole slots. All fields
 * called bytes are byte times.
 *
 * There are three allocators:
 *
 *   two-counter  the paper's Algorithm 2: bytes promised and not yet seen, per input and per
 *   output.
 *                An RSV adds to both counters and data subtracts from both.
 *   joint        both counters are raised to the common slot in one critical section. They are
 *   times
 *                (when the port is free), so nothing has to be subtracted.
 *   bitmap       the first run of free slots that input and output have in common, in a window that
 *                slides with time.
 *
 * core/pl2/pl2_switch_core.h has the rules and an example in numbers. The maps keep "rsv" (for
 * reservations) in their pinned names.
 */
#ifndef BARLINE_RESERVE_ABI_H
#define BARLINE_RESERVE_ABI_H

#include <stddef.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include "maps/length_abi.h"
#include "maps/switch_abi.h"

#define BL_MAP_RSV_CFG   "rsv_cfg"   /* array of one struct bl_rsv_cfg */
#define BL_MAP_RSV       "rsv"       /* array of one struct bl_rsv */
#define BL_MAP_RSV_PAIRS "rsv_pairs" /* array: in << pair_shift | out -> struct bl_rsv_pair */

/* X(SYMBOL, "name"): the allocators. Append only: the number is in "rsv_cfg". */
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
/* the window: the word of 64 slots that is passing and the seven words after it */
#define BL_RSV_WORDS    8
#define BL_RSV_RUN_MAX  32         /* slots of one burst; 16 frames of 1522 bytes take 17 */
#define BL_RSV_PAIR_MAX (1U << 30) /* bytes promised to one pair at most */

/**
 * struct bl_rsv_cfg - value 0 of "rsv_cfg". Written by the loader and by `barline admission set`;
 * the program only reads it.
 */
struct bl_rsv_cfg {
	/*
	 * 1: RSVs are answered, and data without a promise is refused, except from @outside ports
	 * and in classes that are never held.
	 */
	__u32 on;
	/* enum bl_allocator; may change at run time: promises of the old one lapse by time */
	__u32 allocator;
	/* ns per byte, times 2^20, at the ports' rate less the share for traffic from outside */
	__u32 ns_q20;
	/* largest demand; the bitmap accepts no more than BL_RSV_RUN_MAX slots at once */
	__u32 limit_bytes;
	/* PL2's T as time: an unsolicited burst passes if the wait is at most this long */
	__u64 refuse_ns;
	/* an RSV with a longer wait is refused: the window of the bitmap, a bound for the others */
	__u64 far_ns;
	__u64 lapse_ns;   /* a promise that is not used this long after its slot is taken back */
	__u32 pair_shift; /* log2 of the number of ports that "rsv_pairs" has room for */
	/*
	 * two-counter: a burst may begin this many bytes before everything that was promised at
	 * both ports, and everything in the output's queue, has left.
	 */
	__u32 overlap_bytes;
};
_Static_assert(sizeof(struct bl_rsv_cfg) == 48, "ABI");

/**
 * struct bl_rsv_side - one direction of one port. Protected by struct bl_rsv.lock.
 */
struct bl_rsv_side {
	/*
	 * Bytes promised and not yet seen: the counter of two-counter. Every allocator keeps it (it
	 * is the sum over the port's pairs), so that the allocator can change at run time.
	 */
	__u64 bytes;
	__u64 free_ns; /* joint: CLOCK_MONOTONIC from which the port is free */
	__u64 base;    /* bitmap: s / 64 of the oldest word; the words before it were cleared */
	/*
	 * bitmap: bit s % 64 of word s / 64 % BL_RSV_WORDS is slot s, which begins at s times the
	 * slot's time of CLOCK_MONOTONIC; 1: promised. A ring, so that time shifts nothing.
	 */
	__u64 bits[BL_RSV_WORDS];
};

/**
 * struct bl_rsv_port - one port. Protected by struct bl_rsv.lock, except @asked_ns. For each input,
 * @granted = @used + @lapsed + @released + the sum over its pairs, always.
 */
struct bl_rsv_port {
	struct bl_rsv_side in;  /* the port as an input */
	struct bl_rsv_side out; /* the port as an output */
	__u32 outside;          /* 1: leads out of the rack; data from there needs no promise */
	__u32 sweep;            /* next input whose pair with this output is checked for a lapse */
	__u64 granted;          /* bytes promised */
	__u64 used;             /* bytes of data that used a promise */
	__u64 lapsed;           /* bytes taken back since they were not used in time */
	__u64 released;         /* bytes taken back since the receiver released them */
	__u64 grants;           /* RSVs granted */
	__u64 refused;          /* RSVs refused */
	/*
	 * CLOCK_MONOTONIC of the last RSV received here; 0: none. A host that sends RSVs has policy
	 * pl2, so its data without a promise is refused (bl_rsv_apart()). Written by the port's CPU
	 * without the lock.
	 */
	__u64 asked_ns;
};
_Static_assert(sizeof(struct bl_rsv_port) == 240, "ABI");

/**
 * struct bl_rsv - value 0 of "rsv": all ports under one lock, since a reservation changes two ports
 * in one step. @lock protects @port and the map "rsv_pairs".
 */
struct bl_rsv {
	struct bpf_spin_lock lock;
	__u32 reserved[15];
	struct bl_rsv_port port[BL_SW_PORTS_MAX]; /* by port number */
};
_Static_assert(offsetof(struct bl_rsv, port) == 64, "ABI");

/**
 * struct bl_rsv_pair - the promise from one input to one output. Protected by struct bl_rsv.lock.
 */
struct bl_rsv_pair {
	__u32 bytes; /* promised and not yet seen */
	__u32 early; /* bytes of an unsolicited burst that may still pass; part of @bytes */
	__u32 seq;   /* sequence number of the last RSV that was granted */
	__u32 asked; /* demand of that RSV, bytes */
	__u8 flags;  /* BL_GRT_* of its answer */
	/*
	 * 1: an RSV with the same @seq and @asked gets the same answer and no further promise,
	 * until @lapse_ns. 0: none was granted, or the promise was taken back.
	 */
	__u8 valid;
	__u8 slots; /* slots that the bitmap took for it; 0: another allocator */
	__u8 zero[5];
	__u64 in_ns;    /* CLOCK_MONOTONIC of the slot at the input, as answered */
	__u64 out_ns;   /* CLOCK_MONOTONIC of the slot at the output, as answered */
	__u64 lapse_ns; /* CLOCK_MONOTONIC at which @bytes lapses */
};
_Static_assert(sizeof(struct bl_rsv_pair) == 48 && offsetof(struct bl_rsv_pair, in_ns) == 24, "AB"
											      "I");

#endif
