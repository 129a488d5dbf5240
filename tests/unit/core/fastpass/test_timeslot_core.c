// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/fastpass/timeslot_core.h: bitmaps of slots, counts in bit planes, and shares; each against a
 * loop over single bits or packets.
 */
#include "tests/unit/unit.h"

#include "core/fastpass/timeslot_core.h"

static void bl_lowest64__table(void **state)
{
	static const struct {
		uint64_t w;
		uint32_t k;
		uint64_t want;
	} t[] = {
		{ 0, 0, 0 },
		{ 0, 5, 0 },
		{ ~0ULL, 0, 0 },
		{ ~0ULL, 1, 1 },
		{ ~0ULL, 63, ~0ULL >> 1 },
		{ ~0ULL, 64, ~0ULL },
		{ ~0ULL, 65, ~0ULL },
		{ ~0ULL, UINT32_MAX, ~0ULL },
		{ 1ULL << 63, 1, 1ULL << 63 },
		{ 0x8000000000000001ULL, 1, 1 },
		{ 0xb0, 2, 0x30 },
		{ 0xb0, 3, 0xb0 },
		{ 0xb0, 4, 0xb0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_lowest64(t[i].w, t[i].k), t[i].want);
}

static void bl_first64__every_bit(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 64; i++) {
		assert_int_equal(bl_first64(1ULL << i), i);
		assert_int_equal(bl_first64(~0ULL << i), i);
		assert_int_equal(bl_first64(1ULL << i | 1ULL << 63), i);
	}
}

static void bl_window_first__table(void **state)
{
	static const struct {
		uint64_t a[3], b[3];
		uint32_t words, want;
	} t[] = {
		{ { 0, 0, 0 }, { 0, 0, 0 }, 3, BL_SLOT_NONE },
		{ { 1, 0, 0 }, { 1, 0, 0 }, 3, 0 },
		{ { 1, 2, 0 }, { 2, 3, 0 }, 3, 65 },
		{ { 5, 0, 1ULL << 63 }, { 2, ~0ULL, ~0ULL }, 3, 191 },
		{ { 5, 0, 1ULL << 63 }, { 2, ~0ULL, ~0ULL }, 2, BL_SLOT_NONE },
		{ { 5, 0, 0 }, { 5, 0, 0 }, 0, BL_SLOT_NONE },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_window_first((const __u64 *)t[i].a, (const __u64 *)t[i].b,
						 t[i].words),
				 t[i].want);
}

/* The example of the header, and every window of 1 to 8 words against a loop over slots. */
static void bl_window_take__example(void **state)
{
	__u64 a[2] = { 0xa, 0xc0 }, b[2] = { 0x9, 0xc0 }, take[2];

	(void)state;
	assert_int_equal(bl_window_take(a, b, 2, 2, take), 2);
	assert_int_equal(take[0], 0x8);
	assert_int_equal(take[1], 0x40);
	assert_int_equal(a[0], 0x2);
	assert_int_equal(b[0], 0x1);
	assert_int_equal(a[1], 0x80);
	assert_int_equal(b[1], 0x80);
}

static void bl_window_take__slot_by_slot(void **state)
{
	struct rnd r = rnd_seeded("bl_window_take");
	uint32_t round, words, k, slot, want;

	(void)state;
	for (round = 0; round < 4000; round++) {
		__u64 a[8], b[8], a2[8], b2[8], take[8], take2[8] = { 0 };

		words = 1 + rnd_below(&r, 8);
		k = rnd_below(&r, 64 * words + 3);
		for (slot = 0; slot < 8; slot++) {
			a[slot] = rnd64(&r) | (round & 1 ? rnd64(&r) : 0);
			b[slot] = rnd64(&r) | (round & 2 ? rnd64(&r) : 0);
		}
		memcpy(a2, a, sizeof(a));
		memcpy(b2, b, sizeof(b));
		for (want = 0, slot = 0; slot < 64 * words && want < k; slot++) {
			if (!(a2[slot / 64] & b2[slot / 64] & 1ULL << slot % 64))
				continue;
			want++;
			take2[slot / 64] |= 1ULL << slot % 64;
		}
		for (slot = 0; slot < words; slot++) {
			a2[slot] &= ~take2[slot];
			b2[slot] &= ~take2[slot];
		}
		assert_int_equal(bl_window_take(a, b, words, k, take), want);
		assert_memory_equal(a, a2, sizeof(a));
		assert_memory_equal(b, b2, sizeof(b));
		assert_memory_equal(take, take2, words * sizeof(*take));
	}
}

/*
 * A port of @cap packets in each of 64 slots, counted down at random: mask and sum must agree with
 * plain counters.
 */
static void bl_planes__as_counters(void **state)
{
	static const uint32_t caps[] = { 0, 1, 2, 3, 4, 7, 8, 40, 255, 256, 4095 };
	struct rnd r = rnd_seeded("bl_planes");
	uint32_t c, stride, round, i;

	(void)state;
	for (c = 0; c < ARRAY_SIZE(caps); c++)
		for (stride = 1; stride <= 8; stride += 7) {
			uint32_t count[64],
				planes = caps[c] ? 32 - (uint32_t)__builtin_clz(caps[c]) : 1;
			__u64 plane[12 * 8] = { 0 }, mask, want;

			plane[1] = stride > 1 ? 0x1234 : 0; /* a word of the next window */
			mask = bl_planes_fill(plane, planes, stride, caps[c]);
			assert_int_equal(mask, caps[c] ? ~0ULL : 0);
			for (i = 0; i < 64; i++)
				count[i] = caps[c];
			for (round = 0; round < 200; round++) {
				__u64 take = rnd64(&r) & mask, open = rnd64(&r);
				uint32_t sum = 0;

				if (round % 3)
					take |= mask; /* all slots, so that the counts reach 0 */
				mask = bl_planes_sub(plane, planes, stride, take);
				for (want = 0, i = 0; i < 64; i++) {
					count[i] -= take >> i & 1;
					want |= (uint64_t)(count[i] > 0) << i;
					sum += open >> i & 1 ? count[i] : 0;
				}
				assert_int_equal(mask, want);
				assert_int_equal(bl_planes_count(plane, planes, stride, open), sum);
			}
			assert_int_equal(plane[1], stride > 1 ? 0x1234 : plane[1]);
		}
}

static void bl_fair_share__exact(void **state)
{
	uint32_t units, n;

	(void)state;
	for (n = 1; n <= 4096; n += n < 70 ? 1 : 61) {
		const uint64_t recip = ((1ULL << BL_RECIP_BITS) + n - 1) / n;

		for (units = 0; units < 1u << 19; units += units < 600 ? 1 : 997) {
			if ((uint64_t)units * n >= 1ULL << BL_RECIP_BITS)
				break;
			assert_int_equal(bl_fair_share(units, recip), units / n ? units / n : 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_lowest64__table),
		cmocka_unit_test(bl_first64__every_bit),
		cmocka_unit_test(bl_window_first__table),
		cmocka_unit_test(bl_window_take__example),
		cmocka_unit_test(bl_window_take__slot_by_slot),
		cmocka_unit_test(bl_planes__as_counters),
		cmocka_unit_test(bl_fair_share__exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
