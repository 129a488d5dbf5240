// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Authentication of links at a host: the beacons and grants that its programs accept, and byte for
 * byte the beacons, commit beacons and reservations that they send. v0 plays the NIC.
 */
#include <linux/pkt_cls.h>
#include "tests/prog/host/commit_util.h"
#include "tests/prog/pace_util.h"
#include "tests/prog/auth_util.h"
#include "tests/prog/switch/pl2_switch_frames.h"

#define PEER       0x1000 /* the node of beacon_frame(0) */
#define HOLD_SLOTS 128
#define QUEUES     (BL_DESTS * BL_HOLD_CLASSES)
#define LONG_NS    3600000000000ULL

static int auth_setup(void **state)
{
	host_setup(state);
	put_keys(0, PEER);
	forget_stamps();
	return 0;
}

static int first_setup(void **state)
{
	with_auth = BL_AUTH_STRICT;
	net_up(state);
	return auth_setup(state);
}

static void sealed_beacon(struct frame *f, __u64 b, __u64 stamp)
{
	struct desc d = beacon_frame(0, b);

	build(f, &d);
	seal(f, 14, 0, false, BL_AUTH_S_BEACON, stamp);
}

/* Runs a beacon that must be consumed and make the page's barrier @b. */
static void accept_beacon(const struct frame *f, __u64 b)
{
	struct bl_host_page page;

	run_host_xdp(f, XDP_DROP, f);
	counts_take(sk->maps.counts, counted);
	map_get(sk->maps.host_page, 0, &page);
	assert_int_equal(page.barrier, b);
}

/* Runs a beacon that must be refused, and change nothing that it says. */
static void refuse_beacon(const struct frame *f, enum bl_reason why)
{
	struct bl_host_page p, q;

	map_get(sk->maps.host_page, 0, &p);
	run_host_xdp(f, XDP_DROP, f);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why }));
	map_get(sk->maps.host_page, 0, &q);
	/* the clock is read before the check */
	q.now_ns = p.now_ns;
	q.limit_ns = p.limit_ns;
	q.watch_ns = p.watch_ns;
	assert_memory_equal(&p, &q, sizeof(p));
}

static void ingress__beacons(void **state)
{
	struct desc d = beacon_frame(0, T0 - 50);
	struct frame f;
	__u32 i;

	(void)state;
	sealed_beacon(&f, T0 - 100, T0 - 900);
	accept_beacon(&f, T0 - 100);
	assert_int_equal(auth_state(0).seen[BL_AUTH_S_BEACON], T0 - 900);
	doing = "the same once more";
	refuse_beacon(&f, BL_R_AUTH_REPLAYED);
	doing = "no mark";
	build(&f, &d);
	refuse_beacon(&f, BL_R_AUTH_MISSING);
	doing = "this host's own beacon, reflected";
	seal(&f, 14, 0, true, 0, T0);
	refuse_beacon(&f, BL_R_AUTH_BAD);
	doing = "an unknown epoch";
	build(&f, &d);
	seal_under(&f, 14, test_key(0, false, 9), 9, 0, T0);
	refuse_beacon(&f, BL_R_AUTH_EPOCH);
	doing = "another node";
	d.node++;
	build(&f, &d);
	seal(&f, 14, 0, false, 0, T0);
	refuse_beacon(&f, BL_R_AUTH_BAD);
	doing = "a flood";
	for (i = 0; i < 49; i++)
		refuse_beacon(&f, BL_R_AUTH_BAD);
	refuse_beacon(&f, BL_R_AUTH_FLOOD);
	clock_at(sk->maps.clock, T0 + 1000000);
	doing = "after the flood";
	sealed_beacon(&f, T0 - 40, T0);
	accept_beacon(&f, T0 - 40);
}

/* A link body whose own tag is wrong is not used; its beacon is. */
static void ingress__link_body(void **state)
{
	struct desc d = beacon_frame(0, T0 - 100);
	struct frame good, bad;

	(void)state;
	say(&d, 7, 1000, T0 - 50, 700);
	build(&good, &d);
	seal(&good, 14, 0, false, BL_AUTH_S_BEACON, T0 - 9);
	bad = good;
	bad.p[14 + 48 + 8] ^= 1; /* the number of frames */
	accept_beacon(&bad, T0 - 100);
	assert_int_equal(link_at(sk->maps.link_seen, 0).heard_ns, 0);
	forget_stamps();
	accept_beacon(&good, T0 - 100);
	assert_int_equal(link_at(sk->maps.link_seen, 0).heard_ns, T0);
	assert_int_equal(link_at(sk->maps.link_seen, 0).lane[0].ahead, 1000);
}

/* Runs a beacon of this host through its egress program; it must leave as @want. */
static void expect_beacon_sent(const struct frame *in, const struct frame *want)
{
	struct frame out;

	assert_int_equal(run_tc(sk->progs.bl_host_egress, in, &out, BEACON_MARK), TC_ACT_OK);
	same_frame(&out, want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_EGRESS, BL_R_BEACON_SENT }));
}

/* Sealed after B and C are filled in; stamps rise although the clock stands still. */
static void egress__beacons(void **state)
{
	struct desc d = beacon_frame(1, 0), w;
	struct bl_auth_link l;
	struct frame in, want;
	__u32 k;

	(void)state;
	for (k = 0; k < 4; k++) {
		d.tags = k >> 1;
		d.ts = k ? 0xffffffffffffULL : 0; /* whatever the daemon's frame has there */
		build(&in, &d);
		w = d;
		w.ts = 0;
		w.b = w.c = T0;
		host_says(&w, T0);
		build(&want, &w);
		seal(&want, 14 + 4 * d.tags, 0, true, BL_AUTH_S_BEACON, T0 + k);
		expect_beacon_sent(&in, &want);
	}
	assert_int_equal(auth_state(0).out, EPOCH);
	/* the next epoch is used from its time on */
	map_get(sk->maps.auth_links, 0, &l);
	l.at[0] = (struct bl_auth_epoch){ .epoch = EPOCH + 1,
					  .from_ns = T0 + 1000,
					  .until_ns = BL_TIME_NONE,
					  .send = test_key(0, true, EPOCH + 1) };
	map_put(sk->maps.auth_links, 0, &l);
	for (k = 0; k < 2; k++) {
		clock_at(sk->maps.clock, T0 + 999 + k);
		w.b = w.c = T0 + 999 + k;
		host_says(&w, T0 + 999 + k);
		build(&want, &w);
		seal_under(&want, 18, test_key(0, true, EPOCH + k), EPOCH + k, 0, T0 + 999 + k);
		expect_beacon_sent(&in, &want);
	}
	/* and without any key, the frame leaves as it is */
	memset(&l, 0, sizeof(l));
	map_put(sk->maps.auth_links, 0, &l);
	host_says(&w, T0 + 1000);
	build(&want, &w);
	expect_beacon_sent(&in, &want);
}

/* Data has no tag, and needs none. */
static void egress__data_as_before(void **state)
{
	struct desc d = data_frame(1, 0, T0 - 5, 0), w;
	struct frame in, out, want;

	(void)state;
	d.sport = FROM;
	d.flag_byte = 0;
	build(&in, &d);
	w = d;
	w.b = w.c = T0;
	build(&want, &w);
	assert_int_equal(run_tc(sk->progs.bl_host_egress, &in, &out, 0), TC_ACT_OK);
	same_frame(&out, &want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_EGRESS, BL_R_SENT }));
}

/* A beacon that is made from an ACK bypasses the queue: it has a stream of its own. */
static void commit__sealed(void **state)
{
	const __u32 n = BODY_SLOT;
	struct frame in, want;
	struct desc d, w;
	__u32 v;

	(void)state;
	/* endpoint 10 has the incarnation that the ACK's body names */
	for (v = 0; v < 4; v++) {
		struct bl_host_page page = { 0 };
		struct bl_ep_slot e;
		__u32 ep = v & 1 ? 2 : 1, port = v & 1 ? 11 : 10;

		map_put(sk->maps.host_page, 0, &page);
		map_get(sk->maps.eps, port, &e);
		e.life = BODY_INCARNATION;
		map_put(sk->maps.eps, port, &e);
		sealed_beacon(&in, T0 - 1000, T0 - 100 + v);
		accept_beacon(&in, T0 - 1000);
		d = v & 1 ? data_frame6(0, 1, T0 - 500, T0 - 1000)
			  : data_frame(0, 1, T0 - 500, T0 - 1000);
		d.op = BL_OP_ACK;
		d.sport = BL_PORT_BASE + 7;
		d.dport = (__u16)(BL_PORT_BASE + port);
		d.tags = v >> 1;
		put_window(ep, n, n + 1, T0 - 500, v & 1);
		build(&in, &d);
		w = beacon_frame(1, T0 - BL_TS_OLD);
		memcpy(w.src, d.dst, 6);
		w.c = T0;
		w.tags = d.tags;
		w.node = NODE_ID;
		build(&want, &w);
		seal(&want, 14 + 4 * d.tags, 0, true, BL_AUTH_S_COMMIT, T0 + v);
		run_host_xdp(&in, XDP_TX, &want);
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_COMMITTED }));
	}
	assert_int_equal(auth_state(0).sent[BL_AUTH_S_BEACON], 0);
}

/* In mode strict, a message is stored and its barriers are not published. */
static void ingress__data_raises_nothing(void **state)
{
	struct desc d = data_frame(0, 1, T0 - 5, T0 - 10);
	struct bl_host_page page;
	struct frame f;

	(void)state;
	sealed_beacon(&f, T0 - 1000, T0 - 9);
	accept_beacon(&f, T0 - 1000);
	build(&f, &d);
	run_host_xdp(&f, XDP_DROP, &f);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_STORED }));
	expect_stored(0, &d, T0 - 5);
	map_get(sk->maps.host_page, 0, &page);
	assert_int_equal(page.barrier, T0 - 1000);
	assert_int_equal(page.commit, T0 - 1000);
}

/* ---- reservations ---- */

static const __u8 bl0[6] = { 2, 0, 0, 0xb1, 0, 0 };

static void reserve_setup(void)
{
	struct bl_hold_cfg hold = { .on = 1,
				    .policy = BL_POLICY_PL2,
				    .k_frames = 4,
				    .k_bytes = 4 * 1538,
				    .recent_ns = LONG_NS,
				    .retry_ns = LONG_NS,
				    .coming_ns = LONG_NS };
	struct bpf_devmap_val v = { 0 };
	__u32 i;

	memcpy(hold.mac, bl0, 6);
	map_put(sk->maps.hold_cfg, 0, &hold);
	pace_setup(sk->maps.hold_due, HOLD_SLOTS, QUEUES);
	for (i = 0; i < BL_TX_COUNT; i++) {
		v.ifindex = net.ifindex[i];
		map_put(sk->maps.hold_tx, i, &v);
	}
}

/* The pacer's RSV is sealed, and a GRT is accepted only as its switch sent it. */
static void rsv__asked_and_granted(void **state)
{
	struct rsv r = { .op = BL_OP_RSV, .bytes = 1538, .cookie = 1 };
	const __u8 port[6] = { 2, 0, 0, 0, 0xff, 0 };
	struct bl_pl2_dest dest;
	struct frame f, out, want, good;
	__u32 i;

	(void)state;
	reserve_setup();
	raw_frame(&f, 1, 0, 1514, 0);
	assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[1], &f, &out), XDP_DROP);
	counts_take(sk->maps.counts, counted);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
	map_get(sk->maps.pl2_dests, 1, &dest);
	r.seq = (__u32)(dest.word >> 8);
	memcpy(r.src, bl0, 6);
	host_mac(r.mac, 0);
	build_rsv(&want, &r);
	seal(&want, 14, 0, true, BL_AUTH_S_RSV, T0);
	same_frame(&out, &want);
	r.op = BL_OP_GRT;
	memcpy(r.src, port, 6);
	r.in = r.out = 1000;
	build_rsv(&f, &r);
	run_host_xdp(&f, XDP_DROP, &f);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_AUTH_MISSING }));
	good = f;
	seal(&good, 14, 0, false, BL_AUTH_S_GRANT, T0 - 3);
	for (i = 6 * 8; i < 12 * 8; i++) {
		struct bl_auth_state none = {};

		map_put(sk->maps.auth_states, 0, &none);
		f = good;
		f.p[i / 8] ^= (__u8)(1 << i % 8);
		run_host_xdp(&f, XDP_DROP, &f);
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_AUTH_BAD }));
	}
	run_host_xdp(&good, XDP_DROP, &good);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_GRT }));
	run_host_xdp(&good, XDP_DROP, &good);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_AUTH_REPLAYED }));
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
		CASE(ingress__beacons),       CASE(ingress__link_body),
		CASE(egress__beacons),        CASE(egress__data_as_before),
		CASE(commit__sealed),         CASE(ingress__data_raises_nothing),
		CASE(rsv__asked_and_granted), cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, first_setup, NULL);
}
