/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The allocator's inner loop for CPUs with AVX-512 (F, VL and VPOPCNTDQ) and BMI2: a window of 512
 * slots is one register.
 *
 * Taking the lowest k ones of 512 bits: count the ones of each word, add the counts up from the
 * left (3 steps), compare with k. Words whose sum stays within k are taken whole; of the first word
 * whose sum does not, PDEP takes what is missing; the rest stay. Example: words with 3, 0, 5, 9,
 * ... ones, k = 6: the sums are 3, 3, 8, 17; words 0 and 1 are taken whole, of word 2 the lowest 6
 * - 3 = 3 ones.
 */
#ifdef __x86_64__
#pragma GCC target("bmi,bmi2,popcnt,lzcnt,avx2,avx512f,avx512vl,avx512vpopcntdq")
#include <immintrin.h>

#include "arbiter/alloc/alloc_avx512_pass.h"
/* its template: after the definitions above */
#include "arbiter/alloc/alloc_pass.h"

static void whole8(struct bl_alloc *a)
{
	struct bl_want *restrict list = a->list, *restrict wait = a->wait, *restrict done = a->done;
	__u64 *restrict freew = a->free;
	uint64_t *restrict out = a->out;
	size_t i, len = a->nlist, nwait = a->nwait, ndone = a->ndone, o = a->outlen;
	const __m512i open = _mm512_loadu_si512(a->open), zero = _mm512_setzero_si512();
	const uint32_t n = a->n;
	uint64_t mtus = 0;

	for (i = 0; i < len; i++) {
		struct bl_want *w = &list[i];
		const uint32_t s = w->src, d = w->dst, k = w->mtus;
		const uint64_t lo = want_lo(w), hi = want_hi(w);
		__u64 *fs = freew + (size_t)s * 8, *fd = freew + (size_t)(n + d) * 8;
		const __m512i vs = _mm512_load_si512(fs), vd = _mm512_load_si512(fd);
		const __m512i m = _mm512_and_si512(_mm512_and_si512(vs, vd), open);
		const __m512i c = _mm512_popcnt_epi64(m);
		__m512i sum = _mm512_add_epi64(c, _mm512_alignr_epi64(c, zero, 7));
		__m512i take;
		__mmask8 whole, some;
		uint32_t got = k, edge, before;
		uint64_t part;

		sum = _mm512_add_epi64(sum, _mm512_alignr_epi64(sum, zero, 6));
		sum = _mm512_add_epi64(sum, _mm512_alignr_epi64(sum, zero, 4));
		whole = _mm512_cmple_epu64_mask(sum, _mm512_set1_epi64(k));
		take = _mm512_maskz_mov_epi64(whole, m);
		if (__builtin_expect(whole != 0xff, 1)) {
			edge = (uint32_t)__builtin_ctz(~(uint32_t)whole);
			before = (uint32_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(
				_mm512_maskz_compress_epi64((__mmask8)(1u << edge),
							    _mm512_sub_epi64(sum, c))));
			part = _pdep_u64(_bzhi_u64(~0ULL, k - before),
					 fs[edge] & fd[edge] & a->open[edge]);
			take = _mm512_mask_set1_epi64(take, (__mmask8)(1u << edge),
						      (long long)part);
		} else {
			got = (uint32_t)_mm512_reduce_add_epi64(c);
		}
		_mm512_store_si512(fs, _mm512_xor_si512(vs, take));
		_mm512_store_si512(fd, _mm512_xor_si512(vd, take));
		some = _mm512_test_epi64_mask(take, take);
		out[o] = grant_head(s, d, some, got);
		/* through a register: a compressing store is microcode on some CPUs */
		_mm512_storeu_si512(&out[o + 1], _mm512_maskz_compress_epi64(some, take));
		o += (uint32_t)__builtin_popcount(some) + !!some;
		mtus += got;
		if (__builtin_expect(got == k, 1)) {
			want_put(&done[ndone++], lo, hi);
			done[ndone - 1].mtus = 0;
			continue;
		}
		want_put(&wait[nwait], lo, hi);
		wait[nwait++].mtus = k - got;
	}
	a->st.visits += len;
	a->nlist = 0;
	a->nwait = nwait;
	a->ndone = ndone;
	a->outlen = o;
	a->run_mtus += mtus;
}

/*
 * sort_plain() for windows of one word, four records at a time. Each record is two lanes, and each
 * list takes its records by a compression.
 */
static void sort1(struct bl_alloc *a)
{
	struct bl_want *restrict list = a->list, *restrict wait = a->wait, *restrict done = a->done,
				 *restrict later = a->later;
	const uint64_t *restrict takes = a->takes, *restrict parts = a->parts;
	uint64_t *restrict out = a->out;
	size_t i, len = a->nlist, stays = 0, nwait = a->nwait, ndone = a->ndone, nlater = 0,
		  o = a->outlen;
	const __m512i spread = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
	const __m512i pair = _mm512_set1_epi64(0xffffffff), one_word = _mm512_set1_epi64(1LL << 32);
	__m256i sum = _mm256_setzero_si256();

	for (i = 0; i < len; i += 4) {
		const uint32_t valid = len - i < 4 ? (1u << (len - i)) - 1 : 0xf;
		const __m256i take = _mm256_maskz_loadu_epi64((__mmask8)valid, &takes[i]);
		const __m256i part = _mm256_maskz_loadu_epi64((__mmask8)valid, &parts[i]);
		const __m512i rec = _mm512_loadu_si512(&list[i]);
		const __m256i got = _mm256_popcnt_epi64(take);
		const __m512i wide = _mm512_permutexvar_epi64(spread, _mm512_castsi256_si512(got));
		/* MTUs */
		const __m512i less =
			_mm512_mask_sub_epi64(rec, 0x55, rec, _mm512_slli_epi64(wide, 32));
		/* account */
		const __m512i rest =
			_mm512_mask_add_epi64(less, 0xaa, rec, _mm512_slli_epi64(wide, 32));
		const __m512i head =
			_mm512_or_si512(_mm512_or_si512(_mm512_and_si512(rec, pair), one_word),
					_mm512_slli_epi64(wide, 48));
		const __m512i grant = _mm512_mask_permutexvar_epi64(head, 0xaa, spread,
								    _mm512_castsi256_si512(take));
		const uint32_t extra =
			_mm256_test_epi64_mask(part, _mm256_set1_epi64x(1LL << BL_PART_EXTRA));
		const uint32_t blocked = _mm256_cmpneq_epi64_mask(
			got, _mm256_and_si256(part, _mm256_set1_epi64x(0xffffffff)));
		const uint32_t unready = _pext_u32(
			_mm512_test_epi64_mask(rest,
					       _mm512_set1_epi64((long long)0xffffffff00000000ULL)),
			0x55);
		const uint32_t ready = ~unready & valid, goes_on = unready & ~blocked & valid,
			       some = _mm256_test_epi64_mask(take, take);
		const uint32_t stay = goes_on & ~extra, behind = goes_on & extra;

#define BOTH(m) ((__mmask8)(_pdep_u32(m, 0x55) * 3))
#define PUT(to, at, m, v)                                                         \
	(_mm512_storeu_si512(&(to)[at], _mm512_maskz_compress_epi64(BOTH(m), v)), \
	 (at) += (size_t)__builtin_popcount(m))
		PUT(list, stays, stay, rest);
		PUT(later, nlater, behind, rest);
		PUT(wait, nwait, blocked, rest);
		PUT(done, ndone, ready, rest);
		_mm512_storeu_si512(&out[o], _mm512_maskz_compress_epi64(BOTH(some), grant));
		o += 2 * (size_t)__builtin_popcount(some);
		sum = _mm256_add_epi64(sum, got);
	}
	__builtin_memcpy(&list[stays], later, nlater * sizeof(*later));
	a->st.visits += len;
	a->nlist = stays + nlater;
	a->nwait = nwait;
	a->ndone = ndone;
	a->outlen = o;
	sum = _mm256_add_epi64(sum, _mm256_permute4x64_epi64(sum, 0x4e));
	a->run_mtus +=
		(uint64_t)_mm256_extract_epi64(sum, 0) + (uint64_t)_mm256_extract_epi64(sum, 1);
}

/* Loads a row of 2, 4 or 8 words into one register, whose other words are 0. */
PASS_INLINE __m512i row_load(const void *p, const uint32_t words)
{
	return words == 8   ? _mm512_loadu_si512(p)
	       : words == 4 ? _mm512_zextsi256_si512(_mm256_loadu_si256(p))
			    : _mm512_zextsi128_si512(_mm_loadu_si128(p));
}

PASS_INLINE void row_store(void *p, __m512i v, const uint32_t words)
{
	if (words == 8)
		_mm512_storeu_si512(p, v);
	else if (words == 4)
		_mm256_storeu_si256(p, _mm512_castsi512_si256(v));
	else
		_mm_storeu_si128(p, _mm512_castsi512_si128(v));
}

/*
 * take_plain() for windows of several words. @parts holds the MTUs that each flow took, whether an
 * odd slot was among them (BL_PART_EXTRA), and whether it wanted more (BL_PART_BLOCKED).
 */
PASS_INLINE void take_wide(struct bl_alloc *a, const enum bl_pass kind, const uint32_t words)
{
	const bool fair = kind == BL_PASS_FAIR, aim = kind == BL_PASS_AIM;
	const uint32_t *restrict aims = a->due.aim;
	const struct bl_want *restrict list = a->list;
	uint32_t *restrict share = a->share;
	__u64 *restrict freew = a->free;
	uint64_t *restrict takes = a->takes, *restrict parts = a->parts;
	const size_t len = a->nlist;
	const uint32_t n = a->n, lanes = (1u << words) - 1;
	const __m512i open = row_load(a->open, words), zero = _mm512_setzero_si512();
	uint64_t open_word[BL_WINDOW_WORDS];
	size_t i;

	row_store(open_word, open, words);

	for (i = 0; i < len; i++) {
		const uint32_t s = list[i].src, d = n + list[i].dst;
		__u64 *fs = freew + (size_t)s * words, *fd = freew + (size_t)d * words;
		const __m512i vs = row_load(fs, words), vd = row_load(fd, words);
		const __m512i m = _mm512_and_si512(_mm512_and_si512(vs, vd), open);
		const __m512i c = _mm512_popcnt_epi64(m);
		__m512i sum = _mm512_add_epi64(c, _mm512_alignr_epi64(c, zero, 7)), take;
		uint32_t k = aim ? aims[i] : list[i].mtus, whole, edge, at, before, all;
		uint64_t extra = 0, part;

		if (fair)
			k = fair_part(share, s, d, k, (uint32_t)list[i].account, &extra);
		if (words > 2)
			sum = _mm512_add_epi64(sum, _mm512_alignr_epi64(sum, zero, 6));
		if (words > 4)
			sum = _mm512_add_epi64(sum, _mm512_alignr_epi64(sum, zero, 4));
		all = (uint32_t)_mm_cvtsi128_si64(
			_mm512_castsi512_si128(_mm512_alignr_epi64(sum, sum, words - 1)));
		whole = _mm512_cmple_epu64_mask(sum, _mm512_set1_epi64(k)) & lanes;
		/*
		 * The word of which only a part is taken; if there is none, lane @words, which is
		 * not stored.
		 */
		edge = (uint32_t)__builtin_ctz(~whole);
		at = edge & (words - 1);
		before = (uint32_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(
			_mm512_maskz_compress_epi64((__mmask8)(1u << edge),
						    _mm512_sub_epi64(sum, c))));
		part = _pdep_u64(_bzhi_u64(~0ULL, k - before), fs[at] & fd[at] & open_word[at]);
		take = _mm512_mask_set1_epi64(_mm512_maskz_mov_epi64((__mmask8)whole, m),
					      (__mmask8)(1u << edge & lanes), (long long)part);
		row_store(fs, _mm512_xor_si512(vs, take), words);
		row_store(fd, _mm512_xor_si512(vd, take), words);
		row_store(&takes[i * words], take, words);
		parts[i] = (all < k ? all : k) | extra |
			   (uint64_t)(!aim && all < k) << BL_PART_BLOCKED;
	}
	for (; i % 4; i++)
		row_store(&takes[i * words], zero, words);
}

/*
 * sort_plain() for windows of several words: the lists as in sort1(), four records at a time, and
 * then their grants one by one.
 */
PASS_INLINE void sort_wide(struct bl_alloc *a, const uint32_t words)
{
	struct bl_want *restrict list = a->list, *restrict wait = a->wait, *restrict done = a->done,
				 *restrict later = a->later;
	const uint64_t *restrict takes = a->takes, *restrict parts = a->parts;
	uint64_t *restrict out = a->out;
	size_t i, len = a->nlist, stays = 0, nwait = a->nwait, ndone = a->ndone, nlater = 0,
		  o = a->outlen;
	const __m512i spread = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
	__m256i sum = _mm256_setzero_si256();
	uint32_t j;

	for (i = 0; i < len; i += 4) {
		const uint32_t valid = len - i < 4 ? (1u << (len - i)) - 1 : 0xf;
		const __m256i part = _mm256_maskz_loadu_epi64((__mmask8)valid, &parts[i]);
		const __m256i got = _mm256_and_si256(part, _mm256_set1_epi64x(0xffffffff));
		const __m512i rec = _mm512_loadu_si512(&list[i]);
		const __m512i wide = _mm512_permutexvar_epi64(spread, _mm512_castsi256_si512(got));
		/* MTUs */
		const __m512i less =
			_mm512_mask_sub_epi64(rec, 0x55, rec, _mm512_slli_epi64(wide, 32));
		/* account */
		const __m512i rest =
			_mm512_mask_add_epi64(less, 0xaa, rec, _mm512_slli_epi64(wide, 32));
		const uint32_t extra =
			_mm256_test_epi64_mask(part, _mm256_set1_epi64x(1LL << BL_PART_EXTRA));
		const uint32_t blocked =
			_mm256_test_epi64_mask(part, _mm256_set1_epi64x(1LL << BL_PART_BLOCKED));
		const uint32_t unready = _pext_u32(
			_mm512_test_epi64_mask(rest,
					       _mm512_set1_epi64((long long)0xffffffff00000000ULL)),
			0x55);
		const uint32_t ready = ~unready & valid, goes_on = unready & ~blocked & valid;
		const uint32_t stay = goes_on & ~extra, behind = goes_on & extra;

		for (j = 0; j < 4; j++) {
			const __m512i take = row_load(&takes[(i + j) * words], words);
			const uint32_t some = _mm512_test_epi64_mask(take, take);

			/* before PUT, which overwrites list[i] but nothing behind it */
			out[o] = (want_lo(&list[i + j]) & 0xffffffff) | (uint64_t)some << 32 |
				 parts[i + j] << 48;
			row_store(&out[o + 1], _mm512_maskz_compress_epi64((__mmask8)some, take),
				  words);
			o += (uint32_t)__builtin_popcount(some) + !!some;
		}
		PUT(list, stays, stay, rest);
		PUT(later, nlater, behind, rest);
		PUT(wait, nwait, blocked, rest);
		PUT(done, ndone, ready, rest);
		sum = _mm256_add_epi64(sum, got);
	}
	__builtin_memcpy(&list[stays], later, nlater * sizeof(*later));
	a->st.visits += len;
	a->nlist = stays + nlater;
	a->nwait = nwait;
	a->ndone = ndone;
	a->outlen = o;
	sum = _mm256_add_epi64(sum, _mm256_permute4x64_epi64(sum, 0x4e));
	a->run_mtus +=
		(uint64_t)_mm256_extract_epi64(sum, 0) + (uint64_t)_mm256_extract_epi64(sum, 1);
}

static void take_rows(struct bl_alloc *a, enum bl_pass kind, uint32_t words)
{
	switch (words * 4 + kind) {
	case 2 * 4 + BL_PASS_WHOLE:
		take_wide(a, BL_PASS_WHOLE, 2);
		break;
	case 2 * 4 + BL_PASS_FAIR:
		take_wide(a, BL_PASS_FAIR, 2);
		break;
	case 2 * 4 + BL_PASS_AIM:
		take_wide(a, BL_PASS_AIM, 2);
		break;
	case 4 * 4 + BL_PASS_WHOLE:
		take_wide(a, BL_PASS_WHOLE, 4);
		break;
	case 4 * 4 + BL_PASS_FAIR:
		take_wide(a, BL_PASS_FAIR, 4);
		break;
	case 4 * 4 + BL_PASS_AIM:
		take_wide(a, BL_PASS_AIM, 4);
		break;
	case 8 * 4 + BL_PASS_WHOLE:
		take_wide(a, BL_PASS_WHOLE, 8);
		break;
	case 8 * 4 + BL_PASS_FAIR:
		take_wide(a, BL_PASS_FAIR, 8);
		break;
	case 8 * 4 + BL_PASS_AIM:
		take_wide(a, BL_PASS_AIM, 8);
		break;
	}
}

static void sort_rows(struct bl_alloc *a, uint32_t words)
{
	switch (words) {
	case 2:
		sort_wide(a, 2);
		break;
	case 4:
		sort_wide(a, 4);
		break;
	case 8:
		sort_wide(a, 8);
		break;
	}
}

static inline uint32_t units_wide(const struct bl_alloc *a, uint32_t port, uint32_t words)
{
	const __m512i row = _mm512_and_si512(row_load(&a->free[(size_t)port * words], words),
					     row_load(a->open, words));
	const __m128i c =
		_mm_sad_epu8(_mm512_cvtepi64_epi8(_mm512_popcnt_epi64(row)), _mm_setzero_si128());

	return (uint32_t)_mm_cvtsi128_si32(c);
}

static inline bool any_wide(const struct bl_alloc *a, uint32_t s, uint32_t d, uint32_t words)
{
	const __m512i both = _mm512_and_si512(row_load(&a->free[(size_t)s * words], words),
					      row_load(&a->free[(size_t)d * words], words));

	return _mm512_test_epi64_mask(both, row_load(a->open, words));
}

/*
 * share_word() for 16 ports at a time. Sums are below 2^24, exact in floats; a quotient may be
 * rounded up to the next whole number, never down.
 */
PASS_INLINE void share_words(struct bl_alloc *a, uint32_t p, __m512i units, const uint32_t *active)
{
	const __m512i flows = _mm512_loadu_si512(&active[p]),
		      all = _mm512_add_epi32(units, _mm512_loadu_si512(&a->sum[p]));
	const __mmask16 some = _mm512_test_epi32_mask(flows, flows);
	__m512i q = _mm512_cvttps_epi32(
		_mm512_div_ps(_mm512_cvtepi32_ps(all), _mm512_cvtepi32_ps(flows)));
	__m512i odd = _mm512_sub_epi32(all, _mm512_mullo_epi32(q, flows));
	const __mmask16 over = _mm512_cmplt_epi32_mask(odd, _mm512_setzero_si512());

	q = _mm512_mask_sub_epi32(q, over, q, _mm512_set1_epi32(1));
	odd = _mm512_mask_add_epi32(odd, over, odd, flows);
	_mm512_mask_storeu_epi32(&a->share[p], some,
				 _mm512_or_si512(_mm512_slli_epi32(q, BL_SHARE_BITS), odd));
}

static void shares1(struct bl_alloc *a, const uint32_t *active)
{
	const __m512i open = _mm512_set1_epi64((long long)a->open[0]);
	uint32_t p;

	for (p = 0; p < 2 * a->n; p += 16) {
		const __m512i lo = _mm512_popcnt_epi64(
			_mm512_and_si512(_mm512_loadu_si512(&a->free[p]), open));
		const __m512i hi = _mm512_popcnt_epi64(
			_mm512_and_si512(_mm512_loadu_si512(&a->free[p + 8]), open));

		share_words(a, p,
			    _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(lo)),
					       _mm512_cvtepi64_epi32(hi), 1),
			    active);
	}
}

static void shares_wide(struct bl_alloc *a, uint32_t words, const uint32_t *active)
{
	uint32_t p, k, units[16];

	for (p = 0; p < 2 * a->n; p += 16) {
		for (k = 0; k < 16;
		     k++) /* free_words() reserves room for rows beyond the last port */
			units[k] = words == 8   ? units_wide(a, p + k, 8)
				   : words == 4 ? units_wide(a, p + k, 4)
						: units_wide(a, p + k, 2);
		share_words(a, p, _mm512_loadu_si512(units), active);
	}
}

/* filter_plain() for windows of one word, eight records at a time. */
static void filter1(struct bl_alloc *a)
{
	struct bl_want *restrict list = a->list, *restrict wait = a->wait;
	const __m512i open = _mm512_set1_epi64((long long)a->open[0]),
		      firsts = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
	const __m512i low = _mm512_set1_epi64(0xffff);
	size_t i, len = a->nlist, stays = 0, nwait = a->nwait;

	for (i = 0; i < len; i += 8) {
		const uint32_t valid = len - i < 8 ? (1u << (len - i)) - 1 : 0xff;
		const __m512i r0 = _mm512_loadu_si512(&list[i]),
			      r1 = _mm512_loadu_si512(&list[i + 4]);
		const __m512i lo = _mm512_permutex2var_epi64(r0, firsts, r1);
		const __m512i fs = _mm512_mask_i64gather_epi64(
			open, (__mmask8)valid, _mm512_and_si512(lo, low), a->free, 8);
		const __m512i fd = _mm512_mask_i64gather_epi64(
			open, (__mmask8)valid, _mm512_and_si512(_mm512_srli_epi64(lo, 16), low),
			a->free + a->n, 8);
		const uint32_t some = _mm512_mask_test_epi64_mask((__mmask8)valid,
								  _mm512_and_si512(fs, fd), open),
			       none = ~some & valid;

		PUT(list, stays, some & 0xf, r0);
		PUT(list, stays, some >> 4, r1);
		PUT(wait, nwait, none & 0xf, r0);
		PUT(wait, nwait, none >> 4, r1);
	}
	a->nlist = stays;
	a->nwait = nwait;
}
#endif
