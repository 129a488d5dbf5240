/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a node may believe of its system clock, from what a source of time says about it.
 *
 * A source now and then says anew how far the clock is from true time at the most. The node holds
 * the last such word, together with the clock's offset from CLOCK_MONOTONIC at that moment. Both
 * clocks run at the same rate, so the offset changes only if the clock is stepped. Until the source
 * speaks again, the node goes by CLOCK_MONOTONIC plus the held offset, and the held bound grows
 * with the drift: a step of the system clock that the source has not confirmed has no effect.
 *
 * Example: the source says 200 us; 10 s later, with a drift of 100 ppm, the bound is 1200 us.
 *
 * A word is noticed at a reading, and was spoken at some time since the reading before. It
 * is therefore held from the reading before. If the clock was stepped between the two, either of
 * its settings may be meant, and the step is added to the bound. The first word may be a second
 * old: the kernel lets maxerror grow once a second. A source that is asked at one reading and
 * answers until the next (ptp4l) speaks of a time since the reading before those two.
 *
 * A source need not know of a step that a stranger made, and goes on to speak from what it measured
 * before. In a rack whose clocks were stepped behind chronyd's back, bus time has followed such a
 * clock until it was 6 ms off, with a bound of 3 ms (2026-11). What was said before the step holds
 * all the same, for CLOCK_MONOTONIC plus the offset of that time. So after each step both words
 * count, and the bound covers what either allows, until the source has spoken often enough since.
 *
 * Example: 200 us were held when the clock was stepped by 4 ms. The source says 300 us. The bound
 * is 4.2 ms, and grows with the drift; if it was the source that put the clock right, it is 300 us
 * again a minute later.
 *
 * While a machine is suspended, CLOCK_MONOTONIC stands still, and nothing of what was held counts.
 *
 * This file reads no clock, and does not say when a bound is too great (loader/order/clock.c).
 */
#ifndef BARLINE_CLOCK_SOURCE_CORE_H
#define BARLINE_CLOCK_SOURCE_CORE_H

#include "maps/clock_abi.h"
#include "core/core.h"

/** struct bl_clock_sample - what a source says at one reading. */
struct bl_clock_sample {
	int synced;         /* the source answers, and calls the clock synchronised */
	int fresh;          /* @bound_ns was determined anew since the last reading */
	int late;           /* or since the reading before that one */
	__u64 bound_ns;     /* greatest error of the clock, ns; unspecified if not @synced */
	__u32 drift_ppb;    /* how fast that error may grow, ppb; 0: the source does not say */
	__s32 tai_offset_s; /* TAI - UTC as the source has it, seconds */
};

/** struct bl_clock_hold - the last word of a source. All zero: there was none. */
struct bl_clock_hold {
	int ever;             /* the following three are valid */
	__u64 bound_ns;       /* greatest error of CLOCK_MONOTONIC + @offset_ns at @as_of_ns */
	__u64 as_of_ns;       /* CLOCK_MONOTONIC */
	__s64 offset_ns;      /* the clock less CLOCK_MONOTONIC */
	__u32 drift_ppb;      /* of the word, as the source says */
	int read;             /* the following two are valid */
	__u64 last_ns;        /* CLOCK_MONOTONIC of the last reading */
	__s64 last_offset_ns; /* the clock less CLOCK_MONOTONIC at the last reading */
	int read_twice;       /* the following two are valid */
	__u64 before_ns;      /* the same of the reading before the last one */
	__s64 before_offset_ns;
	int doubted;         /* the following are valid: the clock was stepped */
	__u32 doubt_words;   /* that the source has said since */
	__u64 doubt_ns;      /* CLOCK_MONOTONIC of the reading at which the last step was seen */
	__u64 old_bound_ns;  /* the word that was held before the first of these steps: */
	__u64 old_as_of_ns;  /* @bound_ns, @as_of_ns */
	__s64 old_offset_ns; /* and @offset_ns */
};

/*
 * A source knows of a step when it has measured often enough since then: for so long, and with so
 * many words; or for so long if it speaks rarely.
 */
#define BL_CLOCK_DOUBT_NS      60000000000ULL
#define BL_CLOCK_DOUBT_WORDS   8
#define BL_CLOCK_DOUBT_MOST_NS 600000000000ULL

/*
 * The kernel adds 500 us to maxerror at each second (second_overflow() in kernel/time/ntp.c), until
 * a daemon sets it again.
 */
#define BL_KERNEL_MAXERROR_US 500

/*
 * It does so at the first tick of a second, which an idle CPU may be late for. So long after the
 * beginning of a second it has.
 */
#define BL_KERNEL_TICK_US 20000

/* A step of the clock begins a second without that. What is less than this is slewing, or noise. */
#define BL_KERNEL_STEP_US 500

/** struct bl_kernel_reading - what adjtimex(2) said. */
struct bl_kernel_reading {
	__u64 mono_ns;  /* CLOCK_MONOTONIC; 0: there was no reading */
	__u64 error_us; /* maxerror */
	__s64 second;   /* of CLOCK_REALTIME */
	__u32 us;       /* of the second */
};

/* The time of the clock from @was to @now, us. */
BL_CORE __s64 bl_kernel_went_us(const struct bl_kernel_reading *was,
				const struct bl_kernel_reading *now)
{
	return (now->second - was->second) * 1000000 + (__s64)now->us - (__s64)was->us;
}

/**
 * bl_kernel_was_set - whether a daemon has set maxerror between the readings @was and @now; the
 * latter must not be within BL_KERNEL_TICK_US of the beginning of a second.
 *
 * It is noticed by a value that the kernel would not have come to by itself: one that is no
 * multiple of its steps away, or one that another number of steps leads to than seconds have begun.
 * That is how a daemon is noticed that sets the same value over and over. One step more may be a
 * tick that was late before @was. If somebody has stepped the clock, seconds may have begun without
 * a step, or twice.
 *
 * A daemon that sets exactly what the kernel would have come to by itself is not noticed. The older
 * word remains in force then, which is wrong by no more than the kernel's own growth in between.
 */
BL_CORE int bl_kernel_was_set(const struct bl_kernel_reading *was,
			      const struct bl_kernel_reading *now)
{
	__u64 rise = now->error_us - was->error_us, took_us = (now->mono_ns - was->mono_ns) / 1000;
	__s64 off = bl_kernel_went_us(was, now) - (__s64)took_us, began = now->second - was->second;
	__s64 steps = (__s64)(rise / BL_KERNEL_MAXERROR_US);

	if (now->error_us < was->error_us || rise % BL_KERNEL_MAXERROR_US)
		return 1;
	if (off >= BL_KERNEL_STEP_US || off <= -BL_KERNEL_STEP_US)
		return steps > (__s64)(took_us / 1000000) + 2;
	return steps < began || steps > began + 1;
}

/**
 * bl_kernel_set_zero - whether maxerror may have been set to 0 and grown since. A daemon that
 * measures its error reports one that is a multiple of 500 us once in 500 times.
 */
BL_CORE int bl_kernel_set_zero(__u64 error_us)
{
	return error_us % BL_KERNEL_MAXERROR_US == 0;
}

/* The clock was stepped before the reading at @mono: what is held holds beside later words. */
BL_CORE void bl_clock_doubt(struct bl_clock_hold *h, __u64 mono)
{
	if (!h->doubted) {
		h->old_bound_ns = h->bound_ns;
		h->old_as_of_ns = h->as_of_ns;
		h->old_offset_ns = h->offset_ns;
	}
	h->doubted = 1;
	h->doubt_words = 0;
	h->doubt_ns = mono;
}

/* Ends the doubt if that is due at @mono. */
BL_CORE void bl_clock_believe(struct bl_clock_hold *h, __u64 mono)
{
	__u64 age = mono - h->doubt_ns;

	if ((age >= BL_CLOCK_DOUBT_NS && h->doubt_words >= BL_CLOCK_DOUBT_WORDS) ||
	    age >= BL_CLOCK_DOUBT_MOST_NS)
		h->doubted = 0;
}

/** bl_clock_hold_slept - the machine was suspended: only what the source says from now on counts.
 */
BL_CORE void bl_clock_hold_slept(struct bl_clock_hold *h)
{
	h->bound_ns = BL_CLOCK_BOUND_MAX_NS;
	h->read = h->read_twice = h->doubted = 0;
}

/**
 * bl_clock_hold_read - take one reading into account. Returns whether it was a word of the source
 * that is held now.
 * @mono, @offset_ns: CLOCK_MONOTONIC of the reading, and the clock less CLOCK_MONOTONIC.
 * @noise_ns: error of @offset_ns; a smaller difference between two readings is no step.
 */
BL_CORE int bl_clock_hold_read(struct bl_clock_hold *h, const struct bl_clock_sample *s, __u64 mono,
			       __s64 offset_ns, __u64 noise_ns)
{
	/* A late word is no word if what happened since then is unknown. */
	int word = s->late ? s->fresh && h->read_twice : s->fresh || !h->ever;
	__s64 low = offset_ns, high = offset_ns;
	__u64 step;

	if (h->read) {
		low = low < h->last_offset_ns ? low : h->last_offset_ns;
		high = high > h->last_offset_ns ? high : h->last_offset_ns;
	}
	if (s->late && h->read_twice) {
		low = low < h->before_offset_ns ? low : h->before_offset_ns;
		high = high > h->before_offset_ns ? high : h->before_offset_ns;
	}
	step = (__u64)high - (__u64)low;
	if (step > noise_ns && h->ever)
		bl_clock_doubt(h, mono);
	word = word && s->synced;
	if (word) {
		h->doubt_words++;
		h->bound_ns = s->bound_ns + (step > noise_ns ? step : 0);
		h->as_of_ns = s->late                ? h->before_ns
			      : h->read              ? h->last_ns
			      : mono > 1000000000ULL ? mono - 1000000000ULL
						     : 0;
		h->offset_ns = offset_ns;
		h->drift_ppb = s->drift_ppb;
		h->ever = 1;
	}
	h->before_ns = h->last_ns;
	h->before_offset_ns = h->last_offset_ns;
	h->read_twice = h->read;
	h->last_ns = mono;
	h->last_offset_ns = offset_ns;
	h->read = 1;
	bl_clock_believe(h, mono);
	return word;
}

/* The bound @bound_ns of @as_of_ns, as it is at @mono. */
BL_CORE __u64 bl_clock_grown(__u64 bound_ns, __u64 as_of_ns, __u64 mono, __u32 drift_ppb)
{
	__u64 age = mono > as_of_ns ? mono - as_of_ns : 0;

	if (bound_ns >= BL_CLOCK_BOUND_MAX_NS || age >> 42)
		return BL_CLOCK_BOUND_MAX_NS;
	return bound_ns + ((age >> 10) + 1) * drift_ppb / 976562;
}

/** bl_clock_hold_drift - how fast the held bound grows, ppb: by @drift_ppb at the least. */
BL_CORE __u32 bl_clock_hold_drift(const struct bl_clock_hold *h, __u32 drift_ppb)
{
	return h->drift_ppb > drift_ppb ? h->drift_ppb : drift_ppb;
}

/**
 * bl_clock_hold_bound - greatest error of CLOCK_MONOTONIC + @h->offset_ns at @mono, ns, at most
 * BL_CLOCK_BOUND_MAX_NS; that if the source has never called the clock synchronised.
 */
BL_CORE __u64 bl_clock_hold_bound(const struct bl_clock_hold *h, __u64 mono, __u32 drift_ppb)
{
	__u64 all, old, apart;

	if (!h->ever)
		return BL_CLOCK_BOUND_MAX_NS;
	drift_ppb = bl_clock_hold_drift(h, drift_ppb);
	all = bl_clock_grown(h->bound_ns, h->as_of_ns, mono, drift_ppb);
	if (h->doubted) {
		apart = h->offset_ns > h->old_offset_ns
				? (__u64)h->offset_ns - (__u64)h->old_offset_ns
				: (__u64)h->old_offset_ns - (__u64)h->offset_ns;
		old = bl_clock_grown(h->old_bound_ns, h->old_as_of_ns, mono, drift_ppb);
		if (apart >= BL_CLOCK_BOUND_MAX_NS)
			return BL_CLOCK_BOUND_MAX_NS;
		all = old + apart > all ? old + apart : all;
	}
	return all < BL_CLOCK_BOUND_MAX_NS ? all : BL_CLOCK_BOUND_MAX_NS;
}

/**
 * bl_clock_hold_leave - write what the next keeper has to know of the system clock into the record.
 * @error_ns: greatest error of the last reading.
 */
BL_CORE void bl_clock_hold_leave(const struct bl_clock_hold *h, struct bl_clock *c, __u64 error_ns)
{
	c->system_ns = h->last_offset_ns;
	c->system_error_ns = error_ns;
	c->system_stepped_ns = h->doubted ? h->doubt_ns : 0;
}

/**
 * bl_clock_hold_inherit - continue what the keeper of the record @c held, which may be void now.
 * @held_ns: the clock at @mono, as that keeper believed it, less CLOCK_MONOTONIC.
 * @offset_ns, @noise_ns: the system clock less CLOCK_MONOTONIC at @mono, and the error of that.
 *
 * If the system clock was stepped since, or shortly before, the new keeper has the doubts of the
 * old one: the words are counted anew.
 */
BL_CORE void bl_clock_hold_inherit(struct bl_clock_hold *h, const struct bl_clock *c, __u64 mono,
				   __s64 held_ns, __s64 offset_ns, __u64 noise_ns)
{
	__u64 step = offset_ns > c->system_ns ? (__u64)offset_ns - (__u64)c->system_ns
					      : (__u64)c->system_ns - (__u64)offset_ns;

	h->ever = 1;
	h->bound_ns = bl_clock_grown(c->bound_ns, c->as_of_ns, mono, c->drift_ppb);
	h->as_of_ns = mono;
	h->offset_ns = held_ns;
	if (step > noise_ns + c->system_error_ns) {
		bl_clock_doubt(h, mono);
	} else if (c->system_stepped_ns) {
		bl_clock_doubt(h, c->system_stepped_ns);
		bl_clock_believe(h, mono);
	}
}

#endif
