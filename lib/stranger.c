// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which frames of unknown addresses make the endpoint remember something. Their answers are within
 * a quota (answers_core.h), and the room for strangers is fixed, so a flood of invented addresses
 * costs its receiver no memory, and nobody whom it knows.
 *
 * An OPEN makes a stranger, although it could be answered without: an announcement that a host has
 * failed is about the lives that were heard of before it was read (discard.c), so a life must be
 * known before its first PREP is read.
 *
 * The program has stored and acknowledged a PREP, and has answered a RECALL, so these are refused
 * only when there are BL_PEERS_MAX peers. Their sender knows the incarnation of this endpoint.
 */
#include <errno.h>

#include "peer.h"
#include "proof.h"
#include "stranger.h"
#include "sweep.h"

static int meet(struct bl_endpoint *ep, const struct bl_rec *rec, uint32_t proved,
		struct bl_peer **peer)
{
	struct bl_peer *p = bl_peer_meet(ep, rec->saddr, rec->sport);

	*peer = p;
	if (!p)
		return -ENOMEM;
	p->proved = proved;
	return 0;
}

/* A frame that has to be believed, whoever sent it. */
static int must_meet(struct bl_endpoint *ep, const struct bl_rec *rec, struct bl_peer **peer)
{
	if (ep->npeers >= BL_PEERS_MAX) {
		ep->st.no_room++;
		return 0;
	}
	return meet(ep, rec, 0, peer);
}

int bl_stranger_frame(struct bl_endpoint *ep, const struct bl_rec *rec, struct bl_peer **peer)
{
	const uint8_t *body = (const uint8_t *)(rec + 1);
	uint16_t incarnation = (uint16_t)bl_load16(body);
	struct bl_peer who;
	int rc;

	*peer = NULL;
	switch (rec->opcode) {
	case BL_OP_DATA:
	case BL_OP_FRAG:
	case BL_OP_PROBE:
	case BL_OP_OPEN:
	case BL_OP_PREP:
	case BL_OP_RECALL:
		break;
	case BL_OP_CREDIT:
	case BL_OP_NAK:
	case BL_OP_WINDOW:
	case BL_OP_RECALLED:
		ep->st.refused++; /* answers nothing that was sent there, or was forgotten */
		return 0;
	default:
		ep->st.malformed++;
		return 0;
	}
	if (!bl_proof_on(ep))
		return meet(ep, rec, 0, peer);
	memset(&who, 0, sizeof(who));
	bl_peer_init(ep, &who, rec->saddr, rec->sport);
	if (who.self) {
		ep->st.malformed++;
		return 0;
	}
	if ((rec->opcode == BL_OP_PROBE || rec->opcode == BL_OP_OPEN) &&
	    bl_proof_answer(ep, &who, body, rec->len)) {
		if (ep->npeers < BL_PEERS_MAX)
			return meet(ep, rec, who.proved, peer);
		ep->st.no_room++;
		return 0;
	}
	if (rec->opcode == BL_OP_PROBE) {
		bl_proof_credit(ep, &who, rec->psn, incarnation);
		return 0;
	}
	if (!bl_sweep_stranger(ep)) {
		if (rec->opcode == BL_OP_PREP || rec->opcode == BL_OP_RECALL)
			return must_meet(ep, rec, peer);
		ep->st.no_room++;
		if (rec->opcode == BL_OP_OPEN)
			bl_proof_window(ep, &who, rec->psn, incarnation);
		else
			bl_proof_credit(ep, &who, rec->psn, incarnation);
		return 0;
	}
	rc = meet(ep, rec, 0, peer);
	if (!rc)
		bl_peer_strange(ep, *peer);
	return rc;
}
