/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What changed about a node's inputs from one sample (bl_fence_inputs()) to the next: which began
 * to stand still, and which are heard again. Pure: the state of the inputs is the argument, the
 * change is the result.
 *
 * Example: port 3 is in C's minimum. At the next sample it stands still at C = 900, death 8:
 * SILENT, which LINK_DOWN reports. RESUME comes, and the port joins and dies again before the next
 * sample. It stands still at C = 1200, death 9: SILENT again.
 */
#ifndef BARLINE_AGENT_WATCH_H
#define BARLINE_AGENT_WATCH_H

#include <stdint.h>

#include "loader/order/agent.h"
#include "loader/order/fence.h"
#include "maps/switch_abi.h"

/** struct bl_agent_watch - each port as it was at the last sample. All zero: never sampled. */
struct bl_agent_watch {
	struct {
		uint32_t neighbour, death;
		uint8_t state; /* enum bl_agent_port_state + 1; 0: never sampled */
	} port[BL_SW_PORTS_MAX];
};

enum bl_agent_seen {
	BL_AGENT_SEEN_NOTHING,
	BL_AGENT_SEEN_SILENT, /* it began to stand still, or did so anew */
	BL_AGENT_SEEN_LIVE,   /* it is live, and was not */
	/* it left C's minimum, or came into it behind; or it has another neighbour */
	BL_AGENT_SEEN_OTHER,
};

/** bl_agent_port_state - returns the enum bl_agent_port_state of an input. */
uint8_t bl_agent_port_state(const struct bl_fence_port *p);

/** bl_agent_watch_sample - returns what changed about @p->port, which is below BL_SW_PORTS_MAX. */
enum bl_agent_seen bl_agent_watch_sample(struct bl_agent_watch *w, const struct bl_fence_port *p);

#endif
