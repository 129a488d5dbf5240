// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * base/event.c: the line of an event is one JSON object whatever the names in it are; the file is
 * bounded, continued by the next process, and whole after a line that was torn.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/event.h"

static char dir[64], path[128], old[140];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/bl_event_XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/host-1-events.jsonl", dir);
	snprintf(old, sizeof(old), "%s.1", path);
	bl_log_level = -1; /* the sentences of this test are not for people */
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	bl_event_file_close("h1", "host");
	unlink(path);
	unlink(old);
	assert_int_equal(rmdir(dir), 0);
	bl_log_level = BL_LOG_INFO;
	return 0;
}

static json_t *parse(const char *line, size_t n)
{
	json_t *o;

	assert_true(n > 1 && n <= EVENT_LINE_MAX && line[n - 1] == '\n');
	assert_null(memchr(line, '\n', n - 1));
	o = json_loadb(line, n, 0, NULL);
	assert_true(json_is_object(o));
	return o;
}

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static void line__has_fields(void **state)
{
	char buf[EVENT_LINE_MAX];
	const struct bl_event e = { .kind = BL_EVENT_SEND_VOID,
				    .level = BL_LOG_WARN,
				    .node = "h1",
				    .endpoint = 61700,
				    .pid = 17 };
	size_t n = bl_event_line(buf, &e, "host", 5, 1764417600123456789, "h1: void");
	const char *expect = "{\"schema\":1,\"seq\":5,\"time\":\"2025-11-29T12:00:00.123456Z\","
			     "\"unix_ns\":1764417600123456789,\"event\":\"send_void\",\"level\":"
			     "\"warning\","
			     "\"role\":\"host\",\"node\":\"h1\",\"endpoint\":61700,\"pid\":17,"
			     "\"text\":\"h1: void\"}\n";

	(void)state;
	assert_int_equal(n, strlen(expect));
	assert_memory_equal(buf, expect, n);
}

/* What JSON needs escaped, what is no UTF-8, and what is too long, in each place. */
static void line__is_json_whatever_is_in_it(void **state)
{
	static const struct {
		const char *in, *out; /* NULL: the same */
	} t[] = {
		{ "", "" },
		{ "a\"b\\c", NULL },
		{ "a\nb\tc\x01\x7f", NULL },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", NULL },
		{ "\xff\xfe", "??" },
		{ "\xc3", "?" },
		{ "\xc0\x80", "??" },           /* overlong */
		{ "\xed\xa0\x80", "???" },      /* a surrogate */
		{ "\xf4\x90\x80\x80", "????" }, /* above U+10FFFF */
		{ "x\xe2\x82", "x??" },
	};
	char buf[EVENT_LINE_MAX], longest[3 * EVENT_LINE_MAX];
	unsigned int i, k;

	(void)state;
	for (i = 1; i < ARRAY_SIZE(t); i++) {
		const struct bl_event e = { .node = t[i].in,
					    .process = t[i].in,
					    .reason = t[i].in };
		size_t n = bl_event_line(buf, &e, "host", 1, 1, t[i].in);
		json_t *o = parse(buf, n);

		assert_string_equal(text_of(o, "text"), t[i].out ? t[i].out : t[i].in);
		assert_string_equal(text_of(o, "process"), t[i].out ? t[i].out : t[i].in);
		json_decref(o);
	}
	for (i = 0; i < sizeof(longest) - 1; i++)
		longest[i] = "\x01\xc3\xa4\"z"[i % 5];
	longest[i] = '\0';
	for (k = 0; k < 300; k++) {
		const struct bl_event e = { .node = "h1",
					    .iface = longest + k,
					    .process = longest + k,
					    .controller = longest + k,
					    .reason = longest + k };

		json_decref(parse(buf, bl_event_line(buf, &e, "host", ~0ULL >> 1, ~0ULL >> 1,
						     longest + k)));
	}
}

/* Returns the number of whole events in @file, whose numbers must rise; -1: there is no file. */
static int count(const char *file, json_int_t *first, json_int_t *last)
{
	char line[EVENT_LINE_MAX + 2];
	FILE *f = fopen(file, "re");
	json_int_t seq, before = 0;
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		json_t *o = json_loads(line, 0, NULL);

		if (!o)
			continue;
		seq = json_integer_value(json_object_get(o, "seq"));
		assert_true(seq > before);
		before = seq;
		if (!n++)
			*first = seq;
		*last = seq;
		json_decref(o);
	}
	fclose(f);
	return n;
}

static void file__is_bounded(void **state)
{
	json_int_t first, last, before_first, before_last;
	struct stat st;
	char text[900];
	int k;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(bl_event_file_open("h1", "host", path), 0);
	for (k = 0; k < 4000; k++)
		bl_event(BL_EVENT(SEND_VOID, WARN, "h1", .pid = 1), "%s", text);
	/* An event of another node, or of none, is not for this file. */
	bl_event(BL_EVENT(SEND_VOID, WARN, "h2", .pid = 1), "%s", text);
	bl_event(BL_EVENT(SEND_VOID, WARN, NULL, .pid = 1), "%s", text);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size <= EVENT_FILE_BYTES);
	assert_int_equal(stat(old, &st), 0);
	assert_in_range(st.st_size, EVENT_FILE_BYTES, EVENT_FILE_BYTES + EVENT_LINE_MAX);
	assert_true(count(path, &first, &last) > 0);
	assert_true(count(old, &before_first, &before_last) > 0);
	assert_int_equal(last, 4000);
	assert_int_equal(first, before_last + 1);
}

static void file__is_continued(void **state)
{
	json_int_t first, last;
	int fd, k;

	(void)state;
	for (k = 0; k < 3; k++) {
		assert_int_equal(bl_event_file_open("h1", "host", path), 0);
		bl_event(BL_EVENT(DAEMON_STARTED, INFO, "h1", .pid = 1), "h1: begins");
		bl_event_file_close("h1", "host");
		/* the process dies in the middle of a line */
		fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_int_equal(write(fd, "{\"schema\":1,\"se", 15), 15);
		close(fd);
	}
	assert_int_equal(count(path, &first, &last), 3);
	assert_int_equal(first, 1);
	assert_int_equal(last, 3);
}

/* What is at the path and is no plain file is not written to, and nothing waits for it. */
static void file__hostile(void **state)
{
	(void)state;
	assert_int_equal(symlink("/tmp/bl_event_nowhere", path), 0);
	assert_int_equal(bl_event_file_open("h1", "host", path), -ELOOP);
	assert_int_equal(access("/tmp/bl_event_nowhere", F_OK), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	assert_true(bl_event_file_open("h1", "host", path) < 0);
}

#define THREADS 4
#define EACH    3000

static void *write_many(void *arg)
{
	int k;

	for (k = 0; k < EACH; k++)
		bl_event(BL_EVENT(SEND_VOID, WARN, "h1", .pid = (uint64_t)(uintptr_t)arg),
			 "a sentence of some length, so that files are rotated while others write");
	return NULL;
}

/* Threads write, and rotate, at once: each line is whole, and in the last two files. */
static void file__many_threads(void **state)
{
	pthread_t thread[THREADS];
	json_int_t a = 0, b = 0;
	char line[EVENT_LINE_MAX + 2];
	int k, n = 0;
	FILE *f;

	(void)state;
	assert_int_equal(bl_event_file_open("h1", "host", path), 0);
	for (k = 0; k < THREADS; k++)
		assert_int_equal(pthread_create(&thread[k], NULL, write_many,
						(void *)(uintptr_t)(k + 1)),
				 0);
	for (k = 0; k < THREADS; k++)
		pthread_join(thread[k], NULL);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		json_t *o = parse(line, strlen(line));

		b = json_integer_value(json_object_get(o, "seq"));
		a = b > a ? b : a;
		n++;
		json_decref(o);
	}
	fclose(f);
	assert_true(n > 0);
	assert_int_equal(a, THREADS * EACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__has_fields),
		cmocka_unit_test(line__is_json_whatever_is_in_it),
		cmocka_unit_test_setup_teardown(file__is_bounded, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(file__is_continued, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(file__hostile, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(file__many_threads, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
