// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which peers can be reached: see presence.h. */
#include "lock.h"
#include "presence.h"

/* Least time between two OPENs to one peer, whatever comes from its address. */
#define AGAIN_NS BL_RTO_NS

static void add_news(struct bl_endpoint *ep, struct bl_peer *p)
{
	if (p->presence.news)
		return;
	p->presence.news = true;
	p->presence.news_next = ep->news;
	ep->news = p;
}

void bl_presence_watch(struct bl_endpoint *ep, struct bl_peer *p)
{
	if (p->presence.watched)
		return;
	p->presence = (struct bl_presence){ .watched = true };
	ep->nwatched++;
}

static void append_asked(struct bl_endpoint *ep, struct bl_peer *p)
{
	if (!ep->absent)
		ep->absent_tail = &ep->absent;
	p->presence.asked_next = NULL;
	p->presence.asked_at = ep->absent_tail;
	*ep->absent_tail = p;
	ep->absent_tail = &p->presence.asked_next;
}

static void unlink_asked(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_presence *s = &p->presence;

	*s->asked_at = s->asked_next;
	if (s->asked_next)
		s->asked_next->presence.asked_at = s->asked_at;
	else
		ep->absent_tail = s->asked_at;
}

void bl_presence_rotate(struct bl_endpoint *ep)
{
	struct bl_peer *p = ep->absent;

	unlink_asked(ep, p);
	append_asked(ep, p);
}

void bl_presence_ask(struct bl_endpoint *ep, struct bl_peer *p, uint64_t at)
{
	struct bl_presence *s = &p->presence;

	if (!s->asked) {
		s->asked = true;
		s->asks = 0;
		ep->nasked++;
		append_asked(ep, p);
	}
	s->ask_ns = at;
	if (!ep->ask_ns || at < ep->ask_ns)
		ep->ask_ns = at;
}

void bl_presence_stop(struct bl_endpoint *ep, struct bl_peer *p)
{
	if (!p->presence.asked)
		return;
	p->presence.asked = false;
	unlink_asked(ep, p);
	if (!--ep->nasked)
		ep->ask_ns = 0;
}

void bl_presence_lost(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono)
{
	struct bl_presence *s = &p->presence;

	if (!s->watched)
		return;
	s->heard_ns = 0;
	if (!s->there)
		return;
	s->there = false;
	s->lost = true;
	add_news(ep, p);
	if (ep->on_peer)
		bl_presence_ask(ep, p, mono + AGAIN_NS);
}

/* The peer is there if both streams reach it. */
static void settle(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_presence *s = &p->presence;

	if (!s->heard_ns || p->rtx.dead || p->tx.dead)
		return;
	bl_presence_stop(ep, p);
	if (s->there)
		return;
	s->there = true;
	add_news(ep, p);
}

void bl_presence_answered(struct bl_endpoint *ep, struct bl_peer *p, uint16_t life)
{
	struct bl_presence *s = &p->presence;

	if (!s->watched)
		return;
	if (s->there && s->life != life) {
		s->there = false; /* the former process has ended, and nobody has noticed */
		s->lost = true;
	}
	s->met = true;
	s->life = life;
	s->heard_ns = bl_mono();
	settle(ep, p);
}

void bl_presence_credited(struct bl_endpoint *ep, struct bl_peer *p)
{
	if (p->presence.asked)
		settle(ep, p);
}

void bl_presence_heard(struct bl_endpoint *ep, struct bl_peer *p, int life)
{
	struct bl_presence *s = &p->presence;
	uint64_t mono, at;

	if (!s->watched || (!s->asked && (life < 0 || !s->there || s->life == life)))
		return;
	mono = bl_mono();
	at = s->asked_ns + AGAIN_NS > mono ? s->asked_ns + AGAIN_NS : mono;
	if (!s->asked || at < s->ask_ns)
		bl_presence_ask(ep, p, at);
}

void bl_presence_forget(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_peer **at;

	bl_presence_stop(ep, p);
	for (at = &ep->news; p->presence.news && *at; at = &(*at)->presence.news_next)
		if (*at == p) {
			*at = p->presence.news_next;
			break;
		}
	ep->nwatched -= p->presence.watched;
}

static void tell(struct bl_endpoint *ep, const struct bl_addr *who, enum bl_peer_event what)
{
	if (!ep->on_peer)
		return;
	bl_leave(ep);
	ep->on_peer(ep->on_peer_ctx, who, what);
	bl_enter(ep);
}

void bl_presence_report(struct bl_endpoint *ep)
{
	struct bl_peer *p;

	/* Nothing of @p is used after a callback, which may call the library. */
	while ((p = ep->news)) {
		struct bl_presence *s = &p->presence;
		const struct bl_addr who = p->addr;
		bool gone = s->lost && s->told, come = s->there && (gone || !s->told);
		bool same = s->told_met && s->told_life == s->life;

		ep->news = s->news_next;
		s->news = s->lost = false;
		s->told = s->there;
		if (come) {
			s->told_met = true;
			s->told_life = s->life;
		}
		if (gone)
			tell(ep, &who, BL_PEER_LOST);
		if (come)
			tell(ep, &who, same ? BL_PEER_BACK : BL_PEER_JOINED);
	}
}

void bl_on_peer(struct bl_endpoint *ep, bl_peer_fn fn, void *ctx)
{
	bl_enter(ep);
	ep->on_peer = fn;
	ep->on_peer_ctx = ctx;
	bl_leave(ep);
}
