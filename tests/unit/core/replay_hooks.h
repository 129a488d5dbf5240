/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells a test of each marked load of a core before it happens, and of each marked store. The test
 * defines before_load() and at_store() and includes this header before the cores under test.
 */
#ifndef BARLINE_TESTS_REPLAY_HOOKS_H
#define BARLINE_TESTS_REPLAY_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "core/core.h"

static void before_load(void);
static void at_store(const volatile void *p, size_t size, uint64_t value);

#undef BL_READ_ONCE
#undef BL_WRITE_ONCE
#define BL_READ_ONCE(x) (before_load(), *(const volatile __typeof__(x) *)&(x))
#define BL_WRITE_ONCE(x, v) \
	(at_store(&(x), sizeof(x), (uint64_t)(v)), *(volatile __typeof__(x) *)&(x) = (v))

#endif
