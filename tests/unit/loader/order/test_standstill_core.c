// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/order/standstill_core.h: what delays other processes, for how long, and which records of a
 * ring another process waits for.
 */
#include "tests/unit/unit.h"

#include "loader/order/standstill_core.h"

#define MS    1000000ULL
#define LIMIT (800 * MS) /* one sample every 100 ms */
#define STEP  (LIMIT / BL_SAMPLES_PER_LIMIT)

static const struct bl_still_view idle = { .ts = BL_TIME_NONE,
					   .hold = BL_TIME_NONE,
					   .state = 7ULL << 32 | 7,
					   .turn = 3,
					   .read = 4096,
					   .written = 4096 };

/*
 * Samples @v every @step from @now until @until. Returns the last result; all earlier ones must be
 * BL_OUT_MEMBER.
 */
static enum bl_out_why sample_until(struct bl_still *s, const struct bl_still_view *v, uint64_t now,
				    uint64_t step, uint64_t until)
{
	enum bl_out_why why = BL_OUT_MEMBER;

	for (; (int64_t)(until - now) >= 0; now += step) {
		assert_int_equal(why, BL_OUT_MEMBER);
		why = bl_still_sample(s, v, now, LIMIT);
	}
	return why;
}

static struct bl_still_view view_held_by(unsigned int what)
{
	struct bl_still_view v = idle;

	switch (what) {
	case 0:
		v.ts = 5000;
		break;
	case 1:
		v.state = 8ULL << 32 | 7;
		break;
	case 2:
		v.hold = 5000;
		break;
	case 3:
		v.written += 264;
		break;
	}
	return v;
}

static const enum bl_out_why reasons[] = { BL_OUT_IN_FLIGHT, BL_OUT_WINDOW, BL_OUT_WINDOW,
					   BL_OUT_RING };

static void bl_still_sample__at_the_limit(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(reasons); i++) {
		const struct bl_still_view v = view_held_by(i);
		struct bl_still s = { 0 };

		assert_int_equal(sample_until(&s, &v, 1000, STEP, 1000 + LIMIT - STEP),
				 BL_OUT_MEMBER);
		assert_int_equal(bl_still_sample(&s, &v, 1000 + LIMIT - 1, LIMIT), BL_OUT_MEMBER);
		assert_int_equal(bl_still_sample(&s, &v, 1000 + LIMIT, LIMIT), reasons[i]);
		/* The same where the first sample is at 0, and where CLOCK_MONOTONIC wraps. */
		s = (struct bl_still){ 0 };
		assert_int_equal(sample_until(&s, &v, 0, STEP, LIMIT), reasons[i]);
		s = (struct bl_still){ 0 };
		assert_int_equal(sample_until(&s, &v, 0 - STEP * 3, STEP, 0 - STEP), BL_OUT_MEMBER);
		assert_int_equal(sample_until(&s, &v, 0, STEP, LIMIT - STEP * 3), reasons[i]);
	}
}

static void bl_still_sample__idle_is_nobodys_fault(void **state)
{
	static const struct bl_still_view unset = { 0 };
	struct bl_still s = { 0 };

	(void)state;
	assert_int_equal(sample_until(&s, &idle, 5, STEP, 100 * LIMIT), BL_OUT_MEMBER);
	s = (struct bl_still){ 0 };
	assert_int_equal(sample_until(&s, &unset, 5, STEP, 100 * LIMIT), BL_OUT_MEMBER);
}

/* One sample just before the limit finds a change: the time begins anew. */
static void bl_still_sample__any_change(void **state)
{
	static const struct {
		unsigned int what;
		struct bl_still_view change;
	} t[] = {
		{ 0, { .ts = 1 } },
		{ 1, { .state = 1 } },		  /* head */
		{ 1, { .turn = 1 } },
		{ 2, { .hold = 1 } },
		{ 2, { .turn = 1 } },
		{ 3, { .read = 8 } },
	}, none[] = {
		{ 0, { .turn = 1 } }, { 0, { .state = 1ULL << 32 } }, { 0, { .read = 8 } },
		{ 1, { .state = 1ULL << 32 } }, /* more frames behind a head that does not move */
		{ 1, { .written = 264 } },
		{ 2, { .state = 1ULL << 32 } },
		{ 3, { .written = 264 } },
		{ 3, { .turn = 1 } },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t) + ARRAY_SIZE(none); i++) {
		bool counts = i < ARRAY_SIZE(t);
		const struct bl_still_view *c = counts ? &t[i].change
						       : &none[i - ARRAY_SIZE(t)].change;
		unsigned int what = counts ? t[i].what : none[i - ARRAY_SIZE(t)].what;
		struct bl_still_view v = view_held_by(what);
		struct bl_still s = { 0 };

		assert_int_equal(sample_until(&s, &v, 0, STEP, LIMIT - STEP), BL_OUT_MEMBER);
		v.ts += c->ts;
		v.hold += c->hold;
		v.state += c->state;
		v.turn += c->turn;
		v.read += c->read;
		v.written += c->written;
		assert_int_equal(bl_still_sample(&s, &v, LIMIT, LIMIT),
				 counts ? BL_OUT_MEMBER : reasons[what]);
	}
}

/* A process that writes one old time after the other is in one send for all that. */
static void bl_still_sample__old_times(void **state)
{
	struct bl_still_view v = view_held_by(0);
	struct bl_still s = { 0 };
	uint64_t now;

	(void)state;
	for (now = 0; now < LIMIT; now += STEP) {
		v.bus = 10 * LIMIT + now;
		v.ts++;
		assert_int_equal(bl_still_sample(&s, &v, now, LIMIT), BL_OUT_MEMBER);
	}
	v.ts = v.bus - 1;
	assert_int_equal(bl_still_sample(&s, &v, LIMIT, LIMIT), BL_OUT_IN_FLIGHT);
	/* new sends, each since the last sample */
	s = (struct bl_still){ 0 };
	for (now = 0; now < 4 * LIMIT; now += STEP) {
		v.ts = v.bus;
		v.bus += STEP;
		assert_int_equal(bl_still_sample(&s, &v, now, LIMIT), BL_OUT_MEMBER);
	}
}

/* Numbers wrap: it matters only whether they differ. */
static void bl_still_sample__wrap(void **state)
{
	struct bl_still_view v = view_held_by(1);
	struct bl_still s = { 0 };

	(void)state;
	v.state = 0ULL << 32 | 0xffffffff; /* tail 0, head -1: one frame is open */
	v.turn = ~0ULL;
	assert_int_equal(sample_until(&s, &v, 0, STEP, LIMIT - STEP), BL_OUT_MEMBER);
	v.turn++;
	assert_int_equal(bl_still_sample(&s, &v, LIMIT, LIMIT), BL_OUT_MEMBER);
	assert_int_equal(sample_until(&s, &v, LIMIT + STEP, STEP, 2 * LIMIT), BL_OUT_WINDOW);
}

/* The whole machine was stalled, daemon and process: that counts as two intervals. */
static void bl_still_sample__machine_stood_still(void **state)
{
	const struct bl_still_view v = view_held_by(0);
	struct bl_still s = { 0 };

	(void)state;
	assert_int_equal(bl_still_sample(&s, &v, 0, LIMIT), BL_OUT_MEMBER);
	assert_int_equal(bl_still_sample(&s, &v, 1000 * LIMIT, LIMIT), BL_OUT_MEMBER);
	assert_int_equal(s.age_ns[BL_STILL_IN_FLIGHT], 2 * STEP);
	assert_int_equal(sample_until(&s, &v, 1000 * LIMIT + STEP, STEP,
				      1000 * LIMIT + LIMIT - 2 * STEP),
			 BL_OUT_IN_FLIGHT);
}

static void bl_still_sample__first_reason(void **state)
{
	struct bl_still_view v = view_held_by(1);
	struct bl_still s = { 0 };

	(void)state;
	v.written += 264;
	assert_int_equal(sample_until(&s, &v, 0, STEP, LIMIT), BL_OUT_WINDOW);
	v.ts = 9;
	s = (struct bl_still){ 0 };
	assert_int_equal(sample_until(&s, &v, 0, STEP, LIMIT), BL_OUT_IN_FLIGHT);
}

/* ---- the contents of a ring ---- */

#define RING 4096u
static uint8_t ring[2 * RING + 64];

/*
 * Writes a record with the length word @word at position @at. Returns the position of the next one.
 */
static uint64_t write_record(uint64_t at, uint32_t word, uint8_t opcode)
{
	uint8_t *p = ring + (at & (RING - 1));
	uint32_t len = word & ~(3u << 30);

	memcpy(p, &word, 4);
	((struct bl_rec *)(void *)(p + 8))->opcode = opcode;
	memcpy(ring + RING, ring, RING); /* The ring's data is mapped twice. */
	return at + ((len + 8 + 7) & ~7u);
}

static void bl_ring_awaited__by_opcode(void **state)
{
	static const struct {
		uint8_t opcode;
		bool awaited;
	} t[] = { { BL_OP_DATA, true },     { BL_OP_FRAG, true },    { BL_OP_PROBE, true },
		  { BL_OP_PREP, true },     { BL_OP_OPEN, true },    { BL_OP_CREDIT, false },
		  { BL_OP_NAK, false },     { BL_OP_WINDOW, false }, { BL_OP_RECALL, false },
		  { BL_OP_RECALLED, false } };
	struct bl_ring_walk w = { .data = ring, .size = RING, .read = 7 * RING + 512 };
	unsigned int i;
	uint64_t at;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		w.written = w.read;
		assert_false(bl_ring_awaited(&w));
		w.written = write_record(w.read, BL_REC_SMALL, t[i].opcode);
		assert_int_equal(bl_ring_awaited(&w), t[i].awaited);
		/* behind other records, the last one across the end */
		at = w.read;
		while (at + BL_REC_SMALL + 8 < 8 * RING - 256)
			at = write_record(at, at & 512 ? BL_REC_SMALL : 8u | 1u << 30,
					  BL_OP_CREDIT);
		w.written = write_record(at, BL_REC_SMALL, t[i].opcode);
		assert_int_equal(bl_ring_awaited(&w), t[i].awaited);
		/* A discarded record is not waited for, whatever it contains. */
		w.written = write_record(w.read, BL_REC_SMALL | 1u << 30, t[i].opcode);
		assert_false(bl_ring_awaited(&w));
		/* a record that is being written */
		w.written = write_record(w.read, BL_REC_SMALL | 1u << 31, t[i].opcode);
		assert_true(bl_ring_awaited(&w));
	}
	/* Invalid contents, as in a ring that is written meanwhile. */
	w.written = w.read + 8;
	write_record(w.read, RING + 1, BL_OP_CREDIT);
	assert_true(bl_ring_awaited(&w));
	memset(ring, 0, sizeof(ring));
	w.written = w.read + RING;
	assert_false(bl_ring_awaited(&w)); /* Empty records: the loop ends. */
	/* positions that only a process that lies about what it has read can write */
	w.written++;
	assert_true(bl_ring_awaited(&w));
	w.read = 0;
	w.written = 1ULL << 50;
	assert_true(bl_ring_awaited(&w));
	w.read = w.written + 8;
	assert_true(bl_ring_awaited(&w));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_still_sample__at_the_limit),
		cmocka_unit_test(bl_still_sample__idle_is_nobodys_fault),
		cmocka_unit_test(bl_still_sample__any_change),
		cmocka_unit_test(bl_still_sample__old_times),
		cmocka_unit_test(bl_still_sample__wrap),
		cmocka_unit_test(bl_still_sample__machine_stood_still),
		cmocka_unit_test(bl_still_sample__first_reason),
		cmocka_unit_test(bl_ring_awaited__by_opcode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
