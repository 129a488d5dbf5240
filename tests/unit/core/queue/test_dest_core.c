// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/queue/dest_core.h: pins on numbers while the pacer takes them from their owners, and how old
 * a held frame may become.
 */
#include "tests/unit/unit.h"

#include <pthread.h>

#include "core/queue/dest_core.h"

static void bl_dest__states(void **state)
{
	struct bl_hold_dest d = { 0 };

	(void)state;
	assert_int_equal(bl_dest_pin(&d), 1);
	assert_int_equal(bl_dest_pin(&d), 1);
	assert_int_equal(bl_dest_close(&d), 0);
	bl_dest_unpin(&d);
	assert_int_equal(bl_dest_close(&d), 0);
	bl_dest_unpin(&d);
	assert_int_equal(bl_dest_close(&d), 1);
	assert_int_equal(bl_dest_close(&d), 0);
	assert_int_equal(bl_dest_pin(&d), 0);
	assert_int_equal(bl_dest_empty(&d), 1);
	d.pins++; /* A CPU has just entered and not left yet. */
	assert_int_equal(bl_dest_empty(&d), 0);
	bl_dest_open(&d);
	assert_int_equal(d.pins, 1);
	bl_dest_shut(&d);
	assert_int_equal(bl_dest_empty(&d), 0);
	bl_dest_unpin(&d);
	assert_int_equal(bl_dest_empty(&d), 1);
}

static void bl_dest_is__address_and_kind(void **state)
{
	struct bl_hold_dest d = { .mac = { 1, 2, 3, 4, 5, 6 }, .kind = 4 };
	struct bl_mac_key k = { .mac = { 1, 2, 3, 4, 5, 6 }, .kind = 4 };
	unsigned int i;

	(void)state;
	assert_true(bl_dest_is(&d, &k));
	for (i = 0; i < 6; i++) {
		k.mac[i] ^= 0x80;
		assert_false(bl_dest_is(&d, &k));
		k.mac[i] ^= 0x80;
	}
	k.kind = 0;
	assert_false(bl_dest_is(&d, &k));
}

static void bl_spare__counts(void **state)
{
	struct bl_due d = { 0 };

	(void)state;
	assert_int_equal(bl_numbers_spare(&d), BL_NUMBERS);
	assert_false(bl_numbers_low(&d));
	d.given = BL_NUMBERS - BL_NUMBERS_LOW - 1;
	assert_false(bl_numbers_low(&d));
	d.given++;
	assert_true(bl_numbers_low(&d));
	d.given = BL_NUMBERS + 3; /* CPUs that were too late */
	assert_int_equal(bl_numbers_spare(&d), 0);
	d.spare = 5;
	assert_int_equal(bl_numbers_spare(&d), 2);
	d.given = BL_NUMBERS;
	d.spare = -1ULL; /* The number is taken, and the CPU that gave it has not counted it yet. */
	assert_int_equal(bl_numbers_spare(&d), 0);
}

static void bl_hold_age__table(void **state)
{
	const struct {
		uint32_t policy, ns_q20, slot_ns;
		uint64_t ask, want;
	} t[] = {
		{ BL_POLICY_TOP, 0, 0, 0, 1000000000 },
		/* 250 Mbit/s: 4096 frames are 0.2 s. */
		{ BL_POLICY_TOP, 32 << 20, 0, 2000000, 1000000000 },
		{ BL_POLICY_PL2, 4000U << 20, 0, 2000000, 4096ULL * 1538 * 4000 }, /* 2 Mbit/s */
		{ BL_POLICY_PL2, 0, 0, 1000000000, 8000000000 },
		{ BL_POLICY_PL2, 0, 1000000000, 0, 1000000000 }, /* Only Fastpass has slots. */
		{ BL_POLICY_FASTPASS, 0, 1000000, 0, 4096000000 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_hold_cfg c = { .policy = t[i].policy,
					 .link = { .ns_q20 = t[i].ns_q20 },
					 .slot_ns = t[i].slot_ns };

		assert_int_equal(bl_hold_age(&c, t[i].ask, 0), t[i].want);
		assert_int_equal(bl_hold_age(&c, t[i].ask, 1), t[i].want / 8);
	}
	assert_true(bl_hold_expired(5, 7, 10, 17));
	assert_false(bl_hold_expired(5, 7, 10, 16));
	assert_true(bl_hold_expired(7, 5, 10, 17));
	assert_false(bl_hold_expired(7, 5, 10, 16));
}

/*
 * The pacer scans every half age. If it did not, it was stalled, and no frame counts as expired
 * until one age later.
 */
static void bl_hold_turn__standstill(void **state)
{
	struct bl_due d = { 0 };

	(void)state;
	bl_hold_turn_begin(&d, 5000); /* Nothing has waited so far. */
	assert_true(d.turn_ns == 5000 && !d.back_ns && bl_hold_expired(d.back_ns, 0, 1000, 5000));
	assert_int_equal(bl_hold_watch_ns(&d, 1000, 0), 500);
	bl_hold_turn_begin(&d, 5749);
	assert_true(!d.back_ns && d.turn_ns == 5749);
	bl_hold_turn_begin(&d, 5749 + 750);
	assert_true(d.back_ns == 6499 && d.turn_ns == 6499);
	assert_false(bl_hold_expired(d.back_ns, 0, 1000, 7498));
	assert_true(bl_hold_expired(d.back_ns, 0, 1000, 7499));
	/* The pacer need not scan more often than every 600 ns. */
	assert_int_equal(bl_hold_watch_ns(&d, 1000, 600), 600);
	bl_hold_turn_begin(&d, 6499 + 849);
	assert_int_equal(d.back_ns, 6499);
	bl_hold_turn_begin(&d, 6499 + 849 + 850);
	assert_int_equal(d.back_ns, 6499 + 849 + 850);
}

/*
 * Users enter and leave. One thread shuts the number and gives it to another owner. No user is
 * inside under the wrong owner.
 */
static struct bl_hold_dest shared;
static uint64_t owner, inside[2], seen[2];
static int over;

static void *run_user(void *arg)
{
	unsigned int me = *(unsigned int *)arg, i;

	while (!BL_READ_ONCE(over)) {
		uint64_t at;

		if (!bl_dest_pin(&shared))
			continue;
		at = BL_READ_ONCE(owner);
		inside[me]++;
		for (i = 0; i < 20; i++)
			if (BL_READ_ONCE(owner) != at)
				abort();
		seen[me]++;
		bl_dest_unpin(&shared);
	}
	return NULL;
}

static void bl_dest_close__nobody_inside(void **state)
{
	unsigned int me[2] = { 0, 1 };
	uint64_t closed = 0, tries = 0;
	pthread_t thread[2];

	(void)state;
	assert_int_equal(pthread_create(&thread[0], NULL, run_user, &me[0]), 0);
	assert_int_equal(pthread_create(&thread[1], NULL, run_user, &me[1]), 0);
	while (closed < 2000 || !BL_READ_ONCE(seen[0]) || !BL_READ_ONCE(seen[1])) {
		tries++;
		if (!bl_dest_close(&shared))
			continue;
		BL_WRITE_ONCE(owner, owner + 1);
		while (!bl_dest_empty(&shared))
			;
		BL_WRITE_ONCE(owner, owner + 1);
		bl_dest_open(&shared);
		closed++;
	}
	BL_WRITE_ONCE(over, 1);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	assert_int_equal(shared.pins, 0);
	print_message("closed %llu times in %llu tries, used %llu times\n",
		      (unsigned long long)closed, (unsigned long long)tries,
		      (unsigned long long)(seen[0] + seen[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_dest__states),
		cmocka_unit_test(bl_dest_is__address_and_kind),
		cmocka_unit_test(bl_spare__counts),
		cmocka_unit_test(bl_hold_age__table),
		cmocka_unit_test(bl_hold_turn__standstill),
		cmocka_unit_test(bl_dest_close__nobody_inside),
	};

	return cmocka_run_group_tests_name("dest_core", tests, NULL, NULL);
}
