// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Nodes that are no members any more: those that a person removes, and neighbours that no port
 * names any more.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/recover/recover_priv.h"

/* Whether a port of a node that can answer names node @id. @live: and its input has a barrier. */
static bool is_named(const struct bl_recover *r, uint32_t id, bool live)
{
	uint32_t i, k;

	for (i = 0; i < r->nnodes; i++) {
		const struct bl_recover_node *n = r->node[i];

		for (k = 0; k < n->nports && n->id != id; k++)
			if (n->port[k].neighbour == id &&
			    (!live ||
			     (n->port[k].state != BL_DET_REMOVED && recover_can_answer(n))))
				return true;
	}
	return false;
}

static bool may_be_dropped(const struct bl_recover *r, const struct bl_recover_node *n)
{
	return !n->agent && n->state != BL_DET_GONE && !n->saving && !is_named(r, n->id, false);
}

void recover_drop_unnamed(struct bl_recover *r)
{
	uint32_t i, left = 0;

	/* Each answer is about all the nodes, so none is dropped before the last one is given. */
	for (i = 0; i < r->nnodes; i++)
		r->node[i]->late = may_be_dropped(r, r->node[i]);
	for (i = 0; i < r->nnodes; i++) {
		if (r->node[i]->late)
			recover_node_free(r->node[i]);
		else
			r->node[left++] = r->node[i];
	}
	r->nnodes = left;
}

enum bl_recover_bond bl_recover_bond(const struct bl_recover *r, uint32_t node)
{
	const struct bl_recover_node *n = recover_node_of(r, node);
	const struct bl_recover_failure *own;

	if (!n)
		return BL_RECOVER_FREE;
	if (n->saving)
		return BL_RECOVER_SAVES;
	if (n->state == BL_DET_GONE) {
		own = recover_failure_of(r, n->gone);
		return own && (own->step != BL_RECOVER_FINISHED || own->saving) ? BL_RECOVER_FAILS
										: BL_RECOVER_FREE;
	}
	return is_named(r, node, true) ? BL_RECOVER_HEARD : BL_RECOVER_FREE;
}

void bl_recover_forget(struct bl_recover *r, uint64_t now, uint32_t node)
{
	struct bl_recover_node *n = recover_node_of(r, node), was;

	if (!n)
		return;
	was = *n;
	free(n->addr);
	free(n->port);
	free(n->endpoint);
	/* What was announced of it stays: its neighbours go on barring it. */
	*n = (struct bl_recover_node){ .id = was.id,
				       .kind = was.kind,
				       .state = was.state == BL_DET_GONE ? was.state
									 : (uint8_t)BL_DET_UP,
				       .why = was.state == BL_DET_GONE ? was.why : 0,
				       .gone = was.state == BL_DET_GONE ? was.gone : 0,
				       .joined = was.joined };
	recover_member_left(r, now);
	recover_drop_unnamed(r);
}
