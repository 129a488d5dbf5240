/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands that have a process read its file again. */
#ifndef BARLINE_CLI_UTIL_RELOAD_H
#define BARLINE_CLI_UTIL_RELOAD_H

#include <jansson.h>

/**
 * reload_print - Prints a change of the process @who, unless the output is JSON. @row: an object
 * with what, setting, was, now, change and why (base/changes_json.h)
 */
void reload_print(const char *who, const json_t *row);

/**
 * reload_command - The command that has all processes of this network namespace whose status
 * sockets are called
 * @name-NETNS-NUMBER.sock read their files again, waits for the results, and prints them.
 * @doc: of --help
 * @name: "controller" or "arbiter"
 * @none: the message if there is no such process
 * Returns the exit status: 0 if all of them have reloaded.
 */
int reload_command(int argc, char **argv, const char *doc, const char *name, const char *none);

#endif
