/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Failures as the endpoints of a host learn of them (1Pipe section 5.2): a map that the host's
 * daemon writes (bl_note) and every endpoint maps read-only.
 *
 * Example: announcement 7 says that 10.0.0.3 failed with all its processes at T = 5000. The daemon
 * writes it to ring[7 % BL_FAILS_MAX] and then sets @last to 7. From that moment the host has
 * processed the failure; the controller does not wait for its processes. Each process reads the
 * commit barrier first and @last second. The barrier does not pass T before all hosts have
 * processed the failure, so a process that may deliver messages at or above T knows announcement 7.
 * Before it delivers any of them, it discards the messages from 10.0.0.3 with ts >= 5000, recalls
 * its own scatterings that wait for a process there, and runs its failure callback.
 *
 * This file does not say how failures are detected and agreed on: see docs/reliable.md.
 */
#ifndef BARLINE_FAILURE_ABI_H
#define BARLINE_FAILURE_ABI_H

#include <linux/types.h>
#include "maps/host_abi.h"

#define BL_MAP_FAILURES "failures" /* array of one struct bl_failures; mmapped */
/* Entries of the ring; an endpoint that falls further behind is removed. */
#define BL_FAILS_MAX 1024

/*
 * X(SYMBOL, number, "name", "text"): why a process is gone, or a host with all its processes.
 * Append only: the number is stored in sessions and in the controllers' stores, and it equals enum
 * bl_gone_reason of lib/barline.h. `barline show failures` prints the name.
 */
/* clang-format off */
#define BL_GONES(X) \
	X(UNKNOWN, 0, "unknown", "no reason was announced") \
	X(LEFT, 1, "left", "it left by bl_exit()") \
	X(DIED, 2, "died", "its process ended") \
	X(IN_FLIGHT, 3, "in_flight", "it stood still in the middle of a send") \
	X(WINDOW, 4, "window", "it stood still while others waited for what it had sent") \
	X(RING, 5, "ring", "it did not read what had come") \
	X(UNREACHABLE, 6, "unreachable", \
	  "frames to it did not arrive, and nobody else had failed") \
	X(CUT_OFF, 7, "cut-off", "its host has no link to the network") \
	X(DOWN, 8, "down", "its host, or what leads to it, did not answer") \
	X(TORN, 9, "torn", "no flow was left between its host and a correct one")
/* clang-format on */
#define BL_GONE_ENUM(sym, num, name, text) BL_WHY_##sym = num,
enum bl_why { BL_GONES(BL_GONE_ENUM) BL_WHY_COUNT };
#undef BL_GONE_ENUM

/**
 * struct bl_failure - one announcement: which process or host failed, and when. Written by the
 * daemon before struct bl_failures.last passes it.
 */
struct bl_failure {
	__u64 number;  /* of the announcement on this host: one above the previous one */
	__u64 epoch;   /* of the controller's fence */
	__u64 order;   /* number of the controller's fence within @epoch */
	__u8 addr[16]; /* address of the process or host: IPv6 or IPv4-mapped, network order */
	/* failure timestamp T, bus time: messages below T are committed, the others discarded */
	__u64 ts;
	__u16 port; /* UDP port of the process, host order; 0: all processes of @addr */
	/*
	 * Incarnation of the process. The announcement does not apply to a later owner of the port.
	 * 0: unknown, so every incarnation is meant; for a host (@port 0), every incarnation that
	 * the endpoint knew before it read this entry.
	 */
	__u16 life;
	__u8 why; /* enum bl_why */
	/*
	 * Which of the addresses of its family @addr is: 0: the first one, or written by a daemon
	 * that does not count. Each address has an entry of its own; those of one process or host
	 * follow each other, and differ in @number, @addr and @nth only.
	 */
	__u8 nth;
	__u8 reserved[2]; /* must be zero */
};
_Static_assert(sizeof(struct bl_failure) == 56, "ABI");

/**
 * struct bl_failures - value 0 of "failures". Written by the daemon. It never waits for a reader:
 * after copying entry n, a reader reads @last again, and the copy is good if
 * @last is still less than n + BL_FAILS_MAX - 1.
 */
struct bl_failures {
	/*
	 * Number of the latest announcement; 0: none yet. Written after its ring entry. Pairs with
	 * the library, which reads @last after the barriers and before its own ring.
	 */
	__u64 last;
	__u64 reserved[7];
	struct bl_failure ring[BL_FAILS_MAX]; /* announcement n is in ring[n % BL_FAILS_MAX] */
};
_Static_assert(sizeof(struct bl_failures) == 64 + 56 * BL_FAILS_MAX, "ABI");

#endif
