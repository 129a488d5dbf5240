// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lossy links: a message may be lost, and then its sender is told; the order always holds.
 *
 * A tc program on the hosts' NICs, before barline's own, drops frames at random: messages, parts of
 * large ones, credits, probes, beacons. It lets NAKs pass: a lost report is not repeated, and one
 * frame may have carried most of the reports, so the number of reported losses would be a matter of
 * luck. With all reports there, all losses are reported.
 */
#include "tests/net/lossy.h"

/* Counts the missing messages and the reported ones. */
static void account(void)
{
	uint64_t sent = 0, got = 0, told = 0;
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++) {
		sent += tr_sh->node[i].expected;
		got += tr_sh->node[i].received;
		told += tr_sh->node[i].nfailed;
	}
	fprintf(stderr, "  %" PRIu64 " messages, %" PRIu64 " not delivered, %" PRIu64 " reported\n",
		sent, sent - got, told);
	CHECK(lossy_but_naks_say(), "no frame was dropped");
	CHECK(sent > got, "nothing was lost: this proves nothing");
	/*
	 * There are more reports if a sender gave a receiver up whose credits were lost eight times
	 * in a row.
	 */
	CHECK(told >= sent - got, "a loss was not reported");
}

#define DEAD_MS 5000

/* A host that has no CPU for a while is not excluded. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = DEAD_MS * 1000;
}

static void run(unsigned int hosts, uint32_t per_65536, struct tr_cfg cfg)
{
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack.tweak = patient;
	rack_open();
	for (i = 0; i < hosts; i++) {
		cfg.host = i;
		cfg.fn = tr_mix;
		/* Such a host holds the deliveries of all: nobody ends before it is back. */
		cfg.quiet_ms = DEAD_MS + 1000;
		cfg.ring_bytes = TR_RING_TIGHT(hosts);
		tr_add(&cfg);
	}
	rack_settle();
	for (i = 0; i < hosts; i++)
		make_lossy_but_naks(i, per_65536, tr_sh->seed + i);
	tr_go();
	tr_wait_done(80000);
	tr_stop();
	tr_judge(0, 0);
	account();
	/* Lost frames do not break FIFO: nothing may be late, and nobody may be excluded. */
	CHECK(TR_SUM(late_dropped) == 0, "late");
	CHECK(TR_SUM(duplicates) == 0, "duplicates");
	CHECK(rack_count_all(BL_R_PROMISE_BROKEN) == 0, "a FIFO is broken");
}

RACK_TEST(rack__1_percent)
{
	run(4, 655, (struct tr_cfg){ .scatterings = 400, .len = 1400, .fan = 4, .more = 80 });
}

RACK_TEST(rack__20_percent)
{
	run(3, 13107, (struct tr_cfg){ .scatterings = 60, .len = 300, .fan = 3 });
}

RACK_TEST(rack__large_messages)
{
	run(3, 650, (struct tr_cfg){ .scatterings = 60, .len = 1400, .fan = 2, .big = 60 });
}

RACK_TEST(leaf_spine__10_percent)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	run(4, 6554, (struct tr_cfg){ .scatterings = 150, .len = 300, .fan = 4 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__1_percent),
		cmocka_unit_test(rack__20_percent),
		cmocka_unit_test(rack__large_messages),
		cmocka_unit_test(leaf_spine__10_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
