// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Network namespaces of the calling thread: see netns.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/netns.h"

#define SELF_NS "/proc/thread-self/ns/net"

int bl_netns_enter(const char *netns, int *old, struct bl_err *err)
{
	char path[320];
	int fd, rc;

	*old = -1;
	if (!netns || !*netns)
		return 0;
	/* ip-netns(8) keeps named namespaces in /run/netns */
	snprintf(path, sizeof(path), "%s%s", strchr(netns, '/') ? "" : "/run/netns/", netns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return bl_fail(err, errno,
			       "cannot open network namespace %s: %s; `ip netns list` shows the "
			       "named ones",
			       path, strerror(errno));
	*old = open(SELF_NS, O_RDONLY | O_CLOEXEC);
	if (*old < 0) {
		rc = bl_fail(err, errno, "cannot open %s: %s; is /proc mounted?", SELF_NS,
			     strerror(errno));
		close(fd);
		return rc;
	}
	if (setns(fd, CLONE_NEWNET)) {
		rc = bl_fail(err, errno,
			     "cannot enter network namespace %s: %s; it takes CAP_SYS_ADMIN and a "
			     "namespace file",
			     path, strerror(errno));
		close(fd);
		close(*old);
		*old = -1;
		return rc;
	}
	close(fd);
	return 0;
}

void bl_netns_leave(int old)
{
	if (old < 0)
		return;
	if (setns(old, CLONE_NEWNET)) {
		/* every later call would act in the wrong namespace */
		bl_log(BL_LOG_ERR, "cannot return to the network namespace of the process: %s",
		       strerror(errno));
		abort();
	}
	close(old);
}

/* Opens @path. Returns -ENOENT if that is not the network namespace @ino. */
static int open_if(const char *path, uint64_t ino)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_ino == ino)
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENOENT;
}

int bl_netns_find(uint64_t ino)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[1024], path[512];
	int fd = -ENOENT;
	struct dirent *e;
	uint64_t is;
	DIR *d;

	/* "36 35 0:4 net:[4026532316] /run/netns/h1 rw shared:5 - nsfs nsfs rw" */
	while (f && fd < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %*s %*s net:[%" SCNu64 "] %511s", &is, path) == 2 &&
		    is == ino)
			fd = open_if(path, ino);
	if (f)
		fclose(f);
	d = fd < 0 ? opendir("/proc") : NULL;
	while (d && fd < 0 && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%s/ns/net", e->d_name);
		fd = open_if(path, ino);
	}
	if (d)
		closedir(d);
	return fd;
}

uint64_t bl_netns_ino(void)
{
	struct stat st;

	return stat(SELF_NS, &st) ? 0 : st.st_ino;
}
