/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host's part where two processes do not reach each other though no node has failed
 * (controller/recover/recover_stuck.c): finds windows that stand still although their processes
 * work (stuck_core.h), and names the receivers that they wait for.
 *
 * A window may also stand still because a recall has no answer. Only the process knows which
 * receiver owes that answer. Then the process itself is expelled, which serves as well: one of the
 * two has to go.
 */
#ifndef BARLINE_STUCK_H
#define BARLINE_STUCK_H

#include <stdint.h>

#include "loader/order/agent.h"
#include "loader/order/stuck_core.h"
#include "proto/forward_msg.h"
#include "maps/host_abi.h"

struct bl_node;

/** struct bl_stuck_seen - what the last sample of an endpoint's window found. */
struct bl_stuck_seen {
	struct bl_stuck window;
	struct bl_stuck_lag lag;
	uint16_t life;                             /* incarnation that @tried is about */
	struct bl_stuck_try tried[BL_STUCK_NAMES]; /* PREPs by way of the controller */
};

/** bl_stuck_forwarded - the controller was asked to forward @f, of an endpoint of this host. */
void bl_stuck_forwarded(struct bl_node *n, struct bl_stuck_seen seen[BL_EPS_MAX],
			const struct bl_forward *f);

/** bl_stuck_answered - @f has come by way of the controller, for an endpoint of this host. */
void bl_stuck_answered(struct bl_node *n, struct bl_stuck_seen seen[BL_EPS_MAX],
		       const struct bl_forward *f);

/**
 * bl_stuck_find - samples the windows of all endpoints. Those that hold C for far too long are put
 * out.
 * @seen: by slot: the last sample.
 * @limit_ns: how long a window may stand still.
 * @say: called for each receiver that is not reached.
 */
void bl_stuck_find(struct bl_node *n, struct bl_stuck_seen seen[BL_EPS_MAX], uint64_t limit_ns,
		   void (*say)(void *ctx, const struct bl_agent_stuck *s), void *ctx);

#endif
