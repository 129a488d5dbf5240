// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prepared frames (1Pipe section 5): a queue of their own until the commit barrier has passed them.
 *
 * The commit barrier has passed a message only after all frames of its scattering were stored, here
 * and at all other receivers, so the parts of a large message are complete when its reference is
 * delivered.
 *
 * WINDOWs go back as buffers become free. The buffer of a part is free at once, since the message
 * has memory of its own; the buffers of other frames are free when they are delivered. A sender of
 * an OPEN is answered twice: at once, and when everything that it has sent is free.
 */
#include <stdlib.h>

#include "buf.h"
#include "failures.h"
#include "figures.h"
#include "frame.h"
#include "nic.h"
#include "prepared.h"
#include "proof.h"

/* ---- windows ---- */

void bl_prepared_window_due(struct bl_endpoint *ep, struct bl_peer *p, bool now)
{
	p->rrx.now |= now;
	if (p->rrx.due || p->self)
		return;
	p->rrx.due = true;
	p->window_next = ep->windows;
	ep->windows = p;
}

void bl_prepared_say_window(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn,
			    uint32_t window)
{
	uint8_t body[sizeof(struct bl_window) + sizeof(struct bl_cookie)];
	uint32_t len = sizeof(struct bl_window);

	bl_store32(body, psn);
	bl_store16(body + 4, p->rrx.incarnation);
	bl_store16(body + 6, (uint16_t)window);
	bl_store16(body + 8, ep->incarnation);
	bl_store16(body + 10, 0);
	if (!p->rrx.sure)
		len += bl_proof_put(ep, p, p->rrx.incarnation, body + len);
	bl_tx_control(ep, p, BL_OP_WINDOW, 0, body, len);
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
		if (p->stranger)
			w = bl_rx_strangers_window(ep, w);
		ep->windows = p->window_next;
		r->due = false;
		if (!r->now && r->seq.done - r->said_psn < (r->said_window + 3) / 4)
			continue;
		r->now = false;
		r->said_psn = r->seq.done;
		r->said_window = w;
		bl_prepared_say_window(ep, p, r->seq.done, w);
	}
}

void bl_prepared_free_psn(struct bl_endpoint *ep, struct bl_peer *p, uint16_t life, uint32_t psn)
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
	bl_prepared_window_due(ep, p, all);
}

/* ---- parts of large messages ---- */

static struct bl_big **find_big(struct bl_peer *p, uint16_t life, uint32_t id, uint64_t ts)
{
	struct bl_big **at = &p->rrx.big;

	while (*at && ((*at)->id != id || (*at)->life != life || (*at)->ts != ts))
		at = &(*at)->next;
	return at;
}

static uint32_t round8(uint32_t n)
{
	return (n + 7) & ~7u;
}

/* The bits that say which bytes of a message have come (parts_core.h). */
static __u64 *parts_bits(struct bl_big *b)
{
	return (__u64 *)(void *)(b->data + round8(b->total));
}

static struct bl_big *make_big(const struct bl_prep_view *v, uint64_t ts)
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
 * Refuse a part that its sender should not have sent. Its number is used up, and its message never
 * becomes complete: the reference finds too little, and is counted as malformed, too.
 */
static int refuse_part(struct bl_endpoint *ep, struct bl_peer *p, uint16_t life, uint32_t psn)
{
	bl_seq_add(&p->rrx.seq, psn);
	ep->st.malformed++;
	bl_prepared_free_psn(ep, p, life, psn);
	return 0;
}

bool bl_prepared_lacks(const struct bl_peer *p, uint64_t ts, const struct bl_prep_view *v)
{
	struct bl_big *b = *find_big((struct bl_peer *)p, v->incarnation, v->part.msg_id, ts);

	if (!b)
		return true;
	return b->total == v->part.total && !b->broken &&
	       !bl_parts_has(parts_bits(b), v->part.offset, v->part.len);
}

int bl_prepared_part(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts, uint32_t psn,
		     const struct bl_prep_view *v)
{
	const struct bl_frag_view *f = &v->part;
	struct bl_big **at = find_big(p, v->incarnation, f->msg_id, ts), *b = *at;

	if (!b && (p->rrx.nbigs == BL_BIGS_MAX || p->rrx.big_bytes + f->total > BL_RBIG_MAX ||
		   ep->rbig_bytes + f->total > BL_RBIGS_MAX))
		return refuse_part(ep, p, v->incarnation, psn);
	if (!b) {
		b = make_big(v, ts);
		if (!b)
			return -ENOMEM;
		*at = b;
		p->rrx.big_bytes += f->total;
		ep->rbig_bytes += f->total;
		p->rrx.nbigs++;
	}
	if (b->broken || b->total != f->total || bl_parts_add(parts_bits(b), f->offset, f->len)) {
		b->broken = true;
		return refuse_part(ep, p, v->incarnation, psn);
	}
	bl_seq_add(&p->rrx.seq, psn);
	memcpy(b->data + f->offset, f->data, f->len);
	b->done += f->len;
	if (p->rrx.big_bytes <= BL_BIG_MAX) {
		bl_prepared_free_psn(ep, p, v->incarnation, psn);
	} else {
		/*
		 * Too many bytes wait for delivery: keep the part's buffer, so that the sender
		 * waits, too.
		 */
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
	ep->rbig_bytes -= b->total;
	p->rrx.nbigs--;
	/* The parts of a message have consecutive numbers, so all these numbers are its own. */
	for (i = 0; b->kept && i < n && i < BL_SEQ_WINDOW; i++)
		bl_prepared_free_psn(ep, p, b->life, b->kept_first + i);
}

void bl_prepared_drop_bigs(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts)
{
	struct bl_big **at = &p->rrx.big, *b;

	while ((b = *at)) {
		if (b->ts >= ts) {
			at = &b->next;
			continue;
		}
		free_big(ep, p, at);
		free(b);
	}
}

/* ---- frames that must not be delivered ---- */

static void drop_frame(struct bl_endpoint *ep, struct bl_buf *b)
{
	bl_rq_remove(&ep->rrq, &b->rq);
	bl_prepared_free_psn(ep, b->peer, b->life, b->rq.psn);
	bl_buf_put(ep, b);
}

uint64_t bl_rrx_discard(struct bl_endpoint *ep, struct bl_peer *p, uint64_t from_ts, uint16_t life)
{
	struct bl_rq_frame *f = p->rrq.tail, *before;
	struct bl_big **at = &p->rrx.big, *b;
	uint64_t n = 0;

	for (; f && f->ts >= from_ts; f = before) {
		before = f->prev;
		if (life && ((struct bl_buf *)f)->life != life)
			continue;
		drop_frame(ep, (struct bl_buf *)f);
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

void bl_rrx_take_out(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts48, uint32_t psn,
		     uint32_t count, bool skip)
{
	struct bl_rq_frame *f, *next;
	struct bl_big **at = &p->rrx.big, *b;
	uint32_t i;

	for (f = p->rrq.head; f; f = next) {
		next = f->next;
		if ((f->ts & BL_TS_MASK) == ts48 && f->psn - psn < count)
			drop_frame(ep, (struct bl_buf *)f);
	}
	while ((b = *at)) {
		if ((b->ts & BL_TS_MASK) != ts48) {
			at = &b->next;
			continue;
		}
		free_big(ep, p, at);
		free(b);
	}
	for (i = !skip ? 0 : count < BL_SEQ_WINDOW ? count : BL_SEQ_WINDOW; i--;) {
		bl_seq_skip(&p->rrx.seq, psn + (count - 1 - i));
		bl_prepared_free_psn(ep, p, p->rrx.incarnation, psn + (count - 1 - i));
	}
}

/* ---- delivery ---- */

bool bl_rrx_ready(const struct bl_endpoint *ep)
{
	const struct bl_rq_frame *f = bl_rq_min(&ep->rrq);

	return ep->rcur || (f && f->ts < bl_failures_limit(ep));
}

int bl_rrx_count_ready(const struct bl_endpoint *ep)
{
	int n = ep->rcur ? (int)ep->rcur_items.left : 0;
	uint64_t limit = bl_failures_limit(ep);
	uint32_t i;

	/* As in bl_rx_count_ready(). */
	for (i = 0; i < ep->rrq.used && n < 64; i++) {
		const struct bl_rq_frame *f = ep->rrq.heap[i]->head;

		for (; f && f->ts < limit && n < 64; f = f->next)
			n += (int)bl_load16(((const struct bl_buf *)f)->body + 2);
	}
	return n < 64 ? n : 64;
}

static void retire_frame(struct bl_endpoint *ep)
{
	ep->rcur->free_next = ep->rlent.bufs;
	ep->rlent.bufs = ep->rcur;
	ep->rcur = NULL;
}

/*
 * The large message that a reference names, moved to what is lent. Returns NULL if its sender has
 * not sent all of it, against the rules.
 */
static struct bl_big *claim_big(struct bl_endpoint *ep, const struct bl_buf *b,
				const struct bl_item *item)
{
	struct bl_big **at = find_big(b->peer, b->life, item->msg_id, b->rq.ts), *g = *at;

	if (!g)
		return NULL;
	free_big(ep, b->peer, at);
	g->next = ep->rlent.bigs;
	ep->rlent.bigs = g;
	return !g->broken && g->done == g->total && g->total == item->len ? g : NULL;
}

static int deliver_below(struct bl_endpoint *ep, struct bl_delivery *out, size_t max,
			 uint64_t limit)
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
			/* valid: bl_rrx_prep() has checked it */
			bl_items_check(&ep->rcur_items, b->body + BL_ACK_BODY, b->body + b->len,
				       bl_load16(b->body + 2));
			ep->rcur = b;
			bl_prepared_free_psn(ep, b->peer, b->life, b->rq.psn);
			if (b->at)
				bl_fig_hold(ep, true, b);
		}
		if (!bl_items_next(&ep->rcur_items, &item)) {
			retire_frame(ep);
			continue;
		}
		d->ts = b->rq.ts;
		d->src = b->peer->addr;
		d->data = item.data;
		d->len = item.len;
		if (!item.data) {
			struct bl_big *g = claim_big(ep, b, &item);

			if (!g) {
				ep->st.malformed++;
				continue;
			}
			d->data = g->data;
		}
		n++;
	}
	if (ep->rcur && !ep->rcur_items.left)
		retire_frame(ep);
	return (int)n;
}

int bl_rrx_deliver(struct bl_endpoint *ep, struct bl_delivery *out, size_t max)
{
	int n = deliver_below(ep, out, max, bl_failures_limit(ep));

	ep->st.reliable_delivered += (uint32_t)n;
	return n;
}

int bl_rrx_deliver_undecided(struct bl_endpoint *ep, struct bl_delivery *out, size_t max)
{
	return deliver_below(ep, out, max, BL_TIME_NONE);
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
