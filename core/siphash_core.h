/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed 64-bit checksum that cannot be forged without
 * the key. FCP uses it (core/fastpass/fcp_core.h).
 *
 * Example, from the paper's appendix A: the key 00 01 .. 0f as two little-endian words and the
 * message 00 01 .. 0e give a129ca6149be45e5.
 */
#ifndef BARLINE_SIPHASH_CORE_H
#define BARLINE_SIPHASH_CORE_H

#include "core/core.h"

/*
 * For functions that are too large to be inlined everywhere; in a BPF program they are functions of
 * their own as well.
 */
#define BL_FN static __attribute__((unused))

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BL_SIP_LE64(x) (x)
#else
#define BL_SIP_LE64(x) __builtin_bswap64(x)
#endif

struct bl_sip {
	__u64 a, b, c, d;
};

BL_CORE __u64 bl_rotl64(__u64 x, __u32 n)
{
	return x << n | x >> (64 - n);
}

BL_CORE void bl_sip_round(struct bl_sip *s)
{
	s->a += s->b;
	s->b = bl_rotl64(s->b, 13) ^ s->a;
	s->a = bl_rotl64(s->a, 32);
	s->c += s->d;
	s->d = bl_rotl64(s->d, 16) ^ s->c;
	s->a += s->d;
	s->d = bl_rotl64(s->d, 21) ^ s->a;
	s->c += s->b;
	s->b = bl_rotl64(s->b, 17) ^ s->c;
	s->c = bl_rotl64(s->c, 32);
}

BL_CORE void bl_sip_word(struct bl_sip *s, __u64 m)
{
	s->d ^= m;
	bl_sip_round(s);
	bl_sip_round(s);
	s->a ^= m;
}

#define BL_SIP_NONE (~0U)

/**
 * bl_siphash - the checksum of @len bytes at @data. The 8-byte word number @skip is taken as zero,
 * so that a checksum can lie within what it covers; BL_SIP_NONE: no word is.
 */
BL_FN __u64 bl_siphash(__u64 k0, __u64 k1, const void *data, __u32 len, __u32 skip)
{
	struct bl_sip s = { k0 ^ 0x736f6d6570736575ULL, k1 ^ 0x646f72616e646f6dULL,
			    k0 ^ 0x6c7967656e657261ULL, k1 ^ 0x7465646279746573ULL };
	const __u8 *p = data;
	__u64 m;
	__u32 i;

	for (i = 0; i < len / 8; i++) {
		__builtin_memcpy(&m, p + 8 * i, 8);
		bl_sip_word(&s, i == skip ? 0 : BL_SIP_LE64(m));
	}
	m = (__u64)len << 56;
	for (i = len & ~7U; i < len; i++)
		m |= (__u64)p[i] << 8 * (i & 7);
	bl_sip_word(&s, m);
	s.c ^= 0xff;
	bl_sip_round(&s);
	bl_sip_round(&s);
	bl_sip_round(&s);
	bl_sip_round(&s);
	return s.a ^ s.b ^ s.c ^ s.d;
}

#endif
