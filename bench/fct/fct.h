/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run fct: flows of drawn sizes come by a Poisson process, one admission policy after
 * the other, and each flow's completion time (FCT) is taken.
 *
 *   front (fct.c)          makes the trace (fct_trace.h) once; for each policy, a cell: raises a
 * fresh lab (lab.h)
 *     |-- driver           in the lab: starts the hosts, reads queues and counters before and after
 * (fct_run.c, fct_sampler.c)
 *           |-- host h1 ...    sends its flows at their times, receives those of others: one
 * process, one epoll loop (fct_gen.c)
 *
 * All of them share the plan and the results with the front, which reports (fct_report.c,
 * fct_stat.h). With several seeds the front does all that once for each (fct_runs.c).
 *
 * FCT is the time from a flow's planned arrival to its last byte in the receiving process: a
 * generator that is late does not flatter, and all namespaces have one clock.
 *
 * Every flow has a TCP connection of its own, made before the beginning: what is measured is the
 * transfer, and not whether a SYN was lost in a queue, which costs a second whatever the policy.
 * Each begins with TCP's initial window; none waits behind another, as in a small pool. With
 * --fresh the connection is made when the flow comes, and its handshake counts.
 *
 * Before the trace come PROBES flows of one byte through the idle network. The least of their FCTs,
 * over all policies, is the base of what a flow could do if it were alone.
 */
#ifndef BARLINE_CLI_FCT_H
#define BARLINE_CLI_FCT_H

#include <stdatomic.h>

#include "bench/fct/fct_trace.h"
#include "bench/traffic/traffic.h"

#define FCT_PROBES   128
#define FCT_PROBE_NS 3000000ULL /* between two of them */
/* from the first probe to the beginning of the trace */
#define FCT_LEAD_NS      (FCT_PROBES * FCT_PROBE_NS + 200000000ULL)
#define FCT_EDGES_MAX    15
#define FCT_ROWS_MAX     1024 /* queues of switches that had anything in them */
#define FCT_LATE_PERCENT 1
#define FCT_RUNS_MAX     100

/**
 * struct fct_params - the run. @one_class: by policy: TOP with one class of tokens. @law: by
 * policy: enum bl_top_law + 1; 0: what --law says, or the default. @mss: payload of a full frame.
 * @capacity_bps: of all links that the load is counted on; @load: as asked for, 0 with a trace that
 * was read.
 * @nflows, @flow: the trace; @plan: probes first, then the trace FCT_LEAD_NS later: what hosts work
 * on. @nplan.
 * @sizes_name, @trace_name, @out: NULL: none. @base_ns: 0: measured. @late_ns: not more than
 * FCT_LATE_PERCENT of the flows may begin later than that.
 * @grace_s: unfinished flows are given up so long after the last one came.
 * @sizes_unknown: applications say nothing of their flows (LAS). @deadline_us: mean of the
 * deadlines; 0: none. @width: of coflows, or @coflows_name: a file of them; 0, NULL: none.
 * @longest: greatest size of the distribution or trace, bytes. @seeds: @nseeds of them, one run
 * each.
 */
struct fct_params {
	struct traffic_policy policy[TRAFFIC_POLICIES_MAX];
	bool one_class[TRAFFIC_POLICIES_MAX];
	uint32_t law[TRAFFIC_POLICIES_MAX];
	unsigned int npolicies;
	const char *sizes_name, *trace_name, *coflows_name, *out, *congestion;
	double load, scale, base_ns, deadline_us;
	uint64_t seed, capacity_bps, late_ns, span_ns;
	uint32_t nflows, nplan, flows;
	unsigned int mss, grace_s, nedges;
	uint64_t edges[FCT_EDGES_MAX];
	uint64_t seeds[FCT_RUNS_MAX], longest;
	unsigned int nseeds, width;
	bool sizes_unknown, deadlines_given;
	bool fresh, unfinished_ok, edges_given, flows_given;
	struct fct_flow *flow, *plan;
	uint64_t limit[BL_TOP_CLASSES - 1]; /* of top: frames from which classes begin */
};

/**
 * struct fct_result - one flow of the plan. CLOCK_MONOTONIC. @begun_ns: its sender's; @end_ns: its
 * last byte was received; 0: was not. @got: bytes. Each has one writer.
 */
struct fct_result {
	uint64_t begun_ns;
	uint64_t end_ns;
	uint64_t got;
};

/**
 * struct fct_queue - one queue of a switch, from the beginning of the trace to its end. @found:
 * bytes that frames found in it.
 */
struct fct_queue {
	char node[16], port[16];
	unsigned int class;
	uint64_t put, dropped, marked;
	struct bl_hist found, sojourn;
};

/**
 * struct fct_bound - what TOP's bound on data queues is made of, as hosts and switches of the run
 * had it. @on: the policy is top.
 * @expiry_ns: T. @base_ns, @hops: d and |P| that T was made of; 0: T was given. @hop_ns: t_h, time
 * of all tokens of a full token queue at the group's rate. @clock_ns: greatest bound of a host's
 * clock.
 */
struct fct_bound {
	bool on;
	uint64_t expiry_ns, base_ns, hop_ns, clock_ns;
	unsigned int hops;
};

enum fct_phase { FCT_LISTEN, FCT_CONNECT, FCT_RUN, FCT_STOP };

/**
 * struct fct_cell - one policy. Shared by all processes.
 * @phase: set by the driver. @ready: hosts that listen; @linked: connections whose flow the
 * receiver knows; @finished: flows of the plan.
 * @t0_ns: time 0 of the plan, valid from FCT_RUN on. @error: what a host said first that could not
 * go on with something (@complained decides who).
 * @bound: of top. @nqueues, @queue. @switch_counts, @host_counts: frames by reason. @late: of all
 * pacers' frames. @retransmits: TCP segments, all hosts.
 */
struct fct_cell {
	unsigned int policy;
	bool done;
	_Atomic int phase;
	_Atomic uint32_t ready, linked, finished;
	_Atomic uint64_t retransmits;
	atomic_flag complained;
	char error[200];
	uint64_t t0_ns, wall_ns;
	unsigned int nqueues;
	struct fct_queue queue[FCT_ROWS_MAX];
	struct bl_counts switch_counts, host_counts;
	struct bl_hist late;
	struct fct_bound bound;
	struct fct_result *r; /* @nplan of them */
};

/* fct.c */
int fct_main(int argc, char **argv);

/* fct_run.c */
/** fct_drive - run one cell inside the lab. 0 or 1 after a message. */
int fct_drive(struct lab *lab, const struct fct_params *p, struct fct_cell *c);

/* fct_gen.c */
/** struct fct_host - @index: from 0. @addr: of all hosts. */
struct fct_host {
	const struct fct_params *p;
	struct fct_cell *c;
	unsigned int index;
	uint8_t addr[LAB_HOSTS_MAX][4];
};
/** fct_host_main - the life of a host, in its namespace, until FCT_STOP. */
void fct_host_main(void *host);

/* fct_sampler.c */
struct fct_sampler;
/** fct_sampler_new - open the maps of all nodes and remember what they count. NULL after a message.
 */
struct fct_sampler *fct_sampler_new(bool admission);
/** fct_sampler_end - what was counted since, into the cell; frees. 0 or 1 after a message. */
int fct_sampler_end(struct fct_sampler *l, struct fct_cell *c);

/* fct_model.c */
/**
 * fct_model - completion times of the trace in the fluid model (fct_fluid.h), and @base_ns each.
 * @policy: number of the policy in @p. @fct: room for all flows, ns.
 * Returns 0; -1: this policy and objective have no model, or there is no memory.
 */
int fct_model(const struct lab_spec *spec, const struct fct_params *p, unsigned int policy,
	      double base_ns, double *fct);

/* fct_report.c */
/**
 * fct_report - one run: *@said: all that is to be said of it; files if @p->out is set. 0, or 1: a
 * result is refused, or a file could not be written.
 */
int fct_report(const struct lab_spec *spec, struct fct_params *p, struct fct_cell *cells,
	       json_t **said);
/** fct_print - tables and sentences for people; @whole: with the tables by size and drops. */
void fct_print(const json_t *said, bool whole);

/* fct_runs.c */
/** fct_runs - several runs, @runs of what fct_report() said: medians and spread by policy. */
json_t *fct_runs(const json_t *runs);
void fct_runs_print(const json_t *res);
/** fct_runs_write - OUT/summary.json and OUT/runs.csv. 0 or 1 after a message. */
int fct_runs_write(const char *out, json_t *res);

#endif
