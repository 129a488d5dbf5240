/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Command line options that describe a lab, for all commands that raise one.
 */
#ifndef BARLINE_LAB_ARGP_H
#define BARLINE_LAB_ARGP_H

#include <argp.h>

#include "cli/util/args.h"

#define LAB_ARGP_GROUP 1 /* of these options in --help */

/** lab_argp - Options of a lab; its input is a struct lab_spec. */
extern const struct argp lab_argp;

#endif
