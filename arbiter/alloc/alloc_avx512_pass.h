/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of alloc_pass.h's loop that alloc_avx512.c replaces; that file includes this header
 * before it.
 */
#ifndef BARLINE_ARBITER_ALLOC_AVX512_PASS_H
#define BARLINE_ARBITER_ALLOC_AVX512_PASS_H

#include "arbiter/alloc/alloc_priv.h"

static void whole8(struct bl_alloc *a);
static void sort1(struct bl_alloc *a);
static void shares1(struct bl_alloc *a, const uint32_t *active);
static void filter1(struct bl_alloc *a);
static void take_rows(struct bl_alloc *a, enum bl_pass kind, uint32_t words);
static void sort_rows(struct bl_alloc *a, uint32_t words);
static void shares_wide(struct bl_alloc *a, uint32_t words, const uint32_t *active);
static inline __attribute__((always_inline)) uint32_t units_wide(const struct bl_alloc *a,
								 uint32_t port, uint32_t words);
static inline __attribute__((always_inline)) bool any_wide(const struct bl_alloc *a, uint32_t s,
							   uint32_t d, uint32_t words);

#define PASS_LOWEST(w, k)     _pdep_u64(_bzhi_u64(~0ULL, (k) < 64 ? (k) : 64), w)
#define PASS_LOWEST_FEW(w, k) _pdep_u64(_bzhi_u64(~0ULL, k), w)
#define PASS_SHARES1          shares1
#define PASS_FILTER1          filter1
#define PASS_OPS              bl_alloc_avx512
#define PASS_NAME             "avx512"
#define PASS_WHOLE8           whole8
#define PASS_SORT1            sort1
#define PASS_TAKE_WIDE        take_rows
#define PASS_SORT_WIDE        sort_rows
#define PASS_SHARES_WIDE      shares_wide
#define PASS_UNITS            units_wide
#define PASS_ANY              any_wide

#endif
