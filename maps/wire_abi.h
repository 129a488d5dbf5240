/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire format of barline frames. docs/protocol.md is the reference;
 * tests/unit/docs/test_protocol.c compares it with this file and with the Wireshark dissector.
 *
 * Data travels in UDP over IPv4 or IPv6, so that routers carry it, with the 24-byte header first in
 * the UDP payload. Beacons and reservations are Ethernet frames that never leave their link:
 *
 *   data               eth 14 [vlan 4] ip 20|40 udp 8  bl_hdr 24  body
 *   ack                the same, then Ethernet padding: its frame may be as long as a beacon
 *                      (struct bl_prep)
 *   beacon             eth 14 [vlan 4]                 bl_hdr 24  bl_beacon 8  relay scratch 96,
 *                                                      with a bl_link_body 40 at its byte 16
 *   rsv, grt, release  eth 14                          bl_hdr 24  bl_rsv_body 22
 *
 * Example: a DATA frame with one message of 100 bytes over IPv4 is 14 + 20 + 8 + 24 + 4 (struct
 * bl_data) + 2 (item length) + 100 = 172 bytes of frame.
 *
 * Parsing and building are in core/wire_core.h. FCP and TOP have formats of their own
 * (maps/fcp_abi.h, maps/top_abi.h).
 */
#ifndef BARLINE_WIRE_ABI_H
#define BARLINE_WIRE_ABI_H

#include <linux/types.h>

#define BL_VERSION   1      /* upper 3 bits of the opcode byte */
#define BL_ETHERTYPE 0x88B5 /* IEEE 802 local experimental 1 */
/* 802.1Q nearest bridge group: bridges never forward it */
#define BL_BEACON_MAC                              \
	{                                          \
		0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e \
	}
/* first UDP port of barline's range, which is above Linux's ephemeral range */
#define BL_PORT_BASE  61696
#define BL_PORT_COUNT 256
#define BL_LANES_MAX  8 /* 3 bits of the flags */
#define BL_SETS_MAX   8 /* distinct input sets of one switch; see struct bl_relay */
#define BL_TS_BITS    48
#define BL_TS_MASK    ((1ULL << BL_TS_BITS) - 1)
/*
 * ns, 19.5 h: a barrier that is this far back promises nothing and is never mistaken for one ahead.
 * Nearly as far as 48 bits reach, since a commit barrier that stands still while it waits for a
 * dead process must not seem to rise when it gets that old.
 */
#define BL_TS_OLD  (1ULL << 46)
#define BL_MSG_MAX (1U << 20) /* largest message, bytes */

/**
 * struct bl_hdr - the header of 1Pipe section 6.1: 24 bytes in network order.
 */
struct bl_hdr {
	/* message timestamp, 48 bits of bus time in ns; 0 in frames without an ordered message */
	__u8 ts[6];
	/* no later frame on this lane carries a best-effort message below it. Rewritten per hop. */
	__u8 barrier[6];
	/*
	 * Every reliable message below it is stored by all its receivers, or was recalled, and no
	 * later message will be below it. Equal to @barrier where nothing reliable is outstanding.
	 * Rewritten per hop.
	 */
	__u8 commit[6];
	/*
	 * Packet sequence number, counted by the sender per destination endpoint, from 0. It lies
	 * at a multiple of 2 only: two halves keep the struct free of padding.
	 */
	__be16 psn_hi;
	__be16 psn_lo;
	__u8 opcode; /* version << 5 | opcode */
	__u8 flags;  /* hop | (lanes - 1) << 3 | lane. Rewritten per hop. */
};
_Static_assert(sizeof(struct bl_hdr) == 24, "the header is 24 bytes on the wire");

/*
 * X(SYMBOL, number, "name", UDP or LINK). Append only: the number is on the wire.
 *
 * To add an opcode:
 * 1. Append it here, and define the struct of its body below with a _Static_assert on the size. The
 *    numbers of link frames are one range, which bl_op_link() relies on: a new link frame needs
 *    another test there.
 * 2. See which of bl_op_timed(), bl_op_covered(), bl_op_relayed(), bl_op_asks() and bl_op_answer()
 *    in core/wire_core.h apply to it.
 * 3. Handle it: in the switch() of lib/rx.c if the library receives it, in bpf/host/ or bpf/switch/
 *    if a program does, and in loader/order/standstill_core.h if the receiver has to react to it.
 * 4. Document it in docs/protocol.md: a row of the table "Opcodes", the range of numbers in its
 *    text, and a section on the body.
 * 5. Add it to docs/barline.lua (opcodes, and the body). tests/unit/test_protocol.c compares the
 *    document and the dissector with this list.
 * 6. Give it a seed in tests/fuzz/seeds.c, and update tests/fuzz/barline.dict: `make fuzz` writes
 *    the new dictionary and says which file to copy.
 * 7. Test it: tests/unit/test_wire_core.c, tests/unit/test_lib_rx.c, and tests/prog if a program
 *    handles it.
 */
/* clang-format off */
#define BL_OPCODES(X) \
	/* one or more whole messages, and references to preloaded ones */ \
	X(DATA, 1, "data", UDP) \
	X(FRAG, 2, "frag", UDP) /* part of a large message, sent ahead; carries no ts */ \
	X(CREDIT, 3, "credit", UDP) /* receive window of the destination */ \
	X(NAK, 4, "nak", UDP) /* messages that were not delivered */ \
	X(PROBE, 5, "probe", UDP) /* asks for a CREDIT after silence */ \
	X(BEACON, 6, "beacon", LINK) /* barriers on an idle link */ \
	X(RSV, 7, "rsv", LINK) /* a host asks its switch for timeslots (PL2) */ \
	X(GRT, 8, "grt", LINK) /* the switch's answer; a copy goes to the receiver */ \
	/* a receiver gives back what a sender was promised and did not use */ \
	X(RELEASE, 9, "release", LINK) \
	/* reliable messages, or a part of one: stored, answered, and delivered once committed */ \
	X(PREP, 10, "prep", UDP) \
	X(ACK, 11, "ack", UDP) /* the PREP's frame on its way back: it is stored */ \
	X(OPEN, 12, "open", UDP) /* asks a receiver for its reliable window */ \
	X(WINDOW, 13, "window", UDP) /* the answer to it, and updates as buffers become free */ \
	/* removes prepared frames again: their scattering will not be committed */ \
	X(RECALL, 14, "recall", UDP) \
	X(RECALLED, 15, "recalled", UDP) /* the frames of the RECALL are removed */
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
 * Which kind of node wrote the barriers of a frame (core/order/hop_core.h). A node learns what its
 * neighbour writes from the neighbour's beacons, which no bridge and no router passes on, and
 * accepts barriers from no other frame.
 */
#define BL_HOP_HOST    0x00 /* a host; also a switch between two others, downwards */
#define BL_HOP_LEAF_UP 0x40 /* a switch with hosts, upwards */
#define BL_HOP_LEAF    0x80 /* a switch with hosts, to hosts; one between two others, upwards */
#define BL_HOP_TOP     0xc0 /* a switch with neither hosts nor a switch above it */

/**
 * struct bl_beacon - body of a beacon, after its header.
 */
struct bl_beacon {
	/* TAI - UTC in the sender's kernel, seconds; a neighbour with another value is refused */
	__be16 tai_offset_s;
	/*
	 * Admission policy of the sender: enum bl_policy + 1; 0: it has no admission, or its
	 * version does not announce it. Neighbours that disagree say so (core/policy_core.h).
	 */
	__u8 policy;
	/*
	 * Port number at the sender, for people who read captures. Of a host: 0, or BL_BEACON_BYE:
	 * this is its last beacon, it has left in order, and nothing waits for it.
	 */
	__u8 port;
	__be32 node_id; /* of the sender: a node drops a beacon with its own node_id */
};
_Static_assert(sizeof(struct bl_beacon) == 8, "ABI");
#define BL_BEACON_BYE 0xff

/**
 * struct bl_relay - the relay scratch, after the body of a beacon. The switch program writes the
 * barriers of each input set here before it clones the beacon, and the devmap program copies those
 * of its own port's set into the header of its clone. They are computed once, at ingress: when the
 * devmap program runs, at the flush, the registers may already be ahead of data that is queued
 * behind the clone. Undefined on receipt.
 */
struct bl_relay {
	struct {
		__u8 barrier[6]; /* 0: no input of the set has joined */
		__u8 commit[6];
	} set[BL_SETS_MAX];
};
_Static_assert(sizeof(struct bl_relay) == 96, "ABI");

/**
 * struct bl_link_body - what a beacon says about its link, in the relay scratch behind the first
 * BL_LINK_AT bytes. Written last of all, when nobody needs the scratch any more: by the host's
 * egress program, and by the devmap program of a switch. A node that does not know it takes it for
 * scratch; a beacon without it (another version, or one that was made from an ACK) has another
 * @magic.
 *
 * It answers two questions. Is the link a FIFO: @frames and @racing (core/order/link_core.h). How
 * far are two clocks apart at least: @sent, @echo and @bound (core/order/skew_core.h).
 */
struct bl_link_body {
	__be32 magic; /* BL_LINK_MAGIC */
	/*
	 * Number of the sender's count, drawn when it begins: another one begins anew. 0: not
	 * counted
	 */
	__be16 run;
	/*
	 * Frames that other CPUs of the sender may have counted and not yet put into the queue, or
	 * the other way round, when this beacon was written; 65535: at least as many
	 */
	__be16 racing;
	/*
	 * Frames that the sender has put on this link and lane before this beacon, modulo 2^32: all
	 * ordered UDP frames except ACK and RECALLED, which bypass a host's queue. Beacons and
	 * reservations are not counted.
	 */
	__be32 frames;
	/*
	 * Least time, in ns, that beacons of the receiver took to the sender of late, by the clocks
	 * of the two: two's complement, saturating. BL_ECHO_NONE: none has come of late.
	 */
	__be32 echo;
	__u8 sent[6];  /* bus time at which it was sent, or before that; low 48 bits, ns */
	__u8 version;  /* BL_LINK_VERSION; others may have other fields behind @magic */
	__u8 reserved; /* 0 */
	/*
	 * Of the sender's clock, ns, without what its neighbours have proven against it; 2^32 - 1:
	 * at least as much
	 */
	__be32 bound;
	__be32 overtaken; /* frames of the receiver that the sender counted as overtaken; as @bound
			   */
	__u8 tag[8];      /* of an authenticated link: over beacon and body (core/auth_core.h) */
};
_Static_assert(sizeof(struct bl_link_body) == 40, "ABI");
#define BL_LINK_AT      16         /* behind struct bl_auth_block */
#define BL_LINK_MAGIC   0x626c6e6b /* "blnk" */
#define BL_LINK_VERSION 1
#define BL_LINK_TAGGED  32 /* bytes in front of the tag */
#define BL_ECHO_NONE    (-2147483647 - 1)

/*
 * Bytes that a frame may have behind the relay scratch of its beacon: a switch that relays the
 * beacon sends them to all ports.
 */
#define BL_BEACON_SPARE 64
/* 142 */
#define BL_BEACON_LEN \
	(14 + sizeof(struct bl_hdr) + sizeof(struct bl_beacon) + sizeof(struct bl_relay))

/**
 * struct bl_rsv_body - body of RSV, GRT and RELEASE: 60 bytes of frame, 64 with the FCS. The
 * sequence number is the header's psn; ts, barrier and commit of the header are 0, since these
 * frames travel in a class of their own, before data, and promise nothing.
 */
struct bl_rsv_body {
	/*
	 * RSV, GRT: destination of the burst. Copy of a GRT: its sender. RELEASE: the sender that
	 * did not send.
	 */
	__u8 mac[6];
	/* byte times of the burst (core/length_core.h); RELEASE: those that did not arrive */
	__be16 bytes_hi;
	__be16 bytes_lo;
	/* GRT: ns from the reservation to the slot, at the sender's port */
	__be16 in_wait_ns_hi;
	__be16 in_wait_ns_lo;
	/* GRT: the same at the receiver's port */
	__be16 out_wait_ns_hi;
	__be16 out_wait_ns_lo;
	__u8 flags; /* BL_RSV_EARLY, BL_GRT_* */
	__u8 reserved;
	__be16 cookie; /* chosen by the asking host; the answer repeats it */
};
_Static_assert(sizeof(struct bl_rsv_body) == 22, "ABI"); /* the two waits are written as one word */
#define BL_RSV_LEN     (14 + sizeof(struct bl_hdr) + sizeof(struct bl_rsv_body)) /* 60 */
#define BL_RSV_EARLY   0x01 /* RSV: the burst follows at once */
#define BL_GRT_PASSED  0x02 /* GRT: that burst was let through: do not send it again */
#define BL_GRT_REFUSED 0x04 /* GRT: nothing was promised; ask again later */
#define BL_GRT_COPY    0x08 /* GRT: a copy for the receiver, which learns what will arrive */
/* GRT, with REFUSED: this switch promises nothing; data passes without a promise */
#define BL_GRT_OFF 0x10
/*
 * This bit of the source address marks an unsolicited frame. It is 0 in bl0's address, and the
 * switch clears it.
 */
#define BL_EARLY_MAC0 0x08
/*
 * Fastpass: the path that a frame of bl0 is to take, plus 1, in these bits of its source address;
 * 0: none. A switch that routes copies them into its own address, so that the next switch sees
 * them.
 */
#define BL_PATH_MAC0          0xf0
#define BL_PATHS_IN_MAC       15
#define BL_PATH_TO_MAC0(path) ((__u8)(((path) + 1) << 4))
#define BL_PATH_OF_MAC0(b)    (((b) >> 4) - 1) /* of a byte with any of the bits set */

/**
 * struct bl_data - the first bytes of a DATA, FRAG or PROBE body.
 *
 * DATA: @count items follow, each a be16 length and that many bytes. Length BL_ITEM_REF: a struct
 * bl_ref follows instead and says "deliver the message that FRAGs have brought". Bytes after the
 * last item are padding, since the frames of one UDP GSO send are equally long. FRAG: a struct
 * bl_frag and bytes follow. PROBE: nothing follows; psn is the next one that the sender would use.
 */
struct bl_data {
	/* changes when the sending endpoint restarts; receivers then forget old sequence numbers */
	__be16 incarnation;
	/*
	 * DATA: items that follow, 1 to BL_ITEMS_MAX. FRAG: 0. PROBE: 0, or BL_PROBE_LAST with an
	 * answer to a challenge: this incarnation sends nothing more.
	 */
	__be16 count;
};
#define BL_PROBE_LAST 1
#define BL_ITEMS_MAX  64
#define BL_ITEM_REF   0xFFFF
struct bl_ref {
	__be32 msg_id; /* as in struct bl_frag */
	__be32 length; /* of the message, bytes */
};
struct bl_frag {
	__be32 msg_id; /* of the large message, chosen by the sender */
	__be32 offset; /* of this part in the message, bytes */
	__be32 length; /* of the whole message, bytes */
};

/**
 * struct bl_credit - body of a CREDIT.
 */
struct bl_credit {
	/* every frame before it was delivered, dropped or lost: its buffer is free again */
	__be32 psn;
	__be16 incarnation; /* of the DATA sender that this answers */
	__be16 window;      /* frames that may be outstanding from @psn on */
};

/**
 * struct bl_cookie - may follow the body of a CREDIT or WINDOW, as a challenge, and of a PROBE or
 * OPEN, as the answer: the receiver's challenge, unchanged. An endpoint that does not know cookies
 * ignores the bytes.
 */
struct bl_cookie {
	__be64 cookie; /* not 0; only the receiver that chose it reads anything in it */
};

/*
 * X(SYMBOL, number, "name"): why a message was not delivered, in NAKs and in the send_fail
 * callback. Append only: the number is on the wire and in enum bl_fail_reason of lib/barline.h. Add
 * it also to the table "NAK" of docs/protocol.md and to docs/barline.lua;
 * tests/unit/test_protocol.c compares them.
 */
/* clang-format off */
#define BL_NAKS(X) \
	X(LATE, 1, "late") /* below what was already delivered: the FIFO was broken */ \
	X(LOST, 2, "lost") /* a gap in the sequence numbers */ \
	X(INCOMPLETE, 3, "incomplete") /* parts of a large message were lost */ \
	X(NO_MEMORY, 4, "no_memory") /* the receiver could not store it */ \
	X(UNREACHABLE, 5, "unreachable") /* local: the receiver no longer answers */ \
	X(MALFORMED, 6, "malformed") /* the body could not be parsed */ \
	/* local: a receiver of the scattering failed, and no receiver delivered it */ \
	X(FAILED, 7, "failed") \
	/* local: the receiver left, and no answer came: it may have delivered the message */ \
	X(UNKNOWN, 8, "unknown") \
	X(LEFT, 9, "left") /* the receiver left in order and had not delivered it */
/* clang-format on */
#define BL_NAK_ENUM(sym, num, name) BL_NAK_##sym = num,
enum bl_nak_why { BL_NAKS(BL_NAK_ENUM) };
#undef BL_NAK_ENUM

/**
 * struct bl_nak - body of a NAK: @count frames from @psn on were not delivered, for @why.
 */
struct bl_nak {
	__be32 psn;
	__be32 count;
	__be16 incarnation; /* of the sender of the frames */
	__u8 why;           /* enum bl_nak_why */
	__u8 item; /* with @count 1: only this item of the frame; BL_NAK_WHOLE: the whole frame */
};
#define BL_NAK_WHOLE 0xff

/**
 * struct bl_prep - follows struct bl_data in the body of a PREP.
 *
 * With a count of 1 or more in struct bl_data, items follow as in DATA; a reference names a message
 * that came in parts. With count 0, a struct bl_frag and bytes follow: a part of a large message;
 * bytes past the end of the message are padding. All frames of a scattering have the same ts. psn
 * counts PREPs per destination, from 0.
 *
 * The ACK is the frame itself: the receiver's XDP program turns it round and cuts it to BL_ACK_BODY
 * bytes of body. ts, psn and the fields below are unchanged; B and C are old. The frame is not cut
 * below the length of a beacon, since the sender's XDP program may turn it into one ("commit");
 * libbarline sends no PREP with a UDP payload below BL_PREP_MIN.
 */
struct bl_prep {
	/* frames that the endpoint sent reliably before, modulo 2^32; the ACK repeats it */
	__be32 slot;
	/* incarnation of the receiver, from its WINDOW: a PREP for an ended life is not stored */
	__be16 life;
	/*
	 * How often the frame was sent before; 65535: at least as often. The ACK repeats it, so the
	 * sender can tell a long way from lost copies (as RFC 3522 does for TCP).
	 */
	__be16 copy;
};
_Static_assert(sizeof(struct bl_prep) == 8, "ABI");
#define BL_ACK_BODY (sizeof(struct bl_data) + sizeof(struct bl_prep)) /* 12 */
#define BL_PREP_MIN (BL_BEACON_LEN - 14 - 20 - 8)                     /* 100 */

/**
 * struct bl_window - body of a WINDOW. The body of an OPEN, which it answers, is a struct bl_data
 * with count 0; the psn of an OPEN is the next one that the sender would use, where a new
 * incarnation begins to count.
 */
struct bl_window {
	__be32 psn;         /* every frame before it has left the receiver's buffers */
	__be16 incarnation; /* of the sender that this answers */
	__be16 window;      /* frames that may be outstanding from @psn on; not 0 */
	__be16 life;        /* incarnation of the receiver */
	__be16 reserved;    /* must be zero */
};
_Static_assert(sizeof(struct bl_window) == 12, "ABI");

/**
 * struct bl_recall - body of a RECALL, and of a RECALLED, which repeats it. psn of both is the
 * first of the frames that were sent to this receiver. The header's ts is 0, since neither is a
 * message.
 */
struct bl_recall {
	__be16 incarnation; /* of the sender */
	__be16 life;        /* incarnation of the receiver */
	__be32 count;       /* frames from psn on; not 0 */
	__u8 ts[6];         /* of the scattering, low 48 bits */
	__be16 reserved;    /* must be zero */
};
_Static_assert(sizeof(struct bl_recall) == 16, "ABI");

#endif
