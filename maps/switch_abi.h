/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps of the switch role: registers, input sets and minimum trees (1Pipe sections 4.1 and 4.2),
 * and forwarding.
 *
 * Example: a ToR switch with hosts on ports 0 and 1 and a spine on port 2. Input set 0 = {0, 1}
 * feeds the up link (port 2); set 1 = {0, 1, 2} feeds the host ports. A frame from port 0 with B =
 * 50 raises reg[0][0] to 50, and leaf 0 of both trees to 50. If the other leaves are 60 and 40,
 * root 0 becomes 50 and root 1 stays at 40: the frame leaves with 50 on port 2, and with 40 on port
 * 1.
 *
 * The arithmetic is in core/order/barrier_core.h. Metered ports have their queues in
 * maps/queue_abi.h; reservations and tokens are in maps/pl2_switch_abi.h and maps/top_token_abi.h.
 */
#ifndef BARLINE_SWITCH_ABI_H
#define BARLINE_SWITCH_ABI_H

#include <linux/types.h>
#include "maps/fence_abi.h"
#include "maps/reasons_abi.h"
#include "maps/source_abi.h"
#include "maps/wire_abi.h"

#define BL_SW_PORTS_MAX 256
#define BL_SW_CPUS_MAX  256
#define BL_TREE_LEAVES  BL_SW_PORTS_MAX
#define BL_TIME_NONE    (~0ULL) /* no time */
/*
 * A leaf that does not hold the minimum back: above all times, and still comparable by subtraction.
 */
#define BL_LEAF_NONE (~0ULL >> 1)

/* Map names, as pinned. maps/meta_abi.h says what else to do when you add a map. */
#define BL_MAP_META     "meta"       /* array of one struct bl_meta; both roles */
#define BL_MAP_CLOCK    "clock"      /* array of one struct bl_clock; both roles; mmapped */
#define BL_MAP_COUNTS   "counts"     /* per-CPU array: enum bl_reason -> counts of the role */
#define BL_MAP_SW_CFG   "sw_cfg"     /* array of one struct bl_sw_cfg */
#define BL_MAP_SW_IFIDX "sw_ifindex" /* array: interface index -> __u32, port + 1; 0: no port */
#define BL_MAP_SW_PORTS "sw_ports"   /* array: port -> struct bl_sw_port */
#define BL_MAP_SW_REGS  "sw_regs"    /* array: port -> struct bl_port_regs; mmapped */
#define BL_MAP_SW_TREES "sw_trees"   /* array: BL_TREE_KEY -> struct bl_tree */
#define BL_MAP_SW_LANES "sw_lanes"   /* array: lane -> struct bl_sw_lane */
#define BL_MAP_SW_FDB   "sw_fdb"     /* array: bl_fdb_hash() -> struct bl_fdb_bucket */
#define BL_MAP_SW_TX    "sw_tx"      /* devmap: port -> interface and program */
/* CPU map: CPU -> program that handles frames steered to it */
#define BL_MAP_SW_HOME     "sw_home"
#define BL_MAP_SW_STEERING "sw_homing"  /* array: port -> struct bl_steering */
#define BL_MAP_SW_CARRIED  "sw_carried" /* array: port -> struct bl_carried */
#define BL_MAP_SW_LAGS     "sw_lags"    /* array: port -> struct bl_lag */

#define BL_COUNTS_UNKNOWN  BL_SW_PORTS_MAX       /* column of interfaces that are not a port */
#define BL_SW_COUNTS       (BL_SW_PORTS_MAX + 8) /* a multiple of a cache line */
/**
 * struct bl_sw_counts - value of "counts" on a switch: how often the reason that is the key was
 * given, and the bytes of the frames that ended for it. Per CPU: each CPU's value is written only
 * by the programs that run there. The loader reads it, and clears a port's counters when the port's
 * number goes to another interface.
 *
 * Reasons are the outer index since a busy switch counts only a handful of them: the counters of
 * neighbouring ports then share a cache line. One array of reasons per port used one line per port,
 * at a stride that only some sets of the L1 cache can hold.
 */
struct bl_sw_counts {
	__u64 n[BL_SW_COUNTS]; /* by port, then BL_COUNTS_UNKNOWN; the remainder is zero */
	/*
	 * By the same index: bytes from the Ethernet header on, without FCS, of all buffers of the
	 * frame. 0 for reasons of kind NOTE, and for BL_BEACON_REASON(): beacons have one length.
	 */
	__u64 bytes[BL_SW_COUNTS];
};
_Static_assert(sizeof(struct bl_sw_counts) == 4224 &&
		       __builtin_offsetof(struct bl_sw_counts, bytes) == 2112,
	       "ABI");

enum bl_fwd { BL_FWD_L3, BL_FWD_L2 };

/*
 * Where the path of a frame comes from. FRAME: the frame carries it (Fastpass). FLOW: a hash that
 * is the same for both directions of a flow (TOP). TURN: one path after the other, frame by frame
 * (TOP).
 */
enum bl_path_by { BL_PATH_BY_FRAME, BL_PATH_BY_FLOW, BL_PATH_BY_TURN };

/**
 * struct bl_sw_cfg - value 0 of "sw_cfg". Written by the loader before it attaches the programs and
 * on reload; @paths and @path_by also by `barline admission set`. The program only reads it.
 */
struct bl_sw_cfg {
	__u32 node_id;       /* of this switch in the beacons that it relays */
	__u32 nports;        /* ports 0 to @nports - 1 are in use */
	__u32 lanes;         /* datapath CPUs, 1 to BL_LANES_MAX; each owns one lane */
	__u32 forward;       /* enum bl_fwd: Linux's routing tables, or the static table "sw_fdb" */
	__u16 port_base;     /* first UDP port of ordered traffic, host order */
	__u16 port_count;    /* number of UDP ports of ordered traffic */
	__u32 tree_leaves;   /* leaves in use: a power of two >= @nports, 4 to BL_TREE_LEAVES */
	__u64 beacon_ns;     /* beacon interval */
	__u64 dead_after_ns; /* a lane that is silent for longer is excluded from B */
	/*
	 * A host's lane that talks, but whose barrier is further behind the clock, is excluded from
	 * B as well. Lanes of switches have BL_LAG_SWITCHES times as long. 0: lanes may lag.
	 */
	__u64 lag_max_ns;
	__u64 commit_lag_max_ns; /* the same for the commit barrier */
	/*
	 * Quota of each host's port: ns from one control frame to the next at its rate, and the
	 * same for beacons and for reservations; BL_CONTROL_BURST of them at once. 0: none.
	 */
	__u32 control_gap_ns;
	__u32 reserved;
	/*
	 * 1: each lane has a single writer. 0: all CPUs share lane 0, which breaks the promise of
	 * the barriers; for the test that shows it.
	 */
	__u32 single_writer;
	__s32 tai_offset_s; /* seconds; beacons with another value are refused */
	/* lane that a CPU writes; BL_NO_LANE: the CPU is not a datapath CPU */
	__u8 lane_of_cpu[BL_SW_CPUS_MAX];
	/*
	 * 1: the program also forwards frames that are not barline's, where it can (a port is
	 * metered, or reservations are made), so that they share output queues with ordered frames.
	 * 0: the kernel forwards them.
	 */
	__u32 admission;
	/*
	 * how far hosts may promise ahead of their clocks (core/order/promise_core.h); 0: not at
	 * all
	 */
	__u32 ahead_ns;
	/*
	 * A frame from below that goes up leaves by port @path_port[path] if its path is below
	 * @paths. 0: Linux's routes choose.
	 */
	__u32 paths;
	__u8 path_port[16]; /* up ports in the order of the configuration */
	__u8 path_by;       /* enum bl_path_by */
	/*
	 * Entries of @path_port, in use or not: the value that @paths gets when `barline admission
	 * set top` starts to choose paths. 0: there is nothing to choose from.
	 */
	__u8 path_ports;
	/*
	 * 1 (Fastpass): a frame keeps the path that it carries even where the path is not obeyed,
	 * so that the receiving host can count it by path.
	 */
	__u16 path_keep;
};
_Static_assert(sizeof(struct bl_sw_cfg) == 360, "ABI");
#define BL_NO_LANE       0xff
#define BL_CONTROL_BURST 4096 /* frames */

enum bl_port_role {
	BL_PORT_UNUSED,
	BL_PORT_HOST, /* a host below */
	BL_PORT_UP,   /* a switch above */
	BL_PORT_DOWN  /* a switch below */
};

/**
 * struct bl_sw_port - configuration of one port. Written by the loader; the program only reads it,
 * except @home_lane.
 */
struct bl_sw_port {
	__u32 ifindex; /* 0: the slot is not in use */
	__u8 role : 4; /* enum bl_port_role */
	/*
	 * 1: frames go into the port's output queues (maps/queue_abi.h), and the pacer sends them
	 * at the rate of "sw_meters". Here, since the program reads this cache line of the output
	 * anyway.
	 */
	__u8 metered : 1;
	/*
	 * 1: this output promises no C, and this input does not join it. A copy of the port's slot
	 * in "sw_orders", also written by the program bl_fence; here like @metered.
	 */
	__u8 barred : 1;
	__u8 hop : 2;     /* hop that this output writes into frames: BL_HOP_* >> 6 */
	__u8 in_sets;     /* bit s: this port is an input of set s */
	__u8 out_set : 3; /* the set whose minimum this port sends */
	/* 1: a host is behind this port, and "sw_sources" says which addresses are its */
	__u8 guarded : 1;
	__u8 lanes_less_one : 3; /* lanes that the neighbour may have, less 1 */
	__u8 reserved : 1;
	/*
	 * Lane (datapath CPU) that this port's frames are processed on: BL_HOME_LANE(). The program
	 * adds BL_AWAY while frames of this port are being steered there: struct bl_steering.
	 */
	__u8 home_lane;
	__u8 mac[6];   /* the port's own address; source of its beacons */
	__u16 mtu;     /* bytes of the IP packet */
	char name[16]; /* of the interface, NUL terminated */
	/*
	 * Source of the last frame that "sw_sources" accepted, so that nearly all frames need no
	 * look at that map. Written by the CPU that the port is steered to; @source_eth is also set
	 * to BL_SOURCE_NO_ETH by whoever raises @forget of struct bl_sources, afterwards.
	 */
	struct bl_ip source_ip;
	__u64 source_eth; /* bl_source_word() of its Ethernet header; BL_SOURCE_NO_ETH: none */
	/*
	 * Another node id than the one in "sw_lives" that the host behind this port says in its
	 * beacons, 0: none, and since when, in units of 2^BL_NODE_SHIFT ns of watch time. Written
	 * by the CPU that the port is steered to (core/source_core.h).
	 */
	__u32 other_node;
	__u32 other_since;
};
_Static_assert(sizeof(struct bl_sw_port) == 64, "one cache line");
#define BL_PORT_LANES(port) ((port)->lanes_less_one + 1)
#define BL_AWAY             0x80
#define BL_HOME_LANE(port)  ((port)->home_lane & (BL_LANES_MAX - 1))

/**
 * struct bl_steering - value of "sw_homing": a port's frames that arrived on a CPU which does not
 * own its lane, and are steered to the owner by the CPU map "sw_home". No lock: each field has one
 * kind of writer.
 */
struct bl_steering {
	__u32 cpu;   /* CPU that owns the lane. Written by the loader. */
	__u32 sent;  /* frames put into the CPU map. Written by the CPUs that they arrived on. */
	__u32 taken; /* of those, frames taken out again. Written by the CPU that owns the lane. */
	/*
	 * Frames that may be on their way at most, so that the CPU map is never full: it would lose
	 * frames uncounted. 0: frames are handled where they arrive. Written by the loader.
	 */
	__u32 most;
	/* watch time (struct bl_sw_lane) when the last frame came out, or the first was put in */
	__u64 moved_ns;
};
_Static_assert(sizeof(struct bl_steering) == 24, "ABI");
#define BL_HOMING_NS 1000000000ULL
/* frames that may wait for one CPU, of all its ports: the most that a CPU map accepts */
#define BL_HOMING_FRAMES 16384

/* State of one register, in the low 8 bits of bl_reg.state. */
enum bl_reg_state {
	BL_REG_ABSENT, /* never heard */
	/*
	 * Heard, but its barrier is far behind what the outputs were given, or other lanes of its
	 * link are still awaited.
	 */
	BL_REG_JOINING,
	/* Holds the minimum back: outputs wait until it has passed what they were given. */
	BL_REG_LIVE,
	/*
	 * Was silent for dead_after: no longer holds B back, but still holds C back if BL_REG_IN.
	 */
	BL_REG_DEAD
};

/*
 * Flags beside the state, of LIVE and DEAD lanes. IN: holds C's minimum back. HELD: its C is
 * frozen, whatever arrives, until the controller's RESUME; the input died or was frozen by a fence.
 * Of a port, all lanes that are IN are HELD, or none is: the value reported for a port is the least
 * of its lanes, and must not rise when one of them does.
 */
#define BL_REG_IN   0x100u
#define BL_REG_HELD 0x200u
/*
 * Flag of lanes that are not LIVE: the registers are new, and it is unknown whether a node behind
 * this port waits for ACKs. C waits for the port at @c until it joins, or until the loader says
 * that nothing is there (@empty of struct bl_fence_slot).
 */
#define BL_REG_AWAITED 0x400u
#define BL_C_UNKNOWN   1 /* below every C; not a bus time */

/**
 * struct bl_reg - registers R and C of one (port, lane), in bus time of 64 bits. Written only by
 * the CPU that the port is steered to, except as noted. User space reads it without a lock and may
 * see a value that is one frame old.
 */
struct bl_reg {
	__u64 b;        /* highest barrier received; never lowered. 0: none yet */
	__u64 c;        /* highest commit barrier received; 0: none yet */
	__u64 heard_ns; /* watch time (struct bl_sw_lane) of the last good frame; 0: none yet */
	/*
	 * Watch time of the last scan for silent inputs at which @b was within lag_max of the
	 * clock, or when the lane joined. A neighbour that talks but whose barrier stays behind is
	 * heard and not fresh.
	 */
	__u64 fresh_ns;
	__u64 fresh_c_ns; /* the same for @c and commit_lag_max */
	/* enum bl_reg_state in the low 8 bits; BL_REG_IN, BL_REG_HELD and BL_REG_AWAITED above */
	__u32 state;
	__u16 lanes; /* number of lanes that the neighbour announced last */
	/*
	 * BL_HOP_* that the neighbour writes, from its last beacon; the same in all lanes of a
	 * port. BL_HOP_UNKNOWN, written by the loader before the programs run: no beacon has
	 * arrived yet. A frame may then be anyone's, and no input joins before its neighbour is
	 * known, because the controller could not say which node has failed if it fell silent.
	 */
	__u8 hop;
	__u8 reserved;
	/*
	 * Ordered UDP frames that arrived on this lane from the neighbour, except ACK and RECALLED:
	 * what the neighbour's beacons count (struct bl_link_body). On a host several CPUs may add
	 * to it, atomically.
	 */
	__u64 frames;
};
_Static_assert(sizeof(struct bl_reg) == 56, "ABI");
#define BL_HOP_UNKNOWN 0x01 /* in no frame */

/**
 * struct bl_port_regs - value of "sw_regs": the registers of one port.
 */
struct bl_port_regs {
	struct bl_reg lane[BL_LANES_MAX];
};

/**
 * struct bl_pair - a barrier and a commit barrier, in bus time of 64 bits.
 */
struct bl_pair {
	__u64 b;
	__u64 c;
};

/**
 * struct bl_tree - the minimum over the leaves of one (lane, input set), as a tournament tree in
 * which the lesser key moves up and the greater key stays. Key 0 is the least of all. Key i, 1 to
 * tree_leaves - 1, is the greater of the two that met there, from below keys 2i and 2i + 1. Leaf p
 * is key tree_leaves + p. Leaves of ports that are no input, are silent or have not joined are
 * BL_LEAF_NONE. Written only by the lane's CPU.
 */
struct bl_tree {
	__u64 b[2 * BL_TREE_LEAVES]; /* keys of the barriers */
	__u64 c[2 * BL_TREE_LEAVES]; /* keys of the commit barriers */
	__u32 apart;                 /* leaves whose two keys differ; counted while @two is set */
	__u32 two;                   /* not 0: @c is valid. 0: every C equals its B, @c is stale. */
	__u64 reserved[7];
};
_Static_assert(sizeof(struct bl_tree) == 8192 + 64, "ABI");
#define BL_TREE_KEY(lane, set) ((lane)*BL_SETS_MAX + (set))

/** struct bl_expiry - what bl_port_expire() compares the lanes of a port with. */
struct bl_expiry {
	__u64 watch;  /* watch time now */
	__u64 silent; /* lanes that were last heard before this watch time are silent */
	/* watch time at which some lane was fresh last: @fresh_ns of struct bl_sw_lane */
	__u64 freshest;
	/*
	 * A live lane whose barrier is at least this is fresh (bl_fresh_above()); 0: every one is,
	 * and none lags.
	 */
	__u64 fresh;
	/* Lanes that were last fresh before this watch time lag (bl_lag_before()). */
	__u64 lagging;
	/* the same for the commit barriers of lanes that are in C and not held */
	__u64 fresh_c;
	__u64 lagging_c;
};
_Static_assert(sizeof(struct bl_expiry) == 56, "ABI");

#define BL_RELAY_STILL 1 /* value of bl_sw_lane.relay_at; not a bus time */
/**
 * struct bl_sw_lane - the state of one datapath CPU. Written only by that CPU, except @limit_ns.
 */
struct bl_sw_lane {
	__u64 now_ns; /* bus time when this lane last read the clock */
	/*
	 * Barriers up to here need no new clock reading: @now_ns plus the clock's bound. Set to 0
	 * by bl_fence and by the other lanes' scans, so that the next frame reads the clock.
	 */
	__u64 limit_ns;
	/* beacons that this lane has relayed, modulo 2^32; see struct bl_carried_lane */
	__u32 relays;
	__u32 reserved;
	/*
	 * Watch time: how long this lane has really been watching, ns. Grows by at most one beacon
	 * interval from one clock reading to the next, so that a CPU that stood still for a while
	 * does not take its neighbours for dead. Starts at 1.
	 */
	__u64 watch_ns;
	__u64 scan_ns; /* watch time of the last scan for silent inputs */
	/*
	 * @freshest of the last scan, or its watch time if another lane had found an input fresh
	 * (bl_lane_vouches()). An input lags if others were fresh after it: if none is fresh, it is
	 * this node's own clock or CPU that is wrong.
	 */
	__u64 fresh_ns;
	__u64 freshest; /* greatest fresh_ns of own live inputs; other lanes read it */
	/* What the scan that is running compares the inputs with: of hosts, and of switches. */
	struct bl_expiry scan[2];
	/*
	 * Generation (struct bl_epoch) whose fences this lane's ports have applied. Written after
	 * their registers; pairs with bl_fence_*() in loader/order/fence.c, which reads it first.
	 */
	__u64 orders;
	struct bl_pair out[BL_SETS_MAX]; /* what each set's outputs were given; never decreases */
	__u64 relayed[BL_SETS_MAX];      /* barrier of the last relay, by set */
	/*
	 * By set: the next relay is due when the set's barrier is above it (bl_relay_next()).
	 * BL_RELAY_STILL: with the next beacon in any case, since the set's barrier stands still
	 * (bl_stands_still()).
	 */
	__u64 relay_at[BL_SETS_MAX];
	/*
	 * bl_commit_news() of each set before the beacon that is being processed; here since the
	 * stack has no room for it.
	 */
	__u64 behind[BL_SETS_MAX];
};
_Static_assert(sizeof(struct bl_sw_lane) == 496, "ABI");

/**
 * struct bl_carried_lane - what one lane has sent on an output. Written only by the lane's CPU.
 *
 * The clones of a beacon get their number of frames when they leave, at the flush, and by then data
 * may have been counted that is queued behind them. So the first frame behind a relay keeps the
 * number before it. Example: 40 frames were sent before relay 7, and 3 are queued behind its clone:
 * @frames = 43, @before = 40, @relay = 7. The clone of relay 7 says 40. If relay 8 and a frame
 * followed before the flush, @relay would be 8, and the clone of relay 7 would say no number.
 */
struct bl_carried_lane {
	__u64 b;      /* highest barrier sent; 0: none yet */
	__u32 frames; /* ordered UDP frames sent, except ACK and RECALLED, modulo 2^32 */
	__u32 before; /* of them, those before the relay with the number @relay */
	__u32 relay;  /* @relays of struct bl_sw_lane when the last of them was sent */
	__u16 said; /* bl_link_tick() of the last beacon with a link body and a number of frames */
	__u16 reserved[5];
};
_Static_assert(sizeof(struct bl_carried_lane) == 32, "two in a cache line");

/** struct bl_carried - value of "sw_carried": what was sent on an output. */
struct bl_carried {
	struct bl_carried_lane lane[BL_LANES_MAX];
};

/**
 * struct bl_lag - value of "sw_lags": how often an input was put out of B because it lagged, and
 * how long it must be fresh before it is taken in again (core/order/lag_core.h). Written only by
 * the CPU that the port is steered to; the loader clears it for a port whose number goes to another
 * interface.
 */
struct bl_lag {
	__u64 out_ns;   /* watch time of the last exclusion for lagging; 0: none yet */
	__u64 since_ns; /* watch time since which the input is fresh without a break; 0: it is not
			 */
	__u32 times;    /* exclusions in a row, at most BL_LAG_TIMES */
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_lag) == 24, "ABI");

#define BL_FDB_BUCKETS 1024
#define BL_FDB_WAYS    4
/**
 * struct bl_fdb_bucket - a bucket, bl_fdb_hash(mac) (core/wire_core.h), of the static table for
 * pure L2 forwarding. Written only by the loader.
 */
struct bl_fdb_bucket {
	struct {
		__u64 mac;  /* in the low 48 bits, as read little-endian from the wire; 0: free */
		__u64 port; /* output port */
	} way[BL_FDB_WAYS];
};
_Static_assert(sizeof(struct bl_fdb_bucket) == 64, "one cache line");

#endif
