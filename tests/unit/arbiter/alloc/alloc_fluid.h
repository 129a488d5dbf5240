/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exact max-min fair rates, by progressive filling: all flows grow together until a port is full;
 * the flows of that port stop, and the others go on. Each port carries @cap packets a slot. With
 * weights each flow grows in proportion to its weight.
 *
 * Example: 0>1, 0>2, 3>2, 4>2, 3>{5,6,7}, 4>{5,6,7}. Senders 3 and 4 are full first, at 1/4 for
 * each of their flows; receiver 2 has 1/2 left for 0>2, and sender 0 is full at 1/2 for both of its
 * flows.
 */
#ifndef BARLINE_TEST_ALLOC_FLUID_H
#define BARLINE_TEST_ALLOC_FLUID_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/** struct fluid_flow - A flow and its rate. */
struct fluid_flow {
	uint32_t port[6], nports; /* ports that it passes through */
	double weight;
	double rate; /* written: packets per slot */
	bool stopped;
};

/** fluid_solve - Set the rates of all @n flows. @cap: [ports] packets per slot. */
static void fluid_solve(struct fluid_flow *f, size_t n, const double *cap, uint32_t ports)
{
	double *left = calloc(ports, sizeof(*left)), *weight = calloc(ports, sizeof(*weight));
	size_t going = n, i;
	uint32_t p, k;

	for (p = 0; p < ports; p++)
		left[p] = cap[p];
	for (i = 0; i < n; i++) {
		f[i].rate = 0;
		f[i].stopped = false;
		for (k = 0; k < f[i].nports; k++)
			weight[f[i].port[k]] += f[i].weight;
	}
	while (going) {
		double step = 1e30;

		for (p = 0; p < ports; p++)
			if (weight[p] > 1e-9 && left[p] / weight[p] < step)
				step = left[p] / weight[p];
		for (p = 0; p < ports; p++)
			left[p] -= step * weight[p];
		for (i = 0; i < n; i++) {
			bool full = false;

			if (f[i].stopped)
				continue;
			f[i].rate += step * f[i].weight;
			for (k = 0; k < f[i].nports; k++)
				full |= left[f[i].port[k]] < 1e-9;
			f[i].stopped = full;
		}
		for (p = 0; p < ports; p++)
			weight[p] = 0;
		for (going = 0, i = 0; i < n; i++)
			for (k = 0, going += !f[i].stopped; !f[i].stopped && k < f[i].nports; k++)
				weight[f[i].port[k]] += f[i].weight;
	}
	free(left);
	free(weight);
}

#endif
