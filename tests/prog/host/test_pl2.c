// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * PL2 on a host: bl_hold_xdp holds frames, bl_host_pace sends RSVs and data, and bl_host_xdp
 * accepts GRTs and their copies. v0 plays the NIC, v1 plays bl0d. Every frame that leaves is
 * compared byte for byte, and after every step each slot is free, in one queue or in one burst.
 */
#include "tests/prog/host/host_util.h"
#include "tests/prog/pace_util.h"
#include "tests/prog/switch/pl2_switch_frames.h"

#define HOLD_SLOTS 128
#define QUEUES     (BL_DESTS * BL_HOLD_CLASSES)
#define LONG_NS    3600000000000ULL

static struct bl_hold_cfg hold;
static const __u8 bl0[6] = { 2, 0, 0, 0xb1, 0, 0 };

static void set_hold(void)
{
	map_put(sk->maps.hold_cfg, 0, &hold);
}

static struct bl_pl2_dest dest_get(__u32 n)
{
	struct bl_pl2_dest d;

	map_get(sk->maps.pl2_dests, n, &d);
	return d;
}

static struct bl_pl2_coming coming_get(__u32 n)
{
	struct bl_pl2_coming c;

	map_get(sk->maps.pl2_coming, n, &c);
	return c;
}

static int pl2_setup(void **state)
{
	static const struct bl_pl2_coming no_coming;
	static const struct bl_hold_dest none;
	static const struct bl_pl2_dest no_dest;
	struct bpf_devmap_val v = { 0 };
	struct bl_mac_key k;
	__u32 i;

	host_setup(state);
	hold = (struct bl_hold_cfg){ .on = 1,
				     .policy = BL_POLICY_PL2,
				     .k_frames = 4,
				     .k_bytes = 4 * 1538,
				     .recent_ns = LONG_NS,
				     .retry_ns = LONG_NS,
				     .coming_ns = LONG_NS };
	memcpy(hold.mac, bl0, 6);
	set_hold();
	pace_setup(sk->maps.hold_due, HOLD_SLOTS, QUEUES);
	while (!bpf_map_get_next_key(bpf_map__fd(sk->maps.hold_dests), NULL, &k))
		assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.hold_dests), &k), 0);
	while (!bpf_map_lookup_and_delete_elem(bpf_map__fd(sk->maps.hold_free), NULL, &i))
		;
	for (i = 0; i < BL_DESTS; i++) {
		map_put(sk->maps.hold_macs, i, &none);
		map_put(sk->maps.pl2_dests, i, &no_dest);
		map_put(sk->maps.pl2_coming, i, &no_coming);
	}
	for (i = 0; i < BL_TX_COUNT; i++) {
		v.ifindex = net.ifindex[i];
		map_put(sk->maps.hold_tx, i, &v);
	}
	return 0;
}

/*
 * Fails unless @burst slots are in bursts and, if that is 0, @held are in queues and the others
 * free.
 */
static void expect_slots(__u32 held, __u32 burst)
{
	__u32 in = 0, i;

	for (i = 1; i < 8; i++)
		in += dest_get(i).n;
	assert_int_equal(in, burst);
	pace_slots = HOLD_SLOTS;
	if (!burst)
		assert_int_equal(balanced(QUEUES), held);
}

/* Runs a frame from an application, which must be held. */
static void run_hold(const struct frame *in)
{
	struct frame out;

	assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[1], in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_HOLD, BL_R_HELD }));
}

static void give_n(__u32 to, __u32 n, __u32 len)
{
	struct frame f;
	__u32 i;

	for (i = 0; i < n; i++) {
		raw_frame(&f, 1, to, len, i);
		run_hold(&f);
	}
}

static void expect_paced(const struct frame *want)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	same_frame(&out, want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
}

/* Waits until CLOCK_MONOTONIC, the clock of the programs, has passed @ns. */
static void wait_past(__u64 ns)
{
	while (mono_now() <= ns)
		usleep(1000);
}

/* Frames @first to @end - 1 of give_n() must leave now, marked as unsolicited if @early is set. */
static void expect_burst(__u32 to, __u32 first, __u32 end, __u32 len, bool early)
{
	struct frame f;

	for (; first < end; first++) {
		raw_frame(&f, 1, to, len, first);
		if (early)
			f.p[6] |= BL_EARLY_MAC0;
		expect_paced(&f);
	}
}

/* The pacer must send nothing in two turns: the turn that ends a burst may be an empty one. */
static void expect_idle(void)
{
	struct frame out;
	int i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
		assert_int_equal(out.n, BL_PACE_FRAME);
	}
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
}

/*
 * The next frame of the pacer must be an RSV for destination @n, host @to. Returns the RSV, for
 * run_answer().
 */
static struct rsv expect_rsv(__u32 n, __u32 to, __u32 bytes, __u8 flags, __u32 try)
{
	struct rsv r = {
		.op = BL_OP_RSV, .bytes = bytes, .flags = flags, .cookie = (__u16)(try << 8 | n)
	};
	struct frame out, want;

	memcpy(r.src, bl0, 6);
	host_mac(r.mac, to);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
	r.seq = (__u32)(dest_get(n).word >> 8);
	build_rsv(&want, &r);
	same_frame(&out, &want);
	return r;
}

/* Runs an answer to @r, genuine or forged, that arrives on the NIC. */
static void run_answer(struct rsv r, __u32 in, __u32 out_wait, __u8 flags, enum bl_reason why)
{
	const __u8 port[6] = { 2, 0, 0, 0, 0xff, 0 };
	struct frame f, out;

	r.op = r.op == BL_OP_RSV ? BL_OP_GRT : r.op;
	memcpy(r.src, port, 6);
	r.in = in;
	r.out = out_wait;
	r.flags = flags;
	build_rsv(&f, &r);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	same_frame(&out, &f);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why }));
}

/* ---- a burst ---- */

static void burst__asked_granted_sent(void **state)
{
	struct bl_pl2_dest d;
	struct rsv r;

	(void)state;
	give_n(0, 2, 1514);
	r = expect_rsv(1, 0, 3076, 0, 0);
	expect_slots(0, 2);
	expect_idle();
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 0, 2, 1514, false);
	expect_idle();
	expect_slots(0, 0);
	d = dest_get(1);
	assert_int_equal(d.rsvs, 1);
	assert_int_equal(d.grts, 1);
	assert_int_equal(d.bad | d.early | d.resent | d.timeouts | d.refused, 0);
	assert_true(d.delay_ns && d.delay_ns == d.delay_min_ns && d.delay_ns == d.delay_max_ns &&
		    d.delay_ns < 10000000000ULL);
	assert_int_equal(d.word & 0xff, BL_PL2_IDLE);
	run_answer(r, 0, 0, 0, BL_R_GRT_BAD);
}

static void burst__k_frames_then_the_rest(void **state)
{
	struct frame f;
	struct rsv r;

	(void)state;
	give_n(0, 6, 100);
	r = expect_rsv(1, 0, 4 * 124, 0, 0);
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 0, 4, 100, false);
	r = expect_rsv(1, 0, 2 * 124, 0, 0); /* the turn that ends a burst starts the next one */
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 4, 6, 100, false);
	expect_idle();
	/* limited by bytes: a second frame might have full length */
	hold.k_bytes = 125 + 1537;
	set_hold();
	give_n(0, 3, 101);
	r = expect_rsv(1, 0, 125, 0, 0);
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 0, 1, 101, false);
	r = expect_rsv(1, 0, 125, 0, 0);
	hold.k_bytes = 6152;
	set_hold();
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 1, 2, 101, false);
	/* expedited frames first */
	{
		struct desc d = plain_frame(1, 0, false);

		d.tos = 46 << 2;
		build(&f, &d);
		run_hold(&f);
		r = expect_rsv(1, 0, 125 + bl_wire_bytes(f.n), 0, 0);
		run_answer(r, 0, 0, 0, BL_R_GRT);
		expect_paced(&f);
		expect_burst(0, 2, 3, 101, false);
	}
	expect_idle();
	expect_slots(0, 0);
}

static void burst__waits_for_its_slot(void **state)
{
	struct bl_pl2_dest d;
	struct bl_due due;
	struct rsv r;
	__u64 t0;

	(void)state;
	give_n(0, 1, 60);
	t0 = mono_now();
	r = expect_rsv(1, 0, 84, 0, 0);
	due = due_get();
	assert_true(due.at[1] >= t0 + LONG_NS && due.next == due.at[1]);
	run_answer(r, 10, 300000000, 0, BL_R_GRT);
	d = dest_get(1);
	/* equation 1: the wait counts from the RSV */
	assert_int_equal(d.send_ns, d.asked_ns[0] + 300000000);
	due = due_get();
	assert_int_equal(due.at[1], d.send_ns);
	assert_int_equal(due.next, d.send_ns);
	expect_idle();
	wait_past(d.send_ns);
	expect_burst(0, 0, 1, 60, false);
	expect_idle();
	expect_slots(0, 0);
	/* the wait is reduced by the time for which the NIC is busy */
	give_n(0, 1, 60);
	r = expect_rsv(1, 0, 84, 0, 0);
	due = due_get();
	due.free[0] = mono_now() + 500000000;
	due_put(&due);
	run_answer(r, 0, 900000000, 0, BL_R_GRT);
	d = dest_get(1);
	assert_true(d.send_ns < d.asked_ns[0] + 900000000 - 400000000);
}

static void burst__many_destinations(void **state)
{
	struct rsv a, b;

	(void)state;
	give_n(0, 1, 60);
	give_n(2, 1, 60);
	a = expect_rsv(1, 0, 84, 0, 0);
	b = expect_rsv(2, 2, 84, 0, 0);
	expect_idle();
	run_answer(b, 0, 0, 0, BL_R_GRT);
	expect_burst(2, 0, 1, 60, false);
	run_answer(a, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 0, 1, 60, false);
	expect_idle();
	expect_slots(0, 0);
}

/* Two bursts are due: the one that was due first is sent completely before the other begins. */
static void burst__the_first_due_ends_first(void **state)
{
	struct rsv a, b;

	(void)state;
	give_n(0, 3, 60);
	give_n(2, 3, 60);
	a = expect_rsv(1, 0, 3 * 84, 0, 0);
	b = expect_rsv(2, 2, 3 * 84, 0, 0);
	run_answer(b, 0, 0, 0, BL_R_GRT); /* due at once */
	run_answer(a, 0, 300000000, 0, BL_R_GRT);
	expect_burst(2, 0, 1, 60, false);
	wait_past(dest_get(1).send_ns);
	expect_burst(2, 1, 3, 60, false);
	expect_burst(0, 0, 3, 60, false);
	expect_idle();
	expect_slots(0, 0);
}

static void burst__nobody_answers(void **state)
{
	struct rsv r;
	__u32 try;

	(void)state;
	hold.retry_ns = 1000000;
	set_hold();
	give_n(0, 1, 60);
	r = expect_rsv(1, 0, 84, 0, 0);
	for (try = 1; try < BL_PL2_TRIES; try++) {
		__u32 seq = r.seq;

		usleep(1500);
		r = expect_rsv(1, 0, 84, 0, try);
		assert_int_equal(r.seq, seq);
	}
	usleep(1500);
	assert_int_equal(expect_rsv(1, 0, 84, 0, 0).seq, r.seq + 1);
	run_answer(r, 0, 0, 0, BL_R_GRT_BAD); /* answers the old sequence number */
	r.seq++;
	r.cookie = 1;
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 0, 1, 60, false);
	expect_idle();
	assert_int_equal(dest_get(1).timeouts, BL_PL2_TRIES);
	expect_slots(0, 0);
}

static void burst__refused(void **state)
{
	struct rsv r;

	(void)state;
	hold.retry_ns = 20000000;
	set_hold();
	give_n(0, 1, 60);
	r = expect_rsv(1, 0, 84, 0, 0);
	run_answer(r, 0, 0, BL_GRT_REFUSED, BL_R_GRT);
	expect_idle();
	wait_past(dest_get(1).send_ns);
	assert_int_equal(expect_rsv(1, 0, 84, 0, 0).seq, r.seq + 1);
	r.seq++;
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 0, 1, 60, false);
	expect_idle();
	assert_int_equal(dest_get(1).refused, 1);
	expect_slots(0, 0);
}

/* ---- unsolicited ---- */

static struct rsv early_burst(void)
{
	struct rsv r;

	hold.t_ns = 1000;
	set_hold();
	give_n(0, 1, 60);
	r = expect_rsv(1, 0, 84, 0, 0); /* no wait is known yet, so this burst is not unsolicited */
	run_answer(r, 0, 999, 0, BL_R_GRT);
	expect_burst(0, 0, 1, 60, false);
	give_n(0, 3, 200);
	return expect_rsv(1, 0, 3 * 224, BL_RSV_EARLY, 0);
}

static void early__passed(void **state)
{
	struct rsv r = early_burst();

	(void)state;
	expect_burst(0, 0, 3, 200, true);
	expect_idle();
	expect_slots(0, 3);
	run_answer(r, 0, 5000, BL_GRT_PASSED, BL_R_GRT);
	expect_idle();
	expect_slots(0, 0);
	assert_int_equal(dest_get(1).early, 1);
	assert_int_equal(dest_get(1).resent, 0);
	/* 5000 ns are above t_ns, so the next burst is not unsolicited */
	give_n(0, 1, 60);
	expect_rsv(1, 0, 84, 0, 0);
}

static void early__passed_in_the_middle(void **state)
{
	struct rsv r = early_burst();

	(void)state;
	expect_burst(0, 0, 1, 200, true);
	run_answer(r, 0, 0, BL_GRT_PASSED, BL_R_GRT);
	expect_burst(0, 1, 3, 200, true);
	expect_idle();
	expect_slots(0, 0);
}

static void early__not_passed(void **state)
{
	struct rsv r = early_burst();

	(void)state;
	expect_burst(0, 0, 2, 200, true);
	run_answer(r, 0, 5000, 0, BL_R_GRT);
	wait_past(dest_get(1).send_ns);
	expect_burst(0, 0, 3, 200, false);
	expect_idle();
	expect_slots(0, 0);
	assert_int_equal(dest_get(1).resent, 1);
}

static void early__not_when_old(void **state)
{
	struct rsv r;

	(void)state;
	hold.t_ns = 1000;
	hold.recent_ns = 1000;
	set_hold();
	give_n(0, 1, 60);
	r = expect_rsv(1, 0, 84, 0, 0);
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 0, 1, 60, false);
	usleep(10);
	give_n(0, 1, 60);
	expect_rsv(1, 0, 84, 0, 0);
}

/* ---- grants that are refused ---- */

static void grant__not_believed(void **state)
{
	struct bl_pl2_dest d, after_it;
	struct rsv r, f;
	struct frame in, out;

	(void)state;
	give_n(0, 1, 60);
	r = expect_rsv(1, 0, 84, 0, 0);
	d = dest_get(1);
#define LIE(what, n)                                           \
	do {                                                   \
		f = r;                                         \
		doing = #what;                                 \
		what;                                          \
		run_answer(f, 0, 0, 0, BL_R_GRT_BAD);          \
		d.bad += n;                                    \
		after_it = dest_get(1);                        \
		assert_memory_equal(&after_it, &d, sizeof(d)); \
		doing = "";                                    \
	} while (0)
	LIE(f.seq++, 1);
	LIE(f.bytes++, 1);
	LIE(f.mac[5]++, 1);
	LIE(f.cookie = 0, 0);
	LIE(f.cookie = 2, 0);
	LIE(f.cookie = 0x0101, 1);
	LIE(f.cookie = 0xff01, 1);
	run_answer(r, 1000000001, 0, 0, BL_R_GRT_BAD);
	run_answer(r, 0, ~0u, 0, BL_R_GRT_BAD);
	run_answer(r, 0, 0, BL_GRT_PASSED, BL_R_GRT_BAD);
	run_answer(r, 0, 0, 0x40, BL_R_GRT_BAD);
	f = r;
	f.op = BL_OP_RELEASE;
	run_answer(f, 0, 0, 0, BL_R_BAD_OPCODE);
	/* a host refuses an RSV */
	build_rsv(&in, &r);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_BAD_OPCODE }));
	f = r;
	f.op = BL_OP_GRT;
	f.tags = 1;
	build_rsv(&in, &f);
	in.n--;
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_SHORT }));
	hold.on = 0;
	set_hold();
	run_answer(r, 0, 0, 0, BL_R_GRT_BAD);
	hold.on = 1;
	set_hold();
	f = r;
	f.tags = 1;
	run_answer(f, 0, 0, 0, BL_R_GRT);
}

/*
 * A switch that makes no reservations says so in its answer: frames leave without one. A later RSV
 * gets a reservation again.
 */
static void apart__switch_without_reservations(void **state)
{
	struct rsv r;

	(void)state;
	hold.retry_ns = 3000000;
	set_hold();
	give_n(0, 2, 100);
	r = expect_rsv(1, 0, 2 * 124, 0, 0);
	run_answer(r, 0, 0, BL_GRT_REFUSED | BL_GRT_OFF, BL_R_GRT_OFF);
	expect_burst(0, 0, 2, 100, false);
	expect_idle();
	expect_slots(0, 0);
	wait_past(dest_get(1).apart_ns);
	give_n(0, 1, 60);
	r = expect_rsv(1, 0, 84, 0, 0);
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 0, 1, 60, false);
	expect_idle();
	expect_slots(0, 0);
}

/* ---- copies, and releases ---- */

static void run_data_from(__u32 from, __u32 len, bool early)
{
	struct frame f, out;

	raw_frame(&f, from, 0, len, 1);
	memcpy(f.p, bl0, 6);
	if (early)
		f.p[6] |= BL_EARLY_MAC0;
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TO_APP }));
}

static void run_grt_copy(__u32 from, __u32 bytes, __u32 seq, __u32 wait)
{
	struct rsv r = { .op = BL_OP_RSV, .bytes = bytes, .seq = seq, .cookie = 0x0102 };

	host_mac(r.mac, from);
	run_answer(r, 0, wait, BL_GRT_COPY, BL_R_GRT_COPY);
}

static void coming__released(void **state)
{
	struct rsv want = { .op = BL_OP_RELEASE, .seq = 78, .bytes = 514 };
	struct frame out, f;
	struct bl_due due;

	(void)state;
	memcpy(want.src, bl0, 6);
	host_mac(want.mac, 5);
	hold.coming_ns = 30000000;
	set_hold();
	run_grt_copy(5, 3076, 77,
		     1000000); /* a host that was no destination before gets a number now */
	assert_int_equal(coming_get(1).bytes, 3076);
	due = due_get();
	assert_int_equal(due.at[1], coming_get(1).by_ns);
	assert_true(due.next <= due.at[1]);
	run_data_from(5, 1514, false);
	run_data_from(5, 1000, true);
	run_data_from(6, 60, false); /* from another host */
	assert_int_equal(coming_get(1).bytes, 514);
	run_grt_copy(5, 624, 78, 0);
	run_data_from(5, 600, false);
	assert_int_equal(coming_get(1).bytes, 514);
	expect_idle();
	wait_past(coming_get(1).by_ns);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
	build_rsv(&f, &want);
	same_frame(&out, &f);
	expect_idle();
	assert_int_equal(coming_get(1).bytes, 0);
	assert_int_equal(due_get().at[1], BL_DUE_NEVER);
}

static void coming__beside_our_own_burst(void **state)
{
	struct frame out;
	struct rsv r;
	__u64 by;

	(void)state;
	hold.coming_ns = 20000000;
	set_hold();
	give_n(0, 1, 60);
	r = expect_rsv(1, 0, 84, 0, 0);
	run_grt_copy(0, 100, 5, 0);
	by = coming_get(1).by_ns;
	run_answer(r, 0, 0, 0, BL_R_GRT);
	expect_burst(0, 0, 1, 60, false);
	expect_idle();
	assert_int_equal(due_get().at[1], by); /* the end of the burst did not clear the time */
	wait_past(by);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
	assert_int_equal(out.p[14 + 22], BL_OPCODE_BYTE(BL_OP_RELEASE));
	expect_idle();
	expect_slots(0, 0);
}

static void coming__not_wanted(void **state)
{
	(void)state;
	hold.coming_ns = 0;
	set_hold();
	run_grt_copy(0, 100, 5, 0);
	run_data_from(0, 60, false);
	assert_int_equal(coming_get(1).bytes, 0);
	hold.coming_ns = 1;
	hold.policy = BL_POLICY_NONE;
	set_hold();
	run_grt_copy(0, 100, 5, 0);
	assert_int_equal(coming_get(1).bytes, 0);
	assert_int_equal(coming_get(0).bytes, 0);
}

/* ---- another policy ---- */

static void policy__changed_with_a_burst_in_hand(void **state)
{
	(void)state;
	give_n(0, 5, 60);
	expect_rsv(1, 0, 4 * 84, 0, 0);
	hold.policy = BL_POLICY_NONE;
	set_hold();
	{
		struct bl_due d = due_get();

		/* otherwise the pacer would wait for the time of the retry, an hour from now */
		d.at[1] = d.next = 0;
		due_put(&d);
	}
	expect_burst(0, 0, 4, 60, false);
	{
		struct frame out;

		/* this turn frees the slots */
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	}
	expect_burst(0, 4, 5, 60, false);
	expect_idle();
	expect_slots(0, 0);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_PL2, BY_PL2 | BY_HOLD | BY_HPACE | BY_HOST);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup(t, pl2_setup)
	const struct CMUnitTest tests[] = {
		CASE(burst__asked_granted_sent),
		CASE(burst__k_frames_then_the_rest),
		CASE(burst__waits_for_its_slot),
		CASE(burst__many_destinations),
		CASE(burst__the_first_due_ends_first),
		CASE(burst__nobody_answers),
		CASE(burst__refused),
		CASE(early__passed),
		CASE(early__passed_in_the_middle),
		CASE(early__not_passed),
		CASE(early__not_when_old),
		CASE(apart__switch_without_reservations),
		CASE(grant__not_believed),
		CASE(coming__released),
		CASE(coming__beside_our_own_burst),
		CASE(coming__not_wanted),
		CASE(policy__changed_with_a_burst_in_hand),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests_name("pl2", tests, net_up, NULL);
}
