// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_host_pace where it carries the host's beacons, and bl_host_lift, which moves them from bl0 to
 * the NIC. v0 plays the NIC, v1 plays bl0d. That the beacons leave in order with the frames of
 * endpoints is tested in tests/net/order/test_beacons.c, since test_run does not carry out a
 * redirect of tc.
 */
#include <linux/pkt_cls.h>
#include <poll.h>
#include "tests/prog/host/host_util.h"
#include "tests/prog/pace_util.h"
#include "core/order/beacon_core.h"

#define QUEUES  (BL_DESTS * BL_HOLD_CLASSES)
#define TICK    (T0 - T0 % BEACON_NS + BEACON_NS)
#define LINK_NS 1000000000ULL

static struct bl_hold_cfg hold;

static struct bl_beat beat_get(void)
{
	struct bl_beat b;

	map_get(sk->maps.pace_beat, 0, &b);
	return b;
}

static void set_tx(__u32 key, __u32 ifindex)
{
	struct bpf_devmap_val v = { .ifindex = ifindex };

	map_put(sk->maps.hold_tx, key, &v);
}

/* Builds the host's beacon number @psn, before its barriers are filled in. */
static void build_beacon(struct frame *f, __u32 psn)
{
	struct desc d = beacon_frame(1, 0);

	d.node = NODE_ID;
	d.psn = psn;
	build(f, &d);
	assert_int_equal(f->n, BL_BEACON_LEN);
}

/* Makes the pacer look for due frames and beacons in its next turn. */
static void make_pacer_due(void)
{
	struct bl_due d = due_get();
	struct bl_beat b = beat_get();

	d.next = 0;
	due_put(&d);
	b.next_ns = 0;
	map_put(sk->maps.pace_beat, 0, &b);
}

static int beat_setup(void **state)
{
	struct bl_beat b = { .on = 1, .node_id = NODE_ID, .interval_ns = BEACON_NS };
	struct bl_mac_key k;
	struct frame f;

	host_setup(state);
	hold = (struct bl_hold_cfg){ .on = 1,
				     .mac = { 2, 0, 0, 0xb1, 0, 0 },
				     .app_ifindex = net.ifindex[1],
				     .nic_ifindex = net.ifindex[0] };
	map_put(sk->maps.hold_cfg, 0, &hold);
	pace_setup(sk->maps.hold_due, 64, QUEUES);
	while (!bpf_map_get_next_key(bpf_map__fd(sk->maps.hold_dests), NULL, &k))
		assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.hold_dests), &k), 0);
	set_tx(BL_TX_NIC, net.ifindex[0]);
	set_tx(BL_TX_APP, net.ifindex[1]);
	build_beacon(&f, 0xffffffff); /* the program replaces this number in each beacon */
	memcpy(b.frame, f.p, BL_BEACON_LEN);
	map_put(sk->maps.pace_beat, 0, &b);
	clock_at(sk->maps.clock, TICK);
	make_pacer_due();
	return 0;
}

static void expect_sent(const struct frame *want, enum bl_reason why)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, why }));
	same_frame(&out, want);
}

static void expect_beacon(__u32 psn)
{
	struct frame f;

	build_beacon(&f, psn);
	expect_sent(&f, BL_R_BEACON_PACED);
}

static void expect_idle(void)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	assert_int_equal(out.n, BL_PACE_FRAME);
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
}

static void run_hold(const struct frame *in)
{
	struct frame out;

	assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[1], in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_HOLD, BL_R_HELD }));
}

/* ---- the beacon and its time ---- */

/* One beacon per tick, byte for byte; the pacer publishes when the next one is due. */
static void beat__bytes(void **state)
{
	__u64 before_ns = mono_now(), wait = BEACON_NS + BL_BEAT_MARGIN_NS;
	struct bl_pace_page p;
	struct bl_beat b;

	(void)state;
	expect_beacon(0);
	p = page_get();
	b = beat_get();
	assert_int_equal(p.beacons, 1);
	assert_int_equal(p.emitted, 0); /* emitted counts data frames only */
	assert_int_equal(p.failed, 0);
	assert_int_equal(hist_sum(&p.late), 0);
	assert_int_equal(b.psn, 1);
	assert_int_equal(b.tick, TICK);
	assert_true(b.next_ns >= before_ns + wait && b.next_ns <= mono_now() + wait);
	assert_int_equal(p.next_ns, b.next_ns);
	assert_int_equal(due_get().next, b.next_ns);
	make_pacer_due();
	expect_idle(); /* no second beacon for the same tick */
	assert_int_equal(page_get().beacons, 1);
	clock_at(sk->maps.clock, TICK + BEACON_NS);
	make_pacer_due();
	expect_beacon(1);
	assert_int_equal(page_get().beacons, 2);
}

static void beat__tick_edges(void **state)
{
	const struct {
		__s64 at; /* relative to TICK, for which a beacon was sent */
		int sends;
	} t[] = {
		{ 0, 0 },
		{ 1, 0 },
		{ (__s64)(BEACON_NS - BL_BEAT_SLOP_NS) - 1, 0 },
		{ (__s64)(BEACON_NS - BL_BEAT_SLOP_NS), 1 },
		{ (__s64)BEACON_NS - 1, 0 },
		{ (__s64)BEACON_NS, 0 },
		{ (__s64)(2 * BEACON_NS - BL_BEAT_SLOP_NS) - 1, 0 },
		{ (__s64)(2 * BEACON_NS), 1 },
		{ (__s64)(7 * BEACON_NS) + 50000, 1 }, /* five ticks were missed: one beacon */
		{ (__s64)(7 * BEACON_NS) + 50001, 0 },
		{ (__s64)(6 * BEACON_NS), 0 }, /* the clock went back */
		{ (__s64)(8 * BEACON_NS), 1 },
	};
	__u32 psn = 1, i;

	(void)state;
	expect_beacon(0);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		clock_at(sk->maps.clock, TICK + (__u64)t[i].at);
		make_pacer_due();
		if (t[i].sends)
			expect_beacon(psn++);
		else
			expect_idle();
	}
	assert_int_equal(page_get().beacons, psn);
}

/* Before next_ns the pacer does not read the clock; from then on it does. */
static void beat__not_before_its_time(void **state)
{
	struct bl_beat b = beat_get();

	(void)state;
	b.next_ns = mono_now() + 20000000;
	map_put(sk->maps.pace_beat, 0, &b);
	expect_idle(); /* due.next is 0, so the pacer looks, and finds next_ns */
	assert_int_equal(due_get().next, b.next_ns);
	expect_idle();
	assert_int_equal(page_get().next_ns, b.next_ns);
	usleep(25000);
	expect_beacon(0);
}

static void beat__data_stands_for_it(void **state)
{
	struct bl_host_page page;
	__u64 tick;
	__u32 psn = 0;

	(void)state;
	expect_beacon(psn++);
	map_get(sk->maps.host_page, 0, &page);
	for (tick = TICK + BEACON_NS; tick <= TICK + 8 * BEACON_NS; tick += BEACON_NS) {
		page.sends += 4;
		map_put(sk->maps.host_page, 0, &page);
		clock_at(sk->maps.clock, tick);
		make_pacer_due();
		if ((tick / BEACON_NS + NODE_ID) % 4)
			expect_idle();
		else
			expect_beacon(psn++);
		assert_int_equal(beat_get().tick, tick);
	}
	assert_int_equal(psn, 3); /* the first beacon, and two in eight ticks */
	page.sends += 3;
	map_put(sk->maps.host_page, 0, &page);
	clock_at(sk->maps.clock, tick);
	make_pacer_due();
	expect_beacon(psn);
}

static void beat__clock_void(void **state)
{
	__u64 now;
	struct bl_beat b;

	(void)state;
	clock_void(sk->maps.clock);
	now = mono_now();
	expect_idle();
	b = beat_get();
	assert_int_equal(b.tick, 0);
	assert_true(b.next_ns >= now + BL_BEAT_VOID_NS &&
		    b.next_ns <= mono_now() + BL_BEAT_VOID_NS);
	assert_int_equal(due_get().next, b.next_ns);
	clock_at(sk->maps.clock, TICK);
	make_pacer_due();
	expect_beacon(0);
}

/*
 * Beacons of the pacer are off, since the daemon's thread sends them: no beacon, and no next time.
 */
static void beat__off(void **state)
{
	struct bl_beat b = beat_get();
	struct frame f;

	(void)state;
	b.on = 0;
	map_put(sk->maps.pace_beat, 0, &b);
	expect_idle();
	assert_int_equal(due_get().next, BL_DUE_NEVER);
	raw_frame(&f, 1, 3, 100, 1);
	run_hold(&f);
	expect_sent(&f, BL_R_PACED);
	expect_idle();
	assert_int_equal(page_get().beacons, 0);
}

/* ---- beside data ---- */

static void beat__before_data(void **state)
{
	struct frame f[2];
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		raw_frame(&f[i], 1, 3 + (__u32)i, 200, (__u32)i);
		run_hold(&f[i]);
	}
	expect_beacon(0);
	expect_sent(&f[0], BL_R_PACED);
	clock_at(sk->maps.clock, TICK + BEACON_NS);
	make_pacer_due();
	expect_beacon(1);
	expect_sent(&f[1], BL_R_PACED);
	assert_int_equal(balanced(QUEUES), 0);
	assert_int_equal(due_get().next, beat_get().next_ns);
	assert_int_equal(page_get().beacons, 2);
	assert_int_equal(page_get().emitted, 2);
}

/*
 * The link is busy with its last frame for a second: data waits, but the beacon is sent, since it
 * goes through the kernel. Each of the two keeps its own next time.
 */
static void beat__link_busy(void **state)
{
	struct bl_due d;
	struct frame f;

	(void)state;
	raw_frame(&f, 1, 3, 200, 1);
	run_hold(&f);
	d = due_get();
	d.free[0] = mono_now() + LINK_NS;
	due_put(&d);
	expect_beacon(0);
	expect_idle();
	assert_int_equal(due_get().next, beat_get().next_ns); /* which is before the link is free */
	assert_int_equal(balanced(QUEUES), 1);
	d = due_get();
	d.free[0] = 0;
	due_put(&d);
	make_pacer_due();
	expect_sent(&f, BL_R_PACED); /* the tick has had its beacon, so data is sent */
}

static void beat__redirect_failed(void **state)
{
	struct frame out;
	__u32 key = BL_TX_APP;

	(void)state;
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.hold_tx), &key), 0);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_REDIRECT_FAILED }));
	assert_int_equal(page_get().failed, 1);
	assert_int_equal(page_get().beacons, 0);
	set_tx(BL_TX_APP, net.ifindex[1]);
	make_pacer_due();
	expect_idle(); /* there is no second try in the same tick */
	clock_at(sk->maps.clock, TICK + BEACON_NS);
	make_pacer_due();
	expect_beacon(0);
}

/* A live run as in the pacer: a thousand turns, one tick, and one frame on the wire of bl0d. */
static void beat__live(void **state)
{
	int fd = wire_sock(net.peer[1]);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct frame want, here;

	(void)state;
	live_turns(bpf_program__fd(sk->progs.bl_host_pace), 1000);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_BEACON_PACED }));
	assert_int_equal(poll(&p, 1, 5000), 1);
	here.n = (__u32)recv(fd, here.p, sizeof(here.p), 0);
	build_beacon(&want, 0);
	same_frame(&here, &want);
	assert_int_equal(poll(&p, 1, 20), 0);
	close(fd);
}

/* ---- from bl0 to the NIC ---- */

/*
 * Runs bl_host_lift, sets @mark to the mark that the frame has afterwards, and returns the verdict.
 */
static int lift(const struct frame *in, __u32 *mark)
{
	struct __sk_buff ctx = {}, after_ctx;
	struct frame out;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->p, .data_size_in = in->n,
		    .data_out = out.p, .data_size_out = sizeof(out.p), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .ctx_out = &after_ctx,
		    .ctx_size_out = sizeof(after_ctx), .repeat = 1);
	int rc = bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_host_lift), &o);

	if (rc)
		fail_msg("cannot run bl_host_lift: %s", strerror(-rc));
	*mark = after_ctx.mark;
	out.n = o.data_size_out;
	ran_on(in->n);
	same_frame(&out, in);
	return (int)o.retval;
}

static void lift__own_beacon_only(void **state)
{
	struct desc other = beacon_frame(1, 0), d = data_frame(0, 1, T0, T0),
		    plain = plain_frame(0, 1, true);
	struct frame own, f;
	__u32 mark;
	int i;

	(void)state;
	build_beacon(&own, 5);
	assert_int_equal(lift(&own, &mark), TC_ACT_REDIRECT);
	assert_int_equal(mark, BEACON_MARK);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LIFT, BL_R_BEACON_PACED }));
	for (i = 0; i < 7; i++) {
		f = own;
		switch (i) {
		case 0:
			build(&f, &other);
			break; /* of another node */
		case 1:
			build(&f, &d);
			break;
		case 2:
			build(&f, &plain);
			break;
		case 3:
			f.p[13] ^= 1;
			break; /* another ethertype */
		case 4:
			f.p[14 + 22] = BL_OPCODE_BYTE(BL_OP_RSV);
			break;
		case 5:
			f.n = 14 + sizeof(struct bl_hdr) + sizeof(struct bl_beacon) - 1;
			break;
		case 6:
			f.p[14 + 22] ^= 0x40;
			break; /* another version */
		}
		assert_int_equal(lift(&f, &mark), TC_ACT_OK);
		assert_int_equal(mark, 0);
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LIFT, BL_R_NOT_OURS }));
	}
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_BEAT, BY_BEAT | BY_HOLD | BY_HPACE);
}

#define CASE(f) cmocka_unit_test_setup(f, beat_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(beat__bytes),
		CASE(beat__tick_edges),
		CASE(beat__not_before_its_time),
		CASE(beat__data_stands_for_it),
		CASE(beat__clock_void),
		CASE(beat__off),
		CASE(beat__before_data),
		CASE(beat__link_busy),
		CASE(beat__redirect_failed),
		CASE(beat__live),
		CASE(lift__own_beacon_only),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
