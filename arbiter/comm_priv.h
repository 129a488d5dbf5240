/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parts of comm.c that its unit test calls.
 */
#ifndef BARLINE_ARBITER_COMM_PRIV_H
#define BARLINE_ARBITER_COMM_PRIV_H

#include "arbiter/arb.h"

/** arb_take_slots - Put the slots of a grant into its sender's ALLOC. @now: CLOCK_MONOTONIC. */
void arb_take_slots(struct bl_arb *a, const struct arb_grant *g, uint64_t now);
/** arb_take_refund - Make a demand that was not served a new one of its session. */
void arb_take_refund(struct bl_arb *a, const struct arb_grant *g);
/**
 * arb_take_faults - Put a list of links to avoid into use if it is newer than the present one.
 * @k: a FAULTS packet whose check sum is right.
 *
 * Returns BL_FCP_R_OK, also for a list that is in use already, or why it was refused.
 */
enum bl_fcp_reason arb_take_faults(struct bl_arb *a, const struct bl_fcp_pkt *k);

#endif
