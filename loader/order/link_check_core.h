/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a node makes of the clocks behind its links, sample by sample (core/order/skew_core.h judges
 * one sample): who is named and until when, and how much is added to the node's own bound.
 *
 * - A neighbour is named with the first sample that proves it off, and until BL_CHECK_GOOD samples,
 *   of both directions, say otherwise. One that falls silent stays named: a node whose clock is
 * void sends no beacons.
 * - The node doubts itself after BL_CHECK_WRONG samples in a row, so that its neighbours have named
 *   it before its wider bound reaches them.
 * - Bounds are the greatest of the last BL_CHECK_SAMPLES, since delays are those of the last
 *   seconds: a clock that was within its bound then is not accused because its bound is smaller
 *   now. What neighbours have proven is not in them: a node that has widened its bound over its
 *   error is still wrong, and it goes on to widen it.
 * - A clock that drifts is further off when the next sample is taken. So its error is taken to be
 *   what is proven now and as much more as the clock moved in the last BL_CHECK_SAMPLES.
 * - While nobody says how this node's beacons arrive (it sends none while its clock is void), what
 *   was proven stays, until the delays of incoming beacons have changed by more than half of it:
 *   then a clock has been set, and the beacons that follow will tell.
 *
 * Example: a host whose bound is 50 us sees its switch at [930, 950] us. After a second it adds 950
 * us to its bound: 1000 us, which is what its error may be.
 *
 * No map and no clock here: link_check.c.
 */
#ifndef BARLINE_LOADER_LINK_CHECK_CORE_H
#define BARLINE_LOADER_LINK_CHECK_CORE_H

#include "core/order/skew_core.h"
#include "maps/switch_abi.h"

#define BL_CHECK_SAMPLES 32 /* 8 s, twice as long as delays are kept */
#define BL_CHECK_GOOD    8
#define BL_CHECK_WRONG   4
#define BL_CHECK_WAIT    3 /* samples until a new bound is surely published */

/** struct bl_check_sample - what is known of a port at one moment. */
struct bl_check_sample {
	__u32 node;     /* its neighbour; 0: none, or the port is not in use */
	__u32 reserved; /* 0 */
	__s64 in;       /* as in struct bl_skew_vote */
	__s64 out;      /* the same */
	__u64 bound;    /* the same */
};

/** struct bl_check_port - what is remembered of a port. */
struct bl_check_port {
	__u32 node;
	__u32 verdict; /* enum bl_link_verdict */
	__u32 good;    /* samples since the last one that proved it off, while it is named */
	__u32 began;   /* 1: this sample named it, or says which of the two is wrong */
	__u32 ended;   /* 1: it was named until this sample */
	__u32 kept;    /* 1: @in and @out are not those of a neighbour before */
	__u64 since_s; /* when @verdict began, s */
	__s64 off;     /* by how much it is off, at the last sample that proved it */
	__s64 in_ref;  /* its delay when this node's error was proven */
	__u64 bound[BL_CHECK_SAMPLES];
	__s64 in[BL_CHECK_SAMPLES];  /* as in struct bl_check_sample */
	__s64 out[BL_CHECK_SAMPLES]; /* the same */
	__u64 moved; /* how far its clock and this node's moved apart in these samples, ns */
	struct bl_skew_vote vote; /* the last sample, judged */
};

/** struct bl_check - what is remembered of a node. All zero at first. */
struct bl_check {
	__u64 own[BL_CHECK_SAMPLES]; /* its bound, without @proven */
	__u64 proven;                /* what is added to its bound, ns */
	__u32 at;                    /* index of the next sample */
	__u32 wrong, right;          /* samples in a row that say so */
	__u32 wait;                  /* samples until it is judged again */
	__u32 set;   /* samples in a row in which it is silent, and delays say that it was set */
	__u32 votes; /* of the last sample: those of neighbours, and its own */
	struct bl_check_port port[BL_SW_PORTS_MAX];
	struct bl_skew_vote vote[BL_SW_PORTS_MAX];
};

/** bl_check_named - whether verdict @v names a clock. */
BL_CORE __u32 bl_check_named(__u32 v)
{
	return v == BL_VERDICT_OFF || v == BL_VERDICT_SELF || v == BL_VERDICT_EITHER;
}

BL_CORE __u64 bl_check_most(const __u64 *v)
{
	__u64 most = 0;
	int i;

	for (i = 0; i < BL_CHECK_SAMPLES; i++)
		most = v[i] > most ? v[i] : most;
	return most;
}

/* By how much the values @v that are known differ. */
BL_CORE __u64 bl_check_range(const __s64 *v)
{
	__s64 least = BL_SKEW_MAX, most = -BL_SKEW_MAX;
	int i;

	for (i = 0; i < BL_CHECK_SAMPLES; i++) {
		if (v[i] == BL_DELAY_NONE)
			continue;
		least = bl_skew_clamp(v[i]) < least ? bl_skew_clamp(v[i]) : least;
		most = bl_skew_clamp(v[i]) > most ? bl_skew_clamp(v[i]) : most;
	}
	return most > least ? (__u64)(most - least) : 0;
}

/* Keeps the delays of sample @v of port @p at index @at. */
BL_CORE void bl_check_keep(struct bl_check_port *p, const struct bl_skew_vote *v, __u32 at)
{
	__u64 in, out;
	int i;

	for (i = 0; i < BL_CHECK_SAMPLES && !p->kept; i++)
		p->in[i] = p->out[i] = BL_DELAY_NONE;
	p->kept = 1;
	p->in[at] = v->in;
	p->out[at] = v->out;
	in = bl_check_range(p->in);
	out = bl_check_range(p->out);
	p->moved = in > out ? in : out;
}

BL_CORE int bl_check_heard(const struct bl_skew_vote *v)
{
	return v->in != BL_DELAY_NONE || v->out != BL_DELAY_NONE;
}

/*
 * How far this node's clock moved of late, as its @n neighbours saw it: all who are right saw that.
 * If they are more than half of all, and this node is not one of them, then at most @rank
 * neighbours are wrong, and so one of the @rank + 1 least values is that of one who is right.
 */
BL_CORE __u64 bl_check_moved(const struct bl_check *c, __u32 n)
{
	__u32 i, k, below, heard = 0, rank;
	__u64 moved = 0;

	for (i = 0; i < n; i++)
		heard += (__u32)bl_check_heard(&c->vote[i]);
	rank = heard > 1 ? heard - ((heard + 1) / 2 + 1) : 0;
	for (i = 0; i < n; i++) {
		if (!bl_check_heard(&c->vote[i]))
			continue;
		for (k = 0, below = 0; k < n; k++)
			below += bl_check_heard(&c->vote[k]) && c->port[k].moved < c->port[i].moved;
		if (below <= rank && c->port[i].moved > moved)
			moved = c->port[i].moved;
	}
	return moved;
}

/* Which of the two is wrong, if @v proves that one is. Once it is known, it stays. */
BL_CORE __u32 bl_check_who(__u32 was, const struct bl_skew_vote *v, const struct bl_skew_self *self)
{
	if (v->wrong)
		return BL_VERDICT_OFF;
	if (self->wrong && self->votes > 2)
		return BL_VERDICT_SELF;
	return bl_check_named(was) ? was : (__u32)BL_VERDICT_EITHER;
}

/* What sample @v says about port @p. */
BL_CORE void bl_check_name(struct bl_check_port *p, const struct bl_skew_vote *v,
			   const struct bl_skew_self *self, __u64 now_s)
{
	__u32 was = p->verdict, named = bl_check_named(was);

	if (v->counts && v->off) {
		p->off = v->off;
		p->good = 0;
		p->verdict = bl_check_who(was, v, self);
		p->began = p->verdict != was;
	} else if (named) {
		p->good += v->in != BL_DELAY_NONE && v->out != BL_DELAY_NONE;
		if (p->good >= BL_CHECK_GOOD) {
			p->verdict = BL_VERDICT_GOOD;
			p->off = 0;
			p->ended = 1;
		}
	} else if (v->counts || v->in != BL_DELAY_NONE) {
		p->verdict = BL_VERDICT_GOOD;
	} else {
		p->verdict = BL_VERDICT_NONE;
	}
	if (p->verdict != was && !(named && p->verdict != BL_VERDICT_GOOD))
		p->since_s = now_s;
}

/*
 * What the node adds to its bound. @own: its bound now, without that; @most: the greatest of late.
 * A node is right again once more than half of all are as right as it is.
 */
BL_CORE void bl_check_self(struct bl_check *c, __u32 n, const struct bl_skew_self *s, __u64 own,
			   __u64 most)
{
	__u64 want = s->wrong ? s->proven + (most - own) : 0;
	__u32 i, both = 0, heard = 0, moved = 0;

	if (c->wait) {
		c->wait--;
		return;
	}
	if (s->wrong) {
		c->right = c->set = 0;
		if (s->open && want < c->proven)
			want = c->proven;
		/* More than was known is never left out; a little less is no reason for a change.
		 */
		if (++c->wrong < BL_CHECK_WRONG ||
		    (want <= c->proven && want >= c->proven - c->proven / 4))
			return;
		for (i = 0; i < n; i++)
			c->port[i].in_ref = c->vote[i].in;
		c->proven = want;
		c->wait = BL_CHECK_WAIT;
		return;
	}
	c->wrong = 0;
	if (2 * s->off >= s->votes) {
		c->right = c->set = 0;
		return;
	}
	if (!c->proven)
		return;
	for (i = 0; i < n; i++) {
		const struct bl_skew_vote *v = &c->vote[i];
		__s64 by = v->in - c->port[i].in_ref;

		if (v->in == BL_DELAY_NONE)
			continue;
		both += v->counts && v->out != BL_DELAY_NONE;
		heard++;
		moved += c->port[i].in_ref != BL_DELAY_NONE &&
			 (by > (__s64)(c->proven / 2) || by < -(__s64)(c->proven / 2));
	}
	c->right = both ? c->right + 1 : 0;
	c->set = !both && 2 * moved > heard ? c->set + 1 : 0;
	if (c->right < BL_CHECK_GOOD && c->set < BL_CHECK_WRONG)
		return;
	c->proven = 0;
	c->right = c->set = 0;
	c->wait = BL_CHECK_WAIT;
}

/**
 * bl_check_step - takes in a sample of @n ports. @own: this node's bound without what was proven;
 * @host: it is a host; @now_s: time, s. Sets @began and @ended of the ports.
 */
BL_CORE void bl_check_step(struct bl_check *c, const struct bl_check_sample *s, __u32 n, __u64 own,
			   int host, __u64 now_s)
{
	struct bl_skew_self self;
	__u64 most;
	__u32 i, k;

	c->own[c->at] = own;
	most = bl_check_most(c->own);
	for (i = 0; i < n; i++) {
		struct bl_check_port *p = &c->port[i];

		if (s[i].node && p->node && s[i].node != p->node) {
			struct bl_check_port none = { 0 };

			*p = none;
		}
		p->node = s[i].node ? s[i].node : p->node;
		p->bound[c->at] = s[i].bound;
		p->began = p->ended = 0;
		c->vote[i].in = s[i].node ? s[i].in : BL_DELAY_NONE;
		c->vote[i].out = s[i].node ? s[i].out : BL_DELAY_NONE;
		c->vote[i].bound = bl_check_most(p->bound);
		bl_check_keep(p, &c->vote[i], c->at);
	}
	c->at = (c->at + 1) % BL_CHECK_SAMPLES;
	bl_skew_judge(c->vote, n, most, host, bl_check_moved(c, n), &self);
	c->votes = self.votes;
	for (k = 0; k < n; k++) {
		bl_check_name(&c->port[k], &c->vote[k], &self, now_s);
		c->port[k].vote = c->vote[k];
	}
	bl_check_self(c, n, &self, own, most);
}

#endif
