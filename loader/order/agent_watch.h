/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a node's inputs say to its agent from one look at them (bl_fence_inputs()) to the next:
 * which began to stand still, and which are heard again. Pure: how they stand in, what is different
 * out.
 *
 * Example: port 3 is in C's minimum; at the next look it stands still at C = 900, death 8: SILENT,
 * and that is what LINK_DOWN says. RESUME, and the port joins and dies again before the next look:
 * it stands still at C = 1200, death 9: SILENT, again.
 */
#ifndef BARLINE_AGENT_WATCH_H
#define BARLINE_AGENT_WATCH_H

#include <stdint.h>

#include "loader/order/agent.h"
#include "loader/order/fence.h"
#include "maps/switch_abi.h"

/**
 * struct bl_agent_watch - how each port stood at the last look. All zero: nothing was looked at.
 * @state: enum bl_agent_port_state + 1.
 */
struct bl_agent_watch {
	struct {
		uint32_t neighbour, death;
		uint8_t state;
	} port[BL_SW_PORTS_MAX];
};

enum bl_agent_seen {
	BL_AGENT_SEEN_NOTHING,
	BL_AGENT_SEEN_SILENT, /* it began to stand still, and was not seen to before */
	BL_AGENT_SEEN_LIVE,   /* it counts as live, and did not */
	/* it left C's minimum, or came into it behind; or another neighbour is at its other end */
	BL_AGENT_SEEN_OTHER,
};

/** bl_agent_port_state - enum bl_agent_port_state of an input. */
uint8_t bl_agent_port_state(const struct bl_fence_port *p);
/** bl_agent_watch_sample - what is different about port @p->port, which is below BL_SW_PORTS_MAX.
 */
enum bl_agent_seen bl_agent_watch_sample(struct bl_agent_watch *w, const struct bl_fence_port *p);

#endif
