// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/order/promise_core.h: its edges, and a host whose endpoints, beacons and frames interleave
 * in every order. The host is simulated step by step: what bpf/host/host.bpf.c and lib/tx.c do
 * between two accesses to shared memory is one step, and a random choice picks who takes the next
 * one.
 */
#include <inttypes.h>

#include "tests/unit/unit.h"

#include "core/clock_core.h"
#include "core/order/hop_core.h"
#include "core/order/promise_core.h"

#define INTERVAL 1000ULL
#define NONE     (~0ULL)

static void bl_ahead_ns__to_the_next_beacon_and_its_way(void **state)
{
	(void)state;
	assert_int_equal(bl_ahead_ns(100000), 150000);
	assert_int_equal(bl_ahead_ns(1), 1);
	assert_int_equal(bl_ahead_ns(1000000000), 1500000000);
}

static void bl_silent__edges(void **state)
{
	const uint64_t bus = 1ULL << 60, limit = BL_SILENT_TICKS * INTERVAL;
	const struct {
		uint64_t data;
		int want;
	} t[] = {
		{ 0, 1 }, /* The host has never sent a message. */
		{ bus, 0 },         { bus - limit, 0 }, { bus - limit - 1, 1 },
		{ bus + 1, 0 }, /* The time is a reading of another CPU. */
		{ bus + limit, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_host_silent(bus, t[i].data, INTERVAL), t[i].want);
}

static void bl_claim__edges(void **state)
{
	const uint64_t wrap = 5ULL << 48, t = wrap + 100, old = BL_TS_OLD;
	const struct {
		uint64_t ts, left, want;
	} v[] = {
		{ t, bl_claim_wire(t), t + 1 },
		{ t, bl_claim_wire(t) - 1, 0 },
		{ t, bl_claim_wire(t) + 1, 0 },
		{ t, bl_unpromised(t), 0 },
		{ t, 0, 0 },
		{ t, (t + 1) & BL_TS_MASK, 0 }, /* what earlier libraries left there */
		{ t, bl_claim_wire(t) ^ 1ULL << 47, 0 },
		{ wrap - 2, bl_claim_wire(wrap - 2), wrap - 1 },
		{ wrap - 1, bl_claim_wire(wrap - 1), wrap },
		{ wrap, bl_claim_wire(wrap), wrap + 1 },
		/* What it would be written as is 0, which claims nothing. */
		{ wrap + old - 1, 0, 0 },
	};
	size_t i;

	(void)state;
	assert_int_equal(bl_claim_wire(wrap + old - 1), 0);
	for (i = 0; i < ARRAY_SIZE(v); i++)
		assert_int_equal(bl_frame_claim(v[i].ts, v[i].left), v[i].want);
}

/* Whatever time it is, and a while later, what the library leaves promises nothing. */
static void bl_unpromised__is_old(void **state)
{
	const uint64_t wrap = 5ULL << 48, hour = 3600000000000ULL;
	const uint64_t ts[] = { wrap - 1,         wrap,     wrap + 1,         wrap + BL_TS_OLD - 1,
				wrap + BL_TS_OLD, wrap + 1, wrap - BL_TS_OLD, wrap + (1ULL << 47) };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ts); i++) {
		uint64_t u = bl_unpromised(ts[i]), c = bl_claim_wire(ts[i]), now = ts[i];

		assert_true(bl_hop_old(bl_ext48(u, now), bl_ext48(u, now), now));
		assert_true(bl_hop_old(bl_ext48(c, now), bl_ext48(c, now), now));
		now += hour;
		assert_true(bl_hop_old(bl_ext48(u, now), bl_ext48(c, now), now));
		assert_int_equal(bl_ext48(u, now), ts[i] - BL_TS_OLD);
	}
}

static void bl_promise__greatest(void **state)
{
	(void)state;
	assert_int_equal(bl_promise(1000, 0, 0, 0), 1000);
	assert_int_equal(bl_promise(1000, 150, 0, 0), 1150);
	assert_int_equal(bl_promise(1000, 150, 1149, 1148), 1150);
	assert_int_equal(bl_promise(1000, 150, 1151, 0), 1151);
	assert_int_equal(bl_promise(1000, 0, 1001, 1002), 1002);
}

static void bl_send_late__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_send_late(999, 1000, 1000, 0), 1);
	assert_int_equal(bl_send_late(1000, 1000, 1000, 0), 0);
	assert_int_equal(bl_send_late(1001, 1000, 1000, 0), 0);
	assert_int_equal(bl_send_late(1000, 1050, 1000, 50), 1);
	/* from before the clock was set back */
	assert_int_equal(bl_send_late(1000, 1051, 1000, 50), 0);
	assert_int_equal(bl_send_late(1000, 0, 1000, 50), 0); /* none was sent yet */
}

static void bl_sent_least__edges(void **state)
{
	const uint64_t now = 3 * BL_TS_OLD;

	(void)state;
	assert_int_equal(bl_sent_least(0, now, 50), 0);
	assert_int_equal(bl_sent_least(now + 50, now, 50), now + 50);
	assert_int_equal(bl_sent_least(now + 51, now, 50), now - BL_TS_OLD);
	assert_int_equal(bl_sent_least(1051, 1000, 50), 0);
	assert_int_equal(bl_sent_least(BL_TIME_NONE, now, 0), now - BL_TS_OLD);
}

static void bl_promise_ts__greatest(void **state)
{
	(void)state;
	assert_int_equal(bl_promise_ts(1000, 0, 0, 0), 1000);
	assert_int_equal(bl_promise_ts(1000, 1001, 0, 0), 1001);
	assert_int_equal(bl_promise_ts(1000, 999, 1002, 0), 1002);
	assert_int_equal(bl_promise_ts(1000, 999, 998, 1000), 1001);
	assert_int_equal(bl_promise_ts(1000, 999, 998, 999), 1000);
}

/* ---- a host ---- */

#define EPS 3

/* One run of the egress program. @step is the next step to take. */
struct egress {
	int step;
	uint64_t now, b, claim;
	unsigned int slot, at;
	bool beacon;
};

struct endpoint {
	int step;
	unsigned int frames;
	uint64_t noted, clock, ts, last;
	struct egress e;
};

struct host {
	struct rnd r;
	uint64_t clock, promised, data, line[EPS];
	struct endpoint ep[EPS];
	struct egress beacon;
	uint64_t sent; /* greatest barrier in the queue so far */
	uint64_t messages, ahead, claimed;
};

/* Returns true when the frame is in the queue. */
static bool egress_step(struct host *h, struct egress *e, uint64_t ts)
{
	uint64_t p;

	switch (e->step++) {
	case 0:
		e->now = h->clock;
		return false;
	case 1:
		p = h->promised;
		e->b = bl_promise(
			e->now,
			e->beacon && bl_host_silent(e->now, h->data, 1) ? bl_ahead_ns(INTERVAL) : 0,
			p, e->claim);
		if (e->b > e->now && p < e->b)
			/* The compare-and-swap is one step together with the load. */
			h->promised = e->b;
		if (e->claim)
			e->b = bl_min64(e->b, e->claim);
		if (!e->beacon)
			h->data = e->now;
		e->at = 0;
		return false;
	case 2:
		if (h->line[e->at] != NONE && !(e->claim && e->at == e->slot))
			e->b = bl_min64(e->b, h->line[e->at]);
		if (++e->at < EPS)
			e->step = 2;
		return false;
	}
	/*
	 * The frame enters the queue. Frames ahead of it there have promised at most its timestamp.
	 */
	e->step = 0;
	if (!e->beacon) {
		if (ts < h->sent)
			fail_msg("a message of %" PRIu64 " behind a promise of %" PRIu64, ts,
				 h->sent);
		h->messages++;
		h->ahead += ts > h->clock;
		h->claimed += e->b > ts;
	}
	h->sent = bl_max64(h->sent, e->b);
	return true;
}

static void endpoint_step(struct host *h, unsigned int i)
{
	struct endpoint *ep = &h->ep[i];

	switch (ep->step) {
	case 0: /* a pause, often a long one */
		if (rnd_below(&h->r, 8) == 0)
			ep->step++;
		return;
	case 1:
		ep->noted = bl_max64(h->clock, h->promised);
		ep->step++;
		return;
	case 2:
		h->line[i] = ep->noted;
		ep->step++;
		return;
	case 3:
		ep->clock = h->clock;
		ep->step++;
		return;
	case 4:
		ep->ts = ep->last = bl_promise_ts(ep->clock, h->promised, ep->noted, ep->last);
		ep->frames = 1 + (unsigned int)rnd_below(&h->r, 3);
		ep->e = (struct egress){ .slot = i };
		ep->step++;
		return;
	case 5:
		ep->e.claim = ep->frames == 1 ? bl_frame_claim(ep->ts, bl_claim_wire(ep->ts)) : 0;
		if (egress_step(h, &ep->e, ep->ts) && !--ep->frames)
			ep->step++;
		return;
	}
	h->line[i] = NONE;
	ep->step = 0;
}

static void host__no_message_behind_a_promise(void **state)
{
	struct host h = { .r = rnd_seeded("promise"),
			  .clock = 1000000,
			  .line = { NONE, NONE, NONE },
			  .beacon = { .beacon = true } };
	int i;

	(void)state;
	for (i = 0; i < 4000000; i++) {
		unsigned int who = (unsigned int)rnd_below(&h.r, EPS + 2);

		if (who < EPS)
			endpoint_step(&h, who);
		else if (who == EPS)
			egress_step(&h, &h.beacon, 0);
		else
			h.clock += rnd_below(&h.r, 64) ? rnd_below(&h.r, 3) : rnd_below(&h.r, 3000);
	}
	/* The run covered all cases. */
	assert_true(h.messages > 10000);
	assert_true(h.ahead > 1000);
	assert_true(h.claimed > 1000);
}

static void bl_ts_wait__edges(void **state)
{
	const struct {
		uint64_t clock, least, want;
	} t[] = {
		{ 1000, 0, 0 },    { 1000, 999, 0 },    { 1000, 1000, 0 },
		{ 1000, 1001, 1 }, { 1000, 1250, 250 }, { 5ULL << 48, (5ULL << 48) + 1, 1 },
		{ 0, NONE, NONE }, { NONE, 0, 0 },      { NONE, NONE, 0 },
	};
	size_t i;

	(void)state;
	assert_int_equal(bl_latest_barrier(1000, 50, 100), 1250);
	assert_int_equal(bl_latest_barrier(1000, 0, 0), 1000);
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_ts_wait(t[i].clock, t[i].least), t[i].want);
}

/*
 * A message that must not be below what any node may use when the receiver's window is opened, on
 * a host whose clock is off by up to the bound from that of any other node: it is not below, and
 * every node accepts it as soon as it has left, however slow its clock.
 */
static void bl_ts_wait__every_clock_accepts(void **state)
{
	struct rnd r = rnd_seeded("wait");
	unsigned int slowest = 0, fastest = 0;
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		uint64_t bound = rnd_below(&r, 3) ? rnd_below(&r, 4) : rnd_below(&r, 25000000),
			 own = (1ULL << 60) + rnd_below(&r, 1000000000),
			 node = own - bound + rnd_below(&r, 2 * bound + 1),
			 accepts = node + bound + bl_ahead_ns(INTERVAL),
			 least = bl_latest_barrier(own, bound, INTERVAL),
			 wait = bl_ts_wait(own, least), ts = bl_max64(own + wait, least);

		assert_true(accepts <= least);
		assert_true(ts >= least && ts <= accepts + wait);
		slowest += node == own - bound;
		fastest += node == own + bound;
	}
	assert_true(slowest > 1000 && fastest > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_ahead_ns__to_the_next_beacon_and_its_way),
		cmocka_unit_test(bl_silent__edges),
		cmocka_unit_test(bl_claim__edges),
		cmocka_unit_test(bl_unpromised__is_old),
		cmocka_unit_test(bl_promise__greatest),
		cmocka_unit_test(bl_send_late__edges),
		cmocka_unit_test(bl_sent_least__edges),
		cmocka_unit_test(bl_promise_ts__greatest),
		cmocka_unit_test(host__no_message_behind_a_promise),
		cmocka_unit_test(bl_ts_wait__edges),
		cmocka_unit_test(bl_ts_wait__every_clock_accepts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
