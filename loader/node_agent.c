// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See node_agent.h. */
#include "loader/node_agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "core/wire_core.h"
#include "loader/config_check.h"
#include "loader/node_agent_priv.h"
#include "loader/order/endpoint.h"
#include "loader/order/events.h"
#include "loader/order/fence.h"
#include "maps/pulse_abi.h"
#include "proto/forward_msg.h"

/* How long bl_node_agent_away() waits for the answer: without a session, and with one. */
#define AWAY_SAID_NS  200000000ULL
#define AWAY_SAVED_NS 1000000000ULL

static void on_changed(struct bl_node *n)
{
	if (n->agent->agent)
		bl_agent_changed(n->agent->agent);
}

static void on_endpoint_gone(struct bl_node *n, const struct bl_ep_slot *ep, uint8_t why,
			     uint64_t t)
{
	const struct bl_agent_proc p = {
		.port = ep->port, .life = ep->life, .why = why, .t = t & BL_TS_MASK
	};

	bl_agent_proc_down(n->agent->agent, &p);
}

static void on_forward_asked(struct bl_node *n, const struct bl_forward *f)
{
	struct bl_node_agent *a = n->agent;
	char text[INET6_ADDRSTRLEN] = "?";

	if (!a->agent && a->cannot_forward)
		return;
	inet_ntop(AF_INET6, f->to, text, sizeof(text));
	if (!a->agent) {
		a->cannot_forward = true;
		bl_log(BL_LOG_WARN,
		       "%s: reliable messages of endpoint %u to [%s]:%u do not seem to pass, and "
		       "hold the commit barrier; there is no controller that could forward them",
		       n->meta.name, f->sport, text, f->port);
		return;
	}
	if (!a->forwards)
		bl_log(BL_LOG_WARN,
		       "%s: reliable messages of endpoint %u to [%s]:%u do not seem to pass: the "
		       "controller is asked to forward them; is there a way between the two?",
		       n->meta.name, f->sport, text, f->port);
	a->forwards = true;
	if (bl_agent_forward(a->agent, f))
		bl_stuck_forwarded(n, a->stuck, f);
}

static const struct bl_node_events events = { .changed = on_changed,
					      .endpoint_gone = on_endpoint_gone,
					      .forward_asked = on_forward_asked };

void bl_node_agent_leave(struct bl_node *n, bool leaves)
{
	if (n->agent && n->agent->agent)
		bl_agent_leave(n->agent->agent, leaves);
}

bool bl_node_agent_left(const struct bl_node *n)
{
	return !n->agent || !n->agent->agent || n->agent->failed;
}

void bl_node_agent_away(struct bl_node *n, uint32_t ms)
{
	struct bl_agent *a = n->agent ? n->agent->agent : NULL;
	uint64_t begun = bl_mono_ns();
	struct bl_agent_total t = { 0 };

	if (!a)
		return;
	bl_agent_away(a, ms);
	/* The event loop has ended, so it is run here until the answer has come. */
	do {
		if (sd_event_run(n->srv->ev, 10000) < 0)
			break;
		bl_agent_read(a, &t);
	} while (!bl_agent_away_known(a) &&
		 bl_mono_ns() - begun < (t.welcome ? AWAY_SAVED_NS : AWAY_SAID_NS));
	if (!bl_agent_away_known(a))
		bl_log(BL_LOG_WARN,
		       "%s: no controller has saved that this daemon is away for a while (%s): if "
		       "another node fails before the next daemon runs, this node may be announced "
		       "as failed",
		       n->meta.name,
		       t.welcome    ? "it does not answer"
		       : *t.trouble ? t.trouble
				    : "none leads");
}

void bl_node_agent_pulse(const struct bl_node *n, struct bl_pulse *p)
{
	const struct bl_node_agent *a = n->agent;
	struct bl_agent_total t = { 0 };

	p->session = BL_PULSE_NO_CONTROLLERS;
	if (!a)
		return;
	p->failed = a->failed;
	p->epoch = a->epoch;
	if (!a->agent)
		return;
	bl_agent_read(a->agent, &t);
	p->session = t.welcome ? BL_PULSE_WELCOME : BL_PULSE_NO_SESSION;
	p->alone_ns = t.welcome ? 0 : a->led_ns;
	memcpy(p->controller, t.controller, sizeof(p->controller));
	memcpy(p->trouble, t.trouble, sizeof(p->trouble));
}

void bl_node_agent_close(struct bl_node *n)
{
	struct bl_node_agent *a = n->agent;

	if (!a)
		return;
	n->agent = NULL;
	n->events = NULL;
	sd_event_source_disable_unref(a->timer);
	bl_agent_free(a->agent);
	bl_session_tls_free(a->tls);
	while (a->nfailures)
		free(a->failure[--a->nfailures].failed);
	free(a);
}

static int open_tls(struct bl_node_agent *a, const struct bl_ctl_peers *c, struct bl_err *err)
{
	int rc = bl_session_tls_new(&a->tls, c->ca, c->cert, c->key, err);

	if (!rc && c->unnamed)
		bl_session_tls_allow_unnamed(a->tls);
	return rc ? rc : bl_session_tls_expect(a->tls, BL_IDENT_NODE, a->node->meta.node_id, err);
}

int bl_node_agent_open(struct bl_node *n, struct bl_err *err)
{
	const struct bl_ctl_peers *c = &n->cfg.ctl;
	struct bl_agent_cfg cfg = { .ncontrollers = c->n };
	struct bl_node_agent *a;
	unsigned int i;
	int rc = 0;

	a = calloc(1, sizeof(*a));
	if (!a)
		return bl_fail(err, ENOMEM, "out of memory");
	a->node = n;
	a->sample = c->n ? bl_node_agent_sample : bl_node_agent_sample_alone;
	a->epoch = cfg.epoch = bl_fence_epoch(&n->fence);
	for (i = 0; i < c->n; i++)
		snprintf(cfg.controllers[i], sizeof(cfg.controllers[i]), "%s", c->addr[i]);
	if (*c->ca || *c->cert || *c->key)
		rc = open_tls(a, c, err);
	else
		rc = bl_ctl_peers_check(c, err);
	cfg.tls = a->tls;
	if (!rc && c->n)
		rc = bl_agent_new(&a->agent, n->srv->ev, &cfg, &bl_node_agent_ops, a, err);
	if (rc) {
		bl_session_tls_free(a->tls);
		free(a);
		return rc;
	}
	a->led_ns = a->opened_ns = bl_mono_ns();
	n->agent = a;
	n->events = &events;
	if (n->cfg.role == BL_ROLE_HOST && c->n)
		bl_endpoints_report_dead(n);
	bl_node_agent_schedule(a, 0);
	return 0;
}

int bl_node_agent_renew(struct bl_node *n, struct bl_err *err)
{
	struct bl_node_agent *was = n->agent, *now;
	/* It replaces n->agent when nothing can fail any more. */
	int rc = bl_node_agent_open(n, err);

	if (rc || !was)
		return rc;
	now = n->agent;
	n->agent = was;
	bl_node_agent_close(n);
	n->agent = now;
	n->events = &events;
	return 0;
}
