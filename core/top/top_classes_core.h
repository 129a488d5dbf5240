/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP's thresholds from the sizes of flows: those that give each class the same load (section 3.2
 * of the paper: "balanced capacities among all physical queues"). The paper's own thresholds
 * p^(i/K) do that for sizes whose density is 1 / x. Here the distribution is the one that was
 * seen.
 *
 * Sizes are counted in buckets, two for each power of two of frames (bl_top_bucket()); within a
 * bucket they are taken to be spread evenly. What a class carries depends on the objective. By
 * size a flow is in one class for its life: class i carries all bytes of flows between two
 * thresholds. By what is left, or was served, every flow passes through the classes: class i
 * carries of each flow the bytes between two thresholds, which is the integral of the share of
 * flows that are longer.
 *
 * Example: two classes, 100 flows of 4 or 5 frames and one of 768 to 1023. All of them are 1295
 * frames. By what is left, the 101 flows have 405 below 5 frames; 242.5 more of the long one are
 * half of all, so class 1 is what has 249 frames or more left. By size class 1 begins at 847,
 * within the long one's bucket: no threshold divides a flow, but a bucket is not known to be one
 * flow.
 *
 * Ageing is by flows and not by time: a host that was idle has learnt nothing new. When more than
 * two windows were counted all counts are halved. Pure: no clock, no maps.
 */
#ifndef BARLINE_TOP_CLASSES_CORE_H
#define BARLINE_TOP_CLASSES_CORE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/queue/queue_core.h"
#include "core/top/top_core.h"

#define BL_TOP_LEARN_LEAST  256  /* flows before thresholds follow from them */
#define BL_TOP_LEARN_WINDOW 4096 /* flows: with twice as many all counts are halved */
#define BL_TOP_LEARN_MOVED  1.25 /* factor: thresholds stay while they are nearer */
#define BL_TOP_LIMIT_LEAST  2    /* frames: one frame is in class 0 */

/** struct bl_top_learn - what was learnt. Begins as zeroes. */
struct bl_top_learn {
	double flows[BL_TOP_SIZES];         /* by bucket, aged */
	uint64_t last[BL_TOP_SIZES];        /* bl_top_page.sizes as they were at the last look */
	uint64_t limit[BL_TOP_CLASSES - 1]; /* in use, frames; the first 0: none */
};

/** bl_top_bucket_edge - frames below bucket @b; BL_TOP_SIZES: up to the last one's end. */
static inline double bl_top_bucket_edge(unsigned int b)
{
	if (b < 3)
		return b ? 1 : 0; /* bucket 1 is empty: 1.5 frames do not exist */
	return ldexp(b & 1 ? 1.5 : 1, (int)(b / 2)) - 1;
}

/** bl_top_bucket_load - frames of a bucket from @from to @to, beyond which are @longer flows. */
static inline double bl_top_bucket_load(bool by_size, double flows, double longer, double from,
					double to)
{
	if (by_size)
		return flows * (from + to) / 2;
	return (to - from) * (longer + flows / 2);
}

/**
 * bl_top_equal_load - thresholds that give @levels classes the same load. @flows: number of flows
 * by bucket. @by_size: a flow's class is that of its whole size; else that of what is left of it,
 * or was served. @limit: class c is what has at least limit[c - 1] frames; rising, at least
 * BL_TOP_LIMIT_LEAST; ~0 where there is no such class. Returns 0, or -1: there are no flows.
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

/** bl_top_learn_add - @sizes: the page's counts now. Returns how many flows are known, aged. */
static inline double bl_top_learn_add(struct bl_top_learn *l, const uint64_t sizes[BL_TOP_SIZES])
{
	double all = 0;
	unsigned int b;

	for (b = 0; b < BL_TOP_SIZES; b++) {
		/* a count that went back is that of new maps */
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

/** bl_top_learn_moved - does a threshold of @now differ from @was by BL_TOP_LEARN_MOVED? */
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
 * bl_top_learn_step - a look at the page's counts. @open: flows that have not ended, by bucket of
 * what came so far; they count for this look only. Returns true if l->limit are other thresholds
 * now.
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
