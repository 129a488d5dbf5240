/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `barline top` reads of all its nodes at one time. Two snapshots make a reading (rows.h).
 * `barline trace` takes one of the barriers alone, to find who holds a message back (holder.h).
 *
 * Maps are read without their locks, so the datapath never waits for a reader: each number is
 * whole, and numbers that belong together may be some frames apart.
 */
#ifndef BARLINE_CLI_LIVE_SNAPSHOT_H
#define BARLINE_CLI_LIVE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/util/endpoints.h"
#include "cli/util/inputs.h"
#include "cli/util/read.h"

#define LIVE_COUNTERS_MAX 8

/** struct live_hold - the input that holds a barrier of a node back. */
struct live_hold {
	bool known;        /* an input counts; else the rest is zero */
	uint32_t input;    /* index in the node's inputs */
	uint32_t lane;     /* of it */
	uint64_t time;     /* its barrier, bus time; 0: it has none yet */
	uint64_t next;     /* what the barrier would be without it; BL_TIME_NONE: no other counts */
	uint32_t inputs;   /* that count */
	uint32_t late;     /* of them: those that are further behind than is ordinary */
	uint64_t since_ns; /* CLOCK_MONOTONIC since when it is late; 0: it is not */
};

enum live_stream { LIVE_ORDER, LIVE_RELIABLE, LIVE_STREAMS };

/** struct live_counter - a counter of an admission policy. */
struct live_counter {
	const char *name; /* as in JSON */
	uint64_t n;
};

/** struct live_queue - the output queues of a switch's port, together. */
struct live_queue {
	uint32_t port;
	uint64_t frames, bytes;
};

/** struct live_node - a node at one time. */
struct live_node {
	struct bl_node_ref ref;
	uint64_t at_ns;      /* CLOCK_MONOTONIC at which its counters were read */
	uint64_t bus_ns;     /* bus time, read after its barriers; 0: the clock is void */
	uint64_t bound_ns;   /* of the clock */
	uint32_t maps;       /* id of its map of counters: another one if its maps were made anew */
	uint64_t process[2]; /* pid and start time of its daemon; 0: no pulse */
	char daemon[24], clock[24]; /* words of docs/health.md */
	char error[256];            /* why it could not be read, or not completely; "": it was */
	struct count_row *count;
	int counts;
	struct node_inputs in;
	struct endpoint_row *ep;
	int eps;
	const char *policy;               /* of admission; NULL: off */
	uint64_t held_frames, held_bytes; /* in the hold queues of a host */
	struct live_queue *queue;         /* of the metered ports of a switch */
	int queues;
	struct live_counter counter[LIVE_COUNTERS_MAX];
	int counters;
	/* by live_follow() */
	struct live_hold hold[BL_SETS_MAX][LIVE_STREAMS];
	const char *state; /* as in rows.h */
	uint64_t state_ns; /* CLOCK_MONOTONIC since when */
};

/** struct live_snap - all nodes at one time. */
struct live_snap {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	double time_s;  /* CLOCK_REALTIME */
	struct live_node *node;
	int nodes;
	struct live_node *gone; /* that vanished lately: only their heads; by live_follow() */
	int gones;
};

/**
 * live_snap_read - reads the nodes of a network namespace, or with @netns_ino 0 of the machine. A
 * node that cannot be read is in the snapshot with its @error. Returns NULL if even the list cannot
 * be had, with the reason in @err. The caller calls live_snap_free().
 */
struct live_snap *live_snap_read(uint64_t netns_ino, struct bl_err *err);

/**
 * live_snap_barriers - reads only the inputs and the clocks of the nodes @refs. A node that cannot
 * be read has no inputs, and the reason as its @error. Returns NULL if there is no memory. The
 * caller calls live_snap_free().
 */
struct live_snap *live_snap_barriers(const struct bl_node_ref *refs, int nrefs);

/** live_snap_free - frees a snapshot. NULL: no-op. */
void live_snap_free(struct live_snap *s);

#endif
