// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/pl2/pl2_switch_core.h: what each RSV, frame, lapse and release does to the accounts, at the
 * edges. test_pl2_switch_model.c runs long random sequences.
 */
#include "tests/unit/core/pl2/pl2_switch_util.h"

/* ---- arithmetic ---- */

static void bl_rsv_ns__rounds_up(void **state)
{
	static const struct {
		__u32 q20;
		__u64 bytes, ns;
	} rows[] = {
		{ NS_1G, 0, 0 },
		{ NS_1G, 1, 8 },
		{ NS_1G, 1538, 12304 },
		{ Q20(0.08), 1538, 124 },
		{ Q20(0.08), 1500, 120 },
		{ Q20(0.08), 1501, 121 },
		{ 1, 1, 1 },
		{ 1, 1 << 20, 1 },
		{ 1, (1 << 20) + 1, 2 },
		{ 0, 1538, 0 },
		{ Q20(80), 1538, 123040 },
		{ ~0U, 1ULL << 31, 8796093020160 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(bl_rsv_ns(rows[i].q20, rows[i].bytes), rows[i].ns);
}

/* A CPU that is at most one window behind uses the window as it is. */
static void bl_rsv_base__edges(void **state)
{
	static const struct {
		__u64 have, wish, got;
	} t[] = {
		{ 100, 101, 101 },
		{ 100, 100, 100 },
		{ 100, 99, 100 },
		{ 100, 100 - BL_RSV_WORDS, 100 },
		{ 100, 100 - BL_RSV_WORDS - 1, 100 - BL_RSV_WORDS - 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		const struct bl_rsv_side s = { .base = t[i].have };

		assert_int_equal(bl_rsv_base(&s, t[i].wish), t[i].got);
	}
}

static void bl_rsv_slots__is_a_division(void **state)
{
	__u32 b;

	(void)state;
	for (b = 0; b <= 1 << 22; b++)
		assert_int_equal(bl_rsv_slots(b), (b + 1537) / 1538);
}

/* ---- one RSV after the other ---- */

static void bl_rsv_ask__the_example_of_the_header(void **state)
{
	(void)state;
	reset_switch(BL_ALLOC_TWO_COUNTER);
	send_rsv(0, 6, 3076, 1, T0);
	expect_granted(0, 0, 0);
	send_rsv(1, 5, 6152, 1, T0);
	expect_granted(0, 0, 0);
	send_rsv(0, 5, 1538, 2, T0);
	expect_granted(24608, 49216, 0);
	assert_int_equal(port[0].in.bytes, 4614);
	assert_int_equal(port[5].out.bytes, 7690);
	assert_int_equal(send_data(0, 5, 1538, 0), BL_R_NONE);
	assert_int_equal(port[0].in.bytes, 3076);
	assert_int_equal(port[5].out.bytes, 6152);
	assert_int_equal(port[0].used, 1538);
	expect_balanced();

	reset_switch(BL_ALLOC_JOINT);
	send_rsv(0, 6, 3076, 1, T0);
	expect_granted(0, 0, 0);
	send_rsv(1, 5, 6152, 1, T0);
	send_rsv(0, 5, 1538, 2, T0);
	expect_granted(4 * SLOT, 4 * SLOT, 0);
	assert_int_equal(port[0].in.free_ns, T0 + 5 * SLOT);
	assert_int_equal(port[5].out.free_ns, T0 + 5 * SLOT);
	send_rsv(0, 7, 1538, 3, T0); /* Port 0 was free in slots 2 to 4; joint does not go back. */
	expect_granted(5 * SLOT, 5 * SLOT, 0);

	reset_switch(BL_ALLOC_BITMAP);
	send_rsv(0, 6, 3076, 1, T0);
	send_rsv(1, 5, 6152, 1, T0);
	send_rsv(0, 5, 1538, 2, T0);
	expect_granted(4 * SLOT, 4 * SLOT, 0);
	send_rsv(0, 7, 3076, 3, T0); /* The bitmap does go back. */
	expect_granted(2 * SLOT, 2 * SLOT, 0);
	send_rsv(0, 7, 1, 4, T0);
	expect_granted(5 * SLOT, 5 * SLOT, 0);
	expect_balanced();
}

static void bl_rsv_ask__joint_time_passes(void **state)
{
	(void)state;
	reset_switch(BL_ALLOC_JOINT);
	send_rsv(0, 1, 1538, 1, T0);
	send_data(0, 1, 1538, 0);
	send_rsv(0, 1, 1538, 2, T0 + SLOT - 1);
	expect_granted(1, 1, 0);
	send_data(0, 1, 1538, 0);
	send_rsv(0, 1, 1538, 3, T0 + 2 * SLOT);
	expect_granted(0, 0, 0);
	send_data(0, 1, 1538, 0);
	send_rsv(0, 1, 1538, 4, T0 + 9 * SLOT);
	expect_granted(0, 0, 0);
	assert_int_equal(port[1].out.free_ns, T0 + 10 * SLOT);
	send_rsv(1, 0, 1538, 1,
		 T0 + 9 * SLOT); /* The input and the output of one port are two links. */
	expect_granted(0, 0, 0);
}

/* Bytes in the output's queue, and promised bytes that are late, are sent first. */
static void bl_rsv_ask__after_the_queue(void **state)
{
	static const struct {
		enum bl_allocator a;
		__u32 promised, queued, wait; /* slots, bytes, ns */
	} rows[] = {
		{ BL_ALLOC_TWO_COUNTER, 0, 1, 8 },
		{ BL_ALLOC_TWO_COUNTER, 2, 1538, 3 * SLOT },
		{ BL_ALLOC_JOINT, 0, 1, 8 },
		{ BL_ALLOC_JOINT, 2, 1538, 3 * SLOT },
		{ BL_ALLOC_BITMAP, 0, 1, SLOT },
		{ BL_ALLOC_BITMAP, 0, 1539, 2 * SLOT },
		/* A port that keeps its promises: the first gap after the queue. */
		{ BL_ALLOC_BITMAP, 2, 2 * 1538, 2 * SLOT },
		/* A port that does not keep them: after all of them. */
		{ BL_ALLOC_BITMAP, 2, 2 * 1538 + 1, 5 * SLOT },
		{ BL_ALLOC_BITMAP, 0, 300 * 1538, 300 * SLOT },
	};
	__u32 i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		reset_switch(rows[i].a);
		for (k = 0; k < rows[i].promised; k++)
			send_rsv(2 + k, 1, 1538, 1, T0);
		queued_bytes = rows[i].queued;
		send_rsv(0, 1, 1538, 1, T0);
		assert_int_equal(g.reason, BL_R_RSV_GRANTED);
		assert_int_equal(g.out_wait_ns, rows[i].wait);
	}
	reset_switch(BL_ALLOC_BITMAP);
	queued_bytes = 512 * 1538; /* beyond the window */
	assert_int_equal(send_rsv(0, 1, 1538, 1, T0), BL_R_RSV_REFUSED);
}

/* The two counters: a burst begins up to the overlap earlier than both ports are free. */
static void bl_rsv_ask__overlap(void **state)
{
	static const struct {
		__u32 overlap, promised, queued; /* bytes, slots, bytes */
		__u32 in, out;                   /* ns */
	} rows[] = {
		{ 0, 2, 0, 2 * SLOT, 2 * SLOT },
		{ 1538, 2, 0, SLOT, SLOT },
		{ 3075, 2, 0, 8, 8 },
		{ 3076, 2, 0, 0, 0 },
		{ 3077, 2, 0, 0, 0 },
		{ 1538, 0, 1538, 0, 0 },
		{ 1538, 0, 1539, 0, 8 },
		/* The overlap does not shorten the wait for the queue. */
		{ 1538, 2, 1538, SLOT, 2 * SLOT },
	};
	__u32 i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		reset_switch(BL_ALLOC_TWO_COUNTER);
		for (k = 0; k < rows[i].promised; k++) {
			send_rsv(0, 2 + k, 1538, 1, T0);
			send_rsv(2 + k, 1, 1538, 1, T0);
		}
		cfg.overlap_bytes = rows[i].overlap;
		queued_bytes = rows[i].queued;
		send_rsv(0, 1, 1538, 1, T0);
		expect_granted(rows[i].in, rows[i].out, 0);
		assert_int_equal(port[0].in.bytes, (rows[i].promised + 1) * 1538);
		assert_int_equal(port[1].out.bytes, (rows[i].promised + 1) * 1538);
		expect_balanced();
	}
	reset_switch(BL_ALLOC_JOINT);
	cfg.overlap_bytes = 1538;
	send_rsv(0, 2, 1538, 1, T0);
	send_rsv(0, 1, 1538, 1, T0);
	expect_granted(SLOT, SLOT, 0);
	reset_switch(BL_ALLOC_BITMAP);
	cfg.overlap_bytes = 1538;
	send_rsv(0, 2, 1538, 1, T0);
	send_rsv(0, 1, 1538, 1, T0);
	expect_granted(SLOT, SLOT, 0);
}

static void bl_rsv_ask__bitmap_slots_begin_at_multiples(void **state)
{
	(void)state;
	reset_switch(BL_ALLOC_BITMAP);
	send_rsv(0, 1, 1538, 1, T0 + 1);
	expect_granted(SLOT - 1, SLOT - 1, 0);
	send_rsv(2, 3, 1538, 1, T0 + SLOT);
	expect_granted(0, 0, 0);
	send_rsv(2, 3, 1539, 2, T0 + SLOT);
	expect_granted(SLOT, SLOT, 0);
	send_rsv(2, 3, 1, 3, T0 + SLOT);
	expect_granted(3 * SLOT, 3 * SLOT, 0);
}

static void bl_rsv_ask__repeats_name_the_same_moment(void **state)
{
	enum bl_allocator a;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		struct bl_rsv_port was[NPORTS];
		struct bl_rsv_pair pairs[NPORTS][NPORTS];
		__u64 slot;

		reset_switch(a);
		send_rsv(2, 1, 3076, 9, T0);
		send_rsv(0, 1, 1538, 7, T0);
		slot = g.out_wait_ns;
		assert_int_equal(slot, 2 * SLOT);
		memcpy(was, port, sizeof(was));
		memcpy(pairs, pair, sizeof(pairs));
		assert_int_equal(send_rsv(0, 1, 1538, 7, T0 + 100), BL_R_RSV_REPEATED);
		assert_int_equal(g.out_wait_ns, slot - 100);
		assert_int_equal(send_rsv(0, 1, 1538, 7, T0 + slot), BL_R_RSV_REPEATED);
		assert_int_equal(g.in_wait_ns, 0);
		assert_int_equal(g.out_wait_ns, 0);
		assert_int_equal(send_rsv(0, 1, 1538, 7, T0 + slot + 1), BL_R_RSV_REPEATED);
		assert_int_equal(g.out_wait_ns, 0);
		assert_int_equal(send_rsv(0, 1, 1538, 7, T0 + slot + SLOT + cfg.lapse_ns),
				 BL_R_RSV_REPEATED);
		assert_memory_equal(port, was, sizeof(was));
		assert_memory_equal(pair, pairs, sizeof(pairs));
		/* Another number, another demand, or an RSV that is too late: new promises. */
		assert_int_equal(send_rsv(0, 1, 1538, 8, T0), BL_R_RSV_GRANTED);
		assert_int_equal(send_rsv(0, 1, 1537, 8, T0), BL_R_RSV_GRANTED);
		assert_int_equal(send_rsv(0, 1, 1537, 8, pair[0][1].lapse_ns), BL_R_RSV_REPEATED);
		assert_int_equal(send_rsv(0, 1, 1537, 8, pair[0][1].lapse_ns + 1),
				 BL_R_RSV_GRANTED);
		expect_balanced();
	}
}

static void bl_rsv_ask__flags_are_repeated_too(void **state)
{
	(void)state;
	reset_switch(BL_ALLOC_TWO_COUNTER);
	send_early_rsv(0, 1, 1538, 1, 1, T0);
	expect_granted(0, 0, BL_GRT_PASSED);
	assert_int_equal(send_early_rsv(0, 1, 1538, 1, 1, T0), BL_R_RSV_REPEATED);
	assert_int_equal(g.flags, BL_GRT_PASSED);
	assert_int_equal(pair[0][1].early, 1538);
}

static void bl_rsv_ask__demands(void **state)
{
	static const struct {
		__u32 bytes, limit;
		enum bl_allocator a;
		__u32 reason;
	} rows[] = {
		{ 0, 24608, BL_ALLOC_TWO_COUNTER, BL_R_RSV_BAD },
		{ 0, 24608, BL_ALLOC_BITMAP, BL_R_RSV_BAD },
		{ 1, 24608, BL_ALLOC_JOINT, BL_R_RSV_GRANTED },
		{ 24608, 24608, BL_ALLOC_TWO_COUNTER, BL_R_RSV_GRANTED },
		{ 24609, 24608, BL_ALLOC_TWO_COUNTER, BL_R_RSV_BAD },
		{ 24609, 24608, BL_ALLOC_JOINT, BL_R_RSV_BAD },
		{ 24609, 24608, BL_ALLOC_BITMAP, BL_R_RSV_BAD },
		{ 32 * 1538, 1 << 20, BL_ALLOC_BITMAP, BL_R_RSV_GRANTED },
		{ 32 * 1538 + 1, 1 << 20, BL_ALLOC_BITMAP, BL_R_RSV_REFUSED },
		{ 32 * 1538 + 1, 1 << 20, BL_ALLOC_JOINT, BL_R_RSV_GRANTED },
		{ ~0U, ~0U, BL_ALLOC_BITMAP, BL_R_RSV_REFUSED },
		{ ~0U, ~0U, BL_ALLOC_JOINT, BL_R_RSV_REFUSED },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		reset_switch(rows[i].a);
		cfg.limit_bytes = rows[i].limit;
		assert_int_equal(send_rsv(0, 1, rows[i].bytes, 1, T0), rows[i].reason);
		assert_int_equal(g.flags, rows[i].reason == BL_R_RSV_GRANTED ? 0 : BL_GRT_REFUSED);
		assert_int_equal(port[0].grants, rows[i].reason == BL_R_RSV_GRANTED);
		assert_int_equal(port[0].refused, rows[i].reason != BL_R_RSV_GRANTED);
		assert_int_equal(port[0].granted,
				 rows[i].reason == BL_R_RSV_GRANTED ? rows[i].bytes : 0);
		expect_balanced();
	}
}

static void bl_rsv_ask__too_far_changes_nothing(void **state)
{
	enum bl_allocator a;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		struct bl_rsv_port in, out;
		struct bl_rsv_pair p;

		reset_switch(a);
		cfg.far_ns = 2 * SLOT;
		send_rsv(0, 1, 1538, 1, T0);
		send_rsv(2, 1, 1538, 1, T0);
		send_rsv(3, 1, 1538, 1, T0); /* exactly at far_ns */
		expect_granted(a == BL_ALLOC_TWO_COUNTER ? 0 : 2 * SLOT, 2 * SLOT, 0);
		in = port[4];
		out = port[1];
		p = pair[4][1];
		assert_int_equal(send_rsv(4, 1, 1538, 1, T0), BL_R_RSV_REFUSED);
		assert_int_equal(g.flags, BL_GRT_REFUSED);
		assert_int_equal(g.in_wait_ns, 0);
		assert_int_equal(g.out_wait_ns, 0);
		in.refused++;
		port[4].in.base = in.in.base; /* The bitmap's window may slide. */
		assert_memory_equal(&port[4], &in, sizeof(in));
		assert_memory_equal(&port[1], &out, sizeof(out));
		assert_memory_equal(&pair[4][1], &p, sizeof(p));
		/* Refused because of the input alone. */
		send_rsv(5, 6, 1538, 1, T0);
		send_rsv(5, 7, 1538, 1, T0);
		send_rsv(5, 3, 1538, 1, T0);
		assert_int_equal(send_rsv(5, 2, 1538, 1, T0), BL_R_RSV_REFUSED);
		/*
		 * A refused host that asks again with the same number does not get the old refusal
		 * again.
		 */
		assert_int_equal(send_data(2, 1, 1538, 0), BL_R_NONE);
		assert_int_equal(send_rsv(4, 1, 1538, 1, T0 + SLOT), BL_R_RSV_GRANTED);
		expect_balanced();
	}
}

static void bl_rsv_ask__bitmap_window(void **state)
{
	__u32 i;

	(void)state;
	/* 512 slots, less those of the first word that have passed. */
	reset_switch(BL_ALLOC_BITMAP);
	cfg.far_ns = ~0ULL;
	for (i = 0; i < 502; i++) {
		send_rsv(0, 1, 1538, i, T0);
		expect_granted(i * SLOT, i * SLOT, 0);
	}
	assert_int_equal(send_rsv(0, 1, 1538, i, T0), BL_R_RSV_REFUSED);
	assert_int_equal(send_rsv(2, 1, 1538, i, T0), BL_R_RSV_REFUSED);
	assert_int_equal(send_rsv(0, 2, 1538, i, T0), BL_R_RSV_REFUSED);
	assert_int_equal(send_rsv(2, 3, 1538, i, T0), BL_R_RSV_GRANTED);
	assert_int_equal(port[0].refused, 2);
	assert_int_equal(send_rsv(0, 1, 1538, i, T0 + 53 * SLOT), BL_R_RSV_REFUSED);
	/* One word later there is room for one word. No promised slot is given away again. */
	for (i = 0; i < 64; i++) {
		send_rsv(0, 1, 1538, 1000 + i, T0 + 53 * SLOT + 1);
		expect_granted((449 + i) * SLOT - 1, (449 + i) * SLOT - 1, 0);
	}
	assert_int_equal(send_rsv(0, 1, 1538, 2000, T0 + 54 * SLOT), BL_R_RSV_REFUSED);
	/* A run does not extend beyond the window. */
	reset_switch(BL_ALLOC_BITMAP);
	cfg.far_ns = ~0ULL;
	for (i = 0; i < 502 - 3; i++)
		send_rsv(0, 1, 1538, i, T0);
	assert_int_equal(send_rsv(0, 1, 4 * 1538, i, T0), BL_R_RSV_REFUSED);
	assert_int_equal(send_rsv(0, 1, 3 * 1538, i, T0), BL_R_RSV_GRANTED);
	assert_int_equal(g.in_wait_ns, i * SLOT);
	/* A long time later all slots are free. */
	send_rsv(0, 1, 16 * 1538, 1000, T0 + 100000 * SLOT);
	expect_granted(0, 0, 0);
	/*
	 * The clock of a CPU that took the lock second: the slot is not before the window, and no
	 * promise is lost.
	 */
	send_rsv(0, 1, 16 * 1538, 1001, T0 + 100000 * SLOT - 64 * SLOT);
	assert_int_equal(g.reason, BL_R_RSV_GRANTED);
	assert_int_equal(pair[0][1].in_ns, 1099968 * SLOT);
	assert_int_equal(port[0].in.base, 1099968 / 64);
	/* Another slot time makes the numbers much smaller, which starts a new window. */
	cfg.ns_q20 = Q20(80.0);
	send_rsv(0, 1, 1538, 1002, T0 + 100000 * SLOT);
	expect_granted(0, 0, 0);
}

static void bl_rsv_ask__pair_has_an_upper_bound(void **state)
{
	(void)state;
	reset_switch(BL_ALLOC_JOINT);
	cfg.far_ns = ~0ULL;
	cfg.ns_q20 = 1;
	cfg.limit_bytes = ~0U;
	assert_int_equal(send_rsv(0, 1, BL_RSV_PAIR_MAX, 1, T0), BL_R_RSV_GRANTED);
	assert_int_equal(send_rsv(0, 1, 1, 2, T0), BL_R_RSV_REFUSED);
	assert_int_equal(send_rsv(0, 2, 1, 2, T0), BL_R_RSV_GRANTED);
	expect_balanced();
}

/* ---- data and unsolicited bursts ---- */

static void bl_rsv_data__to_the_byte(void **state)
{
	(void)state;
	reset_switch(BL_ALLOC_TWO_COUNTER);
	assert_int_equal(send_data(0, 1, 84, 0), BL_R_UNRESERVED);
	send_rsv(0, 1, 1622, 1, T0);
	assert_int_equal(send_data(0, 1, 1623, 0), BL_R_UNRESERVED);
	assert_int_equal(pair[0][1].bytes, 1622);
	assert_int_equal(send_data(0, 1, 1538, 0), BL_R_NONE);
	assert_int_equal(send_data(0, 1, 85, 0), BL_R_UNRESERVED);
	assert_int_equal(send_data(0, 2, 84, 0), BL_R_UNRESERVED);
	assert_int_equal(send_data(2, 1, 84, 0), BL_R_UNRESERVED);
	assert_int_equal(send_data(0, 1, 84, 0), BL_R_NONE);
	assert_int_equal(send_data(0, 1, 84, 0), BL_R_UNRESERVED);
	assert_int_equal(port[0].used, 1622);
	expect_balanced();
}

/*
 * The host asks for the length that it has, and the switch sees the length that the NIC made of it:
 * up to 60 bytes both count the same.
 */
static void bl_rsv_data__padded_by_the_nic(void **state)
{
	static const struct {
		__u32 had, came;
	} t[] = { { 14, 60 }, { 42, 60 }, { 54, 60 }, { 59, 60 },
		  { 60, 60 }, { 61, 61 }, { 42, 42 }, { 54, 54 } };
	size_t i;
	__u32 k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		reset_switch(BL_ALLOC_TWO_COUNTER);
		send_rsv(0, 1, 4 * bl_wire_bytes(t[i].had), 1, T0);
		for (k = 0; k < 4; k++)
			assert_int_equal(bl_rsv_data(&port[0], &port[1], &pair[0][1], t[i].came, 0),
					 BL_R_NONE);
		assert_int_equal(pair[0][1].bytes, 0);
		assert_int_equal(bl_rsv_data(&port[0], &port[1], &pair[0][1], t[i].came, 0),
				 BL_R_UNRESERVED);
		/* The frame alone, as an unsolicited burst. */
		send_early_rsv(0, 1, bl_wire_bytes(t[i].had), 2, 1, T0);
		assert_int_equal(bl_rsv_data(&port[0], &port[1], &pair[0][1], t[i].came, 1),
				 BL_R_NONE);
		expect_balanced();
	}
}

static void bl_rsv_data__unsolicited(void **state)
{
	(void)state;
	reset_switch(BL_ALLOC_TWO_COUNTER);
	cfg.refuse_ns = 1538 * 8;
	assert_int_equal(send_data(0, 1, 84, 1), BL_R_EARLY_REFUSED);
	send_rsv(0, 1, 1538, 1,
		 T0); /* not asked for as unsolicited: its frames wait for their slot */
	assert_int_equal(send_data(0, 1, 84, 1), BL_R_EARLY_REFUSED);
	send_early_rsv(0, 1, 1538, 2, 1, T0);
	expect_granted(1538 * 8, 1538 * 8, BL_GRT_PASSED);
	assert_int_equal(send_data(0, 1, 1539, 1), BL_R_EARLY_REFUSED);
	assert_int_equal(send_data(0, 1, 1000, 1), BL_R_NONE);
	assert_int_equal(send_data(0, 1, 539, 1), BL_R_EARLY_REFUSED);
	assert_int_equal(send_data(0, 1, 538, 1), BL_R_NONE);
	assert_int_equal(send_data(0, 1, 84, 1), BL_R_EARLY_REFUSED);
	assert_int_equal(pair[0][1].bytes, 1538);
	send_early_rsv(0, 1, 1, 3, 1, T0);
	expect_granted(1538 * 8, 1538 * 8, BL_GRT_PASSED);
	send_early_rsv(0, 1, 1, 4, 1, T0); /* T + 8 ns */
	expect_granted(1539 * 8, 1539 * 8, 0);
	/*
	 * Frames in their slot may use bytes that an unsolicited burst lost, since there is one
	 * promise.
	 */
	assert_int_equal(send_data(0, 1, 1540, 0), BL_R_NONE);
	assert_int_equal(pair[0][1].early, 0);
	expect_balanced();
}

/* ---- the end of promises ---- */

static void bl_rsv_lapse__to_the_nanosecond(void **state)
{
	enum bl_allocator a;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		__u64 end = T0 + 3 * SLOT + 1000000;

		reset_switch(a);
		send_early_rsv(0, 1, 2 * 1538, 1, 1, T0);
		assert_int_equal(pair[0][1].lapse_ns, T0 + 2 * SLOT + 1000000);
		send_rsv(0, 1, 1538, 2, T0);
		assert_int_equal(pair[0][1].lapse_ns, end);
		assert_int_equal(send_rsv_checking(0, 1, end), 0);
		assert_int_equal(send_data(0, 1, 94, 0), BL_R_NONE);
		assert_int_equal(send_rsv_checking(0, 1, end + 1), 3 * 1538 - 94);
		assert_int_equal(send_rsv_checking(0, 1, end + 1), 0);
		assert_int_equal(port[0].lapsed, 3 * 1538 - 94);
		assert_int_equal(pair[0][1].early, 0);
		assert_int_equal(send_data(0, 1, 84, 0), BL_R_UNRESERVED);
		expect_balanced();
		/* The number of a lapsed promise does not count as a repeat. */
		assert_int_equal(send_rsv(0, 1, 1538, 2, end), BL_R_RSV_GRANTED);
		/* An old lapse time does not prolong a new promise. */
		assert_int_equal(send_data(0, 1, 1538, 0), BL_R_NONE);
		pair[0][1].lapse_ns = ~0ULL;
		assert_int_equal(send_rsv(0, 1, 1538, 3, end + SLOT), BL_R_RSV_GRANTED);
		assert_true(pair[0][1].lapse_ns < end + 5 * SLOT + 1000000);
	}
}

static void bl_rsv_renew__cases(void **state)
{
	static const struct {
		__u32 bytes, seq;
		__u64 after_ns;
		__u32 want;
	} rows[] = {
		/* The same burst is asked for again, and again after its time. */
		{ 3076, 7, 0, 0 },
		{ 3076, 7, 2 * SLOT + 1000000, 0 },
		{ 3076, 7, 2 * SLOT + 1000001, 2076 },
		/* another burst */
		{ 3076, 8, 0, 2076 },
		{ 3076, 6, 0, 2076 },
		{ 3076, 7 + (1U << 31), 0, 2076 },
		{ 3077, 7, 0, 2076 },
		{ 3075, 7, 0, 2076 },
		{ 0, 7, 0, 2076 },
		{ ~0U, ~0U, 0, 2076 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		reset_switch(BL_ALLOC_TWO_COUNTER);
		send_early_rsv(0, 1, 3076, 7, 1, T0);
		send_rsv(0, 2, 60, 7, T0);
		send_rsv(3, 1, 60, 7, T0);
		assert_int_equal(send_data(0, 1, 1000, 1), BL_R_NONE);
		assert_int_equal(send_rsv_renewing(0, 1, rows[i].bytes, rows[i].seq,
						   T0 + rows[i].after_ns),
				 rows[i].want);
		assert_int_equal(pair[0][1].bytes, 2076 - rows[i].want);
		assert_int_equal(pair[0][1].early, 2076 - rows[i].want);
		assert_int_equal(pair[0][1].valid, !rows[i].want);
		assert_int_equal(port[0].lapsed, rows[i].want);
		/* Other pairs are not affected. */
		assert_int_equal(pair[0][2].bytes, 60);
		assert_int_equal(pair[3][1].bytes, 60);
		expect_balanced();
		assert_int_equal(send_rsv_renewing(0, 1, rows[i].bytes, rows[i].seq,
						   T0 + rows[i].after_ns),
				 0);
	}
}

/*
 * A pair that asks all the time, and of which each burst loses a frame, is never promised more than
 * one burst.
 */
static void bl_rsv_renew__steady_losses(void **state)
{
	enum bl_allocator a;
	__u64 now;
	__u32 i;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		reset_switch(a);
		for (i = 0, now = T0; i < 10000; i++, now += 3 * SLOT) {
			assert_int_equal(send_rsv_renewing(0, 1, 3076, i, now), i ? 1538 : 0);
			assert_int_equal(send_rsv(0, 1, 3076, i, now), BL_R_RSV_GRANTED);
			assert_true(g.in_wait_ns <= SLOT && g.out_wait_ns <= SLOT);
			assert_int_equal(send_data(0, 1, 1538, 0), BL_R_NONE);
			assert_int_equal(port[1].out.bytes, 1538);
		}
		expect_balanced();
	}
}

static void bl_rsv_release__not_another_burst(void **state)
{
	struct bl_rsv_port *in = &port[0], *out = &port[1];
	struct bl_rsv_pair *p = &pair[0][1];

	(void)state;
	reset_switch(BL_ALLOC_BITMAP);
	send_rsv(0, 1, 3076, 7, T0);
	send_rsv_renewing(0, 1, 1538, 8, T0);
	send_rsv(0, 1, 1538, 8, T0);
	assert_int_equal(bl_rsv_release(&cfg, in, out, p, 3076, 7, T0), BL_R_RELEASE_BAD);
	assert_int_equal(bl_rsv_release(&cfg, in, out, p, 3076, 9, T0), BL_R_RELEASE_BAD);
	assert_int_equal(p->bytes, 1538);
	assert_int_equal(port[0].released, 0);
	assert_int_equal(bl_rsv_release(&cfg, in, out, p, 3076, 8, T0), BL_R_RELEASED);
	assert_int_equal(port[0].released, 1538);
	expect_balanced();
}

static void bl_rsv_release__cases(void **state)
{
	enum bl_allocator a;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		reset_switch(a);
		assert_int_equal(send_release(0, 1, 60, T0), BL_R_RELEASE_BAD);
		send_rsv(0, 1, 3076, 1, T0);
		assert_int_equal(send_release(0, 1, 0, T0), BL_R_RELEASE_BAD);
		assert_int_equal(send_release(1, 0, 60, T0), BL_R_RELEASE_BAD);
		assert_int_equal(send_release(0, 1, 1538, T0), BL_R_RELEASED);
		assert_int_equal(port[0].released, 1538);
		/* A part of the promise is still there. */
		assert_int_equal(send_rsv(0, 1, 3076, 1, T0), BL_R_RSV_REPEATED);
		assert_int_equal(send_release(0, 1, 9999, T0), BL_R_RELEASED);
		assert_int_equal(port[0].released, 3076);
		assert_int_equal(send_release(0, 1, 1, T0), BL_R_RELEASE_BAD);
		assert_int_equal(send_data(0, 1, 84, 0), BL_R_UNRESERVED);
		expect_balanced();
		assert_int_equal(send_rsv(0, 1, 3076, 1, T0), BL_R_RSV_GRANTED);
	}
}

static void bl_rsv_release__bitmap_frees_slots_to_come(void **state)
{
	(void)state;
	reset_switch(BL_ALLOC_BITMAP);
	send_rsv(0, 1, 16 * 1538, 1, T0);
	send_rsv(2, 1, 16 * 1538, 1, T0);
	send_rsv(3, 1, 16 * 1538, 1, T0);
	assert_int_equal(send_release(2, 1, 16 * 1538, T0 + 16 * SLOT), BL_R_RELEASED);
	send_rsv(4, 1, 16 * 1538, 1, T0 + 16 * SLOT);
	expect_granted(0, 0, 0);
	/* The slots have begun, so they stay. */
	assert_int_equal(send_release(3, 1, 16 * 1538, T0 + 32 * SLOT + 1), BL_R_RELEASED);
	send_rsv(5, 1, 1538, 1, T0 + 32 * SLOT + 1);
	expect_granted(16 * SLOT - 1, 16 * SLOT - 1, 0);
	/* A part is released; the slots stay. */
	assert_int_equal(send_release(5, 1, 1537, T0 + 32 * SLOT + 1), BL_R_RELEASED);
	send_rsv(6, 1, 1538, 1, T0 + 32 * SLOT + 1);
	expect_granted(17 * SLOT - 1, 17 * SLOT - 1, 0);
	/* Slots that were freed are not freed again: they belong to another pair now. */
	assert_int_equal(send_release(6, 1, 1538, T0 + 32 * SLOT + 1), BL_R_RELEASED);
	send_rsv(7, 1, 1538, 1, T0 + 32 * SLOT + 1);
	expect_granted(17 * SLOT - 1, 17 * SLOT - 1, 0);
	pair[6][1].bytes = 1538;
	port[6].in.bytes += 1538;
	port[1].out.bytes += 1538;
	send_release(6, 1, 1538, T0 + 32 * SLOT + 1);
	send_rsv(2, 1, 1538, 2, T0 + 32 * SLOT + 1);
	expect_granted(18 * SLOT - 1, 18 * SLOT - 1, 0);
	/* The rate has changed, so it is unknown to which promise the slots belong now. */
	send_rsv(0, 1, 1538, 8, T0 + 40 * SLOT);
	cfg.ns_q20 = Q20(9.0);
	{
		struct bl_rsv_side was = port[1].out;

		send_release(0, 1, 9999, T0 + 40 * SLOT);
		assert_memory_equal(was.bits, port[1].out.bits, sizeof(was.bits));
	}
}

/*
 * Calls the core directly, with no promise made before, and with the memory of the answer not
 * cleared.
 */
static struct bl_rsv_grant ask_empty_switch(const struct bl_rsv_cfg *how, __u32 in_bytes,
					    __u32 bytes)
{
	struct bl_rsv_port in = { .in.bytes = in_bytes }, out = { 0 };
	struct bl_rsv_pair both = { 0 };
	struct bl_rsv_grant said;

	memset(&said, 0xa5, sizeof(said));
	bl_rsv_ask(how, &in, &out, &both, bytes, 1, 0, 0, T0, bl_rsv_slot_at(how, T0), &said);
	return said;
}

static void bl_rsv_ask__refused_has_no_wait(void **state)
{
	const struct bl_rsv_cfg on = { .allocator = BL_ALLOC_BITMAP,
				       .ns_q20 = NS_1G,
				       .limit_bytes = 1 << 20,
				       .far_ns = ~0ULL };
	const struct bl_rsv_cfg off = { .allocator = BL_ALLOC_BITMAP, .limit_bytes = 1 << 20 };
	struct bl_rsv_grant said = ask_empty_switch(&on, 0, 0);

	(void)state;
	assert_int_equal(said.reason, BL_R_RSV_BAD);
	assert_int_equal(said.in_wait_ns | said.out_wait_ns, 0);
	said = ask_empty_switch(&off, 0, 1538); /* Without a rate there are no slots. */
	assert_int_equal(said.reason, BL_R_RSV_REFUSED);
	assert_int_equal(said.in_wait_ns | said.out_wait_ns, 0);
}

/* A GRT has 32 bits for a wait. */
static void bl_rsv_ask__the_longest_wait(void **state)
{
	const struct bl_rsv_cfg even = { .allocator = BL_ALLOC_TWO_COUNTER,
					 .ns_q20 = 2 << 20,
					 .limit_bytes = 1 << 20,
					 .far_ns = ~0ULL };
	const struct bl_rsv_cfg odd = { .allocator = BL_ALLOC_TWO_COUNTER,
					.ns_q20 = 1 << 20,
					.limit_bytes = 1 << 20,
					.far_ns = ~0ULL };
	struct bl_rsv_grant said = ask_empty_switch(&odd, 0xffffffff, 1538);

	(void)state;
	assert_int_equal(said.reason, BL_R_RSV_GRANTED);
	assert_int_equal(said.in_wait_ns, 0xffffffff);
	said = ask_empty_switch(&even, 0x80000000, 1538);
	assert_int_equal(said.reason, BL_R_RSV_REFUSED);
	assert_int_equal(said.in_wait_ns | said.out_wait_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_rsv_ns__rounds_up),
		cmocka_unit_test(bl_rsv_base__edges),
		cmocka_unit_test(bl_rsv_slots__is_a_division),
		cmocka_unit_test(bl_rsv_ask__the_example_of_the_header),
		cmocka_unit_test(bl_rsv_ask__joint_time_passes),
		cmocka_unit_test(bl_rsv_ask__overlap),
		cmocka_unit_test(bl_rsv_ask__after_the_queue),
		cmocka_unit_test(bl_rsv_ask__bitmap_slots_begin_at_multiples),
		cmocka_unit_test(bl_rsv_ask__repeats_name_the_same_moment),
		cmocka_unit_test(bl_rsv_ask__flags_are_repeated_too),
		cmocka_unit_test(bl_rsv_ask__demands),
		cmocka_unit_test(bl_rsv_ask__too_far_changes_nothing),
		cmocka_unit_test(bl_rsv_ask__refused_has_no_wait),
		cmocka_unit_test(bl_rsv_ask__the_longest_wait),
		cmocka_unit_test(bl_rsv_ask__bitmap_window),
		cmocka_unit_test(bl_rsv_ask__pair_has_an_upper_bound),
		cmocka_unit_test(bl_rsv_data__to_the_byte),
		cmocka_unit_test(bl_rsv_data__padded_by_the_nic),
		cmocka_unit_test(bl_rsv_data__unsolicited),
		cmocka_unit_test(bl_rsv_lapse__to_the_nanosecond),
		cmocka_unit_test(bl_rsv_renew__cases),
		cmocka_unit_test(bl_rsv_renew__steady_losses),
		cmocka_unit_test(bl_rsv_release__not_another_burst),
		cmocka_unit_test(bl_rsv_release__cases),
		cmocka_unit_test(bl_rsv_release__bitmap_frees_slots_to_come),
	};

	return cmocka_run_group_tests_name("reserve_core", tests, NULL, NULL);
}
