/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run fct: flows with random sizes arrive as a Poisson process, under one admission
 * policy after the other, and the completion time (FCT) of each flow is measured.
 *
 *   front            (fct.c) makes the trace (fct_trace.h) once, and raises a new lab for each
 *     |              policy, which is a cell
 *     |-- driver     (fct_run.c, fct_sampler.c) in the lab: starts the hosts, reads queues and
 *           |        counters before and after
 *           |-- host h1 ...    (fct_gen.c) sends its flows when they are due and receives those of
 *                              others, in one process with one epoll loop
 *
 * All of them share the plan and the results with the front, which makes the report (fct_report.c,
 * fct_print.c, fct_stat.h). With several seeds, the front does all of this for each (fct_runs.c).
 *
 * The FCT is the time from a flow's planned arrival to its last byte in the receiving process. So
 * it includes the lateness of the generator. All namespaces share one clock.
 *
 * Every flow has a TCP connection of its own, which is made before the trace begins. So the
 * transfer is measured, and not whether a SYN was lost in a queue, which costs a second under every
 * policy. Each flow begins with TCP's initial window, and none waits for another one, as it would
 * in a small pool of connections. With --fresh, a connection is made when its flow arrives, and its
 * handshake counts.
 *
 * Before the trace, FCT_PROBES flows of one byte are sent through the idle network. The least of
 * their FCTs over all policies is the base of the ideal FCT of a flow that is alone.
 */
#ifndef BARLINE_BENCH_FCT_H
#define BARLINE_BENCH_FCT_H

#include <stdatomic.h>

#include "bench/fct/fct_trace.h"
#include "bench/traffic/traffic.h"

#define FCT_PROBES   128
#define FCT_PROBE_NS 3000000ULL /* between two probes */
/* from the first probe to the begin of the trace */
#define FCT_LEAD_NS      (FCT_PROBES * FCT_PROBE_NS + 200000000ULL)
#define FCT_EDGES_MAX    15
#define FCT_ROWS_MAX     1024 /* queues of switches that had frames */
#define FCT_LATE_PERCENT 1    /* of the flows may begin late */
#define FCT_RUNS_MAX     100

/** struct fct_params - What to run. Set by options, then read only within a run. */
struct fct_params {
	struct traffic_policy policy[TRAFFIC_POLICIES_MAX];
	bool one_class[TRAFFIC_POLICIES_MAX]; /* by policy: TOP with one class of tokens */
	/* by policy: enum bl_top_law + 1; 0: that of --law, or the default */
	uint32_t law[TRAFFIC_POLICIES_MAX];
	unsigned int npolicies;
	/* names of a distribution or of files; NULL: none */
	const char *sizes_name, *trace_name, *coflows_name;
	const char *out;        /* directory for result files; NULL: none */
	const char *congestion; /* congestion control of TCP */
	double load;            /* as requested, 0 to 1; 0 if a trace was read */
	double scale;           /* factor for all sizes */
	double base_ns;         /* FCT of one byte in the idle network; 0: measure it */
	double deadline_us;     /* mean of the deadlines; 0: no deadlines */
	uint64_t seed;
	uint64_t capacity_bps; /* of all links that the load refers to */
	uint64_t late_ns;     /* a flow that begins later than that is late; see FCT_LATE_PERCENT */
	uint64_t span_ns;     /* only flows that arrive earlier; 0: no limit */
	uint32_t nflows;      /* elements of @flow */
	uint32_t nplan;       /* elements of @plan */
	uint32_t flows;       /* as requested; 0: no limit */
	unsigned int mss;     /* payload of a full frame, bytes */
	unsigned int grace_s; /* unfinished flows are given up this time after the last arrival */
	unsigned int nedges;  /* elements of @edges */
	uint64_t edges[FCT_EDGES_MAX]; /* greatest sizes of the buckets of the report */
	uint64_t seeds[FCT_RUNS_MAX];  /* one run with each of them */
	unsigned int nseeds;           /* elements of @seeds; 0: one run with @seed */
	unsigned int width;            /* mean number of flows in a coflow; 0: no coflows */
	bool sizes_unknown;            /* applications do not declare the sizes of flows (LAS) */
	bool fresh;                    /* --fresh */
	bool unfinished_ok;            /* unfinished flows are no error */
	bool edges_given, flows_given; /* by an option */
	struct fct_flow *flow;         /* the trace */
	struct fct_flow *plan; /* for the hosts: the probes, then the trace, FCT_LEAD_NS later */
	uint64_t limit[BL_TOP_CLASSES - 1]; /* of TOP: frames from which classes begin */
};

/** struct fct_result - One flow of the plan. Each field has one writer. Times: CLOCK_MONOTONIC. */
struct fct_result {
	uint64_t begun_ns; /* when its sender began; 0: not yet */
	uint64_t end_ns;   /* when its last byte was received; 0: not yet */
	uint64_t got;      /* bytes that were received */
};

/** struct fct_queue - One queue of a switch, from the begin of the trace to its end. */
struct fct_queue {
	char node[16], port[16];
	unsigned int class;
	uint64_t put, dropped, marked;
	struct bl_hist found;   /* length of the queue that frames found, bytes */
	struct bl_hist sojourn; /* time in the queue */
};

/** struct fct_bound - What TOP's bound on data queues is made of, as hosts and switches have it. */
struct fct_bound {
	bool on;            /* the policy is top */
	uint64_t expiry_ns; /* T */
	uint64_t base_ns;   /* d, of which T was made; 0: T was given */
	uint64_t hop_ns;    /* t_h: time of all tokens of a full token queue at the group's rate */
	uint64_t clock_ns;  /* greatest bound of a host's clock */
	unsigned int hops;  /* |P|, of which T was made; 0: T was given */
};

enum fct_phase { FCT_LISTEN, FCT_CONNECT, FCT_RUN, FCT_STOP };

/** struct fct_cell - The results of one policy. Shared by all processes. */
struct fct_cell {
	unsigned int policy;          /* index in the parameters */
	bool done;                    /* the measurement is complete */
	_Atomic int phase;            /* enum fct_phase, set by the driver */
	_Atomic uint32_t ready;       /* hosts that listen */
	_Atomic uint32_t linked;      /* connections whose flow is known to the receiver */
	_Atomic uint32_t finished;    /* flows of the plan */
	_Atomic uint64_t retransmits; /* TCP segments, all hosts */
	atomic_flag complained;       /* set by the host that writes @error */
	char error[200];              /* the first error of a host; "": none */
	uint64_t t0_ns;       /* time 0 of the plan, CLOCK_MONOTONIC; valid from FCT_RUN on */
	uint64_t wall_ns;     /* duration of the run */
	unsigned int nqueues; /* elements of @queue */
	struct fct_queue queue[FCT_ROWS_MAX];
	struct bl_counts switch_counts, host_counts; /* frames by reason */
	struct bl_hist late;                         /* of all pacers' frames */
	struct fct_bound bound;                      /* of TOP */
	struct fct_result *r;                        /* @nplan of them */
};

/* ---- fct.c ---- */

int fct_main(int argc, char **argv);

/* ---- fct_run.c ---- */

/** fct_drive - Runs one cell inside the lab. Returns 0, or 1 after a message. */
int fct_drive(struct lab *lab, const struct fct_params *p, struct fct_cell *c);

/* ---- fct_gen.c ---- */

/** struct fct_host - Argument of fct_host_main(). */
struct fct_host {
	const struct fct_params *p;
	struct fct_cell *c;
	unsigned int index;             /* of this host, from 0 */
	uint8_t addr[LAB_HOSTS_MAX][4]; /* IPv4, of all hosts */
};
/** fct_host_main - The life of a host, in its namespace, until FCT_STOP. */
void fct_host_main(void *host);

/* ---- fct_sampler.c ---- */

struct fct_sampler;
/** fct_sampler_new - Opens the maps of all nodes and reads counters. NULL after a message. */
struct fct_sampler *fct_sampler_new(bool admission);
/**
 * fct_sampler_end - Writes what was counted since then into the cell, and frees @l. Returns 0, or 1
 * after a message.
 */
int fct_sampler_end(struct fct_sampler *l, struct fct_cell *c);

/* ---- fct_model.c ---- */

/**
 * fct_model - Computes the completion times of the trace in the fluid model (fct_fluid.h).
 * @policy: number of the policy in @p
 * @base_ns: added to each
 * @fct: room for all flows; gets ns
 * Returns 0, or -1 if there is no model for this policy and objective, or no memory.
 */
int fct_model(const struct lab_spec *spec, const struct fct_params *p, unsigned int policy,
	      double base_ns, double *fct);

/* ---- fct_report.c ---- */

/**
 * fct_report - Makes the report of one run, and writes files if p->out is set.
 * @said: gets the report
 * Returns 0, or 1 if a result is refused, or after a message.
 */
int fct_report(const struct lab_spec *spec, struct fct_params *p, struct fct_cell *cells,
	       json_t **said);

/* ---- fct_print.c ---- */

/** fct_print - Prints a report as text; with @whole also the tables by size, and drops. */
void fct_print(const json_t *said, bool whole);

/* ---- fct_runs.c ---- */

/** fct_runs - Returns medians and spread, by policy, of an array of reports. */
json_t *fct_runs(const json_t *runs);
/** fct_runs_print - Prints the result of fct_runs() as text. */
void fct_runs_print(const json_t *res);
/** fct_runs_write - Writes @out/summary.json and @out/runs.csv. Returns 0, or 1 after a message. */
int fct_runs_write(const char *out, json_t *res);

#endif
