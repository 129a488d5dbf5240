// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The failures, from their announcement to their end. */
#include <stdlib.h>
#include <string.h>

#include "controller/recover/recover_priv.h"

/* ---- the list ---- */

struct bl_recover_failure *recover_failure_make(struct bl_recover *r, uint32_t failed,
						uint32_t inputs)
{
	struct bl_recover_failure *f = calloc(1, sizeof(*f));

	if (f) {
		f->failed = calloc(failed + 1, sizeof(*f->failed));
		f->input = calloc(inputs + 1, sizeof(*f->input));
	}
	if (!f || !f->failed || !f->input ||
	    !recover_grow(&r->failure, r->nfailures, &r->failure_room, sizeof(*r->failure))) {
		if (f)
			recover_failure_free(f);
		return NULL;
	}
	return f;
}

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

	/* Most callers ask for one of the newest. */
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

bool recover_names_node(const struct bl_recover_failure *f, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < f->nfailed; i++)
		if (f->failed[i].node == id && !f->failed[i].proc.port)
			return true;
	return false;
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

bool recover_is_leave(const struct bl_recover_failure *f)
{
	uint32_t i;

	for (i = 0;
	     i < f->nfailed && f->failed[i].proc.port && f->failed[i].proc.why == BL_WHY_LEFT; i++)
		;
	return f->nfailed && i == f->nfailed;
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

/* ---- answers ---- */

struct bl_recover_wait *recover_wait_of(const struct bl_recover_failure *f, uint32_t node)
{
	uint32_t i;

	for (i = 0; i < f->nwaits; i++)
		if (f->wait[i].node == node)
			return &f->wait[i];
	return NULL;
}

static struct bl_recover_wait *add_wait(struct bl_recover_failure *f, uint32_t node)
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
 * Whether @n is announced as failed and that is saved, so that the next leader knows it, too. Until
 * it is saved, the other nodes wait for @n as before.
 */
static bool is_surely_gone(const struct bl_recover *r, const struct bl_recover_node *n)
{
	const struct bl_recover_failure *f =
		n->state == BL_DET_GONE ? recover_failure_of(r, n->gone) : NULL;

	return n->state == BL_DET_GONE && !(f && f->saving && f->step == BL_RECOVER_ANNOUNCED);
}

static bool is_awaited(const struct bl_recover *r, const struct bl_recover_node *n)
{
	return n && n->agent && !is_surely_gone(r, n);
}

/* Whether all nodes have answered that have to for the current step of @f. */
static bool all_answered(const struct bl_recover_failure *f)
{
	uint32_t i;

	for (i = 0; i < f->nwaits; i++)
		if (f->step == BL_RECOVER_ANNOUNCED ? !f->wait[i].done : !f->wait[i].resumed)
			return false;
	return true;
}

/*
 * Whether all correct hosts have completed everything that was announced or is being announced: a
 * later T may have been taken from the same registers. Leaves do not count, since no register is
 * frozen for them.
 */
static bool all_hosts_complete(const struct bl_recover *r)
{
	uint32_t i;

	for (i = 0; i < r->nfailures; i++)
		if (r->failure[i]->step == BL_RECOVER_ANNOUNCED && !r->failure[i]->left &&
		    (r->failure[i]->saving || !all_answered(r->failure[i])))
			return false;
	return true;
}

/*
 * Whether host @n has to confirm FAIL. The host of a process that left gets no RESUME: FAIL is all
 * it is sent, whether it has a link at the moment or not.
 */
static bool is_host_told(const struct bl_recover_failure *f, const struct bl_recover_node *n)
{
	return n->linked || (f->left && f->failed[0].node == n->id);
}

void recover_await_hosts(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now)
{
	uint32_t i;

	if (!f->nfailed)
		return;
	for (i = 0; i < r->nnodes; i++) {
		struct bl_recover_wait *w = is_awaited(r, r->node[i]) &&
							    is_host_told(f, r->node[i]) &&
							    r->node[i]->kind == BL_DET_HOST &&
							    r->node[i]->joined < f->number
						    ? add_wait(f, r->node[i]->id)
						    : NULL;

		if (w)
			w->done = false;
	}
	f->due_ns = f->left ? UINT64_MAX : recover_answer_by(r, now);
}

/*
 * The inputs of @f are to be resumed and may leave the minimum at any time: from now on no T is
 * taken from them.
 */
static void retire_inputs(struct bl_recover *r, const struct bl_recover_failure *f)
{
	uint32_t i;

	for (i = 0; i < f->ninputs; i++) {
		struct bl_recover_node *n = recover_node_of(r, f->input[i].node);
		struct bl_recover_port *p = n ? recover_port_of(n, f->input[i].port) : NULL;

		if (p && p->state == BL_DET_SILENT && p->record == f->number)
			p->state = BL_DET_REMOVED;
	}
}

void recover_await_inputs(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now)
{
	struct bl_recover_wait *w;
	uint32_t i;

	retire_inputs(r, f);
	for (i = 0; i < f->ninputs; i++) {
		struct bl_recover_node *n = recover_node_of(r, f->input[i].node);

		w = is_awaited(r, n) ? add_wait(f, n->id) : NULL;
		if (w)
			w->resumed = false;
	}
	for (i = 0; i < f->nfailed; i++) {
		w = f->failed[i].proc.port && is_awaited(r, recover_node_of(r, f->failed[i].node))
			    ? add_wait(f, f->failed[i].node)
			    : NULL;
		if (w)
			w->resumed = false;
	}
	f->due_ns = recover_answer_by(r, now);
}

/* A node that has surely failed has nothing to answer any more. */
static void release_failed_waits(struct bl_recover *r)
{
	uint32_t i, k;

	for (i = 0; i < r->nfailures; i++)
		for (k = 0; k < r->failure[i]->nwaits; k++)
			if (!is_awaited(r, recover_node_of(r, r->failure[i]->wait[k].node)))
				r->failure[i]->wait[k].done = r->failure[i]->wait[k].resumed = true;
}

/* ---- steps ---- */

void recover_save(struct bl_recover *r, struct bl_recover_failure *f, enum bl_recover_step step)
{
	f->step = (uint8_t)step;
	if (step == BL_RECOVER_RESUMED)
		retire_inputs(r, f);
	f->saving = true;
	recover_add_output(r, BL_RECOVER_SAVE_FAILURE, 0, f->number);
}

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

static void advance_failure(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now,
			    bool complete)
{
	if (f->saving || f->step == BL_RECOVER_FINISHED || !all_answered(f) ||
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

void recover_member_left(struct bl_recover *r, uint64_t now)
{
	release_failed_waits(r);
	recover_progress_all(r, now);
}

void recover_progress_all(struct bl_recover *r, uint64_t now)
{
	bool complete = all_hosts_complete(r);
	uint32_t i;

	for (i = 0; i < r->nfailures; i++)
		advance_failure(r, r->failure[i], now, complete);
}

/*
 * FAIL is sent to all hosts, and to the nodes that failed as far as they can be reached: they learn
 * from it that they failed.
 */
static void send_fail(struct bl_recover *r, const struct bl_recover_failure *f,
		      const struct bl_recover_node *n)
{
	if (f->nfailed && n->agent && (n->kind == BL_DET_HOST || recover_names_node(f, n->id)))
		recover_send_command(r, BL_RECOVER_FAIL, n, f->number);
}

/* Drops the oldest failures beyond the number that is remembered. */
static void forget_old_failures(struct bl_recover *r)
{
	uint32_t i;

	while (r->nfailures > BL_RECOVER_KEEP_MAX + BL_RECOVER_OPEN_MAX) {
		/*
		 * A leave that is not confirmed by all hosts may be dropped: a host that has no
		 * session for a long time then misses the leave, and reports a process that it does
		 * not reach.
		 */
		for (i = 0; i < r->nfailures &&
			    ((r->failure[i]->step != BL_RECOVER_FINISHED && !r->failure[i]->left) ||
			     r->failure[i]->saving);
		     i++)
			;
		if (i == r->nfailures)
			return;
		recover_add_output(r, BL_RECOVER_DROP_FAILURE, 0, r->failure[i]->number);
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
		release_failed_waits(r);
		if (f->left)
			forget_old_failures(r);
		recover_progress_all(r, now);
		break;
	case BL_RECOVER_RESUMED:
		recover_await_inputs(r, f, now);
		for (i = 0; i < f->nwaits; i++)
			if (!f->wait[i].resumed)
				recover_send_command(r, BL_RECOVER_RESUME,
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
		forget_old_failures(r);
		/* Something may have waited because too many failures were open. */
		if (r->pending || r->nprocs)
			recover_schedule_judgement(r, now, 0);
		break;
	}
}
