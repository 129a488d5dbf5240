// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Staging for the best-effort stream: bl_send() appends each message to the stage of its
 * destination, frames of ep->frame_max bytes back to back, of which the last one grows. The layout
 * is the one that UDP GSO needs.
 *
 * Of a large message only a reference is staged. Its bytes leave before the reference in FRAGs,
 * which carry no timestamp, so a message of a megabyte holds the barrier no longer than a message
 * of a byte does.
 */
#include <errno.h>
#include <stdlib.h>

#include "peer.h"
#include "send_fail.h"
#include "stage.h"

void bl_stage_drop(struct bl_endpoint *ep, struct bl_peer *p, uint8_t why)
{
	struct bl_tx *t = &p->tx;
	uint32_t i, k;

	for (i = 0; i < t->nframes; i++) {
		uint32_t n = i + 1 < t->nframes ? bl_load16(bl_stage_frame(ep, t, i) +
							    sizeof(struct bl_hdr) + 2)
						: t->count;

		for (k = 0; k < n; k++)
			bl_tx_fail(ep, p, 0, t->cookies ? t->cookies[i * BL_ITEMS_MAX + k] : 0,
				   why);
	}
	while (t->big) {
		struct bl_big *b = t->big;

		t->big = b->next;
		ep->staged_bytes -= b->total;
		free(b);
	}
	t->big_tail = &t->big;
	t->nframes = t->count = t->fill = 0;
}

static void mark_dirty(struct bl_endpoint *ep, struct bl_peer *p)
{
	if (p->tx.dirty)
		return;
	p->tx.dirty = true;
	p->dirty_next = ep->dirty;
	ep->dirty = p;
}

static int begin_frame(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_tx *t = &p->tx;

	if (!t->stage) {
		t->stage = malloc((size_t)BL_STAGE_FRAMES * ep->frame_max);
		if (!t->stage)
			return -ENOMEM;
	}
	if (ep->on_fail && !t->cookies) {
		t->cookies = calloc(BL_STAGE_FRAMES * BL_ITEMS_MAX, sizeof(*t->cookies));
		t->sent = calloc(2 * BL_WINDOW_MAX, sizeof(*t->sent));
		if (!t->cookies || !t->sent)
			return -ENOMEM;
	}
	if (t->nframes >= bl_stage_cap(t->window, t->alone))
		return -EAGAIN;
	if (t->nframes) {
		/* Frames of one GSO send are equally long: pad the one that is finished. */
		bl_stage_fill_data(ep, bl_stage_frame(ep, t, t->nframes - 1), t->count);
		memset(bl_stage_frame(ep, t, t->nframes - 1) + t->fill, 0, ep->frame_max - t->fill);
	}
	t->nframes++;
	t->fill = BL_FRAME_HEAD;
	t->count = 0;
	return 0;
}

static int stage_big(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_msg *m, uint32_t id)
{
	struct bl_big *b = malloc(sizeof(*b) + m->len);

	if (!b)
		return -ENOMEM;
	b->next = NULL;
	b->id = id;
	b->total = m->len;
	b->room = 0;
	b->done = 0;
	b->broken = false;
	b->why = 0;
	memcpy(b->data, m->data, m->len);
	*p->tx.big_tail = b;
	p->tx.big_tail = &b->next;
	ep->staged_bytes += m->len;
	return 0;
}

static int stage_item(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_msg *m)
{
	struct bl_tx *t = &p->tx;
	bool big = m->len > ep->frame_max - BL_FRAME_HEAD - BL_ITEM_OVERHEAD;
	uint32_t need = BL_ITEM_OVERHEAD + (big ? (uint32_t)sizeof(struct bl_ref) : m->len);
	uint8_t *at;
	int rc;

	if (big && ep->staged_bytes && ep->staged_bytes + m->len > ep->send_buffer)
		return -EAGAIN;
	if (!t->nframes || t->fill + need > ep->frame_max || t->count == BL_ITEMS_MAX) {
		rc = begin_frame(ep, p);
		if (rc)
			return rc;
	}
	at = bl_stage_frame(ep, t, t->nframes - 1) + t->fill;
	if (big) {
		rc = stage_big(ep, p, m, t->next_big);
		if (rc)
			return rc;
		bl_ref_put(at, t->next_big++, m->len);
	} else {
		bl_item_put(at, m->data, m->len);
	}
	if (t->cookies)
		t->cookies[(t->nframes - 1) * BL_ITEMS_MAX + t->count] = m->cookie;
	t->fill += need;
	t->count++;
	return 0;
}

static int save_undo(struct bl_endpoint *ep, struct bl_peer *p)
{
	const struct bl_tx *t = &p->tx;

	if (ep->undo_n == ep->undo_room) {
		uint32_t room = ep->undo_room ? 2 * ep->undo_room : 32;
		struct bl_undo *u = realloc(ep->undo, room * sizeof(*u));

		if (!u)
			return -ENOMEM;
		ep->undo = u;
		ep->undo_room = room;
	}
	ep->undo[ep->undo_n++] =
		(struct bl_undo){ p, t->nframes, t->fill, t->count, t->next_big, t->big_tail };
	return 0;
}

static void undo_staging(struct bl_endpoint *ep)
{
	while (ep->undo_n) {
		const struct bl_undo *u = &ep->undo[--ep->undo_n];
		struct bl_tx *t = &u->peer->tx;

		while (*u->big_tail) {
			struct bl_big *b = *u->big_tail;

			*u->big_tail = b->next;
			ep->staged_bytes -= b->total;
			free(b);
		}
		t->big_tail = u->big_tail;
		t->nframes = u->nframes;
		t->fill = u->fill;
		t->count = u->count;
		t->next_big = u->next_big;
	}
}

int bl_stage_scattering(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n)
{
	size_t i;
	int rc;

	ep->mark++;
	ep->undo_n = 0;
	for (i = 0; i < n; i++) {
		struct bl_peer *p = bl_peer_get(ep, vec[i].dst.ip, vec[i].dst.port);

		if (!p) {
			undo_staging(ep);
			return -ENOMEM;
		}
		if (p->tx.mark != ep->mark) {
			rc = save_undo(ep, p);
			p->tx.mark = ep->mark;
			p->tx.alone = !p->tx.nframes;
			if (rc) {
				undo_staging(ep);
				return rc;
			}
		}
		rc = stage_item(ep, p, &vec[i]);
		if (rc) {
			undo_staging(ep);
			return rc;
		}
		mark_dirty(ep, p);
	}
	return 0;
}

void bl_tx_peer_free(struct bl_peer *p)
{
	while (p->tx.big) {
		struct bl_big *b = p->tx.big;

		p->tx.big = b->next;
		free(b);
	}
	free(p->tx.stage);
	free(p->tx.cookies);
	free(p->tx.sent);
}
