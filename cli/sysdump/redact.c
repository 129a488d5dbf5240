// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See redact.h. */
#include "cli/sysdump/redact.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LEFT_OUT "(left out)"
#define LONG     32 /* characters of a word that may be a key; no longer than the least key */

/* Returns whether the @n characters at @name contain a word for a secret. */
static bool secret_name(const char *name, size_t n)
{
	static const char *const words[] = { "secret", "password", "passwd", "psk", "token" };
	char low[128];
	size_t i;

	if (n >= sizeof(low))
		n = sizeof(low) - 1;
	for (i = 0; i < n; i++)
		low[i] = (char)tolower((unsigned char)name[i]);
	low[n] = '\0';
	if (n >= 5 && !strcmp(low + n - 5, "_file"))
		return false;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(low, words[i]))
			return true;
	return false;
}

/* Replaces the @n characters at @at by LEFT_OUT, which is not longer. */
static void leave_out(char *at, size_t n)
{
	size_t m = strlen(LEFT_OUT);

	if (m > n)
		m = n;
	memcpy(at, LEFT_OUT, m);
	memmove(at + m, at + n, strlen(at + n) + 1);
}

static bool key_char(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '=';
}

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Leaves out every long word; one of a path is not long, since '/' ends a word. */
static void long_words(char *line)
{
	char *at = line;

	while (*at) {
		size_t n = 0;

		while (key_char(at[n]))
			n++;
		if (n >= LONG) {
			leave_out(at, n);
			at += strlen(LEFT_OUT);
		} else {
			at += n ? n : 1;
		}
	}
}

void redact_line(struct redact *r, char *line)
{
	char *at, *from;
	size_t end = strcspn(line, "\r\n");
	bool pem = r->in_pem || strstr(line, "-----BEGIN");

	if (pem) {
		r->in_pem = !strstr(line, "-----END");
		leave_out(line, end);
		return;
	}
	for (at = line; (at = strpbrk(at, ":=")); at++) {
		size_t n;

		for (from = at; from > line && name_char(from[-1]); from--)
			;
		if (!secret_name(from, (size_t)(at - from)))
			continue;
		at++;
		at += strspn(at, " \t");
		n = strcspn(at, "\r\n");
		if (n)
			leave_out(at, n);
		break;
	}
	long_words(line);
}
