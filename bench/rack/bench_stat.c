/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names and quantiles of latency samples.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "bench/rack/bench.h"

const char *const bench_cell_names[BENCH_CELLS] = { [CELL_ORDERED_BLOCK] = "ordered blocking",
						    [CELL_ORDERED_POLL] = "ordered busy-poll",
						    [CELL_TALK_BLOCK] = "ordered; others talk; "
									"blocking",
						    [CELL_TALK_POLL] = "ordered; others talk; "
								       "busy-poll",
						    [CELL_UDP_BLOCK] = "plain UDP blocking",
						    [CELL_UDP_POLL] = "plain UDP busy-poll" };

int bench_compare32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

json_t *bench_quantiles(uint32_t *v, uint32_t n)
{
	static const struct {
		const char *name;
		double q;
	} qs[] = { { "min", 0 },       { "p50_ns", 0.5 },    { "p90_ns", 0.9 },
		   { "p99_ns", 0.99 }, { "p999_ns", 0.999 }, { "max_ns", 1 } };
	json_t *o = json_object();
	size_t i;

	qsort(v, n, sizeof(*v), bench_compare32);
	json_object_set_new(o, "samples", json_integer(n));
	for (i = 0; n && i < sizeof(qs) / sizeof(qs[0]); i++)
		json_object_set_new(o, i ? qs[i].name : "min_ns",
				    json_integer(v[(uint32_t)(qs[i].q * (n - 1) + 0.5)]));
	return o;
}
