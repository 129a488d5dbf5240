// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Histograms as they are read: core/queue/hist_core.h against the bins that maps/queue_abi.h
 * defines.
 */
#include "tests/unit/unit.h"
#include "core/queue/hist_core.h"

/* The bin of a value, exactly as maps/queue_abi.h defines it. */
static unsigned int bin_of(uint64_t v)
{
	unsigned int e, bin;

	if (v < 16)
		return (unsigned int)v;
	for (e = 4; e < 63 && v >> (e + 1); e++)
		;
	bin = 16 + (e - 4) * 8 + (unsigned int)(v >> (e - 3) & 7);
	return bin < BL_HIST_BINS ? bin : BL_HIST_BINS - 1;
}

static void bin__edges(void **state)
{
	static const struct {
		uint64_t v, least, greatest;
	} t[] = {
		{ 0, 0, 0 },
		{ 1, 1, 1 },
		{ 15, 15, 15 },
		{ 16, 16, 17 },
		{ 17, 16, 17 },
		{ 18, 18, 19 },
		{ 31, 30, 31 },
		{ 32, 32, 35 },
		{ 35, 32, 35 },
		{ 36, 36, 39 },
		{ 63, 60, 63 },
		{ 64, 64, 71 },
		{ 354, 352, 383 },
		{ 383, 352, 383 },
		{ 384, 384, 415 },
		{ 4095, 3840, 4095 },
		{ 4096, 4096, 4607 },
		{ (15 << 18) - 1, 14 << 18, (15 << 18) - 1 },
		{ 15 << 18, 15 << 18, 15 << 18 },
		{ 1 << 22, 15 << 18, 15 << 18 },
		{ UINT64_MAX, 15 << 18, 15 << 18 },
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		unsigned int b = bin_of(t[i].v);

		assert_int_equal(hist_least(b), t[i].least);
		assert_int_equal(hist_greatest(b), t[i].greatest);
	}
}

/*
 * Every value is within its bin, and bins meet without a gap: checked for all values below 2^17,
 * and around all powers of two.
 */
static void bin__every_value(void **state)
{
	uint64_t v;
	unsigned int b, e;

	for (v = 0; v < 1 << 17; v++) {
		b = bin_of(v);
		assert_true(hist_least(b) <= v && v <= hist_greatest(b));
	}
	for (e = 17; e < 22; e++)
		for (v = (1ULL << e) - 3; v < (1ULL << e) + 3; v++) {
			b = bin_of(v);
			assert_true(hist_least(b) <= v && v <= hist_greatest(b));
		}
	for (b = 1; b < BL_HIST_BINS; b++)
		assert_int_equal(hist_least(b), hist_greatest(b - 1) + 1);
}

/* A bin is at most 12.5 % wide. */
static void bin__width(void **state)
{
	unsigned int b;

	for (b = 16; b < BL_HIST_BINS; b++)
		assert_true((hist_greatest(b) + 1 - hist_least(b)) * 8 <= hist_least(b));
}

static void quantile__empty(void **state)
{
	static const struct bl_hist none;
	uint64_t v = 77;

	assert_int_equal(hist_bin_at(&none, 5000), -1);
	assert_false(hist_quantile(&none, 10000, 0, &v));
	assert_int_equal(v, 77);
}

/* Ranks are rounded up, also at their edges. */
static void quantile__ranks(void **state)
{
	static const struct {
		uint64_t low, high; /* number of values of 3; number of values of 9 */
		unsigned int q;
		uint64_t want;
	} t[] = {
		{ 1, 0, 0, 3 },         { 1, 0, 1, 3 },         { 1, 0, 10000, 3 },
		{ 1, 1, 5000, 3 },      { 1, 1, 5001, 9 },      { 1, 2, 5000, 9 },
		{ 2, 1, 5000, 3 },      { 99, 1, 9900, 3 },     { 98, 2, 9900, 9 },
		{ 99, 1, 9901, 9 },     { 999, 1, 9990, 3 },    { 998, 2, 9990, 9 },
		{ 999, 1, 10000, 9 },   { 998, 1, 9990, 9 },    { 0, 1, 0, 9 },
		{ 9999, 1, 9999, 3 },   { 9998, 2, 9999, 9 },   { 9999, 1, 10000, 9 },
		{ 99990, 10, 9999, 3 }, { 99989, 11, 9999, 9 },
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct bl_hist h = { .n = { [3] = t[i].low, [9] = t[i].high } };
		uint64_t v = 0;

		assert_true(hist_quantile(&h, t[i].q, 0, &v));
		assert_int_equal(v, t[i].want);
	}
}

/* The counts fit into 64 bits, but not multiplied by 10000. */
static void quantile__many(void **state)
{
	struct bl_hist h = { .n = { [3] = UINT64_MAX / 4, [9] = UINT64_MAX / 4 } };
	uint64_t v = 0;

	assert_true(hist_quantile(&h, 4999, 0, &v));
	assert_int_equal(v, 3);
	assert_true(hist_quantile(&h, 5001, 0, &v));
	assert_int_equal(v, 9);
}

/* The worked example of the header, and the greatest value of the last bin. */
static void quantile__units(void **state)
{
	struct bl_hist h = { 0 };
	uint64_t v = 77;

	h.n[0] = 1; /* Every queue was empty. */
	assert_true(hist_quantile(&h, 9990, BL_HIST_LEN_SHIFT, &v));
	assert_int_equal(v, 0);
	h.n[bin_of(15 * 1514 >> BL_HIST_LEN_SHIFT)] = 1000;
	assert_true(hist_quantile(&h, 9990, BL_HIST_LEN_SHIFT, &v));
	assert_int_equal(v, 24512);
	h.n[BL_HIST_BINS - 1] = 2;
	assert_true(hist_quantile(&h, 9990, BL_HIST_NS_SHIFT, &v));
	assert_int_equal(v, (15ULL << 18) << 5);
	assert_true(hist_quantile(&h, 9980, BL_HIST_NS_SHIFT, &v));
	assert_int_equal(v, 383 << 5);
}

static void add__span(void **state)
{
	struct bl_hist sum = { .n = { [0] = 1, [159] = 5 } },
		       before = { .n = { [0] = 10, [20] = 3 } },
		       after = { .n = { [0] = 12, [20] = 3, [159] = 7 } };

	hist_add(&sum, &after, &before);
	assert_int_equal(sum.n[0], 3);
	assert_int_equal(sum.n[20], 0);
	assert_int_equal(sum.n[159], 12);
	hist_add(&sum, &before, NULL);
	assert_int_equal(sum.n[0], 13);
	assert_int_equal(hist_count(&sum), 13 + 3 + 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bin__edges),      cmocka_unit_test(bin__every_value),
		cmocka_unit_test(bin__width),      cmocka_unit_test(quantile__empty),
		cmocka_unit_test(quantile__ranks), cmocka_unit_test(quantile__many),
		cmocka_unit_test(quantile__units), cmocka_unit_test(add__span),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
