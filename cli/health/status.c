// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline status: one line for each node, and an exit status. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cmd.h"
#include "cli/health/health.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/read.h"

static error_t parse_status(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != 'a')
		return ARGP_ERR_UNKNOWN;
	*(bool *)state->input = true;
	return 0;
}

int cmd_status(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "all", 'a', NULL, 0, "nodes of all network namespaces of this machine", 0 }, { 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_status,
					  .children = cmd_globals,
					  .doc = "barline status - whether each node is ready, in "
						 "one line\v"
						 "Looks at daemon, clock, links, queues, programs, "
						 "node ids, neighbours, "
						 "addresses and the session with a controller, and "
						 "names the first of the "
						 "worst with the next step. Takes some "
						 "milliseconds, and asks no process, so "
						 "it never waits for one that is stopped. Exit "
						 "status 0 if all nodes are "
						 "ready, 1 if one is not or there is none. A "
						 "warning does not count." };
	struct bl_node_ref *refs;
	struct health h;
	bool all = false, ready = true;
	json_t *rows;
	char text[2048];
	int n, i;

	cmd_parse(&argp, argc, argv, &all);
	n = nodes_here(&refs, all);
	if (n < 0)
		return 1;
	rows = json_array();
	for (i = 0; i < n; i++) {
		ready &= health_read(&refs[i], &h);
		if (cli.json)
			json_array_append_new(rows, health_json(&h));
		else
			puts(health_text(&h, text, sizeof(text)));
	}
	free(refs);
	if (cli.json)
		cli_json(json_pack("{s:O, s:b}", "nodes", rows, "ready", ready));
	json_decref(rows);
	return !ready;
}
