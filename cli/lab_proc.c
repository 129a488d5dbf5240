/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process tree of a lab: making it, finding it, entering it (lab.h).
 */
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

#include "cmd.h"
#include "lab.h"

#define LAB_LOG BL_RUN_DIR "/lab.log"

struct init {
	struct lab *lab;
	int (*driver)(struct lab *lab);
	int front;	/* `lab up`: tells the front that the lab is up; `lab run`: hangs up when the front is gone */
	int listen;
	int ready;	/* tells the driver */
	pid_t driver_pid;
	struct bl_server *server;
	uint64_t since_ns;
};

static socklen_t lab_address(const char *name, struct sockaddr_un *sa)
{
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1, "%s%s", LAB_SOCKET, name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int open_socket(struct init *in)
{
	struct sockaddr_un sa;
	socklen_t len = lab_address(in->lab->spec.name, &sa);

	in->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (in->listen < 0)
		return cli_fail("cannot make a socket: %s", strerror(errno));
	if (bind(in->listen, (struct sockaddr *)&sa, len)) {
		if (errno == EADDRINUSE)
			return cli_fail("a lab named \"%s\" is up already; choose another name, or `barline lab down %s`", in->lab->spec.name,
					in->lab->spec.name);
		return cli_fail("cannot bind the lab's socket: %s", strerror(errno));
	}
	/* whoever listens is whom SO_PEERCRED names: init, not the front */
	return listen(in->listen, 64) ? cli_fail("cannot listen: %s", strerror(errno)) : 0;
}

static int private_world(void)
{
	if (unshare(CLONE_NEWNET))
		return cli_fail("cannot make a network namespace: %s", strerror(errno));
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return cli_fail("cannot make mounts private: %s", strerror(errno));
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return cli_fail("/proc: %s", strerror(errno));
	if (mount("tmpfs", BL_RUN_DIR, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"))
		return cli_fail("%s: %s", BL_RUN_DIR, strerror(errno));
	return 0;
}

static int start_driver(struct init *in)
{
	int fds[2];
	char c;

	if (!in->driver)
		return 0;
	if (pipe2(fds, O_CLOEXEC))
		return cli_fail("cannot make a pipe: %s", strerror(errno));
	fflush(NULL);
	in->driver_pid = fork();
	if (in->driver_pid < 0)
		return cli_fail("cannot fork the driver: %s", strerror(errno));
	if (in->driver_pid) {
		close(fds[0]);
		in->ready = fds[1];
		return 0;
	}
	close(fds[1]);
	close(in->listen);
	if (read(fds[0], &c, 1) != 1)
		_exit(1);
	c = (char)in->driver(in->lab);
	fflush(NULL);
	_exit(c);
}

static int open_nodes(struct init *in)
{
	struct bl_err err;
	unsigned int i;

	if (bl_server_new(&in->server, &err))
		return cli_fail("%s", err.text);
	/* switches come first: a host's first beacons find their way prepared */
	for (i = 0; !in->lab->spec.bare && i < in->lab->nnodes; i++) {
		const struct lab_node *n = &in->lab->nodes[i];
		struct bl_node_cfg cfg;
		struct bl_node *node;
		int e;

		out_progress("raising the lab: programs on %s", n->name);
		if (lab_node_cfg(in->lab, n, &cfg))
			return cli_fail("out of memory");
		e = bl_node_open(&node, in->server, &cfg, &err);
		free(cfg.ports);
		free(cfg.fdb);
		if (e)
			return cli_fail("%s: %s", n->name, err.text);
	}
	out_progress_end();
	return 0;
}

static json_t *lab_info(const struct init *in)
{
	const struct lab_spec *s = &in->lab->spec;
	json_t *nodes = json_array();
	unsigned int i;

	for (i = 0; i < in->lab->nnodes; i++)
		json_array_append_new(nodes, json_string(in->lab->nodes[i].name));
	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:b, s:f, s:o}", "name", s->name, "kind", s->leaf_spine ? "leaf-spine" : "rack", "forward",
			 s->l3 ? "l3" : "l2", "hosts", (int)s->hosts, "mtu", (int)s->mtu, "programs", !s->bare, "age_s",
			 (double)(mono_ns() - in->since_ns) / 1e9, "nodes", nodes);
}

static void answer(struct init *in)
{
	int fd = accept4(in->listen, NULL, NULL, SOCK_CLOEXEC);
	json_t *info = fd >= 0 ? lab_info(in) : NULL;
	char *text = info ? json_dumps(info, JSON_COMPACT) : NULL;

	if (text && send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		cli_say("a visitor left early");
	free(text);
	json_decref(info);
	if (fd >= 0)
		close(fd);
}

/* the driver's status once it has ended; -1: nobody of interest */
static int reap(const struct init *in)
{
	int st, result = -1;
	pid_t pid;

	while ((pid = waitpid(-1, &st, WNOHANG)) > 0)
		if (pid == in->driver_pid)
			result = WIFEXITED(st) ? WEXITSTATUS(st) : cli_fail("the lab's driver died of signal %d", WTERMSIG(st));
	return result;
}

static int loop(struct init *in, int sigfd)
{
	struct pollfd p[] = { { .fd = bl_server_fd(in->server), .events = POLLIN }, { .fd = sigfd, .events = POLLIN },
			      { .fd = in->listen, .events = POLLIN }, { .fd = in->driver ? in->front : -1, .events = POLLIN } };
	struct signalfd_siginfo si;
	struct bl_err err;
	int e, st;

	for (;;) {
		if (poll(p, sizeof(p) / sizeof(p[0]), -1) < 0 && errno != EINTR)
			return cli_fail("poll: %s", strerror(errno));
		if (p[0].revents) {
			e = bl_server_step(in->server, &err);
			if (e < 0)
				return cli_fail("%s", err.text);
		}
		if (p[1].revents && read(sigfd, &si, sizeof(si)) == sizeof(si)) {
			if (si.ssi_signo != SIGCHLD)
				return 0;
			st = reap(in);
			if (st >= 0)
				return st;
		}
		if (p[2].revents)
			answer(in);
		if (p[3].revents & (POLLHUP | POLLERR))
			return 1;
	}
}

static void to_background(void)
{
	int in = open("/dev/null", O_RDWR | O_CLOEXEC), log = open(LAB_LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	fflush(NULL);
	if (in >= 0) {
		dup2(in, STDIN_FILENO);
		dup2(in, STDOUT_FILENO);
	}
	dup2(log >= 0 ? log : in, STDERR_FILENO);
}

static int init_main(struct init *in)
{
	sigset_t mask;
	int sigfd;

	if (in->driver)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	else
		setsid();
	prctl(PR_SET_NAME, "barline-lab");
	if (open_socket(in) || private_world() || start_driver(in))
		return 1;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	sigfd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigfd < 0)
		return cli_fail("signalfd: %s", strerror(errno));
	in->since_ns = mono_ns();
	if (lab_build(in->lab) || open_nodes(in))
		return 1;
	if (in->driver) {
		if (write(in->ready, "R", 1) != 1)
			return cli_fail("the lab's driver is gone");
	} else {
		if (chdir("/"))
			return cli_fail("/: %s", strerror(errno));
		to_background();
		if (write(in->front, "R", 1) != 1)
			return 1;
		close(in->front);
	}
	return loop(in, sigfd);
}

int lab_start(struct lab *lab, int (*driver)(struct lab *lab))
{
	struct rlimit files = { 65536, 65536 };
	struct init in = { .lab = lab, .driver = driver, .front = -1, .ready = -1 };
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
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0)
		return cli_fail("cannot make the lab's namespaces: %s%s", strerror(errno),
				errno == EPERM ? "; labs need CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_BPF: run as root" : "");
	if (pid == 0) {
		/* `lab up` tells the front through the pipe; `lab run` notices by it that the front is gone */
		in.front = driver ? fds[0] : fds[1];
		close(driver ? fds[1] : fds[0]);
		st = init_main(&in);
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
		return cli_fail("the lab's init died of signal %d (%s)", WTERMSIG(st), strsignal(WTERMSIG(st)));
	return WEXITSTATUS(st);
}

int lab_find(const char *name, int *pidfd, pid_t *pid)
{
	struct sockaddr_un sa;
	socklen_t len = lab_address(name, &sa);
	struct ucred cred;
	socklen_t cl = sizeof(cred);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, len)) {
		cli_fail("no lab named \"%s\" in this network namespace; `barline lab list` shows what is up", name);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	*pidfd = -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cl) || cred.pid <= 0) {
		cli_fail("lab \"%s\" lives in a pid namespace that is not below this one", name);
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

int lab_enter(int pidfd, const char *lab, const char *node)
{
	char path[64], *cwd = getcwd(NULL, 0);
	int fd;

	if (setns(pidfd, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET))
		return cli_fail("cannot enter lab \"%s\": %s", lab, strerror(errno));
	if (cwd && chdir(cwd))
		cli_say("%s is not there inside the lab; working in /", cwd);
	free(cwd);
	if (!node)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", LAB_NETNS_DIR, node);
	fd = strchr(node, '/') ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cli_fail("lab \"%s\" has no node \"%s\"; `barline lab list` names them", lab, node);
	if (setns(fd, CLONE_NEWNET))
		return cli_fail("cannot enter %s: %s", node, strerror(errno));
	close(fd);
	return 0;
}
