// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/fastpass/fastpass_core.h: demand in slots, the ring of allocated slots, and what the pacer
 * does with them.
 */
#include "tests/unit/unit.h"

#include <pthread.h>

#include "core/fastpass/fastpass_core.h"

#define SLOT  1230u
#define LATE  100000u
#define BYTES 1514u
#define OFF   1000000000000000ULL /* Bus time is far ahead of CLOCK_MONOTONIC. */

static const struct bl_hold_cfg cfg = { .slot_ns = SLOT,
					.slot_bytes = BYTES,
					.slot_late_ns = LATE };

static uint64_t slot_begin(uint64_t slot)
{
	return bl_fp_slot_begin(OFF, SLOT, slot);
}

/* The slot that contains CLOCK_MONOTONIC 1 s. */
static uint64_t base_slot(void)
{
	return bl_fp_slot(OFF, SLOT, 1000000000);
}

static void bl_fp_slot__edges(void **state)
{
	uint64_t s = base_slot();

	(void)state;
	assert_int_equal(bl_fp_slot(OFF, SLOT, slot_begin(s)), s);
	assert_int_equal(bl_fp_slot(OFF, SLOT, slot_begin(s) - 1), s - 1);
	assert_int_equal(bl_fp_slot(OFF, SLOT, slot_begin(s) + SLOT - 1), s);
	assert_int_equal(bl_fp_slot(OFF, SLOT, slot_begin(s) + SLOT), s + 1);
	/* Bus time is behind CLOCK_MONOTONIC, so the offset is negative. */
	assert_int_equal(bl_fp_slot(-(uint64_t)500, 100, 1000), 5);
	assert_int_equal(bl_fp_slot_begin(-(uint64_t)500, 100, 5), 1000);
}

static void bl_fp_oldest__edges(void **state)
{
	uint64_t s = base_slot();

	(void)state;
	assert_int_equal(bl_fp_oldest(OFF, SLOT, LATE, slot_begin(s) + LATE), s);
	assert_int_equal(bl_fp_oldest(OFF, SLOT, LATE, slot_begin(s) + LATE + 1), s + 1);
	assert_int_equal(bl_fp_oldest(OFF, SLOT, LATE, slot_begin(s) + LATE - 1), s);
	assert_int_equal(bl_fp_oldest(OFF, SLOT, 0, slot_begin(s)), s);
	assert_int_equal(bl_fp_oldest(OFF, SLOT, 0, slot_begin(s) + 1), s + 1);
}

/*
 * TCP in both directions, one acknowledgement for two frames of data: three slots where a slot
 * holds a full frame and nothing else, two where it has room for both, whichever is held first.
 */
static void bl_fp_count__ack_beside_data(void **state)
{
	static const struct {
		uint32_t slot_bytes, first, second, third, slots;
	} t[] = {
		{ 1514, 1514, 66, 1514, 3 },
		{ 1514, 66, 1514, 1514, 3 },
		{ 1514 + BL_FP_ACK_BYTES, 1514, 66, 1514, 2 },
		{ 1514 + BL_FP_ACK_BYTES, 66, 1514, 1514, 2 },
		{ 1514 + BL_FP_ACK_BYTES, 1514, 1514, 66, 2 },
		{ 1514 + BL_FP_ACK_BYTES, 1514, 67, 1514, 3 },
	};
	uint64_t word;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		word = bl_fp_want_count(0, t[i].first, t[i].slot_bytes);
		word = bl_fp_want_count(word, t[i].second, t[i].slot_bytes);
		word = bl_fp_want_count(word, t[i].third, t[i].slot_bytes);
		if (BL_FP_WANTED(word) != t[i].slots)
			fail_msg("row %zu: %llu slots", i, (unsigned long long)BL_FP_WANTED(word));
	}
}

static void bl_fp_count__table(void **state)
{
	static const struct {
		uint32_t slots, room, len, slots_after, room_after;
	} t[] = {
		/*
		 * Room is counted in byte times: a slot has 1538, and a frame takes 24 more than
		 * its bytes.
		 */
		{ 0, 0, 60, 1, 1454 },    { 0, 0, 1514, 1, 0 },
		{ 0, 0, 1522, 1, 0 },     { 1, 1454, 1430, 1, 0 },
		{ 1, 1454, 1431, 2, 83 }, { 1, 914, 600, 1, 290 },
		{ 1, 314, 600, 2, 914 },  { 7, 84, 1, 7, 0 },
		{ 7, 83, 1, 8, 1454 },    { 7, 84, 60, 7, 0 },
		{ 7, 84, 61, 8, 1453 },   { 0x7fffffff, 0, 60, 0x80000000, 1454 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_fp_want_count(BL_FP_WANT(t[i].slots, t[i].room), t[i].len,
						  BYTES),
				 BL_FP_WANT(t[i].slots_after, t[i].room_after));
}

static void bl_fp_want__small_frames_share(void **state)
{
	struct bl_fp_dest d = { 0 };
	uint32_t i, news = 0;

	(void)state;
	for (i = 0; i < 18; i++) /* 18 ACKs take 1512 of a full frame's 1538 byte times. */
		news += (uint32_t)bl_fp_want(&d, 54, BYTES);
	assert_int_equal(news, 1);
	assert_int_equal(BL_FP_ROOM(d.want), 26);
	assert_int_equal(bl_fp_want(&d, 54, BYTES), 1);
	assert_int_equal(BL_FP_WANTED(d.want), 2);
	assert_int_equal(bl_fp_under_way(&d), 2);
	d.used = 1;
	d.idle = 1;
	assert_int_equal(bl_fp_under_way(&d), 0);
	d.used = 5; /* slots that were never asked for */
	assert_int_equal(bl_fp_under_way(&d), 0);
}

static void bl_fp_give__edges(void **state)
{
	static struct bl_fp_dest d;
	uint64_t s = base_slot() / 64 * 64 + 10;
	__u64 lapsed = 0;

	(void)state;
	memset(&d, 0, sizeof(d));
	assert_int_equal(bl_fp_give(&d, s - 1, 0, s, &lapsed), -1);
	assert_int_equal(bl_fp_give(&d, s, 3, s, &lapsed), 0);
	/* The last place of the ring: the word before that of @now, one round later. */
	assert_int_equal(bl_fp_give(&d, s - 10 + BL_FP_SLOTS - 1, 1, s, &lapsed), 0);
	assert_int_equal(bl_fp_give(&d, s - 10 + BL_FP_SLOTS, 1, s, &lapsed), -1);
	assert_int_equal(lapsed, 0);
	assert_int_equal(bl_fp_given(&d), 2);
	assert_int_equal(d.path[s % BL_FP_SLOTS], 3);
	/* The same slot given twice counts once. */
	assert_int_equal(bl_fp_give(&d, s, 4, s, &lapsed), 0);
	assert_int_equal(bl_fp_given(&d), 2);
	/* One round later, slots that were never used lapse. */
	assert_int_equal(bl_fp_give(&d, s + BL_FP_SLOTS, 0, s + BL_FP_SLOTS, &lapsed), 0);
	assert_int_equal(lapsed, 1);
	assert_int_equal(bl_fp_given(&d), 2);
}

static void bl_fp_next__lowest_and_missed(void **state)
{
	static struct bl_fp_dest d;
	uint64_t s = base_slot() / 64 * 64;
	__u64 lapsed = 0;
	/* in the order of arrival, which is not the order of slots */
	static const uint32_t at[] = { 700, 3, 64, 5, 63, 4, 128 };
	static const struct {
		uint32_t oldest, next, missed;
	} t[] = { { 0, 3, 0 },     { 3, 3, 0 },     { 4, 4, 1 },   { 5, 5, 2 },
		  { 6, 63, 3 },    { 63, 63, 3 },   { 64, 64, 4 }, { 65, 128, 5 },
		  { 192, 700, 6 }, { 700, 700, 6 }, { 701, 0, 7 } };
	size_t i;

	(void)state;
	memset(&d, 0, sizeof(d));
	for (i = 0; i < ARRAY_SIZE(at); i++)
		assert_int_equal(bl_fp_give(&d, s + at[i], 0, s, &lapsed), 0);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(bl_fp_slot_next(&d, s + t[i].oldest),
				 t[i].next ? s + t[i].next : BL_DUE_NEVER);
		assert_int_equal(d.missed, t[i].missed);
	}
	assert_int_equal(bl_fp_given(&d), 0);
	for (i = 0; i < ARRAY_SIZE(at); i++)
		assert_int_equal(bl_fp_give(&d, s + at[i], 0, s, &lapsed), 0);
	/* Six slots are missed at once, four of them in one word. */
	assert_int_equal(bl_fp_slot_next(&d, s + 129), s + 700);
	assert_int_equal(d.missed, 13);
}

static struct bl_fp_turn pacer_step(struct bl_fp_dest *d, uint64_t now)
{
	struct bl_fp_turn t;

	memset(&t, 0xee, sizeof(t));
	bl_fp_step(d, &cfg, OFF, now, &t);
	return t;
}

static void bl_fp_step__in_its_slot(void **state)
{
	static struct bl_fp_dest d;
	uint64_t s = base_slot();
	struct bl_fp_turn t;
	__u64 lapsed = 0;

	(void)state;
	memset(&d, 0, sizeof(d));
	d.endpoint = 1;
	t = pacer_step(&d, slot_begin(s));
	assert_int_equal(t.what, BL_FP_NOTHING);
	assert_int_equal(t.next_ns, BL_DUE_NEVER);
	bl_fp_give(&d, s + 2, 7, s, &lapsed);
	t = pacer_step(&d, slot_begin(s));
	assert_int_equal(t.what, BL_FP_NOTHING);
	assert_int_equal(t.next_ns, slot_begin(s + 2));
	t = pacer_step(&d, slot_begin(s + 2) - 1);
	assert_int_equal(t.what, BL_FP_NOTHING);
	t = pacer_step(&d, slot_begin(s + 2));
	assert_int_equal(t.what, BL_FP_FRAME);
	assert_int_equal(t.path, 7);
	assert_int_equal(t.due_ns, slot_begin(s + 2));
	assert_true(t.max >= 1522);
	bl_fp_frame_taken(&d, 600);
	t = pacer_step(&d, slot_begin(s + 2) + 600);
	assert_int_equal(t.what, BL_FP_FRAME);
	assert_int_equal(t.max, 914); /* 1538 - 624 */
	bl_fp_frame_taken(&d, 600);
	t = pacer_step(&d, slot_begin(s + 2) + 700);
	assert_int_equal(t.max, 290);
	bl_fp_frame_taken(&d, 0); /* no frame that fits */
	t = pacer_step(&d, slot_begin(s + 2) + 800);
	assert_int_equal(t.what, BL_FP_NOTHING);
	assert_int_equal(d.used, 1);
	assert_int_equal(d.idle, 0);
	assert_int_equal(d.frames, 2);
}

static void bl_fp_step__late(void **state)
{
	static struct bl_fp_dest d;
	uint64_t s = base_slot();
	struct bl_fp_turn t;
	__u64 lapsed = 0;

	(void)state;
	memset(&d, 0, sizeof(d));
	d.endpoint = 1;
	bl_fp_give(&d, s, 0, s, &lapsed);
	bl_fp_give(&d, s + 500, 0, s, &lapsed);
	t = pacer_step(&d, slot_begin(s) + LATE + 1);
	assert_int_equal(t.what, BL_FP_NOTHING);
	assert_int_equal(d.missed, 1);
	assert_int_equal(t.next_ns, slot_begin(s + 500));
	t = pacer_step(&d, slot_begin(s + 500) + LATE);
	assert_int_equal(t.what, BL_FP_FRAME);
	assert_int_equal(t.due_ns, slot_begin(s + 500)); /* Lateness is counted from here. */
	bl_fp_frame_taken(&d, 100);
	/* The rest of a slot expires with the slot, plus the lateness that a slot may have. */
	t = pacer_step(&d, slot_begin(s + 501) + LATE);
	assert_int_equal(t.what, BL_FP_FRAME);
	t = pacer_step(&d, slot_begin(s + 501) + LATE + 1);
	assert_int_equal(t.what, BL_FP_NOTHING);
	assert_int_equal(d.room, 0);
	assert_int_equal(d.missed, 1);
	/* The clock was set back by an hour. */
	d.room = 100;
	t = pacer_step(&d, slot_begin(s) - 3600000000000ULL);
	assert_int_equal(d.room, 0);
}

static void bl_fp_step__nothing_to_send(void **state)
{
	static struct bl_fp_dest d;
	uint64_t s = base_slot();
	__u64 lapsed = 0;

	(void)state;
	memset(&d, 0, sizeof(d));
	d.endpoint = 1;
	d.want = BL_FP_WANT(1, 0);
	bl_fp_give(&d, s, 0, s, &lapsed);
	assert_int_equal(pacer_step(&d, slot_begin(s)).what, BL_FP_FRAME);
	assert_int_equal(bl_fp_demand_heal(&d), 0); /* The current slot is under way. */
	bl_fp_frame_taken(&d, 0);
	assert_int_equal(d.idle, 1);
	assert_int_equal(d.used, 0);
	assert_int_equal(d.room, 0);
	assert_int_equal(bl_fp_demand_heal(&d), 1);
	assert_int_equal(bl_fp_demand_heal(&d), 0);
	assert_int_equal(BL_FP_WANTED(d.want), 2);
}

static void bl_fp_step__long_frame_alone(void **state)
{
	static struct bl_fp_dest d;
	uint64_t s = base_slot();
	__u64 lapsed = 0;

	(void)state;
	memset(&d, 0, sizeof(d));
	d.endpoint = 1;
	bl_fp_give(&d, s, 0, s, &lapsed);
	assert_int_equal(pacer_step(&d, slot_begin(s)).what, BL_FP_FRAME);
	bl_fp_frame_taken(&d, 1522); /* longer than the slot */
	assert_int_equal(d.room, 0);
	assert_int_equal(d.used, 1);
}

static void bl_fp_step__outside_and_unknown(void **state)
{
	static struct bl_fp_dest d;
	struct bl_hold_cfg none = cfg;
	struct bl_fp_turn t;

	(void)state;
	memset(&d, 0, sizeof(d));
	assert_int_equal(pacer_step(&d, 1000000000).what, BL_FP_NOTHING);
	d.endpoint = BL_FP_OUTSIDE;
	assert_int_equal(pacer_step(&d, 1000000000).what, BL_FP_AT_ONCE);
	none.slot_ns = 0;
	bl_fp_step(&d, &none, OFF, 1000000000, &t);
	assert_int_equal(t.what, BL_FP_NOTHING);
	assert_int_equal(t.next_ns, BL_DUE_NEVER);
}

/*
 * One thread gives slots, and the other one uses them. No slot is used twice, and none is lost
 * except those that were late.
 */
static struct bl_fp_dest shared;
static volatile int done;
#define ROUNDS 2000000ULL

static void *give_slots(void *arg)
{
	uint64_t s = *(uint64_t *)arg, i;
	__u64 lapsed = 0;

	for (i = 0; i < ROUNDS; i++) {
		while (s + i >= BL_READ_ONCE(shared.open) + BL_FP_SLOTS / 2)
			;
		assert_int_equal(bl_fp_give(&shared, s + i, (__u8)(s + i),
					    BL_READ_ONCE(shared.open), &lapsed),
				 0);
	}
	assert_int_equal(lapsed, 0);
	done = 1;
	return NULL;
}

static void ring__two_threads(void **state)
{
	uint64_t s = base_slot(), used = 0, last;
	uint8_t *seen = calloc(1, ROUNDS);
	pthread_t thread;

	(void)state;
	memset(&shared, 0, sizeof(shared));
	shared.endpoint = 1;
	last = shared.open = s;
	assert_int_equal(pthread_create(&thread, NULL, give_slots, &s), 0);
	for (;;) {
		int over = done;
		uint64_t next = bl_fp_slot_next(&shared, 0);

		if (next == BL_DUE_NEVER) {
			if (over)
				break;
			continue;
		}
		/*
		 * Nearly in order: a slot that is given behind the place of the current search is
		 * found by the next search.
		 */
		assert_in_range(next, s, s + ROUNDS - 1);
		assert_int_equal(seen[next - s]++, 0);
		assert_int_equal(shared.path[next % BL_FP_SLOTS], (uint8_t)next);
		bl_fp_word_clear(&shared.word[next / 64 % BL_FP_WORDS], 1ULL << next % 64);
		last = next > last ? next : last;
		BL_WRITE_ONCE(shared.open, last);
		used++;
	}
	pthread_join(thread, NULL);
	assert_int_equal(used, ROUNDS);
	assert_int_equal(shared.missed, 0);
	free(seen);
}

static void bl_fp_up_port__tiers(void **state)
{
	static const struct {
		__u32 div, n, paths, port[8];
	} t[] = {
		{ 0, 0, 0, { 0 } }, /* no up ports: no paths */
		{ 4, 0, 0, { 0 } },
		{ 0, 3, 3, { 0, 1, 2 } },
		/* the switch of a rack, with two cores for each of two aggregation switches */
		{ 2, 2, 15, { 0, 0, 1, 1, 0, 0, 1, 1 } },
		{ 1, 2, 15, { 0, 1, 0, 1, 0, 1, 0, 1 } }, /* an aggregation switch */
		{ 3, 4, 15, { 0, 0, 0, 1, 1, 1, 2, 2 } },
	};
	__u32 i, k;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(bl_fp_paths(t[i].div, t[i].n), t[i].paths);
		for (k = 0; k < 8 && k < t[i].paths; k++)
			assert_int_equal(bl_fp_up_port(k, t[i].div, t[i].n), t[i].port[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_fp_slot__edges),
		cmocka_unit_test(bl_fp_oldest__edges),
		cmocka_unit_test(bl_fp_count__ack_beside_data),
		cmocka_unit_test(bl_fp_count__table),
		cmocka_unit_test(bl_fp_want__small_frames_share),
		cmocka_unit_test(bl_fp_give__edges),
		cmocka_unit_test(bl_fp_next__lowest_and_missed),
		cmocka_unit_test(bl_fp_step__in_its_slot),
		cmocka_unit_test(bl_fp_step__late),
		cmocka_unit_test(bl_fp_step__nothing_to_send),
		cmocka_unit_test(bl_fp_step__long_frame_alone),
		cmocka_unit_test(bl_fp_step__outside_and_unknown),
		cmocka_unit_test(ring__two_threads),
		cmocka_unit_test(bl_fp_up_port__tiers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
