/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host: which flow gets the next token, how many each gets (ExpressPass's feedback, in
 * both published forms), and what a sender makes of a token that comes.
 *
 * Receiver. A link of 10 Gbit/s has a slot of 1298 ns: a token and its data frame, 1622 bytes. A
 * flow's rate is a fraction of one token per slot: a new one with alpha 1/2 gets a token each 2596
 * ns, give or take 10 %. Of flows whose time has come the best class gets the slot; among equals
 * whose turn is next. Each data frame echoes the number of its token: 1, 2, 3, 7 means that of
 * seven tokens three got lost. Once per RTT the law makes of that a new rate. "paper", a tenth may
 * get lost: 3/7 is more, so the rate times 4/7 times 1.1. "ns2": at half the rate a sixteenth may
 * get lost: the rate becomes what came, times 17/16.
 *
 * Priority. floor(K log_p(a x + b)) for a flow of x frames (TOP section 3.2): with K = 6, p =
 * 10000, a = 1, b = 0 class 1 begins at p^(1/6), 5 frames, class 2 at 22, class 5 at 2155. User
 * space computes these limits (loader/admission/top_host.c), or learns those that give each class
 * the same load (core/top/top_classes_core.h); here they are compared.
 *
 * Sender. A token is answered if flow and tag are known, its number is new (a window of 64, so that
 * a copy of it gets nothing), and it was not longer under way than T (TOP section 4.3: what comes
 * late would meet other tokens' data) plus what two clocks may differ by.
 *
 * No clock, no map, no lock: the caller holds the flow's.
 */
#ifndef BARLINE_TOP_CORE_H
#define BARLINE_TOP_CORE_H

#include "maps/reasons_abi.h"
#include "maps/top_host_abi.h"
#include "core/clock_core.h"
#include "top_loss_core.h"
#include "core/wire_core.h"

#define BL_TOP_MSS 1460 /* bytes of a flow that a full frame carries */
/* a flow may bring so much more than it said, and an eighth of that */
#define BL_TOP_BEYOND_BYTES 16384
#define BL_TOP_BACKOFF      2
#define BL_TOP_CATCH_UP     2 /* slots that a receiver who is late catches up: the switch's bucket */

/**
 * struct bl_top_msg - a token or signal, parsed. @ts: 48 bits. The rest: SYNC's body; FIN's @bytes
 * and @data, STOP's @data; LOSS's body. What a message does not have is 0.
 */
struct bl_top_msg {
	__u8 op;
	__u8 cls;
	__u16 flow;
	__u32 seq;
	__u32 tag;
	__u32 frames;
	__u64 ts;
	__u64 bytes;
	__u32 deadline_us;
	__u32 coflow;
	__u64 missing;
	__u32 data;
	__u32 rtt_us;
};

/* ---- classes ---- */

/** bl_top_frames - full frames that @bytes need. */
BL_CORE __u64 bl_top_frames(__u64 bytes)
{
	return (bytes + BL_TOP_MSS - 1) / BL_TOP_MSS;
}

/** bl_top_payload - bytes of a flow in frames that have @len bytes in all, at the most. */
BL_CORE __u64 bl_top_payload(__u64 len)
{
	return len - (len >> 5); /* headers are 54 of 1514 bytes or more */
}

/**
 * bl_top_class - of what has @frames frames; @limit: BL_TOP_CLASSES - 1 thresholds, as in
 * bl_top_cfg.
 */
BL_CORE __u32 bl_top_class(const __u64 *limit, __u64 frames)
{
	__u32 i, cls = 0, n = BL_TOP_CLASSES - 1;

	BL_OPAQUE(n);
	for (i = 0; i < BL_TOP_CLASSES - 1 && i < n; i++)
		cls += frames >= BL_READ_ONCE(limit[i]);
	return cls;
}

/**
 * bl_top_beyond - has the flow brought more than it said it had? @bytes: what it said, or 0:
 * nothing;
 * @served: bytes of frames that came. Headers, and what TCP sends twice, are not held against it.
 */
BL_CORE int bl_top_beyond(__u64 bytes, __u64 served)
{
	return bl_top_payload(served) > bytes + bytes / 8 + BL_TOP_BEYOND_BYTES;
}

/** bl_top_left - what is left of a flow that said it has @bytes; at least 1. */
BL_CORE __u64 bl_top_left(__u64 bytes, __u64 served)
{
	served = bl_top_payload(served);
	return served < bytes ? bytes - served : 1;
}

/**
 * bl_top_class_of - class of an inbound flow at @now. @limit: thresholds, of @c or learnt.
 * @coflow: bytes of its coflow. What has no deadline, or has missed it, comes last. A flow that
 * brings more than it said is one of unknown size, whose class follows from what was served: to say
 * too little gains it nothing, and to say too much harms only itself. One that says a class
 * (SO_PRIORITY) has that class, whatever comes.
 */
BL_CORE __u32 bl_top_class_of(const struct bl_top_rx *r, const struct bl_top_cfg *c,
			      const __u64 *limit, __u64 coflow, __u64 now)
{
	__u64 bytes = BL_READ_ONCE(r->bytes), served = BL_READ_ONCE(r->served),
	      by = BL_READ_ONCE(r->deadline_ns);

	if (c->objective == BL_TOP_BY_DEADLINE) {
		if (!by || by <= now || !c->slot_ns)
			return c->levels - 1;
		return bl_top_class(limit, (by - now) / c->slot_ns);
	}
	if (c->objective == BL_TOP_BY_COFLOW && r->coflow)
		bytes = coflow;
	else if (c->objective != BL_TOP_BY_LAS && bytes >= BL_TOP_SAYS_CLASS)
		return (bytes & 7) < c->levels ? bytes & 7 : c->levels - 1;
	else if (c->objective == BL_TOP_BY_LAS || !bytes || bl_top_beyond(bytes, served))
		bytes = served;
	else if (c->objective == BL_TOP_BY_REMAINING)
		bytes = bl_top_left(bytes, served);
	return bl_top_class(limit, bl_top_frames(bytes));
}

/**
 * bl_top_bucket - place in bl_top_page.sizes of a flow of @frames frames, 1 or more: two for each
 * power of two. 1 is in bucket 0, 2 in 2, 3 in 3, 4 and 5 in 4, 6 and 7 in 5, 8 to 11 in 6.
 */
BL_CORE __u32 bl_top_bucket(__u64 frames)
{
	__u32 v = frames >> 32 ? ~0U : (__u32)frames, k = 0, half;

	half = v;
	if (v >> 16)
		k += 16, v >>= 16;
	if (v >> 8)
		k += 8, v >>= 8;
	if (v >> 4)
		k += 4, v >>= 4;
	if (v >> 2)
		k += 2, v >>= 2;
	if (v >> 1)
		k += 1;
	half = k ? half >> (k - 1) & 1 : 0;
	return (2 * k + half) & (BL_TOP_SIZES - 1);
}

/**
 * bl_top_learn_flow - counts a flow that has ended, by @served: what came of it, not what it said.
 */
BL_CORE void bl_top_learn_flow(struct bl_top_page *p, __u64 served)
{
	__u64 frames = bl_top_frames(bl_top_payload(served));
	__u32 b = bl_top_bucket(frames);

	if (frames && b < BL_TOP_SIZES)
		BL_WRITE_ONCE(p->sizes[b], p->sizes[b] + 1);
}

/* ---- the feedback ---- */

BL_CORE __u32 bl_top_part(__u64 of, __u32 part)
{
	return (__u32)(of * part >> 24);
}

/** bl_top_least - one token per RTT. */
BL_CORE __u32 bl_top_least(const struct bl_top_cfg *c, __u64 rtt_ns)
{
	__u64 v = rtt_ns ? ((__u64)c->slot_ns << 24) / rtt_ns : 1;

	return v > BL_TOP_ONE ? BL_TOP_ONE : v ? (__u32)v : 1;
}

/** bl_top_got - the rate of @n answers in @took ns. */
BL_CORE __u32 bl_top_got(const struct bl_top_cfg *c, __u32 n, __u64 took)
{
	__u64 each, v;

	if (!n)
		return 0;
	each = (took << 8) / n;
	v = each ? ((__u64)c->slot_ns << 32) / each : BL_TOP_ONE;
	return v > 2 * BL_TOP_ONE ? 2 * BL_TOP_ONE : (__u32)v;
}

BL_CORE void bl_top_slower(struct bl_top_rx *r, const struct bl_top_cfg *c)
{
	r->weight = r->weight / 2 > c->w_min ? r->weight / 2 : c->w_min;
	r->grew = 0;
}

/* ExpressPass section 3.2, Algorithm 1. */
BL_CORE __u32 bl_top_law_paper(struct bl_top_rx *r, const struct bl_top_cfg *c, __u32 loss)
{
	const __u32 target = BL_TOP_ONE / 10;
	__u32 rate;

	if (loss <= target) {
		if (r->grew)
			r->weight = (r->weight + c->w_max) / 2;
		r->grew = 1;
		return r->rate - bl_top_part(r->rate, r->weight) +
		       bl_top_part(BL_TOP_ONE + target, r->weight);
	}
	rate = bl_top_part(bl_top_part(r->rate, BL_TOP_ONE - loss), BL_TOP_ONE + target);
	bl_top_slower(r, c);
	return rate;
}

/* ns2-xpass xpass.cc:566-626. */
BL_CORE __u32 bl_top_law_ns2(struct bl_top_rx *r, const struct bl_top_cfg *c, __u32 loss, __u32 got)
{
	__u32 target = r->rate < BL_TOP_ONE ? (BL_TOP_ONE - r->rate) / 8 : 0;

	if (loss > target) {
		got = bl_top_part(got, BL_TOP_ONE + target);
		bl_top_slower(r, c);
		return got < r->rate ? got : r->rate;
	}
	if (r->grew)
		r->weight = r->weight + BL_TOP_ONE / 20 < c->w_max ? r->weight + BL_TOP_ONE / 20
								   : c->w_max;
	r->grew = 1;
	return r->rate < BL_TOP_ONE ? r->rate - bl_top_part(r->rate, r->weight) + r->weight
				    : r->rate;
}

/** bl_top_feedback - an RTT is over: another rate for the flow. */
BL_CORE void bl_top_feedback(struct bl_top_rx *r, const struct bl_top_cfg *c, __u64 now)
{
	__u32 most = BL_TOP_ONE, least = bl_top_least(c, r->rtt_ns), loss = 0, rate;

	if (r->total)
		loss = (__u32)(((__u64)r->dropped << 24) / r->total);
	if (c->law == BL_TOP_LAW_NS2) {
		rate = bl_top_law_ns2(r, c, loss,
				      bl_top_got(c, r->total - r->dropped, now - r->update_ns));
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

/* RTT of the token that is timed, smoothed by 1/5 as ns2 does. */
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
 * bl_top_echo - a data frame of @len bytes came that answers token @seq; 0: unscheduled. Returns
 * 0, or -1: no such token was ever sent.
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
		/* it was passed over, by mistake; or in an RTT that is judged already */
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

/** bl_top_gap - to a flow's next token. @random: 32 bits. */
BL_CORE __u64 bl_top_gap(const struct bl_top_cfg *c, __u32 rate, __u32 random)
{
	__u64 gap = ((__u64)c->slot_ns << 24) / (rate ? rate : 1),
	      spread = gap * (c->jitter >> 8) >> 16;

	return gap - spread + (2 * spread * (random >> 16) >> 16);
}

/** bl_top_sent - @r's next token goes out now. Returns its number. */
BL_CORE __u32 bl_top_sent(struct bl_top_rx *r, const struct bl_top_cfg *c, __u64 now, __u32 *random)
{
	__u64 gap = bl_top_gap(c, r->rate, bl_top_random(random));

	r->seq++;
	if (!r->seq)
		r->seq = 1; /* 0 means none */
	if (!r->probe_ns) {
		r->probe = r->seq;
		r->probe_ns = now;
	}
	/* late by others' tokens or by the pacer: it catches up one token, not more */
	r->next_ns = bl_max64(r->next_ns, now - bl_min64(now, gap)) + gap;
	return r->seq;
}

/**
 * bl_top_free_after - when the next token may go, after one that could go at @free went at @now.
 */
BL_CORE __u64 bl_top_free_after(const struct bl_top_cfg *c, __u64 free, __u64 now)
{
	__u64 behind = (__u64)BL_TOP_CATCH_UP * c->slot_ns;

	return bl_max64(free, now - bl_min64(now, behind)) + c->slot_ns;
}

/**
 * struct bl_top_pick - the choice of a slot. @best: class << 8 | turns to wait, of place @index;
 * ~0: nobody's time has come. @ready: how many have. @next_ns: when the first of the others will
 * have, or will be given up, or has a LOSS to send. @gone: 1 + a place that was not heard of for
 * too long. @loss: 1 + a place whose LOSS is due.
 */
struct bl_top_pick {
	__u64 now;
	__u64 next_ns;
	__u32 last;
	__u32 best;
	__u32 index;
	__u32 ready;
	__u32 gone;
	__u32 loss;
};

BL_CORE void bl_top_pick_begin(struct bl_top_pick *p, __u32 last, __u64 now)
{
	__builtin_memset(p, 0, sizeof(*p));
	p->now = now;
	p->last = last;
	p->best = ~0U;
	p->next_ns = BL_DUE_NEVER;
}

/** bl_top_consider - place @i, whose class is @cls now. */
BL_CORE void bl_top_consider(struct bl_top_pick *p, __u32 i, const struct bl_top_rx *r, __u32 cls,
			     const struct bl_top_cfg *c)
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
 * Of a place that a SYNC is for: whose it was. AGAIN: of the same flow, which has another tag now.
 */
enum bl_top_was { BL_TOP_WAS_FREE, BL_TOP_WAS_ANOTHER, BL_TOP_WAS_AGAIN };

/**
 * bl_top_begin - place @r is for the flow of this SYNC from now on; its address fields are the
 * caller's. What the same flow still misses is waited for under its new tag, too: its sender keeps
 * it. Returns how many numbers are given up.
 */
BL_CORE __u32 bl_top_begin(struct bl_top_rx *r, const struct bl_top_cfg *c,
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
 * bl_top_count - by what the sum of @r's coflow has to change for @r's size, as it is known now, to
 * be in it; @over: for nothing of it to be. Modulo 2^64, as the sum is.
 */
BL_CORE __u64 bl_top_count(struct bl_top_rx *r, int over)
{
	__u64 was = r->counted;

	r->counted = over ? 0 : r->bytes;
	return r->counted - was;
}

/**
 * bl_top_rtt_ns - how long what is missing may take; before an RTT was measured, what a sender
 * waits for an answer.
 */
BL_CORE __u64 bl_top_rtt_ns(const struct bl_top_rx *r, const struct bl_top_cfg *c)
{
	return r->rtt_ns ? r->rtt_ns : c->sync_ns;
}

/** bl_top_sync - another SYNC of the flow that @r is for. Returns 1 if it gets tokens again. */
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
	/* what was under way when it stopped found nothing there: no loss */
	r->forgiven = r->echo = r->seq;
	r->total = r->dropped = 0;
	r->probe_ns = 0;
	r->next_ns = r->update_ns = now;
	return 1;
}

/** bl_top_stop - the sender holds nothing. */
BL_CORE void bl_top_stop(struct bl_top_rx *r, const struct bl_top_msg *m, __u64 now)
{
	r->heard_ns = now;
	if (!bl_psn_before(r->sig, m->seq))
		return;
	r->sig = m->seq;
	r->state = BL_TOP_RX_STOPPED;
}

/** bl_top_fin - the flow is over: its place is free as soon as the pacer looks. */
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

/* ---- the sender ---- */

/** bl_top_flow - number's new flow; @tag: random. */
BL_CORE void bl_top_flow(struct bl_top_tx *t, const struct bl_top_cfg *c,
			 const struct bl_top_key *key, const struct bl_top_hint *hint, __u32 tag,
			 __u64 now)
{
	__u64 frames = bl_top_frames(hint->bytes);

	t->state = BL_TOP_IDLE;
	t->tag = tag;
	t->sig = t->seq = t->tries = t->wasted_run = 0;
	t->seen = ~0ULL; /* numbers begin at 1 */
	t->bytes = hint->bytes;
	t->deadline_us = hint->deadline_us;
	t->coflow = hint->coflow;
	t->keep = hint->flags & BL_TOP_F_RESEND;
	t->told = t->acked = t->data; /* which goes on */
	t->loss = t->rtt_us = 0;
	t->loss_ns = t->resent = t->asked = t->gone = 0;
	/*
	 * an unscheduled frame may come before the SYNC that says from which number on they count
	 */
	t->unsched = !t->keep && frames && frames <= c->short_frames
			     ? (__u32)bl_min64(c->unscheduled, frames)
			     : 0;
	__builtin_memcpy(&t->key, key, sizeof(*key));
	t->began_ns = t->frame_ns = now;
	t->sync_ns = t->token_ns = 0;
	t->frames = t->sent_bytes = t->tokens = t->wasted = t->expired = t->refused = t->syncs =
		t->stops = t->unscheduled = t->paced = 0;
}

/**
 * bl_top_held - a frame of @len bytes was put into the flow's queue. Returns 1 if the pacer shall
 * look at once.
 */
BL_CORE int bl_top_held(struct bl_top_tx *t, __u32 len, __u64 now)
{
	t->frame_ns = now;
	t->frames++;
	t->sent_bytes += len;
	t->wasted_run = 0;
	if (t->state == BL_TOP_FREE || t->state == BL_TOP_OUTSIDE)
		return 1; /* FREE: the number was given back in this moment */
	if (t->state != BL_TOP_IDLE)
		return 0;
	t->state = BL_TOP_ASKING;
	t->tries = 0;
	return 1;
}

/* The window of numbers: is @seq new? Then it is not any more. */
BL_CORE int bl_top_new(struct bl_top_tx *t, __u32 seq)
{
	__u32 up = seq - t->seq, down = t->seq - seq;

	if (!seq)
		return 0;
	if (up && up <= BL_TOP_AHEAD) {
		t->seen = up < BL_TOP_WINDOW ? t->seen << (up & (BL_TOP_WINDOW - 1)) | 1 : 1;
		t->seq = seq;
		return 1;
	}
	if (down >= BL_TOP_WINDOW || t->seen >> (down & (BL_TOP_WINDOW - 1)) & 1)
		return 0;
	t->seen |= 1ULL << (down & (BL_TOP_WINDOW - 1));
	return 1;
}

/**
 * bl_top_token - a token came, at bus time @bus, which may be wrong by @bound, as the receiver's
 * may. Returns BL_R_NONE: it is to be answered; else why not.
 */
BL_CORE enum bl_reason bl_top_token(struct bl_top_tx *t, const struct bl_top_cfg *c,
				    const struct bl_top_msg *m, __u64 bus, __u64 bound, __u64 now)
{
	__u64 sent = bl_ext48(m->ts, bus);

	if (t->state == BL_TOP_FREE)
		return BL_R_TOKEN_UNKNOWN;
	if (m->cls >= BL_TOP_CLASSES) {
		t->refused++;
		return BL_R_TOKEN_CLASS;
	}
	if (t->tag != m->tag) {
		t->refused++;
		return BL_R_TOKEN_FORGED;
	}
	if (sent > bus + 2 * bound) {
		t->refused++;
		return BL_R_TOKEN_AHEAD;
	}
	if (!bl_top_new(t, m->seq)) {
		t->refused++;
		return BL_R_TOKEN_REPLAYED;
	}
	if (bus > sent + c->expiry_ns + 2 * bound) {
		t->expired++;
		return BL_R_TOKEN_EXPIRED;
	}
	t->token_ns = now;
	t->tries = 0;
	t->state = BL_TOP_CREDITED;
	t->tokens++;
	return BL_R_NONE;
}

/**
 * bl_top_wasted - the token that was just believed found nothing. Returns 1 if it shall become a
 * STOP, with number t->sig.
 */
BL_CORE int bl_top_wasted(struct bl_top_tx *t)
{
	t->tokens--;
	t->wasted++;
	t->state = BL_TOP_IDLE;
	if (t->wasted_run++ % BL_TOP_STOP_EACH)
		return 0;
	t->sig++;
	t->stops++;
	return 1;
}

/*
 * What a turn does. SYNC, STOP, FIN: send it. UNSCHED, AT_ONCE: a frame goes without a token. END:
 * a FIN, and the number is free.
 */
enum bl_top_do {
	BL_TOP_NOTHING,
	BL_TOP_DO_SYNC,
	BL_TOP_DO_UNSCHED,
	BL_TOP_DO_AT_ONCE,
	BL_TOP_DO_END,
	BL_TOP_DO_STOP
};

/**
 * struct bl_top_turn - one turn. @busy: 1: the flow may not end now; the caller's; 2, afterwards:
 * else it would have. @what: enum bl_top_do. @next_ns: when to look at this flow again. @seq, @tag,
 * @data: of the signal.
 */
struct bl_top_turn {
	__u32 what;
	__u32 seq;
	__u32 tag;
	__u32 frames;
	__u32 data;
	__u32 busy;
	__u64 next_ns;
};

/*
 * Another tag: perhaps somebody knew the old one and made the numbers run ahead; and a receiver
 * that has forgotten the flow counts its tokens from 1. It begins anew, too.
 */
BL_CORE void bl_top_retag(struct bl_top_tx *t, __u32 tag)
{
	t->tag = tag;
	t->seq = t->loss = 0;
	t->seen = ~0ULL;
}

/**
 * bl_top_step - the pacer's turn for @t, of which @frames are held, or kept and missing. @random:
 * 32 bits.
 */
BL_CORE void bl_top_step(struct bl_top_tx *t, const struct bl_top_cfg *c, __u32 frames, __u64 now,
			 __u32 random, struct bl_top_turn *d)
{
	__u64 last = bl_max64(bl_max64(t->frame_ns, t->token_ns), t->loss_ns), due;
	__u32 shift;

	d->data = t->keep ? BL_READ_ONCE(t->data) : 0;
	d->what = BL_TOP_NOTHING;
	d->next_ns = BL_DUE_NEVER;
	d->frames = frames;
	if (t->state == BL_TOP_FREE) {
		if (frames)
			d->what = BL_TOP_DO_AT_ONCE;
		return;
	}
	d->tag = t->tag;
	if (!frames) {
		if (t->state == BL_TOP_ASKING)
			t->state = BL_TOP_IDLE;
		d->next_ns = last + c->idle_ns;
		due = bl_top_tail_ns(t, c);
		if (d->next_ns > now && due <= now) {
			d->what = BL_TOP_DO_STOP;
			d->seq = ++t->sig;
			t->state = BL_TOP_IDLE;
			t->tries = t->told == d->data ? t->tries + 1 : 0;
			t->told = d->data;
			t->sync_ns = now;
			t->stops++;
			due = bl_top_tail_ns(t, c);
		}
		if (d->next_ns > now) {
			d->next_ns = bl_min64(d->next_ns, due);
			return;
		}
		if (d->busy) {
			d->busy = 2;
			d->next_ns = now;
			return;
		}
		d->what = BL_TOP_DO_END;
		d->next_ns = BL_DUE_NEVER;
		d->seq = ++t->sig;
		t->state = BL_TOP_FREE;
		return;
	}
	if (c->outside_tries && !t->tokens && !t->wasted && t->tries >= c->outside_tries)
		t->state = BL_TOP_OUTSIDE;
	if (t->state == BL_TOP_OUTSIDE) {
		d->what = BL_TOP_DO_AT_ONCE;
		return;
	}
	due = t->token_ns + c->sync_ns;
	if (t->state == BL_TOP_CREDITED && due > now) {
		d->next_ns = due;
		return;
	}
	if (t->state != BL_TOP_ASKING) {
		/* tokens have ceased to come, or it fell asleep just before the frame came */
		t->state = BL_TOP_ASKING;
		t->tries = 0;
	}
	if (t->tries && t->unsched) {
		t->unsched--;
		t->unscheduled++;
		d->what = BL_TOP_DO_UNSCHED;
		d->next_ns = now;
		return;
	}
	shift = t->tries > BL_TOP_BACKOFF ? BL_TOP_BACKOFF : t->tries ? t->tries - 1 : 0;
	due = t->sync_ns + (c->sync_ns << shift);
	if (t->tries && due > now) {
		d->next_ns = due;
		return;
	}
	t->tries++;
	if (t->tries % BL_TOP_TAG_TRIES == 0 ||
	    (t->tries == 1 && t->token_ns &&
	     bl_max64(t->token_ns, t->sync_ns) + c->dead_ns <= now)) {
		bl_top_retag(t, random);
		d->tag = random;
	}
	t->told = d->data;
	t->sync_ns = now;
	t->syncs++;
	d->seq = ++t->sig;
	d->what = BL_TOP_DO_SYNC;
	d->next_ns = t->unsched ? now
				: now + (c->sync_ns << (t->tries > BL_TOP_BACKOFF ? BL_TOP_BACKOFF
										  : t->tries - 1));
}

/* ---- messages ---- */

/**
 * bl_top_parse - the TOP header at @h, of @len bytes of UDP payload; @end: of what can be read.
 * Returns 0, or -1: too short, another version, or no such opcode. Fills @m.
 */
BL_CORE int bl_top_parse(const struct bl_top_hdr *h, const void *end, __u32 len,
			 struct bl_top_msg *m)
{
	if ((const void *)(h + 1) > end || len < sizeof(*h) || h->opcode >> 4 != BL_TOP_VERSION)
		return -1;
	m->op = h->opcode & 15;
	m->cls = h->cls;
	m->flow = BL_BE16(h->flow);
	m->seq = BL_HALVES(h, seq);
	m->tag = BL_HALVES(h, tag);
	m->ts = bl_get48(h->ts);
	m->bytes = 0;
	m->frames = m->deadline_us = m->coflow = m->data = m->rtt_us = 0;
	m->missing = 0;
	if (m->op == BL_TOP_SYNC) {
		const struct bl_top_sync *s = (const void *)(h + 1);

		if ((const void *)(s + 1) > end || len < sizeof(*h) + sizeof(*s))
			return -1;
		m->bytes = bl_get48(s->bytes);
		m->frames = BL_HALVES(s, frames);
		m->deadline_us = BL_HALVES(s, deadline);
		m->coflow = BL_HALVES(s, coflow);
		m->data = BL_HALVES(s, data);
	} else if (m->op == BL_TOP_FIN) {
		const struct bl_top_fin *f = (const void *)(h + 1);

		if ((const void *)(f + 1) > end || len < sizeof(*h) + sizeof(*f))
			return -1;
		m->bytes = bl_get48(f->bytes);
		m->data = BL_HALVES(f, data);
	} else if (m->op == BL_TOP_LOSS) {
		const struct bl_top_loss *l = (const void *)(h + 1);

		if ((const void *)(l + 1) > end || len < sizeof(*h) + sizeof(*l))
			return -1;
		m->data = BL_HALVES(l, data);
		m->missing = (__u64)BL_HALVES(l, missing_hi) << 32 | BL_HALVES(l, missing_lo);
		m->rtt_us = BL_HALVES(l, rtt);
	} else if (m->op == BL_TOP_STOP) {
		const struct bl_top_stop *s = (const void *)(h + 1);

		if ((const void *)(s + 1) <= end && len >= sizeof(*h) + sizeof(*s))
			m->data = BL_HALVES(s, data);
	}
	return m->op && m->op < BL_TOP_OPCODE_LIMIT ? 0 : -1;
}

/* ---- keys ---- */

/** bl_top_mix - a hash of a flow's key, 32 bits. */
BL_CORE __u32 bl_top_mix(const struct bl_top_key *k)
{
	const __u64 *w = (const __u64 *)(const void *)k;
	__u64 h = 0;
	__u32 i;

	for (i = 0; i < sizeof(*k) / 8; i++)
		h = (h ^ w[i]) * 0x9E3779B97F4A7C15ULL, h ^= h >> 29;
	h *= 0xBF58476D1CE4E5B9ULL;
	return (__u32)(h >> 32);
}

_Static_assert(BL_TOP_HINTS == 1 << 10, "the upper bits of the mix");
/** bl_top_hint_hash - place of the key's hint. */
BL_CORE __u32 bl_top_hint_hash(const struct bl_top_key *k)
{
	return bl_top_mix(k) >> 22;
}

/** bl_top_rule - the hint of the first rule that fits; returns 0 if there is none. */
BL_CORE int bl_top_rule(const struct bl_top_cfg *c, const struct bl_top_key *k,
			struct bl_top_hint *h)
{
	__u32 i, n = BL_TOP_RULES;

	BL_OPAQUE(n);
	for (i = 0; i < BL_TOP_RULES && i < n; i++) {
		const struct bl_top_rule *r = &c->rules[i];

		if (!r->port)
			break;
		if ((r->proto && r->proto != k->proto) ||
		    (k->dport != BL_BE16(r->port) && k->sport != BL_BE16(r->port)))
			continue;
		h->bytes = r->bytes;
		h->deadline_us = r->deadline_us;
		h->coflow = r->coflow;
		h->flags = r->flags;
		return 1;
	}
	return 0;
}

#endif
