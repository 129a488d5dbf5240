// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Receiving reliably (1Pipe section 5): prepared frames wait in a queue of their own until the
 * commit barrier has passed them.
 *
 * The program has stored and acknowledged what comes here, so nothing may be refused any more: a
 * record for which there is no memory stays in the ring. What came before is known by its sequence
 * number (seq_core.h), whatever order frames come in. C has passed a message only after all frames
 * of its scattering were stored, here and everywhere; so the parts of a large message are complete
 * when its reference is delivered.
 *
 * Which numbers a sender that keeps the rules can have outstanding (rtx.c). It is told a number
 * (WINDOW) before which all buffers are free: @done here, or less if that answer is old. Beyond it,
 * it has at most a window of parts, BL_WINDOW_MAX, which leave one by one as windows allow; and
 * then the items of the same scattering, BL_STAGE_FRAMES at most, which leave together whatever the
 * window is. The next scattering waits until what is outstanding fits the window again. So no
 * number is BL_RELIABLE_MAX or more above @done. A frame that is sent again, or forwarded, has the
 * number it had. It is one of the BL_RWIN in its sender's window, and the numbers of one
 * destination follow one another there, so it is at most as far below the sender's next number as
 * BL_SEQ_WINDOW; what is further below was acknowledged, and came. A new life begins with an OPEN,
 * which says where. So what the program has acknowledged, of such a sender, is never refused here.
 * What is refused is counted, and changes nothing.
 *
 * An OPEN from a place where no number fits makes the receiver go there and remember the place
 * where it was: the next frame that fits that one leads it back. So neither forged OPENs nor forged
 * frames end a flow.
 *
 * What was recalled is remembered by its timestamp, not as numbers that were seen: a RECALL that
 * lies about numbers takes no frame of another timestamp with it.
 *
 * WINDOWs go back as buffers become free: that of a part at once, since the message has memory of
 * its own, that of other frames when they are delivered. Who has sent an OPEN hears twice: at once,
 * and when everything that he has sent is free.
 */
#include <stdlib.h>

#include "buf.h"
#include "discard.h"
#include "nic.h"
#include "prepared.h"
#include "rrx.h"

static struct bl_rplace current_place(const struct bl_rrx *r)
{
	return (struct bl_rplace){ true, r->proven, r->incarnation, r->seq };
}

/* Back to the place before. */
static void return_to_place(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_rrx *r = &p->rrx;
	const struct bl_rplace to = r->was;

	r->was = current_place(r);
	r->proven = to.proven;
	r->incarnation = to.incarnation;
	r->seq = to.seq;
	r->asked = false;
	bl_prepared_window_due(ep, p, true);
}

/*
 * Whether the receiver is where number @psn of this life fits, after having gone there if that was
 * where it was before.
 */
static bool find_matching_place(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation,
				uint32_t psn, uint32_t most)
{
	struct bl_rrx *r = &p->rrx;

	if (r->known && r->incarnation == incarnation && bl_seq_fits(&r->seq, psn, most))
		return true;
	if (!r->was.known || r->was.incarnation != incarnation ||
	    !bl_seq_fits(&r->was.seq, psn, most))
		return false;
	return_to_place(ep, p);
	return true;
}

/* Whether frames of this life have shown where its numbers are. */
static bool is_life_proven(const struct bl_rrx *r, uint16_t incarnation)
{
	return (r->known && r->proven && r->incarnation == incarnation) ||
	       (r->was.known && r->was.proven && r->was.incarnation == incarnation);
}

static void begin_place(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation,
			uint32_t psn)
{
	struct bl_rrx *r = &p->rrx;

	bl_discard_news(ep, NULL); /* what was announced is of those before it */
	if (!r->known) {
		r->known = true;
		ep->nsenders++;
		if (!p->local)
			bl_nic_sender(ep);
	} else if (r->proven || !r->was.known) {
		r->was = current_place(r);
	}
	r->proven = false;
	r->incarnation = incarnation;
	bl_seq_begin(&r->seq, psn);
	r->said_psn = psn;
	r->said_window = BL_WINDOW_FIRST;
}

void bl_rrx_open(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint16_t incarnation)
{
	ep->reliable = true;
	if (p->rrx.gone && p->rrx.gone_life == incarnation)
		return; /* who failed gets no window any more */
	/* its number is the next one, so it may be one more than that of a frame */
	if (!find_matching_place(ep, p, incarnation, psn, BL_RELIABLE_MAX + 1))
		begin_place(ep, p, incarnation, psn);
	p->rrx.asked = p->rrx.seq.done != psn;
	p->rrx.asked_psn = psn;
	bl_prepared_window_due(ep, p, true);
}

/* ---- frames ---- */

/*
 * Where the receiver is when number @psn of this life comes in a PREP. Returns false if it can be
 * nobody's who keeps the rules.
 */
static bool accept_psn(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation,
		       uint32_t psn)
{
	struct bl_rrx *r = &p->rrx;

	if (p->self) {
		/* nobody tells a window to himself, so there is no limit */
		if (!r->known)
			begin_place(ep, p, incarnation, psn);
		return true;
	}
	if (find_matching_place(ep, p, incarnation, psn, BL_RELIABLE_MAX)) {
		r->proven = true;
		return true;
	}
	if (is_life_proven(r, incarnation))
		return false;
	begin_place(ep, p, incarnation, psn);
	return true;
}

/*
 * Whether this frame was recalled before it came. What the commit barrier has passed is not
 * remembered any more: its program stores nothing below that (prep_late).
 */
static bool was_recalled(const struct bl_endpoint *ep, struct bl_rrx *r, uint16_t life, uint64_t ts,
			 uint32_t psn)
{
	struct bl_recalled **at = &r->recalled, *c;

	while ((c = *at)) {
		if (c->ts < ep->commit) {
			*at = c->next;
			r->nrecalled--;
			free(c);
			continue;
		}
		if (c->life == life && c->ts == ts && psn - c->psn < c->count)
			return true;
		at = &c->next;
	}
	return false;
}

int bl_rrx_prep(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts, uint32_t psn,
		const uint8_t *body, uint32_t len)
{
	struct bl_rrx *r = &p->rrx;
	struct bl_prep_view v;
	struct bl_buf *b;

	if (bl_prep_open(&v, body, len) || v.life != ep->incarnation) {
		ep->st.malformed++;
		return 0;
	}
	if (r->gone && r->gone_life == v.incarnation &&
	    (ts >= r->gone_ts || r->incarnation != v.incarnation)) {
		ep->st.discarded++;
		return 0;
	}
	if (!accept_psn(ep, p, v.incarnation, psn)) {
		ep->st.refused++;
		return 0;
	}
	if (bl_seq_seen(&r->seq, psn)) {
		ep->st.duplicates++;
		return 0;
	}
	if (r->recalled && was_recalled(ep, r, v.incarnation, ts, psn)) {
		bl_seq_add(&r->seq, psn);
		bl_prepared_free_psn(ep, p, v.incarnation, psn);
		ep->st.duplicates++;
		return 0;
	}
	if (!v.count)
		return bl_prepared_part(ep, p, ts, psn, &v);
	if (bl_rq_late(&ep->rrq, &p->rrq, ts, psn)) {
		bl_seq_add(&r->seq, psn);
		ep->st.late_dropped++;
		bl_prepared_free_psn(ep, p, v.incarnation, psn);
		return 0;
	}
	b = bl_buf_get(ep, len);
	if (!b)
		return -ENOMEM;
	b->rq.ts = ts;
	b->rq.psn = psn;
	b->peer = p;
	b->len = len;
	b->life = v.incarnation;
	memcpy(b->body, body, len);
	if (bl_rq_push(&ep->rrq, &p->rrq, &b->rq)) {
		bl_buf_put(ep, b);
		return -ENOMEM;
	}
	bl_seq_add(&r->seq, psn);
	return 0;
}

/* ---- recall ---- */

/*
 * Remember what was recalled, until the commit barrier has passed it. Returns false if there is no
 * memory, or too much of it is used: no sender has more scatterings in its window than that has
 * slots.
 */
static bool remember_recall(struct bl_rrx *r, uint16_t life, uint64_t ts, uint32_t psn,
			    uint32_t count)
{
	struct bl_recalled *c;

	for (c = r->recalled; c; c = c->next)
		if (c->life == life && c->ts == ts && c->psn == psn && c->count == count)
			return true;
	c = r->nrecalled < BL_RWIN ? malloc(sizeof(*c)) : NULL;
	if (!c)
		return false;
	*c = (struct bl_recalled){ r->recalled, ts, psn, count, life };
	r->recalled = c;
	r->nrecalled++;
	return true;
}

void bl_rrx_recall(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, const uint8_t *body,
		   uint32_t len)
{
	struct bl_recall_view v;
	uint32_t last, i;
	uint64_t ts;
	bool fits;

	if (bl_recall_open(&v, body, len)) {
		ep->st.malformed++;
		return;
	}
	/*
	 * the program has answered it already, and has refused those for another life of this
	 * endpoint
	 */
	if (v.life != ep->incarnation)
		return;
	last = psn + (v.count - 1);
	if (!p->rrx.known)
		begin_place(ep, p, v.incarnation,
			    psn); /* a copy of what it takes out may still come */
	fits = find_matching_place(ep, p, v.incarnation, last, BL_RELIABLE_MAX);
	if (p->rrx.incarnation != v.incarnation)
		return; /* of a life of its sender that has ended: what failed with it is discarded,
			   or was committed */
	ts = bl_ext48(v.ts, bl_clock_at(ep->clock, bl_mono()));
	/*
	 * C passes what is recalled only after this RECALL was answered, so it was in the ring
	 * before: what is below the C up to which the ring was emptied is a copy of one that was
	 * dealt with, or a lie. And its last number is one that can be outstanding.
	 */
	if (ts < ep->commit || !fits) {
		ep->st.refused += !bl_psn_before(last, p->rrx.seq.done);
		return;
	}
	if (!remember_recall(&p->rrx, v.incarnation, ts, psn,
			     v.count)) /* then as numbers that were seen */
		for (i = v.count < BL_SEQ_WINDOW ? v.count : BL_SEQ_WINDOW; i--;)
			bl_seq_add(&p->rrx.seq, psn + (v.count - 1 - i));
	bl_rrx_take_out(ep, p, v.ts, psn, v.count);
	ep->st.recalled++;
}

void bl_rrx_peer_free(struct bl_peer *p)
{
	while (p->rrx.recalled) {
		struct bl_recalled *c = p->rrx.recalled;

		p->rrx.recalled = c->next;
		free(c);
	}
	while (p->rrx.big) {
		struct bl_big *b = p->rrx.big;

		p->rrx.big = b->next;
		free(b);
	}
}

void bl_rrx_free(struct bl_endpoint *ep)
{
	struct bl_rq_frame *f;

	while ((f = bl_rq_pop(&ep->rrq, UINT64_MAX)))
		free(f);
	free(ep->rcur);
	bl_lent_free(&ep->rlent);
	bl_rq_free(&ep->rrq);
}
