/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queues of whole frames in BPF maps: the hold queues of a host (maps/hold_abi.h) and the output
 * queues of a metered switch port.
 *
 * Frames lie in slots that all queues of a node share; a queue is a ring of slot numbers. The
 * numbers of free slots are in the map "free_slots" (BPF_MAP_TYPE_QUEUE), which the loader fills
 * with 0 ... slots - 1.
 *
 * Example: a frame of 1514 bytes arrives for queue 7. Slot number 12 is taken from free_slots and
 * the bytes are copied into slot 12, which no other program knows. Then, under the lock of queue 7,
 * ring entry tail & 511 becomes 1514 << 16 | 12. Whoever takes the entry out copies the bytes into
 * a frame of its own and returns 12 to free_slots.
 *
 * The arithmetic is in core/queue/queue_core.h, and the copying in bpf/queue_util.h.
 */
#ifndef BARLINE_QUEUE_ABI_H
#define BARLINE_QUEUE_ABI_H

#include <linux/bpf.h>
#include <linux/types.h>
#include "maps/length_abi.h"

#define BL_MAP_SLOTS      "slots"      /* array: slot number -> struct bl_slot */
#define BL_MAP_FREE_SLOTS "free_slots" /* queue: numbers of free slots */
/* array: BL_HOLD_QUEUE or BL_PORT_QUEUE -> struct bl_queue */
#define BL_MAP_QUEUES     "queues"
#define BL_MAP_QUEUE_HIST "queue_hist" /* array: the same key -> struct bl_queue_hist */

/* slots by default; at most 65536, since a ring entry has 16 bits for the number */
#define BL_SLOTS           4096
#define BL_SLOT_BYTES      1536
#define BL_QUEUE_FRAME_MAX 1522 /* bytes of Ethernet frame, with one tag and without FCS */
#define BL_QUEUE_FRAME_MIN 14   /* a veth does not pad; a NIC does (maps/length_abi.h) */

#define BL_SLOT_SENT       (~0U)
/**
 * struct bl_slot - one frame. Written by the program that took its number from free_slots, and read
 * by the one that took the number out of a ring. The ring's lock orders the two.
 */
struct bl_slot {
	__u64 at_ns; /* CLOCK_MONOTONIC at which the frame arrived */
	__u32 len;   /* bytes */
	/*
	 * Key of the frame's queue, for its sojourn time when it is sent. BL_SLOT_SENT: counted
	 * already, since PL2 may send a frame again.
	 */
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
 * struct bl_queue - one queue. @lock protects every field except the limits and @mark_bytes, which
 * the loader writes.
 */
struct bl_queue {
	struct bpf_spin_lock lock;
	__u32 head;         /* entries taken so far; free-running */
	__u32 tail;         /* entries put so far; tail - head frames are in the queue */
	__u32 limit_frames; /* a frame beyond is dropped and counted; at most BL_RING */
	__u32 bytes;        /* sum of the frames' lengths */
	__u32 limit_bytes;  /* a frame beyond is dropped and counted */
	/* a frame behind more bytes than this gets ECN CE if it is ECN capable; 0: none does */
	__u32 mark_bytes;
	__u32 wire;          /* sum of the frames' byte times (core/length_core.h) */
	__u64 put;           /* frames put since the map was created */
	__u64 taken;         /* frames taken */
	__u64 dropped;       /* frames dropped since the queue was full */
	__u64 marked;        /* frames that got ECN CE */
	__u64 put_bytes;     /* bytes put */
	__u64 taken_bytes;   /* bytes taken */
	__u32 ring[BL_RING]; /* BL_RING_ENTRY; never 0, since no frame is empty */
};
_Static_assert(sizeof(struct bl_queue) == 80 + 4 * BL_RING, "ABI");

/*
 * Histograms. Bins are exact up to 15; above, there are eight per octave, each at most 12.5 % wide,
 * for 18 octaves. The bin of v is v for v < 16, else 16 + (e - 4) * 8 + (v >> (e - 3) & 7) with e =
 * log2(v). The last bin takes everything above. Example: 100 has e = 6 and is in bin 16 + 16 + (12
 * & 7) = 36.
 */
#define BL_HIST_BINS      160
#define BL_HIST_LEN_SHIFT 6 /* queue lengths are counted in units of 64 bytes */
#define BL_HIST_NS_SHIFT  5 /* times are counted in units of 32 ns: up to 134 ms */
struct bl_hist {
	__u64 n[BL_HIST_BINS]; /* observations by bin */
};

/**
 * struct bl_queue_hist - histograms of one queue.
 */
struct bl_queue_hist {
	struct bl_hist found; /* bytes in front of each frame. Written under the queue's lock. */
	/*
	 * time from a frame's arrival until the device took it. Written by the node's pacer alone.
	 */
	struct bl_hist sojourn;
};

/* ---- output queues of a metered switch port ---- */

#define BL_MAP_METERS   "sw_meters" /* array: port -> struct bl_meter */
#define BL_MAP_PORT_DUE "port_due"  /* array of one struct bl_due, by port */
#define BL_MAP_PORT_TX  "port_tx"   /* devmap without programs: what the pacer sends */

/*
 * X(SYMBOL, "name"): the queues of a port, best first: strict priority. Ordered frames and their
 * beacons share DATA, since they must stay in one FIFO.
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
 * struct bl_meter - the rate of one end of a link. Written by the loader.
 */
struct bl_meter {
	/* ns per byte time (bl_wire_bytes() of core/length_core.h), times 2^20; 0: not metered */
	__u32 ns_q20;
	__u32 reserved;
};

/*
 * array: port -> __u64. Bit c: the port's queue of class c may have frames. Set by whoever puts a
 * frame, cleared by the pacer when it has found the queue empty (core/queue/port_core.h).
 */
#define BL_MAP_PORT_BUSY "port_busy"

#define BL_DUE_MAX       256
#define BL_DUE_NEVER     (~0ULL)

/**
 * struct bl_due - value 0 of "port_due" (by port) and of "hold_due" (by destination): when the
 * pacer has something to do. Both maps can be mmapped. There is no lock: @next and @at are changed
 * by compare-and-swap and exchange, and the other fields are the pacer's except where noted.
 *
 * Whoever puts a frame replaces BL_DUE_NEVER in @at by its time with a compare-and-swap, which is a
 * full barrier after the frame. The pacer takes a time by an exchange, which leaves BL_DUE_NEVER,
 * then looks into the queue, and then lowers @at to the time at which it wants to look again. So
 * either the pacer sees the frame, or the other side finds BL_DUE_NEVER. Except by that exchange, a
 * time is only ever lowered, so a side that lowers it at the same moment is not overwritten.
 */
struct bl_due {
	/*
	 * CLOCK_MONOTONIC before which nothing is due: at most the least @at. Lowered by
	 * compare-and-swap. The pacer sets BL_DUE_NEVER, with a full barrier, before it scans @at,
	 * and lowers it to what it has found.
	 */
	__u64 next;
	/* "hold_due": numbers assigned to destinations so far, 1 to @given. Atomically raised. */
	__u64 given;
	/* "hold_due": of these, the numbers in "hold_free". Atomically changed. */
	__u64 spare;
	__u64 sweep_ns; /* "hold_due": CLOCK_MONOTONIC of the next search for unused numbers */
	__u64 sweep;    /* "hold_due": number after which that search goes on */
	__u64 turn_ns;  /* "hold_due": CLOCK_MONOTONIC of the pacer's last turn */
	/*
	 * "hold_due": the pacer stood still if it had no turn for this long, ns, while frames wait;
	 * 0: not known yet (core/queue/dest_core.h).
	 */
	__u64 watch_ns;
	__u64 back_ns;        /* "hold_due": CLOCK_MONOTONIC of its first turn after a standstill */
	__u64 at[BL_DUE_MAX]; /* CLOCK_MONOTONIC; BL_DUE_NEVER: the queue is empty */
	/*
	 * CLOCK_MONOTONIC at which the end of the link has sent its last frame and may begin
	 * another; "hold_due": only [0], the NIC.
	 */
	__u64 free[BL_DUE_MAX];
};
_Static_assert(sizeof(struct bl_due) == 64 + 16 * BL_DUE_MAX, "ABI");

/*
 * byte times: an end of a link that is late catches up by at most this, which is two full frames
 */
#define BL_CATCH_UP_BYTES (2 * BL_WIRE_FULL)

#endif
