// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bl_switch_egress: which frames the kernel may send by a port of the switch. */
#include "tests/prog/switch/switch_util.h"

#define TC_NEXT     -1
#define TC_ACT_SHOT 2

/*
 * Runs one frame that the kernel wants to send by @port; it must stay unchanged. Returns the
 * verdict.
 */
static int run_egress(__u32 port, const struct frame *in)
{
	struct __sk_buff ctx = { .ifindex = net.ifindex[port] };
	struct frame out = {};
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->p, .data_size_in = in->n,
		    .data_out = out.p, .data_size_out = sizeof(out.p), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);
	int rc = bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_switch_egress), &o);

	if (rc)
		fail_msg("%s: cannot run the program: %s", doing, strerror(-rc));
	out.n = o.data_size_out;
	ran_on(in->n);
	same_frame(&out, in);
	return (int)o.retval;
}

static void expect_passed(const struct frame *in)
{
	assert_int_equal(run_egress(2, in), TC_NEXT);
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
}

static void expect_dropped(const struct frame *in)
{
	if (run_egress(2, in) != TC_ACT_SHOT)
		fail_msg("%s: a frame of %u bytes may leave", doing, in->n);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 2, BL_R_BYPASSED }));
}

/* The frame of a host as the host sent it, with every opcode. */
static void raw__of_every_kind(void **state)
{
	static const __u8 op[] = { BL_OP_DATA,   BL_OP_PREP,   BL_OP_ACK,      BL_OP_OPEN,
				   BL_OP_WINDOW, BL_OP_RECALL, BL_OP_RECALLED, BL_OP_NAK,
				   BL_OP_CREDIT, BL_OP_PROBE };
	struct frame in;
	unsigned int i;

	(void)state;
	for (i = 0; i < 4 * sizeof(op); i++) {
		struct desc d = i & 1 ? data_frame6(0, 2, T0, T0 - 100)
				      : data_frame(0, 2, T0, T0 - 100);

		d.op = op[i / 4];
		d.csum = i >> 1 & 1;
		build(&in, &d);
		expect_dropped(&in);
	}
	build(&in, (struct desc[]){ beacon_frame(0, T0 - 100) });
	expect_dropped(&in);
}

/*
 * Frames that the switch's program gave to the kernel promise nothing: both barriers must be so old
 * that no receiver uses them.
 */
static void barriers__that_promise_nothing(void **state)
{
	static const struct {
		__u64 b, c;
		bool ok;
	} t[] = {
		{ T0 - BL_TS_OLD, T0 - BL_TS_OLD, true },
		{ T0 - BL_TS_OLD, T0, false },
		{ T0, T0 - BL_TS_OLD, false },
		/* The lane's clock may be an hour behind; half of BL_TS_OLD is 9 h 46 min. */
		{ T0 - BL_TS_OLD - 3600000000000ULL, T0 - BL_TS_OLD - 3600000000000ULL, true },
		{ T0 - BL_TS_OLD / 2 + 1, T0 - BL_TS_OLD, false },
		{ T0 - BL_TS_OLD, T0 - BL_TS_OLD / 2 + 1, false },
		{ T0 - BL_TS_OLD / 2 - 1000000000, T0 - BL_TS_OLD / 2 - 1000000000, true },
	};
	struct frame in;
	unsigned int i, v;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		for (v = 0; v < 4; v++) {
			struct desc d = v & 1 ? data_frame6(0, 2, T0, t[i].b)
					      : data_frame(0, 2, T0, t[i].b);

			d.c = t[i].c;
			d.tags = v >> 1;
			build(&in, &d);
			if (t[i].ok)
				expect_passed(&in);
			else
				expect_dropped(&in);
		}
	}
	/* The kernel never sends a beacon, whatever its barriers are. */
	struct desc d = beacon_frame(0, T0 - BL_TS_OLD);

	d.c = T0 - BL_TS_OLD;
	build(&in, &d);
	expect_dropped(&in);
}

/*
 * An ordered frame that is cut short, or has wrong lengths, has no barriers that could be checked.
 */
static void malformed(void **state)
{
	struct desc d = data_frame(0, 2, T0, T0 - BL_TS_OLD);
	struct frame in;
	__u32 n;

	(void)state;
	d.c = T0 - BL_TS_OLD;
	build(&in, &d);
	for (n = 14u + (in.p[16] << 8 | in.p[17]) - 1; n > 14 + 20 + 8; n--) {
		in.n = n;
		expect_dropped(&in);
	}
	build(&in, &d);
	in.p[14 + 20 + 8 + offsetof(struct bl_hdr, opcode)] ^= 0xf0; /* the version as well */
	expect_dropped(&in);
}

/* Frames that are not ordered, or leave by an interface that is no port, are not checked. */
static void other__untouched(void **state)
{
	struct desc d = data_frame(0, 2, T0, T0);
	struct frame in;

	(void)state;
	build(&in, &d);
	in.p[14 + 20 + 2] = 0; /* destination port */
	in.p[14 + 20 + 3] = 53;
	expect_passed(&in);
	memset(in.p + 12, 0x55, 2); /* ethertype */
	expect_passed(&in);
	build(&in, &d);
	map_put(sk->maps.sw_ifindex, net.ifindex[2], &(__u32){ 0 });
	expect_passed(&in);
}

/* Without a clock it is unknown whether a barrier is old. */
static void clock__void(void **state)
{
	struct desc d = data_frame(0, 2, T0, T0 - BL_TS_OLD);
	struct frame in;

	(void)state;
	d.c = T0 - BL_TS_OLD;
	build(&in, &d);
	clock_void(sk->maps.clock);
	expect_dropped(&in);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_GUARD, BY_GUARD);
}

#define CASE(f) cmocka_unit_test_setup(f, switch_setup)

static int setup(void **state)
{
	(void)state;
	net_setup(false);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(raw__of_every_kind), CASE(barriers__that_promise_nothing),
		CASE(malformed),          CASE(other__untouched),
		CASE(clock__void),        cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
