/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline --batch FILE: many commands, one per line (base/words.h), as ip(8) and tc(8) have it.
 *
 * Each line runs in a child of this process, without an exec: what costs time, loading the command
 * and its libraries, is done once. A command cannot run in this process itself: argp ends the
 * process after an error of usage and after --help, -n enters a network namespace for good, and
 * commands keep what they were told in variables. A child also keeps a command that crashes from
 * ending the batch without a word.
 */
#ifndef BARLINE_CLI_BATCH_H
#define BARLINE_CLI_BATCH_H

#include <stdbool.h>

/**
 * batch_run - runs the commands in @file, "-": stdin. A command that fails ends the batch.
 * @force: it does not
 * @run: runs a command in the child; @argv[0] is the program
 * Returns 0; the exit status of the command that ended the batch; or with @force 1 if one failed.
 */
int batch_run(const char *file, bool force, int (*run)(int argc, char **argv));

#endif
