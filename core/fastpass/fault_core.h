/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Losses by path (Fastpass section 5.2): a host turns its counts into REPORTs, and the fault
 * isolation service computes, from what one host has sent and the other has received, bounds of
 * what was lost between them. arbiter/faults/isolate.c finds the link.
 *
 * Counts are sums, so a REPORT that is lost, doubled or late does no harm: a later one contains
 * everything. Hosts read their counts at different times, and frames are on their way meanwhile. So
 * nothing is estimated; there are two bounds. Of the frames sent by t,
 *
 *   at least sent(t) - came(u) are lost, if u is so late that all frames that arrive have
 *            arrived (t + settle); later frames in came(u) hide losses and never invent them
 *   at most  sent(t) - came(v) are lost, if v is before t
 *
 * What was lost between two such cuts lies between (least now - most then) and (most now - least
 * then). Only the former accuses, and only the latter exonerates.
 *
 * Example, settle 2 ms: the sender reports 1000 sent by 10.0 ms; the receiver reports 990 received
 * by 9.0 ms, and 1005 by 19.0 ms. Of the first 1000, at least 0 (-5) and at most 10 are lost. Later
 * it is 3000 sent by 30.0 ms, and 2200 received by 39 ms: at least 800 are lost, and of the 2000 in
 * between at least 800 - 10 = 790.
 *
 * A window begins at a cut of the previous generation, so it spans one to two generations. There
 * are two windows: a short one detects a dead path soon, and a long one a path that loses a little.
 * The traffic in the gap between two cuts cannot be told from losses, so a generation is GAPS gaps
 * divided by the threshold of its window.
 *
 * This file does not receive packets and reads no clock.
 */
#ifndef BARLINE_FAULT_CORE_H
#define BARLINE_FAULT_CORE_H

#include "maps/fcp_abi.h"
#include "maps/fastpass_abi.h"
#include "core/fastpass/fcp_core.h"

#define BL_FAULT_SCALES        2
#define BL_FAULT_SHORT_PERCENT 50
/* frames: fewer lost frames accuse nothing, whatever their percentage */
#define BL_FAULT_LOST_MIN 10
/* frames x percent: with less, nothing is exonerated; 4 expected losses */
#define BL_FAULT_GOOD_MIN 400

enum bl_fault_verdict { BL_FAULT_UNKNOWN, BL_FAULT_GOOD, BL_FAULT_BAD };

/* ---- a host's counts ---- */

/**
 * struct bl_report - one round of REPORTs of a host. Used by one thread.
 */
struct bl_report {
	const __u64 *v; /* counts, [peer][column][0 sent, 1 received], all read at once */
	__u32 peers;    /* number of peers */
	__u32 columns;  /* columns per peer; the last one is BL_FCP_PATH_ANY */
	__u32 next;     /* peer that the next packet begins with */
	__u32 table;    /* hash of the list of endpoints */
	__u32 index;    /* of this host in the list */
	__u32 took_ns;  /* ns that reading the counts took */
	__u64 boot;     /* bus time at which the host began to count */
	__u64 at;       /* bus time at which the counts were read */
};

/**
 * bl_report_fill - write the next packet of the round, except its header, into @buf of
 * BL_FCP_PACKET_MAX bytes. Returns its length, or 0 if the round is over. The columns of a peer are
 * in one packet.
 */
BL_FN __u32 bl_report_fill(struct bl_report *r, void *buf)
{
	struct bl_fcp_report *b = (void *)((__u8 *)buf + sizeof(struct bl_fcp_hdr));
	struct bl_fcp_count *c = (void *)(b + 1);
	__u32 n = 0, first = r->next, k;

	if (r->next >= r->peers)
		return 0;
	for (; r->next < r->peers && n + r->columns <= BL_FCP_COUNTS_MAX; r->next++)
		for (k = 0; k < r->columns; k++) {
			const __u64 *v = &r->v[2 * ((__u64)r->next * r->columns + k)];

			if (!v[0] && !v[1])
				continue;
			c[n].peer = BL_BE16(r->next);
			c[n].path = k + 1 == r->columns ? BL_FCP_PATH_ANY : (__u8)k;
			c[n].reserved = 0;
			bl_put48(c[n].sent, v[0]);
			bl_put48(c[n].came, v[1]);
			n++;
		}
	b->boot = BL_BE64(r->boot);
	b->at = BL_BE64(r->at);
	b->table = BL_BE32(r->table);
	b->index = BL_BE16(r->index);
	b->first = BL_BE16(first);
	b->last = BL_BE16(r->next - 1);
	b->count = BL_BE16(n);
	b->took = BL_BE32(r->took_ns);
	return (__u32)(sizeof(struct bl_fcp_hdr) + sizeof(*b) + n * sizeof(*c));
}

/* ---- sequence numbers of reports ---- */

/**
 * struct bl_fault_seq - sequence numbers of one sender of REPORTs. Used by one thread.
 */
struct bl_fault_seq {
	__u64 boot; /* of the sender; 0: never heard */
	__u64 seen; /* bit k: @max - k was received */
	__u32 max;  /* highest number received */
	__u32 reserved;
};

/**
 * bl_fault_seq_take - accept a packet with @boot and @seq whose checksum is valid. Returns
 * BL_FCP_R_OK, BL_FCP_R_OLD or BL_FCP_R_DUPLICATE; *@fresh: 1: the sender counts anew.
 */
BL_FN enum bl_fcp_reason bl_fault_seq_take(struct bl_fault_seq *s, __u64 boot, __u32 seq,
					   int *fresh)
{
	__s32 ahead = (__s32)(seq - s->max);

	*fresh = boot > s->boot;
	if (!boot || boot < s->boot)
		return BL_FCP_R_OLD;
	if (*fresh) {
		*s = (struct bl_fault_seq){ .boot = boot, .seen = 1, .max = seq };
		return BL_FCP_R_OK;
	}
	if (ahead > 0) {
		s->seen = ahead < 64 ? s->seen << ahead | 1 : 1;
		s->max = seq;
		return BL_FCP_R_OK;
	}
	if (ahead <= -64)
		return BL_FCP_R_OLD;
	if (s->seen >> -ahead & 1)
		return BL_FCP_R_DUPLICATE;
	s->seen |= 1ULL << -ahead;
	return BL_FCP_R_OK;
}

/* ---- one pair of hosts ---- */

/**
 * struct bl_fault_cut - the state at one cut.
 */
struct bl_fault_cut {
	__u64 sent; /* frames sent by then */
	/* of these, at least this many are lost; negative if frames arrived twice */
	__s64 least;
	__s64 most; /* of these, at most this many are lost; signed like @least */
};

/**
 * struct bl_fault_col - one path of a pair of hosts. Protected like struct bl_fault_pair.
 */
struct bl_fault_col {
	__u64 sent;     /* as reported last, frames */
	__u64 came;     /* as reported last, frames */
	__u64 cut_sent; /* @sent at the cut that waits for the frames under way */
	__u64 cut_came; /* @came at that cut */
	struct bl_fault_cut base[BL_FAULT_SCALES]; /* cut where the window begins, by scale */
	struct bl_fault_cut next[BL_FAULT_SCALES]; /* cut where the next one begins, by scale */
	__u64 win_sent[BL_FAULT_SCALES];           /* frames sent in the window, by scale */
	__s64 win_least[BL_FAULT_SCALES];          /* at least this many of them are lost */
	__s64 win_most[BL_FAULT_SCALES];           /* at most this many of them are lost */
	/* 1: was found bad when a link was taken out of use, and no traffic has shown otherwise */
	__u32 sticky;
	__u32 reserved;
};

/**
 * struct bl_fault_pair - frames from one host to another. Used by the service's one thread.
 */
struct bl_fault_pair {
	__u64 sent_ns;              /* bus time of the sender's counts; 0: none yet */
	__u64 came_ns;              /* bus time of the receiver's counts; 0: none yet */
	__u64 cut_ns;               /* bus time of the cut that waits; 0: no cut waits */
	__u64 cuts;                 /* cuts since the counts began */
	__u64 gen[BL_FAULT_SCALES]; /* generation of the windows, by scale */
	struct bl_fault_col *cols;
	__u32 n; /* number of @cols: paths, and BL_FCP_PATH_ANY last */
	__u32 reserved;
};

/**
 * struct bl_fault_rules - the thresholds of the service. Set once by bl_fault_rules_set().
 */
struct bl_fault_rules {
	/* time after which frames under way have arrived; from the configuration */
	__u64 settle_ns;
	/* frames in a window without which there is no verdict; from the configuration */
	__u32 frames;
	__u32 percent[BL_FAULT_SCALES]; /* threshold of a window, by scale */
	__u64 gen_ns[BL_FAULT_SCALES];  /* length of a generation, by scale */
};

/**
 * bl_fault_rules_set - fill in @r. @report_ns: interval of a host's REPORTs. A gap is two of these
 * and the time to settle; in a window of 2.5 gaps / threshold it hides less than half of what
 * accuses.
 */
BL_FN void bl_fault_rules_set(struct bl_fault_rules *r, __u64 report_ns, __u64 settle_ns,
			      __u32 frames, __u32 percent)
{
	__u32 s;

	r->settle_ns = settle_ns;
	r->frames = frames;
	r->percent[0] = BL_FAULT_SHORT_PERCENT;
	r->percent[1] = percent;
	for (s = 0; s < BL_FAULT_SCALES; s++)
		r->gen_ns[s] = (2 * report_ns + settle_ns) * 125 / r->percent[s];
}

/**
 * bl_fault_forget - start the windows of a pair anew, since one of the two hosts counts anew or the
 * service begins to observe afresh. @counts: 1: forget what was reported as well.
 */
BL_FN void bl_fault_forget(struct bl_fault_pair *p, int counts)
{
	__u32 k, s;

	p->cut_ns = p->cuts = 0;
	if (counts)
		p->sent_ns = p->came_ns = 0;
	for (k = 0; k < p->n; k++) {
		struct bl_fault_col *c = &p->cols[k];

		if (counts)
			c->sent = c->came = c->sticky = 0;
		for (s = 0; s < BL_FAULT_SCALES; s++)
			c->win_sent[s] = 0, c->win_least[s] = c->win_most[s] = 0;
	}
}

BL_CORE __s64 bl_fault_minus48(__u64 a, __u64 b)
{
	return (__s64)((a - b) << 16) >> 16;
}

/**
 * bl_fault_sent - the sender's counts of bus time @at were stored in @p->cols. A cut begins unless
 * one waits already.
 */
BL_FN void bl_fault_sent(struct bl_fault_pair *p, __u64 at)
{
	__u32 k;

	p->sent_ns = at;
	if (p->cut_ns || !p->came_ns || p->came_ns > at)
		return;
	for (k = 0; k < p->n; k++) {
		p->cols[k].cut_sent = p->cols[k].sent;
		p->cols[k].cut_came = p->cols[k].came;
	}
	p->cut_ns = at;
}

static inline void bl_fault_window(struct bl_fault_col *c, __u32 s, const struct bl_fault_cut *now,
				   int first, __u64 turned)
{
	if (first || turned > 1)
		c->base[s] = c->next[s] = *now;
	else if (turned) {
		c->base[s] = c->next[s];
		c->next[s] = *now;
	}
	c->win_sent[s] = now->sent - c->base[s].sent;
	c->win_least[s] = now->least - c->base[s].most;
	c->win_most[s] = now->most - c->base[s].least;
}

/**
 * bl_fault_came - the receiver's counts of bus time @at were stored in @p->cols. @now, of any clock
 * of the service, says which generation it is. Returns 1 if windows have moved.
 */
BL_FN int bl_fault_came(struct bl_fault_pair *p, __u64 at, const struct bl_fault_rules *r,
			__u64 now)
{
	__u32 k, s;

	p->came_ns = at;
	if (!p->cut_ns || at < p->cut_ns + r->settle_ns)
		return 0;
	for (k = 0; k < p->n; k++) {
		struct bl_fault_col *c = &p->cols[k];
		struct bl_fault_cut cut = { .sent = c->cut_sent,
					    .least = bl_fault_minus48(c->cut_sent, c->came),
					    .most = bl_fault_minus48(c->cut_sent, c->cut_came) };

		for (s = 0; s < BL_FAULT_SCALES; s++)
			bl_fault_window(c, s, &cut, !p->cuts, now / r->gen_ns[s] - p->gen[s]);
	}
	for (s = 0; s < BL_FAULT_SCALES; s++)
		p->gen[s] = now / r->gen_ns[s];
	p->cut_ns = 0;
	p->cuts++;
	return 1;
}

/**
 * bl_fault_judge - the verdict on column @k in the window of @scale.
 *
 * Frames that certainly arrived without a path although none was sent without one are attributed to
 * this path: a switch on the way chose another one (path_lost), or removed the path. Windows that
 * have not moved for a generation, since a host is silent, give no verdict.
 */
BL_FN enum bl_fault_verdict bl_fault_judge(const struct bl_fault_pair *p, __u32 k, __u32 scale,
					   const struct bl_fault_rules *r, __u64 now)
{
	const struct bl_fault_col *c = &p->cols[k], *any = &p->cols[p->n - 1];
	__s64 least = c->win_least[scale];
	__u32 percent = r->percent[scale];
	__u64 sent = c->win_sent[scale];

	if (c->sticky)
		return BL_FAULT_BAD;
	if (now / r->gen_ns[scale] - p->gen[scale] > 1)
		return BL_FAULT_UNKNOWN;
	if (k + 1 < p->n && any->win_most[scale] < 0)
		least += any->win_most[scale];
	if (sent >= r->frames && least >= BL_FAULT_LOST_MIN && (__u64)least * 100 >= sent * percent)
		return BL_FAULT_BAD;
	if (sent >= r->frames && sent * percent >= BL_FAULT_GOOD_MIN &&
	    c->win_most[scale] * 100 < (__s64)(sent * percent))
		return BL_FAULT_GOOD;
	return BL_FAULT_UNKNOWN;
}

#endif
