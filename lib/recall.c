// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Recall and Callback (1Pipe 5.2). The commit barrier is read first, the number of the last
 * announcement second, the ring third, and what an announcement discards is dropped (discard.c)
 * before anything is delivered. The barrier does not pass T before the page has the announcement,
 * so an endpoint that sees the barrier beyond T knows of the announcement. Until an announcement is
 * handled, callback included, nothing at or above its T is delivered (bl_failures_limit()). So no
 * other process has to wait for this one.
 *
 * Example: process P failed at T = 500. What P sent with ts >= 500 is dropped. A scattering of ours
 * with ts 480 went to A, which has acknowledged it, and to P, which has not. The slot of P's frame
 * is locked, so that no late ACK can commit it any more, and A is asked to drop its frames
 * (RECALL). A answers RECALLED: both slots are closed, the commit barrier advances, the messages of
 * the scattering are reported as failed, and then the callback says that P failed.
 *
 * Announcements that come meanwhile begin at once, since a process that has to answer a RECALL may
 * have failed, too. They end together, in order.
 *
 * Which process failed, and when, is decided by the controller.
 */
#include <stdlib.h>

#include "base/ip.h"
#include "discard.h"
#include "failures.h"
#include "frame.h"
#include "lock.h"
#include "peer.h"
#include "prepared.h"
#include "recall.h"
#include "rstage.h"
#include "rtx.h"
#include "send_fail.h"
#include "timers.h"

/* Whether frames to @p, by what is known of its life now, were sent to the failed process. */
static bool was_sent_to_failed(const struct bl_failure *f, const struct bl_peer *p)
{
	return bl_failures_is_at(f, &p->addr) &&
	       (f->port && f->life ? f->life == p->rtx.life : f->number > p->rtx.born);
}

/* ---- recall ---- */

static void add_recall(struct bl_endpoint *ep, struct bl_rframe *f)
{
	struct bl_recalling *r;

	for (r = ep->recalls; r && (r->peer != f->peer || r->ts != f->ts); r = r->next)
		;
	if (r) {
		/* Frames of one scattering to one receiver have consecutive numbers. */
		if (bl_psn_before(f->psn, r->psn)) {
			r->count += r->psn - f->psn;
			r->psn = f->psn;
		} else if (!bl_psn_before(f->psn, r->psn + r->count)) {
			r->count = f->psn - r->psn + 1;
		}
		return;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		/* until there is memory, the commit barrier stays where it is */
		ep->recall_again = true;
		return;
	}
	r->peer = f->peer;
	r->ts = f->ts;
	r->psn = f->psn;
	r->count = 1;
	r->next = ep->recalls;
	ep->recalls = r;
}

static void abort_frame(struct bl_endpoint *ep, struct bl_rframe *f, bool failed)
{
	f->aborted = true;
	if (!failed)
		add_recall(ep, f);
}

static bool is_failed_peer(const struct bl_endpoint *ep, const struct bl_peer *p)
{
	uint64_t n;

	for (n = ep->fail_settled + 1; n <= ep->fail_begun; n++)
		if (was_sent_to_failed(bl_failures_at(ep, n), p))
			return true;
	return false;
}

/*
 * Whether no answer to a RECALL is to be expected from the life of @p that has acknowledged frames:
 * it fails now, or its failure was handled before. A later life of the address would answer.
 */
static bool owes_no_answer(const struct bl_endpoint *ep, const struct bl_peer *p)
{
	return is_failed_peer(ep, p) || p->rtx.failed || bl_failures_is_gone(p, p->rtx.life);
}

/*
 * Lock the slots of failed processes among frames @from to @to - 1 of the window, which have one
 * timestamp. Returns whether their scattering is thereby aborted: a failed process has not
 * acknowledged it.
 */
static bool lock_slots(struct bl_endpoint *ep, uint32_t from, uint32_t to)
{
	bool locked = false;
	uint32_t n;

	for (n = from; n != to; n++)
		if (is_failed_peer(ep, ep->rsent[n % BL_RWIN]->peer) &&
		    bl_rslot_lock(bl_rwin_slot(ep->rwin, n), n))
			locked = true;
	return locked;
}

static void abort_group(struct bl_endpoint *ep, uint32_t from, uint32_t to)
{
	uint64_t ts = ep->rsent[from % BL_RWIN]->ts;
	struct bl_rframe *f;
	uint32_t n;

	for (f = ep->rkept; f; f = f->next)
		if (f->ts == ts)
			abort_frame(ep, f, owes_no_answer(ep, f->peer));
	for (n = from; n != to; n++) {
		f = ep->rsent[n % BL_RWIN];
		abort_frame(ep, f, owes_no_answer(ep, f->peer));
	}
}

static void begin_recalls(struct bl_endpoint *ep)
{
	uint32_t from, to;
	struct bl_rframe *f;
	struct bl_peer *p;

	ep->recall_again = false;
	for (p = ep->rdirty; p; p = p->rdirty_next) {
		if (p->self || !is_failed_peer(ep, p) || !(p->rtx.parts.n || p->rtx.items.n))
			continue;
		ep->rabort |= ep->rts != 0;
		if (!ep->rts)
			bl_rstage_drop(ep, BL_NAK_FAILED); /* no timestamp: nothing has left */
		break;
	}
	for (from = ep->rreaped; from != ep->rtail; from = to) {
		uint64_t ts = ep->rsent[from % BL_RWIN]->ts;
		bool now;

		for (to = from; to != ep->rtail && ep->rsent[to % BL_RWIN]->ts == ts; to++)
			;
		now = lock_slots(ep, from, to);
		if (ts == ep->rts)
			ep->rabort |= now;
		if (now || ep->rsent[from % BL_RWIN]->aborted || (ts == ep->rts && ep->rabort))
			abort_group(ep, from, to);
	}
	for (f = ep->rabort ? ep->rkept : NULL; f; f = f->next)
		if (f->ts == ep->rts)
			abort_frame(ep, f, owes_no_answer(ep, f->peer));
}

static void send_recall(struct bl_endpoint *ep, struct bl_recalling *r, uint64_t mono)
{
	uint8_t body[sizeof(struct bl_recall)];

	r->sent_ns = mono;
	if (!r->tries++)
		r->first_ns = mono;
	/* Sets fwd_until_ns, which bl_tx_control() tests. */
	bl_fwd_due(&r->peer->fwd_until_ns, r->first_ns, r->tries, 0, mono);
	bl_store16(body, ep->incarnation);
	bl_store16(body + 2, r->peer->rtx.life);
	bl_store32(body + 4, r->count);
	bl_put48(body + 8, r->ts);
	bl_store16(body + 14, 0);
	bl_tx_control(ep, r->peer, BL_OP_RECALL, r->psn, body, sizeof(body));
	ep->st.recalls_sent++;
}

/* Send the RECALLs that are due. Returns whether all were answered. */
static bool all_recalled(struct bl_endpoint *ep, uint64_t mono)
{
	bool all = !ep->recall_again;
	struct bl_recalling *r;

	for (r = ep->recalls; r; r = r->next) {
		uint64_t due;

		if (r->peer->self && !r->done) {
			bl_rrx_take_out(ep, r->peer, r->ts & BL_TS_MASK, r->psn, r->count, true);
			r->done = true;
		}
		if (r->done)
			continue;
		all = false;
		due = r->tries ? bl_rto_due(&r->peer->rtx.rto, r->sent_ns, r->tries) : 0;
		if (mono >= due) {
			send_recall(ep, r, mono);
			due = bl_rto_due(&r->peer->rtx.rto, mono, r->tries);
		}
		bl_rtx_wake_at(ep, due);
	}
	return all;
}

void bl_recall_answer(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, const uint8_t *body,
		      uint32_t len)
{
	struct bl_recalling *r;
	struct bl_recall_view v;

	if (bl_recall_open(&v, body, len)) {
		ep->st.malformed++;
		return;
	}
	if (v.incarnation != ep->incarnation || v.life != p->rtx.life)
		return;
	for (r = ep->recalls; r; r = r->next)
		if (r->peer == p && (r->ts & BL_TS_MASK) == v.ts && r->psn == psn &&
		    r->count == v.count)
			r->done = true;
}

/* ---- callback ---- */

/* Whether this endpoint has a peer at the address that the announcement names. */
static bool has_peer_at(struct bl_endpoint *ep, const struct bl_failure *f)
{
	const struct bl_peer *p;

	if (f->port)
		return bl_peer_find(ep, f->addr, f->port) != NULL;
	for (p = ep->peers; p && !bl_failures_is_at(f, &p->addr); p = p->all_next)
		;
	return p != NULL;
}

static bool is_own_family(const struct bl_endpoint *ep, const struct bl_failure *f)
{
	return bl_ip_is_v4(f->addr) == bl_ip_is_v4(ep->self.ip);
}

/*
 * Whether announcement @number is told to the application. All addresses of a process or host are
 * announced, and the application should hear of it once, by the address that it knows. That is the
 * one at which this endpoint has a peer, or the first one of its family if there is no peer at any.
 *
 * Example: a host has 10.0.0.2, 10.0.0.3 and fd00::2. An IPv4 endpoint that has exchanged messages
 * with 10.0.0.3 is told of this address only, and one that has not heard of the host of 10.0.0.2.
 */
static bool is_told(struct bl_endpoint *ep, uint64_t number)
{
	const struct bl_failure *f = bl_failures_at(ep, number), *g;

	if (!is_own_family(ep, f))
		return false;
	if (has_peer_at(ep, f) || f->nth)
		return has_peer_at(ep, f);
	while (++number <= ep->fail_begun) {
		g = bl_failures_at(ep, number);
		if (g->order != f->order || g->epoch != f->epoch || g->ts != f->ts ||
		    g->port != f->port || g->life != f->life || (is_own_family(ep, g) && !g->nth))
			break;
		if (is_own_family(ep, g) && has_peer_at(ep, g))
			return false;
	}
	return true;
}

static void run_proc_callbacks(struct bl_endpoint *ep, const struct bl_failure *f)
{
	struct bl_addr who = { .port = f->port };

	if (!is_told(ep, f->number))
		return;
	memcpy(who.ip, f->addr, 16);
	bl_leave(ep);
	if (ep->on_proc_fail)
		ep->on_proc_fail(ep->on_proc_fail_ctx, &who, f->ts);
	if (ep->on_proc_gone)
		ep->on_proc_gone(ep->on_proc_gone_ctx, &who, f->ts,
				 f->why < BL_WHY_COUNT ? (enum bl_gone_reason)f->why
						       : BL_GONE_UNKNOWN);
	bl_enter(ep);
}

/*
 * Everything that was begun is recalled: nobody waits for this endpoint any more, and only the
 * callbacks are missing.
 */
static void settle_failures(struct bl_endpoint *ep)
{
	struct bl_recalling *r;

	while ((r = ep->recalls)) {
		ep->recalls = r->next;
		free(r);
	}
	bl_rtx_aborted(ep);
	while (ep->fail_settled != ep->fail_begun) {
		const struct bl_failure *f = bl_failures_at(ep, ++ep->fail_settled);
		struct bl_peer *p;

		for (p = ep->peers; p; p = p->all_next) {
			/*
			 * The next process there is another one, and has to be asked for its
			 * window.
			 */
			if (!was_sent_to_failed(f, p) || p->self)
				continue;
			p->rtx.credited = p->rtx.next_psn;
			p->rtx.rto = (struct bl_rto){ 0 };
		}
	}
}

static void finish_failures(struct bl_endpoint *ep)
{
	/* Callbacks that call the library may begin further announcements. */
	const uint64_t upto = ep->fail_settled;

	while (ep->fail_seen != upto) {
		const struct bl_failure f = *bl_failures_at(ep, ep->fail_seen + 1);

		if (ep->nfailed)
			bl_tx_report(ep);
		/*
		 * Nothing at or above its timestamp is delivered before the callback, nor by calls
		 * within it.
		 */
		run_proc_callbacks(ep, &f);
		ep->fail_seen++;
		__atomic_store_n(&ep->wake->done, f.number, __ATOMIC_RELEASE);
	}
}

/*
 * An endpoint that is out recalls nothing, since nobody would answer. But callbacks still run at
 * their places among what it may deliver.
 */
static void run_remaining_callbacks(struct bl_endpoint *ep)
{
	while (ep->fail_seen != ep->fail_begun) {
		const struct bl_failure f = *bl_failures_at(ep, ep->fail_seen + 1);

		run_proc_callbacks(ep, &f);
		ep->fail_seen++;
	}
}

void bl_recall_work(struct bl_endpoint *ep, uint64_t last)
{
	if (last > ep->fail_begun)
		bl_discard_news(ep, NULL);
	/* Later announcements have their T above everything that is still delivered. */
	ep->fails_end |= ep->ended;
	if ((ep->in_recall && !ep->by_helper) || ep->fail_seen == ep->fail_begun)
		return; /* in_recall: a callback has called the library */
	if (ep->outcast && ep->by_helper)
		return;
	if (ep->outcast) {
		ep->in_recall = true;
		run_remaining_callbacks(ep);
		ep->in_recall = false;
		return;
	}
	if (ep->recall_again) {
		bl_rtx_reap(ep);
		begin_recalls(ep);
	}
	if (ep->fail_settled != ep->fail_begun && all_recalled(ep, bl_mono()))
		settle_failures(ep);
	if (ep->by_helper)
		return;
	ep->in_recall = true;
	finish_failures(ep);
	ep->in_recall = false;
}

void bl_on_proc_fail(struct bl_endpoint *ep, bl_proc_fail_fn fn, void *ctx)
{
	bl_enter(ep);
	ep->on_proc_fail = fn;
	ep->on_proc_fail_ctx = ctx;
	bl_leave(ep);
}

void bl_on_proc_gone(struct bl_endpoint *ep, bl_proc_gone_fn fn, void *ctx)
{
	bl_enter(ep);
	ep->on_proc_gone = fn;
	ep->on_proc_gone_ctx = ctx;
	bl_leave(ep);
}

void bl_recall_free(struct bl_endpoint *ep)
{
	struct bl_recalling *r;

	while ((r = ep->recalls)) {
		ep->recalls = r->next;
		free(r);
	}
}
