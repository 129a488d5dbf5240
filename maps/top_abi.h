/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on the wire (TOP sections 3.1 and 4.4): tokens and signals between the two hosts of a flow,
 * in UDP over IPv4 or IPv6, between their addresses on bl0. docs/protocol.md, "TOP", is the
 * reference; tests/unit/docs/test_protocol.c compares it with this file and with the Wireshark
 * dissector.
 *
 *   token    eth 14 [vlan 4] ip 20|40 udp 8  bl_top_hdr 18                       receiver to
 * sender: one full data frame may come sync     ...                             bl_top_hdr 18
 * bl_top_sync 28       sender to receiver: I hold frames for you fin      ... bl_top_hdr 18
 * bl_top_fin 12        sender to receiver: how long the flow has become loss     ... bl_top_hdr 18
 * bl_top_loss 16       receiver to sender: these came, and these are missing stop     ...
 * bl_top_hdr 18  [bl_top_stop 4]      sender to receiver: I hold nothing more now data     eth 14
 * [vlan 4] ip ...                         bl_top_echo 12       a frame of an application; the echo
 * lies behind the IP packet
 *
 * A token over IPv4 is 60 bytes of frame: 84 on the wire with FCS, preamble and gap. A full data
 * frame is 1538 there, so tokens get 84 / (84 + 1538) of a link.
 *
 * Integers that do not lie at a multiple of their size in the frame are split into halves, so that
 * no struct has padding.
 */
#ifndef BARLINE_TOP_ABI_H
#define BARLINE_TOP_ABI_H

#include <stddef.h>
#include <linux/types.h>

/*
 * UDP destination port; below FCP's, outside of barline's ordered range: these frames promise
 * nothing and belong to no lane
 */
#define BL_TOP_PORT      61692
#define BL_TOP_VERSION   1  /* upper 4 bits of the opcode byte */
#define BL_TOP_CLASSES   6  /* 0 is the best */
#define BL_TOP_TOKEN_LEN 60 /* bytes of frame over IPv4, untagged; 80 over IPv6 */

/*
 * UDP source port of all TOP frames of a flow, both ways: bl_top_flow_port()
 * (core/top/top_token_core.h) of the flow's addresses and ports, the same in both directions. The
 * sender of data chooses it in its SYNC; the receiver's tokens repeat it. Switches with symmetric
 * ECMP compute it from the data frames, too, so that tokens and data take exactly reverse paths.
 */
#define BL_TOP_SPORT_BASE  0xC000
#define BL_TOP_SPORT_COUNT 0x2000 /* a power of two */

/**
 * struct bl_top_hdr - first in the UDP payload, network order.
 * @opcode: version << 4 | opcode.
 * @cls: TOKEN: 0 (best) to BL_TOP_CLASSES - 1; what is above is refused. Elsewhere 0.
 * @flow: number of the flow at the sender of data.
 * @seq_hi, @seq_lo: TOKEN: counted by the receiver per flow, from 1. SYNC, FIN, LOSS, STOP: counted
 * by who sends them, per flow, from 1.
 * @ts: 48-bit bus time when it was sent.
 * @tag_hi, @tag_lo: random per flow, chosen by the sender of data in its SYNC: what carries another
 * one is old or forged.
 */
struct bl_top_hdr {
	__u8 opcode;
	__u8 cls;
	__be16 flow;
	__be16 seq_hi;
	__be16 seq_lo;
	__u8 ts[6];
	__be16 tag_hi;
	__be16 tag_lo;
};
_Static_assert(sizeof(struct bl_top_hdr) == 18 && offsetof(struct bl_top_hdr, ts) == 8 &&
		       offsetof(struct bl_top_hdr, tag_hi) == 14,
	       "wire");

/* X(SYMBOL, number, "name"); append only */
/* clang-format off */
#define BL_TOP_OPCODES(X) \
	X(TOKEN, 1, "token") /* receiver: one full data frame may come */ \
	X(SYNC,  2, "sync")  /* sender: frames wait; repeated until tokens come */ \
	X(FIN,   3, "fin")   /* sender: the final size of a flow whose size was not known */ \
	X(LOSS,  4, "loss")  /* receiver: data that came, and that did not */ \
	X(STOP,  5, "stop")  /* sender: nothing waits now; send no more tokens */
/* clang-format on */
#define BL_TOP_OPCODE_ENUM(sym, num, name) BL_TOP_##sym = num,
enum bl_top_opcode { BL_TOP_OPCODES(BL_TOP_OPCODE_ENUM) BL_TOP_OPCODE_LIMIT };
#undef BL_TOP_OPCODE_ENUM
#define BL_TOP_OPCODE_BYTE(op) ((__u8)(BL_TOP_VERSION << 4 | (op)))

/**
 * struct bl_top_sync - body of a SYNC.
 * @zero: must be zero: @bytes is a 64-bit integer of which 48 are in use. @bytes: of the flow; 0:
 *not known. From BL_TOP_SAYS_CLASS on: no size but a class, in the lowest three bits; the worst in
 *use if there is no such class.
 * @frames_hi, @frames_lo: frames that wait. @deadline_hi, @deadline_lo: microseconds until the flow
 *shall be done; 0: none. @coflow_hi, @coflow_lo: 0: none.
 * @unscheduled: frames that follow at once, without tokens.
 * @reserved: must be zero.
 * @data_hi, @data_lo: number of the last data frame that was sent; 0: this flow's frames have none.
 */
#define BL_TOP_SAYS_CLASS 0xFFFFFFFFFFF8ULL
struct bl_top_sync {
	__be16 zero;
	__u8 bytes[6];
	__be16 frames_hi;
	__be16 frames_lo;
	__be16 deadline_hi;
	__be16 deadline_lo;
	__be16 coflow_hi;
	__be16 coflow_lo;
	__be16 unscheduled;
	__be16 reserved;
	__be16 data_hi;
	__be16 data_lo;
};
_Static_assert(sizeof(struct bl_top_sync) == 28 && offsetof(struct bl_top_sync, frames_hi) == 8,
	       "wire");

/**
 * struct bl_top_fin - body of a FIN. @zero, @bytes: the final size, as in a SYNC. @data_hi,
 * @data_lo: as in a SYNC.
 */
struct bl_top_fin {
	__be16 zero;
	__u8 bytes[6];
	__be16 data_hi;
	__be16 data_lo;
};
_Static_assert(sizeof(struct bl_top_fin) == 12, "wire");

/**
 * struct bl_top_stop - body of a STOP that the pacer sends; one that a token became has none: its
 * frame may not be able to grow. @data_hi, @data_lo: as in a SYNC.
 */
struct bl_top_stop {
	__be16 data_hi;
	__be16 data_lo;
};
_Static_assert(sizeof(struct bl_top_stop) == 4, "wire");

/**
 * struct bl_top_loss - body of a LOSS: what is known of the 64 data frames up to a number. A bit
 *each, of a length that cannot lie, where a list would repeat numbers that are close together; and
 *what is not missing has come, so the same frame acknowledges.
 * @data_hi, @data_lo: the number. @missing_hi_hi, @missing_hi_lo, @missing_lo_hi, @missing_lo_lo:
 *bit k of these 64: number @data - k is missing; of what it does not name nothing is said if it is
 *later than
 *	@data, and it came, or is given up, if it is earlier.
 * @rtt_hi, @rtt_lo: microseconds from a token to its data, as the receiver knows it: what is
 *missing is sent again once in so long.
 */
struct bl_top_loss {
	__be16 data_hi;
	__be16 data_lo;
	__be16 missing_hi_hi;
	__be16 missing_hi_lo;
	__be16 missing_lo_hi;
	__be16 missing_lo_lo;
	__be16 rtt_hi;
	__be16 rtt_lo;
};
_Static_assert(sizeof(struct bl_top_loss) == 16 && offsetof(struct bl_top_loss, rtt_hi) == 12, "wir"
											       "e");

/**
 * struct bl_top_echo - trailer of a data frame, behind the IP packet, whose own length tells where
 *that ends: which token it answers (ExpressPass section 3.2: loss of tokens is measured from the
 *gaps). The receiving host's program takes it off.
 * @magic: BL_TOP_ECHO_MAGIC. @flow, @seq_hi, @seq_lo: the token's.
 * @data_hi, @data_lo: number of this frame among those that its sender keeps until they have come,
 *from 1; 0: it keeps none. A number of its own, since a gap in those of tokens says nothing of
 *data: tokens get lost by design.
 */
#define BL_TOP_ECHO_MAGIC 0x70BE
struct bl_top_echo {
	__be16 magic;
	__be16 flow;
	__be16 seq_hi;
	__be16 seq_lo;
	__be16 data_hi;
	__be16 data_lo;
};
_Static_assert(sizeof(struct bl_top_echo) == 12, "wire");

#endif
