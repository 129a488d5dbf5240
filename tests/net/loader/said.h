/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What daemons and commands in the process of a test say, in a file. */
#ifndef BARLINE_TESTS_SAID_H
#define BARLINE_TESTS_SAID_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/net/rack.h"

/* Redirects their messages to a file from now on. */
T_FN void say_to(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO, "%s: %s", path, strerror(errno));
	close(fd);
}

T_FN bool says(const char *path, const char *what)
{
	static char text[65536];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	return strstr(text, what);
}

/* Whether the event @name is in the file of node @i. */
T_FN bool says_event(unsigned int i, const char *name)
{
	char path[320], what[64];

	snprintf(path, sizeof(path), BL_RUN_DIR "/%s%s-events.jsonl",
		 rack_is_switch(i) ? "switch" : "host", strrchr(rack.dir[i], '-'));
	snprintf(what, sizeof(what), "\"event\":\"%s\"", name);
	return says(path, what);
}

#endif
