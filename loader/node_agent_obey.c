// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the controller commands, carried out on the node's datapath and its endpoints; see
 * node_agent_priv.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/event.h"
#include "base/ip.h"
#include "base/log.h"
#include "base/netns.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/wire_core.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_set.h"
#include "loader/load/pin.h"
#include "loader/node_agent_priv.h"
#include "loader/node_events.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_left.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/ep.h"
#include "loader/order/fence.h"
#include "loader/order/forward.h"
#include "maps/failure_abi.h"
#include "proto/forward_msg.h"

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

	bl_node_agent_schedule(a, SAMPLE_BUSY_US);
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
	*p = bl_node_agent_port(&v);
	bl_event(BL_EVENT(INPUT_FROZEN, WARN, a->node->meta.name,
			  .iface = bl_node_port_name(a->node, port), .peer = v.neighbour,
			  .epoch = a->epoch),
		 "%s: the controller has frozen the input on %s (node %u)", a->node->meta.name,
		 bl_node_port_name(a->node, port), v.neighbour);
	bl_node_agent_schedule(a, SAMPLE_BUSY_US);
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

	for (i = 0; i < nin; i++) {
		rc = bl_fence_resume(&a->node->fence, a->epoch, in[i].port, in[i].death);
		/* -ENOENT: the input was resumed before, and may have died again since. */
		if (rc && rc != -ENOENT)
			return rc;
		if (!rc)
			bl_event(BL_EVENT(INPUT_RESUMED, INFO, a->node->meta.name,
					  .iface = bl_node_port_name(a->node, in[i].port),
					  .failure = number, .epoch = a->epoch),
				 "%s: the controller has resumed the input on %s (failure %" PRIu64
				 ")",
				 a->node->meta.name, bl_node_port_name(a->node, in[i].port),
				 number);
	}
	for (i = 0; i < n; i++)
		if (v[i].here && v[i].port)
			resume_endpoint(a->node, &v[i]);
	bl_node_agent_schedule(a, SAMPLE_BUSY_US);
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
	__u8 ofs[2] = { 0 }; /* addresses of IPv6 and of IPv4 so far */
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < v->naddrs; i++) {
		memcpy(f.addr, v->addr[i], sizeof(f.addr));
		f.nth = ofs[bl_ip_is_v4(f.addr)]++;
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
		/* All processes of a host that has left in order were announced one by one. */
		if (o->failed[i].port || o->failed[i].why != BL_WHY_LEFT)
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

void bl_node_agent_complete(struct bl_node_agent *a)
{
	unsigned int i, left = 0;

	for (i = 0; i < a->nfailures; i++) {
		if (!tell_endpoints(a, &a->failure[i])) {
			a->failure[left++] = a->failure[i];
			continue;
		}
		bl_event(BL_EVENT(FAILURE_ANNOUNCED, WARN, a->node->meta.name,
				  .failure = a->failure[i].number, .epoch = a->epoch),
			 "%s: failure %" PRIu64 " was announced to the endpoints",
			 a->node->meta.name, a->failure[i].number);
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
	bl_node_agent_complete(a);
	bl_node_agent_schedule(a, SAMPLE_BUSY_US);
}

static void on_failed(void *ctx, uint64_t number)
{
	struct bl_node_agent *a = ctx;
	int k;

	a->failed = true;
	a->failed_ns = bl_mono_ns();
	a->rejoining = false;
	if (a->node->drained)
		bl_event(BL_EVENT(HOST_LEFT, INFO, a->node->meta.name, .failure = number),
			 "%s: has left (announcement %" PRIu64 ")", a->node->meta.name, number);
	else
		bl_event(BL_EVENT(NODE_FAILED, WARN, a->node->meta.name, .failure = number),
			 "%s: was announced as failed (failure %" PRIu64 "): it joins anew when "
			 "the endpoints that it "
			 "has now are gone or "
			 "expelled",
			 a->node->meta.name, number);
	for (k = 0; k < BL_EPS_MAX; k++)
		a->old[k] = a->node->ep[k].used ? 1U + a->node->ep[k].info.life : 0;
	bl_node_agent_schedule(a, 0);
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
		bl_event(BL_EVENT(ADMISSION_CHANGED, INFO, n->meta.name, .reason = said),
			 "%s: the controller changed the admission: %s", n->meta.name,
			 *said ? said : "nothing is different");
	return rc;
}

const struct bl_agent_ops bl_node_agent_ops = { .admission = on_admission,
						.put_out = on_put_out,
						.tell = bl_node_agent_tell,
						.epoch = on_epoch,
						.bar = on_bar,
						.freeze = on_freeze,
						.fail = on_fail,
						.resume = on_resume,
						.failed = on_failed,
						.forward = on_forward };
