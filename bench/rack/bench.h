/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measuring a rack: worker processes, one per endpoint, and a driver that leads them through phases
 *by shared memory.
 *
 *	register	every worker has its endpoint and knows all others
 *	all-to-all	every worker broadcasts to all (itself included) as fast as windows allow,
 *and receives
 *	drain		nobody sends; until everything sent was delivered, or nothing came for a
 *			second (reliably, and nothing was reported as failed: for 30)
 *	latency		one worker sends single messages at random phases of the beacon interval to
 *another; four times: ordered and plain UDP, receiver blocking and busy-polling group
 *every worker broadcasts at a fixed rate, whatever comes back; how old the others' messages are
 *(bench_group.c)
 *
 * What makes the check strong: each worker hashes its whole delivered sequence (sender, number) and
 *keeps the hash after every BENCH_CHECK messages, so two receivers agree on a prefix if and only if
 *(but for 2^-64) their hashes there are equal.
 */
#ifndef BARLINE_CLI_BENCH_H
#define BARLINE_CLI_BENCH_H

#include <argp.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/util/args.h"
#include "lib/barline.h"

#define BENCH_MAX       64
#define BENCH_CHECK     4096 /* deliveries between two kept hashes */
#define BENCH_CHECKS    (1u << 16)
#define BENCH_LOG       (1u << 18) /* deliveries kept one by one, from the first */
#define BENCH_LAT_MAX   (1u << 17)
#define BENCH_GROUP_MAX (1u << 20) /* deliveries of the group phase, per worker */
/* outside barline's range: plain UDP through the same rack */
#define BENCH_UDP_PORT 7707

/**
 * struct bench_params - @size: bytes per message, at least 8. @batch: broadcasts per flush.
 * @lat_samples: messages per latency cell; 0: none. @group_rate: messages a second of each worker
 * in the group phase; 0: none; @group_s: its length.
 * @loss: probability with which a host of the lab loses a frame that comes; then receivers of best
 * effort are not compared.
 */
struct bench_params {
	double duration_s;
	unsigned int size, batch;
	unsigned int ring_bytes;
	unsigned int lat_samples;
	unsigned int group_rate;
	double group_s;
	bool ipv6;
	bool reliable; /* over the reliable stream */
	double loss;
	const char *out;
};

enum bench_phase { PH_REGISTER, PH_IDLE, PH_ALL, PH_DRAIN, PH_LATENCY, PH_GROUP, PH_EXIT };
/*
 * TALK: the other hosts send a message now and then. In the others they are silent, and promise
 * ahead (core/order/promise_core.h).
 */
enum bench_cell {
	CELL_ORDERED_BLOCK,
	CELL_ORDERED_POLL,
	CELL_TALK_BLOCK,
	CELL_TALK_POLL,
	CELL_UDP_BLOCK,
	CELL_UDP_POLL,
	BENCH_CELLS
};
enum bench_group_cell { GROUP_ORDERED, GROUP_UDP, GROUP_CELLS };

/**
 * struct bench_worker - written by its worker only, but for @pid.
 * @next: number expected next from each sender; a jump counts in @missing.
 * @log, @check: see the top.
 */
struct bench_worker {
	_Atomic int ready;
	_Atomic int idle; /* phase that it has finished */
	_Atomic uint64_t sent, delivered;
	int pid;
	struct bl_addr addr;
	uint64_t hash;
	uint64_t missing, duplicates, ts_backwards, send_failed, again;
	uint32_t next[BENCH_MAX];
	struct bl_stats stats;
	char error[256];
	uint64_t check[BENCH_CHECKS];
	uint64_t log[BENCH_LOG];
	_Atomic uint32_t group_got;
	uint32_t group_sent, group_refused;
	uint32_t group[BENCH_GROUP_MAX]; /* ages at delivery, ns */
};

/**
 * struct bench_ctl - the shared control block. @lat: one-way latency, ns; 0: sample not received.
 */
struct bench_ctl {
	struct bench_params p;
	unsigned int n;
	_Atomic int phase;
	_Atomic int cell;
	unsigned int lat_src, lat_dst;
	uint64_t beacon_ns;
	_Atomic uint32_t lat_got, lat_sent;
	uint32_t lat[BENCH_CELLS][BENCH_LAT_MAX];
	/* CLOCK_MONOTONIC; what was due between the last two is a sample */
	uint64_t group_begin, group_from, group_to;
	struct bench_worker w[BENCH_MAX];
};

/* bench_work.c */
/** bench_worker_main - the life of worker @i, in its namespace. Returns its exit status. */
int bench_worker_main(struct bench_ctl *ctl, unsigned int i);

/* bench_run.c */
struct bench_ctl *bench_new(unsigned int n, const struct bench_params *p);
void bench_free(struct bench_ctl *ctl);
/**
 * bench_spawn - fork worker @i into a namespace (NULL: this one). 0 or 1 after an error message.
 */
int bench_spawn(struct bench_ctl *ctl, unsigned int i, const char *netns);
int bench_wait_ready(struct bench_ctl *ctl);
/**
 * bench_throughput, bench_latency - run the phases; @res gets "throughput", "order", "lag" and
 * "latency". 1: failed, after a message.
 */
int bench_throughput(struct bench_ctl *ctl, json_t *res);
int bench_latency(struct bench_ctl *ctl, json_t *res);
/** bench_worker_lost - 1, after a message, if a worker failed or died. */
int bench_worker_lost(struct bench_ctl *ctl);
/** bench_end - send the workers home and reap them. */
void bench_end(struct bench_ctl *ctl);

/* bench_group.c */
/** bench_group - run the group phase; @res gets "group". 1: failed, after a message. */
int bench_group(struct bench_ctl *ctl, json_t *res);

/* bench_check.c */
/**
 * bench_order - compare all workers' sequences. @res: "order". 0: one order. 1: not, after a
 * message that names the first difference.
 */
int bench_order(const struct bench_ctl *ctl, json_t *res);
/**
 * bench_missing - whether what best effort lost went somewhere. @res: "order", "drops". 0, or 1
 * after a message: messages are missing, their senders were not told, and nothing shows that any
 * frame was lost.
 */
int bench_missing(const json_t *res);

/* bench_report.c */
/** bench_report - print tables or JSON, write files to @p.out if set. 0 or 1. */
int bench_report(const struct bench_ctl *ctl, json_t *res);
/** bench_drops - drops and notes by reason of all nodes in sight, into @res. */
void bench_drops(json_t *res);

/* bench_stat.c */
extern const char *const bench_cell_names[BENCH_CELLS];
/** bench_compare32 - for qsort(), of uint32_t. */
int bench_compare32(const void *a, const void *b);
json_t *bench_quantiles(uint32_t *v, uint32_t n);

/* bench_lag.c */
/**
 * struct bench_lag - samples bus clock minus host barrier of all hosts in sight.
 */
struct bench_lag;
struct bench_lag *bench_lag_new(void);
void bench_lag_sample(struct bench_lag *l);
json_t *bench_lag_end(struct bench_lag *l); /* frees */

/* bench.c */
extern const struct bench_params bench_defaults;
extern const struct argp bench_argp; /* input: struct bench_params */
/**
 * bench_drive - one worker per host h1 to h@n of the namespaces bound in @netns_dir, or @n workers
 * here if it is NULL. Measures, checks, reports. Returns the exit status.
 */
int bench_drive(unsigned int n, const char *netns_dir, const struct bench_params *p,
		bool throughput, bool latency);
int bench_all_main(int argc, char **argv);
int bench_latency_main(int argc, char **argv);

#endif
