// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See serve.h. */
#include "cli/metrics/serve.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/library/gnutls.h"
#include "base/library/microhttpd.h"
#include "base/time.h"
#include "cli/metrics/health.h"

#define CONNECTION_BYTES 32768
#define MS_NS            1000000ULL

/** struct waiting - a request for metrics that is suspended, or ready to be answered. */
struct waiting {
	struct MHD_Connection *connection;
	enum metric_format format;
	struct MHD_Response *response; /* NULL: not there yet. The request's own reference. */
	struct waiting *next;
};

/** struct client - a connection. */
struct client {
	int fd;         /* -1: the place is free */
	uint64_t since; /* CLOCK_MONOTONIC at which its present request began, ns */
};

struct metrics_server {
	struct MHD_Daemon *http;
	struct collector *c;
	bool tls;     /* clients must have a certificate */
	char *pem[3]; /* cert, key, ca */

	pthread_t reader;        /* reads the sources, and ends connections that take too long */
	bool reads;              /* it was started */
	pthread_mutex_t lock;    /* protects everything below */
	pthread_cond_t bell;     /* for the reader: @waiting or @ends has changed */
	struct waiting *waiting; /* suspended */
	bool ends;
	struct client client[METRICS_CONNECTIONS];
};

/* ---- the reader ---- */

/* Returns an answer with the text of @m, or one that says that memory is short. */
static struct MHD_Response *response_of(const struct metrics *m, enum metric_format format)
{
	struct MHD_Response *r;
	size_t len = 0;
	char *text = m ? metrics_text(m, format, &len) : NULL;

	if (!text)
		return NULL;
	r = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (r)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, metrics_type(format));
	else
		free(text);
	return r;
}

static struct MHD_Response *short_text(const char *text)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

	if (r)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE,
					"text/plain; charset=utf-8");
	return r;
}

/* Reads the sources for the requests @all, and resumes them. */
static void answer(struct metrics_server *s, struct waiting *all)
{
	struct metrics *m = metrics_collect(s->c);
	struct MHD_Response *r[2] = { NULL, NULL };
	struct waiting *w, *next;

	for (w = all; w; w = next) {
		next = w->next; /* @w is the request's again once it is resumed */
		if (!r[w->format])
			r[w->format] = response_of(m, w->format);
		if (!r[w->format])
			r[w->format] = short_text("memory is short\n");
		/* each request drops a reference of its own, so it gets a response of its own */
		w->response = r[w->format];
		r[w->format] = NULL;
		MHD_resume_connection(w->connection);
	}
	metrics_free(m);
}

/* Ends connections whose request takes too long. Under the lock, so no descriptor is closed now. */
static void end_slow(struct metrics_server *s)
{
	uint64_t now = bl_mono_ns();
	unsigned int k;

	for (k = 0; k < METRICS_CONNECTIONS; k++)
		if (s->client[k].fd >= 0 &&
		    now - s->client[k].since > METRICS_REQUEST_S * 1000 * MS_NS)
			shutdown(s->client[k].fd, SHUT_RDWR);
}

static void *reader_main(void *arg)
{
	struct metrics_server *s = arg;
	struct waiting *all;
	struct timespec t;

	pthread_mutex_lock(&s->lock);
	while (!s->ends) {
		all = s->waiting;
		s->waiting = NULL;
		if (all) {
			pthread_mutex_unlock(&s->lock);
			answer(s, all);
			pthread_mutex_lock(&s->lock);
			continue;
		}
		end_slow(s);
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_sec++;
		pthread_cond_timedwait(&s->bell, &s->lock, &t);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- requests ---- */

static enum MHD_Result say(struct MHD_Connection *connection, unsigned int status, const char *text)
{
	struct MHD_Response *r = short_text(text);
	enum MHD_Result rc;

	if (!r)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	rc = MHD_queue_response(connection, status, r);
	MHD_destroy_response(r);
	return rc;
}

/* Whether the client has shown a certificate of the authority. */
static bool client_is_known(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	unsigned int status = 0;

	return i && i->tls_session &&
	       !gnutls_certificate_verify_peers2((gnutls_session_t)i->tls_session, &status) &&
	       !status;
}

/* Suspends a request for metrics until the reader has read the sources. */
static enum MHD_Result begin_metrics(struct metrics_server *s, struct MHD_Connection *connection,
				     void **request)
{
	struct waiting *w = calloc(1, sizeof(*w));
	bool ends;

	if (!w)
		return MHD_NO;
	w->connection = connection;
	w->format = metrics_accept(
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
	*request = w;
	pthread_mutex_lock(&s->lock);
	ends = s->ends;
	if (!ends) {
		/* the reader cannot resume it before it is suspended: that needs the lock, too */
		MHD_suspend_connection(connection);
		w->next = s->waiting;
		s->waiting = w;
		pthread_cond_signal(&s->bell);
	}
	pthread_mutex_unlock(&s->lock);
	return ends ? MHD_NO : MHD_YES;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **request)
{
	struct metrics_server *s = ctx;
	struct waiting *w = *request;
	char text[4096];
	bool well;

	(void)version, (void)data, (void)size;
	if (w) /* resumed */
		return w->response ? MHD_queue_response(connection, MHD_HTTP_OK, w->response)
				   : MHD_NO;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (s->tls && !client_is_known(connection))
		return say(connection, MHD_HTTP_FORBIDDEN,
			   "a certificate of the rack's authority is needed\n");
	if (!strcmp(url, "/metrics"))
		return begin_metrics(s, connection, request);
	if (!strcmp(url, "/healthz") || !strcmp(url, "/readyz")) {
		well = metrics_health(url[1] == 'r', text, sizeof(text));
		return say(connection, well ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, text);
	}
	return say(connection, strcmp(url, "/") ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK,
		   "barline: /metrics /healthz /readyz\n");
}

static int fd_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return i ? i->connect_fd : -1;
}

/* Notes that a request of the connection @fd begins now; its place is found, or taken. */
static void note_begin(struct metrics_server *s, int fd)
{
	struct client *c = NULL;
	unsigned int k;

	pthread_mutex_lock(&s->lock);
	for (k = 0; k < METRICS_CONNECTIONS; k++) {
		if (s->client[k].fd == fd) {
			c = &s->client[k];
			break;
		}
		if (s->client[k].fd < 0 && !c)
			c = &s->client[k];
	}
	if (c) {
		c->fd = fd;
		c->since = bl_mono_ns();
	}
	pthread_mutex_unlock(&s->lock);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **request,
			 enum MHD_RequestTerminationCode how)
{
	struct waiting *w = *request;

	(void)how;
	if (w && w->response)
		MHD_destroy_response(w->response);
	free(w);
	*request = NULL;
	note_begin(ctx, fd_of(connection));
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **own,
			  enum MHD_ConnectionNotificationCode what)
{
	struct metrics_server *s = ctx;
	int fd = fd_of(connection);
	unsigned int k;

	(void)own;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		note_begin(s, fd);
		return;
	}
	pthread_mutex_lock(&s->lock);
	for (k = 0; k < METRICS_CONNECTIONS; k++)
		if (s->client[k].fd == fd)
			s->client[k].fd = -1;
	pthread_mutex_unlock(&s->lock);
}

/* libmicrohttpd reports what clients do wrong; anybody can make it say that for ever. */
static void on_log(void *ctx, const char *fmt, va_list ap)
{
	(void)ctx, (void)fmt, (void)ap;
}

/* ---- start and end ---- */

/* Reads a file into a string. Returns 0 or -errno. */
static int load(const char *file, char **text, struct bl_err *err)
{
	gnutls_datum_t d;
	int rc = gnutls_load_file(file, &d);

	if (rc)
		return bl_fail(err, ENOENT, "cannot read %s: %s", file, gnutls_strerror(rc));
	*text = strndup((const char *)d.data, d.size);
	gnutls_free(d.data);
	return *text ? 0 : bl_fail(err, ENOMEM, "out of memory");
}

static int load_tls(struct metrics_server *s, const struct metrics_listen *l, struct bl_err *err)
{
	const char *file[3] = { l->cert, l->key, l->ca };
	unsigned int k;
	int rc = l->cert ? bl_library_load(BL_LIBRARY_GNUTLS, err) : 0;

	for (k = 0; k < 3 && l->cert && !rc; k++)
		rc = load(file[k], &s->pem[k], err);
	s->tls = l->cert != NULL;
	return rc;
}

/*
 * Opens the listening socket here, and not in libmicrohttpd, whose error would not say why. Returns
 * the descriptor or -errno.
 */
static int open_socket(const struct sockaddr_storage *a, struct bl_err *err)
{
	socklen_t len = a->ss_family == AF_INET ? sizeof(struct sockaddr_in)
						: sizeof(struct sockaddr_in6);
	int fd = socket(a->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, rc;

	if (fd < 0)
		return bl_fail(err, errno, "cannot make a socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (!bind(fd, (const struct sockaddr *)a, len) && !listen(fd, 64))
		return fd;
	rc = bl_fail(err, errno, "cannot listen there: %s; is another process on this port?",
		     strerror(errno));
	close(fd);
	return rc;
}

static int start_http(struct metrics_server *s, int fd, struct bl_err *err)
{
	struct MHD_OptionItem tls[] = { { MHD_OPTION_HTTPS_MEM_CERT, 0, s->pem[0] },
					{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->pem[1] },
					{ MHD_OPTION_HTTPS_MEM_TRUST, 0, s->pem[2] },
					{ MHD_OPTION_HTTPS_PRIORITIES, 0,
					  (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-"
							      "TLS1.2" },
					{ MHD_OPTION_END, 0, NULL } };

	s->http = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME |
			MHD_USE_ITC | MHD_USE_ERROR_LOG | (s->tls ? MHD_USE_TLS : 0),
		0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)METRICS_CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		(unsigned int)METRICS_CONNECTIONS / 2, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)METRICS_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_ARRAY,
		s->tls ? tls : tls + 4, MHD_OPTION_END);
	if (s->http)
		return 0;
	close(fd);
	return bl_fail(err, EINVAL,
		       s->tls ? "cannot start the server; are certificate and key in "
				"PEM, and do they belong together?"
			      : "cannot start the server: out of threads or memory");
}

int metrics_serve(struct metrics_server **out, const struct metrics_listen *l, struct collector *c,
		  struct bl_err *err)
{
	struct metrics_server *s = calloc(1, sizeof(*s));
	pthread_condattr_t monotonic;
	unsigned int k;
	int rc, fd;

	*out = NULL;
	if (!s)
		return bl_fail(err, ENOMEM, "out of memory");
	s->c = c;
	for (k = 0; k < METRICS_CONNECTIONS; k++)
		s->client[k].fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->bell, &monotonic);
	pthread_condattr_destroy(&monotonic);
	rc = bl_library_load(BL_LIBRARY_MICROHTTPD, err);
	if (!rc)
		rc = load_tls(s, l, err);
	if (!rc) {
		fd = open_socket(&l->addr, err);
		rc = fd < 0 ? fd : start_http(s, fd, err);
	}
	if (!rc) {
		rc = pthread_create(&s->reader, NULL, reader_main, s);
		s->reads = !rc;
		if (rc)
			rc = bl_fail(err, rc, "cannot start a thread: %s", strerror(rc));
	}
	if (rc)
		metrics_serve_end(s);
	else
		*out = s;
	return rc;
}

void metrics_serve_end(struct metrics_server *s)
{
	struct waiting *w, *next;
	unsigned int k;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_cond_signal(&s->bell);
	pthread_mutex_unlock(&s->lock);
	if (s->reads)
		pthread_join(s->reader, NULL);
	/* libmicrohttpd does not stop while a connection is suspended */
	for (w = s->waiting; w; w = next) {
		next = w->next;
		MHD_resume_connection(w->connection);
	}
	if (s->http)
		MHD_stop_daemon(s->http);
	for (k = 0; k < 3; k++) {
		if (s->pem[k])
			explicit_bzero(s->pem[k], strlen(s->pem[k]));
		free(s->pem[k]);
	}
	pthread_cond_destroy(&s->bell);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
