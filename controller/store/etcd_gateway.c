// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See etcd_gateway.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/store/etcd_gateway.h"

#define ANSWER_MAX (64U << 20) /* longest answer that is accepted, bytes */
#define TEXT_MAX   1024        /* text for people on what went wrong, with its final 0 */

static const char *const routes[] = {
	[ETCD_RANGE] = "/v3/kv/range",      [ETCD_TXN] = "/v3/kv/txn",
	[ETCD_GRANT] = "/v3/lease/grant",   [ETCD_KEEP] = "/v3/lease/keepalive",
	[ETCD_REVOKE] = "/v3/lease/revoke", [ETCD_WATCH] = "/v3/watch"
};

void etcd_gateway_leave(struct etcd_gateway *g, const struct etcd_req *q)
{
	if (g->at == q->member)
		g->at = (g->at + 1) % g->n;
}

/* ---- curl in the event loop ---- */

static void finish_requests(struct etcd_gateway *g);

static void turn_curl(struct etcd_gateway *g, curl_socket_t fd, int what)
{
	int running;

	curl_multi_socket_action(g->multi, fd, what, &running);
	g->turned(g->ctx);
	finish_requests(g);
}

static int on_fd(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	(void)src;
	turn_curl(ctx, fd,
		  (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			  (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			  (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
	return 0;
}

static int on_timer(sd_event_source *src, uint64_t usec, void *ctx)
{
	(void)src, (void)usec;
	turn_curl(ctx, CURL_SOCKET_TIMEOUT, 0);
	return 0;
}

static int want_fd(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	struct etcd_gateway *g = ctx;
	sd_event_source *src = socket_ctx;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0U) |
			  (what & CURL_POLL_OUT ? EPOLLOUT : 0U);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(src);
		curl_multi_assign(g->multi, fd, NULL);
	} else if (src) {
		sd_event_source_set_io_events(src, events);
	} else if (sd_event_add_io(g->ev, &src, fd, events, on_fd, g) >= 0) {
		curl_multi_assign(g->multi, fd, src);
	}
	return 0;
}

static int want_timer(CURLM *multi, long ms, void *ctx)
{
	struct etcd_gateway *g = ctx;

	(void)multi;
	if (ms < 0) {
		sd_event_source_disable_unref(g->timer);
		g->timer = NULL;
	} else {
		bl_store_once(g->ev, &g->timer, (uint64_t)ms, on_timer, g);
	}
	return 0;
}

static size_t on_data(char *data, size_t one, size_t n, void *ctx)
{
	struct etcd_req *q = ctx;
	char *in;

	(void)one;
	if (q->len + n > ANSWER_MAX)
		return 0;
	in = realloc(q->in, q->len + n + 1);
	if (!in)
		return 0;
	q->in = in;
	memcpy(in + q->len, data, n);
	q->len += n;
	in[q->len] = 0;
	return n;
}

/* ---- requests ---- */

void etcd_req_free(struct etcd_req *q)
{
	struct etcd_req **at;

	for (at = &q->g->reqs; *at; at = &(*at)->next)
		if (*at == q) {
			*at = q->next;
			break;
		}
	if (q->easy) {
		curl_multi_remove_handle(q->g->multi, q->easy);
		curl_easy_cleanup(q->easy);
	}
	free(q->body);
	free(q->in);
	free(q);
}

static void set_up_request(struct etcd_gateway *g, CURL *easy, enum etcd_route route,
			   const char *body)
{
	char url[512];

	snprintf(url, sizeof(url), "%s%s", g->endpoints[g->at], routes[route]);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, g->headers);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(g->request_ms / 2 + 1));
	if (route != ETCD_WATCH)
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)g->request_ms);
	/*
	 * Under TLS libcurl would take HTTP/2, where a request whose time is over leaves its
	 * connection open for the next ones; so a path that has broken would be used again.
	 */
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	if (g->ca) {
		curl_easy_setopt(easy, CURLOPT_CAINFO, g->ca);
		/* Debian's libcurl trusts /etc/ssl/certs in addition to CAINFO. */
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
	if (g->cert)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, g->cert);
	if (g->key)
		curl_easy_setopt(easy, CURLOPT_SSLKEY, g->key);
}

static void start_request(struct etcd_req *q)
{
	struct etcd_gateway *g = q->g;

	q->member = g->at;
	q->easy = curl_easy_init();
	if (!q->easy)
		return;
	set_up_request(g, q->easy, q->route, q->body);
	curl_easy_setopt(q->easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(q->easy, CURLOPT_WRITEDATA, q);
	curl_easy_setopt(q->easy, CURLOPT_PRIVATE, q);
	curl_easy_setopt(q->easy, CURLOPT_ERRORBUFFER, q->detail);
	*q->detail = 0;
	q->len = 0;
	q->sent_ns = bl_boot_ns();
	curl_multi_add_handle(g->multi, q->easy);
}

struct etcd_req *etcd_ask(struct etcd_gateway *g, enum etcd_route route, char *body, bool twice,
			  etcd_end_fn fn)
{
	struct etcd_req *q = body ? calloc(1, sizeof(*q)) : NULL;

	if (!q) {
		free(body);
		return NULL;
	}
	*q = (struct etcd_req){ .next = g->reqs,
				.g = g,
				.route = route,
				.body = body,
				.twice = twice,
				.left = g->n - 1,
				.fn = fn };
	g->reqs = q;
	start_request(q);
	return q;
}

/*
 * Whether etcd certainly did not and will not apply the request: it was refused before it was
 * proposed, or for its content. The other errors are deadlines and changes of etcd's leader, after
 * which the request may have been applied.
 */
static bool certainly_refused(const struct etcd_answer *a)
{
	enum {
		INVALID = 3,
		NOT_FOUND = 5,
		DENIED = 7,
		EXHAUSTED = 8,
		FAILED = 9,
		RANGE = 11,
		UNIMPLEMENTED = 12,
		UNAVAILABLE = 14,
		UNAUTHENTICATED = 16
	};

	switch (a->grpc_code) {
	case INVALID:
	case NOT_FOUND:
	case DENIED:
	case EXHAUSTED:
	case FAILED:
	case RANGE:
	case UNIMPLEMENTED:
	case UNAUTHENTICATED:
		return true;
	case UNAVAILABLE:
		return strstr(a->error, "no leader") != NULL;
	}
	return false;
}

static const char *name_or(const char *file, const char *none)
{
	return file ? file : none;
}

/*
 * Writes what is wrong between this controller and the member at @url, which gave no answer, and
 * what to do about it.
 */
static void explain_curl(const struct etcd_req *q, CURLcode code, const char *url, char *text)
{
	const struct etcd_gateway *g = q->g;
	const char *what = *q->detail ? q->detail : curl_easy_strerror(code);

	if (strncmp(url, "https://", 8))
		snprintf(text, TEXT_MAX, "etcd at %s: %s", url, what);
	else if (code == CURLE_PEER_FAILED_VERIFICATION)
		snprintf(text, TEXT_MAX,
			 "etcd at %s: its certificate is refused (%s): it must be of the authority "
			 "in %s and name the host of this URL; `barline pki issue NAME --role etcd "
			 "--address HOST` makes one",
			 url, what, name_or(g->ca, "/etc/ssl/certs (etcd: ca names none)"));
	else if (code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE)
		snprintf(text, TEXT_MAX,
			 "etcd at %s: cannot use the files ca %s, cert %s, key %s (%s); `barline "
			 "pki issue NAME --role controller` makes cert and key",
			 url, name_or(g->ca, "(none)"), name_or(g->cert, "(none)"),
			 name_or(g->key, "(none)"), what);
	else if (code == CURLE_SSL_CONNECT_ERROR || code == CURLE_RECV_ERROR ||
		 code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING)
		snprintf(text, TEXT_MAX,
			 "etcd at %s: it ended the TLS session (%s): does it accept the "
			 "certificate %s, and does it speak TLS there? etcd's --trusted-ca-file "
			 "must be the authority that issued it (`barline pki issue NAME --role "
			 "controller`)",
			 url, what, name_or(g->cert, "(etcd: cert names none)"));
	else
		snprintf(text, TEXT_MAX, "etcd at %s: %s", url, what);
}

static void explain(const struct etcd_req *q, CURLcode code, long http, const struct etcd_answer *a,
		    char *text)
{
	const char *url = q->g->endpoints[q->member];

	if (code != CURLE_OK)
		explain_curl(q, code, url, text);
	else if (a->error)
		snprintf(text, TEXT_MAX, "etcd at %s: %s%s", url, a->error,
			 strstr(a->error, "no leader") ? " (no quorum)" : "");
	else
		snprintf(text, TEXT_MAX, "etcd at %s: its answer is not one of etcd%s", url,
			 http == 400 && !strncmp(url, "http://", 7) ? "; does it want https://?"
								    : "");
}

static void finish_request(struct etcd_req *q, CURLcode code)
{
	struct etcd_gateway *g = q->g;
	struct etcd_answer a = { 0 };
	enum bl_store_outcome out;
	char text[TEXT_MAX];
	long sent = 0, http = 0;

	curl_easy_getinfo(q->easy, CURLINFO_REQUEST_SIZE, &sent);
	curl_easy_getinfo(q->easy, CURLINFO_RESPONSE_CODE, &http);
	if (code == CURLE_OK && q->route != ETCD_WATCH)
		etcd_msg_read(q->in ? q->in : "", q->len, g->strip, false, &a);
	if (code == CURLE_OK && http == 200 && a.sound && !a.error)
		out = BL_STORE_DONE;
	else if (code != CURLE_OK ? !sent : a.error && certainly_refused(&a))
		out = BL_STORE_REFUSED;
	else
		out = BL_STORE_UNKNOWN;
	explain(q, code, http, &a, text);
	if (out != BL_STORE_DONE) {
		/*
		 * This member, or the path to it, has a problem: later requests go to the next one.
		 */
		etcd_gateway_leave(g, q);
		if (q->left && q->route != ETCD_WATCH && (out == BL_STORE_REFUSED || q->twice)) {
			q->left--;
			curl_multi_remove_handle(g->multi, q->easy);
			curl_easy_cleanup(q->easy);
			start_request(q);
			etcd_answer_free(&a);
			return;
		}
	}
	if (q->route != ETCD_WATCH)
		g->outcome(g->ctx, out == BL_STORE_DONE ? NULL : text);
	q->fn(q, out, &a, out == BL_STORE_DONE ? NULL : text);
	etcd_answer_free(&a);
	etcd_req_free(q);
}

static void finish_requests(struct etcd_gateway *g)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(g->multi, &left))) {
		char *q = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &q);
		finish_request((struct etcd_req *)(void *)q, m->data.result);
	}
}

static size_t drop_data(char *data, size_t one, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return one * n;
}

void etcd_ask_now(struct etcd_gateway *g, enum etcd_route route, const char *body, unsigned int ms)
{
	CURL *easy = curl_easy_init();

	if (!easy)
		return;
	set_up_request(g, easy, route, body);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop_data);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ms);
	curl_easy_perform(easy);
	curl_easy_cleanup(easy);
}

/* ---- opening and closing ---- */

static bool copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

static bool add_header(struct etcd_gateway *g, const char *text)
{
	struct curl_slist *l = curl_slist_append(g->headers, text);

	if (l)
		g->headers = l;
	return l;
}

/* libcurl reads the files for each connection, so that they may be renewed; this finds typos. */
static int check_file(const char *key, const char *path, struct bl_err *err)
{
	if (!path || !access(path, R_OK))
		return 0;
	return bl_fail(err, errno,
		       "etcd: %s: cannot read %s: %s; `barline pki` makes such files, and the "
		       "controller's user must be able to read them",
		       key, path, strerror(errno));
}

int etcd_gateway_open(struct etcd_gateway *g, const struct bl_etcd_cfg *cfg, struct bl_err *err)
{
	unsigned int i;
	bool ok;
	int rc;

	if (!cfg->nendpoints)
		return bl_fail(err, EINVAL,
			       "etcd needs at least one endpoint, as http://10.0.0.1:2379");
	for (i = 0; i < cfg->nendpoints; i++)
		if (strncmp(cfg->endpoints[i], "http://", 7) &&
		    strncmp(cfg->endpoints[i], "https://", 8))
			return bl_fail(err, EINVAL,
				       "etcd's endpoint \"%s\" is no URL, as http://10.0.0.1:2379",
				       cfg->endpoints[i]);
	rc = check_file("ca", cfg->ca, err);
	if (!rc)
		rc = check_file("cert", cfg->cert, err);
	if (!rc)
		rc = check_file("key", cfg->key, err);
	if (!rc)
		rc = bl_library_load(BL_LIBRARY_CURL, err);
	if (!rc)
		rc = bl_library_load(BL_LIBRARY_GNUTLS, err); /* of etcd_msg.c */
	if (rc)
		return rc;
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return bl_fail(err, ENOMEM, "cannot set libcurl up");
	g->n = cfg->nendpoints;
	g->endpoints = calloc(g->n, sizeof(*g->endpoints));
	ok = g->endpoints && copy_text(&g->ca, cfg->ca) && copy_text(&g->cert, cfg->cert) &&
	     copy_text(&g->key, cfg->key);
	for (i = 0; ok && i < g->n; i++)
		ok = copy_text(&g->endpoints[i], cfg->endpoints[i]);
	ok = ok && add_header(g, "Content-Type: application/json") &&
	     add_header(g, "Grpc-Metadata-hasleader: true") && add_header(g, "Expect:");
	g->multi = ok ? curl_multi_init() : NULL;
	if (!g->multi)
		return bl_fail(err, ENOMEM, "out of memory");
	curl_multi_setopt(g->multi, CURLMOPT_SOCKETFUNCTION, want_fd);
	curl_multi_setopt(g->multi, CURLMOPT_SOCKETDATA, g);
	curl_multi_setopt(g->multi, CURLMOPT_TIMERFUNCTION, want_timer);
	curl_multi_setopt(g->multi, CURLMOPT_TIMERDATA, g);
	return 0;
}

void etcd_gateway_close(struct etcd_gateway *g)
{
	unsigned int i;

	while (g->reqs)
		etcd_req_free(g->reqs);
	if (g->multi)
		curl_multi_cleanup(g->multi);
	if (g->headers)
		curl_slist_free_all(g->headers);
	sd_event_source_disable_unref(g->timer);
	for (i = 0; g->endpoints && i < g->n; i++)
		free(g->endpoints[i]);
	free(g->endpoints);
	free(g->ca);
	free(g->cert);
	free(g->key);
}
