/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Authentication of links for the program tests of both roles: keys, and sealing a frame as
 * docs/protocol.md says it, from a message of 48 bytes (80 for its link body) and not by the code
 * of the programs. Include it after host_util.h or switch_util.h.
 */
#ifndef BARLINE_TEST_AUTH_UTIL_H
#define BARLINE_TEST_AUTH_UTIL_H

#include "core/siphash_core.h"
#include "maps/auth_abi.h"

#define EPOCH 5 /* of most links here */

/* Returns a key that depends on the port, the direction and the epoch. */
static struct bl_auth_key test_key(__u32 port, bool send, __u32 epoch)
{
	return (struct bl_auth_key){ { 0x1122334455660000ULL + port * 16 + send,
				       epoch * 0x9e37ULL } };
}

/* Writes the keys of @port, whose neighbour is node @peer: EPOCH without an end. */
MAYBE_UNUSED static void put_keys(__u32 port, __u32 peer)
{
	struct bl_auth_link l = { .peer = peer };

	l.at[1] = (struct bl_auth_epoch){ .epoch = EPOCH,
					  .until_ns = BL_TIME_NONE,
					  .send = test_key(port, true, EPOCH),
					  .receive = test_key(port, false, EPOCH) };
	map_put(sk->maps.auth_links, port, &l);
}

MAYBE_UNUSED static struct bl_auth_state auth_state(__u32 port)
{
	struct bl_auth_state s;

	map_get(sk->maps.auth_states, port, &s);
	return s;
}

/* Forgets what was sent and received. */
MAYBE_UNUSED static void forget_stamps(void)
{
	static const struct bl_auth_state none;
	__u32 p;

	for (p = 0; p < NPORTS; p++)
		map_put(sk->maps.auth_states, p, &none);
}

/* Writes mark, stamp and tag into the link frame @f, whose header is at @off. */
static void seal_under(struct frame *f, __u32 off, struct bl_auth_key k, __u32 epoch, __u32 stream,
		       __u64 stamp)
{
	bool beacon = f->p[off + 22] == BL_OPCODE_BYTE(BL_OP_BEACON);
	__u8 m[80], *h = f->p + off, *at = beacon ? h + 32 : h + 2;
	__u64 tag;
	int i;

	h[0] = (__u8)(epoch >> 4);
	h[1] = (__u8)(epoch << 4 | stream);
	for (i = 0; i < 8; i++)
		at[i] = (__u8)(stamp >> (56 - 8 * i));
	memcpy(m, h, 2);
	memcpy(m + 2, f->p + 6, 6);
	memcpy(m + 8, at, 8);
	memcpy(m + 16, h + 16, 8);
	memcpy(m + 24, h + 24, 8);
	if (beacon) {
		memcpy(m + 32, h + 8, 8);
		memcpy(m + 40, h, 8);
	} else {
		m[16] = m[17] = 0;
		memcpy(m + 32, h + 32, 8);
		memcpy(m + 40, h + 38, 8);
	}
	tag = bl_siphash(k.k[0], k.k[1], m, 48, BL_SIP_NONE);
	for (i = 0; i < 8; i++)
		at[8 + i] = (__u8)(tag >> 8 * i);
	if (!beacon || memcmp(h + 48, "blnk", 4))
		return;
	memcpy(m + 48, h + 48, 32);
	tag = bl_siphash(k.k[0], k.k[1], m, 80, BL_SIP_NONE);
	for (i = 0; i < 8; i++)
		h[80 + i] = (__u8)(tag >> 8 * i);
}

/* The same under EPOCH: as the neighbour at @port does, or (@send) as this node does. */
MAYBE_UNUSED static void seal(struct frame *f, __u32 off, __u32 port, bool send, __u32 stream,
			      __u64 stamp)
{
	seal_under(f, off, test_key(port, send, EPOCH), EPOCH, stream, stamp);
}

/* Where the tag of a link frame without VLAN tags lies. */
MAYBE_UNUSED static __u32 tag_at(const struct frame *f)
{
	return f->p[14 + 22] == BL_OPCODE_BYTE(BL_OP_BEACON) ? 14 + 40 : 14 + 10;
}

/* Whether the tag covers byte @i of such a frame: docs/protocol.md says what it does not. */
MAYBE_UNUSED static bool is_covered(const struct frame *f, __u32 i)
{
	bool beacon = f->p[14 + 22] == BL_OPCODE_BYTE(BL_OP_BEACON);

	if (i < 6 || (i >= 12 && i < 14)) /* destination and ethertype */
		return false;
	return !beacon || i < 14 + 48;
}

#endif
