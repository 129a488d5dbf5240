// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline show network: whether what a node sends can arrive at all, as the doctor finds it.
 */
#include "cli/cmd.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/show/show.h"

/** struct rows - where findings on a node go. */
struct rows {
	const struct bl_node_ref *ref;
	json_t *to;
};

static void add_row(void *ctx, const struct finding *f)
{
	const struct rows *r = ctx;

	json_array_append_new(r->to,
			      json_pack("{s:s, s:s, s:s, s:s, s:s}", "node", node_name(r->ref),
					"what", f->what, "level", finding_level_name(f->level),
					"finding", f->cause, "cure", f->cure));
}

static int collect_network(const struct bl_node_ref *ref, json_t *rows)
{
	struct rows r = { .ref = ref, .to = rows };
	const struct finder to = { .fn = add_row, .ctx = &r };

	doctor_clock(&to, ref);
	doctor_net(&to, ref);
	return 0;
}

int cmd_show_network(int argc, char **argv)
{
	static const struct col cols[] = { { "what", "WHAT", 's' },
					   { "level", "STATE", 's' },
					   { "finding", "FINDING", 's' } };

	return SHOW("barline show network - address, route, neighbours, forwarding and clock of "
		    "each node\v"
		    "What the doctor finds on the surroundings of a node, without the checks of "
		    "the "
		    "machine; `barline doctor` says what to do. The network of a node in another "
		    "network namespace is not looked at.",
		    "network", collect_network, cols, "no nodes");
}
