// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A host that leaves in order (Leave in proto/ctl.proto): it is announced as left and not as
 * failed, nothing waits for it afterwards, and it joins anew when it says so.
 */
#include "tests/unit/unit.h"

#include "controller/message.h"
#include "tests/unit/controller/recover/recover_rack.h"

static unsigned int asked_2; /* how often host 2 was to answer an announcement of another one */

/* Does what the controller says: all nodes obey, and host 2 answers no announcement. */
static void obey(struct bl_recover *r, uint64_t now)
{
	struct bl_recover_out o;

	while (bl_recover_next(r, &o)) {
		const struct bl_recover_node *n = bl_recover_node(r, o.node);
		uint32_t i;

		if (o.what == BL_RECOVER_SAVE_NODE)
			bl_recover_saved_node(r, now, o.node);
		else if (o.what == BL_RECOVER_SAVE_FAILURE)
			bl_recover_saved_failure(r, now, o.number);
		else if (o.what == BL_RECOVER_BAR)
			bl_recover_barred(r, now, o.node, n->bar);
		else if (o.what == BL_RECOVER_FREEZE)
			for (i = 0; i < n->nports; i++)
				bl_recover_link_down(r, now, o.node, n->port[i].port,
						     n->port[i].neighbour, 900, 1);
		else if (o.what == BL_RECOVER_FAIL && o.node == 2)
			asked_2++;
		else if (o.what == BL_RECOVER_FAIL)
			bl_recover_done(r, now, o.node, o.number);
		else if (o.what == BL_RECOVER_RESUME)
			bl_recover_resumed(r, now, o.node, o.number);
	}
}

/* Host 2 leaves. Only its own input is asked about. */
static struct bl_recover *left(void)
{
	struct bl_recover *r = rack(3);
	struct bl_recover_out o;

	assert_int_equal(bl_recover_leave(r, 10 * MS, 2), BL_RECOVER_OK);
	assert_int_equal(bl_recover_leave(r, 10 * MS, 2), BL_RECOVER_REPEATED);
	bl_recover_tick(r, 10 * MS);
	while (bl_recover_next(r, &o)) {
		if (o.what == BL_RECOVER_FREEZE)
			bl_recover_link_down(r, 10 * MS, 9, 2, 2, 900, 1);
		else if (o.what == BL_RECOVER_BAR)
			bl_recover_barred(r, 10 * MS, o.node, bl_recover_node(r, o.node)->bar);
	}
	bl_recover_tick(r, 20 * MS);
	obey(r, 20 * MS);
	return r;
}

static void leave__is_no_failure(void **state)
{
	struct bl_recover *r = left();
	const struct bl_recover_failure *f = bl_recover_failure(r, 1);
	const struct bl_recover_proc p = { .port = 61696, .life = 7, .t = 1000 };

	(void)state;
	assert_non_null(f);
	assert_true(f->nfailed == 1 && f->failed[0].node == 2 && !f->failed[0].proc.port);
	assert_int_equal(f->failed[0].why, BL_DET_LEFT);
	assert_string_equal(bl_det_why_name(BL_DET_LEFT), "left");
	assert_int_equal(f->step, BL_RECOVER_FINISHED);
	assert_true(bl_recover_node(r, 2)->state == BL_DET_GONE &&
		    bl_recover_node(r, 2)->why == BL_DET_LEFT);
	/* It is gone. Another failure does not wait for its answer. */
	bl_recover_bye(r, 30 * MS, 2);
	asked_2 = 0;
	assert_int_equal(bl_recover_proc_down(r, 40 * MS, 1, &p), BL_RECOVER_OK);
	bl_recover_tick(r, 50 * MS);
	obey(r, 50 * MS);
	assert_int_equal(bl_recover_failure(r, 2)->step, BL_RECOVER_FINISHED);
	assert_int_equal(asked_2, 0);
	/* a switch does not leave, nor does who is gone */
	assert_int_equal(bl_recover_leave(r, 60 * MS, 9), BL_RECOVER_UNKNOWN_NODE);
	assert_int_equal(bl_recover_leave(r, 60 * MS, 2), BL_RECOVER_FAILED_NODE);
	assert_int_equal(bl_recover_leave(r, 60 * MS, 77), BL_RECOVER_UNKNOWN_NODE);
	bl_recover_free(r);
}

/* A HELLO in the middle of it does not make the host a member that stays. */
static void leave__hello_meanwhile(void **state)
{
	struct bl_recover *r = rack(3);
	struct bl_recover_hello h = hello_host(2);

	(void)state;
	assert_int_equal(bl_recover_leave(r, 10 * MS, 2), BL_RECOVER_OK);
	assert_int_equal(bl_recover_hello(r, 11 * MS, &h), BL_RECOVER_OK);
	assert_int_equal(bl_recover_node(r, 2)->state, BL_DET_DOWN);
	bl_recover_free(r);
}

/* What is saved tells the next leader that the host has left. */
static void leave__next_leader(void **state)
{
	struct bl_recover *old = left(), *r = bl_recover_new(&cfg);
	uint64_t number, at;
	struct ctl_bytes b;
	uint32_t i;

	(void)state;
	assert_non_null(r);
	for (i = 0; i < bl_recover_nodes(old); i++) {
		b = ctl_save_node(bl_recover_node_at(old, i));
		assert_int_equal(ctl_load_node(r, b.data, b.len), 0);
		free(b.data);
	}
	b = ctl_save_failure(bl_recover_failure(old, 1), 1);
	assert_int_equal(ctl_load_failure(r, b.data, b.len, &number, &at), 0);
	free(b.data);
	bl_recover_start(r, 100 * MS, 6);
	assert_true(bl_recover_node(r, 2)->state == BL_DET_GONE &&
		    bl_recover_node(r, 2)->why == BL_DET_LEFT);
	bl_recover_free(old);
	bl_recover_free(r);
}

static void leave__joins_anew(void **state)
{
	struct bl_recover *r = left();
	struct bl_recover_hello h = hello_host(2);

	(void)state;
	h.rejoin = true;
	assert_int_equal(bl_recover_hello(r, 100 * MS, &h), BL_RECOVER_OK);
	obey(r, 100 * MS);
	assert_true(bl_recover_node(r, 2)->state == BL_DET_UP && !bl_recover_node(r, 2)->why);
	/* The next time it fails as any other node. */
	assert_int_equal(bl_recover_down(r, 110 * MS, 2), BL_RECOVER_OK);
	assert_false(bl_recover_node(r, 2)->leaves);
	bl_recover_free(r);
}

/*
 * A host that leaves before its switch has reported the link to it has left when the switch does.
 * It asks again and again meanwhile, and is told that it has asked.
 */
static void leave__before_the_link_is_known(void **state)
{
	struct bl_recover *r = bl_recover_new(&cfg);
	struct bl_recover_hello h = hello_switch(3);
	uint32_t i;

	(void)state;
	assert_non_null(r);
	bl_recover_start(r, 0, 5);
	said_epoch = 5;
	sw_port[1].state = BL_DET_REMOVED;
	sw_port[1].neighbour = 0;
	assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
	for (i = 1; i <= 3; i++) {
		h = hello_host(i);
		assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
	}
	obey(r, 0);
	assert_false(bl_recover_node(r, 2)->linked);
	assert_int_equal(bl_recover_leave(r, 10 * MS, 2), BL_RECOVER_OK);
	bl_recover_tick(r, 20 * MS);
	obey(r, 20 * MS);
	assert_null(bl_recover_failure(r, 1));
	assert_int_equal(bl_recover_leave(r, 30 * MS, 2), BL_RECOVER_REPEATED);

	h = hello_switch(3);
	assert_int_equal(bl_recover_hello(r, 40 * MS, &h), BL_RECOVER_OK);
	for (i = 0; i < 10; i++) {
		bl_recover_tick(r, (40 + 10 * i) * MS);
		obey(r, (40 + 10 * i) * MS);
	}
	assert_non_null(bl_recover_failure(r, 1));
	assert_int_equal(bl_recover_failure(r, 1)->step, BL_RECOVER_FINISHED);
	assert_true(bl_recover_node(r, 2)->state == BL_DET_GONE &&
		    bl_recover_node(r, 2)->why == BL_DET_LEFT);
	bl_recover_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leave__is_no_failure),
		cmocka_unit_test(leave__hello_meanwhile),
		cmocka_unit_test(leave__next_leader),
		cmocka_unit_test(leave__joins_anew),
		cmocka_unit_test(leave__before_the_link_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
