/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: what barline frames look like. docs/protocol.md is the reference;
 * tests/unit/docs/test_protocol.c compares it with this file and with the Wireshark dissector.
 *
 * Data travels in UDP over IPv4 or IPv6 (so that routers carry it), the 24-byte header first in the
 * UDP payload. Beacons are Ethernet frames that never leave their link:
 *
 *   data     eth 14 [vlan 4] ip 20|40 udp 8  bl_hdr 24  body
 *   ack      the same, then Ethernet padding: its frame may be as long as a beacon (struct bl_prep)
 *   beacon   eth 14 [vlan 4]                 bl_hdr 24  bl_beacon 8  relay scratch 96
 *   rsv, grt, release  eth 14                bl_hdr 24  bl_rsv_body 22
 */
#ifndef BARLINE_WIRE_ABI_H
#define BARLINE_WIRE_ABI_H

#include <linux/types.h>

#define BL_VERSION   1      /* upper 3 bits of the opcode byte */
#define BL_ETHERTYPE 0x88B5 /* IEEE 802 local experimental 1 */
/* 802.1Q nearest bridge: never forwarded */
#define BL_BEACON_MAC                              \
	{                                          \
		0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e \
	}
/* first UDP port of barline's range; above Linux's ephemeral range */
#define BL_PORT_BASE  61696
#define BL_PORT_COUNT 256
#define BL_LANES_MAX  8 /* 3 bits of the flags */
#define BL_SETS_MAX   8 /* distinct input sets of one switch; see relay scratch */
#define BL_TS_BITS    48
#define BL_TS_MASK    ((1ULL << BL_TS_BITS) - 1)
/*
 * ns, 19.5 h: a barrier this far back promises nothing and is never mistaken for one ahead. Nearly
 * as far as 48 bits reach, because a commit barrier that stands still, while it waits for somebody
 * who died, must not seem to rise when it gets that old.
 */
#define BL_TS_OLD  (1ULL << 46)
#define BL_MSG_MAX (1U << 20) /* largest message, bytes */

/**
 * struct bl_hdr - 1Pipe section 6.1's 24 bytes, network order.
 * @ts: message timestamp, 48-bit bus nanoseconds; 0 in frames that carry no ordered message.
 * @barrier: no later frame on this lane carries a best-effort message below it. Rewritten at every
 * hop.
 * @commit: every reliable message below it is stored by all its receivers, or was recalled; no
 * later one will be below it. Equal to @barrier where nothing reliable is outstanding.
 * @psn: packet sequence number, counted by the sender per destination endpoint, from 0.
 * @opcode: version << 5 | opcode.
 * @flags: hop | (lanes - 1) << 3 | lane. Rewritten at every hop.
 */
struct bl_hdr {
	__u8 ts[6];
	__u8 barrier[6];
	__u8 commit[6];
	/* psn is 2-byte aligned on the wire: two halves keep the struct free of padding */
	__be16 psn_hi;
	__be16 psn_lo;
	__u8 opcode;
	__u8 flags;
};
_Static_assert(sizeof(struct bl_hdr) == 24, "the header is 24 bytes on the wire");

/* X(SYMBOL, number, "name", UDP or LINK) */
/* clang-format off */
#define BL_OPCODES(X) \
	X(DATA,   1, "data",   UDP)  /* one or more whole messages, and references to preloaded ones */ \
	X(FRAG,   2, "frag",   UDP)  /* part of a large message, sent ahead; carries no ts */ \
	X(CREDIT, 3, "credit", UDP)  /* receive window of the destination */ \
	X(NAK,    4, "nak",    UDP)  /* messages that were not delivered */ \
	X(PROBE,  5, "probe",  UDP)  /* asks for a CREDIT after silence */ \
	X(BEACON, 6, "beacon", LINK) /* barriers on an idle link */ \
	X(RSV,    7, "rsv",    LINK) /* a host asks its switch for timeslots (PL2) */ \
	X(GRT,    8, "grt",    LINK) /* the switch's answer; a copy goes to the receiver */ \
	X(RELEASE, 9, "release", LINK) /* a receiver gives back what a sender was promised and did not use */ \
	X(PREP,   10, "prep",   UDP)  /* reliable messages, or a part of one: to be stored, answered, and delivered once it is committed */ \
	X(ACK,    11, "ack",    UDP)  /* the same frame on its way back: it is stored */ \
	X(OPEN,   12, "open",   UDP)  /* asks a receiver for its reliable window */ \
	X(WINDOW, 13, "window", UDP)  /* the receiver's answer, and what it says as its buffers become free */ \
	X(RECALL, 14, "recall", UDP)  /* take prepared frames out again: their scattering will not be committed */ \
	X(RECALLED, 15, "recalled", UDP) /* they are out */
/* clang-format on */

#define BL_OPCODE_ENUM(sym, num, name, where) BL_OP_##sym = num,
enum bl_opcode { BL_OPCODES(BL_OPCODE_ENUM) BL_OP_LIMIT };
#undef BL_OPCODE_ENUM
#define BL_OPCODE_BYTE(op) ((__u8)(BL_VERSION << 5 | (op)))

/* which kind of node wrote the barriers, and in which direction: BL_HOP_* */
#define BL_F_HOP          0xc0
#define BL_F_LANES(n)     (((n)-1) << 3)
#define BL_FLAGS_LANES(f) ((((f) >> 3) & 7) + 1)
#define BL_FLAGS_LANE(f)  ((f)&7)

/*
 * Who wrote the barriers of a frame (core/order/hop_core.h). A node learns from its neighbour's
 * beacons, which no bridge and no router passes on, what that neighbour writes, and takes barriers
 * from no other frame.
 */
#define BL_HOP_HOST    0x00 /* a host; also a switch between two others, to those below it */
#define BL_HOP_LEAF_UP 0x40 /* a switch that has hosts, to those above it */
/* a switch that has hosts, to these; one between two others, upwards */
#define BL_HOP_LEAF 0x80
#define BL_HOP_TOP  0xc0 /* a switch that has neither hosts nor anybody above it */

/**
 * struct bl_beacon - body of a beacon, after its header.
 * @tai_offset_s: the sender's TAI - UTC in seconds as its kernel knows it. A neighbour with another
 *value is refused.
 * @policy: how the sender admits traffic of applications: enum bl_policy + 1; 0: it has no
 *admission, or is of a version that does not say it. Neighbours that disagree say so
 *(core/policy_core.h).
 * @port: the sender's port number, for people who read captures.
 * @node_id: the sender, for people and for loop detection: a node drops a beacon of its own.
 */
struct bl_beacon {
	__be16 tai_offset_s;
	__u8 policy;
	__u8 port;
	__be32 node_id;
};
_Static_assert(sizeof(struct bl_beacon) == 8, "ABI");

/*
 * Relay scratch: the switch program writes the barriers of each of its input sets here before it
 * clones the beacon, and the devmap program copies its own port's into the header of its clone.
 * Computed once, at ingress: at the flush, when the devmap program runs, the registers may already
 * be ahead of data that is queued behind the clone. Undefined on receipt; barrier 0: no input of
 * the set has joined.
 */
struct bl_relay {
	struct {
		__u8 barrier[6];
		__u8 commit[6];
	} set[BL_SETS_MAX];
};
_Static_assert(sizeof(struct bl_relay) == 96, "ABI");
/* 142 */
#define BL_BEACON_LEN \
	(14 + sizeof(struct bl_hdr) + sizeof(struct bl_beacon) + sizeof(struct bl_relay))

/**
 * struct bl_rsv_body - body of RSV, GRT and RELEASE: 60 bytes of frame, 64 with the FCS. The
 * sequence number is the header's psn; its ts, barrier and commit are 0: these frames go in a class
 * of their own, before data, and promise nothing.
 * @mac: RSV, GRT: destination of the burst. Copy of a GRT: its sender. RELEASE: the sender that did
 * not send.
 * @bytes: of the burst, byte times (core/length_core.h). RELEASE: what did not come.
 * @in_wait_ns, @out_wait_ns: GRT: from the reservation to the slot, at the sender's port and at the
 * receiver's.
 * @flags: BL_RSV_EARLY, BL_GRT_*. @cookie: the asking host's own, sent back.
 */
struct bl_rsv_body {
	__u8 mac[6];
	__be16 bytes_hi;
	__be16 bytes_lo;
	__be16 in_wait_ns_hi;
	__be16 in_wait_ns_lo;
	__be16 out_wait_ns_hi;
	__be16 out_wait_ns_lo;
	__u8 flags;
	__u8 reserved;
	__be16 cookie;
};
_Static_assert(sizeof(struct bl_rsv_body) == 22, "ABI"); /* the two waits are written as one word */
#define BL_RSV_LEN     (14 + sizeof(struct bl_hdr) + sizeof(struct bl_rsv_body)) /* 60 */
#define BL_RSV_EARLY   0x01 /* RSV: the burst follows at once */
#define BL_GRT_PASSED  0x02 /* GRT: that burst is let through: do not send it again */
#define BL_GRT_REFUSED 0x04 /* GRT: nothing was promised; ask again later */
#define BL_GRT_COPY    0x08 /* GRT: for the receiver, to know what is coming */
/* GRT, with REFUSED: this switch promises nothing; data passes without */
#define BL_GRT_OFF 0x10
/*
 * An unsolicited frame is known by this bit of its source address, which is 0 in bl0's; the switch
 * clears it.
 */
#define BL_EARLY_MAC0 0x08
/*
 * Fastpass: the path that a frame of bl0 is to take, plus 1, in these bits of its source address;
 * 0: none. A switch that routes puts them into its own address, so that the next one sees them,
 * too.
 */
#define BL_PATH_MAC0          0xf0
#define BL_PATHS_IN_MAC       15
#define BL_PATH_TO_MAC0(path) ((__u8)(((path) + 1) << 4))
#define BL_PATH_OF_MAC0(b)    (((b) >> 4) - 1) /* of a byte with any of the bits */

/**
 * struct bl_data - first bytes of a DATA, FRAG or PROBE body.
 * @incarnation: changes when the sending endpoint restarts; receivers forget the old sequence
 * numbers then.
 * @count: DATA: number of items that follow (1 to BL_ITEMS_MAX). FRAG, PROBE: 0.
 *
 * DATA items: be16 length, then that many bytes; length BL_ITEM_REF: a struct bl_ref instead:
 * deliver here the message that FRAGs brought. What follows the last item is padding (frames of one
 * UDP GSO send are equally long). FRAG: struct bl_frag, then bytes. PROBE: nothing; psn is the next
 * one that the sender would use.
 */
struct bl_data {
	__be16 incarnation;
	__be16 count;
};
#define BL_ITEMS_MAX 64
#define BL_ITEM_REF  0xFFFF
struct bl_ref {
	__be32 msg_id;
	__be32 length;
};
struct bl_frag {
	__be32 msg_id;
	__be32 offset; /* bytes */
	__be32 length; /* of the whole message, bytes */
};

/**
 * struct bl_credit - body of a CREDIT.
 * @psn: every frame before it was delivered, dropped or lost: its buffer is free again.
 * @incarnation: of the DATA sender that this answers.
 * @window: frames that may be outstanding from @psn on.
 */
struct bl_credit {
	__be32 psn;
	__be16 incarnation;
	__be16 window;
};

/* why a message was not delivered; in NAKs and in the send_fail callback. Append only. */
/* clang-format off */
#define BL_NAKS(X) \
	X(LATE,        1, "late")         /* came below what was already delivered: the FIFO was broken */ \
	X(LOST,        2, "lost")         /* a gap in the sequence numbers */ \
	X(INCOMPLETE,  3, "incomplete")   /* parts of a large message were lost */ \
	X(NO_MEMORY,   4, "no_memory")    /* the receiver could not hold it */ \
	X(UNREACHABLE, 5, "unreachable")  /* local: the receiver does not answer any more */ \
	X(MALFORMED,   6, "malformed")    /* the body could not be parsed */ \
	X(FAILED,      7, "failed")       /* local: a receiver of the scattering failed, and none delivered it */ \
	X(UNKNOWN,     8, "unknown")      /* local: it left, and no answer came: it may have been delivered */ \
	X(LEFT,        9, "left")         /* the receiver ended in order and had not delivered it */
/* clang-format on */
#define BL_NAK_ENUM(sym, num, name) BL_NAK_##sym = num,
enum bl_nak_why { BL_NAKS(BL_NAK_ENUM) };
#undef BL_NAK_ENUM

/**
 * struct bl_nak - body of a NAK: @count frames from @psn on were not delivered, for @why.
 * @item: with @count 1: only this item of the frame; BL_NAK_WHOLE: all of it.
 */
struct bl_nak {
	__be32 psn;
	__be32 count;
	__be16 incarnation;
	__u8 why;
	__u8 item;
};
#define BL_NAK_WHOLE 0xff

/**
 * struct bl_prep - follows struct bl_data in the body of a PREP.
 * @slot: place of the frame in the sender's window: frames that the endpoint sent reliably so far,
 * modulo 2^32. The ACK brings it back.
 * @life: incarnation of the receiver, as its WINDOW said: a PREP for a life that has ended is not
 * stored.
 * @copy: how many times the frame was sent before; 65535: as often or more often. The ACK brings it
 * back, so the sender knows whether the way was long, or whether earlier copies were lost (RFC 3522
 * does that for TCP).
 *
 * With a count of 1 or more in struct bl_data: items as in DATA; a reference names a message that
 * came in parts. With count 0: a struct bl_frag and bytes, a part of a large message; what is past
 * the message's end is padding. All frames of a scattering have its ts. psn counts PREPs per
 * destination, from 0.
 *
 * The ACK is the frame itself, turned round by the receiver's XDP program and cut to BL_ACK_BODY
 * bytes of body: ts, psn and these fields are unchanged. B and C are old. The frame on the wire is
 * not cut below the length of a beacon, since the sender's XDP program may make one of it
 * ("commit"); libbarline sends no PREP with a shorter UDP payload than BL_PREP_MIN.
 */
struct bl_prep {
	__be32 slot;
	__be16 life;
	__be16 copy;
};
_Static_assert(sizeof(struct bl_prep) == 8, "ABI");
#define BL_ACK_BODY (sizeof(struct bl_data) + sizeof(struct bl_prep)) /* 12 */
#define BL_PREP_MIN (BL_BEACON_LEN - 14 - 20 - 8)                     /* 100 */

/**
 * struct bl_window - body of a WINDOW. OPEN has a struct bl_data with count 0 as its body; its psn
 * is the next one that the sender would use: with a new incarnation, its numbers begin there.
 * @psn: every frame before it has left the receiver's buffers.
 * @incarnation: of the sender that this answers.
 * @window: frames that may be outstanding from @psn on; not 0.
 * @life: incarnation of the receiver.
 * @reserved: must be zero.
 */
struct bl_window {
	__be32 psn;
	__be16 incarnation;
	__be16 window;
	__be16 life;
	__be16 reserved;
};
_Static_assert(sizeof(struct bl_window) == 12, "ABI");

/**
 * struct bl_recall - body of a RECALL and of a RECALLED, which repeats it; psn of both is the first
 * one of those that were sent to this receiver.
 * @incarnation: of the sender. @life: of the receiver. @count: frames from psn on; not 0.
 * @ts: of the scattering, its low 48 bits; the header's ts is 0, since nothing here is a message.
 * @reserved: must be zero.
 */
struct bl_recall {
	__be16 incarnation;
	__be16 life;
	__be32 count;
	__u8 ts[6];
	__be16 reserved;
};
_Static_assert(sizeof(struct bl_recall) == 16, "ABI");

#endif
