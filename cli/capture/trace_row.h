/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A row of `barline trace`: a message, how long it was where, and what it waited for. Filled from
 * captured frames (trace.c) or from what endpoints and registers tell (trace_past.c).
 */
#ifndef BARLINE_CLI_CAPTURE_TRACE_ROW_H
#define BARLINE_CLI_CAPTURE_TRACE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/load/pin.h"
#include "maps/figures_abi.h"
#include "cli/util/message.h"

/* X(SYMBOL, "key", "HEADING"): times of a row. docs/look.md says from where to where. */
/* clang-format off */
#define TRACE_TIMES(X) \
	X(STAGED, "staged_ns", "STAGED") \
	X(WINDOW, "window_ns", "WINDOW") \
	X(HOST, "host_ns", "HOST") \
	X(UP, "up_ns", "UP") \
	X(SWITCHES, "switches_ns", "SWITCHES") \
	X(DOWN, "down_ns", "DOWN") \
	X(ORDER, "order_ns", "ORDER") \
	X(APP, "app_ns", "APP") \
	X(TOTAL, "total_ns", "TOTAL")
/* clang-format on */
#define TRACE_ENUM(sym, key, heading) TRACE_##sym,
enum trace_time { TRACE_TIMES(TRACE_ENUM) TRACE_TIME_COUNT };
#undef TRACE_ENUM

#define TRACE_UNKNOWN INT64_MIN

/** struct trace_holder - the input that a message waited for, or waits for. */
struct trace_holder {
	const char *at, *port; /* the switch, its input */
	char node[40];         /* at the other end */
	bool known;
	bool excluded; /* it never passed: the switch gave it up */
	bool now;      /* it is behind at this moment */
};

/** struct trace_row - a message at one receiver. */
struct trace_row {
	struct message_name name; /* a timestamp of 0: it has none yet */
	struct bl_addr dst;       /* a port of 0: unknown */
	bool reliable;
	long long psn;                /* -1: unknown */
	int64_t ns[TRACE_TIME_COUNT]; /* TRACE_UNKNOWN */
	struct trace_holder holder;   /* for whose barrier */
	int why;                      /* enum bl_fig_why, before the timestamp; -1: nothing */
	struct bl_addr window;        /* BL_FIG_WINDOW: whose */
	uint64_t at_ns;               /* CLOCK_MONOTONIC of its end; 0: not ended */
};

/** trace_row_clear - a row about which nothing is known. */
void trace_row_clear(struct trace_row *r);

/** trace_row_took - how long it took, ns: the time before the timestamp counts, too. */
int64_t trace_row_took(const struct trace_row *r);

/** trace_row_print - one line of the table, or one JSON object. @first: headings come first. */
void trace_row_print(const struct trace_row *r, bool first);

/**
 * trace_row_wait - fills in what the sender's endpoint tells of the time before the timestamp, if
 * the sender is one of the hosts @refs. Returns whether it knows.
 */
bool trace_row_wait(struct trace_row *r, const struct bl_node_ref *refs, int nrefs);

/** trace_row_app - the same of the receiver, for the time after @done_ns. */
void trace_row_app(struct trace_row *r, const struct bl_node_ref *ref, uint64_t done_ns);

#endif
