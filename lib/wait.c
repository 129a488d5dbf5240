// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bl_recv(), bl_process() and bl_wait(): do what is due, deliver, and sleep until there is
 * something to do (wake.c).
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "again.h"
#include "ask.h"
#include "buf.h"
#include "credit.h"
#include "error.h"
#include "figures.h"
#include "lock.h"
#include "prepared.h"
#include "rtx.h"
#include "rx.h"
#include "shelf.h"
#include "tx.h"
#include "wake.h"
#include "work.h"

#define WAIT_ALL                                                                       \
	(BL_WAIT_SEND | BL_WAIT_RECV | BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE | \
	 BL_WAIT_ACKED | BL_WAIT_CREDITED)

/* Of wait_for_condition() alone: the peer ep->wait_for has answered. */
#define WAIT_PEER (1u << 30)

/*
 * Whether a call for @what can never succeed: the endpoint is out and has delivered what is
 * certain.
 */
static bool is_hopeless(const struct bl_endpoint *ep, unsigned int what)
{
	if (!ep->put_out && !(ep->outcast && what & (BL_WAIT_SEND_RELIABLE | BL_WAIT_RECV_RELIABLE |
						     BL_WAIT_ACKED | WAIT_PEER)))
		return false;
	return !(what & BL_WAIT_RECV_RELIABLE) || ep->undecided ||
	       (ep->ended && !bl_rrx_ready(ep) && !bl_shelf_count(ep, true));
}

static unsigned int conditions_met(const struct bl_endpoint *ep, unsigned int what)
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
	if (what & BL_WAIT_CREDITED && !ep->dirty && !ep->flying)
		res |= BL_WAIT_CREDITED;
	if (what & WAIT_PEER && bl_ask_reached(ep))
		res |= WAIT_PEER;
	return res;
}

/*
 * Arm the wake-up, then check again: what came before it was armed is found here, what comes later
 * wakes the sleeper. Returns the conditions that hold already.
 */
static unsigned int arm_and_recheck(struct bl_endpoint *ep, unsigned int what)
{
	for (;;) {
		struct bl_firsts first = bl_wake_firsts(ep, what), now;
		uint64_t before = ep->st.frames_received;
		uint32_t acked = ep->rreaped;
		unsigned int res;

		bl_wake_arm(ep, first, what);
		bl_work(ep);
		res = conditions_met(ep, what);
		if (res || is_hopeless(ep, what)) {
			bl_disarm(ep);
			return res;
		}
		now = bl_wake_firsts(ep, what);
		if (before == ep->st.frames_received && acked == ep->rreaped &&
		    now.ts == first.ts && now.ts_c == first.ts_c)
			/* nothing new came, so the wake-up is armed for the right moment */
			return 0;
	}
}

int bl_fd(const struct bl_endpoint *ep)
{
	return ep->epfd;
}

static void handle_events(struct bl_endpoint *ep, const struct epoll_event *ev, int n)
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
		handle_events(ep, ev, n);
}

static int count_ready(const struct bl_endpoint *ep)
{
	uint32_t kept = bl_shelf_count(ep, false), rkept = bl_shelf_count(ep, true);
	int n = ep->put_out ? 0 : bl_rx_count_ready(ep),
	    rel = ep->reliable ? bl_rrx_count_ready(ep) : 0;

	n = kept + (uint32_t)n < 64 ? (int)kept + n : 64;
	return n + (rkept + (uint32_t)rel < 64 ? (int)rkept + rel : 64);
}

static int process_endpoint(struct bl_endpoint *ep)
{
	unsigned int what;
	int n;

	if (ep->helper && (n = bl_helper_failed(ep)))
		return n;

	bl_disarm(ep);
	clear_events(ep);
	bl_work(ep);
	what = BL_WAIT_RECV | (ep->reliable ? BL_WAIT_RECV_RELIABLE : 0);
	if (is_hopeless(ep, what))
		return bl_outcast(ep);
	n = count_ready(ep);
	if (!n && !arm_and_recheck(ep, what)) {
		if (is_hopeless(ep, what))
			return bl_outcast(ep);
		bl_wake_set_timer(ep);
		bl_fig_sleep(ep);
		return 0;
	}
	/*
	 * No wake-up is armed: the descriptor stays readable until a call finds nothing, as
	 * level-triggered loops expect.
	 */
	bl_wake_raise_fd(ep);
	return n ? n : count_ready(ep);
}

int bl_process(struct bl_endpoint *ep)
{
	int rc;

	bl_enter(ep);
	rc = process_endpoint(ep);
	bl_leave(ep);
	return rc;
}

static int wait_for_condition(struct bl_endpoint *ep, unsigned int what, int timeout_ms)
{
	uint64_t end = timeout_ms > 0 ? bl_mono() + (uint64_t)timeout_ms * 1000000ULL : 0;

	if (!what || what & ~(WAIT_ALL | WAIT_PEER))
		return bl_set_error(ep, EINVAL,
				    "bl_wait() waits for one or more of BL_WAIT_SEND, "
				    "BL_WAIT_RECV, BL_WAIT_SEND_RELIABLE, BL_WAIT_RECV_RELIABLE, "
				    "BL_WAIT_ACKED, BL_WAIT_CREDITED");
	if (what & (BL_WAIT_RECV_RELIABLE | BL_WAIT_SEND_RELIABLE | BL_WAIT_ACKED))
		ep->reliable = true;
	for (;;) {
		struct epoll_event ev[3];
		unsigned int res;
		int ms = timeout_ms, rc;

		bl_work(ep);
		if (is_hopeless(ep, what))
			return bl_outcast(ep);
		res = conditions_met(ep, what);
		if (res || !timeout_ms)
			return (int)res;
		res = arm_and_recheck(ep, what);
		if (is_hopeless(ep, what))
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
		bl_wake_set_timer(ep);
		ep->st.sleeps++;
		bl_fig_sleep(ep);
		rc = ep->helper ? bl_helper_sleep(ep, ev, 3, ms) : epoll_wait(ep->epfd, ev, 3, ms);
		if (rc < 0 && errno == EINTR) {
			bl_disarm(ep);
			return bl_set_error(ep, EINTR, "interrupted by a signal");
		}
		if (rc < 0)
			return bl_set_error(ep, errno, "epoll: %m");
		if (rc > 0) {
			ep->st.wakeups++;
			handle_events(ep, ev, rc);
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
		rc = wait_for_condition(ep, what & WAIT_PEER ? 0 : what, timeout_ms);
	bl_leave(ep);
	return rc;
}

static int wait_for_peer(struct bl_endpoint *ep, int timeout_ms)
{
	int rc = ep->helper ? bl_helper_failed(ep) : 0;

	if (rc)
		return rc;
	if (bl_is_out(ep) || ep->outcast)
		return bl_outcast(ep);
	rc = bl_ask_begin(ep);
	if (rc)
		return rc;
	rc = wait_for_condition(ep, WAIT_PEER, timeout_ms);
	bl_ask_end(ep);
	return rc;
}

int bl_peer_wait(struct bl_endpoint *ep, const struct bl_addr *peer, int timeout_ms)
{
	const struct bl_addr who = *peer, *const outer = ep->wait_for;
	const uint64_t outer_since = ep->wait_since_ns;
	char text[64];
	int rc;

	bl_enter(ep);
	if (!who.port || !memcmp(who.ip, (uint8_t[16]){ 0 }, 16)) {
		rc = bl_set_error(ep, EINVAL, "a peer has an address and a port");
	} else {
		/* A callback that runs meanwhile may call this function, too. */
		ep->wait_for = &who;
		rc = wait_for_peer(ep, timeout_ms);
		ep->wait_for = outer;
		ep->wait_since_ns = outer_since;
	}
	if (rc == 0)
		rc = bl_set_error(ep, timeout_ms ? ETIMEDOUT : EAGAIN,
				  "%s has not answered: no endpoint has that address, or its "
				  "process is stopped, or the network does not reach it",
				  bl_addr_format(&who, text, sizeof(text)));
	else if (rc > 0)
		rc = 0;
	bl_leave(ep);
	return rc;
}

/* Deliver what the helper has taken out first; what came after it only when the shelf is empty. */
static int deliver_stream(struct bl_endpoint *ep, bool reliable, struct bl_delivery *out,
			  size_t max)
{
	struct bl_shelf *s = reliable ? &ep->rshelf : &ep->shelf;
	size_t n = s->head ? bl_shelf_take(ep, reliable, out, max) : 0;

	if (n == max || s->head)
		return (int)n;
	return (int)n + (reliable ? bl_rrx_deliver(ep, out + n, max - n)
				  : bl_rx_deliver(ep, out + n, max - n));
}

static int receive_stream(struct bl_endpoint *ep, struct bl_delivery *out, size_t max,
			  int timeout_ms, unsigned int what)
{
	bool reliable = what == BL_WAIT_RECV_RELIABLE;
	struct bl_lent *lent = reliable ? &ep->rlent : &ep->lent;
	int n;

	if (ep->helper && (n = bl_helper_failed(ep)))
		return n;
	bl_rx_release(ep, lent);
	if (!max)
		return bl_set_error(ep, EINVAL, "there must be room for at least one delivery");
	for (;;) {
		bl_work(ep);
		if (is_hopeless(ep, what)) {
			/* for all other processes, what the helper took out was delivered */
			n = (int)bl_shelf_take(ep, reliable, out, max);
			if (n)
				bl_fig_delivered(ep, reliable, out, n);
			return n ? n : bl_outcast(ep);
		}
		n = deliver_stream(ep, reliable, out, max);
		if (n || !timeout_ms)
			break;
		n = wait_for_condition(ep, what, timeout_ms);
		if (n <= 0)
			return n;
	}
	if (n > 0)
		bl_fig_delivered(ep, reliable, out, n);
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
	rc = receive_stream(ep, out, max, timeout_ms, BL_WAIT_RECV);
	bl_leave(ep);
	return rc;
}

int bl_recv_reliable(struct bl_endpoint *ep, struct bl_delivery *out, size_t max, int timeout_ms)
{
	int rc;

	bl_enter(ep);
	ep->reliable = true;
	rc = receive_stream(ep, out, max, timeout_ms, BL_WAIT_RECV_RELIABLE);
	bl_leave(ep);
	return rc;
}
