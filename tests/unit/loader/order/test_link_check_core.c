// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who is named and until when, and what a node adds to its bound (loader/order/link_check_core.h).
 */
#include "tests/unit/unit.h"
#include "loader/order/link_check_core.h"

#define US   1000LL
#define NONE BL_DELAY_NONE

static struct bl_check c;
static struct bl_check_sample s[4];
static uint64_t now_s;

static void reset(void)
{
	memset(&c, 0, sizeof(c));
	memset(s, 0, sizeof(s));
	now_s = 1000;
}

/* Neighbour @k, node 10 + @k, is @off ahead; 10 us each way; its bound is 50 us. */
static void set(int k, int64_t off)
{
	s[k] = (struct bl_check_sample){ .node = 10 + (uint32_t)k,
					 .in = 10 * US - off,
					 .out = 10 * US + off,
					 .bound = 50 * US };
}

static void silent(int k)
{
	s[k] = (struct bl_check_sample){ .node = 10 + (uint32_t)k, .in = NONE, .out = NONE };
}

static void step(uint32_t n, int host)
{
	bl_check_step(&c, s, n, 50 * US, host, now_s++);
}

static void steps(int times, uint32_t n, int host)
{
	while (times--)
		step(n, host);
}

static void bl_check_step__names_at_once(void **state)
{
	int k;

	(void)state;
	reset();
	for (k = 0; k < 3; k++)
		set(k, 0);
	step(3, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_GOOD);
	assert_int_equal(c.port[1].since_s, 1000);
	set(1, 940 * US);
	step(3, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_OFF);
	assert_int_equal(c.port[1].since_s, 1001);
	assert_int_equal(c.port[1].off, 830 * US);
	assert_true(c.port[1].began && !c.port[0].began && !c.port[2].began);
	steps(20, 3, 0);
	assert_false(c.port[1].began);
	assert_int_equal(c.port[1].since_s, 1001);
	assert_int_equal(c.proven, 0); /* not this node's fault */
	/* it falls silent, and stays named */
	silent(1);
	steps(100, 3, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_OFF);
	/* it comes back and is right: believed after two seconds */
	set(1, 0);
	steps(BL_CHECK_GOOD - 1, 3, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_OFF);
	assert_false(c.port[1].ended);
	step(3, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_GOOD);
	assert_true(c.port[1].ended);
	step(3, 0);
	assert_false(c.port[1].ended);
	/* an accusation in between begins the count anew */
	set(1, -940 * US);
	step(3, 0);
	assert_int_equal(c.port[1].off, -830 * US);
	set(1, 0);
	steps(BL_CHECK_GOOD - 1, 3, 0);
	set(1, -940 * US);
	step(3, 0);
	assert_false(c.port[1].began);
	set(1, 0);
	steps(BL_CHECK_GOOD - 1, 3, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_OFF);
	/* a good one that falls silent is unknown */
	silent(0);
	step(3, 0);
	assert_int_equal(c.port[0].verdict, BL_VERDICT_NONE);
	/* another node is another clock */
	set(1, 0);
	s[1].node = 99;
	step(3, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_GOOD);
}

/* A bound that was greater within the last 8 s still counts. */
static void bl_check_step__bounds_of_late(void **state)
{
	int k;

	(void)state;
	reset();
	for (k = 0; k < 2; k++)
		set(k, 0);
	s[1].bound = 1000 * US;
	step(2, 0);
	set(1, 940 * US);
	steps(BL_CHECK_SAMPLES - 1, 2, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_GOOD);
	step(2, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_OFF);
	/* the same of this node's own */
	reset();
	for (k = 0; k < 2; k++)
		set(k, 0);
	bl_check_step(&c, s, 2, 1000 * US, 0, now_s);
	set(1, 940 * US);
	steps(BL_CHECK_SAMPLES - 1, 2, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_GOOD);
	step(2, 0);
	assert_int_equal(c.port[1].verdict, BL_VERDICT_OFF);
}

/* A host whose clock is 940 us behind its switch's. */
static void bl_check_step__host_doubts_itself(void **state)
{
	uint64_t proven;

	(void)state;
	reset();
	set(0, 0);
	steps(3, 1, 1);
	set(0, 940 * US);
	steps(BL_CHECK_WRONG - 1, 1, 1);
	assert_int_equal(c.port[0].verdict, BL_VERDICT_EITHER); /* nobody can say who */
	assert_int_equal(c.votes, 2);
	assert_int_equal(c.proven, 0);
	step(1, 1);
	assert_int_equal(c.proven, 950 * US + 940 * US); /* it may go on as it did a moment ago */
	steps(BL_CHECK_SAMPLES, 1, 1);
	assert_int_equal(c.proven, 950 * US); /* with its 50: its error is at most 940 + 10 + 50 */
	proven = c.proven;
	steps(50, 1, 1);
	assert_int_equal(c.proven, proven);
	/* it is void now and sends nothing: the switch does not say how its beacons arrive */
	s[0].out = NONE;
	steps(100, 1, 1);
	assert_true(c.proven > 800 * US);
	/* its clock is set right */
	set(0, 0);
	s[0].out = NONE;
	steps(BL_CHECK_WRONG, 1, 1);
	assert_int_equal(c.proven, 0);
	set(0, 0);
	steps(50, 1, 1);
	assert_int_equal(c.proven, 0);
	assert_int_equal(c.port[0].verdict, BL_VERDICT_GOOD);
}

/* A host that is 940 us ahead: without the switch's word nothing of it can be seen any more. */
static void bl_check_step__held_while_void(void **state)
{
	(void)state;
	reset();
	set(0, -940 * US);
	steps(BL_CHECK_WRONG, 1, 1);
	assert_int_equal(c.proven, 950 * US);
	s[0].out = NONE;
	steps(1000, 1, 1);
	assert_int_equal(c.proven, 950 * US);
	/* a queue delays beacons by less than half of it, a little clock error comes on top */
	s[0].in += 400 * US;
	steps(100, 1, 1);
	assert_int_equal(c.proven, 950 * US);
	silent(0);
	steps(100, 1, 1);
	assert_int_equal(c.proven, 950 * US);
	/* the clock is set: the delay of what comes falls by what it was ahead */
	s[0] = (struct bl_check_sample){ .node = 10, .in = 10 * US, .out = NONE, .bound = 50 * US };
	steps(BL_CHECK_WRONG - 1, 1, 1);
	assert_int_equal(c.proven, 950 * US);
	step(1, 1);
	assert_int_equal(c.proven, 0);
	/* one sample without the switch's word proves nothing */
	set(0, -940 * US);
	steps(BL_CHECK_WAIT + BL_CHECK_WRONG + BL_CHECK_SAMPLES, 1, 1);
	assert_int_equal(c.proven, 950 * US);
	s[0].out = NONE;
	s[0].in = 2000 * US;
	step(1, 1);
	assert_int_equal(c.proven, 950 * US);
	set(0, -940 * US);
	steps(BL_CHECK_WRONG, 1, 1);
	assert_true(c.proven >= 950 * US);
}

/*
 * Evidence that all is well must last two seconds; one sample that proves more is followed. While
 * the clock moves, as much more is added; that is forgotten after eight seconds.
 */
static void bl_check_step__follows(void **state)
{
	(void)state;
	reset();
	set(0, 940 * US);
	steps(BL_CHECK_WRONG + BL_CHECK_WAIT, 1, 1);
	assert_int_equal(c.proven, 950 * US);
	set(0, 1000 * US); /* a little more is not left out */
	step(1, 1);
	assert_int_equal(c.proven, 1010 * US + 60 * US);
	steps(50, 1, 1);
	assert_int_equal(c.proven, 1010 * US + 60 * US);
	set(0, 940 * US); /* a little less is not worth a new record */
	steps(50, 1, 1);
	assert_int_equal(c.proven, 1010 * US + 60 * US);
	set(0, 3000 * US);
	steps(BL_CHECK_WAIT + 1, 1, 1);
	assert_int_equal(c.proven, 3010 * US + 2060 * US);
	steps(BL_CHECK_SAMPLES, 1, 1);
	assert_int_equal(c.proven, 3010 * US);
	set(0, 300 * US);
	steps(BL_CHECK_SAMPLES + BL_CHECK_WAIT, 1, 1);
	assert_int_equal(c.proven, 310 * US);
	steps(BL_CHECK_WAIT, 1, 1);
	set(0, 0);
	steps(BL_CHECK_GOOD - 1, 1, 1);
	assert_int_equal(c.proven, 310 * US);
	step(1, 1);
	assert_int_equal(c.proven, 0);
}

/* A switch is not moved by one of three, and is by all of them. */
static void bl_check_step__switch(void **state)
{
	int k;

	(void)state;
	reset();
	for (k = 0; k < 3; k++)
		set(k, k ? 0 : 5000 * US);
	steps(50, 3, 0);
	assert_int_equal(c.proven, 0);
	assert_int_equal(c.port[0].verdict, BL_VERDICT_OFF);
	for (k = 0; k < 3; k++)
		set(k, 5000 * US);
	steps(BL_CHECK_WRONG, 3, 0);
	assert_int_equal(c.proven, 5010 * US);
	assert_int_equal(c.port[2].verdict, BL_VERDICT_SELF);
	/* two fall silent: nobody can say who is wrong any more, and nothing is taken back */
	silent(0);
	silent(1);
	steps(50, 3, 0);
	assert_true(c.proven >= 5010 * US);
	assert_int_equal(c.port[2].verdict, BL_VERDICT_SELF);
	/* one neighbour alone cannot be told from this node */
	reset();
	set(0, 5000 * US);
	steps(50, 1, 0);
	assert_int_equal(c.proven, 0);
	assert_int_equal(c.port[0].verdict, BL_VERDICT_EITHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_check_step__names_at_once),
		cmocka_unit_test(bl_check_step__bounds_of_late),
		cmocka_unit_test(bl_check_step__host_doubts_itself),
		cmocka_unit_test(bl_check_step__held_while_void),
		cmocka_unit_test(bl_check_step__follows),
		cmocka_unit_test(bl_check_step__switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
