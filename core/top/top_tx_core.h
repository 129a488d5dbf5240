/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP on a host, the sender: which tokens are valid, and what the pacer sends for a flow in its
 * turn.
 *
 * A token is answered if its flow exists and its tag matches, if its number is new (a window of 64
 * numbers, so that a copy of a token is worth nothing), and if it was not under way for longer than
 * T plus the error of the two clocks (TOP section 4.3: data that answers a late token would meet
 * the data of other tokens).
 *
 * Example: the highest number so far is 100. Token 103 moves the window up by 3 and is answered.
 * Token 101 was overtaken; its bit in the window is clear, so it is answered as well. A copy of
 * token 103 is refused, and so is token 36, which is 64 or more below the highest.
 *
 * This file reads no clock and no map, and takes no lock: the caller holds the lock of the flow.
 */
#ifndef BARLINE_TOP_TX_CORE_H
#define BARLINE_TOP_TX_CORE_H

#include "maps/reasons_abi.h"
#include "maps/top_host_abi.h"
#include "core/clock_core.h"
#include "core/core.h"
#include "core/top/top_core.h"
#include "core/top/top_loss_core.h"
#include "core/wire_core.h"

#define BL_TOP_BACKOFF 2 /* the interval between SYNCs is doubled at most this often */

/* ---- the sender ---- */

/** bl_top_tx_begin - initialise a number for a new flow. @tag: random. */
BL_CORE void bl_top_tx_begin(struct bl_top_tx *t, const struct bl_top_cfg *c,
			     const struct bl_top_key *key, const struct bl_top_hint *hint,
			     __u32 tag, __u64 now)
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
	t->told = t->acked = t->data; /* which continues */
	t->loss = t->rtt_us = 0;
	t->loss_ns = t->resent = t->asked = t->gone = 0;
	/*
	 * Not for numbered data: an unscheduled frame may arrive before the SYNC that says from
	 * which number on data counts.
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
 * bl_top_frame_held - account for a frame of @len bytes that was put into the flow's queue. Returns
 * 1 if the pacer must look at once.
 */
BL_CORE int bl_top_frame_held(struct bl_top_tx *t, __u32 len, __u64 now)
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

/* The window of token numbers: returns 1 and marks @seq as seen if it is new; else 0. */
BL_CORE int bl_top_seq_accept(struct bl_top_tx *t, __u32 seq)
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
 * bl_top_token - validate a token that has arrived.
 * @bus, @bound: bus time of now and its largest error; the receiver's clock may have the same
 * error.
 *
 * Returns BL_R_NONE if the token is to be answered; else the reason to drop it.
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
	if (!bl_top_seq_accept(t, m->seq)) {
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
 * bl_top_token_wasted - the token that was just accepted found no frame. Returns 1 if it must
 * become a STOP, with number t->sig.
 */
BL_CORE int bl_top_token_wasted(struct bl_top_tx *t)
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
 * What a turn does. SYNC, STOP: send it. UNSCHED, AT_ONCE: send a frame without a token. END: send
 * a FIN; the number is free.
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
 * struct bl_top_turn - the result of one turn of the pacer for one flow. Filled in by
 * bl_top_tx_step().
 */
struct bl_top_turn {
	__u32 what;   /* enum bl_top_do */
	__u32 seq;    /* number of the signal */
	__u32 tag;    /* of the signal */
	__u32 frames; /* frames that wait, for a SYNC */
	__u32 data;   /* number of the last data frame, for the signal; 0: none */
	/* in: 1: the flow must not end now. out: 2: it would have ended otherwise. */
	__u32 busy;
	__u64 next_ns; /* when to look at this flow again */
};

/*
 * Gives the flow another tag: the old one may be known to an attacker that made the numbers run
 * ahead, and a receiver that has forgotten the flow counts its tokens from 1. The window of token
 * numbers starts anew.
 */
BL_CORE void bl_top_retag(struct bl_top_tx *t, __u32 tag)
{
	t->tag = tag;
	t->seq = t->loss = 0;
	t->seen = ~0ULL;
}

/**
 * bl_top_tx_step - a turn of the pacer for @t.
 * @frames: number of frames that are held, or kept and missing.
 * @random: 32 random bits for a new tag.
 * @d: filled in with what to do; @d->busy is also an input.
 */
BL_CORE void bl_top_tx_step(struct bl_top_tx *t, const struct bl_top_cfg *c, __u32 frames,
			    __u64 now, __u32 random, struct bl_top_turn *d)
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
		/*
		 * tokens have stopped arriving, or the flow became idle just before the frame came
		 */
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

#endif
