// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See stuck.h. */
#include "loader/order/stuck.h"

#include <string.h>

#include "base/time.h"
#include "core/clock_core.h"
#include "core/order/commit_core.h"
#include "loader/node_priv.h"
#include "loader/order/agent.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/ep.h"
#include "loader/order/stuck_core.h"

static bool is_named(const struct bl_agent_stuck *v, unsigned int n, const struct bl_rslot *s)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (v[i].port == s->port && v[i].life == s->life &&
		    !memcmp(v[i].addr, s->addr, sizeof(s->addr)))
			return true;
	return false;
}

/*
 * Finds the receivers of frames that are older than @before. Returns how many; -1: the first frame
 * is being recalled.
 */
static int find_receivers(const struct bl_ep *ep, struct bl_rwin *w, uint64_t state,
			  uint64_t before, struct bl_agent_stuck *v)
{
	uint32_t n, head = bl_rwin_head(state);
	int found = 0;

	for (n = head; n != bl_rwin_tail(state) && found < BL_STUCK_NAMES; n++) {
		const struct bl_rslot *s = bl_rwin_slot(w, n);
		uint64_t wait = __atomic_load_n(&s->wait, __ATOMIC_ACQUIRE);

		if (n == head && wait == (BL_RSLOT_LOCKED | n))
			return -1;
		if (wait != (BL_RSLOT_OPEN | n) || s->ts > before ||
		    is_named(v, (unsigned int)found, s))
			continue;
		v[found] = (struct bl_agent_stuck){ .from = { .port = ep->info.port,
							      .life = ep->info.life },
						    .port = s->port,
						    .life = s->life };
		memcpy(v[found++].addr, s->addr, sizeof(s->addr));
	}
	return found;
}

static void name_receivers(struct bl_node *n, unsigned int slot, uint64_t state, uint64_t limit_ns,
			   void (*say)(void *ctx, const struct bl_agent_stuck *s), void *ctx)
{
	static struct bl_agent_stuck v[BL_STUCK_NAMES];
	int found, i;

	found = find_receivers(&n->ep[slot], &n->ep[slot].page->win, state,
			       bl_clock_at(n->clock.shared, bl_mono_ns()) - limit_ns, v);
	if (found < 0)
		bl_endpoint_put_out(n, 1ULL << slot, BL_OUT_UNREACHABLE);
	for (i = 0; i < found; i++)
		say(ctx, &v[i]);
}

/* Returns the time at which the endpoint holds C, by its own words; BL_TIME_NONE: it does not. */
static uint64_t holds_commit_at(struct bl_ep_page *p, uint64_t state)
{
	uint64_t at = __atomic_load_n(&p->line.hold, __ATOMIC_ACQUIRE);

	if (!at)
		at = BL_TIME_NONE;
	if (bl_rwin_used(state))
		at = bl_min64(at, __atomic_load_n(&bl_rwin_slot(&p->win, bl_rwin_head(state))->ts,
						  __ATOMIC_ACQUIRE));
	return at;
}

void bl_stuck_find(struct bl_node *n, struct bl_stuck_seen seen[BL_EPS_MAX], uint64_t limit_ns,
		   void (*say)(void *ctx, const struct bl_agent_stuck *s), void *ctx)
{
	uint64_t mono = bl_mono_ns(), bus = bl_clock_at(n->clock.shared, mono), state[BL_EPS_MAX],
		 stuck = 0, late = 0;
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep_page *p = n->ep[k].page;
		uint16_t life = n->ep[k].info.life;

		if (!n->ep[k].used || n->ep[k].dead || !p) {
			seen[k] = (struct bl_stuck_seen){ 0 };
			continue;
		}
		state[k] = __atomic_load_n(&p->line.state, __ATOMIC_ACQUIRE);
		if (bl_stuck_sample(
			    &seen[k].window, life, bl_rwin_head(state[k]), bl_rwin_used(state[k]),
			    __atomic_load_n(&p->line.turn, __ATOMIC_RELAXED), mono, limit_ns))
			stuck |= 1ULL << k;
		if (bl_stuck_lags(&seen[k].lag, life, holds_commit_at(p, state[k]), bus, mono,
				  limit_ns))
			late |= 1ULL << k;
	}
	if (late)
		bl_endpoint_put_out(n, late, BL_OUT_WINDOW);
	for (k = 0; k < BL_EPS_MAX; k++)
		if (stuck >> k & 1 && !(late >> k & 1))
			name_receivers(n, k, state[k], limit_ns, say, ctx);
}
