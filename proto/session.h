/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A session between an agent and the controller: messages over TCP, each after its length (32 bits,
 * network order), with or without TLS. Both ends use it in an sd-event loop; nothing blocks.
 *
 * Bounds: a message has 1 to BL_SESSION_MESSAGE_MAX bytes, and at most BL_SESSION_OUT_MAX bytes
 * wait to be sent. A peer that exceeds a bound is disconnected. An agent reports all that it knows
 * whenever a session begins, so nothing is lost but time.
 *
 * TLS is GnuTLS's (1.2 and up): its LGPL is compatible with both of barline's licences, while
 * OpenSSL's Apache-2.0 is not compatible with GPL-2.0-only. Each side must have a certificate of
 * the given authority, the controller's for servers and the agents' for clients (extended key
 * usage), and both must name the same rack: the server accepts nodes only, and the client
 * controllers only (proto/ident.h). Which node a session belongs to is what bl_session_who() says,
 * whatever its messages say. Certificates from before identities are refused, unless
 * bl_session_tls_allow_unnamed() was called.
 *
 * The files are read again for a new session when they have changed, so that a renewed certificate
 * needs no restart.
 *
 * Example: 00 00 00 04 3a 02 08 05: one message of 4 bytes.
 */
#ifndef BARLINE_SESSION_H
#define BARLINE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/library/systemd.h"
#include "base/log.h"
#include "proto/ident.h"

#define BL_SESSION_PORT        61693
#define BL_SESSION_MESSAGE_MAX (1U << 20)
#define BL_SESSION_OUT_MAX     (8U << 20)

struct bl_session;
struct bl_session_tls;

/**
 * bl_session_tls_new - reads certificate files in PEM. Both ends of a process may share the result,
 * which outlives its sessions. Returns 0 or -errno.
 */
int bl_session_tls_new(struct bl_session_tls **out, const char *ca, const char *cert,
		       const char *key, struct bl_err *err);
void bl_session_tls_free(struct bl_session_tls *t);

/**
 * bl_session_tls_allow_unnamed - Accepts certificates of the authority without an identity, for
 * the peer and for this end.
 */
void bl_session_tls_allow_unnamed(struct bl_session_tls *t);

/**
 * bl_session_tls_expect - Checks that the certificate of this end is for @role, and for node @node
 * unless that is 0, since the other end would refuse any other. Returns 0 or -EINVAL; @err then has
 * the next step.
 */
int bl_session_tls_expect(const struct bl_session_tls *t, enum bl_ident_role role, uint32_t node,
			  struct bl_err *err);

/** struct bl_session_ops - callbacks. bl_session_close() may be called within them. */
struct bl_session_ops {
	/* The session is connected, and the peer's certificate is good. */
	void (*up)(void *ctx);
	void (*message)(void *ctx, const uint8_t *body, size_t len);
	/* The session has ended. It frees itself after this call, and must not be used any more. */
	void (*down)(void *ctx, const char *why);
};

/**
 * bl_session_accept - begins a session on the connected socket @fd, which belongs to the session
 * from now on, even if this fails.
 * @tls: NULL: none.
 * Returns 0 or -errno. No callback comes before the loop turns.
 */
int bl_session_accept(struct bl_session **out, sd_event *ev, int fd, struct bl_session_tls *tls,
		      const struct bl_session_ops *ops, void *ctx, struct bl_err *err);

/** bl_session_connect - begins a session to @addr; otherwise as bl_session_accept(). */
int bl_session_connect(struct bl_session **out, sd_event *ev, const struct sockaddr *addr,
		       socklen_t len, struct bl_session_tls *tls, const struct bl_session_ops *ops,
		       void *ctx, struct bl_err *err);

/**
 * bl_session_send - sends a message. Returns false if too much waits already or the session has
 * ended; ops->down will come.
 */
bool bl_session_send(struct bl_session *s, const void *body, size_t len);

/**
 * bl_session_who - returns who the peer's certificate belongs to; NULL: there is no TLS, the
 * handshake is not over, or the certificate has no identity and needs none.
 */
const struct bl_ident *bl_session_who(const struct bl_session *s);

/** bl_session_tls_used - whether the session is encrypted. */
bool bl_session_tls_used(const struct bl_session *s);

/**
 * bl_session_pause - reads nothing more of the peer until the time @until, CLOCK_MONOTONIC in ns.
 * What the peer sends meanwhile waits in the sockets, and the peer with it.
 */
void bl_session_pause(struct bl_session *s, uint64_t until);

/** bl_session_waiting - returns how many bytes could not be sent yet. */
size_t bl_session_waiting(const struct bl_session *s);

/** bl_session_end - sends what waits, then closes; ops->down comes. */
void bl_session_end(struct bl_session *s);

/** bl_session_close - closes at once, without ops->down. NULL: no-op. */
void bl_session_close(struct bl_session *s);

/**
 * bl_session_addr - parses "10.0.0.1:61693" or "[fd00::1]:61693"; without a port: BL_SESSION_PORT.
 * Returns 0 or -EINVAL.
 */
int bl_session_addr(const char *text, struct sockaddr_storage *addr, socklen_t *len);

/**
 * bl_session_is_local - Whether the address @text, as bl_session_addr() reads it, is a loopback
 * address, which no other machine reaches.
 */
bool bl_session_is_local(const char *text);

#endif
