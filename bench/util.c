/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See util.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/util.h"
#include "cli/util/out.h"

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double value_quantile(double *v, unsigned int n, double q)
{
	unsigned int at;

	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), compare_doubles);
	at = (unsigned int)(q * n);
	return v[at < n ? at : n - 1];
}

void *shared_memory(size_t size)
{
	void *m = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m != MAP_FAILED)
		return m;
	cli_fail("cannot map memory for the results: %s", strerror(errno));
	return NULL;
}
