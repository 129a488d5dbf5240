/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far two clocks are apart, from beacons alone (no PTP): a beacon says by its sender's clock
 * when it was sent, and the receiver reads its own clock when it arrives. The difference is the
 * apparent delay: the true one, which is never below 0, plus what the receiver's clock is ahead of
 * the sender's. Each node keeps the least apparent delay of the last seconds and tells its
 * neighbour.
 *
 * Signs: let o be the neighbour's clock less this node's. The apparent delay of its beacons is the
 * true one less o, so o >= -in. That of this node's beacons is the true one plus o, so o <= out. In
 * NTP's words the offset lies within half the round trip of (out - in) / 2.
 *
 * Example: both cables take 10 us, and the neighbour is 940 us ahead. in = -930 us, out = 950 us: o
 * lies in [930, 950] us. If the bounds of both clocks are 50 us each, they are apart by at least
 * 830 us more than they may be: one of the two is wrong.
 *
 * The two ends are from different moments of the last seconds. If the clocks drift apart by more in
 * that time than both delays together, the lower end is above the upper one; each of them is still
 * true of its moment. So each end that lies beyond the bounds, which are the greatest of that time,
 * proves alone that one of the two clocks is wrong.
 *
 * Who is wrong is decided by a vote (after Marzullo; RFC 5905 section 11.2.1): bl_skew_judge().
 * Bounds are those that each clock has of itself. What neighbours have proven against it is not in
 * them, so that it stays proven after the node has widened its bound (bl_skew_bound()).
 *
 * Not here: who keeps the samples (bpf/link.h) and who acts on the verdict
 * (loader/order/link_check.c).
 */
#ifndef BARLINE_SKEW_CORE_H
#define BARLINE_SKEW_CORE_H

#include "core/clock_core.h"
#include "maps/link_abi.h"

/*
 * The least delay is that of the last one to two buckets. A longer window finds a moment without a
 * queue more often; but a clock that was put right is believed as late.
 */
#define BL_SKEW_BUCKET_NS 2000000000ULL
/* Delays are cut to this, so that sums do not overflow: 36 years. */
#define BL_SKEW_MAX (1LL << 60)

/** bl_skew_clamp - @v cut to +-BL_SKEW_MAX. */
BL_CORE __s64 bl_skew_clamp(__s64 v)
{
	return v > BL_SKEW_MAX ? BL_SKEW_MAX : v < -BL_SKEW_MAX ? -BL_SKEW_MAX : v;
}

/** bl_skew_sum - @a + @b, cut to BL_SKEW_MAX. */
BL_CORE __s64 bl_skew_sum(__u64 a, __u64 b)
{
	const __u64 most = (__u64)BL_SKEW_MAX;

	return bl_skew_clamp((__s64)(a < most ? a : most) + (__s64)(b < most ? b : most));
}

/** bl_skew_add - a beacon that arrived at bus time @now took @delay ns, by the two clocks. */
BL_CORE void bl_skew_add(struct bl_link *l, __s64 delay, __u64 now)
{
	__u64 age = now - l->bucket_ns;

	if (age >= BL_SKEW_BUCKET_NS) { /* also if the clock was set back */
		l->least_ns[1] = age < 2 * BL_SKEW_BUCKET_NS ? l->least_ns[0] : BL_DELAY_NONE;
		l->least_ns[0] = delay;
		l->bucket_ns = now;
	} else if (delay < l->least_ns[0]) {
		l->least_ns[0] = delay;
	}
}

/**
 * bl_skew_least - the least delay of late at bus time @now; BL_DELAY_NONE: none is known. Another
 * CPU may have begun the bucket since @now was read.
 */
BL_CORE __s64 bl_skew_least(const struct bl_link *l, __u64 now)
{
	__s64 a = BL_READ_ONCE(l->least_ns[0]), b = BL_READ_ONCE(l->least_ns[1]);
	__u64 begun = BL_READ_ONCE(l->bucket_ns), age = now - begun;

	if (begun - now < BL_SKEW_BUCKET_NS)
		age = 0;
	if (!begun || age >= 2 * BL_SKEW_BUCKET_NS)
		return BL_DELAY_NONE;
	return age < BL_SKEW_BUCKET_NS && b < a ? b : a;
}

/** bl_skew_echo - a least delay as beacons carry it. */
BL_CORE __s32 bl_skew_echo(__s64 least)
{
	if (least == BL_DELAY_NONE)
		return BL_ECHO_NONE;
	return least > 2147483647 ? 2147483647 : least < -2147483647 ? -2147483647 : (__s32)least;
}

/** bl_skew_out - a least delay as a beacon said it; one that is cut bounds nothing. */
BL_CORE __s64 bl_skew_out(__s32 echo)
{
	return echo == BL_ECHO_NONE || echo == 2147483647 ? BL_DELAY_NONE : echo;
}

/**
 * bl_skew_bound - bound of a node's clock at @mono as its beacons say it: without what its
 * neighbours have proven. If the record is written meanwhile, the lesser of the two proven parts is
 * taken off; pairs with bl_clock_store().
 */
BL_CORE __u64 bl_skew_bound(const struct bl_clock *c, __u64 mono)
{
	__u64 proven = BL_READ_ONCE(c->proven_ns), bound;

	BL_BARRIER();
	bound = bl_clock_bound(c, mono);
	BL_BARRIER();
	proven = bl_min64(proven, BL_READ_ONCE(c->proven_ns));
	return bound > proven ? bound - proven : 0;
}

/** struct bl_skew_vote - what one neighbour says about this node's clock. */
struct bl_skew_vote {
	__s64 in;    /* least apparent delay of its beacons, ns; BL_DELAY_NONE: not known */
	__s64 out;   /* the same of this node's beacons */
	__u64 bound; /* of its clock, ns */
	/*
	 * result: its clock less this node's was at least @low at one moment of the last seconds,
	 * and at most @high at another; @low is above @high if the two drift apart
	 */
	__s64 low, high;
	__s64 off; /* result: by how much it was further off than the bounds allow; 0: it was not */
	__s64 from; /* result: true time less this node's clock is at least this if it is right, */
	__s64 to;   /* and at most this */
	__u32 counts; /* result: 1: it has a vote */
	__u32 wrong;  /* result: 1: true time is where its clock cannot be */
};

/** struct bl_skew_self - what all of them say together. */
struct bl_skew_self {
	/*
	 * True time less this node's clock lies between these two if more than half of all are
	 * right, ns. Without a majority: what this node's own bound says.
	 */
	__s64 low, high;
	__u32 votes; /* those of the neighbours, and this node's own */
	__u32 agree; /* the most that agree about one time */
	__u32 off;   /* neighbours that were further off than the bounds allow */
	__u32 wrong; /* 1: this node's own clock cannot be right */
	/* 1: it is, and how far away true time may be at most is not known */
	__u32 open;
	__u32 reserved;
	__u64 proven; /* by how much its error may exceed its bound, ns; 0: it is not wrong */
};

/**
 * bl_skew_interval - fills in @low, @high, @off and @counts of @v. @own: bound of this node's
 * clock.
 */
BL_CORE void bl_skew_interval(struct bl_skew_vote *v, __u64 own)
{
	__s64 bounds = bl_skew_sum(own, v->bound);

	v->low = v->in == BL_DELAY_NONE ? -BL_SKEW_MAX : bl_skew_clamp(-bl_skew_clamp(v->in));
	v->high = v->out == BL_DELAY_NONE ? BL_SKEW_MAX : bl_skew_clamp(v->out);
	v->off = 0;
	v->wrong = 0;
	v->counts = v->in != BL_DELAY_NONE || v->out != BL_DELAY_NONE;
	if (v->low > bounds)
		v->off = v->low - bounds;
	else if (v->high < -bounds)
		v->off = v->high + bounds;
}

/*
 * Fills in @from and @to: the ends of where true time less this node's clock may have been in the
 * last seconds, and may be now. @moved: how far this node's clock may have moved in that time.
 */
BL_CORE void bl_skew_edges(struct bl_skew_vote *v, __u64 moved)
{
	__s64 by = bl_skew_sum(v->bound, moved);

	v->from = bl_skew_clamp((v->low < v->high ? v->low : v->high) - by);
	v->to = bl_skew_clamp((v->low < v->high ? v->high : v->low) + by);
}

/* An end of interval @k of @n + 1: those of the neighbours, and at last this node's own. */
BL_CORE __s64 bl_skew_end(const struct bl_skew_vote *v, __u32 n, __u32 k, __s64 mine, int upper)
{
	if (k == n)
		return upper ? mine : -mine;
	return upper ? v[k].to : v[k].from;
}

/* How many of the @n + 1 allow the time @at. */
BL_CORE __u32 bl_skew_agree(const struct bl_skew_vote *v, __u32 n, __s64 mine, __s64 at)
{
	__u32 k, agree = 0;

	for (k = 0; k <= n; k++)
		agree += (k == n || v[k].counts) && bl_skew_end(v, n, k, mine, 0) <= at &&
			 bl_skew_end(v, n, k, mine, 1) >= at;
	return agree;
}

/* Whether more than half of the @votes allow some time in interval @i. */
BL_CORE int bl_skew_shared(const struct bl_skew_vote *v, __u32 n, __s64 mine, __u32 i, __u32 votes)
{
	__s64 from = bl_skew_end(v, n, i, mine, 0), to = bl_skew_end(v, n, i, mine, 1), at;
	__u32 k;

	/* Most agree where one of the intervals begins. */
	for (k = 0; k <= n; k++) {
		at = bl_skew_end(v, n, k, mine, 0);
		if ((k == n || v[k].counts) && at >= from && at <= to &&
		    2 * bl_skew_agree(v, n, mine, at) > votes)
			return 1;
	}
	return 0;
}

/* By how much the error of this node, which is wrong, may exceed its bound. */
BL_CORE void bl_skew_prove(const struct bl_skew_vote *v, __u32 n, __s64 mine,
			   struct bl_skew_self *s)
{
	__s64 far = mine, near = BL_SKEW_MAX;
	__u32 i;

	for (i = 0; i < n; i++) {
		__s64 off = v[i].off < 0 ? -v[i].off : v[i].off;

		if (!v[i].off)
			continue;
		near = off < near ? off : near;
		s->open |= v[i].off > 0 ? s->high >= BL_SKEW_MAX : s->low <= -BL_SKEW_MAX;
	}
	/* True time may be as far away as the far end, on either side. */
	if (s->high < BL_SKEW_MAX && s->high > far)
		far = s->high;
	if (s->low > -BL_SKEW_MAX && -s->low > far)
		far = -s->low;
	s->proven = (__u64)(far - mine);
	/* An end that is not known says nothing: then the near one is all that is proven. */
	if (s->open && s->proven < (__u64)near)
		s->proven = (__u64)near;
}

/**
 * bl_skew_judge - finds out who is wrong, among @n neighbours and this node, whose bound is @own.
 * With two votes that differ there is no majority: @alone says whether this node then takes itself
 * to be wrong, as a host must, whose promise nobody else checks.
 * @moved: how far this node's clock may have moved in the last seconds, ns, as neighbours saw it.
 *
 * This node is wrong if, were it right, at least half of all were wrong, and if more than half
 * allow some time. The first does not depend on @moved. A neighbour is wrong if more than half
 * allow some time, and it allows no such time. As ends are from different moments, that compares
 * neighbours by a clock that may have moved in between, and so intervals are widened by @moved.
 *
 * Liars that are fewer than half prove nothing against anybody else, whatever they say. NTP takes
 * the time that most allow; with wide intervals two liars can choose which one that is.
 *
 * Example: a switch whose bound is 50 us, and h1 and h2, bound 50 us, at [-10, 10] us, and h3 at
 * [930, 950]. Its own vote is [-50, 50], theirs are [-60, 60], [-60, 60] and [880, 1000]. Three of
 * four agree on [-50, 50], so h3 is wrong.
 */
BL_CORE void bl_skew_judge(struct bl_skew_vote *v, __u32 n, __u64 own, int alone, __u64 moved,
			   struct bl_skew_self *s)
{
	__s64 mine = (__s64)(own < (__u64)BL_SKEW_MAX ? own : BL_SKEW_MAX);
	__u32 i, agree, any = 0;

	s->votes = 1;
	s->agree = s->off = s->wrong = s->open = s->reserved = 0;
	s->proven = 0;
	s->low = BL_SKEW_MAX;
	s->high = -BL_SKEW_MAX;
	for (i = 0; i < n; i++) {
		bl_skew_interval(&v[i], own);
		bl_skew_edges(&v[i], moved);
		s->votes += v[i].counts;
		s->off += v[i].off != 0;
	}
	for (i = 0; i <= n; i++) {
		__s64 from = bl_skew_end(v, n, i, mine, 0), to = bl_skew_end(v, n, i, mine, 1);

		if (i < n && !v[i].counts)
			continue;
		agree = bl_skew_agree(v, n, mine, from);
		if (agree > s->agree)
			s->agree = agree;
		if (2 * agree > s->votes && from < s->low)
			s->low = from;
		if (2 * bl_skew_agree(v, n, mine, to) > s->votes && to > s->high)
			s->high = to;
		any |= 2 * agree > s->votes;
	}
	for (i = 0; any && i < n; i++)
		v[i].wrong = v[i].counts && !bl_skew_shared(v, n, mine, i, s->votes);
	s->wrong = s->votes > 2 ? any && 2 * s->off >= s->votes : alone && s->off;
	if (!any) {
		s->low = -mine;
		s->high = mine;
	}
	for (i = 0; s->votes == 2 && s->wrong && i < n; i++)
		if (v[i].counts) {
			s->low = v[i].from;
			s->high = v[i].to;
		}
	if (s->wrong)
		bl_skew_prove(v, n, mine, s);
}

#endif
