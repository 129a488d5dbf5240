// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See node_agent.h. */
#include "loader/node_agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/netns.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/wire_core.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_set.h"
#include "loader/admission/apart.h"
#include "loader/load/pin.h"
#include "loader/node_priv.h"
#include "loader/order/agent.h"
#include "loader/order/agent_watch.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_left.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/ep.h"
#include "loader/order/events.h"
#include "loader/order/fence.h"
#include "loader/order/forward.h"
#include "loader/order/stuck.h"
#include "loader/order/stuck_core.h"
#include "maps/failure_abi.h"
#include "proto/forward_msg.h"
#include "proto/session.h"

#define SAMPLE_MIN_US  500
#define SAMPLE_BUSY_US 1000
#define SAMPLE_MAX_US  100000
/* Without controllers: how soon an input is resumed that is heard again. */
#define ALONE_US 100000
/*
 * A session that is missing for this long is logged. A leader that is replaced is missing for as
 * long as its lease.
 */
#define ALONE_NS 5000000000ULL
/* How long bl_node_agent_away() waits for the answer: without a session, and with one. */
#define AWAY_SAID_NS  200000000ULL
#define AWAY_SAVED_NS 1000000000ULL
/*
 * How long a switch with new registers waits for a port where nothing arrives, at least; also ten
 * times dead_after.
 */
#define START_WAIT_NS 1000000000ULL
/* From one sample of windows that stand still to the next. */
#define STUCK_SAMPLE_NS 50000000ULL
/* Failures that a host has not completed. The controller has no more of them open. */
#define FAILURES_MAX 64

/** struct open_failure - a FAIL that is not completely in the endpoints' page yet. */
struct open_failure {
	uint64_t number;
	struct bl_agent_failed *failed; /* @nfailed of them */
	unsigned int nfailed;
};

/** struct bl_node_agent - main thread only. */
struct bl_node_agent {
	struct bl_node *node;
	struct bl_agent *agent; /* NULL: there are no controllers */
	struct bl_session_tls *tls;
	sd_event_source *timer; /* of the next sample */
	uint64_t epoch;
	struct bl_agent_watch watch; /* the inputs at the last sample */
	unsigned int awaited;        /* inputs that stood still, or were behind, at that sample */
	struct open_failure failure[FAILURES_MAX]; /* not announced to the endpoints yet */
	unsigned int nfailures;
	uint64_t led_ns;    /* CLOCK_MONOTONIC of the last sample with a session */
	uint64_t opened_ns; /* CLOCK_MONOTONIC of the start */
	uint64_t stuck_ns;  /* CLOCK_MONOTONIC of the last sample of the windows */
	struct bl_stuck_seen stuck[BL_EPS_MAX]; /* the windows at that sample */
	bool failed;        /* this node was announced as failed, and has not joined anew */
	uint64_t failed_ns; /* CLOCK_MONOTONIC; @failed since then */
	bool rejoining;     /* @failed, and bl_agent_rejoin() was called */
	/* by endpoint slot: incarnation + 1 of its endpoint when the node failed; 0: none */
	uint32_t old[BL_EPS_MAX];
	struct bl_apart apart;
	/* the log has a message that: */
	bool alone;          /* there is no session */
	bool forwards;       /* frames are forwarded */
	bool cannot_forward; /* frames cannot be forwarded without a controller */
	bool cannot_tell;    /* a failure cannot be announced to the endpoints */
};

static void schedule_sample(struct bl_node_agent *a, uint64_t us);

/* ---- what the node says of itself ---- */

static struct bl_agent_port agent_port_of(const struct bl_fence_port *p)
{
	static const uint8_t roles[] = { [BL_PORT_HOST] = 0, [BL_PORT_UP] = 1, [BL_PORT_DOWN] = 2 };

	return (struct bl_agent_port){ .port = p->port,
				       .neighbour = p->neighbour,
				       .death = p->death,
				       .role = roles[p->role & 3],
				       .state = bl_agent_port_state(p),
				       .c = p->held ? p->c : BL_AGENT_NO_C };
}

static void add_addr(struct bl_agent_node *v, const uint8_t addr[16])
{
	unsigned int i;

	for (i = 0; i < v->naddrs; i++)
		if (!memcmp(v->addr[i], addr, 16))
			return;
	if (v->naddrs < BL_AGENT_ADDRS_MAX)
		memcpy(v->addr[v->naddrs++], addr, 16);
}

/* Adds an address by which other hosts may know this node's messages. */
static void add_sockaddr(struct bl_agent_node *v, const struct sockaddr *sa)
{
	uint8_t addr[16] = { [10] = 0xff, [11] = 0xff };

	if (!sa)
		return;
	if (sa->sa_family == AF_INET)
		memcpy(addr + 12, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
	else if (sa->sa_family == AF_INET6 &&
		 !IN6_IS_ADDR_LINKLOCAL(
			 &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr))
		memcpy(addr, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	else
		return;
	add_addr(v, addr);
}

/*
 * The addresses of endpoints come first, whether the NIC still has them or not: an endpoint keeps
 * the address that it was given, and its messages are known by that. Dead endpoints count, too,
 * because they are about to be announced.
 */
static void tell_addresses(const struct bl_node *n, struct bl_agent_node *v)
{
	struct ifaddrs *all, *one;
	struct bl_err err;
	int old, k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used)
			add_addr(v, n->ep[k].info.addr);
	if (bl_netns_enter(n->cfg.netns, &old, &err))
		return;
	if (!getifaddrs(&all)) {
		for (one = all; one; one = one->ifa_next)
			if (!strcmp(one->ifa_name, n->att[0].iface.name))
				add_sockaddr(v, one->ifa_addr);
		freeifaddrs(all);
	}
	bl_netns_leave(old);
}

static void on_tell(void *ctx, struct bl_agent_node *v)
{
	struct bl_node_agent *a = ctx;
	struct bl_fence_port in[BL_AGENT_PORTS_MAX];
	const struct bl_node *n = a->node;
	int k, count;

	v->node_id = n->meta.node_id;
	v->host = n->cfg.role == BL_ROLE_HOST;
	snprintf(v->name, sizeof(v->name), "%s", n->meta.name);
	count = bl_fence_inputs(&n->fence, in, BL_AGENT_PORTS_MAX);
	for (k = 0; k < count; k++) {
		/* A change that this HELLO reports needs no second report. */
		bl_agent_watch_sample(&a->watch, &in[k]);
		v->port[v->nports++] = agent_port_of(&in[k]);
	}
	if (!v->host)
		return;
	tell_addresses(n, v);
	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && !n->ep[k].dead)
			v->endpoint[v->nendpoints++] = n->ep[k].info.port;
}

/* ---- commands of the controller ---- */

static void on_epoch(void *ctx, uint64_t epoch)
{
	struct bl_node_agent *a = ctx;
	int rc = bl_fence_raise(&a->node->fence, epoch);

	if (rc)
		bl_log(BL_LOG_ERR, "%s: cannot accept epoch %" PRIu64 ": %s", a->node->meta.name,
		       epoch, strerror(-rc));
	a->epoch = epoch;
}

static int on_bar(void *ctx, const uint32_t *port, unsigned int n)
{
	struct bl_node_agent *a = ctx;

	schedule_sample(a, SAMPLE_BUSY_US);
	return bl_fence_bar(&a->node->fence, a->epoch, port, n);
}

static int on_freeze(void *ctx, uint32_t port, struct bl_agent_port *p)
{
	struct bl_node_agent *a = ctx;
	struct bl_fence_port v;
	int rc = bl_fence_freeze(&a->node->fence, a->epoch, port, &v);

	if (rc)
		return rc;
	bl_agent_watch_sample(&a->watch, &v);
	*p = agent_port_of(&v);
	schedule_sample(a, SAMPLE_BUSY_US);
	return 0;
}

/*
 * The endpoint is found by its T. The next endpoint at that port may be dead by now, too, and its
 * receivers have not been told yet; RESUME for the former one may be given again if the answer was
 * lost.
 */
static void resume_endpoint(struct bl_node *n, const struct bl_agent_failed *v)
{
	int k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && n->ep[k].dead && n->ep[k].info.port == v->port &&
		    (n->ep[k].t & BL_TS_MASK) == v->t)
			bl_endpoint_resume(n, v->port);
}

static int on_resume(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n,
		     const struct bl_agent_input *in, unsigned int nin)
{
	struct bl_node_agent *a = ctx;
	unsigned int i;
	int rc;

	(void)number;
	for (i = 0; i < nin; i++) {
		rc = bl_fence_resume(&a->node->fence, a->epoch, in[i].port, in[i].death);
		/* -ENOENT: the input was resumed before, and may have died again since. */
		if (rc && rc != -ENOENT)
			return rc;
	}
	for (i = 0; i < n; i++)
		if (v[i].here && v[i].port)
			resume_endpoint(a->node, &v[i]);
	schedule_sample(a, SAMPLE_BUSY_US);
	return 0;
}

static uint64_t bus_time_now(const struct bl_node *n)
{
	return bl_clock_at(n->clock.shared, bl_mono_ns());
}

static int announce_failed(struct bl_node_agent *a, uint64_t number,
			   const struct bl_agent_failed *v)
{
	struct bl_failure f = { .epoch = a->epoch,
				.order = number,
				.port = v->port,
				.life = v->life,
				.why = v->why,
				.ts = v->t == BL_AGENT_NO_C
					      ? 0
					      : bl_ext48(v->t, bus_time_now(a->node)) };
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < v->naddrs; i++) {
		memcpy(f.addr, v->addr[i], sizeof(f.addr));
		rc = bl_failure_announce(a->node, &f);
	}
	return rc;
}

/*
 * Announces a failure to the endpoints; announcing it again does no harm. A failure that cannot be
 * announced is not reported as done, since an endpoint that has not heard of it would deliver what
 * others discard. Returns whether it was announced.
 */
static bool tell_endpoints(struct bl_node_agent *a, const struct open_failure *o)
{
	struct bl_agent_total t;
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < o->nfailed; i++)
		rc = announce_failed(a, o->number, &o->failed[i]);
	if (!rc) {
		a->cannot_tell = false;
		return true;
	}
	bl_agent_read(a->agent, &t);
	if (!a->cannot_tell)
		bl_log(BL_LOG_ERR,
		       "%s: cannot announce failure %" PRIu64 " to the endpoints: %s; it is tried "
		       "again, and until then not reported as done: after %u ms the controller "
		       "announces this host as failed",
		       a->node->meta.name, o->number, strerror(-rc), t.answer_ms);
	a->cannot_tell = true;
	return false;
}

/* Reports DONE for every open failure that can be announced. */
static void complete_failures(struct bl_node_agent *a)
{
	unsigned int i, left = 0;

	for (i = 0; i < a->nfailures; i++) {
		if (!tell_endpoints(a, &a->failure[i])) {
			a->failure[left++] = a->failure[i];
			continue;
		}
		free(a->failure[i].failed);
		bl_agent_done(a->agent, a->failure[i].number);
	}
	a->nfailures = left;
}

static void on_fail(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n)
{
	struct bl_node_agent *a = ctx;
	struct open_failure o = { .number = number, .nfailed = n };
	unsigned int i;

	if (a->node->cfg.role != BL_ROLE_HOST) {
		bl_agent_done(a->agent, number);
		return;
	}
	o.failed = calloc(n + 1, sizeof(*v));
	if (!o.failed) {
		bl_log(BL_LOG_ERR, "%s: out of memory: failure %" PRIu64 " is not announced",
		       a->node->meta.name, number);
		return;
	}
	memcpy(o.failed, v, n * sizeof(*v));
	for (i = 0; i < n; i++)
		if (v[i].here && v[i].port && v[i].why == BL_WHY_LEFT)
			bl_endpoint_left_heard(a->node, v[i].port, v[i].life);
	/*
	 * The controller has no more failures open than that, so it awaits the oldest one no more.
	 */
	if (a->nfailures == FAILURES_MAX) {
		free(a->failure[0].failed);
		memmove(a->failure, a->failure + 1, --a->nfailures * sizeof(*a->failure));
	}
	a->failure[a->nfailures++] = o;
	complete_failures(a);
	schedule_sample(a, SAMPLE_BUSY_US);
}

static void on_failed(void *ctx, uint64_t number)
{
	struct bl_node_agent *a = ctx;
	int k;

	a->failed = true;
	a->failed_ns = bl_mono_ns();
	a->rejoining = false;
	bl_log(BL_LOG_WARN,
	       "%s: was announced as failed (failure %" PRIu64 "): it joins anew when the "
	       "endpoints that it has now are gone or expelled",
	       a->node->meta.name, number);
	for (k = 0; k < BL_EPS_MAX; k++)
		a->old[k] = a->node->ep[k].used ? 1U + a->node->ep[k].info.life : 0;
	schedule_sample(a, 0);
}

static void on_forward(void *ctx, const struct bl_forward *f)
{
	uint8_t buf[BL_FORWARD_BUF];
	struct bl_node_agent *a = ctx;
	struct bl_forward answer;

	if (a->node->cfg.role != BL_ROLE_HOST || a->failed)
		return;
	bl_stuck_answered(a->node, a->stuck, f);
	if (bl_forward_run(a->node, f, &answer, buf))
		bl_agent_forward(a->agent, &answer);
}

/*
 * Reports the endpoint as gone even if it does not exist: the endpoint that waits for it has not
 * heard that it is gone.
 */
static void on_put_out(void *ctx, uint16_t port, uint16_t life)
{
	struct bl_node_agent *a = ctx;
	const struct bl_agent_proc p = { .port = port,
					 .life = life,
					 .why = BL_WHY_UNREACHABLE,
					 .t = bus_time_now(a->node) & BL_TS_MASK };
	unsigned int k;

	if (a->node->cfg.role != BL_ROLE_HOST || a->failed)
		return;
	for (k = 0; k < BL_EPS_MAX; k++) {
		const struct bl_ep *ep = &a->node->ep[k];

		if (!ep->used || ep->info.port != port || ep->info.life != life)
			continue;
		if (!ep->dead)
			bl_endpoint_put_out(a->node, 1ULL << k, BL_OUT_UNREACHABLE);
		/* A dead endpoint was reported when it died. */
		return;
	}
	bl_agent_proc_down(a->agent, &p);
}

/* As `barline admission set` on this node. The next start of the daemon applies its file again. */
static int on_admission(void *ctx, bool check, const char *policy, uint64_t rate_bps, char *said,
			size_t size, struct bl_err *err)
{
	const struct bl_node *n = ((struct bl_node_agent *)ctx)->node;
	const int number = bl_policy_by_name(policy);
	struct bl_admission_set set = { .check = check };
	struct bl_node_ref ref = { .role = n->cfg.role,
				   .netns_ino = n->netns_ino,
				   .meta = n->meta };
	int rc, old;

	bl_admission_put(&set, BL_AO_POLICY, (uint64_t)number);
	if (rate_bps)
		bl_admission_put(&set, BL_AO_RATE, rate_bps);
	if (number < 0)
		return bl_fail(err, EINVAL, "policy \"%.20s\": this version has no such policy",
			       policy);
	snprintf(ref.dir, sizeof(ref.dir), "%s", n->dir);
	rc = bl_netns_enter(n->cfg.netns, &old, err);
	if (rc)
		return rc;
	rc = bl_admission_change(&ref, &set, said, size, err);
	bl_netns_leave(old);
	if (!rc && !check)
		bl_log(BL_LOG_INFO, "%s: the controller changed the admission: %s", n->meta.name,
		       *said ? said : "nothing is different");
	return rc;
}

static const struct bl_agent_ops ops = { .admission = on_admission,
					 .put_out = on_put_out,
					 .tell = on_tell,
					 .epoch = on_epoch,
					 .bar = on_bar,
					 .freeze = on_freeze,
					 .fail = on_fail,
					 .resume = on_resume,
					 .failed = on_failed,
					 .forward = on_forward };

/* ---- sampling ---- */

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
		bl_log(BL_LOG_INFO, "%s: has joined anew", n->meta.name);
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
	bl_apart_sample(&a->apart, a->node, in, n, bl_mono_ns());
	for (a->awaited = 0, i = 0; i < n; i++) {
		struct bl_agent_port p = agent_port_of(&in[i]);
		bool known = a->watch.port[in[i].port].neighbour == in[i].neighbour;

		a->awaited += in[i].held || p.state == BL_AGENT_BEHIND;
		switch (bl_agent_watch_sample(&a->watch, &in[i])) {
		case BL_AGENT_SEEN_NOTHING:
			break;
		case BL_AGENT_SEEN_SILENT:
			bl_log(BL_LOG_WARN, "%s: the input at port %u from node %08x stands still",
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
	if (t.welcome && a->alone)
		bl_log(BL_LOG_INFO, "%s: has a session with controller %s", a->node->meta.name,
		       t.controller);
	if (t.welcome) {
		a->alone = false;
		a->led_ns = now;
	} else if (!a->alone && now - a->led_ns > ALONE_NS) {
		a->alone = true;
		bl_log(BL_LOG_WARN,
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

static int on_sample(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node_agent *a = ctx;
	uint64_t us = a->node->cfg.dead_after_us / 2;

	(void)src, (void)usec;
	sample_ports(a);
	complete_failures(a);
	sample_session(a);
	sample_windows(a);
	if (a->failed)
		join_anew(a);
	us = us < SAMPLE_MIN_US ? SAMPLE_MIN_US : us > SAMPLE_MAX_US ? SAMPLE_MAX_US : us;
	schedule_sample(a, (a->awaited || a->nfailures || a->failed) && us > SAMPLE_BUSY_US
				   ? SAMPLE_BUSY_US
				   : us);
	return 0;
}

/*
 * The node has no controllers and never had: an input that stands still is resumed as soon as it is
 * heard again. What was lost meanwhile is not known.
 */
static int on_sample_alone(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node_agent *a = ctx;
	struct bl_fence_port in[BL_AGENT_PORTS_MAX];
	int n = bl_fence_inputs(&a->node->fence, in, BL_AGENT_PORTS_MAX), i;

	(void)src, (void)usec;
	sample_awaited(a, in, n);
	bl_apart_sample(&a->apart, a->node, in, n, bl_mono_ns());
	for (i = 0; i < n && !bl_fence_epoch(&a->node->fence); i++)
		if (in[i].held && in[i].live)
			bl_fence_resume(&a->node->fence, 0, in[i].port, in[i].death);
	schedule_sample(a, ALONE_US);
	return 0;
}

static void schedule_sample(struct bl_node_agent *a, uint64_t us)
{
	sd_event_source_disable_unref(a->timer);
	a->timer = NULL;
	sd_event_add_time_relative(a->node->srv->ev, &a->timer, CLOCK_MONOTONIC, us, 1,
				   a->agent ? on_sample : on_sample_alone, a);
}

/* ---- the node's side ---- */

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

/* Without TLS, whoever is on the way to a controller can pass for it. */
static int check_insecure(const struct bl_ctl_peers *c, struct bl_err *err)
{
	unsigned int i;

	for (i = 0; i < c->n && !c->insecure; i++)
		if (!bl_session_is_local(c->addr[i]))
			return bl_fail(err, EPERM,
				       "the controller %s is on another machine, and anybody on "
				       "the "
				       "way could pass for it: give tls: { ca, cert, key } "
				       "(`barline "
				       "pki` makes the files), or say insecure: true or --insecure",
				       c->addr[i]);
	return 0;
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
	a->epoch = cfg.epoch = bl_fence_epoch(&n->fence);
	for (i = 0; i < c->n; i++)
		snprintf(cfg.controllers[i], sizeof(cfg.controllers[i]), "%s", c->addr[i]);
	if (*c->ca || *c->cert || *c->key)
		rc = open_tls(a, c, err);
	else
		rc = check_insecure(c, err);
	cfg.tls = a->tls;
	if (!rc && c->n)
		rc = bl_agent_new(&a->agent, n->srv->ev, &cfg, &ops, a, err);
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
	schedule_sample(a, 0);
	return 0;
}
