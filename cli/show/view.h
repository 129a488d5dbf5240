/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the rows of a `show` command are shown: which of them, as numbers or as differences, and in
 * which form. The rows are JSON objects, so this is written once for all commands (show_rows()).
 *
 * A row is the same one in two readings if these members are equal: node, what, name, port, role,
 * lane, addr, reason, class, dest, flow, from. Differences are those of columns with format 'n' or
 * 'K'.
 */
#ifndef BARLINE_CLI_VIEW_H
#define BARLINE_CLI_VIEW_H

#include <argp.h>

#include "cli/util/out.h"
#include "maps/reasons_abi.h"

/** struct view - what the command line says. */
struct view {
	bool all;           /* -a: nodes of all network namespaces */
	bool one_line;      /* -o: NAME=VALUE ..., for grep */
	bool brief;         /* -b: no heading, and nothing that is 0, but port 0 and the like */
	bool details;       /* -d: all that --json has */
	bool per_second;    /* -s: counters as rates */
	bool time;          /* -t: when it was read */
	double interval_s;  /* -i: differences, repeatedly; 0: one reading */
	long long count;    /* -c: with -i, stop after this number; 0: never */
	const char *reason; /* --reason: only rows with this one; NULL: all */
	char **ports;       /* only rows with one of these names, of a port or of a map */
	size_t nports;      /* 0: all */
};

/** view_argp - The options and arguments; its input is a struct view. */
extern const struct argp view_argp;

/**
 * view_reason - the reason that the command line names. One that is not there is wrong usage, and
 * ends the process unless the parser is told not to; then it is BL_R_COUNT.
 */
enum bl_reason view_reason(const char *arg, const struct argp_state *state);
/**
 * view_select - Returns the rows that the command line asks for, as a new array. If no row has the
 * name of a port, *@unknown gets that name, else NULL.
 */
json_t *view_select(const struct view *v, json_t *rows, const char **unknown);
/**
 * view_differences - Returns copies of @rows with the counters of @cols less those of the same row
 * in @before, divided by @divisor if that is not 0. What was not there before counts from 0, as
 * does a counter that has become less, since its node has begun anew.
 */
json_t *view_differences(json_t *before, json_t *rows, const struct col *cols, size_t ncols,
			 double divisor);
/**
 * view_print - Prints the rows in the form that the command line asks for, except as JSON.
 * @title: the name of the table, in each row but not in a table with a heading; NULL: there is one
 * table only
 */
void view_print(FILE *f, const struct view *v, json_t *rows, const struct col *cols, size_t ncols,
		const char *time, const char *title);

#endif
