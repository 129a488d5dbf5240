/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading struct bl_hist (maps/queue_abi.h): which values a bin stands for, and quantiles.
 *
 * A bin knows its values to 12.5 %. What is reported is the greatest value of the bin, so a
 * quantile is never flattered: of 1000 frames that found 15 full frames (22710 bytes, 354 units of
 * 64, bin of 352 to 383) the p99.9 is 383 units, 24512 bytes. Units are rounded down when they are
 * counted, so a value may be more by less than one unit.
 */
#ifndef BARLINE_CLI_HIST_H
#define BARLINE_CLI_HIST_H

#include <stdbool.h>
#include <stdint.h>

#include "maps/queue_abi.h"

/** hist_least - least value of a bin, in the histogram's units. */
static inline uint64_t hist_least(unsigned int bin)
{
	return bin < 16 ? bin : (uint64_t)(8 + (bin - 16) % 8) << ((bin - 16) / 8 + 1);
}

/**
 * hist_greatest - greatest value of a bin; of the last one, which takes all that is above, the
 * least.
 */
static inline uint64_t hist_greatest(unsigned int bin)
{
	return bin + 1 < BL_HIST_BINS ? hist_least(bin + 1) - 1 : hist_least(bin);
}

static inline uint64_t hist_count(const struct bl_hist *h)
{
	uint64_t n = 0;
	unsigned int b;

	for (b = 0; b < BL_HIST_BINS; b++)
		n += h->n[b];
	return n;
}

/**
 * hist_bin_at - bin of the value that @per_mille10 of 10000 values do not exceed (9990: p99.9;
 * 10000: the greatest). -1: nothing was counted. The rank is rounded up: of 3 values p50 is the
 * second, and p99.9 of fewer than 1000 is the greatest.
 */
static inline int hist_bin_at(const struct bl_hist *h, unsigned int per_mille10)
{
	uint64_t n = hist_count(h), seen = 0, rank;
	unsigned int b;

	/* by parts: n * 10000 could overflow */
	rank = n / 10000 * per_mille10 + (n % 10000 * per_mille10 + 9999) / 10000;
	rank = rank ? rank : 1;
	for (b = 0; b < BL_HIST_BINS; b++) {
		seen += h->n[b];
		if (seen >= rank)
			return (int)b;
	}
	return -1;
}

/**
 * hist_quantile - that value at most, in base units (bytes with BL_HIST_LEN_SHIFT, ns with
 * BL_HIST_NS_SHIFT). False: nothing was counted.
 */
static inline bool hist_quantile(const struct bl_hist *h, unsigned int per_mille10,
				 unsigned int shift, uint64_t *v)
{
	int b = hist_bin_at(h, per_mille10);

	if (b < 0)
		return false;
	*v = hist_greatest((unsigned int)b) << shift;
	return true;
}

/**
 * hist_add - @to += @h - @before; @before NULL: nothing. For what was counted in a span of time,
 * in several queues.
 */
static inline void hist_add(struct bl_hist *to, const struct bl_hist *h,
			    const struct bl_hist *before)
{
	unsigned int b;

	for (b = 0; b < BL_HIST_BINS; b++)
		to->n[b] += h->n[b] - (before ? before->n[b] : 0);
}

#endif
