/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reliable traffic from each host to all, by the workers of the lab's failover (cli/kill.h), for the judge of their diaries. */
#ifndef BARLINE_TESTS_KILL_TALK_H
#define BARLINE_TESTS_KILL_TALK_H

#include <sys/prctl.h>

#include "cli/kill.h"
#include "rack.h"

/* One worker on each of @hosts hosts, made and not waited for: they register, and talk when the phase says so. */
T_FN struct kill_ctl *kill_workers(unsigned int hosts, unsigned int interval_us)
{
	struct kill_ctl *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned int i;
	pid_t pid;

	CHECK(c != MAP_FAILED, "%s", strerror(errno));
	c->n = hosts;
	c->interval_us = interval_us;
	c->size = 200;
	for (i = 0; i < hosts; i++) {
		fflush(NULL);
		pid = fork();
		CHECK(pid >= 0, "%s", strerror(errno));
		if (pid) {
			c->w[i].pid = pid;
			continue;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(i));
		_exit(kill_work(c, i));
	}
	return c;
}

#endif
