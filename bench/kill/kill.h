/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run failover --kill: reliable scatterings while something fails.
 *
 *   kill.c       options, the life of the lab, what is killed and how, the report
 *   kill_work.c  the workers: one endpoint on each host sends to all and keeps a diary in shared
 *                memory
 *   kill_judge.c checks the diaries: one order, all or none, nothing twice, nothing invented, no
 *                loss that is not reported
 *   kill_flow.c  computes throughput and gaps from the diaries
 *
 * The time of a run is from the kill until the last correct host has delivered a message that was
 * sent half of dead_after after the kill, or later. Such a message cannot be delivered before the
 * commit barrier has passed the failure.
 */
#ifndef BARLINE_BENCH_KILL_H
#define BARLINE_BENCH_KILL_H

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

/** struct kill_got - One delivery. */
struct kill_got {
	uint32_t sender, seq;
	uint64_t ts;
	uint64_t at_ns; /* CLOCK_MONOTONIC */
};

/** struct kill_sent - One scattering. */
struct kill_sent {
	uint64_t to; /* receivers; bit: host, from 0 */
	/*
	 * timestamp of the sender's last delivery before it; the scattering must have a later one
	 * (causality)
	 */
	uint64_t after;
};

/** struct kill_worker - The diary of a worker. Written by the worker only, except for @leave. */
struct kill_worker {
	_Atomic int ready;        /* its endpoint is open */
	_Atomic uint32_t ngot;    /* elements of @got; stored after the element */
	_Atomic uint32_t nsent;   /* elements of @sent; stored after the element */
	_Atomic uint64_t told_ns; /* first call of its proc_fail callback; 0: none yet */
	/*
	 * first delivery of a message that was sent at @late_ns of struct kill_ctl or later; 0:
	 * none yet
	 */
	_Atomic uint64_t recovered_ns;
	_Atomic uint64_t turn_ns; /* last begin of its loop, CLOCK_MONOTONIC */
	_Atomic uint64_t gap_ns;  /* longest time between two of these */
	_Atomic int all_acked;    /* all that it sent is acknowledged */
	/* written by others: end by bl_exit() as soon as all that it sent is acknowledged */
	_Atomic int leave;
	_Atomic int left; /* it does so */
	int pid;
	struct bl_addr addr;
	char error[256];
	struct bl_stats stats;
	struct kill_sent sent[KILL_SENT];
	bool failed[KILL_SENT]; /* by number: the sender was told that the scattering failed */
	struct kill_got got[KILL_GOT];
};

enum kill_phase { KILL_REGISTER, KILL_TALK, KILL_DRAIN, KILL_EXIT };

/** struct kill_ctl - What driver and workers share. Written by the driver. */
struct kill_ctl {
	unsigned int n;           /* workers */
	unsigned int interval_us; /* between two scatterings of a worker */
	unsigned int size;        /* of a message, bytes */
	unsigned int fan;         /* receivers of a scattering, at most; 0: all workers */
	uint64_t seed;            /* of the random choice of receivers */
	_Atomic int phase;        /* enum kill_phase */
	_Atomic uint64_t late_ns; /* CLOCK_MONOTONIC, see the top of the file; 0: before the kill */
	struct kill_worker w[LAB_HOSTS_MAX];
};

/** struct kill_message - The begin of a message. */
struct kill_message {
	uint32_t sender, seq;
	uint64_t sent_ns; /* CLOCK_MONOTONIC */
};

/** kill_main - `barline lab run failover --kill`. Returns the exit status. */
int kill_main(int argc, char **argv);

/** kill_work - The life of worker @i, in its namespace. Returns its exit status. */
int kill_work(struct kill_ctl *c, unsigned int i);

/** struct kill_verdict - The result of kill_judge(). */
struct kill_verdict {
	uint32_t delivered; /* scatterings that all correct receivers delivered */
	uint32_t none;      /* scatterings of correct senders that no receiver delivered */
	uint32_t cut;       /* scatterings of failed senders that no receiver delivered */
	char error[256];    /* the first violation of a promise; "": none */
};

/**
 * kill_judge - Checks the diaries of the workers.
 * @correct: workers that have not failed; bit: host, from 0
 * Returns 0 if all promises were kept, else 1 and v->error.
 */
int kill_judge(const struct kill_ctl *c, uint64_t correct, struct kill_verdict *v);

/** struct kill_flow - The flow of messages between correct workers in a span of time. */
struct kill_flow {
	double per_s;        /* mean of the deliveries per second at each of them */
	double gap_ms;       /* longest time without a delivery at one of them */
	uint64_t gap_end_ns; /* CLOCK_MONOTONIC: the end of this time */
};

/**
 * kill_flow - Computes the flow from @from_ns to @to_ns (CLOCK_MONOTONIC) from the diaries of
 * @correct (bit: host, from 0). The values are 0 if the span is empty or no worker is correct.
 */
struct kill_flow kill_flow(const struct kill_ctl *c, uint64_t correct, uint64_t from_ns,
			   uint64_t to_ns);

#endif
