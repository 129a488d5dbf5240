// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * PL2 at the switch: an RSV becomes a GRT, compared byte for byte, with every allocator. RSVs are
 * refused and repeated, promises released and lapsed; data comes with and without a promise;
 * answers and copies go through the queues of metered ports. After every step the books must
 * balance. Hosts are on ports 0, 1 and 3; port 2 leads out of the rack.
 */
#include "tests/prog/switch/switch_util.h"
#include "tests/prog/pace_util.h"
#include "tests/prog/switch/pl2_switch_frames.h"
#include "maps/pl2_switch_abi.h"

#define SLOT   12304u /* 1538 byte times at 1 Gbit/s */
#define SHIFT  3
#define FAR_NS 1000000000ULL
#define QUEUES BL_PORT_QUEUE(NPORTS, 0)

static struct bl_rsv_cfg rc;
static struct bl_rsv all, all_before;
static struct bl_rsv_pair pairs[1 << 2 * SHIFT], pairs_before[1 << 2 * SHIFT];

static void set_rc(void)
{
	map_put(sk->maps.rsv_cfg, 0, &rc);
}

static void rsv_take(void)
{
	__u32 i;

	map_get(sk->maps.rsv, 0, &all);
	for (i = 0; i < 1 << 2 * SHIFT; i++)
		map_get(sk->maps.rsv_pairs, i, &pairs[i]);
}

static struct bl_rsv_pair *pair_of(__u32 in, __u32 out)
{
	return &pairs[in << SHIFT | out];
}

static void expect_balance(void)
{
	__u32 i, o;

	rsv_take();
	for (i = 0; i < NPORTS; i++) {
		__u64 ins = 0, outs = 0;

		for (o = 0; o < NPORTS; o++) {
			ins += pair_of(i, o)->bytes;
			outs += pair_of(o, i)->bytes;
		}
		assert_int_equal(all.port[i].in.bytes, ins);
		assert_int_equal(all.port[i].out.bytes, outs);
		assert_int_equal(all.port[i].granted, all.port[i].used + all.port[i].lapsed +
							      all.port[i].released + ins);
	}
}

static int rsv_setup(void **state)
{
	static struct bl_rsv hosts;
	static const struct bl_rsv_pair nothing;
	__u32 i;

	switch_setup(state);
	cfg.admission = 1;
	set_cfg();
	rc = (struct bl_rsv_cfg){ .on = 1,
				  .ns_q20 = 8 << 20,
				  .limit_bytes = 16 * 1538,
				  .refuse_ns = 10 * SLOT,
				  .far_ns = FAR_NS,
				  .lapse_ns = FAR_NS,
				  .pair_shift = SHIFT };
	set_rc();
	/*
	 * All hosts count as hosts that reserve, however long a test takes from the RSV to the
	 * data.
	 */
	for (i = 0; i < NPORTS; i++)
		hosts.port[i].asked_ns = ~0ULL >> 1;
	map_put(sk->maps.rsv, 0, &hosts);
	for (i = 0; i < 1 << 2 * SHIFT; i++)
		map_put(sk->maps.rsv_pairs, i, &nothing);
	pace_setup(sk->maps.port_due, 64, QUEUES);
	return 0;
}

static struct rsv rsv(__u32 from, __u32 to, __u32 bytes, __u32 seq)
{
	struct rsv r = { .op = BL_OP_RSV, .seq = seq, .bytes = bytes, .cookie = 0x1234 };

	host_mac(r.src, from);
	host_mac(r.mac, to);
	return r;
}

/* The output where the next answer also takes back what is left of the previous burst; 0: none. */
static __u32 lapsed_output;

/*
 * Runs an RSV that arrives on @port. It must go back as a GRT with @flags and be counted for @why.
 * Stores the waits that the GRT carries.
 */
static void expect_answer(__u32 port, const struct rsv *r, __u8 flags, enum bl_reason why,
			  __u32 *in_wait, __u32 *out_wait)
{
	struct rsv want = *r;
	struct frame in, out, expect;

	build_rsv(&in, r);
	run_on(port, &in, &out, XDP_REDIRECT);
	waits_of(&out, in_wait, out_wait);
	want.op = BL_OP_GRT;
	want.flags = flags;
	want.in = *in_wait;
	want.out = *out_wait;
	memcpy(want.src, ports[port].mac, 6);
	build_rsv(&expect, &want);
	same_frame(&out, &expect);
	if (lapsed_output)
		counts_moved(sk->maps.counts, counted, 1,
			     WANT({ port, why }, { lapsed_output, BL_R_RSV_LAPSED }));
	else
		counts_moved(sk->maps.counts, counted, 1, WANT({ port, why }));
	lapsed_output = 0;
	expect_balance();
}

/* As expect_answer(), for waits that are known to the nanosecond (allocator two-counter). */
static void expect_grant(__u32 port, const struct rsv *r, __u8 flags, __u32 in_wait, __u32 out_wait)
{
	__u32 in, out;

	expect_answer(port, r, flags, BL_R_RSV_GRANTED, &in, &out);
	assert_int_equal(in, in_wait);
	assert_int_equal(out, out_wait);
}

/*
 * Runs an RSV that must be answered without a promise: nothing changes in the books except the
 * count of refusals.
 */
static void expect_refusal(__u32 port, const struct rsv *r, enum bl_reason why)
{
	__u32 in, out, p;

	rsv_take();
	all_before = all;
	memcpy(pairs_before, pairs, sizeof(pairs));
	expect_answer(port, r, BL_GRT_REFUSED, why, &in, &out);
	assert_int_equal(in | out, 0);
	assert_memory_equal(pairs, pairs_before, sizeof(pairs));
	for (p = 0; p < NPORTS; p++) {
		all.port[p].refused = all_before.port[p].refused;
		all.port[p].sweep = all_before.port[p].sweep;
		all.port[p].in.base = all_before.port[p].in.base;
		all.port[p].out.base = all_before.port[p].out.base;
	}
	assert_memory_equal(&all, &all_before, sizeof(all));
}

/* Runs a link frame that must end at the switch: dropped and unchanged. */
static void expect_end(__u32 port, const struct rsv *r, enum bl_reason why)
{
	struct frame in, out;

	build_rsv(&in, r);
	run_on(port, &in, &out, XDP_DROP);
	same_frame(&out, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ port, why }));
	expect_balance();
}

/* ---- RSV ---- */

static void rsv__two_counter(void **state)
{
	struct rsv a = rsv(0, 1, 3076, 7), b = rsv(3, 1, 1538, 9), c = rsv(0, 3, 60, 8);
	__u8 tags;

	(void)state;
	for (tags = 0; tags < 2; tags++) {
		rsv_setup(state);
		a.tags = b.tags = c.tags = tags;
		expect_grant(0, &a, 0, 0, 0);
		expect_grant(3, &b, 0, 0, 2 * SLOT);
		expect_grant(0, &c, 0, 2 * SLOT, 0);
		assert_int_equal(pair_of(0, 1)->bytes, 3076);
		assert_int_equal(pair_of(3, 1)->bytes, 1538);
		assert_int_equal(pair_of(0, 3)->bytes, 60);
		assert_int_equal(pair_of(0, 1)->seq, 7);
		assert_int_equal(all.port[0].grants, 2);
	}
}

static void rsv__joint_and_bitmap(void **state)
{
	struct rsv a = rsv(0, 1, 16 * 1538, 7), b = rsv(3, 1, 1538, 9);
	enum bl_allocator k;
	__u32 in, out;

	(void)state;
	for (k = BL_ALLOC_JOINT; k < BL_ALLOC_COUNT; k++) {
		__u64 t0, t1, behind;

		rsv_setup(state);
		rc.allocator = k;
		rc.ns_q20 = 800 << 20; /* 10 Mbit/s: a slot is longer than this test takes */
		set_rc();
		t0 = mono_now();
		expect_answer(0, &a, 0, BL_R_RSV_GRANTED, &in, &out);
		t1 = mono_now();
		assert_int_equal(in, out);
		assert_true(in <= (k == BL_ALLOC_JOINT ? 0 : 100 * SLOT));
		assert_true(pair_of(0, 1)->in_ns >= t0 + in && pair_of(0, 1)->in_ns <= t1 + in);
		t0 = mono_now();
		expect_answer(3, &b, 0, BL_R_RSV_GRANTED, &in, &out);
		t1 = mono_now();
		assert_int_equal(in, out);
		/*
		 * Whatever time passes between the two RSVs: with "joint", a promise whose data did
		 * not arrive in time occupies the output from now on; with "bitmap", the next slot
		 * is the first one from now on.
		 */
		behind = k == BL_ALLOC_JOINT
				 ? t1 + 1600 * SLOT
				 : bl_max64(pair_of(0, 1)->in_ns + 1600 * SLOT, t1 + 100 * SLOT);
		assert_true(pair_of(3, 1)->in_ns >= pair_of(0, 1)->in_ns + 1600 * SLOT &&
			    pair_of(3, 1)->in_ns <= behind);
		assert_true(pair_of(3, 1)->in_ns >= t0 + in && pair_of(3, 1)->in_ns <= t1 + in);
		if (k == BL_ALLOC_JOINT)
			assert_int_equal(all.port[3].in.free_ns, all.port[1].out.free_ns);
		else
			assert_int_equal(pair_of(0, 1)->slots, 16);
	}
}

static void rsv__repeated(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7);
	__u32 in, out;

	(void)state;
	expect_grant(3,
		     &(struct rsv){ .op = BL_OP_RSV,
				    .src = { 2, 0, 0, 0, 0, 3 },
				    .mac = { 2, 0, 0, 0, 0, 1 },
				    .seq = 1,
				    .bytes = 16 * 1538 },
		     0, 0, 0);
	expect_grant(0, &a, 0, 0, 16 * SLOT);
	a.cookie = 0x5678; /* the host's own value, ignored by the switch */
	expect_answer(0, &a, 0, BL_R_RSV_REPEATED, &in, &out);
	assert_int_equal(in, 0);
	assert_true(out <= 16 * SLOT);
	assert_int_equal(all.port[0].granted, 1538);
	/* The next RSV takes back what is left of the previous promise. */
	a.seq++;
	lapsed_output = 1;
	expect_grant(0, &a, 0, 0, 16 * SLOT);
	assert_int_equal(all.port[0].lapsed, 1538);
	assert_int_equal(pair_of(0, 1)->bytes, 1538);
}

static void rsv__early(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7), b;
	__u32 in, out;

	(void)state;
	a.flags = BL_RSV_EARLY;
	expect_grant(0, &a, BL_GRT_PASSED, 0, 0);
	expect_answer(0, &a, BL_GRT_PASSED, BL_R_RSV_REPEATED, &in, &out);
	a.flags = 0; /* A repeat without the flag gets the same answer as the first RSV. */
	expect_answer(0, &a, BL_GRT_PASSED, BL_R_RSV_REPEATED, &in, &out);
	assert_int_equal(pair_of(0, 1)->early, 1538);
	/* T (refuse_ns) is ten slots. */
	b = rsv(3, 1, 10 * 1538, 1);
	expect_grant(3, &b, 0, 0, SLOT);
	a = rsv(0, 1, 60, 8);
	a.flags = BL_RSV_EARLY;
	lapsed_output = 1;
	expect_grant(0, &a, BL_GRT_PASSED, 0, 10 * SLOT);
	assert_int_equal(pair_of(0, 1)->early, 60);
	b.seq++;
	b.bytes++;
	lapsed_output = 1;
	expect_grant(3, &b, 0, 0, 8 * 60);
	a.seq++;
	lapsed_output = 1;
	expect_grant(0, &a, 0, 0, 10 * SLOT + 8);
	assert_int_equal(pair_of(0, 1)->early, 0);
}

static void rsv__refused(void **state)
{
	static const __u8 nobody[6] = { 2, 0, 0, 9, 9, 9 }, zero[6];
	struct rsv a = rsv(0, 1, 1538, 7);
	__u32 in, out;

	(void)state;
	rc.far_ns = 2 * SLOT;
	set_rc();
	a.bytes = 3 * 1538;
	expect_grant(0, &a, 0, 0, 0);
	a = rsv(0, 3, 1, 8); /* the input has no time left */
	expect_refusal(0, &a, BL_R_RSV_REFUSED);
	a = rsv(3, 1, 1, 8); /* the output has none left */
	expect_refusal(3, &a, BL_R_RSV_REFUSED);
	a = rsv(0, 3, 0, 8);
	expect_refusal(0, &a, BL_R_RSV_BAD);
	a.bytes = 16 * 1538 + 1;
	expect_refusal(0, &a, BL_R_RSV_BAD);
	a.bytes = ~0u;
	expect_refusal(0, &a, BL_R_RSV_BAD);
	/* Destinations that nothing can be reserved for. */
	a = rsv(0, 0, 1538, 8);
	expect_refusal(0, &a, BL_R_RSV_BAD);
	a = rsv(0, 3, 1538, 8);
	memcpy(a.mac, nobody, 6);
	expect_refusal(0, &a, BL_R_RSV_BAD);
	memcpy(a.mac, zero, 6);
	expect_refusal(0, &a, BL_R_RSV_BAD);
	memcpy(a.mac, nobody, 6);
	set_fdb(nobody, NPORTS); /* a port that is not in use */
	expect_refusal(0, &a, BL_R_RSV_BAD);
	set_fdb(nobody, 70000);
	expect_refusal(0, &a, BL_R_RSV_BAD);
	/* The switch has more ports than there is room for pairs. */
	rc.pair_shift = 1;
	set_rc();
	a = rsv(0, 3, 1538, 8);
	expect_refusal(0, &a, BL_R_RSV_BAD);
	a = rsv(3, 0, 1538, 8);
	expect_refusal(3, &a, BL_R_RSV_BAD);
	rc.pair_shift = SHIFT;
	set_rc();
	/* Hosts behind a router do not know the Ethernet address of the destination. */
	cfg.forward = BL_FWD_L3;
	set_cfg();
	a = rsv(0, 3, 1538, 8);
	expect_answer(0, &a, BL_GRT_REFUSED | BL_GRT_OFF, BL_R_RSV_BAD, &in, &out);
	assert_int_equal(in | out, 0);
}

static void rsv__off(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7);
	__u32 in, out;

	(void)state;
	rc.on = 0;
	set_rc();
	expect_answer(0, &a, BL_GRT_REFUSED | BL_GRT_OFF, BL_R_RSV_OFF, &in, &out);
	assert_int_equal(in | out, 0);
	a.op = BL_OP_RELEASE;
	expect_end(0, &a, BL_R_RSV_OFF);
	assert_int_equal(all.port[0].refused, 0);
}

static void rsv__not_a_switchs(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7);
	struct frame in, out;

	(void)state;
	a.op = BL_OP_GRT;
	expect_end(0, &a, BL_R_BAD_OPCODE);
	a.op = BL_OP_RSV;
	a.tags = 1;
	build_rsv(&in, &a);
	in.n--;
	run_on(0, &in, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_SHORT }));
	expect_balance();
}

static void rsv__no_device(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7);
	struct frame in, out;
	__u32 key = 0;

	(void)state;
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(sk->maps.sw_tx), &key), 0);
	build_rsv(&in, &a);
	run_on(0, &in, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_REDIRECT_FAILED }));
	expect_balance(); /* The promise was made: a repeated RSV gets it. */
	assert_int_equal(pair_of(0, 1)->bytes, 1538);
}

/* ---- the end of promises ---- */

static void lapse__swept_by_others(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7), b = rsv(3, 1, 60, 7);
	struct frame in, out;
	__u32 i;

	(void)state;
	rc.lapse_ns = 1000;
	set_rc();
	expect_grant(0, &a, 0, 0, 0);
	usleep(1000);
	/*
	 * Each RSV checks one pair of its output for a lapse. The first one checked input 0, before
	 * that had a promise; the next ones check 1, 2 and 3, and then 0 again.
	 */
	rc.lapse_ns = FAR_NS;
	set_rc();
	for (i = 1; i < NPORTS; i++, b.seq++) {
		lapsed_output = i > 1;
		expect_grant(3, &b, 0, 0, SLOT);
		assert_int_equal(all.port[1].sweep, i + 1);
		assert_int_equal(pair_of(0, 1)->bytes, 1538);
	}
	build_rsv(&in, &b);
	run_on(3, &in, &out, XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ 3, BL_R_RSV_GRANTED }, { 1, BL_R_RSV_LAPSED }));
	expect_balance();
	assert_int_equal(all.port[0].lapsed, 1538);
	assert_int_equal(pair_of(0, 1)->bytes, 0);
	/*
	 * A pair's own lapsed promise is taken back at once, wherever the sweep is; an RSV with the
	 * same number then gets a new promise.
	 */
	a = rsv(0, 3, 1538, 9);
	rc.lapse_ns = 1000;
	set_rc();
	expect_grant(0, &a, 0, 0, 0);
	usleep(1000);
	build_rsv(&in, &a);
	run_on(0, &in, &out, XDP_REDIRECT);
	counts_moved(sk->maps.counts, counted, 1,
		     WANT({ 0, BL_R_RSV_GRANTED }, { 3, BL_R_RSV_LAPSED }));
	expect_balance();
	assert_int_equal(all.port[0].lapsed, 2 * 1538);
}

static void release__cases(void **state)
{
	struct rsv a = rsv(0, 1, 3076, 7), give = rsv(1, 0, 1538, 7);
	static const __u8 nobody[6] = { 2, 0, 0, 9, 9, 9 };

	(void)state;
	give.op = BL_OP_RELEASE;
	expect_end(1, &give, BL_R_RELEASE_BAD);
	expect_grant(0, &a, 0, 0, 0);
	expect_end(3, &give, BL_R_RELEASE_BAD); /* Only the receiver may release a promise. */
	expect_end(0, &give, BL_R_RELEASE_BAD);
	give.seq--; /* the number of an earlier burst */
	expect_end(1, &give, BL_R_RELEASE_BAD);
	give.seq++;
	expect_end(1, &give, BL_R_RELEASED);
	assert_int_equal(all.port[0].released, 1538);
	give.bytes = 0;
	expect_end(1, &give, BL_R_RELEASE_BAD);
	give.bytes = 99999;
	expect_end(1, &give, BL_R_RELEASED);
	assert_int_equal(all.port[0].released, 3076);
	expect_end(1, &give, BL_R_RELEASE_BAD);
	memcpy(give.mac, nobody, 6);
	expect_end(1, &give, BL_R_RELEASE_BAD);
	set_fdb(nobody, 9); /* a port without room for its pairs */
	expect_end(1, &give, BL_R_RELEASE_BAD);
}

/* ---- data ---- */

static void send_data(__u32 in, const struct frame *f, enum bl_reason why, const struct frame *want)
{
	struct frame out;

	run_on(in, f, &out,
	       why == BL_R_PASSED_ON || why == BL_R_FORWARDED ? XDP_REDIRECT
	       : why == BL_R_NOT_OURS                         ? XDP_PASS
							      : XDP_DROP);
	same_frame(&out, want);
	counts_moved(sk->maps.counts, counted, 1, WANT({ in, why }));
	expect_balance();
}

static void data__promised(void **state)
{
	struct rsv a = rsv(0, 1, 1538 + 84, 7);
	struct frame full, small;

	(void)state;
	raw_frame(&full, 0, 1, 1514, 1);
	raw_frame(&small, 0, 1, 60, 2);
	send_data(0, &small, BL_R_UNRESERVED, &small);
	expect_grant(0, &a, 0, 0, 0);
	send_data(0, &full, BL_R_PASSED_ON, &full);
	send_data(0, &full, BL_R_UNRESERVED, &full);
	send_data(0, &small, BL_R_PASSED_ON, &small);
	send_data(0, &small, BL_R_UNRESERVED, &small);
	assert_int_equal(all.port[0].used, 1622);
	/* Nothing was promised towards port 3. */
	raw_frame(&small, 0, 3, 60, 2);
	send_data(0, &small, BL_R_UNRESERVED, &small);
	rc.on = 0;
	set_rc();
	send_data(0, &small, BL_R_PASSED_ON, &small);
	/* If there is no room for the pair, nothing is promised. */
	rc.on = 1;
	rc.pair_shift = 1;
	set_rc();
	send_data(0, &small, BL_R_UNRESERVED, &small);
}

/*
 * A datagram of 42 bytes, for which the host reserves by that length, arrives as the NIC padded it.
 * Then the same for a burst of four ACKs of an application.
 */
static void data__padded_by_the_nic(void **state)
{
	struct rsv a = rsv(0, 1, bl_wire_bytes(42), 7);
	struct frame f;
	__u32 i;

	(void)state;
	raw_frame(&f, 0, 1, 60, 1);
	expect_grant(0, &a, 0, 0, 0);
	send_data(0, &f, BL_R_PASSED_ON, &f);
	send_data(0, &f, BL_R_UNRESERVED, &f);
	a = rsv(0, 1, 4 * bl_wire_bytes(54), 8);
	expect_grant(0, &a, 0, 0, 0);
	for (i = 0; i < 4; i++)
		send_data(0, &f, BL_R_PASSED_ON, &f);
	send_data(0, &f, BL_R_UNRESERVED, &f);
}

/*
 * Hosts of another policy under a switch that makes reservations, and a host that reserves beside
 * them.
 */
static void data__policies_apart(void **state)
{
	static const __u64 asked[] = { 0, 1 };
	struct rsv a = rsv(0, 1, 1538, 7);
	struct frame f, early, out;
	__u32 i;

	(void)state;
	raw_frame(&f, 0, 1, 1514, 1);
	early = f;
	early.p[6] |= BL_EARLY_MAC0;
	for (i = 0; i < 2; i++) {
		rsv_take();
		all.port[0].asked_ns = asked[i];
		map_put(sk->maps.rsv, 0, &all);
		run_on(0, &f, &out, XDP_REDIRECT);
		same_frame(&out, &f);
		counts_moved(sk->maps.counts, counted, 1,
			     WANT({ 0, BL_R_PASSED_ON }, { 0, BL_R_POLICY_APART }));
		run_on(0, &early, &out, XDP_REDIRECT);
		counts_moved(sk->maps.counts, counted, 1,
			     WANT({ 0, BL_R_PASSED_ON }, { 0, BL_R_POLICY_APART }));
	}
	assert_int_equal(all.port[0].used, 0);
	/* From its first RSV on, a host may send only what it was promised. */
	expect_grant(0, &a, 0, 0, 0);
	rsv_take();
	assert_true(all.port[0].asked_ns > 1);
	all.port[0].asked_ns = ~0ULL >> 1;
	map_put(sk->maps.rsv, 0, &all);
	send_data(0, &f, BL_R_PASSED_ON, &f);
	send_data(0, &f, BL_R_UNRESERVED, &f);
}

static void data__unsolicited(void **state)
{
	struct rsv a = rsv(0, 1, 3076, 7);
	struct frame f, plain;

	(void)state;
	raw_frame(&plain, 0, 1, 1514, 1);
	f = plain;
	f.p[6] |= BL_EARLY_MAC0;
	send_data(0, &f, BL_R_EARLY_REFUSED, &f);
	expect_grant(0, &a, 0, 0, 0);
	send_data(0, &f, BL_R_EARLY_REFUSED, &f);
	a = rsv(0, 1, 3076, 8);
	a.flags = BL_RSV_EARLY;
	lapsed_output = 1;
	expect_grant(0, &a, BL_GRT_PASSED, 0, 0);
	send_data(0, &f, BL_R_PASSED_ON, &plain);
	send_data(0, &plain, BL_R_PASSED_ON, &plain);
	send_data(0, &f, BL_R_EARLY_REFUSED, &f);
	send_data(0, &plain, BL_R_UNRESERVED, &plain);
}

static void data__never_subject_to_it(void **state)
{
	struct desc d = data_frame(0, 1, T0, T0);
	struct frame f, want;

	(void)state;
	/* ARP */
	raw_frame(&f, 0, 1, 60, 1);
	f.p[12] = 0x08;
	f.p[13] = 0x06;
	send_data(0, &f, BL_R_PASSED_ON, &f);
	/* Broadcast frames are left to the kernel. */
	raw_frame(&f, 0, 1, 60, 1);
	memset(f.p, 0xff, 6);
	send_data(0, &f, BL_R_NOT_OURS, &f);
	/* Data from outside the rack needs no promise. */
	rsv_take();
	all.port[2].outside = 1;
	map_put(sk->maps.rsv, 0, &all);
	raw_frame(&f, 2, 1, 1514, 1);
	send_data(2, &f, BL_R_PASSED_ON, &f);
	f.p[6] |= BL_EARLY_MAC0; /* a bit of the router's own address */
	send_data(2, &f, BL_R_PASSED_ON, &f);
	raw_frame(&f, 1, 2, 1514, 1);
	/* Data that leaves the rack comes from a host of the rack. */
	send_data(1, &f, BL_R_UNRESERVED, &f);
	/* Ordered frames have a class of their own and need no promise. */
	all_live(T0 - 1000);
	build(&f, &d);
	d = sent(d, T0 - 1000, T0 - 1000);
	build(&want, &d);
	send_data(0, &f, BL_R_FORWARDED, &want);
}

/* ---- metered ports ---- */

static void meter_port(__u32 port)
{
	ports[port].metered = 1;
	map_put(sk->maps.sw_ports, port, &ports[port]);
}

/* Fails unless @want is the only frame in the CONTROL queue of @port. */
static void expect_queued(__u32 port, const struct rsv *want)
{
	struct bl_queue q = queue_get(BL_PORT_QUEUE(port, BL_CL_CONTROL));
	struct bl_slot *s = malloc(sizeof(*s));
	struct frame f;

	assert_non_null(s);
	build_rsv(&f, want);
	assert_int_equal(q.tail - q.head, 1);
	map_get(sk->maps.slots, BL_RING_SLOT(q.ring[q.head & (BL_RING - 1)]), s);
	assert_int_equal(s->len, f.n);
	assert_memory_equal(s->data, f.p, f.n);
	free(s);
}

static void metered__answer_and_copy(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7), answer = a, copy = a;
	struct frame in, out;
	__u8 tags;

	(void)state;
	for (tags = 0; tags < 2; tags++) {
		rsv_setup(state);
		meter_port(0);
		meter_port(1);
		a = rsv(0, 1, 1538, 7);
		a.tags = tags;
		answer = a;
		answer.op = BL_OP_GRT;
		memcpy(answer.src, ports[0].mac, 6);
		copy = a;
		copy.op = BL_OP_GRT;
		copy.flags = BL_GRT_COPY;
		host_mac(copy.mac, 0);
		build_rsv(&in, &a);
		run_on(0, &in, &out, XDP_DROP);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_RSV_GRANTED }));
		expect_balance();
		expect_queued(0, &answer);
		expect_queued(1, &copy);
		assert_int_equal(balanced(QUEUES), 2);
		/* After a repeated RSV the receiver gets no second copy. */
		run_on(0, &in, &out, XDP_DROP);
		counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_RSV_REPEATED }));
		assert_int_equal(balanced(QUEUES), 3);
	}
}

/* The frames in the output's queue are sent first. */
static void metered__after_the_queue(void **state)
{
	const __u32 key = BL_PORT_QUEUE(1, BL_CL_DATA);
	struct rsv a = rsv(0, 1, 1538, 7), b = rsv(3, 1, 1538, 9);
	struct bl_queue q = queue_get(key);

	(void)state;
	q.wire = 2 * 1538;
	map_put(sk->maps.queues, key, &q);
	/* The port is not metered, so the length of its queue does not count. */
	expect_grant(0, &a, 0, 0, 0);
	meter_port(1);
	expect_grant(3, &b, 0, 0, 3 * SLOT);
}

static void metered__copy_only(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7), copy = a;

	(void)state;
	meter_port(1);
	expect_grant(0, &a, 0, 0, 0);
	copy.op = BL_OP_GRT;
	copy.flags = BL_GRT_COPY;
	host_mac(copy.mac, 0);
	expect_queued(1, &copy);
	/* A refusal is not copied to the receiver. */
	rc.far_ns = 1;
	set_rc();
	a = rsv(3, 1, 1538, 7);
	expect_refusal(3, &a, BL_R_RSV_REFUSED);
	assert_int_equal(balanced(QUEUES), 1);
}

static void metered__no_room_for_the_answer(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7);
	struct frame in, out;

	(void)state;
	meter_port(0);
	queue_limit(BL_PORT_QUEUE(0, BL_CL_CONTROL), 0, 0, 0);
	build_rsv(&in, &a);
	run_on(0, &in, &out, XDP_DROP);
	counts_moved(sk->maps.counts, counted, 1, WANT({ 0, BL_R_QUEUE_FULL }));
	expect_balance();
	assert_int_equal(pair_of(0, 1)->bytes, 1538);
	assert_int_equal(balanced(QUEUES), 0);
}

static void metered__data(void **state)
{
	struct rsv a = rsv(0, 1, 1538, 7);
	struct frame f;

	(void)state;
	meter_port(1);
	raw_frame(&f, 0, 1, 1514, 1);
	send_data(0, &f, BL_R_UNRESERVED, &f);
	assert_int_equal(balanced(QUEUES), 0);
	expect_grant(0, &a, 0, 0, 0);
	send_data(0, &f, BL_R_QUEUED, &f);
	assert_int_equal(queue_get(BL_PORT_QUEUE(1, BL_CL_DATA)).bytes, 1514);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_RSV, BY_RSV | BY_SWITCH | BY_REGS | BY_PORT);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup(t, rsv_setup)
	const struct CMUnitTest tests[] = {
		CASE(rsv__two_counter),
		CASE(rsv__joint_and_bitmap),
		CASE(rsv__repeated),
		CASE(rsv__early),
		CASE(rsv__refused),
		CASE(rsv__off),
		CASE(rsv__not_a_switchs),
		CASE(rsv__no_device),
		CASE(lapse__swept_by_others),
		CASE(release__cases),
		CASE(data__promised),
		CASE(data__padded_by_the_nic),
		CASE(data__policies_apart),
		CASE(data__unsolicited),
		CASE(data__never_subject_to_it),
		CASE(metered__answer_and_copy),
		CASE(metered__after_the_queue),
		CASE(metered__copy_only),
		CASE(metered__no_room_for_the_answer),
		CASE(metered__data),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests_name("rsv", tests, net_up, NULL);
}
