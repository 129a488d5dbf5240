// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints from before this daemon's start. They have no connection until their library makes one
 * (lib/again.c).
 *
 * A process is validated as the one that attached by its pid and its start time, as the kernel
 * reports them for the connection. Port and incarnation say which of its endpoints is meant.
 *
 * An endpoint whose process ended while no daemon ran is released once the agent is there, which
 * has to report why it ended. A process that left by bl_exit() and lives on is found by sampling
 * its line.
 */
#include "loader/order/endpoint_again.h"

#include <errno.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#include <bpf/bpf.h>

#include "base/event.h"
#include "base/log.h"
#include "base/proc.h"
#include "core/clock_core.h"
#include "loader/node_priv.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_left.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/ep.h"
#include "loader/order/slot_map.h"

#define SAMPLE_US 100000

/*
 * The earlier daemon had put the endpoint out, or released it, and may have ended after the first
 * step. Decisions that are in the line are kept; the others are made now.
 */
static void adopt_dead(struct bl_ep *ep)
{
	struct bl_node *n = ep->node;
	uint64_t t[BL_EPS_MAX];
	enum bl_out_why why;
	uint64_t out = bl_ep_out(n, ep->slot, &why);

	ep->settled = out == BL_OUT_OVER;
	if (out && why) {
		ep->dead = true;
		ep->t = ep->settled ? 0 : out;
	} else if (!ep->left) {
		bl_ep_put_out(n, 1ULL << ep->slot, BL_OUT_ANSWER, t);
		bl_endpoint_out_at(ep, t[ep->slot]);
	}
}

static void adopt_endpoint(struct bl_node *n, uint32_t key, const struct bl_ep_slot *i)
{
	struct bl_ep *ep = &n->ep[i->slot % BL_EPS_MAX];
	uint32_t slot = i->slot;
	int rc;

	if (slot >= BL_EPS_MAX || i->port != n->host_cfg.port_base + key || ep->used) {
		struct bl_ep_slot none = {};

		bl_log(BL_LOG_WARN, "%s: entry %u of the map %s is invalid and was removed",
		       n->meta.name, key, BL_MAP_EPS);
		bpf_map_update_elem(n->eps_fd, &key, &none, BPF_ANY);
		return;
	}
	ep->node = n;
	ep->slot = slot;
	ep->info = *i;
	ep->info.name[sizeof(ep->info.name) - 1] = 0;
	ep->conn = ep->pidfd = ep->page_fd = -1;
	ep->used = true;
	rc = bl_ep_adopt_page(ep);
	if (rc)
		bl_log(BL_LOG_ERR, "%s: cannot map the page of endpoint %u: %s", n->meta.name,
		       i->port, strerror(-rc));
	/*
	 * The pidfd comes first: then the start time that is read belongs to the process that the
	 * pidfd holds, or to none.
	 */
	ep->pidfd = i->pid ? pidfd_open((pid_t)i->pid, 0) : -1;
	ep->left = ep->pidfd < 0 || bl_proc_started((pid_t)i->pid) != i->start_time;
	if (ep->info.active == BL_EP_DEAD)
		adopt_dead(ep);
	/* bl_endpoints_adopted() releases it. */
	if (ep->left)
		return;
	if (bl_endpoint_watch(ep, -1) < 0)
		bl_log(BL_LOG_WARN, "%s: cannot watch endpoint %u", n->meta.name, i->port);
	bl_log(BL_LOG_INFO, "%s: endpoint %u (%s, pid %u) continues", n->meta.name, i->port,
	       ep->info.name, i->pid);
}

void bl_endpoints_adopt(struct bl_node *n)
{
	struct bl_ep_slot i;
	uint32_t k;

	for (k = 0; k < BL_PORT_COUNT; k++)
		if (!bpf_map_lookup_elem(n->eps_fd, &k, &i) && (i.active || i.port))
			adopt_endpoint(n, k, &i);
	for (k = 0; k < BL_EPS_MAX; k++) {
		if (n->ep[k].used)
			continue;
		bl_ep_drop_page(n, k);
		bl_ep_clear_wake(n, k);
		bl_slot_map_remove(n, BL_SLOT_RING, k);
	}
}

static bool is_unconnected(const struct bl_ep *ep)
{
	return ep->used && !ep->left && ep->conn < 0;
}

static int on_sample(sd_event_source *src, uint64_t usec, void *ctx);

static void schedule_sample(struct bl_node *n)
{
	unsigned int k;

	n->again_src = sd_event_source_disable_unref(n->again_src);
	for (k = 0; k < BL_EPS_MAX && !is_unconnected(&n->ep[k]); k++)
		;
	if (k < BL_EPS_MAX)
		sd_event_add_time_relative(n->srv->ev, &n->again_src, CLOCK_MONOTONIC, SAMPLE_US,
					   1000, on_sample, n);
}

static int on_sample(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_node *n = ctx;
	unsigned int k;

	(void)src, (void)usec;
	for (k = 0; k < BL_EPS_MAX; k++)
		if (is_unconnected(&n->ep[k]) && bl_ep_bye(n, k))
			bl_endpoint_release(&n->ep[k], "it ended its membership without a "
						       "connection");
	schedule_sample(n);
	return 0;
}

static struct bl_ep *find_endpoint(struct bl_node *n, const struct bl_again_req *q)
{
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && !n->ep[k].left && n->ep[k].info.port == q->port &&
		    n->ep[k].info.life == q->life)
			return &n->ep[k];
	return NULL;
}

/*
 * Finds the endpoint that the connection is to belong to. Returns 0, or an errno for struct
 * bl_again_rep.
 */
static int validate_again_req(struct bl_node *n, pid_t pid, const struct bl_again_req *q,
			      struct bl_ep **ep)
{
	uint64_t started;

	if (q->abi_version != BL_ABI_VERSION)
		return EPROTO;
	*ep = find_endpoint(n, q);
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
	rep.error = validate_again_req(n, who.pid, q, &ep);
	if (!rep.error && bl_endpoint_connect(ep, conn) < 0)
		rep.error = EAGAIN;
	if (rep.error)
		bl_log(BL_LOG_WARN,
		       "%s: process %d asked to be endpoint %u (life %u) again and was refused: %s",
		       n->meta.name, who.pid, q->port, q->life, strerror(rep.error));
	else
		bl_event(BL_EVENT(ENDPOINT_JOINED, INFO, n->meta.name, .endpoint = ep->info.port,
				  .pid = ep->info.pid, .process = ep->info.name),
			 "%s: endpoint %u (%s, pid %u) is connected again", n->meta.name,
			 ep->info.port, ep->info.name, ep->info.pid);
	/*
	 * A process that does not wait for the answer has closed the connection, which is noticed
	 * later.
	 */
	(void)!send(conn, &rep, sizeof(rep), MSG_DONTWAIT | MSG_NOSIGNAL);
	return !rep.error;
}

void bl_endpoints_adopted(struct bl_node *n)
{
	unsigned int k;

	bl_endpoints_report_left(n);
	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && n->ep[k].left)
			bl_endpoint_release(&n->ep[k], "its process ended while no daemon ran");
	schedule_sample(n);
}
