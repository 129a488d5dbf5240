// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See drain.h.
 *
 * Endpoints stay members until all of them are quiet, since they may send to each other. One whose
 * process has died with open messages is waited for until the controller has settled that.
 */
#include "loader/order/drain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/event.h"
#include "base/log.h"
#include "base/netns.h"
#include "base/time.h"
#include "loader/node_agent.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/ep.h"
#include "loader/order/note.h"
#include "loader/spare.h"

#define TICK_US 10000
/* A process that sleeps is woken so often until it is quiet. */
#define WAKE_NS 50000000ULL

struct bl_drain {
	struct bl_node *node;
	sd_event_source *timer;
	uint64_t wake_ns; /* CLOCK_MONOTONIC: when processes are woken again */
};

static int write_token(const struct bl_node *n, uint64_t token)
{
	struct bl_note_arg a = { .kind = BL_NOTE_DRAINED, .drained = token };

	return bl_note(n->note_fd, &a);
}

static bool is_quiet(const struct bl_drain *d, const struct bl_ep *ep)
{
	const struct bl_inflight *line = bl_ep_line(d->node, ep->slot);

	return line && __atomic_load_n(&line->quiet, __ATOMIC_ACQUIRE) == d->node->drained &&
	       !bl_ep_holds_commit(d->node, ep->slot);
}

/*
 * Returns how many endpoints are waited for. @quiet: set to the slots of those that can be put out,
 * a bit for each. @text: receives the names of some of those that are waited for.
 */
static unsigned int count_waits(const struct bl_drain *d, uint64_t *quiet, char *text, size_t size)
{
	unsigned int k, waits = 0;

	*quiet = 0;
	for (k = 0; k < BL_EPS_MAX; k++) {
		const struct bl_ep *ep = &d->node->ep[k];

		if (!ep->used || ep->settled)
			continue;
		if (!ep->dead && is_quiet(d, ep)) {
			*quiet |= 1ULL << k;
			continue;
		}
		if (waits++ < 3 && text)
			snprintf(text + strlen(text), size - strlen(text), "%s%u (%s, pid %u%s)",
				 *text ? ", " : "", ep->info.port, ep->info.name, ep->info.pid,
				 ep->dead ? ", gone" : "");
	}
	return waits;
}

static void wake_processes(struct bl_drain *d)
{
	unsigned int k;

	if (bl_mono_ns() < d->wake_ns)
		return;
	d->wake_ns = bl_mono_ns() + WAKE_NS;
	for (k = 0; k < BL_EPS_MAX; k++) {
		const struct bl_ep *ep = &d->node->ep[k];

		if (ep->used && !ep->dead && !is_quiet(d, ep))
			bl_endpoint_wake(ep);
	}
}

static int on_tick(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_drain *d = ctx;
	struct bl_node *n = d->node;
	uint64_t quiet;

	(void)src, (void)usec;
	bl_endpoints_bury(n);
	if (count_waits(d, &quiet, NULL, 0)) {
		wake_processes(d);
	} else if (quiet) {
		bl_endpoints_retire(n, quiet);
		bl_node_agent_leave(n, true);
	} else if (!bl_node_agent_left(n)) {
		bl_node_agent_leave(n, true);
	} else {
		n->has_left = true;
		bl_spare_renew(n); /* nobody sends a beacon after the last one */
		bl_beacon_bye(n);
		bl_event(BL_EVENT(HOST_DRAINED, INFO, n->meta.name, .reason = ""),
			 "%s: is drained: no process is a member, and nothing waits "
			 "for this host",
			 n->meta.name);
		return 0;
	}
	sd_event_source_set_time_relative(d->timer, TICK_US);
	return sd_event_source_set_enabled(d->timer, SD_EVENT_ONESHOT);
}

static int begin_drain(struct bl_drain *d, uint64_t token)
{
	d->node->drained = token;
	d->wake_ns = 0;
	sd_event_source_disable_unref(d->timer);
	d->timer = NULL;
	return sd_event_add_time_relative(d->node->srv->ev, &d->timer, CLOCK_MONOTONIC, 0, 1000,
					  on_tick, d);
}

static int end_drain(struct bl_drain *d, struct bl_err *err)
{
	struct bl_node *n = d->node;
	int rc, old;

	rc = write_token(n, 0);
	if (rc)
		return bl_fail(err, -rc, "cannot write the host page: %s", strerror(-rc));
	d->timer = sd_event_source_disable_unref(d->timer);
	n->drained = 0;
	n->has_left = false;
	bl_spare_renew(n);
	bl_node_agent_leave(n, false);
	if (!bl_beacons_here(&n->cfg))
		return 0;
	rc = bl_netns_enter(n->cfg.netns, &old, err);
	if (rc)
		return rc;
	rc = bl_beacon_add(n, err);
	bl_netns_leave(old);
	return rc;
}

int bl_drain_open(struct bl_node *n, struct bl_err *err)
{
	struct bl_host_page page;
	uint32_t zero = 0;
	int rc;

	n->drain = calloc(1, sizeof(*n->drain));
	if (!n->drain)
		return bl_fail(err, ENOMEM, "out of memory");
	n->drain->node = n;
	if (bpf_map_lookup_elem(n->page_fd, &zero, &page))
		return bl_fail(err, errno, "cannot read the map %s: %s", BL_MAP_HOST_PAGE,
			       strerror(errno));
	if (!page.drained)
		return 0;
	bl_log(BL_LOG_INFO, "%s: this host is drained; `barline host undrain` ends that",
	       n->meta.name);
	rc = begin_drain(n->drain, page.drained);
	return rc < 0 ? bl_fail(err, -rc, "cannot drain the host: %s", strerror(-rc)) : 0;
}

void bl_drain_close(struct bl_node *n)
{
	if (!n->drain)
		return;
	sd_event_source_disable_unref(n->drain->timer);
	free(n->drain);
	n->drain = NULL;
}

/* ---- requests ---- */

static int obey_request(struct bl_drain *d, uint32_t what, struct bl_err *err)
{
	uint64_t now = bl_clock_ns(CLOCK_REALTIME);
	int rc;

	if (what == BL_DRAIN_BEGIN && !d->node->drained) {
		rc = write_token(d->node, now ? now : 1);
		if (!rc)
			rc = begin_drain(d, now ? now : 1);
		if (rc < 0)
			return bl_fail(err, -rc, "cannot begin: %s", strerror(-rc));
		bl_event(BL_EVENT(DRAIN_BEGUN, INFO, d->node->meta.name, .reason = ""),
			 "%s: is to be drained: its processes send nothing new",
			 d->node->meta.name);
	} else if (what == BL_DRAIN_END && d->node->drained) {
		rc = end_drain(d, err);
		bl_event(BL_EVENT(DRAIN_ENDED, INFO, d->node->meta.name, .reason = ""),
			 "%s: is not drained any more", d->node->meta.name);
		return rc;
	} else if (what > BL_DRAIN_END) {
		return bl_fail(err, EINVAL, "this daemon does not know request %u", what);
	}
	return 0;
}

/* Who may stop the daemon may drain the host. */
static int check_asker(int conn, struct bl_err *err)
{
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(who);

	getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &who, &len);
	return !who.uid || who.uid == geteuid()
		       ? 0
		       : bl_fail(err, EPERM, "only root and the daemon's user may drain a host");
}

bool bl_drain_asked(struct bl_node *n, int conn, const struct bl_drain_req *q)
{
	struct bl_drain_rep rep = { .magic = BL_SOCK_DRAIN };
	struct bl_drain *d = n->drain;
	struct bl_err err = {};
	uint64_t quiet;
	int rc = 0;

	if (!d)
		rc = bl_fail(&err, EAGAIN, "the daemon is starting");
	else if (q->abi_version != BL_ABI_VERSION)
		rc = bl_fail(&err, EPROTO, "command and daemon are of different versions");
	else if (q->what != BL_DRAIN_ASK)
		rc = check_asker(conn, &err);
	if (!rc)
		rc = obey_request(d, q->what, &err);
	if (rc) {
		rep.error = -rc;
		snprintf(rep.message, sizeof(rep.message), "%.*s", (int)sizeof(rep.message) - 1,
			 err.text);
	} else if (n->drained) {
		rep.since_ns = n->drained;
		rep.waits = count_waits(d, &quiet, rep.message, sizeof(rep.message));
		rep.state = n->has_left          ? BL_DRAIN_DRAINED
			    : rep.waits || quiet ? BL_DRAIN_WAITS
						 : BL_DRAIN_LEAVES;
		if (rep.state == BL_DRAIN_LEAVES)
			snprintf(rep.message, sizeof(rep.message), "the controller that leads");
	}
	/* A command that does not wait for the answer asks again. */
	(void)!send(conn, &rep, sizeof(rep), MSG_DONTWAIT | MSG_NOSIGNAL);
	return false;
}
