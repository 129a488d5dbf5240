// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A host whose programs are removed under its endpoints, and that starts again at once. Its
 * neighbours could not notice its absence by then, were it not for the detach, which waits until
 * they have. Its new maps know nothing of the endpoints' open frames; its failure settles those.
 */
#include "tests/net/loader/restart.h"

#include "tests/net/reliable/kill_talk.h"

/*
 * An endpoint that waits for one of h1 for so long complains, so h1 has to be announced before, as
 * slow as this machine may be. A switch excludes the hosts of those that wait after 20 s (twice
 * commit_lag_max_ms).
 */
#define STUCK_MS 15000

static void talk(void)
{
	unsigned int i;

	kill_workers(HOSTS, 1000);
	atomic_store(&c->phase, KILL_TALK);
	for (i = 0; i < HOSTS; i++)
		UNTIL("waits for traffic", atomic_load(&c->w[i].ngot) > 100);
}

/* Returns whether the actors that are not on the first host have all ACKs. */
static bool others_acked(void)
{
	unsigned int i;

	for (i = 1; i < HOSTS; i++)
		if (!atomic_load(&c->w[i].all_acked))
			return false;
	return true;
}

static bool others_recovered(void)
{
	unsigned int i;

	for (i = 1; i < HOSTS; i++)
		if (!atomic_load(&c->w[i].recovered_ns))
			return false;
	return true;
}

/* Stops the daemons and workers of all other hosts, or continues them. */
static void others_stand_still(bool stop)
{
	unsigned int i;

	for (i = 1; i < HOSTS; i++) {
		CHECK(!kill(dm[rack_host(i)].pid, stop ? SIGSTOP : SIGCONT), "%s", strerror(errno));
		CHECK(!kill(c->w[i].pid, stop ? SIGSTOP : SIGCONT), "%s", strerror(errno));
	}
}

/*
 * The other hosts get a fourth of a CPU for longer than twice dead_after. The switch hears nothing
 * in between, so its watch time grows by a fourth of what clocks show.
 */
static void others_are_slow(void)
{
	uint64_t end = t_mono() + 4 * DEAD_US * 1000ULL;

	while (t_mono() < end) {
		others_stand_still(true);
		usleep(60000);
		others_stand_still(false);
		usleep(20000);
	}
}

/*
 * The reason of the first failure. A host that begins anew unnoticed is not announced: its old
 * endpoints are put out as unreachable instead, after stuck_ms, one by one.
 */
static void h1_was_announced(void)
{
	CHECK(times_said("\"who\":\"h1\",\"why\":\"cut-off\"") == 1 && !times_said("\"why\":"
										   "\"unreachable"
										   "\""),
	      "%s", said_failures());
}

/* Removes the programs of h1 and starts it again at once, with @meanwhile beside the detach. */
static void begins_anew(void (*meanwhile)(void))
{
	const uint64_t correct = (1ULL << HOSTS) - 2;
	const char *name = LAB_NETNS_DIR "/h1";
	pid_t parent = getpid(), beside = 0;
	struct kill_verdict v;
	struct bl_err err;
	uint64_t end;
	unsigned int i;

	rack_last_words = say_workers;
	stuck_ms = STUCK_MS;
	dm_void_ms = 60000; /* The detach needs the clock of h1 until its neighbour has noticed. */
	open_rack(HOSTS);
	talk();
	daemon_stop(rack_host(0), SIGTERM);
	fflush(NULL);
	if (meanwhile && !(beside = fork())) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			meanwhile();
		pause();
	}
	CHECK(!bl_node_detach(BL_ROLE_HOST, name, &err), "%s", err.text);
	if (beside) {
		CHECK(!kill(beside, SIGKILL) && waitpid(beside, NULL, 0) == beside, "%s",
		      strerror(errno));
		others_stand_still(false);
	}
	daemon_start(rack_host(0));
	UNTIL("waits for the failure of h1", all_finished() && all_ok());
	h1_was_announced();
	atomic_store(&c->late_ns, t_mono());
	UNTIL("waits until the others go on", others_recovered());
	atomic_store(&c->phase, KILL_DRAIN);
	UNTIL("waits for acknowledgements", others_acked());
	for (end = t_mono() + WAIT_NS; kill_judge(c, correct, &v);) {
		CHECK(t_mono() < end, "%s", v.error);
		rack_serve(20);
	}
	UNTIL("waits until the first host's worker says why it ends", strstr(c->w[0].error, "progra"
											    "ms "
											    "were "
											    "remove"
											    "d"));
	atomic_store(&c->phase, KILL_EXIT);
	for (i = 0; i < HOSTS; i++)
		waitpid(c->w[i].pid, NULL, 0);
	daemons_end();
}

RACK_TEST(host__begins_anew_at_once)
{
	begins_anew(NULL);
}

RACK_TEST(host__its_neighbour_is_slow)
{
	begins_anew(others_are_slow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host__begins_anew_at_once),
		cmocka_unit_test(host__its_neighbour_is_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
