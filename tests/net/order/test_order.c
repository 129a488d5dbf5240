// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Total order among 2, 8 and 16 endpoints, on one switch (L2) and on a leaf-spine fabric (L3,
 * ECMP). Nothing may be lost: windows are so small that no queue can overflow, and no host is
 * excluded.
 *
 * Each case is one rack on which several runs follow one another, because building a rack takes
 * longer than a run.
 */
#include "tests/net/traffic.h"

/*
 * No host is excluded, not even one that has no CPU for a while. To be called before rack_open().
 */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 5000000;
}

/* Runs @endpoints endpoints on @hosts hosts that send to each other. */
static void talk(const char *what, unsigned int endpoints, unsigned int hosts, struct tr_cfg cfg)
{
	cfg.ring_bytes = TR_RING_TIGHT(endpoints);
	tr_talk(what, endpoints, hosts, cfg);
	CHECK(TR_SUM(late_dropped) == 0, "%" PRIu64 " messages came late", TR_SUM(late_dropped));
	CHECK(TR_SUM(duplicates) == 0, "duplicates");
	CHECK(rack_count_all(BL_R_PROMISE_BROKEN) == 0, "a FIFO is broken");
	CHECK(rack_count_all(BL_R_WRONG_CPU) == 0, "frames on the wrong CPU");
	CHECK(rack_count_all(BL_R_EXCLUDED) == 0, "somebody was taken for dead");
	tr_reset();
}

RACK_TEST(one_switch)
{
	rack.lab.spec.hosts = 8;
	rack.tweak = patient;
	rack_open();
	talk("2 endpoints, all to all", 2, 2,
	     (struct tr_cfg){ .scatterings = 5000, .len = 200, .items = 2 });
	talk("8 endpoints, all to all", 8, 8, (struct tr_cfg){ .scatterings = 1500, .len = 200 });
	talk("8 endpoints, random subsets", 8, 8,
	     (struct tr_cfg){
		     .scatterings = 2000, .len = 1400, .fan = 5, .items = 4, .more = 100 });
	talk("16 endpoints on 4 hosts", 16, 4,
	     (struct tr_cfg){ .scatterings = 500, .len = 300, .fan = 16, .items = 2, .more = 64 });
	talk("16 endpoints on 8 hosts, all to all", 16, 8,
	     (struct tr_cfg){ .scatterings = 500, .len = 100 });
	talk("8 endpoints on one host", 8, 1,
	     (struct tr_cfg){ .scatterings = 500, .len = 1400, .fan = 4, .items = 2, .more = 64 });
	talk("sizes up to 1 MiB", 6, 4,
	     (struct tr_cfg){
		     .scatterings = 60, .len = 1450, .fan = 3, .items = 3, .more = 64, .big = 40 });
	talk("slowly", 4, 4,
	     (struct tr_cfg){ .scatterings = 500, .len = 100, .fan = 3, .gap_us = 1000 });
	talk("IPv6", 8, 4,
	     (struct tr_cfg){ .scatterings = 800,
			      .len = 1400,
			      .fan = 5,
			      .items = 2,
			      .more = 64,
			      .family = AF_INET6 });
}

RACK_TEST(leaf_spine)
{
	rack.lab.spec.hosts = 8;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.tweak = patient;
	rack_open();
	talk("2 endpoints, all to all", 2, 8,
	     (struct tr_cfg){ .scatterings = 3000, .len = 200, .items = 2 });
	talk("8 endpoints, all to all", 8, 8, (struct tr_cfg){ .scatterings = 800, .len = 200 });
	talk("8 endpoints, random subsets", 8, 8,
	     (struct tr_cfg){
		     .scatterings = 1500, .len = 1400, .fan = 5, .items = 3, .more = 100 });
	talk("16 endpoints, all to all", 16, 8,
	     (struct tr_cfg){ .scatterings = 300, .len = 300, .items = 2 });
	talk("sizes up to 1 MiB", 6, 6,
	     (struct tr_cfg){
		     .scatterings = 40, .len = 1450, .fan = 3, .items = 3, .more = 64, .big = 40 });
	talk("IPv6", 8, 8,
	     (struct tr_cfg){
		     .scatterings = 500, .len = 1400, .fan = 3, .big = 3, .family = AF_INET6 });
}

/*
 * Links of a switch were down, one after the other. Linux has removed the routes over them; add
 * them again.
 */
static void routes_again(enum lab_kind kind)
{
	const struct lab_node *n;
	unsigned int node, i;
	int home;

	for (node = 0; node < rack.lab.nnodes && rack.lab.nodes[node].kind != kind; node++)
		;
	CHECK(node < rack.lab.nnodes, "no such switch in this lab");
	n = &rack.lab.nodes[node];
	for (i = 0; i < n->nports; i++) {
		rack_link(node, n->ports[i].ifname, false);
		rack_link(node, n->ports[i].ifname, true);
		home = rack_away(node);
		CHECK(!lab_routes(&rack.lab, &rack.lab.nodes[node]),
		      "%s does not get its routes over %s again", n->name, n->ports[i].ifname);
		rack_back(home);
	}
}

/* 4 ToRs, 4 spines and 2 cores: a barrier passes five switches. */
RACK_TEST(three_tiers)
{
	rack.lab.spec.hosts = 8;
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.lab.spec.cores = 2;
	rack.tweak = patient;
	rack_open();
	talk("2 endpoints, all to all", 2, 8,
	     (struct tr_cfg){ .scatterings = 1500, .len = 200, .items = 2 });
	talk("8 endpoints, random subsets", 8, 8,
	     (struct tr_cfg){ .scatterings = 800, .len = 1400, .fan = 5, .items = 3, .more = 100 });
	talk("IPv6", 8, 8,
	     (struct tr_cfg){ .scatterings = 300, .len = 1400, .fan = 3, .family = AF_INET6 });
	routes_again(LAB_SPINE);
	routes_again(LAB_TOR);
	routes_again(LAB_CORE);
}

/* Two ToRs, linked up to up: what one of them promised to its hosts, the other one waits for. */
RACK_TEST(dumbbell)
{
	rack.lab.spec.hosts = 6;
	rack.lab.spec.leaf_spine = rack.lab.spec.dumbbell = rack.lab.spec.l3 = true;
	rack.tweak = patient;
	rack_open();
	talk("2 endpoints, all to all", 2, 6,
	     (struct tr_cfg){ .scatterings = 2000, .len = 200, .items = 2 });
	talk("6 endpoints, random subsets", 6, 6,
	     (struct tr_cfg){
		     .scatterings = 1000, .len = 1400, .fan = 4, .items = 3, .more = 100 });
	talk("IPv6", 6, 6,
	     (struct tr_cfg){ .scatterings = 300, .len = 1400, .fan = 3, .family = AF_INET6 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_switch),
		cmocka_unit_test(leaf_spine),
		cmocka_unit_test(three_tiers),
		cmocka_unit_test(dumbbell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
