// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See ask.h. */
#include "cli/util/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"

#define KNOCK_MS 10 /* a patient question tries to connect so often */

/*
 * Connects, and sends the command. A Unix socket whose queue is full refuses at once (EAGAIN),
 * since ours does not block: its service is busy, or is stopped and was asked often. Returns 0 or
 * an errno.
 */
static int begin(struct ask *a)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);

	if (a->fd < 0)
		a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0)
		return errno;
	if (strlen(a->path) >= sizeof(sa.sun_path))
		return ENAMETOOLONG;
	strcpy(sa.sun_path, a->path);
	a->knocks = connect(a->fd, (struct sockaddr *)&sa, sizeof(sa)) != 0;
	if (a->knocks)
		return errno == EAGAIN ? (a->patient ? 0 : ETIMEDOUT) : errno;
	if (!getsockopt(a->fd, SOL_SOCKET, SO_PEERCRED, &who, &len))
		a->pid = who.pid;
	if (a->command && send(a->fd, a->command, strlen(a->command), MSG_NOSIGNAL) !=
				  (ssize_t)strlen(a->command))
		return EPIPE;
	shutdown(a->fd, SHUT_WR);
	return 0;
}

static void end(struct ask *a, int error)
{
	a->error = error;
	a->knocks = false;
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
	if (!error) {
		a->answer = json_loadb(a->text, a->len, 0, NULL);
		if (!json_is_object(a->answer)) {
			json_decref(a->answer);
			a->answer = NULL;
			a->error = EPROTO;
		}
	}
	free(a->text);
	a->text = NULL;
}

/* Reads what is there, and ends the question if that was all. */
static void go_on(struct ask *a)
{
	ssize_t n;
	char *at;

	if (a->len == a->room) {
		a->room = a->room ? 2 * a->room : 65536;
		at = a->room <= ASK_BYTES_MAX ? realloc(a->text, a->room) : NULL;
		if (!at) {
			end(a, a->room <= ASK_BYTES_MAX ? ENOMEM : EFBIG);
			return;
		}
		a->text = at;
	}
	n = recv(a->fd, a->text + a->len, a->room - a->len, MSG_DONTWAIT);
	if (n > 0)
		a->len += (size_t)n;
	else if (!n || (errno != EAGAIN && errno != EINTR))
		end(a, n ? errno : 0);
}

void ask_until(struct ask *a, size_t n, uint64_t until)
{
	struct pollfd p[ASK_MAX];
	size_t k, open, knocks;
	uint64_t now, ms;
	int rc;

	for (k = 0; k < n; k++)
		a[k] = (struct ask){ .path = a[k].path,
				     .command = a[k].command,
				     .patient = a[k].patient,
				     .fd = -1,
				     .knocks = true };
	for (;;) {
		for (k = 0, open = 0, knocks = 0; k < n; k++) {
			rc = a[k].knocks ? begin(&a[k]) : 0;
			if (rc)
				end(&a[k], rc);
			p[k] = (struct pollfd){ .fd = a[k].knocks ? -1 : a[k].fd,
						.events = POLLIN };
			open += a[k].fd >= 0;
			knocks += a[k].knocks;
		}
		now = bl_mono_ns();
		if (!open || now >= until)
			break;
		ms = (until - now + 999999) / 1000000;
		/* an interruption leaves nothing to read, and the time is looked at again */
		if (poll(p, n, knocks && ms > KNOCK_MS ? KNOCK_MS : (int)ms) <= 0)
			continue;
		for (k = 0; k < n; k++)
			if (p[k].revents)
				go_on(&a[k]);
	}
	for (k = 0; k < n; k++)
		if (a[k].fd >= 0)
			end(&a[k], ETIMEDOUT);
}
