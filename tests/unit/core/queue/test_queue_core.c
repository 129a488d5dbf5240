// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/queue/queue_core.h: histograms, rings, ECN, rates and due times, with injected time. Due
 * times also with threads, since there the compare-and-swap matters.
 */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sched.h>

#include "core/queue/queue_core.h"

/* ---- histograms ---- */

/* The rule of queue_abi.h, with the compiler's logarithm. */
static uint32_t bin_of(uint64_t v)
{
	uint32_t e, b;

	if (v < 16)
		return (uint32_t)v;
	e = 63 - (uint32_t)__builtin_clzll(v);
	if (e > 21)
		return BL_HIST_BINS - 1;
	b = 16 + (e - 4) * 8 + (v >> (e - 3) & 7);
	return b;
}

static void bl_hist_bin__table(void **state)
{
	static const struct {
		uint64_t v;
		uint32_t bin;
	} t[] = {
		{ 0, 0 },
		{ 1, 1 },
		{ 15, 15 },
		{ 16, 16 },
		{ 17, 16 },
		{ 18, 17 },
		{ 31, 23 },
		{ 32, 24 },
		{ 35, 24 },
		{ 36, 25 },
		{ (1 << 22) - 1, 159 },
		{ (1 << 22) - (1 << 18), 159 },
		{ (1 << 22) - (1 << 18) - 1, 158 },
		{ 1 << 22, 159 },
		{ 1ULL << 32, 159 },
		{ UINT64_MAX, 159 },
	};
	uint32_t v;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_hist_bin(t[i].v), t[i].bin);
	for (v = 0; v < 1u << 20; v++)
		assert_int_equal(bl_hist_bin(v), bin_of(v));
	for (v = 20; v < 64; v++) {
		assert_int_equal(bl_hist_bin(1ULL << v), bin_of(1ULL << v));
		assert_int_equal(bl_hist_bin((1ULL << v) - 1), bin_of((1ULL << v) - 1));
		assert_int_equal(bl_hist_bin((1ULL << v) + 1), bin_of((1ULL << v) + 1));
	}
}

static void bl_hist_add__one_bin(void **state)
{
	struct bl_hist h = { 0 }, want = { 0 };

	(void)state;
	bl_hist_add(&h, 17);
	bl_hist_add(&h, 16);
	bl_hist_add(&h, UINT64_MAX);
	want.n[16] = 2;
	want.n[159] = 1;
	assert_memory_equal(&h, &want, sizeof(h));
}

/* ---- rings ---- */

static void bl_ring_put__whole_result(void **state)
{
	static struct bl_queue q, want;
	static struct bl_hist h, want_h;

	(void)state;
	memset(&q, 0, sizeof(q));
	memset(&h, 0, sizeof(h));
	q.limit_frames = 3;
	q.limit_bytes = 10000;
	q.head = q.tail = UINT32_MAX - 1; /* The running numbers wrap as well. */
	want = q;
	memset(&want_h, 0, sizeof(want_h));
	assert_int_equal(bl_ring_put(&q, &h, BL_RING_ENTRY(65535, 1514), 0), 0);
	want.tail++;
	want.bytes = want.put_bytes = 1514;
	want.wire = 1538;
	want.put = 1;
	want.ring[510] = 1514u << 16 | 65535;
	want_h.n[0] = 1;
	assert_memory_equal(&q, &want, sizeof(q));
	assert_int_equal(bl_ring_put(&q, &h, BL_RING_ENTRY(7, 14), 1), 0);
	want.tail++;
	want.bytes = want.put_bytes = 1528;
	want.wire = 1538 + 84; /* A frame of 14 bytes is padded on the wire. */
	want.put = 2;
	want.marked = 1;
	want.ring[511] = 14u << 16 | 7;
	want_h.n[19]++; /* 1514 / 64 = 23 */
	assert_memory_equal(&q, &want, sizeof(q));
	assert_memory_equal(&h, &want_h, sizeof(h));
	assert_int_equal(bl_ring_take(&q), 1514u << 16 | 65535);
	want.head++;
	want.bytes = 14;
	want.wire = 84;
	want.taken = 1;
	want.taken_bytes = 1514;
	assert_memory_equal(&q, &want, sizeof(q));
	assert_int_equal(bl_ring_take(&q), 14u << 16 | 7);
	assert_int_equal(bl_ring_len(&q), 0);
	assert_int_equal(bl_ring_take(&q), 0);
	assert_int_equal(q.bytes, 0);
	assert_int_equal(q.wire, 0);
	assert_int_equal(q.taken, 2);
	assert_int_equal(q.head, q.tail);
}

static void bl_ring_put__limits(void **state)
{
	static const struct {
		uint32_t limit_frames, limit_bytes, there, len;
		int rc;
	} t[] = {
		/* The ring holds frames of 100 bytes. */
		{ 0, UINT32_MAX, 0, 60, -1 },
		{ 1, UINT32_MAX, 0, 60, 0 },
		{ 1, UINT32_MAX, 1, 60, -1 },
		{ 8, UINT32_MAX, 7, 60, 0 },
		{ 8, UINT32_MAX, 8, 60, -1 },
		{ BL_RING, UINT32_MAX, BL_RING - 1, 60, 0 },
		{ BL_RING, UINT32_MAX, BL_RING, 60, -1 },
		{ BL_RING + 1, UINT32_MAX, BL_RING - 1, 60, 0 },
		/* a limit that the ring cannot hold */
		{ BL_RING + 1, UINT32_MAX, BL_RING, 60, -1 },
		{ UINT32_MAX, UINT32_MAX, BL_RING, 60, -1 },
		{ 100, 1000, 9, 99, 0 },
		{ 100, 1000, 9, 100, 0 },
		{ 100, 1000, 9, 101, -1 },
		{ 100, 0, 0, 14, -1 },
		{ 100, 1522, 0, 1522, 0 },
	};
	static struct bl_queue q, before;
	static struct bl_hist h, no_h;
	size_t i;
	uint32_t n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		memset(&q, 0, sizeof(q));
		q.limit_frames = UINT32_MAX;
		q.limit_bytes = UINT32_MAX;
		q.head = q.tail = (uint32_t)i * 0x10000000u;
		for (n = 0; n < t[i].there; n++)
			assert_int_equal(bl_ring_put(&q, &h, BL_RING_ENTRY(n, 100), 0), 0);
		q.limit_frames = t[i].limit_frames;
		q.limit_bytes = t[i].limit_bytes;
		memset(&h, 0, sizeof(h));
		before = q;
		assert_int_equal(bl_ring_put(&q, &h, BL_RING_ENTRY(3, t[i].len), 1), t[i].rc);
		if (t[i].rc) {
			before.dropped++;
			assert_memory_equal(&q, &before, sizeof(q));
			assert_memory_equal(&h, &no_h, sizeof(h));
		}
		assert_int_equal(bl_ring_len(&q), t[i].there + !t[i].rc);
	}
	/* The bytes are near the end of their 32 bits: a sum that wraps must not count as small. */
	memset(&q, 0, sizeof(q));
	q.limit_frames = BL_RING;
	q.limit_bytes = UINT32_MAX;
	q.bytes = UINT32_MAX - 100;
	assert_int_equal(bl_ring_put(&q, &h, BL_RING_ENTRY(1, 101), 0), -1);
	assert_int_equal(bl_ring_put(&q, &h, BL_RING_ENTRY(1, 100), 0), 0);
}

/*
 * Queues and a set of free slots against a list of each: order, bytes, and no slot lost or doubled
 * in any sequence of operations.
 */
static void bl_ring__slots_balance(void **state)
{
	enum { QUEUES = 5, SLOTS = 900 };
	static struct bl_queue q[QUEUES];
	static struct bl_hist h[QUEUES];
	static uint32_t model[QUEUES][BL_RING], free_slot[SLOTS];
	static bool seen[SLOTS];
	uint32_t n[QUEUES] = { 0 }, bytes[QUEUES] = { 0 }, frees = SLOTS, i, k;
	struct rnd r = rnd_seeded("slots");
	uint64_t put = 0, dropped = 0, sum;
	int step;

	(void)state;
	memset(q, 0, sizeof(q));
	for (i = 0; i < SLOTS; i++)
		free_slot[i] = i;
	for (k = 0; k < QUEUES; k++) {
		q[k].limit_frames = k ? 100 * k + 50 : BL_RING;
		q[k].limit_bytes = k & 1 ? 100000 : UINT32_MAX;
		q[k].head = q[k].tail = (uint32_t)rnd64(&r);
	}
	for (step = 0; step < 1000000; step++) {
		/* Long phases in which more frames enter than leave alternate with the opposite. */
		bool in = rnd_below(&r, 10) < (step >> 14 & 1 ? 3u : 7u);
		uint32_t total = 0, e, len = 14 + rnd_below(&r, 1509);

		k = rnd_below(&r, QUEUES);
		if (in && frees) {
			uint32_t slot = free_slot[--frees];

			e = BL_RING_ENTRY(slot, len);
			if (bl_ring_put(&q[k], &h[k], e, 0)) {
				assert_true(n[k] == (q[k].limit_frames < BL_RING ? q[k].limit_frames
										 : BL_RING) ||
					    bytes[k] + len > q[k].limit_bytes);
				free_slot[frees++] = slot;
				dropped++;
			} else {
				model[k][n[k]++] = e;
				bytes[k] += len;
				put++;
			}
		} else if (!in) {
			e = bl_ring_take(&q[k]);
			assert_int_equal(e, n[k] ? model[k][0] : 0);
			if (e) {
				memmove(model[k], model[k] + 1, --n[k] * sizeof(e));
				bytes[k] -= BL_RING_LEN(e);
				free_slot[frees++] = BL_RING_SLOT(e);
			}
		}
		for (i = 0; i < QUEUES; i++)
			total += bl_ring_len(&q[i]);
		assert_int_equal(total + frees, SLOTS);
		assert_int_equal(q[k].bytes, bytes[k]);
		assert_int_equal(bl_ring_len(&q[k]), n[k]);
	}
	for (sum = 0, k = 0; k < QUEUES; k++)
		sum += q[k].dropped;
	assert_int_equal(sum, dropped);
	assert_true(dropped > 1000 && put > 100000);
	for (k = 0, sum = 0; k < QUEUES; k++) {
		uint32_t e;

		for (i = 0; i < BL_HIST_BINS; i++)
			sum += h[k].n[i];
		while ((e = bl_ring_take(&q[k])))
			free_slot[frees++] = BL_RING_SLOT(e);
		assert_int_equal(q[k].put, q[k].taken);
		assert_int_equal(q[k].put_bytes, q[k].taken_bytes);
	}
	assert_int_equal(sum, put);
	assert_int_equal(frees, SLOTS);
	for (i = 0; i < SLOTS; i++) {
		assert_false(seen[free_slot[i]]);
		seen[free_slot[i]] = true;
	}
}

static void bl_wants_mark__edges(void **state)
{
	struct bl_queue q = { .bytes = 1000 };

	(void)state;
	assert_int_equal(bl_wants_mark(&q), 0); /* 0: never */
	q.mark_bytes = 999;
	assert_int_equal(bl_wants_mark(&q), 1);
	q.mark_bytes = 1000;
	assert_int_equal(bl_wants_mark(&q), 0);
	q.mark_bytes = 1001;
	assert_int_equal(bl_wants_mark(&q), 0);
}

/* ---- ECN ---- */

static uint16_t full_sum(const void *p)
{
	const uint8_t *b = p;
	uint32_t acc = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		acc += i == 10 ? 0 : (uint32_t)(b[i] | b[i + 1] << 8);
	acc = (acc & 0xffff) + (acc >> 16);
	acc = (acc & 0xffff) + (acc >> 16);
	return (uint16_t)~acc;
}

/*
 * All 256 values of the field, with addresses that give many different checksums; compared with the
 * sum over the whole header.
 */
static void bl_ecn_ce4__all_values(void **state)
{
	struct rnd r = rnd_seeded("ecn");
	uint32_t i;

	(void)state;
	for (i = 0; i < 256 * 64; i++) {
		struct iphdr ip = { .version = 4,
				    .ihl = 5,
				    .tos = (uint8_t)i,
				    .tot_len = (uint16_t)rnd64(&r),
				    .id = (uint16_t)rnd64(&r),
				    .ttl = 64,
				    .protocol = 6,
				    .saddr = (uint32_t)rnd64(&r),
				    .daddr = (uint32_t)rnd64(&r) },
			     want;
		int ect = (i & 3) == 1 || (i & 3) == 2;

		ip.check = full_sum(&ip);
		want = ip;
		if (ect) {
			want.tos |= 3;
			want.check = full_sum(&want);
		}
		assert_int_equal(bl_ecn_ce4(&ip), ect);
		assert_memory_equal(&ip, &want, sizeof(ip));
	}
}

static void bl_ecn_ce6__all_values(void **state)
{
	uint32_t tc;

	(void)state;
	for (tc = 0; tc < 256; tc++) {
		uint8_t b[40], want[40];
		int ect = (tc & 3) == 1 || (tc & 3) == 2;
		uint32_t t = ect ? tc | 3 : tc;
		struct ipv6hdr ip;

		memset(b, 0xc3, sizeof(b));
		b[0] = (uint8_t)(0x60 | tc >> 4);
		b[1] = (uint8_t)(tc << 4 | 0x5);
		memcpy(want, b, sizeof(b));
		want[0] = (uint8_t)(0x60 | t >> 4);
		want[1] = (uint8_t)(t << 4 | 0x5);
		memcpy(&ip, b, sizeof(ip));
		assert_int_equal(bl_ecn_ce6(&ip), ect);
		assert_memory_equal(&ip, want, sizeof(ip));
	}
}

/* ---- rates ---- */

#define GBIT1 (8u << 20)

static void bl_wire_ns__table(void **state)
{
	static const struct {
		struct bl_meter m;
		uint32_t len;
		uint64_t ns;
	} t[] = {
		{ { 0, 0 }, 1514, 0 },
		{ { GBIT1, 0 }, 1514, 12304 },
		{ { GBIT1, 0 }, 60, 672 },
		{ { GBIT1, 0 }, 61, 680 },
		{ { GBIT1, 0 }, 42, 672 }, /* The NIC pads the frame. */
		{ { GBIT1, 0 }, 0, 672 },
		{ { 838861, 0 }, 1514, 1230 }, /* 10 Gbit/s: 1230.4 */
		{ { 83886, 0 }, 1514, 123 },   /* 100 Gbit/s: 123.04 */
		{ { 1 << 19, 0 }, 61, 43 },    /* A half is rounded up. */
		{ { (1 << 19) - 1, 0 }, 61, 42 },
		/* 1.95 Mbit/s, the slowest rate: nothing wraps */
		{ { UINT32_MAX, 0 }, 1522, 6332416 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_wire_ns(&t[i].m, t[i].len), t[i].ns);
}

static void bl_free_after__table(void **state)
{
	const uint64_t full = 12304, behind = 2 * full;
	static const struct bl_meter m = { GBIT1, 0 }, none = { 0, 0 };
	const struct {
		const struct bl_meter *m;
		uint64_t free, came, now, due, after;
	} t[] = {
		/* the example of the header */
		{ &m, 90000, 100000, 100000, 100000, 100000 + full },
		{ &m, 100000, 90000, 100000, 100000, 100000 + full },
		/* late, within the time that may be caught up */
		{ &m, 90000, 100000, 100000 + behind, 100000, 100000 + full },
		{ &m, 90000, 100000, 100001 + behind, 100000, 100001 + full },
		{ &m, 90000, 100000, 200000, 100000, 200000 - behind + full },
		{ &m, 0, 5, 10, 5, 5 + full }, /* less time since boot than may be caught up */
		{ &none, 90000, 100000, 200000, 100000, 0 },
		{ &none, 0, 100000, 200000, 100000, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		uint64_t due = bl_due_of(t[i].free, t[i].came);

		assert_int_equal(due, t[i].due);
		assert_int_equal(bl_free_after(t[i].m, due, t[i].now, 1514), t[i].after);
	}
}

/*
 * A backlogged link with a pacer that is late at random and is sometimes stalled: in no span of
 * time more bytes than the rate allows, plus what may be caught up, plus one frame. A pacer that is
 * never later than what may be caught up reaches exactly the rate.
 */
static void bl_free_after__rate_holds(void **state)
{
	enum { N = 4000 };
	static uint64_t at[N];
	const struct bl_meter m = { GBIT1, 0 };
	struct rnd r = rnd_seeded("rate");
	uint64_t free, now, start;
	int i, k, stalls;

	(void)state;
	for (stalls = 0; stalls < 2; stalls++) {
		free = now = start = 1000000;
		for (i = 0; i < N; i++) {
			uint64_t due = bl_due_of(free, start);

			if (due > now)
				now = due;
			now += rnd_below(&r, 12000);
			if (stalls && !rnd_below(&r, 100))
				now += 1000000;
			at[i] = now;
			free = bl_free_after(&m, due, now, 1514);
		}
		for (i = 0; i < N; i++)
			for (k = i; k < N && k < i + 300; k++)
				assert_true((uint64_t)(k - i + 1) * 12304 <=
					    at[k] - at[i] + 3 * 12304);
		if (!stalls)
			assert_int_equal(free, start + N * 12304ULL);
		else
			assert_true(free > start + N * 12304ULL + 20 * 1000000ULL);
	}
}

/* ---- due times ---- */

static struct bl_due due;

static void due_clear(void)
{
	int i;

	memset(&due, 0, sizeof(due));
	due.next = BL_DUE_NEVER;
	for (i = 0; i < BL_DUE_MAX; i++)
		due.at[i] = BL_DUE_NEVER;
}

static void bl_due_put__table(void **state)
{
	static const struct {
		uint64_t at0, next0, put;
		int low_rc;
		uint64_t low_at, low_next; /* bl_due_lower() */
		int put_rc;
		uint64_t put_at, put_next; /* bl_due_put() */
	} t[] = {
		{ BL_DUE_NEVER, BL_DUE_NEVER, 100, 1, 100, 100, 1, 100, 100 },
		{ BL_DUE_NEVER, 100, 100, 0, 100, 100, 0, 100, 100 },
		{ BL_DUE_NEVER, 99, 100, 0, 100, 99, 0, 100, 99 },
		{ BL_DUE_NEVER, 101, 100, 1, 100, 100, 1, 100, 100 },
		{ 99, BL_DUE_NEVER, 100, 0, 99, BL_DUE_NEVER, 0, 99, BL_DUE_NEVER },
		{ 100, 100, 100, 0, 100, 100, 0, 100, 100 },
		{ 500, 500, 100, 1, 100, 100, 0, 500, 500 },
		{ 500, 50, 100, 0, 100, 50, 0, 500, 50 },
		{ BL_DUE_NEVER, BL_DUE_NEVER, 0, 1, 0, 0, 1, 0, 0 },
	};
	static const uint32_t index[] = { 0, 1, BL_DUE_MAX - 1 };
	struct bl_due want;
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		for (k = 0; k < ARRAY_SIZE(index); k++) {
			due_clear();
			due.at[index[k]] = t[i].at0;
			due.next = t[i].next0;
			want = due;
			want.at[index[k]] = t[i].low_at;
			want.next = t[i].low_next;
			assert_int_equal(bl_due_lower(&due, index[k], t[i].put), t[i].low_rc);
			assert_memory_equal(&due, &want, sizeof(due));
			due_clear();
			due.at[index[k]] = t[i].at0;
			due.next = t[i].next0;
			want.at[index[k]] = t[i].put_at;
			want.next = t[i].put_next;
			assert_int_equal(bl_due_put(&due, index[k], t[i].put), t[i].put_rc);
			assert_memory_equal(&due, &want, sizeof(due));
		}
	}
}

static void bl_lower__expectation_may_be_wrong(void **state)
{
	static const struct {
		uint64_t is, expect, at;
		int rc;
		uint64_t then;
	} t[] = { { 50, BL_DUE_NEVER, 40, 1, 40 },
		  { 50, BL_DUE_NEVER, 50, 0, 50 },
		  { 50, BL_DUE_NEVER, 60, 0, 50 },
		  { 50, 60, 49, 1, 49 },
		  { 50, 50, 49, 1, 49 } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		uint64_t v = t[i].is;

		assert_int_equal(bl_time_lower((void *)&v, t[i].expect, t[i].at), t[i].rc);
		assert_int_equal(v, t[i].then);
	}
}

static void pick_due(uint32_t n, struct bl_due_pick *p)
{
	uint32_t i;

	bl_due_begin(&due, p);
	for (i = 0; i < n; i++)
		bl_due_consider(p, i);
}

static void bl_due_consider__least_and_second(void **state)
{
	static const struct {
		uint64_t at[4];
		uint32_t n, index;
		uint64_t least, second;
	} t[] = {
		{ { ~0ULL, ~0ULL, ~0ULL, ~0ULL }, 4, 0, ~0ULL, ~0ULL },
		{ { 5, ~0ULL, ~0ULL, ~0ULL }, 4, 0, 5, ~0ULL },
		{ { ~0ULL, ~0ULL, ~0ULL, 5 }, 4, 3, 5, ~0ULL },
		{ { ~0ULL, ~0ULL, ~0ULL, 5 }, 3, 0, ~0ULL, ~0ULL }, /* beyond the queues in use */
		{ { 1, 2, 3, 4 }, 4, 0, 1, 2 },
		{ { 4, 3, 2, 1 }, 4, 3, 1, 2 },
		{ { 3, 1, 2, 4 }, 4, 1, 1, 2 },
		{ { 2, 1, 4, 3 }, 4, 1, 1, 2 },
		{ { 7, 7, 7, 7 }, 4, 0, 7, 7 },
		{ { 0, 9, 0, 9 }, 4, 0, 0, 0 },
	};
	struct bl_due_pick p;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		due_clear();
		memcpy(due.at, t[i].at, sizeof(t[i].at));
		due.next = 1;
		pick_due(t[i].n, &p);
		assert_int_equal(due.next, BL_DUE_NEVER);
		assert_int_equal(p.least, t[i].least);
		assert_int_equal(p.second, t[i].second);
		assert_int_equal(p.index, t[i].index);
	}
}

static void bl_due_end__table(void **state)
{
	/*
	 * Queue 1 was due at 10, and queue 2 is due at @second. Another CPU puts a frame into queue
	 * 1 at @put during the turn.
	 */
	static const struct {
		uint64_t second, put, again, free, at1, next;
	} t[] = {
		{ ~0ULL, ~0ULL, ~0ULL, 0, ~0ULL, ~0ULL },
		{ ~0ULL, ~0ULL, ~0ULL, 500, ~0ULL, ~0ULL },
		{ ~0ULL, ~0ULL, 70, 0, 70, 70 },
		{ ~0ULL, ~0ULL, 70, 69, 70, 70 },
		{ ~0ULL, ~0ULL, 70, 71, 70, 71 },
		{ 30, ~0ULL, 70, 0, 70, 30 },
		{ 30, ~0ULL, 70, 50, 70, 50 },
		{ 30, ~0ULL, ~0ULL, 0, ~0ULL, 30 },
		{ ~0ULL, 20, ~0ULL, 0, 20, 20 },
		{ ~0ULL, 20, 70, 0, 20, 20 },
		{ ~0ULL, 20, 15, 0, 15, 15 },
		{ 5, 20, 15, 0, 15, 5 },
	};
	struct bl_due_pick p;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		due_clear();
		due.at[1] = 10;
		due.at[2] = t[i].second == 5 ? 11 : t[i].second;
		pick_due(3, &p);
		if (t[i].second == 5)
			p.second = 5;
		assert_int_equal(p.index, 1);
		bl_due_take(&due, 1);
		assert_int_equal(due.at[1], BL_DUE_NEVER);
		if (t[i].put != ~0ULL)
			bl_due_put(&due, 1, t[i].put);
		bl_due_end(&due, &p, t[i].again, t[i].free);
		assert_int_equal(due.at[1], t[i].at1);
		assert_int_equal(due.next, t[i].next);
	}
}

/*
 * Two threads put into eight queues, which are counters here, and one pacer empties them in the way
 * of the programs. If a queue were forgotten, it would end with frames in it and nothing due.
 */
#define QUEUES 8
#define FRAMES 150000
static uint32_t held_frames[QUEUES];
static int producers;

static void *produce_frames(void *arg)
{
	struct rnd r = { (uintptr_t)arg };
	int i;

	for (i = 0; i < FRAMES; i++) {
		uint32_t k = rnd_below(&r, QUEUES);

		while (BL_READ_ONCE(held_frames[k]) >= 2) /* so that queues are often empty */
			sched_yield();
		/* The put needs no barrier of its own. */
		__atomic_fetch_add(&held_frames[k], 1, __ATOMIC_RELAXED);
		bl_due_put(&due, k, rnd_below(&r, 1000));
		if (!(i & 63))
			bl_due_lower(&due, rnd_below(&r, QUEUES), rnd_below(&r, 1000));
	}
	__atomic_fetch_sub(&producers, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void bl_due__nothing_is_forgotten(void **state)
{
	struct rnd r = rnd_seeded("forgotten");
	uint64_t taken = 0;
	pthread_t t[2];
	uint32_t k;
	int i;

	(void)state;
	due_clear();
	producers = 2;
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, produce_frames,
						(void *)(uintptr_t)(rnd64(&r) | 1)),
				 0);
	for (;;) {
		int over = !__atomic_load_n(&producers, __ATOMIC_SEQ_CST);
		struct bl_due_pick p;

		if (BL_READ_ONCE(due.next) == BL_DUE_NEVER) {
			if (over)
				break;
			sched_yield();
			continue;
		}
		pick_due(QUEUES, &p);
		if (p.least == BL_DUE_NEVER)
			continue;
		bl_due_take(&due, p.index);
		if (BL_READ_ONCE(held_frames[p.index])) {
			__atomic_fetch_sub(&held_frames[p.index], 1, __ATOMIC_RELAXED);
			taken++;
		}
		bl_due_end(&due, &p,
			   BL_READ_ONCE(held_frames[p.index]) ? rnd_below(&r, 1000) : BL_DUE_NEVER,
			   0);
	}
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	for (k = 0; k < QUEUES; k++) {
		assert_int_equal(held_frames[k], 0);
		assert_int_equal(due.at[k], BL_DUE_NEVER);
	}
	assert_int_equal(taken, 2 * FRAMES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_hist_bin__table),
		cmocka_unit_test(bl_hist_add__one_bin),
		cmocka_unit_test(bl_ring_put__whole_result),
		cmocka_unit_test(bl_ring_put__limits),
		cmocka_unit_test(bl_ring__slots_balance),
		cmocka_unit_test(bl_wants_mark__edges),
		cmocka_unit_test(bl_ecn_ce4__all_values),
		cmocka_unit_test(bl_ecn_ce6__all_values),
		cmocka_unit_test(bl_wire_ns__table),
		cmocka_unit_test(bl_free_after__table),
		cmocka_unit_test(bl_free_after__rate_holds),
		cmocka_unit_test(bl_due_put__table),
		cmocka_unit_test(bl_lower__expectation_may_be_wrong),
		cmocka_unit_test(bl_due_consider__least_and_second),
		cmocka_unit_test(bl_due_end__table),
		cmocka_unit_test(bl_due__nothing_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
