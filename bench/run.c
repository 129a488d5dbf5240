/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of workloads, and `barline lab run`, which runs most of them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/number.h"
#include "bench/arbiter/arbiter.h"
#include "bench/fastpass/fastpass.h"
#include "bench/fct/fct.h"
#include "bench/kill/kill.h"
#include "bench/rack/bench.h"
#include "bench/run.h"
#include "bench/traffic/traffic.h"
#include "cli/util/args.h"
#include "lab/lab.h"
#include "lab/lab_argp.h"

static int rack_main(int argc, char **argv);

/* rack_main() also runs if no name is given */
static const struct workload workloads[] = {
	{ WORKLOAD_LAB_RUN, "rack", NULL,
	  "every host broadcasts to all: one order at all receivers, throughput, latency",
	  rack_main },
	{ WORKLOAD_LAB_RUN, "incast", NULL, "iperf3 from all hosts to one, by admission policy",
	  traffic_main },
	{ WORKLOAD_LAB_RUN, "outcast", NULL, "iperf3 from one host to all, by admission policy",
	  traffic_main },
	{ WORKLOAD_LAB_RUN, "shuffle", NULL, "iperf3 from every host to every other",
	  traffic_main },
	{ WORKLOAD_LAB_RUN, "memcached", NULL, "latency of memcached beside bulk data",
	  traffic_main },
	{ WORKLOAD_LAB_RUN, "fairness", NULL,
	  "five TCP senders to one receiver start and stop (Fastpass 7.1)", fair_main },
	{ WORKLOAD_LAB_RUN, "failover", "--kill",
	  "reliable scatterings while a host, a link or a switch fails", kill_main },
	{ WORKLOAD_LAB_RUN, "failover", NULL,
	  "Fastpass's arbiter is killed again and again under traffic", failover_main },
	{ WORKLOAD_LAB_RUN, "fct", NULL, "completion times of flows with random sizes", fct_main },
	{ WORKLOAD_BENCH, "all-to-all", NULL,
	  "broadcast among endpoints, check the order, measure throughput", bench_all_main },
	{ WORKLOAD_BENCH, "latency", NULL, "measure ordered latency beside plain UDP",
	  bench_latency_main },
	{ WORKLOAD_ARBITER, "alloc", NULL, "timeslot allocation", NULL, &arb_bench_alloc },
	{ WORKLOAD_ARBITER, "path", NULL, "path selection", NULL, &arb_bench_path },
	{ WORKLOAD_ARBITER, "pipeline", NULL, "both, in real time", NULL, &arb_bench_pipeline },
};
#define NWORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

const struct workload *workload_next(enum workload_command command, const struct workload *previous)
{
	const struct workload *w = previous ? previous + 1 : workloads;

	while (w < workloads + NWORKLOADS && w->command != command)
		w++;
	return w < workloads + NWORKLOADS ? w : NULL;
}

const struct workload *workload_find(enum workload_command command, const char *name)
{
	const struct workload *w = NULL;

	while ((w = workload_next(command, w)) && strcmp(w->name, name))
		;
	return w;
}

void workload_list(FILE *f, enum workload_command command, const char *prefix)
{
	const struct workload *w = NULL;
	char name[64];

	while ((w = workload_next(command, w))) {
		snprintf(name, sizeof(name), "%s%s%s%s", prefix, w->name, w->option ? " " : "",
			 w->option ? w->option : "");
		fprintf(f, "  %-18s %s\n", name, w->brief);
	}
}

/* the names of a command's workloads, as "incast, outcast, ..." */
static const char *workload_names(enum workload_command command, char *buf, size_t size)
{
	const struct workload *w = NULL;
	const char *last = "";

	*buf = '\0';
	while ((w = workload_next(command, w))) {
		if (!strcmp(w->name, last))
			continue;
		snprintf(buf + strlen(buf), size - strlen(buf), "%s%s", *buf ? ", " : "", w->name);
		last = w->name;
	}
	return buf;
}

/* ---- barline lab run ---- */

enum { KEY_LOSS = 290 };
#define GROUP_BENCH 2

/* input of rack_main()'s parser */
struct rack_args {
	struct lab *lab;
	struct bench_params bench;
};

static const struct argp_option rack_options[] = { { "loss", KEY_LOSS, "P", 0,
						     "every host loses each frame that arrives "
						     "with this probability, 0 to 0.5 (default 0)",
						     LAB_ARGP_GROUP },
						   { 0 } };

/* clang-format off */
static const struct bl_number rack_numbers[] = {
	BL_NUMBER(KEY_LOSS, "loss", NULL, 0, 0.5, struct rack_args, bench.loss),
	{ 0 }
};
/* clang-format on */

static error_t parse_rack(int key, char *arg, struct argp_state *state)
{
	struct rack_args *a = state->input;
	error_t err = bl_number_option(rack_numbers, key, arg, a, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &a->lab->spec;
		state->child_inputs[2] = &a->bench;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* appends the list of workloads to the help text of `lab run` */
static char *add_workloads(int key, const char *text, void *input)
{
	char *buf = NULL;
	size_t size;
	FILE *f;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	f = open_memstream(&buf, &size);
	if (!f)
		return NULL;
	fprintf(f,
		"%s\n\n"
		"Workloads; each has options of its own, see `barline lab run WORKLOAD --help`:\n",
		text);
	workload_list(f, WORKLOAD_LAB_RUN, "");
	fclose(f);
	return buf;
}

static int drive_rack(struct lab *lab, void *arg)
{
	const struct bench_params *p = arg;

	return bench_drive(lab->spec.hosts, LAB_NETNS_DIR, p, true, p->lat_samples != 0);
}

static int rack_main(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &lab_argp, 0, NULL, 0 },
						      { &bench_argp, 0,
							"The measurement:", GROUP_BENCH },
						      { 0 } };
	static const struct argp argp = { .options = rack_options,
					  .parser = parse_rack,
					  .args_doc = "[rack|leaf-spine|three-tier|dumbbell]\n"
						      "WORKLOAD",
					  .children = children,
					  .help_filter = add_workloads,
					  .doc = "barline lab run - raise a rack of network "
						 "namespaces, let every host broadcast to all, "
						 "check that all receivers saw one order, measure "
						 "latency, and remove the rack\v"
						 "The exit status is 1 if the order differed or a "
						 "message is missing." };
	struct rack_args a = { .lab = lab_new(), .bench = bench_defaults };
	struct lab *lab = a.lab;
	struct bl_nearest near = { .word = lab ? lab->spec.name : "" };
	const struct workload *w = NULL;
	char names[256];
	int err;

	if (!lab)
		return cli_fail("out of memory");
	cmd_parse(&argp, argc, argv, &a);
	while (lab->spec.name[0] && (w = workload_next(WORKLOAD_LAB_RUN, w)))
		bl_nearest_try(&near, w->name);
	if (lab->spec.name[0])
		return cli_usage("lab run: no workload is called \"%s\": there are %s; it must be "
				 "the first word%s%s%s",
				 lab->spec.name,
				 workload_names(WORKLOAD_LAB_RUN, names, sizeof(names)),
				 near.best ? ". Did you mean " : "", near.best ? near.best : "",
				 near.best ? "?" : "");
	if (lab->spec.hosts < 2)
		return cli_usage("a run needs two hosts or more");
	snprintf(lab->spec.name, sizeof(lab->spec.name), "run-%d", getpid());
	err = lab_start(lab, drive_rack, &a.bench);
	free(lab);
	return err;
}

static bool has_option(int argc, char **argv, const char *option)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strncmp(argv[i], option, strlen(option)))
			return true;
	return false;
}

int cmd_lab_run(int argc, char **argv)
{
	const struct workload *w = NULL;
	int at = cmd_skip_flags(argc, argv);

	while (at < argc && (w = workload_next(WORKLOAD_LAB_RUN, w)))
		if (!strcmp(w->name, argv[at]) &&
		    (!w->option || has_option(argc - at, argv + at, w->option)))
			return w->main(argc, argv);
	return rack_main(argc, argv);
}

/* ---- barline arbiter bench ---- */

static const struct arb_bench *find_arb_bench(const char *name)
{
	const struct workload *w = workload_find(WORKLOAD_ARBITER, name);

	return w ? w->arbiter : NULL;
}

int cmd_arbiter_bench(int argc, char **argv)
{
	char names[64];

	return arb_bench_main(argc, argv, find_arb_bench,
			      workload_names(WORKLOAD_ARBITER, names, sizeof(names)));
}
