/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on the wire (TOP sections 3.1 and 4.4): tokens and signals between the two hosts of a flow,
 * in UDP over IPv4 or IPv6, between their addresses on bl0. docs/protocol.md, "TOP", is the
 * reference; tests/unit/docs/test_protocol.c compares it with this file and with the Wireshark
 * dissector.
 *
 *   token  eth 14 [vlan 4] ip 20|40 udp 8  bl_top_hdr 18
 *          from receiver to sender: one full data frame may be sent
 *   sync   ...                             bl_top_hdr 18  bl_top_sync 28
 *          from sender to receiver: frames wait here
 *   fin    ...                             bl_top_hdr 18  bl_top_fin 12
 *          from sender to receiver: the final size of the flow
 *   loss   ...                             bl_top_hdr 18  bl_top_loss 16
 *          from receiver to sender: data received, and data missing
 *   stop   ...                             bl_top_hdr 18  [bl_top_stop 4]
 *          from sender to receiver: no more frames wait here
 *   data   eth 14 [vlan 4] ip ...          bl_top_echo 12
 *          from sender to receiver: a frame of an application, with the echo behind the IP packet
 *
 * A token over IPv4 is 60 bytes of frame and 84 on the wire, with FCS, preamble and gap. A full
 * data frame is 1538 there, so tokens get 84 / (84 + 1538) of a link.
 *
 * An integer that would not lie at a multiple of its size in the frame is split into halves, so
 * that no struct has padding. The rules of hosts are in core/top/top_core.h, those of switches in
 * core/top/top_token_core.h.
 */
#ifndef BARLINE_TOP_ABI_H
#define BARLINE_TOP_ABI_H

#include <stddef.h>
#include <linux/types.h>

/*
 * UDP destination port; below FCP's ports and outside of barline's ordered range, since these
 * frames promise nothing and belong to no lane
 */
#define BL_TOP_PORT      61692
#define BL_TOP_VERSION   1  /* upper 4 bits of the opcode byte */
#define BL_TOP_CLASSES   6  /* 0 is the best */
#define BL_TOP_TOKEN_LEN 60 /* bytes of frame over IPv4, untagged; 80 over IPv6 */

/*
 * UDP source port of all TOP frames of a flow, in both directions: bl_top_flow_port()
 * (core/top/top_token_core.h) of the flow's addresses and ports, which is the same in both. The
 * sender of data chooses it in its SYNC, and the receiver's tokens repeat it. Switches with
 * symmetric ECMP compute it from the data frames as well, so that tokens and data take exactly
 * reverse paths.
 */
#define BL_TOP_SPORT_BASE  0xC000
#define BL_TOP_SPORT_COUNT 0x2000 /* a power of two */

/**
 * struct bl_top_hdr - the first 18 bytes of the UDP payload, in network order.
 */
struct bl_top_hdr {
	__u8 opcode; /* version << 4 | opcode */
	__u8 cls;    /* TOKEN: 0 (best) to BL_TOP_CLASSES - 1, others are refused. Elsewhere 0. */
	__be16 flow; /* number of the flow at the sender of data */
	/*
	 * TOKEN: counted by the receiver per flow, from 1. SYNC, FIN, LOSS, STOP: counted by the
	 * host that sends them, per flow, from 1.
	 */
	__be16 seq_hi;
	__be16 seq_lo;
	__u8 ts[6]; /* bus time at which it was sent, 48 bits, ns */
	/*
	 * Random number of the flow, chosen by the sender of data in its SYNC: a frame with another
	 * tag is old or forged.
	 */
	__be16 tag_hi;
	__be16 tag_lo;
};
_Static_assert(sizeof(struct bl_top_hdr) == 18 && offsetof(struct bl_top_hdr, ts) == 8 &&
		       offsetof(struct bl_top_hdr, tag_hi) == 14,
	       "wire");

/*
 * X(SYMBOL, number, "name"). Append only: the number is on the wire.
 *
 * To add an opcode:
 * 1. Define the struct of its body below, with a _Static_assert on the size.
 * 2. Parse it in bl_top_parse() (core/top/top_core.h), and handle it in bpf/host/top_rx.h or
 *    bpf/host/top_tx.h. Switches pass everything that is not a TOKEN as a signal.
 * 3. Add it to the table "TOP opcodes" and a section to docs/protocol.md, and to docs/barline.lua
 *    (top_opcodes, top_bodies). tests/unit/test_protocol.c compares both with this list.
 * 4. Update tests/fuzz/barline.dict (`make fuzz` writes the new one and says which file to copy),
 *    and cover the opcode in tests/unit/test_top_tx_core.c and in tests/prog/test_top.c or
 *    test_top_rx.c.
 */
/* clang-format off */
#define BL_TOP_OPCODES(X) \
	X(TOKEN, 1, "token") /* receiver: the sender may send one full data frame */ \
	X(SYNC,  2, "sync")  /* sender: frames wait; repeated until tokens arrive */ \
	X(FIN,   3, "fin")   /* sender: the final size of a flow whose size was not known */ \
	X(LOSS,  4, "loss")  /* receiver: data that arrived, and data that is missing */ \
	X(STOP,  5, "stop")  /* sender: nothing waits now; send no more tokens */
/* clang-format on */
#define BL_TOP_OPCODE_ENUM(sym, num, name) BL_TOP_##sym = num,
enum bl_top_opcode { BL_TOP_OPCODES(BL_TOP_OPCODE_ENUM) BL_TOP_OPCODE_LIMIT };
#undef BL_TOP_OPCODE_ENUM
#define BL_TOP_OPCODE_BYTE(op) ((__u8)(BL_TOP_VERSION << 4 | (op)))

#define BL_TOP_SAYS_CLASS      0xFFFFFFFFFFF8ULL
/**
 * struct bl_top_sync - body of a SYNC: the sender holds frames.
 */
struct bl_top_sync {
	__be16 zero; /* must be zero: @bytes is a 64-bit integer of which 48 bits are in use */
	/*
	 * Size of the flow; 0: not known. From BL_TOP_SAYS_CLASS on, not a size but a class in the
	 * lowest three bits; a class that does not exist means the worst one in use.
	 */
	__u8 bytes[6];
	__be16 frames_hi; /* frames that wait */
	__be16 frames_lo;
	__be16 deadline_hi; /* microseconds until the flow should be complete; 0: no deadline */
	__be16 deadline_lo;
	__be16 coflow_hi; /* number of the coflow; 0: none */
	__be16 coflow_lo;
	__be16 unscheduled; /* frames that follow at once, without tokens */
	__be16 reserved;    /* must be zero */
	__be16 data_hi;     /* number of the last data frame sent; 0: they have no numbers */
	__be16 data_lo;
};
_Static_assert(sizeof(struct bl_top_sync) == 28 && offsetof(struct bl_top_sync, frames_hi) == 8,
	       "wire");

/**
 * struct bl_top_fin - body of a FIN: the flow has ended.
 */
struct bl_top_fin {
	__be16 zero;    /* must be zero */
	__u8 bytes[6];  /* final size of the flow */
	__be16 data_hi; /* as in a SYNC */
	__be16 data_lo;
};
_Static_assert(sizeof(struct bl_top_fin) == 12, "wire");

/**
 * struct bl_top_stop - body of a STOP that the pacer sends. A STOP that was made of a token has no
 * body, since the frame may not be able to grow.
 */
struct bl_top_stop {
	__be16 data_hi; /* as in a SYNC */
	__be16 data_lo;
};
_Static_assert(sizeof(struct bl_top_stop) == 4, "wire");

/**
 * struct bl_top_loss - body of a LOSS: which of the 64 data frames up to a number were received.
 * One bit for each, so that the length cannot lie and close numbers need no list; and since a frame
 * that is not missing has arrived, a LOSS is also an acknowledgement.
 */
struct bl_top_loss {
	__be16 data_hi; /* the number */
	__be16 data_lo;
	/*
	 * 64 bits; bit k: frame @data - k is missing. An earlier frame that is not named has
	 * arrived or is given up. Nothing is said about frames after @data.
	 */
	__be16 missing_hi_hi;
	__be16 missing_hi_lo;
	__be16 missing_lo_hi;
	__be16 missing_lo_lo;
	/*
	 * Microseconds from a token to its data, as measured by the receiver: a missing frame is
	 * sent again at most once in this time.
	 */
	__be16 rtt_hi;
	__be16 rtt_lo;
};
_Static_assert(sizeof(struct bl_top_loss) == 16 && offsetof(struct bl_top_loss, rtt_hi) == 12, "wir"
											       "e");

#define BL_TOP_ECHO_MAGIC 0x70BE
/**
 * struct bl_top_echo - trailer of a data frame, behind the IP packet, whose own length says where
 * it ends: which token the frame answers. The receiver measures the loss of tokens from the gaps
 * (ExpressPass section 3.2), and its program removes the trailer.
 */
struct bl_top_echo {
	__be16 magic;  /* BL_TOP_ECHO_MAGIC */
	__be16 flow;   /* of the token */
	__be16 seq_hi; /* of the token */
	__be16 seq_lo;
	/*
	 * Number of this frame among those that its sender keeps until they have arrived, from 1;
	 * 0: it keeps none. Separate from the token's number, since tokens are lost by design and a
	 * gap in their numbers says nothing about data.
	 */
	__be16 data_hi;
	__be16 data_lo;
};
_Static_assert(sizeof(struct bl_top_echo) == 12, "wire");

#endif
