// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Processes that leave by bl_exit() and end while their host's daemon is stopped. The daemon finds
 * their goodbye and their end together, and must not take a process that left for one that died,
 * whichever it sees first.
 */
#include "tests/net/loader/restart.h"

#include "tests/net/reliable/kill_talk.h"

#define LEAVERS 8 /* on the first host; one more process is on the second */

static unsigned int host_of(unsigned int i)
{
	return i == LEAVERS;
}

static void start(void)
{
	unsigned int i;

	kill_begin(LEAVERS + 1, 10000);
	c->size = 100;
	kill_fork(host_of);
	atomic_store(&c->phase, KILL_TALK);
	for (i = 0; i < c->n; i++)
		UNTIL("waits for traffic", atomic_load(&c->w[i].ngot) > 20);
}

RACK_TEST(left__while_the_daemon_does_not_look)
{
	unsigned int i, round;
	int status;

	rack_last_words = say_workers;
	dead_us = 8000000; /* a stopped daemon sends no beacons */
	open_rack(HOSTS);
	for (round = 0; round < 5; round++) {
		start();
		atomic_store(&c->phase, KILL_DRAIN);
		for (i = 0; i < c->n; i++)
			UNTIL("waits for acknowledgements", atomic_load(&c->w[i].all_acked));
		CHECK(!kill(dm[rack_host(0)].pid, SIGSTOP), "%s", strerror(errno));
		for (i = 0; i < c->n; i++)
			atomic_store(&c->w[i].leave, 1);
		for (i = 0; i < c->n; i++) {
			UNTIL("waits until they have left",
			      waitpid(c->w[i].pid, &status, WNOHANG) == c->w[i].pid);
			CHECK(status == 0 && !c->w[i].error[0], "worker %u: %s", i, c->w[i].error);
		}
		CHECK(!kill(dm[rack_host(0)].pid, SIGCONT), "%s", strerror(errno));
		UNTIL("waits for the announcements",
		      strstr(ask(), "\"why\":\"died\"") || failures() == (round + 1) * c->n);
		CHECK(!strstr(ask(), "\"why\":\"died\""), "who has left was announced as died: %s",
		      said_failures());
		munmap(c, sizeof(*c));
		c = NULL;
	}
	daemons_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(left__while_the_daemon_does_not_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
