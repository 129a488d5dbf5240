// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See base/status_socket.h. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "status_socket.h"

struct bl_status_socket {
	char *(*reply)(void *ctx, char *said, size_t *len);
	void *ctx;
	int fd, end_fd;
	pthread_t thread;
	struct sockaddr_un sa;
	bool named;
};

void bl_put_number(FILE *o, const char *key, uint64_t v)
{
	fprintf(o, ",\"%s\":%llu", key, (unsigned long long)v);
}

void bl_put_text(FILE *o, const char *key, const char *s)
{
	fprintf(o, "\"%s\":\"", key);
	for (; *s; s++)
		fputc(*s == '"' || *s == '\\' || (unsigned char)*s < ' ' ? '?' : *s, o);
	fputc('"', o);
}

static void answer(struct bl_status_socket *c, int fd)
{
	const struct timeval patience = { .tv_sec = 1 };
	char said[65536], *text;
	size_t len = 0, at = 0;
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	/* with these limits, who is stopped here and goes on is told EINTR */
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

	pthread_setname_np(pthread_self(), "barline-door");
	for (;;) {
		int fd;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[1].revents)
			return NULL;
		fd = p[0].revents ? accept4(c->fd, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (fd < 0)
			continue;
		answer(c, fd);
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

/* The directory that @path is in, where it is missing; bind() says what is wrong if it cannot. */
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
	 * made beside it: by its name it is found when it listens, or somebody might take it for
	 * one that was left (base/status_clean.c)
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
	c->named = !bound && c->end_fd >= 0 && !listen(c->fd, 16) &&
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
