/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Admission on a host (DESIGN 4): what applications send through bl0 is held per destination and
 * class until the policy releases it.
 *
 * bl0 is one end of a veth pair; applications have an address on it. The other end, bl0d, carries
 * bl_hold_xdp, which copies each frame into a hold queue (queue_abi.h). The pacer sends it out of
 * the NIC when its time has come. What arrives at the NIC for bl0's MAC address goes the other way,
 * straight into bl0d. So bl0 is a second station on the NIC's link: it has a MAC address of its own
 * and does its own ARP and ND.
 *
 * A destination is an Ethernet address; where a router is between (@routed), the frame's IP
 * address. It gets a number when the first frame for it comes, 1 to BL_DESTS - 1; 0 is for what is
 * never held back: ARP, ND, broadcast and multicast. A number goes to another destination when few
 * are left and the pacer finds that nothing is held for its owner, nothing under way, and nobody
 * has used it for BL_HOLD_IDLE_NS (core/queue/dest_core.h). Under policy none destinations that
 * find no number share the last one.
 */
#ifndef BARLINE_HOLD_ABI_H
#define BARLINE_HOLD_ABI_H

#include "maps/pace_abi.h"

#define BL_MAP_HOLD_CFG   "hold_cfg"
#define BL_MAP_HOLD_DESTS "hold_dests" /* hash: struct bl_mac_key -> __u32 number */
#define BL_MAP_HOLD_MACS  "hold_macs"  /* array: number -> struct bl_hold_dest */
#define BL_MAP_HOLD_DUE   "hold_due"   /* struct bl_due, by destination */
#define BL_MAP_HOLD_FREE  "hold_free"  /* queue: numbers that were given back */
#define BL_MAP_HOLD_TX    "hold_tx"    /* devmap: BL_TX_* */
#define BL_MAP_PL2_DESTS  "pl2_dests"  /* array: number -> struct bl_pl2_dest */
#define BL_MAP_PL2_COMING "pl2_coming" /* array: number of the sender -> struct bl_pl2_coming */

#define BL_DESTS          256
/* never given: policy none's, for all destinations that find no number */
#define BL_HOLD_SHARED (BL_DESTS - 1)
#define BL_NUMBERS     (BL_HOLD_SHARED - 1ULL) /* that can be given */
#define BL_NUMBERS_LOW 64                      /* so few are left: the pacer looks for others */
/* unused so long, a number may go to another: what PL2 remembers of a destination is no older */
#define BL_HOLD_IDLE_NS 1000000ULL
/* a frame that waits so long for leave to go is dropped; see bl_hold_age() */
#define BL_HOLD_AGE_NS    1000000000ULL
#define BL_HOLD_AGE_SLOTS 4096 /* sixteen turns of all numbers */
#define BL_HOLD_AGE_TRIES 8
/*
 * 0: expedited (DSCP 40 and above: CS5, EF, CS6, CS7), 1: the rest; strict priority within a
 * destination
 */
#define BL_HOLD_CLASSES            2
#define BL_HOLD_QUEUE(dest, class) ((dest)*BL_HOLD_CLASSES + (class))
enum bl_hold_tx { BL_TX_NIC, BL_TX_APP, BL_TX_COUNT };

/* clang-format off */
#define BL_POLICIES(X) \
	X(NONE, "none") \
	X(PL2, "pl2") \
	X(FASTPASS, "fastpass") \
	X(TOP, "top")
/* clang-format on */
#define BL_POLICY_ENUM(sym, name) BL_POLICY_##sym,
enum bl_policy { BL_POLICIES(BL_POLICY_ENUM) BL_POLICY_COUNT };
#undef BL_POLICY_ENUM

/* How Fastpass's path travels. X(SYMBOL, "name", "text"). Append only. */
/* clang-format off */
#define BL_PATH_FIELDS(X) \
	X(NONE, "none",     "not at all: switches choose") \
	X(MAC,  "mac",      "in the source MAC address, where barline's switches look") \
	X(UDP,  "udp-port", "as the source port of the outermost UDP header, for switches that hash it (ECMP spoofing)")
/* clang-format on */
#define BL_FIELD_ENUM(sym, name, text) BL_FIELD_##sym,
enum bl_path_field { BL_PATH_FIELDS(BL_FIELD_ENUM) BL_FIELD_COUNT };
#undef BL_FIELD_ENUM

/**
 * struct bl_mac_key - a destination.
 * @mac: @kind 0: an Ethernet address; 4: two zeros and an IPv4 address; 6: the last six bytes of an
 *IPv6 address.
 * @upper: @kind 6: the ten bytes before those; else zero. Racks with a /64 each have hosts ::1, ::2
 *and so on, which differ there alone.
 */
struct bl_mac_key {
	__u8 mac[6];
	__u8 kind;
	__u8 zero;
	__u8 upper[10];
	__u8 zero2[6];
};
_Static_assert(sizeof(struct bl_mac_key) == 24, "ABI");

/**
 * struct bl_hold_cfg - value 0 of "hold_cfg". Written by the loader and by `barline admission set`;
 * the programs read it.
 * @on: 1: bl0 exists. @policy: enum bl_policy.
 * @mac: of bl0.
 * @link: rate of the NIC; ns_q20 0: as fast as it goes.
 * @k_frames: PL2's K: frames in one burst at most (1 to BL_PL2_K_MAX). @k_bytes: and byte times
 * (core/length_core.h).
 * @t_ns: PL2's t as time: below it bursts go unsolicited; 0: never.
 * @recent_ns: how old a GRT may be to justify an unsolicited burst.
 * @retry_ns: an RSV without GRT is repeated after that long.
 * @coming_ns: a burst that was promised to us and does not come within that time after its slot is
 * released at the switch; 0: never.
 * @late_ns: a burst whose slot is longer gone than that gives it up and asks anew (DESIGN 4: what
 * is late is asked for again); 0: never.
 * @slot_ns, @slot_bytes: Fastpass's slots, as bytes of one full frame; @slot_late_ns: how long
 * after its slot's begin a frame may leave.
 * @routed: 1: destinations are IP addresses, for there is a router between.
 * @path_field: enum bl_path_field. @udp_ports: BL_FIELD_UDP: source port of path 0.
 * @count_paths: 1: frames are counted by peer and path (fastpass_abi.h).
 * @app_ifindex, @nic_ifindex: of bl0d and of the NIC: a tc program may not look into a device map
 * that XDP programs use (the kernel refuses to load it).
 */
struct bl_hold_cfg {
	__u32 on;
	__u32 policy;
	__u8 mac[6];
	__u8 zero[2];
	struct bl_meter link;
	__u32 k_frames;
	__u32 k_bytes;
	__u64 t_ns;
	__u64 recent_ns;
	__u64 retry_ns;
	__u64 coming_ns;
	__u64 late_ns;
	__u32 app_ifindex;
	__u32 nic_ifindex;
	__u32 slot_ns;
	__u32 slot_bytes;
	__u32 slot_late_ns;
	__u32 path_field;
	__u32 udp_ports;
	__u32 routed;
	__u32 count_paths;
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_hold_cfg) == 112, "ABI");

#define BL_DEST_CLOSED 0x80000000U
/*
 * FREE: in "hold_free", or not given yet. LEAVING: its owner has it no more, others see to their
 * last business with it.
 */
enum bl_dest_use { BL_DEST_FREE, BL_DEST_USED, BL_DEST_LEAVING };
#define BL_DEST_FLOW 1 /* bl_hold_dest.kind: of a flow of TOP's; @mac is the next hop */

/**
 * struct bl_hold_dest - who has a number.
 * @used: enum bl_dest_use; USED is set after @mac and before the number can be found in a hash.
 *@mac, @kind,
 *	@upper: as in struct bl_mac_key; or @kind is BL_DEST_FLOW.
 * @pins: who uses it at this moment, and BL_DEST_CLOSED: dest_core.h has the rules. All by atomic
 *operations.
 * @used_ns: CLOCK_MONOTONIC when somebody used it last. @left_ns: when a frame last left its
 *queues; 0: none has.
 */
struct bl_hold_dest {
	__u8 mac[6];
	__u8 used;
	__u8 kind;
	__u8 upper[10];
	__u8 zero[2];
	__u32 pins;
	__u64 used_ns;
	__u64 left_ns;
};
_Static_assert(sizeof(struct bl_hold_dest) == 40, "ABI");

#define BL_PL2_K_MAX 16

/* an RSV without an answer is sent that often; then the burst asks anew, with another number */
#define BL_PL2_TRIES 4
#define BL_PL2_MISSED_MAX                                                       \
	2 /* slots that a burst may miss; in the next one it goes, however late \
	   */
/* so many RSVs without an answer: there is no switch that makes reservations */
#define BL_PL2_SILENT 8
/* the same of a switch whose beacons say that it makes them: it may be slow */
#define BL_PL2_SILENT_SURE 1000
#define BL_PL2_FAR_NS      1000000000ULL /* a GRT with a longer wait is not believed */

/*
 * IDLE: no reservation. ASKED: an RSV is out. EARLY: an RSV is out and its burst is being sent, or
 * was sent, unsolicited. GRANTED: a GRT came: the burst may be sent from @send_ns on, or was
 * refused (@verdict). Only the pacer leaves IDLE and GRANTED. From ASKED and EARLY go the pacer
 * (asks anew) and bl_host_xdp (GRT); @word makes it one step: sequence number << 8 | state, changed
 * by compare-and-swap, so a GRT that is not the answer to the RSV that is out changes nothing.
 */
enum bl_pl2_state { BL_PL2_IDLE, BL_PL2_ASKED, BL_PL2_EARLY, BL_PL2_GRANTED };

/**
 * struct bl_pl2_dest - reservations for one destination (PL2 Algorithm 3), at most one RSV out.
 * @word: sequence number << 8 | enum bl_pl2_state.
 * @n, @sent: frames of the burst; how many of them were sent. @base: how many went in slots before,
 *which the burst then missed the rest of; @missed: how often. @bytes: byte times of the frames from
 *@base on: what is asked for. The pacer's.
 * @retries: how often its RSV was repeated. @asked_ns: when it went out, by @retries; a GRT says
 *which of them it answers. The pacer's.
 * @send_ns: when the burst may begin; in IDLE with a burst: when it may ask again. @verdict:
 *BL_GRT_* flags of the GRT. Written by bl_host_xdp before it changes
 *	@word; read, and then written in IDLE, by the pacer after it saw GRANTED.
 * @unsolicited: 1: this burst is sent without waiting for its GRT. @refusals: in a row. The
 *pacer's.
 * @last_wait_ns: max(in, out) of the last GRT; @last_ns: when it came; 0: never, or it was a
 *refusal. Written by bl_host_xdp; the pacer may see one of the two old, and asks once too often or
 *once too early.
 * @delay_ns: RSV to GRT, smoothed by 1/8. @delay_min_ns, @delay_max_ns.
 * @rsvs, @grts, @early, @resent, @timeouts, @refused, @bad, @late: counts: RSVs sent, GRTs
 *believed, bursts sent unsolicited, those that had to be sent again, RSVs that got no answer in
 *time, refused by the switch, GRTs not believed, slots that were missed.
 * @apart_ns: until then frames go without an RSV: the switch said that it promises nothing
 *(BL_GRT_OFF), or answered none of BL_PL2_SILENT RSVs (BL_PL2_SILENT_SURE). 0: never. Written by
 *who finds it out.
 * @silent: RSVs without an answer, in a row. Counted by the pacer, cleared by bl_host_xdp; one that
 *gets lost between them makes the host find it out later.
 * @entry: BL_RING_ENTRY of each frame; the slots stay taken until the burst is done.
 */
struct bl_pl2_dest {
	__u64 word;
	__u32 n;
	__u32 sent;
	__u32 bytes;
	__u32 retries;
	__u64 asked_ns[BL_PL2_TRIES];
	__u64 send_ns;
	__u32 verdict;
	__u32 unsolicited;
	__u32 refusals;
	__u16 base;
	__u16 missed;
	__u64 last_wait_ns;
	__u64 last_ns;
	__u64 delay_ns;
	__u64 delay_min_ns;
	__u64 delay_max_ns;
	__u64 rsvs;
	__u64 grts;
	__u64 early;
	__u64 resent;
	__u64 timeouts;
	__u64 refused;
	__u64 bad;
	__u64 late;
	__u64 apart_ns;
	__u32 silent;
	__u32 reserved;
	__u32 entry[BL_PL2_K_MAX];
};
_Static_assert(sizeof(struct bl_pl2_dest) == 264, "ABI");

/* RSV's cookie: the destination's number, and which of the tries it is. */
#define BL_PL2_COOKIE(dest, try) ((__u16)((try) << 8 | (dest)))
#define BL_PL2_COOKIE_DEST(c)    ((c)&0xff)
#define BL_PL2_COOKIE_TRY(c)     ((c) >> 8)
_Static_assert(BL_DESTS <= 256, "a destination's number fits the cookie's lower byte");

/**
 * struct bl_pl2_coming - what the copies of GRTs announced from one sender and did not come yet.
 * @by_ns: it should all be there by then. Raised by bl_host_xdp.
 * @bytes: byte times, added and taken off by bl_host_xdp; the pacer takes them all when @by_ns has
 * passed, by one exchange, and sends a RELEASE of @release bytes.
 * @seq: of the last copy.
 */
struct bl_pl2_coming {
	__u64 by_ns;
	__u32 bytes;
	__u32 seq;
	__u32 release;
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_pl2_coming) == 24, "ABI");

#endif
