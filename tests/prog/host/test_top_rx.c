// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on a host that receives: bl_host_xdp accepts signals and data, and bl_host_pace sends tokens.
 * Also the values that the loader computes from the settings. The setup is that of test_top.c.
 */
#include "tests/prog/host/top_util.h"

/* ---- signals ---- */

static void message__malformed(void **state)
{
	struct topd t = inbound_signal(BL_TOP_SYNC, 5, 1, 99);
	struct frame good, f;
	__u32 len = 14 + 20 + 8 + 18 + 28;

	(void)state;
	build_top(&good, &t);
	assert_int_equal(good.n, len);
#define BAD(what, code)                              \
	do {                                         \
		doing = what;                        \
		f = good;                            \
		code;                                \
		expect_refused(&f, BL_R_SIGNAL_BAD); \
	} while (0)
	BAD("version 0", f.p[42] = BL_TOP_SYNC);
	BAD("version 2", f.p[42] = 2 << 4 | BL_TOP_SYNC);
	BAD("opcode 0", f.p[42] = 1 << 4);
	BAD("opcode 6", f.p[42] = 1 << 4 | 6);
	BAD("stop of nobody", f.p[42] = 1 << 4 | BL_TOP_STOP);
	BAD("fin of nobody", f.p[42] = 1 << 4 | BL_TOP_FIN);
	BAD("frame cut short", f.n--);
	BAD("IP says less", f.p[17]--);
	BAD("IP says more", f.p[17]++);
	doing = "";
	assert_int_equal(top_page_get().used[0], 0);
}

/* ---- inbound flows ---- */

/* The next frame that the pacer sends must be this token to host 2. */
static void expect_token_sent(__u16 flow, __u32 seq, __u32 tag, __u8 cls)
{
	struct topd t = { .token = true,
			  .sender = 2,
			  .receiver = 1,
			  .sport = 1000,
			  .dport = 2000,
			  .op = BL_TOP_TOKEN,
			  .cls = cls,
			  .flow = flow,
			  .seq = seq,
			  .tag = tag,
			  .ts = bus_now };
	struct frame f;

	build_top(&f, &t);
	assert_int_equal(f.n, BL_TOP_TOKEN_LEN);
	expect_paced(&f);
}

/* Lets the pacer send the next token now, whatever the slot of the last one. */
static void allow_next_token(void)
{
	tpage = top_page_get();
	tpage.free_ns = 0;
	map_put(sk->maps.top_page, 0, &tpage);
}

static void next_slot(__u32 places)
{
	struct bl_due d = due_get();
	struct bl_top_rx r;
	__u32 i;

	for (i = 0; i < places; i++) {
		r = rx_get(i);
		r.next_ns = 0;
		map_put(sk->maps.top_rx, i, &r);
	}
	tpage = top_page_get();
	tpage.at = 0;
	tpage.free_ns = 0;
	map_put(sk->maps.top_page, 0, &tpage);
	d.next = 0;
	due_put(&d);
}

static void receiver__sends_tokens(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 0xabcd1234);
	struct bl_top_rx r;

	(void)state;
	/* 3.6 s: no second token is sent in this case unless next_slot() allows it */
	top.slot_ns = 3600000000U;
	set_top();
	s.bytes = 30 * 1460;
	s.frames = 7;
	accept_signal(&s);
	r = rx_get(0);
	assert_true(r.state == BL_TOP_RX_OPEN && r.tag == 0xabcd1234 && r.waiting == 7 &&
		    r.bytes == 30 * 1460 && top_page_get().used[0] == 1);
	expect_token_sent(5, 1, 0xabcd1234, 2);
	expect_idle();
	next_slot(1);
	expect_token_sent(5, 2, 0xabcd1234, 2);
	assert_int_equal(top_page_get().tokens[2], 2);
	assert_int_equal(rx_get(0).cls, 2);
	/*
	 * A repeated SYNC changes nothing. A STOP ends the flow's tokens unless it is older than
	 * the last SYNC.
	 */
	accept_signal(&s);
	assert_int_equal(rx_get(0).syncs, 2);
	s = inbound_signal(BL_TOP_STOP, 5, 1, 0xabcd1234);
	accept_signal(&s);
	assert_int_equal(rx_get(0).state, BL_TOP_RX_OPEN);
	s.seq = 2;
	accept_signal(&s);
	assert_int_equal(rx_get(0).state, BL_TOP_RX_STOPPED);
	next_slot(1);
	expect_idle();
	s = inbound_signal(BL_TOP_SYNC, 5, 3, 0xabcd1234);
	s.frames = 1;
	allow_next_token();
	accept_signal(&s);
	expect_token_sent(5, 3, 0xabcd1234, 2); /* the numbers of tokens continue */
}

static void receiver__v6(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 0xfffe, 1, 77), t;
	struct frame f;

	(void)state;
	s.v6 = true;
	accept_signal(&s);
	t = s;
	t.token = true;
	t.op = BL_TOP_TOKEN;
	build_top(&f, &t);
	assert_int_equal(f.n, 80);
	expect_paced(&f);
}

static void receiver__best_class_then_turns(void **state)
{
	static const struct {
		__u16 flow;
		__u64 bytes;
	} flows[] = { { 1, 9000000 }, { 2, 1460 * 30 }, { 3, 1460 * 40 }, { 4, 1460 * 50 } };
	struct topd s;
	__u32 i;

	(void)state;
	top.slot_ns = 3600000000U;
	set_top();
	for (i = 0; i < 4; i++) {
		s = inbound_signal(BL_TOP_SYNC, flows[i].flow, 1, 100 + i);
		s.bytes = flows[i].bytes;
		accept_signal(&s);
	}
	for (i = 0; i < 7; i++) {
		next_slot(4);
		expect_token_sent((__u16)(2 + i % 3), 1 + i / 3, 101 + i % 3, 2);
	}
	s = inbound_signal(BL_TOP_STOP, 2, 2, 101);
	accept_signal(&s);
	s = inbound_signal(BL_TOP_STOP, 3, 2, 102);
	accept_signal(&s);
	s = inbound_signal(BL_TOP_STOP, 4, 2, 103);
	accept_signal(&s);
	next_slot(4);
	expect_token_sent(1, 1, 100, 5);
}

static void receiver__another_flow_by_that_number(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 9, 11);
	struct frame f;

	(void)state;
	top.slot_ns = 3600000000U;
	set_top();
	accept_signal(&s);
	expect_token_sent(5, 1, 11, 0);
	s = inbound_signal(BL_TOP_STOP, 5, 10, 12); /* of a flow that was never announced */
	build_top(&f, &s);
	expect_refused(&f, BL_R_SIGNAL_BAD);
	s = inbound_signal(BL_TOP_SYNC, 5, 1, 12);
	s.bytes = 9000000;
	allow_next_token();
	accept_signal(&s);
	expect_token_sent(5, 1, 12, 5);
	assert_int_equal(top_page_get().used[0], 1);
}

static void receiver__fin_frees_the_place(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);

	(void)state;
	top.slot_ns = 3600000000U;
	top.dead_ns = 1000000000;
	set_top();
	accept_signal(&s);
	expect_token_sent(5, 1, 11, 0);
	s = inbound_signal(BL_TOP_FIN, 5, 2, 11);
	s.bytes = 5000;
	accept_signal(&s);
	expect_idle();
	assert_int_equal(top_page_get().used[0], 0);
	assert_int_equal(top_page_get().gone, 1);
	assert_int_equal(rx_get(0).state, BL_TOP_RX_FREE);
	assert_int_equal(rx_get(0).bytes, 5000);
	s = inbound_signal(BL_TOP_SYNC, 6, 1, 12);
	allow_next_token();
	accept_signal(&s);
	expect_token_sent(6, 1, 12, 0);
}

/* Sets how many bytes of the flow in place 0 were received so far. */
static void set_served(__u64 bytes)
{
	struct bl_top_rx r = rx_get(0);

	r.served = bytes;
	map_put(sk->maps.top_rx, 0, &r);
}

static void set_learnt_limits(__u64 first)
{
	__u32 c;

	tpage = top_page_get();
	for (c = 0; c < BL_TOP_CLASSES - 1; c++)
		tpage.limit[c] = first ? first + c : 0;
	map_put(sk->maps.top_page, 0, &tpage);
}

/*
 * The class falls with the bytes that remain. A flow that brings more than it announced counts as
 * one of unknown size.
 */
static void receiver__class_of_what_is_left(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);

	(void)state;
	top.slot_ns = 3600000000U;
	top.objective = BL_TOP_BY_REMAINING;
	set_top();
	s.bytes = 500 * 1460;
	accept_signal(&s);
	expect_token_sent(5, 1, 11, 4);
	set_served(450 * 1460);
	next_slot(1);
	expect_token_sent(5, 2, 11, 2);
	set_served(515 * 1460);
	next_slot(1);
	expect_token_sent(5, 3, 11, 0);
	set_served(3000 * 1460);
	next_slot(1);
	expect_token_sent(5, 4, 11, 5);
}

/* Learnt thresholds are used if there are any and the configuration allows it. */
static void receiver__learnt_limits(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);

	(void)state;
	top.slot_ns = 3600000000U;
	top.objective = BL_TOP_BY_REMAINING;
	top.learn = 1;
	set_top();
	s.bytes = 50 * 1460;
	accept_signal(&s);
	expect_token_sent(5, 1, 11, 2); /* nothing is learnt yet */
	set_learnt_limits(48);
	next_slot(1);
	expect_token_sent(5, 2, 11, 3); /* thresholds 48, 49, 50 */
	top.learn = 0;
	set_top();
	next_slot(1);
	expect_token_sent(5, 3, 11, 2);
}

/*
 * A flow is counted once, when it ends, by the bytes that were received and not by those it
 * announced.
 */
static void receiver__sizes_are_learnt(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);
	__u64 all = 0;
	__u32 b;

	(void)state;
	top.slot_ns = 3600000000U;
	top.dead_ns = 1000000000;
	set_top();
	s.bytes = 1000000;
	accept_signal(&s);
	expect_token_sent(5, 1, 11, 4);
	set_served(100 * 1514);
	for (b = 0; b < BL_TOP_SIZES; b++)
		all += top_page_get().sizes[b];
	assert_int_equal(all, 0);
	s = inbound_signal(BL_TOP_FIN, 5, 2, 11);
	s.bytes = 1000000;
	accept_signal(&s);
	expect_idle();
	tpage = top_page_get();
	for (b = 0; b < BL_TOP_SIZES; b++)
		all += tpage.sizes[b];
	assert_int_equal(all, 1);
	assert_int_equal(tpage.sizes[bl_top_bucket(101)], 1);
}

static void receiver__sender_died(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);
	struct bl_top_rx r;

	(void)state;
	top.dead_ns = HOUR_NS;
	set_top();
	accept_signal(&s);
	expect_token_sent(5, 1, 11, 0);
	next_slot(1);
	r = rx_get(0);
	r.heard_ns = mono_now() - HOUR_NS;
	r.next_ns = 0;
	map_put(sk->maps.top_rx, 0, &r);
	expect_idle();
	assert_int_equal(top_page_get().used[0], 0);
	assert_int_equal(due_get().next, BL_DUE_NEVER);
}

static void receiver__full(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);
	struct frame f;

	(void)state;
	memset(tpage.used, 0xff, sizeof(tpage.used));
	map_put(sk->maps.top_page, 0, &tpage);
	build_top(&f, &s);
	expect_refused(&f, BL_R_FLOWS_FULL);
	tpage.used[3] &= ~(1ULL << 63);
	map_put(sk->maps.top_page, 0, &tpage);
	accept_signal(&s);
	assert_int_equal(rx_get(255).tag, 11);
}

static void receiver__clock_void(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);

	(void)state;
	accept_signal(&s);
	clock_void(sk->maps.clock);
	expect_idle();
	assert_true(top_page_get().no_clock >= 1);
	clock_at(sk->maps.clock, bus_now);
	next_slot(1);
	expect_token_sent(5, 1, 11, 0);
}

static void receiver__coflow(void **state)
{
	struct topd s;
	struct bl_top_coflow c;
	__u32 id = 42;
	int fd;

	(void)state;
	fd = bpf_map__fd(sk->maps.top_coflows);
	top.slot_ns = 3600000000U;
	top.objective = BL_TOP_BY_COFLOW;
	set_top();
	s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);
	s.bytes = 3 * 1460;
	s.coflow = 42;
	accept_signal(&s);
	expect_token_sent(5, 1, 11, 0);
	s.flow = 6;
	s.bytes = 97 * 1460;
	s.tag = 12;
	accept_signal(&s);
	assert_int_equal(bpf_map_lookup_elem(fd, &id, &c), 0);
	assert_true(c.bytes == 100 * 1460 && c.flows == 2);
	next_slot(2);
	expect_token_sent(6, 1, 12, 3); /* both flows have the class of the whole coflow */
	next_slot(2);
	expect_token_sent(5, 2, 11, 3);
	/* the next flow of this number belongs to no coflow */
	s.flow = 6;
	s.tag = 13;
	s.coflow = 0;
	accept_signal(&s);
	assert_int_equal(bpf_map_lookup_elem(fd, &id, &c), 0);
	assert_true(c.bytes == 3 * 1460 && c.flows == 1);
	s.flow = 5;
	s.tag = 14;
	accept_signal(&s);
	assert_int_not_equal(bpf_map_lookup_elem(fd, &id, &c), 0);
}

static struct bl_top_coflow coflow_get(__u32 id)
{
	struct bl_top_coflow c;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(sk->maps.top_coflows), &id, &c), 0);
	return c;
}

/* Makes the flow of @s, of unknown size, the first one of coflow 42, and expects its token. */
static void start_coflow(struct topd *s)
{
	top.slot_ns = 3600000000U;
	top.objective = BL_TOP_BY_COFLOW;
	top.dead_ns = 20000000000;
	set_top();
	s->coflow = 42;
	accept_signal(s);
	expect_token_sent(5, 1, 11, 0);
}

/*
 * The FIN of a flow of unknown size subtracts nothing from the coflow's sum, since it added
 * nothing.
 */
static void receiver__coflow_of_unknown_size(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);

	(void)state;
	start_coflow(&s);
	s.flow = 6;
	s.tag = 12;
	accept_signal(&s);
	next_slot(2);
	expect_token_sent(6, 1, 12, 0);
	s = inbound_signal(BL_TOP_FIN, 5, 2, 11);
	s.bytes = 3000;
	accept_signal(&s);
	next_slot(2);
	expect_token_sent(6, 2, 12, 0);
	assert_int_equal(top_page_get().gone, 1);
	assert_int_equal(coflow_get(42).bytes, 0);
	assert_int_equal(coflow_get(42).flows, 1);
	next_slot(2);
	expect_token_sent(6, 3, 12, 0); /* the other flow of the coflow is unchanged */
}

/*
 * A size that a flow announces later counts from then on. When the flow ends, the same size is
 * subtracted, whatever the FIN says.
 */
static void receiver__coflow_of_sizes_that_change(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11), t;

	(void)state;
	start_coflow(&s);
	t = s;
	t.flow = 6;
	t.tag = 12;
	t.bytes = 2 * 1460;
	accept_signal(&t);
	assert_int_equal(coflow_get(42).bytes, 2 * 1460);
	s.seq = 2;
	s.bytes = 98 * 1460;
	accept_signal(&s);
	assert_int_equal(coflow_get(42).bytes, 100 * 1460);
	accept_signal(&s);
	assert_int_equal(coflow_get(42).bytes, 100 * 1460);
	s.seq = 3;
	s.bytes = 18 * 1460;
	accept_signal(&s);
	assert_int_equal(coflow_get(42).bytes, 20 * 1460);
	s = inbound_signal(BL_TOP_FIN, 5, 4, 11);
	s.bytes = 77;
	accept_signal(&s);
	next_slot(2);
	expect_token_sent(6, 1, 12, 1);
	assert_true(coflow_get(42).bytes == 2 * 1460 && coflow_get(42).flows == 1);
	/* a new flow that takes over the number of an open one subtracts what that one had added */
	t.seq = 1;
	t.tag = 13;
	t.bytes = 0;
	accept_signal(&t);
	assert_true(!coflow_get(42).bytes && coflow_get(42).flows == 1);
}

/* ---- data ---- */

/* Builds a data frame from host 2 for an application of this host. */
static void build_data(struct frame *f, bool v6, __u32 body)
{
	struct desc d = plain_frame(2, 1, v6);

	memcpy(d.dst, bl0, 6);
	d.body = body;
	build(f, &d);
}

static void data__echo_comes_off(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct topd s;
		struct frame f, plain;

		top_setup(state);
		s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);
		s.v6 = v6;
		accept_signal(&s);
		assert_int_equal(turn(sk->progs.bl_host_pace, &f), XDP_REDIRECT);
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
		build_data(&plain, v6, 1000);
		f = plain;
		add_echo(&f, 5, 1);
		expect_host_xdp(&f, &plain, XDP_REDIRECT, BL_R_TO_APP);
		assert_true(rx_get(0).frames == 1 && rx_get(0).served == plain.n &&
			    rx_get(0).echo == 1);
		/*
		 * with an echo of number 0 (unscheduled), with a NIC's padding behind it, and
		 * without an echo
		 */
		f = plain;
		add_echo(&f, 5, 0);
		expect_host_xdp(&f, &plain, XDP_REDIRECT, BL_R_TO_APP);
		put(&f, "\0\0\0\0\0\0", 6);
		expect_host_xdp(&f, &plain, XDP_REDIRECT, BL_R_TO_APP);
		expect_host_xdp(&plain, &plain, XDP_REDIRECT, BL_R_TO_APP);
		assert_int_equal(rx_get(0).frames, 3);
		f = plain;
		put(&f, "\0\0\0\0\0\0\0\0\0\0\0\0", 12); /* padding without an echo stays */
		expect_host_xdp(&f, &f, XDP_REDIRECT, BL_R_TO_APP);
		f = plain;
		add_echo(&f, 5, 1);
		f.n--; /* a truncated echo */
		expect_host_xdp(&f, &f, XDP_REDIRECT, BL_R_TO_APP);
		assert_int_equal(rx_get(0).frames, 3);
	}
}

static void data__echo_of_nothing(void **state)
{
	struct topd s = inbound_signal(BL_TOP_SYNC, 5, 1, 11);
	struct frame f, plain, out;
	static const struct {
		__u16 flow;
		__u32 seq;
	} t[] = { { 4, 1 }, { 5, 2 }, { 5, 0x7fffffff } };
	unsigned int i;

	(void)state;
	accept_signal(&s);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
	build_data(&plain, false, 100);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		f = plain;
		add_echo(&f, t[i].flow, t[i].seq);
		assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &f, &out),
				 XDP_REDIRECT);
		counts_moved(sk->maps.counts, counted, 1,
			     WANT({ BL_HC_INGRESS, BL_R_ECHO_BAD },
				  { BL_HC_INGRESS, BL_R_TO_APP }));
		same_frame(&out, &plain); /* the echo is removed all the same */
	}
	assert_true(!rx_get(0).frames && !rx_get(0).echo);
}

/* ---- values that the loader computes ---- */

static void loader__limits(void **state)
{
	static const struct {
		double a, b, p;
		unsigned int k;
		uint64_t limit[5];
	} t[] = {
		{ 1, 0, 10000, 6, { 5, 22, 100, 465, 2155 } },
		{ 1, 0, 64, 6, { 2, 4, 8, 16, 32 } }, /* exact powers */
		{ 1, 0, 1000, 3, { 10, 100, ~0ULL, ~0ULL, ~0ULL } },
		{ 2, 4, 64, 6, { 0, 0, 2, 6, 14 } },
		{ 0.5, 0, 64, 6, { 4, 8, 16, 32, 64 } },
		{ 1, 0, 20000, 1, { ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL } },
	};
	unsigned int i, c;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		for (c = 1; c < BL_TOP_CLASSES; c++)
			if (bl_top_limit(c, t[i].k, t[i].a, t[i].b, t[i].p) != t[i].limit[c - 1])
				fail_msg("row %u: class %u from %llu", i, c,
					 (unsigned long long)bl_top_limit(c, t[i].k, t[i].a, t[i].b,
									  t[i].p));
}

static void loader__figures(void **state)
{
	struct bl_top_opts o = { { 0 } };
	struct bl_top_cfg c;
	struct bl_err err;

	(void)state;
	o.v[BL_TOP_O_BASE] = 10 + 1;
	o.v[BL_TOP_O_HOPS] = 2 + 1;
	o.v[BL_TOP_O_HEADROOM] = 0 + 1;
	bl_top_defaults(&o);
	assert_int_equal(bl_top_check(&o, &err), 0);
	bl_top_make(&o, 838861, &c); /* 10 Gbit/s: 0.8 ns per byte */
	assert_int_equal(c.slot_ns, 1298);
	assert_int_equal(c.expiry_ns, 10000 + 16 * 1298);
	assert_int_equal(c.ramp, 15); /* 20 us in slots of 1298 ns */
	o.v[BL_TOP_O_BASE] = 26 + 1;
	bl_top_make(&o, 838861, &c);
	assert_int_equal(c.ramp, BL_TOP_SHORT_RAMP);
	bl_top_make(&o, 838861 * 200, &c); /* 50 Mbit/s: a slot is longer than the round trip */
	assert_int_equal(c.ramp, 1);
	o.v[BL_TOP_O_BASE] = 10 + 1;
	bl_top_make(&o, 838861, &c);
	assert_true(c.law == BL_TOP_LAW_NS2 && c.levels == 6 && c.alpha == BL_TOP_ONE / 2 &&
		    c.w_max == BL_TOP_ONE / 2 && c.sync_ns == 2000000 && c.dead_ns == 50000000);
	o.v[BL_TOP_O_HEADROOM] = 5 + 1;
	o.v[BL_TOP_O_EXPIRY] = 45 + 1;
	bl_top_make(&o, 838861, &c);
	assert_int_equal(c.slot_ns, 1366);
	assert_int_equal(c.expiry_ns, 45000);
	o.v[BL_TOP_O_LEVELS] = 7 + 1;
	assert_int_equal(bl_top_check(&o, &err), -EINVAL);
	o.v[BL_TOP_O_LEVELS] = 6 + 1;
	o.v[BL_TOP_O_W_MIN] = 100 + 1;
	assert_int_equal(bl_top_check(&o, &err), -EINVAL);
}

/*
 * Configured thresholds are used as they are and switch learning off. Learning is also off where
 * classes do not depend on sizes.
 */
static void loader__thresholds(void **state)
{
	struct bl_top_opts o = { { 0 } };
	struct bl_top_cfg c;
	struct bl_err err;

	(void)state;
	bl_top_defaults(&o);
	bl_top_make(&o, 838861, &c);
	assert_true(c.learn && c.objective == BL_TOP_BY_REMAINING);
	o.v[BL_TOP_O_CLASS2] = 400 + 1;
	bl_top_make(&o, 838861, &c);
	assert_true(!c.learn && c.limit[1] == 400 && c.limit[0] == 6); /* 20000^(1/6) = 5.2 */
	o.v[BL_TOP_O_CLASS4] = 400 + 1;
	assert_int_equal(bl_top_check(&o, &err), -EINVAL);
	o.v[BL_TOP_O_CLASS4] = 401 + 1;
	assert_int_equal(bl_top_check(&o, &err), 0);
	o.v[BL_TOP_O_CLASS2] = o.v[BL_TOP_O_CLASS4] = 0 + 1;
	o.v[BL_TOP_O_LEARN] = 0 + 1;
	bl_top_make(&o, 838861, &c);
	assert_false(c.learn);
	o.v[BL_TOP_O_LEARN] = 1 + 1;
	o.v[BL_TOP_O_OBJECTIVE] = BL_TOP_BY_COFLOW + 1;
	bl_top_make(&o, 838861, &c);
	assert_false(c.learn);
	o.v[BL_TOP_O_OBJECTIVE] = BL_TOP_BY_LAS + 1;
	o.v[BL_TOP_O_LEVELS] = 1 + 1;
	bl_top_make(&o, 838861, &c);
	assert_false(c.learn);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_TOP_RX, BY_TOP | BY_TOP_RX | BY_HOLD | BY_HPACE | BY_HOST);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup(t, top_setup)
	const struct CMUnitTest tests[] = {
		CASE(message__malformed),
		CASE(receiver__sends_tokens),
		CASE(receiver__v6),
		CASE(receiver__best_class_then_turns),
		CASE(receiver__another_flow_by_that_number),
		CASE(receiver__fin_frees_the_place),
		CASE(receiver__sender_died),
		CASE(receiver__class_of_what_is_left),
		CASE(receiver__learnt_limits),
		CASE(receiver__sizes_are_learnt),
		CASE(receiver__full),
		CASE(receiver__clock_void),
		CASE(receiver__coflow),
		CASE(receiver__coflow_of_unknown_size),
		CASE(receiver__coflow_of_sizes_that_change),
		CASE(data__echo_comes_off),
		CASE(data__echo_of_nothing),
		cmocka_unit_test(loader__limits),
		cmocka_unit_test(loader__figures),
		cmocka_unit_test(loader__thresholds),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests_name("top_rx", tests, net_up, NULL);
}
