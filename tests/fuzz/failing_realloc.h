/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A realloc() that fails when the fuzzer says so. */
#ifndef BARLINE_FUZZ_FAILING_REALLOC_H
#define BARLINE_FUZZ_FAILING_REALLOC_H

#include <stdlib.h>

static int fail_realloc;

static void *fuzz_realloc(void *p, size_t n)
{
	return fail_realloc ? NULL : realloc(p, n);
}

#endif
