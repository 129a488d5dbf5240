// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_switch_xdp with the static table: parsing, forwarding, refusals, the clock and the relay of
 * beacons. Registers over time (joining, exclusion, lanes) are tested in test_switch_regs.c,
 * routing tables in test_switch_l3.c.
 */
#include "tests/prog/switch/switch_util.h"

static const __u32 far_from_all = 77; /* a host behind no port */

/* ---- parse ---- */

static void check_odd(const struct frame *f, enum bl_reason why, void *arg)
{
	struct frame out;

	(void)arg;
	if (why != BL_R_NOT_OURS) {
		refuse_frame(0, f, why);
		return;
	}
	state_take(&before);
	run_on(0, f, &out, XDP_PASS);
	same_frame(&out, f);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_NOT_OURS }));
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void parse__odd_frames(void **state)
{
	(void)state;
	all_live(T0 - 1000);
	each_odd(T0, check_odd, NULL);
}

static void port__not_a_port_passes(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0);
	struct frame in, out;
	__u32 none = 0;

	(void)state;
	map_put(sk->maps.sw_ifindex, net.ifindex[3], &none);
	build(&in, &d);
	run_on(3, &in, &out, XDP_PASS);
	same_frame(&out, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_COUNTS_UNKNOWN, BL_R_NOT_OURS }));
}

static void port__number_beyond_the_ports(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0);
	struct frame in, out;
	__u32 beyond = BL_SW_PORTS_MAX + 1;

	(void)state;
	map_put(sk->maps.sw_ifindex, net.ifindex[3], &beyond);
	build(&in, &d);
	run_on(3, &in, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_COUNTS_UNKNOWN, BL_R_UNKNOWN_PORT }));
}

/* ---- forwarding ---- */

/* The very first frame, and every byte of state that it changes. */
static void l2__first_frame(void **state)
{
	const __u64 b = T0 - 10, c = T0 - 20;
	struct desc d = data_frame(0, 1, T0, b);
	struct bl_pair given = { b, c };
	static struct state want;
	__u32 s;

	(void)state;
	d.c = c;
	state_take(&want);
	step(0, &d, XDP_REDIRECT, &d, WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_JOINED }));
	want.regs[0].lane[0] = (struct bl_reg){ .b = b,
						.c = c,
						.heard_ns = 1,
						.fresh_ns = 1,
						.fresh_c_ns = 1,
						.state = BL_REG_LIVE | BL_REG_IN,
						.lanes = 1,
						.frames = 1 };
	want.lanes[0] = (struct bl_sw_lane){
		.now_ns = T0, .limit_ns = T0 + BOUND, .watch_ns = 1, .out = { given, given }
	};
	for (s = 0; s < 2; s++) {
		want.trees[s].b[4] = want.trees[s].b[0] = b;
		want.trees[s].c[4] = want.trees[s].c[0] = c;
		want.trees[s].apart = 1;
		want.trees[s].two = BL_TREE_STAY;
	}
	want.carried[1].lane[0] = (struct bl_carried_lane){ .b = b, .frames = 1 };
	assert_memory_equal(&after, &want, sizeof(want));
}

/*
 * The example in switch_abi.h: the up-link gets the minimum of the hosts, a host gets that of hosts
 * and up-link.
 */
static void l2__each_output_its_set(void **state)
{
	const __u64 low = T0 - 1000, high = T0 - 500;
	const __u32 hosts[] = { 0, 1, 3 };
	struct desc d;
	__u32 i, to;

	(void)state;
	all_live(low);
	for (i = 0; i < 3; i++)
		feed(hosts[i], high);
	counts_take(sk->maps.counts, counted);
	for (to = 1; to < NPORTS; to++) {
		__u64 b = to == UPLINK ? high : low;

		d = data_frame(0, to, T0, high);
		step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
		     WANT({ 0, BL_R_FORWARDED }));
		assert_int_equal(after.carried[to].lane[0].b, b);
	}
	/* The up-link rises above the hosts, so it does not hold the outputs back any more. */
	feed(UPLINK, T0);
	counts_take(sk->maps.counts, counted);
	d = data_frame(UPLINK, 1, T0, T0);
	step(UPLINK, &d, XDP_REDIRECT, (struct desc[]){ sent(d, high, high) },
	     WANT({ UPLINK, BL_R_FORWARDED }));
}

/*
 * Both families, tagged or not, with and without a UDP checksum, all opcodes that are sent in UDP,
 * and several lengths.
 */
static void l2__all_variants(void **state)
{
	static const __u8 ops[] = { BL_OP_DATA, BL_OP_FRAG, BL_OP_CREDIT, BL_OP_NAK, BL_OP_PROBE };
	static const __u32 bodies[] = { 0, 1, 2, 37, 512, MTU - 40 - 8 - 24 };
	const __u64 b = T0 - 1000;
	__u32 v, i, k;

	(void)state;
	all_live(b);
	for (v = 0; v < 8; v++) {
		for (i = 0; i < sizeof(ops); i++) {
			for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
				struct desc d = v & 1 ? data_frame6(3, 1, T0, b)
						      : data_frame(3, 1, T0, b);

				d.tags = v >> 1 & 1;
				d.csum = v >> 2 & 1;
				d.op = ops[i];
				d.ts = d.op == BL_OP_DATA ? T0 : 0;
				d.body = bodies[k];
				d.c = b - 1 - k; /* rewritten to b: the checksum has to follow */
				step(3, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
				     WANT({ 3, BL_R_FORWARDED }));
			}
		}
	}
}

/* The checksum stays correct through every carry, over many frames. */
static void l2__checksum_follows(void **state)
{
	__u64 x = 88172645463325252ULL;
	int i;

	(void)state;
	all_live(T0 - 1000000);
	for (i = 0; i < 200; i++) {
		struct desc d = i & 1 ? data_frame6(0, 1, T0, T0) : data_frame(0, 1, T0, T0);

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		d.csum = true;
		d.b = T0 - 1000000 - (x & 0xffffffff);
		d.c = T0 - 1000000 - (x >> 32);
		d.psn = (__u32)(x >> 16);
		step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000000, T0 - 1000000) },
		     WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_BARRIER_OLD }));
	}
}

/* A checksum that comes out as 0 is sent as 0xffff: 0 would mean that there is none. */
static void l2__checksum_of_zero(void **state)
{
	struct desc d, want;
	__u32 v, psn;

	(void)state;
	all_live(T0 - 1000);
	for (v = 0; v < 2; v++) {
		struct frame f = { .n = 0 };
		__u32 at;

		d = v ? data_frame6(0, 1, T0, T0 - 2000) : data_frame(0, 1, T0, T0 - 2000);
		d.csum = true;
		at = hdr_off(&d) - 2;
		for (psn = 0; psn < 65536; psn++) {
			d.psn = psn;
			want = sent(d, T0 - 1000, T0 - 1000);
			build(&f, &want);
			if (f.p[at] == 0xff && f.p[at + 1] == 0xff)
				break;
		}
		assert_true(psn < 65536);
		step(0, &d, XDP_REDIRECT, &want,
		     WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_BARRIER_OLD }));
	}
}

static void l2__to_where_it_came_from(void **state)
{
	struct desc d = data_frame(1, 1, T0, T0);

	(void)state;
	all_live(T0 - 1000);
	refuse(1, &d, BL_R_LOOPED);
}

static void l2__unknown_address(void **state)
{
	struct desc d = data_frame(0, far_from_all, T0, T0);

	(void)state;
	all_live(T0 - 1000);
	refuse(0, &d, BL_R_NO_ROUTE);
	host_mac(d.dst, 1);
	d.dst[0] ^= 1;
	refuse(0, &d, BL_R_NO_ROUTE);
}

static void l2__address_zero_is_no_free_way(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0);

	(void)state;
	all_live(T0 - 1000);
	memset(d.dst, 0, 6);
	refuse(3, &d, BL_R_NO_ROUTE);
}

/* Four addresses of one bucket lead to four ports; a fifth, not in the table, has no route. */
static void l2__full_bucket(void **state)
{
	__u32 found[BL_FDB_WAYS + 1], n = 0, h;
	__u8 mac[6];

	(void)state;
	all_live(T0 - 1000);
	for (h = 1000; n < BL_FDB_WAYS + 1; h++) {
		host_mac(mac, h);
		if (bl_fdb_hash(bl_mac48(mac)) == 5)
			found[n++] = h;
		assert_true(h < 60000);
	}
	for (n = 0; n < BL_FDB_WAYS; n++) {
		host_mac(mac, found[n]);
		set_fdb(mac, n);
	}
	for (n = 0; n < BL_FDB_WAYS; n++) {
		__u32 in = n == 0 ? 1 : 0;
		struct desc d = data_frame(in, found[n], T0, T0 - 1000);

		step(in, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) },
		     WANT({ in, BL_R_FORWARDED }));
		assert_int_equal(after.carried[n].lane[0].b, T0 - 1000);
	}
	refuse(0, (struct desc[]){ data_frame(0, found[BL_FDB_WAYS], T0, T0) }, BL_R_NO_ROUTE);
}

static void l2__port_not_in_use(void **state)
{
	struct desc d = data_frame(0, far_from_all, T0, T0);

	(void)state;
	all_live(T0 - 1000);
	set_fdb(d.dst, 9);
	refuse(0, &d, BL_R_UNKNOWN_PORT);
	set_fdb(d.dst, BL_SW_PORTS_MAX);
	refuse(0, &d, BL_R_UNKNOWN_PORT);
}

static void l2__mtu(void **state)
{
	__u32 v;

	(void)state;
	all_live(T0 - 1000);
	for (v = 0; v < 4; v++) {
		struct desc d = v & 1 ? data_frame6(0, 1, T0, T0 - 1000)
				      : data_frame(0, 1, T0, T0 - 1000);

		d.tags = v >> 1; /* A tag does not count towards the MTU. */
		d.body = MTU - (d.v6 ? 40 : 20) - 8 - 24;
		step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) },
		     WANT({ 0, BL_R_FORWARDED }));
		d.body++;
		refuse(0, &d, BL_R_TOO_BIG);
	}
}

static void l2__no_device(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0);
	__u32 port = 1;

	(void)state;
	all_live(T0 - 1000);
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.sw_tx), &port), 0);
	refuse(0, &d, BL_R_REDIRECT_FAILED);
}

/* Before an input of a set has joined, its barriers promise nothing: they are BL_TS_OLD back. */
static void l2__nothing_to_promise(void **state)
{
	struct desc d = data_frame(UPLINK, 3, T0, T0 - 1000);
	struct desc first = data_frame(0, UPLINK, T0, T0 - 900);

	(void)state;
	/* The up-link feeds set 1 only, so set 0 has no input yet. */
	step(UPLINK, &d, XDP_REDIRECT, &d,
	     WANT({ UPLINK, BL_R_FORWARDED }, { UPLINK, BL_R_JOINED }));
	ports[3].in_sets = 0;
	map_put(sk->maps.sw_ports, 3, &ports[3]);
	d = data_frame(3, UPLINK, T0, T0 - 1000);
	d.csum = true;
	step(3, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - BL_TS_OLD, T0 - BL_TS_OLD) },
	     WANT({ 3, BL_R_FORWARDED }, { 3, BL_R_JOINED }));
	assert_int_equal(after.carried[UPLINK].lane[0].b, 0);
	step(0, &first, XDP_REDIRECT, &first, WANT({ 0, BL_R_FORWARDED }, { 0, BL_R_JOINED }));
}

/* ---- the clock ---- */

static void expect_limit(__u64 limit)
{
	struct desc d = data_frame(0, 1, limit, limit), be = beacon_frame(0, limit);

	all_live(T0 - 1000);
	d.b = limit + 1;
	refuse(0, &d, BL_R_BARRIER_AHEAD);
	d.b = limit;
	d.c = limit + 1;
	refuse(0, &d, BL_R_BARRIER_AHEAD);
	d.c = limit;
	d.ts = limit + 1;
	refuse(0, &d, BL_R_TS_AHEAD);
	be.b = limit + 1;
	refuse(0, &be, BL_R_BARRIER_AHEAD);
	be.b = limit;
	be.c = limit + 1;
	refuse(0, &be, BL_R_BARRIER_AHEAD);
	d.ts = limit;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) },
	     WANT({ 0, BL_R_FORWARDED }));
	assert_int_equal(after.regs[0].lane[0].b, limit);
	/* Frames without a message have no timestamp; the field is not checked. */
	d.op = BL_OP_FRAG;
	d.ts = limit + 1;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) },
	     WANT({ 0, BL_R_FORWARDED }));
}

static void clock__ahead(void **state)
{
	(void)state;
	expect_limit(T0 + BOUND);
}

/* Where silent hosts promise ahead of their clocks, the limit is higher by ahead_ns. */
static void clock__promised_ahead(void **state)
{
	(void)state;
	cfg.ahead_ns = 150000;
	set_cfg();
	expect_limit(T0 + BOUND + 150000);
}

/* A data frame reads the clock only if its times are beyond what the last reading allows. */
static void clock__read_again_when_needed(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 + BOUND);

	(void)state;
	all_live(T0 - 1000);
	clock_at(sk->maps.clock, T0 + 1000);
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) },
	     WANT({ 0, BL_R_FORWARDED }));
	assert_int_equal(after.lanes[0].now_ns, T0);
	d.b = d.c = d.ts = T0 + BOUND + 1000;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) },
	     WANT({ 0, BL_R_FORWARDED }));
	assert_int_equal(after.lanes[0].now_ns, T0 + 1000);
	assert_int_equal(after.lanes[0].limit_ns, T0 + 1000 + BOUND);
	assert_int_equal(after.lanes[0].watch_ns, 1 + 1000);
}

static void clock__void(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 + BOUND), be = beacon_frame(0, T0);

	(void)state;
	all_live(T0 - 1000);
	clock_void(sk->maps.clock);
	refuse(0, &be, BL_R_CLOCK_VOID);
	/* Frames within the limit of the last good reading still pass. */
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) },
	     WANT({ 0, BL_R_FORWARDED }));
	d.ts = T0 + BOUND + 1;
	refuse(0, &d, BL_R_CLOCK_VOID);
}

static void clock__never_set(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0), be = beacon_frame(0, T0);
	struct bl_clock none = { 0 };

	(void)state;
	map_put(sk->maps.clock, 0, &none);
	refuse(0, &d, BL_R_CLOCK_VOID);
	refuse(0, &be, BL_R_CLOCK_VOID);
}

/*
 * Through the wrap of the 48 bits, one ns at a time: registers continue in 64 bits, the wire starts
 * again at 0.
 */
static void clock__wrap(void **state)
{
	const __u64 wrap = 7001ULL << BL_TS_BITS;
	__s64 k;

	(void)state;
	clock_at(sk->maps.clock, wrap - 20);
	all_live(wrap - 8);
	for (k = -7; k <= 7; k++) {
		struct desc d = data_frame(0, UPLINK, wrap + (__u64)k, wrap + (__u64)k);
		__u64 b = wrap + (__u64)k;

		feed(1, b);
		feed(3, b);
		counts_take(sk->maps.counts, counted);
		d.csum = true;
		step(0, &d, XDP_REDIRECT, &d, WANT({ 0, BL_R_FORWARDED }));
		assert_int_equal(after.regs[0].lane[0].b, b);
		assert_int_equal(after.lanes[0].out[0].b, b);
	}
	/* The clock is still 20 ns before the wrap, the limit is beyond it. */
	refuse(0, (struct desc[]){ beacon_frame(0, wrap - 20 + BOUND + 1) }, BL_R_BARRIER_AHEAD);
	clock_at(sk->maps.clock, wrap + (3ULL << 40));
	feed(0, wrap);
	counts_take(sk->maps.counts, counted);
	refuse(0, (struct desc[]){ beacon_frame(0, wrap + (1ULL << 47)) }, BL_R_BARRIER_AHEAD);
}

/* ---- beacons ---- */

static void beacon__taken_in(void **state)
{
	struct desc d = beacon_frame(0, T0);

	(void)state;
	all_live(T0 - 1000);
	d.c = T0 - 7;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	assert_int_equal(after.regs[0].lane[0].b, T0);
	assert_int_equal(after.regs[0].lane[0].c, T0 - 7);
	d.tags = 1;
	d.b = T0 + 1;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	assert_int_equal(after.regs[0].lane[0].b, T0 + 1);
}

static void beacon__refused(void **state)
{
	struct desc d = beacon_frame(0, T0);
	struct frame in, out;
	__u8 tags;

	(void)state;
	all_live(T0 - 1000);
	for (tags = 0; tags < 2; tags++) {
		d = beacon_frame(0, T0);
		d.tags = tags;
		/* What is behind a beacon would be cloned to all ports, or is too long for them. */
		build(&in, &d);
		memset(in.p + in.n, 0x5a, BL_BEACON_SPARE + 1);
		in.n += BL_BEACON_SPARE + 1;
		run_on(0, &in, &out, XDP_DROP);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_BAD_LENGTH }));
		counts_take(sk->maps.counts, counted);
		d.node = NODE_ID;
		refuse(0, &d, BL_R_LOOPED);
		d.node = NODE_ID + 1;
		d.tai = 36;
		refuse(0, &d, BL_R_TAI_MISMATCH);
		d.tai = -37;
		refuse(0, &d, BL_R_TAI_MISMATCH);
	}
}

static void beacon__negative_tai(void **state)
{
	struct desc d = beacon_frame(0, T0);

	(void)state;
	all_live(T0 - 1000);
	cfg.tai_offset_s = -2;
	set_cfg();
	d.tai = -2;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }));
	d.tai = (__s16)(65536 - 2 + 1);
	refuse(0, &d, BL_R_TAI_MISMATCH);
}

/* The very first barrier is relayed; sets without an input get 0. */
static void relay__first(void **state)
{
	struct desc d = beacon_frame(UPLINK, T0 - 5), want;

	(void)state;
	d.c = T0 - 9;
	memset(d.relay, 0xee, sizeof(d.relay)); /* undefined on receipt: every byte is written */
	d.port = 0x1234;
	d.psn = 0x01020304;
	want = relayed(d, 0, T0 - 5);
	/* The neighbour's policy stays until the device map writes the switch's own. */
	want.port = 0x1200;
	want.relay[0].c = T0 - BL_TS_OLD;
	want.relay[1].c = T0 - 9;
	step(UPLINK, &d, XDP_REDIRECT, &want,
	     WANT({ UPLINK, BL_R_RELAYED }, { UPLINK, BL_R_JOINED }));
	assert_int_equal(after.lanes[0].relayed[0], 0);
	assert_int_equal(after.lanes[0].relayed[1], T0 - 5);
}

/* A relay is due when the minimum of any one set has reached the next tick, to the ns. */
static void relay__next_tick(void **state)
{
	const __u64 b = T0 - 10 * BEACON_NS;
	__u64 up = next_relay(b - NPORTS); /* The beacon of the first port to join was relayed. */
	struct desc d;
	__u8 tags;

	(void)state;
	all_live(b);
	assert_int_equal(after.lanes[0].relayed[0], b - NPORTS);
	assert_int_equal(after.lanes[0].relay_at[0], up - 1);
	assert_int_equal(after.lanes[0].relay_at[1], up - 1);
	feed(0, b + 5 * BEACON_NS);
	feed(1, b + 5 * BEACON_NS);
	counts_take(sk->maps.counts, counted);
	for (tags = 0; tags < 2; tags++) {
		d = beacon_frame(3, up - 1);
		d.tags = tags;
		take_in(3, &d, WANT({ 3, BL_R_BEACON }));
		/* Set 0 reaches the tick; set 1, which waits for the up-link at b, goes along. */
		d.b = d.c = up;
		memset(d.relay, 0x55, sizeof(d.relay));
		step(3, &d, XDP_REDIRECT, (struct desc[]){ relayed(d, up, b) },
		     WANT({ 3, BL_R_RELAYED }));
		assert_int_equal(after.lanes[0].relayed[0], up);
		assert_int_equal(after.lanes[0].relayed[1], b);
		take_in(3, &d, WANT({ 3, BL_R_BEACON }));
		up = next_relay(up);
	}
	/* Now set 1 reaches its tick alone. */
	d = beacon_frame(UPLINK, next_relay(b) - 1);
	take_in(UPLINK, &d, WANT({ UPLINK, BL_R_BEACON }));
	d.b = d.c = next_relay(b);
	step(UPLINK, &d, XDP_REDIRECT, (struct desc[]){ relayed(d, after.lanes[0].out[0].b, d.b) },
	     WANT({ UPLINK, BL_R_RELAYED }));
	/* The next relay is due at the next tick: intervals without a relay are not made up for. */
	d.b = d.c = next_relay(b) + BEACON_NS - 1;
	take_in(UPLINK, &d, WANT({ UPLINK, BL_R_BEACON }));
}

/*
 * A C that was behind B and rises is relayed at once, although B has not risen: by a beacon whose
 * own B is old. The sets whose C rose are marked, so that their clones are sent.
 */
static void relay__commit(void **state)
{
	const __u64 b = T0 - 2 * BEACON_NS;
	struct desc d, want;
	__u32 p;

	(void)state;
	all_live(b);
	/* No input has a C behind its B, so a C that rises without B waits for the tick. */
	d = beacon_frame(0, bus_now - BL_TS_OLD);
	d.c = b + 500;
	take_in(0, &d, WANT({ 0, BL_R_BEACON }, { 0, BL_R_BARRIER_OLD }));
	/* Host 3 sends a PREP at b + 600 that is not acknowledged; all others are ahead. */
	for (p = 0; p < NPORTS - 1; p++)
		feed(p, b + 700);
	d = data_frame(3, 0, b + 600, b + 650);
	d.op = BL_OP_PREP;
	d.c = b + 600;
	counts_take(sk->maps.counts, counted);
	step(3, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b + 650, b + 600) },
	     WANT({ 3, BL_R_FORWARDED }));
	/* The PREP is acknowledged: the least C of either set is now b + 700. */
	d = beacon_frame(3, bus_now - BL_TS_OLD);
	d.c = b + 800;
	want = relayed(d, b + 650, b + 650);
	want.relay[0].c = want.relay[1].c = b + 700;
	want.port = 3; /* the bits of sets 0 and 1, as ingress leaves them for the device map */
	step(3, &d, XDP_REDIRECT, &want, WANT({ 3, BL_R_RELAYED }, { 3, BL_R_BARRIER_OLD }));
	/* The rise is relayed only once. */
	take_in(3, &d, WANT({ 3, BL_R_BEACON }, { 3, BL_R_BARRIER_OLD }));
	d.c += 100;
	take_in(3, &d, WANT({ 3, BL_R_BEACON }, { 3, BL_R_BARRIER_OLD }));
}

/*
 * A PREP is not a best-effort message: one that is sent again has a timestamp below the barrier,
 * which is no error. A timestamp beyond the clock's limit is refused.
 */
static void prep__old_and_ahead(void **state)
{
	struct desc d = data_frame(0, UPLINK, T0 - 90000, T0 - 10);

	(void)state;
	all_live(T0 - 10);
	d.op = BL_OP_PREP;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 10, T0 - 10) },
	     WANT({ 0, BL_R_FORWARDED }));
	d.ts = T0 + BOUND;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 10, T0 - 10) },
	     WANT({ 0, BL_R_FORWARDED }));
	d.ts++;
	refuse(0, &d, BL_R_TS_AHEAD);
	/* An ACK carries the timestamp too, but only the sender of the message uses it. */
	d.op = BL_OP_ACK;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 10, T0 - 10) },
	     WANT({ 0, BL_R_FORWARDED }));
}

/*
 * A C that waits for a dead input falls far behind. On the wire it is limited to BL_TS_OLD, since
 * an older one would look as if it were ahead.
 */
static void relay__old_commit(void **state)
{
	struct desc d, want;

	(void)state;
	feed(0, T0 - 5000);
	clock_at(sk->maps.clock, T0 + 2 * BL_TS_OLD);
	counts_take(sk->maps.counts, counted);
	d = beacon_frame(0, bus_now);
	d.c = T0 + 1000;
	want = relayed(d, bus_now, bus_now);
	want.relay[0].c = want.relay[1].c = bus_now - BL_TS_OLD;
	step(0, &d, XDP_REDIRECT, &want, WANT({ 0, BL_R_RELAYED }));
	d = data_frame(0, 1, bus_now, bus_now);
	d.c = T0 + 1000;
	d.csum = true;
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, bus_now, bus_now - BL_TS_OLD) },
	     WANT({ 0, BL_R_FORWARDED }));
}

/* Returns @d as the switch forwards it; the hop bits of these outputs are 0. */
static struct desc sent_by(struct desc d, __u64 b)
{
	d.flag_byte = 0;
	return sent(d, b, b);
}

/* Barriers that another node than the neighbour wrote are not used, whatever frame carries them. */
static void hop__only_the_neighbours(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 10), b;

	(void)state;
	all_live(T0 - 1000);
	/* A frame with a switch's hop bits arrives on a host's port. */
	d.flag_byte = BL_HOP_LEAF;
	refuse(0, &d, BL_R_UNSWITCHED);
	d.flag_byte = BL_HOP_TOP;
	refuse(0, &d, BL_R_UNSWITCHED);
	d.op = BL_OP_PREP;
	refuse(0, &d, BL_R_UNSWITCHED);
	/* The up-link's beacons say which hop bits its frames have. */
	b = beacon_frame(UPLINK, T0 - 900);
	b.flag_byte = BL_HOP_TOP;
	take_in(UPLINK, &b, WANT({ UPLINK, BL_R_BEACON }));
	assert_int_equal(after.regs[UPLINK].lane[0].hop, BL_HOP_TOP);
	assert_int_equal(after.regs[UPLINK].lane[BL_LANES_MAX - 1].hop, BL_HOP_TOP);
	d = data_frame(UPLINK, 1, T0, T0 - 800);
	d.flag_byte = BL_HOP_LEAF_UP; /* from another leaf switch, not rewritten by the spine */
	refuse(UPLINK, &d, BL_R_UNSWITCHED);
	d.flag_byte = 0;
	refuse(UPLINK, &d, BL_R_UNSWITCHED);
	d.flag_byte = BL_HOP_TOP;
	step(UPLINK, &d, XDP_REDIRECT, (struct desc[]){ sent_by(d, T0 - 1000) },
	     WANT({ UPLINK, BL_R_FORWARDED }));
	assert_int_equal(after.regs[UPLINK].lane[0].b, T0 - 800);
}

/* A frame whose barriers promise nothing may be from any node: it passes and raises nothing. */
static void hop__old_barriers_pass(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - BL_TS_OLD);

	(void)state;
	all_live(T0 - 1000);
	d.c = d.b;
	d.op = BL_OP_ACK;
	d.flag_byte = BL_HOP_LEAF;
	state_take(&before);
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent_by(d, T0 - 1000) },
	     WANT({ 0, BL_R_FORWARDED }));
	assert_memory_equal(&before.regs, &after.regs, sizeof(after.regs));
	d.b = T0 - 10;
	refuse(0, &d, BL_R_UNSWITCHED);
}

/* No beacon has arrived on the port yet, so a frame may be from any node and is refused. */
static void hop__unknown_until_a_beacon(void **state)
{
	struct desc d = data_frame(UPLINK, 1, T0, T0 - 10), b = beacon_frame(UPLINK, T0 - 900);
	struct bl_port_regs regs = {};
	__u32 l;

	(void)state;
	for (l = 0; l < BL_LANES_MAX; l++)
		regs.lane[l].hop = BL_HOP_UNKNOWN;
	map_put(sk->maps.sw_regs, UPLINK, &regs);
	feed(0, T0 - 950);
	feed(1, T0 - 950);
	feed(3, T0 - 950);
	counts_take(sk->maps.counts, counted);
	for (l = 0; l < 4; l++) {
		d.flag_byte = (__u8)(l << 6);
		refuse(UPLINK, &d, BL_R_UNSWITCHED);
	}
	b.flag_byte = BL_HOP_TOP;
	take_in(UPLINK, &b, WANT({ UPLINK, BL_R_BEACON }, { UPLINK, BL_R_JOINED }));
	step(UPLINK, &d, XDP_REDIRECT, (struct desc[]){ sent_by(d, T0 - 950) },
	     WANT({ UPLINK, BL_R_FORWARDED }));
}

/* Each output writes its own hop bits. */
static void hop__of_the_output(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 10), want;

	(void)state;
	all_live(T0 - 1000);
	ports[1].hop = BL_HOP_LEAF >> 6;
	ports[1].barred = 0;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	want = sent(d, T0 - 1000, T0 - 1000);
	want.flag_byte = BL_HOP_LEAF;
	step(0, &d, XDP_REDIRECT, &want, WANT({ 0, BL_R_FORWARDED }));
}

/*
 * Frames that are not barline's go to the chained program of their port, and not to that of
 * another; ordered frames go to none.
 */
static void chain__by_port(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 10), want;
	const struct bl_hook none = { 0 };
	struct frame odd, out;

	(void)state;
	all_live(T0 - 1000);
	build(&odd, &d);
	odd.p[12] = 0x08; /* ARP */
	odd.p[13] = 0x06;
	chain_to(sk->maps.next_progs, sk->maps.hooks, 1);
	run_on(1, &odd, &out, XDP_TX);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CHAINED }));
	run_on(0, &odd, &out, XDP_PASS);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_NOT_OURS }));
	chain_to(sk->maps.next_progs, sk->maps.hooks, 0);
	want = sent(d, T0 - 1000, T0 - 1000);
	step(0, &d, XDP_REDIRECT, &want, WANT({ 0, BL_R_FORWARDED }));
	unchain(sk->maps.next_progs, 1);
	run_on(1, &odd, &out, XDP_PASS);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CHAINED }));
	map_put(sk->maps.hooks, 0, &none);
	map_put(sk->maps.hooks, 1, &none);
	unchain(sk->maps.next_progs, 0);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_SWITCH, BY_SW);
}

#define CASE(f) cmocka_unit_test_setup(f, switch_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(parse__odd_frames),
		CASE(hop__only_the_neighbours),
		CASE(hop__old_barriers_pass),
		CASE(hop__unknown_until_a_beacon),
		CASE(hop__of_the_output),
		CASE(port__not_a_port_passes),
		CASE(port__number_beyond_the_ports),
		CASE(l2__first_frame),
		CASE(l2__each_output_its_set),
		CASE(l2__all_variants),
		CASE(l2__checksum_follows),
		CASE(l2__checksum_of_zero),
		CASE(l2__to_where_it_came_from),
		CASE(l2__unknown_address),
		CASE(l2__address_zero_is_no_free_way),
		CASE(l2__full_bucket),
		CASE(l2__port_not_in_use),
		CASE(l2__mtu),
		CASE(l2__no_device),
		CASE(l2__nothing_to_promise),
		CASE(clock__ahead),
		CASE(clock__promised_ahead),
		CASE(clock__read_again_when_needed),
		CASE(clock__void),
		CASE(clock__never_set),
		CASE(clock__wrap),
		CASE(beacon__taken_in),
		CASE(beacon__refused),
		CASE(beacon__negative_tai),
		CASE(relay__first),
		CASE(relay__next_tick),
		CASE(relay__commit),
		CASE(prep__old_and_ahead),
		CASE(relay__old_commit),
		CASE(chain__by_port),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
