// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Status sockets: see status_socket.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/status_socket.h"

struct bl_status_socket {
	char *(*reply)(void *ctx, char *said, size_t *len); /* see bl_status_socket_open() */
	void *ctx;                                          /* for @reply */
	int fd;                                             /* listens; -1: none */
	int end_fd;            /* eventfd: the thread is to end; -1: none */
	pthread_t thread;      /* 0: not started */
	struct sockaddr_un sa; /* where it listens */
	bool named;            /* it has its final name, which has to be removed */
};

/* Reads what a client sends, and sends the reply. A slow client is cut off after a second. */
static void serve_client(struct bl_status_socket *c, int fd)
{
	const struct timeval patience = { .tv_sec = 1 };
	char said[65536], *text;
	size_t len = 0, at = 0;
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	/* with these timeouts, a process that is stopped here and continued gets EINTR */
	while (len < sizeof(said) - 1) {
		n = TEMP_FAILURE_RETRY(read(fd, said + len, sizeof(said) - 1 - len));
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	said[len] = 0;
	text = c->reply(c->ctx, said, &len);
	while (text && at < len) {
		n = TEMP_FAILURE_RETRY(send(fd, text + at, len - at, MSG_NOSIGNAL));
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	free(text);
}

static void *status_main(void *arg)
{
	struct bl_status_socket *c = arg;
	struct pollfd p[2] = { { .fd = c->fd, .events = POLLIN },
			       { .fd = c->end_fd, .events = POLLIN } };

	pthread_setname_np(pthread_self(), "barline-status");
	for (;;) {
		int fd;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[1].revents)
			return NULL;
		fd = p[0].revents ? accept4(c->fd, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (fd < 0)
			continue;
		serve_client(c, fd);
		close(fd);
	}
}

void bl_status_socket_close(struct bl_status_socket *c)
{
	uint64_t one = 1;

	if (!c)
		return;
	if (c->thread && write(c->end_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(c->thread, NULL);
	if (c->fd >= 0) {
		close(c->fd);
		if (c->named)
			unlink(c->sa.sun_path);
	}
	if (c->end_fd >= 0)
		close(c->end_fd);
	free(c);
}

/* Makes the directory of @path if it is missing. If that fails, bind() reports the reason. */
static void make_parent(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return;
	*slash = 0;
	mkdir(dir, 0755);
}

int bl_status_socket_open(struct bl_status_socket **out, const char *path,
			  char *(*reply)(void *ctx, char *said, size_t *len), void *ctx,
			  struct bl_err *err)
{
	struct bl_status_socket *c = calloc(1, sizeof(*c));
	struct sockaddr_un making;
	mode_t mask;
	int rc = 0, bound;

	*out = NULL;
	if (!c)
		return bl_fail(err, ENOMEM, "out of memory");
	c->reply = reply;
	c->ctx = ctx;
	c->sa.sun_family = AF_UNIX;
	snprintf(c->sa.sun_path, sizeof(c->sa.sun_path), "%s", path);
	make_parent(path);
	/*
	 * Made under another name, and renamed when it listens: otherwise it could be taken for a
	 * socket that was left (base/status_clean.c).
	 */
	making = c->sa;
	snprintf(making.sun_path, sizeof(making.sun_path), "%.*s~",
		 (int)sizeof(making.sun_path) - 2, path);
	unlink(making.sun_path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	c->end_fd = eventfd(0, EFD_CLOEXEC);
	mask = umask(0177);
	bound = c->fd >= 0 ? bind(c->fd, (struct sockaddr *)&making, sizeof(making)) : -1;
	umask(mask);
	/* many may ask one that is stopped: by a connection they see which process it is */
	c->named = !bound && c->end_fd >= 0 && !listen(c->fd, 128) &&
		   !rename(making.sun_path, c->sa.sun_path);
	if (!c->named) {
		rc = bl_fail(err, errno, "cannot open %s: %s", c->sa.sun_path, strerror(errno));
		unlink(making.sun_path);
	}
	if (!rc) {
		rc = pthread_create(&c->thread, NULL, status_main, c);
		if (rc) {
			c->thread = 0;
			rc = bl_fail(err, rc, "cannot start a thread: %s", strerror(rc));
		}
	}
	if (rc)
		bl_status_socket_close(c);
	else
		*out = c;
	return rc;
}
