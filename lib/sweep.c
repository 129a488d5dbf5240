// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Peers that are silent: see sweep.h. */
#include <stdlib.h>

#include "peer.h"
#include "prepared.h"
#include "presence.h"
#include "proof.h"
#include "rrx.h"
#include "rx.h"
#include "stage.h"
#include "sweep.h"

bool bl_is_sending(const struct bl_peer *p)
{
	return p->tx.dirty || p->rtx.dirty || p->tx.big || p->rtx.unacked || p->rtx.parts.n ||
	       p->rtx.items.n || (p->tx.next_psn != p->tx.credited && !p->tx.dead) || p->rtx.asks;
}

/* Whether an announcement named @p: what failed must be recognised for ever. */
static bool is_announced(const struct bl_peer *p)
{
	return p->rrx.gone || p->rtx.failed || p->rtx.next_gone;
}

/* Whether nothing received from @p waits, and nothing points to it as a sender. */
static bool is_unread(const struct bl_endpoint *ep, const struct bl_peer *p)
{
	return p->rq.head || p->rrq.head || p->rrx.big || p->rrx.recalled || p->rx.credit_due ||
	       p->rrx.due || (ep->cur && ep->cur->peer == p) || (ep->rcur && ep->rcur->peer == p) ||
	       ep->shelf.messages || ep->rshelf.messages;
}

static bool is_recalled(const struct bl_endpoint *ep, const struct bl_peer *p)
{
	const struct bl_recalling *r;
	const struct bl_rframe *f;

	for (r = ep->recalls; r; r = r->next)
		if (r->peer == p)
			return true;
	for (f = ep->rkept; f; f = f->next)
		if (f->peer == p)
			return true;
	return false;
}

static bool is_removable(const struct bl_endpoint *ep, const struct bl_peer *p)
{
	return !p->self && !bl_is_sending(p) && !is_announced(p) && !is_unread(ep, p) &&
	       !is_recalled(ep, p);
}

static void forget_receiving(struct bl_endpoint *ep, struct bl_peer *p)
{
	bl_proof_uncount(ep, p, &p->rx.counted);
	bl_proof_uncount(ep, p, &p->rrx.counted);
	bl_rx_drop_bigs(ep, p);
	p->rx.known = false;
	p->rrx.known = p->rrx.was.known = false;
	p->rrx.proven = p->rrx.sure = false;
	p->proved = 0;
}

static void remove_peer(struct bl_endpoint *ep, struct bl_peer *p)
{
	forget_receiving(ep, p);
	bl_presence_forget(ep, p);
	bl_peer_take_out(ep, p);
	ep->rdead -= p->rtx.dead;
	if (p->tx.dead)
		p->tx.credited = p->tx.next_psn;
	bl_tx_peer_free(p);
	free(p);
}

/* Note what has happened since the last sweep. */
static void look_at(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono)
{
	uint32_t sent = p->tx.next_psn + p->rtx.next_psn;
	bool heard = p->heard != p->swept || !p->heard_ns;

	p->swept = p->heard;
	if (heard)
		p->heard_ns = mono;
	if (!p->sent_ns || sent != p->sent_psn || bl_is_sending(p))
		p->sent_ns = mono;
	p->sent_psn = sent;
	if (heard && p->rx.known)
		bl_proof_count(ep, p, &p->rx.counted);
	if (heard && p->rrx.known)
		bl_proof_count(ep, p, &p->rrx.counted);
}

/* Free what @p needs no longer. Returns whether @p itself is among that. */
static bool age_peer(struct bl_endpoint *ep, struct bl_peer *p, uint64_t mono)
{
	uint64_t silent = mono - p->heard_ns, unsent = mono - p->sent_ns;

	if (p->self)
		return false;
	bl_rrx_age(ep, p, silent >= BL_PARTS_KEEP_NS);
	if (silent >= BL_COUNT_NS) {
		bl_proof_uncount(ep, p, &p->rx.counted);
		bl_proof_uncount(ep, p, &p->rrx.counted);
	}
	if (unsent >= BL_STAGE_KEEP_NS && !bl_is_sending(p)) {
		free(p->tx.stage);
		p->tx.stage = NULL;
	}
	if (silent >= BL_PARTS_KEEP_NS && !p->rq.head)
		bl_rx_drop_bigs(ep, p);
	if (silent < BL_RX_KEEP_NS || is_unread(ep, p) || is_announced(p))
		return false;
	if (p->rx.known || p->rrx.known)
		forget_receiving(ep, p);
	if (p->presence.watched && ep->nwatched <= BL_WATCH_KEEP)
		return false;
	return (!p->ours || unsent >= BL_TX_KEEP_NS) && is_removable(ep, p);
}

void bl_sweep(struct bl_endpoint *ep, uint64_t mono)
{
	struct bl_peer *p, *next;

	if (mono < ep->sweep_ns)
		return;
	ep->sweep_ns = mono + BL_SWEEP_NS;
	for (p = ep->peers; p; p = next) {
		next = p->all_next;
		look_at(ep, p, mono);
		if (age_peer(ep, p, mono))
			remove_peer(ep, p);
	}
}

bool bl_sweep_stranger(struct bl_endpoint *ep)
{
	struct bl_peer *oldest = NULL;
	uint32_t i;

	if (ep->nstrangers < BL_STRANGERS)
		return true;
	for (i = 0; i < ep->nstrangers; i++) {
		struct bl_peer *p = ep->strangers[i];

		if ((!oldest || p->heard < oldest->heard) && is_removable(ep, p))
			oldest = p;
	}
	if (!oldest)
		return false;
	remove_peer(ep, oldest);
	return true;
}
