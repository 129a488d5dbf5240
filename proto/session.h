/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session between an agent and the controller: messages over TCP, each after its length (32 bits,
 * network order), with or without TLS. Both ends use it, in an sd-event loop; nothing blocks.
 *
 * Bounds: a message has 1 to BL_SESSION_MESSAGE_MAX bytes, and what cannot be sent yet is at most
 * BL_SESSION_OUT_MAX. Who goes beyond is hung up on: an agent says all it knows whenever a session
 * begins, so that nothing is lost but time.
 *
 * TLS is GnuTLS's (1.2 and up): its LGPL goes with both of barline's licences, which OpenSSL's
 * Apache-2.0 does not (GPL-2.0-only). Each side must have a certificate of the given authority, the
 * controller's for servers and the agents' for clients (extended key usage), so that an agent
 * cannot pass for a controller. Names in certificates are not compared: the authority is to be
 * barline's own.
 *
 * Example: 00 00 00 04 3a 02 08 05: one message of 4 bytes.
 */
#ifndef BARLINE_SESSION_H
#define BARLINE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "base/log.h"

#define BL_SESSION_PORT        61693
#define BL_SESSION_MESSAGE_MAX (1U << 20)
#define BL_SESSION_OUT_MAX     (8U << 20)

struct bl_session;
struct bl_session_tls;

/**
 * bl_session_tls_new - files in PEM. Returns 0 or -errno. Both ends may share one; it outlives its
 * sessions.
 */
int bl_session_tls_new(struct bl_session_tls **out, const char *ca, const char *cert,
		       const char *key, struct bl_err *err);
void bl_session_tls_free(struct bl_session_tls *t);

/**
 * struct bl_session_ops - @up: connected, and the other side's certificate is good. @message: one
 * came. @down: it is over; the session frees itself after this, and must not be used any more.
 * Within these, bl_session_close() may be called.
 */
struct bl_session_ops {
	void (*up)(void *ctx);
	void (*message)(void *ctx, const uint8_t *body, size_t len);
	void (*down)(void *ctx, const char *why);
};

/**
 * bl_session_accept - @fd is connected, and the session's from now on, also if this fails.
 * bl_session_connect - to @addr. @tls NULL: none. Both return 0 or -errno; nothing is called before
 * the loop turns.
 */
int bl_session_accept(struct bl_session **out, sd_event *ev, int fd, struct bl_session_tls *tls,
		      const struct bl_session_ops *ops, void *ctx, struct bl_err *err);
int bl_session_connect(struct bl_session **out, sd_event *ev, const struct sockaddr *addr,
		       socklen_t len, struct bl_session_tls *tls, const struct bl_session_ops *ops,
		       void *ctx, struct bl_err *err);
/** bl_session_send - false: too much waits already, or it is over; @down will come. */
bool bl_session_send(struct bl_session *s, const void *body, size_t len);
/** bl_session_waiting - bytes that could not be sent yet. */
size_t bl_session_waiting(const struct bl_session *s);
/** bl_session_end - what was sent goes out still, then it is closed; @down comes. */
void bl_session_end(struct bl_session *s);
/** bl_session_close - at once, without @down. NULL: nothing. */
void bl_session_close(struct bl_session *s);

/**
 * bl_session_addr - "10.0.0.1:61693", "[fd00::1]:61693"; without a port: BL_SESSION_PORT. 0 or
 * -EINVAL.
 */
int bl_session_addr(const char *text, struct sockaddr_storage *addr, socklen_t *len);

#endif
