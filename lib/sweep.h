/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When the memory of silent peers is freed. Once a second, while the endpoint works:
 *
 *	after 2 s	another life of the address is believed at once (rx.c)
 *	after 5 s	a sender does not share the windows any more
 *	after 10 s	the stage of a destination is freed
 *	after 30 s	large messages that will not become complete are freed
 *	after 60 s	sequence numbers of a sender are forgotten
 *	after 120 s	a destination is forgotten, too, and with it the peer
 *
 * Nothing is forgotten while something is queued, staged, outstanding or being recalled, nor of an
 * address about which a failure was announced.
 *
 * Exactly once does not depend on what is forgotten. A reliable frame that was delivered lies at or
 * below the last delivery, so a copy of it is late (bl_rq_late()), and the program refuses it as
 * prep_late. A frame that waits for delivery keeps its peer.
 *
 * A receiver forgets a sender earlier than the sender forgets it, and the sender sends a PROBE
 * before the first frame after 20 s, so the loss of that frame is noticed like any other. A
 * reliable sender asks for its window again after 20 s, so a receiver knows its life before it
 * reads a PREP, as discard.c requires.
 */
#ifndef BARLINE_LIB_SWEEP_H
#define BARLINE_LIB_SWEEP_H

#include "internal.h"

#define BL_SWEEP_LOOK    16u /* of so many calls of bl_work(), one looks at the clock */
#define BL_SWEEP_NS      1000000000ULL
#define BL_ALIVE_NS      (2 * BL_SWEEP_NS)
#define BL_COUNT_NS      (5 * BL_SWEEP_NS)
#define BL_STAGE_KEEP_NS (10 * BL_SWEEP_NS)
#define BL_QUIET_NS      (20 * BL_SWEEP_NS) /* a PROBE goes first after that (tx.c) */
#define BL_PARTS_KEEP_NS (30 * BL_SWEEP_NS)
#define BL_RX_KEEP_NS    (60 * BL_SWEEP_NS)
#define BL_TX_KEEP_NS    (120 * BL_SWEEP_NS)

/** bl_sweep - sweep if it is time. @mono: CLOCK_MONOTONIC now. */
void bl_sweep(struct bl_endpoint *ep, uint64_t mono);

/**
 * bl_sweep_stranger - make room for one more stranger. Returns false if all strangers have
 * something queued.
 */
bool bl_sweep_stranger(struct bl_endpoint *ep);

/**
 * bl_is_sending - whether the application or the library sends to @p, or may have to: something is
 * staged, not credited or not acknowledged.
 */
bool bl_is_sending(const struct bl_peer *p);

#endif
