// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP on a host that sends: bl_hold_xdp assigns the applications' frames to flows, bl_host_pace
 * asks for tokens, and bl_host_xdp answers them. Every frame is compared byte for byte with one
 * that is built from its description (top_util.h).
 */
#include "tests/prog/host/top_util.h"

/* ---- flows that are sent ---- */

static void sync__byte_exact(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct topd s;
		struct frame f;
		struct bl_top_tx t;

		top_setup(state);
		hold_frame(1001, 1, v6);
		hold_frame(1001, 2, v6);
		s = sync_of(1001, 1, 1, 2, v6);
		build_top(&f, &s);
		assert_int_equal(f.n, (v6 ? 80 : 60) + 28);
		expect_paced(&f);
		expect_idle();
		t = tx_get(1);
		assert_true(t.state == BL_TOP_ASKING && t.frames == 2 && t.syncs == 1 && t.tag &&
			    t.port == BL_BE16(flow_port(&s)));
		assert_int_equal(balanced(QUEUES), 2);
		assert_int_equal(queue_get(BL_HOLD_QUEUE(1, 1)).put, 2);
	}
}

static void flow__one_number_each(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct frame f;

	(void)state;
	hold_frame(1001, 1, false);
	hold_frame(1002, 1, false);
	hold_frame(1001, 2, false);
	hold_frame(1001, 1, true);
	d.dport = 54;
	build(&f, &d);
	run_hold(&f, BL_R_HELD);
	d = app_frame(3, 1001, false);
	build(&f, &d);
	run_hold(&f, BL_R_HELD);
	d.tos = 46 << 2; /* expedited: the same flow, but its first queue */
	build(&f, &d);
	run_hold(&f, BL_R_HELD);
	assert_int_equal(due_get().given, 5);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(1, 1)).put, 2);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(2, 1)).put, 1);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(3, 1)).put, 1);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(5, 1)).put, 1);
	assert_int_equal(queue_get(BL_HOLD_QUEUE(5, 0)).put, 1);
}

static void hold__full(void **state)
{
	struct frame f = hold_frame(1001, 1, false);

	(void)state;
	queue_limit(BL_HOLD_QUEUE(1, 1), 1, 1 << 20, 0);
	run_hold(&f, BL_R_HOLD_FULL);
	assert_int_equal(balanced(QUEUES), 1);
}

static void hold__no_more_numbers(void **state)
{
	struct bl_due d = due_get();
	struct desc a = app_frame(2, 1001, false);
	struct frame f;
	__u32 n = 77;

	(void)state;
	d.given = BL_NUMBERS;
	due_put(&d);
	build(&f, &a);
	run_hold(&f, BL_R_HOLD_DESTS);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(sk->maps.hold_free), NULL, &n, BPF_ANY),
			 0);
	run_hold(&f, BL_R_HELD);
	assert_int_equal(tx_get(77).frames, 1);
}

/*
 * The pacer has closed the flow's number and then lost its CPU: further frames enter the flow that
 * all share.
 */
static void hold__while_its_number_is_closed(void **state)
{
	struct frame f = hold_frame(1001, 1, false);
	struct bl_hold_dest d;
	__u32 n;

	(void)state;
	map_get(sk->maps.hold_macs, 1, &d);
	d.pins |= BL_DEST_CLOSED;
	map_put(sk->maps.hold_macs, 1, &d);
	run_hold(&f, BL_R_HELD);
	run_hold(&f, BL_R_HELD);
	for (n = 2; n < 8 && tx_get(n).key.proto != BL_TOP_SHARED; n++)
		;
	assert_true(tx_get(n).key.proto == BL_TOP_SHARED && tx_get(n).frames == 2 &&
		    !tx_get(n).key.sport);
	assert_int_equal(tx_get(1).frames, 1);
	d.pins = 0;
	map_put(sk->maps.hold_macs, 1, &d);
	run_hold(&f, BL_R_HELD);
	assert_int_equal(tx_get(1).frames, 2);
}

static void expect_sent_at_once(const struct frame *f)
{
	struct frame out;

	assert_int_equal(run_xdp(sk->progs.bl_hold_xdp, net.ifindex[1], f, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_HOLD, BL_R_NO_TOKEN }, { BL_HC_HOLD, BL_R_HELD }));
	expect_paced(f);
	expect_idle();
}

/* Builds a TCP segment with @payload bytes and 4 * @words bytes of header. */
static void build_tcp(struct frame *f, bool v6, __u32 words, __u32 payload)
{
	struct desc d = app_frame(2, 1001, v6);

	/* build() makes UDP frames with the 24 bytes of barline's header before the body */
	d.body = words * 4 + payload - 8 - 24;
	build(f, &d);
	f->p[v6 ? 20 : 23] = 6;
	f->p[v6 ? 66 : 46] = (__u8)(words << 4);
	if (!v6) {
		__u16 sum;

		f->p[24] = f->p[25] = 0;
		sum = fold(sum16(0, f->p + 14, 20));
		f->p[24] = (__u8)(sum >> 8);
		f->p[25] = (__u8)sum;
	}
}

static void control__goes_at_once(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct frame f;

	(void)state;
	build_tcp(&f, false, 8, 0);
	expect_sent_at_once(&f);
	build_tcp(&f, true, 11, 0);
	expect_sent_at_once(&f);
	build_tcp(&f, false, 8, 1);
	run_hold(&f, BL_R_HELD);
	build_tcp(&f, true, 11, 1);
	run_hold(&f, BL_R_HELD);
	raw_frame(&f, 1, 2, 100, 3);
	turn(sk->progs.bl_host_pace, &(struct frame){ 0 });
	turn(sk->progs.bl_host_pace, &(struct frame){ 0 });
	/* the SYNCs of the two flows */
	counts_moved(sk->maps.counts, counted, 2, WANT({ BL_HC_PACE, BL_R_PACED, 2 }));
	expect_sent_at_once(&f); /* not IP */
	d.tags = 1;
	build(&f, &d);
	expect_sent_at_once(&f);
	assert_int_equal(due_get().given, 2);
}

/* ---- tokens ---- */

static void token__becomes_the_held_frame(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct frame a, b, f;
		struct topd t;
		struct bl_top_tx x;

		top_setup(state);
		a = hold_frame(1001, 1, v6);
		b = hold_frame(1001, 2, v6);
		t = token_of(1001, 1, 1);
		build_top(&f, &t);
		add_echo(&a, 1, 1);
		expect_host_xdp(&f, &a, XDP_TX, BL_R_TOKEN_USED);
		t.seq = 0x01020304 % BL_TOP_AHEAD;
		build_top(&f, &t);
		add_echo(&b, 1, t.seq);
		expect_host_xdp(&f, &b, XDP_TX, BL_R_TOKEN_USED);
		x = tx_get(1);
		assert_true(x.state == BL_TOP_CREDITED && x.tokens == 2 && x.seq == t.seq &&
			    !x.wasted && !x.refused);
		assert_int_equal(balanced(QUEUES), 0);
	}
}

/* Frames from the shortest to the longest, with and without room for the echo. */
static void token__lengths(void **state)
{
	static const __u32 body[] = { 0,         1,         1440 - 24, 1502 - 66,
				      1503 - 66, 1506 - 66, 1507 - 66, 1522 - 66 };
	unsigned int i;

	for (i = 0; i < sizeof(body) / sizeof(body[0]); i++) {
		struct desc d = app_frame(2, 1001, false);
		struct frame a, f;
		struct topd t;

		top_setup(state);
		d.body = body[i];
		build(&a, &d);
		run_hold(&a, BL_R_HELD);
		t = token_of(1001, 1, 9);
		build_top(&f, &t);
		if (a.n + 12 <= BL_TOP_FRAME_MAX)
			add_echo(&a, 1, 9);
		expect_host_xdp(&f, &a, XDP_TX, BL_R_TOKEN_USED);
	}
}

static void token__expedited_first(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct frame a = hold_frame(1001, 1, false), b, f;
	struct topd t = token_of(1001, 1, 1);

	(void)state;
	d.tos = 46 << 2;
	build(&b, &d);
	run_hold(&b, BL_R_HELD);
	build_top(&f, &t);
	add_echo(&b, 1, 1);
	expect_host_xdp(&f, &b, XDP_TX, BL_R_TOKEN_USED);
	t.seq = 2;
	build_top(&f, &t);
	add_echo(&a, 1, 2);
	expect_host_xdp(&f, &a, XDP_TX, BL_R_TOKEN_USED);
}

static void token__wasted_becomes_a_stop(void **state)
{
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		struct frame a, f, want;
		struct topd t, stop;
		__u32 seq, sig = 0;

		top_setup(state);
		a = hold_frame(1001, 1, v6);
		t = token_of(1001, 1, 1);
		build_top(&f, &t);
		add_echo(&a, 1, 1);
		expect_host_xdp(&f, &a, XDP_TX, BL_R_TOKEN_USED);
		for (seq = 2; seq < 2 + 2 * BL_TOP_STOP_EACH; seq++) {
			t.seq = seq;
			build_top(&f, &t);
			if ((seq - 2) % BL_TOP_STOP_EACH) {
				expect_refused(&f, BL_R_TOKEN_WASTED);
				continue;
			}
			stop = (struct topd){ .v6 = v6,
					      .sender = 1,
					      .receiver = 2,
					      .sport = 1001,
					      .dport = 53,
					      .op = BL_TOP_STOP,
					      .bare = true,
					      .flow = 1,
					      .seq = ++sig,
					      .tag = t.tag,
					      .ts = bus_now };
			build_top(&want, &stop);
			expect_host_xdp(&f, &want, XDP_TX, BL_R_TOKEN_STOP);
		}
		assert_true(tx_get(1).wasted == 2 * BL_TOP_STOP_EACH && tx_get(1).stops == 2 &&
			    tx_get(1).tokens == 1 && tx_get(1).state == BL_TOP_IDLE);
		/* the next frame asks again with a SYNC */
		hold_frame(1001, 2, v6);
		stop = sync_of(1001, 1, ++sig, 1, v6);
		build_top(&want, &stop);
		expect_paced(&want);
	}
}

static void token__refusals(void **state)
{
	const struct {
		const char *what;
		__u32 tag_xor, cls, flow, seq;
		__s64 age;
		enum bl_reason why;
	} t[] = {
		{ "another tag", 1, 0, 1, 2, 0, BL_R_TOKEN_FORGED },
		{ "another tag, upper half", 0x80000000, 0, 1, 2, 0, BL_R_TOKEN_FORGED },
		{ "class 6", 0, 6, 1, 2, 0, BL_R_TOKEN_CLASS },
		{ "class 255", 0, 255, 1, 2, 0, BL_R_TOKEN_CLASS },
		{ "flow 0", 0, 0, 0, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "flow 2", 0, 0, 2, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "flow 255", 0, 0, 255, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "flow 256", 0, 0, 256, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "flow 65535", 0, 0, 65535, 2, 0, BL_R_TOKEN_UNKNOWN },
		{ "number 0", 0, 0, 1, 0, 0, BL_R_TOKEN_REPLAYED },
		{ "number 1 again", 0, 0, 1, 1, 0, BL_R_TOKEN_REPLAYED },
		{ "number far ahead", 0, 0, 1, 2 + BL_TOP_AHEAD, 0, BL_R_TOKEN_REPLAYED },
		{ "from the future", 0, 0, 1, 2, -2 * (__s64)BOUND - 1, BL_R_TOKEN_AHEAD },
		{ "too old", 0, 0, 1, 2, T_NS + 2 * BOUND + 1, BL_R_TOKEN_EXPIRED },
	};
	struct frame a = hold_frame(1001, 1, false), b = hold_frame(1001, 2, false), f;
	struct topd k = token_of(1001, 1, 1);
	unsigned int i;

	(void)state;
	build_top(&f, &k);
	add_echo(&a, 1, 1);
	expect_host_xdp(&f, &a, XDP_TX, BL_R_TOKEN_USED);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		doing = t[i].what;
		k = token_of(1001, 1, t[i].seq);
		k.tag ^= t[i].tag_xor;
		k.cls = (__u8)t[i].cls;
		k.flow = (__u16)t[i].flow;
		k.ts = bus_now - (__u64)t[i].age;
		build_top(&f, &k);
		expect_refused(&f, t[i].why);
		assert_int_equal(balanced(QUEUES), 1); /* the refused token changed nothing */
	}
	doing = "";
	k = token_of(1001, 1, 3);
	k.ts = bus_now - (T_NS + 2 * BOUND); /* the greatest age that is accepted */
	build_top(&f, &k);
	clock_void(sk->maps.clock);
	expect_refused(&f, BL_R_CLOCK_VOID);
	clock_at(sk->maps.clock, bus_now);
	add_echo(&b, 1, 3);
	expect_host_xdp(&f, &b, XDP_TX, BL_R_TOKEN_USED);
}

/*
 * A small frame from a socket cannot grow; the pacer then sends the answer. (The veth of Linux 6.1
 * gives every such frame a page of its own, so there the frame can grow.)
 */
static void token__that_cannot_grow(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	int fd = wire_sock(net.peer[0]), pass = bpf_program__fd(net.pass->progs.bl_pass), i;
	static struct bl_counts now[COUNT_KEYS_MAX];
	struct topd t;
	struct frame a, f;

	(void)state;
	d.body = 1300;
	build(&a, &d);
	run_hold(&a, BL_R_HELD);
	t = token_of(1001, 1, 1);
	build_top(&f, &t);
	assert_int_equal(bpf_xdp_attach((int)net.ifindex[0], bpf_program__fd(sk->progs.bl_host_xdp),
					XDP_FLAGS_DRV_MODE, NULL),
			 0);
	assert_int_equal(send(fd, f.p, f.n, 0), f.n);
	/* counting is the last action of the program */
	for (i = 0; i < 10000; i++) {
		counts_take(sk->maps.counts, now);
		if (now[BL_HC_INGRESS].n[BL_R_TOKEN_USED] +
			    now[BL_HC_INGRESS].n[BL_R_TOKEN_PACED] !=
		    counted[BL_HC_INGRESS].n[BL_R_TOKEN_USED] +
			    counted[BL_HC_INGRESS].n[BL_R_TOKEN_PACED])
			break;
		usleep(1000);
	}
	assert_int_equal(bpf_xdp_attach((int)net.ifindex[0], pass, XDP_FLAGS_DRV_MODE, NULL), 0);
	close(fd);
	ran_on(f.n);
	if (!tx_get(1).paced) {
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TOKEN_USED }));
		return;
	}
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_TOKEN_PACED }));
	assert_int_equal(balanced(QUEUES), 1);
	add_echo(&a, 1, 1);
	expect_paced(&a);
	assert_int_equal(balanced(QUEUES), 0);
}

/*
 * A queue entry whose length is wrong: neither the token's frame nor the pacer's can become the
 * answer.
 */
static void token__answer_that_fits_no_frame(void **state)
{
	struct bl_queue q;
	struct topd t;
	struct frame f, out;
	__u32 key = BL_HOLD_QUEUE(1, 1);

	(void)state;
	hold_frame(1001, 1, false);
	q = queue_get(key);
	q.ring[0] = BL_RING_ENTRY(BL_RING_SLOT(q.ring[0]), 1600);
	q.bytes = 1600;
	map_put(sk->maps.queues, key, &q);
	t = token_of(1001, 1, 1);
	build_top(&f, &t);
	expect_refused(&f, BL_R_TOKEN_PACED);
	assert_int_equal(tx_get(1).paced, 1);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_REDIRECT_FAILED }));
	assert_int_equal(balanced(QUEUES), 0);
}

/* ---- hints, unscheduled frames, ends of flows ---- */

static void set_hint(__u16 sport, __u32 seq, __u64 bytes)
{
	struct bl_top_key k = { .sport = BL_BE16(sport), .dport = BL_BE16(53), .proto = 17 };
	struct bl_top_hint h = { .seq = seq, .bytes = bytes, .deadline_us = 900, .coflow = 42 };

	host_addr(k.saddr, false, 1);
	host_addr(k.daddr, false, 2);
	h.key = k;
	map_put(sk->maps.top_hints, bl_top_hint_hash(&k), &h);
}

static void hint__in_the_sync(void **state)
{
	struct topd s;
	struct frame f;

	(void)state;
	top.rules[0] = (struct bl_top_rule){
		.port = 53, .proto = 17, .bytes = 777, .deadline_us = 5, .coflow = 6
	};
	set_top();
	set_hint(1001, 2, 123456789);
	/* an odd seq: the hint is being written, so the rule applies instead */
	set_hint(1002, 3, 123456789);
	hold_frame(1001, 1, false);
	s = sync_of(1001, 1, 1, 1, false);
	s.bytes = 123456789;
	s.deadline = 900;
	s.coflow = 42;
	build_top(&f, &s);
	expect_paced(&f);
	hold_frame(1002, 1, false);
	s = sync_of(1002, 2, 1, 1, false);
	s.bytes = 777;
	s.deadline = 5;
	s.coflow = 6;
	build_top(&f, &s);
	expect_paced(&f);
	top.rules[0].port = 54;
	set_top();
	hold_frame(1003, 1, false);
	s = sync_of(1003, 3, 1, 1, false);
	build_top(&f, &s);
	expect_paced(&f);
}

/* Sends @f through bl_host_hint, as a socket with SO_PRIORITY @priority sends it into bl0. */
static void run_with_priority(const struct frame *f, __u32 priority)
{
	struct __sk_buff ctx = { .priority = priority };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->p, .data_size_in = f->n, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);

	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_host_hint), &o), 0);
	assert_int_equal(o.retval, 0); /* the frame continues */
}

static void priority__says_a_class(void **state)
{
	static const struct {
		__u32 priority;
		__u64 bytes;
	} t[] = { { 0, 0 },
		  { 1, BL_TOP_SAYS_CLASS + 5 },
		  { 2, BL_TOP_SAYS_CLASS + 4 },
		  { 5, BL_TOP_SAYS_CLASS + 1 },
		  { 6, BL_TOP_SAYS_CLASS },
		  { 7, 0 } };
	unsigned int i;
	struct desc d;
	struct frame f, want;
	struct topd s;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		top_setup(state);
		d = app_frame(2, 1001, i & 1);
		build(&f, &d);
		run_with_priority(&f, t[i].priority);
		run_hold(&f, BL_R_HELD);
		s = sync_of(1001, 1, 1, 1, i & 1);
		s.bytes = t[i].bytes;
		build_top(&want, &s);
		expect_paced(&want);
	}
	/*
	 * a hint of the application takes precedence; under another policy the priority is not read
	 */
	top_setup(state);
	set_hint(1001, 2, 777);
	d = app_frame(2, 1001, false);
	build(&f, &d);
	run_with_priority(&f, 6);
	run_hold(&f, BL_R_HELD);
	assert_int_equal(tx_get(1).bytes, 777);
	set_policy(BL_POLICY_NONE);
	d = app_frame(2, 1002, false);
	build(&f, &d);
	run_with_priority(&f, 6);
	set_policy(BL_POLICY_TOP);
	run_hold(&f, BL_R_HELD);
	assert_int_equal(tx_get(2).bytes, 0);
}

static void unscheduled__follow_the_sync(void **state)
{
	struct frame a, b, f;
	struct topd s;

	(void)state;
	top.unscheduled = 1;
	set_top();
	set_hint(1001, 2, 2000);
	a = hold_frame(1001, 1, false);
	b = hold_frame(1001, 2, false);
	s = sync_of(1001, 1, 1, 2, false);
	s.bytes = 2000;
	s.deadline = 900;
	s.coflow = 42;
	s.unsched = 1;
	build_top(&f, &s);
	expect_paced(&f);
	add_echo(&a, 1, 0);
	a.p[6] |= BL_TOP_UNSCHED_MAC0;
	expect_paced(&a);
	expect_idle();
	assert_int_equal(balanced(QUEUES), 1);
	s = token_of(1001, 1, 1);
	build_top(&f, &s);
	add_echo(&b, 1, 1);
	expect_host_xdp(&f, &b, XDP_TX, BL_R_TOKEN_USED);
	assert_true(tx_get(1).unscheduled == 1 && tx_get(1).tokens == 1);
}

static void flow__ends_and_its_number_goes_on(void **state)
{
	struct frame a = hold_frame(1001, 1, false), f;
	struct topd s = token_of(1001, 1, 1), fin;
	struct bl_due d;
	__u32 tag = tx_get(1).tag;

	(void)state;
	build_top(&f, &s);
	expect_host_xdp(&f, (add_echo(&a, 1, 1), &a), XDP_TX, BL_R_TOKEN_USED);
	top.idle_ns = 0;
	set_top();
	fin = (struct topd){ .sender = 1,
			     .receiver = 2,
			     .sport = 1001,
			     .dport = 53,
			     .op = BL_TOP_FIN,
			     .flow = 1,
			     .seq = 1,
			     .tag = tag,
			     .bytes = a.n - 12,
			     .ts = bus_now };
	build_top(&f, &fin);
	expect_paced(&f);
	d = due_get();
	assert_int_equal(d.at[1], BL_DUE_NEVER);
	assert_true(tx_get(1).state == BL_TOP_FREE && top_page_get().freed == 1);
	s.seq = 2;
	s.tag = tag;
	build_top(&f, &s);
	expect_refused(&f, BL_R_TOKEN_UNKNOWN);
	top.idle_ns = HOUR_NS;
	set_top();
	hold_frame(1009, 1, false);
	assert_int_equal(due_get().given, 1);
	assert_true(tx_get(1).state == BL_TOP_ASKING && tx_get(1).tag != tag &&
		    tx_get(1).key.sport == BL_BE16(1009));
	s = sync_of(1009, 1, 1, 1, false);
	build_top(&f, &s);
	expect_paced(&f);
}

static void policy__changed_with_frames_held(void **state)
{
	struct frame a = hold_frame(1001, 1, false), b = hold_frame(1001, 2, false), f;
	struct topd s = sync_of(1001, 1, 1, 2, false), t = token_of(1001, 1, 1);
	struct bl_due d;

	(void)state;
	build_top(&f, &s);
	expect_paced(&f);
	set_policy(BL_POLICY_NONE);
	d = due_get();
	d.at[1] = d.next = 0;
	due_put(&d);
	expect_paced(&a);
	expect_paced(&b);
	expect_idle();
	assert_int_equal(balanced(QUEUES), 0);
	assert_int_equal(tx_get(1).state, BL_TOP_FREE); /* the number is free for other flows */
	build_top(&f, &t);
	/* under policy none, TOP frames are not handled here */
	expect_host_xdp(&f, &f, XDP_REDIRECT, BL_R_TO_APP);
	set_policy(BL_POLICY_TOP);
	expect_refused(&f, BL_R_TOKEN_UNKNOWN);
}

static void policy__what_another_one_held_goes_at_once(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct bl_due due;
	struct frame f;

	(void)state;
	set_policy(BL_POLICY_NONE);
	build(&f, &d);
	run_hold(&f, BL_R_HELD);
	set_policy(BL_POLICY_TOP);
	due = due_get();
	assert_int_equal(due.given, 1);
	expect_paced(&f);
	expect_idle();
	hold_frame(1001, 1, false);
	assert_int_equal(due_get().given, 2);
}

/* Sets the policy in the switch's last beacon to @said. */
static void set_switch_policy(__u32 said)
{
	struct bl_host_page page;

	map_get(sk->maps.host_page, 0, &page);
	page.life.policy = said;
	map_put(sk->maps.host_page, 0, &page);
}

/*
 * Beside a switch without TOP, frames leave as under policy none, including those that wait for
 * tokens. When the switch announces TOP, flows ask for tokens again.
 */
static void apart__switch_without_top(void **state)
{
	struct desc d = app_frame(2, 1001, false);
	struct topd s;
	struct frame f, a;
	struct bl_due due;

	(void)state;
	set_switch_policy(BL_POLICY_NONE + 1);
	build(&f, &d);
	run_hold(&f, BL_R_HELD);
	expect_paced(&f);
	expect_idle();
	set_switch_policy(BL_POLICY_TOP + 1);
	a = hold_frame(1002, 1, false);
	s = sync_of(1002, 2, 1, 1, false);
	build_top(&f, &s);
	expect_paced(&f);
	set_switch_policy(BL_POLICY_PL2 + 1);
	due = due_get();
	due.at[2] = due.next = 0;
	due_put(&due);
	expect_paced(&a);
	expect_idle();
	assert_int_equal(balanced(QUEUES), 0);
	assert_int_equal(tx_get(2).state, BL_TOP_FREE);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_TOP, BY_TOP | BY_TOP_RX | BY_HOLD | BY_HPACE | BY_HOST);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup(t, top_setup)
	const struct CMUnitTest tests[] = {
		CASE(sync__byte_exact),
		CASE(flow__one_number_each),
		CASE(hold__full),
		CASE(hold__no_more_numbers),
		CASE(hold__while_its_number_is_closed),
		CASE(control__goes_at_once),
		CASE(token__becomes_the_held_frame),
		CASE(token__lengths),
		CASE(token__expedited_first),
		CASE(token__wasted_becomes_a_stop),
		CASE(token__refusals),
		CASE(token__that_cannot_grow),
		CASE(token__answer_that_fits_no_frame),
		CASE(hint__in_the_sync),
		CASE(priority__says_a_class),
		CASE(unscheduled__follow_the_sync),
		CASE(flow__ends_and_its_number_goes_on),
		CASE(policy__changed_with_frames_held),
		CASE(policy__what_another_one_held_goes_at_once),
		CASE(apart__switch_without_top),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests_name("top", tests, net_up, NULL);
}
