// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP at a switch that forwards by its table: what bl_switch_xdp does with tokens and signals, and
 * what bl_port_pace does with those that wait. Ports 1 and 2 are metered, 0 and 3 are not.
 * Forwarding by Linux's routes is tested in test_switch_l3.c, the arithmetic in
 * tests/unit/core/top/test_top_token_core.c and test_top_token_model.c.
 */
#include "tests/prog/switch/switch_util.h"
#include "tests/prog/pace_util.h"
#include "tests/prog/switch/top_token_util.h"

#define TOKEN_SLOTS 200
#define QUEUES      BL_PORT_QUEUE(NPORTS, 0)

static struct bl_token_cfg top;

static void set_top(void)
{
	map_put(sk->maps.token_cfg, 0, &top);
}

static int drop_mode_setup(void **state)
{
	struct bl_meter m = { .ns_q20 = 0 }; /* metered without a rate: as fast as the pacer goes */
	__u64 none = 0;
	__u32 i;

	switch_setup(state);
	pace_setup(sk->maps.port_due, TOKEN_SLOTS, QUEUES);
	for (i = 0; i < NPORTS; i++) {
		struct bpf_devmap_val v = { .ifindex = net.ifindex[i] };

		map_put(sk->maps.port_busy, i, &none);
		map_put(sk->maps.sw_meters, i, &m);
		map_put(sk->maps.port_tx, i, &v);
		ports[i].metered = i == 1 || i == 2;
		map_put(sk->maps.sw_ports, i, &ports[i]);
	}
	cfg.admission = 1;
	set_cfg();
	top = (struct bl_token_cfg){ .on = 1, .mode = BL_TOKEN_DROP, .frames = 8, .expiry = 8 };
	token_setup(&top);
	return 0;
}

static int pace_mode_setup(void **state)
{
	drop_mode_setup(state);
	top.mode = BL_TOKEN_PACE;
	top.expiry = 64; /* 0.4 s, because an emulated machine is slow */
	set_top();
	return 0;
}

/*
 * Runs the frame @f, which arrives on port @in: it must end with @verdict, unchanged, and be
 * counted for @why.
 */
static void expect_input(__u32 in, const struct frame *f, int verdict, enum bl_reason why)
{
	struct frame out;

	run_on(in, f, &out, verdict);
	same_frame(&out, f);
	counts_moved(sk->maps.counts, counted, 1, WANT({ in, why }));
}

static void expect_token_input(__u32 in, __u32 to, __u8 cls, int verdict, enum bl_reason why)
{
	struct top_desc t = token_of(in, to, false, cls);
	struct frame f;

	build_top(&f, &t);
	expect_input(in, &f, verdict, why);
}

/* The pacer's next frame must be @want, for port @port. */
static void expect_paced(__u32 port, const struct frame *want)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_port_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ port, BL_R_PACED }));
	same_frame(&out, want);
}

static void expect_paced_token(__u32 port, __u32 from, __u8 cls)
{
	struct top_desc t = token_of(from, port, false, cls);
	struct frame f;

	build_top(&f, &t);
	expect_paced(port, &f);
}

static void expect_idle_turn(void)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_port_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
}

/* Sets the backlog of tokens on an output to @halves half token times. */
static void set_backlog(__u32 port, __u32 halves)
{
	struct bl_token_port p = token_port(port);

	p.out_q20 = (mono_now() << 20) + halves * bl_token_unit(SLOW) / 2;
	map_put(sk->maps.token_ports, port, &p);
}

/*
 * Makes the pacer's time for @port due now: the pacer stored that time before the test changed the
 * port's state.
 */
static void make_turn_due(__u32 port)
{
	struct bl_due d = due_get();

	d.at[port] = d.next = 0;
	map_put(pace_due, 0, &d);
}

/* Removes the token rate of @port, so that any number of tokens may arrive there. */
static void lift_input_limit(__u32 port)
{
	struct bl_token_port p = token_port(port);

	p.ns_q20 = 0;
	map_put(sk->maps.token_ports, port, &p);
}

static struct bl_queue token_queue(__u32 port, __u32 cls)
{
	return queue_get(BL_PORT_QUEUE(port, BL_CL_TOKEN0 + cls));
}

/* ---- mode drop ---- */

static void drop__passed_as_it_came(void **state)
{
	__u64 began, word;
	__u32 v;
	__u8 cls;

	(void)state;
	for (v = 0; v < 4; v++)
		for (cls = 0; cls < BL_TOP_CLASSES; cls++) {
			struct top_desc t = token_of(0, 3, v & 1, cls);
			struct frame f;

			t.d.tags = v >> 1;
			build_top(&f, &t);
			assert_int_equal(f.n, (v & 1 ? 80 : 60) + 4 * t.d.tags);
			set_backlog(3, 0);
			lift_input_limit(0);
			began = mono_now();
			expect_input(0, &f, XDP_REDIRECT, BL_R_TOKEN_PASSED);
			assert_int_equal(token_counts(3).passed[cls], v + 1);
			/* The token's length is charged, in either family. */
			word = token_port(3).out_q20 - bl_token_cost(SLOW, f.n);
			assert_true(word - (began << 20) <= (mono_now() - began) << 20);
		}
	assert_int_equal(token_counts(0).passed[0], 0);
}

static enum bl_reason expected_reason(__u64 halves, __u32 cls)
{
	return halves > 2ULL * top.expiry  ? BL_R_TOKEN_EXPIRED
	       : halves > 2ULL * (7 - cls) ? BL_R_TOKEN_LIMIT
					   : BL_R_TOKEN_PASSED;
}

/*
 * Tokens half a token time before each class's limit and half a token time beyond it; likewise for
 * the expiry where that is less than the limit.
 */
static void drop__limits(void **state)
{
	__u32 expiry, halves, sure = 0, rows = 0;
	struct frame f, out;
	__u8 cls;

	(void)state;
	lift_input_limit(0);
	for (expiry = 2; expiry <= 8; expiry += 6) {
		top.expiry = expiry;
		set_top();
		for (cls = 0; cls < BL_TOP_CLASSES; cls++)
			for (halves = 1; halves < 19; halves += 2) {
				struct top_desc t = token_of(0, 3, false, cls);
				struct bl_token_counts was = token_counts(3), now;
				__u64 began, took, word;
				enum bl_reason why;
				int verdict;

				build_top(&f, &t);
				began = mono_now();
				set_backlog(3, halves);
				word = token_port(3).out_q20;
				verdict =
					run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &f, &out);
				took = mono_now() - began;
				now = token_counts(3);
				why = now.passed[cls] > was.passed[cls] ? BL_R_TOKEN_PASSED
				      : now.limit[cls] > was.limit[cls] ? BL_R_TOKEN_LIMIT
									: BL_R_TOKEN_EXPIRED;
				counts_moved(sk->maps.counts, counted, 1, WANT({ 0, why }));
				same_frame(&out, &f);
				assert_int_equal(
					now.passed[cls] + now.limit[cls] + now.expired[cls],
					was.passed[cls] + was.limit[cls] + was.expired[cls] + 1);
				assert_int_equal(verdict, why == BL_R_TOKEN_PASSED ? XDP_REDIRECT
										   : XDP_DROP);
				assert_int_equal(token_port(3).out_q20 != word,
						 why == BL_R_TOKEN_PASSED);
				/*
				 * A slow machine (an emulated one) that takes half a token time for
				 * one frame sees a smaller backlog.
				 */
				if (took < SLOW_NS / 2) {
					assert_int_equal(why, expected_reason(halves, cls));
					sure++;
				}
				rows++;
			}
	}
	print_message("%u of %u rows in time\n", sure, rows);
	assert_int_equal(token_counts(3).lost, 0);
}

/*
 * A burst of each class: the tokens that pass are as many as the class's limit allows, plus those
 * that the group's rate allows while the test runs.
 */
static void drop__burst(void **state)
{
	struct frame f, out;
	__u64 began, n;
	__u8 cls;

	(void)state;
	lift_input_limit(0);
	for (cls = 0; cls < BL_TOP_CLASSES; cls++) {
		struct top_desc t = token_of(0, 3, false, cls);

		build_top(&f, &t);
		set_backlog(3, 0);
		began = mono_now();
		for (n = 0;
		     run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &f, &out) == XDP_REDIRECT;
		     n++)
			;
		assert_true(n >= 8u - cls && n <= 8 - cls + (mono_now() - began) / SLOW_NS + 1);
		assert_int_equal(token_counts(3).passed[cls], n);
		assert_int_equal(token_counts(3).limit[cls], 1);
	}
	counts_take(sk->maps.counts, counted);
}

/*
 * On a metered port the limit is applied before tokens enter the port's queues; the pacer takes
 * them best class first and applies no further limit.
 */
static void drop__metered(void **state)
{
	struct frame data;
	int c;

	(void)state;
	raw_frame(&data, 0, 1, 100, 1);
	expect_input(0, &data, XDP_DROP, BL_R_QUEUED);
	for (c = BL_TOP_CLASSES - 1; c >= 0; c--) {
		expect_token_input(0, 1, (__u8)c, XDP_DROP, BL_R_QUEUED);
		assert_int_equal(token_queue(1, (__u32)c).put, 1);
		assert_int_equal(token_counts(1).passed[c], 1);
	}
	for (c = 0; c < BL_TOP_CLASSES; c++)
		expect_paced_token(1, 0, (__u8)c);
	expect_paced(1, &data);
	expect_idle_turn();
	assert_int_equal(token_counts(1).passed[0], 1);
	assert_int_equal(balanced(QUEUES), 0);
}

/* ---- frames at the input ---- */

static void in__refused(void **state)
{
	static const struct {
		__u8 opcode, cls;
		__u16 udp_len;
		__u32 cut;
		enum bl_reason why;
	} t[] = {
		{ 0x11, 6, 0, 0, BL_R_TOKEN_CLASS },
		{ 0x11, 255, 0, 0, BL_R_TOKEN_CLASS },
		{ 0x11, 0, 0, 1, BL_R_SHORT },
		{ 0x11, 0, 0, 4, BL_R_SHORT },
		{ 0x11, 0, 25, 0, BL_R_BAD_LENGTH },
		{ 0x11, 0, 27, 0, BL_R_BAD_LENGTH },
		{ 0x11, 0, 0xffff, 0, BL_R_BAD_LENGTH },
		{ 0x01, 0, 0, 0, BL_R_BAD_VERSION },
		{ 0x21, 0, 0, 0, BL_R_BAD_VERSION },
		{ 0x10, 0, 0, 0, BL_R_BAD_OPCODE },
		{ 0x10 | BL_TOP_OPCODE_LIMIT, 0, 0, 0, BL_R_BAD_OPCODE },
		{ 0x1f, 0, 0, 0, BL_R_BAD_OPCODE },
		{ 0x12, 0, 25, 0, BL_R_BAD_LENGTH },
	};
	__u32 v, bad = 0;
	size_t i;

	(void)state;
	for (v = 0; v < 2; v++)
		for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
			struct top_desc d = token_of(0, 3, v, t[i].cls);
			struct frame f;

			d.d.tags = 1; /* so that a frame that is cut short still has 60 bytes */
			d.opcode = t[i].opcode;
			d.udp_len = t[i].udp_len;
			build_top(&f, &d);
			f.n -= t[i].cut;
			refuse_frame(0, &f, t[i].why);
			bad += t[i].why == BL_R_TOKEN_CLASS;
			assert_int_equal(token_counts(0).bad, bad);
		}
	/* None of the refused frames used any budget. */
	assert_int_equal(token_port(0).in_q20, 0);
	assert_int_equal(token_port(0).signal_q20, 0);
	assert_int_equal(token_port(3).out_q20, 0);
	assert_int_equal(token_counts(0).signals, 0);
}

/*
 * Frames of other policies, to other UDP ports and of other protocols are treated like any other
 * data.
 */
static void in__not_top(void **state)
{
	struct top_desc t = token_of(0, 3, false, 9);
	struct frame f;

	(void)state;
	t.d.dport = BL_TOP_PORT - 1;
	t.d.sport = BL_TOP_PORT;
	build_top(&f, &t);
	expect_input(0, &f, XDP_REDIRECT, BL_R_PASSED_ON);
	t.d.dport = BL_TOP_PORT;
	build_top(&f, &t);
	f.p[14 + 9] = 6; /* TCP */
	expect_input(0, &f, XDP_REDIRECT, BL_R_PASSED_ON);
	build_top(&f, &t);
	f.p[14] = 0x46; /* with IP options the UDP ports are elsewhere */
	expect_input(0, &f, XDP_REDIRECT, BL_R_PASSED_ON);
	build_top(&f, &t);
	f.p[14 + 6] = 0x20; /* a fragment */
	expect_input(0, &f, XDP_REDIRECT, BL_R_PASSED_ON);
	top.on = 0;
	set_top();
	build_top(&f, &t);
	expect_input(0, &f, XDP_REDIRECT, BL_R_PASSED_ON);
	expect_token_input(0, 1, 9, XDP_DROP, BL_R_QUEUED);
	assert_int_equal(queue_get(BL_PORT_QUEUE(1, BL_CL_DATA)).put, 1);
}

static void in__signals_before_all(void **state)
{
	struct frame f, data;
	__u8 op, n = 0;

	(void)state;
	for (op = BL_TOP_SYNC; op < BL_TOP_OPCODE_LIMIT; op++) {
		struct top_desc t = token_of(0, 1, op & 1, 0);

		t.opcode = BL_TOP_OPCODE_BYTE(op);
		t.cls = 200; /* Signals have no class; the byte is ignored. */
		t.body = 24;
		t.d.tags = op >> 1 & 1;
		build_top(&f, &t);
		raw_frame(&data, 0, 1, 100, 1);
		expect_input(0, &data, XDP_DROP, BL_R_QUEUED);
		expect_input(0, &f, XDP_DROP, BL_R_QUEUED);
		expect_paced(1, &f);
		expect_paced(1, &data);
		host_mac(f.p, 3);
		expect_input(0, &f, XDP_REDIRECT, BL_R_PASSED_ON);
		n += 2;
		assert_int_equal(token_counts(0).signals, n);
	}
	assert_int_equal(token_port(0).in_q20, 0);
}

/*
 * A host that sends more tokens or signals than its link may bring is stopped at the input,
 * whatever the output and class. Other inputs are not affected.
 */
static void in__flood(void **state)
{
	static const __u8 ops[] = { BL_TOP_TOKEN, BL_TOP_SYNC, BL_TOP_FIN };
	struct frame f, out;
	__u64 began, n, want, passed[sizeof(ops)];
	size_t i;

	(void)state;
	lift_input_limit(3); /* An output without a rate has no limit either. */
	for (i = 0; i < sizeof(ops); i++) {
		struct top_desc t = token_of(0, 3, false, 0);

		t.opcode = BL_TOP_OPCODE_BYTE(ops[i]);
		want = ops[i] == BL_TOP_TOKEN ? BL_TOKEN_INPUT : BL_SIGNAL_INPUT;
		began = mono_now();
		for (n = 0;; n++) {
			t.cls = ops[i] == BL_TOP_TOKEN ? n % BL_TOP_CLASSES : 0;
			build_top(&f, &t);
			if (run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &f, &out) !=
			    XDP_REDIRECT)
				break;
		}
		same_frame(&out, &f);
		passed[i] = n;
		if (ops[i] == BL_TOP_FIN) { /* All signals share one budget, which SYNC used up. */
			assert_true(n <= (mono_now() - began) / SLOW_NS + 1);
		} else {
			assert_true(n >= want && n <= want + (mono_now() - began) / SLOW_NS + 1);
		}
		assert_int_equal(token_counts(0).flood, 1);
		assert_int_equal(token_counts(0).signal_flood, i);
	}
	n = passed[1] + passed[2];
	assert_int_equal(token_counts(0).signals, n); /* those that were let in */
	counts_moved(sk->maps.counts, counted, passed[0] + n + 3,
		     WANT({ 0, BL_R_TOKEN_PASSED, passed[0] }, { 0, BL_R_PASSED_ON, n },
			  { 0, BL_R_TOKEN_FLOOD, 3 }));
	expect_token_input(1, 3, 0, XDP_REDIRECT, BL_R_TOKEN_PASSED);
}

/* ---- mode pace ---- */

/*
 * Two tokens leave at once, best class first. The next one waits until the group's rate allows it,
 * but data that arrives meanwhile does not wait for that.
 */
static void pace__strict_and_limited(void **state)
{
	struct frame data, sync;
	struct top_desc t = token_of(0, 1, false, 0);
	int c;

	(void)state;
	lift_input_limit(0);
	t.opcode = BL_TOP_OPCODE_BYTE(BL_TOP_STOP);
	build_top(&sync, &t);
	raw_frame(&data, 0, 1, 100, 1);
	for (c = BL_TOP_CLASSES - 1; c >= 0; c--)
		expect_token_input(0, 1, (__u8)c, XDP_DROP, BL_R_QUEUED);
	assert_int_equal(token_counts(1).passed[0], 0); /* not counted yet: they wait */
	expect_paced_token(1, 0, 0);
	expect_paced_token(1, 0, 1);
	set_backlog(1, 200); /* 0.6 s, so that the test has time for the following steps */
	make_turn_due(1);
	expect_idle_turn();
	assert_true(due_get().at[1] > mono_now());
	assert_int_equal(due_get().next, due_get().at[1]);
	/*
	 * The pacer's time for this port is that of the next token. Other frames that arrive make
	 * it earlier.
	 */
	expect_input(0, &data, XDP_DROP, BL_R_QUEUED);
	assert_true(due_get().at[1] <= mono_now());
	expect_input(0, &sync, XDP_DROP, BL_R_QUEUED);
	expect_paced(1, &sync);
	expect_paced(1, &data);
	expect_idle_turn();
	set_backlog(1, 0);
	make_turn_due(1);
	expect_paced_token(1, 0, 2);
	set_backlog(1, 200);
	make_turn_due(1);
	expect_idle_turn();
	assert_int_equal(token_counts(1).passed[0], 1);
	assert_int_equal(token_counts(1).passed[1], 1);
	assert_int_equal(token_counts(1).passed[2], 1);
	assert_int_equal(token_counts(1).passed[3], 0);
	assert_int_equal(balanced(QUEUES), 3);
}

static void pace__limit_of_a_class(void **state)
{
	__u32 frames, i;

	(void)state;
	lift_input_limit(0);
	for (frames = 1; frames <= 8; frames += 7) {
		top.frames = frames;
		set_top();
		for (i = 0; i < frames; i++)
			expect_token_input(0, 2, 4, XDP_DROP, BL_R_QUEUED);
		expect_token_input(0, 2, 4, XDP_DROP, BL_R_TOKEN_LIMIT);
		/* Each class has its own limit. */
		expect_token_input(0, 2, 5, XDP_DROP, BL_R_QUEUED);
		assert_int_equal(token_counts(2).limit[4], frames == 1 ? 1 : 2);
		pace_setup(sk->maps.port_due, TOKEN_SLOTS, QUEUES);
		map_put(sk->maps.port_busy, 2, (__u64[]){ 0 });
	}
	/* An unmetered port holds no tokens: they pass or are dropped at once, as in mode drop. */
	expect_token_input(0, 3, 4, XDP_REDIRECT, BL_R_TOKEN_PASSED);
}

/*
 * Tokens that waited too long are dropped, by the pacer and by a token that finds the queue full of
 * them; each is counted once.
 */
static void pace__expired(void **state)
{
	struct frame out, data;
	__u32 len;
	int i;

	(void)state;
	/*
	 * The expiry is 64: the new token has 0.4 s to be sent, on a machine that is slow and busy.
	 */
	lift_input_limit(0);
	set_backlog(1, 200); /* No token may leave at once. */
	for (i = 0; i < 8; i++)
		expect_token_input(0, 1, 3, XDP_DROP, BL_R_QUEUED);
	expect_token_input(0, 1, 5, XDP_DROP, BL_R_QUEUED);
	raw_frame(&data, 0, 1, 100, 1);
	usleep((useconds_t)(64 * SLOW_NS / 1000 + 20000));
	{
		struct top_desc t = token_of(0, 1, false, 3);
		struct frame f;

		build_top(&f, &t);
		len = f.n;
		run_on(0, &f, &out, XDP_DROP);
		counts_moved(sk->maps.counts, counted, 9,
			     WANT({ 0, BL_R_QUEUED }, { 1, BL_R_TOKEN_EXPIRED, 8 }));
	}
	assert_int_equal(token_counts(1).expired[3], 8);
	assert_int_equal(balanced(QUEUES), 2);
	/* The new token is sent; the old one of class 5 is dropped when its turn comes. */
	set_backlog(1, 0);
	expect_paced_token(1, 0, 3);
	assert_int_equal(turn(sk->progs.bl_port_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_TOKEN_EXPIRED, 1, len }));
	assert_int_equal(token_counts(1).expired[5], 1);
	assert_int_equal(token_counts(1).passed[5], 0);
	expect_idle_turn();
	assert_int_equal(balanced(QUEUES), 0);
	assert_int_equal(due_get().at[1], BL_DUE_NEVER);
}

static void pace__data_first(void **state)
{
	/* The backlogs of tokens and of data in half token times, and the frame that must leave. */
	static const struct {
		__u32 tokens, data;
		int cls; /* -1: data */
	} t[] = { { 0, 0, -1 },  { 0, 1, -1 },     { 0, 100, 0 },
		  { 1, 100, 1 }, { 100, 100, -1 }, { 100, 0, -1 } };
	struct bl_token_port p;
	struct frame data, token, out;
	__u64 since;
	int verdict;
	size_t i;
	__u8 cls;

	(void)state;
	top.data_first = 1;
	set_top();
	lift_input_limit(0);
	raw_frame(&data, 0, 1, 1514, 1);
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct top_desc d = token_of(0, 1, false, t[i].cls < 0 ? 0 : (__u8)t[i].cls);

		build_top(&token, &d);
		/*
		 * Each row starts with empty queues, and once more if the machine stood still
		 * meanwhile: the tokens would grow old and the backlogs would be gone.
		 */
		do {
			pace_setup(sk->maps.port_due, TOKEN_SLOTS, QUEUES);
			map_put(sk->maps.port_busy, 1, (__u64[]){ 0 });
			since = mono_now();
			for (cls = 0; cls < 2; cls++)
				expect_token_input(0, 1, t[i].cls == 1 ? 1 + cls : cls, XDP_DROP,
						   BL_R_QUEUED);
			expect_input(0, &data, XDP_DROP, BL_R_QUEUED);
			set_backlog(1, t[i].tokens);
			p = token_port(1);
			p.data_q20 = (mono_now() << 20) + t[i].data * bl_token_unit(SLOW) / 2;
			map_put(sk->maps.token_ports, 1, &p);
			verdict = turn(sk->progs.bl_port_pace, &out);
			if (mono_now() - since < 20 * SLOW_NS)
				break;
			counts_take(sk->maps.counts, counted);
		} while (1);
		assert_int_equal(verdict, XDP_REDIRECT);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_PACED }));
		same_frame(&out, t[i].cls < 0 ? &data : &token);
		assert_int_equal(token_port(1).data_q20 != p.data_q20, t[i].cls < 0);
	}
}

/* ---- unscheduled frames ---- */

static void unsched__one_full_frame(void **state)
{
	struct frame f, want, out, data;

	(void)state;
	top.unscheduled = 1;
	set_top();
	raw_frame(&data, 0, 1, 500, 9);
	raw_frame(&f, 0, 1, 1514, 1);
	want = f;
	f.p[6] |= BL_EARLY_MAC0;
	run_on(0, &f, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_QUEUED }));
	run_on(0, &f, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_QUEUE_FULL }));
	assert_int_equal(queue_get(BL_PORT_QUEUE(1, BL_CL_UNSCHED)).put, 1);
	/*
	 * Unscheduled frames leave after all others. The last switch clears the bit that marks
	 * them.
	 */
	expect_input(0, &data, XDP_DROP, BL_R_QUEUED);
	expect_paced(1, &data);
	expect_paced(1, &want);
	/* On the way up to another switch the bit stays set. */
	host_mac(f.p, UPLINK);
	run_on(0, &f, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_QUEUED }));
	expect_paced(UPLINK, &f);
	/* A port without a meter sends unscheduled frames as they arrive. */
	host_mac(f.p, 3);
	want = f;
	want.p[6] &= ~BL_EARLY_MAC0;
	run_on(0, &f, &out, XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_PASSED_ON }));
	same_frame(&out, &want);
}

/*
 * The queue of unscheduled frames holds one full frame, which is BL_QUEUE_FRAME_MAX bytes: in one
 * frame or in several, exactly as many, and not one byte more.
 */
static void unsched__exactly_one_full_frame(void **state)
{
	static const struct {
		__u32 first, second;
		bool fits;
	} t[] = {
		{ BL_QUEUE_FRAME_MAX - 60, 60, true }, { BL_QUEUE_FRAME_MAX - 60, 61, false },
		{ BL_QUEUE_FRAME_MAX - 61, 60, true }, { 61, BL_QUEUE_FRAME_MAX - 60, false },
		{ BL_QUEUE_FRAME_MAX, 60, false },
	};
	struct frame f, out;
	size_t i;

	(void)state;
	top.unscheduled = 1;
	set_top();
	/* The MTU leaves room for two tags, so that the longest frame may pass. */
	ports[1].mtu = BL_QUEUE_FRAME_MAX - 14;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		pace_setup(sk->maps.port_due, TOKEN_SLOTS, QUEUES);
		map_put(sk->maps.port_busy, 1, (__u64[]){ 0 });
		raw_frame(&f, 0, 1, t[i].first, 1);
		f.p[6] |= BL_EARLY_MAC0;
		run_on(0, &f, &out, XDP_DROP);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_QUEUED }));
		raw_frame(&f, 0, 1, t[i].second, 1);
		f.p[6] |= BL_EARLY_MAC0;
		run_on(0, &f, &out, XDP_DROP);
		counts_moved(sk->maps.counts, counted, 1,
			     WANT({ 0, t[i].fits ? BL_R_QUEUED : BL_R_QUEUE_FULL }));
		assert_int_equal(queue_get(BL_PORT_QUEUE(1, BL_CL_UNSCHED)).put, t[i].fits ? 2 : 1);
	}
}

static void unsched__only_where_it_is_meant(void **state)
{
	struct bl_token_port p;
	struct frame f;

	(void)state;
	raw_frame(&f, 0, 1, 200, 1);
	f.p[6] |= BL_EARLY_MAC0;
	/* Unscheduled frames are turned off: the bit has no meaning. */
	expect_input(0, &f, XDP_DROP, BL_R_QUEUED);
	expect_paced(1, &f);
	/* On a port that leads out of the rack, any address may have the bit set. */
	top.unscheduled = 1;
	set_top();
	p = token_port(0);
	p.outside = 1;
	map_put(sk->maps.token_ports, 0, &p);
	expect_input(0, &f, XDP_DROP, BL_R_QUEUED);
	expect_paced(1, &f);
	assert_int_equal(queue_get(BL_PORT_QUEUE(1, BL_CL_DATA)).put, 2);
	assert_int_equal(queue_get(BL_PORT_QUEUE(1, BL_CL_UNSCHED)).put, 0);
	/* Tokens with the bit set stay in the queues of their classes. */
	p.outside = 0;
	map_put(sk->maps.token_ports, 0, &p);
	{
		struct top_desc t = token_of(0, 1, false, 2);

		t.d.src[0] |= BL_EARLY_MAC0;
		build_top(&f, &t);
		expect_input(0, &f, XDP_DROP, BL_R_QUEUED);
		assert_int_equal(token_queue(1, 2).put, 1);
	}
}

/* What became of the frames of all rounds. */
struct ends {
	__u64 x, in, queued, refused, gone, expired;
};

static void random_round(struct ends *e)
{
	__u64 x = e->x, life, in = 0, queued = 0, refused = 0, gone = 0, expired = 0, sum = 0;
	struct bl_counts c[COUNT_KEYS_MAX];
	struct frame f, out;
	__u32 i, k, cls;

	lift_input_limit(0);
	/*
	 * The life of a token, measured in the time that this machine takes for one frame: 100
	 * frames on port 1, so that its queues fill, and 10 frames on port 2, so that tokens grow
	 * old.
	 */
	build_top(&f, (struct top_desc[]){ token_of(0, 3, false, 0) });
	life = mono_now();
	for (i = 0; i < 16; i++)
		run_xdp(sk->progs.bl_switch_xdp, net.ifindex[0], &f, &out);
	counts_take(sk->maps.counts, counted);
	life = (mono_now() - life) / 16;
	top.frames = 4;
	top.expiry = 1;
	set_top();
	for (k = 1; k <= 2; k++) {
		struct bl_token_port p = token_port(k);
		__u64 q20 = (life * (k == 1 ? 100 : 10) << 20) / BL_TOKEN_BOTH;

		p.ns_q20 = q20 < 1 << 20 ? 1 << 20 : q20 < SLOW ? (__u32)q20 : SLOW;
		map_put(sk->maps.token_ports, k, &p);
	}
	for (i = 0; i < 4000; i++) {
		__u32 r;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		r = (__u32)(x >> 20);
		if (r % 10 < 6) {
			struct top_desc t = token_of(0, 1 + (r >> 8 & 1), r >> 9 & 1,
						     (__u8)((r >> 10) % BL_TOP_CLASSES));

			if (!((r >> 14) % 8))
				t.opcode = BL_TOP_OPCODE_BYTE(BL_TOP_SYNC);
			build_top(&f, &t);
			if (!((r >> 17) % 8))
				raw_frame(&f, 0, 1 + (r >> 8 & 1), 60 + (r >> 20) % 1000, r);
			run_on(0, &f, &out, XDP_DROP);
			in++;
		} else {
			gone += turn(sk->progs.bl_port_pace, &out) == XDP_REDIRECT;
		}
		if (!(i & 31))
			balanced(QUEUES);
	}
	for (i = 0; i < 1000000 && (i % 64 || balanced(QUEUES)); i++)
		gone += turn(sk->progs.bl_port_pace, &out) == XDP_REDIRECT;
	assert_int_equal(balanced(QUEUES), 0);
	memcpy(c, counted, sizeof(c));
	counts_take(sk->maps.counts, counted);
	for (k = 0; k < NPORTS; k++) {
		queued += counted[k].n[BL_R_QUEUED] - c[k].n[BL_R_QUEUED];
		refused += counted[k].n[BL_R_TOKEN_LIMIT] - c[k].n[BL_R_TOKEN_LIMIT];
		expired += counted[k].n[BL_R_TOKEN_EXPIRED] - c[k].n[BL_R_TOKEN_EXPIRED];
		for (cls = 0; cls < BL_TOP_CLASSES; cls++)
			sum += token_counts(k).expired[cls];
	}
	assert_int_equal(in, queued + refused);
	assert_int_equal(queued, gone + expired);
	e->x = x;
	e->in += in;
	e->queued += queued;
	e->refused += refused;
	e->gone += gone;
	e->expired += expired;
	assert_int_equal(e->expired, sum);
}

/*
 * Random tokens of all classes, data and signals for two ports, more than fit, mixed with turns of
 * the pacer and with times at which tokens grow old: each frame has exactly one end, and no slot is
 * lost. If a pause of the machine makes the life of tokens longer or shorter than intended, there
 * is another round.
 */
static void property__nothing_is_lost(void **state)
{
	struct ends e = { .x = mono_now() | 1 };
	int round;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)e.x);
	for (round = 0; round < 50 && !(e.refused > 20 && e.expired > 20 && e.gone > 400); round++)
		random_round(&e);
	print_message("%llu refused, %llu expired, %llu sent, %d rounds\n", e.refused, e.expired,
		      e.gone, round);
	assert_true(e.refused > 20 && e.expired > 20 && e.gone > 400);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_TOKEN, BY_TOKEN | BY_PORT | BY_SW);
}

#define DROP(f) cmocka_unit_test_setup(f, drop_mode_setup)
#define PACE(f) cmocka_unit_test_setup(f, pace_mode_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DROP(drop__passed_as_it_came),
		DROP(drop__limits),
		DROP(drop__burst),
		DROP(drop__metered),
		DROP(in__refused),
		DROP(in__not_top),
		DROP(in__signals_before_all),
		DROP(in__flood),
		PACE(pace__strict_and_limited),
		PACE(pace__limit_of_a_class),
		PACE(pace__expired),
		PACE(pace__data_first),
		DROP(unsched__one_full_frame),
		DROP(unsched__exactly_one_full_frame),
		DROP(unsched__only_where_it_is_meant),
		PACE(property__nothing_is_lost),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
