/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See plot.h. gnuplot is an external program; without it, or without the scripts, a command still
 * writes its result files.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/util/plot.h"

/*
 * Writes the path of script @name into @path. The scripts of PREFIX/bin/barline are in
 * PREFIX/share/barline, those of build/barline in bench/ of the source tree. Returns 0, or -1 if
 * the script is in neither.
 */
static int find_script(const char *name, char *path, size_t size)
{
	char exe[1024];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	exe[n > 0 ? n : 0] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	snprintf(path, size, "%s/../share/barline/%s", exe, name);
	if (!access(path, R_OK))
		return 0;
	snprintf(path, size, "%s/../bench/%s", exe, name);
	return access(path, R_OK);
}

void out_plot(const char *script, const char *dir, const char *more, const char *data)
{
	char path[1200], define[4600];
	int st = 0;
	pid_t pid;

	if (find_script(script, path, sizeof(path))) {
		fprintf(stderr, "barline: no plot: %s is not installed; %s has the numbers\n",
			script, data);
		return;
	}
	snprintf(define, sizeof(define), "dir='%s'; %s", dir, more);
	pid = fork();
	if (pid == 0) {
		execlp("gnuplot", "gnuplot", "-e", define, path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &st, 0) < 0 || (WIFEXITED(st) && WEXITSTATUS(st) == 127))
		fprintf(stderr, "barline: no plot: gnuplot is not installed; %s has the numbers\n",
			data);
	else if (st)
		fprintf(stderr, "barline: no plot: gnuplot failed; %s has the numbers\n", data);
}
