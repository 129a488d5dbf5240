/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three machines (namespaces) that nobody has set up: a switch with eth0 and eth1, and two hosts
 * with eth0, for tests of `barline switch setup` and `barline host setup`. What a machine looks
 * like is the text of iproute2 and of /proc/sys, and the files.
 */
#ifndef BARLINE_TESTS_SETUP_MACHINES_H
#define BARLINE_TESTS_SETUP_MACHINES_H

#include "tests/net/barline_run.h"
#include "tests/net/rack.h"

#define CONFIG BL_RUN_DIR "/etc"
#define STATE  BL_RUN_DIR "/state"

enum { SW, H1, H2, MACHINES };

static int netns[MACHINES], home = -1;
static char barline[512];
static json_t *said; /* what the last command said */

/* ---- machines ---- */

static inline void enter(int machine)
{
	CHECK(!setns(netns[machine], CLONE_NEWNET), "%s", strerror(errno));
}

static inline void leave(void)
{
	CHECK(!setns(home, CLONE_NEWNET), "%s", strerror(errno));
}

/* Runs a command of the shell on a machine. Returns whether it succeeded. */
__attribute__((format(printf, 2, 3))) static inline bool try(int machine, const char *fmt, ...)
{
	char command[1024];
	va_list ap;
	int rc;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	enter(machine);
	rc = system(command);
	leave();
	return !rc;
}

#define on(machine, ...)                              \
	do {                                          \
		bool ok_ = try(machine, __VA_ARGS__); \
		CHECK(ok_, "it fails: " __VA_ARGS__); \
	} while (0)

static inline void new_machine(int k)
{
	CHECK(!unshare(CLONE_NEWNET), "%s", strerror(errno));
	netns[k] = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	CHECK(netns[k] >= 0, "%s", strerror(errno));
	/* Without it, addresses change their state a while after they were added. */
	CHECK(!system("sysctl -q -w net.ipv6.conf.default.accept_dad=0 "
		      "net.ipv6.conf.all.accept_dad=0 && ip link set lo up"),
	      "sysctl");
	leave();
}

static inline void cable(int host, const char *port, unsigned int number)
{
	const struct nl_end a = { port, { 2, 0, 0, 0, 1, (uint8_t)number } };
	const struct nl_end b = { "eth0", { 2, 0, 0, 0, 0, (uint8_t)number } };
	struct nl nl;

	enter(SW);
	CHECK(!nl_open(&nl) && !nl_veth(&nl, &a, &b, netns[host], 1500), "veth");
	nl_close(&nl);
	CHECK(!nl_plain(port), "offloads of %s", port);
	leave();
	enter(host);
	CHECK(!nl_plain("eth0"), "offloads");
	leave();
}

static inline void plug(void)
{
	int k;

	home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	CHECK(home >= 0 && barline_path(barline, sizeof(barline)), "where am I?");
	for (k = 0; k < MACHINES; k++)
		new_machine(k);
	cable(H1, "eth0", 1);
	cable(H2, "eth1", 2);
	/* The kernel gives an interface its queueing discipline when it is up for the first time.
	 */
	on(SW, "for i in eth0 eth1; do ip link set $i up; ip link set $i down; done");
	on(H1, "ip link set eth0 up; ip link set eth0 down");
	on(H2, "ip link set eth0 up; ip link set eth0 down");
}

/* All that setup may change. The caller frees it. */
static inline char *look(int machine)
{
	static const char command[] = "(ip -d link; ip -d addr) | sed -E 's/[a-z_]+_timer "
				      "+[0-9.]+//g'; ip -4 route show table all; ip -6 "
				      "route show table all; "
				      "ip neigh show nud permanent;"
				      "bridge fdb | grep -v '^33:33\\|^01:00:5e'; "
				      "for f in /proc/sys/net/ipv*/conf/*/forwarding; do echo $f "
				      "$(cat $f); done; "
				      "find " CONFIG " " STATE " -type f -exec grep -H . {} + "
				      "2>/dev/null; "
				      "ls -d " CONFIG " 2>/dev/null";
	char *text = malloc(1 << 18);
	size_t n;
	FILE *p;

	enter(machine);
	p = popen(command, "r");
	CHECK(p && text, "popen");
	n = fread(text, 1, (1 << 18) - 1, p);
	text[n] = '\0';
	pclose(p);
	leave();
	CHECK(n > 500, "nothing is to be seen");
	return text;
}

/* Prints where two looks differ. */
static inline void differ(const char *was, const char *is)
{
	while (*was && *was == *is) {
		was++;
		is++;
	}
	fprintf(stderr, "it was ...%.300s\nand is ...%.300s\n", was, is);
}

/*
 * Waits until the machine looks like @was: the kernel reports a carrier, and adds and removes the
 * addresses that follow from it, a while after a link is set up or down.
 */
static inline void await(int machine, const char *was)
{
	unsigned int n = 0;

	for (;;) {
		char *is = look(machine);
		bool same = !strcmp(is, was);

		if (!same && n++ > 100) {
			differ(was, is);
			FAIL("the machine is not as before");
		}
		free(is);
		if (same)
			return;
		usleep(50000);
	}
}

/* Looks until two looks with more than a second between them are the same. */
static inline char *settled(int machine)
{
	char *a = look(machine), *b;

	for (;;) {
		usleep(1100000); /* the kernel collects changes of carrier for up to a second */
		b = look(machine);
		if (!strcmp(a, b)) {
			free(b);
			return a;
		}
		free(a);
		a = b;
	}
}

/* ---- the command ---- */

/*
 * Runs `barline -j ROLE setup --name NAME WORDS`, with the folders of the test. Returns the exit
 * status; 128 + the signal that ended it.
 */
__attribute__((format(printf, 3, 4))) static inline int setup(int machine, const char *role,
							      const char *fmt, ...)
{
	char words[1024], command[2048], *save = NULL, *argv[64];
	int out = memfd_create("out", MFD_CLOEXEC), n = 0, st;
	va_list ap;
	pid_t pid;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	snprintf(command, sizeof(command),
		 "%s -j %s setup --name %s --config-dir " CONFIG " --state-dir " STATE " %s",
		 barline, role,
		 machine == SW   ? "sw"
		 : machine == H1 ? "h1"
				 : "h2",
		 words);
	for (argv[n] = strtok_r(command, " ", &save); argv[n] && n < 62;)
		argv[++n] = strtok_r(NULL, " ", &save);
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0 && out >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		enter(machine);
		dup2(out, STDOUT_FILENO);
		close(STDIN_FILENO);
		open("/dev/null", O_RDONLY);
		execv(argv[0], argv);
		_exit(127);
	}
	CHECK(waitpid(pid, &st, 0) == pid, "%s", strerror(errno));
	json_decref(said);
	lseek(out, 0, SEEK_SET);
	said = json_loadfd(out, 0, NULL);
	close(out);
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

static inline const char *error_text(void)
{
	const char *text = json_string_value(json_object_get(said, "error"));

	return text ? text : "";
}

static inline int number(const char *key)
{
	json_t *v = json_object_get(said, key);

	return json_is_integer(v) ? (int)json_integer_value(v) : -1;
}

#define good(...)                                                \
	do {                                                     \
		int rc_ = setup(__VA_ARGS__);                    \
		CHECK(!rc_, "status %d: %s", rc_, error_text()); \
	} while (0)
#define bad(part, ...)                                                                         \
	do {                                                                                   \
		int rc_ = setup(__VA_ARGS__);                                                  \
		CHECK(rc_ == 1 && strstr(error_text(), part), "status %d: \"%s\", not \"%s\"", \
		      rc_, error_text(), part);                                                \
	} while (0)

#define L2                                                                                \
	"eth0 eth1 --node-id 1001 --host eth0=02:00:00:00:00:01,10.0.0.1,fd00::1 --host " \
	"eth1=02:00:00:00:00:02,10.0.0.2"
#define L3                                                                                      \
	"--forward l3 eth0 eth1 --node-id 1001 --address eth0=10.0.1.254/24 --address "         \
	"eth1=10.0.2.254/24 --address eth1=fd02::fe/64 --host eth0=02:00:00:00:00:01,10.0.1.1 " \
	"--host eth1=02:00:00:00:00:02,10.0.2.1,fd02::1 --route 10.9.0.0/16=10.0.1.1"

/* Has machine @from say something to @ip, until it knows the Ethernet address of that. */
static inline void talk(int from, const char *ip)
{
	while (!try(from, "bash -c 'echo >/dev/udp/%s/9' && ip neigh show %s | grep -q lladdr", ip,
		    ip))
		usleep(50000);
}

#endif
