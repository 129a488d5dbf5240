// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a host makes of the link bodies of beacons, what it counts on its NIC, and what its own
 * beacons say. The arithmetic is in tests/unit/core/order/test_link_core.c and test_skew_core.c.
 */
#include <linux/pkt_cls.h>
#include "tests/prog/host/commit_util.h"

static void arrive(const struct desc *d)
{
	struct frame in, out;

	build(&in, d);
	run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &in, &out);
	ring_read(0);
	counts_take(sk->maps.counts, counted);
}

static __u64 frames_of(__u32 lane)
{
	struct bl_host_page p;

	map_get(sk->maps.host_page, 0, &p);
	return p.reg[lane].frames;
}

static struct bl_link_sent sent_by(__u32 cpu)
{
	struct bl_link_sent s;

	map_get(sk->maps.link_sent, cpu, &s);
	return s;
}

/* Sends the frame, and returns the link body of a beacon. */
static struct bl_link_body leave(const struct desc *d, __u32 gso_size, int verdict)
{
	struct __sk_buff ctx = { .mark = BEACON_MARK,
				 .gso_size = gso_size,
				 .gso_segs = gso_size ? 1 : 0 };
	struct frame in, out;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in.p, .data_out = out.p,
		    .data_size_out = sizeof(out.p), .ctx_in = &ctx, .ctx_size_in = sizeof(ctx),
		    .repeat = 1);
	struct bl_link_body b;

	build(&in, d);
	o.data_size_in = in.n;
	clock_stands();
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_host_egress), &o), 0);
	assert_int_equal(o.retval, verdict);
	counts_take(sk->maps.counts, counted);
	memcpy(&b, out.p + 14 + 48, sizeof(b));
	return b;
}

/* Every frame that the switch counts is counted, whatever becomes of it, and no other. */
static void count__what_arrives(void **state)
{
	static const struct {
		const char *what;
		__u8 op, hop;
		__u64 ahead; /* ns added to B */
		bool counted;
	} t[] = {
		{ .what = "data", .op = BL_OP_DATA, .counted = true },
		{ .what = "credit", .op = BL_OP_CREDIT, .counted = true },
		{ .what = "frag", .op = BL_OP_FRAG, .counted = true },
		{ .what = "prep", .op = BL_OP_PREP, .counted = true },
		{ .what = "ack", .op = BL_OP_ACK },
		{ .what = "recalled", .op = BL_OP_RECALLED },
		{ .what = "ahead", .op = BL_OP_DATA, .ahead = 1 << 30, .counted = true },
		{ .what = "past a switch", .op = BL_OP_DATA, .hop = BL_HOP_TOP },
		{ .what = "ahead past a switch",
		  .op = BL_OP_DATA,
		  .hop = BL_HOP_TOP,
		  .ahead = 1 << 30 },
	};
	__u64 before_it;
	size_t i;

	(void)state;
	feed_beacon(T0 - 2000);
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct desc d = data_frame(0, 1, T0 - 900, T0 - 1000 + t[i].ahead);

		doing = t[i].what;
		d.op = t[i].op;
		if (t[i].hop)
			d.flag_byte = t[i].hop | BL_F_LANES(1);
		before_it = frames_of(0);
		arrive(&d);
		assert_int_equal(frames_of(0) - before_it, t[i].counted);
	}
	before_it = frames_of(0);
	feed_beacon(T0 - 1000);
	assert_int_equal(frames_of(0), before_it);
}

/* Single frames and GSO sends are counted on the CPU that sends them; what is refused is not. */
static void count__what_leaves(void **state)
{
	struct desc d = data_frame(1, 0, T0, 0);
	__u32 cpu = (__u32)net.cpu;

	(void)state;
	d.sport = FROM;
	leave(&d, 0, TC_ACT_OK);
	assert_int_equal(sent_by(cpu).frames, 1);
	assert_int_equal(sent_by(cpu).most, 1);
	assert_int_equal(sent_by(cpu).at_ns, T0);
	d.body = 4 * 100 - 24; /* four frames of 100 bytes */
	leave(&d, 100, TC_ACT_OK);
	assert_int_equal(sent_by(cpu).frames, 5);
	assert_int_equal(sent_by(cpu).most, 4);
	d.body = 37;
	d.sport += 3; /* no endpoint */
	leave(&d, 0, TC_ACT_SHOT);
	assert_int_equal(sent_by(cpu).frames, 5);
}

static void says__all(void **state)
{
	const struct bl_link l = {
		.run = 9, .least_ns = { -300, 200 }, .bucket_ns = T0 - 1000, .overtaken = 3
	};
	struct bl_link_sent s = { .frames = 1000, .most = 8, .at_ns = T0 - 5000000 };
	struct desc d = beacon_frame(1, 0);
	__u32 me = (__u32)net.cpu, other = !me, last = cfg.cpus - 1;
	struct bl_link_body b;

	(void)state;
	if (cfg.cpus < 2)
		skip();
	d.node = NODE_ID;
	map_put(sk->maps.link_seen, 0, &l);
	map_put(sk->maps.link_sent, other, &s);
	s.frames = 70;
	map_put(sk->maps.link_sent, me, &s);
	b = leave(&d, 0, TC_ACT_OK);
	assert_int_equal(BL_BE32(b.magic), BL_LINK_MAGIC);
	assert_int_equal(BL_BE16(b.run), 9);
	assert_int_equal(BL_BE16(b.racing), 8); /* what this CPU has counted is in the queue */
	assert_int_equal(BL_BE32(b.frames), 1070);
	assert_int_equal((__s32)BL_BE32(b.echo), -300);
	assert_int_equal(bl_get48(b.sent), T0 & BL_TS_MASK);
	assert_int_equal(b.version, BL_LINK_VERSION);
	assert_int_equal(BL_BE32(b.bound), SAID);
	assert_int_equal(BL_BE32(b.overtaken), 3);
	/* a CPU that has not sent for long does not race; the sum wraps */
	s = (struct bl_link_sent){ .frames = 0xfffffffff, .most = 8, .at_ns = T0 - 10000001 };
	map_put(sk->maps.link_sent, other, &s);
	map_put(sk->maps.link_seen, 0, &l);
	b = leave(&d, 0, TC_ACT_OK);
	assert_int_equal(BL_BE16(b.racing), 0);
	assert_int_equal(BL_BE32(b.frames), (__u32)(0xfffffffff + 70));
	/* CPUs that the machine does not have are not asked */
	if (last < BL_LINK_CPUS - 1) {
		map_put(sk->maps.link_sent, last + 1, &s);
		map_put(sk->maps.link_seen, 0, &l);
		b = leave(&d, 0, TC_ACT_OK);
		assert_int_equal(BL_BE32(b.frames), (__u32)(0xfffffffff + 70));
	}
}

/* A beacon carries a body once in so many ticks; those between say nothing. */
static void says__not_each_time(void **state)
{
	static const struct {
		__u32 ago; /* ticks since the last body */
		bool body;
	} t[] = { { 0, false }, { 1, true }, { 0xffff, true } /* the clock was set back */ };
	static const struct bl_link_body none;
	struct desc d = beacon_frame(1, 0);
	size_t i;

	(void)state;
	d.node = NODE_ID;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		const __u16 said = (__u16)(bl_link_tick(T0) - t[i].ago);
		struct bl_link l = { .run = 9, .said = said };
		struct bl_link_body b;

		map_put(sk->maps.link_seen, 0, &l);
		b = leave(&d, 0, TC_ACT_OK);
		assert_int_equal(b.magic, t[i].body ? BL_BE32(BL_LINK_MAGIC) : 0);
		if (!t[i].body)
			assert_memory_equal(&b, &none, sizeof(b));
		l = link_at(sk->maps.link_seen, 0);
		assert_int_equal(l.said, t[i].body ? bl_link_tick(T0) : said);
	}
}

/* All that a link body changes. */
static void seen__first(void **state)
{
	struct desc d = beacon_frame(0, T0 - 1000);
	struct bl_link want = { .node = 0x1000,
				.run = RUN,
				.least_ns = { 1234, BL_DELAY_NONE },
				.bucket_ns = T0,
				.heard_ns = T0,
				.echo_ns = -77,
				.bound_ns = 700,
				.theirs = 5 },
		       l;

	(void)state;
	d.lane = 1;
	d.lanes = 2;
	say(&d, 0x4242, 1000, T0 - 1234, 700);
	d.link.echo = BL_BE32((__u32)-77);
	d.link.overtaken = BL_BE32(5);
	arrive(&d);
	want.lane[1] = (struct bl_link_lane){
		.heard_ns = T0, .changed_ns = T0, .ahead = 1000, .run = 0x4242, .node = 0x1000
	};
	l = link_at(sk->maps.link_seen, 0);
	assert_memory_equal(&l, &want, sizeof(l));
}

static void seen__overtaken(void **state)
{
	struct desc d = data_frame(0, 1, T0 - 900, T0 - 1000), be = beacon_frame(0, T0 - 1000);
	struct bl_link l;

	(void)state;
	say(&be, 0x4242, 10, T0, 700);
	arrive(&be);
	be.link.frames = BL_BE32(12);
	arrive(&be);
	arrive(&d);
	be.link.racing = BL_BE16(1);
	arrive(&be);
	l = link_at(sk->maps.link_seen, 0);
	assert_int_equal(l.lane[0].raced, 1); /* another CPU of the sender explains it */
	assert_int_equal(l.lane[0].overtaken, 0);
	be.link.racing = 0;
	arrive(&be);
	arrive(&d);
	arrive(&be);
	l = link_at(sk->maps.link_seen, 0);
	assert_int_equal(l.lane[0].overtaken, 1);
	assert_int_equal(l.lane[0].apart, 0);
	assert_int_equal(l.overtaken, 1);
}

/* While the clock is void, beacons are refused, and still say how far it is off. */
static void seen__clock_void(void **state)
{
	struct desc d = beacon_frame(0, T0 - 1000);

	(void)state;
	say(&d, 0x4242, 10, T0 + 940, 700);
	clock_void(sk->maps.clock);
	arrive(&d);
	assert_int_equal(link_at(sk->maps.link_seen, 0).least_ns[0], -940);
	assert_int_equal(link_at(sk->maps.link_seen, 0).lane[0].run, 0);
	clock_at(sk->maps.clock, T0);
	/* nor is a beacon taken in whose sender's clock is ahead, except for that */
	d.b = T0 + 2 * BOUND;
	say(&d, 0x4242, 10, T0 + 2 * BOUND, 700);
	arrive(&d);
	assert_int_equal(link_at(sk->maps.link_seen, 0).least_ns[0], -(__s64)(2 * BOUND));
	assert_int_equal(link_at(sk->maps.link_seen, 0).lane[0].run, 0);
}

static int first_setup(void **state)
{
	(void)state;
	net_setup(false);
	return 0;
}

#define CASE(f) cmocka_unit_test_setup(f, host_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(count__what_arrives), CASE(count__what_leaves), CASE(says__all),
		CASE(says__not_each_time), CASE(seen__first),        CASE(seen__overtaken),
		CASE(seen__clock_void),
	};

	return cmocka_run_group_tests(tests, first_setup, NULL);
}
