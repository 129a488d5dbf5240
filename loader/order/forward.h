/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Controller forwarding (1Pipe 5.2), the host's part: frames that endpoints hand over go to the
 * controller, and frames that come from it run through the host's program.
 *
 * Two correct hosts may hear each other's barriers while data does not pass between them: a spine
 * that has lost a route still sends beacons. Then no node has failed, and the frame that is not
 * acknowledged holds the commit barrier of the rack for ever. So libbarline hands it over
 * (lib/forward_core.h), and it goes to the daemon, the controller, the receiver's daemon, and the
 * program bl_host_relayed (bpf/host/relay.h). The ACK that the program makes of it comes back the
 * same way.
 *
 * Example: a PREP from 10.0.0.1:61696 for 10.0.0.3:61697. The daemon of 10.0.0.3 runs it through
 * the program. Verdict XDP_TX: the buffer has the ACK from 10.0.0.3:61697 for 10.0.0.1:61696. The
 * daemon of 10.0.0.1 runs that; verdict XDP_DROP: done.
 *
 * A process that could forge such a message could also send the frame itself: the program checks it
 * as it does on the NIC. A daemon sends frames from addresses of its own host only, and no ACKs but
 * those of the program.
 */
#ifndef BARLINE_FORWARD_H
#define BARLINE_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/forward_msg.h"

struct bl_ep;
struct bl_node;

/**
 * bl_forward_asked - a process sent the @len bytes at @m on its endpoint's connection; a valid
 * frame is reported to the agent.
 */
void bl_forward_asked(const struct bl_ep *ep, const struct bl_forward_msg *m, size_t len);

/**
 * bl_forward_run - runs a frame for this host through its program. Returns true if @answer, which
 * points into @buf, is to be sent back.
 */
#define BL_FORWARD_BUF 9344
bool bl_forward_run(const struct bl_node *n, const struct bl_forward *f, struct bl_forward *answer,
		    uint8_t buf[BL_FORWARD_BUF]);

/** bl_forward_replace - for tests: runs @fd instead of bl_host_relayed. Returns the former fd. */
int bl_forward_replace(struct bl_node *n, int fd);

#endif
