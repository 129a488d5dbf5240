// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The failure procedure (controller/recover/) for a process that died or left while its host is
 * well. Hosts, links and leaders are in test_recover_core.c.
 */
#include "tests/unit/controller/recover/recover_rack.h"

static void process__dies(void **state)
{
	struct bl_recover *r = rack(3);
	const struct bl_recover_failure *f;

	(void)state;
	assert_int_equal(bl_recover_proc_down(r, 10 * MS, 2,
					      &(struct bl_recover_proc){ .port = 61697, .t = 777 }),
			 BL_RECOVER_OK);
	assert_int_equal(bl_recover_proc_down(r, 10 * MS, 2,
					      &(struct bl_recover_proc){ .port = 61697, .t = 777 }),
			 BL_RECOVER_REPEATED);
	assert_int_equal(bl_recover_proc_down(r, 10 * MS, 9,
					      &(struct bl_recover_proc){ .port = 61697, .t = 777 }),
			 BL_RECOVER_UNKNOWN_PORT);
	assert_int_equal(bl_recover_proc_down(r, 10 * MS, 2,
					      &(struct bl_recover_proc){ .port = 0, .t = 777 }),
			 BL_RECOVER_UNKNOWN_PORT);
	assert_int_equal(
		bl_recover_proc_down(r, 10 * MS, 2,
				     &(struct bl_recover_proc){ .port = 61697, .t = 1ULL << 48 }),
		BL_RECOVER_BAD_C);
	bl_recover_tick(r, 15 * MS);
	assert_string_equal(outs(r), "save 1:0");
	f = bl_recover_failure(r, 1);
	assert_int_equal(f->nfailed, 1);
	assert_int_equal(f->failed[0].node, 2);
	assert_int_equal(f->failed[0].proc.port, 61697);
	assert_int_equal(f->failed[0].proc.t, 777);
	bl_recover_saved_failure(r, 16 * MS, 1);
	/* its host lives and completes the failure, too */
	assert_string_equal(outs(r), "fail 1/1; fail 2/1; fail 3/1");
	bl_recover_done(r, 17 * MS, 1, 1);
	bl_recover_done(r, 17 * MS, 3, 1);
	assert_string_equal(outs(r), "");
	bl_recover_done(r, 17 * MS, 2, 1);
	bl_recover_saved_failure(r, 18 * MS, 1);
	assert_string_equal(outs(r), "save 1:1; resume 2/1"); /* the window of the process held C */
	bl_recover_resumed(r, 19 * MS, 2, 1);
	assert_string_equal(outs(r), "save 1:2");
	bl_recover_saved_failure(r, 20 * MS, 1);
	assert_int_equal(bl_recover_proc_down(r, 21 * MS, 2,
					      &(struct bl_recover_proc){ .port = 61697, .t = 777 }),
			 BL_RECOVER_REPEATED);
	/* a new process on the same port */
	assert_int_equal(bl_recover_proc_down(r, 21 * MS, 2,
					      &(struct bl_recover_proc){ .port = 61697, .t = 888 }),
			 BL_RECOVER_OK);
	bl_recover_free(r);
}

/* Processes that die before a decision: each host, port and life is one process. */
static void process__several_die(void **state)
{
	static const struct {
		uint32_t node;
		uint16_t port, life;
	} t[] = { { 2, 61697, 1 }, { 2, 61696, 1 }, { 2, 61697, 2 }, { 3, 61697, 1 } };
	struct bl_recover *r = rack(3);
	const struct bl_recover_failure *f;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		for (k = 0; k < 2; k++) {
			const struct bl_recover_proc p = { .port = t[i].port,
							   .life = t[i].life,
							   .t = 777 };

			assert_int_equal(bl_recover_proc_down(r, 10 * MS, t[i].node, &p),
					 k ? BL_RECOVER_REPEATED : BL_RECOVER_OK);
		}
	bl_recover_tick(r, 15 * MS);
	assert_string_equal(outs(r), "save 1:0");
	f = bl_recover_failure(r, 1);
	assert_int_equal(f->nfailed, ARRAY_SIZE(t));
	bl_recover_free(r);
}

static const struct bl_recover_proc left = {
	.port = 61697, .life = 5, .why = BL_WHY_LEFT, .t = 777
};

/*
 * A process that leaves in order is announced at once, and nothing waits for that: there is no
 * resume, no host is late, and other failures go on.
 */
static void process__leaves(void **state)
{
	struct bl_recover *r = rack(3);
	const struct bl_recover_proc died = {
		.port = 61696, .life = 6, .why = BL_WHY_DIED, .t = 800
	};
	uint32_t i;

	(void)state;
	assert_int_equal(bl_recover_proc_down(r, 10 * MS, 2, &left), BL_RECOVER_OK);
	assert_string_equal(outs(r), "save 1:0");
	assert_int_equal(bl_recover_proc_down(r, 10 * MS, 2, &left), BL_RECOVER_REPEATED);
	bl_recover_saved_failure(r, 11 * MS, 1);
	assert_string_equal(outs(r), "fail 1/1; fail 2/1; fail 3/1");
	assert_true(bl_recover_failure(r, 1)->left);
	assert_int_equal(bl_recover_failure(r, 1)->failed[0].proc.life, 5);
	assert_int_equal(bl_recover_due(r), UINT64_MAX);
	bl_recover_done(r, 12 * MS, 1, 1);
	bl_recover_done(r, 12 * MS, 2, 1);
	/*
	 * Host 3 has not confirmed. Another process dies; its failure is resumed all the same, and
	 * host 3 does not fail.
	 */
	assert_int_equal(bl_recover_proc_down(r, 20 * MS, 1, &died), BL_RECOVER_OK);
	bl_recover_tick(r, 25 * MS);
	assert_string_equal(outs(r), "save 2:0");
	bl_recover_saved_failure(r, 26 * MS, 2);
	outs(r);
	for (i = 1; i <= 3; i++)
		bl_recover_done(r, 27 * MS, i, 2);
	assert_string_equal(outs(r), "save 2:1");
	bl_recover_saved_failure(r, 28 * MS, 2);
	assert_string_equal(outs(r), "resume 1/2");
	bl_recover_resumed(r, 29 * MS, 1, 2);
	bl_recover_saved_failure(r, 30 * MS, 2);
	outs(r);
	bl_recover_tick(r, 5000 * MS);
	assert_string_equal(outs(r), "");
	assert_int_equal(bl_recover_node(r, 3)->state, BL_DET_UP);
	/* it is told again in its next session, which ends the leave */
	bl_recover_bye(r, 5001 * MS, 3);
	{
		struct bl_recover_hello h = hello_host(3);

		bl_recover_hello(r, 5002 * MS, &h);
	}
	assert_string_equal(outs(r), "welcome 3; bar 3; fail 3/1");
	bl_recover_done(r, 5003 * MS, 3, 1);
	assert_string_equal(outs(r), "save 1:2");
	bl_recover_saved_failure(r, 5004 * MS, 1);
	assert_string_equal(outs(r), "");
	assert_int_equal(bl_recover_failure(r, 1)->step, BL_RECOVER_FINISHED);
	bl_recover_free(r);
}

/*
 * Any number of processes may leave while failures are open. No host is left waited for, and the
 * number of remembered records is bounded.
 */
static void process__many_leave(void **state)
{
	struct bl_recover *r = rack(3);
	struct bl_recover_proc p = left;
	uint32_t i;

	(void)state;
	for (i = 0; i < BL_RECOVER_KEEP_MAX + 10 * BL_RECOVER_OPEN_MAX; i++) {
		p.t++;
		p.life++;
		assert_int_equal(bl_recover_proc_down(r, (10 + i) * MS, 2, &p), BL_RECOVER_OK);
		bl_recover_saved_failure(r, (10 + i) * MS, i + 1);
		bl_recover_done(r, (10 + i) * MS, 1, i + 1);
		bl_recover_done(r, (10 + i) * MS, 2, i + 1);
		outs(r);
	}
	assert_true(bl_recover_failures(r) <= BL_RECOVER_KEEP_MAX + BL_RECOVER_OPEN_MAX + 1);
	p = (struct bl_recover_proc){ .port = 61696, .life = 6, .why = BL_WHY_DIED, .t = 800 };
	bl_recover_proc_down(r, 9000 * MS, 1, &p);
	bl_recover_tick(r, 9005 * MS);
	assert_int_equal(strncmp(outs(r), "save ", 5), 0); /* not delayed as one failure too many */
	bl_recover_free(r);
}

/* A leader that takes over tells the hosts that have not confirmed. */
static void process__leaves_and_the_leader_dies(void **state)
{
	struct bl_recover *r = rack(3), *next = bl_recover_new(&cfg);
	uint32_t i;

	(void)state;
	bl_recover_proc_down(r, 10 * MS, 2, &left);
	bl_recover_saved_failure(r, 11 * MS, 1);
	for (i = 0; i < bl_recover_nodes(r); i++)
		assert_int_equal(bl_recover_load_node(next, bl_recover_node_at(r, i)), 0);
	assert_int_equal(bl_recover_load_failure(next, bl_recover_failure(r, 1)), 0);
	bl_recover_start(next, 0, 6);
	said_epoch = 6;
	assert_true(bl_recover_failure(next, 1)->left);
	assert_int_equal(bl_recover_failure(next, 1)->failed[0].proc.why, BL_WHY_LEFT);
	outs(next);
	for (i = 1; i <= 3; i++) {
		struct bl_recover_hello h = hello_host(i);

		bl_recover_hello(next, MS, &h);
		assert_non_null(strstr(outs(next), "fail "));
		bl_recover_done(next, MS, i, 1);
	}
	assert_string_equal(outs(next), "save 1:2");
	bl_recover_free(r);
	bl_recover_free(next);
}

/*
 * A failure that is decided and being saved counts as announced: nothing is resumed before it is
 * complete, too.
 */
static void process__dies_while_another_is_saved(void **state)
{
	struct bl_recover *r = rack(3);
	uint32_t i;

	(void)state;
	bl_recover_proc_down(r, 10 * MS, 2, &(struct bl_recover_proc){ .port = 61697, .t = 777 });
	bl_recover_tick(r, 15 * MS);
	bl_recover_saved_failure(r, 16 * MS, 1);
	bl_recover_proc_down(r, 17 * MS, 1, &(struct bl_recover_proc){ .port = 61696, .t = 800 });
	bl_recover_tick(r, 22 * MS);
	outs(r);
	for (i = 1; i <= 3; i++)
		assert_int_equal(bl_recover_done(r, 23 * MS, i, 1), BL_RECOVER_OK);
	assert_string_equal(outs(r), "");
	bl_recover_saved_failure(r, 24 * MS, 2);
	assert_string_equal(outs(r), "fail 1/2; fail 2/2; fail 3/2");
	for (i = 1; i <= 3; i++)
		assert_int_equal(bl_recover_done(r, 25 * MS, i, 2), BL_RECOVER_OK);
	assert_string_equal(outs(r), "save 1:1; save 2:1");
	bl_recover_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process__dies),
		cmocka_unit_test(process__several_die),
		cmocka_unit_test(process__leaves),
		cmocka_unit_test(process__many_leave),
		cmocka_unit_test(process__leaves_and_the_leader_dies),
		cmocka_unit_test(process__dies_while_another_is_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
