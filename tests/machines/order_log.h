/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What order_peer writes in a machine and order_judge reads outside. A log is text, one record per
 * line, numbers in decimal unless noted:
 *
 *	peer ID COUNT			first line: number of this peer, and of all peers
 *	s TO AFTER SENDER SEQ HASH	a scattering, in the order of sending: receivers (bits,
 * hex); AFTER is 1 if it was sent after (SENDER, SEQ) was delivered here; hash of its message (hex)
 *	g SENDER SEQ TS HASH		a delivery, in the order of deliveries
 *	f SEQ RECEIVER WHY		a message that send_fail reported
 *	end LATE LOST			last line: late_dropped and lost_frames of bl_get_stats()
 */
#ifndef BARLINE_TESTS_MACHINES_ORDER_LOG_H
#define BARLINE_TESTS_MACHINES_ORDER_LOG_H

#include <stddef.h>
#include <stdint.h>

/** struct order_head - the beginning of a message; the rest is a function of it. */
struct order_head {
	uint32_t magic, len; /* ORDER_MAGIC, and the length of the message */
	uint64_t seq;        /* of the scattering */
	uint32_t sender, zero;
};
#define ORDER_MAGIC 0x6d6f7264u

/* FNV-1a */
static inline uint64_t order_hash(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325u;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3u;
	return h;
}

#endif
