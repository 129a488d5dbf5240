/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A fluid model of `lab run fct`: the completion times of the same flows if links could be divided
 * arbitrarily, without packets, tokens, round-trip times or clocks. They are printed beside the
 * measured ones.
 *
 * Every flow uses the links of its hosts, and if source and destination are in different racks,
 * also the links that leave the rack of the source and enter that of the destination. The latter
 * are one pipe per rack, because flows are distributed evenly over the spines. The best class gets
 * capacity first; the flows of a class share what is left max-min fairly (water filling). Rates
 * change at each arrival, at each end, and whenever a flow passes a threshold.
 *
 * Example: one link of 1 byte/ns, and flows of 100 and 10 bytes that arrive at 0 ns and 50 ns. If
 * they share, the second takes 20 ns and the first 110 ns. With a threshold of 20 bytes by size,
 * the second is served first, and they take 10 and 110 ns. The same holds by remaining size,
 * because the first flow, of which 50 bytes are left, is in the worse class, too.
 */
#ifndef BARLINE_BENCH_FCT_FLUID_H
#define BARLINE_BENCH_FCT_FLUID_H

#include <stdint.h>

#include "bench/fct/fct_trace.h"

#define FCT_FLUID_CLASSES 6

/* what the class of a flow depends on */
enum fct_fluid_by {
	FCT_FLUID_SHARE,     /* nothing: all flows share */
	FCT_FLUID_SIZE,      /* its size */
	FCT_FLUID_SERVED,    /* the bytes that it has sent */
	FCT_FLUID_REMAINING, /* the bytes that are left */
	FCT_FLUID_SHORTEST,  /* no classes: the flow with the fewest bytes left is served first */
};

/** struct fct_fluid - The network and the rule of scheduling. */
struct fct_fluid {
	enum fct_fluid_by by;
	unsigned int levels;                 /* classes in use, 1 to FCT_FLUID_CLASSES */
	double limit[FCT_FLUID_CLASSES - 1]; /* bytes above which class i + 1 begins */
	unsigned int hosts;                  /* up to FCT_HOSTS_MAX */
	unsigned int rack[FCT_HOSTS_MAX];    /* by host: number of its rack */
	double host_rate;                    /* bytes per ns, each way of a host's link */
	double rack_rate[FCT_HOSTS_MAX];     /* bytes per ns, each way, between rack and rest */
};

/** struct fct_fluid_flow - One flow. */
struct fct_fluid_flow {
	double start_ns;
	double bytes; /* on the wire, above 0 */
	unsigned int src, dst;
};

/**
 * fct_fluid_run - Computes the completion time of each flow.
 * @m: the model; all its rates must be above 0
 * @f: @n flows, ordered by start_ns
 * @fct: gets the completion times in ns
 * Returns 0, or -1 if out of memory.
 */
int fct_fluid_run(const struct fct_fluid *m, const struct fct_fluid_flow *f, uint32_t n,
		  double *fct);

#endif
