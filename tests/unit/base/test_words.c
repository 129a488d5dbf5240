// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* base/words.c: a line as words, with quotes, backslashes and comments. */
#include "tests/unit/unit.h"

#include <errno.h>

#include "base/words.h"

#define MOST 4

/* What a line consists of, as "<word><word>", or the error. */
static char *split(const char *line, char *buf, size_t size)
{
	char *copy = strdup(line), *words[MOST];
	const char *why;
	size_t at = 0;
	int n, i;

	assert_non_null(copy);
	n = bl_words(copy, words, MOST, &why);
	buf[0] = '\0';
	for (i = 0; i < n; i++)
		at += (size_t)snprintf(buf + at, size - at, "<%s>", words[i]);
	if (n < 0)
		snprintf(buf, size, "%d: %s", n, why);
	free(copy);
	return buf;
}

static void words__lines(void **state)
{
	char error[2][64], buf[256];
	const struct {
		const char *line, *words;
	} cases[] = {
		{ "", "" },
		{ "  \t\r\n", "" },
		{ "a", "<a>" },
		{ " show  nodes\t-a\n", "<show><nodes><-a>" },
		{ "a b c d", "<a><b><c><d>" },
		{ "# all of it", "" },
		{ "a # b", "<a>" },
		{ "a#b #", "<a#b>" },
		{ "'' \"\"", "<><>" },
		{ "'a b'c", "<a bc>" },
		{ "\"it's\" 'say \"x\"'", "<it's><say \"x\">" },
		{ "a\\ b \\# \\\\", "<a b><#><\\>" },
		{ "\"a\\\"b\" 'a\\b'", "<a\"b><a\\b>" },
		{ "'#' x", "<#><x>" },
		{ "a b c d e", error[0] },
		{ "a b c d # e", "<a><b><c><d>" },
		{ "'a", "-22: a ' has no second one" },
		{ "a \"b", "-22: a \" has no second one" },
		{ "a \\", error[1] },
	};
	size_t i;

	(void)state;
	snprintf(error[0], sizeof(error[0]), "%d: too many words", -E2BIG);
	snprintf(error[1], sizeof(error[1]), "%d: a backslash is followed by nothing", -EINVAL);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (strcmp(split(cases[i].line, buf, sizeof(buf)), cases[i].words) != 0)
			fail_msg("\"%s\": %s instead of %s", cases[i].line, buf, cases[i].words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words__lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
