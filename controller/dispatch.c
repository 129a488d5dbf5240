// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See dispatch.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "controller/admit.h"
#include "controller/dispatch.h"
#include "controller/forward.h"
#include "controller/message.h"
#include "controller/nodes.h"
#include "controller/outputs.h"
#include "controller/peer.h"
#include "core/order/epoch_core.h"
#include "maps/failure_abi.h"

#define NS_PER_MS 1000000ULL

/*
 * Quotas of a session. A node that exceeds one has to wait: nothing more is read of it until it is
 * welcome again, so it can only slow itself down. All messages: 20000 a second, and as many at
 * once. Messages that can make the controller save: 200 a second and 2000 at once, since an agent
 * reports up to 1024 processes after WELCOME. Writes of a host's own record: two a second and 16
 * at once, since such a record has up to 16 KiB and nothing that happens to a correct host for long
 * changes it more often. A switch's record changes with the hosts behind its ports, and everybody
 * waits for what a switch says: its record is written as often as anything else.
 */
#define MESSAGE_COST_NS   (50000ULL)
#define MESSAGE_OWED_NS   (1000 * NS_PER_MS)
#define SAVE_COST_NS      (5 * NS_PER_MS)
#define NODE_SAVE_COST_NS (500 * NS_PER_MS)
#define SAVE_OWED_NS      (10000 * NS_PER_MS)

static void count_reason(struct bl_ctl *c, enum bl_recover_reason r)
{
	c->reasons[r]++;
}

static void pause_until(struct peer *p, uint64_t now, uint64_t until)
{
	if (until <= now)
		return;
	p->c->counts[CTL_SLOWED]++;
	bl_session_pause(p->session, until);
}

static void charge_save(struct peer *p, uint64_t cost)
{
	uint64_t now = bl_mono_ns();

	pause_until(p, now, bl_throttle_take(&p->saves, now, cost, SAVE_OWED_NS));
}

/* A node obeys a later epoch than this leader's, and says so. */
static void note_later_epoch(struct bl_ctl *c, const Bl__Hello *m)
{
	if (m->epoch <= c->elected || c->behind_said == c->elected)
		return;
	/* Logged once: a node that reports rising epochs must not fill the log. */
	c->behind_said = c->elected;
	bl_log(BL_LOG_ERR,
	       "controller: node %08x obeys epoch %" PRIu64 " already, and refuses commands of "
	       "epoch %" PRIu64 ": the store is new, or an old copy",
	       m->node, m->epoch, c->elected);
}

/* The session is that of node @m->node from now on. */
static bool accept_hello(struct peer *p, const Bl__Hello *m)
{
	struct bl_ctl *c = p->c;
	struct ctl_node *n = ctl_nodes_find(c, m->node);
	const struct bl_recover_node *known;
	struct bl_recover_port *port = NULL;
	uint8_t(*addr)[16] = NULL;
	uint16_t *endpoint = NULL;
	struct bl_recover_hello h;
	struct peer *old;
	enum bl_recover_reason r = BL_RECOVER_BAD_HELLO;
	bool saving;

	if (ctl_hello(m, &h, &port, &endpoint, &addr)) {
		old = ctl_peer_find(c, m->node);
		if (old && old != p)
			ctl_peer_hang_up(old);
		if (!p->node)
			c->strangers--;
		p->node = m->node;
		p->epoch = m->epoch;
		n->seen = true;
		memcpy(n->from, p->from, sizeof(n->from));
		note_later_epoch(c, m);
		known = bl_recover_node(c->rec, m->node);
		saving = known && known->saving;
		r = bl_recover_hello(c->rec, bl_mono_ns(), &h);
		known = bl_recover_node(c->rec, m->node);
		if (known && known->saving && !saving)
			charge_save(p, known->kind == BL_DET_SWITCH ? SAVE_COST_NS
								    : NODE_SAVE_COST_NS);
	}
	free(port);
	free(addr);
	free(endpoint);
	count_reason(c, r);
	return r == BL_RECOVER_OK || r == BL_RECOVER_ADDRESS_TAKEN;
}

static void drop_waiting_hello(struct peer *p)
{
	free(p->hello.data);
	p->hello = (struct ctl_bytes){ 0 };
	p->hello_node = 0;
}

/*
 * Without an identity in a certificate, anybody who reaches the port can say that he is this node,
 * which has a session. The HELLO waits: the session that there is has CTL_CHALLENGE_NS to answer a
 * ping. If it does, it stays, and the newcomer is sent away. If it does not, it has ended without a
 * notice (its machine was switched off), and the newcomer takes its place.
 */
static bool challenge_session(struct peer *p, struct peer *old, const Bl__Hello *m)
{
	struct bl_ctl *c = p->c;
	size_t len = bl__hello__get_packed_size(m);
	uint8_t *data = malloc(len + 1);

	if (!data)
		return false;
	bl__hello__pack(m, data);
	free(p->hello.data);
	p->hello = (struct ctl_bytes){ data, len };
	if (p->hello_node)
		return true;
	p->hello_node = m->node;
	p->hello_due_ns = bl_mono_ns() + CTL_CHALLENGE_NS;
	if (!old->challenge) {
		old->challenge = ++c->challenges;
		ctl_send(old, ctl_ping(old->challenge));
	}
	sd_event_source_set_time_relative(c->asks, CTL_CHALLENGE_NS / 1000 + 1);
	sd_event_source_set_enabled(c->asks, SD_EVENT_ONESHOT);
	return true;
}

void ctl_session_answers(struct peer *old)
{
	struct bl_ctl *c = old->c;
	char why[200];
	struct peer *p;

	old->challenge = 0;
	for (p = c->peers; p; p = p->next) {
		if (!p->hello_node || p->hello_node != old->node)
			continue;
		c->counts[CTL_TAKEN]++;
		snprintf(why, sizeof(why),
			 "node %" PRIu32 " has a session from %s, which answers; do two nodes have "
			 "one node_id?",
			 old->node, old->addr);
		drop_waiting_hello(p);
		ctl_peer_refuse(p, why);
	}
}

void ctl_session_gone(struct bl_ctl *c, uint32_t node)
{
	struct peer *p;

	for (p = c->peers; p; p = p->next)
		if (p->hello_node == node) {
			p->hello_due_ns = 0;
			sd_event_source_set_time_relative(c->asks, 0);
			sd_event_source_set_enabled(c->asks, SD_EVENT_ONESHOT);
		}
}

/* Takes up the HELLOs whose node's earlier session has not answered. */
static int on_no_answer(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_ctl *c = ctx;
	uint64_t now = bl_mono_ns(), next = UINT64_MAX;
	struct peer *p;

	(void)usec;
again:
	for (p = c->peers; p; p = p->next) {
		struct peer *old;
		Bl__Hello *m;
		bool ok;

		if (!p->hello_node)
			continue;
		if (now < p->hello_due_ns) {
			next = p->hello_due_ns < next ? p->hello_due_ns : next;
			continue;
		}
		m = bl__hello__unpack(NULL, p->hello.len, p->hello.data);
		drop_waiting_hello(p);
		old = m ? ctl_peer_find(c, m->node) : NULL;
		ok = m && ctl_leading(c) && ctl_nodes_find(c, m->node);
		/* One of two newcomers has taken the place meanwhile: it is asked in its turn. */
		if (ok && old && !old->challenge)
			ok = challenge_session(p, old, m);
		else if (ok)
			ok = accept_hello(p, m);
		if (m)
			bl__hello__free_unpacked(m, NULL);
		if (!ok)
			ctl_peer_hang_up(p);
		goto again; /* The list has changed. */
	}
	if (next != UINT64_MAX) {
		sd_event_source_set_time_relative(src, (next - now) / 1000 + 1);
		sd_event_source_set_enabled(src, SD_EVENT_ONESHOT);
	}
	ctl_outputs_run(c);
	return 0;
}

static bool dispatch_hello(struct peer *p, const Bl__Hello *m)
{
	const struct bl_ident *who = bl_session_who(p->session);
	struct bl_ctl *c = p->c;
	struct ctl_node *n;
	struct peer *old;
	char why[200];

	if (who && who->node != m->node) {
		c->counts[CTL_FORGED]++;
		return false;
	}
	if (!ctl_leading(c)) {
		ctl_peer_refer(p);
		return true;
	}
	if (p->node && p->node != m->node) {
		c->counts[CTL_STRANGER]++;
		return false;
	}
	n = m->node ? ctl_nodes_find(c, m->node) : NULL;
	if (!n || n->leaves) {
		snprintf(why, sizeof(why),
			 n ? "node %" PRIu32 " is being removed"
			   : "node %" PRIu32 " is not admitted; `barline controller admit NAME "
			     "--id "
			     "%" PRIu32 "` on the controller's machine admits it",
			 m->node, m->node);
		ctl_stranger(p, m->node, m->name);
		ctl_peer_refuse(p, why);
		return true;
	}
	if (bl_epoch_judge(c->elected, m->epoch) == BL_EPOCH_FAR) {
		c->counts[CTL_EPOCH_FAR]++;
		return false;
	}
	old = ctl_peer_find(c, m->node);
	if (old && old != p && !who)
		return challenge_session(p, old, m);
	return accept_hello(p, m);
}

int ctl_dispatch_open(struct bl_ctl *c, struct bl_err *err)
{
	if (sd_event_add_time_relative(c->ev, &c->asks, CLOCK_MONOTONIC, UINT64_MAX / 4, 1000,
				       on_no_answer, c) < 0)
		return bl_fail(err, ENOMEM, "cannot make an event loop");
	sd_event_source_set_enabled(c->asks, SD_EVENT_OFF);
	return 0;
}

void ctl_dispatch_close(struct bl_ctl *c)
{
	sd_event_source_disable_unref(c->asks);
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

	pause_until(p, now, bl_throttle_take(&p->messages, now, MESSAGE_COST_NS, MESSAGE_OWED_NS));
	if (m->what_case == BL__TO_CONTROLLER__WHAT_PING) {
		if (!m->ping->number)
			ctl_send(p, ctl_ping(0));
		else if (p->challenge && m->ping->number == p->challenge)
			ctl_session_answers(p);
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
		charge_save(p, SAVE_COST_NS);
		r = bl_recover_link_down(c->rec, now, p->node, m->link_down->port,
					 m->link_down->neighbour, m->link_down->c,
					 m->link_down->death);
		break;
	case BL__TO_CONTROLLER__WHAT_PROC_DOWN:
		charge_save(p, SAVE_COST_NS);
		r = dispatch_proc_down(c, p->node, now, m->proc_down);
		break;
	case BL__TO_CONTROLLER__WHAT_AWAY:
		charge_save(p, NODE_SAVE_COST_NS);
		r = bl_recover_away(c->rec, now, p->node, m->away->ms * NS_PER_MS);
		break;
	case BL__TO_CONTROLLER__WHAT_LEAVE:
		charge_save(p, SAVE_COST_NS);
		r = bl_recover_leave(c->rec, now, p->node);
		break;
	case BL__TO_CONTROLLER__WHAT_PROC_STUCK:
		charge_save(p, SAVE_COST_NS);
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
