/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Carrying out, showing and taking back a setup. */
#ifndef BARLINE_CLI_SETUP_RUN_H
#define BARLINE_CLI_SETUP_RUN_H

#include "cli/setup/plan.h"

/** struct setup_opts - what the command line says beside the wishes. */
struct setup_opts {
	struct setup_want w;
	bool dry, undo, learn, yes;
	const char *print;    /* kind of files to print; NULL: none */
	const char *print_to; /* folder for them; NULL: standard output */
	const char *state;    /* folder of the journal */
	/*
	 * test: the process kills itself before (odd) or after (even) a step; 1 is before the
	 * first one. 0: never.
	 */
	uint32_t kill_at;
};

/** setup_run - sets up. Returns the exit status. */
int setup_run(struct setup_opts *o);
/** setup_back - takes back what was set up under the name. Returns the exit status. */
int setup_back(struct setup_opts *o);

#endif
