// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The end of an endpoint that is out (1Pipe 5.2, "Receiver recovery"): its host has expelled it
 * while it lived, it was announced as failed with its host, or it is too far behind the
 * announcements. It delivers, in order, what it has stored and all other receivers are certain to
 * deliver, too. Then it returns -ESTALE, and tells up to which timestamp its state is that of the
 * group.
 *
 * Certain are messages below a commit barrier that this host had received before any host could be
 * told that the endpoint is out. All messages below that barrier were acknowledged by all
 * receivers, or recalled with an answer from here. The ring has the messages and the recalls, and
 * the page has the failures of senders whose T is below. docs/reliable.md, "Receiver recovery", has
 * the argument.
 *
 * Example: C = 90 had come when the daemon put the endpoint out; the ring holds messages 70, 85 and
 * 95. After Resume, C advances to 400. The process wakes up, delivers 70 and 85, and gets -ESTALE
 * with ts = 90. Message 95 is undecided: its sender may have been told of the failure before it had
 * all ACKs, and may have recalled the message from the other receivers.
 */
#include "buf.h"
#include "error.h"
#include "lock.h"
#include "prepared.h"
#include "shelf.h"

/* Whether everything that is certain was delivered. */
static bool is_at_end(const struct bl_endpoint *ep)
{
	return ep->outcast && ep->ended && ep->fail_seen == ep->fail_begun &&
	       (ep->undecided || (!bl_rrx_ready(ep) && !bl_shelf_count(ep, true)));
}

int bl_get_stale(const struct bl_endpoint *ep, struct bl_stale *s)
{
	struct bl_endpoint *mine = (struct bl_endpoint *)ep; /* for the lock alone */
	bool end;

	if (s->size != sizeof(*s))
		return -EINVAL;
	bl_enter(mine);
	end = is_at_end(ep);
	s->ts = end ? ep->commit : s->ts;
	s->undecided = end ? bl_rrx_count_undecided(ep) : s->undecided;
	bl_leave(mine);
	return end ? 0 : -EAGAIN;
}

int bl_recv_undecided(struct bl_endpoint *ep, struct bl_delivery *out, size_t max)
{
	int rc;

	bl_enter(ep);
	if (!is_at_end(ep)) {
		rc = bl_set_error(ep, EAGAIN,
				  "nothing is undecided until bl_recv_reliable() has returned "
				  "-ESTALE");
	} else {
		ep->undecided = true;
		bl_rx_release(ep, &ep->rlent);
		rc = bl_rrx_deliver_undecided(ep, out, max);
	}
	bl_leave(ep);
	return rc;
}
