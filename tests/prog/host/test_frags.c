// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_host_xdp as it is loaded for an MTU above 3498: frames of one and of several XDP buffers, each
 * message in a record of the least size that holds it.
 */
#include "tests/prog/host/host_util.h"

static int frags_setup(void **state)
{
	with_frags = true;
	return host_setup(state);
}

/* The link is up, so that no frame joins. */
static void join(void)
{
	struct desc be = beacon_frame(0, T0 - 1000);
	struct frame in, out;

	build(&in, &be);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &in, &out), XDP_DROP);
	counts_take(sk->maps.counts, counted);
}

static void run_frags(const struct desc *d, enum bl_reason why)
{
	struct frame in, out;

	build(&in, d);
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why }));
}

/* Byte for byte, whether the end of a buffer is within the message, behind it, or before it. */
static void data__of_all_sizes(void **state)
{
	static const __u32 bodies[] = { 0,    216,  217,  1496, 1497, 3300, 3400, 3500,
					3544, 3545, 4096, 7400, 8000, 8900, 9175, 9176 };
	__u32 v, k;

	(void)state;
	join();
	for (v = 0; v < 4; v++) {
		for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
			struct desc d = data_frame(0, 1, T0, T0 - 10);

			d.v6 = v & 1;
			d.tags = v >> 1;
			host_addr(d.saddr, d.v6, 0);
			host_addr(d.daddr, d.v6, 1);
			d.body = bodies[k];
			run_frags(&d, BL_R_STORED);
			expect_stored(0, &d, T0);
			expect_nothing_stored();
		}
	}
}

static void data__too_big(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 10);

	(void)state;
	join();
	d.body = BL_BODY_MAX + 1;
	run_frags(&d, BL_R_TOO_BIG);
	expect_nothing_stored();
}

/* The length that the headers say is compared with that of all buffers, not of the first one. */
static void data__shorter_than_it_says(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0 - 10);
	struct frame in, out;

	(void)state;
	join();
	d.body = 8000;
	build(&in, &d);
	in.n -= 1;
	assert_int_equal(run_xdp(sk->progs.bl_host_xdp, net.ifindex[0], &in, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_BAD_LENGTH }));
	expect_nothing_stored();
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_FRAGS, BY_FRAGS | BY_HOST);
}

#define CASE(f) cmocka_unit_test_setup(f, frags_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(data__of_all_sizes),
		CASE(data__too_big),
		CASE(data__shorter_than_it_says),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
