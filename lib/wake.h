/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arming and disarming the wake-up of a sleeping endpoint. A sleeper writes into its page the
 * timestamp that a barrier must pass before the sleeper has something to do. The host's XDP program
 * compares its barriers with that timestamp and wakes the sleeper through the ring's wait queue.
 */
#ifndef BARLINE_LIB_WAKE_H
#define BARLINE_LIB_WAKE_H

#include "internal.h"

/* Timestamps that a sleeper waits for; BL_WAKE_ON_DATA or BL_TIME_NONE without a queued frame. */
struct bl_firsts {
	uint64_t ts;   /* first queued best-effort frame */
	uint64_t ts_c; /* first prepared frame of the reliable stream */
};

/** bl_wake_firsts - what a sleeper that waits for @what (BL_WAIT_*) has to be woken for. */
struct bl_firsts bl_wake_firsts(const struct bl_endpoint *ep, unsigned int what);

/**
 * bl_wake_arm - ask the XDP program for a wake-up.
 * @firsts: from bl_wake_firsts().
 * @what: BL_WAIT_*; BL_WAIT_ACKED, or a window without free slots, asks for the next ACK, too.
 */
void bl_wake_arm(struct bl_endpoint *ep, struct bl_firsts firsts, unsigned int what);

/** bl_disarm - withdraw the request for a wake-up. */
void bl_disarm(struct bl_endpoint *ep);

/**
 * bl_wake_due_at - when the endpoint has something to do without a wake-up.
 * Returns CLOCK_MONOTONIC ns; 0: never.
 */
uint64_t bl_wake_due_at(const struct bl_endpoint *ep);

/** bl_wake_set_timer - set the timer behind bl_fd() to bl_wake_due_at(). */
void bl_wake_set_timer(struct bl_endpoint *ep);

/** bl_wake_raise_fd - make bl_fd() readable now. It stays readable until the timer is read. */
void bl_wake_raise_fd(struct bl_endpoint *ep);

#endif
