// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Daemons can be replaced at any moment while a controller watches: a restarted node is not
 * announced, nor is any other; order and atomicity hold, everything is delivered, and bus time
 * continues. The daemons are real processes (daemons.h), and stay away for longer than dead_after,
 * so that without a caretaker each restart of a host would be a failure.
 */
#include "tests/net/loader/restart_talk.h"

#define AWAY_MS 2500 /* longer than DEAD_US, with a margin for the observers */

/* Returns the bytes of all frames that a node has counted. */
static uint64_t counted_bytes(unsigned int node)
{
	struct bl_counts n = rack_counts(node);
	uint64_t sum = 0;
	unsigned int r;

	for (r = 0; r < BL_REASON_MAX; r++)
		sum += n.bytes[r];
	return sum;
}

/* ---- cases ---- */

RACK_TEST(term_and_start__announces_nobody)
{
	unsigned int i, round, ms, longest = 0;
	uint64_t bytes;

	rack_last_words = say_workers;
	open_rack(HOSTS);
	talk();
	goes_on("begins to talk");
	for (round = 0; round < 2; round++) {
		for (i = 0; i < rack.lab.nnodes; i++) {
			/*
			 * In the first round no process sends while a daemon is away: only beacons
			 * show that a host is alive.
			 */
			atomic_store(&c->phase, round ? KILL_TALK : KILL_REGISTER);
			rack_serve(round ? 0 : 200);
			bytes = counted_bytes(i);
			ms = daemon_stop(i, SIGTERM);
			longest = ms > longest ? ms : longest;
			CHECK(caretaker(i), "%s has no caretaker", rack.lab.nodes[i].name);
			rack_serve(AWAY_MS);
			if (round)
				goes_on("goes on without a daemon");
			daemon_start(i);
			UNTIL("waits for the caretaker's end", !caretaker(i));
			CHECK(counted_bytes(i) > bytes && bytes, "%s counts anew",
			      rack.lab.nodes[i].name);
			CHECK(!failures(), "somebody was announced: %s", ask());
			atomic_store(&c->phase, KILL_TALK);
			goes_on("goes on with the next daemon");
		}
	}
	fprintf(stderr, "  the longest stop took %u ms\n", longest);
	UNTIL("waits for all nodes", all_ok());
	judge();
	late_were_copies();
	CHECK(!rack_count_all(BL_R_CLOCK_VOID), "%" PRIu64 " found the clock void",
	      rack_count_all(BL_R_CLOCK_VOID));
	daemons_end();
}

/* Three restarts in a row, as fast as possible, of every node at once. */
RACK_TEST(term_and_start__all_at_once)
{
	unsigned int i, round;
	int status;

	rack_last_words = say_workers;
	open_rack(HOSTS);
	talk();
	goes_on("begins to talk");
	for (round = 0; round < 3; round++) {
		for (i = 0; i < rack.lab.nnodes; i++)
			CHECK(!kill(dm[i].pid, SIGTERM), "%s", strerror(errno));
		for (i = 0; i < rack.lab.nnodes; i++) {
			status = daemon_wait(i);
			CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "%s: status %#x",
			      rack.lab.nodes[i].name, status);
		}
		for (i = 0; i < rack.lab.nnodes; i++)
			daemon_spawn(i);
		for (i = 0; i < rack.lab.nnodes; i++)
			CHECK(daemon_ready(i, &status), "%s", rack.lab.nodes[i].name);
		goes_on("goes on with the next daemons");
	}
	UNTIL("waits for all nodes", all_ok());
	judge();
	late_were_copies();
	CHECK(!rack_count_all(BL_R_CLOCK_VOID), "%" PRIu64 " found the clock void",
	      rack_count_all(BL_R_CLOCK_VOID));
	daemons_end();
}

/* The daemon of h2 stops, and then a process of h1 dies, whose announcement h2 has to confirm. */
static void dies_while_away(void)
{
	rack_last_words = say_workers;
	dm_caretaker_ms = 40000;
	answer_ms = 4000;
	open_rack(HOSTS);
	talk();
	goes_on("begins to talk");
	daemon_stop(rack_host(1), SIGTERM);
	CHECK(!kill(c->w[0].pid, SIGKILL) && waitpid(c->w[0].pid, NULL, 0) == c->w[0].pid, "%s",
	      strerror(errno));
}

/* The daemon comes back and confirms; nothing was announced but that process. */
static void back_and_finished(void)
{
	unsigned int k;

	daemon_start(rack_host(1));
	UNTIL("waits for the failure's end", all_finished());
	CHECK(failures() == 1 && times_said("\"port\":0,") == 0, "%s", ask());
	for (k = 1; k < HOSTS; k++)
		CHECK(!c->w[k].error[0], "worker %u: %s", k, c->w[k].error);
	daemons_end();
}

/*
 * While something else fails, a node whose daemon is away owes an answer: it is waited for, and not
 * announced as failed.
 */
RACK_TEST(away__is_not_late)
{
	dies_while_away();
	rack_serve(8000); /* twice the time for an answer, and far below caretaker_ms */
	CHECK(!strstr(ask(), "\"why\":\"down\"") && !strstr(ask(), "\"step\":\"finished\""), "%s",
	      said_failures());
	back_and_finished();
}

/* The controller dies meanwhile, and the next leader knows of the absence and also waits. */
RACK_TEST(away__another_leader)
{
	dies_while_away();
	UNTIL("waits for the announcement", strstr(ask(), "\"step\":\"announced\""));
	ctl_kill();
	ctl_start(answer_ms);
	/* a new leader gives all nodes that have not reported yet a time of grace */
	UNTIL("waits for the other nodes at the next controller",
	      times_said("\"state\":\"ok\"") == rack.lab.nnodes - 1);
	rack_serve(14000);
	CHECK(!strstr(ask(), "\"why\":\"down\"") && strstr(ask(), "\"step\":\"announced\""), "%s",
	      said_failures());
	back_and_finished();
}

/*
 * kill -9 of one daemon after the other, each also before its spare is ready: the silence until the
 * next daemon sends beacons is harmless as long as it is shorter than dead_after.
 */
RACK_TEST(kill_and_start__within_dead_after)
{
	unsigned int i, round;

	dead_us = 8000000;
	rack_last_words = say_workers;
	open_rack(HOSTS);
	talk();
	goes_on("begins to talk");
	for (round = 0; round < 2; round++) {
		for (i = 0; i < rack.lab.nnodes; i++) {
			/*
			 * It is not waited for: the next daemon may start while the old one still
			 * exists.
			 */
			CHECK(!kill(dm[i].pid, SIGKILL), "%s", strerror(errno));
			close(dm[i].out);
			daemon_start(i);
			goes_on("goes on after kill -9");
		}
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	judge();
	daemons_end();
}

/* Whether a start of node @i, which loads its programs, was seen to keep off CPU 0. */
static bool keeps_off(unsigned int i, const cpu_set_t *mine)
{
	struct pollfd ready = { .events = POLLIN };
	bool off = false;
	cpu_set_t its;
	int status;

	daemon_stop(i, SIGTERM);
	rack_forget_programs(i);
	daemon_spawn(i);
	ready.fd = dm[i].out;
	do {
		CHECK(!sched_getaffinity(dm[i].pid, sizeof(its), &its), "%s", strerror(errno));
		off |= !CPU_ISSET(0, &its) && CPU_COUNT(&its) == CPU_COUNT(mine) - 1;
	} while (!poll(&ready, 1, 1));
	CHECK(daemon_ready(i, &status), "%s", rack.lab.nodes[i].name);
	CHECK(!sched_getaffinity(dm[i].pid, sizeof(its), &its) && CPU_EQUAL(&its, mine),
	      "%s may not run on CPU 0", rack.lab.nodes[i].name);
	return off;
}

/*
 * A daemon that loads its programs does not run on the CPU of its datapath meanwhile, and may run
 * there afterwards. It is looked at from outside; a look may come too late, so it is tried again.
 */
RACK_TEST_CPUS(start__keeps_off_the_datapath, 2)
{
	unsigned int i, tries;
	cpu_set_t mine;

	rack_last_words = rack_dump;
	open_rack(2);
	CHECK(!sched_getaffinity(0, sizeof(mine), &mine) && CPU_ISSET(0, &mine), "no CPU 0");
	for (i = 0; i < 2; i++) /* the switch and a host */
		for (tries = 0; !keeps_off(i, &mine); tries++)
			CHECK(tries < 50, "%s starts on the CPU of its datapath",
			      rack.lab.nodes[i].name);
	daemons_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(term_and_start__announces_nobody),
		cmocka_unit_test(term_and_start__all_at_once),
		cmocka_unit_test(away__is_not_late),
		cmocka_unit_test(away__another_leader),
		cmocka_unit_test(kill_and_start__within_dead_after),
		cmocka_unit_test(start__keeps_off_the_datapath),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
