// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The helper's turn. It does everything that the application's calls would do but run callbacks,
 * and puts what can be delivered on the shelf.
 */
#include "ask.h"
#include "away.h"
#include "credit.h"
#include "failures.h"
#include "prepared.h"
#include "rx.h"
#include "shelf.h"
#include "tx.h"
#include "wake.h"
#include "work.h"

/* How often the helper tests whether the application has taken messages off a full shelf. */
#define AWAY_FULL_NS 10000000ULL

bool bl_away_due(const struct bl_endpoint *ep)
{
	uint64_t now = bl_mono();

	if (ep->put_out || ep->outcast)
		return false;
	return *ep->ring_cons != __atomic_load_n(ep->ring_prod, __ATOMIC_ACQUIRE) ||
	       bl_rx_ready(ep) || bl_rrx_ready(ep) || bl_failures_last(ep) != ep->fail_begun ||
	       (ep->timers_ns && now >= ep->timers_ns) || (ep->rtimer_ns && now >= ep->rtimer_ns) ||
	       (ep->ask_ns && now >= ep->ask_ns);
}

/* Do everything but callbacks. @full: take nothing more out of the ring. */
static void work_away(struct bl_endpoint *ep, bool full)
{
	if (full) {
		if (bl_is_out(ep))
			return;
		if (ep->timers_ns)
			bl_tx_timers(ep, bl_mono());
		if (ep->reliable)
			bl_work_reliable(ep);
		if (ep->ask_ns)
			bl_ask_timers(ep, bl_mono());
		return;
	}
	bl_work(ep);
	if (ep->put_out || ep->outcast)
		return; /* the application delivers what is certain */
	bl_shelf_fill(ep);
	if (ep->credits)
		bl_rx_credits(ep);
	if (ep->windows)
		bl_rrx_windows(ep);
}

/* Make bl_fd() readable if a bl_process() of the application would find more than before. */
static void wake_application(struct bl_endpoint *ep, bool news)
{
	if (ep->raised || !(news || ep->nfailed || ep->news || ep->fail_seen != ep->fail_settled ||
			    ep->put_out || ep->outcast))
		return;
	ep->raised = true;
	bl_wake_raise_fd(ep);
}

int bl_away_work(struct bl_endpoint *ep, bool *armed)
{
	unsigned int what = BL_WAIT_RECV | (ep->reliable ? BL_WAIT_RECV_RELIABLE : 0) |
			    (ep->rheld ? BL_WAIT_SEND_RELIABLE : 0);
	bool full = bl_shelf_full(ep), news = false;
	uint64_t at, now;

	ep->by_helper = true;
	for (;;) {
		struct bl_firsts first = bl_wake_firsts(ep, what), then;
		uint64_t frames = ep->st.frames_received;
		uint32_t acked = ep->rreaped;

		if (!full) {
			bl_wake_arm(ep, first, what);
			*armed = true;
		}
		work_away(ep, full);
		full = bl_shelf_full(ep);
		then = bl_wake_firsts(ep, what);
		news |= frames != ep->st.frames_received || acked != ep->rreaped ||
			then.ts != first.ts || then.ts_c != first.ts_c;
		if (full || ep->put_out || ep->outcast ||
		    (frames == ep->st.frames_received && acked == ep->rreaped &&
		     then.ts == first.ts && then.ts_c == first.ts_c))
			break; /* nothing new came, so the wake-up is armed for the right moment */
	}
	ep->by_helper = false;
	wake_application(ep, news);
	if (ep->put_out || ep->outcast)
		return -1;
	at = bl_wake_due_at(ep);
	now = bl_mono();
	if (full && (!at || at > now + AWAY_FULL_NS))
		at = now + AWAY_FULL_NS;
	if (!at)
		return -1;
	return at > now ? (int)((at - now + 999999) / 1000000) : 0;
}
