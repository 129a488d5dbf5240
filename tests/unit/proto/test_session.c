// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * proto/session.c over a TCP connection of this process with itself. The other end is a plain
 * socket, so that the test decides when it reads. A slow peer receives everything whole and in
 * order. A peer that does not read is disconnected as soon as more than BL_SESSION_OUT_MAX bytes
 * wait for it.
 */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/session.h"

#define HEAD    4
#define WAIT_MS 20000

static struct world {
	sd_event *ev;
	struct bl_session *s;
	int peer;
	unsigned int ups, downs, messages;
	size_t got; /* bytes that the session received, without lengths */
} w;

static void on_up(void *ctx)
{
	(void)ctx;
	w.ups++;
}

static void on_message(void *ctx, const uint8_t *body, size_t len)
{
	(void)ctx, (void)body;
	w.messages++;
	w.got += len;
}

static void on_down(void *ctx, const char *why)
{
	(void)ctx;
	assert_non_null(why);
	w.downs++;
	w.s = NULL;
}

static int open_session(void **state)
{
	static const struct bl_session_ops ops = { on_up, on_message, on_down };
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), conn, small = 4096;
	socklen_t len = sizeof(sa);
	struct bl_err err;

	(void)state;
	memset(&w, 0, sizeof(w));
	assert_true(sd_event_new(&w.ev) >= 0);
	assert_true(door >= 0 && !bind(door, (struct sockaddr *)&sa, sizeof(sa)) &&
		    !listen(door, 1));
	assert_int_equal(getsockname(door, (struct sockaddr *)&sa, &len), 0);
	w.peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* Set before the connection, so that its receive window is never larger than this. */
	assert_int_equal(setsockopt(w.peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(connect(w.peer, (struct sockaddr *)&sa, len), 0);
	conn = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(conn >= 0);
	assert_int_equal(setsockopt(conn, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	assert_int_equal(bl_session_accept(&w.s, w.ev, conn, NULL, &ops, NULL, &err), 0);
	close(door);
	return 0;
}

static int close_session(void **state)
{
	(void)state;
	bl_session_close(w.s);
	if (w.peer >= 0)
		close(w.peer);
	sd_event_unref(w.ev);
	return 0;
}

/* Runs the event loop until no event is left. */
static void run_loop(void)
{
	unsigned int k;

	for (k = 0; k < 10000 && sd_event_run(w.ev, 0) > 0; k++)
		;
	assert_true(k < 10000);
}

/* Sends a message of @len bytes filled with a value that depends on @number. */
static bool send_numbered(uint32_t number, size_t len)
{
	uint8_t *body = malloc(len);
	bool ok;

	assert_non_null(body);
	memset(body, (int)(number * 37 + 11), len);
	ok = bl_session_send(w.s, body, len);
	free(body);
	return ok;
}

/*
 * Reads at most @len bytes at the other end, while the session's loop runs. Returns the number of
 * bytes; fewer than @len if the session has disconnected.
 */
static size_t peer_reads(uint8_t *to, size_t len)
{
	uint64_t idle = 0;
	size_t n = 0;

	while (n < len) {
		ssize_t got = recv(w.peer, to + n, len - n < 65536 ? len - n : 65536, MSG_DONTWAIT);

		if (!got || (got < 0 && errno == ECONNRESET))
			return n;
		if (got > 0) {
			n += (size_t)got;
			idle = 0;
			continue;
		}
		assert_int_equal(errno, EAGAIN);
		assert_true(idle++ < WAIT_MS);
		assert_true(sd_event_run(w.ev, 1000) >= 0);
	}
	return n;
}

/* Exactly BL_SESSION_OUT_MAX bytes may wait, lengths included, and not one more. */
static void out__where_the_limit_is(void **state)
{
	const size_t len = BL_SESSION_OUT_MAX / 8 - HEAD;
	uint32_t k;

	(void)state;
	assert_true(len <= BL_SESSION_MESSAGE_MAX);
	for (k = 0; k < 8; k++) {
		assert_int_equal(bl_session_waiting(w.s), k * (len + HEAD));
		assert_true(send_numbered(k, len - (k == 7)));
	}
	assert_int_equal(bl_session_waiting(w.s), BL_SESSION_OUT_MAX - 1);
	assert_false(send_numbered(8, 1)); /* The length counts as well. */
	close_session(NULL);
	open_session(NULL);
	for (k = 0; k < 8; k++)
		assert_true(send_numbered(k, len));
	assert_int_equal(bl_session_waiting(w.s), BL_SESSION_OUT_MAX);
	assert_int_equal(w.downs, 0);
	assert_false(send_numbered(8, 1));
	/*
	 * The loop reports the disconnection, and only once. Nothing is kept for a disconnected
	 * peer.
	 */
	assert_int_equal(w.downs, 0);
	assert_int_equal(bl_session_waiting(w.s), 0);
	run_loop();
	assert_int_equal(w.downs, 1);
	assert_null(w.s);
	run_loop();
	assert_int_equal(w.downs, 1);
}

/*
 * The other end reads nothing, like a stopped process: the session takes no more than the limit and
 * what the kernel's buffers hold, then disconnects, and the other end finds the connection closed.
 */
static void out__who_does_not_read_is_hung_up_on(void **state)
{
	const size_t len = 100000;
	size_t given = 0, most = 0, n;
	uint8_t *all;

	(void)state;
	while (send_numbered(0, len)) {
		given += len + HEAD;
		run_loop();
		assert_int_equal(w.ups, 1);
		n = bl_session_waiting(w.s);
		assert_true(n <= BL_SESSION_OUT_MAX);
		most = n > most ? n : most;
		assert_true(given < 4 * BL_SESSION_OUT_MAX);
	}
	assert_true(most > BL_SESSION_OUT_MAX - len - HEAD);
	/*
	 * Some bytes went into the kernel's buffers, so the limit applies to what waits and not to
	 * what was sent.
	 */
	assert_true(given > most);
	run_loop();
	assert_int_equal(w.downs, 1);
	all = malloc(given + 1);
	assert_non_null(all);
	n = peer_reads(all, given + 1);
	assert_true(n > 0 && n <= given - most);
	free(all);
}

/*
 * A slow reader that stays within the limit loses nothing, also where waiting bytes are moved to
 * the front of the buffer.
 */
static void out__who_is_slow_gets_all(void **state)
{
	struct rnd r = rnd_seeded("slow");
	uint8_t *all = malloc(BL_SESSION_OUT_MAX * 2);
	size_t given = 0, taken = 0, at = 0;
	uint32_t k, n = 0;
	static size_t lens[4096];

	(void)state;
	assert_non_null(all);
	while (given < BL_SESSION_OUT_MAX + BL_SESSION_OUT_MAX / 2) {
		size_t len = 1 + rnd_below(&r, 1 + rnd_below(&r, 300000));

		if (bl_session_waiting(w.s) + len + HEAD <= BL_SESSION_OUT_MAX / 2) {
			assert_true(n < ARRAY_SIZE(lens));
			assert_true(send_numbered(n, len));
			lens[n++] = len;
			given += len + HEAD;
		} else {
			len = rnd_below(&r, 200000);
			len = len < given - taken ? len : given - taken;
			assert_int_equal(peer_reads(all + taken, len), len);
			taken += len;
		}
	}
	assert_int_equal(peer_reads(all + taken, given - taken), given - taken);
	assert_int_equal(bl_session_waiting(w.s), 0);
	for (k = 0; k < n; k++) {
		size_t len = (size_t)all[at] << 24 | (size_t)all[at + 1] << 16 |
			     (size_t)all[at + 2] << 8 | all[at + 3],
		       i;

		assert_int_equal(len, lens[k]);
		for (i = 0; i < len; i++)
			if (all[at + HEAD + i] != (uint8_t)(k * 37 + 11))
				fail_msg("message %u of %zu bytes is wrong at %zu", k, len, i);
		at += HEAD + len;
	}
	assert_int_equal(at, given);
	assert_int_equal(w.downs, 0);
	free(all);
}

/* Invalid lengths: zero, and one more than the maximum. Messages before them are accepted. */
static void in__lengths(void **state)
{
	static const struct {
		uint32_t len;
		bool over;
	} t[] = { { 1, false },
		  { 0, true },
		  { BL_SESSION_MESSAGE_MAX, false },
		  { BL_SESSION_MESSAGE_MAX + 1, true },
		  { 0xffffffff, true } };
	size_t k;

	for (k = 0; k < ARRAY_SIZE(t); k++) {
		uint8_t first[5] = { 0, 0, 0, 1, 'x' },
			head[4] = { (uint8_t)(t[k].len >> 24), (uint8_t)(t[k].len >> 16),
				    (uint8_t)(t[k].len >> 8), (uint8_t)t[k].len };
		uint8_t body[65536] = { 0 };
		uint32_t left = t[k].over ? 0 : t[k].len, idle = 0;

		if (k) {
			close_session(state);
			open_session(state);
		}
		assert_int_equal(send(w.peer, first, sizeof(first), MSG_NOSIGNAL), sizeof(first));
		assert_int_equal(send(w.peer, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
		while (left && !w.downs) {
			ssize_t n = send(w.peer, body, left < sizeof(body) ? left : sizeof(body),
					 MSG_NOSIGNAL | MSG_DONTWAIT);

			if (n > 0)
				left -= (uint32_t)n;
			assert_true(sd_event_run(w.ev, 1000) >= 0);
			assert_true(idle++ < 1000000);
		}
		for (idle = 0; w.downs == 0 && w.messages < 2; idle++) {
			assert_true(idle < WAIT_MS);
			assert_true(sd_event_run(w.ev, 1000) >= 0);
		}
		assert_int_equal(w.downs, t[k].over);
		assert_int_equal(w.messages, t[k].over ? 1 : 2);
		assert_int_equal(w.got, 1 + (t[k].over ? 0 : t[k].len));
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_session, close_session)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(out__where_the_limit_is),
		CASE(out__who_does_not_read_is_hung_up_on),
		CASE(out__who_is_slow_gets_all),
		CASE(in__lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
