// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Total order among 2, 8 and 16 endpoints, on one switch (L2) and on a leaf-spine fabric (L3, ECMP). Nothing may be lost here: windows are so small that
 * no queue can overflow, and nobody is taken for dead.
 */
#include "traffic.h"

static void run(unsigned int endpoints, unsigned int hosts, struct tr_cfg cfg)
{
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	if (rack.lab.spec.leaf_spine)
		rack.lab.spec.l3 = true;
	rack_open();
	for (i = 0; i < endpoints; i++) {
		cfg.host = i % hosts;
		cfg.fn = tr_mix;
		cfg.ring_bytes = TR_RING_TIGHT(endpoints);
		tr_add(&cfg);
	}
	tr_go();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	CHECK(TR_SUM(late_dropped) == 0, "%" PRIu64 " messages came late", TR_SUM(late_dropped));
	CHECK(TR_SUM(duplicates) == 0, "duplicates");
	CHECK(rack_count_all(BL_R_PROMISE_BROKEN) == 0, "a FIFO is broken");
	CHECK(rack_count_all(BL_R_WRONG_CPU) == 0, "frames on the wrong CPU");
}

RACK_TEST(rack__2_endpoints_all_to_all)
{
	run(2, 2, (struct tr_cfg){ .scatterings = 2000, .len = 200, .items = 2 });
}

RACK_TEST(rack__8_endpoints_all_to_all)
{
	run(8, 8, (struct tr_cfg){ .scatterings = 400, .len = 200 });
}

RACK_TEST(rack__8_endpoints_random_subsets)
{
	run(8, 8, (struct tr_cfg){ .scatterings = 600, .len = 1400, .fan = 5, .items = 4, .more = 100 });
}

RACK_TEST(rack__16_endpoints_on_4_hosts)
{
	run(16, 4, (struct tr_cfg){ .scatterings = 200, .len = 300, .fan = 16, .items = 2, .more = 64 });
}

RACK_TEST(rack__sizes_to_1_MiB)
{
	run(6, 4, (struct tr_cfg){ .scatterings = 60, .len = 1450, .fan = 3, .items = 3, .more = 64, .big = 40 });
}

RACK_TEST(rack__paced)
{
	run(4, 4, (struct tr_cfg){ .scatterings = 200, .len = 100, .fan = 3, .gap_us = 1000 });
}

RACK_TEST(leaf_spine__2_endpoints)
{
	rack.lab.spec.leaf_spine = true;
	run(2, 2, (struct tr_cfg){ .scatterings = 1000, .len = 200 });
}

RACK_TEST(leaf_spine__8_endpoints_random_subsets)
{
	rack.lab.spec.leaf_spine = true;
	run(8, 8, (struct tr_cfg){ .scatterings = 300, .len = 1400, .fan = 5, .items = 3, .more = 100 });
}

RACK_TEST(leaf_spine__16_endpoints_all_to_all)
{
	rack.lab.spec.leaf_spine = true;
	run(16, 8, (struct tr_cfg){ .scatterings = 120, .len = 300, .items = 2 });
}

RACK_TEST(leaf_spine__ipv6)
{
	rack.lab.spec.leaf_spine = true;
	run(4, 4, (struct tr_cfg){ .scatterings = 300, .len = 1400, .fan = 3, .big = 8, .family = AF_INET6 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__2_endpoints_all_to_all),
		cmocka_unit_test(rack__8_endpoints_all_to_all),
		cmocka_unit_test(rack__8_endpoints_random_subsets),
		cmocka_unit_test(rack__16_endpoints_on_4_hosts),
		cmocka_unit_test(rack__sizes_to_1_MiB),
		cmocka_unit_test(rack__paced),
		cmocka_unit_test(leaf_spine__2_endpoints),
		cmocka_unit_test(leaf_spine__8_endpoints_random_subsets),
		cmocka_unit_test(leaf_spine__16_endpoints_all_to_all),
		cmocka_unit_test(leaf_spine__ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
