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
 * bl_clock_at - bus time at @mono, ns. The record may be written at this moment, and its writer may
 * stand still while it writes; readers do not wait for it.
 *
 * Example: the newer segment begins at 5000 and is in force. The writer copies it to the older one,
 * marks the newer one as unwritten, and loses its CPU after it has stored bus_ns of the next
 * segment. Every reader now takes the older segment, which is complete and the one in force.
 *
 * A reader that began to read the segment before that finds its mono_ns changed, and reads again.
 * Readers of a time before the newer segment take that one, too, while the older one is
 * overwritten.
 */
BL_CORE __u64 bl_clock_at(const struct bl_clock *c, __u64 mono)
{
	struct bl_clock_seg s = { 0 };
	const struct bl_clock_seg *from;
	__u64 bus = 0, older;
	int i;

	for (i = 0; i < BL_CLOCK_TRIES; i++) {
		/* pairs with bl_clock_store() */
		from = &c->seg[1];
		s.mono_ns = BL_READ_ONCE(from->mono_ns);
		BL_BARRIER();
		if ((__s64)(mono - s.mono_ns) < 0) {
			older = BL_READ_ONCE(c->seg[0].mono_ns);
			BL_BARRIER();
			if (older != BL_CLOCK_UNWRITTEN) {
				from = &c->seg[0];
				s.mono_ns = older;
			} else if (s.mono_ns == BL_CLOCK_UNWRITTEN) {
				continue; /* both: it was written twice meanwhile */
			}
		}
		s.bus_ns = BL_READ_ONCE(from->bus_ns);
		s.rate = BL_READ_ONCE(from->rate);
		bus = bl_seg_at(&s, mono);
		BL_BARRIER();
		if (BL_READ_ONCE(from->mono_ns) == s.mono_ns)
			break;
	}
	return bus;
}

/**
 * bl_clock_usable - whether the record may be used at @mono: it has a segment and is not past
 * void_after. A reader asks this before it computes bus time: what makes a void record usable again
 * is stored after the segments.
 */
BL_CORE int bl_clock_usable(const struct bl_clock *c, __u64 mono)
{
	return (BL_READ_ONCE(c->flags) & BL_CLOCK_VALID) && mono < BL_READ_ONCE(c->void_after_ns);
}

/**
 * bl_clock_bound - greatest error at @mono, ns: the measured bound, and what drift may have added
 * since. If the record is written meanwhile, the result is not less than both the old one and the
 * new one: an old measurement is not taken for a young one, and the greater drift counts.
 */
BL_CORE __u64 bl_clock_bound(const struct bl_clock *c, __u64 mono)
{
	/* pairs with bl_clock_store() */
	__u64 as_of = BL_READ_ONCE(c->as_of_ns), age = mono > as_of ? mono - as_of : 0, drift,
	      bound;

	BL_BARRIER();
	drift = BL_READ_ONCE(c->drift_ppb);
	BL_BARRIER();
	bound = BL_READ_ONCE(c->bound_ns);
	BL_BARRIER();
	drift = bl_max64(drift, BL_READ_ONCE(c->drift_ppb));
	/* the product fits for ages below 2^43 ns; past void_after this is not called */
	/* 1e9 / 1024, rounded up by less than 1 ppm */
	return bound + (age >> 10) * drift / 976563;
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

/* Writes @s into @to, which is marked as unwritten meanwhile. */
BL_CORE void bl_seg_store(struct bl_clock_seg *to, const struct bl_clock_seg *s)
{
	BL_WRITE_ONCE(to->mono_ns, BL_CLOCK_UNWRITTEN);
	BL_BARRIER();
	BL_WRITE_ONCE(to->bus_ns, s->bus_ns);
	BL_WRITE_ONCE(to->rate, s->rate);
	BL_WRITE_ONCE(to->reserved, s->reserved);
	BL_BARRIER();
	BL_WRITE_ONCE(to->mono_ns, s->mono_ns);
	BL_BARRIER();
}

/**
 * bl_clock_store - write @own, the writer's copy, into the shared record @c; @own->seq is even and
 * is stored last. Pairs with bl_clock_at(), bl_clock_usable() and bl_clock_bound().
 *
 * After each of these stores the record can be used: that is how readers find it if the writer
 * loses its CPU there, or is killed.
 */
BL_CORE void bl_clock_store(struct bl_clock *c, const struct bl_clock *own)
{
	BL_WRITE_ONCE(c->seq, own->seq - 1);
	BL_BARRIER();
	bl_seg_store(&c->seg[0], &own->seg[0]);
	bl_seg_store(&c->seg[1], &own->seg[1]);
	BL_WRITE_ONCE(c->drift_ppb, bl_max64(own->drift_ppb, c->drift_ppb));
	BL_WRITE_ONCE(c->proven_ns, bl_min64(own->proven_ns, c->proven_ns));
	BL_BARRIER();
	BL_WRITE_ONCE(c->bound_ns, own->bound_ns);
	BL_BARRIER();
	BL_WRITE_ONCE(c->drift_ppb, own->drift_ppb);
	BL_WRITE_ONCE(c->proven_ns, own->proven_ns);
	BL_BARRIER();
	BL_WRITE_ONCE(c->as_of_ns, own->as_of_ns);
	c->tai_offset_s = own->tai_offset_s;
	c->skew_ns = own->skew_ns;
	c->source = own->source;
	c->state = own->state;
	c->reason = own->reason;
	c->source_ns = own->source_ns;
	c->source_as_of_ns = own->source_as_of_ns;
	c->max_bound_ns = own->max_bound_ns;
	c->system_ns = own->system_ns;
	c->system_error_ns = own->system_error_ns;
	c->system_stepped_ns = own->system_stepped_ns;
	BL_BARRIER();
	BL_WRITE_ONCE(c->void_after_ns, own->void_after_ns);
	BL_BARRIER();
	BL_WRITE_ONCE(c->flags, own->flags);
	BL_BARRIER();
	BL_WRITE_ONCE(c->seq, own->seq);
}

/**
 * bl_clock_whole - complete a copy of a record whose writer was killed while it wrote: the newer
 * segment is whole unless it is marked, and then the older one is.
 */
BL_CORE void bl_clock_whole(struct bl_clock *c)
{
	if (c->seg[1].mono_ns == BL_CLOCK_UNWRITTEN)
		c->seg[1] = c->seg[0];
	else
		c->seg[0] = c->seg[1];
}

/* The segment of the writer's copy that is in force at @mono. */
BL_CORE const struct bl_clock_seg *bl_clock_seg(const struct bl_clock *c, __u64 mono)
{
	return &c->seg[mono >= c->seg[1].mono_ns];
}

/**
 * bl_clock_append - put @next, which continues the segment in force at @mono, into the writer's
 * copy. A segment that has not begun by then is replaced. If it begins before the copy is stored,
 * readers return from it to the one before, within BL_CLOCK_LEAD_NS, in which the two differ by a
 * microsecond at most.
 */
BL_CORE void bl_clock_append(struct bl_clock *c, __u64 mono, const struct bl_clock_seg *next)
{
	c->seg[0] = *bl_clock_seg(c, mono);
	c->seg[1] = *next;
}

/**
 * bl_clock_steer - choose the next segment so that bus time approaches @target_at_mono, the true
 * bus time at @mono, without ever going back.
 * @gain_ns: time in which the present error is to be corrected; the rate is limited to 500 ppm
 * either way.
 * @next: filled in; begins BL_CLOCK_LEAD_NS after @mono, and belongs into the record then
 * (bl_clock_append(), bl_clock_store()).
 *
 * Returns the error at @mono, ns (bus - target).
 */
BL_CORE __s64 bl_clock_steer(const struct bl_clock *c, __u64 mono, __u64 target_at_mono,
			     __u64 gain_ns, struct bl_clock_seg *next)
{
	const struct bl_clock_seg *last = bl_clock_seg(c, mono);
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
