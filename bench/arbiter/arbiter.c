/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline arbiter bench alloc|path|pipeline: options, table, JSON, files.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "bench/arbiter/arbiter.h"
#include "cli/util/args.h"
#include "cli/util/out.h"

enum {
	KEY_ENDPOINTS = 300,
	KEY_POLICY,
	KEY_LOAD,
	KEY_WINDOW,
	KEY_SLOTS,
	KEY_TICK,
	KEY_MTUS,
	KEY_ISA,
	KEY_RACKS,
	KEY_PATHS,
	KEY_CAP,
	KEY_HOW,
	KEY_SEED,
	KEY_OUT
};

static const struct argp_option options[] = {
	{ "load", KEY_LOAD, "L", 0, "only this load, from 0.001 to 1", 0 },
	{ "slots", KEY_SLOTS, "N", 0,
	  "timeslots to measure in each row (default: for some hundred ms)", 0 },
	{ "seed", KEY_SEED, "N", 0, "seed of the random requests (default 1)", 0 },
	{ "out", KEY_OUT, "DIR", 0, "write arbiter-WORKLOAD.json and .csv to this directory", 0 },
	{ 0, 0, 0, 0, "For alloc and pipeline (--isa: alloc only):", 1 },
	{ "endpoints", KEY_ENDPOINTS, "N", 0, "only this number of endpoints, 2 to 4096", 1 },
	{ "policy", KEY_POLICY, "NAME", 0, "only first-come, fair, weighted, min-fct or deadline",
	  1 },
	{ "window", KEY_WINDOW, "SLOTS", 0,
	  "slots that are allocated ahead: 8, 16, 32, 64, 128, 256 or 512 (default: 512 for "
	  "first-come and fair, 256 for weighted, else 64; pipeline: 128)",
	  1 },
	{ "tick", KEY_TICK, "SLOTS", 0,
	  "slots between two runs of the allocator, 1 to 512 (default 16)", 1 },
	{ "mtus", KEY_MTUS, "N", 0, "MTUs of each request, 1 to 1000 (default 10)", 1 },
	{ "isa", KEY_ISA, "NAME", 0, "plain, bmi2 or avx512 instead of the best that this CPU has",
	  1 },
	{ 0, 0, 0, 0, "For path:", 2 },
	{ "racks", KEY_RACKS, "N", 0, "only this number of racks of 32 machines, 2 to 128", 2 },
	{ "paths", KEY_PATHS, "N", 0, "paths between racks, 1 to 64 (default 4)", 2 },
	{ "cap", KEY_CAP, "N", 0,
	  "packets per slot on a path, out of a rack and into it (default: 32 / paths, rounded up)",
	  2 },
	{ "how", KEY_HOW, "NAME", 0, "only the algorithm greedy, or only euler", 2 },
	{ 0 }
};

uint64_t arb_rnd64(struct arb_rnd *r)
{
	/* splitmix64 */
	uint64_t z = (r->x += 0x9E3779B97F4A7C15ULL);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return z ^ (z >> 31);
}

double arb_unit(struct arb_rnd *r)
{
	return (double)(arb_rnd64(r) >> 11) * 0x1p-53;
}

uint32_t arb_below(struct arb_rnd *r, uint32_t n)
{
	return (uint32_t)((arb_rnd64(r) >> 32) * n >> 32);
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double arb_median(double *v, unsigned int n)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), compare_doubles);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static int find_name(const char *arg, const char *what, const char *const *names,
		     struct argp_state *state)
{
	char all[128] = "";
	int i;

	for (i = 0; names[i]; i++) {
		if (!strcmp(arg, names[i]))
			return i;
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "",
			 names[i]);
	}
	argp_error(state, "no %s \"%s\"; there are %s", what, arg, all);
	return -1;
}

static const char *const policies[] = {
#define X(id, name, text) [BL_ALLOC_##id] = name,
	BL_ALLOC_POLICIES(X)
#undef X
		NULL
};
static const char *const hows[] = { [BL_PATH_GREEDY] = "greedy", [BL_PATH_EULER] = "euler", NULL };
static const char *const isas[] = { [BL_ISA_BEST] = "best",
				    [BL_ISA_PLAIN] = "plain",
				    [BL_ISA_BMI2] = "bmi2",
				    [BL_ISA_AVX512] = "avx512",
				    NULL };

static int write_files(const char *dir, const char *what, json_t *rows, const struct col *cols,
		       size_t ncols)
{
	json_t *all = json_pack("{s:i, s:s, s:O}", "schema", CLI_SCHEMA, "bench", what, "rows",
				rows),
	       *row;
	char path[512];
	size_t i, c;
	FILE *f;
	int err;

	if (!all || out_dir(dir)) {
		json_decref(all);
		return 1;
	}
	snprintf(path, sizeof(path), "%s/arbiter-%s.json", dir, what);
	err = json_dump_file(all, path,
			     JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12) | JSON_INDENT(1));
	json_decref(all);
	if (err)
		return cli_fail("cannot write %s: %s", path, strerror(errno));
	snprintf(path, sizeof(path), "arbiter-%s.csv", what);
	f = out_open(dir, path);
	if (!f)
		return 1;
	for (c = 0; c < ncols; c++)
		fprintf(f, "%s%s", c ? "," : "", cols[c].key);
	json_array_foreach(rows, i, row)
	{
		for (c = 0; c < ncols; c++) {
			json_t *v = json_object_get(row, cols[c].key);

			fputs(c ? "," : "\n", f);
			if (json_is_string(v))
				fputs(json_string_value(v), f);
			else if (json_is_boolean(v))
				fputs(json_is_true(v) ? "1" : "0", f);
			else if (json_is_integer(v))
				fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
			else
				fprintf(f, "%.4f", json_number_value(v));
		}
	}
	fputc('\n', f);
	return out_close(dir, path, f);
}

struct bench_args {
	struct arb_args a;
	const struct arb_bench *what;
	const struct arb_bench *(*find)(const char *name);
	const char *names;
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_ENDPOINTS, "endpoints", NULL, 2, BL_ALLOC_ENDPOINTS_MAX, struct arb_args,
		  endpoints),
	BL_NUMBER(KEY_LOAD, "load", NULL, 0.001, 1, struct arb_args, load),
	BL_NUMBER_POWER_OF_TWO(KEY_WINDOW, "window", "slots", 8, 512, struct arb_args, window),
	BL_NUMBER(KEY_SLOTS, "slots", NULL, 1000, 100000000, struct arb_args, slots),
	BL_NUMBER(KEY_TICK, "tick", "slots", 1, 512, struct arb_args, tick),
	BL_NUMBER(KEY_MTUS, "mtus", NULL, 1, 1000, struct arb_args, mtus),
	BL_NUMBER(KEY_RACKS, "racks", NULL, 2, 128, struct arb_args, racks),
	BL_NUMBER(KEY_PATHS, "paths", NULL, 1, BL_PATH_PATHS_MAX, struct arb_args, paths),
	BL_NUMBER(KEY_CAP, "cap", NULL, 1, BL_PATH_CAP_MAX, struct arb_args, cap),
	BL_NUMBER(KEY_SEED, "seed", NULL, 0, INT64_MAX, struct arb_args, seed),
	{ 0 }
};
/* clang-format on */

static error_t parse_bench(int key, char *arg, struct argp_state *state)
{
	struct bench_args *b = state->input;
	struct arb_args *a = &b->a;
	error_t err = bl_number_option(numbers, key, arg, a, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_ARG:
		if (b->what)
			argp_error(state, "one workload at a time: %s or %s", b->what->name, arg);
		b->what = b->find(arg);
		if (!b->what)
			argp_error(state, "no workload is called \"%s\": there are %s", arg,
				   b->names);
		return 0;
	case ARGP_KEY_END:
		if (!b->what)
			argp_error(state, "which workload? There are %s", b->names);
		return 0;
	case KEY_POLICY:
		a->policy = find_name(arg, "policy", policies, state);
		return 0;
	case KEY_ISA:
		a->isa = find_name(arg, "isa", isas, state);
		return 0;
	case KEY_HOW:
		a->how = find_name(arg, "way", hows, state);
		return 0;
	case KEY_OUT:
		a->out = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int arb_bench_main(int argc, char **argv, const struct arb_bench *(*find)(const char *name),
		   const char *names)
{
	const struct argp argp = { .options = options,
				   .parser = parse_bench,
				   .args_doc = "alloc|path|pipeline",
				   .children = cmd_globals,
				   .doc = "barline arbiter bench - measure the arbiter's "
					  "computations: timeslot allocation (Poisson requests of "
					  "10 MTUs between uniform pairs, slots of 1.23 us), path "
					  "selection (full racks, random matchings), or both on "
					  "two cores in real time. Every slot is verified; the "
					  "exit status is 1 if one breaks a rule.\v"
					  "Times are medians of 40 blocks, and of 9 trials for "
					  "pipeline; the best value is shown, too. Another virtual "
					  "machine that is busy on the same core doubles them." };
	struct bench_args b = { .a = { .policy = -1, .how = -1, .seed = 1 },
				.find = find,
				.names = names };
	const struct arb_bench *k;
	json_t *rows;
	int err = 0;

	cmd_parse(&argp, argc, argv, &b);
	k = b.what;
	rows = k->measure(&b.a);
	out_progress_end();
	if (!rows)
		return 1;
	if (b.a.out)
		err = write_files(b.a.out, k->name, rows, k->cols, k->ncols);
	if (err) {
		json_decref(rows);
		return err;
	}
	return out_rows(k->name, rows, k->cols, k->ncols, "nothing measured");
}
