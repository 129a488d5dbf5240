/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How far ahead of the clock the allocator's slots begin: as long as its recent runs needed, from
 * the start of a run until its packets can be announced to their senders. A window that is shared
 * out as a whole makes one long run and many short ones; with the duration of the last run alone as
 * the lead, 92 % of the packets were late (pipeline, max-min fair, window 256, load 0.8,
 * 2026-11-21).
 *
 * Example, in slots: the span is 1000; runs need 20, but each 30th needs 400. The lead is 500 (a
 * quarter more than the slowest run), also between the slow runs, since they are remembered for one
 * to two spans. A run that needed longer than the greatest possible lead was a pause of the core or
 * of the machine, and says nothing about the next run.
 */
#ifndef BARLINE_ARBITER_LEAD_H
#define BARLINE_ARBITER_LEAD_H

#include <stdint.h>

/** struct bl_lead - The slowest recent runs; zeroed: none. One unit of time for everything. */
struct bl_lead {
	uint64_t worst[2]; /* longest run of the present span, and of the one before */
	uint64_t until;    /* end of the present span */
};

/**
 * bl_lead - Record the last run and return the lead of the next one.
 * @took: duration of the last run.
 * @span: longer than the time from one slow run to the next.
 * @least, @most: limits of the result.
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
