/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of the house share: the list of the repository's files, their text, and the fenced
 * blocks of docs/architecture.md that state the rules as data.
 *
 * The tests run in the repository's root, as every unit test does. A block is written in the page
 * as
 *
 *  ```floors
 *  base maps
 *  core
 *  ```
 *
 * and block_lines("floors", ...) calls back once for each of its lines.
 */
#ifndef BARLINE_TESTS_HOUSE_H
#define BARLINE_TESTS_HOUSE_H

#include <unistd.h>

#include "tests/unit/unit.h"

#define HOUSE_PAGE "docs/architecture.md"
#define PATH_SIZE  256

/* A list of strings that only grows. */
struct names {
	char (*v)[PATH_SIZE];
	unsigned int n, room;
};

static inline unsigned int names_find(const struct names *l, const char *name)
{
	unsigned int i;

	for (i = 0; i < l->n && strcmp(l->v[i], name); i++)
		;
	return i;
}

/* Returns the index of @name, which is appended if it is not in the list. */
static inline unsigned int names_add(struct names *l, const char *name)
{
	unsigned int i = names_find(l, name);

	if (i < l->n)
		return i;
	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->v = realloc(l->v, l->room * sizeof(*l->v));
		assert_non_null(l->v);
	}
	assert_true((size_t)snprintf(l->v[l->n], PATH_SIZE, "%s", name) < PATH_SIZE);
	return l->n++;
}

static inline void names_free(struct names *l)
{
	free(l->v);
	memset(l, 0, sizeof(*l));
}

/* Appends each line that @command prints. */
static inline void names_of(struct names *l, const char *command)
{
	char line[4096];
	FILE *p = popen(command, "r");

	assert_non_null(p);
	while (fgets(line, sizeof(line), p)) {
		line[strcspn(line, "\n")] = '\0';
		if (*line)
			names_add(l, line);
	}
	assert_int_equal(pclose(p), 0);
}

/*
 * Appends the repository's own files whose names match @pattern of find(1), without build results.
 */
static inline void house_files(struct names *l, const char *pattern)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "find . -name .git -prune -o -path './build*' -prune -o -type f \\( %s \\) -print "
		 "| "
		 "sed 's|^\\./||' | sort",
		 pattern);
	names_of(l, command);
}

static inline bool has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return n >= s && !strcmp(name + n - s, suffix);
}

/* Returns the text of a file, to be freed by the caller. */
static inline char *house_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;
	ssize_t n;

	if (!f)
		fail_msg("cannot open %s; the test runs in the repository's root", path);
	n = getdelim(&text, &size, '\0', f);
	fclose(f);
	if (n < 0) {
		free(text);
		text = strdup("");
	}
	assert_non_null(text);
	return text;
}

/* Writes the folder that the running test was built into: BUILD/tests/unit/test_house. */
static inline void build_folder(char *build, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", build, size - 1);
	char *at;

	assert_true(n > 0);
	build[n] = '\0';
	at = strstr(build, "/tests/unit/");
	assert_non_null(at);
	*at = '\0';
}

/*
 * Calls @fn for each line of the block "```@name" of docs/architecture.md. Fails without the block.
 */
static inline void block_lines(const char *name, void (*fn)(const char *line, void *ctx), void *ctx)
{
	char *text = house_text(HOUSE_PAGE), *save, *line, head[64];
	unsigned int lines = 0;
	bool in = false;

	snprintf(head, sizeof(head), "```%s", name);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!in) {
			in = !strcmp(line, head);
		} else if (!strcmp(line, "```")) {
			free(text);
			assert_true(lines);
			return;
		} else {
			fn(line, ctx);
			lines++;
		}
	}
	free(text);
	fail_msg("%s has no block \"%s\"", HOUSE_PAGE, head);
}

#endif
