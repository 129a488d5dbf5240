// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The failure procedure (controller/recover/) step by step, in small racks: each command at its
 * place, what is refused, and a new leader between any two steps. Processes are in
 * test_recover_proc.c, random racks in test_recover_random.c.
 */
#include "tests/unit/controller/recover/recover_rack.h"

static void host__dies(void **state)
{
	struct bl_recover *r = rack(3);
	const struct bl_recover_failure *f;

	(void)state;
	assert_int_equal(bl_recover_link_down(r, 10 * MS, 9, 2, 2, 900, 7), BL_RECOVER_OK);
	assert_string_equal(outs(r), "");
	assert_int_equal(bl_recover_due(r), 15 * MS);
	bl_recover_tick(r, 15 * MS - 1);
	assert_string_equal(outs(r), "");
	bl_recover_tick(r, 15 * MS);
	assert_string_equal(outs(r), "bar 9");
	assert_true(bl_recover_node(r, 9)->port[1].barred);
	/* an old version */
	assert_int_equal(bl_recover_barred(r, 16 * MS, 9, 1), BL_RECOVER_REPEATED);
	bl_recover_tick(r, 16 * MS);
	assert_string_equal(outs(r), "");
	assert_int_equal(bl_recover_barred(r, 16 * MS, 9, bl_recover_node(r, 9)->bar),
			 BL_RECOVER_OK);
	bl_recover_tick(r, 16 * MS);
	assert_string_equal(outs(r), "save 1:0");
	/* nothing before the failure is saved */
	bl_recover_tick(r, 900 * MS);
	assert_int_equal(bl_recover_done(r, 900 * MS, 1, 1), BL_RECOVER_UNKNOWN_FAILURE);
	assert_string_equal(outs(r), "");
	f = bl_recover_failure(r, 1);
	assert_int_equal(f->nfailed, 1);
	assert_int_equal(f->failed[0].node, 2);
	assert_int_equal(f->failed[0].proc.t, 900);
	assert_memory_equal(f->failed[0].addr, addr_of[2], 16);
	assert_int_equal(f->epoch, 5);
	bl_recover_saved_failure(r, 901 * MS, 1);
	assert_string_equal(outs(r), "fail 1/1; fail 2/1; fail 3/1");
	assert_int_equal(bl_recover_done(r, 902 * MS, 1, 1), BL_RECOVER_OK);
	assert_int_equal(bl_recover_done(r, 902 * MS, 1, 1), BL_RECOVER_REPEATED);
	assert_int_equal(bl_recover_done(r, 902 * MS, 1, 2), BL_RECOVER_UNKNOWN_FAILURE);
	assert_int_equal(bl_recover_done(r, 902 * MS, 2, 1), BL_RECOVER_FAILED_NODE);
	assert_int_equal(bl_recover_done(r, 902 * MS, 77, 1), BL_RECOVER_UNKNOWN_NODE);
	assert_string_equal(outs(r), "");
	assert_int_equal(bl_recover_done(r, 903 * MS, 3, 1), BL_RECOVER_OK);
	assert_string_equal(outs(r), "save 1:1");
	assert_int_equal(bl_recover_resumed(r, 903 * MS, 9, 1), BL_RECOVER_UNKNOWN_FAILURE);
	bl_recover_saved_failure(r, 904 * MS, 1);
	assert_string_equal(outs(r), "resume 9/1");
	assert_int_equal(f->ninputs, 1);
	assert_int_equal(f->input[0].port, 2);
	assert_int_equal(bl_recover_resumed(r, 905 * MS, 9, 1), BL_RECOVER_OK);
	assert_string_equal(outs(r), "save 1:2");
	bl_recover_saved_failure(r, 906 * MS, 1);
	assert_string_equal(outs(r), "");
	assert_int_equal(f->at_ns, 10 * MS);
	assert_int_equal(f->settled_ns, 16 * MS);
	assert_int_equal(f->announced_ns, 901 * MS);
	assert_int_equal(f->done_ns, 903 * MS);
	assert_int_equal(f->resumed_ns, 905 * MS);
	assert_int_equal(bl_recover_due(r), UINT64_MAX);
	assert_int_equal(bl_recover_node(r, 2)->state, BL_DET_GONE);
	assert_true(bl_recover_node(r, 9)->port[1].barred);
	bl_recover_free(r);
}

/* Switch 8 comes, and switch 9 has the ports @port beside those of its three hosts. */
static void two_switches(struct bl_recover *r, const struct bl_recover_port *port, uint32_t n,
			 struct bl_recover_port *of_8, uint32_t n8)
{
	struct bl_recover_hello h = { .id = 8,
				      .epoch = said_epoch,
				      .kind = BL_DET_SWITCH,
				      .port = of_8,
				      .nports = n8,
				      .name = "other" };

	assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
	bl_recover_saved_node(r, 0, 8);
	h = hello_switch(3);
	memcpy(sw_port + 3, port, n * sizeof(*port));
	h.nports = 3 + n;
	assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
	bl_recover_saved_node(r, 0, 9);
	bl_recover_saved_node(r, 0, 8);
	bar_all(r, 0);
	outs(r);
}

/*
 * A host says in its beacons that it is a switch, or nobody, and falls silent. It belongs to no
 * link, so nobody has failed, and C must not wait for it for ever.
 */
static void input__of_no_link_is_resumed(void **state)
{
	static const uint32_t said[] = { 8, 0 };
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct bl_recover *r = rack(3);
		const struct bl_recover_port liar = { .port = 4,
						      .neighbour = said[i],
						      .role = BL_RECOVER_HOST };
		const struct bl_recover_failure *f;

		two_switches(r, &liar, 1, NULL, 0);
		assert_int_equal(bl_recover_link_down(r, 10 * MS, 9, 4, said[i], 900, 7),
				 BL_RECOVER_OK);
		bl_recover_tick(r, 15 * MS);
		assert_string_equal(outs(r), "save 1:1");
		f = bl_recover_failure(r, 1);
		assert_int_equal(f->nfailed, 0);
		assert_int_equal(f->ninputs, 1);
		assert_int_equal(f->input[0].node, 9);
		assert_int_equal(f->input[0].port, 4);
		assert_int_equal(f->input[0].death, 7);
		bl_recover_saved_failure(r, 16 * MS, 1);
		assert_string_equal(outs(r), "resume 9/1");
		/* only once: the next failure, which comes before the answer, leaves it alone */
		bl_recover_link_down(r, 30 * MS, 9, 2, 2, 900, 7);
		bl_recover_tick(r, 35 * MS);
		bar_all(r, 35 * MS);
		bl_recover_tick(r, 35 * MS);
		f = bl_recover_failure(r, 2);
		assert_int_equal(f->ninputs, 1);
		assert_int_equal(f->input[0].port, 2);
		bl_recover_free(r);
	}
}

/*
 * A host at switch 8 says in its beacons that it is host 2, which is at switch 9 and says so. Host
 * 2 dies, and is announced: it has no other link.
 */
static void host__said_to_be_elsewhere(void **state)
{
	struct bl_recover *r = rack(3);
	const struct bl_recover_port down = { .port = 9, .neighbour = 8, .role = BL_RECOVER_DOWN };
	struct bl_recover_port of_8[2] = {
		{ .port = 1, .neighbour = 2, .role = BL_RECOVER_HOST },
		{ .port = 2, .neighbour = 9, .role = BL_RECOVER_UP },
	};
	const struct bl_recover_failure *f;

	(void)state;
	two_switches(r, &down, 1, of_8, 2);
	host_2_fails(r);
	f = bl_recover_failure(r, 1);
	assert_int_equal(f->nfailed, 1);
	assert_int_equal(f->failed[0].node, 2);
	assert_int_equal(f->failed[0].proc.t, 900);
	bl_recover_free(r);
}

/*
 * Host 4 says that it is a switch with links to all hosts, and none to switch 9 any more. They say
 * that they are at switch 9, which is not cut off from them when one of them dies.
 */
static void host__says_it_is_a_switch(void **state)
{
	struct bl_recover *r = rack(3);
	struct bl_recover_port links[4];
	struct bl_recover_hello sw = hello_switch(4), h = { .id = 4,
							    .epoch = said_epoch,
							    .kind = BL_DET_SWITCH,
							    .port = links,
							    .nports = 4,
							    .name = "h4" };
	const struct bl_recover_failure *f;
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		links[i] = (struct bl_recover_port){ .port = i,
						     .neighbour = i + 1,
						     .role = BL_RECOVER_HOST };
	links[3] = (struct bl_recover_port){ .port = 3, .neighbour = 9, .role = BL_RECOVER_UP };
	assert_int_equal(bl_recover_hello(r, 0, &sw), BL_RECOVER_OK);
	bl_recover_saved_node(r, 0, 9);
	assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
	bl_recover_saved_node(r, 0, 4);
	links[3].state = BL_DET_REMOVED;
	assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
	bar_all(r, 0);
	outs(r);
	host_2_fails(r);
	f = bl_recover_failure(r, 1);
	assert_non_null(f);
	assert_int_equal(f->nfailed, 2);
	assert_int_equal(f->failed[0].node, 2);
	assert_int_equal(f->failed[1].node, 4); /* it has no link that is believed */
	bl_recover_free(r);
}

/*
 * The host comes back, and is told that it failed and what was announced since. It joins anew, and
 * the switch is told that its port is no longer barred.
 */
static void host__joins_anew(void **state)
{
	struct bl_recover *r = rack(3);
	struct bl_recover_hello h = hello_host(2);

	(void)state;
	host_2_fails(r);
	bl_recover_bye(r, 15 * MS, 2);
	bl_recover_saved_failure(r, 16 * MS, 1);
	assert_string_equal(outs(r), "bar 9; save 1:0; fail 1/1; fail 3/1");
	bl_recover_done(r, 17 * MS, 1, 1);
	bl_recover_done(r, 17 * MS, 3, 1);
	bl_recover_saved_failure(r, 18 * MS, 1);
	outs(r);
	/* too early: its failure is not finished */
	h.rejoin = true;
	assert_int_equal(bl_recover_hello(r, 18 * MS, &h), BL_RECOVER_OK);
	assert_string_equal(outs(r), "welcome 2/1; fail 2/1");
	bl_recover_resumed(r, 19 * MS, 9, 1);
	bl_recover_saved_failure(r, 20 * MS, 1);
	outs(r);
	h.rejoin = false;
	assert_int_equal(bl_recover_hello(r, 21 * MS, &h), BL_RECOVER_OK);
	assert_string_equal(outs(r), "welcome 2/1; fail 2/1");
	assert_int_equal(bl_recover_link_down(r, 21 * MS, 2, 0, 9, 1, 7), BL_RECOVER_FAILED_NODE);
	h.rejoin = true;
	assert_int_equal(bl_recover_hello(r, 22 * MS, &h), BL_RECOVER_OK);
	assert_string_equal(outs(r), "bar 9; node 2");
	assert_false(bl_recover_node(r, 9)->port[1].barred);
	bl_recover_saved_node(r, 23 * MS, 2);
	assert_string_equal(outs(r), "welcome 2; bar 2");
	assert_int_equal(bl_recover_node(r, 2)->joined, 1);
	/* Its link is heard again; it is also waited for by the next failure. */
	h = hello_switch(3);
	bl_recover_hello(r, 24 * MS, &h);
	assert_int_equal(bl_recover_node(r, 9)->port[1].state, BL_DET_LIVE);
	bar_all(r, 24 * MS);
	outs(r);
	bl_recover_link_down(r, 30 * MS, 9, 3, 3, 1000, 7);
	bl_recover_tick(r, 35 * MS);
	bar_all(r, 35 * MS);
	bl_recover_tick(r, 35 * MS);
	bl_recover_saved_failure(r, 36 * MS, 2);
	assert_string_equal(outs(r), "bar 9; save 2:0; fail 1/2; fail 2/2; fail 3/2");
	bl_recover_free(r);
}

/* A host that does not answer is asked about and fails itself; then no failure waits for it. */
static void host__does_not_answer(void **state)
{
	struct bl_recover *r = rack(4);

	(void)state;
	host_2_fails(r);
	bl_recover_saved_failure(r, 16 * MS, 1);
	bl_recover_done(r, 17 * MS, 1, 1);
	bl_recover_done(r, 17 * MS, 4, 1);
	outs(r);
	assert_int_equal(bl_recover_due(r), 1016 * MS);
	bl_recover_tick(r, 1016 * MS - 1);
	assert_string_equal(outs(r), "");
	bl_recover_tick(r, 1016 * MS);
	assert_string_equal(outs(r), "freeze 9; bar 9");
	assert_true(bl_recover_node(r, 9)->port[2].asked);
	bar_all(r, 1017 * MS);
	bl_recover_tick(r, 1017 * MS);
	assert_string_equal(outs(r), "");
	bl_recover_link_down(r, 1018 * MS, 9, 3, 3, 1234, 7);
	bl_recover_tick(r, 1018 * MS);
	/*
	 * It is waited for until its failure is saved: a leader that takes over before that knows
	 * nothing of the failure.
	 */
	assert_string_equal(outs(r), "save 2:0");
	assert_int_equal(bl_recover_failure(r, 2)->failed[0].proc.t, 1234);
	assert_int_equal(bl_recover_failure(r, 2)->failed[0].why, BL_DET_TOLD);
	bl_recover_saved_failure(r, 1019 * MS, 2);
	/*
	 * Inputs that its T was taken from stay frozen until that failure is complete, too,
	 * whatever other failure they belong to.
	 */
	assert_string_equal(outs(r), "fail 1/2; fail 2/2; fail 3/2; fail 4/2");
	bl_recover_done(r, 1020 * MS, 1, 2);
	assert_string_equal(outs(r), "");
	bl_recover_done(r, 1020 * MS, 4, 2);
	assert_string_equal(outs(r), "save 1:1; save 2:1");
	bl_recover_saved_failure(r, 1021 * MS, 1);
	assert_string_equal(outs(r), "resume 9/1");
	bl_recover_free(r);
}

/*
 * A node whose daemon announced its absence is not late before the granted time, nor right after it
 * has come back. After that it is late like any other.
 */
static void away__is_not_late(void **state)
{
	struct bl_recover *r = rack(4);
	struct bl_recover_hello h = hello_host(3);

	(void)state;
	assert_int_equal(bl_recover_away(r, 9 * MS, 77, 1), BL_RECOVER_UNKNOWN_NODE);
	assert_int_equal(bl_recover_away(r, 9 * MS, 3, 5000 * MS), BL_RECOVER_OK);
	bl_recover_bye(r, 9 * MS, 3);
	host_2_fails(r);
	bl_recover_saved_failure(r, 16 * MS, 1);
	bl_recover_done(r, 17 * MS, 1, 1);
	bl_recover_done(r, 17 * MS, 4, 1);
	outs(r);
	bl_recover_tick(r, 1016 * MS);
	bl_recover_tick(r, 2016 * MS);
	bl_recover_tick(r, 4016 * MS);
	assert_string_equal(outs(r), "");
	/* back 1 ms before the next tick: it has its own time to answer */
	assert_int_equal(bl_recover_hello(r, 5000 * MS, &h), BL_RECOVER_OK);
	assert_string_equal(outs(r), "welcome 3; bar 3; fail 3/1");
	bl_recover_barred(r, 5000 * MS, 3, bl_recover_node(r, 3)->bar);
	bl_recover_tick(r, 5016 * MS);
	assert_string_equal(outs(r), "");
	bl_recover_tick(r, 6016 * MS);
	assert_string_equal(outs(r), "freeze 9; bar 9");
	bl_recover_free(r);
}

/*
 * A node that does not come back is late when its time has passed, and no time is longer than the
 * limit.
 */
static void away__and_gone(void **state)
{
	struct bl_recover *r = rack(4);
	uint64_t t = 9 * MS + BL_RECOVER_AWAY_MAX_NS;

	(void)state;
	bl_recover_away(r, 9 * MS, 3, UINT64_MAX);
	host_2_fails(r);
	bl_recover_saved_failure(r, 16 * MS, 1);
	bl_recover_done(r, 17 * MS, 1, 1);
	bl_recover_done(r, 17 * MS, 4, 1);
	outs(r);
	bl_recover_tick(r, t - 1);
	assert_string_equal(outs(r), "");
	bl_recover_tick(r, t + 1000 * MS);
	assert_string_equal(outs(r), "freeze 9; bar 9");
	bl_recover_free(r);
}

/* The links of an absent node are judged as ever. */
static void away__link_falls_silent(void **state)
{
	struct bl_recover *r = rack(3);

	(void)state;
	bl_recover_away(r, 9 * MS, 2, 5000 * MS);
	bl_recover_bye(r, 9 * MS, 2);
	assert_string_equal(outs(r), "node 2");
	host_2_fails(r);
	assert_string_equal(outs(r), "bar 9; save 1:0");
	bl_recover_free(r);
}

/*
 * With sessions to half of the nodes that it knows, the controller is not cut off; with one less it
 * is. Even and odd numbers of nodes.
 */
static void controller__half_is_enough(void **state)
{
	uint32_t hosts, k;

	(void)state;
	for (hosts = 2; hosts <= 4; hosts++) {
		struct bl_recover *r = rack(hosts);
		uint32_t nodes = hosts + 1;

		for (k = 0; k <= nodes; k++) {
			if (k)
				bl_recover_bye(r, 10 * MS, k == nodes ? 9 : k);
			assert_int_equal(bl_recover_isolated(r), 2 * (nodes - k) < nodes);
		}
		bl_recover_free(r);
	}
}

/* If most nodes have no session, the controller itself is cut off: no node fails for that. */
static void controller__is_cut_off(void **state)
{
	struct bl_recover *r = rack(4);
	uint32_t i;

	(void)state;
	host_2_fails(r);
	bl_recover_saved_failure(r, 16 * MS, 1);
	outs(r);
	assert_false(bl_recover_isolated(r));
	for (i = 1; i <= 4; i++)
		bl_recover_bye(r, 17 * MS, i == 2 ? 9 : i);
	assert_true(bl_recover_isolated(r));
	for (i = 0; i < 20; i++)
		bl_recover_tick(r, (4000 + 1000ULL * i) * MS);
	assert_string_equal(outs(r), "");
	for (i = 0; i < bl_recover_nodes(r); i++)
		assert_int_equal(bl_recover_node_at(r, i)->state,
				 bl_recover_node_at(r, i)->id == 2 ? BL_DET_GONE : BL_DET_UP);
	/* they come back, and the procedure goes on where it was */
	for (i = 1; i <= 4; i++) {
		struct bl_recover_hello h = i == 2 ? hello_switch(4) : hello_host(i);

		assert_int_equal(bl_recover_hello(r, 30000 * MS, &h), BL_RECOVER_OK);
	}
	assert_string_equal(outs(r), "welcome 1; bar 1; fail 1/1; welcome 9; bar 9; welcome 3; bar "
				     "3; fail 3/1; welcome 4; bar 4; fail 4/1");
	bl_recover_free(r);
}

/*
 * The agent of the only switch does not answer, then two of three hosts do not. No node is
 * announced for that, and the procedure goes on when they answer. One of three hosts may fail.
 */
static void late__would_take_most_hosts(void **state)
{
	struct bl_recover *r = rack(4);
	uint32_t i;

	(void)state;
	bl_recover_link_down(r, 10 * MS, 9, 2, 2, 900, 7);
	bl_recover_tick(r, 15 * MS);
	assert_string_equal(outs(r), "bar 9");
	for (i = 1; i < 20; i++) {
		bl_recover_tick(r, (15 + 1000ULL * i) * MS);
		assert_string_equal(outs(r), "");
		assert_true(bl_recover_doubts(r));
	}
	assert_int_equal(bl_recover_node(r, 9)->state, BL_DET_UP);
	bar_all(r, 19100 * MS);
	bl_recover_tick(r, 19100 * MS);
	assert_string_equal(outs(r), "save 1:0");
	bl_recover_saved_failure(r, 19101 * MS, 1);
	outs(r);
	bl_recover_done(r, 19102 * MS, 1, 1);
	for (i = 1; i < 20; i++) {
		bl_recover_tick(r, (19101 + 1000ULL * i) * MS);
		assert_string_equal(outs(r), "");
		assert_true(bl_recover_doubts(r));
	}
	bl_recover_done(r, 39000 * MS, 3, 1);
	assert_true(bl_recover_doubts(r));
	bl_recover_tick(r, 39101 * MS);
	assert_string_equal(outs(r), "freeze 9; bar 9");
	assert_false(bl_recover_doubts(r));
	assert_int_equal(bl_recover_node(r, 4)->state, BL_DET_DOWN);
	bl_recover_free(r);
}

/*
 * One way of a host's only link fails: the host is cut off, whichever way it is. What the host
 * reports of its own T counts like any other report.
 */
static void link__one_way(void **state)
{
	struct bl_recover *r = rack(3);

	(void)state;
	assert_int_equal(bl_recover_link_down(r, 10 * MS, 2, 0, 9, 900, 7), BL_RECOVER_OK);
	bl_recover_tick(r, 15 * MS);
	/* the switch still hears it: that input is frozen first */
	assert_string_equal(outs(r), "freeze 9; bar 9");
	bar_all(r, 16 * MS);
	bl_recover_link_down(r, 17 * MS, 9, 2, 2, 950, 7);
	bl_recover_tick(r, 17 * MS);
	assert_string_equal(outs(r), "save 1:0");
	assert_int_equal(bl_recover_failure(r, 1)->failed[0].node, 2);
	assert_int_equal(bl_recover_failure(r, 1)->failed[0].proc.t, 950);
	bl_recover_free(r);
}

/* A new leader after each step goes on where the old one was. */
static void leader__takes_over(void **state)
{
	unsigned int step;

	(void)state;
	for (step = BL_RECOVER_ANNOUNCED; step <= BL_RECOVER_FINISHED; step++) {
		struct bl_recover *old = rack(3), *r = bl_recover_new(&cfg);
		struct bl_recover_failure f;
		struct bl_recover_hello h;
		uint32_t i;

		host_2_fails(old);
		f = *bl_recover_failure(old, 1);
		f.step = (uint8_t)step;
		assert_int_equal(bl_recover_load_failure(r, &f), 0);
		assert_int_equal(bl_recover_load_failure(r, &f), -1);
		for (i = 0; i < bl_recover_nodes(old); i++) {
			struct bl_recover_node n = *bl_recover_node_at(old, i);

			assert_int_equal(bl_recover_load_node(r, &n), 0);
			assert_int_equal(bl_recover_load_node(r, &n), -1);
		}
		assert_int_equal(bl_recover_due(r), UINT64_MAX);
		assert_int_equal(bl_recover_link_down(r, 0, 9, 1, 1, 1, 7), BL_RECOVER_NOT_LEADING);
		bl_recover_start(r, 100000 * MS, 6);
		assert_int_equal(bl_recover_number(r), 1);
		assert_int_equal(bl_recover_node(r, 2)->state, BL_DET_GONE);
		assert_string_equal(outs(r), "");
		/* the agents connect */
		said_epoch = 6;
		h = hello_host(1);
		bl_recover_hello(r, 100001 * MS, &h);
		assert_string_equal(outs(r), step == BL_RECOVER_ANNOUNCED ? "welcome 1; bar 1; "
									    "fail 1/1"
									  : "welcome 1; bar 1");
		h = hello_switch(3);
		sw_port[1].state = BL_DET_SILENT; /* it was frozen before */
		sw_port[1].c = 900;
		sw_port[1].death = 7;
		bl_recover_hello(r, 100001 * MS, &h);
		assert_string_equal(outs(r), step == BL_RECOVER_RESUMED ? "welcome 9; bar 9; "
									  "resume 9/1"
									: "welcome 9; bar 9");
		assert_true(bl_recover_node(r, 9)->port[1].barred);
		h = hello_host(3);
		bl_recover_hello(r, 100001 * MS, &h);
		assert_string_equal(outs(r), step == BL_RECOVER_ANNOUNCED ? "welcome 3; bar 3; "
									    "fail 3/1"
									  : "welcome 3; bar 3");
		if (step == BL_RECOVER_ANNOUNCED) {
			bl_recover_done(r, 100002 * MS, 1, 1);
			bl_recover_done(r, 100002 * MS, 3, 1);
			assert_string_equal(outs(r), "save 1:1");
			bl_recover_saved_failure(r, 100003 * MS, 1);
			assert_string_equal(outs(r), "resume 9/1");
		}
		if (step != BL_RECOVER_FINISHED) {
			bl_recover_resumed(r, 100004 * MS, 9, 1);
			assert_string_equal(outs(r), "save 1:2");
		}
		bl_recover_free(r);
		bl_recover_free(old);
	}
}

/*
 * What a node reports of its inputs before it has heard of the epoch is not used: a command of the
 * previous leader may still be on its way to it.
 */
static void report__before_epoch(void **state)
{
	struct bl_recover *r = bl_recover_new(&cfg);
	struct bl_recover_node n;
	struct bl_recover_hello h;
	struct bl_recover *old = rack(2);

	(void)state;
	n = *bl_recover_node(old, 9);
	assert_int_equal(bl_recover_load_node(r, &n), 0);
	bl_recover_start(r, 0, 6);
	h = hello_switch(2);
	sw_port[1].state = BL_DET_SILENT;
	sw_port[1].c = 900;
	sw_port[1].death = 3;
	assert_int_equal(bl_recover_hello(r, MS, &h), BL_RECOVER_OK);
	assert_string_equal(outs(r), "welcome 9; bar 9");
	assert_int_equal(bl_recover_node(r, 9)->port[1].state, BL_DET_LIVE);
	assert_int_equal(bl_recover_link_down(r, MS, 9, 2, 2, 900, 3), BL_RECOVER_TOO_EARLY);
	assert_int_equal(bl_recover_barred(r, MS, 9, 1), BL_RECOVER_TOO_EARLY);
	assert_int_equal(bl_recover_done(r, MS, 9, 1), BL_RECOVER_TOO_EARLY);
	assert_int_equal(bl_recover_proc_down(r, MS, 9,
					      &(struct bl_recover_proc){ .port = 1, .t = 1 }),
			 BL_RECOVER_TOO_EARLY);
	h.epoch = 7; /* it has heard of the next epoch, too: it will not obey this leader */
	assert_int_equal(bl_recover_hello(r, MS, &h), BL_RECOVER_OK);
	assert_int_equal(bl_recover_node(r, 9)->port[1].state, BL_DET_LIVE);
	h.epoch = 6;
	assert_int_equal(bl_recover_hello(r, MS, &h), BL_RECOVER_OK);
	assert_int_equal(bl_recover_node(r, 9)->port[1].state, BL_DET_SILENT);
	assert_int_equal(bl_recover_node(r, 9)->port[1].death, 3);
	assert_int_equal(bl_recover_link_down(r, MS, 9, 2, 2, 900, 3), BL_RECOVER_REPEATED);
	/* after the end of a session the node has to report it again */
	bl_recover_bye(r, MS, 9);
	assert_int_equal(bl_recover_link_down(r, MS, 9, 1, 1, 900, 1), BL_RECOVER_TOO_EARLY);
	bl_recover_free(r);
	bl_recover_free(old);
}

/*
 * RESUME names the death. An input that is decided to be resumed counts no more; if it dies again
 * in the meantime, the next failure handles that.
 */
static void resume__names_the_death(void **state)
{
	struct bl_recover *r = rack(3);
	const struct bl_recover_port *p;
	struct bl_recover_hello h;

	(void)state;
	host_2_fails(r);
	bl_recover_saved_failure(r, 16 * MS, 1);
	assert_string_equal(outs(r), "bar 9; save 1:0; fail 1/1; fail 2/1; fail 3/1");
	bl_recover_done(r, 17 * MS, 1, 1);
	p = &bl_recover_node(r, 9)->port[1];
	assert_int_equal(p->state, BL_DET_SILENT);
	bl_recover_done(r, 17 * MS, 3, 1);
	assert_string_equal(outs(r), "save 1:1");
	assert_int_equal(p->state, BL_DET_REMOVED);
	assert_int_equal(bl_recover_failure(r, 1)->input[0].death, 7);
	bl_recover_saved_failure(r, 18 * MS, 1);
	assert_string_equal(outs(r), "resume 9/1");
	/* it has not obeyed yet */
	assert_int_equal(bl_recover_link_down(r, 19 * MS, 9, 2, 2, 900, 7), BL_RECOVER_REPEATED);
	h = hello_switch(3);
	sw_port[1].state = BL_DET_SILENT;
	sw_port[1].death = 7;
	assert_int_equal(bl_recover_hello(r, 19 * MS, &h), BL_RECOVER_OK);
	p = &bl_recover_node(r, 9)->port[1];
	assert_int_equal(p->state, BL_DET_REMOVED);
	assert_int_equal(p->record, 1);
	/* it has obeyed, and the input came back and died again */
	assert_int_equal(bl_recover_link_down(r, 20 * MS, 9, 2, 2, 950, 8), BL_RECOVER_OK);
	assert_int_equal(p->state, BL_DET_SILENT);
	assert_int_equal(p->record, 0);
	outs(r);
	bl_recover_resumed(r, 21 * MS, 9, 1);
	bl_recover_saved_failure(r, 21 * MS, 1);
	bl_recover_tick(r, 30 * MS);
	bl_recover_saved_failure(r, 31 * MS, 2);
	assert_string_equal(outs(r), "save 1:2; save 2:1; resume 9/2");
	assert_int_equal(bl_recover_failure(r, 2)->ninputs, 1);
	assert_int_equal(bl_recover_failure(r, 2)->input[0].death, 8);
	assert_int_equal(bl_recover_failure(r, 2)->input[0].c, 950);
	bl_recover_free(r);
}

/*
 * An input that is in the minimum of C, but BEHIND: it is heard, and asked about when its sender
 * fails. It is not yet a link over which the sender is covered.
 */
static void hello__behind(void **state)
{
	struct bl_recover *r = rack(3);
	struct bl_recover_hello h = hello_switch(3);
	const struct bl_recover_node *sw = bl_recover_node(r, 9);

	(void)state;
	host_2_fails(r);
	bl_recover_saved_failure(r, 16 * MS, 1);
	bl_recover_done(r, 17 * MS, 1, 1);
	bl_recover_done(r, 17 * MS, 3, 1);
	bl_recover_saved_failure(r, 18 * MS, 1);
	/* resumed, but the node that failed has not joined anew */
	sw_port[1].state = BL_DET_REMOVED;
	bl_recover_resumed(r, 19 * MS, 9, 1);
	bl_recover_saved_failure(r, 20 * MS, 1);
	assert_int_equal(bl_recover_hello(r, 20 * MS, &h), BL_RECOVER_OK);
	assert_int_equal(sw->port[1].state, BL_DET_REMOVED);
	sw_port[1].state = BL_DET_BEHIND;
	assert_int_equal(bl_recover_hello(r, 20 * MS, &h), BL_RECOVER_OK);
	assert_int_equal(sw->port[1].state, BL_DET_REMOVED);
	h = hello_host(2);
	h.rejoin = true;
	assert_int_equal(bl_recover_hello(r, 21 * MS, &h), BL_RECOVER_OK);
	bl_recover_saved_node(r, 22 * MS, 2);
	bar_all(r, 22 * MS);
	h = hello_switch(3);
	sw_port[1].state = BL_DET_BEHIND;
	assert_int_equal(bl_recover_hello(r, 23 * MS, &h), BL_RECOVER_OK);
	assert_int_equal(sw->port[1].state, BL_DET_BEHIND);
	assert_int_equal(sw->port[1].joined, 1);
	assert_false(bl_recover_covered(r, bl_recover_node(r, 2)));
	outs(r);
	bl_recover_tick(r, 24 * MS);
	assert_string_equal(outs(r), "");
	sw_port[1].state = BL_DET_LIVE;
	assert_int_equal(bl_recover_hello(r, 25 * MS, &h), BL_RECOVER_OK);
	assert_int_equal(sw->port[1].state, BL_DET_LIVE);
	bar_all(r, 25 * MS);
	assert_true(bl_recover_covered(r, bl_recover_node(r, 2)));
	/* its own link went silent, and the switch still hears it, BEHIND: frozen first */
	sw_port[1].state = BL_DET_BEHIND;
	assert_int_equal(bl_recover_hello(r, 26 * MS, &h), BL_RECOVER_OK);
	assert_int_equal(bl_recover_link_down(r, 26 * MS, 2, 0, 9, 900, 7), BL_RECOVER_OK);
	outs(r);
	bl_recover_tick(r, 31 * MS);
	assert_string_equal(outs(r), "freeze 9; bar 9");
	assert_true(sw->port[1].asked);
	bl_recover_free(r);
}

static void hello__refused(void **state)
{
	struct bl_recover *r = rack(1);
	struct bl_recover_port two[2] = { { .port = 1, .neighbour = 9, .role = BL_RECOVER_UP },
					  { .port = 1, .neighbour = 9, .role = BL_RECOVER_UP } };
	struct bl_recover_hello h;
	unsigned int k;

	(void)state;
	for (k = 0; k < 12; k++) {
		struct bl_recover_port p = { .port = 0, .neighbour = 9, .role = BL_RECOVER_UP };

		h = hello_host(1);
		h.port = &p;
		switch (k) {
		case 0:
			break; /* this one is valid */
		case 1:
			h.id = 0;
			break;
		case 2:
			h.kind = 2;
			break;
		case 3:
			h.nports = BL_RECOVER_PORTS_MAX + 1;
			break;
		case 4:
			h.naddrs = BL_RECOVER_ADDRS_MAX + 1;
			break;
		case 5:
			h.nendpoints = BL_RECOVER_ENDPOINTS_MAX + 1;
			break;
		case 6:
			h.kind = BL_DET_SWITCH;
			break; /* a switch with endpoints */
		case 7:
			p.role = BL_RECOVER_HOST;
			break;
		case 8:
			p.neighbour = 1;
			break;
		case 9:
			p.state = BL_DET_WAY_STATES;
			break;
		case 10:
			p.state = BL_DET_SILENT, p.c = 1ULL << 48;
			break;
		case 11:
			h.port = two, h.nports = 2;
			break;
		}
		assert_int_equal(bl_recover_hello(r, MS, &h),
				 k ? BL_RECOVER_BAD_HELLO : BL_RECOVER_OK);
	}
	assert_int_equal(bl_recover_link_down(r, MS, 9, 2, 2, 1, 7), BL_RECOVER_UNKNOWN_PORT);
	assert_int_equal(bl_recover_link_down(r, MS, 9, 1, 7, 1, 7), BL_RECOVER_UNKNOWN_PORT);
	assert_int_equal(bl_recover_link_down(r, MS, 9, 1, 1, 1ULL << 48, 7), BL_RECOVER_BAD_C);
	assert_int_equal(bl_recover_link_down(r, MS, 77, 1, 1, 1, 7), BL_RECOVER_UNKNOWN_NODE);
	assert_int_equal(bl_recover_link_down(r, MS, 9, 1, 1, BL_DET_NO_C, 7), BL_RECOVER_OK);
	assert_int_equal(bl_recover_link_down(r, MS, 9, 1, 1, 5, 7), BL_RECOVER_REPEATED);
	bl_recover_free(r);
}

/*
 * A node does not become one of the other kind: the inputs of its former life that are frozen would
 * be saved as those of a node that cannot have them, and no leader could load that record.
 */
static void hello__other_kind(void **state)
{
	struct bl_recover *r = rack(2), *next = bl_recover_new(&cfg);
	struct bl_recover_hello as_host = hello_host(1), as_switch = hello_switch(2);
	struct bl_recover_out o;
	uint32_t saved = 0;

	(void)state;
	assert_int_equal(bl_recover_link_down(r, MS, 9, 2, 2, 900, 7), BL_RECOVER_OK);
	as_host.id = 9;
	as_host.naddrs = as_host.nports = 0;
	assert_int_equal(bl_recover_hello(r, MS, &as_host), BL_RECOVER_BAD_HELLO);
	as_switch.id = 1;
	as_switch.nports = 0;
	assert_int_equal(bl_recover_hello(r, MS, &as_switch), BL_RECOVER_BAD_HELLO);
	/* the switch reports that its ports have gone, which is saved, and can be loaded */
	as_switch.id = 9;
	assert_int_equal(bl_recover_hello(r, MS, &as_switch), BL_RECOVER_OK);
	while (bl_recover_next(r, &o))
		if (o.what == BL_RECOVER_SAVE_NODE && o.node == 9) {
			assert_int_equal(bl_recover_load_node(next, bl_recover_node(r, 9)), 0);
			saved++;
		}
	assert_int_equal(saved, 1);
	bl_recover_free(next);
	bl_recover_free(r);
}

/*
 * The neighbour that a LINK_DOWN names, where none was heard before, is held to the same as one in
 * a HELLO: no node is its own neighbour, and its record could not be loaded.
 */
static void link_down__own_neighbour(void **state)
{
	struct bl_recover *r = rack(2), *next = bl_recover_new(&cfg);
	struct bl_recover_hello h = hello_switch(2);

	(void)state;
	sw_port[1].neighbour = 0;
	h.id = 7;
	assert_int_equal(bl_recover_hello(r, MS, &h), BL_RECOVER_OK);
	assert_int_equal(bl_recover_link_down(r, MS, 7, 2, 7, 900, 1), BL_RECOVER_UNKNOWN_PORT);
	assert_int_equal(bl_recover_load_node(next, bl_recover_node(r, 7)), 0);
	assert_int_equal(bl_recover_link_down(r, MS, 7, 2, 2, 900, 1), BL_RECOVER_OK);
	bl_recover_free(next);
	bl_recover_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input__of_no_link_is_resumed),
		cmocka_unit_test(host__said_to_be_elsewhere),
		cmocka_unit_test(host__says_it_is_a_switch),
		cmocka_unit_test(host__dies),
		cmocka_unit_test(host__joins_anew),
		cmocka_unit_test(host__does_not_answer),
		cmocka_unit_test(away__is_not_late),
		cmocka_unit_test(away__and_gone),
		cmocka_unit_test(away__link_falls_silent),
		cmocka_unit_test(controller__half_is_enough),
		cmocka_unit_test(controller__is_cut_off),
		cmocka_unit_test(late__would_take_most_hosts),
		cmocka_unit_test(link__one_way),
		cmocka_unit_test(leader__takes_over),
		cmocka_unit_test(report__before_epoch),
		cmocka_unit_test(resume__names_the_death),
		cmocka_unit_test(hello__behind),
		cmocka_unit_test(hello__refused),
		cmocka_unit_test(hello__other_kind),
		cmocka_unit_test(link_down__own_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
