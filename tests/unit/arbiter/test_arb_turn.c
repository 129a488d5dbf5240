// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of arbiter/lead.h, and of the allocation stage of arbiter/pipe.c with an allocator whose
 * runs take long: the spiral in which late runs find more work and become later.
 */
#include "arbiter/arb.h"
#include "arbiter/comm.h"
#include "arbiter/pipe.h"

#include "tests/unit/unit.h"

#define HORIZON 512

static void bl_lead__remembers(void **state)
{
	static const struct {
		uint64_t now, took, want;
	} t[] = {
		{ 0, 10, 82 },   /* at least 82 */
		{ 16, 80, 100 }, /* a quarter more than 80 */
		{ 32, 400, 500 },
		{ 48, 10, 500 },
		{ 999, 10, 500 }, /* the span ends */
		/* a pause */
		{ 1000, 10, 500 },
		{ 1999, 10, 500 },
		{ 2000, 80, 100 },
		{ 2016, 1024, 100 },
		{ 2032, 1023, 1024 }, /* at most 1024 */
		{ 4999, 10, 82 },     /* no call for more than a span */
	};
	struct bl_lead l = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_lead(&l, t[i].now, t[i].took, 1000, 82, 1024), t[i].want);
}

/** struct toy - An allocator that takes its time. */
struct toy {
	struct bl_arb *a;
	uint64_t run_ns;  /* duration of a run */
	uint32_t demands; /* since the test reset it */
	uint64_t ahead;   /* slots from the start of a run to its first slot */
};

static int toy_demand(void *p, uint32_t src, uint32_t dst, uint32_t mtus, uint64_t present)
{
	((struct toy *)p)->demands++;
	return 0;
}

static void toy_forget(void *p, uint32_t src)
{
}

static unsigned int toy_run(void *p, uint64_t slot, struct arb_grant *out, unsigned int max)
{
	struct toy *t = p;
	const uint64_t from = bl_mono_ns();

	t->ahead = slot - arb_slot(t->a, 0);
	while (bl_mono_ns() - from < t->run_ns)
		;
	return 0;
}

static bool toy_waiting(void *p)
{
	return true;
}

static struct bl_arb *make(struct toy *t, bool alone)
{
	static const struct arb_alloc_ops ops = { toy_demand,  toy_forget, toy_run,
						  toy_waiting, HORIZON,    16 };
	struct bl_arb *a = aligned_alloc(64, (sizeof(*a) + 63) & ~63UL);
	struct bl_err err;

	assert_non_null(a);
	memset(a, 0, sizeof(*a));
	*t = (struct toy){ .a = a };
	a->cfg = (struct bl_arb_cfg){ .slot_ns = 10000,
				      .lead_us = 100,
				      .run_slots = 16,
				      .threads = 1,
				      .nendpoints = 2,
				      .clock = CLOCK_MONOTONIC };
	a->bell_fd = -1;
	a->aops = &ops;
	a->alloc = t;
	a->alone = alone;
	a->busy = true;
	a->until_ns = BL_FCP_NEVER;
	assert_int_equal(arb_pipe_open(a, &err), 0);
	return a;
}

static void end(struct bl_arb *a)
{
	arb_pipe_close(a);
	free(a);
}

/* Runs the stage until one more run has ended, and comm has seen its mark. */
static void one_run(struct bl_arb *a)
{
	const uint64_t runs = a->runs;

	while (a->runs == runs)
		arb_alloc_turn(a);
	arb_comm_take(a);
}

/*
 * The next run leads by a quarter more than the last one took. Where the test itself is stopped
 * between two lines of the code the lead is less: so a round in which that happens in more than a
 * quarter of the runs is repeated, until one succeeds.
 */
static void arb_alloc_turn__slow_runs_lead_further(void **state)
{
	struct toy t;
	struct bl_arb *a = make(&t, true);
	unsigned int i, round, less = 1, slow = 0;

	/* 100 us, unless the machine was stopped meanwhile: then the test starts again */
	for (i = 0; one_run(a), t.ahead > 11; i++) {
		assert_true(i < 100);
		end(a);
		a = make(&t, true);
	}
	t.run_ns = 3000000;
	for (round = 0; round < 200 && (!slow || less > slow / 4); round++)
		for (less = slow = i = 0; i < 20; i++) {
			const uint64_t took = a->took_ns;

			one_run(a);
			if (took < 3000000 || took >= 10000000)
				continue; /* the first, and pauses */
			slow++;
			less += t.ahead + 2 < took * 5 / 4 / a->cfg.slot_ns;
		}
	assert_true(slow && less <= slow / 4);
	end(a);
}

/* Slots beyond the horizon would belong to the arbiter that takes over. */
static void arb_alloc_turn__never_beyond_the_horizon(void **state)
{
	struct toy t;
	struct bl_arb *a = make(&t, false);
	unsigned int i;

	t.run_ns = 3000000;
	for (i = 0; i < 5; i++) {
		one_run(a);
		assert_true((int64_t)t.ahead <= 11);
	}
	end(a);
}

static uint32_t taken(struct bl_arb *a, struct toy *t, uint32_t asks)
{
	struct arb_ask q = { .src = 0, .dst = 1, .mtus = 1 };

	while (ck_ring_size(&a->asks) < asks)
		ck_ring_enqueue_spsc_ask(&a->asks, a->asks_buf, &q);
	t->demands = 0;
	one_run(a);
	return t->demands;
}

static void arb_alloc_turn__slow_runs_take_less(void **state)
{
	struct toy t;
	struct bl_arb *a = make(&t, true);
	uint32_t want = 1024, i; /* for two endpoints */

	assert_int_equal(taken(a, &t, 50000), want);
	/* a little more than half of the horizon; a pause only makes it longer */
	t.run_ns = 2600000;
	for (; want > ARB_ASK_LEAST; want /= 2)
		taken(a, &t, 0);
	assert_int_equal(a->ask_budget, ARB_ASK_LEAST);
	assert_int_equal(taken(a, &t, 1000), ARB_ASK_LEAST);
	assert_int_equal(taken(a, &t, 1000), ARB_ASK_LEAST); /* but always some asks */
	t.run_ns = 0;
	/* a pause halves it once more */
	for (i = 0; i < 1000 && a->ask_budget < 16 * ARB_ASK_LEAST; i++) {
		want = a->ask_budget;
		assert_int_equal(taken(a, &t, 50000), want);
		assert_true(a->ask_budget == 2 * want ||
			    a->ask_budget == (want / 2 > ARB_ASK_LEAST ? want / 2 : ARB_ASK_LEAST));
	}
	assert_int_equal(a->ask_budget, 16 * ARB_ASK_LEAST);
	end(a);
}

/*
 * Comm is stopped: no more than ARB_RUNS_AHEAD runs are started, and the next one begins at the
 * present.
 */
static void arb_alloc_turn__waits_for_comm(void **state)
{
	struct toy t;
	struct bl_arb *a = make(&t, true);
	const uint64_t until = bl_mono_ns() + 20000000;

	(void)state;
	while (bl_mono_ns() < until)
		arb_alloc_turn(a);
	assert_int_equal(a->runs, ARB_RUNS_AHEAD);
	arb_comm_take(a);
	assert_int_equal(a->marks, ARB_RUNS_AHEAD);
	while (a->runs == ARB_RUNS_AHEAD)
		arb_alloc_turn(a);
	assert_in_range(t.ahead, 1, 600);
	end(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_lead__remembers),
		cmocka_unit_test(arb_alloc_turn__slow_runs_lead_further),
		cmocka_unit_test(arb_alloc_turn__never_beyond_the_horizon),
		cmocka_unit_test(arb_alloc_turn__slow_runs_take_less),
		cmocka_unit_test(arb_alloc_turn__waits_for_comm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
