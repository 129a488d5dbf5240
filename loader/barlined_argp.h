/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line of barlined, which `barline completion` reads as well. */
#ifndef BARLINE_LOADER_BARLINED_ARGP_H
#define BARLINE_LOADER_BARLINED_ARGP_H

#include <argp.h>
#include <stdbool.h>

#include "loader/settings_argp.h"

/** struct bl_barlined_args - the command line; input of the argp. */
struct bl_barlined_args {
	struct bl_settings_input in;
	bool json, prepare;
	/* for a reload, which reads the file again and has the flags of the start */
	int argc;
	char **argv;
};

extern const struct argp bl_barlined_argp;

#endif
