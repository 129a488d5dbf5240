/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all `barline show` commands share: options, the list of nodes, and a table or a JSON object
 * with the rows of all nodes.
 */
#ifndef BARLINE_CLI_SHOW_H
#define BARLINE_CLI_SHOW_H

#include "cli/util/out.h"
#include "cli/util/read.h"
#include "loader/node.h"

#define SHOW_TABLES_MAX 6

/** struct show_table - A table of a `show` command with several. */
struct show_table {
	const char *key; /* member of the JSON object that has the rows, and its name in text */
	const struct col *cols;
	size_t ncols;
};
#define SHOW_TABLE(key, cols)                               \
	{                                                   \
		key, cols, sizeof(cols) / sizeof((cols)[0]) \
	}

/**
 * show_tables - Does everything for a `show` command with several tables.
 * @doc: help text of the command
 * @what: what its arguments name, as PORT
 * @tables: the @n tables, SHOW_TABLES_MAX at most
 * @collect: appends the rows of one node to the arrays of the tables, which have the same order;
 * returns 0, or 1 after a message
 * @none: line that is printed if no table has a row
 * Returns the exit status.
 */
int show_tables(int argc, char **argv, const char *doc, const char *what,
		const struct show_table *tables, size_t n,
		int (*collect)(const struct bl_node_ref *, json_t **rows), const char *none);
/**
 * show_rows - Does everything for a `show` command with one table.
 * @doc: help text of the command
 * @key: member of the JSON object that has the rows
 * @collect: appends the rows of one node; returns 0, or 1 after a message
 * @none: line that is printed if there are no rows
 * Returns the exit status.
 */
int show_rows(int argc, char **argv, const char *doc, const char *key,
	      int (*collect)(const struct bl_node_ref *, json_t *), const struct col *cols,
	      size_t ncols, const char *none);
/* show_rows() for a function with argc and argv */
#define SHOW(doc, key, collect, cols, none) \
	show_rows(argc, argv, doc, key, collect, cols, sizeof(cols) / sizeof((cols)[0]), none)

#endif
