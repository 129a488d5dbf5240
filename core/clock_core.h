/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bus time: from CLOCK_MONOTONIC to the time of the rack, and between 64 and 48 bits.
 *
 * Example: a record with seg[1] = {mono 1000, bus 5000, rate 2^30/1000 (+0.1 %)} gives, at mono
 * 2000, bus time 5000 + 1000 + 1 = 6001.
 *
 * 48 bits wrap after 78 h 11 min. A node extends every received value to 64 bits, to the one
 * nearest to a reference of its own (as PAWS does, RFC 7323 section 5), which is right as long as
 * the two are less than 39 h apart. After that, times are compared like any integers.
 *
 * This file reads no clock: the caller passes CLOCK_MONOTONIC.
 */
#ifndef BARLINE_CLOCK_CORE_H
#define BARLINE_CLOCK_CORE_H

#include "maps/clock_abi.h"
#include "maps/wire_abi.h"
#include "core/core.h"

/** bl_ext48 - the 64-bit time nearest to @ref whose low 48 bits are @wire. */
BL_CORE __u64 bl_ext48(__u64 wire, __u64 ref)
{
	__s64 d = (__s64)((wire - ref) << (64 - BL_TS_BITS)) >> (64 - BL_TS_BITS);

	return ref + (__u64)d;
}

/**
 * bl_seg_at - bus time of segment @s at @mono; before its start the segment is extended backwards.
 */
BL_CORE __u64 bl_seg_at(const struct bl_clock_seg *s, __u64 mono)
{
	__s64 d = (__s64)(mono - s->mono_ns);

	/*
	 * The rate is below 2^20, so the product fits for segments of up to 2^43 ns (2.4 h); the
	 * daemon begins a new one every second.
	 */
	return s->bus_ns + (__u64)d + (__u64)((d * (__s64)s->rate) >> 30);
}

/**
 * bl_clock_at - bus time at @mono. The record may be written at this moment: @seq makes the reader
 * retry, and the remaining error is harmless, since the two segments are equal where they meet.
 */
BL_CORE __u64 bl_clock_at(const struct bl_clock *c, __u64 mono)
{
	__u64 bus = 0;
	__u32 s0;
	int i;

	for (i = 0; i < BL_CLOCK_TRIES; i++) {
		/* pairs with the daemon's odd/even stores in loader/order/clock.c */
		s0 = BL_READ_ONCE(c->seq);
		BL_BARRIER();
		if ((__s64)(mono - BL_READ_ONCE(c->seg[1].mono_ns)) >= 0)
			bus = bl_seg_at(&c->seg[1], mono);
		else
			bus = bl_seg_at(&c->seg[0], mono);
		BL_BARRIER();
		if (!(s0 & 1) && BL_READ_ONCE(c->seq) == s0)
			break;
	}
	return bus;
}

/**
 * bl_clock_usable - whether the record may be used at @mono: it has a segment and is not past
 * void_after.
 */
BL_CORE int bl_clock_usable(const struct bl_clock *c, __u64 mono)
{
	return (BL_READ_ONCE(c->flags) & BL_CLOCK_VALID) && mono < BL_READ_ONCE(c->void_after_ns);
}

/**
 * bl_clock_bound - greatest error at @mono, ns: the measured bound, and what drift may have added
 * since.
 */
BL_CORE __u64 bl_clock_bound(const struct bl_clock *c, __u64 mono)
{
	__u64 age = mono > c->as_of_ns ? mono - c->as_of_ns : 0;

	/* the product fits for ages below 2^43 ns; past void_after this is not called */
	/* 1e9 / 1024, rounded up by less than 1 ppm */
	return c->bound_ns + (age >> 10) * c->drift_ppb / 976563;
}

/* What follows is the daemon's side. Only native code uses it, but it is pure as well. */

/**
 * bl_rate_ppb - how far a segment of the rate @rate goes from CLOCK_MONOTONIC, ppb, rounded up. If
 * its keeper dies while bus time is steered, the last segment is used until the record is void.
 */
BL_CORE __u32 bl_rate_ppb(__s32 rate)
{
	__u64 r = rate < 0 ? -(__u64)rate : (__u64)rate;

	return (__u32)((r * 1000000000 + (1ULL << 30) - 1) >> 30);
}

/** bl_clock_start - write the first segment: bus time is @bus at @mono. */
BL_CORE void bl_clock_start(struct bl_clock *c, __u64 mono, __u64 bus)
{
	struct bl_clock_seg s = { .mono_ns = mono, .bus_ns = bus };

	c->seg[0] = s;
	c->seg[1] = s;
}

/**
 * bl_clock_torn - repair a record whose writer was killed while it wrote: keep the segment that is
 * complete, which is the one whose bus time at @mono is nearer to @target. Complete segments agree
 * to within microseconds.
 */
BL_CORE void bl_clock_torn(struct bl_clock *c, __u64 mono, __u64 target)
{
	__s64 e0 = (__s64)(bl_seg_at(&c->seg[0], mono) - target),
	      e1 = (__s64)(bl_seg_at(&c->seg[1], mono) - target);

	if ((e0 < 0 ? -e0 : e0) < (e1 < 0 ? -e1 : e1))
		c->seg[1] = c->seg[0];
	else
		c->seg[0] = c->seg[1];
}

/**
 * bl_clock_steer - choose the next segment so that bus time approaches @target_at_mono, the true
 * bus time at @mono, without ever going back.
 * @gain_ns: time in which the present error is to be corrected; the rate is limited to 500 ppm
 * either way.
 * @next: filled in; begins BL_CLOCK_LEAD_NS after @mono. The caller publishes it (seq odd, shift,
 * seq even).
 *
 * Returns the error at @mono, ns (bus - target).
 */
BL_CORE __s64 bl_clock_steer(const struct bl_clock *c, __u64 mono, __u64 target_at_mono,
			     __u64 gain_ns, struct bl_clock_seg *next)
{
	const struct bl_clock_seg *last = &c->seg[1];
	__s64 error = (__s64)(bl_seg_at(last, mono) - target_at_mono);
	__s64 gain = (__s64)(gain_ns >> 10 ? gain_ns >> 10 : 1);
	__s64 lim = BL_CLOCK_RATE_MAX;
	__s64 e = error;
	__s64 rate;

	/* -error/gain in units of 2^-30; beyond an hour of error, only the limit matters */
	if (e > (1LL << 42))
		e = 1LL << 42;
	if (e < -(1LL << 42))
		e = -(1LL << 42);
	rate = -((e * (1LL << 20)) / gain);
	if (rate > lim)
		rate = lim;
	if (rate < -lim)
		rate = -lim;
	next->mono_ns = mono + BL_CLOCK_LEAD_NS;
	next->bus_ns = bl_seg_at(last, next->mono_ns);
	next->rate = (__s32)rate;
	next->reserved = 0;
	return error;
}

#endif
