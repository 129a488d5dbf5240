/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fluid model of `lab run fct`: what the same flows would take if links could be divided at will,
 * without packets, tokens, round-trip times or clocks. It is printed beside what was measured.
 *
 * Every flow goes over its host's link, and if source and destination are in different racks, over
 * the links that leave the source's rack and enter the destination's; these are one pipe for each
 * rack (flows are spread evenly over the spines). Capacity goes to the best class first; the flows
 * of a class share what is left max-min fairly (water filling). Rates change at each arrival, each
 * end, and each time a flow passes a threshold.
 *
 * Example: one link of 1 byte/ns, flows of 100 and 10 bytes that come at 0 ns and 50 ns. Shared,
 * the second takes 20 ns and the first 110. With a threshold of 20 bytes by size the second goes
 * first: 10 and 110 ns. By remaining size the first, which has 50 bytes left, is in the worse
 * class, too.
 */
#ifndef BARLINE_CLI_FCT_FLUID_H
#define BARLINE_CLI_FCT_FLUID_H

#include <stdint.h>

#include "bench/fct/fct_trace.h"

#define FCT_FLUID_CLASSES 6

/* What a flow's class follows from; SHORTEST: no classes, the least remaining size goes first. */
enum fct_fluid_by {
	FCT_FLUID_SHARE,
	FCT_FLUID_SIZE,
	FCT_FLUID_SERVED,
	FCT_FLUID_REMAINING,
	FCT_FLUID_SHORTEST,
};

/** struct fct_fluid - the network and the rule. */
struct fct_fluid {
	enum fct_fluid_by by;
	unsigned int levels;                 /* classes in use, 1 to FCT_FLUID_CLASSES */
	double limit[FCT_FLUID_CLASSES - 1]; /* bytes above which class i + 1 begins */
	unsigned int hosts;                  /* up to FCT_HOSTS_MAX */
	unsigned int rack[FCT_HOSTS_MAX];    /* by host: number of its rack */
	double host_rate;                    /* bytes per ns, each way of a host's link */
	double rack_rate[FCT_HOSTS_MAX];     /* bytes per ns, each way, between rack and rest */
};

/** struct fct_fluid_flow - one flow, in the order of arrivals. */
struct fct_fluid_flow {
	double start_ns;
	double bytes; /* on the wire, above 0 */
	unsigned int src, dst;
};

/**
 * fct_fluid_run - completion time of each flow, ns, into @fct. @m: the model; all rates above 0.
 * @f: @n flows, @start_ns rising or equal. Returns 0, or -1: no memory.
 */
int fct_fluid_run(const struct fct_fluid *m, const struct fct_fluid_flow *f, uint32_t n,
		  double *fct);

#endif
