/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lib/sweep.c: what is kept of peers that are silent, and that nothing is delivered twice. */
#include "tests/unit/lib/lib_rel.h"

#include "lib/proof.h"
#include "lib/sweep.h"
#include "tests/unit/lib/lib_pair.h"

static uint64_t now; /* of the sweeps, CLOCK_MONOTONIC ns */

static void settle(void)
{
	int i;

	for (i = 0; i < 6; i++) {
		carry(&b, &a, true);
		bl_process(b.ep);
		carry(&a, &b, true);
		bl_process(a.ep);
	}
}

/* Let @seconds pass in which nothing comes, at both endpoints. */
static void pass(uint32_t seconds)
{
	for (; seconds; seconds--) {
		now += BL_SWEEP_NS;
		bl_sweep(a.ep, now);
		bl_sweep(b.ep, now);
	}
}

static struct bl_peer *find(const struct fake *at, const struct fake *who)
{
	return bl_peer_find(at->ep, who->ep->self.ip, who->ep->self.port);
}

static uint32_t heard; /* messages that b has delivered */

static void say(uint32_t number)
{
	struct bl_msg m = msg_to(&b, &number, sizeof(number), number);
	struct bl_delivery d;

	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	settle();
	fake_barrier(&b, a.ep->last_ts + 1);
	while (bl_recv(b.ep, &d, 1, 0) == 1) {
		assert_int_equal(*(const uint32_t *)d.data, number);
		heard++;
	}
	settle();
}

static int two_up(void **state)
{
	(void)state;
	fake_key[0] = 0x0706050403020100;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	memset(b.ep->wake, 0, sizeof(*b.ep->wake));
	heard = 0;
	say(0);
	now = bl_mono() + BL_SWEEP_NS; /* later than the sweeps of the calls above */
	pass(1);                       /* the first sweep notes what has come until now */
	return 0;
}

static void bl_sweep__senders_that_are_silent_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(b.ep->nsenders, 1);
	assert_int_equal(b.ep->nic.senders, 1);
	pass(4);
	assert_int_equal(b.ep->nsenders, 1);
	pass(1);
	assert_int_equal(b.ep->nsenders, 0);
	assert_int_equal(b.ep->nic.senders, 0);
	say(1);
	pass(1);
	assert_int_equal(b.ep->nsenders, 1);
	assert_int_equal(b.ep->nic.senders, 1);
	assert_int_equal(heard, 2);
}

/* Both sides forget, in this order, and nothing is lost or delivered twice. */
static void bl_sweep__everything_in_time(void **state)
{
	struct bl_peer *p = find(&a, &b);
	uint32_t psn = p->tx.next_psn;

	(void)state;
	/* What was delivered by less than a quarter of a window is credited after a PROBE. */
	a.ep->timers_ns = 1;
	p->tx.progress_ns = 1;
	bl_process(a.ep);
	settle();
	assert_int_equal(p->tx.credited, p->tx.next_psn);
	pass(1);
	pass(8);
	assert_non_null(p->tx.stage);
	pass(1);
	assert_null(p->tx.stage);
	pass(50);
	assert_non_null(find(&b, &a));
	pass(1);
	assert_null(find(&b, &a));
	assert_int_equal(b.ep->npeers, 0);
	pass(58);
	assert_ptr_equal(find(&a, &b), p);
	pass(1);
	assert_null(find(&a, &b));
	assert_int_equal(a.ep->npeers, 0);
	say(1);
	say(2);
	assert_int_equal(heard, 3);
	assert_int_equal(b.ep->st.lost_frames, 0);
	assert_true(find(&a, &b)->tx.next_psn != psn + 2);
	assert_int_equal(a.ep->st.send_failed, 0);
}

/* The receiver has forgotten, the sender has not. */
static void bl_sweep__the_receiver_alone(void **state)
{
	uint64_t probes;
	uint32_t i;

	(void)state;
	for (i = 1; i < BL_WINDOW_FIRST; i++)
		say(i);
	bl_sweep(b.ep, now += BL_SWEEP_NS);
	bl_sweep(b.ep, now += BL_RX_KEEP_NS);
	assert_null(find(&b, &a));
	find(&a, &b)->tx.credited = find(&a, &b)->tx.next_psn;
	find(&a, &b)->tx.progress_ns = 1;
	probes = a.ep->st.probes_sent;
	say(1);
	assert_true(a.ep->st.probes_sent > probes); /* before the frame, in case that it is lost */
	assert_int_equal(heard, BL_WINDOW_FIRST + 1);
	assert_true(bl_proof_has(find(&b, &a), a.ep->incarnation));
	assert_int_equal(b.ep->st.lost_frames, 0);
}

/* A copy of a reliable frame that was delivered comes when its sender is forgotten. */
static void bl_sweep__a_copy_after_it(void **state)
{
	struct bl_delivery d;
	struct bl_msg m = msg_to(&b, "once", 4, 1);
	struct seen s;

	(void)state;
	introduce(&a, &b, 7);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	fake_expect(&b, &s, BL_OP_PREP);
	assert_true(fake_put(&b, &s.from, s.op, a.ep->last_ts, s.psn, s.body, s.body_len));
	bl_process(b.ep);
	/* It waits for the commit barrier: its sender is kept. */
	pass(200);
	assert_non_null(find(&b, &a));
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1);
	assert_memory_equal(d.data, "once", 4);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 0);
	pass(61);
	assert_null(find(&b, &a));
	assert_true(fake_put(&b, &s.from, s.op, a.ep->last_ts, s.psn, s.body, s.body_len));
	commit(&b, a.ep->last_ts + 1000);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 0);
	assert_int_equal(b.ep->st.late_dropped, 1);
	/* The sender's frame is acknowledged at last; it asks again before it goes on. */
	assert_true(bl_rslot_close(bl_rwin_slot(a.ep->rwin, 1), 1));
	while (bl_rwin_step(&a.ep->line->state, a.ep->rwin))
		;
	bl_process(a.ep);
	find(&a, &b)->rtx.used_ns = 1;
	m = msg_to(&b, "more", 4, 1);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_false(find(&a, &b)->rtx.open);
	settle();
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1);
	assert_memory_equal(d.data, "more", 4);
	assert_int_equal(b.ep->st.refused, 0);
}

/* What was announced must be recognised for ever, and what is under way is not forgotten. */
static void bl_sweep__what_is_kept(void **state)
{
	struct bl_peer *p = find(&b, &a);
	struct bl_msg m = msg_to(&b, "x", 1, 1);

	(void)state;
	p->rrx.gone = true;
	pass(1000);
	assert_ptr_equal(find(&b, &a), p);
	p->rrx.gone = false;
	/* Outstanding: no CREDIT has come. */
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	pass(1000);
	assert_non_null(find(&a, &b));
	assert_int_equal(b.ep->npeers, 0);
}

/* Parts of a message that never becomes complete. */
static void bl_sweep__parts(void **state)
{
	uint8_t body[116] = { 0 };
	struct bl_peer *p = find(&b, &a);

	(void)state;
	bl_store16(body, a.ep->incarnation);
	bl_frag_put(body + 4, 1, 0, 5000);
	assert_true(fake_put(&b, &a.ep->self, BL_OP_FRAG, 0, p->rx.expected, body, sizeof(body)));
	bl_process(b.ep);
	pass(30);
	assert_int_equal(p->rx.nbigs, 1);
	assert_int_equal(b.ep->big_bytes, 5000);
	pass(1);
	assert_int_equal(p->rx.nbigs, 0);
	assert_int_equal(b.ep->big_bytes, 0);
}

/* Removal from the table does not hide others; many peers come and go. */
static void bl_peer_take_out__others_are_found(void **state)
{
	static struct bl_peer *at[500];
	struct rnd r = rnd_seeded("take_out");
	uint8_t ip[16] = { [10] = 0xff, [11] = 0xff, [12] = 10 };
	int i, k;

	(void)state;
	for (i = 0; i < 20000; i++) {
		uint32_t n = rnd_below(&r, ARRAY_SIZE(at));

		ip[14] = (uint8_t)(n >> 8);
		ip[15] = (uint8_t)n;
		assert_ptr_equal(bl_peer_find(a.ep, ip, 7), at[n]);
		if (at[n]) {
			bl_peer_take_out(a.ep, at[n]);
			free(at[n]);
			at[n] = NULL;
		} else {
			at[n] = bl_peer_get(a.ep, ip, 7);
			assert_non_null(at[n]);
		}
	}
	for (i = k = 0; i < (int)ARRAY_SIZE(at); i++) {
		ip[14] = (uint8_t)(i >> 8);
		ip[15] = (uint8_t)i;
		assert_ptr_equal(bl_peer_find(a.ep, ip, 7), at[i]);
		k += at[i] != NULL;
	}
	assert_int_equal(a.ep->npeers, k + 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, two_up, pair_down)
	const struct CMUnitTest tests[] = {
		T(bl_sweep__senders_that_are_silent_do_not_count),
		T(bl_sweep__everything_in_time),
		T(bl_sweep__the_receiver_alone),
		T(bl_sweep__a_copy_after_it),
		T(bl_sweep__what_is_kept),
		T(bl_sweep__parts),
		T(bl_peer_take_out__others_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
