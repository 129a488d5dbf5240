/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The greedy choice among up to 8 paths with SSE4.1: the loads of both racks are one register each,
 * their maximum is one instruction, and PHMINPOSUW finds the least of the eight and its index in
 * one more.
 */
#ifdef __x86_64__
#pragma GCC target("sse4.1")
#include <immintrin.h>

#include "arbiter/path/path_priv.h"

size_t bl_path_greedy_sse41(struct bl_path *p, size_t n, const uint16_t *src, const uint16_t *dst,
			    uint8_t *path)
{
	static const uint16_t one[8][8] __attribute__((aligned(16))) = {
		{ 1 },
		{ 0, 1 },
		{ 0, 0, 1 },
		{ 0, 0, 0, 1 },
		{ 0, 0, 0, 0, 1 },
		{ 0, 0, 0, 0, 0, 1 },
		{ 0, 0, 0, 0, 0, 0, 1 },
		{ 0, 0, 0, 0, 0, 0, 0, 1 },
	};
	uint16_t *restrict out = p->out, *restrict in = p->in, *restrict left = p->left;
	const uint32_t cap = p->cap;
	size_t i, nleft = 0;

	for (i = 0; i < n; i++) {
		__m128i *o = (__m128i *)&out[(size_t)src[i] * 8],
			*d = (__m128i *)&in[(size_t)dst[i] * 8];
		const __m128i vo = _mm_load_si128(o), vd = _mm_load_si128(d);
		const uint32_t least =
			(uint32_t)_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_max_epu16(vo, vd)));
		const uint32_t k = least >> 16;
		const __m128i add = _mm_load_si128((const __m128i *)one[k]);

		if (__builtin_expect((least & 0xffff) >= cap, 0)) {
			path[i] = BL_PATH_NONE;
			left[nleft++] = (uint16_t)i;
			continue;
		}
		_mm_store_si128(o, _mm_add_epi16(vo, add));
		_mm_store_si128(d, _mm_add_epi16(vd, add));
		path[i] = (uint8_t)k;
	}
	return nleft;
}
#endif
