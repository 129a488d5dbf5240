/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When all flows of a workload sent at the same time: only that time counts for its goodput.
 *
 * A program says how long after its own begin an interval began and ended, but not when it began
 * itself. The driver knows bounds: a program cannot have begun before it was started, nor later
 * than its last interval's end before it was seen to have ended. A second counts if it lies between
 * the latest possible begin of any flow and the earliest possible end of any, wherever in its
 * bounds its own flow began.
 *
 * Example: two flows of 6 s, started at 0 and 2.5 s, seen to have ended at 6.25 and 9.0 s. The
 * first began between 0 and 0.25 s, the other between 2.5 and 3.0 s. All send from 3.0 to 6.0 s:
 * of the first flow the seconds from 3 to 4 and from 4 to 5 count (that from 5 to 6 may have ended
 * at 6.25), of the second one those from 1 to 2 and from 2 to 3.
 */
#ifndef BARLINE_CLI_TRAFFIC_SPAN_H
#define BARLINE_CLI_TRAFFIC_SPAN_H

#include <stdbool.h>

/**
 * struct traffic_span - a flow, in seconds by the driver's clock.
 * @least, @most: it began between these. @life: it sends for so long.
 */
struct traffic_span {
	double least, most, life;
};

/**
 * traffic_common - the time in which all of @n flows surely send.
 * @s: flows. @from, @to: the time gets there; @to <= @from if there is none.
 */
static inline void traffic_common(const struct traffic_span *s, unsigned int n, double *from,
				  double *to)
{
	unsigned int i;

	*from = *to = 0;
	for (i = 0; i < n; i++) {
		double end = s[i].least + s[i].life;

		if (!i || s[i].most > *from)
			*from = s[i].most;
		if (!i || end < *to)
			*to = end;
	}
}

/**
 * traffic_counts - does an interval of flow @s lie between @from and @to, whenever the flow began?
 * @start, @end: of the interval, in seconds since the flow's begin.
 */
static inline bool traffic_counts(const struct traffic_span *s, double start, double end,
				  double from, double to)
{
	return s->least + start >= from && s->most + end <= to;
}

#endif
