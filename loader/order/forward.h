/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Controller forwarding (1Pipe 5.2), the host's part: what endpoints hand over goes to the
 * controller, and what comes from it runs through the host's program.
 *
 * Two correct hosts may hear each other's barriers while data does not pass between them: a spine
 * that has lost its route still sends beacons. Then nobody has failed, and the frame that is not
 * acknowledged holds the commit barrier of the rack for ever. So libbarline hands it over
 * (lib/forward_core.h), and it travels: daemon, controller, daemon of the receiver, bl_host_relayed
 * (bpf/host/relay.h); and the ACK that this makes of it travels back.
 *
 * Example: PREP from 10.0.0.1:61696 for 10.0.0.3:61697. The daemon of 10.0.0.3 runs it; verdict
 * XDP_TX: what is in the buffer is the ACK from 10.0.0.3:61697 for 10.0.0.1:61696. The daemon
 * of 10.0.0.1 runs that; XDP_DROP: done.
 *
 * Whoever could forge such a message could send the frame itself: the program does the checks that
 * it does on the NIC. What the daemon sends is only ever from its own host's addresses, and no ACK
 * but the program's.
 */
#ifndef BARLINE_FORWARD_H
#define BARLINE_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/forward_msg.h"

struct bl_ep;
struct bl_node;

/** bl_forward_asked - a process said @len bytes on its endpoint's connection. */
void bl_forward_asked(const struct bl_ep *ep, const struct bl_forward_msg *m, size_t len);

/** bl_forward_run - a frame for this host. True: @answer goes back; it is in @buf. */
#define BL_FORWARD_BUF 4096
bool bl_forward_run(const struct bl_node *n, const struct bl_forward *f, struct bl_forward *answer,
		    uint8_t buf[BL_FORWARD_BUF]);

/** bl_forward_replace - for tests: runs @fd instead of bl_host_relayed. Returns the former fd. */
int bl_forward_replace(struct bl_node *n, int fd);

#endif
