// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See agent.h. */
#include "loader/order/agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/order/epoch_core.h"
#include "loader/order/agent_priv.h"
#include "loader/order/turn_core.h"
#include "maps/failure_abi.h"
#include "proto/ctl.pb-c.h"
#include "proto/ctl_why.h"
#include "proto/forward_msg.h"
#include "proto/session.h"

#define SILENCE_MS 3000
/* From one controller to the next; doubled up to AGAIN_MAX_MS each time all of them were tried. */
#define AGAIN_MS     100
#define AGAIN_MAX_MS 1000
#define REJOIN_MS    200 /* from one attempt to join anew to the next */
#define KEPT         128 /* failures that are remembered, and whether they are done */
#define PROCS_MAX    1024

/**
 * struct kept - a FAIL that was carried out. Its number alone does not identify it: a store that is
 * an old copy, or another one, gives numbers again. An answer for the former failure would report
 * something as done that nobody has discarded.
 */
struct kept {
	uint64_t number;
	uint64_t epoch; /* of the leader who decided it */
	/* of the first node or process that failed */
	uint32_t node, port;
	uint64_t t;
	bool done;
};

/** struct bl_agent - main thread only. */
struct bl_agent {
	sd_event *ev;
	struct bl_agent_cfg cfg;
	const struct bl_agent_ops *ops;
	void *ctx;
	struct bl_session *session; /* NULL: none */
	sd_event_source *timer;     /* of bl_agent_on_beat() */
	sd_event_source *again;     /* of bl_agent_on_retry() */
	struct bl_turn turn;        /* the controller that is tried, or has the session */
	unsigned int tried;         /* controllers tried since the last good session */
	unsigned int wait_ms;       /* before the next one is tried */
	char hint[64];              /* the controller that is said to lead; "": not said */
	uint64_t heard_ns;          /* CLOCK_MONOTONIC of the last message */
	uint64_t failed;            /* number of the failure that announced this node; 0: none */
	bool up;                    /* the session is connected */
	bool welcome;               /* and the leader accepted the node */
	bool rejoin;                /* bl_agent_rejoin() was called */
	uint32_t away_ms;           /* the daemon stops for so long; 0: it does not */
	bool away_said;             /* in this session; nothing else is said after that */
	bool away_known;            /* the answer to that has come */
	bool leaves;                /* the host leaves in order: said until it is named */
	struct kept kept[KEPT];     /* a ring */
	unsigned int next_kept;
	struct bl_agent_proc proc[PROCS_MAX]; /* gone, and not named by the controller yet */
	unsigned int nprocs;
	struct bl_agent_node node; /* as the last HELLO described it */
	struct bl_agent_total total;
};

const char *bl_agent_reason_name(unsigned int r)
{
#define NAME(sym, name) [BL_AGENT_##sym] = name,
	static const char *const names[BL_AGENT_REASON_COUNT] = { BL_AGENT_REASONS(NAME) };
#undef NAME
	return r < BL_AGENT_REASON_COUNT ? names[r] : "?";
}

static uint64_t now_ns(const struct bl_agent *a)
{
	uint64_t usec;

	return sd_event_now(a->ev, CLOCK_MONOTONIC, &usec) < 0 ? 0 : usec * 1000;
}

static void set_timer(struct bl_agent *a, sd_event_source **src, uint64_t ms,
		      sd_event_time_handler_t fn)
{
	sd_event_source_disable_unref(*src);
	*src = NULL;
	sd_event_add_time_relative(a->ev, src, CLOCK_MONOTONIC, ms * 1000, 1000, fn, a);
}

/* ---- messages to the controller ---- */

static void send_message(struct bl_agent *a, Bl__ToController *m)
{
	size_t len = bl__to_controller__get_packed_size(m);
	uint8_t *body = malloc(len ? len : 1);

	if (body && a->session && a->up && !a->away_said) {
		bl__to_controller__pack(m, body);
		bl_session_send(a->session, body, len);
	}
	free(body);
}

static void send_number(struct bl_agent *a, Bl__ToController__WhatCase what, uint64_t number)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__Number n = BL__NUMBER__INIT;

	n.number = number;
	m.what_case = what;
	m.ping = &n; /* all members of the union with a number have this type */
	send_message(a, &m);
}

static void send_hello(struct bl_agent *a)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__Hello h = BL__HELLO__INIT;
	ProtobufCBinaryData addr[BL_AGENT_ADDRS_MAX];
	static __thread Bl__Port port[BL_AGENT_PORTS_MAX], *ports[BL_AGENT_PORTS_MAX];
	static __thread uint32_t endpoint[BL_AGENT_ENDPOINTS_MAX];
	struct bl_agent_node *n = &a->node;
	unsigned int i;

	memset(n, 0, sizeof(*n));
	a->ops->tell(a->ctx, n);
	for (i = 0; i < n->naddrs; i++)
		addr[i] = (ProtobufCBinaryData){ 16, n->addr[i] };
	for (i = 0; i < n->nports; i++) {
		bl__port__init(&port[i]);
		port[i].port = n->port[i].port;
		port[i].neighbour = n->port[i].neighbour;
		port[i].role = n->port[i].role;
		port[i].state = n->port[i].state;
		port[i].c = n->port[i].c;
		port[i].death = n->port[i].death;
		ports[i] = &port[i];
	}
	for (i = 0; i < n->nendpoints; i++)
		endpoint[i] = n->endpoint[i];
	h.version = 1;
	h.node = n->node_id;
	h.kind = n->host ? 0 : 1;
	h.name = n->name;
	h.rejoin = a->rejoin;
	h.n_addr = n->naddrs;
	h.addr = addr;
	h.n_port = n->nports;
	h.port = ports;
	h.n_endpoint = n->nendpoints;
	h.endpoint = endpoint;
	h.epoch = a->cfg.epoch;
	m.what_case = BL__TO_CONTROLLER__WHAT_HELLO;
	m.hello = &h;
	send_message(a, &m);
}

static void send_proc_down(struct bl_agent *a, unsigned int i)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__ProcDown p = BL__PROC_DOWN__INIT;

	p.endpoint = a->proc[i].port;
	p.t = a->proc[i].t;
	p.life = a->proc[i].life;
	p.why = a->proc[i].why;
	m.what_case = BL__TO_CONTROLLER__WHAT_PROC_DOWN;
	m.proc_down = &p;
	send_message(a, &m);
}

static void send_away(struct bl_agent *a)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__Away v = BL__AWAY__INIT;

	v.ms = a->away_ms;
	m.what_case = BL__TO_CONTROLLER__WHAT_AWAY;
	m.away = &v;
	send_message(a, &m);
	a->away_said = true;
}

/* ---- commands of the controller ---- */

/* Finds the latest failure with this number; NULL: none. */
static struct kept *find_kept(struct bl_agent *a, uint64_t number)
{
	unsigned int i;

	for (i = 1; i <= KEPT; i++)
		if (a->kept[(a->next_kept - i) % KEPT].number == number)
			return &a->kept[(a->next_kept - i) % KEPT];
	return NULL;
}

static struct kept kept_of_failure(const Bl__Failure *f)
{
	const Bl__Failed *first = f->n_failed ? f->failed[0] : NULL;

	return (struct kept){ .number = f->number,
			      .epoch = f->epoch,
			      .t = first ? first->t : 0,
			      .node = first ? first->node : 0,
			      .port = first ? first->port : 0 };
}

/*
 * Returns false for number 0, which stands for no failure; and for a process without an address, an
 * address of another length, or more addresses than fit. Then this node does not know what failed,
 * and DONE would claim that something was discarded. A node may have no address: a switch, or a
 * host that never had one.
 */
static bool failure_is_valid(const Bl__Failure *f)
{
	size_t i, k;

	if (!f->number)
		return false;
	for (i = 0; i < f->n_failed; i++) {
		const Bl__Failed *v = f->failed[i];

		if (v->port > UINT16_MAX || v->life > UINT16_MAX || (v->port && !v->n_addr) ||
		    v->n_addr > BL_AGENT_ADDRS_MAX)
			return false;
		for (k = 0; k < v->n_addr; k++)
			if (v->addr[k].len != 16)
				return false;
	}
	return true;
}

/* Translates the controller's reason into the one that endpoints hear (enum bl_why). */
static uint8_t why_for_endpoints(const Bl__Failed *f)
{
	static const uint8_t nodes[BL_DET_WHY_COUNT] = { [BL_DET_TOLD] = BL_WHY_DOWN,
							 [BL_DET_CUT] = BL_WHY_CUT_OFF,
							 [BL_DET_TORN] = BL_WHY_TORN,
							 [BL_DET_LEFT] = BL_WHY_LEFT };

	if (f->port)
		return f->gone < BL_WHY_COUNT ? (uint8_t)f->gone : BL_WHY_UNKNOWN;
	return f->why < BL_DET_WHY_COUNT ? nodes[f->why] : BL_WHY_UNKNOWN;
}

static struct bl_agent_failed *failed_from_failure(struct bl_agent *a, const Bl__Failure *f)
{
	struct bl_agent_failed *v = calloc(f->n_failed + 1, sizeof(*v));
	size_t i, k;

	for (i = 0; v && i < f->n_failed; i++) {
		const Bl__Failed *from = f->failed[i];

		v[i] = (struct bl_agent_failed){ .node = from->node,
						 .port = (uint16_t)from->port,
						 .life = (uint16_t)from->life,
						 .why = why_for_endpoints(from),
						 .t = from->t,
						 .here = from->node == a->node.node_id };
		for (k = 0; k < from->n_addr; k++)
			memcpy(v[i].addr[v[i].naddrs++], from->addr[k].data, 16);
	}
	return v;
}

/* The controller has named these processes, so their ends need not be reported again. */
static void drop_named_procs(struct bl_agent *a, const struct bl_agent_failed *v, size_t n)
{
	unsigned int i, k = 0;
	size_t j;

	for (i = 0; i < a->nprocs; i++) {
		for (j = 0; j < n && !(v[j].here && v[j].port == a->proc[i].port &&
				       v[j].life == a->proc[i].life && v[j].t == a->proc[i].t);
		     j++)
			;
		if (j == n)
			a->proc[k++] = a->proc[i];
	}
	a->nprocs = k;
}

static void note_own_failure(struct bl_agent *a, uint64_t number)
{
	if (a->failed == number)
		return;
	a->failed = number;
	a->rejoin = false;
	a->ops->failed(a->ctx, number);
}

static void on_fail(struct bl_agent *a, const Bl__Failure *f)
{
	struct kept *k = find_kept(a, f->number), is = kept_of_failure(f);
	struct bl_agent_failed *v;
	size_t i;

	if (k && k->epoch == is.epoch && k->t == is.t && k->node == is.node && k->port == is.port) {
		/* The command is repeated by the next leader, or in the next session. */
		if (k->done)
			send_number(a, BL__TO_CONTROLLER__WHAT_DONE, f->number);
		return;
	}
	v = failed_from_failure(a, f);
	/* The command is repeated, or this node is announced as failed. */
	if (!v)
		return;
	a->kept[a->next_kept++ % KEPT] = is;
	drop_named_procs(a, v, f->n_failed);
	for (i = 0; i < f->n_failed; i++)
		if (v[i].here && !v[i].port)
			note_own_failure(a, f->number);
	a->ops->fail(a->ctx, f->number, v, (unsigned int)f->n_failed);
	free(v);
}

static int on_resume(struct bl_agent *a, const Bl__Failure *f)
{
	struct bl_agent_failed *v = failed_from_failure(a, f);
	struct bl_agent_input *in = calloc(f->n_input + 1, sizeof(*in));
	unsigned int n = 0;
	int rc = 0;
	size_t i;

	for (i = 0; in && i < f->n_input; i++)
		if (f->input[i]->node == a->node.node_id)
			in[n++] = (struct bl_agent_input){ f->input[i]->port, f->input[i]->death };
	if (v && in) {
		drop_named_procs(a, v, f->n_failed);
		rc = a->ops->resume(a->ctx, f->number, v, (unsigned int)f->n_failed, in, n);
		if (!rc)
			send_number(a, BL__TO_CONTROLLER__WHAT_RESUMED, f->number);
	}
	free(v);
	free(in);
	return rc;
}

static int on_freeze(struct bl_agent *a, const Bl__Freeze *f)
{
	unsigned int k;
	size_t i;
	int rc;

	for (i = 0; i < f->n_port; i++) {
		struct bl_agent_port p;

		for (k = 0; k < a->node.nports && a->node.port[k].port != f->port[i]; k++)
			;
		if (k == a->node.nports)
			continue;
		p = a->node.port[k];
		rc = a->ops->freeze(a->ctx, f->port[i], &p);
		if (rc == -ESTALE)
			return rc;
		if (!rc)
			bl_agent_link_down(a, &p);
	}
	return 0;
}

static int on_bar(struct bl_agent *a, const Bl__Bar *b)
{
	int rc = a->ops->bar(a->ctx, b->port, (unsigned int)b->n_port);

	if (!rc)
		send_number(a, BL__TO_CONTROLLER__WHAT_BARRED, b->version);
	return rc;
}

static void on_welcome(struct bl_agent *a, const Bl__Welcome *w)
{
	unsigned int i;

	a->welcome = true;
	a->total.answer_ms = w->answer_ms;
	a->total.stuck_ms = w->stuck_ms;
	a->tried = 0;
	a->wait_ms = AGAIN_MS;
	if (w->failed) {
		note_own_failure(a, w->failed);
	} else {
		a->failed = 0;
		a->rejoin = false;
		for (i = 0; i < a->nprocs; i++)
			send_proc_down(a, i);
	}
	if (a->leaves && !a->failed)
		send_number(a, BL__TO_CONTROLLER__WHAT_LEAVE, 0);
	/* The present leader may not know that the daemon stops. */
	if (a->away_ms)
		send_away(a);
}

static void on_forward(struct bl_agent *a, const Bl__Forward *m)
{
	struct bl_forward f;

	if (!bl_forward_read(m, &f))
		a->total.reasons[BL_AGENT_BAD_MESSAGE]++;
	else if (a->ops->forward && !a->failed)
		a->ops->forward(a->ctx, &f);
}

static void on_put_out(struct bl_agent *a, const Bl__PutOut *m)
{
	if (!m->port || m->port > UINT16_MAX || m->life > UINT16_MAX)
		a->total.reasons[BL_AGENT_BAD_MESSAGE]++;
	else if (a->ops->put_out && !a->failed)
		a->ops->put_out(a->ctx, (uint16_t)m->port, (uint16_t)m->life);
}

static void on_admission(struct bl_agent *a, const Bl__Admission *o)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__Admitted v = BL__ADMITTED__INIT;
	struct bl_err err = { .text = "this node has no applications' traffic to admit" };
	char said[512] = "";

	if (!a->ops->admission ||
	    a->ops->admission(a->ctx, o->check, o->policy, o->rate_bps, said, sizeof(said), &err))
		v.trouble = err.text;
	v.number = o->number;
	v.check = o->check;
	v.said = said;
	m.what_case = BL__TO_CONTROLLER__WHAT_ADMITTED;
	m.admitted = &v;
	send_message(a, &m);
}

/*
 * Returns 0 or -errno; -ESTALE: the kernel's fence refused the command; -EBADMSG: the command is
 * malformed. After any other error the node does not answer, and the controller announces it as
 * failed when its time is over.
 */
static int obey_command(struct bl_agent *a, const Bl__ToAgent *m)
{
	if ((m->what_case == BL__TO_AGENT__WHAT_FAIL && !failure_is_valid(m->fail)) ||
	    (m->what_case == BL__TO_AGENT__WHAT_RESUME && !failure_is_valid(m->resume)))
		return -EBADMSG;
	switch (m->what_case) {
	case BL__TO_AGENT__WHAT_WELCOME:
		on_welcome(a, m->welcome);
		break;
	case BL__TO_AGENT__WHAT_BAR:
		return on_bar(a, m->bar);
	case BL__TO_AGENT__WHAT_FREEZE:
		return on_freeze(a, m->freeze);
	case BL__TO_AGENT__WHAT_FAIL:
		on_fail(a, m->fail);
		break;
	case BL__TO_AGENT__WHAT_RESUME:
		return on_resume(a, m->resume);
	case BL__TO_AGENT__WHAT_FORWARD:
		on_forward(a, m->forward);
		break;
	case BL__TO_AGENT__WHAT_PUT_OUT:
		on_put_out(a, m->put_out);
		break;
	case BL__TO_AGENT__WHAT_ADMISSION:
		on_admission(a, m->admission);
		break;
	case BL__TO_AGENT__WHAT_AWAY:
		a->away_known = a->away_said;
		break;
	default:
		break;
	}
	return 0;
}

static void leave_controller(struct bl_agent *a, const char *why);

static void count_reason(struct bl_agent *a, enum bl_agent_reason r)
{
	a->total.reasons[r]++;
}

static void on_message(void *ctx, const uint8_t *body, size_t len)
{
	struct bl_agent *a = ctx;
	Bl__ToAgent *m = bl__to_agent__unpack(NULL, len, body);
	enum bl_epoch_verdict verdict = bl_epoch_judge(a->cfg.epoch, m ? m->epoch : 0);
	char why[256];

	a->heard_ns = now_ns(a);
	if (!m || m->what_case == BL__TO_AGENT__WHAT__NOT_SET) {
		count_reason(a, BL_AGENT_BAD_MESSAGE);
		leave_controller(a, "its message is malformed");
	} else if (m->what_case == BL__TO_AGENT__WHAT_NOT_LEADING) {
		snprintf(a->hint, sizeof(a->hint), "%s", m->not_leading->leader);
		leave_controller(a,
				 *m->not_leading->why ? m->not_leading->why : "it does not lead");
	} else if (m->what_case == BL__TO_AGENT__WHAT_PING) {
		/* Somebody else says that it is this node: the controller asks who still lives. */
		if (m->ping->number)
			send_number(a, BL__TO_CONTROLLER__WHAT_PING, m->ping->number);
		count_reason(a, BL_AGENT_OK);
	} else if (verdict == BL_EPOCH_FAR) {
		count_reason(a, BL_AGENT_FAR_EPOCH);
		snprintf(why, sizeof(why),
			 "its epoch %" PRIu64 " is too far above %" PRIu64 ", which this node "
			 "obeys; a false controller, or another store? `barline %s detach` forgets "
			 "the epoch",
			 m->epoch, a->cfg.epoch, a->node.host ? "host" : "switch");
		leave_controller(a, why);
	} else if (verdict == BL_EPOCH_OLD || !m->epoch) {
		count_reason(a, BL_AGENT_OLD_EPOCH);
		leave_controller(a, "it does not lead any more: its epoch is old");
	} else if (!a->welcome && m->what_case != BL__TO_AGENT__WHAT_WELCOME) {
		count_reason(a, BL_AGENT_TOO_EARLY);
		leave_controller(a, "it gave a command before WELCOME");
	} else {
		bool higher = m->epoch > a->cfg.epoch;
		int rc;

		if (higher) {
			a->cfg.epoch = m->epoch;
			a->ops->epoch(a->ctx, m->epoch);
		}
		if (higher)
			send_hello(a);
		rc = obey_command(a, m);
		if (rc == -ESTALE) {
			count_reason(a, BL_AGENT_OLD_EPOCH);
			leave_controller(a, "this node obeys a later epoch");
		} else if (rc == -EBADMSG) {
			count_reason(a, BL_AGENT_BAD_MESSAGE);
			leave_controller(a, "its FAIL or RESUME is malformed: the number is 0, or "
					    "addresses are missing or invalid");
		} else {
			count_reason(a, BL_AGENT_OK);
		}
	}
	if (m)
		bl__to_agent__free_unpacked(m, NULL);
}

/* ---- sessions ---- */

static void on_up(void *ctx)
{
	struct bl_agent *a = ctx;

	a->up = true;
	a->heard_ns = now_ns(a);
	send_hello(a);
}

static void choose_next_controller(struct bl_agent *a)
{
	unsigned int hint = 0;

	while (hint < a->turn.n && strcmp(a->cfg.controllers[hint], a->hint))
		hint++;
	if (!bl_turn_next(&a->turn, hint, a->welcome) && ++a->tried >= a->turn.n) {
		a->tried = 0;
		a->wait_ms = a->wait_ms * 2 > AGAIN_MAX_MS ? AGAIN_MAX_MS : a->wait_ms * 2;
	}
	a->session = NULL;
	a->up = a->welcome = a->away_said = false;
	*a->hint = 0;
	set_timer(a, &a->again, a->wait_ms, bl_agent_on_retry);
}

static void on_down(void *ctx, const char *why)
{
	struct bl_agent *a = ctx;

	snprintf(a->total.trouble, sizeof(a->total.trouble), "controller %s: %s",
		 a->cfg.controllers[a->turn.at], why);
	choose_next_controller(a);
}

static void leave_controller(struct bl_agent *a, const char *why)
{
	bl_session_close(a->session);
	on_down(a, why);
}

static const struct bl_session_ops session_ops = { .up = on_up,
						   .message = on_message,
						   .down = on_down };

int bl_agent_on_retry(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_agent *a = ctx;
	struct sockaddr_storage addr;
	struct bl_err err;
	socklen_t len;

	(void)src, (void)usec;
	if (a->session || a->away_known)
		return 0;
	bl_session_addr(a->cfg.controllers[a->turn.at], &addr, &len);
	a->heard_ns = now_ns(a);
	a->total.sessions++;
	if (bl_session_connect(&a->session, a->ev, (struct sockaddr *)&addr, len, a->cfg.tls,
			       &session_ops, a, &err))
		on_down(a, err.text);
	return 0;
}

int bl_agent_on_beat(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_agent *a = ctx;

	(void)src, (void)usec;
	if (a->session && now_ns(a) - a->heard_ns > a->cfg.silence_ms * 1000000ULL)
		leave_controller(a, "it is silent");
	else if (a->session)
		send_number(a, BL__TO_CONTROLLER__WHAT_PING, 0);
	if (a->session && a->welcome && a->leaves && !a->failed)
		send_number(a, BL__TO_CONTROLLER__WHAT_LEAVE, 0);
	if (a->session && a->welcome && a->failed && a->rejoin)
		send_hello(a);
	set_timer(a, &a->timer, a->failed && a->rejoin ? REJOIN_MS : a->cfg.silence_ms / 3 + 1,
		  bl_agent_on_beat);
	return 0;
}

/* ---- the caller's side ---- */

void bl_agent_changed(struct bl_agent *a)
{
	if (a->session && a->up)
		send_hello(a);
}

void bl_agent_link_down(struct bl_agent *a, const struct bl_agent_port *p)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__LinkDown d = BL__LINK_DOWN__INIT;

	d.port = p->port;
	d.neighbour = p->neighbour;
	d.c = p->c;
	d.death = p->death;
	m.what_case = BL__TO_CONTROLLER__WHAT_LINK_DOWN;
	m.link_down = &d;
	/* Before WELCOME, a HELLO reports it with all ports. */
	if (a->welcome)
		send_message(a, &m);
	else
		bl_agent_changed(a);
}

void bl_agent_proc_down(struct bl_agent *a, const struct bl_agent_proc *p)
{
	if (a->nprocs == PROCS_MAX)
		return;
	a->proc[a->nprocs++] = *p;
	if (a->welcome)
		send_proc_down(a, a->nprocs - 1);
}

void bl_agent_stuck(struct bl_agent *a, const struct bl_agent_stuck *s)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__ProcStuck p = BL__PROC_STUCK__INIT;

	p.endpoint = s->from.port;
	p.from_life = s->from.life;
	p.addr = (ProtobufCBinaryData){ 16, (uint8_t *)(uintptr_t)s->addr };
	p.port = s->port;
	p.life = s->life;
	m.what_case = BL__TO_CONTROLLER__WHAT_PROC_STUCK;
	m.proc_stuck = &p;
	if (a->welcome && !a->failed)
		send_message(a, &m);
}

void bl_agent_done(struct bl_agent *a, uint64_t number)
{
	struct kept *k = find_kept(a, number);

	if (k)
		k->done = true;
	if (a->welcome)
		send_number(a, BL__TO_CONTROLLER__WHAT_DONE, number);
}

bool bl_agent_forward(struct bl_agent *a, const struct bl_forward *f)
{
	Bl__ToController m = BL__TO_CONTROLLER__INIT;
	Bl__Forward v = BL__FORWARD__INIT;

	if (!a->welcome || a->failed || bl_session_waiting(a->session) > BL_AGENT_FORWARD_WAIT) {
		count_reason(a, BL_AGENT_NOT_FORWARDED);
		return false;
	}
	v.to = (ProtobufCBinaryData){ 16, (uint8_t *)(uintptr_t)f->to };
	v.from = (ProtobufCBinaryData){ 16, (uint8_t *)(uintptr_t)f->from };
	v.port = f->port;
	v.sport = f->sport;
	v.frame = (ProtobufCBinaryData){ f->len, (uint8_t *)(uintptr_t)f->frame };
	m.what_case = BL__TO_CONTROLLER__WHAT_FORWARD;
	m.forward = &v;
	count_reason(a, BL_AGENT_FORWARDED);
	send_message(a, &m);
	return true;
}

void bl_agent_away(struct bl_agent *a, uint32_t ms)
{
	a->away_ms = ms;
	if (a->welcome)
		send_away(a);
}

void bl_agent_leave(struct bl_agent *a, bool leaves)
{
	a->leaves = leaves;
	if (leaves && a->welcome && !a->failed)
		send_number(a, BL__TO_CONTROLLER__WHAT_LEAVE, 0);
}

bool bl_agent_away_known(const struct bl_agent *a)
{
	return a->away_known;
}

void bl_agent_rejoin(struct bl_agent *a)
{
	/*
	 * Processes of its former life that ended are still announced by name. An endpoint that
	 * processed the host's failure before they ended may have opened a window to one of them
	 * since, and waits for its ACKs.
	 */
	a->rejoin = true;
	set_timer(a, &a->timer, 0, bl_agent_on_beat);
}

void bl_agent_read(const struct bl_agent *a, struct bl_agent_total *t)
{
	*t = a->total;
	t->epoch = a->cfg.epoch;
	t->failed = a->failed;
	t->welcome = a->welcome;
	snprintf(t->controller, sizeof(t->controller), "%s",
		 a->session ? a->cfg.controllers[a->turn.at] : "");
	if (a->welcome)
		*t->trouble = 0;
}

void bl_agent_free(struct bl_agent *a)
{
	if (!a)
		return;
	bl_session_close(a->session);
	sd_event_source_disable_unref(a->timer);
	sd_event_source_disable_unref(a->again);
	sd_event_unref(a->ev);
	free(a);
}

int bl_agent_new(struct bl_agent **out, sd_event *ev, const struct bl_agent_cfg *cfg,
		 const struct bl_agent_ops *ops, void *ctx, struct bl_err *err)
{
	struct sockaddr_storage addr;
	struct bl_agent *a;
	unsigned int i;
	socklen_t len;

	*out = NULL;
	if (!cfg->ncontrollers || cfg->ncontrollers > BL_AGENT_CONTROLLERS_MAX)
		return bl_fail(err, EINVAL, "the number of controllers must be from 1 to %d",
			       BL_AGENT_CONTROLLERS_MAX);
	for (i = 0; i < cfg->ncontrollers; i++)
		if (bl_session_addr(cfg->controllers[i], &addr, &len))
			return bl_fail(err, EINVAL,
				       "controller \"%s\" is not an address such as 10.0.0.1:%d or "
				       "[fd00::1]:%d",
				       cfg->controllers[i], BL_SESSION_PORT, BL_SESSION_PORT);
	a = calloc(1, sizeof(*a));
	if (!a)
		return bl_fail(err, ENOMEM, "out of memory");
	a->ev = sd_event_ref(ev);
	a->cfg = *cfg;
	a->cfg.silence_ms = cfg->silence_ms ? cfg->silence_ms : SILENCE_MS;
	a->ops = ops;
	a->ctx = ctx;
	a->wait_ms = AGAIN_MS;
	a->turn.n = cfg->ncontrollers;
	set_timer(a, &a->again, 0, bl_agent_on_retry);
	set_timer(a, &a->timer, a->cfg.silence_ms / 3 + 1, bl_agent_on_beat);
	*out = a;
	return 0;
}
