// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline lab run failover: kills the primary arbiter again and again.
 *
 * The time of a run is from the kill to the first slot that any host gets from the other arbiter,
 * which struct bl_fp_page has in CLOCK_MONOTONIC. All hosts but h1 send numbered datagrams to h1
 * all the time, one per interval, so that there are always requests for slots.
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arbiter/alloc/alloc.h"
#include "base/number.h"
#include "base/time.h"
#include "bench/fastpass/fastpass.h"
#include "bench/util.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "cli/util/read.h"
#include "cli/util/status.h"
#include "lab/lab.h"
#include "lab/lab_argp.h"
#include "maps/fastpass_abi.h"

#define RUNS_MAX 1000
#define PORT     6100

/** struct result - The results, shared with the lab's processes. */
struct result {
	bool done;                            /* the measurement is complete */
	_Atomic int stop;                     /* senders end */
	_Atomic uint64_t sent[LAB_HOSTS_MAX]; /* datagrams, by sender */
	_Atomic uint64_t got[LAB_HOSTS_MAX];  /* datagrams that were received, by sender */
	_Atomic uint64_t overtaken;           /* datagrams that arrived after a later one */
	unsigned int runs;                    /* elements of @ms */
	unsigned int nobody; /* runs in which no slot was granted within a second */
	double ms[RUNS_MAX];
};

/** struct params - What to run. Set by options, then read only. */
struct params {
	struct lab *lab;
	unsigned int runs;
	unsigned int interval_us; /* between two datagrams of a host */
};

static const struct params *params;
static struct result *result;

struct datagram {
	uint32_t from, seq;
	uint8_t rest[492];
};

static struct sockaddr_in receiver_address(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	lab_app_addr(params->lab, 0, (uint8_t *)&sa.sin_addr);
	return sa;
}

static void run_receiver(void *arg)
{
	struct sockaddr_in sa = receiver_address();
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = 8 << 20;
	static uint32_t next[LAB_HOSTS_MAX];
	struct datagram d;

	(void)arg;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		_exit(1);
	while (recv(fd, &d, sizeof(d), 0) == sizeof(d)) {
		if (d.from >= LAB_HOSTS_MAX)
			continue;
		if (d.seq < next[d.from])
			atomic_fetch_add(&result->overtaken, 1);
		else
			next[d.from] = d.seq + 1;
		atomic_fetch_add(&result->got[d.from], 1);
	}
}

static void run_sender(void *arg)
{
	struct datagram d = { .from = (uint32_t)(uintptr_t)arg };
	struct sockaddr_in sa = receiver_address();
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		_exit(1);
	while (!atomic_load(&result->stop)) {
		if (send(fd, &d, sizeof(d), 0) == sizeof(d)) {
			d.seq++;
			atomic_fetch_add(&result->sent[d.from], 1);
		}
		nap_ns(params->interval_us * 1000ULL);
	}
}

/* ---- arbiters ---- */

/* returns the pid of the arbiter that is in @state, and its rank; 0 if there is none */
static pid_t find_arbiter(const char *state, unsigned int *rank)
{
	pid_t pid = 0;
	glob_t g;
	size_t i;

	if (glob(BL_RUN_DIR "/arbiter-*.sock", 0, NULL, &g))
		return 0;
	for (i = 0; i < g.gl_pathc && !pid; i++) {
		json_t *v = status_ask(g.gl_pathv[i], NULL);
		const char *is = json_string_value(json_object_get(v, "state"));

		if (is && !strcmp(is, state)) {
			pid = (pid_t)json_integer_value(json_object_get(v, "pid"));
			*rank = (unsigned int)json_integer_value(json_object_get(v, "rank"));
		}
		json_decref(v);
	}
	globfree(&g);
	return pid;
}

static int wait_for_arbiter(const char *state, pid_t *pid, unsigned int *rank)
{
	uint64_t until = bl_mono_ns() + 10000000000ULL;

	while (!(*pid = find_arbiter(state, rank))) {
		if (bl_mono_ns() > until)
			return cli_fail("no arbiter is %s after 10 s", state);
		nap_ns(2000000);
	}
	return 0;
}

static pid_t fork_arbiter(struct lab *lab, unsigned int rank)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(lab_arbiter(lab, rank));
	return pid;
}

/* ---- the driver ---- */

/* returns when any host got its first slot in a session that began after @since; 0: not yet */
static uint64_t find_first_slot(struct bl_node_ref *refs, int n, uint64_t since)
{
	uint64_t first = 0;
	int i;

	for (i = 0; i < n; i++) {
		struct bl_fp_page p;

		if (refs[i].role != BL_ROLE_HOST ||
		    node_value(&refs[i], BL_MAP_FP_PAGE, 0, &p, sizeof(p)))
			continue;
		if (p.session_ns > since && p.first_ns > since && (!first || p.first_ns < first))
			first = p.first_ns;
	}
	return first;
}

static int run_once(struct lab *lab, struct bl_node_ref *refs, int n)
{
	unsigned int rank, other;
	pid_t pid, standby;
	uint64_t killed, first;

	if (wait_for_arbiter("primary", &pid, &rank) ||
	    wait_for_arbiter("standby", &standby, &other))
		return 1;
	/* wait for another phase of the watchdogs in each run */
	nap_ns(50000000 + (uint64_t)(result->runs * 7919 % 1000) * 1000);
	/* on a busy machine the primary may have changed meanwhile */
	if (wait_for_arbiter("primary", &pid, &rank))
		return 1;
	killed = bl_mono_ns();
	if (kill(pid, SIGKILL))
		return cli_fail("cannot kill the arbiter (pid %d): %s", pid, strerror(errno));
	while (!(first = find_first_slot(refs, n, killed)) && bl_mono_ns() < killed + 1000000000ULL)
		nap_ns(500000);
	if (first)
		result->ms[result->runs++] = (double)(first - killed) / 1e6;
	else
		result->nobody++;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return fork_arbiter(lab, rank) < 0;
}

static int drive_lab(struct lab *lab, void *arg)
{
	const unsigned int hosts = lab->spec.hosts;
	pid_t tx[LAB_HOSTS_MAX] = { 0 }, rx;
	struct bl_node_ref *refs;
	struct bl_err err;
	unsigned int i;
	int n, bad = 0;

	(void)arg;
	n = bl_nodes_find(&refs, 0, &err);
	if (n < 0)
		return cli_fail("%s", err.text);
	rx = lab_host_fork(0, run_receiver, NULL);
	nap_ns(300000000);
	for (i = 1; i < hosts; i++)
		tx[i] = lab_host_fork(i, run_sender, (void *)(uintptr_t)i);
	nap_ns(300000000);
	for (i = 0; i < params->runs && !bad; i++) {
		out_progress("failover %u of %u", i + 1, params->runs);
		bad = run_once(lab, refs, n);
	}
	atomic_store(&result->stop, 1);
	nap_ns(1000000000); /* until frames that are held have left */
	for (i = 1; i < hosts; i++)
		kill_child(&tx[i]);
	kill_child(&rx);
	free(refs);
	result->done = !bad;
	return bad;
}

enum { KEY_RUNS = 600, KEY_INTERVAL, KEY_OUT, KEY_POLICY };

static const struct argp_option options[] = {
	{ "runs", KEY_RUNS, "N", 0,
	  "how often the primary arbiter is killed, 1 to 1000 (default 50)", 2 },
	{ "interval-us", KEY_INTERVAL, "US", 0,
	  "time between datagrams of each host, 100 to 1000000 (default 500)", 2 },
	{ "policy", KEY_POLICY, "fastpass", 0, "the only policy that has arbiters", 2 },
	{ "out", KEY_OUT, "DIR", 0, "write failover.csv to this directory", 2 },
	{ 0 }
};

struct args {
	struct params p;
	const char *out;
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_RUNS, "runs", NULL, 1, RUNS_MAX, struct args, p.runs),
	BL_NUMBER(KEY_INTERVAL, "interval-us", "us", 100, 1000000, struct args, p.interval_us),
	{ 0 }
};
/* clang-format on */

static error_t parse_failover(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	error_t err = bl_number_option(numbers, key, arg, a, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &a->p.lab->spec;
		return 0;
	case KEY_POLICY:
		if (strcmp(arg, "fastpass"))
			argp_error(state, "--policy: \"%s\" has no arbiters; only fastpass has",
				   arg);
		return 0;
	case KEY_OUT:
		a->out = arg;
		return 0;
	case ARGP_KEY_ARG:
		return strcmp(arg, "failover") ? ARGP_ERR_UNKNOWN
					       : 0; /* "leaf-spine" is the lab's */
	}
	return ARGP_ERR_UNKNOWN;
}

static int print_report(const struct lab *lab, const char *out)
{
	static const struct col cols[] = {
		{ "runs", "RUNS", 'd' },     { "p50_ms", "P50_MS", 'f' },
		{ "p90_ms", "P90_MS", 'f' }, { "max_ms", "MAX_MS", 'f' },
		{ "nobody", "NOBODY", 'd' }, { "sent", "DATAGRAMS", 'd' },
		{ "lost", "LOST", 'd' },     { "overtaken", "OVERTAKEN", 'd' }
	};
	uint64_t sent = 0, got = 0;
	json_t *rows = json_array();
	unsigned int i;
	FILE *f;

	if (out) {
		f = out_open(out, "failover.csv");
		if (!f)
			return 1;
		fprintf(f, "run,ms\n");
		for (i = 0; i < result->runs; i++)
			fprintf(f, "%u,%.3f\n", i, result->ms[i]);
		if (out_close(out, "failover.csv", f))
			return 1;
	}
	for (i = 1; i < lab->spec.hosts; i++) {
		sent += result->sent[i];
		got += result->got[i];
	}
	json_array_append_new(rows,
			      json_pack("{s:i, s:f, s:f, s:f, s:f, s:i, s:I, s:I, s:I, s:I}",
					"runs", (int)result->runs, "p50_ms",
					value_quantile(result->ms, result->runs, 0.5), "p90_ms",
					value_quantile(result->ms, result->runs, 0.9), "max_ms",
					value_quantile(result->ms, result->runs, 1), "min_ms",
					value_quantile(result->ms, result->runs, 0), "nobody",
					(int)result->nobody, "sent", (json_int_t)sent, "lost",
					(json_int_t)(sent - got), "overtaken",
					(json_int_t)result->overtaken, "dead_us",
					(json_int_t)lab->fp.dead_us));
	return out_rows("failover", rows, cols, sizeof(cols) / sizeof(cols[0]), "nothing measured");
}

int failover_main(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &lab_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_failover,
					  .args_doc = "failover",
					  .children = children,
					  .doc = "barline lab run failover - kill Fastpass's "
						 "primary arbiter again and again under traffic\v"
						 "Times are from the kill to the first slot from "
						 "the other arbiter, in a network with the slots "
						 "of 10 Gbit/s, watchdogs every 100 us, and "
						 "failure after 1 ms of silence. With --kill "
						 "host|tor|link|spine|controller|etcd-leader|stop|"
						 "leave "
						 "the command measures reliable scatterings "
						 "instead: see `barline lab run failover --kill "
						 "host --help`." };
	struct args a = { .p = { .runs = 50, .interval_us = 500 } };
	int failed, err;

	a.p.lab = lab_new();
	if (!a.p.lab)
		return cli_fail("out of memory");
	a.p.lab->spec.hosts = 4;
	a.p.lab->spec.admission.on = true;
	a.p.lab->spec.admission.policy = BL_POLICY_FASTPASS;
	a.p.lab->spec.fp_fast = true;
	cmd_parse(&argp, argc, argv, &a);
	if (a.p.lab->spec.name[0])
		return cli_usage("failover runs on a rack or a leaf-spine, not on \"%s\"",
				 a.p.lab->spec.name);
	if (a.p.lab->spec.bare || a.p.lab->spec.hosts < 2 ||
	    a.p.lab->spec.admission.policy != BL_POLICY_FASTPASS)
		return cli_usage("failover runs on a rack or a leaf-spine with fastpass and two "
				 "hosts or more");
	snprintf(a.p.lab->spec.name, sizeof(a.p.lab->spec.name), "run-%d", getpid());
	result = shared_memory(sizeof(*result));
	if (!result)
		return 1;
	params = &a.p;
	failed = lab_start(a.p.lab, drive_lab, NULL) || !result->done;
	out_progress_end();
	err = print_report(a.p.lab, a.out);
	free(a.p.lab);
	return err ? err : failed;
}
