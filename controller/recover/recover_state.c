// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The whole state: made, loaded by a new leader, forgotten. */
#include <stdlib.h>
#include <string.h>

#include "controller/recover/recover_priv.h"

struct bl_recover *bl_recover_new(const struct bl_recover_cfg *cfg)
{
	struct bl_recover *r = calloc(1, sizeof(*r));

	if (r)
		r->cfg = *cfg;
	return r;
}

void bl_recover_limits(struct bl_recover *r, const struct bl_recover_cfg *cfg)
{
	r->cfg = *cfg;
}

void bl_recover_reset(struct bl_recover *r)
{
	struct bl_recover_cfg cfg = r->cfg;
	uint32_t i;

	for (i = 0; i < r->nnodes; i++)
		recover_node_free(r->node[i]);
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

	if (r->epoch || !recover_hello_valid(&h) || from->state > BL_DET_GONE)
		return -1;
	n = recover_node_make(r, from->id);
	if (!n || n->agent || !recover_apply_hello(r, n, &h, true, true, &changed, &silent))
		return -1;
	memcpy(n->name, from->name, sizeof(n->name));
	n->name[BL_RECOVER_NAME_MAX] = 0;
	n->joined = from->joined;
	n->away_ns = from->away_ns;
	/*
	 * That it was linked may not have been saved in time. To announce a host in vain does less
	 * harm than to forget one.
	 */
	n->linked = true;
	n->saved = true;
	/*
	 * The node reports the state of its inputs itself; which inputs are frozen is in the
	 * records of the failures.
	 */
	for (i = 0; i < n->nports; i++) {
		n->port[i].state = BL_DET_LIVE;
		n->port[i].death = 0;
		n->port[i].joined = from->port[i].joined;
	}
	recover_make_neighbours(r, n);
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

/*
 * Marks the nodes that @f announced as failed, unless they have joined anew since. Called in the
 * order of the numbers: the newest failure that names a node counts.
 */
static void mark_failed_nodes(struct bl_recover *r, const struct bl_recover_failure *f)
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
		recover_grant_absence(r->node[i], now, r->node[i]->away_ns);
	for (i = 0; i < r->nfailures; i++)
		mark_failed_nodes(r, r->failure[i]);
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
