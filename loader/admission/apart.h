/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reports neighbours whose policy does not fit this node's: see apart.c. */
#ifndef BARLINE_ADMISSION_APART_H
#define BARLINE_ADMISSION_APART_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/load/pin.h"

struct bl_fence_port;
struct bl_node;

/** struct bl_apart - the state of the reports. All zero at first; times are CLOCK_MONOTONIC. */
struct bl_apart {
	uint64_t sampled_ns; /* of the last sample; 0: none */
	uint64_t since_ns;   /* since when a neighbour disagrees; 0: none does */
	uint64_t warned_ns;  /* of the last warning; 0: none */
	bool warned;         /* a warning was logged, and its end was not */
};

/** bl_apart_own - the node's policy as struct bl_beacon has it; 0: it has no admission. */
uint32_t bl_apart_own(const struct bl_node_ref *ref);

/**
 * bl_apart_sample - compares the neighbours' policies with the node's, once a second however often
 * it is called, and logs. @in: the node's @count inputs. @now: CLOCK_MONOTONIC in ns.
 */
void bl_apart_sample(struct bl_apart *a, const struct bl_node *n, const struct bl_fence_port *in,
		     int count, uint64_t now);

#endif
