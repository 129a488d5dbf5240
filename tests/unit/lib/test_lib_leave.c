// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What bl_exit() tells the senders, so that no delivered message is reported as anything else; and
 * how long bl_init() waits for a daemon that does not answer.
 */
#include "tests/unit/lib/lib_fake.h"

#include <sys/socket.h>
#include <sys/un.h>

static struct fake a, b;
static struct failures fs;
static struct bl_addr b_addr; /* b's address, also after b has left */

static int pair_up(void **state)
{
	(void)state;
	fake_make(&a, "127.0.0.1", FAKE_RING);
	fake_make(&b, "127.0.0.2", FAKE_RING);
	b_addr = b.ep->self;
	fs.n = 0;
	bl_on_send_fail(a.ep, on_fail, &fs);
	return 0;
}

static int a_down(void **state)
{
	(void)state;
	fake_free(&a);
	return 0;
}

static void send_text(const char *text, uint64_t cookie, unsigned int flags)
{
	const struct bl_msg m = {
		.dst = b_addr, .data = text, .len = (uint32_t)strlen(text), .cookie = cookie
	};

	assert_int_equal(bl_send(a.ep, &m, 1, flags), 0);
}

/* Let so much time pass that a gives b up. */
static void give_up(void)
{
	int k;

	fake_carry(&a);
	bl_process(a.ep);
	for (k = 0; k < BL_PROBES_MAX + 2; k++) {
		struct bl_peer *p;

		for (p = a.ep->peers; p; p = p->all_next)
			p->tx.progress_ns = p->tx.patience.since_ns = 1;
		a.ep->timers_ns = 1;
		bl_process(a.ep);
	}
}

/*
 * As `recv -c 1`: the only message is delivered, and the credit for it alone would not have caused
 * a CREDIT yet.
 */
static void bl_exit__what_was_delivered_is_no_failure(void **state)
{
	struct bl_delivery d;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		send_text("x", (uint64_t)i, 0);
		fake_carry(&b);
		fake_barrier_now(&b);
		assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
		fake_carry(&a);
		bl_process(a.ep);
	}
	assert_true(fake_peer(&a, &b)->tx.credited != fake_peer(&a, &b)->tx.next_psn);
	fake_free(&b);
	give_up();
	assert_int_equal(fs.n, 0);
	assert_int_equal(a.ep->st.probes_sent, 0);
}

/*
 * Messages that arrived and were not delivered are reported as such, one by one: in the queue, in
 * the ring, and in the middle of a frame.
 */
static void bl_exit__what_was_not_delivered_is(void **state)
{
	struct bl_delivery d[2];
	uint32_t i;

	(void)state;
	send_text("a", 0, BL_MORE);
	send_text("b", 1, BL_MORE);
	send_text("c", 2, BL_MORE);
	send_text("d", 3, 0); /* one frame */
	fake_carry(&b);
	fake_barrier_now(&b);
	assert_int_equal(bl_recv(b.ep, d, 2, 0), 2);
	send_text("e", 4, 0);
	send_text("f", 5, 0);
	fake_carry(&b);
	bl_process(b.ep);
	send_text("g", 6, 0);
	fake_carry(&b);
	fake_free(&b);
	give_up();
	assert_int_equal(fs.n, 5);
	for (i = 0; i < fs.n; i++) {
		assert_int_equal(fs.f[i].why, BL_FAIL_LEFT);
		assert_int_equal(fs.f[i].cookie, 2 + i);
	}
}

/*
 * What the endpoint never saw is reported as unknown: it may have come after the endpoint had left,
 * or may have been delivered with the answer lost.
 */
static void bl_exit__what_it_never_saw_is_unknown(void **state)
{
	struct bl_delivery d;

	(void)state;
	send_text("x", 1, 0);
	fake_carry(&b);
	fake_barrier_now(&b);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	send_text("y", 2, 0);
	fake_free(&b);
	give_up();
	assert_int_equal(fs.n, 1);
	assert_int_equal(fs.f[0].cookie, 2);
	assert_int_equal(fs.f[0].why, BL_FAIL_UNKNOWN);
	/* What is sent from now on is known not to have left. */
	send_text("z", 3, 0);
	bl_process(a.ep);
	assert_int_equal(fs.n, 2);
	assert_int_equal(fs.f[1].why, BL_FAIL_UNREACHABLE);
}

/* A stopped daemon: it listens and does not answer, or its queue of connections is full. */
static void bl_init__a_daemon_that_does_not_answer(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX,
				   .sun_path = "/tmp/barline-test-silent.sock" };
	struct bl_options opt = { .socket_path = sun.sun_path };
	struct bl_endpoint *ep;
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0), more[8], i;
	uint64_t t;

	(void)state;
	snprintf(sun.sun_path, sizeof(sun.sun_path), "/tmp/barline-test-%d.sock", (int)getpid());
	unlink(sun.sun_path);
	assert_int_equal(bind(s, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(s, 1), 0);
	t = bl_mono();
	assert_int_equal(bl_init(&ep, &opt), -ETIMEDOUT);
	assert_null(ep);
	assert_non_null(strstr(bl_strerror(NULL), sun.sun_path));
	assert_true(bl_mono() - t >= (BL_DAEMON_WAIT_S - 1) * 1000000000ULL);
	for (i = 0; i < (int)ARRAY_SIZE(more); i++) {
		more[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		(void)!connect(more[i], (struct sockaddr *)&sun, sizeof(sun));
	}
	assert_int_equal(bl_init(&ep, &opt), -ETIMEDOUT);
	for (i = 0; i < (int)ARRAY_SIZE(more); i++)
		close(more[i]);
	close(s);
	unlink(sun.sun_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bl_exit__what_was_delivered_is_no_failure, pair_up,
						a_down),
		cmocka_unit_test_setup_teardown(bl_exit__what_was_not_delivered_is, pair_up,
						a_down),
		cmocka_unit_test_setup_teardown(bl_exit__what_it_never_saw_is_unknown, pair_up,
						a_down),
		cmocka_unit_test(bl_init__a_daemon_that_does_not_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
