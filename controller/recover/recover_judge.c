// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The judgement: makes the graph for determine.h from what is known, sends the questions that
 * follow from its result, and announces failures.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/recover/recover_priv.h"
#include "maps/host_abi.h"

/* ---- the graph ---- */

/** struct half - One way of a link, as its receiving node reports it. */
struct half {
	uint32_t low;  /* index of the node below */
	uint32_t high; /* index of the switch above */
	uint32_t dir;  /* enum bl_det_dir */
	uint32_t at;   /* index of the receiving node; RECOVER_NONE: none reports this way */
	uint32_t port; /* index of the receiving port in that node's list */
};

/** struct graph - The graph for bl_determine(), and its result. free_graph() frees the arrays. */
struct graph {
	struct bl_det_graph g;
	struct bl_det_node *node;
	struct bl_det_link *link;
	struct half *owner; /* of each way, at index 2 * link + dir: where it is received */
	/* inputs that stand still and belong to no link, @nstray of them: @at and @port only */
	struct half *stray;
	uint32_t nstray;
	struct bl_det_found *found;
	uint8_t *todo;
	struct bl_det_sum sum;
	uint16_t root; /* index of a node in the live part */
};

static int compare_halves(const void *a, const void *b)
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

static struct bl_det_way way_of_half(const struct bl_recover *r, const struct half *h)
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
 * Makes links of the @n halves between one pair of nodes, which are sorted: those received by the
 * upper node first (BL_DET_TO_HIGH is 0). The k-th half of one side and the k-th of the other make
 * a link; with parallel links, no node can tell which halves really belong together.
 */
static void pair_halves(const struct bl_recover *r, const struct half *h, uint32_t n,
			struct graph *g)
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
		l->way[BL_DET_TO_HIGH] = way_of_half(r, &owner[BL_DET_TO_HIGH]);
		l->way[BL_DET_TO_LOW] = way_of_half(r, &owner[BL_DET_TO_LOW]);
	}
}

/* Returns the representative of the part that node @i is in (union-find). */
static uint32_t find_part(uint32_t *part, uint32_t i)
{
	while (part[i] != i)
		i = part[i] = part[part[i]];
	return i;
}

/* Whether both ways of @l are live and both its nodes are up. */
static bool is_unbroken(const struct bl_det_link *l, const struct bl_det_node *node)
{
	return l->way[0].state == BL_DET_LIVE && l->way[1].state == BL_DET_LIVE &&
	       node[l->low].state == BL_DET_UP && node[l->high].state == BL_DET_UP;
}

/*
 * Returns the index of a node in the live part of the network: the part with most processes on
 * hosts that have a session; of equals, the one with more nodes that have, then the first.
 *
 * A host forwards nothing: it does not join two parts, and belongs to each part that it has a link
 * to. Reports alone do not make a part the live one: a host that receives nothing any more would
 * otherwise declare the rest of the rack dead. Nor does what one host says of itself: by itself it
 * counts as one process, or a host that claims thousands of endpoints and cuts its own link would
 * have everybody else announced as failed.
 */
static uint16_t find_live_root(const struct bl_recover *r, const struct graph *g, uint32_t *part,
			       uint64_t *weight)
{
	uint32_t i, best = 0;

	for (i = 0; i < r->nnodes; i++) {
		const struct bl_recover_node *n = r->node[i];
		uint64_t processes = n->kind != BL_DET_HOST       ? 0
				     : n->nendpoints > BL_EPS_MAX ? BL_EPS_MAX
								  : n->nendpoints;

		part[i] = i;
		weight[i] = n->connected && n->linked && n->state == BL_DET_UP
				    ? 1 + (processes << 32)
				    : 0;
	}
	for (i = 0; i < g->g.links; i++)
		if (is_unbroken(&g->link[i], g->node) &&
		    g->node[g->link[i].low].kind == BL_DET_SWITCH)
			part[find_part(part, g->link[i].low)] = find_part(part, g->link[i].high);
	for (i = 0; i < r->nnodes; i++)
		if (find_part(part, i) != i)
			weight[find_part(part, i)] += weight[i];
	for (i = 0; i < g->g.links; i++)
		if (is_unbroken(&g->link[i], g->node) &&
		    g->node[g->link[i].low].kind == BL_DET_HOST)
			weight[find_part(part, g->link[i].high)] += weight[g->link[i].low];
	for (i = 0; i < r->nnodes; i++)
		if (r->node[i]->kind == BL_DET_HOST && weight[i] >> 32)
			weight[i] = (1ULL << 32) + 1;
	for (i = 0; i < r->nnodes; i++)
		if (find_part(part, i) == i &&
		    (weight[i] > weight[best] || find_part(part, best) != best))
			best = i;
	return (uint16_t)best;
}

static void free_graph(struct graph *g)
{
	free(g->node);
	free(g->link);
	free(g->owner);
	free(g->stray);
	free(g->found);
	free(g->todo);
}

/*
 * Whether host @h has a session's word that all its links lead to other nodes than @n. Then
 * somebody else has said to @n that it is host @h.
 */
static bool host_is_elsewhere(const struct bl_recover_node *h, const struct bl_recover_node *n)
{
	uint32_t k;

	for (k = 0; k < h->nports; k++)
		if (!h->port[k].neighbour || h->port[k].neighbour == n->id)
			return false;
	return h->agent && h->nports;
}

/*
 * Returns the index of the node at the other end of port @p of node @i; RECOVER_NONE: no neighbour
 * was heard yet, or the two nodes contradict each other (a switch reports a host where a switch is
 * or that is elsewhere, or a node below a host).
 */
static uint32_t other_end(const struct bl_recover *r, uint32_t i, const struct bl_recover_port *p)
{
	uint32_t at = p->neighbour ? recover_index_of(r, p->neighbour) : RECOVER_NONE;
	bool up = p->role == BL_RECOVER_UP, host = p->role == BL_RECOVER_HOST;

	if (at == RECOVER_NONE || at == i || r->node[up ? at : i]->kind != BL_DET_SWITCH ||
	    host != (!up && r->node[at]->kind == BL_DET_HOST) ||
	    (host && host_is_elsewhere(r->node[at], r->node[i])))
		return RECOVER_NONE;
	return at;
}

static bool make_graph(const struct bl_recover *r, struct graph *g)
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
	g->stray = calloc(ports + 1, sizeof(*g->stray));
	g->found = calloc(r->nnodes + 1, sizeof(*g->found));
	g->todo = calloc(2 * (size_t)ports + 2, 1);
	part = calloc(r->nnodes + 1, sizeof(*part));
	weight = calloc(r->nnodes + 1, sizeof(*weight));
	if (!part || !weight || !h || !g->node || !g->link || !g->owner || !g->stray || !g->found ||
	    !g->todo) {
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

			at = other_end(r, i, p);
			if (at == RECOVER_NONE) {
				if (p->state == BL_DET_SILENT)
					g->stray[g->nstray++] = (struct half){ .at = i, .port = k };
				continue;
			}
			h[n++] = (struct half){ .low = up ? i : at,
						.high = up ? at : i,
						.dir = up ? BL_DET_TO_LOW : BL_DET_TO_HIGH,
						.at = i,
						.port = k };
		}
	}
	qsort(h, n, sizeof(*h), compare_halves);
	for (i = 0; i < n; i = k) {
		for (k = i + 1; k < n && h[k].low == h[i].low && h[k].high == h[i].high; k++)
			;
		pair_halves(r, h + i, k - i, g);
	}
	free(h);
	g->g.node = g->node;
	g->g.link = g->link;
	g->g.nodes = r->nnodes;
	g->root = find_live_root(r, g, part, weight);
	g->g.root = &g->root;
	g->g.roots = 1;
	free(part);
	free(weight);
	return true;
}

/* ---- questions ---- */

/* The reason that is announced. A host that leaves in order is DOWN by its own wish. */
static enum bl_det_why announced_why(const struct bl_recover_node *n, const struct bl_det_found *f)
{
	return f->why == BL_DET_TOLD && n->leaves ? BL_DET_LEFT : (enum bl_det_why)f->why;
}

static bool fails_now(const struct bl_det_found *f)
{
	return f->why != BL_DET_CORRECT && f->why != BL_DET_BEFORE;
}

/*
 * Whether node @n is judged. A node that never had a link is not: no other node depends on it. What
 * is received from it one way may go on; otherwise that input would be frozen, resumed, heard and
 * frozen again for ever.
 */
static bool is_node_judged(const struct bl_recover_node *n)
{
	return n->linked || n->state == BL_DET_GONE;
}

/*
 * Sends FREEZE and BAR as the result of the judgement asks.
 * @bars: set to the number of outputs whose BAR is not confirmed.
 *
 * Returns the number of inputs whose report is missing.
 */
static uint32_t request_answers(struct bl_recover *r, const struct graph *g, uint64_t now,
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
		if (!(g->todo[i] & BL_DET_ASK) || !recover_can_answer(n) ||
		    !is_node_judged(r->node[h->dir == BL_DET_TO_HIGH ? h->low : h->high]))
			continue;
		missing++;
		if (n->port[h->port].asked)
			continue;
		n->port[h->port].asked = true;
		recover_update_due(r, n, now);
		recover_send_command(r, BL_RECOVER_FREEZE, n, 0);
	}
	recover_update_bars(r, now);
	for (*bars = i = 0; i < 2 * g->g.links; i++) {
		const struct half *back = &g->owner[i ^ 1];

		*bars += g->todo[i] & BL_DET_FENCE && back->at != RECOVER_NONE &&
			 recover_can_answer(r->node[back->at]) &&
			 r->node[back->at]->barred != r->node[back->at]->bar;
	}
	return missing;
}

/* ---- announcements ---- */

/* Number of inputs that find_resumable() may be asked for. */
static uint32_t count_inputs(const struct graph *g)
{
	return 2 * g->g.links + g->nstray;
}

/*
 * Returns input @i, at the end of way @i or beyond those a stray one, if it is to be resumed by the
 * next failure; NULL if not. Sets *@n to its node. An input that another failure names is resumed
 * by that one. An input of a node that is not judged is always resumed, and so is a stray one: no
 * failure of a node could ever resume it, and it must hold back no node that is judged.
 */
static struct bl_recover_port *find_resumable(const struct bl_recover *r, const struct graph *g,
					      uint32_t i, const struct bl_recover_node **n)
{
	bool stray = i >= 2 * g->g.links;
	const struct half *h = stray ? &g->stray[i - 2 * g->g.links] : &g->owner[i];
	struct bl_recover_port *p;

	if (h->at == RECOVER_NONE)
		return NULL;
	*n = r->node[h->at];
	p = &r->node[h->at]->port[h->port];
	return (*n)->state != BL_DET_GONE &&
			       (stray || g->todo[i] & BL_DET_RESUME || !is_node_judged(*n)) &&
			       p->state == BL_DET_SILENT && !p->record
		       ? p
		       : NULL;
}

static bool has_input_to_resume(const struct bl_recover *r, const struct graph *g)
{
	const struct bl_recover_node *n;
	uint32_t i;

	for (i = 0; i < count_inputs(g); i++)
		if (find_resumable(r, g, i, &n))
			return true;
	return false;
}

/*
 * Makes the decision. It never changes from here on: it is saved before any node is told.
 */
static void announce_failure(struct bl_recover *r, const struct graph *g, uint64_t now)
{
	struct bl_recover_failure *f =
		recover_failure_make(r, g->sum.failed + r->nprocs, count_inputs(g));
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

		if (fails_now(&g->found[i]) &&
		    !recover_add_failed(f, r->node[i], announced_why(r->node[i], &g->found[i]),
					&all))
			break;
	}
	for (; i == r->nnodes && r->nprocs; r->nprocs--) {
		const struct dead_proc *p = &r->proc[r->nprocs - 1];
		const struct bl_recover_node *n = recover_node_of(r, p->node);

		if (recover_can_answer(n) && !recover_names_node(f, n->id))
			recover_add_failed(f, n, BL_DET_CORRECT, &p->p);
	}
	for (i = 0; i < count_inputs(g); i++) {
		const struct bl_recover_node *n;
		struct bl_recover_port *p = find_resumable(r, g, i, &n);

		/* An input of a node that fails is not resumed. */
		if (!p || recover_names_node(f, n->id))
			continue;
		f->input[f->ninputs++] =
			(struct bl_recover_input){ n->id, p->port, p->neighbour, p->death, p->c };
		p->record = f->number;
	}
	r->failure[r->nfailures++] = f;
	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];

		if (!fails_now(&g->found[i]))
			continue;
		n->state = BL_DET_GONE;
		n->why = (uint8_t)announced_why(n, &g->found[i]);
		n->leaves = false;
		n->gone = f->number;
		n->due = 0;
	}
	r->pending = false;
	/* From now on these outputs are barred because their neighbour is GONE. */
	for (i = 0; i < r->nnodes; i++) {
		uint32_t k;

		for (k = 0; k < r->node[i]->nports; k++)
			r->node[i]->port[k].fence = false;
		recover_update_due(r, r->node[i], now);
	}
	recover_update_bars(r, now);
	/* If no node failed, no host has anything to complete. */
	recover_save(r, f, f->nfailed ? BL_RECOVER_ANNOUNCED : BL_RECOVER_RESUMED);
}

/* Returns the number of hosts that would go on, by what is known now; -1: out of memory. */
static int64_t count_surviving_hosts(const struct bl_recover *r)
{
	int64_t n = -1;
	struct graph g;
	uint32_t i;

	if (make_graph(r, &g) && !bl_determine(&g.g, g.found, g.todo, &g.sum))
		for (i = 0, n = 0; i < r->nnodes; i++)
			n += r->node[i]->kind == BL_DET_HOST && r->node[i]->linked &&
			     recover_can_answer(r->node[i]) && !fails_now(&g.found[i]);
	free_graph(&g);
	return n;
}

bool recover_late_may_fail(struct bl_recover *r)
{
	int64_t without = count_surviving_hosts(r), with;
	uint32_t i;

	for (i = 0; i < r->nnodes; i++)
		if (r->node[i]->late)
			r->node[i]->state = BL_DET_DOWN;
	with = count_surviving_hosts(r);
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
	 * A process on a host that has failed, failed with it. A host that has lost its addresses
	 * reports the process again when it has one.
	 */
	for (i = bars = 0; i < r->nprocs; i++) {
		const struct bl_recover_node *n = recover_node_of(r, r->proc[i].node);

		if (recover_can_answer(n) && n->naddrs)
			r->proc[bars++] = r->proc[i];
	}
	r->nprocs = bars;
	if (recover_open_failures(r) >= BL_RECOVER_OPEN_MAX) {
		r->pending = true; /* The next failure that finishes schedules a judgement. */
		return;
	}
	if (!make_graph(r, &g) || bl_determine(&g.g, g.found, g.todo, &g.sum)) {
		free_graph(&g);
		recover_schedule_judgement(
			r, now, r->cfg.answer_ns); /* Out of memory: tried again later. */
		return;
	}
	/*
	 * Of a pair that is torn, one host is chosen, and stays chosen whatever is reported next.
	 */
	for (i = 0; i < r->nnodes; i++)
		if (g.found[i].why == BL_DET_TORN)
			r->node[i]->state = BL_DET_DOWN;
	asks = request_answers(r, &g, now, &bars);
	r->pending = g.sum.failed > 0;
	if (g.sum.failed ? !bars && (!asks || (g.sum.held && !g.sum.unknown))
			 : r->nprocs || has_input_to_resume(r, &g))
		announce_failure(r, &g, now);
	free_graph(&g);
}
