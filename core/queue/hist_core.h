/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading struct bl_hist (maps/queue_abi.h): which values a bin stands for, and quantiles.
 *
 * A bin is up to 12.5 % wide, and the greatest value of the bin is reported, so a quantile is never
 * too small. Example: 1000 frames found 15 full frames each before them, 22710 bytes. In units of
 * 64 bytes that is 354, in the bin from 352 to 383, so p99.9 is 383 units, 24512 bytes. Values are
 * rounded down to units when they are counted, so the true value may exceed the reported one by
 * less than one unit.
 */
#ifndef BARLINE_HIST_CORE_H
#define BARLINE_HIST_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "maps/queue_abi.h"

/** hist_least - the least value of a bin, in the histogram's units. */
static inline uint64_t hist_least(unsigned int bin)
{
	return bin < 16 ? bin : (uint64_t)(8 + (bin - 16) % 8) << ((bin - 16) / 8 + 1);
}

/**
 * hist_greatest - the greatest value of a bin. The last bin has no upper bound: its least value is
 * returned.
 */
static inline uint64_t hist_greatest(unsigned int bin)
{
	return bin + 1 < BL_HIST_BINS ? hist_least(bin + 1) - 1 : hist_least(bin);
}

/** hist_count - how many values were counted. */
static inline uint64_t hist_count(const struct bl_hist *h)
{
	uint64_t n = 0;
	unsigned int b;

	for (b = 0; b < BL_HIST_BINS; b++)
		n += h->n[b];
	return n;
}

/**
 * hist_bin_at - the bin of a quantile.
 * @per_mille10: rank of the value among 10000; 9990 is p99.9, 10000 the greatest value.
 *
 * Returns the bin, or -1 if nothing was counted. The rank is rounded up: p50 of 3 values is the
 * second one, and p99.9 of fewer than 1000 values is the greatest.
 */
static inline int hist_bin_at(const struct bl_hist *h, unsigned int per_mille10)
{
	uint64_t n = hist_count(h), seen = 0, rank;
	unsigned int b;

	/* in two parts, since n * 10000 could overflow */
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
 * hist_quantile - an upper bound of a quantile, into *@v, in bytes with @shift BL_HIST_LEN_SHIFT,
 * in ns with BL_HIST_NS_SHIFT. Returns false if nothing was counted.
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
 * hist_add - @to += @h - @before, to sum up over queues what was counted since @before was read.
 * @before NULL: all of @h.
 */
static inline void hist_add(struct bl_hist *to, const struct bl_hist *h,
			    const struct bl_hist *before)
{
	unsigned int b;

	for (b = 0; b < BL_HIST_BINS; b++)
		to->n[b] += h->n[b] - (before ? before->n[b] : 0);
}

#endif
