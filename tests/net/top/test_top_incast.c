// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on a rack, fifteen hosts or seven to one, in each mode of the switch. top_switches.h lists
 * what must hold.
 */
#include "tests/net/top/top_switches.h"

/* @senders hosts send @bytes each to h1. */
static void incast(int family, unsigned int senders, uint64_t bytes)
{
	open_rack(senders + 1);
	begin(family, senders, bytes);
	finish();
	nothing_lost();
}

RACK_TEST(incast__pace)
{
	incast(AF_INET6, 15, 128 << 10);
}

RACK_TEST(incast__pace_data_first)
{
	rack.lab.spec.admission.data_first = true;
	incast(AF_INET, 7, 128 << 10);
}

RACK_TEST(incast__drop)
{
	rack.lab.spec.admission.token_mode = BL_TOKEN_DROP + 1;
	incast(AF_INET, 7, 128 << 10);
	CHECK(of_switches(BL_R_TOKEN_EXPIRED) == 0, "nothing waits that could grow old");
}

/*
 * Small flows of known size send unscheduled frames. These may be dropped in their class, which is
 * one frame deep; data may not.
 */
RACK_TEST(incast__unscheduled_class)
{
	static const struct bl_flow_hint hint = { .bytes = 8000 };
	uint64_t n;

	rack.lab.spec.admission.unscheduled = true;
	rack.lab.spec.admission.top.v[BL_TOP_O_UNSCHED] = 4 + 1;
	w.hint = &hint;
	open_rack(8);
	begin(AF_INET, 7, 8000);
	finish();
	n = queued(BL_CL_UNSCHED).put;
	fprintf(stderr, "  %" PRIu64 " unscheduled frames, %" PRIu64 " dropped\n", n,
		of_switches(BL_R_QUEUE_FULL));
	CHECK(n, "none was unscheduled");
	CHECK(dropped(BL_CL_DATA) == was.data && dropped(BL_CL_CONTROL) == was.control, "data, or "
											"signals, "
											"were "
											"dropped");
}

/* Ports without a meter: tokens are limited, and everything else is sent at once. */
RACK_TEST(drop__nothing_is_metered)
{
	unmetered = true;
	open_rack(3);
	begin(AF_INET, 2, 2 << 20);
	finish();
	CHECK(of_switches(BL_R_TOKEN_PASSED) >= 2 * (2 << 20) / 1460, "%" PRIu64 " tokens passed",
	      of_switches(BL_R_TOKEN_PASSED));
	CHECK(!of_switches(BL_R_QUEUED), "something was queued");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(incast__pace),
		cmocka_unit_test(incast__pace_data_first),
		cmocka_unit_test(incast__drop),
		cmocka_unit_test(incast__unscheduled_class),
		cmocka_unit_test(drop__nothing_is_metered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
