// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See recover_core.h. */
#include <stdlib.h>
#include <string.h>

#include "recover_core.h"

#define NONE UINT32_MAX
#define C_MAX ((1ULL << 48) - 1)

struct dead_proc {
	uint32_t node;
	uint16_t port;
	uint64_t t;
};

/**
 * struct bl_rec - @node: by id. @failure: by number. @dirty: something is to be judged, at @judge_ns; @first_ns: its first report. @pending: somebody was judged to have failed, and answers are awaited before that is announced.
 */
struct bl_rec {
	struct bl_rec_cfg cfg;
	uint64_t epoch, number, grace_until;
	struct bl_rec_node **node;
	struct bl_rec_failure **failure;
	struct dead_proc *proc;
	struct bl_rec_out *out;
	uint32_t nnodes, nfailures, nprocs, nout, next_out, node_room, failure_room, proc_room, out_room;
	bool dirty, pending;
	uint64_t judge_ns, first_ns;
};

const char *bl_rec_reason_name(enum bl_rec_reason r)
{
#define NAME(sym, name) [BL_REC_##sym] = name,
	static const char *const names[BL_REC_REASON_COUNT] = { BL_REC_REASONS(NAME) };
#undef NAME
	return r < BL_REC_REASON_COUNT ? names[r] : "?";
}

/* makes room for one more; false: out of memory */
static bool room(void *list, uint32_t n, uint32_t *have, size_t size)
{
	uint32_t want = *have ? *have * 2 : 16;
	void **at = list, *v;

	if (n < *have)
		return true;
	v = realloc(*at, want * size);
	if (!v)
		return false;
	*at = v;
	*have = want;
	return true;
}

static void *copy(const void *from, size_t bytes)
{
	void *v = malloc(bytes ? bytes : 1);

	if (v && bytes)
		memcpy(v, from, bytes);
	return v;
}

static void put_out(struct bl_rec *r, enum bl_rec_do what, uint32_t node, uint64_t number)
{
	if (room(&r->out, r->nout, &r->out_room, sizeof(*r->out)))
		r->out[r->nout++] = (struct bl_rec_out){ what, node, number };
}

bool bl_rec_next(struct bl_rec *r, struct bl_rec_out *out)
{
	if (r->next_out == r->nout) {
		r->nout = r->next_out = 0;
		return false;
	}
	*out = r->out[r->next_out++];
	return true;
}

/* ---- nodes ---- */

/* where @id is, or would be */
static uint32_t place(const struct bl_rec *r, uint32_t id)
{
	uint32_t lo = 0, hi = r->nnodes;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (r->node[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint32_t index_of(const struct bl_rec *r, uint32_t id)
{
	uint32_t at = place(r, id);

	return at < r->nnodes && r->node[at]->id == id ? at : NONE;
}

static struct bl_rec_node *node_of(const struct bl_rec *r, uint32_t id)
{
	uint32_t at = index_of(r, id);

	return at == NONE ? NULL : r->node[at];
}

static struct bl_rec_node *node_make(struct bl_rec *r, uint32_t id)
{
	struct bl_rec_node *n = node_of(r, id);
	uint32_t at = place(r, id);

	if (n || r->nnodes == BL_REC_NODES_MAX || !room(&r->node, r->nnodes, &r->node_room, sizeof(*r->node)))
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->id = id;
	n->kind = BL_DET_SWITCH;
	memmove(r->node + at + 1, r->node + at, (r->nnodes - at) * sizeof(*r->node));
	r->node[at] = n;
	r->nnodes++;
	return n;
}

static void node_free(struct bl_rec_node *n)
{
	free(n->addr);
	free(n->port);
	free(n->endpoint);
	free(n);
}

static struct bl_rec_port *port_of(const struct bl_rec_node *n, uint32_t port)
{
	uint32_t i;

	for (i = 0; i < n->nports; i++)
		if (n->port[i].port == port)
			return &n->port[i];
	return NULL;
}

static bool waits_possible(const struct bl_rec_node *n)
{
	return n && n->agent && n->state != BL_DET_GONE;
}

/* ---- failures ---- */

static void failure_free(struct bl_rec_failure *f)
{
	uint32_t i;

	for (i = 0; i < f->nfailed; i++)
		free(f->failed[i].addr);
	free(f->failed);
	free(f->input);
	free(f->wait);
	free(f);
}

static struct bl_rec_failure *failure_of(const struct bl_rec *r, uint64_t number)
{
	uint32_t i;

	/* the new ones are asked for */
	for (i = r->nfailures; i-- > 0;)
		if (r->failure[i]->number == number)
			return r->failure[i];
	return NULL;
}

static uint32_t open_failures(const struct bl_rec *r)
{
	uint32_t i, n = 0;

	for (i = 0; i < r->nfailures; i++)
		n += r->failure[i]->step != BL_REC_FINISHED || r->failure[i]->saving;
	return n;
}

static struct bl_rec_wait *wait_of(const struct bl_rec_failure *f, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < f->nwaits; i++)
		if (f->wait[i].node == node)
			return &f->wait[i];
	return NULL;
}

static struct bl_rec_wait *wait_add(struct bl_rec_failure *f, uint32_t node)
{
	struct bl_rec_wait *w = wait_of(f, node), *v;

	if (w)
		return w;
	v = realloc(f->wait, (f->nwaits + 1) * sizeof(*v));
	if (!v)
		return NULL;
	f->wait = v;
	v[f->nwaits] = (struct bl_rec_wait){ .node = node, .done = true, .resumed = true };
	return &v[f->nwaits++];
}

static bool names_node(const struct bl_rec_failure *f, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < f->nfailed; i++)
		if (f->failed[i].node == id && !f->failed[i].port)
			return true;
	return false;
}

/* ---- making and ending it ---- */

struct bl_rec *bl_rec_new(const struct bl_rec_cfg *cfg)
{
	struct bl_rec *r = calloc(1, sizeof(*r));

	if (r)
		r->cfg = *cfg;
	return r;
}

void bl_rec_reset(struct bl_rec *r)
{
	struct bl_rec_cfg cfg = r->cfg;
	uint32_t i;

	for (i = 0; i < r->nnodes; i++)
		node_free(r->node[i]);
	for (i = 0; i < r->nfailures; i++)
		failure_free(r->failure[i]);
	free(r->node);
	free(r->failure);
	free(r->proc);
	free(r->out);
	*r = (struct bl_rec){ .cfg = cfg };
}

void bl_rec_free(struct bl_rec *r)
{
	if (!r)
		return;
	bl_rec_reset(r);
	free(r);
}

uint64_t bl_rec_epoch(const struct bl_rec *r)
{
	return r->epoch;
}

uint64_t bl_rec_number(const struct bl_rec *r)
{
	return r->number;
}

/* ---- looking ---- */

const struct bl_rec_node *bl_rec_node(const struct bl_rec *r, uint32_t id)
{
	return node_of(r, id);
}

const struct bl_rec_node *bl_rec_node_at(const struct bl_rec *r, uint32_t i)
{
	return i < r->nnodes ? r->node[i] : NULL;
}

uint32_t bl_rec_nodes(const struct bl_rec *r)
{
	return r->nnodes;
}

const struct bl_rec_failure *bl_rec_failure(const struct bl_rec *r, uint64_t number)
{
	return failure_of(r, number);
}

const struct bl_rec_failure *bl_rec_failure_at(const struct bl_rec *r, uint32_t i)
{
	return i < r->nfailures ? r->failure[i] : NULL;
}

uint32_t bl_rec_failures(const struct bl_rec *r)
{
	return r->nfailures;
}

const struct bl_rec_node *bl_rec_node_of(const struct bl_rec *r, const uint8_t addr[16])
{
	uint32_t i, k;

	for (i = 0; i < r->nnodes; i++)
		for (k = 0; k < r->node[i]->naddrs; k++)
			if (!memcmp(r->node[i]->addr[k], addr, 16))
				return r->node[i];
	return NULL;
}

static void count_agents(const struct bl_rec *r, uint32_t *agents, uint32_t *connected)
{
	uint32_t i;

	*agents = *connected = 0;
	for (i = 0; i < r->nnodes; i++) {
		*agents += waits_possible(r->node[i]);
		/* one that failed and talks to us shows as well that we can be talked to */
		*connected += r->node[i]->connected;
	}
}

bool bl_rec_isolated(const struct bl_rec *r)
{
	uint32_t agents, connected;

	count_agents(r, &agents, &connected);
	return connected * 2 < agents;
}

/* ---- orders to a node ---- */

static void to_node(struct bl_rec *r, enum bl_rec_do what, const struct bl_rec_node *n, uint64_t number)
{
	if (n->connected && n->saved)
		put_out(r, what, n->id, number);
}

/* An answer that somebody waits for. Of bars that is what stands before an announcement; the rest repeats what is known. */
static bool owes(const struct bl_rec_node *n)
{
	uint32_t i;

	if (!waits_possible(n))
		return false;
	for (i = 0; i < n->nports; i++)
		if (n->port[i].asked || (n->port[i].fence && n->barred != n->bar))
			return true;
	return false;
}

static uint64_t answer_by(const struct bl_rec *r, uint64_t now)
{
	uint64_t due = now + r->cfg.answer_ns;

	return due < r->grace_until ? r->grace_until : due;
}

static void update_due(struct bl_rec *r, struct bl_rec_node *n, uint64_t now)
{
	if (!owes(n))
		n->due = 0;
	else if (!n->due)
		n->due = answer_by(r, now);
}

static void update_bars(struct bl_rec *r, uint64_t now)
{
	uint32_t i, k;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_rec_node *n = r->node[i];
		bool changed = false;

		for (k = 0; k < n->nports; k++) {
			const struct bl_rec_node *to = n->port[k].neighbour ? node_of(r, n->port[k].neighbour) : NULL;
			bool barred = n->port[k].fence || (to && to->state == BL_DET_GONE);

			changed |= barred != n->port[k].barred;
			n->port[k].barred = barred;
		}
		if (!changed || !waits_possible(n))
			continue;
		n->bar++;
		update_due(r, n, now);
		to_node(r, BL_REC_BAR, n, 0);
	}
}

static void be_dirty(struct bl_rec *r, uint64_t now, uint64_t wait)
{
	if (!r->dirty || now + wait < r->judge_ns)
		r->judge_ns = now + wait;
	if (!r->dirty && !r->pending)
		r->first_ns = now;
	r->dirty = true;
	/* a new leader hears the agents first, or most reports would seem to be missing */
	if (r->judge_ns < r->grace_until)
		r->judge_ns = r->grace_until;
}

/* ---- failures go on ---- */

static void save(struct bl_rec *r, struct bl_rec_failure *f, enum bl_rec_step step)
{
	f->step = (uint8_t)step;
	f->saving = true;
	put_out(r, BL_REC_SAVE_FAILURE, 0, f->number);
}

static bool all_in(const struct bl_rec_failure *f)
{
	uint32_t i;

	for (i = 0; i < f->nwaits; i++)
		if (f->step == BL_REC_ANNOUNCED ? !f->wait[i].done : !f->wait[i].resumed)
			return false;
	return true;
}

static void progress(struct bl_rec *r, struct bl_rec_failure *f, uint64_t now)
{
	if (f->saving || f->step == BL_REC_FINISHED || !all_in(f))
		return;
	if (f->step == BL_REC_ANNOUNCED) {
		f->done_ns = now;
		save(r, f, BL_REC_RESUMED);
	} else {
		f->resumed_ns = now;
		save(r, f, BL_REC_FINISHED);
	}
}

static void progress_all(struct bl_rec *r, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < r->nfailures; i++)
		progress(r, r->failure[i], now);
}

/* Who must complete before anything is resumed: all hosts that are correct, with a session or not. */
static void await_hosts(struct bl_rec *r, struct bl_rec_failure *f, uint64_t now)
{
	uint32_t i;

	if (!f->nfailed)
		return;
	for (i = 0; i < r->nnodes; i++) {
		struct bl_rec_wait *w = waits_possible(r->node[i]) && r->node[i]->linked && r->node[i]->kind == BL_DET_HOST && r->node[i]->joined < f->number ? wait_add(f, r->node[i]->id) : NULL;

		if (w)
			w->done = false;
	}
	f->due_ns = answer_by(r, now);
}

/* Who must resume: where inputs stood still, and hosts of processes that died. */
static void await_inputs(struct bl_rec *r, struct bl_rec_failure *f, uint64_t now)
{
	struct bl_rec_wait *w;
	uint32_t i;

	for (i = 0; i < f->ninputs; i++) {
		struct bl_rec_node *n = node_of(r, f->input[i].node);
		struct bl_rec_port *p = n ? port_of(n, f->input[i].port) : NULL;

		/* from now on it may be out of C at any time */
		if (p && p->state == BL_DET_SILENT && p->record == f->number)
			p->state = BL_DET_REMOVED;
		w = waits_possible(n) ? wait_add(f, n->id) : NULL;
		if (w)
			w->resumed = false;
	}
	for (i = 0; i < f->nfailed; i++) {
		w = f->failed[i].port && waits_possible(node_of(r, f->failed[i].node)) ? wait_add(f, f->failed[i].node) : NULL;
		if (w)
			w->resumed = false;
	}
	f->due_ns = answer_by(r, now);
}

/* FAIL goes to all hosts and to those that failed, as far as they can be reached: that they failed is news to them. */
static void send_fail(struct bl_rec *r, const struct bl_rec_failure *f, const struct bl_rec_node *n)
{
	if (f->nfailed && n->agent && (n->kind == BL_DET_HOST || names_node(f, n->id)))
		to_node(r, BL_REC_FAIL, n, f->number);
}

static void forget_old(struct bl_rec *r)
{
	uint32_t i;

	while (r->nfailures > BL_REC_KEEP_MAX + BL_REC_OPEN_MAX) {
		for (i = 0; i < r->nfailures && (r->failure[i]->step != BL_REC_FINISHED || r->failure[i]->saving); i++)
			;
		if (i == r->nfailures)
			return;
		put_out(r, BL_REC_DROP_FAILURE, 0, r->failure[i]->number);
		failure_free(r->failure[i]);
		memmove(r->failure + i, r->failure + i + 1, (--r->nfailures - i) * sizeof(*r->failure));
	}
}

void bl_rec_saved_failure(struct bl_rec *r, uint64_t now, uint64_t number)
{
	struct bl_rec_failure *f = failure_of(r, number);
	uint32_t i, k;

	if (!f || !f->saving)
		return;
	f->saving = false;
	switch (f->step) {
	case BL_REC_ANNOUNCED:
		f->announced_ns = now;
		await_hosts(r, f, now);
		for (i = 0; i < r->nnodes; i++)
			send_fail(r, f, r->node[i]);
		progress(r, f, now);
		break;
	case BL_REC_RESUMED:
		await_inputs(r, f, now);
		for (i = 0; i < f->nwaits; i++)
			if (!f->wait[i].resumed)
				to_node(r, BL_REC_RESUME, node_of(r, f->wait[i].node), number);
		progress(r, f, now);
		break;
	case BL_REC_FINISHED:
		f->finished_ns = now;
		for (i = 0; i < r->nnodes; i++)
			for (k = 0; k < r->node[i]->nports; k++)
				if (r->node[i]->port[k].record == number)
					r->node[i]->port[k].record = 0;
		free(f->wait);
		f->wait = NULL;
		f->nwaits = 0;
		forget_old(r);
		/* what waited because too many were open */
		if (r->pending || r->nprocs)
			be_dirty(r, now, 0);
		break;
	}
}

/* ---- judging ---- */

/** struct half - a way: node @at's @port-th port receives it. */
struct half {
	uint32_t low, high, dir, at, port;
};

/** struct graph - as bl_determine() wants it. @owner: [2 * link + dir]: who receives; .at NONE: nobody that we know. */
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

static struct bl_det_way way_of(const struct bl_rec *r, const struct half *h)
{
	const struct bl_rec_port *p;

	if (h->at == NONE)
		return (struct bl_det_way){ .state = BL_DET_LIVE, .c = BL_DET_NO_C };
	p = &r->node[h->at]->port[h->port];
	return (struct bl_det_way){ .state = p->state, .c = p->c, .port = (uint16_t)p->port };
}

/* Halves of a pair of nodes, sorted: those received above first (BL_DET_TO_HIGH is 0). The k-th of one side and the k-th of the other are taken for one link: with parallel links nobody can tell which is which. */
static void pair_up(const struct bl_rec *r, const struct half *h, uint32_t n, struct graph *g)
{
	uint32_t up = 0, k, links;

	while (up < n && h[up].dir == BL_DET_TO_HIGH)
		up++;
	links = up > n - up ? up : n - up;
	for (k = 0; k < links; k++) {
		struct half none = { .at = NONE };
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
	return l->way[0].state == BL_DET_LIVE && l->way[1].state == BL_DET_LIVE && node[l->low].state == BL_DET_UP && node[l->high].state == BL_DET_UP;
}

/*
 * The part of the network in which most processes are whose hosts have a session with us; of equals, the one with more nodes that have, then the first. A host passes nothing on: it does not make one part of two, and
 * belongs to each of them. Who merely complains is not the live network for that: a host that hears nothing any more would declare the rest dead. Returns a node of it.
 */
static uint16_t live_root(const struct bl_rec *r, const struct graph *g, uint32_t *part, uint64_t *weight)
{
	uint32_t i, best = 0;

	for (i = 0; i < r->nnodes; i++) {
		const struct bl_rec_node *n = r->node[i];

		part[i] = i;
		weight[i] = n->connected && n->linked && n->state == BL_DET_UP ? 1 + ((uint64_t)(n->kind == BL_DET_HOST ? n->nendpoints : 0) << 32) : 0;
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
		if (part_root(part, i) == i && (weight[i] > weight[best] || part_root(part, best) != best))
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

static bool graph_make(const struct bl_rec *r, struct graph *g)
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
		const struct bl_rec_node *v = r->node[i];

		g->node[i] = (struct bl_det_node){ .kind = v->kind, .state = v->linked ? v->state : BL_DET_GONE, .processes = (uint16_t)(v->nendpoints > UINT16_MAX ? UINT16_MAX : v->nendpoints) };
		for (k = 0; k < v->nports; k++) {
			const struct bl_rec_port *p = &v->port[k];
			bool up = p->role == BL_REC_UP;

			at = p->neighbour ? index_of(r, p->neighbour) : NONE;
			/* nobody heard there yet; or the two contradict each other: a switch says "host" of a switch, a host is above somebody */
			if (at == NONE || at == i || r->node[up ? at : i]->kind != BL_DET_SWITCH || (p->role == BL_REC_HOST) != (!up && r->node[at]->kind == BL_DET_HOST))
				continue;
			h[n++] = (struct half){ .low = up ? i : at, .high = up ? at : i, .dir = up ? BL_DET_TO_LOW : BL_DET_TO_HIGH, .at = i, .port = k };
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

/* Asks, and bars. Returns how many answers are missing. */
static uint32_t order_ahead(struct bl_rec *r, const struct graph *g, uint64_t now, uint32_t *bars)
{
	uint32_t i, k, missing = 0;

	for (i = 0; i < r->nnodes; i++)
		for (k = 0; k < r->node[i]->nports; k++)
			r->node[i]->port[k].fence = false;
	for (i = 0; i < 2 * g->g.links; i++) {
		const struct half *h = &g->owner[i], *back = &g->owner[i ^ 1];
		struct bl_rec_node *n = h->at == NONE ? NULL : r->node[h->at];

		if (g->todo[i] & BL_DET_FENCE && back->at != NONE)
			r->node[back->at]->port[back->port].fence = true;
		if (!(g->todo[i] & BL_DET_ASK) || !waits_possible(n))
			continue;
		missing++;
		if (n->port[h->port].asked)
			continue;
		n->port[h->port].asked = true;
		update_due(r, n, now);
		to_node(r, BL_REC_FREEZE, n, 0);
	}
	update_bars(r, now);
	for (*bars = i = 0; i < 2 * g->g.links; i++) {
		const struct half *back = &g->owner[i ^ 1];

		*bars += g->todo[i] & BL_DET_FENCE && back->at != NONE && waits_possible(r->node[back->at]) && r->node[back->at]->barred != r->node[back->at]->bar;
	}
	return missing;
}

static bool add_failed(struct bl_rec_failure *f, const struct bl_rec_node *n, uint16_t port, enum bl_det_why why, uint64_t t)
{
	struct bl_rec_failed v = { .node = n->id, .port = port, .why = (uint8_t)why, .t = t, .naddrs = n->naddrs };

	v.addr = copy(n->addr, n->naddrs * sizeof(*v.addr));
	if (!v.addr)
		return false;
	f->failed[f->nfailed++] = v;
	return true;
}

static struct bl_rec_failure *failure_make(struct bl_rec *r, uint32_t failed, uint32_t inputs)
{
	struct bl_rec_failure *f = calloc(1, sizeof(*f));

	if (f) {
		f->failed = calloc(failed + 1, sizeof(*f->failed));
		f->input = calloc(inputs + 1, sizeof(*f->input));
	}
	if (!f || !f->failed || !f->input || !room(&r->failure, r->nfailures, &r->failure_room, sizeof(*r->failure))) {
		if (f)
			failure_free(f);
		return NULL;
	}
	return f;
}

/* The decision. From here on it is never another one: it is saved before anybody hears of it. */
static void announce(struct bl_rec *r, const struct graph *g, uint64_t now)
{
	struct bl_rec_failure *f = failure_make(r, g->sum.failed + r->nprocs, 2 * g->g.links);
	uint32_t i;

	if (!f)
		return;
	f->number = ++r->number;
	f->epoch = r->epoch;
	f->at_ns = r->first_ns;
	f->settled_ns = now;
	f->separated = g->sum.separated;
	for (i = 0; i < r->nnodes; i++)
		if (failing(&g->found[i]) && !add_failed(f, r->node[i], 0, (enum bl_det_why)g->found[i].why, g->found[i].t))
			break;
	for (; i == r->nnodes && r->nprocs; r->nprocs--) {
		const struct dead_proc *p = &r->proc[r->nprocs - 1];
		const struct bl_rec_node *n = node_of(r, p->node);

		if (waits_possible(n) && !names_node(f, n->id))
			add_failed(f, n, p->port, BL_DET_CORRECT, p->t);
	}
	for (i = 0; i < 2 * g->g.links; i++) {
		struct bl_rec_node *n = g->owner[i].at == NONE ? NULL : r->node[g->owner[i].at];
		struct bl_rec_port *p = n ? &n->port[g->owner[i].port] : NULL;

		/* inputs of those that fail are theirs; what is in another failure is resumed by that one */
		if (!(g->todo[i] & BL_DET_RESUME) || !p || p->state != BL_DET_SILENT || p->record || names_node(f, n->id) || n->state == BL_DET_GONE)
			continue;
		f->input[f->ninputs++] = (struct bl_rec_input){ n->id, p->port, p->neighbour, p->c };
		p->record = f->number;
	}
	r->failure[r->nfailures++] = f;
	for (i = 0; i < r->nnodes; i++) {
		struct bl_rec_node *n = r->node[i];

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
		update_due(r, r->node[i], now);
	}
	update_bars(r, now);
	/* nobody waits for them any more */
	for (i = 0; i < r->nfailures; i++) {
		uint32_t k;

		for (k = 0; k < r->failure[i]->nwaits; k++)
			if (!waits_possible(node_of(r, r->failure[i]->wait[k].node)))
				r->failure[i]->wait[k].done = r->failure[i]->wait[k].resumed = true;
	}
	/* nobody failed: no host has anything to complete */
	save(r, f, f->nfailed ? BL_REC_ANNOUNCED : BL_REC_RESUMED);
	progress_all(r, now);
}

static bool anything_to_resume(const struct bl_rec *r, const struct graph *g)
{
	uint32_t i;

	for (i = 0; i < 2 * g->g.links; i++) {
		const struct half *h = &g->owner[i];

		if (g->todo[i] & BL_DET_RESUME && h->at != NONE && r->node[h->at]->state != BL_DET_GONE && r->node[h->at]->port[h->port].state == BL_DET_SILENT && !r->node[h->at]->port[h->port].record)
			return true;
	}
	return false;
}

static void judge(struct bl_rec *r, uint64_t now)
{
	uint32_t i, asks, bars;
	struct graph g;

	r->dirty = false;
	/* whose host has failed, failed with it */
	for (i = bars = 0; i < r->nprocs; i++)
		if (waits_possible(node_of(r, r->proc[i].node)))
			r->proc[bars++] = r->proc[i];
	r->nprocs = bars;
	if (open_failures(r) >= BL_REC_OPEN_MAX) {
		r->pending = true; /* the one that finishes next comes back to it */
		return;
	}
	if (!graph_make(r, &g) || bl_determine(&g.g, g.found, g.todo, &g.sum)) {
		graph_free(&g);
		be_dirty(r, now, r->cfg.answer_ns); /* out of memory: later */
		return;
	}
	/* of a pair that is torn one is chosen, and stays chosen whatever is reported next */
	for (i = 0; i < r->nnodes; i++)
		if (g.found[i].why == BL_DET_TORN)
			r->node[i]->state = BL_DET_DOWN;
	asks = order_ahead(r, &g, now, &bars);
	r->pending = g.sum.failed > 0;
	if (g.sum.failed ? !bars && (!asks || (g.sum.held && !g.sum.unknown)) : r->nprocs || anything_to_resume(r, &g))
		announce(r, &g, now);
	graph_free(&g);
}

/* ---- events ---- */

static void node_save(struct bl_rec *r, struct bl_rec_node *n)
{
	n->again = n->saving;
	if (!n->saving)
		put_out(r, BL_REC_SAVE_NODE, n->id, 0);
	n->saving = true;
}

/* All that a node with a new session has to know, in order. */
static void welcome(struct bl_rec *r, struct bl_rec_node *n, uint64_t now)
{
	bool asked = false;
	uint32_t i;

	n->welcome = false;
	if (!n->connected)
		return;
	put_out(r, BL_REC_WELCOME, n->id, n->gone);
	if (n->state == BL_DET_GONE) {
		/* receiver recovery: what was announced from its own failure on */
		for (i = 0; i < r->nfailures; i++)
			if (r->failure[i]->number >= n->gone && r->failure[i]->nfailed && !(r->failure[i]->step == BL_REC_ANNOUNCED && r->failure[i]->saving))
				put_out(r, BL_REC_FAIL, n->id, r->failure[i]->number);
		return;
	}
	n->bar++;
	to_node(r, BL_REC_BAR, n, 0);
	for (i = 0; i < n->nports; i++)
		asked |= n->port[i].asked;
	if (asked)
		to_node(r, BL_REC_FREEZE, n, 0);
	update_due(r, n, now);
	for (i = 0; i < r->nfailures; i++) {
		const struct bl_rec_failure *f = r->failure[i];
		const struct bl_rec_wait *w = f->saving ? NULL : wait_of(f, n->id);

		if (w && f->step == BL_REC_ANNOUNCED && !w->done)
			to_node(r, BL_REC_FAIL, n, f->number);
		if (w && f->step == BL_REC_RESUMED && !w->resumed)
			to_node(r, BL_REC_RESUME, n, f->number);
	}
}

void bl_rec_saved_node(struct bl_rec *r, uint64_t now, uint32_t node)
{
	struct bl_rec_node *n = node_of(r, node);

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
}

static bool hello_ok(const struct bl_rec_hello *h)
{
	uint32_t i, k;

	if (!h->id || h->kind > BL_DET_SWITCH || h->nports > BL_REC_PORTS_MAX || h->naddrs > BL_REC_ADDRS_MAX || h->nendpoints > BL_REC_ENDPOINTS_MAX || (h->kind == BL_DET_SWITCH && h->nendpoints))
		return false;
	for (i = 0; i < h->nports; i++) {
		const struct bl_rec_port *p = &h->port[i];

		if (p->port > UINT16_MAX || p->role > BL_REC_DOWN || p->state > BL_DET_REMOVED || p->neighbour == h->id || (h->kind == BL_DET_HOST && p->role != BL_REC_UP) ||
		    (p->state == BL_DET_SILENT && p->c > C_MAX && p->c != BL_DET_NO_C))
			return false;
		for (k = 0; k < i; k++)
			if (h->port[k].port == p->port)
				return false;
	}
	return true;
}

/* What the node says of a port that we know as *@p; returns whether something new is silent. */
static bool merge_port(const struct bl_rec *r, struct bl_rec_port *p, const struct bl_rec_port *said)
{
	const struct bl_rec_node *to;
	bool lost;

	/* stands still until it is resumed by us, whatever it is now; and what is being resumed may say for a while that it is silent */
	if (p->state == BL_DET_SILENT || (p->state == BL_DET_REMOVED && p->record)) {
		if (p->state == BL_DET_SILENT && !p->record && said->state == BL_DET_SILENT)
			p->c = said->c;
		return false;
	}
	p->role = said->role;
	p->neighbour = said->neighbour;
	to = p->neighbour ? node_of(r, p->neighbour) : NULL;
	if (said->state == BL_DET_LIVE && p->state == BL_DET_REMOVED && to && to->state == BL_DET_GONE)
		return false;
	if (said->state == BL_DET_LIVE && p->state != BL_DET_LIVE)
		p->joined = r->number;
	lost = p->state == BL_DET_LIVE && said->state != BL_DET_LIVE;
	p->state = said->state;
	p->c = said->c;
	if (said->state == BL_DET_SILENT)
		p->asked = false;
	return lost || said->state == BL_DET_SILENT;
}

static bool same_links(const struct bl_rec_node *n, const struct bl_rec_port *v, uint32_t nv)
{
	uint32_t i;

	if (n->nports != nv)
		return false;
	for (i = 0; i < nv; i++)
		if (n->port[i].port != v[i].port || n->port[i].role != v[i].role || n->port[i].neighbour != v[i].neighbour || n->port[i].joined != v[i].joined)
			return false;
	return true;
}

/* False: out of memory; then nothing has changed. *@changed: what is saved is another now. *@silent: something new is. */
static bool take_hello(struct bl_rec *r, struct bl_rec_node *n, const struct bl_rec_hello *h, bool anew, bool *changed, bool *silent)
{
	uint8_t(*addr)[16] = copy(h->addr, h->naddrs * sizeof(*addr));
	uint16_t *endpoint = copy(h->endpoint, h->nendpoints * sizeof(*endpoint));
	struct bl_rec_port *port = calloc(h->nports + n->nports + 1, sizeof(*port));
	uint32_t i, k = 0;

	if (!addr || !endpoint || !port) {
		free(addr);
		free(endpoint);
		free(port);
		return false;
	}
	for (i = 0; i < h->nports; i++) {
		const struct bl_rec_port *old = anew ? NULL : port_of(n, h->port[i].port), *said = &h->port[i];

		if (old) {
			port[k] = *old;
			*silent |= merge_port(r, &port[k++], said);
		} else {
			port[k++] = (struct bl_rec_port){ .port = said->port, .neighbour = said->neighbour, .role = said->role, .state = said->state, .c = said->c, .joined = r->number };
			*silent |= said->state == BL_DET_SILENT;
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
	*changed = anew || !n->agent || n->kind != h->kind || strcmp(n->name, h->name) || n->naddrs != h->naddrs || memcmp(addr, n->addr ? (void *)n->addr : addr, h->naddrs * sizeof(*addr)) ||
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
	n->name[BL_REC_NAME_MAX] = 0;
	n->agent = true;
	return true;
}

/* Neighbours that never spoke are in the graph, too. */
static void make_neighbours(struct bl_rec *r, const struct bl_rec_node *n)
{
	uint32_t i;

	for (i = 0; i < n->nports; i++) {
		struct bl_rec_node *to = n->port[i].neighbour ? node_of(r, n->port[i].neighbour) : NULL;

		if (to || !n->port[i].neighbour)
			continue;
		to = node_make(r, n->port[i].neighbour);
		if (to)
			to->kind = n->port[i].role == BL_REC_HOST ? BL_DET_HOST : BL_DET_SWITCH;
	}
}

/* Who has a link now, both ways of it, or all that is known of one with a neighbour that never spoke. What is saved of them changes. */
static void find_linked(struct bl_rec *r)
{
	uint32_t i, k, j;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_rec_node *n = r->node[i];

		for (k = 0; k < n->nports; k++) {
			struct bl_rec_node *to = n->port[k].neighbour ? node_of(r, n->port[k].neighbour) : NULL, *both[2] = { n, to };

			if (!to || n->port[k].state != BL_DET_LIVE || n->state == BL_DET_GONE || to->state == BL_DET_GONE || (n->linked && to->linked))
				continue;
			for (j = 0; j < to->nports && (to->port[j].neighbour != n->id || to->port[j].state != BL_DET_LIVE); j++)
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

enum bl_rec_reason bl_rec_hello(struct bl_rec *r, uint64_t now, const struct bl_rec_hello *h)
{
	const struct bl_rec_failure *own;
	bool changed = false, silent = false, anew = false, was_saving;
	struct bl_rec_node *n;

	if (!r->epoch)
		return BL_REC_NOT_LEADING;
	if (!hello_ok(h))
		return BL_REC_BAD_HELLO;
	n = node_make(r, h->id);
	if (!n)
		return BL_REC_FULL;
	n->connected = true;
	was_saving = n->saving;
	if (n->state == BL_DET_GONE) {
		own = failure_of(r, n->gone);
		anew = h->rejoin && (!own || (own->step == BL_REC_FINISHED && !own->saving));
		if (!anew) {
			n->agent = n->saved = true; /* it is in the failure's record, and may never have been saved itself */
			welcome(r, n, now);
			return BL_REC_OK;
		}
	}
	if (!take_hello(r, n, h, anew, &changed, &silent))
		return BL_REC_FULL;
	if (anew) {
		n->gone = 0;
		n->joined = r->number;
		n->why = 0;
		n->bar = n->barred = 0;
		n->linked = false;
	}
	/* it answers again, and nobody was told otherwise */
	n->state = BL_DET_UP;
	make_neighbours(r, n);
	find_linked(r);
	update_bars(r, now);
	n->welcome = true;
	/* what must not be forgotten is that it is there, and since when: a leader that knows nothing of it would not wait for it */
	n->saved &= !anew;
	if (changed && was_saving)
		n->again = true;
	else if (changed && !n->saving)
		node_save(r, n);
	if (n->saved)
		welcome(r, n, now);
	if (silent)
		be_dirty(r, now, r->cfg.settle_ns);
	if (r->grace_until) {
		uint32_t agents, connected;

		/* everybody is here: no need to wait longer */
		count_agents(r, &agents, &connected);
		if (connected >= agents) {
			r->grace_until = 0;
			if (r->dirty && r->judge_ns > now + r->cfg.settle_ns)
				r->judge_ns = now + r->cfg.settle_ns;
		}
	}
	return BL_REC_OK;
}

enum bl_rec_reason bl_rec_bye(struct bl_rec *r, uint64_t now, uint32_t node)
{
	struct bl_rec_node *n = node_of(r, node);

	(void)now;
	if (!n || !n->agent)
		return BL_REC_UNKNOWN_NODE;
	n->connected = n->welcome = false;
	return BL_REC_OK;
}

/* A node that may speak. */
static enum bl_rec_reason speaker(const struct bl_rec *r, uint32_t node, struct bl_rec_node **n)
{
	*n = node_of(r, node);
	if (!r->epoch)
		return BL_REC_NOT_LEADING;
	if (!*n || !(*n)->agent)
		return BL_REC_UNKNOWN_NODE;
	return (*n)->state == BL_DET_GONE ? BL_REC_FAILED_NODE : BL_REC_OK;
}

enum bl_rec_reason bl_rec_link_down(struct bl_rec *r, uint64_t now, uint32_t node, uint32_t port, uint32_t neighbour, uint64_t c)
{
	enum bl_rec_reason why;
	struct bl_rec_node *n;
	struct bl_rec_port *p;
	bool asked;

	why = speaker(r, node, &n);
	if (why != BL_REC_OK)
		return why;
	if (c > C_MAX && c != BL_DET_NO_C)
		return BL_REC_BAD_C;
	p = port_of(n, port);
	if (!p || (p->neighbour && neighbour && p->neighbour != neighbour))
		return BL_REC_UNKNOWN_PORT;
	asked = p->asked;
	p->asked = false;
	update_due(r, n, now);
	if (p->state == BL_DET_SILENT || p->record)
		return BL_REC_REPEATED;
	if (!p->neighbour)
		p->neighbour = neighbour;
	p->state = BL_DET_SILENT;
	p->c = c;
	make_neighbours(r, n);
	be_dirty(r, now, asked ? 0 : r->cfg.settle_ns);
	return BL_REC_OK;
}

enum bl_rec_reason bl_rec_proc_down(struct bl_rec *r, uint64_t now, uint32_t node, uint16_t endpoint, uint64_t t)
{
	enum bl_rec_reason why;
	struct bl_rec_node *n;
	uint32_t i, k;

	why = speaker(r, node, &n);
	if (why != BL_REC_OK)
		return why;
	if (t > C_MAX && t != BL_DET_NO_C)
		return BL_REC_BAD_C;
	if (n->kind != BL_DET_HOST || !endpoint)
		return BL_REC_UNKNOWN_PORT;
	for (i = 0; i < r->nprocs; i++)
		if (r->proc[i].node == node && r->proc[i].port == endpoint)
			return BL_REC_REPEATED;
	for (i = 0; i < r->nfailures; i++)
		for (k = 0; k < r->failure[i]->nfailed; k++)
			if (r->failure[i]->failed[k].node == node && r->failure[i]->failed[k].port == endpoint && r->failure[i]->failed[k].t == t)
				return BL_REC_REPEATED;
	if (r->nprocs == BL_REC_PROCS_MAX || !room(&r->proc, r->nprocs, &r->proc_room, sizeof(*r->proc)))
		return BL_REC_FULL;
	r->proc[r->nprocs++] = (struct dead_proc){ node, endpoint, t };
	be_dirty(r, now, r->cfg.settle_ns);
	return BL_REC_OK;
}

enum bl_rec_reason bl_rec_barred(struct bl_rec *r, uint64_t now, uint32_t node, uint64_t version)
{
	enum bl_rec_reason why;
	struct bl_rec_node *n;

	why = speaker(r, node, &n);
	if (why != BL_REC_OK)
		return why;
	if (version > n->bar)
		return BL_REC_UNKNOWN_FAILURE;
	if (version <= n->barred)
		return BL_REC_REPEATED;
	n->barred = version;
	update_due(r, n, now);
	if (r->pending && n->barred == n->bar)
		be_dirty(r, now, 0);
	return BL_REC_OK;
}

static enum bl_rec_reason answered(struct bl_rec *r, uint64_t now, uint32_t node, uint64_t number, enum bl_rec_step step)
{
	struct bl_rec_failure *f = failure_of(r, number);
	enum bl_rec_reason why;
	struct bl_rec_node *n;
	struct bl_rec_wait *w;

	why = speaker(r, node, &n);
	if (why != BL_REC_OK)
		return why;
	if (!f || f->step < step || (f->step == step && f->saving))
		return BL_REC_UNKNOWN_FAILURE;
	w = wait_of(f, node);
	if (!w || (step == BL_REC_ANNOUNCED ? w->done : w->resumed))
		return BL_REC_REPEATED;
	if (step == BL_REC_ANNOUNCED)
		w->done = true;
	else
		w->resumed = true;
	progress(r, f, now);
	return BL_REC_OK;
}

enum bl_rec_reason bl_rec_done(struct bl_rec *r, uint64_t now, uint32_t node, uint64_t number)
{
	return answered(r, now, node, number, BL_REC_ANNOUNCED);
}

enum bl_rec_reason bl_rec_resumed(struct bl_rec *r, uint64_t now, uint32_t node, uint64_t number)
{
	return answered(r, now, node, number, BL_REC_RESUMED);
}

enum bl_rec_reason bl_rec_down(struct bl_rec *r, uint64_t now, uint32_t node)
{
	enum bl_rec_reason why;
	struct bl_rec_node *n;

	why = speaker(r, node, &n);
	if (why != BL_REC_OK)
		return why;
	if (n->state == BL_DET_DOWN)
		return BL_REC_REPEATED;
	n->state = BL_DET_DOWN;
	be_dirty(r, now, 0);
	return BL_REC_OK;
}

/* ---- time ---- */

static void too_late(struct bl_rec *r, uint64_t now)
{
	bool isolated = bl_rec_isolated(r);
	uint32_t i, k;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_rec_node *n = r->node[i];

		if (!n->due || now < n->due)
			continue;
		n->due = now + r->cfg.answer_ns;
		if (!isolated)
			bl_rec_down(r, now, n->id);
	}
	for (i = 0; i < r->nfailures; i++) {
		struct bl_rec_failure *f = r->failure[i];

		if (f->step == BL_REC_FINISHED || f->saving || now < f->due_ns)
			continue;
		f->due_ns = now + r->cfg.answer_ns;
		for (k = 0; k < f->nwaits && !isolated; k++)
			if (f->step == BL_REC_ANNOUNCED ? !f->wait[k].done : !f->wait[k].resumed)
				bl_rec_down(r, now, f->wait[k].node);
	}
}

void bl_rec_tick(struct bl_rec *r, uint64_t now)
{
	if (!r->epoch)
		return;
	if (r->grace_until && now >= r->grace_until)
		r->grace_until = 0;
	too_late(r, now);
	if (r->dirty && now >= r->judge_ns)
		judge(r, now);
}

uint64_t bl_rec_due(const struct bl_rec *r)
{
	uint64_t due = r->dirty ? r->judge_ns : UINT64_MAX;
	uint32_t i;

	if (!r->epoch)
		return UINT64_MAX;
	for (i = 0; i < r->nnodes; i++)
		if (r->node[i]->due && r->node[i]->due < due)
			due = r->node[i]->due;
	for (i = 0; i < r->nfailures; i++)
		if (r->failure[i]->step != BL_REC_FINISHED && !r->failure[i]->saving && r->failure[i]->due_ns < due)
			due = r->failure[i]->due_ns;
	return due;
}

/* ---- a new leader ---- */

int bl_rec_load_node(struct bl_rec *r, const struct bl_rec_node *from)
{
	const struct bl_rec_hello h = { .id = from->id, .kind = from->kind, .addr = (const uint8_t(*)[16])from->addr, .port = from->port, .endpoint = from->endpoint, .naddrs = from->naddrs, .nports = from->nports,
					.nendpoints = from->nendpoints };
	bool changed, silent = false;
	struct bl_rec_node *n;
	uint32_t i;

	if (r->epoch || !hello_ok(&h) || from->state > BL_DET_GONE)
		return -1;
	n = node_make(r, from->id);
	if (!n || n->agent || !take_hello(r, n, &h, true, &changed, &silent))
		return -1;
	memcpy(n->name, from->name, sizeof(n->name));
	n->name[BL_REC_NAME_MAX] = 0;
	n->joined = from->joined;
	n->linked = from->linked;
	n->saved = true;
	/* how its inputs are it says itself; that they stand still is in the failures */
	for (i = 0; i < n->nports; i++) {
		n->port[i].state = BL_DET_LIVE;
		n->port[i].joined = from->port[i].joined;
	}
	make_neighbours(r, n);
	return 0;
}

int bl_rec_load_failure(struct bl_rec *r, const struct bl_rec_failure *from)
{
	struct bl_rec_failure *f;
	uint32_t i;

	if (r->epoch || !from->number || failure_of(r, from->number) || from->step > BL_REC_FINISHED || (!from->nfailed && from->step == BL_REC_ANNOUNCED))
		return -1;
	f = failure_make(r, from->nfailed, from->ninputs);
	if (!f)
		return -1;
	f->number = from->number;
	f->epoch = from->epoch;
	f->step = from->step;
	f->separated = from->separated;
	for (i = 0; i < from->nfailed; i++) {
		const struct bl_rec_failed *v = &from->failed[i];
		const struct bl_rec_node like = { .id = v->node, .addr = v->addr, .naddrs = v->naddrs };

		if (!v->node || !add_failed(f, &like, v->port, (enum bl_det_why)v->why, v->t)) {
			failure_free(f);
			return -1;
		}
	}
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
static void take_gone(struct bl_rec *r, const struct bl_rec_failure *f)
{
	uint32_t i;

	for (i = 0; i < f->nfailed; i++) {
		struct bl_rec_node *n = f->failed[i].port ? NULL : node_make(r, f->failed[i].node);

		if (!n || n->joined >= f->number)
			continue;
		n->state = BL_DET_GONE;
		n->why = f->failed[i].why;
		n->gone = f->number;
		if (!n->agent)
			n->kind = f->failed[i].naddrs ? BL_DET_HOST : n->kind;
	}
}

void bl_rec_start(struct bl_rec *r, uint64_t now, uint64_t epoch)
{
	uint32_t i, k;

	r->epoch = epoch;
	r->grace_until = now + r->cfg.grace_ns;
	for (i = 0; i < r->nfailures; i++)
		take_gone(r, r->failure[i]);
	for (i = 0; i < r->nfailures; i++) {
		struct bl_rec_failure *f = r->failure[i];

		for (k = 0; k < f->ninputs; k++) {
			struct bl_rec_node *n = node_of(r, f->input[k].node);
			struct bl_rec_port *p = n ? port_of(n, f->input[k].port) : NULL;

			if (!p || p->joined >= f->number)
				continue;
			p->state = f->step == BL_REC_FINISHED ? BL_DET_REMOVED : BL_DET_SILENT;
			p->c = f->input[k].c;
			p->record = f->step == BL_REC_FINISHED ? 0 : f->number;
		}
		if (f->step == BL_REC_ANNOUNCED)
			await_hosts(r, f, now);
		else if (f->step == BL_REC_RESUMED)
			await_inputs(r, f, now);
	}
	update_bars(r, now);
	progress_all(r, now);
}
