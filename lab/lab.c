/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run, up, exec, down, list.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arbiter/alloc/alloc.h"
#include "cli/util/cmd.h"
#include "bench/rack/drive.h"
#include "bench/fastpass/fair.h"
#include "lab.h"
#include "bench/traffic/traffic.h"
#include "loader/admission/admission_argp.h"

#define DEFAULT_NAME "lab"

enum {
	KEY_HOSTS = 256,
	KEY_TORS,
	KEY_SPINES,
	KEY_BEACON,
	KEY_SKEW,
	KEY_MTU,
	KEY_L2,
	KEY_L3,
	KEY_CPUS,
	KEY_BARE,
	KEY_ONE_LANE,
	KEY_NO_THREAD,
	KEY_DEAD,
	KEY_NO_AHEAD,
	KEY_REALTIME,
	KEY_LOSS,
	KEY_CONTROLLERS
};

#define GROUP_RACK  1
#define GROUP_BENCH 2

static const struct argp_option lab_options[] = {
	{ NULL, 0, NULL, 0, "The rack:", GROUP_RACK },
	{ "hosts", KEY_HOSTS, "N", 0, "hosts, 1 to 64 (default 8)", GROUP_RACK },
	{ "tors", KEY_TORS, "N", 0, "ToR switches of a leaf-spine, 1 to 8 (default 2)",
	  GROUP_RACK },
	{ "spines", KEY_SPINES, "N", 0, "spine switches of a leaf-spine, 1 to 8 (default 2)",
	  GROUP_RACK },
	{ "beacon-us", KEY_BEACON, "US", 0, "beacon interval (default 100, with --admission 1000)",
	  GROUP_RACK },
	{ "dead-after-us", KEY_DEAD, "US", 0,
	  "exclude a silent link after (default 500000: hosts of a lab wait for a CPU at times, "
	  "and are not dead)",
	  GROUP_RACK },
	{ "realtime", KEY_REALTIME, "WHEN", 0,
	  "the datapath's threads are SCHED_FIFO: auto (on isolated CPUs only, and elsewhere have "
	  "short slices; the default), always, never",
	  GROUP_RACK },
	{ "no-ahead", KEY_NO_AHEAD, NULL, 0,
	  "silent hosts do not promise ahead of their clocks: to compare with", GROUP_RACK },
	{ "skew", KEY_SKEW, "HOST=NS", 0,
	  "let this host's clock be off by so many ns; may be repeated", GROUP_RACK },
	{ "mtu", KEY_MTU, "BYTES", 0, "of every link (default 1500)", GROUP_RACK },
	{ "l2", KEY_L2, NULL, 0, "rack: the ToR forwards by a static table of addresses (default)",
	  GROUP_RACK },
	{ "l3", KEY_L3, NULL, 0, "rack: the ToR forwards by Linux's routing tables", GROUP_RACK },
	{ "cpus", KEY_CPUS, "LIST", 0,
	  "datapath CPUs of the switches, as 0,2-3; each is a lane (default 0)", GROUP_RACK },
	{ "one-lane", KEY_ONE_LANE, NULL, OPTION_HIDDEN,
	  "test: all datapath CPUs share one lane, which breaks the promise", GROUP_RACK },
	{ "no-threaded-napi", KEY_NO_THREAD, NULL, OPTION_HIDDEN,
	  "test: leave the ports' NAPI where it is", GROUP_RACK },
	{ 0 }
};

static const struct argp_option up_options[] = { { "no-barline", KEY_BARE, NULL, 0,
						   "links without barline's programs: to compare "
						   "with",
						   GROUP_RACK },
						 { "controllers", KEY_CONTROLLERS, "N", 0,
						   "failure controllers, 0 to 3 (default 0): 1 on "
						   "SQLite, 2 or 3 on three members of etcd",
						   GROUP_RACK },
						 { 0 } };

static const struct argp_option loss_option[] = { { "loss", KEY_LOSS, "P", 0,
						    "every host loses a frame that comes to it "
						    "with this probability, 0 to 0.5 (default 0)",
						    GROUP_RACK },
						  { 0 } };

static error_t parse_lab(int key, char *arg, struct argp_state *state)
{
	struct lab_spec *s = state->input;
	long long v, host;
	char *eq;

	switch (key) {
	case KEY_HOSTS:
		if (!cli_number(arg, 1, LAB_HOSTS_MAX, &v))
			argp_error(state, "hosts \"%s\" is not a number from 1 to %d", arg,
				   LAB_HOSTS_MAX);
		s->hosts = (unsigned int)v;
		return 0;
	case KEY_TORS:
		if (!cli_number(arg, 1, LAB_TORS_MAX, &v))
			argp_error(state, "tors \"%s\" is not a number from 1 to %d", arg,
				   LAB_TORS_MAX);
		s->tors = (unsigned int)v;
		return 0;
	case KEY_SPINES:
		if (!cli_number(arg, 1, LAB_SPINES_MAX, &v))
			argp_error(state, "spines \"%s\" is not a number from 1 to %d", arg,
				   LAB_SPINES_MAX);
		s->spines = (unsigned int)v;
		return 0;
	case KEY_BEACON:
		if (!cli_number(arg, 1, 1000000, &v))
			argp_error(state,
				   "beacon interval \"%s\" is not a number of us from 1 to 1000000",
				   arg);
		s->beacon_us = (unsigned int)v;
		return 0;
	case KEY_DEAD:
		if (!cli_number(arg, 1, 100000000, &v))
			argp_error(state,
				   "dead-after \"%s\" is not a number of us from 1 to 100000000",
				   arg);
		s->dead_after_us = (unsigned int)v;
		return 0;
	case KEY_REALTIME:
		if (bl_realtime_parse(arg) < 0)
			argp_error(state, "realtime \"%s\" is not auto, always or never", arg);
		s->realtime = (enum bl_realtime)bl_realtime_parse(arg);
		return 0;
	case KEY_NO_AHEAD:
		s->no_ahead = true;
		return 0;
	case KEY_SKEW:
		eq = strchr(arg, '=');
		if (eq)
			*eq = '\0';
		if (!eq || !cli_number(arg + (arg[0] == 'h'), 1, LAB_HOSTS_MAX, &host) ||
		    !cli_number(eq + 1, -3600000000000, 3600000000000, &v))
			argp_error(state, "skew is HOST=NS, as in h2=-5000");
		s->skew_ns[host - 1] = v;
		return 0;
	case KEY_MTU:
		if (!cli_number(arg, 1280, 9000, &v))
			argp_error(state, "mtu \"%s\" is not a number from 1280 to 9000", arg);
		s->mtu = (unsigned int)v;
		return 0;
	case KEY_L2:
		s->l3 = false;
		return 0;
	case KEY_L3:
		s->l3 = true;
		return 0;
	case KEY_CPUS:
		v = cli_cpus(arg, s->cpus, BL_LANES_MAX);
		if (v < 1)
			argp_error(state, "cpus \"%s\" is not a list of at most %d CPUs, as 0,2-3",
				   arg, BL_LANES_MAX);
		s->ncpus = (unsigned int)v;
		return 0;
	case KEY_BARE:
		s->bare = true;
		return 0;
	case KEY_ONE_LANE:
		s->one_lane = true;
		return 0;
	case KEY_NO_THREAD:
		s->no_thread_napi = true;
		return 0;
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &s->admission;
		return 0;
	case ARGP_KEY_ARG:
		if (!strcmp(arg, "rack") || !strcmp(arg, "leaf-spine") ||
		    !strcmp(arg, "dumbbell") || !strcmp(arg, "three-tier")) {
			s->leaf_spine = arg[0] != 'r';
			s->dumbbell = arg[0] == 'd';
			s->cores = arg[0] == 't' ? 2 : 0;
		} else if (!s->name[0] && strlen(arg) < sizeof(s->name) && !strchr(arg, '/')) {
			strcpy(s->name, arg);
		} else {
			return ARGP_ERR_UNKNOWN;
		}
		return 0;
	case ARGP_KEY_END:
		if (s->dumbbell) {
			s->tors = 2;
			s->spines = 0;
		}
		if (s->cores) { /* two pods, of two ToRs and two spines unless more are asked for */
			s->tors = s->tors > 2 ? s->tors : 4;
			s->spines = s->spines > 2 ? s->spines : 4;
			if (s->tors % 2 || s->spines % 2)
				argp_error(state, "three tiers have two pods: an even number of "
						  "ToRs, and of spines");
			if (s->admission.on)
				argp_error(state, "--admission is for a rack, a leaf-spine or a "
						  "dumbbell");
		}
		if (s->leaf_spine && s->hosts < s->tors)
			argp_error(state, "%u hosts cannot be spread over %u ToRs", s->hosts,
				   s->tors);
		if (s->leaf_spine)
			s->l3 = true;
		if (s->admission.on && (s->bare || (s->l3 && s->admission.policy == BL_POLICY_PL2)))
			argp_error(state, "--admission is for barline's programs, and pl2 for a "
					  "rack over L2");
		if (s->admission.spray && (!s->leaf_spine || s->dumbbell))
			argp_error(state, "--spray: frames take the ways up in turn; only a "
					  "leaf-spine has several");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child lab_children[] = { { &bl_admission_argp, 0, NULL, GROUP_RACK },
						  { 0 } };
const struct argp lab_argp = { .options = lab_options,
			       .parser = parse_lab,
			       .children = lab_children };

static error_t parse_up(int key, char *arg, struct argp_state *state)
{
	struct lab_spec *s = state->input;
	long long v;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = s;
		return 0;
	case KEY_CONTROLLERS:
		if (!cli_number(arg, 0, LAB_CONTROLLERS_MAX, &v))
			argp_error(state, "controllers \"%s\" is not a number from 0 to %d", arg,
				   LAB_CONTROLLERS_MAX);
		s->controllers = (unsigned int)v;
		s->etcd = v > 1;
		return 0;
	}
	return parse_lab(key, arg, state);
}

static error_t parse_run(int key, char *arg, struct argp_state *state)
{
	struct lab *lab = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &lab->spec;
		state->child_inputs[2] = &lab->spec.bench;
		return 0;
	case KEY_LOSS:
		if (!cli_real(arg, 0, 0.5, &lab->spec.bench.loss))
			argp_error(state, "loss \"%s\" is not a number from 0 to 0.5", arg);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

struct lab *lab_new(void)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	if (lab) {
		lab->spec.hosts = 8;
		lab->spec.tors = lab->spec.spines = 2;
		lab->spec.mtu = 1500;
		lab->spec.dead_after_us = 500000;
		lab->spec.fp_policy = BL_ALLOC_FAIR;
		lab->spec.bench = bench_defaults;
	}
	return lab;
}

static int drive(struct lab *lab, void *arg)
{
	(void)arg;
	return bench_drive(lab->spec.hosts, LAB_NETNS_DIR, &lab->spec.bench, true,
			   lab->spec.bench.lat_samples != 0);
}

int cmd_lab_run(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &lab_argp, 0, NULL, 0 },
						      { &bench_argp, 0,
							"The measurement:", GROUP_BENCH },
						      { 0 } };
	static const struct argp argp = { .options = loss_option,
					  .parser = parse_run,
					  .args_doc = "[rack|leaf-spine|three-tier|dumbbell]",
					  .children = children,
					  .doc = "barline lab run - raise a rack of network "
						 "namespaces, let every host broadcast to all, "
						 "check that all "
						 "receivers saw one order, measure latency, take "
						 "the rack away\vExit status 1 if the order "
						 "differed or a message is missing. `barline lab "
						 "run incast|outcast|shuffle|memcached` runs "
						 "unmodified applications instead, `barline lab "
						 "run fairness|failover` what Fastpass is about, "
						 "`barline lab run fct` flows of drawn sizes; they "
						 "have options of their own." };
	int (*other)(int, char **);
	struct lab *lab;
	int err;

	other = fair_asked(argc, argv);
	if (other)
		return other(argc, argv);
	if (traffic_asked(argc, argv))
		return traffic_main(argc, argv);
	lab = lab_new();
	if (!lab)
		return cli_fail("out of memory");
	cmd_parse(&argp, argc, argv, lab);
	if (lab->spec.name[0])
		return cli_usage("lab run: \"%s\" is nothing to run; rack, leaf-spine, or first of "
				 "all incast, outcast, shuffle, memcached, fairness, failover",
				 lab->spec.name);
	if (lab->spec.hosts < 2)
		return cli_usage("a run needs two hosts or more");
	snprintf(lab->spec.name, sizeof(lab->spec.name), "run-%d", getpid());
	err = lab_start(lab, drive, NULL);
	free(lab);
	return err;
}

int cmd_lab_up(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &lab_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .options = up_options,
					  .parser = parse_up,
					  .args_doc = "[NAME] "
						      "[rack|leaf-spine|three-tier|dumbbell]",
					  .children = children,
					  .doc = "barline lab up - raise a rack of network "
						 "namespaces and leave it running\vWith "
						 "--controllers: `barline lab exec NAME " LAB_MGMT
						 " -- barline show controller`, where they are." };
	struct lab *lab = lab_new();
	int err;

	if (!lab)
		return cli_fail("out of memory");
	cmd_parse(&argp, argc, argv, &lab->spec);
	if (!lab->spec.name[0])
		strcpy(lab->spec.name, DEFAULT_NAME);
	if (lab->spec.bare && lab->spec.controllers)
		return cli_usage("--no-barline: there is nothing for controllers to control");
	err = lab_start(lab, NULL, NULL);
	if (!err && cli.json)
		cli_json(json_pack("{s:s, s:s}", "lab", lab->spec.name, "state", "up"));
	else if (!err)
		printf("lab \"%s\" is up: %u hosts, h1 to h%u. Try: barline lab exec %s %s -- "
		       "barline show %s\n",
		       lab->spec.name, lab->spec.hosts, lab->spec.hosts, lab->spec.name,
		       lab->spec.controllers ? LAB_MGMT : "h1",
		       lab->spec.controllers ? "controller" : "barriers");
	free(lab);
	return err;
}

static error_t parse_names(int key, char *arg, struct argp_state *state)
{
	const char **names = state->input;

	if (key != ARGP_KEY_ARG || state->arg_num > 1)
		return ARGP_ERR_UNKNOWN;
	names[state->arg_num] = arg;
	return 0;
}

static int run_inside(char **cmd)
{
	int st;
	pid_t pid;

	fflush(NULL);
	pid = fork(); /* setns moved only children into the pid namespace */
	if (pid < 0)
		return cli_fail("cannot fork inside the lab: %s", strerror(errno));
	if (pid == 0) {
		execvp(cmd[0], cmd);
		fprintf(stderr, "barline: %s: %s\n", cmd[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	signal(SIGINT, SIG_IGN); /* the command is in the same process group and decides */
	signal(SIGQUIT, SIG_IGN);
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return 1;
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

int cmd_lab_exec(int argc, char **argv)
{
	static const struct argp argp = { .parser = parse_names,
					  .args_doc = "[NAME] NODE -- COMMAND [ARGUMENT...]",
					  .children = cmd_globals,
					  .doc = "barline lab exec - run a command on a node of a "
						 "lab\vNODE is h1, h2, ... (hosts), s1, ... (ToR "
						 "switches), p1, ... (spines), or " LAB_MGMT
						 ", where the daemons and their controllers are. "
						 "The exit status is the command's." };
	const char *names[2] = { NULL, NULL }, *lab, *node;
	int split, pidfd, fd, err;
	pid_t pid;

	for (split = 1; split < argc && strcmp(argv[split], "--"); split++)
		;
	cmd_parse(&argp, split, argv, names);
	if (!names[0] || split + 1 >= argc)
		return cli_usage("usage: barline lab exec [NAME] NODE -- COMMAND [ARGUMENT...]");
	lab = names[1] ? names[0] : DEFAULT_NAME;
	node = names[1] ? names[1] : names[0];
	fd = lab_find(lab, &pidfd, &pid);
	if (fd < 0)
		return 1;
	err = lab_enter(pidfd, lab, node);
	close(pidfd);
	close(fd);
	return err ? 1 : run_inside(argv + split + 1);
}

int cmd_lab_down(int argc, char **argv)
{
	static const struct argp argp = { .parser = parse_names,
					  .args_doc = "[NAME]",
					  .children = cmd_globals,
					  .doc = "barline lab down - take a lab away, and "
						 "everything that runs in it" };
	const char *names[2] = { NULL, NULL };
	const struct timespec nap = { .tv_nsec = 10000000 };
	struct pollfd p;
	int fd, pidfd, tries;
	pid_t pid;

	cmd_parse(&argp, argc, argv, names);
	if (!names[0])
		names[0] = DEFAULT_NAME;
	fd = lab_find(names[0], &pidfd, &pid);
	if (fd < 0)
		return 1;
	close(fd);
	/*
	 * the kernel ends every process of a pid namespace with its init, and their namespaces,
	 * mounts and pins with them
	 */
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0))
		return cli_fail("lab \"%s\" (pid %d): %s", names[0], pid, strerror(errno));
	p = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	if (poll(&p, 1, 30000) != 1)
		return cli_fail("lab \"%s\" (pid %d) does not end", names[0], pid);
	close(pidfd);
	/* the name is free when the server is gone too */
	for (tries = 0; tries < 1000 && lab_there(names[0]); tries++)
		nanosleep(&nap, NULL);
	if (cli.json)
		cli_json(json_pack("{s:s, s:s}", "lab", names[0], "state", "down"));
	return 0;
}

json_t *lab_ask(const char *name, int *pidfd, pid_t *pid)
{
	struct timeval tv = { .tv_sec = 3 };
	int fd = lab_find(name, pidfd, pid);
	char buf[8192];
	ssize_t n;

	if (fd < 0)
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	/* with this limit, who is stopped here and goes on is told EINTR */
	n = TEMP_FAILURE_RETRY(recv(fd, buf, sizeof(buf), 0));
	close(fd);
	return n > 0 ? json_loadb(buf, (size_t)n, 0, NULL) : NULL;
}

int cmd_lab_list(int argc, char **argv)
{
	static const struct col cols[] = { { "name", "NAME", 's' },   { "state", "STATE", 's' },
					   { "kind", "KIND", 's' },   { "forward", "FORWARD", 's' },
					   { "hosts", "HOSTS", 'd' }, { "mtu", "MTU", 'd' },
					   { "pid", "PID", 'd' },     { "age_s", "AGE_S", 'f' } };
	static const struct argp argp = { .children = cmd_globals,
					  .doc = "barline lab list - labs that are up in this "
						 "network namespace" };
	FILE *f;
	json_t *rows = json_array();
	char line[512];

	cmd_parse(&argp, argc, argv, NULL);
	f = fopen("/proc/net/unix", "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, "@" LAB_SOCKET), *name;
		unsigned int flags = 0;
		int pidfd = -1;
		pid_t pid = 0;
		json_t *info;

		/*
		 * Num RefCount Protocol Flags ...: 10000 is a listening socket; accepted ones carry
		 * the same name
		 */
		if (!at || sscanf(line, "%*x: %*x %*x %x", &flags) != 1 || !(flags & 0x10000))
			continue;
		name = at + strlen("@" LAB_SOCKET);
		name[strcspn(name, "\n")] = '\0';
		info = lab_ask(name, &pidfd, &pid);
		if (pidfd >= 0)
			close(pidfd);
		if (!info)
			info = json_pack("{s:s, s:s}", "name", name, "state", "no answer");
		json_object_set_new(info, "pid", json_integer(pid));
		json_array_append_new(rows, info);
	}
	if (f)
		fclose(f);
	return out_rows("labs", rows, cols, sizeof(cols) / sizeof(cols[0]), "no labs");
}
