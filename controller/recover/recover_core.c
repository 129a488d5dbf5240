// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See recover_core.h: nodes, failures, and what is done about them step by step. */
#include <stdlib.h>
#include <string.h>

#include "recover_priv.h"

const char *bl_recover_reason_name(enum bl_recover_reason r)
{
#define NAME(sym, name) [BL_RECOVER_##sym] = name,
	static const char *const names[BL_RECOVER_REASON_COUNT] = { BL_RECOVER_REASONS(NAME) };
#undef NAME
	return r < BL_RECOVER_REASON_COUNT ? names[r] : "?";
}

/* makes room for one more; false: out of memory */
bool recover_room(void *list, uint32_t n, uint32_t *have, size_t size)
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

void *recover_copy(const void *from, size_t bytes)
{
	void *v = malloc(bytes ? bytes : 1);

	if (v && bytes)
		memcpy(v, from, bytes);
	return v;
}

void recover_put_out(struct bl_recover *r, enum bl_recover_do what, uint32_t node, uint64_t number)
{
	if (recover_room(&r->out, r->nout, &r->out_room, sizeof(*r->out)))
		r->out[r->nout++] = (struct bl_recover_out){ what, node, number };
}

bool bl_recover_next(struct bl_recover *r, struct bl_recover_out *out)
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
static uint32_t place(const struct bl_recover *r, uint32_t id)
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

uint32_t recover_index_of(const struct bl_recover *r, uint32_t id)
{
	uint32_t at = place(r, id);

	return at < r->nnodes && r->node[at]->id == id ? at : RECOVER_NONE;
}

struct bl_recover_node *recover_node_of(const struct bl_recover *r, uint32_t id)
{
	uint32_t at = recover_index_of(r, id);

	return at == RECOVER_NONE ? NULL : r->node[at];
}

struct bl_recover_node *recover_node_make(struct bl_recover *r, uint32_t id)
{
	struct bl_recover_node *n = recover_node_of(r, id);
	uint32_t at = place(r, id);

	if (n || r->nnodes == BL_RECOVER_NODES_MAX ||
	    !recover_room(&r->node, r->nnodes, &r->node_room, sizeof(*r->node)))
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

static void node_free(struct bl_recover_node *n)
{
	free(n->addr);
	free(n->port);
	free(n->endpoint);
	free(n);
}

struct bl_recover_port *recover_port_of(const struct bl_recover_node *n, uint32_t port)
{
	uint32_t i;

	for (i = 0; i < n->nports; i++)
		if (n->port[i].port == port)
			return &n->port[i];
	return NULL;
}

bool recover_waits_possible(const struct bl_recover_node *n)
{
	return n && n->agent && n->state != BL_DET_GONE;
}

/* ---- failures ---- */

void recover_failure_free(struct bl_recover_failure *f)
{
	uint32_t i;

	for (i = 0; i < f->nfailed; i++)
		free(f->failed[i].addr);
	free(f->failed);
	free(f->input);
	free(f->wait);
	free(f);
}

struct bl_recover_failure *recover_failure_of(const struct bl_recover *r, uint64_t number)
{
	uint32_t i;

	/* the new ones are asked for */
	for (i = r->nfailures; i-- > 0;)
		if (r->failure[i]->number == number)
			return r->failure[i];
	return NULL;
}

uint32_t recover_open_failures(const struct bl_recover *r)
{
	uint32_t i, n = 0;

	for (i = 0; i < r->nfailures; i++)
		n += !r->failure[i]->left &&
		     (r->failure[i]->step != BL_RECOVER_FINISHED || r->failure[i]->saving);
	return n;
}

struct bl_recover_wait *recover_wait_of(const struct bl_recover_failure *f, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < f->nwaits; i++)
		if (f->wait[i].node == node)
			return &f->wait[i];
	return NULL;
}

static struct bl_recover_wait *wait_add(struct bl_recover_failure *f, uint32_t node)
{
	struct bl_recover_wait *w = recover_wait_of(f, node), *v;

	if (w)
		return w;
	v = realloc(f->wait, (f->nwaits + 1) * sizeof(*v));
	if (!v)
		return NULL;
	f->wait = v;
	v[f->nwaits] = (struct bl_recover_wait){ .node = node, .done = true, .resumed = true };
	return &v[f->nwaits++];
}

/*
 * Announced, and that is saved: whoever leads next knows it, too. Until then everybody waits for it
 * as before.
 */
static bool surely_gone(const struct bl_recover *r, const struct bl_recover_node *n)
{
	const struct bl_recover_failure *f =
		n->state == BL_DET_GONE ? recover_failure_of(r, n->gone) : NULL;

	return n->state == BL_DET_GONE && !(f && f->saving && f->step == BL_RECOVER_ANNOUNCED);
}

static bool awaited(const struct bl_recover *r, const struct bl_recover_node *n)
{
	return n && n->agent && !surely_gone(r, n);
}

bool recover_names_node(const struct bl_recover_failure *f, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < f->nfailed; i++)
		if (f->failed[i].node == id && !f->failed[i].proc.port)
			return true;
	return false;
}

/* ---- making and ending it ---- */

struct bl_recover *bl_recover_new(const struct bl_recover_cfg *cfg)
{
	struct bl_recover *r = calloc(1, sizeof(*r));

	if (r)
		r->cfg = *cfg;
	return r;
}

void bl_recover_reset(struct bl_recover *r)
{
	struct bl_recover_cfg cfg = r->cfg;
	uint32_t i;

	for (i = 0; i < r->nnodes; i++)
		node_free(r->node[i]);
	for (i = 0; i < r->nfailures; i++)
		recover_failure_free(r->failure[i]);
	free(r->node);
	free(r->failure);
	free(r->proc);
	free(r->stuck);
	free(r->expelled);
	free(r->out);
	*r = (struct bl_recover){ .cfg = cfg };
}

void bl_recover_free(struct bl_recover *r)
{
	if (!r)
		return;
	bl_recover_reset(r);
	free(r);
}

uint64_t bl_recover_epoch(const struct bl_recover *r)
{
	return r->epoch;
}

uint64_t bl_recover_number(const struct bl_recover *r)
{
	return r->number;
}

/* ---- looking ---- */

const struct bl_recover_node *bl_recover_node(const struct bl_recover *r, uint32_t id)
{
	return recover_node_of(r, id);
}

const struct bl_recover_node *bl_recover_node_at(const struct bl_recover *r, uint32_t i)
{
	return i < r->nnodes ? r->node[i] : NULL;
}

uint32_t bl_recover_nodes(const struct bl_recover *r)
{
	return r->nnodes;
}

const struct bl_recover_failure *bl_recover_failure(const struct bl_recover *r, uint64_t number)
{
	return recover_failure_of(r, number);
}

const struct bl_recover_failure *bl_recover_failure_at(const struct bl_recover *r, uint32_t i)
{
	return i < r->nfailures ? r->failure[i] : NULL;
}

uint32_t bl_recover_failures(const struct bl_recover *r)
{
	return r->nfailures;
}

const struct bl_recover_node *bl_recover_node_of(const struct bl_recover *r, const uint8_t addr[16])
{
	uint32_t i, k;

	for (i = 0; i < r->nnodes; i++)
		for (k = 0; k < r->node[i]->naddrs; k++)
			if (!memcmp(r->node[i]->addr[k], addr, 16))
				return r->node[i];
	return NULL;
}

void recover_count_agents(const struct bl_recover *r, uint32_t *agents, uint32_t *connected)
{
	uint32_t i;

	*agents = *connected = 0;
	for (i = 0; i < r->nnodes; i++) {
		*agents += recover_waits_possible(r->node[i]);
		/* one that failed and talks to us shows as well that we can be talked to */
		*connected += r->node[i]->connected;
	}
}

bool bl_recover_isolated(const struct bl_recover *r)
{
	uint32_t agents, connected;

	recover_count_agents(r, &agents, &connected);
	return connected * 2 < agents;
}

bool bl_recover_doubts(const struct bl_recover *r)
{
	return r->doubts;
}

bool bl_recover_covered(const struct bl_recover *r, const struct bl_recover_node *n)
{
	uint32_t i, k;

	for (i = 0; i < r->nnodes && n->linked; i++) {
		const struct bl_recover_node *at = r->node[i];

		for (k = 0; k < at->nports && at->state == BL_DET_UP && at->barred == at->bar; k++)
			if (at->port[k].neighbour == n->id && at->port[k].state == BL_DET_LIVE &&
			    !at->port[k].barred)
				return true;
	}
	return false;
}

/* ---- orders to a node ---- */

void recover_to_node(struct bl_recover *r, enum bl_recover_do what, const struct bl_recover_node *n,
		     uint64_t number)
{
	if (n->connected && n->saved)
		recover_put_out(r, what, n->id, number);
}

/*
 * An answer that somebody waits for. Of bars that is what stands before an announcement; the rest
 * repeats what is known.
 */
static bool owes(const struct bl_recover_node *n)
{
	uint32_t i;

	if (!recover_waits_possible(n))
		return false;
	for (i = 0; i < n->nports; i++)
		if (n->port[i].asked || (n->port[i].fence && n->barred != n->bar))
			return true;
	return false;
}

uint64_t recover_answer_by(const struct bl_recover *r, uint64_t now)
{
	uint64_t due = now + r->cfg.answer_ns;

	return due < r->grace_until ? r->grace_until : due;
}

void recover_update_due(struct bl_recover *r, struct bl_recover_node *n, uint64_t now)
{
	if (!owes(n))
		n->due = 0;
	else if (!n->due)
		n->due = recover_answer_by(r, now);
}

void recover_update_bars(struct bl_recover *r, uint64_t now)
{
	uint32_t i, k;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];
		bool changed = false;

		for (k = 0; k < n->nports; k++) {
			const struct bl_recover_node *to =
				n->port[k].neighbour ? recover_node_of(r, n->port[k].neighbour)
						     : NULL;
			bool barred = n->port[k].fence || (to && to->state == BL_DET_GONE);

			changed |= barred != n->port[k].barred;
			n->port[k].barred = barred;
		}
		if (!changed || !recover_waits_possible(n))
			continue;
		n->bar++;
		recover_update_due(r, n, now);
		recover_to_node(r, BL_RECOVER_BAR, n, 0);
	}
}

void recover_be_dirty(struct bl_recover *r, uint64_t now, uint64_t wait)
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

/*
 * What is to be resumed tells nothing any more of who fails from now on: it may be out of C at any
 * time.
 */
static void stop_counting(struct bl_recover *r, const struct bl_recover_failure *f)
{
	uint32_t i;

	for (i = 0; i < f->ninputs; i++) {
		struct bl_recover_node *n = recover_node_of(r, f->input[i].node);
		struct bl_recover_port *p = n ? recover_port_of(n, f->input[i].port) : NULL;

		if (p && p->state == BL_DET_SILENT && p->record == f->number)
			p->state = BL_DET_REMOVED;
	}
}

void recover_save(struct bl_recover *r, struct bl_recover_failure *f, enum bl_recover_step step)
{
	f->step = (uint8_t)step;
	if (step == BL_RECOVER_RESUMED)
		stop_counting(r, f);
	f->saving = true;
	recover_put_out(r, BL_RECOVER_SAVE_FAILURE, 0, f->number);
}

static bool all_in(const struct bl_recover_failure *f)
{
	uint32_t i;

	for (i = 0; i < f->nwaits; i++)
		if (f->step == BL_RECOVER_ANNOUNCED ? !f->wait[i].done : !f->wait[i].resumed)
			return false;
	return true;
}

/*
 * Everything that was announced, or is just being: a later T may have been taken from the same
 * registers. Not who left: no register stands still for that.
 */
static bool all_complete(const struct bl_recover *r)
{
	uint32_t i;

	for (i = 0; i < r->nfailures; i++)
		if (r->failure[i]->step == BL_RECOVER_ANNOUNCED && !r->failure[i]->left &&
		    (r->failure[i]->saving || !all_in(r->failure[i])))
			return false;
	return true;
}

static void progress(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now,
		     bool complete)
{
	if (f->saving || f->step == BL_RECOVER_FINISHED || !all_in(f) ||
	    (f->step == BL_RECOVER_ANNOUNCED && !complete && !f->left))
		return;
	if (f->left) {
		f->done_ns = f->resumed_ns = now;
		recover_save(r, f, BL_RECOVER_FINISHED);
	} else if (f->step == BL_RECOVER_ANNOUNCED) {
		f->done_ns = now;
		recover_save(r, f, BL_RECOVER_RESUMED);
	} else {
		f->resumed_ns = now;
		recover_save(r, f, BL_RECOVER_FINISHED);
	}
}

void recover_progress_all(struct bl_recover *r, uint64_t now)
{
	bool complete = all_complete(r);
	uint32_t i;

	for (i = 0; i < r->nfailures; i++)
		progress(r, r->failure[i], now, complete);
}

/*
 * The host of a process that left gets no RESUME: it is told by this order alone, whether it has a
 * link at the moment or not.
 */
static bool is_told(const struct bl_recover_failure *f, const struct bl_recover_node *n)
{
	return n->linked || (f->left && f->failed[0].node == n->id);
}

/*
 * Who must complete before anything is resumed: all hosts that are correct, with a session or not.
 */
void recover_await_hosts(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now)
{
	uint32_t i;

	if (!f->nfailed)
		return;
	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_wait *w = awaited(r, r->node[i]) && is_told(f, r->node[i]) &&
							    r->node[i]->kind == BL_DET_HOST &&
							    r->node[i]->joined < f->number
						    ? wait_add(f, r->node[i]->id)
						    : NULL;

		if (w)
			w->done = false;
	}
	f->due_ns = f->left ? UINT64_MAX : recover_answer_by(r, now);
}

/* Who must resume: where inputs stood still, and hosts of processes that died. */
void recover_await_inputs(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now)
{
	struct bl_recover_wait *w;
	uint32_t i;

	stop_counting(r, f);
	for (i = 0; i < f->ninputs; i++) {
		struct bl_recover_node *n = recover_node_of(r, f->input[i].node);

		w = awaited(r, n) ? wait_add(f, n->id) : NULL;
		if (w)
			w->resumed = false;
	}
	for (i = 0; i < f->nfailed; i++) {
		w = f->failed[i].proc.port && awaited(r, recover_node_of(r, f->failed[i].node))
			    ? wait_add(f, f->failed[i].node)
			    : NULL;
		if (w)
			w->resumed = false;
	}
	f->due_ns = recover_answer_by(r, now);
}

/* Who failed for sure has nothing to answer any more. */
static void stop_waiting(struct bl_recover *r)
{
	uint32_t i, k;

	for (i = 0; i < r->nfailures; i++)
		for (k = 0; k < r->failure[i]->nwaits; k++)
			if (!awaited(r, recover_node_of(r, r->failure[i]->wait[k].node)))
				r->failure[i]->wait[k].done = r->failure[i]->wait[k].resumed = true;
}

/*
 * FAIL goes to all hosts and to those that failed, as far as they can be reached: that they failed
 * is news to them.
 */
static void send_fail(struct bl_recover *r, const struct bl_recover_failure *f,
		      const struct bl_recover_node *n)
{
	if (f->nfailed && n->agent && (n->kind == BL_DET_HOST || recover_names_node(f, n->id)))
		recover_to_node(r, BL_RECOVER_FAIL, n, f->number);
}

static void forget_old(struct bl_recover *r)
{
	uint32_t i;

	while (r->nfailures > BL_RECOVER_KEEP_MAX + BL_RECOVER_OPEN_MAX) {
		/*
		 * a host that has no session for long misses who left meanwhile: it asks about whom
		 * it cannot reach
		 */
		for (i = 0; i < r->nfailures &&
			    ((r->failure[i]->step != BL_RECOVER_FINISHED && !r->failure[i]->left) ||
			     r->failure[i]->saving);
		     i++)
			;
		if (i == r->nfailures)
			return;
		recover_put_out(r, BL_RECOVER_DROP_FAILURE, 0, r->failure[i]->number);
		recover_failure_free(r->failure[i]);
		memmove(r->failure + i, r->failure + i + 1,
			(--r->nfailures - i) * sizeof(*r->failure));
	}
}

void bl_recover_saved_failure(struct bl_recover *r, uint64_t now, uint64_t number)
{
	struct bl_recover_failure *f = recover_failure_of(r, number);
	uint32_t i, k;

	if (!f || !f->saving)
		return;
	f->saving = false;
	switch (f->step) {
	case BL_RECOVER_ANNOUNCED:
		f->announced_ns = now;
		recover_await_hosts(r, f, now);
		for (i = 0; i < r->nnodes; i++)
			send_fail(r, f, r->node[i]);
		stop_waiting(r);
		if (f->left)
			forget_old(r);
		recover_progress_all(r, now);
		break;
	case BL_RECOVER_RESUMED:
		recover_await_inputs(r, f, now);
		for (i = 0; i < f->nwaits; i++)
			if (!f->wait[i].resumed)
				recover_to_node(r, BL_RECOVER_RESUME,
						recover_node_of(r, f->wait[i].node), number);
		recover_progress_all(r, now);
		break;
	case BL_RECOVER_FINISHED:
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
			recover_be_dirty(r, now, 0);
		break;
	}
}
