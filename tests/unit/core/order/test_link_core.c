// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frames that are lost or overtaken (core/order/link_core.h): tables of beacons. */
#include "tests/unit/unit.h"
#include "core/order/link_core.h"

#define MS 1000000ULL
#define S  1000000000ULL

/** struct step - one beacon, and what is known after it. */
struct step {
	uint32_t frames;
	uint64_t received;
	uint16_t racing;
	uint64_t wait; /* ns since the beacon before */
	uint32_t fell; /* by how much overtaken rises */
	int32_t apart;
	uint64_t lost, overtaken; /* bl_link_lost(), and the sum */
	uint32_t raced, worst;
};

static struct bl_link_note note(const struct step *s, uint64_t now)
{
	return (struct bl_link_note){ .node = 7,
				      .frames = s->frames,
				      .run = 3,
				      .racing = s->racing,
				      .received = s->received,
				      .now = now };
}

static void run_steps(const struct step *s, size_t n)
{
	struct bl_link_lane l = { 0 };
	uint64_t now = S;
	size_t i;

	for (i = 0; i < n; i++) {
		struct bl_link_note b = note(&s[i], now += s[i].wait);
		int steady = bl_link_steady(&l, &b);
		struct bl_link_lane was = l;

		assert_int_equal(bl_link_beacon(&l, &b), s[i].fell);
		assert_int_equal(l.apart, s[i].apart);
		assert_int_equal(bl_link_lost(&l), s[i].lost);
		assert_int_equal(l.overtaken, s[i].overtaken);
		assert_int_equal(l.raced, s[i].raced);
		assert_int_equal(l.worst, s[i].worst);
		assert_int_equal(l.received, s[i].received);
		assert_int_equal(l.heard_ns, now);
		/* A beacon is steady if, and only if, nothing else changes. */
		bl_link_heard(&was, &b);
		assert_int_equal(steady, i && !was.apart && !memcmp(&was, &l, sizeof(l)));
	}
}
#define STEPS(...)                                      \
	run_steps((const struct step[]){ __VA_ARGS__ }, \
		  sizeof((const struct step[]){ __VA_ARGS__ }) / sizeof(struct step))

static void bl_link_beacon__fifo(void **state)
{
	(void)state;
	STEPS({ .frames = 100, .received = 40 }, { .frames = 100, .received = 40 },
	      { .frames = 160, .received = 100 }, { .frames = 161, .received = 101 },
	      /* both wrap */
	      { .frames = 0xffffffff, .received = 0xffffffff - 60ULL },
	      { .frames = 5, .received = 0x100000005 - 60ULL });
}

/* The example at the top of the file. */
static void bl_link_beacon__overtaken(void **state)
{
	(void)state;
	STEPS({ .frames = 10, .received = 10 },
	      { .frames = 20, .received = 14, .apart = 6, .lost = 6 },
	      { .frames = 20, .received = 20, .fell = 6, .overtaken = 6, .worst = 6 },
	      { .frames = 30, .received = 30, .overtaken = 6, .worst = 6 },
	      { .frames = 34, .received = 32, .apart = 2, .lost = 2, .overtaken = 6, .worst = 6 },
	      /* one of the two comes, the other does not */
	      { .frames = 34,
		.received = 33,
		.fell = 1,
		.apart = 1,
		.lost = 1,
		.overtaken = 7,
		.worst = 6 },
	      { .frames = 34,
		.received = 33,
		.wait = BL_LINK_SETTLE_NS + 1,
		.lost = 1,
		.overtaken = 7,
		.worst = 6 });
}

/*
 * Frames that come before the beacon that counts them harm nothing, however many they are, and are
 * not lost: the CPU of the beacon was interrupted before it queued it.
 */
static void bl_link_beacon__too_early(void **state)
{
	(void)state;
	STEPS({ .frames = 10, .received = 10 },
	      { .frames = 10, .received = 11, .apart = -1, .raced = 1 },
	      { .frames = 10, .received = 13, .apart = -3, .raced = 3 },
	      { .frames = 13, .received = 13, .raced = 3 },
	      /* frames that nobody has counted: doubled, or a stranger's */
	      { .frames = 13, .received = 15, .apart = -2, .raced = 5 },
	      { .frames = 13, .received = 15, .wait = BL_LINK_SETTLE_NS, .apart = -2, .raced = 5 },
	      { .frames = 13, .received = 15, .wait = 1, .raced = 5 },
	      { .frames = 14, .received = 15, .apart = 1, .lost = 1, .raced = 5 });
}

/* From frames that are missing to frames that are early: only the former were overtaken. */
static void bl_link_beacon__late_and_early(void **state)
{
	(void)state;
	STEPS({ .frames = 10, .received = 10 },
	      { .frames = 11, .received = 10, .racing = 1, .apart = 1, .lost = 1 },
	      { .frames = 11, .received = 12, .racing = 1, .apart = -1, .raced = 2 },
	      { .frames = 12, .received = 12, .raced = 2 },
	      { .frames = 14, .received = 12, .racing = 1, .apart = 2, .lost = 2, .raced = 2 },
	      { .frames = 14,
		.received = 19,
		.fell = 2,
		.overtaken = 2,
		.worst = 2,
		.apart = -5,
		.raced = 7 },
	      /* and still earlier */
	      { .frames = 14,
		.received = 21,
		.overtaken = 2,
		.worst = 2,
		.apart = -7,
		.raced = 9 });
}

static void bl_link_beacon__lost(void **state)
{
	(void)state;
	STEPS({ .frames = 10, .received = 10 },
	      { .frames = 20, .received = 15, .apart = 5, .lost = 5 },
	      /* it settles after a second without a change, and not before */
	      { .frames = 30, .received = 25, .wait = BL_LINK_SETTLE_NS, .apart = 5, .lost = 5 },
	      { .frames = 31, .received = 26, .wait = 1, .apart = 0, .lost = 5 },
	      { .frames = 40, .received = 34, .apart = 1, .lost = 6 },
	      { .frames = 50, .received = 42, .wait = BL_LINK_SETTLE_NS, .apart = 3, .lost = 8 },
	      { .frames = 60, .received = 52, .wait = BL_LINK_SETTLE_NS + 1, .lost = 8 });
}

/* Other CPUs of the sender explain so many, on the beacon or on the one before, and not one more.
 */
static void bl_link_beacon__racing(void **state)
{
	(void)state;
	STEPS({ .frames = 10, .received = 10 },
	      { .frames = 12, .received = 10, .racing = 2, .apart = 2, .lost = 2 },
	      { .frames = 12, .received = 12, .raced = 2 },
	      { .frames = 14, .received = 12, .racing = 1, .apart = 2, .lost = 2, .raced = 2 },
	      { .frames = 14, .received = 14, .racing = 2, .raced = 4 },
	      { .frames = 17, .received = 14, .racing = 2, .apart = 3, .lost = 3, .raced = 4 },
	      { .frames = 17, .received = 17, .fell = 3, .overtaken = 3, .worst = 3, .raced = 4 });
}

/* When either end begins anew, what went before is not compared, and nothing is counted. */
static void bl_link_beacon__begins_anew(void **state)
{
	const struct step first = { .frames = 10, .received = 10 };
	struct bl_link_lane l, was = { 0 };
	struct bl_link_note b = note(&first, S);
	static const struct {
		const char *what;
		uint32_t node, frames;
		uint16_t run;
		uint64_t received, wait;
		bool anew, kept;
	} t[] = {
		{ "nothing", 7, 10, 3, 10, MS, false, true },
		{ "another run", 7, 0, 4, 10, MS, true, true },
		{ "another node", 8, 0, 3, 10, MS, true, false },
		{ "an own count that fell", 7, 15, 3, 9, MS, true, true },
		{ "a silence", 7, 99, 3, 10, BL_LINK_SILENT_NS + 1, true, true },
		{ "less than a silence", 7, 99, 3, 10, BL_LINK_SILENT_NS, false, true },
		{ "a clock that went back", 7, 99, 3, 10, -MS, true, true },
	};
	size_t i;

	(void)state;
	bl_link_beacon(&was, &b);
	b.frames = 15;
	bl_link_beacon(&was, &b);
	b.received = 14;
	b.now += MS;
	assert_int_equal(bl_link_beacon(&was, &b), 4);
	b.received = was.received = 10; /* one is missing; for the cases below */
	was.ahead = 0;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct bl_link_note n = { .node = t[i].node,
					  .frames = t[i].frames,
					  .run = t[i].run,
					  .received = t[i].received,
					  .now = was.heard_ns + t[i].wait };

		l = was;
		assert_int_equal(bl_link_steady(&l, &n), 0);
		assert_int_equal(bl_link_beacon(&l, &n), 0);
		assert_int_equal(l.overtaken, t[i].kept ? 4 : 0);
		if (t[i].anew) {
			assert_int_equal(l.apart, 0);
			assert_int_equal(l.lost, t[i].kept);
		} else {
			assert_int_equal(l.apart, 1 + (int)t[i].frames - (int)t[i].received);
		}
		assert_int_equal(l.node, t[i].node);
		assert_int_equal(l.run, t[i].run);
		assert_int_equal(l.ahead, t[i].frames - (uint32_t)t[i].received);
		assert_int_equal(l.received, t[i].received);
		assert_int_equal(l.heard_ns, n.now);
	}
}

/*
 * Random senders of several CPUs, queues that keep the order, and loss: nothing is ever overtaken,
 * and what is lost is counted exactly.
 */
static void bl_link_beacon__random_fifo(void **state)
{
	struct rnd r = rnd_seeded("link fifo");
	struct bl_link_lane l = { 0 };
	uint32_t frames = (uint32_t)rnd64(&r);
	uint64_t received = 0, lost = 0, now = S;
	int i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		struct bl_link_note n = {
			.node = 7, .frames = frames, .run = 3, .received = received, .now = now
		};

		assert_int_equal(bl_link_beacon(&l, &n), 0);
		assert_int_equal(bl_link_lost(&l), lost);
		now += 1 + rnd64(&r) % (i & 64 ? 2 * S : MS);
		frames += (uint32_t)rnd64(&r) % 100;
		received += frames - n.frames;
		if ((uint32_t)rnd64(&r) % 4 == 0 && received > n.received) {
			uint64_t some = rnd64(&r) % (received - n.received);

			received -= some;
			lost += some;
		}
	}
	assert_int_equal(l.overtaken + l.raced, 0);
}

static void bl_link_tick__edges(void **state)
{
	static const struct {
		uint64_t now;
		uint16_t tick;
	} t[] = {
		{ 0, 0 },          { (1 << 20) - 1, 0 },
		{ 1 << 20, 1 },    { (1ULL << 36) - 1, 0xffff },
		{ 1ULL << 36, 0 }, { (1ULL << 36) + (5 << 20), 5 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++)
		assert_int_equal(bl_link_tick(t[i].now), t[i].tick);
}

static void bl_link_sent__by_cpu(void **state)
{
	struct bl_link_sent s = { 0 };

	(void)state;
	assert_int_equal(bl_link_racing(&s, S), 0); /* it has sent nothing */
	bl_link_sent(&s, 3, S);
	bl_link_sent(&s, 1, S + BL_LINK_RACE_NS);
	assert_int_equal(s.frames, 4);
	assert_int_equal(bl_link_racing(&s, S + BL_LINK_RACE_NS), 3);
	assert_int_equal(bl_link_racing(&s, S + 2 * BL_LINK_RACE_NS), 3);
	assert_int_equal(bl_link_racing(&s, S + 2 * BL_LINK_RACE_NS + 1), 0);
	/* it has counted after the beacon has read its clock */
	assert_int_equal(bl_link_racing(&s, S), 3);
	assert_int_equal(bl_link_racing(&s, S - 1), 0);
	bl_link_sent(&s, 1, S + 2 * BL_LINK_RACE_NS);
	assert_int_equal(s.most, 3);
	bl_link_sent(&s, 2, S + 3 * BL_LINK_RACE_NS + 1);
	assert_int_equal(s.most, 2);
	assert_int_equal(s.frames, 7);
}

static void bl_gso_frames__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_gso_frames(23, 100), 0);
	assert_int_equal(bl_gso_frames(24, 100), 1);
	assert_int_equal(bl_gso_frames(123, 100), 1);
	assert_int_equal(bl_gso_frames(124, 100), 2); /* a last one of a header alone */
	assert_int_equal(bl_gso_frames(200, 100), 2);
	assert_int_equal(bl_gso_frames(48, 24), 2);
	assert_int_equal(bl_gso_frames(47, 24), 1);
}

static void bl_link_sat__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_link_sat16(0xfffe), 0xfffe);
	assert_int_equal(bl_link_sat16(0xffff), 0xffff);
	assert_int_equal(bl_link_sat16(0x10000), 0xffff);
	assert_int_equal(bl_link_sat32(0xfffffffe), 0xfffffffe);
	assert_int_equal(bl_link_sat32(0xffffffff), 0xffffffff);
	assert_int_equal(bl_link_sat32(0x100000000ULL), 0xffffffff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_link_beacon__fifo),
		cmocka_unit_test(bl_link_beacon__overtaken),
		cmocka_unit_test(bl_link_beacon__too_early),
		cmocka_unit_test(bl_link_beacon__late_and_early),
		cmocka_unit_test(bl_link_beacon__lost),
		cmocka_unit_test(bl_link_beacon__racing),
		cmocka_unit_test(bl_link_beacon__begins_anew),
		cmocka_unit_test(bl_link_beacon__random_fifo),
		cmocka_unit_test(bl_link_tick__edges),
		cmocka_unit_test(bl_link_sent__by_cpu),
		cmocka_unit_test(bl_gso_frames__edges),
		cmocka_unit_test(bl_link_sat__edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
