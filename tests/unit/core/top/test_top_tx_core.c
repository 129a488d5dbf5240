// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/top/top_core.h, the sender's part: incoming tokens, turns, messages and keys; and a network
 * that loses, repeats and reorders, in which one token still means one packet.
 */
#include "tests/unit/core/top/top_util.h"

/* ---- the sender ---- */

static void bl_top_flow__unscheduled(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t want;
	} t[] = { { 0, 0 },
		  { 1, 1 },
		  { 3 * BL_TOP_MSS, 3 },
		  { 4 * BL_TOP_MSS, 3 },
		  { 6 * BL_TOP_MSS, 3 },
		  { 6 * BL_TOP_MSS + 1, 0 } };
	unsigned int i;

	(void)state;
	cfg.unscheduled = 3;
	cfg.short_frames = 6;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_tx f = flow_out(t[i].bytes);

		assert_int_equal(f.unsched, t[i].want);
		assert_true(f.state == BL_TOP_IDLE && f.tag == 0x1234 && !f.seq && !~f.seen &&
			    !f.sig && !f.tokens && f.bytes == t[i].bytes && f.deadline_us == 8 &&
			    f.coflow == 9 && f.key.proto == 6);
	}
}

static void bl_top_token__reasons(void **state)
{
	const uint64_t bus = (6000ULL << 48) + 500000, bound = 100;
	const struct {
		uint32_t tag, cls, seq;
		uint64_t ts;
		enum bl_reason why;
	} t[] = {
		{ 0x1234, 0, 0xffffffff, bus, BL_R_TOKEN_REPLAYED }, /* Numbers begin at 1. */
		{ 0x1234, 0, 0xffffffc0, bus, BL_R_TOKEN_REPLAYED },
		{ 0x1234, 0, 1, bus, BL_R_NONE },
		{ 0x1234, 5, 2, bus - 26000 - 200, BL_R_NONE }, /* as old as is allowed */
		{ 0x1234, 5, 3, bus - 26000 - 201, BL_R_TOKEN_EXPIRED },
		/* An expired token is used up as well. */
		{ 0x1234, 5, 3, bus, BL_R_TOKEN_REPLAYED },
		{ 0x1234, 0, 4, bus + 200, BL_R_NONE },
		{ 0x1234, 0, 5, bus + 201, BL_R_TOKEN_AHEAD },
		{ 0x1234, 0, 5, bus, BL_R_NONE }, /* The refused token used no number. */
		{ 0x1235, 0, 6, bus, BL_R_TOKEN_FORGED },
		{ 0x1234, 6, 6, bus, BL_R_TOKEN_CLASS },
		{ 0x1234, 255, 6, bus, BL_R_TOKEN_CLASS },
		{ 0x1234, 0, 0, bus, BL_R_TOKEN_REPLAYED },
		{ 0x1234, 0, 5, bus, BL_R_TOKEN_REPLAYED },
		{ 0x1234, 0, 5 + BL_TOP_AHEAD + 1, bus, BL_R_TOKEN_REPLAYED },
		{ 0x1234, 0, 5 + BL_TOP_AHEAD, bus, BL_R_NONE },
	};
	struct bl_top_tx f = flow_out(0), before;
	unsigned int i, ok = 0, bad = 0, old = 0;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		const struct bl_top_msg m = { .op = BL_TOP_TOKEN,
					      .cls = (__u8)t[i].cls,
					      .seq = t[i].seq,
					      .tag = t[i].tag,
					      .ts = t[i].ts & BL_TS_MASK };
		enum bl_reason why;

		f.tries = 3;
		before = f;
		why = bl_top_token(&f, &cfg, &m, bus, bound, 7 * MS + i);
		if (why != t[i].why)
			fail_msg("row %u: %d, want %d", i, why, t[i].why);
		ok += why == BL_R_NONE;
		old += why == BL_R_TOKEN_EXPIRED;
		bad += why != BL_R_NONE && why != BL_R_TOKEN_EXPIRED;
		assert_true(f.tokens == ok && f.expired == old && f.refused == bad);
		assert_int_equal(f.tries, why == BL_R_NONE ? 0 : 3);
		assert_int_equal(f.token_ns, why == BL_R_NONE ? 7 * MS + i : before.token_ns);
		assert_int_equal(f.state, ok ? BL_TOP_CREDITED : BL_TOP_IDLE);
	}
	f.state = BL_TOP_FREE;
	assert_int_equal(bl_top_token(&f, &cfg, &(struct bl_top_msg){ .seq = 99, .tag = 0x1234 },
				      bus, bound, MS),
			 BL_R_TOKEN_UNKNOWN);
}

/* The window against a set of all numbers that were ever accepted. */
static void bl_top_new__against_model(void **state)
{
	struct rnd rnd = rnd_seeded("bl_top_new__against_model");
	static uint8_t taken[1 << 16];
	struct bl_top_tx f = flow_out(0);
	uint32_t base = 0xffffff00, top = 0, i;

	(void)state;
	memset(taken, 0, sizeof(taken));
	f.seq = base;
	f.seen = ~0ULL;
	for (i = 0; i < 100000 && top < sizeof(taken) - 200; i++) {
		uint32_t n = top + 20 > 110 ? top + 20 - rnd_below(&rnd, 110)
					    : 1 + rnd_below(&rnd, 100),
			 seq = base + n;
		bool want = seq && (n > top || (top - n < BL_TOP_WINDOW && !taken[n]));

		if (!n)
			continue;
		assert_int_equal(bl_top_seq_accept(&f, seq), want);
		if (want) {
			taken[n] = 1;
			top = n > top ? n : top;
		}
	}
	assert_int_equal(f.seq, base + top);
}

static void bl_top_held__wakes(void **state)
{
	static const struct {
		uint32_t state, after;
		int wakes;
	} t[] = { { BL_TOP_FREE, BL_TOP_FREE, 1 },
		  { BL_TOP_IDLE, BL_TOP_ASKING, 1 },
		  { BL_TOP_ASKING, BL_TOP_ASKING, 0 },
		  { BL_TOP_CREDITED, BL_TOP_CREDITED, 0 },
		  { BL_TOP_OUTSIDE, BL_TOP_OUTSIDE, 1 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_tx f = flow_out(0);

		f.state = t[i].state;
		f.wasted_run = 5;
		f.tries = 2;
		assert_int_equal(bl_top_frame_held(&f, 1000, 9 * MS), t[i].wakes);
		assert_true(f.state == t[i].after && f.frames == 1 && f.sent_bytes == 1000 &&
			    f.frame_ns == 9 * MS && !f.wasted_run);
		assert_int_equal(f.tries, t[i].state == BL_TOP_IDLE ? 0 : 2);
	}
}

static void bl_top_wasted__stops(void **state)
{
	struct bl_top_tx f = flow_out(0);
	unsigned int i, stops = 0;

	(void)state;
	f.tokens = 100;
	for (i = 0; i < 20; i++) {
		int stop = bl_top_token_wasted(&f);

		assert_int_equal(stop, i % BL_TOP_STOP_EACH == 0);
		stops += (unsigned int)stop;
		assert_true(f.state == BL_TOP_IDLE && f.wasted == i + 1 && f.tokens == 99 - i &&
			    f.stops == stops && f.sig == stops);
	}
	bl_top_frame_held(&f, 100, MS);
	assert_int_equal(bl_top_token_wasted(&f), 1); /* a new run */
}

static struct bl_top_turn pacer_step(struct bl_top_tx *f, uint32_t frames, uint64_t now)
{
	struct bl_top_turn d;

	memset(&d, 0xff, sizeof(d));
	d.busy = 0;
	bl_top_tx_step(f, &cfg, frames, now, 0x77, &d);
	return d;
}

static void bl_top_step__asks_until_tokens_come(void **state)
{
	/* ms: 2, twice that, four times that, and so on */
	static const uint64_t at[] = { 0, 2, 6, 14, 22, 30 };
	struct bl_top_tx f = flow_out(0);
	struct bl_top_turn d;
	uint64_t t0 = 10 * MS;
	unsigned int i;

	(void)state;
	bl_top_frame_held(&f, 100, t0);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		if (i) {
			d = pacer_step(&f, 1, t0 + at[i] * MS - 1);
			assert_int_equal(d.what, BL_TOP_NOTHING);
			assert_int_equal(d.next_ns, t0 + at[i] * MS);
		}
		d = pacer_step(&f, 1 + i, t0 + at[i] * MS);
		assert_true(d.what == BL_TOP_DO_SYNC && d.seq == i + 1 && d.tag == 0x1234 &&
			    d.frames == 1 + i && f.syncs == i + 1);
		assert_int_equal(d.next_ns, t0 + (i + 1 < ARRAY_SIZE(at) ? at[i + 1] : 38) * MS);
	}
	/*
	 * A token arrives: from now on a SYNC is sent only if no other token arrives for a while.
	 */
	assert_int_equal(bl_top_token(&f, &cfg,
				      &(struct bl_top_msg){ .seq = 1, .tag = 0x1234, .ts = 1000 },
				      1000, 0, t0 + 31 * MS),
			 BL_R_NONE);
	d = pacer_step(&f, 1, t0 + 32 * MS);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == t0 + 33 * MS);
	d = pacer_step(&f, 1, t0 + 33 * MS);
	assert_true(d.what == BL_TOP_DO_SYNC && d.seq == 7 && f.state == BL_TOP_ASKING &&
		    f.tries == 1);
}

static void bl_top_step__idle_and_end(void **state)
{
	struct bl_top_tx f = flow_out(0);
	struct bl_top_turn d;

	(void)state;
	bl_top_frame_held(&f, 100, 10 * MS);
	d = pacer_step(&f, 0, 11 * MS); /* An earlier token took the frame. */
	assert_true(d.what == BL_TOP_NOTHING && f.state == BL_TOP_IDLE && d.next_ns == 110 * MS);
	f.token_ns = 30 * MS;
	d = pacer_step(&f, 0, 110 * MS);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == 130 * MS);
	/*
	 * Another CPU is busy with the flow: the turn reports that the flow would end, and is
	 * repeated at once.
	 */
	memset(&d, 0xff, sizeof(d));
	d.busy = 1;
	bl_top_tx_step(&f, &cfg, 0, 130 * MS, 0x77, &d);
	assert_true(d.what == BL_TOP_NOTHING && d.busy == 2 && d.next_ns == 130 * MS &&
		    f.state == BL_TOP_IDLE);
	d = pacer_step(&f, 0, 130 * MS);
	assert_true(d.what == BL_TOP_DO_END && !d.busy && d.next_ns == BL_DUE_NEVER && d.seq == 1 &&
		    d.tag == 0x1234 && f.state == BL_TOP_FREE);
	d = pacer_step(&f, 0, 140 * MS);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == BL_DUE_NEVER);
	d = pacer_step(&f, 1, 140 * MS); /* A frame arrived while the number was being returned. */
	assert_int_equal(d.what, BL_TOP_DO_AT_ONCE);
	/* an idle flow with a frame for which no token was asked */
	f = flow_out(0);
	d = pacer_step(&f, 1, 10 * MS);
	assert_true(d.what == BL_TOP_DO_SYNC && f.state == BL_TOP_ASKING);
}

static void bl_top_step__unscheduled_after_the_sync(void **state)
{
	struct bl_top_tx f;
	struct bl_top_turn d;

	(void)state;
	cfg.unscheduled = 2;
	cfg.short_frames = 8;
	f = flow_out(8 * BL_TOP_MSS);
	bl_top_frame_held(&f, 1000, 10 * MS);
	d = pacer_step(&f, 3, 10 * MS);
	assert_true(d.what == BL_TOP_DO_SYNC && d.next_ns == 10 * MS && f.unsched == 2);
	d = pacer_step(&f, 3, 10 * MS);
	assert_true(d.what == BL_TOP_DO_UNSCHED && d.next_ns == 10 * MS);
	d = pacer_step(&f, 2, 10 * MS);
	assert_int_equal(d.what, BL_TOP_DO_UNSCHED);
	d = pacer_step(&f, 1, 10 * MS);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == 12 * MS && f.unscheduled == 2 &&
		    !f.unsched);
}

static void bl_top_step__outside(void **state)
{
	struct bl_top_tx f = flow_out(0);
	struct bl_top_turn d;
	unsigned int i;

	(void)state;
	cfg.outside_tries = 3;
	for (i = 0; i < 3; i++)
		assert_int_equal(pacer_step(&f, 1, (1 + i) * 100 * MS).what, BL_TOP_DO_SYNC);
	d = pacer_step(&f, 1, 301 * MS);
	assert_true(d.what == BL_TOP_DO_AT_ONCE && f.state == BL_TOP_OUTSIDE);
	assert_int_equal(bl_top_frame_held(&f, 100, 302 * MS), 1);
	/* The receiver exists after all. */
	assert_int_equal(bl_top_token(&f, &cfg,
				      &(struct bl_top_msg){ .seq = 1, .tag = 0x1234, .ts = 1000 },
				      1000, 0, 303 * MS),
			 BL_R_NONE);
	assert_int_equal(pacer_step(&f, 1, 304 * MS).what, BL_TOP_NOTHING);
	f.tries = 9; /* The receiver is only slow, since it has sent tokens before. */
	f.state = BL_TOP_ASKING;
	assert_int_equal(pacer_step(&f, 1, 900 * MS).what, BL_TOP_DO_SYNC);
}

static void bl_top_step__another_tag(void **state)
{
	struct bl_top_tx f = flow_out(0);
	struct bl_top_turn d;
	unsigned int i;

	(void)state;
	f.seq = 500;
	f.seen = 3;
	for (i = 1; i < BL_TOP_TAG_TRIES; i++)
		assert_int_equal(pacer_step(&f, 1, i * 100 * MS).tag, 0x1234);
	assert_int_equal(f.seq, 500);
	d = pacer_step(&f, 1, i * 100 * MS);
	assert_true(d.what == BL_TOP_DO_SYNC && d.tag == 0x77 && f.tag == 0x77 && !f.seq &&
		    !~f.seen);
}

/* ---- messages and keys ---- */

static void bl_top_parse__lengths(void **state)
{
	uint8_t b[sizeof(struct bl_top_hdr) + sizeof(struct bl_top_sync)] = { 0 };
	struct bl_top_hdr *h = (void *)b;
	struct bl_top_sync *s = (void *)(h + 1);
	static const struct {
		uint8_t op;
		uint32_t len;
	} t[] = { { BL_TOP_TOKEN, 18 },
		  { BL_TOP_SYNC, 46 },
		  { BL_TOP_FIN, 30 },
		  { BL_TOP_LOSS, 34 },
		  { BL_TOP_STOP, 18 } };
	struct bl_top_msg m;
	unsigned int i;

	(void)state;
	h->cls = 3;
	h->flow = BL_BE16(0x1234);
	BL_HALVES_SET(h, seq, 0x89abcdef);
	BL_HALVES_SET(h, tag, 0x01234567);
	bl_put48(h->ts, 0xa1b2c3d4e5f6);
	bl_put48(s->bytes, 0x010203040506);
	BL_HALVES_SET(s, frames, 0x11223344);
	BL_HALVES_SET(s, deadline, 0x55667788);
	BL_HALVES_SET(s, coflow, 0x99aabbcc);
	BL_HALVES_SET(s, data, 0xdeadbeef);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		h->opcode = BL_TOP_OPCODE_BYTE(t[i].op);
		assert_int_equal(bl_top_parse(h, b + t[i].len, t[i].len, &m), 0);
		assert_true(m.op == t[i].op && m.cls == 3 && m.flow == 0x1234 &&
			    m.seq == 0x89abcdef && m.tag == 0x01234567 && m.ts == 0xa1b2c3d4e5f6);
		assert_true(
			m.bytes ==
			(t[i].op == BL_TOP_SYNC || t[i].op == BL_TOP_FIN ? 0x010203040506u : 0));
		assert_true(m.data == (t[i].op == BL_TOP_SYNC   ? 0xdeadbeefu
				       : t[i].op == BL_TOP_FIN  ? 0x11223344u
				       : t[i].op == BL_TOP_LOSS ? 0x00000102u
								: 0));
		assert_true(m.missing == (t[i].op == BL_TOP_LOSS ? 0x0304050611223344u : 0) &&
			    m.rtt_us == (t[i].op == BL_TOP_LOSS ? 0x55667788u : 0));
		assert_true(m.frames == (t[i].op == BL_TOP_SYNC ? 0x11223344u : 0) &&
			    m.deadline_us == (t[i].op == BL_TOP_SYNC ? 0x55667788u : 0) &&
			    m.coflow == (t[i].op == BL_TOP_SYNC ? 0x99aabbccu : 0));
		assert_int_equal(bl_top_parse(h, b + t[i].len - 1, t[i].len, &m), -1);
		assert_int_equal(bl_top_parse(h, b + t[i].len, t[i].len - 1, &m), -1);
	}
	/* A STOP may contain more; a message that is cut short contains nothing. */
	h->opcode = BL_TOP_OPCODE_BYTE(BL_TOP_STOP);
	assert_true(!bl_top_parse(h, b + 22, 22, &m) && m.data == 0x00000102);
	assert_true(!bl_top_parse(h, b + 21, 22, &m) && !m.data);
	assert_true(!bl_top_parse(h, b + 22, 21, &m) && !m.data);
	h->opcode = BL_TOP_OPCODE_BYTE(BL_TOP_OPCODE_LIMIT);
	assert_int_equal(bl_top_parse(h, b + 42, 42, &m), -1);
	h->opcode = BL_TOP_OPCODE_BYTE(0);
	assert_int_equal(bl_top_parse(h, b + 42, 42, &m), -1);
	h->opcode = 2 << 4 | BL_TOP_TOKEN;
	assert_int_equal(bl_top_parse(h, b + 42, 42, &m), -1);
}

static void bl_top_rule__first_that_fits(void **state)
{
	static const struct {
		uint16_t sport, dport;
		uint8_t proto;
		int fits;
		uint64_t bytes;
	} t[] = { { 40000, 80, 6, 1, 1 },  { 80, 40000, 6, 1, 1 },   { 40000, 80, 17, 1, 3 },
		  { 40000, 443, 6, 1, 2 }, { 40000, 443, 17, 0, 0 }, { 40000, 9, 6, 0, 0 },
		  { 0, 0, 1, 0, 0 } };
	unsigned int i;

	(void)state;
	cfg.rules[0] = (struct bl_top_rule){
		.port = 80, .proto = 6, .bytes = 1, .deadline_us = 5, .coflow = 6
	};
	cfg.rules[1] = (struct bl_top_rule){ .port = 443, .proto = 6, .bytes = 2 };
	cfg.rules[2] = (struct bl_top_rule){ .port = 80, .bytes = 3 };
	/* behind the end of the list */
	cfg.rules[4] = (struct bl_top_rule){ .port = 9, .bytes = 4 };
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		const struct bl_top_key k = { .sport = BL_BE16(t[i].sport),
					      .dport = BL_BE16(t[i].dport),
					      .proto = t[i].proto };
		struct bl_top_hint h = { 0 };

		assert_int_equal(bl_top_rule(&cfg, &k, &h), t[i].fits);
		assert_int_equal(h.bytes, t[i].bytes);
		assert_int_equal(h.deadline_us, h.bytes == 1 ? 5 : 0);
	}
	for (i = 0; i < BL_TOP_RULES; i++) /* a full list */
		cfg.rules[i] = (struct bl_top_rule){ .port = (uint16_t)(100 + i), .bytes = i };
	{
		const struct bl_top_key k = { .dport = BL_BE16(100 + BL_TOP_RULES - 1) };
		struct bl_top_hint h = { 0 };

		assert_true(bl_top_rule(&cfg, &k, &h) && h.bytes == BL_TOP_RULES - 1);
	}
}

static void bl_top_hint_hash__spreads(void **state)
{
	static uint8_t used[BL_TOP_HINTS];
	unsigned int i, n = 0;

	(void)state;
	for (i = 0; i < BL_TOP_HINTS; i++) {
		const struct bl_top_key k = { .sport = BL_BE16(32768 + i),
					      .dport = BL_BE16(5001),
					      .proto = 6 };

		assert_true(bl_top_hint_hash(&k) < BL_TOP_HINTS);
		n += !used[bl_top_hint_hash(&k)]++;
	}
	assert_true(n > BL_TOP_HINTS * 55 / 100); /* 63 % are expected by chance. */
}

/* ---- one token is one packet ---- */

/*
 * A sender and a receiver on a network that loses tokens and data, repeats tokens and lets them
 * overtake each other. At every step there are no more frames than accepted tokens, and each number
 * is answered once. In the end the receiver's numbers add up.
 */
static void network__one_token_one_packet(void **state)
{
	struct rnd rnd = rnd_seeded("network__one_token_one_packet");
	unsigned int run;

	(void)state;
	for (run = 0; run < 40; run++) {
		struct bl_top_rx r = flow_in(0);
		struct bl_top_tx f = flow_out(0);
		static uint32_t wire[64];
		static uint8_t answered[1 << 14];
		uint32_t n = 0, random = 1 + run, i, loss = rnd_below(&rnd, 400), sent = 0,
			 came = 0, copies = 0;
		uint64_t now = MS, judged;

		cfg.law = run & 1 ? BL_TOP_LAW_PAPER : BL_TOP_LAW_NS2;
		memset(answered, 0, sizeof(answered));
		r.tag = f.tag;
		for (i = 0; i < 8000; i++) {
			uint32_t k, seq;

			now = bl_max64(now + 1, r.next_ns);
			wire[n++] = bl_top_token_sent(&r, &cfg, now, &random);
			if (rnd_below(&rnd, 20) == 0 && n < 63) {
				wire[n] = wire[n - 1];
				n++;
				copies++;
			}
			while (n > 20 || (n && rnd_below(&rnd, 3))) {
				struct bl_top_msg m = { .op = BL_TOP_TOKEN,
							.tag = f.tag,
							.ts = 100 };
				enum bl_reason why;

				/* One of the first four overtakes the others. */
				k = rnd_below(&rnd, n < 4 ? n : 4);
				seq = wire[k];
				memmove(wire + k, wire + k + 1, (--n - k) * sizeof(wire[0]));
				if (rnd_below(&rnd, 1000) < loss)
					continue;
				m.seq = seq;
				why = bl_top_token(&f, &cfg, &m, 100, 0, now);
				assert_true(why == BL_R_NONE ||
					    (why == BL_R_TOKEN_REPLAYED && answered[seq]));
				if (why != BL_R_NONE)
					continue;
				assert_int_equal(answered[seq]++, 0);
				sent++;
				if (rnd_below(&rnd, 1000) < 5)
					continue; /* The data is lost. */
				judged = r.feedbacks;
				assert_int_equal(bl_top_echo(&r, &cfg, seq, 1514, now + 7), 0);
				came++;
				if (r.feedbacks != judged)
					assert_true(r.rate <= BL_TOP_ONE + BL_TOP_ONE / 10 &&
						    r.rate >= bl_top_rate_min(&cfg, r.rtt_ns));
			}
			assert_true(f.tokens == sent && sent <= r.seq && r.dropped <= r.total);
		}
		assert_true(r.frames == came && copies > 100 && f.refused <= copies);
		assert_true(r.echo <= r.seq && r.lost + r.dropped <= r.echo);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(bl_top_flow__unscheduled),  TEST(bl_top_token__reasons),
		TEST(bl_top_new__against_model), TEST(bl_top_held__wakes),
		TEST(bl_top_wasted__stops),      TEST(bl_top_step__asks_until_tokens_come),
		TEST(bl_top_step__idle_and_end), TEST(bl_top_step__unscheduled_after_the_sync),
		TEST(bl_top_step__outside),      TEST(bl_top_step__another_tag),
		TEST(bl_top_parse__lengths),     TEST(bl_top_rule__first_that_fits),
		TEST(bl_top_hint_hash__spreads), TEST(network__one_token_one_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
