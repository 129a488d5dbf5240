/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Authentication of link frames: the tag and what it covers, stamps against replays, the choice of
 * the key, and the limit on wrong tags.
 *
 * A tag is the SipHash-2-4 of six words, which a caller takes from the frame:
 *
 *   word  beacon                           RSV, GRT, RELEASE
 *   0     mark 2, Ethernet source 6        the same
 *   1     stamp                            the same
 *   2     header bytes 16 to 23            header bytes 18 to 23, after two zero bytes
 *   3     body bytes 0 to 7                the same
 *   4     header bytes 8 to 15             body bytes 8 to 15
 *   5     header bytes 0 to 7              body bytes 14 to 21
 *
 * The link body of a beacon has a tag of its own, over the six words and the 32 bytes of the body.
 * Nodes that do not know the body see the tag that they know.
 *
 * The opcode lies in word 2 of both kinds, so no frame of one kind has the words of the other. The
 * link, its direction and the epoch are not among the words: they chose the key.
 *
 * Example of the limit: BL_AUTH_BAD_NS is 1 ms and BL_AUTH_BURST_NS 50 ms. Fifty wrong tags in a
 * row move @bad_ns from now to 50 ms ahead of it; from then on one tag per ms is computed, and all
 * other frames that need a tag are dropped. A ms after the last wrong tag, the next frame is
 * checked again.
 *
 * Not here: where the words lie in memory (bpf/auth.h), and keys in files (proto/link_keys.h).
 */
#ifndef BARLINE_AUTH_CORE_H
#define BARLINE_AUTH_CORE_H

#include "core/core.h"
#include "core/siphash_core.h"
#include "core/wire_core.h"
#include "maps/auth_abi.h"
#include "maps/reasons_abi.h"

/*
 * How far a stamp may be from the receiver's clock. For stamps in the past, this bounds what a
 * receiver accepts that has just started, and it is longer than a frame can spend in queues. For
 * stamps in the future, it bounds how long frames are refused after the clock of their sender was
 * set back. Whether a clock is good enough for barriers is decided elsewhere.
 */
#define BL_AUTH_FRESH_NS 1000000000ULL
#define BL_AUTH_BAD_NS   1000000ULL  /* cost of a wrong tag: 1000 per second */
#define BL_AUTH_BURST_NS 50000000ULL /* cost that may be outstanding: 50 at once */
#define BL_AUTH_WORDS    6

/** bl_auth_le64 - eight bytes of a frame or map as SipHash reads them. */
BL_CORE __u64 bl_auth_le64(const void *p)
{
	__u64 v = bl_raw64(p);

	return BL_SIP_LE64(v);
}

/* The state of SipHash after the words @w. */
BL_CORE struct bl_sip bl_auth_begin(const struct bl_auth_key *key, const __u64 w[BL_AUTH_WORDS])
{
	struct bl_sip s = { key->k[0] ^ 0x736f6d6570736575ULL, key->k[1] ^ 0x646f72616e646f6dULL,
			    key->k[0] ^ 0x6c7967656e657261ULL, key->k[1] ^ 0x7465646279746573ULL };

	bl_sip_word(&s, w[0]);
	bl_sip_word(&s, w[1]);
	bl_sip_word(&s, w[2]);
	bl_sip_word(&s, w[3]);
	bl_sip_word(&s, w[4]);
	bl_sip_word(&s, w[5]);
	return s;
}

/* The tag of the @n bytes, whole words, that have led to the state @s. */
BL_CORE __u64 bl_auth_end(struct bl_sip s, __u32 n)
{
	bl_sip_word(&s, (__u64)n << 56);
	s.c ^= 0xff;
	bl_sip_round(&s);
	bl_sip_round(&s);
	bl_sip_round(&s);
	bl_sip_round(&s);
	return s.a ^ s.b ^ s.c ^ s.d;
}

/** bl_auth_tag - the tag of the words @w, in the byte order of this machine, as on the wire. */
BL_CORE __u64 bl_auth_tag(const struct bl_auth_key *key, const __u64 w[BL_AUTH_WORDS])
{
	return bl_auth_end(bl_auth_begin(key, w), BL_AUTH_WORDS * 8);
}

/** bl_auth_link_tag - the tag of a link body @b, behind the words that have led to the state @s. */
BL_CORE __u64 bl_auth_link_tag(struct bl_sip s, const struct bl_link_body *b)
{
	const __u8 *p = (const __u8 *)b;

	bl_sip_word(&s, bl_auth_le64(p));
	bl_sip_word(&s, bl_auth_le64(p + 8));
	bl_sip_word(&s, bl_auth_le64(p + 16));
	bl_sip_word(&s, bl_auth_le64(p + 24));
	return bl_auth_end(s, BL_AUTH_WORDS * 8 + BL_LINK_TAGGED);
}

/* Word 0: @mark, and the six bytes of the Ethernet source address @mac. */
BL_CORE __u64 bl_auth_word0(__u32 mark, const __u8 *mac)
{
	return (mark >> 8 & 0xff) | (__u64)(mark & 0xff) << 8 | bl_mac48(mac) << 16;
}

/**
 * bl_auth_words - the words of a frame.
 * @beacon: 1: @h is the header of a beacon, and its body and 16 bytes of its scratch follow;
 *          0: of an RSV, GRT or RELEASE, whose body follows
 * @mac: Ethernet source address of the frame
 * The stamp must be in its place already.
 */
BL_CORE void bl_auth_words(const void *h, int beacon, __u32 mark, const __u8 *mac,
			   __u64 w[BL_AUTH_WORDS])
{
	const __u8 *p = h;

	w[0] = bl_auth_word0(mark, mac);
	w[2] = bl_auth_le64(p + 16);
	w[3] = bl_auth_le64(p + sizeof(struct bl_hdr));
	if (beacon) {
		w[1] = bl_auth_le64(p + sizeof(struct bl_hdr) + sizeof(struct bl_beacon));
		w[4] = bl_auth_le64(p + 8);
		w[5] = bl_auth_le64(p);
	} else {
		w[1] = bl_auth_le64(p + __builtin_offsetof(struct bl_auth_rsv, stamp));
		w[2] &= ~0xffffULL; /* the end of the tag */
		w[4] = bl_auth_le64(p + sizeof(struct bl_hdr) + 8);
		w[5] = bl_auth_le64(p + sizeof(struct bl_hdr) + 14);
	}
}

/**
 * bl_auth_next - the stamp of the next frame of a stream whose last one was @sent. A stamp that is
 * further ahead than anybody accepts is from before the clock was set back.
 */
BL_CORE __u64 bl_auth_next(__u64 sent, __u64 now)
{
	return now > sent || sent - now > BL_AUTH_FRESH_NS ? now : sent + 1;
}

/**
 * bl_auth_above - whether @stamp is above @seen, the greatest that was accepted in its stream (0:
 * none). One that could not have been accepted is from before this node's clock was set back.
 */
BL_CORE int bl_auth_above(__u64 stamp, __u64 seen, __u64 now)
{
	return stamp > seen || (__s64)(seen - now) > (__s64)(2 * BL_AUTH_FRESH_NS);
}

/** bl_auth_fresh - whether @stamp is above @seen, and near @now. */
BL_CORE int bl_auth_fresh(__u64 stamp, __u64 seen, __u64 now)
{
	__s64 age = (__s64)(now - stamp);

	return age <= (__s64)BL_AUTH_FRESH_NS && age >= -(__s64)BL_AUTH_FRESH_NS &&
	       bl_auth_above(stamp, seen, now);
}

/*
 * What is owed at @now. It is never more than the burst and one wrong tag: what seems to be more
 * is from before the clock was set back.
 */
BL_CORE __u64 bl_auth_owed(__u64 bad_ns, __u64 now)
{
	__u64 owed = bad_ns - now;

	return owed <= BL_AUTH_BURST_NS + BL_AUTH_BAD_NS ? owed : 0;
}

/** bl_auth_flooded - whether no tag may be computed at @now, because too many were wrong. */
BL_CORE int bl_auth_flooded(__u64 bad_ns, __u64 now)
{
	return bl_auth_owed(bad_ns, now) > BL_AUTH_BURST_NS;
}

/** bl_auth_punish - the new @bad_ns after a wrong tag at @now. */
BL_CORE __u64 bl_auth_punish(__u64 bad_ns, __u64 now)
{
	return now + bl_auth_owed(bad_ns, now) + BL_AUTH_BAD_NS;
}

/**
 * bl_auth_to_send - the epoch that is sent under at @now: the last one that has begun, or the first
 * one if none has. Returns 0 or 1, the place in @l->at, or -1: there is no key.
 */
BL_CORE int bl_auth_to_send(const struct bl_auth_link *l, __u64 now)
{
	__u32 e0 = BL_READ_ONCE(l->at[0].epoch), e1 = BL_READ_ONCE(l->at[1].epoch);
	int later = e1 > e0;

	if (!(e0 | e1))
		return -1;
	if (!e0 || !e1)
		return later;
	return BL_READ_ONCE(l->at[later].from_ns) <= now ? later : !later;
}

/**
 * bl_auth_to_receive - the place in @l->at of @epoch, or -1: it is unknown, or over at @now.
 */
BL_CORE int bl_auth_to_receive(const struct bl_auth_link *l, __u32 epoch, __u64 now)
{
	int at = BL_READ_ONCE(l->at[1].epoch) == epoch;

	if (!epoch || (!at && BL_READ_ONCE(l->at[0].epoch) != epoch))
		return -1;
	return now <= BL_READ_ONCE(l->at[at].until_ns) ? at : -1;
}

#endif
