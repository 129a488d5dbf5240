/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by the tests of two-phase commit in the host's programs: windows, PREPs, and the ACKs that
 * PREPs must become.
 */
#ifndef BARLINE_TESTS_COMMIT_UTIL_H
#define BARLINE_TESTS_COMMIT_UTIL_H

#include "tests/prog/host/host_util.h"

#define FROM (BL_PORT_BASE + 9) /* port of an endpoint of this host, in slot 0 */

MAYBE_UNUSED static struct bl_rwin win;

/*
 * Writes the window of endpoint slot @ep: slots @head to @tail, all open, with timestamps @ts, @ts
 * + 10 and so on. The receiver is endpoint 7 of host 0.
 */
MAYBE_UNUSED static void put_window(__u32 ep, __u32 head, __u32 tail, __u64 ts, bool v6)
{
	struct bl_inflight line = { .ts = BL_TIME_NONE,
				    .hold = BL_TIME_NONE,
				    .state = (__u64)tail << 32 | head };
	__u32 n;

	memset(&win, 0, sizeof(win));
	for (n = head; n != tail; n++, ts += 10) {
		struct bl_rslot *s = &win.slot[n % BL_RWIN];

		*s = (struct bl_rslot){ .wait = BL_RSLOT_OPEN | n,
					.ts = ts,
					.psn = 0xfedcba98,
					.port = BL_PORT_BASE + 7,
					.life = BODY_LIFE };
		host_addr(s->addr, v6, 0);
	}
	ep_page[ep]->win = win;
	line_put(ep, &line);
}

/* Returns head and tail of the window of endpoint slot @ep. */
MAYBE_UNUSED static __u64 window_state_of(__u32 ep)
{
	struct bl_inflight line;

	line_get(ep, &line);
	return line.state;
}

/* Returns the word of a window with this head and tail. */
MAYBE_UNUSED static __u64 window_state(__u32 head, __u32 tail)
{
	return (__u64)tail << 32 | head;
}

/* Runs an XDP program on @in, which must end with @verdict and the frame @want. */
MAYBE_UNUSED static void run_prog(const struct bpf_program *prog, const struct frame *in,
				  int verdict, const struct frame *want)
{
	struct frame out;
	int v = run_xdp(prog, net.ifindex[0], in, &out);

	if (v != verdict)
		fail_msg("%s: verdict %d, want %d", doing, v, verdict);
	same_frame(&out, want);
}

MAYBE_UNUSED static void run_host_xdp(const struct frame *in, int verdict, const struct frame *want)
{
	run_prog(sk->progs.bl_host_xdp, in, verdict, want);
}

/* Runs a tc program once on @in, with @mark. Returns the verdict. */
MAYBE_UNUSED static int run_tc(const struct bpf_program *prog, const struct frame *in,
			       struct frame *out, __u32 mark)
{
	struct __sk_buff ctx = { .mark = mark };
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in->p, .data_size_in = in->n,
		    .data_out = out->p, .data_size_out = sizeof(out->p), .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = 1);
	int rc = bpf_prog_test_run_opts(bpf_program__fd(prog), &o);

	if (rc)
		fail_msg("cannot run %s: %s", bpf_program__name(prog), strerror(-rc));
	out->n = o.data_size_out;
	ran_on(in->n);
	return (int)o.retval;
}

/* Runs a beacon with barrier @b, and takes over the counters. */
MAYBE_UNUSED static void feed_beacon(__u64 b)
{
	struct desc d = beacon_frame(0, b);
	struct frame in;

	build(&in, &d);
	run_host_xdp(&in, XDP_DROP, &in);
	counts_take(sk->maps.counts, counted);
}

/*
 * Builds the answer of host 1 to the PREP or RECALL @d: addresses and ports are exchanged, B and C
 * are old, and the frame is cut behind the @body bytes that the answer needs, but not below the
 * length of a beacon.
 */
MAYBE_UNUSED static void answer_of(const struct desc *d, __u8 op, __u32 body, struct frame *want)
{
	struct desc a = *d;
	struct frame in;
	__u32 keep = BL_BEACON_LEN + 4u * d->tags;

	build(&in, d);
	memcpy(a.dst, d->src, 6);
	memcpy(a.src, d->dst, 6);
	memcpy(a.saddr, d->daddr, 16);
	memcpy(a.daddr, d->saddr, 16);
	a.sport = d->dport;
	a.dport = d->sport;
	a.ttl = 64;
	a.csum = false;
	a.b = a.c = T0 - BL_TS_OLD;
	a.op = op;
	a.lanes = 1;
	a.lane = 0;
	a.body = body;
	build(want, &a);
	keep = keep < in.n ? keep : in.n;
	if (want->n < keep) {
		memcpy(want->p + want->n, in.p + want->n, keep - want->n);
		want->n = keep;
	}
}

/* Builds the ACK that the PREP @d must become. */
MAYBE_UNUSED static void ack_of(const struct desc *d, struct frame *want)
{
	answer_of(d, BL_OP_ACK, BL_ACK_BODY, want);
}

/* Returns a PREP from host 0 to host 1. */
MAYBE_UNUSED static struct desc prep_frame(bool v6, __u64 ts)
{
	struct desc d = v6 ? data_frame6(0, 1, ts, T0 - 1000) : data_frame(0, 1, ts, T0 - 1000);

	d.op = BL_OP_PREP;
	d.ttl = 3;
	return d;
}

/*
 * Runs bl_host_relayed on @d, which must end with @verdict, the frame @want (NULL: unchanged) and
 * reason @why.
 */
MAYBE_UNUSED static void run_relayed(const struct desc *d, int verdict, const struct frame *want,
				     enum bl_reason why)
{
	struct frame in;

	build(&in, d);
	run_prog(sk->progs.bl_host_relayed, &in, verdict, want ? want : &in);
	if (why == BL_R_BAD_OPCODE)
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why }));
	else
		counts_moved(sk->maps.counts, counted, 1,
			     WANT({ BL_HC_INGRESS, why }, { BL_HC_INGRESS, BL_R_BY_CONTROLLER }));
}

/*
 * Returns a PREP from endpoint 9 of this host to its endpoint 10, the first of two in the sender's
 * window.
 */
MAYBE_UNUSED static struct desc local_prep(void)
{
	struct desc d = data_frame(1, 1, T0 - 500, 0);

	d.op = BL_OP_PREP;
	d.sport = FROM;
	d.dport = BL_PORT_BASE + 10;
	d.body = 70;
	put_window(0, BODY_SLOT, BODY_SLOT + 2, T0 - 500, false);
	host_addr(win.slot[BODY_SLOT % BL_RWIN].addr, false, 1);
	win.slot[BODY_SLOT % BL_RWIN].port = BL_PORT_BASE + 10;
	ep_page[0]->win = win;
	return d;
}

#endif
