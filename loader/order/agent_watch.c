// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See agent_watch.h. */
#include "loader/order/agent_watch.h"

#include "loader/order/fence.h"

uint8_t bl_agent_port_state(const struct bl_fence_port *p)
{
	if (p->held)
		return BL_AGENT_SILENT;
	if (!p->in)
		return BL_AGENT_REMOVED;
	/*
	 * A host has one link. What it sent before that link broke is settled by its failure, and
	 * there is no other flow that could cover it.
	 */
	return p->behind && p->role != BL_PORT_HOST ? BL_AGENT_BEHIND : BL_AGENT_LIVE;
}

enum bl_agent_seen bl_agent_watch_sample(struct bl_agent_watch *w, const struct bl_fence_port *p)
{
	uint8_t state = bl_agent_port_state(p), was = w->port[p->port].state;
	uint32_t neighbour = w->port[p->port].neighbour, death = w->port[p->port].death;

	w->port[p->port].state = (uint8_t)(state + 1);
	w->port[p->port].neighbour = p->neighbour;
	w->port[p->port].death = p->death;
	if (state == BL_AGENT_SILENT && (was != state + 1 || death != p->death))
		return BL_AGENT_SEEN_SILENT;
	if (state == BL_AGENT_LIVE && was != state + 1)
		return BL_AGENT_SEEN_LIVE;
	/* A port that is sampled for the first time counts as one that was in no minimum. */
	return (was ? was : BL_AGENT_REMOVED + 1) == state + 1 && neighbour == p->neighbour
		       ? BL_AGENT_SEEN_NOTHING
		       : BL_AGENT_SEEN_OTHER;
}
