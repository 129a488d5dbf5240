/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The list of sessions with agents, and which nodes may be sent commands. */
#ifndef BARLINE_CONTROLLER_PEER_H
#define BARLINE_CONTROLLER_PEER_H

#include "controller/ctl_priv.h"
#include "controller/message.h"

/** ctl_leading - Whether this controller leads by its own clock, and has loaded the store. */
bool ctl_leading(const struct bl_ctl *c);

/** ctl_peer_find - Returns the newest session of node @id, or NULL. */
struct peer *ctl_peer_find(const struct bl_ctl *c, uint32_t id);

/**
 * ctl_peer_ready - Returns the session of node @id if the node's record is saved and it was sent
 * WELCOME; NULL otherwise. An agent accepts no command before WELCOME.
 */
struct peer *ctl_peer_ready(struct bl_ctl *c, uint32_t id);

/** ctl_send - Sends @b on the session @p and frees it. A @b without data is ignored. */
void ctl_send(struct peer *p, struct ctl_bytes b);

/**
 * ctl_peer_remove - Takes @p off the list and frees it. If it was the node's last session, the
 * failure procedure is told that the node is no longer connected.
 */
void ctl_peer_remove(struct peer *p);

/** ctl_peer_hang_up - Closes the session of @p at once and removes it. */
void ctl_peer_hang_up(struct peer *p);

/**
 * ctl_peer_refer - Tells the agent who leads, and why this controller does not; then ends the
 * session once that is sent.
 */
void ctl_peer_refer(struct peer *p);

/** ctl_peer_refuse - Tells the agent @why it is refused; ends the session once that is sent. */
void ctl_peer_refuse(struct peer *p, const char *why);

#endif
