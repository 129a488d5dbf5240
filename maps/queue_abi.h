/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues of whole frames in BPF maps: a host's hold queues (hold_abi.h) and the output queues of a
 * metered switch port.
 *
 * Frames lie in slots, which all queues of a node share; a queue is a ring of slot numbers. A free
 * slot's number is in the map "free_slots" (BPF_MAP_TYPE_QUEUE), which the loader fills with 0 ...
 * slots - 1. Example: a frame of 1514 bytes comes for queue 7: number 12 is taken from free_slots,
 * the bytes are copied to slot 12 (nobody else knows it), and under queue 7's lock ring entry tail
 * & 511 becomes 1514 << 16 | 12. Whoever takes it out copies the bytes into a frame of its own and
 * gives 12 back.
 */
#ifndef BARLINE_QUEUE_ABI_H
#define BARLINE_QUEUE_ABI_H

#include <linux/bpf.h>
#include <linux/types.h>
#include "maps/length_abi.h"

#define BL_MAP_SLOTS      "slots"
#define BL_MAP_FREE_SLOTS "free_slots"
#define BL_MAP_QUEUES     "queues"
#define BL_MAP_QUEUE_HIST "queue_hist"

/* by default; at most 65536, since a ring entry has 16 bits for the number */
#define BL_SLOTS           4096
#define BL_SLOT_BYTES      1536
#define BL_QUEUE_FRAME_MAX 1522 /* bytes of Ethernet frame, one tag included, FCS not */
#define BL_QUEUE_FRAME_MIN 14   /* a veth pads nothing; a NIC does (length_abi.h) */

/**
 * struct bl_slot - one frame. Written by the program that took its number from free_slots, read by
 * the one that took it out of a ring: the ring's lock orders the two.
 * @at_ns: CLOCK_MONOTONIC when it came. @len: bytes.
 * @queue: key of the queue that it was put into, for the sojourn time when it is sent;
 * BL_SLOT_SENT: counted already (PL2 may send a frame again).
 */
#define BL_SLOT_SENT (~0U)
struct bl_slot {
	__u64 at_ns;
	__u32 len;
	__u32 queue;
	__u8 data[BL_SLOT_BYTES];
};
_Static_assert(sizeof(struct bl_slot) == 1552, "ABI; and no power of two: frames must not share "
					       "cache sets");

#define BL_RING                  512 /* frames in one queue at most; a power of two */
#define BL_RING_ENTRY(slot, len) ((__u32)(len) << 16 | (slot))
#define BL_RING_SLOT(e)          ((e)&0xffff)
#define BL_RING_LEN(e)           ((e) >> 16)

/**
 * struct bl_queue - one queue.
 * @lock: guards everything below but the limits.
 * @head, @tail: free-running; tail - head frames are in it.
 * @bytes: sum of their lengths. @wire: sum of their byte times (core/length_core.h).
 * @limit_frames (at most BL_RING), @limit_bytes: what it may hold; a frame beyond is dropped and
 * counted. Written by the loader.
 * @mark_bytes: a frame that finds more than this before it gets ECN CE if it is ECN capable; 0:
 * never.
 * @put, @taken, @dropped, @marked: frames since the map was made. @put_bytes, @taken_bytes.
 * @ring: BL_RING_ENTRY; never 0, since no frame is empty.
 */
struct bl_queue {
	struct bpf_spin_lock lock;
	__u32 head;
	__u32 tail;
	__u32 limit_frames;
	__u32 bytes;
	__u32 limit_bytes;
	__u32 mark_bytes;
	__u32 wire;
	__u64 put;
	__u64 taken;
	__u64 dropped;
	__u64 marked;
	__u64 put_bytes;
	__u64 taken_bytes;
	__u32 ring[BL_RING];
};
_Static_assert(sizeof(struct bl_queue) == 80 + 4 * BL_RING, "ABI");

/*
 * Histograms: bins that are exact up to 15 and then eight to the octave (each at most 12.5 % wide),
 * 18 octaves: bin of v is v for v < 16, else 16 + (e - 4) * 8 + (v >> (e - 3) & 7) with e =
 * log2(v); the last bin takes what is above.
 */
#define BL_HIST_BINS      160
#define BL_HIST_LEN_SHIFT 6 /* queue lengths are counted in units of 64 bytes */
#define BL_HIST_NS_SHIFT  5 /* times in units of 32 ns: up to 134 ms */
struct bl_hist {
	__u64 n[BL_HIST_BINS];
};

/**
 * struct bl_queue_hist - of one queue. @found: bytes that each frame found before it; written under
 * the queue's lock. @sojourn: time from a frame's coming until it was handed to the device; written
 * by the node's pacer alone.
 */
struct bl_queue_hist {
	struct bl_hist found;
	struct bl_hist sojourn;
};

/* ---- output queues of a metered switch port ---- */

#define BL_MAP_METERS   "sw_meters"
#define BL_MAP_PORT_DUE "port_due"
#define BL_MAP_PORT_TX  "port_tx" /* devmap without programs: what the pacer sends */

/*
 * Queues of a port, best first: strict priority. Ordered frames and their beacons share DATA: one
 * FIFO (DESIGN 3.1).
 */
/* clang-format off */
#define BL_CLASSES(X) \
	X(CONTROL, "control") \
	X(TOKEN0, "token0") \
	X(TOKEN1, "token1") \
	X(TOKEN2, "token2") \
	X(TOKEN3, "token3") \
	X(TOKEN4, "token4") \
	X(TOKEN5, "token5") \
	X(DATA, "data") \
	X(UNSCHED, "unscheduled")
/* clang-format on */
#define BL_CLASS_ENUM(sym, name) BL_CL_##sym,
enum bl_class { BL_CLASSES(BL_CLASS_ENUM) BL_CL_COUNT };
#undef BL_CLASS_ENUM
#define BL_PORT_QUEUE(port, class) ((port)*BL_CL_COUNT + (class))

/* Size of "queues" and "queue_hist" in the object; the loader sets what the node's role needs. */
#define BL_QUEUES_MAX BL_PORT_QUEUE(256, 0)

/**
 * struct bl_meter - rate of a link end. Written by the loader.
 * @ns_q20: nanoseconds per byte time, times 2^20; 0: not metered. How many byte times a frame takes
 *is bl_wire_bytes() (core/length_core.h).
 */
struct bl_meter {
	__u32 ns_q20;
	__u32 reserved;
};

/*
 * Value @port of "port_busy": bit c: the port's queue of class c may have frames. Set by who puts a
 * frame, cleared by the pacer who found the queue empty (port_core.h).
 */
#define BL_MAP_PORT_BUSY "port_busy"

/**
 * struct bl_due - value 0 of "port_due" (by port) and of "hold_due" (by destination): when the
 *pacer has something to do. Both maps can be mmapped.
 * @next: it need not look before: at most the least of @at. Lowered by compare-and-swap; the pacer
 *sets BL_DUE_NEVER, by a full barrier, before it looks at all @at, and lowers it to what it found.
 * @given: hold_due: numbers that destinations were given so far: 1 to @given. @spare: of these,
 *those in "hold_free".
 *	@sweep_ns, @sweep: when the pacer looks next for numbers that are not used, and after which.
 *The pacer's.
 *	@turn_ns: its last turn. @watch_ns: it stood still, if it had none for so long while
 *	frames wait; 0: not known yet. @back_ns: its first turn after that (core/queue/dest_core.h).
 *	The pacer's.
 * @at: CLOCK_MONOTONIC; BL_DUE_NEVER: nothing there. Who puts a frame makes BL_DUE_NEVER its time
 *by compare-and-swap, which as a full barrier comes after the frame. The pacer takes it by
 *exchange, which leaves BL_DUE_NEVER, looks at the queue, and then lowers it to when it wants to
 *look again: either the pacer sees the frame, or the other finds BL_DUE_NEVER. A later time than
 *BL_DUE_NEVER's is never written, so whoever lowers it at the same moment is not overwritten.
 * @free: when the link end has sent its last frame and may begin another; hold_due: only [0], the
 *NIC. The pacer's.
 */
#define BL_DUE_MAX   256
#define BL_DUE_NEVER (~0ULL)
struct bl_due {
	__u64 next;
	__u64 given;
	__u64 spare;
	__u64 sweep_ns;
	__u64 sweep;
	__u64 turn_ns;
	__u64 watch_ns;
	__u64 back_ns;
	__u64 at[BL_DUE_MAX];
	__u64 free[BL_DUE_MAX];
};
_Static_assert(sizeof(struct bl_due) == 64 + 16 * BL_DUE_MAX, "ABI");

/* A link end that is late catches up by what it sends in so many byte times: two full frames. */
#define BL_CATCH_UP_BYTES (2 * BL_WIRE_FULL)

#endif
