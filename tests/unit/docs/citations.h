/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks that a page of docs/ names tests that exist: each file must be in the repository, and each
 * named test in its file. The test runs in the root of the repository.
 *
 * A promise is a list item that begins with "- **". Its last part names the tests:
 *
 *  - **Order of numbers.** Sequence numbers are compared as serial numbers. *Proved by*
 *    tests/unit/lib/test_seq_core.c: bl_seq__edges, bl_seq__wrap (both streams).
 *
 * means that the file contains both names as words. A name belongs to the file that precedes it.
 * Text in brackets is a remark and is not checked.
 */
#ifndef BARLINE_TESTS_CITATIONS_H
#define BARLINE_TESTS_CITATIONS_H

#include <ctype.h>

#include "tests/unit/unit.h"

#define PROMISE   "- **"
#define PROVED_BY "*Proved by* "

static const char *page; /* for messages */

/* Results of check_page(). */
static unsigned int promises; /* list items that are promises */
static unsigned int names;    /* files and tests that they name */
static unsigned int missing;  /* names without a file or test, and promises without a name */

/* Returns the contents of @path, to be freed by the caller, or NULL if it cannot be opened. */
static char *load_file(const char *path)
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

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);
	const char *p;

	for (p = text; (p = strstr(p, word)); p += len)
		if ((p == text || !is_word(p[-1])) && !is_word(p[len]))
			return true;
	return false;
}

/* Checks the files and tests that @proof, the text up to @end, names. @line is for messages. */
static void check_proof(const char *proof, const char *end, unsigned int line)
{
	char *source = NULL, file[256] = "", word[256];
	unsigned int depth = 0;

	if (end - proof < 6 || strncmp(proof, "tests/", 6)) {
		missing++;
		print_error("%s:%u: the proof does not begin with a file\n", page, line);
	}
	while (proof < end) {
		size_t n = 0;

		depth += *proof == '(';
		depth -= *proof == ')' && depth;
		if (depth || !is_word(*proof)) {
			proof++;
			continue;
		}
		while (proof + n < end && (is_word(proof[n]) || strchr("/.-", proof[n])))
			n++;
		while (n && strchr(".-", proof[n - 1]))
			n--;
		assert_true(n < sizeof(word));
		snprintf(word, sizeof(word), "%.*s", (int)n, proof);
		proof += n;
		names++;
		if (strchr(word, '/')) {
			snprintf(file, sizeof(file), "%s", word);
			free(source);
			source = load_file(file);
			if (!source) {
				missing++;
				print_error("%s:%u: there is no %s\n", page, line, file);
			}
		} else if (source && !has_word(source, word)) {
			missing++;
			print_error("%s:%u: %s has no \"%s\"\n", page, line, file, word);
		}
	}
	free(source);
}

/* Returns the end of the list item at @item: the lines after the first one are indented. */
static const char *item_end(const char *item)
{
	const char *end = strchrnul(item, '\n');

	while (!strncmp(end, "\n  ", 3))
		end = strchrnul(end + 1, '\n');
	return end;
}

/*
 * Returns the text that follows "*Proved by*" in the list item between @item and @end, or NULL. The
 * two words may be on different lines.
 */
static const char *find_proof(const char *item, const char *end)
{
	const char *p = memmem(item, (size_t)(end - item), "*Proved", 7);

	if (!p)
		return NULL;
	p += 7;
	p += strspn(p, " \n");
	if (strncmp(p, "by*", 3))
		return NULL;
	p += 3;
	return p + strspn(p, " \n");
}

/* Checks every promise in @text of the page @name and sets promises, names and missing. */
static void check_page(const char *name, const char *text)
{
	const char *line = text, *end, *proof;
	unsigned int number = 1;

	page = name;
	promises = names = missing = 0;
	for (; *line; line = *end ? end + 1 : end, number++) {
		end = strchrnul(line, '\n');
		if (strncmp(line, PROMISE, strlen(PROMISE)))
			continue;
		promises++;
		proof = find_proof(line, item_end(line));
		if (!proof) {
			missing++;
			print_error("%s:%u: the promise names no test\n", page, number);
			continue;
		}
		check_proof(proof, item_end(line), number);
	}
}

/* Checks the file @path, in which at least @least promises and as many names must be. */
static void check_file(const char *path, unsigned int least)
{
	char *text = load_file(path);

	assert_non_null(text);
	check_page(path, text);
	free(text);
	assert_int_equal(missing, 0);
	assert_true(promises >= least);
	assert_true(names > promises);
}

#endif
