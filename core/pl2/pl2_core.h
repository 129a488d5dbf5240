/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PL2 on a host: what the pacer does next for one destination, and what a GRT changes (PL2
 * Algorithm 3, equation 1).
 *
 * Example, 4 frames of 1514 bytes for one destination, nobody else there: at 0 the pacer's turn
 * makes a burst of them and sends RSV 7 over 6152 byte times (length_core.h); state ASKED. At 20 us
 * the GRT: wait 60 us at the input, 90 us at the output. The longer one counts from when the switch
 * reserved, half a round trip ago, and the first frame needs the other half to get there: 90 - 20 =
 * 70 us from now, less what the NIC is still busy with. State GRANTED, send_ns 90 us. From then on
 * each turn sends one frame; after the fourth the slots are free again, and what has come meanwhile
 * makes the next burst.
 *
 * If the last GRT is fresh and its wait was below t, the burst goes at once, each frame marked
 * unsolicited: state EARLY. The RSV is ahead of it on a FIFO link, so the switch decides before the
 * first frame is there, and the GRT says what it decided: PASSED, then the burst is done; or not,
 * then the switch drops every marked frame of it, and the burst is sent again in its slot. The
 * paper resends by a threshold of its own (t against T) and receivers may get frames twice; here
 * nothing that was let through is sent again.
 *
 * A pacer can stand still for milliseconds (DESIGN 6). All bursts whose slots passed meanwhile
 * would go at once, into slots of others: a burst that is more than late_ns late asks anew, for the
 * frames that did not go yet. Here, 30 ms after 90 us: RSV 8 over 6152 byte times, which at the
 * switch ends promise 7.
 *
 * Two CPUs at most work on a destination: the pacer's, and the one that GRTs arrive on. struct
 * bl_pl2_dest says who writes what.
 */
#ifndef BARLINE_PL2_CORE_H
#define BARLINE_PL2_CORE_H

#include "maps/hold_abi.h"
#include "maps/reasons_abi.h"
#include "maps/wire_abi.h"
#include "core/queue/queue_core.h"

#define BL_PL2_BACKOFF_MAX                                                    \
	4 /* a refused burst waits retry_ns, then twice that, up to 2^4 times \
	   */
#define BL_PL2_FRAME_LEN                                                              \
	1514 /* as long as frames get that carry no tag; of the next one nobody knows \
	      * how long it is before it is taken */
#define BL_PL2_WORD(seq, state) ((__u64)(__u32)(seq) << 8 | (state))
#define BL_PL2_STATE(word)      ((__u32)(word)&0xff)
#define BL_PL2_SEQ(word)        ((__u32)((word) >> 8))

/*
 * What a turn does. COLLECT and DONE are between core and glue: take a burst out of the hold
 * queues; give the burst's slots back. RSV: send the link frame that is to be sent.
 */
enum bl_pl2_do { BL_DO_NOTHING, BL_DO_RSV, BL_DO_FRAME, BL_DO_COLLECT, BL_DO_DONE };

/**
 * struct bl_pl2_turn - one turn. @what: enum bl_pl2_do. @entry: FRAME: whose slot to send. @early:
 * set its source address's BL_EARLY_MAC0.
 * @due_ns: FRAME: when it should have gone. @next_ns: when to look at this destination again.
 */
struct bl_pl2_turn {
	__u32 what;
	__u32 entry;
	__u32 early;
	__u32 zero;
	__u64 due_ns;
	__u64 next_ns;
};

/**
 * struct bl_pl2_times - the times that follow from the link's slot, a full frame's time. Each is a
 * number of slots, for that is what bursts wait for, and never less than what the machines at both
 * ends take, which does not shrink with the slot.
 */
struct bl_pl2_times {
	__u64 recent_ns; /* host: how old a GRT may be to justify an unsolicited burst */
	__u64 retry_ns;  /* host: an RSV without GRT is repeated after that long */
	__u64 late_ns;   /* host: a burst later than that for its slot asks anew */
	/* host: an announced burst that is later than that is released at the switch */
	__u64 coming_ns;
	__u64 lapse_ns; /* switch: a promise that is not used lapses that long after its slot */
};

/**
 * bl_pl2_times - of a link with slots of @slot_ns. late < coming < lapse whatever the rate: a burst
 * gives its slot up before others take it back. Example: 250 Mbit/s, slots of 49.2 us: 0.98, 1.97,
 * 0.98, 9.8 and 19.7 ms. 10 Gbit/s, 1.23 us: the machines' 0.1, 0.2, 0.1, 1 and 2 ms.
 */
BL_CORE void bl_pl2_times(__u64 slot_ns, struct bl_pl2_times *t)
{
	t->recent_ns = bl_max64(20 * slot_ns, 100000);
	t->retry_ns = bl_max64(40 * slot_ns, 200000);
	t->late_ns = bl_max64(20 * slot_ns, 100000);
	t->coming_ns = bl_max64(200 * slot_ns, 1000000);
	t->lapse_ns = bl_max64(400 * slot_ns, 2000000);
}

/**
 * bl_pl2_wait - equation 1: from now to the burst. @delay: RSV to GRT. @pending: what the NIC has
 * to send before.
 */
BL_CORE __u64 bl_pl2_wait(__u64 in_wait, __u64 out_wait, __u64 delay, __u64 pending)
{
	__u64 wait = bl_max64(in_wait, out_wait);

	return wait > delay + pending ? wait - delay - pending : 0;
}

/** bl_pl2_may_early - the last GRT is recent and its wait was below t (PL2 D.4). */
BL_CORE int bl_pl2_may_early(const struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, __u64 now)
{
	__u64 last = BL_READ_ONCE(d->last_ns);

	return last && now - last <= cfg->recent_ns && BL_READ_ONCE(d->last_wait_ns) < cfg->t_ns;
}

/**
 * bl_pl2_burst_room - may another frame of @len bytes join the burst? One always may; @len as long
 * as frames get, where it is not known yet.
 */
BL_CORE int bl_pl2_burst_room(const struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, __u32 len)
{
	return d->n < BL_PL2_K_MAX &&
	       (!d->n || (d->n < cfg->k_frames && d->bytes + bl_wire_bytes(len) <= cfg->k_bytes));
}

BL_CORE __u32 bl_pl2_turn_rest(struct bl_pl2_turn *t, __u64 next)
{
	t->next_ns = next;
	return BL_DO_NOTHING;
}

/* A new RSV for the burst that is there. The pacer was in @word; fails if a GRT came just now. */
BL_CORE __u32 bl_pl2_rsv_new(struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, __u64 now,
			     __u64 word, int early, struct bl_pl2_turn *t)
{
	/*
	 * a host that starts anew begins elsewhere: its switch may remember the last number that it
	 * knew
	 */
	__u32 seq = word ? BL_PL2_SEQ(word) + 1 : (__u32)now;

	/*
	 * First of all: if a GRT was faster, everything else stays as it was. No GRT can answer the
	 * new number before its RSV is out, which is after this turn.
	 */
	if (__sync_val_compare_and_swap(
		    &d->word, word, BL_PL2_WORD(seq, early ? BL_PL2_EARLY : BL_PL2_ASKED)) != word)
		return bl_pl2_turn_rest(t, now);
	d->resent += d->unsolicited;
	d->retries = 0;
	d->sent = d->base;
	d->unsolicited = (__u32)early;
	d->asked_ns[0] = now;
	d->rsvs++;
	d->early += (__u32)early;
	t->next_ns = early ? now : now + cfg->retry_ns;
	return BL_DO_RSV;
}

/*
 * The next frame of the burst that was due at @due. The one after it is due then, too: the pacer
 * takes what was due first, so a burst ends before one begins that was due later. By turns all
 * would end as late as the last, and miss their slots.
 */
BL_CORE __u32 bl_pl2_frame_next(struct bl_pl2_dest *d, __u64 due, struct bl_pl2_turn *t)
{
	t->entry = d->entry[d->sent & (BL_PL2_K_MAX - 1)];
	t->early = d->unsolicited;
	t->due_ns = t->next_ns = due;
	return BL_DO_FRAME;
}

/*
 * The burst was to begin at @begin, and its next frame should have gone long ago. Frames go one
 * after the other, so each has its own time.
 */
BL_CORE int bl_pl2_burst_late(const struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg,
			      __u64 begin, __u64 now)
{
	__u32 full = (d->sent - d->base) * bl_wire_bytes(BL_PL2_FRAME_LEN);
	__u64 due = begin + bl_times_ns(&cfg->link, full) + cfg->late_ns;

	return cfg->late_ns && d->missed < BL_PL2_MISSED_MAX && now > due;
}

/* Its slot is gone: what was sent is done, an RSV for the rest. */
BL_CORE __u32 bl_pl2_slot_missed(struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, __u64 now,
				 __u64 word, struct bl_pl2_turn *t)
{
	__u32 i, n = BL_PL2_K_MAX;

	BL_OPAQUE(n);
	for (i = 0; i < n; i++)
		if (i >= d->base && i < d->sent)
			d->bytes -= bl_wire_bytes(BL_RING_LEN(d->entry[i & (BL_PL2_K_MAX - 1)]));
	d->base = (__u16)d->sent;
	d->unsolicited = 0;
	d->missed++;
	d->late++;
	return bl_pl2_rsv_new(d, cfg, now, word, 0, t);
}

/* GRANTED: a GRT came, with good or bad news. */
BL_CORE __u32 bl_pl2_granted(struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, __u64 now,
			     __u64 word, struct bl_pl2_turn *t)
{
	__u32 again = d->unsolicited && !(d->verdict & BL_GRT_PASSED);
	__u64 begin;

	if (again) {
		d->resent += d->sent != d->base;
		d->unsolicited = 0;
		d->sent = d->base;
	}
	if (d->verdict & BL_GRT_REFUSED) {
		__u32 shift = d->refusals < BL_PL2_BACKOFF_MAX ? d->refusals : BL_PL2_BACKOFF_MAX;

		d->refusals++;
		d->send_ns = now + (cfg->retry_ns << shift);
		BL_WRITE_ONCE(d->word, BL_PL2_WORD(BL_PL2_SEQ(word), BL_PL2_IDLE));
		return bl_pl2_turn_rest(t, d->send_ns);
	}
	d->refusals = 0;
	if (d->sent >= d->n)
		return BL_DO_DONE;
	begin = d->unsolicited ? d->asked_ns[0] : d->send_ns;
	if (now < begin)
		return bl_pl2_turn_rest(t, begin);
	if (bl_pl2_burst_late(d, cfg, begin, now))
		return bl_pl2_slot_missed(d, cfg, now, word, t);
	return bl_pl2_frame_next(d, begin, t);
}

/**
 * bl_pl2_apart_ns - how long a host goes without RSVs before it asks again: so often it pays a
 * round trip.
 */
BL_CORE __u64 bl_pl2_apart_ns(const struct bl_hold_cfg *cfg)
{
	return 10 * cfg->retry_ns;
}

/*
 * No promise is to be had: frames go as under policy none. What began so ends so: a burst that was
 * answered with OFF, and one of which some frames went already (only here do any leave in IDLE).
 */
BL_CORE int bl_pl2_apart(const struct bl_pl2_dest *d, __u32 state, __u64 now)
{
	if (state == BL_PL2_GRANTED)
		return !!(d->verdict & BL_GRT_OFF);
	return state == BL_PL2_IDLE && (d->sent > d->base || BL_READ_ONCE(d->apart_ns) > now);
}

/**
 * bl_pl2_step - the pacer's turn for @d. Returns enum bl_pl2_do and fills @t.
 * COLLECT: put frames into the burst (bl_pl2_burst_room()) and call again if there were any. DONE:
 * bl_pl2_burst_done(), and call again.
 * @sure: the switch's beacons say that it makes reservations. Where its answers do not come it is
 * slow, and drops what comes without a promise.
 */
BL_CORE __u32 bl_pl2_step(struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, int sure, __u64 now,
			  struct bl_pl2_turn *t)
{
	__u64 word = BL_READ_ONCE(d->word), due;
	__u32 state = BL_PL2_STATE(word);

	/* under another policy only what is left of a burst that was in hand when it changed */
	if (cfg->policy != BL_POLICY_PL2 || bl_pl2_apart(d, state, now)) {
		if (!d->n && cfg->policy == BL_POLICY_PL2)
			return BL_DO_COLLECT;
		if (d->sent >= d->n)
			return BL_DO_DONE;
		d->unsolicited = 0;
		return bl_pl2_frame_next(d, now, t);
	}
	if (state == BL_PL2_GRANTED)
		return bl_pl2_granted(d, cfg, now, word, t);
	if (state == BL_PL2_IDLE) {
		if (!d->n)
			return BL_DO_COLLECT;
		if (now < d->send_ns)
			return bl_pl2_turn_rest(t, d->send_ns);
		return bl_pl2_rsv_new(d, cfg, now, word, bl_pl2_may_early(d, cfg, now), t);
	}
	/*
	 * one that is late waits for its GRT: by the time that a frame comes, the switch may have
	 * taken back what it let through
	 */
	if (state == BL_PL2_EARLY && d->sent < d->n &&
	    !bl_pl2_burst_late(d, cfg, d->asked_ns[0], now))
		return bl_pl2_frame_next(d, d->asked_ns[0], t);
	due = d->asked_ns[d->retries & (BL_PL2_TRIES - 1)] + cfg->retry_ns;
	if (now < due)
		return bl_pl2_turn_rest(t, due);
	d->timeouts++;
	BL_WRITE_ONCE(d->silent, d->silent + 1);
	if (d->silent >= (sure ? BL_PL2_SILENT_SURE : BL_PL2_SILENT) && !d->unsolicited) {
		/* fails if a GRT came just now */
		if (__sync_val_compare_and_swap(&d->word, word,
						BL_PL2_WORD(BL_PL2_SEQ(word), BL_PL2_IDLE)) != word)
			return bl_pl2_turn_rest(t, now);
		d->silent = 0;
		d->sent = d->base;
		BL_WRITE_ONCE(d->apart_ns, now + bl_pl2_apart_ns(cfg));
		return bl_pl2_frame_next(d, now, t);
	}
	if (d->retries + 1 >= BL_PL2_TRIES)
		return bl_pl2_rsv_new(d, cfg, now, word, 0, t);
	/* the time first, then the number that makes bl_pl2_grant() look at it */
	d->asked_ns[(d->retries + 1) & (BL_PL2_TRIES - 1)] = now;
	BL_BARRIER();
	BL_WRITE_ONCE(d->retries, d->retries + 1);
	d->rsvs++;
	t->next_ns = now + cfg->retry_ns;
	return BL_DO_RSV;
}

/**
 * bl_pl2_rsv_flags - of the RSV that is to be sent. Unsolicited frames follow the first try only:
 * if that one was lost, they were dropped, and a repeat that still spoke of them would be told that
 * they passed. If it was not lost, the repeat gets its answer, whatever it says itself.
 */
BL_CORE __u8 bl_pl2_rsv_flags(const struct bl_pl2_dest *d)
{
	return d->unsolicited && !d->retries ? BL_RSV_EARLY : 0;
}

/** bl_pl2_frame_sent - the frame that bl_pl2_step() gave was handed to the device. */
BL_CORE void bl_pl2_frame_sent(struct bl_pl2_dest *d)
{
	d->sent++;
}

/** bl_pl2_burst_over - all frames of the burst are sent, and none of them will be again. */
BL_CORE int bl_pl2_burst_over(const struct bl_pl2_dest *d)
{
	return BL_PL2_STATE(BL_READ_ONCE(d->word)) == BL_PL2_GRANTED && d->sent >= d->n &&
	       !(d->verdict & BL_GRT_REFUSED) && (!d->unsolicited || d->verdict & BL_GRT_PASSED);
}

/** bl_pl2_frame_added - @entry, of @len bytes, joins the burst. */
BL_CORE void bl_pl2_frame_added(struct bl_pl2_dest *d, __u32 entry, __u32 len)
{
	d->entry[d->n & (BL_PL2_K_MAX - 1)] = entry;
	d->n++;
	d->bytes += bl_wire_bytes(len);
}

/** bl_pl2_burst_done - the burst is over; its slots are the caller's to free. */
BL_CORE void bl_pl2_burst_done(struct bl_pl2_dest *d)
{
	d->n = d->sent = d->bytes = 0;
	d->base = d->missed = 0;
	d->unsolicited = 0;
	d->send_ns = 0;
	BL_WRITE_ONCE(d->word, BL_PL2_WORD(BL_PL2_SEQ(d->word), BL_PL2_IDLE));
}

/**
 * struct bl_pl2_grt - what a GRT says. @try: from the cookie.
 */
struct bl_pl2_grt {
	__u32 seq;
	__u32 bytes;
	__u32 in_wait_ns;
	__u32 out_wait_ns;
	__u32 flags;
	__u32 try;
};

/**
 * bl_pl2_grant - a GRT for @d came; @pending: how long the NIC is still busy; @apart: how long to
 * go without, if it says OFF. Returns BL_R_GRT, BL_R_GRT_OFF, or BL_R_GRT_BAD and nothing but @bad
 * has changed that the pacer looks at.
 */
BL_CORE enum bl_reason bl_pl2_grant(struct bl_pl2_dest *d, const struct bl_pl2_grt *g,
				    __u64 pending, __u64 apart, __u64 now)
{
	__u64 word = BL_READ_ONCE(d->word), wait = bl_max64(g->in_wait_ns, g->out_wait_ns), asked,
	      delay;
	__u32 state = BL_PL2_STATE(word);

	if ((state != BL_PL2_ASKED && state != BL_PL2_EARLY) || BL_PL2_SEQ(word) != g->seq ||
	    BL_READ_ONCE(d->bytes) != g->bytes || wait > BL_PL2_FAR_NS ||
	    g->try > BL_READ_ONCE(d->retries) || g->try >= BL_PL2_TRIES ||
	    g->flags & ~(__u32)(BL_GRT_PASSED | BL_GRT_REFUSED | BL_GRT_OFF) ||
	    (g->flags & BL_GRT_OFF && !(g->flags & BL_GRT_REFUSED)) ||
	    (g->flags & BL_GRT_PASSED && (state != BL_PL2_EARLY || g->flags & BL_GRT_REFUSED))) {
		d->bad++;
		return BL_R_GRT_BAD;
	}
	asked = BL_READ_ONCE(d->asked_ns[g->try]);
	delay = now - bl_min64(asked, now);
	d->send_ns = now + bl_pl2_wait(g->in_wait_ns, g->out_wait_ns, delay, pending);
	d->verdict = g->flags;
	/* a full barrier: the pacer sees GRANTED and then what the GRT said */
	if (__sync_val_compare_and_swap(&d->word, word, BL_PL2_WORD(g->seq, BL_PL2_GRANTED)) !=
	    word) {
		/*
		 * the pacer asked anew meanwhile; that the fields above were written concerns
		 * nobody while it waits for another GRT
		 */
		d->bad++;
		return BL_R_GRT_BAD;
	}
	BL_WRITE_ONCE(d->silent, 0);
	if (g->flags & BL_GRT_REFUSED) {
		d->refused++;
		d->last_ns = 0;
		if (g->flags & BL_GRT_OFF)
			BL_WRITE_ONCE(d->apart_ns, now + apart);
		return g->flags & BL_GRT_OFF ? BL_R_GRT_OFF : BL_R_GRT;
	}
	d->last_wait_ns = wait;
	d->last_ns = now;
	if (!d->grts)
		d->delay_ns = d->delay_min_ns = d->delay_max_ns = delay;
	d->grts++;
	d->delay_ns += (delay >> 3) - (d->delay_ns >> 3);
	d->delay_min_ns = bl_min64(d->delay_min_ns, delay);
	d->delay_max_ns = bl_max64(d->delay_max_ns, delay);
	return BL_R_GRT;
}

/* ---- the receiver's side ---- */

/**
 * bl_pl2_announce - the copy of a GRT: a burst of @bytes will come. Returns when it should be
 * there, or 0: nobody waits for it.
 */
BL_CORE __u64 bl_pl2_announce(struct bl_pl2_coming *c, const struct bl_hold_cfg *cfg,
			      const struct bl_pl2_grt *g, __u64 now)
{
	/* its first byte's time, what it takes at the rate of a link, and some more */
	__u64 by = now + bl_max64(g->in_wait_ns, g->out_wait_ns) +
		   bl_times_ns(&cfg->link, g->bytes) + cfg->coming_ns,
	      was = BL_READ_ONCE(c->by_ns);

	if (!cfg->coming_ns || !g->bytes)
		return 0;
	/* the time before the bytes: the pacer must not find new bytes and an old time */
	if (was < by)
		BL_WRITE_ONCE(c->by_ns, by);
	c->seq = g->seq;
	(void)__sync_fetch_and_add(&c->bytes, g->bytes);
	return bl_max64(was, by);
}

/** bl_pl2_arrived - @len bytes came from that sender. */
BL_CORE void bl_pl2_arrived(struct bl_pl2_coming *c, __u32 len)
{
	__u32 bytes = bl_wire_bytes(len);
	int i;

	/*
	 * Against the pacer, who takes all at once: the second try succeeds. A sender with two CPUs
	 * on our side may lose both: then as much too much is released, which the switch limits to
	 * what is promised.
	 */
	for (i = 0; i < 3; i++) {
		__u32 was = BL_READ_ONCE(c->bytes);

		if (!was || __sync_val_compare_and_swap(&c->bytes, was,
							was > bytes ? was - bytes : 0) == was)
			return;
	}
}

/** bl_pl2_missing - bytes that should be here by now, to be released. The pacer's. */
BL_CORE __u32 bl_pl2_missing(struct bl_pl2_coming *c, __u64 now)
{
	if (!BL_READ_ONCE(c->bytes) || BL_READ_ONCE(c->by_ns) > now)
		return 0;
	return __sync_lock_test_and_set(&c->bytes, 0);
}

/** bl_pl2_coming_at - when to look at it again. */
BL_CORE __u64 bl_pl2_coming_at(const struct bl_pl2_coming *c)
{
	return BL_READ_ONCE(c->bytes) ? BL_READ_ONCE(c->by_ns) : BL_DUE_NEVER;
}

#endif
