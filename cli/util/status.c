/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See status.h. A process that is stopped, or that sends a byte now and then, costs STATUS_WAIT_MS.
 */
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
