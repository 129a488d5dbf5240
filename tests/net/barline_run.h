/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs `barline` as its users do: the command that was built with the tests, with -j. The result is
 * the exit status and the one JSON object that the command prints.
 *
 * 	char barline[512];
 * 	const char *const argv[] = { barline, "-j", "show", "endpoints", NULL };
 * 	json_t *said;
 *
 * 	barline_path(barline, sizeof(barline));
 * 	status = barline_run(&said, argv);
 */
#ifndef BARLINE_TESTS_BARLINE_RUN_H
#define BARLINE_TESTS_BARLINE_RUN_H

#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/*
 * Writes the path of the command: the test is build/tests/net/test_x, the command build/barline.
 * Returns false if the path is too long or there is no /proc.
 */
static inline bool barline_path(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - sizeof("/barline"));
	int up;

	if (n <= 0 || (size_t)n == size - sizeof("/barline"))
		return false;
	path[n] = '\0';
	for (up = 0; up < 3; up++) {
		char *end = strrchr(path, '/');

		if (!end)
			return false;
		*end = '\0';
	}
	strcat(path, "/barline");
	return true;
}

/*
 * Runs the command. Returns its exit status. *@said is the object that it printed, which the caller
 * frees, or NULL.
 */
static inline int barline_run(json_t **said, const char *const *argv)
{
	int out = memfd_create("out", MFD_CLOEXEC), st;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0 && out >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out, STDOUT_FILENO);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFEXITED(st));
	lseek(out, 0, SEEK_SET);
	*said = json_loadfd(out, 0, NULL);
	close(out);
	return WEXITSTATUS(st);
}

/* Whether a member of a JSON object is this text. */
static inline bool json_says(const json_t *o, const char *key, const char *want)
{
	const char *is = json_string_value(json_object_get(o, key));

	return is && !strcmp(is, want);
}

#endif
