/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random sizes of flows, from a distribution that a file gives as points of its cumulative
 * distribution function:
 *
 *	10000 0.15	bytes, share of the flows that are not longer
 *	20000 0.20
 *	30000 1
 *
 * Sizes are uniformly distributed between two points; up to the first point all flows have its
 * size. In the example, u = 0.1 gives 10000 bytes and u = 0.6 gives 25000; the mean is 0.15 x
 * 10000 + 0.05 x 15000 + 0.8 x 25000 = 22250 bytes. (Some programs give each flow the upper size
 * of its interval, with which the mean would be 26500.) Files with three columns, "packets 1
 * cdf", count packets of 1460 bytes. '#' begins a comment.
 */
#ifndef BARLINE_BENCH_FCT_SIZES_H
#define BARLINE_BENCH_FCT_SIZES_H

#include <stdint.h>
#include <stdio.h>

#define FCT_POINTS_MAX   4096
#define FCT_PACKET_BYTES 1460
#define FCT_SIZE_MAX     1e15

struct fct_point {
	double bytes;
	double cdf; /* share of the flows that have @bytes or less */
};

/** struct fct_sizes - A distribution. */
struct fct_sizes {
	unsigned int n;                     /* points */
	struct fct_point p[FCT_POINTS_MAX]; /* neither field decreases; the last cdf is 1 */
};

/** fct_sizes_named - Fills in "websearch" or "datamining". Returns 0, or -1 for another name. */
int fct_sizes_named(struct fct_sizes *s, const char *name);
/**
 * fct_sizes_read - Reads a distribution from a file. Returns 0, or -1 and a message in @why, which
 * begins with "line N: " if it is about a line.
 */
int fct_sizes_read(struct fct_sizes *s, FILE *f, char *why, size_t size);
/** fct_sizes_at - Returns the size, in bytes, below which a share @u of flows is; 0 <= @u < 1. */
double fct_sizes_at(const struct fct_sizes *s, double u);
/** fct_sizes_mean - Returns the mean size in bytes. */
double fct_sizes_mean(const struct fct_sizes *s);
/** fct_sizes_scaled - Returns @bytes times @scale, rounded, and at least 1. */
uint64_t fct_sizes_scaled(double bytes, double scale);
/**
 * fct_sizes_wire_mean - Returns the mean bytes of the frames that carry a flow, with all sizes
 * times
 * @scale. @mss: payload of a full frame.
 */
double fct_sizes_wire_mean(const struct fct_sizes *s, double scale, unsigned int mss);

#endif
