// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events of the failure procedure other than HELLO, and time. */
#include <stdlib.h>
#include <string.h>

#include "controller/recover/recover_priv.h"

/* ---- reports ---- */

enum bl_recover_reason bl_recover_bye(struct bl_recover *r, uint64_t now, uint32_t node)
{
	struct bl_recover_node *n = recover_node_of(r, node);

	(void)now;
	if (!n || !n->agent)
		return BL_RECOVER_UNKNOWN_NODE;
	n->connected = n->sworn = n->welcome = false;
	return BL_RECOVER_OK;
}

enum bl_recover_reason bl_recover_away(struct bl_recover *r, uint64_t now, uint32_t node,
				       uint64_t ns)
{
	struct bl_recover_node *n = recover_node_of(r, node);

	if (!r->epoch)
		return BL_RECOVER_NOT_LEADING;
	if (!n || !n->agent)
		return BL_RECOVER_UNKNOWN_NODE;
	recover_grant_absence(n, now, ns);
	/* A failed node has nothing to answer, and the record of its failure names it. */
	if (n->state != BL_DET_GONE)
		recover_save_node(r, n);
	else
		recover_send_command(r, BL_RECOVER_AWAY, n, 0);
	return BL_RECOVER_OK;
}

enum bl_recover_reason bl_recover_link_down(struct bl_recover *r, uint64_t now, uint32_t node,
					    uint32_t port, uint32_t neighbour, uint64_t c,
					    uint32_t death)
{
	enum bl_recover_reason why;
	struct bl_recover_node *n;
	struct bl_recover_port *p;
	bool asked;

	why = recover_find_speaker(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (c > RECOVER_C_MAX && c != BL_DET_NO_C)
		return BL_RECOVER_BAD_C;
	p = recover_port_of(n, port);
	if (!p || neighbour == node || (p->neighbour && neighbour && p->neighbour != neighbour))
		return BL_RECOVER_UNKNOWN_PORT;
	asked = p->asked;
	p->asked = false;
	recover_update_due(r, n, now);
	if (p->state == BL_DET_SILENT || (p->record && !recover_port_died_again(p, death)))
		return BL_RECOVER_REPEATED;
	if (p->record)
		p->joined = r->number; /* The input was live between the two deaths. */
	p->record = 0;
	if (!p->neighbour)
		p->neighbour = neighbour;
	p->behind = p->state == BL_DET_BEHIND;
	p->rises = 0;
	p->state = BL_DET_SILENT;
	p->c = c;
	p->death = death;
	recover_make_neighbours(r, n);
	recover_schedule_judgement(r, now, asked ? 0 : r->cfg.settle_ns);
	return BL_RECOVER_OK;
}

static bool same_proc(const struct bl_recover_failed *f, uint32_t node,
		      const struct bl_recover_proc *p)
{
	return f->node == node && f->proc.port == p->port && f->proc.life == p->life &&
	       f->proc.t == p->t;
}

enum bl_recover_reason bl_recover_proc_down(struct bl_recover *r, uint64_t now, uint32_t node,
					    const struct bl_recover_proc *p)
{
	enum bl_recover_reason why;
	struct bl_recover_node *n;
	uint32_t i, k;

	why = recover_find_speaker(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (p->t > RECOVER_C_MAX && p->t != BL_DET_NO_C)
		return BL_RECOVER_BAD_C;
	if (n->kind != BL_DET_HOST || !p->port)
		return BL_RECOVER_UNKNOWN_PORT;
	if (!n->naddrs)
		return BL_RECOVER_NO_ADDRESS;
	recover_stuck_gone(r, node, p);
	for (i = 0; i < r->nprocs; i++)
		if (r->proc[i].node == node && r->proc[i].p.port == p->port &&
		    r->proc[i].p.life == p->life)
			return BL_RECOVER_REPEATED;
	for (i = 0; i < r->nfailures; i++)
		for (k = 0; k < r->failure[i]->nfailed; k++)
			if (same_proc(&r->failure[i]->failed[k], node, p))
				return BL_RECOVER_REPEATED;
	if (p->why == BL_WHY_LEFT)
		return recover_announce_leave(r, n, p, now) ? BL_RECOVER_OK : BL_RECOVER_FULL;
	if (r->nprocs == BL_RECOVER_PROCS_MAX ||
	    !recover_grow(&r->proc, r->nprocs, &r->proc_room, sizeof(*r->proc)))
		return BL_RECOVER_FULL;
	r->proc[r->nprocs++] = (struct dead_proc){ node, *p };
	recover_schedule_judgement(r, now, r->cfg.settle_ns);
	return BL_RECOVER_OK;
}

enum bl_recover_reason bl_recover_leave(struct bl_recover *r, uint64_t now, uint32_t node)
{
	enum bl_recover_reason why;
	struct bl_recover_node *n;

	why = recover_find_speaker(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (n->kind != BL_DET_HOST)
		return BL_RECOVER_UNKNOWN_NODE;
	why = bl_recover_down(r, now, node);
	if (why == BL_RECOVER_OK)
		n->leaves = true;
	return why;
}

enum bl_recover_reason bl_recover_down(struct bl_recover *r, uint64_t now, uint32_t node)
{
	enum bl_recover_reason why;
	struct bl_recover_node *n;

	why = recover_find_member(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (n->state == BL_DET_DOWN)
		return BL_RECOVER_REPEATED;
	n->state = BL_DET_DOWN;
	recover_schedule_judgement(r, now, 0);
	return BL_RECOVER_OK;
}

/* ---- answers ---- */

enum bl_recover_reason bl_recover_barred(struct bl_recover *r, uint64_t now, uint32_t node,
					 uint64_t version)
{
	enum bl_recover_reason why;
	struct bl_recover_node *n;

	why = recover_find_speaker(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (version > n->bar)
		return BL_RECOVER_UNKNOWN_FAILURE;
	if (version <= n->barred)
		return BL_RECOVER_REPEATED;
	n->barred = version;
	recover_update_due(r, n, now);
	if (r->pending && n->barred == n->bar)
		recover_schedule_judgement(r, now, 0);
	return BL_RECOVER_OK;
}

static enum bl_recover_reason take_answer(struct bl_recover *r, uint64_t now, uint32_t node,
					  uint64_t number, enum bl_recover_step step)
{
	struct bl_recover_failure *f = recover_failure_of(r, number);
	enum bl_recover_reason why;
	struct bl_recover_node *n;
	struct bl_recover_wait *w;

	why = recover_find_speaker(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (!f || f->step < step || (f->step == step && f->saving))
		return BL_RECOVER_UNKNOWN_FAILURE;
	w = recover_wait_of(f, node);
	if (!w || (step == BL_RECOVER_ANNOUNCED ? w->done : w->resumed))
		return BL_RECOVER_REPEATED;
	if (step == BL_RECOVER_ANNOUNCED)
		w->done = true;
	else
		w->resumed = true;
	recover_progress_all(r, now);
	return BL_RECOVER_OK;
}

enum bl_recover_reason bl_recover_done(struct bl_recover *r, uint64_t now, uint32_t node,
				       uint64_t number)
{
	return take_answer(r, now, node, number, BL_RECOVER_ANNOUNCED);
}

enum bl_recover_reason bl_recover_resumed(struct bl_recover *r, uint64_t now, uint32_t node,
					  uint64_t number)
{
	return take_answer(r, now, node, number, BL_RECOVER_RESUMED);
}

/* ---- time ---- */

/* A node that is not back in time is one that does not answer, for the next leader, too. */
static void end_absences(struct bl_recover *r, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];

		if (!n->away_ns || now < n->away_until)
			continue;
		n->away_ns = 0;
		if (n->state != BL_DET_GONE)
			recover_save_node(r, n);
	}
}

/* Declares nodes down that have not answered in time, if that is likely their own fault. */
static void mark_late_nodes(struct bl_recover *r, uint64_t now)
{
	bool late = false, isolated;
	uint32_t i, k;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];

		if (!n->due || now < n->due)
			continue;
		if (now < n->away_until) {
			n->due = n->away_until + r->cfg.answer_ns;
			continue;
		}
		n->due = now + r->cfg.answer_ns;
		late |= n->late = n->state != BL_DET_DOWN;
	}
	for (i = 0; i < r->nfailures; i++) {
		struct bl_recover_failure *f = r->failure[i];

		if (f->step == BL_RECOVER_FINISHED || f->saving || now < f->due_ns)
			continue;
		f->due_ns = now + r->cfg.answer_ns;
		for (k = 0; k < f->nwaits; k++) {
			struct bl_recover_node *n = recover_node_of(r, f->wait[k].node);

			if (recover_can_answer(n) && n->state != BL_DET_DOWN &&
			    now >= n->away_until &&
			    (f->step == BL_RECOVER_ANNOUNCED ? !f->wait[k].done
							     : !f->wait[k].resumed))
				late = n->late = true;
		}
	}
	late |= recover_stuck_late(r, now);
	if (!late)
		return;
	isolated = bl_recover_isolated(r);
	r->doubts = !isolated && !recover_late_may_fail(r);
	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];

		if (n->late && !r->doubts && !isolated)
			bl_recover_down(r, now, n->id);
		n->late = false;
	}
}

void bl_recover_tick(struct bl_recover *r, uint64_t now)
{
	if (!r->epoch)
		return;
	if (r->grace_until && now >= r->grace_until)
		r->grace_until = 0;
	end_absences(r, now);
	mark_late_nodes(r, now);
	r->doubts = r->doubts && (r->pending || recover_open_failures(r));
	if (r->dirty && now >= r->judge_ns)
		recover_judge(r, now);
	recover_stuck_tick(r, now);
}

uint64_t bl_recover_due(const struct bl_recover *r)
{
	uint64_t due = r->dirty ? r->judge_ns : UINT64_MAX;
	uint32_t i;

	if (!r->epoch)
		return UINT64_MAX;
	if (recover_stuck_due(r) < due)
		due = recover_stuck_due(r);
	for (i = 0; i < r->nnodes; i++) {
		if (r->node[i]->due && r->node[i]->due < due)
			due = r->node[i]->due;
		if (r->node[i]->away_ns && r->node[i]->away_until < due)
			due = r->node[i]->away_until;
	}
	for (i = 0; i < r->nfailures; i++)
		if (r->failure[i]->step != BL_RECOVER_FINISHED && !r->failure[i]->saving &&
		    r->failure[i]->due_ns < due)
			due = r->failure[i]->due_ns;
	return due;
}
