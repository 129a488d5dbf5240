// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_switch_xdp as it is loaded for an MTU above 3498: frames of one and of several XDP buffers are
 * forwarded, and counted with the bytes of all their buffers (counts_moved()).
 */
#include "tests/prog/switch/switch_util.h"

static int frags_setup(void **state)
{
	with_frags = true;
	switch_setup(state);
	all_live(T0 - 1000);
	ports[3].mtu = 9216;
	map_put(sk->maps.sw_ports, 3, &ports[3]);
	counts_take(sk->maps.counts, counted);
	return 0;
}

static void run_frags(const struct frame *in, int verdict, enum bl_reason why)
{
	struct frame out;

	run_on(0, in, &out, verdict);
	assert_int_equal(out.n, in->n);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, why }));
}

/* bl_parse_plain() accepts those without a tag over IPv4 if they fit in the first buffer. */
static void data__of_all_sizes(void **state)
{
	static const __u32 bodies[] = { 0,    216,  1496, 3300, 3400, 3500,
					3544, 4096, 7400, 8000, 8900, 9100 };
	struct frame in;
	__u32 v, k;

	(void)state;
	for (v = 0; v < 4; v++) {
		for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
			struct desc d = v & 1 ? data_frame6(0, 3, T0, T0 - 1000)
					      : data_frame(0, 3, T0, T0 - 1000);

			d.tags = v >> 1;
			d.body = bodies[k];
			build(&in, &d);
			run_frags(&in, XDP_REDIRECT, BL_R_FORWARDED);
		}
	}
}

/* What is behind the IP packet are bytes of the frame, too. */
static void data__with_bytes_behind(void **state)
{
	struct desc d = data_frame(0, 3, T0, T0 - 1000);
	struct frame in;

	(void)state;
	d.body = 100;
	build(&in, &d);
	in.n += 30;
	run_frags(&in, XDP_REDIRECT, BL_R_FORWARDED);
	d.tags = 1;
	build(&in, &d);
	in.n += 8000;
	run_frags(&in, XDP_REDIRECT, BL_R_FORWARDED);
}

static void dropped__with_all_bytes(void **state)
{
	struct desc d = data_frame(0, 3, T0, T0 - 1000);
	struct frame in;

	(void)state;
	d.body = 8000;
	build(&in, &d);
	in.n--; /* than the headers say */
	run_frags(&in, XDP_DROP, BL_R_BAD_LENGTH);
	d.body = 9300;
	build(&in, &d);
	run_frags(&in, XDP_DROP, BL_R_TOO_BIG);
}

static void other__not_ours(void **state)
{
	struct desc d = data_frame(0, 3, T0, T0 - 1000);
	struct frame in;

	(void)state;
	d.dport = 53;
	d.body = 8000;
	build(&in, &d);
	run_frags(&in, XDP_PASS, BL_R_NOT_OURS);
}

#define CASE(f) cmocka_unit_test_setup(f, frags_setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(data__of_all_sizes),
		CASE(data__with_bytes_behind),
		CASE(dropped__with_all_bytes),
		CASE(other__not_ours),
	};

	return cmocka_run_group_tests(tests, net_up, NULL);
}
