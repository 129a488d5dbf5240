/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline show tokens, the hosts' part: flows that are sent and received, as maps/top_host_abi.h
 * has them.
 */
#ifndef BARLINE_CLI_SHOW_TOP_H
#define BARLINE_CLI_SHOW_TOP_H

#include "cli/show/show.h"

struct top_rows {
	json_t *hosts, *sending, *receiving;
};

/** top_rows - appends what a host has. 0, or 1 after a message. */
int top_rows(const struct bl_node_ref *ref, struct top_rows *out);
void top_print(const struct top_rows *t);

#endif
