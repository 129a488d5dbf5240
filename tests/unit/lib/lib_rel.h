/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reliable stream between fake endpoints (lib_fake.h): the test carries frames from socket to
 * ring, closes slots as the sender's host program does when an ACK comes, and moves the commit
 * barrier.
 */
#ifndef BARLINE_TESTS_LIB_REL_H
#define BARLINE_TESTS_LIB_REL_H

#include "tests/unit/lib/lib_fake.h"

static struct bl_failures pages[4];

/* Make an endpoint that has what the reliable stream needs. */
static inline void make(struct fake *f, const char *ip, int i)
{
	fake_make(f, ip, FAKE_RING);
	f->ep->rwin = &f->ep->mine->win;
	memset(&pages[i], 0, sizeof(pages[i]));
	f->ep->failures = &pages[i];
	f->ep->reliable = true;
}

static inline void drop(struct fake *f)
{
	f->ep->failures = NULL; /* not a mapping that bl_exit() could unmap */
	fake_free(f);
}

static inline uint64_t word(const struct fake *f)
{
	return f->ep->line->state;
}

/*
 * Play the receiver's program: frames go into the ring of @to, slots of @from are closed if @ack,
 * and a RECALL is answered into the ring of @from, whether the receiver's process works or not.
 * Returns the number of PREPs among the frames.
 */
static inline int carry(struct fake *to, struct fake *from, bool ack)
{
	struct seen s;
	int n = 0;

	while (fake_take(to, &s)) {
		uint64_t ts = bl_ext48(bl_get48(s.h->ts), FAKE_BUS);
		uint32_t slot;

		assert_true(fake_put(to, &s.from, s.op,
				     s.op == BL_OP_PREP || s.op == BL_OP_DATA ? ts : 0, s.psn,
				     s.body, s.body_len));
		if (s.op == BL_OP_RECALL)
			assert_true(fake_put(from, &to->ep->self, BL_OP_RECALLED, 0, s.psn, s.body,
					     s.body_len));
		assert_int_not_equal(s.op, BL_OP_RECALLED); /* only programs send it */
		if (s.op != BL_OP_PREP)
			continue;
		n++;
		slot = bl_load32(s.body + 4);
		assert_int_equal(bl_rwin_slot(from->ep->rwin, slot)->psn, s.psn);
		assert_int_equal(bl_rwin_slot(from->ep->rwin, slot)->ts, ts);
		if (ack && bl_rslot_close(bl_rwin_slot(from->ep->rwin, slot), slot))
			while (bl_rwin_step(&from->ep->line->state, from->ep->rwin))
				;
	}
	return n;
}

/* Let @a ask @b for its window, get it, and send @greeting. */
static inline void introduce(struct fake *a, struct fake *b, int greeting)
{
	struct bl_msg m = msg_to(b, &greeting, sizeof(greeting), 0);

	assert_int_equal(bl_send_reliable(a->ep, &m, 1, 0), 0);
	assert_int_equal(bl_rtx_room(a->ep), 0); /* held until b answers */
	assert_int_equal(carry(b, a, true), 0);
	bl_process(b->ep);
	carry(a, b, true);
	bl_process(a->ep);
	assert_int_equal(bl_rtx_room(a->ep), 1);
	/* Twice, if the CPU was busy for longer than the retransmission timeout. */
	assert_true(carry(b, a, true) >= 1);
	bl_process(a->ep);
}

/* Make two hosts, of which @a has sent 7 to @b. */
static inline void make_pair(struct fake *a, struct fake *b)
{
	make(a, "127.0.0.1", 0);
	make(b, "127.0.0.2", 1);
	introduce(a, b, 7);
}

static inline void commit(struct fake *f, uint64_t c)
{
	__atomic_store_n(&f->page->commit, c, __ATOMIC_RELEASE);
}

static inline void fail_peer(struct fake *at, int page, const struct fake *who, uint64_t ts)
{
	struct bl_failure *f = &pages[page].ring[(pages[page].last + 1) % BL_FAILS_MAX];

	*f = (struct bl_failure){ .number = pages[page].last + 1,
				  .port = who->ep->self.port,
				  .ts = ts };
	memcpy(f->addr, who->ep->self.ip, 16);
	__atomic_store_n(&pages[page].last, pages[page].last + 1, __ATOMIC_RELEASE);
	(void)at;
}

#endif
