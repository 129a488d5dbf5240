/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records the marked accesses of a core to shared memory, and its barriers, in the order in which
 * they happen. A test includes this header before the cores under test.
 */
#ifndef BARLINE_TESTS_STORE_HOOKS_H
#define BARLINE_TESTS_STORE_HOOKS_H

#include <string.h>

#include "core/core.h"

static char seen[64]; /* r, w: a marked load or store; +: an atomic add; |: a barrier */

static void note(char what)
{
	size_t n = strlen(seen);

	if (n + 1 < sizeof(seen))
		seen[n] = what;
}

static void (*at_barrier)(void);
static int barriers;

static void barrier(void)
{
	barriers++;
	note('|');
	if (at_barrier)
		at_barrier();
}

#undef BL_READ_ONCE
#undef BL_WRITE_ONCE
#undef BL_BARRIER
#define BL_READ_ONCE(x)            (note('r'), *(const volatile __typeof__(x) *)&(x))
#define BL_WRITE_ONCE(x, v)        (note('w'), *(volatile __typeof__(x) *)&(x) = (v))
#define BL_BARRIER()               barrier()
#define __sync_fetch_and_add(p, n) (note('+'), (__sync_fetch_and_add)(p, n))

#endif
