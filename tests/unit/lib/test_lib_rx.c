// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The best-effort receiver (lib/dispatch.c, lib/rx.c, lib/credit.c), from the ring to the
 * application: order, the barrier, sequence numbers, CREDITs and NAKs, large messages, and messages
 * to oneself. The test puts records into the ring, as the XDP program would, and reads the
 * endpoint's answers from the sockets of the peers. b receives; the test sends as a and c.
 */
#define FAKE_THREE
#include "tests/unit/lib/lib_fake.h"

#define INC 0x0777
#define T0  (FAKE_BUS + 1000)

/* Put one message of @from into b's ring. */
static void put_text(const struct fake *from, uint64_t ts, uint32_t psn, const char *text)
{
	uint8_t body[256];

	assert_true(fake_put(&b, &from->ep->self, BL_OP_DATA, ts, psn, body,
			     body_one(body, INC, text, (uint32_t)strlen(text))));
}

static void put_frag(const struct fake *from, uint32_t psn, uint32_t id, uint32_t offset,
		     uint32_t total, const uint8_t *data, uint32_t n)
{
	uint8_t body[1500] = { 0 };

	bl_store16(body, INC);
	bl_store32(body + 4, id);
	bl_store32(body + 8, offset);
	bl_store32(body + 12, total);
	memcpy(body + 16, data, n);
	assert_true(fake_put(&b, &from->ep->self, BL_OP_FRAG, 0, psn, body, 16 + n));
}

/* Put a frame with one small item and one reference into b's ring. */
static void put_ref(const struct fake *from, uint64_t ts, uint32_t psn, uint32_t id, uint32_t total)
{
	uint8_t body[32] = { 0 };

	bl_store16(body, INC);
	bl_store16(body + 2, 2);
	bl_store16(body + 4, 1);
	body[6] = 's';
	bl_store16(body + 7, BL_ITEM_REF);
	bl_store32(body + 9, id);
	bl_store32(body + 13, total);
	assert_true(fake_put(&b, &from->ep->self, BL_OP_DATA, ts, psn, body, 17));
}

/* What b delivers now, as text: one letter or word per message. */
static const char *delivered(void)
{
	static char text[512];
	struct bl_delivery d[8];
	size_t at = 0;
	int n, i;

	text[0] = 0;
	while ((n = bl_recv(b.ep, d, 8, 0)) > 0)
		for (i = 0; i < n; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%.*s ", (int)d[i].len,
					       (const char *)d[i].data);
	assert_int_equal(n, 0);
	if (at)
		text[at - 1] = 0;
	return text;
}

static void expect_nak(struct fake *to, uint32_t psn, uint32_t count, uint8_t why, uint8_t item)
{
	struct bl_nak_view v;
	struct seen s;

	do
		assert_true(fake_take(to, &s));
	while (s.op == BL_OP_CREDIT);
	assert_int_equal(s.op, BL_OP_NAK);
	assert_int_equal(bl_nak_open(&v, s.body, s.body_len), 0);
	assert_int_equal(v.psn, psn);
	assert_int_equal(v.count, count);
	assert_int_equal(v.why, why);
	assert_int_equal(v.item, item);
	assert_int_equal(v.incarnation, INC);
	assert_int_equal(s.ts, 0);
}

/* The number in the last CREDIT that @to got, or -1. Fails if there is a NAK. */
static int64_t credit(struct fake *to, uint32_t *window)
{
	int64_t psn = -1;
	struct seen s;

	while (fake_take(to, &s)) {
		struct bl_credit_view v;

		assert_int_equal(s.op, BL_OP_CREDIT);
		assert_int_equal(bl_credit_open(&v, s.body, s.body_len), 0);
		assert_int_equal(v.incarnation, INC);
		psn = v.psn;
		if (window)
			*window = v.window;
	}
	return psn;
}

/* ---- order ---- */

static void bl_recv__total_order_below_the_barrier(void **state)
{
	const struct fake *lo = memcmp(&a.ep->self, &c.ep->self, sizeof(struct bl_addr)) < 0 ? &a
											     : &c,
			  *hi = lo == &a ? &c : &a;

	(void)state;
	put_text(hi, T0 + 20, 0, "B");
	put_text(lo, T0 + 10, 0, "A");
	put_text(lo, T0 + 30, 1, "D");
	put_text(hi, T0 + 30, 1, "E");
	put_text(lo, T0 + 25, 2, "C"); /* numbers rise, but timestamps decide */
	assert_string_equal(delivered(), "");
	fake_barrier(&b, T0 + 10);
	assert_string_equal(delivered(), "");
	fake_barrier(&b, T0 + 11);
	assert_string_equal(delivered(), "A");
	fake_barrier(&b, T0 + 30);
	assert_string_equal(delivered(), "B C");
	fake_barrier(&b, T0 + 31);
	assert_string_equal(delivered(), "D E");
	assert_int_equal(b.ep->st.messages_delivered, 5);
	assert_int_equal(b.ep->rq.frames, 0);
}

static void bl_recv__delivery_fields_and_portions(void **state)
{
	uint8_t body[64];
	struct bl_delivery d[2];
	int i;

	(void)state;
	bl_store16(body, INC);
	bl_store16(body + 2, 5);
	for (i = 0; i < 5; i++) {
		bl_store16(body + 4 + 3 * i, 1);
		body[6 + 3 * i] = (uint8_t)('a' + i);
	}
	fake_put(&b, &a.ep->self, BL_OP_DATA, T0, 0, body, 4 + 15);
	fake_barrier(&b, T0 + 1);
	assert_int_equal(bl_process(b.ep), 5);
	for (i = 0; i < 5; i += 2) {
		int n = bl_recv(b.ep, d, 2, 0);

		assert_int_equal(n, i < 4 ? 2 : 1);
		assert_int_equal(d[0].ts, T0);
		assert_memory_equal(&d[0].src, &a.ep->self, sizeof(struct bl_addr));
		assert_int_equal(d[0].len, 1);
		assert_int_equal(*(const char *)d[0].data, 'a' + i);
		assert_int_equal(bl_process(b.ep), i < 4 ? 3 - i : 0);
	}
	assert_int_equal(bl_recv(b.ep, d, 2, 0), 0);
	assert_int_equal(bl_recv(b.ep, d, 0, 0), -EINVAL);
}

static void bl_recv__late_is_dropped_and_naked(void **state)
{
	(void)state;
	put_text(&a, T0 + 10, 0, "A");
	put_text(&c, T0 + 5, 0, "C");
	fake_barrier(&b, T0 + 20);
	assert_string_equal(delivered(), "C A");
	/*
	 * Below what was delivered. A frame at the barrier, but above what was delivered, is not
	 * late.
	 */
	put_text(&c, T0 + 9, 1, "no");
	put_text(&c, T0 + 11, 2, "yes");
	assert_string_equal(delivered(), "yes");
	expect_nak(&c, 1, 1, BL_NAK_LATE, BL_NAK_WHOLE);
	assert_int_equal(b.ep->st.late_dropped, 1);
}

/* ---- the ring ---- */

static void bl_rx_drain__a_busy_record_hides_the_barrier(void **state)
{
	uint32_t *hdr;
	struct bl_rec *rec;
	uint8_t body[16];
	uint32_t n = body_one(body, INC, "B", 1);

	(void)state;
	put_text(&a, T0 + 1, 0, "A");
	hdr = fake_reserve(&b, BL_REC_SMALL, 1u << 31, &rec); /* being written */
	assert_non_null(hdr);
	put_text(&a, T0 + 9, 1, "C");
	fake_barrier(&b, T0 + 10);
	assert_string_equal(delivered(), "");
	assert_int_equal(b.ep->rq.frames, 1); /* the record before it was taken */
	*rec = (struct bl_rec){
		.ts = T0 + 0, .psn = 0, .sport = c.ep->self.port, .opcode = BL_OP_DATA, .len = n
	};
	memcpy(rec->saddr, c.ep->self.ip, 16);
	memcpy(rec + 1, body, n);
	__atomic_store_n(hdr, BL_REC_SMALL, __ATOMIC_RELEASE);
	assert_string_equal(delivered(), "B A C");
}

static void bl_rx_drain__discarded_records_are_skipped(void **state)
{
	struct bl_rec *rec;

	(void)state;
	assert_non_null(fake_reserve(&b, 8, 1u << 30, &rec));
	put_text(&a, T0, 0, "A");
	assert_non_null(fake_reserve(&b, 8, 1u << 30, &rec));
	fake_barrier(&b, T0 + 1);
	assert_string_equal(delivered(), "A");
	assert_int_equal(*b.ep->ring_cons, *b.prod);
	assert_int_equal(b.ep->st.frames_received, 1);
}

static void bl_rx_drain__the_ring_goes_round(void **state)
{
	struct bl_delivery d;
	uint8_t body[1500];
	uint64_t k;

	(void)state;
	for (k = 0; k < 3000; k++) {
		uint32_t n = (uint32_t)(k * 31 % 1400);

		memset(body, (int)k, sizeof(body));
		assert_true(fake_put(&b, &a.ep->self, BL_OP_DATA, T0 + k, (uint32_t)k, body,
				     body_one(body, INC, body + 6, n)));
		fake_barrier(&b, T0 + k + 1);
		assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
		assert_int_equal(d.ts, T0 + k);
		assert_int_equal(d.len, n);
		assert_true(!n || ((const uint8_t *)d.data)[n - 1] == (uint8_t)k);
	}
	assert_true(*b.prod > 4 * FAKE_RING);
}

/* ---- sequence numbers ---- */

static void accept_psn__duplicates(void **state)
{
	(void)state;
	put_text(&a, T0 + 1, 0, "A");
	put_text(&a, T0 + 1, 0, "A");
	put_text(&a, T0 + 2, 1, "B");
	put_text(&a, T0 + 1, 0, "A");
	put_text(&a, T0 + 2, 1, "B");
	fake_barrier(&b, T0 + 10);
	assert_string_equal(delivered(), "A B");
	assert_int_equal(b.ep->st.duplicates, 3);
	assert_int_equal(b.ep->st.lost_frames, 0);
}

static void accept_psn__a_gap_is_naked_at_once(void **state)
{
	(void)state;
	put_text(&a, T0 + 1, 0, "A");
	put_text(&a, T0 + 9, 4, "E");
	put_text(&a, T0 + 5, 2, "no"); /* it came after all, but was given up already */
	fake_barrier(&b, T0 + 10);
	assert_string_equal(delivered(), "A E");
	expect_nak(&a, 1, 3, BL_NAK_LOST, BL_NAK_WHOLE);
	assert_int_equal(b.ep->st.lost_frames, 3);
	assert_int_equal(b.ep->st.duplicates, 1);
}

static void accept_psn__where_a_stream_begins(void **state)
{
	static const struct {
		uint32_t psn, lost;
	} t[] = { { 0, 0 },
		  { 1, 1 },
		  { BL_WINDOW_FIRST - 1, BL_WINDOW_FIRST - 1 },
		  { BL_WINDOW_FIRST, 0 },
		  { 1000, 0 },
		  { 0xffffffff, 0 } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct fake d;

		fake_make(&d, "127.0.0.4", 1 << 16);
		b.ep->st.lost_frames = 0;
		put_text(&d, T0 + i, t[i].psn, "x");
		bl_process(b.ep);
		assert_int_equal(b.ep->st.lost_frames, t[i].lost);
		if (t[i].lost)
			expect_nak(&d, 0, t[i].lost, BL_NAK_LOST, BL_NAK_WHOLE);
		put_text(&d, T0 + i + 10, t[i].psn + 1, "y"); /* also over the wrap */
		bl_process(b.ep);
		assert_int_equal(b.ep->st.lost_frames, t[i].lost);
		fake_free(&d);
	}
}

static void accept_psn__a_restarted_sender_begins_anew(void **state)
{
	uint8_t body[16];

	(void)state;
	put_text(&a, T0 + 1, 0, "A");
	put_text(&a, T0 + 2, 1, "B");
	fake_put(&b, &a.ep->self, BL_OP_DATA, T0 + 3, 0, body, body_one(body, INC + 1, "new", 3));
	fake_barrier(&b, T0 + 10);
	assert_string_equal(delivered(), "A B new");
	assert_int_equal(b.ep->st.duplicates, 0);
	assert_int_equal(b.ep->nsenders, 1);
}

static void handle_record__malformed(void **state)
{
	static const uint8_t cut[] = { 0x07, 0x77, 0, 1, 0, 9, 'x' };

	(void)state;
	put_text(&a, T0 + 1, 0, "A");
	/* Its number is used up, so the next one is no gap. */
	fake_put(&b, &a.ep->self, BL_OP_DATA, T0 + 2, 1, cut, sizeof(cut));
	put_text(&a, T0 + 3, 2, "C");
	/* No incarnation: nothing can be said about it. */
	fake_put(&b, &a.ep->self, BL_OP_DATA, T0 + 3, 3, cut, 3);
	fake_put(&b, &a.ep->self, 9, 0, 4, cut, sizeof(cut));
	/* Our own address, from outside. */
	fake_put(&b, &b.ep->self, BL_OP_DATA, T0 + 4, 0, cut, sizeof(cut));
	fake_put(&b, &a.ep->self, BL_OP_FRAG, 0, 3, cut, sizeof(cut));
	fake_put(&b, &a.ep->self, BL_OP_CREDIT, 0, 0, cut, sizeof(cut));
	fake_put(&b, &a.ep->self, BL_OP_NAK, 0, 0, cut, sizeof(cut));
	fake_barrier(&b, T0 + 10);
	assert_string_equal(delivered(), "A C");
	assert_int_equal(b.ep->st.malformed, 7);
	expect_nak(&a, 1, 1, BL_NAK_MALFORMED, BL_NAK_WHOLE);
}

/* ---- credits ---- */

static void bl_rx_credits__when(void **state)
{
	uint32_t w = 0, k;

	(void)state;
	put_text(&a, T0, 0, "0");
	bl_process(b.ep);
	/*
	 * The first frame causes a CREDIT at once, with the real window; the frame itself is still
	 * queued.
	 */
	assert_int_equal(credit(&a, &w), 0);
	assert_int_equal(w, BL_NIC_FRAMES / 8);
	for (k = 1; k < w; k++)
		put_text(&a, T0 + k, k, "x");
	bl_process(b.ep);
	assert_int_equal(credit(&a, NULL), -1); /* nothing was delivered: the window stays closed */
	fake_barrier(&b, T0 + (w + 3) / 4 - 1);
	delivered();
	assert_int_equal(credit(&a, NULL), -1);
	fake_barrier(&b, T0 + (w + 3) / 4);
	delivered();
	assert_int_equal(credit(&a, NULL), (w + 3) / 4);
	fake_barrier(&b, T0 + 1000);
	delivered();
	/* Less than a quarter is kept back. */
	assert_in_range(credit(&a, NULL), w - (w + 3) / 4 + 1, w);
}

static void bl_rx_credits__windows_shrink_with_senders(void **state)
{
	uint32_t w = 0, i;

	(void)state;
	for (i = 0; i < 200; i++) {
		struct bl_addr from = { .ip = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 9 },
					.port = (uint16_t)(20000 + i) };
		uint8_t body[16];

		fake_put(&b, &from, BL_OP_DATA, T0, 0, body, body_one(body, INC, "x", 1));
		bl_process(b.ep);
	}
	put_text(&a, T0, 0, "0");
	bl_process(b.ep);
	assert_int_equal(credit(&a, &w), 0);
	/* never less, since a window of 0 would last for ever */
	assert_int_equal(w, BL_WINDOW_FIRST);
	assert_int_equal(b.ep->nsenders, 201);
}

/*
 * What all senders together may have outstanding fits the ring of the NIC, here and at each of
 * them. A larger ring of the endpoint is asked for where the network holds more.
 */
static void bl_rx_window__fits_a_nic(void **state)
{
	uint32_t n, w;

	(void)state;
	for (n = 1; n < 300; n++) {
		b.ep->nsenders = n;
		w = bl_rx_window(b.ep);
		if (w * n > 240 && w > BL_WINDOW_FIRST)
			fail_msg("%u senders with %u frames each", n, w);
	}
	b.ep->nsenders = 8;
	b.ep->ring_bytes *= 4;
	b.ep->ring_frames *= 4;
	assert_true(bl_rx_window(b.ep) * 8 > 256);
	b.ep->nsenders = 0;
	b.ep->ring_bytes /= 4;
	b.ep->ring_frames /= 4;
}

static void bl_rx_probe__is_answered_and_finds_losses(void **state)
{
	uint8_t body[4] = { INC >> 8, INC & 0xff, 0, 0 };

	(void)state;
	put_text(&a, T0, 0, "A");
	fake_barrier(&b, T0 + 10);
	assert_string_equal(delivered(), "A");
	credit(&a, NULL);
	fake_put(&b, &a.ep->self, BL_OP_PROBE, 0, 1, body, 4);
	bl_process(b.ep);
	assert_int_equal(credit(&a, NULL), 1);
	assert_int_equal(b.ep->st.lost_frames, 0);
	/* Frames 1 and 2 were sent before it. */
	fake_put(&b, &a.ep->self, BL_OP_PROBE, 0, 3, body, 4);
	bl_process(b.ep);
	expect_nak(&a, 1, 2, BL_NAK_LOST, BL_NAK_WHOLE);
	assert_int_equal(credit(&a, NULL), 3);
	/* An old PROBE changes nothing, and is answered. */
	fake_put(&b, &a.ep->self, BL_OP_PROBE, 0, 2, body, 4);
	bl_process(b.ep);
	assert_int_equal(credit(&a, NULL), 3);
	assert_int_equal(b.ep->st.lost_frames, 2);
	put_text(&a, T0 + 20, 3, "D");
	fake_barrier(&b, T0 + 30);
	assert_string_equal(delivered(), "D");
	/* An unknown sender gets a window without having sent anything. */
	fake_put(&b, &c.ep->self, BL_OP_PROBE, 0, 0, body, 4);
	bl_process(b.ep);
	assert_int_equal(credit(&c, NULL), 0);
}

/* ---- large messages ---- */

static uint8_t big[BL_MESSAGE_MAX];

static void bl_rx_frag__reassembly(void **state)
{
	struct bl_delivery d[4];
	uint32_t at, psn = 0;

	(void)state;
	for (at = 0; at < sizeof(big); at++)
		big[at] = (uint8_t)(at * 13 + (at >> 10));
	for (at = 0; at < 5000; at += 1000)
		put_frag(&a, psn++, 7, at, 4500, big + at, at == 4000 ? 500 : 1000);
	put_ref(&a, T0, psn++, 7, 4500);
	fake_barrier(&b, T0 + 1);
	assert_int_equal(bl_recv(b.ep, d, 4, 0), 2);
	assert_int_equal(d[0].len, 1);
	assert_int_equal(d[1].len, 4500);
	assert_memory_equal(d[1].data, big, 4500);
	assert_int_equal(fake_peer(&b, &a)->rx.big_bytes, 0);
	assert_null(fake_peer(&b, &a)->rx.big);
}

static void bl_rx_frag__two_interleaved(void **state)
{
	struct bl_delivery d[4];

	(void)state;
	put_frag(&a, 0, 1, 0, 200, big, 100);
	put_frag(&a, 1, 2, 0, 200, big + 1000, 100);
	put_frag(&a, 2, 1, 100, 200, big + 100, 100);
	put_frag(&a, 3, 2, 100, 200, big + 1100, 100);
	put_ref(&a, T0, 4, 1, 200);
	put_ref(&a, T0 + 1, 5, 2, 200);
	fake_barrier(&b, T0 + 2);
	assert_int_equal(bl_recv(b.ep, d, 4, 0), 4);
	assert_memory_equal(d[1].data, big, 200);
	assert_memory_equal(d[3].data, big + 1000, 200);
}

static void bl_rx_frag__lost_parts(void **state)
{
	static const struct {
		const char *what;
		/*
		 * which of the parts 0 to 2 is lost; 3: all; 4: none, but the reference has a wrong
		 * length
		 */
		int lose;
	} t[] = { { "first", 0 }, { "middle", 1 }, { "last", 2 }, { "all", 3 }, { "lie", 4 } };
	uint32_t psn = 0;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		uint32_t k, id = 10 + (uint32_t)i;

		for (k = 0; k < 3; k++, psn++)
			if (t[i].lose != (int)k && t[i].lose != 3)
				put_frag(&a, psn, id, k * 100, 300, big + k * 100, 100);
		put_ref(&a, T0 + i, psn, id, t[i].lose == 4 ? 299 : 300);
		fake_barrier(&b, T0 + i + 1);
		/* Its neighbour in the frame is delivered, the large message is not. */
		assert_string_equal(delivered(), "s");
		if (t[i].lose < 3)
			expect_nak(&a, psn - 3 + (uint32_t)t[i].lose, 1, BL_NAK_LOST, BL_NAK_WHOLE);
		else if (t[i].lose == 3)
			expect_nak(&a, psn - 3, 3, BL_NAK_LOST, BL_NAK_WHOLE);
		expect_nak(&a, psn, 1, BL_NAK_INCOMPLETE, 1);
		psn++;
		assert_int_equal(fake_peer(&b, &a)->rx.big_bytes, 0);
	}
}

static void bl_rx_frag__too_much_ahead(void **state)
{
	uint32_t psn = 0, id;

	(void)state;
	for (id = 0; id < 5; id++)
		put_frag(&a, psn++, id, 0, BL_MSG_MAX, big, 100);
	put_ref(&a, T0, psn, 4, BL_MSG_MAX);
	fake_barrier(&b, T0 + 1);
	assert_string_equal(delivered(), "s");
	expect_nak(&a, psn, 1, BL_NAK_NO_MEMORY, 1);
}

/* Messages whose reference was lost must not use up the sender's share for ever. */
static void bl_rx_frag__orphans_are_forgotten(void **state)
{
	uint32_t psn = 0, id, k;
	struct bl_delivery d[4];

	(void)state;
	for (id = 0; id < 2 * BL_BIG_MAX / 700000; id++) {
		uint32_t total = 700000 + id;

		for (k = 0; k < total; k += 1400, psn++) {
			put_frag(&a, psn, id, k, total, big + k,
				 total - k < 1400 ? total - k : 1400);
			bl_process(b.ep);
		}
		if (id % 4 < 3) {
			psn++; /* the reference of this message is lost */
			continue;
		}
		put_ref(&a, T0 + id, psn++, id, total);
		fake_barrier(&b, T0 + id + 1);
		assert_int_equal(bl_recv(b.ep, d, 4, 0), 2);
		assert_memory_equal(d[1].data, big, total);
		/*
		 * References come in the order of their messages, so no reference to older messages
		 * follows.
		 */
		assert_int_equal(fake_peer(&b, &a)->rx.big_bytes, 0);
	}
}

static void self__messages_to_oneself(void **state)
{
	struct bl_msg m[3] = { msg_to(&b, "me", 2, 1), msg_to(&a, "you", 3, 2),
			       msg_to(&b, big, 5000, 3) };
	struct bl_delivery d[4];
	struct seen s;

	(void)state;
	assert_int_equal(bl_send(b.ep, m, 3, 0), 0);
	/* The barrier of messages to oneself comes back from the switch, as for everybody. */
	assert_int_equal(bl_recv(b.ep, d, 4, 0), 0);
	fake_barrier_now(&b);
	assert_int_equal(bl_recv(b.ep, d, 4, 0), 2);
	assert_int_equal(d[0].len, 2);
	assert_memory_equal(d[0].data, "me", 2);
	assert_int_equal(d[1].len, 5000);
	assert_memory_equal(d[1].data, big, 5000);
	assert_memory_equal(&d[0].src, &b.ep->self, sizeof(struct bl_addr));
	fake_expect(&a, &s, BL_OP_DATA);
	assert_int_equal(s.ts, d[0].ts);
	fake_silent(&b);
	assert_int_equal(b.ep->staged_bytes, 0);
}

/*
 * A message that is sent after a delivery comes after it, though this host's clock is behind: by
 * its timestamp at others, and not late at oneself.
 */
static void self__above_what_was_delivered(void **state)
{
	struct bl_msg m[2] = { msg_to(&b, "me", 2, 1), msg_to(&a, "you", 3, 2) };
	const uint64_t ahead = bl_get_timestamp(b.ep) + 3600000000000ULL;
	struct seen s;

	(void)state;
	put_text(&c, ahead, 0, "C");
	fake_barrier(&b, ahead + 1);
	assert_string_equal(delivered(), "C");
	assert_int_equal(bl_send(b.ep, m, 2, 0), 0);
	fake_expect(&a, &s, BL_OP_DATA);
	assert_int_equal(s.ts, ahead + 1);
	fake_barrier(&b, ahead + 2);
	assert_string_equal(delivered(), "me");
	assert_int_equal(b.ep->st.late_dropped, 0);
}

static void self__is_bound_by_no_window(void **state)
{
	struct bl_delivery d[8];
	int i, got = 0, n;

	(void)state;
	for (i = 0; i < 2000; i++) {
		struct bl_msg m = msg_to(&b, &i, sizeof(i), 0);

		assert_int_equal(bl_send(b.ep, &m, 1, 0), 0);
	}
	fake_barrier_now(&b);
	while ((n = bl_recv(b.ep, d, 8, 0)) > 0)
		for (i = 0; i < n; i++, got++)
			assert_memory_equal(d[i].data, &got, sizeof(got));
	assert_int_equal(got, 2000);
}

/* ---- waiting ---- */

static void bl_process__arms_for_the_first_message(void **state)
{
	(void)state;
	assert_int_equal(bl_process(b.ep), 0);
	assert_int_equal(b.ep->wake->until, BL_WAKE_ON_DATA);
	assert_int_equal(b.ep->hints->next, BL_TIME_NONE);
	put_text(&a, T0 + 7, 0, "A");
	assert_int_equal(bl_process(b.ep), 0);
	assert_int_equal(b.ep->wake->until, T0 + 7);
	assert_int_equal(b.ep->hints->next, T0 + 7);
	b.ep->hints->next = T0 + 3; /* another sleeper's: it is not raised */
	assert_int_equal(bl_process(b.ep), 0);
	assert_int_equal(b.ep->hints->next, T0 + 3);
	fake_barrier(&b, T0 + 8);
	assert_int_equal(bl_process(b.ep), 1);
	assert_int_equal(b.ep->wake->until, BL_TIME_NONE);
	assert_string_equal(delivered(), "A");
}

static void bl_recv__timeout(void **state)
{
	struct bl_delivery d;
	uint64_t t = bl_mono();

	(void)state;
	assert_int_equal(bl_recv(b.ep, &d, 1, 20), 0);
	assert_true(bl_mono() - t >= 19000000);
	assert_int_equal(b.ep->wake->until, BL_TIME_NONE);
	assert_int_equal(bl_wait(b.ep, 0, 0), -EINVAL);
	assert_int_equal(bl_wait(b.ep, 64, 0), -EINVAL);
	assert_int_equal(bl_wait(b.ep, BL_WAIT_SEND | BL_WAIT_RECV, -1), BL_WAIT_SEND);
}

static void bl_get_stats__size_is_checked(void **state)
{
	struct bl_stats st = { .size = sizeof(st) - 8 };

	(void)state;
	assert_int_equal(bl_get_stats(b.ep, &st), -EINVAL);
	put_text(&a, T0 + 1, 0, "A");
	bl_process(b.ep);
	fake_barrier(&b, T0);
	bl_process(b.ep);
	st.size = sizeof(st);
	assert_int_equal(bl_get_stats(b.ep, &st), 0);
	assert_int_equal(st.size, sizeof(st));
	assert_int_equal(st.queued_frames, 1);
	assert_int_equal(st.frames_received, 1);
	assert_int_equal(st.barrier, T0);
	assert_int_equal(st.peers, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, three_up, three_down)
		T(bl_recv__total_order_below_the_barrier),
		T(bl_recv__delivery_fields_and_portions),
		T(bl_recv__late_is_dropped_and_naked),
		T(bl_rx_drain__a_busy_record_hides_the_barrier),
		T(bl_rx_drain__discarded_records_are_skipped),
		T(bl_rx_drain__the_ring_goes_round),
		T(accept_psn__duplicates),
		T(accept_psn__a_gap_is_naked_at_once),
		T(accept_psn__where_a_stream_begins),
		T(accept_psn__a_restarted_sender_begins_anew),
		T(handle_record__malformed),
		T(bl_rx_credits__when),
		T(bl_rx_credits__windows_shrink_with_senders),
		T(bl_rx_window__fits_a_nic),
		T(bl_rx_probe__is_answered_and_finds_losses),
		T(bl_rx_frag__reassembly),
		T(bl_rx_frag__two_interleaved),
		T(bl_rx_frag__lost_parts),
		T(bl_rx_frag__too_much_ahead),
		T(bl_rx_frag__orphans_are_forgotten),
		T(self__messages_to_oneself),
		T(self__above_what_was_delivered),
		T(self__is_bound_by_no_window),
		T(bl_process__arms_for_the_first_message),
		T(bl_recv__timeout),
		T(bl_get_stats__size_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
