/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The measurement of a rack: one worker process per endpoint, and a driver that leads the workers
 * through phases by shared memory.
 *
 *   register    every worker opens its endpoint, and all learn all addresses
 *   all-to-all  every worker broadcasts to all, itself included, as fast as the windows allow, and
 *               receives
 *   drain       no worker sends. Ends when everything that was sent is delivered, or nothing is
 *               delivered for a second (30 s if reliable and no message failed)
 *   latency     one worker sends single messages to another one, at random phases of the beacon
 *               interval. Once per enum bench_cell: ordered and plain UDP, receiver blocking and
 *               busy-polling
 *   group       every worker broadcasts at a fixed rate, independent of what it receives; the age
 *               of messages at delivery is recorded (bench_group.c)
 *
 * How the order is checked: each worker hashes the sequence of messages that it delivers (sender
 * and number) and keeps the hash after every BENCH_CHECK messages. So two receivers have
 * delivered the same prefix if and only if their hashes are equal, but for a probability of
 * 2^-64.
 */
#ifndef BARLINE_BENCH_RACK_H
#define BARLINE_BENCH_RACK_H

#include <argp.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/util/args.h"
#include "lib/barline.h"

#define BENCH_MAX       64         /* workers */
#define BENCH_CHECK     4096       /* deliveries between two hashes that are kept */
#define BENCH_CHECKS    (1u << 16) /* hashes that are kept */
#define BENCH_LOG       (1u << 18) /* deliveries that are kept one by one, from the first */
#define BENCH_LAT_MAX   (1u << 17) /* samples of one latency cell */
#define BENCH_GROUP_MAX (1u << 20) /* deliveries of the group phase that are kept, per worker */
#define BENCH_UDP_PORT  7707       /* of plain UDP; not in barline's range */

/** struct bench_params - What to measure. Set by options, then read only. */
struct bench_params {
	double duration_s;        /* of the phase all-to-all */
	unsigned int size;        /* of each message, bytes; at least 8 */
	unsigned int batch;       /* broadcasts per flush */
	unsigned int ring_bytes;  /* of each endpoint; 0: default of the library */
	unsigned int lat_samples; /* messages per latency cell; 0: no latency phase */
	unsigned int group_rate;  /* messages per second and worker in the group phase; 0: none */
	double group_s;           /* of the group phase */
	bool ipv6;
	bool reliable; /* over the reliable stream */
	/*
	 * probability with which a host loses a frame that arrives. If above 0 and not reliable,
	 * the sequences of receivers are not compared
	 */
	double loss;
	const char *out; /* directory for result files; NULL: none */
};

enum bench_phase { PH_REGISTER, PH_IDLE, PH_ALL, PH_DRAIN, PH_LATENCY, PH_GROUP, PH_EXIT };

/*
 * A run of the latency phase. In the TALK cells the other hosts send a message now and then; in the
 * other cells they are silent and promise ahead (core/order/promise_core.h).
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
/* a run of the group phase */
enum bench_group_cell { GROUP_ORDERED, GROUP_UDP, GROUP_CELLS };

/**
 * struct bench_worker - What one worker shares with the driver. Written by the worker only, except
 * for @pid; the driver resets the group counters between phases.
 */
struct bench_worker {
	_Atomic int ready;          /* 1: its endpoint is open; -1: it failed, see @error */
	_Atomic int idle;           /* 100 + latency cell whose messages it has sent */
	_Atomic uint64_t sent;      /* broadcasts */
	_Atomic uint64_t delivered; /* released after @log and @check; pairs with acquire loads */
	int pid;                    /* written by the driver; 0: none */
	struct bl_addr addr;
	uint64_t hash;            /* of the delivered sequence */
	uint64_t missing;         /* gaps in the numbers of senders */
	uint64_t duplicates;      /* numbers that were delivered before */
	uint64_t ts_backwards;    /* deliveries with a lower timestamp than the one before */
	uint64_t send_failed;     /* messages that were reported as failed to this sender */
	uint64_t again;           /* sends that were refused because windows were full */
	uint32_t next[BENCH_MAX]; /* by sender: number that is expected next */
	struct bl_stats stats;
	char error[256];
	uint64_t check[BENCH_CHECKS]; /* [i]: hash after i times BENCH_CHECK deliveries */
	uint64_t log[BENCH_LOG];      /* deliveries: sender in the upper 32 bits, number below */
	_Atomic uint32_t group_got;   /* elements of @group */
	uint32_t group_sent;
	uint32_t group_refused; /* broadcasts that were refused because windows were full */
	uint32_t group[BENCH_GROUP_MAX]; /* ages at delivery, ns */
};

/** struct bench_ctl - The control block, shared by driver and workers. Written by the driver. */
struct bench_ctl {
	struct bench_params p;
	unsigned int n; /* workers */
	_Atomic int phase;
	_Atomic int cell;                   /* of the phases latency and group */
	unsigned int lat_src, lat_dst;      /* workers of the latency phase */
	uint64_t beacon_ns;                 /* beacon interval of the rack */
	_Atomic uint32_t lat_got, lat_sent; /* written by the workers @lat_dst and @lat_src */
	/* by cell and number: one-way latency, ns; 0: not received. Written by worker @lat_dst */
	uint32_t lat[BENCH_CELLS][BENCH_LAT_MAX];
	/* CLOCK_MONOTONIC: first message; messages due from @group_from to @group_to are samples */
	uint64_t group_begin, group_from, group_to;
	struct bench_worker w[BENCH_MAX];
};

/* ---- bench_work.c ---- */

/** bench_worker_main - The life of worker @i, in its namespace. Returns its exit status. */
int bench_worker_main(struct bench_ctl *ctl, unsigned int i);

/* ---- bench_run.c: the driver ---- */

/** bench_new - Maps a control block for @n workers. Returns NULL after a message. */
struct bench_ctl *bench_new(unsigned int n, const struct bench_params *p);
void bench_free(struct bench_ctl *ctl);
/**
 * bench_spawn - Forks worker @i into the namespace bound at @netns; NULL: the current one. Returns
 * 0, or 1 after a message.
 */
int bench_spawn(struct bench_ctl *ctl, unsigned int i, const char *netns);
/** bench_wait_ready - Waits until all workers have endpoints. Returns 0, or 1 after a message. */
int bench_wait_ready(struct bench_ctl *ctl);
/**
 * bench_throughput - Runs the phases all-to-all and drain, and checks the order. Adds "throughput",
 * "order" and "lag" to @res. Returns 0, or 1 after a message.
 */
int bench_throughput(struct bench_ctl *ctl, json_t *res);
/**
 * bench_latency - Runs the latency phase. Adds "latency" and "idle_lag" to @res. Returns 0, or 1
 * after a message.
 */
int bench_latency(struct bench_ctl *ctl, json_t *res);
/** bench_worker_lost - Returns 1, after a message, if a worker failed or died; else 0. */
int bench_worker_lost(struct bench_ctl *ctl);
/** bench_end - Ends the workers and reaps them. */
void bench_end(struct bench_ctl *ctl);

/* ---- bench_group.c ---- */

/** bench_group - Runs the group phase. Adds "group" to @res. Returns 0, or 1 after a message. */
int bench_group(struct bench_ctl *ctl, json_t *res);

/* ---- bench_check.c ---- */

/**
 * bench_order - Compares the sequences of all workers. Adds "order" to @res. Returns 0 if all
 * delivered in one order, or 1 after a message that names the first difference.
 */
int bench_order(const struct bench_ctl *ctl, json_t *res);
/**
 * bench_missing - Checks that every message which is missing with best effort was reported to its
 * sender, or that counters show lost frames. Reads "order" and "drops" of @res. Returns 0, or 1
 * after a message.
 */
int bench_missing(const json_t *res);

/* ---- bench_report.c ---- */

/**
 * bench_report - Prints the results as tables or JSON, and writes files if p.out is set. Returns 0,
 * or 1 after a message.
 */
int bench_report(const struct bench_ctl *ctl, json_t *res);
/** bench_drops - Adds "drops" to @res: drops and notes by reason of all nodes in sight. */
void bench_drops(json_t *res);

/* ---- bench_stat.c ---- */

extern const char *const bench_cell_names[BENCH_CELLS];
/** bench_compare32 - Compares two uint32_t, for qsort(3). */
int bench_compare32(const void *a, const void *b);
/** bench_quantiles - Sorts @v and returns an object with its quantiles. */
json_t *bench_quantiles(uint32_t *v, uint32_t n);

/* ---- bench_lag.c ---- */

/** struct bench_lag - Samples of bus clock minus host barrier, of all hosts in sight. */
struct bench_lag;
/** bench_lag_new - Maps the pages of all hosts in sight. Returns NULL if out of memory. */
struct bench_lag *bench_lag_new(void);
/** bench_lag_sample - Takes one sample of each host. NULL is allowed. */
void bench_lag_sample(struct bench_lag *l);
/** bench_lag_end - Frees @l and returns its quantiles; null for NULL. */
json_t *bench_lag_end(struct bench_lag *l);

/* ---- bench.c ---- */

extern const struct bench_params bench_defaults;
extern const struct argp bench_argp; /* input: struct bench_params */
/**
 * bench_drive - Runs the measurement: starts the workers, runs phases, checks and reports.
 * @n: workers
 * @netns_dir: directory in which namespaces h1 to h@n are bound, one for each worker; NULL: all
 *	workers run in the current namespace
 * @throughput, @latency: which phases to run
 * Returns the exit status.
 */
int bench_drive(unsigned int n, const char *netns_dir, const struct bench_params *p,
		bool throughput, bool latency);
int bench_all_main(int argc, char **argv);
int bench_latency_main(int argc, char **argv);

#endif
