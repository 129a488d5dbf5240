/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many answers an endpoint gives to frames that nobody has proved to be genuine: a challenge to
 * a stranger, a NAK for a number that cannot be outstanding. Without a limit a flood of such frames
 * would take the process's time, and would be reflected to whoever it names as its sender.
 *
 * Addresses share BL_ANSWERS_BUCKETS buckets of tokens, by a keyed hash, so a flood from one host
 * takes the answers of the few hosts that share its bucket.
 *
 * Example: 300 PROBEs of one host's new endpoints come at once. 256 are answered, the others when
 * they are repeated 25 ms later, by when 6 tokens have come, and so on.
 */
#ifndef BARLINE_ANSWERS_CORE_H
#define BARLINE_ANSWERS_CORE_H

#include "core/quota_core.h"

#define BL_ANSWERS_BUCKETS 64       /* a power of two */
#define BL_ANSWERS_BURST   256      /* answers at once, per bucket */
#define BL_ANSWERS_NS      4000000u /* time for one token: 250 answers per second and bucket */

/** struct bl_answers - the buckets. All zero: full. */
struct bl_answers {
	__u64 spent_until_ns[BL_ANSWERS_BUCKETS]; /* when the bucket is full again */
};

/** bl_answers_take - whether an answer may be given now. @hash: of the address. */
BL_CORE int bl_answers_take(struct bl_answers *q, __u64 hash, __u64 now)
{
	return bl_quota_take(&q->spent_until_ns[hash % BL_ANSWERS_BUCKETS], now, BL_ANSWERS_NS,
			     (BL_ANSWERS_BURST - 1) * (__u64)BL_ANSWERS_NS);
}

#endif
