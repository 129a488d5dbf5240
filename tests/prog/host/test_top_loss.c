// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on a host when data is lost. The sender: which frames it keeps, which LOSS it accepts, and
 * what it sends again. The receiver: which data it misses, reports, delivers once, and gives up.
 * The setup is that of test_top.c.
 */
#include "core/top/top_loss_core.h"
#include "tests/prog/host/top_util.h"

/* ---- the sender ---- */

/* Makes flows to port 53, to which hold_frame() sends, keep their frames. */
static void keep_sent_frames(void)
{
	top.rules[0] = (struct bl_top_rule){ .port = 53, .flags = BL_TOP_F_RESEND };
	set_top();
}

/*
 * Returns how many frames flow @n keeps. Checks that all other slots are free or queued, and that
 * the page has the same count.
 */
static __u32 count_kept_frames(__u32 n)
{
	struct bl_top_kept k;
	__u32 i, words = 0;

	map_get(sk->maps.top_kept, n, &k);
	for (i = 0; i < BL_TOP_KEEP; i++) {
		words += k.word[i] != 0;
		if (k.word[i])
			assert_int_equal(BL_KEPT_NUMBER(k.word[i]) % BL_TOP_KEEP, i);
	}
	pace_elsewhere = words;
	balanced(QUEUES);
	assert_int_equal(top_page_get().kept, words);
	return words;
}

/* Runs token @seq for flow 1, which must be answered with @held as data number @data. */
static void expect_answer(const struct frame *held, __u32 seq, __u32 data, enum bl_reason why)
{
	struct topd t = token_of(1001, 1, seq);
	struct frame f, want = *held;

	build_top(&f, &t);
	add_numbered(&want, 1, seq, data);
	expect_host_xdp(&f, &want, XDP_TX, why);
}

static void expect_token_dropped(__u32 seq, enum bl_reason why)
{
	struct topd t = token_of(1001, 1, seq);
	struct frame f;

	build_top(&f, &t);
	expect_refused(&f, why);
}

static struct topd signal_of(__u8 op, __u32 seq, __u32 data)
{
	return (struct topd){ .v6 = tx_get(1).key.v6,
			      .sender = 1,
			      .receiver = 2,
			      .sport = 1001,
			      .dport = 53,
			      .op = op,
			      .flow = 1,
			      .seq = seq,
			      .tag = tx_get(1).tag,
			      .data = data,
			      .ts = bus_now };
}

static struct topd loss_of(__u32 seq, __u32 data, __u64 missing, __u32 rtt_us)
{
	struct topd t = signal_of(BL_TOP_LOSS, seq, data);

	t.token = true; /* a LOSS travels in the same class as a token */
	t.missing = missing;
	t.rtt_us = rtt_us;
	return t;
}

static void accept_loss(__u32 seq, __u32 data, __u64 missing, __u32 rtt_us)
{
	struct topd t = loss_of(seq, data, missing, rtt_us);
	struct frame f;

	build_top(&f, &t);
	expect_host_xdp(&f, &f, XDP_DROP, BL_R_LOSS);
}

#define HOUR_US 3600000000U

static void keep__until_it_came(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct frame a[3], f;
		struct topd s;
		__u32 i;

		top_setup(state);
		keep_sent_frames();
		for (i = 0; i < 3; i++)
			a[i] = hold_frame(1001, (__u16)(1 + i), v6);
		s = sync_of(1001, 1, 1, 3, v6);
		build_top(&f, &s);
		expect_paced(&f);
		for (i = 0; i < 3; i++) {
			expect_answer(&a[i], 1 + i, 1 + i, BL_R_TOKEN_USED);
			assert_int_equal(count_kept_frames(1), 1 + i);
		}
		accept_loss(1, 1, 0, 5);
		assert_int_equal(count_kept_frames(1), 2);
		accept_loss(2, 3, 2, HOUR_US); /* 3 arrived, 2 did not */
		assert_int_equal(count_kept_frames(1), 1);
		assert_true(tx_get(1).asked == 1 && tx_get(1).rtt_us == HOUR_US &&
			    tx_get(1).acked == 1);
		expect_answer(&a[1], 4, 2, BL_R_TOKEN_RESENT);
		assert_int_equal(count_kept_frames(1), 1);
		accept_loss(3, 3, 0, 5);
		assert_int_equal(count_kept_frames(1), 0);
		assert_true(tx_get(1).resent == 1 && tx_get(1).tokens == 4 &&
			    tx_get(1).acked == 3 && !tx_get(1).gone);
	}
}

static void resend__oldest_first_once_per_rtt(void **state)
{
	struct frame a[5], f;
	struct topd s;
	__u32 i;

	(void)state;
	keep_sent_frames();
	for (i = 0; i < 5; i++)
		a[i] = hold_frame(1001, (__u16)(1 + i), false);
	s = sync_of(1001, 1, 1, 5, false);
	build_top(&f, &s);
	expect_paced(&f);
	for (i = 0; i < 4; i++)
		expect_answer(&a[i], 1 + i, 1 + i, BL_R_TOKEN_USED);
	accept_loss(1, 4, 1 << 3 | 1 << 1, HOUR_US);
	assert_int_equal(count_kept_frames(1), 2);
	expect_idle(); /* tokens keep coming, so no SYNC is sent */
	expect_answer(&a[0], 5, 1, BL_R_TOKEN_RESENT);
	/* 1 was sent again just now; 3 was marked as missing before */
	accept_loss(2, 4, 1 << 3 | 1 << 1, HOUR_US);
	expect_answer(&a[2], 6, 3, BL_R_TOKEN_RESENT);
	expect_answer(&a[4], 7, 5, BL_R_TOKEN_USED); /* new data follows only after that */
	accept_loss(3, 5, 1 << 4 | 1 << 2, HOUR_US);
	assert_int_equal(tx_get(1).asked, 3);
	s = token_of(1001, 1, 8);
	build_top(&f, &s);
	s = signal_of(BL_TOP_STOP, 2, 0);
	s.bare = true;
	build_top(&a[1], &s);
	expect_host_xdp(&f, &a[1], XDP_TX,
			BL_R_TOKEN_STOP); /* both were sent again less than one RTT ago */
	s = signal_of(BL_TOP_STOP, 3, 5);
	build_top(&f, &s);
	expect_paced(&f);
	expect_idle();
	accept_loss(4, 5, 1 << 4 | 1 << 2, 0);
	s = sync_of(1001, 1, 4, 2, false); /* no new data, but these two wait to be sent again */
	s.data = 5;
	build_top(&f, &s);
	expect_paced(&f);
	expect_idle();
	expect_answer(&a[0], 9, 1, BL_R_TOKEN_RESENT);
	expect_answer(&a[2], 10, 3, BL_R_TOKEN_RESENT);
	assert_true(tx_get(1).resent == 4 && count_kept_frames(1) == 2);
}

static void tail__stop_says_how_far(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct frame a, f, want;
		struct topd s;

		top_setup(state);
		keep_sent_frames();
		a = hold_frame(1001, 1, v6);
		expect_answer(&a, 1, 1, BL_R_TOKEN_USED);
		s = token_of(1001, 1, 2);
		build_top(&f, &s);
		s = signal_of(BL_TOP_STOP, 1, 0);
		s.bare = true;
		build_top(&want, &s);
		expect_host_xdp(&f, &want, XDP_TX, BL_R_TOKEN_STOP);
		s = signal_of(BL_TOP_STOP, 2, 1);
		build_top(&want, &s);
		assert_int_equal(want.n, (v6 ? 80 : 60) + 4);
		expect_paced(&want);
		expect_idle();
		assert_true(tx_get(1).told == 1 && tx_get(1).stops == 2);
		expect_token_dropped(3, BL_R_TOKEN_WASTED);
		expect_idle(); /* the STOP was sent before */
		accept_loss(1, 1, 0, 5);
		assert_int_equal(count_kept_frames(1), 0);
		expect_token_dropped(4, BL_R_TOKEN_WASTED);
		expect_idle();
		assert_int_equal(tx_get(1).acked, 1);
	}
}

static void flow__end_frees_what_was_kept(void **state)
{
	struct frame a, b, f;
	struct topd s;

	(void)state;
	keep_sent_frames();
	a = hold_frame(1001, 1, false);
	b = hold_frame(1001, 2, false);
	expect_answer(&a, 1, 1, BL_R_TOKEN_USED);
	expect_answer(&b, 2, 2, BL_R_TOKEN_USED);
	accept_loss(1, 2, 2, 5);
	top.idle_ns = 0;
	set_top();
	s = sync_of(1001, 1, 1, 1, false); /* the missing frame keeps the flow alive */
	s.data = 2;
	top.sync_ns = 0;
	set_top();
	build_top(&f, &s);
	expect_paced(&f);
	top.sync_ns = HOUR_NS;
	set_top();
	expect_answer(&a, 3, 1, BL_R_TOKEN_RESENT);
	{
		struct bl_due d = due_get();

		d.at[1] = d.next = 0;
		due_put(&d);
	}
	s = signal_of(BL_TOP_FIN, 2, 2);
	s.bytes = a.n + b.n;
	build_top(&f, &s);
	expect_paced(&f);
	assert_int_equal(tx_get(1).state, BL_TOP_FREE);
	assert_int_equal(count_kept_frames(1), 0);
	/*
	 * the next flow of this number continues the data numbers, so late frames of the old flow
	 * differ
	 */
	top.idle_ns = HOUR_NS;
	set_top();
	a = hold_frame(1001, 3, false);
	assert_int_equal(due_get().given, 1);
	s = sync_of(1001, 1, 1, 1, false);
	s.data = 2;
	build_top(&f, &s);
	expect_paced(&f);
	expect_answer(&a, 1, 3, BL_R_TOKEN_USED);
	assert_int_equal(count_kept_frames(1), 1);
}

static void loss__refusals(void **state)
{
	struct frame a, f;
	struct topd t;
	struct bl_top_tx was, is;
	unsigned int i;

	(void)state;
	keep_sent_frames();
	a = hold_frame(1001, 1, false);
	expect_answer(&a, 1, 1, BL_R_TOKEN_USED);
	top.rules[0].port = 54;
	set_top();
	hold_frame(1002, 1, false); /* flow 2 keeps no frames */
	accept_loss(7, 0, 0, 5);
	was = tx_get(1);
	for (i = 0; i < 10; i++) {
		static const char *const what[] = { "another tag",
						    "flow 0",
						    "flow 2, which keeps nothing",
						    "flow 3, which there is not",
						    "flow 256",
						    "data that was never sent",
						    "cut short",
						    "version 2",
						    "old",
						    "again" };
		enum bl_reason why = i < 6 ? BL_R_LOSS_BAD : i < 8 ? BL_R_SIGNAL_BAD : BL_R_LOSS;

		doing = what[i];
		t = loss_of(8, 1, 1, 5);
		t.tag ^= i == 0 ? 0x10000 : 0;
		t.flow = i == 1 ? 0 : i == 2 ? 2 : i == 3 ? 3 : i == 4 ? 256 : 1;
		t.tag = i == 2 ? tx_get(2).tag : i == 3 ? 0 : t.tag;
		t.data = i == 5 ? 2 : 1;
		t.seq = i == 8 ? 6 : i == 9 ? 7 : 8;
		build_top(&f, &t);
		f.n -= i == 6;
		f.p[42] += i == 7 ? 0x10 : 0;
		expect_refused(&f, why);
		is = tx_get(1);
		assert_memory_equal(&was, &is, sizeof(is));
		assert_int_equal(count_kept_frames(1), 1);
	}
	doing = "";
	accept_loss(8, 1, 1, 5);
	expect_answer(&a, 2, 1, BL_R_TOKEN_RESENT);
}

static void loss__of_what_is_gone(void **state)
{
	struct frame a, b, f, out;
	struct topd t;

	(void)state;
	keep_sent_frames();
	a = hold_frame(1001, 1, false);
	b = hold_frame(1001, 2, false);
	expect_answer(&a, 1, 1, BL_R_TOKEN_USED);
	expect_answer(&b, 2, 2, BL_R_TOKEN_USED);
	accept_loss(1, 1, 0, 5);
	t = loss_of(2, 2, 3, 5);
	build_top(&f, &t);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_LOSS_GONE }, { BL_HC_INGRESS, BL_R_LOSS }));
	assert_true(tx_get(1).gone == 1 && tx_get(1).asked == 1);
	expect_answer(&b, 3, 2, BL_R_TOKEN_RESENT);
}

static void keep__no_more_slots(void **state)
{
	struct frame a, b, f, out, want;
	struct topd t;

	(void)state;
	keep_sent_frames();
	top.keep_max = 1;
	set_top();
	a = hold_frame(1001, 1, false);
	b = hold_frame(1001, 2, false);
	expect_answer(&a, 1, 1, BL_R_TOKEN_USED);
	t = token_of(1001, 1, 2);
	build_top(&f, &t);
	want = b;
	add_numbered(&want, 1, 2, 2);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_TX);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_NOT_KEPT }, { BL_HC_INGRESS, BL_R_TOKEN_USED }));
	same_frame(&out, &want);
	assert_int_equal(count_kept_frames(1), 1);
}

/*
 * The frame 64 before the next one must have arrived: it is sent again once per RTT until a LOSS
 * reports it.
 */
static void window__full(void **state)
{
	struct frame a[66];
	__u32 i;

	(void)state;
	keep_sent_frames();
	for (i = 0; i < 66; i++)
		a[i] = hold_frame(1001, (__u16)(1 + i), false);
	for (i = 0; i < 64; i++)
		expect_answer(&a[i], 1 + i, 1 + i, BL_R_TOKEN_USED);
	expect_token_dropped(65, BL_R_TOKEN_BLOCKED);
	assert_true(count_kept_frames(1) == 64 && tx_get(1).wasted == 1 && tx_get(1).tokens == 64 &&
		    tx_get(1).state == BL_TOP_CREDITED);
	accept_loss(1, 0, 0, 1); /* reports only an RTT of one microsecond */
	expect_answer(&a[0], 66, 1, BL_R_TOKEN_RESENT);
	accept_loss(2, 0, 0, HOUR_US);
	expect_token_dropped(67, BL_R_TOKEN_BLOCKED);
	accept_loss(3, 2, 2, 0); /* 2 arrived, 1 did not; it is sent before new data */
	expect_answer(&a[0], 68, 1, BL_R_TOKEN_RESENT);
	accept_loss(4, 1, 0, HOUR_US);
	expect_answer(&a[64], 69, 65, BL_R_TOKEN_USED);
	expect_answer(&a[65], 70, 66, BL_R_TOKEN_USED);
	assert_int_equal(count_kept_frames(1), 64);
}

static void answer__too_long_for_a_number(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct frame a, b, f;
	struct topd t;

	(void)state;
	keep_sent_frames();
	d.body = 1507 - 66;
	build(&a, &d);
	run_hold(&a, BL_R_HELD);
	b = hold_frame(1001, 2, false);
	t = token_of(1001, 1, 1);
	build_top(&f, &t);
	expect_host_xdp(&f, &a, XDP_TX, BL_R_TOKEN_USED);
	assert_int_equal(count_kept_frames(1), 0);
	expect_answer(&b, 2, 1, BL_R_TOKEN_USED); /* the numbers have no gap */
}

/*
 * As token__that_cannot_grow in test_top.c: the pacer sends the answer, which stays kept, and sends
 * it again when a LOSS reports it.
 */
static void answer__that_cannot_grow(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	int fd = wire_sock(net.peer[0]), pass = bpf_program__fd(net.pass->progs.bl_pass), i, round;
	static struct bl_counts now[COUNT_KEYS_MAX];
	struct topd t;
	struct frame a, f, want;

	(void)state;
	keep_sent_frames();
	d.body = 1300;
	build(&a, &d);
	run_hold(&a, BL_R_HELD);
	for (round = 0; round < 2; round++) {
		__u64 paced_was = tx_get(1).paced;

		t = token_of(1001, 1, 1 + (__u32)round);
		build_top(&f, &t);
		assert_int_equal(bpf_xdp_attach((int)net.ifindex[0],
						bpf_program__fd(sk->progs.bl_host_xdp),
						XDP_FLAGS_DRV_MODE, NULL),
				 0);
		assert_int_equal(send(fd, f.p, f.n, 0), f.n);
		for (i = 0; i < 10000; i++) {
			counts_take(sk->maps.counts, now);
			if (now[BL_HC_INGRESS].n[BL_R_TOKEN_USED] +
				    now[BL_HC_INGRESS].n[BL_R_TOKEN_PACED] +
				    now[BL_HC_INGRESS].n[BL_R_TOKEN_RESENT] !=
			    counted[BL_HC_INGRESS].n[BL_R_TOKEN_USED] +
				    counted[BL_HC_INGRESS].n[BL_R_TOKEN_PACED] +
				    counted[BL_HC_INGRESS].n[BL_R_TOKEN_RESENT])
				break;
			usleep(1000);
		}
		assert_int_equal(
			bpf_xdp_attach((int)net.ifindex[0], pass, XDP_FLAGS_DRV_MODE, NULL), 0);
		ran_on(f.n);
		if (tx_get(1).paced == paced_was) {
			counts_moved(sk->maps.counts, counted, 1,
				     WANT({ BL_HC_INGRESS,
					    round ? BL_R_TOKEN_RESENT : BL_R_TOKEN_USED }));
		} else {
			counts_moved(sk->maps.counts, counted, 1,
				     WANT({ BL_HC_INGRESS, BL_R_TOKEN_PACED }));
			want = a;
			add_numbered(&want, 1, 1 + (__u32)round, 1);
			expect_paced(&want);
			expect_idle();
		}
		assert_int_equal(count_kept_frames(1), 1);
		assert_int_equal(tx_get(1).resent, round);
		if (!round)
			accept_loss(1, 1, 1, 5);
	}
	close(fd);
}

/* ---- how a flow asks for resending ---- */

static void hint__resend(void **state)
{
	static const struct {
		__u16 port;
		__u32 rule, flags, priority, keep;
	} t[] = { { 53, 0, 0, 0, 0 }, { 53, 1, 0, 0, 1 }, { 54, 1, 0, 0, 0 },
		  { 54, 1, 1, 0, 1 }, { 53, 1, 0, 6, 1 }, { 53, 0, 0, 6, 0 } };
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct __sk_buff ctx = { .priority = t[i].priority };
		struct bl_top_key k = { .sport = BL_BE16(1001), .dport = BL_BE16(53), .proto = 17 };
		struct bl_top_hint h = { .seq = 2, .flags = t[i].flags };
		struct desc d = app_frame(2, 1001, false);
		struct frame f;

		top_setup(state);
		top.unscheduled = 3;
		top.rules[0] = (struct bl_top_rule){ .port = t[i].port,
						     .bytes = 2000,
						     .flags = (__u8)t[i].rule };
		set_top();
		host_addr(k.saddr, false, 1);
		host_addr(k.daddr, false, 2);
		h.key = k;
		if (t[i].flags)
			map_put(sk->maps.top_hints, bl_top_hint_hash(&k), &h);
		build(&f, &d);
		if (t[i].priority) {
			LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f.p, .data_size_in = f.n,
				    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx), .repeat = 1);

			assert_int_equal(
				bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_host_hint), &o),
				0);
		}
		run_hold(&f, BL_R_HELD);
		if (tx_get(1).keep != t[i].keep || (tx_get(1).keep && tx_get(1).unsched))
			fail_msg("row %u", i);
	}
}

/* ---- the receiver ---- */

/*
 * Builds data @data of host 2's flow 5 for an application of this host; it answers token 1. @plain
 * is the frame without the trailer.
 */
static void build_data(struct frame *f, struct frame *plain, __u32 data, bool v6)
{
	struct desc d = plain_frame(2, 1, v6);

	memcpy(d.dst, bl0, 6);
	d.ip_id = (__u16)data;
	build(plain, &d);
	*f = *plain;
	add_numbered(f, 5, 1, data);
}

static void deliver_data(__u32 data, bool v6)
{
	struct frame f, plain;

	build_data(&f, &plain, data, v6);
	expect_host_xdp(&f, &plain, XDP_REDIRECT, BL_R_TO_APP);
}

/*
 * Announces an inbound flow of which @data frames were sent. Its first token leaves, and no other
 * one for an hour.
 */
static void start_inbound_flow(__u32 data, bool v6)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 77), t;
	struct bl_top_rx r;
	struct frame f;

	top.slot_ns = 3600000000U;
	set_top();
	s.v6 = v6;
	s.data = data;
	accept_signal(&s);
	t = s;
	t.token = true;
	t.op = BL_TOP_TOKEN;
	build_top(&f, &t);
	expect_paced(&f);
	r = rx_get(0);
	r.next_ns = BL_DUE_NEVER;
	r.probe_ns = 0; /* no RTT until the case sets one */
	map_put(sk->maps.top_rx, 0, &r);
}

static void expect_loss_sent(__u32 seq, __u32 data, __u64 missing, __u32 rtt_us, bool v6)
{
	struct topd t = inbound_signal(BL_TOP_LOSS, 5, seq, 77);
	struct frame f;

	t.v6 = v6;
	t.token = true;
	t.data = data;
	t.missing = missing;
	t.rtt_us = rtt_us;
	build_top(&f, &t);
	assert_int_equal(f.n, (v6 ? 80 : 60) + 16);
	expect_paced(&f);
}

static void set_rtt(__u64 rtt_ns)
{
	struct bl_top_rx r = rx_get(0);

	r.rtt_ns = rtt_ns;
	map_put(sk->maps.top_rx, 0, &r);
}

static void receiver__says_what_is_missing(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct frame f, plain;
		__u32 k;

		top_setup(state);
		start_inbound_flow(0, v6);
		for (k = 1; k <= 9; k++)
			if (k != 2)
				deliver_data(k, v6);
		set_rtt(HOUR_NS);
		expect_idle();
		deliver_data(10, v6);
		expect_loss_sent(1, 2, 1, HOUR_US, v6);
		expect_idle();
		deliver_data(2, v6);
		assert_true(!~rx_get(0).came.got && rx_get(0).came.losses == 1);
		build_data(&f, &plain, 2, v6);
		expect_host_xdp(&f, &plain, XDP_DROP, BL_R_DATA_REPEATED);
		/* a repeated frame shows that the sender does not know that the data arrived */
		expect_loss_sent(2, 10, 0, HOUR_US, v6);
		expect_idle();
		assert_int_equal(rx_get(0).came.repeated, 1);
	}
}

static void receiver__after_an_rtt(void **state)
{
	struct topd s = inbound_signal(BL_TOP_STOP, 5, 2, 77);
	struct bl_top_rx r;

	(void)state;
	start_inbound_flow(20, false);
	set_rtt(1);
	deliver_data(22, false);
	set_rtt(HOUR_NS);
	/* 21 is missing; data from before the SYNC is not waited for */
	expect_loss_sent(1, 22, 2, HOUR_US, false);
	expect_idle();
	deliver_data(21, false);
	expect_loss_sent(2, 22, 0, HOUR_US, false);
	expect_idle();
	s.data = 23; /* the last frame is lost */
	accept_signal(&s);
	expect_idle(); /* the STOP may only have overtaken it */
	assert_int_equal(rx_get(0).came.data, 23);
	assert_int_equal(rx_get(0).state, BL_TOP_RX_STOPPED);
	r = rx_get(0);
	r.came.again_ns = 1;
	map_put(sk->maps.top_rx, 0, &r);
	s.seq = 3;
	accept_signal(&s);
	expect_loss_sent(3, 23, 1, HOUR_US, false);
}

static void receiver__acknowledges(void **state)
{
	struct topd s = inbound_signal(BL_TOP_STOP, 5, 2, 77);
	__u32 k;

	(void)state;
	start_inbound_flow(0, false);
	set_rtt(HOUR_NS);
	for (k = 1; k < 24; k++)
		deliver_data(k, false);
	expect_idle();
	deliver_data(24, false);
	expect_loss_sent(1, 24, 0, HOUR_US, false);
	s.data = 24;
	accept_signal(&s);
	expect_loss_sent(2, 24, 0, HOUR_US, false);
	/* a flow without data numbers is sent no LOSS */
	s.seq = 3;
	s.data = 0;
	accept_signal(&s);
	expect_idle();
}

static void expect_data_lost(__u32 hook, enum bl_reason with, __u32 n)
{
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ hook, BL_R_DATA_LOST, n }, { hook, with }));
}

static void receiver__gives_up(void **state)
{
	struct topd s;
	struct bl_top_rx r;
	struct frame f, plain, out, want;
	__u32 k;

	(void)state;
	/* missing for too long: reported at once, so that the sender does not keep it */
	start_inbound_flow(0, false);
	set_rtt(1);
	deliver_data(3, false);
	r = rx_get(0);
	r.came.since_ns = 0;
	map_put(sk->maps.top_rx, 0, &r);
	top.dead_ns = 1000000000;
	set_top();
	s = inbound_signal(BL_TOP_LOSS, 5, 1, 77);
	s.token = true;
	s.data = 3;
	build_top(&want, &s);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	expect_data_lost(BL_HC_PACE, BL_R_PACED, 2);
	same_frame(&out, &want);
	assert_int_equal(rx_get(0).came.lost, 2);
	build_data(&f, &plain, 1, false);
	expect_host_xdp(&f, &plain, XDP_DROP, BL_R_DATA_REPEATED); /* too late */
	/* data that falls out of the window */
	top_setup(state);
	start_inbound_flow(0, false);
	set_rtt(HOUR_NS);
	deliver_data(2, false);
	build_data(&f, &plain, 65 + 9, false);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	expect_data_lost(BL_HC_INGRESS, BL_R_TO_APP, 9); /* 1 and 3 to 10 */
	same_frame(&out, &plain);
	/* another flow of the same number */
	s = inbound_signal(BL_TOP_SYNC, 5, 9, 78);
	build_top(&f, &s);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	expect_data_lost(BL_HC_INGRESS, BL_R_SIGNAL, 63);
	/* the sender ends the flow */
	top_setup(state);
	start_inbound_flow(0, false);
	top.dead_ns = 1000000000;
	set_top();
	s = inbound_signal(BL_TOP_FIN, 5, 2, 77);
	s.data = 4;
	accept_signal(&s);
	for (k = 0; k < 3; k++)
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 0, WANT({ BL_HC_PACE, BL_R_DATA_LOST, 4 }));
	assert_int_equal(rx_get(0).state, BL_TOP_RX_FREE);
	assert_int_equal(top_page_get().used[0], 0);
}

/*
 * A SYNC of the same flow with another tag: missing data is still waited for. A SYNC of another
 * flow: it is given up.
 */
static void receiver__another_tag(void **state)
{
	struct frame f, plain, out;
	struct topd s;

	(void)state;
	start_inbound_flow(0, false);
	set_rtt(HOUR_NS);
	deliver_data(3, false);
	s = inbound_signal(BL_TOP_SYNC, 5, 9, 78);
	s.data = 4;
	accept_signal(&s);
	assert_true(rx_get(0).tag == 78 && rx_get(0).came.data == 4 && (~rx_get(0).came.got) == 13);
	/*
	 * Data that answers a token with the old tag is delivered, and a repetition of it is
	 * dropped.
	 */
	build_data(&f, &plain, 2, false);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_ECHO_BAD }, { BL_HC_INGRESS, BL_R_TO_APP }));
	same_frame(&out, &plain);
	assert_int_equal(~rx_get(0).came.got, 9);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_ECHO_BAD }, { BL_HC_INGRESS, BL_R_DATA_REPEATED }));
	/* the next flow of this number, between other ports */
	s = inbound_signal(BL_TOP_SYNC, 5, 1, 79);
	s.sport++;
	s.data = 4;
	build_top(&f, &s);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	expect_data_lost(BL_HC_INGRESS, BL_R_SIGNAL, 2);
	assert_true(!~rx_get(0).came.got);
	/* data numbers that cannot belong to this flow: its host restarted */
	build_data(&f, &plain, 6, false);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_ECHO_BAD }, { BL_HC_INGRESS, BL_R_TO_APP }));
	s.seq = 2;
	s.tag = 80;
	s.data = 1;
	build_top(&f, &s);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	expect_data_lost(BL_HC_INGRESS, BL_R_SIGNAL, 1);
	assert_true(rx_get(0).came.data == 1 && !~rx_get(0).came.got);
}

static void receiver__number_that_cannot_be(void **state)
{
	struct frame f, plain, out;

	(void)state;
	start_inbound_flow(0, false);
	build_data(&f, &plain, BL_TOP_AHEAD + 1, false);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_ECHO_BAD }, { BL_HC_INGRESS, BL_R_TO_APP }));
	same_frame(&out, &plain);
	assert_true(!rx_get(0).came.data && !~rx_get(0).came.got);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_TOP_LOSS,
			 BY_TOP_LOSS | BY_TOP | BY_TOP_RX | BY_HOLD | BY_HPACE | BY_HOST);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup(t, top_setup)
	const struct CMUnitTest tests[] = {
		CASE(keep__until_it_came),
		CASE(resend__oldest_first_once_per_rtt),
		CASE(tail__stop_says_how_far),
		CASE(flow__end_frees_what_was_kept),
		CASE(loss__refusals),
		CASE(loss__of_what_is_gone),
		CASE(keep__no_more_slots),
		CASE(window__full),
		CASE(answer__too_long_for_a_number),
		CASE(answer__that_cannot_grow),
		CASE(hint__resend),
		CASE(receiver__says_what_is_missing),
		CASE(receiver__after_an_rtt),
		CASE(receiver__acknowledges),
		CASE(receiver__gives_up),
		CASE(receiver__another_tag),
		CASE(receiver__number_that_cannot_be),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests_name("top_loss", tests, net_up, NULL);
}
