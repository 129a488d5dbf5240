/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run incast|outcast|shuffle|memcached: unmodified applications on a rack, one
 * admission policy after the other in the same run.
 *
 *   front (traffic.c)      for each policy and transport, a cell: raises a fresh rack (lab.h)
 *     |-- driver           in the lab: starts the applications, samples the switch's queues every 2
 * ms, reads what they and the counters say (traffic_run.c)
 *           |-- iperf3 -s -1 -J, iperf3 -c ... -J     two per flow, each in its host's network
 * namespace
 *           |-- memcached, and our client for it (traffic_mc.c)
 *
 * Driver and client leave their results in memory that the front shares with them; the front
 * reports (traffic_report.c).
 *
 * Goodput is what the receiving iperf3 counted, by its one-second intervals: no report has to come
 * back through a full queue.
 */
#ifndef BARLINE_CLI_TRAFFIC_H
#define BARLINE_CLI_TRAFFIC_H

#include <argp.h>
#include <stdatomic.h>

#include "base/hist.h"
#include "lab/lab.h"
#include "maps/reasons_abi.h"

#define TRAFFIC_POLICIES_MAX 8
#define TRAFFIC_FLOWS_MAX    256 /* shuffle of 16 hosts: 240 */
#define TRAFFIC_SAMPLES_MAX  (1u << 17)
#define TRAFFIC_SAMPLE_US    2000
#define TRAFFIC_MC_CONNS     4
#define TRAFFIC_MC_SIZES     2
#define TRAFFIC_MC_MAX       (1u << 20)

enum traffic_kind {
	TRAFFIC_INCAST,
	TRAFFIC_OUTCAST,
	TRAFFIC_SHUFFLE,
	TRAFFIC_MEMCACHED,
	TRAFFIC_KINDS
};
extern const char *const traffic_names[TRAFFIC_KINDS];
extern const unsigned int traffic_mc_sizes[TRAFFIC_MC_SIZES]; /* bytes of a value */

/**
 * struct traffic_policy - what is compared. @text: as it was asked for: "off", "none", "pl2",
 * "pl2:joint", "fastpass:min-fct". @on: there is admission. @fp_policy: of Fastpass's arbiter.
 */
struct traffic_policy {
	char text[32];
	bool on;
	enum bl_policy policy;
	enum bl_allocator allocator;
	unsigned int fp_policy;
};

/**
 * struct traffic_params - the run. @offer_bps: of each UDP sender; 0: twice its fair share.
 * @congestion: TCP's. @unmetered: links as fast as they go.
 */
struct traffic_params {
	enum traffic_kind kind;
	struct traffic_policy policy[TRAFFIC_POLICIES_MAX];
	unsigned int npolicies;
	bool tcp, udp, unmetered;
	unsigned int seconds;
	uint64_t offer_bps;
	const char *congestion;
	const char *out;
};

/**
 * struct traffic_flow - one iperf3 client and its server. @from, @to: hosts, from 0.
 * @bps: goodput. @lost, @packets, @jitter_ms: UDP, by the receiver. @retransmits: TCP, by the
 * sender. @error: "": all went well.
 */
struct traffic_flow {
	unsigned int from, to;
	uint16_t port;
	double bps, jitter_ms;
	uint64_t lost, packets, retransmits;
	char error[160];
};

/**
 * struct traffic_mc - the memcached client, shared with the driver. @state: 1: connected, value
 * stored; 2: the driver says go; 3: stop; 4: done; -1: failed, see @error.
 * @ns: latency of each request, @n of them; @unanswered of them never got an answer, and count as
 * long as they waited.
 */
struct traffic_mc {
	_Atomic int state;
	unsigned int size;
	uint32_t n, unanswered;
	char error[160];
	uint64_t ns[TRAFFIC_MC_MAX];
};

/**
 * struct traffic_sample - @bytes: in the longest data queue of the receivers' ports.
 */
struct traffic_sample {
	uint32_t at_us;
	uint32_t bytes;
};

/**
 * struct traffic_cell - one policy with one transport. @done: the run came to its end. @metered:
 * there were queues to look at.
 * @receivers: bit i: host i is sent to; the queues of its switch port are looked at.
 * @found, @sojourn: of the data queues of the receivers' switch ports, from the start of the
 * senders to the end.
 * @switch_counts, @host_counts: frames by reason in that time, over all ports and hooks.
 * @late: of all pacers' frames.
 */
struct traffic_cell {
	unsigned int policy;
	bool udp, done, metered;
	uint64_t receivers;
	unsigned int nflows;
	struct traffic_flow flow[TRAFFIC_FLOWS_MAX];
	struct bl_hist found, sojourn, late;
	struct bl_counts switch_counts, host_counts;
	uint32_t nsamples;
	struct traffic_sample sample[TRAFFIC_SAMPLES_MAX];
	struct traffic_mc mc[TRAFFIC_MC_SIZES];
};

/* traffic.c */
int traffic_main(int argc, char **argv);

/** traffic_policies - a list of policies, as "none,pl2:joint"; ends the process if it is none. */
void traffic_policies(struct traffic_params *p, const char *arg, struct argp_state *state);
/** traffic_lab - a copy of @lab for one run under @policy, to be freed; NULL after a message. */
struct lab *traffic_lab(const struct lab *lab, const struct traffic_policy *policy);
/**
 * traffic_run_lab - Runs @driver(@arg) in lab @one, of traffic_lab(), and frees it.
 * @done: set by the driver when the measurement is complete
 * @what: name of the measurement, for the message
 * Returns 0, or 1 after a message.
 */
int traffic_run_lab(struct lab *one, int (*driver)(struct lab *lab, void *arg), void *arg,
		    const bool *done, const char *what);

/* traffic_run.c */
/** traffic_drive - run one cell inside the lab. 0 or 1 after a message. */
int traffic_drive(struct lab *lab, const struct traffic_params *p, struct traffic_cell *c);

/* traffic_sampler.c */
struct traffic_sampler;
/**
 * traffic_sampler_new - open the maps of all nodes of the lab and remember what they count. NULL
 * after a message.
 */
struct traffic_sampler *traffic_sampler_new(struct traffic_cell *c, bool admission);
/** traffic_sampler_sample - the length of the data queues now. Bytes. */
uint32_t traffic_sampler_sample(struct traffic_sampler *l, struct traffic_cell *c,
				uint64_t since_ns);
/** traffic_sampler_end - what was counted since traffic_sampler_new(), into the cell; frees. */
void traffic_sampler_end(struct traffic_sampler *l, struct traffic_cell *c);

/* traffic_mc.c */
/**
 * traffic_mc_main - the life of the client, in its host's namespace. @addr: IPv4, of the server.
 * Returns its exit status.
 */
int traffic_mc_main(struct traffic_mc *m, const uint8_t addr[4], uint16_t port);

/* traffic_report.c */
/** traffic_report - table or JSON, files if @p->out is set. 0 or 1. */
int traffic_report(const struct lab_spec *spec, const struct traffic_params *p,
		   struct traffic_cell *cells, unsigned int ncells);

#endif
