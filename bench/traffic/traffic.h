/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run incast|outcast|shuffle|memcached: unmodified applications on a rack, with one
 * admission policy after the other.
 *
 *   front            (traffic.c) raises a new lab for each policy and transport, which is a cell
 *     |-- driver     (traffic_run.c) in the lab: starts the applications, samples the queues of the
 *           |        switch every 2 ms, reads the output of applications and the counters
 *           |-- iperf3 -s -1 -J, iperf3 -c ... -J    two per flow, each in its host's namespace
 *           |-- memcached, and our client for it (traffic_mc.c)
 *
 * Driver and client write their results into memory that they share with the front, which prints
 * the report (traffic_report.c).
 *
 * Goodput is what the receiving iperf3 counted in its one-second intervals. So no report has to
 * return through a full queue.
 */
#ifndef BARLINE_BENCH_TRAFFIC_H
#define BARLINE_BENCH_TRAFFIC_H

#include <argp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/queue/hist_core.h"
#include "lab/lab.h"
#include "maps/reasons_abi.h"

#define TRAFFIC_POLICIES_MAX 8
#define TRAFFIC_FLOWS_MAX    256 /* a shuffle of 16 hosts has 240 */
#define TRAFFIC_SAMPLES_MAX  (1u << 17)
#define TRAFFIC_SAMPLE_US    2000 /* between two samples of queue lengths */
#define TRAFFIC_MC_CONNS     4    /* connections of the memcached client */
#define TRAFFIC_MC_SIZES     2
#define TRAFFIC_MC_MAX       (1u << 20) /* requests that are recorded */

enum traffic_kind {
	TRAFFIC_INCAST,
	TRAFFIC_OUTCAST,
	TRAFFIC_SHUFFLE,
	TRAFFIC_MEMCACHED,
	TRAFFIC_KINDS
};
extern const char *const traffic_names[TRAFFIC_KINDS];
extern const unsigned int traffic_mc_sizes[TRAFFIC_MC_SIZES]; /* bytes of a value */

/** struct traffic_policy - One of the policies that are compared. */
struct traffic_policy {
	char text[32]; /* as on the command line: "off", "pl2:joint", "fastpass:min-fct" */
	bool on;       /* there is admission */
	enum bl_policy policy;
	enum bl_allocator allocator; /* of pl2 */
	unsigned int fp_policy;      /* of Fastpass's arbiter: enum bl_alloc_policy */
};

/** struct traffic_params - What to run. Set by options, then read only. */
struct traffic_params {
	enum traffic_kind kind;
	struct traffic_policy policy[TRAFFIC_POLICIES_MAX];
	unsigned int npolicies;
	bool tcp, udp;          /* transports */
	bool unmetered;         /* links without a rate */
	unsigned int seconds;   /* of each cell */
	uint64_t offer_bps;     /* rate of each UDP sender; 0: twice its fair share */
	const char *congestion; /* congestion control of TCP */
	const char *out;        /* directory for result files; NULL: none */
};

/** struct traffic_flow - One iperf3 client and its server, and what they reported. */
struct traffic_flow {
	unsigned int from, to; /* hosts, from 0 */
	uint16_t port;
	double bps;             /* goodput at the receiver */
	double jitter_ms;       /* UDP, at the receiver */
	uint64_t lost, packets; /* UDP, at the receiver */
	uint64_t retransmits;   /* TCP, at the sender */
	char error[160];        /* "": no error */
};

/** struct traffic_mc - The memcached client, shared with the driver. */
struct traffic_mc {
	/*
	 * 1: connected, and the value is stored (client); 2: begin (driver); 3: stop (driver); 4:
	 * done (client); -1: failed, see @error (client)
	 */
	_Atomic int state;
	unsigned int size; /* of the value, bytes */
	uint32_t n;        /* elements of @ns */
	/* of these, requests without an answer; they count with the time that they waited */
	uint32_t unanswered;
	char error[160];
	uint64_t ns[TRAFFIC_MC_MAX]; /* latency of each request */
};

/** struct traffic_sample - The longest queue at one time. */
struct traffic_sample {
	uint32_t at_us; /* since the start of the senders */
	uint32_t bytes; /* in the data queues of one port: the greatest of the receivers' ports */
};

/**
 * struct traffic_cell - The results of one policy with one transport. Counters and histograms are
 * from the start of the senders to their end.
 */
struct traffic_cell {
	unsigned int policy; /* index in the parameters */
	bool udp;
	bool done;          /* the measurement is complete */
	bool metered;       /* the receivers' ports have queues */
	uint64_t receivers; /* bit i: host i, from 0, is sent to, and its port is sampled */
	unsigned int nflows;
	struct traffic_flow flow[TRAFFIC_FLOWS_MAX];
	struct bl_hist found, sojourn; /* of the data queues of the receivers' ports */
	struct bl_hist late;           /* of all pacers' frames */
	struct bl_counts switch_counts,
		host_counts; /* frames by reason, over all ports and hooks */
	uint32_t nsamples;
	struct traffic_sample sample[TRAFFIC_SAMPLES_MAX];
	struct traffic_mc mc[TRAFFIC_MC_SIZES];
};

/* ---- traffic.c: the front, and parts that other workloads share ---- */

int traffic_main(int argc, char **argv);
/**
 * traffic_policies - Reads a list of policies, as in "none,pl2:joint", into @p. An error ends the
 * process with argp_error().
 */
void traffic_policies(struct traffic_params *p, const char *arg, struct argp_state *state);
/**
 * traffic_lab - Returns a copy of @lab, with a name of its own, for a run under @policy, or NULL
 * after a message. The caller frees it.
 */
struct lab *traffic_lab(const struct lab *lab, const struct traffic_policy *policy);
/**
 * traffic_run_lab - Runs @driver(@arg) in lab @one, of traffic_lab(), and frees it.
 * @done: set by the driver when the measurement is complete
 * @what: name of the measurement, for the message
 * Returns 0, or 1 after a message.
 */
int traffic_run_lab(struct lab *one, int (*driver)(struct lab *lab, void *arg), void *arg,
		    const bool *done, const char *what);

/* ---- traffic_run.c ---- */

/** traffic_drive - Runs one cell inside the lab. Returns 0, or 1 after a message. */
int traffic_drive(struct lab *lab, const struct traffic_params *p, struct traffic_cell *c);

/* ---- traffic_sampler.c ---- */

struct traffic_sampler;
/**
 * traffic_sampler_new - Opens the maps of all nodes of the lab and reads their counters. @c must
 * have its receivers. Returns NULL after a message.
 */
struct traffic_sampler *traffic_sampler_new(struct traffic_cell *c, bool admission);
/**
 * traffic_sampler_sample - Appends a sample to @c and returns its bytes.
 * @since_ns: CLOCK_MONOTONIC time from which samples count
 */
uint32_t traffic_sampler_sample(struct traffic_sampler *l, struct traffic_cell *c,
				uint64_t since_ns);
/** traffic_sampler_end - Adds what was counted since the beginning to @c, and frees @l. */
void traffic_sampler_end(struct traffic_sampler *l, struct traffic_cell *c);

/* ---- traffic_mc.c ---- */

/**
 * traffic_mc_main - The life of the memcached client, in its host's namespace.
 * @addr: IPv4 address of the server
 * Returns its exit status.
 */
int traffic_mc_main(struct traffic_mc *m, const uint8_t addr[4], uint16_t port);

/* ---- traffic_report.c ---- */

/**
 * traffic_report - Prints the results as a table or JSON, and writes files if p->out is set.
 * Returns 0, or 1 after a message.
 */
int traffic_report(const struct lab_spec *spec, const struct traffic_params *p,
		   struct traffic_cell *cells, unsigned int ncells);

#endif
