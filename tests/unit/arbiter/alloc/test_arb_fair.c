// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of arbiter/alloc/alloc*.c: what fair and weighted give to each flow, counted over many
 * windows. The verifier sees every run.
 */
#include "tests/unit/arbiter/alloc/alloc_nets.h"

/* What a flow with @left MTUs waiting asks for next, so that it always has enough. */
static uint32_t fill_up(struct rnd *r, uint32_t left)
{
	return left < 512 ? 512 - left + rnd_below(r, 700) : 0;
}

/*
 * @n senders and one receiver (or the reverse), all with more than they can have: after every
 * window they differ by one MTU at most, with any window and any code.
 */
static void bl_alloc_fair__within_one_mtu(void **state)
{
	static const uint32_t flows[] = { 1, 2, 3, 5, 7, 12, 13, 63, 64, 65, 100, 129, 300, 600 };
	static const enum bl_alloc_isa isas[] = { BL_ISA_PLAIN, BL_ISA_BMI2, BL_ISA_AVX512 };
	struct rnd r = rnd_seeded("bl_alloc_fair__within_one_mtu");
	uint32_t i, window, k, w, isa, out;

	(void)state;
	for (isa = 0; isa < 3; isa++)
		for (i = 0; has(isas[isa]) && i < ARRAY_SIZE(flows); i++)
			for (window = 8; window <= 512; window *= 2)
				for (out = 0; out < 2; out++) {
					struct bl_alloc_cfg cfg = { .endpoints = flows[i] + 1,
								    .policy = BL_ALLOC_FAIR,
								    .window_slots = window,
								    .isa = isas[isa] };
					struct bl_alloc *a = make(&cfg);
					struct bl_verify *v = bl_verify_new(&cfg);
					uint64_t got[601] = { 0 };

					for (w = 0; w < 12; w++) {
						uint64_t least = UINT64_MAX, most = 0, sum = 0;
						struct bl_grants g;

						for (k = 1; k <= flows[i]; k++) {
							/*
							 * each has enough, but all differ in how
							 * much was asked for, and when
							 */
							const uint32_t left = bl_verify_waiting(
									       v, out ? 0 : k,
									       out ? k : 0),
								       mtus = fill_up(&r, left);

							assert_int_equal(
								bl_alloc_demand(a, out ? 0 : k,
										out ? k : 0, mtus,
										0),
								BL_ALLOC_OK);
							bl_verify_demand(v, out ? 0 : k,
									 out ? k : 0, mtus);
						}
						g = run(a, v, (uint64_t)w * window);
						for (k = 1; k <= flows[i]; k++) {
							got[k] += given_to(&g, out ? 0 : k,
									   out ? k : 0);
							least = got[k] < least ? got[k] : least;
							most = got[k] > most ? got[k] : most;
							sum += got[k];
						}
						assert_true(most - least <= 1);
						assert_int_equal(sum, (uint64_t)(w + 1) * window);
					}
					bl_alloc_free(a);
					bl_verify_free(v);
				}
}

/*
 * Max-min, not only equal: sender 0 sends to 10 and to 11. 10 receives from 0, 1, 2 and 3, and 11
 * from 0 and 4 only. So the pairs to 10 have a quarter each; 0 has 3/4 left for 11, of which 0 and
 * 4 have a half each. Pair 5 to 12 has links of its own and is limited by no other pair.
 */
static void bl_alloc_fair__max_min(void **state)
{
	static const struct {
		uint32_t src, dst, share; /* of 4 */
	} t[] = { { 0, 10, 1 }, { 1, 10, 1 }, { 2, 10, 1 }, { 3, 10, 1 },
		  { 0, 11, 2 }, { 4, 11, 2 }, { 5, 12, 4 } };
	uint32_t window, w, k;

	(void)state;
	for (window = 8; window <= 512; window *= 2) {
		struct bl_alloc_cfg cfg = { .endpoints = 13,
					    .policy = BL_ALLOC_FAIR,
					    .window_slots = window };
		struct bl_alloc *a = make(&cfg);
		struct bl_verify *v = bl_verify_new(&cfg);
		uint64_t got[ARRAY_SIZE(t)] = { 0 };

		for (w = 0; w < 50; w++) {
			struct bl_grants g;

			for (k = 0; k < ARRAY_SIZE(t); k++) {
				const uint32_t mtus =
					1000 - bl_verify_waiting(v, t[k].src, t[k].dst);

				assert_int_equal(bl_alloc_demand(a, t[k].src, t[k].dst, mtus, 0),
						 BL_ALLOC_OK);
				bl_verify_demand(v, t[k].src, t[k].dst, mtus);
			}
			g = run(a, v, (uint64_t)w * window);
			for (k = 0; k < ARRAY_SIZE(t); k++)
				got[k] += given_to(&g, t[k].src, t[k].dst);
		}
		for (k = 0; k < ARRAY_SIZE(t); k++) {
			const uint64_t want = (uint64_t)t[k].share * 50 * window / 4;

			if (got[k] + want / 50 < want || got[k] > want + want / 50)
				print_error("window %u: %u to %u got %llu of %llu\n", window,
					    t[k].src, t[k].dst, (unsigned long long)got[k],
					    (unsigned long long)want);
			assert_in_range(got[k], want - want / 50, want + want / 50);
		}
		bl_alloc_free(a);
		bl_verify_free(v);
	}
}

/*
 * Shares where links differ: a sender of 4 and three senders of 1 into a receiver of 2; and behind
 * an oversubscribed up-link, where only the number of flows counts.
 */
static void bl_alloc_fair__rates_and_tiers(void **state)
{
	static const uint16_t src_cap[] = { 4, 1, 1, 1, 1 }, dst_cap[] = { 1, 1, 1, 1, 2 };
	static const uint16_t rack_of[] = { 0, 0, 0, 0, 1, 1, 1, 1 }, up[] = { 1, 1 },
			      down[] = { 4, 4 };
	struct bl_alloc_cfg rates = { .endpoints = 5,
				      .policy = BL_ALLOC_FAIR,
				      .window_slots = 256,
				      .src_cap = src_cap,
				      .dst_cap = dst_cap };
	struct bl_alloc_cfg tiers = { .endpoints = 8,
				      .policy = BL_ALLOC_FAIR,
				      .window_slots = 256,
				      .racks = 2,
				      .rack_of = rack_of,
				      .rack_up = up,
				      .rack_down = down };
	struct bl_alloc *a = make(&rates);
	struct bl_verify *v = bl_verify_new(&rates);
	uint64_t got[8] = { 0 };
	uint32_t k, w;

	(void)state;
	for (w = 0; w < 10; w++) {
		struct bl_grants g;

		for (k = 0; k < 4; k++) {
			const uint32_t mtus = 2000 - bl_verify_waiting(v, k, 4);

			assert_int_equal(bl_alloc_demand(a, k, 4, mtus, 0), BL_ALLOC_OK);
			bl_verify_demand(v, k, 4, mtus);
		}
		g = run(a, v, (uint64_t)w * 256);
		for (k = 0; k < 4; k++)
			got[k] += given_to(&g, k, 4);
		assert_int_equal(got[0] + got[1] + got[2] + got[3], (uint64_t)(w + 1) * 256 * 2);
		for (k = 1; k < 4; k++)
			assert_true(got[k] + 1 >= got[0] && got[0] + 1 >= got[k]);
	}
	bl_alloc_free(a);
	bl_verify_free(v);
	/*
	 * Four hosts of rack 0 send to four of rack 1 over one packet a slot; flows that stay in
	 * the rack are not limited.
	 */
	a = make(&tiers);
	v = bl_verify_new(&tiers);
	memset(got, 0, sizeof(got));
	for (w = 0; w < 10; w++) {
		struct bl_grants g;

		for (k = 0; k < 4; k++) {
			uint32_t mtus = 2000 - bl_verify_waiting(v, k, k + 4);

			assert_int_equal(bl_alloc_demand(a, k, k + 4, mtus, 0), BL_ALLOC_OK);
			bl_verify_demand(v, k, k + 4, mtus);
			mtus = 2000 - bl_verify_waiting(v, k, (k + 1) % 4);
			assert_int_equal(bl_alloc_demand(a, k, (k + 1) % 4, mtus, 0), BL_ALLOC_OK);
			bl_verify_demand(v, k, (k + 1) % 4, mtus);
		}
		g = run(a, v, (uint64_t)w * 256);
		for (k = 0; k < 4; k++) {
			got[k] += given_to(&g, k, k + 4);
			got[4 + k] += given_to(&g, k, (k + 1) % 4);
		}
		for (k = 1; k < 4; k++)
			assert_true(got[k] + 1 >= got[0] && got[0] + 1 >= got[k]);
		/*
		 * a quarter of the time over the up-link, three quarters within the rack: nothing
		 * is idle
		 */
		assert_int_equal(got[0] + got[1] + got[2] + got[3], (uint64_t)(w + 1) * 256);
		for (k = 0; k < 4; k++)
			assert_in_range(got[4 + k], (w + 1) * 256 * 3 / 4 - 1,
					(w + 1) * 256 * 3 / 4 + 1);
	}
	bl_alloc_free(a);
	bl_verify_free(v);
}

/*
 * By weight: after every window the pairs behind one receiver have had their shares, up to three
 * MTUs.
 */
static void bl_alloc_weighted__shares(void **state)
{
	static const uint32_t weights[][4] = { { 1, 1, 1, 1 },
					       { 1, 2, 3, 4 },
					       { 1, 10, 100, 127 },
					       { 5, 7, 5, 7 },
					       { 127, 1, 1, 1 } };
	uint32_t i, window, k, w, sum;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(weights); i++)
		for (window = 8; window <= 512; window *= 2) {
			struct bl_alloc_cfg cfg = { .endpoints = 5,
						    .policy = BL_ALLOC_WEIGHTED,
						    .window_slots = window };
			struct bl_alloc *a = make(&cfg);
			struct bl_verify *v = bl_verify_new(&cfg);
			uint64_t got[4] = { 0 }, all = 0;

			for (sum = 0, k = 0; k < 4; k++) {
				assert_int_equal(bl_alloc_weight(a, k + 1, 0, weights[i][k]),
						 BL_ALLOC_OK);
				sum += weights[i][k];
			}
			for (w = 0; w < 40; w++) {
				struct bl_grants g;

				for (k = 0; k < 4; k++) {
					const uint32_t mtus = 600 - bl_verify_waiting(v, k + 1, 0);

					assert_int_equal(bl_alloc_demand(a, k + 1, 0, mtus, 0),
							 BL_ALLOC_OK);
					bl_verify_demand(v, k + 1, 0, mtus);
				}
				g = run(a, v, (uint64_t)w * window);
				for (k = 0; k < 4; k++)
					got[k] += given_to(&g, k + 1, 0);
				all += window;
				assert_int_equal(got[0] + got[1] + got[2] + got[3], all);
				for (k = 0; k < 4; k++) {
					const double want = (double)all * weights[i][k] / sum,
						     off = (double)got[k] - want;

					if (off > 3 || off < -3)
						print_error("weights %u, window %u, %u: %.2f off "
							    "after %u windows\n",
							    i, window, k, off, w + 1);
					assert_true(off <= 3 && off >= -3);
				}
			}
			bl_alloc_free(a);
			bl_verify_free(v);
		}
}

/*
 * A quota below what a pair may have in a window: its rest joins the next pass, and all have the
 * same in the end.
 */
static void bl_alloc_run__quota_below_the_share(void **state)
{
	static const enum bl_alloc_policy policies[] = { BL_ALLOC_FAIR, BL_ALLOC_WEIGHTED };
	uint32_t p, k;

	(void)state;
	for (p = 0; p < 2; p++) {
		struct bl_alloc_cfg cfg = {
			.endpoints = 5, .policy = policies[p], .window_slots = 256, .quota_mtus = 40
		};
		struct bl_alloc *a = make(&cfg);
		struct bl_verify *v = bl_verify_new(&cfg);
		struct bl_grants g;

		for (k = 1; k <= 4; k++) {
			assert_int_equal(bl_alloc_demand(a, k, 0, 40, 0), BL_ALLOC_OK);
			assert_int_equal(bl_alloc_demand(a, k, 0, 40, 0), BL_ALLOC_OK);
			assert_int_equal(bl_alloc_demand(a, k, 0, 1, 0), BL_ALLOC_QUOTA);
			bl_verify_demand(v, k, 0, 80);
		}
		g = run(a, v, 0);
		for (k = 1; k <= 4; k++)
			assert_int_equal(given_to(&g, k, 0), 64);
		assert_int_equal(run(a, v, 256).mtus, 64);
		assert_int_equal(bl_alloc_waiting(a), 0);
		bl_alloc_free(a);
		bl_verify_free(v);
	}
}

/*
 * Only waiting flows have shares: a flow that was served or forgotten has none, and the one that is
 * left needs one visit for a whole window.
 */
static void bl_alloc_fair__the_departed_have_no_share(void **state)
{
	struct bl_alloc_cfg cfg = { .endpoints = 6, .policy = BL_ALLOC_FAIR, .window_slots = 64 };
	struct bl_alloc *a = make(&cfg);
	struct bl_verify *v = bl_verify_new(&cfg);
	uint64_t visits;
	uint32_t k;

	(void)state;
	for (k = 1; k <= 4; k++) {
		assert_int_equal(bl_alloc_demand(a, k, 0, 10, 0), BL_ALLOC_OK);
		bl_verify_demand(v, k, 0, 10);
	}
	assert_int_equal(run(a, v, 0).mtus, 40);
	assert_int_equal(bl_alloc_demand(a, 2, 0, 10, 0), BL_ALLOC_OK);
	assert_int_equal(bl_alloc_forget(a, 2), 10);
	visits = bl_alloc_stats(a)->visits;
	assert_int_equal(bl_alloc_demand(a, 5, 0, 64, 0), BL_ALLOC_OK);
	bl_verify_demand(v, 5, 0, 64);
	assert_int_equal(run(a, v, 64).mtus, 64);
	assert_int_equal(bl_alloc_stats(a)->visits - visits, 1);
	bl_alloc_free(a);
	bl_verify_free(v);
}

/*
 * What a window costs, in visits to flows: where no port is asked for more than it has, all flows
 * are lifted once, and no packets are moved.
 */
static void bl_alloc_fair__work_below_the_limit(void **state)
{
	struct bl_alloc_cfg cfg = { .endpoints = 64, .policy = BL_ALLOC_FAIR, .window_slots = 128 };
	struct bl_alloc *a = make(&cfg);
	struct bl_verify *v = bl_verify_new(&cfg);
	uint32_t s, k;

	(void)state;
	/* every port has flows of 1 to 15 MTUs, 120 in all */
	for (s = 0; s < 64; s++)
		for (k = 1; k <= 15; k++) {
			assert_int_equal(bl_alloc_demand(a, s, (s + k) % 64, k, 0), BL_ALLOC_OK);
			bl_verify_demand(v, s, (s + k) % 64, k);
		}
	run(a, v, 0);
	assert_int_equal(bl_alloc_stats(a)->lifts, 64 * 15);
	assert_int_equal(bl_alloc_stats(a)->chains, 0);
	bl_alloc_free(a);
	bl_verify_free(v);
}

/*
 * 32 endpoints with 14 requests each. @each: MTUs of a request. @chains: set to the number of
 * packets for which others were moved in the first window, and in the first two.
 */
static void crowd(uint32_t each, uint64_t chains[2])
{
	struct bl_alloc_cfg cfg = { .endpoints = 32, .policy = BL_ALLOC_FAIR, .window_slots = 128 };
	struct bl_alloc *a = make(&cfg);
	struct bl_verify *v = bl_verify_new(&cfg);
	struct rnd r = { 7 }; /* the same flows in every call */
	uint32_t s, d, k, w;

	for (s = 0; s < 32; s++)
		for (k = 0; k < 14; k++) {
			do
				d = (s + 1 + rnd_below(&r, 31)) % 32;
			while (bl_verify_waiting(v, s, d));
			assert_int_equal(bl_alloc_demand(a, s, d, each, 0), BL_ALLOC_OK);
			bl_verify_demand(v, s, d, each);
		}
	for (w = 0; w < 2; w++) {
		run(a, v, (uint64_t)w * 128);
		chains[w] = bl_alloc_stats(a)->chains;
	}
	bl_alloc_free(a);
	bl_verify_free(v);
}

/*
 * No packets are moved for short requests that have just come; for flows that wait, and for those
 * that want much, they are.
 */
static void bl_alloc_fair__work_for_those_who_wait(void **state)
{
	uint64_t chains[2];

	(void)state;
	crowd(12, chains);
	assert_int_equal(chains[0], 0);
	crowd(300, chains);
	assert_true(chains[0] > 0);
	crowd(40, chains);
	assert_int_equal(chains[0], 0);
	assert_true(chains[1] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_alloc_fair__within_one_mtu),
		cmocka_unit_test(bl_alloc_fair__max_min),
		cmocka_unit_test(bl_alloc_fair__rates_and_tiers),
		cmocka_unit_test(bl_alloc_weighted__shares),
		cmocka_unit_test(bl_alloc_run__quota_below_the_share),
		cmocka_unit_test(bl_alloc_fair__the_departed_have_no_share),
		cmocka_unit_test(bl_alloc_fair__work_below_the_limit),
		cmocka_unit_test(bl_alloc_fair__work_for_those_who_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
