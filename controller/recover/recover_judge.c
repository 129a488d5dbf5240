// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The failure procedure decides: from what is known to a graph, from the graph to orders and
 * failures (recover_core.h, determine.h).
 */
#include <stdlib.h>
#include <string.h>

#include "recover_priv.h"

/* ---- judging ---- */

/** struct half - a way: node @at's @port-th port receives it. */
struct half {
	uint32_t low, high, dir, at, port;
};

/**
 * struct graph - as bl_determine() wants it. @owner: [2 * link + dir]: who receives; .at
 * RECOVER_NONE: nobody that we know.
 */
struct graph {
	struct bl_det_graph g;
	struct bl_det_node *node;
	struct bl_det_link *link;
	struct half *owner;
	struct bl_det_found *found;
	uint8_t *todo;
	struct bl_det_sum sum;
	uint16_t root;
};

static int by_link(const void *a, const void *b)
{
	const struct half *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high < y->high ? -1 : 1;
	if (x->dir != y->dir)
		return x->dir < y->dir ? -1 : 1;
	return x->port < y->port ? -1 : x->port > y->port;
}

static struct bl_det_way way_of(const struct bl_recover *r, const struct half *h)
{
	const struct bl_recover_port *p;

	if (h->at == RECOVER_NONE)
		return (struct bl_det_way){ .state = BL_DET_LIVE, .c = BL_DET_NO_C };
	p = &r->node[h->at]->port[h->port];
	return (struct bl_det_way){
		.state = p->state, .c = p->c, .port = (uint16_t)p->port, .behind = p->behind
	};
}

/*
 * Halves of a pair of nodes, sorted: those received above first (BL_DET_TO_HIGH is 0). The k-th of
 * one side and the k-th of the other are taken for one link: with parallel links nobody can tell
 * which is which.
 */
static void pair_up(const struct bl_recover *r, const struct half *h, uint32_t n, struct graph *g)
{
	uint32_t up = 0, k, links;

	while (up < n && h[up].dir == BL_DET_TO_HIGH)
		up++;
	links = up > n - up ? up : n - up;
	for (k = 0; k < links; k++) {
		struct half none = { .at = RECOVER_NONE };
		struct half *owner = &g->owner[2 * g->g.links];
		struct bl_det_link *l = &g->link[g->g.links++];

		owner[BL_DET_TO_HIGH] = k < up ? h[k] : none;
		owner[BL_DET_TO_LOW] = k < n - up ? h[up + k] : none;
		*l = (struct bl_det_link){ .low = (uint16_t)h->low, .high = (uint16_t)h->high };
		l->way[BL_DET_TO_HIGH] = way_of(r, &owner[BL_DET_TO_HIGH]);
		l->way[BL_DET_TO_LOW] = way_of(r, &owner[BL_DET_TO_LOW]);
	}
}

static uint32_t part_root(uint32_t *part, uint32_t i)
{
	while (part[i] != i)
		i = part[i] = part[part[i]];
	return i;
}

static bool unbroken(const struct bl_det_link *l, const struct bl_det_node *node)
{
	return l->way[0].state == BL_DET_LIVE && l->way[1].state == BL_DET_LIVE &&
	       node[l->low].state == BL_DET_UP && node[l->high].state == BL_DET_UP;
}

/*
 * The part of the network in which most processes are whose hosts have a session with us; of
 * equals, the one with more nodes that have, then the first. A host passes nothing on: it does not
 * make one part of two, and belongs to each of them. Who merely complains is not the live network
 * for that: a host that hears nothing any more would declare the rest dead. Returns a node of it.
 */
static uint16_t live_root(const struct bl_recover *r, const struct graph *g, uint32_t *part,
			  uint64_t *weight)
{
	uint32_t i, best = 0;

	for (i = 0; i < r->nnodes; i++) {
		const struct bl_recover_node *n = r->node[i];

		part[i] = i;
		weight[i] =
			n->connected && n->linked && n->state == BL_DET_UP
				? 1 + ((uint64_t)(n->kind == BL_DET_HOST ? n->nendpoints : 0) << 32)
				: 0;
	}
	for (i = 0; i < g->g.links; i++)
		if (unbroken(&g->link[i], g->node) && g->node[g->link[i].low].kind == BL_DET_SWITCH)
			part[part_root(part, g->link[i].low)] = part_root(part, g->link[i].high);
	for (i = 0; i < r->nnodes; i++)
		if (part_root(part, i) != i)
			weight[part_root(part, i)] += weight[i];
	for (i = 0; i < g->g.links; i++)
		if (unbroken(&g->link[i], g->node) && g->node[g->link[i].low].kind == BL_DET_HOST)
			weight[part_root(part, g->link[i].high)] += weight[g->link[i].low];
	for (i = 0; i < r->nnodes; i++)
		if (part_root(part, i) == i &&
		    (weight[i] > weight[best] || part_root(part, best) != best))
			best = i;
	return (uint16_t)best;
}

static void graph_free(struct graph *g)
{
	free(g->node);
	free(g->link);
	free(g->owner);
	free(g->found);
	free(g->todo);
}

static bool graph_make(const struct bl_recover *r, struct graph *g)
{
	uint32_t i, k, n = 0, ports = 0, at;
	uint64_t *weight;
	uint32_t *part;
	struct half *h;

	for (i = 0; i < r->nnodes; i++)
		ports += r->node[i]->nports;
	*g = (struct graph){ 0 };
	h = calloc(ports + 1, sizeof(*h));
	g->node = calloc(r->nnodes + 1, sizeof(*g->node));
	g->link = calloc(ports + 1, sizeof(*g->link));
	g->owner = calloc(2 * (size_t)ports + 2, sizeof(*g->owner));
	g->found = calloc(r->nnodes + 1, sizeof(*g->found));
	g->todo = calloc(2 * (size_t)ports + 2, 1);
	part = calloc(r->nnodes + 1, sizeof(*part));
	weight = calloc(r->nnodes + 1, sizeof(*weight));
	if (!part || !weight || !h || !g->node || !g->link || !g->owner || !g->found || !g->todo) {
		free(part);
		free(weight);
		free(h);
		return false;
	}
	for (i = 0; i < r->nnodes; i++) {
		const struct bl_recover_node *v = r->node[i];

		g->node[i] = (struct bl_det_node){
			.kind = v->kind,
			.state = v->linked ? v->state : BL_DET_GONE,
			.processes =
				(uint16_t)(v->nendpoints > UINT16_MAX ? UINT16_MAX : v->nendpoints)
		};
		for (k = 0; k < v->nports; k++) {
			const struct bl_recover_port *p = &v->port[k];
			bool up = p->role == BL_RECOVER_UP;

			at = p->neighbour ? recover_index_of(r, p->neighbour) : RECOVER_NONE;
			/*
			 * nobody heard there yet; or the two contradict each other: a switch says
			 * "host" of a switch, a host is above somebody
			 */
			if (at == RECOVER_NONE || at == i ||
			    r->node[up ? at : i]->kind != BL_DET_SWITCH ||
			    (p->role == BL_RECOVER_HOST) !=
				    (!up && r->node[at]->kind == BL_DET_HOST))
				continue;
			h[n++] = (struct half){ .low = up ? i : at,
						.high = up ? at : i,
						.dir = up ? BL_DET_TO_LOW : BL_DET_TO_HIGH,
						.at = i,
						.port = k };
		}
	}
	qsort(h, n, sizeof(*h), by_link);
	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && h[k].low == h[i].low && h[k].high == h[i].high; k++)
			;
		pair_up(r, h + i, k - i, g);
	}
	free(h);
	g->g.node = g->node;
	g->g.link = g->link;
	g->g.nodes = r->nnodes;
	g->root = live_root(r, g, part, weight);
	g->g.root = &g->root;
	g->g.roots = 1;
	free(part);
	free(weight);
	return true;
}

static bool failing(const struct bl_det_found *f)
{
	return f->why != BL_DET_CORRECT && f->why != BL_DET_BEFORE;
}

/*
 * Or it has no link yet, and is nobody's loss: what is heard of it one way may go on, else it would
 * be frozen, resumed, heard and frozen again for ever.
 */
static bool judged(const struct bl_recover_node *n)
{
	return n->linked || n->state == BL_DET_GONE;
}

/* Asks, and bars. Returns how many answers are missing. */
static uint32_t order_ahead(struct bl_recover *r, const struct graph *g, uint64_t now,
			    uint32_t *bars)
{
	uint32_t i, k, missing = 0;

	for (i = 0; i < r->nnodes; i++)
		for (k = 0; k < r->node[i]->nports; k++)
			r->node[i]->port[k].fence = false;
	for (i = 0; i < 2 * g->g.links; i++) {
		const struct half *h = &g->owner[i], *back = &g->owner[i ^ 1];
		struct bl_recover_node *n = h->at == RECOVER_NONE ? NULL : r->node[h->at];

		if (g->todo[i] & BL_DET_FENCE && back->at != RECOVER_NONE)
			r->node[back->at]->port[back->port].fence = true;
		if (!(g->todo[i] & BL_DET_ASK) || !recover_waits_possible(n) ||
		    !judged(r->node[h->dir == BL_DET_TO_HIGH ? h->low : h->high]))
			continue;
		missing++;
		if (n->port[h->port].asked)
			continue;
		n->port[h->port].asked = true;
		recover_update_due(r, n, now);
		recover_to_node(r, BL_RECOVER_FREEZE, n, 0);
	}
	recover_update_bars(r, now);
	for (*bars = i = 0; i < 2 * g->g.links; i++) {
		const struct half *back = &g->owner[i ^ 1];

		*bars += g->todo[i] & BL_DET_FENCE && back->at != RECOVER_NONE &&
			 recover_waits_possible(r->node[back->at]) &&
			 r->node[back->at]->barred != r->node[back->at]->bar;
	}
	return missing;
}

/*
 * The input at the end of way @i, if it is to be resumed; what is in another failure is resumed by
 * that one. An input of a node that is not judged holds nobody back who is. NULL: not.
 */
static struct bl_recover_port *resumable(const struct bl_recover *r, const struct graph *g,
					 uint32_t i)
{
	const struct bl_recover_node *n = g->owner[i].at == RECOVER_NONE ? NULL
									 : r->node[g->owner[i].at];
	struct bl_recover_port *p = n ? &n->port[g->owner[i].port] : NULL;

	return p && n->state != BL_DET_GONE && (g->todo[i] & BL_DET_RESUME || !judged(n)) &&
			       p->state == BL_DET_SILENT && !p->record
		       ? p
		       : NULL;
}

bool recover_add_failed(struct bl_recover_failure *f, const struct bl_recover_node *n,
			enum bl_det_why why, const struct bl_recover_proc *p)
{
	struct bl_recover_failed v = {
		.node = n->id, .why = (uint8_t)why, .proc = *p, .naddrs = n->naddrs
	};

	v.addr = recover_copy(n->addr, n->naddrs * sizeof(*v.addr));
	if (!v.addr)
		return false;
	f->failed[f->nfailed++] = v;
	return true;
}

struct bl_recover_failure *recover_failure_make(struct bl_recover *r, uint32_t failed,
						uint32_t inputs)
{
	struct bl_recover_failure *f = calloc(1, sizeof(*f));

	if (f) {
		f->failed = calloc(failed + 1, sizeof(*f->failed));
		f->input = calloc(inputs + 1, sizeof(*f->input));
	}
	if (!f || !f->failed || !f->input ||
	    !recover_room(&r->failure, r->nfailures, &r->failure_room, sizeof(*r->failure))) {
		if (f)
			recover_failure_free(f);
		return NULL;
	}
	return f;
}

/* The decision. From here on it is never another one: it is saved before anybody hears of it. */
static void announce(struct bl_recover *r, const struct graph *g, uint64_t now)
{
	struct bl_recover_failure *f =
		recover_failure_make(r, g->sum.failed + r->nprocs, 2 * g->g.links);
	uint32_t i;

	if (!f)
		return;
	f->number = ++r->number;
	f->epoch = r->epoch;
	f->at_ns = r->first_ns;
	f->settled_ns = now;
	f->separated = g->sum.separated;
	for (i = 0; i < r->nnodes; i++) {
		const struct bl_recover_proc all = { .t = g->found[i].t };

		if (failing(&g->found[i]) &&
		    !recover_add_failed(f, r->node[i], (enum bl_det_why)g->found[i].why, &all))
			break;
	}
	for (; i == r->nnodes && r->nprocs; r->nprocs--) {
		const struct dead_proc *p = &r->proc[r->nprocs - 1];
		const struct bl_recover_node *n = recover_node_of(r, p->node);

		if (recover_waits_possible(n) && !recover_names_node(f, n->id))
			recover_add_failed(f, n, BL_DET_CORRECT, &p->p);
	}
	for (i = 0; i < 2 * g->g.links; i++) {
		struct bl_recover_port *p = resumable(r, g, i);
		const struct bl_recover_node *n = p ? r->node[g->owner[i].at] : NULL;

		/* inputs of those that fail are theirs */
		if (!p || recover_names_node(f, n->id))
			continue;
		f->input[f->ninputs++] =
			(struct bl_recover_input){ n->id, p->port, p->neighbour, p->death, p->c };
		p->record = f->number;
	}
	r->failure[r->nfailures++] = f;
	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];

		if (!failing(&g->found[i]))
			continue;
		n->state = BL_DET_GONE;
		n->why = g->found[i].why;
		n->gone = f->number;
		n->due = 0;
	}
	r->pending = false;
	/* from now on it is the neighbour's failure that bars */
	for (i = 0; i < r->nnodes; i++) {
		uint32_t k;

		for (k = 0; k < r->node[i]->nports; k++)
			r->node[i]->port[k].fence = false;
		recover_update_due(r, r->node[i], now);
	}
	recover_update_bars(r, now);
	/* nobody failed: no host has anything to complete */
	recover_save(r, f, f->nfailed ? BL_RECOVER_ANNOUNCED : BL_RECOVER_RESUMED);
}

bool recover_is_leave(const struct bl_recover_failure *f)
{
	uint32_t i;

	for (i = 0;
	     i < f->nfailed && f->failed[i].proc.port && f->failed[i].proc.why == BL_WHY_LEFT; i++)
		;
	return f->nfailed && i == f->nfailed;
}

/*
 * Without a judgement: it says nothing of the network, and nothing stands still that could be
 * resumed. False: no memory.
 */
bool recover_announce_leave(struct bl_recover *r, const struct bl_recover_node *n,
			    const struct bl_recover_proc *p, uint64_t now)
{
	struct bl_recover_failure *f = recover_failure_make(r, 1, 0);

	if (!f || !recover_add_failed(f, n, BL_DET_CORRECT, p)) {
		if (f)
			recover_failure_free(f);
		return false;
	}
	f->number = ++r->number;
	f->epoch = r->epoch;
	f->left = true;
	f->at_ns = f->settled_ns = now;
	r->failure[r->nfailures++] = f;
	recover_save(r, f, BL_RECOVER_ANNOUNCED);
	return true;
}

static bool anything_to_resume(const struct bl_recover *r, const struct graph *g)
{
	uint32_t i;

	for (i = 0; i < 2 * g->g.links; i++)
		if (resumable(r, g, i))
			return true;
	return false;
}

/* Hosts that would go on, by what is known now; -1: no memory. */
static int64_t going_on(const struct bl_recover *r)
{
	int64_t n = -1;
	struct graph g;
	uint32_t i;

	if (graph_make(r, &g) && !bl_determine(&g.g, g.found, g.todo, &g.sum))
		for (i = 0, n = 0; i < r->nnodes; i++)
			n += r->node[i]->kind == BL_DET_HOST && r->node[i]->linked &&
			     recover_waits_possible(r->node[i]) && !failing(&g.found[i]);
	graph_free(&g);
	return n;
}

/*
 * Whether at least half of the hosts that would go on otherwise do so if all that are late have
 * failed. A host that is the last one cuts nobody else off.
 */
bool recover_late_may_fail(struct bl_recover *r)
{
	int64_t without = going_on(r), with;
	uint32_t i;

	for (i = 0; i < r->nnodes; i++)
		if (r->node[i]->late)
			r->node[i]->state = BL_DET_DOWN;
	with = going_on(r);
	for (i = 0; i < r->nnodes; i++)
		if (r->node[i]->late)
			r->node[i]->state = BL_DET_UP;
	return without == 1 || (without >= 0 && with * 2 >= without);
}

void recover_judge(struct bl_recover *r, uint64_t now)
{
	uint32_t i, asks, bars;
	struct graph g;

	r->dirty = false;
	/*
	 * whose host has failed, failed with it; whose host has lost its addresses, is told again
	 * by it when it has one
	 */
	for (i = bars = 0; i < r->nprocs; i++) {
		const struct bl_recover_node *n = recover_node_of(r, r->proc[i].node);

		if (recover_waits_possible(n) && n->naddrs)
			r->proc[bars++] = r->proc[i];
	}
	r->nprocs = bars;
	if (recover_open_failures(r) >= BL_RECOVER_OPEN_MAX) {
		r->pending = true; /* the one that finishes next comes back to it */
		return;
	}
	if (!graph_make(r, &g) || bl_determine(&g.g, g.found, g.todo, &g.sum)) {
		graph_free(&g);
		recover_be_dirty(r, now, r->cfg.answer_ns); /* out of memory: later */
		return;
	}
	/* of a pair that is torn one is chosen, and stays chosen whatever is reported next */
	for (i = 0; i < r->nnodes; i++)
		if (g.found[i].why == BL_DET_TORN)
			r->node[i]->state = BL_DET_DOWN;
	asks = order_ahead(r, &g, now, &bars);
	r->pending = g.sum.failed > 0;
	if (g.sum.failed ? !bars && (!asks || (g.sum.held && !g.sum.unknown))
			 : r->nprocs || anything_to_resume(r, &g))
		announce(r, &g, now);
	graph_free(&g);
}
