// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The helper thread (lib/helper.c, lib/away.c, lib/shelf.c): what it does while the application
 * does not call, and what it leaves to the application's next call. These tests also run under the
 * thread sanitizer (test_lib_helper_tsan.c), so the test itself uses an endpoint that has a helper
 * only by its socket, its ring and the calls of barline.h.
 */
#include "tests/unit/lib/lib_rel.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define WAIT_MS 60000

static struct fake a, b, c;
static struct failures *fs;

static int up(void **state)
{
	(void)state;
	fs = calloc(1, sizeof(*fs));
	assert_non_null(fs);
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	return 0;
}

static int down(void **state)
{
	(void)state;
	drop(&a);
	drop(&b);
	drop(&c);
	free(fs);
	return 0;
}

/* Wake the sleepers on the ring, as the program does. */
static void wake(const struct fake *f)
{
	assert_int_equal(eventfd_write(f->ep->fd[BL_FD_RING], 1), 0);
}

static void send_one(struct fake *from, struct fake *to, uint32_t v, bool reliable)
{
	struct bl_msg m = msg_to(to, &v, sizeof(v), v);

	assert_int_equal(
		reliable ? bl_send_reliable(from->ep, &m, 1, 0) : bl_send(from->ep, &m, 1, 0), 0);
}

/* Let everything that was sent be delivered. */
static void all_may(struct fake *f)
{
	uint64_t now = fake_now() + 1000000000ULL;

	__atomic_store_n(&f->page->barrier, now, __ATOMIC_RELEASE);
	commit(f, now);
}

static int receive(struct fake *f, bool reliable, struct bl_delivery *d, int max)
{
	return reliable ? bl_recv_reliable(f->ep, d, (size_t)max, 0)
			: bl_recv(f->ep, d, (size_t)max, 0);
}

/* Carry CREDITs and WINDOWs of @b into the sender's ring. Returns whether the sender has room. */
static bool room_again(bool reliable)
{
	carry(&b, &a, true);
	wake(&b);
	carry(&a, &b, true);
	bl_process(a.ep);
	return reliable ? bl_rtx_room(a.ep) : bl_tx_room(a.ep);
}

/*
 * Ten windows and more to a receiver that does not call: all frames leave, and all are delivered in
 * order later.
 */
static void takes_out(bool reliable, bool helper)
{
	static const uint32_t N = 300;
	struct bl_delivery d[48];
	uint32_t sent = 0, got = 0, idle = 0; /* idle: rounds since a message was sent */
	uint64_t end = bl_mono() + WAIT_MS * 1000000ULL;
	int n, i;

	all_may(&b);
	bl_recv_reliable(b.ep, d, 1, 0); /* the message of make_pair() */
	if (helper)
		assert_int_equal(bl_helper_start(b.ep, 0), 0);
	/* Without a helper only this thread could change anything. */
	for (; sent < N && bl_mono() < end && (helper || idle < 100); idle++) {
		uint8_t big[1400];
		struct bl_msg m = msg_to(&b, big, sizeof(big), sent);

		memset(big, 0, sizeof(big));
		memcpy(big, &sent, sizeof(sent));
		if (!(reliable ? bl_send_reliable(a.ep, &m, 1, 0) : bl_send(a.ep, &m, 1, 0))) {
			sent++;
			idle = 0;
		}
		room_again(reliable);
		all_may(&b);
		wake(&b);
		if (helper)
			usleep(200);
	}
	if (!helper) {
		assert_true(sent < N); /* the window stays closed without a helper */
		return;
	}
	assert_int_equal(sent, N);
	while (got < N && bl_mono() < end) {
		n = receive(&b, reliable, d, 1 + (int)got % 48);
		for (i = 0; i < n; i++) {
			uint32_t v;

			memcpy(&v, d[i].data, sizeof(v));
			assert_int_equal(d[i].len, 1400);
			assert_int_equal(v, got++);
		}
		room_again(reliable);
		all_may(&b);
	}
	assert_int_equal(got, N);
	bl_helper_stop(b.ep);
	assert_int_equal(b.ep->shelf_bytes, 0);
	assert_int_equal(b.ep->st.messages_delivered, reliable ? 0 : N);
	assert_int_equal(b.ep->st.reliable_delivered, reliable ? N + 1 : 1);
}

static void bl_helper__takes_out(void **state)
{
	takes_out(false, true);
}

static void bl_helper__takes_out_reliable(void **state)
{
	takes_out(true, true);
}

static void bl_helper__without_it_windows_close(void **state)
{
	takes_out(false, false);
	takes_out(true, false);
}

static uint64_t unread(const struct fake *f)
{
	return *f->prod - __atomic_load_n(f->ep->ring_cons, __ATOMIC_ACQUIRE);
}

/*
 * Wait until the helper has checked @times times more. A check raises the turn of the endpoint's
 * line if something that it sent waits for an ACK.
 */
static void looks(const struct fake *f, uint64_t times)
{
	const __u64 *turn = &f->ep->line->turn;
	uint64_t begun = __atomic_load_n(turn, __ATOMIC_RELAXED),
		 end = bl_mono() + WAIT_MS * 1000000ULL;

	while (__atomic_load_n(turn, __ATOMIC_RELAXED) - begun < times) {
		assert_true(bl_mono() < end);
		usleep(1000);
	}
}

/*
 * Beyond its limit the helper does not read the ring, as without a helper. What the application
 * takes makes room.
 */
static void bl_helper__memory_is_bounded(void **state)
{
	static uint8_t body[1400];
	struct bl_delivery d[16];
	struct bl_addr from = { .port = 999 };
	uint32_t psn = 0, got = 0; /* frames that were stored, and messages */
	uint64_t ts = fake_now(), end = bl_mono() + WAIT_MS * 1000000ULL;
	int n;

	memcpy(from.ip, a.ep->self.ip, sizeof(from.ip));
	introduce(&b, &c, 9);
	send_one(&b, &c, 1, true); /* c's program does not answer */
	all_may(&b);
	assert_int_equal(bl_helper_start(b.ep, 256 << 10), 0);
	/* Senders that ignore windows: 200 frames each, which is less than the largest window. */
	while (bl_mono() < end) {
		while (fake_put(&b, &from, BL_OP_DATA, ts + psn, psn % 200, body,
				body_one(body, 5, "x", 1) + 1000))
			from.port = (uint16_t)(999 + ++psn / 200);
		wake(&b);
		if (psn > 400)
			break;
		usleep(1000);
	}
	assert_true(psn > 400); /* more than the ring alone holds */
	/* Never more: it stays full for ten checks. */
	looks(&b, 10);
	while (fake_put(&b, &from, BL_OP_DATA, ts + psn, psn % 200, body,
			body_one(body, 5, "x", 1) + 1000))
		from.port = (uint16_t)(999 + ++psn / 200);
	wake(&b);
	looks(&b, 10);
	assert_true(unread(&b) > FAKE_RING / 2);
	bl_helper_stop(b.ep);
	assert_true(b.ep->shelf_bytes < (256 << 10) + 2 * FAKE_RING);
	assert_true(b.ep->shelf_bytes + b.ep->rq.frames * BL_SHELF_FRAME <
		    (256 << 10) + 2 * FAKE_RING);
	while ((n = bl_recv(b.ep, d, 16, 0)) > 0)
		got += (uint32_t)n;
	assert_int_equal(got, psn);
}

/* Lost frames are sent again without the application. */
static void bl_helper__sends_again(void **state)
{
	uint64_t end = bl_mono() + WAIT_MS * 1000000ULL;
	struct seen s;
	int n = 0;

	send_one(&a, &b, 1, true);
	assert_int_equal(bl_helper_start(a.ep, 0), 0);
	while (fake_take(&b, &s))
		; /* lost */
	while (n < 3 && bl_mono() < end) {
		/* Of a process that was held up, more than three may have come. */
		while (n < 3 && fake_take(&b, &s))
			n += s.op == BL_OP_PREP;
		usleep(1000);
	}
	assert_int_equal(n, 3);
	/* A process whose turn is raised is not expelled (loader/order/standstill_core.h). */
	assert_true(__atomic_load_n(&a.ep->line->turn, __ATOMIC_RELAXED) > 0);
	bl_helper_stop(a.ep);
	assert_true(a.ep->st.retransmits >= 3);
}

static pthread_t called_in;
static uint32_t proc_failed;

static void on_proc_fail(void *ctx, const struct bl_addr *who, uint64_t ts)
{
	(void)ctx, (void)who, (void)ts;
	called_in = pthread_self();
	proc_failed++;
	/* The callback calls the library. */
	bl_process(b.ep);
}

static void on_send_failed(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
			   enum bl_fail_reason why)
{
	on_fail(ctx, ts, dst, cookie, why);
	called_in = pthread_self();
}

/*
 * c has failed, and a scattering of b that a has stored was also sent to c. The helper asks a to
 * drop it and gets the answer, so the scattering does not hold the commit barrier any more. b's
 * application hears of the failure in its own thread, before anything that came after it.
 */
static void bl_helper__takes_back(void **state)
{
	uint64_t end = bl_mono() + WAIT_MS * 1000000ULL, ts;
	uint32_t two[2] = { 1, 2 };
	struct bl_msg m[2];
	struct bl_delivery d[8];
	struct seen s;
	bool recalled = false;
	int n, i, mine = 0;

	proc_failed = 0;
	bl_on_send_fail(b.ep, on_send_failed, fs);
	bl_on_proc_fail(b.ep, on_proc_fail, NULL);
	introduce(&b, &a, 8);
	introduce(&b, &c, 9);
	m[0] = msg_to(&a, &two[0], 4, 11);
	m[1] = msg_to(&c, &two[1], 4, 12);
	assert_int_equal(bl_send_reliable(b.ep, m, 2, 0), 0);
	ts = b.ep->last_ts;
	carry(&a, &b, true);
	while (fake_take(&c, &s))
		;
	assert_true(bl_rwin_used(word(&b)) > 0); /* the slot of c is open */
	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	fail_peer(&b, 1, &c, ts - 1);
	/* a's program answers; a goes on sending to b. */
	while (bl_mono() < end &&
	       (bl_rwin_used(__atomic_load_n(&b.ep->line->state, __ATOMIC_ACQUIRE)) || !recalled)) {
		while (fake_take(&a, &s)) {
			if (s.op != BL_OP_RECALL)
				continue;
			recalled = true;
			assert_true(fake_put(&b, &a.ep->self, BL_OP_RECALLED, 0, s.psn, s.body,
					     s.body_len));
			wake(&b);
		}
		while (fake_take(&c, &s))
			;
		usleep(500);
	}
	assert_true(recalled);
	assert_int_equal(bl_rwin_used(__atomic_load_n(&b.ep->line->state, __ATOMIC_ACQUIRE)), 0);
	/* What a sends now is beyond T, and is taken out: its window opens again and again. */
	for (i = 0; i < 200; i++) {
		send_one(&a, &b, 100 + (uint32_t)i, true);
		while (!room_again(true) && bl_mono() < end) {
			all_may(&b);
			wake(&b);
			usleep(500);
		}
	}
	assert_true(bl_mono() < end);
	assert_int_equal(proc_failed, 0);
	assert_int_equal(fs->n, 0);
	carry(&b, &a, true);
	all_may(&b);
	/* The application calls. */
	n = bl_recv_reliable(b.ep, d, 8, 0);
	assert_true(n > 0);
	assert_int_equal(proc_failed, 1);
	assert_int_equal(fs->n, 2);
	assert_true(pthread_equal(called_in, pthread_self()));
	while (n > 0) {
		for (i = 0; i < n; i++) {
			uint32_t v;

			memcpy(&v, d[i].data, sizeof(v));
			if (v >= 100)
				assert_int_equal(v, 100 + mine++);
		}
		n = bl_recv_reliable(b.ep, d, 8, 0);
	}
	assert_int_equal(mine, 200);
	bl_helper_stop(b.ep);
}

/* bl_fd() is readable when the helper has taken something out, or has something to report. */
static void bl_helper__wakes_event_loops(void **state)
{
	struct pollfd p = { .fd = bl_fd(b.ep), .events = POLLIN };
	struct bl_delivery d[4];

	all_may(&b);
	while (bl_process(b.ep))
		bl_recv_reliable(b.ep, d, 4, 0); /* the message of make_pair() */
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	send_one(&a, &b, 5, false);
	fake_carry(&b); /* no wake-up: the helper finds the frame */
	all_may(&b);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_true(bl_process(b.ep) > 0);
	/* It stays readable while the message is there. */
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(bl_wait(b.ep, BL_WAIT_RECV, 0), BL_WAIT_RECV);
	assert_int_equal(bl_recv(b.ep, d, 4, 0), 1);
	assert_int_equal(bl_process(b.ep), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	bl_helper_stop(b.ep);
}

/*
 * An endpoint that leaves tells, message by message, what the helper took out and the application
 * has not read.
 */
static void bl_helper__leaves(void **state)
{
	uint64_t end = bl_mono() + WAIT_MS * 1000000ULL, credits = a.ep->st.credits_received;
	struct bl_msg m[3];
	struct bl_delivery d[1];
	uint32_t v[3] = { 1, 2, 3 }, i;

	bl_on_send_fail(a.ep, on_fail, fs);
	for (i = 0; i < 3; i++)
		m[i] = msg_to(&b, &v[i], 4, i);
	assert_int_equal(bl_send(a.ep, m, 3, 0), 0); /* one frame */
	send_one(&a, &b, 3, false);
	fake_carry(&b);
	all_may(&b);
	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	while (a.ep->st.credits_received == credits && bl_mono() < end) {
		wake(&b);
		fake_carry(&a);
		bl_process(a.ep);
		usleep(1000);
	}
	assert_int_equal(bl_recv(b.ep, d, 1, 0), 1);
	bl_helper_stop(b.ep);
	assert_int_equal(b.ep->shelf.messages, 3);
	bl_rx_leave(b.ep);
	fake_carry(&a);
	bl_process(a.ep);
	assert_int_equal(fs->n, 3);
	for (i = 0; i < 3; i++) {
		assert_int_equal(fs->f[i].cookie, i + 1);
		assert_int_equal(fs->f[i].why, BL_FAIL_LEFT);
	}
}

static void *sleeps(void *arg)
{
	struct bl_delivery d[4];

	bl_recv(arg, d, 4, -1);
	return NULL;
}

/* Stopped at any moment; with a thread that is cancelled in a call; with signals; in a child. */
static void bl_helper__start_and_stop(void **state)
{
	struct bl_delivery d[4];
	pthread_t t;
	pid_t pid;
	int st, i;

	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	assert_int_equal(bl_helper_start(b.ep, 0), -EALREADY);
	bl_helper_stop(b.ep);
	bl_helper_stop(b.ep);
	for (i = 0; i < 30; i++) {
		assert_int_equal(bl_helper_start(b.ep, 0), 0);
		usleep((useconds_t)(i * 1000));
		bl_helper_stop(b.ep);
	}
	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	/*
	 * Cancelled in its sleep: the endpoint belongs to another thread then, and the helper
	 * stands in again.
	 */
	assert_int_equal(pthread_create(&t, NULL, sleeps, b.ep), 0);
	usleep(50000);
	assert_int_equal(pthread_cancel(t), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	send_one(&a, &b, 5, false);
	fake_carry(&b);
	all_may(&b);
	for (i = 0; i < WAIT_MS && unread(&b); i++)
		usleep(1000);
	assert_int_equal(unread(&b), 0);
	/* A child has no helper, and waits for nothing. */
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		b.ep->daemon = -1;
		bl_helper_stop(b.ep);
		_exit(b.ep->helper ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_int_equal(st, 0);
	assert_int_equal(bl_recv(b.ep, d, 4, 0), 1);
	bl_helper_stop(b.ep);
}

static volatile sig_atomic_t in_main, in_helper;
static pthread_t main_thread;

static void on_usr(int sig)
{
	if (pthread_equal(main_thread, pthread_self()))
		in_main++;
	else
		in_helper++;
}

static void bl_helper__has_no_signals(void **state)
{
	struct sigaction sa = { .sa_handler = on_usr };
	sigset_t set, was;
	int i;

	main_thread = pthread_self();
	sigaction(SIGUSR1, &sa, NULL);
	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	/*
	 * With the signal blocked in this thread, the process has no other thread to deliver it to.
	 */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, &was);
	for (i = 0; i < 5; i++) {
		kill(getpid(), SIGUSR1);
		usleep(20000);
	}
	assert_int_equal(in_helper, 0);
	assert_int_equal(in_main, 0);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	assert_int_equal(in_main, 1);
	bl_helper_stop(b.ep);
	signal(SIGUSR1, SIG_DFL);
}

/* An error that ends the helper is reported once; the application continues by itself. */
static void bl_helper__its_end_is_told(void **state)
{
	struct bl_delivery d[4];
	int i, rc = 0, spare = dup(b.ep->helper_epfd = -1);

	(void)spare;
	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	/* Its epoll instance becomes a descriptor of another kind. */
	assert_true(dup2(b.ep->sock, b.ep->helper_epfd) >= 0);
	send_one(&a, &b, 5, false);
	fake_carry(&b);
	all_may(&b);
	for (i = 0; i < 100 && !rc; i++) {
		usleep(100000);
		rc = bl_process(b.ep) < 0 ? bl_process(b.ep) : 0;
		if (strstr(bl_strerror(b.ep), "the helper thread has ended"))
			break;
	}
	assert_non_null(strstr(bl_strerror(b.ep), "the helper thread has ended"));
	assert_int_equal(bl_recv(b.ep, d, 4, 0), 1);
	bl_helper_stop(b.ep);
	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	bl_helper_stop(b.ep);
}

/* Data of a delivery stays where it is while the helper takes out the next messages. */
static void bl_helper__data_stays_valid(void **state)
{
	uint64_t end = bl_mono() + WAIT_MS * 1000000ULL;
	struct bl_delivery d[1], more[64];
	uint32_t v, i, got = 0;
	int n;

	send_one(&a, &b, 1000, false);
	fake_carry(&b);
	all_may(&b);
	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	while (bl_recv(b.ep, d, 1, 1) != 1)
		assert_true(bl_mono() < end);
	for (i = 0; i < 200; i++) {
		while (!room_again(false) && bl_mono() < end)
			usleep(200);
		send_one(&a, &b, i, false);
		fake_carry(&b);
		all_may(&b);
		wake(&b);
	}
	memcpy(&v, d[0].data, sizeof(v));
	assert_int_equal(v, 1000);
	for (; got < 200 && bl_mono() < end; room_again(false)) {
		n = bl_recv(b.ep, more, 64, 0);
		all_may(&b);
		for (i = 0; i < (uint32_t)n; i++) {
			memcpy(&v, more[i].data, sizeof(v));
			assert_int_equal(v, got++);
		}
	}
	assert_int_equal(got, 200);
	bl_helper_stop(b.ep);
}

/* An application of b that makes calls of all kinds, with pauses in which the helper stands in. */
struct app {
	uint32_t got[2], want;
	uint64_t end;
};

static void took(struct app *w, const struct bl_delivery *d, int n, bool reliable)
{
	int i;

	for (i = 0; i < n; i++) {
		uint32_t v;

		memcpy(&v, d[i].data, sizeof(v));
		assert_int_equal(v, w->got[reliable]++);
	}
}

static void *lives(void *arg)
{
	struct rnd r = { 20261122 };
	struct bl_delivery d[32];
	struct app *w = arg;
	struct bl_stats st = { .size = sizeof(st) };

	while ((w->got[0] < w->want || w->got[1] < w->want) && bl_mono() < w->end) {
		bool reliable = rnd_below(&r, 2);
		int max = 1 + (int)rnd_below(&r, 32), n;

		switch (rnd_below(&r, 6)) {
		case 0:
			assert_true(bl_process(b.ep) >= 0);
			break;
		case 1:
			assert_true(bl_wait(b.ep, BL_WAIT_RECV | BL_WAIT_RECV_RELIABLE,
					    (int)rnd_below(&r, 4)) >= 0);
			break;
		case 2:
			usleep(rnd_below(&r, 60000));
			break;
		case 3:
			send_one(&b, &a, 1, false);
			assert_int_equal(bl_get_stats(b.ep, &st), 0);
			break;
		default:
			n = reliable ? bl_recv_reliable(b.ep, d, (size_t)max, 0)
				     : bl_recv(b.ep, d, (size_t)max, 0);
			assert_true(n >= 0);
			took(w, d, n, reliable);
		}
	}
	return NULL;
}

static void bl_helper__comes_and_goes(void **state)
{
	struct app w = { .want = 1500, .end = bl_mono() + WAIT_MS * 1000000ULL };
	struct bl_delivery d[4];
	uint32_t sent[2] = { 0 };
	pthread_t t;

	all_may(&b);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 1); /* the message of make_pair() */
	assert_int_equal(bl_helper_start(b.ep, 0), 0);
	assert_int_equal(pthread_create(&t, NULL, lives, &w), 0);
	while ((sent[0] < w.want || sent[1] < w.want) && bl_mono() < w.end) {
		bool reliable = sent[1] < sent[0];
		struct bl_msg m = msg_to(&b, &sent[reliable], sizeof(uint32_t), 0);

		if (!(reliable ? bl_send_reliable(a.ep, &m, 1, 0) : bl_send(a.ep, &m, 1, 0)))
			sent[reliable]++;
		else
			usleep(100);
		carry(&b, &a, true);
		all_may(&b);
		wake(&b);
		carry(&a, &b, true);
		while (bl_process(a.ep) > 0)
			bl_recv(a.ep, d, 4, 0);
		fake_barrier_now(&a);
	}
	while (pthread_tryjoin_np(t, NULL)) {
		carry(&b, &a, true);
		carry(&a, &b, true);
		all_may(&b);
		wake(&b);
		while (bl_process(a.ep) > 0) /* what waited for a window leaves */
			bl_recv(a.ep, d, 4, 0);
		usleep(1000);
	}
	assert_int_equal(w.got[0], w.want);
	assert_int_equal(w.got[1], w.want);
	bl_helper_stop(b.ep);
	assert_int_equal(b.ep->shelf_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bl_helper__takes_out, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__takes_out_reliable, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__without_it_windows_close, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__memory_is_bounded, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__sends_again, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__takes_back, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__wakes_event_loops, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__leaves, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__start_and_stop, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__has_no_signals, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__its_end_is_told, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__data_stays_valid, up, down),
		cmocka_unit_test_setup_teardown(bl_helper__comes_and_goes, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
