/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Histograms whose limits are powers of two: one shift and one addition per value, so that a thread
 * can count each of its turns. core/queue/hist_core.h has finer ones, which give quantiles by
 * themselves.
 *
 * Example, @first 10: 1023 ns are in bin 0 (below 2^10), 1024 and 2047 in bin 1, 2048 in bin 2.
 * With 20 bins, the last one has what is not below 2^28 ns, 268 ms.
 */
#ifndef BARLINE_LOG_HIST_CORE_H
#define BARLINE_LOG_HIST_CORE_H

#include "core/core.h"

#define BL_LOG_BINS 20

/** bl_log_bin - the bin of @v: 0 below 2^@first, k below 2^(@first + k); the last one has the rest.
 */
BL_CORE unsigned int bl_log_bin(__u64 v, unsigned int first)
{
	unsigned int bin = v >> first ? 64 - (unsigned int)__builtin_clzll(v) - first : 0;

	return bin < BL_LOG_BINS ? bin : BL_LOG_BINS - 1;
}

/** bl_log_limit - what the values of @bin are below. Not of the last bin, which has no limit. */
BL_CORE __u64 bl_log_limit(unsigned int bin, unsigned int first)
{
	return 1ULL << (first + bin);
}

#endif
