/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two hosts, a and b, for tests that need no more, and their end. To be included last, since inline
 * functions of other headers have parameters of these names.
 */
#ifndef BARLINE_TESTS_LIB_PAIR_H
#define BARLINE_TESTS_LIB_PAIR_H

#include "tests/unit/lib/lib_rel.h"

static struct fake a, b;

/* A teardown of cmocka. */
static int pair_down(void **state)
{
	(void)state;
	drop(&a);
	drop(&b);
	return 0;
}

#endif
