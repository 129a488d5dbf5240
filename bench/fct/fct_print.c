/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The report of `lab run fct` as text: tables, and sentences about drops and bounds.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/fct/fct.h"
#include "cli/util/out.h"

static void print_drops(const json_t *result)
{
	const json_t *q;
	size_t i;

	json_array_foreach(json_object_get(result, "queues"), i, q)
	{
		json_int_t dropped = json_integer_value(json_object_get(q, "dropped"));

		if (dropped)
			printf("%s: %s port %s, class %s: %" JSON_INTEGER_FORMAT
			       " of %" JSON_INTEGER_FORMAT " frames dropped\n",
			       json_string_value(json_object_get(result, "policy")),
			       json_string_value(json_object_get(q, "node")),
			       json_string_value(json_object_get(q, "port")),
			       json_string_value(json_object_get(q, "class")), dropped,
			       dropped + json_integer_value(json_object_get(q, "put")));
	}
}

static double json_number_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void print_bound(const json_t *result)
{
	const json_t *b = json_object_get(result, "data_queue");
	bool within = json_is_true(json_object_get(b, "within"));

	if (!b)
		return;
	printf("%s: longest data queue %.1f kB, %s the bound of %.1f kB: T %.2f ms",
	       json_string_value(json_object_get(result, "policy")),
	       json_number_of(b, "longest_bytes") / 1e3, within ? "within" : "beyond",
	       json_number_of(b, "bound_bytes") / 1e3, json_number_of(b, "T_ns") / 1e6);
	if (json_number_of(b, "hops") > 0)
		printf(" = d %.2f ms + %.0f hops x %.2f ms", json_number_of(b, "d_ns") / 1e6,
		       json_number_of(b, "hops"),
		       (json_number_of(b, "T_ns") - json_number_of(b, "d_ns")) /
			       json_number_of(b, "hops") / 1e6);
	printf("; switches hold %.2f ms of tokens; least way %.2f ms, clocks within %.2f us",
	       json_number_of(b, "hop_ns") / 1e6, json_number_of(b, "way_ns") / 1e6,
	       json_number_of(b, "clock_ns") / 1e3);
	if (!within)
		printf("; but pacers were up to %.1f ms late, with which the bound is %.1f kB: %s",
		       json_number_of(b, "late_ns") / 1e6,
		       json_number_of(b, "bound_late_bytes") / 1e3,
		       json_is_true(json_object_get(b, "within_late")) ? "within"
								       : "beyond that, too");
	putchar('\n');
}

/* prints a table without the columns that no row has */
static void print_table(json_t *rows, const struct col *cols, size_t n)
{
	struct col some[32];
	const json_t *row;
	size_t i, k, m = 0;

	for (k = 0; k < n && m < sizeof(some) / sizeof(some[0]); k++) {
		bool there = false;

		json_array_foreach(rows, i, row) there |= json_object_get(row, cols[k].key) != NULL;
		if (there)
			some[m++] = cols[k];
	}
	out_table(stdout, rows, some, m);
}

void fct_print(const json_t *res, bool whole)
{
	static const struct col rows[] = {
		{ "size", "SIZE", 's' },        { "policy", "POLICY", 's' },
		{ "flows", "FLOWS", 'd' },      { "fct_mean_ns", "FCT_MEAN", 't' },
		{ "fct_p50_ns", "P50", 't' },   { "fct_p95_ns", "P95", 't' },
		{ "fct_p99_ns", "P99", 't' },   { "slowdown_mean", "SLOWDOWN_MEAN", 'f' },
		{ "slowdown_p50", "P50", 'f' }, { "slowdown_p95", "P95", 'f' },
		{ "slowdown_p99", "P99", 'f' }
	};
	static const struct col cols[] = { { "policy", "POLICY", 's' },
					   { "finished", "FINISHED", 'd' },
					   { "unfinished", "UNFINISHED", 'd' },
					   { "fct_change_percent", "FCT_%", 'f' },
					   { "slowdown_change_percent", "SLOWDOWN_%", 'f' },
					   { "fluid_fct_mean_ns", "FLUID_FCT", 't' },
					   { "fluid_slowdown_mean", "FLUID_SLOWDOWN", 'f' },
					   { "fluid_fct_change_percent", "FLUID_%", 'f' },
					   { "fluid_slowdown_change_percent", "FLUID_S_%", 'f' },
					   { "missed_percent", "MISSED_%", 'f' },
					   { "coflows", "COFLOWS", 'd' },
					   { "cct_mean_ns", "CCT_MEAN", 't' },
					   { "cct_change_percent", "CCT_%", 'f' },
					   { "queue_p99_frames", "QUEUE_P99", 'f' },
					   { "queue_max_frames", "MAX", 'f' },
					   { "data_drops", "DATA_DROPS", 'd' },
					   { "token_drops", "TOKENS", 'd' },
					   { "control_drops", "CONTROL", 'd' },
					   { "hold_drops", "HOLD", 'd' },
					   { "retransmits", "RETRANS", 'd' },
					   { "late_p99_ns", "LATE_P99", 't' },
					   { "probe_p50_ns", "IDLE_P50", 't' },
					   { "pacer_late_p99_ns", "PACER_P99", 't' },
					   { "wall_s", "WALL_S", 'f' } };
	const char *sizes = json_string_value(json_object_get(res, "sizes")),
		   *trace = json_string_value(json_object_get(res, "trace")),
		   *coflows = json_string_value(json_object_get(res, "coflows"));
	const json_t *row, *seed = json_object_get(res, "seed");
	size_t i;
	char base[32];

	printf("fct, %s of %.0f hosts, links of %.0f Mbit/s: %.0f flows in %.1f s, %s, sizes x %g, "
	       "objective %s, ",
	       json_string_value(json_object_get(res, "topology")), json_number_of(res, "hosts"),
	       json_number_of(res, "rate_bps") / 1e6, json_number_of(res, "flows"),
	       json_number_of(res, "span_s"),
	       trace     ? trace
	       : coflows ? coflows
			 : sizes,
	       json_number_of(res, "scale"), json_string_value(json_object_get(res, "objective")));
	if (json_is_integer(seed))
		printf("seed %" JSON_INTEGER_FORMAT ", ", json_integer_value(seed));
	if (!trace)
		printf("load %g, ", json_number_of(res, "load"));
	printf("offered load %.3f; one byte alone: %s\n", json_number_of(res, "offered_load"),
	       out_time((int64_t)json_number_of(res, "base_ns"), base, sizeof(base)));
	if (whole) {
		OUT_TABLE(stdout, json_object_get(res, "buckets"), rows);
		putchar('\n');
	}
	print_table(json_object_get(res, "results"), cols, sizeof(cols) / sizeof(cols[0]));
	json_array_foreach(json_object_get(res, "results"), i, row)
	{
		if (whole)
			print_drops(row);
		print_bound(row);
	}
	fflush(stdout);
	json_array_foreach(json_object_get(res, "warnings"), i, row)
		fprintf(stderr, "barline: %s\n", json_string_value(row));
	json_array_foreach(json_object_get(res, "errors"), i, row)
		cli_fail("%s", json_string_value(row));
}
