/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A failure controller in a process of its own, which dies with the case, and its status output.
 *
 * 	struct bl_ctl_cfg cfg = { .listen = "127.0.0.1:61693", .sqlite = BL_RUN_DIR "/ctl.db" };
 * 	pid_t pid = ctl_child(&cfg);
 * 	... until strstr(ctl_ask(pid), "\"state\":\"leader\"")
 *
 * Include this after rack.h.
 */
#ifndef BARLINE_TESTS_CTL_CHILD_H
#define BARLINE_TESTS_CTL_CHILD_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "controller/server.h"
#include "base/netns.h"
#include "maps/meta_abi.h"

/*
 * The nodes of every rack of the tests: those of a lab (lab_node_id()), and numbers below 100.
 * Whoever gives a list of his own has that one.
 */
#define CTL_KINDS 6
#define CTL_EACH  99
static struct bl_ctl_node ctl_nodes[CTL_KINDS * CTL_EACH];

T_FN pid_t ctl_child(const struct bl_ctl_cfg *given)
{
	struct bl_ctl_cfg own = *given, *cfg = &own;
	pid_t parent = getpid(), pid;
	uint32_t i;
	struct bl_ctl *c;
	struct bl_err err;
	int rc;

	for (i = 0; i < CTL_KINDS * CTL_EACH; i++)
		ctl_nodes[i].id = i / CTL_EACH * 1000 + i % CTL_EACH + 1;
	if (!own.nodes) {
		own.nodes = ctl_nodes;
		own.nnodes = CTL_KINDS * CTL_EACH;
	}
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "%s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	rc = bl_ctl_new(&c, cfg, &err);
	if (!rc)
		rc = bl_ctl_run(c, &err);
	fprintf(stderr, "controller at %s: %s\n", cfg->listen, rc ? err.text : "ended");
	_exit(1);
}

/*
 * Returns what the controller with this @pid answers to @command ("": its status) on its status
 * socket, in a static buffer; "": nothing. If the controller stands still, this takes 5 s.
 */
T_FN const char *ctl_tell(pid_t pid, const char *command)
{
	static char text[1 << 20];
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = 5 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t len = 0;
	ssize_t n;

	snprintf(sa.sun_path, sizeof(sa.sun_path), BL_RUN_DIR BL_CTL_STATUS,
		 (unsigned long long)bl_netns_ino(), (int)pid);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		if (write(fd, command, strlen(command)) != (ssize_t)strlen(command))
			CHECK(errno == EPIPE, "%s", strerror(errno));
		shutdown(fd, SHUT_WR);
		while (len < sizeof(text) - 1 &&
		       (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
			len += (size_t)n;
	}
	close(fd);
	text[len] = 0;
	return text;
}

T_FN const char *ctl_ask(pid_t pid)
{
	return ctl_tell(pid, "");
}

#endif
