// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The store in etcd, through its JSON gateway: requests by libcurl in the event loop, watches, and the election.
 *
 * Every request asks for a leader ("Grpc-Metadata-hasleader"): a member without a quorum then says so in 25 ms instead of 7 s, and a watch on it ends after 4.6 s instead of never (measured, etcd 3.4.23). A request
 * goes to one member; to the next one if it certainly was not taken, or if it does no harm twice. A write that may have been taken is UNKNOWN.
 *
 * The election: the key "leader" is made if it is not there, with a lease; the revision at which it was made is the epoch. etcd's own election is a request that blocks; this is one transaction, and easier to reason about.
 *
 *   look for "leader"	there: whoever it is leads; look again when it is deleted, and every half lease in any case
 *   grant a lease	5 s, granted at 100.000 (when it was asked for)
 *   make "leader"	at revision 41: epoch 41, held until 100.000 + 5 s - 1 s
 *   keep it alive	each second; an answer without TTL means that it is lost. Held until a second before the lease ends, counted from when the last one that succeeded was sent
 *
 * What a lease outlives, or whether etcd thinks that it lives, is never asked: the own clock decides, and the fence.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd_msg.h"
#include "store_priv.h"

#define TTL_S	     5
#define ANSWER_MAX   (64U << 20)
#define WATCH_IDLE_MS 15000 /* a stream that is silent for longer is opened anew; nothing is lost, since it goes on at a revision */
#define WATCH_AGAIN_MS 100

enum route { R_RANGE, R_TXN, R_GRANT, R_KEEP, R_REVOKE, R_WATCH };
static const char *const routes[] = { [R_RANGE] = "/v3/kv/range",	       [R_TXN] = "/v3/kv/txn",	      [R_GRANT] = "/v3/lease/grant",
				      [R_KEEP] = "/v3/lease/keepalive", [R_REVOKE] = "/v3/lease/revoke", [R_WATCH] = "/v3/watch" };

struct etcd;
struct watch;

/**
 * struct req - one request. @twice: does no harm twice. @left: members that may still be tried. @sent_ns: CLOCK_BOOTTIME. @fn: its end; @a: what came (zeros if nothing did). @watch: it is that one's stream, and @fn is not
 * called for what comes but in the end.
 */
struct req {
	struct req *next;
	struct etcd *e;
	CURL *easy;
	enum route route;
	char *body;
	char *in;
	size_t len;
	bool twice;
	unsigned int left;
	uint64_t sent_ns;
	void (*fn)(struct req *q, enum bl_store_outcome outcome, const struct etcd_answer *a, const char *text);
	bl_store_fn user;
	void *ctx;
	uint64_t epoch;
	struct watch *watch;
};

/** struct watch - @next_rev: first revision that has not been told. @stream: NULL: none is open. */
struct watch {
	struct watch *next;
	struct etcd *e;
	const struct bl_store_watcher *w;
	char *key;
	bool one;
	uint64_t next_rev;
	struct req *stream;
	sd_event_source *timer;
};

enum election { EL_OFF, EL_LOOK, EL_WAIT, EL_TAKE, EL_HELD };

struct etcd {
	struct bl_store s;
	struct bl_etcd_cfg cfg;
	char **endpoints;
	char *prefix, *leader_key, *ca, *cert, *key;
	unsigned int n, at;
	CURLM *multi;
	struct curl_slist *headers;
	sd_event_source *timer;
	struct req *reqs;
	struct watch *watches;
	bool troubled;
	/* the election */
	enum election el;
	const struct bl_store_candidate *c;
	char *me;
	uint64_t lease, ttl_ns;
	bool keeping;
	uint64_t asked_ns; /* when the lease was asked for */
	sd_event_source *el_timer, *lapse_timer;
	struct bl_store_watcher el_watcher;
};

static struct etcd *etcd_of(struct bl_store *s)
{
	return (struct etcd *)s;
}

/* ---- curl in the event loop ---- */

static void finish_all(struct etcd *e);
static void streams_read(struct etcd *e);

static void turn(struct etcd *e, curl_socket_t fd, int what)
{
	int running;

	curl_multi_socket_action(e->multi, fd, what, &running);
	streams_read(e);
	finish_all(e);
}

static int on_fd(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	(void)src;
	turn(ctx, fd, (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) | (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
	return 0;
}

static int on_timer(sd_event_source *src, uint64_t usec, void *ctx)
{
	(void)src, (void)usec;
	turn(ctx, CURL_SOCKET_TIMEOUT, 0);
	return 0;
}

static int want_fd(CURL *easy, curl_socket_t fd, int what, void *ctx, void *socket_ctx)
{
	struct etcd *e = ctx;
	sd_event_source *src = socket_ctx;
	uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		sd_event_source_disable_unref(src);
		curl_multi_assign(e->multi, fd, NULL);
	} else if (src) {
		sd_event_source_set_io_events(src, events);
	} else if (sd_event_add_io(e->s.ev, &src, fd, events, on_fd, e) >= 0) {
		curl_multi_assign(e->multi, fd, src);
	}
	return 0;
}

static int want_timer(CURLM *multi, long ms, void *ctx)
{
	struct etcd *e = ctx;

	(void)multi;
	if (ms < 0) {
		sd_event_source_disable_unref(e->timer);
		e->timer = NULL;
	} else {
		bl_store_once(e->s.ev, &e->timer, (uint64_t)ms, on_timer, e);
	}
	return 0;
}

static size_t on_data(char *data, size_t one, size_t n, void *ctx)
{
	struct req *q = ctx;
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

static void req_free(struct req *q)
{
	struct req **at;

	for (at = &q->e->reqs; *at; at = &(*at)->next)
		if (*at == q) {
			*at = q->next;
			break;
		}
	if (q->easy) {
		curl_multi_remove_handle(q->e->multi, q->easy);
		curl_easy_cleanup(q->easy);
	}
	free(q->body);
	free(q->in);
	free(q);
}

static void set_up(struct etcd *e, CURL *easy, enum route route, const char *body)
{
	char url[512];

	snprintf(url, sizeof(url), "%s%s", e->endpoints[e->at % e->n], routes[route]);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, e->headers);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(e->cfg.request_ms / 2 + 1));
	if (route != R_WATCH)
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)e->cfg.request_ms);
	if (e->ca)
		curl_easy_setopt(easy, CURLOPT_CAINFO, e->ca);
	if (e->cert)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, e->cert);
	if (e->key)
		curl_easy_setopt(easy, CURLOPT_SSLKEY, e->key);
}

static void start(struct req *q)
{
	struct etcd *e = q->e;

	q->easy = curl_easy_init();
	if (!q->easy)
		return;
	set_up(e, q->easy, q->route, q->body);
	curl_easy_setopt(q->easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(q->easy, CURLOPT_WRITEDATA, q);
	curl_easy_setopt(q->easy, CURLOPT_PRIVATE, q);
	q->len = 0;
	q->sent_ns = bl_boot_ns();
	curl_multi_add_handle(e->multi, q->easy);
}

/* @body is used up; NULL: out of memory, and the caller's next try will come */
static struct req *ask(struct etcd *e, enum route route, char *body, bool twice, void (*fn)(struct req *, enum bl_store_outcome, const struct etcd_answer *, const char *))
{
	struct req *q = body ? calloc(1, sizeof(*q)) : NULL;

	if (!q) {
		free(body);
		return NULL;
	}
	*q = (struct req){ .next = e->reqs, .e = e, .route = route, .body = body, .twice = twice, .left = e->n - 1, .fn = fn };
	e->reqs = q;
	start(q);
	return q;
}

static void tell_trouble(struct etcd *e, const char *text)
{
	if ((text || e->troubled) && e->c && e->c->trouble)
		e->c->trouble(e->c->ctx, text);
	e->troubled = text != NULL;
}

/* What certainly was not done: refused before it was proposed, or for what it says. The rest of the errors are deadlines and changes of the leader: it may be done. */
static bool certainly_refused(const struct etcd_answer *a)
{
	enum { INVALID = 3, NOT_FOUND = 5, DENIED = 7, EXHAUSTED = 8, FAILED = 9, RANGE = 11, UNIMPLEMENTED = 12, UNAVAILABLE = 14, UNAUTHENTICATED = 16 };

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

static void finish(struct req *q, CURLcode code)
{
	struct etcd *e = q->e;
	struct etcd_answer a = { 0 };
	enum bl_store_outcome out;
	char text[512];
	const char *why;
	long sent = 0, http = 0;

	curl_easy_getinfo(q->easy, CURLINFO_REQUEST_SIZE, &sent);
	curl_easy_getinfo(q->easy, CURLINFO_RESPONSE_CODE, &http);
	if (code == CURLE_OK && !q->watch)
		etcd_msg_read(q->in ? q->in : "", q->len, e->prefix, &a);
	if (code == CURLE_OK && http == 200 && a.sound && !a.error)
		out = BL_STORE_DONE;
	else if (code != CURLE_OK ? !sent : a.error && certainly_refused(&a))
		out = BL_STORE_REFUSED;
	else
		out = BL_STORE_UNKNOWN;
	why = code != CURLE_OK ? curl_easy_strerror(code) : a.error ? a.error : "what it answered is not etcd's";
	snprintf(text, sizeof(text), "etcd at %s: %s%s", e->endpoints[e->at % e->n], why, a.error && strstr(a.error, "no leader") ? " (no quorum)" : "");
	if (out != BL_STORE_DONE) {
		/* this member, or the way to it: the next one is asked from now on */
		e->at = (e->at + 1) % e->n;
		if (q->left && !q->watch && (out == BL_STORE_REFUSED || q->twice)) {
			q->left--;
			curl_multi_remove_handle(e->multi, q->easy);
			curl_easy_cleanup(q->easy);
			start(q);
			etcd_answer_free(&a);
			return;
		}
	}
	if (!q->watch)
		tell_trouble(e, out == BL_STORE_DONE ? NULL : text);
	q->fn(q, out, &a, out == BL_STORE_DONE ? NULL : text);
	etcd_answer_free(&a);
	req_free(q);
}

static void finish_all(struct etcd *e)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(e->multi, &left))) {
		char *q = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &q);
		finish((struct req *)(void *)q, m->data.result);
	}
}

static char *whole(struct etcd *e, const char *key)
{
	char *t = NULL;

	return asprintf(&t, "%s%s", e->prefix, key) < 0 ? NULL : t;
}

/* ---- reading and writing ---- */

static struct bl_store_kv *plain(const struct etcd_answer *a)
{
	struct bl_store_kv *v = calloc(a->n ? a->n : 1, sizeof(*v));
	size_t i;

	for (i = 0; v && i < a->n; i++)
		v[i] = a->kv[i].kv;
	return v;
}

static void range_end(struct req *q, enum bl_store_outcome out, const struct etcd_answer *a, const char *text)
{
	struct bl_store_reply r = { .outcome = out == BL_STORE_DONE ? BL_STORE_DONE : BL_STORE_REFUSED, .why = out == BL_STORE_DONE ? BL_STORE_WHY_NONE : BL_STORE_WHY_DOWN,
				    .rev = a->rev, .n = a->n, .text = text };
	struct bl_store_kv *v = plain(a);

	r.kv = v;
	if (!v)
		r = (struct bl_store_reply){ .outcome = BL_STORE_REFUSED, .why = BL_STORE_WHY_DOWN, .text = "out of memory" };
	q->user(q->ctx, &r);
	free(v);
}

static void etcd_range(struct bl_store *s, const char *prefix, bool one, bl_store_fn fn, void *ctx)
{
	struct etcd *e = etcd_of(s);
	char *key = whole(e, prefix);
	struct req *q = ask(e, R_RANGE, key ? etcd_msg_range(key, !one) : NULL, true, range_end);

	free(key);
	if (q) {
		q->user = fn;
		q->ctx = ctx;
	}
}

static void el_lost(struct etcd *e, const char *why);

static void put_end(struct req *q, enum bl_store_outcome out, const struct etcd_answer *a, const char *text)
{
	struct bl_store_reply r = { .outcome = out, .why = out == BL_STORE_REFUSED ? BL_STORE_WHY_DOWN : BL_STORE_WHY_NONE, .rev = a->rev, .text = text };
	struct etcd *e = q->e;
	uint64_t epoch = q->epoch;

	if (out == BL_STORE_DONE && !a->succeeded) {
		bool ours = a->n && !strcmp(a->kv[0].kv.key, BL_STORE_LEADER) && a->kv[0].create_rev == epoch;

		r.outcome = BL_STORE_REFUSED;
		r.why = ours ? BL_STORE_WHY_CONFLICT : BL_STORE_WHY_FENCED;
		r.text = ours ? "the key was written by somebody else" : "another controller leads";
	}
	q->user(q->ctx, &r);
	if (r.why == BL_STORE_WHY_FENCED && e->s.epoch == epoch)
		el_lost(e, "another controller leads (a write was fenced)");
}

static void etcd_put(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev, const void *value, size_t len, bl_store_fn fn, void *ctx)
{
	struct etcd *e = etcd_of(s);
	/* an epoch of 0 leads nobody: no key was ever made at the highest of all revisions */
	struct etcd_put p = { .fence = e->leader_key, .fence_rev = epoch ? epoch : INT64_MAX, .rev = rev, .value = value, .len = len };
	char *whole_key = whole(e, key);
	struct req *q;

	p.key = whole_key;
	q = ask(e, R_TXN, whole_key ? etcd_msg_put(&p) : NULL, false, put_end);
	free(whole_key);
	if (q) {
		q->user = fn;
		q->ctx = ctx;
		q->epoch = epoch;
	}
}

/* ---- watches ---- */

static void watch_read(struct watch *w);
static void watch_open(struct watch *w);

static int watch_again(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct watch *w = ctx;

	(void)src, (void)usec;
	if (w->stream)
		req_free(w->stream);
	w->stream = NULL;
	if (w->next_rev)
		watch_open(w);
	else
		watch_read(w);
	return 0;
}

static void watch_have(void *ctx, const struct bl_store_reply *r)
{
	struct watch *w = ctx;

	if (r->outcome == BL_STORE_DONE) {
		w->next_rev = r->rev + 1;
		w->w->reset(w->w->ctx, r);
		watch_open(w);
	} else {
		bl_store_once(w->e->s.ev, &w->timer, WATCH_AGAIN_MS, watch_again, w);
	}
}

static void watch_read(struct watch *w)
{
	/* if the request cannot even be made, this timer tries again; an answer comes earlier */
	bl_store_once(w->e->s.ev, &w->timer, WATCH_IDLE_MS, watch_again, w);
	etcd_range(&w->e->s, w->key, w->one, watch_have, w);
}

static void stream_end(struct req *q, enum bl_store_outcome out, const struct etcd_answer *a, const char *text)
{
	(void)out, (void)a, (void)text;
	q->watch->stream = NULL;
	bl_store_once(q->e->s.ev, &q->watch->timer, WATCH_AGAIN_MS, watch_again, q->watch);
}

static void watch_open(struct watch *w)
{
	char *key = whole(w->e, w->key);

	/* the first thing that comes is "created" */
	bl_store_once(w->e->s.ev, &w->timer, 2ULL * w->e->cfg.request_ms, watch_again, w);
	w->stream = ask(w->e, R_WATCH, key ? etcd_msg_watch(key, !w->one, w->next_rev) : NULL, true, stream_end);
	if (w->stream)
		w->stream->watch = w;
	free(key);
}

/* One line of the stream. False: it has ended. */
static bool watch_line(struct watch *w, const char *line, size_t len)
{
	struct etcd_answer a;
	size_t i;
	bool more;

	etcd_msg_read(line, len, w->e->prefix, &a);
	more = a.sound && !a.error && !a.canceled;
	/* what was between is gone: read what there is, and go on from there */
	if (a.canceled && a.compacted)
		w->next_rev = 0;
	for (i = 0; i < a.n && more; i++) {
		w->next_rev = a.kv[i].kv.rev + 1;
		w->w->event(w->w->ctx, &a.kv[i].kv);
	}
	if (more && a.rev >= w->next_rev && !a.created)
		w->next_rev = a.rev + 1;
	etcd_answer_free(&a);
	return more;
}

static void stream_read(struct watch *w)
{
	struct req *q = w->stream;
	char *in = q->in, *end;
	size_t at = 0, len = q->len;

	/* callbacks may ask for more, but the stream stays: only watch_again() and its end take it away */
	q->in = NULL;
	q->len = 0;
	bl_store_once(w->e->s.ev, &w->timer, WATCH_IDLE_MS, watch_again, w);
	while (at < len && (end = memchr(in + at, '\n', len - at))) {
		if (!watch_line(w, in + at, (size_t)(end - in) - at)) {
			w->e->at = (w->e->at + 1) % w->e->n;
			w->stream = NULL;
			req_free(q);
			free(in);
			bl_store_once(w->e->s.ev, &w->timer, w->next_rev ? WATCH_AGAIN_MS : 0, watch_again, w);
			return;
		}
		at = (size_t)(end - in) + 1;
	}
	if (at < len) {
		memmove(in, in + at, len - at);
		q->in = in;
		q->len = len - at;
	} else {
		free(in);
	}
}

static void streams_read(struct etcd *e)
{
	struct watch *w;

	for (w = e->watches; w; w = w->next)
		if (w->stream && w->stream->len && memchr(w->stream->in, '\n', w->stream->len))
			stream_read(w);
}

static int watch_add(struct etcd *e, const char *key, bool one, const struct bl_store_watcher *w)
{
	struct watch *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->e = e;
	v->w = w;
	v->one = one;
	v->key = strdup(key);
	if (!v->key) {
		free(v);
		return -ENOMEM;
	}
	v->next = e->watches;
	e->watches = v;
	watch_read(v);
	return 0;
}

static int etcd_watch(struct bl_store *s, const char *prefix, const struct bl_store_watcher *w)
{
	return watch_add(etcd_of(s), prefix, false, w);
}

/* ---- the election ---- */

static void el_look(struct etcd *e);
static void el_take(struct etcd *e);

static int el_look_again(sd_event_source *src, uint64_t usec, void *ctx)
{
	(void)src, (void)usec;
	el_look(ctx);
	return 0;
}

static void el_wait(struct etcd *e, uint64_t ms)
{
	e->el = EL_WAIT;
	bl_store_once(e->s.ev, &e->el_timer, ms, el_look_again, e);
}

static void nothing(struct req *q, enum bl_store_outcome out, const struct etcd_answer *a, const char *text)
{
	(void)q, (void)out, (void)a, (void)text;
}

static void give_back(struct etcd *e)
{
	if (e->lease)
		ask(e, R_REVOKE, etcd_msg_lease(e->lease), true, nothing);
	e->lease = 0;
}

static void say_other(struct etcd *e, const struct etcd_answer *a)
{
	/* values end in a 0 that is not counted (etcd_unb64) */
	if (a->n && e->c->other)
		e->c->other(e->c->ctx, (const char *)a->kv[0].kv.value);
}

static void el_lost(struct etcd *e, const char *why)
{
	if (e->el != EL_HELD)
		return;
	e->s.epoch = e->s.held_until = 0;
	sd_event_source_disable_unref(e->lapse_timer);
	e->lapse_timer = NULL;
	give_back(e);
	el_wait(e, 100);
	e->c->lost(e->c->ctx, why);
}

static int on_lapse(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct etcd *e = ctx;

	(void)src, (void)usec;
	if (bl_boot_ns() >= e->s.held_until)
		el_lost(e, "the lease could not be kept alive in time");
	return 0;
}

/* @sent_ns: when what was answered with @ttl_s was sent */
static void held(struct etcd *e, uint64_t sent_ns, uint64_t ttl_s)
{
	uint64_t ttl = ttl_s * 1000000000ULL;

	e->ttl_ns = ttl;
	e->s.held_until = sent_ns + ttl - ttl / 5;
	sd_event_source_disable_unref(e->lapse_timer);
	e->lapse_timer = NULL;
	sd_event_add_time(e->s.ev, &e->lapse_timer, CLOCK_BOOTTIME, e->s.held_until / 1000 + 1, 1000, on_lapse, e);
}

static int keep_again(sd_event_source *src, uint64_t usec, void *ctx);

static void kept(struct req *q, enum bl_store_outcome out, const struct etcd_answer *a, const char *text)
{
	struct etcd *e = q->e;

	(void)text;
	e->keeping = false;
	/* an answer to what an earlier lease asked */
	if (e->el != EL_HELD || q->epoch != e->s.epoch)
		return;
	if (out == BL_STORE_DONE && !a->ttl)
		el_lost(e, "the lease has expired");
	else if (out == BL_STORE_DONE)
		held(e, q->sent_ns, a->ttl);
}

static int keep_again(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct etcd *e = ctx;
	struct req *q;

	(void)src, (void)usec;
	if (e->el != EL_HELD)
		return 0;
	if (!e->keeping) {
		q = ask(e, R_KEEP, etcd_msg_lease(e->lease), true, kept);
		if (q) {
			q->epoch = e->s.epoch;
			e->keeping = true;
		}
	}
	bl_store_once(e->s.ev, &e->el_timer, e->ttl_ns / 5000000, keep_again, e);
	return 0;
}

static void elected(struct etcd *e, uint64_t epoch)
{
	e->el = EL_HELD;
	e->keeping = false;
	e->s.epoch = epoch;
	held(e, e->asked_ns, e->ttl_ns / 1000000000ULL);
	bl_store_once(e->s.ev, &e->el_timer, e->ttl_ns / 5000000, keep_again, e);
	if (bl_boot_ns() < e->s.held_until)
		e->c->elected(e->c->ctx, epoch);
	else
		el_lost(e, "the lease ended before it was told that it is held");
}

static void checked(struct req *q, enum bl_store_outcome out, const struct etcd_answer *a, const char *text)
{
	struct etcd *e = q->e;

	(void)text;
	if (out != BL_STORE_DONE || !a->n) {
		/* not known still, or not there: our lease would have to be made anew in any case after a while */
		give_back(e);
		el_wait(e, 200);
	} else if (a->kv[0].lease == e->lease) {
		elected(e, a->kv[0].create_rev);
	} else {
		say_other(e, a);
		give_back(e);
		el_wait(e, e->cfg.ttl_s * 500ULL);
	}
}

static void taken(struct req *q, enum bl_store_outcome out, const struct etcd_answer *a, const char *text)
{
	struct etcd *e = q->e;

	if (out == BL_STORE_DONE && a->succeeded) {
		elected(e, a->rev);
	} else if (out == BL_STORE_UNKNOWN) {
		if (!ask(e, R_RANGE, etcd_msg_range(e->leader_key, false), true, checked))
			el_wait(e, 200);
	} else {
		if (out == BL_STORE_DONE)
			say_other(e, a);
		give_back(e);
		el_wait(e, out == BL_STORE_DONE ? e->cfg.ttl_s * 500ULL : 200);
	}
	(void)text;
}

static void granted(struct req *q, enum bl_store_outcome out, const struct etcd_answer *a, const char *text)
{
	struct etcd *e = q->e;
	struct etcd_put p = { .key = e->leader_key, .create = true, .value = e->me, .len = strlen(e->me), .lease = a->lease };

	(void)text;
	if (out != BL_STORE_DONE || !a->lease || !a->ttl) {
		el_wait(e, 200);
		return;
	}
	e->lease = a->lease;
	e->ttl_ns = a->ttl * 1000000000ULL;
	e->asked_ns = q->sent_ns;
	if (!ask(e, R_TXN, etcd_msg_put(&p), false, taken))
		el_wait(e, 200);
}

static void el_take(struct etcd *e)
{
	e->el = EL_TAKE;
	/* a grant that is lost is a lease that expires by itself */
	if (!ask(e, R_GRANT, etcd_msg_grant(e->cfg.ttl_s), true, granted))
		el_wait(e, 200);
}

static void looked(struct req *q, enum bl_store_outcome out, const struct etcd_answer *a, const char *text)
{
	struct etcd *e = q->e;

	(void)text;
	if (e->el != EL_LOOK)
		return;
	if (out != BL_STORE_DONE) {
		el_wait(e, 200);
	} else if (a->n) {
		say_other(e, a);
		el_wait(e, e->cfg.ttl_s * 500ULL);
	} else {
		el_take(e);
	}
}

static void el_look(struct etcd *e)
{
	if (e->el != EL_OFF && e->el != EL_WAIT)
		return;
	e->el = EL_LOOK;
	if (!ask(e, R_RANGE, etcd_msg_range(e->leader_key, false), true, looked))
		el_wait(e, 200);
}

/* A lease may be revoked while we think that we hold it (etcd issues 15247, 12528): the watch tells at once. What happened up to our own epoch is history. */
static void el_event(void *ctx, const struct bl_store_kv *kv)
{
	struct etcd *e = ctx;

	if (e->el == EL_HELD && kv->rev > e->s.epoch)
		el_lost(e, kv->value ? "another controller was elected" : "the lease was revoked");
	else if (e->el == EL_WAIT && !kv->value)
		bl_store_once(e->s.ev, &e->el_timer, 0, el_look_again, e);
}

static void el_reset(void *ctx, const struct bl_store_reply *r)
{
	struct etcd *e = ctx;

	if (e->el == EL_HELD && r->rev >= e->s.epoch && (!r->n || r->kv[0].rev != e->s.epoch))
		el_lost(e, "the election's key is not ours any more");
}

static int etcd_campaign(struct bl_store *s, const char *me, const struct bl_store_candidate *c, struct bl_err *err)
{
	struct etcd *e = etcd_of(s);

	e->me = strdup(me);
	e->c = c;
	e->el_watcher = (struct bl_store_watcher){ .event = el_event, .reset = el_reset, .ctx = e };
	if (!e->me || watch_add(e, BL_STORE_LEADER, true, &e->el_watcher))
		return bl_fail(err, ENOMEM, "out of memory");
	el_look(e);
	return 0;
}

static size_t drop_data(char *data, size_t one, size_t n, void *ctx)
{
	(void)data, (void)ctx;
	return one * n;
}

static void etcd_resign(struct bl_store *s, unsigned int ms)
{
	struct etcd *e = etcd_of(s);
	CURL *easy = curl_easy_init();
	char *body = etcd_msg_lease(e->lease);

	if (easy && body && e->lease) {
		set_up(e, easy, R_REVOKE, body);
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop_data);
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ms);
		curl_easy_perform(easy);
	}
	if (easy)
		curl_easy_cleanup(easy);
	free(body);
	e->lease = 0;
	e->el = EL_OFF;
	sd_event_source_disable_unref(e->el_timer);
	sd_event_source_disable_unref(e->lapse_timer);
	e->el_timer = e->lapse_timer = NULL;
}

/* ---- making it ---- */

static void etcd_close(struct bl_store *s)
{
	struct etcd *e = etcd_of(s);
	unsigned int i;

	while (e->watches) {
		struct watch *w = e->watches;

		e->watches = w->next;
		sd_event_source_disable_unref(w->timer);
		free(w->key);
		free(w);
	}
	while (e->reqs)
		req_free(e->reqs);
	if (e->multi)
		curl_multi_cleanup(e->multi);
	curl_slist_free_all(e->headers);
	sd_event_source_disable_unref(e->timer);
	sd_event_source_disable_unref(e->el_timer);
	sd_event_source_disable_unref(e->lapse_timer);
	for (i = 0; e->endpoints && i < e->n; i++)
		free(e->endpoints[i]);
	free(e->endpoints);
	free(e->prefix);
	free(e->leader_key);
	free(e->me);
	free(e->ca);
	free(e->cert);
	free(e->key);
	sd_event_unref(e->s.ev);
	free(e);
}

static const struct bl_store_ops etcd_ops = { .close = etcd_close, .range = etcd_range, .put = etcd_put, .watch = etcd_watch, .campaign = etcd_campaign, .resign = etcd_resign };

static bool copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

static bool add_header(struct etcd *e, const char *text)
{
	struct curl_slist *l = curl_slist_append(e->headers, text);

	if (l)
		e->headers = l;
	return l;
}

int bl_store_etcd(struct bl_store **out, sd_event *ev, const struct bl_etcd_cfg *cfg, struct bl_err *err)
{
	struct etcd *e;
	unsigned int i;
	bool ok;

	*out = NULL;
	if (!cfg->nendpoints)
		return bl_fail(err, EINVAL, "etcd needs at least one endpoint, as http://10.0.0.1:2379");
	for (i = 0; i < cfg->nendpoints; i++)
		if (strncmp(cfg->endpoints[i], "http://", 7) && strncmp(cfg->endpoints[i], "https://", 8))
			return bl_fail(err, EINVAL, "etcd's endpoint \"%s\" is no URL, as http://10.0.0.1:2379", cfg->endpoints[i]);
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return bl_fail(err, ENOMEM, "cannot set libcurl up");
	e = calloc(1, sizeof(*e));
	if (!e)
		return bl_fail(err, ENOMEM, "out of memory");
	e->s.ops = &etcd_ops;
	e->s.ev = sd_event_ref(ev);
	e->cfg = *cfg;
	e->cfg.ttl_s = cfg->ttl_s ? cfg->ttl_s : TTL_S;
	e->cfg.request_ms = cfg->request_ms ? cfg->request_ms : e->cfg.ttl_s * 250;
	e->n = cfg->nendpoints;
	e->endpoints = calloc(e->n, sizeof(*e->endpoints));
	ok = e->endpoints && copy(&e->prefix, cfg->prefix ? cfg->prefix : "/barline/") && copy(&e->ca, cfg->ca) && copy(&e->cert, cfg->cert) && copy(&e->key, cfg->key);
	for (i = 0; ok && i < e->n; i++)
		ok = copy(&e->endpoints[i], cfg->endpoints[i]);
	ok = ok && (e->leader_key = whole(e, BL_STORE_LEADER)) && add_header(e, "Content-Type: application/json") && add_header(e, "Grpc-Metadata-hasleader: true") && add_header(e, "Expect:");
	e->multi = ok ? curl_multi_init() : NULL;
	if (!e->multi) {
		etcd_close(&e->s);
		return bl_fail(err, ENOMEM, "out of memory");
	}
	curl_multi_setopt(e->multi, CURLMOPT_SOCKETFUNCTION, want_fd);
	curl_multi_setopt(e->multi, CURLMOPT_SOCKETDATA, e);
	curl_multi_setopt(e->multi, CURLMOPT_TIMERFUNCTION, want_timer);
	curl_multi_setopt(e->multi, CURLMOPT_TIMERDATA, e);
	*out = &e->s;
	return 0;
}
