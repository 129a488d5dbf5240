/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tree of processes of a lab: starting, finding and entering it (lab.h).
 */
#include <netinet/in.h> /* before anything that includes <linux/ipv6.h> */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arbiter/server.h"
#include "base/time.h"
#include "cli/util/arbiter_serve.h"
#include "cli/util/out.h"
#include "lab/lab.h"

#define LAB_LOG    BL_RUN_DIR "/lab.log"
#define BL_LAB_LOG 4 /* log level: warnings */

/** struct tree - What a process of the lab inherits from the one that forks it. */
struct tree {
	struct lab *lab;
	int (*driver)(struct lab *lab, void *arg); /* NULL: `lab up` */
	void *driver_arg;

	/*
	 * pipe between the server and the front. `lab up`: the server writes a byte when the lab is
	 * up. `lab run`: the server's end hangs up when the front has ended.
	 */
	int front;
	/* the lab's socket, bound by the server in the front's namespace; init listens on it */
	int listen;
	/* pipe from the server to init: a byte when the lab is up; hangs up when the server ends */
	int up[2];
	/*
	 * socket pair between the server, [0], and the driver, [1]: the driver sends the index of a
	 * node whose daemon is to be killed, and the server answers with the result
	 */
	int request[2];
	/*
	 * pipe to the daemons of lab_spec.apart. It hangs up when all nodes are open and they may
	 * begin to serve; before, the interface lo of the lab is down
	 */
	int go[2];

	struct bl_node *node[LAB_NODES_MAX];
	pid_t daemon_pid[LAB_NODES_MAX]; /* with lab_spec.apart; 0: the node has no daemon */
	pid_t init_pid;
	pid_t driver_pid; /* of the driver, or of the keeper */
	struct bl_server *server;
	uint64_t since_ns; /* CLOCK_MONOTONIC when the server started */
	bool is_up;        /* init's view */
};

static socklen_t lab_address(const char *name, struct sockaddr_un *sa)
{
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "%s%s", LAB_SOCKET, name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int bind_socket(struct tree *t)
{
	struct sockaddr_un sa;
	socklen_t len = lab_address(t->lab->spec.name, &sa);

	t->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->listen < 0)
		return cli_fail("cannot make a socket: %s", strerror(errno));
	if (bind(t->listen, (struct sockaddr *)&sa, len)) {
		if (errno == EADDRINUSE)
			return cli_fail("a lab named \"%s\" is up already; choose another name, or "
					"`barline lab down %s`",
					t->lab->spec.name, t->lab->spec.name);
		return cli_fail("cannot bind the lab's socket: %s", strerror(errno));
	}
	return 0;
}

static int make_private_namespaces(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS))
		return cli_fail("cannot make the lab's namespaces: %s%s", strerror(errno),
				errno == EPERM ? "; labs need CAP_SYS_ADMIN, CAP_NET_ADMIN and "
						 "CAP_BPF: run as root"
					       : "");
	/* mounts stay inside the lab, but what the server mounts later also appears in init */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL))
		return cli_fail("cannot make the lab's mounts private: %s", strerror(errno));
	if (mount("tmpfs", BL_RUN_DIR, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"))
		return cli_fail("%s: %s", BL_RUN_DIR, strerror(errno));
	return 0;
}

static void unblock_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int block_signals(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int open_node(struct tree *t, unsigned int i, struct bl_err *err)
{
	struct bl_node_cfg cfg;
	int e;

	if (lab_node_cfg(t->lab, &t->lab->nodes[i], &cfg))
		return bl_fail(err, ENOMEM, "out of memory");
	e = bl_node_open(&t->node[i], t->server, &cfg, err);
	free(cfg.ports);
	free(cfg.fdb);
	return e;
}

/* Serves node @i until it is killed. Writes a byte to @up when the node's programs run. */
static int daemon_main(struct tree *t, unsigned int i, int up)
{
	struct pollfd p = { .events = POLLIN };
	struct bl_err err;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "barline-node");
	close(t->listen);
	close(t->go[1]);
	if (bl_server_new(&t->server, &err) || open_node(t, i, &err))
		return cli_fail("%s: %s", t->lab->nodes[i].name, err.text);
	if (write(up, "R", 1) != 1)
		return 1;
	close(up);
	if (read(t->go[0], &c, 1))
		return 1;
	for (p.fd = bl_server_fd(t->server); bl_server_step(t->server, &err) >= 0;)
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return cli_fail("poll: %s", strerror(errno));
	return cli_fail("%s: %s", t->lab->nodes[i].name, err.text);
}

static int start_daemon(struct tree *t, unsigned int i)
{
	int up[2];
	char c;

	fflush(NULL);
	if (pipe2(up, O_CLOEXEC))
		return cli_fail("pipe: %s", strerror(errno));
	t->daemon_pid[i] = fork();
	if (t->daemon_pid[i] < 0)
		return cli_fail("cannot fork the daemon of %s: %s", t->lab->nodes[i].name,
				strerror(errno));
	if (!t->daemon_pid[i]) {
		close(up[0]);
		_exit(daemon_main(t, i, up[1]));
	}
	close(up[1]);
	if (read(up[0], &c, 1) != 1)
		return cli_fail("the daemon of %s did not start", t->lab->nodes[i].name);
	close(up[0]);
	return 0;
}

static int open_nodes(struct tree *t)
{
	struct bl_err err;
	unsigned int i;

	if (bl_server_new(&t->server, &err))
		return cli_fail("%s", err.text);
	if (pipe2(t->go, O_CLOEXEC))
		return cli_fail("pipe: %s", strerror(errno));
	/* switches are first in the list, so the first beacons of hosts reach running programs */
	for (i = 0; !t->lab->spec.bare && i < t->lab->nnodes; i++) {
		const struct lab_node *n = &t->lab->nodes[i];

		out_progress("raising the lab: programs on %s", n->name);
		if (n->kind == LAB_ARBITER)
			continue;
		if (t->lab->spec.apart) {
			if (start_daemon(t, i))
				return 1;
		} else if (open_node(t, i, &err)) {
			return cli_fail("%s: %s", n->name, err.text);
		}
		if (lab_bl0(t->lab, n))
			return 1;
	}
	out_progress_end();
	return 0;
}

static json_t *lab_info(const struct tree *t)
{
	const struct lab_spec *s = &t->lab->spec;
	json_t *nodes = json_array();
	unsigned int i;

	for (i = 0; i < t->lab->nnodes; i++)
		json_array_append_new(nodes, json_string(t->lab->nodes[i].name));
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:b, s:f, s:o}", "name", s->name,
			 "state", t->is_up ? "up" : "starting", "kind",
			 s->dumbbell     ? "dumbbell"
			 : s->cores      ? "three-tier"
			 : s->leaf_spine ? "leaf-spine"
					 : "rack",
			 "forward", s->l3 ? "l3" : "l2", "hosts", (int)s->hosts, "mtu", (int)s->mtu,
			 "controllers", (int)s->controllers, "programs", !s->bare, "age_s",
			 (double)(bl_mono_ns() - t->since_ns) / 1e9, "nodes", nodes);
}

static void answer_client(struct tree *t)
{
	int fd = accept4(t->listen, NULL, NULL, SOCK_CLOEXEC);
	json_t *info = fd >= 0 ? lab_info(t) : NULL;
	char *text = info ? json_dumps(info, JSON_COMPACT) : NULL;

	if (text && send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		cli_say("a client of the lab's socket left before it was answered");
	free(text);
	json_decref(info);
	if (fd >= 0)
		close(fd);
}

/* reaps all children that ended; returns the exit status of @who, or -1 if it runs */
static int reap_children(pid_t who, const char *name)
{
	int st, result = -1;
	pid_t pid;

	while ((pid = waitpid(-1, &st, WNOHANG)) > 0)
		if (pid == who)
			result = WIFEXITED(st)
					 ? WEXITSTATUS(st)
					 : cli_fail("the lab's %s died of signal %d (%s)", name,
						    WTERMSIG(st), strsignal(WTERMSIG(st)));
	return result;
}

/* in the driver: its end of struct tree's order */
static int driver_side = -1;

static int start_driver(struct tree *t, int *ready)
{
	int fds[2], st;
	char c;

	if (!t->driver)
		return 0;
	if (pipe2(fds, O_CLOEXEC))
		return cli_fail("cannot make a pipe: %s", strerror(errno));
	t->driver_pid = fork();
	if (t->driver_pid < 0)
		return cli_fail("cannot fork the driver: %s", strerror(errno));
	if (t->driver_pid) {
		close(fds[0]);
		*ready = fds[1];
		return 0;
	}
	close(fds[1]);
	close(t->listen);
	driver_side = t->request[1];
	unblock_signals();
	if (read(fds[0], &c, 1) != 1)
		_exit(1);
	st = t->driver(t->lab, t->driver_arg);
	fflush(NULL);
	_exit(st);
}

/* Closes stdin, stdout and stderr: a program that reads the output of `lab up` sees its end. */
static void move_to_background(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC),
	    log = open(LAB_LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	fflush(NULL);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	dup2(log >= 0 ? log : null, STDERR_FILENO);
}

void lab_leave_datapath_alone(const struct lab *lab)
{
	cpu_set_t set;
	unsigned int i;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (i = 0; i < lab->spec.ncpus; i++)
		CPU_CLR((size_t)lab->spec.cpus[i], &set);
	if (!lab->spec.ncpus)
		CPU_CLR(0, &set);
	if (lab->spec.admission.pacer_cpu)
		CPU_CLR((size_t)lab->spec.admission.pacer_cpu - 1, &set);
	if (CPU_COUNT(&set))
		sched_setaffinity(0, sizeof(set), &set);
}

pid_t lab_host_fork(unsigned int host, void (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		cli_fail("cannot fork: %s", strerror(errno));
		return -1;
	}
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (lab_host_enter(host))
		_exit(126);
	fn(arg);
	_exit(0);
}

int lab_arbiter(struct lab *lab, unsigned int rank)
{
	const struct sched_param prio = { .sched_priority = 1 };
	struct bl_arb_cfg how = { .threads = 1 };
	char name[16];
	unsigned int i;
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "barline-arbiter");
	unblock_signals();
	lab_leave_datapath_alone(lab);
	snprintf(name, sizeof(name), "a%u", rank + 1);
	err = lab_node_enter(name);
	if (err)
		return cli_fail("cannot enter the namespace of %s: %s", name, strerror(-err));
	for (i = 0; i < lab->nnodes; i++)
		if (lab->nodes[i].kind == LAB_ARBITER && lab->nodes[i].nports > 1)
			snprintf(how.group_if, sizeof(how.group_if), "%s",
				 lab->nodes[i].ports[1].ifname);
	/* same priority as the threads of the hosts' daemon: a slot that is granted late is lost */
	sched_setscheduler(0, SCHED_FIFO, &prio);
	if (!cli.verbose)
		bl_log_level = BL_LAB_LOG;
	return arb_serve(&lab->fp, rank, &how, NULL, NULL, NULL);
}

static int start_arbiters(struct tree *t)
{
	unsigned int i;

	for (i = 0; i < t->lab->fp.narbiters; i++) {
		pid_t pid;

		fflush(NULL);
		pid = fork();
		if (pid < 0)
			return cli_fail("cannot fork an arbiter: %s", strerror(errno));
		if (!pid) {
			close(t->listen);
			if (!t->driver)
				move_to_background();
			_exit(lab_arbiter(t->lab, i));
		}
	}
	return 0;
}

/*
 * `lab up --controllers`: starts the keeper, the parent of the controllers, which end when it ends.
 * The keeper tells the front that the lab is up when one controller leads and knows all nodes.
 */
static int start_keeper(struct tree *t)
{
	if (t->driver || !t->lab->spec.controllers)
		return 0;
	fflush(NULL);
	t->driver_pid = fork();
	if (t->driver_pid < 0)
		return cli_fail("cannot fork the keeper of the controllers: %s", strerror(errno));
	if (t->driver_pid)
		return 0;
	prctl(PR_SET_NAME, "barline-keeper");
	close(t->listen);
	unblock_signals();
	if (!lab_ctl_start(t->lab, LAB_LOG) || write(t->front, "R", 1) != 1)
		_exit(1);
	close(t->front);
	move_to_background();
	for (;;)
		if (wait(NULL) < 0) /* a controller that was killed is not started again */
			pause();
}

/*
 * Init, pid 1 of the lab: reaps children and answers clients of the lab's socket. When it ends, the
 * kernel kills all processes of the pid namespace. Returns the exit status.
 */
static int init_main(struct tree *t)
{
	struct pollfd p[3];
	int sigfd, ready = -1, st;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "barline-init");
	close(t->up[1]);
	close(t->request[0]);
	/*
	 * Init and its children see the /proc of this pid namespace. The server keeps the outer
	 * one, which shows kernel threads.
	 */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return cli_fail("/proc: %s", strerror(errno));
	/* SO_PEERCRED names the process that calls listen(2) */
	if (listen(t->listen, 64))
		return cli_fail("cannot listen: %s", strerror(errno));
	sigfd = block_signals();
	if (sigfd < 0 || start_driver(t, &ready))
		return 1;
	p[0] = (struct pollfd){ .fd = t->up[0], .events = POLLIN };
	p[1] = (struct pollfd){ .fd = sigfd, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = t->listen, .events = POLLIN };
	for (;;) {
		struct signalfd_siginfo si;

		if (poll(p, 3, -1) < 0) {
			if (errno == EINTR)
				continue;
			return cli_fail("poll: %s", strerror(errno));
		}
		if (p[0].revents) {
			if (read(t->up[0], &c, 1) != 1)
				return 1;
			t->is_up = true;
			if (start_arbiters(t) || start_keeper(t))
				return 1;
			if (!t->driver)
				move_to_background();
			if (ready >= 0 && write(ready, "R", 1) != 1)
				return cli_fail("the lab's driver ended before the lab was up");
		}
		if (p[1].revents && read(sigfd, &si, sizeof(si)) == sizeof(si)) {
			if (si.ssi_signo != SIGCHLD)
				return 0;
			st = reap_children(t->driver_pid,
					   t->driver ? "driver" : "keeper of controllers");
			if (st >= 0)
				return st;
		}
		if (p[2].revents)
			answer_client(t);
	}
}

static int start_init(struct tree *t)
{
	int st;

	if (pipe2(t->up, O_CLOEXEC) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, t->request))
		return cli_fail("cannot make a pipe: %s", strerror(errno));
	fflush(NULL);
	t->init_pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL,
				     NULL, NULL);
	if (t->init_pid < 0)
		return cli_fail("cannot make the lab's pid namespace: %s", strerror(errno));
	if (t->init_pid == 0) {
		st = init_main(t);
		fflush(NULL);
		_exit(st);
	}
	close(t->up[0]);
	close(t->request[1]);
	return 0;
}

/* ---- requests of the driver to the server ---- */

static void kill_on_request(struct tree *t)
{
	int rc = -ENOENT, st;
	uint32_t i;

	if (recv(t->request[0], &i, sizeof(i), MSG_DONTWAIT) != sizeof(i))
		return;
	if (i < t->lab->nnodes && t->daemon_pid[i] > 0) {
		rc = kill(t->daemon_pid[i], SIGKILL) || waitpid(t->daemon_pid[i], &st, 0) < 0
			     ? -errno
			     : 0;
		t->daemon_pid[i] = 0;
	}
	if (rc)
		cli_fail("the daemon of node %u cannot be killed: %s", i, strerror(-rc));
	if (send(t->request[0], &rc, sizeof(rc), MSG_NOSIGNAL) != sizeof(rc))
		cli_say("the driver ended before its request was answered");
}

int lab_node_kill(unsigned int node)
{
	const uint32_t o = node;
	int rc;

	if (send(driver_side, &o, sizeof(o), MSG_NOSIGNAL) != sizeof(o) ||
	    recv(driver_side, &rc, sizeof(rc), 0) != sizeof(rc))
		return cli_fail("the lab's server does not answer: %s", strerror(errno));
	return rc != 0;
}

/* Returns 0, or 1 after a message if a daemon ended that was not killed on request. */
static int check_daemons(struct tree *t)
{
	unsigned int i;
	int st;

	for (i = 0; i < t->lab->nnodes; i++)
		if (t->daemon_pid[i] > 0 &&
		    waitpid(t->daemon_pid[i], &st, WNOHANG) == t->daemon_pid[i]) {
			t->daemon_pid[i] = 0;
			return cli_fail("the daemon of %s has ended", t->lab->nodes[i].name);
		}
	return 0;
}

static int serve_nodes(struct tree *t, int sigfd)
{
	struct pollfd p[] = { { .fd = bl_server_fd(t->server), .events = POLLIN },
			      { .fd = sigfd, .events = POLLIN },
			      { .fd = t->driver ? t->front : -1, .events = POLLIN },
			      { .fd = t->request[0], .events = POLLIN } };
	struct signalfd_siginfo si;
	struct bl_err err;
	int st;

	close(t->go[1]);
	if (bl_server_step(t->server, &err)) /* arms its timers */
		return cli_fail("%s", err.text);
	for (;;) {
		if (poll(p, sizeof(p) / sizeof(p[0]), -1) < 0) {
			if (errno == EINTR)
				continue;
			return cli_fail("poll: %s", strerror(errno));
		}
		if (p[0].revents && bl_server_step(t->server, &err) < 0)
			return cli_fail("%s", err.text);
		if (p[1].revents && read(sigfd, &si, sizeof(si)) == sizeof(si)) {
			if (si.ssi_signo != SIGCHLD)
				return 0;
			if (check_daemons(t)) /* before reap_children(), which reaps any child */
				return 1;
			st = reap_children(t->init_pid, "init");
			if (st >= 0)
				return st;
		}
		if (p[2].revents & (POLLHUP | POLLERR))
			return 1;
		if (p[3].revents)
			kill_on_request(t);
	}
}

static int server_main(struct tree *t)
{
	int sigfd;

	if (t->driver)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	else
		setsid();
	prctl(PR_SET_NAME, "barline-lab");
	t->since_ns = bl_mono_ns();
	if (t->driver && !cli.verbose)
		bl_log_level = BL_LAB_LOG; /* notices would announce every worker */
	if (bind_socket(t) || make_private_namespaces() || start_init(t))
		return 1;
	sigfd = block_signals();
	if (sigfd < 0)
		return cli_fail("signalfd: %s", strerror(errno));
	if (lab_build(t->lab) || open_nodes(t))
		return 1;
	if (write(t->up[1], "R", 1) != 1)
		return cli_fail("the lab's init is gone");
	if (!t->driver) {
		if (chdir("/"))
			return cli_fail("/: %s", strerror(errno));
		move_to_background();
		if (!t->lab->spec.controllers && write(t->front, "R", 1) != 1)
			return 1;
		close(t->front);
	}
	return serve_nodes(t, sigfd);
}

int lab_start(struct lab *lab, int (*driver)(struct lab *lab, void *arg), void *arg)
{
	struct rlimit files = { 65536, 65536 };
	struct tree t = {
		.lab = lab, .driver = driver, .driver_arg = arg, .front = -1, .listen = -1
	};
	int fds[2], st;
	pid_t pid;
	char c;

	if (mkdir(BL_RUN_DIR, 0755) && errno != EEXIST)
		return cli_fail("%s: %s", BL_RUN_DIR, strerror(errno));
	setrlimit(RLIMIT_NOFILE, &files);
	lab_plan(lab);
	if (pipe2(fds, O_CLOEXEC))
		return cli_fail("cannot make a pipe: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return cli_fail("cannot fork: %s", strerror(errno));
	if (pid == 0) {
		t.front = driver ? fds[0] : fds[1];
		close(driver ? fds[1] : fds[0]);
		st = server_main(&t);
		fflush(NULL);
		_exit(st);
	}
	if (driver) {
		close(fds[0]);
	} else {
		close(fds[1]);
		if (read(fds[0], &c, 1) == 1)
			return 0;
	}
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return cli_fail("waitpid: %s", strerror(errno));
	out_progress_end();
	if (WIFSIGNALED(st))
		return cli_fail("the lab died of signal %d (%s)", WTERMSIG(st),
				strsignal(WTERMSIG(st)));
	return WEXITSTATUS(st);
}

bool lab_there(const char *name)
{
	struct sockaddr_un sa;
	socklen_t len = lab_address(name, &sa);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool there = fd >= 0 && !bind(fd, (struct sockaddr *)&sa, len) ? false
								       : errno == EADDRINUSE;

	if (fd >= 0)
		close(fd);
	return there;
}

int lab_find(const char *name, int *pidfd, pid_t *pid)
{
	struct sockaddr_un sa;
	socklen_t len = lab_address(name, &sa);
	struct ucred cred;
	socklen_t cl = sizeof(cred);
	const struct timeval most = { .tv_sec = LAB_WAIT_MS / 1000 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	/* connect() would wait for a process that is stopped and has a full queue */
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, len)) {
		if (errno == EAGAIN)
			cli_fail("lab \"%s\" has not answered for %d s; is it stopped? "
				 "`barline lab list` has its process",
				 name, LAB_WAIT_MS / 1000);
		else
			cli_fail("no lab named \"%s\" in this network namespace; `barline lab "
				 "list` shows the labs that are up",
				 name);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	*pidfd = -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cl) || cred.pid <= 0) {
		cli_fail("lab \"%s\" is in a pid namespace that is not below this one", name);
	} else {
		*pid = cred.pid;
		*pidfd = (int)syscall(SYS_pidfd_open, cred.pid, 0);
		if (*pidfd < 0)
			cli_fail("lab \"%s\" (pid %d): %s", name, cred.pid, strerror(errno));
	}
	if (*pidfd < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

json_t *lab_ask(const char *name, int *pidfd, pid_t *pid)
{
	struct timeval tv = { .tv_sec = LAB_WAIT_MS / 1000 };
	int fd = lab_find(name, pidfd, pid);
	char buf[8192];
	ssize_t n;

	if (fd < 0)
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	/* with SO_RCVTIMEO, a process that was stopped and continued gets EINTR */
	n = TEMP_FAILURE_RETRY(recv(fd, buf, sizeof(buf), 0));
	close(fd);
	return n > 0 ? json_loadb(buf, (size_t)n, 0, NULL) : NULL;
}

int lab_enter(int pidfd, const char *lab, const char *node)
{
	char path[64], *cwd = getcwd(NULL, 0);
	int fd;

	if (setns(pidfd, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET))
		return cli_fail("cannot enter lab \"%s\": %s", lab, strerror(errno));
	if (cwd && chdir(cwd))
		cli_say("the directory %s does not exist inside the lab; working in /", cwd);
	free(cwd);
	if (!node || !strcmp(node, LAB_MGMT))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", LAB_NETNS_DIR, node);
	fd = strchr(node, '/') ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cli_fail("lab \"%s\" has no node \"%s\": hosts are h1, h2 and so on, ToR "
				"switches s1, spines p1, arbiters a1, the network of daemons and "
				"controllers " LAB_MGMT "; `barline lab list` lists how many",
				lab, node);
	if (setns(fd, CLONE_NEWNET))
		return cli_fail("cannot enter %s: %s", node, strerror(errno));
	close(fd);
	return 0;
}
