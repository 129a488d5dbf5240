// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is due. Barriers and ring come first, then failures, since they decide what may be
 * delivered, then timers, CREDITs and what waits for windows.
 */
#include "again.h"
#include "ask.h"
#include "credit.h"
#include "dispatch.h"
#include "drain.h"
#include "failures.h"
#include "figures.h"
#include "prepared.h"
#include "presence.h"
#include "recall.h"
#include "rtx.h"
#include "send_fail.h"
#include "sweep.h"
#include "tx.h"
#include "work.h"

/* Least time between two raises of the turn, since the line is read for every frame of this host */
#define TURN_NS 1000000ULL

/*
 * Show the daemon that this process works, so that it is not blamed for a receiver that does not
 * answer. Pairs with loader/order/limits.c.
 */
static void raise_turn(struct bl_endpoint *ep, uint64_t mono)
{
	struct bl_inflight *mine = ep->line;

	if (mono - ep->turn_ns < TURN_NS || !(ep->rts || (ep->rsent && ep->rreaped != ep->rtail)))
		return;
	ep->turn_ns = mono;
	__atomic_store_n(&mine->turn, mine->turn + 1, __ATOMIC_RELAXED);
}

void bl_work_reliable(struct bl_endpoint *ep)
{
	uint64_t mono = bl_mono();

	raise_turn(ep, mono);
	if (ep->rsent && ep->rreaped != ep->rtail)
		bl_rtx_reap(ep);
	if (ep->rtimer_ns)
		bl_rtx_timers(ep, mono);
	if (ep->windows)
		bl_rrx_windows(ep);
	if (ep->rheld)
		bl_rtx_flush(ep);
}

void bl_work(struct bl_endpoint *ep)
{
	uint64_t last;

	bl_fig_call(ep);
	if (ep->daemon_gone)
		bl_again(ep);
	if (!(++ep->works % BL_SWEEP_LOOK) && ep->peers)
		bl_sweep(ep, bl_mono());
	last = ep->put_out && ep->ended ? bl_failures_last(ep) : bl_rx_drain(ep);
	if (bl_is_out(ep)) {
		bl_recall_work(ep, last);
		return;
	}
	if (last != ep->fail_seen || ep->fail_begun != ep->fail_seen)
		bl_recall_work(ep, last);
	if (ep->timers_ns)
		bl_tx_timers(ep, bl_mono());
	if (ep->credits)
		bl_rx_credits(ep);
	if (ep->held)
		bl_tx_flush(ep);
	if (ep->reliable)
		bl_work_reliable(ep);
	if (ep->ask_ns)
		bl_ask_timers(ep, bl_mono());
	if (ep->nfailed && !ep->by_helper)
		bl_tx_report(ep);
	if (ep->news && !ep->by_helper)
		bl_presence_report(ep);
	if (bl_is_drained(ep))
		bl_drain_work(ep);
}
