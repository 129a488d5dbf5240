// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/fastpass/fcp_core.h and the two ends of FCP: packets, window, counts and sessions at their
 * edges. test_fcp_channel.c connects them by a bad channel.
 */
#include "tests/unit/core/fastpass/fcp_ends.h"

static struct bl_fcp_params params;
static struct bl_fcp_host h;
static struct bl_fcp_arb a;
static struct mem hm, am;
static _Alignas(8) uint8_t buf[BL_FCP_PACKET_MAX], other[BL_FCP_PACKET_MAX];
static struct bl_fcp_pkt k;
static uint64_t now, nonce = 0xabc;

static int setup(void **state)
{
	(void)state;
	params = (struct bl_fcp_params)BL_FCP_PARAMS_DEFAULT;
	params.table = 99;
	now = T0;
	host_init(&h, &hm, &params, NDST, 3, 21);
	arb_init(&a, &am, &params, NDST, 3, 1);
	return 0;
}

static enum bl_fcp_reason give_to_arb(uint32_t n)
{
	return bl_fcp_arb_rx(&a, buf, n, now, nonce);
}

static enum bl_fcp_reason give_to_host(uint32_t n)
{
	return bl_fcp_host_rx(&h, buf, n, now, &k);
}

/* Starts a session in which the host wants @slots for 7. */
static void begin_session(uint32_t slots)
{
	uint32_t n, dst, got;

	bl_fcp_host_want(&h, 7, slots);
	h.call = 1;
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(give_to_arb(n), BL_FCP_R_BAD_CHECK);
	assert_int_equal(a.fresh, 0);
	n = bl_fcp_arb_tx(&a, now, buf);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(give_to_arb(n), BL_FCP_R_OK);
	assert_int_equal(a.fresh, 1);
	a.fresh = 0;
	if (!slots)
		return;
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &got), 1);
	assert_int_equal(dst, 7);
	assert_int_equal(got, slots);
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &got), 0);
}

/* Builds an ALLOC of one slot for 7 in @buf. Returns its length. */
static uint32_t make_alloc(uint64_t slot)
{
	assert_int_equal(bl_fcp_arb_grant(&a, slot, 7, 2), 0);
	return bl_fcp_arb_tx(&a, now, buf);
}

/* Sends one packet with everything that is to be announced. */
static void send_totals(struct bl_fcp_end *e, uint32_t *seq)
{
	struct bl_fcp_sent *s = bl_fcp_next_seq(e, now, seq);

	bl_fcp_put_totals(e, s, *seq, (void *)buf, 1);
}

static void bl_fcp_parse__lengths(void **state)
{
	static const uint8_t ops[] = { BL_FCP_REQ,   BL_FCP_ALLOC, BL_FCP_ACK,
				       BL_FCP_RESET, BL_FCP_CALL,  BL_FCP_WATCHDOG };
	static const uint32_t bodies[] = { 4 + 12, 8 + 12 + 18, 0, 32, 0, 16 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		uint32_t whole = 32 + bodies[i], len;

		memset(buf, 0, sizeof(buf));
		bl_fcp_seal(&params, 0, ops[i], 0x01020304, 0x05060708, 0x090a0b0c,
			    0x1122334455667788ULL, buf, whole);
		if (ops[i] == BL_FCP_REQ)
			buf[33] = 2;
		if (ops[i] == BL_FCP_ALLOC) {
			buf[32 + 5] = 9; /* base */
			buf[32 + 6] = 2;
			buf[32 + 7] = 3;
			buf[52 + 4] = buf[58 + 4] = buf[64 + 4] = 1; /* counts */
		}
		for (len = 0; len <= whole + 1; len++) {
			/* The copy is aligned to 8, and ASan detects reads behind it. */
			uint8_t *p = aligned_alloc(8, (len + 7) & ~7U);

			memcpy(p, buf, len);
			assert_int_equal(bl_fcp_parse(p, len, NDST, &k),
					 len < whole    ? BL_FCP_R_SHORT
					 : len == whole ? BL_FCP_R_OK
							: BL_FCP_R_BAD_LENGTH);
			free(p);
		}
		assert_int_equal(bl_fcp_parse(buf, whole, NDST, &k), BL_FCP_R_OK);
		assert_int_equal(k.opcode, ops[i]);
		assert_int_equal(k.challenge, 0x01020304);
		assert_int_equal(k.seq, 0x05060708);
		assert_int_equal(k.ack, 0x090a0b0c);
		assert_int_equal(k.ack_bits, 0x1122334455667788ULL);
	}
}

static void bl_fcp_parse__fields(void **state)
{
	static const struct {
		uint32_t at;
		uint8_t value;
		enum bl_fcp_reason want;
	} t[] = {
		{ 0, 0xFD, BL_FCP_R_BAD_MAGIC },
		{ 1, 0x51, BL_FCP_R_BAD_MAGIC },
		{ 2, 0x02, BL_FCP_R_BAD_VERSION },
		{ 2, 0x22, BL_FCP_R_BAD_VERSION },
		{ 2, 0x10, BL_FCP_R_BAD_OPCODE },
		{ 2, BL_FCP_OPCODE_BYTE(BL_FCP_OPCODE_LIMIT), BL_FCP_R_BAD_OPCODE },
		{ 3, 1, BL_FCP_R_BAD_BODY },
		{ 38, 0, BL_FCP_R_BAD_LENGTH }, /* fewer totals than bytes */
		{ 38, 65, BL_FCP_R_BAD_LENGTH },
		{ 38, 2, BL_FCP_R_SHORT },
		{ 39, 129, BL_FCP_R_BAD_LENGTH },
		{ 39, 2, BL_FCP_R_SHORT },
		/* destination 0x12c = 300 is the first that does not exist */
		{ 41, 44, BL_FCP_R_BAD_BODY },
		{ 41, 43, BL_FCP_R_OK },
		{ 48, 1, BL_FCP_R_BAD_BODY }, /* @which is behind the totals. */
		{ 49, 0, BL_FCP_R_OK },
		{ 50, 0, BL_FCP_R_BAD_BODY }, /* an empty run */
		{ 50, 1, BL_FCP_R_OK },
		{ 51, 0, BL_FCP_R_BAD_BODY }, /* four slots at once */
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_fcp_alloc *b = (void *)(buf + 32);
		struct bl_fcp_total *tot = (void *)(b + 1);
		struct bl_fcp_run *run = (void *)(tot + 1);

		*b = (struct bl_fcp_alloc){ .base = { 0, 0, 0, 0, 1, 0 }, .totals = 1, .runs = 1 };
		bl_fcp_total_put(tot, 0x12b, 0x00fedcba);
		*run = (struct bl_fcp_run){
			.offset = BL_BE16(0x0203), .path = 4, .count = 4, .stride = 3
		};
		bl_fcp_seal(&params, 0, BL_FCP_ALLOC, 0, 1, 0, 0, buf, 52);
		assert_int_equal(bl_fcp_parse(buf, 52, NDST, &k), BL_FCP_R_OK);
		buf[t[i].at] = t[i].value;
		assert_int_equal(bl_fcp_parse(buf, 52, NDST, &k), t[i].want);
		if (i == 0) {
			struct bl_fcp_slots s;

			buf[0] = 0xFC;
			assert_int_equal(bl_fcp_parse(buf, 52, NDST, &k), BL_FCP_R_OK);
			bl_fcp_slots_at(&k, 0, &s);
			assert_int_equal(s.first, 0x100 + 0x203);
			assert_int_equal(s.dst, 0x12b);
			assert_int_equal(s.count, 4);
			assert_int_equal(s.stride, 3);
			assert_int_equal(s.path, 4);
			assert_int_equal(bl_fcp_total_get(&k.totals[0]), 0x00fedcba);
		}
	}
}

static void bl_fcp_seq__window(void **state)
{
	static const struct {
		uint32_t max, seq;
		enum bl_fcp_reason want;
	} t[] = {
		{ 0, 0, BL_FCP_R_DUPLICATE }, /* Before the first packet nothing is missing. */
		{ 0, 1, BL_FCP_R_OK },
		{ 0, 0xffffffff, BL_FCP_R_DUPLICATE },
		{ 100, 100, BL_FCP_R_DUPLICATE },
		{ 100, 99, BL_FCP_R_OK },
		{ 100, 37, BL_FCP_R_OK },
		{ 100, 36, BL_FCP_R_OLD },
		{ 100, 101, BL_FCP_R_OK },
		{ 100, 100 + BL_FCP_REACH, BL_FCP_R_OK },
		{ 100, 101 + BL_FCP_REACH, BL_FCP_R_BAD_SEQ },
		{ 0xffffffff, 0, BL_FCP_R_OK },
		{ 5, 0xfffffffe, BL_FCP_R_OK },
		{ 5, 0x80000006, BL_FCP_R_OLD },
		{ 5, 0x80000004, BL_FCP_R_BAD_SEQ },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_fcp_end *e = &a.e;

		bl_fcp_session_begin(e, 1);
		e->in_max = t[i].max;
		if (t[i].max)
			e->in_got = e->in_closed = 1;
		assert_int_equal(bl_fcp_seq_check(e, t[i].seq), t[i].want);
		if (t[i].want != BL_FCP_R_OK)
			continue;
		bl_fcp_seq_take(e, t[i].seq, now);
		assert_int_equal(bl_fcp_seq_check(e, t[i].seq), BL_FCP_R_DUPLICATE);
		assert_int_equal(e->in_max,
				 (int32_t)(t[i].seq - t[i].max) > 0 ? t[i].seq : t[i].max);
	}
}

static void bl_fcp_gaps__given_up_after_a_while(void **state)
{
	struct bl_fcp_end *e = &a.e;

	(void)state;
	bl_fcp_session_begin(e, 1);
	assert_int_equal(bl_fcp_gaps_close(e, &params, now), 1);
	bl_fcp_seq_take(e, 1, now);
	assert_int_equal(e->gap_ns, 0);
	bl_fcp_seq_take(e, 3, now);
	assert_int_equal(bl_fcp_gaps_close(e, &params, now + params.reorder_ns - 1), 0);
	bl_fcp_seq_take(e, 5, now + 60 * US); /* Packet 4 is missing only since this time. */
	assert_int_equal(bl_fcp_gaps_close(e, &params, now + params.reorder_ns), 0);
	assert_int_equal(bl_fcp_seq_check(e, 2), BL_FCP_R_DUPLICATE);
	assert_int_equal(bl_fcp_seq_check(e, 4), BL_FCP_R_OK);
	assert_int_equal(e->in_got & 0x1f,
			 0x15); /* A packet that was given up does not count as received. */
	bl_fcp_seq_take(e, 4, now + 70 * US);
	assert_int_equal(e->gap_ns, 0);
	/* packets that the window has left behind are given up */
	bl_fcp_seq_take(e, 7, now);
	assert_int_not_equal(e->gap_ns, 0);
	bl_fcp_seq_take(e, 7 + 64, now);
	assert_int_equal(bl_fcp_seq_check(e, 6), BL_FCP_R_OLD);
	assert_int_equal(e->in_got, 1);
}

static void bl_fcp_acked__who_is_lost(void **state)
{
	static const struct {
		uint32_t ack;
		uint64_t bits;
		uint64_t open; /* bit k: packet 8 - k */
		uint32_t lost;
	} t[] = {
		{ 0, 0, 0xff, 0 },
		{ 1, 0, 0x7f, 0 },
		{ 8, 0x7f, 0, 0 },
		/*
		 * 5 is three behind 8, so it and all packets before it are lost; 6 and 7 may still
		 * arrive.
		 */
		{ 8, 0, 0x06, 5 },
		{ 8, 0x3, 0x00, 5 }, /* 6 and 7 have arrived as well. */
		{ 4, 0x1, 0x4f, 1 }, /* 3 has arrived; 1 is lost, and 2 may still arrive. */
		{ 4, 0x5, 0x4f, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_fcp_end *e = &a.e;
		uint32_t seq, j;

		setup(NULL);
		for (j = 0; j < 8; j++) {
			bl_fcp_total_tell(e, j);
			send_totals(e, &seq);
		}
		assert_int_equal(seq, 8);
		bl_fcp_acked(e, t[i].ack, t[i].bits);
		assert_int_equal(e->open, t[i].open);
		assert_int_equal(e->nacks, t[i].lost);
		assert_int_equal(e->tell.count, t[i].lost);
	}
	/* What a later packet has announced is not announced again. */
	setup(NULL);
	{
		uint32_t seq, j;

		for (j = 0; j < 5; j++) {
			bl_fcp_total_tell(&a.e, 9);
			send_totals(&a.e, &seq);
		}
		bl_fcp_acked(&a.e, 5, 0);
		assert_int_equal(a.e.nacks, 2);
		assert_int_equal(a.e.tell.count, 0);
		assert_int_equal(bl_fcp_acks_ok(&a.e, 5), 1);
		assert_int_equal(bl_fcp_acks_ok(&a.e, 6), 0);
	}
}

static void bl_fcp_next_seq__never_waits(void **state)
{
	uint32_t seq, i;

	(void)state;
	for (i = 0; i < BL_FCP_WINDOW; i++) {
		bl_fcp_total_tell(&a.e, i);
		send_totals(&a.e, &seq);
	}
	assert_int_equal(a.e.open, ~0ULL);
	assert_int_equal(a.e.tell.count, 0);
	bl_fcp_next_seq(&a.e, now, &seq);
	assert_int_equal(seq, 65);
	assert_int_equal(a.e.tell.count, 1);
	assert_int_equal(bl_fcp_queue_pop(&a.e, &a.e.tell, BL_FCP_Q_TELL), 0);
}

static void bl_fcp_expire__doubles(void **state)
{
	uint64_t rto = 2 * params.rtt_ns;
	uint32_t n, i;

	(void)state;
	begin_session(1);
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(n, 0);
	for (i = 0; i < 6; i++) {
		uint64_t wait = rto << (i < BL_FCP_BACKOFF ? i : BL_FCP_BACKOFF);

		assert_int_equal(bl_fcp_timeout(&h.e, &params), now + wait);
		now += wait - 1;
		bl_fcp_packets_expire(&h.e, &params, now);
		assert_int_equal(h.e.timeouts, i);
		now++;
		n = bl_fcp_host_tx(&h, now, buf);
		assert_int_equal(h.e.timeouts, i + 1);
		assert_int_equal(bl_fcp_parse(buf, n, NDST, &k), BL_FCP_R_OK);
		assert_int_equal(k.opcode, BL_FCP_REQ);
		assert_int_equal(k.ntotals, 1);
		assert_int_equal(k.seq, 2 + i);
	}
	assert_int_equal(give_to_arb(n), BL_FCP_R_OK);
	now += params.ack_ns;
	n = bl_fcp_arb_tx(&a, now, buf);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	assert_int_equal(k.opcode, BL_FCP_ACK);
	assert_int_equal(h.e.backoff, 0);
	assert_int_equal(h.e.open, 0);
}

static void fcp__the_example_of_the_header(void **state)
{
	struct bl_fcp_slots s;
	uint32_t n, late, dst, slots;

	(void)state;
	begin_session(2);
	late = make_alloc(900);
	memcpy(other, buf, late);
	n = make_alloc(901);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	assert_int_equal(k.nruns, 1);
	bl_fcp_slots_at(&k, 0, &s);
	assert_int_equal(s.first, 901);
	assert_int_equal(s.dst, 7);
	assert_int_equal(s.path, 2);
	assert_int_equal(h.received, 1);
	assert_int_equal(h.need, 1);
	assert_int_equal(h.lost, 0); /* The packet may still arrive. */
	assert_int_equal(bl_fcp_host_next(&h), now + params.ack_ns);
	now += params.reorder_ns - 1;
	bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(h.lost, 0);
	now++;
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(h.lost, 1);
	assert_int_equal(h.need, 1);
	assert_int_equal(bl_fcp_parse(buf, n, NDST, &k), BL_FCP_R_OK);
	assert_int_equal(k.ntotals, 1);
	assert_int_equal(bl_fcp_total_get(&k.totals[0]), 3);
	assert_int_equal(give_to_arb(n), BL_FCP_R_OK);
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &slots), 1);
	assert_int_equal(slots, 1);
	/* The late packet is refused, since its slot was asked for again. */
	memcpy(buf, other, late);
	assert_int_equal(give_to_host(late), BL_FCP_R_DUPLICATE);
	assert_int_equal(h.received, 1);
	n = make_alloc(950);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	assert_int_equal(h.received, 2);
	assert_int_equal(h.need, 0);
}

/*
 * Returns the length of the packet that a paced host sends at @at and not earlier; 0: it sends none
 * even then.
 */
static uint32_t paced_tx(uint64_t at)
{
	assert_int_equal(bl_fcp_host_tx(&h, at - 1, buf), 0);
	return bl_fcp_host_tx(&h, at, buf);
}

/*
 * REQs keep their distance, but never wait where an acknowledgement is sent anyway, or where they
 * fill a packet.
 */
static void bl_fcp_host_tx__paced(void **state)
{
	uint32_t n, i;

	(void)state;
	begin_session(2);
	h.p.pace_ns = 300 * US;
	bl_fcp_host_want(&h, 9, 1);
	assert_int_equal(bl_fcp_host_next(&h), now + 300 * US);
	n = paced_tx(now + 300 * US);
	now += 300 * US;
	assert_int_equal(bl_fcp_parse(buf, n, NDST, &k), BL_FCP_R_OK);
	assert_true(k.opcode == BL_FCP_REQ && k.ntotals == 1);
	assert_int_equal(give_to_arb(n), BL_FCP_R_OK);
	/* An acknowledgement is due earlier: one packet serves both. */
	bl_fcp_host_want(&h, 9, 1);
	n = make_alloc(900);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	assert_int_equal(bl_fcp_host_next(&h), now + params.ack_ns);
	n = paced_tx(now + params.ack_ns);
	now += params.ack_ns;
	assert_int_equal(bl_fcp_parse(buf, n, NDST, &k), BL_FCP_R_OK);
	assert_true(k.opcode == BL_FCP_REQ && k.ntotals == 1 && k.ack == 1);
	assert_int_equal(bl_fcp_host_tx(&h, now, buf), 0);
	/* There is nothing to announce: the acknowledgement is sent alone. */
	assert_int_equal(give_to_arb(n), BL_FCP_R_OK);
	n = make_alloc(901);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	n = paced_tx(now + params.ack_ns);
	now += params.ack_ns;
	assert_int_equal(bl_fcp_parse(buf, n, NDST, &k), BL_FCP_R_OK);
	assert_int_equal(k.opcode, BL_FCP_ACK);
	/* As many demands as a packet holds are sent at once, and one more waits. */
	for (i = 0; i < BL_FCP_TOTALS_MAX - 1; i++)
		bl_fcp_host_want(&h, 10 + i, 1);
	assert_int_equal(bl_fcp_host_tx(&h, now + 1, buf), 0);
	bl_fcp_host_want(&h, 10 + i, 1);
	bl_fcp_host_want(&h, 11 + i, 1);
	assert_int_equal(bl_fcp_host_next(&h), 0);
	n = bl_fcp_host_tx(&h, now + 1, buf);
	assert_int_equal(bl_fcp_parse(buf, n, NDST, &k), BL_FCP_R_OK);
	assert_int_equal(k.ntotals, BL_FCP_TOTALS_MAX);
	n -= (BL_FCP_TOTALS_MAX - 1) * sizeof(struct bl_fcp_total);
	assert_int_equal(paced_tx(now + 1 + 300 * US), n);
	/* a host that is called answers at once */
	h.call = 1;
	assert_int_not_equal(bl_fcp_host_tx(&h, now + 2 + 300 * US, buf), 0);
}

static void fcp__the_last_alloc_is_lost(void **state)
{
	uint32_t n;

	(void)state;
	begin_session(1);
	make_alloc(900);
	now += 2 * params.rtt_ns;
	n = bl_fcp_arb_tx(&a, now, buf);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	assert_int_equal(k.nruns, 0);
	assert_int_equal(k.ntotals, 1);
	assert_int_equal(bl_fcp_total_get(&k.totals[0]), 1);
	now += params.reorder_ns;
	bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(h.lost, 1);
	assert_int_equal(h.need, 1);
	assert_int_equal(hm.pair[7].total, 2);
}

static void fcp__reordered_alloc_is_not_lost(void **state)
{
	uint32_t first, n;

	(void)state;
	begin_session(2);
	first = make_alloc(900);
	memcpy(other, buf, first);
	n = make_alloc(901);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	memcpy(buf, other, first);
	assert_int_equal(give_to_host(first), BL_FCP_R_OK);
	assert_int_equal(give_to_host(first), BL_FCP_R_DUPLICATE);
	now += 10 * params.reorder_ns;
	bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(h.lost, 0);
	assert_int_equal(h.need, 0);
	assert_int_equal(h.received, 2);
	assert_int_equal(h.unasked, 0);
}

static void fcp__reset_begins_anew(void **state)
{
	uint32_t n, dst, slots, reset;

	(void)state;
	begin_session(10);
	assert_int_equal(bl_fcp_arb_grant(&a, 5, 7, 0), 0);
	assert_int_equal(bl_fcp_arb_grant(&a, 6, 7, 0), 0);
	assert_int_equal(bl_fcp_arb_grant(&a, 8, 7, 0), 0);
	assert_int_equal(bl_fcp_arb_grant(&a, 10, 7, 0), 0);
	n = bl_fcp_arb_tx(&a, now, buf);
	memcpy(other, buf, n);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	assert_int_equal(k.nruns, 2);
	assert_int_equal(h.need, 6);
	/* the arbiter dies, and another one takes over */
	nonce = 0xdef;
	arb_init(&a, &am, &params, NDST, 3, 2);
	now += params.keep_ns;
	n = bl_fcp_host_tx(&h, now, buf);
	assert_true(n > 0);
	assert_int_equal(give_to_arb(n), BL_FCP_R_BAD_CHECK);
	assert_int_equal(give_to_arb(n), BL_FCP_R_BAD_CHECK);
	reset = bl_fcp_arb_tx(&a, now, buf);
	assert_int_equal(bl_fcp_arb_tx(&a, now, other + 600), 0);
	assert_int_equal(give_to_host(reset), BL_FCP_R_OK);
	assert_int_equal(give_to_host(reset), BL_FCP_R_OLD_RESET);
	assert_int_equal(h.e.nonce, 0xdef);
	assert_int_equal(h.term, 2);
	assert_int_equal(h.slot_ns, 1230);
	assert_int_equal(hm.pair[7].total, 6);
	/* the ALLOC of the old session has no effect now */
	memcpy(buf, other, sizeof(buf));
	assert_int_equal(give_to_host(32 + 8 + 6 + 12), BL_FCP_R_BAD_CHECK);
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(give_to_arb(n), BL_FCP_R_OK);
	assert_int_equal(give_to_arb(n), BL_FCP_R_DUPLICATE);
	assert_int_equal(a.e.count[BL_FCP_R_BAD_CHECK], 2);
	assert_int_equal(a.e.count[BL_FCP_R_DUPLICATE], 1);
	assert_int_equal(a.fresh, 1);
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &slots), 1);
	assert_int_equal(dst, 7);
	assert_int_equal(slots, 6);
	assert_int_equal(a.resets, 1);
	assert_int_equal(a.sessions, 1);
}

static void bl_fcp_arb__one_reset_per_round_trip(void **state)
{
	uint32_t n, i, resets = 0;
	uint64_t from = now;

	(void)state;
	begin_session(1);
	now += params.rtt_ns;
	/* 1000 corrupted packets in 10 round trips */
	n = bl_fcp_seal(&params, 0x666, BL_FCP_REQ, 5, 9, 0, 0, buf, 36);
	for (i = 0; i < 1000; i++) {
		memset(buf + 32, 0, 4);
		bl_fcp_seal(&params, 0x666, BL_FCP_REQ, i, 9, 0, 0, buf, 36);
		assert_int_equal(bl_fcp_arb_rx(&a, buf, n, now, i + 1), BL_FCP_R_BAD_CHECK);
		resets += bl_fcp_arb_tx(&a, now, other) == 64;
		now += params.rtt_ns / 100;
	}
	assert_int_equal(resets, 10);
	assert_int_equal(a.resets, 11);
	assert_true(now > from);
	/* the working session is not disturbed */
	assert_int_equal(a.e.nonce, h.e.nonce);
	assert_int_equal(make_alloc(77) > 0, 1);
	assert_int_equal(give_to_host(58 - 6), BL_FCP_R_OK);
	assert_int_equal(h.received, 1);
	/* A malformed packet triggers nothing. */
	now += params.rtt_ns;
	memset(buf, 0, sizeof(buf));
	assert_int_equal(give_to_arb(64), BL_FCP_R_BAD_MAGIC);
	n = bl_fcp_seal(&params, 0, BL_FCP_RESET, 5, 0, 0, 0, buf, 64);
	assert_int_equal(give_to_arb(n), BL_FCP_R_BAD_OPCODE);
	assert_int_equal(a.reset_due, 0);
	/* A packet that is out of step within the session triggers a RESET. */
	memset(buf + 32, 0, 4);
	n = bl_fcp_seal(&params, a.e.nonce, BL_FCP_REQ, h.challenge, 2 + BL_FCP_REACH, 0, 0, buf,
			36);
	assert_int_equal(give_to_arb(n), BL_FCP_R_BAD_SEQ);
	assert_int_equal(a.reset_due, 1);
	bl_fcp_arb_tx(&a, now, other);
	now += params.rtt_ns;
	n = bl_fcp_seal(&params, a.e.nonce, BL_FCP_ACK, h.challenge, 0, 99, 0, buf, 32);
	assert_int_equal(give_to_arb(n), BL_FCP_R_BAD_SEQ);
	assert_int_equal(a.reset_due, 1);
}

static void bl_fcp_arb_offer__same_question_same_answer(void **state)
{
	uint32_t n, dst, slots;

	(void)state;
	bl_fcp_host_want(&h, 1, 1);
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(bl_fcp_arb_rx(&a, buf, n, now, 111), BL_FCP_R_BAD_CHECK);
	n = bl_fcp_arb_tx(&a, now, other); /* late */
	now += 4 * params.rtt_ns;
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(bl_fcp_arb_rx(&a, buf, n, now, 222), BL_FCP_R_BAD_CHECK);
	n = bl_fcp_arb_tx(&a, now, buf);
	assert_int_equal(bl_fcp_host_rx(&h, other, n, now, &k), BL_FCP_R_OK);
	assert_int_equal(give_to_host(n), BL_FCP_R_OLD_RESET);
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(give_to_arb(n), BL_FCP_R_OK);
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &slots), 1);
}

static void bl_fcp_host_reset__refuses(void **state)
{
	static const struct {
		uint32_t at;
		uint8_t add;
		enum bl_fcp_reason want;
	} t[] = {
		{ 32 + 11, 1, BL_FCP_R_OK }, /* a higher term */
		{ 32 + 15, 1, BL_FCP_R_BAD_TABLE },
		{ 32 + 25, 1, BL_FCP_R_BAD_TABLE }, /* another index */
		{ 32 + 27, 1, BL_FCP_R_BAD_TABLE }, /* another number of endpoints */
		{ 32 + 31, 1, BL_FCP_R_BAD_BODY },
		{ 7, 1, BL_FCP_R_OLD_RESET },
		{ 24, 1, BL_FCP_R_BAD_CHECK },
	};
	uint32_t n, i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_fcp_hdr *hd = (void *)buf;

		setup(NULL);
		bl_fcp_host_want(&h, 1, 1);
		n = bl_fcp_host_tx(&h, now, buf);
		give_to_arb(n);
		n = bl_fcp_arb_tx(&a, now, buf);
		assert_int_equal(n, 64);
		buf[t[i].at] = (uint8_t)(buf[t[i].at] + t[i].add);
		if (t[i].want != BL_FCP_R_BAD_CHECK)
			hd->check = BL_BE64(bl_fcp_checksum(&params, 0, buf, n));
		assert_int_equal(give_to_host(n), t[i].want);
		assert_int_equal(h.e.nonce != 0, t[i].want == BL_FCP_R_OK);
		assert_int_equal(h.e.count[t[i].want], 1);
	}
	/*
	 * An arbiter that was replaced gets no session back until the present one has been silent
	 * for a long time.
	 */
	setup(NULL);
	arb_init(&a, &am, &params, NDST, 3, 7);
	begin_session(1);
	arb_init(&a, &am, &params, NDST, 3, 6);
	now += params.keep_ns;
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(give_to_arb(n), BL_FCP_R_BAD_CHECK);
	n = bl_fcp_arb_tx(&a, now, buf);
	assert_int_equal(give_to_host(n), BL_FCP_R_OLD_TERM);
	now = h.e.heard_ns + params.hold_ns - 1;
	assert_int_equal(give_to_host(n), BL_FCP_R_OLD_TERM);
	now++;
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	assert_int_equal(h.term, 6);
}

static void bl_fcp_host__call(void **state)
{
	uint32_t n, i, answers = 0;

	(void)state;
	assert_int_equal(bl_fcp_host_tx(&h, now, buf),
			 0); /* Nothing is wanted, so nothing is sent. */
	assert_int_equal(bl_fcp_host_next(&h), BL_FCP_NEVER);
	for (i = 0; i < 100; i++) {
		n = bl_fcp_arb_call(&params, buf);
		assert_int_equal(give_to_host(n), BL_FCP_R_OK);
		assert_int_equal(k.opcode, BL_FCP_CALL);
		answers += bl_fcp_host_tx(&h, now, buf) > 0;
		now += params.rtt_ns / 10;
	}
	assert_int_equal(answers, 10);
	/* opcodes of the other direction are refused */
	bl_fcp_host_want(&h, 1, 1);
	now += 100 * params.rtt_ns;
	n = bl_fcp_host_tx(&h, now, buf);
	assert_int_equal(give_to_host(n), BL_FCP_R_BAD_OPCODE);
}

static void bl_fcp_arb_take__quota(void **state)
{
	uint32_t dst, slots, sum = 0, i;

	(void)state;
	params.quota = 1500;
	begin_session(0);
	bl_fcp_host_want(&h, 7, 0x7fffffff);
	bl_fcp_host_want(&h, 8, 5);
	assert_int_equal(give_to_arb(bl_fcp_host_tx(&h, now, buf)), BL_FCP_R_OK);
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &slots), 1);
	assert_int_equal(dst, 7);
	assert_int_equal(slots, BL_FCP_CHUNK);
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &slots), 1);
	assert_int_equal(dst, 8); /* 8 has its turn, although 7 wants more. */
	assert_int_equal(slots, 5);
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &slots), 1);
	assert_int_equal(slots, 1500 - BL_FCP_CHUNK - 5);
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &slots), 0);
	assert_int_equal(a.capped, 1);
	for (i = 0; i < 30; i++)
		assert_int_equal(bl_fcp_arb_grant(&a, 100 + i, 7, 0), 0);
	while (bl_fcp_arb_take(&a, &dst, &slots))
		sum += slots;
	assert_int_equal(sum, 30);
	assert_int_equal(a.waiting, 1500);
	/* What the old session waited for does not count against the quota of a new one. */
	bl_fcp_arb_begin(&a, 0x123);
	assert_int_equal(a.waiting, 0);
}

static void bl_fcp_arb_grant__runs(void **state)
{
	static const struct {
		uint64_t slot;
		uint32_t dst;
		uint8_t path;
	} give[] = {
		/* strides of 2 */
		{ 101000, 7, 1 },
		{ 101001, 8, 1 },
		{ 101002, 7, 1 },
		{ 101003, 8, 1 },
		{ 101004, 7, 1 },
		/* another stride, therefore another run */
		{ 101005, 7, 1 },
		/* another path */
		{ 101006, 7, 2 },
		/* a stride of 255, then one of 256 */
		{ 101261, 7, 2 },
		{ 101517, 7, 2 },
	};
	static const struct bl_fcp_slots want[] = {
		{ 101000, 7, 3, 2, 1 },   { 101001, 8, 2, 2, 1 }, { 101005, 7, 1, 0, 1 },
		{ 101006, 7, 2, 255, 2 }, { 101517, 7, 1, 0, 2 },
	};
	struct bl_fcp_slots s;
	uint32_t n, i;

	(void)state;
	begin_session(0);
	bl_fcp_host_want(&h, 7, 400);
	bl_fcp_host_want(&h, 8, 2);
	assert_int_equal(give_to_arb(bl_fcp_host_tx(&h, now, buf)), BL_FCP_R_OK);
	assert_int_equal(bl_fcp_arb_grant(&a, 1, 7, 0), 1); /* not handed over yet */
	while (bl_fcp_arb_take(&a, &i, &n))
		;
	assert_int_equal(bl_fcp_arb_grant(&a, 1, 9, 0), 1); /* 9 was not asked for */
	assert_int_equal(a.refused, 2);
	for (i = 0; i < ARRAY_SIZE(give); i++)
		assert_int_equal(bl_fcp_arb_grant(&a, give[i].slot, give[i].dst, give[i].path), 0);
	assert_int_equal(bl_fcp_arb_grant(&a, 101000 - BL_FCP_BEFORE - 1, 7, 0), -1);
	assert_int_equal(bl_fcp_arb_grant(&a, 101000 - BL_FCP_BEFORE + 0x10000, 7, 0), -1);
	assert_int_equal(bl_fcp_arb_grant(&a, 101518, 8, 0), 1); /* two were asked for */
	n = bl_fcp_arb_tx(&a, now, buf);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	assert_int_equal(k.nruns, ARRAY_SIZE(want));
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		memset(&s, 0, sizeof(s));
		bl_fcp_slots_at(&k, i, &s);
		assert_int_equal(s.first, want[i].first);
		assert_int_equal(s.dst, want[i].dst);
		assert_int_equal(s.count, want[i].count);
		assert_int_equal(s.stride, want[i].stride);
		assert_int_equal(s.path, want[i].path);
	}
	assert_int_equal(h.need, 400 + 2 - 9);
	/* a run holds 255 slots, a packet 128 runs */
	for (i = 0; i < 256; i++)
		assert_int_equal(bl_fcp_arb_grant(&a, 2000 + i, 7, 0), 0);
	assert_int_equal(a.b.runs, 2);
	assert_int_equal(a.b.run[0].count, 255);
	for (i = 0; i < 126; i++)
		assert_int_equal(bl_fcp_arb_grant(&a, 3000 + i, 7, (uint8_t)(i & 1)), 0);
	assert_int_equal(a.b.runs, BL_FCP_RUNS_MAX);
	assert_int_equal(bl_fcp_arb_grant(&a, 4000, 7, 0), -1);
	n = bl_fcp_arb_tx(&a, now, buf);
	assert_int_equal(give_to_host(n), BL_FCP_R_OK);
	assert_int_equal(bl_fcp_arb_grant(&a, 4000, 7, 0), 0);
	assert_int_equal(h.unasked, 0);
}

static void bl_fcp_arb__many_destinations(void **state)
{
	uint32_t n, i, dst, slots, packets = 0, totals = 0, taken = 0;

	(void)state;
	begin_session(0);
	for (i = 0; i < NDST; i++)
		bl_fcp_host_want(&h, i, 1);
	while ((n = bl_fcp_host_tx(&h, now, buf))) {
		assert_true(n <= BL_FCP_PACKET_MAX);
		assert_int_equal(give_to_arb(n), BL_FCP_R_OK);
		packets++;
	}
	assert_int_equal(packets, 5); /* 64 to a packet */
	while (bl_fcp_arb_take(&a, &dst, &slots))
		taken += slots;
	assert_int_equal(taken, NDST);
	for (i = 0; i < NDST; i++) {
		if (bl_fcp_arb_grant(&a, i, i, 0) == 0)
			continue;
		n = bl_fcp_arb_tx(&a, now, buf);
		assert_int_equal(give_to_host(n), BL_FCP_R_OK);
		totals += k.ntotals;
		i--;
	}
	assert_int_equal(totals, 256);
	assert_int_equal(give_to_host(bl_fcp_arb_tx(&a, now, buf)), BL_FCP_R_OK);
	assert_int_equal(h.need, 0);
	assert_int_equal(h.received, NDST);
}

static void bl_fcp_arb__silent_host_loses_its_session(void **state)
{
	(void)state;
	begin_session(3);
	make_alloc(5);
	now = a.e.heard_ns + params.dead_ns - 1;
	bl_fcp_arb_tx(&a, now, buf);
	assert_int_equal(a.gone, 0);
	now++;
	assert_int_equal(bl_fcp_arb_tx(&a, now, buf), 0);
	assert_int_equal(a.gone, 1);
	assert_int_equal(a.fresh, 1);
	assert_int_equal(a.e.nonce, 0);
	assert_int_equal(bl_fcp_arb_next(&a), BL_FCP_NEVER);
	assert_int_equal(bl_fcp_arb_grant(&a, 9, 7, 0), 1);
}

static void bl_fcp__counts_wrap(void **state)
{
	uint32_t dst, slots;

	(void)state;
	begin_session(0);
	hm.pair[7].total = hm.pair[7].told = hm.pair[7].done = 0xfffffffe;
	am.pair[7].total = am.pair[7].told = am.pair[7].done = 0xfffffffe;
	bl_fcp_host_want(&h, 7, 5);
	assert_int_equal(give_to_arb(bl_fcp_host_tx(&h, now, buf)), BL_FCP_R_OK);
	assert_int_equal(bl_fcp_arb_take(&a, &dst, &slots), 1);
	assert_int_equal(slots, 5);
	assert_int_equal(am.pair[7].told, 3);
	for (slots = 0; slots < 5; slots++)
		assert_int_equal(bl_fcp_arb_grant(&a, 50 + slots, 7, 0), 0);
	assert_int_equal(give_to_host(bl_fcp_arb_tx(&a, now, buf)), BL_FCP_R_OK);
	assert_int_equal(h.need, 0);
	assert_int_equal(h.lost, 0);
	assert_int_equal(h.unasked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bl_fcp_parse__lengths, setup),
		cmocka_unit_test_setup(bl_fcp_parse__fields, setup),
		cmocka_unit_test_setup(bl_fcp_seq__window, setup),
		cmocka_unit_test_setup(bl_fcp_gaps__given_up_after_a_while, setup),
		cmocka_unit_test_setup(bl_fcp_acked__who_is_lost, setup),
		cmocka_unit_test_setup(bl_fcp_next_seq__never_waits, setup),
		cmocka_unit_test_setup(bl_fcp_expire__doubles, setup),
		cmocka_unit_test_setup(fcp__the_example_of_the_header, setup),
		cmocka_unit_test_setup(bl_fcp_host_tx__paced, setup),
		cmocka_unit_test_setup(fcp__the_last_alloc_is_lost, setup),
		cmocka_unit_test_setup(fcp__reordered_alloc_is_not_lost, setup),
		cmocka_unit_test_setup(fcp__reset_begins_anew, setup),
		cmocka_unit_test_setup(bl_fcp_arb__one_reset_per_round_trip, setup),
		cmocka_unit_test_setup(bl_fcp_arb_offer__same_question_same_answer, setup),
		cmocka_unit_test_setup(bl_fcp_host_reset__refuses, setup),
		cmocka_unit_test_setup(bl_fcp_host__call, setup),
		cmocka_unit_test_setup(bl_fcp_arb_take__quota, setup),
		cmocka_unit_test_setup(bl_fcp_arb_grant__runs, setup),
		cmocka_unit_test_setup(bl_fcp_arb__many_destinations, setup),
		cmocka_unit_test_setup(bl_fcp_arb__silent_host_loses_its_session, setup),
		cmocka_unit_test_setup(bl_fcp__counts_wrap, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
