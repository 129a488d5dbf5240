/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The spare caretaker of a daemon: spare.c starts it, watches it, and hands the node over to it.
 * Only for a program whose main() knows --caretaker, since it executes itself. All functions belong
 * to the main thread.
 */
#ifndef BARLINE_SPARE_H
#define BARLINE_SPARE_H

#include "base/log.h"

struct bl_node;

/**
 * bl_spare_open - from now on the node has a spare caretaker, which the event loop starts, and
 * replaces when it has ended. No-op where caretaker_ms is 0.
 */
int bl_spare_open(struct bl_node *n, struct bl_err *err);

/**
 * bl_spare_renew - what the spare was told of the node has changed: it is ended, and another one is
 * started. None is while the host is drained (n->has_left) or caretaker_ms is 0. When this returns,
 * nobody would take over. No-op before bl_spare_open().
 */
void bl_spare_renew(struct bl_node *n);

/** bl_spare_close - ends the spare; it takes nothing over. No-op if there is none. */
void bl_spare_close(struct bl_node *n);

/**
 * bl_node_hand_over - has the spare, or if there is none a new caretaker, keep the clock record and
 * send the beacons of the node until the next daemon comes or caretaker_ms have passed, and tells
 * the controller. Followed by bl_node_close(). Returns 0, or -errno: the node will be silent.
 */
int bl_node_hand_over(struct bl_node *n, struct bl_err *err);

#endif
