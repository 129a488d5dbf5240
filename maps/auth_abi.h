/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Authentication of link frames (docs/protocol.md, "Authentication of links"): the keys of each
 * link, what was sent and received under them, and where the authentication block lies in a frame.
 *
 * Example: port 3 of a switch leads to node 1. Its link has epoch 7 with a key for each direction,
 * and epoch 8, which is used for sending from bus time @from_ns on. A beacon from node 1 names
 * epoch 7 and stream 0, and carries a stamp of 5000 and a tag over both and its contents. The
 * program accepts it if the tag is right under the receive key of epoch 7 and the last accepted
 * stamp of stream 0 was below 5000.
 *
 * The arithmetic is in core/auth_core.h. Both roles have these maps; a host's NIC is port 0.
 */
#ifndef BARLINE_AUTH_ABI_H
#define BARLINE_AUTH_ABI_H

#include <linux/types.h>

#define BL_MAP_AUTH_LINKS  "auth_links"  /* array: port -> struct bl_auth_link; mmapped */
#define BL_MAP_AUTH_STATES "auth_states" /* array: port -> struct bl_auth_state */

/*
 * The first two bytes of a link frame's header: epoch << 4 | stream. They are part of the field ts,
 * which is 0 in link frames without authentication.
 */
#define BL_AUTH_EPOCH_MAX           4095
#define BL_AUTH_STREAMS             16
#define BL_AUTH_MARK(epoch, stream) ((epoch) << 4 | (stream))
#define BL_AUTH_MARK_EPOCH(mark)    ((mark) >> 4)
#define BL_AUTH_MARK_STREAM(mark)   ((mark)&15)

/*
 * Streams of a link: each is sent in order, so its stamps rise. A host sends three. A switch sends
 * its beacons on the stream with the number of the lane, and grants on one stream per CPU.
 */
enum bl_auth_stream {
	BL_AUTH_S_BEACON,    /* host: beacons that pass the NIC's queue; switch: those of lane 0 */
	BL_AUTH_S_COMMIT,    /* host: beacons that were made from ACKs, which bypass the queue */
	BL_AUTH_S_RSV,       /* host: RSV and RELEASE */
	BL_AUTH_S_GRANT = 8, /* switch: GRT, plus the number of the CPU modulo 8 */
};

/** enum bl_auth_mode - how a node treats its links; the value of bl_auth (bpf/auth.h). */
enum bl_auth_mode {
	BL_AUTH_OFF,
	BL_AUTH_OFFER,  /* tags are sent; frames without one are accepted */
	BL_AUTH_LINKS,  /* frames without a valid tag are refused */
	BL_AUTH_STRICT, /* LINKS, and only link frames raise registers: data frames have no tag */
};

/** struct bl_auth_block - the first bytes of an authenticated beacon's relay scratch. */
struct bl_auth_block {
	__be64 stamp; /* bus time at which it was sent, ns, or above it: rises within a stream */
	__u8 tag[8];  /* little-endian, as in SipHash's paper */
};
_Static_assert(sizeof(struct bl_auth_block) == 16, "ABI");

/**
 * struct bl_auth_rsv - the header of an authenticated RSV, GRT or RELEASE, whose fields ts, barrier
 * and commit have no other use.
 */
struct bl_auth_rsv {
	__be16 mark;
	__u8 stamp[8];
	__u8 tag[8];
	__be16 psn_hi, psn_lo;
	__u8 opcode, flags;
};
_Static_assert(sizeof(struct bl_auth_rsv) == 24, "the same size as struct bl_hdr");

/** struct bl_auth_key - a key of SipHash: its 16 bytes as two little-endian words. */
struct bl_auth_key {
	__u64 k[2];
};

/** enum bl_auth_how - what a link needs. */
enum bl_auth_how {
	BL_AUTH_REQUIRED, /* frames without a valid tag are refused */
	BL_AUTH_EXEMPT,   /* frames are sent without a tag, and accepted without a check */
	/* frames are sent with a tag; those that have none are accepted, those that have are
	   checked */
	BL_AUTH_OFFERED,
};

/** struct bl_auth_epoch - the keys of one epoch of a link. */
struct bl_auth_epoch {
	/* 1 to BL_AUTH_EPOCH_MAX; 0: the place is free. Written last, and cleared first. */
	__u32 epoch;
	__u32 reserved;
	__u64 from_ns;  /* bus time from which on this node sends under it */
	__u64 until_ns; /* bus time after which frames under it are refused; BL_TIME_NONE: never */
	struct bl_auth_key send;
	struct bl_auth_key receive;
};
_Static_assert(sizeof(struct bl_auth_epoch) == 56, "ABI");

/**
 * struct bl_auth_link - value of "auth_links". Written by the loader, also while programs run:
 * @epoch of a place is 0 while its other fields are being written.
 */
struct bl_auth_link {
	struct bl_auth_epoch at[2]; /* in no particular order */
	__u32 peer;                 /* node id of the neighbour; 0: no keys */
	__u32 how;                  /* enum bl_auth_how */
	__u64 reserved;
};
_Static_assert(sizeof(struct bl_auth_link) == 128, "ABI");

/**
 * struct bl_auth_state - value of "auth_states". Written by programs; it outlives new keys.
 */
struct bl_auth_state {
	__u64 sent[BL_AUTH_STREAMS]; /* last stamp, by stream; written by the CPU that sends it */
	/* greatest stamp that was accepted, by stream; raised by compare-and-swap */
	__u64 seen[BL_AUTH_STREAMS];
	/*
	 * bl_auth_flooded(). Here and below, updates of two CPUs may be lost: a wrong tag more is
	 * computed, or the display is one frame old.
	 */
	__u64 bad_ns;
	__u64 refused_ns;  /* bus time of the last refused frame; 0: none */
	__u64 accepted_ns; /* bus time of the last accepted frame; 0: none */
	__u32 refused;     /* enum bl_reason of the last refused frame */
	__u32 in;          /* epoch of the last accepted frame; 0: none */
	__u32 out;         /* epoch of the last frame that was sent; 0: none */
	__u32 reserved;
	__u64 reserved2[2];
};
_Static_assert(sizeof(struct bl_auth_state) == 312, "ABI");

#endif
