// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The commands of the failure controller at a switch, from loader/order/fence.h down: the results
 * of bl_fence, and what they do to the registers and frames of bl_switch_xdp. In these tests a lane
 * gets a frame only when the test sends one. So bl_fence_*() find the lane idle and report what its
 * registers will be once the command is carried out; the next frame has to confirm that.
 *
 * The barriers in the beacons of a barred output are tested in test_devmap.c, the commands at a
 * host in test_host_xdp.c and test_host_tc.c.
 */
#include "tests/prog/switch/switch_util.h"
#include "core/order/epoch_core.h"
#include "loader/order/fence.h"
#include "tests/prog/fence_race.h"

#define C48(t) ((t) & ((1ULL << BL_TS_BITS) - 1))
#define OLD    (bus_now - BL_TS_OLD)

static struct bl_fence fence;

static int fence_setup(void **state)
{
	struct bl_err err;

	switch_setup(state);
	if (!fence.role) {
		fence.role = BL_ROLE_SWITCH;
		bl_fence_none(&fence);
		if (bl_fence_open(&fence, sk->obj, bpf_program__fd(sk->progs.bl_fence), &err))
			fail_msg("%s", err.text);
	}
	return 0;
}

/*
 * The value of bl_fence_port.behind that expect_port_state() expects: whether the port's C has
 * still to pass what the outputs were given before the port joined.
 */
static bool expect_behind;

static void expect_port_state(const struct bl_fence_port *p, __u32 port, __u32 death, bool in,
			      bool held, bool barred, __u64 c)
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
	    p->role != want.role || p->in != in || p->behind != expect_behind || p->held != held ||
	    p->barred != barred || p->c != c)
		fail_msg("%s: port %u: neighbour %x, death %u, role %u, in %d, behind %d, held %d, "
			 "barred %d, c %llx, want death %u, in %d, behind %d, held %d, barred %d, "
			 "c %llx",
			 doing, p->port, p->neighbour, p->death, p->role, p->in, p->behind, p->held,
			 p->barred, (unsigned long long)p->c, death, in, expect_behind, held,
			 barred, c);
}

static void expect_input_state(__u32 port, __u32 death, bool in, bool held, bool barred, __u64 c)
{
	struct bl_fence_port v[NPORTS];

	assert_int_equal(bl_fence_inputs(&fence, v, NPORTS), NPORTS);
	expect_port_state(&v[port], port, death, in, held, barred, c);
}

/* Sends a beacon from @port and checks every tree. */
static void send_beacon(__u32 port, __u64 b, __u64 c)
{
	struct desc d = beacon_frame(port, b);
	struct frame in, out;

	d.c = c;
	build(&in, &d);
	run_xdp(sk->progs.bl_switch_xdp, net.ifindex[port], &in, &out);
	state_take(&after);
	expect_trees(&after);
}

static void beacons_from_others(__u64 b)
{
	send_beacon(0, b, b);
	send_beacon(1, b, b);
	send_beacon(UPLINK, b, b);
}

/*
 * What bl_fence_inputs() and the commands report for ports where no beacon arrived yet, and for
 * ports that are not in use.
 */
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
	expect_input_state(3, 0, true, false, false, C48(T0 - 1000));
	/* A port that is not in use is not reported, and commands for it fail. */
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
	send_beacon(3, T0 - 1000, T0 - 1000);
	assert_int_equal(after.lives[3].neighbour, 0x1003);
	/* A switch may become another one at once; a host may not (test_source.c). */
	send_beacon(UPLINK, T0 - 1000, T0 - 1000);
	d = beacon_frame(UPLINK, T0 - 1000);
	d.node = 78;
	counts_take(sk->maps.counts, counted);
	take_in(UPLINK, &d, WANT({ UPLINK, BL_R_BEACON }));
	assert_int_equal(after.lives[UPLINK].neighbour, 78);
}

/*
 * A switch with new registers: C waits for every port where nothing arrived yet, until a beacon
 * arrives there or the controller says that the port is empty. B does not wait for such ports.
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
	send_beacon(0, bus - 1000, bus - 1000);
	send_beacon(1, bus - 900, bus - 900);
	assert_int_equal(after.lanes[0].out[0].b, bus - 1000);
	assert_true(after.lanes[0].out[0].c == none.c || after.lanes[0].out[0].c == BL_C_UNKNOWN);
	assert_int_equal(after.lanes[0].out[1].b, bus - 1000);
	assert_true(after.lanes[0].out[1].c <= BL_C_UNKNOWN);
	assert_int_equal(bl_fence_inputs(&fence, v, NPORTS), NPORTS);
	assert_true(!v[0].awaited && v[0].in && !v[1].awaited && v[2].awaited && !v[2].in &&
		    !v[2].held && v[3].awaited);
	/* A beacon arrives on port 3, so one awaited port is left: the up-link. */
	send_beacon(3, bus - 800, bus - 800);
	send_beacon(0, bus - 700, bus - 700);
	assert_true(after.lanes[0].out[1].c <= BL_C_UNKNOWN);
	/* The output of the up-link does not depend on the up-link's own input. */
	assert_int_equal(after.lanes[0].out[0].c, bus - 900);
	/* The controller says that nothing is connected to the up-link. */
	assert_int_equal(bl_fence_empty(&fence, 0, UPLINK), 0);
	send_beacon(1, bus - 600, bus - 600);
	assert_int_equal(after.lanes[0].out[1].c, bus - 800);
	assert_false(after.regs[UPLINK].lane[0].state & BL_REG_AWAITED);
	assert_int_equal(bl_fence_inputs(&fence, v, NPORTS), NPORTS);
	assert_false(v[UPLINK].awaited);
	/* A neighbour that appears there later joins like any other. */
	send_beacon(UPLINK, bus - 500, bus - 500);
	assert_int_equal(after.regs[UPLINK].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(bl_fence_empty(&fence, 0, 200), -ENOENT);
}

static void freeze__stands_still_until_resume(void **state)
{
	const __u64 b = T0 - 5000;
	struct bl_fence_port p;

	(void)state;
	all_live(b);
	/*
	 * The lane has had no frame since, so its registers are unchanged; the result of the
	 * command says what they will be.
	 */
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	expect_port_state(&p, 3, 1, true, true, false, C48(b));
	state_take(&after);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(after.lanes[0].limit_ns, 0);
	expect_input_state(3, 1, true, true, false, C48(b));
	expect_input_state(0, 0, true, false, false, C48(b));
	/*
	 * The first frame after the command is the frozen port's own. It comes too late to raise C.
	 */
	send_beacon(3, b + 100, b + 100);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[3].lane[0].b, b + 100);
	assert_int_equal(after.regs[3].lane[0].c, b);
	assert_int_equal(after.lives[3].death, 1);
	assert_int_equal(after.lanes[0].orders, 1);
	beacons_from_others(b + 100);
	assert_int_equal(after.lanes[0].out[1].b, b + 100); /* B still rises with it. */
	assert_int_equal(after.lanes[0].out[1].c, b);
	expect_input_state(3, 1, true, true, false, C48(b));
	/* The same command again has no further effect. */
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	expect_port_state(&p, 3, 1, true, true, false, C48(b));
	send_beacon(3, b + 200, b + 200);
	expect_input_state(3, 1, true, true, false, C48(b));
	/* A RESUME for another death is refused and changes nothing. */
	state_take(&before);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 0), -ENOENT);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 2), -ENOENT);
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	/* C is the old value, but not frozen any more. */
	expect_input_state(3, 1, true, false, false, C48(b));
	beacons_from_others(b + 300);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	/* C rises only when port 3 brings a higher C. */
	assert_int_equal(after.lanes[0].out[1].c, b);
	send_beacon(3, b + 300, b + 300);
	assert_int_equal(after.lanes[0].out[1].c, b + 300);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0); /* no-op: already resumed */
	send_beacon(3, b + 400, b + 400);
	expect_input_state(3, 1, true, false, false, C48(b + 400));
	/* The next FREEZE is another death, with a number of its own. */
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	expect_port_state(&p, 3, 2, true, true, false, C48(b + 400));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), -ENOENT);
	send_beacon(3, b + 500, b + 500);
	expect_input_state(3, 2, true, true, false, C48(b + 400));
}

/* Several commands in succession, with no frame between them. */
static void freeze__and_resume_on_an_idle_lane(void **state)
{
	const __u64 b = T0 - 5000;
	struct bl_fence_port p;

	(void)state;
	all_live(b);
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	expect_input_state(3, 1, true, false, false, C48(b));
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	expect_port_state(&p, 3, 2, true, true, false, C48(b));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), -ENOENT);
	assert_int_equal(bl_fence_freeze(&fence, 5, 1, &p), 0);
	send_beacon(0, b + 100, b + 100);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[1].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.lives[3].death, 2);
	assert_int_equal(after.lives[1].death, 1);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 2), 0);
	assert_int_equal(bl_fence_resume(&fence, 5, 1, 1), 0);
	beacons_from_others(b + 200);
	send_beacon(3, b + 200, b + 200);
	assert_int_equal(after.lanes[0].out[1].c, b + 200);
}

static void freeze__who_is_in_nobodys_minimum(void **state)
{
	struct bl_fence_port p;

	(void)state;
	feed(0, T0 - 1000);
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	assert_true(p.death == 1 && !p.in && !p.held && p.c == BL_FENCE_NO_C);
	send_beacon(0, T0 - 900, T0 - 900);
	assert_int_equal(after.lives[3].death, 1);
	/* A FREEZE that was given while the port was not in C does not freeze it after it joins. */
	send_beacon(3, T0 - 900, T0 - 900);
	expect_input_state(3, 1, true, false, false, C48(T0 - 900));
}

/* Lets @n beacon intervals pass in which beacons arrive on all ports except port 3. */
static void pass_without_port_3(__u64 *bus, int n)
{
	while (n--) {
		*bus += BEACON_NS;
		clock_at(sk->maps.clock, *bus);
		beacons_from_others(*bus - 100);
	}
}

static void death__and_back(void **state)
{
	const __u64 b = T0 - 5000;
	__u64 bus = T0;

	(void)state;
	all_live(b);
	pass_without_port_3(&bus, 13);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	expect_input_state(3, 1, true, true, false, C48(b));
	assert_int_equal(after.lanes[0].out[1].c, b);
	/* Port 3 wakes up: B waits for it, and its C stays where it was reported. */
	send_beacon(3, bus - 50, bus - 50);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[3].lane[0].c, b);
	assert_int_equal(after.lanes[0].out[1].c, b);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	send_beacon(3, bus - 40, bus - 40);
	assert_int_equal(after.lanes[0].out[1].c, bus - 100);
	/* Port 3 dies again, and is resumed while it is dead: it leaves C. */
	pass_without_port_3(&bus, 13);
	expect_input_state(3, 2, true, true, false, C48(T0 + 13 * BEACON_NS - 40));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 2), 0);
	expect_input_state(3, 2, false, false, false, BL_FENCE_NO_C);
	beacons_from_others(bus - 90);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_DEAD);
	assert_int_equal(after.lanes[0].out[1].c, bus - 90);
	/* It joins again like any new input. */
	send_beacon(3, bus - 200, bus - 200);
	expect_behind = true;
	expect_input_state(3, 2, true, false, false, C48(bus - 200));
	assert_int_equal(after.lanes[0].out[1].c, bus - 90);
	send_beacon(3, bus - 91, bus - 91);
	expect_input_state(3, 2, true, false, false, C48(bus - 91));
	send_beacon(3, bus - 90, bus - 90);
	expect_behind = false;
	expect_input_state(3, 2, true, false, false, C48(bus - 90));
	expect_input_state(0, 0, true, false, false, C48(bus - 90));
	/*
	 * Once it has caught up, "behind" does not return: the outputs are given no more than it
	 * has promised.
	 */
	send_beacon(3, bus - 50, bus - 50);
	expect_input_state(3, 2, true, false, false, C48(bus - 50));
	beacons_from_others(bus - 50);
	expect_input_state(3, 2, true, false, false, C48(bus - 50));
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
	expect_input_state(3, 0, true, false, false, C48(T0 - 1000));
	/*
	 * The same epoch is accepted, and any command with a higher epoch raises the node's epoch.
	 */
	assert_int_equal(bl_fence_raise(&fence, 7), 0);
	assert_int_equal(bl_fence_freeze(&fence, 8, 3, &p), 0);
	assert_int_equal(bl_fence_epoch(&fence), 8);
	assert_int_equal(bl_fence_bar(&fence, 9, &three, 1), 0);
	assert_int_equal(bl_fence_bar(&fence, 8, &three, 1), -ESTALE);
	a.epoch = 9;
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_fence), &o), 0);
	assert_int_equal(a.result, -EINVAL);
}

/*
 * Attack A1: a false controller says epoch 2^64 - 1. It is refused by every kind of command and
 * changes nothing, and the next real leader is obeyed.
 */
static void epoch__far_ones_are_refused(void **state)
{
	const __u64 far[] = { ~0ULL, 1ULL << 63, 8 + BL_EPOCH_STEP };
	const __u32 three = 3;
	struct bl_fence_port p;
	unsigned int k;

	(void)state;
	all_live(T0 - 1000);
	/* The first epoch may be any revision of a store, but not any number. */
	assert_int_equal(bl_fence_raise(&fence, BL_EPOCH_FIRST + 1), -ERANGE);
	assert_int_equal(bl_fence_epoch(&fence), 0);
	assert_int_equal(bl_fence_raise(&fence, 7), 0);
	counts_take(sk->maps.counts, counted);
	state_take(&before);
	for (k = 0; k < sizeof(far) / sizeof(far[0]); k++) {
		assert_int_equal(bl_fence_raise(&fence, far[k]), -ERANGE);
		assert_int_equal(bl_fence_freeze(&fence, far[k], 3, &p), -ERANGE);
		assert_int_equal(bl_fence_bar(&fence, far[k], &three, 1), -ERANGE);
		assert_int_equal(bl_fence_resume(&fence, far[k], 3, 0), -ERANGE);
	}
	counts_moved(sk->maps.counts, counted, 0, WANT({ BL_COUNTS_UNKNOWN, BL_R_EPOCH_FAR, 12 }));
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(bl_fence_epoch(&fence), 7);
	assert_int_equal(bl_fence_bar(&fence, 8, &three, 1), 0);
	/* An honest step, after a long absence. */
	assert_int_equal(bl_fence_raise(&fence, 8 + BL_EPOCH_STEP), 0);
	assert_int_equal(bl_fence_epoch(&fence), 8 + BL_EPOCH_STEP);
}

static void bar__output_promises_no_c(void **state)
{
	const __u64 b = T0 - 1000;
	const __u32 barred[] = { 1, 255 };
	int v6, csum;

	(void)state;
	all_live(b);
	assert_int_equal(bl_fence_bar(&fence, 5, barred, 2), 0);
	/* An input that is part of C stays part of C. */
	expect_input_state(1, 0, true, false, true, C48(b));
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
	/* The command replaces the set of barred ports: port 1 is free again. */
	assert_int_equal(bl_fence_bar(&fence, 5, (__u32[]){ 3 }, 1), 0);
	step(0, (struct desc[]){ data_frame(0, 1, T0, b) }, XDP_REDIRECT,
	     (struct desc[]){ sent(data_frame(0, 1, T0, b), b, b) }, WANT({ 0, BL_R_FORWARDED }));
	step(0, (struct desc[]){ data_frame(0, 3, T0, b) }, XDP_REDIRECT,
	     (struct desc[]){ sent(data_frame(0, 3, T0, b), b, OLD) }, WANT({ 0, BL_R_FORWARDED }));
	assert_int_equal(bl_fence_bar(&fence, 5, NULL, 0), 0);
	step(0, (struct desc[]){ data_frame(0, 3, T0, b) }, XDP_REDIRECT,
	     (struct desc[]){ sent(data_frame(0, 3, T0, b), b, b) }, WANT({ 0, BL_R_FORWARDED }));
}

/* Each of the 256 ports can be barred by itself. */
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

/*
 * Makes all ports live with barrier @b except port 3, where no beacon arrived yet and which is
 * barred.
 */
static void bar_port_3_before_it_joins(__u64 b)
{
	feed(0, b - 4);
	feed(1, b - 4);
	feed(UPLINK, b - 4);
	beacons_from_others(b);
	assert_int_equal(bl_fence_bar(&fence, 5, &three, 1), 0);
}

static void bar__input_does_not_join(void **state)
{
	const __u64 b = T0 - 5000;
	struct bl_fence_port p;

	(void)state;
	bar_port_3_before_it_joins(b);
	send_beacon(3, b - 300, b - 300);
	/* B waits for port 3, C does not. */
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE);
	expect_input_state(3, 0, false, false, true, BL_FENCE_NO_C);
	beacons_from_others(b + 100);
	assert_true(after.lanes[0].out[1].b == b && after.lanes[0].out[1].c == b + 100);
	/* Once the port is free, its input is part of C before the next frame is processed. */
	assert_int_equal(bl_fence_bar(&fence, 5, NULL, 0), 0);
	expect_behind = true;
	expect_input_state(3, 0, true, false, false, C48(b - 300));
	beacons_from_others(b + 200);
	assert_int_equal(after.lanes[0].out[1].c, b + 100);
	expect_behind = false;
	send_beacon(3, b + 200, b + 200);
	assert_int_equal(after.lanes[0].out[1].c, b + 200);
	/*
	 * An input that is barred while it is part of C stays part of C until it is resumed from a
	 * death.
	 */
	assert_int_equal(bl_fence_bar(&fence, 5, &three, 1), 0);
	send_beacon(3, b + 250, b + 250);
	expect_input_state(3, 0, true, false, true, C48(b + 250));
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	expect_port_state(&p, 3, 1, true, true, true, C48(b + 250));
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	expect_input_state(3, 1, false, false, true, BL_FENCE_NO_C);
	send_beacon(3, b + 300, b + 300);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE);
	beacons_from_others(b + 400);
	assert_true(after.lanes[0].out[1].b == b + 300 && after.lanes[0].out[1].c == b + 400);
}

/*
 * From an input that C does not wait for, the switch drops frames that ask for a window or that
 * were sent because a window was granted. All other frames pass. A dropped frame still raises the
 * registers by its barriers.
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
	bar_port_3_before_it_joins(b);
	send_beacon(3, b, b);
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
		expect_input_state(3, 0, true, false, false, C48(b));
	}
	/* C still waits for a frozen input, so its frames pass. */
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
	/* The barriers of a dropped frame are taken in. */
	assert_int_equal(bl_fence_bar(&fence, 5, &three, 1), 0);
	assert_int_equal(bl_fence_resume(&fence, 5, 3, 1), 0);
	{
		struct desc d = data_frame(3, 1, T0, b + 70);

		d.op = BL_OP_PREP;
		step(3, &d, XDP_DROP, &d, WANT({ 3, BL_R_NOT_IN }));
		assert_int_equal(after.regs[3].lane[0].b, b + 70);
	}
}

/* Each lane carries out the commands for its own ports, and records that in @orders. */
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
	expect_port_state(&p, 1, 1, true, true, false, C48(b));
	send_beacon(0, b + 100, b + 100);
	assert_true(after.lanes[0].orders == 1 && after.lanes[1].orders == 0);
	assert_int_equal(after.regs[1].lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(after.lives[1].death, 0);
	expect_input_state(1, 1, true, true, false, C48(b));
	expect_input_state(0, 0, true, false, false, C48(b + 100));
	send_beacon(1, b + 100, b + 100);
	assert_int_equal(after.lanes[1].orders, 1);
	assert_int_equal(after.regs[1].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[1].lane[0].c, b);
	expect_input_state(1, 1, true, true, false, C48(b));
	/*
	 * A data frame that would not read the clock carries out the command as well, since the
	 * command sets the lane's clock limit to 0.
	 */
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	counts_take(sk->maps.counts, counted);
	step(0, (struct desc[]){ data_frame(0, 3, b + 150, b + 150) }, XDP_REDIRECT,
	     (struct desc[]){ sent(data_frame(0, 3, b + 150, b + 150), b + 150, b + 100) },
	     WANT({ 0, BL_R_FORWARDED }));
	assert_int_equal(after.regs[0].lane[0].c, b + 100);
}

/* Without a clock the barriers of a frame are ignored, but commands are carried out. */
static void clock__void(void **state)
{
	struct bl_fence_port p;

	(void)state;
	all_live(T0 - 1000);
	assert_int_equal(bl_fence_freeze(&fence, 5, 3, &p), 0);
	clock_void(sk->maps.clock);
	send_beacon(3, T0 - 900, T0 - 900);
	assert_int_equal(after.regs[3].lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.regs[3].lane[0].b, T0 - 1000);
	assert_int_equal(after.lanes[0].orders, 1);
}

static void command__while_a_frame_is_judged(void **state)
{
	struct desc d = beacon_frame(0, T0);

	(void)state;
	all_live(T0 - 1000);
	race_fence(&fence, sk->progs.bl_switch_xdp, net.ifindex[0], &d, sk->maps.counts, 0);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_FENCE | BY_BARRED, BY_FENCE | BY_BARRED | BY_SW);
	bl_fence_close(&fence);
}

#define CASE(f) cmocka_unit_test_setup(f, fence_setup)

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
		CASE(epoch__far_ones_are_refused),
		CASE(bar__output_promises_no_c),
		CASE(bar__each_port),
		CASE(bar__input_does_not_join),
		CASE(bar__what_c_waits_for_passes),
		CASE(lanes__each_its_own),
		CASE(clock__void),
		CASE(command__while_a_frame_is_judged),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
