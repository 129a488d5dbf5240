// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline controller run FILE, show controller, show failures, show epochs: the failure controller
 * of reliable 1Pipe in the foreground, and the state of the controllers of a network namespace.
 * Which nodes it admits is in cli/controller_nodes.c.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/event.h"
#include "base/hangup.h"
#include "base/library/systemd.h"
#include "base/status_socket.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/reload.h"
#include "cli/util/service.h"
#include "cli/util/status.h"
#include "controller/server.h"
#include "loader/node.h"
#include "maps/meta_abi.h"

static struct bl_ctl *running;

static void on_signal(int sig)
{
	(void)sig;
	bl_ctl_stop(running);
}

/** struct run_args - Arguments of `controller run`. */
struct run_args {
	const char *file;
	struct service_args service;
};

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
	struct run_args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		/* children: the global options, and those of services */
		state->child_inputs[1] = &a->service;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			return ARGP_ERR_UNKNOWN;
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			argp_error(state, "which file? It names the address to listen on, and the "
					  "store");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* A session takes a descriptor, and a rack has thousands of nodes. */
static void raise_descriptors(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int cmd_controller_run(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &service_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .parser = parse_run,
					  .args_doc = "FILE",
					  .children = children,
					  .doc = "barline controller run - run a failure "
						 "controller of reliable 1Pipe in the foreground. "
						 "Several may share an etcd; one of them leads.\v"
						 "FILE is YAML: listen: 10.0.0.1:61693, and one "
						 "store: sqlite: FILE, or etcd: { endpoints: "
						 "[https://10.0.0.1:2379, ...], ca, cert, key }; "
						 "tls: { ca, cert, key } (`barline pki` makes the "
						 "files), or insecure: true; nodes: [{ id: 1, "
						 "name: "
						 "h1 }, ...], or `barline controller admit`; "
						 "optional: settle_us, answer_ms, grace_ms, "
						 "silence_ms, stuck_ms. Daemons name it under "
						 "controllers: [10.0.0.1:61693, ...]." };
	struct sigaction act = { .sa_handler = on_signal };
	struct run_args a = { 0 };
	struct bl_ctl_cfg cfg;
	struct bl_err err;
	int rc;

	/* A SIGHUP during the start waits, and has the file read again. */
	bl_hangup_block();
	cmd_parse(&argp, argc, argv, &a);
	if (bl_ctl_config_load(&cfg, a.file, &err))
		return cli_usage("%s", err.text);
	if (a.service.check) {
		bl_ctl_config_free(&cfg);
		return service_checked(a.file);
	}
	raise_descriptors();
	rc = service_drop(&a.service, &err);
	if (!rc)
		rc = bl_ctl_new(&running, &cfg, &err);
	bl_ctl_config_free(&cfg);
	bl_event_role("controller");
	if (!rc)
		rc = bl_ctl_reloads(running, a.file, &err);
	if (rc) {
		bl_ctl_free(running);
		return cli_fail("%s", err.text);
	}
	if (service_sandbox(&a.service, BL_SERVICE_CONTROLLER, &err)) {
		bl_ctl_free(running);
		return cli_fail("%s", err.text);
	}
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	sd_notify(0, "READY=1");
	if (cli.json)
		cli_json(json_pack("{s:s, s:s}", "controller", "ready", "listen", cfg.listen));
	else
		printf("controller at %s, store in %s\n", cfg.listen,
		       *cfg.sqlite ? cfg.sqlite : "etcd");
	fflush(stdout);
	rc = bl_ctl_run(running, &err);
	bl_ctl_free(running);
	return rc ? cli_fail("%s", err.text) : 0;
}

int cmd_controller_reload(int argc, char **argv)
{
	static const char doc[] = "barline controller reload - have the controllers of this "
				  "network namespace read "
				  "their files again, and wait for the result\vAll that is "
				  "different is applied, or "
				  "nothing: if a difference takes a restart, or the file is wrong, "
				  "the controller "
				  "goes on as before. docs/controller.md lists what changes how.";

	return reload_command(argc, argv, doc, "controller",
			      "no controller runs in this network namespace; `barline controller "
			      "run FILE` starts one");
}

/* ---- show ---- */

/* Returns the state of all controllers of this namespace, or NULL after a message. */
static json_t *ask_controllers(void)
{
	json_t *all = status_ask_each("controller", NULL);

	if (json_array_size(all))
		return all;
	json_decref(all);
	status_none("controller", "controller",
		    "no controller runs in this network namespace; `barline controller run FILE` "
		    "starts one");
	return NULL;
}

/* Returns the state of the leading controller of this namespace, or NULL after a message. */
static json_t *ask_leader(void)
{
	json_t *all = ask_controllers(), *one, *leader = NULL;
	const char *where = "", *trouble = "";
	size_t i;

	if (!all)
		return NULL;
	json_array_foreach(all, i, one)
	{
		if (!strcmp(json_string_value(json_object_get(one, "state")), "leader"))
			leader = json_incref(one);
		where = json_string_value(json_object_get(one, "leader"));
		trouble = json_string_value(json_object_get(one, "trouble"));
	}
	if (!leader)
		cli_fail(*trouble ? "no controller of this network namespace leads: %s"
			 : *where ? "no controller of this network namespace leads; %s does"
				  : "no controller leads%s",
			 *trouble ? trouble : where);
	json_decref(all);
	return leader;
}

static error_t refuse_args(int key, char *arg, struct argp_state *state)
{
	(void)arg, (void)state;
	return key == ARGP_KEY_ARG ? ARGP_ERR_UNKNOWN : 0;
}

int cmd_controller_show(int argc, char **argv)
{
	static const struct argp argp = { .parser = refuse_args,
					  .children = cmd_globals,
					  .doc = "The controllers of this network namespace: which "
						 "one leads, and the nodes it knows.\v"
						 "STATE of a node: ok; away: no session, which "
						 "matters only when it has to answer; down: did "
						 "not answer, and is about to be announced as "
						 "failed; failed: announced, and has not joined "
						 "again; no link: joined, but no link to it is "
						 "live yet; no agent: known from its neighbours "
						 "only; never seen: admitted, but it never had a "
						 "session. ADMITTED: by the file of the "
						 "controller, "
						 "or by a command. The last table has strangers: "
						 "nodes that are not admitted and say HELLO all "
						 "the "
						 "same. REFUSED: sessions that ended by an error, "
						 "and messages that were refused; -j has counts by "
						 "reason." };
	static const struct col heads[] = {
		{ "addr", "ADDRESS", 's' },    { "state", "STATE", 's' },
		{ "epoch", "EPOCH", 'd' },     { "leader", "LEADER", 's' },
		{ "store", "STORE", 's' },     { "sessions", "SESSIONS", 'd' },
		{ "refused", "REFUSED", 'd' }, { "trouble", "TROUBLE", 's' }
	};
	static const struct col nodes[] = {
		{ "name", "NODE", 's' },        { "node", "ID", 'd' },
		{ "role", "ROLE", 's' },        { "state", "STATE", 's' },
		{ "addr", "SESSION", 's' },     { "epoch", "EPOCH", 'd' },
		{ "ports", "PORTS", 'd' },      { "silent", "SILENT", 'd' },
		{ "barred", "BARRED", 'd' },    { "endpoints", "ENDPOINTS", 'd' },
		{ "failure", "FAILURE", 'd' },  { "why", "WHY", 's' },
		{ "admitted", "ADMITTED", 's' }
	};
	static const struct col strangers[] = { { "name", "STRANGER", 's' },
						{ "node", "ID", 'd' },
						{ "addr", "SESSION", 's' },
						{ "times", "TIMES", 'd' },
						{ "ago_ns", "AGO", 't' } };
	json_t *all, *one;
	size_t i;

	cmd_parse(&argp, argc, argv, NULL);
	all = ask_controllers();
	if (!all)
		return 1;
	if (cli.json) {
		json_array_foreach(all, i, one)
		{
			json_object_del(one, "failures");
			json_object_del(one, "epochs");
		}
		cli_json(json_pack("{s:o}", "controllers", all));
		return 0;
	}
	OUT_TABLE(stdout, all, heads);
	json_array_foreach(all, i, one) if (json_array_size(json_object_get(one, "nodes")))
		OUT_TABLE(stdout, json_object_get(one, "nodes"), nodes);
	json_array_foreach(all, i, one) if (json_array_size(json_object_get(one, "strangers")))
		OUT_TABLE(stdout, json_object_get(one, "strangers"), strangers);
	json_decref(all);
	return 0;
}

/* adds the member "at" to all rows, as in "2026-11-21T15:04:05Z" */
static void add_times(json_t *rows)
{
	json_t *one;
	size_t i;

	json_array_foreach(rows, i, one)
	{
		time_t at =
			(time_t)(json_integer_value(json_object_get(one, "unix_ns")) / 1000000000);
		char text[32] = "";
		struct tm tm;

		if (at && gmtime_r(&at, &tm))
			strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
		json_object_set_new(one, "at", json_string(text));
	}
}

static int print_leader_rows(const char *key, const struct col *cols, size_t ncols,
			     const char *none)
{
	json_t *leader = ask_leader(), *rows;

	if (!leader)
		return 1;
	rows = json_incref(json_object_get(leader, key));
	json_decref(leader);
	add_times(rows);
	return out_rows(key, rows, cols, ncols, none);
}

int cmd_controller_failures(int argc, char **argv)
{
	static const struct argp argp = { .parser = refuse_args,
					  .children = cmd_globals,
					  .doc = "Failures that the controller announced, and how "
						 "long each step took, as far as the present "
						 "leader observed it.\v"
						 "WHY: left: a process ended by bl_exit() with "
						 "nothing unacknowledged, so no node waits; died; "
						 "in_flight, window, ring: the process was "
						 "excluded because it delayed others; unreachable; "
						 "cut-off, down, torn: its host failed. STEP: "
						 "saving: waits for the store; announced: hosts "
						 "write the failure into the page that their "
						 "processes read; resumed: inputs are resumed; "
						 "finished. WAITS: nodes that have not answered. "
						 "-j has failure timestamps, lives, inputs with "
						 "their last commit, and the nodes that have not "
						 "answered." };
	static const struct col cols[] = { { "number", "NUMBER", 'd' },
					   { "epoch", "EPOCH", 'd' },
					   { "at", "AT", 's' },
					   { "who", "WHO", 's' },
					   { "why", "WHY", 's' },
					   { "step", "STEP", 's' },
					   { "waits", "WAITS", 'd' },
					   { "determine_ns", "DETERMINE", 't' },
					   { "save_ns", "SAVE", 't' },
					   { "collect_ns", "COLLECT", 't' },
					   { "resume_ns", "RESUME", 't' },
					   { "total_ns", "TOTAL", 't' } };

	cmd_parse(&argp, argc, argv, NULL);
	return print_leader_rows("failures", cols, sizeof(cols) / sizeof(cols[0]), "no failures");
}

int cmd_controller_epochs(int argc, char **argv)
{
	static const struct argp argp = { .parser = refuse_args,
					  .children = cmd_globals,
					  .doc = "Which controllers led, and with which epoch: the "
						 "last 64 elections" };
	static const struct col cols[] = { { "epoch", "EPOCH", 'd' },
					   { "leader", "LEADER", 's' },
					   { "at", "SINCE", 's' } };

	cmd_parse(&argp, argc, argv, NULL);
	return print_leader_rows("epochs", cols, sizeof(cols) / sizeof(cols[0]),
				 "no controller has led yet");
}
