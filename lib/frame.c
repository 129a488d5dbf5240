// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Headers, timestamps and control frames, for both streams. */
#include <errno.h>
#include <sys/socket.h>

#include "core/order/line_core.h"
#include "error.h"
#include "forward.h"
#include "frame.h"
#include "nic.h"

#define CONTROL_MAX (sizeof(struct bl_hdr) + 32)

int bl_tx_clock_void(struct bl_endpoint *ep)
{
	return bl_set_error(ep, ETIME,
			    "the clock record is void since the host daemon stopped; nothing is "
			    "sent rather than sent wrong");
}

/*
 * The endpoint goes in flight first and reads clock and promise afterwards. This pairs with
 * host_barriers() in bpf/host/host.bpf.c: either that function sees the store, or its promise was
 * made before the clock and the promise are read here.
 *
 * The timestamp is also above everything that was delivered here. The barrier is never above the
 * promise of this host, unless the lane of the switch that returns it was stuck for dead_after; in
 * that case hosts with faster clocks may be ahead. A message must not be ordered before a message
 * that it follows from, and a message of the endpoint to itself must not lie below what the
 * endpoint has delivered.
 *
 * A process that was stopped in here for longer than its host waits takes another timestamp, since
 * nothing has left with this one (struct bl_ep_word).
 */
uint64_t bl_tx_stamp(struct bl_endpoint *ep, bool reliable)
{
	struct bl_inflight *mine = ep->line;
	uint64_t noted, ts;

	do {
		noted = bl_max64(bl_clock_at(ep->clock, bl_mono()),
				 BL_READ_ONCE(ep->page->promised));
		BL_WRITE_ONCE(mine->ts, noted);
		__sync_synchronize();
		ts = bl_clock_at(ep->clock, bl_mono());
		ts = bl_promise_ts(ts, BL_READ_ONCE(ep->page->promised), noted,
				   bl_max64(ep->last_ts,
					    bl_max64(ep->rq.last_ts, ep->rrq.last_ts)));
		if (reliable)
			BL_WRITE_ONCE(mine->hold, ts);
		/*
		 * Pairs with the daemon and least_inflight(): either this sees that the line is
		 * void, or a program that does not count the line any more finds the hold.
		 */
		__sync_synchronize();
	} while (bl_line_void(noted, BL_READ_ONCE(ep->page->word[ep->slot].upto)));
	ep->last_ts = ts;
	return ts;
}

static int put_control(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *f, uint32_t len)
{
	if (!p->local)
		bl_nic_count(ep, 1);
	/* A control frame that cannot leave is repeated by the side that needs it. */
	return sendto(ep->sock, f, len, 0, (struct sockaddr *)&p->sa, p->sa_len) < 0 ? -errno : 0;
}

/* Returns the length of the frame @f; 0: the endpoint sends nothing any more. */
static uint32_t make_control(struct bl_endpoint *ep, struct bl_peer *p, uint8_t *f, uint8_t opcode,
			     uint32_t psn, const void *body, uint32_t len)
{
	if (ep->put_out)
		/* no receiver listens, and the controller must not be asked to forward the frame */
		return 0;
	bl_tx_hdr(f, opcode, 0, psn);
	memcpy(f + sizeof(struct bl_hdr), body, len);
	len += (uint32_t)sizeof(struct bl_hdr);
	bl_forward_control(ep, p, f, len, opcode);
	return len;
}

int bl_tx_control_fits(struct bl_endpoint *ep, struct bl_peer *p, uint8_t opcode, uint32_t psn,
		       const void *body, uint32_t len)
{
	uint8_t f[CONTROL_MAX];

	len = make_control(ep, p, f, opcode, psn, body, len);
	return len ? put_control(ep, p, f, len) : -ESTALE;
}

int bl_tx_control(struct bl_endpoint *ep, struct bl_peer *p, uint8_t opcode, uint32_t psn,
		  const void *body, uint32_t len)
{
	uint8_t f[CONTROL_MAX];
	int rc;

	len = make_control(ep, p, f, opcode, psn, body, len);
	if (!len)
		return -ESTALE;
	if (!p->local && !bl_nic_room(ep, 1, BL_NIC_CONTROLS)) {
		ep->st.ring_full++;
		return -ENOBUFS;
	}
	rc = put_control(ep, p, f, len);
	if (!p->local)
		bl_nic_witness(ep);
	return rc;
}
