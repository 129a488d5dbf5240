/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See status.h. Processes that are stopped, or that send a byte now and then, cost STATUS_WAIT_MS.
 */
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/netns.h"
#include "base/proc.h"
#include "base/status_socket.h"
#include "base/time.h"
#include "cli/util/ask.h"
#include "cli/util/out.h"
#include "cli/util/status.h"
#include "maps/meta_abi.h"

json_t *status_ask(const char *path, const char *command)
{
	struct ask a = { .path = path, .command = command, .patient = true };

	ask_until(&a, 1, bl_mono_ns() + STATUS_WAIT_MS * 1000000ULL);
	return a.answer;
}

json_t *status_ask_one(const char *path, const char *command, const char *what, const char *none)
{
	struct ask a = { .path = path, .command = command, .patient = true };
	char said[256];

	ask_until(&a, 1, bl_mono_ns() + STATUS_WAIT_MS * 1000000ULL);
	if (a.answer)
		return a.answer;
	if (a.error == ECONNREFUSED || a.error == ENOENT)
		cli_fail("%s", none);
	else if (a.error == ETIMEDOUT)
		cli_fail("%s", bl_proc_silence(said, sizeof(said), what, a.pid, STATUS_WAIT_MS));
	else
		cli_fail("the %s at %s: %s", what, path, strerror(a.error));
	return NULL;
}

static int find_doors(const char *name, glob_t *g)
{
	char pattern[128];

	snprintf(pattern, sizeof(pattern), BL_RUN_DIR "/%s-%llu-*.sock", name,
		 (unsigned long long)bl_netns_ino());
	bl_status_sockets_clean(pattern, false, NULL, NULL); /* of processes that were killed */
	return glob(pattern, 0, NULL, g);
}

/*
 * Returns the process that listens at @path, or 0 if that cannot be seen: its queue is full, or it
 * is in another pid namespace.
 */
static pid_t owner_of(const char *path)
{
	struct ask a = { .path = path };

	ask_until(&a, 1, bl_mono_ns()); /* connects, and waits for nothing */
	json_decref(a.answer);
	return a.pid;
}

json_t *status_ask_each(const char *name, const char *command)
{
	unsigned int silent;

	return status_ask_all(name, command, &silent);
}

json_t *status_ask_all(const char *name, const char *command, unsigned int *silent)
{
	json_t *all = json_array();
	struct ask a[ASK_MAX];
	char said[256];
	size_t i, n = 0;
	glob_t g;

	*silent = 0;
	if (find_doors(name, &g))
		return all;
	for (; n < g.gl_pathc && n < ASK_MAX; n++)
		a[n] = (struct ask){ .path = g.gl_pathv[n], .command = command, .patient = true };
	ask_until(a, n, bl_mono_ns() + STATUS_WAIT_MS * 1000000ULL);
	for (i = 0; i < n; i++)
		if (a[i].answer)
			json_array_append_new(all, a[i].answer);
		else
			*silent += 1;
	/* If none answers, status_none() says so. */
	for (i = 0; i < n && json_array_size(all); i++)
		if (a[i].error == ETIMEDOUT)
			fprintf(stderr, "barline: %s\n",
				bl_proc_silence(said, sizeof(said), name, a[i].pid,
						STATUS_WAIT_MS));
	globfree(&g);
	return all;
}

int status_none(const char *name, const char *what, const char *none)
{
	char said[256];
	glob_t g;
	pid_t pid;

	if (find_doors(name, &g))
		return cli_fail("%s", none);
	pid = owner_of(g.gl_pathv[0]);
	globfree(&g);
	return cli_fail("%s", bl_proc_silence(said, sizeof(said), what, pid, STATUS_WAIT_MS));
}
