// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Notices workers that have failed or died while the others go on. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/rack/bench.h"
#include "cli/util/out.h"

int bench_worker_lost(struct bench_ctl *ctl)
{
	unsigned int i;
	int st;

	for (i = 0; i < ctl->n; i++) {
		if (atomic_load(&ctl->w[i].ready) < 0)
			return cli_fail("worker %u: %s", i + 1, ctl->w[i].error);
		if (ctl->w[i].pid > 0 && waitpid(ctl->w[i].pid, &st, WNOHANG) == ctl->w[i].pid) {
			ctl->w[i].pid = 0;
			if (atomic_load(&ctl->w[i].ready) < 0)
				return cli_fail("worker %u: %s", i + 1, ctl->w[i].error);
			if (WIFSIGNALED(st))
				return cli_fail("worker %u died of signal %d (%s)", i + 1,
						WTERMSIG(st), strsignal(WTERMSIG(st)));
			return cli_fail("worker %u ended early with status %d", i + 1,
					WEXITSTATUS(st));
		}
	}
	return 0;
}
