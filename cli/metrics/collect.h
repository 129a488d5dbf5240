/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads everything that barline exports in one network namespace: pinned maps of its nodes,
 * counters of their interfaces, and the status sockets of controllers and arbiters.
 *
 * Maps are read without a lock, also those of queues and reservations, whose locks the datapath
 * takes: each number is whole, and numbers that belong together may be some frames apart.
 *
 * A source that fails does not stop the others: its metric scrape_error becomes 1, and the log says
 * why, once until the reason changes.
 */
#ifndef BARLINE_CLI_METRICS_COLLECT_H
#define BARLINE_CLI_METRICS_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/metrics/text.h"
#include "loader/node.h"

/*
 * X(SYMBOL, "name"): what is read one after the other; the name is the label "source".
 */
/* clang-format off */
#define BL_METRIC_SOURCES(X) \
	X(NODES, "nodes") \
	X(INTERFACES, "interfaces") \
	X(ENDPOINTS, "endpoints") \
	X(ADMISSION, "admission") \
	X(CERTIFICATES, "certificates") \
	X(CONTROLLERS, "controllers") \
	X(ARBITERS, "arbiters")
/* clang-format on */
#define BL_SOURCE_ENUM(sym, name) BL_SOURCE_##sym,
enum metric_source { BL_METRIC_SOURCES(BL_SOURCE_ENUM) BL_SOURCE_COUNT };
#undef BL_SOURCE_ENUM

#define METRICS_ASK_MS       1000 /* ask_ms of struct collector, by default */
#define METRICS_CERTIFICATES 16

struct lag_sampler;

/** struct collector - what is read, and what was said of it. One thread uses it at a time. */
struct collector {
	unsigned int ask_ms; /* how long controllers, and then arbiters, may take to answer */
	const char *certificate[METRICS_CERTIFICATES]; /* files in PEM */
	unsigned int ncertificates;
	struct lag_sampler *lag;         /* NULL: the lag of barriers is not sampled */
	char said[BL_SOURCE_COUNT][512]; /* the last error of each source; "": none */

	/* of the present scrape */
	struct metrics *to;
	const struct bl_node_ref *refs; /* nodes of the namespace whose maps this build can read */
	char (*name)[48];               /* by node: the label "node"; no two are equal */
	int nrefs;
	enum metric_source source; /* that is being read */
	bool failed;               /* a part of it could not be read */
};

/**
 * metrics_collect - reads all sources. Returns the samples, which the caller frees with
 * metrics_free(), or NULL without memory.
 */
struct metrics *metrics_collect(struct collector *c);

/* ---- for the parts ---- */

void collect_node(struct collector *c, int node);
void collect_lag(struct collector *c, int node);
void collect_interfaces(struct collector *c);
void collect_endpoints(struct collector *c, int node);
/** collect_figures - of the endpoint at @port, in @slot of a host. */
void collect_figures(struct collector *c, int node, unsigned int slot, const char *port);
void collect_admission(struct collector *c, int node);
void collect_certificates(struct collector *c);
void collect_controllers(struct collector *c);
void collect_arbiters(struct collector *c);

/** collect_source_name - the label of a source. */
const char *collect_source_name(enum metric_source s);

/** collect_failed - a part of the present source could not be read. */
void collect_failed(struct collector *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * collect_array - reads the first values of a pinned array, without locks.
 * @most: at most so many; 0: all
 * @n: gets their number
 * Returns the values, which the caller frees; NULL after collect_failed().
 */
void *collect_array(struct collector *c, int node, const char *map, uint32_t size, uint32_t most,
		    uint32_t *n);

/** collect_value - reads value @key of a pinned map. Returns false after collect_failed(). */
bool collect_value(struct collector *c, int node, const char *map, uint32_t key, void *v,
		   uint32_t size);

/**
 * collect_log_hist - adds a histogram of times.
 * @n: BL_LOG_BINS bins of core/log_hist_core.h, of ns, from 2^@first on
 * @sum: of all values, in seconds
 */
void collect_log_hist(struct collector *c, enum metric m, const uint64_t *n, unsigned int first,
		      double sum, const char *const *labels);

#endif
