/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host's part where two processes do not reach each other though nobody has failed
 * (controller/recover/recover_stuck.c): it finds windows that stand although their processes work
 * (stuck_core.h), and names the receivers that they wait for.
 *
 * A window may also stand because a recall has no answer. Which receiver owes that only the process
 * knows; then the process itself is put out, which is as good: one of the two has to go.
 */
#ifndef BARLINE_STUCK_H
#define BARLINE_STUCK_H

#include <stdint.h>

#include "loader/order/agent.h"
#include "loader/order/stuck_core.h"
#include "maps/host_abi.h"

struct bl_node;

#define BL_STUCK_NAMES 64 /* receivers of one endpoint that are named at once */

/**
 * bl_stuck_find - look at all endpoints; @seen: by slot, what the last look saw. @say: for each
 * receiver that is not reached.
 */
void bl_stuck_find(struct bl_node *n, struct bl_stuck seen[BL_EPS_MAX], uint64_t limit_ns,
		   void (*say)(void *ctx, const struct bl_agent_stuck *s), void *ctx);

#endif
