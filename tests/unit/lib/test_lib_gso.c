// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A kernel that refuses UDP GSO: nothing is lost, in either stream. Every kernel refuses GSO for a
 * socket that sends without checksums (SO_NO_CHECK). tests/vm has the refusal of kernels before
 * 6.11 for a device that leaves checksums to the kernel.
 */
#include "tests/unit/lib/lib_fake.h"

#include "lib/batch.h"
#include "lib/stage.h"
#include "maps/forward_abi.h"

static uint8_t pattern[200000];
static struct bl_failures pages[2];

static void make(struct fake *f, const char *ip, int i)
{
	fake_make(f, ip, FAKE_RING);
	f->ep->rwin = &f->ep->mine->win;
	memset(&pages[i], 0, sizeof(pages[i]));
	f->ep->failures = &pages[i];
	f->ep->reliable = true;
}

static void drop(struct fake *f)
{
	f->ep->failures = NULL; /* not a mapping that bl_exit() could unmap */
	fake_free(f);
}

static void refuse(const struct fake *f, int on)
{
	assert_int_equal(setsockopt(f->ep->sock, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
}

static void count_fail(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
		       enum bl_fail_reason why)
{
	(void)ts, (void)dst, (void)cookie, (void)why;
	++*(int *)ctx;
}

/*
 * Move frames of @a into the ring of @b, and close the slots of reliable frames. Returns their
 * number.
 */
static int carry(struct fake *b, struct fake *a)
{
	struct seen s;
	int n = 0;

	for (; fake_take(b, &s); n++) {
		uint64_t ts = s.op == BL_OP_PREP || s.op == BL_OP_DATA
				      ? bl_ext48(bl_get48(s.h->ts), FAKE_BUS)
				      : 0;

		assert_true(fake_put(b, &s.from, s.op, ts, s.psn, s.body, s.body_len));
		if (s.op == BL_OP_PREP &&
		    bl_rslot_close(bl_rwin_slot(a->ep->rwin, bl_load32(s.body + 4)),
				   bl_load32(s.body + 4)))
			while (bl_rwin_step(&a->ep->line->state, a->ep->rwin))
				;
	}
	return n;
}

static void stage(struct fake *a, const struct fake *b, int n, uint32_t len)
{
	int i;

	for (i = 0; i < n; i++) {
		struct bl_msg m = msg_to(b, &pattern[i], len, (uint64_t)i);

		assert_int_equal(bl_send(a->ep, &m, 1, BL_MORE), 0);
	}
}

static void best_effort__refused(void **state)
{
	struct fake a, b;
	struct seen s;
	uint32_t k;
	int failed = 0;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	bl_on_send_fail(a.ep, count_fail, &failed);
	fake_peer(&a, &b)->tx.window = BL_WINDOW_MAX;
	refuse(&a, 1);
	/*
	 * 10 frames of one flush leave one by one, as they would have been cut, with one timestamp.
	 */
	stage(&a, &b, 10, 1400);
	assert_int_equal(bl_flush(a.ep), 0);
	for (k = 0; k < 10; k++) {
		fake_expect(&b, &s, BL_OP_DATA);
		assert_int_equal(s.psn, k);
		assert_int_equal(s.len, k < 9 ? a.ep->frame_max : FRAME_HEAD + 1402);
		assert_int_equal(s.ts, a.ep->last_ts);
		assert_memory_equal(s.b + FRAME_HEAD + 2, &pattern[k], 1400);
	}
	fake_silent(&b);
	bl_process(a.ep);
	assert_int_equal(failed, 0);
	assert_int_equal(a.ep->st.send_failed, 0);
	assert_int_equal(a.ep->st.frames_sent, 10);
	/*
	 * GSO is not tried again at once. The last frame leaves by itself, and so may claim its
	 * barrier.
	 */
	stage(&a, &b, 3, 1400);
	assert_int_equal(bl_flush(a.ep), 0);
	for (k = 0; k < 3; k++) {
		fake_expect(&b, &s, BL_OP_DATA);
		assert_true((bl_get48(s.h->barrier) == bl_claim_wire(s.ts)) == (k == 2));
	}
	fake_silent(&b);
	assert_true(a.ep->gso_pause > 0);
	/* When GSO is tried again and accepted, the pause is over for good. */
	refuse(&a, 0);
	a.ep->gso_pause = 0;
	stage(&a, &b, 3, 1400);
	assert_int_equal(bl_flush(a.ep), 0);
	for (k = 0; k < 3; k++) {
		fake_expect(&b, &s, BL_OP_DATA);
		assert_int_equal(bl_get48(s.h->barrier), bl_unpromised(s.ts));
	}
	assert_int_equal(a.ep->gso_pause, 0);
	drop(&a);
	drop(&b);
}

/* A message of many parts, which leave before their reference. */
static void best_effort__large_refused(void **state)
{
	struct bl_delivery d[4];
	struct fake a, b;
	struct bl_msg m;
	int failed = 0, n = 0, i;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	bl_on_send_fail(a.ep, count_fail, &failed);
	fake_peer(&a, &b)->tx.window = BL_WINDOW_MAX;
	refuse(&a, 1);
	m = msg_to(&b, pattern, sizeof(pattern), 7);
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	for (i = 0; i < 20 && !n; i++) {
		fake_carry(&b);
		fake_barrier_now(&b);
		n = bl_recv(b.ep, d, 4, 0);
		fake_carry(&a);
		bl_process(a.ep);
	}
	assert_int_equal(n, 1);
	assert_int_equal(d[0].len, sizeof(pattern));
	assert_memory_equal(d[0].data, pattern, sizeof(pattern));
	assert_int_equal(failed, 0);
	drop(&a);
	drop(&b);
}

/* Nothing waits for a retransmission. */
static void reliable__refused(void **state)
{
	struct bl_delivery d[64];
	struct fake a, b;
	struct bl_msg m;
	int failed = 0, i, n = 0, before;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	bl_on_send_fail(a.ep, count_fail, &failed);
	m = msg_to(&b, pattern, 10, 0);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	for (i = 0; i < 4; i++) {
		carry(&b, &a);
		bl_process(b.ep);
		carry(&a, &b);
		bl_process(a.ep);
	}
	assert_true(bl_rtx_empty(a.ep));
	b.page->commit = a.ep->last_ts + 1;
	assert_int_equal(bl_recv_reliable(b.ep, d, 64, 0), 1);
	refuse(&a, 1);
	m = msg_to(&b, pattern, 60000, 1);
	before = (int)a.ep->st.frames_sent;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	for (i = 0; i < 100 && !bl_rtx_empty(a.ep); i++) {
		n += carry(&b, &a);
		bl_process(b.ep);
		carry(&a, &b);
		bl_process(a.ep);
	}
	assert_true(bl_rtx_empty(a.ep));
	assert_int_equal(a.ep->st.retransmits, 0);
	assert_true(n >= (int)a.ep->st.frames_sent - before);
	assert_true(a.ep->gso_pause > 0);
	b.page->commit = a.ep->last_ts + 1;
	assert_int_equal(bl_recv_reliable(b.ep, d, 64, 0), 1);
	assert_int_equal(d[0].len, 60000);
	assert_memory_equal(d[0].data, pattern, 60000);
	assert_int_equal(failed, 0);
	drop(&a);
	drop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(best_effort__refused),
		cmocka_unit_test(best_effort__large_refused),
		cmocka_unit_test(reliable__refused),
	};
	uint32_t i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 31 + i / 1000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
