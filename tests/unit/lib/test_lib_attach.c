// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bl_init() while it waits for the host's daemon, which the test plays. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lib/barline.h"
#include "maps/host_abi.h"

#define REFUSAL "this port is taken"

static struct sockaddr_un at = { .sun_family = AF_UNIX };

/* Register in a child. Returns 0 if the refusal of the daemon arrived as it was sent. */
static int registers(void)
{
	const struct bl_options o = { .socket_path = at.sun_path };
	struct bl_endpoint *ep;
	int rc = bl_init(&ep, &o);

	if (rc == -EADDRINUSE && !strcmp(bl_strerror(NULL), REFUSAL))
		return 0;
	fprintf(stderr, "bl_init: %d, %s\n", rc, bl_strerror(NULL));
	return 1;
}

/* Whether the process sleeps in the kernel, waiting for an answer. */
static int sleeps(pid_t pid)
{
	char path[64], text[512] = "", *state;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}

/* A process that is stopped while it waits, and continued, waits on. */
static void bl_init__stopped_while_it_waits(void **state)
{
	struct bl_attach_rep rep = { .magic = BL_SOCK_MAGIC,
				     .error = EADDRINUSE,
				     .message = REFUSAL };
	struct bl_attach_req req;
	int listener, conn, st, k;
	pid_t pid;

	(void)state;
	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/barline-attach-%d.sock", getpid());
	unlink(at.sun_path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(registers());
	conn = accept(listener, NULL, NULL);
	assert_true(conn >= 0);
	assert_true(recv(conn, &req, sizeof(req), 0) > 0);
	for (k = 0; k < 3; k++) {
		while (!sleeps(pid))
			poll(NULL, 0, 1);
		assert_int_equal(kill(pid, SIGSTOP), 0);
		assert_int_equal(waitpid(pid, &st, WUNTRACED), pid);
		assert_true(WIFSTOPPED(st));
		assert_int_equal(kill(pid, SIGCONT), 0);
		assert_int_equal(waitpid(pid, &st, WCONTINUED), pid);
		assert_true(WIFCONTINUED(st));
	}
	while (!sleeps(pid))
		poll(NULL, 0, 1);
	assert_int_equal(send(conn, &rep, sizeof(rep), MSG_NOSIGNAL), sizeof(rep));
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_int_equal(st, 0);
	close(conn);
	close(listener);
	unlink(at.sun_path);
}

/* Who may not use the socket is told who may, and not that there is no daemon. */
static void bl_init__not_allowed(void **state)
{
	struct bl_endpoint *ep;
	int listener, st;
	pid_t pid;

	(void)state;
	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/barline-attach-%d.sock", getpid());
	unlink(at.sun_path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(chmod(at.sun_path, 0), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		const struct bl_options o = { .socket_path = at.sun_path };

		if (!geteuid() && setresuid(65534, 65534, 65534))
			_exit(2);
		_exit(bl_init(&ep, &o) != -EACCES || !strstr(bl_strerror(NULL), "group barline"));
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_int_equal(st, 0);
	close(listener);
	assert_int_equal(unlink(at.sun_path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_init__stopped_while_it_waits),
		cmocka_unit_test(bl_init__not_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
