// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The reliable sender (1Pipe section 5): the window, and retransmission. rstage.c has the messages
 * that wait for it.
 *
 * When the windows of all destinations are open, everything that is staged gets its timestamp, its
 * frames take slots in the window, and only then do they leave. So the commit barrier stays at that
 * timestamp until every frame is acknowledged. The host's programs take the ACKs in; this file
 * looks at the slots that are still open, and sends their frames again after a while.
 *
 * Example: two messages, to A and to B. Slots 7 and 8 are written with ts 500, the tail goes from 7
 * to 9, both frames leave. A's ACK closes slot 7, and the head goes to 8. B's ACK is lost: after 1
 * ms the frame of slot 8 is sent again. B's program stores it once more and answers; B's library
 * finds that it is a duplicate.
 *
 * A scattering with more frames than there are free slots enters the window piece by piece, while
 * the hold of the in-flight line keeps C where it is. Parts of large messages go first: receivers
 * take them out of their buffers at once.
 *
 * A destination is asked for its window (OPEN, open.c) before the first message.
 */
#include <errno.h>
#include <stdlib.h>

#include "batch.h"
#include "discard.h"
#include "failures.h"
#include "figures.h"
#include "forward.h"
#include "frame.h"
#include "nic.h"
#include "open.h"
#include "presence.h"
#include "rrx.h"
#include "rstage.h"
#include "rtx.h"
#include "sweep.h"
#include "timers.h"

#define SEGS_MAX BL_STAGE_FRAMES
/*
 * Frames that are sent again at a time. The queue of a link holds a few hundred frames, and a frame
 * is usually lost in such a queue.
 */
#define AGAIN_MAX    64u
#define AGAIN_GAP_NS 250000ULL

static struct bl_inflight *own_line(const struct bl_endpoint *ep)
{
	return ep->line;
}

static uint32_t outstanding_frames(const struct bl_rtx *t)
{
	return t->next_psn - t->credited;
}

static struct bl_rslot *slot_of(const struct bl_endpoint *ep, uint32_t n)
{
	return bl_rwin_slot(ep->rwin, n);
}

bool bl_rtx_room(const struct bl_endpoint *ep)
{
	return !ep->rheld;
}

bool bl_rtx_empty(const struct bl_endpoint *ep)
{
	return !ep->rdirty && !ep->recalls && !bl_rwin_used(BL_READ_ONCE(own_line(ep)->state));
}

/* ---- to the socket ---- */

static void write_prep_header(struct bl_endpoint *ep, struct bl_rframe *f, uint32_t slot)
{
	uint8_t *body = f->data + sizeof(struct bl_hdr);

	bl_tx_hdr(f->data, BL_OP_PREP, f->ts, f->psn);
	bl_store16(body, ep->incarnation);
	bl_store16(body + 2, f->count);
	bl_store32(body + 4, slot);
	bl_store16(body + 8, f->peer->rtx.life);
	bl_store16(body + 10, 0);
	if (f->len < BL_PREP_MIN) {
		memset(f->data + f->len, 0, BL_PREP_MIN - f->len);
		f->len = BL_PREP_MIN;
	}
}

/*
 * Send frames @from to @to - 1 of the window, runs to one destination as GSO sends. Frames that
 * cannot leave are sent again like lost frames.
 */
static void send_slots(struct bl_endpoint *ep, uint32_t from, uint32_t to)
{
	uint32_t segs = BL_UDP_MOST / ep->frame_max < SEGS_MAX ? BL_UDP_MOST / ep->frame_max
							       : SEGS_MAX;
	union bl_gso ctl[BL_MMSG];
	struct mmsghdr m[BL_MMSG];
	struct iovec io[BL_RWIN];
	uint32_t at, far = 0;

	for (at = from; ep->nic.on && at != to; at++)
		far += !ep->rsent[at % BL_RWIN]->peer->local;
	bl_nic_count(ep, far);
	while (from != to) {
		unsigned int n = 0, used = 0, done = 0;

		for (; from != to && n < BL_MMSG; n++) {
			struct bl_rframe *f = ep->rsent[from % BL_RWIN];
			struct msghdr *h = &m[n].msg_hdr;
			struct bl_peer *p = f->peer;
			uint32_t k = 0, most = bl_gso_allowed(ep) ? segs : 1;

			memset(h, 0, sizeof(*h));
			h->msg_name = &p->sa;
			h->msg_namelen = p->sa_len;
			h->msg_iov = &io[used];
			do {
				f = ep->rsent[from++ % BL_RWIN];
				io[used++] = (struct iovec){ f->data, f->len };
				k++;
			} while (from != to && k < most && !p->local && f->len == ep->frame_max &&
				 ep->rsent[from % BL_RWIN]->peer == p);
			h->msg_iovlen = k;
			if (k > 1)
				bl_gso(h, &ctl[n], (uint16_t)ep->frame_max);
			ep->st.frames_sent += k;
		}
		while (done < n) {
			int rc = sendmmsg(ep->sock, m + done, n - done, 0);

			if (rc > 0) {
				done += (unsigned int)rc;
			} else if (rc == 0 || errno != EINTR) {
				const struct msghdr *h = &m[done++].msg_hdr;
				size_t i,
					k = rc < 0 && bl_gso_refused(h, errno) ? h->msg_iovlen : 0;

				for (i = 0; i < k && !bl_gso_one(ep, h, (uint32_t)i); i++)
					;
			}
		}
	}
}

/* ---- the window ---- */

static void keep_frame(struct bl_endpoint *ep, struct bl_rframe *f)
{
	f->next = ep->rkept;
	ep->rkept = f;
}

/*
 * Timestamp of the first scattering that is not acknowledged as a whole; UINT64_MAX: there is none.
 */
static uint64_t first_incomplete_ts(const struct bl_endpoint *ep, uint32_t head)
{
	if (head != ep->rtail)
		return ep->rsent[head % BL_RWIN]->ts;
	return ep->rts ? ep->rts : UINT64_MAX;
}

/*
 * Frames of a scattering that is not acknowledged as a whole are kept, since the scattering may
 * have to be recalled.
 */
void bl_rtx_reap(struct bl_endpoint *ep)
{
	uint32_t head = bl_rwin_head(BL_READ_ONCE(own_line(ep)->state));
	uint64_t first = first_incomplete_ts(ep, head);
	struct bl_rframe **at, *f;

	while (ep->rreaped != head) {
		uint64_t ack = slot_of(ep, ep->rreaped)->ack_ns;

		f = ep->rsent[ep->rreaped % BL_RWIN];
		if (f->tries == 1 && ack)
			bl_rto_sample(&f->peer->rtx.rto, f->sent_ns, ack);
		else if (ack)
			bl_rto_slow(&f->peer->rtx.rto, f->first_ns, ack);
		f->peer->rtx.unacked--;
		ep->rsent[ep->rreaped++ % BL_RWIN] = NULL;
		if (f->ts < first) {
			bl_rframe_put(ep, f);
		} else {
			keep_frame(ep, f);
		}
	}
	for (at = &ep->rkept; (f = *at);) {
		if (f->ts < first) {
			*at = f->next;
			bl_rframe_put(ep, f);
		} else {
			at = &f->next;
		}
	}
}

/*
 * All receivers have dropped the frames of the recalled scatterings: these do not hold the commit
 * barrier any more, and their messages have failed.
 */
void bl_rtx_aborted(struct bl_endpoint *ep)
{
	struct bl_inflight *mine = own_line(ep);
	struct bl_rframe *f;
	struct bl_peer *p;
	uint32_t n;

	for (f = ep->rkept; f; f = f->next)
		if (f->aborted)
			bl_rframe_fail(ep, f, f->ts, BL_NAK_FAILED);
	for (n = ep->rreaped; n != ep->rtail; n++) {
		f = ep->rsent[n % BL_RWIN];
		if (!f->aborted)
			continue;
		bl_rframe_fail(ep, f, f->ts, BL_NAK_FAILED);
		f->count = 0; /* reported once */
		__atomic_store_n(&slot_of(ep, n)->wait, n, __ATOMIC_SEQ_CST);
	}
	for (f = ep->rkept; f; f = f->next)
		if (f->aborted)
			f->count = 0;
	if (ep->rabort) {
		for (p = ep->rdirty; p; p = p->rdirty_next) {
			struct bl_rlist *const lists[] = { &p->rtx.parts, &p->rtx.items };
			unsigned int k;

			for (k = 0; k < 2; k++)
				for (f = lists[k]->head; f; f = f->next)
					f->ts = ep->rts;
		}
		bl_rstage_drop(ep, BL_NAK_FAILED);
		ep->rabort = false;
		ep->rts = 0;
		__atomic_store_n(&mine->hold, BL_TIME_NONE, __ATOMIC_RELEASE);
	}
	while (ep->rwin && bl_rwin_step(&mine->state, ep->rwin))
		;
	if (ep->rsent)
		bl_rtx_reap(ep);
}

static void put_into_slot(struct bl_endpoint *ep, struct bl_rframe *f, uint64_t mono)
{
	struct bl_rslot *s = slot_of(ep, ep->rtail);

	f->ts = ep->rts;
	f->psn = f->peer->rtx.next_psn++;
	f->sent_ns = f->first_ns = f->peer->rtx.used_ns = mono;
	f->fwd_ns = 0;
	f->tries = 1;
	f->peer->rtx.unacked++;
	write_prep_header(ep, f, ep->rtail);
	s->ts = f->ts;
	memcpy(s->addr, f->peer->addr.ip, sizeof(s->addr));
	s->psn = f->psn;
	s->port = f->peer->addr.port;
	s->life = f->peer->rtx.life;
	s->ack_ns = 0;
	__atomic_store_n(&s->wait, BL_RSLOT_OPEN | ep->rtail, __ATOMIC_RELEASE);
	ep->rsent[ep->rtail++ % BL_RWIN] = f;
	ep->rstaged--;
}

/*
 * Store a frame of the endpoint to itself, which thereby is acknowledged. Returns false if there is
 * no memory now.
 */
static bool store_for_self(struct bl_endpoint *ep, struct bl_peer *p, struct bl_rframe *f)
{
	f->ts = ep->rts;
	f->psn = p->rtx.next_psn;
	p->rtx.life = ep->incarnation;
	write_prep_header(ep, f, 0);
	if (bl_rrx_prep(ep, p, f->ts, f->psn, f->data + sizeof(struct bl_hdr),
			f->len - (uint32_t)sizeof(struct bl_hdr)))
		return false;
	p->rtx.next_psn++;
	return true;
}

/*
 * Put staged frames of @p into the window, as far as it and the receiver's window have room, and
 * for another host at most *@room, which they are taken from.
 */
static void fill_window(struct bl_endpoint *ep, struct bl_peer *p, uint32_t *room, uint64_t mono)
{
	struct bl_rtx *t = &p->rtx;
	struct bl_rlist *l;

	for (;;) {
		l = t->parts.n ? &t->parts : &t->items;
		if (!l->n)
			return;
		if (p->self) {
			if (!store_for_self(ep, p, l->head))
				return;
			/*
			 * Kept until the scattering is acknowledged, since it may have to be
			 * dropped again.
			 */
			keep_frame(ep, bl_rstage_take(l));
			ep->rstaged--;
			continue;
		}
		/*
		 * Parts leave as the receiver takes them out. Items leave together, even if they
		 * are more than the receiver's window.
		 */
		if (!bl_window_room(ep) || (l == &t->parts && outstanding_frames(t) >= t->window))
			return;
		if (!p->local && !(*room)--) {
			*room = 0;
			bl_rtx_wake_at(ep, mono + BL_NIC_WAIT_NS);
			return;
		}
		put_into_slot(ep, bl_rstage_take(l), mono);
	}
}

enum start_verdict { START_NOW, START_LATER, START_FAILS };

/*
 * Whether the NIC's ring, if endpoints of the host share it, has room for the scattering. If it has
 * no frame of ours, an OPEN to @to serves as the witness that tells when the ring is empty.
 */
static bool nic_has_room(struct bl_endpoint *ep, uint32_t frames, struct bl_peer *to, uint64_t mono)
{
	/* A larger scattering leaves when the ring is empty. */
	if (!bl_nic_waits(ep, frames < BL_NIC_SHARED ? frames : BL_NIC_SHARED))
		return true;
	if (bl_nic_needs_witness(ep))
		bl_open_send(ep, to, 0);
	bl_rtx_wake_at(ep, mono + BL_NIC_WAIT_NS);
	return false;
}

/*
 * How many staged frames for @t leave when the scattering begins: parts as far as the receiver's
 * window allows, and items behind them, all together.
 */
static uint32_t frames_at_once(const struct bl_rtx *t)
{
	uint32_t out = outstanding_frames(t), room = t->window > out ? t->window - out : 0;

	return t->parts.n > room ? room : t->parts.n + t->items.n;
}

/* Whether the staged scattering may have its timestamp now. */
static enum start_verdict may_take_timestamp(struct bl_endpoint *ep, uint64_t mono)
{
	enum start_verdict res = START_NOW;
	uint64_t least = ep->last_ts; /* every later timestamp is above that */
	uint64_t wait;
	struct bl_peer *p, *far = NULL, *opened = NULL; /* whose window was opened last */
	uint32_t all = 0, remote = 0;

	for (p = ep->rdirty; p; p = p->rdirty_next) {
		struct bl_rtx *t = &p->rtx;

		if (p->self)
			continue;
		if (t->dead)
			return START_FAILS;
		all += t->parts.n + t->items.n;
		if (!p->local) {
			far = p;
			remote += frames_at_once(t);
		}
		/* The receiver may have forgotten this life (sweep.h): it hears of it first. */
		if (t->open && !t->unacked && t->used_ns && mono - t->used_ns > BL_QUIET_NS) {
			t->open = false;
			t->used_ns = 0;
		}
		/*
		 * Parts begin only when nothing else waits at the receiver, and a sender with parts
		 * asks for that with an OPEN: frames that the receiving process has not taken yet
		 * must not delay the parts while these hold the commit barrier.
		 */
		if (t->open && (!outstanding_frames(t) ||
				(!t->parts.n && outstanding_frames(t) + t->items.n <= t->window))) {
			if (t->least_ts > least) {
				least = t->least_ts;
				opened = p;
			}
			continue;
		}
		/*
		 * A window that is open but full is asked about after it has been full for a while.
		 */
		if (t->open && !t->ask_ns)
			t->ask_ns = t->parts.n && t->asked_psn != t->next_psn ? mono
									      : mono + BL_RTO_NS;
		if (!bl_open_ask(ep, p, mono)) {
			bl_open_mark_dead(ep, p, mono);
			return START_FAILS;
		}
		res = START_LATER;
		bl_fig_held(ep, true, mono, BL_FIG_WINDOW, p);
	}
	if (res == START_NOW && all > bl_window_room(ep) && bl_window_room(ep) != BL_RWIN &&
	    all <= BL_RWIN) {
		res = START_LATER;
		bl_fig_held(ep, true, mono, BL_FIG_SLOTS, NULL);
	}
	if (res == START_NOW && opened) {
		wait = bl_ts_wait(bl_clock_at(ep->clock, mono), least);
		if (wait) {
			bl_rtx_wake_at(ep, mono + wait);
			res = START_LATER;
			bl_fig_held(ep, true, mono, BL_FIG_WINDOW, opened);
		}
	}
	if (res == START_NOW && remote && !nic_has_room(ep, remote, far, mono)) {
		res = START_LATER;
		bl_fig_held(ep, true, mono, BL_FIG_NIC, NULL);
	}
	return res;
}

int bl_rtx_flush(struct bl_endpoint *ep)
{
	struct bl_inflight *mine = own_line(ep);
	uint64_t mono = bl_mono();
	uint32_t from = ep->rtail, room = UINT32_MAX;
	struct bl_peer *p;
	bool first = !ep->rts, rest;

	if (!ep->rdirty || ep->rabort)
		return 0;
	bl_rtx_reap(ep);
	if (first) {
		enum start_verdict verdict;

		ep->rheld = true;
		if (!bl_clock_usable(ep->clock, mono)) {
			bl_fig_held(ep, true, mono, BL_FIG_CLOCK, NULL);
			return bl_tx_clock_void(ep);
		}
		verdict = may_take_timestamp(ep, mono);
		if (verdict == START_FAILS)
			bl_rstage_drop(ep, BL_NAK_UNREACHABLE);
		if (verdict != START_NOW)
			return 0;
		ep->rts = bl_tx_stamp(ep, true);
	} else {
		/* What begins has asked for room; the rest may be larger than any ring. */
		room = bl_nic_room(ep, UINT32_MAX, BL_NIC_SHARED);
	}
	for (p = ep->rdirty; p; p = p->rdirty_next)
		fill_window(ep, p, &room, mono);
	rest = bl_rstage_any(ep);
	/*
	 * Pairs with least_inflight() in bpf/host/host.bpf.c, which reads the in-flight word, the
	 * hold and the window in this order: a timestamp is written to the next of them before it
	 * is removed from the one before. Frames leave after that, since an ACK must find its slot
	 * below the tail.
	 */
	if (first && rest)
		BL_WRITE_ONCE(mine->hold, ep->rts);
	BL_BARRIER();
	if (ep->rtail != from)
		__atomic_fetch_add(&mine->state, bl_rwin_added(ep->rtail - from), __ATOMIC_SEQ_CST);
	if (first)
		__atomic_store_n(&mine->ts, BL_TIME_NONE, __ATOMIC_RELEASE);
	if (ep->rtail != from) {
		send_slots(ep, from, ep->rtail);
		bl_nic_witness(ep);
		bl_rtx_wake_at(ep, mono + BL_RTX_MIN_NS);
	}
	/* not before: until the line was released, the timestamp held the barriers of the rack */
	if (first)
		bl_fig_left(ep, true, mono, ep->rts);
	if (rest) {
		for (p = ep->rdirty; p; p = p->rdirty_next)
			if (p->rtx.parts.n && outstanding_frames(&p->rtx) >= p->rtx.window) {
				if (!p->rtx.ask_ns)
					p->rtx.ask_ns = mono + BL_RTO_NS;
				/*
				 * The result does not matter: frames of the scattering hold the
				 * commit barrier, so there is no way back.
				 */
				bl_open_ask(ep, p, mono);
			}
		return 0;
	}
	__atomic_store_n(&mine->hold, BL_TIME_NONE, __ATOMIC_RELEASE);
	ep->rts = 0;
	ep->rheld = false;
	while ((p = ep->rdirty)) {
		ep->rdirty = p->rdirty_next;
		p->rtx.dirty = false;
		p->rtx.fill = 0;
	}
	return 0;
}

/* ---- answers and timeouts ---- */

static uint64_t latest_barrier(const struct bl_endpoint *ep)
{
	uint64_t mono = bl_mono();

	return bl_latest_barrier(bl_clock_at(ep->clock, mono), bl_clock_bound(ep->clock, mono),
				 ep->beacon_us * 1000ULL);
}

void bl_rtx_window(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len)
{
	struct bl_rtx *t = &p->rtx;
	struct bl_window_view v;
	uint64_t cookie;

	if (bl_window_open(&v, body, len)) {
		ep->st.malformed++;
		return;
	}
	if (v.incarnation != ep->incarnation)
		return; /* of an earlier life of this endpoint */
	if (bl_psn_before(t->next_psn, v.psn)) {
		if (v.psn - t->next_psn > BL_SEQ_WINDOW) {
			ep->st.refused++; /* of frames that were never sent */
			return;
		}
		/*
		 * The receiver was told of frames that do not exist (rrx.c, RECALL); all frames
		 * that exist are free.
		 */
		v.psn = t->next_psn;
	}
	/*
	 * No receiver has more to free than the window holds. Whoever has not seen our frames does
	 * not know our numbers.
	 */
	if (t->next_psn - v.psn > BL_RWIN) {
		ep->st.refused++;
		return;
	}
	if (v.life != t->life && t->unacked)
		/*
		 * a new life of the receiver: what the old one was sent, and cannot answer, comes
		 * first
		 */
		return;
	/*
	 * A failure was announced meanwhile, and this WINDOW may be from the failed process. The
	 * present process there is asked again.
	 */
	if ((!t->open || v.life != t->life) && bl_discard_news(ep, p))
		return;
	if ((t->failed && v.life == t->life) || bl_failures_is_gone(p, v.life))
		return; /* it seems to live, but was announced as failed */
	if (!t->open || v.life != t->life)
		t->credited = v.psn;
	else if (bl_psn_before(t->credited, v.psn))
		t->credited = v.psn;
	/*
	 * The OPEN came through, so C waits for this host at every switch on the path, or is at
	 * most what the path had been given before, which is no more than any node could use then.
	 * A receiver might refuse a message below that while others store it.
	 */
	if (!t->open || v.life != t->life)
		t->least_ts = latest_barrier(ep);
	if (v.life != t->life)
		t->born = ep->fail_begun;
	t->open = true;
	t->failed = false;
	t->life = v.life;
	t->window = v.window < BL_WINDOW_MAX ? v.window : BL_WINDOW_MAX;
	bl_patience_heard(&t->patience, bl_mono(), t->asks != 0);
	t->asks = 0;
	t->ask_ns = 0;
	ep->rdead -= t->dead;
	t->dead = false;
	bl_presence_answered(ep, p, v.life);
	ep->st.credits_received++;
	cookie = bl_cookie_at(body, len, sizeof(struct bl_window));
	if (cookie)
		bl_open_send(ep, p, cookie);
}

static void retransmit_frame(struct bl_endpoint *ep, struct bl_rframe *f, uint64_t mono)
{
	uint8_t *copy = f->data + sizeof(struct bl_hdr) + sizeof(struct bl_data) +
			offsetof(struct bl_prep, copy);

	bl_store16(copy, f->tries < UINT16_MAX ? f->tries : UINT16_MAX);
	bl_rto_late(&f->peer->rtx.rto, f->tries);
	f->sent_ns = mono;
	f->tries++;
	ep->st.retransmits++;
	ep->st.frames_sent++;
	bl_nic_count(ep, !f->peer->local);
	(void)!sendto(ep->sock, f->data, f->len, 0, (const struct sockaddr *)&f->peer->sa,
		      f->peer->sa_len);
	if (!f->peer->local)
		bl_nic_witness(ep);
	if (!bl_fwd_due(&f->peer->fwd_until_ns, f->first_ns, f->tries, f->fwd_ns, mono))
		return;
	f->fwd_ns = mono;
	bl_forward(ep, f->peer, f->data, f->len, mono);
}

/* Whether frame @f may be sent again now, as far as the NIC's ring is concerned. */
static bool has_room_again(struct bl_endpoint *ep, const struct bl_rframe *f)
{
	return f->peer->local || bl_nic_room(ep, 1, BL_NIC_SHARED);
}

uint64_t bl_rtx_timers(struct bl_endpoint *ep, uint64_t mono)
{
	uint32_t left = AGAIN_MAX, n;
	uint64_t next = 0;
	struct bl_peer *p;

	if (!ep->rtimer_ns || mono < ep->rtimer_ns)
		return ep->rtimer_ns;
	bl_rtx_reap(ep);
	for (n = ep->rreaped; n != ep->rtail; n++) {
		struct bl_rframe *f = ep->rsent[n % BL_RWIN];
		uint64_t due;

		if (f->aborted || !(BL_READ_ONCE(slot_of(ep, n)->wait) & BL_RSLOT_OPEN))
			continue;
		due = bl_rto_due(&f->peer->rtx.rto, f->sent_ns, f->tries);
		if (mono >= due && left && has_room_again(ep, f)) {
			left--;
			retransmit_frame(ep, f, mono);
			due = bl_rto_due(&f->peer->rtx.rto, mono, f->tries);
		} else if (mono >= due) {
			due = mono + AGAIN_GAP_NS;
		}
		if (!next || due < next)
			next = due;
	}
	for (p = ep->rdirty; p; p = p->rdirty_next)
		if (p->rtx.ask_ns && (!next || p->rtx.ask_ns < next))
			next = p->rtx.ask_ns;
	next = bl_open_timers(ep, mono, next);
	ep->rtimer_ns = next;
	return next;
}

void bl_rtx_free(struct bl_endpoint *ep)
{
	uint32_t i;

	for (i = 0; ep->rsent && i < BL_RWIN; i++)
		free(ep->rsent[i]);
	free(ep->rsent);
	bl_rstage_free(ep);
}
