// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline lab run fairness: h1 receives, h2 to h6 send, and the last host measures echoes.
 *
 * With steps of 3 s, h2 sends from 0 s to 27 s, h3 from 3 s to 24 s, ..., h6 from 12 s to 15 s. The
 * bytes that were received are read every second. As in the paper, the result for k senders is the
 * median, over all seconds with k senders, of the standard deviation of their throughputs. Seconds
 * in which a sender starts or stops do not count.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arbiter/alloc/alloc.h"
#include "base/rate.h"
#include "base/number.h"
#include "base/time.h"
#include "bench/traffic/traffic.h"
#include "bench/fastpass/fastpass.h"
#include "bench/util.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "cli/util/read.h"
#include "cli/util/read_admission.h"
#include "lab/lab.h"
#include "lab/lab_argp.h"
#include "maps/fastpass_abi.h"

#define SENDERS     5
#define SECONDS_MAX 4096
#define ECHOES_MAX  65536
#define PORT        6001
#define ECHO_PORT   6000
#define ECHO_NS     10000000ULL

/** struct fair_cell - The results of one policy, shared with the lab's processes. */
struct fair_cell {
	struct traffic_policy policy;
	bool done;                       /* the measurement is complete */
	_Atomic int ready;               /* the receiver listens */
	_Atomic int stop;                /* all processes end */
	_Atomic uint64_t bytes[SENDERS]; /* received so far, by sender */
	_Atomic uint32_t echoes;         /* elements of @rtt_ns */
	_Atomic uint32_t unanswered;     /* echoes without an answer within a second */
	uint32_t rtt_ns[ECHOES_MAX];     /* round-trip times of echoes */
	unsigned int seconds;            /* elements of @mbit and @active */
	/* most sessions of one host with arbiters; 1: the same arbiter was primary all the time */
	uint64_t sessions;
	uint64_t missed;                   /* slots that pacers had too late, all hosts */
	uint64_t refused;                  /* slots that daemons had too late, all hosts */
	double mbit[SECONDS_MAX][SENDERS]; /* throughput by second and sender */
	unsigned int active[SECONDS_MAX];  /* senders; 0: one started or stopped in that second */
	struct traffic_cell traffic;       /* queue and counters */
};

/** struct fair_params - What to run. Set by options, then read only. */
struct fair_params {
	struct lab *lab;
	struct traffic_policy policy[TRAFFIC_POLICIES_MAX];
	unsigned int npolicies;
	unsigned int step_s; /* between two starts or stops of senders */
};

static const struct fair_params *params;
static struct fair_cell *cell;

/* ---- processes ---- */

static struct sockaddr_in socket_address(unsigned int host, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };

	lab_app_addr(params->lab, host, (uint8_t *)&sa.sin_addr);
	return sa;
}

static void receive_all(int ep)
{
	static char buf[1 << 18];
	struct epoll_event ev[SENDERS + 1];
	int n = epoll_wait(ep, ev, SENDERS + 1, 100), i;
	ssize_t got;

	for (i = 0; i < n; i++) {
		int fd = (int)(ev[i].data.u64 >> 8);
		unsigned int who = ev[i].data.u64 & 0xff;

		if (who == SENDERS) {
			struct sockaddr_in from;
			socklen_t len = sizeof(from);

			while ((got = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT,
					       (struct sockaddr *)&from, &len)) > 0)
				sendto(fd, buf, (size_t)got, MSG_DONTWAIT, (struct sockaddr *)&from,
				       len);
			continue;
		}
		got = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (got > 0)
			atomic_fetch_add_explicit(&cell->bytes[who], (uint64_t)got,
						  memory_order_relaxed);
		else if (!got)
			close(fd);
	}
}

/* Receives from all senders and answers echoes. Each sender connects to a port of its own. */
static void run_receiver(void *arg)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), fd[SENDERS + 1], on = 1;
	struct sockaddr_in sa = socket_address(0, ECHO_PORT);
	struct epoll_event ev = { .events = EPOLLIN };
	unsigned int i;

	(void)arg;
	fd[SENDERS] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ep < 0 || bind(fd[SENDERS], (struct sockaddr *)&sa, sizeof(sa)))
		_exit(1);
	ev.data.u64 = (uint64_t)fd[SENDERS] << 8 | SENDERS;
	epoll_ctl(ep, EPOLL_CTL_ADD, fd[SENDERS], &ev);
	for (i = 0; i < SENDERS; i++) {
		sa.sin_port = htons((uint16_t)(PORT + i));
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		setsockopt(fd[i], SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (fd[i] < 0 || bind(fd[i], (struct sockaddr *)&sa, sizeof(sa)) ||
		    listen(fd[i], 1))
			_exit(1);
	}
	atomic_store(&cell->ready, 1);
	while (!atomic_load(&cell->stop)) {
		for (i = 0; i < SENDERS; i++) {
			int c = accept4(fd[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

			if (c < 0)
				continue;
			ev.data.u64 = (uint64_t)c << 8 | i;
			epoll_ctl(ep, EPOLL_CTL_ADD, c, &ev);
		}
		receive_all(ep);
	}
}

static void run_sender(void *arg)
{
	const unsigned int i = (unsigned int)(uintptr_t)arg;
	static char buf[1 << 16];
	struct sockaddr_in sa = socket_address(0, (uint16_t)(PORT + i));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		_exit(1);
	while (send(fd, buf, sizeof(buf), MSG_NOSIGNAL) > 0)
		;
}

static void run_echo_client(void *arg)
{
	const struct timeval patience = { .tv_sec = 1 };
	struct sockaddr_in sa = socket_address(0, ECHO_PORT);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t sent, back;

	(void)arg;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		_exit(1);
	while (!atomic_load(&cell->stop)) {
		uint32_t n = atomic_load(&cell->echoes);

		nap_ns(ECHO_NS);
		sent = bl_mono_ns();
		if (send(fd, &sent, sizeof(sent), 0) != sizeof(sent))
			continue;
		do { /* skip answers to earlier echoes, which were late */
			if (recv(fd, &back, sizeof(back), 0) != sizeof(back))
				back = 0;
		} while (back && back != sent);
		if (!back) {
			atomic_fetch_add(&cell->unanswered, 1);
		} else if (n < ECHOES_MAX) {
			cell->rtt_ns[n] = (uint32_t)(bl_mono_ns() - sent);
			atomic_store(&cell->echoes, n + 1);
		}
	}
}

/* ---- the driver, in the lab ---- */

static int measure_senders(struct fair_cell *c, pid_t *pid)
{
	const unsigned int step = params->step_s, total = step * (2 * SENDERS - 1);
	uint64_t before[SENDERS] = { 0 }, begun, next;
	struct traffic_sampler *sampler;
	unsigned int s, i;

	c->traffic.receivers = 1;
	sampler = traffic_sampler_new(&c->traffic, params->lab->spec.admission.on);
	if (!sampler)
		return 1;
	begun = bl_mono_ns();
	for (s = 0; s < total && s < SECONDS_MAX; s++) {
		bool moved = s % step == 0;

		/* sender i starts at step i and stops at step 2 x SENDERS - 1 - i */
		for (i = 0; i < SENDERS; i++) {
			if (s == i * step &&
			    (pid[i] = lab_host_fork(1 + i, run_sender, (void *)(uintptr_t)i)) < 0)
				return 1;
			if (s == (2 * SENDERS - 1 - i) * step)
				kill_child(&pid[i]);
		}
		next = begun + (s + 1) * 1000000000ULL;
		out_progress("%s: second %u of %u", c->policy.text, s + 1, total);
		while (bl_mono_ns() < next) {
			traffic_sampler_sample(sampler, &c->traffic, begun);
			nap_ns(2000000);
		}
		for (i = 0; i < SENDERS; i++) {
			uint64_t now = atomic_load(&c->bytes[i]);

			c->mbit[s][i] = (double)(now - before[i]) * 8e-6;
			before[i] = now;
			if (pid[i] > 0 && !moved)
				c->active[s]++;
		}
		c->seconds = s + 1;
	}
	traffic_sampler_end(sampler, &c->traffic);
	return 0;
}

/* reads the counters of Fastpass's hosts at the end */
static void read_pages(struct fair_cell *c)
{
	struct bl_node_ref *refs;
	struct bl_err err;
	int n = bl_nodes_find(&refs, 0, &err), i;

	for (i = 0; i < n; i++) {
		struct bl_fp_page p;
		struct bl_fp_dest d;
		uint32_t k;

		if (refs[i].role != BL_ROLE_HOST ||
		    node_value(&refs[i], BL_MAP_FP_PAGE, 0, &p, sizeof(p)))
			continue;
		c->sessions = p.sessions > c->sessions ? p.sessions : c->sessions;
		c->refused += p.refused;
		for (k = 1;
		     k < SENDERS + 3 && !node_value(&refs[i], BL_MAP_FP_DESTS, k, &d, sizeof(d));
		     k++)
			c->missed += d.missed;
	}
	if (n >= 0)
		free(refs);
}

static int drive_cell(struct lab *lab, void *arg)
{
	pid_t pid[SENDERS] = { 0 }, rx, echo;
	struct fair_cell *c = cell;
	unsigned int i;
	int err;

	(void)arg;
	lab_leave_datapath_alone(lab);
	nap_ns(500000000);
	rx = lab_host_fork(0, run_receiver, NULL);
	if (rx < 0)
		return 1;
	for (i = 0; i < 500 && !atomic_load(&c->ready); i++)
		nap_ns(10000000);
	if (!atomic_load(&c->ready))
		return cli_fail("the receiver does not listen");
	echo = lab_host_fork(params->lab->spec.hosts - 1, run_echo_client, NULL);
	err = echo < 0 ? 1 : measure_senders(c, pid);
	atomic_store(&c->stop, 1);
	if (c->policy.policy == BL_POLICY_FASTPASS)
		read_pages(c);
	for (i = 0; i < SENDERS; i++)
		kill_child(&pid[i]);
	kill_child(&echo);
	kill_child(&rx);
	c->done = !err;
	return err;
}

/* ---- the front ---- */

static double standard_deviation(const double *v, unsigned int n)
{
	double sum = 0, sq = 0, mean;
	unsigned int i;

	for (i = 0; i < n; i++)
		sum += v[i];
	mean = sum / n;
	for (i = 0; i < n; i++)
		sq += (v[i] - mean) * (v[i] - mean);
	return sqrt(sq / n);
}

/*
 * Computes the medians of the standard deviation and of the sum of throughputs over all seconds
 * with
 * @k senders, which are always the first @k. Returns the number of these seconds.
 */
static unsigned int compute_medians(const struct fair_cell *c, unsigned int k, double *deviation,
				    double *sum)
{
	static double dev[SECONDS_MAX], total[SECONDS_MAX];
	unsigned int s, i, n = 0;

	for (s = 0; s < c->seconds; s++) {
		if (c->active[s] != k)
			continue;
		dev[n] = standard_deviation(c->mbit[s], k);
		for (total[n] = 0, i = 0; i < k; i++)
			total[n] += c->mbit[s][i];
		n++;
	}
	*deviation = value_quantile(dev, n, 0.5);
	*sum = value_quantile(total, n, 0.5);
	return n;
}

static json_t *make_row(struct fair_cell *c)
{
	json_t *row = json_pack("{s:s}", "policy", c->policy.text);
	static double rtt[ECHOES_MAX];
	uint32_t n = atomic_load(&c->echoes), i;
	unsigned int k;

	for (k = 1; k <= SENDERS; k++) {
		char name[32];
		double dev, sum;

		if (!compute_medians(c, k, &dev, &sum))
			continue;
		snprintf(name, sizeof(name), "stddev_%u_mbit", k);
		if (k > 1)
			json_object_set_new(row, name, json_real(dev));
		snprintf(name, sizeof(name), "sum_%u_mbit", k);
		json_object_set_new(row, name, json_real(sum));
	}
	adm_quantiles(row, "queue", "_frames", &c->traffic.found, BL_HIST_LEN_SHIFT,
		      ADM_FULL_FRAME);
	for (i = 0; i < n; i++)
		rtt[i] = c->rtt_ns[i];
	json_object_set_new(row, "rtt_p50_ns",
			    json_integer((json_int_t)value_quantile(rtt, n, 0.5)));
	json_object_set_new(row, "rtt_p99_ns",
			    json_integer((json_int_t)value_quantile(rtt, n, 0.99)));
	json_object_set_new(row, "rtt_p999_ns",
			    json_integer((json_int_t)value_quantile(rtt, n, 0.999)));
	json_object_set_new(row, "echoes", json_integer(n));
	json_object_set_new(row, "unanswered", json_integer(atomic_load(&c->unanswered)));
	json_object_set_new(row, "queue_drops",
			    json_integer((json_int_t)c->traffic.switch_counts.n[BL_R_QUEUE_FULL]));
	json_object_set_new(row, "late_slots", json_integer((json_int_t)(c->missed + c->refused)));
	json_object_set_new(row, "sessions", json_integer((json_int_t)c->sessions));
	json_object_set_new(row, "hold_drops",
			    json_integer((json_int_t)c->traffic.host_counts.n[BL_R_HOLD_FULL]));
	return row;
}

/* returns the longest queue, in bytes, that was sampled in a second */
static uint32_t longest_in(const struct traffic_cell *c, unsigned int second)
{
	uint32_t longest = 0, i;

	for (i = 0; i < c->nsamples; i++)
		if (c->sample[i].at_us / 1000000 == second && c->sample[i].bytes > longest)
			longest = c->sample[i].bytes;
	return longest;
}

static int write_series(const char *dir, struct fair_cell *cells, unsigned int n)
{
	FILE *f = out_open(dir, "fairness.csv");
	unsigned int i, s, k;

	if (!f)
		return 1;
	fprintf(f, "policy,second,h2,h3,h4,h5,h6,queue_max_bytes\n");
	for (i = 0; i < n; i++)
		for (s = 0; s < cells[i].seconds; s++) {
			fprintf(f, "%s,%u", cells[i].policy.text, s);
			for (k = 0; k < SENDERS; k++)
				fprintf(f, ",%.3f", cells[i].mbit[s][k]);
			fprintf(f, ",%u\n", longest_in(&cells[i].traffic, s));
		}
	return out_close(dir, "fairness.csv", f);
}

static int print_report(struct fair_cell *cells, unsigned int n, const char *out)
{
	static const struct col cols[] = { { "policy", "POLICY", 's' },
					   { "stddev_3_mbit", "STDDEV_3", 'f' },
					   { "stddev_4_mbit", "STDDEV_4", 'f' },
					   { "stddev_5_mbit", "STDDEV_5", 'f' },
					   { "sum_1_mbit", "SUM_1", 'f' },
					   { "sum_5_mbit", "SUM_5", 'f' },
					   { "queue_p50_frames", "QUEUE_P50", 'f' },
					   { "queue_p99_frames", "P99", 'f' },
					   { "queue_max_frames", "MAX", 'f' },
					   { "rtt_p50_ns", "RTT_P50", 't' },
					   { "rtt_p99_ns", "P99", 't' },
					   { "rtt_p999_ns", "P99.9", 't' },
					   { "unanswered", "UNANSWERED", 'd' },
					   { "queue_drops", "DROPS", 'd' },
					   { "hold_drops", "HOLD_DROPS", 'd' },
					   { "late_slots", "LATE_SLOTS", 'd' },
					   { "sessions", "SESSIONS", 'd' } };
	json_t *rows = json_array();
	unsigned int i;
	int err = 0;

	for (i = 0; i < n; i++)
		if (cells[i].done)
			json_array_append_new(rows, make_row(&cells[i]));
	if (out)
		err = write_series(out, cells, n);
	if (!cli.json)
		printf("Mbit/s of %u senders that start and stop, by the second; queue in front of "
		       "the receiver in full frames; echoes beside them\n",
		       SENDERS);
	return out_rows("fairness", rows, cols, sizeof(cols) / sizeof(cols[0]),
			"nothing measured") ||
	       err;
}

enum { KEY_POLICY = 600, KEY_STEP, KEY_OUT };

static const struct argp_option options[] = {
	{ "policy", KEY_POLICY, "LIST", 0,
	  "policies to compare, in this order (default none,fastpass)", 2 },
	{ "step", KEY_STEP, "S", 0,
	  "a sender starts, and later stops, every S seconds, 2 to 60 (default 4)", 2 },
	{ "out", KEY_OUT, "DIR", 0, "write fairness.csv to this directory", 2 },
	{ 0 }
};

struct args {
	struct fair_params p;
	const char *out;
};

/* clang-format off */
static const struct bl_number numbers[] = {
	BL_NUMBER(KEY_STEP, "step", "s", 2, 60, struct args, p.step_s),
	{ 0 }
};
/* clang-format on */

static error_t parse_fairness(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	struct traffic_params t = { 0 };
	error_t err = bl_number_option(numbers, key, arg, a, state);

	if (err != ARGP_ERR_UNKNOWN)
		return err;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &a->p.lab->spec;
		return 0;
	case KEY_POLICY:
		traffic_policies(&t, arg, state);
		memcpy(a->p.policy, t.policy, sizeof(t.policy));
		a->p.npolicies = t.npolicies;
		return 0;
	case KEY_OUT:
		a->out = arg;
		return 0;
	case ARGP_KEY_ARG:
		return strcmp(arg, "fairness") ? ARGP_ERR_UNKNOWN : 0;
	}
	return ARGP_ERR_UNKNOWN;
}

int fair_main(int argc, char **argv)
{
	static const struct argp_child children[] = { cmd_globals_child,
						      { &lab_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_fairness,
					  .args_doc = "fairness",
					  .children = children,
					  .doc = "barline lab run fairness - five TCP senders to "
						 "one receiver start and stop (Fastpass 7.1, "
						 "experiments A to C)\v"
						 "STDDEV_k: standard deviation of the throughputs "
						 "of k senders in each second, median. RTT: of UDP "
						 "echoes of another host, beside them." };
	struct args a = {
		.p = { .policy = { { "none", true, BL_POLICY_NONE, 0, 0 },
				   { "fastpass", true, BL_POLICY_FASTPASS, 0, BL_ALLOC_FAIR } },
		       .npolicies = 2,
		       .step_s = 4 }
	};
	struct fair_cell *cells;
	unsigned int i;
	int failed = 0, err;

	a.p.lab = lab_new();
	if (!a.p.lab)
		return cli_fail("out of memory");
	a.p.lab->spec.hosts = SENDERS + 2;
	a.p.lab->spec.admission.on = true;
	a.p.lab->spec.admission.rate_bps = 250000000;
	cmd_parse(&argp, argc, argv, &a);
	if (a.p.lab->spec.leaf_spine || a.p.lab->spec.bare || a.p.lab->spec.hosts < SENDERS + 2)
		return cli_usage("fairness runs on a rack of one switch with %d hosts or more",
				 SENDERS + 2);
	cells = shared_memory(sizeof(*cells) * a.p.npolicies);
	for (i = 0; cells && i < a.p.npolicies; i++) {
		struct lab *one = traffic_lab(a.p.lab, &a.p.policy[i]);
		struct fair_params here = a.p;

		if (!one)
			return 1;
		cells[i].policy = a.p.policy[i];
		cell = &cells[i];
		here.lab = one;
		params = &here;
		failed |= lab_start(one, drive_cell, NULL) || !cells[i].done;
		free(one);
	}
	out_progress_end();
	err = cells ? print_report(cells, a.p.npolicies, a.out) : 1;
	free(a.p.lab);
	return err ? err : failed;
}
