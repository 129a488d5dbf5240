// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Asking peers that cannot be reached (ask.h).
 *
 * Example: a replica of three begins 2 s after the others. Their first sends to it return
 * -EHOSTUNREACH, and they ask it after 0, 25, 75, 175, 375, 775 and 1575 ms. The replica asks the
 * others when it begins, at 2000 ms, and they answer with a question of their own, so at 2001 ms it
 * has joined.
 */
#include "ask.h"
#include "core/quota_core.h"
#include "error.h"
#include "open.h"
#include "peer.h"
#include "presence.h"
#include "tx.h"

/* An answer that is no older than this need not be repeated for bl_peer_wait(). */
#define FRESH_NS 1000000000ULL

static void ask_peer(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono)
{
	struct bl_presence *s = &p->presence;

	s->asked_ns = mono;
	s->ask_ns = mono + (s->asks < 6 ? BL_RTO_NS << s->asks : BL_ASK_MAX_NS);
	s->asks++;
	bl_open_send(ep, p, 0);
	if (p->tx.dead)
		bl_tx_ask(ep, p);
}

void bl_ask_timers(struct bl_endpoint *ep, uint64_t mono)
{
	uint32_t left = ep->nasked;
	uint64_t due = 0;

	if (mono < ep->ask_ns)
		return;
	/* Each peer that was looked at goes to the end of the list, so all have their turn. */
	for (; left; left--) {
		struct bl_peer *p = ep->absent;

		if (p->presence.ask_ns <= mono) {
			if (!bl_quota_take(&ep->ask_spent_ns, mono, BL_ASK_NS,
					   (BL_ASK_BURST - 1) * BL_ASK_NS)) {
				due = mono + BL_ASK_BURST / 2 * BL_ASK_NS;
				break;
			}
			ask_peer(ep, p, mono);
		}
		due = due && due < p->presence.ask_ns ? due : p->presence.ask_ns;
		bl_presence_rotate(ep);
	}
	ep->ask_ns = due;
}

/* Have @p asked, unless it is asked already. */
static void begin_asking(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono)
{
	if (!p->presence.asked)
		bl_presence_ask(ep, p, mono);
	bl_ask_timers(ep, mono);
}

int bl_ask_refuses(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n)
{
	const struct bl_addr *absent = NULL;
	char text[64];
	size_t i;

	if (!ep->on_peer)
		return 0;
	for (i = 0; i < n; i++) {
		struct bl_peer *p = bl_peer_get(ep, vec[i].dst.ip, vec[i].dst.port);

		if (!p)
			return bl_set_error(ep, ENOMEM, "out of memory");
		if (p->self)
			continue;
		bl_presence_watch(ep, p);
		if (p->presence.there)
			continue;
		absent = absent ? absent : &p->addr;
		begin_asking(ep, p, bl_mono());
	}
	if (!absent)
		return 0;
	return bl_set_error(ep, EHOSTUNREACH,
			    "%s does not answer, or has not answered yet; it is asked, and the "
			    "bl_on_peer() callback tells when it is there",
			    bl_addr_format(absent, text, sizeof(text)));
}

static struct bl_peer *awaited_peer(const struct bl_endpoint *ep)
{
	return bl_peer_find((struct bl_endpoint *)ep, ep->wait_for->ip, ep->wait_for->port);
}

int bl_ask_begin(struct bl_endpoint *ep)
{
	struct bl_peer *p = bl_peer_get(ep, ep->wait_for->ip, ep->wait_for->port);
	uint64_t mono = bl_mono();

	if (!p)
		return bl_set_error(ep, ENOMEM, "out of memory");
	bl_presence_watch(ep, p);
	ep->wait_since_ns = mono > FRESH_NS ? mono - FRESH_NS : 1;
	if (!p->self && !bl_ask_reached(ep))
		begin_asking(ep, p, mono);
	return 0;
}

bool bl_ask_reached(const struct bl_endpoint *ep)
{
	const struct bl_peer *p = awaited_peer(ep);

	return p && (p->self || (p->presence.there && p->presence.heard_ns >= ep->wait_since_ns));
}

void bl_ask_end(struct bl_endpoint *ep)
{
	struct bl_peer *p = awaited_peer(ep);

	/* Whoever follows its peers hears of this one when it comes. */
	if (p && (p->presence.there || !ep->on_peer))
		bl_presence_stop(ep, p);
}
