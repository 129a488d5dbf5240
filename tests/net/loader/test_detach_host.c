// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A host whose programs are removed under its endpoints, and that starts again at once. Its
 * neighbours could not notice its absence by then, were it not for the detach, which waits until
 * they have. Its new maps know nothing of the endpoints' open frames; its failure settles those.
 */
#include "tests/net/loader/restart.h"

#include "tests/net/reliable/kill_talk.h"

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

RACK_TEST(host__begins_anew_at_once)
{
	const uint64_t correct = (1ULL << HOSTS) - 2;
	const char *name = LAB_NETNS_DIR "/h1";
	struct kill_verdict v;
	struct bl_err err;
	uint64_t end;
	unsigned int i;

	rack_last_words = say_workers;
	open_rack(HOSTS);
	talk();
	daemon_stop(rack_host(0), SIGTERM);
	CHECK(!bl_node_detach(BL_ROLE_HOST, name, &err), "%s", err.text);
	daemon_start(rack_host(0));
	UNTIL("waits for the failure of h1", all_finished() && all_ok());
	CHECK(strstr(ask(), "\"why\":\"cut-off\"") && !strstr(ask(), "\"why\":\"unreachable\""),
	      "%s", ask());
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host__begins_anew_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
