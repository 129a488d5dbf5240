// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What has changed at the node since the last sample: its inputs, its session, its windows, and
 * whether it may join anew; see node_agent_priv.h.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/event.h"
#include "base/log.h"
#include "base/time.h"
#include "loader/node_agent_priv.h"
#include "loader/node_events.h"
#include "loader/order/endpoint.h"
#include "loader/order/ep.h"
#include "loader/order/fence.h"
#include "loader/order/stuck_core.h"

#define SAMPLE_MIN_US 500
#define SAMPLE_MAX_US 100000
/* Without controllers: how soon an input is resumed that is heard again. */
#define ALONE_US 100000
/*
 * A session that is missing for this long is logged. A leader that is replaced is missing for as
 * long as its lease.
 */
#define ALONE_NS 5000000000ULL
/*
 * How long a switch with new registers waits for a port where nothing arrives, at least; also ten
 * times dead_after.
 */
#define START_WAIT_NS 1000000000ULL
/* From one sample of windows that stand still to the next. */
#define STUCK_SAMPLE_NS 50000000ULL

/*
 * Endpoints from before the failure of their host may take as long to hear of it as they may hold
 * others up; then they are expelled. So no process that stands still, or does not use the reliable
 * stream, keeps its host out of the rack.
 */
static void put_out_old_endpoints(struct bl_node_agent *a)
{
	struct bl_node *n = a->node;
	uint64_t slots = 0;
	unsigned int k;

	if (!n->cfg.process_limit_ms ||
	    bl_mono_ns() - a->failed_ns < n->cfg.process_limit_ms * 1000000ULL)
		return;
	for (k = 0; k < BL_EPS_MAX; k++)
		if (a->old[k] && n->ep[k].used && !n->ep[k].dead &&
		    a->old[k] == 1U + n->ep[k].info.life)
			slots |= 1ULL << k;
	if (slots)
		bl_endpoint_put_out(n, slots, BL_OUT_HOST);
}

/*
 * Joins anew once all endpoints from before the failure are gone or expelled. A process that was
 * expelled and lives need not have heard of that: nothing that it sends is accepted any more, and
 * what it may still deliver is bounded by its line, not by the barriers that arrive from now on
 * (lib/stale.c).
 */
static void join_anew(struct bl_node_agent *a)
{
	struct bl_node *n = a->node;
	struct bl_agent_total t;
	int k;

	bl_agent_read(a->agent, &t);
	if (a->rejoining && !t.failed) {
		a->failed = a->rejoining = false;
		bl_event(BL_EVENT(NODE_JOINED, INFO, n->meta.name), "%s: has joined anew",
			 n->meta.name);
		return;
	}
	if (a->rejoining)
		return;
	put_out_old_endpoints(a);
	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep *ep = &n->ep[k];

		if (!a->old[k] || !ep->used || a->old[k] != 1U + ep->info.life)
			continue;
		if (!ep->dead)
			return;
		bl_endpoint_resume(n, ep->info.port);
	}
	a->rejoining = true;
	bl_agent_rejoin(a->agent);
}

/*
 * A switch whose registers are new does not know who sent what before, so its C stands still until
 * something was heard at every port. A port where nothing arrives for this long is taken for one
 * without a neighbour.
 */
static void sample_awaited(struct bl_node_agent *a, const struct bl_fence_port *in, int n)
{
	uint64_t wait = 10000ULL * a->node->cfg.dead_after_us;
	int i;

	if (bl_mono_ns() - a->opened_ns < (wait > START_WAIT_NS ? wait : START_WAIT_NS))
		return;
	for (i = 0; i < n; i++)
		if (in[i].awaited &&
		    !bl_fence_empty(&a->node->fence, bl_fence_epoch(&a->node->fence), in[i].port))
			bl_log(BL_LOG_INFO,
			       "%s: nothing arrived at port %u since the programs were started: "
			       "the commit barrier does not wait for it any more",
			       a->node->meta.name, in[i].port);
}

static void sample_ports(struct bl_node_agent *a)
{
	struct bl_fence_port in[BL_AGENT_PORTS_MAX];
	int n = bl_fence_inputs(&a->node->fence, in, BL_AGENT_PORTS_MAX), i;
	bool changed = false;

	sample_awaited(a, in, n);
	bl_node_events_inputs(a->node, in, n);
	bl_apart_sample(&a->apart, a->node, in, n, bl_mono_ns());
	for (a->awaited = 0, i = 0; i < n; i++) {
		struct bl_agent_port p = bl_node_agent_port(&in[i]);
		bool known = a->watch.port[in[i].port].neighbour == in[i].neighbour;

		a->awaited += in[i].held || p.state == BL_AGENT_BEHIND;
		switch (bl_agent_watch_sample(&a->watch, &in[i])) {
		case BL_AGENT_SEEN_NOTHING:
			break;
		case BL_AGENT_SEEN_SILENT:
			bl_event(BL_EVENT(INPUT_FROZEN, WARN, a->node->meta.name,
					  .iface = bl_node_port_name(a->node, p.port),
					  .peer = p.neighbour),
				 "%s: the input at port %u from node %08x stands still",
				 a->node->meta.name, p.port, p.neighbour);
			if (known)
				bl_agent_link_down(a->agent, &p);
			/* The controller does not know this link yet, so it needs a whole HELLO. */

			changed |= !known;
			break;
		case BL_AGENT_SEEN_LIVE:
		case BL_AGENT_SEEN_OTHER:
			changed = true;
		}
		/*
		 * A node that was announced as failed resumes its own inputs. Its C matters to no
		 * other node until it has joined anew.
		 */
		if (a->failed && in[i].held)
			bl_fence_resume(&a->node->fence, a->epoch, in[i].port, in[i].death);
	}
	if (changed)
		bl_agent_changed(a->agent);
}

/*
 * Logs whether there is a session. Without such a message, a node whose controllers are out of
 * reach, or do not accept it, looks healthy until something fails.
 */
static void sample_session(struct bl_node_agent *a)
{
	uint64_t now = bl_mono_ns();
	struct bl_agent_total t;

	bl_agent_read(a->agent, &t);
	if (t.welcome && !a->told_session)
		bl_event(BL_EVENT(SESSION_BEGUN, INFO, a->node->meta.name,
				  .controller = t.controller),
			 "%s: has a session with controller %s", a->node->meta.name, t.controller);
	if (t.welcome) {
		a->alone = false;
		a->told_session = true;
		a->led_ns = now;
	} else if (!a->alone && now - a->led_ns > ALONE_NS) {
		a->alone = true;
		a->told_session = false;
		bl_event(BL_EVENT(SESSION_LOST, WARN, a->node->meta.name,
				  .reason = *t.trouble ? t.trouble : "none answers"),
			 "%s: no session with the controller that leads, so failures are not "
			 "settled: %s",
			 a->node->meta.name, *t.trouble ? t.trouble : "none answers");
	}
}

static void report_stuck(void *ctx, const struct bl_agent_stuck *s)
{
	struct bl_node_agent *a = ctx;
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, s->addr, text, sizeof(text));
	bl_log(BL_LOG_WARN,
	       "%s: reliable messages of endpoint %u to [%s]:%u do not get through by any way, and "
	       "hold the commit barrier: the controller has to put one of the two out",
	       a->node->meta.name, s->from.port, text, s->port);
	bl_agent_stuck(a->agent, s);
}

static void sample_windows(struct bl_node_agent *a)
{
	uint64_t now = bl_mono_ns();
	struct bl_agent_total t;

	if (a->node->cfg.role != BL_ROLE_HOST || a->failed || now - a->stuck_ns < STUCK_SAMPLE_NS)
		return;
	bl_agent_read(a->agent, &t);
	a->stuck_ns = now;
	if (t.welcome && t.stuck_ms)
		bl_stuck_find(a->node, a->stuck, t.stuck_ms * 1000000ULL, report_stuck, a);
}

int bl_node_agent_sample(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node_agent *a = ctx;
	uint64_t us = a->node->cfg.dead_after_us / 2;

	(void)src, (void)usec;
	sample_ports(a);
	bl_node_agent_complete(a);
	sample_session(a);
	sample_windows(a);
	if (a->failed && !a->node->drained)
		join_anew(a);
	us = us < SAMPLE_MIN_US ? SAMPLE_MIN_US : us > SAMPLE_MAX_US ? SAMPLE_MAX_US : us;
	bl_node_agent_schedule(a, (a->awaited || a->nfailures || a->failed) && us > SAMPLE_BUSY_US
					  ? SAMPLE_BUSY_US
					  : us);
	return 0;
}

int bl_node_agent_sample_alone(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node_agent *a = ctx;
	struct bl_fence_port in[BL_AGENT_PORTS_MAX];
	int n = bl_fence_inputs(&a->node->fence, in, BL_AGENT_PORTS_MAX), i;

	(void)src, (void)usec;
	sample_awaited(a, in, n);
	bl_node_events_inputs(a->node, in, n);
	bl_apart_sample(&a->apart, a->node, in, n, bl_mono_ns());
	for (i = 0; i < n && !bl_fence_epoch(&a->node->fence); i++)
		if (in[i].held && in[i].live)
			bl_fence_resume(&a->node->fence, 0, in[i].port, in[i].death);
	bl_node_agent_schedule(a, ALONE_US);
	return 0;
}
