/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frame that every `barline show X` shares: options, the nodes to look at, rows of each, one
 * table or one JSON object.
 */
#ifndef BARLINE_CLI_SHOW_H
#define BARLINE_CLI_SHOW_H

#include "cli/util/out.h"
#include "loader/node.h"

/**
 * show_nodes - parse the command line of a `show` and find its nodes. Their count, or -1 after a
 * message. The caller frees *refs.
 */
int show_nodes(int argc, char **argv, const char *doc, struct bl_node_ref **refs);
/**
 * show_rows - all of a `show` that has one table: @collect appends a node's rows. The exit status.
 */
int show_rows(int argc, char **argv, const char *doc, const char *key,
	      int (*collect)(const struct bl_node_ref *, json_t *), const struct col *cols,
	      size_t ncols, const char *none);
#define SHOW(doc, key, collect, cols, none) \
	show_rows(argc, argv, doc, key, collect, cols, sizeof(cols) / sizeof((cols)[0]), none)

const char *node_name(const struct bl_node_ref *ref);

#endif
