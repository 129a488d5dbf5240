/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What strangers, liars and floods can do to an endpoint (lib/proof.c, stranger.c, rx.c, rrx.c,
 * tx.c). a sends to b, which knows it as proved; everything else comes from the test.
 */
#include "tests/unit/lib/lib_rel.h"

#include "lib/proof.h"
#include "tests/unit/lib/lib_pair.h"

static struct failures fails;

/* Carry frames both ways until nothing moves. */
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

/* Let a send one message, of its number. Returns bl_send()'s result. */
static int say(uint32_t number)
{
	struct bl_msg m = msg_to(&b, &number, sizeof(number), number);

	return bl_send(a.ep, &m, 1, 0);
}

/* What b delivers must be a's messages from *@next on. */
static void hear(uint32_t *next)
{
	struct bl_delivery d[16];
	int n, i;

	fake_barrier(&b, a.ep->last_ts + 1);
	while ((n = bl_recv(b.ep, d, 16, 0)) > 0) {
		for (i = 0; i < n; i++) {
			if (d[i].src.port != a.ep->self.port ||
			    memcmp(d[i].src.ip, a.ep->self.ip, 16))
				continue;
			assert_int_equal(d[i].len, 4);
			assert_int_equal(*(const uint32_t *)d[i].data, (*next)++);
		}
	}
	assert_int_equal(n, 0);
}

static int two_up(void **state)
{
	uint32_t next = 0;

	(void)state;
	fake_key[0] = 0x0706050403020100;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	memset(b.ep->wake, 0, sizeof(*b.ep->wake));
	memset(&fails, 0, sizeof(fails));
	bl_on_send_fail(a.ep, on_fail, &fails);
	assert_int_equal(say(0), 0);
	settle();
	hear(&next);
	assert_int_equal(next, 1);
	assert_true(bl_proof_has(fake_peer(&b, &a), a.ep->incarnation));
	return 0;
}

/* Address number @i of those that the test invents. */
static struct bl_addr invented(uint32_t i)
{
	struct bl_addr x = { .ip = { [10] = 0xff, [11] = 0xff, [12] = 127, [13] = 9 },
			     .port = (uint16_t)(10000 + i % 16) };

	x.ip[14] = (uint8_t)(i / 16 >> 8);
	x.ip[15] = (uint8_t)(i / 16);
	return x;
}

static void put(const struct bl_addr *from, uint8_t op, uint64_t ts, uint32_t psn, const void *body,
		uint32_t len)
{
	while (!fake_put(&b, from, op, ts, psn, body, len))
		bl_process(b.ep);
}

static void put_data(const struct bl_addr *from, uint16_t incarnation, uint32_t psn, uint64_t ts)
{
	uint8_t body[64];

	put(from, BL_OP_DATA, ts, psn, body, body_one(body, incarnation, "forged", 6));
}

static void put_frag(const struct bl_addr *from, uint32_t psn, uint32_t id, uint32_t at,
		     uint32_t total)
{
	static uint8_t body[16 + 1200];

	bl_store16(body, 5);
	bl_store16(body + 2, 0);
	bl_frag_put(body + 4, id, at, total);
	put(from, BL_OP_FRAG, 0, psn, body, sizeof(body));
}

static struct bl_stats stats(void)
{
	struct bl_stats st = { .size = sizeof(st) };

	assert_int_equal(bl_get_stats(b.ep, &st), 0);
	assert_true(st.memory <= st.memory_max);
	assert_true(st.strangers <= BL_STRANGERS);
	return st;
}

/* ---- strangers ---- */

static void stranger__a_probe_leaves_nothing(void **state)
{
	const uint8_t body[4] = { 0, 5, 0, 0 };
	struct bl_stats was = stats(), st;
	uint64_t from = bl_mono(), rate;
	uint32_t i;

	(void)state;
	for (i = 0; i < 50000; i++) {
		struct bl_addr x = invented(i);

		put(&x, BL_OP_PROBE, 0, i, body, sizeof(body));
	}
	bl_process(b.ep);
	rate = BL_ANSWERS_BURST + 1 + (bl_mono() - from) / BL_ANSWERS_NS; /* of one bucket */
	st = stats();
	assert_int_equal(st.peers, was.peers);
	assert_int_equal(st.memory, was.memory);
	assert_true(st.credits_sent - was.credits_sent <= BL_ANSWERS_BUCKETS * rate);
	assert_int_equal(st.credits_sent - was.credits_sent + st.unanswered, 50000);
	/* From one host, whatever its ports. */
	was = st;
	from = bl_mono();
	for (i = 0; i < 20000; i++) {
		struct bl_addr x = invented(0);

		x.port = (uint16_t)(2000 + i);
		put(&x, BL_OP_PROBE, 0, i, body, sizeof(body));
	}
	bl_process(b.ep);
	rate = BL_ANSWERS_BURST + 1 + (bl_mono() - from) / BL_ANSWERS_NS;
	st = stats();
	assert_true(st.credits_sent - was.credits_sent <= rate);
	assert_int_equal(st.peers, was.peers);
}

/* What answers something creates nothing. */
static void stranger__answers_leave_nothing(void **state)
{
	static const uint8_t ops[] = { BL_OP_CREDIT, BL_OP_NAK, BL_OP_WINDOW, BL_OP_RECALLED };
	const uint8_t body[32] = { 0 };
	struct bl_stats was = stats();
	struct bl_addr x = invented(1);
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		put(&x, ops[i], 0, 0, body, sizeof(body));
	bl_process(b.ep);
	assert_int_equal(stats().peers, was.peers);
	assert_int_equal(stats().refused, was.refused + ARRAY_SIZE(ops));
}

/* The attack that took 54 GB: 17000 addresses announce messages of 1 MiB. */
static void stranger__large_messages(void **state)
{
	const struct bl_peer *p = fake_peer(&b, &a);
	uint32_t i, k, next = 1, window = bl_rx_window(b.ep);
	struct bl_stats st;

	(void)state;
	for (i = 0; i < 17000; i++) {
		struct bl_addr x = invented(i);

		for (k = 0; k < 4; k++)
			put_frag(&x, k, k, 0, BL_MSG_MAX);
		if (i % 1000)
			continue;
		assert_int_equal(say(next), 0);
		settle();
		hear(&next);
		assert_int_equal(next, i / 1000 + 2);
		st = stats();
		assert_true(st.memory < 64 * 5 * 16384 + (4u << 20));
	}
	assert_ptr_equal(bl_peer_find(b.ep, a.ep->self.ip, a.ep->self.port), p);
	assert_int_equal(b.ep->nsenders, 1);
	assert_int_equal(bl_rx_window(b.ep), window);
	assert_int_equal(b.ep->nic.senders, 1);
	assert_int_equal(fails.n, 0);
}

/* One stranger that sends all it can: bounded, and others' messages find room. */
static void stranger__one_that_sends_a_lot(void **state)
{
	struct bl_addr x = invented(7);
	uint32_t psn, id, at;

	(void)state;
	for (psn = id = 0; id < 100; id++) {
		for (at = 0; at + 1200 <= 300000; at += 1200) {
			put_frag(&x, psn++, id, at, BL_MSG_MAX);
			if (psn % 64 == 0)
				bl_process(b.ep);
			stats();
		}
	}
	assert_true(b.ep->strange_bytes <= BL_BIGS_STRANGE);
	assert_true(b.ep->strange_bytes >= 1u << 20);
	/* When it leaves the table, the account is even. */
	for (id = 100; id < 200; id++) {
		x = invented(id);
		put_data(&x, 5, 0, fake_now());
		fake_barrier(&b, fake_now());
		while (bl_recv(b.ep, &(struct bl_delivery){ 0 }, 1, 0) > 0)
			;
	}
	assert_int_equal(b.ep->strange_bytes, 0);
	assert_int_equal(b.ep->big_bytes, 0);
}

/* All strangers together: what is not proved has a limit of its own, and others' room is theirs. */
static void stranger__many_that_send_a_lot(void **state)
{
	uint64_t most = 0;
	uint32_t i, at;

	(void)state;
	for (i = 0; i < 30; i++) {
		struct bl_addr x = invented(i);

		for (at = 0; at + 1200 <= 300000; at += 1200)
			put_frag(&x, at / 1200, 1, at, BL_MSG_MAX);
		bl_process(b.ep);
		most = bl_max64(most, b.ep->strange_bytes);
	}
	assert_int_equal(stats().strangers, 30);
	assert_in_range(most, BL_BIGS_STRANGE - BL_MSG_MAX, BL_BIGS_STRANGE);
}

/* Strangers with something queued are not pushed out, and further ones find no room. */
static void stranger__the_table_is_full(void **state)
{
	struct bl_delivery d[16];
	uint64_t ts = fake_now() + 1000000000000;
	uint32_t i, n = 0;
	int k;

	(void)state;
	for (i = 0; i < 2 * BL_STRANGERS; i++) {
		struct bl_addr x = invented(i);

		put_data(&x, 5, 0, ts);
	}
	bl_process(b.ep);
	assert_int_equal(stats().strangers, BL_STRANGERS);
	assert_int_equal(stats().no_room, BL_STRANGERS);
	fake_barrier(&b, ts + 1);
	while ((k = bl_recv(b.ep, d, 16, 0)) > 0)
		n += (uint32_t)k;
	assert_int_equal(n, BL_STRANGERS);
	/* A PREP was acknowledged, and finds room beyond. */
	ts += 1000000000000;
	for (i = 0; i < 2 * BL_STRANGERS; i++) {
		struct bl_addr x = invented(i);
		uint8_t body[100] = { 0, 5, 0, 1 };

		bl_store16(body + 8, b.ep->incarnation);
		bl_item_put(body + BL_ACK_BODY, "y", 1);
		put(&x, BL_OP_PREP, ts, 0, body, sizeof(body));
	}
	bl_process(b.ep);
	commit(&b, ts + 1);
	for (n = 0; (k = bl_recv_reliable(b.ep, d, 16, 0)) > 0;)
		n += (uint32_t)k;
	assert_int_equal(n, 2 * BL_STRANGERS);
}

/* Another address, port or incarnation has another cookie, and so has another receiver. */
static void proof__whose_cookie(void **state)
{
	const struct bl_addr x = invented(1), y = invented(2), z = invented(17);
	uint64_t c = bl_proof_cookie(b.ep, &x, 5), was;
	uint8_t body[12] = { 0, 5, 0, 0 };

	(void)state;
	assert_true(c != bl_proof_cookie(b.ep, &y, 5)); /* port */
	assert_true(c != bl_proof_cookie(b.ep, &z, 5)); /* address */
	assert_true(c != bl_proof_cookie(b.ep, &x, 6));
	was = b.ep->key[1]++;
	assert_true(c != bl_proof_cookie(b.ep, &x, 5));
	b.ep->key[1] = was;
	bl_cookie_put(body + 4, c + 1);
	put(&x, BL_OP_PROBE, 0, 100, body, sizeof(body));
	bl_process(b.ep);
	assert_null(bl_peer_find(b.ep, x.ip, x.port));
	bl_cookie_put(body + 4, c);
	put(&x, BL_OP_PROBE, 0, 100, body, sizeof(body));
	bl_process(b.ep);
	assert_non_null(bl_peer_find(b.ep, x.ip, x.port));
	assert_int_equal(stats().strangers, 0);
	assert_int_equal(b.ep->nsenders, 2);
}

/* ---- a best-effort stream ---- */

static void place__forgeries_that_follow_each_other(void **state)
{
	struct bl_peer *p = fake_peer(&b, &a);
	uint32_t i, next = 1, far = p->rx.expected + (1u << 30);

	(void)state;
	for (i = 0; i < 200; i++) {
		put_data(&a.ep->self, a.ep->incarnation, far + i, a.ep->last_ts + 5);
		p->rx.odd.since_ns = 1; /* long ago */
		if (i % 10 == 0)
			assert_int_equal(say(1 + i / 10), 0);
		settle();
		hear(&next);
	}
	assert_int_equal(next, 21);
	assert_int_equal(b.ep->st.refused, 200);
	assert_int_equal(b.ep->st.lost_frames, 0);
	assert_int_equal(fails.n, 0);
}

/* A sender whose receiver is elsewhere is found by the challenge, after one frame. */
static void place__finds_the_sender_again(void **state)
{
	struct bl_peer *p = fake_peer(&b, &a);
	uint32_t next = 2;

	(void)state;
	p->rx.expected += 1u << 30;
	p->rx.credit_psn = p->rx.expected;
	assert_int_equal(say(1), 0);
	settle();
	assert_int_equal(p->rx.expected, fake_peer(&a, &b)->tx.next_psn);
	assert_int_equal(fails.n, 1); /* it is told that this one is lost */
	assert_int_equal(fails.f[0].cookie, 1);
	assert_int_equal(fails.f[0].why, BL_FAIL_LOST);
	for (; next < 50;) {
		assert_int_equal(say(next), 0);
		settle();
		hear(&next);
	}
	assert_int_equal(fails.n, 1);
}

/* A sender that answers no challenge, as those of earlier versions. */
static void place__without_an_answer(void **state)
{
	struct bl_addr x = invented(1);
	struct bl_peer *p;

	(void)state;
	put_data(&x, 5, 100, a.ep->last_ts + 1);
	put_data(&x, 5, 5000, a.ep->last_ts + 1);
	put_data(&x, 5, 5001, a.ep->last_ts + 1);
	bl_process(b.ep);
	p = bl_peer_find(b.ep, x.ip, x.port);
	assert_non_null(p);
	assert_int_equal(p->rx.expected, 101);
	assert_int_equal(b.ep->st.refused, 2);
	p->rx.odd.since_ns -= BL_ODD_NS;
	put_data(&x, 5, 5002, a.ep->last_ts + 1);
	bl_process(b.ep);
	assert_int_equal(p->rx.expected, 5003);
}

static void life__another_beside_a_proved_one(void **state)
{
	const uint16_t other = (uint16_t)(a.ep->incarnation + 1);
	struct bl_peer *p = fake_peer(&b, &a);
	uint32_t i, next = 1;
	struct seen s;
	uint64_t cookie = 0;
	uint8_t body[12];

	(void)state;
	for (i = 0; i < 100; i++) {
		put_data(&a.ep->self, (uint16_t)(other + i % 7), i, a.ep->last_ts + 5);
		if (i % 10 == 0)
			assert_int_equal(say(1 + i / 10), 0);
		settle();
		hear(&next);
	}
	assert_int_equal(next, 11);
	assert_int_equal(b.ep->st.refused, 100);
	assert_int_equal(p->rx.incarnation, a.ep->incarnation);
	assert_int_equal(fails.n, 0);
	/* It is told that the frame is lost, and is challenged; the answer is believed at once. */
	put_data(&a.ep->self, other, 7 << 8, a.ep->last_ts + 5);
	bl_process(b.ep);
	fake_expect(&a, &s, BL_OP_NAK);
	assert_int_equal(bl_load32(s.body), 7 << 8);
	assert_int_equal(bl_load16(s.body + 8), other);
	fake_expect(&a, &s, BL_OP_CREDIT);
	assert_int_equal(bl_load16(s.body + 4), other);
	cookie = bl_cookie_at(s.body, s.body_len, sizeof(struct bl_credit));
	assert_true(cookie != 0);
	bl_store16(body, other);
	bl_store16(body + 2, 0);
	bl_cookie_put(body + 4, cookie);
	put(&a.ep->self, BL_OP_PROBE, 0, (7 << 8) + 1, body, sizeof(body));
	put_data(&a.ep->self, other, (7 << 8) + 1, a.ep->last_ts + 5);
	bl_process(b.ep);
	assert_int_equal(p->rx.incarnation, other);
	assert_int_equal(p->rx.expected, (7 << 8) + 2);
	assert_true(bl_proof_has(p, other));
	assert_int_equal(b.ep->nsenders, 1);
}

/* A life that ends in order says so, and the next one need not prove that it has begun. */
static void life__after_one_that_has_left(void **state)
{
	const struct bl_addr was = a.ep->self;
	const uint16_t other = (uint16_t)(a.ep->incarnation + 1);
	struct bl_peer *p = fake_peer(&b, &a);
	struct bl_delivery d;

	(void)state;
	drop(&a);
	fake_carry(&b);
	bl_process(b.ep);
	assert_int_equal(p->proved, 0);
	assert_int_equal(b.ep->nsenders, 0);
	put_data(&was, other, 0, fake_now());
	fake_barrier(&b, fake_now() + 1);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	assert_int_equal(p->rx.incarnation, other);
	assert_int_equal(b.ep->st.refused, 0);
	make(&a, "127.0.0.1", 0);
}

/* A life that cannot answer is believed when the other one has ended. */
static void life__of_a_sender_that_answers_nothing(void **state)
{
	const uint16_t other = (uint16_t)(a.ep->incarnation + 1);
	struct bl_peer *p = fake_peer(&b, &a);

	(void)state;
	put_data(&a.ep->self, other, 0, a.ep->last_ts + 5);
	bl_process(b.ep);
	put_data(&a.ep->self, other, 1, a.ep->last_ts + 5);
	bl_process(b.ep);
	assert_int_equal(p->rx.incarnation, a.ep->incarnation);
	p->rx.claim_ns -= BL_ODD_NS;
	put_data(&a.ep->self, other, 2, a.ep->last_ts + 5);
	bl_process(b.ep);
	assert_int_equal(p->rx.incarnation, other);
}

/* A sender that ignores its window holds no more of the receiver's memory than one that does not.
 */
static void window__ignored(void **state)
{
	struct bl_peer *p = fake_peer(&b, &a);
	uint32_t first = p->rx.expected, i;

	(void)state;
	for (i = 0; i < 5000; i++)
		put_data(&a.ep->self, a.ep->incarnation, first + i, fake_now() + 1000000000000);
	bl_process(b.ep);
	assert_in_range(b.ep->rq.frames, BL_WINDOW_MAX - BL_STAGE_FRAMES, BL_WINDOW_MAX);
	assert_int_equal(b.ep->rq.frames + b.ep->st.refused, 5000);
}

/* ---- answers ---- */

static void credit__forged(void **state)
{
	struct bl_tx *t = &fake_peer(&a, &b)->tx;
	uint32_t window = t->window, out, i;
	struct rnd r = { 5 };

	(void)state;
	assert_int_equal(say(1), 0);
	out = t->next_psn - t->credited;
	assert_true(out > 0);
	for (i = 0; i < 3000; i++) {
		uint32_t psn = (uint32_t)rnd64(&r);

		if (psn - t->credited <= out + BL_AHEAD_MAX)
			continue;
		fake_credit(&a, &b, psn, 1);
		bl_process(a.ep);
	}
	fake_credit(&a, &b, t->credited - 1, 1);
	fake_credit(&a, &b, t->next_psn + BL_AHEAD_MAX + 1, 1);
	bl_process(a.ep);
	assert_int_equal(t->window, window);
	assert_int_equal(t->next_psn - t->credited, out);
	fake_credit(&a, &b, t->credited, 9);
	bl_process(a.ep);
	assert_int_equal(t->window, 9);
}

/* What may still be NAKed is not covered by a CREDIT. */
static void credit__not_for_a_frame_that_is_half_read(void **state)
{
	struct bl_peer *p = fake_peer(&b, &a);
	struct bl_msg m[3] = { msg_to(&b, "one", 3, 1), msg_to(&b, "two", 3, 2),
			       msg_to(&b, "six", 3, 3) };
	struct bl_delivery d;
	uint32_t psn = fake_peer(&a, &b)->tx.next_psn;
	int i;

	(void)state;
	assert_int_equal(bl_send(a.ep, m, 3, 0), 0);
	carry(&b, &a, true);
	fake_barrier(&b, a.ep->last_ts + 1);
	for (i = 0; i < 3; i++) {
		assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
		bl_credit_due(b.ep, p, true);
		bl_rx_credits(b.ep);
		assert_int_equal(p->rx.credit_psn, psn + (i == 2));
	}
}

static void nak__of_what_was_delivered(void **state)
{
	struct bl_tx *t = &fake_peer(&a, &b)->tx;
	uint32_t i, at, next = 1;

	(void)state;
	for (i = 1; i < 40; i++) {
		assert_int_equal(say(i), 0);
		settle();
		hear(&next);
	}
	settle();
	at = t->credited;
	assert_true(at - (t->next_psn - 40) > 20);
	for (i = 1; i < 20; i++)
		fake_nak(&a, &b, at - i, 1, BL_NAK_LOST, BL_NAK_WHOLE);
	fake_nak(&a, &b, at - 5, 6, BL_NAK_LOST, BL_NAK_WHOLE);
	fake_nak(&a, &b, t->next_psn, 1, BL_NAK_LOST, BL_NAK_WHOLE);
	fake_nak(&a, &b, t->next_psn - 1, 2, BL_NAK_LOST, BL_NAK_WHOLE);
	fake_nak(&a, &b, at, 1, BL_NAK_UNKNOWN, BL_NAK_WHOLE); /* never on the wire */
	bl_process(a.ep);
	assert_int_equal(fails.n, 0);
	assert_int_equal(a.ep->st.malformed, 1);
	/* What is outstanding may be lost; what a receiver that leaves had not read, may be told.
	 */
	assert_int_equal(say(40), 0);
	fake_nak(&a, &b, t->next_psn - 1, 1, BL_NAK_LOST, BL_NAK_WHOLE);
	fake_nak(&a, &b, at - 3, 1, BL_NAK_LEFT, BL_NAK_WHOLE);
	bl_process(a.ep);
	assert_int_equal(fails.n, 2);
}

static void window__forged(void **state)
{
	struct bl_rtx *t = &fake_peer(&a, &b)->rtx;
	uint8_t body[12] = { 0 };
	uint32_t psn[] = { t->next_psn + 1025, t->next_psn - 1025, t->next_psn + (1u << 31) };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(psn); i++) {
		bl_store32(body, psn[i]);
		bl_store16(body + 4, a.ep->incarnation);
		bl_store16(body + 6, 1);
		bl_store16(body + 8, 4711);
		assert_true(fake_put(&a, &b.ep->self, BL_OP_WINDOW, 0, 0, body, sizeof(body)));
		bl_process(a.ep);
		assert_false(t->open);
		assert_int_equal(a.ep->st.refused, i + 1);
	}
}

/* ---- the reliable stream ---- */

static void put_prep_of(uint16_t incarnation, uint32_t psn, uint64_t ts, uint32_t text)
{
	uint8_t body[100] = { 0 };

	bl_store16(body, incarnation);
	bl_store16(body + 2, 1);
	bl_store16(body + 8, b.ep->incarnation);
	bl_item_put(body + BL_ACK_BODY, &text, 4);
	put(&a.ep->self, BL_OP_PREP, ts, psn, body, sizeof(body));
}

static int hear_reliable(uint32_t *text, int max)
{
	struct bl_delivery d;
	int n = 0;

	commit(&b, fake_now() + 1000000000);
	while (bl_recv_reliable(b.ep, &d, 1, 0) == 1 && n < max) {
		assert_int_equal(d.len, 4);
		memcpy(&text[n++], d.data, 4);
	}
	return n;
}

/* A forged frame has the number of a frame that comes, and is acknowledged, afterwards. */
static void prep__a_forged_frame_has_its_number(void **state)
{
	struct bl_rtx *t = &fake_peer(&a, &b)->rtx;
	uint32_t text[8], next;
	struct bl_msg m;
	struct seen s;
	int n, i, good = 0;

	(void)state;
	introduce(&a, &b, 7);
	settle();
	next = t->next_psn;
	for (i = 0; i < 3; i++)
		put_prep_of(a.ep->incarnation, next + (uint32_t)i, fake_now() - 5000, 666);
	bl_process(b.ep);
	m = msg_to(&b, "good", 4, 1);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	while (fake_take(&b, &s)) /* twice, as after a lost ACK */
		for (i = 0; i < 2; i++)
			put(&a.ep->self, s.op, a.ep->last_ts, s.psn, s.body, s.body_len);
	bl_process(b.ep);
	n = hear_reliable(text, 8);
	for (i = 0; i < n; i++)
		good += !memcmp(&text[i], "good", 4);
	assert_int_equal(good, 1);
	assert_int_equal(n, 5); /* and the greeting, and what is forged */
}

/* A forged part has the number of the large message that comes, and another timestamp. */
static void prep__a_forged_part_has_its_message(void **state)
{
	static uint8_t whole[5000];
	struct bl_rtx *t = &fake_peer(&a, &b)->rtx;
	uint8_t body[200] = { 0 };
	struct bl_delivery d;
	struct bl_msg m = msg_to(&b, whole, sizeof(whole), 1);

	(void)state;
	introduce(&a, &b, 7);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1); /* parts wait for its buffer */
	settle();
	memset(whole, 0x5a, sizeof(whole));
	bl_store16(body, a.ep->incarnation);
	bl_store16(body + 8, b.ep->incarnation);
	bl_frag_put(body + BL_ACK_BODY, t->next_big, 0, sizeof(whole));
	put(&a.ep->self, BL_OP_PREP, fake_now() + 5000, t->next_psn, body, sizeof(body));
	bl_process(b.ep);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	settle();
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1);
	assert_int_equal(d.len, sizeof(whole));
	assert_memory_equal(d.data, whole, sizeof(whole));
}

/* OPENs and PREPs with other incarnations and numbers, one after the other. */
static void prep__the_place_of_a_proved_sender_stays(void **state)
{
	struct bl_peer *p = fake_peer(&b, &a);
	uint8_t body[4] = { 0 };
	uint32_t text[256], i, k, next = p->rrx.seq.next, good = 0;
	int n;

	(void)state;
	introduce(&a, &b, 7);
	settle();
	assert_true(p->rrx.sure);
	for (i = 0; i < 20; i++) {
		struct bl_msg m = msg_to(&b, &i, 4, 1);

		/* Its own incarnation in the last ten. The frames that follow are committed, too.
		 */
		for (k = 0; k < 3; k++) {
			uint16_t who = (uint16_t)(a.ep->incarnation + (i < 10 ? i + k + 1 : 0));
			uint32_t psn = next + (i << 24) + (k << 20) + 5000;

			bl_store16(body, who);
			put(&a.ep->self, BL_OP_OPEN, 0, psn, body, sizeof(body));
			put_prep_of(who, psn, fake_now(), 666);
			put_prep_of(who, psn + 1, fake_now(), 666);
			bl_process(b.ep);
		}
		assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
		settle();
	}
	assert_int_equal(b.ep->st.refused, 0);
	n = hear_reliable(text, 256);
	assert_int_equal(n, 21 + 20 * 6);
	for (i = 1; i < (uint32_t)n; i++)
		if (text[i] != 666)
			assert_int_equal(text[i], good++);
	assert_int_equal(good, 20);
	assert_int_equal(p->rrx.incarnation, a.ep->incarnation);
	assert_true(p->rrx.sure);
}

/* ---- all of it ---- */

/*
 * Forged frames of every kind, with a's address and others, between the frames of a. Their senders
 * cannot read what a and b send: they guess incarnations and numbers.
 */
static void property__blind_forgeries(void **state)
{
	struct rnd r;
	uint32_t next = 1, said = 1, i, k, text[64], rnext = 0, rsaid = 0;
	uint8_t body[128];
	int n;

	(void)state;
	r = rnd_seeded("hostile");
	introduce(&a, &b, -1);
	settle();
	assert_int_equal(hear_reliable(text, 64), 1);
	for (i = 0; i < 1500; i++) {
		for (k = rnd_below(&r, 12); k; k--) {
			struct bl_addr from = rnd_below(&r, 2) ? a.ep->self
							       : invented(rnd_below(&r, 4000));
			uint8_t op = (uint8_t)(1 + rnd_below(&r, 15));
			uint32_t len = 4 + rnd_below(&r, 100), w;

			for (w = 0; w + 4 <= sizeof(body); w += 4)
				bl_store32(body + w, (uint32_t)rnd64(&r));
			if (op == BL_OP_DATA || op == BL_OP_PREP)
				bl_store16(body + 2, 1 + rnd_below(&r, 2));
			if (bl_load16(body) == a.ep->incarnation)
				continue;
			put(&from, op, op == BL_OP_DATA || op == BL_OP_PREP ? fake_now() : 0,
			    (uint32_t)rnd64(&r), body, len);
			if (!rnd_below(&r, 3))
				assert_true(fake_put(&a, &b.ep->self, op, 0, (uint32_t)rnd64(&r),
						     body, len));
		}
		if (rnd_below(&r, 3) && !say(said))
			said++;
		if (rnd_below(&r, 2)) {
			struct bl_msg m = msg_to(&b, &rsaid, 4, 1);

			rsaid += !bl_send_reliable(a.ep, &m, 1, 0);
		}
		settle();
		hear(&next);
		assert_int_equal(next, said);
		n = hear_reliable(text, 64);
		for (k = 0; k < (uint32_t)n; k++)
			assert_int_equal(text[k], rnext++);
		assert_true(stats().memory < 16u << 20);
	}
	assert_int_equal(rnext, rsaid);
	assert_int_equal(fails.n, 0);
	assert_true(said > 900 && rsaid > 600);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, two_up, pair_down)
	const struct CMUnitTest tests[] = {
		T(stranger__a_probe_leaves_nothing),
		T(stranger__answers_leave_nothing),
		T(stranger__large_messages),
		T(stranger__one_that_sends_a_lot),
		T(stranger__many_that_send_a_lot),
		T(stranger__the_table_is_full),
		T(proof__whose_cookie),
		T(place__forgeries_that_follow_each_other),
		T(place__finds_the_sender_again),
		T(place__without_an_answer),
		T(life__another_beside_a_proved_one),
		T(life__after_one_that_has_left),
		T(life__of_a_sender_that_answers_nothing),
		T(window__ignored),
		T(credit__forged),
		T(credit__not_for_a_frame_that_is_half_read),
		T(nak__of_what_was_delivered),
		T(window__forged),
		T(prep__a_forged_frame_has_its_number),
		T(prep__a_forged_part_has_its_message),
		T(prep__the_place_of_a_proved_sender_stays),
		T(property__blind_forgeries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
