/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs the command `barline` that was built with the test. The Makefile must name the test among
 * those that run the command.
 */
#ifndef BARLINE_UNIT_BARLINE_SAYS_H
#define BARLINE_UNIT_BARLINE_SAYS_H

#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* Writes the path of the command, which is in a directory above that of the test. */
static inline void barline_command(char *path, size_t size)
{
	char self[PATH_MAX] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	do {
		assert_non_null(strrchr(self, '/'));
		*strrchr(self, '/') = 0;
		assert_true(snprintf(path, size, "%s/barline", self) < (int)size);
	} while (access(path, X_OK));
}

/*
 * Returns what `barline @args`, with @args as a shell reads them, prints on standard output and
 * ends with; the caller frees it.
 */
static inline char *barline_run_says(const char *args, int *status)
{
	char self[PATH_MAX], command[PATH_MAX + 512], *text = NULL;
	size_t room = 0;
	FILE *f;
	int st;

	barline_command(self, sizeof(self));
	assert_true(snprintf(command, sizeof(command), "%s %s", self, args) < (int)sizeof(command));
	f = popen(command, "r");
	assert_non_null(f);
	if (getdelim(&text, &room, '\0', f) <= 0) {
		free(text);
		text = strdup("");
	}
	st = pclose(f);
	assert_true(WIFEXITED(st));
	*status = WEXITSTATUS(st);
	return text;
}

/* The same of a command that succeeds and prints something. */
static inline char *barline_says(const char *args)
{
	int status;
	char *text = barline_run_says(args, &status);

	assert_int_equal(status, 0);
	assert_true(*text);
	return text;
}

#endif
