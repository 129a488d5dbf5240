/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process that stands in for a daemon that was stopped or has died; caretaker.c. */
#ifndef BARLINE_CARETAKER_H
#define BARLINE_CARETAKER_H

/**
 * bl_caretaker_main - runs as the caretaker that loader/spare.c started as `PROGRAM --caretaker
 * NUMBER`. Returns the exit status.
 */
int bl_caretaker_main(const char *number);

#endif
