// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See agent_watch.h. */
#include <string.h>

#include "agent_watch.h"

#define C_MASK ((1ULL << 48) - 1)

void bl_agent_watch_init(struct bl_agent_watch *w)
{
	memset(w, 0, sizeof(*w));
	memset(w->state, BL_AGENT_REMOVED, sizeof(w->state));
}

/* the least C of the lanes that hold the minimum back; registers are 64 bits that grow */
static uint64_t last_commit(const struct bl_port_regs *r)
{
	uint64_t c = BL_AGENT_NO_C;
	unsigned int l;

	for (l = 0; l < BL_LANES_MAX; l++) {
		const struct bl_reg *g = &r->lane[l];

		if ((g->state == BL_REG_LIVE || g->state == BL_REG_DEAD) && g->c && (c == BL_AGENT_NO_C || g->c < c))
			c = g->c;
	}
	return c == BL_AGENT_NO_C ? c : c & C_MASK;
}

static unsigned int lanes_in(const struct bl_port_regs *r, enum bl_reg_state state)
{
	unsigned int l, n = 0;

	for (l = 0; l < BL_LANES_MAX; l++)
		n += r->lane[l].state == state;
	return n;
}

enum bl_agent_seen bl_agent_watch_look(struct bl_agent_watch *w, unsigned int port, const struct bl_port_regs *r, bool barred)
{
	bool dead = lanes_in(r, BL_REG_DEAD), live = lanes_in(r, BL_REG_LIVE);

	switch (w->state[port]) {
	case BL_AGENT_LIVE:
		if (!dead)
			return BL_AGENT_SEEN_NOTHING;
		bl_agent_watch_freeze(w, port, r);
		return BL_AGENT_SEEN_SILENT;
	case BL_AGENT_REMOVED:
		if (barred || dead || !live || lanes_in(r, BL_REG_JOINING))
			return BL_AGENT_SEEN_NOTHING;
		w->state[port] = BL_AGENT_LIVE;
		return BL_AGENT_SEEN_LIVE;
	}
	return BL_AGENT_SEEN_NOTHING;
}

uint64_t bl_agent_watch_freeze(struct bl_agent_watch *w, unsigned int port, const struct bl_port_regs *r)
{
	if (w->state[port] == BL_AGENT_LIVE) {
		w->state[port] = BL_AGENT_SILENT;
		w->c[port] = last_commit(r);
	}
	return w->state[port] == BL_AGENT_SILENT ? w->c[port] : BL_AGENT_NO_C;
}

void bl_agent_watch_resumed(struct bl_agent_watch *w, unsigned int port)
{
	if (w->state[port] == BL_AGENT_SILENT)
		w->state[port] = BL_AGENT_REMOVED;
}
