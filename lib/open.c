// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * OPENs of the reliable sender. A destination that does not answer them can fail no message that
 * was sent, since nothing is sent to it before it answers.
 */
#include "frame.h"
#include "nic.h"
#include "open.h"
#include "presence.h"
#include "timers.h"

#define ASKS_MAX BL_PROBES_MAX /* OPENs without an answer before a destination is dead */

void bl_open_send(struct bl_endpoint *ep, struct bl_peer *p, uint64_t cookie)
{
	uint8_t body[sizeof(struct bl_data) + sizeof(struct bl_cookie)];
	uint32_t len = sizeof(struct bl_data);

	bl_store16(body, ep->incarnation);
	bl_store16(body + 2, 0);
	if (cookie)
		len += bl_cookie_put(body + len, cookie);
	bl_tx_control(ep, p, BL_OP_OPEN, p->rtx.next_psn, body, len);
	ep->st.probes_sent++;
	p->rtx.asked_psn = p->rtx.next_psn;
}

/* When a dead destination is asked next in the background, CLOCK_MONOTONIC ns; 0: no more. */
static uint64_t background_open_at(const struct bl_rtx *t)
{
	uint64_t wait = BL_RETRY_NS << (t->retries < 8 ? t->retries : 8);

	return t->retries < BL_RETRIES_MAX
		       ? t->retry_ns + (wait < BL_RETRY_MAX_NS ? wait : BL_RETRY_MAX_NS)
		       : 0;
}

void bl_open_mark_dead(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono)
{
	struct bl_rtx *t = &p->rtx;

	ep->rdead += !t->dead;
	t->dead = true;
	bl_presence_lost(ep, p, mono);
	t->retries = 0;
	t->retry_ns = mono;
	t->asks = 0;
	t->ask_ns = 0;
	bl_rtx_wake_at(ep, background_open_at(t));
}

static void send_background_open(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono)
{
	struct bl_rtx *t = &p->rtx;

	bl_open_send(ep, p, 0);
	t->retries++;
	t->retry_ns = mono;
	if (background_open_at(t))
		bl_rtx_wake_at(ep, background_open_at(t));
}

bool bl_open_is_dead(struct bl_endpoint *ep, struct bl_peer *p)
{
	uint64_t mono;

	if (!p->rtx.dead)
		return false;
	mono = bl_mono();
	if (mono > p->rtx.retry_ns + BL_RETRY_MIN_NS)
		send_background_open(ep, p, mono);
	return true;
}

bool bl_open_ask(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono)
{
	struct bl_rtx *t = &p->rtx;

	if (mono < t->ask_ns) {
		bl_rtx_wake_at(ep, t->ask_ns);
		return true;
	}
	if (!t->asks)
		bl_patience_begin(&t->patience, mono);
	bl_patience_saw(&t->patience, t->rto.slow_ns);
	if (t->asks >= ASKS_MAX && bl_patience_over(&t->patience, mono, bl_nic_unsent(ep))) {
		t->asks = 0;
		t->ask_ns = 0;
		return false;
	}
	/* The fifth OPEN leaves 375 ms after the first, which is more than BL_FORWARD_NS. */
	if (t->asks + 1 >= BL_FORWARD_TRIES)
		p->fwd_until_ns = mono + BL_FORWARD_KEEP_NS;
	bl_open_send(ep, p, 0);
	t->ask_ns = mono + (t->asks < 5 && BL_RTO_NS << t->asks < BL_RTO_MAX_NS
				    ? BL_RTO_NS << t->asks
				    : BL_RTO_MAX_NS);
	t->asks++;
	bl_rtx_wake_at(ep, t->ask_ns);
	return true;
}

uint64_t bl_open_timers(struct bl_endpoint *ep, uint64_t mono, uint64_t next)
{
	struct bl_peer *p;

	for (p = ep->rdead ? ep->peers : NULL; p; p = p->all_next) {
		/* Those that the application follows are asked by ask.c, which limits the rate. */
		uint64_t at = p->rtx.dead && !p->presence.asked ? background_open_at(&p->rtx) : 0;

		if (at && mono >= at) {
			send_background_open(ep, p, mono);
			at = background_open_at(&p->rtx);
		}
		if (at && (!next || at < next))
			next = at;
	}
	return next;
}
