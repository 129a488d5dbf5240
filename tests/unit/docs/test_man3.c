// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The manual pages of section 3, which docs/man3 makes from lib/barline.h, against the header and
 * the symbols that the library exports. The test runs in the root of the repository, and makes the
 * pages in a folder of its own.
 */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <unistd.h>

static char dir[] = "/tmp/barline-man3-XXXXXX";
static char *header, *map;

static char *load_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text;
	size_t n;

	if (!f)
		return NULL;
	text = calloc(1, 1 << 18);
	assert_non_null(text);
	n = fread(text, 1, (1 << 18) - 1, f);
	assert_true(n < (1 << 18) - 1);
	fclose(f);
	return text;
}

static int make_pages(void **state)
{
	char cmd[128];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(cmd, sizeof(cmd), "bash docs/man3/man3.sh %s 0", dir);
	assert_int_equal(system(cmd), 0);
	header = load_file("lib/barline.h");
	map = load_file("lib/libbarline.map");
	return header && map ? 0 : -1;
}

static int remove_pages(void **state)
{
	char cmd[128];

	(void)state;
	free(header);
	free(map);
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	return system(cmd);
}

/* The page that is shown for @symbol, to be freed by the caller; NULL: there is none. */
static char *page_of(const char *symbol)
{
	char path[256], target[128];
	char *text;

	snprintf(path, sizeof(path), "%s/%s.3", dir, symbol);
	text = load_file(path);
	if (!text || sscanf(text, ".so man3/%127s", target) != 1)
		return text;
	free(text);
	snprintf(path, sizeof(path), "%s/%s", dir, target);
	return load_file(path);
}

/* Whether @word is in the text as a word. */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);
	const char *at = text;

	for (; (at = strstr(at, word)); at += n)
		if ((at == text || (!isalnum(at[-1]) && at[-1] != '_')) && !isalnum(at[n]) &&
		    at[n] != '_')
			return true;
	return false;
}

/* Calls @fn with each exported symbol. Returns their number. */
static unsigned int each_symbol(void (*fn)(const char *symbol))
{
	const char *at = strstr(map, "global:"), *end = strstr(map, "local:");
	unsigned int n = 0;
	char symbol[64];

	assert_true(at && end);
	for (at = strchr(at, '\n'); at && at < end; at = strchr(at + 1, '\n'))
		if (sscanf(at, " %63[a-z_0-9];", symbol) == 1 && strncmp(symbol, "local", 5)) {
			fn(symbol);
			n++;
		}
	return n;
}

/* The comment that ends before the declaration of @symbol in the header. */
static void copy_comment(const char *symbol, char *out, size_t size)
{
	char what[80];
	const char *at, *end;

	snprintf(what, sizeof(what), " %s - ", symbol);
	at = strstr(header, what);
	assert_non_null(at);
	end = strstr(at, "*/");
	snprintf(out, size, "%.*s", (int)(end - at), at);
}

static void check_symbol(const char *symbol)
{
	char *page = page_of(symbol), name[256] = "", comment[8192], err[32];
	const char *at;

	if (!page)
		fail_msg("no page is about %s: add it to docs/man3/pages", symbol);
	sscanf(strstr(page, ".SH NAME\n") + 9, "%255[^\n]", name);
	if (!has_word(name, symbol))
		fail_msg("NAME does not have %s: %s", symbol, name);
	/* Each errno that the comment names, with an escaped minus. */
	copy_comment(symbol, comment, sizeof(comment));
	for (at = comment; (at = strstr(at, "-E")); at++) {
		snprintf(err, sizeof(err), "\\%.*s",
			 1 + (int)strspn(at + 1, "EABCDFGHIKLMNOPRSTUVXZQYW"), at);
		if (!strstr(page, err))
			fail_msg("the page of %s lacks %s", symbol, err);
	}
	free(page);
}

static void man3__each_function(void **state)
{
	(void)state;
	assert_true(each_symbol(check_symbol) >= 30);
}

/* Text of all pages together, to be freed by the caller. */
static char *all_pages(void)
{
	char cmd[128];
	char *text = calloc(1, 1 << 20);
	FILE *f;

	assert_non_null(text);
	snprintf(cmd, sizeof(cmd), "cat %s/*.3", dir);
	f = popen(cmd, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 10000);
	pclose(f);
	return text;
}

/* Each member of a struct, each value of an enum and each constant is in a page. */
static void man3__each_member(void **state)
{
	char *pages = all_pages();
	const char *line = header;
	unsigned int n = 0;
	bool inside = false;

	(void)state;
	for (; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		char word[64];
		const char *at, *end;

		if ((!strncmp(line, "struct bl_", 10) || !strncmp(line, "enum bl_", 8)) &&
		    strcspn(line, "{") < strcspn(line, "\n"))
			inside = true;
		if (*line == '}')
			inside = false;
		if (sscanf(line, "#define %63[A-Z_]", word) == 1 && !strncmp(word, "BL_", 3) &&
		    strcmp(word, "BL_API")) {
			n++;
			if (!has_word(pages, word))
				fail_msg("no page has %s", word);
		}
		if (!inside || line[0] != '\t' || line[1] == ' ' || line[1] == '/')
			continue;
		/* The words before ; , [ and = up to a comment. */
		end = line + strcspn(line, "\n");
		at = strstr(line, "/*");
		end = at && at < end ? at : end;
		for (at = line; (at += strcspn(at, ";,[=")) < end; at++) {
			size_t k = 0;

			while (k < 63 && (isalnum(at[-1 - (long)k]) || at[-1 - (long)k] == '_'))
				k++;
			snprintf(word, sizeof(word), "%.*s", (int)k, at - k);
			if (!k || isdigit(*word))
				continue;
			n++;
			if (!has_word(pages, word))
				fail_msg("no page has the member %s", word);
		}
	}
	assert_true(n > 100);
	free(pages);
}

/* groff warns of nothing. */
static void man3__no_warning(void **state)
{
	char cmd[256];

	(void)state;
	snprintf(cmd, sizeof(cmd),
		 "for f in %s/*.3; do grep -q '^.so' $f || groff -man -ww -z -Tascii $f; done "
		 ">%s/w "
		 "2>&1; cat %s/w >&2; test ! -s %s/w",
		 dir, dir, dir, dir);
	assert_int_equal(system(cmd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(man3__each_function),
		cmocka_unit_test(man3__each_member),
		cmocka_unit_test(man3__no_warning),
	};

	return cmocka_run_group_tests(tests, make_pages, remove_pages);
}
