// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See events.h. */
#include "loader/order/events.h"

#include "loader/node_priv.h"
#include "proto/forward_msg.h"

void bl_event_changed(struct bl_node *n)
{
	if (n->events)
		n->events->changed(n);
}

void bl_event_endpoint_gone(struct bl_node *n, const struct bl_ep_slot *ep, uint8_t why, uint64_t t)
{
	if (n->events)
		n->events->endpoint_gone(n, ep, why, t);
}

void bl_event_forward_asked(struct bl_node *n, const struct bl_forward *f)
{
	if (n->events)
		n->events->forward_asked(n, f);
}
