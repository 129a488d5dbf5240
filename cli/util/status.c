/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See status.h. A process that is stopped, or that sends a byte now and then, costs STATUS_WAIT_MS.
 */
#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/netns.h"
#include "base/proc.h"
#include "base/status_socket.h"
#include "base/time.h"
#include "cli/util/out.h"
#include "cli/util/status.h"
#include "maps/meta_abi.h"

#define ANSWER_MAX (64u << 20) /* bytes; a controller with thousands of nodes has some MiB */

/* How many ms are left until @end (CLOCK_MONOTONIC); 0: none. */
static int left_ms(uint64_t end)
{
	uint64_t now = bl_mono_ns();

	return now < end ? (int)((end - now) / 1000000) + 1 : 0;
}

/* Reads up to the end of the stream, or until @end. Returns the length, or -1. */
static ssize_t read_answer(int fd, uint64_t end, char **text)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t size = 0, room = 0;
	ssize_t n;

	*text = NULL;
	for (;;) {
		if (size == room) {
			char *more = room < ANSWER_MAX ? realloc(*text, room ? 2 * room : 65536)
						       : NULL;

			if (!more)
				return -1;
			*text = more;
			room = room ? 2 * room : 65536;
		}
		if (TEMP_FAILURE_RETRY(poll(&p, 1, left_ms(end))) != 1)
			return -1;
		n = recv(fd, *text + size, room - size, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return n < 0 ? -1 : (ssize_t)size;
		size += (size_t)n;
	}
}

json_t *status_ask(const char *path, const char *command)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = STATUS_WAIT_MS / 1000 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t end = bl_mono_ns() + STATUS_WAIT_MS * 1000000ULL;
	json_t *v = NULL;
	char *text = NULL;
	ssize_t n;

	if (fd < 0)
		return NULL;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	/* also limits connect(), which waits where the queue of a stopped process is full */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!TEMP_FAILURE_RETRY(connect(fd, (struct sockaddr *)&sa, sizeof(sa))) &&
	    (!command ||
	     send(fd, command, strlen(command), MSG_NOSIGNAL) == (ssize_t)strlen(command))) {
		shutdown(fd, SHUT_WR);
		n = read_answer(fd, end, &text);
		if (n > 0)
			v = json_loadb(text, (size_t)n, 0, NULL);
	}
	free(text);
	close(fd);
	return v;
}

static int find_doors(const char *name, glob_t *g)
{
	char pattern[128];

	snprintf(pattern, sizeof(pattern), BL_RUN_DIR "/%s-%llu-*.sock", name,
		 (unsigned long long)bl_netns_ino());
	bl_status_sockets_clean(pattern, false, NULL, NULL); /* of processes that were killed */
	return glob(pattern, 0, NULL, g);
}

json_t *status_ask_each(const char *name, const char *command)
{
	json_t *all = json_array();
	glob_t g;
	size_t i;

	if (!find_doors(name, &g)) {
		for (i = 0; i < g.gl_pathc; i++) {
			json_t *one = status_ask(g.gl_pathv[i], command);

			if (one)
				json_array_append_new(all, one);
		}
		globfree(&g);
	}
	return all;
}

int status_none(const char *name, const char *what, const char *none)
{
	const char *last;
	glob_t g;
	int pid;
	char state;

	if (find_doors(name, &g))
		return cli_fail("%s", none);
	/* the name is NAME-NETNS-PID.sock */
	last = strrchr(g.gl_pathv[0], '-');
	pid = last ? atoi(last + 1) : 0;
	globfree(&g);
	state = bl_proc_state(pid);
	if (state == 'T' || state == 't')
		return cli_fail("the %s (process %d) is stopped by a signal or a debugger, and "
				"does "
				"not answer; `kill -CONT %d`",
				what, pid, pid);
	return cli_fail("the %s (process %d) does not answer within %d s; see its log, and what it "
			"does (`cat /proc/%d/stack`)",
			what, pid, STATUS_WAIT_MS / 1000, pid);
}
