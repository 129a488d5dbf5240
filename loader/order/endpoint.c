// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The life of an endpoint after its process has attached (endpoint_attach.c).
 *
 * An endpoint lives until its connection closes or its process dies. The process is watched by a
 * pidfd, because a child that inherited the connection keeps that open. The order of steps matters
 * to the programs: a slot is made active when everything else of it is there, and is made inactive
 * first.
 *
 * An endpoint whose process is gone while its reliable window is not empty stays, as dead. The
 * window holds the commit barrier of the rack, since some receivers may have what others have not.
 * ACKs that are still under way may empty it. Otherwise bl_endpoint_resume() settles it, once it is
 * known what becomes of the rest.
 *
 * With failure controllers every endpoint that goes is announced in the rack, since others may wait
 * for its ACKs. Its window is frozen before its T is read from it; otherwise ACKs that are late
 * would raise the commit barrier above T. The endpoint stays, as dead, until it is resumed, and its
 * port is not reused before.
 *
 * The daemon may expel an endpoint whose process lives (bl_endpoint_put_out()). The process may
 * go on writing into its pages, so nothing that counts for others is read from there any more;
 * core/order/line_core.h has the order of the steps. The slot is free when the process is gone.
 */
#include "loader/order/endpoint.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "base/event.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/order/commit_core.h"
#include "core/order/line_core.h"
#include "loader/node_priv.h"
#include "loader/order/endpoint_left.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/ep.h"
#include "loader/order/events.h"
#include "loader/order/forward.h"
#include "loader/order/slot_map.h"

/*
 * No timestamp is so far ahead of the clock. A process that claims a later one did not leave in
 * order.
 */
#define LEAVE_AHEAD_NS 1000000000ULL

uint64_t bl_proc_started(pid_t pid)
{
	uint64_t t;

	bl_proc_stat(pid, BL_PROC_STARTED, &t);
	return t;
}

uint32_t bl_ep_key(const struct bl_node *n, const struct bl_ep_slot *i)
{
	return (uint32_t)i->port - n->host_cfg.port_base;
}

struct bl_ep *bl_endpoint_at(struct bl_node *n, uint32_t port)
{
	int k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && n->ep[k].info.port == port)
			return &n->ep[k];
	return NULL;
}

/*
 * Frees the slot. Its entry keeps only the incarnation that programs still answer for.
 * @untold: 0, or BL_EP_LEFT_NOW: the rack has not heard yet that this incarnation left.
 */
static void free_slot(struct bl_ep *ep, uint64_t untold)
{
	struct bl_node *n = ep->node;
	uint32_t key = bl_ep_key(n, &ep->info);
	struct bl_ep_slot none = { .left = ep->info.left, .start_time = untold };
	int rc, dropped;

	memcpy(none.addr, ep->info.addr, sizeof(none.addr));
	rc = bpf_map_update_elem(n->eps_fd, &key, &none, BPF_ANY) ? -errno : 0;
	/* whatever failed before: nothing refers to the page once the slot is free */
	dropped = bl_ep_drop_page(n, ep->slot);
	if (rc || dropped)
		bl_log(BL_LOG_ERR, "%s: cannot remove endpoint %u: %s", n->meta.name, ep->info.port,
		       strerror(rc ? -rc : -dropped));
	memset(ep, 0, sizeof(*ep));
	ep->conn = ep->pidfd = ep->page_fd = -1;
}

static const char *out_why_text(enum bl_out_why why)
{
#define BL_X(name, word, text) [BL_OUT_##name] = text,
	static const char *const texts[] = { BL_OUT_WHYS(BL_X) };
#undef BL_X

	return why < BL_OUT_WHY_COUNT ? texts[why] : "of a reason that this version does not know";
}

/* Returns the reason that the rack is told (enum bl_why), from the one in the endpoint's line. */
static uint8_t announced_why(const struct bl_ep *ep)
{
	static const uint8_t gone[BL_OUT_WHY_COUNT] = { [BL_OUT_GONE] = BL_WHY_DIED,
							[BL_OUT_IN_FLIGHT] = BL_WHY_IN_FLIGHT,
							[BL_OUT_WINDOW] = BL_WHY_WINDOW,
							[BL_OUT_RING] = BL_WHY_RING,
							[BL_OUT_UNREACHABLE] = BL_WHY_UNREACHABLE,
							[BL_OUT_HOST] = BL_WHY_DOWN,
							[BL_OUT_DRAINED] = BL_WHY_LEFT };
	enum bl_out_why why = BL_OUT_MEMBER;

	bl_ep_out(ep->node, ep->slot, &why);
	return why < BL_OUT_WHY_COUNT ? gone[why] : BL_WHY_UNKNOWN;
}

void bl_endpoint_out_at(struct bl_ep *ep, uint64_t t)
{
	struct bl_node *n = ep->node;

	ep->dead = true;
	ep->t = t;
	if (!t)
		bl_log(BL_LOG_ERR, "%s: cannot determine since when endpoint %u has failed: %s",
		       n->meta.name, ep->info.port, strerror(errno));
	else if (n->events && n->cfg.ctl.n)
		bl_event_endpoint_gone(n, &ep->info, announced_why(ep), t);
}

/*
 * Nothing that a dead endpoint has left is waited for any more: its window does not hold C, and if
 * its process is gone, its slot is free.
 */
static void settle_endpoint(struct bl_ep *ep)
{
	struct bl_node *n = ep->node;

	ep->settled = true;
	if (ep->left)
		free_slot(ep, 0);
	else if (bl_ep_over(n, ep->slot))
		bl_log(BL_LOG_ERR, "%s: endpoint %u still holds the commit barrier: %s",
		       n->meta.name, ep->info.port, strerror(errno));
}

/*
 * Marks the living endpoints of @slots as dead, so that the programs accept nothing more of them or
 * for them. @left: they answer as after bl_exit(). Returns their slots.
 */
static uint64_t close_slots(struct bl_node *n, uint64_t slots, bool left)
{
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep *ep = &n->ep[k];
		uint32_t key = bl_ep_key(n, &ep->info);

		if (!ep->used || ep->dead)
			slots &= ~(1ULL << k);
		if (!(slots >> k & 1))
			continue;
		if (left)
			ep->info.left = ep->info.life;
		ep->info.active = BL_EP_DEAD;
		if (bpf_map_update_elem(n->eps_fd, &key, &ep->info, BPF_ANY))
			bl_log(BL_LOG_ERR, "%s: cannot put endpoint %u out: %s", n->meta.name,
			       ep->info.port, strerror(errno));
	}
	return slots;
}

void bl_endpoint_wake(const struct bl_ep *ep)
{
	if (ep->conn >= 0)
		(void)!send(ep->conn, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void bl_endpoint_put_out(struct bl_node *n, uint64_t slots, enum bl_out_why why)
{
	uint64_t t[BL_EPS_MAX];
	unsigned int k;

	slots = close_slots(n, slots, false);
	if (!slots)
		return;
	bl_ep_put_out(n, slots, why, t);
	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep *ep = &n->ep[k];

		if (!(slots >> k & 1))
			continue;
		bl_event(BL_EVENT(ENDPOINT_EXPELLED, WARN, n->meta.name, .endpoint = ep->info.port,
				  .pid = ep->info.pid, .process = ep->info.name,
				  .reason = out_why_text(why)),
			 "%s: endpoint %u (%s, pid %u) was expelled: %s", n->meta.name,
			 ep->info.port, ep->info.name, ep->info.pid, out_why_text(why));
		bl_endpoint_out_at(ep, t[k]);
		bl_endpoint_wake(ep);
	}
	bl_endpoints_bury(n);
	bl_event_changed(n);
}

static void say_left(const struct bl_ep *ep, const char *how, const char *why)
{
	bl_event(BL_EVENT(ENDPOINT_LEFT, INFO, ep->node->meta.name, .endpoint = ep->info.port,
			  .pid = ep->info.pid, .process = ep->info.name, .reason = why),
		 "%s: endpoint %u (%s, pid %u) left%s: %s", ep->node->meta.name, ep->info.port,
		 ep->info.name, ep->info.pid, how, why);
}

/*
 * The process lives, so its slot stays in use, but its window is empty: nothing waits for it, and
 * the programs answer for this incarnation as for one that has called bl_exit(). Its T is above
 * everything that it has sent.
 */
void bl_endpoints_retire(struct bl_node *n, uint64_t slots)
{
	uint64_t t[BL_EPS_MAX];
	unsigned int k;

	slots = close_slots(n, slots, true);
	if (!slots)
		return;
	bl_ep_put_out(n, slots, BL_OUT_DRAINED, t);
	for (k = 0; k < BL_EPS_MAX; k++) {
		struct bl_ep *ep = &n->ep[k];

		if (!(slots >> k & 1))
			continue;
		say_left(ep, "", "the host is drained");
		bl_endpoint_out_at(ep, t[k]);
		settle_endpoint(ep);
		bl_endpoint_wake(ep);
	}
	bl_event_changed(n);
}

/* Removes the ring of a process that is gone. This takes long: see bl_slot_map_remove(). */
static void drop_ring(struct bl_node *n, uint32_t slot, unsigned int port)
{
	int rc = bl_ep_clear_wake(n, slot), removed = bl_slot_map_remove(n, BL_SLOT_RING, slot);

	if (rc || removed)
		bl_log(BL_LOG_ERR, "%s: cannot remove the ring of endpoint %u: %s", n->meta.name,
		       port, strerror(rc ? -rc : -removed));
}

/*
 * An endpoint that left by bl_exit(), and of which nothing holds the commit barrier: the rack is
 * told that it left. No barrier stands still for that. From now on the programs answer for it, and
 * its slot and port are free at once, because announcements name incarnations. Its T is above
 * everything that it sent, which may be committed ahead of the clock and must not be discarded; it
 * is read when the process can send nothing more. Returns false if the endpoint did not leave in
 * this way.
 */
static bool leave_in_order(struct bl_ep *ep)
{
	struct bl_node *n = ep->node;
	uint64_t now = bl_clock_at(n->clock.shared, bl_mono_ns()), bye = ep->bye;
	struct bl_ep_slot who = ep->info;

	if (!bye || ep->dead || bl_ep_holds_commit(n, ep->slot) || (n->cfg.ctl.n && !n->events) ||
	    bye > now + LEAVE_AHEAD_NS)
		return false;
	ep->info.left = ep->info.life;
	free_slot(ep, n->cfg.ctl.n ? BL_EP_LEFT_NOW : 0);
	if (n->cfg.ctl.n)
		bl_endpoint_left(n, who.port, who.life,
				 bl_max64(bl_clock_at(n->clock.shared, bl_mono_ns()), bye));
	return true;
}

/*
 * Ends an endpoint whose process did not leave in order, or that was expelled. Slot and port stay
 * in use until nothing that it left is waited for.
 */
static void end_membership(struct bl_ep *ep)
{
	struct bl_node *n = ep->node;

	if (n->cfg.ctl.n) {
		if (!ep->dead)
			bl_endpoint_out_at(ep, bl_ep_dead_at(n, ep->slot, BL_OUT_GONE));
		if (ep->settled)
			free_slot(ep, 0);
		bl_event_changed(n);
		return;
	}
	if (ep->settled || !bl_ep_holds_commit(n, ep->slot)) {
		free_slot(ep, 0);
		return;
	}
	ep->dead = true;
	bl_log(BL_LOG_WARN,
	       "%s: endpoint %u (%s, pid %u) left reliable messages that are not acknowledged: "
	       "they hold the rack's commit barrier until they are, or until the controller "
	       "resumes it",
	       n->meta.name, ep->info.port, ep->info.name, ep->info.pid);
}

void bl_endpoint_undo(struct bl_ep *ep)
{
	struct bl_node *n = ep->node;
	uint32_t slot = ep->slot, port = ep->info.port;

	if (ep->pidfd >= 0)
		close(ep->pidfd);
	free_slot(ep, 0);
	drop_ring(n, slot, port);
}

void bl_endpoint_release(struct bl_ep *ep, const char *why)
{
	struct bl_node *n = ep->node;
	uint32_t key = bl_ep_key(n, &ep->info), slot = ep->slot, port = ep->info.port;
	int rc;

	ep->left = true;
	ep->bye = bl_ep_bye(n, slot);
	ep->conn_src = sd_event_source_disable_unref(ep->conn_src);
	ep->pid_src = sd_event_source_disable_unref(ep->pid_src);
	if (ep->conn >= 0)
		close(ep->conn);
	if (ep->pidfd >= 0)
		close(ep->pidfd);
	ep->conn = ep->pidfd = -1;
	/* One that a drain has retired has left already. */
	if (ep->dead && ep->info.left == ep->info.life)
		bl_log(BL_LOG_INFO, "%s: endpoint %u (%s, pid %u), which had left, is gone: %s",
		       n->meta.name, port, ep->info.name, ep->info.pid, why);
	else
		say_left(ep, ep->bye ? " in order" : "", why);
	if (leave_in_order(ep)) {
		drop_ring(n, slot, port); /* last, because no one waits for it */
		return;
	}
	ep->info.active = BL_EP_DEAD;
	rc = bpf_map_update_elem(n->eps_fd, &key, &ep->info, BPF_ANY) ? -errno : 0;
	bl_ep_clear_line(n, slot); /* in any case: a line without a process would hold B */
	if (rc)
		bl_log(BL_LOG_ERR, "%s: cannot remove endpoint %u: %s", n->meta.name, port,
		       strerror(-rc));
	end_membership(ep);
	drop_ring(n, slot, port); /* after the rack was told, as above */
}

void bl_endpoints_bury(struct bl_node *n)
{
	unsigned int k;

	for (k = 0; k < BL_EPS_MAX && !n->cfg.ctl.n; k++)
		if (n->ep[k].used && n->ep[k].dead && !n->ep[k].settled &&
		    !bl_ep_holds_commit(n, k))
			settle_endpoint(&n->ep[k]);
}

int bl_endpoint_resume(struct bl_node *n, unsigned int port)
{
	int k;

	for (k = 0; k < BL_EPS_MAX; k++) {
		if (!n->ep[k].used || !n->ep[k].dead || n->ep[k].info.port != port)
			continue;
		/* One that is still alive is resumed again and again. */
		if (!n->ep[k].settled)
			bl_log(BL_LOG_INFO,
			       "%s: endpoint %u does not hold the commit barrier any more",
			       n->meta.name, port);
		settle_endpoint(&n->ep[k]);
		return 0;
	}
	return -ENOENT;
}

void bl_endpoints_report_dead(struct bl_node *n)
{
	int k;

	for (k = 0; k < BL_EPS_MAX; k++)
		if (n->ep[k].used && n->ep[k].dead && n->ep[k].t)
			bl_event_endpoint_gone(n, &n->ep[k].info, announced_why(&n->ep[k]),
					       n->ep[k].t);
}

/* A frame to be forwarded, or the end of the connection. */
static int on_conn(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	struct bl_forward_msg m;
	ssize_t n = recv(fd, &m, sizeof(m), MSG_DONTWAIT | MSG_TRUNC);

	(void)src, (void)events;
	if (n > 0)
		bl_forward_asked(ctx, &m, (size_t)n);
	else if (!n || (errno != EAGAIN && errno != EINTR))
		bl_endpoint_release(ctx, "it closed its connection");
	return 0;
}

static int on_death(sd_event_source *src, int fd, uint32_t events, void *ctx)
{
	(void)src, (void)fd, (void)events;
	bl_endpoint_release(ctx, "its process ended");
	return 0;
}

int bl_endpoint_connect(struct bl_ep *ep, int conn)
{
	int rc = sd_event_add_io(ep->node->srv->ev, &ep->conn_src, conn, EPOLLIN, on_conn, ep);

	if (rc >= 0)
		ep->conn = conn;
	return rc;
}

int bl_endpoint_watch(struct bl_ep *ep, int conn)
{
	sd_event *ev = ep->node->srv->ev;
	int rc = 0;

	if (conn >= 0)
		rc = bl_endpoint_connect(ep, conn);
	if (rc >= 0 && ep->pidfd >= 0)
		rc = sd_event_add_io(ev, &ep->pid_src, ep->pidfd, EPOLLIN, on_death, ep);
	return rc;
}
