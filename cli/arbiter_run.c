// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline arbiter run, show: the Fastpass arbiter in the foreground, and the state of the arbiters
 * of a network namespace.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arbiter/server.h"
#include "arbiter/status.h"
#include "arbiter/alloc/alloc.h"
#include "arbiter/engine.h"
#include "base/hangup.h"
#include "base/library/systemd.h"
#include "base/number.h"
#include "cli/cmd.h"
#include "cli/util/arbiter_serve.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/reload.h"
#include "cli/util/service.h"
#include "cli/util/status.h"

enum { KEY_RANK = 300, KEY_THREADS, KEY_CPUS, KEY_SPIN };

static const struct argp_option options[] = {
	{ "rank", KEY_RANK, "N", 0,
	  "rank of this arbiter in the file, from 0 (default: that of the first address that this "
	  "machine has)",
	  0 },
	{ "threads", KEY_THREADS, "N", 0,
	  "1: one loop (default); 2: one thread for requests, one for the rest; 3: one each for "
	  "requests, allocation and paths",
	  0 },
	{ "cpus", KEY_CPUS, "LIST", 0, "CPUs of these threads, in this order, as in 2,3", 0 },
	{ "spin", KEY_SPIN, NULL, 0,
	  "never sleep: saves a microsecond of latency and occupies a core per thread", 0 },
	{ 0 }
};

struct run_args {
	const char *file; /* the configuration that arbiters and hosts share */
	int rank;         /* -1: find it by the addresses of this machine */
	unsigned int threads, ncpus;
	int cpus[2 + BL_ARB_PATHS_MAX]; /* @ncpus of them */
	bool spin;
	struct service_args service;
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_RANK, "rank", NULL, 0, BL_FP_ARBITERS_MAX - 1, struct run_args, rank),
	BL_NUMBER(KEY_THREADS, "threads", NULL, 1, 3, struct run_args, threads),
	{ 0 }
};
/* clang-format on */

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
	struct run_args *a = state->input;
	error_t err = bl_number_option(numbers, key, arg, a, state);
	int n;

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		/* children: the global options, and those of services */
		state->child_inputs[1] = &a->service;
		return 0;
	case KEY_CPUS:
		n = cli_cpus(arg, a->cpus, 2 + BL_ARB_PATHS_MAX);
		if (n < 1)
			argp_error(state,
				   "--cpus: \"%s\" is not a list of at most %d CPUs, as in 2,3",
				   arg, 2 + BL_ARB_PATHS_MAX);
		a->ncpus = (unsigned int)n;
		return 0;
	case KEY_SPIN:
		a->spin = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			return ARGP_ERR_UNKNOWN;
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			argp_error(state, "which file? Arbiters and hosts share it");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* returns the rank of the first arbiter whose address a socket can be bound to, or -1 */
static int find_rank(const struct bl_fp_file *f)
{
	unsigned int i;

	for (i = 0; i < f->narbiters; i++) {
		struct sockaddr_in6 sa = { .sin6_family = AF_INET6 };
		int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

		memcpy(&sa.sin6_addr, f->arbiter[i], 16);
		rc = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&sa, sizeof(sa));
		if (fd >= 0)
			close(fd);
		if (!rc)
			return (int)i;
	}
	return -1;
}

/* The timeslots of an ALLOC that leaves 100 us late have passed, so the arbiter needs priority. */
static void raise_priority(void)
{
	const struct sched_param p = { .sched_priority = 10 };

	if (sched_setscheduler(0, SCHED_FIFO, &p))
		cli_say("no real-time priority (%s): slots may be granted late on a busy machine",
			strerror(errno));
}

/** struct ready - argument of report_ready(). */
struct ready {
	const struct bl_fp_file *f;
	const struct service_args *service;
};

static void report_ready(void *ctx)
{
	const struct ready *r = ctx;
	const struct bl_fp_file *f = r->f;
	struct bl_err err;

	/* The threads are covered, and those that start later. */
	if (service_sandbox(r->service, BL_SERVICE_ARBITER, &err)) {
		cli_fail("%s", err.text);
		exit(1);
	}
	sd_notify(0, "READY=1");
	if (cli.json)
		cli_json(json_pack("{s:s, s:i, s:i}", "arbiter", "ready", "endpoints",
				   (int)f->npeers, "slot_ns", (int)f->slot_ns));
	else
		printf("arbiter of %u endpoints in %u rack%s, slots of %u ns, %s\n", f->npeers,
		       f->nracks, f->nracks == 1 ? "" : "s", f->slot_ns,
		       bl_alloc_policy_name((enum bl_alloc_policy)f->policy));
	fflush(stdout);
}

int cmd_arbiter_run(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &service_argp, 0, NULL, 0 },
						      { 0 } };
	const struct argp argp = { .options = options,
				   .parser = parse_run,
				   .args_doc = "FILE",
				   .children = children,
				   .doc = "barline arbiter run - run a Fastpass arbiter, which "
					  "grants timeslots and paths to the hosts of FILE, in the "
					  "foreground\v"
					  "All arbiters and hosts need the same FILE (barlined: "
					  "admission: { policy: fastpass, fastpass: FILE })." };
	struct run_args a = { .rank = -1, .threads = 1 };
	struct bl_arb_cfg how = { 0 };
	struct bl_fp_file f;
	struct ready ready = { .f = &f, .service = &a.service };
	struct bl_err err;
	int rc;

	/* A SIGHUP during the start waits, and has the file read again. */
	bl_hangup_block();
	cmd_parse(&argp, argc, argv, &a);
	if (bl_fp_load(&f, a.file, &err))
		return cli_usage("%s", err.text);
	if (a.service.check) {
		bl_fp_free(&f);
		return service_checked(a.file);
	}
	if (a.rank < 0)
		a.rank = find_rank(&f);
	if (a.rank < 0) {
		bl_fp_free(&f);
		return cli_fail("this machine has none of the addresses of %s's arbiters", a.file);
	}
	how.threads = a.threads;
	how.ncpus = a.ncpus;
	memcpy(how.cpus, a.cpus, sizeof(how.cpus));
	how.spin = a.spin;
	if (!a.spin)
		raise_priority();
	if (service_drop(&a.service, &err)) {
		bl_fp_free(&f);
		return cli_fail("%s", err.text);
	}
	rc = arb_serve(&f, (unsigned int)a.rank, &how, a.file, report_ready, &ready);
	bl_fp_free(&f);
	return rc;
}

int cmd_arbiter_reload(int argc, char **argv)
{
	static const char doc[] = "barline arbiter reload - have the arbiters of this network "
				  "namespace read their "
				  "files again, and wait for the result\vAll that is different is "
				  "applied, or "
				  "nothing: most of the file takes a restart, since hosts have the "
				  "same file. "
				  "docs/fastpass.md lists what changes how.";

	return reload_command(argc, argv, doc, "arbiter",
			      "no arbiter runs in this network namespace; `barline arbiter run "
			      "FILE` starts one");
}

/* ---- show ---- */

int cmd_arbiter_show(int argc, char **argv)
{
	static const struct argp argp = { .children = cmd_globals,
					  .doc = "barline arbiter show - the arbiters of this "
						 "network namespace: which one is primary, and the "
						 "session of each endpoint" };
	static const struct col heads[] = {
		{ "rank", "RANK", 'd' },       { "addr", "ADDRESS", 's' },
		{ "state", "STATE", 's' },     { "term", "TERM", 'd' },
		{ "policy", "POLICY", 's' },   { "granted", "GRANTED", 'd' },
		{ "late", "LATE", 'd' },       { "stale", "STALE", 'd' },
		{ "skipped", "SKIPPED", 'd' }, { "takeovers", "TAKEOVERS", 'd' },
		{ "stalls", "STALLS", 'd' },   { "unknown", "REFUSED", 's' }
	};
	static const struct col cols[] = {
		{ "endpoint", "ENDPOINT", 's' }, { "addr", "ADDRESS", 's' },
		{ "rack", "RACK", 'd' },         { "session", "SESSION", 'b' },
		{ "waiting", "WAITING", 'd' },   { "granted", "GRANTED", 'd' },
		{ "capped", "CAPPED", 'd' },     { "resets", "RESETS", 'd' },
		{ "lost_packets", "LOST", 'd' }
	};
	json_t *all, *one;
	size_t i;

	cmd_parse(&argp, argc, argv, NULL);
	all = status_ask_each("arbiter", NULL);
	if (!json_array_size(all)) {
		json_decref(all);
		return status_none("arbiter", "arbiter",
				   "no arbiter runs in this network namespace; `barline arbiter "
				   "run "
				   "FILE` starts one");
	}
	if (cli.json) {
		cli_json(json_pack("{s:o}", "arbiters", all));
		return 0;
	}
	OUT_TABLE(stdout, all, heads);
	json_array_foreach(all, i, one)
	{
		const char *state = json_string_value(json_object_get(one, "state"));

		if (!strcmp(state, "primary"))
			OUT_TABLE(stdout, json_object_get(one, "endpoints"), cols);
	}
	json_decref(all);
	return 0;
}
