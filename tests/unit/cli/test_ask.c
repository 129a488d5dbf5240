// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cli/util/ask.c: services that answer, are silent, answer slowly, nonsense or without an end,
 * and sockets at which nobody listens. One that is silent does not hide one that answers.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/util/ask.h"

#define LIMIT_NS 300000000ULL /* for questions that stay without an answer */
#define LONG_NS  60000000000ULL

static char dir[] = "/tmp/barline-ask-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[16][64];
	static unsigned int k;

	k = (k + 1) % 16;
	snprintf(path[k], sizeof(path[k]), "%s/%s", dir, name);
	return path[k];
}

/* Returns a socket that listens there. */
static int listen_at(const char *name, int backlog)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path_of(name));
	unlink(sa.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

/** struct service - accepts once, and says @text. */
struct service {
	int fd;
	const char *text;
	size_t times; /* it says it so often */
	bool stays;   /* it does not close until its client does */
	pthread_t thread;
};

static void *serve(void *arg)
{
	struct service *s = arg;
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
	char c[16];
	size_t k;

	for (k = 0; k < s->times; k++)
		if (send(fd, s->text, strlen(s->text), MSG_NOSIGNAL) < 0)
			break;
	/* the client has shut down its side: wait until it is gone */
	while (s->stays && send(fd, " ", 1, MSG_NOSIGNAL) == 1)
		usleep(20000);
	while (recv(fd, c, sizeof(c), 0) > 0)
		;
	close(fd);
	return NULL;
}

static void start(struct service *s, const char *name, const char *text, size_t times, bool stays)
{
	*s = (struct service){ listen_at(name, 4), text, times, stays, 0 };
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void finish(struct service *s)
{
	pthread_join(s->thread, NULL);
	close(s->fd);
}

static void ask__answers(void **state)
{
	struct service s;
	struct ask a = { .path = path_of("a") };

	(void)state;
	start(&s, "a", "{\"state\": \"leader\"}", 1, false);
	ask_until(&a, 1, bl_mono_ns() + LONG_NS);
	assert_int_equal(a.error, 0);
	assert_string_equal(json_string_value(json_object_get(a.answer, "state")), "leader");
	json_decref(a.answer);
	finish(&s);
}

static void ask__nobody_is_there(void **state)
{
	struct ask a[2] = { { .path = path_of("none") }, { .path = path_of("dead") } };

	(void)state;
	close(listen_at("dead", 1));
	ask_until(a, 2, bl_mono_ns() + LONG_NS);
	assert_null(a[0].answer);
	assert_int_equal(a[0].error, ENOENT);
	assert_int_equal(a[1].error, ECONNREFUSED);
}

/* A stopped process: its socket accepts connections, and nothing comes. */
static void ask__silent_does_not_hide_others(void **state)
{
	struct ask a[3] = { { .path = path_of("silent") },
			    { .path = path_of("drips") },
			    { .path = path_of("well") } };
	int silent = listen_at("silent", 4);
	struct service drips, well;
	uint64_t begun = bl_mono_ns();

	(void)state;
	start(&drips, "drips", "{", 1, true);
	start(&well, "well", "{}", 1, false);
	ask_until(a, 3, bl_mono_ns() + LIMIT_NS);
	assert_true(bl_mono_ns() - begun >= LIMIT_NS);
	assert_int_equal(a[0].error, ETIMEDOUT);
	assert_int_equal(a[1].error, ETIMEDOUT);
	assert_int_equal(a[2].error, 0);
	assert_non_null(a[2].answer);
	json_decref(a[2].answer);
	finish(&drips);
	finish(&well);
	close(silent);
}

/* A process that is stopped for long: the queue of its socket is full, and connect() would wait. */
static void ask__queue_is_full(void **state)
{
	struct ask a = { .path = path_of("full") };
	int fd = listen_at("full", 0), k;

	(void)state;
	for (k = 0; k < 8; k++)
		ask_until(&a, 1, bl_mono_ns());
	ask_until(&a, 1, bl_mono_ns() + LONG_NS);
	assert_int_equal(a.error, ETIMEDOUT);
	close(fd);
}

/* Empties the queue of a socket, and answers the first client that says something. */
static void *serve_late(void *arg)
{
	const int *listening = arg;
	char said[16];
	int fd;

	usleep(50000); /* a client that comes later finds room at once */
	do {
		fd = accept4(*listening, NULL, NULL, SOCK_CLOEXEC);
		if (recv(fd, said, sizeof(said), 0) <= 0) {
			close(fd);
			fd = -1;
		}
	} while (fd < 0);
	(void)!send(fd, "{}", 2, MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

/* A service that is busy: a patient question gets in when there is room, and its command arrives.
 */
static void ask__patient_waits_for_room(void **state)
{
	struct ask a = { .path = path_of("full") };
	int fd = listen_at("full", 0), k;
	pthread_t thread;

	(void)state;
	for (k = 0; k < 8; k++)
		ask_until(&a, 1, bl_mono_ns());
	assert_int_equal(a.error, ETIMEDOUT);
	assert_int_equal(pthread_create(&thread, NULL, serve_late, &fd), 0);
	a = (struct ask){ .path = path_of("full"), .command = "hello\n", .patient = true };
	ask_until(&a, 1, bl_mono_ns() + LONG_NS);
	assert_int_equal(a.error, 0);
	json_decref(a.answer);
	pthread_join(thread, NULL);
	close(fd);
}

static void ask__nonsense(void **state)
{
	static const char *const said[] = { "", "[1]", "{", "\"x\"", "{\"a\": \xff}" };
	struct service s;
	struct ask a = { .path = path_of("odd") };
	size_t k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(said); k++) {
		start(&s, "odd", said[k], 1, false);
		ask_until(&a, 1, bl_mono_ns() + LONG_NS);
		assert_null(a.answer);
		assert_int_equal(a.error, EPROTO);
		finish(&s);
	}
}

static void ask__without_an_end(void **state)
{
	static char text[65536];
	struct service s;
	struct ask a = { .path = path_of("long") };

	(void)state;
	memset(text, ' ', sizeof(text) - 1);
	start(&s, "long", text, ASK_BYTES_MAX, false);
	ask_until(&a, 1, bl_mono_ns() + LONG_NS);
	assert_null(a.answer);
	assert_int_equal(a.error, EFBIG);
	finish(&s);
}

static int make_dir(void **state)
{
	(void)state;
	return !mkdtemp(dir);
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "a",    "dead", "silent", "drips",
					     "well", "full", "odd",    "long" };
	size_t k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(names); k++)
		unlink(path_of(names[k]));
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ask__answers),
		cmocka_unit_test(ask__nobody_is_there),
		cmocka_unit_test(ask__silent_does_not_hide_others),
		cmocka_unit_test(ask__queue_is_full),
		cmocka_unit_test(ask__patient_waits_for_room),
		cmocka_unit_test(ask__nonsense),
		cmocka_unit_test(ask__without_an_end),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
