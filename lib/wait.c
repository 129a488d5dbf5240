// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Doing what is due, and sleeping. A sleeper writes into the wake page how far the barrier must have come for it to have something to do; the XDP
 * program wakes it through the ring's wait queue when it has. Nobody is woken for a message that cannot be delivered yet.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "internal.h"

/* everything but delivery */
static void work(struct bl_endpoint *ep)
{
	bl_rx_drain(ep);
	if (ep->timers_ns)
		bl_tx_timers(ep, bl_mono());
	if (ep->credits)
		bl_rx_credits(ep);
	if (ep->held)
		bl_tx_flush(ep);
	if (ep->nfailed)
		bl_tx_report(ep);
}

/* pairs with lower_next() and wake_below() in bpf/host.bpf.c */
static void arm(struct bl_endpoint *ep, uint64_t until)
{
	__u64 cur;

	__atomic_store_n(&ep->wake->ep[ep->slot].until, until, __ATOMIC_SEQ_CST);
	if (until >= BL_WAKE_ON_DATA)
		return;
	cur = __atomic_load_n(&ep->wake->next, __ATOMIC_SEQ_CST);
	while (cur > until && !__atomic_compare_exchange_n(&ep->wake->next, &cur, until, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void disarm(struct bl_endpoint *ep)
{
	__atomic_store_n(&ep->wake->ep[ep->slot].until, BL_TIME_NONE, __ATOMIC_SEQ_CST);
}

static unsigned int holds(const struct bl_endpoint *ep, unsigned int what)
{
	unsigned int res = 0;

	if (what & BL_WAIT_RECV && bl_rx_ready(ep))
		res |= BL_WAIT_RECV;
	if (what & BL_WAIT_SEND && bl_tx_room(ep))
		res |= BL_WAIT_SEND;
	return res;
}

/*
 * Ask to be woken, then look once more: what came in between is found here, what comes later finds us armed. Returns what holds already.
 */
static unsigned int arm_and_look(struct bl_endpoint *ep, unsigned int what)
{
	for (;;) {
		const struct bl_rq_frame *f = bl_rq_min(&ep->rq);
		uint64_t first = f ? f->ts : BL_WAKE_ON_DATA, before = ep->st.frames_received;
		unsigned int res;

		arm(ep, first);
		work(ep);
		res = holds(ep, what);
		if (res) {
			disarm(ep);
			return res;
		}
		f = bl_rq_min(&ep->rq);
		if (before == ep->st.frames_received && (f ? f->ts : BL_WAKE_ON_DATA) == first)
			return 0; /* nothing new: armed for the right moment */
	}
}

/* The timer that bl_fd() needs for probes; also the last resort against a ring so full that the program could not put its wake-up into it. */
static void set_timer(struct bl_endpoint *ep)
{
	uint64_t at = ep->timers_ns;
	struct itimerspec it = { .it_value = { .tv_nsec = 0 } };
	uint64_t fallback;

	if (!at && !ep->rq.frames)
		fallback = 0;
	else
		fallback = bl_mono() + 50000000ULL;
	if (!at || (fallback && fallback < at))
		at = fallback;
	it.it_value.tv_sec = (time_t)(at / 1000000000ULL);
	it.it_value.tv_nsec = (long)(at % 1000000000ULL);
	timerfd_settime(ep->timerfd, TFD_TIMER_ABSTIME, &it, NULL);
}

int bl_fd(const struct bl_endpoint *ep)
{
	return ep->epfd;
}

static void clear_events(struct bl_endpoint *ep)
{
	struct epoll_event ev[2];
	uint64_t ticks;

	if (epoll_wait(ep->epfd, ev, 2, 0) > 0)
		(void)!read(ep->timerfd, &ticks, sizeof(ticks));
}

int bl_process(struct bl_endpoint *ep)
{
	int n;

	disarm(ep);
	clear_events(ep);
	bl_rx_release(ep);
	work(ep);
	n = bl_rx_count_ready(ep);
	if (!n && !arm_and_look(ep, BL_WAIT_RECV)) {
		set_timer(ep);
		return 0;
	}
	/* nobody is armed: the descriptor stays readable until a call that finds nothing, as level-triggered loops expect */
	timerfd_settime(ep->timerfd, TFD_TIMER_ABSTIME, &(struct itimerspec){ .it_value = { .tv_nsec = 1 } }, NULL);
	return n ? n : bl_rx_count_ready(ep);
}

int bl_wait(struct bl_endpoint *ep, unsigned int what, int timeout_ms)
{
	uint64_t end = timeout_ms > 0 ? bl_mono() + (uint64_t)timeout_ms * 1000000ULL : 0;

	if (!what || what & ~(BL_WAIT_SEND | BL_WAIT_RECV))
		return bl_set_error(ep, EINVAL, "bl_wait() waits for BL_WAIT_SEND, BL_WAIT_RECV or both");
	for (;;) {
		struct epoll_event ev[2];
		unsigned int res;
		uint64_t ticks;
		int ms = timeout_ms, rc;

		work(ep);
		res = holds(ep, what);
		if (res || !timeout_ms)
			return (int)res;
		res = arm_and_look(ep, what);
		if (res)
			return (int)res;
		if (timeout_ms > 0) {
			uint64_t now = bl_mono();

			if (now >= end) {
				disarm(ep);
				return 0;
			}
			ms = (int)((end - now + 999999) / 1000000);
		}
		set_timer(ep);
		ep->st.sleeps++;
		rc = epoll_wait(ep->epfd, ev, 2, ms);
		if (rc < 0 && errno == EINTR) {
			disarm(ep);
			return bl_set_error(ep, EINTR, "interrupted by a signal");
		}
		if (rc < 0)
			return bl_set_error(ep, errno, "epoll: %m");
		if (rc > 0) {
			ep->st.wakeups++;
			(void)!read(ep->timerfd, &ticks, sizeof(ticks));
		}
		disarm(ep);
	}
}

int bl_recv(struct bl_endpoint *ep, struct bl_delivery *out, size_t max, int timeout_ms)
{
	int n;

	bl_rx_release(ep);
	if (!max)
		return bl_set_error(ep, EINVAL, "bl_recv() needs room for a delivery");
	for (;;) {
		work(ep);
		n = bl_rx_deliver(ep, out, max);
		if (n || !timeout_ms)
			break;
		n = bl_wait(ep, BL_WAIT_RECV, timeout_ms);
		if (n <= 0)
			return n;
	}
	if (ep->credits)
		bl_rx_credits(ep);
	return n;
}
