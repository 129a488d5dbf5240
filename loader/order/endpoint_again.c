// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints of before this daemon's start: they have no connection to it, until their library makes
 * one (lib/again.c).
 *
 * A process is believed to be the one that had registered by its pid and its start time, as the
 * kernel tells them of the connection. Port and life say which of its endpoints is meant.
 *
 * Whose process ended while no daemon ran is taken down when the agent is there, which has to say
 * how it went. One that leaves by bl_exit() and lives on can only be found by looking at its line.
 *
 * Who left in order has no slot any more when the rack hears of it, and a daemon may be killed in
 * between. So the entry of its port says that it left, and T, until the controller names it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <bpf/bpf.h>
#include "core/clock_core.h"
#include "endpoint_pages.h"
#include "node_agent.h"

#define LOOK_US 100000

static bool unconnected(const struct bl_ep *ep)
{
	return ep->used && !ep->left && ep->conn < 0;
}

static int on_look(sd_event_source *src, uint64_t usec, void *ctx);

static void look_again(struct bl_node *n)
{
	unsigned int k;

	n->again_src = sd_event_source_disable_unref(n->again_src);
	for (k = 0; k < BL_EPS_MAX && !unconnected(&n->ep[k]); k++)
		;
	if (k < BL_EPS_MAX)
		sd_event_add_time_relative(n->srv->ev, &n->again_src, CLOCK_MONOTONIC, LOOK_US,
					   1000, on_look, n);
}

static int on_look(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node *n = ctx;
	unsigned int k;

	(void)src, (void)usec;
	for (k = 0; k < BL_EPS_MAX; k++)
		if (unconnected(&n->ep[k]) && bl_ep_bye(n, k))
			bl_endpoint_release(&n->ep[k], "it says so, and has no connection");
	look_again(n);
	return 0;
}

static struct bl_ep *find(struct bl_node *n, const struct bl_again_req *q)
{
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && !n->ep[k].left && n->ep[k].info.port == q->port &&
		    n->ep[k].info.life == q->life)
			return &n->ep[k];
	return NULL;
}

/* Whose connection @conn is to be; 0, or an errno for struct bl_again_rep. */
static int judge(struct bl_node *n, pid_t pid, const struct bl_again_req *q, struct bl_ep **ep)
{
	uint64_t started;

	if (q->abi_version != BL_ABI_VERSION)
		return EPROTO;
	*ep = find(n, q);
	if (!*ep)
		return ENOENT;
	if ((*ep)->dead)
		return ESTALE;
	if (pid <= 0 || (uint32_t)pid != (*ep)->info.pid ||
	    bl_proc_stat(pid, BL_PROC_STARTED, &started) || started != (*ep)->info.start_time)
		return EPERM;
	return (*ep)->conn >= 0 ? EBUSY : 0;
}

bool bl_endpoint_again(struct bl_node *n, int conn, const struct bl_again_req *q)
{
	struct bl_again_rep rep = { .magic = BL_SOCK_AGAIN };
	socklen_t len = sizeof(struct ucred);
	struct ucred who = {};
	struct bl_ep *ep = NULL;

	getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &who, &len);
	rep.error = judge(n, who.pid, q, &ep);
	if (!rep.error && bl_endpoint_connect(ep, conn) < 0)
		rep.error = EAGAIN;
	if (rep.error)
		bl_log(BL_LOG_WARN,
		       "%s: process %d asked to be endpoint %u (life %u) again, and is not: %s",
		       n->meta.name, who.pid, q->port, q->life, strerror(rep.error));
	else
		bl_log(BL_LOG_INFO, "%s: endpoint %u (%s, pid %u) is connected again", n->meta.name,
		       ep->info.port, ep->info.name, ep->info.pid);
	/* whoever does not wait for it has closed the connection, and that is heard of */
	(void)!send(conn, &rep, sizeof(rep), MSG_DONTWAIT | MSG_NOSIGNAL);
	return !rep.error;
}

/* The entry of @port, if the rack is still to hear of somebody who left it in order. */
static bool untold(struct bl_node *n, unsigned int port, struct bl_ep_slot *s)
{
	uint32_t key = port - n->host_cfg.port_base;

	return key < BL_PORT_COUNT && !bpf_map_lookup_elem(n->eps_fd, &key, s) &&
	       s->active == BL_EP_FREE && s->left && s->start_time;
}

/* From now on the entry says T, or 0: the rack has heard. */
static void note(struct bl_node *n, unsigned int port, struct bl_ep_slot *s, uint64_t t)
{
	uint32_t key = port - n->host_cfg.port_base;

	s->start_time = t;
	if (bpf_map_update_elem(n->eps_fd, &key, s, BPF_ANY))
		bl_log(BL_LOG_ERR, "%s: cannot note that an endpoint left port %u: %s",
		       n->meta.name, port, strerror(errno));
}

void bl_endpoint_left(struct bl_node *n, uint16_t port, uint16_t life, uint64_t t)
{
	const struct bl_ep_slot who = { .port = port, .life = life };
	struct bl_ep_slot s;

	/* first: what the controller hears, the next daemon says alike */
	if (untold(n, port, &s) && s.left == life)
		note(n, port, &s, t);
	bl_node_agent_proc_down(n, &who, BL_WHY_LEFT, t);
	bl_node_agent_endpoints(n);
}

void bl_endpoint_left_heard(struct bl_node *n, uint16_t port, uint16_t life)
{
	struct bl_ep_slot s;

	if (untold(n, port, &s) && s.left == life)
		note(n, port, &s, 0);
}

/* Of whom the daemon before may not have told anybody. */
static void tell_who_left(struct bl_node *n)
{
	struct bl_ep_slot s;
	unsigned int k;

	for (k = 0; n->agent && n->cfg.ctl.n && k < BL_PORT_COUNT; k++) {
		uint16_t port = (uint16_t)(n->host_cfg.port_base + k);

		if (!untold(n, port, &s))
			continue;
		if (s.start_time == BL_EP_LEFT_NOW)
			s.start_time = bl_clock_at(n->clock, bl_mono_ns());
		bl_log(BL_LOG_INFO,
		       "%s: endpoint %u left in order, and the rack may not have heard",
		       n->meta.name, port);
		bl_endpoint_left(n, port, s.left, s.start_time);
	}
}

void bl_endpoints_adopted(struct bl_node *n)
{
	unsigned int k;

	tell_who_left(n);
	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && n->ep[k].left)
			bl_endpoint_release(&n->ep[k], "its process ended while no daemon ran");
	look_again(n);
}
