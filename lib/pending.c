// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_get_pending(): which messages have neither been acknowledged nor reported as failed.
 *
 * Best effort: messages in the stage, parts of large ones included, and frames behind the last
 * CREDIT. Reliable: messages in the stage, and frames in slots of the window that are open.
 */
#include "lock.h"
#include "stage.h"

/* Entries for the destinations that were met so far. */
struct list {
	struct bl_pending *v;
	size_t max, n; /* of @v, and of all destinations: those beyond @max are only counted */
};

/* The entry of a new destination; @spare if there is no room in the caller's array. */
static struct bl_pending *new_entry(struct list *l, const struct bl_peer *p,
				    struct bl_pending *spare)
{
	struct bl_pending *e = l->n < l->max ? &l->v[l->n] : spare;

	l->n++;
	*e = (struct bl_pending){ .dst = p->addr };
	return e;
}

static void add_message(struct bl_pending *e, uint64_t cookie)
{
	if (!e->messages++ || cookie < e->cookie)
		e->cookie = cookie;
}

/* Messages of frames that have left, best effort. Without a callback they are not remembered. */
static void add_sent(struct bl_pending *e, const struct bl_tx *t)
{
	uint32_t psn, i;

	if (t->dead)
		return;
	for (psn = t->credited; psn != t->next_psn; psn++) {
		const struct bl_sent *s = t->sent ? &t->sent[psn % (2 * BL_WINDOW_MAX)] : NULL;

		e->frames++;
		for (i = 0; s && s->psn == psn && i < s->count; i++)
			add_message(e, s->cookie[i]);
	}
}

static void add_staged(const struct bl_endpoint *ep, struct bl_pending *e, const struct bl_tx *t)
{
	uint32_t f, i, n;

	for (f = 0; f < t->nframes; f++) {
		n = f + 1 < t->nframes
			    ? bl_load16(bl_stage_frame(ep, t, f) + sizeof(struct bl_hdr) + 2)
			    : t->count;
		e->frames++;
		for (i = 0; t->cookies && i < n; i++)
			add_message(e, t->cookies[f * BL_ITEMS_MAX + i]);
	}
}

static void add_reliable(struct bl_pending *e, const struct bl_rframe *f)
{
	uint32_t i;

	e->frames++;
	for (i = 0; i < f->count; i++)
		add_message(e, f->cookie[i]);
}

static void add_window(const struct bl_endpoint *ep, struct bl_pending *e, const struct bl_peer *p)
{
	const struct bl_rframe *f;
	uint32_t n;

	for (n = ep->rreaped; ep->rsent && n != ep->rtail; n++)
		if (ep->rsent[n % BL_RWIN]->peer == p &&
		    __atomic_load_n(&bl_rwin_slot(ep->rwin, n)->wait, __ATOMIC_ACQUIRE) &
			    BL_RSLOT_OPEN)
			add_reliable(e, ep->rsent[n % BL_RWIN]);
	for (f = p->rtx.parts.head; f; f = f->next)
		add_reliable(e, f);
	for (f = p->rtx.items.head; f; f = f->next)
		add_reliable(e, f);
}

int bl_get_pending(struct bl_endpoint *ep, struct bl_pending *out, size_t max)
{
	struct list l = { .v = out, .max = max };
	struct bl_pending spare;
	const struct bl_peer *p;

	bl_enter(ep);
	for (p = ep->peers; p; p = p->all_next) {
		struct bl_pending *e;

		if (p->self)
			continue;
		e = new_entry(&l, p, &spare);
		add_sent(e, &p->tx);
		add_staged(ep, e, &p->tx);
		add_window(ep, e, p);
		if (!e->frames && !p->tx.big)
			l.n--;
	}
	bl_leave(ep);
	return (int)l.n;
}
