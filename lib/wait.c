// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Doing what is due, and sleeping. A sleeper writes into the wake page how far the barrier must
 * have come for it to have something to do; the XDP program wakes it through the ring's wait queue
 * when it has. Nobody is woken for a message that cannot be delivered yet.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "internal.h"

#define WAIT_ALL                                                                       \
	(BL_WAIT_SEND | BL_WAIT_RECV | BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE | \
	 BL_WAIT_ACKED)

/* so often is looked whether the application has taken something off a full shelf */
#define AWAY_FULL_NS 10000000ULL
/* the line is read whenever a frame of this host leaves: it is not written at every call */
#define TURN_NS 1000000ULL

/*
 * Whoever works is not to blame for a receiver that does not answer; pairs with
 * loader/order/limits.c.
 */
static void take_turn(struct bl_endpoint *ep, uint64_t mono)
{
	struct bl_inflight *mine = &ep->inflight[ep->slot];

	if (mono - ep->turn_ns < TURN_NS || !(ep->rts || (ep->rsent && ep->rreaped != ep->rtail)))
		return;
	ep->turn_ns = mono;
	__atomic_store_n(&mine->turn, mine->turn + 1, __ATOMIC_RELAXED);
}

static void work_reliable(struct bl_endpoint *ep)
{
	uint64_t mono = bl_mono();

	take_turn(ep, mono);
	if (ep->rsent && ep->rreaped != ep->rtail)
		bl_rtx_reap(ep);
	if (ep->rtimer_ns)
		bl_rtx_timers(ep, mono);
	if (ep->windows)
		bl_rrx_windows(ep);
	if (ep->rheld)
		bl_rtx_flush(ep);
}

/* everything but delivery */
static void work(struct bl_endpoint *ep)
{
	uint64_t last;

	if (ep->daemon_gone)
		bl_again(ep);
	last = ep->put_out && ep->ended ? bl_recall_last(ep) : bl_rx_drain(ep);
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
		work_reliable(ep);
	if (ep->nfailed && !ep->by_helper)
		bl_tx_report(ep);
}

/* what one waits for: timestamps of the first frames of either stream */
struct firsts {
	uint64_t ts, ts_c;
};

static struct firsts firsts(const struct bl_endpoint *ep, unsigned int what)
{
	const struct bl_rq_frame *f = bl_rq_min(&ep->rq), *c = bl_rq_min(&ep->rrq);
	struct firsts w = { f ? f->ts : BL_WAKE_ON_DATA, BL_TIME_NONE };

	if (what & BL_WAIT_RECV_RELIABLE)
		w.ts_c = c ? c->ts : BL_WAKE_ON_DATA;
	/* what can be delivered, and is not what one waits for, must not wake all the time */
	if (!(what & (BL_WAIT_RECV | BL_WAIT_SEND)))
		w.ts = BL_WAKE_ON_DATA;
	return w;
}

/* pairs with lower_next() and wake_below() in bpf/host/host.bpf.c */
static void arm_one(__u64 *next, uint64_t until)
{
	__u64 cur;

	if (until >= BL_WAKE_ON_DATA)
		return;
	cur = __atomic_load_n(next, __ATOMIC_SEQ_CST);
	while (cur > until && !__atomic_compare_exchange_n(next, &cur, until, false,
							   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void arm(struct bl_endpoint *ep, struct firsts w, unsigned int what)
{
	__atomic_store_n(&ep->wake->ep[ep->slot].until, w.ts, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ep->wake->ep[ep->slot].until_c, w.ts_c, __ATOMIC_SEQ_CST);
	/* pairs with close_slot() in bpf/host/commit.h */
	if (what & BL_WAIT_ACKED || (what & BL_WAIT_SEND_RELIABLE && bl_rtx_short(ep)))
		__atomic_store_n(&ep->wake->ep[ep->slot].on_ack, 1, __ATOMIC_SEQ_CST);
	arm_one(&ep->wake->next, w.ts);
	arm_one(&ep->wake->next_c, w.ts_c);
}

void bl_disarm(struct bl_endpoint *ep)
{
	__atomic_store_n(&ep->wake->ep[ep->slot].until_c, BL_TIME_NONE, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ep->wake->ep[ep->slot].until, BL_TIME_NONE, __ATOMIC_SEQ_CST);
	if (ep->reliable)
		__atomic_store_n(&ep->wake->ep[ep->slot].on_ack, 0, __ATOMIC_SEQ_CST);
}

/*
 * Whether a call for @what could never end well: whoever is out begins anew, when he was delivered
 * what is certain.
 */
static bool hopeless(const struct bl_endpoint *ep, unsigned int what)
{
	if (!ep->put_out && !(ep->outcast && what & (BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE |
						     BL_WAIT_ACKED)))
		return false;
	return !(what & BL_WAIT_RECV_RELIABLE) || ep->undecided ||
	       (ep->ended && !bl_rrx_ready(ep) && !bl_shelf_count(ep, true));
}

static unsigned int holds(const struct bl_endpoint *ep, unsigned int what)
{
	unsigned int res = 0;

	if (what & BL_WAIT_RECV && (bl_rx_ready(ep) || bl_shelf_count(ep, false)))
		res |= BL_WAIT_RECV;
	if (what & BL_WAIT_SEND && bl_tx_room(ep))
		res |= BL_WAIT_SEND;
	if (what & BL_WAIT_RECV_RELIABLE && (bl_rrx_ready(ep) || bl_shelf_count(ep, true)))
		res |= BL_WAIT_RECV_RELIABLE;
	if (what & BL_WAIT_SEND_RELIABLE && bl_rtx_room(ep))
		res |= BL_WAIT_SEND_RELIABLE;
	if (what & BL_WAIT_ACKED && bl_rtx_empty(ep))
		res |= BL_WAIT_ACKED;
	return res;
}

/*
 * Ask to be woken, then look once more: what came in between is found here, what comes later finds
 * us armed. Returns what holds already.
 */
static unsigned int arm_and_look(struct bl_endpoint *ep, unsigned int what)
{
	for (;;) {
		struct firsts first = firsts(ep, what), now;
		uint64_t before = ep->st.frames_received;
		uint32_t acked = ep->rreaped;
		unsigned int res;

		arm(ep, first, what);
		work(ep);
		res = holds(ep, what);
		if (res || hopeless(ep, what)) {
			bl_disarm(ep);
			return res;
		}
		now = firsts(ep, what);
		if (before == ep->st.frames_received && acked == ep->rreaped &&
		    now.ts == first.ts && now.ts_c == first.ts_c)
			return 0; /* nothing new: armed for the right moment */
	}
}

/*
 * When there is something to do without a wake-up; 0: never. Also the last resort against a ring so
 * full that the program could not put its wake-up into it.
 */
static uint64_t due_at(const struct bl_endpoint *ep)
{
	uint64_t at = ep->timers_ns && (!ep->rtimer_ns || ep->timers_ns < ep->rtimer_ns)
			      ? ep->timers_ns
			      : ep->rtimer_ns;
	uint64_t fallback;

	if (!at && !ep->rq.frames && !ep->rrq.frames && !ep->daemon_gone)
		fallback = 0;
	else
		fallback = bl_mono() + 50000000ULL;
	return !at || (fallback && fallback < at) ? fallback : at;
}

/* The timer that bl_fd() needs for probes. */
static void set_timer(struct bl_endpoint *ep)
{
	struct itimerspec it = { .it_value = { .tv_nsec = 0 } };
	uint64_t at = due_at(ep);

	ep->raised = false;
	it.it_value.tv_sec = (time_t)(at / 1000000000ULL);
	it.it_value.tv_nsec = (long)(at % 1000000000ULL);
	timerfd_settime(ep->timerfd, TFD_TIMER_ABSTIME, &it, NULL);
}

int bl_fd(const struct bl_endpoint *ep)
{
	return ep->epfd;
}

static void take_events(struct bl_endpoint *ep, const struct epoll_event *ev, int n)
{
	uint64_t ticks;

	(void)!read(ep->timerfd, &ticks, sizeof(ticks));
	while (n--)
		if (ev[n].data.u32 == BL_EV_DAEMON)
			bl_daemon_hear(ep);
}

static void clear_events(struct bl_endpoint *ep)
{
	struct epoll_event ev[3];
	int n = epoll_wait(ep->epfd, ev, 3, 0);

	ep->raised = false;
	if (n > 0)
		take_events(ep, ev, n);
}

static int count_ready(const struct bl_endpoint *ep)
{
	uint32_t kept = bl_shelf_count(ep, false), rkept = bl_shelf_count(ep, true);
	int n = ep->put_out ? 0 : bl_rx_count_ready(ep),
	    rel = ep->reliable ? bl_rrx_count_ready(ep) : 0;

	n = kept + (uint32_t)n < 64 ? (int)kept + n : 64;
	return n + (rkept + (uint32_t)rel < 64 ? (int)rkept + rel : 64);
}

/* At once, and as long as nobody asks. */
static void raise_fd(struct bl_endpoint *ep)
{
	timerfd_settime(ep->timerfd, TFD_TIMER_ABSTIME,
			&(struct itimerspec){ .it_value = { .tv_nsec = 1 } }, NULL);
}

/* ---- the helper's turn (helper.c) ---- */

bool bl_away_due(const struct bl_endpoint *ep)
{
	uint64_t now = bl_mono();

	if (ep->put_out || ep->outcast)
		return false;
	return *ep->ring_cons != __atomic_load_n(ep->ring_prod, __ATOMIC_ACQUIRE) ||
	       bl_rx_ready(ep) || bl_rrx_ready(ep) || bl_recall_last(ep) != ep->fail_begun ||
	       (ep->timers_ns && now >= ep->timers_ns) || (ep->rtimer_ns && now >= ep->rtimer_ns);
}

/* Everything but callbacks; of what came, no more than the shelf may hold. */
static void away(struct bl_endpoint *ep, bool full)
{
	if (full) {
		if (bl_is_out(ep))
			return;
		if (ep->timers_ns)
			bl_tx_timers(ep, bl_mono());
		if (ep->reliable)
			work_reliable(ep);
		return;
	}
	work(ep);
	if (ep->put_out || ep->outcast)
		return; /* what is certain is the application's to deliver */
	bl_shelf_fill(ep);
	if (ep->credits)
		bl_rx_credits(ep);
	if (ep->windows)
		bl_rrx_windows(ep);
}

/* Whether a bl_process() of the application would find more than before. */
static void tell(struct bl_endpoint *ep, bool news)
{
	if (ep->raised || !(news || ep->nfailed || ep->fail_seen != ep->fail_settled ||
			    ep->put_out || ep->outcast))
		return;
	ep->raised = true;
	raise_fd(ep);
}

int bl_away_work(struct bl_endpoint *ep, bool *armed)
{
	unsigned int what = BL_WAIT_RECV | (ep->reliable ? BL_WAIT_RECV_RELIABLE : 0) |
			    (ep->rheld ? BL_WAIT_SEND_RELIABLE : 0);
	bool full = bl_shelf_full(ep), news = false;
	uint64_t at, now;

	ep->by_helper = true;
	for (;;) {
		struct firsts first = firsts(ep, what), then;
		uint64_t frames = ep->st.frames_received;
		uint32_t acked = ep->rreaped;

		if (!full) {
			arm(ep, first, what);
			*armed = true;
		}
		away(ep, full);
		full = bl_shelf_full(ep);
		then = firsts(ep, what);
		news |= frames != ep->st.frames_received || acked != ep->rreaped ||
			then.ts != first.ts || then.ts_c != first.ts_c;
		if (full || ep->put_out || ep->outcast ||
		    (frames == ep->st.frames_received && acked == ep->rreaped &&
		     then.ts == first.ts && then.ts_c == first.ts_c))
			break; /* nothing new: armed for the right moment */
	}
	ep->by_helper = false;
	tell(ep, news);
	if (ep->put_out || ep->outcast)
		return -1;
	at = due_at(ep);
	now = bl_mono();
	if (full && (!at || at > now + AWAY_FULL_NS))
		at = now + AWAY_FULL_NS;
	if (!at)
		return -1;
	return at > now ? (int)((at - now + 999999) / 1000000) : 0;
}

/* ---- the application's calls ---- */

static int process(struct bl_endpoint *ep)
{
	unsigned int what;
	int n;

	if (ep->helper && (n = bl_helper_failed(ep)))
		return n;

	bl_disarm(ep);
	clear_events(ep);
	work(ep);
	what = BL_WAIT_RECV | (ep->reliable ? BL_WAIT_RECV_RELIABLE : 0);
	if (hopeless(ep, what))
		return bl_outcast(ep);
	n = count_ready(ep);
	if (!n && !arm_and_look(ep, what)) {
		if (hopeless(ep, what))
			return bl_outcast(ep);
		set_timer(ep);
		return 0;
	}
	/*
	 * nobody is armed: the descriptor stays readable until a call that finds nothing, as
	 * level-triggered loops expect
	 */
	raise_fd(ep);
	return n ? n : count_ready(ep);
}

int bl_process(struct bl_endpoint *ep)
{
	int rc;

	bl_enter(ep);
	rc = process(ep);
	bl_leave(ep);
	return rc;
}

static int wait_for(struct bl_endpoint *ep, unsigned int what, int timeout_ms)
{
	uint64_t end = timeout_ms > 0 ? bl_mono() + (uint64_t)timeout_ms * 1000000ULL : 0;

	if (!what || what & ~WAIT_ALL)
		return bl_set_error(ep, EINVAL,
				    "bl_wait() waits for one or more of BL_WAIT_SEND, "
				    "BL_WAIT_RECV, BL_WAIT_SEND_RELIABLE, BL_WAIT_RECV_RELIABLE, "
				    "BL_WAIT_ACKED");
	if (what & (BL_WAIT_RECV_RELIABLE | BL_WAIT_SEND_RELIABLE | BL_WAIT_ACKED))
		ep->reliable = true;
	for (;;) {
		struct epoll_event ev[3];
		unsigned int res;
		int ms = timeout_ms, rc;

		work(ep);
		if (hopeless(ep, what))
			return bl_outcast(ep);
		res = holds(ep, what);
		if (res || !timeout_ms)
			return (int)res;
		res = arm_and_look(ep, what);
		if (hopeless(ep, what))
			return bl_outcast(ep);
		if (res)
			return (int)res;
		if (timeout_ms > 0) {
			uint64_t now = bl_mono();

			if (now >= end) {
				bl_disarm(ep);
				return 0;
			}
			ms = (int)((end - now + 999999) / 1000000);
		}
		set_timer(ep);
		ep->st.sleeps++;
		rc = ep->helper ? bl_helper_sleep(ep, ev, 3, ms) : epoll_wait(ep->epfd, ev, 3, ms);
		if (rc < 0 && errno == EINTR) {
			bl_disarm(ep);
			return bl_set_error(ep, EINTR, "interrupted by a signal");
		}
		if (rc < 0)
			return bl_set_error(ep, errno, "epoll: %m");
		if (rc > 0) {
			ep->st.wakeups++;
			take_events(ep, ev, rc);
		}
		bl_disarm(ep);
	}
}

int bl_wait(struct bl_endpoint *ep, unsigned int what, int timeout_ms)
{
	int rc;

	bl_enter(ep);
	rc = ep->helper ? bl_helper_failed(ep) : 0;
	if (!rc)
		rc = wait_for(ep, what, timeout_ms);
	bl_leave(ep);
	return rc;
}

/* First what the helper has taken out; what came after it only when that is all gone. */
static int deliver(struct bl_endpoint *ep, bool reliable, struct bl_delivery *out, size_t max)
{
	struct bl_shelf *s = reliable ? &ep->rshelf : &ep->shelf;
	size_t n = s->head ? bl_shelf_take(ep, reliable, out, max) : 0;

	if (n == max || s->head)
		return (int)n;
	return (int)n + (reliable ? bl_rrx_deliver(ep, out + n, max - n)
				  : bl_rx_deliver(ep, out + n, max - n));
}

static int receive(struct bl_endpoint *ep, struct bl_delivery *out, size_t max, int timeout_ms,
		   unsigned int what)
{
	bool reliable = what == BL_WAIT_RECV_RELIABLE;
	struct bl_lent *lent = reliable ? &ep->rlent : &ep->lent;
	int n;

	if (ep->helper && (n = bl_helper_failed(ep)))
		return n;
	bl_rx_release(ep, lent);
	if (!max)
		return bl_set_error(ep, EINVAL, "there must be room for a delivery");
	for (;;) {
		work(ep);
		if (hopeless(ep, what)) {
			/* what the helper took out was delivered as far as all others can tell */
			n = (int)bl_shelf_take(ep, reliable, out, max);
			return n ? n : bl_outcast(ep);
		}
		n = deliver(ep, reliable, out, max);
		if (n || !timeout_ms)
			break;
		n = wait_for(ep, what, timeout_ms);
		if (n <= 0)
			return n;
	}
	if (ep->credits)
		bl_rx_credits(ep);
	if (ep->windows)
		bl_rrx_windows(ep);
	return n;
}

int bl_recv(struct bl_endpoint *ep, struct bl_delivery *out, size_t max, int timeout_ms)
{
	int rc;

	bl_enter(ep);
	rc = receive(ep, out, max, timeout_ms, BL_WAIT_RECV);
	bl_leave(ep);
	return rc;
}

int bl_recv_reliable(struct bl_endpoint *ep, struct bl_delivery *out, size_t max, int timeout_ms)
{
	int rc;

	bl_enter(ep);
	ep->reliable = true;
	rc = receive(ep, out, max, timeout_ms, BL_WAIT_RECV_RELIABLE);
	bl_leave(ep);
	return rc;
}
