/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A trace: the flows of a run, in the order of their arrivals, which are the same for every
 * policy. A trace can be written to a file and read back:
 *
 *	# id src dst start_ns bytes
 *	1 3 7 1204885 14600
 *
 * Flow 1 is from h3 to h7, arrives 1.2 ms after the beginning, and has 14600 bytes. If flows have
 * deadlines or belong to coflows, each line has two more numbers, "deadline_us coflow", with 0 for
 * none.
 *
 * Arrivals are one Poisson process over the whole network. Each flow takes four numbers from the
 * random generator, even if they are not used. So the same seed at another load gives the same
 * flows, closer together or farther apart. Deadlines and widths of coflows come from a generator of
 * their own, so that the flows have the same sizes and hosts with and without them.
 */
#ifndef BARLINE_BENCH_FCT_TRACE_H
#define BARLINE_BENCH_FCT_TRACE_H

#include <stdbool.h>

#include "bench/fct/fct_sizes.h"

/* each may have a connection from the beginning, which needs two of 65536 descriptors */
#define FCT_FLOWS_MAX   30000
#define FCT_HOSTS_MAX   64
#define FCT_SPAN_MAX_NS 86400000000000ULL
#define FCT_WIDTH_MAX   64

/** struct fct_flow - One flow of a trace. */
struct fct_flow {
	uint64_t start_ns; /* arrival, since the beginning */
	uint64_t bytes;
	uint16_t src;         /* host, from 0 */
	uint16_t dst;         /* host, from 0 */
	uint32_t deadline_us; /* since @start_ns; 0: none */
	uint32_t coflow;      /* number, from 1; 0: none */
};

/** struct fct_plan - The parameters of a trace. */
struct fct_plan {
	uint64_t seed;
	const struct fct_sizes *sizes;
	double scale;      /* factor for all sizes */
	double per_second; /* mean number of flows that arrive, over the whole network */
	unsigned int hosts;
	/*
	 * By host: number of its rack. With one rack, all hosts send to all others; else only to
	 * hosts of other racks.
	 */
	unsigned int rack[FCT_HOSTS_MAX];
	uint32_t flows;     /* number of flows; 0: no limit */
	uint64_t span_ns;   /* only flows that arrive earlier; 0: no limit */
	double deadline_us; /* mean of the deadlines of flows up to @deadline_bytes; 0: none */
	unsigned int mss;   /* payload of a full frame; bounds deadlines, together with @rate_bps */
	/*
	 * Mean number of flows in a coflow, which arrive at the same time. A coflow has 1 to 2
	 * @width - 1 flows, uniformly distributed; the last one may be cut off by @flows. 0: no
	 * coflows.
	 */
	unsigned int width;
	uint64_t rate_bps;
	uint64_t deadline_bytes;
};

/** fct_random - Returns the next random number (splitmix64), from 0 to below 1. */
double fct_random(uint64_t *state);
/**
 * fct_trace_make - Makes a trace with up to @max flows in @f. Returns their number, or a number
 * above
 * @max if there would be more; then @f is full.
 */
uint32_t fct_trace_make(const struct fct_plan *plan, struct fct_flow *f, uint32_t max);
/** fct_trace_write - Writes a trace as text. The caller must check the stream for errors. */
void fct_trace_write(FILE *to, const struct fct_flow *f, uint32_t n);
/**
 * fct_coflows_read - Reads the flows of a published trace of coflows
 * (github.com/coflow/coflow-benchmark): a line "ports coflows", then lines "id arrival_ms nmap
 * map.. nred red:MB..".
 *
 * Port k becomes host k mod plan->hosts. Each reducer gets its megabytes from all mappers in equal
 * parts. The flows of a coflow between the same two hosts become one; those within a rack (within a
 * host, if there is one rack) are left out. Sizes are multiplied by plan->scale. Times remain as in
 * the file; fct_trace_stretch() adapts them to a load. At most plan->flows flows are read (0:
 * @max), in whole coflows.
 *
 * Returns the number of flows, or -1 and a message that begins with "line N: ".
 */
int fct_coflows_read(FILE *from, const struct fct_plan *plan, struct fct_flow *f, uint32_t max,
		     char *why, size_t size);
/** fct_trace_stretch - Multiplies all arrival times by @factor. */
void fct_trace_stretch(struct fct_flow *f, uint32_t n, double factor);
/**
 * fct_trace_read - Reads a trace of at most @max flows between @hosts hosts. Returns the number of
 * flows, or -1 and a message that begins with "line N: ".
 */
int fct_trace_read(FILE *from, unsigned int hosts, struct fct_flow *f, uint32_t max, char *why,
		   size_t size);

#endif
