/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two judges of the random-kill campaign (test_kills.c), in addition to the one of order and
 * atomicity (bench/kill/kill_judge.c): who may be announced, and for how long all others may stand
 * still.
 *
 * Each fault states whom it may cost their membership, and how long it may hold up everyone. Any
 * other announcement, and a longer standstill, fail the run. What this machine did to the rack is
 * no fault of barline, so the time that it took away is measured (stall_watch.h) and allowed for.
 *
 * Example: process_limit_ms is 1000, and a process is stopped for 12 s. It may be announced as
 * "in_flight", "window" or "ring", and the others may stand still for 1 s and BASE_MS. If they
 * stand still for 5 s, or if another process, which nobody stopped, is announced as "ring", the run
 * fails.
 *
 * These functions are pure: times are arguments.
 */
#ifndef BARLINE_TESTS_KILL_LIMITS_H
#define BARLINE_TESTS_KILL_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** struct kl_proc - what is known of a process. */
struct kl_proc {
	/*
	 * Killed by SIGKILL; told to leave; its host's programs were removed; it got an error and
	 * has ended.
	 */
	bool killed, leaves, detached, ended;
	/* Time for which it was stopped; longest time between two of its turns. */
	uint64_t stopped_ns, gap_ns;
};

/** struct kl_run - what is known of a run. */
struct kl_run {
	/*
	 * @may_fall: nodes (bit: index) that may be announced as cut off or torn.
	 * @may_owe: nodes that may be announced for not answering.
	 * @waits_ns: time for which two endpoints may not have reached each other by any path.
	 * @starved_ns: longest time for which a thread of the rack was kept from its CPU.
	 */
	uint64_t may_fall, may_owe, waits_ns, starved_ns;
	uint64_t process_limit_ns, dead_after_ns, answer_ns, stuck_ns;
};

enum kl_says { KL_FALSE, KL_MAY, KL_STARVED };

/*
 * Several threads on the path of a beacon may wait for their CPU one after the other, so a fourth
 * of the limit for one thread is enough to call it starved.
 */
static inline enum kl_says kl_starved(const struct kl_run *r, uint64_t limit_ns)
{
	return r->starved_ns >= limit_ns / 4 ? KL_STARVED : KL_FALSE;
}

/**
 * kl_process - whether process @p may be announced as gone for @why (maps/failure_abi.h). A limit
 * counts only the time in which the process did nothing while the daemon sampled it, which is never
 * more than its standstill. Three fourths of the limit leave room for the times of the samples.
 */
static inline enum kl_says kl_process(const struct kl_run *r, const struct kl_proc *p,
				      const char *why)
{
	uint64_t enough = r->process_limit_ns / 4 * 3;

	/*
	 * A process that got an error also ends by bl_exit(): its host was announced and had not
	 * heard of it yet.
	 */
	if (!strcmp(why, "left"))
		return p->leaves || p->ended ? KL_MAY : KL_FALSE;
	if (!strcmp(why, "died"))
		return p->killed || p->ended || p->detached ? KL_MAY : KL_FALSE;
	if (!strcmp(why, "in_flight") || !strcmp(why, "window") || !strcmp(why, "ring")) {
		if (p->stopped_ns >= enough)
			return KL_MAY;
		if (p->gap_ns >= enough)
			return kl_starved(r, r->process_limit_ns);
		/*
		 * A process that works, and whose messages are old nevertheless, is put out for its
		 * window, too (bl_stuck_lags() in loader/order/stuck_core.h): its receivers do not
		 * answer for so long.
		 */
		if (strcmp(why, "window"))
			return KL_FALSE;
		return r->waits_ns >= r->stuck_ns / 4 * 3 ? KL_MAY : kl_starved(r, r->stuck_ns);
	}
	if (!strcmp(why, "unreachable") && r->waits_ns >= r->stuck_ns / 4 * 3)
		return KL_MAY;
	if (!strcmp(why, "unreachable"))
		return kl_starved(r, r->stuck_ns);
	return KL_FALSE;
}

/** kl_node - whether node @i may be announced as failed for @why (enum bl_det_why). */
static inline enum kl_says kl_node(const struct kl_run *r, unsigned int i, const char *why)
{
	if (!strcmp(why, "down"))
		return r->may_owe >> i & 1 ? KL_MAY : kl_starved(r, r->answer_ns);
	if (!strcmp(why, "cut-off") || !strcmp(why, "torn"))
		return r->may_fall >> i & 1 ? KL_MAY : kl_starved(r, r->dead_after_ns);
	return KL_FALSE;
}

/**
 * kl_standstill - for how long nothing was completed between @from and @to: the sum of all gaps of
 * at least @least between two entries of @at (sorted, @n entries), and between these and the ends.
 * @lost(@ctx) returns the time that the machine took away in a gap, which is subtracted.
 */
static inline uint64_t kl_standstill(const uint64_t *at, size_t n, uint64_t from, uint64_t to,
				     uint64_t least,
				     uint64_t (*lost)(void *ctx, uint64_t from, uint64_t to),
				     void *ctx)
{
	uint64_t sum = 0, last = from;
	size_t k;

	for (k = 0; k <= n; k++) {
		uint64_t now = k < n ? at[k] : to;
		uint64_t gap, gone;

		if (now > to)
			now = to;
		if (now <= last)
			continue;
		gap = now - last;
		gone = gap >= least ? lost(ctx, last, now) : 0;
		if (gap >= least && gap > gone)
			sum += gap - gone;
		last = now;
	}
	return sum;
}

#endif
