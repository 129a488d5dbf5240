// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cli/health/event_log.c: files of events are merged by time, followed over rotations and restarts,
 * and what is torn, too long, or not of the right owner is left out.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/event.h"
#include "cli/health/event_log.h"

static char dir[64];
static struct event_log l;

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int begin(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/bl_events_XXXXXX");
	assert_non_null(mkdtemp(dir));
	event_log_open(&l, dir);
	return 0;
}

static int end(void **state)
{
	char command[96];

	(void)state;
	event_log_close(&l);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void append_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void append(const char *name, const char *text)
{
	append_to(at(name), text);
}

/* Appends an event with the number and the time @n. For any thread. */
static void put_event(const char *path, unsigned int n)
{
	char line[200];

	snprintf(line, sizeof(line),
		 "{\"schema\":1,\"seq\":%u,\"unix_ns\":%u,\"event\":\"x\",\"text\":\"y\"}\n", n, n);
	append_to(path, line);
}

static void append_event(const char *name, unsigned int seq, unsigned int ns)
{
	char line[200];

	snprintf(line, sizeof(line),
		 "{\"schema\":1,\"seq\":%u,\"unix_ns\":%u,\"event\":\"x\",\"text\":\"y\"}\n", seq,
		 ns);
	append(name, line);
}

/* Reads, and compares the times with @expect, as "1 2 3". */
static void reads(const char *expect)
{
	char got[256] = "";
	size_t k, n = 0;

	event_log_read(&l);
	for (k = 0; k < json_array_size(l.lines); k++)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%llu", k ? " " : "",
				      (unsigned long long)event_time(json_array_get(l.lines, k)));
	json_array_clear(l.lines);
	assert_string_equal(got, expect);
}

static void read__merges_by_time(void **state)
{
	(void)state;
	append_event("host-1-events.jsonl", 1, 10);
	append_event("host-1-events.jsonl", 2, 30);
	append_event("switch-2-events.jsonl", 1, 20);
	append_event("switch-2-events.jsonl", 2, 40);
	append_event("host-1.pulse", 1, 5); /* not one of ours */
	reads("10 20 30 40");
	reads("");
	append_event("switch-2-events.jsonl", 3, 50);
	append_event("host-3-events.jsonl", 1, 45);
	reads("45 50");
}

static void read__follows_rotations(void **state)
{
	char to[300];

	(void)state;
	append_event("host-1-events.jsonl.1", 1, 10);
	append_event("host-1-events.jsonl", 2, 20);
	reads("10 20");
	append_event("host-1-events.jsonl", 3, 30); /* and renamed before it is read */
	snprintf(to, sizeof(to), "%s", at("host-1-events.jsonl.1"));
	assert_int_equal(rename(at("host-1-events.jsonl"), to), 0);
	append_event("host-1-events.jsonl", 4, 40);
	reads("30 40");
	/* the node is detached and made again */
	assert_int_equal(unlink(at("host-1-events.jsonl")), 0);
	reads("");
	append_event("host-1-events.jsonl", 1, 50);
	reads("50");
}

/* ---- rotations at any point of a reader's turn ---- */

#define ROTATIONS 2000

static atomic_uint turns; /* of the reader that have ended */

/* Rotates the file, at most once in a turn of the reader. */
static void *rotate_often(void *ctx)
{
	char from[300], to[sizeof(from) + 2];
	unsigned int k, seen;

	(void)ctx;
	snprintf(from, sizeof(from), "%s/host-1-events.jsonl", dir);
	snprintf(to, sizeof(to), "%s.1", from);
	for (k = 1; k <= ROTATIONS; k++) {
		put_event(from, 2 * k - 1);
		if (rename(from, to))
			return (void *)1;
		put_event(from, 2 * k);
		seen = turns;
		while (turns < seen + 2) /* then one has begun and ended */
			sched_yield();
	}
	return NULL;
}

/* Each line is read once. */
static void read__meets_rotations(void **state)
{
	unsigned int times[2 * ROTATIONS + 1] = { 0 }, k;
	bool ended = false;
	pthread_t thread;
	void *failed;

	(void)state;
	turns = 0;
	assert_int_equal(pthread_create(&thread, NULL, rotate_often, NULL), 0);
	while (!ended) {
		ended = !pthread_tryjoin_np(thread, &failed); /* one more turn after its end */
		event_log_read(&l);
		for (k = 0; k < json_array_size(l.lines); k++)
			times[event_time(json_array_get(l.lines, k))]++;
		json_array_clear(l.lines);
		turns++;
	}
	assert_null(failed);
	for (k = 1; k <= 2 * ROTATIONS; k++)
		assert_int_equal(times[k], 1);
}

static void read__torn_lines(void **state)
{
	(void)state;
	append_event("host-1-events.jsonl", 1, 10);
	append("host-1-events.jsonl", "{\"schema\":1,\"seq\":2,\"unix_ns\":20,");
	reads("10");
	append("host-1-events.jsonl", "\"event\":\"x\"}\n");
	reads("20");
	append("host-1-events.jsonl", "{\"schema\":1,\"se\n");
	append_event("host-1-events.jsonl", 4, 40);
	reads("40");
	assert_int_equal(l.refused, 1);
}

static void read__hostile(void **state)
{
	static char longest[3 * EVENT_LINE_MAX];
	static const char *const bad[] = {
		"[]\n",
		"\"x\"\n",
		"{}\n",
		"{\"schema\":1}\n",
		"{\"schema\":1,\"event\":1,\"unix_ns\":1}\n",
		"{\"schema\":1,\"event\":\"x\",\"unix_ns\":\"1\"}\n",
		"{\"schema\":0,\"event\":\"x\",\"unix_ns\":1}\n",
		"\xff\xff\n",
		"nonsense\n",
	};
	unsigned int k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(bad); k++)
		append("host-1-events.jsonl", bad[k]);
	append_event("host-1-events.jsonl", 1, 10);
	memset(longest, 'x', sizeof(longest) - 1);
	append("host-1-events.jsonl", longest); /* a line without an end is passed over */
	reads("10");
	assert_int_equal(l.refused, ARRAY_SIZE(bad));
	reads("");
	reads("");
	append("host-1-events.jsonl", "\n");
	append_event("host-1-events.jsonl", 2, 20);
	reads("20");
	/* what is no plain file, or another user's */
	assert_int_equal(mkfifo(at("host-2-events.jsonl"), 0644), 0);
	assert_int_equal(symlink("/etc/passwd", at("host-3-events.jsonl")), 0);
	k = l.refused;
	reads("");
	assert_true(l.refused > k);
	if (!geteuid()) {
		append_event("host-4-events.jsonl", 1, 30);
		assert_int_equal(chown(at("host-4-events.jsonl"), 12345, (gid_t)-1), 0);
		reads("");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(read__merges_by_time, begin, end),
		cmocka_unit_test_setup_teardown(read__follows_rotations, begin, end),
		cmocka_unit_test_setup_teardown(read__meets_rotations, begin, end),
		cmocka_unit_test_setup_teardown(read__torn_lines, begin, end),
		cmocka_unit_test_setup_teardown(read__hostile, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
