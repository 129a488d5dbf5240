/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Barriers that leave. BPF side only. */
#ifndef BARLINE_HOST_BARRIER_TX_H
#define BARLINE_HOST_BARRIER_TX_H

#include "bpf/host/role.h"
#include "core/order/commit_core.h"
#include "core/order/line_core.h"
#include "core/order/promise_core.h"
#include "bpf/bpf_util.h"
#include "bpf/host/run.h"

struct inflight_min {
	__u64 b, c;
	__u64 last; /* C that was sent before */
	__u32 neps;
	__u32 but; /* slot whose line is left out */
};

static long least_inflight(__u32 slot, struct inflight_min *m)
{
	struct bl_inflight *line;
	struct bl_rwin *w;

	if (slot >= m->neps)
		return 1;
	line = bpf_map_lookup_elem(&inflight, &slot);
	if (!line)
		return 1;
	if (!bl_line_least(line, slot != m->but, &m->b, &m->c))
		return 0;
	w = bpf_map_lookup_elem(&windows, &slot);
	if (w)
		m->c = bl_min64(m->c, bl_rwin_commit(&line->state, w, m->last));
	return 0;
}

/*
 * Write a promise of @b down, which is ahead of @bus. Returns what may be promised: without luck
 * against other CPUs, the clock.
 */
static __always_inline __u64 record_promise(struct bl_host_page *page, __u64 bus, __u64 b)
{
	int i;

	for (i = 0; i < 4; i++) {
		__u64 cur = BL_READ_ONCE(page->promised);

		if (cur >= b)
			return cur;
		if (__sync_val_compare_and_swap(&page->promised, cur, b) == cur)
			return b;
	}
	return bus;
}

/*
 * The host's barriers now, into @r: B = min(promise, every in-flight timestamp), C = min(B, every
 * window). The promise is the clock, or what is written in the page. It is made first and a full
 * fence follows: an endpoint that is not seen in flight takes its timestamp after that, so it is at
 * least this barrier.
 *
 * @slot: the endpoint whose frame this is, BL_EPS_MAX for none. @claim: what its frame claims
 * (bl_claim()); 0: nothing, and what is in flight counts. With a claim it is in flight itself, and
 * promises that the rest of its life is at or above the claim, whatever its line says.
 */
static __always_inline void host_barriers(struct run *r, const struct bl_now *now, __u32 slot,
					  __u64 claim)
{
	struct inflight_min m = { .c = BL_TIME_NONE,
				  .last = BL_READ_ONCE(r->page->sent_commit),
				  .neps = r->cfg->neps,
				  .but = claim ? slot : BL_EPS_MAX };
	struct bl_host_page *page = r->page;
	__u64 fence = 0, ahead = 0;

	if (r->f.opcode == BL_OP_BEACON &&
	    bl_silent(now->bus, BL_READ_ONCE(page->data_ns), r->cfg->beacon_ns))
		ahead = r->cfg->ahead_ns;
	m.b = bl_promise(now->bus, ahead, BL_READ_ONCE(page->promised), claim);
	if (m.b > now->bus)
		m.b = record_promise(page, now->bus, m.b);
	if (claim)
		m.b = bl_min64(m.b, claim);
	__sync_lock_test_and_set(&fence, 1);
	bpf_loop(BL_EPS_MAX, least_inflight, &m, 0);
	if (m.b > page->sent_barrier)
		BL_WRITE_ONCE(page->sent_barrier,
			      m.b); /* for people: lost updates of two CPUs only make it older */
	m.c = bl_min64(m.b, m.c);
	if (m.c > m.last)
		BL_WRITE_ONCE(page->sent_commit, m.c); /* an older one is as true */
	r->b = m.b;
	r->c = m.c;
}

#endif
