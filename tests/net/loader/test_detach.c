// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Switches that lose their programs under reliable traffic, and get them back with empty registers:
 * `barline switch detach`, or a machine that reboots into a plain bridge or router.
 *
 * Nothing fails, so every scattering must be delivered by all of its receivers, or by none and its
 * sender is told. Within GOES_ON_MS after the return of the last program everyone delivers again.
 */
#include "tests/net/reliable/reliable.h"

#include "tests/net/barline_run.h"
#include "tests/net/controller/controller.h"

#define HOSTS 4
/*
 * The promise is start_wait (1 s, or ten times dead_after, here 3 s or 12 s) and a retransmission;
 * the rest is for a machine that stands still.
 */
#define GOES_ON_MS 60000
#define WAIT_MS    60000

static uint64_t seed;

static void take_away(unsigned int node)
{
	char path[64];
	struct bl_err err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", rack.lab.nodes[node].netns);
	rack_close_node(node);
	CHECK(!bl_node_detach(BL_ROLE_SWITCH, path, &err), "%s", err.text);
}

static void all_go_on(const char *when)
{
	uint64_t end = t_mono() + GOES_ON_MS * 1000000ULL, before[HOSTS];
	unsigned int i;

	for (i = 0; i < HOSTS; i++)
		before[i] = TR_LOAD(tr_sh->node[i].received);
	for (i = 0; i < HOSTS; i++)
		while (TR_LOAD(tr_sh->node[i].received) < before[i] + 3) {
			CHECK(t_mono() < end, "endpoint %u stands still %s", i, when);
			tr_pass(5);
		}
}

/*
 * Detaches some of the first @switches switches for a while, and now and then restarts a daemon,
 * @rounds times. After each round everyone must continue.
 */
static void rounds_of(unsigned int rounds, unsigned int switches)
{
	unsigned int i, k;

	for (k = 0; k < rounds; k++) {
		uint64_t gone = 1 + t_below(&seed, (1u << switches) - 1);
		unsigned int away_ms = t_below(&seed, 3) ? 20 + t_below(&seed, 200)
							 : 600 + t_below(&seed, 900);

		tr_pass(t_below(&seed, 300));
		if (!t_below(&seed, 4)) {
			/* only the daemons */
			i = t_below(&seed, rack.lab.nnodes);
			rack_close_node(i);
			tr_pass(t_below(&seed, 50));
			rack_open_node(i);
		}
		for (i = 0; i < switches; i++)
			if (gone >> i & 1)
				take_away(i);
		tr_pass(away_ms);
		for (i = 0; i < switches; i++)
			if (gone >> i & 1)
				rack_open_node(i);
		fprintf(stderr, "  round %u: switches %" PRIx64 " away for %u ms\n", k, gone,
			away_ms);
		all_go_on("after the switches are back");
	}
}

/* The script serves all nodes: while it starts switches, no clock may expire. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->clock_void_after_ms = 100000;
}

static void under_traffic(unsigned int rounds)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .reliable = true,
			      .len = 300,
			      .fan = 3,
			      .gap_us = 1500,
			      .items = 2,
			      .ring_bytes = TR_RING_TIGHT(HOSTS) };
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		cfg.host = i;
		tr_add(&cfg);
	}
	seed = tr_sh->seed;
	alarm(300); /* switches are started some twenty times, which takes 1 s or 10 s each */
	tr_go();
	all_go_on("at the beginning");
	rounds_of(rounds, rack.host0);
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	/*
	 * Only messages reported as BL_FAIL_UNREACHABLE may be missing: an OPEN was not answered,
	 * before anything left.
	 */
	tr_judge_all(~0ULL, ~0ULL, true);
	for (i = 0; i < HOSTS; i++)
		all_or_none(i, ~0ULL);
	fprintf(stderr,
		"  %" PRIu64 " frames were refused because their barriers were another node's, "
		"%" PRIu64 " came late\n",
		rack_count_all(BL_R_UNSWITCHED), rack_count_all(BL_R_PREP_LATE));
}

RACK_TEST(rack__a_bridge_for_a_while)
{
	rack.lab.spec.hosts = HOSTS;
	rack.tweak = patient;
	rack_open();
	under_traffic(6);
}

RACK_TEST(leaf_spine__routers_for_a_while)
{
	rack.lab.spec.hosts = HOSTS;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.tweak = patient;
	rack_open();
	under_traffic(4);
}

static void number_nodes(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	patient(cfg, n);
	cfg->dead_after_us = 1200000; /* a host that has no CPU for a second is not announced */
	cfg->node_id = (uint32_t)(n - rack.lab.nodes) + 1;
}

RACK_TEST(rack__with_a_controller)
{
	ctl_start(20000);
	rack.lab.spec.hosts = HOSTS;
	rack.tweak = number_nodes;
	rack_open();
	if (!tr_until(all_ok, WAIT_MS))
		FAIL("not all nodes are there: %s", ask());
	under_traffic(4);
}

static void namespace_of(unsigned int node, char path[64])
{
	snprintf(path, 64, "/proc/self/fd/%d", rack.lab.nodes[node].netns);
}

/* Runs the command in the namespace of @node. */
static int detach_command(unsigned int node, const char *role, const char *option)
{
	char barline[512];
	const char *const argv[] = { barline, "-j", role, "detach", option, NULL };
	int home = rack_away(node), rc;
	json_t *said;

	CHECK(barline_path(barline, sizeof(barline)), "where is barline?");
	rc = barline_run(&said, argv);
	json_decref(said);
	rack_back(home);
	return rc;
}

/* The switch is observed for three times as long: a sender does not pause for that. */
static void long_look(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 1000000;
}

static bool both_talk(void)
{
	return TR_LOAD(tr_sh->node[0].received) > 20 && TR_LOAD(tr_sh->node[1].received) > 20;
}

/* A detach that would break something is refused with the reason, and changes nothing. */
RACK_TEST(refused__with_traffic_or_endpoints)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .len = 100,
			      .gap_us = 2000,
			      .quiet_ms = 3000,
			      .to = 3,
			      .ring_bytes = TR_RING_TIGHT(4) };
	char tor[64], h1[64], h3[64];
	struct bl_err err = { 0 };
	uint64_t end;

	rack.lab.spec.hosts = 3;
	rack.tweak = long_look;
	rack_open();
	namespace_of(0, tor);
	namespace_of(rack_host(0), h1);
	namespace_of(rack_host(2), h3);
	/* Beacons are no traffic, and a host without endpoints loses nothing. */
	CHECK(!bl_node_busy(BL_ROLE_SWITCH, tor, &err), "%s", err.text);
	CHECK(!bl_node_busy(BL_ROLE_HOST, h1, &err), "%s", err.text);
	for (cfg.host = 0; cfg.host < 2; cfg.host++)
		tr_add(&cfg);
	tr_go();
	CHECK(tr_until(both_talk, WAIT_MS), "no traffic");
	CHECK(bl_node_busy(BL_ROLE_SWITCH, tor, &err) == -EBUSY, "not refused");
	CHECK(strstr(err.text, " h1, h2 ") && strstr(err.text, "--force"), "%s", err.text);
	CHECK(bl_node_busy(BL_ROLE_HOST, h1, &err) == -EBUSY, "not refused");
	CHECK(strstr(err.text, "61696 (") && strstr(err.text, "--force"), "%s", err.text);
	CHECK(!bl_node_busy(BL_ROLE_HOST, h3, &err), "%s", err.text);
	/* the command, without the daemon */
	rack_close_node(0);
	CHECK(detach_command(0, "switch", NULL) == 1, "detached under traffic");
	rack_open_node(0);
	CHECK(rack_count(0, BL_R_FORWARDED) > 0, "the switch began anew: its maps were removed");
	tr_enough();
	tr_wait_done(WAIT_MS);
	/* Their last messages, such as credits, may still be on their way. */
	for (end = t_mono() + WAIT_MS * 1000000ULL; bl_node_busy(BL_ROLE_SWITCH, tor, &err);)
		CHECK(t_mono() < end, "refused without traffic: %s", err.text);
	rack_close_node(0);
	CHECK(detach_command(0, "switch", NULL) == 0, "refused without traffic");
	rack_open_node(0);
	/* there still are endpoints */
	rack_close_node(rack_host(0));
	CHECK(detach_command(rack_host(0), "host", NULL) == 1, "detached with an endpoint");
	rack_open_node(rack_host(0));
	tr_stop();
	rack_serve(50);
	CHECK(!bl_node_busy(BL_ROLE_HOST, h1, &err), "%s", err.text);
	rack_close_node(rack_host(0));
	CHECK(detach_command(rack_host(0), "host", NULL) == 0, "refused without endpoints");
}

/*
 * user[0]: the result of a wait for ACKs that would never arrive; user[1]: of bl_recv() without a
 * limit; user[2]: of bl_send_reliable() afterwards
 */
static void wait_for_acks(struct tr *w)
{
	const struct bl_msg m = { .dst = tr_sh->node[2].addr, .data = "x", .len = 1 };
	struct bl_delivery d;

	while (!TR_LOAD(w->me->user[3])) {
		bl_send_reliable(w->ep, &m, 1, 0);
		if (bl_wait(w->ep, BL_WAIT_ACKED, 100) < 0)
			break;
		TR_STORE(w->me->user[4], w->me->user[4] + 1);
	}
	w->me->user[0] = (uint64_t)-bl_wait(w->ep, BL_WAIT_ACKED, -1);
	w->me->user[1] = (uint64_t)-bl_recv_reliable(w->ep, &d, 1, -1);
	w->me->user[2] = (uint64_t)-bl_send_reliable(w->ep, &m, 1, 0);
	snprintf(w->me->error, sizeof(w->me->error), "%s", bl_strerror(w->ep));
	bl_exit(w->ep);
	TR_STORE(w->me->state, TR_GONE);
	_exit(0);
}

/* Sleeps with nothing to arrive. */
static void wait_for_ever(struct tr *w)
{
	struct bl_delivery d;

	w->me->user[1] = (uint64_t)-bl_recv(w->ep, &d, 1, -1);
	bl_exit(w->ep);
	TR_STORE(w->me->state, TR_GONE);
	_exit(0);
}

static bool some_sent(void)
{
	return TR_LOAD(tr_sh->node[0].user[4]) > 3;
}

static bool both_gone(void)
{
	return TR_LOAD(tr_sh->node[0].state) == TR_GONE && TR_LOAD(tr_sh->node[1].state) == TR_GONE;
}

/* Returns whether an interface of @node lets frames to the address of beacons pass its filter. */
static bool hears_beacons(unsigned int node)
{
	int home = rack_away(node), rc = system("ip maddr show | grep -q 01:80:c2:00:00:0e");

	rack_back(home);
	return !rc;
}

RACK_TEST(host__detached_under_endpoints)
{
	struct tr_cfg cfg = { .fn = wait_for_acks, .reliable = true };
	char path[64];
	struct bl_err err;

	rack.lab.spec.hosts = 2;
	rack_open();
	tr_add(&cfg);
	cfg.fn = wait_for_ever;
	cfg.reliable = false;
	tr_add(&cfg);
	cfg.host = 1;
	cfg.fn = tr_sink;
	cfg.reliable = true;
	tr_add(&cfg);
	tr_go();
	CHECK(tr_until(some_sent, WAIT_MS), "nothing was acknowledged");
	CHECK(hears_beacons(rack_host(0)), "a NIC's filter would drop beacons");
	/*
	 * The receiver's host receives nothing: messages sent from now on are never acknowledged.
	 */
	rack_link(0, "h2", false);
	TR_STORE(tr_sh->node[0].user[3], 1);
	tr_pass(300);
	namespace_of(rack_host(0), path);
	rack_close_node(rack_host(0));
	CHECK(!bl_node_detach(BL_ROLE_HOST, path, &err), "%s", err.text);
	CHECK(!hears_beacons(rack_host(0)), "the address of beacons stays in the filter");
	CHECK(tr_until(both_gone, WAIT_MS), "they wait for ever: states %u, %u",
	      tr_sh->node[0].state, tr_sh->node[1].state);
	CHECK(tr_sh->node[0].user[1] == ESTALE && tr_sh->node[0].user[2] == ESTALE,
	      "%" PRIu64 ", %" PRIu64, tr_sh->node[0].user[1], tr_sh->node[0].user[2]);
	CHECK(tr_sh->node[1].user[1] == ESTALE, "%" PRIu64, tr_sh->node[1].user[1]);
	CHECK(strstr(tr_sh->node[0].error, "programs were removed"), "%s", tr_sh->node[0].error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused__with_traffic_or_endpoints),
		cmocka_unit_test(host__detached_under_endpoints),
		cmocka_unit_test(rack__a_bridge_for_a_while),
		cmocka_unit_test(leaf_spine__routers_for_a_while),
		cmocka_unit_test(rack__with_a_controller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
