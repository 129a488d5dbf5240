// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The best-effort receiver: from a record of the ring into the reorder queue, and from the queue
 * out in order (1Pipe section 4.1).
 *
 * Sequence numbers per sender find duplicates and gaps. A gap is final, since the stream is best
 * effort, and is NAKed at once. A frame is delivered when the barrier has passed its timestamp.
 */
#include <errno.h>
#include <stdlib.h>

#include "buf.h"
#include "credit.h"
#include "figures.h"
#include "proof.h"
#include "rx.h"
#include "sweep.h"

/* A sender is new, or has restarted: its numbers begin here. */
static void begin_sender(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation,
			 uint32_t psn)
{
	p->rx.known = true;
	bl_proof_count(ep, p, &p->rx.counted);
	bl_rx_drop_bigs(ep, p);
	p->rx.incarnation = incarnation;
	/*
	 * A stream begins with a number whose low byte is 0. If the first number lies within the
	 * first window, the frames before it were lost. Otherwise this endpoint has joined in the
	 * middle of a stream. A stream that was forgotten (sweep.h) before it got beyond these
	 * numbers looks like one that begins: its sender ignores the NAK of what was credited.
	 */
	p->rx.expected = (psn & 0xff) < BL_WINDOW_FIRST ? psn & ~0xffU : psn;
	p->rx.odd.known = 0;
	p->rx.claim_ns = 0;
	p->rx.greeted = false;
	p->rx.credit_psn = p->rx.expected;
	p->rx.credit_window = BL_WINDOW_FIRST;
	bl_credit_due(ep, p, true);
}

static void break_bigs(struct bl_peer *p)
{
	struct bl_big *b;

	for (b = p->rx.big; b; b = b->next)
		if (b->done < b->total && !b->broken) {
			b->broken = true;
			b->why = BL_NAK_INCOMPLETE;
		}
}

/* The sender counts at @psn. It is not known how many frames are missing before. */
static void go_to(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn)
{
	break_bigs(p);
	bl_credit_due(ep, p, true);
	p->rx.expected = p->rx.credit_psn = psn;
}

/*
 * Whether to believe that a life that is not the present one has begun. If the present one is
 * proved, it must have ended first: it has been silent, or nothing of it has fitted for BL_ODD_NS
 * after the new life's first frame. An answer to a challenge is believed at once
 * (bl_rx_probe()).
 */
static bool believe_life(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation)
{
	uint64_t mono;

	if (!p->rx.known || !bl_proof_has(p, p->rx.incarnation))
		return true;
	mono = bl_mono();
	if (p->heard_ns && mono - p->heard_ns > BL_ALIVE_NS)
		return true;
	if (p->rx.claim_ns && p->rx.claim == incarnation)
		return mono - p->rx.claim_ns >= BL_ODD_NS;
	p->rx.claim = incarnation;
	p->rx.claim_ns = mono;
	return false;
}

/* NAK a frame that does not fit, and challenge its sender, within the quota. */
static void refuse(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation, uint32_t psn,
		   uint32_t next)
{
	ep->st.refused++;
	if (next != psn && bl_proof_quota(ep, p))
		bl_rx_nak_life(ep, p, incarnation, psn);
	bl_proof_credit(ep, p, psn, incarnation);
}

/*
 * A frame that does not fit. Returns whether it makes the receiver go to its place, which only
 * happens to senders that have not proved where they are.
 */
static bool follow_odd(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint32_t next)
{
	if (!bl_proof_has(p, p->rx.incarnation) &&
	    bl_place_follow(&p->rx.odd, psn, next, bl_mono())) {
		p->rx.odd.known = 0;
		go_to(ep, p, psn);
		return true;
	}
	refuse(ep, p, p->rx.incarnation, psn, next);
	bl_credit_due(ep, p, true);
	return false;
}

/*
 * Decide whether to accept frame @psn. Returns false if the number was seen before or cannot be
 * outstanding. @next: the number after the frame; @psn itself for a PROBE.
 */
static bool accept_psn(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation,
		       uint32_t psn, uint32_t next)
{
	if (!p->rx.known || p->rx.incarnation != incarnation) {
		if (!believe_life(ep, p, incarnation)) {
			refuse(ep, p, incarnation, psn, next);
			return false;
		}
		begin_sender(ep, p, incarnation, psn);
	}
	switch (bl_place_classify(p->rx.expected, p->rx.credit_psn, psn, next)) {
	case BL_PLACE_OLD:
		ep->st.duplicates += next != psn;
		return false;
	case BL_PLACE_ODD:
		if (!follow_odd(ep, p, psn, next))
			return false;
		break;
	case BL_PLACE_FITS:
		p->rx.odd.known = 0;
		p->rx.claim_ns = 0;
		break;
	}
	if (psn != p->rx.expected) {
		ep->st.lost_frames += psn - p->rx.expected;
		break_bigs(p);
		bl_rx_nak(ep, p, p->rx.expected, psn - p->rx.expected, BL_NAK_LOST, BL_NAK_WHOLE);
		bl_credit_due(ep, p, true);
	}
	p->rx.expected = next;
	return true;
}

/* ---- frames ---- */

static void store_data(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts, uint32_t psn,
		       const uint8_t *body, uint32_t len)
{
	struct bl_items it;
	struct bl_buf *b;

	if (bl_items_open(&it, body, len) < 0) {
		ep->st.malformed++;
		bl_rx_nak(ep, p, psn, 1, BL_NAK_MALFORMED, BL_NAK_WHOLE);
		return;
	}
	if (bl_rq_late(&ep->rq, &p->rq, ts, psn)) {
		ep->st.late_dropped++;
		bl_rx_nak(ep, p, psn, 1, BL_NAK_LATE, BL_NAK_WHOLE);
		bl_credit_due(ep, p, false);
		return;
	}
	b = bl_buf_get(ep, len, BL_BUFS_MAX / 2);
	if (b) {
		int rc;

		b->rq.ts = ts;
		b->rq.psn = psn;
		b->peer = p;
		b->len = len;
		memcpy(b->body, body, len);
		rc = bl_rq_push(&ep->rq, &p->rq, &b->rq);
		if (!rc)
			return;
		bl_buf_put(ep, b);
		ep->st.duplicates += rc == -EEXIST;
		if (rc == -EEXIST)
			return; /* it came before the receiver was led to another place and back */
	}
	bl_rx_nak(ep, p, psn, 1, BL_NAK_NO_MEMORY, BL_NAK_WHOLE);
}

void bl_rx_data(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_rec *rec)
{
	const uint8_t *body = (const uint8_t *)(rec + 1);

	if (accept_psn(ep, p, (uint16_t)bl_load16(body), rec->psn, rec->psn + 1))
		store_data(ep, p, rec->ts, rec->psn, body, rec->len);
}

/* What a message of @p that ends takes from the accounts. */
static void give_room_back(struct bl_endpoint *ep, struct bl_peer *p, uint32_t room)
{
	p->rx.big_room -= room;
	ep->big_bytes -= room;
	if (p->stranger)
		ep->strange_bytes -= room;
}

static void take_room(struct bl_endpoint *ep, struct bl_peer *p, uint32_t room)
{
	p->rx.big_room += room;
	ep->big_bytes += room;
	if (p->stranger)
		ep->strange_bytes += room;
}

/*
 * Whether @p may have @room more bytes. A peer may have at most as much as is free, so that some
 * remains for others however many there are.
 */
static bool has_room(const struct bl_endpoint *ep, const struct bl_peer *p, uint32_t room)
{
	if (p->stranger && ep->strange_bytes + room > BL_BIGS_STRANGE)
		return false;
	return (uint64_t)p->rx.big_room + room <= BL_BIGS_MAX_ALL - ep->big_bytes;
}

void bl_rx_drop_bigs(struct bl_endpoint *ep, struct bl_peer *p)
{
	if (!p->rx.big)
		return;
	give_room_back(ep, p, p->rx.big_room);
	bl_bigs_free(p->rx.big);
	p->rx.big = NULL;
	p->rx.big_bytes = p->rx.nbigs = 0;
}

/* Begin a message. A stranger's gets its memory as its bytes come. */
static struct bl_big *begin_big(struct bl_endpoint *ep, struct bl_peer *p,
				const struct bl_frag_view *v)
{
	uint32_t room = p->stranger ? 0 : v->total;
	bool fits = p->rx.big_bytes + v->total <= BL_BIG_MAX && has_room(ep, p, room);
	struct bl_big *b;

	if (p->rx.nbigs == (p->stranger ? BL_BIGS_STRANGER : BL_BIGS_MAX))
		return NULL;
	room = fits ? room : 0;
	b = malloc(sizeof(*b) + room);
	if (!b)
		return NULL;
	*b = (struct bl_big){ .id = v->msg_id,
			      .total = v->total,
			      .room = room,
			      .broken = !fits,
			      .why = fits ? 0 : BL_NAK_NO_MEMORY };
	p->rx.nbigs++;
	if (fits) {
		p->rx.big_bytes += v->total;
		take_room(ep, p, room);
	}
	return b;
}

/* Let *@at have room for @need bytes. Returns it, broken if there is no memory. */
static struct bl_big *grow_big(struct bl_endpoint *ep, struct bl_peer *p, struct bl_big **at,
			       uint32_t need)
{
	struct bl_big *b = *at, *more;
	uint32_t room = b->room < 16384 ? 16384 : 4 * b->room;

	if (need <= b->room)
		return b;
	room = room < need ? need : room;
	room = room < b->total ? room : b->total;
	more = has_room(ep, p, room - b->room) ? realloc(b, sizeof(*b) + room) : NULL;
	if (!more) {
		b->broken = true;
		b->why = BL_NAK_NO_MEMORY;
		p->rx.big_bytes -= b->total;
		return b;
	}
	*at = more;
	take_room(ep, p, room - more->room);
	more->room = room;
	return more;
}

static void store_frag(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len)
{
	struct bl_big *b, **at;
	struct bl_frag_view v;

	bl_credit_due(ep, p, false);
	if (bl_frag_open(&v, body, len)) {
		ep->st.malformed++;
		return;
	}
	for (at = &p->rx.big; (b = *at); at = &b->next)
		if (b->id == v.msg_id)
			break;
	if (!b) {
		b = begin_big(ep, p, &v);
		if (!b)
			return; /* its reference will find nothing, and is NAKed */
		*at = b;
	}
	if (b->broken || b->total != v.total || b->done != v.offset) {
		if (!b->broken) {
			b->broken = true;
			b->why = BL_NAK_INCOMPLETE;
		}
		return;
	}
	b = grow_big(ep, p, at, v.offset + v.len);
	if (b->broken)
		return;
	memcpy(b->data + v.offset, v.data, v.len);
	b->done += v.len;
}

void bl_rx_frag(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_rec *rec)
{
	const uint8_t *body = (const uint8_t *)(rec + 1);

	if (accept_psn(ep, p, (uint16_t)bl_load16(body), rec->psn, rec->psn + 1))
		store_frag(ep, p, body, rec->len);
}

/*
 * Everything before the PROBE's number was sent before the PROBE and on the same path, so frames
 * that are missing now are lost.
 */
void bl_rx_probe(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_rec *rec)
{
	const uint8_t *body = (const uint8_t *)(rec + 1);
	uint16_t incarnation = (uint16_t)bl_load16(body);
	bool sure = bl_proof_answer(ep, p, body, rec->len);

	if (sure) {
		/* Its sender is there, and counts there. */
		if (!p->rx.known || p->rx.incarnation != incarnation)
			begin_sender(ep, p, incarnation, rec->psn);
		else if (bl_place_classify(p->rx.expected, p->rx.credit_psn, rec->psn, rec->psn) ==
			 BL_PLACE_ODD)
			go_to(ep, p, rec->psn);
		bl_proof_count(ep, p, &p->rx.counted);
	}
	accept_psn(ep, p, incarnation, rec->psn, rec->psn);
	if (sure && bl_load16(body + 2) == BL_PROBE_LAST) {
		/* The next life of the address is believed without a proof. */
		p->proved = 0;
		bl_proof_uncount(ep, p, &p->rx.counted);
		return;
	}
	if (p->rx.known && p->rx.incarnation == incarnation)
		bl_credit_due(ep, p, true);
}

void bl_rx_self_big(struct bl_endpoint *ep, struct bl_peer *p, struct bl_big *g)
{
	struct bl_big **at = &p->rx.big;

	while (*at)
		at = &(*at)->next;
	g->next = NULL;
	g->done = g->total;
	*at = g;
	p->rx.nbigs++;
}

int bl_rx_self(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *frame, uint32_t len,
	       uint64_t ts, uint32_t psn)
{
	struct bl_buf *b = bl_buf_get(ep, len - (uint32_t)sizeof(struct bl_hdr), BL_BUFS_MAX);

	if (!b)
		return -ENOMEM;
	b->rq.ts = ts;
	b->rq.psn = psn;
	b->peer = p;
	b->len = len - (uint32_t)sizeof(struct bl_hdr);
	memcpy(b->body, frame + sizeof(struct bl_hdr), b->len);
	if (bl_rq_push(&ep->rq, &p->rq, &b->rq)) {
		bl_buf_put(ep, b);
		return -ENOMEM;
	}
	return 0;
}

/* ---- delivery ---- */

bool bl_rx_ready(const struct bl_endpoint *ep)
{
	const struct bl_rq_frame *f = bl_rq_min(&ep->rq);

	return ep->cur || (f && f->ts < ep->barrier);
}

int bl_rx_count_ready(const struct bl_endpoint *ep)
{
	int n = 0;
	uint32_t i;

	if (ep->cur)
		n += (int)ep->cur_items.left;
	/* Count each sender's first frames: a lower bound that needs no change of the queue. */
	for (i = 0; i < ep->rq.used && n < 64; i++) {
		const struct bl_rq_frame *f = ep->rq.heap[i]->head;

		for (; f && f->ts < ep->barrier && n < 64; f = f->next)
			n += (int)bl_load16(((const struct bl_buf *)f)->body + 2);
	}
	return n < 64 ? n : 64;
}

static void unlink_big(struct bl_endpoint *ep, struct bl_peer *p, struct bl_big **at)
{
	struct bl_big *b = *at;

	*at = b->next;
	p->rx.nbigs--;
	if (!p->self && !(b->broken && b->why == BL_NAK_NO_MEMORY))
		p->rx.big_bytes -= b->total;
	give_room_back(ep, p, b->room);
}

/*
 * The large message that a reference names, moved to what is lent. Returns NULL, and the reason in
 * *@why, if it is not complete.
 */
static struct bl_big *claim_big(struct bl_endpoint *ep, struct bl_peer *p,
				const struct bl_item *item, uint8_t *why)
{
	struct bl_big *b, **at;

	*why = BL_NAK_INCOMPLETE;
	/*
	 * References come in the order of their messages, so the references of older messages were
	 * lost, and these messages are freed here.
	 */
	while ((b = p->rx.big) && bl_psn_before(b->id, item->msg_id)) {
		unlink_big(ep, p, &p->rx.big);
		free(b);
	}
	for (at = &p->rx.big; (b = *at); at = &b->next)
		if (b->id == item->msg_id)
			break;
	if (!b)
		return NULL;
	unlink_big(ep, p, at);
	b->next = ep->lent.bigs;
	ep->lent.bigs = b;
	if (b->broken || b->done != b->total || b->total != item->len) {
		if (b->why)
			*why = b->why;
		return NULL;
	}
	return b;
}

int bl_rx_deliver(struct bl_endpoint *ep, struct bl_delivery *out, size_t max)
{
	size_t n = 0;

	while (n < max) {
		struct bl_item item;
		struct bl_delivery *d = &out[n];
		struct bl_buf *b = ep->cur;

		if (!b) {
			b = (struct bl_buf *)bl_rq_pop(&ep->rq, ep->barrier);
			if (!b)
				break;
			/* valid: store_data() has checked it */
			bl_items_open(&ep->cur_items, b->body, b->len);
			ep->cur = b;
			ep->cur_index = 0;
			bl_credit_due(ep, b->peer, false);
			if (b->at)
				bl_fig_hold(ep, false, b);
		}
		if (!bl_items_next(&ep->cur_items, &item)) {
			b->free_next = ep->lent.bufs;
			ep->lent.bufs = b;
			ep->cur = NULL;
			continue;
		}
		ep->cur_index++;
		d->ts = b->rq.ts;
		d->src = b->peer->addr;
		d->data = item.data;
		d->len = item.len;
		if (!item.data) {
			uint8_t why;
			struct bl_big *g = claim_big(ep, b->peer, &item, &why);

			if (!g) {
				bl_rx_nak(ep, b->peer, b->rq.psn, 1, why,
					  (uint8_t)(ep->cur_index - 1));
				continue;
			}
			d->data = g->data;
		}
		n++;
	}
	/*
	 * A frame whose messages are all delivered returns its credit now, not with the next call.
	 */
	if (ep->cur && !ep->cur_items.left) {
		ep->cur->free_next = ep->lent.bufs;
		ep->lent.bufs = ep->cur;
		ep->cur = NULL;
	}
	ep->st.messages_delivered += n;
	return (int)n;
}

void bl_rx_free(struct bl_endpoint *ep)
{
	struct bl_rq_frame *f;

	while ((f = bl_rq_pop(&ep->rq, UINT64_MAX)))
		free(f);
	bl_lent_free(&ep->lent);
	free(ep->cur);
	bl_bufs_free(ep);
	free(ep->frag_buf);
	free(ep->failed);
}

void bl_rx_peer_free(struct bl_peer *p)
{
	bl_bigs_free(p->rx.big);
}
