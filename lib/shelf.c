// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The shelf: messages that the helper thread (helper.c) has delivered in the application's place,
 * in order, with the memory that they lie in, until the application asks for them. For all other
 * processes they are delivered: their credits are returned, and nothing takes them back. That is
 * correct because they were below the barrier when they came here; the functions that deliver to
 * the application (rx.c, prepared.c) also deliver to the shelf.
 *
 * Example: 100 messages of two senders lie here, in one chunk of 64 and one of 36. bl_recv() for 70
 * messages hands out the first chunk, whose buffers are lent to the application until its next
 * call, and six messages of the second chunk, whose buffers stay here as long as its other 30
 * messages.
 */
#include <stdlib.h>

#include "buf.h"
#include "failures.h"
#include "prepared.h"
#include "rx.h"
#include "shelf.h"

static struct bl_chunk *chunk_with_room(struct bl_endpoint *ep, struct bl_shelf *s)
{
	struct bl_chunk *c = s->tail;

	if (c && c->n < BL_CHUNK)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->bytes = sizeof(*c);
	ep->shelf_bytes += sizeof(*c);
	if (s->tail)
		s->tail->next = c;
	else
		s->head = c;
	s->tail = c;
	return c;
}

/* Count the memory that a delivery has added to the chunk. @before: the chunk's lists before it. */
static void count_memory(struct bl_endpoint *ep, struct bl_chunk *c, const struct bl_lent *before)
{
	const struct bl_buf *b;
	const struct bl_big *g;
	uint64_t n = 0;

	for (b = c->lent.bufs; b != before->bufs; b = b->free_next)
		n += sizeof(*b) + b->room;
	for (g = c->lent.bigs; g != before->bigs; g = g->next)
		n += sizeof(*g) + g->total;
	c->bytes += n;
	ep->shelf_bytes += n;
}

/* Deliver one message to the shelf. Returns false if there is no message, or no room. */
static bool shelve_message(struct bl_endpoint *ep, struct bl_shelf *s, bool reliable)
{
	struct bl_lent *lent = reliable ? &ep->rlent : &ep->lent, callers = *lent, before;
	struct bl_chunk *c = ep->shelf_bytes < ep->shelf_max ? chunk_with_room(ep, s) : NULL;
	struct bl_shelved *m;
	int n;

	if (!c)
		return false;
	m = &c->m[c->n];
	before = *lent = c->lent;
	n = reliable ? bl_rrx_deliver(ep, &m->d, 1) : bl_rx_deliver(ep, &m->d, 1);
	c->lent = *lent;
	*lent = callers;
	count_memory(ep, c, &before);
	if (n <= 0)
		return false;
	/* Deliveries are counted when the application gets the message. */
	if (reliable) {
		ep->st.reliable_delivered--;
	} else {
		const struct bl_buf *b = ep->cur ? ep->cur : c->lent.bufs;

		ep->st.messages_delivered--;
		m->peer = b->peer;
		m->psn = b->rq.psn;
		m->item = (uint8_t)(ep->cur_index - 1);
	}
	c->n++;
	s->messages++;
	return true;
}

void bl_shelf_fill(struct bl_endpoint *ep)
{
	while (bl_rx_ready(ep) && shelve_message(ep, &ep->shelf, false))
		;
	while (ep->reliable && bl_rrx_ready(ep) && shelve_message(ep, &ep->rshelf, true))
		;
}

/* The messages of the first chunk are handed out: lend its memory to the application. */
static void lend_chunk(struct bl_endpoint *ep, struct bl_shelf *s, struct bl_lent *lent)
{
	struct bl_chunk *c = s->head;
	struct bl_buf **b = &c->lent.bufs;
	struct bl_big **g = &c->lent.bigs;

	while (*b)
		b = &(*b)->free_next;
	*b = lent->bufs;
	while (*g)
		g = &(*g)->next;
	*g = lent->bigs;
	*lent = c->lent;
	ep->shelf_bytes -= c->bytes;
	s->head = c->next;
	if (!s->head)
		s->tail = NULL;
	free(c);
}

size_t bl_shelf_take(struct bl_endpoint *ep, bool reliable, struct bl_delivery *out, size_t max)
{
	struct bl_shelf *s = reliable ? &ep->rshelf : &ep->shelf;
	struct bl_lent *lent = reliable ? &ep->rlent : &ep->lent;
	uint64_t limit = reliable && s->head ? bl_failures_limit(ep) : UINT64_MAX;
	size_t n = 0;

	while (s->head) {
		struct bl_chunk *c = s->head;

		if (c->at == c->n) {
			lend_chunk(ep, s, lent);
			continue;
		}
		if (n == max || c->m[c->at].d.ts >= limit)
			break;
		out[n++] = c->m[c->at++].d;
		s->messages--;
	}
	if (reliable)
		ep->st.reliable_delivered += n;
	else
		ep->st.messages_delivered += n;
	return n;
}

uint32_t bl_shelf_count(const struct bl_endpoint *ep, bool reliable)
{
	const struct bl_shelf *s = reliable ? &ep->rshelf : &ep->shelf;
	const struct bl_chunk *c = s->head;

	while (c && c->at == c->n)
		c = c->next;
	return c && (!reliable || c->m[c->at].d.ts < bl_failures_limit(ep)) ? s->messages : 0;
}

/* Counts what lies on the shelf, what waits in the queues, and the parts of large messages. */
bool bl_shelf_full(const struct bl_endpoint *ep)
{
	uint64_t n = ep->shelf_bytes + (uint64_t)(ep->rq.frames + ep->rrq.frames) * BL_SHELF_FRAME;
	const struct bl_peer *p;

	for (p = ep->peers; p && n < ep->shelf_max; p = p->all_next)
		n += p->rx.big_bytes + p->rrx.big_bytes;
	return n >= ep->shelf_max;
}

static void free_shelf(struct bl_shelf *s)
{
	struct bl_chunk *c;

	while ((c = s->head)) {
		s->head = c->next;
		bl_lent_free(&c->lent);
		free(c);
	}
	s->tail = NULL;
}

void bl_shelf_free(struct bl_endpoint *ep)
{
	free_shelf(&ep->shelf);
	free_shelf(&ep->rshelf);
}
