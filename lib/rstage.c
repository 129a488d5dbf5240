// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Staging for the reliable stream (1Pipe section 5): bl_send_reliable() puts messages into PREPs
 * per destination. They wait there, without a timestamp, until rtx.c puts them into the window.
 *
 * Everything that is staged leaves in one flush, has one timestamp, and is committed or recalled as
 * a whole. A large message becomes parts, which have no items, and a reference among the items.
 * Parts are in lists of their own, since they leave first.
 *
 * Example, frames of 1472 bytes: messages of 100, 1400 and 5000 bytes to A. The first one begins a
 * frame of items. The second one does not fit into the rest of that frame, so the frame is padded
 * to 1472 bytes (frames of one GSO send are equally long) and another one begins. The third one
 * becomes four parts, and a reference of 10 bytes behind the second message. Six frames wait: two
 * of items and four of parts.
 *
 * A scattering is planned before anything is staged, so a scattering that does not fit changes
 * nothing and its sender gets -EAGAIN. At most bl_stage_cap() frames of items wait per destination.
 */
#include <errno.h>
#include <stdlib.h>

#include "figures.h"
#include "peer.h"
#include "rstage.h"
#include "send_fail.h"
#include "stage.h"

#define HEAD      (sizeof(struct bl_hdr) + BL_ACK_BODY)
#define PART_HEAD (HEAD + sizeof(struct bl_frag))

/* ---- frames ---- */

void bl_rframe_put(struct bl_endpoint *ep, struct bl_rframe *f)
{
	f->next = ep->rfree;
	ep->rfree = f;
	ep->rfree_n++;
}

static struct bl_rframe *get_frame(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_rframe *f = ep->rfree;

	ep->rfree = f->next;
	ep->rfree_n--;
	f->next = NULL;
	f->peer = p;
	f->tries = 0;
	f->count = 0;
	f->aborted = false;
	f->ts = 0;
	return f;
}

static void append_frame(struct bl_rlist *l, struct bl_rframe *f)
{
	if (l->tail)
		l->tail->next = f;
	else
		l->head = f;
	l->tail = f;
	l->n++;
}

struct bl_rframe *bl_rstage_take(struct bl_rlist *l)
{
	struct bl_rframe *f = l->head;

	l->head = f->next;
	if (!l->head)
		l->tail = NULL;
	l->n--;
	f->next = NULL;
	return f;
}

void bl_rframe_fail(struct bl_endpoint *ep, const struct bl_rframe *f, uint64_t ts, uint8_t why)
{
	uint32_t i;

	for (i = 0; i < f->count; i++)
		bl_tx_fail(ep, f->peer, ts, f->cookie[i], why);
}

/* ---- staging ---- */

static bool is_big(const struct bl_endpoint *ep, uint32_t len)
{
	return len > ep->frame_max - HEAD - BL_ITEM_OVERHEAD;
}

static uint32_t part_count(const struct bl_endpoint *ep, uint32_t len)
{
	uint32_t most = ep->frame_max - PART_HEAD;

	return (len + most - 1) / most;
}

/*
 * Compute how many frames the scattering takes, and whether it fits. Changes nothing but the plans
 * in struct bl_rtx. @to: receives the peers of the messages. Returns the number of frames, or
 * -EAGAIN or -ENOMEM.
 */
static int64_t plan_scattering(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n,
			       struct bl_peer **to)
{
	int64_t frames = 0;
	size_t i;

	ep->mark++;
	for (i = 0; i < n; i++) {
		struct bl_peer *p = bl_peer_get(ep, vec[i].dst.ip, vec[i].dst.port);
		bool big = is_big(ep, vec[i].len);
		uint32_t need =
			BL_ITEM_OVERHEAD + (big ? (uint32_t)sizeof(struct bl_ref) : vec[i].len);
		struct bl_rtx *t;

		if (!p)
			return -ENOMEM;
		to[i] = p;
		t = &p->rtx;
		if (t->mark != ep->mark) {
			t->mark = ep->mark;
			t->alone = !t->items.n && !t->parts.n;
			t->plan_frames = t->items.n;
			t->plan_fill = t->fill;
			t->plan_count = t->items.tail ? t->items.tail->count : 0;
		}
		if (!t->plan_frames || t->plan_fill + need > ep->frame_max ||
		    t->plan_count == BL_ITEMS_MAX) {
			t->plan_frames++;
			t->plan_fill = HEAD;
			t->plan_count = 0;
			frames++;
		}
		if (t->plan_frames > bl_stage_cap(t->window, t->alone))
			return -EAGAIN;
		t->plan_fill += need;
		t->plan_count++;
		if (big)
			frames += part_count(ep, vec[i].len);
	}
	if (ep->rstaged && (ep->rstaged + frames) * ep->frame_max > ep->send_buffer)
		return -EAGAIN;
	return frames;
}

static int reserve_frames(struct bl_endpoint *ep, int64_t frames)
{
	if (!ep->rsent)
		ep->rsent = calloc(BL_RWIN, sizeof(struct bl_rframe *));
	if (!ep->rsent)
		return -ENOMEM;
	while (ep->rfree_n < frames) {
		struct bl_rframe *f = malloc(sizeof(*f) + ep->frame_max);

		if (!f)
			return -ENOMEM;
		bl_rframe_put(ep, f);
	}
	return 0;
}

static void stage_parts(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_msg *m,
			uint32_t id)
{
	uint32_t most = ep->frame_max - PART_HEAD, at, n;

	for (at = 0; at < m->len; at += n) {
		struct bl_rframe *f = get_frame(ep, p);

		n = m->len - at < most ? m->len - at : most;
		bl_frag_put(f->data + HEAD, id, at, m->len);
		memcpy(f->data + PART_HEAD, (const uint8_t *)m->data + at, n);
		f->len = PART_HEAD + n;
		append_frame(&p->rtx.parts, f);
		ep->rstaged++;
	}
}

static void stage_item(struct bl_endpoint *ep, struct bl_peer *p, const struct bl_msg *m)
{
	struct bl_rtx *t = &p->rtx;
	bool big = is_big(ep, m->len);
	uint32_t need = BL_ITEM_OVERHEAD + (big ? (uint32_t)sizeof(struct bl_ref) : m->len);
	struct bl_rframe *f = t->items.tail;
	uint8_t *at;

	if (!f || t->fill + need > ep->frame_max || f->count == BL_ITEMS_MAX) {
		if (f) {
			/* All but the last frame of a GSO send are equally long. */
			memset(f->data + t->fill, 0, ep->frame_max - t->fill);
			f->len = ep->frame_max;
		}
		f = get_frame(ep, p);
		append_frame(&t->items, f);
		ep->rstaged++;
		t->fill = HEAD;
	}
	at = f->data + t->fill;
	if (big) {
		stage_parts(ep, p, m, t->next_big);
		bl_ref_put(at, t->next_big++, m->len);
	} else {
		bl_item_put(at, m->data, m->len);
	}
	f->cookie[f->count++] = m->cookie;
	t->fill += need;
	f->len = t->fill;
	if (!t->dirty) {
		t->dirty = true;
		p->rdirty_next = ep->rdirty;
		ep->rdirty = p;
	}
}

int bl_rstage_scattering(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n)
{
	struct bl_peer *to[BL_SCATTER_MAX];
	int64_t frames;
	size_t i;
	int rc;

	if (ep->rts)
		return -EAGAIN; /* what is staged has its timestamp */
	frames = plan_scattering(ep, vec, n, to);
	if (frames < 0)
		return (int)frames;
	rc = reserve_frames(ep, frames);
	if (rc)
		return rc;
	for (i = 0; i < n; i++)
		stage_item(ep, to[i], &vec[i]);
	return 0;
}

static void drop_list(struct bl_endpoint *ep, struct bl_rlist *l, uint8_t why)
{
	while (l->n) {
		struct bl_rframe *f = bl_rstage_take(l);

		bl_rframe_fail(ep, f, f->ts, why);
		bl_rframe_put(ep, f);
		ep->rstaged--;
	}
}

/* Nothing that is staged has left, so it fails as a whole. */
void bl_rstage_drop(struct bl_endpoint *ep, uint8_t why)
{
	struct bl_peer *p;

	while ((p = ep->rdirty)) {
		ep->rdirty = p->rdirty_next;
		p->rtx.dirty = false;
		p->rtx.fill = 0;
		drop_list(ep, &p->rtx.parts, why);
		drop_list(ep, &p->rtx.items, why);
	}
	ep->rheld = false;
	bl_fig_left(ep, true, 0, 0);
}

bool bl_rstage_any(const struct bl_endpoint *ep)
{
	const struct bl_peer *p;

	for (p = ep->rdirty; p; p = p->rdirty_next)
		if (p->rtx.parts.n || p->rtx.items.n)
			return true;
	return false;
}

static void free_frames(struct bl_rframe *f)
{
	while (f) {
		struct bl_rframe *n = f->next;

		free(f);
		f = n;
	}
}

void bl_rstage_free(struct bl_endpoint *ep)
{
	struct bl_peer *p;

	for (p = ep->peers; p; p = p->all_next) {
		free_frames(p->rtx.parts.head);
		free_frames(p->rtx.items.head);
	}
	free_frames(ep->rkept);
	free_frames(ep->rfree);
}
