// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cli/util/status.c: a service that is well, slow, silent, gone, or sends nonsense or a byte now
 * and then. No answer takes longer than STATUS_WAIT_MS; the time is the clock's of the test, which
 * no stopped process stops.
 */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/util/status.h"
#include "maps/meta_abi.h"

int __wrap_cli_fail(const char *fmt, ...);
uint64_t __wrap_bl_netns_ino(void);

static char failed[512];

int __wrap_cli_fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(failed, sizeof(failed), fmt, ap);
	va_end(ap);
	return 1;
}

/* No node has a namespace of this number, so no process of the machine is asked. */
uint64_t __wrap_bl_netns_ino(void)
{
	return 7;
}

static char path[108];

static int listen_at(const char *at, int queue)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", at);
	unlink(at);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, queue), 0);
	return fd;
}

static int begin(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/bl_status_%d.sock", getpid());
	*failed = '\0';
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

/** struct service - sends @text, @each bytes at a time every @ms, and then ends unless @stays. */
struct service {
	int fd;
	const char *text;
	size_t each;
	unsigned int ms;
	bool stays;
};

static void *serve(void *arg)
{
	const struct service *s = arg;
	int conn = accept(s->fd, NULL, NULL);
	size_t at, n = strlen(s->text);
	char said[64];

	while (recv(conn, said, sizeof(said), 0) > 0)
		;
	for (at = 0; at < n; at += s->each) {
		if (send(conn, s->text + at, s->each < n - at ? s->each : n - at, MSG_NOSIGNAL) < 0)
			break;
		usleep(s->ms * 1000);
	}
	while (s->stays && send(conn, " ", 1, MSG_NOSIGNAL) == 1)
		usleep(100000);
	close(conn);
	return NULL;
}

static json_t *ask(struct service s)
{
	pthread_t thread;
	json_t *v;

	s.fd = listen_at(path, 4);
	assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);
	v = status_ask(path, "hello\n");
	pthread_join(thread, NULL);
	close(s.fd);
	return v;
}

static void status_ask__answers(void **state)
{
	static char big[300000];
	json_t *v;

	(void)state;
	v = ask((struct service){ .text = "{\"a\": 1}", .each = 100 });
	assert_int_equal(json_integer_value(json_object_get(v, "a")), 1);
	json_decref(v);
	v = ask((struct service){ .text = "{\"a\": 2}", .each = 3, .ms = 20 });
	assert_int_equal(json_integer_value(json_object_get(v, "a")), 2);
	json_decref(v);
	memset(big, 'x', sizeof(big) - 1);
	memcpy(big, "{\"a\":\"", 6);
	memcpy(big + sizeof(big) - 3, "\"}", 2);
	v = ask((struct service){ .text = big, .each = 50000 });
	assert_int_equal(json_string_length(json_object_get(v, "a")), sizeof(big) - 1 - 8);
	json_decref(v);
}

static void status_ask__nonsense(void **state)
{
	(void)state;
	assert_null(ask((struct service){ .text = "", .each = 1 }));
	assert_null(ask((struct service){ .text = "{\"a\": ", .each = 10 }));
	assert_null(ask((struct service){ .text = "nonsense", .each = 10 }));
	unlink(path);
	assert_null(status_ask(path, NULL));
	close(listen_at(path, 1)); /* nobody listens any more */
	assert_null(status_ask(path, NULL));
}

/* One that never ends its answer, and one whose queue is full, as that of a stopped process. */
static void status_ask__has_a_limit(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd, conn[8], k;

	(void)state;
	assert_null(ask((struct service){ .text = "{", .each = 1, .stays = true }));
	fd = listen_at(path, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	for (k = 0; k < 8; k++) {
		conn[k] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (connect(conn[k], (struct sockaddr *)&a, sizeof(a)))
			break;
	}
	assert_true(k < 8);
	assert_null(status_ask(path, "hello\n"));
	for (; k >= 0; k--)
		close(conn[k]);
	close(fd);
}

static pid_t start_silent(char *at, size_t size)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(at, size, BL_RUN_DIR "/unit-7-%d.sock", getpid());
		listen_at(at, 4);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	snprintf(at, size, BL_RUN_DIR "/unit-7-%d.sock", pid);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* The message names the process, and whether it is stopped. */
static void status_none__names_the_process(void **state)
{
	char at[108], expect[64];
	json_t *all;
	pid_t pid;
	int st;

	(void)state;
	if (mkdir(BL_RUN_DIR, 0755) && access(BL_RUN_DIR, W_OK))
		fail_msg("%s: run the tests as root", BL_RUN_DIR);
	assert_int_equal(status_none("unit", "unit", "there is none"), 1);
	assert_string_equal(failed, "there is none");
	pid = start_silent(at, sizeof(at));
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &st, WUNTRACED), pid);
	all = status_ask_each("unit", NULL);
	assert_int_equal(json_array_size(all), 0);
	json_decref(all);
	assert_int_equal(status_none("unit", "unit", "there is none"), 1);
	snprintf(expect, sizeof(expect), "`kill -CONT %d`", pid);
	assert_non_null(strstr(failed, expect));
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &st, WCONTINUED), pid);
	assert_int_equal(status_none("unit", "unit", "there is none"), 1);
	assert_non_null(strstr(failed, "has not answered"));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &st, 0), pid);
	/* the socket of a process that is gone is removed */
	assert_int_equal(status_none("unit", "unit", "there is none"), 1);
	assert_string_equal(failed, "there is none");
	assert_int_equal(access(at, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(status_ask__answers, begin, end),
		cmocka_unit_test_setup_teardown(status_ask__nonsense, begin, end),
		cmocka_unit_test_setup_teardown(status_ask__has_a_limit, begin, end),
		cmocka_unit_test_setup_teardown(status_none__names_the_process, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
