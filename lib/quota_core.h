/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many answers an endpoint gives to frames that nobody has proved to be genuine: a challenge to
 * a stranger, a NAK for a number that cannot be outstanding. Without a limit a flood of such frames
 * would take the process's time, and would be reflected to whoever it names as its sender.
 *
 * Addresses share BL_QUOTA_BUCKETS buckets of tokens, by a keyed hash, so a flood from one host
 * takes the answers of the few hosts that share its bucket.
 *
 * Example: 300 PROBEs of one host's new endpoints come at once. 256 are answered, the others when
 * they are repeated 25 ms later, by when 6 tokens have come, and so on.
 */
#ifndef BARLINE_QUOTA_CORE_H
#define BARLINE_QUOTA_CORE_H

#include "core/core.h"

#define BL_QUOTA_BUCKETS 64       /* a power of two */
#define BL_QUOTA_BURST   256      /* answers at once, per bucket */
#define BL_QUOTA_NS      4000000u /* time for one token: 250 answers per second and bucket */

/** struct bl_quota - the buckets. All zero: full. */
struct bl_quota {
	__u64 spent_until_ns[BL_QUOTA_BUCKETS]; /* when the bucket is full again */
};

/** bl_quota_take - whether an answer may be given now. @hash: of the address. */
BL_CORE int bl_quota_take(struct bl_quota *q, __u64 hash, __u64 now)
{
	__u64 *full = &q->spent_until_ns[hash % BL_QUOTA_BUCKETS];
	__u64 from = *full > now ? *full : now;

	if (from - now > (BL_QUOTA_BURST - 1) * (__u64)BL_QUOTA_NS)
		return 0;
	*full = from + BL_QUOTA_NS;
	return 1;
}

#endif
