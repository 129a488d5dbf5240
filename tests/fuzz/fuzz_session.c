/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the framing between agents and controllers (proto/session.c), over a pair of sockets and
 * in a real event loop. The input is a list of operations: bytes for the session to read, in pieces
 * of any size, which are frames or not; messages for it to send; and its end, also from within a
 * callback.
 *
 * The messages that come out are compared with those that a second reader finds in the whole
 * stream, and what the session sends with what it was given.
 *
 * TLS is not covered.
 */
#include "fuzz.h"

#include <errno.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "proto/session.h"

#define STREAM (1u << 18)

static sd_event *ev;
static struct bl_session *session; /* NULL: it has ended */
static uint8_t stream[STREAM], back[STREAM];
static size_t filled, sent; /* bytes of @stream, and those that were written to the session */
static size_t told;         /* bytes of the messages that came out of it */
static size_t given, got;   /* bytes that it was given to send, and that it has sent */
static bool down, close_at_message;

static void on_up(void *ctx)
{
	(void)ctx;
}

static void on_message(void *ctx, const uint8_t *body, size_t len)
{
	size_t want;

	(void)ctx;
	FUZZ_CHECK(session && told + 4 + len <= filled);
	want = (size_t)stream[told] << 24 | (size_t)stream[told + 1] << 16 |
	       (size_t)stream[told + 2] << 8 | stream[told + 3];
	FUZZ_CHECK(want == len && len && !memcmp(body, stream + told + 4, len));
	told += 4 + len;
	if (close_at_message) {
		bl_session_close(session);
		session = NULL;
	}
}

static void on_down(void *ctx, const char *why)
{
	(void)ctx;
	FUZZ_CHECK(session && !down && *why);
	down = true;
	session = NULL;
}

static const struct bl_session_ops ops = { .up = on_up, .message = on_message, .down = on_down };

static void turn(int fd)
{
	ssize_t n;
	int k;

	for (k = 0; k < 8 && sd_event_run(ev, 0) > 0; k++)
		;
	while ((n = recv(fd, back, sizeof(back), MSG_DONTWAIT)) > 0) {
		ssize_t i;

		/* Every byte that is sent says where it is in the stream of answers. */
		for (i = 0; i < n; i++, got++)
			FUZZ_CHECK(got < given);
	}
}

/* Writes a frame, or bytes that only look like one. */
static void feed(struct fuzz_in *in, int fd, uint8_t how)
{
	size_t len = how & 1 ? fuzz_u8(in) : (size_t)fuzz_u8(in) << (how >> 5), at = sent, piece;
	uint64_t head = how & 2 && how & 4 ? fuzz_u32(in) : len;

	if (sent + len + 4 > STREAM)
		return;
	stream[at++] = (uint8_t)(head >> 24);
	stream[at++] = (uint8_t)(head >> 16);
	stream[at++] = (uint8_t)(head >> 8);
	stream[at++] = (uint8_t)head;
	memset(stream + at, how, len);
	at += len;
	filled = at;
	for (; sent < at; sent += piece) {
		ssize_t n;

		piece = how & 8 && in->left ? 1 + fuzz_u8(in) : at - sent;
		piece = piece < at - sent ? piece : at - sent;
		n = send(fd, stream + sent, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n <= 0 && (errno != EAGAIN || !session)) {
			sent = filled = at; /* it has ended */
			return;
		}
		if (n <= 0) { /* the socket is full */
			sd_event_run(ev, 0);
			n = 0;
		}
		piece = (size_t)n;
		if (how & 16 && session)
			sd_event_run(ev, 0);
	}
}

/* How far a reader of the whole stream gets: whole messages, up to the first bad length. */
static size_t whole(void)
{
	size_t at = 0;

	while (sent - at >= 4) {
		size_t len = (size_t)stream[at] << 24 | (size_t)stream[at + 1] << 16 |
			     (size_t)stream[at + 2] << 8 | stream[at + 3];

		if (!len || len > BL_SESSION_MESSAGE_MAX || sent - at - 4 < len)
			break;
		at += 4 + len;
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct bl_err err;
	bool ended = false;
	int fd[2];

	if (!ev)
		FUZZ_CHECK(sd_event_new(&ev) >= 0);
	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd));
	filled = sent = told = got = given = 0;
	down = false;
	close_at_message = false;
	FUZZ_CHECK(!bl_session_accept(&session, ev, fd[1], NULL, &ops, NULL, &err));
	while (in.left && session) {
		uint8_t op = fuzz_u8(&in), how = fuzz_u8(&in);
		size_t len;

		switch (op % 8) {
		default:
			feed(&in, fd[0], how);
			turn(fd[0]);
			break;
		case 4:
			len = (size_t)how << (op >> 5);
			if (bl_session_send(session, back, len))
				given += len + 4;
			else
				ended |= len != 0; /* too much waits, which it does not here */
			FUZZ_CHECK(!ended && bl_session_waiting(session) == given - got);
			turn(fd[0]);
			break;
		case 5:
			close_at_message = how > 200;
			break;
		case 6:
			if (how < 16) {
				bl_session_end(session);
				in.left = 0;
			}
			break;
		case 7:
			turn(fd[0]);
			break;
		}
	}
	for (int k = 0; k < 64 && session && told < whole(); k++)
		turn(fd[0]);
	/* All messages came out, unless the session ended before. */
	if (session)
		FUZZ_CHECK(told == whole());
	FUZZ_CHECK(told <= whole());
	if (session)
		bl_session_close(session);
	session = NULL;
	close(fd[0]);
	return 0;
}
