// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lib/nic_core.h: what is in a ring that several endpoints fill, as told by the frames that have
 * left it.
 */
#include "tests/unit/unit.h"

#include "lib/nic_core.h"

/* The example at the top of the file. */
static void bl_nic_passed__the_example(void **state)
{
	struct bl_nic_marks m = { 0 };

	(void)state;
	bl_nic_mark(&m, 45, 55);
	assert_int_equal(bl_nic_passed(&m, 45, 0), 55);
	assert_int_equal(bl_nic_used(75, 55), 20);
	assert_true(bl_nic_fits(20, 204, 224));
	assert_false(bl_nic_fits(20, 205, 224));
}

static void bl_nic_passed__edges(void **state)
{
	static const struct {
		uint64_t in_ring, want;
		uint32_t left;
	} t[] = {
		/* marks at our frames 10, 20 and 30 of 30 */
		{ 31, 0, 3 },   { 30, 0, 3 },   { 21, 0, 3 },  { 20, 100, 2 },
		{ 11, 100, 2 }, { 10, 200, 1 }, { 1, 200, 1 }, { 0, 300, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_nic_marks m = { .first = BL_NIC_MARKS - 2 }; /* around the end */

		bl_nic_mark(&m, 10, 100);
		bl_nic_mark(&m, 20, 200);
		bl_nic_mark(&m, 30, 300);
		assert_int_equal(bl_nic_passed(&m, 30, t[i].in_ring), t[i].want);
		assert_int_equal(m.n, t[i].left);
		assert_int_equal(bl_nic_passed(&m, 30, t[i].in_ring), 0); /* told once */
	}
}

/* Without room for another mark the newest one is replaced: what is told stays true. */
static void bl_nic_mark__more_than_there_is_room_for(void **state)
{
	struct bl_nic_marks m = { 0 };
	uint64_t i;

	(void)state;
	for (i = 1; i <= 2 * BL_NIC_MARKS; i++)
		bl_nic_mark(&m, i, 10 * i);
	assert_int_equal(m.n, BL_NIC_MARKS);
	assert_int_equal(bl_nic_passed(&m, 2 * BL_NIC_MARKS, BL_NIC_MARKS + 1),
			 10 * (BL_NIC_MARKS - 1));
	assert_int_equal(bl_nic_passed(&m, 2 * BL_NIC_MARKS, 1), 0);
	assert_int_equal(bl_nic_passed(&m, 2 * BL_NIC_MARKS, 0), 20 * BL_NIC_MARKS);
	assert_int_equal(m.n, 0);
}

static void bl_nic_fits__edges(void **state)
{
	(void)state;
	assert_true(bl_nic_fits(0, 1000, 224)); /* larger than the ring: when that is empty */
	assert_false(bl_nic_fits(1, 1000, 224));
	assert_true(bl_nic_fits(1, 223, 224));
	assert_false(bl_nic_fits(1, 224, 224));
	assert_int_equal(bl_nic_used(5, 6), 0);
	assert_int_equal(bl_nic_used(6, 6), 0);
	assert_int_equal(bl_nic_used(7, 6), 1);
}

static void bl_nic_share__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_nic_share(224, 0), 28);
	assert_int_equal(bl_nic_share(224, 8), 28);
	assert_int_equal(bl_nic_share(224, 9), 24);
	assert_int_equal(bl_nic_share(224, 56), 4);
	assert_int_equal(bl_nic_share(224, 225), 0);
}

/*
 * Against a ring that is known in full: endpoints put frames in, the ring removes some, and each
 * endpoint looks at its own now and then. What they conclude is never less than the truth; when all
 * have looked at an empty ring, it is the truth.
 */
static void account__never_less_than_the_truth(void **state)
{
	enum { EPS = 5, RING = 4096, STEPS = 200000 };
	static uint8_t ring[RING];
	struct rnd r = rnd_seeded("test_nic_core");
	struct bl_nic_marks marks[EPS] = { 0 };
	uint64_t put[EPS] = { 0 }, in[EPS] = { 0 }, out = 0, all = 0, left = 0, told;
	uint32_t step, tight = 0;

	(void)state;
	for (step = 0; step < STEPS; step++) {
		uint32_t e = rnd_below(&r, EPS), n;

		switch (rnd_below(&r, 3)) {
		case 0:
			n = 1 + rnd_below(&r, 40);
			if (!bl_nic_fits(bl_nic_used(all, out), n, 224))
				break;
			put[e] += n;
			in[e] += n;
			for (; n; n--)
				ring[all++ % RING] = (uint8_t)e;
			bl_nic_mark(&marks[e], put[e], all);
			break;
		case 1:
			for (n = rnd_below(&r, 60); n && left < all; n--)
				in[ring[left++ % RING]]--;
			break;
		case 2:
			/*
			 * A socket may say too much, by frames that are charged more than the
			 * minimum.
			 */
			told = bl_nic_passed(&marks[e], put[e],
					     in[e] + (in[e] ? rnd_below(&r, 2) : 0));
			assert_true(told <= left);
			out = told > out ? told : out;
			break;
		}
		assert_true(bl_nic_used(all, out) >= all - left);
		assert_true(all - left <= 224);
		tight += all - left > 180;
	}
	assert_true(tight > STEPS / 1000); /* the ring was really full at times */
	while (left < all)
		in[ring[left++ % RING]]--;
	for (step = 0; step < EPS; step++) {
		told = bl_nic_passed(&marks[step], put[step], 0);
		out = told > out ? told : out;
	}
	assert_int_equal(bl_nic_used(all, out), 0);
}

/* Others fill the ring again and again, and tell themselves what has left. */
static void bl_nic_witness_due__not_while_others_tell(void **state)
{
	struct bl_nic_calls c = { 0 };
	__u64 t = 5 * BL_NIC_WITNESS_NS, out = 100, i;

	(void)state;
	/* At the first look nobody knows whether others tell. */
	assert_true(bl_nic_witness_due(&c, out, t));
	for (i = 0; i < 100; i++)
		assert_false(bl_nic_witness_due(&c, ++out, t += BL_NIC_WITNESS_NS / 10));
	/* They tell nothing any more. */
	assert_true(bl_nic_witness_due(&c, out, t += BL_NIC_WITNESS_NS / 10));
	/* The witness did not help, since somebody has stopped in the middle of a send. */
	for (i = 0; i < 9; i++)
		assert_false(bl_nic_witness_due(&c, out, t += BL_NIC_WITNESS_NS / 10));
	assert_true(bl_nic_witness_due(&c, out, t += BL_NIC_WITNESS_NS / 10));
	/* A long time ago something left: that says nothing about now. */
	assert_true(bl_nic_witness_due(&c, out + 1, t + BL_NIC_WITNESS_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_nic_passed__the_example),
		cmocka_unit_test(bl_nic_passed__edges),
		cmocka_unit_test(bl_nic_mark__more_than_there_is_room_for),
		cmocka_unit_test(bl_nic_fits__edges),
		cmocka_unit_test(bl_nic_share__edges),
		cmocka_unit_test(account__never_less_than_the_truth),
		cmocka_unit_test(bl_nic_witness_due__not_while_others_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
