// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Large messages are delivered whole or not at all, also from senders that break the rules: parts
 * that come twice, overlap, or belong to another message than they say. What was never received
 * must not be delivered, so the heap is filled beforehand with a byte that no message here has.
 */
#include "tests/unit/lib/lib_rel.h"

#include <malloc.h>
#include "tests/unit/lib/lib_pair.h"

#define FILL  0xa5 /* what malloc() returns, and no message has */
#define TOTAL 1000u

static uint32_t next_psn;

static int pair_up(void **state)
{
	struct bl_delivery d;

	(void)state;
	make_pair(&a, &b);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1);
	next_psn = fake_peer(&a, &b)->rtx.next_psn;
	return 0;
}

static void head(uint8_t *body, uint32_t count)
{
	bl_store16(body, a.ep->incarnation);
	bl_store16(body + 2, count);
	bl_store32(body + 4, 0);
	bl_store16(body + 8, b.ep->incarnation);
	bl_store16(body + 10, 0);
}

/* Put bytes @offset to @offset + @len - 1 of message @id, all of value @value. */
static void part_of(uint64_t ts, uint32_t id, uint32_t offset, uint32_t len, uint32_t total,
		    uint8_t value)
{
	uint8_t body[2000];

	head(body, 0);
	bl_frag_put(body + BL_ACK_BODY, id, offset, total);
	memset(body + BL_ACK_BODY + sizeof(struct bl_frag), value, len);
	assert_true(fake_put(&b, &a.ep->self, BL_OP_PREP, ts, next_psn++, body,
			     BL_ACK_BODY + (uint32_t)sizeof(struct bl_frag) + len));
}

static void reference(uint64_t ts, uint32_t id, uint32_t total)
{
	uint8_t body[100] = { 0 };

	head(body, 1);
	bl_ref_put(body + BL_ACK_BODY, id, total);
	assert_true(fake_put(&b, &a.ep->self, BL_OP_PREP, ts, next_psn++, body, sizeof(body)));
}

struct part {
	uint32_t offset, len, total;
};

static const struct {
	const char *what;
	struct part part[4];
	bool whole;
} table[] = {
	{ "in order", { { 0, 500, TOTAL }, { 500, 500, TOTAL } }, true },
	{ "in any order", { { 700, 300, TOTAL }, { 0, 1, TOTAL }, { 1, 699, TOTAL } }, true },
	{ "one part", { { 0, TOTAL, TOTAL } }, true },
	{ "the same part twice", { { 0, 500, TOTAL }, { 0, 500, TOTAL } }, false },
	{ "twice, and the rest after it",
	  { { 0, 500, TOTAL }, { 0, 500, TOTAL }, { 500, 500, TOTAL } },
	  false },
	{ "overlap by one byte", { { 0, 501, TOTAL }, { 500, 500, TOTAL } }, false },
	{ "an overlap that makes up for a hole",
	  { { 0, 400, TOTAL }, { 300, 200, TOTAL }, { 600, 400, TOTAL } },
	  false },
	{ "a hole in the middle", { { 0, 499, TOTAL }, { 500, 500, TOTAL } }, false },
	{ "no first byte", { { 1, 999, TOTAL } }, false },
	{ "no last byte", { { 0, 999, TOTAL } }, false },
	{ "a part of one that is shorter", { { 0, 500, TOTAL }, { 500, 500, TOTAL - 1 } }, false },
	{ "a part of one that is longer", { { 0, 500, TOTAL }, { 500, 500, TOTAL + 1 } }, false },
	{ "all of another length", { { 0, 500, TOTAL + 1 }, { 500, 501, TOTAL + 1 } }, false },
};

static void bl_prepared_part__whole_or_not_at_all(void **state)
{
	struct bl_delivery d[2];
	size_t i, k;
	uint32_t n;

	(void)state;
	mallopt(M_PERTURB, 0xff & ~FILL);
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		uint64_t ts = fake_now();
		uint64_t malformed = b.ep->st.malformed;

		print_message("  %s\n", table[i].what);
		for (k = 0; k < ARRAY_SIZE(table[i].part) && table[i].part[k].len; k++)
			part_of(ts, (uint32_t)i, table[i].part[k].offset, table[i].part[k].len,
				table[i].part[k].total, 'm');
		reference(ts, (uint32_t)i, TOTAL);
		commit(&b, ts + 1);
		assert_int_equal(bl_recv_reliable(b.ep, d, 2, 0), table[i].whole);
		assert_true(table[i].whole == (b.ep->st.malformed == malformed));
		for (n = 0; table[i].whole && n < TOTAL; n++)
			assert_int_equal(((const uint8_t *)d[0].data)[n], 'm');
		assert_null(fake_peer(&b, &a)->rrx.big);
		assert_int_equal(fake_peer(&b, &a)->rrx.big_bytes, 0);
		/* In any case its numbers are free, so the sender may go on. */
		assert_int_equal(fake_peer(&b, &a)->rrx.seq.done, next_psn);
	}
}

/* Two scatterings do not make one message, even if both know its number. */
static void bl_prepared_part__of_two_timestamps(void **state)
{
	struct bl_delivery d[2];
	uint64_t ts = fake_now();

	(void)state;
	part_of(ts, 7, 0, 500, TOTAL, 'm');
	part_of(ts + 1, 7, 500, 500, TOTAL, 'm');
	reference(ts, 7, TOTAL);
	reference(ts + 1, 7, TOTAL);
	commit(&b, ts + 2);
	assert_int_equal(bl_recv_reliable(b.ep, d, 2, 0), 0);
	assert_true(b.ep->st.malformed > 0);
}

/* Only the first reference delivers a message. */
static void claim_big__once(void **state)
{
	struct bl_delivery d[2];
	uint64_t ts = fake_now();

	(void)state;
	part_of(ts, 7, 0, TOTAL, TOTAL, 'm');
	reference(ts, 7, TOTAL);
	reference(ts, 7, TOTAL);
	commit(&b, ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 2, 0), 1);
	assert_int_equal(b.ep->st.malformed, 1);
}

/*
 * A sender that begins messages and never refers to them takes no more memory than a limit, and
 * does not block itself for ever.
 */
static void bl_prepared_part__bounded(void **state)
{
	struct bl_peer *p = fake_peer(&b, &a);
	uint64_t ts = fake_now();
	struct bl_delivery d[2];
	uint32_t i, most = 0, n = 0;
	struct bl_big *g;

	(void)state;
	for (i = 0; i < 20000; i++) {
		part_of(ts, i, 0, 1, i % 2 ? BL_MSG_MAX : 2, 'm');
		bl_process(b.ep);
		most = p->rrx.big_bytes > most ? p->rrx.big_bytes : most;
		/* As a sender that heeds the window. */
		next_psn = p->rrx.seq.done + (next_psn - p->rrx.seq.done) % 100;
	}
	for (g = p->rrx.big; g; g = g->next)
		n++;
	assert_true(most <= BL_RBIG_MAX);
	assert_true(n <= BL_BIGS_MAX);
	/* Its failure, or a recall, frees everything. */
	bl_rrx_discard(b.ep, p, ts, 0);
	assert_null(p->rrx.big);
	assert_int_equal(p->rrx.big_bytes, 0);
	assert_int_equal(bl_recv_reliable(b.ep, d, 2, 0), 0);
}

/*
 * The best-effort stream takes parts only in order: the same table; each part that is out of order
 * makes the message incomplete.
 */
static void bl_rx_frag__whole_or_not_at_all(void **state)
{
	uint32_t psn = fake_peer(&a, &b)->tx.next_psn, n;
	struct bl_delivery d[2];
	uint8_t body[2000];
	struct bl_big *g;
	size_t i, k;

	(void)state;
	mallopt(M_PERTURB, 0xff & ~FILL);
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		uint64_t ts = fake_now();
		bool in_order = table[i].whole && !table[i].part[0].offset;

		print_message("  %s\n", table[i].what);
		bl_store16(body, a.ep->incarnation);
		for (k = 0; k < ARRAY_SIZE(table[i].part) && table[i].part[k].len; k++) {
			const struct part *p = &table[i].part[k];

			bl_store16(body + 2, 0);
			bl_frag_put(body + 4, (uint32_t)i, p->offset, p->total);
			memset(body + 16, 'm', p->len);
			assert_true(
				fake_put(&b, &a.ep->self, BL_OP_FRAG, 0, psn++, body, 16 + p->len));
		}
		bl_store16(body + 2, 1);
		bl_ref_put(body + 4, (uint32_t)i, TOTAL);
		assert_true(fake_put(&b, &a.ep->self, BL_OP_DATA, ts, psn++, body, 14));
		fake_barrier(&b, ts + 1);
		assert_int_equal(bl_recv(b.ep, d, 2, 0), in_order);
		for (n = 0; in_order && n < TOTAL; n++)
			assert_int_equal(((const uint8_t *)d[0].data)[n], 'm');
	}
	for (i = 0; i < 2 * BL_BIGS_MAX; i++) {
		bl_store16(body + 2, 0);
		bl_frag_put(body + 4, 1000 + (uint32_t)i, 0, i % 2 ? BL_MSG_MAX : 2);
		assert_true(fake_put(&b, &a.ep->self, BL_OP_FRAG, 0, psn++, body, 17));
		bl_process(b.ep);
	}
	for (g = fake_peer(&b, &a)->rx.big, n = 0; g; g = g->next)
		n++;
	assert_int_equal(n, BL_BIGS_MAX);
	assert_true(fake_peer(&b, &a)->rx.big_bytes <= BL_BIG_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bl_prepared_part__whole_or_not_at_all, pair_up,
						pair_down),
		cmocka_unit_test_setup_teardown(bl_prepared_part__of_two_timestamps, pair_up,
						pair_down),
		cmocka_unit_test_setup_teardown(claim_big__once, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(bl_prepared_part__bounded, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(bl_rx_frag__whole_or_not_at_all, pair_up,
						pair_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
