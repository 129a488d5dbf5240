/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, the receiver: which flow gets the next token, how many tokens each flow gets
 * (ExpressPass's feedback, in both published forms), and what the signals of a sender change.
 *
 * Rates. A link of 10 Gbit/s has a slot of 1298 ns: the time of a token and its data frame, 1622
 * bytes together. A flow's rate is a fraction of one token per slot. A new flow with alpha = 1/2
 * gets a token every 2596 ns, plus or minus 10 % of jitter. Among the flows whose next token is
 * due, the flow of the best class gets the slot; flows of one class take turns.
 *
 * Feedback. Each data frame echoes the number of its token. The echoes 1, 2, 3, 7 mean that three
 * of seven tokens were lost. Once per RTT the law computes a new rate from that:
 *
 *   paper   One tenth of the tokens may be lost. 3/7 is more, so the rate is multiplied by 4/7 and
 *           by 1.1.
 *   ns2     At half the link's rate, one sixteenth of the tokens may be lost. The new rate is the
 *           rate of the answers that arrived, times 17/16.
 *
 * This file reads no clock and no map, and takes no lock: the caller holds the lock of the flow.
 */
#ifndef BARLINE_TOP_RX_CORE_H
#define BARLINE_TOP_RX_CORE_H

#include "maps/top_host_abi.h"
#include "core/core.h"
#include "core/top/top_core.h"
#include "core/top/top_loss_core.h"
#include "core/wire_core.h"

#define BL_TOP_CATCH_UP \
	2 /* slots that a late receiver catches up: the depth of a switch's bucket */

/* ---- the feedback ---- */

BL_CORE __u32 bl_top_fraction(__u64 of, __u32 part)
{
	return (__u32)(of * part >> 24);
}

/** bl_top_rate_min - the least rate of a flow: one token per RTT. */
BL_CORE __u32 bl_top_rate_min(const struct bl_top_cfg *c, __u64 rtt_ns)
{
	__u64 v = rtt_ns ? ((__u64)c->slot_ns << 24) / rtt_ns : 1;

	return v > BL_TOP_ONE ? BL_TOP_ONE : v ? (__u32)v : 1;
}

/** bl_top_rate_answered - the rate of @n answers in @took ns, of BL_TOP_ONE. */
BL_CORE __u32 bl_top_rate_answered(const struct bl_top_cfg *c, __u32 n, __u64 took)
{
	__u64 each, v;

	if (!n)
		return 0;
	each = (took << 8) / n;
	v = each ? ((__u64)c->slot_ns << 32) / each : BL_TOP_ONE;
	return v > 2 * BL_TOP_ONE ? 2 * BL_TOP_ONE : (__u32)v;
}

BL_CORE void bl_top_weight_lower(struct bl_top_rx *r, const struct bl_top_cfg *c)
{
	r->weight = r->weight / 2 > c->w_min ? r->weight / 2 : c->w_min;
	r->grew = 0;
}

/* The feedback law of ExpressPass section 3.2, Algorithm 1. Returns the new rate. */
BL_CORE __u32 bl_top_law_paper(struct bl_top_rx *r, const struct bl_top_cfg *c, __u32 loss)
{
	const __u32 target = BL_TOP_ONE / 10;
	__u32 rate;

	if (loss <= target) {
		if (r->grew)
			r->weight = (r->weight + c->w_max) / 2;
		r->grew = 1;
		return r->rate - bl_top_fraction(r->rate, r->weight) +
		       bl_top_fraction(BL_TOP_ONE + target, r->weight);
	}
	rate = bl_top_fraction(bl_top_fraction(r->rate, BL_TOP_ONE - loss), BL_TOP_ONE + target);
	bl_top_weight_lower(r, c);
	return rate;
}

/* The feedback law of ns2-xpass xpass.cc:566-626. Returns the new rate. */
BL_CORE __u32 bl_top_law_ns2(struct bl_top_rx *r, const struct bl_top_cfg *c, __u32 loss, __u32 got)
{
	__u32 target = r->rate < BL_TOP_ONE ? (BL_TOP_ONE - r->rate) / 8 : 0;

	if (loss > target) {
		got = bl_top_fraction(got, BL_TOP_ONE + target);
		bl_top_weight_lower(r, c);
		return got < r->rate ? got : r->rate;
	}
	if (r->grew)
		r->weight = r->weight + BL_TOP_ONE / 20 < c->w_max ? r->weight + BL_TOP_ONE / 20
								   : c->w_max;
	r->grew = 1;
	return r->rate < BL_TOP_ONE ? r->rate - bl_top_fraction(r->rate, r->weight) + r->weight
				    : r->rate;
}

/** bl_top_feedback - an RTT is over: compute the flow's new rate. */
BL_CORE void bl_top_feedback(struct bl_top_rx *r, const struct bl_top_cfg *c, __u64 now)
{
	__u32 most = BL_TOP_ONE, least = bl_top_rate_min(c, r->rtt_ns), loss = 0, rate;

	if (r->total)
		loss = (__u32)(((__u64)r->dropped << 24) / r->total);
	if (c->law == BL_TOP_LAW_NS2) {
		rate = bl_top_law_ns2(r, c, loss,
				      bl_top_rate_answered(c, r->total - r->dropped,
							   now - r->update_ns));
	} else {
		rate = bl_top_law_paper(r, c, loss);
		most += BL_TOP_ONE / 10;
	}
	r->rate = rate < least ? least : rate > most ? most : rate;
	r->lost += r->dropped;
	r->total = r->dropped = 0;
	r->update_ns = now;
	r->feedbacks++;
}

/* Updates the RTT with the answer to the timed token, smoothed by 1/5 as in ns2. */
BL_CORE void bl_top_rtt(struct bl_top_rx *r, __u32 seq, __u64 now)
{
	__u64 rtt = now - r->probe_ns;

	if (!r->probe_ns || bl_psn_before(seq, r->probe))
		return;
	if (seq == r->probe)
		r->rtt_ns = r->rtt_ns ? (4 * r->rtt_ns + rtt) / 5 : rtt;
	r->probe_ns = 0;
}

/**
 * bl_top_echo - account for a data frame of @len bytes that answers token @seq; 0: unscheduled.
 * Returns 0, or -1 if no such token was ever sent.
 */
BL_CORE int bl_top_echo(struct bl_top_rx *r, const struct bl_top_cfg *c, __u32 seq, __u32 len,
			__u64 now)
{
	__u32 ahead = seq - r->echo;

	if (seq && bl_psn_before(r->seq, seq))
		return -1;
	r->heard_ns = now;
	r->frames++;
	r->served += len;
	if (!seq)
		return 0;
	if (bl_psn_before(r->echo, seq)) {
		r->total += ahead;
		r->dropped += ahead - 1;
		r->echo = seq;
	} else if (bl_psn_before(r->forgiven, seq) && seq != r->echo) {
		/* counted as lost by mistake, or in an RTT whose feedback is computed already */
		r->late++;
		r->dropped -= r->dropped != 0;
	}
	bl_top_rtt(r, seq, now);
	if (r->rtt_ns && r->total && now - r->update_ns >= r->rtt_ns)
		bl_top_feedback(r, c, now);
	return 0;
}

/* ---- tokens out ---- */

/** bl_top_random - xorshift32 (Marsaglia 2003); @s is never 0. */
BL_CORE __u32 bl_top_random(__u32 *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	*s ^= *s << 5;
	return *s;
}

/** bl_top_gap - ns until a flow's next token. @random: 32 random bits for the jitter. */
BL_CORE __u64 bl_top_gap(const struct bl_top_cfg *c, __u32 rate, __u32 random)
{
	__u64 gap = ((__u64)c->slot_ns << 24) / (rate ? rate : 1),
	      spread = gap * (c->jitter >> 8) >> 16;

	return gap - spread + (2 * spread * (random >> 16) >> 16);
}

/** bl_top_token_sent - account for @r's next token, which is sent at @now. Returns its number. */
BL_CORE __u32 bl_top_token_sent(struct bl_top_rx *r, const struct bl_top_cfg *c, __u64 now,
				__u32 *random)
{
	__u64 gap = bl_top_gap(c, r->rate, bl_top_random(random));

	r->seq++;
	if (!r->seq)
		r->seq = 1; /* 0 means none */
	if (!r->probe_ns) {
		r->probe = r->seq;
		r->probe_ns = now;
	}
	/* late because of others' tokens or of the pacer: it catches up one token, not more */
	r->next_ns = bl_max64(r->next_ns, now - bl_min64(now, gap)) + gap;
	return r->seq;
}

/**
 * bl_top_free_after - when the next token may be sent, after one that was allowed at @free was sent
 * at @now.
 */
BL_CORE __u64 bl_top_free_after(const struct bl_top_cfg *c, __u64 free, __u64 now)
{
	__u64 behind = (__u64)BL_TOP_CATCH_UP * c->slot_ns;

	return bl_max64(free, now - bl_min64(now, behind)) + c->slot_ns;
}

/**
 * struct bl_top_pick - the choice of the flow that gets a slot. Local to the pacer's turn.
 */
struct bl_top_pick {
	__u64 now; /* CLOCK_MONOTONIC of the turn */
	/* when the first of the other flows is due, is given up, or has a LOSS to send */
	__u64 next_ns;
	__u32 last;  /* place that got the last token */
	__u32 best;  /* class << 8 | turns to wait, of place @index; ~0: no flow is due */
	__u32 index; /* place of the chosen flow; valid unless @best is ~0 */
	__u32 ready; /* number of flows that are due */
	__u32 gone;  /* 1 + a place that was not heard of for too long; 0: none */
	__u32 loss;  /* 1 + a place whose LOSS is due; 0: none */
};

BL_CORE void bl_top_pick_begin(struct bl_top_pick *p, __u32 last, __u64 now)
{
	__builtin_memset(p, 0, sizeof(*p));
	p->now = now;
	p->last = last;
	p->best = ~0U;
	p->next_ns = BL_DUE_NEVER;
}

/** bl_top_pick_consider - take the flow at place @i, of class @cls, into account. */
BL_CORE void bl_top_pick_consider(struct bl_top_pick *p, __u32 i, const struct bl_top_rx *r,
				  __u32 cls, const struct bl_top_cfg *c)
{
	__u64 end = BL_READ_ONCE(r->heard_ns) + c->dead_ns, at = BL_READ_ONCE(r->next_ns),
	      say = BL_READ_ONCE(r->came.report_ns);
	__u32 key = cls << 8 | ((i - p->last - 1) & (BL_TOP_RX_MAX - 1));

	if (end <= p->now) {
		p->gone = i + 1;
		return;
	}
	p->next_ns = bl_min64(p->next_ns, end);
	if (say <= p->now)
		p->loss = i + 1;
	else
		p->next_ns = bl_min64(p->next_ns, say);
	if (BL_READ_ONCE(r->state) != BL_TOP_RX_OPEN)
		return;
	if (at > p->now) {
		p->next_ns = bl_min64(p->next_ns, at);
		return;
	}
	p->ready++;
	if (key < p->best) {
		p->best = key;
		p->index = i;
	}
}

/* ---- signals in ---- */

/*
 * The previous owner of a place that a SYNC is for. AGAIN: the same flow, which has another tag
 * now.
 */
enum bl_top_was { BL_TOP_WAS_FREE, BL_TOP_WAS_ANOTHER, BL_TOP_WAS_AGAIN };

/**
 * bl_top_rx_begin - initialise place @r for the flow of this SYNC; the caller fills in the address
 * fields. What the same flow still misses is waited for under its new tag as well, since its sender
 * keeps it. Returns the number of data frames given up.
 */
BL_CORE __u32 bl_top_rx_begin(struct bl_top_rx *r, const struct bl_top_cfg *c,
			      const struct bl_top_msg *m, enum bl_top_was was, __u64 now)
{
	__u64 frames = bl_top_frames(m->bytes);
	__u32 lost;

	r->state = BL_TOP_RX_OPEN;
	r->tag = m->tag;
	r->sig = m->seq;
	r->seq = r->echo = r->forgiven = r->total = r->dropped = r->grew = r->probe = 0;
	r->rate = c->alpha;
	if (frames && frames < c->ramp)
		r->rate = c->alpha * (__u32)frames / c->ramp;
	if (!r->rate)
		r->rate = 1;
	r->weight = c->w_init;
	r->rtt_ns = r->probe_ns = r->served = 0;
	r->update_ns = r->next_ns = r->heard_ns = now;
	r->frames = r->lost = r->late = r->feedbacks = 0;
	r->syncs = 1;
	r->bytes = m->bytes;
	r->counted = 0;
	r->coflow = m->coflow;
	r->deadline_ns = m->deadline_us ? now + m->deadline_us * 1000ULL : 0;
	r->waiting = m->frames;
	if (was == BL_TOP_WAS_AGAIN && m->data - r->came.data <= BL_TOP_AHEAD)
		return bl_came_upto(&r->came, m->data, c->sync_ns, 0, now);
	lost = was == BL_TOP_WAS_FREE ? 0 : bl_came_missing(&r->came);
	bl_came_begin(&r->came, m->data);
	return lost;
}

/**
 * bl_top_coflow_change - by how much the sum of @r's coflow must change so that it includes @r's
 * size as known now; with @over, so that it includes nothing of it. Modulo 2^64, as the sum is.
 */
BL_CORE __u64 bl_top_coflow_change(struct bl_top_rx *r, int over)
{
	__u64 was = r->counted;

	r->counted = over ? 0 : r->bytes;
	return r->counted - was;
}

/**
 * bl_top_rtt_ns - how long a missing frame may take; before an RTT was measured, the time for which
 * a sender waits for an answer.
 */
BL_CORE __u64 bl_top_rtt_ns(const struct bl_top_rx *r, const struct bl_top_cfg *c)
{
	return r->rtt_ns ? r->rtt_ns : c->sync_ns;
}

/** bl_top_sync - another SYNC of @r's flow has arrived. Returns 1 if the flow gets tokens again. */
BL_CORE int bl_top_sync(struct bl_top_rx *r, const struct bl_top_msg *m, __u64 now)
{
	r->heard_ns = now;
	r->syncs++;
	if (!bl_psn_before(r->sig, m->seq))
		return 0; /* overtaken by a later signal */
	r->sig = m->seq;
	r->waiting = m->frames;
	if (m->bytes)
		r->bytes = m->bytes;
	if (m->deadline_us)
		r->deadline_ns = now + m->deadline_us * 1000ULL;
	if (r->state == BL_TOP_RX_OPEN)
		return 0;
	r->state = BL_TOP_RX_OPEN;
	/* tokens under way when it stopped found nothing there, which is not a loss */
	r->forgiven = r->echo = r->seq;
	r->total = r->dropped = 0;
	r->probe_ns = 0;
	r->next_ns = r->update_ns = now;
	return 1;
}

/** bl_top_stop - a STOP of @r's flow has arrived: the sender holds nothing. */
BL_CORE void bl_top_stop(struct bl_top_rx *r, const struct bl_top_msg *m, __u64 now)
{
	r->heard_ns = now;
	if (!bl_psn_before(r->sig, m->seq))
		return;
	r->sig = m->seq;
	r->state = BL_TOP_RX_STOPPED;
}

/**
 * bl_top_fin - a FIN has arrived: the flow has ended, and its place is freed in the pacer's next
 * scan.
 */
BL_CORE void bl_top_fin(struct bl_top_rx *r, const struct bl_top_msg *m, const struct bl_top_cfg *c,
			__u64 now)
{
	if (!bl_psn_before(r->sig, m->seq))
		return;
	r->sig = m->seq;
	r->bytes = m->bytes;
	r->state = BL_TOP_RX_STOPPED;
	r->heard_ns = now - bl_min64(now, c->dead_ns);
}

#endif
