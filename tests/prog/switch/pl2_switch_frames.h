/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RSV, GRT and RELEASE for the program tests of both roles, built byte by byte from a description.
 */
#ifndef BARLINE_TEST_RSV_FRAMES_H
#define BARLINE_TEST_RSV_FRAMES_H

#include "tests/prog/frames.h"

/** struct rsv - an RSV, GRT or RELEASE, field by field. */
struct rsv {
	__u8 op;     /* BL_OP_RSV, BL_OP_GRT or BL_OP_RELEASE */
	__u8 src[6]; /* Ethernet source */
	__u8 mac[6]; /* of struct bl_rsv_body, like the fields below except @seq and @tags */
	__u32 seq;   /* of struct bl_hdr */
	__u32 bytes;
	__u32 in;  /* wait at the input, ns */
	__u32 out; /* wait at the output, ns */
	__u8 flags;
	__u16 cookie;
	__u8 tags; /* VLAN tags, 0 or 1 */
};

/* Builds the frame that @r describes. */
MAYBE_UNUSED static void build_rsv(struct frame *f, const struct rsv *r)
{
	const __u8 dst[6] = BL_BEACON_MAC;

	memset(f->p, 0, sizeof(f->p));
	f->n = 0;
	put(f, dst, 6);
	put(f, r->src, 6);
	if (r->tags) {
		put16(f, BL_ETH_8021Q);
		put16(f, 0xe000);
	}
	put16(f, BL_ETHERTYPE);
	put48(f, 0);
	put48(f, 0);
	put48(f, 0);
	put32(f, r->seq);
	put8(f, BL_OPCODE_BYTE(r->op));
	put8(f, 0);
	put(f, r->mac, 6);
	put32(f, r->bytes);
	put32(f, r->in);
	put32(f, r->out);
	put8(f, r->flags);
	put8(f, 0);
	put16(f, r->cookie);
}

/* Reads the waits that a GRT carries, ns. */
MAYBE_UNUSED static void waits_of(const struct frame *f, __u32 *in, __u32 *out)
{
	const __u8 *b = f->p + f->n - 12;

	*in = (__u32)b[0] << 24 | (__u32)b[1] << 16 | (__u32)b[2] << 8 | b[3];
	*out = (__u32)b[4] << 24 | (__u32)b[5] << 16 | (__u32)b[6] << 8 | b[7];
}

#endif
