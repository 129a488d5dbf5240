/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The comm stage of the arbiter: sockets, sessions and watchdogs.
 */
#ifndef BARLINE_ARBITER_COMM_H
#define BARLINE_ARBITER_COMM_H

#include <stdint.h>

#include "base/log.h"

struct bl_arb;

/** arb_comm_open - Open the sockets and the sessions. Returns 0 or -errno. */
int arb_comm_open(struct bl_arb *a, struct bl_err *err);
void arb_comm_close(struct bl_arb *a);
/**
 * arb_comm_turn - Do what is due: watchdogs, requests, grants, timers. Returns when the next turn
 * is due if nothing comes before, CLOCK_MONOTONIC.
 */
uint64_t arb_comm_turn(struct bl_arb *a);
/** arb_comm_take - Take over all that the pipeline holds for comm. */
void arb_comm_take(struct bl_arb *a);
/** arb_comm_wait - Sleep until @until, CLOCK_MONOTONIC, or until a packet or a grant comes. */
void arb_comm_wait(struct bl_arb *a, uint64_t until);

#endif
