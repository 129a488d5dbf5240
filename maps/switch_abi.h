/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps of the switch role: registers, input sets and minimum trees (1Pipe sections 4.1 and 4.2),
 * and forwarding.
 *
 * One worked example: a ToR with hosts on ports 0 and 1 and a spine on port 2. Input set 0 = {0,1}
 * feeds the up-link (port 2), set 1 = {0,1,2} feeds the host ports. A frame from port 0 with B=50
 * raises reg[0][0] to 50, leaf 0 of trees 0 and 1 to 50; if the other leaves are 60 and 40, root 0
 * becomes 50 and root 1 stays 40: the frame leaves on port 2 with 50, on port 1 with 40.
 */
#ifndef BARLINE_SWITCH_ABI_H
#define BARLINE_SWITCH_ABI_H

#include "maps/fence_abi.h"
#include "maps/reasons_abi.h"
#include "maps/wire_abi.h"

#define BL_SW_PORTS_MAX 256
#define BL_SW_CPUS_MAX  256
#define BL_TREE_LEAVES  BL_SW_PORTS_MAX
#define BL_TIME_NONE    (~0ULL) /* no time */
/*
 * a leaf that does not hold the minimum back: above all times, and still to be compared by
 * subtraction
 */
#define BL_LEAF_NONE (~0ULL >> 1)

/* map names, as pinned */
#define BL_MAP_META        "meta"
#define BL_MAP_CLOCK       "clock"
#define BL_MAP_COUNTS      "counts"
#define BL_MAP_SW_CFG      "sw_cfg"
#define BL_MAP_SW_IFIDX    "sw_ifindex"
#define BL_MAP_SW_PORTS    "sw_ports"
#define BL_MAP_SW_REGS     "sw_regs"
#define BL_MAP_SW_TREES    "sw_trees"
#define BL_MAP_SW_LANES    "sw_lanes"
#define BL_MAP_SW_FDB      "sw_fdb"
#define BL_MAP_SW_TX       "sw_tx"
#define BL_MAP_SW_HOME     "sw_home"
#define BL_MAP_SW_STEERING "sw_homing"
#define BL_MAP_SW_CARRIED  "sw_carried"

/**
 * struct bl_sw_counts - value of "counts" on a switch: how often one reason, the key, was given;
 * per CPU.
 * @n: by port; [BL_COUNTS_UNKNOWN]: on interfaces that are no port; what follows is room, zero.
 *
 * By reason and not by port, because what a busy switch counts is a handful of reasons: the
 * counters of neighbouring ports share a cache line, where one array of reasons per port laid one
 * line per port at a stride that only some sets of the L1 cache can hold. Written by the programs
 * of that CPU. The loader reads, and clears a port's counters when its number goes to another
 * interface.
 */
#define BL_COUNTS_UNKNOWN BL_SW_PORTS_MAX
#define BL_SW_COUNTS      (BL_SW_PORTS_MAX + 8) /* a multiple of a cache line */
struct bl_sw_counts {
	__u64 n[BL_SW_COUNTS];
};
_Static_assert(sizeof(struct bl_sw_counts) == 2112, "ABI");

enum bl_fwd { BL_FWD_L3, BL_FWD_L2 };

/*
 * Where a path comes from: the frame carries it (Fastpass); it is a hash that is the same for both
 * directions of a flow; one after the other, frame by frame (both TOP).
 */
enum bl_path_by { BL_PATH_BY_FRAME, BL_PATH_BY_FLOW, BL_PATH_BY_TURN };

/**
 * struct bl_sw_cfg - value 0 of "sw_cfg". Written by the loader before attach and on reload, @paths
 *and @path_by by `barline admission set`, too; read-only for the program.
 * @node_id: this switch in beacons it relays.
 * @nports: ports 0 to @nports - 1 are in use.
 * @lanes: datapath CPUs, 1 to BL_LANES_MAX; each owns one lane.
 * @forward: enum bl_fwd: Linux's routing tables, or the static table sw_fdb.
 * @port_base, @port_count: the UDP port range of ordered traffic.
 * @beacon_ns: the beacon interval.
 * @dead_after_ns: a lane silent for longer is excluded from B.
 * @tree_leaves: leaves in use, a power of two >= @nports: 4 to BL_TREE_LEAVES. Root is node 1.
 * @single_writer: 1: lanes as DESIGN 3.3. 0: all CPUs share lane 0, which breaks the promise: for
 *the test that shows it.
 * @tai_offset_s: refused in beacons if different.
 * @lane_of_cpu: lane that a CPU writes, BL_NO_LANE for CPUs that are no datapath CPU.
 * @admission: 1: frames that are not barline's are forwarded by the program too, where it can (a
 *port is metered, or reservations are made); they and ordered frames are to share output queues. 0:
 *they are the kernel's.
 * @paths: frames that come from below and go up leave by port @path_port[path], with a path below
 *@paths: up ports in the order of the configuration. 0: as Linux's routes choose.
 * @path_by: enum bl_path_by.
 * @path_ports: entries of @path_port, in use or not: what @paths becomes when `barline admission
 *set top` begins to choose. 0: nothing to choose from.
 * @path_keep: 1: Fastpass: a frame that carries a path keeps it also where it is not obeyed, so
 *that the host which it comes to can say by which path it came.
 * @ahead_ns: how far hosts may promise ahead of their clocks (core/order/promise_core.h); 0: not at
 *all.
 */
struct bl_sw_cfg {
	__u32 node_id;
	__u32 nports;
	__u32 lanes;
	__u32 forward;
	__u16 port_base;
	__u16 port_count;
	__u32 tree_leaves;
	__u64 beacon_ns;
	__u64 dead_after_ns;
	__u32 single_writer;
	__s32 tai_offset_s;
	__u8 lane_of_cpu[BL_SW_CPUS_MAX];
	__u32 admission;
	__u32 ahead_ns;
	__u32 paths;
	__u8 path_port[16];
	__u8 path_by;
	__u8 path_ports;
	__u16 path_keep;
};
_Static_assert(sizeof(struct bl_sw_cfg) == 336, "ABI");
#define BL_NO_LANE 0xff

enum bl_port_role { BL_PORT_UNUSED, BL_PORT_HOST, BL_PORT_UP, BL_PORT_DOWN };

/**
 * struct bl_sw_port - one port's configuration. Written by the loader; read-only for the program,
 *but for @home_lane.
 * @ifindex: 0: slot not in use.
 * @role: enum bl_port_role; a host below, a switch above, a switch below.
 * @barred: 1: this output promises no C, and what comes in at this port does not join it. As its
 *slot in "sw_orders" says; written by the program bl_fence, too. Here for the same reason as
 *@metered.
 * @metered: 1: frames go into the port's output queues (queue_abi.h), and the pacer sends them at
 *the rate of "sw_meters". Here, and not told by that map, because the program reads this cache line
 *of the output anyway.
 * @hop: what this output writes as the hop of a frame (BL_HOP_*, shifted down by 6).
 * @in_sets: bit s: this port is an input of set s.
 * @out_set: the set whose minimum this port sends.
 * @home_lane: lane (datapath CPU) that this port's frames are processed on: BL_HOME_LANE(). With
 *BL_AWAY, which the program writes, frames of this port are on their way home: struct bl_steering.
 * @mac: the port's own address; source of beacons.
 * @mtu: bytes of the IP packet.
 * @name: interface name, NUL terminated.
 */
struct bl_sw_port {
	__u32 ifindex;
	__u8 role : 4;
	__u8 metered : 1;
	__u8 barred : 1;
	__u8 hop : 2;
	__u8 in_sets;
	__u8 out_set;
	__u8 home_lane;
	__u8 mac[6];
	__u16 mtu;
	char name[16];
};
_Static_assert(sizeof(struct bl_sw_port) == 32, "ABI");
#define BL_AWAY            0x80
#define BL_HOME_LANE(port) ((port)->home_lane & (BL_LANES_MAX - 1))

/**
 * struct bl_steering - value of "sw_homing": a port's frames that came in on a CPU which is not the
 * home of its lane, and go there by the CPU map "sw_home".
 * @cpu: the home of its lane. Written by the loader.
 * @sent: frames that were put into the CPU map. Written by the CPUs that they came in on.
 * @taken: of those, frames that have come out. Written at home.
 * @most: frames that may be on their way, so that the CPU map is never full: it would lose them
 * uncounted. 0: they are handled where they come in. Written by the loader.
 * @moved_ns: when the last one came out, or the first one was put in; watch time of its lane
 * (struct bl_sw_lane).
 */
struct bl_steering {
	__u32 cpu;
	__u32 sent;
	__u32 taken;
	__u32 most;
	__u64 moved_ns;
};
_Static_assert(sizeof(struct bl_steering) == 24, "ABI");
#define BL_HOMING_NS 1000000000ULL
/* that wait for a CPU, of all its ports: the most that a CPU map takes */
#define BL_HOMING_FRAMES 16384

/*
 * ABSENT: never heard. JOINING: heard, but its barrier is far behind what the outputs were given,
 * or other lanes of its link are awaited. LIVE: holds the minimum back; outputs stand still until
 * it has passed what they were given (bl_join_floor()). DEAD: was silent for dead_after: does not
 * hold B back any more, but still C, if BL_REG_IN.
 */
enum bl_reg_state { BL_REG_ABSENT, BL_REG_JOINING, BL_REG_LIVE, BL_REG_DEAD };

/*
 * Beside the state, of LIVE and DEAD lanes. IN: holds C's minimum back. HELD: its C stands still,
 * whatever comes, until the controller's Resume: it died, or was frozen. Of a port, all lanes that
 * are IN are HELD, or none is: what was reported of a port is the least of them, and must not rise
 * when one of them does.
 */
#define BL_REG_IN   0x100u
#define BL_REG_HELD 0x200u
/*
 * Of lanes that are not LIVE: the registers were made anew, and nobody knows yet whether somebody
 * is behind this port who waits for ACKs. Until it joins, or the loader says that nobody is there
 * (struct bl_fence_slot's @empty), C waits for it at @c.
 */
#define BL_REG_AWAITED 0x400u
#define BL_C_UNKNOWN   1 /* below every C; no bus time */

/**
 * struct bl_reg - registers R and C of one (port, lane), extended to 64 bits.
 * @b: highest barrier that arrived; never lowered. 0: none yet.
 * @c: highest commit barrier.
 * @heard_ns: watch time (struct bl_sw_lane) of the last good frame.
 * @state: enum bl_reg_state in the low 8 bits, BL_REG_IN, BL_REG_HELD and BL_REG_AWAITED above.
 * @lanes: lane count that the neighbour announced last.
 * @hop: BL_HOP_* that the neighbour writes, as its last beacon had it; the same in all lanes of a
 *	port. BL_HOP_UNKNOWN: no beacon came yet, and it could be anybody's frame. Before the first
 *	beacon ports with hosts expect BL_HOP_HOST. Written by the loader before the programs run.
 *
 * Written only by the CPU that the port is homed to; user space reads without a lock and may see a
 *value that is one frame old.
 */
struct bl_reg {
	__u64 b;
	__u64 c;
	__u64 heard_ns;
	__u32 state;
	__u16 lanes;
	__u8 hop;
	__u8 reserved;
};
_Static_assert(sizeof(struct bl_reg) == 32, "ABI");
#define BL_HOP_UNKNOWN 0x01 /* in no frame */
struct bl_port_regs {
	struct bl_reg lane[BL_LANES_MAX];
};

/**
 * struct bl_pair - a barrier and a commit barrier.
 */
struct bl_pair {
	__u64 b;
	__u64 c;
};

/**
 * struct bl_tree - minimum over the leaves of one (lane, input set), as a tournament in which the
 * lesser goes on and the greater stays: key 0 is the least of all, key i (1 to tree_leaves - 1) the
 * greater of the two that met there, from below keys 2i and 2i+1, and leaf p is key tree_leaves +
 * p. Leaves of ports that are no input, silent or not yet joined are BL_LEAF_NONE. Written only by
 * the lane's CPU.
 * @b, @c: keys of the barriers and of the commit barriers.
 * @apart: leaves whose two keys differ; counted while @two.
 * @two: @c is kept. 0: every C is its B, and what is in @c is of old.
 */
struct bl_tree {
	__u64 b[2 * BL_TREE_LEAVES];
	__u64 c[2 * BL_TREE_LEAVES];
	__u32 apart;
	__u32 two;
	__u64 reserved[7];
};
_Static_assert(sizeof(struct bl_tree) == 8192 + 64, "ABI");
#define BL_TREE_KEY(lane, set) ((lane)*BL_SETS_MAX + (set))

/**
 * struct bl_sw_lane - one datapath CPU's state. Written only by that CPU.
 * @now_ns: bus time when this lane last read the clock.
 * @limit_ns: barriers up to here need no fresh clock reading: @now_ns plus the clock's bound. Set
 *to 0 by the program bl_fence: then the next frame reads the clock.
 * @watch_ns: time for which this lane was really watching: grows by at most a beacon interval from
 *one clock reading to the next, so that a CPU that stood still for a while does not take its
 *neighbours for dead.
 * @scan_ns: watch time of the last search for silent inputs.
 * @orders: generation (struct bl_epoch) whose orders this lane's ports have obeyed. Written after
 *their registers; pairs with bl_fence_*() in loader/order/fence.c, which read it first.
 * @out: what each set's outputs have been given; never decreases.
 * @relayed: barrier of the last relay by set.
 * @relay_at: the next relay is due when the set's barrier is above it: bl_relay_next().
 *BL_RELAY_STILL: with the next beacon, whether that is news or not: it stands still
 *(bl_stands_still()).
 * @behind: bl_commit_news() of each set before the beacon that is looked at now; here, since the
 *stack has no room for it.
 */
#define BL_RELAY_STILL 1 /* no bus time */
struct bl_sw_lane {
	__u64 now_ns;
	__u64 limit_ns;
	__u64 watch_ns;
	__u64 scan_ns;
	__u64 orders;
	struct bl_pair out[BL_SETS_MAX];
	__u64 relayed[BL_SETS_MAX];
	__u64 relay_at[BL_SETS_MAX];
	__u64 behind[BL_SETS_MAX];
};
_Static_assert(sizeof(struct bl_sw_lane) == 360, "ABI");

/**
 * struct bl_carried - highest barrier sent on an output, by lane; 0: none. Written only by the
 * lane's CPU.
 */
struct bl_carried {
	__u64 b[BL_LANES_MAX];
};

/**
 * struct bl_fdb_bucket - static table for pure L2, four ways.
 * @mac: destination address, in the low 48 bits, as read little-endian from the wire; 0: free.
 * @port: output port.
 * A bucket is bl_fdb_hash(mac) (core/wire_core.h). Written by the loader only.
 */
#define BL_FDB_BUCKETS 1024
#define BL_FDB_WAYS    4
struct bl_fdb_bucket {
	struct {
		__u64 mac;
		__u64 port;
	} way[BL_FDB_WAYS];
};
_Static_assert(sizeof(struct bl_fdb_bucket) == 64, "one cache line");

#endif
