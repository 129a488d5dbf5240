/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host that leaves in order, so that its machine can be rebooted (`barline host drain`), and that
 * comes back (`undrain`). The order is a word of the host page, which outlives the daemon.
 *
 * Example: two processes have endpoints. The daemon stores @drained. From then on bl_send() and
 * bl_init() return -ESHUTDOWN. The first process gets its last ACK and says that it is quiet
 * (lib/drain.c); the second one calls bl_exit(). Now nobody sends: the daemon puts the first
 * endpoint out, and announces it as left. The controller is told that the host leaves, and takes
 * it out of the commit barrier, announced as "left". The last beacon says so too, for the switch;
 * it excludes the host at once. After `undrain` the host sends beacons and joins anew.
 *
 * Without controllers the last beacon does all of this, and senders that still send to the host
 * learn from its answers that the endpoints have left.
 */
#ifndef BARLINE_LOADER_DRAIN_H
#define BARLINE_LOADER_DRAIN_H

#include <stdbool.h>

#include "base/log.h"
#include "maps/host_abi.h"

struct bl_node;

/**
 * bl_drain_open - goes on to drain the host if an earlier daemon was told to. After the agent and
 * the endpoints were opened. Returns 0 or -errno.
 */
int bl_drain_open(struct bl_node *n, struct bl_err *err);
void bl_drain_close(struct bl_node *n);

/** bl_drain_asked - answers a request on connection @conn. Returns false: @conn can be closed. */
bool bl_drain_asked(struct bl_node *n, int conn, const struct bl_drain_req *q);

#endif
