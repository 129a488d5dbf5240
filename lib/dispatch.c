// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From the ring to the handlers. The order of two reads keeps the promise of the total order: the
 * barriers first, the ring second. Whatever the ring holds then includes everything below those
 * barriers. A record that is still being written hides the records behind it; in that case the new
 * barriers are not used yet.
 */
#include "dispatch.h"
#include "failures.h"
#include "forward.h"
#include "peer.h"
#include "presence.h"
#include "proof.h"
#include "recall.h"
#include "rrx.h"
#include "rtx.h"
#include "rx.h"
#include "send_fail.h"
#include "stranger.h"
#include "tx.h"

#define RB_BUSY    (1u << 31) /* linux/bpf.h BPF_RINGBUF_BUSY_BIT */
#define RB_DISCARD (1u << 30)
#define RB_HDR     8

/* The incarnation of the sender that a frame names; -1: it names none. */
static int sender_life(const struct bl_rec *rec)
{
	switch (rec->opcode) {
	case BL_OP_DATA:
	case BL_OP_FRAG:
	case BL_OP_PROBE:
	case BL_OP_OPEN:
	case BL_OP_PREP:
		return (int)bl_load16((const uint8_t *)(rec + 1));
	default:
		return -1;
	}
}

/*
 * Pass a record to the handler of its opcode. Returns false if there is no memory for it and it
 * must stay in the ring.
 */
static bool handle_record(struct bl_endpoint *ep, const struct bl_rec *rec)
{
	const uint8_t *body = (const uint8_t *)(rec + 1);
	struct bl_peer *p;

	ep->arrived = rec->at;
	p = bl_peer_find(ep, rec->saddr, rec->sport);
	if (rec->len < sizeof(struct bl_data) || (p && p->self)) {
		ep->st.frames_received++;
		ep->st.malformed++;
		return true;
	}
	if (!p && bl_stranger_frame(ep, rec, &p) &&
	    (rec->opcode == BL_OP_PREP || rec->opcode == BL_OP_RECALL))
		return false;
	ep->st.frames_received++;
	if (!p)
		return true;
	p->heard = ep->st.frames_received;
	if (rec->relayed)
		bl_forward_heard(p);
	if (p->presence.watched)
		bl_presence_heard(ep, p, sender_life(rec));
	switch (rec->opcode) {
	case BL_OP_DATA:
		bl_rx_data(ep, p, rec);
		break;
	case BL_OP_FRAG:
		bl_rx_frag(ep, p, rec);
		break;
	case BL_OP_PROBE:
		bl_rx_probe(ep, p, rec);
		break;
	case BL_OP_CREDIT:
		bl_tx_credit(ep, p, body, rec->len);
		break;
	case BL_OP_NAK:
		bl_tx_nak(ep, p, body, rec->len);
		break;
	case BL_OP_PREP:
		if (!bl_rrx_prep(ep, p, rec->ts, rec->psn, body, rec->len))
			break;
		ep->st.frames_received--; /* it is counted when it is offered again */
		return false;
	case BL_OP_OPEN:
		bl_rrx_open(ep, p, rec->psn, (uint16_t)bl_load16(body),
			    bl_proof_answer(ep, p, body, rec->len));
		break;
	case BL_OP_WINDOW:
		bl_rtx_window(ep, p, body, rec->len);
		break;
	case BL_OP_RECALL:
		bl_rrx_recall(ep, p, rec->psn, body, rec->len);
		break;
	case BL_OP_RECALLED:
		bl_recall_answer(ep, p, rec->psn, body, rec->len);
		break;
	default:
		ep->st.malformed++;
	}
	return true;
}

/*
 * The commit barrier as far as it concerns this endpoint. For an endpoint that was expelled, this
 * is the last barrier that the host had received before any host could be told: later barriers may
 * have passed scatterings that senders recalled without asking this endpoint. The order of the two
 * reads matters: an endpoint that is not out after the barrier was read was a member when the
 * barrier was published.
 */
static uint64_t read_commit(struct bl_endpoint *ep)
{
	uint64_t commit = __atomic_load_n(&ep->page->commit, __ATOMIC_ACQUIRE);

	if (!bl_is_out(ep))
		return commit;
	return __atomic_load_n(&ep->page->word[ep->slot].out_upto, __ATOMIC_RELAXED);
}

uint64_t bl_rx_drain(struct bl_endpoint *ep)
{
	/*
	 * Acquire: nothing of the ring is read before the barriers. Pairs with bl_publish() in
	 * bpf/host/host.bpf.c.
	 */
	uint64_t barrier = __atomic_load_n(&ep->page->barrier, __ATOMIC_ACQUIRE);
	uint64_t commit = read_commit(ep);
	bool out = ep->put_out;
	/*
	 * After the barriers, because C does not pass T before the announcement is in the page.
	 * Before the ring, because the ring has everything that came before the announcement.
	 */
	uint64_t last = bl_failures_last(ep);
	uint64_t cons = *ep->ring_cons; /* written by this endpoint alone */
	uint64_t prod = __atomic_load_n(ep->ring_prod, __ATOMIC_ACQUIRE);
	uint64_t freed = cons;
	bool whole = true;

	ep->commit_was = ep->commit;
	while (cons < prod) {
		const uint8_t *at = ep->ring_data + (cons & (ep->ring_bytes - 1));
		uint32_t len = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);

		if (len & RB_BUSY ||
		    (!(len & RB_DISCARD) && !handle_record(ep, (const void *)(at + RB_HDR)))) {
			whole = false; /* records behind it may be below the new barriers */
			break;
		}
		len &= ~RB_DISCARD;
		cons += (len + RB_HDR + 7) & ~7u;
		if (cons - freed > ep->ring_bytes / 16) {
			__atomic_store_n(ep->ring_cons, cons, __ATOMIC_RELEASE);
			freed = cons;
		}
	}
	ep->arrived = 0; /* the endpoint's own messages have no arrival */
	if (cons != freed)
		__atomic_store_n(ep->ring_cons, cons, __ATOMIC_RELEASE);
	if (whole && barrier > ep->barrier)
		ep->barrier = barrier;
	if (whole && !ep->ended && commit > ep->commit)
		ep->commit = commit;
	ep->ended |= whole && out;
	return last;
}
