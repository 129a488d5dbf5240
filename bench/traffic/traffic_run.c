/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The driver of a workload, inside the lab: starts unmodified programs in the hosts' namespaces,
 * samples queues, and reads the programs' output (traffic.h).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/traffic/traffic.h"
#include "bench/traffic/traffic_span.h"
#include "cli/util/out.h"
#include "cli/util/proc.h"
#include "cli/util/read.h"
#include "cli/util/read_admission.h"
#include "maps/fastpass_abi.h"
#include "loader/admission/bl0.h"

#define LISTEN_TIMEOUT_NS 10000000000ull
/* time for the last segments, reports and retransmissions after the end of the flows */
#define GRACE_NS      30000000000ull
#define LEFT_ALONE_NS 3000000000ull /* time for the servers after the last client ended */
#define HELLO_NS      3000000000ull /* time for the first datagram of a UDP sender */
#define DRAINED_NS    300000000ull  /* longer than a full queue takes to drain */
#define QUIET_US      6000          /* a queue is empty if nothing arrives for this time */
#define PORT_BASE     5201
#define MC_PORT       11211
#define STAGGER_US    20000 /* shuffle: between the rounds */
#define BULK_SENDERS  4     /* memcached: hosts that send bulk data */
/*
 * Seconds that a flow sends before and after those that count, so that all flows send during the
 * seconds that count (traffic_span.h). The handshakes of the 56 flows of a shuffle share two CPUs,
 * and links that other flows already fill; some took 1.7 s longer than others.
 */
#define AROUND_S      1
#define AROUND_MANY_S 3  /* for MANY or more flows */
#define MANY          16 /* flows */
#define ARGS_MAX      32

/** struct proc - A child process. Times are CLOCK_MONOTONIC. */
struct proc {
	pid_t pid;         /* 0: it has ended */
	int fd;            /* its output, in memory; -1: it was read */
	int status;        /* of waitpid(2) */
	uint64_t began_ns; /* when it was started */
	uint64_t ended_ns; /* when its end was noticed */
};

/** struct run - The state of the driver. Times are CLOCK_MONOTONIC. */
struct run {
	struct lab *lab;
	const struct traffic_params *p;
	struct traffic_cell *c;
	struct traffic_sampler *sampler;
	struct proc server[TRAFFIC_FLOWS_MAX], client[TRAFFIC_FLOWS_MAX]; /* by flow */
	struct proc memcached, asker; /* the server and our client */
	uint64_t begun_ns;
	uint64_t
		heard_ns[TRAFFIC_FLOWS_MAX]; /* UDP: the flow's first data was received; 0: never */
	uint64_t go_ns;                      /* when all clients continue together */
	struct bl_node_ref *refs;            /* @nrefs nodes of the lab; NULL: not listed yet */
	int nrefs;
};

static void format_app_addr(const struct lab *lab, unsigned int i, char *text, size_t size)
{
	uint8_t a[4];

	lab_app_addr(lab, i, a);
	snprintf(text, size, "%u.%u.%u.%u", a[0], a[1], a[2], a[3]);
}

/** struct gate - Lets programs that were forked one by one begin at the same time. */
struct gate {
	int fd[2];            /* a pipe; programs wait until its write end, [1], is closed */
	unsigned int wait_us; /* further delay of the program that is forked next */
};

/* in the child, before execvp(3): waits until the gate opens */
static void wait_before(const struct gate *g)
{
	char c;

	close(g->fd[1]);
	while (read(g->fd[0], &c, 1) < 0 && errno == EINTR)
		;
	nap_ns(g->wait_us * 1000ull);
}

/*
 * Starts a program in the namespace of host @i. It begins immediately or, with a @gate, when the
 * gate opens. Its output is kept in memory. Returns 0, or 1 after a message.
 */
static int start_program(struct proc *p, unsigned int i, char *const argv[],
			 const struct gate *gate)
{
	int null;

	p->fd = memfd_create("output", MFD_CLOEXEC);
	if (p->fd < 0)
		return cli_fail("memfd: %s", strerror(errno));
	fflush(NULL);
	p->began_ns = bl_mono_ns();
	p->pid = fork();
	if (p->pid < 0)
		return cli_fail("cannot fork: %s", strerror(errno));
	if (p->pid)
		return 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (gate)
		wait_before(gate);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (lab_host_enter(i) || dup2(null, STDIN_FILENO) < 0 || dup2(p->fd, STDOUT_FILENO) < 0 ||
	    (!cli.verbose && dup2(null, STDERR_FILENO) < 0))
		_exit(126);
	execvp(argv[0], argv);
	_exit(127);
}

static void reap_proc(struct proc *p)
{
	if (p->pid > 0 && waitpid(p->pid, &p->status, WNOHANG) == p->pid) {
		p->pid = 0;
		p->ended_ns = bl_mono_ns();
	}
}

static void kill_proc(struct proc *p)
{
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &p->status, 0);
		p->pid = 0;
		p->ended_ns = bl_mono_ns();
	}
}

/* returns whether a TCP socket listens on @port in the network namespace of @pid */
static bool is_listening(pid_t pid, uint16_t port)
{
	char path[64], line[256];
	unsigned int local, state;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/tcp", pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, " %*d: %*x:%x %*x:%*x %x", &local, &state) == 2 &&
			local == port && state == 10;
	if (f)
		fclose(f);
	return found;
}

static int wait_listening(struct proc *p, uint16_t port, const char *what)
{
	uint64_t until = bl_mono_ns() + LISTEN_TIMEOUT_NS;

	while (!is_listening(p->pid, port)) {
		reap_proc(p);
		if (!p->pid)
			return cli_fail("%s ended with status %d before it listened", what,
					WIFEXITED(p->status) ? WEXITSTATUS(p->status)
							     : 128 + WTERMSIG(p->status));
		if (bl_mono_ns() > until)
			return cli_fail("%s does not listen after %llu s", what,
					LISTEN_TIMEOUT_NS / 1000000000);
		nap_ns(2000000);
	}
	return 0;
}

/* ---- starting ---- */

static void add_flow(struct traffic_cell *c, unsigned int from, unsigned int to)
{
	c->receivers |= 1ULL << to;
	c->flow[c->nflows] = (struct traffic_flow){ .from = from,
						    .to = to,
						    .port = (uint16_t)(PORT_BASE + c->nflows) };
	c->nflows++;
}

static void plan_flows(struct run *r)
{
	unsigned int n = r->lab->spec.hosts, i, k;

	switch (r->p->kind) {
	case TRAFFIC_INCAST:
		for (i = 1; i < n; i++)
			add_flow(r->c, i, 0);
		break;
	case TRAFFIC_OUTCAST:
		for (i = 1; i < n; i++)
			add_flow(r->c, 0, i);
		break;
	case TRAFFIC_SHUFFLE: /* in round k, host i sends to host i + k */
		for (k = 1; k < n; k++)
			for (i = 0; i < n; i++)
				add_flow(r->c, i, (i + k) % n);
		break;
	default: /* memcached: bulk data to the host of the client */
		for (i = 2; i < n && i < 2 + BULK_SENDERS; i++)
			add_flow(r->c, i, 1);
	}
}

/* returns how many flows share the most loaded link */
static unsigned int count_sharers(const struct run *r)
{
	return r->p->kind == TRAFFIC_SHUFFLE ? r->lab->spec.hosts - 1 : r->c->nflows;
}

/* returns for how many seconds a flow sends */
static unsigned int flow_seconds(const struct run *r)
{
	return r->p->seconds + 2 * (r->c->nflows > MANY ? AROUND_MANY_S : AROUND_S);
}

static int start_servers(struct run *r)
{
	unsigned int i;

	for (i = 0; i < r->c->nflows; i++) {
		char addr[16], port[8], *argv[] = { "iperf3", "-s", "-1", "-J", "-i", "1",
						    "-B",     addr, "-p", port, NULL };

		format_app_addr(r->lab, r->c->flow[i].to, addr, sizeof(addr));
		snprintf(port, sizeof(port), "%u", r->c->flow[i].port);
		if (start_program(&r->server[i], r->c->flow[i].to, argv, NULL))
			return 1;
	}
	for (i = 0; i < r->c->nflows; i++)
		if (wait_listening(&r->server[i], r->c->flow[i].port, "an iperf3 server"))
			return 1;
	return 0;
}

/*
 * Returns the largest datagram that is not fragmented. TOP lowers the MTU of bl0 for its echo. A
 * larger datagram would become a long and a short fragment, and in a queue that is always full the
 * short one never finds room: all first fragments arrived, but no datagram.
 */
static unsigned int datagram_bytes(const struct lab_spec *s)
{
	return (s->admission.on ? bl_bl0_mtu(s->mtu, s->admission.policy) : s->mtu) - 28;
}

static int start_client(struct run *r, unsigned int i, unsigned int seconds,
			const struct gate *gate)
{
	const struct traffic_flow *f = &r->c->flow[i];
	uint64_t offer = r->p->offer_bps ? r->p->offer_bps
					 : 2 * r->lab->spec.admission.rate_bps / count_sharers(r);
	char addr[16], own[16], port[8], time[16], rate[24], size[16], *argv[ARGS_MAX];
	int n = 0;

	format_app_addr(r->lab, f->to, addr, sizeof(addr));
	format_app_addr(r->lab, f->from, own, sizeof(own));
	snprintf(port, sizeof(port), "%u", f->port);
	snprintf(time, sizeof(time), "%u", seconds);
	/* the fair share of links without a rate is not known */
	snprintf(rate, sizeof(rate), "%" PRIu64, offer ? offer : 100000000);
	snprintf(size, sizeof(size), "%u", datagram_bytes(&r->lab->spec));
	argv[n++] = "iperf3";
	argv[n++] = "-c";
	argv[n++] = addr;
	argv[n++] = "-B";
	argv[n++] = own;
	argv[n++] = "-p";
	argv[n++] = port;
	argv[n++] = "-t";
	argv[n++] = time;
	argv[n++] = "-J";
	argv[n++] = "--connect-timeout";
	argv[n++] = "10000";
	if (r->c->udp) {
		argv[n++] = "-u";
		argv[n++] = "-b";
		argv[n++] = rate;
		argv[n++] = "-l";
		argv[n++] = size;
	} else {
		argv[n++] = "-C";
		argv[n++] = (char *)(uintptr_t)r->p->congestion;
	}
	argv[n] = NULL;
	return start_program(&r->client[i], f->from, argv, gate);
}

/* returns how many FCP packets the daemon of host @i received, which are datagrams, too */
static long long fcp_received(struct run *r, unsigned int i)
{
	struct bl_fp_page page;
	struct bl_err err;
	char name[16];
	int k;

	if (r->lab->spec.admission.policy != BL_POLICY_FASTPASS || !r->lab->spec.admission.on)
		return 0;
	if (!r->refs) {
		r->nrefs = bl_nodes_find(&r->refs, 0, &err);
		if (r->nrefs < 0)
			r->nrefs = 0;
	}
	snprintf(name, sizeof(name), "h%u", i + 1);
	for (k = 0; k < r->nrefs; k++)
		if (!strcmp(r->refs[k].meta.name, name) &&
		    !node_value(&r->refs[k], BL_MAP_FP_PAGE, 0, &page, sizeof(page)))
			return (long long)page.rx;
	return 0;
}

/* returns how many datagrams programs received in the network namespace of @pid, on host @i */
static long long udp_received(struct run *r, unsigned int i, pid_t pid)
{
	char path[64], line[512];
	long long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/snmp", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Udp: %lld", &n) == 1) /* the line before has the names */
			break;
	if (f)
		fclose(f);
	return n - fcp_received(r, i);
}

/*
 * Stops a UDP sender as soon as its server has received data from it. iperf3 begins with one
 * datagram that it never repeats, and waits for the answer; both would be lost in the full queue
 * that earlier senders cause. So the senders are started one by one, are stopped, and continue
 * together. They must not be stopped earlier: the wait for the answer would end with EINTR, and
 * iperf3 with it.
 */
static void stop_when_heard(struct run *r, unsigned int i, long long before)
{
	uint64_t until = bl_mono_ns() + HELLO_NS;

	while (udp_received(r, r->c->flow[i].to, r->server[i].pid) < before + 3) {
		reap_proc(&r->client[i]);
		if (!r->client[i].pid || bl_mono_ns() > until)
			return;
		nap_ns(500000);
	}
	r->heard_ns[i] = bl_mono_ns();
	kill(r->client[i].pid, SIGSTOP);
}

/*
 * Same as udp_received(), after the queues have drained: datagrams of senders that are stopped must
 * not be taken for those of the next sender.
 */
static long long udp_quiet(struct run *r, unsigned int i, pid_t pid)
{
	uint64_t until = bl_mono_ns() + DRAINED_NS;
	long long n = udp_received(r, i, pid), last;

	do {
		last = n;
		nap_ns(QUIET_US * 1000);
		n = udp_received(r, i, pid);
	} while (n != last && bl_mono_ns() < until);
	return n;
}

/* starts UDP senders one after the other, see stop_when_heard() */
static int start_udp(struct run *r, unsigned int seconds)
{
	unsigned int i;

	for (i = 0; i < r->c->nflows; i++) {
		long long before = udp_quiet(r, r->c->flow[i].to, r->server[i].pid);

		r->heard_ns[i] = 0;
		if (start_client(r, i, seconds, NULL))
			return 1;
		stop_when_heard(r, i, before);
	}
	r->go_ns = bl_mono_ns();
	for (i = 0; i < r->c->nflows; i++)
		if (r->client[i].pid > 0)
			kill(r->client[i].pid, SIGCONT);
	return 0;
}

/*
 * Starts TCP senders at the same time. When they were started one by one, the traffic of the first
 * ones took the CPUs from those that were yet to start, and the last of 56 began when the first had
 * ended.
 */
static int start_tcp(struct run *r, unsigned int seconds)
{
	unsigned int i, rounds = r->p->kind == TRAFFIC_SHUFFLE ? r->lab->spec.hosts : UINT_MAX;
	struct gate g;
	int err = 0;

	if (pipe2(g.fd, O_CLOEXEC))
		return cli_fail("cannot make a pipe: %s", strerror(errno));
	for (i = 0; i < r->c->nflows && !err; i++) {
		g.wait_us = i / rounds * STAGGER_US;
		err = start_client(r, i, seconds, &g);
	}
	r->go_ns = bl_mono_ns();
	for (i = 0; i < r->c->nflows; i++)
		r->client[i].began_ns = r->go_ns;
	close(g.fd[0]);
	close(g.fd[1]);
	return err;
}

static int start_clients(struct run *r, unsigned int seconds)
{
	return r->c->udp ? start_udp(r, seconds) : start_tcp(r, seconds);
}

/* ---- running ---- */

static void sample_queues(struct run *r, const char *what, unsigned int seconds)
{
	uint32_t bytes = traffic_sampler_sample(r->sampler, r->c, r->begun_ns);
	uint64_t ms = (bl_mono_ns() - r->begun_ns) / 1000000;

	if (ms % 100 < TRAFFIC_SAMPLE_US / 1000)
		out_progress("%s, %s, %s: %.1f of %u s, longest queue %.1f frames", what,
			     r->p->policy[r->c->policy].text, r->c->udp ? "UDP" : "TCP",
			     (double)ms / 1e3, seconds, (double)bytes / ADM_FULL_FRAME);
	nap_ns(TRAFFIC_SAMPLE_US * 1000);
}

/* samples until all flows have ended, or their time is over; then kills the rest */
static void wait_for_flows(struct run *r, unsigned int seconds)
{
	uint64_t until = bl_mono_ns() + seconds * 1000000000ull + GRACE_NS, clients_over = 0;
	unsigned int i, clients, servers;

	for (;;) {
		sample_queues(r, traffic_names[r->p->kind], seconds);
		clients = servers = 0;
		for (i = 0; i < r->c->nflows; i++) {
			reap_proc(&r->client[i]);
			reap_proc(&r->server[i]);
			clients += r->client[i].pid > 0;
			servers += r->server[i].pid > 0;
		}
		if (!clients && !clients_over)
			clients_over = bl_mono_ns();
		if ((!clients && !servers) || bl_mono_ns() > until ||
		    (clients_over && bl_mono_ns() - clients_over > LEFT_ALONE_NS))
			break;
	}
	for (i = 0; i < r->c->nflows; i++) {
		kill_proc(&r->client[i]);
		kill_proc(&r->server[i]);
	}
}

/* ---- reports of iperf3 ---- */

static json_t *read_output(struct proc *p)
{
	json_t *j;

	if (p->fd < 0)
		return NULL;
	lseek(p->fd, 0, SEEK_SET);
	j = json_loadfd(p->fd, 0, NULL);
	close(p->fd);
	p->fd = -1;
	return j;
}

static double json_number_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* returns bounds of when flow @i sent, from its server's report @j */
static struct traffic_span flow_span(const struct run *r, unsigned int i, const json_t *j)
{
	const json_t *all = json_object_get(j, "intervals"), *o;
	struct traffic_span s = { .least = (double)r->client[i].began_ns / 1e9,
				  .life = flow_seconds(r) };
	size_t k;

	s.most = (double)r->server[i].ended_ns / 1e9;
	if (r->heard_ns[i])
		s.most = fmin(s.most, (double)r->heard_ns[i] / 1e9);
	json_array_foreach(all, k, o)
	{
		double end = json_number_of(json_object_get(o, "sum"), "end");

		s.most = fmin(s.most, (double)r->server[i].ended_ns / 1e9 - end);
	}
	return s;
}

/*
 * Reads the server's intervals between @from and @to, when all other flows send, too. Over its
 * whole life a flow gets more than its share: the sum over all flows was 99 % of the rate, of which
 * segments can have 94 %, and 340 % when flows began 25 s after each other (shuffle, 2026-11-23).
 */
static void read_server(struct traffic_flow *f, const json_t *j, bool udp,
			const struct traffic_span *s, double from, double to)
{
	const json_t *all = json_object_get(j, "intervals"), *o;
	double bytes = 0, took = 0, jitter = 0;
	unsigned int used = 0;
	size_t i;

	json_array_foreach(all, i, o)
	{
		const json_t *sum = json_object_get(o, "sum");

		if (!traffic_counts(s, json_number_of(sum, "start"), json_number_of(sum, "end"),
				    from, to) ||
		    json_number_of(sum, "seconds") < 0.5)
			continue;
		bytes += json_number_of(sum, "bytes");
		took += json_number_of(sum, "seconds");
		jitter += json_number_of(sum, "jitter_ms");
		used++;
	}
	f->bps = took > 0 ? bytes * 8 / took : 0;
	if (!used)
		snprintf(f->error, sizeof(f->error),
			 "there is no second in which all flows sent: they sent together for %.1f "
			 "s; use fewer hosts or more --seconds",
			 to > from ? to - from : 0);
	if (udp) {
		const json_t *sum = json_object_get(json_object_get(j, "end"), "sum");

		f->jitter_ms = used ? jitter / used : 0;
		f->lost = (uint64_t)json_number_of(sum, "lost_packets");
		f->packets = (uint64_t)json_number_of(sum, "packets");
	}
}

static void read_client(struct traffic_flow *f, const json_t *client, const json_t *server)
{
	const json_t *error = json_object_get(client, "error");
	const json_t *sent = json_object_get(json_object_get(client, "end"), "sum_sent");

	f->retransmits = (uint64_t)json_number_of(sent, "retransmits");
	if (json_is_string(error))
		snprintf(f->error, sizeof(f->error), "%s", json_string_value(error));
	else if (!client || !server)
		snprintf(f->error, sizeof(f->error), "iperf3 did not finish");
}

/*
 * Computes the goodput of each flow in the time in which all flows sent. Flows that failed are left
 * out. Returns 0, or 1 after a message.
 */
static int read_flows(struct run *r)
{
	struct traffic_span *s = calloc(2 * r->c->nflows, sizeof(*s));
	json_t **server = calloc(r->c->nflows, sizeof(json_t *));
	double from, to;
	unsigned int i, n = 0;

	if (!s || !server) {
		free(s);
		free(server);
		return cli_fail("out of memory");
	}
	for (i = 0; i < r->c->nflows; i++) {
		json_t *client = read_output(&r->client[i]);

		server[i] = read_output(&r->server[i]);
		read_client(&r->c->flow[i], client, server[i]);
		json_decref(client);
		s[r->c->nflows + i] = flow_span(r, i, server[i]);
		if (!*r->c->flow[i].error)
			s[n++] = s[r->c->nflows + i];
	}
	traffic_common(s, n, &from, &to);
	from = fmax(from, (double)r->go_ns / 1e9);
	for (i = 0; i < r->c->nflows; i++) {
		if (!*r->c->flow[i].error)
			read_server(&r->c->flow[i], server[i], r->c->udp, &s[r->c->nflows + i],
				    from, to);
		json_decref(server[i]);
	}
	free(s);
	free(server);
	return 0;
}

/* ---- memcached ---- */

static int start_asker(struct run *r, struct traffic_mc *m)
{
	uint8_t addr[4];

	lab_app_addr(r->lab, 0, addr);
	fflush(NULL);
	r->asker.pid = fork();
	if (r->asker.pid < 0)
		return cli_fail("cannot fork: %s", strerror(errno));
	if (!r->asker.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(lab_host_enter(1) ? 126 : traffic_mc_main(m, addr, MC_PORT));
	}
	return 0;
}

static int wait_for_asker(struct run *r, struct traffic_mc *m, int want, uint64_t timeout_ns,
			  const char *what)
{
	uint64_t until = bl_mono_ns() + timeout_ns;

	while (atomic_load(&m->state) >= 0 && atomic_load(&m->state) < want) {
		reap_proc(&r->asker);
		if (!r->asker.pid && atomic_load(&m->state) >= 0 && atomic_load(&m->state) < want)
			return cli_fail("the memcached client died");
		if (bl_mono_ns() > until)
			return cli_fail("the memcached client does not %s", what);
		nap_ns(1000000);
	}
	return atomic_load(&m->state) < 0 ? cli_fail("%s", m->error) : 0;
}

/* measures memcached with values of size @k while bulk data is sent */
static int ask_memcached(struct run *r, unsigned int k)
{
	struct traffic_mc *m = &r->c->mc[k];
	uint64_t go, stop;
	int err;

	m->size = traffic_mc_sizes[k];
	if (start_asker(r, m) || wait_for_asker(r, m, 1, 15000000000ull, "connect") ||
	    start_servers(r))
		return 1;
	if (start_clients(r, flow_seconds(r)))
		return 1;
	go = bl_mono_ns() + AROUND_S * 1000000000ull;
	stop = go + r->p->seconds * 1000000000ull;
	while (bl_mono_ns() < stop) {
		sample_queues(r, "memcached", TRAFFIC_MC_SIZES * flow_seconds(r));
		if (bl_mono_ns() >= go && atomic_load(&m->state) == 1)
			atomic_store(&m->state, 2);
		if (atomic_load(&m->state) < 0)
			return cli_fail("%s", m->error);
	}
	atomic_store(&m->state, 3);
	err = wait_for_asker(r, m, 4, 10000000000ull, "stop");
	wait_for_flows(r, 2);
	kill_proc(&r->asker);
	return err | read_flows(r);
}

static int run_memcached(struct run *r)
{
	char addr[16], port[8], *argv[] = { "memcached", "-u", "nobody", "-U", "0",  "-t", "1",
					    "-m",        "64", "-l",     addr, "-p", port, NULL };
	unsigned int k;
	int err;

	format_app_addr(r->lab, 0, addr, sizeof(addr));
	snprintf(port, sizeof(port), "%u", MC_PORT);
	err = start_program(&r->memcached, 0, argv, NULL) ||
	      wait_listening(&r->memcached, MC_PORT, "memcached");
	for (k = 0; k < TRAFFIC_MC_SIZES && !err; k++)
		err = ask_memcached(r, k);
	kill_proc(&r->memcached);
	return err;
}

static int run_flows(struct run *r)
{
	if (start_servers(r) || start_clients(r, flow_seconds(r)))
		return 1;
	wait_for_flows(r, flow_seconds(r));
	return read_flows(r);
}

int traffic_drive(struct lab *lab, const struct traffic_params *p, struct traffic_cell *c)
{
	struct run *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return cli_fail("out of memory");
	r->lab = lab;
	r->p = p;
	r->c = c;
	plan_flows(r);
	lab_leave_datapath_alone(lab);
	/* hundreds of beacons, so that every link is live and the start of the rack is over */
	nap_ns(300000000);
	r->sampler = traffic_sampler_new(c, lab->spec.admission.on);
	if (!r->sampler)
		return 1;
	r->begun_ns = bl_mono_ns();
	err = p->kind == TRAFFIC_MEMCACHED ? run_memcached(r) : run_flows(r);
	out_progress_end();
	traffic_sampler_end(r->sampler, c);
	c->done = !err;
	free(r->refs);
	free(r);
	return err;
}
