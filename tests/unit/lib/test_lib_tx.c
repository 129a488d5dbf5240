// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The best-effort sender (lib/stage.c, lib/tx.c, lib/batch.c): what leaves the socket, byte by
 * byte, and when: stages, timestamps, windows, undo. test_lib_tx_fail.c has failures and silence.
 */
#include "tests/unit/unit.h"

/* Before the header that has stations a, b and c. */
#include "core/clock_core.h"
#include "core/order/hop_core.h"

#include "tests/unit/lib/lib_tx.h"

/* ---- layout ---- */

static void bl_send__one_message_on_the_wire(void **state)
{
	uint64_t before, after;
	struct seen s;

	(void)state;
	before = fake_now();
	assert_int_equal(send_one(&b, "hello", 5, 0, 0), 0);
	after = fake_now();
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.len, 24 + 4 + 2 + 5);
	assert_in_range(s.ts, before, after);
	assert_int_equal(s.psn, 0);
	assert_int_equal(s.h->flags, BL_HOP_HOST);
	/* The last frame of its flush claims its barrier. */
	assert_int_equal(bl_get48(s.h->barrier), bl_claim_wire(s.ts));
	/* Until the egress program has filled them, neither promises anything. */
	assert_true(bl_hop_old(bl_ext48(bl_get48(s.h->barrier), after),
			       bl_ext48(bl_get48(s.h->commit), after), after));
	assert_int_equal(bl_load16(s.body), a.ep->incarnation);
	assert_int_equal(bl_load16(s.body + 2), 1);
	assert_int_equal(bl_load16(s.body + 4), 5);
	assert_memory_equal(s.body + 6, "hello", 5);
	fake_silent(&b);
	assert_int_equal(a.ep->line->ts, BL_TIME_NONE);
	assert_int_equal(a.ep->st.frames_sent, 1);
	assert_int_equal(a.ep->st.messages_sent, 1);
	/* An empty message gets the next number and a later timestamp. */
	before = s.ts;
	assert_int_equal(send_one(&b, NULL, 0, 0, 0), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.psn, 1);
	assert_true(s.ts > before);
	assert_int_equal(s.len, 24 + 4 + 2);
}

static void bl_send__a_scattering_has_one_timestamp(void **state)
{
	struct bl_msg m[] = { msg_to(&b, "1", 1, 0), msg_to(&c, "2", 1, 0), msg_to(&b, "3", 1, 0) };
	struct seen sb, sc;

	(void)state;
	assert_int_equal(bl_send(a.ep, m, 3, 0), 0);
	fake_expect(&b, &sb, BL_OP_DATA);
	fake_expect(&c, &sc, BL_OP_DATA);
	assert_int_equal(sb.ts, sc.ts);
	assert_int_equal(bl_load16(sb.body + 2), 2);
	assert_int_equal(bl_load16(sc.body + 2), 1);
	fake_silent(&b);
	fake_silent(&c);
	assert_int_equal(a.ep->st.scatterings, 1);
}

static void bl_send__timestamps_rise_when_the_clock_stands(void **state)
{
	uint64_t last = 0;
	struct seen s;
	int i;

	(void)state;
	/*
	 * A clock that stands still; then one behind the last timestamp, as after a restart of the
	 * daemon.
	 */
	fake_peer(&a, &b)->tx.window = 8;
	bl_clock_start(a.clock, bl_mono(), fake_now());
	a.clock->seg[0].rate = a.clock->seg[1].rate = -(1 << 30);
	for (i = 0; i < 6; i++) {
		if (i == 3)
			a.ep->last_ts += 1000000000;
		assert_int_equal(send_one(&b, "x", 1, 0, 0), 0);
		fake_expect(&b, &s, BL_OP_DATA);
		assert_true(s.ts > last);
		last = s.ts;
	}
	assert_int_equal(last, a.ep->last_ts);
}

static void bl_send__more_shares_a_frame(void **state)
{
	struct bl_items it;
	struct bl_item item;
	struct seen s;
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(send_one(&b, pattern + i, (uint32_t)i * 10, 0, BL_MORE), 0);
	fake_silent(&b);
	assert_int_equal(bl_flush(a.ep), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(bl_items_open(&it, s.body, s.body_len), 3);
	for (i = 0; i < 3; i++) {
		assert_true(bl_items_next(&it, &item));
		assert_int_equal(item.len, i * 10);
		assert_memory_equal(item.data, pattern + i, (size_t)i * 10);
	}
	fake_silent(&b);
	/* A send without BL_MORE takes along what was held back. */
	assert_int_equal(send_one(&b, "x", 1, 0, BL_MORE), 0);
	assert_int_equal(send_one(&c, "y", 1, 0, 0), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	fake_expect(&c, &s, BL_OP_DATA);
}

static void bl_send__gso_layout(void **state)
{
	uint32_t i, k;
	struct seen s;

	(void)state;
	/*
	 * 65 + 64 + 1 items: two frames full by count and padded, the third one as long as its
	 * items.
	 */
	for (i = 0; i < 2 * BL_ITEMS_MAX + 1; i++)
		assert_int_equal(send_one(&b, &pattern[i], 3, 0, BL_MORE), 0);
	assert_int_equal(bl_flush(a.ep), 0);
	for (k = 0; k < 3; k++) {
		uint32_t n = k < 2 ? BL_ITEMS_MAX : 1, used = FRAME_HEAD + n * 5;

		fake_expect(&b, &s, BL_OP_DATA);
		assert_int_equal(s.psn, k);
		assert_int_equal(s.len, k < 2 ? a.ep->frame_max : used);
		assert_int_equal(bl_load16(s.body + 2), n);
		for (i = 0; i < n; i++)
			assert_memory_equal(s.b + FRAME_HEAD + i * 5 + 2,
					    &pattern[k * BL_ITEMS_MAX + i], 3);
		for (i = used; i < s.len; i++)
			assert_int_equal(s.b[i], 0);
		if (k)
			assert_int_equal(s.ts, a.ep->last_ts);
	}
	fake_silent(&b);
}

static void bl_send__frame_filled_to_the_byte(void **state)
{
	const uint32_t room = a.ep->frame_max - FRAME_HEAD - 2;
	struct seen s;

	(void)state;
	assert_int_equal(send_one(&b, pattern, room - 1, 0, 0), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.len, a.ep->frame_max - 1);
	assert_int_equal(send_one(&b, pattern, room, 0, 0), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.len, a.ep->frame_max);
	assert_memory_equal(s.body + 6, pattern, room);
	/* One byte more: FRAGs first, then a reference. */
	assert_int_equal(send_one(&b, pattern, room + 1, 0, 0), 0);
	fake_expect(&b, &s, BL_OP_FRAG);
	assert_int_equal(s.ts, 0);
	fake_expect(&b, &s, BL_OP_FRAG);
	fake_silent(&b); /* they use up the first window: the reference waits */
	fake_credit(&a, &b, 3, 8);
	assert_int_equal(bl_process(a.ep), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(bl_load16(s.body + 4), BL_ITEM_REF);
	assert_int_equal(bl_load32(s.body + 10), room + 1);
	/* Two items that fill a frame together, and one byte that does not fit any more. */
	fake_credit(&a, &b, 5, 8);
	bl_process(a.ep);
	assert_int_equal(send_one(&b, pattern, room - 12, 0, BL_MORE), 0);
	assert_int_equal(send_one(&b, pattern, 10, 0, BL_MORE), 0);
	assert_int_equal(send_one(&b, NULL, 0, 0, 0), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.len, a.ep->frame_max);
	assert_int_equal(bl_load16(s.body + 2), 2);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(bl_load16(s.body + 2), 1);
	fake_silent(&b);
}

static void bl_send__large_message_in_parts(void **state)
{
	static uint8_t got[BL_MESSAGE_MAX];
	const uint32_t part = a.ep->frame_max - FRAME_HEAD - 12;
	uint32_t len = 5 * part + 1, at = 0, n = 0, id = 0;
	struct seen s;

	(void)state;
	fake_peer(&a, &b)->tx.window = 64;
	assert_int_equal(send_one(&b, pattern, len, 0, 0), 0);
	while (at < len) {
		struct bl_frag_view v;

		fake_expect(&b, &s, BL_OP_FRAG);
		assert_int_equal(s.psn, n++);
		assert_int_equal(bl_frag_open(&v, s.body, s.body_len), 0);
		id = v.msg_id;
		assert_int_equal(v.total, len);
		assert_int_equal(v.offset, at);
		assert_int_equal(s.h->flags, BL_HOP_HOST);
		memcpy(got + at, v.data, v.len);
		at += v.len;
	}
	assert_int_equal(n, 6);
	assert_memory_equal(got, pattern, len);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.psn, 6);
	assert_int_equal(bl_load32(s.body + 6), id);
	assert_int_equal(bl_load32(s.body + 10), len);
	assert_int_equal(a.ep->staged_bytes, 0);
}

static void bl_send__local_peers_get_frame_by_frame(void **state)
{
	struct fake d;
	struct seen s;
	int i;

	(void)state;
	fake_make(&d, "127.0.0.1", FAKE_RING);
	assert_true(fake_peer(&a, &d)->local);
	assert_false(fake_peer(&a, &b)->local);
	for (i = 0; i < 3; i++)
		assert_int_equal(send_one(&d, pattern, 1000, 0, BL_MORE), 0);
	assert_int_equal(bl_flush(a.ep), 0);
	for (i = 0; i < 3; i++) {
		fake_expect(&d, &s, BL_OP_DATA);
		assert_int_equal(s.psn, i);
		assert_int_equal(bl_load16(s.body + 2), 1);
	}
	fake_silent(&d);
	fake_free(&d);
}

/* 44 frames of a jumbo MTU are more than one UDP send may hold. */
static void bl_send__jumbo_frames_leave_in_several_sends(void **state)
{
	struct failures *fs = calloc(1, sizeof(*fs));
	struct seen s;
	uint32_t i;

	(void)state;
	assert_non_null(fs);
	bl_on_send_fail(a.ep, on_fail, fs);
	a.ep->frame_max = BL_BODY_MAX + sizeof(struct bl_hdr);
	fake_peer(&a, &b)->tx.window = 64;
	for (i = 0; i < BL_STAGE_FRAMES; i++)
		assert_int_equal(send_one(&b, pattern, 8000, i, BL_MORE), 0);
	assert_int_equal(bl_flush(a.ep), 0);
	bl_process(a.ep);
	assert_int_equal(fs->n, 0);
	for (i = 0; i < BL_STAGE_FRAMES; i++) {
		fake_expect(&b, &s, BL_OP_DATA);
		assert_int_equal(s.psn, i);
		assert_int_equal(s.ts, a.ep->last_ts);
	}
	fake_silent(&b);
	free(fs);
}

/* ---- refusals ---- */

static void bl_send__refusals(void **state)
{
	static struct bl_msg many[BL_SCATTER_MAX + 1];
	struct bl_msg ok = msg_to(&b, "x", 1, 0), no_port = ok, no_data = ok, long_one = ok;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = msg_to(i & 1 ? &b : &c, NULL, 0, 0);
	no_port.dst.port = 0;
	no_data.data = NULL;
	long_one.data = pattern;
	long_one.len = BL_MESSAGE_MAX + 1;
	assert_int_equal(bl_send(a.ep, &ok, 0, 0), -EINVAL);
	assert_int_equal(bl_send(a.ep, many, BL_SCATTER_MAX + 1, 0), -EINVAL);
	assert_int_equal(bl_send(a.ep, &ok, 1, 2), -EINVAL);
	assert_int_equal(bl_send(a.ep, &no_port, 1, 0), -EINVAL);
	assert_int_equal(bl_send(a.ep, &no_data, 1, 0), -EINVAL);
	assert_int_equal(bl_send(a.ep, &long_one, 1, 0), -EMSGSIZE);
	assert_true(strlen(bl_strerror(a.ep)) > 10);
	assert_int_equal(a.ep->st.scatterings, 0);
	fake_silent(&b);
	assert_int_equal(bl_send(a.ep, many, BL_SCATTER_MAX, 0), 0);
	assert_int_equal(a.ep->st.messages_sent, BL_SCATTER_MAX);
}

static void bl_send__void_clock_sends_nothing(void **state)
{
	struct seen s;

	(void)state;
	a.clock->void_after_ns = bl_mono();
	assert_int_equal(send_one(&b, "lost", 4, 0, 0), -ETIME);
	assert_int_equal(bl_get_timestamp(a.ep), 0);
	fake_silent(&b);
	/* What was refused must not leave later, when the caller has sent it again. */
	a.clock->void_after_ns = UINT64_MAX;
	assert_int_equal(send_one(&b, "sent", 4, 0, 0), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(bl_load16(s.body + 2), 1);
	assert_memory_equal(s.body + 6, "sent", 4);
	fake_silent(&b);
	assert_int_equal(a.ep->st.scatterings, 1);
}

/* ---- windows ---- */

static void bl_send__first_window(void **state)
{
	struct seen s;
	uint64_t t;
	int i;

	(void)state;
	send_frames(&b, BL_WINDOW_FIRST + 1);
	for (i = 0; i < BL_WINDOW_FIRST; i++)
		fake_expect(&b, &s, BL_OP_DATA);
	fake_silent(&b);
	assert_true(a.ep->held);
	/* What waits holds no barrier back. */
	assert_int_equal(a.ep->line->ts, BL_TIME_NONE);
	assert_int_equal(bl_wait(a.ep, BL_WAIT_SEND, 0), 0);
	t = fake_now();
	fake_credit(&a, &b, 1, 4);
	assert_int_equal(bl_wait(a.ep, BL_WAIT_SEND, 0), BL_WAIT_SEND);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.psn, BL_WINDOW_FIRST);
	assert_true(s.ts >= t); /* the timestamp is taken when it leaves */
	fake_silent(&b);
}

/*
 * Windows are open, but the NIC's ring is full of our frames: what waits has no timestamp, and
 * leaves without a CREDIT as soon as there is room.
 */
static void bl_send__a_full_nic_is_waited_for(void **state)
{
	struct seen s;
	uint64_t end;
	int i;

	(void)state;
	outq = outq_asked = 0;
	send_frames(&b, 1);
	fake_expect(&b, &s, BL_OP_DATA);
	fake_credit(&a, &b, 1, BL_WINDOW_MAX);
	bl_process(a.ep);
	for (i = 0; i < BL_NIC_FRAMES; i++) {
		outq = i * 768;
		send_frames(&b, 1);
		fake_expect(&b, &s, BL_OP_DATA);
	}
	assert_int_equal(outq_asked, 0); /* that many fit without asking */
	outq = BL_NIC_FRAMES * 768;
	send_frames(&b, 1);
	fake_silent(&b);
	assert_int_equal(outq_asked, 1);
	assert_true(a.ep->held);
	assert_int_equal(a.ep->line->ts, BL_TIME_NONE);
	assert_int_equal(bl_wait(a.ep, BL_WAIT_SEND, 1), 0);
	fake_silent(&b);
	outq -= 768;
	end = bl_mono() + 10000000000ULL;
	/* The sender is not woken: it looks again by itself, long before a PROBE is due. */
	assert_int_equal(bl_wait(a.ep, BL_WAIT_SEND, 10000), BL_WAIT_SEND);
	assert_true(bl_mono() < end);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.psn, BL_NIC_FRAMES + 1);
	fake_silent(&b);
	assert_int_equal(a.ep->st.probes_sent, 0);
	outq = 0;
}

/* A scattering that is larger than the ring leaves when the ring is empty. */
static void bl_send__larger_than_the_nic(void **state)
{
	struct bl_msg m[300];
	char names[300][16];
	struct bl_addr to;
	size_t i;

	(void)state;
	outq = 768;
	outq_asked = 0;
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		snprintf(names[i], sizeof(names[i]), "127.0.%zu.%zu:9", 100 + i / 200, 1 + i % 200);
		assert_int_equal(bl_addr_parse(&to, names[i]), 0);
		m[i] = (struct bl_msg){ .dst = to, .data = "x", .len = 1 };
	}
	assert_int_equal(bl_send(a.ep, m, ARRAY_SIZE(m), 0), 0);
	assert_true(a.ep->held);
	assert_int_equal(a.ep->st.frames_sent, 0);
	outq = 0;
	assert_int_equal(bl_wait(a.ep, BL_WAIT_SEND, 10000), BL_WAIT_SEND);
	assert_int_equal(a.ep->st.frames_sent, ARRAY_SIZE(m));
}

static void bl_send__a_scattering_waits_as_a_whole(void **state)
{
	struct bl_msg m[] = { msg_to(&b, "1", 1, 0), msg_to(&c, "2", 1, 0) };
	struct seen sb, sc;

	(void)state;
	send_frames(&b, BL_WINDOW_FIRST);
	while (fake_take(&b, &sb))
		;
	assert_int_equal(bl_send(a.ep, m, 2, 0), 0);
	fake_silent(&b);
	fake_silent(&c);
	fake_credit(&a, &b, 2, 4);
	bl_process(a.ep);
	fake_expect(&b, &sb, BL_OP_DATA);
	fake_expect(&c, &sc, BL_OP_DATA);
	assert_int_equal(sb.ts, sc.ts);
}

static void bl_send__again_undoes_the_whole_scattering(void **state)
{
	const uint32_t full = a.ep->frame_max - FRAME_HEAD - 2;
	struct bl_msg m[] = { msg_to(&c, "never", 5, 0), msg_to(&c, pattern, 5000, 0),
			      msg_to(&b, pattern, full, 0) };
	struct seen s;
	uint32_t staged = 0;

	(void)state;
	send_frames(&b, BL_WINDOW_FIRST);
	while (fake_take(&b, &s))
		;
	assert_int_equal(send_one(&c, "first", 5, 0, BL_MORE), 0);
	/* Fill what may wait for b. */
	while (!send_one(&b, pattern, full, 0, 0))
		assert_true(++staged < 100);
	assert_int_equal(staged, BL_WINDOW_FIRST);
	assert_int_equal(a.ep->st.again, 1);
	assert_int_equal(bl_send(a.ep, m, 3, 0), -EAGAIN);
	assert_int_equal(a.ep->st.again, 2);
	assert_int_equal(a.ep->staged_bytes, 0);
	assert_null(fake_peer(&a, &c)->tx.big);
	fake_credit(&a, &b, 4, 4);
	bl_process(a.ep);
	fake_expect(&c, &s, BL_OP_DATA);
	assert_int_equal(bl_load16(s.body + 2), 1);
	assert_memory_equal(s.body + 6, "first", 5);
	fake_silent(&c);
	for (; staged; staged--)
		fake_expect(&b, &s, BL_OP_DATA);
	fake_silent(&b);
	/*
	 * Now it fits; its number and its parts are those that the refused message would have had.
	 */
	fake_credit(&a, &b, 8, 4);
	bl_process(a.ep);
	assert_int_equal(bl_send(a.ep, m, 3, 0), 0);
	fake_expect(&c, &s, BL_OP_FRAG);
	assert_int_equal(bl_load32(s.body + 4), 0);
}

static void bl_send__send_buffer_bounds_large_messages(void **state)
{
	(void)state;
	a.ep->send_buffer = 300000;
	assert_int_equal(send_one(&b, pattern, 200000, 0, 0), 0);
	assert_true(a.ep->held);
	assert_int_equal(send_one(&b, pattern, 100001, 0, 0), -EAGAIN);
	assert_int_equal(a.ep->staged_bytes, 200000);
	assert_int_equal(send_one(&b, pattern, 100000, 0, 0), 0);
	assert_int_equal(a.ep->staged_bytes, 300000);
	/* Small messages need none of it. */
	assert_int_equal(send_one(&c, pattern, 1000, 0, 0), 0);
}

static void bl_send__what_never_fits_is_no_matter_of_waiting(void **state)
{
	const uint32_t full = a.ep->frame_max - FRAME_HEAD - 2;
	struct bl_msg m[BL_STAGE_FRAMES + 1];
	struct seen s;
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(m); i++)
		m[i] = msg_to(&b, pattern, full, 0);
	/*
	 * More than the first window holds, but one scattering: it leaves, since nothing else is
	 * outstanding.
	 */
	assert_int_equal(bl_send(a.ep, m, BL_WINDOW_FIRST + 1, 0), 0);
	for (i = 0; i < BL_WINDOW_FIRST + 1; i++)
		fake_expect(&b, &s, BL_OP_DATA);
	fake_credit(&a, &b, i, 8);
	bl_process(a.ep);
	assert_int_equal(bl_send(a.ep, m, BL_STAGE_FRAMES, 0), 0);
	for (i = 0; i < BL_STAGE_FRAMES; i++) {
		fake_expect(&b, &s, BL_OP_DATA);
		assert_int_equal(s.ts, a.ep->last_ts);
	}
	fake_credit(&a, &b, s.psn + 1, 8);
	bl_process(a.ep);
	assert_int_equal(bl_send(a.ep, m, BL_STAGE_FRAMES + 1, 0), -EMSGSIZE);
	fake_silent(&b);
	/* Too many bytes of large messages at once. */
	a.ep->send_buffer = 100000;
	for (i = 0; i < 3; i++)
		m[i].len = 50000;
	assert_int_equal(bl_send(a.ep, m, 3, 0), -EMSGSIZE);
	assert_int_equal(a.ep->staged_bytes, 0);
	assert_int_equal(a.ep->st.again, 0);
	fake_silent(&b);
}

static void bl_tx_credit__refusals(void **state)
{
	struct bl_tx *t;
	uint8_t body[8] = { 0 };

	(void)state;
	send_frames(&b, 4);
	t = &fake_peer(&a, &b)->tx;
	assert_int_equal(t->next_psn, 4);
	/* Beyond what was sent. */
	fake_credit(&a, &b, 4 + BL_AHEAD_MAX + 1, 100);
	/* Another life. */
	bl_store32(body, 4);
	bl_store16(body + 4, (uint16_t)(a.ep->incarnation + 1));
	bl_store16(body + 6, 100);
	fake_put(&a, &b.ep->self, BL_OP_CREDIT, 0, 0, body, 8);
	bl_process(a.ep);
	assert_int_equal(t->credited, 0);
	assert_int_equal(t->window, BL_WINDOW_FIRST);
	assert_int_equal(a.ep->st.credits_received, 0);
	/* Too short. */
	fake_put(&a, &b.ep->self, BL_OP_CREDIT, 0, 0, body, 7);
	bl_process(a.ep);
	assert_int_equal(a.ep->st.malformed, 1);
	/* A good one, then an older one: its window is old, too. */
	fake_credit(&a, &b, 3, 5);
	fake_credit(&a, &b, 2, 6);
	bl_process(a.ep);
	assert_int_equal(t->credited, 3);
	assert_int_equal(t->window, 5);
	fake_credit(&a, &b, 4, 60000);
	bl_process(a.ep);
	assert_int_equal(t->credited, 4);
	assert_int_equal(t->window, BL_WINDOW_MAX);
}

static void bl_tx_credit__numbers_wrap(void **state)
{
	struct bl_tx *t = &fake_peer(&a, &b)->tx;
	struct seen s;
	int i;

	(void)state;
	t->next_psn = t->credited = 0xfffffffe;
	send_frames(&b, 5);
	for (i = 0; i < 4; i++) {
		fake_expect(&b, &s, BL_OP_DATA);
		assert_int_equal(s.psn, 0xfffffffeu + (uint32_t)i);
	}
	fake_silent(&b);
	fake_credit(&a, &b, 1, 4);
	bl_process(a.ep);
	assert_int_equal(t->credited, 1);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.psn, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, three_up, three_down)
		T(bl_send__one_message_on_the_wire),
		T(bl_send__a_scattering_has_one_timestamp),
		T(bl_send__timestamps_rise_when_the_clock_stands),
		T(bl_send__more_shares_a_frame),
		T(bl_send__gso_layout),
		T(bl_send__frame_filled_to_the_byte),
		T(bl_send__large_message_in_parts),
		T(bl_send__local_peers_get_frame_by_frame),
		T(bl_send__jumbo_frames_leave_in_several_sends),
		T(bl_send__refusals),
		T(bl_send__void_clock_sends_nothing),
		T(bl_send__first_window),
		T(bl_send__a_full_nic_is_waited_for),
		T(bl_send__larger_than_the_nic),
		T(bl_send__a_scattering_waits_as_a_whole),
		T(bl_send__again_undoes_the_whole_scattering),
		T(bl_send__send_buffer_bounds_large_messages),
		T(bl_send__what_never_fits_is_no_matter_of_waiting),
		T(bl_tx_credit__refusals),
		T(bl_tx_credit__numbers_wrap),
	};

	fill_pattern();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
