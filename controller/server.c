// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See server.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/netns.h"
#include "maps/meta_abi.h"
#include "base/time.h"
#include "server_priv.h"

#define MS 1000000ULL

static uint64_t mono(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static uint64_t unix_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* ---- the store ---- */

static struct saved *saved_of(struct bl_ctl *c, enum bl_recover_do what, uint64_t id)
{
	struct saved *v;

	for (v = c->saved; v; v = v->next)
		if (v->what == what && v->id == id)
			return v;
	v = calloc(1, sizeof(*v));
	if (v) {
		*v = (struct saved){ .next = c->saved, .c = c, .what = what, .id = id };
		c->saved = v;
	}
	return v;
}

static void forget_saved(struct bl_ctl *c)
{
	while (c->saved) {
		struct saved *v = c->saved;

		c->saved = v->next;
		free(v);
	}
}

static void turn(struct bl_ctl *c);

static void die(struct bl_ctl *c, const char *why)
{
	bl_fail(&c->fatal, EIO, "%s", why);
	bl_log(BL_LOG_ERR, "controller: %s", why);
	c->stop = true;
}

static void on_saved(void *ctx, const struct bl_store_reply *r)
{
	struct saved *v = ctx;
	struct bl_ctl *c = v->c;

	/* fenced: `lost` comes, if it has not; what is remembered goes then */
	if (r->outcome != BL_STORE_DONE && r->why == BL_STORE_WHY_FENCED)
		return;
	if (r->outcome != BL_STORE_DONE) {
		char why[600];

		snprintf(why, sizeof(why),
			 "cannot save: %s; somebody else writes under this controller's prefix",
			 r->text);
		die(c, why);
		return;
	}
	v->rev = r->rev;
	if (v->epoch != bl_recover_epoch(c->rec))
		return;
	if (v->what == BL_RECOVER_SAVE_NODE)
		bl_recover_saved_node(c->rec, mono(), (uint32_t)v->id);
	else if (v->what == BL_RECOVER_SAVE_FAILURE)
		bl_recover_saved_failure(c->rec, mono(), v->id);
	turn(c);
}

static void on_dropped(void *ctx, const struct bl_store_reply *r)
{
	(void)ctx, (void)r; /* an old failure that stays is harmless */
}

static void save(struct bl_ctl *c, const struct bl_recover_out *o)
{
	uint64_t id = o->what == BL_RECOVER_SAVE_NODE ? o->node : o->number;
	struct saved *v = saved_of(c, o->what, id);
	struct ctl_bytes b = { 0 };
	char key[64];

	if (o->what == BL_RECOVER_SAVE_NODE) {
		snprintf(key, sizeof(key), "node/%08x", o->node);
		b = ctl_save_node(bl_recover_node(c->rec, o->node));
	} else {
		const struct bl_recover_failure *f = bl_recover_failure(c->rec, o->number);

		snprintf(key, sizeof(key), "failure/%010" PRIu64, o->number);
		if (v && !v->unix_ns)
			v->unix_ns = unix_ns();
		b = ctl_save_failure(f, v ? v->unix_ns : 0);
	}
	if (!v || !b.data ||
	    bl_store_put_sure(c->store, c->elected, key, v->rev, b.data, b.len, on_saved, v))
		die(c, "out of memory, or a record that is too large");
	else
		v->epoch = c->elected;
	free(b.data);
}

static void drop(struct bl_ctl *c, uint64_t number)
{
	char key[64];

	snprintf(key, sizeof(key), "failure/%010" PRIu64, number);
	bl_store_put_sure(c->store, c->elected, key, BL_STORE_ANY, NULL, 0, on_dropped, c);
}

/* ---- orders ---- */

static struct peer *peer_of(struct bl_ctl *c, uint32_t node)
{
	struct peer *p;

	for (p = c->peers; p && p->node != node; p = p->next)
		;
	return p;
}

void ctl_send(struct peer *p, struct ctl_bytes b)
{
	if (b.data)
		bl_session_send(p->session, b.data, b.len);
	free(b.data);
}

struct peer *ctl_peer_ready(struct bl_ctl *c, uint32_t id)
{
	const struct bl_recover_node *n = bl_recover_node(c->rec, id);

	/* what comes before WELCOME is no order for an agent */
	return n && n->connected && n->saved && !n->welcome ? peer_of(c, id) : NULL;
}

static void give(struct bl_ctl *c, const struct bl_recover_out *o)
{
	const struct bl_recover_node *n = bl_recover_node(c->rec, o->node);
	struct peer *p = peer_of(c, o->node);

	/* the last look at the clock before anything leaves */
	if (!p || !n || bl_store_epoch(c->store) != c->elected)
		return;
	switch (o->what) {
	case BL_RECOVER_WELCOME:
		ctl_send(p, ctl_welcome(c->elected, o->number, c->cfg.answer_ms, c->cfg.stuck_ms));
		break;
	case BL_RECOVER_PUT_OUT:
		ctl_send(p,
			 ctl_put_out(c->elected, (uint16_t)o->number, (uint16_t)(o->number >> 16)));
		break;
	case BL_RECOVER_AWAY:
		ctl_send(p, ctl_away(c->elected));
		break;
	case BL_RECOVER_BAR:
		ctl_send(p, ctl_bar(c->elected, n));
		break;
	case BL_RECOVER_FREEZE:
		ctl_send(p, ctl_freeze(c->elected, n));
		break;
	case BL_RECOVER_FAIL:
		ctl_send(p, ctl_failure(c->elected, bl_recover_failure(c->rec, o->number), false,
					o->node));
		break;
	case BL_RECOVER_RESUME:
		ctl_send(p, ctl_failure(c->elected, bl_recover_failure(c->rec, o->number), true,
					o->node));
		break;
	default:
		break;
	}
}

static int on_due(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_ctl *c = ctx;

	(void)src, (void)usec;
	bl_recover_tick(c->rec, mono());
	turn(c);
	return 0;
}

/* What the procedure wants done, and when it wants to be asked again. */
static void turn(struct bl_ctl *c)
{
	struct bl_recover_out o;
	uint64_t due;

	while (bl_recover_next(c->rec, &o)) {
		if (o.what == BL_RECOVER_SAVE_NODE || o.what == BL_RECOVER_SAVE_FAILURE)
			save(c, &o);
		else if (o.what == BL_RECOVER_DROP_FAILURE)
			drop(c, o.number);
		else
			give(c, &o);
	}
	due = bl_recover_due(c->rec);
	if (due == UINT64_MAX) {
		sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
	} else {
		sd_event_source_set_time(c->timer, due / 1000 + 1);
		sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
	}
}

/* ---- sessions ---- */

static void peer_gone(struct peer *p)
{
	struct bl_ctl *c = p->c;
	struct peer **at;

	for (at = &c->peers; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	c->npeers--;
	c->strangers -= !p->node;
	if (p->node && !peer_of(c, p->node))
		bl_recover_bye(c->rec, mono(), p->node);
	free(p);
}

static void hang_up(struct peer *p)
{
	bl_session_close(p->session);
	peer_gone(p);
}

/* who does not lead says who does, and that is the end of the session */
static void send_away(struct peer *p)
{
	struct bl_ctl *c = p->c;
	const char *why = *c->trouble  ? c->trouble
			  : c->elected ? "it is about to lead"
				       : "it does not lead";
	char text[600];

	if (!*c->trouble && !c->elected && *bl_store_waits(c->store, text, sizeof(text)))
		why = text;
	ctl_send(p, ctl_not_leading(c->elected ? "" : c->leader, why));
	bl_session_end(p->session);
}

bool ctl_leading(const struct bl_ctl *c)
{
	return c->elected && !c->loading && bl_store_epoch(c->store) == c->elected;
}

static void note(struct bl_ctl *c, enum bl_recover_reason r)
{
	c->reasons[r]++;
}

/* False: the session is over. */
static bool on_hello(struct peer *p, const Bl__Hello *m)
{
	struct bl_recover_port *port = NULL;
	uint8_t(*addr)[16] = NULL;
	struct bl_ctl *c = p->c;
	uint16_t *endpoint = NULL;
	struct bl_recover_hello h;
	struct peer *old;
	enum bl_recover_reason r = BL_RECOVER_BAD_HELLO;

	if (!ctl_leading(c)) {
		send_away(p);
		return true;
	}
	if (p->node && p->node != m->node) {
		c->counts[CTL_STRANGER]++;
		return false;
	}
	if (ctl_hello(m, &h, &port, &endpoint, &addr)) {
		/*
		 * a session of before, whose end was not heard of yet; it is the same node if the
		 * numbers are as they should be
		 */
		old = m->node ? peer_of(c, m->node) : NULL;
		if (old && old != p)
			hang_up(old);
		if (!p->node)
			c->strangers--;
		p->node = m->node;
		p->epoch = m->epoch;
		if (m->epoch > c->elected && m->epoch > c->behind) {
			if (!c->behind) /* once: whoever says higher and higher ones must not fill
					   the log */
				bl_log(BL_LOG_ERR,
				       "controller: node %08x obeys epoch %" PRIu64
				       " already, and will not obey %" PRIu64 ": the store is new, "
				       "or an old copy",
				       m->node, m->epoch, c->elected);
			c->behind = m->epoch;
		}
		r = bl_recover_hello(c->rec, mono(), &h);
		if (!p->node)
			c->strangers++;
	}
	free(port);
	free(addr);
	free(endpoint);
	note(c, r);
	return r == BL_RECOVER_OK;
}

static enum bl_recover_reason proc_down(struct bl_ctl *c, uint32_t node, uint64_t now,
					const Bl__ProcDown *m)
{
	const struct bl_recover_proc p = { .port = (uint16_t)m->endpoint,
					   .life = (uint16_t)m->life,
					   .why = m->why < BL_WHY_COUNT ? (uint8_t)m->why
									: BL_WHY_UNKNOWN,
					   .t = m->t };

	return m->endpoint > UINT16_MAX || m->life > UINT16_MAX
		       ? BL_RECOVER_UNKNOWN_PORT
		       : bl_recover_proc_down(c->rec, now, node, &p);
}

static enum bl_recover_reason proc_stuck(struct bl_ctl *c, uint32_t node, uint64_t now,
					 const Bl__ProcStuck *m)
{
	struct bl_recover_stuck s = {
		.from = { .port = (uint16_t)m->endpoint, .life = (uint16_t)m->from_life },
		.to = { .port = (uint16_t)m->port, .life = (uint16_t)m->life }
	};

	if (m->addr.len != sizeof(s.addr) || m->endpoint > UINT16_MAX ||
	    m->from_life > UINT16_MAX || m->port > UINT16_MAX || m->life > UINT16_MAX)
		return BL_RECOVER_UNKNOWN_PORT;
	memcpy(s.addr, m->addr.data, sizeof(s.addr));
	return bl_recover_proc_stuck(c->rec, now, node, &s);
}

static bool take(struct peer *p, const Bl__ToController *m)
{
	struct bl_ctl *c = p->c;
	uint64_t now = mono();
	enum bl_recover_reason r = BL_RECOVER_OK;

	if (m->what_case == BL__TO_CONTROLLER__WHAT_PING) {
		ctl_send(p, ctl_ping(m->ping->number));
		return true;
	}
	if (m->what_case == BL__TO_CONTROLLER__WHAT_HELLO)
		return on_hello(p, m->hello);
	if (m->what_case == BL__TO_CONTROLLER__WHAT__NOT_SET) {
		c->counts[CTL_BAD_MESSAGE]++;
		return false;
	}
	if (!ctl_leading(c)) {
		send_away(p);
		return true;
	}
	if (!p->node) {
		c->counts[CTL_STRANGER]++;
		return false;
	}
	if (m->what_case == BL__TO_CONTROLLER__WHAT_FORWARD)
		return ctl_forward(p, m->forward);
	if (m->what_case == BL__TO_CONTROLLER__WHAT_ADMITTED) {
		ctl_admit_heard(c, p->node, m->admitted);
		return true;
	}
	switch (m->what_case) {
	case BL__TO_CONTROLLER__WHAT_LINK_DOWN:
		r = bl_recover_link_down(c->rec, now, p->node, m->link_down->port,
					 m->link_down->neighbour, m->link_down->c,
					 m->link_down->death);
		break;
	case BL__TO_CONTROLLER__WHAT_PROC_DOWN:
		r = proc_down(c, p->node, now, m->proc_down);
		break;
	case BL__TO_CONTROLLER__WHAT_AWAY:
		r = bl_recover_away(c->rec, now, p->node, m->away->ms * MS);
		break;
	case BL__TO_CONTROLLER__WHAT_PROC_STUCK:
		r = proc_stuck(c, p->node, now, m->proc_stuck);
		break;
	case BL__TO_CONTROLLER__WHAT_BARRED:
		r = bl_recover_barred(c->rec, now, p->node, m->barred->number);
		break;
	case BL__TO_CONTROLLER__WHAT_DONE:
		r = bl_recover_done(c->rec, now, p->node, m->done->number);
		break;
	case BL__TO_CONTROLLER__WHAT_RESUMED:
		r = bl_recover_resumed(c->rec, now, p->node, m->resumed->number);
		break;
	default:
		break;
	}
	note(c, r);
	return true;
}

/*
 * What of sessions that were no good has not been said yet: at once if nothing was for a while,
 * else together. Whoever scans the port must not fill the log.
 */
static void say_bad(struct bl_ctl *c)
{
	uint64_t now = mono();

	if (!c->bad.n || (c->bad.said_ns && now < c->bad.said_ns + CTL_SAY_NS))
		return;
	if (c->bad.n == 1)
		bl_log(BL_LOG_INFO, "controller: session with %s", c->bad.last);
	else
		bl_log(BL_LOG_INFO,
		       "controller: %u more sessions were no good; the last one with %s", c->bad.n,
		       c->bad.last);
	c->bad.said_ns = now;
	c->bad.n = 0;
}

static void bad_session(struct peer *p, const char *why)
{
	struct bl_ctl *c = p->c;

	c->bad.n++;
	snprintf(c->bad.last, sizeof(c->bad.last), "%s: %s", p->addr, why);
	say_bad(c);
}

static void on_message(void *ctx, const uint8_t *body, size_t len)
{
	struct peer *p = ctx;
	struct bl_ctl *c = p->c;
	Bl__ToController *m = bl__to_controller__unpack(NULL, len, body);
	bool ok;

	p->heard_ns = mono();
	if (!m)
		c->counts[CTL_BAD_MESSAGE]++;
	ok = m && take(p, m);
	if (m)
		bl__to_controller__free_unpacked(m, NULL);
	if (!ok) {
		bad_session(p, m ? "what it said was refused" : "what it said is no message");
		hang_up(p);
	}
	turn(c);
}

static void on_up(void *ctx)
{
	((struct peer *)ctx)->heard_ns = mono();
}

static void on_down(void *ctx, const char *why)
{
	struct peer *p = ctx;
	struct bl_ctl *c = p->c;

	if (strcmp(why, "closed") && strcmp(why, "the other side closed the connection")) {
		c->counts[CTL_BAD_SESSION]++;
		bad_session(p, why);
	}
	peer_gone(p);
	turn(c);
}

static const struct bl_session_ops session_ops = { .up = on_up,
						   .message = on_message,
						   .down = on_down };

static void say_addr(const struct sockaddr_storage *sa, char *text, size_t size)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (sa->ss_family == AF_INET) {
		const struct sockaddr_in *v = (const void *)sa;

		inet_ntop(AF_INET, &v->sin_addr, ip, sizeof(ip));
		snprintf(text, size, "%s:%u", ip, ntohs(v->sin_port));
	} else if (sa->ss_family == AF_INET6) {
		const struct sockaddr_in6 *v = (const void *)sa;

		inet_ntop(AF_INET6, &v->sin6_addr, ip, sizeof(ip));
		snprintf(text, size, "[%s]:%u", ip, ntohs(v->sin6_port));
	}
}

static int on_accept(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);
	struct bl_ctl *c = ctx;
	struct bl_err err;
	struct peer *p;
	int conn;

	(void)src, (void)events;
	conn = accept4(fd, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (conn < 0)
		return 0;
	p = c->npeers < BL_CTL_SESSIONS && c->strangers < BL_CTL_STRANGERS ? calloc(1, sizeof(*p))
									   : NULL;
	if (!p) {
		c->counts[CTL_TOO_MANY]++;
		close(conn);
		return 0;
	}
	p->c = c;
	p->heard_ns = mono();
	say_addr(&sa, p->addr, sizeof(p->addr));
	if (bl_session_accept(&p->session, c->ev, conn, c->tls, &session_ops, p, &err)) {
		free(p);
		return 0;
	}
	p->next = c->peers;
	c->peers = p;
	c->npeers++;
	c->strangers++;
	c->counts[CTL_SESSIONS]++;
	return 0;
}

static int on_beat(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_ctl *c = ctx;
	uint64_t now = mono();
	struct peer *p, *next;

	(void)usec;
	for (p = c->peers; p; p = next) {
		next = p->next;
		if (now < p->heard_ns + c->cfg.silence_ms * MS)
			continue;
		c->counts[CTL_SILENT]++;
		hang_up(p);
	}
	say_bad(c);
	sd_event_source_set_time_relative(
		src, c->cfg.silence_ms > 3000 ? 1000000 : c->cfg.silence_ms * 1000ULL / 3);
	sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
	turn(c);
	return 0;
}

/* ---- leading ---- */

static void on_epoch_saved(void *ctx, const struct bl_store_reply *r)
{
	(void)ctx, (void)r; /* for people only */
}

static void add_epoch(struct bl_ctl *c, const struct epoch *e)
{
	if (c->nepochs == CTL_EPOCHS) {
		memmove(c->epochs, c->epochs + 1, (CTL_EPOCHS - 1) * sizeof(*c->epochs));
		c->nepochs--;
	}
	c->epochs[c->nepochs++] = *e;
}

static void load_one(struct bl_ctl *c, const struct bl_store_kv *kv, bool *sound)
{
	uint64_t number = 0, at = 0;
	struct saved *v;
	unsigned int id;

	if (!strncmp(kv->key, "failure/", 8)) {
		*sound &= !ctl_load_failure(c->rec, kv->value, kv->len, &number, &at);
		v = saved_of(c, BL_RECOVER_SAVE_FAILURE, number);
		*sound &= v && number == strtoull(kv->key + 8, NULL, 10);
		if (v) {
			v->rev = kv->rev;
			v->unix_ns = at;
		}
	} else if (!strncmp(kv->key, "node/", 5)) {
		*sound &= sscanf(kv->key, "node/%8x", &id) == 1 &&
			  !ctl_load_node(c->rec, kv->value, kv->len) && bl_recover_node(c->rec, id);
		v = *sound ? saved_of(c, BL_RECOVER_SAVE_NODE, id) : NULL;
		if (v)
			v->rev = kv->rev;
	} else if (!strncmp(kv->key, "epoch/", 6)) {
		Bl__Epoch *m = bl__epoch__unpack(NULL, kv->len, kv->value);
		struct epoch e = { 0 };

		if (!m)
			return;
		e.epoch = m->epoch;
		e.unix_ns = m->unix_ns;
		snprintf(e.leader, sizeof(e.leader), "%s", m->leader);
		add_epoch(c, &e);
		bl__epoch__free_unpacked(m, NULL);
	}
}

static void on_elected(void *ctx, uint64_t epoch);

static void on_loaded(void *ctx, const struct bl_store_reply *r)
{
	struct bl_ctl *c = ctx;
	struct epoch e = { .epoch = c->elected, .unix_ns = unix_ns() };
	struct ctl_bytes b;
	bool sound = true;
	char key[64];
	size_t i;

	if (!c->loading)
		return; /* of an epoch that was lost meanwhile */
	if (r->outcome != BL_STORE_DONE) {
		bl_log(BL_LOG_WARN, "controller: elected, but %s", r->text);
		bl_store_range(c->store, "", false, on_loaded, c);
		return;
	}
	bl_recover_reset(c->rec);
	forget_saved(c);
	c->nepochs = 0;
	for (i = 0; i < r->n && sound; i++) {
		load_one(c, &r->kv[i], &sound);
		if (!sound) {
			char why[400];

			snprintf(why, sizeof(why),
				 "what is saved under \"%s\" is not sound; restore the store from "
				 "a copy, or remove the key if you know what it was",
				 r->kv[i].key);
			die(c, why);
			return;
		}
	}
	c->loading = false;
	bl_recover_start(c->rec, mono(), c->elected);
	snprintf(e.leader, sizeof(e.leader), "%s", c->cfg.advertise);
	add_epoch(c, &e);
	b = ctl_save_epoch(e.epoch, e.leader, e.unix_ns);
	snprintf(key, sizeof(key), "epoch/%020" PRIu64, e.epoch);
	if (b.data)
		bl_store_put_sure(c->store, c->elected, key, 0, b.data, b.len, on_epoch_saved, c);
	free(b.data);
	bl_log(BL_LOG_INFO, "controller: leads with epoch %" PRIu64 ": %u nodes, %u failures",
	       c->elected, bl_recover_nodes(c->rec), bl_recover_failures(c->rec));
	turn(c);
}

static void on_elected(void *ctx, uint64_t epoch)
{
	struct bl_ctl *c = ctx;

	c->elected = epoch;
	c->behind = 0;
	c->loading = true;
	snprintf(c->leader, sizeof(c->leader), "%s", c->cfg.advertise);
	bl_store_range(c->store, "", false, on_loaded, c);
}

static void on_lost(void *ctx, const char *why)
{
	struct bl_ctl *c = ctx;
	struct peer *p, *next;

	bl_log(BL_LOG_WARN, "controller: leads no more (epoch %" PRIu64 "): %s", c->elected, why);
	snprintf(c->lost, sizeof(c->lost), "%s", why);
	c->elected = 0;
	c->loading = false;
	*c->leader = 0;
	ctl_admit_lost(c);
	bl_recover_reset(c->rec);
	for (p = c->peers; p; p = next) {
		next = p->next;
		send_away(p);
	}
	turn(c);
}

static void on_other(void *ctx, const char *leader)
{
	struct bl_ctl *c = ctx;

	snprintf(c->leader, sizeof(c->leader), "%s", leader);
}

static void on_trouble(void *ctx, const char *text)
{
	struct bl_ctl *c = ctx;

	if (text && !*c->trouble)
		bl_log(BL_LOG_WARN, "controller: nothing can be decided: %s; traffic goes on",
		       text);
	else if (!text)
		bl_log(BL_LOG_INFO, "controller: the store takes writes again");
	snprintf(c->trouble, sizeof(c->trouble), "%s", text ? text : "");
}

/* ---- the process ---- */

static int on_stop(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_ctl *c = ctx;
	uint64_t v;

	(void)src, (void)events;
	if (read(fd, &v, sizeof(v)) == sizeof(v))
		c->stop = true;
	return 0;
}

void bl_ctl_stop(struct bl_ctl *c)
{
	uint64_t one = 1;

	/* async-signal-safe */
	if (write(c->stop_fd, &one, sizeof(one)) < 0)
		return;
}

static char *on_status(void *ctx, char *said, size_t *len)
{
	char *text = *said ? ctl_admit_ask(ctx, said) : bl_ctl_text(ctx);

	*len = text ? strlen(text) : 0;
	return text;
}

static int open_store(struct bl_ctl *c, struct bl_err *err)
{
	const char *urls[BL_CTL_ETCD_MAX];
	struct bl_etcd_cfg e = { .endpoints = urls,
				 .nendpoints = c->cfg.netcd,
				 .prefix = *c->cfg.prefix ? c->cfg.prefix : NULL,
				 .ttl_s = c->cfg.ttl_s,
				 .ca = *c->cfg.etcd_ca ? c->cfg.etcd_ca : NULL,
				 .cert = *c->cfg.etcd_cert ? c->cfg.etcd_cert : NULL,
				 .key = *c->cfg.etcd_key ? c->cfg.etcd_key : NULL };
	unsigned int i;

	if (!*c->cfg.sqlite == !c->cfg.netcd)
		return bl_fail(err, EINVAL, "the controller needs one store: sqlite, or etcd");
	if (*c->cfg.sqlite)
		return bl_store_sqlite(&c->store, c->ev, c->cfg.sqlite, err);
	for (i = 0; i < c->cfg.netcd; i++)
		urls[i] = c->cfg.etcd[i];
	return bl_store_etcd(&c->store, c->ev, &e, err);
}

static int open_socket(struct bl_ctl *c, struct bl_err *err)
{
	struct sockaddr_storage sa;
	socklen_t len;
	int one = 1;

	if (bl_session_addr(c->cfg.listen, &sa, &len))
		return bl_fail(err, EINVAL,
			       "listen: \"%s\" is no address, as 10.0.0.1:%d or [fd00::1]:%d",
			       c->cfg.listen, BL_SESSION_PORT, BL_SESSION_PORT);
	c->listen_fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listen_fd < 0 ||
	    setsockopt(c->listen_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(c->listen_fd, (struct sockaddr *)&sa, len) || listen(c->listen_fd, 512))
		return bl_fail(err, errno, "cannot listen at %s: %s", c->cfg.listen,
			       strerror(errno));
	return 0;
}

static void defaults(struct bl_ctl_cfg *c)
{
	if (!*c->advertise)
		snprintf(c->advertise, sizeof(c->advertise), "%s", c->listen);
	c->settle_us = c->settle_us ? c->settle_us : 5000;
	c->answer_ms = c->answer_ms ? c->answer_ms : 1000;
	c->grace_ms = c->grace_ms ? c->grace_ms : 3000;
	c->silence_ms = c->silence_ms ? c->silence_ms : 3000;
	c->stuck_ms = c->stuck_ms ? c->stuck_ms : 5000;
}

int bl_ctl_new(struct bl_ctl **out, const struct bl_ctl_cfg *cfg, struct bl_err *err)
{
	struct bl_ctl *c = calloc(1, sizeof(*c));
	struct bl_recover_cfg rec;
	char door[128];
	int rc = 0;

	*out = NULL;
	if (!c)
		return bl_fail(err, ENOMEM, "out of memory");
	c->cfg = *cfg;
	defaults(&c->cfg);
	c->listen_fd = c->admit.kick_fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rec = (struct bl_recover_cfg){ .settle_ns = c->cfg.settle_us * 1000ULL,
				       .answer_ns = c->cfg.answer_ms * MS,
				       .grace_ns = c->cfg.grace_ms * MS };
	c->rec = bl_recover_new(&rec);
	if (c->stop_fd < 0 || !c->rec || sd_event_new(&c->ev) < 0)
		rc = bl_fail(err, ENOMEM, "out of memory");
	if (!rc && (*c->cfg.ca || *c->cfg.cert || *c->cfg.key))
		rc = bl_session_tls_new(&c->tls, c->cfg.ca, c->cfg.cert, c->cfg.key, err);
	if (!rc)
		rc = open_socket(c, err);
	if (!rc)
		rc = open_store(c, err);
	if (!rc &&
	    (sd_event_add_io(c->ev, &c->listen_src, c->listen_fd, EPOLLIN, on_accept, c) < 0 ||
	     sd_event_add_io(c->ev, &c->stop_src, c->stop_fd, EPOLLIN, on_stop, c) < 0 ||
	     sd_event_add_time_relative(c->ev, &c->timer, CLOCK_MONOTONIC, 0, 100, on_due, c) < 0 ||
	     sd_event_add_time_relative(c->ev, &c->beat, CLOCK_MONOTONIC, 0, 1000, on_beat, c) < 0))
		rc = bl_fail(err, ENOMEM, "cannot make an event loop");
	if (!rc)
		rc = ctl_admit_open(c, err);
	c->candidate = (struct bl_store_candidate){ on_elected, on_lost, on_other, on_trouble, c };
	if (!rc)
		rc = bl_store_campaign(c->store, c->cfg.advertise, &c->candidate, err);
	snprintf(door, sizeof(door), BL_RUN_DIR BL_CTL_STATUS_GLOB,
		 (unsigned long long)bl_netns_ino());
	bl_status_sockets_clean(door, false, NULL, NULL); /* of controllers that were killed */
	snprintf(door, sizeof(door), BL_RUN_DIR BL_CTL_STATUS, (unsigned long long)bl_netns_ino(),
		 (int)getpid());
	if (!rc)
		rc = bl_status_socket_open(&c->door, door, on_status, c, err);
	if (rc)
		bl_ctl_free(c);
	else
		*out = c;
	return rc;
}

int bl_ctl_run(struct bl_ctl *c, struct bl_err *err)
{
	int rc = 0;

	while (!c->stop && rc >= 0) {
		rc = sd_event_prepare(c->ev);
		if (rc == 0)
			rc = sd_event_wait(c->ev, UINT64_MAX);
		if (rc <= 0)
			continue;
		pthread_mutex_lock(&c->lock);
		rc = sd_event_dispatch(c->ev);
		pthread_mutex_unlock(&c->lock);
	}
	if (rc < 0)
		return bl_fail(err, -rc, "the event loop failed: %s", strerror(-rc));
	return *c->fatal.text ? bl_fail(err, EIO, "%s", c->fatal.text) : 0;
}

void bl_ctl_free(struct bl_ctl *c)
{
	if (!c)
		return;
	bl_status_socket_close(c->door);
	ctl_admit_close(c);
	while (c->peers)
		hang_up(c->peers);
	if (c->store)
		bl_store_resign(c->store, 500);
	bl_store_close(c->store);
	forget_saved(c);
	bl_recover_free(c->rec);
	sd_event_source_disable_unref(c->listen_src);
	sd_event_source_disable_unref(c->stop_src);
	sd_event_source_disable_unref(c->timer);
	sd_event_source_disable_unref(c->beat);
	sd_event_unref(c->ev);
	bl_session_tls_free(c->tls);
	if (c->listen_fd >= 0)
		close(c->listen_fd);
	if (c->stop_fd >= 0)
		close(c->stop_fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
