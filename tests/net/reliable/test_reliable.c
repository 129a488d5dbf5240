// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reliable scatterings on racks that lose frames: whatever is lost, every message is delivered
 * once, in one order, at all its receivers. Frames of all kinds are dropped before the hosts' XDP
 * programs: PREPs, acknowledgements, windows, beacons.
 */
#include "maps/failure_abi.h"
#include "tests/net/reliable/reliable.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_pages.h"

/* Checks that everything that was sent arrived at everyone, in one order. */
static void judge(void)
{
	uint64_t lost = 0;
	uint32_t i;

	tr_judge(~0ULL, ~0ULL);
	for (i = 0; i < tr_sh->count; i++)
		lost += tr_sh->node[i].nfailed;
	fprintf(stderr, "  sent again %" PRIu64 ", duplicates %" PRIu64 "\n", TR_SUM(retransmits),
		TR_SUM(duplicates));
	CHECK(!lost, "%" PRIu64 " messages were reported as failed", lost);
	CHECK(!TR_SUM(late_dropped), "late");
	CHECK(!TR_SUM(malformed), "malformed");
}

/* A host that has no CPU is not excluded: what it had sent would be late. */
static void patient(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	cfg->dead_after_us = 5000000;
}

/*
 * Starts @endpoints endpoints, in turn on @hosts hosts that lose frames, and waits until they send.
 */
static void begin(unsigned int hosts, unsigned int endpoints, uint32_t per_65536, struct tr_cfg cfg)
{
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack.tweak = patient;
	rack_open();
	cfg.fn = tr_mix;
	cfg.reliable = true;
	for (i = 0; i < endpoints; i++) {
		cfg.host = i % hosts;
		tr_add(&cfg);
	}
	rack_settle();
	for (i = 0; per_65536 && i < hosts; i++)
		make_lossy(i, per_65536, tr_sh->seed + i);
	tr_go();
}

static void run(unsigned int hosts, uint32_t per_65536, struct tr_cfg cfg)
{
	begin(hosts, hosts, per_65536, cfg);
	tr_wait_done(100000);
	tr_stop();
	judge();
}

RACK_TEST(rack__no_loss)
{
	run(4, 0,
	    (struct tr_cfg){ .scatterings = 1000, .len = 1400, .fan = 4, .items = 3, .more = 80 });
	CHECK(rack_count_all(BL_R_PREPARED) && rack_count_all(BL_R_ACKED) &&
		      rack_count_all(BL_R_COMMITTED),
	      "nothing was committed");
}

RACK_TEST(rack__1_percent)
{
	run(4, 655,
	    (struct tr_cfg){ .scatterings = 400, .len = 1400, .fan = 4, .items = 2, .more = 80 });
	CHECK(TR_SUM(retransmits) > 0, "nothing was lost: this proves nothing");
}

RACK_TEST(rack__20_percent)
{
	run(3, 13107, (struct tr_cfg){ .scatterings = 80, .len = 300, .fan = 3 });
}

RACK_TEST(rack__large_messages)
{
	run(3, 650, (struct tr_cfg){ .scatterings = 40, .len = 1400, .fan = 2, .big = 60 });
}

RACK_TEST(leaf_spine__10_percent)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	run(4, 6554, (struct tr_cfg){ .scatterings = 150, .len = 300, .fan = 4 });
}

/*
 * Four ToRs, four spines, two cores: reliable scatterings between the pods, through three tiers of
 * switches.
 */
RACK_TEST(three_tiers__1_percent)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.lab.spec.cores = 2;
	run(4, 655, (struct tr_cfg){ .scatterings = 200, .len = 300, .fan = 4 });
	CHECK(TR_SUM(retransmits) > 0, "nothing was lost: this proves nothing");
}

/*
 * Both streams on the same links, and endpoints of one host among themselves: each stream keeps its
 * own promise. Best effort loses what is lost, and its order is one; the reliable stream loses
 * nothing.
 */
RACK_TEST(mixed__1_percent)
{
	const uint64_t reliable = 0xf0;
	struct tr_cfg cfg = { .fn = tr_mix,
			      .scatterings = 300,
			      .len = 1400,
			      .fan = 4,
			      .items = 2,
			      .more = 40,
			      .quiet_ms = 4000 };
	uint64_t missing = 0;
	unsigned int i;

	rack.lab.spec.hosts = 3;
	rack.tweak = patient;
	rack_open();
	for (i = 0; i < 8; i++) {
		cfg.host = i % 3;
		cfg.reliable = i >= 4;
		cfg.to = cfg.reliable ? reliable : 0xf;
		/* Short items are identified by the one before them, which must not be lost. */
		cfg.items = cfg.reliable ? 2 : 1;
		tr_add(&cfg);
	}
	rack_settle();
	for (i = 0; i < 3; i++)
		make_lossy(i, 655, tr_sh->seed + i);
	tr_go();
	tr_wait_done(100000);
	tr_stop();
	tr_judge(reliable, reliable);
	for (i = 0; i < 4; i++)
		missing += tr_sh->node[i].expected - tr_sh->node[i].received;
	fprintf(stderr,
		"  best effort: %" PRIu64 " messages lost; reliable: sent again %" PRIu64 "\n",
		missing, TR_SUM(retransmits));
	CHECK(missing && TR_SUM(retransmits), "nothing was lost: this proves nothing");
	for (i = 4; i < 8; i++)
		CHECK(!tr_sh->node[i].nfailed, "a reliable message failed");
}

static void h4_is_behind(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->dead_after_us = 1000000; /* time for which the others wait for h4 before it is there */
	cfg->clock_bound_us = 400000;
	if (n->kind == LAB_HOST && n->index == 4)
		cfg->skew_ns = -200000000;
}

static uint32_t want;

static bool all_have(void)
{
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++)
		if (tr_sh->node[i].pid &&
		    TR_LOAD(tr_sh->node[i].ngot) < tr_sh->node[i].user[0] + want)
			return false;
	return true;
}

/* Waits until each live endpoint has got @more messages. */
static void until_all_have(uint32_t more)
{
	uint32_t i;

	want = more;
	for (i = 0; i < tr_sh->count; i++)
		tr_sh->node[i].user[0] = TR_LOAD(tr_sh->node[i].ngot);
	CHECK(tr_until(all_have, 60000), "not everybody gets %u messages", more);
}

static bool newcomer_has_sent(void)
{
	return TR_LOAD(tr_sh->node[3].nsent) >= 20;
}

/* A host starts when the others' barriers are ahead of its clock, and sends at once. */
RACK_TEST(host__joins_behind)
{
	unsigned int i;

	rack.lab.spec.hosts = 4;
	rack.tweak = h4_is_behind;
	rack.closed = 1ULL << 4; /* s1 h1 h2 h3 h4 */
	rack_open();
	CHECK(rack_host(3) == 4, "the lab's nodes are in another order");
	for (i = 0; i < 3; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .reliable = true,
					 .until_enough = true,
					 .len = 300,
					 .fan = 4,
					 .gap_us = 2000 });
	tr_go();
	until_all_have(30);
	rack_open_node(4);
	tr_add(&(struct tr_cfg){ .host = 3,
				 .fn = tr_mix,
				 .reliable = true,
				 .scatterings = 200,
				 .len = 300,
				 .fan = 4 });
	CHECK(tr_until(newcomer_has_sent, 60000), "whoever is behind does not get to send");
	until_all_have(30);
	tr_enough();
	tr_wait_done(100000);
	tr_stop();
	judge();
}

/* ---- failures; the test acts as the controller ---- */

/* Returns what the rack's switch heard last of a host. */
static struct bl_port_regs rack_heard_of(unsigned int host)
{
	struct bl_port_regs regs;
	uint32_t key = host;
	int fd = rack_map(0, BL_MAP_SW_REGS);

	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &key, &regs), "%s", strerror(errno));
	close(fd);
	return regs;
}

static uint64_t rack_commit_of(unsigned int host)
{
	return rack_heard_of(host).lane[0].c;
}

static uint64_t rack_barrier_of(unsigned int host)
{
	return rack_heard_of(host).lane[0].b;
}

/* Returns the bus time of the rack's switch. */
static uint64_t rack_now(void)
{
	struct bl_sw_lane *lane = calloc(1, sizeof(*lane));
	uint32_t zero = 0;
	uint64_t now;
	int fd = rack_map(0, BL_MAP_SW_LANES);

	CHECK(fd >= 0 && lane && !bpf_map_lookup_elem(fd, &zero, lane), "%s", strerror(errno));
	close(fd);
	now = lane->now_ns;
	free(lane);
	return now;
}

/*
 * Waits until the switch has heard something of @host that is newer than this call, so that nothing
 * older is under way.
 */
static void heard_anew(unsigned int host)
{
	uint64_t end = t_mono() + 60000000000ULL, from;

	tr_pass(5);
	for (from = rack_now() + 10000000; rack_barrier_of(host) < from; tr_pass(5))
		CHECK(t_mono() < end, "nothing is heard of h%u", host + 1);
}

/*
 * Announces to all that @id failed at @ts. Returns when all have completed the steps that follow.
 */
static void announce(unsigned int id, uint64_t ts, unsigned int hosts)
{
	struct bl_failure f = { .ts = ts, .port = tr_sh->node[id].addr.port };
	uint64_t start = t_mono();
	unsigned int i;

	memcpy(f.addr, tr_sh->node[id].addr.ip, 16);
	for (i = 0; i < hosts; i++)
		CHECK(!bl_failure_announce(rack.node[rack_host(i)], &f), "h%u", i + 1);
	for (i = 0; i < hosts; i++)
		while (!bl_failure_done(rack.node[rack_host(i)])) {
			tr_pass(1);
			CHECK(t_mono() - start < 60000000000ULL,
			      "h%u does not come to an end with the failure", i + 1);
		}
	fprintf(stderr, "  dealt with after %.1f ms\n", (double)(t_mono() - start) / 1e6);
}

static bool is_killed(void)
{
	return !tr_sh->node[3].pid;
}

/*
 * A receiver dies: what waits for it is recalled from all others, the sender is told, and
 * everything continues.
 */
RACK_TEST(receiver__killed)
{
	unsigned int i, k, none = 0;
	uint64_t failed = 0;

	/* endpoints 0 and 4 are on one host */
	begin(4, 5, 200,
	      (struct tr_cfg){ .until_enough = true,
			       .len = 300,
			       .fan = 4,
			       .gap_us = 300,
			       .quiet_ms = 2000 });
	until_all_have(300);
	tr_kill(3);
	CHECK(tr_until(is_killed, 60000), "it does not die");
	heard_anew(3);
	/*
	 * Its own last scatterings may hold the commit barrier, too. What the switch heard last of
	 * its host is what was committed.
	 */
	announce(3, rack_commit_of(3), 4);
	bl_endpoint_resume(rack.node[rack_host(3)], tr_sh->node[3].addr.port);
	until_all_have(300);
	tr_enough();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 5; i++) {
		none += all_or_none(i, 0x17);
		if (i == 3)
			continue;
		failed += tr_sh->node[i].fails[BL_FAIL_FAILED];
		CHECK(tr_sh->node[i].nproc_failed == 1, "endpoint %u heard of %u failures", i,
		      tr_sh->node[i].nproc_failed);
		/* Messages that did not fail arrived, if their sender lives. */
		for (k = 0; k < tr_sh->node[i].nsent; k++)
			if ((tr_sh->node[i].sent[k].to & 0x17) &&
			    !has((unsigned int)__builtin_ctzll(tr_sh->node[i].sent[k].to & 0x17), i,
				 k)) {
				uint32_t f;

				for (f = 0; f < tr_sh->node[i].nfailed &&
					    tr_sh->node[i].failed[f].seq != k;
				     f++)
					;
				CHECK(f < tr_sh->node[i].nfailed,
				      "(%u,%u) was neither delivered nor reported", i, k);
			}
	}
	fprintf(stderr,
		"  %u scatterings delivered by nobody, %" PRIu64
		" messages reported as failed, %" PRIu64 " recalled, %" PRIu64 " discarded\n",
		none, failed, TR_SUM(recalled), TR_SUM(discarded));
	CHECK(failed, "nobody waited for the dead: this proves nothing");
}

/* Returns the number of frames in the window of a host's first endpoint. */
static uint32_t window_used(unsigned int host)
{
	struct bl_inflight line = rack_line(rack_host(host), 0);

	return (uint32_t)(line.state >> 32) - (uint32_t)line.state;
}

/*
 * Stops @id at a moment when one of its frames is lost: what is still open when all ACKs on their
 * way have arrived stays open.
 */
static void stop_with_window_open(unsigned int id)
{
	unsigned int i;

	for (i = 0; i < 300; i++) {
		kill(tr_sh->node[id].pid, SIGSTOP);
		tr_pass(50);
		if (window_used(tr_sh->node[id].cfg.host))
			return;
		kill(tr_sh->node[id].pid, SIGCONT);
		tr_pass(2);
	}
	CHECK(0, "its window is always empty");
}

/* Returns whether the receivers, which endpoint 0 is not one of, all send. */
static bool all_talk(void)
{
	unsigned int i;

	for (i = 1; i < 4; i++)
		if (TR_LOAD(tr_sh->node[i].ngot) < 30)
			return false;
	return true;
}

/*
 * A sender dies with its window open: nobody delivers beyond what it had committed until all have
 * discarded the rest.
 */
RACK_TEST(sender__killed)
{
	uint64_t t;

	begin(4, 4, 13107,
	      (struct tr_cfg){ .until_enough = true,
			       .len = 300,
			       .fan = 4,
			       .to = 0xe,
			       .quiet_ms = 2000,
			       .more = 60 });
	CHECK(tr_until(all_talk, 60000), "not everybody gets messages");
	stop_with_window_open(0);
	tr_kill(0);
	heard_anew(0);
	t = rack_commit_of(0);
	announce(0, t, 4);
	CHECK(!bl_endpoint_resume(rack.node[rack_host(0)], tr_sh->node[0].addr.port), "it had "
										      "nothing "
										      "open: this "
										      "proves "
										      "nothing");
	tr_enough();
	tr_wait_done(60000);
	judge_without(0, 0xe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__no_loss),          cmocka_unit_test(rack__1_percent),
		cmocka_unit_test(rack__20_percent),       cmocka_unit_test(rack__large_messages),
		cmocka_unit_test(leaf_spine__10_percent), cmocka_unit_test(three_tiers__1_percent),
		cmocka_unit_test(host__joins_behind),     cmocka_unit_test(mixed__1_percent),
		cmocka_unit_test(receiver__killed),       cmocka_unit_test(sender__killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
