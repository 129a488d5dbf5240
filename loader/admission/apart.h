/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Neighbours whose admission does not fit this node's: apart.c. */
#ifndef BARLINE_APART_H
#define BARLINE_APART_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/load/pin.h"
#include "loader/order/fence.h"

struct bl_node;

/** struct bl_apart - what a daemon has said of that. All zero at first. */
struct bl_apart {
	uint64_t looked_ns; /* CLOCK_MONOTONIC of the last look; 0: none */
	uint64_t since_ns;  /* a neighbour has disagreed since; 0: none does */
	uint64_t said_ns;   /* of the last line in the log; 0: none */
	bool said;          /* that it is so, and not yet that it is over */
};

/**
 * bl_apart_own - this node's policy as its beacons say it (struct bl_beacon); 0: it has no
 * admission.
 */
uint32_t bl_apart_own(const struct bl_node_ref *ref);

/**
 * bl_apart_sample - to be called often; looks once a second. @in: the node's @count inputs. @now:
 * CLOCK_MONOTONIC.
 */
void bl_apart_sample(struct bl_apart *a, const struct bl_node *n, const struct bl_fence_port *in,
		     int count, uint64_t now);

#endif
