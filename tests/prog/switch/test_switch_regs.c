// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_switch_xdp over time: registers never fall, inputs join late and are excluded after silence, a
 * link and a switch have several lanes, and a switch has up to 256 ports. step() compares every
 * tree with the registers after each frame.
 */
#include "tests/prog/switch/switch_util.h"

#include "core/order/promise_core.h"

/* An input that is this far or further behind the outputs may not join: bl_join_floor(). */
#define FLOOR (10 * DEAD_NS)

static struct desc beacon_from(__u32 port, __u64 b)
{
	return beacon_frame(port, b);
}

/* ---- registers ---- */

static void reg__never_falls(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d = beacon_from(0, b);

	(void)state;
	all_live(b);
	/*
	 * An equal barrier has no effect. A lower one is counted, and moves neither register nor
	 * tree.
	 */
	take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	d.b = b - 1;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }, { 0, BL_R_BARRIER_OLD }));
	assert_int_equal(after.regs[0].lane[0].b, b);
	d.b = b - 39 * 3600 * 1000000000ULL; /* as far back as 48 bits can tell */
	take_in(0, &d, WANT({ 0, BL_R_BEACON }, { 0, BL_R_BARRIER_OLD }));
	assert_int_equal(after.regs[0].lane[0].b, b);
	assert_int_equal(after.lanes[0].out[1].b, b);
	/* C has a register of its own */
	d = beacon_from(0, b + 1);
	d.c = b - 1;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	assert_int_equal(after.regs[0].lane[0].b, b + 1);
	assert_int_equal(after.regs[0].lane[0].c, b);
	d.b = b;
	d.c = b + 2;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }, { 0, BL_R_BARRIER_OLD }));
	assert_int_equal(after.regs[0].lane[0].b, b + 1);
	assert_int_equal(after.regs[0].lane[0].c, b + 2);
}

/* A data frame with an old barrier is forwarded, and leaves with the current one. */
static void reg__old_on_data(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d = data_frame(0, 1, b, b - 500);

	(void)state;
	all_live(b);
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
	     WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_BARRIER_OLD }));
	assert_int_equal(after.regs[0].lane[0].b, b);
}

/*
 * A frame that left its host past the egress program promises nothing, whatever its endpoint
 * claims. Of another endpoint, a message from before the claim may follow.
 */
static void reg__unpromised(void **state)
{
	const __u64 b = T0 - 1000, ts = T0 - 10;
	struct desc d = data_frame(0, 1, ts, bl_claim_wire(ts));

	(void)state;
	all_live(b);
	d.c = bl_unpromised(ts);
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
	     WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_BARRIER_OLD }));
	assert_int_equal(after.regs[0].lane[0].b, b);
	assert_int_equal(after.regs[0].lane[0].c, b);
	d.ts = ts - 1;
	d.b = d.c = bl_unpromised(d.ts);
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
	     WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_BARRIER_OLD }));
}

static void reg__promise_broken(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d = data_frame(0, 1, b, b);

	(void)state;
	all_live(b);
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) }, WANT({ 0, BL_R_FORWARDED }));
	d.ts = b - 1;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
	     WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_PROMISE_BROKEN }));
	/*
	 * The time stamp is compared with the register as it was before this frame: a frame's own
	 * barrier is above its time stamp whenever the frame had to queue.
	 */
	d.b = d.c = d.ts + 100;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
	     WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_PROMISE_BROKEN }));
	d.ts = d.b;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) }, WANT({ 0, BL_R_FORWARDED }));
	d.ts--;
	d.op = BL_OP_FRAG;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) }, WANT({ 0, BL_R_FORWARDED }));
}

/* ---- joining ---- */

static void join__in_any_order(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d;
	__u32 p;

	(void)state;
	for (p = 0; p < NPORTS; p++) {
		__u64 mine = b - 100 * p; /* below what the first port gave the outputs */

		d = data_frame(p, (p + 1) % NPORTS, T0, mine);
		if (p == 0) {
			step(p, &d, XDP_REDIRECT, &d,
			     WANT({ p, BL_R_FORWARDED }, { p, BL_R_JOINED }));
			continue;
		}
		step(p, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
		     WANT({ p, BL_R_FORWARDED }, { p, BL_R_JOINED }));
		/* The minimum is below what the outputs were given, so they stand still. */
		assert_int_equal(bl_tree_least(&after.trees[1]).b, mine);
	}
	assert_int_equal(after.lanes[0].out[0].b, b);
	assert_int_equal(after.lanes[0].out[1].b, b);
}

/*
 * An input that is too far behind what the outputs were given has a wrong clock: it has to wait
 * before it joins, and does not hold back the others.
 */
static void join__waits_at_the_floor(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d;
	__u64 up;

	(void)state;
	feed(0, b);
	feed(1, b);
	counts_take(sk->maps.counts, counted);
	d = beacon_from(3, b - FLOOR);
	take_in(3, &d, WANT({ 3, BL_R_BEACON }));
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_JOINING);
	assert_int_equal(after.regs[3].lane[0].b, b - FLOOR);
	/* Meanwhile the other inputs rise, and the outputs with them. */
	up = b + 100;
	take_in(0, (struct desc[]){ beacon_from(0, up) }, WANT({ 0, BL_R_BEACON }));
	take_in(1, (struct desc[]){ beacon_from(1, up) }, WANT({ 1, BL_R_BEACON }));
	assert_int_equal(after.lanes[0].out[0].b, up);
	d.b = d.c = up - FLOOR;
	take_in(3, &d, WANT({ 3, BL_R_BEACON }));
	d.b = d.c = up - FLOOR + 1;
	take_in(3, &d, WANT({ 3, BL_R_BEACON }, { 3, BL_R_JOINED }));
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(after.lanes[0].out[0].b, up);
	/* The input is LIVE now, so the outputs wait for it. */
	take_in(0, (struct desc[]){ beacon_from(0, up + 50) }, WANT({ 0, BL_R_BEACON }));
	take_in(1, (struct desc[]){ beacon_from(1, up + 50) }, WANT({ 1, BL_R_BEACON }));
	assert_int_equal(after.lanes[0].out[0].b, up);
}

/* A link of two lanes joins when a beacon of both has arrived; its leaf is the lower of the two. */
static void join__two_lanes(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d = beacon_from(0, b);

	(void)state;
	feed(1, b);
	counts_take(sk->maps.counts, counted);
	d.lanes = 2;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	assert_int_equal(after.regs[0].lane[0].state, BL_REG_JOINING);
	d.lane = 1;
	d.b = d.c = b - 300;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }, { 0, BL_R_JOINED }));
	assert_int_equal(after.regs[0].lane[1].state, BL_REG_LIVE | BL_REG_IN);
	d.lane = 0;
	d.b = d.c = b + 1;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }, { 0, BL_R_JOINED }));
	assert_int_equal(after.trees[0].b[cfg.tree_leaves], b - 300);
	/*
	 * Each lane has a register of its own: a rise of one does not raise the leaf above the
	 * other.
	 */
	d.b = d.c = b + 500;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	assert_int_equal(after.trees[0].b[cfg.tree_leaves], b - 300);
	d.lane = 1;
	d.b = d.c = b + 200;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	assert_int_equal(after.trees[0].b[cfg.tree_leaves], b + 200);
	/* Whether a time stamp breaks the promise is decided by the register of its own lane. */
	d = data_frame(0, 1, b + 200, b + 200);
	d.lane = 1;
	d.lanes = 2;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) }, WANT({ 0, BL_R_FORWARDED }));
	d.lane = 0;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
	     WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_PROMISE_BROKEN }, { 0, BL_R_BARRIER_OLD }));
}

/* ---- exclusion ---- */

/*
 * Lets @n beacon intervals pass one by one, in which a beacon arrives on @port only, with a barrier
 * 100 ns behind the clock. Returns the last barrier.
 */
static __u64 pass_intervals(__u32 port, __u64 *bus, int n)
{
	while (n--) {
		*bus += BEACON_NS;
		clock_at(sk->maps.clock, *bus);
		feed(port, *bus - 100);
	}
	return *bus - 100;
}

static bool is_excluded(__u32 port)
{
	struct bl_port_regs r;

	map_get(sk->maps.sw_regs, port, &r);
	return (__u8)r.lane[0].state == BL_REG_DEAD;
}

/* The last beacon of a host: it is excluded, and that is no death of its port. */
static void bye__excluded_at_once(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d = beacon_from(0, b);
	__u64 bus = T0;

	(void)state;
	all_live(b);
	d.port = BL_BEACON_BYE;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }, { 0, BL_R_EXCLUDED }));
	assert_true(is_excluded(0));
	assert_false(is_excluded(1));
	assert_int_equal(after.regs[0].lane[0].state, BL_REG_DEAD);
	assert_int_equal(after.lives[0].death, 0);
	/* Its programs answer for endpoints that have left: that does not make it join. */
	feed(0, T0 - BL_TS_OLD);
	assert_true(is_excluded(0));
	/* It is heard again, and joins as ever. */
	pass_intervals(0, &bus, 1);
	assert_false(is_excluded(0));
}

/* A port of a switch does not leave by that: there it is the number of a port. */
static void bye__only_of_hosts(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d = beacon_from(UPLINK, b);
	__u64 bus = T0;

	(void)state;
	all_live(b);
	d.port = BL_BEACON_BYE;
	take_in(UPLINK, &d, WANT({ UPLINK, BL_R_BEACON }));
	pass_intervals(1, &bus, 1);
	assert_false(is_excluded(UPLINK));
}

static void exclude__after_silence(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d, want;
	__u64 bus = T0, up;
	__u32 p;

	(void)state;
	all_live(b);
	/*
	 * The last beacons of all ports arrived at a watch time of 1 ns. A lane scans for silent
	 * inputs when more than 250 us of watch time have passed since its last scan, here after
	 * 300, 600, 900 and 1200 us. An input is dead after more than 1000 us.
	 */
	pass_intervals(0, &bus, 11);
	/* B stands still, so each of the first three scans has the next beacon relayed at once. */
	counts_moved(sk->maps.counts, counted, 11,
		     WANT({ 0, BL_R_BEACON, 8 }, { 0, BL_R_RELAYED, 3 }));
	state_take(&after);
	assert_int_equal(after.lanes[0].watch_ns, 1 + 11 * BEACON_NS);
	assert_int_equal(after.lanes[0].scan_ns, 1 + 9 * BEACON_NS);
	assert_int_equal(after.lanes[0].out[0].b, b);
	bus += BEACON_NS;
	clock_at(sk->maps.clock, bus);
	up = bus - 100;
	d = beacon_from(0, up);
	want = relayed(d, up, up);
	/* C waits for the dead inputs until the controller's RESUME. */
	want.relay[0].c = want.relay[1].c = b;
	/* The bits of both sets: they stood still, so their clones are sent in any case. */
	want.port = 3;
	step(0, &d, XDP_REDIRECT, &want,
	     WANT({ 0, BL_R_RELAYED }, { 1, BL_R_EXCLUDED }, { 2, BL_R_EXCLUDED },
		  { 3, BL_R_EXCLUDED }));
	for (p = 1; p < NPORTS; p++)
		assert_true(after.regs[p].lane[0].state ==
				    (BL_REG_DEAD | BL_REG_IN | BL_REG_HELD) &&
			    after.lives[p].death == 1);
	assert_int_equal(after.lives[0].death, 0);
	assert_int_equal(after.lanes[0].scan_ns, 1 + 12 * BEACON_NS);
	/*
	 * Port 1 comes back a little behind: it joins at once, and the outputs stand still until it
	 * has caught up.
	 */
	d = data_frame(1, UPLINK, bus, up - 5000);
	step(1, &d, XDP_REDIRECT, (struct desc[]){ sent(d, up, b) },
	     WANT({ 1, BL_R_FORWARDED }, { 1, BL_R_JOINED }));
	assert_int_equal(bl_tree_least(&after.trees[0]).b, up - 5000);
	/*
	 * Port 3 comes back with a wrong clock, which is far behind by then: it stays DEAD and out
	 * of B, and C stands still for it as for the first.
	 */
	bus += 2 * FLOOR;
	pass_intervals(0, &bus, 1);
	pass_intervals(1, &bus, 1);
	counts_take(sk->maps.counts, counted);
	d = beacon_from(3, T0);
	take_in(3, &d, WANT({ 3, BL_R_BEACON }));
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[3].lane[0].b, T0);
	assert_int_equal(bl_tree_least(&after.trees[0]).c, b);
	assert_int_equal(bl_tree_least(&after.trees[1]).c, b);
}

/*
 * The edge of dead_after_ns, to the ns: a scan after exactly dead_after_ns of silence excludes no
 * input.
 */
static void exclude__edge(void **state)
{
	__u64 bus;
	int k;

	(void)state;
	for (k = 0; k < 2; k++) {
		switch_setup(NULL);
		cfg.dead_after_ns = 11 * BEACON_NS - k;
		set_cfg();
		bus = T0;
		all_live(T0 - 1000);
		pass_intervals(0, &bus, 1);
		feed(1, T0 - 900);
		pass_intervals(0, &bus, 11);
		state_take(&after);
		assert_int_equal(after.lanes[0].scan_ns - after.regs[1].lane[0].heard_ns,
				 11 * BEACON_NS);
		assert_true(is_excluded(3));
		assert_int_equal(is_excluded(1), k);
	}
}

/*
 * Scans are more than a quarter of dead_after_ns apart: after exactly a quarter there is no scan
 * yet.
 */
static void exclude__quarter(void **state)
{
	__u64 bus = T0;

	(void)state;
	cfg.dead_after_ns = 12 * BEACON_NS;
	set_cfg();
	all_live(T0 - 1000);
	pass_intervals(0, &bus, 6);
	state_take(&after);
	assert_int_equal(after.lanes[0].watch_ns, 1 + 6 * BEACON_NS);
	assert_int_equal(after.lanes[0].scan_ns, 1 + 3 * BEACON_NS);
	pass_intervals(0, &bus, 1);
	state_take(&after);
	assert_int_equal(after.lanes[0].scan_ns, 1 + 7 * BEACON_NS);
}

/*
 * An input that is heard in time stays live. Any good frame counts, even one with an old barrier.
 */
static void exclude__heard_in_time(void **state)
{
	struct desc d = data_frame(1, 0, T0, T0 - 2000);
	__u64 bus = T0;
	int k;

	(void)state;
	all_live(T0 - 1000);
	for (k = 0; k < 5; k++) {
		struct frame in, out;

		pass_intervals(0, &bus, 4);
		build(&in, &d);
		run_on(1, &in, &out, XDP_REDIRECT);
	}
	assert_false(is_excluded(1));
	assert_true(is_excluded(3));
}

/* A refused frame does not count as a sign of life. */
static void exclude__refused_is_not_heard(void **state)
{
	struct desc d = beacon_frame(1, T0);
	__u64 bus = T0;
	int k;

	(void)state;
	all_live(T0 - 1000);
	d.tai = 36;
	for (k = 0; k < 12; k++) {
		struct frame in, out;

		pass_intervals(0, &bus, 1);
		build(&in, &d);
		run_on(1, &in, &out, XDP_DROP);
	}
	assert_true(is_excluded(1));
}

/* The datapath stood still for ten seconds: that does not count as silence of any input. */
static void exclude__not_after_a_standstill(void **state)
{
	__u64 bus = T0;

	(void)state;
	all_live(T0 - 1000);
	pass_intervals(0, &bus, 2);
	bus += 10000000000ULL;
	pass_intervals(0, &bus, 9);
	state_take(&after);
	assert_int_equal(after.lanes[0].watch_ns, 1 + 11 * BEACON_NS);
	assert_false(is_excluded(1));
	/* Nor does watch time advance when the clock goes back or stands still. */
	bus -= 20000000000ULL;
	clock_at(sk->maps.clock, bus);
	feed(0, bus);
	feed(0, bus);
	state_take(&after);
	assert_int_equal(after.lanes[0].watch_ns, 1 + 11 * BEACON_NS);
}

/*
 * A lane that the neighbour announced, but that never sent a frame, is given up after
 * dead_after_ns. Then the link joins with its other lanes.
 */
static void exclude__lane_never_heard(void **state)
{
	struct desc d = beacon_frame(0, T0);
	__u64 bus = T0;

	(void)state;
	all_live(T0 - 1000);
	/* Port 3 comes back with two lanes, one of which is silent. */
	pass_intervals(0, &bus, 12);
	assert_true(is_excluded(3));
	counts_take(sk->maps.counts, counted);
	d = beacon_frame(3, bus);
	d.lanes = 2;
	take_in(3, &d, WANT({ 3, BL_R_BEACON }));
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[3].lane[1].state, BL_REG_ABSENT);
	assert_int_equal(after.regs[3].lane[1].heard_ns, after.lanes[0].watch_ns);
	pass_intervals(0, &bus, 12);
	counts_take(sk->maps.counts, counted);
	d.b = d.c = bus;
	take_in(3, &d, WANT({ 3, BL_R_BEACON }, { 3, BL_R_JOINED }));
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[3].lane[1].state, BL_REG_DEAD);
}

/* ---- lanes of the switch ---- */

static void set_two_lanes(void)
{
	cfg.lanes = 2;
	set_cfg();
	ports[1].home_lane = 1;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
}

/* Each lane takes the minimum of its own ports only, and writes its own number into the frames. */
static void lanes__each_its_own(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d, want;

	(void)state;
	set_two_lanes();
	d = data_frame(0, 3, T0, b);
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent_on(0, d, b, b) },
	     WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_JOINED }));
	d = data_frame(1, 3, T0, b - 500);
	d.csum = true;
	step(1, &d, XDP_REDIRECT, (struct desc[]){ sent_on(1, d, b - 500, b - 500) },
	     WANT({ 1, BL_R_FORWARDED }, { 1, BL_R_JOINED }));
	assert_int_equal(after.lanes[0].out[1].b, b);
	assert_int_equal(after.lanes[1].out[1].b, b - 500);
	assert_int_equal(after.carried[3].lane[0].b, b);
	assert_int_equal(after.carried[3].lane[1].b, b - 500);
	cfg.lane_of_cpu[net.cpu] = 1;
	set_cfg();
	step(1, &d, XDP_REDIRECT, (struct desc[]){ sent_on(1, d, b - 500, b - 500) },
	     WANT({ 1, BL_R_FORWARDED }));
	/* A relayed beacon carries the lane's number as well, and only that lane's barriers. */
	d = beacon_frame(1, b + 1);
	want = relayed(d, b + 1, b + 1);
	want.lane = 1;
	step(1, &d, XDP_REDIRECT, &want, WANT({ 1, BL_R_RELAYED }));
}

/*
 * The frame @d of @port is steered to the CPU that owns the lane: nothing but @counters changes,
 * and one more frame counts as on its way there.
 */
static void expect_steered(__u32 port, const struct desc *d, const struct counted *counters,
			   size_t n)
{
	struct bl_steering was, now;

	map_get(sk->maps.sw_homing, port, &was);
	state_take(&before);
	step(port, d, XDP_REDIRECT, d, counters, n);
	if (memcmp(&before, &after, sizeof(before)))
		fail_msg("%s: a frame that went home changed a register, tree, lane or carried "
			 "barrier before",
			 doing);
	map_get(sk->maps.sw_homing, port, &now);
	assert_int_equal(now.sent, was.sent + 1);
	assert_int_equal(now.taken, was.taken);
	map_get(sk->maps.sw_ports, port, &ports[port]);
	assert_int_equal(ports[port].home_lane, BL_AWAY | BL_HOME_LANE(&ports[port]));
}

/*
 * A lane has one writer. A frame that arrives on another CPU is steered to the CPU of its port's
 * lane, and frames that arrive on that CPU follow it through the CPU map until no frame is on its
 * way there any more. The CPU that struct bl_steering names is the lane's CPU. This test steers to
 * a second CPU only if the machine has one.
 */
static void homing__in_order(void **state)
{
	const __u32 other = net.cpu ? 0 : 1;
	struct desc d = beacon_frame(1, T0 - 1000), data = data_frame(1, 3, T0, T0 - 900);
	struct bpf_cpumap_val v = { .qsize = 64,
				    .bpf_prog.fd = bpf_program__fd(sk->progs.bl_switch_steered) };
	struct bl_steering h;

	(void)state;
	all_live(T0 - 2000);
	cfg.lane_of_cpu[net.cpu] = BL_NO_LANE;
	set_cfg();
	if (libbpf_num_possible_cpus() > 1) {
		map_put(sk->maps.sw_home, other, &v);
		set_steering(1, other, 0, 0);
		map_get(sk->maps.sw_homing, 1, &h);
		expect_steered(1, &d, WANT({ 1, BL_R_STEERED }, { 1, BL_R_WRONG_CPU }));
		expect_steered(1, &data, WANT({ 1, BL_R_STEERED }, { 1, BL_R_WRONG_CPU }));
		assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.sw_home), &other), 0);
	}
	/* The CPU map has no entry for the CPU of the lane. */
	set_steering(1, other, 0, 0);
	step(1, &d, XDP_DROP, &d, WANT({ 1, BL_R_REDIRECT_FAILED }, { 1, BL_R_WRONG_CPU }));
	/*
	 * The lane's CPU is this one, and one frame is on its way: the counters @sent and @taken
	 * wrap.
	 */
	cfg.lane_of_cpu[net.cpu] = 0;
	set_cfg();
	set_steering(1, (__u32)net.cpu, 0, ~0u);
	ports[1].home_lane = BL_AWAY;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	expect_steered(1, &d, WANT({ 1, BL_R_STEERED }));
	expect_steered(1, &data, WANT({ 1, BL_R_STEERED }));
	set_steering(1, (__u32)net.cpu, 2, 2);
	step(1, &d, XDP_DROP, &d, WANT({ 1, BL_R_BEACON }));
	assert_int_equal(after.regs[1].lane[0].b, T0 - 1000);
	map_get(sk->maps.sw_ports, 1, &ports[1]);
	assert_int_equal(ports[1].home_lane, 0);
	step(1, &data, XDP_REDIRECT, (struct desc[]){ sent(data, T0 - 2000, T0 - 2000) },
	     WANT({ 1, BL_R_FORWARDED }));
}

/*
 * Marks port 1 as away, with the given numbers of frames sent and taken; the last one came out of
 * the CPU map @still ns of watch time ago.
 */
static void mark_away(__u32 sent, __u32 taken, __u64 still)
{
	struct bl_steering h = { .cpu = (__u32)net.cpu,
				 .sent = sent,
				 .taken = taken,
				 .most = 4,
				 .moved_ns = after.lanes[0].watch_ns - still };

	ports[1].home_lane = BL_AWAY;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	map_put(sk->maps.sw_homing, 1, &h);
}

/* A beacon of port 1 is handled here, and the port is not marked as away any more. */
static void expect_at_home(__u64 b, __u32 sent, const struct counted *counters, size_t n)
{
	struct desc d = beacon_frame(1, b);
	struct bl_steering h;

	step(1, &d, XDP_DROP, &d, counters, n);
	assert_int_equal(after.regs[1].lane[0].b, b);
	map_get(sk->maps.sw_homing, 1, &h);
	assert_int_equal(h.sent, sent);
	map_get(sk->maps.sw_ports, 1, &ports[1]);
	assert_int_equal(ports[1].home_lane, 0);
}

/*
 * The CPU map is never full. Frames that do not come out of it are given up when none has come out
 * for a second of watch time; they may still come out later.
 */
static void homing__edges(void **state)
{
	const __u32 other = net.cpu ? 0 : 1;
	struct desc d = beacon_frame(1, T0 - 1500);
	struct bl_steering h;

	(void)state;
	all_live(T0 - 2000);
	mark_away(7, 4, 0);
	expect_steered(1, &d, WANT({ 1, BL_R_STEERED }));
	step(1, &d, XDP_DROP, &d, WANT({ 1, BL_R_HOME_FULL }));
	map_get(sk->maps.sw_homing, 1, &h);
	assert_true(h.sent == 8 && h.taken == 4);
	/*
	 * Watch time advances by at most one beacon interval from frame to frame, and only by
	 * frames that are handled here, so the edge of the second can be set exactly.
	 */
	mark_away(5, 3, BL_HOMING_NS);
	expect_steered(1, &d, WANT({ 1, BL_R_STEERED }));
	mark_away(5, 3, BL_HOMING_NS + 1);
	expect_at_home(T0 - 1400, 3, WANT({ 1, BL_R_BEACON }));
	mark_away(3, 5, 0);
	expect_at_home(T0 - 1300, 5, WANT({ 1, BL_R_BEACON }));
	/* The first frame that is put on its way starts the second anew. */
	cfg.lane_of_cpu[net.cpu] = BL_NO_LANE;
	set_cfg();
	if (libbpf_num_possible_cpus() > 1) {
		struct bpf_cpumap_val v = {
			.qsize = 64, .bpf_prog.fd = bpf_program__fd(sk->progs.bl_switch_steered)
		};

		map_put(sk->maps.sw_home, other, &v);
		h = (struct bl_steering){ .cpu = other, .sent = 9, .taken = 9, .most = 4 };
		map_put(sk->maps.sw_homing, 1, &h);
		expect_steered(1, &d, WANT({ 1, BL_R_STEERED }, { 1, BL_R_WRONG_CPU }));
		map_get(sk->maps.sw_homing, 1, &h);
		assert_int_equal(h.moved_ns, after.lanes[0].watch_ns);
		assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.sw_home), &other), 0);
	}
	/*
	 * Without a limit, as in generic mode, every frame is handled and counted where it arrives.
	 */
	h = (struct bl_steering){ .cpu = other, .sent = 1, .taken = 1 };
	map_put(sk->maps.sw_homing, 1, &h);
	expect_at_home(T0 - 1200, 1, WANT({ 1, BL_R_BEACON }, { 1, BL_R_WRONG_CPU }));
}

/* A lane scans only its own ports for silence. */
static void lanes__search_their_own_ports(void **state)
{
	__u64 bus = T0;

	(void)state;
	set_two_lanes();
	feed(0, T0 - 1000);
	feed(1, T0 - 1000);
	feed(3, T0 - 1000);
	pass_intervals(0, &bus, 13);
	assert_true(is_excluded(3));
	assert_false(is_excluded(1));
	/* Lane 1 has a clock of its own, which it has not read since. */
	pass_intervals(1, &bus, 1);
	assert_false(is_excluded(1));
}

/* All CPUs share lane 0. test_lanes in tests/net attacks a switch with this setting. */
static void lanes__shared(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d = data_frame(1, 3, T0, b);

	(void)state;
	set_two_lanes();
	cfg.single_writer = 0;
	cfg.lanes = 1;
	set_cfg();
	step(1, &d, XDP_REDIRECT, &d, WANT({ 1, BL_R_FORWARDED }, { 1, BL_R_JOINED }));
	assert_int_equal(after.lanes[0].out[1].b, b);
}

/* The eighth lane is the last that the header can name. */
static void lanes__eight(void **state)
{
	const __u64 b = T0 - 1000;
	struct desc d = beacon_frame(0, b);
	__u8 l;

	(void)state;
	feed(1, b);
	cfg.lanes = 8;
	set_cfg();
	ports[3].home_lane = 7;
	map_put(sk->maps.sw_ports, 3, &ports[3]);
	counts_take(sk->maps.counts, counted);
	d.lanes = 8;
	for (l = 0; l < 7; l++) {
		d.lane = l;
		take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	}
	d.lane = 7;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }, { 0, BL_R_JOINED }));
	d = data_frame(3, 1, T0, b);
	step(3, &d, XDP_REDIRECT, (struct desc[]){ sent_on(7, d, b, b) },
	     WANT({ 3, BL_R_FORWARDED }, { 3, BL_R_JOINED }));
}

/* ---- many ports ---- */

static __u64 random_state;

static __u32 random_below(__u32 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (__u32)(random_state >> 32) % n;
}

/*
 * Any tree size, any port and any order: leaves and inner nodes stay correct, and outputs neither
 * fall nor pass the minimum.
 */
static void trees__many_ports(void **state)
{
	static const __u32 sizes[] = { 4, 5, 16, 64, 255, 256 };
	struct desc d = beacon_frame(0, T0);
	struct bl_sw_lane last;
	__u32 i, k, p, n;

	(void)state;
	random_state = 88172645463325252ULL;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		n = sizes[i];
		switch_setup(NULL);
		cfg.nports = n;
		for (cfg.tree_leaves = 4; cfg.tree_leaves < n; cfg.tree_leaves *= 2)
			;
		set_cfg();
		for (p = 0; p < n; p++)
			set_port(p, net.ifindex[0] + p, p % 16 == 15 ? BL_PORT_UP : BL_PORT_HOST);
		memset(&last, 0, sizeof(last));
		for (k = 0; k < 150; k++) {
			struct frame in, out;
			__u32 s, key;

			p = k < n ? (k % 2 ? n - 1 - k / 2 : k / 2) : random_below(n);
			key = p + 1;
			map_put(sk->maps.sw_ifindex, net.ifindex[0], &key);
			d.b = T0 - 100000 + k * 100 - random_below(50000);
			d.c = d.b - random_below(1000);
			build(&in, &d);
			run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &in, &out);
			state_take(&after);
			expect_trees(&after);
			for (s = 0; s < 2; s++) {
				const struct bl_pair *o = &after.lanes[0].out[s],
						     root = bl_tree_least(&after.trees[s]);

				assert_true(o->b ==
					    (root.b != BL_LEAF_NONE && root.b > last.out[s].b
						     ? root.b
						     : last.out[s].b));
				assert_true(o->c ==
					    (root.c != BL_LEAF_NONE && root.c > last.out[s].c
						     ? root.c
						     : last.out[s].c));
			}
			last = after.lanes[0];
		}
	}
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_REGS, BY_SW);
}

#define CASE(f) cmocka_unit_test_setup(f, switch_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(reg__never_falls),
		CASE(reg__old_on_data),
		CASE(reg__unpromised),
		CASE(reg__promise_broken),
		CASE(join__in_any_order),
		CASE(join__waits_at_the_floor),
		CASE(join__two_lanes),
		CASE(bye__excluded_at_once),
		CASE(bye__only_of_hosts),
		CASE(exclude__after_silence),
		CASE(exclude__edge),
		CASE(exclude__quarter),
		CASE(exclude__heard_in_time),
		CASE(exclude__refused_is_not_heard),
		CASE(exclude__not_after_a_standstill),
		CASE(exclude__lane_never_heard),
		CASE(lanes__each_its_own),
		CASE(lanes__search_their_own_ports),
		CASE(homing__in_order),
		CASE(homing__edges),
		CASE(lanes__shared),
		CASE(lanes__eight),
		CASE(trees__many_ports),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
