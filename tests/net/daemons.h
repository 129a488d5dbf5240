/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rack with one `barlined` per node, configured by a file, as in a real rack.
 *
 * 	ctl_start(20000);
 * 	daemons_open();
 * 	...
 * 	daemon_stop(i, SIGTERM);
 * 	daemon_start(i);
 *
 * Daemons die with the case. Caretakers do not, and take over when a daemon dies, so a case ends
 * them with daemons_end().
 */
#ifndef BARLINE_TESTS_DAEMONS_H
#define BARLINE_TESTS_DAEMONS_H

#include <sys/pidfd.h>
#include <sys/signalfd.h>

#include <arpa/inet.h>

#include "base/ip.h"
#include "tests/net/controller/controller.h"
#include "tests/net/barline_run.h"

/** struct daemon - the daemon of one node. */
struct daemon {
	pid_t pid;          /* 0: no daemon runs */
	int out;            /* pipe from its stdout */
	uint64_t netns_ino; /* inode of the node's network namespace */
	int64_t skew_ns;    /* offset of its clock, from its command line */
};

static struct daemon dm[LAB_NODES_MAX];
static int32_t dm_caretaker_ms = 30000;
static uint32_t dm_void_ms = 10000;
static const char *dm_clock = "{ source: trust }";
/* The next daemons become this user. NULL: they stay root. */
static const char *dm_user;
static int dm_journal = -1; /* standard error of the next daemons, as of services of systemd */
static bool dm_next; /* the next daemons are build/next/barlined: the same with another version */

T_FN void dm_port(FILE *f, const struct bl_port_cfg *p)
{
	char text[INET6_ADDRSTRLEN];
	unsigned int k;

	fprintf(f, "  - { interface: %s, role: %s", p->ifname,
		p->role == BL_PORT_HOST ? "host"
		: p->role == BL_PORT_UP ? "up"
					: "down");
	for (k = 0; p->source_given && k < p->nmac; k++)
		fprintf(f, "%s\"%02x:%02x:%02x:%02x:%02x:%02x\"", k ? ", " : ", addresses: [",
			p->mac[k][0], p->mac[k][1], p->mac[k][2], p->mac[k][3], p->mac[k][4],
			p->mac[k][5]);
	for (k = 0; p->source_given && k < p->nip; k++)
		fprintf(f, ", \"%s\"", bl_ip_text(p->ip[k], text));
	fprintf(f, "%s }\n", p->source_given ? "]" : "");
}

T_FN void dm_file(unsigned int i, const char *path)
{
	const struct lab_node *n = &rack.lab.nodes[i];
	struct bl_node_cfg c;
	unsigned int k;
	FILE *f;

	CHECK(!lab_node_cfg(&rack.lab, n, &c), "%s", n->name);
	c.dead_after_us = RACK_DEAD_AFTER_US;
	if (rack.tweak)
		rack.tweak(&c, n);
	f = fopen(path, "w");
	CHECK(f, "%s", path);
	fprintf(f,
		"role: %s\nname: %s\nnode_id: %u\nbeacon_us: %u\ndead_after_us: %u\ncaretaker_ms: "
		"%d\nclock_void_after_ms: %u\nclock: %s\n",
		c.role == BL_ROLE_HOST ? "host" : "switch", c.name, c.node_id, c.beacon_us,
		c.dead_after_us, dm_caretaker_ms, dm_void_ms, dm_clock);
	for (k = 0; k < c.ctl.n; k++)
		fprintf(f, "%s  - \"%s\"\n", k ? "" : "controllers:\n", c.ctl.addr[k]);
	if (*c.ctl.ca)
		fprintf(f, "tls: { ca: %s, cert: %s, key: %s }\n", c.ctl.ca, c.ctl.ca, c.ctl.ca);
	for (k = 0; k < c.ncpus; k++)
		fprintf(f, "%s  - %d\n", k ? "" : "cpus:\n", c.cpus[k]);
	if (c.role == BL_ROLE_HOST) {
		fprintf(f, "interface: %s\n", c.ifname);
		if (c.process_limit_ms)
			fprintf(f, "process_limit_ms: %u\n", c.process_limit_ms);
		fprintf(f, "send_limit_ms: %d\n", c.send_limit_ms > 0 ? c.send_limit_ms : 0);
	} else {
		fprintf(f, "thread_napi: true\nforward: %s\nports:\n",
			c.forward == BL_FWD_L2 ? "l2" : "l3");
		for (k = 0; k < c.ports_count; k++)
			dm_port(f, &c.ports[k]);
		for (k = 0; k < c.fdb_count; k++)
			fprintf(f, "%s  - { mac: %02x:%02x:%02x:%02x:%02x:%02x, port: %s }\n",
				k ? "" : "fdb:\n", c.fdb[k].mac[0], c.fdb[k].mac[1],
				c.fdb[k].mac[2], c.fdb[k].mac[3], c.fdb[k].mac[4], c.fdb[k].mac[5],
				c.fdb[k].ifname);
	}
	CHECK(!fclose(f), "%s", path);
	dm[i].skew_ns = c.skew_ns;
	free(c.ports);
	free(c.fdb);
}

/* Returns the path of the program that was built with the tests, build/barlined. */
T_FN const char *dm_program(void)
{
	static char path[512];

	CHECK(barline_path(path, sizeof(path) - sizeof("/next/d")), "where am I?");
	strcpy(strrchr(path, '/'), dm_next ? "/next/barlined" : "/barlined");
	return path;
}

/*
 * Has @pid killed when this process ends. The kernel does that by itself (PR_SET_PDEATHSIG) for a
 * process that does not change its user.
 */
T_FN void dm_guard(pid_t pid)
{
	int daemon = pidfd_open(pid, 0);
	pid_t parent = getpid();
	struct pollfd p[2];
	sigset_t term;

	CHECK(daemon >= 0, "%s", strerror(errno));
	fflush(NULL);
	if (!fork()) {
		sigemptyset(&term);
		sigaddset(&term, SIGTERM);
		sigprocmask(SIG_BLOCK, &term, NULL);
		p[0] = (struct pollfd){ .fd = signalfd(-1, &term, 0), .events = POLLIN };
		p[1] = (struct pollfd){ .fd = daemon, .events = POLLIN };
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() == parent)
			poll(p, 2, -1);
		pidfd_send_signal(daemon, SIGKILL, NULL, 0);
		_exit(0);
	}
	close(daemon);
}

/* Connects standard error with the journal, and says so as systemd does. */
T_FN void dm_to_journal(void)
{
	struct stat st;
	char stream[64];

	if (dup2(dm_journal, STDERR_FILENO) < 0 || fstat(STDERR_FILENO, &st))
		_exit(1);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
}

T_FN void daemon_spawn(unsigned int i)
{
	const struct lab_node *n = &rack.lab.nodes[i];
	char file[128], netns[256], skew[64], user[64];
	char *const argv[] = { "barlined",
			       rack_is_switch(i) ? "switch" : "host",
			       "-c",
			       file,
			       "-n",
			       netns,
			       "-j",
			       skew,
			       dm_user ? user : NULL,
			       NULL };
	const char *program = dm_program();
	pid_t parent = getpid();
	int out[2];

	snprintf(file, sizeof(file), BL_RUN_DIR "/%s.yaml", n->name);
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", n->name);
	dm_file(i, file);
	snprintf(skew, sizeof(skew), "--skew-ns=%" PRId64, dm[i].skew_ns);
	snprintf(user, sizeof(user), "--user=%s", dm_user ? dm_user : "");
	CHECK(!pipe2(out, O_CLOEXEC | O_NONBLOCK), "%s", strerror(errno));
	fflush(NULL);
	dm[i].pid = fork();
	CHECK(dm[i].pid >= 0, "%s", strerror(errno));
	if (!dm[i].pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		dup2(out[1], STDOUT_FILENO);
		setenv("JOURNAL_STREAM", "1:1", 1); /* lets the caretaker log, too */
		if (dm_journal >= 0)
			dm_to_journal();
		execv(program, argv);
		_exit(127);
	}
	close(out[1]);
	dm[i].out = out[0];
	if (dm_user)
		dm_guard(dm[i].pid);
}

/*
 * Waits until the daemon reports that it is ready. Returns false, with its wait status in *@status,
 * if it ended instead.
 */
T_FN bool daemon_ready(unsigned int i, int *status)
{
	uint64_t end = t_mono() + 60000000000ULL;
	static char text[65536];
	size_t len = 0;

	for (;;) {
		ssize_t n = read(dm[i].out, text + len, sizeof(text) - 1 - len);

		len += n > 0 ? (size_t)n : 0;
		text[len] = 0;
		if (strchr(text, '\n') && !strstr(text, "\"error\"")) {
			const char *dir = strstr(text, "\"dir\":\"");

			int found = dir ? sscanf(dir, "\"dir\":\"%255[^\"]", rack.dir[i]) : 0;

			CHECK(found == 1, "%s", text);
			dm[i].netns_ino = strtoull(strrchr(rack.dir[i], '-') + 1, NULL, 10);
			return true;
		}
		if (!n) {
			CHECK(waitpid(dm[i].pid, status, 0) == dm[i].pid, "%s", strerror(errno));
			fprintf(stderr, "  %s said: %s\n", rack.lab.nodes[i].name, text);
			close(dm[i].out);
			dm[i].pid = 0;
			return false;
		}
		CHECK(t_mono() < end, "%s is not ready", rack.lab.nodes[i].name);
		rack_serve(1);
	}
}

T_FN void daemon_start(unsigned int i)
{
	int status = 0;

	daemon_spawn(i);
	CHECK(daemon_ready(i, &status), "%s does not start: status %#x", rack.lab.nodes[i].name,
	      status);
}

/* Waits for the end of the daemon. Returns its wait status. */
T_FN int daemon_wait(unsigned int i)
{
	uint64_t end = t_mono() + 60000000000ULL;
	int status;

	while (waitpid(dm[i].pid, &status, WNOHANG) != dm[i].pid) {
		CHECK(t_mono() < end, "%s does not stop", rack.lab.nodes[i].name);
		rack_serve(1);
	}
	dm[i].pid = 0;
	close(dm[i].out);
	return status;
}

/* Ends the daemon with @sig. Returns the time that this took in ms. */
T_FN unsigned int daemon_stop(unsigned int i, int sig)
{
	uint64_t at = t_mono();
	int status;

	CHECK(!kill(dm[i].pid, sig), "%s", strerror(errno));
	status = daemon_wait(i);
	CHECK(sig == SIGKILL ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status),
	      "%s: status %#x", rack.lab.nodes[i].name, status);
	return (unsigned int)((t_mono() - at) / 1000000);
}

T_FN void dm_path(char *buf, size_t size, unsigned int i, const char *suffix)
{
	snprintf(buf, size, BL_RUN_DIR "/%s-%" PRIu64 "-%s", rack_is_switch(i) ? "switch" : "host",
		 dm[i].netns_ino, suffix);
}

/* Returns the pid of the process that listens at a socket of node @i, or 0 if there is none. */
T_FN pid_t dm_listener(unsigned int i, const char *suffix)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	dm_path(a.sun_path, sizeof(a.sun_path), i, suffix);
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	close(fd);
	return who.pid;
}

/* Returns the pid of the caretaker of node @i, which stands in for its daemon; 0: there is none. */
T_FN pid_t caretaker(unsigned int i)
{
	return dm_listener(i, "caretaker.sock");
}

/* Returns the pid of the spare caretaker of node @i, which waits; 0: there is none. */
T_FN pid_t spare(unsigned int i)
{
	return dm_listener(i, "spare.sock");
}

/* Returns whether a process runs. A zombie does not. */
T_FN bool runs(pid_t pid)
{
	char path[64], state = 'Z';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z';
	if (f)
		fclose(f);
	return state != 'Z' && state != 'X';
}

/*
 * Returns how many events of this name `barline events` shows of node @i.
 * @pid: only those of this process; 0: all
 */
T_FN unsigned int dm_events(unsigned int i, const char *name, pid_t pid)
{
	char barline[512], node[64], event[64], of[32], command[1300];
	unsigned int n = 0;
	FILE *f;

	CHECK(barline_path(barline, sizeof(barline)), "where am I?");
	snprintf(node, sizeof(node), "--node=%s", rack.lab.nodes[i].name);
	snprintf(event, sizeof(event), "--event=%s", name);
	snprintf(of, sizeof(of), pid ? "\"pid\":%d," : "", pid);
	snprintf(command, sizeof(command), "%s events -j %s %s | grep -c '%s'", barline, node,
		 event, of);
	f = popen(command, "r");
	CHECK(f, "%s", command);
	if (fscanf(f, "%u", &n) != 1)
		n = 0;
	pclose(f);
	return n;
}

/* Builds the network of rack.lab.spec and starts one daemon per node. */
T_FN void daemons_open(void)
{
	unsigned int i;
	int status;

	rack.closed = ~0ULL;
	rack_open();
	for (i = 0; i < rack.lab.nnodes; i++)
		daemon_spawn(i);
	for (i = 0; i < rack.lab.nnodes; i++)
		CHECK(daemon_ready(i, &status), "%s does not start", rack.lab.nodes[i].name);
}

/*
 * Returns the number of endpoints in the map of that host's daemon, those included that have ended
 * and are not settled. A host that is detached meanwhile is first silent for twice dead_after.
 */
T_FN unsigned int dm_slots_used(unsigned int host)
{
	int fd = rack_map(rack_host(host), BL_MAP_EPS);
	struct bl_ep_slot s;
	unsigned int n = 0;
	uint32_t k;

	CHECK(fd >= 0, "%s", strerror(errno));
	for (k = 0; k < BL_PORT_COUNT; k++)
		n += !bpf_map_lookup_elem(fd, &k, &s) && s.active != BL_EP_FREE;
	close(fd);
	return n;
}

/* Ends all daemons and caretakers of the case and detaches the nodes. */
T_FN void daemons_end(void)
{
	struct bl_err err;
	unsigned int i;
	char netns[256];

	for (i = 0; i < rack.lab.nnodes; i++) {
		if (dm[i].pid)
			daemon_stop(i, SIGKILL);
		snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[i].name);
		CHECK(!bl_node_detach(rack_is_switch(i) ? BL_ROLE_SWITCH : BL_ROLE_HOST, netns,
				      &err),
		      "%s: %s", rack.lab.nodes[i].name, err.text);
		CHECK(!caretaker(i) && !spare(i), "%s has a caretaker though it is detached",
		      rack.lab.nodes[i].name);
	}
}

#endif
