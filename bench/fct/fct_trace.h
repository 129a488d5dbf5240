/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A trace: the flows of a run, in the order of their arrivals, the same for every policy. As a
 *file, which can be read back:
 *
 *	# id src dst start_ns bytes
 *	1 3 7 1204885 14600
 *
 * Flow 1 goes from h3 to h7, comes 1.2 ms after the beginning, and has 14600 bytes. Where flows
 *have deadlines or belong to coflows each line has two numbers more, "deadline_us coflow", 0 for
 *none.
 *
 * Arrivals are one Poisson process over the whole network. Each flow takes four numbers from the
 *generator, whatever they are used for: the same seed at another load has the same flows, closer
 *together or farther apart. Deadlines and widths of coflows come from a generator of their own:
 *with or without them the flows have the same sizes and ends.
 */
#ifndef BARLINE_CLI_FCT_TRACE_H
#define BARLINE_CLI_FCT_TRACE_H

#include <stdbool.h>

#include "bench/fct/fct_sizes.h"

/* each may have a connection from the beginning: two descriptors of 65536 */
#define FCT_FLOWS_MAX   30000
#define FCT_HOSTS_MAX   64
#define FCT_SPAN_MAX_NS 86400000000000ULL
#define FCT_WIDTH_MAX   64

/**
 * struct fct_flow - @src, @dst: hosts, from 0. @start_ns: after the beginning. @deadline_us: from
 * @start_ns on; 0: none. @coflow: from 1; 0: none.
 */
struct fct_flow {
	uint64_t start_ns;
	uint64_t bytes;
	uint16_t src;
	uint16_t dst;
	uint32_t deadline_us;
	uint32_t coflow;
};

/**
 * struct fct_plan - what a trace is made of.
 * @rack: by host: number of its rack. With one rack everybody sends to everybody, else to hosts of
 * other racks only.
 * @per_second: flows, all over the network. @flows: so many; @span_ns: those that come before; 0:
 * no such limit.
 * @deadline_us: mean of the deadlines of flows up to @deadline_bytes; 0: none. @mss, @rate_bps: for
 * how long a flow takes at least.
 * @width: mean number of flows in a coflow, which come at once; a coflow has 1 to 2 @width - 1,
 * each equally often. 0: no coflows. The last one may be cut short by @flows.
 */
struct fct_plan {
	uint64_t seed;
	const struct fct_sizes *sizes;
	double scale;
	double per_second;
	unsigned int hosts;
	unsigned int rack[FCT_HOSTS_MAX];
	uint32_t flows;
	uint64_t span_ns;
	double deadline_us;
	unsigned int mss, width;
	uint64_t rate_bps, deadline_bytes;
};

/** fct_random - the next number of a generator (splitmix64), from 0 to below 1. */
double fct_random(uint64_t *state);
/**
 * fct_trace_make - up to @max flows into @f. Their number; more than @max: that would have been
 * too many, and @f is full.
 */
uint32_t fct_trace_make(const struct fct_plan *plan, struct fct_flow *f, uint32_t max);
/** fct_trace_write - lines; the caller sees to errors of the stream. */
void fct_trace_write(FILE *to, const struct fct_flow *f, uint32_t n);
/**
 * fct_coflows_read - flows of a published trace of coflows (github.com/coflow/coflow-benchmark):
 * "ports coflows", then lines "id arrival_ms nmap map.. nred red:MB..". Port k is host k mod
 * @plan->hosts; each reducer gets its megabytes from all mappers in equal parts; flows of a coflow
 * between the same two hosts become one, and those within a rack (a host, if there is one rack) are
 * left out. Sizes times
 * @plan->scale. Times as in the file: fct_trace_stretch() gives them a load. At most @plan->flows
 * flows (0: @max), in whole coflows. Their number; -1 and a sentence that begins with "line N: ".
 */
int fct_coflows_read(FILE *from, const struct fct_plan *plan, struct fct_flow *f, uint32_t max,
		     char *why, size_t size);
/** fct_trace_stretch - all times times @factor. */
void fct_trace_stretch(struct fct_flow *f, uint32_t n, double factor);
/**
 * fct_trace_read - number of flows, at most @max, between @hosts hosts; -1 and a sentence that
 * begins with "line N: ".
 */
int fct_trace_read(FILE *from, unsigned int hosts, struct fct_flow *f, uint32_t max, char *why,
		   size_t size);

#endif
