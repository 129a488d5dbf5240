/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The driver of a workload, inside the lab: starts unmodified programs in the hosts' namespaces,
 * watches, and reads what they say (traffic.h).
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
#include "cli/util/read.h"
#include "cli/util/read_admission.h"
#include "maps/fastpass_abi.h"
#include "loader/admission/bl0.h"

#define LISTEN_TIMEOUT_NS 10000000000ull
/* for the last segments, reports and retransmission timeouts after the time is up */
#define GRACE_NS      30000000000ull
#define LEFT_ALONE_NS 3000000000ull /* a server whose client is gone */
#define HELLO_NS      3000000000ull /* for a UDP sender to be heard */
#define DRAINED_NS    300000000ull  /* longer than a full queue takes to run empty */
#define QUIET_US      6000          /* so long without a datagram: it is empty */
#define PORT_BASE     5201
#define MC_PORT       11211
#define STAGGER_US    20000 /* shuffle: between the rounds */
#define BULK_SENDERS  4
/*
 * Seconds that a flow runs before those that count, and again after them: while a second of one
 * counts, all of them send (traffic_span.h). Handshakes of the 56 of a shuffle share two CPUs and
 * links that others already fill, and took up to 1.7 s more for one than for another.
 */
#define AROUND_S      1
#define AROUND_MANY_S 3
#define MANY          16 /* flows */
#define ARGS_MAX      32

/**
 * struct proc - a child. @pid 0: ended. @fd: what it prints. @status: of waitpid().
 * @began_ns, @ended_ns: it was started, and was seen to have ended.
 */
struct proc {
	pid_t pid;
	int fd;
	int status;
	uint64_t began_ns, ended_ns;
};

struct run {
	struct lab *lab;
	const struct traffic_params *p;
	struct traffic_cell *c;
	struct traffic_sampler *look;
	struct proc server[TRAFFIC_FLOWS_MAX], client[TRAFFIC_FLOWS_MAX], memcached, asker;
	uint64_t begun_ns;
	/* UDP: the flow had begun; all go on together */
	uint64_t heard_ns[TRAFFIC_FLOWS_MAX], go_ns;
	struct bl_node_ref *refs;
	int nrefs;
};

static void nap(unsigned int us)
{
	const struct timespec t = { .tv_sec = us / 1000000,
				    .tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&t, NULL);
}

static const struct lab_node *host(const struct lab *lab, unsigned int i)
{
	unsigned int k;

	for (k = 0; k < lab->nnodes; k++)
		if (lab->nodes[k].kind == LAB_HOST && lab->nodes[k].index == i + 1)
			return &lab->nodes[k];
	return NULL;
}

/* where applications of host @i listen: bl0's address; without admission the NIC's */
static void app_addr(const struct lab *lab, unsigned int i, uint8_t addr[4])
{
	uint8_t a[16];

	(lab->spec.admission.on ? lab_bl0_addr : lab_host_addr)(host(lab, i), AF_INET, a);
	memcpy(addr, a, 4);
}

static void app_text(const struct lab *lab, unsigned int i, char *text, size_t size)
{
	uint8_t a[4];

	app_addr(lab, i, a);
	snprintf(text, size, "%u.%u.%u.%u", a[0], a[1], a[2], a[3]);
}

static int enter_host(unsigned int i)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "%s/h%u", LAB_NETNS_DIR, i + 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = fd < 0 || setns(fd, CLONE_NEWNET);
	if (fd >= 0)
		close(fd);
	return err;
}

/**
 * struct gate - programs that begin together wait before it.
 * @fd: a pipe; a program waits until nobody has its second end open. @wait_us: and then so long.
 */
struct gate {
	int fd[2];
	unsigned int wait_us;
};

/* after fork(2): a program of one thread that has not begun yet */
static void wait_before(const struct gate *g)
{
	char c;

	close(g->fd[1]);
	while (read(g->fd[0], &c, 1) < 0 && errno == EINTR)
		;
	nap(g->wait_us);
}

/*
 * A program in host @i's namespace, which begins at once or, with a @gate, when that opens; what it
 * prints is kept in memory.
 */
static int spawn(struct proc *p, unsigned int i, char *const argv[], const struct gate *gate)
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
	if (enter_host(i) || dup2(null, STDIN_FILENO) < 0 || dup2(p->fd, STDOUT_FILENO) < 0 ||
	    (!cli.verbose && dup2(null, STDERR_FILENO) < 0))
		_exit(126);
	execvp(argv[0], argv);
	_exit(127);
}

static void reap(struct proc *p)
{
	if (p->pid > 0 && waitpid(p->pid, &p->status, WNOHANG) == p->pid) {
		p->pid = 0;
		p->ended_ns = bl_mono_ns();
	}
}

static void end(struct proc *p)
{
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &p->status, 0);
		p->pid = 0;
		p->ended_ns = bl_mono_ns();
	}
}

/* whether a process has a TCP socket that listens on @port, as its /proc says */
static bool listens(pid_t pid, uint16_t port)
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

	while (!listens(p->pid, port)) {
		reap(p);
		if (!p->pid)
			return cli_fail("%s ended with status %d before it listened", what,
					WIFEXITED(p->status) ? WEXITSTATUS(p->status)
							     : 128 + WTERMSIG(p->status));
		if (bl_mono_ns() > until)
			return cli_fail("%s does not listen after %llu s", what,
					LISTEN_TIMEOUT_NS / 1000000000);
		nap(2000);
	}
	return 0;
}

/* ---- who sends to whom ---- */

static void add_flow(struct traffic_cell *c, unsigned int from, unsigned int to)
{
	c->receivers |= 1ULL << to;
	c->flow[c->nflows] = (struct traffic_flow){ .from = from,
						    .to = to,
						    .port = (uint16_t)(PORT_BASE + c->nflows) };
	c->nflows++;
}

static void plan(struct run *r)
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
	case TRAFFIC_SHUFFLE: /* round k: everybody to the one k further */
		for (k = 1; k < n; k++)
			for (i = 0; i < n; i++)
				add_flow(r->c, i, (i + k) % n);
		break;
	default: /* bulk data to the host that asks memcached */
		for (i = 2; i < n && i < 2 + BULK_SENDERS; i++)
			add_flow(r->c, i, 1);
	}
}

/* flows that share the narrowest link */
static unsigned int sharers(const struct run *r)
{
	return r->p->kind == TRAFFIC_SHUFFLE ? r->lab->spec.hosts - 1 : r->c->nflows;
}

/* seconds that a flow lasts */
static unsigned int life_s(const struct run *r)
{
	return r->p->seconds + 2 * (r->c->nflows > MANY ? AROUND_MANY_S : AROUND_S);
}

static int start_servers(struct run *r)
{
	unsigned int i;

	for (i = 0; i < r->c->nflows; i++) {
		char addr[16], port[8], *argv[] = { "iperf3", "-s", "-1", "-J", "-i", "1",
						    "-B",     addr, "-p", port, NULL };

		app_text(r->lab, r->c->flow[i].to, addr, sizeof(addr));
		snprintf(port, sizeof(port), "%u", r->c->flow[i].port);
		if (spawn(&r->server[i], r->c->flow[i].to, argv, NULL))
			return 1;
	}
	for (i = 0; i < r->c->nflows; i++)
		if (wait_listening(&r->server[i], r->c->flow[i].port, "an iperf3 server"))
			return 1;
	return 0;
}

/*
 * As long as goes without fragments. TOP leaves room for its echo in bl0's MTU; a longer datagram
 * became a long and a short fragment, and of a queue that is always full the short one never got a
 * place: all first halves arrived, and no datagram.
 */
static unsigned int datagram(const struct lab_spec *s)
{
	return (s->admission.on ? bl_bl0_mtu(s->mtu, s->admission.policy) : s->mtu) - 28;
}

static int start_client(struct run *r, unsigned int i, unsigned int seconds,
			const struct gate *gate)
{
	const struct traffic_flow *f = &r->c->flow[i];
	uint64_t offer = r->p->offer_bps ? r->p->offer_bps
					 : 2 * r->lab->spec.admission.rate_bps / sharers(r);
	char addr[16], own[16], port[8], time[16], rate[24], size[16], *argv[ARGS_MAX];
	int n = 0;

	app_text(r->lab, f->to, addr, sizeof(addr));
	app_text(r->lab, f->from, own, sizeof(own));
	snprintf(port, sizeof(port), "%u", f->port);
	snprintf(time, sizeof(time), "%u", seconds);
	/* unmetered: there is no fair share to know */
	snprintf(rate, sizeof(rate), "%" PRIu64, offer ? offer : 100000000);
	snprintf(size, sizeof(size), "%u", datagram(&r->lab->spec));
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
	return spawn(&r->client[i], f->from, argv, gate);
}

/* FCP packets that the daemon of host @i received: datagrams as well, and nobody's data */
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

/* datagrams that programs received where process @pid of host @i lives */
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
 * iperf3 begins with one UDP datagram that it never repeats, and waits for the answer. Neither must
 * meet the full queue that earlier senders have made: each sender is stopped as soon as its server
 * has data of it, and all go on together. (Not before: a wait for a datagram that is stopped ends
 * with EINTR, and iperf3 with it.)
 */
static void hold_back(struct run *r, unsigned int i, long long before)
{
	uint64_t until = bl_mono_ns() + HELLO_NS;

	while (udp_received(r, r->c->flow[i].to, r->server[i].pid) < before + 3) {
		reap(&r->client[i]);
		if (!r->client[i].pid || bl_mono_ns() > until)
			return;
		nap(500);
	}
	r->heard_ns[i] = bl_mono_ns();
	kill(r->client[i].pid, SIGSTOP);
}

/*
 * the same, once what stopped senders have left in queues has come: it must not be taken for the
 * next one's
 */
static long long udp_quiet(struct run *r, unsigned int i, pid_t pid)
{
	uint64_t until = bl_mono_ns() + DRAINED_NS;
	long long n = udp_received(r, i, pid), last;

	do {
		last = n;
		nap(QUIET_US);
		n = udp_received(r, i, pid);
	} while (n != last && bl_mono_ns() < until);
	return n;
}

/* UDP: one after the other, see hold_back() */
static int start_udp(struct run *r, unsigned int seconds)
{
	unsigned int i;

	for (i = 0; i < r->c->nflows; i++) {
		long long before = udp_quiet(r, r->c->flow[i].to, r->server[i].pid);

		r->heard_ns[i] = 0;
		if (start_client(r, i, seconds, NULL))
			return 1;
		hold_back(r, i, before);
	}
	r->go_ns = bl_mono_ns();
	for (i = 0; i < r->c->nflows; i++)
		if (r->client[i].pid > 0)
			kill(r->client[i].pid, SIGCONT);
	return 0;
}

/*
 * TCP: all at once. Where the first one's traffic takes the CPUs from those that are still to be
 * started, the last of 56 began when the first had ended.
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

/* ---- while it runs ---- */

static void look(struct run *r, const char *what, unsigned int seconds)
{
	uint32_t bytes = traffic_sampler_sample(r->look, r->c, r->begun_ns);
	uint64_t ms = (bl_mono_ns() - r->begun_ns) / 1000000;

	if (ms % 100 < TRAFFIC_SAMPLE_US / 1000)
		out_progress("%s, %s, %s: %.1f of %u s, longest queue %.1f frames", what,
			     r->p->policy[r->c->policy].text, r->c->udp ? "UDP" : "TCP",
			     (double)ms / 1e3, seconds, (double)bytes / ADM_FULL_FRAME);
	nap(TRAFFIC_SAMPLE_US);
}

/* until all flows are over, or no hope is left */
static void watch(struct run *r, unsigned int seconds)
{
	uint64_t until = bl_mono_ns() + seconds * 1000000000ull + GRACE_NS, clients_over = 0;
	unsigned int i, clients, servers;

	for (;;) {
		look(r, traffic_names[r->p->kind], seconds);
		clients = servers = 0;
		for (i = 0; i < r->c->nflows; i++) {
			reap(&r->client[i]);
			reap(&r->server[i]);
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
		end(&r->client[i]);
		end(&r->server[i]);
	}
}

/* ---- what iperf3 says ---- */

static json_t *said(struct proc *p)
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

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* when flow @i sent, as far as that is known; @j: its server's report */
static struct traffic_span span_of(const struct run *r, unsigned int i, const json_t *j)
{
	const json_t *all = json_object_get(j, "intervals"), *o;
	struct traffic_span s = { .least = (double)r->client[i].began_ns / 1e9, .life = life_s(r) };
	size_t k;

	s.most = (double)r->server[i].ended_ns / 1e9;
	if (r->heard_ns[i])
		s.most = fmin(s.most, (double)r->heard_ns[i] / 1e9);
	json_array_foreach(all, k, o)
	{
		double end = number(json_object_get(o, "sum"), "end");

		s.most = fmin(s.most, (double)r->server[i].ended_ns / 1e9 - end);
	}
	return s;
}

/*
 * The server's intervals that count, from @from to @to: all other flows send, too. Over its whole
 * life a flow has more than its share, and a sum over flows came to 99 % of a rate of which
 * segments can have 94; with flows that began 25 s after each other to 340 % (shuffle, 2026-11-23).
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

		if (!traffic_counts(s, number(sum, "start"), number(sum, "end"), from, to) ||
		    number(sum, "seconds") < 0.5)
			continue;
		bytes += number(sum, "bytes");
		took += number(sum, "seconds");
		jitter += number(sum, "jitter_ms");
		used++;
	}
	f->bps = took > 0 ? bytes * 8 / took : 0;
	if (!used)
		snprintf(f->error, sizeof(f->error),
			 "no second in which all flows sent: together they did for %.1f s; "
			 "use fewer hosts or more --seconds",
			 to > from ? to - from : 0);
	if (udp) {
		const json_t *sum = json_object_get(json_object_get(j, "end"), "sum");

		f->jitter_ms = used ? jitter / used : 0;
		f->lost = (uint64_t)number(sum, "lost_packets");
		f->packets = (uint64_t)number(sum, "packets");
	}
}

static void read_client(struct traffic_flow *f, const json_t *client, const json_t *server)
{
	const json_t *error = json_object_get(client, "error");
	const json_t *sent = json_object_get(json_object_get(client, "end"), "sum_sent");

	f->retransmits = (uint64_t)number(sent, "retransmits");
	if (json_is_string(error))
		snprintf(f->error, sizeof(f->error), "%s", json_string_value(error));
	else if (!client || !server)
		snprintf(f->error, sizeof(f->error), "iperf3 did not come to its end");
}

/* what each flow had of the time that all had in common; a flow that failed takes part in none */
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
		json_t *client = said(&r->client[i]);

		server[i] = said(&r->server[i]);
		read_client(&r->c->flow[i], client, server[i]);
		json_decref(client);
		s[r->c->nflows + i] = span_of(r, i, server[i]);
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

	app_addr(r->lab, 0, addr);
	fflush(NULL);
	r->asker.pid = fork();
	if (r->asker.pid < 0)
		return cli_fail("cannot fork: %s", strerror(errno));
	if (!r->asker.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(enter_host(1) ? 126 : traffic_mc_main(m, addr, MC_PORT));
	}
	return 0;
}

static int asker_state(struct run *r, struct traffic_mc *m, int want, uint64_t timeout_ns,
		       const char *what)
{
	uint64_t until = bl_mono_ns() + timeout_ns;

	while (atomic_load(&m->state) >= 0 && atomic_load(&m->state) < want) {
		reap(&r->asker);
		if (!r->asker.pid && atomic_load(&m->state) >= 0 && atomic_load(&m->state) < want)
			return cli_fail("the memcached client died");
		if (bl_mono_ns() > until)
			return cli_fail("the memcached client does not %s", what);
		nap(1000);
	}
	return atomic_load(&m->state) < 0 ? cli_fail("%s", m->error) : 0;
}

/* the questions are asked while the bulk data counts */
static int ask_memcached(struct run *r, unsigned int k)
{
	struct traffic_mc *m = &r->c->mc[k];
	uint64_t go, stop;
	int err;

	m->size = traffic_mc_sizes[k];
	if (start_asker(r, m) || asker_state(r, m, 1, 15000000000ull, "connect") ||
	    start_servers(r))
		return 1;
	if (start_clients(r, life_s(r)))
		return 1;
	go = bl_mono_ns() + AROUND_S * 1000000000ull;
	stop = go + r->p->seconds * 1000000000ull;
	while (bl_mono_ns() < stop) {
		look(r, "memcached", TRAFFIC_MC_SIZES * life_s(r));
		if (bl_mono_ns() >= go && atomic_load(&m->state) == 1)
			atomic_store(&m->state, 2);
		if (atomic_load(&m->state) < 0)
			return cli_fail("%s", m->error);
	}
	atomic_store(&m->state, 3);
	err = asker_state(r, m, 4, 10000000000ull, "stop");
	watch(r, 2);
	end(&r->asker);
	return err | read_flows(r);
}

static int run_memcached(struct run *r)
{
	char addr[16], port[8], *argv[] = { "memcached", "-u", "nobody", "-U", "0",  "-t", "1",
					    "-m",        "64", "-l",     addr, "-p", port, NULL };
	unsigned int k;
	int err;

	app_text(r->lab, 0, addr, sizeof(addr));
	snprintf(port, sizeof(port), "%u", MC_PORT);
	err = spawn(&r->memcached, 0, argv, NULL) ||
	      wait_listening(&r->memcached, MC_PORT, "memcached");
	for (k = 0; k < TRAFFIC_MC_SIZES && !err; k++)
		err = ask_memcached(r, k);
	end(&r->memcached);
	return err;
}

static int run_flows(struct run *r)
{
	if (start_servers(r) || start_clients(r, life_s(r)))
		return 1;
	watch(r, life_s(r));
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
	plan(r);
	lab_leave_datapath_alone(lab);
	/* a few hundred beacons: every link is live, and nothing is left of the rack's own start */
	nap(300000);
	r->look = traffic_sampler_new(c, lab->spec.admission.on);
	if (!r->look)
		return 1;
	r->begun_ns = bl_mono_ns();
	err = p->kind == TRAFFIC_MEMCACHED ? run_memcached(r) : run_flows(r);
	out_progress_end();
	traffic_sampler_end(r->look, c);
	c->done = !err;
	free(r->refs);
	free(r);
	return err;
}
