// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The library as a whole: several endpoints, traffic both ways, CREDITs and NAKs carried between
 * them, with and without losses. Checked: a message is delivered once, whole and unchanged, or its
 * sender is told that it was not; all receivers see one order; a sender that has something to send
 * never waits for a timer while nothing is lost.
 */
#include "tests/unit/lib/lib_fake.h"

#define MEMBERS 4

static struct fake m[MEMBERS];
static uint8_t noise[BL_MESSAGE_MAX + 256];

static int up(void **state)
{
	struct rnd r = { 1 };
	char ip[16];
	size_t i;

	(void)state;
	for (i = 0; i < MEMBERS; i++) {
		/* The last two share a host. */
		snprintf(ip, sizeof(ip), "127.0.1.%d", i == MEMBERS - 1 ? (int)i : (int)i + 1);
		fake_make(&m[i], ip, FAKE_RING);
	}
	for (i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)rnd64(&r);
	return 0;
}

static int down(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < MEMBERS; i++)
		fake_free(&m[i]);
	return 0;
}

/*
 * Play the network: move everything from sockets into rings, then raise the barrier of all
 * endpoints, since nothing is in flight between two calls.
 */
static int carry_all(struct rnd *r, uint32_t lose)
{
	uint64_t b;
	int i, n = 0;

	for (i = 0; i < MEMBERS; i++)
		n += fake_carry_lossy(&m[i], r, lose);
	b = fake_now();
	for (i = 0; i < MEMBERS; i++)
		b = m[i].ep->last_ts >= b ? m[i].ep->last_ts + 1 : b;
	for (i = 0; i < MEMBERS; i++)
		fake_barrier(&m[i], b);
	return n;
}

/* ---- one stream ---- */

static void flow__every_size_arrives_unchanged(void **state)
{
	static const uint32_t sizes[] = { 0,
					  1,
					  214,
					  215,
					  1441,
					  1442,
					  1443,
					  1444,
					  2864,
					  2865,
					  65535,
					  65536,
					  65537,
					  300000,
					  62722,
					  BL_MESSAGE_MAX - 1,
					  BL_MESSAGE_MAX,
					  7 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct bl_msg v = msg_to(&m[1], noise + i, sizes[i], 0);
		struct bl_delivery d;
		int n, turns = 0;

		assert_int_equal(bl_send(m[0].ep, &v, 1, 0), 0);
		do {
			carry_all(NULL, 0);
			n = bl_recv(m[1].ep, &d, 1, 0);
			if (!n) {
				carry_all(NULL, 0);
				bl_process(m[0].ep);
			}
			assert_true(++turns < 2000);
		} while (!n);
		assert_int_equal(d.len, sizes[i]);
		assert_memory_equal(d.data, noise + i, sizes[i]);
		carry_all(NULL, 0);
		bl_process(m[0].ep);
	}
	assert_int_equal(m[0].ep->st.probes_sent, 0);
	assert_int_equal(m[0].ep->staged_bytes, 0);
	assert_int_equal(m[1].ep->st.lost_frames, 0);
}

/*
 * A busy sender is driven by CREDITs alone. @len: bytes of each message. @more: held back to share
 * frames.
 */
static void stream(uint32_t len, unsigned int flags, uint32_t ring, uint32_t total)
{
	uint32_t sent = 0, got = 0, idle = 0;
	struct fake to;

	fake_make(&to, "127.0.1.9", ring);
	m[0].ep->st.probes_sent = 0;
	while (got < total) {
		struct bl_delivery d[64];
		int n, i, moved;

		while (sent < total) {
			struct bl_msg v = msg_to(&to, noise + sent % 256, len, 0);
			int rc = bl_send(m[0].ep, &v, 1, sent % 97 ? flags : 0);

			if (rc == -EAGAIN)
				break;
			assert_int_equal(rc, 0);
			sent++;
		}
		m[0].ep->timers_ns = 0; /* no timer: a PROBE would hide a standstill */
		moved = fake_carry(&to);
		fake_barrier(&to, m[0].ep->last_ts + 1);
		while ((n = bl_recv(to.ep, d, 64, 0)) > 0) {
			for (i = 0; i < n; i++, got++) {
				assert_int_equal(d[i].len, len);
				assert_memory_equal(d[i].data, noise + got % 256, len);
			}
		}
		assert_int_equal(n, 0);
		if (sent == total)
			bl_flush(m[0].ep);
		moved += fake_carry(&m[0]);
		bl_process(m[0].ep);
		idle = moved ? 0 : idle + 1;
		if (idle == 3)
			fail_msg("%u bytes, flags %u, ring %u: standstill at %u of %u; window %u, "
				 "on the way %u, staged %u",
				 len, flags, ring, got, total, fake_peer(&m[0], &to)->tx.window,
				 fake_peer(&m[0], &to)->tx.next_psn -
					 fake_peer(&m[0], &to)->tx.credited,
				 fake_peer(&m[0], &to)->tx.nframes);
	}
	assert_int_equal(to.ep->st.lost_frames, 0);
	assert_int_equal(to.ep->st.late_dropped, 0);
	fake_free(&to);
}

static void flow__a_busy_sender_never_stands_still(void **state)
{
	static const uint32_t lens[] = { 0, 10, 100, 700, 1442, 1443, 5000, 100000 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		uint32_t total = lens[i] > 5000 ? 40 : lens[i] > 1442 ? 300 : 3000;

		stream(lens[i], 0, FAKE_RING, total);
		stream(lens[i], BL_MORE, FAKE_RING, total);
		stream(lens[i], BL_MORE, 1 << 16, total); /* a window of about four frames */
		stream(lens[i], BL_MORE, 1 << 21, total);
	}
}

/* ---- many to many ---- */

struct word {
	uint32_t cookie;
	uint32_t len;
};

struct book {
	uint8_t delivered[MEMBERS];
	uint8_t failed[MEMBERS];
	uint8_t to[MEMBERS];
	uint32_t len;
	uint64_t ts[MEMBERS];
};

static struct book *books;
static uint32_t nbooks;

static void told(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
		 enum bl_fail_reason why)
{
	int i;

	(void)ctx;
	(void)ts;
	assert_true(why >= BL_FAIL_LATE && why <= BL_FAIL_MALFORMED);
	for (i = 0; i < MEMBERS; i++)
		if (!memcmp(dst, &m[i].ep->self, sizeof(*dst)))
			books[cookie].failed[i]++;
}

/*
 * Deliver at member @who. Each delivery is checked against what was sent, and against the order of
 * the one before.
 */
static int take(int who, struct bl_delivery *last, struct bl_addr *last_src)
{
	struct bl_delivery d[16];
	int n, i, all = 0;

	while ((n = bl_recv(m[who].ep, d, 16, 0)) > 0) {
		for (i = 0; i < n; i++, all++) {
			struct word w;

			assert_true(d[i].len >= sizeof(w));
			memcpy(&w, d[i].data, sizeof(w));
			assert_true(w.cookie < nbooks);
			assert_int_equal(w.len, d[i].len);
			assert_int_equal(books[w.cookie].len, d[i].len);
			assert_true(books[w.cookie].to[who]);
			assert_memory_equal((const uint8_t *)d[i].data + sizeof(w),
					    noise + w.cookie % 256, d[i].len - sizeof(w));
			books[w.cookie].delivered[who]++;
			books[w.cookie].ts[who] = d[i].ts;
			assert_true(d[i].ts >= last->ts);
			if (d[i].ts == last->ts && memcmp(d[i].src.ip, last_src->ip, 16))
				assert_true(memcmp(d[i].src.ip, last_src->ip, 16) > 0);
			*last = d[i];
			*last_src = d[i].src;
		}
	}
	assert_int_equal(n, 0);
	return all;
}

static void many_to_many(struct rnd *r, uint32_t scatterings, uint32_t lose)
{
	static uint8_t text[MEMBERS][BL_MESSAGE_MAX];
	struct bl_delivery last[MEMBERS] = { 0 };
	struct bl_addr src[MEMBERS] = { 0 };
	uint64_t later = 0;
	uint32_t k;
	int i, quiet;

	nbooks = 0;
	books = calloc(scatterings, sizeof(*books));
	assert_non_null(books);
	for (i = 0; i < MEMBERS; i++)
		bl_on_send_fail(m[i].ep, told, NULL);
	while (nbooks < scatterings) {
		int from = (int)rnd_below(r, MEMBERS), n = 0, rc;
		struct book *bk = &books[nbooks];
		struct word w = { nbooks, sizeof(w) + (rnd_below(r, 12) ? rnd_below(r, 400)
									: rnd_below(r, 60000)) };
		struct bl_msg v[MEMBERS];

		memcpy(text[0], &w, sizeof(w));
		memcpy(text[0] + sizeof(w), noise + nbooks % 256, w.len - sizeof(w));
		for (i = 0; i < MEMBERS; i++)
			if (rnd_below(r, 2))
				v[n++] = msg_to(&m[i], text[0], w.len, nbooks);
		if (!n)
			continue;
		bk->len = w.len;
		rc = bl_send(m[from].ep, v, (size_t)n, rnd_below(r, 3) ? 0 : BL_MORE);
		if (!rc) {
			for (i = 0; i < MEMBERS; i++)
				for (k = 0; k < (uint32_t)n; k++)
					bk->to[i] |= !memcmp(&v[k].dst, &m[i].ep->self,
							     sizeof(v[k].dst));
			nbooks++;
		} else {
			assert_int_equal(rc, -EAGAIN);
		}
		if (rc || !rnd_below(r, 4)) {
			carry_all(r, lose);
			for (i = 0; i < MEMBERS; i++)
				take(i, &last[i], &src[i]);
			if (lose) /* time passes: senders that wait send PROBEs */
				for (i = 0, later += BL_RTO_MAX_NS; i < MEMBERS; i++)
					bl_tx_timers(m[i].ep, bl_mono() + later);
		}
	}
	/*
	 * Until all is quiet: CREDITs, PROBEs, NAKs. PROBEs and NAKs are not lost here, so silence
	 * means that nothing is left.
	 */
	for (quiet = 0; quiet < 6;) {
		int moved = 0;

		for (i = 0; i < MEMBERS; i++)
			bl_flush(m[i].ep);
		moved += carry_all(r, lose);
		for (i = 0; i < MEMBERS; i++) {
			moved += take(i, &last[i], &src[i]);
			bl_process(m[i].ep);
		}
		for (i = 0, later += BL_RTO_MAX_NS; lose && quiet && i < MEMBERS; i++) {
			m[i].ep->timers_ns = 1;
			bl_tx_timers(m[i].ep, bl_mono() + later);
		}
		quiet = moved ? (quiet ? 1 : 0) : quiet + 1;
		if (lose && moved && !m[0].ep->held && !m[1].ep->held && !m[2].ep->held &&
		    !m[3].ep->held) {
			/* PROBEs go on for ever: stop when no data is outstanding any more. */
			bool out = false;

			for (i = 0; i < MEMBERS; i++)
				for (struct bl_peer *p = m[i].ep->peers; p; p = p->all_next)
					out |= p->tx.next_psn != p->tx.credited;
			if (!out)
				quiet++;
		}
	}
}

static void check_books(bool lossless)
{
	uint32_t k, delivered = 0, failed = 0;
	int i, j;

	for (k = 0; k < nbooks; k++) {
		for (i = 0; i < MEMBERS; i++) {
			if (!books[k].to[i]) {
				assert_int_equal(books[k].delivered[i] + books[k].failed[i], 0);
				continue;
			}
			if (books[k].delivered[i] + books[k].failed[i] != 1)
				fail_msg("message %u (%u bytes) to %d: delivered %u times, failed "
					 "%u times",
					 k, books[k].len, i, books[k].delivered[i],
					 books[k].failed[i]);
			delivered += books[k].delivered[i];
			failed += books[k].failed[i];
			/*
			 * One timestamp per scattering: together with the total order at each
			 * receiver, that makes one order for all.
			 */
			for (j = 0; j < i; j++)
				if (books[k].delivered[i] && books[k].delivered[j])
					assert_int_equal(books[k].ts[i], books[k].ts[j]);
		}
	}
	print_message("%u scatterings: %u delivered, %u reported as not delivered\n", nbooks,
		      delivered, failed);
	if (lossless)
		assert_int_equal(failed, 0);
	else
		assert_true(failed && delivered > failed);
	for (i = 0; i < MEMBERS; i++) {
		assert_int_equal(m[i].ep->staged_bytes, 0);
		assert_int_equal(m[i].ep->rq.frames, 0);
		for (struct bl_peer *p = m[i].ep->peers; lossless && p; p = p->all_next)
			assert_int_equal(p->rx.big_bytes, 0);
	}
	free(books);
	books = NULL;
}

static void flow__many_to_many(void **state)
{
	struct rnd r = rnd_seeded("many to many");

	(void)state;
	many_to_many(&r, 1500, 0);
	check_books(true);
}

static void flow__losses_are_delivered_or_reported(void **state)
{
	struct rnd r = rnd_seeded("losses");

	(void)state;
	many_to_many(&r, 1500, 20);
	check_books(false);
}

static void flow__an_endpoint_that_leaves_is_unreachable(void **state)
{
	struct failures *fs = calloc(1, sizeof(*fs));
	struct bl_msg v = msg_to(&m[1], "gone", 4, 7);
	uint64_t now = bl_mono();
	int i;

	(void)state;
	assert_non_null(fs);
	bl_on_send_fail(m[0].ep, on_fail, fs);
	assert_int_equal(bl_send(m[0].ep, &v, 1, 0), 0);
	for (i = 0; i < BL_PROBES_MAX + 1; i++) {
		struct seen s;

		now += BL_RTO_MAX_NS;
		bl_tx_timers(m[0].ep, now);
		while (fake_take(&m[1], &s))
			;
	}
	bl_process(m[0].ep);
	assert_int_equal(fs->n, 1);
	assert_int_equal(fs->f[0].cookie, 7);
	assert_int_equal(fs->f[0].why, BL_FAIL_UNKNOWN);
	free(fs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, up, down)
		T(flow__every_size_arrives_unchanged),
		T(flow__a_busy_sender_never_stands_still),
		T(flow__many_to_many),
		T(flow__losses_are_delivered_or_reported),
		T(flow__an_endpoint_that_leaves_is_unreachable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
