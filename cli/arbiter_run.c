// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline arbiter run, show: the Fastpass arbiter in the foreground, and what the arbiters of a
 * network namespace say about themselves.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <errno.h>
#include <glob.h>
#include <ifaddrs.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "arbiter/engine.h"
#include "arbiter/server.h"
#include "arbiter/status.h"
#include "bench/arbiter/arbiter.h"
#include "cli/util/cmd.h"
#include "maps/meta_abi.h"
#include "base/status_socket.h"

enum { KEY_RANK = 300, KEY_THREADS, KEY_CPUS, KEY_SPIN };

static const struct argp_option options[] = {
	{ "rank", KEY_RANK, "N", 0,
	  "which of the file's arbiters this one is, from 0 (default: the one whose address this "
	  "machine has)",
	  0 },
	{ "threads", KEY_THREADS, "N", 0,
	  "1: one loop (default); 2: requests, and the rest; 3: requests, allocation, paths", 0 },
	{ "cpus", KEY_CPUS, "LIST", 0, "where these threads run, in this order, as 2,3", 0 },
	{ "spin", KEY_SPIN, NULL, 0,
	  "never sleep: a microsecond less of latency for a core per thread", 0 },
	{ 0 }
};

struct run_args {
	const char *file;
	int rank;
	unsigned int threads, ncpus;
	int cpus[2 + BL_ARB_PATHS_MAX];
	bool spin;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run_args *a = state->input;
	long long v;

	switch (key) {
	case KEY_RANK:
		if (!cli_number(arg, 0, BL_FP_ARBITERS_MAX - 1, &v))
			argp_error(state, "rank \"%s\" is not a number from 0 to %d", arg,
				   BL_FP_ARBITERS_MAX - 1);
		a->rank = (int)v;
		return 0;
	case KEY_THREADS:
		if (!cli_number(arg, 1, 3, &v))
			argp_error(state, "threads \"%s\" is not 1, 2 or 3", arg);
		a->threads = (unsigned int)v;
		return 0;
	case KEY_CPUS:
		v = cli_cpus(arg, a->cpus, 2 + BL_ARB_PATHS_MAX);
		if (v < 1)
			argp_error(state, "cpus \"%s\" is not a list of at most %d CPUs, as 2,3",
				   arg, 2 + BL_ARB_PATHS_MAX);
		a->ncpus = (unsigned int)v;
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
			argp_error(state, "which file? It is the one that the hosts have, too");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* the first address of the list that a socket can be bound to */
static int rank_here(const struct bl_fp_file *f)
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

/* the interface that has the address: where the other arbiters are heard */
static int group_interface(struct bl_arb_cfg *c, const uint8_t addr[16], struct bl_err *err)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)addr), found = false;
	struct ifaddrs *list = NULL, *a;
	char text[INET6_ADDRSTRLEN];

	if (getifaddrs(&list))
		return bl_fail(err, errno, "cannot list the addresses of this machine: %s",
			       strerror(errno));
	for (a = list; a && !found; a = a->ifa_next) {
		if (!a->ifa_addr || a->ifa_addr->sa_family != (v4 ? AF_INET : AF_INET6))
			continue;
		found = v4 ? !memcmp(&((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr,
				     addr + 12, 4)
			   : !memcmp(&((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr, addr,
				     16);
		if (found)
			snprintf(c->group_if, sizeof(c->group_if), "%s", a->ifa_name);
	}
	freeifaddrs(list);
	return found ? 0
		     : bl_fail(err, EADDRNOTAVAIL, "no interface has the arbiter's address %s",
			       bl_fp_addr_text(addr, text));
}

static struct bl_arb *running;

static void on_signal(int sig)
{
	(void)sig;
	bl_arb_stop(running);
}

int arb_serve(const struct bl_fp_file *f, unsigned int rank, const struct bl_arb_cfg *how,
	      void (*ready)(void *), void *ctx)
{
	struct bl_arb_cfg c = *how;
	struct sigaction act = { .sa_handler = on_signal };
	struct bl_arb_status *door = NULL;
	struct bl_engine *e = NULL;
	struct bl_arb *a = NULL;
	struct bl_err err;
	int rc;

	rc = bl_arb_cfg_of(&c, f, rank, &err);
	if (!rc && f->has_group && !*c.group_if)
		rc = group_interface(&c, f->arbiter[rank], &err);
	if (!rc)
		rc = bl_engine_new(&e, f, &err);
	c.links = bl_engine_links;
	c.links_ctx = e;
	if (!rc)
		rc = bl_arb_new(&a, &c, bl_engine_ops(e), bl_engine_alloc(e), bl_engine_path_ops(e),
				bl_engine_paths(e), &err);
	if (!rc)
		rc = bl_arb_serve(&door, a, f, e, rank, &err);
	if (!rc) {
		running = a;
		sigaction(SIGTERM, &act, NULL);
		sigaction(SIGINT, &act, NULL);
		/* a page fault costs more than a slot */
		if (mlockall(MCL_CURRENT | MCL_FUTURE))
			cli_say("the arbiter's memory cannot be locked: %s", strerror(errno));
		if (ready)
			ready(ctx);
		rc = bl_arb_run(a, &err);
	}
	bl_arb_serve_end(door);
	bl_arb_free(a);
	bl_engine_free(e);
	bl_arb_cfg_free(&c);
	return rc ? cli_fail("%s", err.text) : 0;
}

/* an ALLOC that leaves 100 us late is an ALLOC for nothing */
static void hurry(void)
{
	const struct sched_param p = { .sched_priority = 10 };

	if (sched_setscheduler(0, SCHED_FIFO, &p))
		cli_say("no real-time priority (%s): slots may be given late on a busy machine",
			strerror(errno));
}

static void tell(void *ctx)
{
	const struct bl_fp_file *f = ctx;

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
	const struct argp argp = { .options = options,
				   .parser = parse,
				   .args_doc = "FILE",
				   .children = cmd_globals,
				   .doc = "Run a Fastpass arbiter in the foreground: it gives "
					  "timeslots and paths to the hosts of FILE.\vThe same "
					  "FILE goes to all "
					  "arbiters and hosts (barlined: admission: { policy: "
					  "fastpass, fastpass: FILE })." };
	struct run_args a = { .rank = -1, .threads = 1 };
	struct bl_arb_cfg how = { 0 };
	struct bl_fp_file f;
	struct bl_err err;
	int rc;

	cmd_parse(&argp, argc, argv, &a);
	if (bl_fp_load(&f, a.file, &err))
		return cli_fail("%s", err.text);
	if (a.rank < 0)
		a.rank = rank_here(&f);
	if (a.rank < 0) {
		bl_fp_free(&f);
		return cli_fail("this machine has none of the addresses of %s's arbiters", a.file);
	}
	how.threads = a.threads;
	how.ncpus = a.ncpus;
	memcpy(how.cpus, a.cpus, sizeof(how.cpus));
	how.spin = a.spin;
	if (!a.spin)
		hurry();
	rc = arb_serve(&f, (unsigned int)a.rank, &how, tell, &f);
	bl_fp_free(&f);
	return rc;
}

/* ---- show ---- */

json_t *arb_ask(const char *path, const char *orders)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = 3 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	json_t *v = NULL;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		if (!orders ||
		    send(fd, orders, strlen(orders), MSG_NOSIGNAL) == (ssize_t)strlen(orders)) {
			shutdown(fd, SHUT_WR);
			v = json_loadfd(fd, 0, NULL);
		}
	}
	if (fd >= 0)
		close(fd);
	return v;
}

json_t *arb_ask_each(const char *door, const char *orders)
{
	json_t *all = json_array();
	char pattern[128];
	glob_t g;
	size_t i;

	snprintf(pattern, sizeof(pattern), BL_RUN_DIR "/%s-%llu-*.sock", door,
		 (unsigned long long)bl_netns_ino());
	bl_status_sockets_clean(pattern, false, NULL, NULL); /* of those that were killed */
	if (!glob(pattern, 0, NULL, &g)) {
		for (i = 0; i < g.gl_pathc; i++) {
			json_t *one = arb_ask(g.gl_pathv[i], orders);

			if (one)
				json_array_append_new(all, one);
		}
		globfree(&g);
	}
	return all;
}

int cmd_arbiter_show(int argc, char **argv)
{
	static const struct argp argp = { .children = cmd_globals,
					  .doc = "What the arbiters of this network namespace say: "
						 "who rules, and the session of each endpoint" };
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
	all = arb_ask_each("arbiter", NULL);
	if (!json_array_size(all)) {
		json_decref(all);
		return cli_fail("no arbiter runs in this network namespace; `barline arbiter run "
				"FILE` starts one");
	}
	if (cli.json) {
		cli_json(json_pack("{s:o}", "arbiters", all));
		return 0;
	}
	OUT_TABLE(stdout, all, heads);
	json_array_foreach(all, i,
			   one) if (!strcmp(json_string_value(json_object_get(one, "state")), "prim"
											      "ar"
											      "y"))
		OUT_TABLE(stdout, json_object_get(one, "endpoints"), cols);
	json_decref(all);
	return 0;
}
