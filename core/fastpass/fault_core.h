/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Losses by path (Fastpass section 5.2): a host's counts into REPORTs, and on the fault isolation
 *service's side, from what one host sent and the other one got, bounds of what was lost between
 * them. arbiter/faults/isolate.c finds the link.
 *
 * Counts are sums, so a REPORT that is lost, doubled or late does no harm: a later one says it all.
 *They are read at different times by different hosts, and frames are on their way meanwhile. So
 *nothing is estimated, there are two bounds. Of the frames sent by t: at least	sent(t) - came(u)
 *are lost, if u is so late that all that would arrive has arrived (t + settle); later frames in
 *came(u) hide losses, never invent them at most		sent(t) - came(v) are lost, if v is
 *before t What was lost between two such cuts lies between (least now - most then) and (most now -
 *least then). Only the former accuses, only the latter exonerates.
 *
 * Example, settle 2 ms: the sender says 1000 sent by 10.0 ms, the receiver 990 came by 9.0 ms and
 *1005 by 19.0 ms: of the first 1000 at least 0 (-5) and at most 10 are lost. Later 3000 sent
 *by 30.0 ms, and 2200 came by 39 ms: at least 800 are lost, and of the 2000 in between at least 800
 *- 10 = 790.
 *
 * A window begins at a cut of the generation before, so it spans one to two generations. There are
 *two: a short one sees a dead path soon, a long one a path that loses a little. The gap between
 *cuts is traffic that the bounds cannot tell from losses, so a generation is GAPS gaps divided by
 *the threshold of its window.
 */
#ifndef BARLINE_FAULT_CORE_H
#define BARLINE_FAULT_CORE_H

#include "maps/fcp_abi.h"
#include "maps/fastpass_abi.h"
#include "core/fastpass/fcp_core.h"

#define BL_FAULT_SCALES        2
#define BL_FAULT_SHORT_PERCENT 50
#define BL_FAULT_LOST_MIN      10 /* frames: fewer are no accusation whatever the percentage */
/* in a hundredth: frames without which nothing is exonerated: 4 expected losses */
#define BL_FAULT_GOOD_MIN 400

enum bl_fault_verdict { BL_FAULT_UNKNOWN, BL_FAULT_GOOD, BL_FAULT_BAD };

/* ---- a host's counts ---- */

/**
 * struct bl_report - one round of REPORTs. @v: [peer][column][0 sent, 1 came], read at once;
 * @columns: per peer; the last one is BL_FCP_PATH_ANY. @next: peer that the next packet begins
 * with.
 */
struct bl_report {
	const __u64 *v;
	__u32 peers;
	__u32 columns;
	__u32 next;
	__u32 table;
	__u32 index;
	__u32 took_ns;
	__u64 boot;
	__u64 at;
};

/**
 * bl_report_fill - the next packet of the round but for its header, into @buf of BL_FCP_PACKET_MAX
 * bytes. Returns its length; 0: the round is over. A peer's columns are in one packet.
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
 * struct bl_fault_seq - of one sender. @boot: 0: never heard. @max: highest number; @seen: bit k:
 * @max - k came.
 */
struct bl_fault_seq {
	__u64 boot;
	__u64 seen;
	__u32 max;
	__u32 reserved;
};

/**
 * bl_fault_seq_take - a packet with @boot and @seq that verified. OK; *@fresh: 1: it counts anew.
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
 * struct bl_fault_cut - at a cut: @sent by then, and of these at least @least and at most @most
 * lost (signed; a frame that came twice is less than none lost).
 */
struct bl_fault_cut {
	__u64 sent;
	__s64 least;
	__s64 most;
};

/**
 * struct bl_fault_col - one path of a pair. @sent, @came: as reported last. @cut_sent, @cut_came:
 * of the cut that waits for the frames under way. @base, @next: cuts at which the present window
 * and the next one begin, by scale. @win_sent, @win_least, @win_most: frames sent in the window,
 * and bounds of how many were lost. @lost: at least so many since the counts began to be watched.
 * @sticky: 1: was found bad when a link was taken out of use, and no traffic says otherwise since.
 */
struct bl_fault_col {
	__u64 sent;
	__u64 came;
	__u64 cut_sent;
	__u64 cut_came;
	struct bl_fault_cut base[BL_FAULT_SCALES];
	struct bl_fault_cut next[BL_FAULT_SCALES];
	__u64 win_sent[BL_FAULT_SCALES];
	__s64 win_least[BL_FAULT_SCALES];
	__s64 win_most[BL_FAULT_SCALES];
	__u32 sticky;
	__u32 reserved;
};

/**
 * struct bl_fault_pair - frames from one host to another.
 * @sent_ns, @came_ns: bus times that the counts are of; 0: none yet. @cut_ns: time of the cut that
 * waits; 0: none does. @cuts: how many there were since the counts began. @gen: generation of the
 * windows, by scale.
 * @cols, @n: paths, and BL_FCP_PATH_ANY last.
 */
struct bl_fault_pair {
	__u64 sent_ns;
	__u64 came_ns;
	__u64 cut_ns;
	__u64 cuts;
	__u64 gen[BL_FAULT_SCALES];
	struct bl_fault_col *cols;
	__u32 n;
	__u32 reserved;
};

/**
 * struct bl_fault_rules - @settle_ns, @frames, @percent: of the file. @gen_ns: length of a
 * generation, by scale: bl_fault_rules_set().
 */
struct bl_fault_rules {
	__u64 settle_ns;
	__u32 frames;
	__u32 percent[BL_FAULT_SCALES];
	__u64 gen_ns[BL_FAULT_SCALES];
};

/**
 * bl_fault_rules_set - @report_ns: between two reports of a host. A gap is two of these and the
 * time to settle; in a window of 2.5 gaps / threshold it hides less than half of what accuses.
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
 * bl_fault_forget - one of the two hosts counts anew, or the service wants to look afresh.
 * @counts: also what was reported.
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

/** bl_fault_sent - the sender's counts of @at are in @cols. A cut begins, unless one waits. */
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
 * bl_fault_came - the receiver's counts of @at are in @cols. Returns 1 if windows have moved: @now
 * (of the service, any clock) says which generation it is.
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
 * bl_fault_judge - column @k in the window of @scale. Frames that certainly came without a path
 * although none was sent like that are taken for this path's: a switch on the way chose another one
 * (path_lost), or took the path out of them. Windows that did not move for a generation (a host is
 * silent) say nothing.
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
