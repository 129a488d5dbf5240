// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/log_hist_core.h: bins and their limits at the edges. */
#include "tests/unit/unit.h"

#include "core/log_hist_core.h"

static void log_bin__edges(void **state)
{
	static const struct {
		uint64_t v;
		unsigned int first, bin;
	} rows[] = {
		{ 0, 10, 0 },
		{ 1023, 10, 0 },
		{ 1024, 10, 1 },
		{ 2047, 10, 1 },
		{ 2048, 10, 2 },
		{ (1ULL << 28) - 1, 10, 18 },
		{ 1ULL << 28, 10, 19 },
		{ 1ULL << 29, 10, 19 },
		{ UINT64_MAX, 10, 19 },
		{ 0, 0, 0 },
		{ 1, 0, 1 },
		{ 2, 0, 2 },
		{ UINT64_MAX, 60, 4 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if (bl_log_bin(rows[i].v, rows[i].first) != rows[i].bin)
			fail_msg("%llu from %u: %u", (unsigned long long)rows[i].v, rows[i].first,
				 bl_log_bin(rows[i].v, rows[i].first));
}

/* Each value is below the limit of its bin, and not below that of the bin before. */
static void log_limit__fits_bin(void **state)
{
	unsigned int bin;

	(void)state;
	for (bin = 0; bin < BL_LOG_BINS - 1; bin++) {
		assert_int_equal(bl_log_bin(bl_log_limit(bin, 7) - 1, 7), bin);
		assert_int_equal(bl_log_bin(bl_log_limit(bin, 7), 7), bin + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_bin__edges),
		cmocka_unit_test(log_limit__fits_bin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
