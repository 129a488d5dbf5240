// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Authentication of links at a switch: which beacons and reservations its programs accept, and byte
 * for byte what they send. Every refused frame leaves registers, trees and lanes as they were.
 */
#include "core/order/link_core.h"
#include "tests/prog/switch/live_util.h"
#include "tests/prog/pace_util.h"
#include "tests/prog/auth_util.h"
#include "tests/prog/switch/pl2_switch_frames.h"
#include "maps/pl2_switch_abi.h"

#define QUEUES BL_PORT_QUEUE(NPORTS, 0)

static int auth_setup(void **state)
{
	__u32 p;

	switch_setup(state);
	for (p = 0; p < NPORTS; p++)
		put_keys(p, 0x1000 + p); /* the nodes of beacon_frame() */
	forget_stamps();
	return 0;
}

static int first_setup(void **state)
{
	int rc;

	with_auth = BL_AUTH_STRICT;
	rc = live_setup(state);
	return rc ? rc : auth_setup(state);
}

/* Builds a beacon of the neighbour at @port with barrier @b, sealed with @stamp. */
static void sealed_beacon(struct frame *f, __u32 port, __u64 b, __u64 stamp)
{
	struct desc d = beacon_frame(port, b);

	build(f, &d);
	seal(f, 14, port, false, BL_AUTH_S_BEACON, stamp);
}

/* Runs a beacon that must be accepted and raise port @port's register to @b. */
static void accept_beacon(__u32 port, const struct frame *f, __u64 b)
{
	struct frame out;

	run_xdp(sk->progs.bl_switch_xdp, net.ifindex[port], f, &out);
	counts_take(sk->maps.counts, counted);
	state_take(&after);
	assert_int_equal(after.regs[port].lane[0].b, b);
}

/* The whole way: what arrives sealed for one link leaves sealed for each of the others. */
static void beacon__relayed_and_sealed(void **state)
{
	struct frame in, want, got;
	struct desc r;
	__u32 p;

	(void)state;
	sealed_beacon(&in, 0, T0 - 100, T0 - 7);
	send_through(bpf_program__fd(sk->progs.bl_switch_xdp), 0, &in);
	counts_moved(sk->maps.counts, counted, 5,
		     WANT({ 0, BL_R_RELAYED }, { 0, BL_R_JOINED }, { 0, BL_R_CLONE_SENT },
			  { 1, BL_R_CLONE_SENT }, { 2, BL_R_CLONE_SENT }, { 3, BL_R_CLONE_SENT }));
	assert_int_equal(auth_state(0).seen[BL_AUTH_S_BEACON], T0 - 7);
	assert_int_equal(auth_state(0).in, EPOCH);
	r = relayed(beacon_frame(0, T0 - 100), T0 - 100, T0 - 100);
	for (p = 0; p < NPORTS; p++) {
		struct desc d = r;

		memcpy(d.src, ports[p].mac, 6);
		d.port = (__u16)p;
		d.ts = 0;
		say(&d, (__u16)(0x700 + p), 0, T0, SAID);
		build(&want, &d);
		seal(&want, 14, p, true, 0, T0);
		receive_frame(p, &got, 5000);
		same_frame(&got, &want);
		assert_int_equal(auth_state(p).sent[0], T0);
		assert_int_equal(auth_state(p).out, EPOCH);
	}
	expect_no_arrival();
}

/* Stamps rise on each lane's stream although the clock stands still; so do those of other lanes. */
static void clone__stamps_rise(void **state)
{
	struct desc d = relayed(beacon_frame(0, 1), 0, T0), w;
	struct bl_sw_lane lane = { .now_ns = T0, .limit_ns = T0 + cfg.ahead_ns };
	struct frame in, want, got;
	__u32 k;

	(void)state;
	map_put(sk->maps.sw_lanes, 0, &lane);
	map_put(sk->maps.sw_lanes, 3, &lane);
	for (k = 0; k < 4; k++) {
		d.relay[1].b = d.b = T0 + k;
		d.relay[1].c = d.c = T0 + k;
		d.lanes = 4;
		d.lane = k < 3 ? 0 : 3;
		build(&in, &d);
		send_through(to_port, 0, &in);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_SENT }));
		memcpy(d.src, ports[1].mac, 6);
		d.port = 1;
		w = d;
		w.ts = 0;
		say(&w, 0x701, 0, T0, SAID);
		if (k == 1 || k == 2) /* once in a while, by lane */
			w.says = 2;
		build(&want, &w);
		seal(&want, 14, 1, true, d.lane, k < 3 ? T0 + k : T0);
		receive_frame(1, &got, 5000);
		same_frame(&got, &want);
	}
	expect_no_arrival();
}

/* A clone behind a VLAN tag, and one to an exempt port. */
static void clone__tagged_and_open(void **state)
{
	struct desc d = relayed(beacon_frame(0, 1), 0, T0), w;
	struct bl_sw_lane lane = { .now_ns = T0, .limit_ns = T0 + cfg.ahead_ns };
	struct bl_auth_link l;
	struct frame in, want, got;

	(void)state;
	map_put(sk->maps.sw_lanes, 0, &lane);
	d.tags = 1;
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_SENT }));
	w = d;
	w.b = w.c = T0;
	w.port = 1;
	w.ts = 0;
	say(&w, 0x701, 0, T0, SAID);
	memcpy(w.src, ports[1].mac, 6);
	build(&want, &w);
	seal(&want, 18, 1, true, 0, T0);
	receive_frame(1, &got, 5000);
	same_frame(&got, &want);
	map_get(sk->maps.auth_links, 1, &l);
	l.how = BL_AUTH_EXEMPT;
	map_put(sk->maps.auth_links, 1, &l);
	d.relay[1].b = T0 + 5;
	lane.now_ns += TICK;
	lane.limit_ns += TICK;
	d.ts = relay_mark(2, lane.now_ns);
	map_put(sk->maps.sw_lanes, 0, &lane);
	build(&in, &d);
	send_through(to_port, 0, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_CLONE_SENT }));
	w.relay[1].b = w.b = T0 + 5;
	say(&w, 0x701, 0, lane.now_ns, SAID);
	build(&want, &w); /* without mark and tag */
	receive_frame(1, &got, 5000);
	same_frame(&got, &want);
	expect_no_arrival();
}

/* Without a valid mark, stamp and tag nothing of a beacon is used. */
static void beacon__refused(void **state)
{
	struct desc d = beacon_frame(0, T0 - 50);
	struct bl_auth_key other = test_key(1, false, EPOCH);
	struct frame f;

	(void)state;
	sealed_beacon(&f, 0, T0 - 100, T0 - 900);
	accept_beacon(0, &f, T0 - 100);
	doing = "the same once more";
	refuse_frame(0, &f, BL_R_AUTH_REPLAYED);
	doing = "no mark";
	refuse(0, &d, BL_R_AUTH_MISSING);
	doing = "another link's key";
	build(&f, &d);
	seal_under(&f, 14, other, EPOCH, 0, T0);
	refuse_frame(0, &f, BL_R_AUTH_BAD);
	doing = "the key of the other direction: reflected";
	build(&f, &d);
	seal(&f, 14, 0, true, 0, T0);
	refuse_frame(0, &f, BL_R_AUTH_BAD);
	doing = "an epoch that nobody has";
	build(&f, &d);
	seal_under(&f, 14, test_key(0, false, EPOCH + 1), EPOCH + 1, 0, T0);
	refuse_frame(0, &f, BL_R_AUTH_EPOCH);
	doing = "the neighbour in another's name";
	d.node = 0x1001;
	build(&f, &d);
	seal(&f, 14, 0, false, 0, T0);
	refuse_frame(0, &f, BL_R_AUTH_BAD);
	assert_int_equal(auth_state(0).refused, BL_R_AUTH_BAD);
	assert_int_equal(auth_state(0).refused_ns, T0);
	doing = "and after all that the neighbour is heard";
	sealed_beacon(&f, 0, T0 - 40, T0 - 899);
	accept_beacon(0, &f, T0 - 40);
}

static void beacon__stamp_edges(void **state)
{
	static const struct {
		__s64 off;
		enum bl_reason why;
	} t[] = {
		{ -1000000001LL, BL_R_AUTH_REPLAYED }, /* recorded more than a second ago */
		{ 1000000001LL, BL_R_AUTH_REPLAYED },  { -1000000000LL, BL_R_NONE },
		{ -1000000000LL, BL_R_AUTH_REPLAYED }, { 1000000000LL, BL_R_NONE },
		{ 999999999LL, BL_R_AUTH_REPLAYED },
	};
	struct frame f;
	__u32 i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		sealed_beacon(&f, 0, T0 - 100 + i, T0 + (__u64)t[i].off);
		if (t[i].why == BL_R_NONE) {
			accept_beacon(0, &f, T0 - 100 + i);
			continue;
		}
		/* the first beacon of all reads the clock, which changes the lane */
		feed(1, T0);
		counts_take(sk->maps.counts, counted);
		refuse_frame(0, &f, t[i].why);
	}
}

/* Each stream has its own stamps: one does not stop another. */
static void beacon__streams(void **state)
{
	struct frame f;
	struct desc d;
	__u32 s;

	(void)state;
	for (s = BL_AUTH_STREAMS; s-- > 0;) {
		d = beacon_frame(0, T0 - 100 - s);
		build(&f, &d);
		seal(&f, 14, 0, false, s, T0 - 500);
		accept_beacon(0, &f, T0 - 100 - s);
	}
	refuse_frame(0, &f, BL_R_AUTH_REPLAYED);
}

/* Every bit that the tag covers: changed, the frame is refused; every other: it is not. */
static void beacon__every_bit(void **state)
{
	struct bl_auth_state none = {};
	struct frame good, f, out;
	__u32 i;

	(void)state;
	sealed_beacon(&good, 0, T0 - 100, T0 - 9);
	for (i = 0; i < good.n * 8; i++) {
		map_put(sk->maps.auth_states, 0, &none);
		f = good;
		f.p[i / 8] ^= (__u8)(1 << i % 8);
		run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &f, &out);
		if (auth_state(0).accepted_ns == T0 && is_covered(&good, i / 8))
			fail_msg("byte %u, bit %u may be changed on the way", i / 8, i % 8);
		if (auth_state(0).accepted_ns != T0 && !is_covered(&good, i / 8) && i / 8 < 12)
			fail_msg("byte %u, bit %u is not said to be covered, and is", i / 8, i % 8);
	}
	counts_take(sk->maps.counts, counted);
	for (i = 0; i < NPORTS; i++) {
		struct frame got;

		while (receive_frame(i, &got, 0), got.n)
			;
	}
}

/* During a rotation both epochs are accepted; the old one ends with the overlap. */
static void beacon__rotation(void **state)
{
	struct bl_auth_link l = { .peer = 0x1000 };
	struct frame f;
	struct desc d;

	(void)state;
	l.at[0] = (struct bl_auth_epoch){ .epoch = EPOCH,
					  .until_ns = T0 + 1000,
					  .send = test_key(0, true, EPOCH),
					  .receive = test_key(0, false, EPOCH) };
	l.at[1] = (struct bl_auth_epoch){ .epoch = EPOCH + 1,
					  .from_ns = T0 + 500,
					  .until_ns = BL_TIME_NONE,
					  .send = test_key(0, true, EPOCH + 1),
					  .receive = test_key(0, false, EPOCH + 1) };
	map_put(sk->maps.auth_links, 0, &l);
	d = beacon_frame(0, T0 - 100);
	build(&f, &d);
	seal_under(&f, 14, test_key(0, false, EPOCH + 1), EPOCH + 1, 0, T0 - 90);
	accept_beacon(0, &f, T0 - 100); /* a neighbour whose clock is ahead */
	assert_int_equal(auth_state(0).in, EPOCH + 1);
	sealed_beacon(&f, 0, T0 - 50, T0 - 80);
	accept_beacon(0, &f, T0 - 50);
	assert_int_equal(auth_state(0).in, EPOCH);
	clock_at(sk->maps.clock, T0 + 1000);
	sealed_beacon(&f, 0, T0 - 40, T0 - 70);
	accept_beacon(0, &f, T0 - 40);
	clock_at(sk->maps.clock, T0 + 1001);
	feed(1, T0); /* reads the clock */
	counts_take(sk->maps.counts, counted);
	sealed_beacon(&f, 0, T0 - 30, T0 - 60);
	refuse_frame(0, &f, BL_R_AUTH_EPOCH);
}

/* After too many wrong tags no tag is computed, and a ms later one is again. */
static void beacon__flood(void **state)
{
	struct frame bad, good, out;
	__u32 i, burst = 51;

	(void)state;
	feed(1, T0);
	counts_take(sk->maps.counts, counted);
	sealed_beacon(&bad, 0, T0 - 100, T0 - 9);
	bad.p[tag_at(&bad)] ^= 1;
	sealed_beacon(&good, 0, T0 - 100, T0 - 9);
	for (i = 0; i < burst; i++)
		run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &bad, &out);
	counts_moved(sk->maps.counts, counted, burst, WANT({ 0, BL_R_AUTH_BAD, burst }));
	for (i = 0; i < 10; i++)
		refuse_frame(0, i & 1 ? &bad : &good, BL_R_AUTH_FLOOD);
	/* another port is not concerned */
	sealed_beacon(&out, 1, T0 - 100, T0 - 9);
	accept_beacon(1, &out, T0 - 100);
	clock_at(sk->maps.clock, T0 + 1000000);
	accept_beacon(0, &good, T0 - 100);
}

/* A link body is used if its own tag is right. If it is not, the beacon is used all the same. */
static void beacon__link_body(void **state)
{
	struct desc d = beacon_frame(0, T0 - 100);
	struct frame f, bad;
	__u32 i;

	(void)state;
	for (i = 0; i < 40 * 8; i++) {
		link_new(sk->maps.link_seen, 0, 1);
		forget_stamps();
		say(&d, 7, 1000, T0 - 50, 700);
		build(&f, &d);
		seal(&f, 14, 0, false, BL_AUTH_S_BEACON, T0 - 9);
		bad = f;
		bad.p[14 + 48 + i / 8] ^= (__u8)(1 << i % 8);
		accept_beacon(0, &bad, T0 - 100);
		if (link_at(sk->maps.link_seen, 0).heard_ns)
			fail_msg("bit %u of the link body may be changed on the way", i);
		forget_stamps();
		accept_beacon(0, &f, T0 - 100);
		assert_int_equal(link_at(sk->maps.link_seen, 0).heard_ns, T0);
		assert_int_equal(link_at(sk->maps.link_seen, 0).lane[0].ahead, 1000);
	}
	/* with a void clock, too */
	clock_void(sk->maps.clock);
	link_new(sk->maps.link_seen, 0, 1);
	forget_stamps();
	run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &bad, &f);
	assert_int_equal(link_at(sk->maps.link_seen, 0).heard_ns, 0);
	build(&f, &d);
	seal(&f, 14, 0, false, BL_AUTH_S_BEACON, T0 - 9);
	forget_stamps();
	run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &f, &bad);
	assert_int_equal(link_at(sk->maps.link_seen, 0).heard_ns, T0);
	f.p[14 + 40] ^= 1; /* the tag of the beacon */
	link_new(sk->maps.link_seen, 0, 1);
	forget_stamps();
	run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &f, &bad);
	assert_int_equal(link_at(sk->maps.link_seen, 0).heard_ns, 0);
	clock_at(sk->maps.clock, T0);
	counts_take(sk->maps.counts, counted);
}

/* An exempt port accepts what has no tag. */
static void beacon__open_port(void **state)
{
	struct bl_auth_link l = { .how = BL_AUTH_EXEMPT };
	struct desc d = beacon_frame(3, T0 - 100);
	struct frame f;

	(void)state;
	map_put(sk->maps.auth_links, 3, &l);
	link_new(sk->maps.link_seen, 3, 1);
	say(&d, 7, 1000, T0 - 50, 700);
	build(&f, &d);
	accept_beacon(3, &f, T0 - 100);
	assert_int_equal(link_at(sk->maps.link_seen, 3).heard_ns, T0);
}

/* In mode strict, data raises no register, whatever it carries, and is forwarded. */
static void data__raises_nothing(void **state)
{
	struct desc d = data_frame(0, 3, T0 - 5, T0 - 10);
	struct frame f;

	(void)state;
	sealed_beacon(&f, 0, T0 - 1000, T0 - 9);
	accept_beacon(0, &f, T0 - 1000);
	step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, T0 - 1000, T0 - 1000) },
	     WANT({ 0, BL_R_FORWARDED }));
	assert_int_equal(after.regs[0].lane[0].b, T0 - 1000);
	assert_int_equal(after.regs[0].lane[0].c, T0 - 1000);
}

/* While a rack is converted, what has no tag is accepted; what has one must have the right one. */
static void beacon__offered(void **state)
{
	struct desc d = beacon_frame(0, T0 - 100);
	struct bl_auth_link l;
	struct frame f;

	(void)state;
	map_get(sk->maps.auth_links, 0, &l);
	l.how = BL_AUTH_OFFERED;
	map_put(sk->maps.auth_links, 0, &l);
	link_new(sk->maps.link_seen, 0, 1);
	say(&d, 7, 1000, T0 - 50, 700);
	build(&f, &d);
	accept_beacon(0, &f, T0 - 100);
	assert_int_equal(after.lives[0].auth, 0);
	assert_int_equal(link_at(sk->maps.link_seen, 0).heard_ns, T0);
	sealed_beacon(&f, 0, T0 - 90, T0 - 9);
	accept_beacon(0, &f, T0 - 90);
	assert_int_equal(after.lives[0].auth, EPOCH);
	sealed_beacon(&f, 0, T0 - 80, T0 - 8);
	f.p[14 + 18] ^= 1;
	refuse_frame(0, &f, BL_R_AUTH_BAD);
}

/* A port without keys has no neighbour that could be believed. */
static void beacon__no_keys(void **state)
{
	struct bl_auth_link l = {};
	struct frame f;

	(void)state;
	feed(1, T0);
	counts_take(sk->maps.counts, counted);
	map_put(sk->maps.auth_links, 0, &l);
	sealed_beacon(&f, 0, T0 - 100, T0 - 9);
	refuse_frame(0, &f, BL_R_AUTH_EPOCH);
	f.n = 14 + 24 + 21;
	refuse_frame(0, &f, BL_R_SHORT);
}

/* ---- reservations ---- */

static void reserve_setup(void)
{
	static const struct bl_rsv none;
	static const struct bl_rsv_pair nothing;
	const struct bl_rsv_cfg rc = { .on = 1,
				       .ns_q20 = 8 << 20,
				       .limit_bytes = 16 * 1538,
				       .refuse_ns = 123040,
				       .far_ns = 1000000000,
				       .lapse_ns = 1000000000,
				       .pair_shift = 3 };
	__u32 i;

	cfg.admission = 1;
	set_cfg();
	map_put(sk->maps.rsv_cfg, 0, &rc);
	map_put(sk->maps.rsv, 0, &none);
	for (i = 0; i < 64; i++)
		map_put(sk->maps.rsv_pairs, i, &nothing);
	pace_setup(sk->maps.port_due, 64, QUEUES);
}

static struct rsv rsv_frame(__u32 from, __u32 to, __u32 seq)
{
	struct rsv r = { .op = BL_OP_RSV, .seq = seq, .bytes = 1538, .cookie = 0x1234 };

	host_mac(r.src, from);
	host_mac(r.mac, to);
	return r;
}

/* An RSV is answered by a GRT in its place, sealed for the link that it came from. */
static void rsv__answered(void **state)
{
	struct rsv r = rsv_frame(0, 1, 7);
	struct frame in, out, want;
	__u32 tags;

	(void)state;
	reserve_setup();
	for (tags = 0; tags < 2; tags++, r.seq++) {
		r.tags = (__u8)tags;
		r.op = BL_OP_RSV;
		r.flags = 0;
		r.in = r.out = 0;
		host_mac(r.src, 0);
		build_rsv(&in, &r);
		seal(&in, 14 + 4 * tags, 0, false, BL_AUTH_S_RSV, T0 - 8 + tags);
		run_on(0, &in, &out, XDP_REDIRECT);
		reason_seen[BL_R_RSV_LAPSED] = true; /* the second one ends the first */
		counts_take(sk->maps.counts, counted);
		r.op = BL_OP_GRT;
		waits_of(&out, &r.in, &r.out);
		memcpy(r.src, ports[0].mac, 6);
		build_rsv(&want, &r);
		seal(&want, 14 + 4 * tags, 0, true, BL_AUTH_S_GRANT + (net.cpu & 7), T0 + tags);
		same_frame(&out, &want);
		doing = "the same RSV again";
		run_on(0, &in, &out, XDP_DROP);
		same_frame(&out, &in);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_AUTH_REPLAYED }));
	}
}

/* Nothing is promised for an RSV that the neighbour did not send. */
static void rsv__refused(void **state)
{
	struct rsv r = rsv_frame(0, 1, 7);
	struct bl_auth_state none = {};
	struct frame in, good, out;
	struct bl_rsv all;
	__u32 i;

	(void)state;
	reserve_setup();
	build_rsv(&in, &r);
	run_on(0, &in, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_AUTH_MISSING }));
	build_rsv(&good, &r);
	seal(&good, 14, 0, false, BL_AUTH_S_RSV, T0 - 8);
	for (i = 14 * 8; i < good.n * 8; i++) { /* every bit behind the Ethernet header */
		map_put(sk->maps.auth_states, 0, &none);
		in = good;
		in.p[i / 8] ^= (__u8)(1 << i % 8);
		run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &in, &out);
		if (auth_state(0).accepted_ns)
			fail_msg("byte %u, bit %u may be changed on the way", i / 8, i % 8);
	}
	for (i = 6 * 8; i < 12 * 8; i++) { /* whose burst it is */
		map_put(sk->maps.auth_states, 0, &none);
		in = good;
		in.p[i / 8] ^= (__u8)(1 << i % 8);
		run_on(0, &in, &out, XDP_DROP);
		assert_int_equal(auth_state(0).refused, BL_R_AUTH_BAD);
	}
	map_get(sk->maps.rsv, 0, &all);
	assert_int_equal(all.port[0].grants, 0);
	clock_void(sk->maps.clock);
	run_on(0, &good, &out, XDP_DROP);
	counts_take(sk->maps.counts, counted);
	map_get(sk->maps.rsv, 0, &all);
	assert_int_equal(all.port[0].grants, 0);
}

/* Answer and copy pass the queues of metered ports, each sealed for its link. */
static void rsv__metered(void **state)
{
	struct bpf_devmap_val v;
	struct rsv r = rsv_frame(0, 1, 7), copy;
	struct frame in, out, want;
	__u64 none = 0;
	__u32 p;

	(void)state;
	reserve_setup();
	for (p = 0; p < 2; p++) {
		v = (struct bpf_devmap_val){ .ifindex = net.ifindex[p] };
		map_put(sk->maps.port_busy, p, &none);
		map_put(sk->maps.port_tx, p, &v);
		ports[p].metered = 1;
		map_put(sk->maps.sw_ports, p, &ports[p]);
	}
	build_rsv(&in, &r);
	seal(&in, 14, 0, false, BL_AUTH_S_RSV, T0 - 8);
	run_on(0, &in, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_RSV_GRANTED }));
	r.op = BL_OP_GRT;
	waits_of(&out, &r.in, &r.out);
	copy = r;
	host_mac(copy.mac, 0);
	copy.flags = BL_GRT_COPY;
	memcpy(r.src, ports[0].mac, 6);
	for (p = 0; p < 2; p++) {
		const __u8 *src;

		assert_int_equal(turn(sk->progs.bl_port_pace, &out), XDP_REDIRECT);
		/* in whatever order the pacer serves the two ports */
		src = out.p + 6;
		build_rsv(&want, memcmp(src, ports[0].mac, 6) ? &copy : &r);
		seal(&want, 14, memcmp(src, ports[0].mac, 6) ? 1 : 0, true,
		     BL_AUTH_S_GRANT + (net.cpu & 7), T0);
		same_frame(&out, &want);
	}
	counts_take(sk->maps.counts, counted);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_AUTH, ~0u);
}

#define CASE(f) cmocka_unit_test_setup(f, auth_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(beacon__relayed_and_sealed),
		CASE(clone__stamps_rise),
		CASE(clone__tagged_and_open),
		CASE(beacon__refused),
		CASE(beacon__stamp_edges),
		CASE(beacon__streams),
		CASE(beacon__every_bit),
		CASE(beacon__rotation),
		CASE(beacon__flood),
		CASE(data__raises_nothing),
		CASE(beacon__link_body),
		CASE(beacon__open_port),
		CASE(beacon__offered),
		CASE(beacon__no_keys),
		CASE(rsv__answered),
		CASE(rsv__refused),
		CASE(rsv__metered),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, first_setup, NULL);
}
