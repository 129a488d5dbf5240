/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The barriers that the host sends: B = min(promise, every timestamp in flight), C = min(B, every
 * reliable window). BPF side only.
 *
 * Example: the clock says 1052. Endpoint 0 has taken timestamp 1049 and its frame has not passed
 * the NIC's egress program, so its line says 1049; endpoint 1 has an unacknowledged reliable
 * message of 1030. Then B = 1049 and C = 1030.
 *
 * Not here: writing the barriers into frames (bpf/host/host.bpf.c), and the arithmetic
 * (core/order/promise_core.h, line_core.h, commit_core.h).
 */
#ifndef BARLINE_HOST_BARRIER_TX_H
#define BARLINE_HOST_BARRIER_TX_H

#include "bpf/host/role.h"
#include "core/order/commit_core.h"
#include "core/order/line_core.h"
#include "core/order/promise_core.h"
#include "bpf/bpf_util.h"
#include "bpf/host/run.h"

/** struct inflight_min - state of a scan of the in-flight lines for the least times. */
struct inflight_min {
	__u64 b, c;          /* least so far, bus time, ns */
	struct bl_pair last; /* B, without a claim, and C that were sent before, bus time, ns */
	struct bl_host_page *page;
	__u32 neps; /* slots to look at */
	__u32 but;  /* slot whose line does not count for B; BL_EPS_MAX: none */
};

/* Lowers the least times by the line and the window of endpoint slot @slot. */
static long least_inflight(__u32 slot, struct inflight_min *m)
{
	struct bl_ep_page *p;

	if (slot >= m->neps)
		return 1;
	p = ep_page_of(slot);
	if (!p || !bl_line_least(&p->line, &m->page->word[slot & (BL_EPS_MAX - 1)], slot != m->but,
				 &m->last, &m->b, &m->c))
		return 0;
	/* What the window says below the C that was sent is no more true than in the line. */
	m->c = bl_min64(m->c,
			bl_max64(m->last.c, bl_rwin_commit(&p->line.state, &p->win, m->last.c)));
	return 0;
}

/*
 * Records in the page that @b was promised, which is ahead of the clock @bus. Returns what may be
 * promised: @b, a greater promise of another CPU, or @bus after four lost races.
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
 * Returns what the host has promised. A promise that the clock does not explain, as a faulty
 * process could write it into the page of an earlier version, is taken back: nothing else ever
 * lowers it.
 */
static __always_inline __u64 sane_promise(struct bl_host_page *page, const struct bl_now *now,
					  __u64 ahead)
{
	__u64 p = BL_READ_ONCE(page->promised);

	if (!bl_promise_absurd(p, now->limit + ahead))
		return p;
	if (__sync_val_compare_and_swap(&page->promised, p, now->bus) == p)
		bl_count(BL_HC_EGRESS, BL_R_PROMISE_ABSURD);
	return 0;
}

/*
 * Returns whether the process of endpoint slot @slot sends, as its line says, what its host has
 * declared void. Pairs with the daemon, which waits for an RCU grace period after it has written
 * upto, and only then lets the barriers pass the line.
 */
static __always_inline int send_is_void(const struct bl_host_page *page, __u32 slot)
{
	__u64 upto = BL_READ_ONCE(page->word[slot & (BL_EPS_MAX - 1)].upto);
	const struct bl_ep_page *p;

	if (!upto)
		return 0;
	p = ep_page_of(slot);
	return p && bl_line_void(BL_READ_ONCE(p->line.ts), upto);
}

/*
 * Computes the host's barriers as of @now into @r->b and @r->c: B = min(promise, every in-flight
 * timestamp), C = min(B, every window). The promise is the clock, or the greater one that the page
 * holds. It is made first and a full fence follows: an endpoint that is not seen in flight takes
 * its timestamp after the fence, so that timestamp is at least this barrier.
 *
 * @slot: the endpoint that sends the frame; BL_EPS_MAX: none
 * @claim: what the frame claims (bl_frame_claim()), bus time, ns; 0: nothing, and its own line
 * counts like all others. An endpoint whose frame has a claim is in flight itself and promises that
 *     everything it sends later is at or above the claim, whatever its line says.
 */
static __always_inline void host_barriers(struct run *r, const struct bl_now *now, __u32 slot,
					  __u64 claim)
{
	struct bl_host_page *page = r->page;
	__u64 fence = 0, ahead = 0, b = BL_READ_ONCE(page->sent_barrier),
	      c = BL_READ_ONCE(page->sent_commit);
	struct inflight_min m = { .last = { bl_sent_least(b, now->bus, r->cfg->ahead_ns),
					    bl_sent_least(c, now->bus, r->cfg->ahead_ns) },
				  .page = page,
				  .neps = r->cfg->neps,
				  .but = claim ? slot : BL_EPS_MAX };

	if (r->f.opcode == BL_OP_BEACON &&
	    bl_host_silent(now->bus, BL_READ_ONCE(page->data_ns), r->cfg->beacon_ns))
		ahead = r->cfg->ahead_ns;
	m.b = bl_promise(now->bus, ahead, sane_promise(page, now, r->cfg->ahead_ns), claim);
	if (m.b > now->bus)
		m.b = record_promise(page, now->bus, m.b);
	if (claim)
		m.b = bl_min64(m.b, claim);
	/*
	 * Not BL_TIME_NONE, though the result is the same: from a constant the verifier concludes
	 * which way each comparison goes, and then follows the scan for each of them.
	 */
	c = m.b;
	BL_UNLINK(c);
	m.c = c;
	__sync_lock_test_and_set(&fence, 1);
	bpf_loop(BL_EPS_MAX, least_inflight, &m, 0);
	/* A lost update of two CPUs makes the value older, not wrong. */
	if (!claim && m.b > page->sent_barrier)
		BL_WRITE_ONCE(page->sent_barrier, m.b);
	m.c = bl_min64(m.b, m.c);
	if (m.c > page->sent_commit)
		BL_WRITE_ONCE(page->sent_commit, m.c); /* an older value is as true */
	r->b = m.b;
	r->c = m.c;
}

#endif
