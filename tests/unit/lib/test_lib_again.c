// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An endpoint and its host's daemon: the last word that the endpoint leaves in its line, and how it
 * finds the next daemon. The test plays the daemons: a socket pair for the daemon that the endpoint
 * registered with, a listening socket for the next one.
 */
#include "tests/unit/lib/lib_fake.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "maps/forward_abi.h"
#include "maps/meta_abi.h"

static struct fake a;
static struct bl_ep_page *seen; /* the endpoint's page as the daemon sees it */

static int up(void **state)
{
	int fd = memfd_create("lines", 0);

	(void)state;
	fake_make(&a, "127.0.0.1", FAKE_RING);
	assert_int_equal(ftruncate(fd, sizeof(*seen)), 0);
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(seen, MAP_FAILED);
	memcpy(seen, a.ep->mine, sizeof(*seen));
	assert_ptr_equal(mmap(a.ep->mine, sizeof(*seen), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED, fd, 0),
			 a.ep->mine);
	close(fd);
	return 0;
}

static int down(void **state)
{
	(void)state;
	munmap(seen, sizeof(*seen));
	return 0;
}

static void bl_exit__says_goodbye_in_its_line(void **state)
{
	const struct bl_msg m = msg_to(&a, "x", 1, 0);
	uint64_t last;

	(void)state;
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	last = a.ep->last_ts;
	assert_true(last > FAKE_BUS);
	assert_int_equal(seen->line.bye, 0);
	fake_free(&a);
	assert_int_equal(seen->line.bye, last + 1);
}

/* An endpoint that has never sent also says that it leaves. */
static void bl_exit__who_never_sent(void **state)
{
	(void)state;
	fake_free(&a);
	assert_int_equal(seen->line.bye, 1);
}

/* Its parent still uses the endpoint. */
static void bl_exit__of_a_child_says_nothing(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		bl_exit(a.ep);
		_exit(seen->line.bye != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(seen->line.bye, 0);
	fake_free(&a);
	assert_int_equal(seen->line.bye, 1);
}

/* ---- the next daemon ---- */

static struct sockaddr_un at = { .sun_family = AF_UNIX };
static int first, listener, conn;

static int listen_at(int backlog)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	unlink(at.sun_path);
	assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s, backlog), 0);
	return s;
}

/* Set-up with a daemon at the other end of @first. */
static int served(void **state)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = BL_EV_DAEMON };
	int way[2];

	up(state);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, way), 0);
	a.ep->daemon = way[0];
	first = way[1];
	listener = conn = -1;
	assert_int_equal(epoll_ctl(a.ep->epfd, EPOLL_CTL_ADD, way[0], &e), 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/barline-test-again-%d.sock",
		 (int)getpid());
	snprintf(a.ep->daemon_path, sizeof(a.ep->daemon_path), "%s", at.sun_path);
	return 0;
}

static int unserved(void **state)
{
	fake_free(&a);
	close(listener);
	close(conn);
	unlink(at.sun_path);
	return down(state);
}

/* The daemon dies, and the library notices. */
static void daemon_dies(int *fd)
{
	close(*fd);
	*fd = -1;
	bl_process(a.ep);
	assert_true(a.ep->daemon_gone);
}

/* Let the time to the next attempt pass. */
static void process_later(void)
{
	assert_true(a.ep->again_ns > bl_mono() && a.ep->again_ns != UINT64_MAX);
	a.ep->again_ns = 0;
	bl_process(a.ep);
}

static void asked(void)
{
	struct bl_again_req q;

	close(conn);
	conn = accept(listener, NULL, NULL);
	assert_true(conn >= 0);
	assert_int_equal(recv(conn, &q, sizeof(q), MSG_DONTWAIT), sizeof(q));
	assert_true(q.magic == BL_SOCK_AGAIN && q.abi_version == BL_ABI_VERSION);
	assert_true(q.port == a.ep->self.port && q.life == a.ep->incarnation && !q.reserved);
	assert_true(a.ep->daemon_gone);
}

static void nobody_asks(void)
{
	assert_int_equal(accept(listener, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
}

static void answer(int error)
{
	const struct bl_again_rep rep = { .magic = BL_SOCK_AGAIN, .error = error };

	assert_int_equal(send(conn, &rep, sizeof(rep), 0), sizeof(rep));
}

/* Frames go to the daemon at the other end of @fd; -1: no daemon gets them. */
static void forwards(int fd)
{
	struct bl_peer p = { .addr = { .ip = { 1 }, .port = 5 } };
	struct bl_forward_msg m;
	uint64_t before = a.ep->st.forwarded;

	bl_forward(a.ep, &p, (const uint8_t *)"0123456789012345", 16, bl_mono());
	assert_int_equal(a.ep->st.forwarded, before + (fd >= 0));
	if (fd >= 0)
		assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT),
				 sizeof(m) - sizeof(m.frame) + 16);
}

static void again__the_next_daemon_serves(void **state)
{
	struct pollfd wakes = { .fd = bl_fd(a.ep), .events = POLLIN };
	uint64_t t;
	int i;

	(void)state;
	forwards(first);
	daemon_dies(&first);
	forwards(-1);
	for (i = 0; i < 3; i++) /* no daemon listens */
		process_later();
	listener = listen_at(4);
	bl_process(a.ep); /* too early for an attempt */
	nobody_asks();
	process_later();
	asked();
	forwards(-1);
	/* The endpoint waits for the answer without a limit, and works meanwhile. */
	for (i = 0; i < 3; i++) {
		a.ep->again_ns = 0;
		bl_process(a.ep);
		nobody_asks();
	}
	assert_int_equal(recv(conn, &t, sizeof(t), MSG_DONTWAIT), -1);
	answer(0);
	bl_process(a.ep);
	assert_false(a.ep->daemon_gone);
	assert_int_equal(a.ep->st.reconnects, 1);
	forwards(conn);
	/* A byte says only that there is an announcement. */
	while (poll(&wakes, 1, 0) == 1)
		bl_process(a.ep);
	assert_int_equal(send(conn, "", 1, 0), 1);
	assert_int_equal(poll(&wakes, 1, 0), 1);
	bl_process(a.ep);
	assert_int_equal(poll(&wakes, 1, 0), 0);
	assert_false(a.ep->daemon_gone);
	/* The next daemon dies, too. */
	daemon_dies(&conn);
	process_later();
	asked();
	answer(0);
	bl_process(a.ep);
	forwards(conn);
	assert_int_equal(a.ep->st.reconnects, 2);
}

/* A daemon that ends before it has answered: another one is asked. */
static void again__dies_before_its_answer(void **state)
{
	(void)state;
	daemon_dies(&first);
	listener = listen_at(4);
	process_later();
	asked();
	daemon_dies(&conn);
	nobody_asks(); /* not at once */
	process_later();
	asked();
	answer(EAGAIN); /* it cannot take the endpoint over now */
	bl_process(a.ep);
	assert_true(a.ep->daemon_gone);
	nobody_asks();
	process_later();
	asked();
	answer(0);
	bl_process(a.ep);
	assert_false(a.ep->daemon_gone);
}

/* A refusal is final, and changes nothing else. */
static void again__refused(void **state)
{
	/* the answer of a daemon that does not know the request */
	static const struct bl_attach_rep other = { .magic = BL_SOCK_MAGIC, .error = EPROTO };
	static const int errors[] = { ENOENT, ESTALE, EBUSY, EPERM, EPROTO, 0 };
	struct bl_delivery d;
	unsigned int i;

	(void)state;
	daemon_dies(&first);
	listener = listen_at(4);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		a.ep->again_ns = 0;
		bl_process(a.ep);
		asked();
		if (errors[i])
			answer(errors[i]);
		else
			assert_int_equal(send(conn, &other, sizeof(other), 0), sizeof(other));
		bl_process(a.ep);
		assert_true(a.ep->daemon_gone && a.ep->again_ns == UINT64_MAX);
		assert_int_equal(bl_recv(a.ep, &d, 1, 0), 0);
		nobody_asks();
	}
	assert_int_equal(a.ep->st.reconnects, 0);
}

/* A stopped daemon with a full queue of connections blocks no call. */
static void again__nobody_waits(void **state)
{
	int more[8], i, full = 0;
	uint64_t t;

	(void)state;
	daemon_dies(&first);
	listener = listen_at(1);
	for (i = 0; i < (int)ARRAY_SIZE(more); i++) {
		more[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		full += connect(more[i], (struct sockaddr *)&at, sizeof(at)) < 0;
	}
	assert_true(full);
	t = bl_mono();
	for (i = 0; i < 10; i++)
		process_later();
	assert_false(a.ep->asked);
	assert_true(bl_mono() - t < 1000000000ULL);
	for (i = 0; i < (int)ARRAY_SIZE(more); i++)
		close(more[i]);
	while ((i = accept(listener, NULL, NULL)) >= 0)
		close(i);
	process_later();
	asked();
}

/* An endpoint that polls and never sleeps notices the end when a frame cannot be sent. */
static void again__who_never_sleeps(void **state)
{
	struct bl_delivery d;

	(void)state;
	close(first);
	listener = listen_at(4);
	assert_int_equal(bl_recv(a.ep, &d, 1, 0), 0);
	assert_false(a.ep->daemon_gone);
	forwards(-1);
	assert_true(a.ep->daemon_gone);
	assert_int_equal(bl_recv(a.ep, &d, 1, 0), 0);
	asked();
	answer(0);
	assert_int_equal(bl_recv(a.ep, &d, 1, 0), 0);
	forwards(conn);
}

/*
 * A child of fork(), which is not the process that the daemon knows, and an endpoint that is out do
 * not ask.
 */
static void again__not_for(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	daemon_dies(&first);
	listener = listen_at(4);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		a.ep->again_ns = 0;
		bl_process(a.ep);
		_exit(a.ep->asked);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	nobody_asks();
	fake_word(&a)->out = 7;
	a.ep->again_ns = 0;
	bl_process(a.ep);
	assert_true(bl_is_out(a.ep));
	nobody_asks();
}

/* The application does not call, and something is due: the helper finds the next daemon. */
static void again__by_the_helper(void **state)
{
	const struct bl_msg m = msg_to(&a, "x", 1, 0);
	struct bl_again_req q;
	struct bl_delivery d;
	uint64_t until = bl_mono() + 20000000000ULL;

	(void)state;
	listener = listen_at(4);
	assert_int_equal(bl_helper_start(a.ep, 0), 0);
	close(first);
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	fake_barrier_now(&a); /* the message can be delivered */
	while ((conn = accept(listener, NULL, NULL)) < 0 && bl_mono() < until)
		poll(NULL, 0, 5);
	assert_true(conn >= 0);
	while (recv(conn, &q, sizeof(q), MSG_DONTWAIT) < 0 && bl_mono() < until)
		poll(NULL, 0, 5);
	answer(0);
	assert_int_equal(bl_recv(a.ep, &d, 1, 0), 1);
	while (!a.ep->st.reconnects && bl_mono() < until)
		assert_true(bl_recv(a.ep, &d, 1, 5) >= 0);
	assert_int_equal(a.ep->st.reconnects, 1);
	bl_helper_stop(a.ep);
	forwards(conn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bl_exit__says_goodbye_in_its_line, up, down),
		cmocka_unit_test_setup_teardown(bl_exit__who_never_sent, up, down),
		cmocka_unit_test_setup_teardown(bl_exit__of_a_child_says_nothing, up, down),
		cmocka_unit_test_setup_teardown(again__the_next_daemon_serves, served, unserved),
		cmocka_unit_test_setup_teardown(again__dies_before_its_answer, served, unserved),
		cmocka_unit_test_setup_teardown(again__refused, served, unserved),
		cmocka_unit_test_setup_teardown(again__nobody_waits, served, unserved),
		cmocka_unit_test_setup_teardown(again__who_never_sleeps, served, unserved),
		cmocka_unit_test_setup_teardown(again__not_for, served, unserved),
		cmocka_unit_test_setup_teardown(again__by_the_helper, served, unserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
