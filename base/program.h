/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The name of the running program, for what it prints about itself. */
#ifndef BARLINE_PROGRAM_H
#define BARLINE_PROGRAM_H

#include <errno.h>
#include <string.h>

/**
 * bl_program - the name that a line of this program on standard error begins with, as argp begins
 * its errors. What uses the loader or the library beside barlined is barline.
 */
static inline const char *bl_program(void)
{
	return strcmp(program_invocation_short_name, "barlined") ? "barline" : "barlined";
}

#endif
