// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/length_core.h, and that everything that counts a link's time or promises counts by it. */
#include "tests/unit/unit.h"

#include "core/fastpass/fastpass_core.h"
#include "core/pl2/pl2_core.h"
#include "core/pl2/pl2_switch_core.h"
#include "core/top/top_token_core.h"

static void bl_wire_bytes__table(void **state)
{
	static const struct {
		__u32 len, bytes;
	} t[] = { { 0, 84 },  { 14, 84 }, { 42, 84 },     { 59, 84 },
		  { 60, 84 }, { 61, 85 }, { 1514, 1538 }, { 1522, 1546 } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_wire_bytes(t[i].len), t[i].bytes);
	assert_int_equal(BL_RSV_SLOT_BYTES, 1538);
}

/*
 * A host's burst, the switch that it passes, and the receiver: frames of every length, padded on
 * the way.
 */
static void lengths__host_switch_receiver(void **state)
{
	const struct bl_rsv_cfg cfg = {
		.on = 1, .ns_q20 = 8 << 20, .limit_bytes = ~0U, .far_ns = ~0U, .lapse_ns = 1
	};
	const struct bl_hold_cfg host = { .policy = BL_POLICY_PL2, .coming_ns = 1 };
	struct bl_rsv_port in = { 0 }, out = { 0 };
	struct bl_rsv_pair pair = { 0 };
	struct bl_pl2_coming coming = { 0 };
	struct bl_pl2_grt grt = { 0 };
	struct bl_rsv_grant g;
	__u32 len, i;

	(void)state;
	for (len = 14; len <= 1522; len++) {
		const __u32 padded = len < 60 ? 60 : len;
		struct bl_pl2_dest d = { 0 };

		for (i = 0; i < 4; i++)
			bl_pl2_frame_added(&d, BL_RING_ENTRY(i, len), len);
		bl_rsv_ask(&cfg, &in, &out, &pair, d.bytes, len, 0, 0, 1000, 0, &g);
		assert_int_equal(g.reason, BL_R_RSV_GRANTED);
		grt.bytes = d.bytes;
		assert_true(bl_pl2_announce(&coming, &host, &grt, 1000) > 0);
		for (i = 0; i < 4; i++) {
			assert_int_equal(bl_rsv_data(&in, &out, &pair, padded, 0), BL_R_NONE);
			bl_pl2_arrived(&coming, padded);
		}
		assert_int_equal(pair.bytes, 0);
		assert_int_equal(coming.bytes, 0);
	}
}

/* The frames that one slot was asked for fit into it and take no longer than it lasts. */
static void lengths__slot_holds_what_was_counted(void **state)
{
	static const struct bl_meter gbit10 = { .ns_q20 = 838861 };
	__u32 len, n;

	(void)state;
	for (len = 14; len <= 1514; len++) {
		struct bl_fp_dest d = { 0 }, turn = { .room = bl_wire_bytes(1514), .first = 1 };
		__u64 ns = 0;

		for (n = 0; bl_fp_want(&d, len, 1514) == !n; n++) {
			assert_true(bl_wire_bytes(len) <= turn.room);
			bl_fp_frame_taken(&turn, len);
			ns += bl_wire_ns(&gbit10, len);
		}
		assert_int_equal(n, bl_wire_bytes(1514) / bl_wire_bytes(len));
		assert_true(ns <= 1230 + n); /* Each frame's time is rounded. */
	}
}

static void lengths__tokens(void **state)
{
	(void)state;
	assert_int_equal(bl_token_cost(8 << 20, 42), bl_token_cost(8 << 20, 60));
	assert_int_equal(bl_token_data_cost(8 << 20, 42), bl_token_data_cost(8 << 20, 60));
	assert_true(bl_token_data_cost(8 << 20, 61) > bl_token_data_cost(8 << 20, 60));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_wire_bytes__table),
		cmocka_unit_test(lengths__host_switch_receiver),
		cmocka_unit_test(lengths__slot_holds_what_was_counted),
		cmocka_unit_test(lengths__tokens),
	};

	return cmocka_run_group_tests_name("length_core", tests, NULL, NULL);
}
