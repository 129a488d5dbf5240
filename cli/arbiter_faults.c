// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline arbiter faults FILE | show | clear: runs the fault isolation service in the foreground,
 * shows the state of the service of this network namespace, or clears it.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arbiter/faults/faultd.h"
#include "base/library/systemd.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/service.h"
#include "cli/util/status.h"
#include "loader/node.h"

static struct bl_faultd *running;

static void on_signal(int sig)
{
	(void)sig;
	bl_faultd_stop(running);
}

static int run_service(const char *path, const struct service_args *service)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct bl_fp_file f;
	struct bl_err err;
	int rc;

	if (bl_fp_load(&f, path, &err))
		return cli_fail("%s", err.text);
	rc = service_drop(service, &err);
	if (!rc)
		rc = bl_faultd_new(&running, &f, &err);
	if (!rc && service_sandbox(service, BL_SERVICE_ARBITER, &err)) {
		bl_faultd_free(running);
		rc = -1;
	}
	if (!rc) {
		sigaction(SIGTERM, &act, NULL);
		sigaction(SIGINT, &act, NULL);
		sd_notify(0, "READY=1");
		if (cli.json)
			cli_json(json_pack("{s:s, s:i, s:i}", "faults", "ready", "endpoints",
					   (int)f.npeers, "paths", (int)f.paths));
		else
			printf("fault isolation for %u endpoints in %u rack%s, %u path%s\n",
			       f.npeers, f.nracks, f.nracks == 1 ? "" : "s", f.paths,
			       f.paths == 1 ? "" : "s");
		fflush(stdout);
		rc = bl_faultd_run(running, &err);
		bl_faultd_free(running);
	}
	bl_fp_free(&f);
	return rc ? cli_fail("%s", err.text) : 0;
}

/* sends @command to the service, unless it is NULL, and prints its state */
static int show_service(const char *command)
{
	static const struct col heads[] = { { "addr", "ADDRESS", 's' },
					    { "version", "VERSION", 'd' },
					    { "avoided", "AVOIDED", 'd' },
					    { "pairs", "PAIRS", 'd' },
					    { "unexplained", "UNEXPLAINED", 'd' },
					    { "boots", "BOOTS", 'd' } };
	static const struct col links[] = {
		{ "link", "LINK", 's' },         { "state", "STATE", 's' },
		{ "since_ms", "SINCE_MS", 'd' }, { "retry_ms", "RETRY_MS", 'd' },
		{ "one_of", "ONE_OF", 'd' },     { "times", "TIMES", 'd' },
		{ "lost", "LOST", 'd' },         { "sent", "SENT", 'd' }
	};
	static const struct col arbiters[] = { { "addr", "ARBITER", 's' },
					       { "answered", "ANSWERED", 'b' },
					       { "version", "VERSION", 'd' } };
	static const struct col hosts[] = { { "host", "HOST", 's' },
					    { "rack", "RACK", 'd' },
					    { "reports", "REPORTS", 'b' },
					    { "silent_ms", "SILENT_MS", 'd' } };
	char path[128];
	json_t *v, *one;

	snprintf(path, sizeof(path), BL_RUN_DIR BL_FAULTD_STATUS,
		 (unsigned long long)bl_netns_ino());
	v = status_ask_one(path, command, "fault isolation service",
			   "no fault isolation runs in this network namespace; `barline arbiter "
			   "faults FILE` starts it");
	if (!v)
		return 1;
	if (cli.json) {
		cli_json(v);
		return 0;
	}
	one = json_array();
	json_array_append(one, v);
	OUT_TABLE(stdout, one, heads);
	if (json_array_size(json_object_get(v, "links")))
		OUT_TABLE(stdout, json_object_get(v, "links"), links);
	OUT_TABLE(stdout, json_object_get(v, "arbiters"), arbiters);
	OUT_TABLE(stdout, json_object_get(v, "hosts"), hosts);
	json_decref(one);
	json_decref(v);
	return 0;
}

struct faults_args {
	const char *what; /* the file, or a word */
	struct service_args service;
};

static error_t parse_action(int key, char *arg, struct argp_state *state)
{
	struct faults_args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		/* children: the global options, and those of services */
		state->child_inputs[1] = &a->service;
		return 0;
	case ARGP_KEY_ARG:
		if (a->what)
			return ARGP_ERR_UNKNOWN;
		a->what = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->what)
			argp_error(state, "which action? The file that arbiters and hosts share, "
					  "show, or clear");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int cmd_arbiter_faults(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &service_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .parser = parse_action,
					  .args_doc = "FILE|show|clear",
					  .children = children,
					  .doc = "barline arbiter faults - fault isolation. FILE: "
						 "run the service in the foreground; hosts report "
						 "lost frames by path to it, and it reports broken "
						 "links to the arbiters of the file. show: print "
						 "links that are not good, and which arbiters and "
						 "hosts answer. clear: consider all links good.\v"
						 "STATE: broken: avoided until RETRY_MS; trial: "
						 "used again; suspect: cannot be avoided. ONE_OF: "
						 "number of links that the losses do not "
						 "distinguish." };
	struct faults_args a = { 0 };

	cmd_parse(&argp, argc, argv, &a);
	if (!strcmp(a.what, "show"))
		return show_service(NULL);
	if (!strcmp(a.what, "clear"))
		return show_service("clear\n");
	return run_service(a.what, &a.service);
}
