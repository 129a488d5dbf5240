// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The allocator's inner loop in plain C: for every CPU. */
#include "arbiter/alloc/alloc_pass.h"
