// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Messages below the barrier of their host.
 *
 * The meaning of promise_broken on plain links while a host's daemon is away. The host sends no
 * beacons, so it is excluded between two of its messages, and at its next message the others have
 * moved on. Silent hosts promise ahead of their clocks, so a message with the clock's time is below
 * what its receivers were given. It is counted there, and judged by what the receivers have
 * delivered: above that it is delivered, in order; else it is dropped and reported.
 */
#include "tests/net/traffic.h"

#define DEAD_US 20000

static void impatient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = DEAD_US;
}

static uint64_t broken(void)
{
	return rack_count(rack_host(0), BL_R_PROMISE_BROKEN) +
	       rack_count(rack_host(1), BL_R_PROMISE_BROKEN) +
	       rack_count(rack_host(2), BL_R_PROMISE_BROKEN);
}

/* Returns whether hosts 1 and 2, which are silent, have promised ahead of their clocks. */
static bool others_promised(void)
{
	return rack_promises_ahead(1) && rack_promises_ahead(2);
}

static uint64_t before;

static bool some_broken(void)
{
	return broken() > before + 3;
}

RACK_TEST(daemon_away__messages_below_the_barrier)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .len = 100,
			      .gap_us = 4 * DEAD_US,
			      .quiet_ms = 3000,
			      .ring_bytes = TR_RING_TIGHT(4) };
	uint64_t excluded;

	rack.lab.spec.hosts = 3;
	rack.tweak = impatient;
	rack_open();
	cfg.to = 6;
	tr_add(&cfg);
	cfg.fn = tr_sink;
	for (cfg.host = 1; cfg.host < 3; cfg.host++)
		tr_add(&cfg);
	tr_go();
	CHECK(tr_until(others_promised, 60000), "the others are not silent");
	before = broken();
	excluded = rack_count(0, BL_R_EXCLUDED);
	rack_close_node(rack_host(0));
	CHECK(tr_until(some_broken, 60000), "nobody was excluded, or nobody had promised ahead: "
					    "nothing was tested");
	fprintf(stderr,
		"  %" PRIu64 " messages below the barrier, %" PRIu64
		" exclusions; before that %" PRIu64 " and %" PRIu64 "\n",
		broken() - before, rack_count(0, BL_R_EXCLUDED) - excluded, before, excluded);
	CHECK(rack_count(0, BL_R_EXCLUDED) > excluded, "it was not excluded");
	rack_open_node(rack_host(0));
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	/* There must be one order; late messages were dropped and reported. */
	tr_judge(0, 0);
}

/* Runs a command in the namespace of a host, for which eth0 is its NIC. */
static void at_host(unsigned int i, const char *cmd)
{
	int home = rack_away(rack_host(i));

	CHECK(!system(cmd), "%s", cmd);
	rack_back(home);
}

static bool sent_late(void)
{
	return rack_count(rack_host(0), BL_R_SEND_LATE) > 0;
}

/*
 * Messages that the kernel of their host keeps until it knows the address of a neighbour are
 * dropped there: the barrier has passed them, and no link is accused of being no FIFO.
 */
RACK_TEST(neighbour__found_late)
{
	struct tr_cfg cfg = { .fn = tr_mix,
			      .until_enough = true,
			      .len = 100,
			      .gap_us = 1000,
			      .fan = 2,
			      .quiet_ms = 3000,
			      .ring_bytes = TR_RING_TIGHT(4) };
	const uint8_t *m;
	char find[128];
	uint64_t b;

	rack.lab.spec.hosts = 3;
	rack_open();
	for (cfg.host = 0; cfg.host < 3; cfg.host++)
		tr_add(&cfg);
	tr_go();
	tr_goes_on(0, "at the start");
	CHECK(!sent_late(), "a message was late before anything happened");
	b = broken();
	/* h2 answers no ARP, and the kernel of h1 goes on asking */
	at_host(1, "echo 8 >/proc/sys/net/ipv4/conf/eth0/arp_ignore");
	at_host(0, "echo 1000 >/proc/sys/net/ipv4/neigh/eth0/mcast_solicit && "
		   "ip neigh del 10.77.1.2 dev eth0");
	rack_serve(300);
	m = rack.lab.nodes[rack_host(1)].ports[0].mac;
	snprintf(find, sizeof(find),
		 "ip neigh replace 10.77.1.2 lladdr %02x:%02x:%02x:%02x:%02x:%02x dev eth0", m[0],
		 m[1], m[2], m[3], m[4], m[5]);
	at_host(0, find);
	CHECK(tr_until(sent_late, 60000), "no message waited for the neighbour");
	tr_goes_on(1, "after it was found");
	tr_goes_on(2, "after it was found");
	fprintf(stderr, "  %" PRIu64 " messages late\n", rack_count(rack_host(0), BL_R_SEND_LATE));
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	CHECK(broken() == b && !rack_count(0, BL_R_PROMISE_BROKEN),
	      "a promise was broken: %" PRIu64 " at hosts, %" PRIu64 " at the switch", broken() - b,
	      rack_count(0, BL_R_PROMISE_BROKEN));
	tr_judge(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(daemon_away__messages_below_the_barrier),
		cmocka_unit_test(neighbour__found_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
