/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flags of admission, for programs that start a node. */
#ifndef BARLINE_ADMISSION_ARGP_H
#define BARLINE_ADMISSION_ARGP_H

struct argp;

extern const struct argp bl_admission_argp; /* its input is a struct bl_admission_cfg */

#endif
