/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command that runs beside the test, in the namespace of a node, while the test serves the rack:
 *
 * 	const char *const argv[] = { barline, "send", "10.77.1.2:61710", "hi", NULL };
 * 	struct run r = start_on(rack_host(0), argv, "");
 *
 * 	written(&r, r.err, "line 1 is ");
 * 	reap(&r, "the sender");
 * 	... r.status, text_of(r.out), text_of(r.err)
 */
#ifndef BARLINE_TESTS_RUN_BESIDE_H
#define BARLINE_TESTS_RUN_BESIDE_H

#include "tests/net/rack.h"

#define RUN_WAIT_NS 60000000000ULL /* a command that does not end or speak for so long fails */

/** struct run - a command that runs. */
struct run {
	pid_t pid;
	int out, err, status;
};

#define RUN_HERE (~0U) /* as a node: the network namespace of the test */

/* Starts a command in the namespace of node @node with @text as its input. */
T_FN struct run start_on(unsigned int node, const char *const *argv, const char *text)
{
	struct run r = { .out = memfd_create("out", MFD_CLOEXEC),
			 .err = memfd_create("err", MFD_CLOEXEC) };
	int in = memfd_create("in", MFD_CLOEXEC);

	CHECK(r.out >= 0 && r.err >= 0 && in >= 0 &&
		      write(in, text, strlen(text)) == (ssize_t)strlen(text),
	      "%s", strerror(errno));
	lseek(in, 0, SEEK_SET);
	fflush(NULL);
	r.pid = fork();
	CHECK(r.pid >= 0, "%s", strerror(errno));
	if (!r.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (node != RUN_HERE)
			rack_enter(node);
		dup2(in, STDIN_FILENO);
		dup2(r.out, STDOUT_FILENO);
		dup2(r.err, STDERR_FILENO);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(in);
	return r;
}

/* Returns what the command has written so far. */
T_FN const char *text_of(int fd)
{
	static char buf[1 << 20];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

	CHECK(n >= 0, "%s", strerror(errno));
	buf[n] = 0;
	return buf;
}

/* Waits for the end of the command, while the daemons serve it. */
T_FN void reap(struct run *r, const char *what)
{
	uint64_t end = t_mono() + RUN_WAIT_NS;

	while (waitpid(r->pid, &r->status, WNOHANG) != r->pid) {
		CHECK(t_mono() < end, "%s does not end", what);
		rack_serve(2);
	}
}

/* Waits until the command has written @text to r->out or r->err, @fd. Returns what follows it. */
T_FN const char *written(struct run *r, int fd, const char *text)
{
	uint64_t end = t_mono() + RUN_WAIT_NS;
	const char *at;

	while (!(at = strstr(text_of(fd), text))) {
		CHECK(t_mono() < end, "it does not say \"%s\" but \"%s\"", text, text_of(r->err));
		CHECK(!waitpid(r->pid, &r->status, WNOHANG), "it ended: %s", text_of(r->err));
		rack_serve(2);
	}
	return at + strlen(text);
}

/* Ends the command by a signal, also if it is stopped. */
T_FN void end_run(struct run *r, int sig)
{
	kill(r->pid, SIGCONT);
	kill(r->pid, sig);
	reap(r, "a command");
	close(r->out);
	close(r->err);
}

#endif
