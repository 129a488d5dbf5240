/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who holds whom back. Pure functions of what was read: no map, no clock.
 *
 * The barrier of a node is the minimum over its inputs, so one input holds it back: the one that is
 * the minimum. That is so at every moment, also where nothing is wrong; an input holds a barrier
 * back in a sense that matters if it is late, which is further behind the clock than ten beacon
 * intervals and HOLD_LATE_NS.
 *
 * Example: a switch has inputs h1 at 1000, h2 at 1010 and h3 at 400, all in ms, and its clock says
 * 1010. h3 is late by 610 ms and is the minimum. Without it the barrier would be 1000. The host h1
 * waits as well: its own input is the switch, whose minimum is h3, so h1 waits for h3.
 */
#ifndef BARLINE_CLI_LIVE_HOLDER_H
#define BARLINE_CLI_LIVE_HOLDER_H

#include "cli/live/snapshot.h"

#define HOLD_LATE_NS    10000000ULL
#define HOLD_LEVELS_MAX 8 /* of switches that are followed */

/** hold_limit - how far an input may be behind before it is late. */
uint64_t hold_limit(uint64_t beacon_ns);

/**
 * hold_input_time - finds the least time of the lanes of an input that count for the minimum of a
 * stream. Returns false if none counts; then @time and @lane stay as they are.
 */
bool hold_input_time(const struct node_input *in, enum live_stream stream, uint64_t *time,
		     uint32_t *lane);

/**
 * hold_find - finds the input that is the minimum of @set.
 * @now: bus time; 0: unknown, and then no input is late
 */
void hold_find(const struct node_inputs *in, unsigned int set, enum live_stream stream,
	       uint64_t now, struct live_hold *h);

/**
 * live_holds - finds the holds of all nodes of @now. Since when an input is late is taken from
 * @old, the snapshot before, if it was late there already; NULL: there is none.
 */
void live_holds(const struct live_snap *old, struct live_snap *now);

/** live_same_node - the node of @s with the role and the network namespace of @n; NULL: none. */
const struct live_node *live_same_node(const struct live_snap *s, const struct live_node *n);

/** struct live_culprit - where the search for the one who holds a barrier back ended. */
struct live_culprit {
	const struct live_node *at; /* the node whose input it is, and the input */
	const struct node_input *port;
	uint32_t node_id;             /* of the neighbour behind that input; 0: never heard */
	const struct live_node *node; /* that neighbour, NULL: it is not on this machine */
	/* the endpoint of @node that is in the middle of a send which holds it; NULL: none */
	const struct endpoint_row *ep;
};

/**
 * hold_follow - follows what holds @n back from node to node, as far as they are in @s, whose holds
 * live_holds() has found. @ts: follows only what has not passed this time yet; BL_TIME_NONE:
 * everything. Returns false if nothing is known of it.
 */
bool hold_follow(const struct live_snap *s, const struct live_node *n, unsigned int set,
		 enum live_stream stream, uint64_t ts, struct live_culprit *c);

#endif
