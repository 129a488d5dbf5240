// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a best-effort receiver tells its senders. A CREDIT says which frames have left the reorder
 * queue and how many may be outstanding, so a receiver that does not keep up closes its senders'
 * windows instead of filling its ring. A NAK names frames that will not be delivered.
 */
#include "buf.h"
#include "credit.h"
#include "frame.h"
#include "nic.h"
#include "proof.h"
#include "send_fail.h"
#include "timers.h"

#define CREDITS_ASK 8u /* CREDITs that ask for room in the NIC's ring together */

/*
 * CREDITs without room in the NIC's ring wait. A CREDIT that is lost there would cost its sender 25
 * ms, until the sender's PROBE.
 */
void bl_rx_credits(struct bl_endpoint *ep)
{
	uint32_t near = bl_rx_window(ep), far = ep->credits ? bl_nic_window(ep, near) : near,
		 room = 0, w;
	struct bl_peer *p;

	for (; (p = ep->credits); room -= !p->local) {
		/*
		 * A sender's frames leave the queue in the order of their numbers, so the first
		 * queued frame is the first one whose buffer is not free.
		 */
		uint32_t psn = p->rq.head ? p->rq.head->psn : p->rx.expected, len;
		uint8_t body[sizeof(struct bl_credit) + sizeof(struct bl_cookie)];

		/*
		 * That frame belongs to another place, where the receiver was before
		 * (place_core.h).
		 */
		if (p->rx.expected - psn > BL_OLD_MAX)
			psn = p->rx.expected;
		/*
		 * Messages of the frame that is partly delivered may still be NAKed, so no CREDIT
		 * covers it.
		 */
		if (ep->cur && ep->cur->peer == p && p->rx.expected - ep->cur->rq.psn <= BL_OLD_MAX)
			psn = ep->cur->rq.psn;
		if (!room) {
			bl_nic_witness(ep);
			room = bl_nic_room(ep, CREDITS_ASK, BL_NIC_CONTROLS);
		}
		if (!room)
			break;
		w = p->local ? near : far;
		if (p->stranger)
			w = bl_rx_strangers_window(ep, w);
		ep->credits = p->credit_next;
		p->rx.credit_due = false;
		if (!p->rx.credit_now && psn - p->rx.credit_psn < (p->rx.credit_window + 3) / 4)
			continue;
		p->rx.credit_now = false;
		/* The first frame of an invented address must not be answered without limit. */
		if (p->stranger && !p->rx.greeted && !bl_proof_quota(ep, p))
			continue;
		p->rx.greeted = true;
		p->rx.credit_psn = psn;
		p->rx.credit_window = w;
		bl_store32(body, psn);
		bl_store16(body + 4, p->rx.incarnation);
		bl_store16(body + 6, w);
		len = sizeof(struct bl_credit);
		if (!bl_proof_has(p, p->rx.incarnation))
			len += bl_proof_put(ep, p, p->rx.incarnation, body + len);
		bl_tx_control_fits(ep, p, BL_OP_CREDIT, 0, body, len);
		ep->st.credits_sent++;
	}
	bl_nic_witness(ep);
	if (ep->credits)
		bl_tx_wake_at(ep, bl_mono() + BL_NIC_WAIT_NS);
}

void bl_rx_nak_life(struct bl_endpoint *ep, struct bl_peer *p, uint16_t incarnation, uint32_t psn)
{
	uint8_t body[sizeof(struct bl_nak)];

	bl_store32(body, psn);
	bl_store32(body + 4, 1);
	bl_store16(body + 8, incarnation);
	body[10] = BL_NAK_LOST;
	body[11] = BL_NAK_WHOLE;
	bl_tx_control(ep, p, BL_OP_NAK, 0, body, sizeof(body));
	ep->st.naks_sent++;
}

void bl_rx_nak(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint32_t count, uint8_t why,
	       uint8_t item)
{
	uint8_t body[sizeof(struct bl_nak)];

	if (p->self) {
		bl_store32(body, psn);
		bl_store32(body + 4, count);
		bl_store16(body + 8, ep->incarnation);
		body[10] = why;
		body[11] = item;
		bl_tx_nak(ep, p, body, sizeof(body));
		return;
	}
	if (p->stranger && !bl_proof_quota(ep, p))
		return;
	while (count) {
		uint32_t n = count < 2 * BL_WINDOW_MAX ? count : 2 * BL_WINDOW_MAX;

		bl_store32(body, psn);
		bl_store32(body + 4, n);
		bl_store16(body + 8, p->rx.incarnation);
		body[10] = why;
		body[11] = item;
		bl_tx_control(ep, p, BL_OP_NAK, 0, body, sizeof(body));
		ep->st.naks_sent++;
		psn += n;
		count -= n;
		if (count > 64 * BL_WINDOW_MAX)
			/*
			 * no sender has that many outstanding: a forged number must not cause a
			 * flood
			 */
			break;
	}
}
