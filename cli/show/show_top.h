/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of `barline show tokens` about hosts: flows that are sent and received, as in
 * maps/top_host_abi.h.
 */
#ifndef BARLINE_CLI_SHOW_TOP_H
#define BARLINE_CLI_SHOW_TOP_H

#include "cli/show/show.h"

/** struct top_rows - Arrays of rows, one per table. */
struct top_rows {
	json_t *hosts;     /* one row per host */
	json_t *sending;   /* one row per flow that is sent */
	json_t *receiving; /* one row per flow that is received */
};

/** top_rows - Appends the rows of a host. Returns 0, or 1 after a message. */
int top_rows(const struct bl_node_ref *ref, struct top_rows *out);
/** top_tables - The tables of these rows, in the order of struct top_rows. */
extern const struct show_table top_tables[3];

#endif
