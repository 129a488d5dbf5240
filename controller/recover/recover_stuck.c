// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Complaints: no node has failed, but two processes do not reach each other, neither over the
 * network nor through the controller (recover_core.h, bl_recover_proc_stuck()). What is not
 * acknowledged holds the commit barrier of the rack, so one of the two has to be expelled.
 *
 * Example: h1:5 complains about h2:7 and h3:9, h4:6 complains about h2:7. h1:5 and h2:7 are at the
 * ends of two complaints each. h2:7 is a receiver, so it is expelled: PUT_OUT h2:7. What is left is
 * the complaint of h1:5 about h3:9, one for each end: PUT_OUT h3:9. Had h4:6 not complained, h1:5
 * alone would be expelled.
 *
 * Nothing is decided while a silent link is to be judged: if h3 has failed, that is why it was not
 * reached, and the complaint of h1:5 about h3:9 is void. The model is controller/model/stuck.pml.
 *
 * The answer to PUT_OUT is PROC_DOWN. A host that does not give it in time has failed itself, as
 * with every other answer.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/recover/recover_priv.h"

static bool is_same_end(const struct stuck_end *a, const struct stuck_end *b)
{
	return a->node == b->node && a->port == b->port && a->life == b->life;
}

/* Whether @e was expelled or announced already, so that complaints about it are settled. */
static bool is_announced(const struct bl_recover *r, const struct stuck_end *e)
{
	uint32_t i, k;

	for (i = 0; i < r->nprocs; i++)
		if (r->proc[i].node == e->node && r->proc[i].p.port == e->port &&
		    r->proc[i].p.life == e->life)
			return true;
	for (i = 0; i < r->nfailures; i++) {
		const struct bl_recover_failure *f = r->failure[i];

		for (k = 0; f->step != BL_RECOVER_FINISHED && k < f->nfailed; k++)
			if (f->failed[k].node == e->node && f->failed[k].proc.port == e->port &&
			    f->failed[k].proc.life == e->life)
				return true;
	}
	for (i = 0; i < r->nexpelled; i++)
		if (is_same_end(&r->expelled[i].who, e))
			return true;
	return false;
}

enum bl_recover_reason bl_recover_proc_stuck(struct bl_recover *r, uint64_t now, uint32_t node,
					     const struct bl_recover_stuck *s)
{
	const struct bl_recover_node *to = bl_recover_node_of(r, s->addr);
	struct complaint c = { .from = { node, s->from.port, s->from.life },
			       .to = { 0, s->to.port, s->to.life } };
	enum bl_recover_reason why;
	struct bl_recover_node *n;
	uint32_t i;

	why = recover_find_speaker(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (n->kind != BL_DET_HOST || !s->from.port || !s->to.port)
		return BL_RECOVER_UNKNOWN_PORT;
	if (!to || to->kind != BL_DET_HOST)
		return BL_RECOVER_UNKNOWN_NODE;
	c.to.node = to->id;
	if (to->state != BL_DET_UP)
		return BL_RECOVER_FAILED_NODE;
	for (i = 0; i < r->nstuck; i++)
		if (is_same_end(&r->stuck[i].from, &c.from) && is_same_end(&r->stuck[i].to, &c.to))
			return BL_RECOVER_REPEATED;
	if (is_announced(r, &c.from) || is_announced(r, &c.to))
		return BL_RECOVER_REPEATED;
	if (r->nstuck == BL_RECOVER_STUCK_MAX ||
	    !recover_grow(&r->stuck, r->nstuck, &r->stuck_room, sizeof(*r->stuck)))
		return BL_RECOVER_FULL;
	if (!r->nstuck)
		r->stuck_ns = now + BL_RECOVER_STUCK_NS;
	r->stuck[r->nstuck++] = c;
	return BL_RECOVER_OK;
}

/* Returns the number of complaints that @e is an end of. */
static uint32_t count_ends(const struct bl_recover *r, const struct stuck_end *e)
{
	uint32_t i, n = 0;

	for (i = 0; i < r->nstuck; i++)
		n += is_same_end(&r->stuck[i].from, e) || is_same_end(&r->stuck[i].to, e);
	return n;
}

/* Removes the complaints that @e is an end of. */
static void drop_complaints(struct bl_recover *r, const struct stuck_end *e)
{
	uint32_t i, left = 0;

	for (i = 0; i < r->nstuck; i++)
		if (!is_same_end(&r->stuck[i].from, e) && !is_same_end(&r->stuck[i].to, e))
			r->stuck[left++] = r->stuck[i];
	r->nstuck = left;
}

static void send_put_out(struct bl_recover *r, const struct stuck_end *e)
{
	recover_send_command(r, BL_RECOVER_PUT_OUT, recover_node_of(r, e->node),
			     (uint64_t)e->life << 16 | e->port);
}

/* Whether the node of @e is not known, or has failed. */
static bool is_end_failed(const struct bl_recover *r, const struct stuck_end *e)
{
	const struct bl_recover_node *n = recover_node_of(r, e->node);

	return !n || n->state != BL_DET_UP;
}

/* Removes the complaints about nodes that have failed: the failure was the reason. */
static void drop_failed_ends(struct bl_recover *r)
{
	uint32_t i, left = 0;

	for (i = 0; i < r->nstuck; i++)
		if (!is_end_failed(r, &r->stuck[i].from) && !is_end_failed(r, &r->stuck[i].to))
			r->stuck[left++] = r->stuck[i];
	r->nstuck = left;
}

/* Whether something silent is not judged or not announced yet. */
static bool is_judgement_open(const struct bl_recover *r)
{
	return r->dirty || r->pending;
}

void recover_stuck_tick(struct bl_recover *r, uint64_t now)
{
	if (is_judgement_open(r))
		return;
	drop_failed_ends(r);
	while (r->nstuck && now >= r->stuck_ns) {
		struct stuck_end worst = r->stuck[0].to;
		uint32_t i, most = count_ends(r, &worst);

		for (i = 0; i < r->nstuck; i++) {
			uint32_t n = count_ends(r, &r->stuck[i].to);

			if (n > most) {
				most = n;
				worst = r->stuck[i].to;
			}
		}
		/* A sender has to be at more ends than every receiver. */
		for (i = 0; i < r->nstuck; i++) {
			uint32_t n = count_ends(r, &r->stuck[i].from);

			if (n > most) {
				most = n;
				worst = r->stuck[i].from;
			}
		}
		if (!recover_grow(&r->expelled, r->nexpelled, &r->expelled_room,
				  sizeof(*r->expelled)))
			return;
		r->expelled[r->nexpelled++] = (struct expelled){ worst, recover_answer_by(r, now) };
		send_put_out(r, &worst);
		drop_complaints(r, &worst);
	}
}

bool recover_stuck_late(struct bl_recover *r, uint64_t now)
{
	uint32_t i, left = 0;
	bool late = false;

	for (i = 0; i < r->nexpelled; i++) {
		struct expelled *e = &r->expelled[i];
		struct bl_recover_node *n = recover_node_of(r, e->who.node);

		if (!n || !recover_can_answer(n))
			continue; /* It failed with its host. */
		if (now >= e->due && now < n->away_until) {
			e->due = n->away_until + r->cfg.answer_ns;
		} else if (now >= e->due) {
			e->due = now + r->cfg.answer_ns;
			late |= n->late = n->state != BL_DET_DOWN;
		}
		r->expelled[left++] = *e;
	}
	r->nexpelled = left;
	return late;
}

uint64_t recover_stuck_due(const struct bl_recover *r)
{
	uint64_t due = r->nstuck && !is_judgement_open(r) ? r->stuck_ns : UINT64_MAX;
	uint32_t i;

	for (i = 0; i < r->nexpelled; i++)
		if (r->expelled[i].due < due)
			due = r->expelled[i].due;
	return due;
}

void recover_stuck_gone(struct bl_recover *r, uint32_t node, const struct bl_recover_proc *p)
{
	const struct stuck_end e = { node, p->port, p->life };
	uint32_t i, left = 0;

	drop_complaints(r, &e);
	for (i = 0; i < r->nexpelled; i++)
		if (!is_same_end(&r->expelled[i].who, &e))
			r->expelled[left++] = r->expelled[i];
	r->nexpelled = left;
}

void recover_stuck_welcome(struct bl_recover *r, const struct bl_recover_node *n)
{
	uint32_t i;

	for (i = 0; i < r->nexpelled; i++)
		if (r->expelled[i].who.node == n->id)
			send_put_out(r, &r->expelled[i].who);
}
