/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program that runs: what hints call it, and where its neighbours are.
 */
#ifndef BARLINE_CLI_UTIL_SELF_H
#define BARLINE_CLI_UTIL_SELF_H

#include <stddef.h>

/**
 * self_quote - Writes @word as one word of a shell, in quotes if it needs them and cut if it does
 * not fit. Returns @buf.
 */
char *self_quote(const char *word, char *buf, size_t size);

/**
 * self_name - Returns how this program was called, as a word of a shell, for hints that can be
 * copied: "barline", or "build/barline" where it is in no folder of PATH.
 */
const char *self_name(void);

/** self_folder - Writes the folder of this program into @buf; "": not known. Returns @buf. */
char *self_folder(char *buf, size_t size);
/** self_first_in_path - Makes @folder the first one of PATH. Does nothing if it is "". */
void self_first_in_path(const char *folder);

#endif
