/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What ClockBound says of the system clock (maps/clockbound_abi.h).
 *
 * Its bound holds at as_of, and grows by its own drift until the reading. ClockBound renews it once
 * a second. A bound that is new counts if it was determined after the last reading, since steps of
 * the clock are known from the reading before that on (core/clock_source_core.h). So the bound does
 * not count before the third reading.
 *
 * Example: 300 us at 0.2 s ago, with a drift of 1000 ppb: 300.2 us, rounded up. Its reader goes on
 * with the drift of the sample, here 1000 ppb, until the next bound counts.
 *
 * This file reads no file: loader/clock/clockbound.c does.
 */
#ifndef BARLINE_CLOCKBOUND_CORE_H
#define BARLINE_CLOCKBOUND_CORE_H

#include "core/clock_source_core.h"
#include "core/core.h"
#include "maps/clock_abi.h"
#include "maps/clockbound_abi.h"

#define BL_CB_STALE_NS  5000000000ULL /* as ClockBound's own clients: it renews once a second */
#define BL_CB_DRIFT_MAX 1000000000U   /* ppb; likewise, a greater one is nonsense */
#define BL_CB_COARSE_NS 10000000ULL   /* CLOCK_MONOTONIC_COARSE is behind by a tick at most */

/** struct bl_cb_view - what earlier readings have shown. All zero: nothing. */
struct bl_cb_view {
	int word;        /* a bound has counted */
	int have;        /* the following is valid */
	__u64 as_of_ns;  /* of the last bound that was seen */
	__u64 last_ns;   /* CLOCK_MONOTONIC of the last reading; 0: there was none */
	__u64 before_ns; /* the same of the reading before that one */
};

/** bl_cb_reading - note that there is a reading at @mono, CLOCK_MONOTONIC. */
BL_CORE void bl_cb_reading(struct bl_cb_view *v, __u64 mono)
{
	v->before_ns = v->last_ns;
	v->last_ns = mono;
}

/* Converts @t to ns. Returns 0 if it is no time. */
BL_CORE int bl_cb_ns(const struct bl_cb_time *t, __u64 *ns)
{
	if (t->sec < 0 || t->sec >= 1LL << 33 || t->nsec < 0 || t->nsec >= 1000000000)
		return 0;
	*ns = (__u64)t->sec * 1000000000ULL + (__u64)t->nsec;
	return 1;
}

/** bl_cb_whole - whether two copies, one read after the other, are one that was being written. */
BL_CORE int bl_cb_whole(const struct bl_clockbound *a, const struct bl_clockbound *b)
{
	return a->generation && !(a->generation & 1) && !__builtin_memcmp(a, b, sizeof(*a));
}

/** bl_cb_layout - whether @f, of which @len bytes exist, has a layout that is known. */
BL_CORE int bl_cb_layout(const struct bl_clockbound *f, __u64 len)
{
	__u64 need = f->version == 1 ? BL_CB_V1_BYTES : sizeof(*f);

	if (len < BL_CB_V1_BYTES || f->magic[0] != BL_CB_MAGIC0 || f->magic[1] != BL_CB_MAGIC1)
		return 0;
	return (f->version == 1 || f->version == 2) && len >= need && f->size >= need;
}

/**
 * bl_cb_judge - what the whole file @f of a known layout says at @mono, CLOCK_MONOTONIC.
 *
 * Sets all of *@s but its TAI offset, and returns why the clock is not synchronised, or 0. A
 * reading at which the file cannot be judged has to be noted with bl_cb_reading() instead.
 */
BL_CORE enum bl_clock_reason bl_cb_judge(struct bl_cb_view *v, const struct bl_clockbound *f,
					 __u64 mono, struct bl_clock_sample *s)
{
	__u32 drift = f->version == 1 ? f->v1.drift_ppb : f->v2.drift_ppb;
	__s32 status = f->version == 1 ? f->v1.status : f->v2.status;
	__u64 as_of, until, age, last = v->last_ns, before = v->before_ns;

	s->synced = s->fresh = s->late = 0;
	s->bound_ns = 0;
	s->drift_ppb = 0;
	bl_cb_reading(v, mono);
	if (!bl_cb_ns(&f->as_of, &as_of) || !bl_cb_ns(&f->void_after, &until) || f->bound_ns < 0 ||
	    drift >= BL_CB_DRIFT_MAX || as_of > mono + BL_CB_COARSE_NS || status > BL_CB_DISRUPTED)
		return BL_CLOCK_CB_WRONG;
	if (status == BL_CB_DISRUPTED)
		return BL_CLOCK_CB_DISRUPTED;
	if (status == BL_CB_FREE_RUNNING)
		return BL_CLOCK_CB_FREE_RUNNING;
	if (status != BL_CB_SYNCHRONIZED)
		return BL_CLOCK_CB_UNKNOWN;
	age = mono > as_of ? mono - as_of : 0;
	if (age >= BL_CB_STALE_NS || mono >= until)
		return BL_CLOCK_CB_STALE;
	s->fresh = before && (!v->have || as_of != v->as_of_ns) && as_of > last;
	v->have = 1;
	v->as_of_ns = as_of;
	v->word |= s->fresh;
	if (!v->word)
		return BL_CLOCK_ASKING;
	s->synced = s->late = 1;
	s->drift_ppb = drift;
	s->bound_ns = (__u64)f->bound_ns < BL_CLOCK_BOUND_MAX_NS ? (__u64)f->bound_ns
								 : BL_CLOCK_BOUND_MAX_NS;
	s->bound_ns += age * drift / 1000000000 + 1;
	return BL_CLOCK_NO_REASON;
}

#endif
