// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See dispatch.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "controller/admit.h"
#include "controller/dispatch.h"
#include "controller/forward.h"
#include "controller/message.h"
#include "controller/peer.h"
#include "maps/failure_abi.h"

#define NS_PER_MS 1000000ULL

static void count_reason(struct bl_ctl *c, enum bl_recover_reason r)
{
	c->reasons[r]++;
}

static bool dispatch_hello(struct peer *p, const Bl__Hello *m)
{
	struct bl_recover_port *port = NULL;
	uint8_t(*addr)[16] = NULL;
	struct bl_ctl *c = p->c;
	uint16_t *endpoint = NULL;
	struct bl_recover_hello h;
	struct peer *old;
	enum bl_recover_reason r = BL_RECOVER_BAD_HELLO;

	if (!ctl_leading(c)) {
		ctl_peer_refer(p);
		return true;
	}
	if (p->node && p->node != m->node) {
		c->counts[CTL_STRANGER]++;
		return false;
	}
	if (ctl_hello(m, &h, &port, &endpoint, &addr)) {
		/*
		 * The node may have an earlier session whose end was not noticed here yet. A node
		 * is identified by its number alone.
		 */
		old = m->node ? ctl_peer_find(c, m->node) : NULL;
		if (old && old != p)
			ctl_peer_hang_up(old);
		if (!p->node)
			c->strangers--;
		p->node = m->node;
		p->epoch = m->epoch;
		if (m->epoch > c->elected && m->epoch > c->behind) {
			/* Logged once: a node that reports rising epochs must not fill the log. */
			if (!c->behind)
				bl_log(BL_LOG_ERR,
				       "controller: node %08x obeys epoch %" PRIu64 " already, and "
				       "refuses "
				       "commands of "
				       "epoch %" PRIu64 ": the store is new, or an old copy",
				       m->node, m->epoch, c->elected);
			c->behind = m->epoch;
		}
		r = bl_recover_hello(c->rec, bl_mono_ns(), &h);
		if (!p->node)
			c->strangers++;
	}
	free(port);
	free(addr);
	free(endpoint);
	count_reason(c, r);
	return r == BL_RECOVER_OK;
}

static enum bl_recover_reason dispatch_proc_down(struct bl_ctl *c, uint32_t node, uint64_t now,
						 const Bl__ProcDown *m)
{
	const struct bl_recover_proc p = { .port = (uint16_t)m->endpoint,
					   .life = (uint16_t)m->life,
					   .why = m->why < BL_WHY_COUNT ? (uint8_t)m->why
									: BL_WHY_UNKNOWN,
					   .t = m->t };

	return m->endpoint > UINT16_MAX || m->life > UINT16_MAX
		       ? BL_RECOVER_UNKNOWN_PORT
		       : bl_recover_proc_down(c->rec, now, node, &p);
}

static enum bl_recover_reason dispatch_proc_stuck(struct bl_ctl *c, uint32_t node, uint64_t now,
						  const Bl__ProcStuck *m)
{
	struct bl_recover_stuck s = {
		.from = { .port = (uint16_t)m->endpoint, .life = (uint16_t)m->from_life },
		.to = { .port = (uint16_t)m->port, .life = (uint16_t)m->life }
	};

	if (m->addr.len != sizeof(s.addr) || m->endpoint > UINT16_MAX ||
	    m->from_life > UINT16_MAX || m->port > UINT16_MAX || m->life > UINT16_MAX)
		return BL_RECOVER_UNKNOWN_PORT;
	memcpy(s.addr, m->addr.data, sizeof(s.addr));
	return bl_recover_proc_stuck(c->rec, now, node, &s);
}

bool ctl_dispatch(struct peer *p, const Bl__ToController *m)
{
	struct bl_ctl *c = p->c;
	uint64_t now = bl_mono_ns();
	enum bl_recover_reason r = BL_RECOVER_OK;

	if (m->what_case == BL__TO_CONTROLLER__WHAT_PING) {
		ctl_send(p, ctl_ping(m->ping->number));
		return true;
	}
	if (m->what_case == BL__TO_CONTROLLER__WHAT_HELLO)
		return dispatch_hello(p, m->hello);
	if (m->what_case == BL__TO_CONTROLLER__WHAT__NOT_SET) {
		c->counts[CTL_BAD_MESSAGE]++;
		return false;
	}
	if (!ctl_leading(c)) {
		ctl_peer_refer(p);
		return true;
	}
	if (!p->node) {
		c->counts[CTL_STRANGER]++;
		return false;
	}
	if (m->what_case == BL__TO_CONTROLLER__WHAT_FORWARD)
		return ctl_forward(p, m->forward);
	if (m->what_case == BL__TO_CONTROLLER__WHAT_ADMITTED) {
		ctl_admit_heard(c, p->node, m->admitted);
		return true;
	}
	switch (m->what_case) {
	case BL__TO_CONTROLLER__WHAT_LINK_DOWN:
		r = bl_recover_link_down(c->rec, now, p->node, m->link_down->port,
					 m->link_down->neighbour, m->link_down->c,
					 m->link_down->death);
		break;
	case BL__TO_CONTROLLER__WHAT_PROC_DOWN:
		r = dispatch_proc_down(c, p->node, now, m->proc_down);
		break;
	case BL__TO_CONTROLLER__WHAT_AWAY:
		r = bl_recover_away(c->rec, now, p->node, m->away->ms * NS_PER_MS);
		break;
	case BL__TO_CONTROLLER__WHAT_PROC_STUCK:
		r = dispatch_proc_stuck(c, p->node, now, m->proc_stuck);
		break;
	case BL__TO_CONTROLLER__WHAT_BARRED:
		r = bl_recover_barred(c->rec, now, p->node, m->barred->number);
		break;
	case BL__TO_CONTROLLER__WHAT_DONE:
		r = bl_recover_done(c->rec, now, p->node, m->done->number);
		break;
	case BL__TO_CONTROLLER__WHAT_RESUMED:
		r = bl_recover_resumed(c->rec, now, p->node, m->resumed->number);
		break;
	default:
		break;
	}
	count_reason(c, r);
	return true;
}
