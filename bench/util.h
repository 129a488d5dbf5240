/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Small parts that several workloads need.
 */
#ifndef BARLINE_BENCH_UTIL_H
#define BARLINE_BENCH_UTIL_H

#include <stddef.h>

/** value_quantile - Sorts the @n values @v and returns their quantile @q, 0 to 1; 0 if @n is 0. */
double value_quantile(double *v, unsigned int n, double q);

/**
 * shared_memory - Maps @size zero bytes that are shared with children. Pages that are never touched
 * cost nothing. Returns NULL after a message. Freed with munmap().
 */
void *shared_memory(size_t size);

#endif
