// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The failure procedure hears: agents, time, the store, and what a leader before had saved
 * (recover_core.h).
 */
#include <stdlib.h>
#include <string.h>

#include "recover_priv.h"

/* ---- events ---- */

static void node_save(struct bl_recover *r, struct bl_recover_node *n)
{
	n->again = n->saving;
	if (!n->saving)
		recover_put_out(r, BL_RECOVER_SAVE_NODE, n->id, 0);
	n->saving = true;
}

/* All that a node with a new session has to know, in order. */
static void welcome(struct bl_recover *r, struct bl_recover_node *n, uint64_t now)
{
	bool asked = false;
	uint32_t i;

	n->welcome = false;
	if (!n->connected)
		return;
	recover_put_out(r, BL_RECOVER_WELCOME, n->id, n->gone);
	if (n->state == BL_DET_GONE) {
		/* receiver recovery: what was announced from its own failure on */
		for (i = 0; i < r->nfailures; i++)
			if (r->failure[i]->number >= n->gone && r->failure[i]->nfailed &&
			    !(r->failure[i]->step == BL_RECOVER_ANNOUNCED && r->failure[i]->saving))
				recover_put_out(r, BL_RECOVER_FAIL, n->id, r->failure[i]->number);
		return;
	}
	n->bar++;
	recover_to_node(r, BL_RECOVER_BAR, n, 0);
	for (i = 0; i < n->nports; i++)
		asked |= n->port[i].asked;
	if (asked)
		recover_to_node(r, BL_RECOVER_FREEZE, n, 0);
	recover_update_due(r, n, now);
	recover_stuck_welcome(r, n);
	for (i = 0; i < r->nfailures; i++) {
		const struct bl_recover_failure *f = r->failure[i];
		const struct bl_recover_wait *w = f->saving ? NULL : recover_wait_of(f, n->id);

		if (w && f->step == BL_RECOVER_ANNOUNCED && !w->done)
			recover_to_node(r, BL_RECOVER_FAIL, n, f->number);
		if (w && f->step == BL_RECOVER_RESUMED && !w->resumed)
			recover_to_node(r, BL_RECOVER_RESUME, n, f->number);
	}
}

void bl_recover_saved_node(struct bl_recover *r, uint64_t now, uint32_t node)
{
	struct bl_recover_node *n = recover_node_of(r, node);

	if (!n || !n->saving)
		return;
	n->saving = false;
	if (n->again) {
		node_save(r, n);
		return;
	}
	n->saved = true;
	if (n->welcome)
		welcome(r, n, now);
	if (n->away_ns)
		recover_to_node(r, BL_RECOVER_AWAY, n, 0);
}

static bool hello_ok(const struct bl_recover_hello *h)
{
	uint32_t i, k;

	if (!h->id || h->kind > BL_DET_SWITCH || h->nports > BL_RECOVER_PORTS_MAX ||
	    h->naddrs > BL_RECOVER_ADDRS_MAX || h->nendpoints > BL_RECOVER_ENDPOINTS_MAX ||
	    (h->kind == BL_DET_SWITCH && h->nendpoints))
		return false;
	for (i = 0; i < h->nports; i++) {
		const struct bl_recover_port *p = &h->port[i];

		if (p->port > UINT16_MAX || p->role > BL_RECOVER_DOWN ||
		    p->state >= BL_DET_WAY_STATES || p->neighbour == h->id ||
		    (h->kind == BL_DET_HOST && p->role != BL_RECOVER_UP) ||
		    (p->state == BL_DET_SILENT && p->c > RECOVER_C_MAX && p->c != BL_DET_NO_C))
			return false;
		for (k = 0; k < i; k++)
			if (h->port[k].port == p->port)
				return false;
	}
	return true;
}

/* It is being resumed and has died again since, as whoever is there now: the next failure's. */
static bool died_again(const struct bl_recover_port *p, uint32_t death)
{
	return p->state == BL_DET_REMOVED && p->record && death != p->death;
}

/* What the node says of a port that we know as *@p; returns whether something new is silent. */
static bool merge_port(const struct bl_recover *r, struct bl_recover_port *p,
		       const struct bl_recover_port *said)
{
	const struct bl_recover_node *to;
	bool lost;

	/*
	 * stands still until it is resumed by us, whatever it is now; and what is being resumed may
	 * say for a while that it is silent. That it rises, or is silent since another death, it
	 * says when it was resumed.
	 */
	if (p->state == BL_DET_SILENT ||
	    (p->state == BL_DET_REMOVED && p->record && !bl_det_rises(said->state) &&
	     !(said->state == BL_DET_SILENT && died_again(p, said->death)))) {
		if (p->state == BL_DET_SILENT && !p->record && said->state == BL_DET_SILENT) {
			p->c = said->c;
			p->death = said->death;
		}
		return false;
	}
	p->role = said->role;
	p->neighbour = said->neighbour;
	to = p->neighbour ? recover_node_of(r, p->neighbour) : NULL;
	p->rises = 0;
	if (bl_det_rises(said->state) && p->state == BL_DET_REMOVED && to &&
	    to->state == BL_DET_GONE) {
		p->rises = (uint8_t)(said->state + 1);
		return false;
	}
	if ((bl_det_rises(said->state) && !bl_det_rises(p->state)) || p->record)
		p->joined = r->number;
	p->record = 0;
	lost = p->state == BL_DET_LIVE && said->state != BL_DET_LIVE;
	p->behind = said->state == BL_DET_SILENT && p->state == BL_DET_BEHIND;
	p->state = said->state;
	p->c = said->c;
	p->death = said->death;
	if (said->state == BL_DET_SILENT)
		p->asked = false;
	return lost || said->state == BL_DET_SILENT;
}

static bool same_links(const struct bl_recover_node *n, const struct bl_recover_port *v,
		       uint32_t nv)
{
	uint32_t i;

	if (n->nports != nv)
		return false;
	for (i = 0; i < nv; i++)
		if (n->port[i].port != v[i].port || n->port[i].role != v[i].role ||
		    n->port[i].neighbour != v[i].neighbour || n->port[i].joined != v[i].joined)
			return false;
	return true;
}

/*
 * False: out of memory; then nothing has changed. @sworn: what it says of its inputs counts.
 * *@changed: what is saved is another now. *@silent: something new is.
 */
static bool take_hello(struct bl_recover *r, struct bl_recover_node *n,
		       const struct bl_recover_hello *h, bool anew, bool sworn, bool *changed,
		       bool *silent)
{
	uint8_t(*addr)[16] = recover_copy(h->addr, h->naddrs * sizeof(*addr));
	uint16_t *endpoint = recover_copy(h->endpoint, h->nendpoints * sizeof(*endpoint));
	struct bl_recover_port *port = calloc(h->nports + n->nports + 1, sizeof(*port));
	uint32_t i, k = 0;

	if (!addr || !endpoint || !port) {
		free(addr);
		free(endpoint);
		free(port);
		return false;
	}
	for (i = 0; i < h->nports; i++) {
		const struct bl_recover_port *old = anew ? NULL
							 : recover_port_of(n, h->port[i].port),
					     *said = &h->port[i];

		if (old) {
			port[k] = *old;
			*silent |= sworn && merge_port(r, &port[k], said);
			k++;
		} else {
			port[k++] =
				(struct bl_recover_port){ .port = said->port,
							  .neighbour = said->neighbour,
							  .role = said->role,
							  .state = sworn ? said->state
									 : (uint8_t)BL_DET_REMOVED,
							  .c = said->c,
							  .death = said->death,
							  .joined = r->number };
			*silent |= sworn && said->state == BL_DET_SILENT;
		}
	}
	/* a port that is gone is not forgotten as long as it stands still */
	for (i = 0; i < n->nports && !anew; i++) {
		uint32_t j;

		for (j = 0; j < h->nports && h->port[j].port != n->port[i].port; j++)
			;
		if (j == h->nports && n->port[i].state == BL_DET_SILENT)
			port[k++] = n->port[i];
	}
	*changed = anew || !n->agent || n->kind != h->kind || strcmp(n->name, h->name) ||
		   n->naddrs != h->naddrs ||
		   memcmp(addr, n->addr ? (void *)n->addr : addr, h->naddrs * sizeof(*addr)) ||
		   !same_links(n, port, k);
	free(n->addr);
	free(n->endpoint);
	free(n->port);
	n->addr = addr;
	n->endpoint = endpoint;
	n->port = port;
	n->naddrs = h->naddrs;
	n->nendpoints = h->nendpoints;
	n->nports = k;
	n->kind = h->kind;
	memcpy(n->name, h->name, sizeof(n->name));
	n->name[BL_RECOVER_NAME_MAX] = 0;
	n->agent = true;
	return true;
}

/* Neighbours that never spoke are in the graph, too. */
static void make_neighbours(struct bl_recover *r, const struct bl_recover_node *n)
{
	uint32_t i;

	for (i = 0; i < n->nports; i++) {
		struct bl_recover_node *to =
			n->port[i].neighbour ? recover_node_of(r, n->port[i].neighbour) : NULL;

		if (to || !n->port[i].neighbour)
			continue;
		to = recover_node_make(r, n->port[i].neighbour);
		if (to)
			to->kind = n->port[i].role == BL_RECOVER_HOST ? BL_DET_HOST : BL_DET_SWITCH;
	}
}

/*
 * Who has a link now, both ways of it, or all that is known of one with a neighbour that never
 * spoke. What is saved of them changes.
 */
static void find_linked(struct bl_recover *r)
{
	uint32_t i, k, j;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];

		for (k = 0; k < n->nports; k++) {
			struct bl_recover_node *to = n->port[k].neighbour
							     ? recover_node_of(r,
									       n->port[k].neighbour)
							     : NULL,
					       *both[2] = { n, to };

			if (!to || n->port[k].state != BL_DET_LIVE || n->state == BL_DET_GONE ||
			    to->state == BL_DET_GONE || (n->linked && to->linked))
				continue;
			for (j = 0; j < to->nports && (to->port[j].neighbour != n->id ||
						       to->port[j].state != BL_DET_LIVE);
			     j++)
				;
			if (to->agent && j == to->nports)
				continue;
			for (j = 0; j < 2; j++) {
				if (both[j]->linked)
					continue;
				both[j]->linked = true;
				both[j]->joined = r->number;
				if (both[j]->agent)
					node_save(r, both[j]);
			}
		}
	}
}

/*
 * @back is: ports to it that were said to rise while it was GONE do so. Their nodes do not say it
 * again: nothing has changed for them. (One that joined before the order to bar that port had come
 * to it said so.)
 */
static void validate_neighbours(struct bl_recover *r, const struct bl_recover_node *back)
{
	uint32_t i, k;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];
		bool changed = false;

		for (k = 0; k < n->nports; k++) {
			struct bl_recover_port *p = &n->port[k];

			if (p->neighbour != back->id || !p->rises)
				continue;
			if (p->state == BL_DET_REMOVED && n->state != BL_DET_GONE) {
				p->state = (uint8_t)(p->rises - 1);
				p->record = 0;
				p->joined = r->number;
				changed = true;
			}
			p->rises = 0;
		}
		if (changed && n->saving)
			n->again = true;
		else if (changed)
			node_save(r, n);
	}
}

enum bl_recover_reason bl_recover_hello(struct bl_recover *r, uint64_t now,
					const struct bl_recover_hello *h)
{
	const struct bl_recover_failure *own;
	bool changed = false, silent = false, anew = false, was_saving;
	struct bl_recover_node *n;

	if (!r->epoch)
		return BL_RECOVER_NOT_LEADING;
	if (!hello_ok(h))
		return BL_RECOVER_BAD_HELLO;
	n = recover_node_make(r, h->id);
	if (!n)
		return BL_RECOVER_FULL;
	n->connected = true;
	if (now < n->away_until)
		n->away_until = now + r->cfg.answer_ns;
	n->sworn = h->epoch == r->epoch;
	was_saving = n->saving;
	if (n->state == BL_DET_GONE) {
		own = recover_failure_of(r, n->gone);
		anew = h->rejoin && (!own || (own->step == BL_RECOVER_FINISHED && !own->saving));
		if (!anew) {
			/* it is in the failure's record, and may never have been saved itself */
			n->agent = n->saved = true;
			welcome(r, n, now);
			return BL_RECOVER_OK;
		}
	}
	if (!take_hello(r, n, h, anew, n->sworn, &changed, &silent))
		return BL_RECOVER_FULL;
	if (anew) {
		n->gone = 0;
		n->joined = r->number;
		n->why = 0;
		n->bar = n->barred = 0;
		n->linked = false;
	}
	/* it answers again, and nobody was told otherwise */
	n->state = BL_DET_UP;
	if (anew)
		validate_neighbours(r, n);
	make_neighbours(r, n);
	find_linked(r);
	recover_update_bars(r, now);
	n->welcome = true;
	/*
	 * what must not be forgotten is that it is there, and since when: a leader that knows
	 * nothing of it would not wait for it
	 */
	n->saved &= !anew;
	/* the next leader does not wait for it any more */
	changed |= n->away_ns != 0;
	n->away_ns = 0;
	if (changed && was_saving)
		n->again = true;
	else if (changed && !n->saving)
		node_save(r, n);
	if (n->saved)
		welcome(r, n, now);
	if (silent)
		recover_be_dirty(r, now, r->cfg.settle_ns);
	if (r->grace_until && n->sworn) {
		uint32_t agents, connected;

		/* everybody is here and has sworn: no need to wait longer */
		recover_count_agents(r, &agents, &connected);
		if (connected >= agents) {
			r->grace_until = 0;
			if (r->dirty && r->judge_ns > now + r->cfg.settle_ns)
				r->judge_ns = now + r->cfg.settle_ns;
		}
	}
	return BL_RECOVER_OK;
}

enum bl_recover_reason bl_recover_bye(struct bl_recover *r, uint64_t now, uint32_t node)
{
	struct bl_recover_node *n = recover_node_of(r, node);

	(void)now;
	if (!n || !n->agent)
		return BL_RECOVER_UNKNOWN_NODE;
	n->connected = n->sworn = n->welcome = false;
	return BL_RECOVER_OK;
}

static void grant_away(struct bl_recover_node *n, uint64_t now, uint64_t ns)
{
	n->away_ns = ns < BL_RECOVER_AWAY_MAX_NS ? ns : BL_RECOVER_AWAY_MAX_NS;
	n->away_until = now + n->away_ns;
}

enum bl_recover_reason bl_recover_away(struct bl_recover *r, uint64_t now, uint32_t node,
				       uint64_t ns)
{
	struct bl_recover_node *n = recover_node_of(r, node);

	if (!r->epoch)
		return BL_RECOVER_NOT_LEADING;
	if (!n || !n->agent)
		return BL_RECOVER_UNKNOWN_NODE;
	grant_away(n, now, ns);
	/* one that failed owes nobody an answer, and is in its failure's record */
	if (n->state != BL_DET_GONE)
		node_save(r, n);
	else
		recover_to_node(r, BL_RECOVER_AWAY, n, 0);
	return BL_RECOVER_OK;
}

/* Who has not come back in time is one that does not answer, for the next leader, too. */
static void away_over(struct bl_recover *r, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];

		if (!n->away_ns || now < n->away_until)
			continue;
		n->away_ns = 0;
		if (n->state != BL_DET_GONE)
			node_save(r, n);
	}
}

/* A node that is one of the rack. */
static enum bl_recover_reason member(const struct bl_recover *r, uint32_t node,
				     struct bl_recover_node **n)
{
	*n = recover_node_of(r, node);
	if (!r->epoch)
		return BL_RECOVER_NOT_LEADING;
	if (!*n || !(*n)->agent)
		return BL_RECOVER_UNKNOWN_NODE;
	return (*n)->state == BL_DET_GONE ? BL_RECOVER_FAILED_NODE : BL_RECOVER_OK;
}

/* A node that may speak. */
enum bl_recover_reason recover_speaker(const struct bl_recover *r, uint32_t node,
				       struct bl_recover_node **n)
{
	enum bl_recover_reason why = member(r, node, n);

	return why == BL_RECOVER_OK && !(*n)->sworn ? BL_RECOVER_TOO_EARLY : why;
}

enum bl_recover_reason bl_recover_link_down(struct bl_recover *r, uint64_t now, uint32_t node,
					    uint32_t port, uint32_t neighbour, uint64_t c,
					    uint32_t death)
{
	enum bl_recover_reason why;
	struct bl_recover_node *n;
	struct bl_recover_port *p;
	bool asked;

	why = recover_speaker(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (c > RECOVER_C_MAX && c != BL_DET_NO_C)
		return BL_RECOVER_BAD_C;
	p = recover_port_of(n, port);
	if (!p || (p->neighbour && neighbour && p->neighbour != neighbour))
		return BL_RECOVER_UNKNOWN_PORT;
	asked = p->asked;
	p->asked = false;
	recover_update_due(r, n, now);
	if (p->state == BL_DET_SILENT || (p->record && !died_again(p, death)))
		return BL_RECOVER_REPEATED;
	if (p->record)
		p->joined = r->number; /* it was live in between */
	p->record = 0;
	if (!p->neighbour)
		p->neighbour = neighbour;
	p->behind = p->state == BL_DET_BEHIND;
	p->rises = 0;
	p->state = BL_DET_SILENT;
	p->c = c;
	p->death = death;
	make_neighbours(r, n);
	recover_be_dirty(r, now, asked ? 0 : r->cfg.settle_ns);
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

	why = recover_speaker(r, node, &n);
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
	    !recover_room(&r->proc, r->nprocs, &r->proc_room, sizeof(*r->proc)))
		return BL_RECOVER_FULL;
	r->proc[r->nprocs++] = (struct dead_proc){ node, *p };
	recover_be_dirty(r, now, r->cfg.settle_ns);
	return BL_RECOVER_OK;
}

enum bl_recover_reason bl_recover_barred(struct bl_recover *r, uint64_t now, uint32_t node,
					 uint64_t version)
{
	enum bl_recover_reason why;
	struct bl_recover_node *n;

	why = recover_speaker(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (version > n->bar)
		return BL_RECOVER_UNKNOWN_FAILURE;
	if (version <= n->barred)
		return BL_RECOVER_REPEATED;
	n->barred = version;
	recover_update_due(r, n, now);
	if (r->pending && n->barred == n->bar)
		recover_be_dirty(r, now, 0);
	return BL_RECOVER_OK;
}

static enum bl_recover_reason answered(struct bl_recover *r, uint64_t now, uint32_t node,
				       uint64_t number, enum bl_recover_step step)
{
	struct bl_recover_failure *f = recover_failure_of(r, number);
	enum bl_recover_reason why;
	struct bl_recover_node *n;
	struct bl_recover_wait *w;

	why = recover_speaker(r, node, &n);
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
	return answered(r, now, node, number, BL_RECOVER_ANNOUNCED);
}

enum bl_recover_reason bl_recover_resumed(struct bl_recover *r, uint64_t now, uint32_t node,
					  uint64_t number)
{
	return answered(r, now, node, number, BL_RECOVER_RESUMED);
}

enum bl_recover_reason bl_recover_down(struct bl_recover *r, uint64_t now, uint32_t node)
{
	enum bl_recover_reason why;
	struct bl_recover_node *n;

	why = member(r, node, &n);
	if (why != BL_RECOVER_OK)
		return why;
	if (n->state == BL_DET_DOWN)
		return BL_RECOVER_REPEATED;
	n->state = BL_DET_DOWN;
	recover_be_dirty(r, now, 0);
	return BL_RECOVER_OK;
}

/* ---- time ---- */

static void too_late(struct bl_recover *r, uint64_t now)
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

			if (recover_waits_possible(n) && n->state != BL_DET_DOWN &&
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
	away_over(r, now);
	too_late(r, now);
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

/* ---- a new leader ---- */

int bl_recover_load_node(struct bl_recover *r, const struct bl_recover_node *from)
{
	const struct bl_recover_hello h = { .id = from->id,
					    .kind = from->kind,
					    .addr = (const uint8_t(*)[16])from->addr,
					    .port = from->port,
					    .endpoint = from->endpoint,
					    .naddrs = from->naddrs,
					    .nports = from->nports,
					    .nendpoints = from->nendpoints };
	bool changed, silent = false;
	struct bl_recover_node *n;
	uint32_t i;

	if (r->epoch || !hello_ok(&h) || from->state > BL_DET_GONE)
		return -1;
	n = recover_node_make(r, from->id);
	if (!n || n->agent || !take_hello(r, n, &h, true, true, &changed, &silent))
		return -1;
	memcpy(n->name, from->name, sizeof(n->name));
	n->name[BL_RECOVER_NAME_MAX] = 0;
	n->joined = from->joined;
	n->away_ns = from->away_ns;
	/*
	 * that it was linked may not have been saved in time: a host that is announced in vain does
	 * less harm than one that is forgotten
	 */
	n->linked = true;
	n->saved = true;
	/* how its inputs are it says itself; that they stand still is in the failures */
	for (i = 0; i < n->nports; i++) {
		n->port[i].state = BL_DET_LIVE;
		n->port[i].death = 0;
		n->port[i].joined = from->port[i].joined;
	}
	make_neighbours(r, n);
	return 0;
}

int bl_recover_load_failure(struct bl_recover *r, const struct bl_recover_failure *from)
{
	struct bl_recover_failure *f;
	uint32_t i;

	if (r->epoch || !from->number || recover_failure_of(r, from->number) ||
	    from->step > BL_RECOVER_FINISHED ||
	    (!from->nfailed && from->step == BL_RECOVER_ANNOUNCED))
		return -1;
	f = recover_failure_make(r, from->nfailed, from->ninputs);
	if (!f)
		return -1;
	f->number = from->number;
	f->epoch = from->epoch;
	f->step = from->step;
	f->separated = from->separated;
	for (i = 0; i < from->nfailed; i++) {
		const struct bl_recover_failed *v = &from->failed[i];
		const struct bl_recover_node like = { .id = v->node,
						      .addr = v->addr,
						      .naddrs = v->naddrs };

		if (!v->node || !recover_add_failed(f, &like, (enum bl_det_why)v->why, &v->proc)) {
			recover_failure_free(f);
			return -1;
		}
	}
	f->left = recover_is_leave(f);
	f->ninputs = from->ninputs;
	memcpy(f->input, from->input, from->ninputs * sizeof(*f->input));
	for (i = r->nfailures; i && r->failure[i - 1]->number > f->number; i--)
		r->failure[i] = r->failure[i - 1];
	r->failure[i] = f;
	r->nfailures++;
	if (f->number > r->number)
		r->number = f->number;
	return 0;
}

/* The newest failure that names a node counts, if the node has not joined since. */
static void take_gone(struct bl_recover *r, const struct bl_recover_failure *f)
{
	uint32_t i;

	for (i = 0; i < f->nfailed; i++) {
		struct bl_recover_node *n =
			f->failed[i].proc.port ? NULL : recover_node_make(r, f->failed[i].node);

		if (!n || n->joined >= f->number)
			continue;
		n->state = BL_DET_GONE;
		n->why = f->failed[i].why;
		n->gone = f->number;
		if (!n->agent)
			n->kind = f->failed[i].naddrs ? BL_DET_HOST : n->kind;
	}
}

void bl_recover_start(struct bl_recover *r, uint64_t now, uint64_t epoch)
{
	uint32_t i, k;

	r->epoch = epoch;
	r->grace_until = now + r->cfg.grace_ns;
	for (i = 0; i < r->nnodes; i++)
		grant_away(r->node[i], now, r->node[i]->away_ns);
	for (i = 0; i < r->nfailures; i++)
		take_gone(r, r->failure[i]);
	for (i = 0; i < r->nfailures; i++) {
		struct bl_recover_failure *f = r->failure[i];

		for (k = 0; k < f->ninputs; k++) {
			struct bl_recover_node *n = recover_node_of(r, f->input[k].node);
			struct bl_recover_port *p = n ? recover_port_of(n, f->input[k].port) : NULL;

			if (!p || p->joined >= f->number)
				continue;
			p->state = f->step == BL_RECOVER_FINISHED ? BL_DET_REMOVED : BL_DET_SILENT;
			p->c = f->input[k].c;
			p->death = f->input[k].death;
			p->record = f->step == BL_RECOVER_FINISHED ? 0 : f->number;
		}
		if (f->step == BL_RECOVER_ANNOUNCED)
			recover_await_hosts(r, f, now);
		else if (f->step == BL_RECOVER_RESUMED)
			recover_await_inputs(r, f, now);
	}
	recover_update_bars(r, now);
	recover_progress_all(r, now);
}
