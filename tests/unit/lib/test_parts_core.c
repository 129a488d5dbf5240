// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lib/parts_core.h: which bytes of a large message have come, checked against a plain array of
 * bytes.
 */
#include "tests/unit/unit.h"

#include "lib/parts_core.h"

#define MOST 400

static void bl_parts_words__edges(void **state)
{
	static const __u32 t[][2] = { { 1, 1 },   { 63, 1 },  { 64, 1 },           { 65, 2 },
				      { 128, 2 }, { 129, 3 }, { 1 << 20, 1 << 14 } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_parts_words(t[i][0]), t[i][1]);
}

/* @bits has exactly the bytes that @plain has among the first @total, and no bit beyond. */
static void same(const __u64 *bits, const __u8 *plain, __u32 total)
{
	__u32 i;

	for (i = 0; i < bl_parts_words(total) * 64; i++)
		assert_int_equal(bits[i / 64] >> i % 64 & 1, i < total && plain[i]);
}

static void bl_parts_add__edges(void **state)
{
	static const __u32 at[] = { 0, 1, 62, 63, 64, 65, 127, 128, 129 },
			   len[] = { 1, 2, 62, 63, 64, 65, 127, 128, 129, 200 };
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		for (k = 0; k < ARRAY_SIZE(len); k++) {
			__u64 bits[(MOST + 63) / 64] = { 0 };
			__u8 plain[MOST] = { 0 };

			memset(plain + at[i], 1, len[k]);
			assert_int_equal(bl_parts_add(bits, at[i], len[k]), 0);
			same(bits, plain, MOST);
			/* Twice, or only its first or its last byte. */
			assert_int_equal(bl_parts_add(bits, at[i], len[k]), -1);
			assert_int_equal(bl_parts_add(bits, at[i], 1), -1);
			assert_int_equal(bl_parts_add(bits, at[i] + len[k] - 1, 1), -1);
			/* A part that overlaps by one byte marks none of its other bytes. */
			if (at[i])
				assert_int_equal(bl_parts_add(bits, 0, at[i] + 1), -1);
			assert_int_equal(bl_parts_add(bits, at[i] + len[k] - 1, 60), -1);
			same(bits, plain, MOST);
			/* Its neighbours are free. */
			if (at[i]) {
				assert_int_equal(bl_parts_add(bits, 0, at[i]), 0);
				memset(plain, 1, at[i]);
			}
			assert_int_equal(bl_parts_add(bits, at[i] + len[k], 3), 0);
			memset(plain + at[i] + len[k], 1, 3);
			same(bits, plain, MOST);
		}
	}
}

static void bl_parts_add__random(void **state)
{
	struct rnd r = rnd_seeded(__func__);
	int round;

	(void)state;
	for (round = 0; round < 300; round++) {
		__u32 total = 1 + (__u32)rnd_below(&r, MOST), n, i;
		__u64 bits[(MOST + 63) / 64] = { 0 };
		__u8 plain[MOST] = { 0 };

		for (n = 0; n < 30; n++) {
			__u32 at = (__u32)rnd_below(&r, total),
			      len = 1 + (__u32)rnd_below(&r, total - at);
			int before = 0;

			len = n % 2 ? 1 + len / 20 : len;
			for (i = at; i < at + len; i++)
				before |= plain[i];
			assert_int_equal(bl_parts_add(bits, at, len), before ? -1 : 0);
			if (!before)
				memset(plain + at, 1, len);
			same(bits, plain, total);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_parts_words__edges),
		cmocka_unit_test(bl_parts_add__edges),
		cmocka_unit_test(bl_parts_add__random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
