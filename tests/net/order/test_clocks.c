// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Clocks that differ. Within the bound, there is one order and nothing is lost. Beyond the bound,
 * the wrong clock is refused and counted, and the others continue. The last case is the wrap of the
 * 48-bit nanosecond timestamps.
 */
#include "tests/net/traffic.h"

#define BOUND_US 2000
#define WRAP     (3ULL << 48)
#define WAIT_MS  60000

/* No host is excluded in any case, not even one that has no CPU for a while. */
static void nobody_dies(struct bl_node_cfg *cfg)
{
	cfg->dead_after_us = 10000000;
}

static void skew_within(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	/*
	 * Any two differ by less than the bound: a node accepts what is ahead of its own clock by
	 * at most its bound.
	 */
	static const int64_t skew_us[] = { 900, -900, 400, 0, -300, 700 };

	nobody_dies(cfg);
	cfg->clock_bound_us = BOUND_US;
	if (n->kind == LAB_HOST)
		cfg->skew_ns = skew_us[(n->index - 1) % 6] * 1000;
}

/* @meanwhile: the work of the script while the endpoints send; may be NULL. */
static void all_to_some(unsigned int endpoints, unsigned int hosts, struct tr_cfg cfg,
			void (*meanwhile)(void))
{
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack_open();
	for (i = 0; i < endpoints; i++) {
		cfg.host = i % hosts;
		cfg.fn = tr_mix;
		cfg.ring_bytes = TR_RING_TIGHT(endpoints);
		tr_add(&cfg);
	}
	tr_go();
	if (meanwhile)
		meanwhile();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	CHECK(TR_SUM(late_dropped) == 0, "late");
	CHECK(rack_count_all(BL_R_BARRIER_AHEAD) + rack_count_all(BL_R_TS_AHEAD) == 0, "a clock "
										       "within the "
										       "bound was "
										       "refused");
}

RACK_TEST(skew__within_the_bound)
{
	struct tr_cfg cfg = { .scatterings = 250, .len = 300, .fan = 5, .items = 2, .more = 50 };

	rack.tweak = skew_within;
	all_to_some(8, 6, cfg, NULL);
}

RACK_TEST(skew__within_the_bound_leaf_spine)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.tweak = skew_within;
	all_to_some(6, 6, (struct tr_cfg){ .scatterings = 150, .len = 300, .fan = 4 }, NULL);
}

static void h4_is_ahead(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	nobody_dies(cfg);
	if (n->kind == LAB_HOST && n->index == 4)
		cfg->skew_ns = 10000000000;
}

static void h4_is_behind(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	nobody_dies(cfg);
	if (n->kind == LAB_HOST && n->index == 4)
		cfg->skew_ns = -20000000;
}

static unsigned int the_switch(void)
{
	unsigned int i;

	for (i = 0; !rack_is_switch(i); i++)
		;
	return i;
}

static bool three_are_in(void)
{
	return rack_live_inputs(the_switch()) == 3;
}

static bool h4_was_told(void)
{
	const uint64_t *fails = tr_sh->node[3].fails;

	return fails[BL_FAIL_UNREACHABLE] + fails[BL_FAIL_UNKNOWN] > 0;
}

static bool h4_was_counted(void)
{
	return rack_count(the_switch(), BL_R_BARRIER_AHEAD) > 0;
}

/*
 * The clock of h4 is 10 s fast and the bound is 50 us, so nothing of h4 is accepted. A smaller
 * offset would be valid by the time that it is checked if the reader has had no CPU for as long.
 */
RACK_TEST(skew__ahead_of_the_bound)
{
	unsigned int i;
	uint32_t g;

	rack.lab.spec.hosts = 4;
	rack.tweak = h4_is_ahead;
	rack_open();
	for (i = 0; i < 3; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .to = 7,
					 .scatterings = 400,
					 .len = 200,
					 .fan = 3,
					 .quiet_ms = 5000,
					 .ring_bytes = TR_RING_TIGHT(4) });
	tr_add(&(struct tr_cfg){ .host = 3,
				 .fn = tr_mix,
				 .to = 7,
				 .scatterings = 20,
				 .len = 200,
				 .gap_us = 20000,
				 .quiet_ms = 5000 });
	CHECK(tr_until(three_are_in, WAIT_MS), "%u inputs", rack_live_inputs(the_switch()));
	TR_STORE(tr_sh->go, 1); /* h4 never joins, so tr_go() would wait for ever */
	tr_wait_done(WAIT_MS);
	CHECK(tr_until(h4_was_told, WAIT_MS), "h4 was not told");
	CHECK(tr_until(h4_was_counted, WAIT_MS), "the wrong clock was not counted");
	tr_stop();
	/* Everything between h1, h2 and h3 arrives, and nothing of h4. */
	tr_judge(7, 7);
	for (i = 0; i < 3; i++)
		for (g = 0; g < tr_sh->node[i].ngot; g++)
			CHECK(tr_sh->node[i].got[g].sender != 3, "a message with a wrong timestamp "
								 "was delivered");
	CHECK(three_are_in(), "%u inputs", rack_live_inputs(the_switch()));
}

/*
 * Sends to h4, which takes it for fast, until tr_enough(): a message that arrives 20 ms after it
 * was sent may be accepted.
 */
static void knock(struct tr *w)
{
	const uint32_t len = 200;

	while (!TR_LOAD(tr_sh->enough) && w->me->nsent < TR_SENT_MAX - 10) {
		tr_send(w, w->cfg->to, 1, &len, 0); /* or there is no window yet */
		tr_take(w, 20);
	}
	tr_finish(w);
}

static bool h4_noticed(void)
{
	struct bl_counts c = rack_counts(rack_host(3));

	return c.n[BL_R_BARRIER_AHEAD] + c.n[BL_R_TS_AHEAD] > 0;
}

/*
 * A clock that is 20 ms slow delays all hosts by 20 ms and breaks nothing. Its host takes the
 * others for fast, so it receives nothing itself.
 */
RACK_TEST(skew__behind)
{
	unsigned int i;

	rack.lab.spec.hosts = 4;
	rack.tweak = h4_is_behind;
	rack_open();
	for (i = 0; i < 4; i++)
		tr_add(&(struct tr_cfg){ .host = i,
					 .fn = tr_mix,
					 .to = i < 3 ? 7 : 8,
					 .scatterings = 60,
					 .len = 200,
					 .fan = 3,
					 .gap_us = 2000,
					 .quiet_ms = 4000,
					 .ring_bytes = TR_RING_TIGHT(4) });
	tr_add(&(struct tr_cfg){ .host = 0, .fn = knock, .to = 8, .quiet_ms = 3000 });
	tr_go();
	CHECK(tr_until(h4_noticed, WAIT_MS), "the slow clock noticed nothing");
	tr_enough();
	tr_wait_done(WAIT_MS);
	tr_stop();
	tr_judge(7, 7);
}

/** struct wrap - shared by the case and its process. */
static struct wrap {
	/* ns from the start of the first node, with which the clock of all nodes begins, to the
	 * wrap */
	uint64_t lead;
	/* The clock wrapped before there was traffic, so the run proves nothing. */
	bool late;
} * wrap;
static uint64_t before, after; /* deliveries */

static void near_the_wrap(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	(void)n;
	nobody_dies(cfg);
	cfg->clock_base_ns = WRAP - wrap->lead;
}

static bool count_both(void)
{
	static uint32_t seen[6];
	uint32_t i;

	for (i = 0; i < 6; i++)
		for (; seen[i] < TR_LOAD(tr_sh->node[i].ngot); seen[i]++) {
			before += tr_sh->node[i].got[seen[i]].ts < WRAP;
			after += tr_sh->node[i].got[seen[i]].ts >= WRAP;
		}
	return before > 1000 && after > 1000;
}

static bool both_or_late(void)
{
	return count_both() || (after > 1000 && before <= 1000);
}

static void until_both(void)
{
	CHECK(tr_until(both_or_late, (unsigned int)(wrap->lead / 1000000) + WAIT_MS),
	      "%" PRIu64 " deliveries before the wrap, %" PRIu64 " after", before, after);
	wrap->late = before <= 1000;
	tr_enough();
}

static void around_the_wrap(void)
{
	struct tr_cfg cfg = {
		.until_enough = true, .len = 300, .fan = 4, .items = 2, .gap_us = 10000
	};

	rack.tweak = near_the_wrap;
	all_to_some(6, 4, cfg, until_both);
	count_both();
	fprintf(stderr, "  %" PRIu64 " deliveries before the wrap, %" PRIu64 " after\n", before,
		after);
}

/*
 * If the rack takes longer to start than the clock takes to wrap, the case starts again with more
 * time.
 */
static void wrap__of_48_bits(void **state)
{
	const char *wrong;

	(void)state;
	if (!rack_wanted("wrap__of_48_bits"))
		skip();
	wrap = mmap(NULL, sizeof(*wrap), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(wrap != MAP_FAILED);
	for (wrap->lead = 8000000000ULL;; wrap->lead = 40000000000ULL) {
		wrap->late = false;
		wrong = rack_outcome(around_the_wrap);
		if (wrong)
			fail_msg("%s", wrong);
		if (!wrap->late)
			return;
		if (wrap->lead > 8000000000ULL)
			fail_msg("the clock did not wrap in the middle of the traffic");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skew__within_the_bound),
		cmocka_unit_test(skew__within_the_bound_leaf_spine),
		cmocka_unit_test(skew__ahead_of_the_bound),
		cmocka_unit_test(skew__behind),
		cmocka_unit_test(wrap__of_48_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
