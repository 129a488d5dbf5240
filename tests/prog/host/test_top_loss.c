// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on a host, data that gets lost: what a sender keeps, the LOSS that it believes, and what it
 * sends again; what a receiver misses, says, delivers once and gives up. As test_top.c.
 */
#include "core/top/top_loss_core.h"
#include "tests/prog/host/top_util.h"

/* ---- the sender ---- */

/* Flows to port 53, which is what held() makes, keep their frames. */
static void keeping(void)
{
	top.rules[0] = (struct bl_top_rule){ .port = 53, .flags = BL_TOP_F_RESEND };
	set_top();
}

/* How many frames flow @n keeps; no slot is anywhere else, and the page knows. */
static __u32 kept(__u32 n)
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

/* Token @seq of flow 1 is answered with @f, data number @data. */
static void answers(const struct frame *held, __u32 seq, __u32 data, enum bl_reason why)
{
	struct topd t = token_of(1001, 1, seq);
	struct frame f, want = *held;

	build_top(&f, &t);
	add_numbered(&want, 1, seq, data);
	comes(&f, &want, XDP_TX, why);
}

static void drops(__u32 seq, enum bl_reason why)
{
	struct topd t = token_of(1001, 1, seq);
	struct frame f;

	build_top(&f, &t);
	refused(&f, why);
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

	t.token = true; /* it goes the same way */
	t.missing = missing;
	t.rtt_us = rtt_us;
	return t;
}

static void loss_in(__u32 seq, __u32 data, __u64 missing, __u32 rtt_us)
{
	struct topd t = loss_of(seq, data, missing, rtt_us);
	struct frame f;

	build_top(&f, &t);
	comes(&f, &f, XDP_DROP, BL_R_LOSS);
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
		keeping();
		for (i = 0; i < 3; i++)
			a[i] = held(1001, (__u16)(1 + i), v6);
		s = sync_of(1001, 1, 1, 3, v6);
		build_top(&f, &s);
		paced(&f);
		for (i = 0; i < 3; i++) {
			answers(&a[i], 1 + i, 1 + i, BL_R_TOKEN_USED);
			assert_int_equal(kept(1), 1 + i);
		}
		loss_in(1, 1, 0, 5);
		assert_int_equal(kept(1), 2);
		loss_in(2, 3, 2, HOUR_US); /* 3 came, 2 did not */
		assert_int_equal(kept(1), 1);
		assert_true(tx_get(1).asked == 1 && tx_get(1).rtt_us == HOUR_US &&
			    tx_get(1).acked == 1);
		answers(&a[1], 4, 2, BL_R_TOKEN_RESENT);
		assert_int_equal(kept(1), 1);
		loss_in(3, 3, 0, 5);
		assert_int_equal(kept(1), 0);
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
	keeping();
	for (i = 0; i < 5; i++)
		a[i] = held(1001, (__u16)(1 + i), false);
	s = sync_of(1001, 1, 1, 5, false);
	build_top(&f, &s);
	paced(&f);
	for (i = 0; i < 4; i++)
		answers(&a[i], 1 + i, 1 + i, BL_R_TOKEN_USED);
	loss_in(1, 4, 1 << 3 | 1 << 1, HOUR_US);
	assert_int_equal(kept(1), 2);
	idle(); /* tokens come: nobody has to ask */
	answers(&a[0], 5, 1, BL_R_TOKEN_RESENT);
	loss_in(2, 4, 1 << 3 | 1 << 1, HOUR_US); /* 1 is on its way; 3 was marked before */
	answers(&a[2], 6, 3, BL_R_TOKEN_RESENT);
	answers(&a[4], 7, 5, BL_R_TOKEN_USED); /* only then what is new */
	loss_in(3, 5, 1 << 4 | 1 << 2, HOUR_US);
	assert_int_equal(tx_get(1).asked, 3);
	s = token_of(1001, 1, 8);
	build_top(&f, &s);
	s = signal_of(BL_TOP_STOP, 2, 0);
	s.bare = true;
	build_top(&a[1], &s);
	comes(&f, &a[1], XDP_TX, BL_R_TOKEN_STOP); /* less than an RTT ago */
	s = signal_of(BL_TOP_STOP, 3, 5);
	build_top(&f, &s);
	paced(&f);
	idle();
	loss_in(4, 5, 1 << 4 | 1 << 2, 0);
	s = sync_of(1001, 1, 4, 2, false); /* there is nothing else, but these two wait */
	s.data = 5;
	build_top(&f, &s);
	paced(&f);
	idle();
	answers(&a[0], 9, 1, BL_R_TOKEN_RESENT);
	answers(&a[2], 10, 3, BL_R_TOKEN_RESENT);
	assert_true(tx_get(1).resent == 4 && kept(1) == 2);
}

static void tail__stop_says_how_far(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct frame a, f, want;
		struct topd s;

		top_setup(state);
		keeping();
		a = held(1001, 1, v6);
		answers(&a, 1, 1, BL_R_TOKEN_USED);
		s = token_of(1001, 1, 2);
		build_top(&f, &s);
		s = signal_of(BL_TOP_STOP, 1, 0);
		s.bare = true;
		build_top(&want, &s);
		comes(&f, &want, XDP_TX, BL_R_TOKEN_STOP);
		s = signal_of(BL_TOP_STOP, 2, 1);
		build_top(&want, &s);
		assert_int_equal(want.n, (v6 ? 80 : 60) + 4);
		paced(&want);
		idle();
		assert_true(tx_get(1).told == 1 && tx_get(1).stops == 2);
		drops(3, BL_R_TOKEN_WASTED);
		idle(); /* it was said */
		loss_in(1, 1, 0, 5);
		assert_int_equal(kept(1), 0);
		drops(4, BL_R_TOKEN_WASTED);
		idle();
		assert_int_equal(tx_get(1).acked, 1);
	}
}

static void flow__end_frees_what_was_kept(void **state)
{
	struct frame a, b, f;
	struct topd s;

	(void)state;
	keeping();
	a = held(1001, 1, false);
	b = held(1001, 2, false);
	answers(&a, 1, 1, BL_R_TOKEN_USED);
	answers(&b, 2, 2, BL_R_TOKEN_USED);
	loss_in(1, 2, 2, 5);
	top.idle_ns = 0;
	set_top();
	s = sync_of(1001, 1, 1, 1, false); /* the missing one keeps the flow alive */
	s.data = 2;
	top.sync_ns = 0;
	set_top();
	build_top(&f, &s);
	paced(&f);
	top.sync_ns = HOUR_NS;
	set_top();
	answers(&a, 3, 1, BL_R_TOKEN_RESENT);
	{
		struct bl_due d = due_get();

		d.at[1] = d.next = 0;
		due_put(&d);
	}
	s = signal_of(BL_TOP_FIN, 2, 2);
	s.bytes = a.n + b.n;
	build_top(&f, &s);
	paced(&f);
	assert_int_equal(tx_get(1).state, BL_TOP_FREE);
	assert_int_equal(kept(1), 0);
	/* the number's next flow goes on counting: what is left of this one can be told from it */
	top.idle_ns = HOUR_NS;
	set_top();
	a = held(1001, 3, false);
	assert_int_equal(due_get().given, 1);
	s = sync_of(1001, 1, 1, 1, false);
	s.data = 2;
	build_top(&f, &s);
	paced(&f);
	answers(&a, 1, 3, BL_R_TOKEN_USED);
	assert_int_equal(kept(1), 1);
}

static void loss__refusals(void **state)
{
	struct frame a, f;
	struct topd t;
	struct bl_top_tx was, is;
	unsigned int i;

	(void)state;
	keeping();
	a = held(1001, 1, false);
	answers(&a, 1, 1, BL_R_TOKEN_USED);
	top.rules[0].port = 54;
	set_top();
	held(1002, 1, false); /* flow 2 keeps nothing */
	loss_in(7, 0, 0, 5);
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
		refused(&f, why);
		is = tx_get(1);
		assert_memory_equal(&was, &is, sizeof(is));
		assert_int_equal(kept(1), 1);
	}
	doing = "";
	loss_in(8, 1, 1, 5);
	answers(&a, 2, 1, BL_R_TOKEN_RESENT);
}

static void loss__of_what_is_gone(void **state)
{
	struct frame a, b, f, out;
	struct topd t;

	(void)state;
	keeping();
	a = held(1001, 1, false);
	b = held(1001, 2, false);
	answers(&a, 1, 1, BL_R_TOKEN_USED);
	answers(&b, 2, 2, BL_R_TOKEN_USED);
	loss_in(1, 1, 0, 5);
	t = loss_of(2, 2, 3, 5);
	build_top(&f, &t);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_LOSS_GONE }, { BL_HC_INGRESS, BL_R_LOSS }));
	assert_true(tx_get(1).gone == 1 && tx_get(1).asked == 1);
	answers(&b, 3, 2, BL_R_TOKEN_RESENT);
}

static void keep__no_more_slots(void **state)
{
	struct frame a, b, f, out, want;
	struct topd t;

	(void)state;
	keeping();
	top.keep_max = 1;
	set_top();
	a = held(1001, 1, false);
	b = held(1001, 2, false);
	answers(&a, 1, 1, BL_R_TOKEN_USED);
	t = token_of(1001, 1, 2);
	build_top(&f, &t);
	want = b;
	add_numbered(&want, 1, 2, 2);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_TX);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_NOT_KEPT }, { BL_HC_INGRESS, BL_R_TOKEN_USED }));
	same_frame(&out, &want);
	assert_int_equal(kept(1), 1);
}

/*
 * The frame 64 before the next one must have come: it is sent once more each RTT until somebody
 * says so.
 */
static void window__full(void **state)
{
	struct frame a[66];
	__u32 i;

	(void)state;
	keeping();
	for (i = 0; i < 66; i++)
		a[i] = held(1001, (__u16)(1 + i), false);
	for (i = 0; i < 64; i++)
		answers(&a[i], 1 + i, 1 + i, BL_R_TOKEN_USED);
	drops(65, BL_R_TOKEN_BLOCKED);
	assert_true(kept(1) == 64 && tx_get(1).wasted == 1 && tx_get(1).tokens == 64 &&
		    tx_get(1).state == BL_TOP_CREDITED);
	loss_in(1, 0, 0, 1); /* says nothing but that an RTT is a microsecond */
	answers(&a[0], 66, 1, BL_R_TOKEN_RESENT);
	loss_in(2, 0, 0, HOUR_US);
	drops(67, BL_R_TOKEN_BLOCKED);
	loss_in(3, 2, 2, 0); /* 2 came, 1 did not, and goes before everything new */
	answers(&a[0], 68, 1, BL_R_TOKEN_RESENT);
	loss_in(4, 1, 0, HOUR_US);
	answers(&a[64], 69, 65, BL_R_TOKEN_USED);
	answers(&a[65], 70, 66, BL_R_TOKEN_USED);
	assert_int_equal(kept(1), 64);
}

static void answer__too_long_for_a_number(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct frame a, b, f;
	struct topd t;

	(void)state;
	keeping();
	d.body = 1507 - 66;
	build(&a, &d);
	give(&a, BL_R_HELD);
	b = held(1001, 2, false);
	t = token_of(1001, 1, 1);
	build_top(&f, &t);
	comes(&f, &a, XDP_TX, BL_R_TOKEN_USED);
	assert_int_equal(kept(1), 0);
	answers(&b, 2, 1, BL_R_TOKEN_USED); /* no gap */
}

/*
 * As token__that_cannot_grow in test_top.c: the pacer sends the answer, which stays in the keeping;
 * and once more when it is missing.
 */
static void answer__that_cannot_grow(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	int fd = wire_sock(net.peer[0]), pass = bpf_program__fd(net.pass->progs.bl_pass), i, round;
	static struct bl_counts now[COUNT_KEYS_MAX];
	struct topd t;
	struct frame a, f, want;

	(void)state;
	keeping();
	d.body = 1300;
	build(&a, &d);
	give(&a, BL_R_HELD);
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
		if (tx_get(1).paced == paced_was) {
			counts_moved(sk->maps.counts, counted, 1,
				     WANT({ BL_HC_INGRESS,
					    round ? BL_R_TOKEN_RESENT : BL_R_TOKEN_USED }));
		} else {
			counts_moved(sk->maps.counts, counted, 1,
				     WANT({ BL_HC_INGRESS, BL_R_TOKEN_PACED }));
			want = a;
			add_numbered(&want, 1, 1 + (__u32)round, 1);
			paced(&want);
			idle();
		}
		assert_int_equal(kept(1), 1);
		assert_int_equal(tx_get(1).resent, round);
		if (!round)
			loss_in(1, 1, 1, 5);
	}
	close(fd);
}

/* ---- who asks for it ---- */

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
		give(&f, BL_R_HELD);
		if (tx_get(1).keep != t[i].keep || (tx_get(1).keep && tx_get(1).unsched))
			fail_msg("row %u", i);
	}
}

/* ---- the receiver ---- */

/* Host 2's data @data for an application here, of flow 5; it answers token 1. */
static void data_of(struct frame *f, struct frame *plain, __u32 data, bool v6)
{
	struct desc d = plain_frame(2, 1, v6);

	memcpy(d.dst, bl0, 6);
	d.ip_id = (__u16)data;
	build(plain, &d);
	*f = *plain;
	add_numbered(f, 5, 1, data);
}

static void data_in(__u32 data, bool v6)
{
	struct frame f, plain;

	data_of(&f, &plain, data, v6);
	comes(&f, &plain, XDP_REDIRECT, BL_R_TO_APP);
}

/*
 * A flow comes in, of which @data frames were sent; its first token goes out, and no other one for
 * an hour.
 */
static void coming(__u32 data, bool v6)
{
	struct topd s = inbound(BL_TOP_SYNC, 5, 1, 77), t;
	struct bl_top_rx r;
	struct frame f;

	top.slot_ns = 3600000000U;
	set_top();
	s.v6 = v6;
	s.data = data;
	signal_in(&s);
	t = s;
	t.token = true;
	t.op = BL_TOP_TOKEN;
	build_top(&f, &t);
	paced(&f);
	r = rx_get(0);
	r.next_ns = BL_DUE_NEVER;
	r.probe_ns = 0; /* no RTT but what a case says */
	map_put(sk->maps.top_rx, 0, &r);
}

static void loss_out(__u32 seq, __u32 data, __u64 missing, __u32 rtt_us, bool v6)
{
	struct topd t = inbound(BL_TOP_LOSS, 5, seq, 77);
	struct frame f;

	t.v6 = v6;
	t.token = true;
	t.data = data;
	t.missing = missing;
	t.rtt_us = rtt_us;
	build_top(&f, &t);
	assert_int_equal(f.n, (v6 ? 80 : 60) + 16);
	paced(&f);
}

static void rx_set(__u64 rtt_ns)
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
		coming(0, v6);
		for (k = 1; k <= 9; k++)
			if (k != 2)
				data_in(k, v6);
		rx_set(HOUR_NS);
		idle();
		data_in(10, v6);
		loss_out(1, 2, 1, HOUR_US, v6);
		idle();
		data_in(2, v6);
		assert_true(!~rx_get(0).came.got && rx_get(0).came.losses == 1);
		data_of(&f, &plain, 2, v6);
		comes(&f, &plain, XDP_DROP, BL_R_DATA_REPEATED);
		loss_out(2, 10, 0, HOUR_US, v6); /* whoever sends again does not know */
		idle();
		assert_int_equal(rx_get(0).came.repeated, 1);
	}
}

static void receiver__after_an_rtt(void **state)
{
	struct topd s = inbound(BL_TOP_STOP, 5, 2, 77);
	struct bl_top_rx r;

	(void)state;
	coming(20, false);
	rx_set(1);
	data_in(22, false);
	rx_set(HOUR_NS);
	/* 21; what was sent before the SYNC is not waited for */
	loss_out(1, 22, 2, HOUR_US, false);
	idle();
	data_in(21, false);
	loss_out(2, 22, 0, HOUR_US, false);
	idle();
	s.data = 23; /* the last one is lost */
	signal_in(&s);
	idle(); /* perhaps the STOP has only overtaken it */
	assert_int_equal(rx_get(0).came.data, 23);
	assert_int_equal(rx_get(0).state, BL_TOP_RX_STOPPED);
	r = rx_get(0);
	r.came.again_ns = 1;
	map_put(sk->maps.top_rx, 0, &r);
	s.seq = 3;
	signal_in(&s);
	loss_out(3, 23, 1, HOUR_US, false);
}

static void receiver__acknowledges(void **state)
{
	struct topd s = inbound(BL_TOP_STOP, 5, 2, 77);
	__u32 k;

	(void)state;
	coming(0, false);
	rx_set(HOUR_NS);
	for (k = 1; k < 24; k++)
		data_in(k, false);
	idle();
	data_in(24, false);
	loss_out(1, 24, 0, HOUR_US, false);
	s.data = 24;
	signal_in(&s);
	loss_out(2, 24, 0, HOUR_US, false);
	/* a flow without numbers hears nothing */
	s.seq = 3;
	s.data = 0;
	signal_in(&s);
	idle();
}

static void lost(__u32 hook, enum bl_reason with, __u32 n)
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
	/* what is missing for too long: said at once, so that nobody keeps it */
	coming(0, false);
	rx_set(1);
	data_in(3, false);
	r = rx_get(0);
	r.came.since_ns = 0;
	map_put(sk->maps.top_rx, 0, &r);
	top.dead_ns = 1000000000;
	set_top();
	s = inbound(BL_TOP_LOSS, 5, 1, 77);
	s.token = true;
	s.data = 3;
	build_top(&want, &s);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	lost(BL_HC_PACE, BL_R_PACED, 2);
	same_frame(&out, &want);
	assert_int_equal(rx_get(0).came.lost, 2);
	data_of(&f, &plain, 1, false);
	comes(&f, &plain, XDP_DROP, BL_R_DATA_REPEATED); /* too late */
	/* what falls out of the window */
	top_setup(state);
	coming(0, false);
	rx_set(HOUR_NS);
	data_in(2, false);
	data_of(&f, &plain, 65 + 9, false);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	lost(BL_HC_INGRESS, BL_R_TO_APP, 9); /* 1, 3 to 10 */
	same_frame(&out, &plain);
	/* another flow by that number */
	s = inbound(BL_TOP_SYNC, 5, 9, 78);
	build_top(&f, &s);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	lost(BL_HC_INGRESS, BL_R_SIGNAL, 63);
	/* the sender's end */
	top_setup(state);
	coming(0, false);
	top.dead_ns = 1000000000;
	set_top();
	s = inbound(BL_TOP_FIN, 5, 2, 77);
	s.data = 4;
	signal_in(&s);
	for (k = 0; k < 3; k++)
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 0, WANT({ BL_HC_PACE, BL_R_DATA_LOST, 4 }));
	assert_int_equal(rx_get(0).state, BL_TOP_RX_FREE);
	assert_int_equal(top_page_get().used[0], 0);
}

/*
 * The same flow with another tag: what is missing is still waited for. Another flow's is given up.
 */
static void receiver__another_tag(void **state)
{
	struct frame f, plain, out;
	struct topd s;

	(void)state;
	coming(0, false);
	rx_set(HOUR_NS);
	data_in(3, false);
	s = inbound(BL_TOP_SYNC, 5, 9, 78);
	s.data = 4;
	signal_in(&s);
	assert_true(rx_get(0).tag == 78 && rx_get(0).came.data == 4 && (~rx_get(0).came.got) == 13);
	/* it answers a token with the tag before, and came all the same; nobody needs it twice */
	data_of(&f, &plain, 2, false);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_ECHO_BAD }, { BL_HC_INGRESS, BL_R_TO_APP }));
	same_frame(&out, &plain);
	assert_int_equal(~rx_get(0).came.got, 9);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_ECHO_BAD }, { BL_HC_INGRESS, BL_R_DATA_REPEATED }));
	/* the number's next flow, between other ports */
	s = inbound(BL_TOP_SYNC, 5, 1, 79);
	s.sport++;
	s.data = 4;
	build_top(&f, &s);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	lost(BL_HC_INGRESS, BL_R_SIGNAL, 2);
	assert_true(!~rx_get(0).came.got);
	/* numbers that cannot be this flow's: its host began anew */
	data_of(&f, &plain, 6, false);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_ECHO_BAD }, { BL_HC_INGRESS, BL_R_TO_APP }));
	s.seq = 2;
	s.tag = 80;
	s.data = 1;
	build_top(&f, &s);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out), XDP_DROP);
	lost(BL_HC_INGRESS, BL_R_SIGNAL, 1);
	assert_true(rx_get(0).came.data == 1 && !~rx_get(0).came.got);
}

static void receiver__number_that_cannot_be(void **state)
{
	struct frame f, plain, out;

	(void)state;
	coming(0, false);
	data_of(&f, &plain, BL_TOP_AHEAD + 1, false);
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
