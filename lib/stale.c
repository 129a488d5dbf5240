// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The end of an endpoint that is out (1Pipe 5.2, "Receiver recovery"): put out by its host while it
 * lived, announced as failed with its host, or too far behind the announcements. What it has stored
 * and the group is certain to deliver it delivers itself, in order; then it says ESTALE, and tells
 * up to which timestamp its state is the group's.
 *
 * What is certain: messages below a commit barrier that this host had received before anybody could
 * be told that the endpoint is out. Every sender's messages below that were acknowledged by all, or
 * recalled with an answer from here; the ring has the messages, the recalls, and the page has the
 * failures of senders whose T is below. docs/reliable.md, "Receiver recovery", has the argument.
 *
 * Example: C = 90 had come when the daemon put the endpoint out; the ring holds messages 70, 85
 * and 95. Resume lets C pass on to 400. The process wakes up, delivers 70 and 85, and gets ESTALE,
 * with ts = 90. 95 is undecided: its sender may have been told before it had all ACKs, and recalled
 * it from the others.
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
				  "bl_recv_reliable() has not said ESTALE: nothing is undecided "
				  "yet");
	} else {
		ep->undecided = true;
		bl_rx_release(ep, &ep->rlent);
		rc = bl_rrx_deliver_undecided(ep, out, max);
	}
	bl_leave(ep);
	return rc;
}
