/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all nodes in sight count during a span of time: frames by reason, and how late pacers send.
 */
#ifndef BARLINE_BENCH_COUNTER_SPAN_H
#define BARLINE_BENCH_COUNTER_SPAN_H

#include <stdbool.h>

#include "core/queue/hist_core.h"
#include "loader/node.h"
#include "maps/reasons_abi.h"

/** struct counter_span - The counters at the beginning of the span. */
struct counter_span {
	struct bl_node_ref *refs; /* all nodes in sight */
	int nrefs;
	bool admission; /* nodes have pacers */
	struct bl_counts switches, hosts;
	struct bl_hist late;
};

/**
 * counter_span_begin - Finds the nodes and reads their counters. Returns 0, or 1 after a message;
 * in both cases counter_span_free() frees what it holds.
 */
int counter_span_begin(struct counter_span *s, bool admission);

/**
 * counter_span_end - Adds what was counted since counter_span_begin().
 * @switches, @hosts: frames by reason; set, not added to
 * @late: of all pacers' frames; added to
 * Returns 0, or 1 after a message; then the result is incomplete.
 */
int counter_span_end(const struct counter_span *s, struct bl_counts *switches,
		     struct bl_counts *hosts, struct bl_hist *late);

/** counter_span_free - Frees the list of nodes. */
void counter_span_free(struct counter_span *s);

#endif
