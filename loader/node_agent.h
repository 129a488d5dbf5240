/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A node's agent: it stands between the failure controller (order/agent.h) and the node's datapath
 * (order/fence.h) and endpoints. A node has one with a session if its configuration names
 * controllers.
 *
 * What the node reports comes from bl_fence_inputs(), sampled every half dead_after, and every
 * millisecond while an input stands still or is awaited. Commands of the controller go through the
 * kernel's fence: a command of an epoch that is older than one that this node ever heard changes
 * nothing, whichever daemon carries it out.
 *
 * Example: port 3 of a switch goes silent and is held: C = 900, death 7. The next sample finds
 * that, and the agent says LINK_DOWN. FAIL does not concern a switch. RESUME {port 3, death 7}
 * takes the port out of C, and the sample after that says so in a HELLO.
 *
 * On a host FAIL becomes announcements (maps/failure_abi.h), and DONE is said as soon as they are
 * in the page: the endpoints read the page before they deliver what the announcement may concern,
 * so the agent waits for no process.
 *
 * A node that was announced as failed resumes its own inputs, waits until the endpoints that it had
 * are gone, and joins anew.
 *
 * A node that has no controllers, and never heard of an epoch, has an agent that does one thing
 * only: it resumes an input that stands still as soon as frames arrive there again.
 *
 * Sessions come from the daemon's own network namespace, not from the node's.
 */
#ifndef BARLINE_NODE_AGENT_H
#define BARLINE_NODE_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct bl_node;
struct bl_pulse;

/**
 * bl_node_agent_open - starts the agent of a node that is open otherwise, and sets n->events.
 * Returns 0 or -errno.
 */
int bl_node_agent_open(struct bl_node *n, struct bl_err *err);
/**
 * bl_node_agent_renew - begins sessions anew, as n->cfg.ctl says. An error leaves the agent of
 * before. Returns 0 or -errno.
 */
int bl_node_agent_renew(struct bl_node *n, struct bl_err *err);

void bl_node_agent_close(struct bl_node *n);

/** bl_node_agent_leave - bl_agent_leave(); no-op without controllers. */
void bl_node_agent_leave(struct bl_node *n, bool leaves);

/**
 * bl_node_agent_left - whether the rack knows that this host has left, or failed: it is not a
 * member. true without controllers.
 */
bool bl_node_agent_left(const struct bl_node *n);

/**
 * bl_node_agent_away - this daemon stops: tells the controller that the next one may be expected
 * within @ms. Runs the event loop until the answer has come, for one second at most.
 */
void bl_node_agent_away(struct bl_node *n, uint32_t ms);

/** bl_node_agent_pulse - fills in what the pulse of the daemon says of its session. */
void bl_node_agent_pulse(const struct bl_node *n, struct bl_pulse *p);

#endif
