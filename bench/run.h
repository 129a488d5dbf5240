/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The workloads of `barline lab run`, `barline bench` and `barline arbiter bench`, in one table
 * from which the commands are dispatched and their help texts and errors are made.
 *
 * To add a workload: write its main function in a folder of bench/, and add a row to the table in
 * run.c. If it has options, document them in docs/barline.1.
 */
#ifndef BARLINE_BENCH_RUN_H
#define BARLINE_BENCH_RUN_H

#include <stdio.h>

struct arb_bench;

enum workload_command {
	WORKLOAD_LAB_RUN, /* barline lab run NAME: raises a lab and measures in it */
	WORKLOAD_BENCH,   /* barline bench NAME: measures on nodes that run */
	WORKLOAD_ARBITER  /* barline arbiter bench NAME: measures the arbiter's computations */
};

/** struct workload - One row of the table. */
struct workload {
	enum workload_command command;
	const char *name; /* word after the command */
	/*
	 * the row applies only if an option begins so; NULL: always. Must precede the row with the
	 * same name and no option
	 */
	const char *option;
	const char *brief;                  /* what it shows, in one line */
	int (*main)(int argc, char **argv); /* returns the exit status; not of WORKLOAD_ARBITER */
	const struct arb_bench *arbiter;    /* only of WORKLOAD_ARBITER */
};

/** workload_find - Returns the workload of @command with that name, or NULL. */
const struct workload *workload_find(enum workload_command command, const char *name);
/**
 * workload_next - Returns the workload of @command after @previous in the table; NULL: the first
 * one. Returns NULL after the last one.
 */
const struct workload *workload_next(enum workload_command command,
				     const struct workload *previous);
/** workload_list - Prints name and brief of each workload of @command, after @prefix. */
void workload_list(FILE *f, enum workload_command command, const char *prefix);

int cmd_lab_run(int argc, char **argv);
int cmd_arbiter_bench(int argc, char **argv);

#endif
