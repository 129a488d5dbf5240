// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * RECALL in the host's programs: the frame is stored in the receiver's ring and sent back as
 * RECALLED, byte for byte, without the help of the receiver's process. It is neither stored nor
 * answered if there is no room, no endpoint, or another life of the endpoint.
 */
#include <linux/pkt_cls.h>
#include "tests/prog/host/commit_util.h"

#define FROM (BL_PORT_BASE + 9) /* an endpoint of this host: slot 0 */
/* the receiver's life in a RECALL whose body is made by frames.h */
#define RECALL_LIFE 0x0f16

static void set_lives(__u16 life)
{
	struct bl_ep_slot e;
	__u32 port;

	for (port = 9; port <= 11; port++) {
		map_get(sk->maps.eps, port, &e);
		e.life = life;
		map_put(sk->maps.eps, port, &e);
	}
}

static struct desc recall_frame(bool v6)
{
	struct desc d = v6 ? data_frame6(0, 1, 0, T0 - 1000) : data_frame(0, 1, 0, T0 - 1000);

	d.op = BL_OP_RECALL;
	d.ttl = 3;
	d.body = sizeof(struct bl_recall);
	return d;
}

static void answer_to(const struct desc *d, struct frame *want)
{
	answer_of(d, BL_OP_RECALLED, sizeof(struct bl_recall), want);
}

static void recall__becomes_the_answer(void **state)
{
	static const __u32 bodies[] = { 16, 17, 60, 72, 73, 216, 217, 1448 };
	__u32 v, k;

	(void)state;
	feed_beacon(T0 - 1000);
	set_lives(RECALL_LIFE);
	for (v = 0; v < 16; v++) {
		for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
			bool relayed = v >> 3;
			struct desc d = recall_frame(v & 1);
			struct frame in, want;

			d.tags = v >> 1 & 1;
			d.csum = v >> 2 & 1;
			d.body = bodies[k];
			d.dport = (__u16)(BL_PORT_BASE + (v & 1 ? 11 : 10));
			build(&in, &d);
			answer_to(&d, &want);
			run_prog(relayed ? sk->progs.bl_host_relayed : sk->progs.bl_host_xdp, &in,
				 XDP_TX, &want);
			if (relayed) {
				counts_moved(sk->maps.counts, counted, 1,
					     WANT({ BL_HC_INGRESS, BL_R_RECALLED },
						  { BL_HC_INGRESS, BL_R_BY_CONTROLLER }));
				assert_int_equal(ring_read(v & 1 ? 2 : 1), 1);
				assert_int_equal(got.rec.relayed, 1);
				assert_int_equal(got.rec.opcode, BL_OP_RECALL);
				assert_int_equal(got.rec.len, bodies[k]);
			} else {
				counts_moved(sk->maps.counts, counted, 1,
					     WANT({ BL_HC_INGRESS, BL_R_RECALLED }));
				expect_stored(v & 1 ? 2 : 1, &d, 0);
			}
			expect_nothing_stored();
		}
	}
}

/*
 * A RECALL is stored and answered even if C has long passed the messages that it names: it is not a
 * message itself, and a sender that repeats it needs the answer again.
 */
static void recall__of_what_is_below_C(void **state)
{
	struct desc d = recall_frame(false);
	struct frame in, want;

	(void)state;
	feed_beacon(T0 + 100);
	set_lives(RECALL_LIFE);
	build(&in, &d);
	answer_to(&d, &want);
	run_prog(sk->progs.bl_host_xdp, &in, XDP_TX, &want);
	run_prog(sk->progs.bl_host_xdp, &in, XDP_TX, &want);
	assert_int_equal(ring_read(0), 2);
}

static void expect_refused(const struct desc *d, enum bl_reason why)
{
	struct frame in;

	build(&in, d);
	run_prog(sk->progs.bl_host_xdp, &in, XDP_DROP, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why }));
	run_prog(sk->progs.bl_host_relayed, &in, XDP_DROP, &in);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, why }, { BL_HC_INGRESS, BL_R_BY_CONTROLLER }));
}

static void recall__refused(void **state)
{
	struct desc d = recall_frame(false);
	struct bl_ep_slot e;
	struct frame in, want;
	__u32 k, fit = 4096 / (256 + 8);

	(void)state;
	feed_beacon(T0 - 1000);
	set_lives(RECALL_LIFE);
	d.body = sizeof(struct bl_recall) - 1;
	expect_refused(&d, BL_R_BAD_LENGTH);
	d.body = sizeof(struct bl_recall);
	d.dport = BL_PORT_BASE + 8;
	expect_refused(&d, BL_R_NO_ENDPOINT);
	d.dport = FROM;
	set_lives(RECALL_LIFE ^ 0x100);
	expect_refused(&d, BL_R_WRONG_LIFE);
	set_lives(RECALL_LIFE);
	map_get(sk->maps.eps, 9, &e);
	e.active = BL_EP_DEAD;
	map_put(sk->maps.eps, 9, &e);
	expect_refused(&d, BL_R_NO_ENDPOINT);
	e.active = BL_EP_ACTIVE;
	map_put(sk->maps.eps, 9, &e);
	expect_nothing_stored();
	/* a full ring: the sender repeats the RECALL */
	new_ring(0, 4096);
	build(&in, &d);
	answer_to(&d, &want);
	for (k = 0; k < fit; k++)
		run_prog(sk->progs.bl_host_xdp, &in, XDP_TX, &want);
	counts_take(sk->maps.counts, counted);
	expect_refused(&d, BL_R_RING_FULL);
	assert_int_equal(ring_read(0), fit);
	run_prog(sk->progs.bl_host_xdp, &in, XDP_TX, &want);
}

/*
 * An endpoint that left in order has nothing to remove, and its host answers for it. An endpoint
 * that died is announced by the controller instead.
 */
static void recall__for_who_left(void **state)
{
	struct desc d = recall_frame(false);
	struct frame in, want;
	struct bl_ep_slot e;

	(void)state;
	feed_beacon(T0 - 1000);
	set_lives(RECALL_LIFE);
	map_get(sk->maps.eps, 9, &e);
	e.left = e.life;
	e.life = 0;
	e.active = BL_EP_FREE;
	map_put(sk->maps.eps, 9, &e);
	build(&in, &d);
	answer_to(&d, &want);
	run_prog(sk->progs.bl_host_xdp, &in, XDP_TX, &want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_LEFT }));
	run_prog(sk->progs.bl_host_relayed, &in, XDP_TX, &want);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ BL_HC_INGRESS, BL_R_LEFT }, { BL_HC_INGRESS, BL_R_BY_CONTROLLER }));
	expect_nothing_stored();
	e.left ^= 1;
	map_put(sk->maps.eps, 9, &e);
	expect_refused(&d, BL_R_NO_ENDPOINT);
}

/* A RECALL wakes a sleeper at once, like every frame that is not a message. */
static void recall__wakes(void **state)
{
	struct desc d = recall_frame(false);
	struct frame in, want;
	struct wakes w;

	(void)state;
	feed_beacon(T0 - 1000);
	set_lives(RECALL_LIFE);
	wake_get(&w);
	w.ep[0].until = w.ep[0].until_c = BL_WAKE_ON_DATA;
	wake_put(&w);
	build(&in, &d);
	answer_to(&d, &want);
	run_prog(sk->progs.bl_host_xdp, &in, XDP_TX, &want);
	assert_true(is_woken(0, 5000));
}

/* ---- between endpoints of one host, and from processes ---- */

static void run_local(const struct desc *d, enum bl_reason why)
{
	struct frame in, out;

	build(&in, d);
	assert_int_equal(run_tc(sk->progs.bl_host_local, &in, &out, 0), TC_ACT_SHOT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LOCAL, why }));
}

/* No frame is sent: the RECALL is stored in the receiver's ring and the answer in the sender's. */
static void local__answered(void **state)
{
	struct desc d = recall_frame(false), a;
	__u32 k, fit = 4096 / (256 + 8);
	struct bl_ep_slot e;

	(void)state;
	feed_beacon(T0 - 1000);
	set_lives(RECALL_LIFE);
	host_addr(d.saddr, false, 1);
	d.sport = FROM;
	d.dport = BL_PORT_BASE + 10;
	a = d;
	a.op = BL_OP_RECALLED;
	a.sport = d.dport;
	a.dport = d.sport;
	memcpy(a.saddr, d.daddr, 16);
	memcpy(a.daddr, d.saddr, 16);
	run_local(&d, BL_R_RECALLED);
	expect_stored(1, &d, 0);
	expect_stored(0, &a, 0);
	expect_nothing_stored();
	/* another life, which left in order or did not; a body that is too short */
	set_lives(RECALL_LIFE ^ 1);
	run_local(&d, BL_R_WRONG_LIFE);
	expect_nothing_stored();
	map_get(sk->maps.eps, 10, &e);
	e.left = RECALL_LIFE;
	map_put(sk->maps.eps, 10, &e);
	run_local(&d, BL_R_LEFT);
	expect_stored(0, &a, 0);
	expect_nothing_stored();
	e.left = 0;
	map_put(sk->maps.eps, 10, &e);
	set_lives(RECALL_LIFE);
	d.body--;
	run_local(&d, BL_R_BAD_LENGTH);
	d.body++;
	expect_nothing_stored();
	/* no room for the answer: the RECALL is only stored, and its sender repeats it */
	new_ring(0, 4096);
	for (k = 0; k < fit; k++)
		run_local(&d, BL_R_RECALLED);
	run_local(&d, BL_R_STORED);
	assert_int_equal(ring_read(0), fit);
	assert_int_equal(ring_read(1), fit + 1);
	/* no room for the RECALL: no answer either */
	new_ring(1, 4096);
	for (k = 0; k < fit; k++) {
		run_local(&d, BL_R_RECALLED);
		ring_read(0);
	}
	run_local(&d, BL_R_RING_FULL);
	assert_int_equal(ring_read(0), 0);
}

/* A process may not send a RECALLED; only the programs do. */
static void egress__answer_of_a_process(void **state)
{
	struct __sk_buff ctx = { .mark = BEACON_MARK };
	struct desc d = data_frame(1, 0, 0, 0);
	struct frame in, out;
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = in.p, .data_out = out.p,
		    .data_size_out = sizeof(out.p), .ctx_in = &ctx, .ctx_size_in = sizeof(ctx),
		    .repeat = 1);

	(void)state;
	d.sport = FROM;
	d.op = BL_OP_RECALLED;
	build(&in, &d);
	o.data_size_in = in.n;
	counts_take(sk->maps.counts, counted);
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(sk->progs.bl_host_egress), &o), 0);
	assert_int_equal(o.retval, TC_ACT_SHOT);
	ran_on(in.n);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_EGRESS, BL_R_SENT_ACK }));
	run_local(&d, BL_R_SENT_ACK);
	expect_nothing_stored();
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_RECALL, BY_RECALL | BY_COMMIT | BY_HOST | BY_TC);
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
		CASE(recall__becomes_the_answer),
		CASE(recall__of_what_is_below_C),
		CASE(recall__refused),
		CASE(recall__for_who_left),
		CASE(recall__wakes),
		CASE(local__answered),
		CASE(egress__answer_of_a_process),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
