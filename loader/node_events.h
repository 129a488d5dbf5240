/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The file of a node's events (base/event.h), and the events that are found by looking. */
#ifndef BARLINE_NODE_EVENTS_H
#define BARLINE_NODE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "maps/meta_abi.h"

struct bl_fence_port;
struct bl_node;

/**
 * bl_node_events_open - from now on, events of the node go into its file, too,
 * BL_RUN_DIR/<role>-<netns>-events.jsonl. What fails is logged.
 */
void bl_node_events_open(struct bl_node *n);

/** bl_node_events_rename - gives the node the name @name, and has its events go on under it. */
void bl_node_events_rename(struct bl_node *n, const char *name);

/** bl_node_events_close - ends that. */
void bl_node_events_close(struct bl_node *n);

/**
 * bl_node_events_started - reports that this process has made the node, or taken it over.
 * @generic: the XDP programs run in generic mode
 */
void bl_node_events_started(const struct bl_node *n, bool generic);

/** bl_node_events_stopped - reports that this process serves the node no more. */
void bl_node_events_stopped(const struct bl_node *n, const char *reason);

/** bl_node_events_forget - removes the file of a node that is gone, and the one before it. */
void bl_node_events_forget(enum bl_role role, uint64_t ino);

/**
 * bl_node_events_inputs - reports neighbours that have joined or were excluded since the last call.
 * @in: the inputs, as bl_fence_inputs() reads them
 */
void bl_node_events_inputs(struct bl_node *n, const struct bl_fence_port *in, int count);

/** bl_node_port_name - the interface of a port of a switch, or a host's NIC; "?": unknown. */
const char *bl_node_port_name(const struct bl_node *n, uint32_t port);

#endif
