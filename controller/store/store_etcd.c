// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The store in etcd (etcd_gateway.h): reads, writes under a fence, watches, and the election.
 *
 * The election makes the key "leader", with a lease, if it does not exist. The revision at which
 * the key was made is the epoch. etcd's own election is a request that blocks; one transaction is
 * easier to reason about. The steps, with times in s:
 *
 *   read "leader"   if it exists, its owner leads; read again when it is deleted, and after half a
 *                   lease in any case
 *   grant a lease   of 5 s, granted at 100.000 (the time at which it was asked for)
 *   make "leader"   at revision 41: epoch 41, held until 100.000 + 5 s - 1 s
 *   keep it alive   every second; an answer without TTL means that the lease is lost. The lead is
 *                   held until one second before the lease ends, counted from when the last
 *                   keep-alive that succeeded was sent
 *
 * Whether etcd believes that the lease lives is never asked: our own clock decides, and the fence.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/etcd_gateway.h"

/*
 * A stream that is silent for longer than this is opened anew. No event is lost, since the new one
 * begins at a revision.
 */
#define WATCH_IDLE_MS  15000
#define WATCH_AGAIN_MS 100 /* before a stream that has ended is opened anew */

struct etcd;

/** struct watch - A watch of a key, or of all keys with a prefix. */
struct watch {
	struct watch *next;
	struct etcd *e;
	const struct bl_store_watcher *w;
	char *key;               /* the key or the prefix, without the prefix of the store */
	bool one;                /* only the key itself */
	uint64_t next_rev;       /* first revision that was not reported yet; 0: read all keys */
	struct etcd_req *stream; /* NULL: none is open */
	sd_event_source *timer;  /* opens the stream anew */
};

/* Where the election is. */
enum election {
	EL_OFF,  /* no campaign */
	EL_READ, /* "leader" is being read */
	EL_WAIT, /* waits until it is read again */
	EL_TAKE, /* a lease is being granted, or "leader" being made */
	EL_HELD, /* we lead */
};

/** struct etcd - The store. */
struct etcd {
	struct bl_store s;
	struct bl_etcd_cfg cfg;
	struct etcd_gateway g;
	char *prefix;     /* of all keys */
	char *leader_key; /* BL_STORE_LEADER with the prefix */
	struct watch *watches;
	bool troubled; /* the candidate was told of an error that is not over */
	/* the election */
	enum election el;
	const struct bl_store_candidate *c;
	char *me;                     /* value of "leader" while we lead */
	uint64_t lease;               /* 0: none */
	uint64_t ttl_ns;              /* of the lease, as granted or kept alive last */
	uint64_t asked_ns;            /* CLOCK_BOOTTIME at which the lease was asked for */
	bool keeping;                 /* a keep-alive is under way */
	sd_event_source *el_timer;    /* next step: reading "leader", or a keep-alive */
	sd_event_source *lapse_timer; /* when the lead may no longer be believed */
	struct bl_store_watcher el_watcher;
};

static struct etcd *etcd_of(struct bl_store *s)
{
	return (struct etcd *)s;
}

static char *whole_key(struct etcd *e, const char *key)
{
	char *t = NULL;

	return asprintf(&t, "%s%s", e->prefix, key) < 0 ? NULL : t;
}

/* ---- reading and writing ---- */

static struct bl_store_kv *plain_kvs(const struct etcd_answer *a)
{
	struct bl_store_kv *v = calloc(a->n ? a->n : 1, sizeof(*v));
	size_t i;

	for (i = 0; v && i < a->n; i++)
		v[i] = a->kv[i].kv;
	return v;
}

static void range_end(struct etcd_req *q, enum bl_store_outcome out, const struct etcd_answer *a,
		      const char *text)
{
	struct bl_store_reply r = {
		.outcome = out == BL_STORE_DONE ? BL_STORE_DONE : BL_STORE_REFUSED,
		.why = out == BL_STORE_DONE ? BL_STORE_WHY_NONE : BL_STORE_WHY_DOWN,
		.rev = a->rev,
		.n = a->n,
		.text = text,
		.epoch = q->epoch
	};
	struct bl_store_kv *v = plain_kvs(a);

	r.kv = v;
	if (!v)
		r = (struct bl_store_reply){ .outcome = BL_STORE_REFUSED,
					     .why = BL_STORE_WHY_DOWN,
					     .text = "out of memory",
					     .epoch = q->epoch };
	q->user(q->ctx, &r);
	free(v);
}

static void etcd_range(struct bl_store *s, const char *prefix, bool one, bl_store_fn fn, void *ctx)
{
	struct etcd *e = etcd_of(s);
	char *key = whole_key(e, prefix);
	struct etcd_req *q = etcd_ask(&e->g, ETCD_RANGE, key ? etcd_msg_range(key, !one) : NULL,
				      true, range_end);

	free(key);
	if (q) {
		q->user = fn;
		q->ctx = ctx;
		q->epoch = s->epoch;
	}
}

static void el_lost(struct etcd *e, const char *why);

static void put_end(struct etcd_req *q, enum bl_store_outcome out, const struct etcd_answer *a,
		    const char *text)
{
	struct bl_store_reply r = { .outcome = out,
				    .why = out == BL_STORE_REFUSED ? BL_STORE_WHY_DOWN
								   : BL_STORE_WHY_NONE,
				    .rev = a->rev,
				    .text = text };
	struct etcd *e = q->g->ctx;
	uint64_t epoch = q->epoch;

	if (out == BL_STORE_DONE && !a->succeeded) {
		bool ours = a->n && !strcmp(a->kv[0].kv.key, BL_STORE_LEADER) &&
			    a->kv[0].create_rev == epoch;

		r.outcome = BL_STORE_REFUSED;
		r.why = ours ? BL_STORE_WHY_CONFLICT : BL_STORE_WHY_FENCED;
		r.text = ours ? "another process wrote the key" : "another controller leads";
	}
	q->user(q->ctx, &r);
	if (r.why == BL_STORE_WHY_FENCED && e->s.epoch == epoch)
		el_lost(e, "another controller leads (a write was fenced)");
}

static void etcd_put(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		     const void *value, size_t len, bl_store_fn fn, void *ctx)
{
	struct etcd *e = etcd_of(s);
	/* Epoch 0 never leads: no key was made at the highest of all revisions. */
	struct etcd_put p = { .fence = e->leader_key,
			      .fence_rev = epoch ? epoch : INT64_MAX,
			      .rev = rev,
			      .value = value,
			      .len = len };
	char *key_text = whole_key(e, key);
	struct etcd_req *q;

	p.key = key_text;
	q = etcd_ask(&e->g, ETCD_TXN, key_text ? etcd_msg_put(&p) : NULL, false, put_end);
	free(key_text);
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
		etcd_req_free(w->stream);
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
	/* If the request cannot even be made, this timer tries again; an answer comes earlier. */
	bl_store_once(w->e->s.ev, &w->timer, WATCH_IDLE_MS, watch_again, w);
	etcd_range(&w->e->s, w->key, w->one, watch_have, w);
}

static void stream_end(struct etcd_req *q, enum bl_store_outcome out, const struct etcd_answer *a,
		       const char *text)
{
	struct watch *w = q->ctx;

	(void)out, (void)a, (void)text;
	w->stream = NULL;
	bl_store_once(w->e->s.ev, &w->timer, WATCH_AGAIN_MS, watch_again, w);
}

static void watch_open(struct watch *w)
{
	char *key = whole_key(w->e, w->key);

	/* The first line of the stream is "created". */
	bl_store_once(w->e->s.ev, &w->timer, 2ULL * w->e->cfg.request_ms, watch_again, w);
	w->stream = etcd_ask(&w->e->g, ETCD_WATCH,
			     key ? etcd_msg_watch(key, !w->one, w->next_rev) : NULL, true,
			     stream_end);
	if (w->stream)
		w->stream->ctx = w;
	free(key);
}

/* Handles one line of the stream. Returns false if the stream has ended. */
static bool watch_line(struct watch *w, const char *line, size_t len)
{
	struct etcd_answer a;
	size_t i;
	bool more;

	etcd_msg_read(line, len, w->e->prefix, true, &a);
	more = a.sound && !a.error && !a.canceled;
	/* The revisions in between are compacted: read all keys, and go on from there. */
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
	struct etcd_req *q = w->stream;
	char *in = q->in, *end;
	size_t at = 0, len = q->len;

	/*
	 * The callbacks may send further requests, but this stream stays: only watch_again() and
	 * the end of the stream free it.
	 */
	q->in = NULL;
	q->len = 0;
	bl_store_once(w->e->s.ev, &w->timer, WATCH_IDLE_MS, watch_again, w);
	while (at < len && (end = memchr(in + at, '\n', len - at))) {
		if (!watch_line(w, in + at, (size_t)(end - in) - at)) {
			etcd_gateway_leave(&w->e->g, q);
			w->stream = NULL;
			etcd_req_free(q);
			free(in);
			bl_store_once(w->e->s.ev, &w->timer, w->next_rev ? WATCH_AGAIN_MS : 0,
				      watch_again, w);
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

static void on_turn(void *ctx)
{
	struct etcd *e = ctx;
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

static void el_read(struct etcd *e);
static void el_take(struct etcd *e);

static int el_read_again(sd_event_source *src, uint64_t usec, void *ctx)
{
	(void)src, (void)usec;
	el_read(ctx);
	return 0;
}

static void el_wait(struct etcd *e, uint64_t ms)
{
	e->el = EL_WAIT;
	bl_store_once(e->s.ev, &e->el_timer, ms, el_read_again, e);
}

static void ignore_end(struct etcd_req *q, enum bl_store_outcome out, const struct etcd_answer *a,
		       const char *text)
{
	(void)q, (void)out, (void)a, (void)text;
}

static void revoke_lease(struct etcd *e)
{
	if (e->lease)
		etcd_ask(&e->g, ETCD_REVOKE, etcd_msg_lease(e->lease), true, ignore_end);
	e->lease = 0;
}

static void report_other(struct etcd *e, const struct etcd_answer *a)
{
	/* A value is followed by a 0 that is not counted (etcd_unb64). */
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
	revoke_lease(e);
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

/* The lease is alive for @ttl_s seconds from @sent_ns on, when the request was sent. */
static void extend_lead(struct etcd *e, uint64_t sent_ns, uint64_t ttl_s)
{
	uint64_t ttl = ttl_s * 1000000000ULL;

	e->ttl_ns = ttl;
	e->s.held_until = sent_ns + ttl - ttl / 5;
	sd_event_source_disable_unref(e->lapse_timer);
	e->lapse_timer = NULL;
	sd_event_add_time(e->s.ev, &e->lapse_timer, CLOCK_BOOTTIME, e->s.held_until / 1000 + 1,
			  1000, on_lapse, e);
}

static int keep_again(sd_event_source *src, uint64_t usec, void *ctx);

static void on_kept(struct etcd_req *q, enum bl_store_outcome out, const struct etcd_answer *a,
		    const char *text)
{
	struct etcd *e = q->g->ctx;

	(void)text;
	e->keeping = false;
	/* The answer belongs to an earlier lease. */
	if (e->el != EL_HELD || q->epoch != e->s.epoch)
		return;
	if (out == BL_STORE_DONE && !a->ttl)
		el_lost(e, "the lease has expired");
	else if (out == BL_STORE_DONE)
		extend_lead(e, q->sent_ns, a->ttl);
}

static int keep_again(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct etcd *e = ctx;
	struct etcd_req *q;

	(void)src, (void)usec;
	if (e->el != EL_HELD)
		return 0;
	if (!e->keeping) {
		q = etcd_ask(&e->g, ETCD_KEEP, etcd_msg_lease(e->lease), true, on_kept);
		if (q) {
			q->epoch = e->s.epoch;
			e->keeping = true;
		}
	}
	bl_store_once(e->s.ev, &e->el_timer, e->ttl_ns / 5000000, keep_again, e);
	return 0;
}

static void become_leader(struct etcd *e, uint64_t epoch)
{
	e->el = EL_HELD;
	e->keeping = false;
	e->s.epoch = epoch;
	extend_lead(e, e->asked_ns, e->ttl_ns / 1000000000ULL);
	bl_store_once(e->s.ev, &e->el_timer, e->ttl_ns / 5000000, keep_again, e);
	if (bl_boot_ns() < e->s.held_until)
		e->c->elected(e->c->ctx, epoch);
	else
		el_lost(e, "the lease ended before this controller was told that it had it");
}

static void on_checked(struct etcd_req *q, enum bl_store_outcome out, const struct etcd_answer *a,
		       const char *text)
{
	struct etcd *e = q->g->ctx;

	(void)text;
	if (out != BL_STORE_DONE || !a->n) {
		/*
		 * Still unknown, or the key does not exist. Our lease may end soon, so begin again
		 * with a new one.
		 */
		revoke_lease(e);
		el_wait(e, 200);
	} else if (a->kv[0].lease == e->lease && a->kv[0].create_rev) {
		become_leader(e, a->kv[0].create_rev);
	} else {
		report_other(e, a);
		revoke_lease(e);
		el_wait(e, e->cfg.ttl_s * 500ULL);
	}
}

static void on_taken(struct etcd_req *q, enum bl_store_outcome out, const struct etcd_answer *a,
		     const char *text)
{
	struct etcd *e = q->g->ctx;

	/* Epoch 0 is none: an answer without a revision says no more than none at all. */
	if (out == BL_STORE_DONE && a->succeeded && a->rev) {
		become_leader(e, a->rev);
	} else if (out == BL_STORE_UNKNOWN || a->succeeded) {
		if (!etcd_ask(&e->g, ETCD_RANGE, etcd_msg_range(e->leader_key, false), true,
			      on_checked))
			el_wait(e, 200);
	} else {
		if (out == BL_STORE_DONE)
			report_other(e, a);
		revoke_lease(e);
		el_wait(e, out == BL_STORE_DONE ? e->cfg.ttl_s * 500ULL : 200);
	}
	(void)text;
}

static void on_granted(struct etcd_req *q, enum bl_store_outcome out, const struct etcd_answer *a,
		       const char *text)
{
	struct etcd *e = q->g->ctx;
	struct etcd_put p = { .key = e->leader_key,
			      .create = true,
			      .value = e->me,
			      .len = strlen(e->me),
			      .lease = a->lease };

	(void)text;
	if (out != BL_STORE_DONE || !a->lease || !a->ttl) {
		el_wait(e, 200);
		return;
	}
	e->lease = a->lease;
	e->ttl_ns = a->ttl * 1000000000ULL;
	e->asked_ns = q->sent_ns;
	if (!etcd_ask(&e->g, ETCD_TXN, etcd_msg_put(&p), false, on_taken))
		el_wait(e, 200);
}

static void el_take(struct etcd *e)
{
	e->el = EL_TAKE;
	/* If the answer is lost, the lease expires by itself. */
	if (!etcd_ask(&e->g, ETCD_GRANT, etcd_msg_grant(e->cfg.ttl_s), true, on_granted))
		el_wait(e, 200);
}

static void on_read(struct etcd_req *q, enum bl_store_outcome out, const struct etcd_answer *a,
		    const char *text)
{
	struct etcd *e = q->g->ctx;

	(void)text;
	if (e->el != EL_READ)
		return;
	if (out != BL_STORE_DONE) {
		el_wait(e, 200);
	} else if (a->n) {
		report_other(e, a);
		el_wait(e, e->cfg.ttl_s * 500ULL);
	} else {
		el_take(e);
	}
}

static void el_read(struct etcd *e)
{
	if (e->el != EL_OFF && e->el != EL_WAIT)
		return;
	e->el = EL_READ;
	if (!etcd_ask(&e->g, ETCD_RANGE, etcd_msg_range(e->leader_key, false), true, on_read))
		el_wait(e, 200);
}

/*
 * A lease may be revoked while we believe that we hold it (etcd issues 15247, 12528); the watch
 * tells at once. Events up to our own epoch are history.
 */
static void el_event(void *ctx, const struct bl_store_kv *kv)
{
	struct etcd *e = ctx;

	if (e->el == EL_HELD && kv->rev > e->s.epoch)
		el_lost(e, kv->value ? "another controller was elected" : "the lease was revoked");
	else if (e->el == EL_WAIT && !kv->value)
		bl_store_once(e->s.ev, &e->el_timer, 0, el_read_again, e);
}

static void el_reset(void *ctx, const struct bl_store_reply *r)
{
	struct etcd *e = ctx;

	if (e->el == EL_HELD && r->rev >= e->s.epoch && (!r->n || r->kv[0].rev != e->s.epoch))
		el_lost(e, "the election's key is not ours any more");
}

static int etcd_campaign(struct bl_store *s, const char *me, const struct bl_store_candidate *c,
			 struct bl_err *err)
{
	struct etcd *e = etcd_of(s);

	e->me = strdup(me);
	e->c = c;
	e->el_watcher = (struct bl_store_watcher){ .event = el_event, .reset = el_reset, .ctx = e };
	if (!e->me || watch_add(e, BL_STORE_LEADER, true, &e->el_watcher))
		return bl_fail(err, ENOMEM, "out of memory");
	el_read(e);
	return 0;
}

static void etcd_resign(struct bl_store *s, unsigned int ms)
{
	struct etcd *e = etcd_of(s);
	char *body = etcd_msg_lease(e->lease);

	if (body && e->lease)
		etcd_ask_now(&e->g, ETCD_REVOKE, body, ms);
	free(body);
	e->lease = 0;
	e->el = EL_OFF;
	sd_event_source_disable_unref(e->el_timer);
	sd_event_source_disable_unref(e->lapse_timer);
	e->el_timer = e->lapse_timer = NULL;
}

/* ---- opening and closing ---- */

/* Every error is reported to the candidate, and once that it is over. */
static void on_outcome(void *ctx, const char *text)
{
	struct etcd *e = ctx;

	if ((text || e->troubled) && e->c && e->c->trouble)
		e->c->trouble(e->c->ctx, text);
	e->troubled = text != NULL;
}

static void etcd_close(struct bl_store *s)
{
	struct etcd *e = etcd_of(s);

	while (e->watches) {
		struct watch *w = e->watches;

		e->watches = w->next;
		sd_event_source_disable_unref(w->timer);
		free(w->key);
		free(w);
	}
	etcd_gateway_close(&e->g);
	sd_event_source_disable_unref(e->el_timer);
	sd_event_source_disable_unref(e->lapse_timer);
	free(e->prefix);
	free(e->leader_key);
	free(e->me);
	sd_event_unref(e->s.ev);
	free(e);
}

static const struct bl_store_ops etcd_ops = { .close = etcd_close,
					      .range = etcd_range,
					      .put = etcd_put,
					      .watch = etcd_watch,
					      .campaign = etcd_campaign,
					      .resign = etcd_resign };

int bl_store_etcd(struct bl_store **out, sd_event *ev, const struct bl_etcd_cfg *cfg,
		  struct bl_err *err)
{
	struct etcd *e = calloc(1, sizeof(*e));
	int rc;

	*out = NULL;
	if (!e)
		return bl_fail(err, ENOMEM, "out of memory");
	e->s.ops = &etcd_ops;
	e->s.ev = sd_event_ref(ev);
	e->cfg = *cfg;
	e->cfg.ttl_s = cfg->ttl_s ? cfg->ttl_s : BL_STORE_TTL_S;
	e->cfg.request_ms = cfg->request_ms ? cfg->request_ms : e->cfg.ttl_s * 250;
	e->prefix = strdup(cfg->prefix ? cfg->prefix : BL_STORE_PREFIX);
	e->leader_key = e->prefix ? whole_key(e, BL_STORE_LEADER) : NULL;
	e->g = (struct etcd_gateway){ .ev = ev,
				      .request_ms = e->cfg.request_ms,
				      .strip = e->prefix,
				      .turned = on_turn,
				      .outcome = on_outcome,
				      .ctx = e };
	rc = etcd_gateway_open(&e->g, cfg, err);
	if (!rc && !e->leader_key)
		rc = bl_fail(err, ENOMEM, "out of memory");
	if (rc) {
		etcd_close(&e->s);
		return rc;
	}
	*out = &e->s;
	return 0;
}
