// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tests/net/reliable/kill_limits.h: the campaign's judges find the faults that they are for, and
 * only these.
 */
#include "tests/unit/unit.h"

#include "tests/net/reliable/kill_limits.h"

#define MS 1000000ULL

static struct kl_run make_run(void)
{
	return (struct kl_run){ .process_limit_ns = 1000 * MS,
				.dead_after_ns = 200 * MS,
				.answer_ns = 5000 * MS,
				.stuck_ns = 5000 * MS };
}

static void process__why(void **state)
{
	static const char *const limits[] = { "in_flight", "window", "ring" };
	const struct kl_proc nothing = { 0 }, killed = { .killed = true },
			     leaves = { .leaves = true }, ended = { .ended = true },
			     away = { .detached = true };
	const struct kl_proc stopped = { .stopped_ns = 1000 * MS },
			     shortly = { .stopped_ns = 700 * MS, .gap_ns = 700 * MS },
			     slow = { .gap_ns = 900 * MS };
	struct kl_run r = make_run();
	unsigned int i;

	assert_int_equal(kl_process(&r, &killed, "died"), KL_MAY);
	assert_int_equal(kl_process(&r, &ended, "died"), KL_MAY);
	assert_int_equal(kl_process(&r, &away, "died"), KL_MAY);
	assert_int_equal(kl_process(&r, &nothing, "died"), KL_FALSE);
	assert_int_equal(kl_process(&r, &leaves, "died"), KL_FALSE);
	assert_int_equal(kl_process(&r, &leaves, "left"), KL_MAY);
	assert_int_equal(kl_process(&r, &ended, "left"), KL_MAY);
	assert_int_equal(kl_process(&r, &nothing, "left"), KL_FALSE);
	assert_int_equal(kl_process(&r, &killed, "left"), KL_FALSE);
	for (i = 0; i < 3; i++) {
		assert_int_equal(kl_process(&r, &stopped, limits[i]), KL_MAY);
		assert_int_equal(kl_process(&r, &shortly, limits[i]), KL_FALSE);
		assert_int_equal(kl_process(&r, &nothing, limits[i]), KL_FALSE);
		/*
		 * The process was stalled although it was not stopped: only a machine without a
		 * free CPU for it explains that.
		 */
		assert_int_equal(kl_process(&r, &slow, limits[i]), KL_FALSE);
		r.starved_ns = 250 * MS;
		assert_int_equal(kl_process(&r, &slow, limits[i]), KL_STARVED);
		assert_int_equal(kl_process(&r, &nothing, limits[i]), KL_FALSE);
		r.starved_ns = 0;
	}
	assert_int_equal(kl_process(&r, &stopped, "unreachable"), KL_FALSE);
	r.waits_ns = 3700 * MS;
	assert_int_equal(kl_process(&r, &nothing, "window"), KL_FALSE);
	r.waits_ns = 4000 * MS;
	assert_int_equal(kl_process(&r, &nothing, "unreachable"), KL_MAY);
	assert_int_equal(kl_process(&r, &nothing, "window"), KL_MAY);
	assert_int_equal(kl_process(&r, &nothing, "ring"), KL_FALSE);
	r.waits_ns = 0;
	r.starved_ns = 1249 * MS;
	assert_int_equal(kl_process(&r, &nothing, "window"), KL_FALSE);
	r.starved_ns = 1250 * MS;
	assert_int_equal(kl_process(&r, &nothing, "window"), KL_STARVED);
	assert_int_equal(kl_process(&r, &nothing, "in_flight"), KL_FALSE);
	assert_int_equal(kl_process(&r, &nothing, "unreachable"), KL_STARVED);
	assert_int_equal(kl_process(&r, &killed, "unknown"), KL_FALSE);
}

static void node__why(void **state)
{
	struct kl_run r = make_run();

	r.may_fall = 1U << 3;
	r.may_owe = 1U << 4;
	assert_int_equal(kl_node(&r, 3, "cut-off"), KL_MAY);
	assert_int_equal(kl_node(&r, 3, "torn"), KL_MAY);
	assert_int_equal(kl_node(&r, 3, "down"), KL_FALSE);
	assert_int_equal(kl_node(&r, 4, "down"), KL_MAY);
	assert_int_equal(kl_node(&r, 4, "cut-off"), KL_FALSE);
	r.starved_ns = 49 * MS;
	assert_int_equal(kl_node(&r, 4, "cut-off"), KL_FALSE);
	r.starved_ns = 50 * MS;
	assert_int_equal(kl_node(&r, 4, "cut-off"), KL_STARVED);
	assert_int_equal(kl_node(&r, 3, "down"), KL_FALSE);
	assert_int_equal(kl_node(&r, 3, "before"), KL_FALSE);
}

static uint64_t none_lost(void *ctx, uint64_t from, uint64_t to)
{
	(void)ctx, (void)from, (void)to;
	return 0;
}

/* Between 1000 and 1400 the machine took 150. */
static uint64_t some_lost(void *ctx, uint64_t from, uint64_t to)
{
	(void)ctx;
	return from < 1400 && to > 1000 ? 150 : 0;
}

static void standstill__gaps(void **state)
{
	const uint64_t at[] = { 100, 150, 180, 1000, 1400, 1450, 2000 };

	/* 820, 400 and 550; gaps shorter than 300 do not count. */
	assert_int_equal(kl_standstill(at, 7, 50, 2100, 300, none_lost, NULL), 820 + 400 + 550);
	assert_int_equal(kl_standstill(at, 7, 50, 2100, 500, none_lost, NULL), 820 + 550);
	assert_int_equal(kl_standstill(at, 7, 50, 2100, 300, some_lost, NULL), 820 + 250 + 550);
	/* before the first and behind the last */
	assert_int_equal(kl_standstill(NULL, 0, 50, 2100, 300, none_lost, NULL), 2050);
	assert_int_equal(kl_standstill(at, 7, 50, 3000, 900, none_lost, NULL), 1000);
	assert_int_equal(kl_standstill(at, 2, 50, 3000, 300, none_lost, NULL), 2850);
	/* Times outside the span do not count. */
	assert_int_equal(kl_standstill(at, 7, 1100, 1300, 100, none_lost, NULL), 200);
}

/* The time that the machine took is at most the gap. */
static uint64_t all_lost(void *ctx, uint64_t from, uint64_t to)
{
	(void)ctx;
	return 2 * (to - from);
}

static void standstill__never_negative(void **state)
{
	assert_int_equal(kl_standstill(NULL, 0, 0, 1000, 100, all_lost, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process__why),
		cmocka_unit_test(node__why),
		cmocka_unit_test(standstill__gaps),
		cmocka_unit_test(standstill__never_negative),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
