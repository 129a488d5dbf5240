/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the endpoint tells of itself in its page (maps/figures_abi.h), for barline metrics and
 * barline trace. Nothing in the library depends on it.
 *
 * A reading of the clock took 125 to 155 ns in the virtual machine where this was measured
 * (docs/look.md), as much as all the rest. So a send uses what it has read anyway. Deliveries are
 * measured in the first call that delivers after the process may have slept, and in each
 * BL_FIG_SAMPLE-th one of a process that does not sleep; and frames whose arrival was measured
 * (struct bl_rec).
 */
#ifndef BARLINE_LIB_FIGURES_H
#define BARLINE_LIB_FIGURES_H

#include "internal.h"

#define BL_FIG_EVERY  64 /* calls after which the counters are copied */
#define BL_FIG_SAMPLE 16 /* calls that deliver, of which one is measured */

/** bl_fig_copy - copy the counters into the page. */
void bl_fig_copy(struct bl_endpoint *ep);

/** bl_fig_sleep - the process may sleep now, or do something else: copy the counters. */
static inline void bl_fig_sleep(struct bl_endpoint *ep)
{
	bl_fig_copy(ep);
	ep->fig_slept = true;
}

/** bl_fig_call - count a call, and copy the counters now and then. */
static inline void bl_fig_call(struct bl_endpoint *ep)
{
	if (!(++ep->fig_calls % BL_FIG_EVERY))
		bl_fig_copy(ep);
}

/** bl_fig_staged - at time @mono something was staged, and nothing was before. */
void bl_fig_staged(struct bl_endpoint *ep, bool reliable, uint64_t mono);

/**
 * bl_fig_held - what is staged waits for @why. @p: BL_FIG_WINDOW: for whose window; else NULL.
 */
void bl_fig_held(struct bl_endpoint *ep, bool reliable, uint64_t mono, enum bl_fig_why why,
		 const struct bl_peer *p);

/**
 * bl_fig_left - what was staged, if anything, got the timestamp @ts at time @mono. @ts 0: it was
 * dropped, and @mono does not matter.
 */
void bl_fig_left(struct bl_endpoint *ep, bool reliable, uint64_t mono, uint64_t ts);

/** bl_fig_hold - the frame @b, whose arrival was measured, is delivered. */
void bl_fig_hold(struct bl_endpoint *ep, bool reliable, const struct bl_buf *b);

/** bl_fig_measure - measure a call that hands out @n messages. */
void bl_fig_measure(struct bl_endpoint *ep, bool reliable, const struct bl_delivery *d, int n);

/** bl_fig_delivered - a call hands out @n messages, which is more than 0. */
static inline void bl_fig_delivered(struct bl_endpoint *ep, bool reliable,
				    const struct bl_delivery *d, int n)
{
	if (!ep->fig_slept && ep->fig_recv++ % BL_FIG_SAMPLE)
		return;
	ep->fig_slept = false;
	bl_fig_measure(ep, reliable, d, n);
}

#endif
