// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See stuck.h. */
#include "loader/order/stuck.h"

#include <string.h>

#include "base/ip.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/wire_core.h"
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
	uint32_t n, head = bl_rwin_head(state), end = bl_stuck_end(state);
	int found = 0;

	for (n = head; n != end && found < BL_STUCK_NAMES; n++) {
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

/* Returns what the endpoint at @port has tried, or NULL if it is no member. */
static struct bl_stuck_try *tried_by(struct bl_node *n, struct bl_stuck_seen seen[BL_EPS_MAX],
				     uint16_t port)
{
	const struct bl_ep *ep = bl_endpoint_at(n, port);
	struct bl_stuck_seen *s;

	if (!ep || ep->dead)
		return NULL;
	s = &seen[ep->slot];
	if (s->life != ep->info.life)
		memset(s->tried, 0, sizeof(s->tried));
	s->life = ep->info.life;
	return s->tried;
}

/* Returns the life that a PREP or its ACK names; 0: it is none. */
static uint16_t named_life(const struct bl_forward *f, enum bl_opcode op)
{
	struct bl_prep prep;

	if (bl_forward_op(f) != op || f->len < sizeof(struct bl_hdr) + BL_ACK_BODY)
		return 0;
	memcpy(&prep, f->frame + sizeof(struct bl_hdr) + sizeof(struct bl_data), sizeof(prep));
	return BL_BE16(prep.life);
}

void bl_stuck_forwarded(struct bl_node *n, struct bl_stuck_seen seen[BL_EPS_MAX],
			const struct bl_forward *f)
{
	struct bl_stuck_try *v = tried_by(n, seen, f->sport);
	uint64_t mono = bl_mono_ns(), bus = bl_clock_at(n->clock.shared, mono), ts;
	uint16_t life = named_life(f, BL_OP_PREP);
	struct bl_hdr h;

	if (!v || !life)
		return;
	memcpy(&h, f->frame, sizeof(h));
	ts = bl_ext48(bl_get48(h.ts), bus);
	/* The receiver's program refuses wrong flags, a time ahead, and the other family. */
	if (!h.flags && ts <= bus && bl_ip_is_v4(f->to) == bl_ip_is_v4(f->from))
		bl_stuck_try_note(v, f->to, f->port, life, ts, bl_ep_sent_commit(n), mono);
}

void bl_stuck_answered(struct bl_node *n, struct bl_stuck_seen seen[BL_EPS_MAX],
		       const struct bl_forward *f)
{
	struct bl_stuck_try *v = tried_by(n, seen, f->port);
	uint16_t life = named_life(f, BL_OP_ACK);

	if (v && life)
		bl_stuck_try_answered(v, f->from, f->sport, life);
}

static void name_receivers(struct bl_node *n, struct bl_stuck_seen seen[BL_EPS_MAX],
			   unsigned int slot, uint64_t state, uint64_t limit_ns,
			   void (*say)(void *ctx, const struct bl_agent_stuck *s), void *ctx)
{
	static struct bl_agent_stuck v[BL_STUCK_NAMES];
	struct bl_stuck_try *tried = tried_by(n, seen, n->ep[slot].info.port);
	uint64_t sent = bl_ep_sent_commit(n), mono = bl_mono_ns();
	int found, i;

	found = find_receivers(&n->ep[slot], &n->ep[slot].page->win, state,
			       bl_clock_at(n->clock.shared, mono) - limit_ns, v);
	if (found < 0)
		bl_endpoint_put_out(n, 1ULL << slot, BL_OUT_UNREACHABLE);
	for (i = 0; i < found && tried; i++)
		if (bl_stuck_tried(tried, v[i].addr, v[i].port, v[i].life, sent, mono))
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
			/* @tried is emptied for the next incarnation: tried_by() */
			seen[k].window = (struct bl_stuck){ 0 };
			seen[k].lag = (struct bl_stuck_lag){ 0 };
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
			name_receivers(n, seen, k, state[k], limit_ns, say, ctx);
}
