// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two processes that do not reach each other although no node has failed: which host complains
 * (loader/order/stuck_core.h), and which process is expelled (controller/recover/recover_stuck.c).
 */
#include "tests/unit/unit.h"

#include "controller/recover/recover_core.h"
#include "loader/order/stuck_core.h"

#define MS       1000000ULL
#define DECISION (BL_RECOVER_STUCK_NS)

static const struct bl_recover_cfg cfg = { .settle_ns = 5 * MS,
					   .answer_ns = 1000 * MS,
					   .grace_ns = 3000 * MS };

/* a rack: switch 9 with hosts 1 to @hosts; host h has address 10.h */
static struct bl_recover *rack(uint32_t hosts)
{
	static struct bl_recover_port sw_port[8], up[8];
	static uint8_t addr[8][1][16];
	struct bl_recover *r = bl_recover_new(&cfg);
	struct bl_recover_hello h = { .id = 9,
				      .epoch = 5,
				      .kind = BL_DET_SWITCH,
				      .port = sw_port,
				      .nports = hosts,
				      .name = "tor" };
	struct bl_recover_out o;
	uint32_t i;

	assert_non_null(r);
	bl_recover_start(r, 0, 5);
	for (i = 0; i < hosts; i++)
		sw_port[i] = (struct bl_recover_port){ .port = i + 1,
						       .neighbour = i + 1,
						       .role = BL_RECOVER_HOST };
	assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
	bl_recover_saved_node(r, 0, 9);
	for (i = 1; i <= hosts; i++) {
		static const uint16_t endpoint[] = { 61696 };

		up[i] = (struct bl_recover_port){ .neighbour = 9, .role = BL_RECOVER_UP };
		addr[i][0][0] = 10;
		addr[i][0][1] = (uint8_t)i;
		h = (struct bl_recover_hello){ .id = i,
					       .epoch = 5,
					       .kind = BL_DET_HOST,
					       .addr = (const uint8_t(*)[16])addr[i],
					       .naddrs = 1,
					       .port = &up[i],
					       .nports = 1,
					       .endpoint = endpoint,
					       .nendpoints = 1 };
		snprintf(h.name, sizeof(h.name), "h%u", i);
		assert_int_equal(bl_recover_hello(r, 0, &h), BL_RECOVER_OK);
		bl_recover_saved_node(r, 0, i);
	}
	for (i = 0; i < bl_recover_nodes(r); i++)
		bl_recover_barred(r, 0, bl_recover_node_at(r, i)->id,
				  bl_recover_node_at(r, i)->bar);
	while (bl_recover_next(r, &o))
		;
	return r;
}

/* port 100 + id, life 200 + id */
static enum bl_recover_reason complain(struct bl_recover *r, uint64_t now, uint32_t from,
				       uint32_t to)
{
	struct bl_recover_stuck s = {
		.from = { .port = (uint16_t)(100 + from), .life = (uint16_t)(200 + from) },
		.to = { .port = (uint16_t)(100 + to), .life = (uint16_t)(200 + to) },
		.addr = { 10, (uint8_t)to }
	};

	return bl_recover_proc_stuck(r, now, from, &s);
}

/* Returns the hosts that PUT_OUT is sent to now, as a text: "2 3". */
static const char *out_now(struct bl_recover *r)
{
	static char text[64];
	struct bl_recover_out o;

	*text = 0;
	while (bl_recover_next(r, &o)) {
		if (o.what != BL_RECOVER_PUT_OUT)
			continue;
		assert_int_equal(o.number & 0xffff, 100 + o.node);
		assert_int_equal(o.number >> 16, 200 + o.node);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", *text ? " " : "",
			 o.node);
	}
	return text;
}

static struct bl_recover_proc gone(uint32_t id)
{
	return (struct bl_recover_proc){ .port = (uint16_t)(100 + id),
					 .life = (uint16_t)(200 + id),
					 .why = BL_WHY_UNREACHABLE,
					 .t = 777 };
}

static void put_out__the_receiver_of_two(void **state)
{
	struct bl_recover *r = rack(3);
	struct bl_recover_proc p = gone(2);

	(void)state;
	assert_int_equal(complain(r, 10 * MS, 1, 2), BL_RECOVER_OK);
	assert_int_equal(complain(r, 11 * MS, 1, 2), BL_RECOVER_REPEATED);
	assert_int_equal(bl_recover_due(r), 10 * MS + DECISION);
	bl_recover_tick(r, 10 * MS + DECISION - 1);
	assert_string_equal(out_now(r), "");
	bl_recover_tick(r, 10 * MS + DECISION);
	assert_string_equal(out_now(r), "2");
	assert_int_equal(complain(r, 600 * MS, 1, 2), BL_RECOVER_REPEATED);
	/*
	 * its host confirms; the process is announced like any other, and complaints about it are
	 * void
	 */
	assert_int_equal(bl_recover_proc_down(r, 700 * MS, 2, &p), BL_RECOVER_OK);
	assert_int_equal(complain(r, 701 * MS, 1, 2), BL_RECOVER_REPEATED);
	bl_recover_tick(r, 705 * MS);
	assert_int_equal(bl_recover_failure(r, 1)->failed[0].proc.why, BL_WHY_UNREACHABLE);
	assert_int_equal(bl_recover_failure(r, 1)->failed[0].proc.life, 202);
	bl_recover_tick(r, 5000 * MS);
	assert_int_equal(bl_recover_node(r, 2)->state, BL_DET_UP);
	bl_recover_free(r);
}

/* A process that several do not reach, or that reaches none of several, is expelled alone. */
static void put_out__who_is_at_most_ends(void **state)
{
	static const struct {
		uint8_t c[6][2];
		const char *out;
	} t[] = {
		{ { { 1, 2 }, { 1, 3 } }, "1" },
		{ { { 1, 2 }, { 3, 2 } }, "2" },
		{ { { 1, 2 }, { 1, 3 }, { 1, 4 }, { 4, 2 } }, "1 2" },
		{ { { 1, 2 }, { 1, 3 }, { 4, 2 } }, "2 3" }, /* the example of recover_stuck.c */
		{ { { 1, 2 }, { 2, 1 } }, "2" },             /* complaints go both ways */
		{ { { 1, 2 }, { 3, 4 } }, "2 4" },
	};
	unsigned int i, k;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct bl_recover *r = rack(4);

		for (k = 0; k < 6 && t[i].c[k][0]; k++)
			assert_int_equal(complain(r, (10 + k) * MS, t[i].c[k][0], t[i].c[k][1]),
					 BL_RECOVER_OK);
		bl_recover_tick(r, 100 * MS + DECISION);
		assert_string_equal(out_now(r), t[i].out);
		bl_recover_free(r);
	}
}

/*
 * A host that does not expel the process has failed, as any host that does not answer. A host with
 * a new session is told again.
 */
static void put_out__no_answer(void **state)
{
	struct bl_recover *r = rack(3);
	uint64_t at = 10 * MS + DECISION;

	(void)state;
	complain(r, 10 * MS, 1, 2);
	bl_recover_tick(r, at);
	assert_string_equal(out_now(r), "2");
	bl_recover_tick(r, at + 999 * MS);
	assert_int_equal(bl_recover_node(r, 2)->state, BL_DET_UP);
	bl_recover_tick(r, at + 1000 * MS);
	assert_int_equal(bl_recover_node(r, 2)->state, BL_DET_DOWN);
	bl_recover_free(r);
}

static void complaint__refused(void **state)
{
	struct bl_recover *r = rack(2);
	struct bl_recover_stuck s = { .from = { .port = 101, .life = 1 },
				      .to = { .port = 0 },
				      .addr = { 10, 2 } };
	struct bl_recover_proc p = gone(2);

	(void)state;
	assert_int_equal(bl_recover_proc_stuck(r, MS, 1, &s), BL_RECOVER_UNKNOWN_PORT);
	assert_int_equal(complain(r, MS, 1, 7), BL_RECOVER_UNKNOWN_NODE);
	/* a switch sends nothing */
	assert_int_equal(complain(r, MS, 9, 2), BL_RECOVER_UNKNOWN_PORT);
	assert_int_equal(complain(r, MS, 8, 2), BL_RECOVER_UNKNOWN_NODE);
	/* the receiver is gone before the decision: no process is expelled */
	assert_int_equal(complain(r, MS, 1, 2), BL_RECOVER_OK);
	bl_recover_proc_down(r, 2 * MS, 2, &p);
	bl_recover_tick(r, 3 * DECISION);
	assert_string_equal(out_now(r), "");
	bl_recover_free(r);
}

/* The switch does not hear host @id any more. Gives the answers to the commands that follow. */
static void falls_silent(struct bl_recover *r, uint64_t now, uint32_t id)
{
	assert_int_equal(bl_recover_link_down(r, now, 9, id, id, 900, 7), BL_RECOVER_OK);
}

static void settles(struct bl_recover *r, uint64_t now)
{
	bl_recover_tick(r, now);
	bl_recover_barred(r, now, 9, bl_recover_node(r, 9)->bar);
	bl_recover_tick(r, now);
}

/*
 * A host fails with one of the two processes before the decision: that was the reason, and the
 * other process stays.
 */
static void failed__host_of_either(void **state)
{
	uint32_t id;

	(void)state;
	for (id = 1; id <= 2; id++) {
		struct bl_recover *r = rack(4);

		assert_int_equal(complain(r, 10 * MS, 1, 2), BL_RECOVER_OK);
		falls_silent(r, 400 * MS, id);
		settles(r, 405 * MS);
		assert_int_equal(bl_recover_node(r, id)->state, BL_DET_GONE);
		assert_string_equal(out_now(r), "");
		bl_recover_tick(r, 10 * MS + DECISION);
		assert_string_equal(out_now(r), "");
		bl_recover_free(r);
	}
}

/*
 * Nothing is decided while it is not settled which node has failed, since that may be the reason. A
 * process that is not concerned is expelled afterwards.
 */
static void failed__not_settled_yet(void **state)
{
	const uint64_t at = 10 * MS + DECISION;
	uint32_t id;

	(void)state;
	for (id = 1; id <= 3; id++) {
		struct bl_recover *r = rack(4);

		assert_int_equal(complain(r, 10 * MS, 1, 2), BL_RECOVER_OK);
		falls_silent(r, at - MS, id);
		bl_recover_tick(r, at);
		assert_string_equal(out_now(r), "");
		/* bl_recover_tick() is not due for that in the meantime */
		assert_int_equal(bl_recover_due(r), at + 4 * MS);
		settles(r, at + 4 * MS);
		assert_int_equal(bl_recover_node(r, id)->state, BL_DET_GONE);
		assert_string_equal(out_now(r), id == 3 ? "2" : "");
		bl_recover_free(r);
	}
}

static void bl_stuck_sample__table(void **state)
{
	struct bl_stuck s = { 0 };

	(void)state;
	assert_false(bl_stuck_sample(&s, 1, 7, 0, 1, 1000, 5000));
	assert_false(bl_stuck_sample(&s, 1, 7, 1, 1, 2000, 5000));
	assert_false(bl_stuck_sample(&s, 1, 7, 3, 9, 6999, 5000));
	assert_true(bl_stuck_sample(&s, 1, 7, 3, 9, 7000, 5000));
	assert_false(bl_stuck_sample(&s, 1, 7, 3, 10, 7001, 5000)); /* once in that time */
	assert_true(bl_stuck_sample(&s, 1, 7, 3, 10, 12000, 5000));
	/* a process that does not run is at fault itself */
	assert_false(bl_stuck_sample(&s, 1, 7, 3, 10, 17000, 5000));
	/* the head moves, the window is empty, another process is there: all begin anew */
	assert_false(bl_stuck_sample(&s, 1, 8, 3, 11, 30000, 5000));
	assert_false(bl_stuck_sample(&s, 1, 8, 3, 12, 34999, 5000));
	assert_false(bl_stuck_sample(&s, 1, 8, 0, 12, 35000, 5000));
	assert_false(bl_stuck_sample(&s, 1, 8, 1, 13, 36000, 5000));
	assert_false(bl_stuck_sample(&s, 2, 8, 1, 14, 41000, 5000));
	assert_true(bl_stuck_sample(&s, 2, 8, 1, 15, 46000, 5000));
}

static void bl_stuck_lags__table(void **state)
{
	struct bl_stuck_lag s = { 0 };

	(void)state;
	/* 5000 back is not too far; from 5001 on it takes 10000 of time, in samples of up to 2500
	 */
	assert_false(bl_stuck_lags(&s, 1, 7000, 12000, 1000, 5000));
	assert_false(bl_stuck_lags(&s, 1, 7000, 12001, 2000, 5000));
	assert_false(bl_stuck_lags(&s, 1, 7000, 14001, 4000, 5000));
	assert_false(bl_stuck_lags(&s, 1, 7000, 64000, 54000, 5000)); /* the machine stood still */
	assert_int_equal(s.age_ns, 1000 + 2000 + 2500);
	/* another old time makes no difference */
	assert_false(bl_stuck_lags(&s, 1, 61000, 66001, 56000, 5000));
	assert_false(bl_stuck_lags(&s, 1, 1, 68000, 58000, 5000));
	assert_false(bl_stuck_lags(&s, 1, 1, 68499, 58499, 5000));
	assert_true(bl_stuck_lags(&s, 1, 1, 68500, 58500, 5000));
	/* near, nothing held, a time ahead, another process: all begin anew */
	assert_false(bl_stuck_lags(&s, 1, 66000, 69000, 59000, 5000));
	assert_int_equal(s.age_ns, 0);
	s.age_ns = 9999;
	assert_false(bl_stuck_lags(&s, 1, BL_TIME_NONE, 69001, 59001, 5000));
	assert_int_equal(s.age_ns, 0);
	s.age_ns = 9999;
	assert_false(bl_stuck_lags(&s, 1, 79000, 69002, 59002, 5000));
	assert_int_equal(s.age_ns, 0);
	s.age_ns = 9999;
	assert_false(bl_stuck_lags(&s, 2, 1, 69003, 59003, 5000));
	assert_int_equal(s.age_ns, 0);
}

static struct bl_stuck_try tried[BL_STUCK_NAMES];
static const uint8_t addr1[16] = { 1 }, addr2[16] = { 2 };

static bool may_complain(uint64_t sent, uint64_t mono)
{
	return bl_stuck_tried(tried, addr1, 5, 9, sent, mono);
}

/* A complaint needs a PREP that the receiver's program would have answered, and no answer. */
static void bl_stuck_tried__edges(void **state)
{
	const uint64_t s = BL_STUCK_TRIED_NS;
	unsigned int i;

	(void)state;
	assert_false(may_complain(0, 10 * s));
	bl_stuck_try_note(tried, addr1, 5, 9, 699, 700, s);
	assert_false(may_complain(0, 10 * s)); /* C had passed it */
	bl_stuck_try_note(tried, addr1, 5, 9, 700, 700, s);
	assert_false(may_complain(700, 2 * s - 1));
	assert_true(may_complain(700, 2 * s));
	assert_false(may_complain(701, 2 * s)); /* C has passed it since */
	assert_false(bl_stuck_tried(tried, addr2, 5, 9, 700, 2 * s));
	assert_false(bl_stuck_tried(tried, addr1, 6, 9, 700, 2 * s));
	assert_false(bl_stuck_tried(tried, addr1, 5, 8, 700, 2 * s));
	/* another one, with the first one still open: the time goes on */
	bl_stuck_try_note(tried, addr1, 5, 9, 800, 700, 2 * s);
	assert_true(may_complain(800, 2 * s));
	/* with the first one passed, it begins anew */
	bl_stuck_try_note(tried, addr1, 5, 9, 900, 801, 3 * s);
	assert_false(may_complain(801, 4 * s - 1));
	assert_true(may_complain(801, 4 * s));
	/* an answer of somebody else, and its own */
	bl_stuck_try_answered(tried, addr2, 5, 9);
	bl_stuck_try_answered(tried, addr1, 5, 8);
	assert_true(may_complain(801, 4 * s));
	bl_stuck_try_answered(tried, addr1, 5, 9);
	assert_false(may_complain(801, 4 * s));
	/* all places are taken, until C passes one */
	for (i = 0; i < BL_STUCK_NAMES; i++)
		bl_stuck_try_note(tried, addr2, (uint16_t)(1 + i), 9, 1000 + i, 900, 5 * s);
	bl_stuck_try_note(tried, addr1, 5, 9, 2000, 1000, 5 * s);
	assert_false(may_complain(1000, 9 * s));
	bl_stuck_try_note(tried, addr1, 5, 9, 2000, 1001, 6 * s);
	assert_true(may_complain(1001, 7 * s));
	assert_false(bl_stuck_tried(tried, addr2, 1, 9, 900, 9 * s));
	assert_true(bl_stuck_tried(tried, addr2, 2, 9, 1001, 9 * s));
}

static void bl_stuck_end__edges(void **state)
{
	static const struct {
		uint32_t head, tail, end;
	} t[] = {
		{ 7, 7, 7 },
		{ 7, 8, 8 },
		{ 7, 7 + BL_RWIN, 7 + BL_RWIN },
		{ 7, 8 + BL_RWIN, 7 + BL_RWIN },
		{ 7, 6, 7 + BL_RWIN },
		{ 0, ~0U, BL_RWIN },
		{ ~0U, 1, 1 },
		{ ~0U, ~0U - 1, BL_RWIN - 1 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_stuck_end((uint64_t)t[i].tail << 32 | t[i].head), t[i].end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(put_out__the_receiver_of_two),
		cmocka_unit_test(put_out__who_is_at_most_ends),
		cmocka_unit_test(put_out__no_answer),
		cmocka_unit_test(complaint__refused),
		cmocka_unit_test(failed__host_of_either),
		cmocka_unit_test(failed__not_settled_yet),
		cmocka_unit_test(bl_stuck_sample__table),
		cmocka_unit_test(bl_stuck_lags__table),
		cmocka_unit_test(bl_stuck_tried__edges),
		cmocka_unit_test(bl_stuck_end__edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
