// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The wake-up of a sleeping endpoint. Nobody is woken for a message that cannot be delivered yet:
 * the sleeper names the timestamp of its first queued frame, and the XDP program wakes it when the
 * barrier has passed that timestamp.
 *
 * Example: the first queued frame has timestamp 500. The sleeper writes 500 into its page
 * and lowers the minimum in the page of hints to 500. The program publishes barrier 480 and wakes
 * nobody; with barrier 510 it finds 500 below the barrier and wakes the sleeper.
 */
#include <sys/timerfd.h>

#include "sweep.h"
#include "wake.h"

struct bl_firsts bl_wake_firsts(const struct bl_endpoint *ep, unsigned int what)
{
	const struct bl_rq_frame *f = bl_rq_min(&ep->rq), *c = bl_rq_min(&ep->rrq);
	struct bl_firsts w = { f ? f->ts : BL_WAKE_ON_DATA, BL_TIME_NONE };

	if (what & BL_WAIT_RECV_RELIABLE)
		w.ts_c = c ? c->ts : BL_WAKE_ON_DATA;
	/* A message that can be delivered but is not waited for must not cause wake-ups. */
	if (!(what & (BL_WAIT_RECV | BL_WAIT_SEND)))
		w.ts = BL_WAKE_ON_DATA;
	return w;
}

/*
 * Lower a minimum of the hints to @until. Pairs with lower_next() and wake_below() in
 * bpf/host/host.bpf.c.
 */
static void lower_minimum(__u64 *next, uint64_t until)
{
	__u64 cur;

	if (until >= BL_WAKE_ON_DATA)
		return;
	cur = __atomic_load_n(next, __ATOMIC_SEQ_CST);
	while (cur > until && !__atomic_compare_exchange_n(next, &cur, until, false,
							   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

/* Whether staged frames wait for slots of the window, and not only for WINDOWs of receivers. */
static bool waits_for_slots(const struct bl_endpoint *ep)
{
	return ep->rts || ep->rstaged > bl_window_room(ep);
}

void bl_wake_arm(struct bl_endpoint *ep, struct bl_firsts firsts, unsigned int what)
{
	__atomic_store_n(&ep->wake->until, firsts.ts, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ep->wake->until_c, firsts.ts_c, __ATOMIC_SEQ_CST);
	/* Pairs with close_slot() in bpf/host/commit.h. */
	if (what & BL_WAIT_ACKED || (what & BL_WAIT_SEND_RELIABLE && waits_for_slots(ep)))
		__atomic_store_n(&ep->wake->on_ack, 1, __ATOMIC_SEQ_CST);
	lower_minimum(&ep->hints->next, firsts.ts);
	lower_minimum(&ep->hints->next_c, firsts.ts_c);
}

void bl_disarm(struct bl_endpoint *ep)
{
	__atomic_store_n(&ep->wake->until_c, BL_TIME_NONE, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ep->wake->until, BL_TIME_NONE, __ATOMIC_SEQ_CST);
	if (ep->reliable)
		__atomic_store_n(&ep->wake->on_ack, 0, __ATOMIC_SEQ_CST);
}

/*
 * The 50 ms are a last resort: the ring may be so full that the program could not put its wake-up
 * into it.
 */
uint64_t bl_wake_due_at(const struct bl_endpoint *ep)
{
	uint64_t at = ep->timers_ns && (!ep->rtimer_ns || ep->timers_ns < ep->rtimer_ns)
			      ? ep->timers_ns
			      : ep->rtimer_ns;
	uint64_t fallback;

	if (ep->ask_ns && (!at || ep->ask_ns < at))
		at = ep->ask_ns;
	/* Senders that fall silent give their share of the windows back to the host's endpoints. */
	if (ep->nic.senders && ep->sweep_ns && (!at || ep->sweep_ns < at))
		at = ep->sweep_ns;
	if (!at && !ep->rq.frames && !ep->rrq.frames && !ep->daemon_gone)
		fallback = 0;
	else
		fallback = bl_mono() + 50000000ULL;
	return !at || (fallback && fallback < at) ? fallback : at;
}

void bl_wake_set_timer(struct bl_endpoint *ep)
{
	struct itimerspec it = { .it_value = { .tv_nsec = 0 } };
	uint64_t at = bl_wake_due_at(ep);

	ep->raised = false;
	ep->works |= BL_SWEEP_LOOK - 1; /* the next call looks whether a sweep is due */
	it.it_value.tv_sec = (time_t)(at / 1000000000ULL);
	it.it_value.tv_nsec = (long)(at % 1000000000ULL);
	timerfd_settime(ep->timerfd, TFD_TIMER_ABSTIME, &it, NULL);
}

void bl_wake_raise_fd(struct bl_endpoint *ep)
{
	timerfd_settime(ep->timerfd, TFD_TIMER_ABSTIME,
			&(struct itimerspec){ .it_value = { .tv_nsec = 1 } }, NULL);
}
