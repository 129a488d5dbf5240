/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A world for tests of the conversation between controllers and agents. It has real controllers,
 * each in a process of its own, on SQLite or on three real members of etcd; and real agents
 * (loader/order/agent.h) of a switch with four hosts, whose datapath is simulated by a few
 * variables.
 *
 * Three things must hold at any time: no agent obeys a command of an epoch below one that it has
 * heard; inputs are resumed only after all correct hosts have completed; a failure has one T. They
 * are asserted at every command.
 *
 * 	configure(1, BL_RUN_DIR "/ctl.db");	one controller on SQLite
 * 	configure(CTLS, NULL);			three controllers on etcd
 * 	ctl_start(0);
 * 	rack_up();
 * 	w.n[4].hold = true;			host 4 does not complete commands
 * 	host_dies(2);				port 2 of the switch goes silent with C = 902
 * 	UNTIL(w.n[4].told[1]);			host 4 has been told of failure 1
 * 	completes(4, 1);
 * 	UNTIL(w.n[SWITCH].port[1].state == BL_AGENT_REMOVED);
 */
#ifndef BARLINE_TESTS_CONTROLLER_WORLD_H
#define BARLINE_TESTS_CONTROLLER_WORLD_H

#include "tests/net/controller/etcd.h"

#include <arpa/inet.h>

#include "tests/net/controller/ctl_child.h"
#include "loader/order/agent.h"

#define WAIT_S 80
#include "tests/net/event_loop.h"

#define HOSTS   4
#define SWITCH  9
#define CTLS    3
#define NUMBERS 64

/** struct node - an agent and its datapath. */
struct node {
	struct bl_agent *a;
	uint32_t id;
	bool alive, hold, failed; /* @hold: does not complete what it is told */
	struct bl_agent_port port[HOSTS];
	unsigned int nports;
	bool barred[HOSTS];
	uint64_t epoch, resumes, freezes;  /* @epoch: highest that it has heard of */
	bool told[NUMBERS], done[NUMBERS]; /* by number of the failure */
	uint64_t t[NUMBERS];               /* T, by number of the failure */
};

static struct world {
	struct node n[SWITCH + 1];
	pid_t ctl[CTLS];
	struct bl_ctl_cfg cfg[CTLS];
	unsigned int nctl;
	/* A failure that does not concern this host, because it had failed itself. */
	bool exempt[SWITCH + 1][NUMBERS];
	struct bl_session_tls *tls;
} w;

T_FN struct node *node_at(void *ctx)
{
	return ctx;
}

T_FN void on_tell(void *ctx, struct bl_agent_node *v)
{
	struct node *n = node_at(ctx);

	v->node_id = n->id;
	v->host = n->id != SWITCH;
	snprintf(v->name, sizeof(v->name), n->id == SWITCH ? "tor" : "h%u", n->id);
	v->naddrs = v->host;
	v->addr[0][15] = (uint8_t)n->id;
	v->nports = n->nports;
	memcpy(v->port, n->port, n->nports * sizeof(*n->port));
	v->nendpoints = v->host;
	v->endpoint[0] = 61696;
}

T_FN void on_epoch(void *ctx, uint64_t epoch)
{
	struct node *n = node_at(ctx);

	CHECK(epoch > n->epoch, "epoch %" PRIu64 " after %" PRIu64, epoch, n->epoch);
	n->epoch = epoch;
}

/* Lets the ports join again that are heard and not barred. */
T_FN void join(struct node *n)
{
	unsigned int i;
	bool joined = false;

	for (i = 0; i < n->nports; i++) {
		const struct node *to = &w.n[n->port[i].neighbour];

		if (n->port[i].state != BL_AGENT_REMOVED || n->barred[i] || !to->alive ||
		    to->failed || n->failed)
			continue;
		n->port[i].state = BL_AGENT_LIVE;
		joined = true;
	}
	if (joined)
		bl_agent_changed(n->a);
}

T_FN int on_bar(void *ctx, const uint32_t *port, unsigned int n)
{
	struct node *v = node_at(ctx);
	unsigned int i;

	memset(v->barred, 0, sizeof(v->barred));
	for (i = 0; i < n; i++) {
		CHECK(port[i] < v->nports, "port %u", port[i]);
		v->barred[port[i]] = true;
	}
	return 0;
}

T_FN int on_freeze(void *ctx, uint32_t port, struct bl_agent_port *p)
{
	struct node *n = node_at(ctx);

	n->freezes++;
	if (n->port[port].state == BL_AGENT_LIVE) {
		n->port[port].state = BL_AGENT_SILENT;
		n->port[port].c = 5000 + port;
		n->port[port].death++;
	}
	*p = n->port[port];
	return 0;
}

T_FN void on_fail(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n)
{
	struct node *me = node_at(ctx);
	unsigned int i, k;

	CHECK(number < NUMBERS && n, "failure %" PRIu64, number);
	me->told[number] = true;
	me->t[number] = v[0].t;
	for (i = 1; i <= SWITCH; i++)
		CHECK(!w.n[i].told[number] || w.n[i].t[number] == v[0].t,
		      "node %u was told T %" PRIu64 ", node %u %" PRIu64, i, w.n[i].t[number],
		      me->id, v[0].t);
	for (i = 0; i < n; i++)
		if (!v[i].port)
			for (k = number; k < NUMBERS; k++)
				w.exempt[v[i].node][k] = true;
	if (me->hold || me->failed)
		return;
	me->done[number] = true;
	bl_agent_done(me->a, number);
}

T_FN int on_resume(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n,
		   const struct bl_agent_input *in, unsigned int nin)
{
	struct node *me = node_at(ctx);
	unsigned int i;

	CHECK(number < NUMBERS, "failure %" PRIu64, number);
	for (i = 1; i <= HOSTS && n; i++)
		CHECK(w.n[i].done[number] || w.exempt[i][number],
		      "failure %" PRIu64 " is resumed, and host %u has not completed it", number,
		      i);
	for (i = 0; i < nin; i++)
		if (me->port[in[i].port].state == BL_AGENT_SILENT &&
		    me->port[in[i].port].death == in[i].death)
			me->port[in[i].port].state = BL_AGENT_REMOVED;
	me->resumes++;
	(void)v;
	return 0;
}

T_FN void on_failed(void *ctx, uint64_t number)
{
	struct node *n = node_at(ctx);

	(void)number;
	n->failed = true;
}

static const struct bl_agent_ops ops = { on_tell, on_epoch,  on_bar,   on_freeze,
					 on_fail, on_resume, on_failed };

T_FN void node_up(uint32_t id)
{
	struct node *n = &w.n[id];
	struct bl_agent_cfg cfg = {
		.ncontrollers = w.nctl, .epoch = n->epoch, .silence_ms = 2000, .tls = w.tls
	};
	struct bl_err err;
	unsigned int i;

	n->id = id;
	n->alive = true;
	if (!n->nports) {
		n->nports = id == SWITCH ? HOSTS : 1;
		for (i = 0; i < n->nports; i++)
			n->port[i] =
				(struct bl_agent_port){ .port = i,
							.neighbour = id == SWITCH ? i + 1 : SWITCH,
							.role = id == SWITCH ? 0 : 1,
							.state = BL_AGENT_LIVE };
	}
	for (i = 0; i < w.nctl; i++)
		snprintf(cfg.controllers[i], sizeof(cfg.controllers[i]), "%s", w.cfg[i].listen);
	CHECK(!bl_agent_new(&n->a, ev, &cfg, &ops, n, &err), "%s", err.text);
}

T_FN void node_down(uint32_t id)
{
	bl_agent_free(w.n[id].a);
	w.n[id].a = NULL;
	w.n[id].alive = false;
}

/* Node @id completes what it was told of failure @number. */
T_FN void completes(uint32_t id, uint64_t number)
{
	w.n[id].hold = false;
	w.n[id].done[number] = true;
	bl_agent_done(w.n[id].a, number);
}

/* ---- controllers ---- */

T_FN void ctl_start(unsigned int k)
{
	w.ctl[k] = ctl_child(&w.cfg[k]);
}

T_FN void ctl_kill(unsigned int k)
{
	int st;

	kill(w.ctl[k], SIGKILL);
	CHECK(waitpid(w.ctl[k], &st, 0) == w.ctl[k], "%s", strerror(errno));
	w.ctl[k] = 0;
}

/* What a case that fails prints: each controller, each node, and how long etcd takes to answer. */
T_FN void world_last_words(void)
{
	char answer[LAB_ETCD_ANSWER];
	struct bl_agent_total t;
	unsigned int i;
	uint64_t at;
	long http;

	for (i = 0; i < w.nctl; i++)
		if (w.ctl[i])
			fprintf(stderr, "controller %u: %.600s\n", i, ctl_ask(w.ctl[i]));
	for (i = 1; i <= SWITCH; i++) {
		if (!w.n[i].a)
			continue;
		bl_agent_read(w.n[i].a, &t);
		fprintf(stderr, "node %u: welcome %d at \"%s\", epoch %" PRIu64 ", %s\n", i,
			t.welcome, t.controller, t.epoch, t.trouble);
	}
	for (i = 0; i < ETCD_MEMBERS && etcd.pid[i]; i++) {
		at = t_mono();
		http = etcd_post(i, "/v3/kv/range", "{\"key\":\"eA==\"}", answer);
		fprintf(stderr, "etcd %u: status %ld after %" PRIu64 " ms: %s\n", i, http,
			(t_mono() - at) / 1000000, answer);
	}
	etcd_last_words();
}

T_FN void configure(unsigned int n, const char *sqlite)
{
	unsigned int k, i;
	struct bl_err err;

	CHECK(!bl_iface_up("lo", &err), "%s", err.text);
	CHECK(sd_event_new(&ev) >= 0, "an event loop");
	rack_last_words = world_last_words;
	w.nctl = n;
	for (k = 0; k < n; k++) {
		struct bl_ctl_cfg *c = &w.cfg[k];

		*c = (struct bl_ctl_cfg){ .settle_us = 2000,
					  .answer_ms = 10000,
					  .grace_ms = 5000,
					  .silence_ms = 2000,
					  .ttl_s = 3 };
		snprintf(c->listen, sizeof(c->listen), "127.0.0.1:%u", 61693 + k);
		snprintf(c->sqlite, sizeof(c->sqlite), "%s", sqlite ? sqlite : "");
		c->netcd = sqlite ? 0 : ETCD_MEMBERS;
		for (i = 0; i < c->netcd; i++)
			snprintf(c->etcd[i], sizeof(c->etcd[i]), "%s", etcd.urls[i]);
	}
}

T_FN bool welcome(uint32_t id)
{
	struct bl_agent_total t;

	bl_agent_read(w.n[id].a, &t);
	return t.welcome;
}

T_FN uint64_t refused(uint32_t id, enum bl_agent_reason r)
{
	struct bl_agent_total t;

	bl_agent_read(w.n[id].a, &t);
	return t.reasons[r];
}

T_FN bool all_welcome(void)
{
	uint32_t i;

	for (i = 1; i <= SWITCH; i++)
		if (w.n[i].a && !welcome(i))
			return false;
	return true;
}

T_FN const char *ask(unsigned int k)
{
	return ctl_ask(w.ctl[k]);
}

/*
 * Returns whether the leader has heard from all agents since they know its epoch. A node that
 * leaves before that would not be reported as a failure.
 */
T_FN bool all_linked(void)
{
	unsigned int k, n;
	const char *p;

	for (k = 0; k < w.nctl; k++) {
		for (n = 0, p = w.ctl[k] ? ask(k) : ""; (p = strstr(p, "\"state\":\"ok\"")); p++)
			n++;
		if (n == HOSTS + 1)
			return true;
	}
	return false;
}

T_FN void rack_up(void)
{
	uint32_t i;

	node_up(SWITCH);
	for (i = 1; i <= HOSTS; i++)
		node_up(i);
	UNTIL(all_welcome() && all_linked());
}

T_FN void host_dies(uint32_t id)
{
	struct node *sw = &w.n[SWITCH];

	node_down(id);
	if (sw->port[id - 1].state != BL_AGENT_LIVE)
		return;
	sw->port[id - 1].state = BL_AGENT_SILENT;
	sw->port[id - 1].c = 900 + id;
	sw->port[id - 1].death++;
	bl_agent_link_down(sw->a, &sw->port[id - 1]);
}

T_FN int leader_now(void)
{
	unsigned int k;

	for (k = 0; k < w.nctl; k++)
		if (w.ctl[k] && strstr(ask(k), "\"state\":\"leader\""))
			return (int)k;
	return -1;
}

/*
 * Returns the controller with which the switch has its session, which is the leader as far as the
 * switch knows.
 */
T_FN int followed(void)
{
	struct bl_agent_total t;
	unsigned int k;

	bl_agent_read(w.n[SWITCH].a, &t);
	for (k = 0; k < w.nctl; k++)
		if (t.welcome && !strcmp(t.controller, w.cfg[k].listen))
			return (int)k;
	return -1;
}

#endif
