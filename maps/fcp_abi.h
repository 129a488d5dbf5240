/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Fastpass control protocol (FCP) on the wire (Fastpass section 5.3): packets between hosts and
 * arbiters, in UDP over IPv4 or IPv6. docs/protocol.md, "FCP", is the reference;
 * tests/unit/docs/test_protocol.c compares it with this file and with the Wireshark dissector. The
 * rules of both ends are in core/fastpass/fcp_core.h, with an example in numbers.
 *
 *   req       bl_fcp_hdr 32  bl_fcp_req 4        bl_fcp_total 6 each    demand of a host
 *   alloc     bl_fcp_hdr 32  bl_fcp_alloc 8      bl_fcp_total 6 each  bl_fcp_run 6 each
 *   ack       bl_fcp_hdr 32                      the acknowledgement in the header, nothing else
 *   reset     bl_fcp_hdr 32  bl_fcp_reset 32     a new session
 *   call      bl_fcp_hdr 32                      an arbiter took over: send anything
 *   watchdog  bl_fcp_hdr 32  bl_fcp_watchdog 16  among arbiters, to a multicast group
 *   report    bl_fcp_hdr 32  bl_fcp_report 32    bl_fcp_count 16 each   frames sent and received by
 *                                                path, from a host to the fault isolation service
 *   faults    bl_fcp_hdr 32  bl_fcp_faults 24    bl_fcp_link 4 each     links to avoid, from that
 *                                                service to the arbiters
 *   heard     bl_fcp_hdr 32  bl_fcp_heard 16     an arbiter's answer to faults
 *
 * All integers are in network order. An integer that would not lie at a multiple of its size is
 * split into halves, so that no struct has padding.
 */
#ifndef BARLINE_FCP_ABI_H
#define BARLINE_FCP_ABI_H

#include <stddef.h>
#include <linux/types.h>

/* UDP; just below barline's range, so that no XDP program takes FCP for ordered traffic */
#define BL_FCP_PORT          61695
#define BL_FCP_WATCHDOG_PORT 61694
#define BL_FCP_FAULTS_PORT   61693 /* the fault isolation service listens here */
#define BL_FCP_MAGIC         0xFC50
#define BL_FCP_VERSION       1 /* upper 4 bits of the opcode byte */
#define BL_FCP_ENDPOINTS_MAX 4096
/* packets: width of ack_bits; older packets are neither acknowledged nor accepted */
#define BL_FCP_WINDOW     64
#define BL_FCP_TOTALS_MAX 64 /* destinations in one packet */
#define BL_FCP_RUNS_MAX   128
#define BL_FCP_PATH_ANY   0xFF /* the path that the flow's hash selects */
#define BL_FCP_COUNTS_MAX 66   /* in one REPORT: more than a peer has columns */
#define BL_FCP_LINKS_MAX  256  /* in one FAULTS */

/**
 * struct bl_fcp_hdr - the first 32 bytes of the UDP payload of every FCP packet.
 */
struct bl_fcp_hdr {
	__be16 magic; /* BL_FCP_MAGIC */
	__u8 opcode;  /* version << 4 | opcode */
	__u8 flags;   /* must be zero */
	/*
	 * REQ, ACK of a host: chosen by the host; a new one after each RESET that it accepts.
	 * RESET: that of the packet which it answers. HEARD: chosen by the arbiter at its start.
	 * FAULTS: that of the arbiter's last HEARD. 0 in all other packets.
	 */
	__be32 challenge;
	/*
	 * REQ, ALLOC: counted by the sender per session, from 1. WATCHDOG, REPORT, FAULTS: counted
	 * per sender. 0 in all other packets.
	 */
	__be32 seq;
	__be32 ack;      /* highest seq received in this session; 0: none */
	__be64 ack_bits; /* bit k: seq @ack - 1 - k was received as well */
	/*
	 * SipHash-2-4 of the UDP payload with this field zero. Key of REQ, ALLOC and ACK: (nonce ^
	 * secret 0, secret 1), so a packet of another session never matches; a host without a
	 * session uses nonce 0. Key of all other packets: the secret.
	 */
	__be64 check;
};
_Static_assert(sizeof(struct bl_fcp_hdr) == 32 && offsetof(struct bl_fcp_hdr, ack_bits) == 16 &&
		       offsetof(struct bl_fcp_hdr, check) == 24,
	       "wire");

/*
 * X(SYMBOL, number, "name"). Append only: the number is on the wire.
 *
 * To add an opcode:
 * 1. Define the struct of its body below, with a _Static_assert on the size.
 * 2. Parse and validate it in bl_fcp_parse() (core/fastpass/fcp_core.h), which refuses an opcode
 *    that it does not know, and let the end that receives it accept it (bl_fcp_host_read(),
 *    bl_fcp_arb_read() or bl_wd_read()).
 * 3. Add it to the table and a section to docs/protocol.md ("FCP opcodes"), and to fcp_opcodes and
 *    fcp_bodies in docs/barline.lua. tests/unit/test_protocol.c compares both with this list.
 * 4. Cover it in tests/unit/test_fcp_core.c.
 */
/* clang-format off */
#define BL_FCP_OPCODES(X) \
	X(REQ, 1, "req") /* host: timeslots wanted so far, by destination */ \
	X(ALLOC, 2, "alloc") /* arbiter: timeslots given so far, and new ones as runs */ \
	X(ACK, 3, "ack") /* either: acknowledges, and nothing else */ \
	X(RESET, 4, "reset") /* arbiter: offers a new session with all counts at zero */ \
	X(CALL, 5, "call") /* arbiter: asks for any packet, so that a session can begin */ \
	X(WATCHDOG, 6, "watchdog") /* primary to the other arbiters */ \
	X(REPORT, 7, "report") /* host to fault isolation: frames sent and received, by path */ \
	X(FAULTS, 8, "faults") /* fault isolation to arbiters: all links to be avoided */ \
	X(HEARD, 9, "heard") /* arbiter to fault isolation: the list that it has */
/* clang-format on */
#define BL_FCP_OPCODE_ENUM(sym, num, name) BL_FCP_##sym = num,
enum bl_fcp_opcode { BL_FCP_OPCODES(BL_FCP_OPCODE_ENUM) BL_FCP_OPCODE_LIMIT };
#undef BL_FCP_OPCODE_ENUM
#define BL_FCP_OPCODE_BYTE(op) ((__u8)(BL_FCP_VERSION << 4 | (op)))

/**
 * struct bl_fcp_total - a count for one destination since the session began, modulo 2^32. REQ:
 * slots wanted. ALLOC: slots given, including those of this packet.
 */
struct bl_fcp_total {
	__be16 dst; /* index in the arbiter's list of endpoints */
	__be16 total_hi;
	__be16 total_lo;
};
_Static_assert(sizeof(struct bl_fcp_total) == 6, "wire");

/**
 * struct bl_fcp_req - body of a REQ.
 */
struct bl_fcp_req {
	__be16 count;    /* totals that follow; 0: only a sign of life */
	__be16 reserved; /* must be zero */
};
_Static_assert(sizeof(struct bl_fcp_req) == 4, "wire");

/**
 * struct bl_fcp_alloc - body of an ALLOC; @totals totals follow, then @runs runs.
 */
struct bl_fcp_alloc {
	__u8 base[6]; /* timeslot that offsets count from: bus time / slot length, 48 bits */
	__u8 totals;
	__u8 runs;
};
_Static_assert(sizeof(struct bl_fcp_alloc) == 8, "wire");

/**
 * struct bl_fcp_run - the slots base + @offset + k * @stride for k = 0 .. @count - 1, all given to
 * one destination on one path.
 */
struct bl_fcp_run {
	__be16 offset; /* slots */
	__u8 which;    /* index of the destination among the packet's totals */
	__u8 path;     /* number of the path, or BL_FCP_PATH_ANY */
	__u8 count;    /* from 1 */
	__u8 stride;   /* slots; from 1 where @count is above 1 */
};
_Static_assert(sizeof(struct bl_fcp_run) == 6, "wire");

/**
 * struct bl_fcp_reset - body of a RESET, which offers a new session.
 */
struct bl_fcp_reset {
	__be64 nonce; /* of the new session; random, not 0 */
	/*
	 * Term of the arbiter (struct bl_fcp_watchdog). A host does not leave a session for one of
	 * an older term.
	 */
	__be32 term;
	__be32 table;      /* hash of the arbiter's list of endpoints; must equal the host's hash */
	__be32 slot_ns;    /* slot length, ns */
	__be32 slot_bytes; /* bytes of frame that fit into a slot */
	__be16 index;      /* of the receiving host in the list */
	__be16 endpoints;  /* length of the list */
	__be32 reserved;   /* must be zero */
};
_Static_assert(sizeof(struct bl_fcp_reset) == 32 && offsetof(struct bl_fcp_reset, index) == 24,
	       "wire");

/**
 * struct bl_fcp_watchdog - body of a WATCHDOG.
 */
struct bl_fcp_watchdog {
	__be32 term;      /* of the primary; grows with each takeover */
	__be16 rank;      /* of the sender: of two with equal terms, the lower rank stays primary */
	__u8 state;       /* enum bl_fcp_state */
	__u8 reserved;    /* must be zero */
	__be32 table;     /* as in a RESET */
	__be32 reserved2; /* must be zero */
};
_Static_assert(sizeof(struct bl_fcp_watchdog) == 16, "wire");

/**
 * struct bl_fcp_report - body of a REPORT; @count counts follow, by rising peer and path. The
 * packet covers all peers from @first to @last: a column that is not listed is 0.
 */
struct bl_fcp_report {
	/* bus time at which the host began to count; a later value than before: it starts anew */
	__be64 boot;
	__be64 at;    /* bus time at which the counts were read, ns */
	__be32 table; /* as in a RESET */
	__be16 index; /* of the reporting host */
	__be16 first;
	__be16 last;
	__be16 count;
	/* ns that reading took: @came counts are as of @at - @took, @sent counts as of @at */
	__be32 took;
};
_Static_assert(sizeof(struct bl_fcp_report) == 32 && offsetof(struct bl_fcp_report, index) == 20,
	       "wire");

/**
 * struct bl_fcp_count - frames between the reporting host and @peer on @path since @boot, modulo
 * 2^48.
 */
struct bl_fcp_count {
	__be16 peer;   /* index in the list of endpoints */
	__u8 path;     /* BL_FCP_PATH_ANY: the frame carries no path that can be seen */
	__u8 reserved; /* must be zero */
	__u8 sent[6];  /* frames that the pacer sent to @peer */
	__u8 came[6];  /* frames received from @peer for the application */
};
_Static_assert(sizeof(struct bl_fcp_count) == 16, "wire");

/**
 * struct bl_fcp_faults - body of a FAULTS; @count links follow, the complete list to be avoided.
 */
struct bl_fcp_faults {
	__be64 boot;      /* bus time at which the service started, ns */
	__be32 version;   /* of the list, from 1 */
	__be32 table;     /* as in a RESET */
	__be16 count;     /* links that follow */
	__be16 reserved;  /* not read */
	__be32 reserved2; /* not read */
};
_Static_assert(sizeof(struct bl_fcp_faults) == 24, "wire");

#define BL_FCP_RACK_ALL 0xffff

/**
 * struct bl_fcp_link - a link in one direction.
 */
struct bl_fcp_link {
	__be16 rack; /* BL_FCP_RACK_ALL: the links of all racks on this path */
	__u8 path;
	__u8 way; /* 0: from @rack up to the switch of @path; 1: from that switch down to @rack */
};
_Static_assert(sizeof(struct bl_fcp_link) == 4, "wire");

/**
 * struct bl_fcp_heard - body of a HEARD: which list of faults the arbiter has.
 */
struct bl_fcp_heard {
	__be64 boot;    /* of the arbiter's list; 0: it has none */
	__be32 version; /* of the arbiter's list; 0: it has none */
	__be32 table;   /* as in a RESET */
};
_Static_assert(sizeof(struct bl_fcp_heard) == 16, "wire");

/* X(SYMBOL, number, "name"): the state of an arbiter. Append only: the number is on the wire. */
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

/*
 * X(SYMBOL, "name", "text"): the result of every packet. Append only. To add a reason, add it to
 * the table in docs/protocol.md ("FCP reasons") as well; tests/unit/test_protocol.c compares them.
 */
/* clang-format off */
#define BL_FCP_REASONS(X) \
	X(OK, "ok", "accepted") \
	X(SHORT, "short", "ends inside the header or the body that it announces") \
	X(BAD_MAGIC, "bad_magic", "not FCP") \
	X(BAD_VERSION, "bad_version", "another version") \
	X(BAD_OPCODE, "bad_opcode", "unknown, or not meant for this end") \
	X(BAD_LENGTH, "bad_length", "longer than its body, or more entries than allowed") \
	X(BAD_BODY, "bad_body", "an entry breaks the rules: index, run or reserved field") \
	X(BAD_CHECK, "bad_check", "checksum of another session, or corrupted") \
	X(DUPLICATE, "duplicate", "sequence number that was received before, or given up") \
	X(OLD, "old", "sequence number before the window") \
	X(BAD_SEQ, "bad_seq", "sequence number out of reach, or acknowledges what was not sent") \
	X(OLD_RESET, "old_reset", "RESET that answers another challenge") \
	X(OLD_TERM, "old_term", "RESET or watchdog of an arbiter that was replaced") \
	X(BAD_TABLE, "bad_table", "RESET or watchdog for another list of endpoints") \
	X(STANDBY, "standby", "this arbiter is not the primary") \
	X(UNKNOWN, "unknown", "the sender is not in the list of endpoints, or of arbiters") \
	X(BAD_CHALLENGE, "bad_challenge", "FAULTS that answers another challenge")
/* clang-format on */
#define BL_FCP_REASON_ENUM(sym, name, text) BL_FCP_R_##sym,
enum bl_fcp_reason { BL_FCP_REASONS(BL_FCP_REASON_ENUM) BL_FCP_R_COUNT };
#undef BL_FCP_REASON_ENUM

#endif
