// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files of one line in /proc and /sys: see proc.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/proc.h"

int bl_proc_stat(pid_t pid, int field, uint64_t *v)
{
	char path[64], text[1024], *p;
	ssize_t n;
	int fd, k;

	*v = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	/* field 2, the name in parentheses, may contain ')': count from the last one */
	p = strrchr(text, ')');
	for (k = 2; p && k < field; k++)
		p = strchr(p + 1, ' ');
	return p && sscanf(p, " %" SCNu64, v) == 1 ? 0 : -EPROTO;
}

char bl_proc_state(pid_t pid)
{
	char path[32], text[512];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (bl_read_line(AT_FDCWD, path, text, sizeof(text)))
		return 0;
	p = strrchr(text, ')'); /* the name before it may contain one, too */
	return p && p[1] == ' ' ? p[2] : 0;
}

const char *bl_proc_silence(char *buf, size_t size, const char *what, pid_t pid, unsigned int ms)
{
	char state = pid > 0 ? bl_proc_state(pid) : 0;

	if (state == 'T' || state == 't')
		snprintf(buf, size,
			 "the %s (process %d) is stopped by a signal or a debugger, and does not "
			 "answer; `kill -CONT %d` continues it",
			 what, pid, pid);
	else if (pid > 0)
		snprintf(buf, size,
			 "the %s (process %d) has not answered for %g s; see its log, and what it "
			 "does (`cat /proc/%d/stack`)",
			 what, pid, ms / 1000.0, pid);
	else
		snprintf(buf, size, "the %s has not answered for %g s; is it stopped?", what,
			 ms / 1000.0);
	return buf;
}

int bl_read_line(int dir, const char *path, char *buf, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -errno;
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	return 0;
}

#define THREADS_MAX 64 /* of which bl_proc_waited_ns() reads the times */

uint64_t bl_proc_waited_ns(pid_t pid)
{
	uint64_t sum = 0, wait;
	unsigned int n = 0;
	struct dirent *e;
	char path[320], text[96];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && n < THREADS_MAX && (e = readdir(d))) {
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%.20s/schedstat", e->d_name);
		/* time on a CPU, time ready without one, time slices */
		if (!bl_read_line(dirfd(d), path, text, sizeof(text)) &&
		    sscanf(text, "%*u %" SCNu64, &wait) == 1)
			sum += wait;
		n++;
	}
	if (d)
		closedir(d);
	return sum;
}
