/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reliable traffic by the workers of the lab's failover (bench/kill/kill.h), for the judge of their
 * logs. Each of four hosts sends to all:
 *
 * 	rack_last_words = say_workers;
 * 	kill_workers(4, 1500);
 * 	atomic_store(&c->phase, KILL_TALK);
 */
#ifndef BARLINE_TESTS_KILL_TALK_H
#define BARLINE_TESTS_KILL_TALK_H

#include <sys/prctl.h>

#include "bench/kill/kill.h"
#include "tests/net/rack.h"
#include "tests/net/until.h"

static struct kill_ctl *c; /* shared with the workers; NULL: there are none */

/*
 * Allocates *c for @n workers that send every @interval_us. Set the other fields of *c before
 * kill_fork().
 */
T_FN void kill_begin(unsigned int n, unsigned int interval_us)
{
	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(c != MAP_FAILED, "%s", strerror(errno));
	c->n = n;
	c->interval_us = interval_us;
	c->size = 200;
}

/* Forks the workers; number i runs on host @on(i). They send when the phase says so. */
T_FN void kill_fork(unsigned int (*on)(unsigned int i))
{
	unsigned int i;
	pid_t pid;

	for (i = 0; i < c->n; i++) {
		fflush(NULL);
		pid = fork(); /* Not into *c: it is shared, and the child would overwrite it. */
		CHECK(pid >= 0, "%s", strerror(errno));
		if (pid) {
			c->w[i].pid = pid;
			continue;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(on(i)));
		_exit(kill_work(c, i));
	}
	for (i = 0; i < c->n; i++)
		UNTIL("waits for endpoints", atomic_load(&c->w[i].ready) || c->w[i].error[0]);
}

T_FN unsigned int kill_own_host(unsigned int i)
{
	return i;
}

/* Starts one worker on each of @hosts hosts. */
T_FN void kill_workers(unsigned int hosts, unsigned int interval_us)
{
	kill_begin(hosts, interval_us);
	kill_fork(kill_own_host);
}

/* Reports how far the workers came; a value for rack_last_words. */
T_FN void say_workers(void)
{
	unsigned int i;

	for (i = 0; c && i < c->n; i++)
		fprintf(stderr,
			"worker %u, port %u: sent %u got %u acked %d recovered %d gap %.0f ms %s\n",
			i, c->w[i].addr.port, c->w[i].nsent, c->w[i].ngot, c->w[i].all_acked,
			c->w[i].recovered_ns != 0, (double)atomic_load(&c->w[i].gap_ns) / 1e6,
			c->w[i].error);
	say_all();
}

#endif
