/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs of a node that others take away: noticed once per second, counted, and attached
 * again where nothing has taken their place. maps/hook_watch_abi.h has the record of it. The
 * calling thread is in the node's network namespace.
 */
#ifndef BARLINE_HOOK_WATCH_H
#define BARLINE_HOOK_WATCH_H

#include <stdbool.h>

#include "base/log.h"

struct bl_attached;
struct bl_node;

/** bl_hook_watch_open - makes or opens the map of records. Returns 0 or -errno. */
int bl_hook_watch_open(struct bl_node *n, struct bl_err *err);

/**
 * bl_hook_watch_check - looks at all hooks of the node, and attaches programs that are missing.
 * @picks_queue: a filter behind the egress program of a host's NIC picks the transmit queue
 */
void bl_hook_watch_check(struct bl_node *n, bool picks_queue);

/**
 * bl_hook_watch_unused - records that barline's programs are not on the interface of @a.
 * @ifindex: the one that has its name now and cannot be used; 0: it is gone
 */
void bl_hook_watch_unused(struct bl_node *n, const struct bl_attached *a, int ifindex);

/** bl_hook_watch_close - closes the map, which stays pinned. */
void bl_hook_watch_close(struct bl_node *n);

#endif
