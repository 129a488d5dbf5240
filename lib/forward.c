// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Frames for the host's daemon, which asks the controller to forward them (forward_core.h says
 * when; maps/forward_abi.h has the message). The frames are also sent to the network: forwarding is
 * a second way, and either way may lose a frame.
 *
 * An endpoint that receives a frame of a peer by way of the controller answers that way, too, since
 * perhaps no frame passes in either direction. ACKs are sent by the host's programs, which do not
 * need a process.
 */
#include <errno.h>
#include <sys/socket.h>
#include "maps/forward_abi.h"
#include "again.h"
#include "forward.h"

void bl_forward(struct bl_endpoint *ep, const struct bl_peer *p, const uint8_t *frame, uint32_t len,
		uint64_t mono)
{
	struct bl_forward_msg m = { .magic = BL_SOCK_FORWARD,
				    .port = p->addr.port,
				    .len = (uint16_t)len };

	if (ep->daemon < 0 || ep->daemon_gone || p->self || p->local || len > BL_FORWARD_MAX ||
	    !bl_fwd_take(&ep->fwd, mono))
		return;
	memcpy(m.addr, p->addr.ip, sizeof(m.addr));
	memcpy(m.frame, frame, len);
	/* A frame that the daemon has no room for is tried again by the caller. */
	if (send(ep->daemon, &m, sizeof(m) - sizeof(m.frame) + len, MSG_DONTWAIT | MSG_NOSIGNAL) >=
	    0)
		ep->st.forwarded++;
	else if (errno == EPIPE || errno == ECONNRESET)
		bl_daemon_gone(ep); /* an endpoint that never sleeps notices the end only here */
}

void bl_forward_control(struct bl_endpoint *ep, const struct bl_peer *p, const uint8_t *frame,
			uint32_t len, uint8_t opcode)
{
	uint64_t mono;

	if (!p->fwd_until_ns || !bl_op_relayed(opcode))
		return;
	mono = bl_mono();
	if (mono < p->fwd_until_ns)
		bl_forward(ep, p, frame, len, mono);
}

void bl_forward_heard(struct bl_peer *p)
{
	p->fwd_until_ns = bl_mono() + BL_FORWARD_KEEP_NS;
}
