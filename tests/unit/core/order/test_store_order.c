// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The order of stores and loads: other CPUs read these words without a lock, and their conclusions
 * are right only in one order. At each BL_BARRIER() of a core the test inspects memory as other
 * CPUs may see it, and every marked access is recorded. A missing barrier, or two accesses that
 * changed places, is therefore detected on any machine.
 */
#include "tests/unit/unit.h"

#include "tests/unit/core/order/store_hooks.h"

#include "core/order/barrier_core.h"
#include "core/clock_core.h"
#include "core/order/commit_core.h"
#include "core/fastpass/fastpass_core.h"
#include "core/order/line_core.h"
#include "core/pl2/pl2_core.h"

static void inspect_at_barriers(void (*inspect)(void))
{
	memset(seen, 0, sizeof(seen));
	at_barrier = inspect;
	barriers = 0;
}

/* ---- a port that is frozen ---- */

static struct bl_port_regs port;
static struct bl_life life;

static void expect_number_before_held(void)
{
	assert_int_equal(life.death, 8);
	assert_int_equal(bl_port_flags(&port) & BL_REG_HELD, 0);
}

static void bl_port_hold__the_number_first(void **state)
{
	(void)state;
	life.death = 7;
	port.lane[0].state = port.lane[1].state = BL_REG_LIVE | BL_REG_IN;
	inspect_at_barriers(expect_number_before_held);
	bl_port_freeze(&port, &life, 8);
	assert_int_equal(barriers, 1);
	assert_int_equal(bl_port_flags(&port), BL_REG_IN | BL_REG_HELD);
}

/* ---- the clock's record ---- */

/* test_clock_store.c has the order of the stores. */
static void bl_clock_at__a_segment_between_looks_at_its_start(void **state)
{
	struct bl_clock c = { .seg = { { .mono_ns = 100 }, { .mono_ns = 1000 } } };

	(void)state;
	inspect_at_barriers(NULL);
	bl_clock_at(&c, 2000);
	assert_string_equal(seen, "r|rr|r");
	inspect_at_barriers(NULL);
	bl_clock_at(&c, 500);
	assert_string_equal(seen, "r|r|rr|r");
}

static void bl_clock_bound__the_age_first(void **state)
{
	struct bl_clock c = { .as_of_ns = 1000 };

	(void)state;
	inspect_at_barriers(NULL);
	bl_clock_bound(&c, 2000);
	assert_string_equal(seen, "r|r|r|r");
}

/* ---- PL2: an RSV is repeated ---- */

static struct bl_pl2_dest dest;

static void expect_time_before_number(void)
{
	assert_int_equal(dest.asked_ns[1], 900000);
	assert_int_equal(dest.retries, 0);
}

static void bl_pl2_step__the_time_of_a_retry_first(void **state)
{
	struct bl_hold_cfg cfg = { .on = 1, .policy = BL_POLICY_PL2, .retry_ns = 200000 };
	struct bl_pl2_turn t = { 0 };

	(void)state;
	dest = (struct bl_pl2_dest){ .word = BL_PL2_WORD(7, BL_PL2_ASKED),
				     .n = 1,
				     .asked_ns = { 100000 } };
	inspect_at_barriers(expect_time_before_number);
	assert_int_equal(bl_pl2_step(&dest, &cfg, 0, 900000, &t), BL_DO_RSV);
	assert_int_equal(barriers, 1);
	assert_int_equal(dest.retries, 1);
}

static struct bl_pl2_coming coming;

static void bl_pl2_announce__the_time_before_the_bytes(void **state)
{
	struct bl_hold_cfg cfg = { .coming_ns = 500 };
	struct bl_pl2_grt g = { .bytes = 100 };

	(void)state;
	inspect_at_barriers(NULL);
	assert_int_equal(bl_pl2_announce(&coming, &cfg, &g, 1000), 1500);
	assert_string_equal(seen, "rw+");
	assert_int_equal(coming.by_ns, 1500);
	assert_int_equal(coming.bytes, 100);
}

/* ---- the line of an endpoint ---- */

static struct bl_inflight line;
static struct bl_rwin win;

static struct bl_ep_word word;

static void expect_word_in_order(void)
{
	assert_int_equal(word.upto, 1);
	assert_int_equal(word.over, barriers > 1 ? 2 : 0);
	assert_int_equal(word.out_upto, barriers > 1 ? 5 : 0);
	assert_int_equal(word.out, barriers > 2 ? 3 : 0);
	assert_int_equal(word.out_why, 0);
}

static void bl_word_store__in_order(void **state)
{
	const struct bl_ep_word own = {
		.upto = 1, .over = 2, .out = 3, .out_why = 4, .out_upto = 5
	};

	(void)state;
	memset(&word, 0, sizeof(word));
	inspect_at_barriers(expect_word_in_order);
	bl_word_store(&word, &own);
	assert_int_equal(barriers, 3);
	assert_memory_equal(&word, &own, sizeof(own));
}

/*
 * While the daemon reads @hold, the process puts the frame into its window and then clears @hold.
 */
static void move_hold_to_window(void)
{
	win.slot[0].wait = BL_RSLOT_OPEN;
	win.slot[0].ts = 300;
	line.state = bl_rwin_added(1);
	line.hold = BL_TIME_NONE;
}

static void bl_line_failed_at__hold_before_the_window(void **state)
{
	(void)state;
	memset(&line, 0, sizeof(line));
	line.hold = 300;
	inspect_at_barriers(move_hold_to_window);
	assert_int_equal(bl_line_failed_at(&line, &win, 0, 900), 300);
	assert_int_equal(barriers, 1);
	assert_memory_equal(seen, "r|", 2);
}

/* ---- the slot at a window's head, and a word of Fastpass's slots ---- */

static void move_head(void)
{
	if (barriers == 1)
		line.state = bl_rwin_next(line.state);
}

static void bl_rwin_commit__the_head_once_more(void **state)
{
	(void)state;
	memset(&line, 0, sizeof(line));
	win.slot[0].ts = 300;
	win.slot[1].ts = 310;
	line.state = bl_rwin_added(2);
	inspect_at_barriers(move_head);
	assert_int_equal(bl_rwin_commit(&line.state, &win, 100), 310);
	assert_int_equal(barriers, 2);
}

static struct bl_fp_word slots;

static void refill_slots(void)
{
	slots.base = 21;
}

static void bl_fp_dest_scan__the_base_once_more(void **state)
{
	struct bl_fp_dest d = { 0 };

	(void)state;
	slots = (struct bl_fp_word){ .base = 5, .bits = 2 };
	inspect_at_barriers(NULL);
	assert_int_equal(bl_fp_dest_scan(&d, &slots, 0), 5 * 64 + 1);
	assert_int_equal(barriers, 1);
	inspect_at_barriers(refill_slots);
	assert_true(bl_fp_dest_scan(&d, &slots, 0) == BL_DUE_NEVER);
	assert_int_equal(slots.bits, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_port_hold__the_number_first),
		cmocka_unit_test(bl_clock_at__a_segment_between_looks_at_its_start),
		cmocka_unit_test(bl_clock_bound__the_age_first),
		cmocka_unit_test(bl_pl2_step__the_time_of_a_retry_first),
		cmocka_unit_test(bl_pl2_announce__the_time_before_the_bytes),
		cmocka_unit_test(bl_word_store__in_order),
		cmocka_unit_test(bl_line_failed_at__hold_before_the_window),
		cmocka_unit_test(bl_rwin_commit__the_head_once_more),
		cmocka_unit_test(bl_fp_dest_scan__the_base_once_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
