// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline controller admit, remove: which nodes the controller knows (controller/nodes.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/status.h"
#include "proto/ident.h"

/* A node that takes part is announced as failed before it is removed; that has this much time. */
#define AGAIN_US     100000
#define WAIT_MS      30000

#define NAME_MAX_LEN 31 /* as a name of a node on the wire */

enum { OPT_ID = 256, OPT_FORCE };

/** struct node_args - A command line of this file. */
struct node_args {
	const char *node;
	const char *id;
	bool force;
};

static error_t parse_node(int key, char *arg, struct argp_state *state)
{
	struct node_args *a = state->input;

	switch (key) {
	case OPT_ID:
		a->id = arg;
		return 0;
	case OPT_FORCE:
		a->force = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->node)
			return ARGP_ERR_UNKNOWN;
		a->node = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* Returns the node id that @text is; 0: it is none. */
static uint32_t read_id(const char *text)
{
	unsigned long long v;
	char *end;

	if (*text < '0' || *text > '9')
		return 0;
	v = strtoull(text, &end, 10);
	return *end || v > UINT32_MAX ? 0 : (uint32_t)v;
}

static const char no_controller[] = "no controller runs in this network namespace; `barline "
				    "controller run FILE` starts one";

/*
 * Has the leader of this network namespace carry out @command. Returns 0, 1 after a message, or -1:
 * it is to be repeated, for the reason *@why, which the caller frees.
 */
static int tell_leader(const char *command, char **why)
{
	json_t *all = status_ask_each("controller", command), *one;
	const char *trouble = NULL;
	int rc = -2;
	size_t i;

	*why = NULL;
	json_array_foreach(all, i, one)
	{
		const char *state = json_string_value(json_object_get(one, "state"));
		const char *done = json_string_value(json_object_get(one, "done"));

		trouble = json_string_value(json_object_get(one, "trouble"));
		if (!state || !done || !trouble || strcmp(state, "leader"))
			continue;
		if (*done && cli.json)
			cli_json(json_pack("{s:s}", "done", done));
		else if (*done)
			puts(done);
		rc = *done ? 0 : json_is_true(json_object_get(one, "again")) ? -1 : 1;
		if (rc < 0)
			*why = strdup(trouble);
		else if (rc)
			cli_fail("%s", trouble);
		break;
	}
	if (rc == -2 && json_array_size(all))
		rc = cli_fail("no controller of this network namespace leads; run the command on "
			      "the machine of the leader, which `barline show controller` names");
	else if (rc == -2)
		rc = status_none("controller", "controller", no_controller);
	json_decref(all);
	return rc;
}

int cmd_controller_admit(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "id", OPT_ID, "N", 0, "node id: node_id in the file of the node's barlined", 0 },
		{ 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_node,
					  .args_doc = "NODE",
					  .children = cmd_globals,
					  .doc = "barline controller admit - admit a node to the "
						 "rack\v"
						 "Run it in the network namespace of the leading "
						 "controller, which saves the node. Until a node "
						 "is admitted, its messages change nothing, and "
						 "`barline show controller` lists it as a "
						 "stranger. Nodes in the files of the "
						 "controllers, under nodes, are admitted as "
						 "well." };
	struct node_args a = { 0 };
	char command[96], *why;
	uint32_t id;
	int rc;

	cmd_parse(&argp, argc, argv, &a);
	if (!a.node)
		return cli_usage("which node? barline controller admit NODE --id N");
	id = read_id(a.id ? a.id : a.node);
	if (!id && a.id)
		return cli_usage("--id %s: a number from 1 to %u", a.id, UINT32_MAX);
	if (!id)
		return cli_usage("which node id has %s? --id N, as node_id in the file of its "
				 "barlined",
				 a.node);
	if (!bl_ident_name_ok(a.node) || strlen(a.node) > NAME_MAX_LEN)
		return cli_usage("\"%s\" cannot be the name of a node: at most %d letters, digits, "
				 "'.', '-' and '_'",
				 a.node, NAME_MAX_LEN);
	snprintf(command, sizeof(command), "admit %" PRIu32 " %s\n", id, a.node);
	rc = tell_leader(command, &why);
	free(why);
	return rc;
}

/* Returns the id of the node called @name, as the controllers know it; 0 after a message. */
static uint32_t find_id(const char *name)
{
	json_t *all = status_ask_each("controller", NULL), *one, *row;
	bool none = !json_array_size(all);
	uint32_t id = 0, found = 0;
	size_t i, k;

	json_array_foreach(all, i, one)
	{
		json_array_foreach(json_object_get(one, "nodes"), k, row)
		{
			const char *is = json_string_value(json_object_get(row, "name"));
			uint32_t v = (uint32_t)json_integer_value(json_object_get(row, "node"));

			if (!is || strcmp(is, name) || v == id)
				continue;
			id = v;
			found++;
		}
	}
	json_decref(all);
	if (found == 1)
		return id;
	if (found)
		cli_fail("%u nodes are called %s; give the id instead", found, name);
	else if (none)
		status_none("controller", "controller", no_controller);
	else
		cli_fail("the controller knows no node %s; `barline show controller` lists them",
			 name);
	return 0;
}

int cmd_controller_remove(int argc, char **argv)
{
	static const struct argp_option options[] = { { "force", OPT_FORCE, NULL, 0,
							"close the session of the node, and "
							"announce it as failed, first",
							0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_node,
					  .args_doc = "NODE",
					  .children = cmd_globals,
					  .doc = "barline controller remove - remove a node, by "
						 "its name or its id\v"
						 "No node waits for it any more, and the "
						 "controllers refuse it even with a valid "
						 "certificate. A node that has a session, or that "
						 "its neighbours still hear, is removed only with "
						 "--force, which announces it as failed first, so "
						 "that the messages of its processes are "
						 "settled." };
	struct node_args a = { 0 };
	char command[64], *why;
	unsigned int ms;
	uint32_t id;
	int rc = -1;

	cmd_parse(&argp, argc, argv, &a);
	if (!a.node)
		return cli_usage("which node? `barline show controller` lists them");
	id = read_id(a.node);
	if (!id)
		id = find_id(a.node);
	if (!id)
		return 1;
	snprintf(command, sizeof(command), "remove %" PRIu32 "%s\n", id, a.force ? " force" : "");
	for (ms = 0; rc < 0; ms += AGAIN_US / 1000) {
		rc = tell_leader(command, &why);
		if (rc < 0 && ms >= WAIT_MS)
			rc = cli_fail("node %s is not removed after %d ms: %s; see `barline show "
				      "failures`, and repeat the command",
				      a.node, WAIT_MS, why);
		free(why);
		if (rc < 0)
			usleep(AGAIN_US);
	}
	return rc;
}
