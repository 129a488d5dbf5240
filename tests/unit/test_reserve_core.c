// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bpf/reserve_core.h: three allocators against models written the slow way, and the books over a million operations with losses, deaths, repeats, releases
 * and lapses: what was granted is used, lapsed, released or still promised, and at the end of time nothing is promised.
 */
#include "unit.h"

#include "../../bpf/reserve_core.h"

#define NPORTS 8
#define Q20(ns) ((__u32)((ns) * (1 << 20)))
#define NS_1G  Q20(8.0) /* a byte at 1 Gbit/s */
#define SLOT   12112ULL /* 1514 bytes at 1 Gbit/s */
#define T0     (1000010ULL * SLOT) /* ten slots into a word of the bitmap */

static struct bl_rsv_cfg cfg;
static struct bl_rsv_port port[NPORTS];
static struct bl_rsv_pair pair[NPORTS][NPORTS];
static struct bl_rsv_grant g;
static __u32 queued; /* in the output's queue */

static void fresh(enum bl_allocator a)
{
	memset(port, 0, sizeof(port));
	memset(pair, 0, sizeof(pair));
	queued = 0;
	cfg = (struct bl_rsv_cfg){ .on = 1, .allocator = a, .ns_q20 = NS_1G, .limit_bytes = 16 * 1514, .refuse_ns = 100 * SLOT, .far_ns = 400 * SLOT,
				   .lapse_ns = 1000000, .pair_shift = 3 };
}

static __u32 ask_early(__u32 in, __u32 out, __u32 bytes, __u32 seq, int early, __u64 now)
{
	bl_rsv_ask(&cfg, &port[in], &port[out], &pair[in][out], bytes, seq, early, queued, now, bl_rsv_slot_at(&cfg, now), &g);
	return g.reason;
}

static __u32 ask(__u32 in, __u32 out, __u32 bytes, __u32 seq, __u64 now)
{
	return ask_early(in, out, bytes, seq, 0, now);
}

static enum bl_reason data(__u32 in, __u32 out, __u32 len, int early)
{
	return bl_rsv_data(&port[in], &port[out], &pair[in][out], len, early);
}

/* of the burst that was promised last */
static enum bl_reason release(__u32 in, __u32 out, __u32 bytes, __u64 now)
{
	return bl_rsv_release(&cfg, &port[in], &port[out], &pair[in][out], bytes, pair[in][out].seq, now);
}

/* an RSV that looks at no other pair */
static __u32 renew(__u32 in, __u32 out, __u32 bytes, __u32 seq, __u64 now)
{
	struct bl_rsv_port nobody = { 0 };
	struct bl_rsv_pair none = { 0 };

	return bl_rsv_renew(&port[in], &port[out], &pair[in][out], &nobody, &none, bytes, seq, now);
}

/* an RSV of somebody who was promised nothing looks at a pair */
static __u32 lapse(__u32 in, __u32 out, __u64 now)
{
	struct bl_rsv_port nobody = { 0 };
	struct bl_rsv_pair none = { 0 };

	return bl_rsv_renew(&nobody, &port[out], &none, &port[in], &pair[in][out], 0, 0, now);
}

static void granted(__u64 in_wait, __u64 out_wait, __u32 flags)
{
	assert_int_equal(g.reason, BL_R_RSV_GRANTED);
	assert_int_equal(g.in_wait_ns, in_wait);
	assert_int_equal(g.out_wait_ns, out_wait);
	assert_int_equal(g.flags, flags);
}

/* Every promise is in one place: per input, and in both counters. */
static void books_balance(void)
{
	__u32 i, o;

	for (i = 0; i < NPORTS; i++) {
		__u64 ins = 0, outs = 0;

		for (o = 0; o < NPORTS; o++) {
			ins += pair[i][o].bytes;
			outs += pair[o][i].bytes;
			assert_true(pair[i][o].early <= pair[i][o].bytes);
		}
		assert_int_equal(port[i].in.bytes, ins);
		assert_int_equal(port[i].out.bytes, outs);
		assert_int_equal(port[i].granted, port[i].used + port[i].lapsed + port[i].released + ins);
	}
}

/* ---- arithmetic ---- */

static void bl_rsv_ns__rounds_up(void **state)
{
	static const struct {
		__u32 q20;
		__u64 bytes, ns;
	} rows[] = {
		{ NS_1G, 0, 0 },	  { NS_1G, 1, 8 },	    { NS_1G, 1514, 12112 }, { Q20(0.08), 1514, 122 }, { Q20(0.08), 1500, 120 },
		{ Q20(0.08), 1501, 121 }, { 1, 1, 1 },		    { 1, 1 << 20, 1 },	    { 1, (1 << 20) + 1, 2 },  { 0, 1514, 0 },
		{ Q20(80), 1514, 121120 }, { ~0U, 1ULL << 31, 8796093020160 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(bl_rsv_ns(rows[i].q20, rows[i].bytes), rows[i].ns);
}

static void bl_rsv_slots__is_a_division(void **state)
{
	__u32 b;

	(void)state;
	for (b = 0; b <= 1 << 22; b++)
		assert_int_equal(bl_rsv_slots(b), (b + 1513) / 1514);
}

/* ---- one RSV after the other ---- */

static void bl_rsv_ask__the_example_of_the_header(void **state)
{
	(void)state;
	fresh(BL_ALLOC_TWO_COUNTER);
	ask(0, 6, 3028, 1, T0);
	granted(0, 0, 0);
	ask(1, 5, 6056, 1, T0);
	granted(0, 0, 0);
	ask(0, 5, 1514, 2, T0);
	granted(24224, 48448, 0);
	assert_int_equal(port[0].in.bytes, 4542);
	assert_int_equal(port[5].out.bytes, 7570);
	assert_int_equal(data(0, 5, 1514, 0), BL_R_NONE);
	assert_int_equal(port[0].in.bytes, 3028);
	assert_int_equal(port[5].out.bytes, 6056);
	assert_int_equal(port[0].used, 1514);
	books_balance();

	fresh(BL_ALLOC_JOINT);
	ask(0, 6, 3028, 1, T0);
	granted(0, 0, 0);
	ask(1, 5, 6056, 1, T0);
	ask(0, 5, 1514, 2, T0);
	granted(4 * SLOT, 4 * SLOT, 0);
	assert_int_equal(port[0].in.free_ns, T0 + 5 * SLOT);
	assert_int_equal(port[5].out.free_ns, T0 + 5 * SLOT);
	ask(0, 7, 1514, 3, T0); /* 0 was free from slot 2 to 4; joint does not go back */
	granted(5 * SLOT, 5 * SLOT, 0);

	fresh(BL_ALLOC_BITMAP);
	ask(0, 6, 3028, 1, T0);
	ask(1, 5, 6056, 1, T0);
	ask(0, 5, 1514, 2, T0);
	granted(4 * SLOT, 4 * SLOT, 0);
	ask(0, 7, 3028, 3, T0); /* the bitmap does */
	granted(2 * SLOT, 2 * SLOT, 0);
	ask(0, 7, 1, 4, T0);
	granted(5 * SLOT, 5 * SLOT, 0);
	books_balance();
}

static void bl_rsv_ask__joint_time_passes(void **state)
{
	(void)state;
	fresh(BL_ALLOC_JOINT);
	ask(0, 1, 1514, 1, T0);
	data(0, 1, 1514, 0);
	ask(0, 1, 1514, 2, T0 + SLOT - 1);
	granted(1, 1, 0);
	data(0, 1, 1514, 0);
	ask(0, 1, 1514, 3, T0 + 2 * SLOT);
	granted(0, 0, 0);
	data(0, 1, 1514, 0);
	ask(0, 1, 1514, 4, T0 + 9 * SLOT);
	granted(0, 0, 0);
	assert_int_equal(port[1].out.free_ns, T0 + 10 * SLOT);
	ask(1, 0, 1514, 1, T0 + 9 * SLOT); /* an input and an output of one port are two links */
	granted(0, 0, 0);
}

/* What waits in the output's queue, and what is promised and late, is sent first. */
static void bl_rsv_ask__after_the_queue(void **state)
{
	static const struct {
		enum bl_allocator a;
		__u32 promised, queued, wait; /* slots, bytes, ns */
	} rows[] = {
		{ BL_ALLOC_TWO_COUNTER, 0, 1, 8 },	     { BL_ALLOC_TWO_COUNTER, 2, 1514, 3 * SLOT },
		{ BL_ALLOC_JOINT, 0, 1, 8 },		     { BL_ALLOC_JOINT, 2, 1514, 3 * SLOT },
		{ BL_ALLOC_BITMAP, 0, 1, SLOT },	     { BL_ALLOC_BITMAP, 0, 1515, 2 * SLOT },
		{ BL_ALLOC_BITMAP, 2, 2 * 1514, 2 * SLOT },   /* a port that keeps its promises: into the first gap after the queue */
		{ BL_ALLOC_BITMAP, 2, 2 * 1514 + 1, 5 * SLOT }, /* one that does not: after all */
		{ BL_ALLOC_BITMAP, 0, 300 * 1514, 300 * SLOT },
	};
	__u32 i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fresh(rows[i].a);
		for (k = 0; k < rows[i].promised; k++)
			ask(2 + k, 1, 1514, 1, T0);
		queued = rows[i].queued;
		ask(0, 1, 1514, 1, T0);
		assert_int_equal(g.reason, BL_R_RSV_GRANTED);
		assert_int_equal(g.out_wait_ns, rows[i].wait);
	}
	fresh(BL_ALLOC_BITMAP);
	queued = 512 * 1514; /* past the window */
	assert_int_equal(ask(0, 1, 1514, 1, T0), BL_R_RSV_REFUSED);
}

static void bl_rsv_ask__bitmap_slots_begin_at_multiples(void **state)
{
	(void)state;
	fresh(BL_ALLOC_BITMAP);
	ask(0, 1, 1514, 1, T0 + 1);
	granted(SLOT - 1, SLOT - 1, 0);
	ask(2, 3, 1514, 1, T0 + SLOT);
	granted(0, 0, 0);
	ask(2, 3, 1515, 2, T0 + SLOT);
	granted(SLOT, SLOT, 0);
	ask(2, 3, 1, 3, T0 + SLOT);
	granted(3 * SLOT, 3 * SLOT, 0);
}

static void bl_rsv_ask__repeats_name_the_same_moment(void **state)
{
	enum bl_allocator a;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		struct bl_rsv_port was[NPORTS];
		struct bl_rsv_pair pairs[NPORTS][NPORTS];
		__u64 slot;

		fresh(a);
		ask(2, 1, 3028, 9, T0);
		ask(0, 1, 1514, 7, T0);
		slot = g.out_wait_ns;
		assert_int_equal(slot, 2 * SLOT);
		memcpy(was, port, sizeof(was));
		memcpy(pairs, pair, sizeof(pairs));
		assert_int_equal(ask(0, 1, 1514, 7, T0 + 100), BL_R_RSV_REPEATED);
		assert_int_equal(g.out_wait_ns, slot - 100);
		assert_int_equal(ask(0, 1, 1514, 7, T0 + slot), BL_R_RSV_REPEATED);
		assert_int_equal(g.in_wait_ns, 0);
		assert_int_equal(g.out_wait_ns, 0);
		assert_int_equal(ask(0, 1, 1514, 7, T0 + slot + 1), BL_R_RSV_REPEATED);
		assert_int_equal(g.out_wait_ns, 0);
		assert_int_equal(ask(0, 1, 1514, 7, T0 + slot + SLOT + cfg.lapse_ns), BL_R_RSV_REPEATED);
		assert_memory_equal(port, was, sizeof(was));
		assert_memory_equal(pair, pairs, sizeof(pairs));
		/* another number, another demand, too late: new ones */
		assert_int_equal(ask(0, 1, 1514, 8, T0), BL_R_RSV_GRANTED);
		assert_int_equal(ask(0, 1, 1513, 8, T0), BL_R_RSV_GRANTED);
		assert_int_equal(ask(0, 1, 1513, 8, pair[0][1].lapse_ns), BL_R_RSV_REPEATED);
		assert_int_equal(ask(0, 1, 1513, 8, pair[0][1].lapse_ns + 1), BL_R_RSV_GRANTED);
		books_balance();
	}
}

static void bl_rsv_ask__flags_are_repeated_too(void **state)
{
	(void)state;
	fresh(BL_ALLOC_TWO_COUNTER);
	ask_early(0, 1, 1514, 1, 1, T0);
	granted(0, 0, BL_GRT_PASSED);
	assert_int_equal(ask_early(0, 1, 1514, 1, 1, T0), BL_R_RSV_REPEATED);
	assert_int_equal(g.flags, BL_GRT_PASSED);
	assert_int_equal(pair[0][1].early, 1514);
}

static void bl_rsv_ask__demands(void **state)
{
	static const struct {
		__u32 bytes, limit;
		enum bl_allocator a;
		__u32 reason;
	} rows[] = {
		{ 0, 24224, BL_ALLOC_TWO_COUNTER, BL_R_RSV_BAD },
		{ 0, 24224, BL_ALLOC_BITMAP, BL_R_RSV_BAD },
		{ 1, 24224, BL_ALLOC_JOINT, BL_R_RSV_GRANTED },
		{ 24224, 24224, BL_ALLOC_TWO_COUNTER, BL_R_RSV_GRANTED },
		{ 24225, 24224, BL_ALLOC_TWO_COUNTER, BL_R_RSV_BAD },
		{ 24225, 24224, BL_ALLOC_JOINT, BL_R_RSV_BAD },
		{ 24225, 24224, BL_ALLOC_BITMAP, BL_R_RSV_BAD },
		{ 32 * 1514, 1 << 20, BL_ALLOC_BITMAP, BL_R_RSV_GRANTED },
		{ 32 * 1514 + 1, 1 << 20, BL_ALLOC_BITMAP, BL_R_RSV_REFUSED },
		{ 32 * 1514 + 1, 1 << 20, BL_ALLOC_JOINT, BL_R_RSV_GRANTED },
		{ ~0U, ~0U, BL_ALLOC_BITMAP, BL_R_RSV_REFUSED },
		{ ~0U, ~0U, BL_ALLOC_JOINT, BL_R_RSV_REFUSED },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fresh(rows[i].a);
		cfg.limit_bytes = rows[i].limit;
		assert_int_equal(ask(0, 1, rows[i].bytes, 1, T0), rows[i].reason);
		assert_int_equal(g.flags, rows[i].reason == BL_R_RSV_GRANTED ? 0 : BL_GRT_REFUSED);
		assert_int_equal(port[0].grants, rows[i].reason == BL_R_RSV_GRANTED);
		assert_int_equal(port[0].refused, rows[i].reason != BL_R_RSV_GRANTED);
		assert_int_equal(port[0].granted, rows[i].reason == BL_R_RSV_GRANTED ? rows[i].bytes : 0);
		books_balance();
	}
}

static void bl_rsv_ask__too_far_changes_nothing(void **state)
{
	enum bl_allocator a;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		struct bl_rsv_port in, out;
		struct bl_rsv_pair p;

		fresh(a);
		cfg.far_ns = 2 * SLOT;
		ask(0, 1, 1514, 1, T0);
		ask(2, 1, 1514, 1, T0);
		ask(3, 1, 1514, 1, T0); /* at far_ns exactly */
		granted(a == BL_ALLOC_TWO_COUNTER ? 0 : 2 * SLOT, 2 * SLOT, 0);
		in = port[4];
		out = port[1];
		p = pair[4][1];
		assert_int_equal(ask(4, 1, 1514, 1, T0), BL_R_RSV_REFUSED);
		assert_int_equal(g.flags, BL_GRT_REFUSED);
		assert_int_equal(g.in_wait_ns, 0);
		assert_int_equal(g.out_wait_ns, 0);
		in.refused++;
		port[4].in.base = in.in.base; /* the bitmap's window may slide */
		assert_memory_equal(&port[4], &in, sizeof(in));
		assert_memory_equal(&port[1], &out, sizeof(out));
		assert_memory_equal(&pair[4][1], &p, sizeof(p));
		/* by the input alone */
		ask(5, 6, 1514, 1, T0);
		ask(5, 7, 1514, 1, T0);
		ask(5, 3, 1514, 1, T0);
		assert_int_equal(ask(5, 2, 1514, 1, T0), BL_R_RSV_REFUSED);
		/* who was refused and asks again, by the same number, is not told the refusal again */
		assert_int_equal(data(2, 1, 1514, 0), BL_R_NONE);
		assert_int_equal(ask(4, 1, 1514, 1, T0 + SLOT), BL_R_RSV_GRANTED);
		books_balance();
	}
}

static void bl_rsv_ask__bitmap_window(void **state)
{
	__u32 i;

	(void)state;
	/* 512 slots, less those of the first word that have passed */
	fresh(BL_ALLOC_BITMAP);
	cfg.far_ns = ~0ULL;
	for (i = 0; i < 502; i++) {
		ask(0, 1, 1514, i, T0);
		granted(i * SLOT, i * SLOT, 0);
	}
	assert_int_equal(ask(0, 1, 1514, i, T0), BL_R_RSV_REFUSED);
	assert_int_equal(ask(2, 1, 1514, i, T0), BL_R_RSV_REFUSED);
	assert_int_equal(ask(0, 2, 1514, i, T0), BL_R_RSV_REFUSED);
	assert_int_equal(ask(2, 3, 1514, i, T0), BL_R_RSV_GRANTED);
	assert_int_equal(port[0].refused, 2);
	assert_int_equal(ask(0, 1, 1514, i, T0 + 53 * SLOT), BL_R_RSV_REFUSED);
	/* one word on, there is room for one word; nothing that was promised is given again */
	for (i = 0; i < 64; i++) {
		ask(0, 1, 1514, 1000 + i, T0 + 53 * SLOT + 1);
		granted((449 + i) * SLOT - 1, (449 + i) * SLOT - 1, 0);
	}
	assert_int_equal(ask(0, 1, 1514, 2000, T0 + 54 * SLOT), BL_R_RSV_REFUSED);
	/* a run does not go beyond the window */
	fresh(BL_ALLOC_BITMAP);
	cfg.far_ns = ~0ULL;
	for (i = 0; i < 502 - 3; i++)
		ask(0, 1, 1514, i, T0);
	assert_int_equal(ask(0, 1, 4 * 1514, i, T0), BL_R_RSV_REFUSED);
	assert_int_equal(ask(0, 1, 3 * 1514, i, T0), BL_R_RSV_GRANTED);
	assert_int_equal(g.in_wait_ns, i * SLOT);
	/* long after, all is free */
	ask(0, 1, 16 * 1514, 1000, T0 + 100000 * SLOT);
	granted(0, 0, 0);
	/* the clock of a CPU that took the lock second: not before the window, nothing forgotten */
	ask(0, 1, 16 * 1514, 1001, T0 + 100000 * SLOT - 64 * SLOT);
	assert_int_equal(g.reason, BL_R_RSV_GRANTED);
	assert_int_equal(pair[0][1].in_ns, 1099968 * SLOT);
	assert_int_equal(port[0].in.base, 1099968 / 64);
	/* another slot time: numbers that are far back, a new window */
	cfg.ns_q20 = Q20(80.0);
	ask(0, 1, 1514, 1002, T0 + 100000 * SLOT);
	granted(0, 0, 0);
}

static void bl_rsv_ask__pair_has_an_upper_bound(void **state)
{
	(void)state;
	fresh(BL_ALLOC_JOINT);
	cfg.far_ns = ~0ULL;
	cfg.ns_q20 = 1;
	cfg.limit_bytes = ~0U;
	assert_int_equal(ask(0, 1, BL_RSV_PAIR_MAX, 1, T0), BL_R_RSV_GRANTED);
	assert_int_equal(ask(0, 1, 1, 2, T0), BL_R_RSV_REFUSED);
	assert_int_equal(ask(0, 2, 1, 2, T0), BL_R_RSV_GRANTED);
	books_balance();
}

/* ---- data, unsolicited bursts ---- */

static void bl_rsv_data__to_the_byte(void **state)
{
	(void)state;
	fresh(BL_ALLOC_TWO_COUNTER);
	assert_int_equal(data(0, 1, 60, 0), BL_R_UNRESERVED);
	ask(0, 1, 1574, 1, T0);
	assert_int_equal(data(0, 1, 1575, 0), BL_R_UNRESERVED);
	assert_int_equal(pair[0][1].bytes, 1574);
	assert_int_equal(data(0, 1, 1514, 0), BL_R_NONE);
	assert_int_equal(data(0, 1, 61, 0), BL_R_UNRESERVED);
	assert_int_equal(data(0, 2, 60, 0), BL_R_UNRESERVED);
	assert_int_equal(data(2, 1, 60, 0), BL_R_UNRESERVED);
	assert_int_equal(data(0, 1, 60, 0), BL_R_NONE);
	assert_int_equal(data(0, 1, 60, 0), BL_R_UNRESERVED);
	assert_int_equal(port[0].used, 1574);
	books_balance();
}

static void bl_rsv_data__unsolicited(void **state)
{
	(void)state;
	fresh(BL_ALLOC_TWO_COUNTER);
	cfg.refuse_ns = 1514 * 8;
	assert_int_equal(data(0, 1, 60, 1), BL_R_EARLY_REFUSED);
	ask(0, 1, 1514, 1, T0); /* not asked for as unsolicited: its frames wait for their slot */
	assert_int_equal(data(0, 1, 60, 1), BL_R_EARLY_REFUSED);
	ask_early(0, 1, 1514, 2, 1, T0);
	granted(1514 * 8, 1514 * 8, BL_GRT_PASSED);
	assert_int_equal(data(0, 1, 1515, 1), BL_R_EARLY_REFUSED);
	assert_int_equal(data(0, 1, 1000, 1), BL_R_NONE);
	assert_int_equal(data(0, 1, 515, 1), BL_R_EARLY_REFUSED);
	assert_int_equal(data(0, 1, 514, 1), BL_R_NONE);
	assert_int_equal(data(0, 1, 60, 1), BL_R_EARLY_REFUSED);
	assert_int_equal(pair[0][1].bytes, 1514);
	ask_early(0, 1, 1, 3, 1, T0);
	granted(1514 * 8, 1514 * 8, BL_GRT_PASSED);
	ask_early(0, 1, 1, 4, 1, T0); /* T + 8 ns */
	granted(1515 * 8, 1515 * 8, 0);
	/* frames in their slot may use up what an unsolicited burst lost: the promise is one */
	assert_int_equal(data(0, 1, 1516, 0), BL_R_NONE);
	assert_int_equal(pair[0][1].early, 0);
	books_balance();
}

/* ---- the end of promises ---- */

static void bl_rsv_lapse__to_the_nanosecond(void **state)
{
	enum bl_allocator a;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		__u64 end = T0 + 3 * SLOT + 1000000;

		fresh(a);
		ask_early(0, 1, 2 * 1514, 1, 1, T0);
		assert_int_equal(pair[0][1].lapse_ns, T0 + 2 * SLOT + 1000000);
		ask(0, 1, 1514, 2, T0);
		assert_int_equal(pair[0][1].lapse_ns, end);
		assert_int_equal(lapse(0, 1, end), 0);
		assert_int_equal(data(0, 1, 14, 0), BL_R_NONE);
		assert_int_equal(lapse(0, 1, end + 1), 3 * 1514 - 14);
		assert_int_equal(lapse(0, 1, end + 1), 0);
		assert_int_equal(port[0].lapsed, 3 * 1514 - 14);
		assert_int_equal(pair[0][1].early, 0);
		assert_int_equal(data(0, 1, 60, 0), BL_R_UNRESERVED);
		books_balance();
		/* the number of a promise that lapsed is no repeat */
		assert_int_equal(ask(0, 1, 1514, 2, end), BL_R_RSV_GRANTED);
		/* nor does an old end of time prolong a new promise */
		assert_int_equal(data(0, 1, 1514, 0), BL_R_NONE);
		pair[0][1].lapse_ns = ~0ULL;
		assert_int_equal(ask(0, 1, 1514, 3, end + SLOT), BL_R_RSV_GRANTED);
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
		/* the same burst, asked for again; and when its time is over */
		{ 3028, 7, 0, 0 },
		{ 3028, 7, 2 * SLOT + 1000000, 0 },
		{ 3028, 7, 2 * SLOT + 1000001, 2028 },
		/* another one */
		{ 3028, 8, 0, 2028 },
		{ 3028, 6, 0, 2028 },
		{ 3028, 7 + (1U << 31), 0, 2028 },
		{ 3029, 7, 0, 2028 },
		{ 3027, 7, 0, 2028 },
		{ 0, 7, 0, 2028 },
		{ ~0U, ~0U, 0, 2028 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fresh(BL_ALLOC_TWO_COUNTER);
		ask_early(0, 1, 3028, 7, 1, T0);
		ask(0, 2, 60, 7, T0);
		ask(3, 1, 60, 7, T0);
		assert_int_equal(data(0, 1, 1000, 1), BL_R_NONE);
		assert_int_equal(renew(0, 1, rows[i].bytes, rows[i].seq, T0 + rows[i].after_ns), rows[i].want);
		assert_int_equal(pair[0][1].bytes, 2028 - rows[i].want);
		assert_int_equal(pair[0][1].early, 2028 - rows[i].want);
		assert_int_equal(pair[0][1].valid, !rows[i].want);
		assert_int_equal(port[0].lapsed, rows[i].want);
		/* nobody else's */
		assert_int_equal(pair[0][2].bytes, 60);
		assert_int_equal(pair[3][1].bytes, 60);
		books_balance();
		assert_int_equal(renew(0, 1, rows[i].bytes, rows[i].seq, T0 + rows[i].after_ns), 0);
	}
}

/* A pair that is asked for all the time, and of which each burst loses a frame, is never promised more than one burst. */
static void bl_rsv_renew__steady_losses(void **state)
{
	enum bl_allocator a;
	__u64 now;
	__u32 i;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		fresh(a);
		for (i = 0, now = T0; i < 10000; i++, now += 3 * SLOT) {
			assert_int_equal(renew(0, 1, 3028, i, now), i ? 1514 : 0);
			assert_int_equal(ask(0, 1, 3028, i, now), BL_R_RSV_GRANTED);
			assert_true(g.in_wait_ns <= SLOT && g.out_wait_ns <= SLOT);
			assert_int_equal(data(0, 1, 1514, 0), BL_R_NONE);
			assert_int_equal(port[1].out.bytes, 1514);
		}
		books_balance();
	}
}

static void bl_rsv_release__not_another_burst(void **state)
{
	struct bl_rsv_port *in = &port[0], *out = &port[1];
	struct bl_rsv_pair *p = &pair[0][1];

	(void)state;
	fresh(BL_ALLOC_BITMAP);
	ask(0, 1, 3028, 7, T0);
	renew(0, 1, 1514, 8, T0);
	ask(0, 1, 1514, 8, T0);
	assert_int_equal(bl_rsv_release(&cfg, in, out, p, 3028, 7, T0), BL_R_RELEASE_BAD);
	assert_int_equal(bl_rsv_release(&cfg, in, out, p, 3028, 9, T0), BL_R_RELEASE_BAD);
	assert_int_equal(p->bytes, 1514);
	assert_int_equal(port[0].released, 0);
	assert_int_equal(bl_rsv_release(&cfg, in, out, p, 3028, 8, T0), BL_R_RELEASED);
	assert_int_equal(port[0].released, 1514);
	books_balance();
}

static void bl_rsv_release__cases(void **state)
{
	enum bl_allocator a;

	(void)state;
	for (a = 0; a < BL_ALLOC_COUNT; a++) {
		fresh(a);
		assert_int_equal(release(0, 1, 60, T0), BL_R_RELEASE_BAD);
		ask(0, 1, 3028, 1, T0);
		assert_int_equal(release(0, 1, 0, T0), BL_R_RELEASE_BAD);
		assert_int_equal(release(1, 0, 60, T0), BL_R_RELEASE_BAD);
		assert_int_equal(release(0, 1, 1514, T0), BL_R_RELEASED);
		assert_int_equal(port[0].released, 1514);
		assert_int_equal(ask(0, 1, 3028, 1, T0), BL_R_RSV_REPEATED); /* part of it is still there */
		assert_int_equal(release(0, 1, 9999, T0), BL_R_RELEASED);
		assert_int_equal(port[0].released, 3028);
		assert_int_equal(release(0, 1, 1, T0), BL_R_RELEASE_BAD);
		assert_int_equal(data(0, 1, 60, 0), BL_R_UNRESERVED);
		books_balance();
		assert_int_equal(ask(0, 1, 3028, 1, T0), BL_R_RSV_GRANTED);
	}
}

static void bl_rsv_release__bitmap_frees_slots_to_come(void **state)
{
	(void)state;
	fresh(BL_ALLOC_BITMAP);
	ask(0, 1, 16 * 1514, 1, T0);
	ask(2, 1, 16 * 1514, 1, T0);
	ask(3, 1, 16 * 1514, 1, T0);
	assert_int_equal(release(2, 1, 16 * 1514, T0 + 16 * SLOT), BL_R_RELEASED);
	ask(4, 1, 16 * 1514, 1, T0 + 16 * SLOT);
	granted(0, 0, 0);
	/* begun: it stays */
	assert_int_equal(release(3, 1, 16 * 1514, T0 + 32 * SLOT + 1), BL_R_RELEASED);
	ask(5, 1, 1514, 1, T0 + 32 * SLOT + 1);
	granted(16 * SLOT - 1, 16 * SLOT - 1, 0);
	/* a part: the slots stay */
	assert_int_equal(release(5, 1, 1513, T0 + 32 * SLOT + 1), BL_R_RELEASED);
	ask(6, 1, 1514, 1, T0 + 32 * SLOT + 1);
	granted(17 * SLOT - 1, 17 * SLOT - 1, 0);
	/* once freed, never again: the slots are another's now */
	assert_int_equal(release(6, 1, 1514, T0 + 32 * SLOT + 1), BL_R_RELEASED);
	ask(7, 1, 1514, 1, T0 + 32 * SLOT + 1);
	granted(17 * SLOT - 1, 17 * SLOT - 1, 0);
	pair[6][1].bytes = 1514;
	port[6].in.bytes += 1514;
	port[1].out.bytes += 1514;
	release(6, 1, 1514, T0 + 32 * SLOT + 1);
	ask(2, 1, 1514, 2, T0 + 32 * SLOT + 1);
	granted(18 * SLOT - 1, 18 * SLOT - 1, 0);
	/* a rate that was changed since: whose slots those are now is not known */
	ask(0, 1, 1514, 8, T0 + 40 * SLOT);
	cfg.ns_q20 = Q20(9.0);
	{
		struct bl_rsv_side was = port[1].out;

		release(0, 1, 9999, T0 + 40 * SLOT);
		assert_memory_equal(was.bits, port[1].out.bits, sizeof(was.bits));
	}
}

/* ---- models ---- */

#define PAST 4096
/* The bitmap written the slow way: one byte per slot. */
struct plain {
	__u8 taken[PAST];
	__u64 from; /* slots before it were cleared */
};
static struct plain plain_in[NPORTS], plain_out[NPORTS];

static void plain_pass(struct plain *p, __u64 slot)
{
	for (; p->from < slot; p->from++)
		p->taken[p->from % PAST] = 0;
}

static __u64 plain_fit(__u32 in, __u32 out, __u64 first, __u32 n, __u64 end)
{
	__u64 s;
	__u32 k;

	for (s = first; s + n <= end; s++) {
		for (k = 0; k < n && !plain_in[in].taken[(s + k) % PAST] && !plain_out[out].taken[(s + k) % PAST]; k++)
			;
		if (k == n)
			return s;
	}
	return 0;
}

/* Bursts that were granted, to find two that meet on a link. */
struct burst {
	__u64 from, to;
	__u32 in, out;
};
#define BURSTS 1024
static struct burst burst[BURSTS];
static __u32 nburst;

static void no_collision(__u32 in, __u32 out, __u64 from, __u64 to)
{
	__u32 i;

	for (i = 0; i < BURSTS; i++)
		if ((burst[i].in == in || burst[i].out == out) && burst[i].from < to && from < burst[i].to)
			fail_msg("grant %u to %u, %llu to %llu, collides with %u to %u, %llu to %llu", in, out, (unsigned long long)from, (unsigned long long)to,
				 burst[i].in, burst[i].out, (unsigned long long)burst[i].from, (unsigned long long)burst[i].to);
	burst[nburst++ % BURSTS] = (struct burst){ from, to, in, out };
}

static void burst_gone(__u32 in, __u32 out, __u64 from)
{
	__u32 i;

	for (i = 0; i < BURSTS; i++)
		if (burst[i].in == in && burst[i].out == out && burst[i].from == from)
			burst[i].from = burst[i].to = 0;
}

static void bl_rsv_run__against_a_plain_search(void **state)
{
	struct rnd r = rnd_seeded("run");
	int op;

	(void)state;
	for (op = 0; op < 200000; op++) {
		static struct bl_rsv_side a, b;
		__u64 base = 1 + rnd_below(&r, 1 << 20), first = (base << 6) + rnd_below(&r, rnd_below(&r, 2) ? 64 : 600), want = 0, s;
		__u32 n = 1 + rnd_below(&r, BL_RSV_RUN_MAX), i, k, dense = rnd_below(&r, 5);

		for (i = 0; i < BL_RSV_WORDS; i++) {
			a.bits[i] = rnd64(&r);
			b.bits[i] = rnd64(&r);
			for (k = 0; k < dense; k++) {
				a.bits[i] &= rnd64(&r);
				b.bits[i] &= rnd64(&r);
			}
			if (rnd_below(&r, 3) == 0)
				a.bits[i] = ~0ULL;
			if (rnd_below(&r, 6) == 0)
				a.bits[i] = b.bits[i] = 0;
		}
		for (s = first; !want && s + n <= (base + BL_RSV_WORDS) << 6; s++) {
			for (k = 0; k < n && !((a.bits[(s + k) / 64 % 8] | b.bits[(s + k) / 64 % 8]) >> (s + k) % 64 & 1); k++)
				;
			if (k == n)
				want = s;
		}
		assert_int_equal(bl_rsv_run(&a, &b, base, first, n), want);
	}
}

/* What the hosts of the model have in hand: the last grant of each pair. */
struct hand {
	__u32 seq, bytes, early;
};

/*
 * A million operations: RSVs, repeats, bursts that come whole, in part, unsolicited or not at all, data without a promise, releases, deaths, time. @mix: the allocator
 * changes now and then.
 */
static void play(enum bl_allocator a, bool mix, __u32 ops, const char *name)
{
	static struct hand hand[NPORTS][NPORTS];
	__u64 in_free[NPORTS] = { 0 }, out_free[NPORTS] = { 0 };
	struct rnd r = rnd_seeded(name);
	__u64 now = T0, lapsed = 0, used = 0, released = 0, grants = 0, refused = 0, repeated = 0, early_lost = 0;
	__u32 op, i, o;

	fresh(a);
	cfg.refuse_ns = 20 * SLOT;
	cfg.far_ns = a == BL_ALLOC_BITMAP ? 400 * SLOT : 60 * SLOT;
	memset(hand, 0, sizeof(hand));
	memset(burst, 0, sizeof(burst));
	memset(plain_in, 0, sizeof(plain_in));
	memset(plain_out, 0, sizeof(plain_out));
	for (op = 0; op < ops; op++) {
		__u32 in = rnd_below(&r, NPORTS), out = rnd_below(&r, NPORTS), bytes, what = rnd_below(&r, 100), len;
		struct hand *h = &hand[in][out];
		struct bl_rsv_pair *p = &pair[in][out];

		if (mix && rnd_below(&r, 1000) == 0)
			cfg.allocator = rnd_below(&r, BL_ALLOC_COUNT);
		if (what < 40) {
			__u64 in_wait = 0, out_wait = 0, slot = 0, end;
			int early = rnd_below(&r, 4) == 0;
			__u32 n, reason, was = p->bytes, j, from = port[out].sweep;
			bool fits = true;
			__u64 due;

			queued = rnd_below(&r, 3) ? 0 : rnd_below(&r, rnd_below(&r, 2) ? 4000 : 40 * 1514);
			bytes = 1 + rnd_below(&r, rnd_below(&r, 3) ? 3000 : 16 * 1514);
			n = (bytes + 1513) / 1514;
			/* What is left of the burst before will not come; and the pair whose turn it is, which may be the same, is over or not. */
			if (from != in && now > pair[from][out].lapse_ns)
				was += pair[from][out].bytes;
			assert_int_equal(bl_rsv_renew(&port[in], &port[out], p, &port[from], &pair[from][out], bytes, h->seq + 1, now), was);
			assert_int_equal(p->bytes, 0);
			lapsed += was;
			port[out].sweep = (from + 1) % NPORTS; /* as the switch does */
			for (j = 0, due = queued; j < NPORTS; j++)
				due += pair[j][out].bytes;
			switch (cfg.allocator) {
			case BL_ALLOC_TWO_COUNTER:
				for (j = 0; j < NPORTS; j++)
					in_wait += pair[in][j].bytes;
				in_wait *= 8;
				out_wait = due * 8;
				break;
			case BL_ALLOC_BITMAP:
				slot = (now + SLOT - 1) / SLOT;
				plain_pass(&plain_in[in], slot);
				plain_pass(&plain_out[out], slot);
				end = (slot / 64 + 8) * 64;
				slot = plain_fit(in, out, slot + ((queued > 2 * 1514 ? due : queued) + 1513) / 1514, n, end);
				fits = slot;
				in_wait = out_wait = slot * SLOT - now;
				break;
			default:
				in_wait = out_wait = bl_max64(now + due * 8, bl_max64(in_free[in], out_free[out])) - now;
				break;
			}
			reason = ask_early(in, out, bytes, h->seq + 1, early, now);
			if (!mix) {
				bool want = fits && in_wait <= cfg.far_ns && out_wait <= cfg.far_ns;

				assert_int_equal(reason, want ? BL_R_RSV_GRANTED : BL_R_RSV_REFUSED);
				if (want) {
					in_free[in] = out_free[out] = now + in_wait + bytes * 8ULL;
					assert_int_equal(g.in_wait_ns, in_wait);
					assert_int_equal(g.out_wait_ns, out_wait);
					assert_int_equal(g.flags, early && bl_max64(in_wait, out_wait) <= cfg.refuse_ns ? BL_GRT_PASSED : 0);
				}
				if (reason == BL_R_RSV_GRANTED && a != BL_ALLOC_TWO_COUNTER)
					no_collision(in, out, now + in_wait, now + in_wait + (a == BL_ALLOC_BITMAP ? n * SLOT : bytes * 8ULL));
				for (j = 0; reason == BL_R_RSV_GRANTED && a == BL_ALLOC_BITMAP && j < n; j++)
					plain_in[in].taken[(slot + j) % PAST] = plain_out[out].taken[(slot + j) % PAST] = 1;
			}
			refused += reason == BL_R_RSV_REFUSED;
			if (reason == BL_R_RSV_GRANTED) {
				grants++;
				*h = (struct hand){ h->seq + 1, bytes, g.flags };
			}
		} else if (what < 45 && h->bytes) {
			__u64 in_ns = p->in_ns, out_ns = p->out_ns;
			__u32 was = p->bytes, valid = p->valid && now <= p->lapse_ns;

			if (!valid)
				continue;
			assert_int_equal(ask(in, out, p->asked, p->seq, now), BL_R_RSV_REPEATED);
			assert_int_equal(g.in_wait_ns, in_ns > now ? in_ns - now : 0);
			assert_int_equal(g.out_wait_ns, out_ns > now ? out_ns - now : 0);
			assert_int_equal(p->bytes, was);
			repeated++;
		} else if (what < 75) {
			/* a burst: all of it, some of it, or more than there is */
			__u32 k = 1 + rnd_below(&r, 16);
			int early = h->early & BL_GRT_PASSED || rnd_below(&r, 20) == 0;

			while (k--) {
				__u32 was = p->bytes, was_early = p->early;
				enum bl_reason why;

				len = rnd_below(&r, 4) ? 60 + rnd_below(&r, 1455) : rnd_below(&r, 2) ? p->bytes : p->bytes + 1;
				if (!len)
					break;
				why = data(in, out, len, early);
				if (early)
					assert_int_equal(why, len <= was_early ? BL_R_NONE : BL_R_EARLY_REFUSED);
				else
					assert_int_equal(why, len <= was ? BL_R_NONE : BL_R_UNRESERVED);
				used += why == BL_R_NONE ? len : 0;
				early_lost += why == BL_R_EARLY_REFUSED;
				assert_int_equal(p->bytes, why == BL_R_NONE ? was - len : was);
			}
		} else if (what < 80) {
			__u32 was = p->bytes;
			__u64 in_ns = p->in_ns;
			__u32 slots = p->slots;
			enum bl_reason why;

			bytes = rnd_below(&r, 3) ? was : rnd_below(&r, 20000);
			why = release(in, out, bytes, now);
			assert_int_equal(why, bytes && was ? BL_R_RELEASED : BL_R_RELEASE_BAD);
			if (why == BL_R_RELEASED) {
				__u32 j;

				released += was - p->bytes;
				assert_int_equal(was - p->bytes, bytes < was ? bytes : was);
				if (!p->bytes && slots && in_ns >= now && !mix) {
					for (j = 0; j < slots; j++)
						plain_in[in].taken[(in_ns / SLOT + j) % PAST] = plain_out[out].taken[(in_ns / SLOT + j) % PAST] = 0;
					burst_gone(in, out, in_ns);
				}
			}
		} else if (what < 81) {
			for (out = 0; out < NPORTS; out++) /* dies with all that it was promised, and begins with other numbers */
				hand[in][out] = (struct hand){ .seq = (__u32)rnd64(&r) };
		} else {
			now += rnd_below(&r, 100) ? rnd_below(&r, 6000) : rnd_below(&r, 3000000);
		}
		if (op % 16 == 0)
			books_balance();
	}
	now += 1ULL << 40;
	for (i = 0; i < NPORTS; i++)
		for (o = 0; o < NPORTS; o++)
			lapsed += lapse(i, o, now);
	books_balance();
	for (i = 0; i < NPORTS; i++) {
		assert_int_equal(port[i].in.bytes, 0);
		assert_int_equal(port[i].out.bytes, 0);
		lapsed -= port[i].lapsed;
		used -= port[i].used;
		released -= port[i].released;
		grants -= port[i].grants;
		refused -= port[i].refused;
	}
	assert_int_equal(lapsed | used | released | grants | refused, 0);
	/* each kind of thing happened: else the rest proves nothing */
	for (i = 0; i < NPORTS; i++)
		assert_true(port[i].lapsed && port[i].used && port[i].released && port[i].grants > ops / 200);
	assert_true(repeated > ops / 1000 && early_lost > ops / 1000);
	for (i = 0, refused = 0; i < NPORTS; i++)
		refused += port[i].refused;
	assert_true(refused > 0);
}

#define OPS 1000000
static void model__two_counter(void **state)
{
	(void)state;
	play(BL_ALLOC_TWO_COUNTER, false, OPS, "two-counter");
}

static void model__joint(void **state)
{
	(void)state;
	play(BL_ALLOC_JOINT, false, OPS, "joint");
}

static void model__bitmap(void **state)
{
	(void)state;
	play(BL_ALLOC_BITMAP, false, OPS, "bitmap");
}

static void model__allocator_changes(void **state)
{
	(void)state;
	play(BL_ALLOC_TWO_COUNTER, true, OPS, "mix");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_rsv_ns__rounds_up),
		cmocka_unit_test(bl_rsv_slots__is_a_division),
		cmocka_unit_test(bl_rsv_run__against_a_plain_search),
		cmocka_unit_test(bl_rsv_ask__the_example_of_the_header),
		cmocka_unit_test(bl_rsv_ask__joint_time_passes),
		cmocka_unit_test(bl_rsv_ask__after_the_queue),
		cmocka_unit_test(bl_rsv_ask__bitmap_slots_begin_at_multiples),
		cmocka_unit_test(bl_rsv_ask__repeats_name_the_same_moment),
		cmocka_unit_test(bl_rsv_ask__flags_are_repeated_too),
		cmocka_unit_test(bl_rsv_ask__demands),
		cmocka_unit_test(bl_rsv_ask__too_far_changes_nothing),
		cmocka_unit_test(bl_rsv_ask__bitmap_window),
		cmocka_unit_test(bl_rsv_ask__pair_has_an_upper_bound),
		cmocka_unit_test(bl_rsv_data__to_the_byte),
		cmocka_unit_test(bl_rsv_data__unsolicited),
		cmocka_unit_test(bl_rsv_lapse__to_the_nanosecond),
		cmocka_unit_test(bl_rsv_renew__cases),
		cmocka_unit_test(bl_rsv_renew__steady_losses),
		cmocka_unit_test(bl_rsv_release__not_another_burst),
		cmocka_unit_test(bl_rsv_release__cases),
		cmocka_unit_test(bl_rsv_release__bitmap_frees_slots_to_come),
		cmocka_unit_test(model__two_counter),
		cmocka_unit_test(model__joint),
		cmocka_unit_test(model__bitmap),
		cmocka_unit_test(model__allocator_changes),
	};

	return cmocka_run_group_tests_name("reserve_core", tests, NULL, NULL);
}
