/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Fastpass control protocol on the wire (Fastpass section 5.3): between hosts and arbiters, in
 * UDP over IPv4 or IPv6. docs/protocol.md, "FCP", is the reference; tests/unit/docs/test_protocol.c
 * compares it with this file and with the Wireshark dissector. core/fastpass/fcp_core.h has the
 * rules of both ends.
 *
 *   req       bl_fcp_hdr 32  bl_fcp_req 4     bl_fcp_total 6 each      what a host wants
 *   alloc     bl_fcp_hdr 32  bl_fcp_alloc 8   bl_fcp_total 6 each  bl_fcp_run 6 each
 *   ack       bl_fcp_hdr 32                                            nothing but the
 * acknowledgement reset     bl_fcp_hdr 32  bl_fcp_reset 32                           a new session
 *   call      bl_fcp_hdr 32                                            an arbiter took over: show
 * yourself watchdog  bl_fcp_hdr 32  bl_fcp_watchdog 16                        among arbiters, to a
 * multicast group report    bl_fcp_hdr 32  bl_fcp_report 32  bl_fcp_count 16 each    a host to the
 * fault isolation service: frames sent and arrived, by path faults    bl_fcp_hdr 32  bl_fcp_faults
 * 24  bl_fcp_link 4 each      that service to arbiters: the links to be avoided heard bl_fcp_hdr 32
 * bl_fcp_heard 16                           an arbiter's answer
 *
 * Integers that do not lie at a multiple of their size are split into halves, so that no struct has
 * padding.
 */
#ifndef BARLINE_FCP_ABI_H
#define BARLINE_FCP_ABI_H

#include <stddef.h>
#include <linux/types.h>

/* UDP; just below barline's range, so that no XDP program takes it for ordered traffic */
#define BL_FCP_PORT          61695
#define BL_FCP_WATCHDOG_PORT 61694
#define BL_FCP_FAULTS_PORT   61693 /* where the fault isolation service listens */
#define BL_FCP_MAGIC         0xFC50
#define BL_FCP_VERSION       1 /* upper 4 bits of the opcode byte */
#define BL_FCP_ENDPOINTS_MAX 4096
/* packets: width of ack_bits; what is older is neither acknowledged nor taken */
#define BL_FCP_WINDOW     64
#define BL_FCP_TOTALS_MAX 64 /* destinations in one packet */
#define BL_FCP_RUNS_MAX   128
#define BL_FCP_PATH_ANY   0xFF /* the flow's own path */
#define BL_FCP_COUNTS_MAX 66   /* in one REPORT: more than a peer has columns */
#define BL_FCP_LINKS_MAX  256  /* in one FAULTS */

/**
 * struct bl_fcp_hdr - first in the UDP payload, network order.
 * @opcode: version << 4 | opcode. @flags: must be zero.
 * @challenge: REQ, ACK of a host: chosen by the host, another one after each RESET that it took.
 *RESET: that of the packet which it answers. HEARD: chosen by the arbiter when it starts; FAULTS:
 *that of the arbiter's last HEARD. 0 elsewhere.
 * @seq: counted by the sender per session from 1 in REQ and ALLOC, per sender in WATCHDOG, REPORT
 *and FAULTS; 0 elsewhere.
 * @ack: highest seq that came in this session; 0: none. @ack_bits: bit k: seq @ack - 1 - k came,
 *too.
 * @check: SipHash-2-4 of the UDP payload with this field zero. Key of REQ, ALLOC and ACK: (nonce ^
 *secret 0, secret 1); of the others: the secret. So a packet of another session never matches. A
 *host that has no session uses nonce 0.
 */
struct bl_fcp_hdr {
	__be16 magic;
	__u8 opcode;
	__u8 flags;
	__be32 challenge;
	__be32 seq;
	__be32 ack;
	__be64 ack_bits;
	__be64 check;
};
_Static_assert(sizeof(struct bl_fcp_hdr) == 32 && offsetof(struct bl_fcp_hdr, ack_bits) == 16 &&
		       offsetof(struct bl_fcp_hdr, check) == 24,
	       "wire");

/* X(SYMBOL, number, "name") */
/* clang-format off */
#define BL_FCP_OPCODES(X) \
	X(REQ,      1, "req")      /* host: timeslots wanted so far, by destination */ \
	X(ALLOC,    2, "alloc")    /* arbiter: timeslots given so far, and new ones as runs */ \
	X(ACK,      3, "ack")      /* either: what came, and nothing else */ \
	X(RESET,    4, "reset")    /* arbiter: a new session; all counts are zero */ \
	X(CALL,     5, "call")     /* arbiter: send anything, so that a session can begin */ \
	X(WATCHDOG, 6, "watchdog") /* primary to the other arbiters */ \
	X(REPORT,   7, "report")   /* host to fault isolation: frames sent and arrived so far, by path */ \
	X(FAULTS,   8, "faults")   /* fault isolation to arbiters: links to be avoided, all of them */ \
	X(HEARD,    9, "heard")    /* arbiter to fault isolation: which list it has */
/* clang-format on */
#define BL_FCP_OPCODE_ENUM(sym, num, name) BL_FCP_##sym = num,
enum bl_fcp_opcode { BL_FCP_OPCODES(BL_FCP_OPCODE_ENUM) BL_FCP_OPCODE_LIMIT };
#undef BL_FCP_OPCODE_ENUM
#define BL_FCP_OPCODE_BYTE(op) ((__u8)(BL_FCP_VERSION << 4 | (op)))

/**
 * struct bl_fcp_total - aggregate count of one destination, since the session began, modulo 2^32:
 * REQ: slots wanted; ALLOC: slots given, with those of this packet.
 * @dst: index in the arbiter's list of endpoints.
 */
struct bl_fcp_total {
	__be16 dst;
	__be16 total_hi;
	__be16 total_lo;
};
_Static_assert(sizeof(struct bl_fcp_total) == 6, "wire");

/** struct bl_fcp_req - body of a REQ: @count totals follow; 0: only a sign of life. */
struct bl_fcp_req {
	__be16 count;
	__be16 reserved;
};
_Static_assert(sizeof(struct bl_fcp_req) == 4, "wire");

/**
 * struct bl_fcp_alloc - body of an ALLOC: @totals totals follow, then @runs runs.
 * @base: number of the timeslot that offsets count from: bus time divided by the slot length. 48
 * bits.
 */
struct bl_fcp_alloc {
	__u8 base[6];
	__u8 totals;
	__u8 runs;
};
_Static_assert(sizeof(struct bl_fcp_alloc) == 8, "wire");

/**
 * struct bl_fcp_run - slots base + @offset + k * @stride for k = 0 .. @count - 1, all to one
 * destination on one path.
 * @which: place of the destination among the totals. @path: BL_FCP_PATH_ANY, or the path. @count:
 * from 1. @stride: from 1 where @count is above 1.
 */
struct bl_fcp_run {
	__be16 offset;
	__u8 which;
	__u8 path;
	__u8 count;
	__u8 stride;
};
_Static_assert(sizeof(struct bl_fcp_run) == 6, "wire");

/**
 * struct bl_fcp_reset - body of a RESET.
 * @nonce: of the new session; random, not 0.
 * @term: of the arbiter's rule (struct bl_fcp_watchdog): hosts leave no session for one of an older
 * term.
 * @table: hash of the arbiter's list of endpoints; the host refuses it if its own list differs.
 * @slot_ns: slot length. @slot_bytes: frames in it. @index: the host's own. @endpoints: how many
 * there are.
 */
struct bl_fcp_reset {
	__be64 nonce;
	__be32 term;
	__be32 table;
	__be32 slot_ns;
	__be32 slot_bytes;
	__be16 index;
	__be16 endpoints;
	__be32 reserved;
};
_Static_assert(sizeof(struct bl_fcp_reset) == 32 && offsetof(struct bl_fcp_reset, index) == 24,
	       "wire");

/**
 * struct bl_fcp_watchdog - body of a WATCHDOG.
 * @term: of the primary's rule; grows with each takeover. @rank: of the sender: the lower one rules
 * when terms are equal.
 * @state: enum bl_fcp_state. @table: as in a RESET.
 */
struct bl_fcp_watchdog {
	__be32 term;
	__be16 rank;
	__u8 state;
	__u8 reserved;
	__be32 table;
	__be32 reserved2;
};
_Static_assert(sizeof(struct bl_fcp_watchdog) == 16, "wire");

/**
 * struct bl_fcp_report - body of a REPORT: @count counts follow, by rising peer and path. Those of
 * all peers from @first to @last are said: what is not listed is 0.
 * @boot: bus time at which the host began to count; a later one than before: it counts anew. @at:
 * bus time at which the counts were read.
 * @table: as in a RESET. @index: the host's own. @took: ns that reading took: what came is as of
 * @at - @took, what was sent as of @at.
 */
struct bl_fcp_report {
	__be64 boot;
	__be64 at;
	__be32 table;
	__be16 index;
	__be16 first;
	__be16 last;
	__be16 count;
	__be32 took;
};
_Static_assert(sizeof(struct bl_fcp_report) == 32 && offsetof(struct bl_fcp_report, index) == 20,
	       "wire");

/**
 * struct bl_fcp_count - frames since @boot, modulo 2^48: @sent to @peer on @path by the pacer,
 * @came from it for the application. @path: BL_FCP_PATH_ANY: without a path that can be seen in the
 * frame.
 */
struct bl_fcp_count {
	__be16 peer;
	__u8 path;
	__u8 reserved;
	__u8 sent[6];
	__u8 came[6];
};
_Static_assert(sizeof(struct bl_fcp_count) == 16, "wire");

/**
 * struct bl_fcp_faults - body of a FAULTS: @count links follow, all that are to be avoided.
 * @boot: bus time at which the service started. @version: of the list, from 1. @table: as in a
 * RESET.
 */
struct bl_fcp_faults {
	__be64 boot;
	__be32 version;
	__be32 table;
	__be16 count;
	__be16 reserved;
	__be32 reserved2;
};
_Static_assert(sizeof(struct bl_fcp_faults) == 24, "wire");

#define BL_FCP_RACK_ALL 0xffff

/**
 * struct bl_fcp_link - a link in one direction. @way: 0: from @rack up to @path's switch; 1: from
 * there down to @rack. @rack: BL_FCP_RACK_ALL: all links of the path.
 */
struct bl_fcp_link {
	__be16 rack;
	__u8 path;
	__u8 way;
};
_Static_assert(sizeof(struct bl_fcp_link) == 4, "wire");

/**
 * struct bl_fcp_heard - body of a HEARD: @boot, @version: of the list that the arbiter has; 0, 0:
 * none. @table: as in a RESET.
 */
struct bl_fcp_heard {
	__be64 boot;
	__be32 version;
	__be32 table;
};
_Static_assert(sizeof(struct bl_fcp_heard) == 16, "wire");

/* X(SYMBOL, number, "name"): what an arbiter is at the moment */
/* clang-format off */
#define BL_FCP_STATES(X) \
	X(STANDBY,   1, "standby")   /* listens; takes over after silence */ \
	X(CANDIDATE, 2, "candidate") /* announces itself and does not allocate yet */ \
	X(PRIMARY,   3, "primary")   /* allocates */
/* clang-format on */
#define BL_FCP_STATE_ENUM(sym, num, name) BL_FCP_##sym = num,
enum bl_fcp_state { BL_FCP_STATES(BL_FCP_STATE_ENUM) BL_FCP_STATE_LIMIT };
#undef BL_FCP_STATE_ENUM

#define BL_FCP_PACKET_MAX                                          \
	(sizeof(struct bl_fcp_hdr) + sizeof(struct bl_fcp_alloc) + \
	 BL_FCP_TOTALS_MAX * sizeof(struct bl_fcp_total) +         \
	 BL_FCP_RUNS_MAX * sizeof(struct bl_fcp_run))
_Static_assert(BL_FCP_PACKET_MAX <= 1280 - 40 - 8, "IPv6's least MTU holds the largest packet");
_Static_assert(sizeof(struct bl_fcp_hdr) + sizeof(struct bl_fcp_report) +
				       BL_FCP_COUNTS_MAX * sizeof(struct bl_fcp_count) <=
			       BL_FCP_PACKET_MAX &&
		       sizeof(struct bl_fcp_hdr) + sizeof(struct bl_fcp_faults) +
				       BL_FCP_LINKS_MAX * sizeof(struct bl_fcp_link) <=
			       BL_FCP_PACKET_MAX,
	       "no other packet is larger");

/* Each packet ends in one of these. X(SYMBOL, "name", "text"). Append only. */
/* clang-format off */
#define BL_FCP_REASONS(X) \
	X(OK,           "ok",           "taken") \
	X(SHORT,        "short",        "ends inside the header or the body that it announces") \
	X(BAD_MAGIC,    "bad_magic",    "not FCP") \
	X(BAD_VERSION,  "bad_version",  "another version") \
	X(BAD_OPCODE,   "bad_opcode",   "unknown, or not meant for this end") \
	X(BAD_LENGTH,   "bad_length",   "longer than its body, or more entries than allowed") \
	X(BAD_BODY,     "bad_body",     "an entry breaks the rules: index, run or reserved field") \
	X(BAD_CHECK,    "bad_check",    "checksum of another session, or corrupted") \
	X(DUPLICATE,    "duplicate",    "sequence number that came before, or was given up") \
	X(OLD,          "old",          "sequence number before the window") \
	X(BAD_SEQ,      "bad_seq",      "sequence number out of reach, or acknowledges what was not sent") \
	X(OLD_RESET,    "old_reset",    "RESET that answers another challenge") \
	X(OLD_TERM,     "old_term",     "RESET or watchdog of an arbiter that was replaced") \
	X(BAD_TABLE,    "bad_table",    "RESET or watchdog for another list of endpoints") \
	X(STANDBY,      "standby",      "this arbiter does not rule") \
	X(UNKNOWN,      "unknown",      "the sender is no endpoint of the list") \
	X(BAD_CHALLENGE, "bad_challenge", "FAULTS that answers another challenge")
/* clang-format on */
#define BL_FCP_REASON_ENUM(sym, name, text) BL_FCP_R_##sym,
enum bl_fcp_reason { BL_FCP_REASONS(BL_FCP_REASON_ENUM) BL_FCP_R_COUNT };
#undef BL_FCP_REASON_ENUM

#endif
