/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long an endpoint has stood still in the middle of one send. Pure: time is an argument.
 *
 * The daemon samples each endpoint's line four times per limit. What counts is the time between
 * samples that found the same send, less the time for which threads of the process waited for a
 * CPU. A sample counts for two intervals at most: if the machine stood still as a whole, the
 * process is not to blame. A line that changes to a time from before the last sample is no new
 * send, since a send notes the clock: a process cannot hold the barriers by writing one old time
 * after the other.
 *
 * Threads of a process can keep each other from the CPU on purpose, so that time is limited as
 * well.
 *
 * Example: a limit of 20 ms, a sample every 5 ms. A process is stopped with 7000 in its line. The
 * samples at 0, 5, 10, 15 and 20 ms find 7000: at 20 ms the send is void. If the process had waited
 * for a CPU from 5 to 15 ms, it would be void at 30 ms.
 */
#ifndef BARLINE_VOID_CORE_H
#define BARLINE_VOID_CORE_H

#include <stdbool.h>

#include "maps/host_abi.h"
#include "core/core.h"

#define BL_SEND_SAMPLES 4 /* per limit */

/** struct bl_send_watch - what the last sample of a line found. All zero: there was none. */
struct bl_send_watch {
	__u64 at_ns;     /* CLOCK_MONOTONIC; 0: never */
	__u64 ts;        /* of the line */
	__u64 bus_ns;    /* bus time of the sample */
	__u64 waited_ns; /* by the process for CPUs, in all */
	__u64 age_ns;    /* for which the send has stood still, less the time without a CPU */
	__u64 all_ns;    /* for which it has stood still */
	__u64 held_ns;   /* for which void sends have held B lately: see bl_send_voided() */
	__u64 void_ns;   /* CLOCK_MONOTONIC of the last one */
};

/**
 * bl_send_stands - whether a line that says @ts is still in the send that the last sample found.
 * @over: of the endpoint's struct bl_ep_word.
 */
static inline bool bl_send_stands(const struct bl_send_watch *w, __u64 ts, __u64 over)
{
	return w->at_ns && ts && ts != BL_TIME_NONE && ts > over && w->ts &&
	       w->ts != BL_TIME_NONE && (ts == w->ts || ts < w->bus_ns);
}

/**
 * bl_send_sample - one sample at @now_ns (CLOCK_MONOTONIC) and @bus_ns.
 * @stands: what bl_send_stands() has said.
 * @waited_ns: for how long the process has waited for CPUs, in all; needed only if the send stands.
 * @most_ns: limit for a process without a CPU. It may have none because its own threads take it,
 * and a switch puts out a host that lags for longer (lag_max).
 * Returns whether it has stood still for @limit_ns.
 */
static inline bool bl_send_sample(struct bl_send_watch *w, __u64 ts, bool stands, __u64 waited_ns,
				  __u64 now_ns, __u64 bus_ns, __u64 limit_ns, __u64 most_ns)
{
	__u64 most = limit_ns / BL_SEND_SAMPLES * 2, since = bl_min64(now_ns - w->at_ns, most),
	      waited = waited_ns > w->waited_ns ? waited_ns - w->waited_ns : 0;

	if (!stands)
		w->age_ns = w->all_ns = 0;
	else if (w->waited_ns || !waited_ns)
		w->age_ns += since > waited ? since - waited : 0;
	if (stands)
		w->all_ns += since;
	w->waited_ns = stands ? waited_ns : 0;
	w->at_ns = now_ns;
	w->ts = ts;
	w->bus_ns = bus_ns;
	return w->age_ns >= limit_ns || w->all_ns >= most_ns;
}

/**
 * bl_send_voided - the send has become void at @now_ns (CLOCK_MONOTONIC). A process that stops in
 * one send after the other would hold the barriers most of the time, so its void sends are added
 * up, and a tenth of the time is forgotten. Returns whether they make @most_ns.
 *
 * Example: 20 ms of every 40, and a limit of 2 s: after 100 sends 2 s less 400 ms, and it is to go
 * with send 125, after 5 s. 20 ms of every 200 are forgotten each time.
 */
static inline bool bl_send_voided(struct bl_send_watch *w, __u64 now_ns, __u64 most_ns)
{
	__u64 forget = (now_ns - w->void_ns) / 10;

	w->held_ns = (w->held_ns > forget ? w->held_ns - forget : 0) + w->all_ns;
	w->void_ns = now_ns;
	return w->held_ns >= most_ns;
}

#endif
