// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline lab run fct` as its users run it. Every flow arrives, byte by byte (the receivers
 * compare them), on a rack and on a dumbbell; a trace comes back as it was; meaningless results are
 * refused. The rate is never judged: under any delay every flow arrives at some time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "tests/net/barline_run.h"

#define ARGS_MAX 32

static char dir[] = "/tmp/barline-fct-XXXXXX", barline[512];

static int set_up(void **state)
{
	return barline_path(barline, sizeof(barline)) && mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "summary.json", "trace.txt",  "flows.csv",
					     "buckets.csv",  "queues.csv", "fct.svg",
					     "runs.csv",     "in" };
	static const char *const dirs[] = { "/seed-5", "/seed-6", "" };
	char path[300];
	size_t i, k;

	for (k = 0; k < sizeof(dirs) / sizeof(dirs[0]); k++) {
		for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			snprintf(path, sizeof(path), "%s%s/%s", dir, dirs[k], names[i]);
			unlink(path);
		}
		snprintf(path, sizeof(path), "%s%s", dir, dirs[k]);
		if (rmdir(path) && !*dirs[k])
			return -1;
	}
	return 0;
}

static char *in_dir(const char *name, char path[300])
{
	snprintf(path, 300, "%s/%s", dir, name);
	return path;
}

static void write_in(const char *text)
{
	char path[300];
	FILE *f = fopen(in_dir("in", path), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static char *slurp(const char *name)
{
	char path[300], *text = calloc(1, 1 << 20);
	FILE *f = fopen(in_dir(name, path), "r");

	assert_non_null(f);
	assert_true(fread(text, 1, (1 << 20) - 1, f) < (1 << 20) - 1);
	fclose(f);
	return text;
}

/*
 * Runs the command. Returns its exit status; *@said receives the one object that it printed, which
 * the caller frees.
 */
static int run(json_t **said, ...)
{
	const char *argv[ARGS_MAX] = { barline, "-j", "lab", "run", "fct" };
	int n = 5, st;
	va_list ap;

	va_start(ap, said);
	while ((argv[n] = va_arg(ap, char *)))
		assert_true(++n < ARGS_MAX);
	va_end(ap);
	st = barline_run(said, argv);
	assert_non_null(*said);
	if (st)
		json_dumpf(*said, stderr, 0);
	return st;
}

static json_int_t number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static unsigned int lines(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* Checks that all flows of all policies are there, and that the files agree with the output. */
static void judge(const json_t *said, unsigned int flows, unsigned int policies)
{
	const json_t *results = json_object_get(said, "results"), *row;
	char *text;
	size_t i;

	assert_int_equal(number(said, "flows"), flows);
	assert_int_equal(json_array_size(json_object_get(said, "errors")), 0);
	assert_int_equal(json_array_size(results), policies);
	json_array_foreach(results, i, row)
	{
		assert_int_equal(number(row, "finished"), flows);
		assert_int_equal(number(row, "unfinished"), 0);
		assert_true(json_is_null(json_object_get(row, "refused")));
		assert_true(json_real_value(json_object_get(row, "slowdown_mean")) > 0);
	}
	text = slurp("flows.csv");
	assert_int_equal(lines(text), 1 + flows * policies);
	assert_null(strstr(text, ",0,0,0,")); /* unfinished, in no time */
	free(text);
	text = slurp("trace.txt");
	assert_int_equal(lines(text), 1 + flows);
	free(text);
}

static void rack__every_flow_arrives(void **state)
{
	json_t *said;

	assert_int_equal(run(&said, "--policy", "none", "--hosts", "4", "--flows", "60", "--scale",
			     "0.02", "--seed", "5", "--late-ms", "1000000", "--grace", "60",
			     "--out", dir, NULL),
			 0);
	judge(said, 60, 1);
	assert_int_equal(number(said, "seed"), 5);
	assert_string_equal(json_string_value(json_object_get(said, "topology")), "rack");
	json_decref(said);
}

/* Both laws, and the allowed queue of TOP; each policy but the first has a change. */
static void rack__tokens(void **state)
{
	static const char *const policies[] = { "top-1class:paper", "top:ns2" };
	const json_t *row, *queue, *limits;
	json_t *said;
	size_t i;

	assert_int_equal(run(&said, "--policy", "top-1class:paper,top:ns2", "--hosts", "3",
			     "--flows", "40", "--scale", "0.02", "--late-ms", "1000000", "--grace",
			     "60", "--out", dir, NULL),
			 0);
	judge(said, 40, 2);
	assert_string_equal(json_string_value(json_object_get(said, "objective")), "remaining");
	limits = json_object_get(said, "limits");
	assert_int_equal(json_array_size(limits), 5);
	for (i = 1; i < 5; i++)
		assert_true(json_integer_value(json_array_get(limits, i)) >
			    json_integer_value(json_array_get(limits, i - 1)));
	json_array_foreach(json_object_get(said, "results"), i, row)
	{
		queue = json_object_get(row, "data_queue");
		assert_string_equal(json_string_value(json_object_get(row, "policy")), policies[i]);
		assert_true(!json_object_get(row, "fct_change_percent") == !i);
		assert_true(json_number_value(json_object_get(row, "fluid_fct_mean_ns")) > 0);
		assert_true(json_number_value(json_object_get(row, "fluid_slowdown_mean")) > 0);
		assert_true(!json_object_get(row, "fluid_fct_change_percent") == !i);
		/* In the model, serving by the remaining size is never worse than sharing. */
		assert_true(!i || json_number_value(json_object_get(row, "fluid_fct_change_"
									 "percent")) < 0.1);
		assert_int_equal(number(queue, "hops"), 4);
		assert_int_equal(number(queue, "d_ns"), 200000);
		assert_true(number(queue, "T_ns") > 4 * number(queue, "hop_ns"));
		assert_true(json_real_value(json_object_get(queue, "bound_bytes")) > 2 * 1518 &&
			    number(queue, "longest_bytes") >= 1518);
		assert_true(json_is_boolean(json_object_get(queue, "within")) &&
			    json_is_boolean(json_object_get(queue, "within_late")));
		assert_true(json_real_value(json_object_get(queue, "bound_late_bytes")) >=
			    json_real_value(json_object_get(queue, "bound_bytes")));
	}
	json_decref(said);
}

/* Every objective, with its flows and its metric. */
static void objective__metrics(void **state)
{
	static const struct {
		const char *name, *columns, *metric;
	} t[] = {
		{ "las", "# id src dst start_ns bytes\n", NULL },
		{ "deadline", "# id src dst start_ns bytes deadline_us coflow\n",
		  "missed_percent" },
		{ "coflow", "# id src dst start_ns bytes deadline_us coflow\n", "cct_mean_ns" },
	};
	const json_t *row;
	json_t *said;
	size_t i, k;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char *text;

		assert_int_equal(run(&said, "--policy", "top", "--hosts", "2", "--flows", "30",
				     "--scale", "0.02", "--objective", t[i].name, "--late-ms",
				     "1000000", "--grace", "60", "--out", dir, NULL),
				 0);
		judge(said, 30, 1);
		assert_string_equal(json_string_value(json_object_get(said, "objective")),
				    t[i].name);
		text = slurp("trace.txt");
		assert_memory_equal(text, t[i].columns, strlen(t[i].columns));
		free(text);
		json_array_foreach(json_object_get(said, "results"), k, row)
		{
			double missed = json_number_value(json_object_get(row, "missed_percent"));

			assert_true(!json_object_get(row, "missed_percent") == (i != 1));
			assert_true(!json_object_get(row, "cct_mean_ns") == (i != 2));
			/* las has a model */
			assert_true(!json_object_get(row, "fluid_fct_mean_ns") == (i != 0));
			assert_true(missed >= 0 && missed <= 100);
			/* The slowest coflow ends no earlier than its slowest flow. */
			assert_true(i != 2 || json_number_value(json_object_get(row, "cct_max_"
										     "ns")) >=
						      json_number_value(json_object_get(row, "fct_"
											     "max_"
											     "n"
											     "s")));
			assert_true(i != 2 ||
				    (number(row, "coflows") > 1 && number(row, "coflows") < 30));
		}
		json_decref(said);
	}
}

/* Two seeds, and the summary of both. */
static void runs__summary(void **state)
{
	const json_t *runs, *summary, *row, *r;
	json_t *said;
	char *text;
	size_t i, k;

	assert_int_equal(run(&said, "--policy", "none,top", "--hosts", "2", "--flows", "30",
			     "--scale", "0.02", "--seed", "5", "--runs", "2", "--late-ms",
			     "1000000", "--grace", "60", "--out", dir, NULL),
			 0);
	runs = json_object_get(said, "runs");
	summary = json_object_get(said, "summary");
	assert_int_equal(json_array_size(runs), 2);
	assert_int_equal(json_array_size(summary), 2);
	json_array_foreach(runs, i, r) assert_int_equal(number(r, "seed"), 5 + (json_int_t)i);
	json_array_foreach(summary, k, row)
	{
		double a = json_real_value(json_object_get(
			json_array_get(json_object_get(json_array_get(runs, 0), "results"), k),
			"fct_mean_ns"));
		double b = json_real_value(json_object_get(
			json_array_get(json_object_get(json_array_get(runs, 1), "results"), k),
			"fct_mean_ns"));
		double half = json_real_value(json_object_get(row, "fct_mean_ns"));

		assert_int_equal(number(row, "runs"), 2);
		assert_int_equal(number(row, "flows"), 60);
		assert_int_equal(number(row, "finished"), 60);
		assert_true(half > (a + b) / 2 * 0.999999 && half < (a + b) / 2 * 1.000001);
		assert_true(json_real_value(json_object_get(row, "fct_mean_ns_least")) <= half &&
			    json_real_value(json_object_get(row, "fct_mean_ns_greatest")) >= half);
		assert_true(!json_object_get(row, "fct_change_percent") == !k);
		assert_true(!json_object_get(row, "beyond_bound") == !k);
	}
	json_decref(said);
	text = slurp("runs.csv");
	assert_int_equal(lines(text), 5);
	free(text);
	text = slurp("seed-6/flows.csv");
	assert_int_equal(lines(text), 61);
	free(text);
}

/*
 * Sizes around one frame and one socket buffer, in both directions over the bar. The trace that is
 * written equals the one that was read.
 */
static void dumbbell__trace_comes_back(void **state)
{
	static const char trace[] = "# id src dst start_ns bytes\n"
				    "1 1 3 0 1\n2 3 1 1000 1448\n3 1 4 2000 1449\n4 2 3 2000 "
				    "65536\n5 4 2 1000000 65537\n6 3 2 1000000 300000\n7 2 4 "
				    "50000000 2\n";
	char path[300], *text;
	json_t *said;

	write_in(trace);
	assert_int_equal(run(&said, "dumbbell", "--policy", "none,fastpass", "--hosts", "4",
			     "--trace", in_dir("in", path), "--fresh", "--late-ms", "1000000",
			     "--grace", "60", "--out", dir, NULL),
			 0);
	judge(said, 7, 2);
	assert_string_equal(json_string_value(json_object_get(said, "topology")), "dumbbell");
	/* two links of 50 Mbit/s out of two ToRs */
	assert_int_equal(number(said, "capacity_bps"), 100000000);
	text = slurp("trace.txt");
	assert_string_equal(text, trace);
	free(text);
	json_decref(said);
}

/* 3000 flows at once: no generator starts that many within a millisecond. */
static void result__late_generator(void **state)
{
	char *text = malloc(3000 * 20), *at = text, path[300];
	const json_t *row;
	json_t *said;
	int i;

	for (i = 0; i < 3000; i++)
		at += sprintf(at, "%d 1 2 0 1\n", i + 1);
	write_in(text);
	free(text);
	assert_int_equal(run(&said, "--policy", "none", "--hosts", "2", "--trace",
			     in_dir("in", path), "--late-ms", "1", "--grace", "60", NULL),
			 1);
	row = json_array_get(json_object_get(said, "results"), 0);
	assert_true(json_is_string(json_object_get(row, "refused")));
	assert_null(json_object_get(row, "fct_mean_ns"));
	assert_int_equal(number(row, "finished"), 3000);
	assert_int_equal(json_array_size(json_object_get(said, "buckets")), 0);
	assert_int_equal(json_array_size(json_object_get(said, "errors")), 1);
	json_decref(said);
}

/* 100 MB over 2 Mbit/s take seven minutes: the flow is given up after one second, and named. */
static void result__unfinished(void **state)
{
	char path[300];
	const json_t *row;
	const char *error;
	json_t *said;

	write_in("1 1 2 0 100\n2 2 1 0 100000000\n");
	assert_int_equal(run(&said, "--policy", "none", "--hosts", "2", "--rate", "2mbit",
			     "--trace", in_dir("in", path), "--late-ms", "1000000", "--grace", "1",
			     NULL),
			 1);
	row = json_array_get(json_object_get(said, "results"), 0);
	assert_true(number(row, "unfinished") >= 1);
	assert_int_equal(number(row, "finished"), 2 - number(row, "unfinished"));
	assert_int_equal(json_array_size(json_object_get(said, "errors")), 1);
	error = json_string_value(json_array_get(json_object_get(said, "errors"), 0));
	assert_non_null(strstr(error, " of 2 flows did not finish: "));
	assert_non_null(strstr(error, " 2 (h2 to h1, "));
	assert_non_null(strstr(error, " of 100000000 bytes)"));
	json_decref(said);
	assert_int_equal(run(&said, "--policy", "none,top", "--hosts", "2", "--rate", "2mbit",
			     "--trace", in_dir("in", path), "--late-ms", "1000000", "--grace", "1",
			     "--unfinished-ok", NULL),
			 0);
	row = json_array_get(json_object_get(said, "results"), 0);
	assert_true(number(row, "unfinished") >= 1);
	/* There is no comparison with an unknown value. */
	row = json_array_get(json_object_get(said, "results"), 1);
	assert_true(number(row, "unfinished") >= 1);
	assert_null(json_object_get(row, "fct_change_percent"));
	assert_null(json_object_get(row, "slowdown_change_percent"));
	json_decref(said);
}

static void usage__refused(void **state)
{
	static const struct {
		const char *option, *value;
		int status;
		const char *error;
	} t[] = {
		{ "--sizes", "IN", 1, "IN: line 2: cdf falls, from 0.5 to 0.4" },
		{ "--trace", "IN", 1,
		  "IN: line 1: not \"id src dst start_ns bytes\", nor with \"deadline_us coflow\" "
		  "behind it" },
		{ "--coflows", "IN", 1,
		  "IN: line 1: not \"id arrival_ms nmap map.. nred red:MB..\"" },
		{ "--sizes", "/nonexistent", 1,
		  "/nonexistent: No such file or directory; websearch and datamining need no "
		  "file" },
		{ "--load", "0", 2, NULL },
		{ "--load", "1.01", 2, NULL },
		{ "--flows", "30001", 2, NULL },
		{ "--buckets", "10,10", 2, NULL },
		{ "--policy", "off", 2, NULL },
		{ "--policy", "none,topless", 2, NULL },
		{ "--policy", "top:expresspass", 2, NULL },
		{ "--policy", "none:paper", 2, NULL },
		{ "--runs", "0", 2, NULL },
		{ "--runs", "101", 2, NULL },
		{ "--seeds", "1,2,1", 2, NULL },
		{ "--objective", "throughput", 2, NULL },
		{ "--law", "ns3", 2, NULL },
		{ "--top", "levels", 2, NULL },
		{ "--top", "levels=7", 2, NULL },
		{ "--top", "level=1", 2, NULL },
		{ "--width", "0", 2, NULL },
		{ "--deadline-us", "0", 2, NULL },
	};
	char path[300], want[400];
	json_t *said;
	size_t i;

	write_in("10 0.5\n20 0.4\n");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		bool in = !strcmp(t[i].value, "IN");

		assert_int_equal(run(&said, t[i].option, in ? in_dir("in", path) : t[i].value,
				     NULL),
				 t[i].status);
		if (t[i].error) {
			snprintf(want, sizeof(want), "%s%s", in ? path : "",
				 t[i].error + (in ? 2 : 0));
			assert_string_equal(json_string_value(json_object_get(said, "error")),
					    want);
		} else {
			assert_true(json_is_string(json_object_get(said, "error")));
		}
		json_decref(said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__every_flow_arrives),
		cmocka_unit_test(dumbbell__trace_comes_back),
		cmocka_unit_test(result__late_generator),
		cmocka_unit_test(result__unfinished),
		cmocka_unit_test(usage__refused),
		cmocka_unit_test(rack__tokens),
		cmocka_unit_test(objective__metrics),
		cmocka_unit_test(runs__summary),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
