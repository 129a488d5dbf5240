// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/top/top_token_core.h: tables at the edges, and paths. test_top_token_model.c compares both
 * modes with models.
 */
#include "tests/unit/unit.h"

#include "tests/unit/core/top/lost_swaps.h"

#include "core/top/top_token_core.h"

#define NS_10G 838861U /* bl_rate_ns_q20() of 10 Gbit/s: 0.8 ns */
#define NS_1G  (8U << 20)
#define Q20    (1ULL << 20)

static struct bl_token_cfg cfg_of(uint32_t frames, uint32_t expiry)
{
	return (struct bl_token_cfg){ .on = 1, .frames = frames, .expiry = expiry };
}

/* ---- time ---- */

static void bl_token_cost__edges(void **state)
{
	static const struct {
		uint32_t ns_q20, len;
		uint64_t want;
	} t[] = {
		{ NS_1G, 60, 8 * 1622 * Q20 },    /* 84 bytes on the wire: one token time */
		{ NS_10G, 60, 838861ULL * 1622 }, /* Nothing is rounded. */
		{ NS_1G, 59, 8 * 1622 * Q20 },    /* The NIC pads the frame. */
		{ NS_1G, 61, 8 * 1623 * Q20 },
		{ NS_1G, 80, 8 * 1642 * Q20 },    /* IPv6 */
		{ NS_10G, 84, 838861ULL * 1646 }, /* with a VLAN tag */
		/* No token is so long: charged by its length, rounded up. */
		{ NS_1G, 85, (109 * 8 * 1622 * Q20 + 83) / 84 },
		{ 1, 85, 2105 }, /* 2104.74 */
		{ 0, 60, 0 },
		{ UINT32_MAX, 1522, (1546ULL * 1622 * UINT32_MAX + 83) / 84 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_token_cost(t[i].ns_q20, t[i].len), t[i].want);
	assert_int_equal(bl_token_unit(NS_1G) >> 20, 12976);
	/* A full frame of the data's share takes as long as the token that it answers. */
	assert_int_equal(bl_token_data_cost(NS_1G, 1514), bl_token_unit(NS_1G));
	assert_int_equal(bl_token_data_cost(NS_1G, 1513), (1537 * 8 * 1622 * Q20 + 1537) / 1538);
	assert_int_equal(bl_token_data_cost(1, 60), 89); /* 88.59 */
}

static void bl_token_ahead__edges(void **state)
{
	const uint64_t unit = 12976 * Q20, far = BL_TOKEN_AHEAD_MAX * unit;
	static const uint64_t nows[] = {
		0, 1, 1000000007, (1ULL << 44) - 1, 1ULL << 44, (1ULL << 44) + 5, 1ULL << 62
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(nows); i++) {
		uint64_t q = nows[i] << 20;

		assert_int_equal(bl_token_ahead(q, nows[i], unit), 0);
		assert_int_equal(bl_token_ahead(q + 1, nows[i], unit), 1);
		assert_int_equal(bl_token_ahead(q - 1, nows[i], unit), 0);
		assert_int_equal(bl_token_ahead(q - far, nows[i], unit), 0);
		assert_int_equal(bl_token_ahead(q + far, nows[i], unit), far);
		assert_int_equal(bl_token_ahead(q + far + 1, nows[i], unit), 0);
	}
}

/* ---- mode drop ---- */

static void bl_token_limit__by_class(void **state)
{
	static const uint32_t want[][BL_TOP_CLASSES + 1] = {
		{ 8, 8, 7, 6, 5, 4, 3 }, { 6, 6, 5, 4, 3, 2, 1 },        { 5, 5, 4, 3, 2, 1, 1 },
		{ 1, 1, 1, 1, 1, 1, 1 }, { 64, 64, 63, 62, 61, 60, 59 },
	};
	size_t i;
	uint32_t c;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(want); i++)
		for (c = 0; c < BL_TOP_CLASSES; c++) {
			struct bl_token_cfg cfg = cfg_of(want[i][0], 8);

			assert_int_equal(bl_token_limit(&cfg, c), want[i][c + 1]);
		}
}

/*
 * For each class: at its limit, and the smallest step beyond. A token that passes moves the word by
 * its cost; one that is refused leaves the word unchanged.
 */
static void bl_token_decide__edges(void **state)
{
	const uint64_t now = 123456789, unit = bl_token_unit(NS_10G);
	static const uint32_t frames[] = { 1, 2, 6, 8, 64 };
	uint32_t c, lost;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(frames); i++)
		for (c = 0; c < BL_TOP_CLASSES; c++) {
			struct bl_token_cfg cfg = cfg_of(frames[i], 64);
			uint64_t room = (bl_token_limit(&cfg, c) - 1) * unit, word;

			word = (now << 20) + room;
			assert_int_equal(bl_token_decide(&cfg, (__u64 *)&word, NS_10G, c, 60, now,
							 &lost),
					 BL_R_TOKEN_PASSED);
			assert_int_equal(word, (now << 20) + room + unit);
			word = (now << 20) + room + 1;
			assert_int_equal(bl_token_decide(&cfg, (__u64 *)&word, NS_10G, c, 60, now,
							 &lost),
					 BL_R_TOKEN_LIMIT);
			assert_int_equal(word, (now << 20) + room + 1);
			assert_int_equal(lost, 0);
			/* The output is idle, whenever the last token passed. */
			word = (now << 20) - 1;
			assert_int_equal(bl_token_decide(&cfg, (__u64 *)&word, NS_10G, c, 80, now,
							 &lost),
					 BL_R_TOKEN_PASSED);
			assert_int_equal(word, (now << 20) + bl_token_cost(NS_10G, 80));
		}
}

static void bl_token_decide__expired_before_limit(void **state)
{
	const uint64_t now = 5, unit = bl_token_unit(NS_1G);
	static const struct {
		uint32_t frames, expiry, cls;
		uint64_t ahead; /* in token times, and one step more if odd */
		enum bl_reason want;
	} t[] = {
		{ 8, 4, 0, 8, BL_R_TOKEN_PASSED },   { 8, 4, 0, 9, BL_R_TOKEN_EXPIRED },
		{ 8, 4, 5, 4, BL_R_TOKEN_PASSED },   { 8, 4, 5, 5, BL_R_TOKEN_LIMIT },
		{ 8, 4, 5, 8, BL_R_TOKEN_LIMIT },    { 8, 4, 5, 9, BL_R_TOKEN_EXPIRED },
		{ 64, 8, 0, 16, BL_R_TOKEN_PASSED }, { 64, 8, 0, 17, BL_R_TOKEN_EXPIRED },
		{ 8, 8, 0, 15, BL_R_TOKEN_LIMIT },   { 8, 8, 0, 17, BL_R_TOKEN_EXPIRED },
	};
	uint32_t lost;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_token_cfg cfg = cfg_of(t[i].frames, t[i].expiry);
		uint64_t word = (now << 20) + t[i].ahead / 2 * unit + (t[i].ahead & 1), was = word;

		assert_int_equal(bl_token_decide(&cfg, (__u64 *)&word, NS_1G, t[i].cls, 60, now,
						 &lost),
				 t[i].want);
		assert_int_equal(word != was, t[i].want == BL_R_TOKEN_PASSED);
	}
}

static void bl_token_decide__no_rate_no_limit(void **state)
{
	struct bl_token_cfg cfg = cfg_of(1, 1);
	uint64_t word = 0;
	uint32_t i, lost;

	(void)state;
	for (i = 0; i < 1000; i++)
		assert_int_equal(bl_token_decide(&cfg, (__u64 *)&word, 0, 5, 60, 77, &lost),
				 BL_R_TOKEN_PASSED);
}

static void bl_token_decide__lost_swaps(void **state)
{
	struct bl_token_cfg cfg = cfg_of(8, 8);
	uint64_t word = 99 << 20, was = word;
	uint32_t lost;
	int k;

	(void)state;
	for (k = 0; k < BL_TOKEN_TRIES; k++) {
		swaps_lost = k;
		word = was;
		assert_int_equal(bl_token_decide(&cfg, (__u64 *)&word, NS_1G, 0, 60, 99, &lost),
				 BL_R_TOKEN_PASSED);
		assert_int_equal(lost, 0);
		assert_int_equal(word, was + bl_token_unit(NS_1G));
		assert_int_equal(swaps_lost, 0);
	}
	swaps_lost = BL_TOKEN_TRIES;
	word = was;
	assert_int_equal(bl_token_decide(&cfg, (__u64 *)&word, NS_1G, 0, 60, 99, &lost),
			 BL_R_TOKEN_LIMIT);
	assert_int_equal(lost, 1);
	assert_int_equal(word, was);
	assert_int_equal(swaps_lost, 0);
}

static void bl_token_budget__edges(void **state)
{
	const uint64_t now = 1ULL << 43, unit = bl_token_unit(NS_1G);
	uint64_t word;

	(void)state;
	word = (now << 20) + 15 * unit;
	assert_int_equal(bl_token_budget((__u64 *)&word, NS_1G, 60, 16, now), 1);
	assert_int_equal(word, (now << 20) + 16 * unit);
	assert_int_equal(bl_token_budget((__u64 *)&word, NS_1G, 60, 16, now), 0);
	assert_int_equal(word, (now << 20) + 16 * unit);
	word = (now << 20) + 15 * unit + 1;
	assert_int_equal(bl_token_budget((__u64 *)&word, NS_1G, 60, 16, now), 0);
	/* A long frame counts as several tokens, in proportion to its length. */
	word = 0;
	assert_int_equal(bl_token_budget((__u64 *)&word, NS_1G, 816, 16, now), 1);
	assert_int_equal(word, (now << 20) + 10 * unit);
	assert_int_equal(bl_token_budget((__u64 *)&word, 0, 60, 1, now), 1);
}

/*
 * A host that sends a token in each slot of its own link, and leaves 5 % of the link unused, is no
 * flood and is not limited, also over IPv6 and with a VLAN tag. A host that sends a fifth more is
 * limited.
 */
static void bl_token_budget__a_good_receiver(void **state)
{
	static const uint32_t lens[] = { 60, 64, 80, 84 };
	struct bl_token_cfg cfg = cfg_of(8, 8);
	uint64_t slot = (8 * 1622 * 100 + 94) / 95, in, out, t, i, refused;
	uint32_t lost;
	size_t k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(lens); k++) {
		for (in = out = 0, i = 0, t = 1; i < 10000; i++, t += slot) {
			assert_true(
				bl_token_budget((__u64 *)&in, NS_1G, lens[k], BL_TOKEN_INPUT, t));
			assert_int_equal(bl_token_decide(&cfg, (__u64 *)&out, NS_1G, 5, lens[k], t,
							 &lost),
					 BL_R_TOKEN_PASSED);
		}
		for (in = 0, refused = 0, i = 0, t = 1; i < 10000; i++, t += slot * 10 / 12)
			refused +=
				!bl_token_budget((__u64 *)&in, NS_1G, lens[k], BL_TOKEN_INPUT, t);
		assert_true(refused > 1000);
	}
}

/* ---- mode pace ---- */

static void bl_token_ready__two_tokens(void **state)
{
	struct bl_token_port p = { .ns_q20 = NS_1G };
	const uint64_t now = 1000000, unit = 12976 * Q20;
	static const struct {
		uint64_t ahead_q20, want;
	} t[] = { { 0, 0 },
		  { 12976 * Q20, 0 },
		  { 12976 * Q20 + 1, 1 },
		  { 12976 * Q20 + Q20, 1 },
		  { 12976 * Q20 + Q20 + 1, 2 },
		  { 2 * 12976 * Q20, 12976 } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		p.out_q20 = (now << 20) + t[i].ahead_q20;
		assert_int_equal(bl_token_ready(&p, now), now + t[i].want);
	}
	p.out_q20 = 0;
	bl_token_sent(&p, BL_CL_TOKEN3, 60, now);
	assert_int_equal(p.out_q20, (now << 20) + unit);
	assert_int_equal(bl_token_ready(&p, now), now);
	bl_token_sent(&p, BL_CL_TOKEN0, 60, now);
	assert_int_equal(bl_token_ready(&p, now), now + 12976);
	bl_token_sent(&p, BL_CL_CONTROL, 60, now);
	bl_token_sent(&p, BL_CL_UNSCHED, 60, now);
	assert_int_equal(p.out_q20, (now << 20) + 2 * unit);
	assert_int_equal(p.data_q20, 0);
}

static void bl_token_expired__edges(void **state)
{
	struct bl_token_port p = { .ns_q20 = NS_1G };
	struct bl_token_cfg cfg = cfg_of(8, 8);

	(void)state;
	assert_false(bl_token_expired(&cfg, &p, 500, 500 + 8 * 12976));
	assert_true(bl_token_expired(&cfg, &p, 500, 500 + 8 * 12976 + 1));
	/* Another CPU has put the token after this one read the clock. */
	assert_false(bl_token_expired(&cfg, &p, 500, 499));
	assert_false(bl_token_expired(&cfg, &p, 500, 0));
	cfg.expiry = 1;
	assert_false(bl_token_expired(&cfg, &p, 0, 12976));
	assert_true(bl_token_expired(&cfg, &p, 0, 12977));
}

#define B(c) (1U << BL_CL_##c)

static void bl_token_choose__table(void **state)
{
	const uint64_t now = 1ULL << 40, unit = bl_token_unit(NS_1G);
	static const struct {
		uint32_t bits, data_first;
		bool token_ready, data_in_share;
		uint32_t want;
	} t[] = {
		{ B(CONTROL) | B(TOKEN0) | B(DATA) | B(UNSCHED), 0, true, true, BL_CL_CONTROL },
		{ B(CONTROL) | B(TOKEN0) | B(DATA) | B(UNSCHED), 1, true, true, BL_CL_CONTROL },
		/* tokens first */
		{ B(TOKEN0) | B(TOKEN5) | B(DATA), 0, true, true, BL_CL_TOKEN0 },
		{ B(TOKEN5) | B(DATA) | B(UNSCHED), 0, true, true, BL_CL_TOKEN5 },
		{ B(TOKEN0) | B(TOKEN5) | B(DATA), 0, false, true, BL_CL_DATA },
		{ B(TOKEN1) | B(UNSCHED), 0, false, true, BL_CL_UNSCHED },
		{ B(TOKEN1) | B(UNSCHED), 0, true, true, BL_CL_TOKEN1 },
		{ B(TOKEN1), 0, false, true, BL_CL_COUNT },
		{ B(DATA) | B(UNSCHED), 0, false, false, BL_CL_DATA },
		/* data first, within its share */
		{ B(TOKEN0) | B(DATA), 1, true, true, BL_CL_DATA },
		{ B(TOKEN0) | B(DATA), 1, true, false, BL_CL_TOKEN0 },
		{ B(TOKEN0) | B(DATA), 1, false, false, BL_CL_DATA },
		{ B(TOKEN4) | B(UNSCHED), 1, false, true, BL_CL_UNSCHED },
		{ B(TOKEN4) | B(UNSCHED), 1, true, false, BL_CL_TOKEN4 },
		{ B(TOKEN2) | B(TOKEN3), 1, false, true, BL_CL_COUNT },
		{ B(DATA), 1, true, false, BL_CL_DATA },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_token_cfg cfg = cfg_of(8, 8);
		struct bl_token_port p = { .ns_q20 = NS_1G,
					   .out_q20 = (now << 20) + unit + !t[i].token_ready,
					   .data_q20 = (now << 20) + unit + !t[i].data_in_share };

		cfg.data_first = t[i].data_first;
		assert_int_equal(bl_token_choose(&cfg, &p, t[i].bits, now), t[i].want);
	}
}

static void bl_token_sent__data_owes_one_frame(void **state)
{
	struct bl_token_port p = { .ns_q20 = NS_1G };
	const uint64_t now = 7777777, unit = bl_token_unit(NS_1G);
	int i;

	(void)state;
	bl_token_sent(&p, BL_CL_DATA, 1514, now);
	assert_int_equal(p.data_q20, (now << 20) + unit);
	for (i = 0; i < 100; i++)
		bl_token_sent(&p, BL_CL_DATA, 1514, now);
	assert_int_equal(p.data_q20, (now << 20) + 2 * unit);
	assert_int_equal(p.out_q20, 0);
}

static void bl_token_again__table(void **state)
{
	const uint64_t now = 50000, unit = bl_token_unit(NS_1G);
	static const struct {
		uint32_t bits;
		uint64_t ahead, free, want; /* @ahead in token times */
	} t[] = {
		{ 0, 2, 60000, BL_DUE_NEVER },
		{ B(TOKEN0), 0, 60000, 60000 },
		{ B(TOKEN0), 2, 60000, 62976 },
		{ B(TOKEN0) | B(TOKEN5), 2, 70000, 70000 },
		{ B(TOKEN0) | B(DATA), 2, 60000, 60000 },
		{ B(TOKEN0) | B(CONTROL), 2, 60000, 60000 },
		{ B(TOKEN5) | B(UNSCHED), 2, 0, 0 },
		{ B(DATA), 2, 0, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_token_port p = { .ns_q20 = NS_1G,
					   .out_q20 = (now << 20) + t[i].ahead * unit };

		assert_int_equal(bl_token_next_ns(&p, t[i].bits, t[i].free, now), t[i].want);
	}
}

/* ---- paths ---- */

static void bl_top_flow_port__both_directions(void **state)
{
	struct rnd r = rnd_seeded("paths");
	uint32_t count[15] = { 0 }, i, k;

	(void)state;
	for (i = 0; i < 30000; i++) {
		uint8_t a[16], b[16];
		uint64_t x, y;
		uint16_t s = (uint16_t)rnd64(&r), d = (uint16_t)rnd64(&r), port;

		for (k = 0; k < 16; k++) {
			a[k] = (uint8_t)rnd64(&r);
			b[k] = (uint8_t)rnd64(&r);
		}
		x = i & 1 ? bl_top_addr6(a) : bl_top_addr4(BL_BE32(0x0a090001 + i % 7));
		y = i & 1 ? bl_top_addr6(b) : bl_top_addr4(BL_BE32(0x0a090101 + i % 5));
		port = bl_top_flow_port(x, y, s, d);
		assert_int_equal(bl_top_flow_port(y, x, d, s), port);
		assert_true(port >= BL_TOP_SPORT_BASE &&
			    port < BL_TOP_SPORT_BASE + BL_TOP_SPORT_COUNT && port < BL_TOP_PORT);
		assert_true(bl_top_path(port, 15) < 15);
		count[bl_top_path(port, 15)]++;
	}
	/* 2000 are expected for each; six standard deviations are 260. */
	for (i = 0; i < 15; i++)
		assert_true(count[i] > 1740 && count[i] < 2260);
	/* The usual case: flows of two hosts that differ in one port only, by one. */
	memset(count, 0, sizeof(count));
	for (i = 0; i < 3000; i++)
		count[bl_top_path(bl_top_flow_port(bl_top_addr4(BL_BE32(0x0a090001)),
						   bl_top_addr4(BL_BE32(0x0a090002)),
						   (uint16_t)(32768 + i), 5001),
				  3)]++;
	for (i = 0; i < 3; i++)
		assert_true(count[i] > 850 && count[i] < 1150);
}

static void bl_top_flow_port__fixed(void **state)
{
	static const uint8_t a[16] = { 0xfd, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2 },
			     b[16] = { 0xfd, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2 };

	(void)state;
	/* Hosts and switches of different builds must agree. */
	assert_int_equal(bl_top_flow_port(bl_top_addr4(BL_BE32(0x0a000002)),
					  bl_top_addr4(BL_BE32(0x0a000102)), 40000, 5001),
			 0xce09);
	assert_int_equal(bl_top_flow_port(bl_top_addr6(a), bl_top_addr6(b), 40000, 5001), 0xca07);
	assert_int_equal(bl_top_flow_port(bl_top_addr4(BL_BE32(0x0a000002)),
					  bl_top_addr4(BL_BE32(0x0a000102)), 0, 0),
			 0xcf0c);
}

static void bl_top_path__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_top_path(BL_TOP_SPORT_BASE, 4), 0);
	assert_int_equal(bl_top_path(BL_TOP_SPORT_BASE + BL_TOP_SPORT_COUNT / 4 - 1, 4), 0);
	assert_int_equal(bl_top_path(BL_TOP_SPORT_BASE + BL_TOP_SPORT_COUNT / 4, 4), 1);
	assert_int_equal(bl_top_path(BL_TOP_SPORT_BASE + BL_TOP_SPORT_COUNT - 1, 4), 3);
	assert_int_equal(bl_top_path(0xffff, 15), 14);
	assert_int_equal(bl_top_path(BL_TOP_SPORT_BASE + 1234, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_token_cost__edges),
		cmocka_unit_test(bl_token_ahead__edges),
		cmocka_unit_test(bl_token_limit__by_class),
		cmocka_unit_test(bl_token_decide__edges),
		cmocka_unit_test(bl_token_decide__expired_before_limit),
		cmocka_unit_test(bl_token_decide__no_rate_no_limit),
		cmocka_unit_test(bl_token_decide__lost_swaps),
		cmocka_unit_test(bl_token_budget__edges),
		cmocka_unit_test(bl_token_budget__a_good_receiver),
		cmocka_unit_test(bl_token_ready__two_tokens),
		cmocka_unit_test(bl_token_expired__edges),
		cmocka_unit_test(bl_token_choose__table),
		cmocka_unit_test(bl_token_sent__data_owes_one_frame),
		cmocka_unit_test(bl_token_again__table),
		cmocka_unit_test(bl_top_flow_port__both_directions),
		cmocka_unit_test(bl_top_flow_port__fixed),
		cmocka_unit_test(bl_top_path__edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
