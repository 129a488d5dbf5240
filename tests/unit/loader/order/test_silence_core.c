// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* loader/order/silence_core.h: when the neighbour of a silent host has noticed the silence. */
#include "tests/unit/unit.h"

#include "loader/order/silence_core.h"

#define MS    1000000ULL
#define DEAD  (100 * MS)
#define LEAST (2 * DEAD + MS)
#define MOST  (10 * DEAD + BL_SILENCE_MOST_NS)
#define BUS   (1000000 * MS) /* bus time when the silence begins */
#define MONO  (5000 * MS)    /* CLOCK_MONOTONIC then */

static const struct bl_host_cfg cfg = { .dead_after_ns = DEAD, .beacon_ns = MS };

/* The page of a host whose last frame promised @ahead more than its clock showed. */
static struct bl_host_page page_before(uint64_t ahead)
{
	return (struct bl_host_page){ .now_ns = BUS - MS,
				      .barrier = BUS - 2 * MS,
				      .sent_barrier = BUS - MS,
				      .promised = BUS + ahead };
}

/*
 * A neighbour that sends a beacon every ms until @sends, and excludes the host after @notices; both
 * count from the begin of the silence. Returns what ends the wait, and when in *@at.
 */
static enum bl_silence_says wait_for(uint64_t sends, uint64_t notices, uint64_t ahead, uint64_t *at)
{
	struct bl_host_page page = page_before(ahead);
	struct bl_silence s = bl_silence_begin(&cfg, &page, MONO);
	enum bl_silence_says says = BL_SILENCE_WAIT;

	for (*at = MS; says == BL_SILENCE_WAIT && *at < 2 * MOST; *at += MS) {
		if (*at < sends) {
			page.now_ns = BUS + *at;
			page.barrier = *at < notices ? BUS + ahead : BUS + *at - MS;
		}
		says = bl_silence_sample(&s, &page, MONO + *at);
	}
	*at -= MS;
	return says;
}

static void bl_silence_sample__noticed(void **state)
{
	uint64_t at;

	(void)state;
	/* A neighbour that has noticed early may yet have told nobody. */
	assert_int_equal(wait_for(MOST, DEAD, 0, &at), BL_SILENCE_NOTICED);
	assert_int_equal(at, LEAST);
	/* Its watch time goes at a tenth of the speed of clocks. */
	assert_int_equal(wait_for(MOST, 10 * DEAD, 0, &at), BL_SILENCE_NOTICED);
	assert_int_equal(at, 10 * DEAD);
}

static void bl_silence_sample__last_promise(void **state)
{
	struct bl_host_page page = page_before(0);
	struct bl_silence s = bl_silence_begin(&cfg, &page, MONO);
	uint64_t at;

	(void)state;
	/* The barrier that comes back is the host's own: nobody has excluded it. */
	assert_int_equal(wait_for(MOST, UINT64_MAX, 3 * MS / 2, &at), BL_SILENCE_LATE);
	assert_int_equal(wait_for(MOST, UINT64_MAX, 50 * MS, &at), BL_SILENCE_LATE);
	/*
	 * The first frame of the neighbour comes late. Until then it is not known what the host's
	 * last frame promised, only that its clock did not show more than now.
	 */
	page.barrier = BUS + 500 * MS;
	assert_int_equal(bl_silence_sample(&s, &page, MONO + 500 * MS), BL_SILENCE_WAIT);
	page.now_ns = BUS + 501 * MS;
	assert_int_equal(bl_silence_sample(&s, &page, MONO + 501 * MS), BL_SILENCE_WAIT);
	page.barrier = BUS + 503 * MS;
	assert_int_equal(bl_silence_sample(&s, &page, MONO + 502 * MS), BL_SILENCE_WAIT);
	page.barrier = BUS + 504 * MS;
	assert_int_equal(bl_silence_sample(&s, &page, MONO + 503 * MS), BL_SILENCE_NOTICED);
}

static void bl_silence_sample__limits(void **state)
{
	uint64_t at;

	(void)state;
	/* no neighbour */
	assert_int_equal(wait_for(0, 0, 0, &at), BL_SILENCE_UNSEEN);
	assert_int_equal(at, LEAST + BL_SILENCE_UNSEEN_NS);
	/* one that falls silent while the host waits: it may hear the host nevertheless */
	assert_int_equal(wait_for(50 * MS, UINT64_MAX, 0, &at), BL_SILENCE_LATE);
	assert_int_equal(at, MOST);
	/* one that goes on sending and does not notice */
	assert_int_equal(wait_for(UINT64_MAX, UINT64_MAX, 0, &at), BL_SILENCE_LATE);
	assert_int_equal(at, MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_silence_sample__noticed),
		cmocka_unit_test(bl_silence_sample__last_promise),
		cmocka_unit_test(bl_silence_sample__limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
