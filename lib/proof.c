// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Challenges, answers, and what a proof is good for (proof.h). */
#include "core/siphash_core.h"
#include "frame.h"
#include "nic.h"
#include "peer.h"
#include "proof.h"

uint64_t bl_proof_cookie(const struct bl_endpoint *ep, const struct bl_addr *a,
			 uint16_t incarnation)
{
	uint8_t m[20];
	uint64_t c;

	memcpy(m, a->ip, 16);
	bl_store16(m + 16, a->port);
	bl_store16(m + 18, incarnation);
	c = bl_siphash(ep->key[0], ep->key[1], m, sizeof(m), BL_SIP_NONE);
	return c ? c : 1;
}

uint32_t bl_proof_put(const struct bl_endpoint *ep, const struct bl_peer *p, uint16_t incarnation,
		      uint8_t *at)
{
	if (!bl_proof_on(ep))
		return 0;
	return bl_cookie_put(at, bl_proof_cookie(ep, &p->addr, incarnation));
}

bool bl_proof_quota(struct bl_endpoint *ep, const struct bl_peer *p)
{
	uint64_t hash;

	if (!bl_proof_on(ep))
		return true;
	/* By host: a host must not take the answers of others by inventing ports. */
	hash = bl_siphash(ep->key[1], ep->key[0], p->addr.ip, sizeof(p->addr.ip), BL_SIP_NONE);
	if (bl_answers_take(&ep->quota, hash, bl_mono()))
		return true;
	ep->st.unanswered++;
	return false;
}

void bl_proof_credit(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint16_t incarnation)
{
	uint8_t body[sizeof(struct bl_credit) + sizeof(struct bl_cookie)];

	if (!bl_proof_on(ep) || !bl_proof_quota(ep, p))
		return;
	bl_store32(body, psn);
	bl_store16(body + 4, incarnation);
	bl_store16(body + 6, BL_WINDOW_FIRST);
	bl_cookie_put(body + sizeof(struct bl_credit), bl_proof_cookie(ep, &p->addr, incarnation));
	bl_tx_control(ep, p, BL_OP_CREDIT, 0, body, sizeof(body));
	ep->st.credits_sent++;
}

void bl_proof_window(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint16_t incarnation)
{
	uint8_t body[sizeof(struct bl_window) + sizeof(struct bl_cookie)];

	if (!bl_proof_on(ep) || !bl_proof_quota(ep, p))
		return;
	bl_store32(body, psn);
	bl_store16(body + 4, incarnation);
	bl_store16(body + 6, BL_WINDOW_FIRST);
	bl_store16(body + 8, ep->incarnation);
	bl_store16(body + 10, 0);
	bl_cookie_put(body + sizeof(struct bl_window), bl_proof_cookie(ep, &p->addr, incarnation));
	bl_tx_control(ep, p, BL_OP_WINDOW, 0, body, sizeof(body));
	ep->st.credits_sent++;
}

bool bl_proof_answer(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len)
{
	uint64_t cookie = bl_cookie_at(body, len, sizeof(struct bl_data));
	uint16_t incarnation = (uint16_t)bl_load16(body);

	if (!cookie || !bl_proof_on(ep))
		return false;
	if (cookie != bl_proof_cookie(ep, &p->addr, incarnation)) {
		ep->st.refused++;
		return false;
	}
	p->proved = BL_PROVED | incarnation;
	bl_peer_known(ep, p);
	return true;
}

void bl_proof_count(struct bl_endpoint *ep, struct bl_peer *p, bool *counted)
{
	if (*counted || (bl_proof_on(ep) && !p->proved && !p->self))
		return;
	*counted = true;
	ep->nsenders++;
	if (!p->local)
		bl_nic_sender(ep, 1);
}

void bl_proof_uncount(struct bl_endpoint *ep, struct bl_peer *p, bool *counted)
{
	if (!*counted)
		return;
	*counted = false;
	ep->nsenders--;
	if (!p->local)
		bl_nic_sender(ep, -1);
}
