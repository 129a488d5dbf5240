/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The columns of `barline watch --columns`: one line per node and reading, as vmstat(8) prints.
 *
 *	TIME      NODE        LAG  FRAMES  DROPPED  NO_ROUTE
 *	12:00:01  h1      1.50 us   20311        0         0
 */
#ifndef BARLINE_CLI_COLUMNS_H
#define BARLINE_CLI_COLUMNS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "maps/reasons_abi.h"

#define COLUMNS_MAX     12
#define COLUMNS_DEFAULT "lag,frames,dropped,noted"

enum column_kind {
	COLUMN_LAG,
	COLUMN_FRAMES,
	COLUMN_BYTES,
	COLUMN_DROPPED,
	COLUMN_NOTED,
	COLUMN_REASON
};

/** struct column - A column. @reason counts for COLUMN_REASON only. */
struct column {
	enum column_kind kind;
	enum bl_reason reason;
	const char *name;
};

/**
 * columns_parse - Reads a list as "lag,frames,no_route" into @to, which has room for COLUMNS_MAX.
 * Returns the number of columns, or -EINVAL with a sentence that names the word and one like it.
 */
int columns_parse(struct column *to, const char *list, struct bl_err *err);

/** columns_head - Prints the headings. @width: of the longest name of a node. */
void columns_head(FILE *f, const struct column *c, size_t n, int width);

/**
 * columns_line - Prints a line. @values: per second, or ns for COLUMN_LAG; NAN: not known.
 */
void columns_line(FILE *f, const struct column *c, size_t n, int width, const char *time,
		  const char *node, const double *values);

#endif
