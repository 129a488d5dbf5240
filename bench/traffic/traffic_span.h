/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time in which all flows of a workload send. Only this time counts for the goodput.
 *
 * A program reports when its intervals began and ended relative to its own start, but not when it
 * started. The driver knows bounds: a flow did not begin before its program was started, and its
 * last interval ended before the end of the program was noticed. An interval counts if it lies
 * between the latest possible begin of any flow and the earliest possible end of any flow, wherever
 * within its bounds its own flow began.
 *
 * Example: two flows of 6 s were started at 0 and 2.5 s, and their ends were noticed at 6.25
 * and 9.0 s. So the first began between 0 and 0.25 s, and the other between 2.5 and 3.0 s, and both
 * sent from 3.0 to 6.0 s. Of the first flow, the intervals from 3 to 4 and from 4 to 5 count (that
 * from 5 to 6 may have ended at 6.25); of the second one, those from 1 to 2 and from 2 to 3.
 */
#ifndef BARLINE_BENCH_TRAFFIC_SPAN_H
#define BARLINE_BENCH_TRAFFIC_SPAN_H

#include <stdbool.h>

/** struct traffic_span - When a flow sends, in seconds of the driver's clock. */
struct traffic_span {
	double least, most; /* bounds of its begin */
	double life;        /* for how long it sends */
};

/**
 * traffic_common - Computes the time from *@from to *@to in which all of the @n flows @s certainly
 * send. If there is none, *@to <= *@from.
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
 * traffic_counts - Returns whether an interval of flow @s lies between @from and @to, whenever the
 * flow began.
 * @start, @end: of the interval, in seconds since the begin of the flow
 */
static inline bool traffic_counts(const struct traffic_span *s, double start, double end,
				  double from, double to)
{
	return s->least + start >= from && s->most + end <= to;
}

#endif
