/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The report of a measurement: tables, JSON, result files and a plot.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/rack/bench.h"
#include "cli/util/out.h"
#include "cli/util/plot.h"
#include "cli/util/read.h"
#include "cli/util/read_admission.h"
#include "core/clock_core.h"

void bench_drops(json_t *res)
{
	json_t *rows = json_array();
	struct bl_node_ref *refs = NULL;
	struct bl_err err;
	int n = bl_nodes_find(&refs, 0, &err), i;

	for (i = 0; i < n; i++) {
		struct bl_counts sum = { 0 };
		unsigned int k;

		adm_counts(&refs[i], 1, &sum, &sum);
		for (k = 0; k < BL_REASON_MAX; k++)
			if (sum.n[k] && reason_kind(k) != BL_KIND_OK)
				json_array_append_new(
					rows,
					json_pack("{s:s, s:s, s:s, s:I, s:s}", "node",
						  refs[i].meta.name, "kind",
						  reason_kind(k) == BL_KIND_DROP ? "drop" : "note",
						  "reason", reason_name(k), "count",
						  (json_int_t)sum.n[k], "text", reason_text(k)));
	}
	free(refs);
	json_object_set_new(res, "drops", rows);
}

/*
 * Writes all latency samples, sorted within their mode, so that the file is also the cumulative
 * distribution.
 */
static int write_latency(const struct bench_ctl *ctl)
{
	FILE *f = out_open(ctl->p.out, "latency.csv");
	uint32_t *v = malloc(BENCH_LAT_MAX * sizeof(*v)), i, n;
	int cell;

	if (!f || !v)
		return 1;
	fputs("mode,quantile,latency_us\n", f);
	for (cell = 0; cell < BENCH_CELLS; cell++) {
		for (i = 0, n = 0; i < BENCH_LAT_MAX; i++)
			if (ctl->lat[cell][i])
				v[n++] = ctl->lat[cell][i];
		qsort(v, n, sizeof(*v), bench_compare32);
		for (i = 0; i < n; i++)
			fprintf(f, "%s,%.6f,%.3f\n", bench_cell_names[cell], (i + 0.5) / n,
				v[i] / 1e3);
	}
	free(v);
	return out_close(ctl->p.out, "latency.csv", f);
}

static int write_orders(const struct bench_ctl *ctl)
{
	unsigned int i;

	for (i = 0; i < ctl->n; i++) {
		uint64_t n = atomic_load(&ctl->w[i].delivered);
		char name[32];
		FILE *f;

		snprintf(name, sizeof(name), "order-%u.bin", i + 1);
		f = out_open(ctl->p.out, name);
		if (!f)
			return 1;
		if (n > BENCH_LOG)
			n = BENCH_LOG;
		if (fwrite(ctl->w[i].log, sizeof(uint64_t), n, f) != n || fclose(f))
			return cli_fail("%s/%s: %s", ctl->p.out, name, strerror(errno));
	}
	return 0;
}

static int write_files(const struct bench_ctl *ctl, json_t *res)
{
	FILE *f;
	int err;

	f = out_open(ctl->p.out, "summary.json");
	if (!f)
		return 1;
	json_object_set_new(res, "schema", json_integer(CLI_SCHEMA));
	err = json_dumpf(res, f, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	if (fputc('\n', f) == EOF || fclose(f) || err)
		return cli_fail("%s/summary.json: %s", ctl->p.out, strerror(errno));
	err = json_object_get(res, "throughput") ? write_orders(ctl) : 0;
	if (!err && json_object_get(res, "latency")) {
		err = write_latency(ctl);
		if (!err)
			out_plot("latency.gp", ctl->p.out, "", "latency.csv");
	}
	return err;
}

static void print_lag(const json_t *res, const char *key, const char *when)
{
	const json_t *l = json_object_get(res, key);
	char a[32], b[32], c[32];

	if (json_integer_value(json_object_get(l, "samples")))
		printf("barrier lag, %s: p50 %s, p99 %s, greatest %s\n", when,
		       out_time(json_integer_value(json_object_get(l, "p50_ns")), a, sizeof(a)),
		       out_time(json_integer_value(json_object_get(l, "p99_ns")), b, sizeof(b)),
		       out_time(json_integer_value(json_object_get(l, "max_ns")), c, sizeof(c)));
}

static void print_order(const json_t *o)
{
#define N(key) json_integer_value(json_object_get(o, key))
	const json_int_t missing = N("missing"), whole = N("whole"), back = N("ts_backwards"),
			 twice = N("duplicates");

	if (!json_object_get(o, "one_order"))
		printf("order: timestamps never went back, and nothing was delivered twice; best "
		       "effort does not repeat what links lose (%" JSON_INTEGER_FORMAT " messages "
		       "missing)\n",
		       missing);
	else if (twice || back)
		printf("order: NOT kept: %" JSON_INTEGER_FORMAT " timestamps went back, "
		       "%" JSON_INTEGER_FORMAT " messages were delivered twice\n",
		       back, twice);
	else if (whole)
		printf("order: %s over %" JSON_INTEGER_FORMAT " messages at each of %u receivers\n",
		       json_object_get(o, "differs_at") ? "NOT the same" : "one and the same",
		       N("expected"), (unsigned int)whole);
	if (json_object_get(o, "whole") && missing)
		printf("order: timestamps %s back at the %sreceivers; %" JSON_INTEGER_FORMAT
		       " messages to them are missing, and their senders were told of "
		       "%" JSON_INTEGER_FORMAT "\n",
		       back ? "WENT" : "never went", whole ? "other " : "", missing,
		       N("send_failed"));
#undef N
}

int bench_report(const struct bench_ctl *ctl, json_t *res)
{
	static const struct col lat[] = { { "mode", "ONE-WAY LATENCY", 's' },
					  { "p50_ns", "P50", 't' },
					  { "p99_ns", "P99", 't' },
					  { "p999_ns", "P99.9", 't' },
					  { "max_ns", "GREATEST", 't' },
					  { "samples", "SAMPLES", 'd' },
					  { "lost", "LOST", 'd' } };
	static const struct col group[] = {
		{ "mode", "ALL TALK", 's' },   { "rate", "EACH/S", 'd' },
		{ "p50_ns", "P50", 't' },      { "p99_ns", "P99", 't' },
		{ "p999_ns", "P99.9", 't' },   { "max_ns", "GREATEST", 't' },
		{ "samples", "SAMPLES", 'd' }, { "lost", "LOST", 'd' }
	};
	static const struct col drops[] = { { "node", "NODE", 's' },
					    { "kind", "KIND", 's' },
					    { "reason", "REASON", 's' },
					    { "count", "COUNT", 'd' },
					    { "text", "WHY", 's' } };
	json_t *t = json_object_get(res, "throughput"), *o = json_object_get(res, "order"), *h;
	size_t i;
	int err = ctl->p.out ? write_files(ctl, res) : 0;

	if (cli.json) {
		cli_json(json_incref(res));
		return err;
	}
	if (t) {
		printf("throughput: %.0f messages/s delivered in all, %u bytes each; by receiver:",
		       json_real_value(json_object_get(t, "messages_per_s")), ctl->p.size);
		json_array_foreach(json_object_get(t, "per_host"), i, h)
			printf(" %.0f", json_real_value(h));
		printf("\n%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " messages "
		       "delivered\n",
		       json_integer_value(json_object_get(t, "delivered")),
		       json_integer_value(json_object_get(t, "sent")));
	}
	if (o)
		print_order(o);
	if (json_object_get(res, "loss"))
		printf("links lost %" JSON_INTEGER_FORMAT " frames\n",
		       json_integer_value(json_object_get(json_object_get(res, "loss"), "frames")));
	print_lag(res, "lag", "under load");
	print_lag(res, "idle_lag", "idle");
	if (json_object_get(res, "latency")) {
		putchar('\n');
		OUT_TABLE(stdout, json_object_get(res, "latency"), lat);
	}
	if (json_object_get(res, "group")) {
		putchar('\n');
		OUT_TABLE(stdout, json_object_get(res, "group"), group);
	}
	if (json_object_get(res, "drops")) {
		putchar('\n');
		if (json_array_size(json_object_get(res, "drops")))
			OUT_TABLE(stdout, json_object_get(res, "drops"), drops);
		else
			puts("nothing dropped, nothing noted");
	}
	fflush(stdout);
	return err;
}
