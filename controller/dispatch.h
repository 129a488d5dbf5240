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

#endif
