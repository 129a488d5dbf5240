// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Failures from end to end: a rack whose nodes have their agents (loader/node_agent.h), one controller on SQLite in a process of its own, and endpoints that send reliably. What dies is killed or cut, nobody tells anybody, and
 * the others go on: what is sent is delivered by all that are correct or by none, in one order.
 *
 * No time is asserted; a machine that stands still must not fail a node, so that the controller waits long for answers.
 */
#include "reliable.h"

#include "controller.h"
#include "loader/agent.h"
#include "loader/order.h"

#define WAIT_MS	  60000
#define ANSWER_MS 20000

static void say_all(void)
{
	fprintf(stderr, "%s\n", ask());
	tr_dump();
}

static void open_rack(unsigned int hosts)
{
	ctl_start(ANSWER_MS);
	rack.lab.spec.hosts = hosts;
	rack.tweak = name_controller;
	rack_open();
	if (!tr_until(all_ok, WAIT_MS))
		FAIL("not all nodes are there: %s", ask());
}

static unsigned int heard;
static uint64_t listeners;

/* each of @listeners has heard of as many failures */
static bool all_heard(void)
{
	uint32_t i;

	for (i = 0; i < tr_sh->count; i++)
		if ((listeners >> i & 1) && TR_LOAD(tr_sh->node[i].nproc_failed) < heard)
			return false;
	return true;
}

/* A process dies in the middle of sending, with acknowledgements missing. The others hear of it, discard what was not committed, and go on. */
RACK_TEST(process__killed)
{
	struct tr_cfg cfg = { .fn = tr_mix, .run_ms = 2500, .gap_us = 300, .len = 300, .fan = 4, .reliable = true, .quiet_ms = 4000, .to = 0xe, .more = 60 };
	unsigned int i, none;

	open_rack(4);
	for (i = 0; i < 4; i++) {
		cfg.host = i;
		tr_add(&cfg);
	}
	rack_last_words = say_all;
	for (i = 0; i < 4; i++)
		make_lossy(i, 6554, tr_sh->seed + i);
	tr_go();
	tr_pass(600);
	tr_kill(0);
	listeners = 0xe;
	heard = 1;
	CHECK(tr_until(all_heard, WAIT_MS), "not everybody heard of it");
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	tr_wait_done(WAIT_MS);
	for (i = 1; i < 4; i++)
		CHECK(tr_sh->node[i].nproc_failed <= BL_AGENT_ADDRS_MAX && tr_sh->node[i].nproc_failed == tr_sh->node[1].nproc_failed, "endpoint %u heard of %u failures, endpoint 1 of %u: one for each address of the host",
		      i, tr_sh->node[i].nproc_failed, tr_sh->node[1].nproc_failed);
	tr_stop();
	tr_judge(0xe, 0xe);
	none = all_or_none(0, 0xe);
	for (i = 1; i < 4; i++)
		all_or_none(i, 0xe);
	fprintf(stderr, "  of the dead %u scatterings were delivered by nobody, %" PRIu64 " frames discarded\n", none, TR_SUM(discarded));
	CHECK(tr_until(all_finished, WAIT_MS), "the endpoints left, and that does not come to its end: %s", ask());
}

/* A host's link is cut: it is announced, what waits for it is taken back, and the rest goes on. The link comes back: the host joins anew, with a new process, which talks with those of before. */
RACK_TEST(link__cut_and_back)
{
	struct tr_cfg cfg = { .fn = tr_mix, .run_ms = 3000, .len = 300, .fan = 4, .gap_us = 300, .reliable = true, .quiet_ms = 4000 };
	struct bl_order_port in[8];
	unsigned int i, before, failed = 0;
	int n;

	open_rack(4);
	for (i = 0; i < 4; i++) {
		cfg.host = i;
		tr_add(&cfg);
	}
	rack_last_words = say_all;
	tr_go();
	tr_pass(500);
	tr_sh->node[3].may_die = true; /* it is told that it is an outcast, and ends */
	rack_link(0, "h4", false);
	listeners = 0x7;
	heard = 1;
	CHECK(tr_until(all_heard, WAIT_MS), "not everybody heard of it");
	CHECK(tr_until(one_finished, WAIT_MS), "the failure does not come to its end: %s", ask());
	n = bl_order_look(rack.node[0], in, 8);
	for (i = 0; (int)i < n; i++)
		CHECK(!in[i].held && in[i].in == (in[i].port != 3), "port %u: held %d, in %d", in[i].port, in[i].held, in[i].in);
	before = tr_sh->node[0].ngot;
	tr_pass(200);
	CHECK(TR_LOAD(tr_sh->node[0].ngot) > before || tr_all_done(), "C does not go on");
	rack_link(0, "h4", true);
	CHECK(tr_until(all_ok, WAIT_MS), "h4 does not join anew: %s", ask());
	cfg.host = 3;
	cfg.run_ms = 500;
	tr_add(&cfg);
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(0, 0);
	for (i = 0; i < 5; i++) {
		all_or_none(i, 0x17);
		if (i != 3)
			failed += (unsigned int)tr_sh->node[i].fails[BL_FAIL_FAILED];
	}
	CHECK(tr_sh->node[4].ngot, "the new endpoint on h4 got nothing");
	fprintf(stderr, "  %u messages reported as failed, %" PRIu64 " recalled\n", failed, TR_SUM(recalled));
}

static uint64_t old;

static bool another_refused(void)
{
	return rack_count(0, BL_R_EPOCH_OLD) > old;
}

/* Orders of an epoch that is older than what a node ever heard change nothing, whichever daemon obeys whom: the kernel refuses them. */
RACK_TEST(epoch__old_is_refused_by_the_kernel)
{
	const uint32_t bar[] = { 1 };
	struct bl_order_port p, in[8];
	struct bl_node *sw;
	uint64_t epoch, refused;
	unsigned int i;
	int n;

	open_rack(3);
	sw = rack.node[0];
	epoch = bl_order_epoch(sw);
	CHECK(epoch, "the switch has heard of no epoch");
	CHECK(!bl_order_raise(sw, epoch + 10), "a higher one is refused");
	refused = rack_count(0, BL_R_EPOCH_OLD);
	CHECK(bl_order_raise(sw, epoch) == -ESTALE, "raise");
	CHECK(bl_order_freeze(sw, epoch + 9, 1, &p) == -ESTALE, "freeze");
	CHECK(bl_order_bar(sw, epoch + 9, bar, 1) == -ESTALE, "bar");
	CHECK(bl_order_resume(sw, epoch + 9, 1, 0) == -ESTALE, "resume");
	CHECK(rack_count(0, BL_R_EPOCH_OLD) >= refused + 4, "%" PRIu64 " refused", rack_count(0, BL_R_EPOCH_OLD) - refused);
	n = bl_order_look(sw, in, 8);
	CHECK(n == 3, "%d inputs", n);
	for (i = 0; i < 3; i++)
		CHECK(in[i].in && !in[i].held && !in[i].barred, "port %u was changed", in[i].port);
	/* and so the controller's: a host's link is cut, and the switch that it wants to bar does not listen to it any more */
	rack_link(0, "h2", false);
	old = refused + 4;
	CHECK(tr_until(another_refused, WAIT_MS), "no order of the controller came, and this proves nothing: %s", ask());
	n = bl_order_look(sw, in, 8);
	CHECK(n == 3 && in[1].held && !in[1].barred, "the order of an old epoch was obeyed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process__killed),
		cmocka_unit_test(link__cut_and_back),
		cmocka_unit_test(epoch__old_is_refused_by_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
