// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_host_egress writes the host's barrier into every ordered frame and beacon that leaves, and
 * into each segment of a GSO send. bl_host_local carries messages between endpoints of one host.
 *
 * skb->queue_mapping is not checked here, since test_run does not return it; the racks of tests/net
 * fail if the transmit queue does not keep the order.
 */
#include <linux/pkt_cls.h>
#include "tests/prog/host/host_util.h"

#include "core/order/promise_core.h"

#define FROM      (BL_PORT_BASE + 9) /* port of an endpoint of this host */
#define NO_COOKIE (1ULL << 60)       /* the kernel counts cookies from 1 */

/*
 * Runs a tc program with the fields of the context that the programs read: mark, gso_size and
 * gso_segs.
 */
static int run_tc(const struct bpf_program *prog, const struct frame *in, struct frame *out,
		  __u32 mark, __u32 gso_size)
{
	struct __sk_buff ctx = { .mark = mark, .gso_size = gso_size, .gso_segs = gso_size ? 1 : 0 };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->p, .data_size_in = in->n,
		    .data_out = out->p, .data_size_out = sizeof(out->p), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);
	int rc;

	clock_stands();
	rc = bpf_prog_test_run_opts(bpf_program__fd(prog), &o);

	if (rc)
		fail_msg("cannot run %s on a frame of %u bytes: %s", bpf_program__name(prog), in->n,
			 strerror(-rc));
	out->n = o.data_size_out;
	ran_on(in->n);
	return (int)o.retval;
}

static struct desc own_message(bool v6, __u64 ts)
{
	struct desc d = v6 ? data_frame6(1, 0, ts, 0) : data_frame(1, 0, ts, 0);

	d.sport = FROM;
	return d;
}

/* ---- egress ---- */

/* Runs a frame that must be sent as @want. */
static void expect_frame_sent(const struct frame *in, __u32 mark, __u32 gso_size,
			      const struct frame *want, enum bl_reason why)
{
	struct frame out;
	int v = run_tc(sk->progs.bl_host_egress, in, &out, mark, gso_size);

	if (v != TC_ACT_OK)
		fail_msg("%s: verdict %d, want TC_ACT_OK", doing, v);
	same_frame(&out, want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_EGRESS, why }));
}

/* The next frame of a host that has sent @d before others leaves with barriers @b. */
static void expect_sent_next(const struct desc *d, __u64 b)
{
	struct desc w = *d;
	struct frame in, want;

	build(&in, d);
	w.b = w.c = b;
	if (w.op == BL_OP_BEACON)
		host_says(&w, bus_now);
	build(&want, &w);
	expect_frame_sent(&in, BEACON_MARK, 0, &want,
			  d->op == BL_OP_BEACON ? BL_R_BEACON_SENT : BL_R_SENT);
}

/* As if nothing had been sent before: a line below what has left holds the barrier at that. */
static void forget_sent(void)
{
	struct bl_host_page p;

	map_get(sk->maps.host_page, 0, &p);
	p.sent_barrier = 0;
	map_put(sk->maps.host_page, 0, &p);
}

static void expect_sent(const struct desc *d, __u64 b)
{
	forget_sent();
	expect_sent_next(d, b);
}

static void expect_frame_dropped(const struct frame *in, __u32 mark, enum bl_reason why)
{
	struct frame out;
	int v;

	state_take(&before);
	v = run_tc(sk->progs.bl_host_egress, in, &out, mark, 0);
	if (v != (why == BL_R_NOT_OURS ? TC_ACT_OK : TC_ACT_SHOT))
		fail_msg("%s: verdict %d", doing, v);
	same_frame(&out, in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_EGRESS, why }));
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void expect_dropped(const struct desc *d, __u32 mark, enum bl_reason why)
{
	struct frame in;

	build(&in, d);
	expect_frame_dropped(&in, mark, why);
}

static void check_odd(const struct frame *f, enum bl_reason why, void *arg)
{
	(void)arg;
	expect_frame_dropped(f, BEACON_MARK, why);
}

static void egress__odd_frames(void **state)
{
	(void)state;
	each_odd(T0, check_odd, NULL);
}

/*
 * Both address families, with and without a tag and a UDP checksum, all opcodes; the old values in
 * the barrier fields do not matter.
 */
static void egress__all_variants(void **state)
{
	static const __u8 ops[] = { BL_OP_DATA, BL_OP_FRAG, BL_OP_CREDIT, BL_OP_NAK, BL_OP_PROBE };
	static const __u32 bodies[] = { 0, 1, 37, 1448 };
	__u32 v, i, k;

	(void)state;
	for (v = 0; v < 8; v++) {
		for (i = 0; i < sizeof(ops); i++) {
			for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
				struct desc d = own_message(v & 1, T0);

				d.tags = v >> 1 & 1;
				d.csum = v >> 2;
				d.op = ops[i];
				d.b = 0x5555 * i;
				d.c = 0xaaaa * k;
				d.body = bodies[k];
				expect_sent(&d, T0);
			}
		}
	}
	state_take(&after);
	assert_int_equal(after.page.sent_barrier, T0);
}

static void egress__beacon(void **state)
{
	struct desc d = beacon_frame(1, 0);

	(void)state;
	d.node = NODE_ID;
	expect_sent(&d, T0);
	d.tags = 1;
	expect_sent(&d, T0);
	clock_at(sk->maps.clock, T0 + 12345);
	expect_sent(&d, T0 + 12345);
	state_take(&after);
	assert_int_equal(after.page.sent_barrier, T0 + 12345);
}

/* A beacon announces the current admission policy of bl0; without bl0 it announces none. */
static void egress__beacon_says_the_policy(void **state)
{
	struct bl_hold_cfg hold = { .on = 1 };
	struct desc d = beacon_frame(1, 0), w;
	struct frame in, want;

	(void)state;
	d.node = NODE_ID;
	build(&in, &d);
	for (hold.policy = 0; hold.policy < BL_POLICY_COUNT; hold.policy++) {
		map_put(sk->maps.hold_cfg, 0, &hold);
		w = d;
		w.b = w.c = T0;
		w.port = (__u16)((hold.policy + 1) << 8);
		host_says(&w, T0);
		build(&want, &w);
		expect_frame_sent(&in, BEACON_MARK, 0, &want, BL_R_BEACON_SENT);
	}
	hold = (struct bl_hold_cfg){ .policy = BL_POLICY_PL2 };
	map_put(sk->maps.hold_cfg, 0, &hold);
	expect_sent(&d, T0);
}

/* A beacon has the TAI offset that the host has now, whatever its sender has written. */
static void egress__beacon_says_the_tai_offset(void **state)
{
	static const __s16 offsets[] = { 0, 37, -2, 256, INT16_MIN };
	struct desc d = beacon_frame(1, 0), w;
	struct frame in, want;
	size_t i;

	(void)state;
	d.node = NODE_ID;
	d.tai = 12;
	build(&in, &d);
	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		cfg.tai_offset_s = offsets[i];
		set_cfg();
		w = d;
		w.tai = offsets[i];
		w.b = w.c = T0;
		host_says(&w, T0);
		build(&want, &w);
		expect_frame_sent(&in, BEACON_MARK, 0, &want, BL_R_BEACON_SENT);
	}
}

/* A link-local barline frame is accepted only from the daemon, which sets the beacon mark. */
static void egress__forged_beacon(void **state)
{
	struct desc d = beacon_frame(1, 0);

	(void)state;
	expect_dropped(&d, 0, BL_R_FORGED_BEACON);
	expect_dropped(&d, BEACON_MARK ^ 1, BL_R_FORGED_BEACON);
	d.tags = 1;
	expect_dropped(&d, BEACON_MARK | 1u << 31, BL_R_FORGED_BEACON);
}

/* Only endpoints may send from the port range: the daemon's mark does not help. */
static void egress__not_an_endpoint(void **state)
{
	static const __u16 from[] = { BL_PORT_BASE + 8, BL_PORT_BASE + 12, BL_PORT_BASE - 1, 65535,
				      53 };
	struct desc d;
	__u32 i, v;

	(void)state;
	for (i = 0; i < sizeof(from) / sizeof(*from); i++) {
		for (v = 0; v < 2; v++) {
			d = own_message(v, T0);
			d.sport = from[i];
			expect_dropped(&d, BEACON_MARK, BL_R_NOT_ENDPOINT);
		}
	}
	/* an entry beyond a shorter range does not count */
	cfg.port_count = 9;
	set_cfg();
	d = own_message(false, T0);
	d.dport = BL_PORT_BASE;
	expect_dropped(&d, 0, BL_R_NOT_ENDPOINT);
	cfg.port_count = 10;
	set_cfg();
	expect_sent(&d, T0);
}

static void set_cookie(__u16 port, __u64 cookie)
{
	struct bl_ep_slot e;

	map_get(sk->maps.eps, port, &e);
	e.cookie = cookie;
	map_put(sk->maps.eps, port, &e);
}

/*
 * A port alone makes no endpoint: the frame has to come from the endpoint's address, and from its
 * socket. test_run gives each frame a socket of its own, so no cookie in the slot is that one's.
 */
static void egress__foreign_source(void **state)
{
	static const __u8 lo4[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 },
			  lo6[16] = { [15] = 1 };
	struct desc d = own_message(false, T0), d6 = own_message(true, T0);
	__u32 i;

	(void)state;
	d.sport = BL_PORT_BASE + 10;
	d6.sport = BL_PORT_BASE + 11;
	expect_sent(&d, T0);
	expect_sent(&d6, T0);
	for (i = 12; i < 16; i++) {
		d.saddr[i] ^= 1;
		expect_dropped(&d, 0, BL_R_FOREIGN_SOURCE);
		d.saddr[i] ^= 1;
	}
	for (i = 0; i < 16; i++) {
		d6.saddr[i] ^= 1;
		expect_dropped(&d6, 0, BL_R_FOREIGN_SOURCE);
		d6.saddr[i] ^= 1;
	}
	memcpy(d.saddr, lo4, sizeof(lo4));
	expect_dropped(&d, 0, BL_R_FOREIGN_SOURCE);
	memcpy(d6.saddr, lo6, sizeof(lo6));
	expect_dropped(&d6, BEACON_MARK, BL_R_FOREIGN_SOURCE);
	/* each family with the port of the other's endpoint */
	d = own_message(false, T0);
	d.sport = BL_PORT_BASE + 11;
	expect_dropped(&d, 0, BL_R_FOREIGN_SOURCE);
	d6 = own_message(true, T0);
	d6.sport = BL_PORT_BASE + 10;
	expect_dropped(&d6, 0, BL_R_FOREIGN_SOURCE);
	/* the right address, and another socket */
	d.sport = BL_PORT_BASE + 10;
	set_cookie(10, NO_COOKIE);
	expect_dropped(&d, 0, BL_R_FOREIGN_SOURCE);
	set_cookie(10, 0);
	expect_sent(&d, T0);
}

/*
 * All frames that carry a barrier leave in one class, whatever their process has chosen: one that
 * overtakes others' frames would carry a barrier past their messages.
 */
static void egress__priority(void **state)
{
	static const __u8 ops[] = { BL_OP_BEACON, BL_OP_DATA, BL_OP_PREP, BL_OP_CREDIT };
	struct desc d, be = beacon_frame(1, 0);
	__u32 i, prio, gso;

	(void)state;
	be.node = NODE_ID;
	for (i = 0; i < 4 * sizeof(ops); i++) {
		struct __sk_buff ctx = { .mark = BEACON_MARK }, left = { 0 };
		struct frame in, out;
		LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in.p, .data_out = out.p,
			    .data_size_out = sizeof(out.p), .ctx_in = &ctx,
			    .ctx_size_in = sizeof(ctx), .ctx_out = &left,
			    .ctx_size_out = sizeof(left), .repeat = 1);

		prio = i & 1 ? 7 : 0;
		gso = i & 2 && ops[i / 4] != BL_OP_BEACON ? 64 : 0;
		d = ops[i / 4] == BL_OP_BEACON ? be : own_message(false, T0);
		d.op = ops[i / 4];
		build(&in, &d);
		o.data_size_in = in.n;
		ctx.priority = prio;
		ctx.gso_size = gso;
		ctx.gso_segs = gso ? 1 : 0;
		clock_stands();
		assert_int_equal(
			bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_host_egress), &o), 0);
		assert_int_equal(o.retval, TC_ACT_OK);
		assert_int_equal(left.mark, BEACON_MARK);
		assert_int_equal(left.priority, 0);
		counts_take(sk->maps.counts, counted);
	}
}

/* The verdict and the priority of a frame that the host sends, for a NIC with @classed, @steered.
 */
static void check_class(bool classed, bool steered, const struct frame *in, __u32 priority,
			int verdict, __u32 want)
{
	struct __sk_buff ctx = { .mark = BEACON_MARK, .priority = priority }, left = { 0 };
	struct bl_host_cfg how;
	struct frame out;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->p, .data_size_in = in->n,
		    .data_out = out.p, .data_size_out = sizeof(out.p), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .ctx_out = &left, .ctx_size_out = sizeof(left),
		    .repeat = 1);

	map_get(sk->maps.host_cfg, 0, &how);
	how.classed = classed;
	how.steered = steered;
	map_put(sk->maps.host_cfg, 0, &how);
	clock_stands();
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_host_egress), &o), 0);
	assert_int_equal((int)o.retval, verdict);
	assert_int_equal(left.priority, want);
	counts_take(sk->maps.counts, counted);
	how.classed = how.steered = 0;
	map_put(sk->maps.host_cfg, 0, &how);
	/* The classifier matches what has got the priority, and passes no verdict on anything. */
	ctx = left;
	ctx.cb[0] = ctx.cb[1] = ctx.cb[2] = ctx.cb[3] = ctx.cb[4] = 0;
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_host_queue), &o), 0);
	assert_int_equal((int)o.retval, want == BL_TX_PRIORITY ? -1 : 0);
}

/* Where the NIC has a band and a queue for ordered frames, they and no others are marked for it. */
static void egress__class_and_queue(void **state)
{
	struct desc beacon = beacon_frame(1, 0), own = own_message(false, T0),
		    own6 = own_message(true, T0);
	struct frame in, other = { .n = 64 };

	(void)state;
	beacon.node = NODE_ID;
	build(&in, &beacon);
	check_class(true, false, &in, 0, TC_ACT_OK, BL_TX_PRIORITY);
	check_class(true, true, &in, 7, TC_ACT_UNSPEC, BL_TX_PRIORITY);
	check_class(false, false, &in, 7, TC_ACT_OK, 0);
	build(&in, &own);
	check_class(true, true, &in, 3, TC_ACT_UNSPEC, BL_TX_PRIORITY);
	build(&in, &own6);
	check_class(true, true, &in, 3, TC_ACT_UNSPEC, BL_TX_PRIORITY);
	/* an ARP request of the machine */
	memset(other.p, 0xff, 6);
	other.p[12] = 0x08;
	other.p[13] = 0x06;
	check_class(true, true, &other, 5, TC_ACT_OK, 5);
	/* what is dropped has no class */
	own.sport = BL_PORT_BASE + 99;
	build(&in, &own);
	check_class(true, true, &in, 0, TC_ACT_SHOT, 0);
}

static void egress__clock_void(void **state)
{
	struct desc d = own_message(false, T0), be = beacon_frame(1, 0);

	(void)state;
	clock_void(sk->maps.clock);
	expect_dropped(&d, 0, BL_R_CLOCK_VOID);
	expect_dropped(&be, BEACON_MARK, BL_R_CLOCK_VOID);
}

static void put_inflight(__u32 slot, __u64 ts)
{
	struct bl_inflight line = { .ts = ts };

	line_put(slot, &line);
}

/*
 * The barrier is the minimum of the clock and the timestamps in flight, over the slots that may be
 * in use.
 */
static void egress__in_flight(void **state)
{
	struct desc d = own_message(false, T0), be = beacon_frame(1, 0);

	(void)state;
	put_inflight(0, T0 - 100);
	expect_sent(&d, T0 - 100);
	expect_sent(&be, T0 - 100);
	put_inflight(2, T0 - 300);
	expect_sent(&d, T0 - 300);
	put_inflight(1, T0 - 200);
	expect_sent(&be, T0 - 300);
	put_inflight(2, BL_TIME_NONE);
	expect_sent(&d, T0 - 200);
	put_inflight(1, 0); /* a new map: nothing is in flight */
	expect_sent(&d, T0 - 100);
	put_inflight(0, T0 + 1); /* ahead of the clock reading: the clock is the minimum */
	expect_sent(&d, T0);
	put_inflight(NEPS, T0 - 500); /* a slot beyond those that were ever in use */
	expect_sent(&d, T0);
	cfg.neps = NEPS + 1;
	set_cfg();
	expect_sent(&d, T0 - 500);
	cfg.neps = BL_EPS_MAX;
	set_cfg();
	put_inflight(BL_EPS_MAX - 1, T0 - 600);
	expect_sent(&d, T0 - 600);
}

/*
 * A line below the barrier that was sent holds the next one there, and not below: a process that
 * stores nonsense must not make the barrier so old that it lies ahead of all clocks.
 */
static void egress__line_below_what_was_sent(void **state)
{
	static const __u64 ts[] = { 1, T0 - (1ULL << 47), T0 - 300, T0 - 1, T0 };
	struct desc d = own_message(false, T0), be = beacon_frame(1, 0);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ts) / sizeof(*ts); i++) {
		clock_at(sk->maps.clock, T0);
		put_inflight(2, BL_TIME_NONE);
		expect_sent(&be, T0);
		clock_at(sk->maps.clock, T0 + 1000);
		put_inflight(2, ts[i]);
		expect_sent_next(&d, T0);
		expect_sent_next(&be, T0);
		state_take(&after);
		assert_int_equal(after.page.sent_barrier, T0);
		put_inflight(2, T0 + 10);
		expect_sent_next(&be, T0 + 10);
		put_inflight(2, BL_TIME_NONE);
		expect_sent_next(&be, T0 + 1000);
	}
}

static struct bl_host_page page_now(void)
{
	struct bl_host_page p;

	map_get(sk->maps.host_page, 0, &p);
	return p;
}

#define AHEAD 150000

/*
 * Beacons of a host that has sent no message for long enough are ahead of its clock; no other frame
 * starts to promise ahead. A promise that was made is kept.
 */
static void egress__silent(void **state)
{
	static const __u8 other[] = { BL_OP_FRAG, BL_OP_CREDIT, BL_OP_NAK, BL_OP_PROBE };
	const __u64 silent = 1000 * BEACON_NS;
	struct desc d = own_message(false, 0), be = beacon_frame(1, 0);
	__u32 i;

	(void)state;
	expect_sent(&be, T0); /* as configured, the host does not promise ahead */
	cfg.ahead_ns = AHEAD;
	set_cfg();
	for (i = 0; i < sizeof(other); i++) {
		d.op = other[i];
		expect_sent(&d, T0);
	}
	assert_int_equal(page_now().promised, 0);
	put_inflight(1, T0 + 7);
	/* the timestamp in flight limits this beacon, and the promise is made all the same */
	expect_sent(&be, T0 + 7);
	assert_int_equal(page_now().promised, T0 + AHEAD);
	put_inflight(1, BL_TIME_NONE);
	expect_sent(&be, T0 + AHEAD);
	for (i = 0; i < sizeof(other); i++) {
		d.op = other[i];
		expect_sent(&d, T0 + AHEAD);
	}
	assert_int_equal(page_now().data_ns, 0);
	assert_int_equal(page_now().sent_barrier, T0 + AHEAD);
	clock_at(sk->maps.clock, T0 + 10);
	d.op = BL_OP_DATA;
	d.ts = T0 + AHEAD;
	expect_sent(&d, T0 + AHEAD);
	assert_int_equal(page_now().data_ns, T0 + 10);
	assert_int_equal(page_now().promised, T0 + AHEAD);
	clock_at(sk->maps.clock, T0 + 20); /* the host is no longer silent */
	expect_sent(&be, T0 + AHEAD);
	assert_int_equal(page_now().promised, T0 + AHEAD);
	clock_at(sk->maps.clock, T0 + AHEAD);
	expect_sent(&be, T0 + AHEAD);
	clock_at(sk->maps.clock, T0 + AHEAD + 1);
	expect_sent(&be, T0 + AHEAD + 1);
	/* a barrier that is not ahead of the clock is not recorded as a promise */
	assert_int_equal(page_now().promised, T0 + AHEAD);
	clock_at(sk->maps.clock, T0 + 10 + silent);
	expect_sent(&be, T0 + 10 + silent);
	clock_at(sk->maps.clock, T0 + 11 + silent);
	expect_sent(&be, T0 + 11 + silent + AHEAD);
	assert_int_equal(page_now().promised, T0 + 11 + silent + AHEAD);
}

static void put_void(__u32 slot, __u64 upto, __u64 over)
{
	struct bl_host_page p = page_now();

	p.word[slot] = (struct bl_ep_word){ .upto = upto, .over = over };
	map_put(sk->maps.host_page, 0, &p);
}

/* A message that waited in the kernel until the barrier of its host had passed it. */
static void egress__send_late(void **state)
{
	static const __u8 other[] = { BL_OP_FRAG, BL_OP_CREDIT, BL_OP_NAK, BL_OP_PROBE,
				      BL_OP_PREP };
	struct desc d = own_message(false, T0), o = own_message(false, T0 - 1);
	struct bl_host_page p;
	__u32 i;

	(void)state;
	cfg.ahead_ns = AHEAD;
	set_cfg();
	expect_sent(&d, T0);
	assert_int_equal(page_now().sent_barrier, T0);
	d.ts = T0 - 1;
	expect_dropped(&d, 0, BL_R_SEND_LATE);
	for (i = 0; i < sizeof(other); i++) {
		o.op = other[i];
		expect_sent(&o, T0);
	}
	p = page_now();
	p.sent_barrier = T0 + AHEAD;
	map_put(sk->maps.host_page, 0, &p);
	d.ts = T0 + AHEAD - 1;
	expect_dropped(&d, 0, BL_R_SEND_LATE);
	/* the clock was set back: nobody knows what B was in its time */
	p.sent_barrier++;
	map_put(sk->maps.host_page, 0, &p);
	expect_sent(&d, T0);
}

/*
 * A barrier that the clock does not explain may not have been sent: lines in flight that are below
 * it hold back what follows, as if it had not been.
 */
static void egress__a_barrier_beyond_the_clock(void **state)
{
	static const __u64 beyond[] = { 1, 250000000, 1ULL << 46 };
	struct desc be = beacon_frame(1, 0), w = be;
	struct bl_inflight line = { .ts = T0 - 100, .hold = T0 - 200 };
	struct bl_host_page p;
	struct frame in, want;
	__u32 i;

	(void)state;
	cfg.ahead_ns = AHEAD;
	set_cfg();
	p = page_now();
	p.data_ns = T0; /* the host is not silent */
	p.sent_barrier = p.sent_commit = T0 + AHEAD;
	map_put(sk->maps.host_page, 0, &p);
	line_put(0, &line);
	/* this one was sent, and with it all that is below */
	expect_sent_next(&be, T0);
	for (i = 0; i < sizeof(beyond) / sizeof(*beyond); i++) {
		p.sent_barrier = p.sent_commit = T0 + AHEAD + beyond[i];
		map_put(sk->maps.host_page, 0, &p);
		build(&in, &be);
		w.b = T0 - 100;
		w.c = T0 - 200;
		host_says(&w, bus_now);
		build(&want, &w);
		expect_frame_sent(&in, BEACON_MARK, 0, &want, BL_R_BEACON_SENT);
	}
	/* one that is too old for the wire is sent as a time that promises nothing */
	line.ts = line.hold = 1;
	line_put(0, &line);
	w.b = w.c = T0 - BL_TS_OLD;
	host_says(&w, bus_now);
	build(&want, &w);
	expect_frame_sent(&in, BEACON_MARK, 0, &want, BL_R_BEACON_SENT);
}

/*
 * The host first drops what a stopped process sends, and goes on without it only when it says so.
 * The next send counts, and so do all others.
 */
static void egress__send_void(void **state)
{
	static const __u8 other[] = { BL_OP_FRAG, BL_OP_CREDIT, BL_OP_NAK, BL_OP_PROBE,
				      BL_OP_PREP };
	struct desc d = own_message(false, T0 - 100), be = beacon_frame(1, 0), o = d;
	__u32 i;

	(void)state;
	put_inflight(0, T0 - 100);
	put_void(0, T0 - 101, 0);
	expect_sent(&d, T0 - 100);
	put_void(0, T0 - 100, 0);
	expect_dropped(&d, 0, BL_R_SEND_VOID);
	d.ts = T0; /* whatever the message says: the line is what counts */
	expect_dropped(&d, 0, BL_R_SEND_VOID);
	expect_sent(&be, T0 - 100);
	put_void(0, T0 - 50, T0 - 101);
	expect_sent(&be, T0 - 100);
	put_void(0, T0 - 50, T0 - 50);
	expect_sent(&be, T0);
	expect_dropped(&d, 0, BL_R_SEND_VOID);
	for (i = 0; i < sizeof(other); i++) {
		o.op = other[i];
		expect_sent(&o, T0);
	}
	/* another endpoint */
	put_inflight(1, T0 - 200);
	expect_sent(&be, T0 - 200);
	put_inflight(1, BL_TIME_NONE);
	d.sport = BL_PORT_BASE + 10;
	expect_sent(&d, T0);
	/* its next send, and a line that is empty */
	d.sport = FROM;
	put_inflight(0, T0 - 49);
	expect_sent(&d, T0 - 49);
	put_inflight(0, BL_TIME_NONE);
	expect_sent(&d, T0);
}

/* A promise that the clock does not explain does not count, and is taken back. */
static void egress__absurd_promise(void **state)
{
	const __u64 most = T0 + BOUND + AHEAD + 1000000000ULL;
	struct desc d = own_message(false, T0), be = beacon_frame(1, 0), w = be;
	struct bl_host_page p = page_now();
	struct frame in, out;

	(void)state;
	cfg.ahead_ns = AHEAD;
	set_cfg();
	p.promised = most;
	p.data_ns = T0; /* the host is not silent */
	map_put(sk->maps.host_page, 0, &p);
	expect_sent(&be, most);
	assert_int_equal(page_now().promised, most);
	p.promised = most + 1;
	p.sent_barrier = 0;
	map_put(sk->maps.host_page, 0, &p);
	w.b = w.c = T0;
	host_says(&w, T0);
	build(&in, &be);
	assert_int_equal(run_tc(sk->progs.bl_host_egress, &in, &out, BEACON_MARK, 0), TC_ACT_OK);
	build(&in, &w);
	same_frame(&out, &in);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_EGRESS, BL_R_BEACON_SENT },
			  { BL_HC_EGRESS, BL_R_PROMISE_ABSURD }));
	assert_int_equal(page_now().promised, T0);
	expect_sent(&d, T0);
}

/* What a line claims to hold below the C that has left holds nothing. */
static void egress__hold_below_c(void **state)
{
	struct bl_inflight line = { .ts = BL_TIME_NONE, .hold = T0 - 10 };
	struct desc be = beacon_frame(1, 0);
	struct frame in, out;

	(void)state;
	build(&in, &be);
	line_put(0, &line);
	assert_int_equal(run_tc(sk->progs.bl_host_egress, &in, &out, BEACON_MARK, 0), TC_ACT_OK);
	assert_int_equal(page_now().sent_commit, T0 - 10);
	line.hold = 1;
	line_put(0, &line);
	assert_int_equal(run_tc(sk->progs.bl_host_egress, &in, &out, BEACON_MARK, 0), TC_ACT_OK);
	assert_int_equal(page_now().sent_commit, T0);
}

/*
 * The last frame of a flush may claim a barrier above the timestamp that its endpoint has in
 * flight.
 */
static void egress__claim(void **state)
{
	/* What libraries left before claims were as old as BL_TS_OLD is none, either. */
	static const __s64 wrong[] = { 0, 2, -1, 1LL << 40, BL_TS_OLD + 1 };
	struct desc d = own_message(false, T0 + 50);
	__u32 v, i;

	/*
	 * Nothing is forgotten here: what a frame has claimed does not raise the barrier of the
	 * next frame, which may overtake it.
	 */
	(void)state;
	cfg.ahead_ns = AHEAD;
	set_cfg();
	for (v = 0; v < 8; v++) {
		struct bl_host_page fresh = { 0 };

		map_put(sk->maps.host_page, 0, &fresh);
		d = own_message(v & 1, T0 - 5);
		d.tags = v >> 1 & 1;
		d.csum = v >> 2;
		put_inflight(0, T0 - 100);
		d.b = bl_claim_wire(d.ts);
		/*
		 * the endpoint's own line is left out, and the barrier is no higher than the claim
		 */
		expect_sent_next(&d, T0 - 4);
		assert_int_equal(page_now().promised, 0);
		put_inflight(1, T0 - 50);
		expect_sent_next(&d, T0 - 50); /* the lines of other endpoints count */
		put_inflight(1, BL_TIME_NONE);
		for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
			d.b = (bl_unpromised(d.ts) + (__u64)wrong[i]) & BL_TS_MASK;
			expect_sent_next(&d, T0 - 100);
		}
		d.b = 0;
		expect_sent_next(&d, T0 - 100);
		d.ts = T0 + 50; /* a claim ahead of the clock */
		d.b = bl_claim_wire(d.ts);
		expect_sent_next(&d, T0 + 51);
		assert_int_equal(page_now().promised, T0 + 51);
		/* the latest time that a neighbour accepts whose clock is behind by the bound */
		d.ts = T0 + AHEAD - 1;
		d.b = bl_claim_wire(d.ts);
		expect_sent_next(&d, d.ts + 1);
		assert_int_equal(page_now().promised, T0 + AHEAD);
		d.ts++;
		d.b++;
		expect_sent_next(&d, T0 - 100);
		assert_int_equal(page_now().promised, T0 + AHEAD);
		d.ts -= 5; /* below what is promised */
		d.b = bl_claim_wire(d.ts);
		expect_sent_next(&d, d.ts + 1);
	}
	/* only messages may claim */
	d = own_message(false, 0);
	d.op = BL_OP_PROBE;
	d.ts = T0 - 5;
	d.b = bl_claim_wire(d.ts);
	expect_sent_next(&d, T0 - 100);
}

/* A GSO send claims nothing. Around the wrap the low 48 bits are compared, and 0 claims nothing. */
static void egress__claim_edges(void **state)
{
	const __u64 wrap = 7001ULL << BL_TS_BITS;
	struct desc d = own_message(false, T0 - 5);
	struct frame in, want;
	__u32 off = hdr_off(&d);

	(void)state;
	put_inflight(0, T0 - 100);
	d.b = bl_claim_wire(d.ts);
	d.body = 40;
	build(&in, &d);
	want = in;
	bl_put48(((struct bl_hdr *)(want.p + off))->barrier, T0 - 100);
	bl_put48(((struct bl_hdr *)(want.p + off))->commit, T0 - 100);
	expect_frame_sent(&in, 0, 64, &want, BL_R_SENT);
	put_inflight(0, wrap - 100);
	clock_at(sk->maps.clock, wrap + 10);
	d = own_message(false, wrap - 2);
	d.b = bl_claim_wire(d.ts);
	expect_sent(&d, wrap - 1);
	d.ts = wrap - 1;
	d.b = bl_claim_wire(d.ts);
	expect_sent(&d, wrap);
	d.ts = wrap;
	d.b = bl_claim_wire(d.ts);
	expect_sent(&d, wrap + 1);
	/* The claim of this time is written as 0. */
	put_inflight(0, wrap + BL_TS_OLD - 100);
	clock_at(sk->maps.clock, wrap + BL_TS_OLD + 10);
	d = own_message(false, wrap + BL_TS_OLD - 1);
	d.b = bl_claim_wire(d.ts);
	assert_int_equal(d.b, 0);
	expect_sent(&d, wrap + BL_TS_OLD - 100);
}

/* The frame carries the low 48 bits, also right after the wrap. */
static void egress__wrap(void **state)
{
	const __u64 wrap = 7001ULL << BL_TS_BITS;
	struct desc d = own_message(true, wrap);

	(void)state;
	clock_at(sk->maps.clock, wrap);
	expect_sent(&d, wrap);
	put_inflight(1, wrap - 1);
	expect_sent(&d, wrap - 1);
}

/*
 * Barred by the controller: messages and beacons carry B as before, and a C that promises nothing.
 */
static void egress__barred(void **state)
{
	struct bl_host_page page;
	struct desc d, w;
	struct frame in, want;
	__u32 v;

	(void)state;
	map_get(sk->maps.host_page, 0, &page);
	page.barred = 1;
	map_put(sk->maps.host_page, 0, &page);
	for (v = 0; v < 5; v++) {
		d = v < 4 ? own_message(v & 1, T0) : beacon_frame(1, 0);
		d.csum = v & 2;
		build(&in, &d);
		w = d;
		w.b = T0;
		w.c = T0 - BL_TS_OLD;
		if (v == 4)
			host_says(&w, T0);
		build(&want, &w);
		expect_frame_sent(&in, BEACON_MARK, 0, &want, v < 4 ? BL_R_SENT : BL_R_BEACON_SENT);
	}
}

/*
 * One skb of many frames: the header of every segment is filled in, also of a shorter last one if
 * it has a complete header. The checksum is left alone, since the kernel computes one for each
 * segment later.
 */
static void egress__gso(void **state)
{
	static const __u32 step[] = { 24, 25, 64, 700, 1472 };
	__u32 v, i, k, last;

	(void)state;
	put_inflight(1, T0 - 77);
	for (v = 0; v < 8; v++) {
		for (i = 0; i < sizeof(step) / sizeof(*step); i++) {
			__u32 segs = step[i] > 1000 ? 2 : step[i] > 100 ? 4 : 20;

			for (last = 0; last <= step[i]; last += last < 24 ? 23 : step[i]) {
				struct desc d = own_message(v & 1, T0);
				struct frame in, want;
				__u32 off = hdr_off(&d) + 4 * (v >> 1 & 1),
				      n = segs * step[i] + last;

				d.tags = v >> 1 & 1;
				d.csum = v >> 2;
				d.body = n - sizeof(struct bl_hdr);
				build(&in, &d);
				for (k = 1; k * step[i] + sizeof(struct bl_hdr) <= n; k++) {
					memcpy(in.p + off + k * step[i], in.p + off,
					       sizeof(struct bl_hdr));
					in.p[off + k * step[i] + 21] = (__u8)k; /* psn */
				}
				want = in;
				for (k = 0; k * step[i] + sizeof(struct bl_hdr) <= n; k++) {
					struct bl_hdr *h =
						(struct bl_hdr *)(want.p + off + k * step[i]);

					bl_put48(h->barrier, T0 - 77);
					bl_put48(h->commit, T0 - 77);
				}
				expect_frame_sent(&in, 0, step[i], &want, BL_R_SENT);
			}
		}
	}
}

/* The largest number of segments of a GSO send. */
static void egress__gso_128_segments(void **state)
{
	struct desc d = own_message(false, T0);
	struct frame in, want;
	__u32 off = hdr_off(&d), k;

	(void)state;
	d.body = 128 * 24 - 24;
	build(&in, &d);
	want = in;
	for (k = 0; k < 128; k++) {
		struct bl_hdr *h = (struct bl_hdr *)(want.p + off + k * 24);

		bl_put48(h->barrier, T0);
		bl_put48(h->commit, T0);
	}
	expect_frame_sent(&in, 0, 24, &want, BL_R_SENT);
}

static void egress__all_reasons(void **state)
{
	(void)state;
	all_reasons_seen(BY_EGRESS, BY_EGRESS);
	memset(reason_seen, 0, sizeof(reason_seen));
}

/* ---- local ---- */

static struct desc local_message(bool v6, __u64 ts)
{
	struct desc d = own_message(v6, ts);

	host_addr(d.daddr, v6, 1);
	d.dport = (__u16)(BL_PORT_BASE + (v6 ? 11 : 10));
	return d;
}

/* Runs a frame that must be consumed or dropped here, unchanged. */
static void expect_frame_consumed(const struct frame *in, __u32 gso_size, enum bl_reason why)
{
	struct frame out;
	int v = run_tc(sk->progs.bl_host_local, in, &out, BEACON_MARK, gso_size);

	if (v != (why == BL_R_NOT_OURS ? TC_ACT_OK : TC_ACT_SHOT))
		fail_msg("%s: verdict %d", doing, v);
	same_frame(&out, in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LOCAL, why }));
}

static void expect_consumed(const struct desc *d, enum bl_reason why)
{
	struct frame in;

	build(&in, d);
	expect_frame_consumed(&in, 0, why);
	if (why != BL_R_STORED)
		expect_nothing_stored();
}

static void check_odd_local(const struct frame *f, enum bl_reason why, void *arg)
{
	(void)arg;
	state_take(&before);
	expect_frame_consumed(f, 0, why);
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	expect_nothing_stored();
}

static void local__odd_frames(void **state)
{
	(void)state;
	each_odd(T0, check_odd_local, NULL);
}

/*
 * The message is stored byte for byte. The barriers of the frame are not used, and the page changes
 * only in the time of the last message.
 */
static void local__all_variants(void **state)
{
	static const __u8 ops[] = { BL_OP_DATA, BL_OP_FRAG, BL_OP_CREDIT, BL_OP_NAK, BL_OP_PROBE };
	static const __u32 bodies[] = { 0, 1, 215, 216, 217, 1495, 1496, 1497, 3543, 3544 };
	__u32 v, i, k;

	(void)state;
	state_take(&before);
	for (v = 0; v < 8; v++) {
		for (i = 0; i < sizeof(ops); i++) {
			for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
				struct desc d = local_message(v & 1, T0 + BOUND);

				d.tags = v >> 1 & 1;
				d.csum = v >> 2;
				d.op = ops[i];
				d.b = d.c = T0 + 3600000000000ULL;
				d.body = bodies[k];
				expect_consumed(&d, BL_R_STORED);
				expect_stored(v & 1 ? 2 : 1, &d,
					      d.op == BL_OP_DATA ? T0 + BOUND : 0);
				expect_nothing_stored();
			}
		}
	}
	state_take(&after);
	assert_int_equal(after.page.data_ns, T0);
	after.page.data_ns = 0;
	assert_memory_equal(&before, &after, sizeof(before));
}

/*
 * The clock of these tests stands still however long a case takes: this case sets it two and a half
 * minutes back.
 */
static void local__on_a_slow_machine(void **state)
{
	struct desc d = local_message(false, T0 + BOUND);
	struct bl_clock c;
	unsigned int k;

	(void)state;
	map_get(sk->maps.clock, 0, &c);
	for (k = 0; k < 2; k++)
		c.seg[k].mono_ns -= 150000000000ULL;
	map_put(sk->maps.clock, 0, &c);
	expect_consumed(&d, BL_R_STORED);
	assert_int_equal(page_now().data_ns, T0);
}

static void local__refused(void **state)
{
	struct desc d = local_message(false, T0 + BOUND + 1), be = beacon_frame(1, T0);
	struct frame in;

	(void)state;
	state_take(&before);
	expect_consumed(&d, BL_R_TS_AHEAD);
	cfg.ahead_ns = AHEAD;
	set_cfg();
	d.ts += AHEAD;
	expect_consumed(&d, BL_R_TS_AHEAD);
	d.ts--;
	expect_consumed(&be, BL_R_FORGED_BEACON);
	d.sport = BL_PORT_BASE + 8;
	expect_consumed(&d, BL_R_NOT_ENDPOINT);
	d.sport = BL_PORT_BASE + 11;
	expect_consumed(&d, BL_R_FOREIGN_SOURCE);
	d.sport = FROM;
	set_cookie(9, NO_COOKIE);
	expect_consumed(&d, BL_R_FOREIGN_SOURCE);
	set_cookie(9, 0);
	put_inflight(0, T0);
	put_void(0, T0, 0);
	expect_consumed(&d, BL_R_SEND_VOID);
	put_inflight(0, BL_TIME_NONE);
	put_void(0, 0, 0);
	d.dport = BL_PORT_BASE + 8;
	expect_consumed(&d, BL_R_NO_ENDPOINT);
	d.dport = BL_PORT_BASE + 10;
	d.daddr[15] = 77;
	expect_consumed(&d, BL_R_NO_ENDPOINT);
	d.daddr[15] = 2;
	build(&in, &d);
	/* a GSO send holds several messages; lib/ never sends one to its own host */
	expect_frame_consumed(&in, 60, BL_R_BAD_LENGTH);
	clock_void(sk->maps.clock);
	expect_consumed(&d, BL_R_CLOCK_VOID);
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void local__ring_full(void **state)
{
	struct desc d = local_message(false, T0);
	__u32 k;

	(void)state;
	new_ring(1, 4096);
	for (k = 0; k < 15; k++) {
		struct frame in;

		d.psn = k;
		build(&in, &d);
		expect_frame_consumed(&in, 0, BL_R_STORED);
	}
	{
		struct frame in;

		build(&in, &d);
		expect_frame_consumed(&in, 0, BL_R_RING_FULL);
	}
	assert_int_equal(ring_read(1), 15);
}

/*
 * A sleeper's @until is lowered as by the XDP program. The barrier that wakes it comes from the
 * switch.
 */
static void local__sleeper(void **state)
{
	struct desc d = local_message(false, T0 - 10);
	struct wakes w;

	(void)state;
	wake_get(&w);
	w.ep[1].until = BL_WAKE_ON_DATA;
	wake_put(&w);
	expect_consumed(&d, BL_R_STORED);
	wake_get(&w);
	assert_int_equal(w.ep[1].until, T0 - 10);
	assert_int_equal(w.next, T0 - 10);
	assert_false(is_woken(1, 0));
	d.op = BL_OP_CREDIT;
	expect_consumed(&d, BL_R_STORED);
	assert_true(is_woken(1, 5000));
	assert_int_equal(ring_read(1), 2);
}

/* Right after the wrap of the 48 bits, a message with a timestamp from before the wrap. */
static void local__wrap(void **state)
{
	const __u64 wrap = 7001ULL << BL_TS_BITS;
	struct desc d = local_message(false, wrap - 1);

	(void)state;
	clock_at(sk->maps.clock, wrap + 1);
	expect_consumed(&d, BL_R_STORED);
	expect_stored(1, &d, wrap - 1);
	d.ts = wrap;
	expect_consumed(&d, BL_R_STORED);
	expect_stored(1, &d, wrap);
}

static void local__all_reasons(void **state)
{
	(void)state;
	all_reasons_seen(BY_LOCAL, BY_LOCAL);
}

#define CASE(f) cmocka_unit_test_setup(f, host_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(egress__odd_frames),
		CASE(egress__all_variants),
		CASE(egress__beacon),
		CASE(egress__beacon_says_the_policy),
		CASE(egress__beacon_says_the_tai_offset),
		CASE(egress__forged_beacon),
		CASE(egress__not_an_endpoint),
		CASE(egress__foreign_source),
		CASE(egress__priority),
		CASE(egress__class_and_queue),
		CASE(egress__clock_void),
		CASE(egress__in_flight),
		CASE(egress__line_below_what_was_sent),
		CASE(egress__silent),
		CASE(egress__send_void),
		CASE(egress__send_late),
		CASE(egress__a_barrier_beyond_the_clock),
		CASE(egress__absurd_promise),
		CASE(egress__hold_below_c),
		CASE(egress__claim),
		CASE(egress__claim_edges),
		CASE(egress__wrap),
		CASE(egress__barred),
		CASE(egress__gso),
		CASE(egress__gso_128_segments),
		cmocka_unit_test(egress__all_reasons),
		CASE(local__odd_frames),
		CASE(local__all_variants),
		CASE(local__on_a_slow_machine),
		CASE(local__refused),
		CASE(local__ring_full),
		CASE(local__sleeper),
		CASE(local__wrap),
		cmocka_unit_test(local__all_reasons),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
