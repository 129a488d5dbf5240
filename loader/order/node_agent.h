/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's agent: between the failure controller (agent.h) and the node's datapath
 * (loader/order/fence.h) and endpoints. There is one if the node's configuration names controllers.
 *
 * What the node says comes from bl_fence_inputs(), looked at every half dead_after, and every
 * millisecond while something stands still or is awaited. What is ordered goes through the kernel's
 * fence: an order of an epoch that is older than what this node ever heard changes nothing,
 * whichever daemon gives it.
 *
 * Example: port 3 of a switch goes silent: held, C = 900, death 7. The next look finds that:
 * LINK_DOWN. FAIL does not concern a switch; RESUME {port 3, death 7} takes it out of C, and the
 * look after that says so in a HELLO.
 *
 * On a host FAIL becomes announcements (maps/failure_abi.h), and DONE is said as soon as they are
 * in the page: its endpoints read that before they deliver what the announcement may concern.
 * Nobody waits for processes.
 *
 * A node that was announced as failed resumes its own inputs, waits until its endpoints of before
 * are gone, and joins anew.
 *
 * A node without controllers, which never heard of an epoch either, has nothing of all this but
 * one: an input that stands still goes on as soon as it is heard again.
 *
 * Sessions come from the daemon's own network namespace, not from the node's.
 */
#ifndef BARLINE_NODE_AGENT_H
#define BARLINE_NODE_AGENT_H

#include "agent.h"
#include "forward.h"
#include "loader/node_priv.h"

/** bl_node_agent_open - the node is open else. Returns 0 or -errno. */
int bl_node_agent_open(struct bl_node *n, struct bl_err *err);
void bl_node_agent_close(struct bl_node *n);
/** bl_node_agent_endpoints - an endpoint came or went; nothing without an agent. */
void bl_node_agent_endpoints(struct bl_node *n);
/**
 * bl_node_agent_proc_down - the process of this endpoint is gone (@why: enum bl_why); what it sent
 * from @t (bus time) on is not committed.
 */
void bl_node_agent_proc_down(struct bl_node *n, const struct bl_ep_slot *ep, uint8_t why,
			     uint64_t t);
/** bl_node_agent_away - this daemon stops; the controller may expect the next one within @ms. */
void bl_node_agent_away(struct bl_node *n, uint32_t ms);
/**
 * bl_node_agent_forward - ask the controller to send a frame of an endpoint on. Without
 * controllers nothing.
 */
void bl_node_agent_forward(struct bl_node *n, const struct bl_forward *f);

#endif
