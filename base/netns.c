// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Network namespaces of the calling thread: see netns.h. */
#include <errno.h>
#include <fcntl.h>
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

uint64_t bl_netns_ino(void)
{
	struct stat st;

	return stat(SELF_NS, &st) ? 0 : st.st_ino;
}
