/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Command lines of the `barline` commands: global options, errors of usage, and lists of CPUs.
 *
 * Each command has an argp of its own with cmd_globals as a child, so that -j, -n and -v are
 * accepted before and after the name of the command.
 */
#ifndef BARLINE_CLI_UTIL_ARGS_H
#define BARLINE_CLI_UTIL_ARGS_H

#include <argp.h>

#include "cli/util/out.h"

/** cmd_globals - Children of an argp that has no others: the global options. */
extern const struct argp_child cmd_globals[];
extern const struct argp cmd_globals_argp;
/* the first element of the children of an argp that has more */
#define cmd_globals_child                                   \
	{                                                   \
		&cmd_globals_argp, 0, "Global options:", -2 \
	}

/**
 * cmd_enter_named - Enters more than the network namespace if -n names one of those that need it,
 * as those of labs; set by main.c. Returns 0; 1 after a message; -1: it is an ordinary namespace.
 */
extern int (*cmd_enter_named)(const char *netns);

/**
 * cmd_inspect - If it is set, it gets the argp instead of cmd_parse_words() parsing anything, and
 * does not return. `barline completion` learns the options of all commands with it.
 */
extern void (*cmd_inspect)(const struct argp *argp);

/**
 * cmd_parse - Parses the options of a command with argp_parse() and enters the namespace of -n.
 * Ends the process if one of the two fails.
 */
void cmd_parse(const struct argp *argp, int argc, char **argv, void *input);

/**
 * cmd_parse_words - Calls argp_parse() with @flags. An error of usage ends the process, as
 * argp_parse() does, and is printed as JSON if --json was given.
 */
void cmd_parse_words(const struct argp *argp, int argc, char **argv, unsigned int flags,
		     void *input);

/** cmd_skip_flags - Returns the index of the first element of @argv[1...] that is not -j or -v. */
int cmd_skip_flags(int argc, char **argv);

/** cli_cpus - Reads a list of CPUs, as in "0,2-3". Returns their number, or -1. */
int cli_cpus(const char *s, int *cpus, int max);

#endif
