/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP's thresholds from the sizes of flows: those that give each class the same load (TOP section
 * 3.2: "balanced capacities among all physical queues"). The paper's own thresholds p^(i/K) do that
 * for sizes whose density is 1 / x. Here the distribution is the one that was observed.
 *
 * Sizes are counted in buckets, two per power of two of frames (bl_top_bucket()); within a bucket
 * they are assumed to be spread evenly. What a class carries depends on the objective. By size, a
 * flow stays in one class: class i carries all bytes of the flows between two thresholds. By what
 * is left, or by what was served, every flow passes through the classes: class i carries, of each
 * flow, the bytes between two thresholds, which is the integral of the share of flows that are
 * longer.
 *
 * Example: two classes, 100 flows of 4 or 5 frames and one of 768 to 1023 frames, 1295 frames in
 * all. By what is left, the 101 flows have 405 frames below 5; another 242.5 frames of the long
 * flow make half of all, so class 1 begins at 249 frames left. By size, class 1 begins at 847
 * frames, within the long flow's bucket: no threshold divides a flow, but it is not known that the
 * bucket is one flow.
 *
 * Old counts fade by flows and not by time, so a host that was idle has not forgotten anything.
 * When more than two windows were counted, all counts are halved. This file reads no clock and no
 * map.
 */
#ifndef BARLINE_TOP_CLASSES_CORE_H
#define BARLINE_TOP_CLASSES_CORE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/queue/queue_core.h"
#include "core/top/top_core.h"

#define BL_TOP_LEARN_LEAST  256  /* flows that must be known before thresholds follow from them */
#define BL_TOP_LEARN_WINDOW 4096 /* flows; at twice as many, all counts are halved */
#define BL_TOP_LEARN_MOVED  1.25 /* factor: thresholds stay if the new ones are nearer than this */
#define BL_TOP_LIMIT_LEAST  2    /* frames: a flow of one frame is in class 0 */

/**
 * struct bl_top_learn - what was learnt. Zero at the start. Used by one thread.
 */
struct bl_top_learn {
	double flows[BL_TOP_SIZES];         /* by bucket; halved from time to time */
	uint64_t last[BL_TOP_SIZES];        /* bl_top_page.sizes at the last step */
	uint64_t limit[BL_TOP_CLASSES - 1]; /* thresholds in use, frames; the first one 0: none */
};

/**
 * bl_top_bucket_edge - the greatest number of frames below bucket @b; for BL_TOP_SIZES, the end of
 * the last bucket.
 */
static inline double bl_top_bucket_edge(unsigned int b)
{
	if (b < 3)
		return b ? 1 : 0; /* bucket 1 is empty: 1.5 frames do not exist */
	return ldexp(b & 1 ? 1.5 : 1, (int)(b / 2)) - 1;
}

/**
 * bl_top_bucket_load - frames that a bucket of @flows flows contributes between @from and @to;
 * @longer flows are in later buckets.
 */
static inline double bl_top_bucket_load(bool by_size, double flows, double longer, double from,
					double to)
{
	if (by_size)
		return flows * (from + to) / 2;
	return (to - from) * (longer + flows / 2);
}

/**
 * bl_top_equal_load - compute thresholds that give @levels classes the same load.
 * @flows: number of flows, by bucket.
 * @by_size: the class of a flow follows from its whole size; else from what is left of it, or was
 * served.
 * @limit: class c begins at limit[c - 1] frames; rising, at least BL_TOP_LIMIT_LEAST; ~0 where the
 * class does not exist.
 *
 * Returns 0, or -1 if there are no flows.
 */
static inline int bl_top_equal_load(const double flows[BL_TOP_SIZES], bool by_size,
				    unsigned int levels, uint64_t limit[BL_TOP_CLASSES - 1])
{
	double all = 0, total = 0, longer, sum = 0;
	unsigned int b, c = 1;

	for (b = 0; b < BL_TOP_SIZES; b++)
		all += flows[b];
	for (b = 0, longer = all; b < BL_TOP_SIZES; b++) {
		longer -= flows[b];
		total += bl_top_bucket_load(by_size, flows[b], longer, bl_top_bucket_edge(b),
					    bl_top_bucket_edge(b + 1));
	}
	for (b = 0; b < BL_TOP_CLASSES - 1; b++)
		limit[b] = ~0ULL;
	if (!(total > 0))
		return -1;
	for (b = 0, longer = all; b < BL_TOP_SIZES && c < levels; b++) {
		double e = bl_top_bucket_edge(b), to = bl_top_bucket_edge(b + 1), load;

		longer -= flows[b];
		if (longer < 0)
			longer = 0;
		load = bl_top_bucket_load(by_size, flows[b], longer, e, to);
		while (c < levels && sum + load >= total * c / levels && to > e && load > 0) {
			double need = total * c / levels - sum, q = flows[b] / (to - e);
			double s = longer + flows[b], x;

			/* q (x^2 - e^2) / 2 = need; s (x - e) - q (x - e)^2 / 2 = need */
			if (by_size)
				x = sqrt(e * e + 2 * need / q);
			else
				x = e + 2 * need / (s + sqrt(fmax(s * s - 2 * q * need, 0)));
			limit[c - 1] = (uint64_t)(fmin(x, to) + 0.5) + 1;
			c++;
		}
		sum += load;
	}
	for (c = 1; c < levels && c < BL_TOP_CLASSES; c++) {
		uint64_t least = c > 1 ? limit[c - 2] + 1 : BL_TOP_LIMIT_LEAST;

		if (limit[c - 1] == ~0ULL || limit[c - 1] < least)
			limit[c - 1] = least; /* ~0: lost to rounding */
	}
	return 0;
}

/**
 * bl_top_learn_add - add what has changed in @sizes, the page's counts. Returns how many flows are
 * known.
 */
static inline double bl_top_learn_add(struct bl_top_learn *l, const uint64_t sizes[BL_TOP_SIZES])
{
	double all = 0;
	unsigned int b;

	for (b = 0; b < BL_TOP_SIZES; b++) {
		/* a count that has decreased belongs to new maps */
		l->flows[b] += (double)(sizes[b] - (sizes[b] < l->last[b] ? 0 : l->last[b]));
		l->last[b] = sizes[b];
		all += l->flows[b];
	}
	while (all > 2 * BL_TOP_LEARN_WINDOW) {
		for (b = 0, all = 0; b < BL_TOP_SIZES; b++)
			all += l->flows[b] /= 2;
	}
	return all;
}

/**
 * bl_top_learn_moved - whether a threshold in @now differs from @was by more than
 * BL_TOP_LEARN_MOVED.
 */
static inline bool bl_top_learn_moved(const uint64_t *was, const uint64_t *now)
{
	unsigned int c;

	for (c = 0; c < BL_TOP_CLASSES - 1; c++)
		if ((double)now[c] > (double)was[c] * BL_TOP_LEARN_MOVED ||
		    (double)now[c] * BL_TOP_LEARN_MOVED < (double)was[c])
			return true;
	return false;
}

/**
 * bl_top_learn_step - take the page's counts into account. @open: flows that have not ended, by
 * bucket of what was received so far; they count for this step only. Returns true if l->limit has
 * new thresholds.
 */
static inline bool bl_top_learn_step(struct bl_top_learn *l, const uint64_t sizes[BL_TOP_SIZES],
				     const uint64_t open[BL_TOP_SIZES], bool by_size,
				     unsigned int levels)
{
	uint64_t limit[BL_TOP_CLASSES - 1];
	double flows[BL_TOP_SIZES];
	unsigned int b;

	if (bl_top_learn_add(l, sizes) < BL_TOP_LEARN_LEAST)
		return false;
	for (b = 0; b < BL_TOP_SIZES; b++)
		flows[b] = l->flows[b] + (double)open[b];
	if (bl_top_equal_load(flows, by_size, levels, limit))
		return false;
	if (l->limit[0] && !bl_top_learn_moved(l->limit, limit))
		return false;
	memcpy(l->limit, limit, sizeof(limit));
	return true;
}

#endif
