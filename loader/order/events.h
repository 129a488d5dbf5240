/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What endpoints and links report to the node's agent. The agent (loader/node_agent.c) sets
 * n->events when it opens, and the reporting files call the functions below, so that none of them
 * depends on the agent. A node without an agent has no events (n->events is NULL): then the
 * functions do nothing.
 */
#ifndef BARLINE_EVENTS_H
#define BARLINE_EVENTS_H

#include <stdint.h>

struct bl_ep_slot;
struct bl_forward;
struct bl_node;

/** struct bl_node_events - all callbacks are set. They come from the thread of the event loop. */
struct bl_node_events {
	void (*changed)(struct bl_node *n);
	void (*endpoint_gone)(struct bl_node *n, const struct bl_ep_slot *ep, uint8_t why,
			      uint64_t t);
	void (*forward_asked)(struct bl_node *n, const struct bl_forward *f);
};

/** bl_event_changed - endpoints, links or addresses of the node have changed. */
void bl_event_changed(struct bl_node *n);

/**
 * bl_event_endpoint_gone - the process of @ep is gone or expelled. Only if the node has
 * controllers.
 * @why: enum bl_why.
 * @t: what it sent from this bus time on is not committed.
 */
void bl_event_endpoint_gone(struct bl_node *n, const struct bl_ep_slot *ep, uint8_t why,
			    uint64_t t);

/** bl_event_forward_asked - a process asks for @f to be sent by way of the controller. */
void bl_event_forward_asked(struct bl_node *n, const struct bl_forward *f);

#endif
