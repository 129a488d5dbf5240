// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process that stops in the middle of a send holds the barriers of the whole rack. Its host waits
 * for send_limit_ms, then declares the send void and goes on (struct bl_ep_word). With the default
 * of 20 ms:
 *
 * - 0 ms: the process is stopped, with a timestamp in its line.
 *
 * - 20 ms: void_core.h finds that the send stands still. @upto becomes the clock, or the greatest
 *   promise of the host, so it is not below the timestamp of the send, whatever it is. The programs
 *   drop the messages of this endpoint from now on.
 *
 * - 28 to 40 ms: an RCU grace period has passed. Whatever was let through has left, in front of
 *   everything that leaves from now on. @over becomes @upto, and B goes on.
 *
 * - The process continues. What it still sends of this scattering is dropped and counted as
 *   send_void. Its next send has a new time in the line, above @upto. Its receivers miss what was
 *   dropped, and the library reports those messages as it reports lost ones.
 *
 * The endpoint remains a member: nothing that its receivers have is wrong. One that stops in one
 * send after the other is expelled (bl_send_voided()). A reliable send has a hold beside the time
 * in flight (bl_tx_stamp()), so C waits for it, for process_limit_ms at most (limits.c).
 */
#include "loader/order/void.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/event.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/time.h"
#include "core/clock_core.h"
#include "core/order/line_core.h"
#include "loader/defaults.h"
#include "loader/node_priv.h"
#include "loader/order/endpoint.h"
#include "loader/order/endpoint_pages.h"
#include "loader/order/ep.h"
#include "loader/order/void_core.h"

#define SAY_NS 1000000000ULL /* one message in the log per endpoint in this time */

struct bl_voids {
	struct bl_node *node;
	sd_event_source *timer;
	uint64_t limit_ns;
	uint64_t most_ns; /* also for a process that waits for a CPU */
	const struct bl_host_page *page;
	struct bl_send_watch watch[BL_EPS_MAX];
	uint16_t life[BL_EPS_MAX];    /* incarnation that @watch is about */
	uint64_t said_ns[BL_EPS_MAX]; /* CLOCK_MONOTONIC of the last message */
};

/* Returns whether the endpoint in slot @k has stood still for too long. */
static bool sample_endpoint(struct bl_voids *v, unsigned int k, const struct bl_inflight *line,
			    uint64_t now, uint64_t bus)
{
	const struct bl_ep *ep = &v->node->ep[k];
	struct bl_send_watch *w = &v->watch[k];
	uint64_t ts = __atomic_load_n(&line->ts, __ATOMIC_ACQUIRE),
		 over = __atomic_load_n(&v->page->word[k].over, __ATOMIC_RELAXED), waited = 0;
	bool stands;

	if (v->life[k] != ep->info.life)
		*w = (struct bl_send_watch){ 0 };
	v->life[k] = ep->info.life;
	stands = bl_send_stands(w, ts, over);
	if (stands && ep->info.pid)
		waited = bl_proc_waited_ns((pid_t)ep->info.pid);
	return bl_send_sample(w, ts, stands, waited, now, bus, v->limit_ns, v->most_ns);
}

static int write_void(struct bl_voids *v, unsigned int slot, uint64_t upto, uint64_t over)
{
	struct bl_ep_word w = v->page->word[slot];

	w.upto = upto;
	w.over = over;
	return bl_ep_word_set(v->node, slot, &w);
}

/*
 * The host does not wait for the sends of @slots any more. One that has gone on meanwhile holds the
 * barriers as before, and at most loses messages.
 */
static void declare_void(struct bl_voids *v, uint64_t slots, uint64_t now)
{
	struct bl_node *n = v->node;
	uint64_t upto[BL_EPS_MAX], out = 0;
	unsigned int k;
	int rc = 0;

	for (k = 0; k < BL_EPS_MAX; k++) {
		if (!(slots >> k & 1))
			continue;
		upto[k] = bl_max64(bl_clock_at(n->clock.shared, bl_mono_ns()),
				   __atomic_load_n(&v->page->promised, __ATOMIC_ACQUIRE));
		rc = write_void(v, k, upto[k],
				__atomic_load_n(&v->page->word[k].over, __ATOMIC_RELAXED));
		if (rc)
			slots &= ~(1ULL << k);
	}
	if (slots)
		bl_ep_wait_programs(n);
	for (k = 0; k < BL_EPS_MAX; k++) {
		const struct bl_ep *ep = &n->ep[k];

		if (!(slots >> k & 1))
			continue;
		if (bl_send_voided(&v->watch[k], now, n->cfg.process_limit_ms * 1000000ULL))
			out |= 1ULL << k;
		v->watch[k].age_ns = v->watch[k].all_ns = 0;
		if (!bl_line_void(__atomic_load_n(&ep->page->line.ts, __ATOMIC_ACQUIRE), upto[k]))
			continue;
		rc = write_void(v, k, upto[k], upto[k]);
		if (now - v->said_ns[k] < SAY_NS && v->said_ns[k])
			continue;
		v->said_ns[k] = now;
		bl_event(BL_EVENT(SEND_VOID, WARN, n->meta.name, .endpoint = ep->info.port,
				  .pid = ep->info.pid, .process = ep->info.name),
			 "%s: endpoint %u (%s, pid %u) has stopped in the middle of a send for %d "
			 "ms: the send is void, and the host goes on without it",
			 n->meta.name, ep->info.port, ep->info.name, ep->info.pid,
			 n->cfg.send_limit_ms);
	}
	if (rc)
		bl_log(BL_LOG_ERR, "%s: cannot declare a send void: %s", n->meta.name,
		       strerror(-rc));
	if (out)
		bl_endpoint_put_out(n, out, BL_OUT_IN_FLIGHT);
}

static void schedule_sample(struct bl_voids *v);

static int on_sample(sd_event_source *src, uint64_t usec, void *ctx)
{
	struct bl_voids *v = ctx;
	struct bl_node *n = v->node;
	uint64_t now = bl_mono_ns(), bus = bl_clock_at(n->clock.shared, now), slots = 0;
	unsigned int k;

	(void)src, (void)usec;
	for (k = 0; k < BL_EPS_MAX; k++) {
		const struct bl_ep *ep = &n->ep[k];

		if (ep->used && !ep->dead && !ep->left && ep->page &&
		    sample_endpoint(v, k, &ep->page->line, now, bus))
			slots |= 1ULL << k;
	}
	if (slots)
		declare_void(v, slots, now);
	schedule_sample(v);
	return 0;
}

static void schedule_sample(struct bl_voids *v)
{
	sd_event_source_disable_unref(v->timer);
	v->timer = NULL;
	sd_event_add_time_relative(v->node->srv->ev, &v->timer, CLOCK_MONOTONIC,
				   v->limit_ns / BL_SEND_SAMPLES / 1000, 500, on_sample, v);
}

void bl_voids_change(struct bl_node *n)
{
	struct bl_voids *v = n->voids;

	if (!v)
		return;
	v->limit_ns = (uint64_t)n->cfg.send_limit_ms * 1000000ULL;
	/* what a switch allows by default, or more */
	v->most_ns = bl_max64(bl_node_lag_max_us(n->cfg.dead_after_us) * 1000ULL, 2 * v->limit_ns);
}

int bl_voids_open(struct bl_node *n, struct bl_err *err)
{
	struct bl_voids *v;
	void *page;

	if (n->cfg.send_limit_ms < 0)
		return 0;
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, n->page_fd, 0);
	if (page == MAP_FAILED)
		return bl_fail(err, errno, "cannot map the host page: %s", strerror(errno));
	v = calloc(1, sizeof(*v));
	if (!v) {
		munmap(page, 4096);
		return bl_fail(err, ENOMEM, "out of memory");
	}
	v->node = n;
	v->page = page;
	n->voids = v;
	bl_voids_change(n);
	schedule_sample(v);
	return 0;
}

bool bl_void_send(const struct bl_node *n, unsigned int slot, uint64_t ts)
{
	return n->voids && bl_line_void(ts, __atomic_load_n(&n->voids->page->word[slot].over,
							    __ATOMIC_ACQUIRE));
}

void bl_voids_close(struct bl_node *n)
{
	struct bl_voids *v = n->voids;

	if (!v)
		return;
	n->voids = NULL;
	sd_event_source_disable_unref(v->timer);
	munmap((void *)(uintptr_t)v->page, 4096);
	free(v);
}
