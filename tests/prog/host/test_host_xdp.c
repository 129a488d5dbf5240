// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_host_xdp: the records in the rings byte for byte, the barrier page, refused frames, and which
 * endpoints are woken when.
 */
#include "tests/prog/host/host_util.h"

static void run_host_xdp(const struct frame *in, int verdict)
{
	struct frame out;
	int v = run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], in, &out);

	if (v != verdict)
		fail_msg("%s: verdict %d, want %d", doing, v, verdict);
	same_frame(&out, in);
}

/* Runs one frame, which must be consumed or dropped, unchanged, and moves the counters by @want. */
static void step(const struct desc *d, const struct counted *want, size_t n)
{
	struct frame in;

	build(&in, d);
	run_host_xdp(&in, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, want, n);
	state_take(&after);
}

/* Frames are counted as they arrive, whatever becomes of them. */
static void forget_frames(struct state *s)
{
	__u32 l;

	for (l = 0; l < BL_LANES_MAX; l++)
		s->page.reg[l].frames = 0;
}

static void refuse_frame(const struct frame *in, enum bl_reason why)
{
	state_take(&before);
	run_host_xdp(in, why == BL_R_NOT_OURS ? XDP_PASS : XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why }));
	state_take(&after);
	forget_frames(&before);
	forget_frames(&after);
	if (memcmp(&before, &after, sizeof(before)))
		fail_msg("%s: a frame refused as %s changed the page or a sleeper", doing,
			 reason_name[why]);
	expect_nothing_stored();
}

static void refuse(const struct desc *d, enum bl_reason why)
{
	struct frame in;

	build(&in, d);
	refuse_frame(&in, why);
}

static void feed_beacon(__u64 b)
{
	struct desc d = beacon_frame(0, b);
	struct frame in;

	build(&in, &d);
	run_host_xdp(&in, XDP_DROP);
	counts_take(sk->maps.counts, counted);
}

/* ---- parse and store ---- */

static void check_odd(const struct frame *f, enum bl_reason why, void *arg)
{
	(void)arg;
	refuse_frame(f, why);
}

static void parse__odd_frames(void **state)
{
	(void)state;
	feed_beacon(T0 - 1000);
	each_odd(T0, check_odd, NULL);
}

/* The first message, and all state that it changes. */
static void store__first_frame(void **state)
{
	struct desc d = data_frame(0, 1, T0 - 5, T0 - 10);
	static struct state want;

	(void)state;
	d.c = T0 - 20;
	state_take(&want);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }, { BL_HC_INGRESS, BL_R_JOINED }));
	expect_stored(0, &d, T0 - 5);
	want.page.barrier = T0 - 10;
	want.page.commit = T0 - 20;
	want.page.now_ns = T0;
	want.page.limit_ns = T0 + BOUND;
	want.page.watch_ns = 1;
	want.page.reg[0] = (struct bl_reg){ .b = T0 - 10,
					    .c = T0 - 20,
					    .heard_ns = 1,
					    .fresh_ns = 1,
					    .fresh_c_ns = 1,
					    .state = BL_REG_LIVE | BL_REG_IN,
					    .lanes = 1,
					    .frames = 1 };
	assert_memory_equal(&after, &want, sizeof(want));
}

/*
 * Both address families, with and without a tag and a UDP checksum, all opcodes, and bodies at the
 * edges of the three record sizes.
 */
static void store__all_variants(void **state)
{
	static const __u8 ops[] = { BL_OP_DATA, BL_OP_FRAG, BL_OP_CREDIT, BL_OP_NAK, BL_OP_PROBE };
	static const __u32 bodies[] = { 0, 1, 215, 216, 217, 1495, 1496, 1497, 3400 };
	__u32 v, i, k;

	(void)state;
	feed_beacon(T0 - 1000);
	for (v = 0; v < 8; v++) {
		for (i = 0; i < sizeof(ops); i++) {
			for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
				struct desc d = v & 1 ? data_frame6(0, 1, T0, T0 - 1000)
						      : data_frame(0, 1, T0, T0 - 1000);

				d.tags = v >> 1 & 1;
				d.csum = v >> 2;
				d.op = ops[i];
				d.body = bodies[k];
				d.psn += k;
				d.dport = (__u16)(BL_PORT_BASE + (v & 1 ? 11 : 10));
				step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
				expect_stored(v & 1 ? 2 : 1, &d, d.op == BL_OP_DATA ? T0 : 0);
				expect_nothing_stored();
			}
		}
	}
}

/* The flags byte of a frame of another lane is stored unchanged. */
static void store__flags(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 1000);

	(void)state;
	d.lane = 2;
	d.lanes = 4;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_stored(0, &d, T0);
	assert_int_equal(got.rec.flags, 3 << 3 | 2);
}

static void store__wrong_endpoint(void **state)
{
	/* free, not active, without a ring, last of the range */
	static const __u16 none[] = { 8, 12, 13, 255 };
	struct desc d = data_frame(0, 1, T0, T0 - 1000);
	__u32 i;

	(void)state;
	feed_beacon(T0 - 2000);
	for (i = 0; i < sizeof(none) / sizeof(*none); i++) {
		d.dport = (__u16)(BL_PORT_BASE + none[i]);
		d.b = d.c = T0 - 1000 + i;
		step(&d, WANT({ BL_HC_INGRESS, BL_R_NO_ENDPOINT }));
		expect_nothing_stored();
		/* the frame itself is valid: its barrier raises the page */
		assert_int_equal(after.page.barrier, T0 - 1000 + i);
	}
	/* an address other than the endpoint's: first the host part, then the family */
	d.dport = BL_PORT_BASE + 10;
	d.daddr[15] = 3;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_NO_ENDPOINT }));
	d = data_frame6(0, 1, T0, d.b);
	d.dport = BL_PORT_BASE + 10;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_NO_ENDPOINT }));
	d.dport = BL_PORT_BASE + 11;
	d.daddr[0] ^= 1;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_NO_ENDPOINT }));
	d.daddr[0] ^= 1;
	d.daddr[15] ^= 1;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_NO_ENDPOINT }));
	expect_nothing_stored();
}

/*
 * With a full ring the message is lost. The barrier still rises, and the reader finds a gap in psn.
 */
/* No other host has these sources; what else is wrong with the frame does not matter. */
static void store__foreign_source(void **state)
{
	static const __u8 lo4[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [13] = 5, [15] = 9 },
			  lo6[16] = { [15] = 1 };
	static const __u8 ops[] = { BL_OP_DATA, BL_OP_CREDIT, BL_OP_PROBE, BL_OP_ACK };
	struct desc d, w;
	__u32 i;

	(void)state;
	feed_beacon(T0 - 1000);
	for (i = 0; i < sizeof(ops); i++) {
		d = data_frame(0, 1, T0 - 5, T0 - 10);
		d.op = ops[i];
		memcpy(d.saddr, lo4, 16);
		refuse(&d, BL_R_FOREIGN_SOURCE);
		memcpy(d.saddr, d.daddr, 16);
		refuse(&d, BL_R_FOREIGN_SOURCE);
		d = data_frame6(0, 1, T0 - 5, T0 - 10);
		d.op = ops[i];
		memcpy(d.saddr, lo6, 16);
		refuse(&d, BL_R_FOREIGN_SOURCE);
		memcpy(d.saddr, d.daddr, 16);
		refuse(&d, BL_R_FOREIGN_SOURCE);
		/* an endpoint of this host, to another address of this host */
		d = data_frame(1, 0, T0 - 5, T0 - 10);
		d.op = ops[i];
		d.sport = BL_PORT_BASE + 10;
		refuse(&d, BL_R_FOREIGN_SOURCE);
	}
	/* the same port at another host, and addresses that only begin like loopback */
	w = data_frame(0, 1, T0 - 5, T0 - 10);
	w.sport = BL_PORT_BASE + 10;
	step(&w, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	w = data_frame6(0, 1, T0 - 5, T0 - 10);
	memset(w.saddr, 0, 15);
	w.saddr[15] = 2;
	step(&w, WANT({ BL_HC_INGRESS, BL_R_STORED }));
}

static void store__ring_full(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 1000);
	__u32 k, fit = 4096 / (256 + 8);

	(void)state;
	feed_beacon(T0 - 2000);
	new_ring(0, 4096);
	for (k = 0; k < fit; k++) {
		d.psn = k;
		step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	}
	d.b = d.c = T0 - 500;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_RING_FULL }));
	assert_int_equal(after.page.barrier, T0 - 500);
	assert_int_equal(ring_read(0), fit);
	assert_int_equal(got.rec.psn, fit - 1);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_stored(0, &d, T0);
}

/* ---- the clock ---- */

static void expect_limit(__u64 limit)
{
	struct desc d = data_frame(0, 1, limit, limit), be = beacon_frame(0, limit);

	feed_beacon(T0 - 1000);
	d.b = limit + 1;
	refuse(&d, BL_R_BARRIER_AHEAD);
	d.b = limit;
	d.c = limit + 1;
	refuse(&d, BL_R_BARRIER_AHEAD);
	d.c = limit;
	d.ts = limit + 1;
	refuse(&d, BL_R_TS_AHEAD);
	be.b = limit + 1;
	refuse(&be, BL_R_BARRIER_AHEAD);
	be.b = limit;
	be.c = limit + 1;
	refuse(&be, BL_R_BARRIER_AHEAD);
	d.ts = limit;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_stored(0, &d, limit);
	/* frames without a message have no timestamp to compare */
	d.op = BL_OP_CREDIT;
	d.ts = limit + 1;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_stored(0, &d, 0);
}

static void clock__ahead(void **state)
{
	(void)state;
	expect_limit(T0 + BOUND);
}

/* Where silent hosts promise ahead of their clocks, the limit is higher by as much. */
static void clock__promised_ahead(void **state)
{
	(void)state;
	cfg.ahead_ns = 150000;
	set_cfg();
	expect_limit(T0 + BOUND + 150000);
}

/*
 * A data frame makes the program read the clock only if it is beyond the limit of the last reading.
 */
static void clock__read_again_when_needed(void **state)
{
	struct desc d = data_frame(0, 1, T0 + BOUND, T0);

	(void)state;
	feed_beacon(T0 - 1000);
	clock_at(sk->maps.clock, T0 + 1000);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	assert_int_equal(after.page.now_ns, T0);
	d.ts++;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	assert_int_equal(after.page.now_ns, T0 + 1000);
	assert_int_equal(after.page.limit_ns, T0 + 1000 + BOUND);
}

static void clock__void(void **state)
{
	struct desc d = data_frame(0, 1, T0 + BOUND, T0), be = beacon_frame(0, T0);

	(void)state;
	feed_beacon(T0 - 1000);
	clock_void(sk->maps.clock);
	refuse(&be, BL_R_CLOCK_VOID);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_stored(0, &d, T0 + BOUND);
	d.ts++;
	refuse(&d, BL_R_CLOCK_VOID);
}

/* Across the wrap of the 48 bits the page and the records continue in 64 bits. */
static void clock__wrap(void **state)
{
	const __u64 wrap = 7001ULL << BL_TS_BITS;
	__s64 k;

	(void)state;
	clock_at(sk->maps.clock, wrap - 20);
	feed_beacon(wrap - 100);
	for (k = -7; k <= 7; k++) {
		struct desc d = data_frame(0, 1, wrap + (__u64)k + 3, wrap + (__u64)k);

		step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
		expect_stored(0, &d, wrap + (__u64)k + 3);
		assert_int_equal(after.page.barrier, wrap + (__u64)k);
	}
	refuse((struct desc[]){ beacon_frame(0, wrap - 20 + BOUND + 1) }, BL_R_BARRIER_AHEAD);
}

/* ---- beacons and the register ---- */

static void beacon__taken_in(void **state)
{
	struct desc d = beacon_frame(0, T0);

	(void)state;
	feed_beacon(T0 - 1000);
	d.c = T0 - 7;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	assert_int_equal(after.page.barrier, T0);
	assert_int_equal(after.page.commit, T0 - 7);
	d.tags = 1;
	d.b = T0 + 1;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	assert_int_equal(after.page.barrier, T0 + 1);
}

/* The policy in the switch's last beacon is stored. */
static void beacon__policy_of_the_switch(void **state)
{
	struct desc d = beacon_frame(0, T0 - 10);
	__u32 said;

	(void)state;
	feed_beacon(T0 - 1000);
	for (said = 1; said < 6; said++) {
		d.b++;
		d.port = (__u16)((said % 5) << 8 | 7);
		step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
		assert_int_equal(after.page.life.policy, said % 5);
		assert_int_equal(after.page.life.neighbour, d.node);
	}
}

static void beacon__refused(void **state)
{
	struct desc d;
	__u8 tags;

	(void)state;
	feed_beacon(T0 - 1000);
	for (tags = 0; tags < 2; tags++) {
		d = beacon_frame(0, T0);
		d.tags = tags;
		d.node = NODE_ID;
		refuse(&d, BL_R_LOOPED);
		d.node = 0;
		d.tai = 36;
		refuse(&d, BL_R_TAI_MISMATCH);
	}
}

static void barrier__never_falls(void **state)
{
	struct desc d = beacon_frame(0, T0 - 1001);

	(void)state;
	feed_beacon(T0 - 1000);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }, { BL_HC_INGRESS, BL_R_BARRIER_OLD }));
	assert_int_equal(after.page.barrier, T0 - 1000);
	d.b = T0 - 1000;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	/* below the register of its lane: counted, but stored, since the library decides */
	d = data_frame(0, 1, T0 - 1001, T0);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }, { BL_HC_INGRESS, BL_R_PROMISE_BROKEN }));
	expect_stored(0, &d, T0 - 1001);
	d.ts = T0;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
}

/*
 * A frame that bypassed the host's switch carries the B and C of another host. The host uses
 * neither: it has learned from its neighbour's beacons which hop to accept.
 */
static void hop__only_the_neighbours(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 500), b = beacon_frame(0, T0 - 1000);
	__u32 i;

	(void)state;
	b.flag_byte = BL_HOP_LEAF;
	step(&b, WANT({ BL_HC_INGRESS, BL_R_BEACON }, { BL_HC_INGRESS, BL_R_JOINED }));
	for (i = 0; i < BL_LANES_MAX; i++)
		assert_int_equal(after.page.reg[i].hop, BL_HOP_LEAF);
	d.flag_byte = BL_HOP_HOST;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_UNSWITCHED }));
	d.op = BL_OP_PREP;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_UNSWITCHED }));
	d.flag_byte = BL_HOP_TOP;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_UNSWITCHED }));
	assert_int_equal(after.page.barrier, T0 - 1000);
	assert_int_equal(after.page.commit, T0 - 1000);
	/*
	 * A frame whose barriers promise nothing, such as one that the switch's kernel forwarded:
	 * the message is stored, the barriers are not used.
	 */
	d.op = BL_OP_DATA;
	d.b = d.c = T0 - BL_TS_OLD;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	assert_int_equal(after.page.reg[0].b, T0 - 1000);
	d.flag_byte = BL_HOP_LEAF;
	d.b = d.c = T0 - 400;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	assert_int_equal(after.page.barrier, T0 - 400);
}

/*
 * A switch of two lanes: both must have been heard, and the barrier is the lower one. A lane that
 * falls silent is excluded.
 */
static void barrier__two_lanes(void **state)
{
	struct desc d = beacon_frame(0, T0 - 1000);
	__u64 bus = T0;
	int k;

	(void)state;
	d.lanes = 2;
	d.c = T0 - 1700;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	assert_int_equal(after.page.barrier, 0);
	d.lane = 1;
	d.b = d.c = T0 - 1500;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }, { BL_HC_INGRESS, BL_R_JOINED }));
	assert_int_equal(after.page.barrier, T0 - 1500);
	assert_int_equal(after.page.commit, T0 - 1500);
	d.lane = 0;
	d.b = T0 - 900;
	d.c = T0 - 1600;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }, { BL_HC_INGRESS, BL_R_JOINED }));
	assert_int_equal(after.page.barrier, T0 - 1500);
	/* the minimum is lower now, but the published value stays */
	assert_int_equal(after.page.commit, T0 - 1500);
	d.lane = 1;
	d.b = d.c = T0 - 800;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	assert_int_equal(after.page.barrier, T0 - 900);
	/* lane 1 is silent now: scans after 3, 6, 9 and 12 intervals, dead after 10 */
	for (k = 1; k <= 12; k++) {
		bus += BEACON_NS;
		clock_at(sk->maps.clock, bus);
		d.lane = 0;
		d.b = d.c = bus;
		if (k < 12)
			step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
		else
			step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON },
				      { BL_HC_INGRESS, BL_R_EXCLUDED }));
		assert_int_equal(after.page.barrier, k < 12 ? T0 - 800 : bus);
		assert_int_equal(after.page.commit, T0 - 800); /* C waits for the dead lane */
	}
	assert_int_equal(after.page.reg[1].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	/* the C that may be reported for this link is the last published one */
	assert_int_equal(after.page.reg[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.page.life.death, 1);
	/*
	 * The lane returns with an older barrier. The published B stays until both lanes have
	 * passed it, and C stays until the controller sends RESUME.
	 */
	d.lane = 1;
	d.b = d.c = bus - 5000;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }, { BL_HC_INGRESS, BL_R_JOINED }));
	assert_int_equal(after.page.reg[1].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.page.barrier, bus);
	assert_int_equal(after.page.commit, T0 - 800);
	d.lane = 0;
	d.b = d.c = bus + 10;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	assert_int_equal(after.page.barrier, bus);
	d.lane = 1;
	d.b = bus + 5;
	d.c = bus - 6000;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	assert_int_equal(after.page.barrier, bus + 5);
	assert_int_equal(after.page.commit, T0 - 800);
}

/*
 * A lane of the switch in which no input has joined forwards frames that promise nothing. A host
 * that has just started does not wait for it until it promises something.
 */
static void barrier__lane_that_promises_nothing(void **state)
{
	struct desc idle = data_frame(0, 1, T0 - 5, T0 - BL_TS_OLD), d = beacon_frame(0, T0 - 900);

	(void)state;
	idle.lane = 1;
	idle.lanes = d.lanes = 2;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	step(&idle, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_stored(0, &idle, T0 - 5);
	assert_int_equal(after.page.reg[1].state, BL_REG_JOINING);
	d.b = d.c = T0 - 850;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }, { BL_HC_INGRESS, BL_R_JOINED }));
	assert_int_equal(after.page.barrier, T0 - 850);
	step(&idle, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_stored(0, &idle, T0 - 5);
	d.b = d.c = T0 - 800;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	assert_int_equal(after.page.barrier, T0 - 800);
	assert_int_equal(after.page.commit, T0 - 800);
	d.lane = 1;
	d.b = d.c = T0 - 700;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }, { BL_HC_INGRESS, BL_R_JOINED }));
	assert_int_equal(after.page.barrier, T0 - 800);
	/* It is LIVE now: what promises nothing is only an old barrier. */
	step(&idle, WANT({ BL_HC_INGRESS, BL_R_STORED }, { BL_HC_INGRESS, BL_R_BARRIER_OLD }));
	assert_int_equal(after.page.barrier, T0 - 800);
}

/* ---- sleepers ---- */

static void set_sleepers(__u64 u0, __u64 u1, __u64 u2, __u64 next)
{
	struct wakes w;

	wake_get(&w);
	w.next = next;
	w.ep[0].until = u0;
	w.ep[1].until = u1;
	w.ep[2].until = u2;
	wake_put(&w);
}

static void expect_sleepers(__u64 next, __u64 u0, __u64 u1, __u64 u2)
{
	assert_int_equal(after.wake.next, next);
	assert_int_equal(after.wake.ep[0].until, u0);
	assert_int_equal(after.wake.ep[1].until, u1);
	assert_int_equal(after.wake.ep[2].until, u2);
}

/* An endpoint is woken once, when the barrier is above its @until, not when it is equal. */
static void wake__when_the_barrier_passes(void **state)
{
	struct desc d = beacon_frame(0, T0);

	(void)state;
	feed_beacon(T0 - 1000);
	set_sleepers(BL_TIME_NONE, T0, BL_TIME_NONE, T0);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	expect_sleepers(T0, BL_TIME_NONE, T0, BL_TIME_NONE);
	assert_false(is_woken(1, 0));
	d.b++;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	expect_sleepers(BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE);
	assert_true(is_woken(1, 5000));
	assert_int_equal(after.wake.ep[1].woken, 1);
	assert_int_equal(ring_read(1), 0); /* the wake-up in the ring is not a record */
	d.b++;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	assert_false(is_woken(1, 0));
	assert_false(is_woken(0, 0));
	assert_int_equal(after.wake.ep[1].woken, 1);
}

/*
 * Several sleepers: those that are due are woken, and next becomes the least @until of the others.
 */
static void wake__several(void **state)
{
	struct desc d = beacon_frame(0, T0);

	(void)state;
	feed_beacon(T0 - 1000);
	set_sleepers(T0 - 1, T0 + 200, T0 + 100, T0 - 1);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	expect_sleepers(T0 + 100, BL_TIME_NONE, T0 + 200, T0 + 100);
	assert_true(is_woken(0, 5000));
	assert_false(is_woken(1, 0));
	assert_false(is_woken(2, 0));
	d.b = T0 + 201;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	expect_sleepers(BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE);
	assert_true(is_woken(1, 5000));
	assert_true(is_woken(2, 5000));
	assert_false(is_woken(0, 0));
}

/* next is a hint that may be too low; a scan corrects it. */
static void wake__next_too_low(void **state)
{
	struct desc d = beacon_frame(0, T0), w;

	(void)state;
	feed_beacon(T0 - 1000);
	set_sleepers(BL_WAKE_ON_DATA, T0 + 300, BL_TIME_NONE, T0 - 500);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	expect_sleepers(T0 + 300, BL_WAKE_ON_DATA, T0 + 300, BL_TIME_NONE);
	assert_false(is_woken(0, 0));
	assert_false(is_woken(1, 0));
	/* the scan finds a sleeper whose @until equals the barrier: not passed yet */
	set_sleepers(BL_TIME_NONE, T0 + 1, BL_TIME_NONE, T0 - 500);
	d.b = T0 + 1;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	expect_sleepers(T0 + 1, BL_TIME_NONE, T0 + 1, BL_TIME_NONE);
	assert_false(is_woken(1, 0));
	/*
	 * While next is above the barrier, a frame finds no sleeper that did not lower it. A beacon
	 * does: what next says may be wrong.
	 */
	set_sleepers(T0 - 1, T0 + 300, BL_TIME_NONE, T0 + 300);
	w = data_frame(0, 1, T0 + 5, T0 + 2);
	step(&w, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_sleepers(T0 + 300, T0 - 1, T0 + 300, BL_TIME_NONE);
	assert_false(is_woken(0, 0));
	d.b = T0 + 3;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	expect_sleepers(T0 + 300, BL_TIME_NONE, T0 + 300, BL_TIME_NONE);
	assert_true(is_woken(0, 5000));
	assert_int_equal(ring_read(0), 1);
}

/*
 * A sleeper with no message to deliver: the first message sets its @until, an earlier one lowers
 * it, and a later one does not raise it.
 */
static void wake__on_data(void **state)
{
	struct desc d = data_frame(0, 1, T0 + 50, T0 - 100), be = beacon_frame(0, T0 + 41);

	(void)state;
	feed_beacon(T0 - 1000);
	set_sleepers(BL_WAKE_ON_DATA, BL_WAKE_ON_DATA, BL_TIME_NONE, T0 + 500);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_sleepers(T0 + 50, T0 + 50, BL_WAKE_ON_DATA, BL_TIME_NONE);
	d.ts = T0 + 40;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_sleepers(T0 + 40, T0 + 40, BL_WAKE_ON_DATA, BL_TIME_NONE);
	d.ts = T0 + 60;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_sleepers(T0 + 40, T0 + 40, BL_WAKE_ON_DATA, BL_TIME_NONE);
	assert_false(is_woken(0, 0)); /* no wake-up for a message that cannot be delivered yet */
	step(&be, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	expect_sleepers(BL_TIME_NONE, BL_TIME_NONE, BL_WAKE_ON_DATA, BL_TIME_NONE);
	assert_true(is_woken(0, 5000));
	assert_int_equal(ring_read(0), 3);
	/* awake: a message changes nothing */
	d.b = d.c = T0 + 41;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_sleepers(BL_TIME_NONE, BL_TIME_NONE, BL_WAKE_ON_DATA, BL_TIME_NONE);
	assert_false(is_woken(0, 0));
}

/*
 * One frame that carries a message and a barrier above it: the message is stored first, then the
 * endpoint is woken.
 */
static void wake__by_its_own_frame(void **state)
{
	struct desc d = data_frame(0, 1, T0 - 500, T0);

	(void)state;
	feed_beacon(T0 - 1000);
	set_sleepers(BL_WAKE_ON_DATA, BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_sleepers(BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE);
	assert_true(is_woken(0, 5000));
	expect_stored(0, &d, T0 - 500);
}

/*
 * A CREDIT, NAK or other frame without a message wakes a sleeper at once and does not change its
 * @until. An endpoint that is awake is not woken for it.
 */
static void wake__other_frames_at_once(void **state)
{
	struct desc d = data_frame(0, 1, 0, T0 - 900);

	(void)state;
	feed_beacon(T0 - 1000);
	d.op = BL_OP_CREDIT;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	assert_false(is_woken(0, 0));
	assert_int_equal(ring_read(0), 1);
	set_sleepers(BL_WAKE_ON_DATA, BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_sleepers(BL_TIME_NONE, BL_WAKE_ON_DATA, BL_TIME_NONE, BL_TIME_NONE);
	assert_true(is_woken(0, 5000));
	assert_int_equal(ring_read(0), 1);
	set_sleepers(T0 + 500, BL_TIME_NONE, BL_TIME_NONE, T0 + 500);
	d.op = BL_OP_NAK;
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_sleepers(T0 + 500, T0 + 500, BL_TIME_NONE, BL_TIME_NONE);
	assert_true(is_woken(0, 5000));
}

/*
 * A ring without room for the wake-up (8 bytes and a header of 8): the sleeper counts as awake,
 * since its timer will expire, but not as woken. 15 small records of 264 bytes leave 136 of 4096
 * bytes, which wake-ups that are never read fill up.
 */
static void wake__ring_full(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 1000);
	__u32 k, room = (4096 - 15 * 264) / 16;

	(void)state;
	feed_beacon(T0 - 1000);
	new_ring(0, 4096);
	for (k = 0; k < 15; k++)
		step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	for (k = 0; k < room + 2; k++) {
		set_sleepers(T0 - 900 + k, BL_TIME_NONE, BL_TIME_NONE, T0 - 900 + k);
		step((struct desc[]){ beacon_frame(0, T0 - 899 + k) },
		     WANT({ BL_HC_INGRESS, BL_R_BEACON }));
		expect_sleepers(BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE, BL_TIME_NONE);
	}
	assert_true(after.wake.ep[0].woken >= room - 1 && after.wake.ep[0].woken <= room);
	assert_int_equal(ring_read(0), 15);
}

/* The last slot of the page is scanned as well. */
static void wake__last_slot(void **state)
{
	struct desc d = beacon_frame(0, T0);
	struct wakes w;

	(void)state;
	cfg.neps = BL_EPS_MAX;
	set_cfg();
	feed_beacon(T0 - 1000);
	wake_get(&w);
	w.next = w.ep[BL_EPS_MAX - 1].until = T0 - 1;
	wake_put(&w);
	step(&d, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	assert_int_equal(after.wake.ep[BL_EPS_MAX - 1].until, BL_TIME_NONE);
	assert_int_equal(after.wake.ep[BL_EPS_MAX - 1].woken, 0); /* the slot has no ring */
	assert_int_equal(after.wake.next, BL_TIME_NONE);
}

/*
 * Frames that are not barline's go to the chained program; ordered frames and beacons do not. An
 * entry that is emptied at this moment leaves the frame to the kernel.
 */
static void chain__what_is_not_ours(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 10), be = beacon_frame(0, T0);
	const struct bl_hook none = { 0 };
	struct frame in, odd;

	(void)state;
	feed_beacon(T0 - 1000);
	build(&odd, &d);
	odd.p[12] = 0x08; /* ARP */
	odd.p[13] = 0x06;
	refuse_frame(&odd, BL_R_NOT_OURS);
	chain_to(sk->maps.next_progs, sk->maps.hooks, 0);
	run_host_xdp(&odd, XDP_TX);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_CHAINED }));
	step(&d, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_stored(0, &d, T0);
	build(&in, &be);
	run_host_xdp(&in, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_BEACON }));
	unchain(sk->maps.next_progs, 0);
	run_host_xdp(&odd, XDP_PASS);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_CHAINED }));
	map_put(sk->maps.hooks, 0, &none);
	refuse_frame(&odd, BL_R_NOT_OURS);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_HOST, BY_HOST);
}

#define CASE(f) cmocka_unit_test_setup(f, host_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(parse__odd_frames),
		CASE(store__first_frame),
		CASE(store__all_variants),
		CASE(store__flags),
		CASE(store__wrong_endpoint),
		CASE(store__foreign_source),
		CASE(store__ring_full),
		CASE(clock__ahead),
		CASE(clock__promised_ahead),
		CASE(clock__read_again_when_needed),
		CASE(clock__void),
		CASE(clock__wrap),
		CASE(beacon__taken_in),
		CASE(beacon__policy_of_the_switch),
		CASE(beacon__refused),
		CASE(barrier__never_falls),
		CASE(hop__only_the_neighbours),
		CASE(barrier__two_lanes),
		CASE(barrier__lane_that_promises_nothing),
		CASE(wake__when_the_barrier_passes),
		CASE(wake__several),
		CASE(wake__next_too_low),
		CASE(wake__on_data),
		CASE(wake__by_its_own_frame),
		CASE(wake__other_frames_at_once),
		CASE(wake__ring_full),
		CASE(wake__last_slot),
		CASE(chain__what_is_not_ours),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
