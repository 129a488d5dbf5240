/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The next deadlines of an endpoint: ep->timers_ns of the best-effort stream and ep->rtimer_ns of
 * the reliable one. Both are CLOCK_MONOTONIC; 0 means that nothing is due.
 */
#ifndef BARLINE_LIB_TIMERS_H
#define BARLINE_LIB_TIMERS_H

#include "internal.h"

/** bl_tx_wake_at - make bl_tx_timers() run at @at ns (CLOCK_MONOTONIC) or earlier. */
static inline void bl_tx_wake_at(struct bl_endpoint *ep, uint64_t at)
{
	if (!ep->timers_ns || ep->timers_ns > at)
		ep->timers_ns = at;
}

/** bl_rtx_wake_at - make bl_rtx_timers() run at @at ns (CLOCK_MONOTONIC) or earlier. */
static inline void bl_rtx_wake_at(struct bl_endpoint *ep, uint64_t at)
{
	if (!ep->rtimer_ns || at < ep->rtimer_ns)
		ep->rtimer_ns = at;
}

#endif
