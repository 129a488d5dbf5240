/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See status.h.
 */
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/netns.h"
#include "base/status_socket.h"
#include "cli/util/status.h"
#include "maps/meta_abi.h"

json_t *status_ask(const char *path, const char *command)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = 3 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	json_t *v = NULL;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		if (!command ||
		    send(fd, command, strlen(command), MSG_NOSIGNAL) == (ssize_t)strlen(command)) {
			shutdown(fd, SHUT_WR);
			v = json_loadfd(fd, 0, NULL);
		}
	}
	if (fd >= 0)
		close(fd);
	return v;
}

json_t *status_ask_each(const char *name, const char *command)
{
	json_t *all = json_array();
	char pattern[128];
	glob_t g;
	size_t i;

	snprintf(pattern, sizeof(pattern), BL_RUN_DIR "/%s-%llu-*.sock", name,
		 (unsigned long long)bl_netns_ino());
	bl_status_sockets_clean(pattern, false, NULL, NULL); /* of processes that were killed */
	if (!glob(pattern, 0, NULL, &g)) {
		for (i = 0; i < g.gl_pathc; i++) {
			json_t *one = status_ask(g.gl_pathv[i], command);

			if (one)
				json_array_append_new(all, one);
		}
		globfree(&g);
	}
	return all;
}
