// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The best-effort sender: windows and flushes (1Pipe section 6.1).
 *
 * A flush gives all staged frames of all destinations one timestamp and sends each stage with one
 * UDP GSO send. It waits until the windows of all staged destinations are open, so a scattering
 * leaves as a whole and never waits while its timestamp holds the rack's barrier back.
 */
#include <stdlib.h>

#include "batch.h"
#include "figures.h"
#include "frame.h"
#include "nic.h"
#include "presence.h"
#include "rx.h"
#include "send_fail.h"
#include "stage.h"
#include "sweep.h"
#include "timers.h"
#include "tx.h"

static uint32_t outstanding_frames(const struct bl_tx *t)
{
	return t->next_psn - t->credited;
}

int bl_tx_hold_void(struct bl_endpoint *ep)
{
	ep->held = ep->dirty != NULL; /* what was accepted is tried again */
	bl_fig_held(ep, false, bl_mono(), BL_FIG_CLOCK, NULL);
	return bl_tx_clock_void(ep);
}

static void count_sent(struct bl_endpoint *ep, struct bl_tx *t, uint32_t frames)
{
	if (!outstanding_frames(t)) {
		t->progress_ns = bl_mono();
		bl_patience_begin(&t->patience, t->progress_ns);
	}
	t->next_psn += frames;
	ep->flying += frames;
}

/* Send FRAGs of the large messages of @p, as far as the window allows. */
static void send_frags(struct bl_endpoint *ep, struct bl_peer *p, struct bl_batch *b)
{
	const uint32_t head = BL_FRAME_HEAD + sizeof(struct bl_frag), room = ep->frame_max - head;
	struct bl_tx *t = &p->tx;

	if (!ep->frag_buf)
		ep->frag_buf = malloc((size_t)BL_STAGE_FRAMES * ep->frame_max);
	while (t->big && ep->frag_buf) {
		struct bl_big *g = t->big;
		uint32_t frames = 0, len = 0, most;

		if (p->self) {
			t->big = g->next;
			ep->staged_bytes -= g->total;
			bl_rx_self_big(ep, p, g);
			continue;
		}
		most = outstanding_frames(t) < t->window ? t->window - outstanding_frames(t) : 0;
		most = most < BL_STAGE_FRAMES ? most : BL_STAGE_FRAMES;
		if (most && !p->local) {
			uint32_t fit = bl_nic_room(ep, most, BL_NIC_SHARED);

			ep->nic.parts_wait |= fit < most;
			most = fit;
		}
		while (g->done < g->total && frames < most) {
			uint8_t *f = ep->frag_buf + (size_t)frames * ep->frame_max;
			uint32_t n = g->total - g->done < room ? g->total - g->done : room;

			bl_tx_hdr(f, BL_OP_FRAG, 0, t->next_psn + frames);
			bl_stage_fill_data(ep, f, 0);
			bl_frag_put(f + BL_FRAME_HEAD, g->id, g->done, g->total);
			memcpy(f + head, g->data + g->done, n);
			g->done += n;
			len = head + n;
			frames++;
		}
		if (!frames)
			return;
		if (!p->local)
			bl_nic_count(ep, frames);
		bl_batch_frames(ep, b, p, ep->frag_buf, frames, len, t->next_psn);
		bl_batch_send(ep, b); /* frag_buf is used again */
		if (!p->local)
			bl_nic_witness(ep);
		count_sent(ep, t, frames);
		if (g->done < g->total)
			return;
		t->big = g->next;
		ep->staged_bytes -= g->total;
		free(g);
	}
	if (!t->big)
		t->big_tail = &t->big;
}

static void send_stage(struct bl_endpoint *ep, struct bl_peer *p, struct bl_batch *b, uint64_t ts)
{
	struct bl_tx *t = &p->tx;
	uint32_t i;

	bl_stage_fill_data(ep, bl_stage_frame(ep, t, t->nframes - 1), t->count);
	for (i = 0; i < t->nframes; i++) {
		uint8_t *f = bl_stage_frame(ep, t, i);

		bl_tx_hdr(f, BL_OP_DATA, ts, t->next_psn + i);
		if (t->sent) {
			struct bl_sent *s = &t->sent[(t->next_psn + i) % (2 * BL_WINDOW_MAX)];

			s->ts = ts;
			s->psn = t->next_psn + i;
			s->count = bl_load16(f + sizeof(struct bl_hdr) + 2);
			memcpy(s->cookie, &t->cookies[i * BL_ITEMS_MAX],
			       s->count * sizeof(s->cookie[0]));
		}
		if (p->self) {
			uint32_t len = i + 1 < t->nframes ? ep->frame_max : t->fill;

			if (bl_rx_self(ep, p, f, len, ts, t->next_psn + i))
				bl_tx_fail_frame(ep, p, t->next_psn + i, BL_NAK_WHOLE,
						 BL_NAK_NO_MEMORY);
		}
	}
	if (p->self) {
		t->next_psn += t->nframes;
		t->credited = t->next_psn;
	} else {
		bl_batch_frames(ep, b, p, t->stage, t->nframes, t->fill, t->next_psn);
		count_sent(ep, t, t->nframes);
	}
}

/*
 * Give up a destination that does not answer. Frames that have left may have been delivered, and
 * only the answer may be lost; what is staged has not left. From now on only PROBEs are sent there,
 * until one is answered: so the sequence numbers continue where they were, and nothing to other
 * destinations waits for it again.
 */
static void give_up_peer(struct bl_endpoint *ep, struct bl_peer *p)
{
	struct bl_tx *t = &p->tx;
	uint32_t psn;

	for (psn = t->credited; psn != t->next_psn; psn++)
		bl_tx_fail_frame(ep, p, psn, BL_NAK_WHOLE, BL_NAK_UNKNOWN);
	bl_stage_drop(ep, p, BL_NAK_UNREACHABLE);
	ep->flying -= outstanding_frames(t);
	t->rto_ns = BL_RETRY_NS / 2;
	t->probes = BL_PROBES_MAX;
	t->dead = true;
	bl_presence_lost(ep, p, bl_mono());
}

/* @cookie: the challenge of @p that the PROBE answers; 0: none. @last: BL_PROBE_LAST or 0. */
static void put_probe(struct bl_endpoint *ep, struct bl_peer *p, uint64_t cookie, uint32_t last)
{
	uint8_t body[sizeof(struct bl_data) + sizeof(struct bl_cookie)];
	uint32_t len = sizeof(struct bl_data);

	bl_store16(body, ep->incarnation);
	bl_store16(body + 2, last);
	if (cookie)
		len += bl_cookie_put(body + len, cookie);
	bl_tx_control(ep, p, BL_OP_PROBE, p->tx.next_psn, body, len);
	ep->st.probes_sent++;
}

static void send_probe(struct bl_endpoint *ep, struct bl_peer *p, uint64_t now)
{
	struct bl_tx *t = &p->tx;
	uint64_t most = t->dead ? BL_RETRY_MAX_NS : BL_RTO_MAX_NS;

	put_probe(ep, p, 0, 0);
	t->probes++;
	t->progress_ns = now;
	t->rto_ns = t->rto_ns * 2 < most ? t->rto_ns * 2 : most;
}

/*
 * The NIC's ring is full, as far as is known. If it has no frame of ours, a PROBE serves as the
 * witness that tells when the ring is empty; its receiver may also answer that its window is open.
 */
static void wait_for_nic(struct bl_endpoint *ep, uint64_t mono)
{
	struct bl_peer *p;

	ep->held = true;
	bl_fig_held(ep, false, mono, BL_FIG_NIC, NULL);
	bl_tx_wake_at(ep, mono + BL_NIC_WAIT_NS);
	if (!bl_nic_needs_witness(ep))
		return;
	for (p = ep->dirty; p && (p->local || p->tx.dead); p = p->dirty_next)
		;
	if (!p)
		return;
	put_probe(ep, p, 0, 0);
	bl_nic_witness(ep);
}

int bl_tx_flush(struct bl_endpoint *ep)
{
	struct bl_inflight *mine = ep->line;
	struct bl_batch b;
	struct bl_peer *p;
	uint64_t mono, ts = 0;
	bool held = false, any = false;
	uint32_t need = 0;

	if (!ep->dirty)
		return 0;
	b.n = 0;
	mono = bl_mono();
	if (!bl_clock_usable(ep->clock, mono))
		return bl_tx_hold_void(ep);
	ep->nic.parts_wait = false;
	for (p = ep->dirty; p; p = p->dirty_next) {
		struct bl_tx *t = &p->tx;

		if (t->dead) {
			bl_stage_drop(ep, p, BL_NAK_UNREACHABLE);
			if (mono > t->progress_ns + BL_RETRY_MIN_NS)
				send_probe(ep, p, mono);
			continue;
		}
		if (t->progress_ns && !outstanding_frames(t) &&
		    mono - t->progress_ns > BL_QUIET_NS) {
			/* The receiver may have forgotten our numbers (sweep.h). */
			put_probe(ep, p, 0, 0);
			t->progress_ns = mono;
		}
		if (t->big)
			send_frags(ep, p, &b);
		if (t->big ||
		    (outstanding_frames(t) && outstanding_frames(t) + t->nframes > t->window)) {
			held = true;
			bl_fig_held(ep, false, mono, BL_FIG_WINDOW, p);
		}
		any |= t->nframes > 0;
		need += p->local ? 0 : t->nframes;
	}
	if (!held && bl_nic_full(ep, need)) {
		wait_for_nic(ep, mono);
		return 0;
	}
	ep->held = held;
	if (held) {
		bl_tx_wake_at(ep, mono + (ep->nic.parts_wait ? BL_NIC_WAIT_NS : BL_RTO_NS));
		return 0;
	}
	if (any) {
		/* the frames are in the transmit queue when sendmmsg() returns */
		ts = bl_tx_stamp(ep, false);
		if (!bl_nic_take(ep, need)) {
			BL_WRITE_ONCE(mine->ts, BL_TIME_NONE);
			wait_for_nic(ep, mono);
			return 0;
		}
		for (p = ep->dirty; p; p = p->dirty_next)
			if (p->tx.nframes)
				send_stage(ep, p, &b, ts);
		bl_batch_claim(&b, ts);
		bl_batch_send(ep, &b);
		bl_nic_sent(ep);
		BL_BARRIER();
		BL_WRITE_ONCE(mine->ts, BL_TIME_NONE);
		if (!ep->timers_ns)
			ep->timers_ns = mono + BL_RTO_NS;
	}
	bl_fig_left(ep, false, mono, ts);
	while ((p = ep->dirty)) {
		ep->dirty = p->dirty_next;
		p->tx.dirty = false;
		p->tx.nframes = p->tx.count = p->tx.fill = 0;
	}
	return 0;
}

void bl_tx_credit(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len)
{
	struct bl_tx *t = &p->tx;
	uint32_t flown = t->dead ? 0 : outstanding_frames(t);
	struct bl_credit_view v;
	uint64_t cookie;

	if (bl_credit_open(&v, body, len)) {
		ep->st.malformed++;
		return;
	}
	if (v.incarnation != ep->incarnation)
		return; /* of an earlier life of this endpoint */
	/*
	 * Of frames that were never sent: the receiver recovers (place_core.h). Of frames that it
	 * has credited before: old, and its window says nothing any more. Whoever has not seen our
	 * frames does not know our numbers.
	 */
	if (v.psn - t->credited > t->next_psn - t->credited + BL_AHEAD_MAX) {
		ep->st.refused += t->credited - v.psn > BL_OLD_MAX;
		return;
	}
	ep->st.credits_received++;
	bl_patience_heard(&t->patience, bl_mono(), outstanding_frames(t) != 0 && !t->dead);
	if (bl_psn_before(t->next_psn, v.psn)) {
		/*
		 * A forged frame has misled the receiver, but not so far that it would notice, so
		 * it takes what is sent now for old. Continue at its number; what became of the
		 * outstanding frames is unknown.
		 */
		for (; t->credited != t->next_psn; t->credited++)
			bl_tx_fail_frame(ep, p, t->credited, BL_NAK_WHOLE, BL_NAK_UNKNOWN);
		t->next_psn = t->credited = v.psn;
	} else if (bl_psn_before(t->credited, v.psn)) {
		t->credited = v.psn;
	}
	t->window = v.window < BL_WINDOW_MAX ? v.window : BL_WINDOW_MAX;
	t->progress_ns = bl_mono();
	t->rto_ns = BL_RTO_NS;
	t->probes = 0;
	t->dead = false;
	bl_presence_credited(ep, p);
	ep->flying += outstanding_frames(t) - flown;
	cookie = bl_cookie_at(body, len, sizeof(struct bl_credit));
	if (!cookie)
		return;
	t->cookie = cookie;
	put_probe(ep, p, cookie, 0);
}

void bl_tx_ask(struct bl_endpoint *ep, struct bl_peer *p)
{
	put_probe(ep, p, 0, 0);
}

void bl_tx_leave(struct bl_endpoint *ep)
{
	struct bl_peer *p;

	for (p = ep->peers; p; p = p->all_next)
		if (p->tx.cookie)
			put_probe(ep, p, p->tx.cookie, BL_PROBE_LAST);
}

uint64_t bl_tx_timers(struct bl_endpoint *ep, uint64_t now)
{
	uint64_t next = 0;
	struct bl_peer *p;

	if (!ep->timers_ns || now < ep->timers_ns)
		return ep->timers_ns;
	for (p = ep->peers; p; p = p->all_next) {
		struct bl_tx *t = &p->tx;
		uint64_t due;

		if (!outstanding_frames(t) ||
		    (t->dead && t->probes > BL_PROBES_MAX + BL_RETRIES_MAX))
			continue;
		due = t->progress_ns + t->rto_ns;
		if (now >= due) {
			if (t->probes >= BL_PROBES_MAX && !t->dead &&
			    bl_patience_over(&t->patience, now, bl_nic_unsent(ep)))
				give_up_peer(ep, p);
			send_probe(ep, p, now);
			due = now + t->rto_ns;
		}
		if (!next || due < next)
			next = due;
	}
	ep->timers_ns = next;
	return next;
}
