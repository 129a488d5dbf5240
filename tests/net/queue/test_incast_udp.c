// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline lab run incast --transport udp` under each policy: senders that offer twice what the
 * link carries lose half of it, and the receiver still gets most of a link's worth of whole
 * datagrams.
 */
#include "tests/net/barline_run.h"

static char barline[512];

static void incast__udp_goodput(void **state)
{
	static const char *const policies[] = { "none", "pl2", "top" };
	json_t *said, *row;
	unsigned int i;

	(void)state;
	assert_true(barline_path(barline, sizeof(barline)));
	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		const char *const argv[] = { barline,    "lab",       "run",         "incast",
					     "--policy", policies[i], "--transport", "udp",
					     "--hosts",  "3",         "--seconds",   "3",
					     "--rate",   "20mbit",    "-j",          NULL };

		assert_int_equal(barline_run(&said, argv), 0);
		row = json_array_get(json_object_get(said, "results"), 0);
		printf("%s: %.1f %% of the rate\n", policies[i],
		       json_number_value(json_object_get(row, "goodput_percent")));
		/*
		 * A machine that loses its CPU costs some throughput; only a fault costs nearly
		 * all.
		 */
		assert_true(json_number_value(json_object_get(row, "goodput_percent")) > 30);
		json_decref(said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(incast__udp_goodput),
	};

	return cmocka_run_group_tests_name("incast_udp", tests, NULL, NULL);
}
