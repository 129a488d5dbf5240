// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See words.h. */
#include "base/words.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Copies the word at *@s to *@to, without quotes, and moves both behind it. */
static const char *take_word(char **s, char **to)
{
	char *in = *s, *out = *to, quote = 0;

	for (; *in && (quote || !is_blank(*in)); in++) {
		if (quote && *in == quote) {
			quote = 0;
		} else if (!quote && (*in == '\'' || *in == '"')) {
			quote = *in;
		} else if (*in == '\\' && quote != '\'') {
			if (!*++in)
				return "a backslash is followed by nothing";
			*out++ = *in;
		} else {
			*out++ = *in;
		}
	}
	*s = in;
	*to = out;
	if (quote)
		return quote == '"' ? "a \" has no second one" : "a ' has no second one";
	return NULL;
}

int bl_words(char *line, char **words, int most, const char **why)
{
	char *s = line, *to = line;
	bool end;
	int n = 0;

	for (;;) {
		while (is_blank(*s))
			s++;
		if (!*s || *s == '#')
			return n;
		if (n == most) {
			*why = "too many words";
			return -E2BIG;
		}
		/* a word is never longer than what it is made of, so @to stays behind @s */
		words[n++] = to;
		*why = take_word(&s, &to);
		if (*why)
			return -EINVAL;
		end = !*s;
		*to++ = '\0'; /* where the blank was, or before */
		if (end)
			return n;
		s++;
	}
}
