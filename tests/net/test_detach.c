// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Switches that lose their programs under reliable traffic, and get them back with registers that know nothing: `barline switch detach`, a machine that reboots into a plain bridge or router.
 *
 * Nobody fails, so every scattering must be delivered by all of its receivers, or by none and its sender is told; and within GOES_ON_MS of the return of the last program everybody delivers again.
 */
#include "reliable.h"

#include "controller.h"

#define HOSTS	   4
#define GOES_ON_MS 30000 /* promised is start_wait (1 s, or ten times dead_after, here 3 s) and a retransmission; the rest is for a machine that stands still */

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

/* What happens to a switch, or to the daemons, @rounds times; each time everybody goes on. */
static void rounds_of(unsigned int rounds, unsigned int switches)
{
	unsigned int i, k;

	for (k = 0; k < rounds; k++) {
		uint64_t gone = 1 + t_below(&seed, (1u << switches) - 1);
		unsigned int away_ms = t_below(&seed, 3) ? 20 + t_below(&seed, 200) : 600 + t_below(&seed, 900);

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
		fprintf(stderr, "  round %u: switches %" PRIx64 " away for %u ms\n", k, gone, away_ms);
		all_go_on("after the switches are back");
	}
}

static void under_traffic(unsigned int rounds)
{
	struct tr_cfg cfg = { .fn = tr_mix, .until_enough = true, .reliable = true, .len = 300, .fan = 3, .gap_us = 1500, .items = 2, .ring_bytes = TR_RING_TIGHT(HOSTS) };
	unsigned int i;

	for (i = 0; i < HOSTS; i++) {
		cfg.host = i;
		tr_add(&cfg);
	}
	seed = tr_sh->seed;
	tr_go();
	all_go_on("at the beginning");
	rounds_of(rounds, rack.host0);
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	/* "unreachable" is all that may be missing: an OPEN that was not answered, before anything left */
	tr_judge_all(~0ULL, ~0ULL, true);
	for (i = 0; i < HOSTS; i++)
		all_or_none(i, ~0ULL);
	fprintf(stderr, "  %" PRIu64 " frames were refused because their barriers were another node's, %" PRIu64 " came late\n", rack_count_all(BL_R_UNSWITCHED), rack_count_all(BL_R_PREP_LATE));
}

RACK_TEST(rack__a_bridge_for_a_while)
{
	rack.lab.spec.hosts = HOSTS;
	rack_open();
	under_traffic(6);
}

RACK_TEST(leaf_spine__routers_for_a_while)
{
	rack.lab.spec.hosts = HOSTS;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack_open();
	under_traffic(6);
}

static void number_nodes(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	name_controller(cfg, n);
	cfg->node_id = (uint32_t)(n - rack.lab.nodes) + 1;
}

RACK_TEST(rack__with_a_controller)
{
	ctl_start(20000);
	rack.lab.spec.hosts = HOSTS;
	rack.tweak = number_nodes;
	rack_open();
	if (!tr_until(all_ok, 60000))
		FAIL("not all nodes are there: %s", ask());
	under_traffic(4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__a_bridge_for_a_while),
		cmocka_unit_test(leaf_spine__routers_for_a_while),
		cmocka_unit_test(rack__with_a_controller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
