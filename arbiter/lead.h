/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far ahead of the clock the allocator's slots begin: as long as its runs need of late, from
 * their begin until their packets can be told to their senders. A window that is shared out as a
 * whole makes one long run and many short ones; with the time of the last run alone as the lead, 92
 * % of the packets were late (pipeline, max-min fair, window 256, load 0.8, 2026-11-21).
 *
 * Example, in slots: span 1000, runs need 20, but each 30th 400. The lead is 500 (a quarter more
 * than the slowest), also between these, since they are remembered for a span or two. A run that
 * needed more than can be led is a pause, of the core or of the machine: nothing follows from it
 * for the next.
 */
#ifndef BARLINE_ARBITER_LEAD_H
#define BARLINE_ARBITER_LEAD_H

#include <stdint.h>

/**
 * struct bl_lead - zeroed: nothing known. @worst: of the present span and of the one before.
 * @until: when the present one ends. All in the caller's unit of time.
 */
struct bl_lead {
	uint64_t worst[2];
	uint64_t until;
};

/**
 * bl_lead - @took: of the last run. @span: longer than from one slow run to the next. Returns what
 * to lead by, at least @least, at most @most.
 */
static inline uint64_t bl_lead(struct bl_lead *l, uint64_t now, uint64_t took, uint64_t span,
			       uint64_t least, uint64_t most)
{
	uint64_t lead;

	if (now >= l->until) {
		l->worst[1] = now - l->until >= span ? 0 : l->worst[0];
		l->worst[0] = 0;
		l->until = now + span;
	}
	if (took < most && took > l->worst[0])
		l->worst[0] = took;
	lead = l->worst[0] > l->worst[1] ? l->worst[0] : l->worst[1];
	lead += lead / 4;
	return lead < least ? least : lead > most ? most : lead;
}

#endif
