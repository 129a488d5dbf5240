// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The controller's orders at a host, from loader/order/fence.h down to what bl_host_xdp publishes:
 * the commit barrier of a NIC that was frozen stands still, whatever comes in. What a barred host
 * sends is in test_host_tc.c.
 */
#include "tests/prog/host/host_util.h"
#include "loader/order/fence.h"

#define C48(t) ((t) & ((1ULL << BL_TS_BITS) - 1))

static struct bl_fence fence;

static int order_setup(void **state)
{
	static const struct bl_fence_slot no_order;
	static const struct bl_epoch no_epoch;
	struct bl_err err;

	host_setup(state);
	map_put(sk->maps.host_orders, 0, &no_order);
	map_put(sk->maps.epoch, 0, &no_epoch);
	if (!fence.role) {
		fence.role = BL_ROLE_HOST;
		bl_fence_none(&fence);
		if (bl_fence_open(&fence, sk->obj, &err))
			fail_msg("%s", err.text);
	}
	return 0;
}

static void stands(__u32 death, bool in, bool held, bool barred, __u64 c)
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

/* A beacon from switch 0; the page is in after. */
static void beacon(__u64 b)
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
	stands(0, false, false, false, BL_FENCE_NO_C);
	assert_int_equal(bl_fence_inputs(&fence, &p, 0), 0);
	assert_int_equal(bl_fence_freeze(&fence, 1, 1, &p), -ENOENT);
	assert_int_equal(bl_fence_resume(&fence, 1, 1, 0), -ENOENT);
	beacon(T0 - 1000);
	stands(0, true, false, false, C48(T0 - 1000));
	assert_int_equal(bl_fence_inputs(&fence, &p, 1), 1);
	assert_int_equal(p.neighbour, 0x1000);
}

static void freeze__commit_stands_still(void **state)
{
	struct bl_fence_port p;

	(void)state;
	beacon(T0 - 1000);
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	assert_true(p.held && p.in && p.death == 1 && p.c == C48(T0 - 1000));
	beacon(T0 - 900);
	assert_true(after.page.barrier == T0 - 900 && after.page.commit == T0 - 1000 &&
		    after.page.orders == 1);
	stands(1, true, true, false, C48(T0 - 1000));
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	assert_true(p.held && p.death == 1);
	beacon(T0 - 800);
	assert_int_equal(after.page.commit, T0 - 1000);
	assert_int_equal(bl_fence_resume(&fence, 5, 0, 2), -ENOENT);
	assert_int_equal(bl_fence_resume(&fence, 5, 0, 1), 0);
	stands(1, true, false, false, C48(T0 - 1000));
	beacon(T0 - 700);
	assert_true(after.page.barrier == T0 - 700 && after.page.commit == T0 - 700);
	assert_int_equal(after.page.reg[0].state, BL_REG_LIVE | BL_REG_IN);
}

/* A message that needs no clock of its own obeys, too; and orders are obeyed without one. */
static void freeze__data_and_no_clock(void **state)
{
	struct desc d = data_frame(0, 1, T0 - 900, T0 - 900);
	struct bl_fence_port p;
	struct frame in, out;

	(void)state;
	beacon(T0 - 1000);
	d.dport = BL_PORT_BASE + 9;
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	build(&in, &d);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[1], &in, &out), XDP_DROP);
	state_take(&after);
	assert_true(after.page.barrier == T0 - 900 && after.page.commit == T0 - 1000);
	assert_int_equal(bl_fence_resume(&fence, 5, 0, 1), 0);
	assert_int_equal(bl_fence_freeze(&fence, 5, 0, &p), 0);
	clock_void(sk->maps.clock);
	beacon(T0 - 800);
	assert_int_equal(after.page.life.death, 2);
	assert_int_equal(after.page.reg[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(after.page.barrier, T0 - 900);
}

static void bar__nic_does_not_join(void **state)
{
	const __u32 nic = 0, other = 1;

	(void)state;
	assert_int_equal(bl_fence_bar(&fence, 5, &nic, 1), 0);
	beacon(T0 - 1000);
	assert_true(after.page.barred && after.page.reg[0].state == BL_REG_LIVE);
	assert_true(after.page.barrier == T0 - 1000 && after.page.commit == 0);
	stands(0, false, false, true, BL_FENCE_NO_C);
	assert_int_equal(bl_fence_bar(&fence, 5, &other, 1), 0);
	beacon(T0 - 900);
	assert_true(!after.page.barred && after.page.commit == T0 - 900);
	stands(0, true, false, false, C48(T0 - 900));
}

static void epoch__old_ones_are_refused(void **state)
{
	const __u32 nic = 0;
	struct bl_fence_port p;

	(void)state;
	beacon(T0 - 1000);
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
	stands(0, true, false, false, C48(T0 - 1000));
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_FENCE, BY_FENCE);
	bl_fence_close(&fence);
}

#define CASE(f) cmocka_unit_test_setup(f, order_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(look__host),
		CASE(freeze__commit_stands_still),
		CASE(freeze__data_and_no_clock),
		CASE(bar__nic_does_not_join),
		CASE(epoch__old_ones_are_refused),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
