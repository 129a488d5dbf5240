/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The allocation and path stages of the arbiter.
 */
#ifndef BARLINE_ARBITER_PIPE_H
#define BARLINE_ARBITER_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct bl_arb;

/** arb_pipe_open - Reserve the rings and buffers of the stages. Returns 0 or -errno. */
int arb_pipe_open(struct bl_arb *a, struct bl_err *err);
void arb_pipe_close(struct bl_arb *a);
/**
 * arb_alloc_turn - Take asks, and run the allocator if a run is due. Returns when the next run is
 * due, CLOCK_MONOTONIC; BL_FCP_NEVER: nothing waits.
 */
uint64_t arb_alloc_turn(struct bl_arb *a);
/**
 * arb_path_turn - Give paths to what lies in the ring of path selector @i. Returns false if the
 * ring was empty.
 */
bool arb_path_turn(struct bl_arb *a, unsigned int i);

#endif
