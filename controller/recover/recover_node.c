// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The nodes that the controller knows, the commands to them, and the queue of outputs. */
#include <stdlib.h>
#include <string.h>

#include "controller/recover/recover_priv.h"

const char *bl_recover_reason_name(enum bl_recover_reason r)
{
#define NAME(sym, name) [BL_RECOVER_##sym] = name,
	static const char *const names[BL_RECOVER_REASON_COUNT] = { BL_RECOVER_REASONS(NAME) };
#undef NAME
	return r < BL_RECOVER_REASON_COUNT ? names[r] : "?";
}

bool recover_grow(void *list, uint32_t n, uint32_t *have, size_t size)
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

/* ---- outputs ---- */

void recover_add_output(struct bl_recover *r, enum bl_recover_do what, uint32_t node,
			uint64_t number)
{
	if (recover_grow(&r->out, r->nout, &r->out_room, sizeof(*r->out)))
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

/* Returns the index of node @id, or where it would be inserted. */
static uint32_t node_position(const struct bl_recover *r, uint32_t id)
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
	uint32_t at = node_position(r, id);

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
	uint32_t at = node_position(r, id);

	if (n || r->nnodes == BL_RECOVER_NODES_MAX ||
	    !recover_grow(&r->node, r->nnodes, &r->node_room, sizeof(*r->node)))
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

void recover_node_free(struct bl_recover_node *n)
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

bool recover_port_died_again(const struct bl_recover_port *p, uint32_t death)
{
	return p->state == BL_DET_REMOVED && p->record && death != p->death;
}

bool recover_can_answer(const struct bl_recover_node *n)
{
	return n && n->agent && n->state != BL_DET_GONE;
}

enum bl_recover_reason recover_find_member(const struct bl_recover *r, uint32_t node,
					   struct bl_recover_node **n)
{
	*n = recover_node_of(r, node);
	if (!r->epoch)
		return BL_RECOVER_NOT_LEADING;
	if (!*n || !(*n)->agent)
		return BL_RECOVER_UNKNOWN_NODE;
	return (*n)->state == BL_DET_GONE ? BL_RECOVER_FAILED_NODE : BL_RECOVER_OK;
}

enum bl_recover_reason recover_find_speaker(const struct bl_recover *r, uint32_t node,
					    struct bl_recover_node **n)
{
	enum bl_recover_reason why = recover_find_member(r, node, n);

	return why == BL_RECOVER_OK && !(*n)->sworn ? BL_RECOVER_TOO_EARLY : why;
}

void recover_count_agents(const struct bl_recover *r, uint32_t *agents, uint32_t *connected)
{
	uint32_t i;

	*agents = *connected = 0;
	for (i = 0; i < r->nnodes; i++) {
		*agents += recover_can_answer(r->node[i]);
		/* A failed node with a session also shows that this controller can be reached. */
		*connected += r->node[i]->connected;
	}
}

/* ---- reading ---- */

uint64_t bl_recover_epoch(const struct bl_recover *r)
{
	return r->epoch;
}

uint64_t bl_recover_number(const struct bl_recover *r)
{
	return r->number;
}

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

const struct bl_recover_node *bl_recover_node_of(const struct bl_recover *r, const uint8_t addr[16])
{
	const struct bl_recover_node *failed = NULL;
	uint32_t i, k;

	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_node *n = r->node[i];

		for (k = 0; k < n->naddrs && memcmp(n->addr[k], addr, 16); k++)
			;
		if (k < n->naddrs && recover_can_answer(n))
			return n;
		if (k < n->naddrs && !failed)
			failed = n;
	}
	return failed;
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

/* ---- commands to a node ---- */

void recover_send_command(struct bl_recover *r, enum bl_recover_do what,
			  const struct bl_recover_node *n, uint64_t number)
{
	if (n->connected && n->saved)
		recover_add_output(r, what, n->id, number);
}

/*
 * Whether an announcement waits for an answer of @n. Of the barred ports only those with @fence
 * matter for that: the others repeat what was announced.
 */
static bool owes_answer(const struct bl_recover_node *n)
{
	uint32_t i;

	if (!recover_can_answer(n))
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
	if (!owes_answer(n))
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
		if (!changed || !recover_can_answer(n))
			continue;
		n->bar++;
		recover_update_due(r, n, now);
		recover_send_command(r, BL_RECOVER_BAR, n, 0);
	}
}

void recover_schedule_judgement(struct bl_recover *r, uint64_t now, uint64_t wait)
{
	if (!r->dirty || now + wait < r->judge_ns)
		r->judge_ns = now + wait;
	if (!r->dirty && !r->pending)
		r->first_ns = now;
	r->dirty = true;
	/*
	 * A new leader waits for the agents first: most reports would seem to be missing otherwise.
	 */
	if (r->judge_ns < r->grace_until)
		r->judge_ns = r->grace_until;
}
