// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Nodes that are removed (controller/recover/recover_forget.c), and what a lying node makes up
 * about itself.
 */
#include "tests/unit/controller/recover/recover_rack.h"

static uint64_t now;

/* Carries out all outputs until there are none left. */
static void carry_out(struct bl_recover *r)
{
	struct bl_recover_out o;
	int k;

	for (k = 0; k < 4; k++) {
		now += 100 * MS;
		bl_recover_tick(r, now);
		while (bl_recover_next(r, &o)) {
			if (o.what == BL_RECOVER_SAVE_NODE)
				bl_recover_saved_node(r, now, o.node);
			else if (o.what == BL_RECOVER_SAVE_FAILURE)
				bl_recover_saved_failure(r, now, o.number);
			else if (o.what == BL_RECOVER_BAR)
				bl_recover_barred(r, now, o.node, bl_recover_node(r, o.node)->bar);
			else if (o.what == BL_RECOVER_FAIL)
				bl_recover_done(r, now, o.node, o.number);
			else if (o.what == BL_RECOVER_RESUME)
				bl_recover_resumed(r, now, o.node, o.number);
		}
	}
}

static struct bl_recover *begin(uint32_t hosts)
{
	struct bl_recover *r = bl_recover_new(&cfg);
	struct bl_recover_hello h = hello_switch(hosts);
	uint32_t i;

	now = 10000 * MS;
	said_epoch = 5;
	h.epoch = 5;
	assert_non_null(r);
	bl_recover_start(r, now, 5);
	now += 4000 * MS;
	bl_recover_tick(r, now);
	assert_int_equal(bl_recover_hello(r, now, &h), BL_RECOVER_OK);
	for (i = 1; i <= hosts; i++) {
		h = hello_host(i);
		assert_int_equal(bl_recover_hello(r, now, &h), BL_RECOVER_OK);
	}
	carry_out(r);
	return r;
}

/*
 * Attack C3 against a controller before nodes were admitted: 300 invented nodes in the store, after
 * which nobody was ever taken for failed. They are removed.
 */
static void bl_recover_forget__invented_nodes(void **state)
{
	struct bl_recover *r = bl_recover_new(&cfg);
	struct bl_recover_hello h = hello_switch(3);
	uint32_t i;

	(void)state;
	now = 10000 * MS;
	said_epoch = 5;
	h.epoch = 5;
	for (i = 0; i < 300; i++) {
		const struct bl_recover_node n = { .id = 5000 + i, .kind = BL_DET_HOST };

		assert_int_equal(bl_recover_load_node(r, &n), 0);
	}
	bl_recover_start(r, now, 5);
	now += 4000 * MS;
	bl_recover_tick(r, now);
	bl_recover_hello(r, now, &h);
	for (i = 1; i <= 3; i++) {
		h = hello_host(i);
		bl_recover_hello(r, now, &h);
	}
	carry_out(r);
	assert_true(bl_recover_isolated(r));
	for (i = 0; i < 300; i++) {
		assert_int_equal(bl_recover_bond(r, 5000 + i), BL_RECOVER_FREE);
		bl_recover_forget(r, now, 5000 + i);
	}
	assert_int_equal(bl_recover_nodes(r), 4);
	assert_false(bl_recover_isolated(r));
	bl_recover_free(r);
}

/*
 * A host that takes part is bound to its switch. When it was announced and all is finished, it may
 * be forgotten, and stays barred.
 */
static void bl_recover_forget__after_its_failure(void **state)
{
	struct bl_recover *r = begin(3);

	(void)state;
	assert_int_equal(bl_recover_bond(r, 3), BL_RECOVER_HEARD);
	assert_int_equal(bl_recover_bond(r, 9), BL_RECOVER_HEARD);
	assert_int_equal(bl_recover_bond(r, 77), BL_RECOVER_FREE);
	bl_recover_bye(r, now, 3);
	assert_int_equal(bl_recover_bond(r, 3), BL_RECOVER_HEARD);
	assert_int_equal(bl_recover_link_down(r, now, 9, 3, 3, 900, 1), BL_RECOVER_OK);
	carry_out(r);
	assert_int_equal(bl_recover_node(r, 3)->state, BL_DET_GONE);
	assert_int_equal(bl_recover_failure_at(r, 0)->step, BL_RECOVER_FINISHED);
	assert_int_equal(bl_recover_bond(r, 3), BL_RECOVER_FREE);
	bl_recover_forget(r, now, 3);
	carry_out(r);
	assert_int_equal(bl_recover_node(r, 3)->state, BL_DET_GONE);
	assert_false(bl_recover_node(r, 3)->agent);
	assert_int_equal(bl_recover_node(r, 3)->naddrs, 0);
	assert_true(bl_recover_node(r, 9)->port[2].barred);
	bl_recover_free(r);
}

/* A failure that waits for a node that never comes back goes on when the node is forgotten. */
static void bl_recover_forget__who_is_waited_for(void **state)
{
	struct bl_recover *r = begin(3);
	const struct bl_recover_proc p = { .port = 61696, .life = 1, .t = 700 };
	struct bl_recover_hello h;
	struct bl_recover_out o;

	(void)state;
	/* Host 3 is not heard by the switch any more, and its session is over. */
	h = hello_switch(2);
	assert_int_equal(bl_recover_hello(r, now, &h), BL_RECOVER_OK);
	carry_out(r);
	bl_recover_bye(r, now, 3);
	assert_int_equal(bl_recover_proc_down(r, now, 1, &p), BL_RECOVER_OK);
	now += 10 * MS;
	bl_recover_tick(r, now);
	while (bl_recover_next(r, &o))
		if (o.what == BL_RECOVER_SAVE_FAILURE)
			bl_recover_saved_failure(r, now, o.number);
	bl_recover_done(r, now, 1, 1);
	bl_recover_done(r, now, 2, 1);
	assert_int_equal(bl_recover_failure(r, 1)->step, BL_RECOVER_ANNOUNCED);
	assert_int_equal(bl_recover_bond(r, 3), BL_RECOVER_FREE);
	bl_recover_forget(r, now, 3);
	assert_true(bl_recover_failure(r, 1)->step == BL_RECOVER_RESUMED);
	assert_null(bl_recover_node(r, 3));
	carry_out(r);
	assert_int_equal(bl_recover_failure(r, 1)->step, BL_RECOVER_FINISHED);
	bl_recover_free(r);
}

/*
 * A node that makes up neighbours in each of its HELLOs leaves room for nodes, and its frozen ports
 * do not pile up.
 */
static void bl_recover_hello__made_up_names(void **state)
{
	struct bl_recover *r = begin(3);
	static struct bl_recover_port port[BL_RECOVER_PORTS_MAX];
	struct bl_recover_hello h = { .id = 4,
				      .epoch = 5,
				      .kind = BL_DET_SWITCH,
				      .port = port,
				      .nports = BL_RECOVER_PORTS_MAX };
	enum bl_recover_reason why = BL_RECOVER_OK;
	uint32_t k, i;

	(void)state;
	for (k = 0; k < 100; k++) {
		for (i = 0; i < BL_RECOVER_PORTS_MAX; i++)
			port[i] = (struct bl_recover_port){ .port = i,
							    .neighbour = 100000 + k * 1000 + i,
							    .role = BL_RECOVER_DOWN };
		assert_int_equal(bl_recover_hello(r, now, &h), BL_RECOVER_OK);
		carry_out(r);
	}
	assert_true(bl_recover_nodes(r) <= BL_RECOVER_NODES_MAX / 2 + BL_RECOVER_PORTS_MAX + 1);
	h = hello_host(1);
	h.id = 7;
	h.naddrs = 0;
	assert_int_equal(bl_recover_hello(r, now, &h), BL_RECOVER_OK);
	/* new numbers of frozen ports in each HELLO */
	h = (struct bl_recover_hello){ .id = 4,
				       .epoch = 5,
				       .kind = BL_DET_SWITCH,
				       .port = port,
				       .nports = BL_RECOVER_PORTS_MAX };
	for (k = 0; k < 10; k++) {
		for (i = 0; i < BL_RECOVER_PORTS_MAX; i++)
			port[i] = (struct bl_recover_port){ .port = k * BL_RECOVER_PORTS_MAX + i,
							    .neighbour = 9,
							    .role = BL_RECOVER_UP,
							    .state = BL_DET_SILENT,
							    .c = 5 };
		why = bl_recover_hello(r, now, &h);
		assert_true(bl_recover_node(r, 4)->nports <= 2 * BL_RECOVER_PORTS_MAX);
	}
	assert_int_equal(why, BL_RECOVER_FULL);
	bl_recover_free(r);
}

/*
 * A host claims 4096 endpoints, has its switch report its link silent, and keeps its session. It is
 * the one that is cut off; the rack goes on.
 */
static void bl_recover_hello__claims_many_endpoints(void **state)
{
	static uint16_t endpoint[BL_RECOVER_ENDPOINTS_MAX];
	struct bl_recover *r = begin(4);
	struct bl_recover_hello h = hello_host(4);
	uint32_t i;

	(void)state;
	for (i = 0; i < BL_RECOVER_ENDPOINTS_MAX; i++)
		endpoint[i] = (uint16_t)(i + 1);
	h.endpoint = endpoint;
	h.nendpoints = BL_RECOVER_ENDPOINTS_MAX;
	assert_int_equal(bl_recover_hello(r, now, &h), BL_RECOVER_OK);
	assert_int_equal(bl_recover_link_down(r, now, 9, 4, 4, 900, 1), BL_RECOVER_OK);
	carry_out(r);
	assert_int_equal(bl_recover_node(r, 4)->state, BL_DET_GONE);
	for (i = 1; i <= 3; i++)
		assert_int_equal(bl_recover_node(r, i)->state, BL_DET_UP);
	bl_recover_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_recover_forget__invented_nodes),
		cmocka_unit_test(bl_recover_forget__after_its_failure),
		cmocka_unit_test(bl_recover_forget__who_is_waited_for),
		cmocka_unit_test(bl_recover_hello__made_up_names),
		cmocka_unit_test(bl_recover_hello__claims_many_endpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
