/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Passes the messages of agents to the parts of the controller that handle them. */
#ifndef BARLINE_CONTROLLER_DISPATCH_H
#define BARLINE_CONTROLLER_DISPATCH_H

#include "controller/ctl_priv.h"
#include "proto/ctl.pb-c.h"

/**
 * ctl_dispatch - Handles message @m of the agent at session @p, and counts what became of it. The
 * caller runs ctl_outputs_run() afterwards.
 *
 * Returns false if the message breaks a rule; the caller then closes the session.
 */
bool ctl_dispatch(struct peer *p, const Bl__ToController *m);

/* Time in which a session has to answer a ping when somebody else says HELLO for its node. */
#define CTL_CHALLENGE_NS 500000000ULL

/** ctl_session_answers - The session @old lives: who said HELLO for its node is sent away. */
void ctl_session_answers(struct peer *old);

/** ctl_session_gone - The session of @node is over: a HELLO that waited for it is taken up. */
void ctl_session_gone(struct bl_ctl *c, uint32_t node);

/** ctl_dispatch_open - Adds the timer of waiting HELLOs to the event loop. Returns 0 or -errno. */
int ctl_dispatch_open(struct bl_ctl *c, struct bl_err *err);
void ctl_dispatch_close(struct bl_ctl *c);

#endif
