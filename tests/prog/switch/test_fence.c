// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The controller's orders at a switch, from loader/order/fence.h down: bl_fence, and what
 * bl_switch_xdp's registers and frames are then. A lane here has a frame only when the test sends
 * one: so bl_fence_*() find it idle, and say what its registers will be; the next frame has to
 * agree.
 *
 * What a barred output's beacons carry is in test_devmap.c, a host's orders in test_host_xdp.c and
 * test_host_tc.c.
 */
#include "tests/prog/switch/switch_util.h"
#include "loader/order/fence.h"

#define C48(t) ((t) & ((1ULL << BL_TS_BITS) - 1))
#define OLD    (bus_now - BL_TS_OLD)

static struct bl_fence fence;

static int order_setup(void **state)
{
	struct bl_err err;

	switch_setup(state);
	if (!fence.role) {
		fence.role = BL_ROLE_SWITCH;
		bl_fence_none(&fence);
		if (bl_fence_open(&fence, sk->obj, &err))
			fail_msg("%s", err.text);
	}
	return 0;
}

static bool behind; /* what is looked at has still to pass what the outputs were given */

static void is_port(const struct bl_fence_port *p, __u32 port, __u32 death, bool in, bool held,
		    bool barred, __u64 c)
{
	const struct bl_fence_port want = { .port = port,
					    .neighbour = 0x1000 + port,
					    .death = death,
					    .role = port == UPLINK ? BL_PORT_UP : BL_PORT_HOST,
					    .in = in,
					    .held = held,
					    .barred = barred,
					    .c = c };

	if (p->port != want.port || p->neighbour != want.neighbour || p->death != want.death ||
	    p->role != want.role || p->in != in || p->behind != behind || p->held != held ||
	    p->barred != barred || p->c != c)
		fail_msg("%s: port %u: neighbour %x, death %u, role %u, in %d, behind %d, held %d, "
			 "barred %d, c %llx, want death %u, in %d, behind %d, held %d, barred %d, "
			 "c %llx",
			 doing, p->port, p->neighbour, p->death, p->role, p->in, p->behind, p->held,
			 p->barred, (unsigned long long)p->c, death, in, behind, held, barred, c);
}

static void stands(__u32 port, __u32 death, bool in, bool held, bool barred, __u64 c)
{
	struct bl_fence_port v[NPORTS];

	assert_int_equal(bl_fence_inputs(&fence, v, NPORTS), NPORTS);
	is_port(&v[port], port, death, in, held, barred, c);
}

/* A beacon from @port, and every tree is right. */
static void beacon(__u32 port, __u64 b, __u64 c)
{
	struct desc d = beacon_frame(port, b);
	struct frame in, out;

	d.c = c;
	build(&in, &d);
	run_xdp(sk->progs.bl_switch_xdp, net.ifindex[port], &in, &out);
	state_take(&after);
	trees_right(&after);
}

static void others(__u64 b)
{
	beacon(0, b, b);
	beacon(1, b, b);
	beacon(UPLINK, b, b);
}

/* What is looked at, of ports that were never heard, and of none. */
static void look__ports(void **state)
{
	struct bl_fence_port v[NPORTS];

	(void)state;
	assert_int_equal(bl_fence_inputs(&fence, v, NPORTS), NPORTS);
	assert_true(!v[1].neighbour && !v[1].death && v[1].role == BL_PORT_HOST && !v[1].in &&
		    !v[1].held && v[1].c == BL_FENCE_NO_C && v[UPLINK].role == BL_PORT_UP);
	assert_int_equal(bl_fence_inputs(&fence, v, 2), 2);
	assert_int_equal(bl_fence_inputs(&fence, v, 0), 0);
	all_live(T0 - 1000);
	stands(3, 0, true, false, false, C48(T0 - 1000));
	/* a slot that is not in use is not there */
	ports[1].ifindex = 0;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	assert_int_equal(bl_fence_inputs(&fence, v, NPORTS), NPORTS - 1);
	assert_int_equal(v[1].port, UPLINK);
	assert_int_equal(bl_fence_freeze(&fence, 1, 1, &v[0]), -ENOENT);
	assert_int_equal(bl_fence_freeze(&fence, 1, 256, &v[0]), -ENOENT);
	assert_int_equal(bl_fence_resume(&fence, 1, 1, 0), -ENOENT);
	assert_int_equal(bl_fence_resume(&fence, 1, 256, 0), -ENOENT);
}

static void neighbour__of_the_last_good_beacon(void **state)
{
	struct desc d = beacon_frame(3, T0 - 1000);

	(void)state;
	feed(0, T0 - 1000);
	counts_take(sk->maps.counts, counted);
	d.node = 77;
	d.tai = 36;
	refuse(3, &d, BL_R_TAI_MISMATCH);
	d.tai = 37;
	d.node = NODE_ID;
	refuse(3, &d, BL_R_LOOPED);
	assert_int_equal(after.lives[3].neighbour, 0);
	beacon(3, T0 - 1000, T0 - 1000);
	assert_int_equal(after.lives[3].neighbour, 0x1003);
	d.node = 78;
	counts_take(sk->maps.counts, counted);
	take_in(3, &d, WANT({ 3, BL_R_BEACON }));
	assert_int_equal(after.lives[3].neighbour, 78);
}

/*
 * A switch with new registers: C waits for every port that nobody was heard at, until it is, or is
 * said to be empty. B does not.
 */
static void awaited__until_heard_or_empty(void **state)
{
	struct bl_port_regs regs = {};
	struct bl_fence_port v[NPORTS];
	struct bl_pair none = { 0, 0 };
	struct bl_tree *t = malloc(sizeof(*t));
	__u64 bus = T0;
	__u32 p, s;

	(void)state;
	bl_port_await(&regs, BL_C_UNKNOWN);
	for (p = 0; p < NPORTS; p++)
		map_put(sk->maps.sw_regs, p, &regs);
	for (s = 0; s < 2; s++) {
		bl_tree_clear(t);
		for (p = 0; p < NPORTS; p++)
			if (ports[p].in_sets >> s & 1)
				bl_tree_set(t, cfg.tree_leaves, p, BL_LEAF_NONE, BL_C_UNKNOWN);
		map_put(sk->maps.sw_trees, BL_TREE_KEY(0, s), t);
	}
	free(t);
	beacon(0, bus - 1000, bus - 1000);
	beacon(1, bus - 900, bus - 900);
	assert_int_equal(after.lanes[0].out[0].b, bus - 1000);
	assert_true(after.lanes[0].out[0].c == none.c || after.lanes[0].out[0].c == BL_C_UNKNOWN);
	assert_int_equal(after.lanes[0].out[1].b, bus - 1000);
	assert_true(after.lanes[0].out[1].c <= BL_C_UNKNOWN);
	assert_int_equal(bl_fence_inputs(&fence, v, NPORTS), NPORTS);
	assert_true(!v[0].awaited && v[0].in && !v[1].awaited && v[2].awaited && !v[2].in &&
		    !v[2].held && v[3].awaited);
	/* the next is heard: one is left */
	beacon(3, bus - 800, bus - 800);
	beacon(0, bus - 700, bus - 700);
	assert_true(after.lanes[0].out[1].c <= BL_C_UNKNOWN);
	/* that of the up-link does not wait for the up-link */
	assert_int_equal(after.lanes[0].out[0].c, bus - 900);
	/* nobody is there */
	assert_int_equal(bl_fence_empty(&fence, 0, UPLINK), 0);
	beacon(1, bus - 600, bus - 600);
	assert_int_equal(after.lanes[0].out[1].c, bus - 800);
	assert_false(after.regs[UPLINK].lane[0].state & BL_REG_AWAITED);
	assert_int_equal(bl_fence_inputs(&fence, v, NPORTS), NPORTS);
	assert_false(v[UPLINK].awaited);
	/* and who comes there later joins as ever */
	beacon(UPLINK, bus - 500, bus - 500);
	assert_int_equal(after.regs[UPLINK].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(bl_fence_empty(&fence, 0, 200), -ENOENT);
}

static void freeze__stands_still_until_resume(void **state)
{
	const __u64 b = T0 - 5000;
	struct bl_fence_port p;

	(void)state;
	all_live(b);
	/* the lane has no frames: nothing has happened to its registers, and what will is said */
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	is_port(&p, 3, 1, true, true, false, C48(b));
	state_take(&after);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(after.lanes[0].limit_ns, 0);
	stands(3, 1, true, true, false, C48(b));
	stands(0, 0, true, false, false, C48(b));
	/* its own frame is the first that comes: too late */
	beacon(3, b + 100, b + 100);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[3].lane[0].b, b + 100);
	assert_int_equal(after.regs[3].lane[0].c, b);
	assert_int_equal(after.lives[3].death, 1);
	assert_int_equal(after.lanes[0].orders, 1);
	others(b + 100);
	assert_int_equal(after.lanes[0].out[1].b, b + 100); /* B goes on with it */
	assert_int_equal(after.lanes[0].out[1].c, b);
	stands(3, 1, true, true, false, C48(b));
	/* ordered again: the same */
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	is_port(&p, 3, 1, true, true, false, C48(b));
	beacon(3, b + 200, b + 200);
	stands(3, 1, true, true, false, C48(b));
	/* another death is not resumed, and nothing changes */
	state_take(&before);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 0), -ENOENT);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 2), -ENOENT);
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	stands(3, 1, true, false, false, C48(b)); /* where it stood, and free */
	others(b + 300);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(after.lanes[0].out[1].c, b); /* it has to say more first */
	beacon(3, b + 300, b + 300);
	assert_int_equal(after.lanes[0].out[1].c, b + 300);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0); /* a second time: nothing */
	beacon(3, b + 400, b + 400);
	stands(3, 1, true, false, false, C48(b + 400));
	/* the next one is another death */
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	is_port(&p, 3, 2, true, true, false, C48(b + 400));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), -ENOENT);
	beacon(3, b + 500, b + 500);
	stands(3, 2, true, true, false, C48(b + 400));
}

/* Orders one after the other, and no frame between them. */
static void freeze__and_resume_on_an_idle_lane(void **state)
{
	const __u64 b = T0 - 5000;
	struct bl_fence_port p;

	(void)state;
	all_live(b);
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	stands(3, 1, true, false, false, C48(b));
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	is_port(&p, 3, 2, true, true, false, C48(b));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), -ENOENT);
	assert_int_equal(bl_fence_freeze(&fence, 5, 1, &p), 0);
	beacon(0, b + 100, b + 100);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[1].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.lives[3].death, 2);
	assert_int_equal(after.lives[1].death, 1);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 2), 0);
	assert_int_equal(bl_fence_resume(&fence, 5, 1, 1), 0);
	others(b + 200);
	beacon(3, b + 200, b + 200);
	assert_int_equal(after.lanes[0].out[1].c, b + 200);
}

static void freeze__who_is_in_nobodys_minimum(void **state)
{
	struct bl_fence_port p;

	(void)state;
	feed(0, T0 - 1000);
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	assert_true(p.death == 1 && !p.in && !p.held && p.c == BL_FENCE_NO_C);
	beacon(0, T0 - 900, T0 - 900);
	assert_int_equal(after.lives[3].death, 1);
	/* an order of then does not stop it when it joins */
	beacon(3, T0 - 900, T0 - 900);
	stands(3, 1, true, false, false, C48(T0 - 900));
}

/* @n beacon intervals, in which all are heard but port 3. */
static void without_3(__u64 *bus, int n)
{
	while (n--) {
		*bus += BEACON_NS;
		clock_at(sk->maps.clock, *bus);
		others(*bus - 100);
	}
}

static void death__and_back(void **state)
{
	const __u64 b = T0 - 5000;
	__u64 bus = T0;

	(void)state;
	all_live(b);
	without_3(&bus, 13);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	stands(3, 1, true, true, false, C48(b));
	assert_int_equal(after.lanes[0].out[1].c, b);
	/* it wakes up: B waits for it, C stands where it was reported */
	beacon(3, bus - 50, bus - 50);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[3].lane[0].c, b);
	assert_int_equal(after.lanes[0].out[1].c, b);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	beacon(3, bus - 40, bus - 40);
	assert_int_equal(after.lanes[0].out[1].c, bus - 100);
	/* dies again, and is resumed as who is gone */
	without_3(&bus, 13);
	stands(3, 2, true, true, false, C48(T0 + 13 * BEACON_NS - 40));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 2), 0);
	stands(3, 2, false, false, false, BL_FENCE_NO_C);
	others(bus - 90);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_DEAD);
	assert_int_equal(after.lanes[0].out[1].c, bus - 90);
	/* and joins as any new input */
	beacon(3, bus - 200, bus - 200);
	behind = true;
	stands(3, 2, true, false, false, C48(bus - 200));
	assert_int_equal(after.lanes[0].out[1].c, bus - 90);
	beacon(3, bus - 91, bus - 91);
	stands(3, 2, true, false, false, C48(bus - 91));
	beacon(3, bus - 90, bus - 90);
	behind = false;
	stands(3, 2, true, false, false, C48(bus - 90));
	stands(0, 0, true, false, false, C48(bus - 90));
	/* and never again: what is given is what it has */
	beacon(3, bus - 50, bus - 50);
	stands(3, 2, true, false, false, C48(bus - 50));
	others(bus - 50);
	stands(3, 2, true, false, false, C48(bus - 50));
}

static void epoch__old_ones_are_refused(void **state)
{
	const __u32 three = 3;
	struct bl_fence_port p;
	struct bl_fence_arg a = { .epoch = 7, .kind = BL_FENCE_EMPTY + 1 };
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = &a, .ctx_size_in = sizeof(a));
	struct bl_fence_slot slot, none = { 0 };
	struct bl_epoch e;
	__u32 i;

	(void)state;
	all_live(T0 - 1000);
	assert_int_equal(bl_fence_epoch(&fence), 0);
	assert_int_equal(bl_fence_raise(&fence, 7), 0);
	assert_int_equal(bl_fence_epoch(&fence), 7);
	counts_take(sk->maps.counts, counted);
	state_take(&before);
	assert_int_equal(bl_fence_raise(&fence, 6), -ESTALE);
	assert_int_equal(bl_fence_freeze(&fence, 6, 3, &p), -ESTALE);
	assert_int_equal(bl_fence_freeze(&fence, 6, 77, &p), -ESTALE);
	assert_int_equal(bl_fence_bar(&fence, 6, &three, 1), -ESTALE);
	assert_int_equal(bl_fence_resume(&fence, 6, 3, 0), -ESTALE);
	counts_moved(sk->maps.counts, counted, 0, WANT({ BL_COUNTS_UNKNOWN, BL_R_EPOCH_OLD, 5 }));
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	for (i = 0; i < BL_SW_PORTS_MAX; i++) {
		map_get(sk->maps.sw_orders, i, &slot);
		assert_memory_equal(&slot, &none, sizeof(slot));
	}
	map_get(sk->maps.epoch, 0, &e);
	assert_true(e.epoch == 7 && !e.generation);
	stands(3, 0, true, false, false, C48(T0 - 1000));
	/* the same epoch, and any order of a higher one */
	assert_int_equal(bl_fence_raise(&fence, 7), 0);
	assert_int_equal(bl_fence_freeze(&fence, 8, 3, &p), 0);
	assert_int_equal(bl_fence_epoch(&fence), 8);
	assert_int_equal(bl_fence_bar(&fence, ~0ULL, &three, 1), 0);
	assert_int_equal(bl_fence_bar(&fence, ~0ULL - 1, &three, 1), -ESTALE);
	a.epoch = ~0ULL;
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_fence), &o), 0);
	assert_int_equal(a.result, -EINVAL);
}

static void bar__output_promises_no_c(void **state)
{
	const __u64 b = T0 - 1000;
	const __u32 barred[] = { 1, 255 };
	int v6, csum;

	(void)state;
	all_live(b);
	assert_int_equal(bl_fence_bar(&fence, 5, barred, 2), 0);
	stands(1, 0, true, false, true, C48(b)); /* what is in stays in */
	for (v6 = 0; v6 < 2; v6++)
		for (csum = 0; csum < 2; csum++) {
			struct desc d = v6 ? data_frame6(0, 1, T0, b) : data_frame(0, 1, T0, b);

			d.csum = csum;
			step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, OLD) },
			     WANT({ 0, BL_R_FORWARDED }));
			d = v6 ? data_frame6(0, 3, T0, b) : data_frame(0, 3, T0, b);
			d.csum = csum;
			step(0, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
			     WANT({ 0, BL_R_FORWARDED }));
		}
	/* exactly these */
	assert_int_equal(bl_fence_bar(&fence, 5, (__u32[]){ 3 }, 1), 0);
	step(0, (struct desc[]){ data_frame(0, 1, T0, b) }, XDP_REDIRECT,
	     (struct desc[]){ sent(data_frame(0, 1, T0, b), b, b) }, WANT({ 0, BL_R_FORWARDED }));
	step(0, (struct desc[]){ data_frame(0, 3, T0, b) }, XDP_REDIRECT,
	     (struct desc[]){ sent(data_frame(0, 3, T0, b), b, OLD) }, WANT({ 0, BL_R_FORWARDED }));
	assert_int_equal(bl_fence_bar(&fence, 5, NULL, 0), 0);
	step(0, (struct desc[]){ data_frame(0, 3, T0, b) }, XDP_REDIRECT,
	     (struct desc[]){ sent(data_frame(0, 3, T0, b), b, b) }, WANT({ 0, BL_R_FORWARDED }));
}

/* Every port of 256 has its bit. */
static void bar__each_port(void **state)
{
	struct bl_sw_port port;
	struct bl_fence_slot slot;
	__u32 p, k;

	(void)state;
	for (p = 0; p < BL_SW_PORTS_MAX; p += 17) {
		assert_int_equal(bl_fence_bar(&fence, 5, &p, 1), 0);
		for (k = 0; k < BL_SW_PORTS_MAX; k++) {
			map_get(sk->maps.sw_orders, k, &slot);
			map_get(sk->maps.sw_ports, k, &port);
			assert_int_equal(slot.barred, k == p);
			assert_int_equal(port.barred, k == p);
			assert_int_equal(port.role, ports[k].role);
			assert_int_equal(port.metered, 0);
		}
	}
}

static const __u32 three = 3;

/* All are live with barrier @b but port 3, which was not heard yet and is barred. */
static void barred_before_it_joins(__u64 b)
{
	feed(0, b - 4);
	feed(1, b - 4);
	feed(UPLINK, b - 4);
	others(b);
	assert_int_equal(bl_fence_bar(&fence, 5, &three, 1), 0);
}

static void bar__input_does_not_join(void **state)
{
	const __u64 b = T0 - 5000;
	struct bl_fence_port p;

	(void)state;
	barred_before_it_joins(b);
	beacon(3, b - 300, b - 300);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE); /* B waits for it, C does not */
	stands(3, 0, false, false, true, BL_FENCE_NO_C);
	others(b + 100);
	assert_true(after.lanes[0].out[1].b == b && after.lanes[0].out[1].c == b + 100);
	/* free: it joins before the next frame is looked at */
	assert_int_equal(bl_fence_bar(&fence, 5, NULL, 0), 0);
	behind = true;
	stands(3, 0, true, false, false, C48(b - 300));
	others(b + 200);
	assert_int_equal(after.lanes[0].out[1].c, b + 100);
	behind = false;
	beacon(3, b + 200, b + 200);
	assert_int_equal(after.lanes[0].out[1].c, b + 200);
	/* barred while it is in: it stays in until it is resumed from a death */
	assert_int_equal(bl_fence_bar(&fence, 5, &three, 1), 0);
	beacon(3, b + 250, b + 250);
	stands(3, 0, true, false, true, C48(b + 250));
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	is_port(&p, 3, 1, true, true, true, C48(b + 250));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	stands(3, 1, false, false, true, BL_FENCE_NO_C);
	beacon(3, b + 300, b + 300);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE);
	others(b + 400);
	assert_true(after.lanes[0].out[1].b == b + 300 && after.lanes[0].out[1].c == b + 400);
}

/*
 * From an input that C does not wait for, nothing passes that asks for a window or was sent because
 * there was one. All else does, and what is dropped has brought its barriers all the same.
 */
static void bar__what_c_waits_for_passes(void **state)
{
	static const __u8 ops[] = { BL_OP_DATA,   BL_OP_ACK,      BL_OP_OPEN, BL_OP_WINDOW,
				    BL_OP_RECALL, BL_OP_RECALLED, BL_OP_PREP };
	const __u64 b = T0 - 5000;
	struct bl_fence_port p;
	size_t i;
	int v6, barred;

	(void)state;
	barred_before_it_joins(b);
	beacon(3, b, b);
	counts_take(sk->maps.counts, counted);
	for (barred = 1; barred >= 0; barred--) {
		for (v6 = 0; v6 < 2; v6++)
			for (i = 0; i < sizeof(ops); i++) {
				struct desc d = v6 ? data_frame6(3, 1, T0, b)
						   : data_frame(3, 1, T0, b);

				d.op = ops[i];
				d.ts = bl_op_timed(d.op) ? T0 : 0;
				if (barred && (d.op == BL_OP_OPEN || d.op == BL_OP_PREP))
					step(3, &d, XDP_DROP, &d, WANT({ 3, BL_R_NOT_IN }));
				else
					step(3, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
					     WANT({ 3, BL_R_FORWARDED }));
			}
		assert_int_equal(bl_fence_bar(&fence, 5, NULL, 0), 0);
		stands(3, 0, true, false, false, C48(b));
	}
	/* frozen it is waited for still */
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	step(3, (struct desc[]){ data_frame(3, 1, T0, b + 50) }, XDP_REDIRECT,
	     (struct desc[]){ sent(data_frame(3, 1, T0, b + 50), b, b) },
	     WANT({ 3, BL_R_FORWARDED }));
	{
		struct desc d = data_frame(3, 1, T0, b + 60);

		d.op = BL_OP_PREP;
		step(3, &d, XDP_REDIRECT, (struct desc[]){ sent(d, b, b) },
		     WANT({ 3, BL_R_FORWARDED }));
	}
	/* and what is dropped has said what it promises */
	assert_int_equal(bl_fence_bar(&fence, 5, &three, 1), 0);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	{
		struct desc d = data_frame(3, 1, T0, b + 70);

		d.op = BL_OP_PREP;
		step(3, &d, XDP_DROP, &d, WANT({ 3, BL_R_NOT_IN }));
		assert_int_equal(after.regs[3].lane[0].b, b + 70);
	}
}

/* Each lane obeys for its own ports, and says so. */
static void lanes__each_its_own(void **state)
{
	const __u64 b = T0 - 5000;
	struct bl_fence_port p;

	(void)state;
	cfg.lanes = 2;
	set_cfg();
	ports[1].home_lane = 1;
	map_put(sk->maps.sw_ports, 1, &ports[1]);
	feed(0, b);
	feed(1, b);
	assert_int_equal(bl_fence_freeze(&fence, 5, 1, &p), 0);
	is_port(&p, 1, 1, true, true, false, C48(b));
	beacon(0, b + 100, b + 100);
	assert_true(after.lanes[0].orders == 1 && after.lanes[1].orders == 0);
	assert_int_equal(after.regs[1].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(after.lives[1].death, 0);
	stands(1, 1, true, true, false, C48(b));
	stands(0, 0, true, false, false, C48(b + 100));
	beacon(1, b + 100, b + 100);
	assert_int_equal(after.lanes[1].orders, 1);
	assert_int_equal(after.regs[1].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[1].lane[0].c, b);
	stands(1, 1, true, true, false, C48(b));
	/* data that needs no clock obeys, too */
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	counts_take(sk->maps.counts, counted);
	step(0, (struct desc[]){ data_frame(0, 3, b + 150, b + 150) }, XDP_REDIRECT,
	     (struct desc[]){ sent(data_frame(0, 3, b + 150, b + 150), b + 150, b + 100) },
	     WANT({ 0, BL_R_FORWARDED }));
	assert_int_equal(after.regs[0].lane[0].c, b + 100);
}

/* Without a clock nothing is believed, and orders are obeyed all the same. */
static void clock__void(void **state)
{
	struct bl_fence_port p;

	(void)state;
	all_live(T0 - 1000);
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	clock_void(sk->maps.clock);
	beacon(3, T0 - 900, T0 - 900);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[3].lane[0].b, T0 - 1000);
	assert_int_equal(after.lanes[0].orders, 1);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_FENCE | BY_BARRED, BY_FENCE | BY_BARRED | BY_SW);
	bl_fence_close(&fence);
}

#define CASE(f) cmocka_unit_test_setup(f, order_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(look__ports),
		CASE(neighbour__of_the_last_good_beacon),
		CASE(awaited__until_heard_or_empty),
		CASE(freeze__stands_still_until_resume),
		CASE(freeze__and_resume_on_an_idle_lane),
		CASE(freeze__who_is_in_nobodys_minimum),
		CASE(death__and_back),
		CASE(epoch__old_ones_are_refused),
		CASE(bar__output_promises_no_c),
		CASE(bar__each_port),
		CASE(bar__input_does_not_join),
		CASE(bar__what_c_waits_for_passes),
		CASE(lanes__each_its_own),
		CASE(clock__void),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
