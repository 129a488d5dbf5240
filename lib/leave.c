// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Last words. A sender that hears nothing any more has to report what it sent as unknown. So an
 * endpoint that leaves in order says what it has delivered, and what it has received and will not
 * deliver. Frames that are still on the way find no receiver, and are reported as unknown.
 */
#include "credit.h"
#include "dispatch.h"
#include "frame.h"
#include "leave.h"
#include "prepared.h"

/*
 * NAK the frames of @p in the reorder queue, which will not be delivered, in runs of consecutive
 * numbers.
 */
static void nak_queued(struct bl_endpoint *ep, struct bl_peer *p)
{
	const struct bl_rq_frame *f = p->rq.head;

	while (f) {
		uint32_t first = f->psn, n = 0;

		for (; f && f->psn == first + n && n < 2 * BL_WINDOW_MAX; f = f->next)
			n++;
		bl_rx_nak(ep, p, first, n, BL_NAK_LEFT, BL_NAK_WHOLE);
	}
}

/*
 * NAK the messages that the helper has taken out and the application has not read. Frames that the
 * sender does not remember any more are left out. The messages of a frame are neighbours on the
 * shelf, so one NAK for the whole frame suffices if its first message is on the shelf.
 */
static void nak_shelved(struct bl_endpoint *ep)
{
	const struct bl_shelved *whole = NULL;
	const struct bl_chunk *c;
	uint32_t i;

	for (c = ep->shelf.head; c; c = c->next) {
		for (i = c->at; i < c->n; i++) {
			const struct bl_shelved *m = &c->m[i];

			if (m->peer->self || m->peer->rx.expected - m->psn > 2 * BL_WINDOW_MAX)
				continue;
			if (whole && whole->peer == m->peer && whole->psn == m->psn)
				continue;
			whole = m->item ? NULL : m;
			bl_rx_nak(ep, m->peer, m->psn, 1, BL_NAK_LEFT,
				  m->item ? m->item : BL_NAK_WHOLE);
		}
	}
}

void bl_rx_leave(struct bl_endpoint *ep)
{
	const struct bl_buf *b = ep->cur;
	struct bl_peer *p;
	uint32_t i;

	bl_rx_drain(ep);
	nak_shelved(ep);
	for (i = 0; b && i < ep->cur_items.left; i++)
		bl_rx_nak(ep, b->peer, b->rq.psn, 1, BL_NAK_LEFT, (uint8_t)(ep->cur_index + i));
	for (p = ep->peers; p; p = p->all_next) {
		uint8_t body[sizeof(struct bl_credit)];

		if (!p->rx.known || p->self)
			continue;
		nak_queued(ep, p);
		bl_store32(body, p->rx.expected);
		bl_store16(body + 4, p->rx.incarnation);
		bl_store16(body + 6, BL_WINDOW_FIRST);
		bl_tx_control(ep, p, BL_OP_CREDIT, 0, body, sizeof(body));
	}
}

/*
 * Until senders hear of the leave they count on this endpoint: its host acknowledges what is on the
 * way (not_here() in bpf/host/host.bpf.c), but nothing opens their windows any more. So they get
 * the largest window now; all buffers that it covers are free.
 */
void bl_rrx_leave(struct bl_endpoint *ep)
{
	struct bl_peer *p;

	for (p = ep->peers; p; p = p->all_next)
		if (p->rrx.known && !p->self)
			bl_prepared_say_window(ep, p, p->rrx.seq.next, BL_WINDOW_MAX);
}
