// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Removes status sockets that a killed process left behind.
 *
 * Whether a process still listens is found out by connecting to the socket. The pid in its name
 * does not tell: it may be of another pid namespace, or belong to another process by now. A process
 * that is stopped counts as listening: the connection succeeds, or would have to wait. A socket
 * gets its final name only when it listens (base/status_socket.c), so one that is being made is not
 * taken for one that was left.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/status_socket.h"

/* Whether no process listens at the socket @path. */
static bool is_left_socket(const char *path)
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
		if (!is_left_socket(g.gl_pathv[i]) || (!dry_run && unlink(g.gl_pathv[i])))
			continue;
		if (tell)
			tell(g.gl_pathv[i], ctx);
		n++;
	}
	globfree(&g);
	return n;
}
