/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several runs of `lab run fct`, each with its own seed: median, least and greatest value of the
 * numbers in their reports, by policy.
 *
 * Example: mean FCTs of 90, 70 and 80 ms under top, and of 110, 100 and 90 ms under top-1class,
 * become 80 (70 to 90) and 100 (90 to 110) ms. The change is the median of the changes of the runs,
 * which are -18, -30 and -11 %. A run counts for a policy if its result is valid and all flows
 * finished.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fct/fct.h"
#include "bench/fct/fct_stat.h"
#include "cli/util/out.h"

/* members of the rows of which median, least and greatest value are taken; and sums */
static const char *const spreads[] = { "fct_mean_ns",
				       "fct_p99_ns",
				       "slowdown_mean",
				       "slowdown_p99",
				       "fct_change_percent",
				       "slowdown_change_percent",
				       "missed_percent",
				       "cct_mean_ns",
				       "cct_change_percent",
				       "queue_max_frames",
				       "fluid_fct_mean_ns",
				       "fluid_slowdown_mean",
				       "fluid_fct_change_percent",
				       "fluid_slowdown_change_percent",
				       "pacer_late_p99_ns" };
static const char *const sums[] = { "flows",       "finished",      "unfinished", "data_drops",
				    "token_drops", "control_drops", "hold_drops", "retransmits" };
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* returns the row of @policy in a report, or NULL */
static const json_t *row_of(const json_t *run, const char *policy)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(run, "results"), i,
			   row) if (!strcmp(json_string_value(json_object_get(row, "policy")),
					    policy)) return row;
	return NULL;
}

static bool is_valid(const json_t *row)
{
	return json_is_null(json_object_get(row, "refused")) &&
	       !json_integer_value(json_object_get(row, "unfinished"));
}

static void put_spread(json_t *o, const json_t *runs, const char *policy, const char *key)
{
	double v[FCT_RUNS_MAX];
	uint32_t n = 0;
	const json_t *run;
	char name[64];
	size_t i;

	json_array_foreach(runs, i, run)
	{
		const json_t *row = row_of(run, policy),
			     *value = row && is_valid(row) ? json_object_get(row, key) : NULL;

		if (json_is_number(value) && n < FCT_RUNS_MAX)
			v[n++] = json_number_value(value);
	}
	if (!n)
		return;
	json_object_set_new(o, key, json_real(fct_median(v, n)));
	snprintf(name, sizeof(name), "%s_least", key);
	json_object_set_new(o, name, json_real(v[0]));
	snprintf(name, sizeof(name), "%s_greatest", key);
	json_object_set_new(o, name, json_real(v[n - 1]));
}

static json_t *one_policy(const json_t *runs, const char *policy)
{
	json_t *o = json_pack("{s:s}", "policy", policy);
	json_int_t counted = 0, bounded = 0, beyond = 0;
	const json_t *run, *row;
	size_t i, k;

	json_array_foreach(runs, i, run)
	{
		row = row_of(run, policy);
		counted += row && is_valid(row);
		bounded += row && json_object_get(row, "data_queue");
		beyond += row &&
			  json_is_false(json_object_get(json_object_get(row, "data_queue"), "withi"
											    "n"));
		if (row && json_object_get(row, "against"))
			json_object_set(o, "against", json_object_get(row, "against"));
	}
	json_object_set_new(o, "runs", json_integer(counted));
	for (k = 0; k < COUNT(spreads); k++)
		put_spread(o, runs, policy, spreads[k]);
	for (k = 0; k < COUNT(sums); k++) {
		json_int_t sum = 0;

		json_array_foreach(runs, i, run)
		{
			row = row_of(run, policy);
			sum += json_integer_value(json_object_get(row, sums[k]));
		}
		json_object_set_new(o, sums[k], json_integer(sum));
	}
	if (bounded)
		json_object_set_new(o, "beyond_bound", json_integer(beyond));
	return o;
}

json_t *fct_runs(const json_t *runs)
{
	json_t *summary = json_array();
	const json_t *run, *row;
	size_t i, k, n;

	/* policies are in the order of the first run that has them */
	json_array_foreach(runs, i, run) json_array_foreach(json_object_get(run, "results"), k, row)
	{
		const char *policy = json_string_value(json_object_get(row, "policy"));
		bool known = false;

		for (n = 0; n < json_array_size(summary); n++)
			known |= !strcmp(json_string_value(
						 json_object_get(json_array_get(summary, n), "polic"
											     "y")),
					 policy);
		if (!known)
			json_array_append_new(summary, one_policy(runs, policy));
	}
	return json_pack("{s:s, s:O, s:o}", "workload", "fct", "runs", runs, "summary", summary);
}

static double member_number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* formats "80.1 (70.2 to 90.3)", or "-" if no run counts */
static void put_text(json_t *to, const json_t *o, const char *key, double divide)
{
	char least[64], greatest[64], text[96] = "-";

	snprintf(least, sizeof(least), "%s_least", key);
	snprintf(greatest, sizeof(greatest), "%s_greatest", key);
	if (json_object_get(o, key))
		snprintf(text, sizeof(text), "%.1f (%.1f to %.1f)", member_number(o, key) / divide,
			 member_number(o, least) / divide, member_number(o, greatest) / divide);
	json_object_set_new(to, key, json_string(text));
}

void fct_runs_print(const json_t *res)
{
	static const struct col cols[] = { { "policy", "POLICY", 's' },
					   { "runs", "RUNS", 'd' },
					   { "finished", "FINISHED", 'd' },
					   { "unfinished", "UNFINISHED", 'd' },
					   { "fct_mean_ns", "FCT_MEAN_MS", 's' },
					   { "slowdown_mean", "SLOWDOWN_MEAN", 's' },
					   { "fct_change_percent", "FCT_%", 's' },
					   { "slowdown_change_percent", "SLOWDOWN_%", 's' },
					   { "missed_percent", "MISSED_%", 's' },
					   { "fluid_fct_mean_ns", "FLUID_FCT_MS", 's' },
					   { "fluid_fct_change_percent", "FLUID_%", 's' },
					   { "fluid_slowdown_mean", "FLUID_SLOWDOWN", 's' },
					   { "fluid_slowdown_change_percent", "FLUID_S_%", 's' },

					   { "cct_mean_ns", "CCT_MEAN_MS", 's' },
					   { "queue_max_frames", "QUEUE_MAX", 's' },
					   { "data_drops", "DATA_DROPS", 'd' },
					   { "token_drops", "TOKENS", 'd' },
					   { "control_drops", "CONTROL", 'd' },
					   { "hold_drops", "HOLD", 'd' },
					   { "beyond_bound", "BEYOND", 'd' } };
	json_t *rows = json_array();
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(res, "summary"), i, o)
	{
		json_t *row = json_copy((json_t *)(uintptr_t)o);

		put_text(row, o, "fct_mean_ns", 1e6);
		put_text(row, o, "slowdown_mean", 1);
		put_text(row, o, "fct_change_percent", 1);
		put_text(row, o, "slowdown_change_percent", 1);
		put_text(row, o, "missed_percent", 1);
		put_text(row, o, "fluid_fct_mean_ns", 1e6);
		put_text(row, o, "fluid_fct_change_percent", 1);
		put_text(row, o, "fluid_slowdown_mean", 1);
		put_text(row, o, "fluid_slowdown_change_percent", 1);
		put_text(row, o, "cct_mean_ns", 1e6);
		put_text(row, o, "queue_max_frames", 1);
		json_array_append_new(rows, row);
	}
	printf("%zu runs: median (least to greatest) of those in which all flows finished; drops "
	       "of all runs\n",
	       json_array_size(json_object_get(res, "runs")));
	OUT_TABLE(stdout, rows, cols);
	fflush(stdout);
	json_decref(rows);
}

static int write_csv(const char *out, const json_t *res)
{
	FILE *f = out_open(out, "runs.csv");
	const json_t *run, *row;
	size_t i, k, n;

	if (!f)
		return 1;
	fputs("seed,offered_load,policy", f);
	for (n = 0; n < COUNT(sums); n++)
		fprintf(f, ",%s", sums[n]);
	for (n = 0; n < COUNT(spreads); n++)
		fprintf(f, ",%s", spreads[n]);
	fputc('\n', f);
	json_array_foreach(json_object_get(res, "runs"), i, run)
		json_array_foreach(json_object_get(run, "results"), k, row)
	{
		fprintf(f, "%" JSON_INTEGER_FORMAT ",%.4f,%s",
			json_integer_value(json_object_get(run, "seed")),
			member_number(run, "offered_load"),
			json_string_value(json_object_get(row, "policy")));
		for (n = 0; n < COUNT(sums); n++)
			fprintf(f, ",%" JSON_INTEGER_FORMAT,
				json_integer_value(json_object_get(row, sums[n])));
		for (n = 0; n < COUNT(spreads); n++)
			if (json_is_number(json_object_get(row, spreads[n])))
				fprintf(f, ",%.10g", member_number(row, spreads[n]));
			else
				fputc(',', f);
		fputc('\n', f);
	}
	return out_close(out, "runs.csv", f);
}

int fct_runs_write(const char *out, json_t *res)
{
	FILE *f;

	json_object_set_new(res, "schema", json_integer(CLI_SCHEMA));
	f = out_open(out, "summary.json");
	if (!f)
		return 1;
	json_dumpf(res, f, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	fputc('\n', f);
	return out_close(out, "summary.json", f) ? 1 : write_csv(out, res);
}
