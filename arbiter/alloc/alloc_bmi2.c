/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The allocator's inner loop for CPUs with BMI2: PDEP distributes the lowest k ones of a number
 * over the lowest k ones of a word, in one instruction.
 */
#ifdef __x86_64__
#pragma GCC target("bmi,bmi2,popcnt,lzcnt")
#include <immintrin.h>

/* k may be more than 64: all ones are taken */
#define PASS_LOWEST(w, k)     _pdep_u64(_bzhi_u64(~0ULL, (k) < 64 ? (k) : 64), w)
#define PASS_LOWEST_FEW(w, k) _pdep_u64(_bzhi_u64(~0ULL, k), w)
#define PASS_OPS              bl_alloc_bmi2
#define PASS_NAME             "bmi2"
#include "arbiter/alloc/alloc_pass.h"
#endif
