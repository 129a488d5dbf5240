// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See admit.h. A change has three steps. Each of them ends when all nodes concerned have answered,
 * or after answer_ms:
 *
 *   check      every node is asked whether it can change; if one cannot, no node is changed
 *   switches   the switches change
 *   hosts      the hosts change
 *
 * Switches change before hosts. In either order, hosts and switches that disagree behave as under
 * policy none, but the other order is slower: a switch that makes no reservations says so in its
 * next answer, while a switch that makes them waits 20 ms without an RSV before it treats a host as
 * one that asks for none (core/pl2/pl2_switch_core.h). With switches first, no data is sent without
 * a promise where a promise is required: under a switch that has just enabled pl2, a host with the
 * old policy has not sent an RSV for those 20 ms; a switch that has just disabled pl2 answers the
 * hosts that still ask.
 *
 * Example, pl2 to none with 8 hosts: 9 times check, 1 ms; the switch changes, 0.3 ms, and answers
 * OFF from then on; the hosts change, 1 ms. A host whose daemon is stopped is reported with "no
 * answer within 1000 ms", keeps the old policy, and is named by `barline doctor`.
 *
 * Nothing is saved. If the leader is replaced during a change, the remaining nodes keep what they
 * had, and the user is told so. A daemon's next start applies the policy of its own file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/event.h"
#include "base/time.h"
#include "controller/admit.h"
#include "controller/message.h"
#include "controller/peer.h"

static const char *const step_names[CTL_ADMIT_STEP_COUNT] = {
#define NAME(sym, name) [CTL_ADMIT_##sym] = name,
	CTL_ADMIT_STEPS(NAME)
#undef NAME
};

static bool is_under_way(const struct ctl_admit *a)
{
	return a->step != CTL_ADMIT_NEVER && a->step != CTL_ADMIT_DONE;
}

static void end_change(struct bl_ctl *c)
{
	struct ctl_admit *a = &c->admit;

	a->step = CTL_ADMIT_DONE;
	a->ended_ns = bl_mono_ns();
	sd_event_source_set_enabled(a->timer, SD_EVENT_OFF);
	bl_event(BL_EVENT(RACK_ADMISSION, INFO, NULL, .reason = a->refused ? "refused" : "over"),
		 "controller: change %" PRIu64 " of the rack's admission, to %s, is %s", a->number,
		 a->policy, a->refused ? "refused" : "over");
}

static bool is_nodes_turn(const struct ctl_admit *a, const struct ctl_admit_node *n)
{
	return !*n->trouble &&
	       (a->step == CTL_ADMIT_CHECK || n->host == (a->step == CTL_ADMIT_HOSTS));
}

/* Sends the command of this step to the nodes concerned. Returns how many have to answer. */
static uint32_t send_step(struct bl_ctl *c)
{
	struct ctl_admit *a = &c->admit;
	bool check = a->step == CTL_ADMIT_CHECK;
	uint32_t i, waits = 0;

	for (i = 0; i < a->n; i++) {
		struct ctl_admit_node *n = &a->nodes[i];
		struct peer *p = ctl_peer_ready(c, n->id);

		if (!is_nodes_turn(a, n))
			continue;
		if (!p) {
			snprintf(n->trouble, sizeof(n->trouble),
				 "it has no session with the controller");
			continue;
		}
		n->told = true;
		waits++;
		ctl_send(p, ctl_admission(c->elected, a->number, check, a->policy, a->rate_bps));
	}
	return waits;
}

/* Goes on to the next step in which a node has to answer, or ends the change. */
static void begin_next_step(struct bl_ctl *c)
{
	struct ctl_admit *a = &c->admit;

	do {
		if (a->step == CTL_ADMIT_HOSTS || a->refused) {
			end_change(c);
			return;
		}
		a->step++;
		if (a->step == CTL_ADMIT_SWITCHES)
			a->begun_ns = bl_mono_ns();
	} while (!send_step(c));
	sd_event_source_set_time_relative(a->timer, c->cfg.answer_ms * 1000ULL);
	sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT);
}

static int on_late(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_ctl *c = ctx;
	uint32_t i;

	(void)src, (void)usec;
	for (i = 0; i < c->admit.n; i++) {
		struct ctl_admit_node *n = &c->admit.nodes[i];

		if (n->told)
			snprintf(n->trouble, sizeof(n->trouble), "no answer within %u ms",
				 c->cfg.answer_ms);
		n->told = false;
	}
	begin_next_step(c);
	return 0;
}

void ctl_admit_heard(struct bl_ctl *c, uint32_t node, const Bl__Admitted *m)
{
	struct ctl_admit *a = &c->admit;
	struct ctl_admit_node *n = NULL;
	uint32_t i, waits = 0;

	for (i = 0; i < a->n; i++) {
		if (a->nodes[i].id == node)
			n = &a->nodes[i];
		waits += a->nodes[i].told;
	}
	/* an answer to an earlier command, or of a node that is not asked */
	if (!is_under_way(a) || !n || !n->told || m->number != a->number ||
	    m->check != (a->step == CTL_ADMIT_CHECK))
		return;
	n->told = false;
	snprintf(n->said, sizeof(n->said), "%s", m->said);
	snprintf(n->trouble, sizeof(n->trouble), "%s", m->trouble);
	a->refused |= m->check && *n->trouble;
	if (waits == 1)
		begin_next_step(c);
}

void ctl_admit_lost(struct bl_ctl *c)
{
	struct ctl_admit *a = &c->admit;
	uint32_t i;

	if (!is_under_way(a))
		return;
	for (i = 0; i < a->n; i++)
		if (a->nodes[i].told || is_nodes_turn(a, &a->nodes[i]))
			snprintf(a->nodes[i].trouble, sizeof(a->nodes[i].trouble),
				 "the controller leads no more");
	end_change(c);
}

/* Begins the change that ctl_admit_ask() has put into @c->admit. */
static int on_kick(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_ctl *c = ctx;
	struct ctl_admit *a = &c->admit;
	uint64_t v;
	uint32_t i;

	(void)src, (void)events;
	if (read(fd, &v, sizeof(v)) != sizeof(v) || a->step != CTL_ADMIT_ASKED)
		return 0;
	free(a->nodes);
	a->n = bl_recover_nodes(c->rec);
	a->nodes = calloc(a->n + 1, sizeof(*a->nodes));
	if (!a->nodes)
		a->n = 0;
	for (i = 0; i < a->n; i++) {
		const struct bl_recover_node *n = bl_recover_node_at(c->rec, i);

		a->nodes[i].id = n->id;
		a->nodes[i].host = n->kind == BL_DET_HOST;
	}
	begin_next_step(c);
	return 0;
}

char *ctl_admit_ask(struct bl_ctl *c, const char *said)
{
	const uint64_t one = 1;
	struct ctl_admit *a = &c->admit;
	const char *state = "standby", *trouble = "";
	uint64_t number = 0, rate = 0;
	char policy[16];
	json_t *o;
	char *text;

	pthread_mutex_lock(&c->lock);
	if (sscanf(said, "admission %15s %" SCNu64, policy, &rate) != 2) {
		trouble = "unknown command; expected: admission POLICY BITS_PER_S";
	} else if (!ctl_leading(c)) {
		trouble = "it does not lead";
	} else if (is_under_way(a)) {
		state = "leader";
		trouble = "another change of the rack's admission is under way; try again";
	} else {
		state = "leader";
		a->step = CTL_ADMIT_ASKED;
		number = ++a->number;
		snprintf(a->policy, sizeof(a->policy), "%s", policy);
		a->rate_bps = rate;
		a->begun_ns = a->ended_ns = 0;
		a->refused = false;
		a->n = 0;
		/* An eventfd accepts 2^64 - 2; each change adds 1. */
		if (write(a->kick_fd, &one, sizeof(one)) != sizeof(one))
			trouble = "the event loop cannot be woken";
	}
	pthread_mutex_unlock(&c->lock);
	o = json_pack("{s:s, s:I, s:s}", "state", state, "number", (json_int_t)number, "trouble",
		      trouble);
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

json_t *ctl_admit_row(const struct bl_ctl *c)
{
	const struct ctl_admit *a = &c->admit;
	json_t *nodes = json_array();
	uint32_t i;

	for (i = 0; i < a->n; i++) {
		const struct ctl_admit_node *n = &a->nodes[i];
		const struct bl_recover_node *who = bl_recover_node(c->rec, n->id);

		json_array_append_new(nodes,
				      json_pack("{s:s, s:I, s:s, s:s, s:s}", "node",
						who ? who->name : "?", "id", (json_int_t)n->id,
						"role", n->host ? "host" : "switch", "changed",
						a->refused ? "" : n->said, "trouble", n->trouble));
	}
	return json_pack("{s:I, s:s, s:s, s:b, s:I, s:o}", "change", (json_int_t)a->number, "step",
			 step_names[a->step], "policy", a->policy, "refused", a->refused, "took_ns",
			 (json_int_t)(a->begun_ns && a->ended_ns ? a->ended_ns - a->begun_ns : 0),
			 "nodes", nodes);
}

int ctl_admit_open(struct bl_ctl *c, struct bl_err *err)
{
	struct ctl_admit *a = &c->admit;

	a->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->kick_fd < 0 ||
	    sd_event_add_io(c->ev, &a->kick, a->kick_fd, EPOLLIN, on_kick, c) < 0 ||
	    sd_event_add_time_relative(c->ev, &a->timer, CLOCK_MONOTONIC, UINT64_MAX / 4, 1000,
				       on_late, c) < 0)
		return bl_fail(err, ENOMEM, "cannot make an event loop");
	sd_event_source_set_enabled(a->timer, SD_EVENT_OFF);
	return 0;
}

void ctl_admit_close(struct bl_ctl *c)
{
	struct ctl_admit *a = &c->admit;

	sd_event_source_disable_unref(a->kick);
	sd_event_source_disable_unref(a->timer);
	if (a->kick_fd >= 0)
		close(a->kick_fd);
	free(a->nodes);
}
