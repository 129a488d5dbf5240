/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pulse of a node's daemon: writing and reading the file of maps/pulse_abi.h. */
#ifndef BARLINE_PULSE_H
#define BARLINE_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#include "maps/meta_abi.h"
#include "maps/pulse_abi.h"

struct bl_node;

/**
 * bl_pulse_open - begins to write the pulse of node @n from its event loop, as the daemon, or with
 * @until_ns as a caretaker that ends at that time (CLOCK_MONOTONIC). What fails is logged: a node
 * without a pulse works, but seems dead to `barline status`.
 */
void bl_pulse_open(struct bl_node *n, uint64_t until_ns);

/**
 * bl_pulse_close - writes that the process has ended in order, unless @handed_over: a caretaker
 * writes from now on. No-op if it is not open.
 */
void bl_pulse_close(struct bl_node *n, bool handed_over);

/** bl_pulse_forget - removes the file of a node that is gone. */
void bl_pulse_forget(enum bl_role role, uint64_t ino);

/**
 * bl_pulse_read - reads the pulse of a node. Never blocks. Returns 0, or -errno and all zero:
 * -ENOENT: there is none; -EPROTO: it is not one of this version.
 */
int bl_pulse_read(enum bl_role role, uint64_t ino, struct bl_pulse *p);

#endif
