/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prepared frames: frames of the reliable stream that this host has stored and acknowledged. They
 * wait for the commit barrier, and are delivered or taken out again. Also the WINDOWs that tell
 * senders which buffers are free.
 */
#ifndef BARLINE_LIB_PREPARED_H
#define BARLINE_LIB_PREPARED_H

#include "internal.h"

/**
 * bl_prepared_window_due - make the next bl_rrx_windows() consider a WINDOW for @p.
 * @now: send it even if less than a quarter of the window became free.
 */
void bl_prepared_window_due(struct bl_endpoint *ep, struct bl_peer *p, bool now);

/** bl_prepared_say_window - send a WINDOW: all buffers before @psn are free. @window: frames. */
void bl_prepared_say_window(struct bl_endpoint *ep, struct bl_peer *p, uint32_t psn,
			    uint32_t window);

/** bl_rrx_windows - send the WINDOWs that are due. */
void bl_rrx_windows(struct bl_endpoint *ep);

/** bl_prepared_free_psn - note that the buffer of frame @psn of process @life is free. */
void bl_prepared_free_psn(struct bl_endpoint *ep, struct bl_peer *p, uint16_t life, uint32_t psn);

/**
 * bl_prepared_part - store a part of a large message. @v: the checked PREP.
 * Returns 0, or -ENOMEM if there is no memory for the message now. A part that its sender should
 * not have sent is counted as malformed.
 */
int bl_prepared_part(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts, uint32_t psn,
		     const struct bl_prep_view *v);

/**
 * bl_rrx_discard - Discard (1Pipe 5.2): drop what a failed process sent from its T on.
 * @from_ts: T. @life: the process; 0: all processes that had the address of @p.
 * Returns the number of frames that were dropped.
 */
uint64_t bl_rrx_discard(struct bl_endpoint *ep, struct bl_peer *p, uint64_t from_ts, uint16_t life);

/**
 * bl_rrx_take_out - Recall (1Pipe 5.2): drop the @count frames of @p from @psn on, and large
 * messages, if they have this timestamp.
 * @ts48: timestamp as on the wire, 48 bits.
 * @skip: frames that have not come, and may not come, are counted as free.
 */
void bl_rrx_take_out(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts48, uint32_t psn,
		     uint32_t count, bool skip);

/**
 * bl_prepared_lacks - whether part @v with timestamp @ts, whose number has come, is not there: what
 * came with its number was another frame.
 */
bool bl_prepared_lacks(const struct bl_peer *p, uint64_t ts, const struct bl_prep_view *v);

/** bl_prepared_drop_bigs - free the large messages of @p with timestamps below @ts. */
void bl_prepared_drop_bigs(struct bl_endpoint *ep, struct bl_peer *p, uint64_t ts);

/** bl_rrx_ready - whether a frame waits that bl_rrx_deliver() would open. */
bool bl_rrx_ready(const struct bl_endpoint *ep);

/** bl_rrx_count_ready - messages that could be delivered now; stops counting at 64. */
int bl_rrx_count_ready(const struct bl_endpoint *ep);

/**
 * bl_rrx_deliver - deliver up to @max messages below bl_failures_limit(), in order.
 * Returns the count. The messages lie in buffers of ep->rlent.
 */
int bl_rrx_deliver(struct bl_endpoint *ep, struct bl_delivery *out, size_t max);

/** bl_rrx_count_undecided - messages in the queue, whatever their timestamps. */
uint32_t bl_rrx_count_undecided(const struct bl_endpoint *ep);

/** bl_rrx_deliver_undecided - as bl_rrx_deliver(), without a limit. */
int bl_rrx_deliver_undecided(struct bl_endpoint *ep, struct bl_delivery *out, size_t max);

#endif
