/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arithmetic of flow completion times: what a flow weighs on the wire, how fast it could be, which bucket it is in, and quantiles.
 *
 * Example: 3000 bytes at 100 Mbit/s. Three frames: 1448, 1448 and 104 bytes with 66 bytes of headers each, 3198 in all. A metered port sends a frame that finds it free at once
 * and is then busy for the frame's length, so that the last frame of a flow that is alone waits only for those before it: (3198 - 170) x 80 ns = 242.2 us after the first one.
 * With a base of 40 us, which is how long a flow of one byte takes, the ideal is 282.2 us. A flow that took 846.7 us had a slowdown of 3.
 */
#ifndef BARLINE_CLI_FCT_STAT_H
#define BARLINE_CLI_FCT_STAT_H

#include <stdint.h>
#include <stdlib.h>

#define FCT_HEADERS 66 /* Ethernet, IPv4, TCP with timestamps */
#define FCT_TCP_IP  52 /* of them within the MTU */

/** fct_wire - bytes of all frames that carry @bytes; @mss: payload of a full frame. */
static inline uint64_t fct_wire(uint64_t bytes, unsigned int mss)
{
	return bytes + (bytes + mss - 1) / mss * FCT_HEADERS;
}

/** fct_ideal_ns - from its arrival to its last byte if nothing else is in the network. @base_ns: of one byte. */
static inline double fct_ideal_ns(uint64_t bytes, unsigned int mss, uint64_t rate_bps, double base_ns)
{
	uint64_t full = (bytes - 1) / mss;

	return base_ns + 8e9 * (double)(full * (mss + FCT_HEADERS)) / (double)rate_bps;
}

/** fct_bucket - number of the first of @n rising edges that is not below @bytes; @n: above all. */
static inline unsigned int fct_bucket(const uint64_t *edges, unsigned int n, uint64_t bytes)
{
	unsigned int i;

	for (i = 0; i < n && bytes > edges[i]; i++)
		;
	return i;
}

static inline int fct_by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/** fct_quantile - of @n sorted values the least that @per_mille of 1000 do not exceed: the rank is rounded up, so that p99 of 50 values is the greatest. 0 of none. */
static inline double fct_quantile(const double *sorted, uint32_t n, unsigned int per_mille)
{
	uint64_t rank = ((uint64_t)n * per_mille + 999) / 1000;

	return n ? sorted[rank ? rank - 1 : 0] : 0;
}

/** struct fct_summary - of @n values. */
struct fct_summary {
	uint32_t n;
	double mean, p50, p95, p99, max;
};

/** fct_summarize - sorts @v. */
static inline struct fct_summary fct_summarize(double *v, uint32_t n)
{
	struct fct_summary s = { .n = n };
	double sum = 0;
	uint32_t i;

	qsort(v, n, sizeof(*v), fct_by_value);
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
