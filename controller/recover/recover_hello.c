// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A node reports everything about itself (HELLO), and is welcomed. */
#include <stdlib.h>
#include <string.h>

#include "controller/recover/recover_priv.h"

/* ---- the record ---- */

void recover_save_node(struct bl_recover *r, struct bl_recover_node *n)
{
	n->again = n->saving;
	if (!n->saving)
		recover_add_output(r, BL_RECOVER_SAVE_NODE, n->id, 0);
	n->saving = true;
}

void recover_grant_absence(struct bl_recover_node *n, uint64_t now, uint64_t ns)
{
	n->away_ns = ns < BL_RECOVER_AWAY_MAX_NS ? ns : BL_RECOVER_AWAY_MAX_NS;
	n->away_until = now + n->away_ns;
}

/* ---- welcome ---- */

/* Sends everything that a node with a new session has to know, in this order. */
static void welcome_node(struct bl_recover *r, struct bl_recover_node *n, uint64_t now)
{
	bool asked = false;
	uint32_t i;

	n->welcome = false;
	if (!n->connected)
		return;
	recover_add_output(r, BL_RECOVER_WELCOME, n->id, n->gone);
	if (n->state == BL_DET_GONE) {
		/* Receiver recovery: everything that was announced from its own failure on. */
		for (i = 0; i < r->nfailures; i++)
			if (r->failure[i]->number >= n->gone && r->failure[i]->nfailed &&
			    !(r->failure[i]->step == BL_RECOVER_ANNOUNCED && r->failure[i]->saving))
				recover_add_output(r, BL_RECOVER_FAIL, n->id,
						   r->failure[i]->number);
		return;
	}
	n->bar++;
	recover_send_command(r, BL_RECOVER_BAR, n, 0);
	for (i = 0; i < n->nports; i++)
		asked |= n->port[i].asked;
	if (asked)
		recover_send_command(r, BL_RECOVER_FREEZE, n, 0);
	recover_update_due(r, n, now);
	recover_stuck_welcome(r, n);
	for (i = 0; i < r->nfailures; i++) {
		const struct bl_recover_failure *f = r->failure[i];
		const struct bl_recover_wait *w = f->saving ? NULL : recover_wait_of(f, n->id);

		if (w && f->step == BL_RECOVER_ANNOUNCED && !w->done)
			recover_send_command(r, BL_RECOVER_FAIL, n, f->number);
		if (w && f->step == BL_RECOVER_RESUMED && !w->resumed)
			recover_send_command(r, BL_RECOVER_RESUME, n, f->number);
	}
}

void bl_recover_saved_node(struct bl_recover *r, uint64_t now, uint32_t node)
{
	struct bl_recover_node *n = recover_node_of(r, node);

	if (!n || !n->saving)
		return;
	n->saving = false;
	if (n->again) {
		recover_save_node(r, n);
		return;
	}
	n->saved = true;
	if (n->welcome)
		welcome_node(r, n, now);
	if (n->away_ns)
		recover_send_command(r, BL_RECOVER_AWAY, n, 0);
}

/* ---- the report ---- */

bool recover_hello_valid(const struct bl_recover_hello *h)
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

/*
 * Applies what the node reports of a port (@said) to what is known of it (*@p). Returns whether the
 * input has newly fallen silent or left the live state.
 */
static bool merge_port(const struct bl_recover *r, struct bl_recover_port *p,
		       const struct bl_recover_port *said)
{
	const struct bl_recover_node *to;
	bool lost;

	/*
	 * A frozen input stays frozen until this controller resumes it, whatever it is now. An
	 * input that is being resumed may be reported as silent for a while; that it rises, or is
	 * silent since another death, is reported after it was resumed.
	 */
	if (p->state == BL_DET_SILENT ||
	    (p->state == BL_DET_REMOVED && p->record && !bl_det_rises(said->state) &&
	     !(said->state == BL_DET_SILENT && recover_port_died_again(p, said->death)))) {
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

/* Whether the ports of @n differ from @v in nothing that is saved. */
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

bool recover_apply_hello(struct bl_recover *r, struct bl_recover_node *n,
			 const struct bl_recover_hello *h, bool anew, bool sworn, bool *changed,
			 bool *silent)
{
	uint8_t(*addr)[16] = recover_copy(h->addr, h->naddrs * sizeof(*addr));
	uint16_t *endpoint = recover_copy(h->endpoint, h->nendpoints * sizeof(*endpoint));
	struct bl_recover_port *port = calloc(h->nports + n->nports + 1, sizeof(*port));
	uint32_t i, k = 0, kept = 0;

	/* Frozen inputs whose port is gone are kept, so a node could report ever new ones. */
	for (i = 0; i < n->nports && !anew; i++)
		kept += n->port[i].state == BL_DET_SILENT;
	if (!addr || !endpoint || !port || h->nports + kept > 2 * BL_RECOVER_PORTS_MAX) {
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
	/* A port that no longer exists is kept while its input is frozen. */
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

void recover_make_neighbours(struct bl_recover *r, const struct bl_recover_node *n)
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
 * Finds the nodes that have a link now: both ways of it are live, or the one that is known is, to a
 * neighbour that never sent HELLO. Their records change. One that is DOWN is judged: a host may
 * have asked to leave before its switch reported the link, when it was none of the graph's
 * (make_graph()), and nobody reports that again.
 */
static void find_linked(struct bl_recover *r, uint64_t now)
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
					recover_save_node(r, both[j]);
				if (both[j]->state == BL_DET_DOWN)
					recover_schedule_judgement(r, now, 0);
			}
		}
	}
}

/*
 * Node @back has joined anew: ports to it that were reported as rising while it was GONE become
 * live. Their nodes do not report them again, since nothing has changed for them. (Such a report
 * comes when the node joined before the command to bar that port arrived.)
 */
static void revive_ports_to(struct bl_recover *r, const struct bl_recover_node *back)
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
			recover_save_node(r, n);
	}
}

/*
 * Copies the addresses of @h that no other member has to @addr, and returns their number. What is
 * announced of a node names its addresses: with those of another node it would discard what that
 * one sends. Of two nodes, the one that reported an address first keeps it until it fails or is
 * removed.
 */
static uint32_t own_addresses(const struct bl_recover *r, const struct bl_recover_hello *h,
			      uint8_t addr[BL_RECOVER_ADDRS_MAX][16])
{
	uint32_t i, n = 0;

	for (i = 0; i < h->naddrs; i++) {
		const struct bl_recover_node *has = bl_recover_node_of(r, h->addr[i]);

		if (!has || has->id == h->id || !recover_can_answer(has))
			memcpy(addr[n++], h->addr[i], 16);
	}
	return n;
}

enum bl_recover_reason bl_recover_hello(struct bl_recover *r, uint64_t now,
					const struct bl_recover_hello *h)
{
	const struct bl_recover_failure *own;
	bool changed = false, silent = false, anew = false, was_saving;
	uint8_t own_addr[BL_RECOVER_ADDRS_MAX][16];
	struct bl_recover_hello own_h;
	struct bl_recover_node *n;

	if (!r->epoch)
		return BL_RECOVER_NOT_LEADING;
	if (!recover_hello_valid(h))
		return BL_RECOVER_BAD_HELLO;
	/* Neighbours that were named once must leave room for nodes. */
	if (r->nnodes > BL_RECOVER_NODES_MAX / 2)
		recover_drop_unnamed(r);
	n = recover_node_make(r, h->id);
	if (!n)
		return BL_RECOVER_FULL;
	/*
	 * A host is no switch later, unless it has failed in between and joins anew: its frozen
	 * inputs are kept, and would be saved as those of a node that cannot have them.
	 */
	if (n->agent && n->state != BL_DET_GONE && n->kind != h->kind)
		return BL_RECOVER_BAD_HELLO;
	own_h = *h;
	own_h.addr = (const uint8_t(*)[16])own_addr;
	own_h.naddrs = own_addresses(r, h, own_addr);
	n->connected = true;
	if (now < n->away_until)
		n->away_until = now + r->cfg.answer_ns;
	n->sworn = h->epoch == r->epoch;
	was_saving = n->saving;
	if (n->state == BL_DET_GONE) {
		own = recover_failure_of(r, n->gone);
		anew = h->rejoin && (!own || (own->step == BL_RECOVER_FINISHED && !own->saving));
		if (!anew) {
			/*
			 * The record of the failure names it; it may never have had a record of its
			 * own.
			 */
			n->agent = n->saved = true;
			welcome_node(r, n, now);
			return BL_RECOVER_OK;
		}
	}
	if (!recover_apply_hello(r, n, &own_h, anew, n->sworn, &changed, &silent))
		return BL_RECOVER_FULL;
	if (anew) {
		n->gone = 0;
		n->joined = r->number;
		n->why = 0;
		n->bar = n->barred = 0;
		n->linked = false;
	}
	/* It answers again, and no node was told otherwise. One that leaves goes on to leave. */
	if (!n->leaves || anew)
		n->state = BL_DET_UP;
	n->leaves &= !anew;
	if (anew)
		revive_ports_to(r, n);
	recover_make_neighbours(r, n);
	find_linked(r, now);
	recover_update_bars(r, now);
	n->welcome = true;
	/*
	 * A node that has joined anew has to be saved before it is welcomed: a leader that does not
	 * know that it is there, and since when, would not wait for it.
	 */
	n->saved &= !anew;
	/* The absence is over: the next leader need not wait for it. */
	changed |= n->away_ns != 0;
	n->away_ns = 0;
	if (changed && was_saving)
		n->again = true;
	else if (changed && !n->saving)
		recover_save_node(r, n);
	if (n->saved)
		welcome_node(r, n, now);
	if (silent)
		recover_schedule_judgement(r, now, r->cfg.settle_ns);
	if (r->grace_until && n->sworn) {
		uint32_t agents, connected;

		/*
		 * All agents are here, and this one was the last: there is no need to wait longer.
		 */
		recover_count_agents(r, &agents, &connected);
		if (connected >= agents) {
			r->grace_until = 0;
			if (r->dirty && r->judge_ns > now + r->cfg.settle_ns)
				r->judge_ns = now + r->cfg.settle_ns;
		}
	}
	return own_h.naddrs == h->naddrs ? BL_RECOVER_OK : BL_RECOVER_ADDRESS_TAKEN;
}
