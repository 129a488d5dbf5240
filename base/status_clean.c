// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sockets in BL_RUN_DIR at which processes say what they do, and that stay when such a process is
 * killed.
 *
 * Whether somebody is there is asked at the socket, and not by the pid in its name: that may be one
 * of another pid namespace, or somebody else's by now. Who is stopped is there still: connecting to
 * it works, or would have to wait. A socket gets its name when it listens (base/status_socket.c),
 * so that one which is just being made is not taken for one that was left.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/status_socket.h"

static bool left(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool gone;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	gone = fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return gone;
}

int bl_status_sockets_clean(const char *pattern, bool dry_run,
			    void (*tell)(const char *what, void *ctx), void *ctx)
{
	int n = 0;
	size_t i;
	glob_t g;

	if (glob(pattern, 0, NULL, &g))
		return 0;
	for (i = 0; i < g.gl_pathc; i++) {
		if (!left(g.gl_pathv[i]) || (!dry_run && unlink(g.gl_pathv[i])))
			continue;
		if (tell)
			tell(g.gl_pathv[i], ctx);
		n++;
	}
	globfree(&g);
	return n;
}
