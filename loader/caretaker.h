/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process that stands in for a daemon that was stopped; caretaker.c. */
#ifndef BARLINE_CARETAKER_H
#define BARLINE_CARETAKER_H

#include "base/log.h"

struct bl_node;

/**
 * bl_node_hand_over - starts a caretaker, which keeps the clock record and sends the beacons of the
 * node until the next daemon comes or caretaker_ms have passed, and tells the controller. Followed
 * by bl_node_close(). Only for a program whose main() knows --caretaker, since it executes itself.
 * Returns 0, or -errno: the node will be silent.
 */
int bl_node_hand_over(struct bl_node *n, struct bl_err *err);

/**
 * bl_caretaker_main - runs as the caretaker that bl_node_hand_over() started as `PROGRAM
 * --caretaker NUMBER`. Returns the exit status.
 */
int bl_caretaker_main(const char *number);

#endif
