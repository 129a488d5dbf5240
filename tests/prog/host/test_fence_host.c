// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The controller's fences at a host, from loader/order/fence.h down to the barriers that
 * bl_host_xdp publishes: while the NIC's input is frozen, the commit barrier does not rise,
 * whatever arrives. The frames that a barred host sends are tested in test_host_tc.c.
 */
#include "tests/prog/host/host_util.h"
#include "core/order/epoch_core.h"
#include "loader/order/fence.h"
#include "tests/prog/fence_race.h"

#define C48(t) ((t) & ((1ULL << BL_TS_BITS) - 1))

static struct bl_fence fence;

static int fence_setup(void **state)
{
	static const struct bl_fence_slot no_fence;
	static const struct bl_epoch no_epoch;
	struct bl_err err;

	host_setup(state);
	map_put(sk->maps.host_orders, 0, &no_fence);
	map_put(sk->maps.epoch, 0, &no_epoch);
	if (!fence.role) {
		fence.role = BL_ROLE_HOST;
		bl_fence_none(&fence);
		if (bl_fence_open(&fence, sk->obj, bpf_program__fd(sk->progs.bl_fence), &err))
			fail_msg("%s", err.text);
	}
	return 0;
}

static void expect_nic_state(__u32 death, bool in, bool held, bool barred, __u64 c)
{
	struct bl_fence_port p;

	assert_int_equal(bl_fence_inputs(&fence, &p, 1), 1);
	if (p.port || p.role != BL_PORT_UP || p.death != death || p.in != in || p.held != held ||
	    p.barred != barred || p.c != c)
		fail_msg("death %u, in %d, held %d, barred %d, c %llx; want death %u, in %d, held "
			 "%d, barred %d, c %llx",
			 p.death, p.in, p.held, p.barred, (unsigned long long)p.c, death, in, held,
			 barred, c);
}

/* Runs a beacon from switch 0 and reads the page into after. */
static void run_beacon(__u64 b)
{
	struct desc d = beacon_frame(0, b);
	struct frame in, out;

	build(&in, &d);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[1], &in, &out), XDP_DROP);
	state_take(&after);
}

static void look__host(void **state)
{
	struct bl_fence_port p;

	(void)state;
	expect_nic_state(0, false, false, false, BL_FENCE_NO_C);
	assert_int_equal(bl_fence_inputs(&fence, &p, 0), 0);
	assert_int_equal(bl_fence_freeze(&fence, 1, 1, &p), -ENOENT);
	assert_int_equal(bl_fence_resume(&fence, 1, 1, 0), -ENOENT);
	run_beacon(T0 - 1000);
	expect_nic_state(0, true, false, false, C48(T0 - 1000));
	assert_int_equal(bl_fence_inputs(&fence, &p, 1), 1);
	assert_int_equal(p.neighbour, 0x1000);
}

static void freeze__commit_stands_still(void **state)
{
	struct bl_fence_port p;

	(void)state;
	run_beacon(T0 - 1000);
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	assert_true(p.held && p.in && p.death == 1 && p.c == C48(T0 - 1000));
	run_beacon(T0 - 900);
	assert_true(after.page.barrier == T0 - 900 && after.page.commit == T0 - 1000 &&
		    after.page.orders == 1);
	expect_nic_state(1, true, true, false, C48(T0 - 1000));
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	assert_true(p.held && p.death == 1);
	run_beacon(T0 - 800);
	assert_int_equal(after.page.commit, T0 - 1000);
	assert_int_equal(bl_fence_resume(&fence, 5, 0, 2), -ENOENT);
	assert_int_equal(bl_fence_resume(&fence, 5, 0, 1), 0);
	expect_nic_state(1, true, false, false, C48(T0 - 1000));
	run_beacon(T0 - 700);
	assert_true(after.page.barrier == T0 - 700 && after.page.commit == T0 - 700);
	assert_int_equal(after.page.reg[0].state, BL_REG_LIVE | BL_REG_IN);
}

/*
 * A message that needs no clock reading applies a fence as well, and fences are applied without a
 * clock.
 */
static void freeze__data_and_no_clock(void **state)
{
	struct desc d = data_frame(0, 1, T0 - 900, T0 - 900);
	struct bl_fence_port p;
	struct frame in, out;

	(void)state;
	run_beacon(T0 - 1000);
	d.dport = BL_PORT_BASE + 9;
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	build(&in, &d);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[1], &in, &out), XDP_DROP);
	state_take(&after);
	assert_true(after.page.barrier == T0 - 900 && after.page.commit == T0 - 1000);
	assert_int_equal(bl_fence_resume(&fence, 5, 0, 1), 0);
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	clock_void(sk->maps.clock);
	run_beacon(T0 - 800);
	assert_int_equal(after.page.life.death, 2);
	assert_int_equal(after.page.reg[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.page.barrier, T0 - 900);
}

static void bar__nic_does_not_join(void **state)
{
	const __u32 nic = 0, other = 1;

	(void)state;
	assert_int_equal(bl_fence_bar(&fence, 5, &nic, 1), 0);
	run_beacon(T0 - 1000);
	assert_true(after.page.barred && after.page.reg[0].state == BL_REG_LIVE);
	assert_true(after.page.barrier == T0 - 1000 && after.page.commit == 0);
	expect_nic_state(0, false, false, true, BL_FENCE_NO_C);
	assert_int_equal(bl_fence_bar(&fence, 5, &other, 1), 0);
	run_beacon(T0 - 900);
	assert_true(!after.page.barred && after.page.commit == T0 - 900);
	expect_nic_state(0, true, false, false, C48(T0 - 900));
}

static void epoch__old_ones_are_refused(void **state)
{
	const __u32 nic = 0;
	struct bl_fence_port p;

	(void)state;
	run_beacon(T0 - 1000);
	assert_int_equal(bl_fence_raise(&fence, 7), 0);
	counts_take(sk->maps.counts, counted);
	state_take(&before);
	assert_int_equal(bl_fence_raise(&fence, 6), -ESTALE);
	assert_int_equal(bl_fence_freeze(&fence, 6, 0, &p), -ESTALE);
	assert_int_equal(bl_fence_bar(&fence, 6, &nic, 1), -ESTALE);
	assert_int_equal(bl_fence_resume(&fence, 6, 0, 0), -ESTALE);
	counts_moved(sk->maps.counts, counted, 0, WANT({ BL_HC_INGRESS, BL_R_EPOCH_OLD, 4 }));
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(bl_fence_epoch(&fence), 7);
	expect_nic_state(0, true, false, false, C48(T0 - 1000));
}

/* Attack A1: a false controller says epoch 2^64 - 1; the next real leader is obeyed. */
static void epoch__far_ones_are_refused(void **state)
{
	const __u32 nic = 0;
	struct bl_fence_port p;

	(void)state;
	run_beacon(T0 - 1000);
	assert_int_equal(bl_fence_raise(&fence, 7), 0);
	counts_take(sk->maps.counts, counted);
	state_take(&before);
	assert_int_equal(bl_fence_raise(&fence, ~0ULL), -ERANGE);
	assert_int_equal(bl_fence_freeze(&fence, ~0ULL, 0, &p), -ERANGE);
	assert_int_equal(bl_fence_bar(&fence, 8 + BL_EPOCH_STEP, &nic, 1), -ERANGE);
	assert_int_equal(bl_fence_resume(&fence, ~0ULL, 0, 0), -ERANGE);
	counts_moved(sk->maps.counts, counted, 0, WANT({ BL_HC_INGRESS, BL_R_EPOCH_FAR, 4 }));
	state_take(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(bl_fence_raise(&fence, 8), 0);
	assert_int_equal(bl_fence_epoch(&fence), 8);
}

static void command__while_a_frame_is_judged(void **state)
{
	struct desc d = beacon_frame(0, T0);

	(void)state;
	run_beacon(T0 - 1000);
	race_fence(&fence, sk->progs.bl_host_xdp, net.ifindex[1], &d, sk->maps.counts,
		   BL_HC_INGRESS);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_FENCE, BY_FENCE);
	bl_fence_close(&fence);
}

#define CASE(f) cmocka_unit_test_setup(f, fence_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(look__host),
		CASE(freeze__commit_stands_still),
		CASE(freeze__data_and_no_clock),
		CASE(bar__nic_does_not_join),
		CASE(epoch__old_ones_are_refused),
		CASE(epoch__far_ones_are_refused),
		CASE(command__while_a_frame_is_judged),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
