/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the maps of admission: queues, meters, and values that are kept in units of the wire.
 */
#ifndef BARLINE_CLI_UTIL_READ_ADMISSION_H
#define BARLINE_CLI_UTIL_READ_ADMISSION_H

#include <jansson.h>

#include "core/queue/hist_core.h"
#include "loader/node.h"
#include "maps/hold_abi.h"
#include "maps/pl2_switch_abi.h"
#include "maps/top_token_abi.h"

#define ADM_FULL_FRAME 1514 /* bytes; the unit in which lengths of queues are shown */

/**
 * adm_map - Opens a pinned map of a node. Returns its file descriptor, or -1 after a message.
 * @entries: gets the number of elements; may be NULL
 */
int adm_map(const struct bl_node_ref *ref, const char *name, uint32_t value_size,
	    uint32_t *entries);

/**
 * adm_queue - Reads a queue from map @fd under the queue's lock, so that its fields are consistent.
 * Returns 0 or -errno.
 */
int adm_queue(int fd, uint32_t key, struct bl_queue *q);

/** adm_queue_length - Adds the frames and the bytes that are in a queue to @frames and @bytes. */
void adm_queue_length(const struct bl_queue *q, uint64_t *frames, uint64_t *bytes);

/**
 * adm_length - The same, of a queue in map @fd: without the queue's lock, for which the datapath
 * would wait, so they may be some frames apart.
 */
void adm_length(int fd, uint32_t key, uint64_t *frames, uint64_t *bytes);

/**
 * adm_tokens - Reads the counters of TOP's tokens of a switch's port from map @fd, summed over the
 * CPUs. Returns 0 or -errno.
 */
int adm_tokens(int fd, uint32_t port, struct bl_token_counts *sum);

/** adm_rate - Converts the rate of a meter to bits per second; 0: the port is not metered. */
double adm_rate(uint32_t ns_q20);

/**
 * adm_quantiles - Adds the median, the quantiles 0.99 and 0.999 and the maximum of a histogram to
 * @row, with keys such as PREFIX_p50UNIT, each divided by @divide. Adds null if it is empty.
 */
void adm_quantiles(json_t *row, const char *prefix, const char *unit, const struct bl_hist *h,
		   unsigned int shift, double divide);

/**
 * adm_counts - Adds the counters of all switches among @refs to @switches, and of all hosts to
 * @hosts; they count since the programs were loaded. Returns 0, or 1 after a message.
 */
int adm_counts(const struct bl_node_ref *refs, int nrefs, struct bl_counts *switches,
	       struct bl_counts *hosts);

/**
 * adm_late - Adds to @late how late the pacers of @refs sent. Each of the nodes must have a pacer.
 * Returns 0, or 1 after a message.
 */
int adm_late(const struct bl_node_ref *refs, int nrefs, struct bl_hist *late);

/** adm_reasons - Returns an object with the name and the count of each reason that was counted. */
json_t *adm_reasons(const struct bl_counts *n);

#endif
