// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Metered ports: what bl_switch_xdp puts into their queues, and what bl_port_pace sends from them.
 * Ports 1 and 2 are metered, 0 and 3 are not. Frames that are not barline's are forwarded while
 * admission is on; forwarding by Linux's routes is tested in test_switch_l3.c, and the relayed
 * beacons that the device map's program queues in test_devmap.c.
 */
#include "tests/prog/switch/switch_util.h"
#include "tests/prog/pace_util.h"

#define PORT_SLOTS 600
#define QUEUES     BL_PORT_QUEUE(NPORTS, 0)
#define DATA(port) BL_PORT_QUEUE(port, BL_CL_DATA)

static void set_meter(__u32 port, __u32 ns_q20)
{
	struct bl_meter m = { .ns_q20 = ns_q20 };
	struct bpf_devmap_val v = { .ifindex = net.ifindex[port] };

	map_put(sk->maps.sw_meters, port, &m);
	map_put(sk->maps.port_tx, port, &v);
	ports[port].metered = 1;
	map_put(sk->maps.sw_ports, port, &ports[port]);
}

static int port_setup(void **state)
{
	__u64 none = 0;
	__u32 i;

	switch_setup(state);
	pace_setup(sk->maps.port_due, PORT_SLOTS, QUEUES);
	for (i = 0; i < NPORTS; i++)
		map_put(sk->maps.port_busy, i, &none);
	cfg.admission = 1;
	set_cfg();
	set_meter(1, 0); /* no rate: as fast as the pacer goes */
	set_meter(2, 0);
	return 0;
}

/* The pacer's next frame must be @want, for port @port. */
static void expect_paced(__u32 port, const struct frame *want)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_port_pace, &out), XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ port, BL_R_PACED }));
	same_frame(&out, want);
}

static void expect_idle_turn(void)
{
	struct frame out;

	assert_int_equal(turn(sk->progs.bl_port_pace, &out), XDP_DROP);
	assert_int_equal(out.n, BL_PACE_FRAME);
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
}

static __u64 busy_of(__u32 port)
{
	__u64 b;

	map_get(sk->maps.port_busy, port, &b);
	return b;
}

static __u64 carried_on(__u32 port)
{
	struct bl_carried c;

	map_get(sk->maps.sw_carried, port, &c);
	return c.lane[0].b;
}

/* A frame that is not barline's arrives on port @in and must be queued on port @out. */
static void queue_plain(__u32 in, const struct frame *f, __u32 out, enum bl_class cls)
{
	struct frame after_it;
	__u32 n = queue_get(BL_PORT_QUEUE(out, cls)).put;

	run_on(in, f, &after_it, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ in, BL_R_QUEUED }));
	assert_int_equal(queue_get(BL_PORT_QUEUE(out, cls)).put, n + 1);
}

/* ---- ordered frames ---- */

/*
 * Barriers are written before the frame is queued. Both families, tagged or not, with and without a
 * UDP checksum.
 */
static void ordered__queued_as_sent(void **state)
{
	const __u64 b = T0 - 1000;
	__u32 v;

	(void)state;
	all_live(b);
	for (v = 0; v < 8; v++) {
		struct desc d = v & 1 ? data_frame6(0, 1, T0, T0) : data_frame(0, 1, T0, T0);
		struct desc s = sent(d, b, b);
		struct frame in, out, want;
		struct bl_due due;

		d.tags = s.tags = v >> 1 & 1;
		d.csum = s.csum = v >> 2;
		build(&in, &d);
		build(&want, &s);
		run_on(0, &in, &out, XDP_DROP);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_QUEUED }));
		assert_int_equal(balanced(QUEUES), 1);
		assert_int_equal(bl_ring_len((struct bl_queue[]){ queue_get(DATA(1)) }), 1);
		assert_int_equal(busy_of(1), 1 << BL_CL_DATA);
		assert_int_equal(carried_on(1), b);
		due = due_get();
		assert_int_equal(due.next, due.at[1]);
		assert_true(due.next <= mono_now());
		expect_paced(1, &want);
		assert_int_equal(busy_of(1), 0);
		assert_int_equal(balanced(QUEUES), 0);
		due = due_get();
		assert_int_equal(due.next, BL_DUE_NEVER);
		assert_int_equal(due.at[1], BL_DUE_NEVER);
		expect_idle_turn();
	}
	/* Port 3 is not metered: it sends at once. */
	{
		struct desc d = data_frame(0, 3, T0, T0);

		step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
		     WANT({ 0, BL_R_FORWARDED }));
	}
	state_take(&after);
	expect_trees(&after);
}

/*
 * A frame that finds no room is not counted as carried, but its barriers have raised the input's
 * register.
 */
static void ordered__queue_full(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0);
	struct frame in, out;

	(void)state;
	all_live(T0 - 1000);
	build(&in, &d);
	queue_limit(DATA(1), 0, 1 << 20, 0);
	run_on(0, &in, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_QUEUE_FULL }));
	state_take(&after);
	expect_trees(&after);
	assert_int_equal(after.regs[0].lane[0].b, T0);
	assert_int_equal(after.carried[1].lane[0].b, 0);
	assert_int_equal(balanced(QUEUES), 0);
	queue_limit(DATA(1), 1, 1 << 20, 0);
	pace_setup(sk->maps.port_due, 0, QUEUES);
	run_on(0, &in, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_NO_SLOT }));
	expect_idle_turn();
}

/* ---- frames that are not barline's ---- */

static void plain__by_table(void **state)
{
	static const struct {
		__u32 in, out;
		int v6, tags;
	} t[] = { { 0, 1, 0, 0 }, { 0, 1, 1, 0 }, { 0, 2, 0, 1 }, { 3, 2, 1, 1 }, { 1, 2, 0, 0 } };
	struct frame f, out;
	struct desc d;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		d = plain_frame(t[i].in, t[i].out, t[i].v6);
		d.tags = (__u8)t[i].tags;
		build(&f, &d);
		queue_plain(t[i].in, &f, t[i].out, BL_CL_DATA);
		expect_paced(t[i].out, &f);
		/* A port that is not metered sends the frame at once, unchanged. */
		host_mac(d.dst, 3 - (t[i].in == 3) * 3);
		build(&f, &d);
		run_on(t[i].in, &f, &out, XDP_REDIRECT);
		same_frame(&out, &f);
		counts_moved(sk->maps.counts, counted, 1, WANT({ t[i].in, BL_R_PASSED_ON }));
	}
	raw_frame(&f, 0, 1, 60, 1);
	queue_plain(0, &f, 1, BL_CL_DATA);
	expect_paced(1, &f);
	d = data_frame(0, 1, T0, T0);
	odd_arp(&f, &d);
	queue_plain(0, &f, 1, BL_CL_CONTROL);
	expect_paced(1, &f);
	d = plain_frame(0, 1, true);
	build(&f, &d);
	f.p[14 + 6] = 58;
	f.p[14 + 40] = 136;
	queue_plain(0, &f, 1, BL_CL_CONTROL);
	expect_paced(1, &f);
	expect_idle_turn();
	assert_int_equal(balanced(QUEUES), 0);
	state_take(&after);
	for (i = 0; i < NPORTS; i++)
		assert_int_equal(after.carried[i].lane[0].b, 0);
}

static void expect_to_kernel(__u32 in, const struct frame *f)
{
	struct frame out;

	run_on(in, f, &out, XDP_PASS);
	same_frame(&out, f);
	counts_moved(sk->maps.counts, counted, 1, WANT({ in, BL_R_NOT_OURS }));
}

static void plain__left_to_the_kernel(void **state)
{
	struct frame f;

	(void)state;
	raw_frame(&f, 0, 1, 60, 1);
	memset(f.p, 0xff, 6);
	expect_to_kernel(0, &f);
	raw_frame(&f, 0, 77, 60, 1);
	expect_to_kernel(0, &f);
	raw_frame(&f, 0, 0, 60, 1); /* would leave by the port that it came from */
	expect_to_kernel(0, &f);
	memset(f.p, 0, 6);
	expect_to_kernel(0, &f);
	raw_frame(&f, 0, 1, 60, 1);
	cfg.admission = 0;
	set_cfg();
	expect_to_kernel(0, &f);
	assert_int_equal(balanced(QUEUES), 0);
}

static void plain__refused(void **state)
{
	struct frame f;
	__u32 key = 3;

	(void)state;
	raw_frame(&f, 0, 3, MTU + 14 + 4, 1);
	run_on(0, &f, (struct frame[]){ { .n = 0 } }, XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_PASSED_ON }));
	raw_frame(&f, 0, 3, MTU + 14 + 5, 1);
	refuse_frame(0, &f, BL_R_TOO_BIG);
	ports[1].mtu = 3000;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	raw_frame(&f, 0, 1, BL_QUEUE_FRAME_MAX, 1);
	queue_plain(0, &f, 1, BL_CL_DATA);
	raw_frame(&f, 0, 1, BL_QUEUE_FRAME_MAX + 1, 1);
	refuse_frame(0, &f, BL_R_FRAME_SIZE);
	raw_frame(&f, 0, 1, 100, 1);
	queue_limit(DATA(1), 2, BL_QUEUE_FRAME_MAX + 100, 0);
	queue_plain(0, &f, 1, BL_CL_DATA);
	refuse_frame(0, &f, BL_R_QUEUE_FULL);
	raw_frame(&f, 0, 3, 100, 1);
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.sw_tx), &key), 0);
	refuse_frame(0, &f, BL_R_REDIRECT_FAILED);
	ports[3].ifindex = 0;
	map_put(sk->maps.sw_ports, 3, &ports[3]);
	refuse_frame(0, &f, BL_R_UNKNOWN_PORT);
	assert_int_equal(balanced(QUEUES), 2);
}

static void plain__ecn(void **state)
{
	int v;

	(void)state;
	for (v = 0; v < 2; v++) {
		struct desc d = plain_frame(0, 1, v), ce;
		struct frame f, want, out;

		d.tos = 2;
		ce = d;
		ce.tos = 3;
		build(&f, &d);
		build(&want, &ce);
		queue_limit(DATA(1), BL_RING, 1 << 20, f.n - 1);
		queue_plain(0, &f, 1, BL_CL_DATA);
		run_on(0, &f, &out, XDP_DROP);
		counts_moved(sk->maps.counts, counted, 1,
			     WANT({ 0, BL_R_QUEUED }, { 1, BL_R_ECN_MARKED }));
		expect_paced(1, &f);
		expect_paced(1, &want);
	}
}

/* ---- the pacer's turn ---- */

/*
 * Two frames in each of the nine classes, worst class first. They come out best class first, and in
 * the order of arrival within a class.
 */
static void pace__strict_priority(void **state)
{
	struct frame f;
	int c, k;

	(void)state;
	for (c = BL_CL_COUNT - 1; c >= 0; c--) {
		for (k = 0; k < 2; k++) {
			raw_frame(&f, 0, 1, 60 + 2 * (__u32)c + (__u32)k, 3);
			queue_plain(0, &f, 1, BL_CL_DATA);
			if (c != BL_CL_DATA) {
				/*
				 * This test's frames are all of class DATA; those of other classes
				 * are moved by hand.
				 */
				struct bl_queue from = queue_get(DATA(1)),
						to = queue_get(BL_PORT_QUEUE(1, c));
				__u64 busy = busy_of(1) | 1u << c;

				from.tail--;
				from.bytes -= f.n;
				to.ring[to.tail++ & (BL_RING - 1)] =
					from.ring[from.tail & (BL_RING - 1)];
				to.bytes += f.n;
				map_put(sk->maps.queues, DATA(1), &from);
				map_put(sk->maps.queues, BL_PORT_QUEUE(1, c), &to);
				if (from.tail == from.head)
					busy &= ~(1u << BL_CL_DATA);
				map_put(sk->maps.port_busy, 1, &busy);
			}
		}
	}
	assert_int_equal(busy_of(1), (1 << BL_CL_COUNT) - 1);
	for (c = 0; c < BL_CL_COUNT; c++) {
		for (k = 0; k < 2; k++) {
			raw_frame(&f, 0, 1, 60 + 2 * (__u32)c + (__u32)k, 3);
			expect_paced(1, &f);
		}
		assert_int_equal(busy_of(1), ((1u << BL_CL_COUNT) - 1) & ~((2u << c) - 1));
	}
	expect_idle_turn();
	assert_int_equal(balanced(QUEUES), 0);
}

/* A bit of a class without a frame costs one turn and has no other effect. */
static void pace__bit_without_frame(void **state)
{
	__u64 busy = 1 << BL_CL_TOKEN0;
	struct frame f;

	(void)state;
	raw_frame(&f, 0, 1, 99, 3);
	queue_plain(0, &f, 1, BL_CL_DATA);
	busy |= busy_of(1);
	map_put(sk->maps.port_busy, 1, &busy);
	expect_idle_turn();
	assert_int_equal(busy_of(1), 1 << BL_CL_DATA);
	expect_paced(1, &f);
	expect_idle_turn();
	/* The same for the due time of a port without any frame. */
	{
		struct bl_due d = due_get();

		d.next = d.at[2] = 5;
		due_put(&d);
	}
	expect_idle_turn();
	assert_int_equal(due_get().next, BL_DUE_NEVER);
	assert_int_equal(due_get().at[2], BL_DUE_NEVER);
}

/* Ports do not wait for each other, and none sends before its link is free. */
static void pace__each_port_its_rate(void **state)
{
	__u64 now = mono_now(), far = now + 1000000000000ULL;
	struct frame f, g;
	struct bl_due d;

	(void)state;
	set_meter(1, 8 << 20);
	set_meter(2, 8 << 20);
	raw_frame(&f, 0, 1, 1000, 3);
	raw_frame(&g, 0, 2, 500, 4);
	d = due_get();
	d.free[1] = far;
	due_put(&d);
	queue_plain(0, &f, 1, BL_CL_DATA);
	assert_int_equal(due_get().next, far); /* No turn is needed before that. */
	queue_plain(0, &g, 2, BL_CL_DATA);
	queue_plain(0, &g, 2, BL_CL_DATA);
	expect_paced(2, &g);
	d = due_get();
	assert_true(d.free[2] >= now + 500 * 8 - 2 * 12112 && d.free[2] <= mono_now() + 500 * 8);
	assert_int_equal(d.at[2], d.free[2]);
	assert_int_equal(d.next, d.free[2]);
	assert_int_equal(page_get().next_ns, d.free[2]);
	while (mono_now() <= d.free[2])
		;
	expect_paced(2, &g);
	expect_idle_turn();
	d = due_get();
	assert_int_equal(d.next, far);
	/* The port's turn comes, but its link is not free yet. */
	d.next = d.at[1] = 1;
	due_put(&d);
	expect_idle_turn();
	d = due_get();
	assert_int_equal(d.next, far);
	assert_int_equal(d.at[1], far);
	d.next = d.at[1] = d.free[1] = 1;
	due_put(&d);
	expect_paced(1, &f);
	d = due_get();
	assert_true(d.free[1] >= now + 8000 - 2 * 12112 && d.free[1] <= mono_now() + 8000);
	assert_int_equal(d.at[1], BL_DUE_NEVER);
	expect_idle_turn();
}

static void pace__bounded_catch_up(void **state)
{
	const __u64 frame_ns = 6200000;
	struct frame f, out;
	__u64 began;
	int i, n = 0;

	(void)state;
	set_meter(1, 0xffffffff); /* 6.2 ms per full frame */
	raw_frame(&f, 0, 1, 1514, 3);
	for (i = 0; i < 20; i++)
		queue_plain(0, &f, 1, BL_CL_DATA);
	usleep(60000);
	began = mono_now();
	for (i = 0; i < 20; i++)
		n += turn(sk->progs.bl_port_pace, &out) == XDP_REDIRECT;
	/* More frames become due if a slow machine takes longer for the turns. */
	assert_true(n >= 2 && (__u64)n <= 4 + (mono_now() - began) / frame_ns);
	counts_moved(sk->maps.counts, counted, (__u64)n, WANT({ 1, BL_R_PACED, (__u64)n }));
	assert_int_equal(balanced(QUEUES), 20 - n);
}

/*
 * The rate itself, over a fifth of a second: 2 Mbit/s in frames of 500 bytes is one frame in 2 ms,
 * 100 in all; at the very beginning 12 ms may be caught up. There are fewer only if the test stood
 * still for about as long as that.
 */
static void pace__rate(void **state)
{
	struct frame f, out;
	__u64 begin, n = 0, last, stood = 0;
	int i;

	(void)state;
	set_meter(1, 0);
	raw_frame(&f, 0, 1, 500, 3);
	for (i = 0; i < 200; i++)
		queue_plain(0, &f, 1, BL_CL_DATA);
	set_meter(1, 4000u << 20);
	begin = due_get().at[1];
	last = begin;
	do {
		__u64 now = mono_now();

		stood = bl_max64(stood, now - last);
		last = now;
		n += turn(sk->progs.bl_port_pace, &out) == XDP_REDIRECT;
	} while (last < begin + 200000000);
	assert_true(n <= 101 + (mono_now() - last) / 2000000);
	if (stood < 10000000)
		assert_true(n >= 95);
	counts_moved(sk->maps.counts, counted, n, WANT({ 1, BL_R_PACED, n }));
	assert_true(due_get().free[1] >= begin + n * 2000000);
	assert_int_equal(page_get().emitted, n);
	assert_int_equal(balanced(QUEUES), 200 - n);
}

static void pace__redirect_failed(void **state)
{
	struct frame f, out;
	struct bl_due d;
	__u32 key = 1;

	(void)state;
	raw_frame(&f, 0, 1, 100, 1);
	queue_plain(0, &f, 1, BL_CL_DATA);
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.port_tx), &key), 0);
	assert_int_equal(turn(sk->progs.bl_port_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 1, BL_R_REDIRECT_FAILED, 1, 100 }));
	assert_int_equal(page_get().failed, 1);
	assert_int_equal(balanced(QUEUES), 0);
	expect_idle_turn();
	/* A turn that finds no frame still stores when the next one may be due. */
	d = due_get();
	d.next = ~0ULL >> 1;
	due_put(&d);
	expect_idle_turn();
	assert_int_equal(page_get().next_ns, ~0ULL >> 1);
}

static void pace__histograms_and_bell(void **state)
{
	static struct bl_queue_hist h;
	static struct bl_slot slot;
	struct bl_pace_page p;
	struct bl_queue q;
	struct frame f;
	int i;

	(void)state;
	rung();
	raw_frame(&f, 0, 2, 128, 1);
	p = page_get();
	p.asleep = 1;
	map_put(sk->maps.pace_page, 0, &p);
	for (i = 0; i < 4; i++) {
		queue_plain(0, &f, 2, BL_CL_DATA);
		assert_int_equal(rung(), !i);
	}
	assert_int_equal(page_get().asleep, 0);
	q = queue_get(DATA(2));
	for (i = 0; i < 4; i++)
		expect_paced(2, &f);
	/*
	 * The slot is marked as sent, so that its waiting time is not counted again if the frame is
	 * sent again.
	 */
	map_get(sk->maps.slots, BL_RING_SLOT(q.ring[q.head & (BL_RING - 1)]), &slot);
	assert_int_equal(slot.queue, BL_SLOT_SENT);
	map_get(sk->maps.queue_hist, DATA(2), &h);
	for (i = 0; i < 8; i++)
		assert_int_equal(h.found.n[i], i % 2 == 0); /* 0, 128, 256, 384 bytes */
	assert_int_equal(hist_sum(&h.found), 4);
	assert_int_equal(hist_sum(&h.sojourn), 4);
	p = page_get();
	assert_int_equal(hist_sum(&p.late), 4);
}

/*
 * Random frames of two classes for two ports, more than fit, mixed with turns of the pacer: no
 * frame is lost uncounted, and each queue keeps its order.
 */
static void property__nothing_is_lost(void **state)
{
	enum { N = 6000 };
	static __u32 fifo[2][2][N];
	__u32 put[2][2] = { 0 }, taken[2][2] = { 0 }, seq = 0, gone = 0, lost = 0, i;
	__u64 x = mono_now() | 1;
	struct frame f, out;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)x);
	pace_setup(sk->maps.port_due, 50, QUEUES);
	queue_limit(DATA(1), 12, 20000, 0);
	queue_limit(BL_PORT_QUEUE(2, BL_CL_CONTROL), 5, 20000, 0);
	for (i = 0; i < N; i++) {
		__u32 r, to, control;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		r = (__u32)(x >> 20);
		to = 1 + r % 2;
		control = r >> 4 & 1;
		if ((r >> 10) % 10 < ((i >> 9) & 1 ? 3u : 7u)) {
			struct bl_queue q;

			raw_frame(&f, 0, to, 60 + (r >> 12) % 1400, r);
			if (control) {
				f.p[12] = 0x08;
				f.p[13] = 0x06;
			}
			memcpy(f.p + 20, &seq, 4);
			run_on(0, &f, &out, XDP_DROP);
			q = queue_get(BL_PORT_QUEUE(to, control ? BL_CL_CONTROL : BL_CL_DATA));
			if (q.put > put[to - 1][control])
				fifo[to - 1][control][put[to - 1][control]++] = seq;
			else
				lost++;
			seq++;
		} else if (turn(sk->progs.bl_port_pace, &out) == XDP_REDIRECT) {
			__u32 got;

			to = out.p[5];
			control = out.p[12] == 0x08;
			memcpy(&got, out.p + 20, 4);
			assert_true(taken[to - 1][control] < put[to - 1][control]);
			assert_int_equal(got, fifo[to - 1][control][taken[to - 1][control]++]);
			if (!control)
				assert_int_equal(taken[to - 1][1], put[to - 1][1]);
			gone++;
		}
		if (!(i & 15))
			balanced(QUEUES);
	}
	while (turn(sk->progs.bl_port_pace, &out) == XDP_REDIRECT)
		gone++;
	assert_int_equal(balanced(QUEUES), 0);
	assert_int_equal(gone + lost, seq);
	assert_true(lost > 100 && gone > 1000);
	assert_int_equal(page_get().emitted, gone);
	counts_take(sk->maps.counts, counted);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_PORT, BY_PORT | BY_SW);
}

#define CASE(f) cmocka_unit_test_setup(f, port_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ordered__queued_as_sent),
		CASE(ordered__queue_full),
		CASE(plain__by_table),
		CASE(plain__left_to_the_kernel),
		CASE(plain__refused),
		CASE(plain__ecn),
		CASE(pace__strict_priority),
		CASE(pace__bit_without_frame),
		CASE(pace__each_port_its_rate),
		CASE(pace__bounded_catch_up),
		CASE(pace__rate),
		CASE(pace__redirect_failed),
		CASE(pace__histograms_and_bell),
		CASE(property__nothing_is_lost),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
