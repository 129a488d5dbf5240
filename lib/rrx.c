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
#include "tx_nic.h"

/* ---- windows ---- */

static void window_due(struct bl_endpoint *ep, struct bl_peer *p, bool now)
{
	p->rrx.now |= now;
	if (p->rrx.due || p->self)
		return;
	p->rrx.due = true;
	p->window_next = ep->windows;
	ep->windows = p;
}

static void say_window(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint32_t window)
{
	uint8_t body[sizeof(struct bl_window)];

	bl_store32(body, psn);
	bl_store16(body + 4, p->rrx.incarnation);
	bl_store16(body + 6, (uint16_t)window);
	bl_store16(body + 8, ep->incarnation);
	bl_store16(body + 10, 0);
	bl_tx_control(ep, p, BL_OP_WINDOW, 0, body, sizeof(body));
	ep->st.credits_sent++;
}

void bl_rrx_windows(struct bl_endpoint *ep)
{
	uint32_t near, far, w;
	struct bl_peer *p;

	if (!ep->windows)
		return;
	near = bl_rx_window(ep);
	far = bl_nic_window(ep, near);
	while ((p = ep->windows)) {
		struct bl_rrx *r = &p->rrx;

		w = p->local ? near : far;
		ep->windows = p->window_next;
		r->due = false;
		if (!r->now && r->seq.done - r->said_psn < (r->said_window + 3) / 4)
			continue;
		r->now = false;
		r->said_psn = r->seq.done;
		r->said_window = w;
		say_window(ep, p, r->seq.done, w);
	}
}

/*
 * Until they hear that it left, senders count on it: its host answers what is on the way
 * (not_here() of bpf/host/host.bpf.c), and nobody gives them a window any more. So they get the
 * largest one now; the buffers that it speaks of are all free.
 */
void bl_rrx_leave(struct bl_endpoint *ep)
{
	struct bl_peer *p;

	for (p = ep->peers; p; p = p->all_next)
		if (p->rrx.known && !p->self)
			say_window(ep, p, p->rrx.seq.next, BL_WINDOW_MAX);
}

static struct bl_rplace here(const struct bl_rrx *r)
{
	return (struct bl_rplace){ true, r->proven, r->incarnation, r->seq };
}

/* Back to the place before. */
static void go_back(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_rrx *r = &p->rrx;
	const struct bl_rplace to = r->was;

	r->was = here(r);
	r->proven = to.proven;
	r->incarnation = to.incarnation;
	r->seq = to.seq;
	r->asked = false;
	window_due(ep, p, true);
}

/*
 * Whether the receiver is where number @psn of this life fits, after having gone there if that was
 * where it was before.
 */
static bool at_place(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation, uint32_t psn,
		     uint32_t most)
{
	struct bl_rrx *r = &p->rrx;

	if (r->known && r->incarnation == incarnation && bl_seq_fits(&r->seq, psn, most))
		return true;
	if (!r->was.known || r->was.incarnation != incarnation ||
	    !bl_seq_fits(&r->was.seq, psn, most))
		return false;
	go_back(ep, p);
	return true;
}

/* Whether frames of this life have shown where its numbers are. */
static bool proven(const struct bl_rrx *r, uint16_t incarnation)
{
	return (r->known && r->proven && r->incarnation == incarnation) ||
	       (r->was.known && r->was.proven && r->was.incarnation == incarnation);
}

static void begin(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation, uint32_t psn)
{
	struct bl_rrx *r = &p->rrx;

	bl_recall_news(ep, NULL); /* what was announced is of those before it */
	if (!r->known) {
		r->known = true;
		ep->nsenders++;
		if (!p->local)
			bl_nic_sender(ep);
	} else if (r->proven || !r->was.known) {
		r->was = here(r);
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
	if (!at_place(ep, p, incarnation, psn, BL_RELIABLE_MAX + 1))
		begin(ep, p, incarnation, psn);
	p->rrx.asked = p->rrx.seq.done != psn;
	p->rrx.asked_psn = psn;
	window_due(ep, p, true);
}

/* ---- frames ---- */

static void freed(struct bl_endpoint *ep, struct bl_peer *p, uint16_t life, uint32_t psn)
{
	struct bl_rrx *r = &p->rrx;
	bool all;

	if (r->was.known && r->was.incarnation == life)
		bl_seq_free(&r->was.seq, psn);
	if (r->incarnation != life)
		return;
	bl_seq_free(&r->seq, psn);
	all = r->asked && !bl_psn_before(r->seq.done, r->asked_psn);
	r->asked &= !all;
	window_due(ep, p, all);
}

static struct bl_big **find_big(struct bl_peer *p, uint16_t life, uint32_t id)
{
	struct bl_big **at = &p->rrx.big;

	while (*at && ((*at)->id != id || (*at)->life != life))
		at = &(*at)->next;
	return at;
}

static uint32_t round8(uint32_t n)
{
	return (n + 7) & ~7u;
}

/* Which bytes of a message have come. */
static __u64 *parts_bits(struct bl_big *b)
{
	return (__u64 *)(void *)(b->data + round8(b->total));
}

static struct bl_big *big_make(const struct bl_prep_view *v, uint64_t ts)
{
	uint32_t bits = bl_parts_words(v->part.total) * 8;
	struct bl_big *b = malloc(sizeof(*b) + round8(v->part.total) + bits);

	if (!b)
		return NULL;
	*b = (struct bl_big){
		.id = v->part.msg_id, .total = v->part.total, .life = v->incarnation, .ts = ts
	};
	memset(parts_bits(b), 0, bits);
	return b;
}

/*
 * A part that its sender should not have sent. Its number is used up, and its message is never
 * whole: the reference finds too little, and is counted once more.
 */
static int bad_part(struct bl_endpoint *ep, struct bl_peer *p, uint16_t life, uint32_t psn)
{
	bl_seq_add(&p->rrx.seq, psn);
	ep->st.malformed++;
	freed(ep, p, life, psn);
	return 0;
}

/* A part of a large message. Returns -ENOMEM if there is no memory for the message now. */
static int on_part(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts, uint32_t psn,
		   const struct bl_prep_view *v)
{
	const struct bl_frag_view *f = &v->part;
	struct bl_big **at = find_big(p, v->incarnation, f->msg_id), *b = *at;

	if (!b && (p->rrx.nbigs == BL_BIGS_MAX || p->rrx.big_bytes + f->total > BL_RBIG_MAX))
		return bad_part(ep, p, v->incarnation, psn);
	if (!b) {
		b = big_make(v, ts);
		if (!b)
			return -ENOMEM;
		*at = b;
		p->rrx.big_bytes += f->total;
		p->rrx.nbigs++;
	}
	if (b->broken || b->total != f->total || b->ts != ts ||
	    bl_parts_add(parts_bits(b), f->offset, f->len)) {
		b->broken = true;
		return bad_part(ep, p, v->incarnation, psn);
	}
	bl_seq_add(&p->rrx.seq, psn);
	memcpy(b->data + f->offset, f->data, f->len);
	b->done += f->len;
	if (p->rrx.big_bytes <= BL_BIG_MAX) {
		freed(ep, p, v->incarnation, psn);
	} else {
		/* so much waits to be delivered: the sender shall wait, too */
		if (!b->kept || bl_psn_before(psn, b->kept_first))
			b->kept_first = psn;
		if (!b->kept || bl_psn_before(b->kept_last, psn))
			b->kept_last = psn;
		b->kept = true;
	}
	return 0;
}

static void free_big(struct bl_endpoint *ep, struct bl_peer *p, struct bl_big **at)
{
	struct bl_big *b = *at;
	uint32_t n = b->kept_last - b->kept_first + 1, i;

	*at = b->next;
	p->rrx.big_bytes -= b->total;
	p->rrx.nbigs--;
	/* its parts have one number after the other, so all of these are its own */
	for (i = 0; b->kept && i < n && i < BL_SEQ_WINDOW; i++)
		freed(ep, p, b->life, b->kept_first + i);
}

/*
 * Where the receiver is when number @psn of this life comes in a PREP. Returns false if it can be
 * nobody's who keeps the rules.
 */
static bool find_place(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation,
		       uint32_t psn)
{
	struct bl_rrx *r = &p->rrx;

	if (p->self) {
		/* nobody tells a window to himself, so there is no limit */
		if (!r->known)
			begin(ep, p, incarnation, psn);
		return true;
	}
	if (at_place(ep, p, incarnation, psn, BL_RELIABLE_MAX)) {
		r->proven = true;
		return true;
	}
	if (proven(r, incarnation))
		return false;
	begin(ep, p, incarnation, psn);
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
	if (!find_place(ep, p, v.incarnation, psn)) {
		ep->st.refused++;
		return 0;
	}
	if (bl_seq_seen(&r->seq, psn)) {
		ep->st.duplicates++;
		return 0;
	}
	if (r->recalled && was_recalled(ep, r, v.incarnation, ts, psn)) {
		bl_seq_add(&r->seq, psn);
		freed(ep, p, v.incarnation, psn);
		ep->st.duplicates++;
		return 0;
	}
	if (!v.count)
		return on_part(ep, p, ts, psn, &v);
	if (bl_rq_late(&ep->rrq, &p->rrq, ts, psn)) {
		bl_seq_add(&r->seq, psn);
		ep->st.late_dropped++;
		freed(ep, p, v.incarnation, psn);
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

/* ---- what must not be delivered ---- */

static void throw_away(struct bl_endpoint *ep, struct bl_buf *b)
{
	bl_rq_remove(&ep->rrq, &b->rq);
	freed(ep, b->peer, b->life, b->rq.psn);
	bl_buf_put(ep, b);
}

/*
 * Discard (1Pipe 5.2): @p has failed, or this life of it, and what it sent from @from_ts on was not
 * committed.
 */
uint64_t bl_rrx_discard(struct bl_endpoint *ep, struct bl_peer *p, uint64_t from_ts, uint16_t life)
{
	struct bl_rq_frame *f = p->rrq.tail, *before;
	struct bl_big **at = &p->rrx.big, *b;
	uint64_t n = 0;

	for (; f && f->ts >= from_ts; f = before) {
		before = f->prev;
		if (life && ((struct bl_buf *)f)->life != life)
			continue;
		throw_away(ep, (struct bl_buf *)f);
		n++;
	}
	while ((b = *at)) {
		if (b->ts < from_ts || (life && b->life != life)) {
			at = &b->next;
			continue;
		}
		free_big(ep, p, at);
		free(b);
	}
	return n;
}

/*
 * Recall: the @count frames of @p from @psn on, which have this timestamp, will not be committed.
 * Whether they came already or will come: they are not delivered.
 */
void bl_rrx_take_out(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts48, uint32_t psn,
		     uint32_t count)
{
	struct bl_rq_frame *f, *next;
	struct bl_big **at = &p->rrx.big, *b;
	uint32_t i;

	for (f = p->rrq.head; f; f = next) {
		next = f->next;
		if ((f->ts & BL_TS_MASK) == ts48 && f->psn - psn < count)
			throw_away(ep, (struct bl_buf *)f);
	}
	while ((b = *at)) {
		if ((b->ts & BL_TS_MASK) != ts48) {
			at = &b->next;
			continue;
		}
		free_big(ep, p, at);
		free(b);
	}
	/* what has not come, and may not come, is free, too */
	for (i = count < BL_SEQ_WINDOW ? count : BL_SEQ_WINDOW; i--;) {
		bl_seq_skip(&p->rrx.seq, psn + (count - 1 - i));
		freed(ep, p, p->rrx.incarnation, psn + (count - 1 - i));
	}
}

/*
 * Remember what was recalled, until the commit barrier has passed it. Returns false if there is no
 * memory, or too much of it is used: no sender has more scatterings in its window than that has
 * slots.
 */
static bool remember(struct bl_rrx *r, uint16_t life, uint64_t ts, uint32_t psn, uint32_t count)
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
		begin(ep, p, v.incarnation, psn); /* a copy of what it takes out may still come */
	fits = at_place(ep, p, v.incarnation, last, BL_RELIABLE_MAX);
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
	if (!remember(&p->rrx, v.incarnation, ts, psn,
		      v.count)) /* then as numbers that were seen */
		for (i = v.count < BL_SEQ_WINDOW ? v.count : BL_SEQ_WINDOW; i--;)
			bl_seq_add(&p->rrx.seq, psn + (v.count - 1 - i));
	bl_rrx_take_out(ep, p, v.ts, psn, v.count);
	ep->st.recalled++;
}

/* ---- delivery ---- */

bool bl_rrx_ready(const struct bl_endpoint *ep)
{
	const struct bl_rq_frame *f = bl_rq_min(&ep->rrq);

	return ep->rcur || (f && f->ts < bl_recall_limit(ep));
}

int bl_rrx_count_ready(const struct bl_endpoint *ep)
{
	int n = ep->rcur ? (int)ep->rcur_items.left : 0;
	uint64_t limit = bl_recall_limit(ep);
	uint32_t i;

	/* as bl_rx_count_ready() */
	for (i = 0; i < ep->rrq.used && n < 64; i++) {
		const struct bl_rq_frame *f = ep->rrq.heap[i]->head;

		for (; f && f->ts < limit && n < 64; f = f->next)
			n += (int)bl_load16(((const struct bl_buf *)f)->body + 2);
	}
	return n < 64 ? n : 64;
}

static void spent(struct bl_endpoint *ep)
{
	ep->rcur->free_next = ep->rlent.bufs;
	ep->rlent.bufs = ep->rcur;
	ep->rcur = NULL;
}

/* the message that a reference names; NULL: its sender has not sent all of it, against the rules */
static struct bl_big *take_big(struct bl_endpoint *ep, const struct bl_buf *b,
			       const struct bl_item *item)
{
	struct bl_big **at = find_big(b->peer, b->life, item->msg_id), *g = *at;

	if (!g)
		return NULL;
	free_big(ep, b->peer, at);
	g->next = ep->rlent.bigs;
	ep->rlent.bigs = g;
	return !g->broken && g->done == g->total && g->total == item->len ? g : NULL;
}

static int deliver(struct bl_endpoint *ep, struct bl_delivery *out, size_t max, uint64_t limit)
{
	size_t n = 0;

	while (n < max) {
		struct bl_delivery *d = &out[n];
		struct bl_buf *b = ep->rcur;
		struct bl_item item;

		if (!b) {
			b = (struct bl_buf *)bl_rq_pop(&ep->rrq, limit);
			if (!b)
				break;
			/* checked when it came */
			bl_items_check(&ep->rcur_items, b->body + BL_ACK_BODY, b->body + b->len,
				       bl_load16(b->body + 2));
			ep->rcur = b;
			freed(ep, b->peer, b->life, b->rq.psn);
		}
		if (!bl_items_next(&ep->rcur_items, &item)) {
			spent(ep);
			continue;
		}
		d->ts = b->rq.ts;
		d->src = b->peer->addr;
		d->data = item.data;
		d->len = item.len;
		if (!item.data) {
			struct bl_big *g = take_big(ep, b, &item);

			if (!g) {
				ep->st.malformed++;
				continue;
			}
			d->data = g->data;
		}
		n++;
	}
	if (ep->rcur && !ep->rcur_items.left)
		spent(ep);
	return (int)n;
}

int bl_rrx_deliver(struct bl_endpoint *ep, struct bl_delivery *out, size_t max)
{
	int n = deliver(ep, out, max, bl_recall_limit(ep));

	ep->st.reliable_delivered += (uint32_t)n;
	return n;
}

int bl_rrx_deliver_undecided(struct bl_endpoint *ep, struct bl_delivery *out, size_t max)
{
	return deliver(ep, out, max, BL_TIME_NONE);
}

uint32_t bl_rrx_count_undecided(const struct bl_endpoint *ep)
{
	uint32_t n = ep->rcur ? ep->rcur_items.left : 0, i;

	for (i = 0; i < ep->rrq.used; i++) {
		const struct bl_rq_frame *f;

		for (f = ep->rrq.heap[i]->head; f; f = f->next)
			n += bl_load16(((const struct bl_buf *)f)->body + 2);
	}
	return n;
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
