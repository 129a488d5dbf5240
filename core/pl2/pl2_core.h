/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * PL2 on a host: what the pacer does next for one destination, and what a GRT changes (PL2
 * Algorithm 3, equation 1).
 *
 * Example: 4 frames of 1514 bytes for one destination, and no other traffic. At 0 the pacer's turn
 * makes a burst of them and sends RSV 7 over 6152 byte times (core/length_core.h); the state is
 * ASKED. At 20 us the GRT arrives: wait 60 us at the input, 90 us at the output. The longer wait
 * counts from the moment when the switch made the reservation, half a round trip ago, and the first
 * frame needs the other half to get there: it leaves 90 - 20 = 70 us from now, less the time for
 * which the NIC is still busy. The state is GRANTED, and send_ns is 90 us. From then on each turn
 * sends one frame. After the fourth one the slots are free again, and the frames that have arrived
 * meanwhile form the next burst.
 *
 * If the last GRT is recent and its wait was below t, the burst is sent at once, with each frame
 * marked as unsolicited; the state is EARLY. The RSV is ahead of the burst on a FIFO link, so the
 * switch decides before the first frame is there, and the GRT carries the decision. PASSED: the
 * burst is done. Otherwise the switch drops every marked frame of the burst, which is sent again in
 * its slot. The paper resends by a threshold of its own (t against T), and receivers may get frames
 * twice; here, nothing that was let through is sent again.
 *
 * A pacer can stand still for milliseconds. All bursts whose slots have passed meanwhile would
 * leave at once, in the slots of others. So a burst that is more than late_ns late asks again for
 * the frames that were not sent yet. In the example, 30 ms after 90 us: RSV 8 over 6152 byte times,
 * which ends promise 7 at the switch.
 *
 * At most two CPUs work on a destination: the pacer's, and the one that GRTs arrive on. struct
 * bl_pl2_dest says who writes what. This file moves no frames and reads no clock.
 */
#ifndef BARLINE_PL2_CORE_H
#define BARLINE_PL2_CORE_H

#include "maps/hold_abi.h"
#include "maps/reasons_abi.h"
#include "maps/wire_abi.h"
#include "core/queue/queue_core.h"

/* a refused burst waits retry_ns, then twice that, and so on, up to 2^4 times that */
#define BL_PL2_BACKOFF_MAX 4
/* the longest frame without a tag; how long the next frame is, is not known before it is taken */
#define BL_PL2_FRAME_LEN        1514
#define BL_PL2_WORD(seq, state) ((__u64)(__u32)(seq) << 8 | (state))
#define BL_PL2_STATE(word)      ((__u32)(word)&0xff)
#define BL_PL2_SEQ(word)        ((__u32)((word) >> 8))

/*
 * What a turn does. RSV: send the link frame. FRAME: send one frame of the burst. COLLECT and DONE
 * are handled by the caller within the turn: take a burst out of the hold queues, and free the
 * burst's slots.
 */
enum bl_pl2_do { BL_DO_NOTHING, BL_DO_RSV, BL_DO_FRAME, BL_DO_COLLECT, BL_DO_DONE };

/**
 * struct bl_pl2_turn - the result of one turn of the pacer for one destination. Filled in by
 * bl_pl2_step().
 */
struct bl_pl2_turn {
	__u32 what;  /* enum bl_pl2_do */
	__u32 entry; /* FRAME: BL_RING_ENTRY of the frame to send */
	__u32 early; /* FRAME: 1: set BL_EARLY_MAC0 in its source address */
	__u32 zero;
	__u64 due_ns;  /* FRAME: CLOCK_MONOTONIC at which it was due */
	__u64 next_ns; /* CLOCK_MONOTONIC at which to look at this destination again */
};

/**
 * struct bl_pl2_times - the times that follow from the link's slot, which is the time of a full
 * frame. Each is a number of slots, since bursts wait for slots, but never less than what the
 * machines at both ends need, which does not shrink with the slot.
 */
struct bl_pl2_times {
	__u64 recent_ns; /* host: largest age of a GRT that justifies an unsolicited burst */
	__u64 retry_ns;  /* host: an RSV without a GRT is repeated after this time */
	__u64 late_ns;   /* host: a burst that is later than this for its slot asks again */
	/* host: an announced burst that is later than this is released at the switch */
	__u64 coming_ns;
	__u64 lapse_ns; /* switch: a promise lapses this long after its unused slot */
};

/**
 * bl_pl2_times - fill in @t for a link with slots of @slot_ns. late < coming < lapse at every rate,
 * so a burst gives up its slot before the others take it back.
 *
 * Example: 250 Mbit/s, slots of 49.2 us: 0.98, 1.97, 0.98, 9.8 and 19.7 ms. 10 Gbit/s, slots of
 * 1.23 us: the minima of the machines, 0.1, 0.2, 0.1, 1 and 2 ms.
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
 * bl_pl2_wait - ns from now to the burst (equation 1). @delay: from RSV to GRT. @pending: what the
 * NIC has to send before.
 */
BL_CORE __u64 bl_pl2_wait(__u64 in_wait, __u64 out_wait, __u64 delay, __u64 pending)
{
	__u64 wait = bl_max64(in_wait, out_wait);

	return wait > delay + pending ? wait - delay - pending : 0;
}

/** bl_pl2_may_early - whether the last GRT is recent and its wait was below t (PL2 D.4). */
BL_CORE int bl_pl2_may_early(const struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, __u64 now)
{
	__u64 last = BL_READ_ONCE(d->last_ns);

	return last && now - last <= cfg->recent_ns && BL_READ_ONCE(d->last_wait_ns) < cfg->t_ns;
}

/**
 * bl_pl2_burst_room - whether another frame of @len bytes may join the burst. The first frame
 * always may. Where @len is not known yet, pass the longest length.
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

/*
 * Sends an RSV with a new number for the current burst. The pacer has read @word; fails if a GRT
 * has arrived since.
 */
BL_CORE __u32 bl_pl2_rsv_new(struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, __u64 now,
			     __u64 word, int early, struct bl_pl2_turn *t)
{
	/*
	 * A restarted host begins at another number, since its switch may remember the last one
	 * that it knew.
	 */
	__u32 seq = word ? BL_PL2_SEQ(word) + 1 : (__u32)now;

	/*
	 * This comes first: if a GRT was faster, everything else stays as it was. No GRT can answer
	 * the new number before its RSV is sent, which is after this turn.
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
 * Sends the next frame of the burst that was due at @due. The frame after it is due at the same
 * time: the pacer serves what was due first, so a burst ends before another begins that was due
 * later. If bursts took turns, all of them would end as late as the last one, and miss their slots.
 */
BL_CORE __u32 bl_pl2_frame_next(struct bl_pl2_dest *d, __u64 due, struct bl_pl2_turn *t)
{
	t->entry = d->entry[d->sent & (BL_PL2_K_MAX - 1)];
	t->early = d->unsolicited;
	t->due_ns = t->next_ns = due;
	return BL_DO_FRAME;
}

/*
 * Whether the next frame of a burst that should have begun at @begin is too late. Frames leave one
 * after the other, so each has a time of its own.
 */
BL_CORE int bl_pl2_burst_late(const struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg,
			      __u64 begin, __u64 now)
{
	__u32 full = (d->sent - d->base) * bl_wire_bytes(BL_PL2_FRAME_LEN);
	__u64 due = begin + bl_times_ns(&cfg->link, full) + cfg->late_ns;

	return cfg->late_ns && d->missed < BL_PL2_MISSED_MAX && now > due;
}

/** struct bl_pl2_burst - argument of bl_pl2_uncount_sent(). */
struct bl_pl2_burst {
	struct bl_pl2_dest *d;
};

/* Subtracts frame @i of the burst from its bytes if it was sent in this slot. */
static __attribute__((unused)) long bl_pl2_uncount_sent(__u32 i, struct bl_pl2_burst *b)
{
	struct bl_pl2_dest *d = b->d;

	if (i >= d->base && i < d->sent)
		d->bytes -= bl_wire_bytes(BL_RING_LEN(d->entry[i & (BL_PL2_K_MAX - 1)]));
	return 0;
}

/* The slot was missed: what was sent is done, and a new RSV asks for the remainder. */
BL_CORE __u32 bl_pl2_slot_missed(struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, __u64 now,
				 __u64 word, struct bl_pl2_turn *t)
{
	struct bl_pl2_burst b = { .d = d };

	BL_LOOP(BL_PL2_K_MAX, bl_pl2_uncount_sent, &b);
	d->base = (__u16)d->sent;
	d->unsolicited = 0;
	d->missed++;
	d->late++;
	return bl_pl2_rsv_new(d, cfg, now, word, 0, t);
}

/* State GRANTED: a GRT has arrived, which may be a refusal. */
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
 * bl_pl2_apart_ns - how long a host sends without RSVs before it asks again, at the cost of a round
 * trip.
 */
BL_CORE __u64 bl_pl2_apart_ns(const struct bl_hold_cfg *cfg)
{
	return 10 * cfg->retry_ns;
}

/*
 * No promise can be had, so frames are sent as under policy none. A burst ends the way it began:
 * one that was answered with OFF, and one of which some frames were sent already (IDLE sends frames
 * only here).
 */
BL_CORE int bl_pl2_apart(const struct bl_pl2_dest *d, __u32 state, __u64 now)
{
	if (state == BL_PL2_GRANTED)
		return !!(d->verdict & BL_GRT_OFF);
	return state == BL_PL2_IDLE && (d->sent > d->base || BL_READ_ONCE(d->apart_ns) > now);
}

/**
 * bl_pl2_step - a turn of the pacer for @d.
 * @sure: 1: the switch's beacons say that it makes reservations. A switch whose answers do not
 * arrive is then slow, and drops what comes without a promise.
 *
 * Returns enum bl_pl2_do and fills in @t. After COLLECT, put frames into the burst
 * (bl_pl2_burst_room()) and call again if there were any. After DONE, call bl_pl2_burst_done(), and
 * call again.
 */
BL_CORE __u32 bl_pl2_step(struct bl_pl2_dest *d, const struct bl_hold_cfg *cfg, int sure, __u64 now,
			  struct bl_pl2_turn *t)
{
	__u64 word = BL_READ_ONCE(d->word), due;
	__u32 state = BL_PL2_STATE(word);

	/*
	 * Under another policy, only the remainder of a burst that was begun before the change is
	 * sent.
	 */
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
	 * A burst that is late waits for its GRT: by the time a frame arrives, the switch may have
	 * taken back what it let through.
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
		/* fails if a GRT has arrived just now */
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
	/* The time first, then the number that makes bl_pl2_grant() read it. */
	d->asked_ns[(d->retries + 1) & (BL_PL2_TRIES - 1)] = now;
	BL_BARRIER();
	BL_WRITE_ONCE(d->retries, d->retries + 1);
	d->rsvs++;
	t->next_ns = now + cfg->retry_ns;
	return BL_DO_RSV;
}

/**
 * bl_pl2_rsv_flags - flags of the RSV that is to be sent. Unsolicited frames follow the first try
 * only. If that RSV was lost, they were dropped, and a repeat that announced them again would be
 * told that they passed. If it was not lost, the repeat gets its answer, whatever its own flags
 * are.
 */
BL_CORE __u8 bl_pl2_rsv_flags(const struct bl_pl2_dest *d)
{
	return d->unsolicited && !d->retries ? BL_RSV_EARLY : 0;
}

/** bl_pl2_frame_sent - the device has taken the frame that bl_pl2_step() returned. */
BL_CORE void bl_pl2_frame_sent(struct bl_pl2_dest *d)
{
	d->sent++;
}

/** bl_pl2_burst_over - whether all frames of the burst are sent, and none will be sent again. */
BL_CORE int bl_pl2_burst_over(const struct bl_pl2_dest *d)
{
	return BL_PL2_STATE(BL_READ_ONCE(d->word)) == BL_PL2_GRANTED && d->sent >= d->n &&
	       !(d->verdict & BL_GRT_REFUSED) && (!d->unsolicited || d->verdict & BL_GRT_PASSED);
}

/** bl_pl2_frame_added - add @entry, a frame of @len bytes, to the burst. */
BL_CORE void bl_pl2_frame_added(struct bl_pl2_dest *d, __u32 entry, __u32 len)
{
	d->entry[d->n & (BL_PL2_K_MAX - 1)] = entry;
	d->n++;
	d->bytes += bl_wire_bytes(len);
}

/** bl_pl2_burst_done - end the burst; the caller frees its slots. */
BL_CORE void bl_pl2_burst_done(struct bl_pl2_dest *d)
{
	d->n = d->sent = d->bytes = 0;
	d->base = d->missed = 0;
	d->unsolicited = 0;
	d->send_ns = 0;
	BL_WRITE_ONCE(d->word, BL_PL2_WORD(BL_PL2_SEQ(d->word), BL_PL2_IDLE));
}

/**
 * struct bl_pl2_grt - the contents of a GRT, as received.
 */
struct bl_pl2_grt {
	__u32 seq;         /* sequence number of the RSV that it answers */
	__u32 bytes;       /* demand of that RSV, byte times */
	__u32 in_wait_ns;  /* from the reservation to the slot at the input */
	__u32 out_wait_ns; /* from the reservation to the slot at the output */
	__u32 flags;       /* BL_GRT_* */
	__u32 try;         /* number of the try, from the cookie */
};

/**
 * bl_pl2_grant - a GRT for @d has arrived.
 * @pending: ns for which the NIC is still busy.
 * @apart: ns to send without RSVs if the GRT says OFF.
 *
 * Returns BL_R_GRT, BL_R_GRT_OFF, or BL_R_GRT_BAD; with the last, only @bad has changed of what the
 * pacer reads.
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
	/* A full barrier: a pacer that sees GRANTED also sees the contents of the GRT. */
	if (__sync_val_compare_and_swap(&d->word, word, BL_PL2_WORD(g->seq, BL_PL2_GRANTED)) !=
	    word) {
		/*
		 * The pacer has sent another RSV meanwhile. The fields written above do not matter
		 * while it waits for another GRT.
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
 * bl_pl2_announce - a copy of a GRT has arrived: a burst of g->bytes will come. Returns the
 * CLOCK_MONOTONIC by which it should be there, or 0 if this host does not watch for it.
 */
BL_CORE __u64 bl_pl2_announce(struct bl_pl2_coming *c, const struct bl_hold_cfg *cfg,
			      const struct bl_pl2_grt *g, __u64 now)
{
	/* the time of its first byte, its length at the rate of a link, and a margin */
	__u64 by = now + bl_max64(g->in_wait_ns, g->out_wait_ns) +
		   bl_times_ns(&cfg->link, g->bytes) + cfg->coming_ns,
	      was = BL_READ_ONCE(c->by_ns);

	if (!cfg->coming_ns || !g->bytes)
		return 0;
	/* The time before the bytes: the pacer must not find new bytes with an old time. */
	if (was < by)
		BL_WRITE_ONCE(c->by_ns, by);
	c->seq = g->seq;
	(void)__sync_fetch_and_add(&c->bytes, g->bytes);
	return bl_max64(was, by);
}

/** bl_pl2_arrived - a frame of @len bytes has arrived from the sender. */
BL_CORE void bl_pl2_arrived(struct bl_pl2_coming *c, __u32 len)
{
	__u32 bytes = bl_wire_bytes(len);
	int i;

	/*
	 * Races with the pacer, which takes everything at once: the second try succeeds. Frames of
	 * one sender on two CPUs may lose all tries: then that many bytes too many are released,
	 * which the switch limits to what is promised.
	 */
	for (i = 0; i < 3; i++) {
		__u32 was = BL_READ_ONCE(c->bytes);

		if (!was || __sync_val_compare_and_swap(&c->bytes, was,
							was > bytes ? was - bytes : 0) == was)
			return;
	}
}

/**
 * bl_pl2_missing - take the bytes that should have arrived by now, to be released; 0: none. Only
 * for the pacer.
 */
BL_CORE __u32 bl_pl2_missing(struct bl_pl2_coming *c, __u64 now)
{
	if (!BL_READ_ONCE(c->bytes) || BL_READ_ONCE(c->by_ns) > now)
		return 0;
	return __sync_lock_test_and_set(&c->bytes, 0);
}

/**
 * bl_pl2_coming_at - CLOCK_MONOTONIC at which to call bl_pl2_missing() again; BL_DUE_NEVER: nothing
 * is announced.
 */
BL_CORE __u64 bl_pl2_coming_at(const struct bl_pl2_coming *c)
{
	return BL_READ_ONCE(c->bytes) ? BL_READ_ONCE(c->by_ns) : BL_DUE_NEVER;
}

#endif
