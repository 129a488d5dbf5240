/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The allocator's inner loop in plain C: for every CPU.
 */
#define PASS_LOWEST(w, k)     bl_lowest64(w, k)
#define PASS_LOWEST_FEW(w, k) bl_lowest64(w, k)
#define PASS_OPS              bl_alloc_plain
#define PASS_NAME             "plain"
#include "alloc_pass.h"
