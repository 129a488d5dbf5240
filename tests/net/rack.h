/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rack for one test case: namespaces, links and nodes. A child process makes it, and it vanishes
 * with that process.
 *
 *    test binary (cmocka)
 *      |-- case: own mount namespace, tmpfs on BL_RUN_DIR, anonymous network namespaces;
 *            |   serves all nodes in its main thread
 *            |-- worker ...: one endpoint each (traffic.h), in a host's namespace
 *
 * Every process dies with its parent (PR_SET_PDEATHSIG), so a crash leaves nothing behind. There is
 * no pid namespace: the loader pins NAPI threads, which are visible only in the initial one. The
 * network is built by the lab (lab/lab_net.c), so the tests run the same network as users do.
 *
 * The script of a case runs in the thread that serves the nodes, so it must call rack_serve()
 * instead of sleeping.
 */
#ifndef BARLINE_TESTS_RACK_H
#define BARLINE_TESTS_RACK_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "cli/util/out.h"
#include "lab/lab.h"
#include "base/nl.h"
#include "lib/barline.h"
#include "loader/load/pin.h"
#include "maps/reasons_abi.h"
#include "maps/host_abi.h"

#define T_FN                  static __attribute__((unused))

#define RACK_CASE_S           120   /* limit of a case; one that takes longer hangs */
#define RACK_PROCESS_LIMIT_MS 30000 /* likewise */
/*
 * This is longer than a beacon thread waits for a CPU on a busy virtual machine, which was more
 * than 300 ms beside another rack. A shorter time would exclude live hosts.
 */
#define RACK_DEAD_AFTER_US 1500000

static pid_t rack_case_pid;
static uint64_t rack_begun; /* CLOCK_MONOTONIC at the start of the case */

/* Prints why the case fails, and ends it. Its workers die with it. */
#define FAIL(...) rack_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond, ...)                                                       \
	do {                                                                   \
		if (!(cond))                                                   \
			rack_fail(__FILE__, __LINE__, #cond ": " __VA_ARGS__); \
	} while (0)

static void (*rack_last_words)(void);

__attribute__((format(printf, 3, 4), noreturn)) T_FN void rack_fail(const char *file, int line,
								    const char *fmt, ...)
{
	static bool failing;
	va_list ap;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (rack_last_words && !failing && getpid() == rack_case_pid) {
		failing = true;
		rack_last_words();
	}
	fflush(NULL);
	_exit(1);
}

T_FN uint64_t t_mono(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/*
 * xorshift64*: the randomness of the run. All of it follows from one printed seed; TEST_SEED in the
 * environment repeats it.
 */
T_FN uint64_t t_rand(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545F4914F6CDD1DULL;
}

T_FN uint32_t t_below(uint64_t *s, uint32_t n)
{
	return n ? (uint32_t)((t_rand(s) >> 32) % n) : 0;
}

T_FN uint64_t t_seed(void)
{
	const char *e = getenv("TEST_SEED");
	uint64_t s = e ? strtoull(e, NULL, 0) : t_mono() * 0x9E3779B97F4A7C15ULL;

	s = s ? s : 1;
	fprintf(stderr, "seed 0x%" PRIx64 "\n", s);
	return s;
}

/** struct rack - the rack of the case. */
struct rack {
	struct lab lab;
	struct bl_server *server;
	struct bl_node *node[LAB_NODES_MAX]; /* NULL: the node is not open */
	char dir[LAB_NODES_MAX][256];        /* pin folder of each node; "": never opened */
	/* Changes a node's configuration before each open; may be NULL. */
	void (*tweak)(struct bl_node_cfg *cfg, const struct lab_node *n);
	uint64_t closed;    /* nodes that rack_open() leaves out (bit: index in @lab) */
	unsigned int host0; /* index of h1 in @lab */
};

static struct rack rack;

T_FN unsigned int rack_host(unsigned int i)
{
	return rack.host0 + i;
}

T_FN bool rack_is_switch(unsigned int node)
{
	return rack.lab.nodes[node].kind == LAB_TOR || rack.lab.nodes[node].kind == LAB_SPINE ||
	       rack.lab.nodes[node].kind == LAB_CORE;
}

/* ---- the process of a case ---- */

T_FN void rack_private(void)
{
	struct rlimit files = { 65536, 65536 }, mem = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_MEMLOCK, &mem);
	CHECK(!unshare(CLONE_NEWNS | CLONE_NEWNET), "%s; these tests need root", strerror(errno));
	CHECK(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "%s", strerror(errno));
	CHECK(!mkdir(BL_RUN_DIR, 0755) || errno == EEXIST, "%s", strerror(errno));
	CHECK(!mount("tmpfs", BL_RUN_DIR, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"), "%s",
	      strerror(errno));
}

/*
 * Returns whether case @name is to run: it is one of the words in TEST_CASES (environment), or
 * TEST_CASES is not set.
 */
T_FN bool rack_wanted(const char *name)
{
	const char *all = getenv("TEST_CASES"), *at = all;
	size_t n = strlen(name);

	for (; at && (at = strstr(at, name)); at += n)
		if ((at == all || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return !all;
}

/*
 * Handles the alarm of a case that hangs: prints what is known of the rack before the case ends.
 * Not all of that is safe in a signal handler, so another alarm ends the case in any event.
 */
static void rack_hung(int sig)
{
	signal(sig, SIG_DFL);
	alarm(5);
	fprintf(stderr, "it hangs\n");
	if (rack_last_words)
		rack_last_words();
	fflush(NULL);
	raise(sig);
}

/*
 * Runs a case in a process of its own. Returns NULL if the case reached its end, or a description
 * of its failure. Status 0 is not enough: code under test that calls exit() would pass.
 */
T_FN const char *rack_outcome(void (*fn)(void))
{
	static char text[64];
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS };
	const struct sigaction hung = { .sa_handler = rack_hung, .sa_flags = SA_NODEFER };
	_Atomic int *ended = mmap(NULL, sizeof(*ended), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t start = t_mono();
	unsigned int i;
	pid_t pid;
	int st, done;

	assert_true(ended != MAP_FAILED);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_case_pid = getpid();
		rack_begun = start;
		sigaction(SIGALRM, &hung, NULL);
		/* cmocka's handlers would go on with the next test in this process or a worker */
		for (i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
			signal(crashes[i], SIG_DFL);
		alarm(RACK_CASE_S);
		bl_log_level = 4;
		rack_private();
		fn();
		fflush(NULL);
		*ended = 1;
		_exit(0);
	}
	while (waitpid(pid, &st, 0) < 0)
		assert_int_equal(errno, EINTR);
	fprintf(stderr, "  %.1f s\n", (double)(t_mono() - start) / 1e9);
	done = *ended;
	munmap((void *)ended, sizeof(*ended));
	if (WIFSIGNALED(st))
		snprintf(text, sizeof(text), "the case died of signal %d%s", WTERMSIG(st),
			 WTERMSIG(st) == SIGALRM ? ": it hung" : "");
	else if (WEXITSTATUS(st))
		snprintf(text, sizeof(text), "the case ended with status %d", WEXITSTATUS(st));
	else if (!done)
		snprintf(text, sizeof(text), "the case called exit(0) before its end");
	else
		return NULL;
	return text;
}

/* Fails the cmocka test if the case does not reach its end. */
T_FN void rack_run(void (*fn)(void))
{
	const char *wrong = rack_outcome(fn);

	if (wrong)
		fail_msg("%s", wrong);
}
/* Returns the number of CPUs that this process may use. */
T_FN int rack_cpus(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

/*
 * Returns whether there are @cpus CPUs. tests/run.sh knows the text, counts the CPUs itself, and
 * does not report a case as missing that was skipped for this reason.
 */
T_FN bool rack_has_cpus(const char *name, int cpus)
{
	if (rack_cpus() >= cpus)
		return true;
	print_message("needs %d CPUs: %s\n", cpus, name);
	return false;
}

#define RACK_TEST(name) RACK_TEST_CPUS(name, 1)
#define RACK_TEST_CPUS(name, cpus)                                      \
	static void name##_case(void);                                  \
	static void name(void **state)                                  \
	{                                                               \
		(void)state;                                            \
		if (!rack_wanted(#name) || !rack_has_cpus(#name, cpus)) \
			skip();                                         \
		rack_run(name##_case);                                  \
	}                                                               \
	static void name##_case(void)

/* ---- nodes ---- */

/* Starts node @i. Returns false, with the error in @err, if it did not start. */
T_FN bool rack_start_node(unsigned int i, struct bl_err *err)
{
	const struct lab_node *n = &rack.lab.nodes[i];
	struct bl_node_cfg cfg;
	int rc;

	CHECK(!lab_node_cfg(&rack.lab, n, &cfg), "%s", n->name);
	cfg.dead_after_us = RACK_DEAD_AFTER_US;
	cfg.process_limit_ms = RACK_PROCESS_LIMIT_MS;
	cfg.send_limit_ms = -1; /* a machine without CPU must not cost messages */
	if (rack.tweak)
		rack.tweak(&cfg, n);
	rc = bl_node_open(&rack.node[i], rack.server, &cfg, err);
	free(cfg.ports);
	free(cfg.fdb);
	if (rc)
		return false;
	CHECK(!lab_bl0(&rack.lab, n), "%s: bl0", n->name);
	snprintf(rack.dir[i], sizeof(rack.dir[i]), "%s", bl_node_dir(rack.node[i]));
	return true;
}

T_FN void rack_open_node(unsigned int i)
{
	struct bl_err err;

	CHECK(rack_start_node(i, &err), "%s: %s", rack.lab.nodes[i].name, err.text);
}

T_FN void rack_close_node(unsigned int i)
{
	bl_node_close(rack.node[i]);
	rack.node[i] = NULL;
}

/* The next daemon of node @i loads its programs, as one of another version would. */
T_FN void rack_forget_programs(unsigned int i)
{
	char path[384];

	snprintf(path, sizeof(path), "%s/progs", rack.dir[i]);
	CHECK(!access(path, F_OK) && !bl_pins_remove(path), "%s: %s", path, strerror(errno));
}

/* Another daemon with other programs takes node @i over. */
T_FN void rack_upgrade_node(unsigned int i)
{
	rack_forget_programs(i);
	rack_close_node(i);
	rack_open_node(i);
}

/* Builds the network of rack.lab.spec and opens all nodes except those in rack.closed. */
T_FN void rack_open(void)
{
	struct lab_spec *s = &rack.lab.spec;
	struct bl_err err;
	unsigned int i;

	snprintf(s->name, sizeof(s->name), "test");
	s->mtu = s->mtu ? s->mtu : 1500;
	s->beacon_us = s->beacon_us ? s->beacon_us : 500;
	if (s->leaf_spine) {
		s->tors = s->tors ? s->tors : s->cores ? 4 : 2;
		s->spines = s->spines ? s->spines : s->cores ? 4 : 2;
	}
	lab_plan(&rack.lab);
	for (rack.host0 = 0; rack.lab.nodes[rack.host0].kind != LAB_HOST; rack.host0++)
		;
	CHECK(!lab_build(&rack.lab), "the network could not be made");
	CHECK(!bl_server_new(&rack.server, &err), "%s", err.text);
	for (i = 0; i < rack.lab.nnodes; i++)
		if (!(rack.closed >> i & 1) && rack.lab.nodes[i].kind != LAB_ARBITER)
			rack_open_node(i);
}

/* Serves the nodes for @ms. */
T_FN void rack_serve(unsigned int ms)
{
	uint64_t end = t_mono() + ms * 1000000ULL, now;
	struct pollfd p = { .fd = bl_server_fd(rack.server), .events = POLLIN };
	struct bl_err err;

	do {
		CHECK(bl_server_step(rack.server, &err) >= 0, "%s", err.text);
		now = t_mono();
		if (now < end)
			poll(&p, 1, (int)((end - now + 999999) / 1000000));
	} while (t_mono() < end);
	CHECK(bl_server_step(rack.server, &err) >= 0, "%s", err.text);
}

T_FN void rack_enter(unsigned int node)
{
	CHECK(!setns(rack.lab.nodes[node].netns, CLONE_NEWNET), "%s: %s", rack.lab.nodes[node].name,
	      strerror(errno));
}

/* Enters the namespace of @node for a while. Returns the descriptor that rack_back() takes. */
T_FN int rack_away(unsigned int node)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	CHECK(home >= 0, "%s", strerror(errno));
	rack_enter(node);
	return home;
}

T_FN void rack_back(int home)
{
	CHECK(!setns(home, CLONE_NEWNET), "%s", strerror(errno));
	close(home);
}

/* Sets an interface of a node up or down, as `ip link set` does. */
T_FN void rack_link(unsigned int node, const char *ifname, bool up)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
	} req = { .h = { .nlmsg_len = sizeof(req),
			 .nlmsg_type = RTM_NEWLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		  .i = { .ifi_change = IFF_UP } };
	char ans[512];
	int home = rack_away(node);
	struct nl nl;

	CHECK(!nl_open(&nl), "netlink");
	req.i.ifi_index = (int)if_nametoindex(ifname);
	req.i.ifi_flags = up ? IFF_UP : 0;
	CHECK(send(nl.fd, &req, sizeof(req), 0) == sizeof(req) &&
		      recv(nl.fd, ans, sizeof(ans), 0) > 0,
	      "%s", ifname);
	CHECK(!((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)ans))->error, "%s", ifname);
	nl_close(&nl);
	rack_back(home);
}

/* ---- counters ---- */

T_FN int rack_map(unsigned int node, const char *name)
{
	char path[384];

	snprintf(path, sizeof(path), "%s/maps/%s", rack.dir[node], name);
	return bpf_obj_get(path);
}

/* Maps the page of endpoint slot @slot of a host. Returns NULL if the slot has none. */
T_FN struct bl_ep_page *rack_page(unsigned int node, uint32_t slot)
{
	int outer = rack_map(node, BL_MAP_EP_PAGES), fd = -1;
	uint32_t id;
	void *p = MAP_FAILED;

	CHECK(outer >= 0, "no pages: %s", strerror(errno));
	if (!bpf_map_lookup_elem(outer, &slot, &id))
		fd = bpf_map_get_fd_by_id(id);
	if (fd >= 0) {
		p = mmap(NULL, sizeof(struct bl_ep_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 0);
		close(fd);
	}
	close(outer);
	return p == MAP_FAILED ? NULL : p;
}

/* Returns the line of endpoint slot @slot of a host; all zero: the slot has no endpoint. */
T_FN struct bl_inflight rack_line(unsigned int node, uint32_t slot)
{
	struct bl_ep_page *p = rack_page(node, slot);
	struct bl_inflight line = { 0 };

	if (p) {
		line = p->line;
		munmap(p, sizeof(*p));
	}
	return line;
}

/* Returns a node's frames by reason, summed over CPUs and over its ports or directions. */
T_FN struct bl_counts rack_counts(unsigned int node)
{
	static struct bl_counts v[BL_COUNTS_UNKNOWN + 1];
	uint32_t keys = rack_is_switch(node) ? BL_COUNTS_UNKNOWN + 1 : BL_HC_COUNT, k, r;
	struct bl_counts sum = { 0 };
	int fd = rack_map(node, BL_MAP_COUNTS), rc;

	CHECK(fd >= 0, "%s: no counts: %s", rack.lab.nodes[node].name, strerror(errno));
	rc = bl_counts_read(fd, v, keys);
	CHECK(!rc, "%s", strerror(-rc));
	for (k = 0; k < keys; k++)
		for (r = 0; r < BL_REASON_MAX; r++) {
			sum.n[r] += v[k].n[r];
			sum.bytes[r] += v[k].bytes[r];
		}
	close(fd);
	return sum;
}

T_FN uint64_t rack_count(unsigned int node, enum bl_reason r)
{
	return rack_counts(node).n[r];
}

/* Returns the sum over all open nodes. */
T_FN uint64_t rack_count_all(enum bl_reason r)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < rack.lab.nnodes; i++)
		if (*rack.dir[i])
			n += rack_count(i, r);
	return n;
}

/* Returns the number of inputs that hold back the barriers of a switch. */
T_FN unsigned int rack_live_inputs(unsigned int node)
{
	struct bl_port_regs regs;
	unsigned int live = 0, l;
	uint32_t k;
	int fd = rack_map(node, BL_MAP_SW_REGS);

	CHECK(fd >= 0, "%s", strerror(errno));
	for (k = 0; k < rack.lab.nodes[node].nports; k++) {
		CHECK(!bpf_map_lookup_elem(fd, &k, &regs), "%s", strerror(errno));
		for (l = 0; l < BL_LANES_MAX && (uint8_t)regs.lane[l].state != BL_REG_LIVE; l++)
			;
		live += l < BL_LANES_MAX;
	}
	close(fd);
	return live;
}

/* Returns whether host @i, which is silent, has promised ahead of its clock. */
T_FN bool rack_promises_ahead(unsigned int i)
{
	struct bl_host_page page;
	uint32_t zero = 0;
	int fd = rack_map(rack_host(i), BL_MAP_HOST_PAGE);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &page), "host page");
	close(fd);
	return page.promised > page.data_ns;
}

/*
 * Waits until every switch aggregates all its open neighbours. Before that, messages over a new
 * link may be late.
 */
T_FN void rack_settle(void)
{
	uint64_t end = t_mono() + 60000000000ULL;
	unsigned int i, k, want;

	for (i = 0; i < rack.lab.nnodes; i++) {
		if (!rack_is_switch(i) || !rack.node[i])
			continue;
		for (k = want = 0; k < rack.lab.nodes[i].nports; k++)
			want += rack.node[rack.lab.nodes[i].ports[k].peer_node] != NULL;
		while (rack_live_inputs(i) < want) {
			CHECK(t_mono() < end, "%s aggregates %u inputs of %u",
			      rack.lab.nodes[i].name, rack_live_inputs(i), want);
			rack_serve(2);
		}
	}
	rack_serve(20);
}

/*
 * Prints how many frames the interfaces of node @i have dropped: these have no reason of a program.
 * The calling thread changes its network namespace.
 */
T_FN void rack_dump_nics(unsigned int i)
{
	char line[512], name[16];
	uint64_t n[12];
	FILE *f;

	if (setns(rack.lab.nodes[i].netns, CLONE_NEWNET))
		return;
	f = fopen("/proc/thread-self/net/dev", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line,
			   " %15[^:]: %" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64
			   "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64
			   "%" SCNu64,
			   name, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8],
			   &n[9], &n[10], &n[11]) == 13 &&
		    (n[3] || n[11]))
			fprintf(stderr,
				"%s: %s dropped %" PRIu64 " that came, %" PRIu64 " that were to "
				"leave\n",
				rack.lab.nodes[i].name, name, n[3], n[11]);
	}
	if (f)
		fclose(f);
}

T_FN void rack_dump(void)
{
#define T_NAME(sym, name, kind, text) [BL_R_##sym] = name,
	static const char *const names[BL_REASON_MAX] = { BL_REASONS(T_NAME) };
#undef T_NAME
	unsigned int i, r;
	int home;

	for (i = 0; i < rack.lab.nnodes; i++) {
		struct bl_counts c;

		if (!*rack.dir[i])
			continue;
		c = rack_counts(i);
		fprintf(stderr, "%s:", rack.lab.nodes[i].name);
		for (r = 0; r < BL_REASON_MAX; r++)
			if (c.n[r])
				fprintf(stderr, " %s=%llu", names[r] ? names[r] : "?",
					(unsigned long long)c.n[r]);
		fputc('\n', stderr);
	}
	home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	for (i = 0; i < rack.lab.nnodes && home >= 0; i++)
		rack_dump_nics(i);
	if (home >= 0) {
		CHECK(!setns(home, CLONE_NEWNET), "%s", strerror(errno));
		close(home);
	}
}

#endif
