/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See self.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/util/self.h"

#define SAFE                                                             \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" \
	"_-./:,=@%+"
#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

char *self_quote(const char *word, char *buf, size_t size)
{
	size_t n = 0;

	if (*word && !word[strspn(word, SAFE)]) {
		snprintf(buf, size, "%s", word);
		return buf;
	}
	if (size < 3) {
		snprintf(buf, size, "%s", "");
		return buf;
	}
	buf[n++] = '\'';
	for (; *word; word++) { /* a quote is written outside of the quotes: '\'' */
		size_t need = *word == '\'' ? 4 : 1;

		if (n + need + 2 > size)
			break;
		memcpy(buf + n, need == 4 ? "'\\''" : word, need);
		n += need;
	}
	buf[n++] = '\'';
	buf[n] = '\0';
	return buf;
}

const char *self_name(void)
{
	static char buf[512];

	if (!program_invocation_name || !strchr(program_invocation_name, '/'))
		return "barline";
	return self_quote(program_invocation_name, buf, sizeof(buf));
}

char *self_folder(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);
	char *end;

	buf[n > 0 ? n : 0] = '\0';
	end = strrchr(buf, '/');
	if (end)
		*end = '\0';
	if (strchr(buf, ':')) /* PATH has no way to write it */
		*buf = '\0';
	return buf;
}

void self_first_in_path(const char *folder)
{
	const char *was = getenv("PATH");
	char *path;

	if (*folder && asprintf(&path, "%s:%s", folder, was ? was : USUAL_PATH) >= 0) {
		setenv("PATH", path, 1);
		free(path);
	}
}
