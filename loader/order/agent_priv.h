/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the unit test of agent.c calls in place of the event loop, and a bound that it checks. */
#ifndef BARLINE_AGENT_PRIV_H
#define BARLINE_AGENT_PRIV_H

#include <stdint.h>

#include "base/library/systemd.h"
#include "proto/session.h"

/*
 * A frame is not forwarded while more bytes than these wait in the session: the reports of failures
 * go first.
 */
#define BL_AGENT_FORWARD_WAIT (BL_SESSION_OUT_MAX / 32)

/** bl_agent_on_retry - timer: connects to the next controller. @ctx: struct bl_agent. */
int bl_agent_on_retry(sd_event_source *src, uint64_t usec, void *ctx);

/** bl_agent_on_beat - timer: sends a ping, or leaves a controller that is silent. */
int bl_agent_on_beat(sd_event_source *src, uint64_t usec, void *ctx);

#endif
