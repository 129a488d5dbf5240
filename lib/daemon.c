// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See daemon.h. */
#include "daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "maps/host_abi.h"
#include "maps/meta_abi.h"
#include "internal.h"

int bl_daemon_path(char *out, size_t size)
{
	struct stat st;

	if (stat("/proc/thread-self/ns/net", &st))
		return -errno;
	snprintf(out, size, BL_RUN_DIR "/host-%llu.sock", (unsigned long long)st.st_ino);
	return 0;
}

int bl_daemon_map(const char *path, uint32_t magic)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	const struct bl_attach_req req = { .magic = magic, .abi_version = BL_ABI_VERSION };
	struct bl_attach_rep rep = { 0 };
	union {
		char bytes[CMSG_SPACE(BL_FD_COUNT * sizeof(int))];
		struct cmsghdr align;
	} ctl;
	struct iovec io = { .iov_base = &rep, .iov_len = sizeof(rep) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = ctl.bytes,
			    .msg_controllen = sizeof(ctl) };
	const struct timeval most = { .tv_sec = BL_DAEMON_WAIT_S };
	struct cmsghdr *c;
	int fd = -1, rc = 0, s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ssize_t n;

	if (s < 0)
		return -errno;
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)); /* also limits connect() */
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	/* EINTR: see attach.c */
	if (TEMP_FAILURE_RETRY(connect(s, (struct sockaddr *)&sun, sizeof(sun))))
		rc = errno == ECONNREFUSED ? -ENOENT : errno == EAGAIN ? -ETIMEDOUT : -errno;
	else if (TEMP_FAILURE_RETRY(send(s, &req, sizeof(req), MSG_NOSIGNAL)) != sizeof(req))
		rc = -EPROTO;
	n = rc ? 0 : TEMP_FAILURE_RETRY(recvmsg(s, &m, MSG_CMSG_CLOEXEC));
	if (n < 0 && errno == EAGAIN)
		rc = -ETIMEDOUT;
	for (c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL; c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
		    c->cmsg_len >= CMSG_LEN(sizeof(int)))
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	close(s);
	if (!rc && (n != sizeof(rep) || rep.magic != BL_SOCK_MAGIC))
		rc = -EPROTO; /* also the answer of a daemon that does not know @magic */
	if (!rc && rep.error)
		rc = -rep.error;
	if (!rc && fd < 0)
		rc = -EPROTO;
	if (rc && fd >= 0)
		close(fd);
	return rc ? rc : fd;
}
