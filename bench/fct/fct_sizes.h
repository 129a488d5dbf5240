/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sizes of flows, drawn from a distribution that a file gives as points of its cumulative
 *distribution function.
 *
 *	10000 0.15	bytes, share of the flows that are so long or shorter
 *	20000 0.20
 *	30000 1
 *
 * Between two points sizes are spread evenly; up to the first point all flows have its size. Above:
 *u = 0.1 gives 10000 bytes, u = 0.6 gives 25000; the mean is 0.15 x 10000 + 0.05 x 15000 + 0.8 x
 *25000 = 22250 bytes. (To give every flow the upper size of its interval, as some do, would make
 *this mean 26500.) Files with three columns count packets of 1460 bytes: "packets 1 cdf". '#'
 *begins a comment.
 */
#ifndef BARLINE_CLI_FCT_SIZES_H
#define BARLINE_CLI_FCT_SIZES_H

#include <stdint.h>
#include <stdio.h>

#define FCT_POINTS_MAX   4096
#define FCT_PACKET_BYTES 1460
#define FCT_SIZE_MAX     1e15

struct fct_point {
	double bytes;
	double cdf;
};

/** struct fct_sizes - @p: @n points, both columns rising or equal, the last cdf 1. */
struct fct_sizes {
	unsigned int n;
	struct fct_point p[FCT_POINTS_MAX];
};

/** fct_sizes_named - "websearch" or "datamining". 0, or -1: no such name. */
int fct_sizes_named(struct fct_sizes *s, const char *name);
/**
 * fct_sizes_read - 0, or -1 and a sentence that begins with "line N: " where there is one to
 * blame.
 */
int fct_sizes_read(struct fct_sizes *s, FILE *f, char *why, size_t size);
/** fct_sizes_at - the size below which a share @u of the flows is, 0 <= @u < 1. Bytes. */
double fct_sizes_at(const struct fct_sizes *s, double u);
double fct_sizes_mean(const struct fct_sizes *s);
/** fct_sizes_scaled - whole bytes of a flow, at least one. */
uint64_t fct_sizes_scaled(double bytes, double scale);
/**
 * fct_sizes_wire_mean - mean bytes of the frames that carry a flow, sizes times @scale; @mss:
 * payload of a full frame.
 */
double fct_sizes_wire_mean(const struct fct_sizes *s, double scale, unsigned int mss);

#endif
