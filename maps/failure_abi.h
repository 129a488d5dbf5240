/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Failures as a host's endpoints hear of them (1Pipe 5.2): one page that the host daemon writes and every endpoint maps.
 *
 * Example: announcement 7 says that 10.0.0.3 with all its processes failed at T = 5000. It is in ring[7 % BL_FAILS_MAX], then @last becomes 7. An endpoint of this host discards what it holds from there with ts >= 5000,
 * recalls those of its own scatterings that wait for a process there, runs its callback, and sets its @done to 7.
 */
#ifndef BARLINE_FAILURE_ABI_H
#define BARLINE_FAILURE_ABI_H

#include "host_abi.h"

#define BL_MAP_FAILURES "failures"
#define BL_FAILS_MAX	256 /* an endpoint that is further behind counts as failed itself */

/**
 * struct bl_failure - who failed, and when.
 * @number: of the announcement on this host: one above the one before.
 * @epoch, @order: of the controller's order.
 * @addr, @port: the process; port 0: all of that address. IPv6 or mapped address, host order. It names no life: it is the one that was there when this was announced, for the port is nobody's until it is resumed, and so
 *	until all endpoints are @done. The library keeps the life that it knew (rrx.gone_life); another one is somebody else.
 * @reserved: must be zero.
 * @ts: failure timestamp T: messages from there below it are committed, those at or above it are discarded.
 */
struct bl_failure {
	__u64 number;
	__u64 epoch;
	__u64 order;
	__u8 addr[16];
	__u64 ts;
	__u16 port;
	__u16 reserved[3];
};
_Static_assert(sizeof(struct bl_failure) == 56, "ABI");

/**
 * struct bl_failures - value 0 of "failures".
 * @last: number of the latest announcement, written after it. Pairs with the library, which reads it first.
 * @ring: announcement n is in ring[n % BL_FAILS_MAX].
 * @done: by endpoint slot: number up to which its process has done all that follows. Written by the process, set to @last by the daemon for a new one.
 */
struct bl_failures {
	__u64 last;
	__u64 reserved[7];
	struct bl_failure ring[BL_FAILS_MAX];
	__u64 done[BL_EPS_MAX];
};
_Static_assert(sizeof(struct bl_failures) == 64 + 56 * BL_FAILS_MAX + 8 * BL_EPS_MAX, "ABI");

#endif
