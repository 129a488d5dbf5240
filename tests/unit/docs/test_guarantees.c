// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * docs/guarantees.md names tests: each file must be there, and each test in it. Runs in the
 * repository's root.
 *
 * Example: "tests/unit/lib/test_seq_core.c: bl_seq__edges, bl_seq__wrap" means that the file has
 * both as a word; a name without a file belongs to the file named before it in the same row.
 */
#include <ctype.h>

#include "tests/unit/unit.h"

static char *load(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text;
	long size;

	if (!f)
		return NULL;
	assert_false(fseek(f, 0, SEEK_END));
	size = ftell(f);
	rewind(f);
	text = malloc((size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)size, f), size);
	text[size] = '\0';
	fclose(f);
	return text;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const char *text, const char *word, size_t len)
{
	const char *p;

	for (p = text; (p = strstr(p, word)); p += len)
		if ((p == text || !is_word(p[-1])) && !is_word(p[len]))
			return true;
	return false;
}

static unsigned int names, missing;

/* The cell after the first "|" of a row that names tests. */
static void check_cell(const char *cell, const char *end, unsigned int line)
{
	char *source = NULL, file[256] = "", word[128];
	unsigned int depth = 0;

	while (cell < end) {
		size_t n = 0;

		/* what is in brackets is a remark */
		depth += *cell == '(';
		depth -= *cell == ')' && depth;
		if (depth || !(is_word(*cell) || *cell == '/')) {
			cell++;
			continue;
		}
		while (cell + n < end && (is_word(cell[n]) || strchr("/.-", cell[n])))
			n++;
		while (n && strchr(".-", cell[n - 1]))
			n--;
		if (n > 6 && !strncmp(cell, "tests/", 6)) {
			snprintf(file, sizeof(file), "%.*s", (int)n, cell);
			free(source);
			source = load(file);
			names++;
			if (!source) {
				missing++;
				print_error("docs/guarantees.md:%u: there is no %s\n", line, file);
			}
		} else if (source && n < sizeof(word) &&
			   (memmem(cell, n, "__", 2) || cell[n] == ',' || cell[n] == ';' ||
			    cell[n] == ' ')) {
			snprintf(word, sizeof(word), "%.*s", (int)n, cell);
			if (strchr(word, '/')) /* another file: a model, a page */
				goto next;
			names++;
			if (!has_word(source, word, n)) {
				missing++;
				print_error("docs/guarantees.md:%u: %s has no \"%s\"\n", line, file,
					    word);
			}
		}
	next:
		cell += n ? n : 1;
	}
	free(source);
}

static void check(const char *text)
{
	const char *line = text, *end, *cell;
	unsigned int number = 1;

	names = missing = 0;
	for (; *line; line = *end ? end + 1 : end, number++) {
		end = strchrnul(line, '\n');
		if (*line != '|')
			continue;
		cell = memmem(line, (size_t)(end - line), "| tests/", 8);
		if (cell)
			check_cell(cell, end, number);
	}
}

static void guarantees__names_are_tests(void **state)
{
	char *text = load("docs/guarantees.md");

	(void)state;
	assert_non_null(text);
	check(text);
	free(text);
	assert_int_equal(missing, 0);
	assert_true(names > 300);
}

/* a test that is not there, a file that is not there, part of a name */
static void guarantees__wrong_names_are_found(void **state)
{
	(void)state;
	check("| x | tests/unit/docs/test_guarantees.c: guarantees__names_are_tests, check_cell "
	      "|\n");
	assert_int_equal(names, 3);
	assert_int_equal(missing, 0);
	check("| x | tests/unit/base/test_hist.c: nothing__of_that_name |\n");
	assert_int_equal(missing, 1);
	check("| x | tests/unit/test_nothing_of_it.c: a__b (c__d) |\n");
	assert_int_equal(missing, 1);
	check("no table: tests/unit/test_nothing_of_it.c\n");
	assert_int_equal(names, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guarantees__names_are_tests),
		cmocka_unit_test(guarantees__wrong_names_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
