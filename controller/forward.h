/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Controller forwarding (1Pipe section 5.2): the controller relays a frame from one correct host to
 * another one that the network does not reach (loader/order/forward.h).
 */
#ifndef BARLINE_CONTROLLER_FORWARD_H
#define BARLINE_CONTROLLER_FORWARD_H

#include "controller/ctl_priv.h"
#include "proto/ctl.pb-c.h"

/*
 * A frame is dropped if more bytes than this wait in the receiver's session already: announcements
 * of failures use the same sessions and must not be delayed by forwarded frames.
 */
#define CTL_FORWARD_WAIT (BL_SESSION_OUT_MAX / 32)

/**
 * ctl_forward - Forwards or drops the frame @m from the node at @p, and counts which.
 *
 * Returns false if @m is not a frame of the reliable stream; the caller then closes the session.
 */
bool ctl_forward(struct peer *p, const Bl__Forward *m);

#endif
