// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What both stores have in common: the lead is believed by our own clock, and a put whose outcome
 * is unknown is read back (store.h).
 *
 * Example: put(41, "failure/7", rev 0) times out. After 50 ms "failure/7" is read. If it has our
 * value, the put is done. If there is no such key, the same put is repeated. Two of them do no
 * harm: the first to arrive gives the key a revision, so that the second no longer finds
 * revision 0.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/store/store_priv.h"

#define AGAIN_MS     50  /* from the first try to the second; doubled after each try, up to ... */
#define AGAIN_MAX_MS 400 /* ... this */

/** struct bl_store_sure - A put of bl_store_put_sure() whose outcome is not known yet. */
struct bl_store_sure {
	struct bl_store_sure *next;
	struct bl_store *s;
	sd_event_source *timer; /* of the next try */
	uint64_t epoch;
	uint64_t rev; /* expected revision */
	char key[BL_STORE_KEY_MAX + 1];
	uint8_t *value;       /* NULL: delete the key */
	size_t len;           /* bytes of @value */
	bool unknown;         /* the outcome of an earlier try is not known */
	unsigned int wait_ms; /* wait before the next try */
	bl_store_fn fn;
	void *ctx;
};

const char *bl_store_why_name(enum bl_store_why why)
{
#define NAME(sym, name) [BL_STORE_WHY_##sym] = name,
	static const char *const names[BL_STORE_WHY_COUNT] = { BL_STORE_WHYS(NAME) };
#undef NAME
	return why < BL_STORE_WHY_COUNT ? names[why] : "?";
}

uint64_t bl_store_held_until(const struct bl_store *s)
{
	return s->epoch ? s->held_until : 0;
}

uint64_t bl_store_epoch(const struct bl_store *s)
{
	return s->epoch && bl_boot_ns() < s->held_until ? s->epoch : 0;
}

int bl_store_once(sd_event *ev, sd_event_source **src, uint64_t ms, sd_event_time_handler_t fn,
		  void *ctx)
{
	sd_event_source_disable_unref(*src);
	*src = NULL;
	return sd_event_add_time_relative(ev, src, CLOCK_BOOTTIME, ms * 1000, 1000, fn, ctx);
}

static void sure_end(struct bl_store_sure *u, const struct bl_store_reply *r)
{
	struct bl_store_sure **at;
	struct bl_store_reply out;

	for (at = &u->s->sure; *at; at = &(*at)->next)
		if (*at == u) {
			*at = u->next;
			break;
		}
	sd_event_source_disable_unref(u->timer);
	if (r) {
		out = *r;
		out.key = u->key;
		out.epoch = u->epoch;
		u->fn(u->ctx, &out);
	}
	free(u->value);
	free(u);
}

static void sure_try(struct bl_store_sure *u);

static int sure_later(sd_event_source *src, uint64_t usec, void *ctx)
{
	(void)src, (void)usec;
	sure_try(ctx);
	return 0;
}

static void sure_again(struct bl_store_sure *u)
{
	bl_store_once(u->s->ev, &u->timer, u->wait_ms, sure_later, u);
	u->wait_ms = u->wait_ms * 2 > AGAIN_MAX_MS ? AGAIN_MAX_MS : u->wait_ms * 2;
}

static void sure_read(void *ctx, const struct bl_store_reply *r)
{
	struct bl_store_sure *u = ctx;
	const struct bl_store_kv *kv = r->n ? r->kv : NULL;
	struct bl_store_reply out = { .outcome = BL_STORE_DONE, .rev = r->rev };

	if (r->outcome != BL_STORE_DONE) {
		sure_again(u);
		return;
	}
	if (u->value ? kv && kv->len == u->len && !memcmp(kv->value, u->value, u->len) : !kv) {
		out.rev = kv ? kv->rev : r->rev;
		sure_end(u, &out);
		return;
	}
	if (u->rev != BL_STORE_ANY && (kv ? kv->rev : 0) != u->rev) {
		out = (struct bl_store_reply){ .outcome = BL_STORE_REFUSED,
					       .why = BL_STORE_WHY_CONFLICT,
					       .text = "another process wrote the key" };
		sure_end(u, &out);
		return;
	}
	u->unknown = false;
	sure_again(u);
}

static void sure_put(void *ctx, const struct bl_store_reply *r)
{
	struct bl_store_sure *u = ctx;

	/* After CONFLICT, an earlier try of ours may have been the one that raised the revision. */
	if (r->outcome == BL_STORE_DONE ||
	    (r->outcome == BL_STORE_REFUSED && r->why == BL_STORE_WHY_FENCED)) {
		sure_end(u, r);
		return;
	}
	if (r->outcome == BL_STORE_UNKNOWN || r->why == BL_STORE_WHY_CONFLICT)
		u->unknown = true;
	sure_again(u);
}

static void sure_try(struct bl_store_sure *u)
{
	static const struct bl_store_reply fenced = { .outcome = BL_STORE_REFUSED,
						      .why = BL_STORE_WHY_FENCED,
						      .text = "this controller does not lead any "
							      "more" };

	if (bl_store_epoch(u->s) != u->epoch) {
		sure_end(u, &fenced);
		return;
	}
	if (u->unknown)
		bl_store_range(u->s, u->key, true, sure_read, u);
	else
		bl_store_put(u->s, u->epoch, u->key, u->rev, u->value, u->len, sure_put, u);
}

int bl_store_put_sure(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		      const void *value, size_t len, bl_store_fn fn, void *ctx)
{
	struct bl_store_sure *u;

	if (!*key || strlen(key) > BL_STORE_KEY_MAX || len > BL_STORE_VALUE_MAX)
		return -EINVAL;
	u = calloc(1, sizeof(*u));
	if (u && value) {
		u->value = malloc(len ? len : 1);
		if (u->value)
			memcpy(u->value, value, len);
	}
	if (!u || (value && !u->value)) {
		free(u);
		return -ENOMEM;
	}
	u->s = s;
	u->epoch = epoch;
	u->rev = rev;
	strcpy(u->key, key);
	u->len = len;
	u->wait_ms = AGAIN_MS;
	u->fn = fn;
	u->ctx = ctx;
	u->next = s->sure;
	s->sure = u;
	/* From the loop: callbacks never come from within a call. */
	return bl_store_once(s->ev, &u->timer, 0, sure_later, u);
}

void bl_store_range(struct bl_store *s, const char *prefix, bool one, bl_store_fn fn, void *ctx)
{
	s->ops->range(s, prefix, one, fn, ctx);
}

void bl_store_put(struct bl_store *s, uint64_t epoch, const char *key, uint64_t rev,
		  const void *value, size_t len, bl_store_fn fn, void *ctx)
{
	s->ops->put(s, epoch, key, rev, value, len, fn, ctx);
}

int bl_store_watch(struct bl_store *s, const char *prefix, const struct bl_store_watcher *w)
{
	return s->ops->watch(s, prefix, w);
}

int bl_store_campaign(struct bl_store *s, const char *me, const struct bl_store_candidate *c,
		      struct bl_err *err)
{
	return s->ops->campaign(s, me, c, err);
}

const char *bl_store_waits(const struct bl_store *s, char *text, size_t size)
{
	*text = 0;
	if (!s->epoch && s->ops->waits)
		s->ops->waits(s, text, size);
	return text;
}

void bl_store_resign(struct bl_store *s, unsigned int ms)
{
	if (s->epoch)
		s->ops->resign(s, ms);
	s->epoch = 0;
}

void bl_store_close(struct bl_store *s)
{
	if (!s)
		return;
	while (s->sure)
		sure_end(s->sure, NULL);
	s->ops->close(s);
}

bool bl_store_url_is_local(const char *url)
{
	const char *at = strstr(url, "://"), *end;
	char host[sizeof("127.100.100.100")];
	struct in_addr in;
	size_t n;

	at = at ? at + 3 : url;
	n = *at == '[' ? strcspn(at, "]") + 1 : strcspn(at, "/:");
	/* Nothing but a port and a path follows: in http://127.0.0.1:1@evil the host is evil. */
	end = n <= strlen(at) ? at + n : "?";
	if (*end == ':')
		end += 1 + strspn(end + 1, "0123456789");
	if ((*end && *end != '/') || n >= sizeof(host))
		return false;
	memcpy(host, at, n);
	host[n] = 0;
	/* One spelling of each: what else may stand for a loopback address is not taken for one. */
	return !strcmp(host, "[::1]") || !strcmp(host, "localhost") ||
	       (inet_pton(AF_INET, host, &in) == 1 && ntohl(in.s_addr) >> 24 == 127);
}
