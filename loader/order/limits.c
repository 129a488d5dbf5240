// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Each process has one limit (process_limit_ms) on how long it may hold others up:
 *   - in the middle of a send, which holds B and C;
 *   - with reliable messages that are not acknowledged and that it does not send again, which holds
 * C;
 *   - by not reading its ring, which holds its senders.
 * A process that exceeds the limit is expelled, alone, with the reason. standstill_core.h has the
 * arithmetic; endpoint.c says what being expelled means.
 *
 * Example: a debugger stops a process that has three frames open, one of which was lost. After 2 s
 * (the default) with an unchanged window and turn: BL_OUT_WINDOW. A process that computes for a
 * minute, with nothing open and at most credits in its ring, holds nobody up, and stays.
 *
 * Without failure controllers only the first of the three ends a membership. What others wait for
 * in the other two cases could not be settled, so C would stand still for ever, while it goes on if
 * the process does. The log says which process holds up what.
 *
 * A receiver that works but cannot be reached is not handled here but by the controller.
 */
#include "loader/order/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/log.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "loader/node_priv.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/ep.h"
#include "loader/order/slot_map.h"
#include "loader/order/standstill_core.h"
#include "loader/order/void.h"

/* struct watched - an endpoint as it was at the last sample. */
struct watched {
	struct bl_still still;
	const uint8_t *ring; /* two pages: its positions; NULL: not mapped */
	uint16_t life;       /* incarnation of the endpoint */
	bool used;
	bool named[BL_STILL_COUNT]; /* by enum bl_still_what: the log has it already */
};

struct bl_limits {
	struct bl_node *node;
	sd_event_source *timer;
	uint64_t limit_ns;
	struct watched ep[BL_EPS_MAX];
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * Maps the first @size bytes of the slot's ring: the consumer's page, the producer's page, the data
 * twice. NULL: there is no ring.
 */
static const uint8_t *map_ring(const struct bl_node *n, uint32_t slot, size_t size)
{
	int fd = bl_slot_map_open(n, BL_SLOT_RING, slot);
	uint8_t *p;

	if (fd < 0)
		return NULL;
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static void forget_endpoint(struct watched *w)
{
	if (w->ring)
		munmap((void *)(uintptr_t)w->ring, 2 * page_size());
	memset(w, 0, sizeof(*w));
}

static uint64_t ring_position(const uint8_t *ring, unsigned int page)
{
	return __atomic_load_n((const uint64_t *)(const void *)(ring + page * page_size()),
			       __ATOMIC_ACQUIRE);
}

static struct bl_still_view sample_endpoint(const struct bl_node *n, struct watched *w,
					    const struct bl_inflight *line, uint32_t slot,
					    uint64_t now)
{
	struct bl_still_view v = {
		.ts = __atomic_load_n(&line->ts, __ATOMIC_ACQUIRE),
		.hold = __atomic_load_n(&line->hold, __ATOMIC_ACQUIRE),
		.state = __atomic_load_n(&line->state, __ATOMIC_ACQUIRE),
		.turn = __atomic_load_n(&line->turn, __ATOMIC_ACQUIRE),
		.bus = bl_clock_at(n->clock.shared, now),
	};

	/*
	 * A best-effort send that is void holds up nobody. A reliable one has a hold as well, and
	 * is held against the process as before.
	 */
	if (!bl_still_open(v.hold) && bl_void_send(n, slot, v.ts))
		v.ts = BL_TIME_NONE;
	if (!w->ring)
		w->ring = map_ring(n, slot, 2 * page_size());
	if (w->ring) {
		v.read = ring_position(w->ring, 0);
		v.written = ring_position(w->ring, 1);
	}
	return v;
}

/*
 * Whether somebody waits for what is in the ring unread. A ring that cannot be read holds nobody
 * up.
 */
static bool ring_is_awaited(const struct bl_node *n, const struct bl_ep *ep,
			    const struct bl_still_view *v)
{
	size_t ps = page_size(), size = 2 * ps + 2 * (size_t)ep->info.ring_bytes;
	const uint8_t *p = map_ring(n, ep->slot, size);
	struct bl_ring_walk walk = { .size = ep->info.ring_bytes,
				     .read = v->read,
				     .written = v->written };
	bool res;

	if (!p)
		return false;
	walk.data = p + 2 * ps;
	res = bl_ring_awaited(&walk);
	munmap((void *)(uintptr_t)p, size);
	return res;
}

static void log_offender(const struct bl_ep *ep, struct watched *w, enum bl_still_what what)
{
	const struct bl_node *n = ep->node;

	if (!w->named[what])
		bl_log(BL_LOG_WARN,
		       "%s: endpoint %u (%s, pid %u) has held others up for %u ms: %s; there is no "
		       "controller that could settle it, so it stays a member",
		       n->meta.name, ep->info.port, ep->info.name, ep->info.pid,
		       n->cfg.process_limit_ms,
		       what == BL_STILL_RING ? "it does not read what they have sent to it"
					     : "it stands still with reliable messages that are "
					       "not acknowledged");
	w->named[what] = true;
}

/* Returns why the endpoint is to be expelled; BL_OUT_MEMBER: it is not. */
static enum bl_out_why judge_endpoint(struct bl_limits *l, const struct bl_ep *ep,
				      const struct bl_inflight *line, uint64_t now)
{
	struct watched *w = &l->ep[ep->slot];
	struct bl_still_view v;
	enum bl_out_why why;

	if (w->used && w->life != ep->info.life)
		forget_endpoint(w);
	w->used = true;
	w->life = ep->info.life;
	v = sample_endpoint(l->node, w, line, ep->slot, now);
	why = bl_still_sample(&w->still, &v, now, l->limit_ns);
	if (why == BL_OUT_RING && !ring_is_awaited(l->node, ep, &v)) {
		w->still.age_ns[BL_STILL_RING] = 0; /* sampled again after as long */
		return BL_OUT_MEMBER;
	}
	if (why == BL_OUT_IN_FLIGHT || l->node->cfg.ctl.n)
		return why;
	if (why != BL_OUT_MEMBER)
		log_offender(ep, w, why == BL_OUT_RING ? BL_STILL_RING : BL_STILL_WINDOW);
	return BL_OUT_MEMBER;
}

static void schedule_sample(struct bl_limits *l);

static int on_sample(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_limits *l = ctx;
	struct bl_node *n = l->node;
	uint64_t now = bl_mono_ns(), slots[BL_OUT_WHY_COUNT] = { 0 };
	unsigned int k;

	(void)src, (void)usec;
	for (k = 0; k < BL_EPS_MAX; k++) {
		const struct bl_ep *ep = &n->ep[k];

		if (ep->used && !ep->dead && !ep->left && ep->page)
			slots[judge_endpoint(l, ep, &ep->page->line, now)] |= 1ULL << k;
		else if (l->ep[k].used)
			forget_endpoint(&l->ep[k]);
	}
	for (k = BL_OUT_MEMBER + 1; k < BL_OUT_WHY_COUNT; k++)
		if (slots[k])
			bl_endpoint_put_out(n, slots[k], (enum bl_out_why)k);
	bl_endpoints_bury(n);
	schedule_sample(l);
	return 0;
}

static void schedule_sample(struct bl_limits *l)
{
	sd_event_source_disable_unref(l->timer);
	l->timer = NULL;
	sd_event_add_time_relative(l->node->srv->ev, &l->timer, CLOCK_MONOTONIC,
				   l->limit_ns / BL_SAMPLES_PER_LIMIT / 1000, 1000, on_sample, l);
}

int bl_limits_open(struct bl_node *n, struct bl_err *err)
{
	struct bl_limits *l = calloc(1, sizeof(*l));

	if (!l)
		return bl_fail(err, ENOMEM, "out of memory");
	l->node = n;
	l->limit_ns = n->cfg.process_limit_ms * 1000000ULL;
	n->limits = l;
	schedule_sample(l);
	return 0;
}

void bl_limits_change(struct bl_node *n)
{
	n->limits->limit_ns = n->cfg.process_limit_ms * 1000000ULL;
	schedule_sample(n->limits);
}

void bl_limits_close(struct bl_node *n)
{
	struct bl_limits *l = n->limits;
	unsigned int k;

	if (!l)
		return;
	n->limits = NULL;
	sd_event_source_disable_unref(l->timer);
	for (k = 0; k < BL_EPS_MAX; k++)
		forget_endpoint(&l->ep[k]);
	free(l);
}
