/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Accepts the connections of agents, closes sessions that are silent, logs those that fail. */
#ifndef BARLINE_CONTROLLER_SESSIONS_H
#define BARLINE_CONTROLLER_SESSIONS_H

#include "controller/ctl_priv.h"

/**
 * ctl_sessions_open - Adds the listening socket and the timer for silent sessions to the event
 * loop. The caller has opened @c->listen_fd.
 *
 * Returns 0 or -errno with a text in @err.
 */
int ctl_sessions_open(struct bl_ctl *c, struct bl_err *err);

/** ctl_sessions_look - Looks for silent sessions at once: the limit has changed. */
void ctl_sessions_look(struct bl_ctl *c);

/** ctl_sessions_close - Closes all sessions and undoes ctl_sessions_open(). */
void ctl_sessions_close(struct bl_ctl *c);

#endif
