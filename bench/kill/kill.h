/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run failover --kill: reliable scatterings while something dies.
 *
 *   kill.c		options, the lab's life, what is killed and how, the report
 *   kill_work.c	the workers: one endpoint on each host, everybody to everybody, a diary in
 * shared memory kill_judge.c	what the diaries have to say: one order, all or none, nothing twice,
 * nothing invented, nothing lost in silence
 *
 * The time of a run is from the kill to the moment at which the last correct host delivered a
 * message that was sent half of dead_after later, or later still: such a one cannot be delivered
 * before the commit barrier has got past who died.
 */
#ifndef BARLINE_CLI_KILL_H
#define BARLINE_CLI_KILL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/lab.h"
#include "lib/barline.h"

#define KILL_GOT  (1u << 19) /* deliveries that a diary has room for */
#define KILL_SENT (1u << 16) /* scatterings of one worker */

enum kill_what {
	KILL_HOST,
	KILL_TOR,
	KILL_LINK,
	KILL_SPINE,
	KILL_CONTROLLER,
	KILL_ETCD_LEADER,
	KILL_STOP,
	KILL_LEAVE,
	KILL_KINDS
};
extern const char *const kill_names[KILL_KINDS];

/** struct kill_got - one delivery. @at_ns: CLOCK_MONOTONIC. */
struct kill_got {
	uint32_t sender, seq;
	uint64_t ts, at_ns;
};

/**
 * struct kill_sent - one scattering. @to: bit: host, from 0. @after: timestamp of what its sender
 * had delivered last: the scattering's is later (causality).
 */
struct kill_sent {
	uint64_t to, after;
};

/**
 * struct kill_worker - a worker's diary; written by it only. @ngot, @nsent: written after what they
 * count. @failed: by number: its sender was told that it failed. @told_ns: when its proc_fail
 * callback ran first; 0: never.
 * @recovered_ns: when it first delivered what was sent at struct kill_ctl's @late_ns or later.
 * @turn_ns: when its loop was at its beginning last, CLOCK_MONOTONIC. @gap_ns: the longest time
 * between two of these.
 */
struct kill_worker {
	_Atomic int ready;
	_Atomic uint32_t ngot, nsent;
	_Atomic uint64_t told_ns, recovered_ns, turn_ns, gap_ns;
	_Atomic int all_acked;
	/*
	 * set by others: it ends in order, with bl_exit(), as soon as all it sent is acknowledged
	 */
	_Atomic int leave;
	_Atomic int left; /* it has done so */
	int pid;
	struct bl_addr addr;
	char error[256];
	struct bl_stats stats;
	struct kill_sent sent[KILL_SENT];
	bool failed[KILL_SENT];
	struct kill_got got[KILL_GOT];
};

/**
 * struct kill_ctl - shared. @fan: receivers of a scattering; 0: all; else so many at most, drawn
 * with @seed. @phase: enum kill_phase. @late_ns: 0: nothing was killed yet.
 */
enum kill_phase { KILL_REGISTER, KILL_TALK, KILL_DRAIN, KILL_EXIT };
struct kill_ctl {
	unsigned int n, interval_us, size, fan;
	uint64_t seed;
	_Atomic int phase;
	_Atomic uint64_t late_ns;
	struct kill_worker w[LAB_HOSTS_MAX];
};

/** struct kill_message - what a message begins with. */
struct kill_message {
	uint32_t sender, seq;
	uint64_t sent_ns;
};

/** kill_main - `barline lab run failover --kill`. */
int kill_main(int argc, char **argv);

/** kill_work - worker @i's life. The exit status. */
int kill_work(struct kill_ctl *c, unsigned int i);

/**
 * struct kill_verdict - @delivered: at all correct receivers. @none: scatterings of correct
 * senders that failed, at nobody. @cut: of failed senders, at nobody. @error: the first thing that
 * must not be; "": nothing.
 */
struct kill_verdict {
	uint32_t delivered, none, cut;
	char error[256];
};
/** kill_judge - the diaries of those in @correct (bit: host, from 0). 0: as promised. */
int kill_judge(const struct kill_ctl *c, uint64_t correct, struct kill_verdict *v);

/**
 * struct kill_flow - what the diaries of the correct say of a span of time. @per_s: deliveries per
 * second at each of them, of what correct ones sent: the mean of all. @gap_ms: the longest time
 * without a delivery at one of them, which ended at @gap_end_ns.
 */
struct kill_flow {
	double per_s, gap_ms;
	uint64_t gap_end_ns;
};
/**
 * kill_flow - of those in @correct (bit: host, from 0), from @from_ns to @to_ns (CLOCK_MONOTONIC).
 * Zeroes where there is no time, or nobody.
 */
struct kill_flow kill_flow(const struct kill_ctl *c, uint64_t correct, uint64_t from_ns,
			   uint64_t to_ns);

#endif
