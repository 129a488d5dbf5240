// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The reliable receiver (1Pipe section 5): which PREPs are accepted.
 *
 * The program has stored and acknowledged every frame that comes here, so no frame may be refused
 * for lack of resources: a record for which there is no memory stays in the ring. Duplicates are
 * known by their sequence numbers (seq_core.h), in whatever order frames come.
 *
 * Numbers that a sender that keeps the rules can have outstanding (rtx.c): a WINDOW tells it a
 * number before which all buffers are free; that is @done here, or less if the WINDOW is old.
 * Beyond that number it has at most a window of parts, BL_WINDOW_MAX, which leave one by one as
 * windows allow, and then the items of the same scattering, at most BL_STAGE_FRAMES, which leave
 * together whatever the window is. The next scattering waits until what is outstanding fits the
 * window again. So no number is BL_RELIABLE_MAX or more above @done.
 *
 * A frame that is sent again, or forwarded, keeps its number. It is one of the BL_RWIN frames in
 * its sender's window, and the numbers of one destination are consecutive there, so it is at most
 * BL_SEQ_WINDOW below the sender's next number. Frames below that were acknowledged, and have come.
 * A new life begins with an OPEN, which says where its numbers begin. So of a sender that keeps the
 * rules, nothing that the program has acknowledged is refused here. What is refused is counted and
 * changes nothing.
 *
 * An OPEN from a place where no number fits makes the receiver go there and remember the place
 * where it was; the next frame that fits the old place leads it back. So neither forged OPENs nor
 * forged frames end a flow.
 *
 * Recalled frames are remembered by their timestamps, not as numbers that were seen: a RECALL with
 * wrong numbers drops no frame of another timestamp.
 */
#include <stdlib.h>

#include "buf.h"
#include "discard.h"
#include "prepared.h"
#include "proof.h"
#include "rrx.h"

/* how far ahead the timestamp of a scattering may be that is recalled; more than any clock is off
 */
#define RECALL_AHEAD_NS 1000000000ULL

static struct bl_rplace current_place(const struct bl_rrx *r)
{
	return (struct bl_rplace){ true, r->proven, r->sure, r->incarnation, r->came, r->seq };
}

/* Return to the place before, and remember the present one. */
static void return_to_place(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_rrx *r = &p->rrx;
	const struct bl_rplace to = r->was;

	r->was = current_place(r);
	r->proven = to.proven;
	r->sure = to.sure;
	r->incarnation = to.incarnation;
	r->came = to.came;
	r->seq = to.seq;
	r->asked = false;
	bl_prepared_window_due(ep, p, true);
}

/*
 * Whether number @psn of this life fits the present place, or the place before; in the latter case
 * the receiver returns there. @most: frames that may be outstanding.
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

/* Whether a PREP of this life has shown where its numbers are. */
static bool is_life_proven(const struct bl_rrx *r, uint16_t incarnation)
{
	return (r->known && r->proven && r->incarnation == incarnation) ||
	       (r->was.known && r->was.proven && r->was.incarnation == incarnation);
}

static void begin_place(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation,
			uint32_t psn)
{
	struct bl_rrx *r = &p->rrx;

	bl_discard_news(ep, NULL); /* announcements until now are about predecessors */
	if (r->known && (r->sure || (!r->was.sure && (r->proven || !r->was.known))))
		r->was = current_place(r);
	r->known = true;
	bl_proof_count(ep, p, &r->counted);
	r->proven = r->sure = false;
	r->incarnation = incarnation;
	r->came = psn;
	bl_seq_begin(&r->seq, psn);
	r->said_psn = psn;
	r->said_window = BL_WINDOW_FIRST;
}

/* All numbers before @psn were sent by the sender of the present place. */
static void note_came(struct bl_rrx *r, uint32_t psn)
{
	if (bl_psn_before(r->came, psn))
		r->came = psn;
}

void bl_rrx_open(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint16_t incarnation,
		 bool sure)
{
	struct bl_rrx *r = &p->rrx;

	ep->reliable = true;
	if (r->gone && r->gone_life == incarnation)
		return; /* a failed process gets no window */
	/*
	 * The number of an OPEN is the next one, so it may be one more than the number of a frame.
	 */
	if (!find_matching_place(ep, p, incarnation, psn, BL_RELIABLE_MAX + 1))
		begin_place(ep, p, incarnation, psn);
	r->sure |= sure;
	if (sure || !r->sure)
		note_came(r, psn);
	if (sure)
		bl_proof_count(ep, p, &r->counted);
	r->asked = r->seq.done != psn;
	r->asked_psn = psn;
	bl_prepared_window_due(ep, p, true);
}

/* ---- frames ---- */

/*
 * Go to the place of number @psn of this life, which comes in a PREP. Returns false if no sender
 * that keeps the rules can have sent it.
 */
static bool accept_psn(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation,
		       uint32_t psn)
{
	struct bl_rrx *r = &p->rrx;

	if (p->self) {
		/* An endpoint tells itself no window, so there is no limit. */
		if (!r->known)
			begin_place(ep, p, incarnation, psn);
		return true;
	}
	if (find_matching_place(ep, p, incarnation, psn, BL_RELIABLE_MAX)) {
		r->proven = true;
		note_came(r, psn + 1);
		return true;
	}
	if (is_life_proven(r, incarnation))
		return false;
	begin_place(ep, p, incarnation, psn);
	note_came(r, psn + 1);
	return true;
}

/*
 * Whether a frame whose number has come is another frame: a forged one had its number, or the
 * recall of one. A frame that was delivered is at or below the last delivery; one that is queued is
 * found by bl_rq_push(). A part whose message is gone was delivered with it.
 */
static bool is_another(const struct bl_endpoint *ep, const struct bl_peer *p, uint64_t ts,
		       uint32_t psn, const struct bl_prep_view *v)
{
	if (v->count)
		return !bl_rq_late(&ep->rrq, &p->rrq, ts, psn);
	return ts > ep->rrq.last_ts && bl_prepared_lacks(p, ts, v);
}

/*
 * Whether this frame was recalled before it came. Recalls below the commit barrier are forgotten:
 * the program stores no frame below it (prep_late).
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
	int rc;

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
	if (r->recalled && was_recalled(ep, r, v.incarnation, ts, psn)) {
		bl_seq_add(&r->seq, psn);
		bl_prepared_free_psn(ep, p, v.incarnation, psn);
		ep->st.duplicates++;
		return 0;
	}
	if (bl_seq_seen(&r->seq, psn) && !is_another(ep, p, ts, psn, &v)) {
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
	b = bl_buf_get(ep, len, BL_BUFS_MAX);
	if (!b)
		return -ENOMEM;
	b->rq.ts = ts;
	b->rq.psn = psn;
	b->peer = p;
	b->len = len;
	b->life = v.incarnation;
	memcpy(b->body, body, len);
	rc = bl_rq_push(&ep->rrq, &p->rrq, &b->rq);
	if (rc) {
		bl_buf_put(ep, b);
		ep->st.duplicates += rc == -EEXIST;
		return rc == -EEXIST ? 0 : rc;
	}
	bl_seq_add(&r->seq, psn);
	return 0;
}

/* ---- recall ---- */

/*
 * Remember a recall until the commit barrier has passed it, since a copy of a recalled frame may
 * still come. Returns false if there is no memory, or there are too many: no sender has more
 * scatterings in its window than the window has slots.
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

/* No scattering has a later timestamp, however far clocks may be off. */
static uint64_t latest_ts(const struct bl_endpoint *ep, uint64_t mono)
{
	return bl_clock_at(ep->clock, mono) + bl_clock_bound(ep->clock, mono) + RECALL_AHEAD_NS;
}

void bl_rrx_recall(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, const uint8_t *body,
		   uint32_t len)
{
	struct bl_recall_view v;
	uint64_t ts, mono = bl_mono();
	uint32_t last;
	bool fits, near;

	if (bl_recall_open(&v, body, len)) {
		ep->st.malformed++;
		return;
	}
	/*
	 * The program has answered it already, and has refused RECALLs for another life of this
	 * endpoint.
	 */
	if (v.life != ep->incarnation)
		return;
	last = psn + (v.count - 1);
	if (!p->rrx.known)
		begin_place(ep, p, v.incarnation,
			    psn); /* a copy of a recalled frame may still come */
	fits = v.count <= BL_RWIN &&
	       find_matching_place(ep, p, v.incarnation, last, BL_RELIABLE_MAX);
	/*
	 * Frames that have not come are counted as free. But RECALLs alone, of which one may follow
	 * another, do not lead the receiver away from what its sender has sent.
	 */
	near = (int32_t)(last - p->rrx.came) < BL_RELIABLE_MAX;
	if (p->rrx.incarnation != v.incarnation)
		/*
		 * a life of its sender that has ended: what failed with it is discarded, or was
		 * committed
		 */
		return;
	ts = bl_ext48(v.ts, bl_clock_at(ep->clock, mono));
	/*
	 * C passes a recalled scattering only after this RECALL was answered, so the RECALL was in
	 * the ring before. A RECALL below the C up to which the ring was emptied is a copy of one
	 * that was handled, or forged. The last number of a valid one can be outstanding.
	 */
	if (ts < ep->commit || ts > latest_ts(ep, mono) || !fits) {
		ep->st.refused += !bl_psn_before(last, p->rrx.seq.done);
		return;
	}
	/* Without memory only a copy that the network has kept until now can come through. */
	ep->st.no_room += !remember_recall(&p->rrx, v.incarnation, ts, psn, v.count);
	bl_rrx_take_out(ep, p, v.ts, psn, v.count, near);
	ep->st.recalled++;
}

void bl_rrx_age(struct bl_endpoint *ep, struct bl_peer *p, bool silent)
{
	if (p->rrx.recalled)
		was_recalled(ep, &p->rrx, 0, 0, 0); /* nothing has timestamp 0 */
	if (silent && p->rrx.big && !p->rrq.head)
		bl_prepared_drop_bigs(ep, p, ep->commit);
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
