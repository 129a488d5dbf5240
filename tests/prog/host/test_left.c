// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints that left in order: the programs of their host answer PREPs that are still on their way
 * to them, on the NIC, from the host itself, and relayed by the controller. test_recall.c has the
 * same for RECALLs.
 */
#include <linux/pkt_cls.h>
#include "tests/prog/host/commit_util.h"

/*
 * Makes the endpoint of @port leave in order. @now: whether the port belongs to another endpoint by
 * then, or to none.
 */
static void end_endpoint_in_order(__u32 port, enum bl_ep_state now)
{
	struct bl_ep_slot e;

	map_get(sk->maps.eps, port, &e);
	e.left = e.life;
	e.life = now == BL_EP_FREE ? 0 : (__u16)(e.life + 1);
	e.active = now;
	map_put(sk->maps.eps, port, &e);
}

/*
 * A PREP for an endpoint that left in order is answered, whatever the state of its port is by then.
 * A PREP for another life or another address is not. Nothing is stored.
 */
static void prep__for_who_left(void **state)
{
	static const enum bl_ep_state port_is[] = { BL_EP_FREE, BL_EP_ACTIVE, BL_EP_DEAD };
	struct bl_ep_slot was, e;
	struct frame in, want;
	__u32 k, v6;

	(void)state;
	feed_beacon(T0 - 1000);
	for (v6 = 0; v6 < 2; v6++)
		for (k = 0; k < 3; k++) {
			__u32 port = v6 ? 11 : 10;
			struct desc d = prep_frame(v6, T0);

			d.dport = (__u16)(BL_PORT_BASE + port);
			map_get(sk->maps.eps, port, &was);
			end_endpoint_in_order(port, port_is[k]);
			build(&in, &d);
			ack_of(&d, &want);
			run_host_xdp(&in, XDP_TX, &want);
			counts_moved(sk->maps.counts, counted, 1,
				     WANT({ BL_HC_INGRESS, BL_R_LEFT }));
			/* below C: the sender does not wait for an answer */
			d.ts = T0 - 1001;
			build(&in, &d);
			run_host_xdp(&in, XDP_DROP, &in);
			counts_moved(sk->maps.counts, counted, 1,
				     WANT({ BL_HC_INGRESS, BL_R_PREP_LATE }));
			d.ts = T0;
			build(&in, &d);
			map_get(sk->maps.eps, port, &e);
			e.left ^= 1; /* the last life died, or never existed */
			map_put(sk->maps.eps, port, &e);
			run_host_xdp(&in, XDP_DROP, &in);
			counts_moved(sk->maps.counts, counted, 1,
				     WANT({ BL_HC_INGRESS, port_is[k] == BL_EP_ACTIVE
								   ? BL_R_WRONG_LIFE
								   : BL_R_NO_ENDPOINT }));
			e.left ^= 1;
			e.addr[15] ^= 1;
			map_put(sk->maps.eps, port, &e);
			run_host_xdp(&in, XDP_DROP, &in);
			counts_moved(sk->maps.counts, counted, 1,
				     WANT({ BL_HC_INGRESS, BL_R_NO_ENDPOINT }));
			map_put(sk->maps.eps, port, &was);
			expect_nothing_stored();
		}
}

/* A PREP for life 0 is refused, although @left is 0 while no endpoint has left the port. */
static void prep__for_nobody(void **state)
{
	struct desc d = prep_frame(false, T0);
	struct frame in;

	(void)state;
	feed_beacon(T0 - 1000);
	build(&in, &d);
	in.p[in.n - d.body + sizeof(struct bl_data) + offsetof(struct bl_prep, life)] = 0;
	in.p[in.n - d.body + sizeof(struct bl_data) + offsetof(struct bl_prep, life) + 1] = 0;
	run_host_xdp(&in, XDP_DROP, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_WRONG_LIFE }));
	expect_nothing_stored();
}

/* Between endpoints of one host the slot is closed without a frame. */
static void local__for_who_left(void **state)
{
	const __u32 n = BODY_SLOT;
	struct desc d = local_prep();
	struct frame in, out;

	(void)state;
	end_endpoint_in_order(10, BL_EP_ACTIVE);
	build(&in, &d);
	assert_int_equal(run_tc(sk->progs.bl_host_local, &in, &out, 0), TC_ACT_SHOT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LOCAL, BL_R_LEFT }));
	expect_nothing_stored();
	assert_int_equal(window_state_of(0), window_state(n + 1, n + 2));
}

/* A frame that the controller relays is answered as well. */
static void relayed__for_who_left(void **state)
{
	struct desc d = prep_frame(false, T0);
	struct frame want;

	(void)state;
	feed_beacon(T0 - 1000);
	end_endpoint_in_order(9, BL_EP_FREE);
	ack_of(&d, &want);
	run_relayed(&d, XDP_TX, &want, BL_R_LEFT);
	expect_nothing_stored();
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_LEFT, BY_LEFT | BY_COMMIT | BY_HOST | BY_TC);
}

static int setup(void **state)
{
	(void)state;
	net_setup(false);
	return 0;
}

#define CASE(f) cmocka_unit_test_setup(f, host_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(prep__for_who_left),
		CASE(prep__for_nobody),
		CASE(local__for_who_left),
		CASE(relayed__for_who_left),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
