// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* barline --batch (cli/batch.c), as its users run it. */
#include "tests/unit/barline_says.h"

#include <jansson.h>

#define VERSION_LINE "barline " BARLINE_VERSION "\n"

/* Runs `barline @options --batch FILE 2>&1`, with @text in the file; '%' of @want is its name. */
static void check(const char *options, const char *text, int status, const char *want)
{
	char name[] = "/tmp/barline-batch-XXXXXX", args[256], expected[1024] = "", *said;
	int fd = mkstemp(name), is;
	size_t at = 0;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	for (; *want && at + sizeof(name) < sizeof(expected); want++) {
		if (*want == '%')
			at += (size_t)snprintf(expected + at, sizeof(expected) - at, "%s", name);
		else
			expected[at++] = *want;
		expected[at] = '\0';
	}
	snprintf(args, sizeof(args), "%s --batch %s 2>&1", options, name);
	said = barline_run_says(args, &is);
	unlink(name);
	if (is != status || strcmp(said, expected) != 0)
		fail_msg("barline %s: status %d instead of %d, and\n%sinstead of\n%s", args, is,
			 status, said, expected);
	free(said);
}

/*
 * Each line runs once and in order; a file that processes share the position of would repeat some.
 */
static void batch__lines_in_order(void **state)
{
	(void)state;
	check("", "", 0, "");
	check("", "# nothing\n\n", 0, "");
	check("", "version\nversion # again\n  version", 0, VERSION_LINE VERSION_LINE VERSION_LINE);
	check("", "'version'\nver\\\nsion\n", 0, VERSION_LINE VERSION_LINE);
	/* options of a line are the line's */
	check("", "version -j\nversion\n", 0,
	      "{\"schema\": 1, \"version\": \"" BARLINE_VERSION "\"}\n" VERSION_LINE);
}

/* The first failure ends the batch with its status, and is named with file and line. */
static void batch__failures(void **state)
{
	static const char xyzzy[] = "barline: no command \"xyzzy\"; `barline help` lists them\n";
	char want[512];

	(void)state;
	snprintf(want, sizeof(want),
		 VERSION_LINE "%sbarline: %%:3: \"xyzzy x\" failed with "
			      "status 2\n",
		 xyzzy);
	check("", "version\n\nxyzzy x\nversion\n", 2, want);
	snprintf(want, sizeof(want),
		 "%sbarline: %%:1: \"xyzzy\" failed with status 2\n" VERSION_LINE, xyzzy);
	check("--force", "xyzzy\nversion\n", 1, want);
	check("--force", "version\n", 0, VERSION_LINE);
	/* a line that is none; a continued one has the number of its first line */
	check("--force", "version 'x\nversion\n", 1,
	      "barline: %:1: a ' has no second one\n" VERSION_LINE);
	snprintf(want, sizeof(want), "%sbarline: %%:2: \"xyzzy\" failed with status 2\n", xyzzy);
	check("", "\n\\\nxyzzy\nversion\n", 2, want);
}

static void batch__usage(void **state)
{
	static const struct {
		const char *args, *says;
		int status;
	} cases[] = {
		{ "--force version", "--force needs --batch", 2 },
		{ "-b /dev/null version", "and \"version\" is one more", 2 },
		{ "-b /nonexistent", "/nonexistent: No such file", 1 },
		{ "-b /", "/: Is a directory", 1 },
		{ "-b", "option requires an argument", 2 },
	};
	size_t i;

	(void)state;
	check("", "-b /dev/null\n", 2,
	      "barline: a batch cannot run another one\n"
	      "barline: %:1: \"-b /dev/null\" failed with status 2\n");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char args[128], *said;
		int status;

		snprintf(args, sizeof(args), "%s 2>&1", cases[i].args);
		said = barline_run_says(args, &status);
		if (status != cases[i].status || !strstr(said, cases[i].says))
			fail_msg("barline %s: %d, %s", args, status, said);
		free(said);
	}
}

/* With --json everything is JSON, one object per line, also what went wrong. */
static void batch__json_lines(void **state)
{
	int status, objects = 0;
	char *said, *save, *line;

	(void)state;
	said = barline_run_says("-j --force -b - <<'EOF'\nversion\nxyzzy\nversion 'x\nversion "
				"--xyzzy\nhelp xyzzy\nversion\nEOF\n",
				&status);
	assert_int_equal(status, 1);
	for (line = strtok_r(said, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *o = json_loads(line, 0, NULL);

		if (!o || json_integer_value(json_object_get(o, "schema")) != 1)
			fail_msg("no object: %s", line);
		objects++;
		if (objects == 3) {
			assert_int_equal(json_integer_value(json_object_get(o, "line")), 2);
			assert_string_equal(json_string_value(json_object_get(o, "file")), "-");
			assert_int_equal(json_integer_value(json_object_get(o, "status")), 2);
		}
		json_decref(o);
	}
	assert_int_equal(objects, 9); /* two of each failing line, except that of the quote */
	free(said);
}

/* What is on stdin is the batch, of which a command takes nothing. */
static void batch__stdin_is_its_own(void **state)
{
	int status;
	char *said;

	(void)state;
	said = barline_run_says("-b - --force 2>/dev/null <<'EOF'\ncompletion bash > x\nversion\n"
				"EOF\n",
				&status);
	assert_int_equal(status, 1); /* nothing is expanded or redirected */
	assert_string_equal(said, VERSION_LINE);
	free(said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch__lines_in_order),
		cmocka_unit_test(batch__failures),
		cmocka_unit_test(batch__usage),
		cmocka_unit_test(batch__json_lines),
		cmocka_unit_test(batch__stdin_is_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
