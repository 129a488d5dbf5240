// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bl_switch_devmap, run on live frames (live_util.h). */
#include "core/order/link_core.h"
#include "tests/prog/switch/live_util.h"
#include "tests/prog/pace_util.h"

/* When a clone with a link body left last, by port and lane of this case. */
static __u32 said[NPORTS][BL_LANES_MAX];

static int devmap_setup(void **state)
{
	memset(said, 0, sizeof(said));
	return switch_setup(state);
}

/*
 * Returns what leaves on @port of a beacon that ingress relayed: with the barriers of the port's
 * own set, its address and its number, and what the switch says of the link, if that is due.
 */
static struct desc clone_of(struct desc d, __u32 port)
{
	const struct bl_pair *mine = &d.relay[ports[port].out_set];
	const __u16 tick = BL_BE16((__u16)d.ts); /* relay_mark() */
	struct bl_sw_lane lane;

	map_get(sk->maps.sw_lanes, d.lane, &lane);
	say(&d, (__u16)(0x700 + port), 0, lane.now_ns, SAID);
	if (said[port][d.lane] != tick)
		said[port][d.lane] = tick;
	else
		d.says = 2;
	d.ts = 0;
	d.b = mine->b;
	d.c = mine->c;
	d.port = (__u16)port;
	memcpy(d.src, ports[port].mac, 6);
	return d;
}

static __u64 carried_on(__u32 port, __u32 lane)
{
	struct bl_carried c;

	map_get(sk->maps.sw_carried, port, &c);
	return c.lane[lane].b;
}

/*
 * A beacon from its arrival until it leaves on every port; the port that it came from gets a clone
 * as well.
 */
static void clone__whole_way(void **state)
{
	struct desc d = beacon_frame(0, T0 - 100), r;
	struct frame in;
	__u32 p;

	(void)state;
	d.c = T0 - 200;
	build(&in, &d);
	send_through(bpf_program__fd(sk->progs.bl_switch_xdp), 0, &in);
	counts_moved(sk->maps.counts, counted, 5,
		     WANT({ 0, BL_R_RELAYED }, { 0, BL_R_JOINED }, { 0, BL_R_CLONE_SENT },
			  { 1, BL_R_CLONE_SENT }, { 2, BL_R_CLONE_SENT }, { 3, BL_R_CLONE_SENT }));
	r = relayed(d, T0 - 100, T0 - 100);
	r.relay[0].c = r.relay[1].c = T0 - 200; /* d.c */
	for (p = 0; p < NPORTS; p++)
		expect_arrival(p, (struct desc[]){ clone_of(r, p) });
	expect_no_arrival();
}

/*
 * A switch stores the policy that its neighbour's beacon says, and writes its own into the beacons
 * on every port.
 */
static void clone__says_the_policy(void **state)
{
	struct bl_rsv_cfg rsv = { .on = 1, .pair_shift = 2 };
	struct desc d = beacon_frame(0, T0 - 100), r, w;
	struct bl_life life;
	struct frame in;
	__u32 p;

	(void)state;
	map_put(sk->maps.rsv_cfg, 0, &rsv);
	d.port = (BL_POLICY_TOP + 1) << 8;
	build(&in, &d);
	send_through(bpf_program__fd(sk->progs.bl_switch_xdp), 0, &in);
	map_get(sk->maps.sw_lives, 0, &life);
	assert_int_equal(life.policy, BL_POLICY_TOP + 1);
	assert_int_equal(life.neighbour, d.node);
	counts_take(sk->maps.counts, counted);
	r = relayed(d, T0 - 100, T0 - 100);
	for (p = 0; p < NPORTS; p++) {
		w = clone_of(r, p);
		w.port |= (BL_POLICY_PL2 + 1) << 8;
		expect_arrival(p, &w);
	}
	expect_no_arrival();
	rsv = (struct bl_rsv_cfg){ 0 };
	map_put(sk->maps.rsv_cfg, 0, &rsv);
}

/*
 * Frames of a port that are steered through the CPU map: when the last one comes out, it is
 * forwarded or counted just like a frame that arrived on the right CPU.
 */
static void homing__whole_way(void **state)
{
	struct desc d = data_frame(0, 3, T0, T0 - 900), beacon = beacon_frame(0, T0 - 800);
	struct bl_steering h;
	struct frame in;
	int k;

	(void)state;
	all_live(T0 - 1000);
	set_steering(0, (__u32)net.cpu, 1, 0);
	ports[0].home_lane = BL_AWAY;
	map_put(sk->maps.sw_ports, 0, &ports[0]);
	build(&in, &d);
	send_through(bpf_program__fd(sk->progs.bl_switch_xdp), 0, &in);
	expect_arrival(3, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) });
	counts_moved(sk->maps.counts, counted, 2, WANT({ 0, BL_R_STEERED }, { 0, BL_R_FORWARDED }));
	build(&in, &beacon);
	send_through(bpf_program__fd(sk->progs.bl_switch_xdp), 0, &in);
	for (k = 0; k < 1000; k++) {
		map_get(sk->maps.sw_homing, 0, &h);
		if (h.taken == 2)
			break;
		usleep(10000); /* The thread of the CPU map is at work. */
	}
	assert_int_equal(h.sent, 3);
	assert_int_equal(h.taken, 2);
	counts_moved(sk->maps.counts, counted, 2, WANT({ 0, BL_R_STEERED }, { 0, BL_R_BEACON }));
	expect_no_arrival();
	state_take(&after);
	assert_int_equal(after.regs[0].lane[0].b, T0 - 800);
}

/*
 * The beacons of a barred output promise B and no C, whatever way they take; those of the others
 * promise both.
 */
static void clone__barred(void **state)
{
	struct desc d = beacon_frame(0, T0 - 100), r, want;
	struct frame in;
	__u32 p;

	(void)state;
	ports[1].barred = 1;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	build(&in, &d);
	send_through(bpf_program__fd(sk->progs.bl_switch_xdp), 0, &in);
	counts_moved(sk->maps.counts, counted, 5,
		     WANT({ 0, BL_R_RELAYED }, { 0, BL_R_JOINED }, { 0, BL_R_CLONE_SENT },
			  { 1, BL_R_CLONE_SENT }, { 2, BL_R_CLONE_SENT }, { 3, BL_R_CLONE_SENT }));
	r = relayed(d, T0 - 100, T0 - 100);
	for (p = 0; p < NPORTS; p++) {
		want = clone_of(r, p);
		if (p == 1)
			want.c = T0 - BL_TS_OLD;
		expect_arrival(p, &want);
	}
	expect_no_arrival();
}

/* Data that ingress forwarded leaves unchanged, on one port, and is not counted again. */
static void data__whole_way(void **state)
{
	__u32 v;

	(void)state;
	all_live(T0 - 1000);
	for (v = 0; v < 8; v++) {
		struct desc d = v & 1 ? data_frame6(0, 3, T0, T0) : data_frame(0, 3, T0, T0);
		struct frame in;

		d.tags = v >> 1 & 1;
		d.csum = v >> 2;
		build(&in, &d);
		send_through(bpf_program__fd(sk->progs.bl_switch_xdp), 0, &in);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_FORWARDED }));
		expect_arrival(3, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) });
		expect_no_arrival();
		assert_int_equal(carried_on(3, 0), T0 - 1000);
	}
}

/*
 * Each port sends the barriers of its own set, taken from the list that ingress put into the
 * beacon; tagged frames as well.
 */
static void clone__own_set(void **state)
{
	__u64 up = T0 - 100, down = T0 - 900;
	struct frame in;
	__u32 p, v;

	(void)state;
	for (v = 0; v < 3; v++) {
		struct desc d = relayed(beacon_frame(0, 1), up, down);

		d.tags = v > 0;
		d.ad = v > 1;
		d.relay[0].c = up - 7;
		d.relay[7] = (struct bl_pair){ 0x112233445566, 0x99aabbccddee };
		build(&in, &d);
		send_through(to_all, 0, &in);
		counts_moved(sk->maps.counts, counted, 4,
			     WANT({ 0, BL_R_CLONE_SENT }, { 1, BL_R_CLONE_SENT },
				  { 2, BL_R_CLONE_SENT }, { 3, BL_R_CLONE_SENT }));
		for (p = 0; p < NPORTS; p++)
			expect_arrival(p, (struct desc[]){ clone_of(d, p) });
		expect_no_arrival();
		/*
		 * The first value is stored as it is, later ones are extended relative to what the
		 * port carried: only the low 48 bits are certain.
		 */
		assert_int_equal(carried_on(UPLINK, 0) & BL_TS_MASK, up & BL_TS_MASK);
		assert_int_equal(carried_on(1, 0) & BL_TS_MASK, down & BL_TS_MASK);
		up += BEACON_NS;
		down += BEACON_NS;
	}
}

/* The last set of the eight. */
static void clone__last_set(void **state)
{
	struct desc d = relayed(beacon_frame(0, 1), 0, 0);
	struct frame in;

	(void)state;
	ports[1].out_set = 7;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	d.relay[7] = (struct bl_pair){ T0, T0 - 1 };
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_SENT }));
	expect_arrival(1, (struct desc[]){ clone_of(d, 1) });
	expect_no_arrival();
}

/* If no input of a set has joined, there is nothing to promise on its ports. */
static void clone__set_without_input(void **state)
{
	struct desc d = relayed(beacon_frame(UPLINK, 1), 0, T0);
	struct frame in;

	(void)state;
	build(&in, &d);
	send_through(to_all, UPLINK, &in);
	counts_moved(sk->maps.counts, counted, 4,
		     WANT({ 0, BL_R_CLONE_SENT }, { 1, BL_R_CLONE_SENT }, { 2, BL_R_CLONE_STALE },
			  { 3, BL_R_CLONE_SENT }));
	expect_arrival(0, (struct desc[]){ clone_of(d, 0) });
	expect_arrival(1, (struct desc[]){ clone_of(d, 1) });
	expect_arrival(3, (struct desc[]){ clone_of(d, 3) });
	expect_no_arrival();
	assert_int_equal(carried_on(UPLINK, 0), 0);
}

/*
 * A clone is sent only if its barrier is above what the port carried, to the ns; also across the
 * wrap of the 48 bits.
 */
static void clone__newer_only(void **state)
{
	static const __u64 at[] = { T0, (7001ULL << BL_TS_BITS) - 2, (7001ULL << BL_TS_BITS) };
	struct desc d;
	struct frame in;
	__u32 i, back;

	(void)state;
	for (i = 0; i < sizeof(at) / sizeof(*at); i++) {
		struct bl_carried c = { .lane[0] = { .b = at[i], .said = said[1][0] } };

		map_put(sk->maps.sw_carried, 1, &c);
		for (back = 0; back <= 1000; back += 500) {
			d = relayed(beacon_frame(0, 1), 0, at[i] - back);
			build(&in, &d);
			send_through(to_port, 0, &in);
			counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_STALE }));
			expect_no_arrival();
			assert_int_equal(carried_on(1, 0), at[i]);
		}
		d = relayed(beacon_frame(0, 1), 0, at[i] + 1);
		d.relay[1].c = at[i];
		build(&in, &d);
		send_through(to_port, 0, &in);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_SENT }));
		expect_arrival(1, (struct desc[]){ clone_of(d, 1) });
		assert_int_equal(carried_on(1, 0), at[i] + 1);
	}
	expect_no_arrival();
}

/*
 * A clone that is sent for its C, although its B is below what the port carried. What the port
 * carried stays unchanged: if it fell, a clone that repeats it would count as news. A rise of
 * another set's C sends nothing on this port.
 */
static void clone__for_its_commit(void **state)
{
	struct bl_carried c = { .lane[0].b = T0 };
	struct desc d = relayed(beacon_frame(0, 1), 0, T0 - 500);
	struct frame in;

	(void)state;
	map_put(sk->maps.sw_carried, 1, &c);
	d.relay[1].c = T0 - 400;
	d.port = 1u << 0 | 1u << 2; /* a bit mask of sets, as ingress writes it */
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_STALE }));
	d.port = 1u << 1;
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_SENT }));
	expect_arrival(1, (struct desc[]){ clone_of(d, 1) });
	assert_int_equal(carried_on(1, 0), T0);
	d.port = 0;
	d.relay[1].b = T0 - 1;
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_STALE }));
	/* A clone whose B is above what was carried raises that value as usual. */
	d.port = 1u << 1;
	d.relay[1].b = T0 + 7;
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_SENT }));
	expect_arrival(1, (struct desc[]){ clone_of(d, 1) });
	assert_int_equal(carried_on(1, 0), T0 + 7);
	expect_no_arrival();
}

/*
 * What a port carried is stored per lane: a clone of one lane is not compared with another lane's
 * traffic.
 */
static void clone__by_lane(void **state)
{
	struct bl_carried c = { .lane[0].b = T0, .lane[3].b = T0 - BEACON_NS };
	struct desc d = relayed(beacon_frame(0, 1), 0, T0);
	struct frame in;

	(void)state;
	map_put(sk->maps.sw_carried, 1, &c);
	d.lanes = 4;
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_STALE }));
	d.lane = 3;
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_SENT }));
	expect_arrival(1, (struct desc[]){ clone_of(d, 1) });
	expect_no_arrival();
	assert_int_equal(carried_on(1, 0), T0);
	assert_int_equal(carried_on(1, 3), T0);
}

static void clone__refused(void **state)
{
	struct desc d = relayed(beacon_frame(0, 1), T0, T0);
	__u32 none = 0, beyond = BL_SW_PORTS_MAX + 1;
	struct frame in;

	(void)state;
	build(&in, &d);
	in.n--;
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_SHORT }));
	in.n++;
	map_put(sk->maps.sw_ifindex, net.ifindex[1], &none);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_COUNTS_UNKNOWN, BL_R_UNKNOWN_PORT }));
	map_put(sk->maps.sw_ifindex, net.ifindex[1], &beyond);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_COUNTS_UNKNOWN, BL_R_UNKNOWN_PORT }));
	expect_no_arrival();
}

/* ---- to a metered port ---- */

/*
 * Clones go into the port's queue, with its own barriers; a clone that is not newer does not. If
 * data were redirected past the queue, ingress would be at fault, not this program.
 */
static void clone__metered(void **state)
{
	struct desc d = relayed(beacon_frame(0, 1), T0 - 100, T0);
	struct bpf_devmap_val v = { .ifindex = net.ifindex[1] };
	struct frame in, out, want;
	__u64 none = 0;

	(void)state;
	pace_setup(sk->maps.port_due, 10, BL_PORT_QUEUE(NPORTS, 0));
	map_put(sk->maps.port_busy, 1, &none);
	map_put(sk->maps.port_tx, 1, &v);
	ports[1].metered = 1;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	build(&in, &d);
	send_through(to_all, 0, &in);
	counts_moved(sk->maps.counts, counted, 4,
		     WANT({ 0, BL_R_CLONE_SENT }, { 1, BL_R_QUEUED }, { 2, BL_R_CLONE_SENT },
			  { 3, BL_R_CLONE_SENT }));
	expect_arrival(0, (struct desc[]){ clone_of(d, 0) });
	expect_arrival(2, (struct desc[]){ clone_of(d, 2) });
	expect_arrival(3, (struct desc[]){ clone_of(d, 3) });
	expect_no_arrival();
	assert_int_equal(carried_on(1, 0) & BL_TS_MASK, T0 & BL_TS_MASK);
	assert_int_equal(balanced(BL_PORT_QUEUE(NPORTS, 0)), 1);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_STALE }));
	assert_int_equal(turn(sk->progs.bl_port_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_PACED }));
	d = clone_of(d, 1);
	build(&want, &d);
	same_frame(&out, &want);
	/* A clone that finds no room in the queue does not change what the port carried. */
	queue_limit(BL_PORT_QUEUE(1, BL_CL_DATA), 0, 0, 0);
	d = relayed(beacon_frame(0, 1), 0, T0 + 1);
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_QUEUE_FULL }));
	assert_int_equal(carried_on(1, 0) & BL_TS_MASK, T0 & BL_TS_MASK);
	expect_no_arrival();
	assert_int_equal(balanced(BL_PORT_QUEUE(NPORTS, 0)), 0);
}

/* Any other frame in the device map leaves unchanged. */
static void other__untouched(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0);
	struct frame in, got;
	__u32 i;

	(void)state;
	for (i = 0; i < 3; i++) {
		d.tags = (__u8)i;
		if (i == 2) {
			d = beacon_frame(0, T0);
			d.tags = 2; /* two tags: the program does not parse it */
		}
		build(&in, &d);
		send_through(to_port, 0, &in);
		counts_moved(sk->maps.counts, counted, 0, NULL, 0);
		receive_frame(1, &got, 5000);
		if (i == 2) {
			/*
			 * Not all kernels report the type of the outer tag in the auxiliary data.
			 */
			assert_int_equal(got.n, in.n);
			assert_memory_equal(got.p + 16, in.p + 16, in.n - 16);
		} else {
			same_frame(&got, &in);
		}
	}
	expect_no_arrival();
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_DEVMAP, BY_DEVMAP | BY_SW | BY_PORT);
}

#define CASE(f) cmocka_unit_test_setup(f, devmap_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(clone__whole_way),
		CASE(clone__says_the_policy),
		CASE(homing__whole_way),
		CASE(clone__barred),
		CASE(data__whole_way),
		CASE(clone__own_set),
		CASE(clone__last_set),
		CASE(clone__set_without_input),
		CASE(clone__newer_only),
		CASE(clone__for_its_commit),
		CASE(clone__by_lane),
		CASE(clone__metered),
		CASE(clone__refused),
		CASE(other__untouched),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, live_setup, NULL);
}
