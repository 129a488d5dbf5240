/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arithmetic of flow completion times: the bytes of a flow on the wire, its ideal completion time,
 * its bucket, and quantiles.
 *
 * Example: 3000 bytes at 100 Mbit/s. These are three frames with 1448, 1448 and 104 bytes and 66
 * bytes of headers each, 3198 bytes in all. A metered port that is idle sends a frame immediately
 * and is then busy for the length of the frame. So the last frame of a flow that is alone waits
 * only for the frames before it, and is sent (3198 - 170) x 80 ns = 242.2 us after the first one.
 * With a base of 40 us, the time of a flow of one byte, the ideal is 282.2 us. A flow that took
 * 846.7 us had a slowdown of 3.
 */
#ifndef BARLINE_BENCH_FCT_STAT_H
#define BARLINE_BENCH_FCT_STAT_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "bench/fct/fct_trace.h"

#define FCT_HEADERS 66 /* Ethernet, IPv4, TCP with timestamps */
#define FCT_TCP_IP  52 /* the part of them that is within the MTU */

/** fct_wire - Returns the bytes of all frames that carry @bytes. @mss: payload of a full frame. */
static inline uint64_t fct_wire(uint64_t bytes, unsigned int mss)
{
	return bytes + (bytes + mss - 1) / mss * FCT_HEADERS;
}

/**
 * fct_ideal_ns - Returns the completion time of a flow that is alone in the network.
 * @base_ns: completion time of one byte
 */
static inline double fct_ideal_ns(uint64_t bytes, unsigned int mss, uint64_t rate_bps,
				  double base_ns)
{
	uint64_t full = (bytes - 1) / mss;

	return base_ns + 8e9 * (double)(full * (mss + FCT_HEADERS)) / (double)rate_bps;
}

/* least deadline, in times of what a flow takes alone (pFabric, section 5.3) */
#define FCT_DEADLINE_SLACK 1.25
/**
 * fct_deadline_us - Returns an exponentially distributed deadline with mean @mean_us, but not less
 * than the flow's frames need.
 * @u: random number from 0 to below 1
 */
static inline uint32_t fct_deadline_us(uint64_t bytes, unsigned int mss, uint64_t rate_bps,
				       double mean_us, double u)
{
	double v = -log1p(-u) * mean_us,
	       least = FCT_DEADLINE_SLACK * 8e6 * (double)fct_wire(bytes, mss) / (double)rate_bps;

	v = ceil(v > least ? v : least);
	return v < 1 ? 1 : v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/**
 * fct_missed - Returns how many of @n flows took longer than their deadline. *@of gets the number
 * of flows that have one. @fct: completion times in ns.
 */
static inline uint32_t fct_missed(const struct fct_flow *f, const double *fct, uint32_t n,
				  uint32_t *of)
{
	uint32_t i, missed = 0;

	*of = 0;
	for (i = 0; i < n; i++) {
		*of += f[i].deadline_us != 0;
		missed += f[i].deadline_us && fct[i] > 1e3 * f[i].deadline_us;
	}
	return missed;
}

/**
 * fct_coflows - Computes the completion times of coflows, from the first arrival of one of its
 * flows to the last end of one. Example: the flows of coflow 1 arrive at 0 and 10 us and take 50
 * and 45 us, so the coflow takes 55 us.
 * @cct: room for @n + 1 values; gets the completion times, without gaps
 * @first: scratch memory of the same size
 * Returns the number of coflows. Coflows with numbers above @n are ignored.
 */
static inline uint32_t fct_coflows(const struct fct_flow *f, const double *fct, uint32_t n,
				   double *cct, double *first)
{
	uint32_t i, k, count = 0;

	for (i = 0; i <= n; i++) {
		cct[i] = -1;
		first[i] = 0;
	}
	for (i = 0; i < n; i++) {
		double end = (double)f[i].start_ns + fct[i];

		k = f[i].coflow;
		if (!k || k > n)
			continue;
		if (cct[k] < 0 || (double)f[i].start_ns < first[k])
			first[k] = (double)f[i].start_ns;
		cct[k] = end > cct[k] ? end : cct[k];
	}
	for (k = 1; k <= n; k++)
		if (cct[k] >= 0)
			cct[count++] = cct[k] - first[k];
	return count;
}

/** fct_bucket - Returns the first of @n increasing edges that is not below @bytes, or @n. */
static inline unsigned int fct_bucket(const uint64_t *edges, unsigned int n, uint64_t bytes)
{
	unsigned int i;

	for (i = 0; i < n && bytes > edges[i]; i++)
		;
	return i;
}

static inline int fct_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/** fct_median - Sorts @n values and returns the median, of an even number the mean of two. */
static inline double fct_median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), fct_compare);
	return !n ? 0 : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/**
 * fct_quantile - Returns the least of @n sorted values that @per_mille of 1000 do not exceed; 0 if
 * @n is 0. The rank is rounded up, so that the quantile 0.99 of 50 values is the greatest one.
 */
static inline double fct_quantile(const double *sorted, uint32_t n, unsigned int per_mille)
{
	uint64_t rank = ((uint64_t)n * per_mille + 999) / 1000;

	return n ? sorted[rank ? rank - 1 : 0] : 0;
}

/** struct fct_summary - Statistics of @n values; all are 0 if @n is 0. */
struct fct_summary {
	uint32_t n;
	double mean, p50, p95, p99, max;
};

/** fct_summarize - Sorts the @n values @v and returns their statistics. */
static inline struct fct_summary fct_summarize(double *v, uint32_t n)
{
	struct fct_summary s = { .n = n };
	double sum = 0;
	uint32_t i;

	qsort(v, n, sizeof(*v), fct_compare);
	for (i = 0; i < n; i++)
		sum += v[i];
	s.mean = n ? sum / n : 0;
	s.p50 = fct_quantile(v, n, 500);
	s.p95 = fct_quantile(v, n, 950);
	s.p99 = fct_quantile(v, n, 990);
	s.max = fct_quantile(v, n, 1000);
	return s;
}

#endif
