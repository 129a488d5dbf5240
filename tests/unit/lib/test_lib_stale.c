// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receiver recovery: an endpoint that is out delivers what had arrived and is certain, in order,
 * then gets ESTALE, and is told up to which timestamp its state is that of the group. It never
 * delivers what others may have recalled meanwhile.
 */
#include "tests/unit/lib/lib_rel.h"

#include "core/order/line_core.h"

static struct fake a, b, c;

/*
 * Do what the daemon does, and what comes later: all failures are settled, and the commit barrier
 * passes everything.
 */
static void put_out(struct fake *f)
{
	bl_line_stop(fake_word(f), fake_now(), f->page->commit);
	bl_line_out(fake_word(f), fake_now(), BL_OUT_RING);
	commit(f, fake_now() + 1000000000);
	bl_line_over(fake_word(f));
}

static int stale_up(void **state)
{
	(void)state;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	introduce(&c, &b, 8);
	return 0;
}

static int stale_down(void **state)
{
	(void)state;
	drop(&a);
	drop(&b);
	drop(&c);
	return 0;
}

/* Let @from send @x to b, which stores it. Returns its timestamp. */
static uint64_t say(struct fake *from, int x)
{
	struct bl_msg m = msg_to(&b, &x, sizeof(x), 0);

	assert_int_equal(bl_send_reliable(from->ep, &m, 1, 0), 0);
	assert_int_equal(carry(&b, from, true), 1);
	bl_process(from->ep);
	return from->ep->last_ts;
}

/* b delivers exactly these messages, in calls of one message each, and then returns ESTALE. */
static void delivers_then_stale(const int *want, int n)
{
	struct bl_delivery d;
	int i;

	for (i = 0; i < n; i++) {
		assert_int_equal(bl_recv_reliable(b.ep, &d, 1, i % 2 ? -1 : 0), 1);
		assert_int_equal(*(const int *)d.data, want[i]);
	}
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), -ESTALE);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, -1), -ESTALE);
}

static struct bl_stale stale(void)
{
	struct bl_stale s = { .size = sizeof(s) };

	assert_int_equal(bl_get_stale(b.ep, &s), 0);
	return s;
}

/* b has read a barrier that is above message 1; message 2 came after that. Returns the barrier. */
static uint64_t looked_between(void)
{
	uint64_t ts = say(&a, 1) + 1;

	commit(&b, ts);
	assert_int_equal(bl_process(b.ep), 3);
	say(&a, 2);
	return ts;
}

/*
 * b delivers what is below that barrier, and nothing else, whatever came since: @undecided
 * messages.
 */
static void stale_at(uint64_t ts, uint32_t undecided)
{
	static const int want[] = { 7, 8, 1 };

	delivers_then_stale(want, 3);
	assert_int_equal(stale().ts, ts);
	assert_int_equal(stale().undecided, undecided);
}

/* The example of lib/stale.c. */
static void put_out__delivers_what_is_certain(void **state)
{
	static const int want[] = { 7, 8, 1, 2 };
	struct bl_stale s = { .size = sizeof(s) };
	struct bl_delivery d[4];
	struct bl_msg m = msg_to(&a, "x", 1, 0);
	uint64_t ts;

	(void)state;
	say(&a, 1);
	say(&c, 2);
	ts = say(&a, 3); /* at the barrier, not below it */
	say(&c, 4);
	commit(&b, ts);
	assert_int_equal(bl_get_stale(b.ep, &s), -EAGAIN);
	put_out(&b);
	assert_int_equal(bl_process(b.ep), 4);
	assert_int_equal(bl_wait(b.ep, BL_WAIT_RECV_RELIABLE, 0), BL_WAIT_RECV_RELIABLE);
	assert_int_equal(bl_get_stale(b.ep, &s), -EAGAIN);
	assert_int_equal(bl_recv_undecided(b.ep, d, 4), -EAGAIN);
	/* The other calls need not wait for that. */
	assert_int_equal(bl_send_reliable(b.ep, &m, 1, 0), -ESTALE);
	assert_int_equal(bl_recv(b.ep, d, 1, 0), -ESTALE);
	assert_int_equal(bl_wait(b.ep, BL_WAIT_ACKED, -1), -ESTALE);
	delivers_then_stale(want, 4);
	assert_int_equal(bl_process(b.ep), -ESTALE);
	assert_int_equal(bl_wait(b.ep, BL_WAIT_RECV_RELIABLE, -1), -ESTALE);
	assert_int_equal(stale().ts, ts);
	assert_int_equal(stale().undecided, 2);
	assert_int_equal(bl_get_stale(b.ep, &(struct bl_stale){ .size = 4 }), -EINVAL);
	/* One at a time: what is lent is one frame. */
	assert_int_equal(bl_recv_undecided(b.ep, d, 1), 1);
	assert_int_equal(*(const int *)d[0].data, 3);
	assert_int_equal(d[0].ts, ts);
	assert_int_equal(stale().undecided, 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), -ESTALE);
	assert_int_equal(bl_recv_undecided(b.ep, d, 4), 1);
	assert_int_equal(*(const int *)d[0].data, 4);
	assert_int_equal(bl_recv_undecided(b.ep, d, 4), 0);
	assert_int_equal(stale().ts, ts);
	fake_silent(&c); /* b has sent no last words */
}

/* What was recalled before C passed it is in the ring, behind the message. */
static void put_out__reads_the_recalls_first(void **state)
{
	static const int want[] = { 7, 8, 2 };
	struct bl_msg m[2];
	uint64_t ts;
	int x = 1;

	(void)state;
	introduce(&a, &c, 9);
	m[0] = msg_to(&b, &x, sizeof(x), 0);
	m[1] = msg_to(&c, &x, sizeof(x), 0);
	assert_int_equal(bl_send_reliable(a.ep, m, 2, 0), 0);
	ts = a.ep->last_ts;
	assert_int_equal(carry(&b, &a, true), 1);
	fail_peer(&a, 0, &c, ts + 1); /* c has not acknowledged it, and failed */
	bl_process(a.ep);
	fail_peer(&b, 1, &c, fake_now());
	assert_int_equal(carry(&b, &a, true), 0); /* RECALL */
	say(&a, 2);
	commit(&b, fake_now());
	put_out(&b);
	delivers_then_stale(want, 3);
	assert_int_equal(stale().undecided, 0);
}

struct seen_calls {
	int n, delivered;
	uint64_t ts;
};

static void count(void *ctx, const struct bl_addr *who, uint64_t ts)
{
	struct seen_calls *s = ctx;

	(void)who;
	s->n++;
	s->ts = ts;
	s->delivered = (int)b.ep->st.reliable_delivered;
}

/* A sender has failed with T below C: the page says so, and was not read yet. */
static void put_out__reads_the_failures_first(void **state)
{
	static const int want[] = { 7, 8, 1, 3 };
	struct seen_calls s = { 0 };
	uint64_t t;

	(void)state;
	bl_on_proc_fail(b.ep, count, &s);
	say(&c, 1);
	t = say(&c, 2); /* discarded by all */
	say(&a, 3);
	fail_peer(&b, 1, &c, t);
	commit(&b, fake_now());
	put_out(&b);
	/* Its own announcement, and later ones, do not concern it. */
	fail_peer(&b, 1, &b, fake_now());
	fail_peer(&b, 1, &a, 1);
	delivers_then_stale(want, 4);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.ts, t);
	assert_int_equal(s.delivered, 0); /* before all messages from T on */
}

/*
 * More was announced than the page has room for, so it is not known whose messages were discarded:
 * the last barrier that was read in time is the limit.
 */
static void put_out__missed_announcements(void **state)
{
	uint64_t ts = looked_between();

	(void)state;
	pages[1].last += BL_FAILS_MAX;
	commit(&b, fake_now());
	put_out(&b);
	stale_at(ts, 1);
}

/* The same for an endpoint that was not expelled: C goes on, and does not concern it. */
static void outcast__missed_announcements(void **state)
{
	uint64_t ts = looked_between();

	(void)state;
	pages[1].last += BL_FAILS_MAX;
	commit(&b, fake_now());
	assert_int_equal(bl_process(b.ep), 3);
	say(&a, 3);
	commit(&b, fake_now());
	stale_at(ts, 2);
}

/*
 * It was announced with its host: since before the announcement the host had promised no C to it.
 */
static void outcast__announced(void **state)
{
	uint64_t ts;

	(void)state;
	ts = say(&a, 1) + 1;
	say(&a, 2);
	commit(&b, ts);
	fail_peer(&b, 1, &b, fake_now());
	assert_int_equal(bl_process(b.ep), 3);
	commit(&b, fake_now()); /* its host has joined again */
	put_out(&b);
	stale_at(ts, 1);
}

/* A barrier that it had read as a member counts, though the daemon read the page before that. */
static void put_out__what_it_knew_itself(void **state)
{
	uint64_t ts = looked_between();

	(void)state;
	b.page->commit = ts - 1;
	put_out(&b);
	stale_at(ts, 1);
}

/* A record that is being written hides the records behind it here, too. */
static void put_out__waits_for_the_ring(void **state)
{
	static const int want[] = { 7, 8, 1 };
	struct bl_stale s = { .size = sizeof(s) };
	struct bl_delivery d;
	struct bl_rec *rec;
	uint32_t *head;

	(void)state;
	head = fake_reserve(&b, BL_REC_SMALL, 1u << 31, &rec);
	assert_non_null(head);
	say(&a, 1);
	commit(&b, fake_now());
	put_out(&b);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 0);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 1), 0);
	assert_int_equal(bl_get_stale(b.ep, &s), -EAGAIN);
	__atomic_store_n(head, BL_REC_SMALL | 1u << 30, __ATOMIC_RELEASE);
	delivers_then_stale(want, 3);
}

static void receive_within(void *ctx, const struct bl_addr *who, uint64_t ts)
{
	struct bl_delivery d[8];

	(void)who;
	(void)ts;
	/* Meanwhile a is announced, with a T below that of c. */
	if (!(*(int *)ctx)++) {
		fail_peer(&b, 1, &a, b.ep->rrq.last_ts + 1);
		assert_int_equal(bl_recv_reliable(b.ep, d, 8, 0), 0);
	}
}

/* Also within a callback, what an announcement discards is dropped before anything is delivered. */
static void callback__hears_the_next_announcement(void **state)
{
	struct bl_delivery d[8];
	int calls = 0;

	(void)state;
	commit(&b, fake_now());
	assert_int_equal(bl_recv_reliable(b.ep, d, 8, 0), 2);
	bl_on_proc_fail(b.ep, receive_within, &calls);
	say(&a, 1);
	fail_peer(&b, 1, &c, fake_now());
	commit(&b, fake_now());
	assert_int_equal(bl_recv_reliable(b.ep, d, 8, 0), 0);
	bl_process(b.ep);
	assert_int_equal(calls, 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, stale_up, stale_down)
	const struct CMUnitTest tests[] = {
		T(put_out__delivers_what_is_certain),     T(put_out__reads_the_recalls_first),
		T(put_out__reads_the_failures_first),     T(put_out__missed_announcements),
		T(outcast__missed_announcements),         T(outcast__announced),
		T(put_out__what_it_knew_itself),          T(put_out__waits_for_the_ring),
		T(callback__hears_the_next_announcement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
