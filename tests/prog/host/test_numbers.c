// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Numbers of destinations and flows are freed and given again, and no frame waits for ever
 * (core/queue/dest_core.h): thousands of destinations one after the other, hundreds of flows, a
 * policy that changes, and peers that do not answer.
 */
#include "core/queue/dest_core.h"
#include "core/fastpass/fastpass_core.h"
#include "core/pl2/pl2_core.h"
#include "tests/prog/host/top_util.h"

static struct bl_hold_dest hold_dest_get(__u32 n)
{
	struct bl_hold_dest d;

	map_get(sk->maps.hold_macs, n, &d);
	return d;
}

static __u32 number_of(const struct frame *f)
{
	struct bl_mac_key k = { 0 };
	__u32 n = 0;

	memcpy(k.mac, f->p, 6);
	return bpf_map_lookup_elem(bpf_map__fd(sk->maps.hold_dests), &k, &n) ? 0 : n;
}

/* Makes every destination due, so that the pacer examines all of them in its next turns. */
static void make_all_due(void)
{
	struct bl_due d = due_get();
	__u32 i;

	for (i = 1; i < BL_DESTS; i++)
		d.at[i] = 0;
	d.next = d.sweep_ns = 0;
	due_put(&d);
}

/* Runs turns until no more frames are sent. Returns how many were. */
static __u32 run_turns(void)
{
	struct frame out;
	__u32 n = 0, quiet = 0;

	while (quiet < 2 * BL_DESTS) {
		quiet++;
		if (turn(sk->progs.bl_host_pace, &out) == XDP_REDIRECT)
			n++, quiet = 0;
	}
	return n;
}

/* Makes every held frame old, and the last frame of every destination as well. */
static void age_all_frames(void)
{
	static __u8 s[sizeof(struct bl_slot)];
	__u32 i;

	for (i = 0; i < HOLD_SLOTS; i++) {
		map_get(sk->maps.slots, i, s);
		((struct bl_slot *)(void *)s)->at_ns = 1;
		map_put(sk->maps.slots, i, s);
	}
	for (i = 1; i < BL_DESTS; i++) {
		struct bl_hold_dest d = hold_dest_get(i);

		d.left_ns = d.used_ns = 1;
		map_put(sk->maps.hold_macs, i, &d);
	}
}

static void dests__ten_thousand(void **state)
{
	struct bl_mac_key key, next;
	struct frame f;
	__u32 i, n = 0;

	(void)state;
	set_policy(BL_POLICY_NONE);
	for (i = 0; i < 10000; i++) {
		raw_frame(&f, 1, 1000 + i, 60, i);
		run_hold(&f, BL_R_HELD);
		expect_paced(&f);
	}
	assert_int_equal(balanced(QUEUES), 0);
	assert_true(due_get().given < BL_DESTS);
	for (i = 0; !bpf_map_get_next_key(bpf_map__fd(sk->maps.hold_dests), i ? &key : NULL, &next);
	     i++) {
		key = next;
		n++;
	}
	assert_in_range(n, 1, BL_DESTS - 1);
}

static void policy__after_255_flows(void **state)
{
	struct frame f;
	__u32 i;

	(void)state;
	for (i = 0; i < 255; i++)
		hold_frame((__u16)(1000 + i), 1, false);
	set_policy(BL_POLICY_NONE);
	make_all_due();
	i = run_turns();
	assert_int_equal(i, 255);
	counts_moved(sk->maps.counts, counted, i, WANT({ BL_HC_PACE, BL_R_PACED, i }));
	for (i = 0; i < 9; i++) {
		raw_frame(&f, 1, 3000 + i, 60, 1);
		run_hold(&f, BL_R_HELD);
		expect_paced(&f);
	}
}

/*
 * Under policy none, destinations that find no free number share one. The frames in its queue leave
 * under the next policy as well, since no permission can be requested for them.
 */
static void shared__leaves_under_any_policy(void **state)
{
	static const __u32 policies[] = { BL_POLICY_NONE, BL_POLICY_PL2, BL_POLICY_FASTPASS,
					  BL_POLICY_TOP };
	struct frame f, out;
	struct bl_due d;
	__u32 i, k;

	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		top_setup(state);
		set_policy(BL_POLICY_NONE);
		for (k = 0; k < BL_NUMBERS + 9; k++) {
			raw_frame(&f, 1, 1000 + k, 60, k);
			run_hold(&f, BL_R_HELD);
		}
		set_policy(policies[i]);
		d = due_get();
		for (k = 1; k < BL_HOLD_SHARED; k++)
			d.at[k] = BL_DUE_NEVER;
		d.at[BL_HOLD_SHARED] = d.next = 0;
		due_put(&d);
		for (k = BL_NUMBERS; k < BL_NUMBERS + 9; k++) {
			raw_frame(&f, 1, 1000 + k, 60, k);
			expect_paced(&f);
		}
		assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
		assert_int_equal(balanced(QUEUES), BL_NUMBERS);
	}
}

static void top__dead_peer(void **state)
{
	struct desc d;
	struct frame f;
	struct bl_top_tx t;
	__u32 i, sent;

	(void)state;
	for (i = 0; i < 280; i++)
		hold_frame((__u16)(1000 + i), 1, false);
	assert_true(bl_numbers_spare(&(struct bl_due){ .given = due_get().given }) >=
		    BL_TOP_RESERVE - 1);
	/* flows that find no free number share one */
	t = tx_get((__u32)due_get().given);
	assert_true(t.key.proto == BL_TOP_SHARED && !t.key.sport && !t.key.dport && t.frames > 1);
	/* a new flow to another host is not affected */
	d = app_frame(3, 1001, false);
	build(&f, &d);
	run_hold(&f, BL_R_HELD);
	t = tx_get((__u32)due_get().given);
	assert_int_equal(t.frames, 1);
	assert_int_equal(balanced(QUEUES), 281);
	/* no token arrives: each frame is dropped, and each flow ends */
	top.sync_ns = 1000000000;
	top.idle_ns = 0;
	set_top();
	make_all_due();
	sent = run_turns(); /* no frame is old enough yet, so only SYNCs are sent */
	counts_moved(sk->maps.counts, counted, sent, WANT({ BL_HC_PACE, BL_R_PACED, sent }));
	assert_int_equal(balanced(QUEUES), 281);
	age_all_frames();
	make_all_due();
	sent = run_turns();
	counts_moved(sk->maps.counts, counted, sent + 281,
		     WANT({ BL_HC_PACE, BL_R_PACED, sent }, { BL_HC_PACE, BL_R_HELD_LONG, 281 }));
	assert_int_equal(balanced(QUEUES), 0);
	{
		struct bl_due due = due_get();

		assert_int_equal(bl_numbers_spare(&due), BL_NUMBERS);
		assert_int_equal(top_page_get().freed, due.given);
	}
	assert_int_not_equal(bpf_map_get_next_key(bpf_map__fd(sk->maps.top_flows), NULL, f.p), 0);
}

/*
 * PL2: leaves one frame of 60 bytes in a burst whose RSV was sent, and one of 77 queued behind it.
 * Returns the number of their destination.
 */
static __u32 request_burst(void)
{
	struct frame f, out;

	hold.k_frames = 4;
	hold.k_bytes = 4 * 1514;
	hold.retry_ns = 1000000000;
	set_policy(BL_POLICY_PL2);
	raw_frame(&f, 1, 5, 60, 1);
	run_hold(&f, BL_R_HELD);
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_REDIRECT); /* the RSV */
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_PACE, BL_R_PACED }));
	raw_frame(&f, 1, 5, 77, 2);
	run_hold(&f, BL_R_HELD);
	return number_of(&f);
}

static void pl2__no_answer(void **state)
{
	struct bl_pl2_dest d;
	struct frame out;
	__u32 n;

	(void)state;
	n = request_burst();
	map_get(sk->maps.pl2_dests, n, &d);
	assert_int_equal(d.n, 1);
	pace_elsewhere = 1;
	assert_int_equal(balanced(QUEUES), 1);
	age_all_frames();
	make_all_due();
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 2, WANT({ BL_HC_PACE, BL_R_HELD_LONG, 2, 137 }));
	pace_elsewhere = 0;
	assert_int_equal(balanced(QUEUES), 0);
	map_get(sk->maps.pl2_dests, n, &d);
	assert_true(!d.n && BL_PL2_STATE(d.word) == BL_PL2_IDLE && BL_PL2_SEQ(d.word));
}

/*
 * The pacer itself did not run for a while, so the peer had no chance to answer: no frame is
 * dropped because of its age.
 */
static void pl2__pacer_stood_still(void **state)
{
	struct frame out;
	struct bl_due d;

	(void)state;
	request_burst();
	pace_elsewhere = 1;
	age_all_frames();
	d = due_get();
	assert_true(d.watch_ns > 0 && d.turn_ns > 0);
	d.turn_ns = 1;
	d.watch_ns = 1000000;
	due_put(&d);
	make_all_due();
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 0, NULL, 0);
	assert_int_equal(balanced(QUEUES), 1);
	d = due_get();
	assert_true(d.back_ns > 1 && d.turn_ns == d.back_ns);
	/* much later */
	d.back_ns = 1;
	due_put(&d);
	make_all_due();
	assert_int_equal(turn(sk->progs.bl_host_pace, &out), XDP_DROP);
	counts_moved(sk->maps.counts, counted, 2, WANT({ BL_HC_PACE, BL_R_HELD_LONG, 2, 137 }));
	pace_elsewhere = 0;
	assert_int_equal(balanced(QUEUES), 0);
}

/* Makes the state in which all numbers are given and none has been used for long. */
static __u32 use_up_numbers(struct frame *f)
{
	struct bl_due d;
	__u32 n;

	raw_frame(f, 1, 7, 60, 1);
	run_hold(f, BL_R_HELD);
	expect_paced(f);
	n = number_of(f);
	d = due_get();
	d.given = BL_NUMBERS;
	due_put(&d);
	age_all_frames();
	return n;
}

static void number__not_while_it_is_used(void **state)
{
	struct bl_hold_dest d;
	struct frame f;
	__u32 n;

	(void)state;
	set_policy(BL_POLICY_NONE);
	n = use_up_numbers(&f);
	d = hold_dest_get(n);
	d.pins = 1;
	map_put(sk->maps.hold_macs, n, &d);
	make_all_due();
	run_turns();
	assert_true(number_of(&f) == n && hold_dest_get(n).pins == 1 &&
		    hold_dest_get(n).used == BL_DEST_USED);
	d.pins = 0;
	d.used_ns = mono_now() + HOUR_NS; /* used just now */
	map_put(sk->maps.hold_macs, n, &d);
	make_all_due();
	run_turns();
	assert_int_equal(number_of(&f), n);
	age_all_frames();
	make_all_due();
	run_turns();
	assert_true(!number_of(&f) && hold_dest_get(n).pins == BL_DEST_CLOSED &&
		    hold_dest_get(n).used == BL_DEST_FREE);
	assert_int_equal(due_get().spare, 1);
	/* a program that looked the number up before it was freed uses it only now */
	d = hold_dest_get(n);
	d.pins++;
	map_put(sk->maps.hold_macs, n, &d);
	run_hold(&f, BL_R_HELD);
	assert_true(number_of(&f) == n && hold_dest_get(n).pins == 1 && !due_get().spare);
	expect_paced(&f);
}

static void number__the_daemon_forgets_first(void **state)
{
	struct bl_fp_dest d;
	struct frame f;
	__u32 n;

	(void)state;
	hold.slot_ns = 1000000;
	set_policy(BL_POLICY_NONE);
	n = use_up_numbers(&f);
	map_get(sk->maps.fp_dests, n, &d);
	d.endpoint = 3;
	d.want = BL_FP_WANT(9, 0);
	d.used = 4;
	d.idle = 1;
	map_put(sk->maps.fp_dests, n, &d);
	make_all_due();
	run_turns();
	map_get(sk->maps.fp_dests, n, &d);
	assert_int_equal(d.endpoint, BL_FP_RETIRED);
	assert_true(!number_of(&f) && hold_dest_get(n).used == BL_DEST_LEAVING && !due_get().spare);
	d.endpoint = BL_FP_UNKNOWN;
	map_put(sk->maps.fp_dests, n, &d);
	make_all_due();
	run_turns();
	assert_true(hold_dest_get(n).used == BL_DEST_FREE && due_get().spare == 1);
	map_get(sk->maps.fp_dests, n, &d);
	assert_int_equal(bl_fp_under_way(&d), 0);
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_NUMBERS, BY_NUMBERS | BY_TOP | BY_HOLD | BY_HPACE | BY_HOST);
}

int main(void)
{
#define CASE(t) cmocka_unit_test_setup(t, top_setup)
	const struct CMUnitTest tests[] = {
		CASE(dests__ten_thousand),
		CASE(policy__after_255_flows),
		CASE(shared__leaves_under_any_policy),
		CASE(top__dead_peer),
		CASE(pl2__no_answer),
		CASE(pl2__pacer_stood_still),
		CASE(number__not_while_it_is_used),
		CASE(number__the_daemon_forgets_first),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests_name("numbers", tests, net_up, NULL);
}
