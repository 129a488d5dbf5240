/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline switch|host up, detach; barline clean. `up` does what barlined does; options override the
 * YAML file.
 */
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "loader/admission/admission_argp.h"
#include "base/number.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "loader/config.h"
#include "loader/config_clock.h"
#include "loader/load/chain.h"

/**
 * struct node_args - Options of `up`. The command line is parsed twice, so that options override
 * the file wherever --config stands.
 */
struct node_args {
	struct bl_node_cfg cfg;
	bool config_pass; /* the first pass, which only loads the file */
	bool detach;      /* remove programs and pins at the end */
};

enum {
	KEY_BEACON = 256,
	KEY_DEAD,
	KEY_LAG,
	KEY_BOUND,
	KEY_SOURCE,
	KEY_MAX_BOUND,
	KEY_VOID,
	KEY_BASE,
	KEY_COUNT,
	KEY_GENERIC,
	KEY_REPLACE,
	KEY_ID,
	KEY_DETACH,
	KEY_NO_AHEAD,
	KEY_REALTIME,
	KEY_SKEW,
	KEY_CLOCK_BASE,
	KEY_NO_BEACONS,
	KEY_CPUS,
	KEY_L2,
	KEY_FDB,
	KEY_THREAD,
	KEY_ONE_LANE,
	KEY_HOST_PORT,
	KEY_UP_PORT,
	KEY_DOWN_PORT,
	KEY_CARETAKER,
	KEY_LIMIT,
	KEY_SEND_LIMIT,
	KEY_CHAIN,
	KEY_XDP,
	KEY_ACCEPT,
	KEY_ONE_QUEUE
};

/* the long names are those of barlined */
static const struct argp_option common_options[] = {
	{ "config", 'c', "FILE", 0, "YAML file as for barlined; options override it", 0 },
	{ "name", 'N', "NAME", 0, "name of this node in output", 0 },
	{ "node-id", KEY_ID, "N", 0, "number of this node in beacons (default: random)", 0 },
	{ "beacon-us", KEY_BEACON, "US", 0, "beacon interval (default 100)", 0 },
	{ "dead-after-us", KEY_DEAD, "US", 0,
	  "exclude a link that is silent for this time (default: 10 beacon intervals)", 0 },
	{ "lag-max-us", KEY_LAG, "US", 0,
	  "switch: exclude an input that sends frames, but whose barrier lags by more than this "
	  "(default: 10 times --dead-after-us, at least 50000)",
	  0 },
	{ "realtime", KEY_REALTIME, "WHEN", 0,
	  "whether the datapath's threads are SCHED_FIFO: auto (default: only on isolated CPUs; "
	  "elsewhere they get short time slices), always, never",
	  0 },
	{ "no-ahead", KEY_NO_AHEAD, NULL, 0,
	  "silent hosts do not promise ahead of their clocks; must be the same on the whole rack",
	  0 },
	{ "clock-source", KEY_SOURCE, "SOURCE", 0,
	  "where the bound of the clock comes from: kernel (default: adjtimex), ptp4l (its "
	  "management socket), clockbound (its file), trust (believe --clock-bound-us)",
	  0 },
	{ "clock-bound-us", KEY_BOUND, "US", 0,
	  "trust: greatest error of the system clock; others: the least bound (default 50)", 0 },
	{ "clock-max-bound-us", KEY_MAX_BOUND, "US", 0,
	  "kernel: nothing ordered is sent while the bound is greater (default 25000)", 0 },
	{ "clock-void-after-ms", KEY_VOID, "MS", 0,
	  "how long the clock remains valid without the daemon (default 10000)", 0 },
	{ "caretaker-ms", KEY_CARETAKER, "MS", 0,
	  "how long a caretaker replaces a daemon that was stopped (default 10000); 0: never", 0 },
	{ "process-limit-ms", KEY_LIMIT, "MS", 0,
	  "host: a process that delays others for this time is expelled (default 2000)", 0 },
	{ "send-limit-ms", KEY_SEND_LIMIT, "MS", 0,
	  "host: a send that makes no progress for this time is void (default 20); 0: no limit",
	  0 },
	{ "port-base", KEY_BASE, "PORT", 0, "first UDP port of ordered traffic (default 61696)",
	  0 },
	{ "port-count", KEY_COUNT, "N", 0, "number of UDP ports (default 256)", 0 },
	{ "generic", KEY_GENERIC, NULL, 0, "generic XDP, for drivers without native XDP; slower",
	  0 },
	{ "replace", KEY_REPLACE, NULL, 0, "displace another XDP program", 0 },
	{ "xdp", KEY_XDP, "HOW", 0,
	  "dispatcher: join the dispatcher of libxdp on the interface, beside other XDP "
	  "programs; alone (default)",
	  0 },
	{ "chain", KEY_CHAIN, "PROGRAM", 0,
	  "XDP program for frames that are not barline's: path of its pin, id, or attached (the "
	  "one on the interface, which is put back on detach)",
	  0 },
	{ "accept", KEY_ACCEPT, "WHAT", 0,
	  "reordering: start although the NIC is no FIFO for ordered frames", 0 },
	{ "one-queue", KEY_ONE_QUEUE, NULL, 0,
	  "set a NIC to one channel if its driver cannot bring ordered frames to one queue", 0 },
	{ "detach-on-exit", KEY_DETACH, NULL, 0, "remove programs and pins when stopped", 0 },
	{ "skew-ns", KEY_SKEW, "NS", OPTION_HIDDEN, "test: error of this node's clock", 0 },
	{ "clock-base-ns", KEY_CLOCK_BASE, "NS", OPTION_HIDDEN, "test: bus time at the start", 0 },
	{ "no-beacons", KEY_NO_BEACONS, NULL, OPTION_HIDDEN, "test: host: send no beacons", 0 },
	{ 0 }
};

static bool parse_mac(const char *s, uint8_t mac[6])
{
	unsigned int v[6];
	char rest;
	int i;

	if (sscanf(s, "%2x:%2x:%2x:%2x:%2x:%2x%c", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
		   &rest) != 6)
		return false;
	for (i = 0; i < 6; i++)
		mac[i] = (uint8_t)v[i];
	return true;
}

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_ID, "node-id", NULL, 1, UINT32_MAX, struct bl_node_cfg, node_id),
	BL_NUMBER(KEY_BEACON, "beacon-us", "us", 1, 1000000, struct bl_node_cfg, beacon_us),
	BL_NUMBER(KEY_DEAD, "dead-after-us", "us", 1, 100000000, struct bl_node_cfg, dead_after_us),
	BL_NUMBER(KEY_LAG, "lag-max-us", "us", 1, 1000000000, struct bl_node_cfg, lag_max_us),
	BL_NUMBER(KEY_BOUND, "clock-bound-us", "us", 1, 1000000, struct bl_node_cfg,
		  clock_bound_us),
	BL_NUMBER(KEY_MAX_BOUND, "clock-max-bound-us", "us", 1, BL_CLOCK_MAX_BOUND_LIMIT_US,
		  struct bl_node_cfg, clock_max_bound_us),
	BL_NUMBER(KEY_VOID, "clock-void-after-ms", "ms", 1, 3600000, struct bl_node_cfg,
		  clock_void_after_ms),
	BL_NUMBER(KEY_CARETAKER, "caretaker-ms", "ms", 0, 60000, struct bl_node_cfg, caretaker_ms),
	BL_NUMBER(KEY_LIMIT, "process-limit-ms", "ms", 100, 3600000, struct bl_node_cfg,
		  process_limit_ms),
	BL_NUMBER(KEY_SEND_LIMIT, "send-limit-ms", "ms", 0, BL_SEND_LIMIT_MAX_MS,
		  struct bl_node_cfg, send_limit_ms),
	BL_NUMBER(KEY_BASE, "port-base", NULL, 1, 65535, struct bl_node_cfg, port_base),
	BL_NUMBER(KEY_COUNT, "port-count", NULL, 1, BL_PORT_COUNT, struct bl_node_cfg, port_count),
	BL_NUMBER(KEY_SKEW, "skew-ns", "ns", INT64_MIN, INT64_MAX, struct bl_node_cfg, skew_ns),
	BL_NUMBER(KEY_CLOCK_BASE, "clock-base-ns", "ns", 1, INT64_MAX, struct bl_node_cfg,
		  clock_base_ns),
	{ 0 }
};
/* clang-format on */

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct node_args *a = state->input;
	struct bl_node_cfg *c = &a->cfg;
	struct bl_err err;
	error_t rc;
	int xdp;

	if (key == 'c') {
		if (a->config_pass && bl_config_load(c, arg, &err))
			argp_failure(state, 1, 0, "%s", err.text);
		return 0;
	}
	rc = bl_number_option(numbers, key, arg, c, state);
	if (!rc && key == KEY_CARETAKER && !c->caretaker_ms)
		c->caretaker_ms = -1;
	if (!rc && key == KEY_SEND_LIMIT && !c->send_limit_ms)
		c->send_limit_ms = -1;
	if (rc != ARGP_ERR_UNKNOWN)
		return rc;
	switch (key) {
	case 'N':
		if (strlen(arg) >= sizeof(c->name))
			argp_error(state, "name \"%s\" is longer than %zu", arg,
				   sizeof(c->name) - 1);
		strcpy(c->name, arg);
		return 0;
	case KEY_REALTIME:
		if (bl_realtime_parse(arg) < 0)
			argp_error(state, "--realtime: \"%s\" is not auto, always or never", arg);
		c->realtime = (enum bl_realtime)bl_realtime_parse(arg);
		return 0;
	case KEY_SOURCE:
		c->clock_source = bl_clock_source_parse(arg);
		if (!c->clock_source)
			argp_error(state,
				   "--clock-source: \"%s\" is not kernel, ptp4l, clockbound or "
				   "trust",
				   arg);
		return 0;
	case KEY_NO_AHEAD:
		c->no_ahead = true;
		return 0;
	case KEY_GENERIC:
		c->mode = BL_XDP_GENERIC;
		return 0;
	case KEY_DETACH:
		a->detach = true;
		return 0;
	case KEY_NO_BEACONS:
		c->no_beacons = true;
		return 0;
	case KEY_REPLACE:
		c->replace = true;
		return 0;
	case KEY_XDP:
		xdp = bl_config_xdp(arg);
		if (xdp < 0)
			argp_error(state, "--xdp: alone or dispatcher, not \"%s\"", arg);
		c->dispatcher = xdp == 1;
		return 0;
	case KEY_CHAIN:
		if (!*arg || strlen(arg) >= sizeof(c->chain))
			argp_error(state, "--chain: 1 to %zu characters", sizeof(c->chain) - 1);
		if (bl_chain_check(arg, &err))
			argp_error(state, "--%s", err.text);
		strcpy(c->chain, arg);
		return 0;
	case KEY_ACCEPT:
		if (strcmp(arg, "reordering"))
			argp_error(state,
				   "--accept: only \"reordering\" can be accepted, not \"%s\"",
				   arg);
		c->accept_reordering = true;
		return 0;
	case KEY_ONE_QUEUE:
		c->one_queue = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp common_argp = { .options = common_options, .parser = parse_common };
static const struct argp_child node_children[] = {
	cmd_globals_child, { &common_argp, 0, NULL, 0 }, { &bl_admission_argp, 0, NULL, 0 }, { 0 }
};

static const struct argp_option switch_options[] = {
	{ "host-port", KEY_HOST_PORT, "IFNAME", 0, "a port to a host; may be repeated", 0 },
	{ "up-port", KEY_UP_PORT, "IFNAME", 0, "a port to a switch of a higher tier", 0 },
	{ "down-port", KEY_DOWN_PORT, "IFNAME", 0, "a port to a switch of a lower tier", 0 },
	{ "cpus", KEY_CPUS, "LIST", 0, "datapath CPUs, as in 0,2-3; each is a lane (default 0)",
	  0 },
	{ "l2", KEY_L2, NULL, 0, "forward by the static table, not by Linux's routes", 0 },
	{ "fdb", KEY_FDB, "MAC=IFNAME", 0,
	  "l2: forward frames to this address by that port; may be repeated", 0 },
	{ "thread-napi", KEY_THREAD, NULL, 0, "threaded NAPI, pinned to the home CPU (for veth)",
	  0 },
	{ "one-lane", KEY_ONE_LANE, NULL, OPTION_HIDDEN,
	  "test: let all CPUs share a lane, which breaks the order", 0 },
	{ 0 }
};

static void add_port(struct bl_node_cfg *c, char *arg, enum bl_port_role role,
		     struct argp_state *state)
{
	char *cpu = strchr(arg, '@');
	struct bl_port_cfg *p = realloc(c->ports, (c->ports_count + 1) * sizeof(*p));
	long long v;

	if (!p)
		argp_failure(state, 1, 0, "out of memory");
	c->ports = p;
	p += c->ports_count++;
	memset(p, 0, sizeof(*p));
	p->home_cpu = -1;
	p->role = (uint8_t)role;
	if (cpu) {
		*cpu++ = '\0';
		if (!bl_read_integer(cpu, 0, BL_SW_CPUS_MAX - 1, &v))
			argp_error(state, "port %s@%s: the CPU is not a number from 0 to %d", arg,
				   cpu, BL_SW_CPUS_MAX - 1);
		p->home_cpu = (int)v;
	}
	if (strlen(arg) >= sizeof(p->ifname) || !*arg)
		argp_error(state, "\"%s\" is no interface name", arg);
	strcpy(p->ifname, arg);
}

static void add_fdb(struct bl_node_cfg *c, char *arg, struct argp_state *state)
{
	struct bl_fdb_cfg *f = realloc(c->fdb, (c->fdb_count + 1) * sizeof(*f));
	char *eq = strchr(arg, '=');

	if (!f)
		argp_failure(state, 1, 0, "out of memory");
	c->fdb = f;
	f += c->fdb_count++;
	if (eq)
		*eq++ = '\0';
	if (!eq || !parse_mac(arg, f->mac) || strlen(eq) >= sizeof(f->ifname))
		argp_error(state, "--fdb needs MAC=IFNAME, as in 02:00:00:00:00:01=eth1");
	strcpy(f->ifname, eq);
}

static error_t parse_switch(int key, char *arg, struct argp_state *state)
{
	struct node_args *a = state->input;
	struct bl_node_cfg *c = &a->cfg;
	int n;

	if (key == ARGP_KEY_INIT) {
		state->child_inputs[1] = a;
		state->child_inputs[2] = &a->cfg.admission;
		return 0;
	}
	if (a->config_pass) /* ports and fdb entries are added in the second pass only */
		return key == ARGP_KEY_ARG || (key >= KEY_CPUS && key <= KEY_DOWN_PORT)
			       ? 0
			       : ARGP_ERR_UNKNOWN;
	switch (key) {
	case KEY_CPUS:
		n = cli_cpus(arg, c->cpus, BL_LANES_MAX);
		if (n < 1)
			argp_error(state,
				   "--cpus: \"%s\" is not a list of at most %d CPUs, as in 0,2-3",
				   arg, BL_LANES_MAX);
		c->ncpus = (unsigned int)n;
		return 0;
	case KEY_L2:
		c->forward = BL_FWD_L2;
		return 0;
	case KEY_ONE_LANE:
		c->one_lane = true;
		return 0;
	case KEY_HOST_PORT:
		add_port(c, arg, BL_PORT_HOST, state);
		return 0;
	case KEY_UP_PORT:
		add_port(c, arg, BL_PORT_UP, state);
		return 0;
	case KEY_DOWN_PORT:
		add_port(c, arg, BL_PORT_DOWN, state);
		return 0;
	case KEY_FDB:
		add_fdb(c, arg, state);
		return 0;
	case KEY_THREAD:
		c->thread_napi = true;
		return 0;
	case ARGP_KEY_ARG:
		add_port(c, arg, BL_PORT_HOST, state);
		return 0;
	case ARGP_KEY_END:
		if (!c->ports_count)
			argp_error(state, "which ports? Name them with --host-port, --up-port and "
					  "--down-port, or in the file of --config");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option host_options[] = { { "interface", 'i', "IFNAME", 0, "the NIC", 0 },
						   { 0 } };

static error_t parse_host(int key, char *arg, struct argp_state *state)
{
	struct node_args *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = a;
		state->child_inputs[2] = &a->cfg.admission;
		return 0;
	case 'i':
	case ARGP_KEY_ARG:
		if (strlen(arg) >= sizeof(a->cfg.ifname))
			argp_error(state, "\"%s\" is no interface name", arg);
		if (!a->config_pass)
			strcpy(a->cfg.ifname, arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->config_pass && !a->cfg.ifname[0])
			argp_error(state, "which interface? Name it here or in the file of "
					  "--config");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static int run_node(const struct argp *argp, enum bl_role role, int argc, char **argv)
{
	struct node_args a = { .config_pass = true };
	struct bl_server *server = NULL;
	struct bl_node *node;
	struct bl_err err;
	int e;

	a.cfg.role = role;
	cmd_parse(argp, argc, argv, &a);
	a.config_pass = false;
	cmd_parse(argp, argc, argv, &a);
	bl_clock_default_source(&a.cfg);
	bl_server_block_signals();
	e = bl_server_new(&server, &err);
	if (!e)
		e = bl_node_open(&node, server, &a.cfg, &err);
	if (!e) {
		if (cli.json)
			cli_json(json_pack("{s:s, s:s, s:s}", "node", a.cfg.name, "state", "up",
					   "dir", bl_node_dir(node)));
		else
			fprintf(stderr, "barline: %s is up in %s XDP mode; its pins are in %s\n",
				role_name(role),
				bl_node_mode(node) == BL_XDP_NATIVE ? "native" : "generic",
				bl_node_dir(node));
		e = bl_server_run(server, &err);
		if (e >= 0 && !a.detach && bl_node_hand_over(node, &err))
			fprintf(stderr, "barline: no caretaker replaces the daemon: %s\n",
				err.text);
	}
	if (server)
		bl_server_free(server);
	if (e >= 0 && a.detach) {
		e = bl_node_busy(role, "", &err);
		if (e >= 0)
			e = bl_node_detach(role, "", &err);
	} else if (e >= 0 && !cli.json)
		fprintf(stderr,
			"barline: stopped; the datapath stays in the kernel: `barline %s detach` "
			"removes it\n",
			role_name(role));
	bl_config_free(&a.cfg);
	return e < 0 ? cli_fail("%s", err.text) : 0;
}

int cmd_switch_up(int argc, char **argv)
{
	static const struct argp argp = { .options = switch_options,
					  .parser = parse_switch,
					  .children = node_children,
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
	static const struct argp argp = { .options = host_options,
					  .parser = parse_host,
					  .children = node_children,
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
