/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline switch|host up, detach; barline clean. `up` does what barlined does; options override the
 * YAML file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/config.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "lab/lab_names.h"
#include "loader/config.h"
#include "loader/config_check.h"
#include "loader/config_clock.h"
#include "loader/control.h"
#include "loader/node_events.h"
#include "loader/settings.h"
#include "loader/settings_argp.h"
#include "loader/spare.h"

/** struct node_args - options of `up`: what barlined has, and the arguments of commands. */
struct node_args {
	struct bl_settings_input in;
	enum bl_role role;
	unsigned int words; /* arguments so far */
	const struct argp *argp;
	int argc; /* of the command, for a reload */
	char **argv;
};

static error_t parse_node(int key, char *arg, struct argp_state *state)
{
	struct node_args *a = state->input;
	struct bl_err err = {};
	int rc = 0;

	switch (key) {
	case ARGP_KEY_INIT:
		a->words = 0;
		state->child_inputs[1] = &a->in;
		return 0;
	case ARGP_KEY_ARG:
		if (a->role == BL_ROLE_HOST && a->words++)
			return ARGP_ERR_UNKNOWN; /* too many arguments */
		if (a->in.file_pass)
			return 0;
		rc = a->role == BL_ROLE_HOST
			     ? bl_setting_parse(bl_setting(BL_S_INTERFACE), "interface", arg,
						&a->in.cfg, &err)
			     : bl_settings_add_port(&a->in.cfg, arg, BL_PORT_HOST, &err);
		if (rc)
			argp_error(state, "%s", err.text);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* Says what the node would be. */
static int report_check(const struct bl_node_cfg *c)
{
	struct bl_err err;

	if (bl_config_check_files(c, &err))
		return cli_usage("%s", err.text);
	return config_print(c, NULL);
}

/* Reads file and flags. With @again, for a reload, what is wrong does not end the process. */
static int read_config(struct node_args *a, bool again, struct bl_err *err)
{
	int rc;

	a->in = (struct bl_settings_input){ .cfg = { .role = a->role }, .file_pass = true };
	if (again)
		argp_parse(a->argp, a->argc, a->argv, ARGP_SILENT, NULL, a);
	else
		cmd_parse(a->argp, a->argc, a->argv, a);
	rc = bl_settings_file(&a->in, err);
	if (!rc && !again)
		cmd_parse(a->argp, a->argc, a->argv, a);
	else if (!rc && argp_parse(a->argp, a->argc, a->argv, ARGP_SILENT, NULL, a))
		rc = bl_fail(err, EINVAL, "the flags of the command line do not fit the file %s",
			     a->in.file ? a->in.file : "");
	return rc ? rc : bl_settings_done(&a->in, err);
}

/* Makes the configuration anew for a reload. */
static int read_again(void *ctx, struct bl_node_cfg *out, struct bl_err *err)
{
	struct node_args a = *(const struct node_args *)ctx;
	int rc = read_config(&a, true, err);

	*out = a.in.cfg;
	return rc;
}

static int run_node(const struct argp *argp, enum bl_role role, int argc, char **argv)
{
	struct node_args a = { .role = role, .argp = argp, .argc = argc, .argv = argv };
	struct bl_node_cfg *c = &a.in.cfg;
	struct bl_server *server = NULL;
	struct bl_err err, why;
	struct bl_node *node;
	int e;

	e = read_config(&a, false, &err);
	if (e || a.in.check) {
		e = e ? cli_usage("%s", err.text) : report_check(c);
		bl_config_free(c);
		return e;
	}
	bl_clock_default_source(c);
	bl_server_block_signals();
	e = bl_server_new(&server, &err);
	if (!e)
		e = bl_node_open(&node, server, c, &err);
	if (!e) {
		if (cli.json)
			cli_json(json_pack("{s:s, s:s, s:s}", "node", bl_node_name(node), "state",
					   "up", "dir", bl_node_dir(node)));
		else
			fprintf(stderr,
				"barline: %s %s is up on %s in %s XDP mode; its pins are in %s\n",
				role_name(role), bl_node_name(node),
				bl_node_iface(node, 0) ? bl_node_iface(node, 0)->iface.name : "?",
				bl_node_mode(node) == BL_XDP_NATIVE ? "native" : "generic",
				bl_node_dir(node));
		bl_node_events_started(node, bl_node_mode(node) == BL_XDP_GENERIC);
		bl_server_on_reload(server, read_again, &a);
		if (!a.in.detach && bl_spare_open(node, &err))
			fprintf(stderr, "barline: no caretaker replaces a daemon that dies: %s\n",
				err.text);
		e = bl_server_run(server, &err);
		bl_node_events_stopped(node, e < 0 ? err.text : "signal");
		/* also for one that cannot go on */
		if (!a.in.detach && bl_node_hand_over(node, &why))
			fprintf(stderr, "barline: no caretaker replaces the daemon: %s\n",
				why.text);
	}
	if (server)
		bl_server_free(server);
	if (e >= 0 && a.in.detach) {
		e = bl_node_busy(role, "", &err);
		if (e >= 0)
			e = bl_node_detach(role, "", &err);
	} else if (e >= 0 && !cli.json)
		fprintf(stderr,
			"barline: stopped; the datapath stays in the kernel: `barline %s detach` "
			"removes it\n",
			role_name(role));
	bl_config_free(c);
	return e < 0 ? cli_fail("%s", err.text) : 0;
}

int cmd_switch_up(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &bl_settings_switch_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .parser = parse_node,
					  .children = children,
					  .args_doc = "[IFNAME[@CPU]...]",
					  .doc = "barline switch up - run a switch in the "
						 "foreground\v"
						 "Ports that are named as arguments lead to hosts. "
						 "@CPU is the home CPU of a port; without it, "
						 "ports are distributed over the datapath CPUs in "
						 "order. The datapath stays in the kernel when the "
						 "process ends." };

	return run_node(&argp, BL_ROLE_SWITCH, argc, argv);
}

int cmd_host_up(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &bl_settings_host_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .parser = parse_node,
					  .children = children,
					  .args_doc = "[IFNAME]",
					  .doc = "barline host up - run a host in the foreground\v"
						 "The datapath stays in the kernel when the "
						 "process ends. Ordered sending stops when the "
						 "clock record, which the daemon renews, is too "
						 "old." };

	return run_node(&argp, BL_ROLE_HOST, argc, argv);
}

static error_t parse_detach(int key, char *arg, struct argp_state *state)
{
	bool *force = state->input;

	(void)arg;
	if (key != 'f')
		return ARGP_ERR_UNKNOWN;
	*force = true;
	return 0;
}

static int detach_node(enum bl_role role, int argc, char **argv, const char *doc)
{
	static const struct argp_option options[] = { { "force", 'f', NULL, 0,
							"also if it interrupts ordered traffic or "
							"running endpoints",
							0 },
						      { 0 } };
	const struct argp argp = {
		.options = options, .parser = parse_detach, .children = cmd_globals, .doc = doc
	};
	bool force = false;
	struct bl_err err;

	cmd_parse(&argp, argc, argv, &force);
	if ((!force && bl_node_busy(role, "", &err)) || bl_node_detach(role, "", &err))
		return cli_fail("%s", err.text);
	if (cli.json)
		cli_json(json_pack("{s:s, s:s}", "role", role_name(role), "state", "detached"));
	return 0;
}

int cmd_switch_detach(int argc, char **argv)
{
	return detach_node(BL_ROLE_SWITCH, argc, argv,
			   "barline switch detach - remove the programs and maps of this "
			   "namespace's switch");
}

int cmd_host_detach(int argc, char **argv)
{
	return detach_node(BL_ROLE_HOST, argc, argv,
			   "barline host detach - remove the programs and maps of this namespace's "
			   "host");
}

struct clean_args {
	bool dry, all, force;
};

static error_t parse_clean(int key, char *arg, struct argp_state *state)
{
	struct clean_args *a = state->input;

	(void)arg;
	switch (key) {
	case 'd':
		a->dry = true;
		return 0;
	case 'a':
		a->all = true;
		return 0;
	case 'f':
		a->force = true;
		return 0;
	case ARGP_KEY_END:
		if (a->force && !a->all)
			argp_error(state, "--force is for --all");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static void add_removed(const char *what, void *ctx)
{
	json_array_append_new(ctx, json_string(what));
}

int cmd_clean(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "dry-run", 'd', NULL, 0, "print what would be removed, and remove nothing", 0 },
		{ "all", 'a', NULL, 0, "detach all nodes of this machine that no daemon serves",
		  0 },
		{ "force", 'f', NULL, 0,
		  "with --all: also if it interrupts ordered traffic or running endpoints", 0 },
		{ 0 }
	};
	const struct argp argp = { .options = options,
				   .parser = parse_clean,
				   .children = cmd_globals,
				   .doc = "barline clean - remove pins and sockets of nodes whose "
					  "namespace or interface is gone, and sockets of arbiters "
					  "and controllers that were killed" };
	struct clean_args a = {};
	struct bl_err err;
	json_t *what = json_array(), *s;
	size_t i;
	int n;

	cmd_parse(&argp, argc, argv, &a);
	lab_names_clean(a.dry, add_removed, what);
	n = a.all ? bl_clean_all(a.force, a.dry, add_removed, what, &err)
		  : bl_clean(a.dry, add_removed, what, &err);
	if (n < 0) {
		json_decref(what);
		return cli_fail("%s", err.text);
	}
	if (cli.json) {
		cli_json(json_pack("{s:b, s:i, s:O}", "dry_run", a.dry, "nodes", n, "what", what));
	} else {
		json_array_foreach(what, i, s) printf(
			"%s%s\n", a.dry ? "would remove " : "removed ", json_string_value(s));
		if (!json_array_size(what))
			puts("nothing to clean");
	}
	json_decref(what);
	return 0;
}
