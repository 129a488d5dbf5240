/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP's own repair of losses (TOP section 4, "Packet Loss"): which numbered data frames have
 * arrived, when a LOSS says which have not, and which one a sender sends again. For flows whose
 * application asked for it.
 *
 * Receiver. Data 1 to 20 was sent, and 5 and 18 were lost. When 13 arrives, eight frames after 5
 * have arrived, so a LOSS is sent: "up to 5, missing 5". It says that 1 to 4 have arrived, and
 * nothing about 6 to 13. A frame with fewer than eight behind it is given one RTT, since frames
 * overtake each other. So 18 is reported one RTT after 19 has arrived, and 5 again with it if it is
 * still missing. The next reports follow after two RTTs, then four, and so on; a frame that is
 * missing for dead_us is given up. Nothing follows a last frame that is lost: the sender's STOP
 * says how far it has sent. A frame that has arrived before is dropped, so each is delivered once.
 *
 * Sender. It keeps the last 64 frames, frame d at index d & 63. A LOSS removes the frames that have
 * arrived and marks those that are missing; the next token is for the oldest marked frame. A frame
 * that was sent again is marked again only after an RTT, which the LOSS itself contains. Frame 65
 * is not sent before frame 1 has been removed. Meanwhile frame 1 is sent once per RTT, so that the
 * receiver, which drops it, acknowledges it again.
 *
 * This file reads no clock and no map, and takes no lock: the caller holds the lock of the flow.
 * struct bl_top_kept has rules of its own.
 */
#ifndef BARLINE_TOP_LOSS_CORE_H
#define BARLINE_TOP_LOSS_CORE_H

#include "maps/reasons_abi.h"
#include "maps/top_host_abi.h"
#include "core/wire_core.h"

/* ---- the receiver ---- */

/** bl_came_begin - initialise @l for a flow of which nothing up to @data is waited for. */
BL_CORE void bl_came_begin(struct bl_top_came *l, __u32 data)
{
	l->got = ~0ULL;
	l->report_ns = l->again_ns = BL_DUE_NEVER;
	l->since_ns = 0;
	l->data = l->mark = l->told = data;
	l->seq = l->tries = 0;
	l->lost = l->repeated = l->losses = 0;
}

/* A mask of the @n lowest bits. */
BL_CORE __u64 bl_came_low(__u32 n)
{
	return n < BL_TOP_KEEP ? (1ULL << (n & (BL_TOP_KEEP - 1))) - 1 : ~0ULL;
}

/** bl_came_missing - number of missing frames. */
BL_CORE __u32 bl_came_missing(const struct bl_top_came *l)
{
	return (__u32)__builtin_popcountll(~l->got);
}

/*
 * Moves the window up to @data, which is later. Frames that leave the window without having arrived
 * are given up; returns their number.
 */
BL_CORE __u32 bl_came_slide(struct bl_top_came *l, __u32 data)
{
	__u32 up = data - l->data, gone;

	if (up < BL_TOP_KEEP) {
		gone = (__u32)__builtin_popcountll(~l->got & ~bl_came_low(BL_TOP_KEEP - up));
		l->got <<= up & (BL_TOP_KEEP - 1);
	} else {
		/* there is no number 0 */
		gone = bl_came_missing(l) + up - BL_TOP_KEEP -
		       (data < l->data && data >= BL_TOP_KEEP);
		l->got = 0;
	}
	l->data = data;
	if (data < BL_TOP_KEEP)
		l->got |= 1ULL << (data & (BL_TOP_KEEP - 1));
	l->lost += gone;
	return gone;
}

/*
 * Decides when a LOSS is to be sent, after a change. @ack: 1: the sender waits for the
 * acknowledgement that everything has arrived. Missing frames have a time of their own.
 */
BL_CORE void bl_came_judge(struct bl_top_came *l, __u64 rtt_ns, int ack, __u64 now)
{
	__u64 missing = ~l->got;
	__u32 news = l->data - l->told;

	if (l->report_ns == l->again_ns)
		/* computed again below: a missing frame may only have been overtaken */
		l->report_ns = BL_DUE_NEVER;
	if (!missing) {
		l->again_ns = BL_DUE_NEVER;
	} else if (l->again_ns == BL_DUE_NEVER) {
		l->again_ns = now + rtt_ns;
		l->mark = l->data;
		l->since_ns = now;
		l->tries = 0;
	}
	if ((missing & bl_came_low(news) & ~bl_came_low(BL_TOP_LATER)) ||
	    news >= BL_TOP_LATER + BL_TOP_ACK_EACH || (ack && !missing))
		l->report_ns = bl_min64(l->report_ns, now);
	l->report_ns = bl_min64(l->report_ns, l->again_ns);
}

/**
 * bl_came_number - frame @data has arrived. Returns 0: it is new; 1: it arrived before or was given
 * up; -1: it is too far ahead to be valid. *@lost: number of frames given up by this.
 */
BL_CORE int bl_came_number(struct bl_top_came *l, __u32 data, __u64 rtt_ns, __u64 now, __u32 *lost)
{
	__u32 up = data - l->data, down = l->data - data;
	int ack = 0;

	if (bl_psn_before(l->data, data)) {
		if (up > BL_TOP_AHEAD)
			return -1;
		*lost = bl_came_slide(l, data);
		l->got |= 1;
	} else {
		if (down >= BL_TOP_KEEP || l->got >> (down & (BL_TOP_KEEP - 1)) & 1) {
			l->repeated++;
			/* its sender does not know that it has arrived */
			bl_came_judge(l, rtt_ns, 1, now);
			return 1;
		}
		l->got |= 1ULL << (down & (BL_TOP_KEEP - 1));
		ack = !bl_psn_before(l->told, data); /* it was asked for */
		/* frames get through again: the other missing ones get new time */
		if (l->report_ns == l->again_ns)
			l->report_ns = BL_DUE_NEVER;
		l->since_ns = now;
		l->tries = 0;
		l->again_ns = bl_min64(l->again_ns, now + rtt_ns);
	}
	bl_came_judge(l, rtt_ns, ack, now);
	return 0;
}

/**
 * bl_came_upto - a signal says that the sender has sent data up to @data; 0: it does not say. @ack:
 * see bl_came_judge(). Returns the number of frames given up by this.
 */
BL_CORE __u32 bl_came_upto(struct bl_top_came *l, __u32 data, __u64 rtt_ns, int ack, __u64 now)
{
	__u32 lost = 0;

	if (!data)
		return 0;
	if (bl_psn_before(l->data, data) && data - l->data <= BL_TOP_AHEAD)
		lost = bl_came_slide(l, data);
	bl_came_judge(l, rtt_ns, ack, now);
	return lost;
}

/**
 * struct bl_top_said - the contents of a LOSS to be sent. Filled in by bl_came_report().
 */
struct bl_top_said {
	__u64 missing; /* as in struct bl_top_loss */
	__u32 data;    /* as in struct bl_top_loss */
	__u32 seq;     /* number of the LOSS */
	__u32 gone;    /* frames that it gives up */
	__u32 zero;
};

/**
 * bl_came_report - fill in @s with the LOSS that is due at l->report_ns. @dead_ns: a frame that is
 * missing for this long is given up.
 */
BL_CORE void bl_came_report(struct bl_top_came *l, __u64 rtt_ns, __u64 dead_ns, __u64 now,
			    struct bl_top_said *s)
{
	__u32 end = l->data - BL_TOP_LATER, timed = now >= l->again_ns, after;
	__u64 missing = ~l->got;

	s->gone = s->zero = 0;
	if (missing && now >= l->since_ns + dead_ns) {
		s->gone = bl_came_missing(l);
		l->lost += s->gone;
		l->got = ~0ULL;
		l->again_ns = BL_DUE_NEVER;
		missing = 0;
	}
	if (!missing)
		end = l->data;
	else if (timed && bl_psn_before(end, l->mark))
		end = l->mark;
	if (bl_psn_before(end, l->told))
		end = l->told;
	after = l->data - end;
	s->data = end;
	s->missing = after < BL_TOP_KEEP ? missing >> (after & (BL_TOP_KEEP - 1)) : 0;
	s->seq = ++l->seq;
	l->told = end;
	l->losses += s->missing != 0;
	if (missing) {
		l->again_ns = bl_min64(now + (rtt_ns << (l->tries & 7)), l->since_ns + dead_ns);
		l->mark = l->data;
		l->tries += timed && l->tries < BL_TOP_LOSS_BACKOFF;
	}
	l->report_ns = l->again_ns;
}

/* ---- the sender ---- */

/**
 * bl_top_loss_validate - check LOSS @seq, with tag @tag, about data up to @data of flow @t. Returns
 * BL_R_NONE: carry it out; BL_R_LOSS: a later one arrived before it; else the reason to refuse it.
 */
BL_CORE enum bl_reason bl_top_loss_validate(struct bl_top_tx *t, __u32 tag, __u32 seq, __u32 data,
					    __u64 missing, __u32 rtt_us, __u64 now)
{
	if (t->state == BL_TOP_FREE || !t->keep || t->tag != tag ||
	    bl_psn_before(BL_READ_ONCE(t->data), data))
		return BL_R_LOSS_BAD;
	if (!bl_psn_before(t->loss, seq))
		return BL_R_LOSS;
	t->loss = seq;
	t->rtt_us = rtt_us;
	if (missing)
		t->loss_ns = now;
	else if (bl_psn_before(t->acked, data))
		t->acked = data;
	return BL_R_NONE;
}

/**
 * bl_top_tail_ns - when a flow that holds nothing sends a STOP with its last number, since it is
 * not known that all its data has arrived; BL_DUE_NEVER: not needed.
 */
BL_CORE __u64 bl_top_tail_ns(const struct bl_top_tx *t, const struct bl_top_cfg *c)
{
	__u32 data = BL_READ_ONCE(t->data);

	if (!t->keep || t->acked == data)
		return BL_DUE_NEVER;
	if (t->told != data)
		return t->state == BL_TOP_IDLE ? 0 : t->token_ns + c->sync_ns;
	return t->sync_ns + (c->sync_ns << (t->tries > 2 ? 2 : t->tries));
}

/* ---- frames that are kept ---- */

#define BL_KEPT_PLACE(d)  ((d) & (BL_TOP_KEEP - 1))
#define BL_KEPT_NUMBER(w) ((__u32)((w) >> 32))
#define BL_KEPT_ENTRY(w)  ((__u32)(w))

BL_CORE __u64 bl_kept_word(__u32 data, __u32 entry)
{
	return (__u64)data << 32 | entry;
}

/** bl_kept_at - a value of bl_top_kept.at: sent at @now, and not for the first time if @again. */
BL_CORE __u32 bl_kept_at(__u64 now, int again)
{
	return ((__u32)(now >> 10) & ~1U) | !!again;
}

/** bl_kept_old - whether a frame has been under way for @rtt_us. */
BL_CORE int bl_kept_old(__u32 at, __u64 rtt_us, __u64 now)
{
	return ((__u32)(now >> 10) & ~1U) - (at & ~1U) >= rtt_us * 1000 >> 10;
}

/**
 * bl_kept_may - whether a missing frame may be sent again: the first time at once, then not before
 * @rtt_us have passed.
 */
BL_CORE int bl_kept_may(__u32 at, __u64 rtt_us, __u64 now)
{
	return !(at & 1) || bl_kept_old(at, rtt_us, now);
}

/**
 * bl_kept_oldest - of the places @bits, not 0, the one whose frame has the lowest number. @data:
 * number of the last frame sent.
 */
BL_CORE __u32 bl_kept_oldest(__u64 bits, __u32 data)
{
	__u32 from = BL_KEPT_PLACE(data + 1);

	return BL_KEPT_PLACE(from + bl_lowest(bits >> from | bits << (-from & (BL_TOP_KEEP - 1))));
}

#endif
