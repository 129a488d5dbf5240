// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See node_agent.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock_core.h"
#include "core/wire_core.h"
#include "maps/failure_abi.h"
#include "agent_watch.h"
#include "loader/admission/apart.h"
#include "node_agent.h"
#include "fence.h"
#include "stuck.h"

#define LOOK_MIN_US  500
#define LOOK_BUSY_US 1000
#define LOOK_MAX_US  100000
#define ALONE_US     100000 /* without controllers: how soon an input goes on that is heard again */
/* no session for so long is said; a leader that is replaced takes as long as its lease */
#define ALONE_NS      5000000000ULL
#define AWAY_SAID_NS  200000000ULL  /* for a session with who leads */
#define AWAY_SAVED_NS 1000000000ULL /* for who leads, to save it */
/*
 * and at least ten times dead_after: how long a switch with new registers waits for who was there
 * before
 */
#define START_WAIT_NS 1000000000ULL
#define STUCK_LOOK_NS 50000000ULL /* from one look at windows that stand to the next */
#define ORDERS_MAX                                                                    \
	64 /* failures that a host has not completed; the controller has no more open \
	    */

/**
 * struct order - FAIL that was heard, and is not in the endpoints' page as a whole. @failed:
 * @nfailed.
 */
struct order {
	uint64_t number;
	struct bl_agent_failed *failed;
	unsigned int nfailed;
};

/**
 * struct bl_node_agent - @agent: NULL: there are no controllers. @watch: the inputs at the last
 * look. @awaited: how many of them stood still, or were behind. @order: what could not be told to
 * the endpoints yet. @failed: this node was announced as failed, and has not joined anew.
 * @forwards, @cannot_forward, @cannot_tell: the log says so already. @led_ns: CLOCK_MONOTONIC of
 * the last look that found a session with a leader. @alone: that there is none was said. @old: by
 * endpoint slot: incarnation + 1 of who was there then; 0: nobody.
 */
struct bl_node_agent {
	struct bl_node *node;
	struct bl_agent *agent;
	struct bl_session_tls *tls;
	sd_event_source *timer;
	uint64_t epoch;
	struct bl_agent_watch watch;
	unsigned int awaited; /* inputs that stand still, or are behind */
	struct order order[ORDERS_MAX];
	unsigned int nfences;
	uint64_t led_ns, stuck_ns;
	uint64_t failed_ns;                /* CLOCK_MONOTONIC; @failed since then */
	uint64_t opened_ns;                /* CLOCK_MONOTONIC */
	struct bl_stuck stuck[BL_EPS_MAX]; /* windows at the last look, at @stuck_ns */
	bool failed, rejoining, alone, forwards, cannot_forward, cannot_tell;
	uint32_t old[BL_EPS_MAX];
	struct bl_apart apart;
};

static void look_in(struct bl_node_agent *a, uint64_t us);

/* ---- what the node is ---- */

static struct bl_agent_port agent_port(const struct bl_fence_port *p)
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

/* An address by which others may know what comes from here. */
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
 * Those of endpoints come first, whether the NIC has them still or not: an endpoint keeps the one
 * that it was given, and what it sent is known by that. Also of dead ones, which are about to be
 * announced.
 */
static void tell_addrs(const struct bl_node *n, struct bl_agent_node *v)
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
	count = bl_fence_inputs(n, in, BL_AGENT_PORTS_MAX);
	for (k = 0; k < count; k++) {
		bl_agent_watch_sample(&a->watch, &in[k]); /* what is said here is not said again */
		v->port[v->nports++] = agent_port(&in[k]);
	}
	if (!v->host)
		return;
	tell_addrs(n, v);
	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && !n->ep[k].dead)
			v->endpoint[v->nendpoints++] = n->ep[k].info.port;
}

/* ---- orders ---- */

static void on_epoch(void *ctx, uint64_t epoch)
{
	struct bl_node_agent *a = ctx;
	int rc = bl_fence_raise(a->node, epoch);

	if (rc)
		bl_log(BL_LOG_ERR, "%s: epoch %" PRIu64 " is not taken: %s", a->node->meta.name,
		       epoch, strerror(-rc));
	a->epoch = epoch;
}

static int on_bar(void *ctx, const uint32_t *port, unsigned int n)
{
	struct bl_node_agent *a = ctx;

	look_in(a, LOOK_BUSY_US);
	return bl_fence_bar(a->node, a->epoch, port, n);
}

static int on_freeze(void *ctx, uint32_t port, struct bl_agent_port *p)
{
	struct bl_node_agent *a = ctx;
	struct bl_fence_port v;
	int rc = bl_fence_freeze(a->node, a->epoch, port, &v);

	if (rc)
		return rc;
	bl_agent_watch_sample(&a->watch, &v);
	*p = agent_port(&v);
	look_in(a, LOOK_BUSY_US);
	return 0;
}

/*
 * By its T: the next endpoint at that port may be dead by now, too, and RESUME is given again to
 * whose answer got lost. Nobody has been told of that one.
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
		rc = bl_fence_resume(a->node, a->epoch, in[i].port, in[i].death);
		/* ENOENT: it was resumed before, and may have died again since */
		if (rc && rc != -ENOENT)
			return rc;
	}
	for (i = 0; i < n; i++)
		if (v[i].here && v[i].port)
			resume_endpoint(a->node, &v[i]);
	look_in(a, LOOK_BUSY_US);
	return 0;
}

static uint64_t bus_time(const struct bl_node *n)
{
	return bl_clock_at(n->clock, bl_mono_ns());
}

static int announce(struct bl_node_agent *a, uint64_t number, const struct bl_agent_failed *v)
{
	struct bl_failure f = { .epoch = a->epoch,
				.order = number,
				.port = v->port,
				.life = v->life,
				.why = v->why,
				.ts = v->t == BL_AGENT_NO_C ? 0
							    : bl_ext48(v->t, bus_time(a->node)) };
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < v->naddrs; i++) {
		memcpy(f.addr, v->addr[i], sizeof(f.addr));
		rc = bl_failure_announce(a->node, &f);
	}
	return rc;
}

/*
 * Tells the endpoints who failed; once more what they were told before does no harm. What cannot be
 * told is not done: whoever has not heard of it would deliver what others discard. Returns whether
 * it could.
 */
static bool tell_endpoints(struct bl_node_agent *a, const struct order *o)
{
	struct bl_agent_total t;
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < o->nfailed; i++)
		rc = announce(a, o->number, &o->failed[i]);
	if (!rc) {
		a->cannot_tell = false;
		return true;
	}
	bl_agent_read(a->agent, &t);
	if (!a->cannot_tell)
		bl_log(BL_LOG_ERR,
		       "%s: cannot announce failure %" PRIu64 " to the endpoints: %s; it is tried "
		       "again, and until then not reported "
		       "as done: after %u ms the controller "
		       "takes this host for failed",
		       a->node->meta.name, o->number, strerror(-rc), t.answer_ms);
	a->cannot_tell = true;
	return false;
}

/* Says DONE of what is in the page. */
static void check_fences(struct bl_node_agent *a)
{
	unsigned int i, left = 0;

	for (i = 0; i < a->nfences; i++) {
		if (!tell_endpoints(a, &a->order[i])) {
			a->order[left++] = a->order[i];
			continue;
		}
		free(a->order[i].failed);
		bl_agent_done(a->agent, a->order[i].number);
	}
	a->nfences = left;
}

static void on_fail(void *ctx, uint64_t number, const struct bl_agent_failed *v, unsigned int n)
{
	struct bl_node_agent *a = ctx;
	struct order o = { .number = number, .nfailed = n };
	unsigned int i;

	if (a->node->cfg.role != BL_ROLE_HOST) {
		bl_agent_done(a->agent, number);
		return;
	}
	o.failed = calloc(n + 1, sizeof(*v));
	if (!o.failed) {
		bl_log(BL_LOG_ERR, "%s: out of memory: failure %" PRIu64 " is not dealt with",
		       a->node->meta.name, number);
		return;
	}
	memcpy(o.failed, v, n * sizeof(*v));
	for (i = 0; i < n; i++)
		if (v[i].here && v[i].port && v[i].why == BL_WHY_LEFT)
			bl_endpoint_left_heard(a->node, v[i].port, v[i].life);
	/* more than can be open: the oldest one cannot be awaited any more */
	if (a->nfences == ORDERS_MAX) {
		free(a->order[0].failed);
		memmove(a->order, a->order + 1, --a->nfences * sizeof(*a->order));
	}
	a->order[a->nfences++] = o;
	check_fences(a);
	look_in(a, LOOK_BUSY_US);
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
	       "endpoints that it has now are "
	       "gone, or put out",
	       a->node->meta.name, number);
	for (k = 0; k < BL_EPS_MAX; k++)
		a->old[k] = a->node->ep[k].used ? 1U + a->node->ep[k].info.life : 0;
	look_in(a, 0);
}

static void on_forward(void *ctx, const struct bl_forward *f)
{
	uint8_t buf[BL_FORWARD_BUF];
	struct bl_node_agent *a = ctx;
	struct bl_forward answer;

	if (a->node->cfg.role == BL_ROLE_HOST && !a->failed &&
	    bl_forward_run(a->node, f, &answer, buf))
		bl_agent_forward(a->agent, &answer);
}

/* It is told of even if it is not here: whoever waits for it has not heard that it is gone. */
static void on_put_out(void *ctx, uint16_t port, uint16_t life)
{
	struct bl_node_agent *a = ctx;
	const struct bl_agent_proc p = { .port = port,
					 .life = life,
					 .why = BL_WHY_UNREACHABLE,
					 .t = bus_time(a->node) & BL_TS_MASK };
	unsigned int k;

	if (a->node->cfg.role != BL_ROLE_HOST || a->failed)
		return;
	for (k = 0; k < BL_EPS_MAX; k++) {
		const struct bl_ep *ep = &a->node->ep[k];

		if (!ep->used || ep->info.port != port || ep->info.life != life)
			continue;
		if (!ep->dead)
			bl_endpoint_put_out(a->node, 1ULL << k, BL_OUT_UNREACHABLE);
		return; /* of a dead one it was told */
	}
	bl_agent_proc_down(a->agent, &p);
}

/* As `barline admission set` on this node; the daemon's next start sets what its file says. */
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
		return bl_fail(err, EINVAL,
			       "policy \"%.20s\": this version knows none of that name", policy);
	snprintf(ref.dir, sizeof(ref.dir), "%s", n->dir);
	rc = bl_netns_enter(n->cfg.netns, &old, err);
	if (rc)
		return rc;
	rc = bl_admission_change(&ref, &set, said, size, err);
	bl_netns_leave(old);
	if (!rc && !check)
		bl_log(BL_LOG_INFO, "%s: admission, by order of the controller: %s", n->meta.name,
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

/* ---- looking ---- */

/*
 * Endpoints of before have as long to hear that their host was announced as they may hold anybody
 * up; then they are put out. No process that stands still, or has no use for the reliable stream,
 * keeps its host out of the rack.
 */
static void put_out_old(struct bl_node_agent *a)
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
 * When all that was there is gone or put out. Whoever is put out and lives need not have heard of
 * it: nothing of it is taken any more, and what it may deliver still is what its line says, not
 * what the host hears from now on (lib/stale.c).
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
	put_out_old(a);
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
 * A switch whose registers are new does not know who sent what before: its C stands still until
 * every port was heard. A port where nobody comes for this long is taken for one that nobody is
 * behind.
 */
static void look_at_awaited(struct bl_node_agent *a, const struct bl_fence_port *in, int n)
{
	uint64_t wait = 10000ULL * a->node->cfg.dead_after_us;
	int i;

	if (bl_mono_ns() - a->opened_ns < (wait > START_WAIT_NS ? wait : START_WAIT_NS))
		return;
	for (i = 0; i < n; i++)
		if (in[i].awaited && !bl_fence_empty(a->node, bl_fence_epoch(a->node), in[i].port))
			bl_log(BL_LOG_INFO,
			       "%s: nobody was heard at port %u since the programs were started: "
			       "the commit barrier does not wait for it any more",
			       a->node->meta.name, in[i].port);
}

static void look_at_ports(struct bl_node_agent *a)
{
	struct bl_fence_port in[BL_AGENT_PORTS_MAX];
	int n = bl_fence_inputs(a->node, in, BL_AGENT_PORTS_MAX), i;
	bool changed = false;

	look_at_awaited(a, in, n);
	bl_apart_sample(&a->apart, a->node, in, n, bl_mono_ns());
	for (a->awaited = 0, i = 0; i < n; i++) {
		struct bl_agent_port p = agent_port(&in[i]);
		bool known = a->watch.port[in[i].port].neighbour == in[i].neighbour;

		a->awaited += in[i].held || p.state == BL_AGENT_BEHIND;
		switch (bl_agent_watch_sample(&a->watch, &in[i])) {
		case BL_AGENT_SEEN_NOTHING:
			break;
		case BL_AGENT_SEEN_SILENT:
			bl_log(BL_LOG_WARN,
			       "%s: what comes in at port %u from node %08x stands still",
			       a->node->meta.name, p.port, p.neighbour);
			if (known)
				bl_agent_link_down(a->agent, &p);
			/* the controller does not know that there is such a link */
			changed |= !known;
			break;
		case BL_AGENT_SEEN_LIVE:
		case BL_AGENT_SEEN_OTHER:
			changed = true;
		}
		/*
		 * nobody resumes the inputs of a node that failed but itself; its C is nobody's
		 * business until it has joined anew
		 */
		if (a->failed && in[i].held)
			bl_fence_resume(a->node, a->epoch, in[i].port, in[i].death);
	}
	if (changed)
		bl_agent_changed(a->agent);
}

/*
 * Nothing that a node does shows that its controllers are out of reach, or do not take it, before
 * something fails.
 */
static void look_at_session(struct bl_node_agent *a)
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
		       "%s: no session with a controller that leads, so what fails is not settled: "
		       "%s",
		       a->node->meta.name, *t.trouble ? t.trouble : "none answers");
	}
}

static void say_stuck(void *ctx, const struct bl_agent_stuck *s)
{
	struct bl_node_agent *a = ctx;
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, s->addr, text, sizeof(text));
	bl_log(BL_LOG_WARN,
	       "%s: what endpoint %u sends reliably to [%s]:%u does not get through, by no way, "
	       "and holds the commit barrier: the controller has to put one of the two out",
	       a->node->meta.name, s->from.port, text, s->port);
	bl_agent_stuck(a->agent, s);
}

static void look_at_windows(struct bl_node_agent *a)
{
	uint64_t now = bl_mono_ns();
	struct bl_agent_total t;

	if (a->node->cfg.role != BL_ROLE_HOST || a->failed || now - a->stuck_ns < STUCK_LOOK_NS)
		return;
	bl_agent_read(a->agent, &t);
	a->stuck_ns = now;
	if (t.welcome && t.stuck_ms)
		bl_stuck_find(a->node, a->stuck, t.stuck_ms * 1000000ULL, say_stuck, a);
}

static int on_look(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node_agent *a = ctx;
	uint64_t us = a->node->cfg.dead_after_us / 2;

	(void)src, (void)usec;
	look_at_ports(a);
	check_fences(a);
	look_at_session(a);
	look_at_windows(a);
	if (a->failed)
		join_anew(a);
	us = us < LOOK_MIN_US ? LOOK_MIN_US : us > LOOK_MAX_US ? LOOK_MAX_US : us;
	look_in(a,
		(a->awaited || a->nfences || a->failed) && us > LOOK_BUSY_US ? LOOK_BUSY_US : us);
	return 0;
}

/*
 * Without controllers, now or ever: what stands still goes on as soon as it is heard again, and
 * nobody can say what was lost meanwhile.
 */
static int on_look_alone(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node_agent *a = ctx;
	struct bl_fence_port in[BL_AGENT_PORTS_MAX];
	int n = bl_fence_inputs(a->node, in, BL_AGENT_PORTS_MAX), i;

	(void)src, (void)usec;
	look_at_awaited(a, in, n);
	bl_apart_sample(&a->apart, a->node, in, n, bl_mono_ns());
	for (i = 0; i < n && !bl_fence_epoch(a->node); i++)
		if (in[i].held && in[i].live)
			bl_fence_resume(a->node, 0, in[i].port, in[i].death);
	look_in(a, ALONE_US);
	return 0;
}

static void look_in(struct bl_node_agent *a, uint64_t us)
{
	sd_event_source_disable_unref(a->timer);
	a->timer = NULL;
	sd_event_add_time_relative(a->node->srv->ev, &a->timer, CLOCK_MONOTONIC, us, 1,
				   a->agent ? on_look : on_look_alone, a);
}

/* ---- the node's side ---- */

void bl_node_agent_endpoints(struct bl_node *n)
{
	if (n->agent && n->agent->agent)
		bl_agent_changed(n->agent->agent);
}

void bl_node_agent_proc_down(struct bl_node *n, const struct bl_ep_slot *ep, uint8_t why,
			     uint64_t t)
{
	const struct bl_agent_proc p = {
		.port = ep->port, .life = ep->life, .why = why, .t = t & BL_TS_MASK
	};

	bl_agent_proc_down(n->agent->agent, &p);
}

void bl_node_agent_forward(struct bl_node *n, const struct bl_forward *f)
{
	struct bl_node_agent *a = n->agent;
	char text[INET6_ADDRSTRLEN] = "?";

	if (!a || (!a->agent && a->cannot_forward))
		return;
	inet_ntop(AF_INET6, f->to, text, sizeof(text));
	if (!a->agent) {
		a->cannot_forward = true;
		bl_log(BL_LOG_WARN,
		       "%s: what endpoint %u sends reliably to [%s]:%u does not seem to pass, and "
		       "holds the commit barrier; there is no controller that could forward it",
		       n->meta.name, f->sport, text, f->port);
		return;
	}
	if (!a->forwards)
		bl_log(BL_LOG_WARN,
		       "%s: what endpoint %u sends reliably to [%s]:%u does not seem to pass: the "
		       "controller is asked to forward it; is there a way between the two?",
		       n->meta.name, f->sport, text, f->port);
	a->forwards = true;
	bl_agent_forward(a->agent, f);
}

void bl_node_agent_away(struct bl_node *n, uint32_t ms)
{
	struct bl_agent *a = n->agent ? n->agent->agent : NULL;
	uint64_t begun = bl_mono_ns();
	struct bl_agent_total t = { 0 };

	if (!a)
		return;
	bl_agent_away(a, ms);
	/* the loop has ended: it is run until the answer has come */
	do {
		if (sd_event_run(n->srv->ev, 10000) < 0)
			break;
		bl_agent_read(a, &t);
	} while (!bl_agent_away_known(a) &&
		 bl_mono_ns() - begun < (t.welcome ? AWAY_SAVED_NS : AWAY_SAID_NS));
	if (!bl_agent_away_known(a))
		bl_log(BL_LOG_WARN,
		       "%s: no controller has saved that this daemon is away for a while (%s): if "
		       "another node fails before the next daemon runs, this one may be taken for "
		       "failed",
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
	sd_event_source_disable_unref(a->timer);
	bl_agent_free(a->agent);
	bl_session_tls_free(a->tls);
	while (a->nfences)
		free(a->order[--a->nfences].failed);
	free(a);
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
	a->epoch = cfg.epoch = bl_fence_epoch(n);
	for (i = 0; i < c->n; i++)
		snprintf(cfg.controllers[i], sizeof(cfg.controllers[i]), "%s", c->addr[i]);
	if (*c->ca || *c->cert || *c->key)
		rc = bl_session_tls_new(&a->tls, c->ca, c->cert, c->key, err);
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
	if (n->cfg.role == BL_ROLE_HOST && c->n)
		bl_endpoints_dead(n);
	look_in(a, 0);
	return 0;
}
