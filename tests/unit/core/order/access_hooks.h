/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stops a test before each marked access of a core to shared memory. The test defines
 * before_access() and includes this header after core/core.h and before the cores under test.
 */
#ifndef BARLINE_TESTS_ACCESS_HOOKS_H
#define BARLINE_TESTS_ACCESS_HOOKS_H

#include "core/core.h"

static void before_access(void);

#undef BL_READ_ONCE
#define BL_READ_ONCE(x) (before_access(), *(const volatile __typeof__(x) *)&(x))
#define __sync_val_compare_and_swap(p, o, n) \
	(before_access(), (__sync_val_compare_and_swap)(p, o, n))

#endif
