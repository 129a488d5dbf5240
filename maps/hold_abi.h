/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Admission on a host: frames that applications send through bl0 are held per destination and class
 * until the admission policy releases them.
 *
 * bl0 is one end of a veth pair; applications use its address. The other end, bl0d, carries the
 * program bl_hold_xdp, which copies each frame into a hold queue (maps/queue_abi.h). The pacer
 * sends the frame out of the NIC when it is due. A frame that arrives at the NIC for bl0's MAC
 * address goes the other way, directly into bl0d. So bl0 is a second station on the NIC's link,
 * with a MAC address, ARP and ND of its own.
 *
 * A destination is an Ethernet address; where a router lies between (@routed), it is the IP address
 * in the frame. A destination gets a number, 1 to BL_DESTS - 1, with the first frame for it. Number
 * 0 stands for everything that is never held: ARP, ND, broadcast and multicast. A number goes to
 * another destination when few numbers are left and the pacer finds that nothing is held for its
 * owner, nothing is under way to it, and it was not used for BL_HOLD_IDLE_NS
 * (core/queue/dest_core.h). Under policy none, the destinations that find no number share the last
 * one.
 *
 * Example: the first frame for 02:00:00:00:00:03 finds 2 destinations known. The destination gets
 * number 3, and the frame, which is not expedited, goes into hold queue BL_HOLD_QUEUE(3, 1) = 7.
 *
 * Fastpass and TOP have maps of their own (maps/fastpass_abi.h, maps/top_host_abi.h); PL2's are
 * here.
 */
#ifndef BARLINE_HOLD_ABI_H
#define BARLINE_HOLD_ABI_H

#include <linux/types.h>
#include "maps/pace_abi.h"
#include "maps/queue_abi.h"

#define BL_MAP_HOLD_CFG   "hold_cfg"   /* array of one struct bl_hold_cfg */
#define BL_MAP_HOLD_DESTS "hold_dests" /* hash: struct bl_mac_key -> __u32 number */
#define BL_MAP_HOLD_MACS  "hold_macs"  /* array: number -> struct bl_hold_dest */
#define BL_MAP_HOLD_DUE   "hold_due"   /* array of one struct bl_due, by destination */
#define BL_MAP_HOLD_FREE  "hold_free"  /* queue: numbers that were given back */
#define BL_MAP_HOLD_TX    "hold_tx"    /* devmap: BL_TX_* */
#define BL_MAP_PL2_DESTS  "pl2_dests"  /* array: number -> struct bl_pl2_dest */
#define BL_MAP_PL2_COMING "pl2_coming" /* array: number of the sender -> struct bl_pl2_coming */

#define BL_DESTS          256
/* never assigned: under policy none, shared by all destinations that find no number */
#define BL_HOLD_SHARED (BL_DESTS - 1)
#define BL_NUMBERS     (BL_HOLD_SHARED - 1ULL) /* numbers that can be assigned */
#define BL_NUMBERS_LOW 64 /* with this many left, the pacer looks for unused numbers */
/* a number unused for this long may go to another owner: PL2 remembers nothing older */
#define BL_HOLD_IDLE_NS 1000000ULL
/* a frame that waits this long for permission to leave is dropped; see bl_hold_age() */
#define BL_HOLD_AGE_NS    1000000000ULL
#define BL_HOLD_AGE_SLOTS 4096 /* sixteen turns of all numbers */
#define BL_HOLD_AGE_TRIES 8
/*
 * Class 0: expedited (DSCP 40 and above: CS5, EF, CS6, CS7). Class 1: everything else. Strict
 * priority within a destination.
 */
#define BL_HOLD_CLASSES            2
#define BL_HOLD_QUEUE(dest, class) ((dest)*BL_HOLD_CLASSES + (class))
enum bl_hold_tx { BL_TX_NIC, BL_TX_APP, BL_TX_COUNT };

/*
 * X(SYMBOL, "name"): the admission policies. Append only: the number is in "hold_cfg", and beacons
 * carry it plus 1.
 *
 * To add a policy:
 * 1. Write its arithmetic in core/NAME/, its layouts in maps/NAME_abi.h and its maps in
 *    maps/NAME_maps.h.
 * 2. On hosts, add it where bpf/host/hold.h, bpf/host/sweep.h and bl_hold_age()
 *    (core/queue/dest_core.h) compare the policy; on switches, in bpf/switch/switch.bpf.c.
 * 3. Say in bl_policy_apart() (core/policy_core.h) which policies of neighbours fit it.
 * 4. Give it options and defaults in loader/admission/ (admission.c, admission_argp.c,
 *    admission_set.c) and loader/config.c, and `barline admission set` in cli/admission.c.
 * 5. Add it to bench/traffic/traffic.c (traffic_policy), so that `lab run` compares it, and to
 *    cli/show/.
 * 6. Document it: "policy" in docs/barlined.8, docs/barline.1, and "Policies that disagree" and
 *    "Beacon" in docs/protocol.md.
 * 7. Test it: tests/unit/test_policy_core.c, and a test_NAME.c in tests/unit, tests/prog,
 *    tests/net.
 */
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

/* X(SYMBOL, "name", "text"): where a frame carries its Fastpass path. Append only. */
/* clang-format off */
#define BL_PATH_FIELDS(X) \
	X(NONE, "none",     "not at all: switches choose") \
	X(MAC,  "mac",      "in the source MAC address, where barline's switches look") \
	X(UDP,  "udp-port", "as the source port of the outermost UDP header, for switches that " \
			    "hash it (ECMP spoofing)")
/* clang-format on */
#define BL_FIELD_ENUM(sym, name, text) BL_FIELD_##sym,
enum bl_path_field { BL_PATH_FIELDS(BL_FIELD_ENUM) BL_FIELD_COUNT };
#undef BL_FIELD_ENUM

/**
 * struct bl_mac_key - a destination, as a key of hash maps.
 */
struct bl_mac_key {
	/*
	 * @kind 0: an Ethernet address; 4: two zero bytes and an IPv4 address; 6: the last six
	 * bytes of an IPv6 address.
	 */
	__u8 mac[6];
	__u8 kind;
	__u8 zero;
	/*
	 * @kind 6: the ten bytes before those in @mac; else zero. Racks with a /64 each have hosts
	 * ::1, ::2 and so on, which differ only here.
	 */
	__u8 upper[10];
	__u8 zero2[6];
};
_Static_assert(sizeof(struct bl_mac_key) == 24, "ABI");

/**
 * struct bl_hold_cfg - value 0 of "hold_cfg". Written by the loader and by `barline admission set`;
 * the programs only read it.
 */
struct bl_hold_cfg {
	__u32 on;     /* 1: bl0 exists */
	__u32 policy; /* enum bl_policy */
	__u8 mac[6];  /* address of bl0 */
	__u8 zero[2];
	struct bl_meter link; /* rate of the NIC; ns_q20 0: unlimited */
	__u32 k_frames;       /* PL2's K: frames in one burst, 1 to BL_PL2_K_MAX */
	__u32 k_bytes;        /* byte times in one burst (core/length_core.h) */
	__u64 t_ns;           /* PL2's t: a burst with a shorter wait is unsolicited; 0: none is */
	__u64 recent_ns;      /* largest age of a GRT that justifies an unsolicited burst */
	__u64 retry_ns;       /* an RSV without a GRT is repeated after this time */
	/*
	 * A burst that was promised to this host and has not arrived this long after its slot is
	 * released at the switch; 0: never.
	 */
	__u64 coming_ns;
	/*
	 * A burst that is later than this for its slot gives the slot up and asks again, so that it
	 * does not meet the bursts of others; 0: never.
	 */
	__u64 late_ns;
	/*
	 * Interfaces bl0d and the NIC. Here as well as in "hold_tx", since a tc program may not use
	 * a device map that XDP programs use: the kernel refuses to load it.
	 */
	__u32 app_ifindex;
	__u32 nic_ifindex;
	__u32 slot_ns;      /* Fastpass: slot length, ns */
	__u32 slot_bytes;   /* Fastpass: bytes of one full frame, which fills a slot */
	__u32 slot_late_ns; /* Fastpass: how long after the start of its slot a frame may leave */
	__u32 path_field;   /* enum bl_path_field */
	__u32 udp_ports;    /* BL_FIELD_UDP: source port of path 0 */
	__u32 routed;       /* 1: destinations are IP addresses, since a router lies between */
	__u32 count_paths;  /* 1: frames are counted by peer and path (maps/fastpass_abi.h) */
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_hold_cfg) == 112, "ABI");

#define BL_DEST_CLOSED 0x80000000U /* bit of bl_hold_dest.pins: the number must not be used */
/* FREE: in "hold_free", or never assigned. LEAVING: the owner is removed; cleanup is pending. */
enum bl_dest_use { BL_DEST_FREE, BL_DEST_USED, BL_DEST_LEAVING };
#define BL_DEST_FLOW 1 /* bl_hold_dest.kind: the owner is a flow of TOP; @mac is its next hop */

/**
 * struct bl_hold_dest - the owner of a number. Shared by several CPUs without a lock: @pins
 * protects the owner, by the rules of core/queue/dest_core.h.
 */
struct bl_hold_dest {
	__u8 mac[6]; /* as in struct bl_mac_key; of a flow: the next hop */
	/* enum bl_dest_use; USED is set after @mac and before the number can be found in a hash */
	__u8 used;
	__u8 kind;      /* as in struct bl_mac_key, or BL_DEST_FLOW */
	__u8 upper[10]; /* as in struct bl_mac_key */
	__u8 zero[2];
	__u32 pins;    /* number of current users, and BL_DEST_CLOSED; changed atomically */
	__u64 used_ns; /* CLOCK_MONOTONIC of the last use */
	__u64 left_ns; /* CLOCK_MONOTONIC at which a frame last left its queues; 0: none did */
};
_Static_assert(sizeof(struct bl_hold_dest) == 40, "ABI");

#define BL_PL2_K_MAX 16

/* an unanswered RSV is sent this often; then the burst asks with a new sequence number */
#define BL_PL2_TRIES 4
/* slots that a burst may miss; it uses the next one, however late it is */
#define BL_PL2_MISSED_MAX 2
/* after this many unanswered RSVs, the host assumes that no switch makes reservations */
#define BL_PL2_SILENT 8
/* the same for a switch whose beacons say that it makes reservations: it may be slow */
#define BL_PL2_SILENT_SURE 1000
#define BL_PL2_FAR_NS      1000000000ULL /* a GRT with a longer wait is refused */

/*
 * State of the reservation for one destination. It is part of bl_pl2_dest.word, sequence number <<
 * 8 | state, which is changed by compare-and-swap, so that a GRT that does not answer the current
 * RSV changes nothing. Only the pacer leaves IDLE and GRANTED. ASKED and EARLY are left by the
 * pacer, which asks again, and by bl_host_xdp when a GRT arrives.
 */
enum bl_pl2_state {
	BL_PL2_IDLE,   /* no reservation */
	BL_PL2_ASKED,  /* an RSV is outstanding */
	BL_PL2_EARLY,  /* the same, and its burst is being sent, or was sent, unsolicited */
	BL_PL2_GRANTED /* a GRT arrived: it allows the burst from @send_ns on, or refuses it */
};

/**
 * struct bl_pl2_dest - reservations for one destination (PL2 Algorithm 3); at most one RSV is
 * outstanding. Written by the pacer unless a field says otherwise. The state in @word decides
 * whether the pacer or bl_host_xdp may write the fields of the GRT, so there is no lock.
 */
struct bl_pl2_dest {
	/* sequence number << 8 | enum bl_pl2_state; 0: no RSV was ever sent. See the enum. */
	__u64 word;
	__u32 n;       /* frames of the burst; 0: no burst */
	__u32 sent;    /* frames of the burst that were sent */
	__u32 bytes;   /* byte times of the frames from @base on: the demand of the RSV */
	__u32 retries; /* how often the RSV was repeated */
	__u64 asked_ns[BL_PL2_TRIES]; /* CLOCK_MONOTONIC of the RSV, by try; a GRT names the try */
	/*
	 * CLOCK_MONOTONIC from which the burst may begin; in IDLE with a burst: from which it may
	 * ask again. Written by bl_host_xdp before it changes @word; read, and then written in
	 * IDLE, by the pacer after it has seen GRANTED.
	 */
	__u64 send_ns;
	__u32 verdict;     /* BL_GRT_* flags of the GRT. Written like @send_ns. */
	__u32 unsolicited; /* 1: this burst does not wait for its GRT */
	__u32 refusals;    /* refusals in a row */
	__u16 base;        /* frames sent in earlier slots, whose remainder the burst missed */
	__u16 missed;      /* slots that the burst missed */
	/*
	 * Longer of the two waits of the last GRT, and CLOCK_MONOTONIC of its arrival (0: none, or
	 * it was a refusal). Written by bl_host_xdp. The pacer may read one new and one old value:
	 * it then asks once too often or once too early.
	 */
	__u64 last_wait_ns;
	__u64 last_ns;
	/* Statistics; those of GRTs are written by bl_host_xdp, the others by the pacer. */
	__u64 delay_ns;     /* from RSV to GRT, smoothed by 1/8 */
	__u64 delay_min_ns; /* least such delay */
	__u64 delay_max_ns; /* greatest such delay */
	__u64 rsvs;         /* RSVs sent */
	__u64 grts;         /* GRTs accepted */
	__u64 early;        /* bursts sent unsolicited */
	__u64 resent;       /* unsolicited bursts that had to be sent again */
	__u64 timeouts;     /* RSVs not answered in time */
	__u64 refused;      /* RSVs refused by the switch */
	__u64 bad;          /* GRTs not accepted */
	__u64 late;         /* slots missed */
	/*
	 * CLOCK_MONOTONIC until which frames leave without an RSV, since the switch promises
	 * nothing (BL_GRT_OFF) or has answered none of BL_PL2_SILENT RSVs (BL_PL2_SILENT_SURE). 0:
	 * never. Written by whichever of the pacer and bl_host_xdp finds this out.
	 */
	__u64 apart_ns;
	/*
	 * Unanswered RSVs in a row. Counted by the pacer, cleared by bl_host_xdp; a lost update
	 * only delays the discovery.
	 */
	__u32 silent;
	__u32 reserved;
	/* BL_RING_ENTRY of each frame; the slots stay occupied until the burst is done */
	__u32 entry[BL_PL2_K_MAX];
};
_Static_assert(sizeof(struct bl_pl2_dest) == 264, "ABI");

/* Cookie of an RSV: the destination's number, and the number of the try. */
#define BL_PL2_COOKIE(dest, try) ((__u16)((try) << 8 | (dest)))
#define BL_PL2_COOKIE_DEST(c)    ((c)&0xff)
#define BL_PL2_COOKIE_TRY(c)     ((c) >> 8)
_Static_assert(BL_DESTS <= 256, "a destination's number fits the cookie's lower byte");

/**
 * struct bl_pl2_coming - what copies of GRTs have announced from one sender and has not arrived
 * yet. Written by bl_host_xdp except where noted; no lock.
 */
struct bl_pl2_coming {
	__u64 by_ns; /* CLOCK_MONOTONIC by which all of it should have arrived; only raised */
	/*
	 * Byte times. Added and subtracted by bl_host_xdp. When @by_ns has passed, the pacer takes
	 * the remainder by one exchange with 0 and sends a RELEASE of @release byte times.
	 */
	__u32 bytes;
	__u32 seq;     /* of the last copy */
	__u32 release; /* byte times still to be released; 0: none. Written by the pacer. */
	__u32 reserved;
};
_Static_assert(sizeof(struct bl_pl2_coming) == 24, "ABI");

#endif
