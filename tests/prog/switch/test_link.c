// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a switch makes of the link bodies of beacons, what it counts, and what its own beacons say.
 * The arithmetic is in tests/unit/core/order/test_link_core.c and test_skew_core.c.
 */
#include "core/order/link_core.h"
#include "tests/prog/switch/live_util.h"
#include "tests/prog/pace_util.h"

#define RUN_OF_HOST 0x4242

/* Runs one frame that arrives on @port; what becomes of it does not matter. */
static void arrive(__u32 port, const struct desc *d)
{
	struct frame in, out;

	build(&in, d);
	run_xdp(sk->progs.bl_switch_xdp, net.ifindex[port], &in, &out);
}

static __u64 frames_of(__u32 port, __u32 lane)
{
	struct bl_port_regs r;

	map_get(sk->maps.sw_regs, port, &r);
	return r.lane[lane].frames;
}

static struct bl_carried_lane carried_of(__u32 port)
{
	struct bl_carried c;

	map_get(sk->maps.sw_carried, port, &c);
	return c.lane[0];
}

/* A beacon of host @h that says @frames, sent at @at. */
static struct desc saying(__u32 h, __u32 frames, __u64 at)
{
	struct desc d = beacon_frame(h, T0 - 1000);

	say(&d, RUN_OF_HOST, frames, at, 700);
	return d;
}

/* Every frame that the neighbour counts is counted, whatever becomes of it, and no other. */
static void count__what_arrives(void **state)
{
	static const struct {
		const char *what;
		struct desc d;
		__u8 op, hop;
		__u64 ahead; /* ns added to B */
		__u8 to;
		bool counted;
	} t[] = {
		{ .what = "data", .op = BL_OP_DATA, .to = 1, .counted = true },
		{ .what = "credit", .op = BL_OP_CREDIT, .to = 1, .counted = true },
		{ .what = "frag", .op = BL_OP_FRAG, .to = 3, .counted = true },
		{ .what = "prep", .op = BL_OP_PREP, .to = 3, .counted = true },
		{ .what = "recall", .op = BL_OP_RECALL, .to = 3, .counted = true },
		{ .what = "ack", .op = BL_OP_ACK, .to = 3 },
		{ .what = "recalled", .op = BL_OP_RECALLED, .to = 3 },
		{ .what = "no route", .op = BL_OP_DATA, .to = 99, .counted = true },
		{ .what = "back", .op = BL_OP_DATA, .to = 0, .counted = true },
		{ .what = "ahead", .op = BL_OP_DATA, .to = 1, .ahead = 1 << 30, .counted = true },
		{ .what = "past a switch", .op = BL_OP_DATA, .hop = BL_HOP_TOP, .to = 1 },
	};
	__u64 before_it;
	size_t i;

	(void)state;
	all_live(T0 - 2000);
	for (i = 0; i < 2 * sizeof(t) / sizeof(*t); i++) {
		size_t k = i / 2;
		struct desc d = i & 1 ? data_frame6(0, t[k].to, T0 - 900, T0 - 1000 + t[k].ahead)
				      : data_frame(0, t[k].to, T0 - 900, T0 - 1000 + t[k].ahead);

		doing = t[k].what;
		d.op = t[k].op;
		d.tags = i & 1;
		if (t[k].hop)
			d.flag_byte = t[k].hop | BL_F_LANES(1);
		before_it = frames_of(0, 0);
		arrive(0, &d);
		assert_int_equal(frames_of(0, 0) - before_it, t[k].counted);
	}
	before_it = frames_of(0, 0);
	feed(0, T0 - 1000);
	assert_int_equal(frames_of(0, 0), before_it); /* beacons are not counted */
	counts_take(sk->maps.counts, counted);
}

/* The count of what leaves: each output and lane its own, and answers are not counted. */
static void count__what_leaves(void **state)
{
	struct desc d = data_frame(0, 3, T0 - 900, T0 - 1000);

	(void)state;
	all_live(T0 - 2000);
	arrive(0, &d);
	arrive(1, &d);
	assert_int_equal(carried_of(3).frames, 2);
	assert_int_equal(carried_of(1).frames, 0);
	d.op = BL_OP_ACK;
	arrive(0, &d);
	assert_int_equal(carried_of(3).frames, 2);
	d.op = BL_OP_DATA;
	d.body = MTU; /* refused */
	arrive(0, &d);
	assert_int_equal(carried_of(3).frames, 2);
	counts_take(sk->maps.counts, counted);
}

/* The first data behind a relay keeps the number before it. */
static void count__at_each_relay(void **state)
{
	struct desc d = data_frame(0, 3, T0 - 900, T0 - 1000);
	struct bl_carried_lane c;

	(void)state;
	feed(0, T0 - 3000); /* relayed, the first one */
	arrive(0, &d);
	arrive(0, &d);
	c = carried_of(3);
	assert_int_equal(c.frames, 2);
	assert_int_equal(c.before, 0);
	assert_int_equal(c.relay, 1);
	clock_at(sk->maps.clock, T0 + BEACON_NS);
	feed(0, T0 + BEACON_NS); /* another tick */
	arrive(0, &d);
	c = carried_of(3);
	assert_int_equal(c.frames, 3);
	assert_int_equal(c.before, 2);
	assert_int_equal(c.relay, 2);
	counts_take(sk->maps.counts, counted);
}

/* All that a link body changes. */
static void seen__first(void **state)
{
	struct desc d = saying(0, 1000, T0 - 1234);
	struct bl_link want = { .node = 0x1000,
				.run = 0x700,
				.least_ns = { 1234, BL_DELAY_NONE },
				.bucket_ns = T0,
				.heard_ns = T0,
				.echo_ns = -77,
				.bound_ns = 700,
				.theirs = 5 },
		       got;

	(void)state;
	d.link.echo = BL_BE32((__u32)-77);
	d.link.racing = BL_BE16(3);
	d.link.overtaken = BL_BE32(5);
	arrive(0, &d);
	want.lane[0] = (struct bl_link_lane){ .heard_ns = T0,
					      .changed_ns = T0,
					      .ahead = 1000,
					      .run = RUN_OF_HOST,
					      .racing = 3,
					      .node = 0x1000 };
	got = link_at(sk->maps.link_seen, 0);
	assert_memory_equal(&got, &want, sizeof(got));
	/* a sender that does not count says when it sent, and no more */
	d = saying(0, 2000, T0 - 1200);
	d.link.run = 0;
	arrive(0, &d);
	want.least_ns[0] = 1200;
	want.echo_ns = BL_ECHO_NONE;
	want.theirs = 0;
	got = link_at(sk->maps.link_seen, 0);
	assert_memory_equal(&got, &want, sizeof(got));
	/* the neighbour is another machine: its delays are not compared */
	d = saying(UPLINK, 5, T0 - 50);
	arrive(UPLINK, &d);
	d = saying(UPLINK, 5, T0 - 5000);
	d.node = 0x2000;
	arrive(UPLINK, &d);
	got = link_at(sk->maps.link_seen, UPLINK);
	assert_int_equal(got.node, 0x2000);
	assert_int_equal(got.least_ns[0], 5000);
	assert_int_equal(got.lane[0].node, 0x2000);
	counts_take(sk->maps.counts, counted);
}

/* Frames that come after a beacon that had counted them, on a lane of the neighbour. */
static void seen__overtaken(void **state)
{
	struct desc d = data_frame(0, 1, T0 - 900, T0 - 1000), be = saying(0, 10, T0);
	struct bl_link l;
	int i;

	(void)state;
	all_live(T0 - 2000);
	d.lane = be.lane = 1;
	d.lanes = be.lanes = 2;
	arrive(0, &be);
	be.link.frames = BL_BE32(13);
	arrive(0, &be);
	l = link_at(sk->maps.link_seen, 0);
	assert_int_equal(l.lane[1].apart, 3);
	assert_int_equal(l.lane[1].overtaken, 0);
	for (i = 0; i < 2; i++)
		arrive(0, &d);
	arrive(0, &be);
	l = link_at(sk->maps.link_seen, 0);
	assert_int_equal(l.lane[1].received, 2);
	assert_int_equal(l.lane[1].apart, 1);
	assert_int_equal(l.lane[1].overtaken, 2);
	assert_int_equal(l.lane[1].worst, 2);
	assert_int_equal(l.overtaken, 2);
	assert_int_equal(l.lane[0].run, 0); /* nothing came on the other lane */
	counts_take(sk->maps.counts, counted);
}

/* What is no link body of this version changes nothing. */
static void seen__not_a_body(void **state)
{
	struct bl_link was, got;
	struct desc d;
	int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		d = saying(0, 10, T0);
		d.link.magic ^= i == 0 ? BL_BE32(1) : i == 1 ? BL_BE32(0x80000000) : 0;
		d.link.version = i == 2 ? 2 : i == 3 ? 0 : 1;
		was = link_at(sk->maps.link_seen, 0);
		arrive(0, &d);
		got = link_at(sk->maps.link_seen, 0);
		assert_memory_equal(&got, &was, sizeof(got));
	}
	/* nor does one in a beacon that is refused */
	for (i = 0; i < 2; i++) {
		d = saying(0, 10, T0);
		if (!i)
			d.node = NODE_ID;
		else
			d.tai++;
		was = link_at(sk->maps.link_seen, 0);
		arrive(0, &d);
		got = link_at(sk->maps.link_seen, 0);
		assert_memory_equal(&got, &was, sizeof(got));
	}
	counts_take(sk->maps.counts, counted);
}

/* While the clock is void, beacons are refused, and still say how far it is off. */
static void seen__clock_void(void **state)
{
	struct desc d = saying(0, 10, T0 - 50);
	struct bl_link l;

	(void)state;
	arrive(0, &d);
	clock_void(sk->maps.clock);
	d = saying(0, 20, T0 - 40000);
	arrive(0, &d);
	assert_int_equal(link_at(sk->maps.link_seen, 0).least_ns[0], 50);
	d = saying(0, 20, T0 + 940);
	d.link.echo = BL_BE32(960);
	counts_take(sk->maps.counts, counted);
	arrive(0, &d);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_CLOCK_VOID }));
	l = link_at(sk->maps.link_seen, 0);
	assert_int_equal(l.least_ns[0], -940);
	assert_int_equal(l.echo_ns, 960);
	assert_int_equal(l.lane[0].apart, 0); /* frames are not compared */
	clock_at(sk->maps.clock, T0);
}

/* A clock that is ahead makes beacons be refused, and is seen all the same. */
static void seen__clock_ahead(void **state)
{
	struct desc d = saying(0, 10, T0 + 2 * BOUND);
	struct bl_link l;

	(void)state;
	d.b = T0 + 2 * BOUND;
	counts_take(sk->maps.counts, counted);
	arrive(0, &d);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_BARRIER_AHEAD }));
	l = link_at(sk->maps.link_seen, 0);
	assert_int_equal(l.node, 0x1000);
	assert_int_equal(l.least_ns[0], -(__s64)(2 * BOUND));
	assert_int_equal(l.lane[0].run, 0);
	assert_int_equal(l.lane[0].node, 0);
}

/* A clone says what went before its relay, to the frame, or nothing. */
static void says__frames(void **state)
{
	const struct bl_carried c = { .lane[0] = { .frames = 43, .before = 40, .relay = 7 } };
	const struct bl_sw_lane lane = { .now_ns = T0 };
	static const struct {
		__u32 relay, frames;
		bool counted;
	} t[] = {
		{ 7, 40, true },  /* three frames are queued behind it */
		{ 8, 43, true },  /* nothing has been sent since */
		{ 6, 40, false }, /* what was sent between relays 6 and 7 is not known any more */
		{ 0x7fffffff, 43, true }, { 0x80000008, 40, false },
	};
	struct frame got;
	struct bl_link_body *b = (void *)(got.p + 14 + 48);
	size_t i;

	(void)state;
	map_put(sk->maps.sw_lanes, 0, &lane);
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct desc d = relayed(beacon_frame(0, 1), 0, T0);
		struct frame in;

		map_put(sk->maps.sw_carried, 1, &c);
		d.ts = relay_mark(t[i].relay, T0);
		build(&in, &d);
		send_through(to_port, 0, &in);
		receive_frame(1, &got, 5000);
		assert_int_equal(got.n, BL_BEACON_LEN);
		assert_int_equal(b->magic, BL_BE32(BL_LINK_MAGIC));
		assert_int_equal(BL_BE16(b->run), t[i].counted ? 0x701 : 0);
		if (t[i].counted)
			assert_int_equal(BL_BE32(b->frames), t[i].frames);
		assert_int_equal(bl_get48(got.p + 14), 0); /* the number of the relay is gone */
	}
	expect_no_arrival();
	counts_take(sk->maps.counts, counted);
}

/* A clone goes behind all data in the queue of a metered port. */
static void says__frames_metered(void **state)
{
	const struct bl_carried c = { .lane[0] = { .frames = 43, .before = 40, .relay = 7 } };
	struct desc d = relayed(beacon_frame(0, 1), 0, T0);
	struct bpf_devmap_val v = { .ifindex = net.ifindex[1] };
	const struct bl_sw_lane lane = { .now_ns = T0 };
	struct frame in, out;
	struct bl_link_body *b = (void *)(out.p + 14 + 48);
	__u64 none = 0;

	(void)state;
	map_put(sk->maps.sw_lanes, 0, &lane);
	pace_setup(sk->maps.port_due, 10, BL_PORT_QUEUE(NPORTS, 0));
	map_put(sk->maps.port_busy, 1, &none);
	map_put(sk->maps.port_tx, 1, &v);
	ports[1].metered = 1;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	map_put(sk->maps.sw_carried, 1, &c);
	d.ts = relay_mark(6, T0);
	build(&in, &d);
	send_through(to_port, 0, &in);
	assert_int_equal(turn(sk->progs.bl_port_pace, &out), XDP_REDIRECT);
	assert_int_equal(BL_BE16(b->run), 0x701);
	assert_int_equal(BL_BE32(b->frames), 43);
	counts_take(sk->maps.counts, counted);
}

/* What the neighbour needs to know of its own frames and clock. */
static void says__the_rest(void **state)
{
	struct desc d = relayed(beacon_frame(0, 1), 0, T0);
	struct bl_sw_lane lane = { .now_ns = T0 + 5, .limit_ns = 0 };
	struct bl_link l = {
		.run = 9, .least_ns = { -300, 200 }, .bucket_ns = T0 - 1000, .overtaken = 0xfffffffe
	};
	struct frame in, got;
	struct bl_link_body *b = (void *)(got.p + 14 + 48);

	(void)state;
	map_put(sk->maps.sw_lanes, 0, &lane);
	map_put(sk->maps.link_seen, 1, &l);
	build(&in, &d);
	send_through(to_port, 0, &in);
	receive_frame(1, &got, 5000);
	assert_int_equal(BL_BE16(b->run), 9);
	assert_int_equal(b->racing, 0);
	assert_int_equal((__s32)BL_BE32(b->echo), -300);
	assert_int_equal(bl_get48(b->sent), (T0 + 5) & BL_TS_MASK);
	assert_int_equal(b->version, 1);
	assert_int_equal(BL_BE32(b->bound), SAID);
	assert_int_equal(BL_BE32(b->overtaken), 0xfffffffe);
	/* too old to be true any more */
	l.bucket_ns = T0 + 5 - 4000000000ULL;
	map_put(sk->maps.link_seen, 1, &l);
	d.relay[1].b = T0 + 1;
	lane.now_ns += TICK;
	d.ts = relay_mark(6, lane.now_ns);
	build(&in, &d);
	map_put(sk->maps.sw_lanes, 0, &lane);
	send_through(to_port, 0, &in);
	receive_frame(1, &got, 5000);
	assert_int_equal((__s32)BL_BE32(b->echo), BL_ECHO_NONE);
	counts_take(sk->maps.counts, counted);
}

/* A beacon carries a body once in so many ticks, and again if that body said no number. */
static void says__not_each_time(void **state)
{
	static const struct {
		__u32 after, relay; /* ns after the tick of T0 has begun */
		bool body, counted;
	} t[] = {
		{ 0, 6, true, false },   { 1, 7, true, true },
		{ 2, 7, false, false },  { TICK - 1, 7, false, false },
		{ TICK, 7, true, true }, { TICK + 1, 7, false, false },
		{ 0, 7, true, true }, /* the clock was set back */
	};
	const struct bl_carried c = { .lane[0] = { .frames = 43, .before = 40, .relay = 7 } };
	struct bl_sw_lane lane = { .now_ns = 0 };
	struct frame in, got;
	struct bl_link_body *b = (void *)(got.p + 14 + 48);
	size_t i;

	(void)state;
	map_put(sk->maps.sw_carried, 1, &c);
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct desc d = relayed(beacon_frame(0, 1), 0, T0 + i);

		lane.now_ns = (T0 & ~(TICK - 1)) + t[i].after;
		d.ts = relay_mark(t[i].relay, lane.now_ns);
		map_put(sk->maps.sw_lanes, 0, &lane);
		build(&in, &d);
		send_through(to_port, 0, &in);
		receive_frame(1, &got, 5000);
		assert_int_equal(got.n, BL_BEACON_LEN);
		assert_int_equal(b->magic, t[i].body ? BL_BE32(BL_LINK_MAGIC) : 0);
		if (t[i].body)
			assert_int_equal(BL_BE16(b->run), t[i].counted ? 0x701 : 0);
	}
	expect_no_arrival();
	counts_take(sk->maps.counts, counted);
}

/*
 * Data and a beacon through the whole switch: the numbers that leave are right for the frames that
 * leave.
 */
static void says__whole_way(void **state)
{
	struct desc d = data_frame(0, 3, T0 - 900, T0 - 1000), be = beacon_frame(0, T0 - 900);
	struct frame in, got;
	struct bl_link_body *b = (void *)(got.p + 14 + 48);
	int i;

	(void)state;
	build(&in, &d);
	for (i = 0; i < 3; i++) {
		send_through(bpf_program__fd(sk->progs.bl_switch_xdp), 0, &in);
		receive_frame(3, &got, 5000);
	}
	build(&in, &be);
	send_through(bpf_program__fd(sk->progs.bl_switch_xdp), 0, &in);
	for (i = 0; i < NPORTS; i++) {
		receive_frame((__u32)i, &got, 5000);
		assert_int_equal(got.n, BL_BEACON_LEN);
		assert_int_equal(BL_BE16(b->run), 0x700 + i);
		assert_int_equal(BL_BE32(b->frames), i == 3 ? 3 : 0);
	}
	expect_no_arrival();
	counts_take(sk->maps.counts, counted);
}

#define CASE(f) cmocka_unit_test_setup(f, switch_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(count__what_arrives),  CASE(count__what_leaves), CASE(count__at_each_relay),
		CASE(seen__first),          CASE(seen__overtaken),    CASE(seen__not_a_body),
		CASE(seen__clock_void),     CASE(seen__clock_ahead),  CASE(says__frames),
		CASE(says__frames_metered), CASE(says__the_rest),     CASE(says__whole_way),
		CASE(says__not_each_time),
	};

	return cmocka_run_group_tests(tests, live_setup, NULL);
}
