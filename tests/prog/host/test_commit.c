// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Two-phase commit in the host's programs: a PREP becomes its ACK, an ACK closes its slot, and the
 * ACK that empties the window becomes a beacon, byte for byte. Forged, late and misdirected frames
 * change nothing, and the C of every frame that leaves is the minimum over all windows.
 */
#include <linux/pkt_cls.h>
#include "tests/prog/host/commit_util.h"

/* ---- prepare ---- */

static void prep__becomes_the_ack(void **state)
{
	static const __u32 bodies[] = { BL_ACK_BODY, 13, 55, 56, 75, 76, 77, 216, 217, 1448, 3400 };
	__u32 v, k;

	(void)state;
	feed_beacon(T0 - 1000);
	for (v = 0; v < 8; v++) {
		for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
			struct desc d = prep_frame(v & 1, T0 - 100 * (k & 1));
			struct frame in, want;

			d.tags = v >> 1 & 1;
			d.csum = v >> 2;
			d.body = bodies[k];
			d.ts = k == 2 ? T0 - 1000 : d.ts; /* equal to C, not below it */
			d.dport = (__u16)(BL_PORT_BASE + (v & 1 ? 11 : 10));
			build(&in, &d);
			ack_of(&d, &want);
			run_host_xdp(&in, XDP_TX, &want);
			counts_moved(sk->maps.counts, counted, 1,
				     WANT({ BL_HC_INGRESS, BL_R_PREPARED }));
			expect_stored(v & 1 ? 2 : 1, &d, d.ts);
			expect_nothing_stored();
		}
	}
}

/* A PREP that cannot be stored is not acknowledged. */
static void prep__refused(void **state)
{
	struct desc d = prep_frame(false, T0);
	struct bl_ep_slot e;
	struct frame in;
	__u32 k, fit = 4096 / (256 + 8);

	(void)state;
	feed_beacon(T0 - 1000);
#define REFUSED(why)                                                                     \
	do {                                                                             \
		build(&in, &d);                                                          \
		run_host_xdp(&in, XDP_DROP, &in);                                        \
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why })); \
	} while (0)
	d.body = BL_ACK_BODY - 1;
	REFUSED(BL_R_BAD_LENGTH);
	d.body = 40;
	d.dport = BL_PORT_BASE + 8;
	REFUSED(BL_R_NO_ENDPOINT);
	d.dport = FROM;
	d.ts = T0 + BOUND + 1;
	REFUSED(BL_R_TS_AHEAD);
	d.ts = T0 - 1000 - 1; /* below C */
	REFUSED(BL_R_PREP_LATE);
	d.ts = T0;
	/* for another life of the endpoint, and for an endpoint that has ended */
	map_get(sk->maps.eps, 9, &e);
	e.life ^= 1;
	map_put(sk->maps.eps, 9, &e);
	REFUSED(BL_R_WRONG_LIFE);
	e.life ^= 1;
	e.active = BL_EP_DEAD;
	map_put(sk->maps.eps, 9, &e);
	REFUSED(BL_R_NO_ENDPOINT);
	e.active = BL_EP_ACTIVE;
	map_put(sk->maps.eps, 9, &e);
	expect_nothing_stored();
	new_ring(0, 4096);
	for (k = 0; k < fit; k++) {
		struct frame want;

		build(&in, &d);
		ack_of(&d, &want);
		run_host_xdp(&in, XDP_TX, &want);
	}
	counts_take(sk->maps.counts, counted);
	REFUSED(BL_R_RING_FULL);
#undef REFUSED
}

/*
 * A sleeper is woken when the commit barrier passes its first reliable message, not when the
 * barrier B does.
 */
static void prep__wakes_by_commit(void **state)
{
	struct desc d = prep_frame(false, T0), be = beacon_frame(0, T0 + 50);
	struct wakes w;
	struct frame in, want;

	(void)state;
	feed_beacon(T0 - 1000);
	wake_get(&w);
	w.ep[0].until = w.ep[0].until_c = BL_WAKE_ON_DATA;
	wake_put(&w);
	build(&in, &d);
	ack_of(&d, &want);
	run_host_xdp(&in, XDP_TX, &want);
	state_take(&after);
	assert_int_equal(after.wake.ep[0].until_c, T0);
	assert_int_equal(after.wake.ep[0].until, BL_WAKE_ON_DATA);
	assert_int_equal(after.wake.next_c, T0);
	assert_int_equal(after.wake.next, BL_TIME_NONE);
	be.c = T0;
	build(&in, &be);
	run_host_xdp(&in, XDP_DROP, &in);
	assert_false(is_woken(0, 0));
	be.c = T0 + 1;
	build(&in, &be);
	run_host_xdp(&in, XDP_DROP, &in);
	assert_true(is_woken(0, 5000));
	state_take(&after);
	assert_int_equal(after.wake.ep[0].until_c, BL_TIME_NONE);
	assert_int_equal(after.wake.next_c, BL_TIME_NONE);
	assert_int_equal(after.page.commit, T0 + 1);
}

/* ---- acknowledge ---- */

/*
 * Returns the ACK of the first frame in the window of @v6's endpoint, as the receiver at host 0
 * sent it and a switch forwarded it.
 */
static struct desc ack_frame(bool v6, __u64 ts)
{
	struct desc d = v6 ? data_frame6(0, 1, ts, T0 - 1000) : data_frame(0, 1, ts, T0 - 1000);

	d.op = BL_OP_ACK;
	d.dport = (__u16)(BL_PORT_BASE + (v6 ? 11 : 10));
	d.body = BL_ACK_BODY;
	return d;
}

static void set_own_lives(void)
{
	struct bl_ep_slot e;
	__u32 port;

	for (port = 10; port <= 11; port++) {
		map_get(sk->maps.eps, port, &e);
		e.life = BODY_INCARNATION;
		map_put(sk->maps.eps, port, &e);
	}
}

static void expect_slot_closed(const struct desc *d, __u32 ep, __u64 now_state)
{
	struct frame in;

	build(&in, d);
	run_host_xdp(&in, XDP_DROP, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_ACKED }));
	assert_int_equal(window_state_of(ep), now_state);
}

/*
 * Closes the slot with the ACK of the @copy-th repetition of its frame. Returns the time of the ACK
 * that the process reads.
 */
static __u64 time_of_ack(const struct desc *d, __u16 copy)
{
	struct frame in;

	put_window(1, BODY_SLOT, BODY_SLOT + 3, T0 - 500, false);
	build(&in, d);
	in.p[in.n - 2] = (__u8)(copy >> 8); /* the copy number is the end of the body */
	in.p[in.n - 1] = (__u8)copy;
	run_host_xdp(&in, XDP_DROP, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_ACKED }));
	win = ep_page[1]->win;
	assert_int_equal(win.slot[BODY_SLOT % BL_RWIN].wait, BODY_SLOT);
	return win.slot[BODY_SLOT % BL_RWIN].ack_ns;
}

/*
 * A round trip time is recorded only for the ACK of the first copy: of later copies the sender does
 * not know when they left.
 */
static void ack__of_a_copy_has_no_time(void **state)
{
	struct desc d = ack_frame(false, T0 - 500);

	(void)state;
	set_own_lives();
	feed_beacon(T0 - 1000);
	assert_true(time_of_ack(&d, 0) > 0);
	assert_int_equal(time_of_ack(&d, 1), 0);
	assert_int_equal(time_of_ack(&d, 256), 0);
	assert_int_equal(time_of_ack(&d, 65535), 0);
}

static void ack__closes_and_moves_head(void **state)
{
	const __u32 n = BODY_SLOT;
	struct desc d = ack_frame(false, T0 - 500);
	struct frame in;

	(void)state;
	set_own_lives();
	feed_beacon(T0 - 1000);
	/* the first of three frames */
	put_window(1, n, n + 3, T0 - 500, false);
	expect_slot_closed(&d, 1, window_state(n + 1, n + 3));
	win = ep_page[1]->win;
	assert_int_equal(win.slot[n % BL_RWIN].wait, n);
	/*
	 * A repeated ACK changes nothing, not even the recorded time, which would make the round
	 * trip too long.
	 */
	win.slot[n % BL_RWIN].ack_ns = 77;
	ep_page[1]->win = win;
	build(&in, &d);
	run_host_xdp(&in, XDP_DROP, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_ACK_REPEATED }));
	assert_int_equal(window_state_of(1), window_state(n + 1, n + 3));
	win = ep_page[1]->win;
	assert_int_equal(win.slot[n % BL_RWIN].ack_ns, 77);
	/* the second of three: head does not move */
	put_window(1, n - 1, n + 2, T0 - 510, false);
	expect_slot_closed(&d, 1, window_state(n - 1, n + 2));
	/* the first, with two closed slots behind it */
	put_window(1, n, n + 4, T0 - 500, false);
	win.slot[(n + 1) % BL_RWIN].wait = n + 1;
	win.slot[(n + 2) % BL_RWIN].wait = n + 2;
	ep_page[1]->win = win;
	expect_slot_closed(&d, 1, window_state(n + 3, n + 4));
	/* the upper bits of the timestamp are not on the wire */
	put_window(1, n, n + 2, T0 - 500 + (1ULL << 50), false);
	expect_slot_closed(&d, 1, window_state(n + 1, n + 2));
	/* IPv6 and tagged, for a dead endpoint that still waits for ACKs */
	d = ack_frame(true, T0 - 500);
	d.tags = 1;
	put_window(2, n, n + 2, T0 - 500, true);
	map_get(sk->maps.eps, 11, &before.eps[0]);
	before.eps[0].active = BL_EP_DEAD;
	map_put(sk->maps.eps, 11, &before.eps[0]);
	expect_slot_closed(&d, 2, window_state(n + 1, n + 2));
}

/* One ACK moves head over a whole window whose other slots were closed before. */
static void ack__a_window_full(void **state)
{
	const __u32 n = BODY_SLOT;
	struct desc d = ack_frame(false, T0 - 20000);
	__u32 k;

	(void)state;
	set_own_lives();
	feed_beacon(T0 - 1000);
	put_window(1, n, n + BL_RWIN, T0 - 20000, false);
	for (k = 1; k < BL_RWIN - 1; k++)
		win.slot[(n + k) % BL_RWIN].wait = n + k;
	ep_page[1]->win = win;
	expect_slot_closed(&d, 1, window_state(n + BL_RWIN - 1, n + BL_RWIN));
}

static void expect_ack_refused(const struct desc *d, enum bl_reason why)
{
	static struct bl_rwin was;
	struct frame in;

	was = ep_page[1]->win;
	build(&in, d);
	run_host_xdp(&in, XDP_DROP, &in);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, why }));
	assert_int_equal(window_state_of(1), window_state(BODY_SLOT, BODY_SLOT + 1));
	win = ep_page[1]->win;
	assert_memory_equal(&win, &was, sizeof(win));
}

static void ack__forged(void **state)
{
	const __u32 n = BODY_SLOT;
	struct desc good = ack_frame(false, T0 - 500), d;
	struct bl_ep_slot e;

	(void)state;
	set_own_lives();
	feed_beacon(T0 - 1000);
	put_window(1, n, n + 1, T0 - 500, false);
	d = good;
	d.ts++;
	expect_ack_refused(&d, BL_R_ACK_UNKNOWN);
	d = good;
	d.psn++;
	expect_ack_refused(&d, BL_R_ACK_UNKNOWN);
	d = good;
	d.sport++;
	expect_ack_refused(&d, BL_R_ACK_UNKNOWN);
	d = good;
	d.saddr[15]++;
	expect_ack_refused(&d, BL_R_ACK_UNKNOWN);
	d = good;
	/*
	 * an address with another IPv4 prefix: an IPv4 address always has its own prefix in saddr
	 */
	d.saddr[10] = 0;
	d.saddr[13] ^= 0x80;
	expect_ack_refused(&d, BL_R_ACK_UNKNOWN);
	d = good;
	d.dport = FROM; /* the window of another endpoint, which is empty */
	map_get(sk->maps.eps, 9, &e);
	e.life = BODY_INCARNATION;
	map_put(sk->maps.eps, 9, &e);
	expect_ack_refused(&d, BL_R_ACK_UNKNOWN);
	d = good;
	d.dport = BL_PORT_BASE + 8;
	expect_ack_refused(&d, BL_R_NO_ENDPOINT);
	d = good;
	d.daddr[15]++;
	expect_ack_refused(&d, BL_R_NO_ENDPOINT);
	d = good;
	d.body = BL_ACK_BODY - 1;
	expect_ack_refused(&d, BL_R_BAD_LENGTH);
	/* for an earlier life of the sender */
	map_get(sk->maps.eps, 10, &e);
	e.life++;
	map_put(sk->maps.eps, 10, &e);
	expect_ack_refused(&good, BL_R_ACK_UNKNOWN);
	e.life--;
	map_put(sk->maps.eps, 10, &e);
	/* from another life of the receiver */
	win.slot[n % BL_RWIN].life++;
	ep_page[1]->win = win;
	expect_ack_refused(&good, BL_R_ACK_UNKNOWN);
	win.slot[n % BL_RWIN].life--;
	/* outside the window: a frame that was never sent, one window later or earlier */
	win.slot[n % BL_RWIN].wait = BL_RSLOT_OPEN | (n + BL_RWIN);
	ep_page[1]->win = win;
	expect_ack_refused(&good, BL_R_ACK_UNKNOWN);
	win.slot[n % BL_RWIN].wait = BL_RSLOT_OPEN | (n - BL_RWIN);
	ep_page[1]->win = win;
	expect_ack_refused(&good, BL_R_ACK_UNKNOWN);
}

static void ack__wakes_who_waits_for_it(void **state)
{
	const __u32 n = BODY_SLOT;
	struct desc d = ack_frame(false, T0 - 500);
	struct wakes w;

	(void)state;
	set_own_lives();
	feed_beacon(T0 - 1000);
	put_window(1, n - 1, n + 2, T0 - 510, false);
	wake_get(&w);
	w.ep[1].on_ack = 1;
	wake_put(&w);
	expect_slot_closed(&d, 1,
			   window_state(n - 1,
					n + 2)); /* head has not moved, so there is no room yet */
	assert_false(is_woken(1, 0));
	put_window(1, n, n + 2, T0 - 500, false);
	expect_slot_closed(&d, 1, window_state(n + 1, n + 2));
	assert_true(is_woken(1, 5000));
	state_take(&after);
	assert_int_equal(after.wake.ep[1].on_ack, 0);
	put_window(1, n, n + 2, T0 - 500, false);
	expect_slot_closed(&d, 1, window_state(n + 1, n + 2));
	assert_false(is_woken(1, 0));
}

/* ---- commit ---- */

static struct desc commit_of(const struct desc *d, __u64 c)
{
	struct desc w = beacon_frame(1, T0 - BL_TS_OLD);

	w.c = c;
	w.tags = d->tags;
	w.node = NODE_ID;
	return w;
}

/* The ACK that empties the window becomes a beacon if C rises with it. */
static void commit__at_once(void **state)
{
	const __u32 n = BODY_SLOT;
	struct frame in, want;
	struct desc d, w;
	__u32 v;

	(void)state;
	set_own_lives();
	feed_beacon(T0 - 1000);
	for (v = 0; v < 8; v++) {
		struct bl_host_page page = { 0 };

		map_put(sk->maps.host_page, 0, &page);
		feed_beacon(T0 - 1000);
		d = ack_frame(v & 1, T0 - 500);
		d.tags = v >> 1 & 1;
		put_window(v & 1 ? 2 : 1, n, n + 1, T0 - 500, v & 1);
		build(&in, &d);
		/* with the room that a receiver leaves; otherwise the frame has to grow */
		if (v & 4) {
			memset(in.p + in.n, 0xee, sizeof(in.p) - in.n);
			in.n = BL_BEACON_LEN + 4 * d.tags;
		}
		w = commit_of(&d, T0);
		build(&want, &w);
		run_host_xdp(&in, XDP_TX, &want);
		counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_INGRESS, BL_R_COMMITTED }));
		assert_int_equal(window_state_of(v & 1 ? 2 : 1), window_state(n + 1, n + 1));
		map_get(sk->maps.host_page, 0, &page);
		assert_int_equal(page.sent_commit, T0);
	}
	/* C does not rise, since another endpoint holds it back */
	put_window(2, 5, 6, T0 - 300, true);
	put_window(1, n, n + 1, T0 - 500, false);
	d = ack_frame(false, T0 - 500);
	expect_slot_closed(&d, 1, window_state(n + 1, n + 1));
	put_window(2, 0, 0, 0, true);
}

/* ---- frames that leave ---- */

/* The host has sent no C before: what holds C below one that was sent does not count. */
static void expect_barriers_sent(__u64 b, __u64 c)
{
	struct desc d = data_frame(1, 0, T0, 0), be = beacon_frame(1, 0);
	struct bl_host_page p;
	const struct desc *each[] = { &d, &be };
	struct frame in, out, want;
	int i, k;

	map_get(sk->maps.host_page, 0, &p);
	/* as if nothing had been sent: what has left holds lines that are below it */
	p.sent_barrier = p.sent_commit = 0;
	map_put(sk->maps.host_page, 0, &p);
	d.sport = FROM;
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 2; k++) {
			struct desc w = *each[i];

			if (!i && k)
				d.op = w.op = BL_OP_PREP;
			build(&in, each[i]);
			w.b = b;
			w.c = c;
			if (i)
				host_says(&w, bus_now);
			build(&want, &w);
			assert_int_equal(run_tc(sk->progs.bl_host_egress, &in, &out, BEACON_MARK),
					 TC_ACT_OK);
			same_frame(&out, &want);
		}
	}
}

/* C is the minimum of B, all holds, and the first open slot of every window. */
static void egress__least_of_all_windows(void **state)
{
	struct bl_inflight line = { .ts = BL_TIME_NONE };

	(void)state;
	expect_barriers_sent(T0, T0);
	put_window(0, 7, 9, T0 - 100, false);
	expect_barriers_sent(T0, T0 - 100);
	put_window(2, 0xffffffff, 3, T0 - 200, false);
	expect_barriers_sent(T0, T0 - 200);
	put_window(1, 50, 50, T0 - 300, false); /* empty: the slots behind its head do not count */
	expect_barriers_sent(T0, T0 - 200);
	/* a closed slot counts while one before it is open, and no longer when it is at the head */
	put_window(2, 10, 12, T0 - 400, false);
	win.slot[11].wait = 11;
	ep_page[2]->win = win;
	expect_barriers_sent(T0, T0 - 400);
	put_window(2, 11, 12, T0 - 40, false);
	expect_barriers_sent(T0, T0 - 100);
	/* the hold of a scattering that is not completely in its window yet */
	line.hold = T0 - 250;
	line_put(1, &line);
	expect_barriers_sent(T0, T0 - 250);
	/* a timestamp in flight holds back B and C */
	line.ts = T0 - 260;
	line_put(1, &line);
	expect_barriers_sent(T0 - 260, T0 - 260);
	line.hold = 0;
	line.ts = 0;
	line_put(1, &line);
	expect_barriers_sent(T0, T0 - 100);
	/* slots that are not in use are not read */
	put_window(NEPS, 1, 2, T0 - 900, false);
	expect_barriers_sent(T0, T0 - 100);
	put_window(NEPS, 0, 0, 0, false);
	/* too old for the 48 bits on the wire */
	put_window(0, 7, 9, T0 - BL_TS_OLD - 5, false);
	expect_barriers_sent(T0, T0 - BL_TS_OLD);
	put_window(0, 0, 0, 0, false);
	put_window(2, 0, 0, 0, false);
	expect_barriers_sent(T0, T0);
	state_take(&after);
	assert_int_equal(after.page.sent_commit, T0);
}

static void put_word(__u32 slot, const struct bl_ep_word *w)
{
	struct bl_host_page p;

	map_get(sk->maps.host_page, 0, &p);
	p.word[slot] = *w;
	map_put(sk->maps.host_page, 0, &p);
}

/*
 * An endpoint that is no longer a member: C is the value that the daemon set, whatever the other
 * words of its line and its window contain. Once it is BL_OUT_OVER, the line does not count at all.
 */
static void egress__who_is_out(void **state)
{
	struct bl_inflight line = { .ts = BL_TIME_NONE };
	struct bl_ep_word w = { 0 };

	(void)state;
	put_window(0, 7, 9, T0 - 100, false);
	expect_barriers_sent(T0, T0 - 100);
	line_get(0, &line);
	/*
	 * stopped: the timestamp in flight still counts, since its last frame may be about to leave
	 */
	line.ts = T0 - 50;
	line_put(0, &line);
	w.out = T0 - 200;
	put_word(0, &w);
	expect_barriers_sent(T0 - 50, T0 - 200);
	/* final: the timestamp in flight no longer counts */
	w.out_why = BL_OUT_WINDOW;
	put_word(0, &w);
	expect_barriers_sent(T0, T0 - 200);
	/* its process empties its window, sends and sets a hold, all without effect */
	line.state = window_state(9, 9);
	line.hold = T0 - 20;
	line.ts = T0 - 10;
	line_put(0, &line);
	expect_barriers_sent(T0, T0 - 200);
	/* other endpoints still count */
	put_window(2, 7, 9, T0 - 300, false);
	expect_barriers_sent(T0, T0 - 300);
	put_window(2, 0, 0, 0, false);
	/* the daemon takes the endpoint out of C */
	w.out = BL_OUT_OVER;
	put_word(0, &w);
	line.state = window_state(7, 9);
	line.hold = 1;
	line.ts = 1;
	line_put(0, &line);
	expect_barriers_sent(T0, T0);
	put_window(0, 0, 0, 0, false);
	expect_barriers_sent(T0, T0);
}

/* A process may not send an ACK; only the programs do. */
static void egress__ack_of_a_process(void **state)
{
	struct desc d = data_frame(1, 0, T0, 0);
	struct frame in, out;

	(void)state;
	d.sport = FROM;
	d.op = BL_OP_ACK;
	build(&in, &d);
	counts_take(sk->maps.counts, counted);
	assert_int_equal(run_tc(sk->progs.bl_host_egress, &in, &out, BEACON_MARK), TC_ACT_SHOT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_EGRESS, BL_R_SENT_ACK }));
	assert_int_equal(run_tc(sk->progs.bl_host_local, &in, &out, 0), TC_ACT_SHOT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LOCAL, BL_R_SENT_ACK }));
}

/* Between endpoints of one host, a PREP is stored and its slot is closed without a frame. */
static void local__stored_and_closed(void **state)
{
	const __u32 n = BODY_SLOT;
	struct desc d = local_prep();
	struct frame in, out;

	(void)state;
	build(&in, &d);
	assert_int_equal(run_tc(sk->progs.bl_host_local, &in, &out, 0), TC_ACT_SHOT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LOCAL, BL_R_STORED }));
	expect_stored(1, &d, T0 - 500);
	assert_int_equal(window_state_of(0), window_state(n + 1, n + 2));
	/* a PREP for a life that has ended is not stored, and its slot stays open */
	d.psn++;
	map_get(sk->maps.eps, 10, &before.eps[0]);
	before.eps[0].life++;
	map_put(sk->maps.eps, 10, &before.eps[0]);
	build(&in, &d);
	assert_int_equal(run_tc(sk->progs.bl_host_local, &in, &out, 0), TC_ACT_SHOT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LOCAL, BL_R_WRONG_LIFE }));
	d.body = BL_ACK_BODY - 1;
	build(&in, &d);
	assert_int_equal(run_tc(sk->progs.bl_host_local, &in, &out, 0), TC_ACT_SHOT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LOCAL, BL_R_BAD_LENGTH }));
	/* below the commit barrier */
	d.body = 70;
	feed_beacon(T0 - 499);
	build(&in, &d);
	assert_int_equal(run_tc(sk->progs.bl_host_local, &in, &out, 0), TC_ACT_SHOT);
	counts_moved(sk->maps.counts, counted, 1, WANT({ BL_HC_LOCAL, BL_R_PREP_LATE }));
	expect_nothing_stored();
	assert_int_equal(window_state_of(0), window_state(n + 1, n + 2));
}

/* ---- frames that the controller relays ---- */

/*
 * A PREP is stored, marked as relayed, and turned round as on the NIC. Its barriers are not used,
 * whatever they are.
 */
static void relayed__prep(void **state)
{
	static const __u32 bodies[] = { BL_ACK_BODY, 55, 217, 1448, 3400 };
	struct bl_host_page was, is;
	struct frame want;
	__u32 v, k;

	(void)state;
	feed_beacon(T0 - 1000);
	map_get(sk->maps.host_page, 0, &was);
	for (v = 0; v < 2; v++)
		for (k = 0; k < sizeof(bodies) / sizeof(*bodies); k++) {
			struct desc d = prep_frame(v, T0 - 100);

			d.body = bodies[k];
			/* barriers that would be refused on the NIC, or very old ones */
			d.b = d.c = k & 1 ? T0 + 10 * BOUND : 0;
			d.lanes = 8;
			d.lane = 3;
			d.dport = (__u16)(BL_PORT_BASE + (v ? 11 : 10));
			ack_of(&d, &want);
			run_relayed(&d, XDP_TX, &want, BL_R_PREPARED);
			assert_int_equal(ring_read(v ? 2 : 1), 1);
			assert_int_equal(got.rec.relayed, 1);
			assert_int_equal(got.rec.ts, T0 - 100);
			assert_int_equal(got.rec.len, bodies[k]);
			expect_nothing_stored();
		}
	map_get(sk->maps.host_page, 0, &is);
	assert_memory_equal(&is, &was, sizeof(is));
}

/*
 * Frames that would be refused on the NIC are refused here, and so are those that belong only to a
 * link or to the best-effort stream.
 */
static void relayed__refused(void **state)
{
	struct desc d = prep_frame(false, T0);
	__u8 op;

	(void)state;
	feed_beacon(T0 - 1000);
	d.body = BL_ACK_BODY - 1;
	run_relayed(&d, XDP_DROP, NULL, BL_R_BAD_LENGTH);
	d.body = 40;
	d.dport = BL_PORT_BASE + 8;
	run_relayed(&d, XDP_DROP, NULL, BL_R_NO_ENDPOINT);
	d.dport = FROM;
	d.ts = T0 + BOUND + 1;
	run_relayed(&d, XDP_DROP, NULL, BL_R_TS_AHEAD);
	d.ts = T0 - 1000 - 1; /* below C */
	run_relayed(&d, XDP_DROP, NULL, BL_R_PREP_LATE);
	d.ts = T0;
	for (op = 1; op < BL_OP_LIMIT; op++) {
		if (op >= BL_OP_PREP && op <= BL_OP_RECALLED)
			continue;
		d.op_byte = BL_OPCODE_BYTE(op);
		run_relayed(&d, XDP_DROP, NULL, BL_R_BAD_OPCODE);
	}
	d = beacon_frame(0, T0);
	run_relayed(&d, XDP_DROP, NULL, BL_R_BAD_OPCODE);
	expect_nothing_stored();
	assert_int_equal(window_state_of(1), 0);
}

/*
 * An ACK closes its slot. When it empties the window it does not become a beacon, since this frame
 * leaves by no link.
 */
static void relayed__ack(void **state)
{
	const __u32 n = BODY_SLOT;
	struct desc d = ack_frame(false, T0 - 500);

	(void)state;
	set_own_lives();
	feed_beacon(T0 - 1000);
	put_window(1, n, n + 2, T0 - 500, false);
	run_relayed(&d, XDP_DROP, NULL, BL_R_ACKED);
	assert_int_equal(window_state_of(1), window_state(n + 1, n + 2));
	run_relayed(&d, XDP_DROP, NULL, BL_R_ACK_REPEATED);
	put_window(1, n, n + 1, T0 - 500, false);
	run_relayed(&d, XDP_DROP, NULL, BL_R_ACKED);
	assert_int_equal(window_state_of(1), window_state(n + 1, n + 1));
	d.sport ^= 1;
	run_relayed(&d, XDP_DROP, NULL, BL_R_ACK_UNKNOWN);
	expect_nothing_stored();
}

/* The other frames of the reliable stream are stored for the process, marked as relayed. */
static void relayed__control(void **state)
{
	static const __u8 ops[] = { BL_OP_OPEN, BL_OP_WINDOW, BL_OP_RECALLED };
	struct desc d = data_frame(0, 1, 0, 0);
	__u32 k;

	(void)state;
	feed_beacon(T0 - 1000);
	for (k = 0; k < sizeof(ops); k++) {
		d.op = ops[k];
		run_relayed(&d, XDP_DROP, NULL, BL_R_STORED);
		assert_int_equal(ring_read(0), 1);
		assert_int_equal(got.rec.relayed, 1);
		assert_int_equal(got.rec.opcode, ops[k]);
	}
}

static void reasons__all_seen(void **state)
{
	(void)state;
	all_reasons_seen(BY_COMMIT, BY_COMMIT | BY_HOST | BY_TC);
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
		CASE(prep__becomes_the_ack),
		CASE(prep__refused),
		CASE(prep__wakes_by_commit),
		CASE(ack__of_a_copy_has_no_time),
		CASE(ack__closes_and_moves_head),
		CASE(ack__a_window_full),
		CASE(ack__forged),
		CASE(ack__wakes_who_waits_for_it),
		CASE(commit__at_once),
		CASE(egress__least_of_all_windows),
		CASE(egress__who_is_out),
		CASE(egress__ack_of_a_process),
		CASE(local__stored_and_closed),
		CASE(relayed__prep),
		CASE(relayed__refused),
		CASE(relayed__ack),
		CASE(relayed__control),
		cmocka_unit_test(reasons__all_seen),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
