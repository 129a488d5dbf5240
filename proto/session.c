// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See session.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library/gnutls.h"
#include "base/netns_keep.h"
#include "proto/session.h"

#define READ_TURN (256U << 10) /* bytes that are read before other sources have their turn */

/**
 * struct credentials - What the files held when they were read. Sessions keep it. @refs is atomic:
 * a controller's reload lets go of the former ones in another thread than its sessions
 * (controller/reload.c).
 */
struct credentials {
	unsigned int refs;
	gnutls_certificate_credentials_t cred;
	struct bl_ident self;
	struct timespec read[3]; /* times of modification of the files */
};

struct bl_session_tls {
	struct credentials *now;
	char *file[3]; /* ca, cert, key */
	bool unnamed;
};

enum state { CONNECTING, SHAKING, UP, OVER };

/** struct bl_session - see session.h. */
struct bl_session {
	sd_event_source *src;
	int fd;
	enum state state;
	gnutls_session_t tls; /* NULL: none */
	struct credentials *cred;
	bool unnamed;        /* certificates without an identity are accepted */
	struct bl_ident who; /* of the peer; role BL_IDENT_NONE: not known */
	sd_event_source *pause;
	bool paused;
	gnutls_typed_vdata_st purpose;
	const struct bl_session_ops *ops;
	void *ctx;
	uint8_t *in;  /* bytes received, beginning with the length of a message */
	uint8_t *out; /* bytes to be sent; @sent of them have been sent */
	size_t in_len, in_room, out_len, out_room, sent;
	unsigned int busy; /* calls on the stack in which it must not be freed */
	bool dead;         /* to be freed when @busy is 0 */
	bool ending;       /* to be closed once everything is sent */
	bool server;
};

/* ---- certificates ---- */

static void drop_credentials(struct credentials *c)
{
	if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (c->cred)
		gnutls_certificate_free_credentials(c->cred);
	free(c);
}

static void read_times(char *const *file, struct timespec *t)
{
	unsigned int k;
	struct stat st;

	for (k = 0; k < 3; k++)
		t[k] = stat(file[k], &st) ? (struct timespec){ 0 } : st.st_mtim;
}

static int read_credentials(struct credentials **out, char *const *file, struct bl_err *err)
{
	struct credentials *c = calloc(1, sizeof(*c));
	const char *bad = file[0];
	int rc;

	*out = NULL;
	if (!c)
		return bl_fail(err, ENOMEM, "out of memory");
	c->refs = 1;
	/* Before the files are read: one that changes meanwhile is read once more. */
	read_times(file, c->read);
	rc = gnutls_certificate_allocate_credentials(&c->cred);
	if (rc < 0) {
		drop_credentials(c);
		return bl_fail(err, ENOMEM, "out of memory");
	}
	rc = gnutls_certificate_set_x509_trust_file(c->cred, file[0], GNUTLS_X509_FMT_PEM);
	if (rc == 0)
		rc = GNUTLS_E_NO_CERTIFICATE_FOUND;
	if (rc > 0) {
		bad = file[1];
		rc = gnutls_certificate_set_x509_key_file(c->cred, file[1], file[2],
							  GNUTLS_X509_FMT_PEM);
	}
	if (rc < 0) {
		drop_credentials(c);
		return bl_fail(err, EINVAL, "cannot use %s%s%s for TLS: %s", bad,
			       bad == file[1] ? " with " : "", bad == file[1] ? file[2] : "",
			       gnutls_strerror(rc));
	}
	rc = bl_ident_of_file(&c->self, file[1], err);
	if (rc) {
		drop_credentials(c);
		return rc;
	}
	*out = c;
	return 0;
}

/*
 * Returns the credentials for a new session, which the caller drops. Files that have changed and
 * cannot be used (one of two is replaced so far) change nothing: they are read for the next one.
 */
static struct credentials *take_credentials(struct bl_session_tls *t)
{
	struct timespec is[3];
	struct credentials *c;

	read_times(t->file, is);
	if (memcmp(is, t->now->read, sizeof(is)) && !read_credentials(&c, t->file, NULL)) {
		drop_credentials(t->now);
		t->now = c;
	}
	__atomic_add_fetch(&t->now->refs, 1, __ATOMIC_RELAXED);
	return t->now;
}

int bl_session_tls_new(struct bl_session_tls **out, const char *ca, const char *cert,
		       const char *key, struct bl_err *err)
{
	struct bl_session_tls *t = calloc(1, sizeof(*t));
	int rc;

	*out = NULL;
	if (!t)
		return bl_fail(err, ENOMEM, "out of memory");
	if (!ca || !cert || !key) {
		free(t);
		return bl_fail(err, EINVAL, "TLS needs all of ca, cert and key");
	}
	rc = bl_library_load(BL_LIBRARY_GNUTLS, err);
	if (rc) {
		free(t);
		return rc;
	}
	t->file[0] = strdup(ca);
	t->file[1] = strdup(cert);
	t->file[2] = strdup(key);
	rc = t->file[0] && t->file[1] && t->file[2] ? read_credentials(&t->now, t->file, err)
						    : bl_fail(err, ENOMEM, "out of memory");
	if (rc)
		bl_session_tls_free(t);
	else
		*out = t;
	return rc;
}

void bl_session_tls_free(struct bl_session_tls *t)
{
	unsigned int k;

	if (!t)
		return;
	drop_credentials(t->now);
	for (k = 0; k < 3; k++)
		free(t->file[k]);
	free(t);
}

void bl_session_tls_allow_unnamed(struct bl_session_tls *t)
{
	t->unnamed = true;
}

int bl_session_tls_expect(const struct bl_session_tls *t, enum bl_ident_role role, uint32_t node,
			  struct bl_err *err)
{
	const struct bl_ident *is = &t->now->self;
	const char *what = role == BL_IDENT_NODE ? "NODE --id N" : "NAME --role controller";
	char text[BL_IDENT_TEXT_MAX];

	if (is->role == BL_IDENT_NONE && t->unnamed)
		return 0;
	if (is->role == BL_IDENT_NONE)
		return bl_fail(err, EINVAL,
			       "the certificate %s has no identity, so the other side would refuse "
			       "it; `barline pki issue %s` makes one that has, and `unnamed: true` "
			       "under tls, on both sides, accepts old ones",
			       t->file[1], what);
	bl_ident_format(is, text);
	if (is->role != role)
		return bl_fail(err, EINVAL,
			       "the certificate %s is of %s, which is not a %s; `barline pki issue "
			       "%s` makes one",
			       t->file[1], text, role == BL_IDENT_NODE ? "node" : "controller",
			       what);
	if (node && is->node != node)
		return bl_fail(err, EINVAL,
			       "the certificate %s is of %s, and this node has the id %" PRIu32
			       "; `barline pki issue NODE --id %" PRIu32 "` makes one for it",
			       t->file[1], text, node, node);
	return 0;
}

/* Reads who the peer is. Returns NULL, or why it is not accepted. */
static const char *check_peer(struct bl_session *s)
{
	enum bl_ident_role want = s->server ? BL_IDENT_NODE : BL_IDENT_CONTROLLER;
	static __thread char text[256 + BL_IDENT_TEXT_MAX];
	char name[BL_IDENT_TEXT_MAX];
	const gnutls_datum_t *list;
	gnutls_x509_crt_t crt;
	struct bl_ident who;
	unsigned int n = 0;
	int rc;

	list = gnutls_certificate_get_peers(s->tls, &n);
	if (!list || !n || gnutls_x509_crt_init(&crt) < 0)
		return "TLS: the certificate cannot be read";
	rc = gnutls_x509_crt_import(crt, &list[0], GNUTLS_X509_FMT_DER);
	if (rc >= 0)
		rc = bl_ident_of_cert(&who, crt);
	gnutls_x509_crt_deinit(crt);
	if (rc < 0)
		return "TLS: the identity in the certificate is malformed";
	if (who.role == BL_IDENT_NONE)
		return s->unnamed ? NULL
				  : "TLS: the certificate has no identity; `barline pki issue` "
				    "makes one that has, and `unnamed: true` under tls accepts old "
				    "ones";
	bl_ident_format(&who, name);
	if (who.role != want) {
		snprintf(text, sizeof(text), "TLS: the certificate is of %s, not of a %s", name,
			 s->server ? "node" : "controller");
		return text;
	}
	if (s->cred->self.role != BL_IDENT_NONE && strcmp(who.rack, s->cred->self.rack)) {
		snprintf(text, sizeof(text), "TLS: the certificate is of %s, and this is rack %s",
			 name, s->cred->self.rack);
		return text;
	}
	s->who = who;
	return NULL;
}

const struct bl_ident *bl_session_who(const struct bl_session *s)
{
	return s->who.role == BL_IDENT_NONE ? NULL : &s->who;
}

bool bl_session_tls_used(const struct bl_session *s)
{
	return s->tls != NULL;
}

/* ---- ends ---- */

static void free_session(struct bl_session *s)
{
	if (s->tls)
		gnutls_deinit(s->tls);
	drop_credentials(s->cred);
	if (s->fd >= 0)
		close(s->fd);
	free(s->in);
	free(s->out);
	free(s);
}

void bl_session_close(struct bl_session *s)
{
	if (!s || s->dead)
		return;
	s->dead = true;
	s->state = OVER;
	sd_event_source_disable_unref(s->src);
	sd_event_source_disable_unref(s->pause);
	s->src = s->pause = NULL;
	if (!s->busy)
		free_session(s);
}

/* Called from the loop only, never within a call of the session's user. */
static void end_session(struct bl_session *s, const char *why)
{
	if (s->state == OVER)
		return;
	s->state = OVER;
	s->ops->down(s->ctx, why);
	bl_session_close(s);
}

static bool update_io_events(struct bl_session *s)
{
	uint32_t events = s->paused ? 0 : EPOLLIN;

	if (s->state == CONNECTING || s->out_len > s->sent ||
	    (s->state == SHAKING && gnutls_record_get_direction(s->tls)))
		events |= EPOLLOUT;
	return sd_event_source_set_io_events(s->src, events) >= 0;
}

/* ---- bytes ---- */

/* Returns > 0: bytes written; 0: try later; -1: the session is over, for the reason *@why. */
static ssize_t write_bytes(struct bl_session *s, const void *data, size_t len, const char **why)
{
	ssize_t n;

	if (s->tls) {
		n = gnutls_record_send(s->tls, data, len);
		if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
			return 0;
		*why = n < 0 ? gnutls_strerror((int)n) : "";
	} else {
		n = send(s->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		*why = n < 0 ? strerror(errno) : "";
	}
	return n < 0 ? -1 : n;
}

static ssize_t read_bytes(struct bl_session *s, void *data, size_t len, const char **why)
{
	ssize_t n;

	if (s->tls) {
		n = gnutls_record_recv(s->tls, data, len);
		if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
			return 0;
		*why = n < 0 ? gnutls_strerror((int)n) : "the other side closed the connection";
	} else {
		n = recv(s->fd, data, len, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		*why = n < 0 ? strerror(errno) : "the other side closed the connection";
	}
	return n <= 0 ? -1 : n;
}

static bool flush_output(struct bl_session *s, const char **why)
{
	while (s->sent < s->out_len) {
		ssize_t n = write_bytes(s, s->out + s->sent, s->out_len - s->sent, why);

		if (n < 0)
			return false;
		if (!n)
			return true;
		s->sent += (size_t)n;
	}
	s->sent = s->out_len = 0;
	if (s->ending) {
		*why = "closed";
		return false;
	}
	return true;
}

bool bl_session_send(struct bl_session *s, const void *body, size_t len)
{
	uint8_t head[4] = { (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
			    (uint8_t)len };

	if (s->state == OVER || s->ending || !len || len > BL_SESSION_MESSAGE_MAX)
		return false;
	if (s->sent) {
		memmove(s->out, s->out + s->sent, s->out_len - s->sent);
		s->out_len -= s->sent;
		s->sent = 0;
	}
	if (s->out_len + len + 4 > BL_SESSION_OUT_MAX) {
		/* A peer that does not read is disconnected; the loop will notice. */
		shutdown(s->fd, SHUT_RDWR);
		s->out_len = 0;
		return false;
	}
	if (s->out_len + len + 4 > s->out_room) {
		size_t room = (s->out_len + len + 4) * 2;
		uint8_t *v = realloc(s->out, room);

		if (!v)
			return false;
		s->out = v;
		s->out_room = room;
	}
	memcpy(s->out + s->out_len, head, 4);
	memcpy(s->out + s->out_len + 4, body, len);
	s->out_len += len + 4;
	return update_io_events(s);
}

size_t bl_session_waiting(const struct bl_session *s)
{
	return s->out_len - s->sent;
}

void bl_session_end(struct bl_session *s)
{
	s->ending = true;
	update_io_events(s);
}

/* Passes on the messages that are complete. Returns false if the session is over. */
static bool dispatch_messages(struct bl_session *s, const char **why)
{
	size_t at = 0;

	while (s->state == UP && !s->paused && s->in_len - at >= 4) {
		const uint8_t *p = s->in + at;
		size_t len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];

		if (!len || len > BL_SESSION_MESSAGE_MAX) {
			*why = "a message with an invalid length";
			return false;
		}
		if (s->in_len - at < len + 4)
			break;
		s->ops->message(s->ctx, p + 4, len);
		at += len + 4;
	}
	if (at)
		memmove(s->in, s->in + at, s->in_len - at);
	s->in_len -= at;
	return true;
}

static bool read_messages(struct bl_session *s, const char **why)
{
	size_t done = 0;

	while (s->state == UP && !s->paused && done < READ_TURN) {
		ssize_t n;

		if (s->in_room - s->in_len < 4096) {
			size_t room = s->in_room ? s->in_room * 2 : 8192;
			uint8_t *v = realloc(s->in, room);

			*why = "out of memory";
			if (!v)
				return false;
			s->in = v;
			s->in_room = room;
		}
		n = read_bytes(s, s->in + s->in_len, s->in_room - s->in_len, why);
		if (n < 0)
			return false;
		if (!n)
			return true;
		s->in_len += (size_t)n;
		done += (size_t)n;
		if (!dispatch_messages(s, why))
			return false;
	}
	return true;
}

static bool continue_handshake(struct bl_session *s, const char **why)
{
	static __thread char text[256];
	gnutls_datum_t said = { 0 };
	int rc = gnutls_handshake(s->tls);

	if (rc == GNUTLS_E_SUCCESS) {
		const char *bad = check_peer(s);

		if (bad) {
			*why = bad;
			return false;
		}
		s->state = UP;
		s->ops->up(s->ctx);
		return true;
	}
	if (!gnutls_error_is_fatal(rc))
		return true;
	snprintf(text, sizeof(text), "TLS: %s", gnutls_strerror(rc));
	if (rc == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
	    !gnutls_certificate_verification_status_print(
		    gnutls_session_get_verify_cert_status(s->tls), GNUTLS_CRT_X509, &said, 0)) {
		snprintf(text, sizeof(text), "TLS: %s", (char *)said.data);
		gnutls_free(said.data);
	}
	*why = text;
	return false;
}

static int on_io(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_session *s = ctx;
	const char *why = "";
	socklen_t len = sizeof(int);
	bool ok = true;
	int e = 0;

	(void)src;
	s->busy++;
	if (s->state == CONNECTING) {
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) || e) {
			why = strerror(e ? e : errno);
			ok = false;
		} else if (events & EPOLLOUT) {
			s->state = s->tls ? SHAKING : UP;
			if (!s->tls)
				s->ops->up(s->ctx);
		}
	}
	/* Reported whether it is asked for or not; nothing would read it during a pause. */
	if (ok && s->paused && events & (EPOLLERR | EPOLLHUP)) {
		why = "the other side closed the connection";
		ok = false;
	}
	if (ok && s->state == SHAKING)
		ok = continue_handshake(s, &why);
	/* What came before a pause may hold whole messages. */
	if (ok && s->state == UP)
		ok = dispatch_messages(s, &why);
	if (ok && s->state == UP)
		ok = read_messages(s, &why);
	if (ok && s->state == UP)
		ok = flush_output(s, &why);
	if (!ok)
		end_session(s, why);
	else if (s->state != OVER && !update_io_events(s))
		end_session(s, "the event loop refused it");
	/*
	 * TLS may have a whole record that the socket does not signal any more. update_io_events()
	 * keeps EPOLLIN only, so ask for another turn.
	 */
	if (s->state == UP && !s->paused && s->tls && gnutls_record_check_pending(s->tls))
		sd_event_source_set_io_events(s->src, EPOLLIN | EPOLLOUT);
	s->busy--;
	if (s->dead && !s->busy)
		free_session(s);
	return 0;
}

/* ---- pauses ---- */

static int on_pause_over(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_session *s = ctx;

	(void)src, (void)usec;
	s->paused = false;
	/* EPOLLOUT asks for a turn even if nothing more comes of the peer. */
	sd_event_source_set_io_events(s->src, EPOLLIN | EPOLLOUT);
	return 0;
}

void bl_session_pause(struct bl_session *s, uint64_t until)
{
	if (s->state == OVER)
		return;
	sd_event_source_disable_unref(s->pause);
	s->pause = NULL;
	s->paused = sd_event_add_time(sd_event_source_get_event(s->src), &s->pause, CLOCK_MONOTONIC,
				      until / 1000 + 1, 1000, on_pause_over, s) >= 0;
	update_io_events(s);
}

/* ---- beginnings ---- */

static int start_session(struct bl_session **out, sd_event *ev, int fd, struct bl_session_tls *tls,
			 bool server, const struct bl_session_ops *ops, void *ctx,
			 struct bl_err *err)
{
	struct bl_session *s = calloc(1, sizeof(*s));
	int one = 1, rc = 0;

	*out = NULL;
	if (!s) {
		close(fd);
		return bl_fail(err, ENOMEM, "out of memory");
	}
	*s = (struct bl_session){
		.fd = fd, .ops = ops, .ctx = ctx, .server = server, .state = CONNECTING
	};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (tls) {
		s->cred = take_credentials(tls);
		s->unnamed = tls->unnamed;
		s->purpose = (gnutls_typed_vdata_st){
			.type = GNUTLS_DT_KEY_PURPOSE_OID,
			.data = (void *)(uintptr_t)(server ? GNUTLS_KP_TLS_WWW_CLIENT
							   : GNUTLS_KP_TLS_WWW_SERVER)
		};
		rc = gnutls_init(&s->tls, (server ? GNUTLS_SERVER : GNUTLS_CLIENT) |
						  GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
		if (rc >= 0)
			rc = gnutls_set_default_priority(s->tls);
		if (rc >= 0)
			rc = gnutls_credentials_set(s->tls, GNUTLS_CRD_CERTIFICATE, s->cred->cred);
		if (rc >= 0) {
			gnutls_transport_set_int(s->tls, fd);
			gnutls_session_set_verify_cert2(s->tls, &s->purpose, 1, 0);
			if (server)
				gnutls_certificate_server_set_request(s->tls, GNUTLS_CERT_REQUIRE);
		}
	}
	if (rc >= 0)
		rc = sd_event_add_io(ev, &s->src, fd, EPOLLIN | EPOLLOUT, on_io, s);
	if (rc < 0) {
		free_session(s);
		return bl_fail(err, ENOMEM, "cannot begin a session");
	}
	*out = s;
	return 0;
}

int bl_session_accept(struct bl_session **out, sd_event *ev, int fd, struct bl_session_tls *tls,
		      const struct bl_session_ops *ops, void *ctx, struct bl_err *err)
{
	return start_session(out, ev, fd, tls, true, ops, ctx, err);
}

int bl_session_connect(struct bl_session **out, sd_event *ev, const struct sockaddr *addr,
		       socklen_t len, struct bl_session_tls *tls, const struct bl_session_ops *ops,
		       void *ctx, struct bl_err *err)
{
	int fd = bl_home_socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*out = NULL;
	if (fd < 0)
		return bl_fail(err, errno, "cannot make a socket: %s", strerror(errno));
	if (connect(fd, addr, len) && errno != EINPROGRESS) {
		int e = errno;

		close(fd);
		return bl_fail(err, e, "cannot connect: %s", strerror(e));
	}
	return start_session(out, ev, fd, tls, false, ops, ctx, err);
}

int bl_session_addr(const char *text, struct sockaddr_storage *addr, socklen_t *len)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;
	char host[INET6_ADDRSTRLEN + 2], *end = NULL;
	const char *port = NULL;
	unsigned long n = BL_SESSION_PORT;
	size_t k;

	memset(addr, 0, sizeof(*addr));
	if (*text == '[') {
		k = strcspn(++text, "]");
		if (text[k] != ']' || (text[k + 1] && text[k + 1] != ':'))
			return -EINVAL;
		port = text[k + 1] ? text + k + 2 : NULL;
	} else {
		k = strcspn(text, ":");
		port = text[k] ? text + k + 1 : NULL;
		/* More than one colon: an IPv6 address without a port. */
		if (port && strchr(port, ':')) {
			k = strlen(text);
			port = NULL;
		}
	}
	if (k >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, k);
	host[k] = 0;
	if (port) {
		if (*port < '0' || *port > '9')
			return -EINVAL;
		n = strtoul(port, &end, 10);
		if (*end || !n || n > 65535)
			return -EINVAL;
	}
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)n);
		*len = sizeof(*v4);
		return 0;
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)n);
		*len = sizeof(*v6);
		return 0;
	}
	return -EINVAL;
}

bool bl_session_is_local(const char *text)
{
	struct sockaddr_storage sa;
	const struct sockaddr_in *v4 = (const void *)&sa;
	const struct sockaddr_in6 *v6 = (const void *)&sa;
	socklen_t len;

	if (bl_session_addr(text, &sa, &len))
		return false;
	if (sa.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}
