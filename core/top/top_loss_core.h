/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TOP's own repair of losses (TOP section 4, "Packet Loss"): which numbered data frames came, when
 * a LOSS says which did not, and which one a sender sends again. For flows whose application asked
 * for it.
 *
 * Receiver. Data 1 to 20 were sent, 5 and 18 got lost. When 13 comes, eight later ones have come
 * than 5, so a LOSS goes out: "up to 5, missing 5": 1 to 4 came, and nothing is said of 6 to 13.
 * What has fewer than eight behind it is given one RTT, since frames overtake each other; so 18 is
 * reported one RTT after 19 came, and 5, if it is still missing, again with it. After that twice an
 * RTT passes, then four times that; what is missing for dead_us is given up. A last frame that gets
 * lost has nothing behind it: the sender's STOP says how far it came. Frames that came before are
 * dropped: each is delivered once.
 *
 * Sender. It keeps the last 64 frames, number d in place d & 63. A LOSS takes out what came, and
 * marks what is missing; the next token is for the oldest one that is marked. Once sent again, a
 * frame is marked again only after an RTT, of which the LOSS itself says how long it is. Number 65
 * is not sent before 1 has been taken out: meanwhile 1 goes once more each RTT, so that the
 * receiver, who drops it, says again that it came.
 *
 * No clock, no map, no lock: the caller holds the flow's; for struct bl_top_kept see there.
 */
#ifndef BARLINE_TOP_LOSS_CORE_H
#define BARLINE_TOP_LOSS_CORE_H

#include "maps/reasons_abi.h"
#include "maps/top_host_abi.h"
#include "core/wire_core.h"

/* ---- the receiver ---- */

/** bl_came_begin - a flow of which nothing up to @data is waited for. */
BL_CORE void bl_came_begin(struct bl_top_came *l, __u32 data)
{
	l->got = ~0ULL;
	l->report_ns = l->again_ns = BL_DUE_NEVER;
	l->since_ns = 0;
	l->data = l->mark = l->told = data;
	l->seq = l->tries = 0;
	l->lost = l->repeated = l->losses = 0;
}

/* The @n lowest bits. */
BL_CORE __u64 bl_came_low(__u32 n)
{
	return n < BL_TOP_KEEP ? (1ULL << (n & (BL_TOP_KEEP - 1))) - 1 : ~0ULL;
}

/** bl_came_missing - how many are. */
BL_CORE __u32 bl_came_missing(const struct bl_top_came *l)
{
	return (__u32)__builtin_popcountll(~l->got);
}

/*
 * The window moves up to @data, which is later. What leaves it without having come is given up;
 * returns how many.
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
 * Something changed: when is a LOSS to be sent? @ack: the sender waits to hear that all came. What
 * is missing has its own time.
 */
BL_CORE void bl_came_judge(struct bl_top_came *l, __u64 rtt_ns, int ack, __u64 now)
{
	__u64 missing = ~l->got;
	__u32 news = l->data - l->told;

	if (l->report_ns == l->again_ns)
		l->report_ns = BL_DUE_NEVER; /* anew, below: what was missing may only have been
						overtaken */
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
 * bl_came_number - frame @data came. Returns 0: it is new; 1: it came before, or was given up; -1:
 * so far ahead it cannot be. *@lost: how many were given up by that.
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
			bl_came_judge(l, rtt_ns, 1, now); /* its sender does not know it yet */
			return 1;
		}
		l->got |= 1ULL << (down & (BL_TOP_KEEP - 1));
		ack = !bl_psn_before(l->told, data); /* it was asked for */
		/* it gets through: what else is missing has its time anew */
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
 * bl_came_upto - a signal of the sender says that it has sent data up to @data; 0: it says
 * nothing. @ack: see bl_came_judge(). Returns how many were given up by that.
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
 * struct bl_top_said - a LOSS. @data, @missing: as in struct bl_top_loss. @seq: its number. @gone:
 * numbers that are given up by it.
 */
struct bl_top_said {
	__u64 missing;
	__u32 data;
	__u32 seq;
	__u32 gone;
	__u32 zero;
};

/**
 * bl_came_report - the time of @l->report_ns has come: what the LOSS says. @dead_ns: what is
 * missing for so long is given up.
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
 * bl_top_loss_validate - LOSS @seq came for flow @t, with tag @tag, about data up to @data. Returns
 * BL_R_NONE: it is to be carried out; BL_R_LOSS: a later one was before it; else why not.
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
 * bl_top_tail_ns - when a flow that holds nothing says how far it came, since nobody has said that
 * all of it arrived.
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

/** bl_kept_at - for struct bl_top_kept.at: sent @now, and not for the first time if @again. */
BL_CORE __u32 bl_kept_at(__u64 now, int again)
{
	return ((__u32)(now >> 10) & ~1U) | !!again;
}

/** bl_kept_old - has it been under way for @rtt_us? */
BL_CORE int bl_kept_old(__u32 at, __u64 rtt_us, __u64 now)
{
	return ((__u32)(now >> 10) & ~1U) - (at & ~1U) >= rtt_us * 1000 >> 10;
}

/**
 * bl_kept_may - may a frame that is missing be sent again? The first time at once, then not before
 * @rtt_us have passed.
 */
BL_CORE int bl_kept_may(__u32 at, __u64 rtt_us, __u64 now)
{
	return !(at & 1) || bl_kept_old(at, rtt_us, now);
}

/**
 * bl_kept_oldest - of the places @bits, not 0, the one whose frame comes first; @data: number of
 * the last frame.
 */
BL_CORE __u32 bl_kept_oldest(__u64 bits, __u32 data)
{
	__u32 from = BL_KEPT_PLACE(data + 1);

	return BL_KEPT_PLACE(from + bl_lowest(bits >> from | bits << (-from & (BL_TOP_KEEP - 1))));
}

#endif
