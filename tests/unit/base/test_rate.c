// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* base/rate.c: rates as people write them, as tc(8) reads them, and as a meter counts them. */
#include "tests/unit/unit.h"

#include "base/rate.h"

static void bl_rate_parse__table(void **state)
{
	static const struct {
		const char *text;
		uint64_t bits; /* 0: refused */
	} v[] = {
		{ "250mbit", 250000000 },
		{ "250Mbit", 250000000 },
		{ "1gbit", 1000000000 },
		{ "1.5gbit", 1500000000 },
		{ "2000kbit", 2000000 },
		{ "2000000bit", 2000000 },
		{ "2000000", 2000000 }, /* no unit: bits */
		{ "2mibit", 2 * 1024 * 1024 },
		{ "1gibit", 1024 * 1024 * 1024 },
		{ "125mbps", 1000000000 }, /* bytes per second */
		{ "250kbps", 2000000 },
		{ "250000bps", 2000000 },
		{ "1tbit", 1000000000000 },
		{ "1000gbit", 1000000000000 },
		{ "1000.001gbit", 0 },
		{ "1999999", 0 },
		{ "1999kbit", 0 },
		{ "", 0 },
		{ "mbit", 0 },
		{ "0", 0 },
		{ "-250mbit", 0 },
		{ " 250mbit", 0 },
		{ "+250mbit", 0 },
		{ "250 mbit", 0 },
		{ "250mbits", 0 },
		{ "250m", 0 },
		{ "250mbit ", 0 },
		{ "0x10000000", 0 },
		{ "inf", 0 },
		{ "nan", 0 },
		{ "1e400", 0 },
		{ "10%", 0 },
	};
	size_t k;

	for (k = 0; k < ARRAY_SIZE(v); k++) {
		uint64_t bits = 77;

		if (bl_rate_parse(v[k].text, &bits) != (v[k].bits != 0) ||
		    bits != (v[k].bits ? v[k].bits : 77))
			fail_msg("\"%s\": %llu", v[k].text, (unsigned long long)bits);
	}
}

static void bl_rate_text__reads_back(void **state)
{
	static const struct {
		uint64_t bits;
		const char *text;
	} v[] = {
		{ 0, "none" },
		{ 250000000, "250mbit" },
		{ 1000000000, "1gbit" },
		{ 1500000000, "1500mbit" },
		{ 2000001, "2000001bit" },
		{ 2001000, "2001kbit" },
		{ 1000000000000, "1000gbit" },
	};
	struct rnd r = { 1 };
	uint64_t bits;
	char text[32];
	size_t k;

	for (k = 0; k < ARRAY_SIZE(v); k++)
		assert_string_equal(bl_rate_text(v[k].bits, text, sizeof(text)), v[k].text);
	for (k = 0; k < 10000; k++) {
		uint64_t want = BL_RATE_MIN + rnd64(&r) % (BL_RATE_MAX - BL_RATE_MIN + 1);

		assert_true(bl_rate_parse(bl_rate_text(want, text, sizeof(text)), &bits));
		assert_int_equal(bits, want);
	}
}

static void bl_rate_ns_q20__edges(void **state)
{
	assert_int_equal(bl_rate_ns_q20(0), 0);
	assert_int_equal(bl_rate_ns_q20(250000000), 32u << 20);
	assert_int_equal(bl_rate_ns_q20(8000000000), 1u << 20);
	assert_int_equal(bl_rate_ns_q20(BL_RATE_MIN), 4000u << 20); /* fits into 32 bits */
	assert_int_equal(bl_rate_ns_q20(BL_RATE_MAX), 8389);        /* 8388.6 */
	/* 2796202.67 is rounded, not truncated. */
	assert_int_equal(bl_rate_ns_q20(3000000000), 2796203);
	assert_int_equal(bl_rate_of_q20(0), 0);
	assert_int_equal(bl_rate_of_q20(32u << 20), 250000000);
	assert_int_equal(bl_rate_of_q20(4000u << 20), BL_RATE_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_rate_parse__table),
		cmocka_unit_test(bl_rate_text__reads_back),
		cmocka_unit_test(bl_rate_ns_q20__edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
