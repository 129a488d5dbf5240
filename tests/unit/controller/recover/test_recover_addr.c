// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The failure procedure (controller/recover/recover_core.h) and the addresses by which hosts are
 * told who failed. A process of a host that has reported no address is not announced, since no host
 * could discard what came from it.
 */
#include "tests/unit/unit.h"

#include "controller/recover/recover_core.h"

#define MS     1000000ULL
#define SWITCH 9

/* of hosts 1 and 2 */
static const uint8_t addr[3][16] = { { 0 },
				     { [10] = 0xff, 0xff, 10, 0, 0, 1 },
				     { [10] = 0xff, 0xff, 10, 0, 0, 2 } };

static struct bl_recover *r;
static uint64_t now;

static void hello(uint32_t id, uint32_t naddrs)
{
	static const uint16_t endpoint = 61696;
	const struct bl_recover_port up = { .neighbour = SWITCH, .role = BL_RECOVER_UP },
				     down[2] = { { .port = 0, .neighbour = 1 },
						 { .port = 1, .neighbour = 2 } };
	struct bl_recover_hello h = { .id = id,
				      .epoch = 5,
				      .kind = id == SWITCH ? BL_DET_SWITCH : BL_DET_HOST,
				      .addr = &addr[id == 2 ? 2 : 1],
				      .naddrs = naddrs,
				      .port = id == SWITCH ? down : &up,
				      .nports = id == SWITCH ? 2 : 1,
				      .endpoint = &endpoint,
				      .nendpoints = id != SWITCH };

	assert_int_equal(bl_recover_hello(r, now, &h), BL_RECOVER_OK);
}

/* Lets time pass and carries out all outputs. Returns whether FAIL was among them. */
static bool fails(void)
{
	struct bl_recover_out o;
	bool fail = false;
	int k;

	for (k = 0; k < 3; k++) {
		now += 100 * MS;
		bl_recover_tick(r, now);
		while (bl_recover_next(r, &o)) {
			if (o.what == BL_RECOVER_SAVE_NODE)
				bl_recover_saved_node(r, now, o.node);
			else if (o.what == BL_RECOVER_SAVE_FAILURE)
				bl_recover_saved_failure(r, now, o.number);
			else if (o.what == BL_RECOVER_BAR)
				bl_recover_barred(r, now, o.node, bl_recover_node(r, o.node)->bar);
			fail |= o.what == BL_RECOVER_FAIL;
		}
	}
	return fail;
}

static void begin(uint32_t naddrs)
{
	const struct bl_recover_cfg cfg = { .settle_ns = 5 * MS,
					    .answer_ns = 60000 * MS,
					    .grace_ns = 1 };

	now = 1000 * MS;
	r = bl_recover_new(&cfg);
	assert_non_null(r);
	bl_recover_start(r, now, 5);
	now += MS;
	hello(SWITCH, 0);
	hello(1, naddrs);
	hello(2, 1);
	assert_false(fails());
}

/*
 * The process is refused, and nothing is decided. The host reports an address, and reports the
 * process again, as it does after each HELLO.
 */
static void bl_recover_proc_down__no_address(void **state)
{
	begin(0);
	assert_int_equal(bl_recover_proc_down(r, now, 1,
					      &(struct bl_recover_proc){ .port = 61696, .t = 777 }),
			 BL_RECOVER_NO_ADDRESS);
	assert_false(fails());
	hello(1, 1);
	assert_int_equal(bl_recover_proc_down(r, now, 1,
					      &(struct bl_recover_proc){ .port = 61696, .t = 777 }),
			 BL_RECOVER_OK);
	assert_true(fails());
	bl_recover_free(r);
}

/*
 * The process was accepted, but before the decision the host reports that it has no address any
 * more.
 */
static void bl_recover_proc_down__address_lost(void **state)
{
	begin(1);
	assert_int_equal(bl_recover_proc_down(r, now, 1,
					      &(struct bl_recover_proc){ .port = 61696, .t = 777 }),
			 BL_RECOVER_OK);
	hello(1, 0);
	assert_false(fails());
	assert_int_equal(bl_recover_failures(r), 0);
	hello(1, 1);
	assert_int_equal(bl_recover_proc_down(r, now, 1,
					      &(struct bl_recover_proc){ .port = 61696, .t = 777 }),
			 BL_RECOVER_OK);
	assert_true(fails());
	assert_int_equal(bl_recover_failure_at(r, 0)->failed[0].naddrs, 1);
	bl_recover_free(r);
}

/* A host that never had an address is announced like any other: the others need not wait for it. */
static void bl_recover_hello__host_without_address(void **state)
{
	begin(0);
	assert_int_equal(bl_recover_link_down(r, now, SWITCH, 0, 1, 500, 1), BL_RECOVER_OK);
	assert_true(fails());
	assert_int_equal(bl_recover_done(r, now, 2, 1), BL_RECOVER_OK);
	assert_false(fails());
	assert_int_equal(bl_recover_failure_at(r, 0)->step, BL_RECOVER_RESUMED);
	bl_recover_free(r);
}

/*
 * Host 2 reports the address of host 1 besides its own. What is announced of host 2 must not make
 * the others discard what host 1 sends. When host 1 has failed, its address may move on.
 */
static void bl_recover_hello__stolen_address(void **state)
{
	const struct bl_recover_port up = { .neighbour = SWITCH, .role = BL_RECOVER_UP };
	static const uint16_t endpoint = 61696;
	struct bl_recover_hello h = { .id = 2,
				      .epoch = 5,
				      .kind = BL_DET_HOST,
				      .addr = &addr[1],
				      .naddrs = 2,
				      .port = &up,
				      .nports = 1,
				      .endpoint = &endpoint,
				      .nendpoints = 1 };

	(void)state;
	begin(1);
	assert_int_equal(bl_recover_hello(r, now, &h), BL_RECOVER_ADDRESS_TAKEN);
	assert_false(fails());
	assert_int_equal(bl_recover_node(r, 2)->naddrs, 1);
	assert_memory_equal(bl_recover_node(r, 2)->addr[0], addr[2], 16);
	assert_int_equal(bl_recover_node_of(r, addr[1])->id, 1);
	assert_int_equal(bl_recover_proc_down(r, now, 2,
					      &(struct bl_recover_proc){ .port = 61696, .t = 777 }),
			 BL_RECOVER_OK);
	assert_true(fails());
	assert_int_equal(bl_recover_failure_at(r, 0)->failed[0].naddrs, 1);
	assert_memory_equal(bl_recover_failure_at(r, 0)->failed[0].addr[0], addr[2], 16);
	bl_recover_done(r, now, 1, 1);
	bl_recover_done(r, now, 2, 1);
	bl_recover_resumed(r, now, 2, 1);
	assert_int_equal(bl_recover_link_down(r, now, SWITCH, 0, 1, 500, 1), BL_RECOVER_OK);
	assert_true(fails());
	assert_int_equal(bl_recover_node(r, 1)->state, BL_DET_GONE);
	assert_int_equal(bl_recover_hello(r, now, &h), BL_RECOVER_OK);
	assert_int_equal(bl_recover_node(r, 2)->naddrs, 2);
	assert_int_equal(bl_recover_node_of(r, addr[1])->id, 2);
	bl_recover_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_recover_proc_down__no_address),
		cmocka_unit_test(bl_recover_proc_down__address_lost),
		cmocka_unit_test(bl_recover_hello__host_without_address),
		cmocka_unit_test(bl_recover_hello__stolen_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
