/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Failures as a host's endpoints hear of them (1Pipe 5.2): one page that the host daemon writes and
 * every endpoint maps.
 *
 * Example: announcement 7 says that 10.0.0.3 with all its processes failed at T = 5000. It is in
 * ring[7 % BL_FAILS_MAX], then
 * @last becomes 7, and the host is done with it: nobody waits for its processes. Each of them reads
 * the commit barrier first and @last second; the barrier does not pass T before all hosts are done,
 * so a process that may deliver what is at or above T knows of announcement 7, and discards what it
 * holds from there with ts >= 5000, recalls those of its own scatterings that wait for a process
 * there, and runs its callback, before it delivers anything at or above T.
 */
#ifndef BARLINE_FAILURE_ABI_H
#define BARLINE_FAILURE_ABI_H

#include "maps/host_abi.h"

#define BL_MAP_FAILURES "failures"
#define BL_FAILS_MAX    1024 /* an endpoint that is further behind is out */

/*
 * X(SYMBOL, number, "name", "text"): why a process is gone, or a host with all its processes.
 * Append only: the number is in sessions and stores of controllers, and enum bl_gone_reason of
 * lib/barline.h. The name is that of `barline show failures`.
 */
/* clang-format off */
#define BL_GONES(X) \
	X(UNKNOWN,     0, "unknown",     "who announced it did not say why") \
	X(LEFT,        1, "left",        "it left by bl_exit()") \
	X(DIED,        2, "died",        "its process ended") \
	X(IN_FLIGHT,   3, "in_flight",   "it stood still in the middle of a send") \
	X(WINDOW,      4, "window",      "it stood still while others waited for what it had sent") \
	X(RING,        5, "ring",        "it did not read what had come") \
	X(UNREACHABLE, 6, "unreachable", "frames to it did not arrive, and nobody else had failed") \
	X(CUT_OFF,     7, "cut-off",     "its host has no link to the network") \
	X(DOWN,        8, "down",        "its host, or what leads to it, did not answer") \
	X(TORN,        9, "torn",        "no flow was left between its host and a correct one")
/* clang-format on */
#define BL_GONE_ENUM(sym, num, name, text) BL_WHY_##sym = num,
enum bl_why { BL_GONES(BL_GONE_ENUM) BL_WHY_COUNT };
#undef BL_GONE_ENUM

/**
 * struct bl_failure - who failed, and when.
 * @number: of the announcement on this host: one above the one before.
 * @epoch, @order: of the controller's order.
 * @addr, @port: the process; port 0: all of that address. IPv6 or mapped address, host order.
 * @ts: failure timestamp T: messages from there below it are committed, those at or above it are
 *discarded.
 * @life: of the process, its incarnation: the port may be another one's by now, of whom this says
 *nothing. 0: not known, whoever was there. Of a host (port 0) it is 0: all lives are meant that an
 *endpoint heard of before it read this.
 * @why: enum bl_why.
 * @reserved: must be zero.
 */
struct bl_failure {
	__u64 number;
	__u64 epoch;
	__u64 order;
	__u8 addr[16];
	__u64 ts;
	__u16 port;
	__u16 life;
	__u8 why;
	__u8 reserved[3];
};
_Static_assert(sizeof(struct bl_failure) == 56, "ABI");

/**
 * struct bl_failures - value 0 of "failures".
 * @last: number of the latest announcement, written after it. Pairs with the library, which reads
 *it after the barriers and before its ring.
 * @ring: announcement n is in ring[n % BL_FAILS_MAX]; whoever reads it looks at @last once more,
 *since the daemon waits for nobody: the copy is good if @last is less than n + BL_FAILS_MAX - 1
 *then.
 * @done: by endpoint slot: number up to which its process has done all that follows; for people.
 *Written by the process, set to
 *	@last by the daemon for a new one, which begins there.
 */
struct bl_failures {
	__u64 last;
	__u64 reserved[7];
	struct bl_failure ring[BL_FAILS_MAX];
	__u64 done[BL_EPS_MAX];
};
_Static_assert(sizeof(struct bl_failures) == 64 + 56 * BL_FAILS_MAX + 8 * BL_EPS_MAX, "ABI");

#endif
