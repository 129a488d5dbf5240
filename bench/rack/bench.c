/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The measurement of `barline lab run rack`, and barline bench: the same on a lab that is up or
 * among endpoints of this host, and latency to a peer on a real rack.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"
#include "base/proc.h"
#include "bench/rack/peer.h"
#include "bench/traffic/link_drops.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "lab/lab.h"
#include "lab/link_loss.h"
#include "maps/host_abi.h"

enum {
	KEY_DURATION = 300,
	KEY_SIZE,
	KEY_BATCH,
	KEY_RING,
	KEY_SAMPLES,
	KEY_V6,
	KEY_RELIABLE,
	KEY_GROUP,
	KEY_GROUP_S,
	KEY_OUT
};

const struct bench_params bench_defaults = {
	.duration_s = 5, .size = 64, .batch = 32, .lat_samples = 4000, .group_s = 3
};

static const struct argp_option bench_options[] = {
	{ "duration", KEY_DURATION, "S", 0, "seconds of all-to-all (default 5)", 0 },
	{ "size", KEY_SIZE, "BYTES", 0, "size of each message, 8 to 65536 (default 64)", 0 },
	{ "batch", KEY_BATCH, "N", 0, "broadcasts per flush, 1 to 1024 (default 32)", 0 },
	{ "ring", KEY_RING, "BYTES", 0, "ring of each endpoint, a power of two (default 524288)",
	  0 },
	{ "samples", KEY_SAMPLES, "N", 0,
	  "messages per latency mode, 0: no latency phase (default 4000)", 0 },
	{ "group", KEY_GROUP, "RATE", 0,
	  "afterwards, every endpoint broadcasts RATE messages per second, independent of what it "
	  "receives; latency beside plain UDP (default: not done)",
	  0 },
	{ "group-duration", KEY_GROUP_S, "S", 0, "duration of --group (default 3)", 0 },
	{ "ipv6", KEY_V6, NULL, 0, "endpoints on IPv6 addresses", 0 },
	{ "reliable", KEY_RELIABLE, NULL, 0,
	  "use the reliable stream: all receivers deliver, or none", 0 },
	{ "out", KEY_OUT, "DIR", 0,
	  "write summary.json, latency.csv, latency.png and the first delivered messages of each "
	  "receiver to this directory",
	  0 },
	{ 0 }
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_DURATION, "duration", "s", 0.1, 86400, struct bench_params, duration_s),
	BL_NUMBER(KEY_SIZE, "size", "bytes", 8, 65536, struct bench_params, size),
	BL_NUMBER(KEY_BATCH, "batch", NULL, 1, 1024, struct bench_params, batch),
	BL_NUMBER_POWER_OF_TWO(KEY_RING, "ring", "bytes", BL_RING_BYTES_MIN, BL_RING_BYTES_MAX,
			       struct bench_params, ring_bytes),
	BL_NUMBER(KEY_SAMPLES, "samples", NULL, 0, BENCH_LAT_MAX, struct bench_params, lat_samples),
	BL_NUMBER(KEY_GROUP, "group", "messages/s", 1, 100000, struct bench_params, group_rate),
	BL_NUMBER(KEY_GROUP_S, "group-duration", "s", 0.1, 3600, struct bench_params, group_s),
	{ 0 }
};
/* clang-format on */

static error_t parse_bench(int key, char *arg, struct argp_state *state)
{
	struct bench_params *p = state->input;
	error_t err = bl_number_option(numbers, key, arg, p, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case KEY_V6:
		p->ipv6 = true;
		return 0;
	case KEY_RELIABLE:
		p->reliable = true;
		return 0;
	case KEY_OUT:
		p->out = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp bench_argp = { .options = bench_options, .parser = parse_bench };

static uint64_t beacon_interval(void)
{
	struct bl_node_ref *refs = NULL;
	struct bl_host_cfg cfg;
	struct bl_err err;
	uint64_t ns = 100000;
	int n = bl_nodes_find(&refs, 0, &err), i;

	for (i = 0; i < n; i++)
		if (refs[i].role == BL_ROLE_HOST &&
		    !node_value(&refs[i], BL_MAP_HOST_CFG, 0, &cfg, sizeof(cfg)) && cfg.beacon_ns) {
			ns = cfg.beacon_ns;
			break;
		}
	free(refs);
	return ns;
}

int bench_drive(unsigned int n, const char *netns_dir, const struct bench_params *p,
		bool throughput, bool latency)
{
	struct bench_ctl *ctl = bench_new(n, p);
	struct link_drops *links;
	struct link_loss *loss = NULL;
	json_t *res = json_object();
	char path[128];
	unsigned int i;
	int err = 0, order = 0;

	if (!ctl)
		return 1;
	ctl->beacon_ns = beacon_interval();
	links = link_drops_begin(netns_dir);
	for (i = 0; !err && i < n; i++) {
		if (netns_dir)
			snprintf(path, sizeof(path), "%s/h%u", netns_dir, i + 1);
		err = bench_spawn(ctl, i, netns_dir ? path : NULL);
	}
	if (!err)
		err = bench_wait_ready(ctl);
	if (!err && p->loss > 0) {
		loss = link_loss_begin(p->loss);
		err = !loss;
	}
	json_object_set_new(res, "endpoints", json_integer(n));
	json_object_set_new(res, "size", json_integer(p->size));
	json_object_set_new(res, "beacon_ns", json_integer((json_int_t)ctl->beacon_ns));
	if (!err && throughput)
		order = bench_throughput(ctl, res);
	if (!err && latency && json_object_get(res, throughput ? "order" : "size"))
		err = bench_latency(ctl, res);
	if (!err && p->group_rate && json_object_get(res, throughput ? "order" : "size"))
		err = bench_group(ctl, res);
	if (loss)
		json_object_set_new(res, "loss",
				    json_pack("{s:f, s:I}", "probability", p->loss, "frames",
					      (json_int_t)link_loss_end(loss)));
	bench_drops(res);
	link_drops_end(links, json_object_get(res, "drops"));
	order |= bench_missing(res);
	bench_end(ctl);
	if (json_object_get(res, "order") || json_object_get(res, "latency") ||
	    json_object_get(res, "group"))
		err |= bench_report(ctl, res);
	json_decref(res);
	bench_free(ctl);
	return err || order;
}

struct bench_args {
	struct bench_params p;
	const char *lab;
	long long endpoints;
	struct peer_args peer;
	bool latency_only;
};

enum { KEY_PEER = 400, KEY_PEER_UDP, KEY_SERVE };

static const struct argp_option where_options[] = {
	{ "lab", 'l', "NAME", 0, "among the hosts of this lab (see barline lab list)", 0 },
	{ "endpoints", 'e', "N", 0,
	  "among this number of endpoints on this host, 2 to 64 (default 2)", 0 },
	{ 0 }
};
static const struct argp_option latency_options[] = {
	{ "lab", 'l', "NAME", 0, "among the hosts of this lab (see barline lab list)", 0 },
	{ "endpoints", 'e', "N", 0,
	  "among this number of endpoints on this host, 2 to 64 (default 2)", 0 },
	{ "serve", KEY_SERVE, NULL, 0,
	  "answer the messages of a `bench latency --peer` on another machine, and UDP packets",
	  0 },
	{ "peer", KEY_PEER, "ADDR", 0,
	  "measure half the round trip to the endpoint of a `bench latency --serve`, in order", 0 },
	{ "peer-udp", KEY_PEER_UDP, "ADDR", 0,
	  "the same over plain UDP; ADDR is the IP:PORT that --serve prints", 0 },
	{ 0 }
};

/* clang-format off */
static const struct bl_number where_numbers[] = {
	BL_NUMBER('e', "endpoints", NULL, 2, BENCH_MAX, struct bench_args, endpoints),
	{ 0 }
};
/* clang-format on */

static error_t parse_where(int key, char *arg, struct argp_state *state)
{
	struct bench_args *a = state->input;
	error_t err = bl_number_option(where_numbers, key, arg, a, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &a->p;
		return 0;
	case 'l':
		a->lab = arg;
		return 0;
	case KEY_SERVE:
		a->peer.serve = true;
		return 0;
	case KEY_PEER:
	case KEY_PEER_UDP:
		if (bl_addr_parse(&a->peer.to, arg))
			argp_error(state, "address \"%s\" is not IP:PORT or [IPv6]:PORT", arg);
		a->peer.ask = true;
		a->peer.udp = key == KEY_PEER_UDP;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static int drive_lab(const struct bench_args *a, bool throughput, bool latency)
{
	int pidfd = -1, st;
	pid_t pid;
	json_t *info = lab_ask(a->lab, &pidfd, &pid);
	unsigned int hosts = (unsigned int)json_integer_value(json_object_get(info, "hosts"));
	char said[256];

	json_decref(info);
	if (!hosts)
		return pidfd < 0 ? 1
				 : cli_fail("lab \"%s\" may be starting still: %s", a->lab,
					    bl_proc_silence(said, sizeof(said), "lab's process",
							    pid, LAB_WAIT_MS));
	if (hosts < 2)
		return cli_fail("lab \"%s\" has one host only", a->lab);
	if (lab_enter(pidfd, a->lab, NULL))
		return 1;
	close(pidfd);
	pid = fork(); /* setns(2) moves only children into the pid namespace */
	if (pid < 0)
		return cli_fail("cannot fork inside the lab: %s", strerror(errno));
	if (pid == 0) {
		st = bench_drive(hosts, LAB_NETNS_DIR, &a->p, throughput, latency);
		fflush(NULL);
		_exit(st);
	}
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(st) ? WEXITSTATUS(st)
			     : cli_fail("the driver died of signal %d", WTERMSIG(st));
}

static int run_bench(int argc, char **argv, const struct argp_option *options, const char *doc,
		     bool latency_only)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &bench_argp, 0, NULL, 0 },
						      { 0 } };
	const struct argp argp = {
		.options = options, .parser = parse_where, .children = children, .doc = doc
	};
	struct bench_args a = { .p = bench_defaults, .endpoints = 2 };

	cmd_parse(&argp, argc, argv, &a);
	if (a.peer.serve)
		return peer_serve(&a.p);
	if (a.peer.ask)
		return peer_ask(&a.p, &a.peer);
	if (latency_only && !a.p.lat_samples)
		return cli_usage("--samples 0: without samples there is no latency to measure");
	if (a.lab)
		return drive_lab(&a, !latency_only, latency_only);
	return bench_drive((unsigned int)a.endpoints, NULL, &a.p, !latency_only, latency_only);
}

int bench_all_main(int argc, char **argv)
{
	return run_bench(argc, argv, where_options,
			 "barline bench all-to-all - let endpoints broadcast to all, check that "
			 "all "
			 "saw one order, measure throughput",
			 false);
}

int bench_latency_main(int argc, char **argv)
{
	return run_bench(argc, argv, latency_options,
			 "barline bench latency - one-way latency of ordered messages beside plain "
			 "UDP",
			 true);
}
