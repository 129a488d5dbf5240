// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Headers, timestamps and control frames, for both streams. */
#include <errno.h>
#include <sys/socket.h>

#include "error.h"
#include "forward.h"
#include "frame.h"
#include "nic.h"

int bl_tx_clock_void(struct bl_endpoint *ep)
{
	return bl_set_error(ep, ETIME,
			    "the clock record is void since the host daemon stopped; nothing is "
			    "sent rather than sent wrong");
}

/*
 * In flight first, the timestamp after it: pairs with host_barriers() in bpf/host.bpf.c. Either it
 * sees this store, or its promise came before we look at clock and promise.
 *
 * Above all that was delivered here, too. The barrier is never above this host's own promise,
 * unless the switch's lane that brings it back stood still for dead_after: then others with faster
 * clocks may be ahead. What follows from a message must not come before it, and a message to
 * oneself not below what one has delivered.
 */
uint64_t bl_tx_stamp(struct bl_endpoint *ep)
{
	uint64_t noted = bl_max64(bl_clock_at(ep->clock, bl_mono()),
				  BL_READ_ONCE(ep->page->promised)),
		 ts;

	BL_WRITE_ONCE(ep->inflight[ep->slot].ts, noted);
	__sync_synchronize();
	ts = bl_clock_at(ep->clock, bl_mono());
	ts = bl_promise_ts(bl_max64(ts, ep->floor), BL_READ_ONCE(ep->page->promised), noted,
			   bl_max64(ep->last_ts, bl_max64(ep->rq.last_ts, ep->rrq.last_ts)));
	ep->last_ts = ts;
	return ts;
}

int bl_tx_control(struct bl_endpoint *ep, struct bl_peer *p, uint8_t opcode, uint32_t psn,
		  const void *body, uint32_t len)
{
	uint8_t f[sizeof(struct bl_hdr) + 32];

	if (ep->put_out)
		return -ESTALE; /* nobody listens, and no controller shall be asked to forward it */
	bl_tx_hdr(f, opcode, 0, psn);
	memcpy(f + sizeof(struct bl_hdr), body, len);
	bl_forward_control(ep, p, f, (uint32_t)sizeof(struct bl_hdr) + len, opcode);
	if (!p->local)
		bl_nic_count(ep, 1);
	/* a control frame that cannot leave is repeated by whoever needs it */
	if (sendto(ep->sock, f, sizeof(struct bl_hdr) + len, 0, (struct sockaddr *)&p->sa,
		   p->sa_len) < 0)
		return -errno;
	return 0;
}
