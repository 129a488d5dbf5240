// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Announcements (lib/failures.c, lib/discard.c, lib/recall.c) that the process reads late: the
 * commit barrier may be beyond T, the port may belong to another process, and the host may be back.
 * The test announces by writing the page.
 */
#include "tests/unit/lib/lib_rel.h"

#define TS0 (FAKE_BUS + 1000000ULL)

static void announce(int page, const struct fake *who, bool host, uint16_t life, uint64_t ts,
		     uint8_t why)
{
	struct bl_failure *f = &pages[page].ring[(pages[page].last + 1) % BL_FAILS_MAX];

	*f = (struct bl_failure){ .number = pages[page].last + 1,
				  .port = host ? 0 : who->ep->self.port,
				  .life = life,
				  .ts = ts,
				  .why = why };
	memcpy(f->addr, who->ep->self.ip, 16);
	__atomic_store_n(&pages[page].last, pages[page].last + 1, __ATOMIC_RELEASE);
}

static struct {
	int fails, gones, got;
	uint64_t ts;
	enum bl_gone_reason why;
	struct fake *at;
} told;

static void on_gone(void *ctx, const struct bl_addr *who, uint64_t ts, enum bl_gone_reason why)
{
	(void)ctx, (void)who;
	assert_int_equal(told.fails, told.gones + 1); /* bl_on_proc_fail() runs first */
	told.gones++;
	told.ts = ts;
	told.why = why;
	if (told.at) {
		struct bl_delivery d[8];

		told.got += bl_recv_reliable(told.at->ep, d, 8, 0);
	}
}

static void on_proc(void *ctx, const struct bl_addr *who, uint64_t ts)
{
	(void)ctx, (void)who, (void)ts;
	told.fails++;
}

static void listen_to(struct fake *f)
{
	memset(&told, 0, sizeof(told));
	bl_on_proc_fail(f->ep, on_proc, NULL);
	bl_on_proc_gone(f->ep, on_gone, NULL);
}

/* Put a PREP with one item into the ring of @to, as a process of incarnation @life sends it. */
static void prep_from(struct fake *to, const struct fake *from, uint16_t life, uint32_t psn,
		      uint64_t ts, uint8_t value)
{
	uint8_t body[BL_PREP_MIN] = { 0 };

	bl_store16(body, life);
	bl_store16(body + 2, 1);
	bl_store32(body + 4, psn);
	bl_store16(body + 8, to->ep->incarnation);
	bl_store16(body + BL_ACK_BODY, 1);
	body[BL_ACK_BODY + 2] = value;
	assert_true(fake_put(to, &from->ep->self, BL_OP_PREP, ts, psn, body, sizeof(body)));
}

static void open_from(struct fake *to, const struct fake *from, uint16_t life, uint32_t psn)
{
	uint8_t body[sizeof(struct bl_data)];

	bl_store16(body, life);
	bl_store16(body + 2, 0);
	assert_true(fake_put(to, &from->ep->self, BL_OP_OPEN, 0, psn, body, sizeof(body)));
}

static void window_from(struct fake *to, const struct fake *from, uint16_t life, uint32_t psn)
{
	uint8_t body[sizeof(struct bl_window)];

	bl_store32(body, psn);
	bl_store16(body + 4, to->ep->incarnation);
	bl_store16(body + 6, 64);
	bl_store16(body + 8, life);
	bl_store16(body + 10, 0);
	assert_true(fake_put(to, &from->ep->self, BL_OP_WINDOW, 0, 0, body, sizeof(body)));
}

/* What is delivered now: the first byte of each message. */
static const char *delivered(struct fake *f)
{
	static char text[64];
	struct bl_delivery d[32];
	int n = bl_recv_reliable(f->ep, d, 32, 0), i;

	assert_true(n >= 0);
	for (i = 0; i < n; i++)
		text[i] = *(const char *)d[i].data;
	text[n] = 0;
	return text;
}

/* ---- T and what is delivered ---- */

/*
 * C is beyond T when this process reads the announcement, and its own recall has no answer yet:
 * messages at or above T wait for the callback.
 */
static void deliver__not_beyond_what_is_not_dealt_with(void **state)
{
	struct fake a, b, c;
	struct bl_msg m[2];
	int x = 1;
	uint64_t t;

	(void)state;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	introduce(&a, &c, 8);
	listen_to(&a);
	m[0] = msg_to(&b, &x, sizeof(x), 11);
	m[1] = msg_to(&c, &x, sizeof(x), 12);
	assert_int_equal(bl_send_reliable(a.ep, m, 2, 0), 0);
	t = a.ep->last_ts + 100;
	carry(&b, &a, true);
	carry(&c, &a, false);
	prep_from(&a, &b, b.ep->incarnation, 0, t - 1, 'x');
	prep_from(&a, &b, b.ep->incarnation, 1, t, 'y');
	prep_from(&a, &b, b.ep->incarnation, 2, t + 1, 'z');
	announce(0, &c, false, c.ep->incarnation, t, BL_WHY_RING);
	commit(&a, t + 1000);
	assert_int_equal(bl_process(a.ep), 1);
	assert_string_equal(delivered(&a), "x");
	assert_string_equal(delivered(&a), "");
	assert_int_equal(bl_wait(a.ep, BL_WAIT_RECV_RELIABLE, 0), 0);
	assert_int_equal(told.gones, 0);
	/*
	 * b's program answers. The callback comes before those messages, even if it asks for
	 * messages itself.
	 */
	told.at = &a;
	carry(&b, &a, true);
	assert_int_equal(bl_process(a.ep), 2);
	assert_int_equal(told.gones, 1);
	assert_int_equal(told.got, 0);
	assert_int_equal(told.ts, t);
	assert_int_equal(told.why, BL_GONE_RING);
	assert_string_equal(delivered(&a), "yz");
	drop(&a);
	drop(&b);
	drop(&c);
}

/*
 * Two announcements at once: each callback comes before everything at or above its T, and nothing
 * below is lost.
 */
static void deliver__in_the_callback_below_the_next(void **state)
{
	struct fake a, b, c;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	make(&c, "127.0.0.3", 2);
	prep_from(&a, &b, 5, 0, TS0, 'x');
	prep_from(&a, &b, 5, 1, TS0 + 10, 'y');
	prep_from(&a, &b, 5, 2, TS0 + 20, 'z');
	listen_to(&a);
	announce(0, &c, false, 7, TS0 + 10, BL_WHY_LEFT);
	announce(0, &c, false, 8, TS0 + 20, BL_WHY_DIED);
	commit(&a, TS0 + 1000);
	told.at = &a;
	bl_process(a.ep);
	assert_int_equal(told.gones, 2);
	assert_int_equal(told.why, BL_GONE_DIED);
	assert_int_equal(told.got, 2); /* x in the first callback, y in the second */
	assert_string_equal(delivered(&a), "z");
	assert_int_equal(a.ep->wake->done, 2);
	drop(&a);
	drop(&b);
	drop(&c);
}

/* ---- lives ---- */

/*
 * The port belongs to another process, and frames of both lives are in the ring, when the
 * announcement is read.
 */
static void lives__port_of_another(void **state)
{
	struct fake a, c;
	int host;

	(void)state;
	for (host = 0; host < 2; host++) {
		make(&a, "127.0.0.1", 0);
		make(&c, "127.0.0.3", 2);
		listen_to(&a);
		open_from(&a, &c, 1, 0);
		bl_process(a.ep);
		prep_from(&a, &c, 1, 0, TS0, 'a');
		prep_from(&a, &c, 1, 1, TS0 + 10, 'b');
		announce(0, &c, host, host ? 0 : 1, TS0 + 10, host ? BL_WHY_CUT_OFF : BL_WHY_DIED);
		/* The host is back, or its port is taken, after all pages had the announcement. */
		open_from(&a, &c, 2, 0);
		prep_from(&a, &c, 2, 0, TS0 + 20, 'A');
		bl_process(a.ep);
		assert_int_equal(told.gones, 1);
		assert_int_equal(a.ep->st.discarded, 1);
		prep_from(&a, &c, 2, 1, TS0 + 30, 'B');
		/*
		 * A copy that was long on the way is neither accepted nor taken for a new
		 * beginning.
		 */
		prep_from(&a, &c, 1, 1, TS0 + 10, 'b');
		prep_from(&a, &c, 2, 2, TS0 + 40, 'C');
		open_from(&a, &c, 1, 2);
		commit(&a, TS0 + 1000);
		assert_string_equal(delivered(&a), "aABC");
		assert_int_equal(a.ep->st.discarded, 2);
		assert_int_equal(fake_peer(&a, &c)->rrx.incarnation, 2);
		/* The second process fails, too. */
		prep_from(&a, &c, 2, 3, TS0 + 2000, 'D');
		announce(0, &c, host, host ? 0 : 2, TS0 + 1500, BL_WHY_DIED);
		commit(&a, TS0 + 3000);
		assert_string_equal(delivered(&a), "");
		assert_int_equal(told.gones, 2);
		drop(&a);
		drop(&c);
	}
}

/*
 * A frame with timestamp T itself was not committed and is not accepted; the frame just below T was
 * committed and is accepted. This holds for frames before and after the announcement.
 */
static void lives__at_its_failure_timestamp(void **state)
{
	static const struct {
		int64_t off;
		bool taken;
	} t[] = { { -1, true }, { 0, false }, { 1, false } };
	struct fake a, c;
	unsigned int k;
	int host;

	(void)state;
	for (host = 0; host < 2; host++)
		for (k = 0; k < 2 * ARRAY_SIZE(t); k++) {
			unsigned int i = k / 2;

			make(&a, "127.0.0.1", 0);
			make(&c, "127.0.0.3", 2);
			listen_to(&a);
			open_from(&a, &c, 1, 0);
			bl_process(a.ep);
			if (k & 1) {
				prep_from(&a, &c, 1, 0, TS0 + 100 + (uint64_t)t[i].off, 'b');
				bl_process(a.ep);
			}
			announce(0, &c, host, host ? 0 : 1, TS0 + 100,
				 host ? BL_WHY_CUT_OFF : BL_WHY_DIED);
			bl_process(a.ep);
			assert_int_equal(told.gones, 1);
			if (!(k & 1))
				prep_from(&a, &c, 1, 0, TS0 + 100 + (uint64_t)t[i].off, 'b');
			commit(&a, TS0 + 1000);
			assert_string_equal(delivered(&a), t[i].taken ? "b" : "");
			assert_int_equal(a.ep->st.discarded, !t[i].taken);
			drop(&a);
			drop(&c);
		}
}

/*
 * An announcement of a life that this process has nothing to do with leaves the present life alone:
 * windows, slots, frames.
 */
static void lives__not_this_one(void **state)
{
	struct bl_msg m;
	struct fake a, b;
	int x = 1;

	(void)state;
	make_pair(&a, &b);
	listen_to(&a);
	m = msg_to(&b, &x, sizeof(x), 11);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	carry(&b, &a, false);
	prep_from(&a, &b, b.ep->incarnation, 0, TS0 + 10, 'x');
	announce(0, &b, false, (uint16_t)(b.ep->incarnation + 1), TS0, BL_WHY_LEFT);
	commit(&a, TS0 + 1000);
	assert_string_equal(delivered(&a), "x");
	assert_int_equal(told.gones, 1);
	assert_int_equal(told.why, BL_GONE_LEFT);
	assert_true(fake_peer(&a, &b)->rtx.open);
	assert_int_equal(a.ep->st.recalls_sent, 0);
	/* The slot is still open: an ACK closes it. */
	assert_int_equal(bl_rslot_close(bl_rwin_slot(a.ep->rwin, bl_rwin_head(word(&a))),
					bl_rwin_head(word(&a))),
			 1);
	drop(&a);
	drop(&b);
}

/*
 * A WINDOW that is read together with the announcement may be older than it, so it opens nothing.
 */
static void lives__window_of_who_is_gone(void **state)
{
	static struct failures fs;
	struct bl_msg m;
	struct fake a, c;
	int x = 1;

	(void)state;
	fs.n = 0;
	make(&a, "127.0.0.1", 0);
	make(&c, "127.0.0.3", 2);
	bl_on_send_fail(a.ep, on_fail, &fs);
	listen_to(&a);
	m = msg_to(&c, &x, sizeof(x), 11);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&c, &a, true), 0); /* OPEN */
	window_from(&a, &c, 9, 0);
	announce(0, &c, true, 0, TS0, BL_WHY_DOWN);
	bl_process(a.ep);
	bl_process(a.ep);
	assert_int_equal(told.gones, 1);
	assert_int_equal(carry(&c, &a, true), 0); /* no PREP, which would never be acknowledged */
	assert_int_equal(bl_rwin_used(word(&a)), 0);
	assert_int_equal(fs.n, 1);
	assert_int_equal(fs.f[0].why, BL_FAIL_FAILED);
	/*
	 * The present process there is asked, and its WINDOW is used: it may come from a new
	 * process.
	 */
	fake_peer(&a, &c)->rtx.retry_ns = 0;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&c, &a, true), 0);
	window_from(&a, &c, 9, 0);
	bl_process(a.ep);
	assert_int_equal(fs.n, 2); /* that one failed at once */
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&c, &a, false), 1);
	/* This life has not failed, whatever is announced about its host's past. */
	assert_int_equal(bl_rwin_used(word(&a)), 1);
	announce(0, &c, false, 10, TS0, BL_WHY_DIED);
	bl_process(a.ep);
	assert_int_equal(bl_rslot_close(bl_rwin_slot(a.ep->rwin, bl_rwin_head(word(&a))),
					bl_rwin_head(word(&a))),
			 1);
	drop(&a);
	drop(&c);
}

/*
 * A process that is asked several times answers several times, by way of the controller perhaps
 * late. A process that was announced meanwhile gets no window then either, although none of its
 * windows was open when the announcement came.
 */
static void lives__late_window_of_who_is_gone(void **state)
{
	struct bl_msg m;
	struct fake a, c;
	int x = 1;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&c, "127.0.0.3", 2);
	listen_to(&a);
	m = msg_to(&c, &x, sizeof(x), 11);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&c, &a, true), 0); /* OPEN */
	announce(0, &c, false, 9, TS0, BL_WHY_DIED);
	bl_process(a.ep);
	assert_int_equal(told.gones, 1);
	fake_peer(&a, &c)->rtx.retry_ns = 0;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&c, &a, true), 0);
	window_from(&a, &c, 9, 0);
	bl_process(a.ep);
	assert_false(fake_peer(&a, &c)->rtx.open);
	assert_int_equal(carry(&c, &a, true), 0); /* no PREP, which would never be acknowledged */
	assert_int_equal(bl_rwin_used(word(&a)), 0);
	/* The next process there is another one. */
	window_from(&a, &c, 10, 0);
	bl_process(a.ep);
	assert_true(fake_peer(&a, &c)->rtx.open);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&c, &a, false), 1);
	drop(&a);
	drop(&c);
}

/*
 * A new life of the receiver waits until frames that the old life has not acknowledged are
 * recalled.
 */
static void lives__new_receiver_waits_for_the_recall(void **state)
{
	struct fake a, b, c;
	struct bl_msg m[2];
	int x = 1;

	(void)state;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	introduce(&a, &c, 8);
	listen_to(&a);
	m[0] = msg_to(&b, &x, sizeof(x), 11);
	m[1] = msg_to(&c, &x, sizeof(x), 12);
	assert_int_equal(bl_send_reliable(a.ep, m, 2, 0), 0);
	carry(&b, &a, true);
	carry(&c, &a, false);
	announce(0, &c, false, c.ep->incarnation, a.ep->last_ts + 100, BL_WHY_LEFT);
	bl_process(a.ep);
	window_from(&a, &c, (uint16_t)(c.ep->incarnation + 1), 2);
	bl_process(a.ep);
	assert_false(fake_peer(&a, &c)->rtx.open);
	assert_int_equal(fake_peer(&a, &c)->rtx.life, c.ep->incarnation);
	assert_int_equal(bl_rwin_used(word(&a)), 2);
	carry(&b, &a, true); /* RECALL, RECALLED */
	bl_process(a.ep);
	assert_int_equal(told.gones, 1);
	assert_int_equal(bl_rwin_used(word(&a)), 0);
	window_from(&a, &c, (uint16_t)(c.ep->incarnation + 1), 2);
	bl_process(a.ep);
	assert_true(fake_peer(&a, &c)->rtx.open);
	drop(&a);
	drop(&b);
	drop(&c);
}

/* ---- who missed too much ---- */

/*
 * The page holds as many announcements as it has places, but for one that may be being written.
 * With one more, the process cannot know what it has missed.
 */
static void page__goes_round(void **state)
{
	struct fake a, c;
	int more, i;

	(void)state;
	for (more = 0; more < 2; more++) {
		make(&a, "127.0.0.1", 0);
		make(&c, "127.0.0.3", 2);
		listen_to(&a);
		for (i = 0; i < BL_FAILS_MAX - 2 + more; i++)
			announce(0, &c, false, (uint16_t)(i + 1), TS0 + (uint64_t)i, BL_WHY_LEFT);
		bl_process(a.ep);
		assert_int_equal(told.gones, more ? 0 : BL_FAILS_MAX - 2);
		assert_int_equal(bl_wait(a.ep, BL_WAIT_SEND_RELIABLE, 0) < 0 || a.ep->outcast,
				 more);
		if (!more) {
			/* The page goes round several times. */
			for (i = 0; i < 3 * BL_FAILS_MAX; i++) {
				announce(0, &c, false, 9, TS0 + (uint64_t)i, BL_WHY_LEFT);
				bl_process(a.ep);
			}
			assert_int_equal(told.gones, BL_FAILS_MAX - 2 + 3 * BL_FAILS_MAX);
		}
		drop(&a);
		drop(&c);
	}
}

/*
 * A RECALL from an unknown sender: the program has answered, so a copy of the frame must not be
 * accepted.
 */
static void recall__of_a_stranger(void **state)
{
	uint8_t body[sizeof(struct bl_recall)] = { 0 };
	struct fake a, c;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&c, "127.0.0.3", 2);
	bl_store16(body, 1);
	bl_store16(body + 2, a.ep->incarnation);
	bl_store32(body + 4, 1);
	bl_put48(body + 8, TS0);
	assert_true(fake_put(&a, &c.ep->self, BL_OP_RECALL, 0, 0, body, sizeof(body)));
	prep_from(&a, &c, 1, 0, TS0, 'x');
	prep_from(&a, &c, 1, 1, TS0 + 1, 'y');
	commit(&a, TS0 + 100);
	assert_string_equal(delivered(&a), "y");
	assert_int_equal(a.ep->st.recalled, 1);
	drop(&a);
	drop(&c);
}

/*
 * c has acknowledged its part of a scattering, and leaves; that is handled at once. Then d, which
 * has not acknowledged its part, dies: b is asked to drop its part, and no answer of c is awaited.
 */
static void recall__not_of_who_is_gone_already(void **state)
{
	struct fake a, b, c, d;
	struct bl_msg m[3];
	int x = 1;

	(void)state;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	make(&d, "127.0.0.4", 3);
	introduce(&a, &c, 8);
	introduce(&a, &d, 8);
	listen_to(&a);
	m[0] = msg_to(&b, &x, sizeof(x), 11);
	m[1] = msg_to(&c, &x, sizeof(x), 12);
	m[2] = msg_to(&d, &x, sizeof(x), 13);
	assert_int_equal(bl_send_reliable(a.ep, m, 3, 0), 0);
	carry(&b, &a, true);
	assert_int_equal(carry(&c, &a, true), 1);
	carry(&d, &a, false);
	announce(0, &c, false, c.ep->incarnation, a.ep->last_ts + 100, BL_WHY_LEFT);
	bl_process(a.ep);
	assert_int_equal(told.gones, 1);
	assert_true(bl_rwin_used(word(&a)) > 0); /* d may still acknowledge it */
	announce(0, &d, false, d.ep->incarnation, a.ep->last_ts + 200, BL_WHY_DIED);
	bl_process(a.ep);
	assert_int_equal(told.gones, 1);
	carry(&b, &a, true); /* RECALL */
	carry(&a, &b, true); /* RECALLED */
	bl_process(a.ep);
	assert_int_equal(told.gones, 2);
	assert_int_equal(bl_rwin_used(word(&a)), 0);
	assert_int_equal(carry(&c, &a, false), 0);
	drop(&a);
	drop(&b);
	drop(&c);
	drop(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deliver__not_beyond_what_is_not_dealt_with),
		cmocka_unit_test(deliver__in_the_callback_below_the_next),
		cmocka_unit_test(lives__port_of_another),
		cmocka_unit_test(lives__at_its_failure_timestamp),
		cmocka_unit_test(lives__not_this_one),
		cmocka_unit_test(lives__window_of_who_is_gone),
		cmocka_unit_test(lives__late_window_of_who_is_gone),
		cmocka_unit_test(lives__new_receiver_waits_for_the_recall),
		cmocka_unit_test(page__goes_round),
		cmocka_unit_test(recall__of_a_stranger),
		cmocka_unit_test(recall__not_of_who_is_gone_already),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
