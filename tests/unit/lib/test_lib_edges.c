// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Edges of the reliable stream's arithmetic: the largest frame, the last frame of a turn, a full
 * list, and who is told what when nothing is wrong.
 */
#include "tests/unit/lib/lib_rel.h"

#include <sys/socket.h>

#include "lib/batch.h"
#include "lib/stage.h"
#include "maps/forward_abi.h"

/* Only frames for other hosts go to the daemon, and only while somebody is heard by that way. */
static void bl_forward__for_whom(void **state)
{
	static uint8_t frame[BL_FORWARD_MAX + 1];
	struct bl_forward_msg m;
	struct fake a, b;
	struct bl_peer *p;
	int sv[2];

	(void)state;
	make_pair(&a, &b);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv), 0);
	a.ep->daemon = sv[0];
	p = fake_peer(&a, &b);
	frame[99] = 7;
	bl_forward(a.ep, p, frame, 100, 1);
	assert_int_equal(recv(sv[1], &m, sizeof(m), 0), sizeof(m) - sizeof(m.frame) + 100);
	assert_int_equal(m.magic, BL_SOCK_FORWARD);
	assert_int_equal(m.port, b.ep->self.port);
	assert_memory_equal(m.addr, b.ep->self.ip, 16);
	assert_int_equal(m.len, 100);
	assert_int_equal(m.frame[99], 7);
	bl_forward(a.ep, p, frame, BL_FORWARD_MAX, 1);
	assert_int_equal(recv(sv[1], &m, sizeof(m), 0), sizeof(m));
	bl_forward(a.ep, p, frame, BL_FORWARD_MAX + 1, 1);
	p->local = true;
	bl_forward(a.ep, p, frame, 100, 1);
	p->local = false;
	p->self = true;
	bl_forward(a.ep, p, frame, 100, 1);
	p->self = false;
	assert_true(recv(sv[1], &m, sizeof(m), 0) < 0);
	assert_int_equal(a.ep->st.forwarded, 2);

	/*
	 * Control frames: neither before a frame came by way of the controller nor long after it,
	 * and only those of the reliable stream.
	 */
	bl_forward_control(a.ep, p, frame, 100, BL_OP_OPEN);
	p->fwd_until_ns = 1;
	bl_forward_control(a.ep, p, frame, 100, BL_OP_OPEN);
	p->fwd_until_ns = bl_mono() + 1000000000000;
	bl_forward_control(a.ep, p, frame, 100, BL_OP_DATA);
	assert_true(recv(sv[1], &m, sizeof(m), 0) < 0);
	bl_forward_control(a.ep, p, frame, 100, BL_OP_OPEN);
	assert_true(recv(sv[1], &m, sizeof(m), 0) > 0);
	a.ep->daemon = -1;
	close(sv[0]);
	close(sv[1]);
	drop(&a);
	drop(&b);
}

/* A part, at any offset, of a message that is longer than the limit. */
static void bl_prep_open__longest_message(void **state)
{
	static const struct {
		uint32_t total, offset;
		int rc;
	} t[] = {
		{ BL_MSG_MAX, 0, 0 },           { BL_MSG_MAX + 1, 0, -1 },
		{ UINT32_MAX, 5, -1 },          { BL_MSG_MAX, BL_MSG_MAX - 1, 0 },
		{ BL_MSG_MAX, BL_MSG_MAX, -1 }, { 0, 0, -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		uint8_t body[BL_ACK_BODY + sizeof(struct bl_frag) + 1] = { 0 };
		uint8_t *frag = body + sizeof(struct bl_data) + sizeof(struct bl_prep);
		struct bl_prep_view v;

		bl_store32(frag + 4, t[i].offset);
		bl_store32(frag + 8, t[i].total);
		assert_int_equal(bl_prep_open(&v, body, sizeof(body)), t[i].rc);
	}
}

/* Reserved fields are 0; receivers refuse anything else. */
static void open__reserved_is_zero(void **state)
{
	struct fake a, b;
	struct bl_msg m;
	struct seen s;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	m = msg_to(&b, "x", 1, 0);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	fake_expect(&b, &s, BL_OP_OPEN);
	assert_int_equal(s.body_len, sizeof(struct bl_data));
	assert_int_equal(bl_load16(s.body), a.ep->incarnation);
	assert_int_equal(bl_load16(s.body + 2), 0);
	drop(&a);
	drop(&b);
}

/* Send one message from @a to @b, and deliver it. */
static void one(struct fake *a, struct fake *b, uint32_t len)
{
	static uint8_t data[1500];
	struct bl_msg m = msg_to(b, data, len, 0);
	struct bl_delivery d;

	assert_int_equal(bl_send_reliable(a->ep, &m, 1, 0), 0);
	assert_true(carry(b, a, true) >= 1);
	bl_process(a->ep);
	commit(b, a->ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b->ep, &d, 1, 0), 1);
	assert_int_equal(d.len, len);
	bl_process(b->ep);
}

/* A receiver tells its window when a quarter of it is free again, wherever its numbers are. */
static void windows__a_quarter(void **state)
{
	struct bl_delivery d;
	struct bl_rrx *r;
	struct fake a, b;
	uint64_t said, asked;
	uint32_t i;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	fake_peer(&a, &b)->rtx.next_psn = 100000;
	introduce(&a, &b, 7);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1);
	bl_process(b.ep);
	r = &fake_peer(&b, &a)->rrx;
	asked = a.ep->st.probes_sent;
	for (i = 0; i < 3 * r->said_window; i++) {
		uint32_t from = r->said_psn, quarter = (r->said_window + 3) / 4;

		said = b.ep->st.credits_sent;
		one(&a, &b, 4);
		if (b.ep->st.credits_sent == said)
			assert_true(r->seq.done - from < quarter);
		else if (a.ep->st.probes_sent == asked) /* an OPEN is answered at once */
			assert_true(r->said_psn - from >= quarter);
		carry(&a, &b, true);
		bl_process(a.ep);
	}
	assert_true(r->said_psn > 100000 + 2 * r->said_window);
	drop(&a);
	drop(&b);
}

/* Without memory for a recall, its numbers, and no others, count as seen. */
static void recall__the_list_is_full(void **state)
{
	uint8_t body[sizeof(struct bl_recall)] = { 0 };
	struct fake a, b;
	struct bl_peer *p;
	uint32_t psn;

	(void)state;
	make_pair(&a, &b);
	p = fake_peer(&b, &a);
	psn = fake_peer(&a, &b)->rtx.next_psn;
	p->rrx.nrecalled = BL_RWIN;
	bl_store16(body, a.ep->incarnation);
	bl_store16(body + 2, b.ep->incarnation);
	bl_store32(body + 4, 2);
	bl_put48(body + 8, fake_now() & BL_TS_MASK);
	assert_true(fake_put(&b, &a.ep->self, BL_OP_RECALL, 0, psn, body, sizeof(body)));
	bl_process(b.ep);
	assert_int_equal(b.ep->st.recalled, 1);
	assert_int_equal(b.ep->st.no_room, 1);
	/* The numbers are not taken for seen: another frame may have them. */
	assert_int_equal(bl_seq_add(&p->rrx.seq, psn), 1);
	assert_int_equal(p->rrx.nrecalled, BL_RWIN);
	assert_null(p->rrx.recalled);
	p->rrx.nrecalled = 0;
	drop(&a);
	drop(&b);
}

/* All of a hundred frames are late: one turn sends 64 of them again, the next turn the others. */
static void bl_rtx_timers__so_many_a_turn(void **state)
{
	static uint8_t data[1000];
	struct bl_msg m[100];
	struct fake a, b;
	uint64_t mono, before;
	uint32_t i;

	(void)state;
	make_pair(&a, &b);
	for (i = 0; i < ARRAY_SIZE(m); i++)
		m[i] = msg_to(&b, data, sizeof(data), i);
	fake_peer(&a, &b)->rtx.window = BL_WINDOW_MAX;
	for (i = 0; i < ARRAY_SIZE(m); i += 20)
		assert_int_equal(bl_send_reliable(a.ep, m + i, 20, 0), 0);
	assert_int_equal(a.ep->rtail - a.ep->rreaped, ARRAY_SIZE(m));
	mono = bl_mono() + 100000000000;
	before = a.ep->st.retransmits; /* the CPU was busy */
	a.ep->rtimer_ns = 1;
	bl_rtx_timers(a.ep, mono);
	assert_int_equal(a.ep->st.retransmits - before, 64);
	a.ep->rtimer_ns = 1;
	bl_rtx_timers(a.ep, mono);
	assert_int_equal(a.ep->st.retransmits - before, ARRAY_SIZE(m));
	a.ep->rtimer_ns = 1;
	bl_rtx_timers(a.ep, mono);
	assert_int_equal(a.ep->st.retransmits - before, ARRAY_SIZE(m));
	drop(&a);
	drop(&b);
}

/* A life is born when it is first heard of: earlier announcements do not mean it, later ones do. */
static void window__when_a_life_was_born(void **state)
{
	uint8_t body[sizeof(struct bl_window)] = { 0 };
	struct fake a, b, c;
	struct bl_peer *p;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	make(&c, "127.0.0.3", 2);
	fail_peer(&a, 0, &c, fake_now());
	bl_process(a.ep);
	assert_int_equal(a.ep->fail_begun, 1);
	introduce(&a, &b, 7);
	p = fake_peer(&a, &b);
	assert_int_equal(p->rtx.born, 1);
	fail_peer(&a, 0, &c, fake_now());
	bl_process(a.ep);
	assert_int_equal(a.ep->fail_begun, 2);
	/* The same life tells a window again. */
	bl_store32(body, p->rtx.next_psn);
	bl_store16(body + 4, a.ep->incarnation);
	bl_store16(body + 6, 33);
	bl_store16(body + 8, b.ep->incarnation);
	assert_true(fake_put(&a, &b.ep->self, BL_OP_WINDOW, 0, 0, body, sizeof(body)));
	bl_process(a.ep);
	assert_int_equal(p->rtx.window, 33);
	assert_int_equal(p->rtx.born, 1);
	drop(&a);
	drop(&b);
	drop(&c);
}

/* Data that fits into one frame leaves as one frame, to the last byte. */
static void bl_send_reliable__largest_frame(void **state)
{
	const uint32_t head = sizeof(struct bl_hdr) + BL_ACK_BODY + BL_ITEM_OVERHEAD;
	static uint8_t data[1500];
	struct fake a, b;
	uint32_t i;

	(void)state;
	make_pair(&a, &b);
	for (i = 0; i < 3; i++) {
		const uint32_t len = a.ep->frame_max - head - 1 + i;
		struct bl_msg m = msg_to(&b, data, len, 0);
		uint32_t before = a.ep->rtail;

		assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
		assert_int_equal(a.ep->rtail - before == 1, i < 2);
		carry(&b, &a, true);
		bl_process(a.ep);
	}
	drop(&a);
	drop(&b);
}

/*
 * Six hundred frames are in the queue when the endpoint ends: their sender is told of all of them,
 * and each NAK names at most 512.
 */
static void bl_rx_leave__long_runs(void **state)
{
	uint8_t body[64];
	struct fake a, b;
	struct seen s;
	uint32_t i, n, told = 0;

	(void)state;
	fake_make(&a, "127.0.0.1", FAKE_RING);
	fake_make(&b, "127.0.0.2", FAKE_RING);
	n = body_one(body, a.ep->incarnation, "x", 1);
	for (i = 0; i < 600; i++) {
		assert_true(fake_put(&b, &a.ep->self, BL_OP_DATA, 2 * FAKE_BUS + i, i, body, n));
		bl_process(b.ep);
		/* More than a sender can have outstanding; runs are cut all the same. */
		fake_peer(&b, &a)->rx.credit_psn = i + 1;
	}
	while (fake_take(&a, &s))
		; /* CREDITs */
	bl_rx_leave(b.ep);
	while (fake_take(&a, &s)) {
		if (s.op != BL_OP_NAK)
			continue;
		assert_int_equal(bl_load32(s.body), told);
		assert_int_equal(s.body[10], BL_NAK_LEFT);
		assert_true(bl_load32(s.body + 4) <= 2 * BL_WINDOW_MAX);
		told += bl_load32(s.body + 4);
	}
	assert_int_equal(told, 600);
	fake_free(&a);
	fake_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_forward__for_whom),
		cmocka_unit_test(bl_prep_open__longest_message),
		cmocka_unit_test(open__reserved_is_zero),
		cmocka_unit_test(windows__a_quarter),
		cmocka_unit_test(recall__the_list_is_full),
		cmocka_unit_test(bl_rtx_timers__so_many_a_turn),
		cmocka_unit_test(window__when_a_life_was_born),
		cmocka_unit_test(bl_send_reliable__largest_frame),
		cmocka_unit_test(bl_rx_leave__long_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
