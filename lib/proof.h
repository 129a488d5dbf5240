/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who has proved to be at the address from which its frames come.
 *
 * A receiver challenges a sender: behind the body of a CREDIT or WINDOW goes a cookie, which only
 * that receiver can compute, from the sender's address and incarnation. The sender returns it in a
 * PROBE or OPEN. Whoever returns it has read what was sent to that address. The receiver keeps
 * nothing for that, so that there is nothing that invented senders could exhaust.
 *
 * A peer that has proved nothing, and to which the application has not sent either, is a stranger.
 * There are at most BL_STRANGERS of them, and they count in no window. What it sends is delivered:
 * a best-effort message does not wait for a round trip. But a stream that is proved gives way only
 * to an answered challenge, or when it has ended.
 *
 * Example: h1 sends its first message to h2. h2 delivers it and sends a CREDIT with a cookie; h1
 * answers with a PROBE. From now on h2 is not moved by frames with h1's address and another
 * incarnation or a far number: it refuses them, and sends a challenge to h1, which h1 answers only
 * if it is the one that counts there.
 */
#ifndef BARLINE_LIB_PROOF_H
#define BARLINE_LIB_PROOF_H

#include "internal.h"

/** bl_proof_on - whether the endpoint challenges its senders: it has a key. */
static inline bool bl_proof_on(const struct bl_endpoint *ep)
{
	return (ep->key[0] | ep->key[1]) != 0;
}

/** bl_proof_has - whether this life of @p has answered a challenge. */
static inline bool bl_proof_has(const struct bl_peer *p, uint16_t incarnation)
{
	return p->proved == (BL_PROVED | incarnation);
}

/** bl_proof_cookie - the cookie of the sender at this address, with this incarnation. Not 0. */
uint64_t bl_proof_cookie(const struct bl_endpoint *ep, const struct bl_addr *a,
			 uint16_t incarnation);

/**
 * bl_proof_put - write the challenge of this life of @p, behind a CREDIT or WINDOW. Returns the
 * number of bytes; 0: the endpoint challenges nobody.
 */
uint32_t bl_proof_put(const struct bl_endpoint *ep, const struct bl_peer *p, uint16_t incarnation,
		      uint8_t *at);

/**
 * bl_proof_quota - whether the quota permits an answer to an unproved frame from the address of @p.
 * Counts the answer if so.
 */
bool bl_proof_quota(struct bl_endpoint *ep, const struct bl_peer *p);

/**
 * bl_proof_credit, bl_proof_window - send a challenge to the life @incarnation of @p, which may be
 * unknown, if the quota permits. @psn: number of its frame, which the CREDIT or WINDOW repeats.
 */
void bl_proof_credit(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint16_t incarnation);
void bl_proof_window(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn, uint16_t incarnation);

/**
 * bl_proof_answer - read the answer behind a PROBE or OPEN of @p. Returns whether there is one and
 * it is right; from then on this life is proved.
 */
bool bl_proof_answer(struct bl_endpoint *ep, struct bl_peer *p, const uint8_t *body, uint32_t len);

/**
 * bl_proof_count - count @p among the senders that share the windows, if it is proved. @counted:
 * whether it is counted already, for the stream in question.
 */
void bl_proof_count(struct bl_endpoint *ep, struct bl_peer *p, bool *counted);

/** bl_proof_uncount - undo bl_proof_count(); no-op if @p is not counted. */
void bl_proof_uncount(struct bl_endpoint *ep, struct bl_peer *p, bool *counted);

#endif
